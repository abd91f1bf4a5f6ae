"""Random histories of every notion, and what the engine says about each: budgets, what is admitted, stated bounds.

A story is made from a seed alone: a promise, what is published, calibration draws, models, and days in order and out of
it, with gaps, rows of weeks and months, an amendment and a model that comes later. `told` lives it and returns whole
numbers of nano-epsilon; equal engines tell equal stories.

    python -m tests.histories temporal 0 60 12     stories 0 to 59 of twelve days, one a line, to compare two engines
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from decimal import Decimal
from fractions import Fraction
from random import Random
from typing import Any, Final

from pydantic import TypeAdapter, ValidationError

from agedp.budget import DayBudget, EffectivePromise
from agedp_data import mechanisms
from agedp_data.epsilon import NANO
from agedp_data.errors import Refused
from agedp_data.notions import NOTIONS, AnyPromise
from agedp_data.notions.notion import compared_accountants
from agedp_data.notions.publication import Comparison, Event, Publication
from agedp_data.series.series import series_in
from tests.laws.promises import Line, exact_bound, leakage_bound

FIRST: Final = date(2013, 1, 28)  # a Monday: weeks and a month end within a short story
SHORT: Final = 12  # days
_PROMISE: Final[TypeAdapter[Any]] = TypeAdapter(AnyPromise)

_MEAN = {"statistic": "mean", "clamp_kwh": "10"}
_PUBLISHED: Final[tuple[dict[str, dict[str, Any]], ...]] = (
    {},
    {"daily": _MEAN},
    {"daily": _MEAN},
    {"daily": {**_MEAN, "share": "0.5"}, "week": {**_MEAN, "every": "week", "share": "0.2"},
     "month": {**_MEAN, "every": "month", "share": "0.3"}},
    {"daily": {**_MEAN, "share": "0.6"},
     "homes": {"statistic": "distribution", "clamp_kwh": "20", "bins_kwh": ["0", "10", "20"], "share": "0.4"}},
    {"daily": {**_MEAN, "share": "0.7"}, "upper": {**_MEAN, "clamp_kwh": "30", "above_kwh": "10", "share": "0.3"}},
    {"hours": {"statistic": "profile", "clamp_kwh": "20", "half_hour_clamp_kwh": "1", "share": "0.5"},
     "daily": {**_MEAN, "share": "0.5"}},
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Story:
    """Everything that happens, before the engine is asked anything."""

    promise: Any
    amended: Any | None
    publication: Publication
    models: tuple[Any, ...]
    later_model: bool
    days: tuple[date, ...]
    random: Random


def _amount(random: Random, most: int) -> Decimal:
    return random.choice(
        [Decimal(random.randint(1, most * 1000)) / 1000, Decimal(random.randint(1, most * 10**9)) / 10**9]
    )


def _keys(random: Random, notion: str) -> dict[str, Any]:
    pick = random.choice
    if notion == "classical":
        return {"epsilon_per_day": _amount(random, 1)}
    if notion == "w-event":
        return {"window_days": random.randint(1, 9), "epsilon_per_window": _amount(random, 2),
                "spend": pick(["even", "remaining"])}  # fmt: skip
    if notion == "age-dependent":
        return {pick(["epsilon_per_day", "risk"]): _amount(random, 2), "age_days": random.randint(0, 3),
                "method": pick(["tight", "total_variation"]), "secret": pick(["day", "half-hour"])}  # fmt: skip
    if notion == "temporal":
        horizon, budget = pick([("unlimited", "supremum"), (5, "exact"), (6, "even"), (40, "exact"), (7, "supremum")])
        return {"alpha": _amount(random, 2), "horizon_days": horizon, "budget": budget}
    if notion == "discounted":
        discount, rate = pick(
            [("exponential", "0.5"), ("exponential", "0.95"), ("hyperbolic", "0.01"), ("hyperbolic", "3")]
        )
        plan, horizon = pick([("renewal", 0), ("paper", 0), ("classical", 0), ("classical", 5), ("constant", 6),
                              ("optimal", 5), ("optimal", 40)])  # fmt: skip
        horizons = {"horizon_days": horizon} if horizon else {}
        return {"discount": discount, "rate": Decimal(rate), "schedule": plan, "epsilon": _amount(random, 2),
                "clock": pick(["data-day", "publication-day"]), **horizons}  # fmt: skip
    spend = pick(["fraction", "per-request", "offline"])
    fraction = {"fraction": Decimal(pick(["0.2", "0.7"]))} if spend == "fraction" else {}
    return {"delta_kwh": Decimal(pick(["0.7", "2", "6.999"])), "window_days": random.randint(1, 9),
            "epsilon_per_window": _amount(random, 2), "spend": spend, **fraction}  # fmt: skip


def _promise(random: Random, notion: str) -> Any:
    """Return a promise whose caps now and then bind, one in three at a delta."""
    while True:
        total: Any = random.choice(["unlimited", _amount(random, 6)])
        keys = {"notion": notion, **_keys(random, notion), "max_day_epsilon": _amount(random, 2),
                "epsilon_total": total}  # fmt: skip
        if random.random() < 1 / 3:
            keys |= {"delta": Decimal(random.choice(["0.000001", "0.001", "0.05"]))}
        try:
            return _PROMISE.validate_python(keys)
        except ValidationError:
            continue


def _amended(random: Random, promise: Any) -> Any | None:
    """Return the same promise with less of one of its amounts; None where that is no promise, or in most stories."""
    if random.random() < 0.7:
        return None
    amounts = {"max_day_epsilon", "epsilon_total", promise.TEXT.epsilon_key}
    key = random.choice(sorted(amounts))
    value = getattr(promise, key)
    if not isinstance(value, Decimal):
        return None
    lower = (value * random.choice([Decimal("0.9"), Decimal("0.5")])).quantize(Decimal("1e-9"))
    try:
        return type(promise).model_validate({**promise.model_dump(exclude_none=True), key: lower})
    except ValidationError:
        return None


def story(notion: str, seed: str, *, length: int) -> Story:
    """Return the story of a seed."""
    random = Random(f"{notion} {length} {seed}")  # noqa: S311  (a story, not noise)
    promise = _promise(random, notion)
    with_periods = notion in ("classical", "w-event")  # the others refuse rows of weeks and months
    published = [each for each in _PUBLISHED if with_periods or "week" not in each]
    tables = random.choice(published if length == SHORT else published[:3])
    series = {name: series_in(table) for name, table in tables.items()}
    draws = tuple(
        Event(_day(begin), _day(begin + random.randint(0, 20)), random.randint(1, 300) * 10**6)
        for begin in (random.randint(-15, 12) for _ in range(random.choice([0, 0, 0, 1, 2])))
    )
    first, last = random.choice([(FIRST, FIRST + timedelta(days=length + 8)), (FIRST, None)])
    publication = Publication(series, {"c": series}, first, last, charges=draws)
    with_model = notion in ("age-dependent", "temporal") or random.random() < 0.1
    kind = random.choice([leakage_bound, exact_bound])
    bounds = tuple(
        kind(random.choice(["markov", "curve"]) if notion != "temporal" else "markov", random.choice([0.2, 0.9, 1.0]))
        for _ in range(random.choice([1, 1, 2]))
    )
    return Story(promise, _amended(random, promise), publication, bounds if with_model else (None,),
                 random.random() < 0.5, tuple(_days(random, length)), random)  # fmt: skip


def _day(offset: int) -> str:
    return (FIRST + timedelta(days=offset)).isoformat()


def _days(random: Random, length: int) -> Iterator[date]:
    """Yield days: most in order, some left out, some that were left out and come later."""
    skipped: list[int] = []
    number = 0
    for _ in range(length):
        choice = random.random()
        if choice < 0.1 and skipped:
            yield FIRST + timedelta(days=skipped.pop(random.randrange(len(skipped))))
            continue
        gap = random.choice([1, 1, 2, 9]) if choice < 0.25 else 0
        skipped += range(number, number + gap)
        number += gap
        yield FIRST + timedelta(days=number)
        number += 1


def told(each: Story) -> list[Any]:
    """Return what the engine answers, in order: plans, budgets, what was admitted, and bounds."""
    promise = each.promise.for_publication(each.publication)
    answers: list[Any] = []
    models = each.models[:1] if each.later_model else each.models
    try:
        for model in models:
            promise.check_charges([], model)
    except Refused:
        return ["charges"]
    for model in models:
        plan = [_day(i) for i in range(40)]
        answers.append(_answer(promise.planned_series, plan, model))
    history: list[Line] = []
    half = len(each.days) // 2
    for step, day in enumerate(each.days):
        if step == half:
            models = each.models
            if each.amended is not None:
                promise = each.amended.for_publication(each.publication)
                answers.append(sorted({key for model in models for key in promise.violations(history, model)}))
                answers.append(sorted(promise.exceeded_spans(history)))
        answers += _released(EffectivePromise(promise, tuple(models)), each, day, history)
        if step in (half - 1, len(each.days) - 1):
            answers += _stated(promise, each.publication, models, history)
    return answers


def _answer(ask: Any, *arguments: Any) -> Any:
    try:
        return ask(*arguments)
    except Refused:
        return "refused"


def _released(promise: EffectivePromise, each: Story, day: date, history: list[Line]) -> Iterator[Any]:
    """Ask for the budget of every series of a day, release some of it, now and then more than it."""
    random, series = each.random, each.publication.series
    age = getattr(promise.notion, "age_days", None) or 0
    newest = max((row.published_on for row in history), default="")
    published_on = max((day + timedelta(days=1 + age + random.choice([0, 0, 0, 3]))).isoformat(), newest)
    for name, statistic in series.items() or [("", None)]:
        part, choice = random.random(), random.random()
        if statistic is not None and statistic.covers_periods:
            first, last = statistic.covered_days(day)
            if first < FIRST or last != day:
                continue
        row = Line(day.isoformat(), 0, published_on, name, contract="c" if name else "")
        if any(known.day == row.day and known.series == name for known in history):
            continue

        def row_with(loss: int, row: Line = row, statistic: Any = statistic, day: date = day) -> Line:
            if statistic is None:
                return replace(row, loss=loss)
            sensitivity = statistic.row_sensitivity(day)
            scale = mechanisms.laplace_scale(sensitivity=sensitivity, loss=Fraction(loss, NANO))
            recorded = mechanisms.recorded_loss(sensitivity=sensitivity, scale=scale)
            return replace(row, loss=recorded, sensitivity=sensitivity, scale=scale, mechanism="discrete-laplace")

        budget = _budget(promise, history, day, published_on, name, statistic)
        if statistic is not None and each.publication.has_periods:
            budget = promise.largest_admitted(history, budget, row_with)
        yield budget.loss
        yield budget.skipped
        wanted = budget.loss if choice < 0.7 else int(part * budget.loss) if choice < 0.88 else budget.loss * 2 + 1000
        if wanted > 0:
            admitted = promise.admits(history, row_with(wanted))
            yield admitted
            if admitted:
                history.append(row_with(wanted))


def _budget(
    promise: EffectivePromise, history: Sequence[Line], day: date, published_on: str, name: str, statistic: Any
) -> DayBudget:
    if statistic is None:
        return promise.day_budget(history, day.isoformat(), published_on)
    return promise.series_budget(history, day, published_on, name=name, series=statistic)


def _stated(promise: Any, publication: Publication, models: Sequence[Any], history: Sequence[Line]) -> Iterator[Any]:
    """Yield the promised bounds, under every model, and those of all other notions beside them."""
    for model in models:
        yield _values(promise.bounds(history, model, None))
        yield sorted(promise.violations(history, model))
    comparison = Comparison(
        promise, days=20, methods=("tight", "total_variation") if models[0] is not None else (),
        publication=publication, window_days=7, exponential=Decimal("0.9"), hyperbolic=Decimal(1),
        delta_kwh=(Decimal(1),),
    )  # fmt: skip
    for accountant in compared_accountants(NOTIONS, comparison):
        yield _values(accountant.bounds(history, models[0], None))
    yield promise.total(history)


def _values(bounds: Sequence[Any]) -> Mapping[str, int | None]:
    return {bound.name: bound.value for bound in bounds}
