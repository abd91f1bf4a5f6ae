"""Released rows of a mean -> its change against its noise by time span, and the one sentence about both.

    daily_mean: noise 2.5 kWh per household; day-to-day change 0.7 ± 0.3 kWh (± standard error, from 364 pairs).
    Usable: months. Not certain: weeks. Too noisy: single days.

`plan`, `run`, both reports and the demonstration print it, so they never differ. Two neighbouring days differ by their
true change and by the noise of both. The noise is known, so the part of the differences that it does not explain
estimates the true change (`agedp_data.smoothing.signal_estimate`). Days can be told apart if that change exceeds the
noise of a day. Means of 7 or 28 days in a row have less noise, and a change of their own: what days hide, weeks or
months may show. Public: released rows are the only input.

Decisions:

* A span is usable if its neighbours can be told apart. The verdict allows for two standard errors: between them it is
  not certain. An estimate of 0 is no measured 0, so the sentence gives its upper end, two standard errors.
* Fewer pairs than `MIN_PAIRS` say little about ordinary days: seven contain the change from each weekday to the next.
  Without them no change is estimated. Of such a span only the noise is known, and it is "not yet judged".
* The change is compared with the noise of the newest released day: after an amendment the question is what the days
  to come show. The estimate itself knows the noise of each day.
* A span counts if it has a released mean on each of its days; a skipped day leaves a gap. Days before and after another
  clamp are no neighbours, because the same use counts differently. The sensitivity of a row shows the clamp; not under
  a smaller delta-neighbourhood, where one pair then contains the step.
* Of groups the smallest of the newest day speaks for a series, since its noise is the largest; the reports show all.
* Of a layered mean (`NAME/1`, `NAME/2`) the sentence is about layer 1, which the daily averages contain. Counts of a
  distribution have no sentence: each has a noise of its own in its table.
* Layer 1 of `clamp_kwh = [10, 40]` is no mean of the households: it has little noise and leaves out what a day exceeds
  10 kWh by. The mean up to 40 kWh is the sum of the layers. Their noise is independent, so its variances add
  (`sum_noises`).
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from agedp_data import mechanisms
from agedp_data.arrays import Floats
from agedp_data.ledger import ContractRecord, ReleaseRecord
from agedp_data.ledger.records import AnyRelease, ReleaseHeader
from agedp_data.series.layered_mean import is_upper
from agedp_data.series.mean import is_daily_mean
from agedp_data.series.series_terms import layer_number, mean_name
from agedp_data.smoothing.signal_estimate import SPANS, SignalEstimate, Verdict, estimate_change

if TYPE_CHECKING:
    from agedp_data.config import RunFile
    from agedp_data.ledger import Ledger


_WH_PER_KWH: Final = 1000.0
_standard_deviation = lru_cache(maxsize=1024)(mechanisms.standard_deviation)


class NoisyMean(NamedTuple):
    """Mean of a group and the standard deviation of its noise [kWh per household], and its number of households."""

    group: str
    mean_kwh: float
    noise_sd_kwh: float
    households: int


def noisy_means(row: ReleaseRecord, groups: Collection[str] | None = None) -> Iterator[NoisyMean]:
    """Yield the cells of a released row of a mean, or of a layer of one; all, or those of some groups.

    The variance of the noise is that of the discrete Laplace law, 2 q / (1 - q)^2 with q = exp(-1 / scale), in units
    of the sum.
    """
    deviation = _standard_deviation(row.scale)
    for place in range(len(row.cells)) if groups is None else places_of(row.cells, frozenset(groups)):
        households = row.households[place]
        wh_per_kwh_mean = _WH_PER_KWH * households
        yield NoisyMean(row.cells[place], row.values[place] / wh_per_kwh_mean, deviation / wh_per_kwh_mean, households)


@lru_cache(maxsize=8)
def places_of(cells: tuple[str, ...], groups: frozenset[str]) -> tuple[int, ...]:
    """Return the places of groups among the cells of a row, in the order of the row; most rows have the same cells."""
    return tuple(place for place, cell in enumerate(cells) if cell in groups)


def rows_of_means(rows: Sequence[AnyRelease], contracts: Sequence[ContractRecord]) -> list[ReleaseRecord]:
    """Return the rows that were means of a day, or layers of one, under the contract by which they were charged."""
    means = _mean_rows(rows, contracts)
    complete = [row for row in means if not isinstance(row, ReleaseHeader)]
    if len(complete) < len(means):
        raise TypeError("means are asked for, but only the headers of their rows were read")
    return complete


def _mean_rows(rows: Sequence[AnyRelease], contracts: Sequence[ContractRecord]) -> list[AnyRelease]:
    series = {contract.hash: contract.terms.series for contract in contracts}
    return [row for row in rows if is_daily_mean(series[row.contract].get(row.series))]


def read_mean_rows(ledger: Ledger, population: str) -> list[ReleaseRecord]:
    """Return the rows of a population that `rows_of_means` returns; the values of no others are read."""
    return [*ledger.rows_of(_mean_rows(ledger.history(population), ledger.contracts(population)))]


MIN_PAIRS: Final[Mapping[int, int]] = {1: 7, 7: 3, 28: 3, 365: 1}
"""Pairs of neighbouring spans that an estimate needs, by the length of the span [days]."""

ASSUMED_CHANGE_KWH: Final = 1.0
"""Day-to-day change that a plan assumes until it can be estimated; a household uses about 10 kWh a day."""

_TYPICAL_DAY_KWH: Final = 10.0
_VERSION_DAYS: Final = 100_000
"""Days put between two versions of a series, so that no span and no pair contains days of both."""

_NAMES: Final = {1: "single days", 7: "weeks", 28: "months", 365: "years"}
_LABELS: Final[Mapping[Verdict | None, str]] = {
    "visible": "Usable",
    "uncertain": "Not certain",
    "hidden": "Too noisy",
    None: "Not yet judged",
}
_GROUP_OF_ALL: Final = "all"


@dataclass(frozen=True, slots=True)
class SpanSignal:
    """Means over spans of `days` days: their noise [kWh per household], and the estimate of their change.

    `noise_kwh` is that of the newest day, divided by the root of `days`. `estimate` is None with too few `pairs`.
    """

    days: int
    pairs: int
    noise_kwh: float
    estimate: SignalEstimate | None

    @property
    def verdict(self) -> Verdict | None:
        """Return whether neighbouring spans can be told apart, None without an estimate."""
        return None if self.estimate is None else self.estimate.verdict(self.noise_kwh)

    @property
    def facts(self) -> dict[str, Any]:
        """Return the span as JSON."""
        estimate = self.estimate
        change, error = (None, None) if estimate is None else (estimate.change, estimate.standard_error)
        noise = {"days": self.days, "pairs": self.pairs, "noise_sd_kwh": self.noise_kwh}
        return {**noise, "change_kwh": change, "change_error_kwh": error, "comparison": self.verdict or "unknown"}


@dataclass(frozen=True, slots=True)
class SeriesSignal:
    """One group of a series: `households` on its newest day, and its signal over each span, days first."""

    series: str
    group: str
    households: int
    spans: tuple[SpanSignal, ...]
    groups: int = 1

    @property
    def daily(self) -> SpanSignal:
        """Return the signal of single days."""
        return self.spans[0]

    @property
    def facts(self) -> dict[str, Any]:
        """Return the signal as JSON, with its sentence."""
        names = {"series": self.series, "group": self.group, "households": self.households}
        return {**names, "spans": [span.facts for span in self.spans], "text": signal_text(self)}


def signals_by_group(
    rows: Iterable[ReleaseRecord], series: str, *, most: int | None = None
) -> tuple[SeriesSignal, ...]:
    """Return the signal of each group of a mean that its newest row has, the largest group first; () without a row.

    Args:
        rows: rows of means (`signal_against_noise.rows_of_means`), of all series or of this one.
        series: the mean, or any of its layers: layer 1 and the mean before it had layers are one series.
        most: number of groups, the largest ones, beside the smallest, which speaks for the series; None for all.
    """
    released = [
        row
        for row in rows
        if mean_name(row.series) == mean_name(series) and not is_upper(row.series) and row.state == "released"
    ]
    released.sort(key=lambda row: row.day)
    if not released:
        return ()
    newest = dict(zip(released[-1].cells, released[-1].households, strict=True))
    groups = sorted(newest, key=lambda cell: (-newest[cell], cell))
    smallest = min(groups, key=lambda cell: (newest[cell], cell))
    groups = [*dict.fromkeys([*groups[:most], smallest])]
    daily: dict[str, list[tuple[int, float, float]]] = {group: [] for group in groups}
    for number, row in zip(_day_numbers(released), released, strict=True):
        for cell in noisy_means(row, daily.keys()):
            daily[cell.group].append((number, cell.mean_kwh, cell.noise_sd_kwh))
    signals = []
    for group in groups:
        days, means, deviations = zip(*daily[group], strict=True)
        spans = span_signals(np.array(means), np.square(deviations), np.array(days), noise_kwh=deviations[-1])
        signals.append(SeriesSignal(released[-1].series, group, newest[group], spans, len(newest)))
    return tuple(signals)


def mean_names(series: Iterable[str]) -> list[str]:
    """Return the names of means in the run file, each once however many layers it has.

    >>> mean_names(["use/1", "use/2", "night"])
    ['use', 'night']
    """
    return list(dict.fromkeys(map(mean_name, series)))


def _day_numbers(released: Sequence[ReleaseRecord]) -> list[int]:
    """Return the number of each row's day; days of different clamps lie far apart."""
    numbers, version = [], 0
    for i, row in enumerate(released):
        version += i > 0 and row.sensitivity != released[i - 1].sensitivity
        numbers.append(date.fromisoformat(row.day).toordinal() + version * _VERSION_DAYS)
    return numbers


