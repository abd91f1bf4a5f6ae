"""Nights: what a run takes if nothing is due, if one new file came, or if the night is that of a million meters.

    python -m benchmarks --parts nightly million

Each scene is built once in a folder, by ordinary runs, and stays there for a run that is resumed. Measured is the
command as cron starts it, `agedp run --json`, interpreter and imports included.

* cells: 20 groups with a distribution of 100 bins, three years, live: the history is long, the households few.
* roster: a roster of a million in Parquet, of whom few have readings: what the roster alone costs, unchanged and after
  one row was added.
* nightly: 5,566 households, one file a night for three years. Days are released after 30 days, so a new file is stored,
  checked and not due. Measured after a third of the history and after all of it, with the file of one night; and with
  one of four nights: a cost of the new rows alone is the same after either history.
* million: one day of a million households in files of 50,000, released. The stages are timed one by one.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow.csv import write_csv

from benchmarks.contenders import Contenders, Found, run_contender
from benchmarks.measuring import Measured, measure, settled
from benchmarks.readings import name_of, write_night, write_night_table
from benchmarks.scenes import DISTRIBUTION, HOUSEHOLDS, MEAN, run_text

P = ParamSpec("P")
T = TypeVar("T")
COMMAND = "benchmarks.command"
CELLS, ROSTER, MILLION = "nothing due, 2,000 cells", "nothing due, a roster of a million", "a night of a million meters"
ROSTER_CHANGED = f"{ROSTER}, one row added"
NIGHTLY = "one new file, nothing due"
NIGHTS = 3 * 365
WAIT_DAYS = 30
GROUPS, BINS, MILLION_HOUSEHOLDS, PER_FILE = 20, 100, 1_000_000, 50_000
_ROUNDS = 3
_MEAN = MEAN.format(clamp=50)


def today() -> date:
    """Return the newest day that a scene delivers: two days of margin for time zones."""
    return datetime.now(UTC).date() - timedelta(days=2)


def cells(folder: Path, *, nights: int = NIGHTS, groups: int = GROUPS, bins: int = BINS) -> list[Measured]:
    """Return what a run with nothing due takes beside a long ledger of many cells."""
    made, homes = folder / f"cells-{nights}-{groups}-{bins}", 3 * groups
    days = [today() - timedelta(days=nights - night) for night in range(nights)]
    statistic = DISTRIBUTION.format(clamp=bins, bins=", ".join(str(edge) for edge in range(bins + 1)))
    if _begin(made, statistic, first=days[0], homes=homes, groups=groups):
        write_night(made / "in" / "all.csv", day=str(days[0]), homes=homes, days=nights)
        _release(made)
    return [_nothing_due(CELLS, made, nights * groups * bins)]


def roster(folder: Path, *, homes: int = MILLION_HOUSEHOLDS) -> list[Measured]:
    """Return what a run with nothing due takes if the roster is large: unchanged, and with one row more each time."""
    made = folder / f"roster-{homes}"
    first = today() - timedelta(days=3)
    if _begin(made, _MEAN, first=first, homes=homes, roster="roster.parquet"):
        write_night(made / "in" / "all.csv", day=str(first), homes=min(homes, 1_000), days=3)
        _release(made)
    unchanged = _nothing_due(ROSTER, made, homes)
    added = iter(range(homes, homes + _ROUNDS))
    changed = _nothing_due(
        ROSTER_CHANGED, made, homes, before=lambda: _add_member(made / "roster.parquet", next(added))
    )
    return [unchanged, changed]


def _add_member(path: Path, home: int) -> None:
    """Add a household from a day on that is not released."""
    members = pq.read_table(path)
    row = {"household_id": [name_of(home)], "from": [today() + timedelta(days=2)], "to": [None]}
    pq.write_table(pa.concat_tables([members, pa.table(row, members.schema)]), path)


def nightly(folder: Path, *, homes: int = HOUSEHOLDS, nights: int = NIGHTS) -> list[Measured]:
    """Return what a new file takes after a third of a history and after all of it, and one of four nights."""
    made = folder / f"nightly-{homes}-{nights}"
    first = today() - timedelta(days=nights + 8)
    days = [first + timedelta(days=night) for night in range(nights + 8)]
    found, third = [], nights // 3
    shutil.rmtree(made, ignore_errors=True)
    _begin(made, _MEAN, first=first, homes=homes, age_days=WAIT_DAYS)
    for history, until in ((third, third), (nights, nights + 1)):
        for day in days[0 if history == third else third + 1 : until]:
            write_night_table(made / "in" / f"{day}.parquet", day=str(day), homes=homes)
        _release(made)
        found.append(_new_file(made, f"{NIGHTLY}, after {history:,} nights", days[until], 1, homes))
    found.append(_new_file(made, f"{NIGHTLY}, of four nights", days[until + 1], 4, homes))
    shutil.rmtree(made)
    return found


def _new_file(made: Path, name: str, day: date, days: int, homes: int) -> Measured:
    """Return the least of several runs that find one new file in a copy of the same state.

    An untimed run before it finds nothing new: a copied release folder is published again, which is of no night's cost.
    """
    delivered = made / "in" / f"{day}.csv"
    write_night(made / "new.csv", day=str(day), homes=homes, days=days)
    kept, found = made / "out.kept", []
    shutil.copytree(made / "out", kept, symlinks=True)
    for _ in range(_ROUNDS):
        shutil.rmtree(made / "out")
        shutil.copytree(kept, made / "out", symlinks=True)
        measure("building", made / "run.toml", rows=0, module=COMMAND, words=("run",))
        shutil.copy(made / "new.csv", delivered)
        settled()
        found.append(measure(name, made / "run.toml", rows=homes * 48 * days, module=COMMAND, words=("run",)))
        delivered.unlink()
    shutil.move(made / "new.csv", delivered)  # it is one of the nights of the history that follows
    shutil.rmtree(kept)
    return _least(found)


def build_million(folder: Path, *, homes: int = MILLION_HOUSEHOLDS) -> Path:
    """Write one day of very many households, unless a folder has it already, and return the folder of the scene."""
    made = folder / f"million-{homes}"
    day = today() - timedelta(days=1)
    if _begin(made, _MEAN, first=day, homes=homes):
        for first_home in range(0, homes, PER_FILE):
            number = min(PER_FILE, homes - first_home)
            write_night(made / "in" / f"{first_home:08}.csv", day=str(day), homes=number, first_home=first_home)
        (made / "built").touch()
    return made


def million(folder: Path, *, homes: int = MILLION_HOUSEHOLDS) -> list[Measured]:
    """Return what a released day of very many households takes, with its stages."""
    made = build_million(folder, homes=homes)
    shutil.rmtree(made / "out", ignore_errors=True)
    settled()
    return [measure(MILLION, made / "run.toml", rows=48 * homes, module=__name__)]


def _begin(
    made: Path,
    statistic: str,
    *,
    first: date,
    homes: int,
    groups: int = 0,
    age_days: int = 2,
    roster: str = "roster.csv",
) -> bool:
    """Write run file and roster of a scene; return whether it is still to be built."""
    if (made / "built").exists():
        return False
    shutil.rmtree(made, ignore_errors=True)
    (made / "in").mkdir(parents=True)
    text = run_text(first=first, statistic=statistic, roster=roster, age_days=age_days)
    (made / "run.toml").write_text(text)
    members = {
        "household_id": pa.array([name_of(home) for home in range(homes)]),
        "from": pa.array([first] * homes, pa.date32()),
        "to": pa.nulls(homes, pa.date32()),
    }
    if groups:
        members["area"] = pa.array([f"area{home % groups:03}" for home in range(homes)])
    write = pq.write_table if roster.endswith(".parquet") else write_csv
    write(pa.table(members), made / roster)
    return True


def _release(made: Path) -> None:
    """Release all that is due, untimed, twice: caches of a first run are of no night's cost."""
    for _ in range(2):
        built = measure("building", made / "run.toml", rows=0, module=COMMAND, words=("run",))
        if built.failed:
            raise RuntimeError(f"{made.name}: {built.failed}")
    (made / "built").touch()


