"""Run file + roster counts + model's public part -> VERDICT: what a first release is fit for, or why it is refused.

Public: it uses no reading. It is made once, before the contract of a population is registered. Example: a mean of 40
households at epsilon 0.5 a day and a clamp of 50 kWh has a 90 % interval of ±5.76 kWh on one day, and of ±1.06 kWh in
the mean of a month: by the yardstick's 11.0 kWh it is FIT for months, and of no use for a single day.

* A span (day, week, month, year, whole period) of a series is FIT if the half-width of its 90 % interval is at most
  10 % of the yardstick's mean, and ROUGH up to 25 %. A promise is USELESS if no span of any series is either.
* A promise CREDITS NOTHING if the notion's own bound, largest over all later instants, is at least 0.95 of the sum of
  the pure losses of the whole series. Classical promises that sum and is not judged.
* A TOTAL is too large if the losses of the whole series add up to more than 20 without a delta. A promise over windows
  is judged by its window. `epsilon_total = "unlimited"` says that there is no total, and accepts it.

Decisions:

* The series are the planned ones, whatever is due now: to the last day, the horizon or `epsilon_total`, but at most ten
  years; a last day that is farther away promises no shorter spans.
* Where the sum of the losses exceeds the limit of the own bound far enough, the limit decides, and nothing is computed.
* The losses of all rows count, by the root mean square of their noise; households and groups are those of the first,
  middle and last day. Of groups the one with the least noise counts. If none of the three has enough households, others
  are tried.
* The interval covers the noise only, which is exact for rows of one scale (`consistency.sum_interval`). Of single days
  of a mean it is that of the smoothed estimates (`agedp smooth`), by the yardstick, where these have less error.
* The layers of a mean are judged by their sum. A profile is judged by the yardstick's half-hour, a count by the mean
  number of households in a bin.
* A rehearsal shows the verdict and is not refused: it has a ledger of its own, and its folder says what it is.
* With `delta` the own bound is the promised (epsilon, delta) bound; the sum is always that of the pure losses.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Any, Final

from agedp.budget import ReleaseTerms, planned_row, row_cells, whole_periods
from agedp.planning.forecast import SimulatedRelease, earliest_date, simulated_release
from agedp.planning.row_noise import group_noises
from agedp.signal_against_noise import three_digits
from agedp.stage_values import DueDay
from agedp_data import clock, mechanisms, yardstick
from agedp_data.config import RunFile
from agedp_data.datasets.validation import INTERVAL_MINUTES
from agedp_data.epsilon import NANO, floor_nano, format_epsilon
from agedp_data.ledger import ContractRecord, ReleaseRecord
from agedp_data.messages import percent_text
from agedp_data.notions.enforcement import own_bound_name
from agedp_data.notions.notion import DAY_BOUND, TOTAL_BOUND, losses_about_days
from agedp_data.notions.publication import share_of, total_charge
from agedp_data.parameters import Acceptance
from agedp_data.roster import RosterCounts
from agedp_data.series.consistency import sum_interval
from agedp_data.series.layered_mean import series_text
from agedp_data.series.mean import is_daily_mean
from agedp_data.series.series import AnySeries
from agedp_data.series.series_terms import days_of, layer_number, layers_of, mean_name
from agedp_data.statement.note_texts import odds_percent
from agedp_data.yardstick import FIT, NORMAL_90, ROUGH, SPANS, Grade

NO_CREDIT: Final = Fraction(95, 100)
"""Part of the sum of the pure losses from which on a notion's own bound credits nothing; public."""
LARGEST_TOTAL: Final = 20
"""Sum of the losses of a series up to which it needs no acceptance [epsilon]; public."""
COVERAGE: Final = Fraction(9, 10)
WHOLE: Final = "whole period"
MOST_DAYS: Final = 3652
"""Days of a plan, from the first one on."""
_MOST_PROBES: Final = 64
_WH_PER_KWH: Final = 1000.0
_NEGLIGIBLE: Final = 0.001
_SCALE_UNITS: Final = 10**6
"""An interval is computed in millionths of the largest scale."""
Rows = list[tuple[date, int]]
"""Days, or the days that name a row, with the loss of the whole day [nano-epsilon]."""
_ROW_DAYS: Final[Mapping[str, int]] = {**SPANS, "weekday-month": 30}


