"""The caps of every notion, counted by hand: what a day may spend, where the series ends, how series share a day."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

import pytest
from pydantic import TypeAdapter

from agedp_data.errors import Refused
from agedp_data.notions import NOTIONS, AnyPromise
from tests.laws.promises import Line, leakage_bound

KINDS = {
    "classical": {"epsilon_per_day": "0.3"},
    "w-event, even": {"window_days": 4, "epsilon_per_window": "1", "spend": "even"},
    "w-event, remaining": {"window_days": 3, "epsilon_per_window": "1", "spend": "remaining"},
    "neighbourhood": {
        "delta_kwh": "2", "window_days": 3, "epsilon_per_window": "1", "spend": "fraction", "fraction": "0.4",
    },
    "discounted, renewal": {
        "discount": "exponential", "rate": "0.8", "epsilon": "0.5", "schedule": "renewal", "clock": "data-day",
    },
    "discounted, optimal": {
        "discount": "hyperbolic", "rate": "0.3", "epsilon": "2", "schedule": "optimal", "horizon_days": 40,
        "clock": "data-day",
    },
    "age-dependent": {"epsilon_per_day": "0.3", "method": "tight", "age_days": 1, "secret": "day"},
    "age-dependent, risk": {"risk": "0.3", "method": "total_variation", "age_days": 1, "secret": "day"},
    "age-dependent, tight risk": {"risk": "0.3", "method": "tight", "age_days": 1, "secret": "day"},
    "age-dependent, curve": {"risk": "0.9", "method": "total_variation", "age_days": 1, "secret": "day"},
}  # fmt: skip
NUMBERS = {"epsilon_per_day", "epsilon_per_window", "epsilon", "rate", "risk", "delta_kwh", "fraction"}


@pytest.mark.parametrize("case", KINDS)
def test_caps_bind_and_series_share_a_day(case):
    keys = {key: Decimal(value) if key in NUMBERS else value for key, value in KINDS[case].items()}
    caps = {"max_day_epsilon": Decimal("0.6"), "epsilon_total": Decimal("4.1")}
    promise = TypeAdapter(AnyPromise).validate_python({"notion": case.partition(",")[0], **keys, **caps})
    known = leakage_bound("curve" if case.endswith("curve") else "markov", 0.5)

    with pytest.raises(Refused, match=r"2013-03-01: .*0\.600000001, 0\.000000001 more than max_day_epsilon"):
        promise.admit([], Line("2013-03-01", 600_000_001, "2013-03-03"), known)

    # Long gone, so that nothing but the total stands in the way.
    history = [Line(f"19{60 + i}-01-01", 590_000_000, f"19{60 + i}-02-01") for i in range(6)]
    history.append(Line("1970-01-01", 559_999_990, "1970-02-01"))
    assert promise.loss(history, "2013-03-01", known) == 0
    with pytest.raises(Refused, match=r"0\.000000001 more than epsilon_total = 4\.1"):
        promise.admit(history, Line("2013-03-01", 11, "2013-03-03"), known)

    whole = promise.loss([], "2013-03-01", known)
    first = Line("2013-03-01", whole // 3, "2013-03-03", "a")
    assert promise.loss([first], "2013-03-01", known) == whole - whole // 3
    second = replace(first, loss=whole - whole // 3, series="b")
    promise.admit([first], second, known)
    assert promise.loss([first, second], "2013-03-01", known) == 0


def test_the_list_of_notions_begins_with_the_six_and_no_two_share_a_name():
    names = [notion.name for notion in NOTIONS]
    assert len(set(names)) == len(names)
    assert names[:6] == ["classical", "w-event", "age-dependent", "temporal", "discounted", "neighbourhood"]
