"""The kinds of files that users have, each through every door: command line, run file, Python, and a later night.

Each kind has a twin with another separator, language, interval and clock. What is released equals a count by pandas of
the made-up energies; what is refused names its cause, and after the first release refuses no night.
"""

from __future__ import annotations

import io
import json
import random
import re
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path
from typing import Any
from unittest import mock
from zoneinfo import ZoneInfo

import pandas as pd
import pytest

import agedp
from agedp.setup.run_file_options import OPTIONS
from agedp_data import clock
from agedp_data.errors import InputError
from tests.agedp.conftest import House
from tests.command import agedp as command
from tests.exposure.pairs import with_fixed_noise
from tests.fuzz.run_files import toml_value

HOMES = [str(1_200_000_000_000 + number) for number in range(12)]
SOLAR = HOMES[:4]
WEEK, SPRING, AUTUMN = date(2024, 1, 8), date(2024, 3, 29), date(2024, 10, 26)
PROMISE = 'notion = "classical"\nepsilon_per_day = 200000\nmax_day_epsilon = 200000\nepsilon_total = "unlimited"\n'
ACCEPT = ["useless", "total", "no-credit"]
TERMS = "--notion classical --epsilon-per-day 200000 --max-day-epsilon 200000 --epsilon-total unlimited"
TERMS += " --clamp-kwh 1000 --min-households 10 --accept useless,total,no-credit"
NOISE_KWH = 0.01
"""The standard deviation of a mean's noise is 0.6 Wh."""
Tables = dict[str, bytes]
Cells = list[tuple[str, datetime, int, int]]
"""Household, instant at which an interval begins, its number within the day from 0, energy in tenths of a Wh."""


def cells_of(homes: Sequence[str], days: Sequence[date], *, zone: ZoneInfo, interval: timedelta) -> Cells:
    """Return the intervals of days by the clock of a zone; of a day of 25 hours there are 50 half-hours."""
    found = []
    for home in homes:
        for day in days:
            following = day + timedelta(days=1)
            start, end = (datetime(at.year, at.month, at.day, tzinfo=zone).astimezone(UTC) for at in (day, following))
            of = random.Random(f"{home}{day}")  # noqa: S311 - made-up readings
            number = int((end - start) / interval)
            found += [(home, start + i * interval, i, 10 * of.randrange(2_000)) for i in range(number)]
    return found


@dataclass(frozen=True)
class Form:
    """How a table is written: marks, names of columns, times, interval and clock."""

    separator: str = ","
    decimal: str = "."
    household: str = "meter_id"
    time: str = "read_at"
    energy: str = "kwh"
    pattern: str = "%Y-%m-%d %H:%M"
    stamp: str = "end"
    minutes: int = 30
    zone: str = "Europe/London"

    @property
    def keys(self) -> dict[str, Any]:
        """Return the keys of [input.columns]."""
        names = {"household": self.household, "time": self.time, "energy": self.energy, "unit": "kWh"}
        clock = {"time_format": self.pattern, "stamp": self.stamp, "zone": self.zone, "day_zone": self.zone}
        return {**names, **clock, "separator": self.separator, "decimal": self.decimal}

    def cells(self, days: list[date]) -> Cells:
        interval = timedelta(minutes=self.minutes)
        return cells_of(HOMES, days, zone=ZoneInfo(self.zone), interval=interval)

    def wall(self, start: datetime) -> datetime:
        """Return what the clock shows at the start of an interval; labels of ends are an interval later."""
        wall = start.astimezone(ZoneInfo(self.zone))
        return wall + timedelta(minutes=self.minutes if self.stamp == "end" else 0)

    def at(self, start: datetime) -> str:
        return f"{self.wall(start):{self.pattern}}"

    def number(self, energy: float) -> str:
        """Return an energy in kWh; three decimals, as whole watt-hours have."""
        return f"{energy / 10_000:.3f}".replace(".", self.decimal)

    def table(self, head: list[str], rows: list[list[str]], before: str = "") -> Tables:
        lines = [self.separator.join(cells) for cells in (head, *rows)]
        return {"a.csv": "\n".join([*filter(None, [before]), *lines, ""]).encode()}

    def rows(self, cells: Cells) -> list[list[str]]:
        return [[home, self.at(start), self.number(energy)] for home, start, _, energy in cells]


