"""Every binary mechanism of a given loss, written out on chains of two to four states: never above what is reported."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from agedp_data.accounting.ageing import compose, peak, risk
from agedp_data.markov.transitions import stationary


def random_chain(k, seed):
    """Chains that look different: nearly still, nearly even, with zeros, turning in one direction."""
    rng = np.random.default_rng(seed)
    chain = rng.dirichlet(np.full(k, 0.5), size=k)
    kind = seed % 4
    if kind == 0:
        chain = 0.05 * chain + 0.95 * np.eye(k)
    elif kind == 1:
        chain = 0.05 * chain + 0.95 / k
    elif kind == 2:
        chain = np.where(np.eye(k) > 0, 0.0, chain + 0.01) if k > 2 else np.array([[0.0, 1.0], [0.5, 0.5]])
        chain = chain / chain.sum(axis=1, keepdims=True)
    else:
        chain = 0.1 * chain + 0.9 * np.roll(np.eye(k), 1, axis=1)
    return chain


def binary_mechanisms(k, loss):
    """All extreme ones: output 1 has probability c or c e^loss, c so small that output 0 says nothing."""
    for mask in product((False, True), repeat=k):
        high = np.where(mask, np.exp(loss), 1.0) * 1e-9
        yield np.stack([1 - high, high], axis=1)


def lost(joint):
    """The largest log ratio between states of joint (k, outputs), each row a conditional law."""
    return max(np.log(joint[x] / joint[y]).max() for x in range(len(joint)) for y in range(len(joint)))


def backward(chain, steps):
    law = stationary(chain)
    forward = np.linalg.matrix_power(chain, steps)
    return (law[:, None] * forward).T / law[:, None]


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("k", [2, 3, 4])
def test_some_binary_mechanism_attains_the_tight_risk_and_none_exceeds_it(k, seed):
    chain = random_chain(k, seed)
    for age, loss in product((0, 1, 3), (0.3, 1.7)):
        kernel = backward(chain, age)
        worst = max(lost(kernel @ mechanism) for mechanism in binary_mechanisms(k, loss))
        assert risk(chain, loss, [age], method="tight")[0] == pytest.approx(worst, rel=1e-6, abs=1e-8)
        assert worst <= risk(chain, loss, [age], method="total_variation")[0] + 1e-8
        assert worst <= risk(chain, loss, [age], method="reversibilised")[0] + 1e-8


def composed(chain, reads, mechanisms, now):
    """The law of all outputs given the present, inputs in order of time, the last not after now: (k, outputs)."""
    k = len(chain)
    given = np.ones((k, 1))
    for gap, mechanism in zip(np.diff([*reads, now]), mechanisms, strict=True):
        # Outputs so far and this one are independent given the state here; then back from the next instant.
        given = (given[:, :, None] * mechanism[:, None, :]).reshape(k, -1)
        given = backward(chain, int(gap)) @ given
    return given


@pytest.mark.parametrize("seed", range(8))
def test_compositions_of_binary_mechanisms_stay_within_the_recursion(seed):
    rng = np.random.default_rng(seed)
    chain = random_chain(3, seed)
    reads, losses = [0, 0, 2, 5], [0.5, 0.2, 0.9, 0.4]
    bound = compose(chain, reads, [0] * 4, losses, [6], method="tight")[0]
    looser = compose(chain, reads, [0] * 4, losses, [6], method="total_variation")[0]
    assert bound <= looser + 1e-12
    every = [list(binary_mechanisms(3, loss)) for loss in losses]
    for _ in range(60):
        chosen = [options[rng.integers(len(options))] for options in every]
        assert lost(composed(chain, reads, chosen, 6)) <= bound + 1e-7


def test_for_two_states_the_recursion_is_attained():
    chain, reads, losses = random_chain(2, 5), [0, 1, 4], [0.5, 0.7, 0.3]
    every = [list(binary_mechanisms(2, loss)) for loss in losses]
    worst = max(lost(composed(chain, reads, chosen, 6)) for chosen in product(*every))
    assert compose(chain, reads, [0] * 3, losses, [6], method="tight")[0] == pytest.approx(worst, rel=1e-6)


@pytest.mark.parametrize("seed", range(4))
def test_a_periodic_schedule_of_binary_mechanisms_stays_below_its_peak(seed):
    chain, loss, age, interval = random_chain(2, seed), 0.2, 1, 2
    limit = peak(chain, loss, age=age, interval=interval, method="tight")
    reads = [interval * i for i in range(6)]
    for mechanisms in (list(binary_mechanisms(2, loss))[1], list(binary_mechanisms(2, loss))[2]):
        assert lost(composed(chain, reads, [mechanisms] * 6, reads[-1] + age)) <= limit + 1e-7