@dataclass(frozen=True, slots=True)
class Credit:
    """The notion's own bound over the whole series and the sum of its pure losses [nano-epsilon].

    `unit` says what has the losses: "days" or "rows". `is_limit` tells that `bound` is what the promise permits, not
    what the series comes to; None is infinite.
    """

    name: str
    bound: int | None
    total: int
    number: int
    unit: str
    is_limit: bool = False

    @property
    def is_none(self) -> bool:
        """Return whether the notion credits nothing."""
        return self.bound is None or self.bound >= NO_CREDIT * self.total

    @property
    def text(self) -> str:
        """Return the two figures in words."""
        unit = self.unit if self.number > 1 else self.unit.removesuffix("s")
        total = f"of the {_digits(self.total)} that the losses of {self.number:,} {unit} add up to"
        if self.bound is None:
            return f"the bound {self.name!r} is infinite, {total}"
        most = "at most " if self.is_limit else ""
        part = self.bound / self.total
        part_text = f"{math.floor(1000 * part) / 1000:g}" if part >= _NEGLIGIBLE else f"less than {_NEGLIGIBLE}"
        return f"the bound {self.name!r} is {most}epsilon {_digits(self.bound)}, {part_text} {total}"


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
    def text(self) -> str:
        """Return the error in words.

        >>> SpanError("daily_mean", "month", 30, 1.056, 11.012, "kWh").text
        '±1.06 kWh (9.6 %) for a month'
        """
        article = "the" if self.span == WHOLE else "a"
        smoothed = ", smoothed" if self.is_smoothed else ""
        size = f"±{three_digits(self.half_width)} {self.unit} ({percent_text(self.ratio)}{smoothed})"
        return f"{size} for {article} {self.span}"

    @property
    def purpose(self) -> str:
        """Return what the error permits, such as "fit for months"."""
        return f"{self.grade} for {f'the {self.span}' if self.span == WHOLE else f'{self.span}s'}"


@lru_cache(maxsize=4096)
def _unit_half_width(scales: tuple[float, ...], count: int) -> float:
    """Return the half-width of the 90 % interval of the mean of so many rows, each a sum of noises with these scales.

    Noise whose scale is many units is continuous for all purposes, so that its interval is proportional to its scale.
    """
    return sum_interval([scale * _SCALE_UNITS for scale in scales] * count, COVERAGE) / _SCALE_UNITS / count


@dataclass(frozen=True, slots=True)
class SeriesNoise:
    """Noise of the planned rows of a series, or of a mean with all its layers.

    Attributes:
        label: the series, for people.
        scales: noise scale of a row in its best group, of each layer [unit, per household]; a root mean square.
        spans: number of rows of each span that the period contains, the shortest first.
        row_days: days of a row [days].
        mean: the yardstick's mean [unit].
        unit: "kWh" or "households".
        smoothed_days: length of the daily series whose days `agedp smooth` estimates [days], 0 of a live one; None
            where the yardstick has no error of such estimates.
        cut_kwh: what the clamp takes off the yardstick's mean [kWh].
    """

    label: str
    scales: tuple[float, ...]
    spans: Mapping[str, int]
    row_days: int
    mean: float
    unit: str
    smoothed_days: int | None = None
    cut_kwh: float = 0.0

    def errors(self) -> Iterator[SpanError]:
        """Yield the error of each span, the shortest first."""
        largest = max(self.scales)
        ratios = tuple(round(scale / largest, 9) for scale in self.scales)
        for span, count in self.spans.items():
            half_width, is_smoothed = largest * _unit_half_width(ratios, count), False
            smoothed = self._smoothed() if span == "day" else None
            if smoothed is not None and smoothed < half_width:
                half_width, is_smoothed = smoothed, True
            days = count * self.row_days
            yield SpanError(self.label, span, days, half_width, self.mean, self.unit, is_smoothed, self.cut_kwh)

    def _smoothed(self) -> float | None:
        """Return the half-width of the 90 % interval of a smoothed day by the yardstick, None where none is known."""
        if self.smoothed_days is None:
            return None
        noise = math.sqrt(sum(2 * scale**2 for scale in self.scales))
        error = yardstick.smoothed_error(noise, days=self.smoothed_days or None, layered=len(self.scales) > 1)
        return None if error is None else NORMAL_90 * error


