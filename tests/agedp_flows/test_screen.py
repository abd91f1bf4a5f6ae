"""Tables, colours and line breaks of the terminal: numbers end in one column, no line is wider than the terminal."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from agedp_flows.text import screen
from agedp_flows.text.screen import (
    format_bound,
    format_loss,
    table_lines,
)

NUMBER = re.compile(r"-?\d+(\.\d+)?")


@st.composite
def tables(draw: st.DrawFn) -> tuple[list[str], list[list[str]]]:
    """Draw a table with a label first, as all of ours have, then texts and numbers (their headings begin with ">")."""
    kinds = [True, *draw(st.lists(st.booleans(), min_size=1, max_size=8))]
    titles = st.sampled_from(["day", "households", "noise sd, kWh per household", "epsilon", "publish on"])
    headings = [draw(titles) if kind else f">{draw(titles)}" for kind in kinds]
    texts = st.lists(st.sampled_from(["all", "homes", "daily_mean", "tariff"]), min_size=1, max_size=9).map(" ".join)
    numbers = st.decimals(-99999, 99999, places=3).map(str)
    rows = draw(st.lists(st.tuples(*(texts if kind else numbers for kind in kinds)).map(list), min_size=1, max_size=6))
    return headings, rows


@given(tables(), st.integers(40, 130))
def test_a_table_fits_the_terminal_and_loses_no_number(table: tuple[list[str], list[list[str]]], width: int) -> None:
    headings, rows = table
    lines = table_lines(headings, rows, width=width)
    assert max(map(len, lines)) <= width
    body = [line for line in lines if not isinstance(line, screen.StyledLine)]
    found = sorted(word for line in body for word in line.split() if NUMBER.fullmatch(word))
    assert found == sorted(row[i] for row in rows for i in range(len(headings)) if headings[i][0] == ">")


@given(st.integers(0, 10**13))
def test_a_loss_is_never_shown_below_itself(nano_epsilon: int) -> None:
    text = format_loss(nano_epsilon)
    digits = text.replace(".", "").lstrip("0")
    assert float(text) * 1e9 >= nano_epsilon * (1 - 1e-12)
    assert float(text) * 1e9 <= nano_epsilon * 1.01
    assert len(digits.rstrip("0")) <= 4
    assert "e" not in text.lower()


def test_a_bound_within_its_limit_is_not_shown_above_it() -> None:
    assert format_bound("1.00391", limit="1.004") == "1.00391"  # 1.01 would exceed 1.004
    assert format_bound("1.00391", limit="2") == "1.01"
    assert format_bound("unlimited") == "unlimited"
