"""Sums of half-hours are what plain dictionaries add up to, and one household moves them by at most the sensitivity."""

from __future__ import annotations

import csv
import random
from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import date, datetime, timedelta
from pathlib import Path

import pytest

from agedp.compute.engine_settings import Engine
from agedp.stages.ingest import ingest
from agedp.store.half_hour_sums import sum_half_hours
from agedp.store.store import Store
from agedp_data.datasets.synthetic import write_ausgrid, write_london
from agedp_data.datasets.validation import NamedColumns, ReadingRules
from agedp_data.roster import read_roster
from agedp_data.series.profile import Profile
from tests.exact_sums import by_group, profile_of

FIRST = date(2012, 12, 28)
SPRING = date(2012, 10, 7)
"""Sydney's clock goes forward at 2:00: slots 4 and 5 do not exist."""
INLINE = Engine("synchronous", 1)
HALF_HOUR = timedelta(minutes=30)

Use = Mapping[tuple[str, date], Mapping[int, int]]
"""Watt-hours by slot of each household-day."""


def london_use(files: Iterable[Path]) -> Use:
    """Return the use in files, read line by line: a timestamp is the end; two energies of one half-hour: neither."""
    energies: dict[tuple[str, datetime], set[int]] = defaultdict(set)
    for path in files:
        for line in path.read_text().splitlines()[1:]:
            household, *_, end, kwh = line.split(",")
            if kwh != "Null":
                energies[household, datetime.fromisoformat(end[:19])].add(round(float(kwh) * 1000))
    use: dict[tuple[str, date], dict[int, int]] = defaultdict(dict)
    for (household, end), values in energies.items():
        start = end - HALF_HOUR
        if len(values) == 1 and start.minute % 30 == start.second == 0:
            use[household, start.date()][start.hour * 2 + start.minute // 30] = min(values)
    return use


def ausgrid_use(files: Iterable[Path]) -> Use:
    """Return the use in files: general consumption and, if any, controlled load; none in the hour that is skipped."""
    by_category: dict[tuple[str, date], dict[str, list[int]]] = defaultdict(dict)
    for path in files:
        with path.open(newline="") as stream:
            rows = list(csv.reader(stream))
        columns = next(row for row in rows if row[0] == "Customer")
        first = columns.index("0:30")
        for row in rows[rows.index(columns) + 1 :]:
            day = datetime.strptime(row[4], "%d/%m/%Y").date()
            by_category[row[0], day][row[3]] = [round(float(cell) * 1000) for cell in row[first : first + 48]]
    return {
        (household, day): {
            slot: sum(values)
            for slot, values in enumerate(zip(rows["GC"], rows.get("CL", [0] * 48), strict=True))
            if day != SPRING or slot not in (4, 5)
        }
        for (household, day), rows in by_category.items()
        if "GC" in rows
    }


def counted_by_hand(use: Use, household: str, day: date, rule: Profile) -> tuple[list[int], bool, bool]:
    """Return what a household adds to the cells of a day, whether the day is usable, and whether it is clamped."""
    slots = [slot for slot in range(48) if day != SPRING or slot not in (4, 5)]
    present = use.get((household, day), {})
    if not present or len(slots) - len(present) > rule.max_missing:
        number, rest = divmod(rule.missing_wh, len(slots))
        assert rest == 0  # the tests choose defaults that are divisible
        return [number] * len(slots), False, False
    clipped = [min(present.get(slot, 0), rule.half_hour_clamp_wh) for slot in slots]
    if sum(clipped) > rule.clamp_wh:
        return [wh * rule.clamp_wh // sum(clipped) for wh in clipped], True, True
    return clipped, True, sum(clipped) < sum(present.values())


def roster_of(folder: Path, lines: Iterable[str]):
    (folder / "roster.csv").write_text("\n".join(["household_id,from,to,area", *lines]) + "\n")
    return read_roster(folder / "roster.csv")


def stored(folder: Path, files: Iterable[Path], *, dataset: str = "london", chunk_bytes: int = 2**24, rules=None):
    store = Store(folder / "store", dataset, rules or ReadingRules())
    return store, ingest(store, list(map(str, files)), engine=Engine("synchronous", 1, chunk_bytes=chunk_bytes))


def as_lists(sums):
    """Return sums as values that compare with ==."""
    return {
        key: (
            one.slots,
            {group: [*wh] for group, wh in by_group(one).items()},
            *(by_group(one, count) for count in ("households", "usable", "clamped")),
        )
        for key, one in sums.items()
    }


RULES = {
    "wide": (10**5, 10**6, 0, 2),
    "narrow": (400, 7_000, 48 * 46, 0),
    "lenient": (900, 9_000, 0, 45),
}
PROFILES = {f"{name} {by}": profile_of(*rule, by=by) for name, rule in RULES.items() for by in (None, "area")}


def sums_by_hand(use: Use, spans: Iterable[tuple[str, date, date, str]], days: Iterable[date]):
    sums = {}
    for day in days:
        members = [(household, area) for household, first, last, area in spans if first <= day <= last]
        for name, profile in PROFILES.items():
            by_group: dict[str, list[tuple[list[int], bool, bool]]] = {} if profile.by else {"all": []}
            for household, area in sorted(members, key=lambda member: member[1]):
                counted = counted_by_hand(use, household, day, profile)
                by_group.setdefault(area if profile.by else "all", []).append(counted)
            sums[day, name] = (
                {
                    group: [sum(cell) for cell in zip(*(wh for wh, _, _ in of), strict=True)]
                    for group, of in by_group.items()
                },
                {group: len(of) for group, of in by_group.items()},
                {group: sum(usable for _, usable, _ in of) for group, of in by_group.items()},
                {group: sum(clamped for _, _, clamped in of) for group, of in by_group.items()},
            )
    return sums


@pytest.mark.parametrize("dataset", ["london", "ausgrid"])
def test_sums_are_those_of_plain_dictionaries(tmp_path, dataset):
    first, write = (FIRST, write_london) if dataset == "london" else (date(2012, 9, 29), write_ausgrid)
    account = write(tmp_path / "in", households=12, first_day=first, days=11, seed=4)
    use = (london_use if dataset == "london" else ausgrid_use)(account.files)
    days, chance = account.days(), random.Random(4)  # noqa: S311 - made-up rows
    spans = [("NOBODY", days[0], days[-1], "a")]  # and two households with readings are on no roster
    for household in account.household_ids[:-2]:
        begin, end = sorted(chance.choices(days, k=2))
        spans.append((household, begin, end, chance.choice("abc")))
        if chance.random() < 0.5:  # moves to another area
            spans.append((household, end + timedelta(days=1), days[-1] + timedelta(days=1), "d"))
    roster = roster_of(tmp_path, [f"{household},{begin},{end},{area}" for household, begin, end, area in spans])
    store, delivery = stored(tmp_path, account.files, dataset=dataset)
    sums = sum_half_hours(store, delivery, roster, days=days, series=PROFILES, engine=INLINE)
    expected = sums_by_hand(use, spans, days)
    assert {key: counts for key, (_, *counts) in as_lists(sums).items()} == {k: list(v) for k, v in expected.items()}
    assert sum(sum(by_group(one, "clamped").values()) for one in sums.values()) > 100
    assert {len(one.slots) for (day, _), one in sums.items() if day == SPRING} <= {46}
    assert {len(one.slots) for (day, _), one in sums.items() if day != SPRING} == {48}


COLUMNS = NamedColumns("home", "at", "iso", "start", "Europe/London", "Europe/London", "wh", "Wh", ("",))


@pytest.mark.parametrize(
    ("minutes", "sums"),
    [
        (15, [(0, 200), (1, 200), (4, 200), (5, 200)]),
        (30, [(0, 100), (1, 100), (4, 100), (5, 100)]),
        (60, [(0, 100), (4, 100)]),
    ],
)
def test_hours_have_every_second_slot_and_twice_the_clamp(tmp_path, minutes, sums):
    """The clock goes forward at 1:00 on 31 March 2013: slots 2 and 3, one hour, do not exist."""
    day = date(2013, 3, 31)
    starts = [datetime(2013, 3, 31) + timedelta(minutes=minutes * step) for step in range(24 * 60 // minutes)]
    rows = [f"A,{at},{100 + 900 * (at.hour == 20)}" for at in starts if at.hour != 1]
    path = tmp_path / "a.csv"
    path.write_text("\n".join(["home,at,wh", *rows]) + "\n")
    rules = ReadingRules(columns=COLUMNS, interval_minutes=minutes)
    store, delivery = stored(tmp_path, [path], dataset="long", rules=rules)
    profiles = {"p": profile_of(300, 10**5, 0, 0)}
    result = sum_half_hours(
        store, delivery, roster_of(tmp_path, [f"A,{day},,x"]), days=[day], series=profiles, engine=INLINE
    )[day, "p"]
    by_slot = dict(zip(result.slots, result.exact[0].tolist(), strict=True))
    assert list(by_slot.items())[: len(sums)] == sums
    assert (len(by_slot), by_slot[40]) == ((46, 300) if minutes < 60 else (23, 600))
    assert result.counts.tolist() == [[1, 1, 1, 0, 0]]