@dataclass(frozen=True, slots=True)
class Losses:
    """What the planned rows say about one household [nano-epsilon]: about its worst day, about a year and in all.

    `year` is the largest sum of 365 days, `whole` that of all; `days` is the number of days of the plan.
    """

    day: int
    year: int
    whole: int
    days: int


@dataclass(frozen=True, slots=True)
class Cause:
    """One cause for which a first release is refused, the word that accepts it, and the sentences about it."""

    word: Acceptance
    text: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is known of a promise before its first release; `credit` is None for a notion that promises the sum itself.

    `limited` is the epsilon whose size is judged and what it is about, None where nothing is: a promise over windows is
    judged by its window, and one without a total accepts it. `accepted` are the words of [promise] accept, `remedy` is
    the notion's about a lack of credit. A rehearsal is not refused: `is_release` is False.
    """

    notion: str
    credit: Credit | None
    noises: tuple[SeriesNoise, ...]
    losses: Losses
    limited: tuple[int, str] | None
    remedy: str
    accepted: tuple[Acceptance, ...] = ()
    is_release: bool = True

    @property
    def errors(self) -> tuple[SpanError, ...]:
        """Return the error of each span of each series."""
        return tuple(error for noise in self.noises for error in noise.errors())

    def best(self, grade: Grade = "rough") -> SpanError | None:
        """Return the error of the shortest span that is fit, or at least rough; of equal ones the smallest."""
        of_use = [error for error in self.errors if error.grade in ("fit", grade)]
        return min(of_use, key=lambda error: (error.days, error.ratio), default=None)

    @property
    def purpose(self) -> str:
        """Return what the release is fit for, such as "rough for months, fit for years"; "of no use" for nothing."""
        best = dict.fromkeys(filter(None, [self.best(), self.best("fit")]))
        return ", ".join(error.purpose for error in best) or "of no use"

    @property
    def causes(self) -> tuple[Cause, ...]:
        """Return the causes for a refusal, also those that are accepted."""
        causes = []
        if self.credit is not None and self.credit.is_none:
            text = (
                f"its bound credits nothing: {self.credit.text} (limit {float(NO_CREDIT):g}). Take {self.remedy}, or "
                'notion = "classical", which promises the sum by itself.'
            )
            causes.append(Cause("no-credit", text))
        if self.limited is not None and self.limited[0] > LARGEST_TOTAL * NANO:
            epsilon, about = self.limited
            text = (
                f"epsilon {_digits(epsilon)} {about} is more than {LARGEST_TOTAL}: it protects nobody in any practical "
                "sense. Take a smaller epsilon or rows about longer periods."
            )
            causes.append(Cause("total", text))
        if self.errors and self.best() is None:
            smallest = min(self.errors, key=lambda error: error.ratio)
            factor = three_digits(math.ceil(100 * smallest.ratio / ROUGH) / 100)
            text = (
                f"no span is of use: the 90 % interval of {smallest.series} is {smallest.text} at best; "
                f"{percent_text(ROUGH)} of {_mean_text(smallest)} is rough, {percent_text(FIT)} fit. "
                f"An epsilon, or a number of households, {factor} times as large makes it rough."
            )
            causes.append(Cause("useless", text))
        return tuple(causes)

    @property
    def refused(self) -> tuple[Cause, ...]:
        """Return the causes that refuse a first release: those that no word accepts."""
        return tuple(cause for cause in self.causes if self.is_release and cause.word not in self.accepted)

    def refusal(self, advice: str = "") -> str:
        """Return why a first release is refused, `advice`, and which words accept it; "" if it is not refused."""
        if not self.refused:
            return ""
        causes = " Also, ".join(cause.text for cause in self.refused)
        words = [cause.word for cause in self.refused]
        listed, options = ", ".join(f'"{word}"' for word in words), " ".join(f"--accept {word}" for word in words)
        return (
            f'[promise] notion = "{self.notion}": {causes} {advice}To release it knowingly, write accept = [{listed}] '
            f"(command line: {options}). Nothing was drawn"
        )

    @property
    def lines(self) -> list[str]:
        """Return what is shown before the first draw: the figures, and each cause that does not refuse the release."""
        lines = [f"Verdict before the first release: {self.text}."]
        for cause in [cause for cause in self.causes if cause not in self.refused]:
            passed = f'A rehearsal passes, a release will be refused unless "{cause.word}" is accepted'
            if cause.word in self.accepted:
                passed = f'Accepted in writing by "{cause.word}"'
            lines.append(f"{passed}: {cause.text}")
        return lines

    @property
    def text(self) -> str:
        """Return what the release is fit for, its errors, what it says about one household, and what is credited."""
        best = self.best() or min(self.errors, key=lambda error: error.ratio, default=None)
        facts = [self.purpose if self.errors else "no group has enough households to be judged"]
        if best is not None:
            shortest = next(error for error in self.errors if error.series == best.series)
            errors = ", ".join(error.text for error in dict.fromkeys([shortest, best]))
            facts.append(f"90 % interval of {best.series} {errors}, by {_mean_text(best)}")
            if best.cut_kwh >= _SHOWN_CUT * best.mean:
                facts.append(f"the clamp cuts another {three_digits(best.cut_kwh)} kWh, which no interval covers")
        facts.append(f"one day of one household {odds_text(self.losses.day)}")
        is_of_window = self.limited is not None and self.limited[0] not in (self.losses.day, self.losses.whole)
        if self.limited is not None and is_of_window:
            epsilon, about = self.limited
            facts.append(f"{about.removeprefix('about ')} {odds_text(epsilon)}")
        if self.losses.days > 1:
            facts.append(f"all {self.losses.days:,} days {odds_text(self.losses.whole)}")
        return "; ".join([*facts, *([self.credit.text] if self.credit and not is_of_window else [])])

    @property
    def facts(self) -> dict[str, Any]:
        """Return the verdict as JSON."""
        credit = self.credit and {
            "bound": self.credit.name,
            "epsilon": None if self.credit.bound is None else format_epsilon(self.credit.bound),
            "at_most": self.credit.is_limit,
            "sum": format_epsilon(self.credit.total),
            self.credit.unit: self.credit.number,
            "limit": float(NO_CREDIT),
        }
        names = ("series", "span", "days", "half_width", "mean", "unit", "is_smoothed", "cut_kwh", "grade")
        return {
            "fit_for": self.purpose,
            "causes": [cause.word for cause in self.causes],
            "accepted": list(self.accepted),
            "refused": [cause.word for cause in self.refused],
            "credit": credit,
            "epsilon_about_a_day": format_epsilon(self.losses.day),
            "epsilon_about_all_days": format_epsilon(self.losses.whole),
            "days": self.losses.days,
            "errors": [{name: getattr(error, name) for name in names} for error in self.errors],
        }


def odds_text(nano_epsilon: int) -> str:
    """Return what a loss does to an even chance, with the loss.

    >>> odds_text(500_000_000)
    '50 to 63 % (epsilon 0.5)'
    """
    return f"{odds_percent(nano_epsilon)} (epsilon {_digits(nano_epsilon)})"


_SHOWN_CUT: Final = 0.01
"""Share of the yardstick's mean from which on a sentence names what the clamp cuts."""


