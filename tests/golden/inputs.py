"""The made-up input of a golden run: readings in two deliveries, roster, markers, and the files of a declared model.

Nothing of the product writes it, so that it stays as it is whatever becomes of the product. Each delivery contains
missing, repeated, conflicting and unreadable readings and a meter that is not on the roster.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path
from random import Random

FIRST_READ, FIRST, DAYS = date(2013, 1, 22), date(2013, 2, 2), 18  # read from, published from, days read
HOUSEHOLDS, SLOTS = 8, 48
NIGHTS = (datetime(2013, 2, 6, 3, tzinfo=UTC), datetime(2013, 2, 11, 3, tzinfo=UTC))
_AUSGRID_LABELS = [f"{minute // 60 % 24}:{minute % 60:02d}" for minute in range(30, 24 * 60 + 1, 30)]


@dataclass(frozen=True)
class Reading:
    """One half-hour as a file contains it."""

    household: int
    day: date
    slot: int
    energy_wh: int
    text: str = ""
    """An unreadable text that stands for the energy."""


def write_surroundings(folder: Path, dataset: str) -> None:
    """Write all files of a world except the readings."""
    for name in ("incoming", "witness"):
        (folder / name).mkdir(parents=True)
    lines = ["household_id,from,to,tariff"]
    for household in range(HOUSEHOLDS):
        last = FIRST + timedelta(days=4) if household == 7 else ""
        lines.append(f"{_household_id(household, dataset)},{FIRST_READ},{last},{'AB'[household % 2]}")
    _write(folder / "roster.csv", lines)
    _write(folder / "curve.csv", ["age_days,total_variation", "1,0.7", "2,0.5", "4,0.2"])
    _write(folder / "two-states.csv", ["0.75,0.25", "0.35,0.65"])
    _write(folder / "kernel.csv", ["0.8,0.2,0", "0.1,0.8,0.1", "0.05,0.15,0.8"])
    for number in range(DAYS):
        if number != 14:
            (folder / f"{FIRST_READ + timedelta(days=number)}.done").touch()


def write_readings(folder: Path, dataset: str, *, night: int) -> None:
    """Write the file of a night: the days before 6 February, or the later ones and one household's 5 February again."""
    days = [FIRST_READ + timedelta(days=number) for number in (range(15) if night == 0 else range(14, DAYS))]
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
