"""What a promise would cost: one offer for each notion and method, and what they are compared by."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal

from agedp_data.notions.notion import LossBound
from pipelines.promise.changes import DayToDayChange


@dataclass(frozen=True, slots=True)
class ComparisonTarget:
    """What is to be kept: a risk [epsilon] or an error [kWh a home]; `own` if the run file's promise says which."""

    risk: Decimal | None = None
    error_kwh: float | None = None
    own: bool = False

    @property
    def asked(self) -> bool:
        """Tell whether somebody asked for it, beside the run file."""
        return not self.own and (self.risk is not None or self.error_kwh is not None)


@dataclass(frozen=True, slots=True)
class Remedies:
    """What would make an unusable series usable, each alone.

    `homes` in the smallest group; or `figure`, which the promise would then keep, until `last_day`, both None if the
    caps do not permit it; `epsilon` that a day would have to spend [1e-9].
    """

    homes: int
    epsilon: int
    figure: Decimal | None
    last_day: date | None


@dataclass(frozen=True, slots=True)
class SeriesCost:
    """What a promise comes to if every day is released when due: figure reached and losses [1e-9], noise [kWh a home].

    `beyond` says that it goes on after the last day looked at; `ended_by` is "epsilon_total" or "promise" if that ends
    it before, "" otherwise; `unusable_days` have more noise than the mean changes by.
    """

    reaches: int | None
    losses: tuple[int, ...]
    noise_kwh: float
    worst_kwh: float
    unusable_days: int
    first_day: date
    last_day: date
    published: tuple[str, str]
    skipped: int
    ended_by: str
    beyond: bool

    @property
    def epsilon(self) -> int:
        """Return the mean loss of a released day [1e-9], rounded up."""
        return -(-sum(self.losses) // len(self.losses))


@dataclass(frozen=True, slots=True)
class NotionOffer:
    """A notion and a method, and what it costs; `lacking` says why it cannot be had.

    `figure` (its name, what it is about, whether and what it assumes) is what is kept at or below `amount`; `keys` are
    those of [promise] that say so. `promised`: the run file says it now; `kept`: the target is met on every day asked
    for; `cheapest` of its kind. `ahead` is what days to come are bound to, if what is released already exceeds it.
    """

    notion: str
    method: str
    lacking: str = ""
    figure: LossBound | None = None
    amount: Decimal | None = None
    keys: Mapping[str, str | int] | None = None
    series: SeriesCost | None = None
    needs: Remedies | None = None
    promised: bool = False
    kept: bool = False
    cheapest: bool = False
    ahead: Decimal | None = None


@dataclass(frozen=True, slots=True)
class NotionComparison:
    """All offers for a target, and what they rest on: the series that decides, its smallest group, the days asked."""

    target: ComparisonTarget
    offers: tuple[NotionOffer, ...]
    series: str
    homes: int
    groups: str
    days: tuple[date, ...]
    endless: bool
    change: DayToDayChange


def marked(offers: Sequence[NotionOffer], target: ComparisonTarget) -> Iterator[NotionOffer]:
    """Yield the offers, the cheapest that keeps the target marked among those of its kind.

    Cheapest is the least noise for a risk, the least figure for an error; of equal ones the first.
    """
    best: dict[str, NotionOffer] = {}
    for one in offers:
        if one.kept and one.figure is not None:
            known = best.get(one.figure.kind)
            if known is None or _cost(one, target) < _cost(known, target):
                best[one.figure.kind] = one
    for one in offers:
        yield replace(one, cheapest=any(one is each for each in best.values()))


def _cost(offer: NotionOffer, target: ComparisonTarget) -> tuple[float, ...]:
    if offer.series is None:
        return (math.inf,)
    figure = math.inf if offer.amount is None else float(offer.amount)
    return (figure, offer.series.noise_kwh) if target.risk is None else (offer.series.noise_kwh, figure)
