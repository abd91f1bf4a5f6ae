"""Two well-formed worlds that differ in everything but run file, model and the roster's counts per day."""

from __future__ import annotations

import csv
import io
import os
import subprocess
import sys
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path

from agedp_data.datasets.synthetic import write_london
from tests.command import CommandFolder
from tests.minimal import of_three_states

DRIVER = Path(__file__).with_name("driver.py")
FIRST = date(2013, 2, 1)
HOMES, DAYS = 12, 9

RUN_FILE = """
version = 1
[input]
dataset = "london"
files = ["incoming/*.csv*"]
corrections = "set-aside"
[output]
release = "out/release"
confidential = "out/confidential"
ledger = "sqlite:///out/ledger.sqlite"
title = "Two worlds"
[population]
name = "homes"
roster = "roster.csv"
min_households = 3
[schedule]
mode = "{mode}"
first_day = 2013-02-02
last_day = 2013-02-07
[series.daily_mean]
statistic = "mean"
clamp_kwh = 20
[alerts]
min_coverage = 0.99
[promise]
notion = "age-dependent"
age_days = 1
epsilon_per_day = 0.5
method = "{method}"
secret = "day"
max_day_epsilon = 0.5
epsilon_total = 2.5
[model]
{model}
"""

DECLARED = """source = "declared"
curve = "forgetting.csv"
basis = "made up"
assume = "curve"
"""
ESTIMATED = of_three_states("2013-02-01, 2013-02-08")
STICKY = [[0.8, 0.2, 0.0], [0.1, 0.8, 0.1], [0.05, 0.15, 0.8]]
KERNEL = 'source = "declared"\nkernel = "kernel.csv"\nbasis = "made up"\nassume = "markov"\nstep = "day"\n'
TEMPORAL = """[promise]
notion = "temporal"
alpha = {alpha}
horizon_days = {horizon}
budget = "{budget}"
max_day_epsilon = 1
epsilon_total = 30
"""


@dataclass(frozen=True)
class World(CommandFolder):
    """A folder with input files, roster and run file."""

    def run(self, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """Run the command with the fixed sampler and clock, inside the world's folder."""
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("PREFECT")}
        return subprocess.run(
            [sys.executable, str(DRIVER), *words],
            cwd=self.folder,
            env={**inherited, **environment},
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )

    def published(self) -> dict[str, bytes]:
        """Return everything that left the house, file by file, and the ledger."""
        found = {path.name: path.read_bytes() for path in sorted((self.folder / "out" / "release").iterdir())}
        return {**found, "ledger": (self.folder / "out" / "ledger.sqlite").read_bytes()}


def make(folder: Path, *, seed: int, mode: str, model: str, method: str) -> World:
    """Make a world: other homes, readings, gaps, rows, ids and file names for another seed."""
    incoming = folder / "incoming"
    incoming.mkdir(parents=True)
    made = write_london(incoming, households=HOMES, first_day=FIRST, days=DAYS, seed=seed, quirks=seed > 1)
    rows = {path: _lines(path, seed) for path in made.files}
    for path in made.files:
        path.unlink()
    header, *lines = [line for path in made.files for line in rows[path]]
    half = len(lines) // 2 if seed > 1 else len(lines) // 3
    for name, part in ((f"{seed}-house-a.csv", lines[:half]), (f"{seed}-b.csv", lines[half:])):
        (incoming / name).write_bytes(b"".join([header, *(line for line in part if line != header)]))
    (folder / "roster.csv").write_text(_roster([_renamed(one, seed) for one in made.household_ids]))
    (folder / "forgetting.csv").write_text("age_days,total_variation\n1,0.8\n2,0.5\n")
    (folder / "kernel.csv").write_text("\n".join(",".join(map(str, row)) for row in STICKY) + "\n")
    (folder / "run.toml").write_text(RUN_FILE.format(mode=mode, model=model, method=method))
    return World(folder)


def temporal_world(
    folder: Path, *, alpha: str = "1.5", horizon: str = "6", budget: str = "exact", seed: int = 1
) -> World:
    """Make a world of six days in an archive under a declared kernel."""
    world = make(folder, seed=seed, mode="archive", model=KERNEL, method="tight")
    head, _, rest = (folder / "run.toml").read_text().partition("[promise]")
    promise = TEMPORAL.format(alpha=alpha, horizon=horizon, budget=budget)
    (folder / "run.toml").write_text(head + promise + rest[rest.index("[model]") :])
    return world


def _renamed(household: str, seed: int) -> str:
    return household.replace("MAC", f"CANARY{seed}x")


def _lines(path: Path, seed: int) -> list[bytes]:
    text = path.read_bytes().replace(b"MAC", f"CANARY{seed}x".encode())
    return text.splitlines(keepends=True)


def _roster(households: list[str]) -> str:
    """Four homes leave after the fourth day, whoever they are."""
    out = io.StringIO(newline="")
    writer = csv.writer(out)
    writer.writerow(["household_id", "from", "to"])
    for i, household in enumerate(households):
        writer.writerow([household, FIRST, "" if i % 3 else FIRST + timedelta(days=4)])
    return out.getvalue()
