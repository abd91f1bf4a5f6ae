"""Lines for a terminal, their styles, tables and numbers: the one place that aligns columns and adds colours.

A text function returns plain lines; a heading, warning or next step is a `StyledLine`, which is a text as well. Styles
and line breaks are added when a line is printed, and on a terminal only. Light to import, for recipients.

Decisions:

* Numbers have three significant digits. `--json`, ledger, statement and tables have all digits.
* Colours need a terminal that understands them: no pipe, no `TERM=dumb`, and NO_COLOR unset (https://no-color.org).
* A label of a file cannot move the cursor or turn the writing: control and direction characters are escaped in every
  cell and line.
* Tables fit the width of a terminal: headings break first, then the widest text column; what is wider still becomes
  several tables, each with the first columns. On a pipe a row is one line, however long.
* What to do next is a command to copy; each parses as it is printed (`tests/agedp_flows/test_command.py`).
* The data holder's ledger keeps the checksum of every file that was published, so a folder that equals it is as it was
  published. Without a ledger a folder is compared with its own ledger rows, and nothing more is said of it.
"""

from __future__ import annotations

import math
import os
import re
import shlex
import shutil
import sys
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import ROUND_FLOOR, Context, Decimal
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, TextIO

from agedp_data.epsilon import NANO, exact_text, rounded_up
from agedp_data.messages import escape_controls, escape_text
from agedp_data.versions import version

if TYPE_CHECKING:
    from agedp.release_verification import Verification


_GAP: Final = "  "
_LEAST_TEXT: Final = 16
"""Characters that a text column keeps before a table is divided."""
_LEAST_WIDTH: Final = 40
_NARROW: Final = 80
_RESET: Final = "\x1b[0m"
Style = Literal["heading", "warning", "error", "step"]
_CODES: Final = {"heading": "\x1b[1m", "warning": "\x1b[33m", "error": "\x1b[31m", "step": "\x1b[36m"}


class StyledLine(str):
    """A line with a style, which only a terminal shows.

    >>> StyledLine("day", "heading") == "day"
    True
    """

    __slots__ = ("style",)
    style: Style

    def __new__(cls, text: str, style: Style) -> StyledLine:
        """Return the text with a style."""
        line = super().__new__(cls, text)
        line.style = style
        return line


def heading(text: str) -> StyledLine:
    """Return a line that begins a part of the output."""
    return StyledLine(text, "heading")


def warning(text: str) -> StyledLine:
    """Return a line that tells of a danger."""
    return StyledLine(text, "warning")


def next_step(command: str, purpose: str) -> StyledLine:
    """Return a line with a command to copy, and what it is for.

    >>> next_step("agedp plan run.toml", "what is due")
    'Next: agedp plan run.toml  # what is due'
    """
    return StyledLine(f"Next: {command}  # {purpose}", "step")


def screen_width(stream: TextIO | None = None) -> int | None:
    """Return the width of the terminal on a stream, else on standard output; None if it is no terminal."""
    if not is_terminal(stream or sys.stdout):
        return None
    return max(shutil.get_terminal_size((_NARROW, 24)).columns, _LEAST_WIDTH)


def has_controls(stream: TextIO) -> bool:
    """Return whether a stream is a terminal that understands control codes, as progress bars need."""
    return is_terminal(stream) and os.environ.get("TERM") != "dumb"


def has_colours(stream: TextIO) -> bool:
    """Return whether lines on a stream are coloured."""
    return has_controls(stream) and not os.environ.get("NO_COLOR")


def is_terminal(stream: TextIO | None) -> bool:
    """Return whether a stream is an open terminal."""
    try:
        return stream is not None and stream.isatty()
    except ValueError:  # closed
        return False


def shown(line: str, *, width: int | None, coloured: bool) -> str:
    r"""Return a line as a stream gets it: broken at words and coloured on a terminal, else unchanged.

    A next step is never broken, so that its command can be copied.

    >>> shown("two words", width=6, coloured=False)
    'two\n  words'
    """
    style, plain = line.style if isinstance(line, StyledLine) else None, escape_controls(line)
    text = plain if width is None or style == "step" else _broken(plain, width)
    return f"{_CODES[style]}{text}{_RESET}" if coloured and style is not None and text else str(text)