def _mean_text(error: SpanError) -> str:
    if error.unit != "kWh":
        return f"the {three_digits(error.mean)} households of a bin on average"
    return f"the {three_digits(error.mean)} kWh of the yardstick ({yardstick.yardstick_name()})"


def _digits(nano_epsilon: int) -> str:
    """Return a loss in five digits [epsilon], enough to tell a bound from the sum."""
    return f"{Decimal(f'{nano_epsilon / NANO:.5g}'):f}"


def judge_first_release(
    terms: ReleaseTerms,
    roster: RosterCounts,
    today: date,
    *,
    undrawn: frozenset[date] = frozenset(),
    most_days: int = MOST_DAYS,
) -> Verdict | None:
    """Return the verdict on the planned series of a run file; None if its promise permits no day.

    Args:
        terms: the terms of the first release.
        roster: the roster.
        today: the date of the run.
        undrawn: days that are known not to be drawn.
        most_days: days of the plan, from the first one on.
    """
    run, schedule = terms.run, terms.run.schedule
    skipped = undrawn | set(schedule.skipped_days)
    planned = _planned_rows(terms, [day for day in _period(run)[:most_days] if day not in skipped])
    if not any(planned.values()):
        return None
    rows = _simulated_rows(terms, planned, today)
    tables = {mean_name(name): layers_of(name, run.series) for name in run.series}
    noises = tuple(filter(None, (_series_noise(terms, roster, names, planned) for names in tables.values())))
    promise, losses = run.promise, _losses(run, rows)
    return Verdict(
        promise.notion,
        _credit(terms, rows),
        noises,
        losses,
        _limited(run, losses),
        promise.TEXT.credit_remedy,
        promise.accept or (),
        schedule.mode != "rehearsal",
    )


