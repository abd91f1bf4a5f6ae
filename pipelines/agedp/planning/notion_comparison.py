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
        """Whether the command asks for it; otherwise it is the run file's own bound."""
        return not self.from_run_file and (self.risk is not None or self.error_kwh is not None)


@dataclass(frozen=True, slots=True)
class Remedies:
    """What would make an unusable series usable, each alone.

    Either `households_needed` in the smallest group, or a limit `bound` of the promise, which lasts until `last_day`
    (both None if the caps do not permit it). `epsilon` is the loss of a day that this takes [nano-epsilon].
    """

    households_needed: int
    epsilon: int
    bound: Decimal | None
    last_day: date | None


@dataclass(frozen=True, slots=True)
class SeriesCost:
    """Cost of a promise if every day is released when due: bound and losses [nano-epsilon], noise [kWh per household].

    `beyond`: the series continues after the last simulated day; `ended_by` is "epsilon_total" or "promise" if that ends
    it earlier, else ""; on `unusable_days` the noise exceeds the day-to-day change of the mean.
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
class ComparisonEntry:
    """A notion with a method and its cost; `reason` is why the promise is not possible, else "".

    `bound` (name, scope, class and assumption) is the bound that stays at or below `epsilon` under these `keys` of
    [promise]. `promised`: the run file promises it now; `meets_target`: the target is met on every day of the
    comparison; `cheapest` of its kind. `ahead` is the bound on future days, if the released ones already exceed it.
    """

    notion: str
    method: str
    reason: str = ""
    bound: LossBound | None = None
    epsilon: Decimal | None = None
    keys: Mapping[str, str | int] | None = None
    series: SeriesCost | None = None
    needs: Remedies | None = None
    promised: bool = False
    meets_target: bool = False
    cheapest: bool = False
    ahead: Decimal | None = None


@dataclass(frozen=True, slots=True)
class NotionComparison:
    """All offers for a target: the series that decides, the requested `days`, the households of its smallest group."""

    target: ComparisonTarget
    entries: tuple[ComparisonEntry, ...]
    series: str
    households: int
    groups: str
    days: tuple[date, ...]
    endless: bool
    change: DayToDayChange


def marked(entries: Sequence[ComparisonEntry], target: ComparisonTarget) -> Iterator[ComparisonEntry]:
    """Yield the offers, the cheapest that meets the target marked among those of its class.

    Cheapest is the least noise for a risk, the smallest bound for an error; of equal offers the first.
    """
    best: dict[str, ComparisonEntry] = {}
    for entry in entries:
        if entry.meets_target and entry.bound is not None:
            cheapest = best.get(entry.bound.kind)
            if cheapest is None or _cost(entry, target) < _cost(cheapest, target):
                best[entry.bound.kind] = entry
    for entry in entries:
        yield replace(entry, cheapest=any(entry is candidate for candidate in best.values()))


def _cost(entry: ComparisonEntry, target: ComparisonTarget) -> tuple[float, ...]:
    if entry.series is None:
        return (math.inf,)
    bound = math.inf if entry.epsilon is None else float(entry.epsilon)
    return (bound, entry.series.noise_kwh) if target.risk is None else (entry.series.noise_kwh, bound)
