"""Lines of a file: each kept, or rejected with its reason, and none affects another household."""

from __future__ import annotations

import gzip
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from random import Random

import numpy as np
import pytest

from agedp_data.datasets import filesystem
from agedp_data.datasets.ausgrid import Ausgrid
from agedp_data.datasets.csv_lines import LONGEST_LINE
from agedp_data.datasets.csv_parsing import ParsedChunk, parse_lines
from agedp_data.datasets.filesystem import InputFile, list_input_files, read_lines, split_into_chunks
from agedp_data.datasets.layout import Layout
from agedp_data.datasets.london import London
from agedp_data.datasets.long_format import Long
from agedp_data.datasets.validation import NamedColumns, RejectionReason
from tests.agedp_data.datasets.parsing import RULES, settle

# Rows of a chunk: each kept, or rejected with its reason and its text.

EXTRACT = "LCLid,DateTime,KWH/hh (per half hour)"
GOOD = b"MAC000002,2013-01-01 00:30:00, 0.143 \n"


def read(data: bytes, header: str = EXTRACT) -> ParsedChunk:
    return parse_lines(data, layout=London(), header=London().recognise([header]), rules=RULES)


def rejected(parsed: ParsedChunk) -> list[tuple[int, RejectionReason, str]]:
    reasons = map(RejectionReason, parsed.rejected_reason.tolist())
    return list(zip(parsed.rejected_row.tolist(), reasons, parsed.rejected_text, strict=True))


def kept(parsed: ParsedChunk) -> list[tuple[str, int, int, int, int]]:
    """Return household, row, day, slot and Wh of what is kept."""
    of = parsed.records
    chosen = np.flatnonzero(of.reason == RejectionReason.KEPT)
    columns = (parsed.row, of.household, of.day, of.slot, of.energy_wh[:, 0])
    rows = zip(*(column[chosen].tolist() for column in columns), strict=True)
    return [(of.ids[household], row, day, slot, wh) for row, household, day, slot, wh in rows]


CELLS = {
    RejectionReason.TEXT: [b"abc", b'"0,143"', b"0.1 kWh", b"null", b"\xef\xbb\xbf1"],
    RejectionReason.NEGATIVE: [b"-0.2", b"-0.0001"],
    RejectionReason.NOT_FINITE: [b" inf ", b"-inf", b"1e309", b"NaN"],
    RejectionReason.ABOVE_BOUND: [b"50.001", b"1e308"],
    RejectionReason.MISSING: [b"Null", b" Null ", b"", b"   "],
}
STAMPS = {
    RejectionReason.OFF_GRID: [b"2012-12-19 12:37:27", b"2013-01-01 01:00:00.5"],
    RejectionReason.DATE: [
        b"2013-02-29 01:00:00", b"2013-13-01 01:00:00", b"2013-01-01 24:30:00", b"2013-01-01 01:60:00", b"yesterday",
        b"", b"1970-01-01 00:00:00", b"2200-01-01 01:00:00", b"9999-01-01 01:00:00", b"31/02/2013 00:30:00",
        b"28/02/2013 23:29:60", b"13/02/13 00:30:00", b"2/28/2013 00:30:00", b"2013-02-29",
    ],
}  # fmt: skip
REJECTED = {
    **{b"MAC1,2013-01-01 01:00:00," + cell: reason for reason, cells in CELLS.items() for cell in cells},
    **{b"MAC1," + stamp + b",0.1": reason for reason, stamps in STAMPS.items() for stamp in stamps},
    b"MAC1,2012-12-19 12:37:27,Null": RejectionReason.MISSING,
    b",2013-01-01 01:00:00,0.1": RejectionReason.HOUSEHOLD,
    b"  ,2013-01-01 01:00:00,0.1": RejectionReason.HOUSEHOLD,
    b"MAC\xe9,2013-01-01 01:00:00,0.1": RejectionReason.HOUSEHOLD,
    b"MAC1,2013-01-01 01:00:00": RejectionReason.FIELDS,
    b"MAC1,2013-01-01 01:00:00,0.1,": RejectionReason.FIELDS,
    b"MAC\xe9,0.1": RejectionReason.FIELDS,
    b" ": RejectionReason.FIELDS,
    b"": RejectionReason.LINE,
    b"\x00\x00": RejectionReason.LINE,
    b"MA\x00C1,2013-01-01 01:00:00,0.1": RejectionReason.LINE,
    b"MAC1,2013-01-01 01:00:00,0.1\x7f": RejectionReason.LINE,
    b"MAC1,2013-01-01 01:00:00\r,0.1": RejectionReason.LINE,
    b'MAC1,2013-01-01 01:00:00,"0.1': RejectionReason.LINE,
    b'MAC1,2013-01-01 01:00:00,0.1"': RejectionReason.LINE,
    b'"MAC1"x,2013-01-01 01:00:00,0.1': RejectionReason.LINE,
    b'MAC1, "2013-01-01 01:00:00",0.1': RejectionReason.LINE,
    b'"MAC1,2013-01-01 01:00:00,0.1': RejectionReason.LINE,
    b"M" * (LONGEST_LINE - 20) + b",2013-01-01 01:00:00,0.1": RejectionReason.LINE,
}


