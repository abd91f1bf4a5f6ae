"""Chains of days with a memory of more than one day: counts by a walk, and models calibrated from them."""

from __future__ import annotations

from collections import Counter
from datetime import date, timedelta

import numpy as np
import pytest

from agedp.calibration.estimate import estimate_higher_order
from agedp.calibration.quantize import Period, quantize
from agedp.calibration_pipeline import calibrate
from agedp.compute.engine_settings import Engine
from agedp_data.accounting.temporal_recursion import TemporalLosses
from agedp_data.epsilon import NANO
from agedp_data.leakage.function import leakage

FIRST, DAYS, HOMES = date(2013, 1, 20), 200, "ABC"
LEVELS = (4800, 9600, 14400)
PROMISE = (
    'notion = "temporal"\nalpha = 1\nhorizon_days = "unlimited"\nbudget = "supremum"\nmax_day_epsilon = 1\n'
    "epsilon_total = 9\n"
)
MODEL = """[model]
source = "estimated"
assume = "markov"
file = "model"
period = [2013-01-20, 2013-07-31]
step = "day"
states = 2
edges = "quantile"
chain = "homogeneous"
memory = "pair"
min_visits = 1
confidence = "plug-in"
ages_days = [1, 2, 3, 7]
publish = "envelope"
"""


def totals(seed, levels=LEVELS, days=DAYS):
    """Days (numbers since FIRST) and their totals: each depends on the two before it; some are missing."""
    chance = np.random.default_rng(seed)
    after = chance.dirichlet(np.full(len(levels), 2.0), size=(len(levels), len(levels)))
    found, before, now = {}, 0, 1
    for day in range(days):
        before, now = now, int(chance.choice(len(levels), p=after[before, now]))
        if seed == 0 or chance.random() > 0.06:
            found[day] = levels[now]
    return found


@pytest.fixture
def delivered(house):
    days = {household: totals(i) for i, household in enumerate(HOMES)}
    house.london(
        {
            (household, FIRST + timedelta(days=day), slot): wh // 48
            for household, own in days.items()
            for day, wh in own.items()
            for slot in range(48)
        }
    )
    return house, days


def higher_order(house, households, last, states, memory):
    """Return counts of households, their edges and their ids."""
    roster = house.roster([(household, FIRST, None) for household in households])
    store, delivery = house.read()
    period = Period(store, delivery, roster, FIRST, last, step="day")
    edges = quantize(period, edges="quantile", n_states=states, engine=Engine())
    found = estimate_higher_order(period, edges, n_states=states, memory=memory, engine=Engine())
    return found, edges, roster.ids


def walk(own, edges, memory):
    """Count transitions from day to day between larger states, each day looked at alone."""

    def state(day):
        return sum(own[day] >= edge for edge in edges)

    def larger(day):
        if day not in own:
            return None
        if memory == "pair":
            return None if day - 1 not in own else state(day - 1) * (len(edges) + 1) + state(day)
        week = [own[each] for each in range(day - 6, day + 1) if each in own]
        if 2 * len(week) <= min(day + 1, 7):
            return None
        return (sum(week) / len(week) >= edges[len(edges) // 2]) * (len(edges) + 1) + state(day)

    counts = Counter((larger(day), larger(day + 1)) for day in own)
    return {pair: n for pair, n in counts.items() if None not in pair}


@pytest.mark.parametrize(("memory", "states"), [("pair", 3), ("trailing-mean", 2), ("trailing-mean", 3)])
def test_counts_are_those_of_each_households_own_days(delivered, memory, states):
    house, days = delivered
    found, edges, ids = higher_order(house, (*HOMES, "ABSENT"), FIRST + timedelta(days=DAYS + 5), states, memory)
    for i, household in enumerate(ids):
        own = days.get(household, {})
        expected = walk(own, edges[i].tolist(), memory)
        assert {at: int(n) for at, n in np.ndenumerate(found.counts[i]) if n} == expected
        assert found.readings[i] == len(own)
        assert found.gaps[i] == max(sum(day + 1 not in own for day in own) - 1, 0)
    assert found.counts.sum() > 300
    assert found.gaps.max() > 3


def test_pairs_do_not_mix_in_a_day_and_an_endless_promise_skips_it(delivered):
    house, _ = delivered
    house.roster([(household, FIRST, None) for household in HOMES])
    first, last = date(2013, 8, 1), date(2013, 8, 7)
    house.write(first, last, promise=PROMISE, rest=MODEL, clamp="20")
    made = calibrate(house.run_file)
    assert (made.unmixed, made.model.public["memory"]) == (0, "pair")
    house.run(today=date(2013, 9, 1))
    losses = [row.loss for row in house.rows()]
    bound = made.model.leakage_bound
    assert float(bound(1, 0.7, direction="backward", method="tight")) == 0.7
    counts = higher_order(house, HOMES, date(2013, 7, 31), 2, "pair")[0].counts
    ahead = counts / counts.sum(axis=2, keepdims=True)
    behind = np.swapaxes(counts, 1, 2) / counts.sum(axis=1)[..., None]
    for days in (2, 3, 7):
        for direction, once in (("forward", ahead), ("backward", behind)):
            exact = leakage(np.linalg.matrix_power(once, days), 0.7).max()
            assert exact <= float(bound(days, 0.7, direction=direction, method="tight")) <= exact * 1.07 + 2e-9
            assert exact < 0.69
    assert (len(losses), len(set(losses))) == (7, 1)
    assert 0.95 * NANO < TemporalLosses(bound).recursion.endless_total(losses[0]) <= NANO
    assert bound.exact_leakage(1, direction="backward").supremum(losses[0]) is None
