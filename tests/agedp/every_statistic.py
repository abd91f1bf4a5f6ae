"""A population that publishes every statistic in every form, and what its rows must be: counted by plain loops.

33 days from a Wednesday to a Sunday, of which February alone is a whole month, in three nights. Households exceed
clamps of half-hours and of days, lack readings, leave, move to another tariff, and one is alone in its tariff.
"""

from __future__ import annotations

import math
from collections import Counter
from datetime import date, timedelta
from fractions import Fraction

FIRST, LAST = date(2013, 1, 30), date(2013, 3, 3)
DAYS = [FIRST + timedelta(days=i) for i in range((LAST - FIRST).days + 1)]
NIGHTS = (date(2013, 2, 10), date(2013, 2, 20), date(2013, 3, 10))
LEAVES, MOVES = date(2013, 2, 10), date(2013, 2, 13)
HOMES = "ABCDEFGH"
STREETS = {home: ("north/n1", "north/n2", "south/s1", "west/w")[i // 2] for i, home in enumerate(HOMES)}
PROMISE = 'notion = "classical"\nage_days = 1\nepsilon_per_day = 0.5\nmax_day_epsilon = 0.5\nepsilon_total = 30\n'
USE = "clamp_kwh = [2, 10, 40]\nshare = [0.1, 0.05, 0.05]\nmissing_kwh = 3"
TABLES = """
[series.total]
statistic = "mean"
clamp_kwh = 12
share = 0.05
[series.levels]
statistic = "mean"
clamp_kwh = 12
by = ["street", "area"]
share = [0.1, 0.1]
[series.counts]
statistic = "distribution"
clamp_kwh = 40
bins_kwh = [0, 2.5, 5, 10, 40]
missing_kwh = 3
share = 0.1
[series.below]
statistic = "distribution"
form = "cumulative"
clamp_kwh = 40
bins_kwh = [0, 2.5, 5, 10, 40]
by = "tariff"
share = 0.1
[series.shape]
statistic = "profile"
clamp_kwh = 9
half_hour_clamp_kwh = 0.5
missing_kwh = 4.8
by = "tariff"
share = 0.1
[series.usable]
statistic = "coverage"
max_missing = 0
share = 0.05
[series.weeks]
statistic = "mean"
every = "week"
clamp_kwh = 10
by = "tariff"
share = 0.05
[series.months]
statistic = "mean"
every = "month"
clamp_kwh = 10
missing_kwh = 2
share = 0.05
[series.kinds]
statistic = "profile"
every = "weekday-month"
clamp_kwh = 9
half_hour_clamp_kwh = 0.5
missing_kwh = 4.8
by = "tariff"
share = 0.1
"""
SHARES = {
    "daily_mean/1": 10, "daily_mean/2": 5, "daily_mean/3": 5, "total": 5, "levels/street": 10, "levels/area": 10,
    "counts": 10, "below": 10, "shape": 10, "usable": 5, "weeks": 5, "months": 5, "kinds": 10,
}  # fmt: skip
"""Percent of a day's epsilon of 0.5."""
SENSITIVITIES = {
    "daily_mean/1": 2_000, "daily_mean/2": 8_000, "daily_mean/3": 30_000, "total": 12_000, "levels/street": 12_000,
    "levels/area": 12_000, "counts": 2, "below": 3, "shape": 2 * 9_000, "usable": 1, "weeks": 7 * 10_000,
    "months": 28 * 10_000, "kinds": (2 * 20 + 5 * 8) * 2 * 9_000,
}  # fmt: skip
EDGES = {"0-2.5": (0, 2_500), "2.5-5": (2_500, 5_000), "5-10": (5_000, 10_000), "10-40": (10_000, 40_001)}
CLOCK = [f"{slot // 2:02d}:{slot % 2 * 3}0" for slot in range(48)]


def wh(home, day, slot):
    """What a home uses in a half-hour [Wh], None for a missing reading."""
    lacking = {("A", 5): 48, ("B", 24): 48, ("D", 7): 4, ("F", 8): 2}.get((home, day.day), 0)
    if slot < lacking or (home == "E" and day > LEAVES):
        return None
    level = {"A": 10 + slot, "B": 90 + day.day, "C": 40 * slot, "D": 400, "E": 3 * slot, "F": 2 * slot, "G": 50, "H": 7}
    return level[home] + day.day


def tariff(home, day):
    return {"A": "Std", "B": "Std", "C": "Std" if day < MOVES else "two words", "H": "few"}.get(home, "two words")


def on_roster(day):
    return [home for home in HOMES if home != "E" or day <= LEAVES]


def build(house, layout="single"):
    """Write readings, roster and run file."""
    cells = {(home, day, slot): wh(home, day, slot) for home in HOMES for day in DAYS for slot in range(48)}
    house.london({cell: value for cell, value in cells.items() if value is not None})
    spans = [(home, FIRST, LEAVES if home == "E" else "", tariff(home, FIRST)) for home in HOMES if home != "C"]
    spans += [("C", FIRST, MOVES - timedelta(days=1), "Std"), ("C", MOVES, "", "two words")]
    lines = [f"{home},{first},{last},{name},{STREETS[home].replace('/', ',')}" for home, first, last, name in spans]
    (house.folder / "roster.csv").write_text("\n".join(["household_id,from,to,tariff,area,street", *lines]) + "\n")
    house.write(FIRST, LAST, mode="live", promise=PROMISE, rest=TABLES)
    plain = '[series.daily_mean]\nstatistic = "mean"\nclamp_kwh = 50\n'
    pages = "explore = true\ndeployment = true\n"
    output = f'layout = "{layout}"\naverages_by = ["week", "month", "year"]\n{pages}[population]'
    house.edit((plain, f'[series.daily_mean]\nstatistic = "mean"\n{USE}\n'), ("[population]", output))
    return house


def day_wh(home, day, missing_wh, max_missing=2):
    """What a household's day counts [Wh], before any clamp."""
    values = [wh(home, day, slot) for slot in range(48)]
    present = [value for value in values if value is not None]
    return sum(present) if present and 48 - len(present) <= max_missing else missing_wh


def half_hours(home, day):
    """What the half-hours of a household's day count: each at most 500 Wh, together at most 9 kWh."""
    values = [wh(home, day, slot) for slot in range(48)]
    if values.count(None) > 2:
        return [100] * 48
    clamped = [min(value or 0, 500) for value in values]
    factor = min(Fraction(1), Fraction(9_000, sum(clamped)))
    return [math.floor(value * factor) for value in clamped]


def group_of(series, home, day):
    """The group of a household in a series."""
    level = {"levels/street": STREETS[home], "levels/area": STREETS[home].partition("/")[0]}
    return level.get(series, tariff(home, day) if series in ("below", "shape", "weeks", "kinds") else "all")


def counted(series, home, day):
    """What a household's day adds to the cells of its group, by the cell's name within it."""
    if series == "usable":
        return {"": int(all(wh(home, day, slot) is not None for slot in range(48)))}
    if series == "shape":
        return dict(zip(CLOCK, half_hours(home, day), strict=True))
    if series == "kinds":
        kind, weight = ("weekend", 5) if day.strftime("%a") in ("Sat", "Sun") else ("weekday", 2)
        return {f"{kind} {clock}": weight * value for clock, value in zip(CLOCK, half_hours(home, day), strict=True)}
    missing = {"daily_mean": 3_000, "counts": 3_000, "months": 2_000}.get(series.partition("/")[0], 0)
    energy = day_wh(home, day, missing)
    if series in ("counts", "below"):
        energy = min(energy, 40_000)
        if series == "counts":
            return {name: int(low <= energy < high) for name, (low, high) in EDGES.items()}
        return {f"0-{high / 1000:g}": int(energy < high) for _, high in [*EDGES.values()][:3]}
    low, high = {"daily_mean/1": (0, 2_000), "daily_mean/2": (2_000, 10_000), "daily_mean/3": (10_000, 40_000)}.get(
        series, (0, 10_000 if series in ("weeks", "months") else 12_000)
    )
    return {"": min(max(energy - low, 0), high - low)}


def expected(series):
    """Every row of a series: day -> cell -> (value, households or household-days of it)."""
    spans = {day: [day] for day in DAYS}
    if series == "weeks":
        mondays = [day for day in DAYS if day.strftime("%a") == "Mon" and day + timedelta(days=6) in DAYS]
        spans = {day + timedelta(days=6): [day + timedelta(days=i) for i in range(7)] for day in mondays}
    elif series in ("months", "kinds"):
        spans = {date(2013, 2, 28): [day for day in DAYS if day.month == 2]}
    rows = {}
    for last, days in spans.items():
        values, households, sizes = Counter(), Counter(), Counter()
        for day in days:
            members = [(home, group_of(series, home, day)) for home in on_roster(day)]
            sizes.update((group, day) for _, group in members)
            for home, group in members:
                for name, value in counted(series, home, day).items():
                    cell = name if group == "all" else f"{group} {name}".strip()
                    values[group, cell or "all"] += value
                    households[group, cell or "all"] += 1
        small = {group for (group, _), size in sizes.items() if size < 2}
        cells = [key for key in values if key[0] not in small]
        rows[str(last)] = {cell: (values[group, cell], households[group, cell]) for group, cell in cells}
    return rows
