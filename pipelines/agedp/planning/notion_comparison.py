"""What a promise would cost: one offer for each notion and method, and what they are compared by.

`smallest_epsilon` finds the smallest epsilon of a promise, in four digits, whose noise meets a target. Noise decreases,
or stays, as epsilon grows, and often is proportional to 1/epsilon: a few evaluations find it on the grid of the numbers
that a person would write down.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal
from typing import Final, NamedTuple

from agedp.planning.change_yardstick import ChangeYardstick
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
    """What would bring the noise of a series down to the day-to-day change, each alone.

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
    it earlier, else ""; on `unusable_days` the noise exceeds the day-to-day change of the mean beyond doubt.
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
    change: ChangeYardstick


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


_DIGITS: Final = 9000  # from 1.000 to 9.999
_FIRST_EXPONENT: Final = -9  # 1000 x 10^-9
_LAST: Final = 11 * _DIGITS  # 100,000: more is a typing error
_MAX_EXTRAPOLATIONS: Final = 12


class _TriedEpsilon(NamedTuple):
    grid_index: int
    noise: float | None


def smallest_epsilon(noise: Callable[[Decimal], float | None], target: float, *, guess: float) -> Decimal | None:
    """Return the smallest four-digit epsilon whose noise is at most the target; None if none up to 100,000 has it.

    The result was evaluated, and the next smaller epsilon does not meet the target.

    Args:
        noise: noise at an epsilon; it does not increase with epsilon; None if epsilon is too small for a release.
        target: largest noise that is accepted.
        guess: epsilon at which the search begins.

    >>> smallest_epsilon(lambda epsilon: 2 / float(epsilon), 0.3, guess=1.0)
    Decimal('6.667')
    """
    tried_index, low, high = _grid_index(guess), -1, _LAST + 1
    tried: list[_TriedEpsilon] = []
    while high - low > 1:
        latest = _TriedEpsilon(tried_index, noise(epsilon_at(tried_index)))
        if latest.noise is not None and latest.noise <= target:
            high = tried_index
        elif high > _LAST and tried and _cap_binds(tried[-1], latest):
            return None
        else:
            low = tried_index
        tried.append(latest)
        extrapolate = len(tried) < _MAX_EXTRAPOLATIONS or high > _LAST
        candidate = _extrapolated_index(tried[-2:], target) if extrapolate else (low + high) // 2
        tried_index = min(max(candidate, low + 1), high - 1)
    return None if high > _LAST else epsilon_at(high)


def _extrapolated_index(tried: list[_TriedEpsilon], target: float) -> int:
    """Return where the target is met if noise is a power of epsilon, fitted to the last two, else 1/amount."""
    index, noise = tried[-1]
    if noise is None or not math.isfinite(noise):
        return index + _DIGITS
    power, before = 1.0, tried[0]
    if before.grid_index != index and before.noise == noise:  # both spend all that a cap permits
        return _grid_index(float(epsilon_at(index)) / 2)
    if before.noise is not None and math.isfinite(before.noise) and before.noise != noise:
        apart = math.log(float(epsilon_at(index) / epsilon_at(before.grid_index)))
        power = max(math.log(before.noise / noise) / apart, 0.1)
    return _grid_index(float(epsilon_at(index)) * (noise / target) ** (1 / power))


def _cap_binds(before: _TriedEpsilon, now: _TriedEpsilon) -> bool:
    """Return whether a larger epsilon did not lower the noise: a cap decides."""
    return before.noise is not None and now.noise is not None and now.noise >= before.noise * (1 - 1e-9)


def epsilon_at(index: int) -> Decimal:
    """Return epsilon at an index of the grid, 1000 x 10^-9 at 0.

    >>> epsilon_at(0), epsilon_at(9001)
    (Decimal('0.000001000'), Decimal('0.00001001'))
    """
    decade, digits = divmod(index, _DIGITS)
    return Decimal(1000 + digits).scaleb(_FIRST_EXPONENT + decade)


def _grid_index(epsilon: float) -> int:
    """Return the index of the smallest epsilon of the grid that is not below this one, to float accuracy."""
    if not epsilon > 1e-6:
        return 0
    if epsilon >= 1e5:
        return _LAST
    exponent = Decimal(epsilon).adjusted() - 3
    digits = -int(-Decimal(epsilon).scaleb(-exponent) // 1)
    return min(_LAST, (exponent - _FIRST_EXPONENT) * _DIGITS + digits - 1000)