def _nothing_due(name: str, made: Path, rows: int, *, before: Callable[[], None] = lambda: None) -> Measured:
    found = []
    for _ in range(_ROUNDS):
        before()
        settled()
        found.append(measure(name, made / "run.toml", rows=rows, module=COMMAND, words=("run",)))
    return _least(found)


def _least(found: list[Measured]) -> Measured:
    """Return the round with the least CPU time, with the largest memory of all; or one that failed."""
    for one in found:
        if one.failed:
            return one
        if one.found["released"] or one.found["skipped"]:
            return replace(one, failed=f"days were due: {one.found}")
    return replace(min(found, key=lambda one: one.cpu), peak_mb=max(one.peak_mb for one in found))


def staged_run(path: Path) -> Found:
    """Release what is due, and return the CPU and wall seconds of each stage, bytes read, and bytes stored."""
    from agedp.pipeline import STAGES, run_stages
    from agedp.run_context import RunContext
    from agedp.stage_values import call_stage

    clock: list[tuple[float, float]] = [(time.perf_counter(), time.process_time())]
    run = RunContext.load(path)

    def timed(name: str, stage: Callable[P, T], /, *values: P.args, **options: P.kwargs) -> T:
        try:
            return call_stage(name, stage, *values, **options)
        finally:
            clock.append((time.perf_counter(), time.process_time()))

    summary = run_stages(run, call=timed)
    summary.check_not_refused()
    stages: dict[str, Any] = {}
    for number, stage in enumerate(STAGES):
        (wall, cpu), (wall_end, cpu_end) = clock[number : number + 2]
        stages[stage] = [wall_end - wall, cpu_end - cpu]
    read = sum(file.stat().st_size for file in (path.parent / "in").iterdir())
    stored = [file.stat().st_size for file in Path(run.store.folder).rglob("*") if file.is_file()]
    sizes = {"read_bytes": read, "stored_bytes": sum(stored), "stored_files": len(stored)}
    return {"released": len(summary.drawn), "stages": stages, **sizes}


CONTENDERS: Contenders = {MILLION: (staged_run, "import agedp.pipeline")}

if __name__ == "__main__":
    run_contender(CONTENDERS)
