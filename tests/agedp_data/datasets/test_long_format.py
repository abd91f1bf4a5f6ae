"""The table that the run file describes: its header, units, words for missing, and timestamps of any clock."""

from __future__ import annotations

from dataclasses import replace
from datetime import date

import pytest

from agedp_data.datasets.csv_parsing import ParsedChunk
from agedp_data.datasets.registry import layout_of
from agedp_data.datasets.validation import NamedColumns, ReadingRules, RejectionReason
from agedp_data.errors import InputError
from tests.agedp_data.datasets import parsing
from tests.agedp_data.datasets.parsing import step

LONDON = NamedColumns(
    household="meter", time="at", time_format="%Y-%m-%d %H:%M:%S", stamp="end", zone="Europe/London",
    day_zone="Europe/London", energy="kwh", unit="kWh", missing=("Null", ""),
)  # fmt: skip
UTC = replace(LONDON, zone="UTC")
ISO = replace(LONDON, time_format="iso")
AUTUMN = date(2013, 10, 27)
KEPT, DATE, OFF_GRID = RejectionReason.KEPT, RejectionReason.DATE, RejectionReason.OFF_GRID


def read(columns: NamedColumns, *rows: str, header: str = "meter,at,kwh") -> ParsedChunk:
    return parsing.parse(layout_of("long", columns), header, *rows, rules=ReadingRules(columns=columns))


def reasons(columns: NamedColumns, *rows: str) -> list[RejectionReason]:
    return parsing.reasons(read(columns, *rows))


def readings(columns: NamedColumns, *files: list[str]) -> dict[tuple[str, int], int]:
    chunks = ([read(columns, *rows)] for rows in files)
    return parsing.settle(layout_of("long", columns), ReadingRules(columns=columns), *chunks).readings


@pytest.mark.parametrize(
    ("header", "row"),
    [
        ("kwh,at,meter", "0.25,2013-01-05 01:00:00,A"),
        ('"meter","at","kwh"', '"A","2013-01-05 01:00:00","0.25"'),
        (" meter , at , kwh ", "A,2013-01-05 01:00:00, 0.25 "),
        ("Meter,meter,at,x,kwh,kwh2", "B,A,2013-01-05 01:00:00,9,0.25,7"),
        ('meter,"a,""b",at,kwh', "A,9,2013-01-05 01:00:00,0.25"),
    ],
)
def test_columns_are_found_by_their_exact_names_in_any_order(header, row):
    found = parsing.settle(layout_of("long", UTC), ReadingRules(columns=UTC), [read(UTC, row, header=header)])
    assert found.readings == {("A", step(date(2013, 1, 5), 1)): 250}


@pytest.mark.parametrize(
    ("header", "name", "times"), [("meter,at,kWh", "kwh", 0), ("meter,at,kwh,kwh", "kwh", 2), ("", "meter", 0)]
)
def test_a_missing_column_is_named_and_the_header_stays_private(header, name, times):
    with pytest.raises(InputError) as caught:
        layout_of("long", LONDON).recognise([header])
    wanted = '[input.columns] needs the columns "meter", "at", "kwh"; '
    assert str(caught.value) == f'{wanted}the header has "{name}" {times} times, not once. Name columns of the header'
    found = ", ".join(f'"{each}"' for each in header.split(",") if header)
    assert caught.value.private == f"{caught.value}; columns found: {found}"


def test_an_iso_timestamp_with_an_offset_is_an_instant():
    """Summer time in London: 00:00 to 00:30 UTC on 1 July is 01:00 to 01:30 there, slot 2."""
    for at in ("2013-07-01T00:30Z", "2013-07-01 02:30:00+02", "2013-06-30T20:30:00.000-0400", "2013-07-01 01:30"):
        assert readings(ISO, [f"A,{at},0.1"]) == {("A", step(date(2013, 7, 1), 2)): 100}, at
    for at in ("2013-07-01 00+01:00", "2013-07-01 00:30+24:00", "2013-07-01 00:30 Z", "2013-07-01Z"):
        for others in ([], ["B,2013-07-01T00:30Z,1"], ["B,2013-07-01 00:30,1"]):
            assert reasons(ISO, f"A,{at},0.1", *others)[0] is DATE, at
    assert reasons(LONDON, "A,2013-07-01 00:30:00Z,0.1") == [DATE]


