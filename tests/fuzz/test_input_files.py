"""Spoilt files are read as a second reader reads them, row by row, or refused with one line that has a reason.

Each spoilt file is read by the project and by `plain_reader`, which uses no CSV library; both agree, rows read equal
line ends, only the header line makes the project refuse a file, and only households on changed lines are affected.
"""

# ruff: noqa: PT017, S311  (either ending is judged; choices, not secrets)

from __future__ import annotations

import os
import random
import re
import signal
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agedp.compute.engine_settings import Engine
from agedp.stages.ingest import ingest
from agedp.store.store import Store
from agedp_data.datasets.csv_parsing import parse_lines
from agedp_data.datasets.registry import layout_of
from agedp_data.errors import InputError
from tests.agedp_data.datasets.parsing import RULES, Settled, settle
from tests.fuzz.mutations import PLANS, mutated
from tests.fuzz.originals import originals, read_file
from tests.fuzz.plain_reader import Read, households_of, lines_of

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
