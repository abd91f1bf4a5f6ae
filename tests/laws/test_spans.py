"""Promises of (epsilon, delta) over spans: every window looked at by itself, with a curve of the tests' own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from decimal import Decimal
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter
from scipy.special import logsumexp

from agedp_data import mechanisms
from agedp_data.epsilon import NANO, floor_nano
from agedp_data.errors import Refused
from agedp_data.notions import AnyPromise
from agedp_data.notions.publication import Event, Publication
from agedp_data.notions.spans import SpanLoss
from agedp_data.series.distribution import Distribution
from agedp_data.series.mean import Mean
from agedp_data.series.series import AnySeries
from tests.laws.promises import CHARGES, leakage_bound

FIRST = date(2013, 3, 1)
ORDERS = 1 + np.exp(np.linspace(np.log(0.01), np.log(1999), 64))
CLAMP = Decimal("0.03")  # 30 Wh: few enough outcomes to add them up
EDGES = tuple(map(Decimal, ("0", "0.01", "0.015", "0.02", "0.03")))
MOVES = {"mean": (30,), "by_tariff": (30,), "histogram": (1, 1), "cumulative": (1, 1, 1)}
"""What one household moves at most: one sum, also where it is in one of several groups, or counts by one each."""


def published(**shares: str) -> dict[str, AnySeries]:
    """Return these series with their shares of a day."""
    made: dict[str, AnySeries] = {}
    for name, share in shares.items():
        keys: dict[str, Any] = {"clamp_kwh": CLAMP, "share": Decimal(share)}
        if name in ("mean", "by_tariff"):
            made[name] = Mean(statistic="mean", by="tariff" if name == "by_tariff" else None, **keys)
        else:
            made[name] = Distribution(statistic="distribution", form=name, bins_kwh=EDGES, **keys)
    return made


SERIES = published(mean="0.4", by_tariff="0.3", histogram="0.2", cumulative="0.1")


@dataclass(frozen=True, slots=True)
class Row:
    """A released row as a ledger has it."""

    day: str
    series: str
    loss: int
    sensitivity: int
    scale: float
    mechanism: str = "discrete-laplace"
    state: str = "released"
    published_on: str = "2020-01-01"
    population: str = "homes"
    contract: str = ""

    @property
    def input_ended_at(self) -> str:
        return f"{date.fromisoformat(self.day) + timedelta(days=1)}T00:00:00Z"


def day(number: int) -> str:
    return (FIRST + timedelta(days=number)).isoformat()


def row_of(number: int, series: str, loss: int) -> Row:
    """Return the row that is drawn for a loss [nano-epsilon]; 0 is a skipped day."""
    if loss <= 0:
        return Row(day(number), series, 0, 0, 0.0, "", "skipped")
    sensitivity = sum(MOVES[series])
    scale = mechanisms.laplace_scale(sensitivity=sensitivity, loss=Fraction(loss, NANO))
    recorded = mechanisms.recorded_loss(sensitivity=sensitivity, scale=scale)
    return Row(day(number), series, recorded, sensitivity, scale)


@cache
def cell_curve(move: int, scale: float) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Return the Rényi loss of one value that moves, the sum over all outcomes of its likelihood ratio."""
    q, k = np.exp(-1 / scale), np.arange(1, move)
    losses = np.concatenate([[move], move - 2 * k, [-move]]) / scale
    weights = np.concatenate([[1], (1 - q) * q**k, [q**move]]) / (1 + q)
    return np.asarray(logsumexp(losses[:, None] * (ORDERS - 1), axis=0, b=weights[:, None]) / (ORDERS - 1))


def figure(rows: Iterable[Row], draws: Iterable[Event], delta: Decimal) -> float:
    """Return the loss of rows and draws together at a delta [nano-epsilon]; a draw is an answer at random."""
    rows, draws = [row for row in rows if row.loss], list(draws)
    pure = sum(row.loss for row in rows) + sum(draw.pure for draw in draws)
    renyi = sum((cell_curve(1, NANO / draw.pure) for draw in draws), np.zeros(64))
    renyi = renyi + sum(
        cell_curve(move, row.scale) for row in rows for move in MOVES.get(row.series, (row.sensitivity,))
    )
    at_delta = renyi + np.log1p(-1 / ORDERS) - (float(delta.ln()) + np.log(ORDERS)) / (ORDERS - 1)
    return min(pure, max(0.0, float(at_delta.min()) * NANO))


def figures(rows: Sequence[Row], draws: Sequence[Event], delta: Decimal, width: int | None) -> Iterator[float]:
    """Yield the loss of every window of `width` days, or of all days."""
    if width is None:
        yield figure(rows, draws, delta)
        return
    for first in range(-width - 20, 60):
        days = {day(number) for number in range(first, first + width)}
        yield figure(
            (row for row in rows if row.day in days),
            (draw for draw in draws if any(draw.touches(each) for each in days)),
            delta,
        )


