"""The check of a cyclic chain: households that are one pass, habits over days are found; the pooled one cannot tell."""

from __future__ import annotations

import numpy as np
import pytest

from agedp_data.markov.cyclic_inference import _simulate_cyclic, cyclic_goodness_of_fit
from agedp_data.markov.goodness_of_fit import markov_goodness_of_fit

PHASES, DAYS = 8, 200
LAGS = [1, 2, 7]


def homes(count, rng, *, habit=False):
    """Asleep in phases 0 and 1, where nothing moves; drawn anew around the hour's level else; noon tells weekends."""
    found = np.empty((count, DAYS * PHASES), int)
    state = rng.integers(0, 4, count)
    for i in range(DAYS * PHASES):
        day, phase = divmod(i, PHASES)
        if phase >= 2:
            state = np.minimum(rng.integers(0, 3, count) + (phase >= 5), 3)
        if habit and phase == 4:
            state = np.where(rng.random(count) < 0.85, 3 * (day % 7 >= 5), state)
        found[:, i] = state
    found[:, 300:340] = -1
    return found


def checked(series, rng, **given):
    return cyclic_goodness_of_fit(
        series, LAGS, rng, **{"n_phases": PHASES, "min_visits": 10, "level": 0.9, "replicates": 19} | given
    )


def test_households_that_are_cyclic_chains_pass_at_the_stated_rate():
    rng = np.random.default_rng(1)
    found = checked(homes(200, rng), rng)
    assert found.rejected.any(axis=1).mean() <= 0.1 + 4 * np.sqrt(0.1 * 0.9 / 200)
    # What the chain says is what it shows in the same count: noise on both sides.
    np.testing.assert_allclose(np.median(found.powers, axis=0), np.median(found.direct, axis=0), atol=0.05)
    np.testing.assert_allclose(np.median(found.floor, axis=0), np.median(found.direct, axis=0), atol=0.05)


def test_a_habit_that_lasts_over_days_is_found():
    rng = np.random.default_rng(2)
    found = checked(homes(40, rng, habit=True), rng)
    assert found.rejected[:, 2].mean() > 0.9
    assert (found.direct > found.powers)[:, 2].mean() > 0.9


def test_one_chain_for_the_whole_day_would_reject_them_for_their_clock():
    rng = np.random.default_rng(3)
    series = homes(20, rng)
    lags = [lag * PHASES for lag in LAGS]
    pooled = markov_goodness_of_fit(series, lags, rng, n_states=4, steps_per_day=PHASES, level=0.9, replicates=19)
    assert pooled.rejected.any(axis=1).mean() > 0.9


def test_households_without_readings_or_in_one_state_are_neither_counted_nor_rejected():
    rng = np.random.default_rng(4)
    series = homes(3, rng)
    series[0], series[1] = -1, 2
    found = checked(series, rng)
    assert np.isnan(found.direct[:2]).all()
    assert not found.rejected[:2].any()
    assert not np.isnan(found.direct[2]).any()


def test_what_is_drawn_follows_the_kernel_of_each_half_hour():
    # Phase 0 keeps the state, phase 1 flips it, phase 2 draws it anew: any other order is told apart.
    rng = np.random.default_rng(5)
    own = np.empty((1, 3000), np.uint8)
    state = 0
    for i in range(3000):
        own[0, i] = state
        state = (state, 1 - state, int(rng.integers(0, 2)))[i % 3]
    drawn = _simulate_cyclic(own, 2, 3, 10, 5, rng)[0].astype(int)
    now, later = drawn[:, :-1], drawn[:, 1:]
    phase = np.broadcast_to(np.arange(2999) % 3, now.shape)
    assert (now == later)[phase == 0].all()
    assert (now != later)[phase == 1].all()
    assert (now == later)[phase == 2].mean() == pytest.approx(0.5, abs=0.05)
