"""One more night of a mean alone, and of a mean with profile and coverage: whole processes, in turn.

    python -m tests.benchmarks.statistics_night FOLDER [--homes 5566] [--groups 400] [--rounds 3]
    python -m tests.benchmarks.statistics_night FOLDER --homes 400 --groups 40 --nights 365 --backfill

The first night is released untimed; then each round releases the second night of a copy. A backfill releases all nights
in one run. Printed by kind: processor and wall seconds and peak memory of the least round, and the ratio to the mean.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

from tests.benchmarks.lcl import name_of, write_night
from tests.source_path import ROOT, source_path

_RUN = """version = 1
[input]
dataset = "london"
files = ["../in/*.csv"]
corrections = "set-aside"
[output]
release = "out/release"
confidential = "out/confidential"
ledger = "sqlite:///out/ledger.sqlite"
[population]
name = "benchmark"
roster = "../roster.csv"
min_households = 1
[schedule]
mode = "live"
wait_for = "../in/{{day}}.csv"
give_up_days = 30
first_day = {first}
[promise]
notion = "classical"
age_days = 1
epsilon_per_day = 50
max_day_epsilon = 50
epsilon_total = "unlimited"
[series.daily_mean]
statistic = "mean"
by = "area"
clamp_kwh = 50
share = {share}
"""
_MORE = """[series.profile]
statistic = "profile"
by = "area"
clamp_kwh = 50
half_hour_clamp_kwh = 4
share = 0.5
[series.coverage]
statistic = "coverage"
by = "area"
share = 0.1
"""
RUNS = {"mean": (1, ""), "mean, profile and coverage": (0.4, _MORE)}
"""Run files by what they release: the share of the mean, and the further series."""


@dataclass(frozen=True, slots=True)
class Used:
    """What a process took."""

    wall_s: float
    cpu_s: float
    peak_mb: float

    def __str__(self) -> str:
        return f"{self.cpu_s:8.2f} CPU s {self.wall_s:8.2f} s {self.peak_mb:8.0f} MB"


def main() -> None:
    """Print what each kind of night takes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    for name, number in (("homes", 5566), ("groups", 400), ("rounds", 3), ("nights", 1)):
        parser.add_argument(f"--{name}", type=int, default=number)
    parser.add_argument("--backfill", action="store_true")
    options = parser.parse_args()
    coming = datetime.now(UTC).date() - timedelta(days=3)
    first = coming - timedelta(days=options.nights)
    made = _town(options.folder, options.homes, options.groups, first)
    days = [first + timedelta(days=night) for night in range(options.nights)]
    _deliver(made, days, options.homes)
    if not options.backfill:
        for folder in _folders(made):
            _release(folder)
        _deliver(made, [coming], options.homes)
    best: dict[Path, Used] = {}
    for _ in range(options.rounds):
        for folder in _folders(made):
            _copy(folder)
            used = _release(folder.with_suffix(".copy"))
            best[folder] = min(best.get(folder, used), used, key=lambda one: one.cpu_s)
            _say(f"{folder.name:28s}{used}")
    base = best[made / "mean"]
    for folder, used in best.items():
        _say(f"{folder.name:28s}{used}  ratios {used.cpu_s / base.cpu_s:.2f} CPU {used.wall_s / base.wall_s:.2f} wall"
             f" {used.peak_mb / base.peak_mb:.2f} memory")  # fmt: skip


def _town(folder: Path, homes: int, groups: int, first: date) -> Path:
    """Write roster and run files of a town; what stood there is removed."""
    made = folder / f"town-{homes}-{groups}"
    shutil.rmtree(made, ignore_errors=True)
    (made / "in").mkdir(parents=True)
    rows = "".join(f"{name_of(home)},{first},,area{home % groups:03d}\n" for home in range(homes))
    (made / "roster.csv").write_text(f"household_id,from,to,area\n{rows}")
    for name, (share, more) in RUNS.items():
        (made / name).mkdir()
        (made / name / "run.toml").write_text(_RUN.format(first=first, share=share) + more)
    return made


def _folders(made: Path) -> list[Path]:
    return [made / name for name in RUNS]


def _deliver(made: Path, days: list[date], homes: int) -> None:
    for day in days:
        write_night(made / "in" / f"{day}.csv", day=str(day), homes=homes)


def _copy(folder: Path) -> None:
    copy = folder.with_suffix(".copy")
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(folder, copy)
    os.sync()


def _release(folder: Path) -> Used:
    """Run `agedp run` in a process of its own; how much of the memory is its largest process's."""
    begun = time.monotonic()
    process = subprocess.Popen(
        [sys.executable, "-W", "ignore", "-m", "agedp_flows", "run", str(folder / "run.toml"), "--quiet"],
        stdout=subprocess.DEVNULL,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": source_path()},
    )
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"agedp run ended with {process.returncode}")
    return Used(time.monotonic() - begun, used.ru_utime + used.ru_stime, used.ru_maxrss / 1e3)


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