CAPS = {"max_day_epsilon": "0.6", "epsilon_total": "1"}
KINDS = {
    "classical": {"epsilon_per_day": "0.3"},
    "w-event": {"window_days": 9, "epsilon_per_window": "0.7", "spend": "even"},
    "w-event, two days": {"window_days": 2, "epsilon_per_window": "0.4", "spend": "even"},
    "age-dependent": {"epsilon_per_day": "0.3", "age_days": 0, "method": "tight", "secret": "day"},
    "temporal": {"alpha": "0.8", "horizon_days": 9, "budget": "even"},
    "discounted": {"discount": "exponential", "rate": "0.8", "epsilon": "1", "schedule": "renewal",
                   "clock": "data-day"},
    "neighbourhood": {"delta_kwh": "0.01", "window_days": 3, "epsilon_per_window": "0.3", "spend": "per-request"},
}  # fmt: skip


def promised(notion: str, delta: str | None, charges: Sequence[Event] = (), **keys: Any) -> Any:
    terms = {key: Decimal(value) if isinstance(value, str) and value[0].isdigit() else value for key, value in
             (CAPS | KINDS[notion] | keys).items()}  # fmt: skip
    promise = TypeAdapter(AnyPromise).validate_python({"notion": notion.partition(",")[0], **terms, "delta": delta})
    days = (FIRST, FIRST + timedelta(days=900))
    return promise.for_publication(Publication(SERIES, {}, *days, charges=tuple(charges)))


def refusal(promise: Any, history: Sequence[Row], row: Row, model: Any) -> str:
    """Return why a row is refused, "" if it is admitted."""
    try:
        promise.admit(history, row, model)
    except Refused as refused:
        return str(refused)
    return ""


def check_spans(promise: Any, history: Sequence[Row], draws: Sequence[Event]) -> dict[int | None, float]:
    """Return the largest figure of each span that is promised; none is above its bound."""
    largest = {}
    for width, limit in spans_of(promise).items():
        largest[width] = max(figures(history, draws, promise.delta, width))
        assert largest[width] <= limit + 0.01
        shown = SpanLoss(promise._publication, promise.delta, width).epsilon(history)
        assert largest[width] - 0.01 <= shown <= largest[width] + 2
    return largest


def spans_of(promise: Any) -> dict[int | None, int]:
    spans: dict[int | None, int] = {None: promise.total_cap}
    if promise.notion == "w-event":
        spans[promise.window_days] = floor_nano(promise.epsilon_per_window)
    if promise.notion == "temporal":
        spans[None] = min(promise.total_cap, floor_nano(promise.alpha))
    return spans


ASKS = st.sampled_from(["day", "day", "skip", 50, 100, 200]) | st.integers(0, 300)