@pytest.mark.parametrize("odd", REJECTED)
def test_an_odd_row_is_rejected_and_its_neighbours_are_kept(odd):
    parsed = read(GOOD + odd + b"\n" + GOOD.replace(b"00:30", b"02:00"))
    assert rejected(parsed) == [(1, REJECTED[odd], odd.decode("utf-8", "replace")[:LONGEST_LINE])]
    assert kept(parsed) == [("MAC000002", 0, 15706, 0, 143), ("MAC000002", 2, 15706, 3, 143)]
    assert parsed.rows_read == 3


@pytest.mark.parametrize(
    ("stamp", "day", "slot"),
    [
        (b"2013-01-01 24:00:00", 15706, 47),  # 2013-01-01 is day 15706; the midnight that ends it
        (b"2013-01-01", 15705, 47),  # a date alone is the midnight that begins it, the end of the day before
        (b"28/02/2013", 15763, 47),
        (b"28/02/2013 00:30", 15764, 0),
        (b"2013-01-01T00:30:00.000Z", 15706, 0),  # UTC is GMT
        (b"2013-01-01T00:30:00+00:00", 15706, 0),
        (b"2013-01-01 00:30", 15706, 0),
    ],
)
def test_the_timestamps_of_re_cuts_are_ends_of_half_hours_as_the_publishers_are(stamp, day, slot):
    """Spreadsheets, Spark and pandas write midnight as 24:00 or a date, and UTC with an offset."""
    assert kept(read(GOOD + b"MAC1," + stamp + b",0.1\n" + GOOD))[1] == ("MAC1", 1, day, slot, 100)


@pytest.mark.parametrize(
    ("row", "wh"),
    [
        (b"MAC1,2013-01-01 01:00:00,-0.0", 0),
        (b"MAC1,2013-01-01 01:00:00, 1.4529999 ", 1453),
        (b"MAC1,2013-01-01 01:00:00.0000000,50", 50_000),
        (b" MAC1 , 2013-01-01 01:00:00 ,\t1\t", 1000),
        (b"MAC1,1/1/2013 01:00:00,1", 1000),
        (b'"MAC1","2013-01-01 01:00:00","0.25"', 250),
        (b"\xef\xbb\xbfMAC1,2013-01-01 01:00:00,1", 1000),
    ],
)
@pytest.mark.parametrize("before", [b"", GOOD, b"\n\n", b"MAC1,x,y\n"])
def test_padding_quotes_and_a_byte_order_mark_are_accepted(row, wh, before):
    home, _, *reading = kept(read(before + row + b"\n"))[-1]
    assert (home, reading) == ("MAC1", [15706, 1, wh])


def test_the_longest_line_is_read_and_one_byte_more_is_not():
    rest = b",2013-01-01 01:00:00,0.1"
    for end in (b"\n", b"\r\n", b""):
        assert len(kept(read(b"M" * (LONGEST_LINE - len(rest)) + rest + end))) == 1
        ((_, reason, text),) = rejected(read(b"M" * (LONGEST_LINE - len(rest) + 1) + rest + end))
        assert (reason, len(text)) == (RejectionReason.LINE, LONGEST_LINE)


# No byte in one household's energy changes another household's readings, nor the half-hours that any row names.

HOMES, TIMES = ("A", "B", "C", "D"), ("00:30", "01:00", "01:30")
BYTES = [b'"', b"\0", b"\xff", b"\r", b"\x7f", b"\t", b"x", b"-", b"\xef\xbb\xbf", b'""', b'"x']
SPLITTING = [b",", b";", b"\n"]
ENDS = [f"{(slot + 1) // 2 % 24}:{(slot + 1) % 2 * 3}0" for slot in range(48)]
Cells = dict[tuple[str, str], bytes]
"""The energy of each household and time as a file contains it."""


def long(household: str = "id", energy: str = "kwh", separator: str = ",", decimal: str = ".") -> Long:
    columns = NamedColumns(
        household, "at", "%Y-%m-%d %H:%M", "end", "UTC", "UTC", energy, "kWh", (), separator, decimal
    )
    return Long(columns)


