"""The Prefect flows as Python sees them: module-level tasks whose functions run without a server."""

from __future__ import annotations

import inspect
import json
import logging
import os
import subprocess
import sys
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
import pytest
from prefect.cache_policies import NO_CACHE
from prefect.logging import disable_run_logger
from prefect.states import Completed

from agedp.calibration_pipeline import begin_calibration, calibrate, run_calibration
from agedp.pipeline import STAGES, run_stages
from agedp.run_context import RunContext
from agedp.stages.release import ReleaseResult
from agedp_data.errors import InputError, Refused, Unavailable
from agedp_data.markov.mixing import MIXING_NAMES
from agedp_data.model import Model
from agedp_flows import artifacts, calibrate_flow, deployment_entrypoint, release_flow
from agedp_flows.artifacts import InputProgress, artifact_key, bounds_table, due_text, released_text, slug
from agedp_flows.deployments import deployments_of
from agedp_flows.prefect_server import _password
from agedp_flows.scheduled_runs import ScheduledRun
from agedp_flows.stage_tasks import (
    FlowObserver,
    StageFailed,
    StageTasks,
    State,
    failed_state,
    is_unavailable,
    run_stage,
    use_observer,
)
from tests.agedp.conftest import House
from tests.agedp_flows.worlds import ESTIMATED, World, make

RETRIES = {
    "plan": 0, "ingest": 2, "aggregate": 0, "release": 0, "publish": 2, "report": 0,
    "load": 2, "quantize": 0, "estimate": 0, "bound": 0, "verify": 2, "audit": 0,
}  # fmt: skip
"""How often a task is repeated: only one that reads input or writes output, and never one that draws."""


def test_tasks_are_named_uncached_and_retried_on_io_only() -> None:
    tasks = StageTasks(FlowObserver())
    for name, retries in RETRIES.items():
        task = tasks.task(name, lambda: None)
        assert (task.name, task.retries) == (name, retries)
        assert task.persist_result is False
        assert task.cache_policy == NO_CACHE
        assert (task.retry_condition_fn is is_unavailable) is (task.retries > 0)
        assert inspect.signature(task.fn).parameters == {}  # so Prefect receives no value


