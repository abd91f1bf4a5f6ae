"""A Dask scheduler that is lost in the middle of a stage: it costs time or one line, and no day is drawn again."""

from __future__ import annotations

import contextlib
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import dask
import pytest
from distributed import Client, LocalCluster

from agedp.calibration_pipeline import calibrate
from agedp.compute import cluster
from agedp.compute.engine_settings import SHOWN_PROGRESS
from agedp.pipeline import sanitise
from agedp_data import clock
from agedp_data.errors import InputError
from tests.faults.scenes import Scene
from tests.nights.keyed import keyed_sampler

pytestmark = [pytest.mark.long, pytest.mark.xdist_group("cluster")]
Scenes = Callable[..., Scene]


class Scheduler:
    """A scheduler at an address of its own and a worker, each a process as an administrator starts it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._running: list[subprocess.Popen[bytes]] = []
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self._port = str(free.getsockname()[1])
        self.address = f"tcp://127.0.0.1:{self._port}"
        self.start()

    def start(self) -> None:
        scheduler = ("scheduler", "--host", "127.0.0.1", "--port", self._port, "--no-dashboard")
        worker = ("worker", self.address, "--nthreads", "1", "--no-nanny", "--no-dashboard")
        for kind, *words in (scheduler, worker):
            order = [sys.executable, "-m", f"distributed.cli.dask_{kind}", *words]
            with (self._folder / "log").open("ab") as log:
                self._running.append(subprocess.Popen(order, cwd=self._folder, stdout=log, stderr=log))

    def kill(self) -> None:
        for process in self._running:
            process.send_signal(signal.SIGKILL)
            process.wait()
        self._running.clear()


@pytest.fixture
def scheduler(tmp_path: Path) -> Iterator[Scheduler]:
    scheduler = Scheduler(tmp_path)
    yield scheduler
    cluster.connect.cache_clear()
    for client in list(Client._instances):
        client.close(timeout=5)
    scheduler.kill()


def run(trials: Scene, monkeypatch: pytest.MonkeyPatch, *, stage: str, scheduler: Any, lose: Callable[[], Any]) -> None:
    """Run the command of a scene on a scheduler; call `lose` as soon as a stage has its first result."""
    lost: list[str] = []

    def watch(seen: str, *_: int) -> None:
        if seen == stage and not lost:
            lost.append(seen)
            lose()

    moment = datetime.fromisoformat(trials.now)
    monkeypatch.setattr(clock, "now", lambda: moment)
    token = SHOWN_PROGRESS.set(watch)
    begin = calibrate if trials.words[0] == "calibrate" else sanitise
    try:
        with contextlib.chdir(trials.house), keyed_sampler(trials.journal):
            begin("run.toml", scheduler=scheduler)
    finally:
        SHOWN_PROGRESS.reset(token)
        assert lost


@pytest.mark.parametrize(
    ("name", "stage"), [("a night", "read"), ("a night", "sums"), ("calibrate", "counts"), ("calibrate", "leakage")]
)
def test_a_scheduler_that_is_killed_and_started_again_costs_time_alone(
    scene: Scenes, scheduler: Scheduler, monkeypatch: pytest.MonkeyPatch, name: str, stage: str
) -> None:
    trials = scene(name)

    def restart() -> None:
        scheduler.kill()
        scheduler.start()

    run(trials, monkeypatch, stage=stage, scheduler=scheduler.address, lose=restart)
    trials.require_undisturbed()


@pytest.mark.parametrize(("name", "stage"), [("a night", "read"), ("calibrate", "counts")])
def test_a_scheduler_that_does_not_come_back_is_one_line_and_the_next_run_goes_on(
    scene: Scenes, scheduler: Scheduler, monkeypatch: pytest.MonkeyPatch, name: str, stage: str
) -> None:
    trials = scene(name)
    with pytest.raises(InputError, match=r"^\[engine\] scheduler: no Dask scheduler answers .*") as caught:
        run(trials, monkeypatch, stage=stage, scheduler=scheduler.address, lose=scheduler.kill)
    assert "\n" not in str(caught.value)
    rows = trials.after_death()
    trials.mend()
    trials.require_drawn_once(rows)


def test_workers_of_a_local_cluster_that_are_restarted_cost_time_alone(
    scene: Scenes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trials = scene("a night")
    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 0}),
        LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=":0", local_directory=str(tmp_path)) as found,
        Client(found, set_as_default=False) as client,
    ):
        run(trials, monkeypatch, stage="read", scheduler=client, lose=client.restart)
    trials.require_undisturbed()
