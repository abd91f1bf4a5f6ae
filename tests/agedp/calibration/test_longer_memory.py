"""Chains of days that remember more than the last one: counts by a walk, and what calibration makes of them."""

from __future__ import annotations

import re
from collections import Counter
from datetime import date, timedelta

import numpy as np
import pytest

from agedp.calibration.memory_check import estimate_higher_order
from agedp.calibration.quantize import Period, quantize
from agedp.calibration_pipeline import calibrate
from agedp.compute.engine_settings import Engine
from agedp_data.accounting.temporal_leakage import temporal, temporal_kernels
from agedp_data.accounting.temporal_recursion import TemporalLosses
from agedp_data.epsilon import NANO
from agedp_data.leakage.function import leakage
from agedp_data.markov.transitions import transition_matrix
from tests.agedp.release_folder.recomputed import Release

FIRST, DAYS, HOMES = date(2013, 1, 20), 200, "ABC"
LEVELS = (4800, 9600, 14400)
RUN = """version = 1
[input]
dataset = "london"
files = ["input/*.csv"]
[output]
release = "release"
confidential = "confidential"
ledger = "sqlite:///ledger.sqlite"
[population]
name = "homes"
roster = "roster.csv"
min_households = 2
[schedule]
mode = "archive"
first_day = 2013-08-01
last_day = 2013-08-07
[series.daily_mean]
statistic = "mean"
clamp_kwh = 20
[promise]
notion = "temporal"
alpha = 1
horizon_days = "unlimited"
budget = "supremum"
max_day_epsilon = 1
epsilon_total = 9
[model]
source = "estimated"
assume = "markov"
file = "model"
period = [2013-01-20, 2013-07-31]
step = "day"
states = {states}
edges = "quantile"
chain = "homogeneous"
memory = "{memory}"
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
    days = {home: totals(i) for i, home in enumerate(HOMES)}
    house.london(
        {
            (home, FIRST + timedelta(days=day), slot): wh // 48
            for home, own in days.items()
            for day, wh in own.items()
            for slot in range(48)
        }
    )
    roster = house.roster([(home, FIRST, None) for home in (*HOMES, "ABSENT")])
    return house, roster, days


def walked(own, edges, memory):
    """Transitions from day to day between larger states, each day looked at alone."""

    def state(day):
        return sum(own[day] >= edge for edge in edges)

    def larger(day):
        if day not in own:
            return None
        if memory == "pair":
            return None if day - 1 not in own else state(day - 1) * (len(edges) + 1) + state(day)
        week = [own[each] for each in range(day - 6, day + 1) if each in own]
        possible = min(day + 1, 7)
        if 2 * len(week) <= possible:
            return None
        return (sum(week) / len(week) >= edges[(len(edges)) // 2]) * (len(edges) + 1) + state(day)

    found = Counter((larger(day), larger(day + 1)) for day in own)
    return {pair: n for pair, n in found.items() if None not in pair}


@pytest.mark.parametrize("memory", ["pair", "trailing-mean"])
@pytest.mark.parametrize("states", [2, 3])
def test_counts_are_those_of_each_households_own_days_whatever_the_months(delivered, memory, states):
    house, roster, days = delivered
    store, delivery = house.read()
    period = Period(store, delivery, roster, FIRST, FIRST + timedelta(days=DAYS + 5), step="day")
    edges = quantize(period, edges="quantile", n_states=states, engine=Engine())
    found = estimate_higher_order(period, edges, n_states=states, memory=memory, engine=Engine())
    for i, home in enumerate(roster.ids):
        own = days.get(home, {})
        expected = walked(own, edges[i].tolist(), memory)
        assert {at: int(n) for at, n in np.ndenumerate(found.counts[i]) if n} == expected
        assert found.readings[i] == len(own)
        assert found.gaps[i] == max(sum(day + 1 not in own for day in own) - 1, 0)
    assert found.counts[:3].sum() > 300
    assert found.gaps.max() > 3


def test_pairs_forget_nothing_in_a_day_and_a_promise_for_ever_leaps_over_it(delivered):
    house, roster, _ = delivered
    house.roster([(home, FIRST, None) for home in HOMES])
    house.run_file.write_text(RUN.format(memory="pair", states=2))
    made = calibrate(house.run_file)
    assert made.unmixed == 0
    leakage_bound = made.model.leakage_bound
    assert made.model.public["memory"] == "pair"
    assert float(leakage_bound(1, 0.7, direction="backward", method="tight")) == 0.7
    store, delivery = house.read()
    period = Period(store, delivery, roster, FIRST, date(2013, 7, 31), step="day")
    edges = quantize(period, edges="quantile", n_states=2, engine=Engine())
    counts = estimate_higher_order(period, edges, n_states=2, memory="pair", engine=Engine()).counts[[0, 2, 3]]
    ahead = counts / counts.sum(axis=2, keepdims=True)
    behind = np.swapaxes(counts, 1, 2) / counts.sum(axis=1)[..., None]
    for days in (2, 3, 7):
        for direction, once in (("forward", ahead), ("backward", behind)):
            exact = leakage(np.linalg.matrix_power(once, days), 0.7).max()
            assert exact <= float(leakage_bound(days, 0.7, direction=direction, method="tight")) <= exact * 1.07 + 2e-9
            assert exact < 0.69
    house.run(today=date(2013, 9, 1))
    losses = [row["loss"] for row in _rows(house)]
    assert len(set(losses)) == 1
    assert len(losses) == 7
    said = TemporalLosses(leakage_bound).recursion.endless_total(losses[0])
    assert 0.95 * NANO < said <= NANO
    step_by_step = leakage_bound.exact_leakage(1, direction="backward").supremum(losses[0])
    assert step_by_step is None


def test_a_regime_is_calibrated_and_released(delivered):
    house, roster, _ = delivered
    house.roster([(home, FIRST, None) for home in HOMES])
    house.run_file.write_text(
        RUN.format(memory="trailing-mean", states=2).replace('"unlimited"', "30").replace('"supremum"', '"best"')
    )
    made = calibrate(house.run_file)
    assert made.model.public["memory"] == "trailing-mean"
    house.run(today=date(2013, 9, 1))
    rows = _rows(house)
    assert all(row["loss"] >= NANO // 30 for row in rows)
    # Whom the model is large for is in the house: by each home's own chain, the one that is told about most first.
    counts = estimate_higher_order(*_again(house, roster), n_states=2, memory="trailing-mean", engine=Engine()).counts[
        [0, 2, 3]
    ]
    chains = dict(zip(HOMES, transition_matrix(counts, smoothing=0), strict=True))
    losses = [row["loss"] / NANO for row in rows]
    page = (house.folder / "confidential" / "report.html").read_text()
    assert "Temporal leakage about one day from the newest 7 released days" in page
    shown = {home: float(value) for home, value in re.findall(r"<th[^>]*>([ABC])</th><td>([\d.]+)</td></tr>", page)}
    for home, value in shown.items():
        assert value == pytest.approx(temporal(*temporal_kernels(chains[home]), losses).max(), rel=6e-3)
    assert len(shown) == len(HOMES) - made.unmixed > 0


def _again(house, roster):
    store, delivery = house.read()
    period = Period(store, delivery, roster, FIRST, date(2013, 7, 31), step="day")
    return period, quantize(period, edges="quantile", n_states=2, engine=Engine())


def _rows(house):
    return Release(house.folder / "release", house.folder / "ledger.sqlite").released
