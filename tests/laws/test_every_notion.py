"""Laws that every notion obeys that can be promised, for any parameters, model, history and order of the days.

Stories are attempts: a day in any order, a date on which it is published, a part of what is granted or any loss
at all. What is refused is left out, so that a history is whatever `admit` lets through.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import date, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agedp_data.epsilon import NANO, floor_nano
from agedp_data.errors import Refused
from tests.laws.promises import TRIED, Line, anew, bounds, exact, kept, models, promises

FIRST = date(2013, 3, 1)
DAYS = st.integers(0, 12)
PARTS = st.sampled_from([1.0, 1.0, 1.0, 0.6, 0.1])
LOSSES = st.integers(0, 2 * NANO) | st.integers(0, 5)
ATTEMPTS = st.lists(st.tuples(DAYS, st.integers(0, 3), PARTS | LOSSES), max_size=14)
EXAMPLES = settings(max_examples=25, deadline=None)


def line(promise: Any, history: Sequence[Line], offset: int, wait: int, loss: int = 0) -> Line:
    """The next release: of this day, old enough, and not dated before the last one."""
    day = FIRST + timedelta(days=offset)
    newest = max((row.published_on for row in history), default="")
    earliest = day + timedelta(days=1 + (promise.age_days or 0) + wait)
    return Line(day.isoformat(), loss, max(earliest.isoformat(), newest), f"series_{len(history)}")


def lived(promise: Any, model: Any, attempts: Any) -> list[Line]:
    """The releases that were let through."""
    history: list[Line] = []
    for offset, wait, ask in attempts:
        row = line(promise, history, offset, wait)
        loss = int(ask * promise.loss(history, row.day, model)) if isinstance(ask, float) else ask
        row = replace(row, loss=loss)
        if admits(promise, history, row, model):
            history.append(row)
    return history


def admits(promise: Any, history: Sequence[Line], row: Line, model: Any) -> bool:
    try:
        promise.admit(history, row, model)
    except Refused:
        return False
    return True


def values(promise: Any, history: Sequence[Line], model: Any) -> dict[str, float]:
    return {
        figure.name: float("inf") if figure.value is None else figure.value
        for figure in promise.bounds(history, model, None)
    }


def test_every_notion_that_can_be_promised_is_tried():
    assert {notion.name for notion in kept()} == TRIED.keys()


@st.composite
def lives(draw: st.DrawFn, notion: Any) -> tuple[Any, Any, list[Line]]:
    """A promise of a notion, a model that it can be made under, and the releases that were let through."""
    model, promise = draw(models(notion)), draw(promises(notion))
    return promise, model, lived(promise, model, draw(ATTEMPTS))


def same(promise: Any, model: Any, history: Sequence[Line], other: Sequence[Line], row: Line) -> None:
    """Require that two histories are the same to a promise: bounds, grants and what is admitted."""
    assert values(promise, other, model) == values(promise, history, model)
    assert promise.loss(other, row.day, model) == promise.loss(history, row.day, model)
    assert admits(promise, other, row, model) == admits(promise, history, row, model)


@pytest.mark.parametrize("notion", kept(), ids=lambda notion: notion.name)
class TestEveryNotion:
    @EXAMPLES
    @given(data=st.data())
    def test_no_bound_exceeds_its_limit_and_no_limit_the_promise(self, notion, data):
        promise, model, history = data.draw(lives(notion))
        figures = values(promise, history, model)
        assert set(promise.limits) <= set(figures)
        assert all(limit is None or figures[name] <= limit for name, limit in promise.limits.items())
        for name, bound in bounds(promise).items():
            assert figures[name] <= floor_nano(bound), name
            assert promise.limits[name] <= floor_nano(bound), name
        assert (promise.limits["total"] is None) == (promise.epsilon_total == "unlimited")

    @EXAMPLES
    @given(data=st.data(), offset=DAYS, wait=st.integers(0, 3), part=PARTS)
    def test_what_loss_grants_is_admitted_and_a_skipped_day_counts_nothing(self, notion, data, offset, wait, part):
        promise, model, history = data.draw(lives(notion))
        row = line(promise, history, offset, wait)
        grant = promise.loss(history, row.day, model)
        assert grant >= 0
        promise.admit(history, replace(row, loss=int(grant * part)), model)
        skipped = replace(row, state="skipped")
        promise.admit(history, skipped, model)
        assert values(promise, [*history, skipped], model) == values(promise, history, model)
        for day in {skipped.day, line(promise, history, 5, 0).day}:
            assert promise.loss([*history, skipped], day, model) == promise.loss(history, day, model)

    @EXAMPLES
    @given(data=st.data(), days=st.integers(1, 12))
    def test_a_planned_series_is_what_day_after_day_grants(self, notion, data, days):
        promise, model = data.draw(promises(notion)), data.draw(models(notion))
        history: list[Line] = []
        for offset in range(days):
            row = line(
                promise, history, offset, 0 if promise.age_days is not None else 20 - offset
            )  # an archive has one date
            grant = promise.loss(history, row.day, model, row.published_on)
            if grant == 0:
                break
            history.append(replace(row, loss=grant))
        dates = [(FIRST + timedelta(days=offset)).isoformat() for offset in range(days)]
        assert promise.planned_series(dates, model) == [row.loss for row in history]

    @EXAMPLES
    @given(data=st.data(), offset=DAYS, loss=LOSSES, share=st.floats(0, 1))
    def test_order_and_series_do_not_matter(self, notion, data, offset, loss, share):
        promise, model, history = data.draw(lives(notion))
        row = line(promise, history, offset, 0, loss)
        same(promise, model, history, data.draw(st.permutations(history)), row)
        parts = [
            half
            for row in history
            for half in (
                replace(row, loss=int(share * row.loss)),
                replace(row, loss=row.loss - int(share * row.loss), series=f"{row.series}b"),
            )
        ]
        same(promise, model, history, parts, row)
        if admits(promise, history, row, model):
            first = replace(row, loss=int(share * loss))
            promise.admit(history, first, model)
            promise.admit([*history, first], replace(row, loss=loss - first.loss, series="b"), model)

    @EXAMPLES
    @given(data=st.data(), more=LOSSES, offset=DAYS)
    def test_a_larger_loss_never_gives_smaller_bounds_or_larger_grants(self, notion, data, more, offset):
        """A first loss of a day is judged by the exact L where the days between two releases count.

        Released, such a day divides a gap g + h in two. L_(g+h) <= L_g(L_h) holds for the exact L; a table overstates
        each age by another amount between its losses, so its bound may fall towards the exact one (`test_first_loss`).
        """
        promise, model, history = data.draw(lives(notion))
        if not history:
            return
        which = data.draw(st.integers(0, len(history) - 1))
        if notion.composes_ahead and not any(row.loss for row in history if row.day == history[which].day):
            model = exact(model)
        larger = [replace(row, loss=row.loss + (more if i == which else 0)) for i, row in enumerate(history)]
        before, after = values(promise, history, model), values(promise, larger, model)
        assert all(after[name] >= value for name, value in before.items())
        day = line(promise, history, offset, 0).day
        assert promise.loss(larger, day, model) <= promise.loss(history, day, model)

    @EXAMPLES
    @given(data=st.data(), attempts=ATTEMPTS, offset=DAYS, over=st.integers(1, 10 * NANO))
    def test_a_refusal_names_its_day_and_leaves_no_trace(self, notion, data, attempts, offset, over):
        model, promise = data.draw(models(notion)), data.draw(promises(notion))
        again = anew(promise)
        history = lived(promise, model, attempts)
        before = list(history)
        assert not admits(promise, [], line(promise, [], 0, 0, -1), model)  # a negative loss
        row = line(promise, history, offset, 0, promise.day_cap + over)
        with pytest.raises(Refused, match=row.day):
            promise.admit(history, row, model)
        assert history == before
        assert promise == again
        assert lived(promise, model, attempts) == lived(again, model, attempts)
        assert values(promise, history, model) == values(again, history, model)
