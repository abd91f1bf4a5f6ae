"""Ranges and digests of households in the register equal a plain computation by household, and bucket by bucket."""

from __future__ import annotations

import hashlib
import hmac
import json
from collections import Counter
from random import Random

import numpy as np
import pytest
from sqlalchemy import create_engine

from agedp.internal_records import register_members
from agedp.internal_records.register_members import HouseholdKey, RosterRanges, merge_ranges, record_roster
from agedp_data.ledger import household_register
from agedp_data.ledger.household_register import RegisterRows
from agedp_data.roster import Roster

KEY = HouseholdKey(bytes(range(32)))
FIRST, NEWEST = 10, 30
Rows = list[tuple[str, int, int]]


def some_rows(seed: int) -> Rows:
    draw = Random(seed)  # noqa: S311
    rows: Rows = []
    for i in range(50):
        day = draw.randrange(0, 25)
        for _ in range(draw.randrange(1, 4)):
            end = day + draw.randrange(8)
            rows.append((f'h"é{i}', day, end))
            day = end + draw.choice([1, 1, 2, 5])
    return sorted(rows)


def roster_of(rows: Rows, file_digest: str = "") -> Roster:
    ids = tuple(sorted({row[0] for row in rows}))
    code = {household: i for i, household in enumerate(ids)}
    columns = (np.array([code[row[0]] for row in rows]), *(np.array([row[i] for row in rows]) for i in (1, 2)))
    roster = Roster(ids, *columns, {})
    roster.file_digest = file_digest
    return roster


def expected_ranges(rows: Rows) -> dict[str, tuple[tuple[int, int], ...]]:
    ranges: dict[str, list[tuple[int, int]]] = {}
    for household, first, last in rows:
        if first <= NEWEST and last >= FIRST:
            ranges.setdefault(household, []).append((max(first, FIRST), min(last, NEWEST)))
    return {household: merge_ranges(spans) for household, spans in ranges.items()}


@pytest.mark.parametrize("seed", range(5))
def test_ranges_are_those_of_each_household(seed: int) -> None:
    rows = some_rows(seed)
    found = RosterRanges.of(roster_of(rows), FIRST, NEWEST).by_household()
    by_household = {name: found.ranges[i] for name, i in zip(found.ids, found.number.tolist(), strict=True)}
    assert by_household == expected_ranges(rows)
    assert len(set(found.ranges)) == len(found.ranges)


def test_nobody_in_the_range_of_days_has_no_ranges() -> None:
    found = RosterRanges.of(roster_of([("A", 1, 5)]), FIRST, NEWEST).by_household()
    assert (list(found.ids), found.number.tolist()) == ([], [])


def test_the_digest_keeps_the_form_of_stored_registers() -> None:
    rows = [row for row in some_rows(1) if row[1] <= NEWEST and row[2] >= FIRST]
    begin = [max(row[1], FIRST) for row in rows]
    end = [-1 if row[2] >= NEWEST else row[2] for row in rows]
    text = json.dumps([row[0] for row in rows]).encode() + np.array([begin, end], "<i8").tobytes()
    expected = hmac.new(KEY.secret, b"roster:" + text, hashlib.sha256).hexdigest()
    assert RosterRanges.of(roster_of(some_rows(1)), FIRST, NEWEST).digest(KEY) == expected


def test_many_digests_are_those_of_each_household() -> None:
    names = ["", "A", "é" * 100]
    expected = [hmac.new(KEY.secret, b"household:" + name.encode(), hashlib.sha256).digest() for name in names]
    assert KEY.households(names) == [KEY.household(name) for name in names] == expected


def test_the_digest_of_an_unchanged_file_reads_no_row(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(register_members, "LEAST_ROWS", 0)
    roster = roster_of(some_rows(2), "digest of the file")
    expected = RosterRanges.of(roster, FIRST, NEWEST, cache=tmp_path / "roster").digest(KEY)
    assert expected == RosterRanges.of(roster, FIRST, NEWEST).digest(KEY)
    lazy = Roster.of_counts(roster.counts, lambda: roster.rows, file_digest=roster.file_digest)
    assert RosterRanges.of(lazy, FIRST, NEWEST, cache=tmp_path / "roster").digest(KEY) == expected
    assert not lazy.has_rows
    for first, newest, key in ((FIRST, NEWEST + 1, KEY), (FIRST - 1, NEWEST, KEY), (FIRST, NEWEST, HouseholdKey(b"k"))):
        known = RosterRanges.of(lazy, first, newest, cache=tmp_path / "roster").digest(key)
        assert known == RosterRanges.of(roster, first, newest).digest(key) != expected
    (tmp_path / "roster" / "ranges.json").write_bytes(b"{")
    assert RosterRanges.of(lazy, FIRST, NEWEST, cache=tmp_path / "roster").digest(KEY) == expected


def test_buckets_of_households_fill_the_same_register(monkeypatch) -> None:
    registers = []
    for households in (10_000, 7):
        monkeypatch.setattr(register_members, "_BUCKET_HOUSEHOLDS", households)
        with create_engine("sqlite://").begin() as connection:
            household_register.METADATA.create_all(connection)
            rows = RegisterRows(connection)
            source = rows.source("ledger", "homes", "release")
            for seed, newest in ((3, 20), (3, 25), (4, 26)):  # the same roster later, then one of others
                roster = roster_of([row for row in some_rows(seed) if row[0][-1] != str(newest % 10)])
                source = record_roster(rows, KEY, source, RosterRanges.of(roster, FIRST, newest))
            memberships = rows.memberships()
            stored = {digest: memberships[number].ranges for digest, number in rows.households().items()}
            assert Counter(stored.values()) == {entry.ranges: entry.households for entry in memberships.values()}
            registers.append(stored)
    assert registers[0] == registers[1]
    assert len(registers[0]) > 20
