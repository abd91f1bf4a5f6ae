"""The privacy loss of a release: the table of all bounds of the statement, and one chart of their growth. Public.

The functions work on accountants and do not distinguish notions. The bounds of the first k days are those of a ledger
that ends there, so the last point of a curve equals the statement.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cache
from typing import NamedTuple, SupportsFloat

from agedp.reports import svg
from agedp.reports.html import part, text_table
from agedp_data.epsilon import to_float
from agedp_data.leakage.function import LeakageBoundLike
from agedp_data.ledger import ReleaseRecord
from agedp_data.notions.notion import Accountant, LossBound
from agedp_data.statement.document import StatedBound, Statement
from agedp_data.statement.note_texts import INFINITE, short_factor, short_number

POINTS = 16
"""Number of days at which a curve is computed: a chart shows no more."""
_STYLES = 6
_NO_ODDS = "A sum of discounted losses bounds no odds"
_DELTA_NOTE = ", nor does an epsilon with a delta alone: a result is at most e^epsilon times as probable, plus delta"


class BoundKey(NamedTuple):
    """Key of a bound: name, scope, assumption."""

    name: str
    scope: str
    assumption: str


@dataclass(frozen=True, slots=True)
class LossOverTime:
    """A bound by day of the data [nano-epsilon]; None where it is infinite."""

    days: tuple[str, ...]
    values: tuple[int | None, ...]


def bound_key(bound: LossBound) -> BoundKey:
    """Return the key of a bound."""
    return BoundKey(bound.name, bound.about, bound.assumption)


class _CachedLeakageBound:
    """A leakage bound with cached values: the bounds of many days need the same ones."""

    def __init__(self, leakage_bound: LeakageBoundLike) -> None:
        self.steps_per_day, self.assume = leakage_bound.steps_per_day, leakage_bound.assume
        self.share = leakage_bound.share
        self.methods, self.has_both_directions = leakage_bound.methods, leakage_bound.has_both_directions
        self.ages, self._leakage = leakage_bound.ages, cache(leakage_bound)
        self.exact_leakage, self.supremum = cache(leakage_bound.exact_leakage), cache(leakage_bound.supremum)
        self.total_variation = leakage_bound.total_variation

    def __call__(self, age: int, loss: float, *, direction: str, method: str) -> SupportsFloat:
        return self._leakage(age, loss, direction=direction, method=method)


def losses_over_time(
    accountants: Sequence[Accountant],
    rows: Sequence[ReleaseRecord],
    leakage_bound: LeakageBoundLike | None,
    *,
    points: int = POINTS,
) -> dict[BoundKey, LossOverTime]:
    """Return the bounds of all accountants after each of `points` days, evenly spaced and with the last day."""
    released = sorted((row for row in rows if row.state == "released"), key=lambda row: (row.day, row.seq))
    cached = None if leakage_bound is None else _CachedLeakageBound(leakage_bound)
    values: dict[BoundKey, dict[str, int | None]] = {}
    for day in svg.evenly_spaced(sorted({row.day for row in released}), points):
        rows_so_far = [row for row in released if row.day <= day]
        for accountant in accountants:
            for bound in accountant.bounds(rows_so_far, cached, None):
                values.setdefault(bound_key(bound), {})[day] = bound.value
    return {key: LossOverTime(tuple(by_day), tuple(by_day.values())) for key, by_day in values.items()}


@dataclass(frozen=True, slots=True)
class LabelledBound:
    """A bound of the statement with its letter in the table and the chart."""

    letter: str
    stated: StatedBound

    @property
    def key(self) -> BoundKey:
        """Return the key of the bound."""
        return BoundKey(self.stated.name, self.stated.scope, self.stated.assumption)

    @property
    def epsilon(self) -> float:
        """Return epsilon; `inf` if it is infinite."""
        return math.inf if self.stated.epsilon == INFINITE else float(self.stated.epsilon)

    @property
    def name(self) -> str:
        """Return the name of the bound for people: "total (delta 10⁻⁶)"."""
        return svg.with_powers(self.stated.name)

    @property
    def factor(self) -> str:
        """Return by how much odds may change, a dash if the bound limits none."""
        if not self.stated.factor:
            return "–"
        epsilon = self.stated.epsilon
        return "any factor" if epsilon == INFINITE else f"×\u00a0{short_factor(epsilon)}"


def labelled_bounds(statement: Statement) -> list[LabelledBound]:
    """Return the bounds of a statement in its order."""
    return [LabelledBound(_letter(index), bound) for index, bound in enumerate(statement.bounds)]


def _letter(index: int) -> str:
    """Return A to Z, then AA and on.

    >>> _letter(0), _letter(25), _letter(26)
    ('A', 'Z', 'AA')
    """
    return (_letter(index // 26 - 1) if index >= 26 else "") + chr(ord("A") + index % 26)


def bounds_table(bounds: Sequence[LabelledBound]) -> str:
    """Return the table of bounds with bars on one logarithmic scale."""
    scale = svg.logarithmic_axis([bound.epsilon for bound in bounds])
    rows = [
        (
            part("lettered", bound.letter, bound.name),
            part(
                "with_bar",
                short_number(bound.stated.epsilon),
                max(1, round(1000 * (scale.position(bound.epsilon) if bound.epsilon > 0 else 0.0))),
                "full" if bound.stated.is_unconditional else "open",
            ),
            bound.factor,
            bound.stated.limit,
            svg.with_powers(f"{bound.stated.scope} · {bound.stated.holds}"),
        )
        for bound in bounds
    ]
    has_model_days = any(bound.stated.conditional_days is not None for bound in bounds)
    alone = ", of the noisy releases alone" if has_model_days else ""
    of_delta = _DELTA_NOTE if any(bound.stated.delta is not None for bound in bounds) else ""
    caption = (
        "Upper bounds on epsilon after all released days, rounded up to three digits; limits are exact. Bars: "
        f"{svg.format_number(scale.low)} to {svg.format_number(scale.high)}, logarithmic; filled: assumption-free, "
        f"outlined: if the model holds{alone}. {_NO_ODDS}{of_delta}."
    )
    return text_table(
        caption, ("bound", "epsilon", "odds change by at most", "limit", "scope, and when it holds"), rows
    )


def growth_chart(bounds: Sequence[LabelledBound], curves: Mapping[BoundKey, LossOverTime]) -> Iterator[str]:
    """Yield the chart of the bounds by day of the data; nothing for one day. Bounds with equal curves share a line."""
    by_curve: dict[LossOverTime, list[LabelledBound]] = {}
    for bound in bounds:
        if bound.key in curves:
            by_curve.setdefault(curves[bound.key], []).append(bound)
    dates = sorted({date.fromisoformat(day) for curve in by_curve for day in curve.days})
    if len(dates) < 2:
        return
    lines = [
        svg.Line(
            _line_name(of_curve),
            [float(date.fromisoformat(day).toordinal()) for day in curve.days],
            [math.inf if value is None else to_float(value) for value in curve.values],
            letter=of_curve[0].letter,
            style=index % _STYLES,
            dots=False,
        )
        for index, (curve, of_curve) in enumerate(by_curve.items())
    ]
    at_end = "; ".join(f"{line.letter}, {line.name}: {svg.format_rounded_up(line.values[-1])}" for line in lines)
    about = f"Bounds by day of the data, on a logarithmic scale. At the end: {at_end}."
    y = svg.logarithmic_axis([value for line in lines for value in line.values])
    hover = svg.Hover(svg.day_text, "epsilon", svg.format_rounded_up)
    x, title = svg.date_axis(dates[0], dates[-1]), "How the bounds grew as days were released"
    yield svg.chart(title, about, [*lines, hover], x=x, y=y, y_title="epsilon (each step: ten times)", height=240)


def _line_name(bounds: Sequence[LabelledBound]) -> str:
    """Return the name of a line that several bounds share."""
    first, *further = bounds
    return f"{first.name}{''.join(f', {bound.letter}' for bound in further)}"