def _planned_rows(terms: ReleaseTerms, days: Sequence[date]) -> dict[str, Rows]:
    """Return the planned rows of each series up to the end of the days or of the budget.

    Of series with rows about several days each row counts once in the total; it has its share of what the notion plans
    for one of its days while nothing is spent.
    """
    run, notion = terms.run, terms.notion
    if not run.publication.has_periods:
        losses = notion.planned_series([day.isoformat() for day in days], terms.leakage_bound)
        return {name: [*zip(days, losses, strict=False)] for name in run.series}
    planned: dict[str, Rows] = {name: [] for name in run.series}
    of_series: dict[str, int] = {}
    cap = run.promise.total_cap if run.promise.delta is None else None
    spent = total_charge(notion.charges)
    for day in days:
        for name in whole_periods(run.series, day, since=run.schedule.first_day, skipped=run.schedule.skipped_days):
            if name not in of_series:
                covered = run.series[name].covered_days(day)
                of_series[name] = notion.planned_period((), *covered, terms.leakage_bound)
            spent += int(_part(terms, name) * of_series[name])
            if cap is not None and spent > cap:
                return planned
            planned[name].append((day, of_series[name]))
    return planned


def _period(run: RunFile) -> Sequence[date]:
    first, last = run.schedule.first_day, run.schedule.last_day
    end = first + timedelta(days=MOST_DAYS - 1)
    return days_of(first, end if last is None else min(last, end))


def _simulated_rows(terms: ReleaseTerms, planned: Mapping[str, Rows], today: date) -> list[SimulatedRelease]:
    """Return the planned rows as releases; where no series covers periods, all series of a day in one row."""
    run = terms.run
    if run.publication.has_periods:
        losses = [
            (series, day, int(_part(terms, series) * loss)) for series in planned for day, loss in planned[series]
        ]
    else:
        losses = [("", day, loss) for day, loss in next(iter(planned.values()))]
    not_before = earliest_date(run, today)
    return [
        replace(simulated_release(run, run.input.layout, day, not_before=not_before), series=series, loss=loss)
        for series, day, loss in losses
    ]


def _losses(run: RunFile, rows: Sequence[SimulatedRelease]) -> Losses:
    """Return the losses about a day, about the worst year of 365 days, and about all days; a row counts once."""
    about = losses_about_days(rows, run.publication)
    by_day = sorted((date.fromisoformat(row.day).toordinal(), row.loss) for row in rows)
    year = window = begin = 0
    for day, loss in by_day:
        window += loss
        while by_day[begin][0] <= day - SPANS["year"]:
            window -= by_day[begin][1]
            begin += 1
        year = max(year, window)
    return Losses(max(about.values()), year, sum(loss for _, loss in by_day), len(about))


