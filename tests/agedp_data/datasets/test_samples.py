"""The committed samples in data/: counted by hand in data/README.md, read by the layouts."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from agedp_data.datasets.csv_parsing import parse_lines
from agedp_data.datasets.registry import LAYOUTS
from tests.agedp_data.datasets.parsing import RULES, settle

DATA = Path(__file__).resolve().parents[3] / "data"
VARIANTS = {  # and the rows kept and rejected, counted by hand
    "london_publisher.csv": ("publisher", 33, 4),
    "london_older.csv": ("older", 33, 4),
    "london_sample.csv": ("older", 33, 4),
    "london_kaggle.csv": ("kaggle", 33, 3),
    "ausgrid_2010_2011.csv": ("without Row Quality", 13, 10),
    "ausgrid_2012_2013.csv": ("with Row Quality", 13, 10),
}


@pytest.mark.parametrize("name", VARIANTS)
def test_a_sample_has_the_rows_that_its_readme_counts(name):
    layout, data = LAYOUTS[name.split("_")[0]], (DATA / name).read_bytes()
    header = layout.recognise(data.decode().splitlines()[:20])
    chunk = parse_lines(data.split(b"\n", header.lines)[-1], layout=layout, header=header, rules=RULES)
    found = settle(layout, RULES, [chunk])
    assert (header.variant, found.rows_kept, found.rows_rejected) == VARIANTS[name]
    row = next(line for line in (DATA / "README.md").read_text().splitlines() if line.startswith(f"| `{name}`"))
    assert [cell.strip() for cell in row.split("|")][3:5] == [str(found.rows), str(found.rows_kept)]
    assert data.count(b"\r\n") == (0 if name == "london_kaggle.csv" else data.count(b"\n"))
    if name == "ausgrid_2012_2013.csv":  # the spring day has 46 readings, the day without GC none
        per_day = Counter((household, time // 48) for household, time in found.readings)
        assert sorted(per_day.values()) == [46, 46] + [48] * 7
        assert Counter(household for household, _ in per_day) == {"1": 4, "2": 5}
