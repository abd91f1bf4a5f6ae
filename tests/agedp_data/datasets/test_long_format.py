"""The table that the run file describes: its header, units, words for missing, and stamps of any clock."""

from __future__ import annotations

import pickle
from dataclasses import replace
from datetime import date, datetime, timedelta

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agedp_data.datasets.csv_parsing import ParsedChunk, parse_lines
from agedp_data.datasets.deduplication import StoredRows, deduplicate_rows
from agedp_data.datasets.registry import layout_of
from agedp_data.datasets.validation import NamedColumns, ReadingRules, RejectionReason
from agedp_data.errors import InputError

LONDON = NamedColumns(
    household="meter", time="at", time_format="%Y-%m-%d %H:%M:%S", stamp="end", zone="Europe/London",
    day_zone="Europe/London", energy="kwh", unit="kWh", missing=("Null", ""),
)  # fmt: skip
UTC = replace(LONDON, zone="UTC")
EPOCH = date(1970, 1, 1)
SPRING, AUTUMN = date(2013, 3, 31), date(2013, 10, 27)


def read(columns: NamedColumns, *rows: str, header: str = "meter,at,kwh") -> ParsedChunk:
    layout = layout_of("long", columns)
    found = layout.recognise([header, *rows])
    assert found is not None
    return parse_lines("\n".join(rows).encode(), layout=layout, header=found, rules=ReadingRules(columns=columns))