@pytest.mark.parametrize(
    ("stamps", "meant"),
    [
        (["2013-01-05T01:00:00Z", "2013-01-05T02:30:00+01:00"], "iso"),
        (["2013-01-05 01:00:00 +0100"], None),
        (["13.01.2013 01:00", "01.02.2013 01:30"], "%d.%m.%Y %H:%M"),
        (["01/12/2013 01:00", "01/13/2013 01:00"], "%m/%d/%Y %H:%M"),
        (["201301050130"], "%Y%m%d%H%M"),
        (["13.01.2013 01:00", "noon"], None),
    ],
)
def test_a_usual_format_is_proposed_in_private(stamps, meant):
    layout = layout_of("long", replace(LONDON, time_format="%Y/%m/%d %H.%M"))
    error = layout.date_format_error([f"A,{each},1" for each in stamps], layout.recognise(["meter,at,kwh"]))
    near = f'; did you mean "{meant}"?' if meant else ""
    assert error.private == f'{error}; the first is "{stamps[0]}"{near}'
    assert str(error).endswith('matches [input.columns] time_format = "%Y/%m/%d %H.%M"')


@pytest.mark.parametrize("odd", [[], ["A,2013-01-05 02:00:00,abc"], ["A,never,1"]])
@pytest.mark.parametrize("cell", ["-9", " -9 ", "-9.0", "n/a", " n/a ", "NaN", "nan"])
def test_a_padded_word_for_missing_is_missing_beside_any_row(cell, odd):
    columns = replace(LONDON, missing=("-9", " n/a", "nan"))
    found = reasons(columns, f"A,2013-01-05 01:00:00,{cell}", *odd, "B,2013-01-05 01:00:00,1")
    assert (found[0], found[-1]) == (RejectionReason.MISSING, KEPT)


SUM = {("A", step(AUTUMN, 2)): 300}
ONE, TWO, THREE = (f"A,2013-10-27 01:30:00,0.{i}" for i in (1, 2, 3))
FIRST_PASS, SECOND_PASS = "A,2013-10-27 00:30:00,0.1", "A,2013-10-27 01:30:00,0.2"


@pytest.mark.parametrize(
    ("columns", "files", "expected"),
    [
        (UTC, [[FIRST_PASS], [SECOND_PASS]], SUM),
        (UTC, [[FIRST_PASS, SECOND_PASS], [SECOND_PASS]], SUM),
        (UTC, [[FIRST_PASS, SECOND_PASS], [SECOND_PASS.replace("0.2", "0.3")]], {}),
        (ISO, [["A,2013-10-27T01:30+01:00,0.1", "A,2013-10-27T01:30+00:00,0.2"]], SUM),
        (ISO, [["A,2013-10-27T01:30+01:00,0.1"]], {}),
        # a civil clock shows both passes alike
        (LONDON, [[ONE, TWO]], SUM),
        (LONDON, [[TWO, ONE]], SUM),
        (LONDON, [[ONE, ONE]], {("A", step(AUTUMN, 2)): 200}),  # half-hours of the same size are no duplicate
        (LONDON, [[ONE]], {}),
        (LONDON, [[ONE, TWO, THREE]], {}),
        (LONDON, [[ONE, ONE, ONE]], {}),
        (LONDON, [[ONE, TWO], [TWO, ONE]], SUM),
        (LONDON, [[ONE, TWO], [ONE, THREE]], {}),
        (LONDON, [[ONE, TWO], [ONE]], {}),
        (LONDON, [[ONE, TWO, THREE], [ONE, TWO]], SUM),  # a file that contradicts itself says nothing
        (LONDON, [["A,2013-10-27 01:00:00,0.4", "A,2013-10-27 02:30:00,0.5"]],
         {("A", step(AUTUMN, 1)): 400, ("A", step(AUTUMN, 4)): 500}),
        (replace(LONDON, day_zone="Europe/Paris"), [[ONE, TWO]], {("A", step(AUTUMN, 4)): 300}),  # both go back at once
    ],
)  # fmt: skip
def test_a_repeated_half_hour_is_the_sum_of_its_two_passes(columns, files, expected):
    assert readings(columns, *files) == expected


@pytest.mark.parametrize(
    ("columns", "day", "expected"),
    [
        (LONDON, "2013-03-31", [KEPT, DATE, KEPT, KEPT]),  # ends; 01:00 and 02:00 are the instant of the change
        (replace(LONDON, stamp="start"), "2013-03-31", [DATE, DATE, KEPT, KEPT]),
        (UTC, "2013-03-31", [KEPT] * 4),
        (replace(LONDON, day_zone="UTC"), "2013-10-27", [KEPT, DATE, DATE, KEPT]),  # passes in different slots
    ],
)
def test_a_timestamp_that_names_no_one_half_hour_is_rejected(columns, day, expected):
    assert reasons(columns, *(f"A,{day} {at}:00,0.1" for at in ("01:00", "01:30", "02:00", "02:30"))) == expected
