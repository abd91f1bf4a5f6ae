"""Rows of a chunk: each kept, or rejected with its reason and its text."""

from __future__ import annotations

import numpy as np
import pytest

from agedp_data.datasets.csv_lines import LONGEST_LINE
from agedp_data.datasets.csv_parsing import ParsedChunk, parse_lines
from agedp_data.datasets.london import London
from agedp_data.datasets.long_format import Long
from agedp_data.datasets.validation import NamedColumns, RejectionReason
from tests.agedp_data.datasets.parsing import RULES

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


@pytest.mark.parametrize(
    ("data", "rows", "numbers"),
    [
        (b"", 0, []), (b"\n", 1, []), (b"\r\n\r\n", 2, []), (b"\r", 1, []), (b'"\n"', 2, []), (b"\r\r\n", 1, []),
        (GOOD + GOOD.rstrip(b"\n"), 2, [0, 1]), (GOOD + b"MAC1,2013-01-0", 2, [0]),
        (GOOD.replace(b"\n", b"\r\n") + GOOD + b"\r\n\n" + GOOD.rstrip() + b"\r", 5, [0, 1, 4]),
    ],
)  # fmt: skip
def test_every_line_is_a_row_whatever_ends_it(data, rows, numbers):
    parsed = read(data)
    assert parsed.rows_read == rows
    assert [number for _, number, *_ in kept(parsed)] == numbers
    assert sorted([*numbers, *parsed.rejected_row.tolist()]) == list(range(rows))


def test_the_longest_line_is_read_and_one_byte_more_is_not():
    rest = b",2013-01-01 01:00:00,0.1"
    for end in (b"\n", b"\r\n", b""):
        assert len(kept(read(b"M" * (LONGEST_LINE - len(rest)) + rest + end))) == 1
        ((_, reason, text),) = rejected(read(b"M" * (LONGEST_LINE - len(rest) + 1) + rest + end))
        assert (reason, len(text)) == (RejectionReason.LINE, LONGEST_LINE)


@pytest.mark.parametrize("name", ["a,b", 'a"b', "caf\u00e9"])
def test_an_id_with_comma_or_quote_inside_quotes_is_an_id(name):
    quoted = '"' + name.replace('"', '""') + '"'
    parsed = read(GOOD + f"{quoted},2013-01-01 01:00:00,0.5\n{quoted},x,0.5\n".encode() + GOOD)
    assert [one[:2] for one in kept(parsed)] == [("MAC000002", 0), (name, 1), ("MAC000002", 3)]
    assert rejected(parsed) == [(2, RejectionReason.DATE, f"{quoted},x,0.5")]


def test_bytes_that_are_no_text_change_nothing_about_other_lines():
    header = "LCLid,stdorToU,DateTime,KWH/hh (per half hour) ,Acorn,Acorn_grouped"
    parsed = read("caf\u00e9,Std,2013-01-01 01:00:00,0.5,".encode() + b"\xe9,\xff\nx\n", header)
    assert kept(parsed) == [("caf\u00e9", 0, 15706, 1, 500)]
    layout = Long(NamedColumns("id", "at", "%d.%m.%Y \u00e0 %H:%M", "end", "UTC", "UTC", "kwh", "kWh", ("n\u00e9ant",)))
    rows = "caf\u00e9,01.02.2013 \u00e0 00:30,0.1\ncaf\u00e9,01.02.2013 \u00e0 01:00,n\u00e9ant\n".encode()
    for other in (b"", b"B\xe9,x,y\n", b"B\xff\n", b'"B,\xff\n', b'"B,\xe9",x,y,z\n'):
        parsed = parse_lines(rows + other, layout=layout, header=layout.recognise(["id,at,kwh"]), rules=RULES)
        assert parsed.records.reason.tolist()[:2] == [RejectionReason.KEPT, RejectionReason.MISSING]
        assert kept(parsed) == [("caf\u00e9", 0, 15737, 0, 100)]
        assert parsed.rows_read == 2 + bool(other)
