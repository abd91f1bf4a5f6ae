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
from fractions import Fraction
from itertools import islice
from typing import Final, NamedTuple

from agedp.budget import DISTANT_DAY, ReleaseTerms
from agedp.planning.forecast import ForecastView, SimulatedSeries, simulate_days, smallest_group_size, upcoming_days
from agedp.planning.row_noise import ChangeYardstick, change_yardstick
from agedp.signal_against_noise import rows_of_means
from agedp_data import mechanisms
from agedp_data.config import RunFile
from agedp_data.epsilon import NANO, ceil_nano
from agedp_data.errors import RunFileError
from agedp_data.notions.notion import LossBound, Notion
from agedp_data.series.layered_mean import is_upper
from agedp_data.series.mean import is_daily_mean
from agedp_data.series.series_terms import layers_of


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

    `sum_noise_kwh` is that of the sum of the layers of which the noise is about the first; without layers both are one.
    `beyond`: the series continues after the last simulated day; `ended_by` is "epsilon_total" or "promise" if that ends
    it earlier, else ""; on `unusable_days` the noise exceeds the day-to-day change of the mean beyond doubt.
    """

    reaches: int | None
    losses: tuple[int, ...]
    noise_kwh: float
    sum_noise_kwh: float
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
    """All offers for a target: the series that decides, the requested `days`, the households of its smallest group.

    `label` is the name of the series for people: of a layer, with its number and clamp.
    """

    target: ComparisonTarget
    entries: tuple[ComparisonEntry, ...]
    series: str
    label: str
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


# --------------------------------------------------------------------------------------------------
# The coming days of a run file, and the simulation of a promise on them: losses, noise, first and last date.
#
# The days are those after the newest release up to the end of the period, at most a year, with enough households on
# the roster. NOISE is the standard deviation of the noise of a daily mean, root mean square over the days [kWh per
# household], for the smallest group of the mean with the most noise: it is what an interval in the release covers.
# --------------------------------------------------------------------------------------------------

_MAX_SIMULATED_DAYS: Final = 366


class SimulatedDays:
    """The coming days under the terms of a run file; `households` by day are those of the smallest group.

    Raises:
        RunFileError: the run file publishes no mean, or no coming day has enough households on the roster.
    """

    def __init__(self, terms: ReleaseTerms, view: ForecastView) -> None:
        self.terms = terms
        self.run: RunFile = terms.run
        self.model = terms.model
        self.leakage_bounds = terms.leakage_bounds
        self.view = view
        self.name = self._noisiest()
        self.sensitivity = self.run.series[self.name].sensitivity("replacement")
        roster, by, least = view.roster, self.run.series[self.name].by, self.run.population.min_households
        sizes = {day: smallest_group_size(roster, day, by, least) for day in self._days()}
        self.households = {day: households for day, households in sizes.items() if households}
        if not self._days():
            raise RunFileError("every day of the period is released or skipped; there is nothing left to promise")
        if not self.households:
            raise RunFileError(
                "no remaining day has enough households on the roster ([population] min_households = "
                f"{self.run.population.min_households}); there is nothing to promise"
            )
        self.change = change_yardstick(rows_of_means(view.rows, view.contracts), self.name)

    def _noisiest(self) -> str:
        """Return the mean, or layer 1 of one, with the most noise at the same loss: width / (share x households)."""
        means = {
            name: series for name, series in self.run.series.items() if is_daily_mean(series) and not is_upper(name)
        }
        if not means:
            raise RunFileError("a comparison states costs as the noise of a mean; the run file publishes none")
        day = next(iter(self._days()), self.run.schedule.first_day)

        def weight(name: str) -> Fraction:
            households = (
                smallest_group_size(self.view.roster, day, means[name].by, self.run.population.min_households) or 1
            )
            return Fraction(means[name].width_wh) / (Fraction(self.run.shares[name]) * households)

        return max(means, key=weight)

    def _days(self) -> list[date]:
        """Return the days after the newest release, at most a year of them."""
        return list(islice(upcoming_days(self.run, self.view.rows), _MAX_SIMULATED_DAYS))

    @property
    def is_endless(self) -> bool:
        """Return whether the period continues after these days."""
        last = self.run.schedule.last_day
        return last is None or max(self.households) < last

    def simulate(self, run: RunFile, bound_name: str) -> SeriesCost | None:
        """Return the cost of releasing the days under a run file's promise, None if no day is released."""
        simulated = simulate_days(replace(self.terms, run=run), self.view, list(self.households))
        if not simulated.released:
            return None
        bounds = run.notion.bounds(simulated.history, self.leakage_bounds[0], None)
        bound_value = next((bound.value for bound in bounds if bound.name == bound_name), None)
        losses = tuple(row.loss for row in simulated.released)
        days = [date.fromisoformat(row.day) for row in simulated.released]
        noises_kwh = [self.noise_of(loss, run) / self.households[day] for loss, day in zip(losses, days, strict=True)]
        sums_kwh = [
            self._noise_of_sum(loss, run) / self.households[day] for loss, day in zip(losses, days, strict=True)
        ]
        dates = [row.published_on for row in simulated.released]
        unusable = sum(self.change.verdict(noise_kwh) == "hidden" for noise_kwh in noises_kwh)
        noise = _root_mean_square(noises_kwh), _root_mean_square(sums_kwh), max(noises_kwh), unusable
        published, ended_by = (min(dates), max(dates)), _ended_by(run.notion, simulated)
        beyond = self.is_endless and not simulated.ended
        first, last, skipped = days[0], days[-1], len(simulated.skipped)
        return SeriesCost(bound_value, losses, *noise, first, last, published, skipped, ended_by, beyond)

    def noise_of(self, loss: int, run: RunFile) -> float:
        """Return the noise of the sum [kWh] for a day with this loss, up to the rounding of the drawn noise's scale."""
        return self._noise_of_series(self.name, loss, run)

    def _noise_of_sum(self, loss: int, run: RunFile) -> float:
        """Return the noise of the sum of all layers of the mean [kWh]: their noises are independent."""
        return math.hypot(*(self._noise_of_series(layer, loss, run) for layer in layers_of(self.name, run.series)))

    def _noise_of_series(self, name: str, loss: int, run: RunFile) -> float:
        part = int(run.notion.part_of_day(name, Fraction(run.shares[name])) * loss)
        if part <= 0:
            return math.inf
        return mechanisms.standard_deviation(self.run.series[name].sensitivity("replacement") * NANO / part) / 1000.0

    def exceeds_noise(self, error_kwh: float, run: RunFile) -> bool:
        """Return whether even days that spend the day cap have more noise than this."""
        return self.noise_of(run.promise.day_cap, run) / max(self.households.values()) > error_kwh

    def loss_for(self, noise_kwh: float) -> int:
        """Return the loss of a day with this noise in the smallest group, rounded up [nano-epsilon].

        The standard deviation of discrete Laplace noise is 1/(sqrt 2 sinh(1/(2 scale))), in the unit of the scale.
        """
        sd_wh = noise_kwh * 1000.0 * min(self.households.values())
        scale = 1 / (2 * math.asinh(1 / (math.sqrt(2) * sd_wh)))
        return ceil_nano(self.sensitivity / (scale * float(self.run.shares[self.name])))


def _root_mean_square(values: Sequence[float]) -> float:
    return math.sqrt(sum(value**2 for value in values) / len(values))


def _ended_by(notion: Notion, simulated: SimulatedSeries) -> str:
    if not simulated.ended:
        return ""
    needed = simulated.released[-1].loss
    return "promise" if notion.fits_total(simulated.history, DISTANT_DAY, needed) else "epsilon_total"
