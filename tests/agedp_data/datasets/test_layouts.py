"""What holds of every dataset: half-hours written as its publisher would come back in their day and slot.

A dataset is one line in CASES: its zone, two days on which the clock changes, and how a half-hour is written.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta
from itertools import groupby
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

import numpy as np
import pytest

from agedp.calibration.estimate import estimate
from agedp.calibration.quantize import Period
from agedp.compute.engine_settings import Engine
from agedp.stages.ingest import ingest
from agedp.store.month_reader import load_month_readings
from agedp.store.store import Store
from agedp_data.datasets.layout import expected_readings
from agedp_data.datasets.registry import DATASETS, layout_of
from agedp_data.datasets.validation import NamedColumns, ReadingRules, RejectionReason
from agedp_data.roster import read_roster

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

HALF = timedelta(minutes=30)
EPOCH, FIRST = date(1970, 1, 1), date(2013, 2, 1)


@dataclass(frozen=True)
class Half:
    """A half-hour of a household: the instant at which it begins, what was used, Wh (or what stands there instead)."""

    home: str
    start: datetime
    wh: int | str


@dataclass(frozen=True)
class Case:
    """A dataset: the zone of its days, days that the clock changes, its header, and the lines of half-hours."""

    dataset: str
    zone: str
    spring: date
    autumn: date
    header: str
    lines: Callable[[Iterable[Half]], list[str]]
    columns: NamedColumns | None = None

    @property
    def rules(self) -> ReadingRules:
        return ReadingRules(columns=self.columns)

    def halves(self, day: date, *homes: str) -> list[Half]:
        """Return the half-hours from midnight to midnight of the zone; every one of another size."""
        zone = ZoneInfo(self.zone)
        start, end = (datetime.combine(d, time(), zone).astimezone(UTC) for d in (day, day + timedelta(days=1)))
        steps = range(int((end - start) / HALF))
        size = {home: 137 * i for i, home in enumerate(homes, 1)}
        return [Half(home, start + i * HALF, size[home] + 7 * i) for home in homes for i in steps]

    def expected(self, halves: Iterable[Half]) -> dict[tuple[str, int], int]:
        """Return the Wh of each household and slot since 1970; what has one slot is added up."""
        found: Counter[tuple[str, int]] = Counter()
        for half in halves:
            wall = half.start.astimezone(ZoneInfo(self.zone))
            slot = (wall.date() - EPOCH).days * 48 + wall.hour * 2 + wall.minute // 30
            found[half.home, slot] += int(half.wh)
        return dict(found)


def kwh(wh: int | str) -> str:
    return wh if isinstance(wh, str) else str(wh / 1000)


def london(halves: Iterable[Half]) -> list[str]:
    return [f"{half.home},Std,{half.start + HALF:%Y-%m-%d %H:%M:%S}.0000000, {kwh(half.wh)} " for half in halves]


def ausgrid(halves: Iterable[Half]) -> list[str]:
    """One line per home and day: what the day has twice is added up, what it has not is written as 0."""
    walls = [(half, half.start.astimezone(ZoneInfo("Australia/Sydney"))) for half in halves]
    lines = []
    for (home, day), of_day in groupby(walls, key=lambda pair: (pair[0].home, pair[1].date())):
        cells: dict[int, int | str] = {}
        for half, wall in of_day:
            slot = wall.hour * 2 + wall.minute // 30
            cells[slot] = cells[slot] + half.wh if slot in cells else half.wh
        absent = layout_of("ausgrid").absent_slots(day)
        texts = [kwh(cells.get(slot, 0 if slot in absent else "")) for slot in range(48)]
        lines.append(",".join([home, "3.78", "2076", "GC", f"{day.day}/{day:%m/%Y}", *texts, ""]))
    return lines


def stamped(pattern: str, *, zone: str, end: bool, unit: str = "kWh") -> Callable[[Iterable[Half]], list[str]]:
    """Return what writes `energy,more,home,stamp`; a civil clock shows the half-hour's start, and 30 minutes more."""

    def lines(halves: Iterable[Half]) -> list[str]:
        walls = [(half, half.start.astimezone(ZoneInfo(zone)).replace(tzinfo=None)) for half in halves]
        return [
            f"{half.wh if unit == 'Wh' else kwh(half.wh)},x,{half.home},{(wall + HALF * end).strftime(pattern)}"
            for half, wall in walls
        ]

    return lines


