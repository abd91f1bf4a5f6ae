"""Tables of readings of any shape: columns, stamps, periods, units, intervals and passes of the clock."""

from __future__ import annotations

import gzip
from collections import defaultdict
from dataclasses import replace
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import agedp
from agedp.stages.ingest import read_readings
from agedp_data.config.loading import read_columns
from agedp_data.datasets.csv_parsing import ParsedChunk
from agedp_data.datasets.layout import expected_readings
from agedp_data.datasets.registry import layout_of
from agedp_data.datasets.validation import NamedColumns, ReadingRules, RejectionReason
from agedp_data.errors import AgedpError, InputError
from tests.agedp_data.datasets import parsing
from tests.agedp_data.datasets.parsing import step

# Every declared shape of a table of readings: by the row, by the day, by the meter; its times, units and marks.

MONDAY, SPRING, AUTUMN = date(2024, 1, 8), date(2024, 3, 31), date(2024, 10, 27)
KEYS = {
    "household": "meter", "time": "at", "time_format": "iso", "stamp": "start", "zone": "UTC", "day_zone": "UTC",
    "energy": "kwh", "unit": "kWh",
}  # fmt: skip
LONDON = {"zone": "Europe/London", "day_zone": "Europe/London"}
KEPT, DATE, TEXT = RejectionReason.KEPT, RejectionReason.DATE, RejectionReason.TEXT


def columns(**keys: object) -> NamedColumns:
    return NamedColumns.from_keys(read_columns(KEYS | keys, 30).model_dump())


def parsed(text: str, *, minutes: int = 30, **keys: object):
    layout = layout_of("long", columns(**keys), minutes)
    header, *rows = text.strip().split("\n")
    rules = ReadingRules(columns=layout.columns, interval_minutes=minutes)
    return parsing.parse(layout, header, *rows, rules=rules)


def kept(text: str, **keys: object) -> dict[tuple[str, int], float]:
    """Return the energy of each kept record [Wh], by household and half-hour."""
    records = parsed(text, **keys).records
    unit = layout_of("long", columns(**{key: value for key, value in keys.items() if key != "minutes"}),
                     keys.get("minutes", 30)).units_per_wh  # fmt: skip
    rows = zip(records.household.tolist(), records.time.tolist(), records.energy_wh[:, 0].tolist(),
               records.reason.tolist(), strict=True)  # fmt: skip
    return {(records.ids[code], time): wh / unit for code, time, wh, reason in rows if reason == KEPT}


def by_file(folder, text: str, name: str = "a.csv", *, minutes: int = 30, **keys: object):
    """Return the energies of a file by household, day and slot [Wh]; files are read as a run reads them."""
    content = text.encode(str(keys.get("encoding", "utf-8")))
    (folder / name).write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    rules = ReadingRules(interval_minutes=minutes)
    frame = read_readings(folder / name, dataset="long", columns=KEYS | keys, rules=rules)
    return {(row.household_id, row.day.date(), row.slot): row.energy_wh for row in frame.itertuples()}


@pytest.mark.parametrize(
    ("pattern", "written", "slot"),
    [
        ("%d/%m/%Y %H:%M", "08/01/2024 24:00", 48),
        ("%d/%m/%Y %H:%M", "08/01/2024", 0),
        ("%d.%m.%Y, %H:%M:%S", "08.01.2024, 24:00:00", 48),
        ("%Y%m%d%H%M", "202401082400", 48),
        ("%m/%d/%Y %I:%M %p", "01/08/2024 12:30 AM", 1),
        ("%m/%d/%Y %I:%M %p", "01/08/2024", 0),
    ],
)
def test_midnights_are_understood_in_every_pattern(pattern, written, slot):
    assert kept(f"meter;at;kwh\nA;{written};0.5", time_format=pattern, separator=";") == {
        ("A", step(MONDAY, slot)): 500
    }