@pytest.mark.parametrize("notion", KINDS)
@settings(max_examples=12, deadline=None)
@given(
    st.sampled_from(["0.05", "0.005", "1e-6"]),
    CHARGES,
    st.lists(st.tuples(st.integers(0, 11), st.sampled_from(list(SERIES)), ASKS), min_size=14, max_size=24),
)
def test_what_is_admitted_keeps_every_span_and_what_is_refused_would_not(notion, delta, charges, attempts):
    draws = [replace(draw, pure=draw.pure // 3 + 1) for draw in charges]
    promise = promised(notion, delta, draws)
    model = leakage_bound("markov", 0.5) if notion == "age-dependent" else None
    history: list[Row] = []
    for number, series, ask in attempts:
        if ask == "day" and not any(row.day == day(number) for row in history):
            budget = promise.loss(history, day(number), model)
            for name, statistic in SERIES.items():
                row = row_of(number, name, int(promise.part_of_day(name, Fraction(statistic.share)) * budget))
                assert refusal(promise, history, row, model) == ""
                history.append(row)
        elif any((row.day, row.series) == (day(number), series) for row in history):
            continue
        else:
            row = row_of(number, series, ask * 10**6 if isinstance(ask, int) else 0)
            refused = refusal(promise, history, row, model)
            if not refused:
                history.append(row)
            elif promise.notion in ("classical", "w-event") or "(delta" in refused:
                judge_refusal(promise, history, row, draws)
    check_spans(promise, history, draws)


def judge_refusal(promise: Any, history: Sequence[Row], row: Row, draws: Sequence[Event]) -> None:
    """Check that a bound would be broken: of the day, or of a span within the rounding."""
    spent = sum(each.loss for each in (*history, row) if each.day == row.day)
    spent += sum(draw.pure for draw in draws if draw.touches(row.day))
    caps = [promise.day_cap, floor_nano(getattr(promise, "epsilon_per_day", 1000))]
    with_row = [*history, row]
    assert spent > min(caps) or any(
        max(figures(with_row, draws, promise.delta, width)) > limit - 2 for width, limit in spans_of(promise).items()
    )


def test_a_rolling_window_never_ends_and_is_used_up():
    """Days have equal losses for ever; by hand: 365 days of (10, 1e-6) over ten years have .0939 each."""
    promise = promised("w-event", "1e-3", window_days=30, epsilon_per_window="1", epsilon_total="unlimited")
    history: list[Row] = []
    for number in range(75):
        loss = promise.loss(history, day(number), None)
        history += [row_of(number, name, int(Fraction(statistic.share) * loss)) for name, statistic in SERIES.items()]
        assert refusal(promise, history[:-1], history[-1], None) == ""
    by_day = {sum(row.loss for row in history if row.day == day(number)) for number in range(75)}
    assert max(by_day) - min(by_day) <= 8
    assert min(by_day) * 30 > 1.2 * NANO  # pure sums give a thirtieth of 1
    for last in (29, 50, 74):
        spent = figure([row for row in history if day(last - 29) <= row.day <= day(last)], (), promise.delta)
        assert 0.999 * NANO < spent <= NANO


def test_the_budget_of_a_day_does_not_depend_on_the_day_asked_before():
    draws = [Event("2013-01-01", "2013-01-31", 100_000_000)] * 3
    draws += [Event("2014-01-01", "2014-01-31", 300_000_000)]
    budgets = []
    for days in (["2013-01-15", "2014-01-15"], ["2014-01-15", "2013-01-15"]):
        promise = promised("w-event", "1e-3", draws, window_days=30, epsilon_per_window=Decimal("1.5"))
        budgets.append({each: promise.loss([], each, None) for each in days})
    assert budgets[0] == budgets[1]
    assert budgets[0]["2013-01-15"] > budgets[0]["2014-01-15"]  # three small draws cost less than a large one


def test_temporal_leakage_keeps_alpha_whatever_a_household_repeats():
    """A household that repeats one day for ever tells it by every release: the exact law of its whole loss."""
    alpha, delta, days = 3, "1e-3", 90
    promise = promised("temporal", delta, alpha=str(alpha), horizon_days=days, max_day_epsilon="1", epsilon_total="9")
    promise = promise.for_publication(Publication(published(mean="1")))
    history: list[Row] = []
    for number in range(days):
        row = row_of(number, "mean", promise.loss(history, day(number), None))
        promise.admit(history, row, None)
        history.append(row)
    assert promise.loss(history, day(days), None) == 0
    assert "horizon_days" in refusal(promise, history, row_of(days, "mean", 1), None)
    [scale] = {row.scale for row in history}
    q, moved = np.exp(-1 / scale), np.arange(1, 30)
    once = np.zeros(61)  # losses of -30/scale to 30/scale
    once[0], once[60], once[60 - 2 * moved] = q**30 / (1 + q), 1 / (1 + q), (1 - q) / (1 + q) * q**moved
    law = np.ones(1)
    for _ in range(days):
        law = np.convolve(law, once)
    losses = (np.arange(law.size) - 30 * days) / scale
    exact = {epsilon: float(law @ np.clip(-np.expm1(epsilon - losses), 0, None)) for epsilon in (alpha, 0.85 * alpha)}
    assert exact[alpha] <= float(delta) < exact[0.85 * alpha]
    assert sum(row.loss for row in history) > 2 * alpha * NANO  # by pure losses it would be half of that


def test_a_planned_day_counts_as_its_rows_will():
    budget, accountant = 200_000_000, SpanLoss(Publication(SERIES), Decimal("1e-6"))
    parts = [
        (number, name, int(Fraction(each.share) * budget)) for number in range(40) for name, each in SERIES.items()
    ]
    drawn = [row_of(*part) for part in parts]
    by_series = [Row(day(number), name, loss, 0, 0.0, "") for number, name, loss in parts]
    by_day = [Row(day(number), "", budget, 0, 0.0, "") for number in range(40)]
    assert accountant.epsilon(drawn) < sum(row.loss for row in drawn)
    assert accountant.epsilon(drawn) == accountant.epsilon(by_series) == accountant.epsilon(by_day)


def test_losses_beyond_whole_numbers_of_64_bits_add_up():
    rows = [row_of(number, "mean", 900_000 * NANO) for number in range(12)]
    for width, days in ((None, 12), (5, 5), (8, 8)):
        assert SpanLoss(Publication(SERIES), Decimal("1e-6"), width).epsilon(rows) == sum(
            row.loss for row in rows[:days]
        )


def test_an_unknown_mechanism_counts_as_an_answer_at_random():
    rows = [replace(row_of(number, "mean", 10**8), mechanism="from elsewhere") for number in range(40)]
    expected = figure((), [Event(row.day, row.day, row.loss) for row in rows], Decimal("1e-6"))
    assert expected < SpanLoss(Publication(SERIES), Decimal("1e-6")).epsilon(rows) <= expected + 2


def test_bounds_without_effect_are_possible():
    """Epsilons of a million, by which people look at values almost without noise, exceed 64-bit curves."""
    caps = {"epsilon_per_window": "1000000", "max_day_epsilon": "100000", "epsilon_total": "unlimited"}
    promise, history = promised("w-event", "1e-6", **caps), []
    for number in range(12):
        row = row_of(number, "mean", promise.loss(history, day(number), None))
        promise.admit(history, row, None)
        history.append(row)
    [window] = [bound.value for bound in promise.bounds(history, None, None) if bound.name == "window of 9 days"]
    assert window == max(sum(row.loss for row in history[first : first + 9]) for first in range(4))
