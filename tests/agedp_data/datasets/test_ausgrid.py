"""The Ausgrid layout: three years' files, two channels, days of Sydney."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date

import pytest

from agedp_data.datasets.ausgrid import Ausgrid, AusgridKeys
from agedp_data.datasets.csv_parsing import ParsedChunk, parse_lines
from agedp_data.datasets.validation import ReadingRules, RejectionReason

AUSGRID = Ausgrid()
LABELS = [*[f"{hour}:{minute}" for hour in range(24) for minute in ("00", "30")][1:], "0:00"]
HEADER = "Customer,Generator Capacity,Postcode,Consumption Category,date," + ",".join(LABELS)
QUALITY = HEADER + ",Row Quality"
TITLE = '"2012-2013 Solar home electricity data ""as published"" - notes"' + "," * 53
EPOCH = date(1970, 1, 1)
STEPS = [f"{slot / 1000:.3f}" for slot in range(1, 49)]


def row(
    category: str, day: str, cells: Sequence[str] = STEPS, *, quality: str | None = "", customer: str = "12"
) -> str:
    return ",".join([customer, "3.78", "2076", category, day, *cells, *([] if quality is None else [quality])])


def read(lines: Sequence[str], *, rules: ReadingRules | None = None, of: int = 1) -> ParsedChunk:
    """Parse a file whose first `of` lines are title and header."""
    header = AUSGRID.recognise(lines)
    assert header is not None
    assert header.lines == of
    return parse_lines("\r\n".join(lines[of:]).encode(), layout=AUSGRID, header=header, rules=rules or ReadingRules())


def reasons(parsed: ParsedChunk) -> list[int]:
    found: list[int] = parsed.records.reason.tolist()
    return found


@pytest.mark.parametrize("before", [[], [TITLE], [TITLE.rstrip(",")]])
@pytest.mark.parametrize(("header", "quality"), [(QUALITY, ""), (QUALITY, "NA"), (HEADER, None)])
def test_every_years_header_is_recognised_with_and_without_its_title(
    before: list[str], header: str, quality: str | None
) -> None:
    parsed = read([*before, header, row("GC", "1/07/2012", quality=quality)], of=len(before) + 1)
    assert parsed.records.energy_wh.tolist() == [list(range(1, 49))]
    assert parsed.records.day.tolist() == [(date(2012, 7, 1) - EPOCH).days]
    assert parsed.records.ids == ("12",)


@pytest.mark.parametrize(
    "header",
    [
        "",
        "Customer,Generator Capacity,Postcode",
        "LCLid,tstp,energy(kWh/hh)",
        QUALITY.replace("0:30,1:00", "1:00,0:30"),
        QUALITY.replace("0:30", "0:00", 1),
        QUALITY + ",More",
    ],
)
def test_other_columns_or_another_order_of_them_are_not_recognised(header: str) -> None:
    assert AUSGRID.recognise([header]) is None
    assert AUSGRID.recognise([TITLE, header]) is None
    assert AUSGRID.recognise([TITLE, TITLE, QUALITY]) is None


def test_both_date_formats_are_day_first() -> None:
    for dates in (("1/07/2010", "02/07/2010"), ("1-Jul-10", "02-JUL-10")):
        parsed = read([HEADER, *(row("GC", day, quality=None) for day in dates)])
        assert parsed.records.day.tolist() == [(date(2010, 7, day) - EPOCH).days for day in (1, 2)]


@pytest.mark.parametrize(
    "dates",
    [
        ("1/07/2010", "2-Jul-10"), ("2-Jul-10", "1/07/2010"), ("1/07/2012", "7/31/2012"), ("7/31/2012", "1/07/2012"),
        ("2012-07-01", "2012-07-02"),
    ],
)  # fmt: skip
def test_each_date_is_read_by_itself_whatever_the_others_are(dates: tuple[str, str]) -> None:
    alone = [reasons(read([QUALITY, row("GC", day)])) for day in dates]
    assert reasons(read([QUALITY, *(row("GC", day) for day in dates)])) == [reason for (reason,) in alone]
    readable = {"1/07/2010", "2-Jul-10", "1/07/2012"}
    assert [reason == RejectionReason.KEPT for (reason,) in alone] == [day in readable for day in dates]


@pytest.mark.parametrize(
    "day", ["", "31/06/2012", "0/07/2012", "1/13/12", "never", "1/07/0001", "31/12/1969", "1/07/9999"]
)
def test_an_impossible_date_sets_its_row_aside(day: str) -> None:
    assert reasons(read([QUALITY, row("GC", "1/07/2012"), row("GC", day)])) == [
        RejectionReason.KEPT,
        RejectionReason.DATE,
    ]


def test_general_consumption_and_controlled_load_are_channels_and_generation_is_counted() -> None:
    lines = [QUALITY, *(row(category, "1/07/2012") for category in ("GC", "CL", "GG", "XX", ""))]
    parsed = read(lines)
    assert reasons(parsed) == [RejectionReason.KEPT, RejectionReason.KEPT] + [RejectionReason.CATEGORY] * 3
    assert parsed.records.channel.tolist()[:2] == [0, 1]
    assert parsed.rejected_row.tolist() == []
    generation = reasons(read(lines, rules=ReadingRules(layout_keys=AusgridKeys(categories=("GG",)))))
    assert generation == [RejectionReason.CATEGORY] * 2 + [RejectionReason.KEPT] + [RejectionReason.CATEGORY] * 2


def test_row_quality_na_is_kept_and_counted_and_blank_is_not() -> None:
    marked = [row(category, "1/07/2012", quality=na) for category, na in (("GC", "NA"), ("CL", " NA "))]
    parsed = read([QUALITY, *marked, row("GC", "2/07/2012")])
    assert reasons(parsed) == [RejectionReason.KEPT] * 3
    assert parsed.records.notes == {"rows with Row Quality NA (kept)": 2}
    assert read([HEADER, row("GC", "1/07/2012", quality=None)]).records.notes == {}


@pytest.mark.parametrize(
    ("cell", "reason"),
    [
        ("x", RejectionReason.TEXT),
        ("-0.1", RejectionReason.NEGATIVE),
        ("inf", RejectionReason.NOT_FINITE),
        ("51", RejectionReason.ABOVE_BOUND),
    ],
)
def test_one_bad_cell_sets_its_row_aside_and_so_do_48_of_them(cell: str, reason: RejectionReason) -> None:
    one = [*STEPS[:17], cell, *STEPS[18:]]
    parsed = read([QUALITY, row("GC", "1/07/2012", one), row("GC", "2/07/2012", [cell] * 48), row("GC", "3/07/2012")])
    assert reasons(parsed) == [reason, reason, RejectionReason.KEPT]
    assert parsed.rejected_text == (row("GC", "1/07/2012", one), row("GC", "2/07/2012", [cell] * 48))


def test_empty_cells_are_missing_readings_and_a_row_of_them_is_set_aside() -> None:
    parsed = read([QUALITY, row("GC", "1/07/2012", ["", *STEPS[1:]]), row("GC", "2/07/2012", [""] * 48)])
    assert reasons(parsed) == [RejectionReason.KEPT, RejectionReason.MISSING]
    assert parsed.records.energy_wh[0].tolist() == [-1, *range(2, 49)]


def test_rows_with_too_few_or_too_many_fields_are_set_aside() -> None:
    short, long = row("GC", "1/07/2012", quality=None), row("GC", "1/07/2012") + ","
    parsed = read([QUALITY, short, row("GC", "1/07/2012"), long])
    assert parsed.rejected_row.tolist() == [0, 2]
    assert parsed.rejected_text == (short, long)
    assert reasons(parsed) == [RejectionReason.KEPT]
