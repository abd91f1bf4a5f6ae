"""The text of a table as its first lines show it: encoding, separator, the lines before the header, header and rows.

A row has a number or a time wherever nearly all lines have one; the header is the line above the first row. Nothing is
parsed here: `agedp init` proposes keys by it, and a refused file is told what stands in the way.

>>> text = table_text(["Account: 12", "", "meter;at;use", "A;2024-01-08 00:30;0,25", "A;2024-01-08 01:00;0,5"])
>>> text.separator, text.skip_lines, text.names, len(text.rows)
(';', 2, ('meter', 'at', 'use'), 2)
"""

from __future__ import annotations

import codecs
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from agedp_data.datasets.csv_lines import column_names, split_fields

ENCODINGS: Final = ("utf-8", "latin-1", "cp1252", "utf-16")
SEPARATORS: Final = (",", ";", "\t", "|")
MISSING_WORDS: Final = ("", "null", "na", "n/a", "nan", "none", "-", "missing")
SEPARATOR_LINE: Final = re.compile(r'"?sep=(.|\\t)"?')
NEARLY_ALL: Final = 0.95
_ROWS, _CONSECUTIVE = 2000, 3
_VALUE = re.compile(  # a number, a date, a time of day, or several of them
    r"[+-]?[.,]?\d[\d .,:'/+\-\u00a0\u202fTZ]*(\s?[AaPp]\.?[Mm]\.?)?|\d{1,2}[- ][A-Za-z]{3}[- ]\d{2,4}.*"
    r"|\d[\d.,]*[eE][+-]?\d+"
)
_DATED = re.compile(r"\d+[-/.]\w+[-/.]\d.*|\d+:\d\d.*")
_UNIT = re.compile(r"|-|[\[(].*[\])]|[kM]?Wh?")
_MOSTLY = 0.8
_BOMS: Final = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


@dataclass(frozen=True, slots=True)
class TableText:
    """The first lines of a table.

    Attributes:
        separator: separator of its columns.
        skip_lines: number of lines before the header, a line `sep=;` among them.
        before: the cells of these lines.
        names: the names of the header, without surrounding blanks.
        rows: the cells of the first rows that have as many.
        has_separator_line: whether the first line is `sep=;`.
        has_open_end: whether each row ends with a separator that the header lacks.
    """

    separator: str
    skip_lines: int
    before: tuple[tuple[str, ...], ...]
    names: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    has_separator_line: bool = False
    has_open_end: bool = False


def encoding_of(head: bytes, *, complete: bool = True) -> str | None:
    r"""Return the encoding of a text by its first bytes, as [input.columns] names it; None if they are no text.

    >>> [encoding_of("é,ü".encode(name)) for name in ("utf-8", "latin-1", "utf-16")], encoding_of(b"a\0b")
    (['utf-8', 'latin-1', 'utf-16'], None)
    """
    is_bare = len(head) > 3 and any(all(head[i::2]) and not any(head[1 - i :: 2]) for i in range(2))
    if head.startswith(_BOMS) or is_bare:
        return "utf-16"
    if b"\x00" in head:
        return None
    try:
        codecs.getincrementaldecoder("utf-8")().decode(head, final=complete)
    except UnicodeDecodeError:
        text = head.decode("utf-8", "replace")
        broken = text.count("\ufffd")
        if 2 * broken <= sum(not character.isascii() for character in text):
            return "utf-8"  # the broken bytes of a household among letters of others
        return "cp1252" if any(0x80 <= byte < 0xA0 for byte in head) else "latin-1"
    return "utf-8"


def text_decoder(encoding: str, head: bytes) -> codecs.IncrementalDecoder:
    r"""Return the decoder of a text by its first bytes: UTF-16 may lack its byte-order mark.

    It is then little-endian, as Windows writes it, unless its first byte is 0.

    >>> [text_decoder("utf-16", text).decode(text) for text in (b"a\0", b"\0a", b"\xff\xfea\0")]
    ['a', 'a', 'a']
    """
    if encoding == "utf-16" and not head.startswith(_BOMS):
        encoding = "utf-16-be" if head.startswith(b"\0") else "utf-16-le"
    return codecs.getincrementaldecoder(encoding)(errors="replace")


def text_lines(head: bytes, encoding: str, *, complete: bool) -> list[str]:
    r"""Return the lines of a text without their ends; the last one only if its end is known.

    >>> text_lines(b"a\r\nb\nc", "utf-8", complete=False)
    ['a', 'b']
    """
    lines = text_decoder(encoding, head).decode(head, final=complete).removeprefix("\ufeff").split("\n")
    if not complete or not lines[-1]:
        lines.pop()
    return [line.removesuffix("\r") for line in lines]


