r"""Loss about the present of all aged releases together, as (epsilon, delta) bounds under a chain.

The idea: the bound of a span (`span_loss`) is about everything that a household did on the released days. Under a
Markov chain the whole past says about the present what the newest released day says, and that has the total variation
Delta of its age. So the profile of the span ages as one release does (`accounting.approximate_ageing`).

Decisions:

* Without the Markov assumption nothing is returned: a declared curve bounds what one day says about the present, and
  leaving one release of many to it gains next to nothing.
* It is returned where it says more than both bounds beside it: the risk, composed from pure losses, and the bound of
  the span without ageing. Households that mix fast have the smaller risk, those that hardly mix the one of the span.
  A pure risk has a smaller epsilon at a delta already; less than that says nothing.
* Calibration draws are not aged. A draw with loss c has probabilities within e^c for all pasts of a household, so c is
  added, and delta of the releases is divided by e^c first.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from typing import ClassVar

import numpy as np

from agedp_data.accounting.approximate_ageing import aged_epsilon
from agedp_data.accounting.renyi import compose
from agedp_data.epsilon import floor_nano, to_float
from agedp_data.leakage.function import LeakageBoundLike
from agedp_data.notions.aged_loss import ABOUT, RISK, AgedLoss, assumed
from agedp_data.notions.notion import HistoryRow, LossBound
from agedp_data.notions.publication import Publication
from agedp_data.notions.span_curves import Span, SpanCurves
from agedp_data.notions.span_loss import bound_at_delta

_ROUNDED_DOWN = 1 - 1e-12


@dataclass(frozen=True, slots=True)
class AgedSpanLoss:
    r"""Accountant of the (epsilon, delta) loss of all releases about the present, at each of `deltas`.

    For any two states s, s' of the household now, and every set S of results,

    .. math:: \Pr[S \mid s] \le e^{\varepsilon} \Pr[S \mid s'] + \delta, \qquad
        \varepsilon = c + \ln \bigl( 1 + \Delta\,(e^{\varepsilon_R(\delta e^{-c} / \Delta)} - 1) \bigr)

    with R the curve of all rows published until then, Delta the total variation at the age of the newest of them, and c
    the loss of the calibration draws; the largest over `at` and all later publications.

    `risk` is the accountant of the smallest pure risk: its age, secret and draws. `publication` is what is published.

    Source: `aged_epsilon`; the ages as in `AgedLoss` [nano-epsilon].
    """

    risk: AgedLoss
    publication: Publication = field(hash=False)
    deltas: tuple[Decimal, ...]
    name: ClassVar[str] = "age-dependent"

    def bounds(
        self, history: Sequence[HistoryRow], leakage_bound: LeakageBoundLike | None, at: str | None
    ) -> list[LossBound]:
        """Return the loss at each delta; nothing without a chain, or if it says no more than the bounds beside it."""
        if leakage_bound is None or leakage_bound.assume != "markov":
            return []
        spans = self._spans(history, leakage_bound, at)
        total = SpanCurves(self.publication).total(history)
        unaged = [total.epsilon(delta) for delta in self.deltas]
        losses = [min(loss, self._loss(spans, delta)) for loss, delta in zip(unaged, self.deltas, strict=True)]
        if losses == unaged:
            return []
        pure_risk = self.risk.bounds(history, leakage_bound, at)[0].value
        if pure_risk is not None:
            if all(loss >= _at_delta(pure_risk, delta) for loss, delta in zip(losses, self.deltas, strict=True)):
                return []
            losses = [min(loss, pure_risk) for loss in losses]
        scope = f"{ABOUT[self.risk.secret]}, by all releases together{self._age_text}"
        name, assumption = f"{RISK} of all days", assumed(leakage_bound)
        return [
            bound_at_delta(name, loss, "conditional", scope, delta=delta, assumption=assumption)
            for delta, loss in zip(self.deltas, losses, strict=True)
        ]

    @property
    def _age_text(self) -> str:
        days = self.risk.age_days
        return f", the newest of whose days is at least {days} day{'s' * (days > 1)} old" if days else ""

    def _spans(
        self, history: Sequence[HistoryRow], leakage_bound: LeakageBoundLike, at: str | None
    ) -> list[tuple[float, Span]]:
        """Return total variation and span of those publications that no later one of the same age contains."""
        curves, spans, rows_at_age = SpanCurves(self.publication), [], {}
        for rows, age in self.risk.publications(history, at, leakage_bound.steps_per_day):
            spans += [curves.of_row(row) for row in rows]
            if age is not None:
                rows_at_age[age] = len(spans)
        return [(leakage_bound.total_variation(age), _together(spans[:count])) for age, count in rows_at_age.items()]

    def _loss(self, spans: Sequence[tuple[float, Span]], delta: Decimal) -> int:
        """Return the largest aged loss at a delta, with the calibration draws."""
        charge = self.risk.charge
        part = Fraction(delta) * Fraction(math.exp(-to_float(charge)) * _ROUNDED_DOWN) if charge else delta
        aged = (aged_epsilon(span.curve, distance, part, pure=span.pure) for distance, span in spans)
        return max(aged, default=0) + charge


def _at_delta(risk: int, delta: Decimal) -> int:
    """Return the epsilon at a delta of any release with this pure loss [nano-epsilon].

    Randomised response, the worst of them, is (x, delta)-private for e^x = e^risk - delta (1 + e^risk).
    """
    epsilon = to_float(risk)
    part = float(delta) * (1 + math.exp(-epsilon))
    return max(0, floor_nano(epsilon + math.log1p(-part))) if part < 1 else 0


def _together(spans: Sequence[Span]) -> Span:
    return Span(compose(np.array([span.curve for span in spans])), sum(span.pure for span in spans))
