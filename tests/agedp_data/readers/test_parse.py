"""Rows of a block: each kept, or set aside with its reason and its text."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agedp_data.errors import InputError
from agedp_data.readers import cutting, files
from agedp_data.readers.layout import Reason, Rules
from agedp_data.readers.london import London
from agedp_data.readers.parse import Parsed, parse

LONDON = London()
EXTRACT = "LCLid,DateTime,KWH/hh (per half hour)"
GOOD = b"MAC000002,2013-01-01 00:30:00, 0.143 \n"


def read(data: bytes, header: str = EXTRACT) -> Parsed:
    lines = [header, *data.decode("latin-1").splitlines()]
    recognised = LONDON.recognise(lines)
    assert recognised is not None
    return parse(data, layout=LONDON, header=recognised, rules=Rules())


def aside(parsed: Parsed) -> list[tuple[int, Reason, str]]:
    reasons = [Reason(int(reason)) for reason in parsed.aside_reason]
    return list(zip(parsed.aside_row.tolist(), reasons, parsed.aside_text, strict=True))


def kept(parsed: Parsed) -> list[tuple[str, int, int, int, int]]:
    """Return row, household, day, slot and Wh of what is kept."""
    of = parsed.records
    chosen = np.flatnonzero(of.reason == Reason.KEPT)
    columns = (parsed.row, of.household, of.day, of.slot, of.energy_wh[:, 0])
    rows = zip(*(column[chosen].tolist() for column in columns), strict=True)
    return [(of.ids[household], row, day, slot, wh) for row, household, day, slot, wh in rows]


SET_ASIDE = {
    b"MAC1,2013-01-01 01:00:00,abc": Reason.TEXT,
    b'MAC1,2013-01-01 01:00:00,"0,143"': Reason.TEXT,
    b"MAC1,2013-01-01 01:00:00,0.1 kWh": Reason.TEXT,
    b"MAC1,2013-01-01 01:00:00,null": Reason.TEXT,
    b"MAC1,2013-01-01 01:00:00,\xef\xbb\xbf1": Reason.TEXT,
    b"MAC1,2013-01-01 01:00:00,-0.2": Reason.NEGATIVE,
    b"MAC1,2013-01-01 01:00:00,-0.0001": Reason.NEGATIVE,
    b"MAC1,2013-01-01 01:00:00, inf ": Reason.NOT_FINITE,
    b"MAC1,2013-01-01 01:00:00,-inf": Reason.NOT_FINITE,
    b"MAC1,2013-01-01 01:00:00,1e309": Reason.NOT_FINITE,
    b"MAC1,2013-01-01 01:00:00,NaN": Reason.NOT_FINITE,
    b"MAC1,2013-01-01 01:00:00,50.001": Reason.ABOVE_BOUND,
    b"MAC1,2013-01-01 01:00:00,1e308": Reason.ABOVE_BOUND,
    b"MAC1,2013-01-01 01:00:00,Null": Reason.MISSING,
    b"MAC1,2013-01-01 01:00:00, Null ": Reason.MISSING,
    b"MAC1,2013-01-01 01:00:00,": Reason.MISSING,
    b"MAC1,2013-01-01 01:00:00,   ": Reason.MISSING,
    b"MAC1,2012-12-19 12:37:27,Null": Reason.MISSING,
    b"MAC1,2012-12-19 12:37:27,0.1": Reason.OFF_GRID,
    b"MAC1,2013-01-01 01:00:00.5,0.1": Reason.OFF_GRID,
    b"MAC1,2013-02-29 01:00:00,0.1": Reason.DATE,
    b"MAC1,2013-13-01 01:00:00,0.1": Reason.DATE,
    b"MAC1,2013-01-01 24:00:00,0.1": Reason.DATE,
    b"MAC1,2013-01-01 01:60:00,0.1": Reason.DATE,
    b"MAC1,yesterday,0.1": Reason.DATE,
    b"MAC1,,0.1": Reason.DATE,
    b"MAC1,1969-12-31 01:00:00,0.1": Reason.DATE,
    b"MAC1,1970-01-01 00:00:00,0.1": Reason.DATE,
    b"MAC1,2200-01-01 01:00:00,0.1": Reason.DATE,
    b"MAC1,9999-01-01 01:00:00,0.1": Reason.DATE,
    b",2013-01-01 01:00:00,0.1": Reason.HOUSEHOLD,
    b"  ,2013-01-01 01:00:00,0.1": Reason.HOUSEHOLD,
    b"MAC\xe9,2013-01-01 01:00:00,0.1": Reason.HOUSEHOLD,
    b"MAC1,2013-01-01 01:00:00": Reason.FIELDS,
    b"MAC1,2013-01-01 01:00:00,0.1,": Reason.FIELDS,
    b"MAC\xe9,0.1": Reason.FIELDS,
    b" ": Reason.FIELDS,
    b"\x00\x00": Reason.FIELDS,
}


@pytest.mark.parametrize("odd", SET_ASIDE)
def test_an_odd_row_is_set_aside_with_its_reason_and_text_and_its_neighbours_are_kept(odd: bytes) -> None:
    parsed = read(GOOD + odd + b"\n" + GOOD.replace(b"00:30", b"02:00"))
    assert aside(parsed) == [(1, SET_ASIDE[odd], odd.decode("utf-8", "replace"))]
    assert kept(parsed) == [("MAC000002", 0, 15706, 0, 143), ("MAC000002", 2, 15706, 3, 143)]
    assert parsed.rows_read == 3


def test_all_odd_rows_together_are_what_they_are_alone() -> None:
    parsed = read(b"\n".join(SET_ASIDE) + b"\n")
    assert [(reason, text) for _, reason, text in aside(parsed)] == [
        (reason, odd.decode("utf-8", "replace")) for odd, reason in SET_ASIDE.items()
    ]
    assert kept(parsed) == []


def test_a_truncated_last_line_is_set_aside_and_a_missing_final_newline_is_not() -> None:
    assert aside(read(GOOD + b"MAC1,2013-01-0")) == [(1, Reason.FIELDS, "MAC1,2013-01-0")]
    assert len(kept(read(GOOD + GOOD.rstrip(b"\n")))) == 2


ACCEPTED = {
    b"MAC1,2013-01-01 01:00:00,0": 0,
    b"MAC1,2013-01-01 01:00:00,-0.0": 0,
    b"MAC1,2013-01-01 01:00:00, 1.4529999 ": 1453,
    b"MAC1,2013-01-01 01:00:00.0000000,50": 50_000,
    b" MAC1 , 2013-01-01 01:00:00 ,\t1\t": 1000,
    b'"MAC1","2013-01-01 01:00:00","0.25"': 250,
    b"\xef\xbb\xbfMAC1,2013-01-01 01:00:00,1": 1000,
}


@pytest.mark.parametrize("row", ACCEPTED)
@pytest.mark.parametrize("before", [b"", GOOD, b"\n\n", b"MAC1,x,y\n"])
def test_padding_quotes_float_noise_and_a_byte_order_mark_are_accepted_wherever_they_stand(
    row: bytes, before: bytes
) -> None:
    assert kept(read(before + row + b"\n"))[-1][2:] == (15706, 1, ACCEPTED[row])
    assert kept(read(before + row + b"\n"))[-1][0] == "MAC1"


def test_line_ends_of_all_kinds_mixed_and_empty_lines_between_are_accepted() -> None:
    row = GOOD.rstrip()
    assert [one[1] for one in kept(read(row + b"\r\n" + row + b"\r" + row + b"\n\r\n\n" + row))] == [0, 1, 2, 3]


@pytest.mark.parametrize("name", ["a,b", 'a"b', "a\nb", "a\r\n,\nb", "caf\u00e9"])
def test_an_id_with_comma_quote_or_line_end_inside_quotes_is_an_id(name: str) -> None:
    quoted = '"' + name.replace('"', '""') + '"'
    parsed = read(GOOD + f"{quoted},2013-01-01 01:00:00,0.5\n{quoted},x,0.5\n".encode() + GOOD)
    assert [one[:2] for one in kept(parsed)] == [("MAC000002", 0), (name, 1), ("MAC000002", 3)]
    assert aside(parsed) == [(2, Reason.DATE, f"{quoted},x,0.5")]


def test_latin_1_bytes_in_unused_columns_are_accepted_beside_ids_that_are_utf_8() -> None:
    header = "LCLid,stdorToU,DateTime,KWH/hh (per half hour) ,Acorn,Acorn_grouped"
    parsed = read("caf\u00e9,Std,2013-01-01 01:00:00,0.5,".encode() + b"\xe9,\xff\nx\n", header)
    assert kept(parsed) == [("caf\u00e9", 0, 15706, 1, 500)]
    assert aside(parsed) == [(1, Reason.FIELDS, "x")]


def test_an_unclosed_quote_makes_one_row_of_all_that_follows_and_it_is_set_aside() -> None:
    parsed = read(GOOD + b'MAC1,"2013-01-01 01:00:00,0.5\n' + GOOD)
    assert len(kept(parsed)) == 1
    ((row, reason, text),) = aside(parsed)
    assert (row, reason) == (1, Reason.FIELDS)
    assert text.rstrip("\n") == 'MAC1,"2013-01-01 01:00:00,0.5\n' + GOOD.decode().rstrip("\n")


def test_rows_of_another_date_format_refuse_the_file_without_quoting_it() -> None:
    for rows in (GOOD + b"MAC1,13/01/2013 01:00:00,1\n", b"MAC1,13/01/2013 01:00:00,1\n" + GOOD):
        with pytest.raises(
            InputError, match=r"^no single date format fits all rows of the file; dates must be ISO or day first$"
        ):
            read(rows)


def test_nothing_is_no_rows() -> None:
    for data in (b"", b"\n", b"\r\n\r\n"):
        assert read(data).rows_read == 0


def rows_by_csv(data: bytes) -> int:
    """Return the number of rows by Python's csv module, empty lines apart."""
    return sum(1 for row in csv.reader(io.StringIO(data.decode("latin-1"), newline="")) if row)