def stamp(time: str) -> bytes:
    return b"2013-01-05 " + time.encode()


def rows_of(order: tuple[str, ...]):
    """Return the lines of a table with a row per household and time, its columns in this order."""

    def lines(cells: Cells) -> Iterator[bytes]:
        for (home, time), cell in cells.items():
            yield b",".join(
                {"id": home.encode(), "at": stamp(time), "kwh": cell, "tou": b"Std"}[name] for name in order
            )

    return lines


def ausgrid_lines(cells: Cells) -> Iterator[bytes]:
    for home in HOMES:
        energies = [cells[home, time] for time in TIMES] + [b"0.5"] * (48 - len(TIMES))
        yield b",".join([home.encode(), b"1", b"2000", b"GC", b"5/01/2013", *energies, b""])


def wide_lines(before: int, mark: bytes = b","):
    """Return the lines of a table with a column per meter; the time stands after `before` of them."""

    def lines(cells: Cells) -> Iterator[bytes]:
        for time in TIMES:
            energies = [cells[home, time] for home in HOMES]
            yield mark.join([*energies[:before], stamp(time), *energies[before:]])

    return lines


def wide_header(before: int, mark: str = ",") -> str:
    return mark.join([*HOMES[:before], "at", *HOMES[before:]])


QUOTED = {("A", "00:30"): b'"0,1"', ("C", "00:30"): b'",25"', ("D", "00:30"): b'"1,5"', ("C", "01:30"): b'"0,75"'}
"""Energies with a decimal comma in a table whose separator is one."""
SHAPES = {
    "london": (London(), "LCLid,stdorToU,DateTime,KWH/hh (per half hour)", rows_of(("id", "tou", "at", "kwh"))),
    "long": (long(), "id,at,kwh", rows_of(("id", "at", "kwh"))),
    "energy in the middle": (long(), "id,kwh,at", rows_of(("id", "kwh", "at"))),
    "energy first": (long(), "kwh,at,id", rows_of(("kwh", "at", "id"))),
    "ausgrid": (
        Ausgrid(),
        f"Customer,Generator Capacity,Postcode,Consumption Category,date,{','.join(ENDS)},Row Quality",
        ausgrid_lines,
    ),
    "wide": (long("*", "*"), wide_header(0), wide_lines(0)),
    "wide, time last": (long("*", "*"), wide_header(4), wide_lines(4)),
    "wide, time between": (long("*", "*"), wide_header(2), wide_lines(2)),
    "wide, semicolons": (long("*", "*", ";", ","), wide_header(0, ";"), wide_lines(0, b";")),
    "wide, quoted": (long("*", "*", ",", ","), wide_header(0), wide_lines(0)),
}
AMBIGUOUS = "wide, quoted"
"""Where a stray quote can uncover the separator that is a cell's decimal mark: the line is rejected as a whole."""


def energies(shape: str) -> Cells:
    if shape.startswith("wide, semi"):
        return {(home, time): b"0,25" for home in HOMES for time in TIMES}
    cells = {(home, time): b"0.25" for home in HOMES for time in TIMES}
    if shape == "wide, quoted":
        cells = dict.fromkeys(cells, b'"0,25"') | QUOTED
    return cells


def parsed(shape: str, cells: Cells) -> ParsedChunk:
    layout, header, lines = SHAPES[shape]
    found = layout.recognise([header])
    assert found is not None
    return parse_lines(b"\n".join(lines(cells)) + b"\n", layout=layout, header=found, rules=RULES)


def readings_by_home(layout: Layout, chunk: ParsedChunk) -> dict[str, dict[int, int]]:
    settled = settle(layout, RULES, [chunk])
    assert settled.rows == settled.rows_kept + settled.rows_rejected
    return {
        home: {time: wh for (household, time), wh in settled.readings.items() if household == home} for home in HOMES
    }


def named(chunk: ParsedChunk) -> set[tuple[str, int]]:
    """Return the households and times that rows name, kept or rejected."""
    records = chunk.records
    rows = np.flatnonzero(records.reason == RejectionReason.KEPT)
    rows = np.concatenate([rows, chunk.rejected_row[chunk.names_half_hour]])
    pairs = zip(records.household[rows].tolist(), records.time[rows].tolist(), strict=True)
    return {(records.ids[household], time) for household, time in pairs}


def spoilt(shape: str, bytes_of: list[bytes], chosen: int | None) -> Iterator[tuple[str, bytes, ParsedChunk]]:
    """Yield the table with bytes at each place of one energy of a household, or in its stead; some of all, chosen."""
    cells, changes = energies(shape), []
    for home in HOMES:
        before = cells[home, "01:00"]
        places = range(len(before) + 1)
        versions = {before[:at] + odd + before[at:] for odd in bytes_of for at in places} | set(bytes_of)
        changes += [(home, cell) for cell in sorted(versions)]
    for home, cell in changes if chosen is None else Random(shape).sample(changes, chosen):  # noqa: S311
        yield home, cell, parsed(shape, {**cells, (home, "01:00"): cell})


