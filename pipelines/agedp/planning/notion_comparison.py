"""Run file + leakage bounds + roster counts + ledger -> the notions that meet a target, and the noise of each.

Public: it uses no reading. Each notion lists the alternatives in which it could be promised for this run file
(`Promise.candidates`). Each alternative is simulated day by day, as a run would do it, after the days released already,
under the run file's caps and every model in force. No notion is known here by name.

The days are those after the newest release up to the end of the period, at most a year, with enough households on
the roster. NOISE is the standard deviation of the noise of a daily mean, root mean square over the days [kWh per
household], for the smallest group of the mean with the most noise: it is what an interval in the release covers.

* The target is a RISK r, such as epsilon 2, or an ERROR e [kWh per household]. For a risk, each alternative is the
  promise whose own bound stays at or below r. For an error, it has the smallest bound, in four digits (an amount that a
  person would write down), at which the noise is at most e. Cheapest is the least noise
  for a risk, the smallest bound for an error.
* Noise decreases, or stays, as epsilon grows, and often is proportional to 1/epsilon: `smallest_epsilon` needs a few
  evaluations to find it on the grid of the numbers with four digits.
* A series is UNUSABLE if its noise exceeds the day-to-day change of the mean (`row_noise.change_yardstick`): its days
  cannot be told apart. Noise is inverse to the number of households, so either more households by that factor or a
  larger bound, found by simulating the days again, brings the noise down to the change. Both are shown for every
  series whose noise is above it, also where the error of the estimate leaves the verdict uncertain.

Decisions. The scope of the bound differs between alternatives, and noise cannot weigh scopes against each other. So the
cheapest is marked among the assumption-free alternatives and, separately, among those conditional on the model.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal
from fractions import Fraction
from itertools import islice
from typing import Any, Final, NamedTuple

from pydantic import ValidationError

from agedp.budget import DISTANT_DAY, ReleaseTerms, estimation_periods
from agedp.planning.forecast import ForecastView, simulate_days, smallest_group_size, upcoming_days
from agedp.planning.row_noise import ChangeYardstick, change_yardstick, root_mean_square
from agedp.signal_against_noise import rows_of_means
from agedp_data import mechanisms
from agedp_data.config import RunFile
from agedp_data.config.contract import contract_value
from agedp_data.config.model_section import ModelSection
from agedp_data.config.run_file import applies_to_a_bound
from agedp_data.epsilon import NANO, ceil_nano, exact_text, finite_or_none, floor_nano, format_epsilon
from agedp_data.errors import AgedpError, RunFileError
from agedp_data.ledger import ContractRecord
from agedp_data.notions import NOTIONS, Promise
from agedp_data.notions.enforcement import own_bound_name
from agedp_data.notions.notion import DAY_BOUND, LossBound, Notion
from agedp_data.notions.publication import Alternative, share_of, total_charge, unavailable
from agedp_data.roster import columns_text
from agedp_data.series.layered_mean import is_upper, series_text
from agedp_data.series.mean import is_daily_mean
from agedp_data.series.series_terms import layers_of
from agedp_data.smoothing.signal_estimate import Verdict

_NEGLIGIBLE_NANO: Final = 1000
_MAX_SIMULATED_DAYS: Final = 366


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

    @property
    def facts(self) -> dict[str, Any]:
        """Return the remedies as JSON."""
        end = {"bounds": _exact_or_none(self.bound), "last_day": self.last_day and self.last_day.isoformat()}
        return {"households": self.households_needed, "epsilon_a_day": format_epsilon(self.epsilon), **end}


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

    def facts(self, change_kwh: float) -> dict[str, Any]:
        """Return the cost as JSON, its noise also as a multiple of a change [kWh per household]."""
        losses = {"first": self.losses[0], "least": min(self.losses), "largest": max(self.losses), "mean": self.epsilon}
        noises = {"sd": self.noise_kwh, "sd_of_sum": self.sum_noise_kwh, "sd_worst_day": self.worst_kwh}
        days = {"unusable_days": self.unusable_days, "released_days": len(self.losses), "skipped_days": self.skipped}
        period = {"first_day": self.first_day.isoformat(), "last_day": self.last_day.isoformat()}
        published = {"first_published_on": self.published[0], "last_published_on": self.published[1]}
        return {
            **{f"epsilon_{name}_day": format_epsilon(loss) for name, loss in losses.items()},
            **{f"noise_{name}_kwh": finite_or_none(noise_kwh) for name, noise_kwh in noises.items()},
            "noise_of_change": finite_or_none(self.noise_kwh / change_kwh),
            **days,
            **period,
            **published,
            "ended_by": self.ended_by,
            "goes_on": self.beyond,
        }


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

    def facts(self, change: ChangeYardstick) -> dict[str, Any]:
        """Return the offer as JSON, its noise compared with a change."""
        names, series, bound = {"notion": self.notion, "method": self.method}, self.series, self.bound
        if series is None or bound is None:
            return {**names, "lacking": self.reason}
        reached = None if series.reaches is None else format_epsilon(series.reaches)
        scope = {"about": bound.about, "class": bound.kind, "assumption": bound.assumption}
        return {
            **names,
            "promise": self.keys,
            "bounds": _exact_or_none(self.epsilon),
            "figure": {"name": bound.name, "epsilon": reached, **scope},
            **series.facts(change.kwh),
            "usable": _USABLE[change.verdict(series.noise_kwh)],
            **({} if self.needs is None else {"needs": self.needs.facts}),
            **({} if self.ahead is None else {"bounds_ahead": exact_text(self.ahead)}),
            "promised": self.promised,
            "kept": self.meets_target,
            "cheapest": self.cheapest,
        }


def _exact_or_none(epsilon: Decimal | None) -> str | None:
    return None if epsilon is None else exact_text(epsilon)


_USABLE: Final[Mapping[Verdict, bool | None]] = {"visible": True, "hidden": False, "uncertain": None}


def model_days(model: ModelSection | None, contracts: Sequence[ContractRecord]) -> str:
    """Return the periods of the models that contracts or run file publish without noise, in words; "" for none."""
    return " and ".join(estimation_periods([*(contract.terms.model for contract in contracts), model]))


def can_compare(run: RunFile) -> bool:
    """Return whether notions can be compared for a run file, by the noise of a daily mean."""
    return bool(_daily_means(run))


def _daily_means(run: RunFile) -> dict[str, Any]:
    """Return the daily means of a run file by name, of layers the first."""
    return {name: series for name, series in run.series.items() if is_daily_mean(series) and not is_upper(name)}


@dataclass(frozen=True, slots=True)
class NotionComparison:
    """All offers for a target: the series that decides, the requested `days`, the households of its smallest group.

    `label` is the name of the series for people: of a layer, with its number and clamp. `delta` is that of the promise,
    `model_days` the periods of the models that are published without noise, in words, "" for none.
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
    delta: Decimal | None
    model_days: str

    @property
    def facts(self) -> dict[str, Any]:
        """Return the comparison as JSON."""
        target = self.target
        asked = {"error_kwh": target.error_kwh} if target.risk is None else {"risk": exact_text(target.risk)}
        return {
            "target": {**asked, "from": "the run file's promise" if target.from_run_file else "asked for"},
            "series": self.series,
            "noise_of": self.label,
            "by": self.groups,
            "households": self.households,
            "days": len(self.days),
            **self.change.facts,
            "offers": [entry.facts(self.change) for entry in self.entries],
        }


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


