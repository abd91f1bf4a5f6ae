"""What the first rows of a long table show, on tables written by hand; what they do not show is never decided."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from agedp_data.errors import InputError
from pipelines.init import init
from pipelines.long_columns import LongTable, read_columns
from pipelines.run_file_options import toml_of


def rows(time_format="%Y-%m-%d %H:%M", *, first="2013-01-20 00:30", days=2, minutes=30, homes=("a", "b"), kwh="0.25"):
    start = datetime.fromisoformat(first)
    stamps = [start + timedelta(minutes=minutes * step) for step in range(days * 24 * 60 // minutes)]
    return [f"{home},{stamp.strftime(time_format)},{kwh}" for home in homes for stamp in stamps]


def shown(header="meter_id,read_at,energy_kwh", table=None, *, whole=True, **options) -> LongTable:
    found = read_columns([header, *(table or rows())], toml_of(options), whole=whole)
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
    found = shown(table=rows(homes=("a",)), whole=False)
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


def test_readings_of_an_hour_are_refused_in_one_line():
    with pytest.raises(
        InputError, match=r"^the readings are 60 minutes apart; half-hourly tables \(30 minutes\) are read"
    ):
        shown(table=rows(minutes=60))


@pytest.mark.parametrize("header", ["a,b,c", "meter_id,read_at"])
def test_what_is_no_long_table_is_left_alone(header):
    assert read_columns([header, "x,y,z", "x,y,z"], {}, whole=True) is None


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
