"""The London layout: headers in the wild, stamps at the END of the half-hour, GMT all year."""

from __future__ import annotations

from datetime import date, timedelta

import pytest

from agedp_data.datasets.csv_parsing import ParsedChunk, parse_lines
from agedp_data.datasets.layout import Header
from agedp_data.datasets.london import London
from agedp_data.datasets.validation import ReadingRules, RejectionReason

LONDON = London()
FOUR = "LCLid,stdorToU,DateTime,KWH/hh (per half hour) "
SIX = FOUR + ",Acorn,Acorn_grouped"
THREE = "LCLid,DateTime,KWH/hh (per half hour)"
KAGGLE = "LCLid,tstp,energy(kWh/hh)"
EPOCH = date(1970, 1, 1)


def recognise(*lines: str) -> Header:
    found = LONDON.recognise(lines)
    assert found is not None
    return found


def read(header: str, *rows: str) -> ParsedChunk:
    return parse_lines("\n".join(rows).encode(), layout=LONDON, header=recognise(header, *rows), rules=ReadingRules())


def only(parsed: ParsedChunk) -> tuple[str, date, int, int]:
    of = parsed.records
    assert of.reason.tolist() == [RejectionReason.KEPT]
    return of.ids[0], EPOCH + timedelta(days=int(of.day[0])), int(of.slot[0]), int(of.energy_wh[0, 0])


@pytest.mark.parametrize(
    ("header", "row"),
    [
        (FOUR, "MAC000002,Std,2012-10-12 00:30:00.0000000, 0.143 "),
        (FOUR.rstrip(), "MAC000002,Std,2012-10-12 00:30:00.0000000, 0.143 "),
        (SIX, "MAC000002,Std,2012-10-12 00:30:00.0000000, 0.143 ,ACORN-A,Affluent"),
        (SIX, "MAC000002,Std,12/10/2012 00:30:00, 0.143 ,ACORN-A,Affluent"),
        (KAGGLE, "MAC000002,2012-10-12 00:30:00.0000000, 0.143 "),
        (THREE, "MAC000002,2012-10-12 00:30:00,0.143"),
        (THREE + " ", "MAC000002,2012-10-12 00:30:00,0.143"),
        ('"LCLid","DateTime","KWH/hh (per half hour)"', '"MAC000002","2012-10-12 00:30:00","0.143"'),
        (SIX, '"MAC000002",Std,"12/10/2012 00:30:00", 0.143 ,"a, b",c'),
    ],
)
def test_every_header_in_the_wild_says_the_same(header: str, row: str) -> None:
    assert only(read(header, row)) == ("MAC000002", date(2012, 10, 12), 0, 143)


@pytest.mark.parametrize(
    "header", ["", "LCLid", "LCLid,DateTime", "DateTime,LCLid,KWH/hh (per half hour)", FOUR + ",Acorn", "a,b,c"]
)
def test_another_header_is_not_recognised(header: str) -> None:
    assert LONDON.recognise([header]) is None
    assert LONDON.recognise([]) is None


@pytest.mark.parametrize(
    ("stamp", "day", "slot"),
    [
        ("2013-01-01 00:00:00", date(2012, 12, 31), 47),
        ("2013-01-01 00:30:00", date(2013, 1, 1), 0),
        ("2013-01-01 23:30:00", date(2013, 1, 1), 46),
        ("2013-03-31 01:30:00", date(2013, 3, 31), 2),  # no such time on British clocks
        ("2012-03-01 00:00:00", date(2012, 2, 29), 47),
        ("01/01/2013 00:00:00", date(2012, 12, 31), 47),
        ("3/2/2013 00:30:00", date(2013, 2, 3), 0),
    ],
)
def test_a_stamp_is_the_end_of_its_half_hour(stamp: str, day: date, slot: int) -> None:
    assert only(read(THREE, f"MAC000002,{stamp},0.1"))[1:3] == (day, slot)


@pytest.mark.parametrize(
    "stamp",
    [
        "31/02/2013 00:30:00", "29/02/2013 00:30:00", "28/02/2013 24:00:00", "28/02/2013 23:29:60",
        "13/02/13 00:30:00", "28/02/2013 00:30", "28/02/2013", "01/01/1960 00:30:00", "01/01/9999 00:30:00",
    ],
)  # fmt: skip
def test_a_day_first_stamp_that_no_calendar_has_is_set_aside_not_rolled_over(stamp: str) -> None:
    of = read(THREE, "MAC000002,28/02/2013 00:30:00,1", f"MAC000002,{stamp},1").records
    assert of.reason.tolist() == [RejectionReason.KEPT, RejectionReason.DATE]


@pytest.mark.parametrize("stamp", ["02/28/2013 00:30:00", "2/28/2013 00:30:00", "2013-02-28 00:30:00"])
def test_stamps_of_another_form_reject_their_own_rows_and_no_others(stamp: str) -> None:
    rows = ("MAC000002,01/02/2013 00:30:00,1", f"MAC000002,{stamp},1", "MAC000002,2013-02-01 01:00:00,1")
    expected = RejectionReason.KEPT if stamp.startswith("2013") else RejectionReason.DATE
    assert read(THREE, *rows).records.reason.tolist() == [RejectionReason.KEPT, expected, RejectionReason.KEPT]
    assert read(THREE, *rows[::-1]).records.reason.tolist() == [RejectionReason.KEPT, expected, RejectionReason.KEPT]
