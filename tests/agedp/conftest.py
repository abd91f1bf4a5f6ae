"""A house to test stages in: input files with known readings, a roster, a run file that can be varied."""

from __future__ import annotations

import shutil
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from agedp.compute.engine_settings import Engine
from agedp.ledger_session import LedgerSession
from agedp.local_files import atomic_files, books
from agedp.pipeline import RunSummary, run_stages
from agedp.release_verification import ReleaseFolder, open_release
from agedp.run_context import RunContext
from agedp.stage_values import Delivery
from agedp.stages.ingest import ingest
from agedp.store.store import Store
from agedp_data import mechanisms, table_schemas
from agedp_data.datasets.validation import ReadingRules
from agedp_data.ledger import Ledger, ReleaseRecord
from agedp_data.roster import Roster, read_roster
from tests.books import cells

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

CLASSICAL = 'notion = "classical"\nepsilon_per_day = 0.5\nmax_day_epsilon = 0.5\nepsilon_total = "unlimited"\n'
_RUN = """version = 1
[input]
dataset = "{dataset}"
files = ["input/*.csv"]
preflight = "report"
{corrections}[output]
release = "release"
confidential = "confidential"
ledger = "sqlite:///ledger.sqlite"
title = "Made up"
[population]
name = "homes"
roster = "roster.csv"
min_households = {least}
[schedule]
mode = "{mode}"
{rehearsed}first_day = {first}
last_day = {last}
[series.daily_mean]
statistic = "mean"
clamp_kwh = {clamp}
[promise]
accept = ["useless", "no-credit", "total"]
{promise}
{rest}
"""
_DEFAULTS = {"dataset": "london", "mode": "archive", "least": 2, "clamp": "50", "promise": CLASSICAL, "rest": ""}

Cell = tuple[str, date, int]