def test_a_period_is_so_many_intervals_after_midnight_whatever_the_clock_shows():
    """The 23 hours of a day in March have 46 periods, the 25 hours of a day in October 50."""
    keys = {"time": ["day", "period"], "period_minutes": 30, **LONDON}
    rows = [(SPRING, 46), (SPRING, 47), (AUTUMN, 3), (AUTUMN, 5), (AUTUMN, 50), (AUTUMN, 51), (MONDAY, 48), (MONDAY, 0)]
    text = "meter,day,period,kwh\n" + "\n".join(f"A,{day},{number},1" for day, number in rows)
    assert parsing.reasons(parsed(text, **keys)) == [KEPT, DATE, KEPT, KEPT, KEPT, DATE, KEPT, DATE]
    records = parsed(text, **keys).records
    slots = [(step(SPRING, 47)), step(AUTUMN, 2), step(AUTUMN, 2), step(AUTUMN, 47), step(MONDAY, 47)]
    assert records.time[records.reason == KEPT].tolist() == slots
    assert records.channel[records.reason == KEPT].tolist() == [0, 1, 2, 0, 0]  # the two passes of 1:00 to 1:30
    from_zero = parsed("meter,day,period,kwh\nA,2024-01-08,0,1", **keys, first_period=0)
    assert from_zero.records.time.tolist() == [step(MONDAY)]


@given(zone=st.sampled_from(["Europe/London", "Australia/Lord_Howe", "America/Santiago"]), day=st.integers(0, 365))
@settings(max_examples=60, deadline=None)
def test_periods_are_instants_of_the_zone(zone, day):
    """Counted by the standard library's clock: the n-th half-hour after the local midnight."""
    begins = datetime(2024, 1, 1, tzinfo=ZoneInfo(zone)) + timedelta(days=day)
    start, end = begins.astimezone(UTC), (begins + timedelta(days=1)).astimezone(UTC)
    number = int((end - start) / timedelta(minutes=30))
    text = "meter,day,period,kwh\n" + "\n".join(f"A,{begins:%Y-%m-%d},{i + 1},{i}" for i in range(number + 1))
    keys = {"time": ["day", "period"], "period_minutes": 30, "zone": zone, "day_zone": "UTC"}
    first = int(start.timestamp()) // 1800
    assert kept(text, **keys) == {("A", first + i): 1000 * i for i in range(number)}


@pytest.mark.parametrize(
    ("time_format", "number"), [("epoch", "1704673800"), ("epoch", "1704673800.0"), ("epoch-ms", "1704673800000")]
)
def test_seconds_since_1970_are_instants(time_format, number):
    assert kept(f"meter,at,kwh\nA,{number},1", time_format=time_format, zone="Asia/Tokyo") == {
        ("A", step(MONDAY, 1)): 1000
    }
    rows = f"A,{number},1\nA,x,1\nA,0,1\nA,-5,1\nA,{'9' * 30},1\nA,,1"
    assert parsing.reasons(parsed(f"meter,at,kwh\n{rows}", time_format=time_format)) == [KEPT] + [DATE] * 5


