"""Run file + roster counts + model's public part -> VERDICT: what a first release is fit for, or why it is refused.

Public: it uses no reading. It is made once, before the contract of a population is registered.

* A span (day, week, month, year, whole period) of a series is fit, rough or neither (`statement.span_errors`). A
  promise is USELESS if no span of any series is either, not even in the group with the least noise.
* A promise CREDITS NOTHING if the notion's own bound, largest over all later instants, is at least 0.95 of the sum of
  the pure losses of the whole series. Classical promises that sum and is not judged.
* A TOTAL is too large if the losses of the whole series add up to more than 20 without a delta. A promise over windows
  is judged by its window. `epsilon_total = "unlimited"` says that there is no total, and accepts it.

Decisions:

* `min_households` below ten is said and not refused: it has no default, and fewer than ten are never proposed.
* The series are the planned ones, whatever is due now: to the last day, the horizon or `epsilon_total`, but at most ten
  years; a last day that is farther away promises no shorter spans.
* Where the sum of the losses exceeds the limit of the own bound far enough, the limit decides, and nothing is computed.
* The losses of all rows count, by the root mean square of their noise; households and groups are those of the first,
  middle or last day, whichever has the most noise. If none of the three has enough households, others are tried.
* The interval of single days of a mean is that of the smoothed estimates (`agedp smooth`), by the yardstick, where
  these have less error.
* A rehearsal shows the verdict and is not refused: it has a ledger of its own, and its folder says what it is.
* With `delta` the own bound is the promised (epsilon, delta) bound; the sum is always that of the pure losses.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any, Final

from agedp.budget import ReleaseTerms, planned_row, row_cells, whole_periods
from agedp.planning.forecast import SimulatedRelease, earliest_date, simulated_release
from agedp.planning.row_noise import GroupNoise, group_noises, root_mean_square
from agedp.signal_against_noise import three_digits
from agedp.stage_values import DueDay
from agedp_data import clock, mechanisms, yardstick
from agedp_data.config import RunFile
from agedp_data.config.output import FEWEST_HOUSEHOLDS
from agedp_data.epsilon import NANO, floor_nano, format_epsilon, rounded_up
from agedp_data.messages import percent_text
from agedp_data.notions.enforcement import own_bound_name
from agedp_data.notions.notion import DAY_BOUND, TOTAL_BOUND, losses_about_days
from agedp_data.notions.publication import share_of, total_charge
from agedp_data.parameters import Acceptance
from agedp_data.roster import RosterCounts
from agedp_data.series.layered_mean import series_text
from agedp_data.series.series_terms import days_of, layers_of, mean_name
from agedp_data.statement.note_texts import odds_percent
from agedp_data.statement.span_errors import (
    ROW_DAYS,
    WHOLE,
    SeriesNoise,
    SpanError,
    can_smooth,
    purpose,
    shortest,
    span_counts,
    usual_kwh,
)
from agedp_data.yardstick import FIT, ROUGH, SPANS

NO_CREDIT: Final = Fraction(95, 100)
"""Part of the sum of the pure losses from which on a notion's own bound credits nothing; public."""
LARGEST_TOTAL: Final = 20
"""Sum of the losses of a series up to which it needs no acceptance [epsilon]; public."""
MOST_DAYS: Final = 3652
"""Days of a plan, from the first one on."""
_MOST_PROBES: Final = 64
_NEGLIGIBLE: Final = 0.001
Rows = list[tuple[date, int]]
"""Days, or the days that name a row, with the loss of the whole day [nano-epsilon]."""


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
    the notion's about a lack of credit. `noises` are those of the group with the most noise; `least_noises`, where they
    differ, of that with the least. A rehearsal is not refused: `is_release` is False. `min_households` is that of the
    run file, `row_remedy` the notion's about rows that have too little of its bound.
    """

    notion: str
    credit: Credit | None
    noises: tuple[SeriesNoise, ...]
    losses: Losses
    limited: tuple[int, str] | None
    remedy: str
    accepted: tuple[Acceptance, ...] = ()
    is_release: bool = True
    least_noises: tuple[SeriesNoise, ...] = ()
    min_households: int = FEWEST_HOUSEHOLDS
    row_remedy: str = ""

    @property
    def errors(self) -> tuple[SpanError, ...]:
        """Return the error of each span of each series."""
        return tuple(error for noise in self.noises for error in noise.all_errors())

    def best(self) -> SpanError | None:
        """Return the error of the shortest span that is fit or at least rough; of equal ones the smallest."""
        return shortest(self.errors, "fit", "rough")

    @property
    def _least_errors(self) -> list[SpanError]:
        return [error for noise in self.least_noises or self.noises for error in noise.all_errors()]

    @property
    def purpose(self) -> str:
        """Return what the release is fit for, such as "rough for months, fit for years"; "of no use" for nothing."""
        if of_most := purpose(self.errors):
            return of_most
        of_least = purpose(self._least_errors)
        return f"of no use in the smallest group, {of_least} in the largest" if of_least else "of no use"

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
        errors = self._least_errors
        if errors and not purpose(errors):
            smallest = min(errors, key=lambda error: error.ratio)
            factor = three_digits(math.ceil(100 * smallest.ratio / ROUGH) / 100)
            text = (
                f"no span is of use: the 90 % interval of {smallest.series} is {smallest.text} at best; "
                f"{percent_text(ROUGH)} of {_mean_text(smallest)} is rough, {percent_text(FIT)} fit. "
                f"An epsilon, or a number of households, {factor} times as large makes it rough."
            )
            if self.row_remedy:
                text += f" Before that take {self.row_remedy}."
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
        """Return what is shown before the first draw: the figures, causes that do not refuse it, few households."""
        lines = [f"Verdict before the first release: {self.text}."]
        for cause in [cause for cause in self.causes if cause not in self.refused]:
            passed = f'A rehearsal passes, a release will be refused unless "{cause.word}" is accepted'
            if cause.word in self.accepted:
                passed = f'Accepted in writing by "{cause.word}"'
            lines.append(f"{passed}: {cause.text}")
        if self.min_households < FEWEST_HOUSEHOLDS:
            lines.append(
                f"[population] min_households = {self.min_households} is below {FEWEST_HOUSEHOLDS}, the least that "
                "official statistics usually publish: of so few households the noise alone hides one."
            )
        return lines

    @property
    def text(self) -> str:
        """Return what the release is fit for, its errors, what it says about one household, and what is credited."""
        best = self.best() or min(self.errors, key=lambda error: error.ratio, default=None)
        facts = [self.purpose if self.errors else "no group has enough households to be judged"]
        if best is not None:
            first = next(error for error in self.errors if error.series == best.series)
            errors = ", ".join(error.text for error in dict.fromkeys([first, best]))
            facts.append(f"90 % interval of {best.series} {errors}, by {_mean_text(best)}")
            if best.cut_kwh >= _SHOWN_CUT * best.mean:
                worst = next(noise.worst_month_kwh for noise in self.noises if noise.label == best.series)
                facts.append(
                    f"the clamp cuts another {rounded_up(best.cut_kwh)} kWh on average, {rounded_up(worst)} kWh in the "
                    "worst month of the yardstick, which no interval covers"
                )
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
    rows = _simulated_rows(terms, planned, today)
    tables = {mean_name(name): layers_of(name, run.series) for name in run.series}

    def of_groups(choose: Callable[..., GroupNoise]) -> tuple[SeriesNoise, ...]:
        """Return the noise of each series in the group that is chosen by its noise."""
        return tuple(filter(None, (_series_noise(terms, roster, names, planned, choose) for names in tables.values())))

    noises = of_groups(max)
    has_parts = any(series.by is not None or series.reads_half_hours for series in run.series.values())
    least_noises = of_groups(min) if has_parts else noises
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
        () if least_noises == noises else least_noises,
        min_households=run.population.min_households,
        row_remedy=terms.notion.row_remedy,
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
    not_before, layout = earliest_date(run, today), run.input.layout
    return [
        simulated_release(run, layout, day, not_before=not_before, series=series, loss=loss)
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


@dataclass(frozen=True, slots=True)
class _RowNoise:
    """Noise scale of each layer of a row in one group, and the yardstick's mean of it [unit of the series].

    `loss` is that of the whole day [nano-epsilon], to which noise is inverse.
    """

    scales: tuple[float, ...]
    mean: float
    loss: int


def _series_noise(
    terms: ReleaseTerms,
    roster: RosterCounts,
    names: Sequence[str],
    planned: Mapping[str, Rows],
    choose: Callable[..., GroupNoise],
) -> SeriesNoise | None:
    """Return the noise of a series, or of the layers of a mean; None without a group or a whole row."""
    run, rows = terms.run, planned[names[0]]
    series = run.series[names[0]]
    first_middle_last = [0, len(rows) // 2, len(rows) - 1] if rows else []
    losses = [loss for _, loss in rows if loss > 0]
    noises: list[_RowNoise] = []
    for probes in (first_middle_last, range(0, len(rows), max(1, len(rows) // _MOST_PROBES))):
        distinct = dict.fromkeys(rows[index] for index in probes)
        noises = [noise for day, loss in distinct if (noise := _row_noise(terms, roster, names, day, loss, choose))]
        if noises:
            break
    else:
        return None
    factors = [root_mean_square([noise.loss / loss for loss in losses]) for noise in noises]
    layers = zip(*(noise.scales for noise in noises), strict=True)
    scales = tuple(max(map(operator.mul, layer, factors)) for layer in layers)
    row_days = ROW_DAYS[getattr(series, "every", "day")]
    counts = span_counts(row_days, len(rows))
    if run.schedule.last_day is not None and run.schedule.last_day <= _period(run)[-1]:
        counts[WHOLE] = len(rows)
    label = series_text(names[0], series) if len(names) == 1 else mean_name(names[0])
    layers_of_mean = [run.series[name] for name in names]
    smoothed_days = None
    if can_smooth(layers_of_mean):
        smoothed_days = 0 if run.schedule.mode == "live" else len(rows)
    clamp_kwh = None
    if series.unit == "kWh" and not series.reads_half_hours:
        clamp_kwh = max(getattr(layer, "clamp_wh", 0) for layer in layers_of_mean) / 1000
    return SeriesNoise(label, scales, counts, row_days, noises[0].mean, series.unit, smoothed_days, clamp_kwh)


def _row_noise(
    terms: ReleaseTerms,
    roster: RosterCounts,
    names: Sequence[str],
    day: date,
    loss: int,
    choose: Callable[..., GroupNoise],
) -> _RowNoise | None:
    """Return the noise of the rows of a day, one for each layer, in the group that `choose` takes; None without any."""
    run, scales, mean = terms.run, list[float](), 0.0
    for name in names:
        series, part = run.series[name], int(_part(terms, name) * loss)
        cells = row_cells(roster, series, days_of(*series.covered_days(day)), run.population.min_households)
        if not cells or part <= 0:
            return None
        due = DueDay(day, clock.format_instant(run.input.layout.day_end(day)), day, {name: cells}, (name,))
        row = planned_row(terms, due, name, part)
        groups = group_noises(row, series)
        chosen = choose(
            groups, key=lambda group: group.noise_sd / (group.households if series.unit == "households" else 1)
        )
        scales.append(row.scale * chosen.noise_sd / mechanisms.standard_deviation(row.scale))
        bins = sum(cell.group == chosen.group for cell in series.read_cells(row.cells))
        mean = chosen.households / bins
    if series.unit == "kWh":
        mean = usual_kwh(series, run.input.layout.interval_minutes)
    return _RowNoise(tuple(scales), mean, loss)