@dataclass
class House:
    """One folder with everything that a run needs."""

    folder: Path

    @property
    def run_file(self) -> Path:
        return self.folder / "run.toml"

    def roster(self, spans: Iterable[tuple[str, date, date | None]]) -> Roster:
        lines = [f"{home},{first},{last or ''}" for home, first, last in spans]
        (self.folder / "roster.csv").write_text("\n".join(["household_id,from,to", *lines]) + "\n")
        return read_roster(self.folder / "roster.csv")

    def london(self, readings: Mapping[Cell, int], *, name: str = "a.csv", extra: Iterable[str] = ()) -> None:
        """Write readings in watt-hours, stamped at the end of the half-hour."""
        lines = [f"{home},{stamp(day, slot)},{wh / 1000}" for (home, day, slot), wh in readings.items()]
        (self.folder / "input").mkdir(exist_ok=True)
        text = "\n".join(["LCLid,tstp,energy(kWh/hh)", *lines, *extra]) + "\n"
        (self.folder / "input" / name).write_text(text)

    def read(
        self, dataset: str = "london", *, store: str = "store", block_bytes: int = 2**24
    ) -> tuple[Store, Delivery]:
        found = Store(self.folder / store / "store", dataset, ReadingRules())
        engine = Engine(chunk_bytes=block_bytes)
        return found, ingest(found, [str(self.folder / "input" / "*.csv")], engine=engine)

    def write(self, first: date, last: date, **keys: str | int) -> Path:
        """Write a run file: dataset, mode, clamp, min_households (least), the promise and further tables (rest)."""
        corrections = 'corrections = "set-aside"\n' if keys.get("mode") == "live" else ""
        rehearsed = 'rehearsal_on = "readings"\n' if keys.get("mode") == "rehearsal" else ""
        text = _RUN.format(first=first, last=last, corrections=corrections, rehearsed=rehearsed, **_DEFAULTS | keys)
        self.run_file.write_text(text)
        return self.run_file

    def fill(self, days: Sequence[date], *, households: str = "ABC", wh: int = 200) -> None:
        """Write the same reading for every half-hour of some days, and a roster from the first of them on."""
        self.london({(home, day, slot): wh for home in households for day in days for slot in range(48)})
        self.roster([(home, days[0], None) for home in households])

    def edit(self, *edits: tuple[str, str]) -> None:
        """Replace texts of the run file that must be there."""
        text = self.run_file.read_text()
        for old, new in edits:
            assert old in text, old
            text = text.replace(old, new)
        self.run_file.write_text(text)

    def ledger(self, name: str = "ledger.sqlite") -> Ledger:
        return Ledger.open(f"sqlite:///{self.folder / name}")

    def rows(self, series: str | None = None, *, name: str = "ledger.sqlite") -> tuple[ReleaseRecord, ...]:
        """Return the release rows of the ledger, whose hash chain must hold."""
        with self.ledger(name) as ledger:
            assert ledger.verify() == ()
            return ledger.rows("homes" if series else None, series)

    def records(self, name: str) -> list[dict[str, Any]]:
        """Return the lines of a confidential table, such as true_means."""
        if name in books.TABLES:
            return cells(self.folder / "confidential", name)
        path, schema = self.folder / "confidential" / f"{name}.parquet", getattr(table_schemas, name.upper())
        return atomic_files.read_table(path, schema).to_pylist()

    @property
    def release(self) -> ReleaseFolder:
        return open_release(self.folder / "release")

    def context(self, *, today: date | None = None, hour: int = 0, as_of: date | None = None) -> RunContext:
        """Return the inputs of a run at an hour of a day."""
        now = None if today is None else datetime.combine(today, time(hour), UTC)
        return RunContext.load(self.run_file, now=now, as_of=as_of)

    def session(self, *, today: date | None = None, hour: int = 0, as_of: date | None = None) -> LedgerSession:
        """Return the ledger of a run as its first stage finds it."""
        return LedgerSession.open(self.context(today=today, hour=hour, as_of=as_of))

    def run(self, *, today: date | None = None, hour: int = 0, as_of: date | None = None) -> RunSummary:
        summary = run_stages(self.context(today=today, hour=hour, as_of=as_of))
        summary.check_not_refused()
        assert not summary.failures
        return summary

    def files(self) -> dict[str, bytes]:
        return {path.name: path.read_bytes() for path in sorted((self.folder / "release").iterdir())}


class Ended(Exception):
    """A run that ends in a draw: what it stored before stays."""


@contextmanager
def ended_in_draw(number: int) -> Iterator[None]:
    """Let a run end in its n-th draw."""
    real, draws = mechanisms.discrete_laplace, count(1)

    def draw(*args: Any, **keys: Any) -> Any:
        if next(draws) == number:
            raise Ended
        return real(*args, **keys)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(mechanisms, "discrete_laplace", draw)
        with pytest.raises(Ended):
            yield


def stamp(day: date, slot: int) -> str:
    return str(datetime.combine(day, time()) + (slot + 1) * timedelta(minutes=30))


@pytest.fixture(scope="session")
def houses() -> type[House]:
    """Houses, for fixtures that outlive one test."""
    return House


@pytest.fixture
def house(tmp_path: Path) -> House:
    """An empty house."""
    return House(tmp_path)


@pytest.fixture(scope="session")
def published_twice(tmp_path_factory: pytest.TempPathFactory) -> House:
    """Three homes, three of five days of 2013 released; older.sqlite and older/ are as they stood after the second."""
    house, first = House(tmp_path_factory.mktemp("house")), date(2013, 1, 1)
    house.fill([first + timedelta(days=i) for i in range(5)])
    house.write(first, first + timedelta(days=4))
    house.run(today=date(2013, 1, 3))
    shutil.copy(house.folder / "ledger.sqlite", house.folder / "older.sqlite")
    shutil.copytree(house.folder / "release", house.folder / "older")
    house.run(today=date(2013, 1, 4))
    return house
