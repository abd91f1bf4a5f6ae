"""Columns that are parsed as a whole equal cells that are parsed one by one, of sound and of damaged bytes."""

from __future__ import annotations

import random
from datetime import datetime, timedelta

import numpy as np
import pyarrow as pa
import pytest

from agedp_data.datasets.csv_lines import broken_lines, count_sound_lines, line_ends, line_texts
from agedp_data.datasets.csv_parsing import parse_lines
from agedp_data.datasets.deduplication import StoredRows, deduplicate_rows
from agedp_data.datasets.iso_cells import parse_iso_cells
from agedp_data.datasets.layout import SINGLE_CHANNEL
from agedp_data.datasets.london import London
from agedp_data.datasets.timestamps import LOCAL_ISO, parse_timestamp
from agedp_data.datasets.validation import ReadingRules, RejectionReason

QUARTER_NS = 900 * 10**9
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
        for cell, quarter, is_exact, is_other in zip(cells, *(column.tolist() for column in parsed), strict=True):
            expected = parse_timestamp(cell, (LOCAL_ISO,))
            if not is_other:
                assert expected is not None, cell
                assert (quarter, is_exact) == (expected.ns // QUARTER_NS, expected.ns % QUARTER_NS == 0), cell
                parsed_here += 1
            elif expected is not None and 1970 <= int(cell[:4]) < 2200 and cell[10:11] == cells[0][10:11]:
                assert expected.ns % (60 * 10**9), cell  # every sound minute is parsed here
    assert parsed_here > 300


def test_dirty_rows_have_the_records_of_each_row_alone() -> None:
    rng = random.Random(29)  # noqa: S311
    header = London().recognise(["LCLid,DateTime,KWH/hh (per half hour)"])
    assert header is not None
    for block in range(6):
        rows = [
            b"%s,%s, %s " % (name, cell, reading)
            for name in (b"MAC1", rng.choice([b"MAC22", b"\xc3\xa9", b""]), b" MAC1")
            for cell, reading in zip(
                dirty_timestamps(rng, ENDINGS[block % len(ENDINGS)])[:40],
                rng.choices([b"0.25", b"0", b"1.4529999", b"-1", b"nan", b"Null", b"x", b"51", b"1e9"], k=40),
                strict=True,
            )
        ]
        sound = [row for row in rows if b"\n" not in row]
        ending = rng.choice([b"\n", b"\r\n"])
        data = b"".join(row + ending for row in sound)
        together = parse_lines(data, layout=London(), header=header, rules=ReadingRules())
        assert together.rows_read == len(sound)
        records = iter(zip(together.records.reason, together.records.time, together.records.energy_wh, strict=True))
        reason_by_row = dict(zip(together.rejected_row.tolist(), together.rejected_reason.tolist(), strict=True))
        for number, row in enumerate(sound):
            alone = parse_lines(row + b"\n", layout=London(), header=header, rules=ReadingRules())
            expected = alone.rejected_reason.tolist() or [RejectionReason.KEPT]
            assert reason_by_row.get(number, 0) == expected[0], row
            if len(alone.row):
                reason, time, energy = next(records)
                assert reason == alone.records.reason[0]
                if reason == RejectionReason.KEPT:
                    assert (time, energy.tolist()) == (alone.records.time[0], alone.records.energy_wh[0].tolist())


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