def span_signals(
    published: Floats, noise_variance: Floats, days: NDArray[np.int64], *, noise_kwh: float
) -> tuple[SpanSignal, ...]:
    """Return the signal over each span; of years only with two years in a row.

    Args:
        published: means, shape (T,), T >= 1 [kWh per household].
        noise_variance: variance of their noise, shape (T,) [kWh^2].
        days: numbers of their days, increasing, shape (T,).
        noise_kwh: noise of a day that the change is compared with [kWh per household].
    """
    signals = []
    for span_days in SPANS:
        estimate = estimate_change(published, noise_variance, days, span_days=span_days)
        pairs = 0 if estimate is None else estimate.pairs
        has_enough = pairs >= MIN_PAIRS[span_days]
        noise = noise_kwh / math.sqrt(span_days)
        signals.append(SpanSignal(span_days, pairs, noise, estimate if has_enough else None))
    return tuple(signal for signal in signals if signal.days != SPANS[-1] or signal.estimate is not None)


def smallest_group_signal(rows: Iterable[ReleaseRecord], series: str) -> SeriesSignal | None:
    """Return the signal of the group that speaks for a series, None without a released row."""
    signals = signals_by_group(rows, series, most=0)
    return smallest_of(signals) if signals else None


def released_signals(ledger: Ledger | None, run: RunFile) -> tuple[SeriesSignal, ...]:
    """Return the signal of the smallest group of each mean in the run file that has a released row."""
    rows = [] if ledger is None else read_mean_rows(ledger, run.population.name)
    means = mean_names(name for name, series in run.series.items() if is_daily_mean(series))
    return tuple(filter(None, (smallest_group_signal(rows, name) for name in means)))