def readings_of(columns: NamedColumns, *files: list[str]) -> dict[tuple[str, date, int], int]:
    """Return the readings of files of rows `home,stamp,energy`."""
    layout = layout_of("long", columns)
    parts = []
    for file, rows in enumerate(files):
        parsed = read(columns, *rows)
        of = parsed.records
        kept = of.reason == RejectionReason.KEPT
        code = np.array([ord(of.ids[i][0]) for i in of.household[kept]], np.int64)
        numbers = code, of.channel[kept], of.day[kept] * 48 + of.slot[kept], 0 * code + file, parsed.row[kept]
        parts.append((*numbers, of.energy_wh[kept]))
    rows = StoredRows(tuple(map(chr, range(128))), *(np.concatenate([part[i] for part in parts]) for i in range(6)))
    found = deduplicate_rows(rows, complete_channels=layout.complete_channels(ReadingRules(columns=columns)))
    keys = zip(found.household.tolist(), found.time.tolist(), strict=True)
    return {
        (chr(home), EPOCH + timedelta(days=step // 48), step % 48): wh
        for (home, step), wh in zip(keys, found.energy_wh.tolist(), strict=True)
    }


def reasons(parsed: ParsedChunk) -> list[RejectionReason]:
    return [RejectionReason(code) for code in parsed.records.reason.tolist()]


ONE = {("A", date(2013, 1, 5), 1): 250}


@pytest.mark.parametrize(
    ("header", "row"),
    [
        ("meter,at,kwh", "A,2013-01-05 01:00:00,0.25"),
        ("kwh,at,meter", "0.25,2013-01-05 01:00:00,A"),
        ('"meter","at","kwh"', '"A","2013-01-05 01:00:00","0.25"'),
        (" meter , at , kwh ", "A,2013-01-05 01:00:00, 0.25 "),
        ("Meter,meter,at,x,kwh,kwh2", "B,A,2013-01-05 01:00:00,9,0.25,7"),
        ('meter,"a,""b",at,kwh', "A,9,2013-01-05 01:00:00,0.25"),
    ],
)
def test_the_columns_stand_in_any_order_among_others_and_are_found_by_their_exact_names(header: str, row: str) -> None:
    layout = layout_of("long", LONDON)
    found = layout.recognise([header, row])
    assert found is not None
    assert found.lines == 1
    of = parse_lines(row.encode(), layout=layout, header=found, rules=ReadingRules(columns=LONDON)).records
    assert (of.ids[of.household[0]], of.day[0], of.slot[0], of.energy_wh[0, 0]) == ("A", 15710, 1, 250)


def test_a_name_of_any_letters_is_found() -> None:
    columns = replace(LONDON, household="Zähler")
    found = layout_of("long", columns).recognise(["Zähler,at,kwh".encode().decode("latin-1")])
    assert found is not None
    assert found.names == ("household", "time", "energy")


@pytest.mark.parametrize(
    ("header", "name", "times"),
    [("meter,at,kWh", "kwh", 0), ("meter,at,kwh,kwh", "kwh", 2), ("MAC1,2013-01-05,1", "meter", 0), ("", "meter", 0)],
)
def test_a_column_that_is_not_there_once_is_named_and_what_was_found_stays_private(
    header: str, name: str, times: int
) -> None:
    with pytest.raises(InputError) as caught:
        layout_of("long", LONDON).recognise([header])
    wanted = '[input.columns] needs the columns "meter", "at", "kwh"; '
    assert str(caught.value) == f'{wanted}the header has "{name}" {times} times, not once'
    assert caught.value.private == f"{caught.value}; columns found: " + ", ".join(
        f'"{each}"' for each in header.split(",") if header
    )


@pytest.mark.parametrize("odd", ["2013-01-05 01:00", "13/01/2013 01:00", "31.02.2013 01:00", "05.01.13 01:00", ""])
def test_a_stamp_of_another_format_than_declared_rejects_its_own_row(odd: str) -> None:
    columns = replace(LONDON, time_format="%d.%m.%Y %H:%M")
    for rows in ([f"A,{odd},1", "A,05.01.2013 01:00,1"], ["A,05.01.2013 01:00,1", f"A,{odd},1"]):
        found = reasons(read(columns, *rows))
        assert found == [RejectionReason.DATE if row == f"A,{odd},1" else RejectionReason.KEPT for row in rows]


def test_an_iso_stamp_with_an_offset_is_an_instant_whatever_the_zone_of_the_others() -> None:
    """Summer time in London: 00:00 to 00:30 UTC on 1 July is 01:00 to 01:30 there, slot 2."""
    columns = replace(LONDON, time_format="iso")
    day = date(2013, 7, 1)
    for stamp in ("2013-07-01T00:30Z", "2013-07-01 02:30:00+02", "2013-06-30T20:30:00.000-0400", "2013-07-01 01:30"):
        assert readings_of(columns, [f"A,{stamp},0.1"]) == {("A", day, 2): 100}, stamp
    for stamp in ("2013-07-01 00+01:00", "2013-07-01 00:30+24:00", "2013-07-01 00:30 Z", "2013-07-01Z"):
        for others in ([], ["B,2013-07-01T00:30Z,1"], ["B,2013-07-01 00:30,1"]):
            assert reasons(read(columns, f"A,{stamp},0.1", *others))[0] is RejectionReason.DATE, stamp
    assert reasons(read(LONDON, "A,2013-07-01 00:30:00Z,0.1")) == [RejectionReason.DATE]


def test_an_offset_tells_the_passes_of_a_repeated_hour_apart() -> None:
    """01:00 to 01:30 on 27 October comes twice in London: at 00:00 and at 01:00 UTC."""
    rows = ["A,2013-10-27T01:30+01:00,0.1", "A,2013-10-27T01:30+00:00,0.2"]
    columns = replace(LONDON, time_format="iso")
    assert readings_of(columns, rows) == {("A", AUTUMN, 2): 300}
    assert readings_of(columns, rows[:1]) == {}


@pytest.mark.parametrize(
    ("stamps", "meant"),
    [
        (["2013-01-05T01:00:00Z", "2013-01-05T02:30:00+01:00"], "iso"),
        (["2013-01-05 01:00:00 +0100"], None),
        (["2013-01-05 01:00"], "iso"),
        (["13.01.2013 01:00", "01.02.2013 01:30"], "%d.%m.%Y %H:%M"),
        (["01/12/2013 01:00", "01/13/2013 01:00"], "%m/%d/%Y %H:%M"),
        (["201301050130"], "%Y%m%d%H%M"),
        (["noon"], None),
        (["13.01.2013 01:00", "noon"], None),
    ],
)
def test_stamps_of_a_usual_format_are_told_by_it_in_private(stamps: list[str], meant: str | None) -> None:
    layout, rows = layout_of("long", replace(LONDON, time_format="%Y/%m/%d %H.%M")), [f"A,{s},1" for s in stamps]
    header = layout.recognise(["meter,at,kwh"])
    assert header is not None
    error = layout.date_format_error(rows, header)
    near = f'; did you mean "{meant}"?' if meant else ""
    assert error.private == f'{error}; the first is "{stamps[0]}"{near}'
    assert str(error).endswith('matches [input.columns] time_format = "%Y/%m/%d %H.%M"')
    if meant:  # and so it can be read
        read(replace(LONDON, time_format=meant, zone="UTC"), *(f"A,{stamp},1" for stamp in stamps))


@pytest.mark.parametrize(
    ("pattern", "stamp"),
    [
        ("iso", "2013-01-05T01:00"),
        ("%Y-%m-%d %H:%M:%S", "2013-01-05 01:00:00.0000000"),
        ("%d/%m/%Y %H:%M:%S", "5/1/2013 01:00:00"),
        ("%m/%d/%Y %I:%M %p", "01/05/2013 01:00 AM"),
        ("%d-%b-%y %H:%M", "5-Jan-13 01:00"),
        ("%H:%M %d/%m/%Y", "01:00 05/01/2013"),
        ("%Y%m%d%H%M", "201301050100"),
        ("%Y-%m-%dT%H:%M:%S.%f", "2013-01-05T01:00:00.000"),
        ("%Y-%m-%dT%H:%M:%S%z", "2013-01-05T03:00:00+02:00"),
    ],
)
def test_a_stamp_is_read_by_its_pattern(pattern: str, stamp: str) -> None:
    assert readings_of(replace(UTC, time_format=pattern), [f"A,{stamp},0.25"]) == ONE


def test_half_a_second_past_is_off_the_half_hour() -> None:
    columns = replace(UTC, time_format="%Y-%m-%dT%H:%M:%S.%f")
    rows = ["A,2013-01-05T01:00:00.5,1", "A,2013-01-05T01:00:00.0,1", "A,2013-01-05T01:15:00.0,1"]
    assert reasons(read(columns, *rows)) == [RejectionReason.OFF_GRID, RejectionReason.KEPT, RejectionReason.OFF_GRID]


def test_watt_hours_and_kilowatt_hours_are_rounded_to_the_nearest_watt_hour() -> None:
    stamps = [f"A,2013-01-05 0{i}:00:00" for i in range(1, 5)]
    cells = ("250", "1452.9999", "0", "50001")
    rows = [f"{stamp},{cell}" for stamp, cell in zip(stamps, cells, strict=True)]
    assert list(readings_of(replace(LONDON, unit="Wh"), rows).values()) == [250, 1453, 0]
    assert reasons(read(replace(LONDON, unit="Wh"), *rows))[3] is RejectionReason.ABOVE_BOUND
    assert list(readings_of(LONDON, [f"{stamps[0]},1.4529999"]).values()) == [1453]


@pytest.mark.parametrize("odd", [[], ["A,2013-01-05 02:00:00,abc"], ["A,never,1"]])
@pytest.mark.parametrize("cell", ["-9", " -9 ", "-9.0", "n/a", " n/a ", "NaN", "nan"])
def test_a_word_for_missing_is_missing_however_it_is_padded_whatever_else_stands_in_the_block(
    cell: str, odd: list[str]
) -> None:
    columns = replace(LONDON, missing=("-9", " n/a", "nan"))
    parsed = read(columns, f"A,2013-01-05 01:00:00,{cell}", *odd, "B,2013-01-05 01:00:00,1")
    assert reasons(parsed)[0] is RejectionReason.MISSING
    assert reasons(parsed)[-1] is RejectionReason.KEPT


def test_an_empty_cell_is_text_where_the_run_file_does_not_call_it_missing() -> None:
    found = reasons(read(replace(LONDON, missing=("Null",)), "A,2013-01-05 01:00:00,", "A,2013-01-05 01:00:00,Null"))
    assert found == [RejectionReason.TEXT, RejectionReason.MISSING]


@pytest.mark.parametrize("lost", [2, 4])
def test_a_slot_with_one_pass_lacking_is_a_missing_reading(lost: int) -> None:
    ends = [datetime(2013, 10, 26, 23, 30) + timedelta(minutes=30 * i) for i in range(50)]
    found = readings_of(UTC, [f"A,{end},0.1" for i, end in enumerate(ends) if i != lost])
    assert sorted(set(range(48)) - {slot for _, _, slot in found}) == [2]


def test_passes_of_two_files_add_up_and_a_pass_that_is_contradicted_is_missing() -> None:
    one, two = "A,2013-10-27 00:30:00,0.1", "A,2013-10-27 01:30:00,0.2"
    assert readings_of(UTC, [one], [two]) == {("A", AUTUMN, 2): 300}
    assert readings_of(UTC, [one, two], [two]) == {("A", AUTUMN, 2): 300}
    assert readings_of(UTC, [one, two], [two.replace("0.2", "0.3")]) == {}


def test_a_civil_clocks_repeated_half_hour_is_the_sum_of_its_two_rows_and_of_nothing_else() -> None:
    one, two, other = (f"A,2013-10-27 01:30:00,0.{i}" for i in (1, 2, 3))
    summed = {("A", AUTUMN, 2): 300}
    assert readings_of(LONDON, [one, two]) == readings_of(LONDON, [two, one]) == summed
    assert readings_of(LONDON, [one, one]) == {("A", AUTUMN, 2): 200}  # half-hours of the same size are no duplicate
    assert (
        readings_of(LONDON, [one])
        == readings_of(LONDON, [one, two, other])
        == readings_of(LONDON, [one, one, one])
        == {}
    )
    assert readings_of(LONDON, [one, two], [two, one]) == summed
    assert readings_of(LONDON, [one, two], [one, other]) == readings_of(LONDON, [one, two], [one]) == {}
    assert readings_of(LONDON, [one, two, other], [one, two]) == summed  # a file that contradicts itself says nothing
    before_and_after = ["A,2013-10-27 01:00:00,0.4", "A,2013-10-27 02:30:00,0.5"]
    assert readings_of(LONDON, before_and_after) == {("A", AUTUMN, 1): 400, ("A", AUTUMN, 4): 500}


def test_where_the_passes_belong_to_different_slots_nothing_tells_them_apart() -> None:
    rows = [f"A,2013-10-27 {clock}:00,0.1" for clock in ("01:00", "01:30", "02:00", "02:30")]
    expected = [RejectionReason.KEPT, RejectionReason.DATE, RejectionReason.DATE, RejectionReason.KEPT]
    found = reasons(read(replace(LONDON, day_zone="UTC"), *rows))
    assert found == expected


def test_clocks_that_go_back_together_share_their_repeated_hour() -> None:
    rows = ["A,2013-10-27 01:30:00,0.1", "A,2013-10-27 01:30:00,0.2"]
    assert readings_of(replace(LONDON, day_zone="Europe/Paris"), rows) == {("A", AUTUMN, 4): 300}


def test_stamps_that_the_clock_never_shows_are_set_aside() -> None:
    clocks = ("01:00", "01:30", "02:00", "02:30")  # ends; 01:00 to 02:00 does not exist
    rows = [f"A,2013-03-31 {clock}:00,0.1" for clock in clocks]
    assert reasons(read(LONDON, *rows)) == [
        RejectionReason.KEPT, RejectionReason.DATE, RejectionReason.DATE, RejectionReason.KEPT,
    ]  # fmt: skip
    starts = reasons(read(replace(LONDON, stamp="start"), *rows))
    assert starts == [RejectionReason.DATE, RejectionReason.DATE, RejectionReason.KEPT, RejectionReason.KEPT]
    assert reasons(read(UTC, *rows)) == [RejectionReason.KEPT] * 4


@pytest.mark.parametrize("stamp", ["1970-01-01 00:00:00", "1969-12-31 23:30:00", "2200-01-01 01:00:00", "9999-01-01"])
def test_a_stamp_before_1970_or_after_2199_is_an_impossible_date(stamp: str) -> None:
    rows = (f"A,{stamp},0.1", "A,1970-01-01 00:30:00,0.1", "A,2199-12-31 23:30:00,0.1")
    for zone in ("UTC", "Asia/Tokyo"):
        columns = replace(LONDON, zone=zone, day_zone=zone)
        assert reasons(read(columns, *rows)) == [RejectionReason.DATE, RejectionReason.KEPT, RejectionReason.KEPT]


ZONES = ("UTC", "Europe/London", "Australia/Sydney", "Australia/Lord_Howe", "America/Havana", "Asia/Kathmandu")


@given(st.sampled_from(ZONES), st.integers(0, 365 * 48), st.integers(0, 120))
@settings(max_examples=150, deadline=None)
def test_instants_are_never_lost_and_never_meet_but_in_a_repeated_slot(day_zone: str, first: int, steps: int) -> None:
    """All half-hours of a stretch of UTC on the grid of the zone: as many places as there are half-hours."""
    shift = timedelta(minutes=15 if day_zone == "Asia/Kathmandu" else 0)
    start = datetime(2013, 1, 1) + first * timedelta(minutes=30) + shift
    rows = [f"A,{start + i * timedelta(minutes=30)},0.1" for i in range(steps + 1)]
    columns = replace(UTC, stamp="start", day_zone=day_zone)
    of = read(columns, *rows).records
    assert set(of.reason.tolist()) == {RejectionReason.KEPT}
    places = list(zip(of.day.tolist(), of.slot.tolist(), of.channel.tolist(), strict=True))
    assert len(set(places)) == len(rows)
    layout = layout_of("long", columns)
    for day, slot, channel in places:
        assert (channel > 0) == (slot in layout.repeated_slots(EPOCH + timedelta(days=day)))
        assert slot not in layout.absent_slots(EPOCH + timedelta(days=day))


def test_columns_travel_to_workers_and_the_same_columns_are_the_same_layout() -> None:
    rules = pickle.loads(pickle.dumps(ReadingRules(columns=LONDON)))  # noqa: S301  (our own bytes)
    assert rules == ReadingRules(columns=LONDON)
    keys = {name: getattr(LONDON, name) for name in LONDON.__slots__} | {"missing": ["Null", ""]}
    assert layout_of("long", rules.columns) is layout_of("long", keys)
    assert layout_of("long", LONDON).day_zone == "Europe/London"


def test_columns_and_dataset_go_together() -> None:
    for dataset, columns in (("long", None), ("london", LONDON)):
        with pytest.raises(InputError, match=r'goes with dataset = "long"'):
            layout_of(dataset, columns)
    with pytest.raises(InputError, match='"paris" is not one of london, ausgrid, long'):
        layout_of("paris")
