"""Every shape of a table by night: three nights around a clock change, a late file, and chains of twelve states.

London's clock goes back on 27 October 2024: that day has 50 half-hours. Each shape writes the same made-up energies
with its own columns, times and marks; the true means are counted here, from the energies alone.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from agedp.calibration_pipeline import calibrate
from tests.agedp.test_nem12_nights import AGED, MODEL, PROMISE

LONDON = ZoneInfo("Europe/London")
FIRST, NIGHT, HALF_HOUR = date(2024, 10, 26), timedelta(days=1), timedelta(minutes=30)
HOMES = ("101", "102", "103")
Cells = list[tuple[str, datetime, int, int]]
"""Household, instant at which an interval begins, its number within the day from 0, energy in tenths of a Wh."""


def cells_of(
    homes: Sequence[str], days: Sequence[date], *, zone: ZoneInfo = LONDON, interval: timedelta = HALF_HOUR
) -> Cells:
    """Return the intervals of days by the clock of a zone; of a day of 25 hours there are 50 half-hours."""
    found = []
    for home in homes:
        for day in days:
            start, end = (datetime(at.year, at.month, at.day, tzinfo=zone).astimezone(UTC) for at in (day, day + NIGHT))
            of = random.Random(f"{home}{day}")  # noqa: S311 - made-up readings
            number = int((end - start) / interval)
            found += [(home, start + i * interval, i, 10 * of.randrange(2_000)) for i in range(number)]
    return found


def by_row(head: str, row: Callable[[str, datetime, int, int], str]) -> Callable[[Cells], dict[str, str]]:
    return lambda cells: {"all": "\n".join([head, *(row(*cell) for cell in cells), ""])}


def by_day(cells: Cells) -> dict[str, str]:
    """Return rows of days; the two passes of a half-hour are one column with their sum."""
    rows: dict[tuple[str, date], list[int]] = {}
    for home, start, _, energy in cells:
        wall = start.astimezone(LONDON)
        rows.setdefault((home, wall.date()), [0] * 48)[wall.hour * 2 + wall.minute // 30] += energy
    head = ",".join(["meter,day", *(f"h{i}" for i in range(48))])
    lines = [f"{home},{day},{','.join(str(wh / 10_000) for wh in row)}" for (home, day), row in rows.items()]
    return {"all": "\n".join([head, *lines, ""])}


def by_column(cells: Cells) -> dict[str, str]:
    homes = sorted({home for home, *_ in cells})
    rows: dict[datetime, dict[str, int]] = {}
    for home, start, _, energy in cells:
        rows.setdefault(start, {})[home] = energy
    lines = [
        f"{at:%Y-%m-%dT%H:%M}Z;{';'.join(str(row[home] / 10) if home in row else '' for home in homes)}"
        for at, row in rows.items()
    ]
    return {"all": "\n".join([";".join(["", *homes]), *lines, ""])}


def by_file(cells: Cells) -> dict[str, str]:
    """Return a file for each home, of mean powers in W, twice the watt-hours of a half-hour."""
    files: dict[str, list[str]] = {}
    for home, start, _, energy in cells:
        wall = start.astimezone(LONDON)
        files.setdefault(home, ["a portal", "when;power"]).append(
            f"{wall.isoformat()};{str(energy / 5).replace('.', ',')}"
        )
    return {home: "\n".join([*lines, ""]) for home, lines in files.items()}


def quarters(cells: Cells) -> dict[str, str]:
    """Return rows of five minutes, each a sixth of the energy, of two meters: the second has a tenth of it."""
    lines = ["meter,part,at,wh"]
    for home, start, _, energy in cells:
        at = [int(start.timestamp()) + 300 * i for i in range(6)]
        lines += [f"{home},a,{second},{energy * 9 / 600!r}" for second in at]
        lines += [f"{home},b,{second},{energy / 600!r}" for second in at]
    return {"all": "\n".join([*lines, ""])}


SHAPES = {
    "a date and a period": (
        by_row(
            "meter,day,period,kwh",
            lambda home, at, i, wh: f"{home},{at.astimezone(LONDON):%d/%m/%Y},{i + 1},{wh / 10_000}",
        ),
        'household = "meter"\ntime = ["day", "period"]\ntime_format = "%d/%m/%Y"\nperiod_minutes = 30\nenergy = "kwh"',
        'unit = "kWh"', 30,
    ),
    "date and time apart, in UTC": (
        by_row("day;clock;home;wh", lambda home, at, _, wh: f"{at:%m/%d/%Y};{at:%I:%M %p};{home};{wh / 10:,.1f}"),
        'household = "home"\ntime = ["day", "clock"]\ntime_format = "%m/%d/%Y %I:%M %p"\nenergy = "wh"',
        'unit = "Wh"\nseparator = ";"\nthousands = ","', 30,
    ),
    "a row of a day": (
        by_day, 'household = "meter"\ntime = "day"\ntime_format = "iso"\nenergy = ["h0", "h47"]', 'unit = "kWh"', 30,
    ),
    "a column per meter": (
        by_column, 'household = "*"\nenergy = "*"\ntime = ""\ntime_format = "iso"', 'unit = "Wh"\nseparator = ";"', 30,
    ),
    "a file per home, in W": (
        by_file, 'household = "file:*.csv"\ntime = "when"\ntime_format = "iso"\nenergy = "power"\nskip_lines = 1',
        'unit = "W"\nseparator = ";"\ndecimal = ","', 30,
    ),
    "ranges of times, and one of two registers": (
        by_row(
            "meter;register;when;wh",
            lambda home, at, _, wh: "\n".join(
                f"{home};{register};{at.astimezone(LONDON):%d/%m/%Y %H:%M} - later;{energy}"
                for register, energy in (("use", wh / 10), ("export", 9))
            ),
        ),
        'household = "meter"\ntime = "when"\ntime_format = "%d/%m/%Y %H:%M*"\nenergy = "wh"',
        'unit = "Wh"\nseparator = ";"\nwhere = { register = "use" }', 30,
    ),
    "seconds since 1970, of five minutes and two meters": (
        quarters, 'household = "meter"\ntime = "at"\ntime_format = "epoch"\nenergy = "wh"\nadd = "part"',
        'unit = "Wh"', 5,
    ),
}  # fmt: skip


def prepare(
    house, shape: str, last: date, promise: str, *, mode: str = "live", rest: str = ""
) -> Callable[[str, Cells], None]:
    """Write roster and run file of a shape, and return what writes a delivery."""
    written, keys, more, minutes = SHAPES[shape]
    house.roster([(home, FIRST, None) for home in HOMES])
    house.write(FIRST, last, mode=mode, dataset="long", promise=promise, clamp="400", rest=rest)
    columns = f'stamp = "start"\nzone = "{"UTC" if "UTC" in shape else "Europe/London"}"\nday_zone = "Europe/London"'
    table = f"interval_minutes = {minutes}\n[input.columns]\n{keys}\n{columns}\n{more}\n[output]"
    house.edit(('["input/*.csv"]', '["input/*/*.csv"]'), ("[output]", table))

    def deliver(name: str, cells: Cells) -> None:
        folder = house.folder / "input" / name
        folder.mkdir(parents=True)
        for file, text in written(cells).items():
            (folder / f"{file}.csv").write_text(text)

    return deliver


@pytest.mark.parametrize("shape", SHAPES)
def test_nights_release_what_the_files_say(house, shape):
    """The third home's second day comes late: the day is released without it and the rows are counted."""
    days = [FIRST + number * NIGHT for number in range(3)]
    deliver = prepare(house, shape, days[-1], PROMISE)
    on_time = [cells_of(HOMES, days[:1]), cells_of(HOMES[:2], days[1:2]), cells_of(HOMES, days[2:])]
    late = cells_of(HOMES[2:], days[1:2])
    for number, (day, cells) in enumerate(zip(days, on_time, strict=True)):
        deliver(f"night{number}", cells)
        if number == 2:
            deliver("late", late)
        summary = house.run(today=day + 2 * NIGHT, hour=6)
        assert [row.day for row in summary.released] == [str(day)]
        assert (summary.delivery.late_rows > 0) == (number == 2)
    means = {line["day"]: line["true_mean_kwh"] for line in house.records("true_means")}
    counted = [sum(wh for *_, wh in cells) / 10_000 / 3 for cells in on_time]
    assert means == pytest.approx(dict(zip(days, counted, strict=True)), abs=1e-9)
    house.release.verify()


QUICK = ("a row of a day", "seconds since 1970, of five minutes and two meters")
FURTHER = [pytest.param(name, marks=pytest.mark.long) for name in SHAPES if name not in QUICK]


@pytest.mark.parametrize("shape", [*QUICK, *FURTHER])
def test_chains_of_twelve_states_are_estimated(house, shape):
    days = [FIRST + number * NIGHT for number in range(12)]
    model = MODEL.replace("2024-04-05, 2024-04-24", f"{days[0]}, {days[-1]}")
    prepare(house, shape, days[-1], AGED, mode="archive", rest=model)("all", cells_of(HOMES, days))
    assert calibrate(house.run_file).households == len(HOMES)
