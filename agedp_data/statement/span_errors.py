"""Noise of the rows of a series -> SPAN ERRORS: how exact a day, week, month, year of it is, and what that is fit for.

The one rule by which a first release is judged, and by which a statement and its report say what a folder is fit for.
Example: a mean of 40 households at epsilon 0.5 a day and a clamp of 50 kWh has a 90 % interval of ±5.76 kWh on one day,
and of ±1.06 kWh in the mean of a month: by the yardstick's 11.0 kWh it is FIT for months, and of no use for a day.

* A span of a series is FIT if the half-width of its 90 % interval is at most 10 % of the yardstick's mean, and ROUGH up
  to 25 %.

Decisions:

* The interval covers the noise only, which is exact for rows of one scale (`consistency.sum_interval`); what the clamp
  cuts is named beside it. Of several groups the one with the most noise counts.
* What is of no use as it is may be of use as `agedp smooth` estimates it, or over the whole period: a verdict counts
  both; statement and report do where single days, or all spans, are of no use. Their tables of errors show neither.
* The noise of a statement is that of the newest row of a series. Its 95 % interval is all that a statement tells: of
  a Laplace law 5 of 100 draws exceed log(20) times its scale.
* The layers of a mean are judged by their sum. A profile is judged by the yardstick's half-hour, a count by the mean
  number of households in a bin.
* Widths and percentages are rounded up, so that no text says 10 % of what is rough.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import Final

from agedp_data import yardstick
from agedp_data.datasets.validation import INTERVAL_MINUTES
from agedp_data.epsilon import rounded_up
from agedp_data.series.consistency import sum_interval
from agedp_data.series.mean import is_daily_mean
from agedp_data.series.series import AnySeries
from agedp_data.series.series_terms import mean_name
from agedp_data.statement.document import StatedAccuracy, Statement
from agedp_data.yardstick import NORMAL_90, SPANS, Cut, Grade

COVERAGE: Final = Fraction(9, 10)
WHOLE: Final = "whole period"
ROW_DAYS: Final[Mapping[str, int]] = {**SPANS, "weekday-month": SPANS["month"]}
_SCALES_OF_95: Final = math.log(20)
_SCALE_UNITS: Final = 10**6
"""An interval is computed in millionths of the largest scale."""


@dataclass(frozen=True, slots=True)
class SpanError:
    """Half-width of the 90 % interval of the mean of a span of a series, and the yardstick's mean of it.

    `is_smoothed` tells that it is the interval of smoothed estimates. `cut_kwh` is what the clamp takes off the
    yardstick's mean; no interval covers it.
    """

    series: str
    span: str
    days: int
    half_width: float
    mean: float
    unit: str
    is_smoothed: bool = False
    cut_kwh: float = 0.0

    @property
    def ratio(self) -> float:
        """Return the half-width as a part of the yardstick's mean."""
        return self.half_width / self.mean

    @property
    def grade(self) -> Grade:
        """Return whether the span is fit, rough, or neither."""
        return yardstick.grade(self.ratio)

    @property
    def width(self) -> str:
        """Return the half-width with its unit, rounded up to three digits."""
        return f"{rounded_up(self.half_width)} {self.unit}"

    @property
    def percent(self) -> str:
        """Return the half-width as a part of the mean, rounded up to two digits."""
        return f"{rounded_up(100 * self.ratio, 2)} %"

    @property
    def text(self) -> str:
        """Return the error in words.

        >>> SpanError("daily_mean", "month", 30, 1.056, 11.012, "kWh").text
        '±1.06 kWh (9.6 %) for a month'
        """
        article = "the" if self.span == WHOLE else "a"
        smoothed = ", smoothed" if self.is_smoothed else ""
        return f"±{self.width} ({self.percent}{smoothed}) for {article} {self.span}"

    @property
    def purpose(self) -> str:
        """Return what the error permits, such as "fit for months"."""
        return f"{self.grade} for {f'the {self.span}' if self.span == WHOLE else f'{self.span}s'}"


@dataclass(frozen=True, slots=True)
class SeriesNoise:
    """Noise of the rows of a series, or of a mean with all its layers.

    Attributes:
        label: the series, for people.
        scales: noise scale of a row, of each layer [unit, per household].
        spans: number of rows of each span that the period contains, the shortest first.
        row_days: days of a row [days].
        mean: the yardstick's mean [unit].
        unit: "kWh" or "households".
        smoothed_days: length of the daily series whose days `agedp smooth` estimates [days], 0 of a live one; None
            where the yardstick has no error of such estimates.
        clamp_kwh: the clamp of a day [kWh]; None of counts and profiles.
    """

    label: str
    scales: tuple[float, ...]
    spans: Mapping[str, int]
    row_days: int
    mean: float
    unit: str
    smoothed_days: int | None = None
    clamp_kwh: float | None = None

    @property
    def cut(self) -> Cut:
        """Return what the clamp cuts of the yardstick's days and energy."""
        return Cut(0.0, 0.0) if self.clamp_kwh is None else yardstick.cut_by(self.clamp_kwh)

    @property
    def worst_month_kwh(self) -> float:
        """Return what the clamp cuts of the yardstick's mean day in the month that loses most [kWh]."""
        return 0.0 if self.clamp_kwh is None else yardstick.worst_month_kwh(self.clamp_kwh)

    def errors(self) -> Iterator[SpanError]:
        """Yield the error of each span of the rows as they are, the shortest first, without the whole period."""
        return (self._error(span) for span in self.spans if span != WHOLE)

    def all_errors(self) -> Iterator[SpanError]:
        """Yield those errors, that of the whole period, and of single days the one after smoothing if it is less."""
        for span in self.spans:
            error, smoothed = self._error(span), self._smoothed() if span == "day" else None
            if smoothed is not None and smoothed < error.half_width:
                error = replace(error, half_width=smoothed, is_smoothed=True)
            yield error

    def _error(self, span: str) -> SpanError:
        largest, count = max(self.scales), self.spans[span]
        ratios = tuple(round(scale / largest, 9) for scale in self.scales if largest)
        half_width = largest * (_unit_half_width(ratios, count) if ratios else 0)
        days, cut_kwh = count * self.row_days, self.cut.energy * self.mean
        return SpanError(self.label, span, days, half_width, self.mean, self.unit, cut_kwh=cut_kwh)

    def _smoothed(self) -> float | None:
        """Return the half-width of the 90 % interval of a smoothed day by the yardstick, None where none is known."""
        if self.smoothed_days is None:
            return None
        noise = math.sqrt(sum(2 * scale**2 for scale in self.scales))
        error = yardstick.smoothed_error(noise, days=self.smoothed_days or None, layered=len(self.scales) > 1)
        return None if error is None else NORMAL_90 * error


