"""Ageing against enumerated mechanisms: randomised response on chains small enough to write out."""

from __future__ import annotations

from itertools import pairwise, product

import numpy as np
import pytest

from agedp_data.accounting.ageing import (
    age_of_information,
    compose,
    compose_with,
    compose_without_markov,
    risk,
    risk_of_curve,
    sum_rule,
)
from agedp_data.errors import ChainError
from agedp_data.leakage.function import leakage

FLIP = np.array([[0.9, 0.1], [0.1, 0.9]])
UNEVEN = np.array([[0.95, 0.05], [0.3, 0.7]])


def enumerated_loss(chain, reads, losses, now):
    """The exact loss about X_now of randomised responses on X_u, u in reads: a sum over every path."""
    first = min([*reads, now])
    span = max([*reads, now]) - first
    law = np.linalg.matrix_power(chain, 10_000)[0]
    joint = {}
    for path in product(range(2), repeat=span + 1):
        weight = law[path[0]] * np.prod([chain[x, y] for x, y in pairwise(path)])
        for outputs in product(range(2), repeat=len(reads)):
            keep = [
                1 / (1 + np.exp(-e if y == path[u - first] else e))
                for y, u, e in zip(outputs, reads, losses, strict=True)
            ]
            key = (path[now - first], outputs)
            joint[key] = joint.get(key, 0.0) + weight * np.prod(keep)
    given = {x: {o: joint[x, o] / law[x] for o in product(range(2), repeat=len(reads))} for x in range(2)}
    return max(abs(np.log(given[0][o] / given[1][o])) for o in given[0])


def test_single_queries_have_their_reference_risks():
    np.testing.assert_allclose(risk(FLIP, 2.0, [3, 6, 10], method="tight"), [0.8234, 0.4047, 0.1639], atol=5e-5)
    np.testing.assert_allclose(
        risk(FLIP, 2.0, [3, 6, 10], method="total_variation"), [1.4519, 0.9839, 0.5224], atol=5e-5
    )


def test_every_method_bounds_the_tight_one():
    ages = [0, 1, 2, 5, 20]
    tight = risk(UNEVEN, 1.0, ages, method="tight")
    for method in ("total_variation", "spectral", "reversibilised"):
        assert (risk(UNEVEN, 1.0, ages, method=method) >= tight).all()
    np.testing.assert_allclose(
        risk(FLIP, 1.0, ages, method="spectral"), risk(FLIP, 1.0, ages, method="total_variation"), rtol=1e-9
    )


def test_any_mechanism_at_all_is_bounded_once_supports_agree():
    # Theorem 2: after one step both states reach both, largest ratio .9/.1.
    np.testing.assert_allclose(risk(FLIP, np.inf, [0, 1], method="tight"), [np.inf, np.log(9)])


def test_stacks_of_chains_and_losses_broadcast():
    chains = np.stack([FLIP, UNEVEN])
    result = risk(chains, [[0.5], [2.0]], [1, 3, 3], method="tight")
    assert result.shape == (2, 2, 3)
    np.testing.assert_array_equal(result[1, 0], risk(FLIP, 2.0, [1, 3, 3], method="tight"))
    assert risk(chains, 1.0, [], method="tight").shape == (2, 0)


def test_an_unknown_method_is_answered_with_the_known_ones():
    with pytest.raises(ChainError, match='"tight", "total_variation", "spectral", "reversibilised"'):
        risk(FLIP, 1.0, [1], method="spectrum")


@pytest.mark.parametrize("age", [-1, 1.5])
def test_ages_are_whole_steps(age):
    with pytest.raises(ChainError, match="whole numbers of steps"):
        risk(FLIP, 1.0, [age], method="tight")


def test_a_declared_curve_must_not_increase():
    np.testing.assert_allclose(risk_of_curve([0.64, 1.0], 0.5, [48, 0]), [0.347257871444443, 0.5])
    with pytest.raises(ChainError, match="increase"):
        risk_of_curve([0.5, 0.6], 0.5, [0, 48])
    with pytest.raises(ChainError, match="increase"):
        risk_of_curve([0.5, 0.6], 0.5, [48, 48])
    with pytest.raises(ChainError, match="one value per age"):
        risk_of_curve([0.5], 0.5, [0, 48])


def test_overlapping_ages_compose_to_the_enumerated_loss_and_not_to_the_literal_formula():
    exact = enumerated_loss(FLIP, [-4, -3, -2], [0.5] * 3, 3)
    tight = compose(FLIP, [1, 2, 3], [5, 5, 5], [0.5] * 3, [3], method="tight")[0]
    assert tight == pytest.approx(0.3557487386, abs=1e-10)
    assert tight == pytest.approx(exact, rel=1e-9)
    by_distance = compose(FLIP, [1, 2, 3], [5, 5, 5], [0.5] * 3, [3], method="total_variation")[0]
    assert by_distance == pytest.approx(0.6220620350, abs=1e-10)
    # [A] (25) as printed looks up the risk at S - A = -2, before anything was published: 0.
    literal = np.log1p(0.8**5 * np.expm1(0.5 + 0.0))
    assert literal == pytest.approx(0.1927, abs=5e-5)
    assert literal < exact


