r"""The (epsilon, delta) loss of a span of days: what all releases together say about everything one household did.

.. math:: \Pr[M(h) \in S] \le e^{\varepsilon} \Pr[M(h') \in S] + \delta \quad \text{for every set } S \text{ of results}

for any two accounts h, h' of one household that differ on the days of the span alone. The figure follows from the
rows of a ledger (sensitivity and scale) and assumes nothing about households. It holds in addition to the sum of the
pure losses and never exceeds it.

Decisions. Two deltas are always shown, so that nobody takes delta for a choice without a price. Up to about 14 days the
pure sum is the smaller one; figures within a hundredth of it are not shown unless they are promised.

[CKS] Canonne, Kamath, Steinke: The Discrete Gaussian for Differential Privacy. NeurIPS 2020.
https://doi.org/10.48550/arXiv.2004.00010
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import ClassVar, Final

from agedp_data.leakage.function import LeakageBoundLike
from agedp_data.notions.notion import ASSUMPTION_FREE, TOTAL_BOUND, HistoryRow, Kind, LossBound
from agedp_data.notions.notion_text import name_at_delta, scope_at_delta
from agedp_data.notions.publication import Publication
from agedp_data.notions.span_curves import SpanCurves

STANDARD_DELTAS: Final = (Decimal("1e-6"), Decimal("1e-9"))
YEAR: Final = 365


def bound_at_delta(name: str, value: int, kind: Kind, about: str, *, delta: Decimal, assumption: str = "") -> LossBound:
    """Return an (epsilon, delta) bound: its name and its scope say delta, and it bounds no change of odds by itself.

    Source: data structure, without a formula.

    Args:
        name: name of the bound of pure losses.
        value: its epsilon at delta [nano-epsilon].
        kind: its class.
        about: its scope.
        delta: probability [-].
        assumption: what it rests on, if it is conditional.
    """
    scope = scope_at_delta(about, delta)
    return LossBound(name_at_delta(name, delta), value, kind, scope, assumption, odds=False, delta=delta)


@dataclass(frozen=True, slots=True)
class SpanLoss:
    r"""Accountant of the (epsilon, delta) loss of any `days` consecutive days of the data, or of all days.

    .. math:: \max_t \varepsilon_{\sum_{k \in [t, t+w-1]} R^{(k)}}(\delta)

    Source: [CKS] Proposition 12 for the conversion; the window as in `WindowLoss` [nano-epsilon]. Calibration draws
    count once in every span that touches their period.

    References:
        [CKS] https://doi.org/10.48550/arXiv.2004.00010
    """

    publication: Publication = field(hash=False)
    delta: Decimal
    days: int | None = None
    curves: SpanCurves | None = field(default=None, hash=False)
    """Curves of the same history that another accountant has computed already."""
    name: ClassVar[str] = "span"

    @property
    def bound_name(self) -> str:
        """Return the name of the bound."""
        return name_at_delta(self._span_name, self.delta)

    @property
    def _span_name(self) -> str:
        return TOTAL_BOUND if self.days is None else f"window of {self.days} days"

    def epsilon(self, history: Sequence[HistoryRow]) -> int:
        """Return the loss at `delta`, rounded up [nano-epsilon]."""
        curves = self.curves or SpanCurves(self.publication)
        if self.days is None:
            return curves.total(history).epsilon(self.delta)
        return curves.windows(history, self.days).largest(self.delta)

    def bounds(
        self, history: Sequence[HistoryRow], leakage_bound: LeakageBoundLike | None, at: str | None
    ) -> list[LossBound]:
        """Return the bound of the span."""
        del leakage_bound, at
        return [self.bound_of(self.epsilon(history))]

    def bound_of(self, epsilon: int) -> LossBound:
        """Return the bound with a value [nano-epsilon]."""
        days = "all published days" if self.days is None else f"any {self.days} consecutive days"
        draws = ", and all its days of the calibration" if self.publication.draws and self.days is None else ""
        about = f"{days} of one household{draws}"
        return bound_at_delta(self._span_name, epsilon, ASSUMPTION_FREE, about, delta=self.delta)


def span_figures(
    history: Sequence[HistoryRow], publication: Publication, promised: Decimal | None = None
) -> list[LossBound]:
    """Return the (epsilon, delta) bounds that a statement shows, whether or not one is promised.

    They are those of all days and, where the days reach over more than a year, of any 365 days; at both standard deltas
    and at the promised one. Without a promised delta those that say something are shown: all deltas of a span for which
    one lies more than a hundredth below the pure sum.

    Source: `SpanLoss`.

    Args:
        history: rows of the ledger.
        publication: series of all contracts, and calibration draws.
        promised: the delta that is promised.

    Returns:
        Bounds without an assumption [nano-epsilon].
    """
    curves = SpanCurves(publication)
    numbers: Collection[int] = curves.of(history).keys()
    deltas = stated_deltas(promised)
    numbers = {*numbers, *curves.covered_ends(history)}
    reach = max(numbers, default=0) - min(numbers, default=0) + 1
    spans: list[int | None] = [None, *([YEAR] if numbers and reach > YEAR else [])]
    return [bound for days in spans for bound in _bounds_of(curves, history, days, deltas, publication, promised)]


def stated_deltas(promised: Decimal | None) -> tuple[Decimal, ...]:
    """Return the deltas of the figures of a statement, the largest first: the standard ones and the promised one.

    Source: data structure, without a formula.

    Args:
        promised: the delta that is promised; None for none.

    >>> [str(delta) for delta in stated_deltas(Decimal("1e-7"))]
    ['0.000001', '1E-7', '1E-9']
    """
    return tuple(sorted({*STANDARD_DELTAS, *([] if promised is None else [promised])}, reverse=True))


def _bounds_of(
    curves: SpanCurves,
    history: Sequence[HistoryRow],
    days: int | None,
    deltas: Sequence[Decimal],
    publication: Publication,
    promised: Decimal | None,
) -> Iterator[LossBound]:
    pure = curves.total(history).pure if days is None else curves.windows(history, days).largest(None)
    losses = [SpanLoss(publication, delta, days, curves) for delta in deltas]
    values = [loss.epsilon(history) for loss in losses]
    if 100 * min(values) < 99 * pure or (promised is not None and days is None):
        yield from (loss.bound_of(value) for loss, value in zip(losses, values, strict=True))