@lru_cache(maxsize=4096)
def _unit_half_width(scales: tuple[float, ...], count: int) -> float:
    """Return the half-width of the 90 % interval of the mean of so many rows, each a sum of noises with these scales.

    Noise whose scale is many units is continuous for all purposes, so that its interval is proportional to its scale.
    """
    return sum_interval([scale * _SCALE_UNITS for scale in scales] * count, COVERAGE) / _SCALE_UNITS / count


def shortest(errors: Iterable[SpanError], *grades: Grade) -> SpanError | None:
    """Return the error of the shortest span with one of these grades; of equally short ones the smallest."""
    return min((of for of in errors if of.grade in grades), key=lambda of: (of.days, of.ratio), default=None)


def purpose(errors: Sequence[SpanError]) -> str:
    """Return what series are fit for, such as "rough for months, fit for years"; "" if no span of them is of use."""
    of_use = filter(None, [shortest(errors, "fit", "rough"), shortest(errors, "fit")])
    return ", ".join(error.purpose for error in dict.fromkeys(of_use))


def smoothed_days(noises: Iterable[SeriesNoise]) -> str:
    """Return what single days of no use are fit for after smoothing, "" for nothing."""
    best = shortest((error for noise in noises for error in noise.all_errors() if error.is_smoothed), "fit", "rough")
    return f"{best.grade} for days smoothed by `agedp smooth`" if best else ""


def purpose_beyond_rows(noises: Iterable[SeriesNoise]) -> str:
    """Return what series are fit for after smoothing or over the whole period, with its error; "" for nothing."""
    errors = [error for noise in noises for error in noise.all_errors()]
    best = shortest(errors, "fit", "rough")
    return f"{purpose(errors)}: {best.text.partition(' for ')[0]}" if best else ""


def span_counts(row_days: int, rows: int) -> dict[str, int]:
    """Return the number of rows of each span that so many rows contain, the shortest first; twelve months are a year.

    >>> span_counts(1, 40), span_counts(30, 12)
    ({'day': 1, 'week': 7, 'month': 30}, {'month': 1, 'year': 12})
    """
    return {span: length // row_days for span, length in SPANS.items() if row_days <= length < row_days * (rows + 1)}


def can_smooth(layers: Sequence[AnySeries]) -> bool:
    """Return whether the yardstick knows the error of the smoothed days of a mean: without layers, or with its own."""
    means = [series for series in layers if is_daily_mean(series)]
    clamps = [(series.above_wh / 1000, series.clamp_wh / 1000) for series in means]
    return len(means) == len(layers) and (len(means) == 1 or clamps == [of[:2] for of in yardstick.layers()])


def usual_kwh(series: AnySeries, interval_minutes: int) -> float:
    """Return the yardstick's mean of a day, or of a reading of a series that reads half-hours [kWh]."""
    if not series.reads_half_hours:
        return yardstick.mean_kwh()
    return yardstick.mean_kwh(half_hour=True) * max(1, interval_minutes // INTERVAL_MINUTES)


def stated_noises(statement: Statement) -> list[SeriesNoise]:
    """Return the noise of the newest row of each series, or of all layers of a mean, in the group with the most."""
    by_mean: dict[str, list[StatedAccuracy]] = {}
    for entry in (statement.days.released and statement.accuracy) or []:
        by_mean.setdefault(mean_name(entry.series), []).append(entry)
    return [_stated_noise(label, entries, statement) for label, entries in by_mean.items()]


def _stated_noise(label: str, entries: Sequence[StatedAccuracy], statement: Statement) -> SeriesNoise:
    series_by_name = statement.contract.terms.series
    layers = [series_by_name[entry.series] for entry in entries]
    first, unit = layers[0], entries[0].unit
    clamp_kwh, row_days = None, ROW_DAYS[getattr(first, "every", "day")]
    if unit == "kWh":
        mean = usual_kwh(first, statement.contract.input.interval_minutes)
        if not first.reads_half_hours:
            clamp_kwh = max(getattr(series, "clamp_wh", 0) for series in layers) / 1000
    else:
        mean = entries[0].households / max(1, len(statement.contract.series[entries[0].series].bins_kwh or ()) - 1)
    scales = tuple(float(entry.within) / _SCALES_OF_95 for entry in entries)
    rows, schedule = max(1, statement.days.released // row_days), statement.contract.terms.schedule
    spans = span_counts(row_days, rows) | ({} if schedule.last_day is None else {WHOLE: rows})
    smoothed_days = None
    if can_smooth(layers) and rows >= yardstick.SHORTEST_SMOOTHED:
        smoothed_days = 0 if schedule.mode == "live" else rows
    return SeriesNoise(label, scales, spans, row_days, mean, unit, smoothed_days, clamp_kwh)
