"""Columns that are parsed as a whole equal cells that are parsed one by one, of sound and of damaged bytes.

Files of London are compared with a second reader, in plain Python, line by line: it calls no part of the product.
"""

from __future__ import annotations

import math
import random
import re
from datetime import datetime, timedelta

import numpy as np
import pyarrow as pa
import pytest

from agedp_data.datasets.csv_lines import broken_lines, count_sound_lines, line_ends, line_texts
from agedp_data.datasets.csv_parsing import parse_iso_cells, parse_lines
from agedp_data.datasets.deduplication import StoredRows, deduplicate_rows
from agedp_data.datasets.layout import SINGLE_CHANNEL
from agedp_data.datasets.london import London
from agedp_data.datasets.timestamps import LOCAL_ISO, parse_timestamp
from agedp_data.datasets.validation import ReadingRules, RejectionReason

MINUTE_NS = 60 * 10**9
QUARTER_NS = 15 * MINUTE_NS
ENDINGS = ("", ":00", ":00.0", ":00.000", ":00.0000000", ":00.000000000")


def dirty_timestamps(rng: random.Random, ending: str) -> list[bytes]:
    """Return timestamps of one width: impossible days, hours and minutes, seconds, and any byte in any place."""
    begin = datetime(rng.choice([1969, 1970, 2012, 2199, 2200]), rng.randint(1, 12), 1)
    cells = []
    for number in range(100):
        moment = begin + timedelta(minutes=rng.choice([0, 15, 30, 37, 1440 * 27]) + 30 * number)
        cell = bytearray(f"{moment:%Y-%m-%d %H:%M}{ending}".encode())
        if rng.random() < 0.2:
            place, value = rng.choice([(8, 32), (8, 0), (8, 30), (11, 24), (14, 60), (14, 59)])
            cell[place : place + 2] = b"%02d" % value
        if rng.random() < 0.1:
            cell[rng.randrange(8, len(cell))] = rng.choice(b"0123456789:-/. T\x00\xff\x80a")
        if rng.random() < 0.01:
            cell[rng.randrange(8)] = rng.choice(b"09- \xff")
        cells.append(bytes(cell))
    return cells


