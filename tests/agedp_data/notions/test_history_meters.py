"""What is measured of a growing history equals what is counted of its rows at once, whichever rows come and go."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from datetime import date, timedelta
from decimal import Decimal
from fractions import Fraction
from math import ceil

import pytest

from agedp_data.errors import Refused
from agedp_data.leakage.bound_table import LeakageBound
from agedp_data.notions import AgeDependent, Discounted, Neighbourhood, Temporal, WEvent
from agedp_data.notions.neighbourhood import small_losses
from agedp_data.notions.notion import ChangedDays, DayLosses, LossMeter, TickMeter, day_number
from agedp_data.notions.publication import Publication
from agedp_data.notions.spans import EMPTY, SpanCurves
from agedp_data.series.series import series_in
from tests.agedp_data.notions.test_temporal import bound_of
from tests.laws.promises import Line

FIRST = date(2013, 1, 1)
MEAN = series_in({"statistic": "mean", "clamp_kwh": "25", "share": "0.5"})
PUBLICATION = Publication({"a": MEAN, "b": MEAN})
CAPS = {"max_day_epsilon": Decimal(3), "epsilon_total": Decimal(40)}
CHAIN = bound_of([[0.6, 0.4], [0.3, 0.7]], 1)
CURVE = LeakageBound([1, 2, 5], [1.0], None, None, {"total_variation": [0.9, 0.7, 0.2]}, 1, "curve")
PROMISES = {
    "temporal without end": lambda: Temporal(
        notion="temporal", alpha=Decimal(2), horizon_days="unlimited", budget="supremum", **CAPS
    ),
    "temporal to an end": lambda: Temporal(
        notion="temporal", alpha=Decimal(2), horizon_days=12, budget="exact", **CAPS
    ),
    "risk": lambda: AgeDependent(
        notion="age-dependent", risk=Decimal(1), age_days=1, method="total_variation", secret="day", **CAPS  # noqa: S106
    ),
    "discounted by data": lambda: Discounted(
        notion="discounted", discount="exponential", rate=Decimal("0.9"), epsilon=Decimal(1), schedule="renewal",
        clock="data-day", **CAPS,
    ),
    "discounted by publication": lambda: Discounted(
        notion="discounted", discount="hyperbolic", rate=Decimal(3), epsilon=Decimal(1), schedule="constant",
        horizon_days=12, clock="publication-day", age_days=1, **CAPS,
    ),
    "window": lambda: WEvent(
        notion="w-event", window_days=3, epsilon_per_window=Decimal(2), spend="remaining", **CAPS
    ),
    "small changes": lambda: Neighbourhood(
        notion="neighbourhood", delta_kwh=Decimal(2), window_days=3, epsilon_per_window=Decimal(1), spend="per-request",
        **CAPS,
    ).for_publication(PUBLICATION),
}  # fmt: skip


def row(chance: random.Random, number: int) -> Line:
    day = FIRST + timedelta(days=number)
    published = day + timedelta(days=chance.choice([2, 2, 4]))
    state = "released" if chance.random() < 0.9 else "skipped"
    loss = chance.choice([1, 10**6, 10**8, 3 * 10**8]) if state == "released" else 0
    return Line(day.isoformat(), loss, published.isoformat(), chance.choice("ab"), state)


def histories(seed: int, steps: int = 60) -> Iterator[tuple[random.Random, list[Line] | tuple[Line, ...]]]:
    """Yield histories, most of them the one before with a further row; some are shorter, or have another row."""
    chance, rows = random.Random(seed), []  # noqa: S311  (of tests)
    for step in range(steps):
        kind = chance.random()
        if kind < 0.7 or not rows:
            rows.append(row(chance, step if chance.random() < 0.8 else chance.randrange(steps)))
        elif kind < 0.85:
            del rows[-chance.randint(1, 3) :]
        elif kind < 0.95:
            rows[chance.randrange(len(rows))] = row(chance, step)
        else:
            rows.pop(chance.randrange(len(rows)))
        yield chance, tuple(rows) if chance.random() < 0.5 else list(rows)


def counted(rows, key) -> dict:
    losses: dict = {}
    for each in rows:
        if each.state == "released":
            losses[key(each)] = losses.get(key(each), 0) + each.loss
    return losses


@pytest.mark.parametrize("seed", range(4))
def test_meters_have_the_losses_of_the_rows(seed):
    days, ticks, published = LossMeter(), TickMeter("day"), TickMeter("published_on")
    small, curves = small_losses(PUBLICATION, 2000), SpanCurves(PUBLICATION)
    for chance, rows in histories(seed):
        expected = counted(rows, lambda each: each.day)
        losses = days.read(rows).losses
        assert losses == expected
        assert losses.total == sum(expected.values())
        assert losses.released == sum(loss > 0 for loss in expected.values())
        assert losses.newest == max(expected, default=None)
        assert sorted(losses.order) == sorted(expected)
        assert days.ended.keys() == expected.keys()
        day = (FIRST + timedelta(days=chance.randrange(60))).isoformat()
        for loss in (None, 0, 7):
            apart = {**expected, day: loss} if loss is not None else {k: v for k, v in expected.items() if k != day}
            view = losses.but(day, loss)
            assert dict(view) == apart
            assert (len(view), view.total) == (len(apart), sum(apart.values()))
            assert view.released == sum(each > 0 for each in apart.values())
        assert ticks.read(rows).losses == counted(rows, lambda each: day_number(each.day))
        assert published.read(rows).losses == counted(rows, lambda each: day_number(each.published_on))
        parts = {}
        for each in rows:
            if each.state == "released":
                parts[each.day] = parts.get(each.day, 0) + Fraction(each.loss * 2, 25)
        assert small.read(rows).losses == {each: ceil(part) for each, part in parts.items()}
        total, fresh = curves.total(rows), SpanCurves(PUBLICATION).total(rows)
        assert (total.pure, total.curve.tolist()) == (fresh.pure, fresh.curve.tolist())
        assert {n: span.pure for n, span in curves.days.items()} == dict(ticks.losses)
        assert total.pure == sum((span.pure for span in curves.days.values()), EMPTY.pure)


@pytest.mark.parametrize("seed", range(4))
def test_every_day_whose_loss_changed_is_named(seed):
    meter, changed, seen = LossMeter(), ChangedDays(), {}
    for chance, rows in histories(seed):
        losses = meter.read(rows).losses
        if chance.random() < 0.4:
            losses = losses.but((FIRST + timedelta(days=chance.randrange(60))).isoformat(), chance.choice([None, 5]))
        if chance.random() < 0.1:
            assert changed.since(dict(seen)) is None  # losses of which nothing is known
        days = changed.since(losses)
        if days is not None:
            assert {day for day in {*seen, *losses} if seen.get(day) != losses.get(day)} <= days
        seen = dict(losses)


def answer(promise, history, new, model) -> tuple[int, str]:
    try:
        promise.admit(history, new, model)
    except Refused as refused:
        return 0, str(refused)
    return 0, ""


@pytest.mark.parametrize("name", PROMISES)
@pytest.mark.parametrize("seed", range(2))
def test_a_promise_that_was_asked_much_answers_as_one_that_was_asked_nothing(name, seed):
    asked = PROMISES[name]()
    models = [CHAIN, CURVE] if name == "risk" else [CHAIN]
    for chance, rows in histories(seed, 40):
        new, fresh, model = (
            replace(row(chance, chance.randrange(45)), state="released"),
            PROMISES[name](),
            chance.choice(models),
        )
        for day in {new.day, *(each.day for each in rows[-1:])}:
            assert asked.loss(rows, day, model, new.published_on) == fresh.loss(rows, day, model, new.published_on)
            others = [each for each in rows if each.day != day]
            assert asked.loss(others, day, model) == PROMISES[name]().loss(others, day, model)
        assert answer(asked, rows, new, model) == answer(PROMISES[name](), rows, new, model)
        assert asked.bounds(rows, model, None) == PROMISES[name]().bounds(rows, model, None)
        assert asked.violations(rows, model) == PROMISES[name]().violations(rows, model)


def test_losses_of_days_keep_what_is_asked_of_them():
    losses = DayLosses[int]()
    for day, loss in ((5, 3), (7, 0), (6, 2), (7, None), (6, None), (9, 1)):
        losses.put(day, loss)
    assert dict(losses) == {5: 3, 9: 1}
    assert (losses.total, losses.released, losses.newest, losses.changes) == (4, 2, 9, [5, 7, 6, 7, 6, 9])