def table_text(
    lines: Sequence[str], *, separator: str | None = None, skip_lines: int | None = None
) -> TableText | None:
    """Return the table in the first lines of a file; None if no line is a header with rows below it.

    Args:
        lines: the first lines.
        separator: the separator, if it is known.
        skip_lines: the number of lines before the header, if it is known.
    """
    lines = lines[:_ROWS]
    stated = SEPARATOR_LINE.fullmatch(lines[0].strip(" ")) if lines else None
    if stated and separator is None:
        separator = stated[1].replace("\\t", "\t")
    separators = (separator,) if separator in SEPARATORS else SEPARATORS
    found = [text for mark in separators if (text := _table(lines, mark, skip_lines, has_mark=bool(stated)))]
    return max(found, key=lambda text: (len(text.names), len(text.rows)), default=None)


def _table(lines: Sequence[str], separator: str, skip_lines: int | None, *, has_mark: bool) -> TableText | None:
    cells = [tuple(cell.strip() for cell in split_fields(line, separator)) for line in lines]
    if skip_lines is None:
        widths = Counter(len(row) for row in cells if len(row) > 1)
        width = max(widths, key=lambda width: (widths[width], width), default=0)
        skip_lines = _header_position(cells, width)
    elif skip_lines < len(lines):
        width = len(cells[skip_lines])
    else:
        skip_lines = None
    if skip_lines is None or width < 2:
        return None
    names = tuple(column_names(lines[skip_lines], separator))
    rows = tuple(row for row in cells[skip_lines + 1 :] if len(row) == width)
    before, is_open = tuple(cells[:skip_lines]), len(names) == width - 1
    return TableText(separator, skip_lines, before, names, rows, has_mark, is_open) if rows else None


def _header_position(cells: Sequence[Sequence[str]], width: int) -> int | None:
    """Return the position of the header: the last line with a name for each column above the first rows."""
    rows = [row for row in cells if len(row) == width]
    lower = rows[len(rows) // 2 :]
    valued = [i for i in range(width) if are_mostly((row[i] for row in lower), _VALUE, _MOSTLY)]
    dated = [i for i in valued if are_mostly((row[i] for row in lower), _DATED, _MOSTLY)]
    is_row = [
        len(row) == width
        and bool(valued)
        and all((row[i].lower() in MISSING_WORDS or is_value(row[i])) and (row[i] or i not in dated) for i in valued)
        for row in cells
    ]
    full = [i for i, row in enumerate(cells) if any(row)]  # some programs write an empty line after each row
    starts = (i for k, i in enumerate(full) if all(is_row[line] for line in full[k : k + _CONSECUTIVE]))
    first = next(starts, 0)
    above = [i for i in range(first) if _may_be_header(cells, i, first, width)]
    above = [i for i in above if not _has_units(cells[i])] or above
    named = [i for i in above if not any(_VALUE.fullmatch(cells[i][k]) for k in valued if k < len(cells[i]))]
    return named[-1] if named else above[-1] if above else None


def _may_be_header(cells: Sequence[Sequence[str]], line: int, first: int, width: int) -> bool:
    """Return whether a line may name the columns: as many cells as the rows, or one fewer if their last is empty."""
    names = cells[line]
    is_full = len(names) == width or (len(names) == width - 1 and not cells[first][-1])
    return is_full and all(names[1:-1]) and any(name and not _VALUE.fullmatch(name) for name in names)


def _has_units(cells: Sequence[str]) -> bool:
    """Return whether a line has the units of the columns, below the word for it or nothing."""
    return sum(map(bool, map(_UNIT.fullmatch, cells[1:]))) >= _MOSTLY * len(cells[1:])


def known_cells(column: Iterable[str]) -> list[str]:
    """Return the cells that are no word for a missing reading."""
    return [cell for cell in column if cell.lower() not in MISSING_WORDS]


def are_mostly(column: Iterable[str], pattern: re.Pattern[str], share: float = NEARLY_ALL) -> bool:
    """Return whether this share of the known cells of a column, if there are any, has a form.

    >>> are_mostly(["1", "2", "NA"], re.compile("[0-9]")), are_mostly(["NA"], re.compile(".*"))
    (True, False)
    """
    known = known_cells(column)
    return bool(known) and sum(map(bool, map(pattern.fullmatch, known))) >= share * len(known)


def is_number(cell: str) -> bool:
    """Return whether Python reads a text as a number, NaN and infinity among them.

    >>> is_number("-9.0"), is_number("NaN"), is_number("1,5")
    (True, True, False)
    """
    try:
        float(cell)
    except ValueError:
        return False
    return True


def is_value(cell: str) -> bool:
    """Return whether a cell is a number, a date or a time of day, rather than a name.

    >>> is_value("0,25"), is_value("08/01/2024 00:30"), is_value("kWh 2024")
    (True, True, False)
    """
    return _VALUE.fullmatch(cell) is not None