def _limited(run: RunFile, losses: Losses) -> tuple[int, str] | None:
    """Return the epsilon whose size is judged, and what it is about; None with a delta or without any total."""
    promise = run.promise
    if promise.delta is not None:
        return None
    window, epsilon = getattr(promise, "window_days", None), getattr(promise, "epsilon_per_window", None)
    if window is not None and epsilon is not None:
        return floor_nano(epsilon), f"about any {window} days of one household"
    return None if promise.total_cap is None else (losses.whole, f"about all {losses.days:,} days of one household")


def _credit(terms: ReleaseTerms, rows: Sequence[SimulatedRelease]) -> Credit | None:
    """Return the own bound against the sum of the losses; None for a notion that has no bound of its own."""
    notion, run = terms.notion, terms.run
    name = own_bound_name(notion.limits) or run.promise.TEXT.own_bound.name
    if name in (DAY_BOUND, TOTAL_BOUND):
        return None
    unit = "rows" if run.publication.has_periods else "days"
    total, limit = sum(row.loss for row in rows), notion.limits.get(name)
    if limit is not None and limit < NO_CREDIT * total:
        return Credit(name, limit, total, len(rows), unit, is_limit=True)
    bounds = {bound.name: bound.value for bound in notion.bounds(rows, terms.leakage_bound, None)}
    return Credit(name, bounds[name], bounds[TOTAL_BOUND] or 0, len(rows), unit)


def _part(terms: ReleaseTerms, series: str) -> Fraction:
    return terms.notion.part_of_day(series, share_of(terms.run.series[series]))


def _root_mean_square(values: Sequence[float]) -> float:
    return math.sqrt(sum(value**2 for value in values) / len(values))


@dataclass(frozen=True, slots=True)
class _RowNoise:
    """Noise scale of each layer of a row in its best group, and the yardstick's mean of it [unit of the series].

    `loss` is that of the whole day [nano-epsilon], to which noise is inverse.
    """

    scales: tuple[float, ...]
    mean: float
    loss: int


