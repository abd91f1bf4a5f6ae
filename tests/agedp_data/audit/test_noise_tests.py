"""Noise that is too small and sums that are not clamped are told by where draws lie; sound noise hardly ever is."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom

from agedp_data.audit.noise_tests import (
    NoiseLaw,
    is_noise_too_large,
    is_noise_too_small,
    misplaced_noise_power,
    small_noise_power,
)

UNLIKELY = 1e-6
WIDE, LAWS = NoiseLaw(50_000, 0.001), [NoiseLaw(3, 0.2), NoiseLaw(2, 9.0)]


def brute(law: NoiseLaw, times: float = 1.0, off: int = 0) -> float:
    """P(|X + off| <= width), summed over the law."""
    q = np.exp(-times * law.loss / law.sensitivity)
    k = np.arange(-law.width - off, law.width - off + 1)
    return float((1 - q) / (1 + q) * (q ** np.abs(k)).sum())


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize(("times", "off"), [(1.0, 0), (2.0, 0), (1.0, 1), (1.0, 4), (1.0, 30)])
def test_the_probability_of_a_draw_near_is_the_sum_of_the_law(law, times, off):
    assert law.near(times=times, off=off) == pytest.approx(brute(law, times, off), abs=1e-12)
    assert (WIDE.near(), WIDE.near(times=2)) == (pytest.approx(0.5, abs=1e-4), pytest.approx(0.75, abs=1e-4))


@pytest.mark.parametrize("law", [WIDE, *LAWS])
def test_sound_noise_is_accused_rarely_and_the_power_is_that_of_the_counts(law):
    draws, counts, off = 400, np.arange(401), 5 * law.sensitivity
    near = [count for count in counts if is_noise_too_small(count, draws, law, significance=UNLIKELY)]
    far = [count for count in counts if is_noise_too_large(count, draws, law, significance=UNLIKELY)]
    share = brute(law) if law.loss > 0.1 else law.near()
    assert binom.pmf(near, draws, share).sum() < UNLIKELY
    assert binom.pmf(far, draws, share).sum() < UNLIKELY
    assert (bool(near), bool(far)) == (law.loss < 9, True)  # nearly all draws of a loss of 9 are 0 as it is
    for power, told, chance in (
        (small_noise_power(law, 2, draws, significance=UNLIKELY), near, law.near(times=2)),
        (misplaced_noise_power(law, off, draws, significance=UNLIKELY), far, (law.near() + law.near(off=off)) / 2),
    ):
        assert power == pytest.approx(binom.pmf(told, draws, chance).sum())


@pytest.mark.parametrize("loss", [1e-5, 0.001, 0.07, 2.0])
def test_half_the_noise_is_told_at_any_loss(loss):
    assert small_noise_power(NoiseLaw(50_000, loss), 2, 1_600, significance=UNLIKELY / 8) > 1 - 1e-9
    assert small_noise_power(NoiseLaw(50_000, loss), 1, 1_600, significance=UNLIKELY / 8) < UNLIKELY


def test_a_recorded_loss_that_was_rounded_up_accuses_nobody():
    assert NoiseLaw(1, 1e-6).least_near < NoiseLaw(1, 1e-6).near()
    assert NoiseLaw(1, 1e-9).least_near > 0
