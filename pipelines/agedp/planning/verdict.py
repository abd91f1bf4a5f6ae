"""Run file + roster counts + model's public part -> VERDICT: is a first release of any use, or knowingly of none?

Public: it uses no reading. It is made once, before the contract of a population is registered. Example: a mean of 2
households at epsilon 0.5 has a noise of 1.41 times the clamp on one day, and of 0.71 times in the mean of four days.

* A promise CREDITS NOTHING if the notion's own bound, largest over all later instants, is at least 0.95 of the sum of
  the pure losses of the whole series. Classical promises that sum and is not judged.
* A promise is USELESS if the noise of every series exceeds what the series can measure in every span: day, week, month,
  year, whole period. The noise of a span is that of the mean of its rows.

Decisions:

* The series are the planned ones, whatever is due now: to the last day, the horizon or `epsilon_total`, but at most ten
  years; a last day that is farther away promises no shorter spans.
* Where the sum of the losses exceeds the limit of the own bound far enough, the limit decides, and nothing is computed.
* Rows of the first, middle and last day stand for all: a day has the smallest noise of the three, a longer span their
  root mean square over the root of its number of rows. Of groups the one with the least noise counts. If none of the
  three has enough households, others are tried.
* A mean measures from 0 to its clamp (a layer its width, a profile the clamp of a half-hour), a count all households.
* A rehearsal shows the verdict and is not refused: it has a ledger of its own, and its folder says what it is.
* With `delta` the own bound is the promised (epsilon, delta) bound; the sum is always that of the pure losses.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any, Final

from agedp.budget import ReleaseTerms, planned_row, row_cells, whole_periods
from agedp.planning.forecast import earliest_date, simulated_release
from agedp.planning.row_noise import group_noises, value_range
from agedp.signal_against_noise import three_digits
from agedp.stage_values import DueDay
from agedp_data import clock
from agedp_data.config import RunFile
from agedp_data.epsilon import NANO, format_epsilon
from agedp_data.notions.enforcement import own_bound_name
from agedp_data.notions.notion import DAY_BOUND, TOTAL_BOUND
from agedp_data.notions.publication import share_of, total_charge
from agedp_data.parameters import Acceptance
from agedp_data.roster import RosterCounts
from agedp_data.series.layered_mean import series_text
from agedp_data.series.series_terms import days_of

NO_CREDIT: Final = Fraction(95, 100)
"""Part of the sum of the pure losses from which on a notion's own bound credits nothing; public."""
WHOLE: Final = "whole period"
_MAX_DAYS: Final = 3652
_MOST_PROBES: Final = 64
_NEGLIGIBLE: Final = 0.001
_SPANS: Final[Mapping[str, int]] = {"day": 1, "week": 7, "month": 30, "year": 365}
Rows = list[tuple[date, int]]
"""Days, or the days that name a row, with the loss of the whole day [nano-epsilon]."""
_ROW_DAYS: Final[Mapping[str, int]] = {**_SPANS, "weekday-month": 30}


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
class SpanNoise:
    """Noise standard deviation of the mean of a span of a series, and the most that the series can measure."""

    series: str
    span: str
    days: int
    noise_sd: float
    range: float
    unit: str

    @property
    def ratio(self) -> float:
        """Return the noise as a part of the range."""
        return self.noise_sd / self.range

    @property
    def text(self) -> str:
        """Return the noise in words."""
        article = "the" if self.span == WHOLE else "a"
        return f"{three_digits(self.noise_sd)} {self.unit} for {article} {self.span}"