PIECES = (b"", b"\n", b"\r", b"\r\n", b",", b'"', b'""', b"\xe9", b"\xef\xbb\xbf", b"\x00", b"Null", b"-", b" ", b"a")
mutation = st.tuples(st.floats(0, 1), st.integers(0, 6), st.sampled_from(PIECES))


def mutated(rows: list[bytes], changes: list[tuple[float, int, bytes]]) -> bytes:
    data = b"".join(rows)
    for where, gone, piece in changes:
        at = int(where * len(data))
        data = data[:at] + piece + data[at + gone :]
    return data


@st.composite
def broken_files(draw: st.DrawFn) -> bytes:
    lines = [*SET_ASIDE, *ACCEPTED, GOOD.rstrip(), b'"a\nb",2013-01-01 01:00:00,1', b'"a""b",2013-01-01 01:00:00,1']
    lines += [b"MAC1,13/01/2013 01:00:00,1"] if draw(st.integers(0, 9)) == 0 else []
    rows = draw(st.lists(st.sampled_from(lines), max_size=8))
    ends = draw(st.lists(st.sampled_from([b"\n", b"\r\n", b"\r"]), min_size=len(rows), max_size=len(rows)))
    whole = [row + end for row, end in zip(rows, ends, strict=True)]
    return mutated(whole, draw(st.lists(mutation, max_size=4)))


