"""No byte in one household's energy changes another household's readings, nor the half-hours that any row names."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import numpy as np
import pytest

from agedp_data.datasets.ausgrid import Ausgrid
from agedp_data.datasets.csv_parsing import ParsedChunk, parse_lines
from agedp_data.datasets.layout import Layout
from agedp_data.datasets.london import London
from agedp_data.datasets.long_format import Long
from agedp_data.datasets.validation import NamedColumns, RejectionReason
from tests.agedp_data.datasets.parsing import RULES, settle

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
