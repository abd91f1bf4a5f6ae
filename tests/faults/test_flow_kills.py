"""The flow, killed anywhere: the next plain run ends as an undisturbed one, and Prefect's server ends by itself."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.agedp_flows.serving import left
from tests.faults.scenes import Scene

_DRIVER = Path(__file__).with_name("flow_driver.py")
Scenes = Callable[[str], Scene]


def flow(trials: Scene, *, like: str = "*", kill_at: int = 0, kill_after: float | None = None) -> int:
    """Run the flow in a process of its own; return its status."""
    order = trials.order("run", "run.toml", "--flow", like=like, kill_at=kill_at, log=str(trials.folder / "log"))
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("PREFECT")}
    words = [sys.executable, str(_DRIVER), json.dumps(order)]
    with subprocess.Popen(words, env=inherited, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as run:
        try:
            _, err = run.communicate(timeout=kill_after or 300)
        except subprocess.TimeoutExpired:
            run.kill()
            _, err = run.communicate()
    assert "Traceback" not in err
    return run.returncode


def killed_and_mended(trials: Scene, **how: object) -> None:
    trials.restore()
    status = flow(trials, **how)  # type: ignore[arg-type]
    rows = trials.after_death()
    until = time.monotonic() + 30
    while left(trials.house) and time.monotonic() < until:
        time.sleep(0.2)
    assert left(trials.house) == []
    trials.mended()
    trials.drawn_once(rows, trials.rows)
    trials.verified()
    assert status == -9 or "kill_after" in how


@pytest.mark.prefect
@pytest.mark.parametrize(
    ("like", "kill_at"),
    [
        ("execute INSERT INTO release*", 3),
        pytest.param("open .*.json.*", 1, marks=pytest.mark.long),
        pytest.param("committed", 2, marks=pytest.mark.long),
        pytest.param("os.rename .SHA256SUMS.*", 1, marks=pytest.mark.long),
    ],
)
def test_killed_at_a_named_boundary_the_flow_leaves_no_server_and_the_next_run_mends(
    scene: Scenes, like: str, kill_at: int
) -> None:
    killed_and_mended(scene("a night"), like=like, kill_at=kill_at)


@pytest.mark.long
@pytest.mark.prefect
def test_killed_at_random_instants_the_flow_leaves_no_server_and_the_next_run_mends(scene: Scenes) -> None:
    chance = random.Random(3)  # noqa: S311 - instants, no secrets
    for _ in range(12):
        killed_and_mended(scene("a night"), kill_after=chance.uniform(1, 20))


@pytest.mark.long
@pytest.mark.prefect
def test_the_flow_mends_what_a_killed_run_left(scene: Scenes) -> None:
    trials = scene("a night")
    assert trials.runs.one(trials.order(like="committed", kill_at=4)).killed
    assert flow(trials) == 0
    assert trials.everything() == trials.rows
    assert trials.contents() == trials.files