ENGLISH = Form()
GERMAN = Form(";", ",", "Zähler", "Zeit", "Verbrauch", "%d.%m.%Y %H:%M:%S", "start", 15, "Europe/Berlin")
HOURLY = replace(GERMAN, minutes=60)


@dataclass(frozen=True)
class Kind:
    """A kind of file.

    Attributes:
        write: returns files, with their names, of the cells of some days.
        keys: keys of [input.columns] beside those of the form, None for one that has not that key.
        forms: how it is written, and its twin.
        refused: words of which the refusal has one; none for a kind that is read right.
        dataset: key of [input].
        first: the first day.
        use: the energies that count, of those of the cells.
        frame: the table as Python has it, if not the files.
        sound: returns files of the nights before, if they are not those of `write`.
    """

    write: Callable[[Form, Cells], Tables]
    keys: Callable[[Form], dict[str, Any]] = lambda form: {}
    forms: tuple[Form, Form] = (ENGLISH, GERMAN)
    refused: str = ""
    dataset: str = "long"
    first: date = WEEK
    use: Callable[[Form, Cells], Cells] = lambda form, cells: cells
    frame: Callable[[Tables], pd.DataFrame] | None = None
    sound: Callable[[Form, Cells], Tables] | None = None

    def columns(self, form: Form) -> dict[str, Any]:
        keys = {**form.keys, **self.keys(form)} if self.dataset == "long" else {}
        return {name: value for name, value in keys.items() if value is not None}

    def count(self, form: Form, cells: Cells) -> dict[str, float]:
        """Return the mean of each day of the zone [kWh], counted by pandas."""
        table = pd.DataFrame(self.use(form, cells), columns=["home", "start", "number", "energy"])
        day = table["start"].dt.tz_convert(form.zone).dt.date.astype(str)
        return (table.groupby(day)["energy"].sum() / 10_000 / len(HOMES)).to_dict()


def plain(form: Form, cells: Cells) -> Tables:
    return form.table([form.household, form.time, form.energy], form.rows(cells))


def changed(cell: Callable[[Form, str, datetime, float], str], homes: list[str]) -> Callable[[Form, Cells], Tables]:
    """Return a table in which the energies of some homes are written in another way."""

    def write(form: Form, cells: Cells) -> Tables:
        rows = [
            [home, form.at(start), cell(form, home, start, energy) if home in homes else form.number(energy)]
            for home, start, _, energy in cells
        ]
        return form.table([form.household, form.time, form.energy], rows)

    return write


def ends_at_24(form: Form, cells: Cells) -> Tables:
    rows = form.rows(cells)
    for row, (_, start, *_) in zip(rows, cells, strict=True):
        wall = form.wall(start)
        if wall.time() == time(0):
            day = f"{wall - timedelta(days=1):{form.pattern}}"
            row[1] = day.replace("00:00", "24:00", 1)
    return form.table([form.household, form.time, form.energy], rows)


