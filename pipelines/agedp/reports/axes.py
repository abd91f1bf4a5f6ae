"""Axes of a chart: the position of a value between the two ends, and the labelled values; months and numbers."""

from __future__ import annotations

import math
import re
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
    ticks = tuple((number * step, _tick_text(number * step)) for number in range(first, last + 1))
    return Scale(first * step, last * step, ticks)


def logarithmic_axis(values: Iterable[float], *, decades: int = 6) -> Scale:
    """Return an axis between powers of ten that contains all positive values, at most `decades` below the highest.

    >>> logarithmic_axis([0.03, 180]).ticks[0], logarithmic_axis([1e-9, 1]).low
    ((0.01, '0.01'), 1e-06)
    """
    positive = [value for value in values if math.isfinite(value) and value > 0] or [1.0]
    last = math.ceil(math.log10(max(positive)) - 1e-9)
    first = max(min(math.floor(math.log10(min(positive)) + 1e-9), last - 1), last - decades)
    ticks = tuple((10.0**number, _tick_text(10.0**number)) for number in range(first, last + 1))
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


def _tick_text(value: float) -> str:
    """Return the label of a tick, in all digits that round steps need.

    >>> _tick_text(0.30000000000000004), _tick_text(12_500.0), _tick_text(1e-9)
    ('0.3', '12,500', '10⁻⁹')
    """
    if value == 0:
        return "0"
    size = _size(value)
    if not _SMALLEST <= size <= _LARGEST:
        return _with_power(value)
    return _without_zeros(f"{value:,.{max(0, 2 - size)}f}")


def format_number(value: float) -> str:
    """Return a number for people in three significant digits, rounded to the nearest.

    >>> [format_number(value) for value in (0.30000000000000004, 2500.0, -0.0, 12345.6, 999.7, math.inf)]
    ['0.3', '2,500', '0', '12,300', '1,000', 'infinite']
    >>> [format_number(value) for value in (0.00012345, 3.2e-7, -3.2e-7, 1.9e79)]
    ['0.000123', 'below 0.000001', 'above −0.000001', '1.9 × 10⁷⁹']
    """
    if value == 0 or math.isinf(value):
        return "infinite" if value else "0"
    size = _size(value)
    if size < _SMALLEST:
        return "below 0.000001" if value > 0 else "above −0.000001"
    if size > _LARGEST:
        return _with_power(value)
    digits = 2 - size
    return _without_zeros(f"{round(value, digits):,.{max(0, digits)}f}")


def format_rounded_up(value: float) -> str:
    """Return a non-negative number in three digits, rounded up; "< 0.001" below a thousandth. Use it for losses.

    >>> format_rounded_up(0.123401), format_rounded_up(0.5), format_rounded_up(2e-9), format_rounded_up(25016.3)
    ('0.124', '0.5', '< 0.001', '25,100')
    """
    if not 0.001 <= value < math.inf:
        return "< 0.001" if 0 < value < 0.001 else format_number(value)
    digits = 2 - math.floor(math.log10(value))
    return _without_zeros(f"{math.ceil(value * 10.0**digits * (1 - 1e-12)) / 10.0**digits:,.{max(0, digits)}f}")


def format_percent(share: float) -> str:
    """Return a share in percent, in three significant digits.

    >>> format_percent(0.94512), format_percent(1.0), format_percent(0.99996)
    ('94.5 %', '100 %', 'above 99.9 %')
    """
    if 0.9995 <= share < 1:
        return "above 99.9 %"
    return f"{format_number(100 * share)} %"


_SMALLEST, _LARGEST = -6, 12
"""Powers of ten between which a number is written without one."""
_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def _size(value: float) -> int:
    return math.floor(math.log10(abs(value)) + 1e-12)


def _with_power(value: float) -> str:
    """Return a number with a power of ten, for a label that must differ from its neighbours."""
    digits, _, power = f"{value:.3g}".partition("e")
    if not power:
        digits, _, power = f"{value:.2e}".partition("e")
    return _times_power(_without_zeros(digits), int(power))


def _without_zeros(text: str) -> str:
    return text.rstrip("0").rstrip(".") if "." in text else text


_POWER = re.compile(r"(?<![\w.])([0-9]+(?:\.[0-9]+)?)e(-?[0-9]+)(?!\w)")


def with_powers(text: str) -> str:
    """Return a text whose numbers with an exponent are written with a power of ten.

    >>> with_powers("total (delta 1e-6)"), with_powers("delta 2.5e-7")
    ('total (delta 10⁻⁶)', 'delta 2.5 × 10⁻⁷')
    """
    return _POWER.sub(lambda match: _times_power(match[1], int(match[2])), text)


def _times_power(digits: str, power: int) -> str:
    of_ten = f"10{str(power).translate(_SUPERSCRIPTS)}"
    return of_ten if digits == "1" else f"{digits} × {of_ten}"
