"""The committed samples in data/: counted by hand in data/README.md, read by the layouts."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from agedp_data.datasets.csv_parsing import parse_lines
from agedp_data.datasets.deduplication import StoredRows, deduplicate_rows
from agedp_data.datasets.registry import LAYOUTS
from agedp_data.datasets.validation import ReadingRules, RejectionReason

DATA = Path(__file__).resolve().parents[3] / "data"
COUNTS = {
    "london_publisher.csv": ("publisher", 33, {RejectionReason.MISSING: 3, RejectionReason.DUPLICATE: 1}),
    "london_older.csv": ("older", 33, {RejectionReason.MISSING: 3, RejectionReason.DUPLICATE: 1}),
    "london_sample.csv": ("older", 33, {RejectionReason.MISSING: 3, RejectionReason.DUPLICATE: 1}),
    "london_kaggle.csv": ("kaggle", 33, {RejectionReason.MISSING: 3}),
    "ausgrid_2010_2011.csv": ("without Row Quality", 13, {RejectionReason.CATEGORY: 10}),
    "ausgrid_2012_2013.csv": ("with Row Quality", 13, {RejectionReason.CATEGORY: 10}),
}


def read(name):
    layout, data = LAYOUTS[name.split("_")[0]], (DATA / name).read_bytes()
    header = layout.recognise(data.decode().splitlines()[:20])
    return (
        layout,
        header,
        parse_lines(data.split(b"\n", header.lines)[-1], layout=layout, header=header, rules=ReadingRules()),
    )


def settled(layout, parsed):
    kept = parsed.records.reason == RejectionReason.KEPT
    records = parsed.records
    time = records.day[kept] * 48 + records.slot[kept]
    rows = StoredRows(
        records.ids, records.household[kept], records.channel[kept], time,
        records.household[kept] * 0, parsed.row[kept], records.energy_wh[kept],
    )  # fmt: skip
    return deduplicate_rows(rows, complete_channels=layout.complete_channels(ReadingRules()))


@pytest.mark.parametrize("name", COUNTS)
def test_a_sample_holds_the_rows_that_the_dictionary_says(name):
    variant, kept, aside = COUNTS[name]
    layout, header, parsed = read(name)
    readings = settled(layout, parsed)
    found = Counter(parsed.records.reason.tolist()) + Counter(readings.rejected_reason.tolist())
    doubled = len(readings.rejected_row)
    assert header.variant == variant
    assert found.pop(int(RejectionReason.KEPT)) - doubled == kept
    assert found == {int(reason): number for reason, number in aside.items()}
    row = next(line for line in (DATA / "README.md").read_text().splitlines() if line.startswith(f"| `{name}`"))
    assert [cell.strip() for cell in row.split("|")][3:5] == [str(parsed.rows_read), str(kept)]


def test_line_ends_are_those_of_the_publishers():
    for name in COUNTS:
        data = (DATA / name).read_bytes()
        assert data.count(b"\r\n") == (0 if name == "london_kaggle.csv" else data.count(b"\n"))


def test_the_spring_day_of_the_ausgrid_samples_has_46_readings_and_the_day_without_gc_none():
    layout, _, parsed = read("ausgrid_2012_2013.csv")
    readings = settled(layout, parsed)
    per_day = Counter(
        (readings.ids[code], time // 48) for code, time in zip(readings.household, readings.time, strict=True)
    )
    assert sorted(per_day.values()) == [46, 46] + [48] * 7
    assert Counter(household for household, _ in per_day) == {"1": 4, "2": 5}
