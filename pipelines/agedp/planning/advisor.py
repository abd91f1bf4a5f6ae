"""Households, days, clamp and purpose -> what can be published usefully: the ADVISOR, by the accountant's figures.

    40 households, a series without an end, epsilon 10 for any 31 days of one household, a row a month, clamp 40 kWh:
    ±0.69 kWh (6.3 %) for a month: fit for months; an even chance about one day becomes 97 % at most

Public: it uses no reading. Each row of the advice is a run file, judged as a first release is: its errors,
its losses and its word come from there. `promise_of` has the promise that a span and an epsilon stand for; `agedp init
--protect SPAN --epsilon E` writes its keys.

Decisions:

* A row of the advice is the smallest epsilon of a ladder that makes a span fit, or else rough, for what is protected
  (a day, a week, a month, a year, all days) and what a row is about (nothing longer than what is protected).
* Of a fixed list of clamps, and of the yardstick's layers, whose sum is smoothed, a row has those with which the error
  and what is cut of the yardstick's mean are smallest together. Where even that is no use, a clamp that cuts at most
  10 % is proposed, so that noise is not hidden behind a bias. A clamp is never derived from the readings.
* The advice leaves out a row for which a first release is refused. It also leaves out a row if another one is fit for
  as short spans, at no larger loss about a day and about a year.
* It begins with the rows of which a year costs no more than a total may: the shortest spans first.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import date
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from itertools import islice
from typing import Any, Final, Literal, NamedTuple, TypeGuard, get_args

from pydantic import TypeAdapter, ValidationError

from agedp.budget import ReleaseTerms, whole_periods
from agedp.planning.first_release_verdict import (
    LARGEST_TOTAL,
    Verdict,
    judge_first_release,
    odds_text,
)
from agedp_data import yardstick
from agedp_data.accounting.renyi import Curve, laplace_curve, largest_equal_loss
from agedp_data.config import RunFile
from agedp_data.config.contract import contract_value
from agedp_data.config.model_section import EstimatedModel
from agedp_data.epsilon import NANO, exact_text, floor_nano, format_epsilon
from agedp_data.errors import ChainError, Refused, RunFileError
from agedp_data.notions import NOTIONS
from agedp_data.notions.w_event import rows_of_a_window
from agedp_data.roster import RosterCounts
from agedp_data.series.series import AnySeries, SeriesTable, series_by_name, series_in
from agedp_data.series.series_terms import EnergySeries, days_of, mean_name
from agedp_data.statement.span_errors import SeriesNoise, SpanError
from agedp_data.yardstick import FIT, ROUGH, SPANS

Protected = Literal["day", "week", "month", "year", "all", "today"]
Every = Literal["day", "week", "month", "year"]
PROTECTED: Final[tuple[Protected, ...]] = get_args(Protected)
EVERY: Final[tuple[Every, ...]] = get_args(Every)
WINDOWS: Final[Mapping[str, int]] = {"week": 7, "month": 31, "year": 366}
"""Days of the windows by which a week, month or year of one household is protected."""
LADDER: Final = tuple(map(Decimal, ("0.1", "0.2", "0.3", "0.5", "1", "2", "3", "5", "7", "10", "15", "20")))
"""Epsilons that are tried."""
CLAMPS: Final = tuple(map(Decimal, (10, 15, 20, 25, 30, 40, 50, 60, 75)))
"""Clamps that are tried [kWh]."""
_WITHOUT_A_MODEL: Final[tuple[Protected, ...]] = PROTECTED[:-1]
_DOWN: Final = Context(prec=6, rounding=ROUND_FLOOR)
_UP: Final = Context(prec=6, rounding=ROUND_CEILING)
_MOST_ROWS: Final = 12


def periods_under(protected: Protected) -> tuple[Every, ...]:
    """Return what a row may be about: nothing longer than what is protected, anything where all days are.

    >>> periods_under("week"), periods_under("today")
    (('day', 'week'), ('day',))
    """
    return EVERY if protected == "all" else EVERY[: EVERY.index("day" if protected == "today" else protected) + 1]


def promise_of(
    run: RunFile, protected: Protected, epsilon: Decimal, *, delta: Decimal | None = None, every: str = "day"
) -> dict[str, Any]:
    r"""Return the keys of [promise] by which a span of one household is protected with an epsilon.

    "day" is classical, without a total. "week", "month" and "year" are w-event over 7, 31 and 366 days, each row with
    an equal part. "all" is classical over the rows of an archive. "today" is a risk, and no day has more by itself.
    With n rows a window or archive of epsilon E gives

    .. math:: \varepsilon = E / n

    Args:
        run: the run file, whose days, mode and age count.
        protected: what is protected.
        epsilon: its loss [epsilon].
        delta: probability of an (epsilon, delta) bound on the window or on all days [-].
        every: what a row is about.

    Raises:
        RunFileError: "all" for a series without an end, "day" with a delta, or "today" without a model.
    """
    keys: dict[str, Any] = {} if run.schedule.mode == "archive" else {"age_days": run.promise.age_days or 1}
    if protected in WINDOWS:
        days = run.schedule.days
        if days is not None and days <= WINDOWS[protected]:
            raise RunFileError(
                f"all {days} days lie within one window of {WINDOWS[protected]} days; protect all, which is the same"
            )
        spend, window = "even" if every == "day" else "per-row", WINDOWS[protected]
        keys |= {"notion": "w-event", "window_days": window, "epsilon_per_window": epsilon, "spend": spend}
        rows = rows_of_a_window(SPANS[every], window)
        day = {"max_day_epsilon": epsilon if delta else _UP.divide(epsilon, rows), "epsilon_total": "unlimited"}
        return {**keys, **day, **({"delta": delta} if delta else {})}
    if protected == "day":
        if delta is not None:
            raise RunFileError("a delta is about several days: protect week, month, year or all with it")
        return {**keys, **_classical(epsilon), "epsilon_total": "unlimited"}
    if protected == "all":
        rows = _rows_of_an_archive(run, every)
        if not rows:
            raise RunFileError(
                f"protect all needs an archive with a whole {every}: a series without an end has no sum of all days. "
                "Protect week, month or year"
            )
        if delta is None:
            return {**keys, **_classical(_DOWN.divide(epsilon, rows)), "epsilon_total": epsilon}
        limit = floor_nano(epsilon)
        loss = largest_equal_loss(_curve, rows, epsilon=limit, delta=delta, cap=limit)
        return {**keys, **_classical(_DOWN.divide(Decimal(loss), NANO)), "epsilon_total": epsilon, "delta": delta}
    if run.model is None:
        raise RunFileError("protect today needs a [model]: how fast use forgets decides what an old day says of today")
    aged = {"notion": "age-dependent", "method": run.model.methods[0], "secret": "day", "risk": epsilon}
    age = {"age_days": run.promise.age_days or 1}
    return {**keys, **age, **aged, "max_day_epsilon": epsilon, "epsilon_total": "unlimited"}


def _classical(epsilon: Decimal) -> dict[str, Any]:
    return {"notion": "classical", "epsilon_per_day": epsilon, "max_day_epsilon": epsilon}


def _curve(loss: int) -> Curve:
    """Return the Rényi curve of a sum with this loss [nano-epsilon]; the sensitivity hardly matters to it."""
    return laplace_curve(10**5, 10**5 * NANO / loss)


def _rows_of_an_archive(run: RunFile, every: str) -> int:
    """Return the number of rows of a mean about such periods, 0 without an end."""
    schedule = run.schedule
    if schedule.last_day is None:
        return 0
    mean = {"": series_in({"statistic": "mean", "clamp_kwh": 1, "every": every})}
    skipped = set(schedule.skipped_days)
    days = [day for day in days_of(schedule.first_day, schedule.last_day) if every != "day" or day not in skipped]
    return sum(bool(whole_periods(mean, day, since=schedule.first_day, skipped=schedule.skipped_days)) for day in days)


@dataclass(frozen=True, slots=True)
class AdviceRow:
    """One run file and what it is fit for.

    `protected` is what `--protect` calls it, "" for the run file as it stands; `clamps_kwh` are those of the mean,
    `span` is what the row is advised for, "" for anything.
    """

    protected: Protected | Literal[""]
    epsilon: Decimal | None
    delta: Decimal | None
    every: str
    clamps_kwh: tuple[Decimal, ...]
    run: RunFile
    verdict: Verdict
    span: str = ""

    @property
    def options(self) -> str:
        """Return the options of `agedp init` and `agedp sanitise` that write this row, "" for the run file itself."""
        if not self.protected:
            return ""
        delta = f" --delta {self.delta}" if self.delta is not None else ""
        every = f" --every {self.every}" if self.every != "day" else ""
        clamps = f" --clamp-kwh {','.join(map(exact_text, self.clamps_kwh))}" if self.clamps_kwh else ""
        return f"--protect {self.protected} --epsilon {exact_text(self.epsilon or Decimal(0))}{delta}{every}{clamps}"

    @property
    def error(self) -> SpanError | None:
        """Return the error of the span that the row is for; of the run file, of the shortest span of any use."""
        of_span = [error for error in self.verdict.errors if error.span == self.span]
        return min(of_span, key=lambda error: error.ratio, default=self.verdict.best())

    @property
    def cut(self) -> yardstick.Cut:
        """Return what the clamp cuts of the yardstick's days and energy."""
        return yardstick.cut_by(float(max(self.clamps_kwh, default=Decimal(10**6))))

    @property
    def text(self) -> str:
        """Return the row in a few words, as a refusal has it."""
        error = "" if self.error is None else f", {self.error.text}"
        return f"`{self.options}` ({self.verdict.purpose}{error}; one day {odds_text(self.verdict.losses.day)})"

    @property
    def facts(self) -> dict[str, Any]:
        """Return the row as JSON."""
        return {
            "options": self.options,
            "protected": self.protected,
            "notion": self.run.promise.notion,
            "epsilon": None if self.epsilon is None else float(self.epsilon),
            "delta": None if self.delta is None else float(self.delta),
            "every": self.every,
            "clamp_kwh": [float(clamp) for clamp in self.clamps_kwh],
            "yardstick_days_cut": self.cut.days,
            "yardstick_energy_cut": self.cut.energy,
            "epsilon_about_a_year": format_epsilon(self.verdict.losses.year),
            "promise": contract_value(self.run.promise),
            **self.verdict.facts,
        }


