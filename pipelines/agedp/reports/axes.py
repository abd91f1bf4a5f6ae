"""Axes of a chart: the position of a value between the two ends, and the labelled values; months and numbers."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import TypeVar

Shown = TypeVar("Shown")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_MAX_TICKS = 5
_SHORT_DAYS = 62


@dataclass(frozen=True, slots=True)
class Scale:
    """An axis from `low` to `high`, linear or logarithmic, with its ticks as (value, text)."""

    low: float
    high: float
    ticks: tuple[tuple[float, str], ...]
    log: bool = False

    def position(self, value: float) -> float:
        """Return the position of a value, 0 at the low end and 1 at the high end; values beyond an end are at that end.

        >>> linear_axis([0, 10]).position(2.5), logarithmic_axis([1, 100]).position(10)
        (0.25, 0.5)
        """
        if self.high <= self.low:
            return 0.5
        inside = min(max(value, self.low), self.high)
        if self.log:
            return math.log(inside / self.low) / math.log(self.high / self.low)
        return (inside - self.low) / (self.high - self.low)


def linear_axis(values: Iterable[float], *, zero: bool = False) -> Scale:
    """Return an axis with round ends that contains all finite values, and 0 if `zero` or if that costs little space.

    >>> [text for _, text in linear_axis([9.2, 13.1]).ticks], linear_axis([1, 10]).low
    (['9', '10', '11', '12', '13', '14'], 0.0)
    """
    finite = [value for value in values if math.isfinite(value)] or [0.0, 1.0]
    low, high = min(finite), max(finite)
    if zero or (low > 0 and low < 0.35 * high) or (high < 0 and high > 0.35 * low):
        low, high = min(low, 0.0), max(high, 0.0)
    if high - low <= max(1e-9 * max(abs(low), abs(high)), 1e-300):
        low, high = low - (abs(low) / 10 or 0.5), high + (abs(high) / 10 or 0.5)
    step = _round_step((high - low) / _MAX_TICKS)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    ticks = tuple((number * step, format_number(number * step)) for number in range(first, last + 1))
    return Scale(first * step, last * step, ticks)


def logarithmic_axis(values: Iterable[float], *, decades: int = 6) -> Scale:
    """Return an axis between powers of ten that contains all positive values, at most `decades` below the highest.

    >>> logarithmic_axis([0.03, 180]).ticks[0], logarithmic_axis([1e-9, 1]).low
    ((0.01, '0.01'), 1e-06)
    """
    positive = [value for value in values if math.isfinite(value) and value > 0] or [1.0]
    last = math.ceil(math.log10(max(positive)) - 1e-9)
    first = max(min(math.floor(math.log10(min(positive)) + 1e-9), last - 1), last - decades)
    ticks = tuple((10.0**number, format_number(10.0**number)) for number in range(first, last + 1))
    return Scale(10.0**first, 10.0**last, ticks, log=True)


def date_axis(first: date, last: date) -> Scale:
    r"""Return an axis of days by their ordinal with a few labelled dates, the year below the first date of a year.

    >>> [text for _, text in date_axis(date(2013, 1, 1), date(2013, 12, 31)).ticks]
    ['Jan\n2013', 'Apr', 'Jul', 'Oct']
    >>> [text for _, text in date_axis(date(2013, 1, 1), date(2013, 1, 3)).ticks]
    ['1 Jan\n2013', '2 Jan', '3 Jan']
    """
    low, high = first.toordinal(), last.toordinal()
    if high - low <= _SHORT_DAYS:
        step = max(1, -(-(high - low + 1) // (_MAX_TICKS - 1)))
        dates = [date.fromordinal(number) for number in range(low, high + 1, step)]
        texts = _with_years(dates, [f"{day.day} {_MONTHS[day.month - 1]}" for day in dates])
    else:
        months = next((m for m in (1, 2, 3, 6, 12) if (high - low) / (30.5 * m) <= _MAX_TICKS), 12)
        years = -(-(high - low) // (366 * _MAX_TICKS)) if months == 12 else 1
        starts = (date(year, month, 1) for year in range(first.year, last.year + 1) for month in range(1, 13, months))
        dates = [day for day in starts if low <= day.toordinal() <= high and (day.year - first.year) % years == 0]
        texts = _with_years(dates, [_MONTHS[day.month - 1] for day in dates])
    return Scale(float(low), float(high), tuple((float(d.toordinal()), t) for d, t in zip(dates, texts, strict=True)))


def named_axis(ticks: Mapping[float, str]) -> Scale:
    """Return an axis whose positions have names."""
    return Scale(min(ticks), max(ticks), tuple(ticks.items()))


def evenly_spaced(values: Sequence[Shown], count: int) -> list[Shown]:
    """Return at most `count` of the values, evenly spaced, with the first and the last.

    >>> evenly_spaced("abcde", 3), evenly_spaced("ab", 3)
    (['a', 'c', 'e'], ['a', 'b'])
    """
    last, shown = len(values) - 1, min(count, len(values))
    return [values[round(i * last / max(1, shown - 1))] for i in range(shown)]


def by_month(values: Iterable[Shown], day_of: Callable[[Shown], date]) -> dict[str, list[Shown]]:
    """Return the values by the month of their day, such as "2013-02"."""
    months: dict[str, list[Shown]] = {}
    for value in values:
        months.setdefault(f"{day_of(value):%Y-%m}", []).append(value)
    return months


def _with_years(dates: list[date], texts: list[str]) -> list[str]:
    """Return the labels of days, with the year below where it changes."""
    years = [0, *(day.year for day in dates)]
    return [
        text if day.year == before else f"{text}\n{day.year}"
        for day, text, before in zip(dates, texts, years, strict=False)
    ]


def _round_step(step: float) -> float:
    """Return the next 1, 2 or 5 times a power of ten that is not smaller."""
    power = 10.0 ** math.floor(math.log10(step))
    return next(power * factor for factor in (1, 2, 5, 10) if power * factor >= step * (1 - 1e-9))


def format_number(value: float) -> str:
    """Return a number for people: three digits, no exponent between a millionth and a trillion.

    >>> [format_number(value) for value in (0.30000000000000004, 2500.0, -0.0, 1e-7, 12345.6, math.inf)]
    ['0.3', '2,500', '0', '1e-07', '12,346', 'infinite']
    """
    if value == 0 or math.isinf(value):
        return "infinite" if value else "0"
    size = math.floor(math.log10(abs(value)) + 1e-12)
    if size < -6 or size > 12:
        return f"{value:.3g}"
    text = f"{value:,.{max(0, 2 - size)}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def format_rounded_up(value: float) -> str:
    """Return a non-negative number in four digits, rounded up; "< 0.001" below a thousandth. Use it for losses.

    >>> format_rounded_up(0.123401), format_rounded_up(0.5), format_rounded_up(2e-9), format_rounded_up(25016.3)
    ('0.1235', '0.5', '< 0.001', '25,020')
    """
    if not 0.001 <= value < math.inf:
        return "< 0.001" if 0 < value < 0.001 else format_number(value)
    digits = 3 - math.floor(math.log10(value))
    text = f"{math.ceil(value * 10.0**digits * (1 - 1e-12)) / 10.0**digits:,.{max(0, digits)}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