def _series_noise(
    terms: ReleaseTerms, roster: RosterCounts, names: Sequence[str], planned: Mapping[str, Rows]
) -> SeriesNoise | None:
    """Return the noise of a series, or of the layers of a mean; None without a group or a whole row."""
    run, rows = terms.run, planned[names[0]]
    series = run.series[names[0]]
    first_middle_last = [0, len(rows) // 2, len(rows) - 1] if rows else []
    losses = [loss for _, loss in rows if loss > 0]
    noises: list[_RowNoise] = []
    for probes in (first_middle_last, range(0, len(rows), max(1, len(rows) // _MOST_PROBES))):
        distinct = dict.fromkeys(rows[index] for index in probes)
        noises = [noise for day, loss in distinct if (noise := _row_noise(terms, roster, names, day, loss))]
        if noises:
            break
    else:
        return None
    factors = [_root_mean_square([noise.loss / loss for loss in losses]) for noise in noises]
    layers = zip(*(noise.scales for noise in noises), strict=True)
    scales = tuple(_root_mean_square([*map(operator.mul, layer, factors)]) for layer in layers)
    row_days = _ROW_DAYS[getattr(series, "every", "day")]
    counts = _span_counts(row_days, len(rows))
    if run.schedule.last_day is not None and run.schedule.last_day <= _period(run)[-1]:
        counts[WHOLE] = len(rows)
    label = series_text(names[0], series) if len(names) == 1 else mean_name(names[0])
    smoothed_days = None
    if can_smooth([run.series[name] for name in names]):
        smoothed_days = 0 if run.schedule.mode == "live" else len(rows)
    cut = _cut_kwh(run, names)
    return SeriesNoise(label, scales, counts, row_days, noises[0].mean, series.unit, smoothed_days, cut)


def released_noises(rows: Sequence[ReleaseRecord], contracts: Sequence[ContractRecord]) -> tuple[SeriesNoise, ...]:
    """Return the noise of each series, or of the layers of a mean, on its newest released day, in its best group.

    Use it to say what a folder is fit for: it has no error of smoothed estimates, which are in no folder.

    Args:
        rows: released rows.
        contracts: all contracts, oldest first.
    """
    of_contract = {contract.hash: contract.terms for contract in contracts}
    tables: dict[str, dict[str, list[ReleaseRecord]]] = {}
    for row in sorted(rows, key=lambda row: (row.day, row.seq)):
        by_day = tables.setdefault(row.series if not layer_number(row.series) else mean_name(row.series), {})
        by_day.setdefault(row.day, []).append(row)
    noises = []
    for label, by_day in tables.items():
        *_, newest = by_day.values()
        terms = of_contract[newest[0].contract]
        scales, mean = list[float](), 0.0
        for row in newest:
            series = terms.series[row.series]
            divisor, number = max(
                (series.weight(part.kind) * number if series.unit == "kWh" else 1, number)
                for part, number in series.by_part(row.cells, row.households).items()
            )
            scales.append(row.scale / (_WH_PER_KWH * divisor if series.unit == "kWh" else 1))
            mean = number * len(series.by_part(row.cells, row.households)) / len(row.cells)
        series = terms.series[newest[0].series]
        if series.unit == "kWh":
            mean = _usual_kwh(series, terms.layout.interval_minutes)
        row_days = _ROW_DAYS[getattr(series, "every", "day")]
        noises.append(
            SeriesNoise(label, tuple(scales), _span_counts(row_days, len(by_day)), row_days, mean, series.unit)
        )
    return tuple(noises)


def _span_counts(row_days: int, rows: int) -> dict[str, int]:
    """Return the number of rows of each span that a series contains, the shortest first."""
    return {span: length // row_days for span, length in SPANS.items() if row_days <= length <= row_days * rows}


def _usual_kwh(series: AnySeries, interval_minutes: int) -> float:
    """Return the yardstick's mean of a day, or of a reading of a series that reads half-hours [kWh]."""
    if not series.reads_half_hours:
        return yardstick.mean_kwh()
    return yardstick.mean_kwh(half_hour=True) * max(1, interval_minutes // INTERVAL_MINUTES)


def can_smooth(layers: Sequence[AnySeries]) -> bool:
    """Return whether the yardstick knows the error of the smoothed days of a mean: without layers, or with its own."""
    means = [series for series in layers if is_daily_mean(series)]
    clamps = [(series.above_wh / 1000, series.clamp_wh / 1000) for series in means]
    return len(means) == len(layers) and (len(means) == 1 or clamps == [of[:2] for of in yardstick.layers()])


def _cut_kwh(run: RunFile, names: Sequence[str]) -> float:
    """Return what the clamp takes off the yardstick's mean of a day [kWh]; 0 for counts and profiles."""
    clamps = [getattr(run.series[name], "clamp_wh", 0) / 1000 for name in names]
    if run.series[names[0]].unit != "kWh" or run.series[names[0]].reads_half_hours:
        return 0.0
    return yardstick.cut_by(max(clamps)).energy * yardstick.mean_kwh()


def _row_noise(
    terms: ReleaseTerms, roster: RosterCounts, names: Sequence[str], day: date, loss: int
) -> _RowNoise | None:
    """Return the noise of the rows of a day, one for each layer, in the best group; None without a group or loss."""
    run, scales, mean = terms.run, list[float](), 0.0
    for name in names:
        series, part = run.series[name], int(_part(terms, name) * loss)
        cells = row_cells(roster, series, days_of(*series.covered_days(day)), run.population.min_households)
        if not cells or part <= 0:
            return None
        due = DueDay(day, clock.format_instant(run.input.layout.day_end(day)), day, {name: cells}, (name,))
        row = planned_row(terms, due, name, part)
        groups = group_noises(row, series)
        best = min(groups, key=lambda group: group.noise_sd / (group.households if series.unit == "households" else 1))
        scales.append(row.scale * best.noise_sd / mechanisms.standard_deviation(row.scale))
        bins = sum(cell.group == best.group for cell in series.read_cells(row.cells))
        mean = best.households / bins
    if series.unit == "kWh":
        mean = _usual_kwh(series, run.input.layout.interval_minutes)
    return _RowNoise(tuple(scales), mean, loss)