@dataclass(frozen=True, slots=True)
class Advice:
    """The run file as it stands, if its promise permits a day, and the rows that are of use, the best first."""

    given: AdviceRow | None
    rows: tuple[AdviceRow, ...]
    households: int
    days: int | None

    def best(self, number: int = 3) -> str:
        """Return the best rows as a sentence for a refusal, "" without any."""
        lasting = (
            row for row in self.rows if row.protected != "day" or row.verdict.losses.year <= LARGEST_TOTAL * NANO
        )
        texts = " or ".join(dict.fromkeys(row.text for row in islice(lasting, number)))
        return f"Of use is {texts}. " if texts else "No row of use was found for so few households. "


def advise(terms: ReleaseTerms, roster: RosterCounts, today: date) -> Advice:
    """Return what the households of a roster can publish usefully, by the accountant's figures; draws nothing.

    Args:
        terms: the terms of the run file, whose period, series, groups and clamps count.
        roster: the roster.
        today: the date of the run.
    """
    adviser = _Adviser(terms, roster, today)
    rows = [
        row
        for protected in _WITHOUT_A_MODEL
        for every in periods_under(protected)
        for row in adviser.smallest(protected, every)
    ]
    most = max((roster.households(day) for day in _probes(terms.run)), default=0)
    return Advice(adviser.given(), tuple(_best_first(rows)[:_MOST_ROWS]), most, terms.run.schedule.days)


