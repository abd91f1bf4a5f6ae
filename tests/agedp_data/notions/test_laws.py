"""Laws that every notion that can be promised obeys, whatever the history and the order of the days."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import date, timedelta
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agedp_data.chains.envelope import Envelope
from agedp_data.errors import Refused
from agedp_data.losses import granted
from agedp_data.notions import NOTIONS, AgeDependent, Classical, Discounted, WEvent
from agedp_data.notions.enforced import Enforced

GRID = np.concatenate([np.linspace(0.001, 5, 200), [20.0, 64.0]])
DAYS = np.arange(1, 41)


def envelope(assume: str, forgets: float = 0.5) -> Envelope:
    """A household forgets half of everything each day (total variation forgets^days)."""
    curve = forgets ** DAYS.astype(float)
    tight = np.log1p(curve[:, None] * np.expm1(GRID))
    return Envelope(DAYS * 48, GRID, tight, None, {"total_variation": curve}, 48, assume)


@dataclass(frozen=True, slots=True)
class Line:
    day: str
    loss: int
    published_on: str
    series: str = "daily_mean"
    state: str = "released"
    population: str = "homes"

    @property
    def input_ended_at(self) -> str:
        return f"{date.fromisoformat(self.day) + timedelta(days=1)}T00:00:00Z"


CAPS = {"max_day_epsilon": Decimal("0.6"), "epsilon_total": Decimal("4.1")}
AGED = {"notion": "age-dependent", "age_days": 1, "secret": "day"}
PROMISES: dict[str, tuple[Enforced, str, dict[str, Decimal]]] = {
    "classical": (
        Classical(notion="classical", epsilon_per_day=Decimal("0.3"), **CAPS),
        "markov",
        {"day": Decimal("0.3"), "total": Decimal("4.1")},
    ),
    "w-event, even": (
        WEvent(notion="w-event", window_days=4, epsilon_per_window=Decimal(1), spend="even", **CAPS),
        "markov",
        {"day": Decimal("0.6"), "window of 4 days": Decimal(1), "total": Decimal("4.1")},
    ),
    "w-event, remaining": (
        WEvent(notion="w-event", window_days=3, epsilon_per_window=Decimal(1), spend="remaining", **CAPS),
        "markov",
        {"day": Decimal("0.6"), "window of 3 days": Decimal(1), "total": Decimal("4.1")},
    ),
    "discounted, renewal": (
        Discounted(
            notion="discounted",
            discount="exponential",
            rate=Decimal("0.8"),
            epsilon=Decimal("0.5"),
            schedule="renewal",
            clock="data-day",
            **CAPS,
        ),
        "markov",
        {"day": Decimal("0.5"), "discounted sum (exponential 0.8)": Decimal("0.5"), "total": Decimal("4.1")},
    ),
    "discounted, optimal": (
        Discounted(
            notion="discounted",
            discount="hyperbolic",
            rate=Decimal("0.3"),
            epsilon=Decimal(2),
            schedule="optimal",
            horizon_days=40,
            clock="data-day",
            **CAPS,
        ),
        "markov",
        {"day": Decimal("0.6"), "discounted sum (hyperbolic 0.3)": Decimal(2), "total": Decimal("4.1")},
    ),
    "age-dependent, epsilon": (
        AgeDependent(epsilon_per_day=Decimal("0.3"), method="tight", **AGED, **CAPS),
        "markov",
        {"day": Decimal("0.3"), "total": Decimal("4.1")},
    ),
    "age-dependent, risk": (
        AgeDependent(risk=Decimal("0.3"), method="total_variation", **AGED, **CAPS),
        "markov",
        {"day": Decimal("0.6"), "risk": Decimal("0.3"), "total": Decimal("4.1")},
    ),
    "age-dependent, tight risk": (
        AgeDependent(risk=Decimal("0.3"), method="tight", **AGED, **CAPS),
        "markov",
        {"day": Decimal("0.6"), "risk": Decimal("0.3"), "total": Decimal("4.1")},
    ),
    "age-dependent, risk of a curve": (
        AgeDependent(risk=Decimal("0.9"), method="total_variation", **AGED, **CAPS),
        "curve",
        {"day": Decimal("0.6"), "risk": Decimal("0.9"), "total": Decimal("4.1")},
    ),
}
FIRST = date(2013, 3, 1)
days = st.integers(0, 20)
events = st.lists(st.tuples(days, st.integers(0, 3), st.sampled_from([1.0, 1.0, 0.7, 0.3])), max_size=25)


def simulated(promise: Enforced, known: Envelope, story: list[tuple[int, int, float]]) -> list[Line]:
    """Days asked for in any order, each spending a part of what it may, published as time goes on."""
    history: list[Line] = []
    on = FIRST
    for number, (offset, wait, part) in enumerate(story):
        day = FIRST + timedelta(days=offset)
        on = max(on + timedelta(days=wait), day + timedelta(days=2))
        grants = promise.loss(history, day.isoformat(), known)
        line = Line(day.isoformat(), int(grants * part), on.isoformat(), f"series_{number}")
        promise.admit(history, line, known)
        history.append(line)
    return history


@pytest.mark.parametrize("case", PROMISES)
class TestEveryPromise:
    @settings(max_examples=60, deadline=None)
    @given(story=events)
    def test_what_it_grants_it_admits_and_what_it_admitted_keeps_the_promise(self, case, story):
        promise, assume, bounds = PROMISES[case]
        known = envelope(assume)
        history = simulated(promise, known, story)
        figures = {figure.name: figure.value for figure in promise.figures(history, known, None)}
        for name, bound in bounds.items():
            assert figures[name] is not None
            assert figures[name] <= granted(bound)

    @settings(max_examples=60, deadline=None)
    @given(story=events, day=days, extra=days, loss=st.integers(0, 600_000_000))
    def test_a_larger_history_never_grants_more(self, case, story, day, extra, loss):
        promise, assume, _ = PROMISES[case]
        known = envelope(assume)
        history = simulated(promise, known, story)
        asked = (FIRST + timedelta(days=day)).isoformat()
        # No newer day than there is: with that, time would have passed and older losses would count less.
        newest = max([asked, *(row.day for row in history)])
        more = Line(min((FIRST + timedelta(days=extra)).isoformat(), newest), loss, "2013-04-30")
        assert promise.loss([*history, more], asked, known) <= promise.loss(history, asked, known)

    def test_one_more_than_max_day_epsilon_is_refused_with_day_bound_and_excess(self, case):
        promise, assume, _ = PROMISES[case]
        line = Line("2013-03-01", 600_000_001, "2013-03-03")
        with pytest.raises(Refused, match=r"2013-03-01: .*0\.600000001, 0\.000000001 more than max_day_epsilon"):
            promise.admit([], line, envelope(assume))

    def test_the_series_ends_at_epsilon_total(self, case):
        promise, assume, _ = PROMISES[case]
        # Long gone, so that nothing but the total stands in the way.
        history = [Line(f"19{60 + i}-01-01", 590_000_000, f"19{60 + i}-02-01") for i in range(6)]
        history.append(Line("1970-01-01", 559_999_990, "1970-02-01"))
        assert promise.loss(history, "2013-03-01", envelope(assume)) == 0
        with pytest.raises(Refused, match=r"0\.000000001 more than epsilon_total = 4\.1"):
            promise.admit(history, Line("2013-03-01", 11, "2013-03-03"), envelope(assume))

    def test_a_skipped_day_spends_nothing_and_is_always_admitted(self, case):
        promise, assume, _ = PROMISES[case]
        skipped = Line("2013-03-01", 10**12, "2013-03-03", state="skipped")
        promise.admit([], skipped, envelope(assume))
        assert promise.loss([skipped], "2013-03-02", envelope(assume)) == promise.loss(
            [], "2013-03-02", envelope(assume)
        )
        assert all(figure.value == 0 for figure in promise.figures([skipped], envelope(assume), None))

    def test_series_of_one_day_share_its_loss(self, case):
        promise, assume, _ = PROMISES[case]
        known = envelope(assume)
        whole = promise.loss([], "2013-03-01", known)
        first = Line("2013-03-01", whole // 3, "2013-03-03", "a")
        assert promise.loss([first], "2013-03-01", known) == whole - whole // 3
        second = replace(first, loss=whole - whole // 3, series="b")
        promise.admit([first], second, known)
        assert promise.loss([first, second], "2013-03-01", known) == 0

    def test_a_negative_loss_is_refused(self, case):
        promise, assume, _ = PROMISES[case]
        with pytest.raises(Refused, match="negative"):
            promise.admit([], Line("2013-03-01", -1, "2013-03-03"), envelope(assume))


def test_the_list_of_notions_has_the_six_and_no_two_share_a_name():
    assert [notion.name for notion in NOTIONS] == [
        "classical",
        "w-event",
        "age-dependent",
        "temporal",
        "discounted",
        "neighbourhood",
    ]
