"""A house to test stages in: input files with known readings, a roster, a run file that can be varied."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from agedp.compute.engine_settings import Engine
from agedp.pipeline import run_stages
from agedp.run_context import RunContext
from agedp.run_summary import RunSummary
from agedp.stage_values import Delivery
from agedp.stages.ingest import ingest
from agedp.store.store import Store
from agedp_data.datasets.validation import ReadingRules
from agedp_data.roster import Roster, read_roster

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

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
first_day = {first}
last_day = {last}
[series.daily_mean]
statistic = "mean"
clamp_kwh = {clamp}
[promise]
{promise}
{rest}
"""

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

    def write(
        self,
        first: date,
        last: date,
        *,
        dataset: str = "london",
        mode: str = "archive",
        least: int = 2,
        clamp: str = "50",
        promise: str = CLASSICAL,
        rest: str = "",
    ) -> Path:
        text = _RUN.format(
            dataset=dataset,
            mode=mode,
            least=least,
            first=first,
            last=last,
            clamp=clamp,
            promise=promise,
            rest=rest,
            corrections='corrections = "set-aside"\n' if mode == "live" else "",
        )
        self.run_file.write_text(text)
        return self.run_file

    def run(self, *, today: date | None = None, as_of: date | None = None) -> RunSummary:
        now = None if today is None else datetime.combine(today, time(), UTC)
        summary = run_stages(RunContext.load(self.run_file, now=now, as_of=as_of))
        summary.check_not_refused()
        assert not summary.failures
        return summary

    def files(self) -> dict[str, bytes]:
        return {path.name: path.read_bytes() for path in sorted((self.folder / "release").iterdir())}


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
    house.london(
        {(home, first + timedelta(days=i), slot): 200 for home in "ABC" for i in range(5) for slot in range(48)}
    )
    house.roster([(home, first, None) for home in "ABC"])
    house.write(first, first + timedelta(days=4))
    house.run(today=date(2013, 1, 3))
    shutil.copy(house.folder / "ledger.sqlite", house.folder / "older.sqlite")
    shutil.copytree(house.folder / "release", house.folder / "older")
    house.run(today=date(2013, 1, 4))
    return house