class SimulatedDays:
    """The coming days under the terms of a run file; `households` by day are those of the smallest group.

    Raises:
        RunFileError: the run file publishes no mean, or no coming day has enough households on the roster.
    """

    def __init__(self, terms: ReleaseTerms, view: ForecastView) -> None:
        self.terms, self.run, self.model = terms, terms.run, terms.model
        self.leakage_bounds = terms.leakage_bounds
        self.view = view
        coming = list(islice(upcoming_days(self.run, view.rows), _MAX_SIMULATED_DAYS))
        self.name = self._noisiest(next(iter(coming), self.run.schedule.first_day))
        self.sensitivity = self.run.series[self.name].sensitivity("replacement")
        roster, by, least = view.roster, self.run.series[self.name].by, self.run.population.min_households
        sizes = {day: smallest_group_size(roster, day, by, least) for day in coming}
        self.households = {day: households for day, households in sizes.items() if households}
        if not coming:
            raise RunFileError("every day of the period is released or skipped; there is nothing left to promise")
        if not self.households:
            raise RunFileError(
                "no remaining day has enough households on the roster ([population] min_households = "
                f"{least}); there is nothing to promise"
            )
        self.change = change_yardstick(rows_of_means(view.rows, view.contracts), self.name)

    def _noisiest(self, day: date) -> str:
        """Return the mean, or layer 1 of one, with the most noise at the same loss: width / (share x households)."""
        means = _daily_means(self.run)
        if not means:
            raise RunFileError("a comparison states costs as the noise of a daily mean; the run file publishes none")
        least = self.run.population.min_households

        def weight(name: str) -> Fraction:
            households = smallest_group_size(self.view.roster, day, means[name].by, least) or 1
            return Fraction(means[name].width_wh) / (share_of(means[name]) * households)

        return max(means, key=weight)

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
        losses = tuple(row.loss for row in simulated.released)
        days = [date.fromisoformat(row.day) for row in simulated.released]
        dates, households = [row.published_on for row in simulated.released], [self.households[day] for day in days]
        layers = layers_of(self.name, run.series)  # whose noises are independent
        noise_of = {loss: self.noise_of(loss, run) for loss in {*losses}}
        sum_noise_of = {loss: math.hypot(*(self.noise_of(loss, run, layer) for layer in layers)) for loss in noise_of}
        noises_kwh = [noise_of[loss] / number for loss, number in zip(losses, households, strict=True)]
        sums_kwh = [sum_noise_of[loss] / number for loss, number in zip(losses, households, strict=True)]
        fits_total = not simulated.ended or run.notion.fits_total(simulated.history, DISTANT_DAY, losses[-1])
        return SeriesCost(
            reaches=next((bound.value for bound in bounds if bound.name == bound_name), None),
            losses=losses,
            noise_kwh=root_mean_square(noises_kwh),
            sum_noise_kwh=root_mean_square(sums_kwh),
            worst_kwh=max(noises_kwh),
            unusable_days=sum(self.change.verdict(noise_kwh) == "hidden" for noise_kwh in noises_kwh),
            first_day=days[0],
            last_day=days[-1],
            published=(min(dates), max(dates)),
            skipped=len(simulated.skipped),
            ended_by=("promise" if fits_total else "epsilon_total") if simulated.ended else "",
            beyond=self.is_endless and not simulated.ended,
        )

    def noise_of(self, loss: int, run: RunFile, name: str = "") -> float:
        """Return the noise of the sum [kWh] for a day with this loss, up to the rounding of the drawn noise's scale.

        It is that of the mean that is compared, or of the layer `name` of it.
        """
        name = name or self.name
        part = int(run.notion.part_of_day(name, share_of(run.series[name])) * loss)
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
        return ceil_nano(self.sensitivity / (scale * float(share_of(self.run.series[self.name]))))


