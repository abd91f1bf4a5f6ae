"""Spoilt files, archives, rosters and models are read as a second reader reads them, or refused in one line."""

# ruff: noqa: PLR0911, PT017, S311

from __future__ import annotations

import csv
import gzip
import io
import os
import random
import re
import signal
import struct
import warnings
import zipfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date, timedelta
from decimal import Decimal
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agedp.compute.engine_settings import Engine
from agedp.stages.aggregate import aggregate
from agedp.stages.ingest import ingest
from agedp.store.store import Store
from agedp_data.config import parse
from agedp_data.datasets.csv_lines import LONGEST_LINE
from agedp_data.datasets.csv_parsing import parse_lines
from agedp_data.datasets.filesystem import list_input_files, open_decompressed
from agedp_data.datasets.registry import layout_of
from agedp_data.datasets.validation import NamedColumns, ReadingRules
from agedp_data.errors import AgedpError, InputError
from agedp_data.leakage.bound_table import LeakageBound
from agedp_data.model import read_model
from agedp_data.roster import READ_OFF_MARK, read_roster
from agedp_data.series.mean import Mean
from tests.agedp_data.datasets.parsing import RULES, Settled, settle
from tests.fuzz.mutations import IDS, MUTATIONS, NUMBERS, PLANS, STAMPS, mutated, on_cell
from tests.fuzz.originals import originals, read_file
from tests.fuzz.plain_reader import Read, households_of, lines_of
from tests.fuzz.run_files import sound, toml

# Spoilt files are read as a second reader reads them, row by row, or refused with one line that has a reason.

NAMES = sorted(originals())