def smallest_of(signals: Sequence[SeriesSignal]) -> SeriesSignal:
    """Return the signal of the smallest of the groups."""
    return min(signals, key=lambda signal: (signal.households, signal.group))


def signal_text(signal: SeriesSignal) -> str:
    """Return the sentences about a group of a series: noise, change with its error, and which spans are usable.

    >>> days = SpanSignal(1, 364, 2.5, SignalEstimate(1, 364, 3.6, 2.5, 0.7, 0.3))
    >>> months = SpanSignal(28, 12, 0.47, SignalEstimate(28, 12, 1.4, 0.47, 1.3, 0.1))
    >>> text = signal_text(SeriesSignal("daily_mean", "all", 60, (days, months)))
    >>> text.partition("; ")[0], text.partition("). ")[2]
    ('daily_mean: noise 2.5 kWh per household', 'Usable: months. Too noisy: single days.')
    """
    daily = signal.daily
    start = f"{_label(signal)}: noise {three_digits(daily.noise_kwh)} kWh per household"
    if daily.estimate is None:
        pairs = f"{daily.pairs} of {MIN_PAIRS[1]} pairs of neighbouring days"
        return f"{start}. Not enough days to estimate the true change ({pairs}). {span_advice(signal.spans)}"
    return f"{start}; day-to-day change {change_text(daily.estimate)}. {span_advice(signal.spans)}"


