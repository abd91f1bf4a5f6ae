"""Run file + leakage bounds + roster counts + ledger -> the notions that meet a target, and the noise of each.

Public: it uses no reading. Each notion lists the alternatives in which it could be promised for this run file
(`Promise.candidates`). Each alternative is simulated day by day, as a run would do it, after the days released already,
under the run file's caps and every model in force. No notion is known here by name.

* The target is a RISK r, such as epsilon 2, or an ERROR e [kWh per household]. For a risk, each alternative is the
  promise whose own bound stays at or below r. For an error, it has the smallest bound, in four digits (an amount that a
  person would write down), at which the noise is at most e. Cheapest is the least noise
  for a risk, the smallest bound for an error.
* A series is UNUSABLE if its noise (`notion_comparison`) exceeds the day-to-day change of the mean
  (`change_yardstick`): its days cannot be told apart. Noise is inverse to the number of households, so either more
  households by that factor or a larger bound, found by simulating the days again, brings the noise down to the change.
  Both are shown for every series whose noise is above it, also where the error of the estimate leaves the verdict
  uncertain.

Decisions. The scope of the bound differs between alternatives, and noise cannot weigh scopes against each other. So the
cheapest is marked among the assumption-free alternatives and, separately, among those conditional on the model.
"""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import replace
from decimal import Decimal
from typing import Final

from pydantic import ValidationError

from agedp.budget import ReleaseTerms
from agedp.planning.forecast import ForecastView
from agedp.planning.notion_comparison import (
    ComparisonEntry,
    ComparisonTarget,
    NotionComparison,
    Remedies,
    SeriesCost,
    SimulatedDays,
    marked,
    smallest_epsilon,
)
from agedp_data.config import RunFile
from agedp_data.config.contract import contract_value
from agedp_data.config.run_file import applies_to_a_bound
from agedp_data.epsilon import NANO, floor_nano
from agedp_data.errors import AgedpError, RunFileError
from agedp_data.notions import NOTIONS, Promise
from agedp_data.notions.enforcement import own_bound_name
from agedp_data.notions.notion import DAY_BOUND, Notion
from agedp_data.notions.publication import Alternative, total_charge, unavailable
from agedp_data.roster import columns_text
from agedp_data.series.layered_mean import series_text

_NEGLIGIBLE_NANO: Final = 1000


def compare_promises(terms: ReleaseTerms, view: ForecastView, target: ComparisonTarget) -> NotionComparison:
    """Compare every notion and method for a target; nothing is drawn or written.

    Raises:
        RunFileError: no mean is published, or no remaining day has enough households on the roster.
    """
    return _PromiseSearch(terms, view).compared(target)


