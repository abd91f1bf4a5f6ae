"""Run file + forecast -> what the days of a period come to at a delta, and what a promised delta buys.

Public: it uses no reading. Example: epsilon_total = 10 over 365 days permits epsilon 0.0274 on each day; with delta =
1e-6 it permits 0.0939, with 3.4 times less noise, and the pure losses of the days come to 34.3.

The enforced losses are those of the Rényi curve (`spans`). The privacy-loss distribution gives a tighter figure,
which is shown for information; it is left out where the days have many different losses, which would take long, and
where calibration draws count.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from typing import Final

from agedp_data import mechanisms
from agedp_data.accounting.renyi import Release, tight_epsilon
from agedp_data.config import RunFile
from agedp_data.epsilon import NANO, floor_nano
from agedp_data.notions.notion import TOTAL_BOUND, HistoryRow, name_at_delta
from agedp_data.notions.publication import Publication, Statistic, share_of
from agedp_data.notions.spans import DISCRETE_LAPLACE, STANDARD_DELTAS, Parts, SpanCurves

Noise = tuple[int, float]
"""Largest move of a value, and the scale of its noise."""
_MAX_KINDS: Final = 3
"""Different pairs of sensitivity and scale; each takes about 0.2 s."""


@dataclass(frozen=True, slots=True)
class SpanPrice:
    """What a bound of so many days permits each of them with its delta and without it [nano-epsilon].

    Attributes:
        key: the key of [promise] that states the bound.
        epsilon: the bound [nano-epsilon].
        delta: the promised delta [-].
        days: number of days that share the bound.
        loss: the largest equal loss of a day with delta.
        pure_loss: the largest equal loss of a day without delta.
        uncapped_loss: the largest equal loss of a day with delta that the bound alone permits, without the day's cap.
    """

    key: str
    epsilon: int
    delta: Decimal
    days: int
    loss: int
    pure_loss: int
    uncapped_loss: int

    @property
    def is_capped(self) -> bool:
        """Return whether `max_day_epsilon` limits the day, and not this bound."""
        return self.uncapped_loss > self.loss

    @property
    def noise_ratio(self) -> float:
        """Return the noise without delta as a multiple of the noise with it."""
        return self.loss / self.pure_loss if self.pure_loss else float("inf")

    @property
    def pure_total(self) -> int:
        """Return what the days come to without delta, if each has the loss that is permitted with it."""
        return self.days * self.loss


@dataclass(frozen=True, slots=True)
class PeriodTotals:
    """What all days of a period come to, released and planned ones [nano-epsilon].

    Attributes:
        days: number of days with a release.
        pure: the sum of their losses, calibration draws among them.
        at: the loss at each delta.
        tight: delta and loss by the privacy-loss distribution [epsilon], None where it would take long.
    """

    days: int
    pure: int
    at: tuple[tuple[Decimal, int], ...]
    tight: tuple[Decimal, float] | None


def span_prices(run: RunFile) -> list[SpanPrice]:
    """Return the price of each bound with a delta in a run file's promise; none without a delta.

    The total is that of the period and is left out where the period has no last day.
    """
    promise, delta = run.promise, run.promise.delta
    if delta is None:
        return []
    curves = SpanCurves(run.publication, _parts(run))
    period = None if run.schedule.days is None else run.schedule.days - len(run.schedule.skipped_days)
    total = name_at_delta(TOTAL_BOUND, delta)
    own_days = getattr(promise, "window_days", None) or getattr(promise, "horizon_days", None)
    own = promise.TEXT.epsilon_key, own_days if isinstance(own_days, int) else period
    prices = []
    for name, limit in run.notion.limits.items():
        key, days = ("epsilon_total", period) if name == total else own
        if limit is not None and days is not None and name.endswith(name_at_delta("", delta)):
            cap = max(promise.day_cap, limit)
            alone = curves.equal_loss(days, epsilon=limit, delta=delta, cap=cap, beside=curves.draws)
            loss = min(alone, promise.day_cap)  # losses grow with those of a day
            pure = min(promise.day_cap, max(0, limit - curves.draws.pure) // days)
            prices.append(SpanPrice(key, limit, delta, days, loss, pure, alone))
    return prices


def filling_loss(run: RunFile) -> SpanPrice | None:
    """Return the price of `epsilon_total` if `epsilon_per_day` is not the equal loss that fills it, else None.

    Losses are compared in three digits, as they are printed. None also where `max_day_epsilon` permits no loss that
    fills it.
    """
    per_day = getattr(run.promise, "epsilon_per_day", None)
    price = next((price for price in span_prices(run) if price.key == "epsilon_total"), None)
    if per_day is None or price is None or price.is_capped:
        return None
    return None if _three_digits(price.loss) == _three_digits(floor_nano(per_day)) else price


def period_totals(run: RunFile, history: Sequence[HistoryRow]) -> PeriodTotals | None:
    """Return what the released and planned days of a period come to; None where a delta says no more than their sum.

    Args:
        run: the run file with its promise, as a successor of earlier contracts.
        history: all rows of the period, planned ones among them (`Forecast.history`).
    """
    promised, released = run.promise.delta, [row for row in history if row.state == "released"]
    curves = SpanCurves(run.publication, _parts(run))
    together = curves.total(released)
    deltas = {*STANDARD_DELTAS, *([] if promised is None else [promised])}
    at = tuple((delta, together.epsilon(delta)) for delta in sorted(deltas, reverse=True))
    if not released or (promised is None and at[0][1] == together.pure):
        return None
    delta, kinds = promised or STANDARD_DELTAS[0], None if curves.draws.pure else _kinds(run, released)
    tight = None if kinds is None else (delta, tight_epsilon(kinds, float(delta)))
    if tight is not None and floor_nano(tight[1]) >= together.epsilon(delta):  # its floats say nothing at tiny deltas
        tight = None
    return PeriodTotals(len({row.day for row in released}), together.pure, at, tight)


def _kinds(run: RunFile, released: Sequence[HistoryRow]) -> list[Release] | None:
    """Return the different noises of the rows, each with its number; None for too many, or an unknown mechanism."""
    publication, kinds = run.publication, Counter[Noise]()
    planned = Counter((row.series, row.loss) for row in released if not row.mechanism)
    for (series, loss), number in planned.items():
        for name, part in (_parts(run) if not series else {series: Fraction(1)}).items():
            sensitivity, spend = run.series[name].sensitivity("replacement"), Fraction(int(part * loss), NANO)
            if spend:
                move = _cell_move(run.series[name], publication, sensitivity)
                scale = mechanisms.laplace_scale(sensitivity=sensitivity, loss=spend)
                kinds.update(_noises(sensitivity, move, scale, number))
    for row in released:
        if row.mechanism:
            statistic = publication.statistic(row)
            if row.mechanism != DISCRETE_LAPLACE or statistic is None:
                return None
            move = _cell_move(statistic, publication, row.sensitivity)
            kinds.update(_noises(row.sensitivity, move, row.scale, 1))
    if len(kinds) > _MAX_KINDS:
        return None
    return [(sensitivity, scale, number) for (sensitivity, scale), number in kinds.items()]


def _cell_move(statistic: Statistic, publication: Publication, sensitivity: int) -> int:
    """Return the most that one value of a row moves; a row of several days may move by all of its sensitivity."""
    if statistic.covers_periods:
        return sensitivity
    return statistic.largest_move("replacement", minutes=publication.interval_minutes)


def _noises(sensitivity: int, largest_move: int, scale: float, number: int) -> dict[Noise, int]:
    """Return the noises of so many equal rows: of as many values as a household moves by the most, and of the rest."""
    moved, rest = divmod(sensitivity, largest_move)
    return {(largest_move, scale): moved * number} | ({(rest, scale): number} if rest else {})


def _parts(run: RunFile) -> Parts:
    return {name: run.notion.part_of_day(name, share_of(series)) for name, series in run.series.items()}


def _three_digits(loss: int) -> Decimal:
    return Context(prec=3, rounding=ROUND_FLOOR).plus(Decimal(loss))