class Asked(NamedTuple):
    """What is to be protected, its loss, and the delta; `every` and `clamps_kwh` are those that are given, if any."""

    protected: Protected
    epsilon: Decimal
    delta: Decimal | None = None
    every: str = ""
    clamps_kwh: tuple[Decimal, ...] = ()


def row_for(terms: ReleaseTerms, roster: RosterCounts, today: date, asked: Asked) -> AdviceRow:
    """Return the row with the shortest periods that are fit, or else rough, for what is asked.

    Raises:
        RunFileError: this span cannot be protected so, or nothing can be published under it.
    """
    adviser = _Adviser(terms, roster, today)
    reason = (
        f"no group of the roster has {terms.run.population.min_households} households on a day of the schedule. "
        "Correct the roster, or write fewer knowingly: [population] min_households (--min-households)"
    )
    rows: list[AdviceRow] = []
    protected, epsilon, delta, every, clamps = asked
    for period in [period for period in EVERY if period == every] or periods_under(protected):
        try:
            plan = adviser.planned(protected, period, epsilon, delta)
            if plan is not None:
                chosen = clamps or plan.proposed_clamps()
                row = adviser.row(plan, Decimal(1), chosen)
                rows += [] if row is None else [row]
        except RunFileError as error:
            reason = str(error) if period in ("day", every) else reason
    if not rows:
        raise RunFileError(f"protect {protected} with epsilon {exact_text(epsilon)}: {reason}")

    def grade(row: AdviceRow) -> tuple[bool, int, float]:
        own = next((error for error in row.verdict.errors if error.span == row.every), None)
        place = _GRADES.index(own.grade if own else "")
        return bool(row.verdict.refused), place, float(EVERY.index(row.every) if place < 2 else 0 if row.error else 1)

    return min(rows, key=grade)