def parsed_or_refused(data: bytes) -> Parsed | None:
    header = LONDON.recognise([EXTRACT, GOOD.decode().rstrip()])
    assert header is not None
    try:
        return parse(data, layout=LONDON, header=header, rules=Rules())
    except InputError as error:
        if not str(error).startswith("no single date format fits"):
            raise
        return None


def check_any_bytes(data: bytes, chunk: int, block_bytes: int) -> None:
    """Every row is read once, kept or set aside, and blocks say what the whole says."""
    quoted = b'"' in data
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:  # pytest's are slow by the thousand
        path = Path(folder) / "a.csv"
        path.write_bytes(data)
        (source,) = files.list_sources([str(path)]).sources
        patch.setattr(cutting, "_WINDOW", chunk)
        blocks = cutting.cut(source, start=0, block_bytes=block_bytes, quoted=quoted)
        pieces = [piece for block in blocks for piece in cutting.rows(block, at_a_time=chunk, quoted=quoted)]
    whole, *parts = (parsed_or_refused(piece) for piece in (data, *pieces))
    if whole is None:
        assert None in parts
        return
    assert whole.rows_read == rows_by_csv(data) == len(kept(whole)) + len(aside(whole))
    found_kept, found_aside, offset = [], [], 0
    for part in parts:
        assert part is not None
        found_kept += [(one[0], one[1] + offset, *one[2:]) for one in kept(part)]
        found_aside += [(row + offset, reason) for row, reason, _ in aside(part)]
        offset += part.rows_read
    assert (found_kept, found_aside) == (kept(whole), [one[:2] for one in aside(whole)])


@given(broken_files(), st.integers(1, 40), st.sampled_from([1, 30, 100]))
@settings(max_examples=250, deadline=None)
def test_whatever_the_bytes_every_row_is_accounted_for_and_blocks_agree(
    data: bytes, chunk: int, block_bytes: int
) -> None:
    check_any_bytes(data, chunk, block_bytes)


@pytest.mark.long
@given(broken_files(), st.integers(1, 40), st.sampled_from([1, 30, 100]))
@settings(max_examples=20_000, deadline=None)
def test_whatever_the_bytes_every_row_is_accounted_for_and_blocks_agree_at_length(
    data: bytes, chunk: int, block_bytes: int
) -> None:
    check_any_bytes(data, chunk, block_bytes)
