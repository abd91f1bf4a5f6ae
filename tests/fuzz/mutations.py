"""Ways in which a table on disk goes wrong: bytes, lines, columns, cells, encodings, line ends.

A mutation takes the bytes of a file and a source of choices, and returns other bytes.
"""

# ruff: noqa: E501, S311  (tables of odd values; choices, not secrets)

from __future__ import annotations

import random
from collections.abc import Callable

from hypothesis import strategies as st

Mutation = Callable[[bytes, random.Random], bytes]

STAMPS = [
    "2013-02-30 00:30:00", "2013-13-01 00:30:00", "2013-01-01 24:00:00", "2013-01-01 25:00:00", "2013-01-01T00:30:00Z",
    "2013-01-01 00:30:00+01:00", "2013-01-01 00:30:00 UTC", "9999-12-31 00:00:00", "0001-01-01 00:30:00", "1969-12-31 23:30:00",
    "2199-12-31 23:30:00", "2200-01-01 00:30:00", "2262-04-12 00:00:00", "2013-01-01", "2013-01-01 00", "2013-01-01 00:30",
    "2013-01-01T00:30", "2013-01-01 00:30:60", "2013-01-01 00:30:00.0000001", "2013-01-01 00:30:00.123456789123", "20130101T003000", "1357000200",
    "", " ", "Null", "yesterday", "2013-W01-1", "13-01-01 00:30:00", "31.12.2013 00:30", "2013/01/01 00:30:00",
    "01/02/2013 00:30:00", "13/13/2013 00:30:00", "2/29/2013 00:30:00", "1-Jul-12", "1/07/2012", "31/02/2012", "\uff12013-01-01 00:30:00",
    "2013-01-01  00:30:00", "2013-01-01 0:30:00", "2013-1-1 00:30:00", "-2013-01-01 00:30:00",
]  # fmt: skip
NUMBERS = [
    "nan", "NaN", "-nan", "inf", "-inf", "Infinity", "1e400", "1e-400", "-0", "-0.0", "-1", "-1e-300", "1,5", '"1,5"', "1.234,5",
    "0x1p3", "0x10", "\u0661\u0662", "\uff11", "1 000", "1_000", "9" * 400, "0." + "3" * 400, " 0.5 ", "\t0.5", "+0.5", "0.5.1", "--1", "1e",
    "1e5", "50", "50.0004", "50.0005", "50.001", "0.0005", "0.0015", "0.4999999", "", "Null", "null", "NULL", " Null ", "NA", "-9", "#N/A",
    "true", "1.", ".5", "1E-1", "0.143 kWh", "1e308", "1.7e308", "1e-308", "5e-324", "\u22120.5", "0.5\u00a0", "\x0b0.5", "1d3", "0b1", "1e+0",
]  # fmt: skip
IDS = [
    "", " ", '"a,b"', '"a""b"', '"a\nb"', "\ufeffMAC1", "\u00e9", "MAC1 ", "\u202eMAC", "a" * 5000, "\\", "'", '"',
    "A\x1fB", "\u2028",
]  # fmt: skip
ODD_BYTES = [
    b"\xff", b"\xe9", b"\x80", b"\x1a", b"\x0c", b"\x85", b'"', b",", b"\r", b"\n", b";", b"\t", b"\x00",
]  # fmt: skip


def on_line(change: Callable[[list[bytes], int, random.Random], None]) -> Mutation:
    """A mutation of the list of lines at one of them, rarely the header."""

    def mutation(data: bytes, choice: random.Random) -> bytes:
        lines = data.splitlines(keepends=True)
        if len(lines) < 3:
            return data
        at = choice.randrange(len(lines)) if choice.random() < 0.1 else choice.randrange(1, len(lines))
        change(lines, at, choice)
        return b"".join(lines)

    return mutation


def on_cell(values: list[str]) -> Mutation:
    """A mutation that writes something odd into one cell of one line."""

    def change(lines: list[bytes], at: int, choice: random.Random) -> None:
        odd = choice.choice(values).encode() + (b"\n" if choice.random() < 0.05 else b"")
        _write_cell(lines, at, choice, lambda _: odd)

    return on_line(change)


def _write_cell(lines: list[bytes], at: int, choice: random.Random, change: Callable[[bytes], bytes]) -> None:
    cells = lines[at].split(b",")
    place = choice.randrange(len(cells))
    cells[place] = change(cells[place])
    lines[at] = b",".join(cells).rstrip(b"\r\n") + b"\n"


def _bytes(data: bytes, choice: random.Random) -> bytes:
    at, odd = choice.randrange(len(data) + 1), choice.choice([*ODD_BYTES, bytes([choice.randrange(256)])])
    before = data[:at]
    return choice.choice([before + odd + data[at:], before + odd + data[at + 1 :], before + data[at + 1 :]])


