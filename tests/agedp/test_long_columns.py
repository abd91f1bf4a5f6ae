"""What the first rows of a long table show, on tables written by hand; what they do not show is never decided."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from agedp.setup.init_run_file import init
from agedp.setup.long_columns import LongTable, read_columns
from agedp.setup.run_file_options import toml_of
from agedp_data.errors import InputError


def rows(time_format="%Y-%m-%d %H:%M", *, first="2013-01-20 00:30", days=2, minutes=30, homes=("a", "b"), kwh="0.25"):
    start = datetime.fromisoformat(first)
    stamps = [start + timedelta(minutes=minutes * step) for step in range(days * 24 * 60 // minutes)]
    return [f"{home},{stamp.strftime(time_format)},{kwh}" for home in homes for stamp in stamps]


def shown(header="meter_id,read_at,energy_kwh", table=None, *, complete=True, **options) -> LongTable:
    found = read_columns([header, *(table or rows())], toml_of(options), complete=complete)
    assert found is not None
    return found


def decided(found: LongTable) -> dict[str, str]:
    return {line.key: line.toml.strip('"') for line in found.lines if line.decided}


def proposed(found: LongTable) -> dict[str, str]:
    return {line.key: line.toml.strip('"') for line in found.lines if not line.decided}


def test_columns_format_and_unit_of_a_plain_table_are_decided():
    found = shown()
    assert decided(found) == {
        "household": "meter_id", "time": "read_at", "time_format": "iso", "stamp": "end", "energy": "energy_kwh",
        "unit": "kWh",
    }  # fmt: skip
    assert proposed(found) == {"zone": "UTC", "day_zone": "UTC"}
    assert found.unreadable == {}


@pytest.mark.parametrize(
    ("time_format", "first"),
    [
        ("%d/%m/%Y %H:%M", "2013-01-20 00:30"),
        ("%m/%d/%Y %H:%M", "2013-01-20 00:30"),
        ("%d.%m.%Y %H:%M:%S", "2013-01-02 00:30"),
    ],
)
def test_day_and_month_are_told_apart_by_a_day_above_12(time_format, first):
    found = shown(table=rows(time_format, first=first))
    assert decided(found)["time_format"] == time_format


def test_ambiguous_dates_are_not_guessed():
    found = shown(table=rows("%d/%m/%Y %H:%M", first="2013-03-04 00:30"))
    assert found.unreadable == {"time_format": ("%d/%m/%Y %H:%M", "%m/%d/%Y %H:%M")}
    assert "time_format" not in {line.key for line in found.lines}


def test_a_given_format_settles_ambiguous_dates():
    found = shown(table=rows("%d/%m/%Y %H:%M", first="2013-03-04 00:30"), time_format="%m/%d/%Y %H:%M")
    assert found.unreadable == {}
    assert decided(found)["time_format"] == "%m/%d/%Y %H:%M"


def test_offsets_make_the_zone_utc():
    found = shown(table=rows("%Y-%m-%dT%H:%M:%S+01:00"))
    assert decided(found)["zone"] == "UTC"
    assert decided(found)["time_format"] == "%Y-%m-%dT%H:%M:%S%z"
    assert proposed(found) == {"day_zone": "UTC"}


def test_a_calendar_year_cut_out_is_only_a_proposal_for_start():
    found = shown(table=rows(first="2013-01-20 00:00"))
    assert proposed(found)["stamp"] == "start"


def test_a_household_cut_off_by_the_head_of_the_file_decides_no_stamp():
    found = shown(table=rows(homes=("a",)), complete=False)
    assert proposed(found)["stamp"] == "end"


@pytest.mark.parametrize(
    ("name", "kwh", "unit", "sure"),
    [
        ("use_wh", "3", "Wh", True),
        ("KWH/hh", "250", "kWh", True),
        ("use", "250", "Wh", False),
        ("use", "0.2", "kWh", False),
    ],
)
def test_a_header_decides_the_unit_and_figures_only_propose_it(name, kwh, unit, sure):
    found = shown(f"meter_id,read_at,{name}", rows(kwh=kwh))
    assert (decided(found) if sure else proposed(found))["unit"] == unit
    assert found.reasons["unit"]


def test_two_columns_of_a_kind_are_both_candidates():
    table = [f"{row},0.5" for row in rows()]
    found = shown("meter_id,read_at,import_kwh,export_kwh", table)
    assert found.unreadable == {"energy": ("import_kwh", "export_kwh")}
    assert shown("meter_id,read_at,import_kwh,export_kwh", table, energy_column="import_kwh").unreadable == {}


def test_readings_of_ten_minutes_are_refused_in_one_line():
    with pytest.raises(
        InputError, match=r"^the readings are 10 minutes apart; deliver readings of 15, 30 or 60 minutes$"
    ):
        shown(table=rows(minutes=10))


def with_column(table, values):
    """Put a column before those of a table: one value for each row."""
    return [f"{value},{row}" for value, row in zip(values, table, strict=True)]


@pytest.mark.parametrize(
    ("first", "values"),
    [
        ("id", range(192)),  # the number of the record
        ("tariff", ["Std"] * 96 + ["ToU"] * 96),
        ("feeder", [7] * 192),  # whole numbers may be identifiers
    ],
)
@pytest.mark.parametrize("second", ["home", "meter_id", "dwelling no"])
def test_a_second_possible_household_column_is_a_candidate(first, second, values):
    found = shown(f"{first},{second},time,kwh", with_column(rows(), values))
    assert set(found.unreadable) == {"household"}
    assert set(found.unreadable["household"]) == {first, second}


def test_a_measured_second_column_is_no_household():
    found = shown("temperature,meter_id,time,kwh", with_column(rows(), [7.5] * 192))
    assert decided(found)["household"] == "meter_id"


@pytest.mark.parametrize("header", ["tariff,time,kwh", "grid,time,kwh", "lcl,time,kwh"])
def test_a_column_without_a_household_header_is_not_decided(header):
    found = shown(header)
    assert found.unreadable == {"household": (header.partition(",")[0],)}


RECORDS = [f"{number},{row.partition(',')[2]}" for number, row in enumerate(rows())]
DAYS = [f"{row.split(',')[1][8:10]},{row.partition(',')[2]}" for row in rows(homes=("a",), days=10)]
TARIFFS = [row.replace("b,", "a,") for row in rows()]
ONE_STAMP = rows(homes=[f"m{number}" for number in range(50)])[::96]


@pytest.mark.parametrize("table", [RECORDS, DAYS, TARIFFS, ONE_STAMP], ids=["records", "days", "tariffs", "one stamp"])
def test_values_that_do_not_repeat_as_households_decide_none(table):
    found = shown("meter_id,time,kwh", table)
    assert found.unreadable["household"] == ("meter_id",)
    assert shown("meter_id,time,kwh", table, household_column="meter_id").unreadable == {}


def test_households_in_the_order_of_time_are_recognised():
    table = sorted(rows(), key=lambda row: row.split(",")[1])
    assert decided(shown(table=table))["household"] == "meter_id"


@pytest.mark.parametrize(
    ("time_format", "first", "candidates"),
    [
        ("%y/%m/%d %H:%M", "2013-01-05 00:30", ("%d/%m/%y %H:%M", "%y/%m/%d %H:%M")),
        ("%d-%m-%y %H:%M", "2013-01-05 00:30", ("%d-%m-%y %H:%M", "%m-%d-%y %H:%M", "%y-%m-%d %H:%M")),
    ],
)
def test_two_digit_years_are_candidates_at_either_end(time_format, first, candidates):
    found = shown(table=rows(time_format, first=first))
    assert found.unreadable == {"time_format": candidates}


def test_one_typing_error_decides_no_format():
    table = [*rows("%m/%d/%Y %H:%M", first="2013-01-02 00:30", days=10, homes=("a",)), "a,13/01/2013 00:30,1"]
    assert shown(table=table).unreadable == {"time_format": ("%d/%m/%Y %H:%M", "%m/%d/%Y %H:%M")}


def test_broken_timestamps_do_not_hide_a_format():
    table = [*rows("%m/%d/%Y %H:%M", first="2013-01-02 00:30", days=30, homes=("a",)), "a,13/01/2013 00:30,1"]
    assert decided(shown(table=table))["time_format"] == "%m/%d/%Y %H:%M"


@pytest.mark.parametrize("key", ["household", "time", "energy"])
def test_an_option_that_names_no_column_lists_those_of_the_header(key):
    with pytest.raises(InputError) as caught:
        shown(**{f"{key}_column": "foo"})
    assert str(caught.value) == f"--{key}-column foo: not a column of the header. Give one of its columns"
    assert caught.value.private.endswith('columns: "meter_id", "read_at", "energy_kwh"')


@pytest.mark.parametrize(
    ("name", "unit"),
    [("energy_MWh", "MWh"), ("GWH", "GWh"), ("power kW", "kW"), ("load_w", "W"), ("import_MJ", "MJ"), ("kVA", "kVA")],
)
def test_a_header_with_another_unit_is_refused_with_that_unit(name, unit):
    with pytest.raises(InputError, match=rf"^the header of the energy column names {unit};.* --unit if the header"):
        shown(f"meter_id,read_at,{name}")
    assert decided(shown(f"meter_id,read_at,{name}", unit="Wh"))["unit"] == "Wh"


@pytest.mark.parametrize("name", ["whole_house_use", "when_used", "warm"])
def test_words_with_the_letters_of_a_unit_decide_none(name):
    assert proposed(shown(f"meter_id,read_at,{name}"))["unit"] == "kWh"


@pytest.mark.parametrize("name", ['use "net"', "use\\\\n", "use\\té", "use \x7f"])
def test_names_with_quotes_backslashes_and_tabs_are_read(name):
    found = shown("meter_id,read_at," + name.replace('"', '""'), rows(kwh="250"))
    assert found.unreadable == {}
    assert found.reasons["unit"] == "the median of the first values above 0 is 250; the header names no unit"


@pytest.mark.parametrize("header", ["a,b,c", "meter_id,read_at"])
def test_what_is_no_long_table_is_left_alone(header):
    assert read_columns([header, "x,y,z", "x,y,z"], {}, complete=True) is None


def table(folder, lines, name="m.csv"):
    (folder / name).write_text("\n".join(["meter_id,read_at,use", *lines]) + "\n")
    return [str(folder / name)]


def test_a_roster_is_written_before_zone_stamp_and_unit_are_decided(tmp_path):
    lines = rows("%d/%m/%Y %H:%M", first="2013-01-20 00:30", days=3, kwh="250")
    made = init(table(tmp_path, lines), folder=tmp_path)
    assert [line.split(",") for line in made.roster.read_text().splitlines()[2:]] == [
        [home, "2013-01-20", "2013-01-22"] for home in ("a", "b")
    ]
    asked = {key for of, key in made.undecided if of == "input.columns"}
    assert asked == {"zone", "day_zone", "unit"}
    text = made.run_file.read_text()
    assert '# decide: unit        = "Wh"' in text
    assert list((tmp_path / "out" / "confidential").iterdir()) == []  # what was read under a proposal is not kept


def test_an_ambiguous_table_writes_nothing_and_names_the_option(tmp_path):
    lines = rows("%d/%m/%Y %H:%M", first="2013-03-04 00:30")
    with pytest.raises(InputError) as caught:
        init(table(tmp_path, lines), folder=tmp_path)
    assert caught.value.private.endswith('Give --time-format ("%d/%m/%Y %H:%M" or "%m/%d/%Y %H:%M")')
    assert str(caught.value).endswith("Give --time-format")
    assert not (tmp_path / "run.toml").exists()