def check_bytes(shape: str, chosen: int | None) -> None:
    layout, whole = SHAPES[shape][0], parsed(shape, energies(shape))
    expected, names = readings_by_home(layout, whole), named(whole)
    assert all(expected.values())
    assert len(names) == (len(HOMES) if shape == "ausgrid" else len(HOMES) * len(TIMES))
    for home, cell, chunk in spoilt(shape, BYTES, chosen):
        found = readings_by_home(layout, chunk)
        other_times = {time: wh for time, wh in expected[home].items() if shape != "ausgrid" and time % 48 != 1}
        assert other_times.items() <= found.pop(home).items(), cell
        assert found == {other: readings for other, readings in expected.items() if other != home}, cell
        assert named(chunk) == names, cell


def check_splitting_bytes(shape: str, chosen: int | None) -> None:
    layout, whole = SHAPES[shape][0], parsed(shape, energies(shape))
    expected, names = readings_by_home(layout, whole), named(whole)
    for home, cell, chunk in spoilt(shape, SPLITTING if shape != AMBIGUOUS else [*SPLITTING, *BYTES], chosen):
        found = readings_by_home(layout, chunk)
        for other in set(HOMES) - {home}:
            assert found[other].items() <= expected[other].items(), cell
            lost = expected[other].keys() - found[other].keys()
            assert {time % 48 for time in lost} <= ({1} if "wide" in shape else set()), cell
        if b"\n" not in cell:
            assert named(chunk) == names, cell


LOCAL = [shape for shape in SHAPES if shape != AMBIGUOUS]


@pytest.mark.parametrize("shape", LOCAL)
def test_a_byte_in_one_energy_spoils_no_other_household(shape):
    check_bytes(shape, 20)


@pytest.mark.parametrize("shape", SHAPES)
def test_no_byte_in_one_energy_gives_another_household_a_reading(shape):
    """A separator or line end can reject a line of a wide table: nobody can tell which of its cells is one too many."""
    check_splitting_bytes(shape, 10)


@pytest.mark.long
@pytest.mark.parametrize("shape", SHAPES)
def test_every_byte_at_every_place_of_every_household(shape):
    check_splitting_bytes(shape, None)
    if shape != AMBIGUOUS:
        check_bytes(shape, None)


@pytest.mark.parametrize(
    ("line", "names"),
    [
        (b"MAC1,2013-01-01 00:30:00", True),
        (b"MAC1,2013-01-01 00:30:00,0.1,0.2,0.3", True),
        (b'"MAC 1",2013-01-01 00:30:00,"0.1', True),
        (b"MAC1,2013-01-01 00:30:00," + b"1" * 70_000, True),
        (b"MAC1,2013-01-01 00:31:00,\0", False),
        (b"MAC1", False),
        (b"2013-01-01 00:30:00,0.1", False),
        (b'"MAC1,2013-01-01 00:30:00,0.1', False),
        (b"", False),
    ],
)
def test_a_line_that_is_no_row_names_a_half_hour_as_far_as_it_can_be_read(line, names):
    layout = London()
    header = layout.recognise(["LCLid,tstp,energy(kWh/hh)"])
    chunk = parse_lines(line + b"\nMAC2,2013-01-01 00:30:00,0.1\n", layout=layout, header=header, rules=RULES)
    assert len(chunk.rejected_row) == 1
    assert len(named(chunk)) == 1 + names


# Cuts at line ends, whatever the bytes, the packing and the sizes; no line needs more memory than the longest.


def source(path: Path, content: bytes) -> InputFile:
    path.write_bytes(gzip.compress(content, 1) if path.name.endswith("gz") else content)
    return list_input_files([str(path)]).sources[0]


@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz"])
def test_an_endless_line_takes_no_more_memory_than_a_long_one(tmp_path, name):
    file = source(tmp_path / name, b"x,1\n" + b"y" * 30_000_000 + b"\nz,2\n")
    tracemalloc.start()
    chunks = split_into_chunks(file, start=0, chunk_bytes=2**18)
    lines = b"".join(batch for chunk in chunks for batch in read_lines(chunk, batch_bytes=2**18)).splitlines()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert [len(line) > filesystem.LONGEST_LINE for line in lines] == [False, True, False]
    assert lines[::2] == [b"x,1", b"z,2"]
    assert peak < 3_000_000