def advised_clamps(terms: ReleaseTerms, roster: RosterCounts, today: date) -> tuple[Decimal, ...]:
    """Return the clamps of the mean with the smallest error under the promise of a run file; () without a mean.

    A promise that waits for its estimated model counts as if each day had the loss of the day's cap.
    """
    return _Adviser(terms, roster, today).clamps()


_GRADES: Final = ("fit", "rough", "")


@dataclass(frozen=True, slots=True)
class _Plan:
    """The verdict on what is protected with an epsilon, by rows about such periods, under the widest single clamp.

    Noise is proportional to the width of a layer over its share, and to 1 over epsilon; `designs` are the clamps.
    """

    protected: Protected
    every: Every
    epsilon: Decimal
    delta: Decimal | None
    verdict: Verdict
    has_mean: bool

    def designs(self, factor: Decimal = Decimal(1)) -> Iterator[_Design]:
        """Yield each choice of clamps with the noise of the series, at so many times the epsilon."""
        noises = [
            replace(noise, scales=tuple(scale / float(factor) for scale in noise.scales))
            for noise in self.verdict.noises
        ]
        if not self.has_mean:
            yield _Design((), noises)
            return

        def clamped(clamp_kwh: float, widths: Sequence[float]) -> list[SeriesNoise]:
            """Return the noises, those of means with these widths of their layers."""
            of_a_kwh = 1 / float(CLAMPS[-1])
            return [
                noise
                if noise.clamp_kwh is None
                else replace(noise, scales=tuple(noise.scales[0] * of_a_kwh * of for of in widths), clamp_kwh=clamp_kwh)
                for noise in noises
            ]

        for clamp in CLAMPS:
            yield _Design((clamp,), clamped(float(clamp), [float(clamp)]))
        if self.every == "day":
            layers = yardstick.layers()
            clamps = tuple(Decimal(str(high)) for _, high, _ in layers)
            yield _Design(clamps, clamped(layers[-1][1], [(high - low) / share for low, high, share in layers]))

    def proposed_clamps(self) -> tuple[Decimal, ...]:
        """Return the clamps whose noise and cut are smallest together; if that is no use, of those that cut little."""
        designs = [*self.designs()]
        best = min(designs, key=_Design.total_error)
        if best.total_error() > ROUGH:
            best = min((of for of in designs if of.cut <= FIT), key=_Design.total_error)
        return best.clamps