class _PromiseSearch:
    """Simulates the days of one run file under one promise after the other."""

    def __init__(self, terms: ReleaseTerms, view: ForecastView) -> None:
        self.run: RunFile = terms.run
        self.days = SimulatedDays(terms, view)
        self._simulated: dict[tuple[str, str, Decimal], tuple[RunFile, SeriesCost | None]] = {}

    def compared(self, requested: ComparisonTarget) -> NotionComparison:
        target = self._target(requested)
        comparison = self.run.comparison
        entries = [
            self._entry(notion, alternative, target)
            for notion in NOTIONS
            for alternative in notion.candidates(comparison)
        ]
        if not any(entry.promised for entry in entries):
            entries.insert(0, self._entry_of_run_file(target))
        days, counts, series = self.days, self.days.households, self.run.series[self.days.name]
        label = series_text(days.name, series)
        ranked = tuple(marked(entries, target))
        return NotionComparison(
            target,
            ranked,
            series=days.name,
            label=label,
            households=min(counts.values()),
            groups=columns_text(series.by),
            days=tuple(counts),
            endless=days.is_endless,
            change=days.change,
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
            if entry.series is None or entry.series.noise_kwh <= self.days.change.kwh:
                return entry
            return replace(entry, needs=self._remedies(notion, candidate, entry.series, epsilon))
        except AgedpError as error:
            return ComparisonEntry(notion.name, candidate.method, str(error).removeprefix(f"{self.run.name}: "))

    def _entry_of_run_file(self, target: ComparisonTarget) -> ComparisonEntry:
        """Return the run file's promise as it stands, where no candidate is the same."""
        candidate = self._first()
        series = self.days.simulate(self.run, _bound_name(self.run.notion, candidate))
        entry = self._priced_entry(self.run, series, candidate, target)
        if series is not None and series.noise_kwh > self.days.change.kwh:
            entry = replace(entry, needs=self._remedies_of_run_file(candidate, series, entry.epsilon))
        return replace(entry, method="as the run file says", promised=True)

    def _remedies_of_run_file(self, candidate: Alternative, series: SeriesCost, epsilon: Decimal | None) -> Remedies:
        """Return what makes the run file's own promise usable: more households, or a larger bound."""
        with suppress(AgedpError):
            return self._remedies(type(self.run.promise), candidate, series, epsilon)
        return Remedies(self._households_needed(series), self.days.loss_for(self.days.change.kwh), None, None)

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
        notion, promise = run.notion, run.promise
        bound_name = _bound_name(notion, candidate)
        if series is None:
            return ComparisonEntry(notion.name, candidate.method, self._reason_without_release(notion))
        bound = next(
            bound
            for bound in notion.bounds(self.days.view.rows, self.days.leakage_bounds[0], None)
            if bound.name == bound_name
        )
        keys = contract_value(run.promise)
        spent_bound = bound.value or 0
        met = self._meets_target(series, target, spent_bound) and len(series.losses) == len(self.days.households)
        is_promised = promise == self.run.promise
        limit = self._permitted(notion.limits.get(bound_name, series.reaches))
        epsilon = None if limit is None else Decimal(max(limit, spent_bound)) / NANO
        return ComparisonEntry(
            notion.name,
            candidate.method,
            bound=bound,
            epsilon=epsilon,
            keys=keys,
            series=series,
            promised=is_promised,
            meets_target=met,
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
        return f"releases no day: under {conditions} no loss, however small, keeps the figure"

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
        promise_of_file = self.run.promise
        caps = {"max_day_epsilon": promise_of_file.max_day_epsilon, "epsilon_total": promise_of_file.epsilon_total}
        delta: dict[str, object] = {} if promise_of_file.delta is None else {"delta": promise_of_file.delta}
        if promise_of_file.accept:
            delta["accept"] = promise_of_file.accept
        age = {} if self.run.schedule.mode == "archive" else {"age_days": promise_of_file.age_days}
        try:
            promise = notion.model_validate({"notion": notion.name, **caps, **delta, **age, **candidate.keys(epsilon)})
        except ValidationError as error:
            problem = error.errors(include_url=False)[0]
            key = [*problem["loc"], *problem.get("ctx", {}).get("at", ())]
            raise RunFileError(f"{'.'.join(map(str, key))} {problem['msg']}".strip()) from None
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
        if larger is None:
            return Remedies(households_needed, loss, None, None)
        remedied = self._priced(notion, candidate, larger)[1]
        return Remedies(
            households_needed, remedied.epsilon if remedied else loss, larger, remedied.last_day if remedied else None
        )

    def _no_epsilon_reason(self, error_kwh: float) -> str:
        """Return why no bound has so little noise: the caps, or no bound is finite."""
        promise, needed_text = self.run.promise, f"a day would need epsilon {self.days.loss_for(error_kwh) / NANO:.4g}"
        if self.days.exceeds_noise(error_kwh, self.run):
            return f"this noise is not possible under max_day_epsilon = {promise.max_day_epsilon:f}: {needed_text}"
        return f"no finite bound has this little noise under these caps: {needed_text}"


def _bound_name(notion: Notion, candidate: Alternative) -> str:
    """Return the name of the bound that a candidate limits: its own, or the notion's, or a day's."""
    return candidate.bound_name or own_bound_name(notion.limits) or DAY_BOUND
