"""Years of nights in a ledger within seconds: one real night, its row and statement repeated for every further day.

    python -m tests.benchmarks.years_of_nights FOLDER [--years 3] [--groups 20] [--bins 100] [--rounds 3]

`write_years` returns a folder with run file, roster and deliveries as after that many nightly runs: a release and a
statement for each day, as valid rows on one hash chain; readings of the first and the newest nights only. Printed are
processor seconds and peak memory of `agedp run` as whole processes: the first run, which reads everything and
publishes; a night with nothing due; a night with one day due; a complete verification.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import numpy as np

from agedp.pipeline import sanitise
from agedp_data import clock
from agedp_data.ledger import Ledger, ReleaseRecord, StatementRecord, canonical
from agedp_data.ledger.backends import backend
from agedp_data.ledger.backends.backend import transaction
from agedp_data.ledger.backends.connect import database_at
from agedp_data.ledger.records import columns_of, sha256, table_of, text_of
from tests.benchmarks.lcl import name_of, write_night
from tests.benchmarks.measuring import environment
from tests.benchmarks.run_files import DISTRIBUTION, run_text
from tests.source_path import ROOT


@dataclass(frozen=True, slots=True)
class YearsOfNights:
    """A folder after years of nightly runs."""

    folder: Path
    households: int
    next_day: date

    @property
    def run_file(self) -> Path:
        """The run file."""
        return self.folder / "run.toml"

    def deliver(self) -> YearsOfNights:
        """Write the delivery of one more day, so that it is due."""
        write_night(self.folder / "in" / f"{self.next_day}.csv", day=str(self.next_day), homes=self.households)
        return replace(self, next_day=self.next_day + timedelta(days=1))


def write_years(
    folder: Path, *, nights: int = 3 * 365, groups: int = 20, bins: int = 100, households_per_group: int = 2
) -> YearsOfNights:
    """Return a folder as after so many nightly runs of a distribution; the newest day is the newest one that is due.

    The folder is written anew. `households_per_group` is small: the readings are no part of what is measured.
    """
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "in").mkdir(parents=True)
    households, newest = groups * households_per_group, clock.today() - timedelta(days=3)
    first = newest - timedelta(days=nights - 1)
    edges = ", ".join(str(round(number * 0.4, 1)) for number in range(bins))
    statistic = DISTRIBUTION.format(clamp=50, bins=f"{edges}, 50")
    text = run_text(first=first, statistic=statistic, files="in/*.csv", age_days=1, keep_days=nights + 100)
    (folder / "run.toml").write_text(text)
    lines = [f"{name_of(home)},{first},,area{home % groups:03d}" for home in range(households)]
    (folder / "roster.csv").write_text("\n".join(["household_id,from,to,area", *lines]) + "\n")
    write_night(folder / "in" / f"{first}.csv", day=str(first), homes=households)
    _first_night(folder, first)
    _append_nights(f"sqlite:///{folder / 'out' / 'ledger.sqlite'}", nights - 1)
    return YearsOfNights(folder, households, newest + timedelta(days=1))


def _first_night(folder: Path, first: date) -> None:
    """Release the first day at a time when no later one is due."""
    real, then = clock.now, datetime.combine(first + timedelta(days=2), datetime.min.time(), UTC) + timedelta(hours=6)
    clock.now = lambda: then
    try:
        sanitise(folder / "run.toml")
    finally:
        clock.now = real


def _append_nights(url: str, nights: int) -> None:
    """Append a release and a statement for each of so many further nights, directly, with the triggers on."""
    with Ledger.open(url) as ledger:
        [row], statement = ledger.rows(), ledger.newest_statement("benchmark")
        length, head = ledger.length(), ledger.head()
    assert statement is not None
    database = database_at(url)
    with transaction(database, write=True) as connection:
        for added in _nights(row, statement, nights, length, head):
            connection.execute(backend.TABLES[table_of(added)].insert().values(columns_of(added)))


def _nights(
    row: ReleaseRecord, statement: StatementRecord, nights: int, length: int, head: str
) -> Iterator[ReleaseRecord | StatementRecord]:
    noise, claim = np.random.default_rng(1), json.loads(statement.claim)
    for night in range(1, nights + 1):
        day, published_on = (_later(text, night) for text in (row.day, row.published_on))
        release = replace(
            row,
            day=day,
            values=tuple(noise.integers(-20, 40, len(row.cells)).tolist()),
            input_ended_at=f"{_later(row.input_ended_at[:10], night)}{row.input_ended_at[10:]}",
            published_on=published_on,
            at=published_on,
            seq=length + 1,
        )
        release = replace(release, hash=sha256(head + text_of(release)))
        claim = {**claim, "ledger": {**claim["ledger"], "head": release.hash}}  # its days are those of the first night
        stated = replace(statement, claim=canonical(claim), at=published_on, seq=length + 2)
        stated = replace(stated, hash=sha256(release.hash + text_of(stated)))
        length, head = length + 2, stated.hash
        yield from (release, stated)


def _later(day: str, days: int) -> str:
    return (date.fromisoformat(day) + timedelta(days=days)).isoformat()


def main() -> None:
    """Print what the nights take."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--years", type=float, default=3)
    for name, number in (("groups", 20), ("bins", 100), ("rounds", 3)):
        parser.add_argument(f"--{name}", type=int, default=number)
    options = parser.parse_args()
    nights = round(options.years * 365)
    years = write_years(options.folder, nights=nights, groups=options.groups, bins=options.bins)
    run = ("run", str(years.run_file), "--quiet")
    _say("first run", _used(*run))
    _say("nothing due", min(_used(*run) for _ in range(options.rounds)))
    _say("agedp --version", min(_used("--version") for _ in range(options.rounds)))
    years = years.deliver()
    _say("one more day", _used(*run))
    _say("agedp ledger verify", _used("ledger", "verify", str(years.run_file)))


def _used(*arguments: str) -> tuple[float, float]:
    """Return processor seconds and peak memory [MB] of a command, its children included."""
    command = [sys.executable, "-W", "ignore", "-m", "agedp_flows", *arguments]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, cwd=ROOT, env=environment())
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"agedp {' '.join(arguments)} ended with {process.returncode}")
    unit = 1e6 if sys.platform == "darwin" else 1e3
    return used.ru_utime + used.ru_stime, used.ru_maxrss / unit


def _say(what: str, used: tuple[float, float]) -> None:
    sys.stdout.write(f"{what:24s}{used[0]:8.2f} CPU s {used[1]:8.0f} MB\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