class _Design:
    """Clamps of a mean, and the errors of all series under them."""

    def __init__(self, clamps: tuple[Decimal, ...], noises: Sequence[SeriesNoise]) -> None:
        self.clamps, self.errors = clamps, [error for noise in noises for error in noise.all_errors()]
        self.cut = max((noise.cut.energy for noise in noises), default=0.0)

    def total_error(self, span: str | None = None) -> float:
        """Return the smallest error of a span, by default the shortest one, with what the clamp cuts, by the mean."""
        of_span = [of for of in self.errors if span in (None, of.span)][: None if span else 1]
        return min((error.ratio + error.cut_kwh / error.mean for error in of_span), default=float("inf"))


class _Adviser:
    """Judges one run file after another, for one roster."""

    def __init__(self, terms: ReleaseTerms, roster: RosterCounts, today: date) -> None:
        self._terms, self._roster, self._today = terms, roster, today
        self._means = {
            mean_name(name): series for name, series in reversed(terms.run.series.items()) if _is_mean(series)
        }

    def given(self) -> AdviceRow | None:
        """Return the run file as it stands; None if its promise permits no day."""
        run = self._terms.run
        clamps = tuple(series.clamp_kwh for series in run.series.values() if _is_mean(series))
        verdict = self._verdict(run)
        return None if verdict is None else AdviceRow("", None, None, self._every, clamps, run, verdict)

    def clamps(self) -> tuple[Decimal, ...]:
        """Return the clamps with the smallest error under the promise as it stands, or else under its cap of a day."""
        run, cap = self._terms.run, self._terms.run.promise.max_day_epsilon
        if not self._means:
            return ()
        with suppress(RunFileError):
            widest = run.model_copy(update={"series": self._series(self._every, CLAMPS[-1:])}).promising(run.promise)
            verdict = self._verdict(widest)
            if verdict is not None and verdict.noises:
                plan: _Plan | None = _Plan("day", self._every, cap, None, verdict, has_mean=True)
            else:
                plan = self.planned("day", self._every, cap, None)
            if plan is not None:
                return plan.proposed_clamps()
        return ()

    @property
    def _every(self) -> Every:
        return next((period for series in self._means.values() for period in EVERY if period == series.period), "day")

    def smallest(self, protected: Protected, every: Every) -> Iterator[AdviceRow]:
        """Yield a row for each span that the smallest possible epsilon of the ladder makes fit, or else rough."""
        with suppress(RunFileError):
            if (plan := self.planned(protected, every, Decimal(1), None)) is None:
                return
            tried = [(epsilon, [*plan.designs(epsilon)]) for epsilon in LADDER]
            for span in [span for span in SPANS if span in plan.verdict.noises[0].spans]:
                best = [(epsilon, min(of, key=lambda design: design.total_error(span))) for epsilon, of in tried]
                of_use = [pair for limit in (FIT, ROUGH) for pair in best if pair[1].total_error(span) <= limit]
                row = self.row(plan, of_use[0][0], of_use[0][1].clamps) if of_use else None
                if row is not None and {cause.word for cause in row.verdict.causes} <= {*row.verdict.accepted}:
                    yield replace(row, span=span)

    def planned(self, protected: Protected, every: Every, epsilon: Decimal, delta: Decimal | None) -> _Plan | None:
        """Return the plan of what is protected; None if its promise permits no day, or no group is large enough.

        Raises:
            RunFileError: the promise, or these periods, do not go with the run file.
        """
        run = self._run(protected, every, epsilon, delta, CLAMPS[-1:])
        verdict = self._verdict(run)
        if verdict is None or not verdict.noises:
            return None
        return _Plan(protected, every, epsilon, delta, verdict, bool(self._means))

    def row(self, plan: _Plan, factor: Decimal, clamps: tuple[Decimal, ...]) -> AdviceRow | None:
        """Return the row of a plan at so many times its epsilon, with these clamps; None if it permits no day."""
        epsilon = plan.epsilon * factor
        run = self._run(plan.protected, plan.every, epsilon, plan.delta, clamps)
        verdict = self._verdict(run)
        if verdict is None:
            return None
        return AdviceRow(plan.protected, epsilon, plan.delta, plan.every, clamps, run, verdict)

    def _verdict(self, run: RunFile) -> Verdict | None:
        with suppress(ChainError, Refused):  # no loss keeps the promise, or it lacks a model
            return judge_first_release(replace(self._terms, run=run), self._roster, self._today)
        return None

    def _run(
        self, protected: Protected, every: Every, epsilon: Decimal, delta: Decimal | None, clamps: Sequence[Decimal]
    ) -> RunFile:
        """Return the run file with this promise, these periods and these clamps.

        Raises:
            RunFileError: they do not go with the run file.
        """
        run = self._terms.run
        keys = promise_of(run, protected, epsilon, delta=delta, every=every)
        notion = next(notion for notion in NOTIONS if notion.name == keys["notion"])
        accept = {"accept": run.promise.accept} if run.promise.accept else {}
        model = run.model
        if isinstance(model, EstimatedModel) and not notion.needs_model:  # a promise that does not rest on it
            model = model.model_copy(update={"accept_unverified_model": None})
        try:
            promise = notion.model_validate({**keys, **accept})
        except ValidationError as error:
            problem = error.errors(include_url=False)[0]
            raise RunFileError(f"{'.'.join(map(str, problem['loc']))} {problem['msg']}".strip()) from None
        series = self._series(every, clamps) if self._means else run.series
        return run.model_copy(update={"series": series, "promise": promise, "model": model}).promising(promise)

    def _series(self, every: Every, clamps: Sequence[Decimal]) -> dict[str, Any]:
        """Return the series, the means first, with these periods and clamps for every mean."""
        run, series = self._terms.run, dict[str, Any]()
        for table, first in self._means.items():
            parts = [of.share for name, of in run.series.items() if mean_name(name) == table]
            share = None if None in parts else sum((part for part in parts if part is not None), Decimal(0))
            keys = first.model_dump(include={"statistic", "by", "max_missing", "values"})
            keys["missing_kwh"] = min(first.missing_kwh, clamps[-1])
            if len(clamps) == 1:
                keys |= {"every": every, "clamp_kwh": clamps[0], **({} if share is None else {"share": share})}
            else:
                shares = [Decimal(str(part)) * (share or 1) for _, _, part in yardstick.layers()]
                keys |= {"clamp_kwh": list(clamps), "share": shares}
            given = {key: value for key, value in keys.items() if value is not None}
            series |= series_by_name({table: _TABLE.validate_python(given)})
        return {**series, **{name: of for name, of in run.series.items() if mean_name(name) not in self._means}}


