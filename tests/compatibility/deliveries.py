"""Synthetic meter files of six households in three layouts, with every kind of row that is counted or rejected.

Readings take four values only, so that the packed fixtures stay small. No real reading is in them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import numpy as np

HOUSEHOLDS, SLOTS = 6, 48
LEVELS_WH = (60, 150, 400, 900)
_SYDNEY_LABELS = ",".join(f"{minute // 60 % 24}:{minute % 60:02d}" for minute in range(30, 24 * 60 + 1, 30))
_HEADERS = {
    "london": "LCLid,tstp,energy(kWh/hh)",
    "long": "meter,read_at,wh",
    "ausgrid": f"Customer,Generator Capacity,Postcode,Consumption Category,date,{_SYDNEY_LABELS},Row Quality",
}


@dataclass(frozen=True)
class Delivery:
    """What one file contains: some days, of all households or of those with an even or an odd number."""

    days: tuple[date, ...]
    number: int
    part: str = "all"
    change_wh: int = 0

    @property
    def name(self) -> str:
        return f"{self.number:03d}-meters.csv"

    @property
    def households(self) -> range:
        return {"all": range(HOUSEHOLDS), "even": range(0, HOUSEHOLDS, 2), "odd": range(1, HOUSEHOLDS, 2)}[self.part]


def household_ids(dataset: str) -> list[str]:
    """Return the ids of the households; Ausgrid's are plain numbers."""
    return [str(place + 1) if dataset == "ausgrid" else f"MAC90000{place + 1}" for place in range(HOUSEHOLDS)]


def write(folder: Path, dataset: str, delivery: Delivery) -> None:
    """Write the file of a delivery."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = [line for day in delivery.days for line in _LINES[dataset](delivery, day)]
    (folder / delivery.name).write_text("\n".join([_HEADERS[dataset], *lines]) + "\n")


def _energies_wh(delivery: Delivery, household: int, day: date) -> list[int]:
    """Return what a household uses by half-hour, the same in each delivery but for its change; it clings to a level."""
    chance = np.random.default_rng([household, day.toordinal()])
    places = np.cumsum(chance.random(SLOTS) < 0.3)
    levels = chance.integers(0, len(LEVELS_WH), SLOTS)[places - places[0]]
    return [LEVELS_WH[level] + delivery.change_wh * (slot % 5 == 0) for slot, level in enumerate(levels)]


def _london(delivery: Delivery, day: date) -> list[str]:
    """Return GMT rows, stamped at the end; each day one Null, one duplicate, one off the grid, one beyond 50 kWh."""
    lines = []
    for household in delivery.households:
        name = household_ids("london")[household]
        for slot, energy in _present(delivery, household, day):
            stamp = datetime.combine(day, time()) + timedelta(minutes=30 * (slot + 1))
            lines.append(f"{name},{stamp},{energy / 1000:.3f}")
    first = lines[0].split(",")
    return [*lines, lines[0], f"{first[0]},{day} 12:17:03,0.1", f"{first[0]},{day} 12:30:00,99", _null(lines[-1])]


def _long(delivery: Delivery, day: date) -> list[str]:
    """Return rows in London's civil time, stamped at the start; of the day with 46 half-hours no more than these."""
    zone = ZoneInfo("Europe/London")
    start, end = (
        datetime.combine(midnight, time(), zone).astimezone(UTC) for midnight in (day, day + timedelta(days=1))
    )
    lines = []
    for household in delivery.households:
        name = household_ids("long")[household]
        for slot, energy in _present(delivery, household, day):
            at = start + timedelta(minutes=30 * slot)
            if at < end:
                lines.append(f"{name},{at.astimezone(zone).replace(tzinfo=None)},{energy}")
    return [*lines, lines[0], _null(lines[-1]), f"{household_ids('long')[0]},{day} 30:00:00,5"]


def _ausgrid(delivery: Delivery, day: date) -> list[str]:
    """Return wide rows: general consumption, controlled load of the even households, generation, one quality NA."""
    lines = []
    for household in delivery.households:
        before = f"{household_ids('ausgrid')[household]},1.5,2040"
        for category in ("GC", *(("CL",) if household % 2 == 0 else ()), "GG"):
            energies = _energies_wh(delivery, household + 10 * ("GC", "CL", "GG").index(category), day)
            texts = ",".join(f"{energy / 1000:g}" for energy in energies)
            quality = "NA" if (household, category) == (1, "GC") else ""
            lines.append(f"{before},{category},{day.day}/{day.month:02d}/{day.year},{texts},{quality}")
    return lines


def _present(delivery: Delivery, household: int, day: date) -> list[tuple[int, int]]:
    """Return the half-hours that are delivered: of household 3 too few on every fourth day."""
    energies = list(enumerate(_energies_wh(delivery, household, day)))
    return energies[7:] if household == 3 and day.toordinal() % 4 == 0 else energies


def _null(line: str) -> str:
    """Return a second row of a household's last half-hour, without a reading."""
    return f"{line.rpartition(',')[0]},Null"


_LINES: dict[str, Callable[[Delivery, date], list[str]]] = {"london": _london, "long": _long, "ausgrid": _ausgrid}
