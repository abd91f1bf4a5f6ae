"""Ageing against enumerated mechanisms: randomised response on chains small enough to write out."""

from __future__ import annotations

from itertools import pairwise, product

import numpy as np
import pytest

from agedp_data.accounting.ageing import (
    age_of_information,
    compose,
    compose_without_markov,
    risk,
    risk_of_curve,
    sum_rule,
)
from agedp_data.errors import ChainError
from agedp_data.leakage.function import leakage
from agedp_data.markov.transitions import stationary

FLIP = np.array([[0.9, 0.1], [0.1, 0.9]])
UNEVEN = np.array([[0.95, 0.05], [0.3, 0.7]])


def test_single_queries_have_their_reference_risks():
    np.testing.assert_allclose(risk(FLIP, 2.0, [3, 6, 10], method="tight"), [0.8234, 0.4047, 0.1639], atol=5e-5)
    by_distance = risk(FLIP, 2.0, [3, 6, 10], method="total_variation")
    np.testing.assert_allclose(by_distance, [1.4519, 0.9839, 0.5224], atol=5e-5)


def test_every_method_bounds_the_tight_one():
    ages = [0, 1, 2, 5, 20]
    tight = risk(UNEVEN, 1.0, ages, method="tight")
    for method in ("total_variation", "spectral", "reversibilised"):
        assert (risk(UNEVEN, 1.0, ages, method=method) >= tight).all()
    np.testing.assert_allclose(
        risk(FLIP, 1.0, ages, method="spectral"), risk(FLIP, 1.0, ages, method="total_variation"), rtol=1e-9
    )


def test_stacks_of_chains_and_losses_broadcast():
    chains = np.stack([FLIP, UNEVEN])
    result = risk(chains, [[0.5], [2.0]], [1, 3, 3], method="tight")
    assert result.shape == (2, 2, 3)
    np.testing.assert_array_equal(result[1, 0], risk(FLIP, 2.0, [1, 3, 3], method="tight"))
    assert risk(chains, 1.0, [], method="tight").shape == (2, 0)
    both = compose(chains, [1, 2], [1, 1], [0.5, 0.5], [0, 2, 3], method="tight")
    np.testing.assert_array_equal(both[1], compose(UNEVEN, [1, 2], [1, 1], [0.5, 0.5], [0, 2, 3], method="tight"))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: risk(FLIP, 1.0, [1], method="spectrum"), '"tight", "total_variation", "spectral", "reversibilised"'),
        (lambda: risk(FLIP, 1.0, [-1], method="tight"), "whole numbers of steps"),
        (lambda: risk(FLIP, 1.0, [1.5], method="tight"), "whole numbers of steps"),
        (lambda: risk_of_curve([0.5, 0.6], 0.5, [0, 48]), "increase"),
        (lambda: risk_of_curve([0.5, 0.6], 0.5, [48, 48]), "increase"),
        (lambda: risk_of_curve([0.5], 0.5, [0, 48]), "one value per age"),
        (lambda: compose(FLIP, [1, 2], [0], [0.5, 0.5], [3], method="tight"), "do not fit"),
        (lambda: compose(FLIP, [1], [-1], [0.5], [3], method="tight"), "at least 0"),
        (lambda: compose(FLIP, [1.5], [0], [0.5], [3], method="tight"), "whole steps"),
        (lambda: sum_rule([0.1], [0.5, 0.5]), "one aged loss per release"),
        (lambda: compose_without_markov([FLIP], [0.5, 0.5]), "one loss per kernel"),
        (lambda: age_of_information([0], [0], 3), "none before step 1"),
    ],
)
def test_ages_and_schedules_that_are_none_are_refused(call, message):
    with pytest.raises(ChainError, match=message):
        call()


def test_a_declared_curve_gives_theorem_1():
    np.testing.assert_allclose(risk_of_curve([0.64, 1.0], 0.5, [48, 0]), [0.347257871444443, 0.5])


def enumerated_loss(chain, reads, losses, now):
    """The exact loss about X_now of randomised responses on X_u, u in reads: a sum over every path."""
    first, law = min([*reads, now]), stationary(chain)
    joint = {}
    for path in product(range(2), repeat=max([*reads, now]) - first + 1):
        weight = law[path[0]] * np.prod([chain[x, y] for x, y in pairwise(path)])
        for outputs in product(range(2), repeat=len(reads)):
            answers = zip(outputs, reads, losses, strict=True)
            likelihood = np.prod([1 / (1 + np.exp(-e if y == path[u - first] else e)) for y, u, e in answers])
            key = (path[now - first], outputs)
            joint[key] = joint.get(key, 0.0) + weight * likelihood / law[key[0]]
    return max(abs(np.log(joint[0, o] / joint[1, o])) for o in product(range(2), repeat=len(reads)))


@pytest.mark.parametrize("chain", [FLIP, UNEVEN])
@pytest.mark.parametrize(
    ("published", "ages"),
    [([1, 2, 3], [1, 0, 2]), ([3, 1, 2], [0, 1, 0]), ([2, 2, 3], [0, 2, 1]), ([3, 3, 3], [3, 3, 0])],
)
def test_any_order_of_inputs_is_attained_by_randomised_response(chain, published, ages):
    losses, now = [0.4, 0.9, 0.2], 4
    reads = [s - a for s, a in zip(published, ages, strict=True)]
    bound = compose(chain, published, ages, losses, [now], method="tight")[0]
    assert bound == pytest.approx(enumerated_loss(chain, reads, losses, now), rel=1e-9)


def test_only_what_is_published_counts():
    published, ages, losses = np.array([2, 5, 9]), np.array([1, 4, 0]), np.array([0.5, 0.7, 0.3])
    later = compose(FLIP, published, ages, losses, np.arange(12), method="tight")
    np.testing.assert_array_equal(later[:2], [0, 0])
    for t in range(12):
        out = published <= t
        assert later[t] == compose(FLIP, published[out], ages[out], losses[out], [t], method="tight")[0]
    shuffled = compose(FLIP, [9, 2, 5], [0, 1, 4], [0.3, 0.5, 0.7], np.arange(12)[::-1], method="tight")
    np.testing.assert_array_equal(shuffled[::-1], later)


def test_without_a_joint_model_one_release_ages_and_the_others_add():
    kernels, losses = [FLIP, UNEVEN, np.eye(2)], [0.5, 0.3, 0.2]
    expected = 1.0 - max(e - float(leakage(k, e)) for k, e in zip(kernels, losses, strict=True))
    assert compose_without_markov(kernels, losses) == pytest.approx(expected, rel=1e-12)
    assert compose_without_markov([], []) == 0.0
    assert sum_rule([0.2, 0.5], [np.inf, 0.5]) == 0.7
    assert sum_rule([0.2, 0.5], [np.inf, np.inf]) == np.inf
    np.testing.assert_array_equal(sum_rule([[0.0, 0.5], [0.5, 0.5]], [0.5, 0.5]), [0.5, 1.0])


def test_the_age_of_information_has_its_reference_course():
    assert age_of_information([4, 8, 12], [2, 2, 2], 14).tolist() == [0, 1, 2, 3, 2, 3, 4, 5, 2, 3, 4, 5, 2, 3, 4]
    assert age_of_information([2, 2, 9], [5, 1, 0], 3).tolist() == [0, 1, 1, 2]  # the freshest of two at once
