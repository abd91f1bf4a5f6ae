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


def _lines(data: bytes) -> list[bytes]:
    return data.splitlines(keepends=True)


def _some_line(lines: list[bytes], choice: random.Random) -> int:
    return choice.randrange(len(lines)) if choice.random() < 0.1 else choice.randrange(1, len(lines))


def on_lines(change: Callable[[list[bytes], int, random.Random], None]) -> Mutation:
    """A mutation of the list of lines at one of them."""

    def mutation(data: bytes, choice: random.Random) -> bytes:
        lines = _lines(data)
        if len(lines) < 3:
            return data
        change(lines, _some_line(lines, choice), choice)
        return b"".join(lines)

    return mutation


def on_cell(values: list[str]) -> Mutation:
    """A mutation that writes something odd into one cell of one line."""

    def change(lines: list[bytes], at: int, choice: random.Random) -> None:
        cells = lines[at].split(b",")
        cells[choice.randrange(len(cells))] = choice.choice(values).encode() + (
            b"\n" if choice.random() < 0.05 else b""
        )
        lines[at] = b",".join(cells).rstrip(b"\r\n") + b"\n"

    return on_lines(change)


def _odd_bytes(data: bytes, choice: random.Random) -> bytes:
    at = choice.randrange(len(data) + 1)
    odd = choice.choice(
        [
            b"\xff", b"\xe9", b"\x80", b"\x1a", b"\x0c", b"\x85", b'"', b",", b"\r", b"\n", b";", b"\t", b"\x00",
            bytes([choice.randrange(256)]),
        ]
    )  # fmt: skip
    return [data[:at] + odd + data[at:], data[:at] + odd + data[at + 1 :], data[:at] + data[at + 1 :]][
        choice.randrange(3)
    ]


def _cut(data: bytes, choice: random.Random) -> bytes:
    return data[: choice.randrange(len(data) + 1)]


def _columns(data: bytes, choice: random.Random) -> bytes:
    """Remove, repeat, rename or move a column, in all lines or in the header alone."""
    lines = _lines(data)
    if not lines:
        return data
    width = lines[0].count(b",") + 1
    at, to, kind, whole = choice.randrange(width), choice.randrange(width), choice.randrange(4), choice.random() < 0.7
    for number, line in enumerate(lines):
        if number and not whole:
            break
        body = line.rstrip(b"\r\n")
        cells = body.split(b",")
        if len(cells) != width:
            continue
        if kind == 0:
            del cells[at]
        elif kind == 1:
            cells.insert(at, cells[to])
        elif kind == 2 and number == 0:
            cells[at] = choice.choice(
                [b"kWh", b"", cells[at].upper(), b" " + cells[at] + b" ", b'"' + cells[at] + b'"', b"\xff"]
            )
        elif kind == 3:
            cells[at], cells[to] = cells[to], cells[at]
        lines[number] = b",".join(cells) + line[len(body) :]
    return b"".join(lines)


def _line_ends(data: bytes, choice: random.Random) -> bytes:
    ends = choice.choice([[b"\r\n"], [b"\r"], [b"\n"], [b"\r\n", b"\n", b"\r"], [b"\n\n"], [b"\r\r\n"], [b"\n\r"]])
    joined = b"".join(line.rstrip(b"\r\n") + choice.choice(ends) for line in _lines(data))
    return joined.rstrip(b"\r\n") if choice.random() < 0.3 else joined


def _encoding(data: bytes, choice: random.Random) -> bytes:
    text = data.decode("latin-1")
    return choice.choice(
        [
            b"\xef\xbb\xbf" + data,
            b"\xef\xbb\xbf\xef\xbb\xbf" + data,
            text.encode("utf-16"),
            text.encode("utf-16-le"),
            text.encode("utf-32"),
            data.replace(b"MAC", b"\xe9MAC"),
            data.replace(b"MAC", "\u00e9MAC".encode()),
            data.replace(b"Std", b"\xfctd"),
            data.translate(bytes(range(255, -1, -1))),
        ]
    )


def _duplicate(lines: list[bytes], at: int, choice: random.Random) -> None:
    lines.insert(choice.randrange(1, len(lines) + 1), lines[at])


def _swap(lines: list[bytes], at: int, choice: random.Random) -> None:
    to = choice.randrange(1, len(lines))
    lines[at], lines[to] = lines[to], lines[at]


def _join(lines: list[bytes], at: int, choice: random.Random) -> None:
    lines[at] = lines[at].rstrip(b"\r\n")


def _blank(lines: list[bytes], at: int, choice: random.Random) -> None:
    lines.insert(at, choice.choice([b"\n", b"\r\n", b"  \n", b"\t\n", b",,,\n", b'""\n', b'"\n"\n', b"#\n", b"\x0c\n"]))


def _huge(lines: list[bytes], at: int, choice: random.Random) -> None:
    cells = lines[at].split(b",")
    cells[choice.randrange(len(cells))] = choice.choice([b"x", b"9", b",", b" ", b"\xc3\xa9"]) * choice.choice(
        [1000, 70_000, 200_000]
    )
    lines[at] = b",".join(cells).rstrip(b"\r\n") + b"\n"


def _quote(lines: list[bytes], at: int, choice: random.Random) -> None:
    cells = lines[at].split(b",")
    place = choice.randrange(len(cells))
    cell = cells[place]
    middle = len(cell) // 2
    cells[place] = choice.choice(
        [
            b'"' + cell,
            cell + b'"',
            cell[:middle] + b'"' + cell[middle:],
            b'""' + cell,
            b'"' + cell.rstrip() + b'"',
            b"'" + cell + b"'",
        ]
    )
    lines[at] = b",".join(cells)


def _cut_line(lines: list[bytes], at: int, choice: random.Random) -> None:
    lines[at] = lines[at][: choice.randrange(len(lines[at]))]


def _drop(lines: list[bytes], at: int, choice: random.Random) -> None:
    del lines[at]


def _header_again(lines: list[bytes], at: int, choice: random.Random) -> None:
    lines.insert(at, lines[0])


MUTATIONS: dict[str, Mutation] = {
    "bytes": _odd_bytes,
    "cut": _cut,
    "columns": _columns,
    "line ends": _line_ends,
    "encoding": _encoding,
    "stamp": on_cell(STAMPS),
    "number": on_cell(NUMBERS),
    "id": on_cell(IDS),
    **{
        change.__name__.strip("_").replace("_", " "): on_lines(change)
        for change in (_duplicate, _swap, _join, _blank, _huge, _quote, _cut_line, _drop, _header_again)
    },
}


def mutated(data: bytes, plan: list[tuple[str, int]]) -> bytes:
    """The file after the mutations of a plan, each with its own seed."""
    for name, seed in plan:
        data = MUTATIONS[name](data, random.Random(seed)) if data else data
    return data


PLANS = st.lists(st.tuples(st.sampled_from(sorted(MUTATIONS)), st.integers(0, 2**32)), min_size=1, max_size=4)
