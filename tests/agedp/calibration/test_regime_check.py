"""The verdict on a model: chains pass, slow regimes contradict, too few households cannot be judged."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from agedp.calibration.model_check import LAGS_DAYS, RegimeCheck, check_regimes, judge_model
from agedp.compute.engine_settings import Engine

DAYS = 280


def totals(kind, households=30, days=DAYS, seed=6):
    """Return daily totals (h, T) [Wh] around a common season: no memory, a chain of days, or slow regimes."""
    rng = np.random.default_rng(seed)
    season = 1 + 0.3 * np.sin(np.arange(days) / 58) + 0.2 * (np.arange(days) % 7 >= 5) + 0.05 * rng.random(days)
    own = rng.normal(size=(households, days))
    if kind == "chain":
        for day in range(1, days):
            own[:, day] = 0.5 * own[:, day - 1] + np.sqrt(0.75) * own[:, day]
    elif kind == "regimes":
        own += 2 * np.array([_regimes(rng, days) for _ in range(households)])
    scale = rng.uniform(3000, 12_000, households)[:, None]
    return np.rint(scale * season * np.exp(0.2 * own)).astype(np.int64)


def _regimes(rng, days):
    return np.repeat(np.arange(40) % 2, rng.integers(15, 60, 40))[rng.integers(0, 60) :][:days]


@cache
def check_of(kind, **sizes):
    values = totals(kind, **sizes)
    return check_regimes(values, np.arange(values.shape[1]), engine=Engine())


@pytest.mark.parametrize("kind", ["no memory", "chain"])
def test_households_that_are_such_a_chain_are_not_contradicted(kind):
    check = check_of(kind)
    assert judge_model(check, is_rejected=False).verdict == "not rejected"
    assert np.abs(check.mean("regimes") - check.mean("direct")).max() < 0.06


def test_slow_regimes_contradict_the_visible_chain():
    check = check_of("regimes")
    verdict = judge_model(check, is_rejected=False)
    assert verdict.verdict == "rejected"
    assert verdict.reason.startswith("Its memory decays too fast: at ")
    week = LAGS_DAYS.index(7)
    assert abs(check.mean("regimes")[week] - check.mean("direct")[week]) < check.excess[0][week] / 4


def test_a_rejected_markov_property_contradicts():
    check = check_of("no memory")
    verdict = judge_model(check, is_rejected=True)
    assert (verdict.verdict, verdict.reason) == (
        "rejected", "The Markov property is rejected for too many households.",
    )  # fmt: skip


@pytest.mark.parametrize("sizes", [{"households": 19}, {"days": 89}, {"days": 1}, {"households": 0}])
def test_too_few_households_or_days_cannot_be_judged(sizes):
    verdict = judge_model(check_of("no memory", **sizes), is_rejected=False)
    assert verdict.verdict == "cannot be judged"
    assert verdict.reason.startswith("Too few readings at a lag of ")


def test_a_verdict_follows_its_rules_at_their_edges():
    """24 households: half of them lie 0.02 above the mean excess and half below, so its error is 0.02 / sqrt(23)."""
    spread = np.tile([0.02, -0.02], 12)[:, None]
    for excess, verdict in ((0.049, "not rejected"), (0.051, "rejected"), (-0.5, "not rejected")):
        direct = np.zeros((24, len(LAGS_DAYS)))
        direct[:, 4] = excess
        check = RegimeCheck(direct + spread, np.zeros_like(direct), direct, DAYS)
        assert check.excess[1][4] == pytest.approx(0.02 / np.sqrt(23))
        assert judge_model(check, is_rejected=False).verdict == verdict
    wide = RegimeCheck(direct + 8 * spread, np.zeros_like(direct), direct, DAYS)  # an error above 0.025
    assert judge_model(wide, is_rejected=False).verdict == "cannot be judged"
