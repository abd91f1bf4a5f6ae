"""Two well-formed worlds that differ in everything but run file, model and the roster's counts per day."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path

from agedp_data.datasets.synthetic import write_london
from tests.command import CommandFolder
from tests.minimal import of_three_states

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
{mode}
first_day = 2013-02-02
last_day = 2013-02-07
[series.daily_mean]
statistic = "mean"
clamp_kwh = 20
[alerts]
min_coverage = 0.99
[promise]
accept = ["useless", "no-credit", "total"]
{promise}[model]
{model}
"""
MODES = {mode: f'mode = "{mode}"' for mode in ("archive", "live", "rehearsal")}
MODES["rehearsal"] += '\nrehearsal_on = "readings"'
AGED = """notion = "age-dependent"
age_days = 1
epsilon_per_day = 0.5
method = "{method}"
secret = "day"
max_day_epsilon = 0.5
epsilon_total = {total}
"""
DECLARED = 'source = "declared"\ncurve = "forgetting.csv"\nbasis = "made up"\nassume = "curve"\n'
ESTIMATED = of_three_states("2013-02-01, 2013-02-08")
STICKY = [[0.8, 0.2, 0.0], [0.1, 0.8, 0.1], [0.05, 0.15, 0.8]]
KERNEL = 'source = "declared"\nkernel = "kernel.csv"\nbasis = "made up"\nassume = "markov"\nstep = "day"\n'


@dataclass(frozen=True)
class World(CommandFolder):
    """A folder with input files, roster and run file; it contains six days to release."""

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run the command in a process of its own."""
        command = [sys.executable, "-m", "agedp_flows", *words]
        return subprocess.run(command, cwd=self.folder, capture_output=True, text=True, timeout=300, check=False)

    def published(self) -> dict[str, bytes]:
        """Return every file of the release folder, and the ledger."""
        files = {path.name: path.read_bytes() for path in sorted((self.folder / "out" / "release").iterdir())}
        return {**files, "ledger": (self.folder / "out" / "ledger.sqlite").read_bytes()}


def make(
    folder: Path, *, mode: str, seed: int = 1, model: str = DECLARED, method: str = "total_variation",
    total: str = "3", promise: str = AGED,
) -> World:  # fmt: skip
    """Make a world: other homes, readings, gaps, rows, ids and file names for another seed."""
    incoming = folder / "incoming"
    incoming.mkdir(parents=True)
    written = write_london(incoming, households=HOMES, first_day=FIRST, days=DAYS, seed=seed, quirks=seed > 1)
    name = f"CANARY{seed}x"
    texts = [path.read_bytes().replace(b"MAC", name.encode()).splitlines(keepends=True) for path in written.files]
    for path in written.files:
        path.unlink()
    header, *lines = [line for text in texts for line in text]
    cut = len(lines) // 2 if seed > 1 else len(lines) // 3
    for file, part in ((f"{seed}-house-a.csv", lines[:cut]), (f"{seed}-b.csv", lines[cut:])):
        (incoming / file).write_bytes(b"".join([header, *(line for line in part if line != header)]))
    roster = ["household_id,from,to"]  # four homes leave after the fourth day, whatever their ids
    for i, household in enumerate(written.household_ids):
        roster.append(f"{household.replace('MAC', name)},{FIRST},{'' if i % 3 else FIRST + timedelta(days=4)}")
    (folder / "roster.csv").write_text("\n".join(roster) + "\n")
    (folder / "forgetting.csv").write_text("age_days,total_variation\n1,0.8\n2,0.5\n")
    (folder / "kernel.csv").write_text("\n".join(",".join(map(str, row)) for row in STICKY) + "\n")
    promise = promise.format(method=method, total=total)
    (folder / "run.toml").write_text(RUN_FILE.format(mode=MODES[mode], model=model, promise=promise))
    return World(folder)
