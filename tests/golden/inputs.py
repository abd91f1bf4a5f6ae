"""The made-up input of a golden run: readings in two deliveries, rosters, markers, and the files of a declared model.

Nothing of the product writes it, so that it stays as it is whatever becomes of the product. Each delivery contains
missing, repeated, conflicting and unreadable readings and a meter that is not on the roster. The first day of the
schedule selects a calendar: the days that are read, and the two nights.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path
from random import Random

HOUSEHOLDS, SLOTS = 8, 48
_AUSGRID_LABELS = [f"{minute // 60 % 24}:{minute % 60:02d}" for minute in range(30, 24 * 60 + 1, 30)]


@dataclass(frozen=True)
class Calendar:
    """The days that are read and published, and when.

    Attributes:
        first: first day of the schedule.
        read_from: first day with readings.
        days: number of days with readings.
        delivered: number of days that the first night's file contains.
        nights: when the two nights run.
    """

    first: date
    read_from: date
    days: int
    delivered: int
    nights: tuple[datetime, datetime]

    @property
    def read_days(self) -> list[date]:
        return [self.read_from + timedelta(days=number) for number in range(self.days)]


def _night(month: int, day: int) -> datetime:
    return datetime(2013, month, day, 3, tzinfo=UTC)


CALENDARS = {
    calendar.first: calendar
    for calendar in (
        Calendar(date(2013, 2, 2), date(2013, 1, 22), 18, 15, (_night(2, 6), _night(2, 11))),
        Calendar(date(2013, 1, 28), date(2013, 1, 28), 7, 4, (_night(1, 31), _night(2, 4))),
        Calendar(date(2013, 2, 1), date(2013, 2, 1), 31, 27, (_night(2, 27), _night(3, 6))),
    )
}
"""With days before the schedule, for a model; a week that is published in two months; a whole month."""


@dataclass(frozen=True)
class Reading:
    """One half-hour as a file contains it."""

    household: int
    day: date
    slot: int
    energy_wh: int
    text: str = ""
    """An unreadable text that stands for the energy."""


def write_surroundings(folder: Path, dataset: str, calendar: Calendar) -> None:
    """Write all files of a world except the readings."""
    for name in ("incoming", "witness", "shared"):
        (folder / name).mkdir(parents=True)
    lines, placed = ["household_id,from,to,tariff"], ["household_id,from,to,feeder,area"]
    for household in range(HOUSEHOLDS):
        last = calendar.first + timedelta(days=4) if household == 7 else ""
        span = f"{_household_id(household, dataset)},{calendar.read_from},{last}"
        lines.append(f"{span},{'AB'[household % 2]}")
        placed.append(f"{span},F{household // 3},{'north' if household < 6 else 'south'}")
    _write(folder / "roster.csv", lines)
    _write(folder / "grid.csv", placed)
    _write(folder / "part.csv", [lines[0], *lines[4:]])  # without the first three households
    _write(folder / "curve.csv", ["age_days,total_variation", "1,0.7", "2,0.5", "4,0.2"])
    _write(folder / "two-states.csv", ["0.75,0.25", "0.35,0.65"])
    _write(folder / "kernel.csv", ["0.8,0.2,0", "0.1,0.8,0.1", "0.05,0.15,0.8"])
    for number, day in enumerate(calendar.read_days):
        if number != calendar.delivered - 1:
            (folder / f"{day}.done").touch()


def write_readings(folder: Path, dataset: str, calendar: Calendar, *, night: int) -> None:
    """Write the file of a night: the first days, or the later ones and one household's last of the first days again."""
    days = calendar.read_days
    days = days[: calendar.delivered] if night == 0 else days[calendar.delivered - 1 :]
    readings = list(_readings(days, Random(night)))  # noqa: S311
    if night == 1:
        readings = [reading for reading in readings if reading.day != days[0] or reading.household == 0]
    path = folder / "incoming" / f"delivery-{night}.csv"
    {"london": _write_london, "ausgrid": _write_ausgrid, "long": _write_long}[dataset](path, readings)


def _readings(days: list[date], chance: Random) -> Iterator[Reading]:
    """Yield the readings of two-state households, and of one more that is not on the roster."""
    for household in range(HOUSEHOLDS + 1):
        high = False
        for day in days:
            for slot in range(SLOTS):
                high = high != (chance.random() < (0.1 if high else 0.08 + 0.01 * household))
                energy = int(40 + 120 * chance.random() + high * (150 + 40 * household))
                event = chance.random()
                if event < 0.004:
                    continue
                yield Reading(household, day, slot, energy, "unreadable" if event > 0.998 else "")
                if event < 0.008:
                    yield Reading(household, day, slot, energy + (7 if event < 0.0045 else 0))


def _household_id(household: int, dataset: str) -> str:
    return str(11 + household) if dataset == "ausgrid" else f"MAC{household:06d}"


def _write_london(path: Path, readings: list[Reading]) -> None:
    lines = ["LCLid,stdorToU,DateTime,KWH/hh (per half hour) "]
    for reading in readings:
        energy = reading.text or f"{reading.energy_wh / 1000:.3f}"
        lines.append(f"{_household_id(reading.household, 'london')},Std,{_end(reading)}.0000000,{energy}")
    _write(path, lines)


def _write_long(path: Path, readings: list[Reading]) -> None:
    lines = ["meter,read_at,wh"]
    lines += [
        f"{_household_id(reading.household, 'long')},{_end(reading)},{reading.text or reading.energy_wh}"
        for reading in readings
    ]
    _write(path, lines)


def _write_ausgrid(path: Path, readings: list[Reading]) -> None:
    """Write one row per household, day and category; a reading that a delivery lacks is 0."""
    cells: dict[tuple[int, date], list[str]] = {}
    for reading in readings:
        row = cells.setdefault((reading.household, reading.day), ["0"] * SLOTS)
        row[reading.slot] = reading.text or f"{reading.energy_wh / 1000:.3f}"
    lines = ["Golden set" + "," * 53, ",".join([*_AUSGRID_COLUMNS, *_AUSGRID_LABELS])]
    for (household, day), row in cells.items():
        meter = f"{_household_id(household, 'ausgrid')},3.78,2076"
        when = f"{day.day}/{day.month:02d}/{day.year}"
        lines.append(",".join([meter, "GC", when, *row]))
        if household % 3 == 0:
            lines.append(",".join([meter, "CL", when, *["0.25"] * 12, *["0"] * 36]))
        lines.append(",".join([meter, "GG", when, *["0"] * 20, *["0.4"] * 10, *["0"] * 18]))
    _write(path, lines)


_AUSGRID_COLUMNS = ("Customer", "Generator Capacity", "Postcode", "Consumption Category", "date")


def _end(reading: Reading) -> datetime:
    return datetime.combine(reading.day, time()) + timedelta(minutes=30 * (reading.slot + 1))


def _write(path: Path, lines: list[str]) -> None:
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
