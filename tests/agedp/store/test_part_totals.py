"""The daily totals of one part equal those of a count by hand, whatever the order and repetition of its rows."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from agedp.store.part_writer import ParsedRows, part_daily_totals
from agedp.store.store import Store
from agedp_data.datasets.validation import SLOTS, ReadingRules, RejectionReason

FIRST = 15_706 * SLOTS
NAMES = ["A", "B", "C"]


def by_hand(rows: list[tuple[int, int, int]]) -> dict[tuple[str, int], tuple[int, int, list[tuple[int, int]]]]:
    """Return energy, readings and rejected rows (with reasons) by household and day of (household, time, Wh)."""
    of_reading: dict[tuple[int, int], list[int]] = defaultdict(list)
    for number, (household, time, _) in enumerate(rows):
        of_reading[household, time].append(number)
    totals: dict[tuple[str, int], tuple[int, int, list[tuple[int, int]]]] = {}
    for (household, time), numbers in sorted(of_reading.items()):
        energy, readings, rejected = totals.get((NAMES[household], time // SLOTS), (0, 0, []))
        values = {rows[number][2] for number in numbers}
        if len(values) == 1:
            energy, readings = energy + values.pop(), readings + 1
            rejected = rejected + [(number, int(RejectionReason.DUPLICATE)) for number in numbers[1:]]
        else:
            rejected = rejected + [(number, int(RejectionReason.CONFLICT)) for number in numbers]
        totals[NAMES[household], time // SLOTS] = energy, readings, rejected
    return totals


@pytest.mark.parametrize("is_sorted", [True, False])
@pytest.mark.parametrize("repeated", [0.0, 0.2])
def test_totals_of_a_part_equal_a_count_by_hand(tmp_path: Path, is_sorted: bool, repeated: float) -> None:
    rng = np.random.default_rng(28)
    readings = [(household, FIRST + time) for household in range(3) for time in range(200) if rng.random() < 0.9]
    rows = [(*reading, int(rng.integers(1000))) for reading in readings]
    rows += [(*row[:2], row[2] + int(rng.random() < 0.5)) for row in rows if rng.random() < repeated]
    rows = sorted(rows, key=lambda row: row[:2]) if is_sorted else [rows[i] for i in rng.permutation(len(rows))]
    household, time, energy = (np.array(column, np.int32) for column in zip(*rows, strict=True))
    count = len(rows)
    parsed = ParsedRows(
        household, time, np.zeros(count, np.uint8), energy.reshape(-1, 1), np.arange(count, dtype=np.int32)
    )
    table = part_daily_totals(Store(tmp_path, "london", ReadingRules()), parsed, pa.array(NAMES))
    found = {
        (line["household_id"], (line["day"].toordinal() - 719_163)): (
            line["energy_wh"],
            line["readings"],
            list(zip(line["aside_row"], line["aside_reason"], strict=True)),
        )
        for line in table.to_pylist()
    }
    assert found == by_hand(rows)
    assert (repeated > 0) == any(rejected for *_, rejected in found.values())
