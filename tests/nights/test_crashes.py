"""Nights that are killed at random moments: what is released in the end is as if none had been."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from agedp_data.ledger import Ledger
from tests.faults.runs import Runs
from tests.nights.course import Course, sample_course, year_course
from tests.nights.keyed import draws
from tests.nights.test_year_of_nights import DATES, House, require_as_archived, require_every_statement_again, text_of

pytestmark = pytest.mark.long


@pytest.fixture
def runs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runs]:
    """Runs of the command that may be killed."""
    server = Runs(tmp_path_factory.mktemp("runs"))
    yield server
    server.close()


@dataclass(kw_only=True)
class StruckHouse(House):
    """A house whose runs are killed in some nights, at a boundary or at an instant; `again`: and begun anew at once."""

    runs: Runs
    strikes: dict[int, int]
    again: bool
    chance: random.Random = field(default_factory=lambda: random.Random(41))  # noqa: S311 - instants, no secrets
    killed: int = 0

    def run(self, night: int) -> None:
        for _ in range(self.strikes.get(night, 0)):
            self._strike(night)
        if self.again or night not in self.strikes:
            super().run(night)

    def _strike(self, night: int) -> None:
        instants = ({"kill_at": self.chance.randint(1, 90)}, {"kill_after": self.chance.uniform(0.05, 0.6)})
        order = {"house": str(self.folder), "journal": str(self.journal), "now": datetime.now(UTC).isoformat()}
        words = ["run", str(self.run_file), "--as-of", text_of(night)]
        end = self.runs.one({**order, "words": words, **self.chance.choice(instants)})
        assert end.killed or end.status == 0, end
        self.killed += end.killed
        stored = {(row.series, row.day): 1 for row in self.stored() if row.state == "released"}
        before = {(row.series, row.day) for row in self.rows}
        repeated = draws(self.journal) - self.repeated
        repeated.subtract(stored)
        assert not before & set(+repeated), "a stored day was drawn again"
        self.repeated += repeated
        self.check(night)

    def stored(self) -> tuple[Any, ...]:
        if not (self.folder / "out" / "ledger.sqlite").exists():
            return ()
        with Ledger.open(self.ledger) as ledger:
            return ledger.rows("homes")


def live(house: House) -> None:
    for night in range(1, house.course.days + 10):
        house.night(night)
    assert sorted(row.day for row in house.rows) == [text_of(day) for day in range(house.course.days)]


def contents(house: House) -> dict[str, object]:
    """Return all rows of the ledger, every file of the release folder and what the accounts charge."""
    with Ledger.open(house.ledger) as ledger:
        found: dict[str, object] = {"ledger": ledger.all_rows()}
    with closing(sqlite3.connect(house.folder / "out" / "confidential" / "household_register.sqlite")) as accounts:
        charges = "SELECT kind, first_day, last_day, charged_day, charged_total, head FROM population"
        found["charges"] = accounts.execute(charges).fetchall()  # without the number, which is drawn
        members = "SELECT first_day, last_day FROM member ORDER BY 1, 2"  # without the digests, whose key is drawn
        found["members"] = accounts.execute(members).fetchall()
    return found | {path.name: path.read_bytes() for path in house.release.iterdir()}


@pytest.mark.parametrize("notion", ["age-dependent", "risk", "w-event"])
def test_nights_that_are_killed_and_run_again_end_as_calm_ones(tmp_path: Path, runs: Runs, notion: str) -> None:
    course = sample_course(notion)
    (tmp_path / "calm").mkdir()
    calm = House(tmp_path / "calm", course)
    (tmp_path / "struck").mkdir()
    strikes = dict.fromkeys(range(1, course.days + 10), 2)
    struck = StruckHouse(tmp_path / "struck", course, runs=runs, strikes=strikes, again=True)
    live(calm)
    live(struck)
    assert struck.killed > len(strikes)
    expected = contents(calm)
    differing = [name for name, content in contents(struck).items() if content != expected.pop(name)]
    assert (differing, expected) == ([], {})


@pytest.mark.parametrize(
    ("course", "nights"), [(sample_course("age-dependent"), 6), (year_course(), 40)], ids=["three weeks", "a year"]
)
def test_nights_with_crashes_publish_what_an_archive_does(
    tmp_path: Path, runs: Runs, course: Course, nights: int
) -> None:
    """The next night goes on. Its days count what came until then; `check` adds that up, `published_on` says it."""
    # nobody clears away files that were not read
    open_nights = sorted(set(range(2, course.days)) - {night - 1 for night in course.cleared})
    struck = random.Random(4).sample(open_nights, nights)  # noqa: S311 - nights, no secrets
    house = StruckHouse(tmp_path, course, runs=runs, strikes=dict.fromkeys(struck, 1), again=False)
    live(house)
    assert house.killed > nights / 2
    require_as_archived(house, free=DATES)
    require_every_statement_again(house)
