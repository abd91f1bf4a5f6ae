"""What the first rows of a long table show, on tables written by hand; what they do not show is never decided."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from agedp.setup.init_run_file import init
from agedp.setup.long_columns import LongTable, read_columns
from agedp.setup.run_file_options import toml_of
from agedp_data.errors import InputError

DMY, MDY = "%d/%m/%Y %H:%M", "%m/%d/%Y %H:%M"
EARLY, MARCH = "2013-01-02 00:30", "2013-03-04 00:30"


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


TYPO = ["a,13/01/2013 00:30,1"]
DECIDED = {  # rows, options, what is decided
    "day first": (rows(DMY), {}, {"time_format": DMY}),
    "month first": (rows(MDY), {}, {"time_format": MDY}),
    "points": (rows("%d.%m.%Y %H:%M:%S", first=EARLY), {}, {"time_format": "%d.%m.%Y %H:%M:%S"}),
    "a given format": (rows(DMY, first=MARCH), {"time_format": MDY}, {"time_format": MDY}),
    "days that follow one another": (rows(MDY, first=EARLY, days=10, homes="a") + TYPO, {}, {"time_format": MDY}),
    "one broken of many": (rows(MDY, first=EARLY, days=30, homes="a") + TYPO, {}, {"time_format": MDY}),
    "offsets": (rows("%Y-%m-%dT%H:%M:%S+01:00"), {}, {"time_format": "%Y-%m-%dT%H:%M:%S%z", "zone": "UTC"}),
    "the order of time": (sorted(rows(), key=lambda row: row.split(",")[1]), {}, {"household": "meter_id"}),
}


@pytest.mark.parametrize("case", DECIDED)
def test_what_the_rows_show_is_decided(case):
    table, options, expected = DECIDED[case]
    found = shown(table=table, **options)
    assert expected.items() <= decided(found).items()
    assert found.unreadable == {}


@pytest.mark.parametrize(
    ("table", "candidates"),
    [
        (rows(DMY, first=MARCH), (DMY, MDY)),
        (rows("%y/%m/%d %H:%M", first="2013-01-05 00:30"), ("%d/%m/%y %H:%M", "%y/%m/%d %H:%M")),
        (
            rows("%d-%m-%y %H:%M", first="2013-01-05 00:30"),
            ("%d-%m-%y %H:%M", "%m-%d-%y %H:%M", "%y-%m-%d %H:%M"),
        ),
    ],
)
def test_ambiguous_dates_are_not_guessed(table, candidates):
    found = shown(table=table)
    assert found.unreadable == {"time_format": candidates}
    assert "time_format" not in {line.key for line in found.lines}


def test_a_household_that_may_be_cut_off_only_proposes_a_stamp():
    assert proposed(shown(table=rows(homes=("a",)), complete=False))["stamp"] == "end"
    assert proposed(shown(table=rows(first="2013-01-20 00:00")))["stamp"] == "start"


@pytest.mark.parametrize(("name", "kwh", "unit", "sure"), [
    ("use_wh", "3", "Wh", True), ("KWH/hh", "250", "kWh", True), ("load_w", "3", "W", True),
    ("use", "250", "Wh", False), ("whole_house_use", "0.2", "kWh", False),  # words with the letters of a unit
])  # fmt: skip
def test_a_header_decides_the_unit_and_figures_only_propose_it(name, kwh, unit, sure):
    found = shown(f"meter_id,read_at,{name}", rows(kwh=kwh))
    assert (decided(found) if sure else proposed(found))["unit"] == unit


@pytest.mark.parametrize("name", ["energy_MWh", "GWH", "import_MJ", "kVA"])
def test_a_header_with_another_unit_is_refused_with_that_unit(name):
    unit = {"energy_MWh": "MWh", "GWH": "GWh", "import_MJ": "MJ", "kVA": "kVA"}[name]
    with pytest.raises(InputError, match=rf"^the header of the energy column names {unit};.* --unit if the header"):
        shown(f"meter_id,read_at,{name}")
    assert decided(shown(f"meter_id,read_at,{name}", unit="Wh"))["unit"] == "Wh"


def with_column(values):
    """Put a column before those of a table: one value for each row."""
    return [f"{value},{row}" for value, row in zip(values, rows(), strict=True)]


@pytest.mark.parametrize(
    ("first", "values"),
    [
        ("id", range(192)),  # the number of the record
        ("tariff", ["Std"] * 96 + ["ToU"] * 96),
        ("feeder", [7] * 192),  # whole numbers may be identifiers
    ],
)
@pytest.mark.parametrize("second", ["home", "dwelling no"])
def test_a_second_possible_household_column_is_a_candidate(first, second, values):
    found = shown(f"{first},{second},time,kwh", with_column(values))
    assert {key: set(names) for key, names in found.unreadable.items()} == {"household": {first, second}}


RECORDS = [f"{number},{row.partition(',')[2]}" for number, row in enumerate(rows())]
DAYS = [f"{row.split(',')[1][8:10]},{row.partition(',')[2]}" for row in rows(homes=("a",), days=10)]
ONE_STAMP = rows(homes=[f"m{number}" for number in range(50)])[::96]


@pytest.mark.parametrize(
    ("name", "table"),
    [
        ("tariff", rows()), ("grid", rows()),  # no header of a household
        ("meter_id", RECORDS), ("meter_id", DAYS), ("meter_id", [row.replace("b,", "a,") for row in rows()]),
        ("meter_id", ONE_STAMP),
    ],
    ids=["tariff", "grid", "records", "days", "tariffs", "one stamp"],
)  # fmt: skip
def test_a_column_that_is_not_surely_of_households_is_not_decided(name, table):
    assert shown(f"{name},time,kwh", table).unreadable == {"household": (name,)}
    assert shown(f"{name},time,kwh", table, household_column=name).unreadable == {}


def written(folder, lines):
    (folder / "m.csv").write_text("\n".join(["meter_id,read_at,use", *lines]) + "\n")
    return [str(folder / "m.csv")]


def test_an_ambiguous_table_writes_nothing_and_names_the_option(tmp_path):
    with pytest.raises(InputError, match=r"Give --time-format$") as caught:
        init(written(tmp_path, rows(DMY, first=MARCH)), folder=tmp_path)
    assert caught.value.private.endswith(f'Give --time-format ("{DMY}" or "{MDY}")')
    assert not (tmp_path / "run.toml").exists()