def _columns(data: bytes, choice: random.Random) -> bytes:
    """Remove, repeat, rename or move a column, in all lines or in the header alone."""
    lines = data.splitlines(keepends=True)
    width = lines[0].count(b",") + 1
    at, to, kind, whole = choice.randrange(width), choice.randrange(width), choice.randrange(4), choice.random() < 0.7
    for number, line in enumerate(lines if whole else lines[:1]):
        body = line.rstrip(b"\r\n")
        cells = body.split(b",")
        if len(cells) != width:
            continue
        if kind == 0:
            del cells[at]
        elif kind == 1:
            cells.insert(at, cells[to])
        elif kind == 2 and number == 0:
            name = cells[at]
            cells[at] = choice.choice([b"kWh", b"", name.upper(), b" " + name + b" ", b'"' + name + b'"', b"\xff"])
        elif kind == 3:
            cells[at], cells[to] = cells[to], cells[at]
        lines[number] = b",".join(cells) + line[len(body) :]
    return b"".join(lines)


def _line_ends(data: bytes, choice: random.Random) -> bytes:
    ends = choice.choice([[b"\r\n"], [b"\r"], [b"\n"], [b"\r\n", b"\n", b"\r"], [b"\n\n"], [b"\r\r\n"], [b"\n\r"]])
    joined = b"".join(line.rstrip(b"\r\n") + choice.choice(ends) for line in data.splitlines(keepends=True))
    return joined.rstrip(b"\r\n") if choice.random() < 0.3 else joined


def _encoding(data: bytes, choice: random.Random) -> bytes:
    text = data.decode("latin-1")
    coded = [text.encode(coding) for coding in ("utf-16", "utf-16-le", "utf-32")]
    marked = [b"\xef\xbb\xbf" + data, b"\xef\xbb\xbf\xef\xbb\xbf" + data, data.translate(bytes(range(255, -1, -1)))]
    ids = [
        data.replace(b"MAC", b"\xe9MAC"),
        data.replace(b"MAC", "\u00e9MAC".encode()),
        data.replace(b"Std", b"\xfctd"),
    ]
    return choice.choice([*coded, *marked, *ids])


def _quote(lines: list[bytes], at: int, choice: random.Random) -> None:
    def quoted(cell: bytes) -> bytes:
        half = len(cell) // 2
        ways = [b'"' + cell, cell + b'"', cell[:half] + b'"' + cell[half:], b'""' + cell, b'"' + cell.rstrip() + b'"']
        return choice.choice([*ways, b"'" + cell + b"'"])

    _write_cell(lines, at, choice, quoted)


def _huge(lines: list[bytes], at: int, choice: random.Random) -> None:
    length = choice.choice([1000, 70_000, 200_000])
    _write_cell(lines, at, choice, lambda _: choice.choice([b"x", b"9", b",", b" ", b"\xc3\xa9"]) * length)


def _swap(lines: list[bytes], at: int, choice: random.Random) -> None:
    to = choice.randrange(1, len(lines))
    lines[at], lines[to] = lines[to], lines[at]


BLANKS = [b"\n", b"\r\n", b"  \n", b"\t\n", b",,,\n", b'""\n', b'"\n"\n', b"#\n", b"\x0c\n"]
MUTATIONS: dict[str, Mutation] = {
    "bytes": _bytes,
    "cut": lambda data, choice: data[: choice.randrange(len(data) + 1)],
    "columns": _columns,
    "line ends": _line_ends,
    "encoding": _encoding,
    "timestamp": on_cell(STAMPS),
    "number": on_cell(NUMBERS),
    "id": on_cell(IDS),
    "quote": on_line(_quote),
    "huge": on_line(_huge),
    "swap": on_line(_swap),
    "duplicate": on_line(lambda lines, at, choice: lines.insert(choice.randrange(1, len(lines) + 1), lines[at])),
    "join": on_line(lambda lines, at, _: lines.__setitem__(at, lines[at].rstrip(b"\r\n"))),
    "blank": on_line(lambda lines, at, choice: lines.insert(at, choice.choice(BLANKS))),
    "cut line": on_line(lambda lines, at, choice: lines.__setitem__(at, lines[at][: choice.randrange(len(lines[at]))])),
    "drop": on_line(lambda lines, at, _: lines.pop(at)),
    "header again": on_line(lambda lines, at, _: lines.insert(at, lines[0])),
}


def mutated(data: bytes, plan: list[tuple[str, int]]) -> bytes:
    """The file after the mutations of a plan, each with its own seed."""
    for name, seed in plan:
        data = MUTATIONS[name](data, random.Random(seed)) if data else data
    return data


PLANS = st.lists(st.tuples(st.sampled_from(sorted(MUTATIONS)), st.integers(0, 2**32)), min_size=1, max_size=4)