def _is_mean(series: AnySeries) -> TypeGuard[EnergySeries]:
    """Return whether a series publishes the energy of days, or a layer of it: what clamps and periods are tried for."""
    return isinstance(series, EnergySeries) and series.unit == "kWh" and not series.reads_half_hours


_TABLE: Final[TypeAdapter[Any]] = TypeAdapter(SeriesTable)


def _best_first(rows: Sequence[AdviceRow]) -> list[AdviceRow]:
    """Return the rows that no other one beats: first those whose year costs no more than a total may."""

    def measures(row: AdviceRow) -> tuple[int, ...]:
        error, losses = row.error, row.verdict.losses
        use = (2**31, 0) if error is None else (error.days, error.grade != "fit")
        return (*use, losses.day, losses.year, -PROTECTED.index(row.protected or "day"))

    by_measures = {measures(row): row for row in rows}

    def is_beaten(measured: tuple[int, ...]) -> bool:
        others = by_measures.keys() - {measured}
        return any(all(x <= y for x, y in zip(other, measured, strict=True)) for other in others)

    best = [measured for measured in by_measures if not is_beaten(measured)]
    best.sort(key=lambda of: (of[3] > LARGEST_TOTAL * NANO, of[0], of[1], of[3]))
    return [by_measures[measured] for measured in best]


def _probes(run: RunFile) -> list[date]:
    first, last = run.schedule.first_day, run.schedule.last_day
    return [first] if last is None else [first, first + (last - first) // 2, last]
