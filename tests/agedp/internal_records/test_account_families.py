"""Stated losses of random families of populations are never below a count of every household, day and draw."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date, timedelta
from itertools import count
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from agedp.internal_records.population_accounts import AccountsPlace, PopulationAccounts
from agedp_data.ledger.account_database import AccountedPopulation, Charges
from agedp_data.ledger.lifecycle import CalibrationDraw, PopulationAccount
from agedp_data.roster import NO_LAST_DAY, Roster, RosterRows

DAYS, START = 24, 15706
BLOCK = 8
"""Days of a "month", which one row covers."""
HOUSEHOLDS = [f"h{i}" for i in range(14)]
Members = dict[str, set[int]]
"""Days of membership by household."""


def iso(day: int) -> str:
    return str(date(1970, 1, 1) + timedelta(days=day))


def block_of(day: date) -> tuple[date, date]:
    first = (day - date(1970, 1, 1)).days // BLOCK * BLOCK
    return date(1970, 1, 1) + timedelta(days=first), date(1970, 1, 1) + timedelta(days=first + BLOCK - 1)


DAILY = SimpleNamespace(covers_periods=False)
MONTHLY = SimpleNamespace(covers_periods=True, covered_days=block_of)
SERIES = {"a": DAILY, "b": DAILY, "m": MONTHLY}


@dataclass
class Book:
    """What the accounts ask of a ledger, as plain lists."""

    name: str
    contract: SimpleNamespace
    rows: list[SimpleNamespace] = field(default_factory=list)
    draws: list[CalibrationDraw] = field(default_factory=list)
    newest: PopulationAccount | None = None

    @property
    def id(self) -> str:
        return self.contract.hash

    def contracts(self, _: str = "") -> list[SimpleNamespace]:
        return [self.contract]

    def history(self, _: str = "") -> list[SimpleNamespace]:
        return self.rows

    def calibration_draws(self, _: str = "") -> list[CalibrationDraw]:
        return self.draws

    def household_account(self, _: str) -> PopulationAccount | None:
        return self.newest

    def row_number(self, head: str) -> int | None:
        return {row.hash: row.seq for row in (self.contract, *self.rows)}.get(head)

    def statements(self, _: str) -> tuple[()]:
        return ()

    def recovery(self) -> None:
        return None

    def first_statement(self, _: str) -> None:
        return None


class Population:
    """A population of a family: its members by day, its ledger, and the draws that count in truth."""

    def __init__(self, name: str, members: Members, chance: Random, place: AccountsPlace, number: count[int]) -> None:
        self.name, self.members, self.chance, self.place, self.number = name, members, chance, place, number
        self.book = Book(name, SimpleNamespace(hash=f"contract {name}", seq=1, terms=SimpleNamespace(series=SERIES)))
        self.drawn: set[tuple[str, str]] = set()
        self.truth: list[tuple[set[str], int, int, int]] = []
        """Counted households, first and last day, and loss of each draw."""
        days = [day for day in range(START, START + DAYS) if chance.random() < 0.8]
        days = days[chance.randrange(len(days) // 2) :][: chance.randrange(4, DAYS)]
        if chance.random() < 0.25:  # days that waited for their delivery
            chance.shuffle(days)
        size = chance.randrange(2, 7)
        self.nights = [days[i : i + size] for i in range(0, len(days), size)]
        self.series = ["a", "b"][: chance.randrange(1, 3)] + (["m"] if chance.random() < 0.3 else [])

    def accounts(self, through: int) -> PopulationAccounts:
        roster = roster_of(self.members, through, self.chance)
        return PopulationAccounts(
            self.place, self.name, "release", roster, refuses_shared=False, today=iso(through),
            files=lambda: ["one file"], id_rule="one rule",
        )  # fmt: skip

    def households(self) -> set[str]:
        return {name for name, days in self.members.items() if days}

    def counted(self, first: int, last: int) -> set[str]:
        return {name for name, days in self.members.items() if days & set(range(first, last + 1))}

    def calibrate(self) -> None:
        first = self.chance.randrange(START - 5, START + DAYS - 6)
        draw = CalibrationDraw(self.name, iso(first), iso(first + 5), "{}", (1,), self.chance.randrange(1, 10**9))
        self.accounts(START + DAYS).charge([draw], self.book)  # type: ignore[arg-type]
        self.book.draws.append(draw)
        self.truth.append((self.counted(first, first + 5), first, first + 5, draw.loss))

    def release(self, night: list[int]) -> None:
        """Charge a night, draw it unless the run is killed before, and record the account unless it is killed after."""
        through = max(BLOCK + max([*night, START]), max((last for _, _, last, _ in self.truth), default=0))
        accounts, planned = self.accounts(through), []
        drawn = self.drawn
        for day in night:
            for series in self.series:
                key = series, (iso(day // BLOCK) if series == "m" else iso(day))
                if key in drawn:
                    continue
                drawn.add(key)
                planned.append(
                    SimpleNamespace(
                        series=series,
                        day=iso(day),
                        loss=self.chance.randrange(1, 10**9),
                        state="released",
                        contract=self.book.contract.hash,
                        population=self.name,
                    )
                )
        accounts.charge(planned, self.book)  # type: ignore[arg-type]
        if self.chance.random() < 0.15:  # killed: the charge stays
            accounts.charge(planned, self.book)  # type: ignore[arg-type]
        for row in planned:
            row.seq, row.hash = len(self.book.rows) + 2, f"row {next(self.number)}"
            self.book.rows.append(row)
            day = date.fromisoformat(row.day)
            ends = block_of(day) if row.series == "m" else (day, day)
            first, last = ((end - date(1970, 1, 1)).days for end in ends)
            self.truth.append((self.counted(first, last), first, last, row.loss))
        if self.chance.random() < 0.9:
            self.record(accounts)

    def record(self, accounts: PopulationAccounts) -> None:
        self.book.newest = accounts.account(self.book)  # type: ignore[arg-type]


def roster_of(members: Members, through: int, chance: Random) -> Roster:
    """Return the roster as the operator knows it: true through a day, and whatever comes to mind for later ones."""
    rows: list[tuple[str, int, int]] = []
    for household, days in members.items():
        spans: list[tuple[int, int]] = []
        for day in sorted(day for day in days if day <= through):
            if spans and spans[-1][1] == day - 1:
                spans[-1] = spans[-1][0], day
            else:
                spans.append((day, day))
        if spans and spans[-1][1] == through:  # still a member: with an end to come, or none
            spans[-1] = spans[-1][0], chance.choice([through, through + 5, NO_LAST_DAY])
        rows += [(household, *span) for span in spans]
    rows.sort()
    ids = tuple(sorted({row[0] for row in rows}))
    code = {household: i for i, household in enumerate(ids)}
    columns = [np.array([row[i] for row in rows], np.int64) for i in (1, 2)]
    return Roster(RosterRows(ids, np.array([code[row[0]] for row in rows], np.int64), *columns, {}))


def random_members(chance: Random, households: list[str]) -> Members:
    """Let households join, leave and come back."""
    members: Members = {}
    for household in households:
        is_member, days = chance.random() < 0.7, set()
        for day in range(START - 5, START + DAYS + BLOCK):
            is_member ^= chance.random() < 0.06
            days |= {day} if is_member else set()
        members[household] = days
    return members


def family_of(seed: int) -> tuple[Random, list[list[str]]]:
    """Return who may be in each of two to six populations: a triple, a chain, a star, parts of a whole, or anybody."""
    chance = Random(f"family {seed}")  # noqa: S311
    size, kind = chance.randrange(2, 7), ("same", "chain", "star", "split", "any")[seed % 5]
    parts = [chance.sample(HOUSEHOLDS, chance.randrange(1, 8)) for _ in range(size)]
    if kind == "same":
        parts = [parts[0]] * size
    if kind == "chain":
        parts = [HOUSEHOLDS[2 * i : 2 * i + 3] for i in range(size)]
    if kind == "star":
        parts = [HOUSEHOLDS[:size], *(HOUSEHOLDS[i : i + 1] for i in range(size - 1))]
    if kind == "split":
        parts = [HOUSEHOLDS, *(HOUSEHOLDS[i :: size - 1] for i in range(size - 1))]
    return chance, parts


def exact(populations: list[Population], of: Population) -> tuple[int, int]:
    """Count the largest loss about a day, and in all, of a household that `of` has counted, by household and day."""
    largest_day = largest_total = 0
    for household in set().union(*(counted for counted, *_ in of.truth)):
        draws = [
            (first, last, loss)
            for population in populations
            for counted, first, last, loss in population.truth
            if household in counted
        ]
        largest_total = max(largest_total, sum(loss for _, _, loss in draws))
        for day in range(START - 5, START + DAYS + BLOCK):
            largest_day = max(largest_day, sum(loss for first, last, loss in draws if first <= day <= last))
    return largest_day, largest_total


FAST = 5


@pytest.mark.parametrize("seed", [pytest.param(i, marks=pytest.mark.long if i >= FAST else ()) for i in range(300)])
def test_the_stated_loss_is_never_below_the_exact_count(seed: int, tmp_path: Path) -> None:
    chance, parts = family_of(seed)
    place, number = AccountsPlace.of(tmp_path, f"sqlite:///{tmp_path / 'accounts.sqlite'}"), count()
    populations = [
        Population(f"p{i}", random_members(chance, part), chance, place, number) for i, part in enumerate(parts)
    ]
    steps: list[Any] = [(population, night) for population in populations for night in population.nights]
    steps += [(population, None) for population in populations if chance.random() < 0.3]
    chance.shuffle(steps)
    stated: dict[str, tuple[int, int]] = {}
    for population, night in steps:
        population.calibrate() if night is None else population.release(night)
        for of in populations:
            account, before = of.book.newest, stated.get(of.name, (0, 0))
            if account is not None:
                assert account.day >= before[0], "an account was lowered"
                assert account.total >= before[1], "an account was lowered"
                stated[of.name] = account.day, account.total
    for population in populations:
        population.record(population.accounts(START + DAYS + BLOCK))
    for population in populations:
        account = population.book.newest
        if account is not None:
            day, total = exact(populations, population)
            assert account.day >= day
            assert account.total >= total
            own_day, own_total = exact([population], population)
            assert account.own_day >= own_day
            assert account.own_total >= own_total
            others = [of for of in populations if of is not population]
            if not any(population.households() & of.households() for of in others):
                assert (account.day, account.total) == (account.own_day, account.own_total)


def test_other_populations_with_a_day_in_common_count_though_this_one_has_none_of_their_days() -> None:
    """A household of this one, days 1 and 2, may be in two others: both are about day 11, and come to 9 there."""

    def of(first: int, last: int, day: int, total: int) -> AccountedPopulation:
        return AccountedPopulation.charged(Charges(first, last, day, total), "release", "")

    own, others = of(1, 2, 3, 6), [of(10, 11, 5, 8), of(11, 13, 4, 7)]
    assert own.with_others(others) == (9, 21)
    assert own.with_others(others[:1]) == (5, 14)
    assert own.with_others([*others, of(2, 3, 7, 7)]) == (10, 28)  # with a third one about day 2
    assert own.with_others([]) == (3, 6)
