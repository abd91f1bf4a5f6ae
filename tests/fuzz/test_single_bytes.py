"""Every single byte of a small file changed: only households that the changed lines name are affected.

Substitutions and insertions of all 256 values at all places, and deletions, of one small file for each layout. Each
changed file is read by the project and by the second reader, which uses no CSV library; both agree row by row, rows
read equal line ends, and nothing but the header line makes the project refuse the file.
"""

# ruff: noqa: PT017, S311  (either ending is judged; choices, not secrets)

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import pytest

from agedp.store.file_identity import read_header
from agedp_data.datasets import file_listing
from agedp_data.datasets.layout import Header, Layout
from agedp_data.datasets.registry import layout_of
from agedp_data.errors import InputError
from tests.fuzz.originals import Original, originals
from tests.fuzz.parsing import Found, found_in, found_of
from tests.fuzz.plain_reader import Read, households_of, lines_of

LABELS = ",".join([*(f"{m // 60}:{m % 60:02d}" for m in range(30, 1440, 30)), "0:00"])
CELLS = ",".join(str(slot % 10) for slot in range(48))


@dataclass(frozen=True)
class Small:
    """A file of a few lines: who reads it a second time, and at which place of a row the household is."""

    original: str
    data: bytes
    place: int

    @property
    def of(self) -> Original:
        return originals()[self.original]

    @cached_property
    def layout(self) -> Layout:
        return layout_of(self.of.dataset, self.of.rules.columns)

    @property
    def rows_at(self) -> int:
        """Where the first data row begins."""
        return len(self.data) - sum(map(len, self.data.splitlines(keepends=True)[-self.of.read(self.data).rows :]))


FILES = {
    "london": Small(
        "london publisher",
        b"LCLid,stdorToU,DateTime,KWH/hh (per half hour) \r\n"
        b"M1,Std,2013-02-28 19:00:00.0000000, 0.143 \r\n"
        b'"M1",ToU,2013-02-28 19:30:00,0.2\n'
        b'"M,2",Std,28/02/2013 19:00:00, 1 \r\n'
        b"M3,Std,2013-02-28 19:00:00,Null\r\n"
        b"M3,Std,2013-02-28 19:30:00,0.5",
        0,
    ),
    "long": Small(
        "long",
        b"note,Wh,read at,meter\n"
        b"x,143,26.10.2013 20:30,k1\n"
        b"y,NA,26.10.2013 21:00,k1\r\n"
        b'z,-9,26.10.2013 20:30,"k""2"\n'
        b'"a,b",7,26.10.2013 21:30,\xc3\xa93\n'
        b"\xe9,1.5,26.10.2013 20:30,k4\n",
        3,
    ),
    "long iso": Small(
        "long iso",
        b"id,time,kWh\n"
        b"h1,2013-02-28T19:00:00+01:00,0.1\n"
        b"h1,2013-02-28 19:00,0.2\n"
        b"h2,2013-02-28T19:00:00.000Z,1\n"
        b"h3,2013-02-28 19:30:00-0330,0.3\n",
        0,
    ),
    "ausgrid": Small(
        "ausgrid 2012",
        f"Customer,Generator Capacity,Postcode,Consumption Category,date,{LABELS},Row Quality\r\n"
        f"1,,,GC,6/10/2012,{CELLS},\r\n"
        f"1,,,CL,6/10/2012,{CELLS},NA\r\n"
        f"2,,,GC,7-Oct-12,{CELLS},\r\n".encode(),
        0,
    ),
    "ausgrid title": Small(
        "ausgrid 2012",
        b'"Solar ""home"" data",,\n'
        + f"Customer,Generator Capacity,Postcode,Consumption Category,date,{LABELS},Row Quality\n".encode()
        + f"1,,,GC,6/10/2012,{CELLS},\n".encode(),
        0,
    ),
}


def changes(data: bytes, first: int, last: int) -> Iterator[bytes]:
    """Every file that differs by one byte at these places: another byte, one more, or one less."""
    for at in range(first, last):
        for value in range(256):
            byte = bytes([value])
            yield data[:at] + byte + data[at:]
            if at < len(data):
                yield data[:at] + byte + data[at + 1 :]
        if at < len(data):
            yield data[:at] + data[at + 1 :]


def check_rows(small: Small, header: Header, changed: bytes) -> None:
    """Check a file whose header is as it was."""
    found = found_of([changed[small.rows_at :]], small.layout, header, small.of.rules)
    expected = small.of.read(changed)
    assert not expected.why_refused
    assert found.rows == len(lines_of(changed[small.rows_at :]))
    agrees(found, expected)
    before, after = small.of.read(small.data).kept, expected.kept
    affected = {home for (home, _), _ in before.items() ^ after.items()}
    old, new = (Counter(lines_of(data[small.rows_at :])) for data in (small.data, changed))
    assert affected <= households_of([*(old - new), *(new - old)], small.place), changed


def agrees(found: Found, expected: Read) -> None:
    """Check what the project reads against the second reader."""
    assert found.rows == expected.rows == found.rows_kept + found.rows_aside
    assert found.rows_kept == expected.rows_kept
    assert found.kept.keys() == expected.kept.keys()
    assert {key for key, wh in found.kept.items() if wh != expected.kept[key]} <= expected.ties


def check_file(small: Small, path: Path, changed: bytes) -> bool:
    """Check a file whose header may be another; return whether it was read."""
    path.write_bytes(changed)
    expected = small.of.read(changed)
    try:
        found = found_in(path, small.of.dataset, small.of.rules, block_bytes=100)
    except InputError as refusal:
        assert expected.why_refused, (changed, refusal.private)
        return False
    assert not expected.why_refused, changed
    agrees(found, expected)
    return True


def header_of(small: Small, path: Path) -> Header:
    path.write_bytes(small.data)
    header, start = read_header(file_listing.list_input_files([str(path)]).sources[0], small.layout)
    assert start == small.rows_at
    assert header is not None
    return header


@pytest.mark.parametrize("name", FILES)
def test_some_single_bytes_affect_only_whom_their_lines_name(name: str, tmp_path: Path) -> None:
    small, choice = FILES[name], random.Random(20261122)
    header = header_of(small, tmp_path / "a.csv")
    rows = list(changes(small.data, small.rows_at, len(small.data) + 1))
    for changed in choice.sample(rows, 80 if small.layout.width > 1 else 200):
        check_rows(small, header, changed)
    heads = list(changes(small.data, 0, small.rows_at))
    outcomes = {check_file(small, tmp_path / "a.csv", changed) for changed in choice.sample(heads, 60)}
    assert False in outcomes


@pytest.mark.long
@pytest.mark.parametrize("name", FILES)
def test_every_single_byte_is_read_or_refused_as_described(name: str, tmp_path: Path) -> None:
    small = FILES[name]
    if name != "ausgrid title":  # its rows are those of the other
        header = header_of(small, tmp_path / "a.csv")
        for changed in changes(small.data, small.rows_at, len(small.data) + 1):
            check_rows(small, header, changed)
    outcomes = Counter(
        check_file(small, tmp_path / "a.csv", changed) for changed in changes(small.data, 0, small.rows_at)
    )
    assert outcomes[False] > outcomes[True] > 0