@dataclass(frozen=True, slots=True)
class Cause:
    """One cause for which a first release is refused, the word that accepts it, and the sentences about it."""

    word: Acceptance
    text: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is known of a promise before its first release; `credit` is None for a notion that promises the sum itself.

    `accepted` are the words of [promise] accept, `remedy` is the notion's about a lack of credit. A rehearsal is not
    refused: `is_release` is False.
    """

    notion: str
    credit: Credit | None
    noises: tuple[SpanNoise, ...]
    remedy: str
    accepted: tuple[Acceptance, ...] = ()
    is_release: bool = True

    @property
    def causes(self) -> tuple[Cause, ...]:
        """Return the causes for a refusal, also those that are accepted."""
        causes, best = [], self._best
        if self.credit is not None and self.credit.is_none:
            text = (
                f"its bound credits nothing: {self.credit.text} (limit {float(NO_CREDIT):g}). Take {self.remedy}, or "
                'notion = "classical", which promises the sum by itself.'
            )
            causes.append(Cause("no-credit", text))
        if best is not None and best.ratio > 1:
            limit = "the clamp" if best.unit == "kWh" else "the number of households"
            text = (
                f"the noise exceeds {limit} in every span: {self._noise_text}. An epsilon, or a number of households, "
                f"{three_digits(best.ratio)} times as large brings it down to {limit}."
            )
            causes.append(Cause("useless", text))
        return tuple(causes)

    @property
    def refused(self) -> tuple[Cause, ...]:
        """Return the causes that refuse a first release: those that no word accepts."""
        return tuple(cause for cause in self.causes if self.is_release and cause.word not in self.accepted)

    @property
    def refusal(self) -> str:
        """Return why a first release is refused and which words accept it; "" if it is not."""
        if not self.refused:
            return ""
        causes = " Also, ".join(cause.text for cause in self.refused)
        words = [cause.word for cause in self.refused]
        listed, options = ", ".join(f'"{word}"' for word in words), " ".join(f"--accept {word}" for word in words)
        return (
            f'[promise] notion = "{self.notion}": {causes} To release it knowingly, write accept = [{listed}] '
            f"(command line: {options}). Nothing was drawn"
        )

    @property
    def lines(self) -> list[str]:
        """Return what is shown before the first draw: the figures, and each cause that does not refuse the release."""
        facts = [*([self.credit.text] if self.credit else []), *filter(None, [self._noise_text])]
        lines = [f"Verdict before the first release: {'; '.join(facts)}."] if facts else []
        for cause in [cause for cause in self.causes if cause not in self.refused]:
            passed = f'A rehearsal passes, a release will be refused unless "{cause.word}" is accepted'
            if cause.word in self.accepted:
                passed = f'Accepted in writing by "{cause.word}"'
            lines.append(f"{passed}: {cause.text}")
        return lines

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
        names = ("series", "span", "days", "noise_sd", "range", "unit")
        return {
            "causes": [cause.word for cause in self.causes],
            "accepted": list(self.accepted),
            "refused": [cause.word for cause in self.refused],
            "credit": credit,
            "noise": [{name: getattr(noise, name) for name in names} for noise in self.noises],
        }

    @property
    def _best(self) -> SpanNoise | None:
        return min(self.noises, key=lambda noise: noise.ratio, default=None)

    @property
    def _noise_text(self) -> str:
        """Return the noise of the series with the least noise, in its shortest span and in the best one."""
        best = self._best
        if best is None:
            return ""
        shortest = next(noise for noise in self.noises if noise.series == best.series)
        texts = [noise.text for noise in dict.fromkeys([shortest, best])]
        largest = f"clamp {best.range:g} kWh" if best.unit == "kWh" else f"{best.range:g} households"
        return f"noise of {best.series} {', '.join(texts)} ({largest})"


def _digits(nano_epsilon: int) -> str:
    """Return a loss in five digits [epsilon], enough to tell a bound from the sum."""
    return f"{Decimal(f'{nano_epsilon / NANO:.5g}'):f}"


def judge_first_release(
    terms: ReleaseTerms, roster: RosterCounts, today: date, *, undrawn: frozenset[date] = frozenset()
) -> Verdict | None:
    """Return the verdict on the planned series of a run file; None if its promise permits no day.

    Args:
        terms: the terms of the first release.
        roster: the roster.
        today: the date of the run.
        undrawn: days that are known not to be drawn.
    """
    run, schedule = terms.run, terms.run.schedule
    skipped = undrawn | set(schedule.skipped_days)
    planned = _planned_rows(terms, [day for day in _period(run) if day not in skipped])
    if not any(planned.values()):
        return None
    noises = tuple(noise for name, rows in planned.items() for noise in _span_noises(terms, roster, name, rows))
    promise, credit = run.promise, _credit(terms, planned, today)
    accepted, is_release = promise.accept or (), schedule.mode != "rehearsal"
    return Verdict(promise.notion, credit, noises, promise.TEXT.credit_remedy, accepted, is_release)


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
    end = first + timedelta(days=_MAX_DAYS - 1)
    return days_of(first, end if last is None else min(last, end))


def _credit(terms: ReleaseTerms, planned: Mapping[str, Rows], today: date) -> Credit | None:
    """Return the own bound against the sum of the losses; None for a notion that has no bound of its own."""
    notion, run = terms.notion, terms.run
    name = own_bound_name(notion.limits) or run.promise.TEXT.own_bound.name
    if name in (DAY_BOUND, TOTAL_BOUND):
        return None
    unit = "rows" if run.publication.has_periods else "days"
    if run.publication.has_periods:
        losses = [
            (series, day, int(_part(terms, series) * loss)) for series in planned for day, loss in planned[series]
        ]
    else:  # all series of the day in one row
        losses = [("", day, loss) for day, loss in next(iter(planned.values()))]
    total, limit = sum(loss for _, _, loss in losses), notion.limits.get(name)
    if limit is not None and limit < NO_CREDIT * total:
        return Credit(name, limit, total, len(losses), unit, is_limit=True)
    layout, not_before = run.input.layout, earliest_date(run, today)
    rows = [
        replace(simulated_release(run, layout, day, not_before=not_before), series=series, loss=loss)
        for series, day, loss in losses
    ]
    bounds = {bound.name: bound.value for bound in notion.bounds(rows, terms.leakage_bound, None)}
    return Credit(name, bounds[name], bounds[TOTAL_BOUND] or 0, len(losses), unit)


def _part(terms: ReleaseTerms, series: str) -> Fraction:
    return terms.notion.part_of_day(series, share_of(terms.run.series[series]))


def _span_noises(terms: ReleaseTerms, roster: RosterCounts, name: str, rows: Rows) -> Iterator[SpanNoise]:
    """Yield the noise of each span of a series that its period contains, the shortest first."""
    run, series = terms.run, terms.run.series[name]
    first_middle_last = [0, len(rows) // 2, len(rows) - 1] if rows else []
    noises: list[tuple[float, float, str]] = []
    for probes in (first_middle_last, range(0, len(rows), max(1, len(rows) // _MOST_PROBES))):
        distinct = dict.fromkeys(rows[index] for index in probes)
        noises = [noise for day, loss in distinct for noise in _row_noise(terms, roster, name, day, loss)]
        if noises:
            break
    else:
        return
    mean_square = sum(noise**2 for noise, _, _ in noises) / len(noises)
    of_day = min(noise for noise, _, _ in noises)
    _, value, unit = noises[0]
    row_days = _ROW_DAYS[getattr(series, "every", "day")]
    counts = {span: length // row_days for span, length in _SPANS.items() if row_days <= length <= row_days * len(rows)}
    if run.schedule.last_day is not None and run.schedule.last_day <= _period(run)[-1]:
        counts[WHOLE] = len(rows)
    for span, count in counts.items():
        if 0 < count <= len(rows):
            noise = of_day if count == 1 else math.sqrt(mean_square / count)
            yield SpanNoise(series_text(name, series), span, count * row_days, noise, value, unit)


def _row_noise(
    terms: ReleaseTerms, roster: RosterCounts, name: str, day: date, loss: int
) -> Iterator[tuple[float, float, str]]:
    """Yield the noise of a row in its best group, the range of the values and their unit; nothing without a group."""
    run, series = terms.run, terms.run.series[name]
    part = int(_part(terms, name) * loss)
    cells = row_cells(roster, series, days_of(*series.covered_days(day)), run.population.min_households)
    if not cells or part <= 0:
        return
    due = DueDay(day, clock.format_instant(run.input.layout.day_end(day)), day, {name: cells}, (name,))
    groups = [
        (of.noise_sd, value_range(series, of.households, run.input.layout.interval_minutes))
        for of in group_noises(planned_row(terms, due, name, part), series)
    ]
    noise, value = min(groups, key=lambda group: group[0] / group[1])
    yield noise, value, series.unit
