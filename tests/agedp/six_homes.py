"""Six households over four days, one of them without a reading on the third: what layers are tried on."""

from __future__ import annotations

from datetime import date, timedelta

FIRST, DAYS = date(2013, 1, 1), 4
TODAY = date(2013, 6, 1)
HOMES = {"A": "Std", "B": "Std", "C": "Std", "D": "two words", "E": "two words", "F": "few"}


def day(number):
    return FIRST + timedelta(days=number)


def energy(home, number):
    """Wh of a home's day; 48 readings, E has none on the third day."""
    return {"A": 1200, "B": 48_000, "C": 2496, "D": 4992, "E": 9600, "F": 0}[home] + 48 * number


def build(house):
    days = [(home, i) for home in HOMES for i in range(DAYS) if (home, i) != ("E", 2)]
    house.london({(home, day(i), slot): energy(home, i) // 48 for home, i in days for slot in range(48)})
    rows = [f"{home},{FIRST},,{tariff}" for home, tariff in HOMES.items()]
    (house.folder / "roster.csv").write_text("\n".join(["household_id,from,to,tariff", *rows]) + "\n")
    return house
