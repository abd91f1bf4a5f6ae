"""What a promise would cost: one offer for each notion and method, and what they are compared by."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal

from agedp.planning.day_to_day_change import DayToDayChange
from agedp_data.notions.notion import LossBound


@dataclass(frozen=True, slots=True)
class ComparisonTarget:
    """A bound that alternatives are to keep, a risk [epsilon] or an error [kWh per household].

    `from_run_file` tells that the promise of the run file has set it.
    """

    risk: Decimal | None = None
    error_kwh: float | None = None
    from_run_file: bool = False

    @property
    def is_requested(self) -> bool:
        """Tell whether somebody asked for it, beside the run file."""
        return not self.from_run_file and (self.risk is not None or self.error_kwh is not None)


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
    """A notion and a method, and what it costs; `reason` tells why the promise does not exist.

    `figure` (name, scope, class and assumption) is the bound that stays at or below `amount` under these `keys` of
    [promise]. `promised`: the run file promises it now; `meets_target`: the target is met on every day of the
    comparison; `cheapest` of its kind. `ahead` is the bound on future days, if the released ones already exceed it.
    """

    notion: str
    method: str
    reason: str = ""
    figure: LossBound | None = None
    amount: Decimal | None = None
    keys: Mapping[str, str | int] | None = None
    series: SeriesCost | None = None
    needs: Remedies | None = None
    promised: bool = False
    meets_target: bool = False
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
    for offer in offers:
        if offer.meets_target and offer.figure is not None:
            cheapest = best.get(offer.figure.kind)
            if cheapest is None or _cost(offer, target) < _cost(cheapest, target):
                best[offer.figure.kind] = offer
    for offer in offers:
        yield replace(offer, cheapest=any(offer is candidate for candidate in best.values()))


def _cost(offer: NotionOffer, target: ComparisonTarget) -> tuple[float, ...]:
    if offer.series is None:
        return (math.inf,)
    figure = math.inf if offer.amount is None else float(offer.amount)
    return (figure, offer.series.noise_kwh) if target.risk is None else (offer.series.noise_kwh, figure)
