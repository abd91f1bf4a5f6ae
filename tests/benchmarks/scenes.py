"""What the contenders work on: a file of so many rows, run files beside it, and a store of a year of nights."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

from tests.benchmarks.lcl import homes_of, name_of, period, write_lcl, write_night

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
roster = "roster.csv"
min_households = 1
[schedule]
mode = "{mode}"
first_day = {first}
{last}
[series.daily_mean]
statistic = "mean"
clamp_kwh = 500                      # above what 48 half-hours can come to: sums can be compared
max_missing = 45
[promise]
notion = "classical"
{age}
epsilon_per_day = 0.5
max_day_epsilon = 0.5
epsilon_total = "unlimited"
"""
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


@dataclass(frozen=True, slots=True)
class Scene:
    """A folder with the input of one size; what stands in `out/` was made by a contender."""

    folder: Path
    rows: int

    @property
    def csv(self) -> Path:
        """Return the input file."""
        return self.folder / "lcl.csv"

    def ready(self, contender: str) -> Path:
        """Return what a contender is told, everything cleared away that it would find done."""
        if contender == "agedp run":
            shutil.rmtree(self.folder / "run" / "out", ignore_errors=True)
        if contender == "agedp calibrate":
            shutil.rmtree(self.folder / "calibrate" / "out", ignore_errors=True)
        own = {"agedp run": "run", "agedp run again": "run", "agedp calibrate": "calibrate"}
        return self.folder / own[contender] / "run.toml" if contender in own else self.csv


def scene(folder: Path, rows: int) -> Scene:
    """Return the input of a size; made if it is not there."""
    made = Scene(folder / f"rows-{rows}", rows)
    size = made.folder / "size"
    if not size.exists():
        made.folder.mkdir(parents=True, exist_ok=True)
        real = write_lcl(made.csv, rows=rows)
        size.write_text(str(real))
    first, last = period()
    run = run_text(files="../lcl.csv", first=first, last=last)
    for name, text in (("run", run), ("calibrate", run + _MODEL.format(first=first, last=last))):
        (made.folder / name).mkdir(exist_ok=True)
        (made.folder / name / "run.toml").write_text(text)
        write_roster(made.folder / name / "roster.csv", homes_of(rows), first)
    return Scene(made.folder, int(size.read_text()))


def write_roster(path: Path, homes: int, first: str) -> None:
    """Write a roster of homes that stay from the first day."""
    path.write_text("household_id,from,to\n" + "".join(f"{name_of(home)},{first},\n" for home in range(homes)))


def run_text(*, files: str, first: str, last: str) -> str:
    """Return a run file that releases every day of files."""
    return _RUN.format(files=files, mode="archive", first=first, last=f"last_day = {last}", age="")


def year_of_nights(folder: Path, homes: int, nights: int = 365) -> tuple[Path, Path, date]:
    """Return the run file of a nightly series, its folder of deliveries, and the day that is still to come."""
    made = folder / f"nights-{homes}"
    shutil.rmtree(made, ignore_errors=True)
    (made / "in").mkdir(parents=True)
    coming = datetime.now(UTC).date() - timedelta(days=3)
    first = coming - timedelta(days=nights)
    for night in range(nights):
        day = first + timedelta(days=night)
        write_night(made / "in" / f"{day}.csv", day=str(day), homes=homes)
    text = _RUN.format(files="in/*.csv", mode="live", first=first, last="", age="age_days = 1")
    (made / "run.toml").write_text(text + "[engine]\nkeep_days = 1000\n")
    write_roster(made / "roster.csv", homes, str(first))
    return made / "run.toml", made / "in", coming