def two_channels(form: Form, cells: Cells) -> Tables:
    """Return a row of general use, and for some homes one of a second load of a tenth of it."""
    rows = []
    for cell, (home, at, number) in zip(cells, form.rows(cells), strict=True):
        rows.append([home, "E1", at, number])
        rows += [[home, "E2", at, form.number(cell[3] // 100 * 10)]] if home in SOLAR else []
    return form.table([form.household, "channel", form.time, form.energy], rows)


def with_second_load(form: Form, cells: Cells) -> Cells:
    return [*cells, *((home, *rest, energy // 100 * 10) for home, *rest, energy in cells if home in SOLAR)]


def a_finer_home(form: Form, cells: Cells) -> Tables:
    """Return a table whose last home has six rows for each of the others'."""
    rows, part = [], replace(form, minutes=form.minutes // 6)
    for cell, row in zip(cells, form.rows(cells), strict=True):
        home, start, number, energy = cell
        finer = [(home, start + i * timedelta(minutes=part.minutes), number, energy // 60 * 10) for i in range(6)]
        rows += part.rows(finer) if home == HOMES[-1] else [row]
    return form.table([form.household, form.time, form.energy], rows)


def with_thousands(form: Form, cells: Cells) -> Tables:
    mark = "," if form.decimal == "." else "."
    rows = [[home, at, f'"{cell[3] // 10:,}"'.replace(",", mark)]
            for cell, (home, at, _) in zip(cells, form.rows(cells), strict=True)]  # fmt: skip
    return form.table([form.household, form.time, form.energy], rows)


def in_wh(form: Form, cells: Cells) -> Tables:
    rows = [[home, form.at(start), str(energy // 10)] for home, start, _, energy in cells]
    return form.table([form.household, form.time, form.energy], rows)


def is_export(start: datetime) -> bool:
    return start.hour in {11, 12, 13}


def net_metered(form: Form, home: str, start: datetime, energy: float) -> str:
    return form.number(-energy - 10 if is_export(start) else energy)


def in_utc(form: Form, cells: Cells) -> Tables:
    days = sorted({start.astimezone(ZoneInfo(form.zone)).date() for _, start, *_ in cells})
    utc = replace(form, zone="UTC")
    return plain(utc, utc.cells(days))


def by_day(form: Form, cells: Cells) -> Tables:
    rows: dict[tuple[str, str], list[str]] = {}
    for home, start, _, energy in cells:
        day = start.astimezone(ZoneInfo(form.zone))
        rows.setdefault((home, f"{day:%Y-%m-%d}"), []).append(form.number(energy))
    head = [form.household, "date", *(f"h{number}" for number in range(1440 // form.minutes))]
    return form.table(head, [[*key, *values] for key, values in rows.items()])


def by_column(form: Form, cells: Cells) -> Tables:
    rows: dict[str, list[str]] = {}
    for _, start, _, energy in sorted(cells, key=lambda cell: (cell[1], cell[0])):
        rows.setdefault(form.at(start), []).append(form.number(energy))
    return form.table([form.time, *HOMES], [[at, *values] for at, values in rows.items()])


def by_home(form: Form, cells: Cells) -> Tables:
    """Return a file for each home, with its number in the name and in the second line: mean powers in W."""
    files: dict[str, list[str]] = {}
    for home, start, _, energy in cells:
        watts = f"{energy / 10 * 60 / form.minutes:.1f}".replace(".", form.decimal)
        lines = files.setdefault(home, [f"number{form.separator}kind", f"{home}{form.separator}load curve",
                                        f"{form.time}{form.separator}{form.energy}"])  # fmt: skip
        lines.append(f"{form.wall(start).isoformat()}{form.separator}{watts}")
    return {f"load-{home}.csv": "\n".join([*lines, ""]).encode() for home, lines in files.items()}


def nem12(form: Form, cells: Cells) -> Tables:
    lines, homes = ["100,NEM12,202402010000,MDP1,RET1"], {}
    for home, start, _, energy in cells:
        day = f"{start.astimezone(ZoneInfo('Etc/GMT-10')):%Y%m%d}"
        homes.setdefault(home, {}).setdefault(day, []).append(f"{energy / (10_000 if form.energy == 'kwh' else 10)}")
    unit = "KWH" if form.energy == "kwh" else "WH"
    for home, days in homes.items():
        lines.append(f"200,{home},E1,1,E1,N1,S1,{unit},{form.minutes},")
        lines += [f"300,{day},{','.join(values)},A,,,20240201000000," for day, values in days.items()]
    return {"a.csv": "\n".join([*lines, "900", ""]).encode()}


def with_preamble(form: Form, cells: Cells) -> Tables:
    date_form, clock = form.pattern.split(" ", 1)
    rows = [
        [home, f"{form.wall(start):{date_form}}", f"{form.wall(start):{clock}}", form.number(energy)]
        for home, start, _, energy in cells
    ]
    before = f'"Name : A B"{4 * form.separator}\n"Unit: kWh"{4 * form.separator}'
    return form.table([form.household, "DATE", "TIME", form.energy], rows, before)


def since_1970(form: Form, cells: Cells) -> Tables:
    unit = 1000 if form.pattern == "epoch-ms" else 1
    rows = [[home, str(int(start.timestamp()) * unit), form.number(energy)] for home, start, _, energy in cells]
    return form.table([form.household, form.time, form.energy], rows)


def by_period(form: Form, cells: Cells) -> Tables:
    rows = [
        [home, f"{start.astimezone(ZoneInfo(form.zone)):%d/%m/%Y}", str(number + 1), form.number(energy)]
        for home, start, number, energy in cells
    ]
    return form.table([form.household, "day", "period", form.energy], rows)


def of_registers(form: Form, cells: Cells) -> Tables:
    """Return ranges of times of two registers, of which one is use."""
    rows = []
    for home, at, number in form.rows(cells):
        rows += [[home, "use", f"{at} - later", number], [home, "export", f"{at} - later", form.number(9)]]
    return form.table([form.household, "register", form.time, form.energy], rows)


def of_two_meters(form: Form, cells: Cells) -> Tables:
    """Return rows of two meters of each home: the second has a tenth of its energy, in Wh."""
    rows = []
    for home, start, _, energy in cells:
        at = str(int(start.timestamp()))
        rows += [[home, "a", at, f"{energy * 9 / 100!r}"], [home, "b", at, f"{energy / 100!r}"]]
    return form.table([form.household, "part", form.time, form.energy], rows)


def of_excel(form: Form, cells: Cells) -> Tables:
    head = [form.household, form.time, form.energy]
    return form.table(head, form.rows(cells), f"sep={form.separator}")


def london(form: Form, cells: Cells) -> Tables:
    """Return the London layout saved again with an index; the twin as Spark writes it, with the Z of UTC."""
    quote = '"' if "Z" in form.pattern else ""
    rows = [[str(number), f"{quote}{home}{quote}", "Std", at, energy]
            for number, (home, at, energy) in enumerate(form.rows(cells))]  # fmt: skip
    return form.table(["", "LCLid", "stdorToU", "DateTime", "KWH/hh (per half hour) "], rows)


def of_a_mac(form: Form, cells: Cells) -> Tables:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("meters.csv", plain(form, cells)["a.csv"])
        archive.writestr("__MACOSX/._meters.csv", b"\0\5\x16\7Mac OS X")
        archive.writestr(".DS_Store", b"\0")
    return {"a.zip": packed.getvalue()}


def with_a_unit(form: Form, home: str, start: datetime, energy: float) -> str:
    return f"{form.number(energy)} {form.energy[:3]}"


def with_float_ids(form: Form, cells: Cells) -> Tables:
    table = pd.DataFrame(form.rows(cells), columns=[form.household, form.time, form.energy])
    table[form.household] = table[form.household].astype("float64")
    table[form.energy] = table[form.energy].str.replace(",", ".").astype("float64")
    written = io.BytesIO()
    table.to_parquet(written)
    return {"a.parquet": written.getvalue()}


def one_odd_day(form: Form, home: str, start: datetime, energy: float) -> str:
    return net_metered(form, home, start, energy) if start.date() == WEEK else form.number(energy)


def wide_frame(tables: Tables) -> pd.DataFrame:
    """Return a column per meter as a pivot has it: names that are integers, timestamps with a type."""
    head = tables["a.csv"].decode().partition(ENGLISH.household)[0][:60]
    separator, decimal = (";", ",") if ";" in head else (",", ".")
    frame = pd.read_csv(io.BytesIO(tables["a.csv"]), sep=separator, decimal=decimal)
    time = pd.to_datetime(frame.pop(frame.columns[0]), dayfirst=separator == ";")
    return frame.set_axis(frame.columns.astype(int), axis=1).assign(**{str(time.name): time})


WIDE = {"household": "*", "energy": "*"}
AUSTRALIAN = Form(minutes=30, zone="Etc/GMT-10", stamp="start")
KINDS: dict[str, Kind] = {
    "01 end of day 24:00": Kind(ends_at_24, forms=(ENGLISH, replace(HOURLY, stamp="end", pattern="%d.%m.%Y %H:%M"))),
    "02 two channels": Kind(two_channels, refused="channels|--add"),
    "02 two channels, added": Kind(two_channels, lambda form: {"add": "channel"}, use=with_second_load),
    "03 a finer home": Kind(a_finer_home, forms=(ENGLISH, HOURLY), refused="interval"),
    "04 thousands": Kind(with_thousands, lambda form: {"unit": "Wh"}, refused="thousands", sound=in_wh),
    "04 thousands, named": Kind(
        with_thousands, lambda form: {"unit": "Wh", "thousands": "," if form.decimal == "." else "."}
    ),
    "05 net metering": Kind(changed(net_metered, SOLAR), refused="negative"),
    "05 net metering, as 0": Kind(
        changed(net_metered, SOLAR), lambda form: {"negative": "zero"},
        use=lambda form, cells: [cell for cell in cells if not (cell[0] in SOLAR and is_export(cell[1]))],
    ),
    "06 UTC as local time": Kind(in_utc, refused="zone", first=SPRING),
    "07 row per day": Kind(
        by_day, lambda form: {"time": "date", "time_format": "iso", "stamp": "start",
                              "energy": ["h0", f"h{1440 // form.minutes - 1}"]},
        forms=(ENGLISH, HOURLY),
    ),
    "08 column per meter": Kind(by_column, lambda form: WIDE),
    "09 file per home": Kind(
        by_home, lambda form: {"household": "line:2" if form.stamp == "start" else "file:load-*.csv", "skip_lines": 2,
                               "time_format": "iso", "unit": "W"},
        forms=(replace(ENGLISH, stamp="end"), HOURLY),
    ),
    "10 NEM12": Kind(nem12, dataset="nem12", forms=(AUSTRALIAN, replace(AUSTRALIAN, minutes=5, energy="wh"))),
    "11 preamble, date and time apart": Kind(
        with_preamble, lambda form: {"time": ["DATE", "TIME"], "skip_lines": 2},
        forms=(replace(ENGLISH, pattern="%m/%d/%Y %I:%M %p", minutes=60, zone="America/Los_Angeles"), GERMAN),
    ),
    "12 epoch": Kind(
        since_1970, lambda form: {"stamp": "start"},
        forms=(replace(ENGLISH, pattern="epoch"), replace(GERMAN, pattern="epoch-ms")),
    ),
    "21 date and period": Kind(
        by_period, lambda form: {"time": ["day", "period"], "time_format": "%d/%m/%Y", "stamp": "start",
                                 "period_minutes": form.minutes},
        forms=(ENGLISH, HOURLY), first=AUTUMN,
    ),
    "22 ranges and registers": Kind(
        of_registers, lambda form: {"time_format": f"{form.pattern}*", "where": {"register": ["use"]}},
    ),
    "23 five minutes of two meters": Kind(
        of_two_meters, lambda form: {"time_format": "epoch", "stamp": "start", "unit": "Wh", "add": "part"},
        forms=(replace(ENGLISH, minutes=5), replace(HOURLY, decimal=".")),
    ),
    "13 sep line": Kind(of_excel, forms=(replace(ENGLISH, separator=";"), replace(GERMAN, separator="\t"))),
    "14 London saved again": Kind(
        london, dataset="london",
        forms=(replace(ENGLISH, zone="UTC"), replace(ENGLISH, zone="UTC", pattern="%Y-%m-%dT%H:%M:%S.000Z")),
    ),
    "15 zip of a Mac": Kind(of_a_mac),
    "17 text in numbers": Kind(changed(with_a_unit, HOMES[:8]), refused='"(kwh|Ver)" after the number'),
    "18 wide frame, integer names": Kind(
        by_column, lambda form: WIDE,
        frame=wide_frame,
    ),
    "19 float ids": Kind(with_float_ids, refused="float"),
    "20 values and the published count": Kind(
        changed(one_odd_day, HOMES[:1]),
        use=lambda form, cells: [
            cell for cell in cells if cell[0] != HOMES[0] or cell[1].astimezone(ZoneInfo(form.zone)).date() != WEEK
        ],
    ),
}  # fmt: skip


def days_of(kind: Kind, number: int) -> list[date]:
    return [kind.first + timedelta(days=i) for i in range(number)]


def deliver(folder: Path, tables: Tables) -> list[str]:
    folder.mkdir(parents=True)
    for name, content in tables.items():
        (folder / name).write_bytes(content)
    return [str(folder / name) for name in tables]


def released(folder: Path) -> dict[str, float]:
    """Return the published means; all households of the roster are counted."""
    table = pd.read_parquet(folder / "daily_averages.parquet")
    assert set(table["households"]) == {len(HOMES)}
    return dict(zip(table["day"].astype(str), table["mean_kwh"], strict=True))


def minutes_of(kind: Kind, form: Form) -> int | None:
    return form.minutes if kind.dataset == "long" and form.minutes != 30 else None


def given(value: Any) -> list[Any]:
    """Return the values of an option that is given for each of them."""
    if isinstance(value, dict):
        return [f"{name}={text}" for name, texts in value.items() for text in texts]
    return value if isinstance(value, list) else [value]


def by_command_line(folder: Path, kind: Kind, form: Form, tables: Tables) -> tuple[dict[str, float], str]:
    """Sanitise with the options of the keys."""
    keys = {("input.columns", name): value for name, value in kind.columns(form).items()}
    keys |= {("input", "dataset"): kind.dataset, ("input", "interval_minutes"): minutes_of(kind, form)}
    words = [
        word
        for option in OPTIONS if (value := keys.get(option.key)) is not None
        for one in given(value) for word in (option.flag, str(one))
    ]  # fmt: skip
    files = deliver(folder / "input", tables)
    ended = command("sanitise", *files, "--out", "out", *TERMS.split(), *words, folder=folder)
    assert ended.status == (2 if kind.refused else 0), ended
    return ({}, ended.err) if kind.refused else (released(folder / "out"), "")


def write_run(house: House, kind: Kind, form: Form, days: list[date], *, mode: str) -> None:
    """Write roster and run file, with the preflight that refuses."""
    age = "age_days = 1\n" if mode == "live" else ""
    house.roster([(home, days[0], None) for home in HOMES])
    house.write(days[0], days[-1], mode=mode, dataset=kind.dataset, clamp="1000", promise=age + PROMISE, least=10)
    columns = [f"{name} = {toml_value(value)}" for name, value in kind.columns(form).items()]
    minutes = [f"interval_minutes = {minutes_of(kind, form)}"] if minutes_of(kind, form) else []
    table = "\n".join([*minutes, *(["[input.columns]"] if columns else []), *columns, "[output]"])
    house.edit(
        ('preflight = "report"\n', ""), ('["input/*.csv"]', '["input/*/*"]'), ("[output]", table),
        ('["useless", "no-credit", "total"]', json.dumps(ACCEPT)),
    )  # fmt: skip


def by_run_file(folder: Path, kind: Kind, form: Form, tables: Tables) -> tuple[dict[str, float], str]:
    house = House(folder)
    deliver(folder / "input" / "all", tables)
    write_run(house, kind, form, days_of(kind, 3), mode="archive")
    ended = command("run", "run.toml", folder=folder)
    assert ended.status == (2 if kind.refused else 0), ended
    return ({}, ended.err) if kind.refused else (released(folder / "release"), "")


def by_python(folder: Path, kind: Kind, form: Form, tables: Tables) -> tuple[dict[str, float], str]:
    files = deliver(folder / "input", tables)
    try:
        readings = agedp.read(
            kind.frame(tables) if kind.frame else files, dataset=kind.dataset, columns=kind.columns(form) or None,
            interval_minutes=minutes_of(kind, form),
        )  # fmt: skip
        promise = agedp.Classical(epsilon_per_day=200_000, max_day_epsilon=200_000, epsilon_total="unlimited")
        found = agedp.release(readings, promise=promise, clamp_kwh=1000, min_households=10, accept=ACCEPT)
    except InputError as error:
        return {}, error.private
    found.save(folder / "saved")
    return released(folder / "saved"), ""


DOORS = {"command line": by_command_line, "run file": by_run_file, "Python": by_python}
FAST = {("01", 0), ("03", 1), ("07", 0), ("09", 1), ("17", 0), ("19", 0), ("21", 0)}
CASES = [
    pytest.param(name, twin, id=f"{name}{', twin' * twin}", marks=[] if (name[:2], twin) in FAST else pytest.mark.long)
    for name in KINDS for twin in (0, 1)
]  # fmt: skip


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize(("name", "twin"), CASES)
@pytest.mark.filterwarnings("ignore::agedp.InputWarning")
def test_a_first_release_is_right_or_names_its_cause(tmp_path, name, twin, door):
    kind = KINDS[name]
    form = kind.forms[twin]
    cells = form.cells(days_of(kind, 3))
    means, refusal = DOORS[door](tmp_path, kind, form, kind.write(form, cells))
    if kind.refused:
        assert re.search(kind.refused, refusal), refusal
    else:
        assert means == pytest.approx(kind.count(form, cells), abs=NOISE_KWH)


@pytest.mark.parametrize(("name", "twin"), CASES)
def test_a_later_night_is_right_or_warns_and_publishes_the_same(tmp_path, name, twin):
    """Two nights, then a third; of a kind with a trouble it differs from a sound one in nothing that is public."""
    kind = KINDS[name]
    form = kind.forms[twin]
    days = days_of(kind, 3)
    public, shown = [], []
    for number, last in enumerate([kind.write] if not kind.refused else [kind.write, kind.sound or plain]):
        house = House(tmp_path / str(number))
        first = (kind.sound or plain) if kind.refused else kind.write
        deliver(house.folder / "input" / "first", first(form, form.cells(days[:2])))
        write_run(house, kind, form, days, mode="live")
        for day in days[1:]:
            if day == days[2]:
                deliver(house.folder / "input" / "night", last(form, form.cells(days[2:])))
            now = datetime.combine(day + timedelta(days=2), time(12), UTC)
            ended = (
                with_fixed_noise(house.folder, "run", "run.toml", now=now) if kind.refused else command_at(house, now)
            )
            assert ended.status == 0, ended
        shown.append(ended.out + ended.err)
        public.append(house.files() | {"ledger": (house.folder / "ledger.sqlite").read_bytes()})
    if kind.refused:
        assert public[0] == public[1]
        assert "warning" in shown[0]
        assert "warning" not in shown[1]
    else:
        assert released(house.folder / "release") == pytest.approx(kind.count(form, form.cells(days)), abs=NOISE_KWH)


def command_at(house: House, now: datetime) -> Any:
    with mock.patch.object(clock, "now", return_value=now):
        return command("run", "run.toml", folder=house.folder)
