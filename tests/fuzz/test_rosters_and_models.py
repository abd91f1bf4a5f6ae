"""Rosters, curves and kernels that went wrong: read as they say, or refused with one line."""

# ruff: noqa: PT017, S311, PLR0911

from __future__ import annotations

import csv
import io
import os
import random
import warnings
from collections import Counter
from datetime import date
from decimal import Decimal
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from agedp_data.config import parse
from agedp_data.errors import AgedpError, InputError
from agedp_data.leakage.bound_table import LeakageBound
from agedp_data.model import read_model
from agedp_data.roster import READ_OFF_MARK, read_roster
from tests.fuzz.mutations import IDS, MUTATIONS, NUMBERS, STAMPS, mutated, on_cell
from tests.fuzz.run_files import sound, toml
from tests.fuzz.test_input_files import in_time

TRIALS = pytest.mark.parametrize("trials", [60, pytest.param(5000, marks=pytest.mark.long)])
ROSTER = (
    "household_id,from,to,tariff,area\n"
    + "".join(
        f"MAC{i:06},20{i % 20:02}-02-28,{'' if i % 3 else f'20{i % 20 + 3:02}-02-28'},Std,a{i % 4}\n" for i in range(30)
    )
    + '"MAC,1",2012-01-01,2012-12-31,ToU,"a ""b"""\nMAC000001,2010-01-01,,ToU,a1\n'
).replace("MAC000001,2001-02-28,,", "MAC000001,2001-02-28,2009-12-31,")
DATES = [
    *STAMPS, "2013-1-1", "20130101", "2013-W01-1", "2013-001", "\u0662013-01-01", "9999-12-31", "0001-01-01",
    "0000-01-01",
]  # fmt: skip


def spoilt(data: bytes, choice: random.Random, cells: list[str]) -> bytes:
    """Return a file after one to four mutations, or with one odd cell."""
    if choice.random() < 0.3:
        return on_cell(cells)(data, choice)
    names = choice.choices(sorted(MUTATIONS), k=choice.randint(1, 4))
    return mutated(data, [(name, choice.randrange(2**32)) for name in names])


def check_line(error: AgedpError) -> None:
    for line in (str(error), error.private):
        assert line.isprintable(), repr(line)
        assert len(line) < 500
    assert "MAC0" not in str(error)


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


@TRIALS
def test_a_spoilt_roster_counts_whom_it_says_or_is_refused(tmp_path, trials):
    choice, met, path = random.Random(trials), Counter(), tmp_path / "roster.csv"
    for _ in range(trials):
        path.write_bytes(data := spoilt(ROSTER.encode(), choice, DATES))
        try:
            expected = counted(data.decode())
        except UnicodeDecodeError:
            expected = None
        try:
            with in_time():
                found = read_roster(path)
        except InputError as error:
            assert expected is None, error.private
            check_line(error)
            met["refused"] += 1
            continue
        met["read"] += 1
        assert expected is not None
        for day in (date(2000, 2, 28), date(2009, 12, 31), date(2012, 6, 1), date(1, 1, 1), date.max):
            there = {home: span[2] for home, spans in expected.items() for span in spans if span[0] <= day <= span[1]}
            of, rows = found.rows, np.flatnonzero(found.rows.on(day))
            groups = [tuple(column[row] for column in of.groups.values()) for row in rows]
            assert {of.ids[of.household[row]]: group for row, group in zip(rows, groups, strict=True)} == there
            assert found.counts.households(day) == len(rows) == len(there)
    assert min(met["read"], met["refused"]) > trials / 10, met


def test_a_roster_that_is_no_file_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe.csv")
    for path in (tmp_path / "pipe.csv", Path("/dev/zero"), tmp_path, tmp_path / "none.csv"):
        with in_time(5), pytest.raises(InputError, match=r"^\[population\] roster: (is not a file|cannot be read)"):
            read_roster(path)


GIVEN = {
    "curve": b"age_days,total_variation\n1,0.9\n2,0.5\n7,0.25\n30,0\n",
    "kernel": b"0.5,0.3,0.2\n0.1,0.8,0.1\n0.25,0.25,0.5\n",
}
ODD = [*NUMBERS, *IDS, "1e999999999", "1e-999999999", "9" * 5000, "0.9999999999", "1.0000000001", "1e-400", "-0"]


def never_below(bound: LeakageBound, text: str) -> None:
    """What is promised at each age of a curve is not below what the curve says."""
    rows = [row for row in csv.reader(text.splitlines()) if row]
    titled = any(cell.strip()[:1] not in set("0123456789.+-") for cell in rows[0])
    for age, value in rows[1:] if titled else rows:
        at = int(np.searchsorted(bound.ages, float(age) * 48 - 1e-9))
        assert Decimal(float(bound.bounds["total_variation"][at])) >= Decimal(value) - Decimal("1e-15")
        assert (Decimal(value) > 0) <= (bound.bounds["total_variation"][at] > 0)


@TRIALS
@pytest.mark.parametrize("kind", GIVEN)
def test_a_spoilt_curve_or_kernel_is_a_bound_or_is_refused(tmp_path, kind, trials):
    choice, met = random.Random(trials), Counter()
    document = sound("model", "declared")
    for key in ("kernel", "step"):
        del document["model"][key]
    document["model"][kind] = "given.csv"
    run = parse(toml(document), base=tmp_path, name="r.toml")
    for _ in range(trials):
        (tmp_path / "given.csv").write_bytes(data := spoilt(GIVEN[kind], choice, ODD))
        try:
            with in_time(), warnings.catch_warnings():
                warnings.simplefilter("error")
                found = read_model(run)
        except AgedpError as error:
            met["refused"] += 1
            check_line(error)
            continue
        met["read"] += 1
        if kind == "curve":
            never_below(found.leakage_bound, data.decode("utf-8-sig"))
    assert min(met["read"], met["refused"]) > trials / 20, met
