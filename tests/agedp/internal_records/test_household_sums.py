"""The sums of the household register equal a count of every household and day, night by night, in plain Python."""

from __future__ import annotations

from itertools import count
from random import Random

import numpy as np
import pytest
from sqlalchemy import create_engine

from agedp.internal_records.household_accounts import LargestSums, largest_sums, shared_households
from agedp.internal_records.register_members import HouseholdKey, RosterRanges, merge_ranges, record_roster
from agedp_data.ledger import household_register
from agedp_data.ledger.household_register import CountedDraw, RegisterRows
from agedp_data.roster import Roster

KEY = HouseholdKey(bytes(range(32)))
PAIRS, DAYS, START = 200, 16, 15706
Members = dict[str, set[int]]
"""Days of membership by household."""
Losses = dict[tuple[int, str], int]
"""Loss by day and series."""


def roster_of(members: Members, through: int, chance: Random) -> Roster:
    """Return the roster as the operator knows it: true through a day, and whatever comes to mind for later ones."""
    rows: list[tuple[str, int, int]] = []
    for household, days in members.items():
        known = [day for day in days if day <= through]
        spans = list(merge_ranges((day, day) for day in known))
        if spans and spans[-1][1] == through:  # still a member: with an end to come, or none
            spans[-1] = spans[-1][0], through + chance.choice([0, 1, 5, 10**6])
        elif not spans or chance.random() < 0.3:
            spans.append((through + 2, 10**7))
        rows += [(household, *span) for span in spans]
    rows.sort()
    ids = tuple(sorted({row[0] for row in rows}))
    code = {household: i for i, household in enumerate(ids)}
    columns = [np.array([row[i] for row in rows], np.int64) for i in (1, 2)]
    return Roster(ids, np.array([code[row[0]] for row in rows], np.int64), *columns, {})


def random_members(chance: Random, households: list[str]) -> Members:
    """Let households join, leave and come back."""
    members: Members = {}
    for household in households:
        is_member, days = chance.random() < 0.6, set()
        for day in range(START, START + DAYS):
            is_member ^= chance.random() < 0.08
            days |= {day} if is_member else set()
        members[household] = days
    return members


class Population:
    """A population whose days are released in some nights, in order or not, some never."""

    def __init__(self, rows: RegisterRows, name: str, members: Members, chance: Random) -> None:
        self.rows, self.members, self.chance = rows, members, chance
        self.source = rows.source(f"ledger of {name}", name, "release")
        days = [day for day in range(START, START + DAYS) if chance.random() < 0.85]
        if chance.random() < 0.25:  # days that waited for their delivery
            chance.shuffle(days)
        self.series = ["a", "b"] if chance.random() < 0.5 else ["a"]
        self.nights = [days[i : i + 5] for i in range(0, len(days), 5)]
        self.losses: Losses = {}

    def release(self, night: list[int], number: count[int]) -> None:
        """Record the roster of a night, which is true through the newest day so far, and its draws."""
        through = max([*night, *(day for day, _ in self.losses)])
        first = min([*night, *(day for day, _ in self.losses)])
        ranges = RosterRanges.of(roster_of(self.members, through, self.chance), first, through)
        self.source = record_roster(self.rows, KEY, self.source, ranges)
        new = {(day, series): self.chance.randrange(1, 10**9) for day in night for series in self.series}
        draws = [
            CountedDraw(self.source.id, day, day, series, f"hash {next(number)}", loss)
            for (day, series), loss in new.items()
        ]
        self.rows.replace_draws(without=(), new=draws)
        self.losses |= new


def brute_force(populations: list[Population], of: Population) -> LargestSums:
    """Count every household of a population and every day."""
    largest_day = largest_total = 0
    released = {day for day, _ in of.losses}
    for household, days in of.members.items():
        if not days & set(range(min(released), max(released) + 1)):
            continue
        total = 0
        for day in range(START, START + DAYS):
            about_day = 0
            for population in populations:
                if day in population.members.get(household, ()):
                    about_day += sum(population.losses.get((day, series), 0) for series in ("a", "b"))
            largest_day, total = max(largest_day, about_day), total + about_day
        largest_total = max(largest_total, total)
    return LargestSums(largest_day, largest_total)


@pytest.mark.parametrize("seed", range(4))
def test_sums_equal_a_count_of_every_household_and_day(seed: int) -> None:
    chance = Random(f"register {seed}")  # noqa: S311
    for pair in range(PAIRS // 4):
        engine, number = create_engine("sqlite://"), count()
        with engine.begin() as connection:
            household_register.METADATA.create_all(connection)
            rows = RegisterRows(connection)
            names = [f"h{i}" for i in range(16)]
            first = Population(rows, "one", random_members(chance, names[: chance.randrange(2, 12)]), chance)
            members = first.members if pair % 10 == 0 else random_members(chance, names[chance.randrange(12) :])
            second = Population(rows, "another", members, chance)
            nights = [(first, night) for night in first.nights] + [(second, night) for night in second.nights]
            chance.shuffle(nights)
            for population, night in nights:
                population.release(night, number)
            check(rows, [first, second])
        engine.dispose()


def check(rows: RegisterRows, populations: list[Population]) -> None:
    memberships, draws = rows.memberships().values(), rows.draws()
    sources = {source.id: source for source in rows.sources()}
    for population in populations:
        found = largest_sums(memberships, draws, sources, of={population.source.id})
        assert found == brute_force(populations, population)
    first, second = populations
    shared = shared_households(memberships, sources, of=first.source.id, elsewhere={second.source.id})
    assert shared.households == len(known(first) & known(second))
    for day in range(START, START + DAYS, 7):
        if min(first.losses)[0] <= day <= max(first.losses)[0]:
            on_day = {household for household in known(first) if day in first.members[household]}
            found_on_day = shared_households(
                memberships, sources, of=first.source.id, elsewhere={second.source.id}, day=day
            )
            assert found_on_day.households == len(on_day & known(second))


def known(population: Population) -> set[str]:
    """Return the households that were on the roster from the first released day to the newest one."""
    span = set(range(min(population.losses)[0], max(population.losses)[0] + 1))
    return {household for household, days in population.members.items() if days & span}


def test_a_calibration_counts_once_and_on_every_day_of_its_period() -> None:
    sources = {1: household_register.RegisterSource(1, "l", "p", "release", newest=9)}
    sources[2] = household_register.RegisterSource(2, "l", "p", "calibration", newest=8)
    draws = [CountedDraw(1, day, day, "a", f"{day}", loss) for day, loss in ((5, 10), (7, 30), (9, 20))]
    draws.append(CountedDraw(2, 6, 8, "q", "v", 100))
    both = household_register.Membership(1, ((1, 5, None), (2, 6, None)), 1)
    late = household_register.Membership(2, ((1, 8, None),), 1)
    assert largest_sums([both], draws, sources, of={1}) == LargestSums(130, 160)
    assert largest_sums([late], draws, sources, of={1}) == LargestSums(20, 20)
    assert largest_sums([both], draws, sources, of={3}) == LargestSums()