def _label(signal: SeriesSignal) -> str:
    name, layer = mean_name(signal.series), layer_number(signal.series)
    layer_text = f", layer {layer}" if layer else ""
    if signal.groups == 1 and signal.group == _GROUP_OF_ALL:
        return f"{name}{layer_text}"
    return f"{name}{layer_text}, group {signal.group} ({signal.households:,} households)"


def change_text(estimate: SignalEstimate) -> str:
    """Return an estimated change with its error and the number of pairs; of an estimate of 0 its upper end.

    >>> change_text(SignalEstimate(1, 13, 2.0, 3.0, 0.0, 2.79))
    'below 5.6 kWh (not measurable, from 13 pairs)'
    """
    pairs = "1 pair" if estimate.pairs == 1 else f"{estimate.pairs:,} pairs"
    if estimate.change == 0 and estimate.standard_error > 0:
        return f"below {Decimal(f'{2 * estimate.standard_error:.2g}'):f} kWh (not measurable, from {pairs})"
    change, error = three_digits(estimate.change), three_digits(estimate.standard_error)
    return f"{change} ± {error} kWh (± standard error, from {pairs})"


def span_advice(spans: Sequence[SpanSignal]) -> str:
    """Return which spans are usable, from days up to the first that is; a sentence for each verdict.

    >>> span_advice([SpanSignal(1, 364, 0.5, SignalEstimate(1, 364, 1.0, 0.5, 0.7, 0.05))])
    'Usable: single days.'
    >>> span_advice([SpanSignal(1, 1, 0.5, None), SpanSignal(7, 0, 0.19, None)])
    'Not yet judged: single days and weeks (noise 0.5 and 0.19 kWh).'
    """
    by_verdict: dict[Verdict | None, list[SpanSignal]] = {}
    for span in spans:
        by_verdict.setdefault(span.verdict, []).append(span)
        if span.verdict == "visible":
            break
    return " ".join(
        f"{label}: {_spans_text(by_verdict[verdict])}." for verdict, label in _LABELS.items() if verdict in by_verdict
    )


def _spans_text(spans: Sequence[SpanSignal]) -> str:
    names = _joined([_NAMES[span.days] for span in spans])
    if spans[0].verdict is not None:
        return names
    return f"{names} (noise {_joined([three_digits(span.noise_kwh) for span in spans])} kWh)"


def _joined(texts: Sequence[str]) -> str:
    *before, last = texts
    return f"{', '.join(before)} and {last}" if before else last


def three_digits(value: float) -> str:
    """Return a number in three significant digits, without an exponent.

    >>> three_digits(2.4961), three_digits(0.00012345), three_digits(12345.0)
    ('2.5', '0.000123', '12300')
    """
    return f"{Decimal(f'{value:.3g}'):f}"


def sum_noises(rows: Iterable[ReleaseRecord]) -> dict[str, dict[str, float]]:
    """Return the noise of the sum of a mean's layers, by mean and by day on which it has several [kWh per household].

    The noise is that of the smallest group.

    Args:
        rows: released or planned rows of any series; skipped ones are left out.
    """
    deviations: dict[str, dict[str, list[float]]] = {}
    for row in rows:
        if layer_number(row.series) and row.state == "released":
            deviation = mechanisms.standard_deviation(row.scale) / (_WH_PER_KWH * min(row.households))
            deviations.setdefault(mean_name(row.series), {}).setdefault(row.day, []).append(deviation)
    by_mean = {
        name: {day: math.hypot(*layers) for day, layers in days.items() if len(layers) > 1}
        for name, days in deviations.items()
    }
    return {name: days for name, days in by_mean.items() if days}


def newest_sum_noise(rows: Iterable[ReleaseRecord], name: str) -> tuple[str, float] | None:
    """Return the newest day on which a mean has several layers, and the noise of their sum; None without such a day.

    Args:
        rows: rows of all series, or of the layers of this mean.
        name: the name of the mean in the run file.
    """
    days = sum_noises(rows).get(name, {})
    return max(days.items()) if days else None