def _broken(line: str, width: int) -> str:
    if len(line) <= width:
        return line
    start = line[: len(line) - len(line.lstrip())]
    return "\n".join(
        textwrap.wrap(
            line.strip(), width, initial_indent=start, subsequent_indent=start + "  ", break_long_words=False,
            break_on_hyphens=False,
        )
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Column:
    """A column of a table: its heading, whether it has text, which is aligned to the left, and its widest cell."""

    title: str
    is_text: bool
    cell: int

    @property
    def least(self) -> int:
        """How narrow it can be: numbers are never broken, headings and texts are."""
        cell = min(self.cell, _LEAST_TEXT) if self.is_text else self.cell
        return max(cell, min(_longest_word(self.title), _LEAST_TEXT))


def table_lines(
    headings: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    indent: str = "",
    width: int | None = None,
    labels: int = 1,
) -> list[str]:
    """Return a table as lines: numbers aligned to the right, texts to the left.

    Args:
        headings: a heading for each column, with the unit; that of a column of numbers begins with ">". Without any
            heading the table has no line of them.
        rows: a cell for each column; a row of one text is printed as it is, such as "...".
        indent: blanks before each line.
        width: most characters of a line; the width of the terminal if not given.
        labels: number of first columns that each part of a divided table repeats.

    >>> print("|".join(table_lines(["day", ">kWh"], [("Monday", "9.5"), ("Tuesday", "12.4")])))
    day       kWh|Monday    9.5|Tuesday  12.4
    """
    stored = [[escape_controls(cell) for cell in row] for row in rows]
    complete = [row for row in stored if len(row) == len(headings)]
    columns = [
        _Column(title.removeprefix(">"), not title.startswith(">"), max((len(row[i]) for row in complete), default=0))
        for i, title in enumerate(map(escape_controls, headings))
    ]
    limit = screen_width() if width is None else width
    room = None if limit is None else max(limit - len(indent), 1)
    lines: list[str] = []
    for number, places in enumerate(_parts(columns, room, labels)):
        part = [columns[i] for i in places]
        widths = _widths(part, room)
        if any(column.title for column in part):
            titles = [_wrap(column.title, width) for column, width in zip(part, widths, strict=True)]
            height = max(map(len, titles))
            padded = [[""] * (height - len(title)) + title for title in titles]
            lines += [heading(indent + _joined(part, cells, widths)) for cells in zip(*padded, strict=True)]
        for row in complete if number else stored:
            if len(row) != len(columns):
                lines.append(indent + row[0])
                continue
            broken = [_wrap(row[i], width, indent="  ") for i, width in zip(places, widths, strict=True)]
            lines += [indent + _joined(part, cells, widths) for cells in zip_longest(*broken, fillvalue="")]
    return lines


def _parts(columns: Sequence[_Column], room: int | None, labels: int) -> list[list[int]]:
    """Return the columns of each part of a table that is too wide: the labels, and those that fit beside them."""
    everything, least = list(range(len(columns))), [column.least for column in columns]
    if room is None or _total(least) <= room:
        return [everything]
    parts, part = [], everything[:labels]
    for i in everything[labels:]:
        if len(part) > labels and _total([least[j] for j in [*part, i]]) > room:
            parts.append(part)
            part = everything[:labels]
        part = [*part, i]
    return [*parts, part]


def _joined(columns: Sequence[_Column], cells: Sequence[str], widths: Sequence[int]) -> str:
    texts = (
        f"{cell:{width}}" if column.is_text else f"{cell:>{width}}"
        for column, cell, width in zip(columns, cells, widths, strict=True)
    )
    return _GAP.join(texts).rstrip()


def _wrap(cell: str, width: int, indent: str = "") -> list[str]:
    return [cell] if len(cell) <= width else textwrap.wrap(cell, width, subsequent_indent=indent) or [""]


def _total(widths: Sequence[int]) -> int:
    return sum(widths) + len(_GAP) * (len(widths) - 1)


def _widths(columns: Sequence[_Column], room: int | None) -> list[int]:
    """Return the widths of columns: as wide as needed, else with broken headings, else with broken texts."""
    natural = [max(column.cell, len(column.title)) for column in columns]
    if room is None or _total(natural) <= room:
        return natural
    broken = [max(column.cell, _width_of_two_lines(column.title)) for column in columns]
    while _total(broken) > room:
        spare = [i for i, column in enumerate(columns) if broken[i] > column.least]
        if not spare:
            break
        broken[max(spare, key=broken.__getitem__)] -= 1
    return broken


def _longest_word(title: str) -> int:
    return max(map(len, title.split()), default=0)


def _width_of_two_lines(title: str) -> int:
    """Return how narrow a heading is on two lines.

    >>> _width_of_two_lines("noise sd, kWh per household")
    13
    """
    width = _longest_word(title)
    while len(textwrap.wrap(title, max(width, 1))) > 2:
        width += 1
    return width


WILL_BE_REFUSED: Final = "Will be refused: "


def refusal_line(reason: str) -> StyledLine:
    """Return the line of a plan about a first release that would be refused; no next step runs it then."""
    return StyledLine(f"{WILL_BE_REFUSED}{reason}", "warning")


def command_step(purpose: str, *words: str | Path) -> str:
    """Return a next step: a command of agedp, quoted for a shell, and its purpose.

    >>> command_step("what is due", "plan", "my run.toml")
    "Next: agedp plan 'my run.toml'  # what is due"
    """
    return next_step(escape_text(shlex.join(["agedp", *map(str, words)])), purpose)


def after_transfer(address: str) -> list[str]:
    """Return the next steps of an import or a recovery."""
    return [
        f'Write into [output] of the run file: ledger = "{escape_text(address)}"',
        command_step("every row and hash once more", "ledger", "verify", address),
    ]


def verification_lines(
    folder: str | Path, verification: Verification, *, has_ledger: bool, has_key: bool = False
) -> list[str]:
    """Return the result as lines for the terminal.

    Args:
        folder: the release folder, as it was named.
        verification: of the folder.
        has_ledger: whether the folder equals a ledger.
        has_key: whether a key was named, which has signed the folder.
    """
    if has_ledger:
        return [f"{folder}: verified. It is as it was published, and equals the ledger"]
    unseen = "" if has_key else ", ".join(verification.unwritten)
    excepted = f" except {unseen}, which may have been edited" if unseen else ""
    signed = "signed, not compared with the rows" if verification.signed_by else "not compared"
    return [
        f"{folder}: verified{excepted}. What was compared follows from its ledger rows",
        f"compared: {', '.join(verification.compared)}",
        f"{signed}: {'; '.join(verification.not_compared)}",
    ]


_WORDS: Final = "STATEMENT.md"


def reading_advice(folder: str | Path, verification: Verification, *, has_ledger: bool, has_key: bool = False) -> str:
    """Return what to read next in a verified folder: STATEMENT.md, or its tables alone where that was not compared.

    The arguments are those of `verification_lines`.
    """
    name = f"{escape_text(str(folder))}/{_WORDS}"
    if has_ledger or has_key or _WORDS not in verification.unwritten:
        return f"Read {name}: what the release reveals about one household."
    writer, installed = verification.writer, version("agedp")
    if writer and _release_numbers(writer) > _release_numbers(installed):
        ways = f"Update agedp: {writer} is newer than {installed}. Or ask the publisher for a signature (--key)."
    else:
        other_version = f", or verify it with agedp {writer}, which it names as its writer" if writer else ""
        ways = f"Ask the publisher for a signature (--key){other_version}."
    return f"The numbers of the tables are verified, the text of {name} is not. {ways}"


def _release_numbers(of_version: str) -> list[int]:
    """Return the numbers with which a version begins: [0, 3, 0] of "0.3.0rc1"."""
    match = re.match(r"\d+(\.\d+)*", of_version, re.ASCII)
    return [int(number) for number in match[0].split(".")] if match else []


def signature_lines(verification: Verification, *, key: str) -> list[str]:
    """Return who signed a folder, and by what a later one is known to be later, as lines for the terminal.

    Args:
        verification: of the folder.
        key: the fingerprint that was asked for, "" for none.
    """
    if not verification.signed_by:
        return []
    who = "The holder of this key published these bytes." if key else "Who holds the key is not shown here (--key)."
    if key and key.lower() != verification.signed_by:
        who = f"It follows from the key that you name, {key.lower()[:16]}, each signed by the one before."
    broken = [f"key {of[:16]} of {at}: not signed by the key before it" for of, at in verification.key_breaks]
    return [
        f"signed by key {verification.signed_by}. {who}",
        *broken,
        f"newest row {verification.newest_row}: a later folder is checked with --not-before and this row",
    ]


def verification_json(verification: Verification, *, has_ledger: bool) -> dict[str, Any]:
    """Return the result as JSON; compared with a ledger, nothing of a folder is left out."""
    not_compared = () if has_ledger else verification.not_compared
    return {
        "compared": list(verification.compared),
        "not_compared": list(not_compared),
        "unwritten": [] if has_ledger else list(verification.unwritten),
        "signed_by": verification.signed_by,
        "key_breaks": [{"key": key, "date": at} for key, at in verification.key_breaks],
        "newest_row": verification.newest_row,
    }


_SHORT: Final = 4
"""A number with so few digits, as users write them, is shown as it is."""
_DIGITS: Final = 3
_DOWN: Final = Context(prec=_DIGITS, rounding=ROUND_FLOOR)


def format_loss(nano_epsilon: int) -> str:
    """Return a privacy loss in three digits, never below the loss; a short one, such as 182.5, exactly.

    >>> format_loss(16_923_347_616), format_loss(182_500_000_000), format_loss(0)
    ('17', '182.5', '0')
    """
    return format_bound(Decimal(nano_epsilon) / NANO)


def format_bound(epsilon: Decimal | str, *, limit: str | None = None) -> str:
    """Return a bound in three digits, never below the bound; if that exceeds its limit, the exact number.

    Args:
        epsilon: exact number; a text that is none, such as "infinite", is returned unchanged.
        limit: what the bound does not exceed; "", "unlimited" or None for none.

    >>> format_bound("10.748499677"), format_bound("1.003", limit="1.004"), format_bound("infinite")
    ('10.8', '1.003', 'infinite')
    """
    try:
        exact = Decimal(epsilon)
    except ArithmeticError:
        return str(epsilon)
    if not exact.is_finite() or len(exact.normalize().as_tuple().digits) <= _SHORT:
        return exact_text(exact) if exact.is_finite() else str(epsilon)
    rounded = rounded_up(exact)
    is_capped = limit not in (None, "", "unlimited") and Decimal(rounded) > Decimal(str(limit))
    return exact_text(exact) if is_capped else rounded


def format_budget(nano_epsilon: int) -> str:
    """Return a loss that may be spent in three digits, rounded down, so that it can be written into a run file.

    >>> format_budget(123_456_789)
    '0.123'
    """
    return exact_text(_DOWN.create_decimal(Decimal(nano_epsilon) / NANO))


def format_column(values: Iterable[float]) -> list[str]:
    """Return numbers of one column with the same decimals, three digits for the largest of them.

    >>> format_column([9.5454, 12.3456]), format_column([0.04567, -0.001])
    (['9.5', '12.3'], ['0.0457', '-0.0010'])
    """
    numbers = list(values)
    largest = max(map(abs, numbers), default=0.0)
    decimals = max(0, _DIGITS - 1 - math.floor(math.log10(largest))) if largest else 0
    return [f"{number:.{decimals}f}" for number in numbers]


def skips_text(skips: Sequence[tuple[date, str]]) -> str:
    """Return the days that will be skipped as text: adjacent days as a period, days of one series with its name.

    >>> skips_text([(date(2013, 1, 4), ""), (date(2013, 1, 5), ""), (date(2013, 1, 8), "n")])
    '2013-01-04 to 2013-01-05, n of 2013-01-08'
    """
    periods: list[tuple[str, date, date]] = []
    for day, series in sorted(skips, key=lambda skip: (skip[1], skip[0])):
        if periods and periods[-1][0] == series and (day - periods[-1][2]).days == 1:
            periods[-1] = (series, periods[-1][1], day)
        else:
            periods.append((series, day, day))
    return ", ".join(
        (f"{series} of " if series else "") + (f"{first} to {last}" if last > first else f"{first}")
        for series, first, last in periods
    )