@contextmanager
def in_time(seconds: int = 20) -> Iterator[None]:
    """Fail what hangs."""

    def stop(*_: object) -> None:
        raise TimeoutError(f"no answer in {seconds} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def agree(found: Settled, expected: Read) -> None:
    """Require that the project reads what the second reader reads; a tie may be rounded either way."""
    assert found.rows == expected.rows == found.rows_kept + found.rows_rejected
    assert found.rows_kept == expected.rows_kept
    assert found.readings.keys() == expected.kept.keys()
    differing = {key for key, wh in found.readings.items() if wh != expected.kept[key]}
    assert differing <= expected.ties, "another value"
    assert all(abs(found.readings[key] - expected.kept[key]) <= 1 for key in differing)


def judged(path: Path, name: str, data: bytes, chunk_bytes: int = 2**24) -> str:
    """Have both readers read a file, and return "read" or why it was refused."""
    path.write_bytes(data)
    expected = originals()[name].read(data)
    try:
        with in_time():
            found = read_file(path, originals()[name], chunk_bytes=chunk_bytes)
    except InputError as refusal:
        assert expected.why_refused, f"refused without a reason: {refusal.private}"
        for text in (str(refusal), refusal.private):
            assert text.isprintable(), repr(text)
            assert len(text) < 1000
        assert not re.search(r"MAC0|k1|k,2", str(refusal)), "a household in the public text"
        return expected.why_refused
    assert not expected.why_refused, f"accepted in spite of: {expected.why_refused}"
    agree(found, expected)
    return "read"


@pytest.mark.parametrize("name", NAMES)
def test_an_unspoilt_file_is_read_as_the_second_reader_reads_it(tmp_path, name):
    data = originals()[name].data
    assert judged(tmp_path / "a.csv", name, data) == "read"
    found = originals()[name].read(data)
    assert 10 < found.rows_kept < found.rows, "the second reader keeps some and rejects some"


EASILY_WRONG = [
    # a torn disk leaves zeros behind a file that began well: rows of their own, beyond what tells the format
    ("london kaggle", b"MAC000003,", b"MAC000002," + b"x" * 70_000 + b"\n" + b"\x00" * 50 + b"\nMAC000003,", "read"),
    # an empty cell, where "" is no word for missing, took all other odd cells of its chunk with it
    ("long", b"x2,143,", b"x2,,", "read"),
    # a date alone was taken for its midnight, and so for the last half-hour of the day before
    ("london kaggle", b"2013-02-28 19:00:00", b"2013-02-28", "read"),
    ("london publisher", b"2013-02-28 19:00:00.0000000", b"2013-02-28 19", "read"),
    # a quote that never closes was taken off a name
    ("london kaggle", b"tstp", b'"tstp', "header"),
    ("ausgrid 2011", b",6:30,", b',"6:30,', "header"),
    # a stray quote took all rows behind it with it
    ("london kaggle", b",2013-02-28 19:00:00, ", b',2013-02-28 19:00:00,"', "read"),
    # one byte stopped the night for everybody
    ("ausgrid 2011", b",GC,", b",G\x00C,", "read"),
    ("london kaggle", b"2013-02-28 19:00:00", b"29/02/2026 10:00:00", "read"),
    ("long", b"26.10.2013 20:30", b"2013-10-26 20:30", "read"),
    # a lone carriage return ended a row
    ("london kaggle", b",2013-02-28 19:00:00", b"\r,2013-02-28 19:00:00", "read"),
    # a row with too few fields decided the date format of the file
    ("london sample", b"MAC000002,", b"MAC000002,Std,2013-02-28 19:00:00\nMAC000002,", "read"),
]


@pytest.mark.parametrize(("name", "old", "new", "outcome"), EASILY_WRONG)
def test_what_is_easily_read_wrongly_is_read_as_by_the_second_reader(tmp_path, name, old, new, outcome):
    data = originals()[name].data
    assert old in data
    assert judged(tmp_path / "a.csv", name, data.replace(old, new, 1)) == outcome


@pytest.mark.parametrize("examples", [25, pytest.param(1000, marks=pytest.mark.long)])
@pytest.mark.parametrize("name", NAMES)
def test_every_row_of_a_spoilt_file_is_kept_or_rejected(tmp_path, name, examples):
    met: Counter[str] = Counter()

    @settings(
        max_examples=examples, derandomize=examples < 1000, database=None, print_blob=True,
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(plan=PLANS, chunk_bytes=st.sampled_from([2**24, 300, 40]))
    def example(plan: list[tuple[str, int]], chunk_bytes: int) -> None:
        met[judged(tmp_path / "a.csv", name, mutated(originals()[name].data, plan), chunk_bytes)] += 1

    example()
    assert met["read"] > examples / 4, met
    assert examples < 1000 or met.total() - met["read"] > examples / 50, met


LABELS = ",".join([*(f"{m // 60}:{m % 60:02d}" for m in range(30, 1440, 30)), "0:00"])
CELLS = ",".join(str(slot % 10) for slot in range(48))
HEADER = f"Customer,Generator Capacity,Postcode,Consumption Category,date,{LABELS},Row Quality"
SMALL = {  # which original's reader, header lines, rows, and where in a row the household is
    "london": (
        "london publisher",
        b"LCLid,stdorToU,DateTime,KWH/hh (per half hour) \r\n",
        b"M1,Std,2013-02-28 19:00:00.0000000, 0.143 \r\n"
        b'"M1",ToU,2013-02-28 19:30:00,0.2\n'
        b'"M,2",Std,28/02/2013 19:00:00, 1 \r\n'
        b"M3,Std,2013-02-28 19:00:00,Null\r\n"
        b"M3,Std,2013-02-28 19:30:00,0.5",
        0,
    ),
    "long": (
        "long",
        b"note,Wh,read at,meter\n",
        b"x,143,26.10.2013 20:30,k1\n"
        b"y,NA,26.10.2013 21:00,k1\r\n"
        b'z,-9,26.10.2013 20:30,"k""2"\n'
        b'"a,b",7,26.10.2013 21:30,\xc3\xa93\n'
        b"\xe9,1.5,26.10.2013 20:30,k4\n",
        3,
    ),
    "long iso": (
        "long iso",
        b"id,time,kWh\n",
        b"h1,2013-02-28T19:00:00+01:00,0.1\n"
        b"h1,2013-02-28 19:00,0.2\n"
        b"h2,2013-02-28T19:00:00.000Z,1\n"
        b"h3,2013-02-28 19:30:00-0330,0.3\n",
        0,
    ),
    "ausgrid": (
        "ausgrid 2012",
        f'"Solar ""home"" data",,\n{HEADER}\r\n'.encode(),
        f"1,,,GC,6/10/2012,{CELLS},\r\n1,,,CL,6/10/2012,{CELLS},NA\r\n2,,,GC,7-Oct-12,{CELLS},\r\n".encode(),
        0,
    ),
}


def changes(data: bytes) -> list[tuple[int, bytes]]:
    """Every place and the bytes there that make a file differ by one byte: another one, one more, or one less."""
    bytes_ = [bytes([value]) for value in range(256)]
    return [
        (at, odd)
        for at in range(len(data) + 1)
        for odd in (b"", *bytes_, *(each + data[at : at + 1] for each in bytes_))
    ]


@pytest.mark.parametrize("sample", [200, pytest.param(0, marks=pytest.mark.long)])
@pytest.mark.parametrize("name", SMALL)
def test_a_single_byte_affects_only_whom_its_line_names(tmp_path, name, sample):
    original, header, rows, place = SMALL[name]
    of, choice = originals()[original], random.Random(20261122)
    layout = layout_of(of.dataset, of.rules.columns)
    recognised = layout.recognise(header.decode().splitlines())
    before = of.read(header + rows).kept
    of_rows, of_header = changes(rows), changes(header)
    for at, odd in choice.sample(of_rows, sample) if sample else of_rows:
        changed = rows[:at] + odd + rows[at + 1 :]
        found = settle(layout, of.rules, [parse_lines(changed, layout=layout, header=recognised, rules=of.rules)])
        expected = of.read(header + changed)
        assert not expected.why_refused
        assert found.rows == len(lines_of(changed))
        agree(found, expected)
        affected = {home for (home, _), _ in before.items() ^ expected.kept.items()}
        old, new = Counter(lines_of(rows)), Counter(lines_of(changed))
        assert affected <= households_of([*(old - new), *(new - old)], place), changed
    some = choice.sample(of_header, 60) if sample else of_header
    met = Counter(
        judged(tmp_path / "a.csv", original, header[:at] + odd + header[at + 1 :] + rows, 100) for at, odd in some
    )
    assert set(met) == {"read", "header"} or sample


NAMES_OF_FILES = [
    b"two\nlines.csv",
    b"\xff\xfe.csv",
    b"\xe2\x80\xae.csv",
    b"[a].csv",
    b"{day}.csv",
    b" .csv",
    b"'\".csv",
]


@pytest.mark.parametrize("name", NAMES_OF_FILES)
@pytest.mark.parametrize("content", [originals()["london kaggle"].data, b"\x00", b"wrong,header\n"])
def test_a_file_of_any_name_is_read_once_or_refused_in_one_line(tmp_path, name, content):
    path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/" + name))
    path.write_bytes(content)
    (tmp_path / "again.csv").symlink_to(path)
    (tmp_path / "a.csv").hardlink_to(path)
    store = Store(tmp_path / "store", "london", RULES)
    try:
        delivery = ingest(
            store, [str(tmp_path), f"{tmp_path}/a*", f"{tmp_path}//a.csv"], engine=Engine("synchronous", 1)
        )
    except InputError as refusal:
        assert not content.startswith(b"LCLid")
        assert refusal.private.isprintable()
        assert os.fsdecode(name) not in str(refusal)
        return
    assert content.startswith(b"LCLid")
    assert (len(delivery.contents), delivery.rows_read) == (1, content.count(b"\n") - 1)


# Packed input: read to the last byte, or refused with one line; never in part.

LONDON = originals()["london kaggle"]
DATA = LONDON.data


def zipped(members: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", method) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return packed.getvalue()


def zstandard(data: bytes) -> bytes:
    packed = pa.BufferOutputStream()
    with pa.CompressedOutputStream(packed, "zstd") as stream:
        stream.write(data)
    return packed.getvalue().to_pybytes()


def with_fields(archive: bytes, *fields: int) -> bytes:
    """Return a zip whose first member's flags and method are overwritten in both of its headers."""
    packed = bytearray(archive)
    for mark, at in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        struct.pack_into("<HH", packed, packed.index(mark) + at, *fields)
    return bytes(packed)


HALF = DATA.index(b"\n", len(DATA) // 2) + 1
SOUND = {
    "a.csv.gz": gzip.compress(DATA),
    "b.GZ": gzip.compress(DATA[:HALF]) + gzip.compress(DATA[HALF:]),
    "c.csv.gz": gzip.compress(DATA) + bytes(512),
    "d.csv.zip": zipped({"x.csv": DATA}),
    "e.zip": zipped({"deep/x.csv": DATA, "__MACOSX/x": b"x"}, zipfile.ZIP_STORED),
    "mac.zip": zipped({"x.csv": DATA, "__MACOSX/._x.csv": b"\0x", ".DS_Store": b"\0", "deep/.DS_Store": b"\0"}),
    "windows.zip": zipped({"deep/x.csv": DATA, "deep/Thumbs.db": b"\0", "desktop.ini": b"x"}),
    "f.zip": zipped({"x.csv": DATA}, zipfile.ZIP_LZMA),
    "g.csv.zst": zstandard(DATA),
    "h.zst": zstandard(DATA[:HALF]) + zstandard(DATA[HALF:]),
}
DAMAGED = "the archive is cut off or damaged; fetch it again"
REFUSED = {
    "a.csv.gz": (DATA, DAMAGED),
    "c.gz": (zipped({"x.csv": DATA}), DAMAGED),
    "d.gz": (gzip.compress(DATA) + b"more", DAMAGED),
    "e.gz": (gzip.compress(DATA)[:-9], DAMAGED),
    "f.gz": (gzip.compress(gzip.compress(DATA)), "is binary, not CSV"),
    "g.zip": (zipped({}), "the archive holds 0 files; one is expected"),
    "h.zip": (zipped({"a.csv": DATA, "b.csv": DATA}), "the archive holds 2 files; one is expected"),
    "i.zip": (zipped({"a.zip": zipped({"a.csv": DATA})}), "is binary, not CSV"),
    "j.zip": (with_fields(zipped({"a.csv": DATA}), 1, 8), "the archive is encrypted; extract it first"),
    "deflate64.zip": (
        with_fields(zipped({"a.csv": DATA}), 0, 9),
        r"this kind of zip \(deflate64\?\) cannot be read",
    ),
    "lzma.zip": (with_fields(zipped({"a.csv": DATA}), 0, zipfile.ZIP_LZMA), DAMAGED),
    "crc.gz": (gzip.compress(DATA)[:-8] + bytes(4) + gzip.compress(DATA)[-4:], DAMAGED),
    "m.zip": (zipped({"a.csv": DATA})[:-30], DAMAGED),
    "n.zst": (DATA, DAMAGED),
    "o.zst": (zstandard(DATA)[:-9], DAMAGED),
    "q.csv": (gzip.compress(DATA), "is binary, not CSV"),
    "s.zip": (zipped({"../../a/": b""}), "the archive holds 0 files; one is expected"),
}


@pytest.mark.parametrize("name", SOUND)
def test_a_packed_file_says_what_it_says_unpacked(tmp_path, name):
    (tmp_path / name).write_bytes(SOUND[name])
    found, expected = read_file(tmp_path / name, LONDON, chunk_bytes=300), LONDON.read(DATA)
    assert (found.rows, found.rows_kept, found.readings) == (expected.rows, expected.rows_kept, expected.kept)


@pytest.mark.parametrize("name", REFUSED)
def test_an_archive_that_cannot_be_decompressed_whole_is_refused(tmp_path, name):
    content, message = REFUSED[name]
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=rf"^input 1 of 1: {message}") as caught, in_time():
        read_file(tmp_path / name, LONDON, chunk_bytes=300)
    assert caught.value.private.startswith(f"{tmp_path / name}: ")
    assert caught.value.private.isprintable()


def spoilt(content: bytes, choice: random.Random) -> bytes:
    data = bytearray(content)
    for _ in range(choice.choice([1, 1, 2, 8])):
        at = choice.randrange(len(data) + 1)
        match choice.randrange(4):
            case 0 if data:
                data[min(at, len(data) - 1)] ^= 1 << choice.randrange(8)
            case 1:
                del data[at:]
            case 2:
                del data[at : at + choice.randrange(1, 9)]
            case _:
                data[at:at] = choice.randbytes(choice.randrange(1, 9))
    return bytes(data)


@pytest.mark.parametrize("trials", [100, pytest.param(10_000, marks=pytest.mark.long)])
def test_a_spoilt_archive_is_read_whole_or_refused(tmp_path, trials):
    """Without the frames of zstd, which carry no checksum here."""
    choice, met = random.Random(20261121), Counter()
    for _ in range(trials):
        name = choice.choice([name for name in SOUND if not name.endswith(".zst")])
        (tmp_path / name).write_bytes(spoilt(SOUND[name], choice))
        try:
            with in_time(), open_decompressed(list_input_files([str(tmp_path / name)]).sources[0]) as stream:
                found = stream.read()
        except InputError as refusal:
            met["refused"] += 1
            assert refusal.private.isprintable()
            assert len(refusal.private) < 500
            continue
        met["read"] += 1
        # Two members of a gzip file are two files: cut between them it is whole.
        assert found == DATA or (name == "b.GZ" and found in (DATA[:HALF], DATA[HALF:]))
    assert met["refused"] > trials / 3
    assert met["read"] > 0


# Whatever the text of one household's day becomes, the sum of that day moves by at most the clamp, and no other day.

HOMES = ("M1", "M2", "M3")
DAYS = tuple(date(2013, 2, 3) + timedelta(days=i) for i in range(3))
CLAMP_WH = 20_000
SERIES = {"mean": Mean(statistic="mean", clamp_kwh=Decimal(20), missing_kwh=Decimal(5))}
NAMED = NamedColumns("id", "at", "iso", "start", "UTC", "UTC", "wh", "Wh", ("",))


def london(home, day):
    ends = [f"{day} {(i + 1) // 2:02d}:{(i + 1) % 2 * 30:02d}:00.0000000" for i in range(47)]
    return [f"{home},Std,{end}, 0.{i:02d} " for i, end in enumerate([*ends, f"{day + timedelta(days=1)} 00:00:00"])]


def long(home, day):
    return [f"{10 * i},{day}T{i // 2:02d}:{i % 2 * 30:02d}Z,{home}" for i in range(48)]


def ausgrid(home, day):
    cells = ",".join(f"0.{i:02d}" for i in range(48))
    return [f"{home},3,2076,{category},{day.day}/{day:%m/%Y},{cells}," for category in ("GC", "CL")]


LAYOUTS = {
    "london": ("LCLid,stdorToU,DateTime,KWH/hh (per half hour) ", london, ReadingRules()),
    "long": ("wh,at,id", long, ReadingRules(columns=NAMED)),
    "ausgrid": (HEADER, ausgrid, ReadingRules()),
}
ODD = [b'"', b'""', b"\x00", b"\x01", b"\t", b"\r", b"\n", b"\x0b", b"\x1a", b"\x1f", b"\x7f", b"\x85", b"\xff", b","]
ODD += [b'\n"', b'",', b"\xef\xbb\xbf", b"\xe2\x80\xa8", b"-", b"x", b"nan"]


def spoilt_day(lines, way, choice):
    """Return other lines in the place of a day's: odd bytes, open quotes, an endless line, some lines less, or junk."""
    lines, number = list(lines), choice.randrange(len(lines))
    if way == 0:
        for _ in range(choice.choice([1, 3, 30])):
            number = choice.randrange(len(lines))
            at, more = choice.randrange(len(lines[number]) + 1), choice.randrange(2)
            lines[number] = lines[number][:at] + choice.choice(ODD) + lines[number][at + more :]
    elif way == 1:
        for number in choice.sample(range(len(lines)), choice.randrange(1, len(lines) + 1)):
            head, comma, tail = lines[number].rpartition(b",")
            lines[number] = head + comma + b'"' + tail
    elif way == 2:
        lines[number] += choice.choice([b"x", b'"', b"\x00", b",", b" "]) * choice.choice([LONGEST_LINE, 300_000])
    elif way == 3:
        del lines[number:]
    else:
        lines = [b"".join(choice.choices(ODD, k=choice.randrange(40))) for _ in range(choice.randrange(60))]
    return lines


def sums(folder, dataset, rules, data, chunk_bytes):
    """Return the true sums of the days, every row accounted for."""
    (folder / "in").mkdir(parents=True)
    (folder / "in" / "a.csv").write_bytes(data)
    (folder / "roster.csv").write_text("household_id,from,to\n" + "".join(f"{home},2010-01-01,\n" for home in HOMES))
    store, engine = Store(folder / "store", dataset, rules), Engine("synchronous", 1, chunk_bytes)
    delivery = ingest(store, [str(folder / "in")], engine=engine, has_begun=True)
    assert delivery.unreadable == ()
    assert delivery.rows_read == data.count(b"\n") - 1 == delivery.rows_kept + sum(delivery.rejected.values())
    roster = read_roster(folder / "roster.csv")
    found = aggregate(store, delivery, roster, days=DAYS, series=SERIES)
    return [int(found[day, "mean"].exact.sum()) for day in DAYS]


@pytest.mark.parametrize("seeds", [range(5), pytest.param(range(5, 300), marks=pytest.mark.long)])
@pytest.mark.parametrize("dataset", LAYOUTS)
def test_the_raw_text_of_a_day_moves_its_own_sum_by_at_most_the_clamp(dataset, seeds, tmp_path):
    header, write, rules = LAYOUTS[dataset]
    for seed in seeds:
        choice = random.Random(seed)
        lines = {(home, day): [line.encode() for line in write(home, day)] for home in HOMES for day in DAYS}
        home, day, chunk_bytes = choice.choice(HOMES), choice.choice(DAYS), choice.choice([1000, 2**20])
        found, changed = [], {**lines, (home, day): spoilt_day(lines[home, day], seed % 5, choice)}
        for name, texts in (("before", lines), ("after", changed)):
            data = b"\n".join([header.encode(), *(line for own in texts.values() for line in own)]) + b"\n"
            found.append(sums(tmp_path / str(seed) / name, dataset, rules, data, chunk_bytes))
        for each, before, after in zip(DAYS, *found, strict=True):
            assert abs(after - before) <= (CLAMP_WH if each == day else 0), (seed, home, day)


# Rosters, curves and kernels that went wrong: read as they say, or refused with one line.

TRIALS = pytest.mark.parametrize("trials", [60, pytest.param(5000, marks=pytest.mark.long)])
ROSTER = (
    "household_id,from,to,tariff,area\n"
    + "".join(
        f"MAC{i:06},20{i % 20:02}-02-28,{'' if i % 3 else f'20{i % 20 + 3:02}-02-28'},Std,a{i % 4}\n" for i in range(30)
    )
    + '"MAC,1",2012-01-01,2012-12-31,ToU,"a ""b"""\nMAC000001,2010-01-01,,ToU,a1\n'
).replace("MAC000001,2001-02-28,,", "MAC000001,2001-02-28,2009-12-31,")
DATES = [
    *STAMPS, "2013-1-1", "20130101", "2013-W01-1", "2013-001", "\u0662013-01-01", "9999-12-31", "0001-01-01",
    "0000-01-01",
]  # fmt: skip


def spoilt_roster(data: bytes, choice: random.Random, cells: list[str]) -> bytes:
    """Return a file after one to four mutations, or with one odd cell."""
    if choice.random() < 0.3:
        return on_cell(cells)(data, choice)
    names = choice.choices(sorted(MUTATIONS), k=choice.randint(1, 4))
    return mutated(data, [(name, choice.randrange(2**32)) for name in names])


def check_line(error: AgedpError) -> None:
    for line in (str(error), error.private):
        assert line.isprintable(), repr(line)
        assert len(line) < 500
    assert "MAC0" not in str(error)


def counted(text: str) -> dict[str, list[tuple[date, date, tuple[str, ...]]]] | None:
    """The spans of a roster as a second reader understands them; None if it does not."""
    text = text.removeprefix("\ufeff")
    text = text.partition("\n")[2] if text.startswith(READ_OFF_MARK) else text
    try:
        rows = list(csv.reader(io.StringIO(text, newline=""), strict=True))
    except csv.Error:
        return None
    header = [name.strip() for name in rows[0]] if rows else []
    if header[:3] != ["household_id", "from", "to"] or "" in header or len(set(header)) < len(header):
        return None
    spans: dict[str, list[tuple[date, date, tuple[str, ...]]]] = {}
    for row in rows[1:]:
        if not any(row):
            continue
        if len(row) != len(header):
            return None
        home, first, last, *groups = (cell.strip(" \t") for cell in row)
        try:
            span = (date.fromisoformat(first), date.fromisoformat(last) if last else date.max, tuple(groups))
        except ValueError:
            return None
        if (
            not home
            or span[1] < span[0]
            or any(len(day) != 10 or day[4] != "-" or "W" in day for day in (first, last or "2013-01-01"))
        ):
            return None
        spans.setdefault(home, []).append(span)
    for each in spans.values():
        each.sort()
        if any(later[0] <= earlier[1] for earlier, later in pairwise(each)):
            return None
    return spans or None


@TRIALS
def test_a_spoilt_roster_counts_whom_it_says_or_is_refused(tmp_path, trials):
    choice, met, path = random.Random(trials), Counter(), tmp_path / "roster.csv"
    for _ in range(trials):
        path.write_bytes(data := spoilt_roster(ROSTER.encode(), choice, DATES))
        try:
            expected = counted(data.decode())
        except UnicodeDecodeError:
            expected = None
        try:
            with in_time():
                found = read_roster(path)
        except InputError as error:
            assert expected is None, error.private
            check_line(error)
            met["refused"] += 1
            continue
        met["read"] += 1
        assert expected is not None
        for day in (date(2000, 2, 28), date(2009, 12, 31), date(2012, 6, 1), date(1, 1, 1), date.max):
            there = {home: span[2] for home, spans in expected.items() for span in spans if span[0] <= day <= span[1]}
            of, rows = found.rows, np.flatnonzero(found.rows.on(day))
            groups = [tuple(column[row] for column in of.groups.values()) for row in rows]
            assert {of.ids[of.household[row]]: group for row, group in zip(rows, groups, strict=True)} == there
            assert found.counts.households(day) == len(rows) == len(there)
    assert min(met["read"], met["refused"]) > trials / 10, met


def test_a_roster_that_is_no_file_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe.csv")
    for path in (tmp_path / "pipe.csv", Path("/dev/zero"), tmp_path, tmp_path / "none.csv"):
        with in_time(5), pytest.raises(InputError, match=r"^\[population\] roster: (is not a file|cannot be read)"):
            read_roster(path)


GIVEN = {
    "curve": b"age_days,total_variation\n1,0.9\n2,0.5\n7,0.25\n30,0\n",
    "kernel": b"0.5,0.3,0.2\n0.1,0.8,0.1\n0.25,0.25,0.5\n",
}
ODD_CELLS = [*NUMBERS, *IDS, "1e999999999", "1e-999999999", "9" * 5000, "0.9999999999", "1.0000000001", "1e-400", "-0"]


def never_below(bound: LeakageBound, text: str) -> None:
    """What is promised at each age of a curve is not below what the curve says."""
    rows = [row for row in csv.reader(text.splitlines()) if row]
    titled = any(cell.strip()[:1] not in set("0123456789.+-") for cell in rows[0])
    for age, value in rows[1:] if titled else rows:
        at = int(np.searchsorted(bound.ages, float(age) * 48 - 1e-9))
        assert Decimal(float(bound.bounds["total_variation"][at])) >= Decimal(value) - Decimal("1e-15")
        assert (Decimal(value) > 0) <= (bound.bounds["total_variation"][at] > 0)


@TRIALS
@pytest.mark.parametrize("kind", GIVEN)
def test_a_spoilt_curve_or_kernel_is_a_bound_or_is_refused(tmp_path, kind, trials):
    choice, met = random.Random(trials), Counter()
    document = sound("model", "declared")
    for key in ("kernel", "step"):
        del document["model"][key]
    document["model"][kind] = "given.csv"
    run = parse(toml(document), base=tmp_path, name="r.toml")
    for _ in range(trials):
        (tmp_path / "given.csv").write_bytes(data := spoilt_roster(GIVEN[kind], choice, ODD_CELLS))
        try:
            with in_time(), warnings.catch_warnings():
                warnings.simplefilter("error")
                found = read_model(run)
        except AgedpError as error:
            met["refused"] += 1
            check_line(error)
            continue
        met["read"] += 1
        if kind == "curve":
            never_below(found.leakage_bound, data.decode("utf-8-sig"))
    assert min(met["read"], met["refused"]) > trials / 20, met
