"""What totals tell to who knows the calendar: against plain loops, and on households whose memory is known."""

from __future__ import annotations

from statistics import median_low

import numpy as np
import pytest

from agedp_data.leakage.function import leakage
from agedp_data.markov.calendar_effects import _two_state_leakage, calendar_dependence, median_halves

LAGS = [1, 2, 7, 30]
LOSS = 0.7
LABEL = (np.arange(200) % 7 >= 5).astype(int) + 2 * (np.arange(200) >= 110)


def rng(seed=1):
    return np.random.default_rng(seed)


def test_halves_are_cut_at_the_households_own_lower_median_in_each_slot_and_part():
    values = rng().integers(-1, 6, (3, 200, 2))
    values[0, :, 1] = 4  # the same all the time: nothing lies above its median
    found = median_halves(values, LABEL)
    for (home, day, slot), value in np.ndenumerate(values):
        own = [
            v for v, label in zip(values[home, :, slot].tolist(), LABEL, strict=True) if label == LABEL[day] and v >= 0
        ]
        middle = median_low(own)
        above = value > middle or (value == middle == max(own))
        assert found[home, day, slot] == (-1 if value < 0 else above)


def plainly(secret, read, label, lag):
    """Largest total variation and loss over parts and slots, row by row."""
    apart, left = [], []
    days = range(lag, len(label))
    for part in {(label[i], label[i - lag]) for i in days}:
        for slot in range(secret.shape[1]):
            rows = [[0, 0], [0, 0]]
            for i in days:
                if (label[i], label[i - lag]) == part and min(secret[i, slot], read[i - lag]) >= 0:
                    rows[secret[i, slot]][read[i - lag]] += 1
            if min(map(sum, rows)) >= 20:
                kernel = np.array([[n / sum(row) for n in row] for row in rows])
                apart.append(abs(kernel[0, 0] - kernel[1, 0]))
                left.append(float(leakage(kernel, LOSS)))
    return (max(apart), max(left)) if apart else (np.nan, np.nan)


def test_the_figures_are_those_of_plain_loops_and_of_the_primitive():
    secret, read = rng(2).integers(-1, 2, (4, 200, 3)), rng(3).integers(-1, 2, (4, 200))
    secret[3] = -1
    found = calendar_dependence(secret, read, LABEL, [*LAGS, 250], rng(), loss=LOSS, resamples=20)
    for home in range(4):
        for i, lag in enumerate([*LAGS, 250]):
            expected = plainly(secret[home], read[home], LABEL.tolist(), lag) if lag < 200 else (np.nan, np.nan)
            np.testing.assert_allclose((found.direct[home, i], found.loss_left[home, i]), expected, rtol=1e-12)
    assert (found.low <= found.high)[~np.isnan(found.low)].all()
    assert np.isnan(found.direct[3]).all()
    assert np.isnan(found.direct[:, -1]).all()


@pytest.mark.parametrize("loss", [0.0, 0.01, 1.0, 40.0, 800.0])
def test_what_two_columns_let_through_is_what_the_primitive_says(loss):
    p, q = np.concatenate([rng(4).random((2, 60)), [[0, 1, 0.5], [1, 1, 0]]], axis=1)
    kernels = np.stack([np.stack([1 - p, p], axis=-1), np.stack([1 - q, q], axis=-1)], axis=-2)
    np.testing.assert_allclose(_two_state_leakage(p, q, loss), leakage(kernels, loss), atol=1e-12)


def test_pooled_over_parts_nothing_is_seen_of_what_each_part_tells():
    # MATHS 2b: on one part of the days the total is copied, on the other flipped: pooled 0, truth 1.
    first = rng(5).integers(0, 2, 400)
    part = np.arange(400) // 2 % 2
    states = np.repeat(first[::2], 2)
    states[1::2] ^= part[1::2]
    label = 1 + part
    label[::2] = 0
    apart = calendar_dependence(states[None, :, None], states[None], label, [1], rng(), loss=1.0)
    pooled = calendar_dependence(states[None, :, None], states[None], np.zeros(400, int), [1], rng(), loss=1.0)
    assert apart.direct.item() == 1.0
    assert apart.loss_left.item() == pytest.approx(1.0)
    assert pooled.direct.item() < 0.3


def test_a_noon_habit_shows_in_the_totals_and_what_is_forgotten_shows_as_noise():
    days, homes = 364, 30
    draw = rng(6)
    regime = np.repeat(draw.integers(0, 2, (homes, 13)), 28, axis=1)
    noon = np.where(draw.random((homes, days)) < 0.9, regime, 1 - regime)
    night = draw.integers(0, 2, (homes, days))
    label = (np.arange(days) % 7 >= 5).astype(int)
    secret, read = np.stack([night, noon], axis=-1), (noon + night > 0).astype(int)
    found = calendar_dependence(secret, read, label, [1, 90], rng(), loss=0.5)
    # Given noon, the total exceeds 0 surely or in half of the cases: .5 x (.8 + .02) is to be told of tomorrow's noon.
    assert np.median(found.direct[:, 0]) > 0.3
    assert np.median(found.direct[:, 0] - found.floor[:, 0]) > 0.05
    assert np.median(found.direct[:, 1]) == pytest.approx(np.median(found.floor[:, 1]), abs=0.1)
