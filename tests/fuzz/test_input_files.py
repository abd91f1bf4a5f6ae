"""Spoilt files are read as a second reader reads them, row by row, or refused with one line that has a reason."""

# ruff: noqa: PT017  (either ending is judged)

from __future__ import annotations

import re
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agedp_data.errors import InputError
from tests.fuzz.mutations import PLANS, mutated
from tests.fuzz.originals import originals
from tests.fuzz.parsing import found_in

_SECONDS = 20
NAMES = sorted(originals())


@contextmanager
def in_time(seconds: int = _SECONDS) -> Iterator[None]:
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


def compare(path: Path, name: str, plan: list[tuple[str, int]], block_bytes: int) -> str:
    """Spoil a file and have both readers read it."""
    original = originals()[name]
    return judged(path, name, mutated(original.data, plan), block_bytes)


def judged(path: Path, name: str, data: bytes, block_bytes: int) -> str:
    """Have both readers read a file, and return "read" or why it was refused."""
    original = originals()[name]
    path.write_bytes(data)
    expected = original.read(data)
    try:
        with in_time():
            found = found_in(path, original.dataset, original.rules, block_bytes=block_bytes)
    except InputError as refusal:
        assert expected.why_refused, f"refused without a reason: {refusal.private}"
        for text in (str(refusal), refusal.private):
            assert text.isprintable(), repr(text)
            assert len(text) < 1000
        assert not re.search(r"MAC0|k1|k,2", str(refusal)), "a household in the public text"
        return expected.why_refused
    assert not expected.why_refused, f"accepted in spite of: {expected.why_refused}"
    assert found.rows == expected.rows
    assert found.rows_kept + found.rows_aside == found.rows
    assert found.rows_kept == expected.rows_kept
    assert found.kept.keys() == expected.kept.keys()
    differing = {key for key, wh in found.kept.items() if wh != expected.kept[key]}
    assert differing <= expected.ties, "another value"
    assert all(abs(found.kept[key] - expected.kept[key]) <= 1 for key in differing)
    return "read"


EASILY_WRONG = {
    # a torn disk leaves zeros behind a file that began well: rows of their own, beyond what tells the format
    "zeros": (
        "london kaggle",
        b"MAC000003,",
        b"MAC000002," + b"x" * 70_000 + b"\n" + b"\x00" * 50 + b"\nMAC000003,",
        "read",
    ),
    # an empty cell, where "" is no word for missing, took all other odd cells of its block with it
    "empty cell": ("long", b"x2,143,", b"x2,,", "read"),
    # a date alone was taken for its midnight, and so for the last half-hour of the day before
    "date alone": ("london kaggle", b"2013-02-28 19:00:00", b"2013-02-28", "read"),
    "hour alone": ("london publisher", b"2013-02-28 19:00:00.0000000", b"2013-02-28 19", "read"),
    # a quote that never closes was taken off a name
    "half quoted": ("london kaggle", b"tstp", b'"tstp', "header"),
    "half quoted label": ("ausgrid 2011", b",6:30,", b',"6:30,', "header"),
    # a stray quote took all rows behind it with it
    "stray quote": ("london kaggle", b",2013-02-28 19:00:00, ", b',2013-02-28 19:00:00,"', "read"),
    # one byte stopped the night for everybody
    "NUL": ("ausgrid 2011", b",GC,", b",G\x00C,", "read"),
    "another date": ("london kaggle", b"2013-02-28 19:00:00", b"29/02/2026 10:00:00", "read"),
    "another declared date": ("long", b"26.10.2013 20:30", b"2013-10-26 20:30", "read"),
    # a lone carriage return ended a row
    "carriage return": ("london kaggle", b",2013-02-28 19:00:00", b"\r,2013-02-28 19:00:00", "read"),
    # a row with too few fields decided the date format of the file
    "short first row": ("london sample", b"MAC000002,", b"MAC000002,Std,2013-02-28 19:00:00\nMAC000002,", "read"),
}


@pytest.mark.parametrize("name", EASILY_WRONG)
def test_what_is_easily_read_wrongly_is_read_as_the_second_reader_reads_it(tmp_path, name):
    original, old, new, outcome = EASILY_WRONG[name]
    data = originals()[original].data
    assert old in data
    assert judged(tmp_path / "a.csv", original, data.replace(old, new, 1), 2**24) == outcome


BLOCKS = st.sampled_from([2**24, 300, 40])


@pytest.mark.parametrize("name", NAMES)
def test_an_unspoilt_file_is_read_as_the_second_reader_reads_it(tmp_path, name):
    assert compare(tmp_path / "a.csv", name, [], 2**24) == "read"
    found = originals()[name].read(originals()[name].data)
    assert 10 < found.rows_kept < found.rows, "the second reader keeps some and sets some aside"


def _fuzzed(folder: Path, name: str, examples: int) -> None:
    met: dict[str, int] = {}

    @settings(
        max_examples=examples,
        derandomize=examples < 1000,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
        print_blob=True,
    )
    @given(plan=PLANS, block_bytes=BLOCKS)
    def example(plan: list[tuple[str, int]], block_bytes: int) -> None:
        what = compare(folder / "a.csv", name, plan, block_bytes)
        met[what] = met.get(what, 0) + 1

    example()
    assert met["read"] > examples / 4, met
    assert examples < 1000 or sum(met.values()) - met["read"] > examples / 50, met


@pytest.mark.parametrize("examples", [25, pytest.param(1000, marks=pytest.mark.long)])
@pytest.mark.parametrize("name", NAMES)
def test_every_row_of_a_spoilt_file_is_kept_or_set_aside(tmp_path, name, examples):
    _fuzzed(tmp_path, name, examples)