@pytest.mark.parametrize("chain", [FLIP, UNEVEN])
@pytest.mark.parametrize(
    ("published", "ages"),
    [([1, 2, 3], [1, 0, 2]), ([3, 1, 2], [0, 1, 0]), ([2, 2, 3], [0, 2, 1]), ([3, 3, 3], [3, 3, 0])],
)
def test_any_order_of_inputs_is_bounded_and_attained_by_randomised_response(chain, published, ages):
    losses, now = [0.4, 0.9, 0.2], 4
    reads = [s - a for s, a in zip(published, ages, strict=True)]
    bound = compose(chain, published, ages, losses, [now], method="tight")[0]
    assert bound == pytest.approx(enumerated_loss(chain, reads, losses, now), rel=1e-9)


def test_only_what_is_published_counts_and_before_that_nothing():
    later = compose(FLIP, [2, 5, 9], [1, 4, 0], [0.5, 0.7, 0.3], np.arange(12), method="tight")
    np.testing.assert_array_equal(later[:2], [0, 0])
    for t in range(12):
        out = [i for i, s in enumerate([2, 5, 9]) if s <= t]
        alone = compose(
            FLIP,
            np.array([2, 5, 9])[out],
            np.array([1, 4, 0])[out],
            np.array([0.5, 0.7, 0.3])[out],
            [t],
            method="tight",
        )
        assert later[t] == alone[0]
    shuffled = compose(FLIP, [9, 2, 5], [0, 1, 4], [0.3, 0.5, 0.7], np.arange(12)[::-1], method="tight")
    np.testing.assert_array_equal(shuffled[::-1], later)


def test_outputs_of_the_same_input_add_up():
    assert compose(FLIP, [5, 5], [0, 0], [0.5, 0.25], [5], method="tight")[0] == 0.75
    together = risk(FLIP, 0.75, [3], method="tight")
    assert compose(FLIP, [5, 8], [3, 6], [0.5, 0.25], [8], method="tight")[0] == pytest.approx(
        risk(FLIP, 0.75, [6], method="tight")[0]
    )
    assert compose(FLIP, [5, 5], [0, 0], [0.5, 0.25], [8], method="tight") == pytest.approx(together)


def test_stacks_of_chains_compose_each_for_itself():
    both = compose(np.stack([FLIP, UNEVEN]), [1, 2], [1, 1], [0.5, 0.5], [0, 2, 3], method="tight")
    assert both.shape == (2, 3)
    np.testing.assert_array_equal(both[1], compose(UNEVEN, [1, 2], [1, 1], [0.5, 0.5], [0, 2, 3], method="tight"))


def test_the_recursion_takes_any_way_through():
    halves = compose_with([0, 2, 4], [0, 0, 0], [1.0, 1.0, 1.0], [4, 5], gap_leakage=lambda gap, loss: loss / 2**gap)
    # z = 1, 1 + 1/4, 1 + 5/16; one step later half of it.
    np.testing.assert_array_equal(halves, [21 / 16, 21 / 32])


def test_schedules_that_do_not_fit_are_refused():
    with pytest.raises(ChainError, match="do not fit"):
        compose(FLIP, [1, 2], [0], [0.5, 0.5], [3], method="tight")
    with pytest.raises(ChainError, match="at least 0"):
        compose(FLIP, [1], [-1], [0.5], [3], method="tight")
    with pytest.raises(ChainError, match="whole steps"):
        compose(FLIP, [1.5], [0], [0.5], [3], method="tight")


def test_without_a_joint_model_one_release_ages_and_the_others_add():
    kernels, losses = [FLIP, UNEVEN, np.eye(2)], [0.5, 0.3, 0.2]
    expected = 1.0 - max(e - float(leakage(k, e)) for k, e in zip(kernels, losses, strict=True))
    assert compose_without_markov(kernels, losses) == pytest.approx(expected, rel=1e-12)
    assert compose_without_markov([FLIP], [0.5]) == leakage(FLIP, 0.5)
    assert compose_without_markov([], []) == 0.0


def test_the_sum_rule_is_exact_for_infinite_losses_and_rejects_misfits():
    assert sum_rule([0.2, 0.5], [np.inf, 0.5]) == 0.7
    assert sum_rule([0.2, 0.5], [np.inf, np.inf]) == np.inf
    np.testing.assert_array_equal(sum_rule([[0.0, 0.5], [0.5, 0.5]], [0.5, 0.5]), [0.5, 1.0])
    with pytest.raises(ChainError, match="one aged loss per release"):
        sum_rule([0.1], [0.5, 0.5])
    with pytest.raises(ChainError, match="one loss per kernel"):
        compose_without_markov([FLIP], [0.5, 0.5])


def test_the_age_of_information_has_its_reference_course():
    course = age_of_information([4, 8, 12], [2, 2, 2], 14)
    assert course.tolist() == [0, 1, 2, 3, 2, 3, 4, 5, 2, 3, 4, 5, 2, 3, 4]
    assert course[8:].max() == 2 + 4 - 1


def test_of_several_publications_at_once_the_freshest_counts_and_later_ones_not_yet():
    assert age_of_information([2, 2, 9], [5, 1, 0], 3).tolist() == [0, 1, 1, 2]
    with pytest.raises(ChainError, match="none before step 1"):
        age_of_information([0], [0], 3)