COLUMNS = NamedColumns(
    household="meter", time="read at", time_format="%Y-%m-%d %H:%M:%S", stamp="end", zone="UTC",
    day_zone="Europe/London", energy="use", unit="kWh", missing=("Null", ""),
)  # fmt: skip
SYDNEY = replace(COLUMNS, zone="Australia/Sydney", day_zone="Australia/Sydney")
LONG = "use,more,meter,read at"
LABELS = ",".join([*(f"{m // 60}:{m % 60:02d}" for m in range(30, 1440, 30)), "0:00"])
GB, NSW = (date(2013, 3, 31), date(2013, 10, 27)), (date(2012, 10, 7), date(2013, 4, 7))
CASES = {
    "london": Case("london", "UTC", *GB, "LCLid,stdorToU,DateTime,KWH/hh (per half hour) ", london),
    "ausgrid": Case("ausgrid", "Australia/Sydney", *NSW,
        f"Customer,Generator Capacity,Postcode,Consumption Category,date,{LABELS},Row Quality", ausgrid),
    "long, London in UTC": Case("long", "Europe/London", *GB, LONG,
        stamped("%Y-%m-%d %H:%M:%S", zone="UTC", end=True), COLUMNS),
    "long, Sydney's own clock": Case("long", "Australia/Sydney", *NSW, LONG,
        stamped("%Y-%m-%d %H:%M", zone="Australia/Sydney", end=True, unit="Wh"), replace(SYDNEY, unit="Wh")),
    "long, Sydney's own clock, starts": Case("long", "Australia/Sydney", *NSW, LONG,
        stamped("%d/%m/%Y %H:%M", zone="Australia/Sydney", end=False),
        replace(SYDNEY, stamp="start", time_format="%d/%m/%Y %H:%M")),
    "long, half an hour's change": Case("long", "Australia/Lord_Howe", *NSW, LONG,
        stamped("%d.%m.%y %I:%M %p", zone="UTC", end=True),
        replace(COLUMNS, day_zone="Australia/Lord_Howe", time_format="%d.%m.%y %I:%M %p")),
}  # fmt: skip


def test_every_dataset_of_rows_is_here() -> None:
    """NEM12 has blocks of days, whose order matters: see test_nem12."""
    assert {case.dataset for case in CASES.values()} == set(DATASETS) - {"nem12"}


@pytest.fixture(params=CASES)
def case(request: pytest.FixtureRequest) -> Case:
    return CASES[request.param]


@pytest.fixture
def read_lines(tmp_path: Path, case: Case) -> Callable[..., tuple]:
    """Return what reads files of lines into a new store: readings by household and slot, delivery, store."""
    runs = iter(range(100))

    def run(*files: list[str], block_bytes: int = 2**24) -> tuple:
        folder = tmp_path / str(next(runs))
        (folder / "in").mkdir(parents=True)
        for i, lines in enumerate(files):
            (folder / "in" / f"{i}.csv").write_text("\n".join([case.header, *lines]) + "\n")
        store = Store(folder / "store", case.dataset, case.rules)
        delivery = ingest(store, [str(folder / "in")], engine=Engine("synchronous", 1, block_bytes))
        readings = {}
        for month in delivery.months:
            of = load_month_readings(store, month, delivery.contents)
            triples = zip(of.household.tolist(), of.time.tolist(), of.energy_wh.tolist(), strict=True)
            readings |= {(of.ids[code], time): wh for code, time, wh in triples}
        return readings, delivery, store

    return run


def days_of(case: Case) -> list[date]:
    """Two ends of a month, and the clock's changes with their neighbours."""
    changes = [day + timedelta(days=i) for day in (case.spring, case.autumn) for i in (-1, 0, 1)]
    return [date(2013, 1, 31), FIRST, *changes]


