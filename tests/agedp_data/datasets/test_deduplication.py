"""What a month says, against a dictionary filled row by row."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from agedp_data.datasets.deduplication import Readings, StoredRows, deduplicate_rows
from agedp_data.datasets.layout import SINGLE_CHANNEL
from agedp_data.datasets.validation import RejectionReason

Row = tuple[int, int, int, tuple[int, ...]]  # household, channel, time, energies


def rows_of(found: list[Row], files: list[int], order: list[int], width: int) -> StoredRows:
    """Return the rows in this order; a row's number within its file is its place in `found`."""
    household, channel, time = (np.array([found[i][part] for i in order], np.int64) for part in range(3))
    energy = np.array([found[i][3] for i in order], np.int64).reshape(len(order), width)
    file = np.array([files[i] for i in order], np.int64)
    return StoredRows(("a", "b", "c"), household, channel, time, file, np.array(order, np.int64), energy)


def by_hand(found: list[Row], files: list[int], complete, width: int, *, later_wins: bool) -> tuple[dict, dict]:
    """Return {(household, time): Wh} and {(file, row): reason}, by the rules that docs/your-files.md words."""
    groups: dict[tuple[int, int, int], list[int]] = defaultdict(list)
    for i, (household, channel, time, _) in enumerate(found):
        groups[household, channel, time].append(i)
    rejected: dict[tuple[int, int], RejectionReason] = {}
    kept: dict[tuple[int, int, int], tuple[int, ...]] = {}
    for key, group in groups.items():
        members = sorted(group, key=lambda i: (files[i], i))
        if later_wins and len({found[i][3] for i in members}) > 1:
            earlier = [i for i in members if files[i] < files[members[-1]]]
            rejected |= {(files[i], i): RejectionReason.SUPERSEDED for i in earlier}
            members = members[len(earlier) :]
        if len({found[i][3] for i in members}) > 1:
            rejected |= {(files[i], i): RejectionReason.CONFLICT for i in members}
        else:
            rejected |= {(files[i], i): RejectionReason.DUPLICATE for i in members[1:]}
            kept[key] = found[members[0]][3]
    readings: dict[tuple[int, int], int] = {}
    for household, time in {(household, time) for household, _, time in kept}:
        lines = {channel: kept[household, channel, time] for channel in (0, 1) if (household, channel, time) in kept}
        for slot in range(width if set(lines) in complete else 0):
            if all(line[slot] >= 0 for line in lines.values()):
                readings[household, time + slot] = sum(line[slot] for line in lines.values())
    return readings, rejected


def as_dictionaries(found: Readings) -> tuple[dict, dict]:
    keys = list(zip(found.household.tolist(), found.time.tolist(), strict=True))
    assert keys == sorted(set(keys))
    rows = zip(found.rejected_file.tolist(), found.rejected_row.tolist(), strict=True)
    reasons = map(RejectionReason, found.rejected_reason.tolist())
    return dict(zip(keys, found.energy_wh.tolist(), strict=True)), dict(zip(rows, reasons, strict=True))


WIDE = st.tuples(*([st.sampled_from([-1, 0, 700])] * 2)).map(lambda pair: pair * 24)
LAYOUTS = {  # width: channels, times and energies of a row, and which channels are complete
    1: (st.integers(0, 1), st.integers(-3, 3), st.tuples(st.integers(0, 2)),
        [SINGLE_CHANNEL, (frozenset({0, 1}),), (frozenset({0, 1}), *SINGLE_CHANNEL)]),
    48: (st.integers(0, 1), st.sampled_from([-48, 0, 240]), WIDE,
         [(frozenset({0, 1}),), (frozenset({0, 1}), *SINGLE_CHANNEL)]),
}  # fmt: skip


@given(st.data(), st.sampled_from([1, 48]), st.booleans())
@settings(max_examples=200)
def test_readings_equal_the_dictionary_in_any_order(data, width, later_wins):
    channel, time, energy, sets = LAYOUTS[width]
    found = data.draw(st.lists(st.tuples(st.integers(0, 2), channel, time, energy), max_size=12))
    files = data.draw(st.lists(st.integers(0, 2), min_size=len(found), max_size=len(found)))
    order = data.draw(st.permutations(range(len(found))))
    complete = data.draw(st.sampled_from(sets))
    rows = rows_of(found, files, order, width)
    if data.draw(st.booleans()):  # as narrow as those of a frame
        kinds = {"household": np.int32, "channel": np.uint8, "time": np.int32, "file": np.uint8, "energy_wh": np.int32}
        rows = replace(rows, **{name: getattr(rows, name).astype(kind) for name, kind in kinds.items()})
    settled = deduplicate_rows(rows, complete_channels=complete, later_wins=later_wins)
    assert as_dictionaries(settled) == by_hand(found, files, complete, width, later_wins=later_wins)
