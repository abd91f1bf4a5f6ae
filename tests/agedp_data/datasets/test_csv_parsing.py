"""Rows of a block: each kept, or set aside with its reason and its text."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agedp_data.datasets.csv_lines import LONGEST_LINE
from agedp_data.datasets.csv_parsing import ParsedChunk, parse_lines
from agedp_data.datasets.london import London
from agedp_data.datasets.long_format import Long
from agedp_data.datasets.validation import NamedColumns, ReadingRules, RejectionReason

LONDON = London()
EXTRACT = "LCLid,DateTime,KWH/hh (per half hour)"
GOOD = b"MAC000002,2013-01-01 00:30:00, 0.143 \n"


def read(data: bytes, header: str = EXTRACT) -> ParsedChunk:
    recognised = LONDON.recognise([header])
    assert recognised is not None
    return parse_lines(data, layout=LONDON, header=recognised, rules=ReadingRules())


def aside(parsed: ParsedChunk) -> list[tuple[int, RejectionReason, str]]:
    reasons = [RejectionReason(int(reason)) for reason in parsed.rejected_reason]
    return list(zip(parsed.rejected_row.tolist(), reasons, parsed.rejected_text, strict=True))


def kept(parsed: ParsedChunk) -> list[tuple[str, int, int, int, int]]:
    """Return row, household, day, slot and Wh of what is kept."""
    of = parsed.records
    chosen = np.flatnonzero(of.reason == RejectionReason.KEPT)
    columns = (parsed.row, of.household, of.day, of.slot, of.energy_wh[:, 0])
    rows = zip(*(column[chosen].tolist() for column in columns), strict=True)
    return [(of.ids[household], row, day, slot, wh) for row, household, day, slot, wh in rows]


SET_ASIDE = {
    b"MAC1,2013-01-01 01:00:00,abc": RejectionReason.TEXT,
    b'MAC1,2013-01-01 01:00:00,"0,143"': RejectionReason.TEXT,
    b"MAC1,2013-01-01 01:00:00,0.1 kWh": RejectionReason.TEXT,
    b"MAC1,2013-01-01 01:00:00,null": RejectionReason.TEXT,
    b"MAC1,2013-01-01 01:00:00,\xef\xbb\xbf1": RejectionReason.TEXT,
    b"MAC1,2013-01-01 01:00:00,-0.2": RejectionReason.NEGATIVE,
    b"MAC1,2013-01-01 01:00:00,-0.0001": RejectionReason.NEGATIVE,
    b"MAC1,2013-01-01 01:00:00, inf ": RejectionReason.NOT_FINITE,
    b"MAC1,2013-01-01 01:00:00,-inf": RejectionReason.NOT_FINITE,
    b"MAC1,2013-01-01 01:00:00,1e309": RejectionReason.NOT_FINITE,
    b"MAC1,2013-01-01 01:00:00,NaN": RejectionReason.NOT_FINITE,
    b"MAC1,2013-01-01 01:00:00,50.001": RejectionReason.ABOVE_BOUND,
    b"MAC1,2013-01-01 01:00:00,1e308": RejectionReason.ABOVE_BOUND,
    b"MAC1,2013-01-01 01:00:00,Null": RejectionReason.MISSING,
    b"MAC1,2013-01-01 01:00:00, Null ": RejectionReason.MISSING,
    b"MAC1,2013-01-01 01:00:00,": RejectionReason.MISSING,
    b"MAC1,2013-01-01 01:00:00,   ": RejectionReason.MISSING,
    b"MAC1,2012-12-19 12:37:27,Null": RejectionReason.MISSING,
    b"MAC1,2012-12-19 12:37:27,0.1": RejectionReason.OFF_GRID,
    b"MAC1,2013-01-01 01:00:00.5,0.1": RejectionReason.OFF_GRID,
    b"MAC1,2013-02-29 01:00:00,0.1": RejectionReason.DATE,
    b"MAC1,2013-13-01 01:00:00,0.1": RejectionReason.DATE,
    b"MAC1,2013-01-01 24:00:00,0.1": RejectionReason.DATE,
    b"MAC1,2013-01-01 01:60:00,0.1": RejectionReason.DATE,
    b"MAC1,yesterday,0.1": RejectionReason.DATE,
    b"MAC1,,0.1": RejectionReason.DATE,
    b"MAC1,1969-12-31 01:00:00,0.1": RejectionReason.DATE,
    b"MAC1,1970-01-01 00:00:00,0.1": RejectionReason.DATE,
    b"MAC1,2200-01-01 01:00:00,0.1": RejectionReason.DATE,
    b"MAC1,9999-01-01 01:00:00,0.1": RejectionReason.DATE,
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
    b"MAC1,2013-01-01 01:00:00,0.1\x1a": RejectionReason.LINE,
    b"MAC1,2013-01-01 01:00:00,0.1\x7f": RejectionReason.LINE,
    b"MAC1,2013-01-01 01:00:00\r,0.1": RejectionReason.LINE,
    b'MAC1,2013-01-01 01:00:00,"0.1': RejectionReason.LINE,
    b'MAC1,2013-01-01 01:00:00,0.1"': RejectionReason.LINE,
    b'"MAC1"x,2013-01-01 01:00:00,0.1': RejectionReason.LINE,
    b'MAC1, "2013-01-01 01:00:00",0.1': RejectionReason.LINE,
    b'"MAC1,2013-01-01 01:00:00,0.1': RejectionReason.LINE,
    b"M" * (LONGEST_LINE - 20) + b",2013-01-01 01:00:00,0.1": RejectionReason.LINE,
}


@pytest.mark.parametrize("odd", SET_ASIDE)
def test_an_odd_row_is_set_aside_with_its_reason_and_text_and_its_neighbours_are_kept(odd: bytes) -> None:
    parsed = read(GOOD + odd + b"\n" + GOOD.replace(b"00:30", b"02:00"))
    assert aside(parsed) == [(1, SET_ASIDE[odd], odd.decode("utf-8", "replace")[:LONGEST_LINE])]
    assert kept(parsed) == [("MAC000002", 0, 15706, 0, 143), ("MAC000002", 2, 15706, 3, 143)]
    assert parsed.rows_read == 3


def test_all_odd_rows_together_are_what_they_are_alone() -> None:
    parsed = read(b"\n".join(SET_ASIDE) + b"\n")
    assert [(reason, text) for _, reason, text in aside(parsed)] == [
        (reason, odd.decode("utf-8", "replace")[:LONGEST_LINE]) for odd, reason in SET_ASIDE.items()
    ]
    assert kept(parsed) == []


def test_a_truncated_last_line_is_set_aside_and_a_missing_final_newline_is_not() -> None:
    assert aside(read(GOOD + b"MAC1,2013-01-0")) == [(1, RejectionReason.FIELDS, "MAC1,2013-01-0")]
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


def test_line_feeds_with_and_without_carriage_return_end_lines_and_empty_lines_are_rejected_rows() -> None:
    row = GOOD.rstrip()
    parsed = read(row + b"\r\n" + row + b"\n\r\n\n" + row + b"\r")
    assert [number for _, number, *_ in kept(parsed)] == [0, 1, 4]
    assert aside(parsed) == [(2, RejectionReason.LINE, ""), (3, RejectionReason.LINE, "")]


def test_the_longest_line_is_read_and_one_byte_more_is_not() -> None:
    rest = b",2013-01-01 01:00:00,0.1"
    for end in (b"\n", b"\r\n", b""):
        assert len(kept(read(b"M" * (LONGEST_LINE - len(rest)) + rest + end))) == 1
        ((_, reason, text),) = aside(read(b"M" * (LONGEST_LINE - len(rest) + 1) + rest + end))
        assert (reason, len(text)) == (RejectionReason.LINE, LONGEST_LINE)


@pytest.mark.parametrize("name", ["a,b", 'a"b', "caf\u00e9"])
def test_an_id_with_comma_or_quote_inside_quotes_is_an_id(name: str) -> None:
    quoted = '"' + name.replace('"', '""') + '"'
    parsed = read(GOOD + f"{quoted},2013-01-01 01:00:00,0.5\n{quoted},x,0.5\n".encode() + GOOD)
    assert [one[:2] for one in kept(parsed)] == [("MAC000002", 0), (name, 1), ("MAC000002", 3)]
    assert aside(parsed) == [(2, RejectionReason.DATE, f"{quoted},x,0.5")]


def test_latin_1_bytes_in_unused_columns_are_accepted_beside_ids_that_are_utf_8() -> None:
    header = "LCLid,stdorToU,DateTime,KWH/hh (per half hour) ,Acorn,Acorn_grouped"
    parsed = read("caf\u00e9,Std,2013-01-01 01:00:00,0.5,".encode() + b"\xe9,\xff\nx\n", header)
    assert kept(parsed) == [("caf\u00e9", 0, 15706, 1, 500)]
    assert aside(parsed) == [(1, RejectionReason.FIELDS, "x")]


def test_bytes_that_are_no_text_change_nothing_about_other_lines_of_the_chunk() -> None:
    columns = NamedColumns("id", "at", "%d.%m.%Y \u00e0 %H:%M", "end", "UTC", "UTC", "kwh", "kWh", ("n\u00e9ant",))
    layout = Long(columns)
    header = layout.recognise(["id,at,kwh"])
    assert header is not None
    rows = "caf\u00e9,01.02.2013 \u00e0 00:30,0.1\ncaf\u00e9,01.02.2013 \u00e0 01:00,n\u00e9ant\n".encode()
    for other in (b"", b"B\xe9,x,y\n", b"B\xff\n", b'"B,\xff\n', b'"B,\xe9",x,y,z\n'):
        parsed = parse_lines(rows + other, layout=layout, header=header, rules=ReadingRules())
        assert parsed.records.reason.tolist()[:2] == [RejectionReason.KEPT, RejectionReason.MISSING]
        assert kept(parsed) == [("caf\u00e9", 0, 15737, 0, 100)]
        assert parsed.rows_read == 2 + bool(other)


def test_every_line_is_a_row() -> None:
    for data, rows in ((b"", 0), (b"\n", 1), (b"\r\n\r\n", 2), (b"\r", 1), (b'"\n"', 2), (b"\r\r\n", 1)):
        assert read(data).rows_read == rows
        assert (
            aside(read(data))[:1] == [(0, RejectionReason.LINE, aside(read(data))[0][2])]
            if rows
            else not aside(read(data))
        )


NUMBERS = st.text(st.sampled_from("0123456789+-.eEnaNifIty(_) \t"), min_size=1, max_size=8) | st.sampled_from(
    ["nan(a1)", "-nan(_)", "+inf", "-Infinity", "1e400", "5e-324", "0x1p3", "1_0", "1e+05", "9" * 400, "NaN()"]
)
STAMPS = st.from_regex(
    r"(2013|0000|0001|1969|2199|2261|9999)-[012][0-9]-[0123][0-9][ T][0-9]{2}(:[0-9]{2}(:[0-9]{2}(\.[0-9]{0,10})?)?)?"
    r"([Zz]|[+-][0-9]{1,2}(:?[0-9]{0,2})?)?",
    fullmatch=True,
)


@given(NUMBERS, STAMPS)
@settings(max_examples=150, deadline=None)
def test_a_cell_is_read_alike_whether_or_not_others_are_odd(number: str, stamp: str) -> None:
    """Alone, Arrow reads the column; beside a cell that is none, this project does, cell by cell."""
    layout = Long(NamedColumns("id", "at", "iso", "end", "UTC", "UTC", "kwh", "kWh", ("Null",)))
    header = layout.recognise(["id,at,kwh"])
    assert header is not None
    rows = f"A,2013-01-01 00:30,{number}\nA,{stamp},0.1\n".encode(), b"B,x,x\n"
    for row in rows[0].splitlines(keepends=True):
        alone, beside = (
            parse_lines(data, layout=layout, header=header, rules=ReadingRules()) for data in (row, row + rows[1])
        )
        assert alone.records.reason[0] == beside.records.reason[0]
        if alone.records.reason[0] == RejectionReason.KEPT:
            for column in ("day", "slot", "energy_wh"):
                assert getattr(alone.records, column)[0] == getattr(beside.records, column)[0]