class TestEveryLayout:
    def test_half_hours_come_back_in_their_day_and_slot(self, case, read_lines):
        halves = [half for day in days_of(case) for half in case.halves(day, "A", "B")]
        found, delivery, store = read_lines(case.lines(halves))
        assert found == case.expected(halves)
        assert delivery.rejected == {}
        layout = store.layout
        for day in days_of(case):
            first = (day - EPOCH).days * 48
            slots = {time - first for home, time in found if home == "A" and first <= time < first + 48}
            assert slots == set(range(48)) - set(layout.absent_slots(day))
            assert len(slots) == expected_readings(layout, day)
            steps = 48 - len(layout.absent_slots(day)) + len(layout.repeated_slots(day))
            assert len(case.halves(day, "A")) == steps
            assert layout.day_end(day) == case.halves(day, "A")[-1].start + HALF

    def test_what_is_no_reading_is_missing_or_rejected_with_its_reason(self, case, read_lines):
        halves = case.halves(FIRST, "good")
        bad = {
            "abc": RejectionReason.TEXT,
            "-1": RejectionReason.NEGATIVE,
            "inf": RejectionReason.NOT_FINITE,
            "60000": RejectionReason.ABOVE_BOUND,
        }
        lines = case.lines(halves)
        for i, text in enumerate(bad):
            lines += case.lines([replace(case.halves(FIRST, f"bad {i}")[9], wh=text)])
        found, delivery, _ = read_lines([*lines, "x"])
        assert found == case.expected(halves)
        assert delivery.rejected == {reason.words: 1 for reason in (*bad.values(), RejectionReason.FIELDS)}
        assert delivery.rows_read == len(lines) + 1 == delivery.rows_kept + len(bad) + 1
        found, _, _ = read_lines(case.lines([*halves[:5], replace(halves[5], wh=""), *halves[6:]]))
        assert found == case.expected([*halves[:5], *halves[6:]])

    def test_no_order_of_rows_and_no_cut_changes_anything(self, case, read_lines):
        halves = [half for day in (*days_of(case)[:2], case.autumn) for half in case.halves(day, "A", "B", "C")]
        one, two = (case.lines([half for half in halves if (half.home == "A") == first]) for first in (True, False))
        mixed = [np.random.default_rng(1).permutation(lines).tolist() for lines in (two, one)]
        found, delivery, _ = read_lines(*mixed, block_bytes=150)
        assert found == case.expected(halves)
        assert (delivery.rows_kept, delivery.rejected) == (len(one) + len(two), {})

    def test_equal_rows_count_once_and_conflicting_rows_not_at_all(self, case, read_lines):
        halves = case.halves(FIRST, "A", "B")
        of_a = [half for half in halves if half.home == "A"]
        lines, again = case.lines(halves), case.lines(of_a)
        found, delivery, _ = read_lines(lines + again, [*again, ""])
        assert found == case.expected(halves)
        assert delivery.rejected == {RejectionReason.DUPLICATE.words: 2 * len(again), RejectionReason.LINE.words: 1}
        found, delivery, _ = read_lines(lines, case.lines([replace(half, wh=int(half.wh) + 1) for half in of_a]))
        assert found == case.expected(half for half in halves if half.home == "B")
        assert delivery.rejected == {RejectionReason.CONFLICT.words: 2 * len(again)}

    @pytest.mark.parametrize("change", ["spring", "autumn"])
    def test_transitions_are_those_between_neighbouring_half_hours(self, case, read_lines, change):
        day = getattr(case, change)
        halves = [half for i in (-1, 0, 1) for half in case.halves(day + timedelta(days=i), "A")]
        found, delivery, store = read_lines(case.lines(halves))
        twice = Counter(time for half in halves for _, time in case.expected([half]))
        expected = np.zeros((2, 2), int)
        for (_, step), wh in found.items():
            if ("A", step + 1) in found and twice[step] == twice[step + 1] == 1:
                expected[int(wh >= 300), int(found["A", step + 1] >= 300)] += 1
        (store.folder / "roster.csv").write_text("household_id,from,to\nA,2000-01-01,\n")
        roster = read_roster(store.folder / "roster.csv")
        period = Period(store, delivery, roster.rows, day - timedelta(days=1), day + timedelta(days=1))
        counts = estimate(period, np.array([[300.0]]), n_states=2, engine=Engine("synchronous", 1)).counts
        assert counts.tolist() == [expected.tolist()]
        slots = {"spring": store.layout.absent_slots(day), "autumn": store.layout.repeated_slots(day)}[change]
        assert expected.sum() == 3 * 48 - 1 - (len(slots) + 1 if slots else 0)
