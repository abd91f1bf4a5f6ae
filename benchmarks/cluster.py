"""A day of a million meters on two worker processes of 1 GB each: finishes, also if a worker is killed midway.

    python -m benchmarks.cluster FOLDER [--homes 1000000] [--limit-mb 1000] [--kill]

The scene is that of `nights`: files of 50,000 households, released once. A cluster of two worker processes, one thread
each, runs it; Dask ends a worker at 95 % of its limit and starts another. With `--kill` the same day is released once
more, and one worker receives SIGKILL when half of the files are parsed. Checked are the confidential sums, before
noise: of each run they equal the sum of the generated readings. Printed is a line of JSON for each run, with the
largest resident memory of this process (client and scheduler) and of each worker.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import signal
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import pyarrow.parquet as pq

from benchmarks.contenders import Contenders, Found, run_contender
from benchmarks.measuring import Measured, measure, settled
from benchmarks.nights import MILLION_HOUSEHOLDS, PER_FILE, build_million
from benchmarks.readings import night_wh

UNDISTURBED, KILLED = "a day of a million meters on two workers of 1 GB", "the same, one worker killed"
QUARTER = "a day of a quarter of a million meters on two workers"
SETTINGS = "cluster.json"
LIMIT_MB, QUARTER_HOUSEHOLDS = 1000, 250_000
WORKERS = 2
_EVERY_S = 0.05


@dataclass
class _Memory:
    """The largest resident memory of this process and of each worker process, sampled [MB]."""

    own_mb: float = 0.0
    worker_mb: dict[int, float] = field(default_factory=dict)

    def sample(self, pids: list[int]) -> None:
        self.own_mb = max(self.own_mb, psutil.Process().memory_info().rss / 1e6)
        for pid in pids:
            with suppress(psutil.Error):
                resident_mb = psutil.Process(pid).memory_info().rss / 1e6
                self.worker_mb[pid] = max(self.worker_mb.get(pid, 0.0), resident_mb)


def on_cluster(path: Path, *, kills: bool) -> Found:
    """Release the day on two workers, and return its sums and the memory of all processes."""
    from distributed import Client, LocalCluster

    from agedp.compute.engine_settings import ProgressReporter
    from agedp.pipeline import run_stages
    from agedp.run_context import RunContext

    limit = json.loads((path.parent / SETTINGS).read_text())["limit_mb"] * 10**6
    memory, ended = _Memory(), threading.Event()
    killed: list[int] = []

    def watch() -> None:
        while not ended.wait(_EVERY_S):
            memory.sample(_pids(cluster))

    def progress(stage: str, done: int, total: int) -> None:
        if kills and stage == "read" and 2 * done >= total and not killed:
            killed.append(_pids(cluster)[0])
            os.kill(killed[0], signal.SIGKILL)

    with (
        LocalCluster(
            n_workers=WORKERS,
            threads_per_worker=1,
            memory_limit=limit,
            dashboard_address=":0",
            local_directory=str(path.parent / "dask"),
        ) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        thread = threading.Thread(target=watch, daemon=True)
        thread.start()
        try:
            run = RunContext.load(path, scheduler=client, progress=ProgressReporter(progress))
            summary = run_stages(run)
        finally:
            ended.set()
            thread.join()
        summary.check_not_refused()
        pids = _pids(cluster)
    own_cpu = resource.getrusage(resource.RUSAGE_SELF)
    return {
        "sums": pq.read_table(run.paths.sums).to_pydict() | {"day": []},
        "released": len(summary.drawn),
        "client_mb": memory.own_mb,
        "client_cpu_s": own_cpu.ru_utime + own_cpu.ru_stime,
        "worker_mb": list(memory.worker_mb.values()),
        "killed": len(killed),
        "restarted": len(set(pids) | set(memory.worker_mb)) - WORKERS,
    }


def _pids(cluster: Any) -> list[int]:
    return [worker.pid for worker in list(cluster.workers.values()) if worker.pid is not None]


_IMPORTS = "import agedp.pipeline, distributed"
CONTENDERS: Contenders = {
    QUARTER: (partial(on_cluster, kills=False), _IMPORTS),
    UNDISTURBED: (partial(on_cluster, kills=False), _IMPORTS),
    KILLED: (partial(on_cluster, kills=True), _IMPORTS),
}


def cluster(folder: Path) -> list[Measured]:
    """Return what a released day takes on two workers: of a quarter of a million meters, of a million, with a kill."""
    quarter = measure_cluster(folder, homes=QUARTER_HOUSEHOLDS, limit_mb=LIMIT_MB, names=(QUARTER,))
    return quarter + measure_cluster(folder, homes=MILLION_HOUSEHOLDS, limit_mb=LIMIT_MB, names=(UNDISTURBED, KILLED))


def measure_cluster(folder: Path, *, homes: int, limit_mb: int, names: Sequence[str]) -> list[Measured]:
    """Return what the day takes undisturbed, or with a worker killed.

    Raises:
        RuntimeError: a run failed, or its sums are not those of the generated readings.
    """
    made = build_million(folder, homes=homes)
    (made / SETTINGS).write_text(json.dumps({"limit_mb": limit_mb}))
    measured: list[Measured] = []
    for name in names:
        shutil.rmtree(made / "out", ignore_errors=True)
        settled()
        one = measure(name, made / "run.toml", rows=48 * homes, module="benchmarks.cluster")
        if one.failed:
            raise RuntimeError(f"{name}: {one.failed}")
        check_sums(one, made, homes)
        measured.append(one)
    return measured


def check_sums(one: Measured, made: Path, homes: int) -> None:
    """Compare the sums of a run with the generated readings.

    Raises:
        RuntimeError: they differ, or a worker was not killed that should have been.
    """
    day = next(line for line in (made / "run.toml").read_text().splitlines() if line.startswith("first_day"))
    firsts = range(0, homes, PER_FILE)
    wh = sum(night_wh(day[-10:], homes=min(PER_FILE, homes - first), first_home=first) for first in firsts)
    sums = one.found["sums"]
    if (sums["value"], sums["usable"], sums["clamped"]) != ([wh], [homes], [0]):
        raise RuntimeError(f"{one.contender}: the sums are {sums}, and the readings add up to {wh} Wh")
    if one.found["killed"] != (one.contender == KILLED):
        raise RuntimeError(f"{one.contender}: {one.found['killed']} workers were killed")


def main() -> None:
    """Measure, and print a line for each run."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--homes", type=int, default=MILLION_HOUSEHOLDS)
    parser.add_argument("--limit-mb", type=int, default=LIMIT_MB)
    parser.add_argument("--kill", action="store_true", help="release again, and kill a worker")
    chosen = parser.parse_args()
    names = (UNDISTURBED, KILLED)[: 1 + chosen.kill]
    for one in measure_cluster(chosen.folder, homes=chosen.homes, limit_mb=chosen.limit_mb, names=names):
        print(one.to_json(), flush=True)


if __name__ == "__main__":
    run_contender(CONTENDERS) if sys.argv[1:2] and sys.argv[1] in CONTENDERS else main()
