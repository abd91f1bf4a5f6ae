"""Losses about several releases in a row against the paper's three cases and enumeration."""

from __future__ import annotations

import numpy as np
import pytest

from agedp_data.accounting.temporal_leakage import (
    temporal_kernels,
    temporal_recursion,
    user_level,
    w_event,
    window,
    windows,
)
from agedp_data.errors import ChainError
from tests.agedp_data.accounting.temporal_oracles import (
    by_recursion,
    dense,
    joint_of_days,
    loss_about,
    mechanisms,
    stationary,
)

FIG_3 = [[0.8, 0.2], [0.0, 1.0]]


def test_windows_have_the_paper_s_three_cases():
    behind, ahead, losses = dense(3, 1), dense(3, 2), np.array([0.3, 0.7, 0.2, 0.5, 0.4])
    bpl, fpl = by_recursion(behind, losses), by_recursion(ahead, losses[::-1])[::-1]
    for start in range(5):
        assert window(behind, ahead, losses, start, 1) == pytest.approx(bpl[start] + fpl[start] - losses[start])
    for start in range(4):
        assert window(behind, ahead, losses, start, 2) == pytest.approx(bpl[start] + fpl[start + 1])
    assert window(behind, ahead, losses, 1, 3) == pytest.approx(bpl[1] + losses[2] + fpl[3])
    assert window(behind, ahead, losses, 0, 5) == pytest.approx(losses.sum())
    assert user_level(losses) == pytest.approx(losses.sum())


@pytest.mark.parametrize("secret", [(0, 1), (0, 1, 2), (1, 2, 3)])
def test_a_mechanism_attains_the_bound_about_a_window_of_two_states(secret):
    chain, losses = dense(2, 9), [0.7, 0.4, 0.6, 0.5]
    joint = joint_of_days(chain, stationary(chain), [0, 1, 2, 3], 1)
    truth = loss_about(joint, secret, [mechanisms(2, e) for e in losses])
    assert truth == pytest.approx(window(*temporal_kernels(chain), losses, secret[0], len(secret)), rel=1e-9)


def test_w_event_is_the_largest_window_and_user_level_the_longest():
    losses, stack = [0.3, 0.7, 0.2, 0.5], np.stack([FIG_3, np.eye(2)])
    for length in (1, 2, 3, 4):
        largest = max(window(FIG_3, FIG_3, losses, start, length) for start in range(5 - length))
        assert w_event(FIG_3, FIG_3, losses, length) == pytest.approx(largest)
    assert w_event(FIG_3, FIG_3, losses, 30) == pytest.approx(sum(losses))
    assert w_event(stack, stack, losses, 2).shape == (2,)
    assert window(stack, stack, losses, 0, 1) == pytest.approx(sum(losses))
    assert windows(temporal_recursion(stack, None).leakage_totals(losses), losses, 2).shape == (2, 3)


@pytest.mark.parametrize(("start", "length"), [(-1, 1), (4, 1), (2, 3), (0, 0), (0, 5)])
def test_a_window_outside_the_series_is_refused(start, length):
    with pytest.raises(ChainError, match="window"):
        window(FIG_3, FIG_3, [0.1] * 4, start, length)
