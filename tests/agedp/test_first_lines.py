"""The first lines of a table, by shape, and the keys that a reader of them would write by hand."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest

import agedp
from agedp.setup.long_columns import LongTable, OtherFiles, read_columns
from agedp.setup.run_file_options import toml_of
from agedp_data.datasets.table_text import encoding_of, text_lines
from agedp_data.errors import InputError, PreflightFailed

Row = Callable[[str, datetime, int], str]


def rows(row: Row, *, homes=("M1", "M2"), minutes=30, days=5, first="2024-01-08 00:30") -> str:
    """Return the lines of all homes, one for each interval; `row` gets the home, the time and the number of the row."""
    start, steps = datetime.fromisoformat(first), days * 1440 // minutes
    times = [start + timedelta(minutes=minutes * step) for step in range(steps)]
    return "\n".join(row(home, time, i) for home in homes for i, time in enumerate(times))


def days(row: Callable[[str, datetime], str], *, homes=("M1", "M2"), number=6) -> str:
    return rows(lambda home, time, _: row(home, time), homes=homes, minutes=1440, days=number, first="2024-01-08")


def of_two(lines: str) -> Row:
    return lambda home, time, _: lines.format(home, f"{time:%Y-%m-%d %H:%M}")


def shown(text: str, *, encoding="utf-8", others: OtherFiles | None = None, **options: Any) -> LongTable:
    head = text.encode(encoding)
    found = encoding_of(head) or ""
    lines = text_lines(head, found, complete=True)
    table = read_columns(lines, toml_of(options), complete=True, encoding=found, others=others)
    assert table is not None
    return table


def keys_of(table: LongTable) -> dict[str, str]:
    return {line.key: line.toml for line in table.lines}


FROM_MIDNIGHT, HALF = "2024-01-08 00:00", timedelta(minutes=30)
NAMES_48 = ";".join(f"v{i}" for i in range(1, 49))
CASES = {
    "semicolons, decimal commas": (
        "zähler_id;zeit;verbrauch_kwh\n" + rows(lambda home, t, i: f"{home};{t:%d.%m.%Y %H:%M};0,{i % 9}5"),
        {
            "household": '"zähler_id"', "time": '"zeit"', "energy": '"verbrauch_kwh"', "separator": '";"',
            "decimal": '","', "time_format": '"%d.%m.%Y %H:%M"', "stamp": '"end"', "unit": '"kWh"',
        },
    ),
    "thousands": (
        "meter|read at|wh\n" + rows(lambda home, t, i: f"{home}|{t:%Y/%m/%d %H:%M}|{'1.234,5' if i % 9 else '12,5'}"),
        {"separator": '"|"', "decimal": '","', "thousands": '"."', "time_format": '"%Y/%m/%d %H:%M"', "unit": '"Wh"'},
    ),
    "narrow no-break spaces": (
        "meter;at;wh\n" + rows(lambda home, t, i: f"{home};{t:%Y-%m-%d %H:%M};{i % 9 + 1}\u202f234,5"),
        {"decimal": '","', "thousands": r'"\u202f"', "unit": '"Wh"'},
    ),
    "quoted decimal commas between commas": (
        "meter,at,kwh\n" + rows(lambda home, t, i: f'{home},{t:%Y-%m-%d %H:%M},"{i % 3},{i % 9}5"'),
        {"decimal": '","', "household": '"meter"', "time_format": '"iso"', "unit": '"kWh"'},
    ),
    "a column for each household, quoted decimal commas": (
        "at," + ",".join(f"M{i}" for i in range(10)) + "\n"
        + rows(lambda _, t, i: f"{t:%Y-%m-%d %H:%M}" + f',"0,{100 + i}"' * 10, homes=("all",)),
        {"decimal": '","', "household": '"*"', "energy": '"*"'},
    ),
    "a line of Excel": (
        "sep=;\nmeter;at;kwh\n" + rows(lambda home, t, _: f"{home};{t:%Y-%m-%d %H:%M};0.25"),
        {"separator": '";"', "household": '"meter"', "time_format": '"iso"'},
    ),
    "lines before the header": (
        "Customer report\nFrom;2024-01-08\n\nmeter;at;kwh\n"
        + rows(lambda home, t, _: f"{home};{t:%Y-%m-%d %H:%M};0.25"),
        {"separator": '";"', "skip_lines": "3", "household": '"meter"', "energy": '"kwh"'},
    ),
    "date and time of day of twelve hours, month first": (
        "account,date,start time,end time,usage (kWh)\n"
        + rows(lambda home, t, _: f"{home},{t:%m/%d/%Y},{t:%I:%M %p},{t + timedelta(minutes=14):%I:%M %p},1.5",
               minutes=15, first=FROM_MIDNIGHT),
        {
            "time": '["date", "start time"]', "time_format": '"%m/%d/%Y %I:%M %p"', "stamp": '"start"',
            "energy": '"usage (kWh)"',
        },
    ),
    "date and time of day of four digits": (
        "cups\tfecha\thora\tconsumo_kwh\n" + rows(lambda home, t, _: f"{home}\t{t:%Y%m%d}\t{t:%H%M}\t0.25"),
        {"separator": r'"\t"', "household": '"cups"', "time": '["fecha", "hora"]', "time_format": '"%Y%m%d %H%M"'},
    ),
    "periods from 1": (
        "mpan,settlement date,settlement period,kwh\n"
        + rows(lambda home, t, i: f"{home},{t:%d-%b-%Y},{i % 48 + 1},0.25", first=FROM_MIDNIGHT),
        {
            "time": '["settlement date", "settlement period"]', "period_minutes": "30", "time_format": '"%d-%b-%Y"',
            "household": '"mpan"',
        },
    ),
    "hours from 0": (
        "home,day,hour,wh\n"
        + rows(lambda home, t, i: f"{home},{t:%Y-%m-%d},{t.hour},250", minutes=60, first=FROM_MIDNIGHT),
        {"time": '["day", "hour"]', "period_minutes": "60", "first_period": "0", "unit": '"Wh"'},
    ),
    "milliseconds since 1970": (
        "meter,ts,power_kw\n" + rows(lambda home, t, _: f"{home},{round(t.timestamp() * 1000)},0.5", minutes=5),
        {"time": '"ts"', "time_format": '"epoch-ms"', "zone": '"UTC"', "unit": '"kW"'},
    ),
    "a row per day of 48": (
        f"contador_id;fecha;{NAMES_48};total\n" + days(lambda home, t: f"{home};{t:%d/%m/%Y};" + "0,25;" * 48 + "12,5"),
        {"time": '"fecha"', "energy": '["v1", "v48"]', "decimal": '","', "time_format": '"%d/%m/%Y"'},
    ),
    "a row per day of 96, named by the ends of the intervals": (
        "id,date," + ",".join(f"{i // 4:02d}:{i % 4 * 15:02d}" for i in range(1, 97)) + "\n"
        + days(lambda home, t: f"{home},{t:%Y-%m-%d}" + ",7" * 96),
        {"household": '"id"', "energy": '["00:15", "24:00"]', "time_format": '"%Y-%m-%d"'},
    ),
    "a row per day of 24": (
        "site," + "date," + ",".join(f"h{i}" for i in range(24)) + "\n"
        + days(lambda home, t: f"{home},{t:%Y-%m-%d}" + ",0.7" * 24),
        {"energy": '["h0", "h23"]', "time": '"date"'},
    ),
    "a column per meter, the first without a name": (
        ",1001,1002,1003,1004,1005,weather\n"
        + rows(lambda _, t, i: f"{t:%Y-%m-%dT%H:%M:%S}Z,0.1,0.2,0.3,0.4,{i % 7}.5,mild", homes=("",)),
        {"household": '"*"', "energy": '"*"', "time": '""', "ignore": '["weather"]', "zone": '"UTC"'},
    ),
    "channels": (
        "nmi,suffix,t_end,kwh\n" + rows(of_two("{0},E1,{1},1\n{0},E2,{1},2")),
        {"household": '"nmi"', "add": '"suffix"'},
    ),
    "from and until": (
        "EAN;Register;Van;Tot;Volume_kWh\n"
        + rows(of_two("{0};Dag;{1};2024-01-01 00:00;1\n{0};Nacht;{1};2024-01-01 00:00;2"), first=FROM_MIDNIGHT),
        {"household": '"EAN"', "time": '"Van"', "stamp": '"start"', "add": '"Register"'},
    ),
    "import and export": (
        "meter;direction;at;kwh\n" + rows(of_two("{0};import;{1};1\n{0};export;{1};2")),
        {"household": '"meter"', "where": '{ "direction" = ["import"] }'},
    ),
    "two registers each of import and export": (
        "meter;register;at;kwh\n"
        + rows(of_two("{0};use 1;{1};1\n{0};use 2;{1};2\n{0};export 1;{1};3\n{0};export 2;{1};4")),
        {"where": '{ "register" = ["use 1", "use 2"] }', "add": '"register"'},
    ),
    "ranges of times": (
        "zähler;datum;zeitraum;kwh\n"
        + rows(lambda home, t, _: f"{home};{t:%d.%m.%Y};{t:%H:%M} - {t + HALF:%H:%M};0,25", first=FROM_MIDNIGHT),
        {"time": '["datum", "zeitraum"]', "time_format": '"%d.%m.%Y %H:%M*"', "stamp": '"start"'},
    ),
    "ranges of dates and times": (
        "meter,period,kwh\n"
        + rows(lambda home, t, _: f"{home},{t:%Y-%m-%d %H:%M} to {t + HALF:%Y-%m-%d %H:%M},0.25", first=FROM_MIDNIGHT),
        {"time": '"period"', "time_format": '"%Y-%m-%dT%H:%M:%S*"', "stamp": '"start"'},
    ),
    "names of zones": (
        "meter,at,kwh\n" + rows(lambda home, t, _: f"{home},{t:%d.%m.%Y %H:%M} CET,0.25"),
        {"time_format": '"%d.%m.%Y %H:%M*"', "stamp": '"end"'},
    ),
    "offsets without minutes": (
        "dataid,local,kw\n" + rows(lambda home, t, _: f"{home},{t:%Y-%m-%d %H:%M:%S}-06,0.5"),
        {"household": '"dataid"', "time_format": '"iso"', "zone": '"UTC"'},
    ),
    "halves of the day in Spanish": (
        "cups;fecha;kwh\n"
        + rows(lambda home, t, _: f"{home};{t:%d/%m/%Y %I:%M:%S} {'ap'[t.hour > 11]}. m.;0,25"),
        {"time_format": '"%d/%m/%Y %I:%M:%S %p"', "stamp": '"end"'},
    ),
    "digits alone": (
        "METER|READ_AT|WH\n" + rows(lambda home, t, _: f"{home}|{t:%Y%m%d%H%M%S}|250"),
        {"time_format": '"%Y%m%d%H%M%S"', "unit": '"Wh"', "stamp": '"end"'},
    ),
    "units below the names, an empty line after each row": (
        "meter,at,use\n[-],[local],[kWh]\n" + rows(of_two("{0},{1},0.25\n")),
        {"household": '"meter"', "energy": '"use"'},
    ),
    "units in a column, what was paid, the name of the interval": (
        "meter,at,volume,unit,cost,step\n" + rows(of_two("{0},{1},250,Wh,$0.04,PT30M")),
        {"household": '"meter"', "energy": '"volume"', "unit": '"Wh"'},
    ),
    "versions of a reading, in a frame saved with its index": (
        ",meter,at,quality,kwh\n" + rows(of_two("0,{0},{1},E,1\n1,{0},{1},A,2")),
        {"household": '"meter"', "where": '{ "quality" = ["E"] }'},
    ),
    "negative energies and words for none": (
        "meter,at,net_kwh\n" + rows(lambda home, t, i: f"{home},{t:%Y-%m-%d %H:%M},{('-0.5', 'NA', '0.5')[i % 3]}"),
        {"negative": '"net"', "missing": '["Null", "", "NA"]'},
    ),
}  # fmt: skip


def test_rows_that_are_not_asked_for_are_no_evidence():
    table = "meter,kind,at,kwh\n" + rows(of_two("{0},use,{1},1\n{0},sun,{1},-2"))
    assert {"add", "negative"}.isdisjoint(keys_of(shown(table, where=["kind=use"])))
    assert "add" in keys_of(shown(table))


def test_a_file_of_a_date_and_a_time_apart_is_a_household_of_its_name():
    table = "Data;Hora;Consumo (kW)\n" + rows(lambda _, t, __: f"{t:%Y/%m/%d};{t:%H:%M};0,5", homes=("",))
    others = OtherFiles(["PT1.csv", "PT2.csv"], [table.split("\n")])
    assert keys_of(shown(table, others=others))["household"] == '"file:PT*.csv"'


@pytest.mark.parametrize("case", CASES)
def test_a_shape_is_read_off_its_first_lines(case):
    text, expected = CASES[case]
    found = shown(text)
    assert found.unreadable == {}
    assert expected.items() <= keys_of(found).items()


DEFAULTS = {"separator", "decimal", "thousands", "encoding", "skip_lines", "ignore", "add", "where", "negative"}


def test_a_plain_table_needs_no_key_beyond_those_of_every_table():
    found = shown("meter,at,kwh\n" + rows(lambda home, t, _: f"{home},{t:%Y-%m-%d %H:%M},1.234"))
    assert not keys_of(found).keys() & DEFAULTS


@pytest.mark.parametrize(
    ("encoding", "key"),
    [
        ("utf-16", '"utf-16"'),
        ("utf-16-le", '"utf-16"'),
        ("utf-16-be", '"utf-16"'),
        ("latin-1", '"latin-1"'),
        ("cp1252", '"cp1252"'),
    ],
)
def test_the_encoding_is_read_off_the_first_bytes(encoding, key):
    text = "zähler_id;zeit;kwh;preis €\n" if encoding == "cp1252" else "zähler_id;zeit;kwh;preis\n"
    found = shown(text + rows(lambda home, t, _: f"{home};{t:%Y-%m-%d %H:%M};1.5;x"), encoding=encoding)
    assert {"encoding": key, "household": '"zähler_id"'}.items() <= keys_of(found).items()


ONE_HOME = "Horodate;Valeur\n" + rows(
    lambda _, t, __: f"{t:%Y-%m-%dT%H:%M:%S}+01:00;290", homes=("",), first=FROM_MIDNIGHT
)
OF_PRM = "Identifiant PRM;Debut;Unite\n{};08/01/2024;W\n" + ONE_HOME


def test_a_line_before_the_header_names_household_unit_and_first_day():
    found = shown(OF_PRM.format(19), others=OtherFiles(["a.csv", "b.csv"], [OF_PRM.format(20).split("\n")]))
    assert {"household": '"line:2"', "unit": '"W"', "stamp": '"start"', "skip_lines": "2"}.items() <= keys_of(
        found
    ).items()


def test_files_of_the_same_days_are_households_of_their_names():
    found = shown(ONE_HOME, others=OtherFiles(["home-11.csv", "home-12.csv"], [ONE_HOME.split("\n")]))
    assert keys_of(found)["household"] == '"file:home-*.csv"'
    later = ONE_HOME.replace("2024-01", "2024-02")
    asked = shown(ONE_HOME, others=OtherFiles(["jan.csv", "feb.csv"], [later.split("\n")]))
    assert asked.unreadable == {"household": ("file:*.csv",)}  # perhaps two months of one home


REFUSED = {
    "no time": (
        "meter,when,kwh\n" + "A,Monday,0.5\n" * 9,
        "^no column has dates and times of day. Give --time-column$",
    ),
    "dates alone": ("meter,day,kwh\n" + days(lambda home, t: f"{home},{t:%Y-%m-%d},7"), "dates without a time of day"),
    "no number": ("meter,at,note\n" + rows(of_two("{0},{1},none today")), "^no column has numbers"),
    "open end": ("meter,at,kwh\n" + rows(of_two("{0},{1},1.5,")), "a separator that the header lacks"),
    "two units": (
        "meter,at,use,unit\n" + rows(lambda home, t, i: f"{home},{t:%Y-%m-%d %H:%M},1.5,{('kWh', 'Wh')[i % 2]}"),
        "^the rows have units of their own",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_table_that_cannot_be_read_is_told_why_and_keeps_its_rows_private(case):
    text, cause = REFUSED[case]
    with pytest.raises(InputError, match=cause) as caught:
        shown(text)
    assert "2024-01-08" not in str(caught.value)
    assert "Monday" not in str(caught.value)
    assert case in ("open end", "two units") or "the columns of line 1 are" in caught.value.private


PLAIN = {"household": "meter", "time": "at", "time_format": "iso", "stamp": "end", "energy": "kwh", "unit": "kWh"}
PLAIN |= {"zone": "UTC", "day_zone": "UTC"}
LINES = rows(of_two("{0},{1},0.5"))
MISREAD = {
    "lines before": (
        "Report\n\nmeter,at,kwh\n" + LINES,
        {},
        "the header is line 3, after 2 other lines; write .*: 2}$",
    ),
    "too many skipped": (
        "meter,at,kwh\n" + LINES,
        {"skip_lines": 3},
        'the header is line 1; write .*"skip_lines": 0}$',
    ),
    "no header": (LINES, {}, "that line seems to be a row"),
    "open end": ("meter,at,kwh\n" + rows(of_two("{0},{1},0.5,")), {}, "each ends with a separator; add one"),
    "the mark of Excel": ("sep=;\nmeter;at;kwh\n" + LINES.replace(",", ";"), {}, 'is line 2; write .*"separator": ";"'),
    "seconds": (
        "meter,at,kwh\n" + rows(lambda home, t, _: f"{home},{t.timestamp():.0f},1"),
        {},
        "matches .*time_format",
    ),
}


@pytest.mark.parametrize("case", MISREAD)
def test_a_file_that_its_keys_do_not_fit_is_told_what_stands_in_the_way(case, tmp_path):
    text, keys, cause = MISREAD[case]
    (tmp_path / "a.csv").write_text(text)
    with pytest.raises(InputError, match=cause) as caught:
        agedp.read(str(tmp_path / "a.csv"), columns=PLAIN | keys)
    assert not any(secret in str(caught.value) for secret in ("M1", "2024-01", "0.5"))
    assert case != "seconds" or caught.value.private.endswith('did you mean "epoch"?')


MISLEADING = {
    "a comma as decimal mark without quotes": (rows(of_two("{0},{1},0,5")), "no first row has 3 cells, .* but 4"),
    "00:00 as the end of its date": (
        rows(lambda home, t, _: f"{home},{t:%Y-%m-%d} {t + HALF:%H:%M},0.5", first=FROM_MIDNIGHT),
        "00:00 follows the last reading of its own date",
    ),
    "ids that a spreadsheet shortened": (
        rows(of_two("{0},{1},0.5"), homes=("1.2E+12", "1.30001E+12")), "shortened numbers such as 1.23E.12",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", MISLEADING)
def test_rows_that_would_be_read_as_others_are_refused_with_their_cause(case, tmp_path):
    text, cause = MISLEADING[case]
    (tmp_path / "a.csv").write_text(f"meter,at,kwh\n{text}")
    with pytest.raises(PreflightFailed) as caught:
        agedp.read(str(tmp_path / "a.csv"), columns=PLAIN)
    assert re.search(cause, caught.value.private)


def test_decimal_commas_in_quotes_stand_between_commas(tmp_path):
    """96 half-hours of 0.25 kWh, and the id as a spreadsheet keeps it a text."""
    (tmp_path / "a.csv").write_text("meter,at,kwh\n" + rows(of_two('="{0}",{1},"0,25"'), homes=("01",), days=2))
    readings = agedp.read(str(tmp_path / "a.csv"), columns=PLAIN | {"decimal": ","})
    assert readings["energy_wh"].sum() == 96 * 250
    assert set(readings["household_id"]) == {'="01"'}
