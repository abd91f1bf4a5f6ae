"""Days put together one by one equal the recursion written out, in one pass."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import date, timedelta
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agedp_data.accounting.composition import Composition, SumComposition
from agedp_data.epsilon import NANO
from agedp_data.leakage.bound_table import LeakageBound
from agedp_data.notions.aged_loss import AgedLeakage, AgedLoss
from agedp_data.notions.notion import ReleaseHistory, day_losses
from tests.laws.promises import Line

FIRST = date(2013, 1, 1)


class Halving:
    """A leakage that halves a loss each day, rounded up; it counts its evaluations."""

    def __init__(self, assume: str) -> None:
        self.asked = 0
        self.composition = {"markov": Composition, "curve": SumComposition}[assume](self.at)

    def at(self, days: int) -> Callable[[int], int]:
        def leakage(loss: int) -> int:
            self.asked += 1
            return -(-loss // 2**days)

        return leakage


def text(day: int) -> str:
    return (FIRST + timedelta(days=day)).isoformat()


def written_out(losses: dict[int, int], age_days: int, assume: str) -> int:
    """MATHS 3 and 2b, directly: the composed loss through every gap, or the best of leaving one to age alone."""
    days = sorted(losses)
    if assume == "markov":
        carried, before = 0, days[0]
        for day in days:
            carried = losses[day] + -(-carried // 2 ** (day - before))
            before = day
        return -(-carried // 2**age_days)
    total = sum(losses.values())
    return min(total - losses[day] + -(-losses[day] // 2 ** (age_days + days[-1] - day)) for day in days)


added = st.lists(st.tuples(st.integers(0, 9), st.integers(1, 10**6)), min_size=1, max_size=12)


@pytest.mark.parametrize("assume", ["markov", "curve"])
class TestTogether:
    @given(story=added, age=st.integers(0, 3))
    def test_days_added_in_any_order_come_to_what_is_written_out(self, assume, story, age):
        together, losses = Halving(assume).composition, dict[int, int]()
        assert together.leakage(0) == 0
        for day, loss in story:
            together.add(day, loss)
            losses[day] = losses.get(day, 0) + loss
            assert together.leakage(max(losses) + age) == written_out(losses, age, assume)

    @given(story=added, day=st.integers(0, 9), loss=st.integers(0, 10**6), age=st.integers(0, 3))
    def test_a_loss_that_is_only_tried_comes_to_what_it_would_if_added(self, assume, story, day, loss, age):
        together, losses = Halving(assume).composition, dict[int, int]()
        for added_day, added_loss in story:
            together.add(added_day, added_loss)
            losses[added_day] = losses.get(added_day, 0) + added_loss
        tried = together.with_release(day, loss)
        assert together.leakage(max(losses) + age) == written_out(losses, age, assume)
        losses[day] = losses.get(day, 0) + loss
        assert tried.leakage(max(losses) + age) == written_out(losses, age, assume)

    @given(stories=st.lists(added, max_size=4), age=st.integers(0, 3))
    def test_what_is_kept_from_one_question_never_shows_in_the_next(self, assume, stories, age):
        curve = np.array([0.5, 0.25])
        known = LeakageBound(np.array([48, 96]), np.array([1.0]), None, None, {"total_variation": curve}, 48, assume)
        keeping = AgedLeakage(known, method="total_variation")
        for story in stories:
            losses = dict[str, int]()
            for day, loss in story:
                losses[text(day)] = losses.get(text(day), 0) + loss
                now = max(map(keeping.instant, losses)) + 48 * age
                fresh = AgedLeakage(known, method="total_variation")
                assert keeping.of(losses).leakage(now) == fresh.of(losses).leakage(now)

    def test_a_series_of_10_000_days_takes_one_pass(self, assume):
        model = Halving(assume)
        for day in range(10_000):
            model.composition.add(day, NANO)
            model.composition.leakage(day + 1)
        assert model.asked <= 20_000


class Nearly:
    """A model in floats that forgets almost nothing; it counts how often it is asked."""

    steps_per_day, assume, methods = 48, "markov", ("total_variation",)

    def __init__(self) -> None:
        self.asked = 0

    def __call__(self, age: int, loss: float, *, direction: str, method: str) -> float:
        self.asked += 1
        return loss * (1 - 1e-12)


def test_figures_of_10_000_publications_ask_the_model_once_a_day_and_once_a_date():
    rows = [Line(text(day), NANO, text(day + 2)) for day in range(10_000)]
    model = Nearly()
    [figure] = AgedLoss(1, "total_variation", "day").bounds(rows, model, None)
    assert 0 < model.asked <= 20_000
    assert figure.value <= 10_000 * NANO


@pytest.mark.parametrize("epsilon", [10**6, 10**9, 10**18])
def test_enormous_losses_are_added_to_the_last_unit(epsilon):
    """Beyond 2^53 units floats skip whole numbers; a sum of 50 losses, each odd, is exact all the same."""
    loss = epsilon * NANO + 1
    rows = [Line(text(day), loss, text(day + 2)) for day in range(50)]
    [figure] = AgedLoss(1, "total_variation", "day").bounds(rows, Nearly(), None)
    assert Fraction(figure.value) == 50 * Fraction(loss)


def test_the_losses_of_days_are_those_of_the_history_in_hand_whatever_was_asked_before():
    keeping = ReleaseHistory()
    a, b, c = (Line(text(day), loss, text(9)) for day, loss in ((0, 1), (1, 2), (0, 4)))
    skipped = Line(text(2), 8, text(9), state="skipped")
    for history in ([a], [a, b], [a, b, c], (a, b, c, skipped), [a, b], [b, a], [], [c, c], [replace(a, loss=9), b]):
        losses = keeping.of(history)
        assert losses == day_losses(history)
        losses["2013-01-01"] = -1  # whoever asks may change what it got
