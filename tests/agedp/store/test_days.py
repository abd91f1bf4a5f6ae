"""READINGS -> DAYS: exact sums and counts, once per month and set of files."""

from __future__ import annotations

from pathlib import Path

from agedp.store.daily_totals import daily_totals_path
from agedp.store.month_reader import (
    group_parts,
)
from agedp.store.store import PartMonth, Store
from agedp_data.datasets.validation import ReadingRules


def test_days_belong_to_the_parts_from_which_they_were_made(tmp_path):
    store = Store(tmp_path, "london", ReadingRules())

    def path(contents: list[str]) -> Path:
        parts = [PartMonth(i, content, 0, "month=2013-01", None) for i, content in enumerate(contents)]
        (group,) = group_parts(store, "2013-01", parts, dict.fromkeys(contents, ()))
        return daily_totals_path(store, "2013-01", group)

    paths = {path(contents) for contents in (["a"], ["b"], ["a", "b"], ["b", "a"])}
    assert len(paths) == 4