@pytest.mark.parametrize(("minutes", "number"), [(60, 24), (30, 48), (15, 96), (5, 288)])
def test_a_row_of_a_day_has_a_column_for_each_interval(minutes, number):
    names = [f"h{i}" for i in range(number)]
    text = f"meter,day,{','.join(names)},note\nA,2024-01-08,{','.join(str(i) for i in range(number))},x"
    records = parsed(text, minutes=minutes, time="day", energy=["h0", f"h{number - 1}"]).records
    time = [step(MONDAY, i * minutes // 30) for i in range(number)]
    assert records.time.tolist() == time
    assert records.channel.tolist() == [4 * (i % max(1, 30 // minutes)) for i in range(number)]


def test_a_cell_of_a_day_is_rejected_by_itself_and_a_broken_line_whole():
    names = [f"h{i}" for i in range(48)]
    cells = ["1"] * 48
    text = f"meter,day,{','.join(names)}\n"
    rows = ["A,2024-01-08," + ",".join([*cells[:5], "x", *cells[6:]]), 'A,2024-01-09,"' + ",".join(cells),
            "A,2024-01-10," + ",".join(cells[1:])]  # fmt: skip
    found = parsing.reasons(parsed(text + "\n".join(rows), time="day", energy=["h0", "h47"]))
    assert found[:48] == [TEXT if i == 5 else KEPT for i in range(48)]
    assert set(found[48:96]) == {RejectionReason.LINE}
    assert set(found[96:]) == {RejectionReason.FIELDS}
    rejected = parsed(text + rows[0], time="day", energy=["h0", "h47"]).rejected_text
    assert rejected == ("A,2024-01-08,h5,x",)


def test_a_spring_hour_of_a_row_of_a_day_is_no_time_and_an_autumn_hour_has_both_passes():
    names = ",".join(f"h{i}" for i in range(48))
    keys = {"time": "day", "energy": ["h0", "h47"], **LONDON}
    for day, rejected in ((SPRING, {2, 3}), (AUTUMN, set())):
        found = parsed(f"meter,day,{names}\nA,{day},{','.join(['1'] * 48)}", **keys)
        assert {i for i, reason in enumerate(parsing.reasons(found)) if reason == DATE} == rejected
        assert not found.records.channel.any()


def test_a_row_of_a_day_must_have_all_intervals():
    with pytest.raises(InputError, match=r"names 2 columns from the first to the last; a day of 30 minutes has 48"):
        parsed("meter,day,h0,h1\nA,2024-01-08,1,2", time="day", energy=["h0", "h1"])


@pytest.mark.parametrize(
    ("unit", "minutes", "wh"), [("W", 30, 15), ("W", 60, 30), ("W", 15, 7.5), ("kW", 30, 15_000), ("W", 5, 2.5)]
)
def test_a_power_is_that_of_its_whole_interval(unit, minutes, wh):
    assert kept("meter,at,kwh\nA,2024-01-08 00:00,30", unit=unit, minutes=minutes) == {("A", step(MONDAY)): wh}


def test_shorter_readings_add_up_and_are_rounded_once(tmp_path):
    """Six times 0.4 Wh are 2.4 Wh, so 2 Wh, not six times 0."""
    rows = "".join(f"A,2024-01-08 00:{5 * i:02},0.0004\n" for i in range(12))
    assert by_file(tmp_path, f"meter,at,kwh\n{rows}", minutes=5) == {("A", MONDAY, 0): 2, ("A", MONDAY, 1): 2}
    odd = "A,2024-01-08 01:02,1\nA,2024-01-08 01:00:30,1\n"
    found = parsing.reasons(parsed(f"meter,at,kwh\n{odd}", minutes=5))
    assert found == [RejectionReason.OFF_GRID] * 2


def test_a_file_is_a_household_by_its_name_or_a_line(tmp_path):
    rows = "at,kwh\n2024-01-08 00:00,1\n"
    for name, pattern in (
        ("meter-77.csv", "file:meter-*.csv"), ("77.csv.gz", "file:*.csv"),
        ("a_77_2024-01_b2.csv", "file:a_*_2024-*.csv"),
    ):  # fmt: skip
        assert by_file(tmp_path, rows, name, household=pattern) == {("77", MONDAY, 0): 1000}
    preamble = "PRM;x\n77;y\nat;kwh\n2024-01-08 00:00;1\n"
    keys = {"separator": ";", "skip_lines": 2}
    assert by_file(tmp_path, preamble, **keys, household="line:2") == {("77", MONDAY, 0): 1000}
    with pytest.raises(InputError, match="does not fit"):
        by_file(tmp_path, rows, "other.csv", household="file:meter-*.csv")
    with pytest.raises(InputError, match="line 2 has no household"):
        by_file(tmp_path, "PRM;x\n;y\nat;kwh\n2024-01-08 00:00;1\n", **keys, household="line:2")


def test_two_homes_with_equal_files_are_two_homes(tmp_path):
    for home in ("1", "2"):
        (tmp_path / f"m{home}.csv").write_text("at,kwh\n2024-01-08 00:00,1\n")
    frame = read_readings(tmp_path / "*.csv", dataset="long", columns=KEYS | {"household": "file:m*.csv"})
    assert frame["household_id"].tolist() == ["1", "2"]


@pytest.mark.parametrize("encoding", ["utf-8", "latin-1", "cp1252", "utf-16"])
def test_a_file_is_read_in_its_encoding(tmp_path, encoding):
    text = "zähler;at;kwh\nÄ1;2024-01-08 00:00;1,5\n"
    keys = {"household": "zähler", "separator": ";", "decimal": ",", "encoding": encoding}
    assert by_file(tmp_path, text, **keys) == {("Ä1", MONDAY, 0): 1500}


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_utf_16_may_lack_its_byte_order_mark(tmp_path, encoding):
    path = tmp_path / "a.csv"
    path.write_bytes("zähler,at,kwh\nÄ1,2024-01-08 00:00,1.5\n".encode(encoding))
    frame = read_readings(path, dataset="long", columns=KEYS | {"household": "zähler", "encoding": "utf-16"})
    assert frame[["household_id", "energy_wh"]].to_numpy().tolist() == [["Ä1", 1500]]
    with pytest.raises(InputError, match="is UTF-16; save it as UTF-8, or declare"):
        read_readings(path, dataset="long", columns=KEYS | {"household": "zähler"})


@pytest.mark.parametrize(("line", "mark"), [("sep=;", ";"), ('"sep=;"', ";"), ("sep=,", ";"), ("sep=\t", "\t")])
def test_the_first_line_of_a_spreadsheet_is_no_header(tmp_path, line, mark):
    text = f"{line}\nmeter;at;kwh\nA;2024-01-08 00:00;1\n".replace(";", mark)
    assert by_file(tmp_path, text, separator=mark) == {("A", MONDAY, 0): 1000}


@pytest.mark.parametrize(
    ("thousands", "decimal", "cell", "wh"),
    [(",", ".", '"1,234"', 1234), (",", ".", '"1,234,567.5"', 1234568), (".", ",", "1.234", 1234),
     (".", ",", '"1.234,5"', 1234), (" ", ".", "1 234", 1234), ("'", ".", "1'234", 1234),
     ("\u202f", ",", "1\u202f234,5", 1234), ("\u00a0", ",", "12\u00a0345", 12345), ("\u2019", ".", "1\u2019234", 1234)],
)  # fmt: skip
def test_thousands_have_a_mark(thousands, decimal, cell, wh):
    keys = {"unit": "Wh", "thousands": thousands, "decimal": decimal, "separator": ";"}
    layout = layout_of("long", columns(**keys))
    rules = ReadingRules(columns=layout.columns, max_half_hour_wh=10_000_000)
    header, row = "meter;at;kwh", f"A;2024-01-08 00:00;{cell}"
    records = parsing.parse(layout, header, row, "A;2024-01-08 00:30;987", rules=rules).records
    assert records.energy_wh[:, 0].tolist() == [wh, 987]


FIRST, SECOND = step(MONDAY), step(MONDAY, 1)
OF_HOURS = ",".join(f"h{hour}" for hour in range(1, 25))


@pytest.mark.parametrize(
    ("text", "keys", "energies"),
    [
        ('meter,kwh,at\nA,"0,5",2024-01-08 00:00\n"A","1","2024-01-08 00:30"\nB,2,2024-01-08 00:00', {},
         {("A", FIRST): 500, ("A", SECOND): 1000, ("B", FIRST): 2000}),
        ('at,A,B\n2024-01-08 00:00,"0,5","1,75"\n2024-01-08 00:30,",25",', {"household": "*", "energy": "*"},
         {("A", FIRST): 500, ("B", FIRST): 1750, ("A", SECOND): 250}),
        (f'meter,at,{OF_HOURS}\nA,2024-01-08,"0,5",1,"0,25"' + ',""' * 21, {"energy": ["h1", "h24"], "minutes": 60},
         {("A", FIRST): 500, ("A", FIRST + 2): 1000, ("A", FIRST + 4): 250}),
    ],
)  # fmt: skip
def test_a_decimal_mark_in_quotes_may_be_the_separator(text, keys, energies):
    assert kept(text, **keys, decimal=",") == energies


def test_a_number_that_its_separator_divides_has_a_field_too_many():
    long = 'meter,at,kwh\nA,2024-01-08 00:00,0,5\nA,2024-01-08 00:30,"0,5'
    wide = 'at,A,B\n2024-01-08 00:00,"0,5",0,5\n2024-01-08 00:30,"0,5","0,5"'
    fields, line = RejectionReason.FIELDS, RejectionReason.LINE
    assert parsing.reasons(parsed(long, decimal=",")) == [fields, line]
    assert parsing.reasons(parsed(wide, decimal=",", household="*", energy="*")) == [fields, fields, KEPT, KEPT]


@pytest.mark.parametrize("cell", ["1,23", "1,2345", ",123", "12,345,6", "1,,234"])
def test_other_places_of_a_mark_are_no_number(cell):
    text = f"meter;at;kwh\nA;2024-01-08 00:00;{cell}"
    assert parsing.reasons(parsed(text, thousands=",", separator=";", unit="Wh")) == [TEXT]


SYDNEY_SPRING = date(2024, 10, 6)
SKIPPED = {"Europe/London": (SPRING, 2), "Europe/Brussels": (SPRING, 4), "Australia/Sydney": (SYDNEY_SPRING, 4)}
"""The day on which the clock of a zone skips an hour, and the first half-hour of that hour."""


def end_labels(zone: str, *, are_instants: bool) -> list[str]:
    """Return the 46 ends of a day of 23 hours: as the clock shows them, or half an hour after their starts."""
    day, half_hour, of = SKIPPED[zone][0], timedelta(minutes=30), ZoneInfo(zone)
    midnight = datetime(day.year, day.month, day.day, tzinfo=of).astimezone(UTC)
    starts = [midnight + number * half_hour for number in range(46)]
    shown = [
        (at + half_hour).astimezone(of).replace(tzinfo=None)
        if are_instants
        else at.astimezone(of).replace(tzinfo=None) + half_hour
        for at in starts
    ]
    return [f"{at:%Y-%m-%d %H:%M}" for at in shown]


@pytest.mark.parametrize("zone", SKIPPED)
@pytest.mark.parametrize("are_instants", [True, False])
@pytest.mark.parametrize("shape", ["rows", "columns", "date and time", "frame"])
def test_a_day_of_23_hours_has_46_half_hours_by_their_ends(tmp_path, zone, are_instants, shape):
    """The n-th reading is n Wh: 1081 in all, and the hour that is skipped has none."""
    day, absent = SKIPPED[zone]
    ends = end_labels(zone, are_instants=are_instants)
    keys = {"stamp": "end", "zone": zone, "day_zone": zone, "unit": "Wh"}
    rows = [(at, number) for number, at in enumerate(ends, 1)]
    if shape == "columns":
        text = "at,A\n" + "".join(f"{at},{wh}\n" for at, wh in rows)
        energies = by_file(tmp_path, text, **keys, household="*", energy="*")
    elif shape == "date and time":
        text = "meter,day,clock,kwh\n" + "".join(f"A,{at.replace(' ', ',')},{wh}\n" for at, wh in rows)
        energies = by_file(tmp_path, text, **keys, time=["day", "clock"])
    elif shape == "rows":
        energies = by_file(tmp_path, "meter,at,kwh\n" + "".join(f"A,{at},{wh}\n" for at, wh in rows), **keys)
    else:
        frame = pd.DataFrame({"meter": "A", "at": pd.to_datetime(ends), "kwh": range(1, 47)})
        found = agedp.read(frame, columns=KEYS | keys)
        starts = found["interval_start"]
        energies = {
            ("A", at.date(), at.hour * 2 + at.minute // 30): wh
            for at, wh in zip(starts, found["energy_wh"], strict=True)
        }
    slots = [slot for slot in range(48) if slot not in (absent, absent + 1)]
    assert energies == {("A", day, slot): number for number, slot in enumerate(slots, 1)}


def test_rows_that_are_not_asked_for_name_nobody():
    text = "meter,at,kwh,register\nA,2024-01-08 00:00,1,E1\nA,2024-01-08 00:00,2,B1\nB,x,2,B1\nA,x,1, E1 "
    found = parsed(text, where={"register": "E1"})
    assert parsing.reasons(found) == [KEPT, RejectionReason.CATEGORY, RejectionReason.CATEGORY, DATE]
    assert len(found.rejected_row) == 1
    both = parsed(text, where={"register": ["E1", "B1"]})
    assert parsing.reasons(both) == [KEPT, KEPT, DATE, DATE]


@pytest.mark.parametrize(("negative", "energies"), [("reject", [-1, 2000]), ("zero", [0, 2000]), ("net", [-500, 2000])])
def test_a_negative_energy_is_what_the_run_file_says(negative, energies):
    records = parsed("meter,at,kwh\nA,2024-01-08 00:00,-0.5\nA,2024-01-08 00:30,2", negative=negative).records
    assert records.energy_wh[:, 0].tolist() == energies
    assert (records.reason[0] == RejectionReason.NEGATIVE) == (negative == "reject")


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"energy": ["a", "b"], "time_format": "%H:%M"}, 'must be "iso", or a pattern such as "%d/%m/%Y"'),
        ({"time": ["a", "b"], "time_format": "epoch"}, "is the format of a timestamp in one column"),
        ({"period_minutes": 30}, 'must be the date and the number of the period, such as ["date", "period"]'),
        ({"first_period": 0}, "is used with period_minutes only"),
        ({"household": "line:0"}, 'such as "line:2"'),
        ({"household": "file:meter.csv"}, 'such as "file:meter-*.csv"'),
        ({"thousands": "."}, "is also the decimal mark"),
        ({"where": "E1"}, 'must be a table of columns and texts, such as { register = "E1" }'),
        ({"where": {"register": []}}, "needs a text, or a list of texts, for the column 'register'"),
        ({"household": "*", "energy": "*", "add": "x"}, "is for a table whose rows are of one household each"),
        ({"time": ["at", "at"]}, 'time = ["at", "at"]: names a column twice'),
        ({"time": ["at", "kwh"]}, "names a column that another key names"),
        ({"unit": "MW"}, 'write "kWh" | "Wh" | "W" | "kW"'),
    ],
)
def test_what_does_not_fit_together_is_refused_in_one_line(keys, message):
    with pytest.raises(AgedpError) as refusal:
        read_columns(KEYS | keys, 30)
    assert message in str(refusal.value)
    assert "\n" not in str(refusal.value)


CELLS = st.text("0123456789.,-+eE \t\"';:|ABCinfNaN\x00é", max_size=12)


@given(
    rows=st.lists(st.lists(CELLS, min_size=3, max_size=5), max_size=6),
    keys=st.sampled_from(
        [
            {}, {"time_format": "epoch"}, {"time": ["at", "part"], "time_format": "%d/%m/%Y %H:%M"},
            {"time": ["at", "part"], "period_minutes": 30}, {"where": {"part": "x"}, "add": "part"},
            {"negative": "net", "thousands": ",", "unit": "W"}, {"household": "*", "energy": "*"},
            {"energy": ["kwh", "kwh"], "time": "at"},
        ]
    ),
)  # fmt: skip
@settings(max_examples=150, deadline=None)
def test_every_row_is_accounted_for_whatever_it_contains(rows, keys):
    text = "meter,at,kwh,part\n" + "\n".join(",".join(cells) for cells in rows)
    try:
        found = parsed(text, **keys)
    except AgedpError:
        return
    excluded = parsing.reasons(found).count(RejectionReason.CATEGORY)
    kept_rows = parsing.reasons(found).count(KEPT)
    assert found.rows_read == kept_rows + excluded + len(found.rejected_row)


@pytest.mark.parametrize("energy", ["", "x", "-1", "1e9"])
def test_a_day_of_which_a_meter_has_no_reading_is_not_that_of_the_others(tmp_path, energy):
    """Meter y has rows on Monday, none of them kept, and readings on Tuesday: Monday's half-hours lack it."""
    rows = [f"A,{day} {slot // 2:02}:{slot % 2 * 30:02},{1 if day == MONDAY else 2},x\n"
            f"A,{day} {slot // 2:02}:{slot % 2 * 30:02},{energy if day == MONDAY else 3},y\n"
            for day in (MONDAY, MONDAY + timedelta(days=1)) for slot in range(48)]  # fmt: skip
    found = by_file(tmp_path, "meter,at,kwh,part\n" + "".join(rows), add="part")
    assert found == {("A", MONDAY + timedelta(days=1), slot): 5000 for slot in range(48)}
    frame = agedp.read(tmp_path / "a.csv", columns=KEYS | {"add": "part"})
    assert (len(frame), frame["energy_wh"].unique().tolist()) == (48, [5000])
    assert frame.attrs["rows"] == {"read": 192, "kept": 144, "rejected": frame.attrs["rows"]["rejected"]}


# The table that the run file describes: its header, units, words for missing, and timestamps of any clock.

LONDON_ENDS = NamedColumns(
    household="meter", time="at", time_format="%Y-%m-%d %H:%M:%S", stamp="end", zone="Europe/London",
    day_zone="Europe/London", energy="kwh", unit="kWh", missing=("Null", ""),
)  # fmt: skip
UTC_ENDS = replace(LONDON_ENDS, zone="UTC")
ISO = replace(LONDON_ENDS, time_format="iso")
AUTUMN_2013 = date(2013, 10, 27)


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
    found = parsing.settle(
        layout_of("long", UTC_ENDS), ReadingRules(columns=UTC_ENDS), [read(UTC_ENDS, row, header=header)]
    )
    assert found.readings == {("A", step(date(2013, 1, 5), 1)): 250}


@pytest.mark.parametrize(
    ("header", "name", "times"), [("meter,at,kWh", "kwh", 0), ("meter,at,kwh,kwh", "kwh", 2), ("", "meter", 0)]
)
def test_a_missing_column_is_named_and_the_header_stays_private(header, name, times):
    with pytest.raises(InputError) as caught:
        layout_of("long", LONDON_ENDS).recognise([header])
    wanted = '[input.columns] needs the columns "meter", "at", "kwh"; '
    remedy = "Give each column a name of its own" if times else "Name columns of the header"
    assert str(caught.value) == f'{wanted}the header has "{name}" {times} times, not once. {remedy}'
    found = ", ".join(f'"{each}"' for each in header.split(",") if header)
    assert caught.value.private == f"{caught.value}; columns found: {found}"


def test_a_household_with_two_columns_is_named_in_private():
    with pytest.raises(InputError) as caught:
        layout_of("long", columns(household="*", energy="*")).recognise(["at,M1,M2,M1,M3"])
    assert "the header has 4, some of them twice" in str(caught.value)
    assert caught.value.private == f"{caught.value}: M1. Give each column a name of its own, or ignore it"


def test_an_iso_timestamp_with_an_offset_is_an_instant():
    """Summer time in London: 00:00 to 00:30 UTC_ENDS on 1 July is 01:00 to 01:30 there, slot 2."""
    for at in ("2013-07-01T00:30Z", "2013-07-01 02:30:00+02", "2013-06-30T20:30:00.000-0400", "2013-07-01 01:30"):
        assert readings(ISO, [f"A,{at},0.1"]) == {("A", step(date(2013, 7, 1), 2)): 100}, at
    for at in ("2013-07-01 00+01:00", "2013-07-01 00:30+24:00", "2013-07-01 00:30 Z", "2013-07-01Z"):
        for others in ([], ["B,2013-07-01T00:30Z,1"], ["B,2013-07-01 00:30,1"]):
            assert reasons(ISO, f"A,{at},0.1", *others)[0] is DATE, at
    assert reasons(LONDON_ENDS, "A,2013-07-01 00:30:00Z,0.1") == [DATE]


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
    layout = layout_of("long", replace(LONDON_ENDS, time_format="%Y/%m/%d %H.%M"))
    error = layout.date_format_error([f"A,{each},1" for each in stamps], layout.recognise(["meter,at,kwh"]))
    near = f'; did you mean "{meant}"?' if meant else ""
    assert error.private == f'{error}; the first is "{stamps[0]}"{near}'
    assert str(error).endswith('matches [input.columns] time_format = "%Y/%m/%d %H.%M"')


@pytest.mark.parametrize("odd", [[], ["A,2013-01-05 02:00:00,abc"], ["A,never,1"]])
@pytest.mark.parametrize("cell", ["-9", " -9 ", "-9.0", "n/a", " n/a ", "NaN", "nan"])
def test_a_padded_word_for_missing_is_missing_beside_any_row(cell, odd):
    columns = replace(LONDON_ENDS, missing=("-9", " n/a", "nan"))
    found = reasons(columns, f"A,2013-01-05 01:00:00,{cell}", *odd, "B,2013-01-05 01:00:00,1")
    assert (found[0], found[-1]) == (RejectionReason.MISSING, KEPT)


SUM = {("A", step(AUTUMN_2013, 2)): 300}
ONE, TWO, THREE = (f"A,2013-10-27 01:30:00,0.{i}" for i in (1, 2, 3))
FIRST_PASS, SECOND_PASS = "A,2013-10-27 00:30:00,0.1", "A,2013-10-27 01:30:00,0.2"


@pytest.mark.parametrize(
    ("columns", "files", "expected"),
    [
        (UTC_ENDS, [[FIRST_PASS], [SECOND_PASS]], SUM),
        (UTC_ENDS, [[FIRST_PASS, SECOND_PASS], [SECOND_PASS]], SUM),
        (UTC_ENDS, [[FIRST_PASS, SECOND_PASS], [SECOND_PASS.replace("0.2", "0.3")]], {}),
        (ISO, [["A,2013-10-27T01:30+01:00,0.1", "A,2013-10-27T01:30+00:00,0.2"]], SUM),
        (ISO, [["A,2013-10-27T01:30+01:00,0.1"]], {}),
        # a civil clock shows both passes alike
        (LONDON_ENDS, [[ONE, TWO]], SUM),
        (LONDON_ENDS, [[TWO, ONE]], SUM),
        (LONDON_ENDS, [[ONE, ONE]], {("A", step(AUTUMN_2013, 2)): 200}),  # half-hours of the same size are no duplicate
        (LONDON_ENDS, [[ONE]], {}),
        (LONDON_ENDS, [[ONE, TWO, THREE]], {}),
        (LONDON_ENDS, [[ONE, ONE, ONE]], {}),
        (LONDON_ENDS, [[ONE, TWO], [TWO, ONE]], SUM),
        (LONDON_ENDS, [[ONE, TWO], [ONE, THREE]], {}),
        (LONDON_ENDS, [[ONE, TWO], [ONE]], {}),
        (LONDON_ENDS, [[ONE, TWO, THREE], [ONE, TWO]], SUM),  # a file that contradicts itself says nothing
        (LONDON_ENDS, [["A,2013-10-27 01:00:00,0.4", "A,2013-10-27 02:30:00,0.5"]],
         {("A", step(AUTUMN_2013, 1)): 400, ("A", step(AUTUMN_2013, 4)): 500}),
        (replace(LONDON_ENDS, day_zone="Europe/Paris"), [[ONE, TWO]],  # both go back at once
         {("A", step(AUTUMN_2013, 4)): 300}),
    ],
)  # fmt: skip
def test_a_repeated_half_hour_is_the_sum_of_its_two_passes(columns, files, expected):
    assert readings(columns, *files) == expected


@pytest.mark.parametrize(
    ("columns", "day", "expected"),
    [
        (LONDON_ENDS, "2013-03-31", [KEPT, DATE, KEPT, KEPT]),  # ends; 01:00 and 02:00 are the instant of the change
        (replace(LONDON_ENDS, stamp="start"), "2013-03-31", [DATE, DATE, KEPT, KEPT]),
        (UTC_ENDS, "2013-03-31", [KEPT] * 4),
        (replace(LONDON_ENDS, day_zone="UTC"), "2013-10-27", [KEPT, DATE, DATE, KEPT]),  # passes in different slots
    ],
)
def test_a_timestamp_that_names_no_one_half_hour_is_rejected(columns, day, expected):
    assert reasons(columns, *(f"A,{day} {at}:00,0.1" for at in ("01:00", "01:30", "02:00", "02:30"))) == expected


# Readings of 15 and 60 minutes: placed by a brute-force walk over the minutes of each day, clock changes included.

COLUMNS = NamedColumns("meter", "at", "%Y-%m-%d %H:%M", "start", "UTC", "Europe/London", "wh", "Wh", ("",))
PLAIN, SPRING_2013 = date(2013, 5, 7), date(2013, 3, 31)


def readings_of_intervals(columns: NamedColumns, minutes: int, rows: list[str]) -> dict[tuple[str, int], int]:
    layout, rules = layout_of("long", columns, minutes), ReadingRules(columns=columns, interval_minutes=minutes)
    found = parsing.settle(layout, rules, [parsing.parse(layout, "meter,at,wh", *rows, rules=rules)])
    assert found.rows_rejected == 0
    return found.readings


def starts_of(day: date, minutes: int, zone: str) -> list[datetime]:
    """Return the instants (UTC) at which the intervals of a civil day begin."""
    first, last = (datetime.combine(each, time(), ZoneInfo(zone)).astimezone(UTC) for each in (day, day + timedelta(1)))
    return [first + timedelta(minutes=part) for part in range(0, int((last - first) / timedelta(minutes=1)), minutes)]


def by_hand(starts: list[datetime], wh: dict[datetime, int], minutes: int, zone: str) -> dict[tuple[str, int], int]:
    """Return the sums by half-hour (or hour) of the clock, of those that have all of their parts."""
    parts: dict[tuple[str, int], list[int | None]] = defaultdict(list)
    for start in starts:
        wall = start.astimezone(ZoneInfo(zone))
        slot = 2 * wall.hour if minutes == 60 else 2 * wall.hour + wall.minute // 30
        parts["A", parsing.step(wall.date(), slot)].append(wh.get(start))
    return {key: sum(each) for key, each in parts.items() if None not in each}  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("minutes", "zone", "day_zone"),
    [
        *((minutes, zone, "Europe/London") for minutes in (15, 30, 60) for zone in ("UTC", "Europe/London")),
        (15, "UTC", "Asia/Kathmandu"),  # midnight there is 18:15 UTC
    ],
)
@pytest.mark.parametrize("day", [PLAIN, SPRING_2013, AUTUMN_2013])
@pytest.mark.parametrize("side", ["start", "end"])
def test_readings_add_up_to_the_half_hours_of_the_day(minutes, zone, day_zone, day, side):
    starts = starts_of(day, minutes, day_zone)
    wh = {start: 7 * i % 90 + 1 for i, start in enumerate(starts) if i % 11 != 5 or day == AUTUMN_2013}
    shift = timedelta(minutes=minutes if side == "end" else 0)
    shown = [start.astimezone(ZoneInfo(zone)).replace(tzinfo=None) + shift for start in wh]
    rows = [f"A,{at:%Y-%m-%d %H:%M},{energy}" for at, energy in zip(shown, wh.values(), strict=True)]
    columns = replace(COLUMNS, stamp=side, zone=zone, day_zone=day_zone)
    assert readings_of_intervals(columns, minutes, rows) == by_hand(starts, wh, minutes, day_zone)
    complete = by_hand(starts, dict.fromkeys(starts, 0), minutes, day_zone)
    assert expected_readings(layout_of("long", columns, minutes), day) == len(complete)
