"""Days by the states of their half-hours, counted anew from the input files by csv, Decimal and plain loops."""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Iterable
from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path

HALF_HOUR = timedelta(minutes=30)


def readings(folder: Path) -> dict[tuple[str, date], dict[int, int]]:
    """Return Wh by household, day and half-hour of London files: what all rows agree about."""
    told: dict[tuple[str, datetime], set[Decimal]] = defaultdict(set)
    for path in sorted(folder.glob("*.csv")):
        with path.open(newline="") as stream:
            for row in csv.reader(stream):
                if row[0] != "LCLid":
                    told[row[0], datetime.fromisoformat(row[1]) - HALF_HOUR].add(Decimal(row[2]) * 1000)
    found: dict[tuple[str, date], dict[int, int]] = defaultdict(dict)
    for (home, start), said in told.items():
        if len(said) == 1:
            [energy] = said
            found[home, start.date()][start.hour * 2 + start.minute // 30] = int(energy)
    return found


def middle(edges: list[int], energy: int) -> int:
    """Return the upper middle of the whole numbers in the range that an energy lies in."""
    below = max([0, *(edge for edge in edges if edge <= energy)])
    above = [edge for edge in edges if edge > energy]
    width = above[0] - below if above else below - max([0, *(edge for edge in edges if edge < below)])
    held = range(below, below + width)
    return held[len(held) // 2]


def day(half_hours: dict[int, int], *, edges: list[int], step: str, clamp: int, missing: int, lacking: int) -> int:
    """Return what a day counts as."""
    if not half_hours or 48 - len(half_hours) > lacking:
        return missing
    if step == "day":
        return min(clamp, middle(edges, sum(half_hours.values())))
    return min(clamp, sum(middle(edges, energy) for energy in half_hours.values()))


def counts(days: Iterable[int], bins: list[int], form: str) -> tuple[int, ...]:
    """Return how many days lie in each bin, the last one with its end, or below each inner edge."""
    found = list(days)
    if form == "cumulative":
        return tuple(sum(one < edge for one in found) for edge in bins[1:-1])
    last = len(bins) - 2
    return tuple(sum(bins[i] <= one < bins[i + 1] + (i == last) for one in found) for i in range(last + 1))