def compare_promises(terms: ReleaseTerms, view: ForecastView, target: ComparisonTarget) -> NotionComparison:
    """Compare every notion and method for a target; nothing is drawn or written.

    Raises:
        RunFileError: no mean is published, or no remaining day has enough households on the roster.
    """
    return _PromiseSearch(terms, view).compared(target)


class _PromiseSearch:
    """Simulates the days of one run file under one promise after the other."""

    def __init__(self, terms: ReleaseTerms, view: ForecastView) -> None:
        self.run, self.days = terms.run, SimulatedDays(terms, view)
        self._simulated: dict[tuple[str, str, Decimal], tuple[RunFile, SeriesCost | None]] = {}

    def compared(self, requested: ComparisonTarget) -> NotionComparison:
        target, view = self._target(requested), self.run.comparison
        entries = [
            self._entry(notion, alternative, target) for notion in NOTIONS for alternative in notion.candidates(view)
        ]
        if not any(entry.promised for entry in entries):
            entries.insert(0, self._entry_of_run_file(target))
        days, series = self.days, self.run.series[self.days.name]
        return NotionComparison(
            target,
            tuple(marked(entries, target)),
            series=days.name,
            label=series_text(days.name, series),
            households=min(days.households.values()),
            groups=columns_text(series.by),
            days=tuple(days.households),
            endless=days.is_endless,
            change=days.change,
            delta=self.run.promise.delta,
            model_days=model_days(self.run.model, days.view.contracts),
        )

    def _target(self, requested: ComparisonTarget) -> ComparisonTarget:
        """Return the requested target, else the limit of the run file's own bound.

        A bound without a limit of its own is simulated. If it is negligible (an archive of old days) or infinite, the
        loss of a day takes its place.
        """
        if requested.risk is not None or requested.error_kwh is not None:
            return requested
        notion = self.run.notion
        bound_name = _bound_name(notion, self._first())
        limit = notion.limits.get(bound_name)
        if limit is None:
            series = self.days.simulate(self.run, bound_name)
            limit = None if series is None else series.reaches
        if limit is None or limit < _NEGLIGIBLE_NANO:
            limit = notion.limits[DAY_BOUND] or 0
        return ComparisonTarget(risk=Decimal(limit) / NANO, from_run_file=True)

    def _first(self) -> Alternative:
        """Return the first alternative of the run file's notion."""
        return next(iter(type(self.run.promise).candidates(self.run.comparison)), unavailable(""))

    def _entry(self, notion: type[Promise], candidate: Alternative, target: ComparisonTarget) -> ComparisonEntry:
        if candidate.reason:
            return ComparisonEntry(notion.name, candidate.method, candidate.reason)
        try:
            epsilon = target.risk
            if epsilon is None:
                epsilon = self._smallest_epsilon(notion, candidate, target.error_kwh or 0)
            if epsilon is None:
                return ComparisonEntry(notion.name, candidate.method, self._no_epsilon_reason(target.error_kwh or 0))
            entry = self._priced_entry(*self._priced(notion, candidate, epsilon), candidate, target)
            if entry.series is None or not self.days.change.kwh < entry.series.noise_kwh < math.inf:
                return entry
            return replace(entry, needs=self._remedies(notion, candidate, entry.series, epsilon))
        except AgedpError as error:
            return ComparisonEntry(notion.name, candidate.method, str(error).removeprefix(f"{self.run.name}: "))

    def _entry_of_run_file(self, target: ComparisonTarget) -> ComparisonEntry:
        """Return the run file's promise as it stands, where no candidate is the same."""
        candidate, change = self._first(), self.days.change.kwh
        series = self.days.simulate(self.run, _bound_name(self.run.notion, candidate))
        entry = self._priced_entry(self.run, series, candidate, target)
        if series is not None and change < series.noise_kwh < math.inf:
            needs = Remedies(self._households_needed(series), self.days.loss_for(change), None, None)
            with suppress(AgedpError):
                needs = self._remedies(type(self.run.promise), candidate, series, entry.epsilon)
            entry = replace(entry, needs=needs)
        return replace(entry, method="as the run file says", promised=True)

    def _priced(
        self, notion: type[Promise], candidate: Alternative, epsilon: Decimal
    ) -> tuple[RunFile, SeriesCost | None]:
        """Return the run file with a candidate's promise of an epsilon, and its simulation; each is simulated once."""
        key = notion.name, candidate.method, epsilon
        if key not in self._simulated:
            run = self._promising(notion, candidate, epsilon)
            self._simulated[key] = run, self.days.simulate(run, _bound_name(run.notion, candidate))
        return self._simulated[key]

    def _priced_entry(
        self, run: RunFile, series: SeriesCost | None, candidate: Alternative, target: ComparisonTarget
    ) -> ComparisonEntry:
        notion = run.notion
        bound_name = _bound_name(notion, candidate)
        if series is None:
            return ComparisonEntry(notion.name, candidate.method, self._reason_without_release(notion))
        bounds = notion.bounds(self.days.view.rows, self.days.leakage_bounds[0], None)
        bound = next(bound for bound in bounds if bound.name == bound_name)
        limit, spent_bound = self._permitted(notion.limits.get(bound_name, series.reaches)), bound.value or 0
        is_complete = len(series.losses) == len(self.days.households)
        return ComparisonEntry(
            notion.name,
            candidate.method,
            bound=bound,
            epsilon=None if limit is None else Decimal(max(limit, spent_bound)) / NANO,
            keys=contract_value(run.promise),
            series=series,
            promised=run.promise == self.run.promise,
            meets_target=is_complete and self._meets_target(series, target, spent_bound),
            ahead=None if limit is None or limit >= spent_bound else Decimal(limit) / NANO,
        )

    def _reason_without_release(self, notion: Notion) -> str:
        """Return why a promise releases no day at all."""
        if obstacle := next(filter(None, map(notion.obstacle, self.days.leakage_bounds)), ""):
            return obstacle
        model = ["this model"] if self.days.model else []
        released = ["what is released already"] if self.days.view.rows else []
        draws = ["the calibration draws"] if notion.charges else []
        conditions = " and ".join(["these caps", *model, *released, *draws])
        return f"releases no day: under {conditions} no loss, however small, keeps the bound"

    def _permitted(self, limit: int | None) -> int | None:
        """Return a limit, at most the loss that the caps permit on all requested days: no bound exceeds it."""
        if limit is None or self.days.is_endless:
            return limit
        spent = sum(row.loss for row in self.days.view.rows) + total_charge(self.run.notion.charges)
        return min(limit, spent + self.run.promise.day_cap * len(self.days.households))

    def _meets_target(self, series: SeriesCost, target: ComparisonTarget, spent_bound: int) -> bool:
        """Return whether the target is met; the run file's own target is at least the bound of the released days."""
        if target.error_kwh is not None:
            return series.noise_kwh <= target.error_kwh
        if target.risk is None or series.reaches is None:
            return False
        return series.reaches <= max(floor_nano(target.risk), spent_bound if target.from_run_file else 0)

    def _promising(self, notion: type[Promise], candidate: Alternative, epsilon: Decimal) -> RunFile:
        """Return the run file with this promise in place of its own, under its caps, with its delta where it applies.

        Raises:
            RunFileError: there is no such promise for this run file.
        """
        own = self.run.promise
        keys: dict[str, object] = {"max_day_epsilon": own.max_day_epsilon, "epsilon_total": own.epsilon_total}
        keys |= {} if own.delta is None else {"delta": own.delta}
        keys |= {"accept": own.accept} if own.accept else {}
        keys |= {} if self.run.schedule.mode == "archive" else {"age_days": own.age_days}
        try:
            promise = notion.model_validate({"notion": notion.name, **keys, **candidate.keys(epsilon)})
        except ValidationError as error:
            problem = error.errors(include_url=False)[0]
            place = [*problem["loc"], *problem.get("ctx", {}).get("at", ())]
            raise RunFileError(f"{'.'.join(map(str, place))} {problem['msg']}".strip()) from None
        if not applies_to_a_bound(promise):
            promise = promise.model_copy(update={"delta": None})
        return self.run.promising(promise)

    def _smallest_epsilon(
        self, notion: type[Promise], candidate: Alternative, error_kwh: float, *, guess: float | None = None
    ) -> Decimal | None:
        """Return the smallest epsilon of a candidate with at most this noise; None if the caps do not permit it.

        Raises:
            RunFileError: no epsilon makes such a promise possible.
        """
        with suppress(AgedpError):  # the epsilon does not matter here; the reason is found below
            if self.days.exceeds_noise(error_kwh, self._promising(notion, candidate, Decimal(1))):
                return None
        errors: list[AgedpError] = []

        def noise_of(epsilon: Decimal) -> float | None:
            try:
                series = self._priced(notion, candidate, epsilon)[1]
            except AgedpError as error:
                errors.append(error)
                return None
            errors.clear()
            return None if series is None else series.noise_kwh

        epsilon = smallest_epsilon(noise_of, error_kwh, guess=guess or self.days.loss_for(error_kwh) / NANO)
        if epsilon is None and errors:
            raise errors[0]
        return epsilon

    def _households_needed(self, series: SeriesCost) -> int:
        return math.ceil(min(self.days.households.values()) * series.noise_kwh / self.days.change.kwh)

    def _remedies(
        self, notion: type[Promise], candidate: Alternative, series: SeriesCost, epsilon: Decimal | None
    ) -> Remedies:
        change = self.days.change.kwh
        households_needed, loss = self._households_needed(series), self.days.loss_for(change)
        guess = float(epsilon) * series.noise_kwh / change if epsilon else None
        larger = self._smallest_epsilon(notion, candidate, change, guess=guess)
        remedied = None if larger is None else self._priced(notion, candidate, larger)[1]
        if remedied is None:
            return Remedies(households_needed, loss, larger, None)
        return Remedies(households_needed, remedied.epsilon, larger, remedied.last_day)

    def _no_epsilon_reason(self, error_kwh: float) -> str:
        """Return why no bound has so little noise: the caps, or no bound is finite."""
        promise, needed_text = self.run.promise, f"a day would need epsilon {self.days.loss_for(error_kwh) / NANO:.4g}"
        if self.days.exceeds_noise(error_kwh, self.run):
            return f"this noise is not possible under max_day_epsilon = {promise.max_day_epsilon:f}: {needed_text}"
        return f"no finite bound has this little noise under these caps: {needed_text}"


def _bound_name(notion: Notion, candidate: Alternative) -> str:
    """Return the name of the bound that a candidate limits: its own, or the notion's, or a day's."""
    return candidate.bound_name or own_bound_name(notion.limits) or DAY_BOUND
