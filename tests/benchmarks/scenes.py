"""What the contenders work on: files of so many rows, of few and of 5,566 households, and run files beside them."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from pathlib import Path

from tests.benchmarks.lcl import ROWS_PER_HOME, homes_of, name_of, period, write_lcl
from tests.benchmarks.run_files import MEAN, run_text
from tests.benchmarks.tuned import PARQUET

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


HOUSEHOLDS = 5_566
SHORTEST_DAYS = 14
"""A calibration needs days; sizes that would give 5,566 households fewer have fewer households."""
_WIDE = ("agedp calibrate", "limit, 5,566 households")
_FOLDERS = {"agedp run": "run", "agedp run again": "run", "agedp calibrate": "calibrate"}


@dataclass(frozen=True, slots=True)
class Scene:
    """A folder with the input of one size: `lcl.csv` of long series, `wide/lcl.csv` of 5,566 households if possible."""

    folder: Path
    rows: int
    wide_rows: int

    @property
    def csv(self) -> Path:
        """Return the file of long series."""
        return self.folder / "lcl.csv"

    def rows_of(self, contender: str) -> int:
        """Return the rows of the file that a contender reads."""
        return self.wide_rows if contender in _WIDE else self.rows

    def ready(self, contender: str) -> Path:
        """Return what a contender is told, everything cleared away that it would find done."""
        if contender in ("agedp run", "agedp calibrate"):
            shutil.rmtree(self.folder / _FOLDERS[contender] / "out", ignore_errors=True)
        if contender == "conversion to Parquet":
            shutil.rmtree(self.folder / PARQUET, ignore_errors=True)
        if contender in _FOLDERS:
            return self.folder / _FOLDERS[contender] / "run.toml"
        return self.folder / "wide" / "lcl.csv" if contender in _WIDE else self.csv


def scene(folder: Path, rows: int) -> Scene:
    """Return the input of a size; made if it is not there."""
    made = folder / f"rows-{rows}"
    (made / "wide").mkdir(parents=True, exist_ok=True)
    size, wide = made / "size.json", made / "wide" / "lcl.csv"
    per_home = wide_rows_per_home(rows)
    if not size.exists():
        real = write_lcl(made / "lcl.csv", rows=rows)
        wide.unlink(missing_ok=True)
        if per_home == ROWS_PER_HOME:
            wide.symlink_to("../lcl.csv")
        wide_rows = real if wide.is_symlink() else write_lcl(wide, rows=rows, rows_per_home=per_home)
        size.write_text(json.dumps({"rows": real, "wide_rows": wide_rows}))
    _write_runs(made, rows, rows_per_home=per_home, calibrated="../wide/lcl.csv")
    return Scene(made, **json.loads(size.read_text()))


def write_comparison(folder: Path, *, rows: int) -> Path:
    """Write the input of a comparison of two commits: one file, a run file and one with a model."""
    folder.mkdir(parents=True)
    write_lcl(folder / "lcl.csv", rows=rows)
    _write_runs(folder, rows, rows_per_home=ROWS_PER_HOME, calibrated="../lcl.csv")
    return folder


def _write_runs(folder: Path, rows: int, *, rows_per_home: int, calibrated: str) -> None:
    first, last = period()
    _write_run(folder / "run", _archive_text("../lcl.csv", first, last), homes_of(rows), first)
    first, last = period(rows_per_home)
    text = _archive_text(calibrated, first, last) + _MODEL.format(first=first, last=last)
    _write_run(folder / "calibrate", text, homes_of(rows, rows_per_home), first)


def _archive_text(files: str, first: str, last: str) -> str:
    """Return a run file that releases every day; the clamp exceeds 48 half-hours, so that sums can be compared."""
    return run_text(files=files, first=first, last=last, statistic=MEAN.format(clamp=500))


def wide_rows_per_home(rows: int) -> int:
    """Return the rows of each household of the file for calibrations: 5,566 households where that gives enough days.

    >>> wide_rows_per_home(40_000_000), wide_rows_per_home(167_932_474), wide_rows_per_home(1_000_000)
    (7187, 30171, 672)
    """
    return min(ROWS_PER_HOME, max(SHORTEST_DAYS * 48, -(-rows // HOUSEHOLDS)))


def _write_run(folder: Path, text: str, homes: int, first: str) -> None:
    folder.mkdir(exist_ok=True)
    (folder / "run.toml").write_text(text)
    write_roster(folder / "roster.csv", homes, first)


def write_roster(path: Path, homes: int, first: str) -> None:
    """Write a roster of homes that stay from the first day."""
    path.write_text("household_id,from,to\n" + "".join(f"{name_of(home)},{first},\n" for home in range(homes)))
