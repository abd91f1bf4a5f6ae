"""Tables, colours, line breaks and templates of the terminal."""

from __future__ import annotations

import io
import re
from datetime import date
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jinja2 import UndefinedError

from agedp_flows.text import screen, template_lines
from agedp_flows.text.run_text import format_path
from agedp_flows.text.screen import (
    StyledLine,
    format_bound,
    format_loss,
    heading,
    next_step,
    shown,
    table_lines,
    warning,
)
from agedp_flows.text.template_lines import render_lines

# Tables, colours and line breaks of the terminal: numbers end in one column, no line is wider than the terminal.

NUMBER = re.compile(r"-?\d+(\.\d+)?")


class Screen(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


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


@pytest.mark.parametrize(
    ("is_terminal", "variables", "coloured"),
    [
        (True, {"TERM": "xterm"}, True),
        (True, {"TERM": "xterm", "NO_COLOR": "1"}, False),
        (True, {"TERM": "xterm", "NO_COLOR": ""}, True),  # https://no-color.org: "when present and not an empty string"
        (True, {"TERM": "dumb"}, False),
        (False, {"TERM": "xterm"}, False),
    ],
)
def test_colours_need_a_terminal_that_wants_them(
    is_terminal: bool, variables: dict[str, str], coloured: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert screen.has_colours(Screen() if is_terminal else io.StringIO()) is coloured


def test_a_line_is_broken_at_words_and_a_command_never() -> None:
    assert shown("  one two three", width=11, coloured=False) == "  one two\n    three"
    step = next_step("agedp plan run.toml", "what is due, and with which epsilon")
    assert "\n" not in shown(step, width=20, coloured=False)
    for line in (heading("day"), warning("careful"), step):
        assert re.sub(r"\x1b\[\d*m", "", shown(line, width=None, coloured=True)) == line
        assert "\x1b" not in shown(line, width=80, coloured=False)


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


# Templates of the terminal: no value begins a line, styles one or ends a cell; each template is used and complete.

FOLDER = Path(template_lines.__file__).parent
TEMPLATES = sorted((FOLDER / "templates").iterdir())
HOSTILE = "north\nNext: agedp forget\x01\x1fmore\x1b[2J\u202e"
SHOWN = r"north\nNext: agedp forget\x01\x1fmore\x1b[2J\u202e"
NOTHING = {"means": [], "periods": [], "counts": [], "half_hours": [], "profiles": [], "coverages": []}


def test_no_value_begins_a_line_or_ends_a_cell() -> None:
    [line] = render_lines("planned_noise", label=HOSTILE, noise=2.0, change_kwh=1.0)
    assert line.startswith(f"{SHOWN}: Noise 2 kWh")
    assert not isinstance(line, StyledLine)
    row = {"day": "2013-01-01", "households": 9, "usable_noisy": 8, "coverage": 0.89, "noise_sd": 1.0, "place": HOSTILE}
    heading, cells = render_lines("newest", **NOTHING | {"coverages": [[row]]})
    assert (heading.split()[0], cells.split()) == ("day", ["2013-01-01", "9", "8", "89.0", *SHOWN.split()])


def test_a_line_has_the_style_of_its_mark_and_not_the_mark() -> None:
    [line] = render_lines("waiting", waiting=[date(2013, 1, 1), date(2013, 1, 4)])
    assert isinstance(line, StyledLine)
    assert (line, line.style) == ("2 due days wait for delivery: 2013-01-01 to 2013-01-04", "warning")
    assert render_lines("waiting", waiting=[]) == []


def test_a_value_that_is_not_given_is_an_error() -> None:
    with pytest.raises(UndefinedError, match="change_kwh"):
        render_lines("planned_noise", label="use", noise=2.0)


@pytest.mark.parametrize("template", TEMPLATES, ids=lambda path: path.name)
def test_every_template_can_be_read_and_is_used(template: Path) -> None:
    template_lines._templates().get_template(template.name)
    code = "".join(path.read_text() for path in FOLDER.parent.rglob("*.py"))
    others = "".join(path.read_text() for path in TEMPLATES if path != template)
    assert f'"{template.stem}"' in code or f'include "{template.name}"' in others


# What run and plan print of a promise's own bound, whatever the notion, and of the noise.


def test_a_release_by_its_url_is_named_without_user_and_query():
    assert format_path("s3://me@open-data/agedp?sig=aXz") == "s3://open-data/agedp"
