"""Layers of a chart: lines, bars, points, levels, marks and values at the pointer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from agedp.reports.axes import format_number


@dataclass(frozen=True, slots=True)
class Line:
    """A line of values by x, NaN where a value is missing, with an optional `band` (low, high) and end `letter`.

    Lines of few values have `dots`, unless the line is drawn in `steps`.
    """

    name: str
    x: Sequence[float]
    values: Sequence[float]
    band: tuple[Sequence[float], Sequence[float]] | None = None
    letter: str = ""
    style: int = 0
    steps: bool = False
    dots: bool = True


@dataclass(frozen=True, slots=True)
class Bars:
    """Bars from 0 by x, each as wide as the smallest distance between two of them."""

    name: str
    x: Sequence[float]
    values: Sequence[float]
    style: int = 0


@dataclass(frozen=True, slots=True)
class Points:
    """Points by x, NaN where a value is missing, each with a whisker from `low` to `high`."""

    name: str
    x: Sequence[float]
    values: Sequence[float]
    whiskers: tuple[Sequence[float], Sequence[float]]
    style: int = 0


@dataclass(frozen=True, slots=True)
class Level:
    """A horizontal line, such as a cap."""

    name: str
    value: float


@dataclass(frozen=True, slots=True)
class Marks:
    """Marks along the bottom, such as skipped days."""

    name: str
    x: Sequence[float]


MOST_AREAS = 1000
"""Areas at the pointer of one chart."""


@dataclass(frozen=True, slots=True)
class Hover:
    """Values at the pointer, of all other layers: how a chart names a position and a value, and its number of areas.

    Of losses, `number` rounds up.
    """

    place: Callable[[float], str]
    unit: str
    number: Callable[[float], str] = format_number
    most: int = MOST_AREAS
    name: str = ""


Layer = Line | Points | Bars | Level | Marks | Hover
