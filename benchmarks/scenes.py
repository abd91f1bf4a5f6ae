"""What is measured on: files in London's format, run files beside them, rosters; all of it synthetic."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Final

from benchmarks.readings import ROWS_PER_HOME, homes_of, name_of, period, write_lcl

_RUN = """version = 1
[input]
dataset = "london"
files = ["{files}"]
corrections = "set-aside"
[output]
release = "out/release"
confidential = "out/confidential"
ledger = "sqlite:///out/ledger.sqlite"
[population]
name = "benchmark"
roster = "{roster}"
min_households = 1
[schedule]
mode = "{mode}"
first_day = {first}
{last}[promise]
notion = "classical"
{accept}{age}epsilon_per_day = 50
max_day_epsilon = 50
epsilon_total = "unlimited"
[engine]
keep_days = 2000
[series.{series}]
{statistic}
"""
MEAN: Final = 'statistic = "mean"\nclamp_kwh = {clamp}\nmax_missing = 45'
DISTRIBUTION: Final = (
    'statistic = "distribution"\nby = "area"\nclamp_kwh = {clamp}\nbins_kwh = [{bins}]\nmax_missing = 45'
)
_ACCEPT = 'accept = ["useless", "no-credit", "total"]\n'
_MODEL = """[model]
source = "estimated"
assume = "markov"
file = "out/confidential/model"
period = [{first}, {last}]
step = "half-hour"
edges = "quantile"
chain = "homogeneous"
min_visits = 1
confidence = "plug-in"
publish = "envelope"
"""
HOUSEHOLDS, SHORTEST_DAYS = 5_566, 14
"""Households of the file of calibrations; fewer where the size would give each of them fewer days."""


def run_text(
    *,
    first: date | str,
    statistic: str,
    last: date | str | None = None,
    files: str = "in/*",
    roster: str = "roster.csv",
    age_days: int | None = None,
) -> str:
    """Return a run file: live nights, or with a last day an archive."""
    return _RUN.format(
        files=files,
        roster=roster,
        mode="live" if last is None else "archive",
        first=first,
        last="" if last is None else f"last_day = {last}\n",
        accept=_ACCEPT,
        age="" if age_days is None else f"age_days = {age_days}\n",
        series="daily_mean" if "mean" in statistic else "distribution",
        statistic=statistic,
    )


def archive_text(files: str, first: str, last: str) -> str:
    """Return a run file that releases every day; the clamp exceeds 48 half-hours, so that sums can be compared."""
    return run_text(files=files, first=first, last=last, statistic=MEAN.format(clamp=500))


@dataclass(frozen=True, slots=True)
class Scene:
    """A folder with the input of one size: `lcl.csv` of long series, `wide/lcl.csv` of 5,566 households if possible."""

    folder: Path
    rows: int
    wide_rows: int

    def rows_of(self, contender: str) -> int:
        """Return the rows of the file that a contender reads."""
        return self.wide_rows if contender.endswith("calibrate") else self.rows

    def ready(self, contender: str) -> Path:
        """Return what a contender is told, everything cleared away that it would find done."""
        if contender.startswith("agedp"):
            own = self.folder / ("calibrate" if contender.endswith("calibrate") else "run")
            if contender != "agedp run again":
                shutil.rmtree(own / "out", ignore_errors=True)
            if contender.startswith("agedp 0.2.0"):  # knows no accepted judgements, and judges nothing
                (own / "earlier.toml").write_text((own / "run.toml").read_text().replace(_ACCEPT, ""))
                return own / "earlier.toml"
            return own / "run.toml"
        return self.folder / "lcl.csv"


def scene(folder: Path, rows: int) -> Scene:
    """Return the input of a size; made if it is not there."""
    made = folder / f"rows-{rows}"
    size, wide = made / "size.json", made / "wide" / "lcl.csv"
    per_home = wide_rows_per_home(rows)
    if not size.exists():
        shutil.rmtree(made, ignore_errors=True)
        wide.parent.mkdir(parents=True)
        real = wide_rows = write_lcl(made / "lcl.csv", rows=rows)
        if per_home == ROWS_PER_HOME:
            wide.symlink_to("../lcl.csv")
        else:
            wide_rows = write_lcl(wide, rows=rows, rows_per_home=per_home)
        _write_runs(made, rows, rows_per_home=per_home, calibrated="../wide/lcl.csv")
        size.write_text(json.dumps({"rows": real, "wide_rows": wide_rows}))
    return Scene(made, **json.loads(size.read_text()))


def write_comparison(folder: Path, *, rows: int) -> Path:
    """Write the input of a comparison of two commits: one file, a run file and one with a model."""
    folder.mkdir(parents=True)
    write_lcl(folder / "lcl.csv", rows=rows)
    _write_runs(folder, rows, rows_per_home=ROWS_PER_HOME, calibrated="../lcl.csv")
    return folder


def _write_runs(folder: Path, rows: int, *, rows_per_home: int, calibrated: str) -> None:
    first, last = period()
    _write_run(folder / "run", archive_text("../lcl.csv", first, last), homes_of(rows), first)
    first, last = period(rows_per_home)
    text = archive_text(calibrated, first, last) + _MODEL.format(first=first, last=last)
    _write_run(folder / "calibrate", text, homes_of(rows, rows_per_home), first)


def wide_rows_per_home(rows: int) -> int:
    """Return the rows of each household of the file for calibrations: 5,566 households where that gives enough days.

    >>> wide_rows_per_home(40_000_000), wide_rows_per_home(167_932_474), wide_rows_per_home(1_000_000)
    (7187, 30171, 672)
    """
    return min(ROWS_PER_HOME, max(SHORTEST_DAYS * 48, -(-rows // HOUSEHOLDS)))


def _write_run(folder: Path, text: str, homes: int, first: str) -> None:
    folder.mkdir()
    (folder / "run.toml").write_text(text)
    write_roster(folder / "roster.csv", homes, first)


def write_roster(path: Path, homes: int, first: str) -> None:
    """Write a roster of homes that stay from the first day."""
    path.write_text("household_id,from,to\n" + "".join(f"{name_of(home)},{first},\n" for home in range(homes)))
