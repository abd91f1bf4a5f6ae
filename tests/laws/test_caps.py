"""The caps of every notion, counted by hand: what a day may spend, where the series ends, how series share a day."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

import pytest

from agedp_data.errors import Refused
from agedp_data.notions import NOTIONS, AgeDependent, Classical, Discounted, Neighbourhood, WEvent
from agedp_data.notions.enforcement import EnforcedPromise
from tests.laws.promises import Line, leakage_bound

CAPS = {"max_day_epsilon": Decimal("0.6"), "epsilon_total": Decimal("4.1")}
AGED = {"notion": "age-dependent", "age_days": 1, "secret": "day"}
PROMISES: dict[str, tuple[EnforcedPromise, str]] = {
    "classical": (
        Classical(notion="classical", epsilon_per_day=Decimal("0.3"), **CAPS),
        "markov",
    ),
    "w-event, even": (
        WEvent(notion="w-event", window_days=4, epsilon_per_window=Decimal(1), spend="even", **CAPS),
        "markov",
    ),
    "w-event, remaining": (
        WEvent(notion="w-event", window_days=3, epsilon_per_window=Decimal(1), spend="remaining", **CAPS),
        "markov",
    ),
    "neighbourhood, fraction": (
        Neighbourhood(
            notion="neighbourhood",
            delta_kwh=Decimal(2),
            window_days=3,
            epsilon_per_window=Decimal(1),
            spend="fraction",
            fraction=Decimal("0.4"),
            **CAPS,
        ),
        "markov",
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
    ),
    "age-dependent, epsilon": (
        AgeDependent(epsilon_per_day=Decimal("0.3"), method="tight", **AGED, **CAPS),
        "markov",
    ),
    "age-dependent, risk": (
        AgeDependent(risk=Decimal("0.3"), method="total_variation", **AGED, **CAPS),
        "markov",
    ),
    "age-dependent, tight risk": (
        AgeDependent(risk=Decimal("0.3"), method="tight", **AGED, **CAPS),
        "markov",
    ),
    "age-dependent, risk of a curve": (
        AgeDependent(risk=Decimal("0.9"), method="total_variation", **AGED, **CAPS),
        "curve",
    ),
}


@pytest.mark.parametrize("case", PROMISES)
class TestCaps:
    def test_one_more_than_max_day_epsilon_is_refused_with_day_bound_and_excess(self, case):
        promise, assume = PROMISES[case]
        line = Line("2013-03-01", 600_000_001, "2013-03-03")
        with pytest.raises(Refused, match=r"2013-03-01: .*0\.600000001, 0\.000000001 more than max_day_epsilon"):
            promise.admit([], line, leakage_bound(assume, 0.5))

    def test_the_series_ends_at_epsilon_total(self, case):
        promise, assume = PROMISES[case]
        # Long gone, so that nothing but the total stands in the way.
        history = [Line(f"19{60 + i}-01-01", 590_000_000, f"19{60 + i}-02-01") for i in range(6)]
        history.append(Line("1970-01-01", 559_999_990, "1970-02-01"))
        assert promise.loss(history, "2013-03-01", leakage_bound(assume, 0.5)) == 0
        with pytest.raises(Refused, match=r"0\.000000001 more than epsilon_total = 4\.1"):
            promise.admit(history, Line("2013-03-01", 11, "2013-03-03"), leakage_bound(assume, 0.5))

    def test_series_of_one_day_share_its_loss(self, case):
        promise, assume = PROMISES[case]
        known = leakage_bound(assume, 0.5)
        whole = promise.loss([], "2013-03-01", known)
        first = Line("2013-03-01", whole // 3, "2013-03-03", "a")
        assert promise.loss([first], "2013-03-01", known) == whole - whole // 3
        second = replace(first, loss=whole - whole // 3, series="b")
        promise.admit([first], second, known)
        assert promise.loss([first, second], "2013-03-01", known) == 0


def test_the_list_of_notions_begins_with_the_six_and_no_two_share_a_name():
    names = [notion.name for notion in NOTIONS]
    assert len(set(names)) == len(names)
    assert names[:6] == [
        "classical", "w-event", "age-dependent", "temporal", "discounted", "neighbourhood",
    ]  # fmt: skip
