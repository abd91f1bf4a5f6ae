"""Run file + envelopes + roster's counts + ledger -> which promise keeps a target, and what each of them costs.

Public: it reads no reading. Every notion says itself in which ways it could be promised for this run file
(`Promise.candidates`); each of them is gone through day by day, as a run would, after what is released already, under
the run file's caps and every model that binds. Nothing here knows a notion by name.

The target is a RISK r: of each candidate the promise whose own figure stays at or below r; or an ERROR e [kWh a home]:
of each the smallest figure, in four digits, at which the noise is at most e. What that figure is about differs from
candidate to candidate, which no noise can weigh: the cheapest is marked among those that need no assumption and, apart,
among those that rest on the model. Cheapest is the least noise for a risk, the least figure for an error.

NOISE is the standard deviation of what is added to a daily mean, root mean square over the days, kWh a home, of the
smallest group of the mean that has most of it; it is all that an interval in the release covers. A series whose noise
exceeds what the mean changes by from day to day, as far as it is published, or 1 kWh, is UNUSABLE: its days cannot be
told from each other. Noise is inverse to the number of homes, so that as many times more homes as it is too large
would do; or a larger figure, found by going through the days again.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from datetime import date
from decimal import Decimal
from fractions import Fraction
from typing import Final

from pydantic import ValidationError

from agedp_data import noise
from agedp_data.chains.envelope import Envelope
from agedp_data.config import RunFile, contract, not_yet
from agedp_data.errors import AgedpError, RunFileError
from agedp_data.ledger import Release
from agedp_data.losses import NANO, granted, recorded
from agedp_data.notions import NOTIONS, Promise
from agedp_data.notions.candidate import Candidate, unknown
from agedp_data.notions.notion import DAY_FIGURE, TOTAL_FIGURE, Notion
from agedp_data.roster import Roster
from pipelines.amounts import least_amount
from pipelines.frontier import change_of
from pipelines.grant import Binding
from pipelines.offers import Comparison, Needs, Offer, Series, Target, marked
from pipelines.outlook import Course, Side, View, coming_days, course_of
from pipelines.work import Work, earlier_models

_AHEAD: Final = 365
"""How many days a series without last day is gone through."""


def compare_promises(work: Work, target: Target) -> Comparison:
    """Return every notion and method for a target; nothing is drawn or written.

    Raises:
        RunFileError: no mean is published, no day is left or has enough homes, or nothing says what the target is.
    """
    return _Going(work).compared(target)


class _Going:
    """Goes through the days under one promise after the other, for one run file."""

    def __init__(self, work: Work) -> None:
        self.run: RunFile = work.run
        self.model = work.model
        ledger = work.opened_ledger()
        rows: tuple[Release, ...] = () if ledger is None else ledger.rows(work.population)
        contracts = () if ledger is None else ledger.contracts(work.population)
        older = {} if ledger is None else earlier_models(work, ledger)
        self.envelopes: tuple[Envelope | None, ...] = (work.model.envelope if work.model else None, *older.values())
        self.view = View(rows, work.roster, work.today, contracts)
        self.name = self._noisiest()
        self.homes = dict(self._counted())
        if not self.homes:
            raise RunFileError(
                f"no day is left of which enough homes are on the roster (min_households = "
                f"{self.run.population.min_households}); there is nothing to promise"
            )
        self.change, self.measured = change_of([row for row in rows if row.series == self.name])

    def _noisiest(self) -> str:
        """Return the mean with most noise at the same loss: its clamp over its share and its homes."""
        means = {name: one for name, one in self.run.series.items() if one.statistic == "mean"}
        if not means:
            raise RunFileError("what a promise costs is told in the noise of a mean; the run file publishes none")
        day = next(iter(self._days()), self.run.schedule.first_day)

        def weight(name: str) -> Fraction:
            homes = _smallest(self.view.roster, day, means[name].by, self.run.population.min_households) or 1
            return Fraction(means[name].clamp_wh) / (Fraction(self.run.shares[name]) * homes)

        return max(means, key=weight)

    def _days(self) -> list[date]:
        """Return the days that are asked for: to the end of the period, or a year of days."""
        days = coming_days(contract(self.run, model=None), self.view.rows)
        return [day for day, _ in zip(days, range(_AHEAD), strict=False)] if self._endless else list(days)

    @property
    def _endless(self) -> bool:
        return self.run.schedule.last_day is None

    def _counted(self) -> Iterator[tuple[date, int]]:
        """Yield the days on which enough homes are counted, with those of the smallest group."""
        for day in self._days():
            homes = _smallest(self.view.roster, day, self.run.series[self.name].by, self.run.population.min_households)
            if homes:
                yield day, homes

    def compared(self, asked: Target) -> Comparison:
        target = self._target(asked)
        offers = [self._offer(notion, one, target) for notion in NOTIONS for one in notion.candidates(self.run)]
        if not any(one.promised for one in offers):
            offers.insert(0, self._own(target))
        by = self.run.series[self.name].by or ""
        return Comparison(
            target,
            tuple(marked(offers, target)),
            self.name,
            min(self.homes.values()),
            by,
            tuple(self.homes),
            self._endless,
            self.change,
            self.measured,
        )

    def _target(self, asked: Target) -> Target:
        """Return what was asked for, else what the run file's promise keeps, or comes to where it bounds no figure."""
        if asked.risk is not None or asked.error_kwh is not None:
            return asked
        promise = self.run.promise
        first = self._first()
        kept = _kept_by(self.run.notion, first)
        amount = self.run.notion.limits.get(kept)
        if amount is None:
            series = self._gone(self.run, kept)
            amount = None if series is None else series.reaches
        if not amount:
            raise RunFileError(
                f'{self.run.name}: notion = "{promise.notion}" comes to no finite figure here that others could be '
                "compared at; name a target: `agedp plan --risk EPSILON` or `--error-kwh KWH`"
            )
        return Target(risk=Decimal(amount) / NANO, own=True)

    def _first(self) -> Candidate:
        """Return the candidate that tells what the run file's own promise keeps."""
        return next(iter(type(self.run.promise).candidates(self.run)), unknown(""))

    def _offer(self, notion: type[Promise], candidate: Candidate, target: Target) -> Offer:
        if candidate.lacking:
            return Offer(notion.name, candidate.method, candidate.lacking)
        try:
            amount = target.risk if target.risk is not None else self._amount(notion, candidate, target.error_kwh or 0)
            if amount is None:
                return Offer(notion.name, candidate.method, self._too_little(target.error_kwh or 0))
            return self._of(notion, candidate, amount, target)
        except AgedpError as error:
            return Offer(notion.name, candidate.method, str(error).removeprefix(f"{self.run.name}: "))

    def _own(self, target: Target) -> Offer:
        """Return the run file's promise as it stands, where no candidate is the same."""
        candidate = self._first()
        offer = self._told(self.run, candidate, target)
        return replace(offer, method="as the run file says", promised=True)

    def _of(self, notion: type[Promise], candidate: Candidate, amount: Decimal, target: Target) -> Offer:
        run = self._promising(notion, candidate, amount)
        offer = self._told(run, candidate, target)
        if offer.series is None or offer.series.noise_kwh <= self.change:
            return offer
        return replace(offer, needs=self._needs(notion, candidate, offer.series, amount))

    def _told(self, run: RunFile, candidate: Candidate, target: Target) -> Offer:
        notion, promise = run.notion, run.promise
        kept = _kept_by(notion, candidate)
        series = self._gone(run, kept)
        if series is None:
            return Offer(notion.name, candidate.method, "leaves no day anything, beside the caps and what is released")
        figure = next(one for one in notion.figures(self.view.rows, self.envelopes[0], None) if one.name == kept)
        keys = contract(run, model=None)["promise"]
        met = self._met(series, target) and len(series.losses) == len(self.homes)
        same = promise == self.run.promise
        bound = notion.limits.get(kept, series.reaches)
        amount = None if bound is None else Decimal(bound) / NANO
        return Offer(
            notion.name,
            candidate.method,
            figure=figure,
            amount=amount,
            keys=keys,
            series=series,
            promised=same,
            kept=met,
        )

    def _met(self, series: Series, target: Target) -> bool:
        if target.error_kwh is not None:
            return series.noise_kwh <= target.error_kwh
        return target.risk is not None and series.reaches is not None and series.reaches <= granted(target.risk)

    def _promising(self, notion: type[Promise], candidate: Candidate, amount: Decimal) -> RunFile:
        """Return the run file with this promise in place of its own, under its caps.

        Raises:
            RunFileError: there is no such promise for this run file.
        """
        own = self.run.promise
        caps = {"max_day_epsilon": own.max_day_epsilon, "epsilon_total": own.epsilon_total}
        age = {} if self.run.schedule.mode == "archive" else {"age_days": own.age_days}
        try:
            promise = notion.model_validate({"notion": notion.name, **caps, **age, **candidate.keys(amount)})
        except ValidationError as error:
            found = error.errors(include_url=False)[0]
            key = [*found["loc"], *found.get("ctx", {}).get("at", ())]
            raise RunFileError(f"{'.'.join(map(str, key))} {found['msg']}".strip()) from None
        run = self.run.promising(promise)
        not_yet(run)
        return run

    def _gone(self, run: RunFile, figure: str) -> Series | None:
        """Return what comes of the days under a run file's promise, None if nothing is ever released."""
        terms = contract(run, model=self.model.id if self.model else None)
        course = course_of(Side(terms, Binding(run.notion, self.envelopes)), self.view, list(self.homes))
        if not course.released:
            return None
        figures = run.notion.figures(course.history, self.envelopes[0], None)
        reaches = next((one.value for one in figures if one.name == figure), None)
        losses = tuple(row.loss for row in course.released)
        days = [date.fromisoformat(row.day) for row in course.released]
        noises = [self._noise(loss) / self.homes[day] for loss, day in zip(losses, days, strict=True)]
        dates = [row.published_on for row in course.released]
        return Series(
            reaches,
            losses,
            math.sqrt(sum(each**2 for each in noises) / len(noises)),
            max(noises),
            sum(each > self.change for each in noises),
            days[0],
            days[-1],
            (min(dates), max(dates)),
            len(course.skipped),
            _ended_by(run.promise, course),
            self._endless and not course.ended,
        )

    def _noise(self, loss: int) -> float:
        """Return the noise of the sum [kWh] when the day is granted a loss, to the last digits of what is drawn."""
        part = int(Fraction(self.run.shares[self.name]) * loss)
        if part <= 0:
            return math.inf
        return noise.standard_deviation(self.run.series[self.name].clamp_wh * NANO / part) / 1000.0

    def _amount(
        self, notion: type[Promise], candidate: Candidate, error_kwh: float, *, guess: float | None = None
    ) -> Decimal | None:
        """Return the smallest amount of a candidate whose noise is at most this; None if the caps do not permit it.

        Raises:
            RunFileError: there is no such promise, whatever the amount.
        """
        if self._above(error_kwh):
            return None
        lacking: list[AgedpError] = []

        def noise_of(amount: Decimal) -> float | None:
            try:
                run = self._promising(notion, candidate, amount)
                series = self._gone(run, _kept_by(run.notion, candidate))
            except AgedpError as error:
                lacking.append(error)
                return None
            lacking.clear()
            return None if series is None else series.noise_kwh

        found = least_amount(noise_of, error_kwh, guess=guess or self._loss_for(error_kwh) / NANO)
        if found is None and lacking:
            raise lacking[0]
        return found

    def _needs(self, notion: type[Promise], candidate: Candidate, series: Series, amount: Decimal) -> Needs:
        times = series.noise_kwh / self.change
        homes, loss = math.ceil(min(self.homes.values()) * times), self._loss_for(self.change)
        larger = self._amount(notion, candidate, self.change, guess=float(amount) * times)
        if larger is None:
            return Needs(homes, loss, None, None)
        run = self._promising(notion, candidate, larger)
        mended = self._gone(run, _kept_by(run.notion, candidate))
        return Needs(homes, mended.epsilon if mended else loss, larger, mended.last_day if mended else None)

    def _too_little(self, error_kwh: float) -> str:
        """Return why no figure brings the noise so low: the caps, or there is none that is finite."""
        own, needed = self.run.promise, f"a day would have to spend {self._loss_for(error_kwh) / NANO:.4g}"
        if self._above(error_kwh):
            return f"so little noise is beyond max_day_epsilon = {own.max_day_epsilon}: {needed}"
        return f"no finite figure goes with so little noise under these caps: {needed}"

    def _above(self, error_kwh: float) -> bool:
        """Tell whether even days that spend all that a day may have more noise than this."""
        return self._noise(self.run.promise.day_cap) / max(self.homes.values()) > error_kwh

    def _loss_for(self, noise_kwh: float) -> int:
        """Return the loss of a day whose noise, in the smallest group, is so much, rounded up.

        The discrete Laplace law's standard deviation is 1/(sqrt 2 sinh(1/(2 scale))), in the unit of the scale.
        """
        sd_wh = noise_kwh * 1000.0 * min(self.homes.values())
        scale = 1 / (2 * math.asinh(1 / (math.sqrt(2) * sd_wh)))
        return recorded(self.run.series[self.name].clamp_wh / (scale * float(self.run.shares[self.name])))


def _smallest(roster: Roster, day: date, by: str | None, least: int) -> int:
    return min((homes for _, homes in roster.cells(day, by) if homes >= least), default=0)


def _kept_by(notion: Notion, candidate: Candidate) -> str:
    """Return the name of the figure that a candidate keeps: its own, or the first that is neither day nor total."""
    own = (name for name in notion.limits if name not in (DAY_FIGURE, TOTAL_FIGURE))
    return candidate.figure or next(own, DAY_FIGURE)


def _ended_by(promise: Promise, course: Course) -> str:
    if not course.ended:
        return ""
    spent = sum(row.loss for row in course.history)
    needed = course.released[-1].loss
    return "epsilon_total" if promise.total_cap is not None and promise.total_cap - spent < needed else "promise"
