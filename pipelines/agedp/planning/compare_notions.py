"""Run file + leakage bounds + roster counts + ledger -> the notions that meet a target, and the noise of each.

Public: it uses no reading. Each notion lists the alternatives in which it could be promised for this run file
(`Promise.candidates`). Each alternative is simulated day by day, as a run would do it, after the days released already,
under the run file's caps and every model in force. No notion is known here by name.

* The target is a RISK r, such as epsilon 2, or an ERROR e [kWh per household]. For a risk, each alternative is the
  promise whose own bound stays at or below r. For an error, it has the smallest bound, in four digits (an amount that a
  person would write down), at which the noise is at most e. Cheapest is the least noise
  for a risk, the smallest bound for an error.
* A series is UNUSABLE if its noise (`simulated_days`) exceeds the day-to-day change of the mean, estimated from the
  published values, or 1 kWh per household: its days cannot be distinguished. Noise is inverse to the number of
  households, so either more households by that factor or a larger bound, found by simulating the days again, fixes it.

Decisions. The scope of the bound differs between alternatives, and noise cannot weigh scopes against each other. So the
cheapest is marked among the assumption-free alternatives and, separately, among those conditional on the model.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from decimal import Decimal
from typing import Final, NamedTuple

from pydantic import ValidationError

from agedp.planning.notion_comparison import (
    ComparisonTarget,
    NotionComparison,
    NotionOffer,
    Remedies,
    SeriesCost,
    marked,
)
from agedp.planning.simulated_days import SimulatedDays
from agedp.run_context import Work
from agedp_data.config import RunFile, contract_part
from agedp_data.epsilon import NANO, floor_nano
from agedp_data.errors import AgedpError, RunFileError
from agedp_data.notions import NOTIONS, Promise
from agedp_data.notions.alternatives import Alternative, unavailable
from agedp_data.notions.notion import DAY_FIGURE, TOTAL_FIGURE, Notion

_DIGITS: Final = 9000  # from 1.000 to 9.999
_LEAST: Final = -9  # 1000 x 10^-9
_LAST: Final = 11 * _DIGITS  # 100,000: more is a slip of the pen
_GUESSES: Final = 12


class _TriedEpsilon(NamedTuple):
    place: int
    noise: float | None


def least_amount(noise: Callable[[Decimal], float | None], target: float, *, guess: float) -> Decimal | None:
    """Return the smallest four-digit amount whose noise is at most the target; None if none up to 100,000 has it.

    Noise falls, or stays, as the amount grows, and often goes like 1/amount, so that a few tries do; None stands for
    an amount too small for any release. What is returned was tried, and the next smaller one does not do.

    >>> least_amount(lambda amount: 2 / float(amount), 0.3, guess=1.0)
    Decimal('6.667')
    """
    tried_at, low, high = _place(guess), -1, _LAST + 1
    tried: list[_TriedEpsilon] = []
    while high - low > 1:
        latest = _TriedEpsilon(tried_at, noise(amount_at(tried_at)))
        if latest.noise is not None and latest.noise <= target:
            high = tried_at
        elif high > _LAST and tried and _cap_binds(tried[-1], latest):
            return None
        else:
            low = tried_at
        tried.append(latest)
        index = _wanted(tried[-2:], target) if len(tried) < _GUESSES or high > _LAST else (low + high) // 2
        tried_at = min(max(index, low + 1), high - 1)
    return None if high > _LAST else amount_at(high)


def _wanted(tried: list[_TriedEpsilon], target: float) -> int:
    """Return where the target is met if noise is a power of the amount: the last two say which, else 1/amount."""
    place, noise = tried[-1]
    if noise is None or not math.isfinite(noise):
        return place + _DIGITS
    power, before = 1.0, tried[0]
    if before.place != place and before.noise == noise:  # both spend all that a cap permits
        return _place(float(amount_at(place)) / 2)
    if before.noise is not None and math.isfinite(before.noise) and before.noise != noise:
        apart = math.log(float(amount_at(place) / amount_at(before.place)))
        power = max(math.log(before.noise / noise) / apart, 0.1)
    return _place(float(amount_at(place)) * (noise / target) ** (1 / power))


def _cap_binds(before: _TriedEpsilon, now: _TriedEpsilon) -> bool:
    """Tell whether more did not help: a cap decides, whatever the amount."""
    return before.noise is not None and now.noise is not None and now.noise >= before.noise * (1 - 1e-9)


def amount_at(place: int) -> Decimal:
    """Return the amount at a place of the grid, 1000 x 10^-9 at 0.

    >>> amount_at(0), amount_at(9001)
    (Decimal('0.000001000'), Decimal('0.00001001'))
    """
    decade, digits = divmod(place, _DIGITS)
    return Decimal(1000 + digits).scaleb(_LEAST + decade)


def _place(amount: float) -> int:
    """Return the place of the smallest amount that is not below this one, as near as floats tell, within the grid."""
    if not amount > 1e-6:
        return 0
    if amount >= 1e5:
        return _LAST
    exponent = Decimal(amount).adjusted() - 3
    digits = -int(-Decimal(amount).scaleb(-exponent) // 1)
    return min(_LAST, (exponent - _LEAST) * _DIGITS + digits - 1000)


_NEXT_TO_NOTHING: Final = 1000


def compare_promises(work: Work, target: ComparisonTarget) -> NotionComparison:
    """Return every notion and method for a target; nothing is drawn or written.

    Raises:
        RunFileError: no mean is published, or no day is left on which enough homes are counted.
    """
    return _PromiseSearch(work).compared(target)


class _PromiseSearch:
    """Goes through the days under one promise after the other, for one run file."""

    def __init__(self, work: Work) -> None:
        self.run: RunFile = work.run
        self.days = SimulatedDays(work)
        self._known: dict[tuple[str, str, Decimal], tuple[RunFile, SeriesCost | None]] = {}

    def compared(self, requested: ComparisonTarget) -> NotionComparison:
        target = self._target(requested)
        comparison = self.run.comparison
        offers = [
            self._offer(notion, alternative, target)
            for notion in NOTIONS
            for alternative in notion.candidates(comparison)
        ]
        if not any(one.promised for one in offers):
            offers.insert(0, self._own(target))
        by = self.run.series[self.days.name].by or ""
        return NotionComparison(
            target,
            tuple(marked(offers, target)),
            self.days.name,
            min(self.days.households.values()),
            by,
            tuple(self.days.households),
            self.days.is_endless,
            self.days.change,
        )

    def _target(self, requested: ComparisonTarget) -> ComparisonTarget:
        """Return what was asked for, else what the run file's promise keeps its own figure at.

        Where it bounds that figure by its day's loss only, what it comes to; where that is nothing (what is as old as
        an archive) or has no bound, the day's loss.
        """
        if requested.risk is not None or requested.error_kwh is not None:
            return requested
        notion = self.run.notion
        kept = _kept_by(notion, self._first())
        amount = notion.limits.get(kept)
        if amount is None:
            series = self.days.simulate(self.run, kept)
            amount = None if series is None else series.reaches
        if amount is None or amount < _NEXT_TO_NOTHING:
            amount = notion.limits[DAY_FIGURE] or 0
        return ComparisonTarget(risk=Decimal(amount) / NANO, from_run_file=True)

    def _first(self) -> Alternative:
        """Return the candidate that tells what the run file's own promise keeps."""
        return next(iter(type(self.run.promise).candidates(self.run.comparison)), unavailable(""))

    def _offer(self, notion: type[Promise], candidate: Alternative, target: ComparisonTarget) -> NotionOffer:
        if candidate.reason:
            return NotionOffer(notion.name, candidate.method, candidate.reason)
        try:
            amount = target.risk if target.risk is not None else self._amount(notion, candidate, target.error_kwh or 0)
            if amount is None:
                return NotionOffer(notion.name, candidate.method, self._too_little(target.error_kwh or 0))
            return self._of(notion, candidate, amount, target)
        except AgedpError as error:
            return NotionOffer(notion.name, candidate.method, str(error).removeprefix(f"{self.run.name}: "))

    def _own(self, target: ComparisonTarget) -> NotionOffer:
        """Return the run file's promise as it stands, where no candidate is the same."""
        candidate = self._first()
        series = self.days.simulate(self.run, _kept_by(self.run.notion, candidate))
        offer = self._told(self.run, series, candidate, target)
        if series is not None and series.noise_kwh > self.days.change.kwh:
            offer = replace(offer, needs=self._own_needs(candidate, series, offer.amount))
        return replace(offer, method="as the run file says", promised=True)

    def _own_needs(self, candidate: Alternative, series: SeriesCost, amount: Decimal | None) -> Remedies:
        """Return what would mend the run file's own promise: homes, or a larger figure by its notion's first way."""
        with suppress(AgedpError):
            return self._needs(type(self.run.promise), candidate, series, amount)
        return Remedies(self._homes(series), self.days.loss_for(self.days.change.kwh), None, None)

    def _of(
        self, notion: type[Promise], candidate: Alternative, amount: Decimal, target: ComparisonTarget
    ) -> NotionOffer:
        offer = self._told(*self._priced(notion, candidate, amount), candidate, target)
        if offer.series is None or offer.series.noise_kwh <= self.days.change.kwh:
            return offer
        return replace(offer, needs=self._needs(notion, candidate, offer.series, amount))

    def _priced(
        self, notion: type[Promise], candidate: Alternative, amount: Decimal
    ) -> tuple[RunFile, SeriesCost | None]:
        """Return the run file with a candidate's promise of an amount, and what it comes to; each gone through once."""
        key = notion.name, candidate.method, amount
        if key not in self._known:
            run = self._promising(notion, candidate, amount)
            self._known[key] = run, self.days.simulate(run, _kept_by(run.notion, candidate))
        return self._known[key]

    def _told(
        self, run: RunFile, series: SeriesCost | None, candidate: Alternative, target: ComparisonTarget
    ) -> NotionOffer:
        notion, promise = run.notion, run.promise
        kept = _kept_by(notion, candidate)
        if series is None:
            return NotionOffer(notion.name, candidate.method, self._nothing(notion))
        figure = next(
            one for one in notion.figures(self.days.view.rows, self.days.leakage_bounds[0], None) if one.name == kept
        )
        keys = contract_part(run, model=None)["promise"]
        already = figure.value or 0
        met = self._met(series, target, already) and len(series.losses) == len(self.days.households)
        same = promise == self.run.promise
        limit = self._permitted(notion.limits.get(kept, series.reaches))
        bound = limit if limit is None else max(limit, already)
        amount = None if bound is None else Decimal(bound) / NANO
        return NotionOffer(
            notion.name,
            candidate.method,
            figure=figure,
            amount=amount,
            keys=keys,
            series=series,
            promised=same,
            meets_target=met,
            ahead=None if limit is None or limit >= already else Decimal(limit) / NANO,
        )

    def _nothing(self, notion: Notion) -> str:
        """Return why a promise releases no day at all."""
        if why := next(filter(None, map(notion.obstacle, self.days.leakage_bounds)), ""):
            return why
        model = ["this model"] if self.days.model else []
        released = ["what is released already"] if self.days.view.rows else []
        under = " and ".join(["these caps", *model, *released])
        return f"releases no day: under {under} no loss, however small, keeps the figure"

    def _permitted(self, limit: int | None) -> int | None:
        """Return a limit, or what the caps of the days asked for permit: no figure is above what all days spend."""
        if limit is None or self.days.is_endless:
            return limit
        spent = sum(row.loss for row in self.days.view.rows)
        return min(limit, spent + self.run.promise.day_cap * len(self.days.households))

    def _met(self, series: SeriesCost, target: ComparisonTarget, already: int) -> bool:
        """Tell whether the target is met; of the run file's own, what is released already cannot be undone."""
        if target.error_kwh is not None:
            return series.noise_kwh <= target.error_kwh
        if target.risk is None or series.reaches is None:
            return False
        return series.reaches <= max(floor_nano(target.risk), already if target.from_run_file else 0)

    def _promising(self, notion: type[Promise], candidate: Alternative, amount: Decimal) -> RunFile:
        """Return the run file with this promise in place of its own, under its caps.

        Raises:
            RunFileError: there is no such promise for this run file.
        """
        promise_of_file = self.run.promise
        caps = {"max_day_epsilon": promise_of_file.max_day_epsilon, "epsilon_total": promise_of_file.epsilon_total}
        age = {} if self.run.schedule.mode == "archive" else {"age_days": promise_of_file.age_days}
        try:
            promise = notion.model_validate({"notion": notion.name, **caps, **age, **candidate.keys(amount)})
        except ValidationError as error:
            problem = error.errors(include_url=False)[0]
            key = [*problem["loc"], *problem.get("ctx", {}).get("at", ())]
            raise RunFileError(f"{'.'.join(map(str, key))} {problem['msg']}".strip()) from None
        return self.run.promising(promise)

    def _amount(
        self, notion: type[Promise], candidate: Alternative, error_kwh: float, *, guess: float | None = None
    ) -> Decimal | None:
        """Return the smallest amount of a candidate whose noise is at most this; None if the caps do not permit it.

        Raises:
            RunFileError: there is no such promise, whatever the amount.
        """
        with suppress(AgedpError):  # then the amount is no matter, and why there is none is found out below
            if self.days.exceeds_noise(error_kwh, self._promising(notion, candidate, Decimal(1))):
                return None
        errors: list[AgedpError] = []

        def noise_of(amount: Decimal) -> float | None:
            try:
                series = self._priced(notion, candidate, amount)[1]
            except AgedpError as error:
                errors.append(error)
                return None
            errors.clear()
            return None if series is None else series.noise_kwh

        amount = least_amount(noise_of, error_kwh, guess=guess or self.days.loss_for(error_kwh) / NANO)
        if amount is None and errors:
            raise errors[0]
        return amount

    def _homes(self, series: SeriesCost) -> int:
        return math.ceil(min(self.days.households.values()) * series.noise_kwh / self.days.change.kwh)

    def _needs(
        self, notion: type[Promise], candidate: Alternative, series: SeriesCost, amount: Decimal | None
    ) -> Remedies:
        change = self.days.change.kwh
        homes, loss = self._homes(series), self.days.loss_for(change)
        guess = float(amount) * series.noise_kwh / change if amount else None
        larger = self._amount(notion, candidate, change, guess=guess)
        if larger is None:
            return Remedies(homes, loss, None, None)
        mended = self._priced(notion, candidate, larger)[1]
        return Remedies(homes, mended.epsilon if mended else loss, larger, mended.last_day if mended else None)

    def _too_little(self, error_kwh: float) -> str:
        """Return why no figure brings the noise so low: the caps, or there is none that is finite."""
        promise, needed_text = self.run.promise, f"a day would need epsilon {self.days.loss_for(error_kwh) / NANO:.4g}"
        if self.days.exceeds_noise(error_kwh, self.run):
            return f"this noise is not possible under max_day_epsilon = {promise.max_day_epsilon:f}: {needed_text}"
        return f"no finite bound has this little noise under these caps: {needed_text}"


def _kept_by(notion: Notion, candidate: Alternative) -> str:
    """Return the name of the figure that a candidate keeps: its own, or the first that is neither day nor total."""
    names = (name for name in notion.limits if name not in (DAY_FIGURE, TOTAL_FIGURE))
    return candidate.figure or next(names, DAY_FIGURE)
