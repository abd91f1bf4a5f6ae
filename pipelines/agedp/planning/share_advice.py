"""Run file + forecast + roster -> SHARE ADVICE: the noise of a total and of the groups beside it, by their shares.

Public: it uses no reading. Compared are releases of the same quantity (clamp, missing values, states) with an equal
bound over the days of the promise: its window or its period, a year if it has no end. Other series of the run file keep
their loss.

Decisions:

* Without `delta` in the promise, losses add up purely, and the shares of the run file are judged by that. The best
  share is then that under a promise with the first of the standard deltas.
* Quantities with several levels of groups are left out: the noise of a total with levels below each other is another.
* The best share costs no group more than 10 % of noise and saves the total as much at least. It is advice; nothing is
  decided by it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Final

from agedp.budget import ReleaseTerms
from agedp.planning.forecast import Forecast
from agedp_data.accounting.total_share import (
    SharedNoise,
    SpanBudget,
    largest_share,
    shared_noise,
    span_epsilon,
)
from agedp_data.config.run_file import RunFile
from agedp_data.epsilon import NANO
from agedp_data.notions import Promise
from agedp_data.notions.publication import share_of
from agedp_data.notions.span_loss import STANDARD_DELTAS, YEAR
from agedp_data.notions.w_event import WEvent
from agedp_data.roster import Roster
from agedp_data.series.series import is_daily_mean

MAX_COST: Final = 1.1
"""Largest noise of a group beside the best share of a total, as a multiple of that of groups alone."""
_WORTHWHILE: Final = 0.9
"""Largest noise of the total beside the best share, as a multiple of that of the sum of the groups."""
_LEAST_GROUPS: Final = 2
_LEAST_LOSS: Final = 1000
"""Loss of a day from which on rounding to nano-epsilon does not matter [nano-epsilon]."""
_WITHOUT_CAP: Final = 10  # times the loss of a day: more than any share needs


@dataclass(frozen=True, slots=True)
class ShareAdvice:
    """A quantity that is released by groups: the noise with the shares of the run file, and with the best one.

    `total` is the series of all households, "" without one; `groups` has the number of released groups by series;
    `incomplete` are series whose released groups leave out households on the next day. The bound is over `days`, at
    `delta`, which is `promised` or not. `noise` is None without a total, `best` if no share pays.
    """

    total: str
    groups: Mapping[str, int]
    incomplete: tuple[str, ...]
    days: int
    delta: Decimal
    promised: bool
    noise: SharedNoise | None
    best: SharedNoise | None


def advise_shares(terms: ReleaseTerms, expected: Forecast, roster: Roster) -> list[ShareAdvice]:
    """Return the advice for each quantity of a run file that is released by groups; none if no day can be released."""
    if expected.next_day is None or expected.loss < _LEAST_LOSS or not isinstance(terms.notion, Promise):
        return []
    return [
        advice
        for names in _quantities(terms.run, roster)
        if (advice := _advise(terms.run, terms.notion, expected, roster, names)) is not None
    ]


def _quantities(run: RunFile, roster: Roster) -> Iterator[list[str]]:
    """Yield the means of each quantity that has groups of one level and at most one total, the total first."""
    by_quantity: dict[tuple[int, int, int, int, str], list[tuple[tuple[str, ...], str]]] = {}
    for name, series in run.series.items():
        if is_daily_mean(series) and roster.has(series.by):
            by_quantity.setdefault(series.quantity, []).append((series.columns, name))
    for pairs in by_quantity.values():
        columns = [of_series for of_series, _ in pairs]
        if max(map(len, columns)) == 1 and columns.count(()) <= 1:
            yield [name for _, name in sorted(pairs)]


def _advise(run: RunFile, promise: Promise, expected: Forecast, roster: Roster, names: list[str]) -> ShareAdvice | None:
    """Return the advice for one quantity; None if a series of it has too few groups."""
    numbers, incomplete = _released_groups(run, expected, roster, names)
    if min(numbers.values()) < _LEAST_GROUPS:
        return None
    parts = {name: promise.part_of_day(name, share_of(run.series[name])) for name in names}
    of_groups = sum(parts[name] for name in numbers)
    share = 1 - Fraction(of_groups) / sum(parts.values())
    groups = [(number, parts[name] / of_groups) for name, number in numbers.items()]
    delta, is_promised = promise.delta or STANDARD_DELTAS[0], promise.delta is not None
    budget = _span_budget(run, promise, expected, parts, delta)
    best = largest_share(groups, budget, max_cost=MAX_COST)
    judged = budget if is_promised else _pure_budget(budget)
    return ShareAdvice(
        total="" if names[0] in numbers else names[0],
        groups=numbers,
        incomplete=incomplete,
        days=budget.days,
        delta=delta,
        promised=is_promised,
        noise=None if names[0] in numbers else shared_noise(share, groups, judged),
        best=best if best is not None and best.total <= _WORTHWHILE else None,
    )


def _released_groups(
    run: RunFile, expected: Forecast, roster: Roster, names: list[str]
) -> tuple[dict[str, int], tuple[str, ...]]:
    """Return the number of released groups by series, and the series whose groups leave out households."""
    numbers: dict[str, int] = {}
    incomplete = []
    for name in names:
        by = run.series[name].by
        if by is not None and expected.next_day is not None:
            sizes = [number for _, number in roster.cells(expected.next_day, by)]
            numbers[name] = sum(number >= run.population.min_households for number in sizes)
            if numbers[name] < len(sizes):
                incomplete.append(name)
    return numbers, tuple(incomplete)


def _span_budget(
    run: RunFile, promise: Promise, expected: Forecast, parts: Mapping[str, Fraction], delta: Decimal
) -> SpanBudget:
    """Return the bound that a quantity's series have over the days of the promise, at a delta."""
    days = _span_days(run, promise, expected)
    sensitivity = run.series[next(iter(parts))].sensitivity("replacement")
    losses = [float(part * expected.loss / NANO) for part in parts.values()]
    epsilon = span_epsilon(losses, days=days, delta=delta, sensitivity=sensitivity)
    cap = promise.day_cap if promise.delta is not None else _WITHOUT_CAP * expected.loss
    return SpanBudget(days, epsilon, delta, int(sum(parts.values()) * cap), sensitivity)


def _pure_budget(budget: SpanBudget) -> SpanBudget:
    """Return a bound on the sum of pure losses; compared with groups alone, its size does not matter."""
    return SpanBudget(1, NANO, 0, NANO, budget.sensitivity)


def _span_days(run: RunFile, promise: Promise, expected: Forecast) -> int:
    """Return the number of days that the promise is about: its window, its period, or a year."""
    window = promise.window_days if isinstance(promise, WEvent) else None
    horizon = getattr(promise, "horizon_days", None)
    ends = expected.last_day if expected.ended_by_promise else None
    lasting = None if ends is None else (ends - run.schedule.first_day).days + 1
    spans = (window, horizon, run.schedule.days, lasting)  # a horizon may be "unlimited"
    return min([days for days in spans if isinstance(days, int)], default=YEAR)
