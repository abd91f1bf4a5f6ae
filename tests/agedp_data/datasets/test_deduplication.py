"""What a month says, against a dictionary filled row by row."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from agedp_data.datasets.deduplication import Readings, StoredRows, deduplicate_rows
from agedp_data.datasets.layout import SINGLE_CHANNEL
from agedp_data.datasets.validation import RejectionReason

IDS = ("a", "b", "c")
Row = tuple[int, int, int, tuple[int, ...]]  # household, channel, time, energies


def rows_of(found: list[Row], files: list[int], order: list[int], width: int) -> StoredRows:
    """Return the rows in this order; a row's number within its file is its place in `found`."""
    chosen = [(found[i], files[i], i) for i in order]
    numbers = [np.array([row[part] for row, _, _ in chosen], np.int64) for part in range(3)]
    energy = np.array([row[3] for row, _, _ in chosen], np.int64).reshape(len(chosen), width)
    file = np.array([f for _, f, _ in chosen], np.int64)
    row = np.array([i for _, _, i in chosen], np.int64)
    return StoredRows(IDS, *numbers, file, row, energy)


def brute(found: list[Row], files: list[int], absent_is_zero: bool, channels: int, width: int) -> tuple[dict, dict]:
    """Return {(household, time): Wh} and {(file, row): reason}, by the rules as DATASETS.md words them."""
    groups: dict[tuple[int, int, int], list[int]] = defaultdict(list)
    for i, (household, channel, time, _) in enumerate(found):
        groups[household, channel, time].append(i)
    aside: dict[tuple[int, int], RejectionReason] = {}
    good: dict[tuple[int, int, int], tuple[int, ...]] = {}
    for key, members in groups.items():
        members.sort(key=lambda i: (files[i], i))
        if len({found[i][3] for i in members}) > 1:
            aside |= {(files[i], i): RejectionReason.CONFLICT for i in members}
        else:
            aside |= {(files[i], i): RejectionReason.DUPLICATE for i in members[1:]}
            good[key] = found[members[0]][3]
    readings: dict[tuple[int, int], int] = {}
    for household, channel, time in good:
        if channel:
            continue
        lines = [good[household, c, time] for c in range(channels) if (household, c, time) in good]
        if len(lines) < channels and not absent_is_zero:
            continue
        for slot in range(width):
            if all(line[slot] >= 0 for line in lines):
                readings[household, time + slot] = sum(line[slot] for line in lines)
    return readings, aside


def as_dictionaries(found: Readings) -> tuple[dict, dict]:
    keys = list(zip(found.household.tolist(), found.time.tolist(), strict=True))
    assert keys == sorted(set(keys))
    lost = zip(found.rejected_file.tolist(), found.rejected_row.tolist(), strict=True)
    return (
        dict(zip(keys, found.energy_wh.tolist(), strict=True)),
        dict(zip(lost, map(RejectionReason, found.rejected_reason.tolist()), strict=True)),
    )


@given(st.data())
@settings(max_examples=100, deadline=None)
def test_readings_of_one_value_a_row_equal_the_dictionary_in_any_order(data: st.DataObject) -> None:
    energy = st.tuples(st.integers(0, 2))
    found = data.draw(st.lists(st.tuples(st.integers(0, 2), st.just(0), st.integers(-3, 3), energy), max_size=12))
    files = data.draw(st.lists(st.integers(0, 2), min_size=len(found), max_size=len(found)))
    order = data.draw(st.permutations(range(len(found))))
    settled = deduplicate_rows(rows_of(found, files, order, 1), complete_channels=SINGLE_CHANNEL)
    assert as_dictionaries(settled) == brute(found, files, True, 1, 1)


@given(st.data(), st.booleans())
@settings(max_examples=80, deadline=None)
def test_readings_of_two_channels_and_48_values_equal_the_dictionary_in_any_order(
    data: st.DataObject, absent_is_zero: bool
) -> None:
    energy = st.tuples(*([st.sampled_from([-1, 0, 700])] * 2)).map(lambda pair: pair * 24)
    time = st.sampled_from([48 * day for day in (-1, 0, 5)])
    found = data.draw(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 1), time, energy), max_size=10))
    files = data.draw(st.lists(st.integers(0, 1), min_size=len(found), max_size=len(found)))
    order = data.draw(st.permutations(range(len(found))))
    complete = (frozenset({0, 1}),) + SINGLE_CHANNEL * absent_is_zero
    settled = deduplicate_rows(rows_of(found, files, order, 48), complete_channels=complete)
    assert as_dictionaries(settled) == brute(found, files, absent_is_zero, 2, 48)


def test_a_disagreement_sets_both_aside_and_its_copies_too() -> None:
    found: list[Row] = [(0, 0, 7, (5,)), (0, 0, 7, (5,)), (0, 0, 7, (6,)), (0, 0, 8, (9,))]
    settled = deduplicate_rows(rows_of(found, [0, 0, 1, 1], [0, 1, 2, 3], 1), complete_channels=SINGLE_CHANNEL)
    assert as_dictionaries(settled) == (
        {(0, 8): 9},
        {(0, 0): RejectionReason.CONFLICT, (0, 1): RejectionReason.CONFLICT, (1, 2): RejectionReason.CONFLICT},
    )


def test_no_rows_are_no_readings() -> None:
    for width, complete in ((1, SINGLE_CHANNEL), (48, (frozenset({0, 1}),))):
        settled = deduplicate_rows(rows_of([], [], [], width), complete_channels=complete)
        assert as_dictionaries(settled) == ({}, {})