@pytest.mark.parametrize("ending", ENDINGS)
def test_iso_columns_equal_timestamps_one_by_one(ending: str) -> None:
    rng = random.Random(28)  # noqa: S311
    parsed_here = 0
    for _ in range(25):
        cells = dirty_timestamps(rng, ending)
        parsed = parse_iso_cells(pa.array(cells, pa.binary()))
        if parsed is None:
            continue
        for cell, quarter, past, is_other in zip(cells, *(column.tolist() for column in parsed), strict=True):
            expected = parse_timestamp(cell, (LOCAL_ISO,))
            if not is_other:
                assert expected is not None, cell
                assert (quarter, past) == (expected.ns // QUARTER_NS, expected.ns % QUARTER_NS // MINUTE_NS), cell
                parsed_here += 1
            elif expected is not None and 1970 <= int(cell[:4]) < 2200 and cell[10:11] == cells[0][10:11]:
                assert expected.ns % MINUTE_NS or cell[11:13] == b"24", cell  # every sound minute is
    assert parsed_here > 300


@pytest.mark.parametrize("seed", range(8))
def test_dirty_files_are_read_as_by_a_plain_reader(seed: int) -> None:
    rng = random.Random(seed)  # noqa: S311
    header = London().recognise(["LCLid,DateTime,KWH/hh (per half hour)"])
    assert header is not None
    data = dirty_file(rng)
    parsed = parse_lines(data, layout=London(), header=header, rules=ReadingRules())
    records = parsed.records
    kept = np.flatnonzero(records.reason == int(RejectionReason.KEPT))
    names, columns = [records.ids[code] for code in records.household[kept]], (records.time, records.energy_wh[:, 0])
    found = {
        row: (name, time, energy)
        for row, name, time, energy in zip(
            parsed.row[kept].tolist(), names, *(column[kept].tolist() for column in columns), strict=True
        )
    }
    reasons = zip(parsed.rejected_row.tolist(), parsed.rejected_reason.tolist(), strict=True)
    expected = plain_rows(data)
    assert parsed.rows_read == len(expected)
    assert found | {row: RejectionReason(reason).name for row, reason in reasons} == expected
    assert {type(row) for row in expected.values()} == {tuple, str}


def dirty_file(rng: random.Random) -> bytes:
    """Return lines as published, some of them with damage: odd fields, and any byte in any place."""
    ending, damage = rng.choice([b"\n", b"\r\n"]), rng.choice([0, 0.02, 0.1])
    lines = []
    for name in (b"MAC000002", b" MAC3 ", b"MAC000002", b'"MAC4"', b"\xc3\xa9"):
        begin = datetime(rng.choice([1969, 1970, 2012, 2199]), rng.randint(1, 12), 1)
        for half_hour in range(60):
            moment = begin + timedelta(minutes=30 * half_hour + rng.choice([0] * 20 + [7, 15]))
            stamp = f"{moment:%Y-%m-%d %H:%M}{rng.choice(ENDINGS) if damage else ':00.0000000'}"
            reading = f" {rng.randrange(2000) / 1000} "
            if rng.random() < damage:
                stamp = rng.choice(
                    [f"{moment:%d/%m/%Y %H:%M:%S}", "31/02/2013 00:30:00", "2013-02-30 00:30", "", stamp]
                )
                reading = rng.choice(
                    ["Null", "", " 1e-1", "x", "-1", "inf", "nan", "51", "50.0004", "1,5", '"0.5"', ".5"]
                )
            line = bytearray(b",".join([name, stamp.encode(), reading.encode()]))
            if rng.random() < damage:
                line[rng.randrange(len(line))] = rng.choice(b'0 ,"\t\x00\x7f\xff\r\n;')
            lines.append(bytes(line))
    return ending.join(lines) + (b"" if rng.random() < 0.3 else ending)


def plain_rows(data: bytes) -> dict[int, tuple[str, int, int] | str]:
    """Return (household, day x 48 + slot, Wh) of each row, or why it is rejected, by the rules alone, line by line."""
    lines = data.removesuffix(b"\n").split(b"\n")
    return {number: plain_row(line.removesuffix(b"\r")) for number, line in enumerate(lines)}


def plain_row(line: bytes) -> tuple[str, int, int] | str:
    """Return one row as `plain_rows` does."""
    if not line or any(byte in b"\x7f" or (byte < 32 and byte != 9) for byte in line):
        return "LINE"
    fields = plain_fields(line)
    if fields is None:
        return "LINE"
    if len(fields) != 3:
        return "FIELDS"
    try:
        household = fields[0].decode().removeprefix("\ufeff").strip(" \t")
    except UnicodeDecodeError:
        household = ""
    if not household:
        return "HOUSEHOLD"
    return plain_reading(household, plain_time(fields[1].strip(b" \t")), fields[2].strip(b" \t"))


def plain_fields(line: bytes) -> list[bytes] | None:
    """Return the fields of a line; None if a quote encloses no complete field."""
    fields, field, place = list[bytes](), bytearray(), 0
    while True:
        if line[place : place + 1] == b'"':
            place += 1
            while line[place : place + 1] not in (b'"', b"") or line[place : place + 2] == b'""':
                field += line[place : place + 1]
                place += 1 + (line[place : place + 2] == b'""')
            if line[place : place + 1] != b'"':
                return None
            place += 1
        else:
            while line[place : place + 1] not in (b",", b'"', b""):
                field += line[place : place + 1]
                place += 1
        if line[place : place + 1] not in (b",", b""):
            return None
        fields.append(bytes(field))
        field.clear()
        if place >= len(line):
            return fields
        place += 1


def plain_time(cell: bytes) -> datetime | None:
    """Return the timestamp of a cell, ISO or day first; None if it is none."""
    iso = re.fullmatch(rb"(\d{4})-(\d\d)-(\d\d)[ T](\d\d):(\d\d)(?::(\d\d)(?:\.(\d{1,9}))?)?", cell)
    day_first = re.fullmatch(rb"(\d\d?)/(\d\d?)/(\d{4}) (\d\d?):(\d\d):(\d\d)", cell)
    try:
        if iso:
            numbers = [int(part or 0) for part in iso.groups()]
            return datetime(*numbers[:6], bool(numbers[6]))  # a fraction of any size is off the grid
        if day_first:
            day, month, year, *clock = (int(part) for part in day_first.groups())
            return datetime(year, month, day, *clock)
    except ValueError:
        return None
    return None


def plain_reading(household: str, end: datetime | None, cell: bytes) -> tuple[str, int, int] | str:
    """Return the row of a household, a timestamp and the cell of a reading."""
    half_hours = None if end is None else (end - datetime(1970, 1, 1)) // timedelta(minutes=30) - 1
    if half_hours is None or not 0 <= half_hours < (datetime(2200, 1, 1) - datetime(1970, 1, 1)).days * 48:
        return "DATE"
    if cell in (b"", b"Null"):
        return "MISSING"
    try:
        kwh = float(cell)
    except ValueError:
        return "TEXT"
    if not math.isfinite(kwh) or kwh < 0:
        return "NEGATIVE" if math.isfinite(kwh) else "NOT_FINITE"
    assert end is not None
    on_grid = end.minute % 30 == 0 and not end.second and not end.microsecond
    wh = round(kwh * 1000)
    if wh > 50_000 or not on_grid:
        return "ABOVE_BOUND" if wh > 50_000 else "OFF_GRID"
    return household, half_hours, wh


def test_sound_lines_are_counted_and_broken_ones_noticed() -> None:
    rng = random.Random(30)  # noqa: S311
    noticed = 0
    for _ in range(500):
        ending = rng.choice([b"\n", b"\r\n"])
        data = bytearray(b"".join(rng.choice([b"a,1", b"bc,2.5", b"d\xc3\xa9,3"]) + ending for _ in range(20)))
        for _ in range(rng.choice([0, 0, 1, 2])):
            data[rng.randrange(len(data))] = rng.choice(b'\x00\r\n\t\x7f"\x1f\xffz')
        content = bytes(data)
        ends = line_ends(content)
        if broken_lines(content, ends).any():
            lines = len([line for line in content.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n") if line])
            assert count_sound_lines(content) != lines  # as many rows as Arrow would return
            noticed += 1
        else:
            assert count_sound_lines(content) == len(ends)
    assert noticed > 50


@pytest.mark.parametrize("last", [b"", b"\n"])
def test_texts_of_lines_are_those_of_the_split_file(last: bytes) -> None:
    rng = random.Random(31)  # noqa: S311
    lines = [b"x" * rng.choice([0, 3, 50, 4000]) + b"%d" % number for number in range(300)]
    data = b"\r\n".join(lines) + last
    numbers = [*rng.sample(range(299), 40), 299]
    assert line_texts(data, np.unique(numbers)) == tuple(lines[number].decode() for number in sorted(set(numbers)))


@pytest.mark.parametrize("repeated", [0, 3, 400])
def test_deduplication_of_few_or_many_repeated_rows(repeated: int) -> None:
    rng = np.random.default_rng(32)
    time = np.sort(np.concatenate([np.arange(1000), rng.choice(1000, repeated, replace=False)]))
    none = np.zeros(len(time), np.int64)
    rows = StoredRows(("A",), none, none, time, none, np.arange(len(time)), (time * 7 % 100).reshape(-1, 1))
    found = deduplicate_rows(rows, complete_channels=SINGLE_CHANNEL)
    assert found.time.tolist() == list(range(1000))
    assert found.energy_wh.tolist() == [time * 7 % 100 for time in range(1000)]
    second = [number for number in range(1, len(time)) if time[number] == time[number - 1]]
    assert found.rejected_row.tolist() == second
    assert found.rejected_reason.tolist() == [RejectionReason.DUPLICATE] * repeated