@pytest.mark.parametrize(("asked", "seconds"), [("", 600), ("30", 30)])
def test_no_default_of_the_installation_repeats_a_draw_and_a_server_has_time_to_start(asked: str, seconds: int) -> None:
    """Prefect's own setting asks for retries of everything; what draws has none."""
    code = "from agedp_flows.release_flow import release; import prefect.settings as s; ephemeral = "
    code += "s.get_current_settings().server.ephemeral; from agedp_flows.stage_tasks import FlowObserver, StageTasks; "
    code += "task = StageTasks(FlowObserver()).task; retries = [task(n, lambda: 0).retries for n in ('release','plan')]"
    code += "; print(*retries, release.retries"
    defaults = {"PREFECT_TASKS_DEFAULT_RETRIES": "2", "PREFECT_FLOWS_DEFAULT_RETRIES": "2"}
    limit = {"PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS": asked} if asked else {}
    done = subprocess.run(
        [sys.executable, "-c", f"{code}, int(ephemeral.startup_timeout_seconds))"],
        env={**os.environ, **defaults, **limit}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout.split() == ["0", "0", "0", str(seconds)]


def test_only_input_that_did_not_answer_is_retried() -> None:
    for error, expected in (
        (Unavailable("input 1 of 2: cannot be opened (Timeout)"), True),
        (InputError("input 1 of 2: unknown columns"), False),
        (Refused("2013-02-07: nothing was drawn"), False),
    ):
        assert is_unavailable(None, None, failed_state(error)) is expected


def test_a_failed_stage_is_a_state_with_public_text_and_without_a_traceback() -> None:
    def stage() -> None:
        raise InputError("input 1 of 2: unknown columns", private="CANARY.csv: unknown columns")

    state = run_stage("ingest", stage)
    assert (state.message, state.data) == ("InputError: input 1 of 2: unknown columns", None)

    def logged() -> str:
        """Return a task's error, told to add the traceback of now, as Prefect tells it."""
        log = logging.getLogger("prefect.task_runs")
        record = log.makeRecord(log.name, logging.ERROR, __file__, 1, "failed", (), sys.exc_info())
        assert log.filter(record)
        return logging.Formatter().format(record)

    assert logged() == "failed"
    try:
        raise ValueError("seen")
    except ValueError:
        assert logged().endswith("ValueError: seen")


class CalledTasks(StageTasks):
    """Runs the functions of the tasks without a server, and keeps the states in which they end."""

    def __init__(self, tasks: StageTasks) -> None:
        super().__init__(tasks.observer)
        self.record = tasks.record  # type: ignore[method-assign]
        self.states: dict[str, State] = {}

    def task(self, name: str, function: Callable[[], State]) -> Any:
        def call(**_: object) -> State:
            self.states[name] = function() or Completed()
            return self.states[name]

        return call


def test_tasks_make_the_model_of_the_plain_function_and_release_under_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = make(tmp_path / "world", seed=2, mode="rehearsal", model=ESTIMATED, method="tight", total="2.5")
    monkeypatch.chdir(world.folder)
    monkeypatch.setattr(calibrate_flow, "record_bounds", lambda *_: None)
    for name in ("name_run", "record_plan", "record_release"):
        monkeypatch.setattr(release_flow.artifacts, name, lambda *_: None)
    plain = calibrate("run.toml")
    text = (world.folder / "run.toml").read_text().replace('file = "model"', 'file = "model-by-tasks"')
    (world.folder / "tasks.toml").write_text(text)
    context = begin_calibration("tasks.toml")
    with disable_run_logger(), use_observer(FlowObserver()) as observer:
        tasks = CalledTasks(calibrate_flow._CalibrationTasks(context, observer, InputProgress()))
        model = run_calibration(context, call=tasks)
    assert list(tasks.states) == ["load", "quantize", "estimate", "bound"]
    assert (model.model.id, model.readings) == (plain.model.id, plain.readings)
    assert model.curves.keys() == plain.curves.keys()
    for name, curve in plain.curves.items():
        np.testing.assert_array_equal(model.curves[name], curve)
    require_the_public_bounds(world)
    require_released_by_tasks(world)


def require_the_public_bounds(world: World) -> None:
    text = (world.folder / "model" / "public.json").read_text()
    public = json.loads(text)["envelope"]
    for line, steps in zip(bounds_table(Model.from_text(text), [1, 2]), (48, 96), strict=True):
        at = public["ages"].index(steps)
        for name in ("total_variation", "spectral", "reversibilised"):
            stored = public["bounds"].get(name)
            assert line.get(MIXING_NAMES[name]) == (None if stored is None else f"{float(stored[at]):.4f}")


def require_released_by_tasks(world: World) -> None:
    run = RunContext.load("run.toml")
    with disable_run_logger(), use_observer(FlowObserver()) as observer:
        tasks = CalledTasks(release_flow._ReleaseTasks(run, observer, InputProgress()))
        summary = run_stages(run, call=tasks)
    assert tuple(tasks.states) == STAGES
    assert [name for name, state in tasks.states.items() if not state.is_completed()] == ["release"]
    assert due_text(summary.due_days) == "6 days due: 2013-02-02 to 2013-02-07."
    # epsilon_total allows five of the six days; four of the 12 households leave with 5 February
    assert tasks.states["release"].message == f"Refused: {summary.refusal}"
    assert str(summary.refusal).startswith("2013-02-07: ")
    assert released_text(ReleaseResult(summary.session, summary.released)) == (
        f"5 days released, 0 skipped. Epsilon per day: at most 0.5. Noise standard deviation: at most "
        f"{2**0.5 * 20 / (0.5 * 8):.3g} kWh per household (daily_mean)."
    )
    table = release_flow.artifacts.released_table(run, summary.drawn)
    assert [line["households"] for line in table] == [12, 12, 12, 12, 8]
    assert (world.folder / "out" / "release" / "SHA256SUMS").exists()


def test_a_refused_first_release_is_a_failed_plan_with_its_public_text(tmp_path: Path) -> None:
    house, day = House(tmp_path), date(2013, 1, 1)
    house.fill([day], households="AB")
    house.write(day, day)
    house.edit(('accept = ["useless", "no-credit", "total"]\n', ""))
    run = RunContext.load(house.run_file)
    with disable_run_logger(), use_observer(FlowObserver()) as observer, pytest.raises(Refused):
        run_stages(run, call=(tasks := CalledTasks(release_flow._ReleaseTasks(run, observer, InputProgress()))))
    with pytest.raises(Refused) as refused:
        house.run()
    assert [(name, state.message) for name, state in tasks.states.items()] == [("plan", f"Refused: {refused.value}")]
    assert "no span is of use" in str(refused.value)
    accepting = release_flow._begin(str(house.run_file), None, FlowObserver(accept=["useless"]))
    assert accepting.run_file.promise.accept == ("useless",)


def test_deployments_offer_release_and_calibration(tmp_path: Path) -> None:
    night = ScheduledRun(tmp_path / "run.toml", "homes", "30 6 * * *", "Europe/London", tmp_path, is_calibrated=True)
    deployments = deployments_of(night)
    assert [(deployment.flow_name, deployment.name, len(deployment.schedules or [])) for deployment in deployments] == [
        ("agedp", "homes", 1), ("agedp-calibrate", "homes", 0),
    ]  # fmt: skip
    for deployment in deployments:
        path, _, name = (deployment.entrypoint or "").rpartition(":")
        assert path == "agedp_flows.deployment_entrypoint"
        assert getattr(deployment_entrypoint, name).name == deployment.flow_name


def test_progress_of_input_is_shown_in_tenths_and_hides_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    updates: list[float] = []
    monkeypatch.setattr(artifacts, "create_progress_artifact", lambda percent, **_: updates.append(percent) or uuid4())
    monkeypatch.setattr(artifacts, "update_progress_artifact", lambda _, percent: updates.append(percent))
    seen: list[tuple[str, int, int]] = []

    def read(until: int) -> State:
        for done in range(1, until + 1):
            progress("open", done, 40)
            progress("read", done, 40)
        if until < 40:
            raise StageFailed("the seventh file")
        return None

    progress = InputProgress(lambda *step: seen.append(step))
    progress.during(lambda: read(40), "homes")()
    assert (updates, len(seen)) == ([0, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100], 80)
    updates.clear()
    with pytest.raises(StageFailed):
        progress.during(lambda: read(7), "homes")()
    assert updates == [0, 10, 100]


def test_artifact_keys_differ_by_population() -> None:
    assert artifact_key("plan", "my-london-homes") == "agedp-plan-my-london-homes"
    keys = {slug(name) for name in ("haus 7", "Haus 7", "haus-7", "häuser", "h user", "日本")}
    assert len(keys) == 6
    assert all(set(key) <= set("abcdefghijklmnopqrstuvwxyz0123456789-") and key[0] != "-" for key in keys)


@pytest.mark.parametrize("content", [b"", b"agedp", b"\0" * 38, b"\xff\xfe:agedp"])
def test_a_damaged_password_of_the_server_is_made_anew(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "password"
    password = _password(file)
    assert (_password(file), file.stat().st_mode & 0o077) == (password, 0)
    file.write_bytes(content)
    renewed = _password(file)
    assert (renewed != password, _password(file)) == (True, renewed)
