"""Rosters that went wrong: they count whom they say, or are refused with one line."""

# ruff: noqa: PT017, S311, PLR0911

from __future__ import annotations

import csv
import io
import random
from datetime import date, timedelta
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agedp_data.errors import AgedpError, InputError
from agedp_data.roster import READ_OFF_MARK, read_roster
from tests.fuzz.mutations import PLANS, STAMPS, mutated, on_cell
from tests.fuzz.test_input_files import in_time

ROSTER = (
    "household_id,from,to,tariff,area\n"
    + "".join(
        f"MAC{i:06},20{i % 20:02}-02-28,{'' if i % 3 else f'20{i % 20 + 3:02}-02-28'},Std,a{i % 4}\n" for i in range(30)
    )
    + '"MAC,1",2012-01-01,2012-12-31,ToU,"a ""b"""\nMAC000001,2010-01-01,,ToU,a1\n'
).replace("MAC000001,2001-02-28,,", "MAC000001,2001-02-28,2009-12-31,")
FUZZ = settings(deadline=None, database=None, suppress_health_check=list(HealthCheck))
DATES = [
    *STAMPS, "2013-1-1", "20130101", "2013-W01-1", "2013-001", "\u0662013-01-01", "9999-12-31", "0001-01-01",
    "0000-01-01",
]  # fmt: skip


def counted(text: str) -> dict[str, list[tuple[date, date, tuple[str, ...]]]] | None:
    """The spans of a roster as a second reader understands them; None if it does not."""
    text = text.removeprefix("\ufeff")
    text = text.partition("\n")[2] if text.startswith(READ_OFF_MARK) else text
    try:
        rows = list(csv.reader(io.StringIO(text, newline=""), strict=True))
    except csv.Error:
        return None
    header = [name.strip() for name in rows[0]] if rows else []
    if header[:3] != ["household_id", "from", "to"] or "" in header or len(set(header)) < len(header):
        return None
    spans: dict[str, list[tuple[date, date, tuple[str, ...]]]] = {}
    for row in rows[1:]:
        if not any(row):
            continue
        if len(row) != len(header):
            return None
        home, first, last, *groups = (cell.strip(" \t") for cell in row)
        try:
            span = (date.fromisoformat(first), date.fromisoformat(last) if last else date.max, tuple(groups))
        except ValueError:
            return None
        if (
            not home
            or span[1] < span[0]
            or any(len(day) != 10 or day[4] != "-" or "W" in day for day in (first, last or "2013-01-01"))
        ):
            return None
        spans.setdefault(home, []).append(span)
    for each in spans.values():
        each.sort()
        if any(later[0] <= earlier[1] for earlier, later in pairwise(each)):
            return None
    return spans or None


def _one_line(error: AgedpError) -> None:
    for line in (str(error), error.private):
        assert line.isprintable(), repr(line)
        assert len(line) < 500
    assert "MAC0" not in str(error)


def _roster_fuzz(folder: Path, examples: int) -> None:
    met = {"read": 0, "refused": 0}
    odd_dates = on_cell(DATES)

    @settings(FUZZ, max_examples=examples, derandomize=examples < 1000)
    @given(plan=PLANS, dates=st.integers(0, 2**32))
    def example(plan: list[tuple[str, int]], dates: int) -> None:
        data = mutated(ROSTER.encode(), plan)
        if dates % 3 == 0 and data:
            data = odd_dates(data, random.Random(dates))
        path = folder / "roster.csv"
        path.write_bytes(data)
        try:
            expected = counted(data.decode())
        except UnicodeDecodeError:
            expected = None
        try:
            with in_time():
                found = read_roster(path)
        except InputError as error:
            assert expected is None, error.private
            _one_line(error)
            met["refused"] += 1
            return
        met["read"] += 1
        assert expected is not None
        for day in (date(2000, 2, 28), date(2009, 12, 31), date(2012, 6, 1), date(1, 1, 1), date.max):
            there = {home: span[2] for home, spans in expected.items() for span in spans if span[0] <= day <= span[1]}
            rows = np.flatnonzero(found.on(day))
            groups = [tuple(column[row] for column in found.groups.values()) for row in rows]
            assert {found.ids[found.household[row]]: group for row, group in zip(rows, groups, strict=True)} == there
            assert found.households(day) == len(rows) == len(there)

    example()
    assert min(met.values()) > examples / 10, met


@pytest.mark.parametrize("examples", [200, pytest.param(5000, marks=pytest.mark.long)])
def test_a_spoilt_roster_counts_whom_it_says_or_is_refused(tmp_path, examples):
    _roster_fuzz(tmp_path, examples)


def test_a_roster_that_is_no_file_is_not_waited_for(tmp_path):
    import os

    os.mkfifo(tmp_path / "pipe.csv")
    for path in (tmp_path / "pipe.csv", Path("/dev/zero"), tmp_path, tmp_path / "none.csv"):
        with in_time(5), pytest.raises(InputError, match=r"^\[population\] roster: (is not a file|cannot be read)"):
            read_roster(path)


@pytest.mark.long
def test_a_roster_of_a_million_rows_is_read_in_seconds(tmp_path):
    first = date(2010, 1, 1)
    lines = [
        f"H{i // 2:07},{first + timedelta(i % 2 * 400)},{first + timedelta(i % 2 * 400 + 399)}" for i in range(10**6)
    ]
    (tmp_path / "r.csv").write_text("household_id,from,to\n" + "\n".join(lines))
    with in_time(60):
        found = read_roster(tmp_path / "r.csv")
    assert found.households(date(2010, 6, 1)) == found.households(date(2011, 6, 1)) == 500_000
