"""Ageing: risks and compositions, peaks and deltas, the planner of ages, and what holds without the chain."""

from __future__ import annotations

from functools import partial
from itertools import pairwise, product

import numpy as np
import pytest
from scipy.stats import chisquare

from agedp_data.accounting.ageing import (
    age_artificially,
    age_of_information,
    approximate_risk,
    compose,
    compose_approximate,
    compose_without_markov,
    peak,
    plan_ageing,
    plan_least_penalty,
    risk,
    risk_of_curve,
    smallest_loss,
    sum_rule,
)
from agedp_data.errors import ChainError
from agedp_data.leakage.function import leakage
from agedp_data.markov.mixing import max_total_variation
from agedp_data.markov.transitions import power, reverse, stationary, transition_matrix

# Ageing against enumerated mechanisms: randomised response on chains small enough to write out.

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


# Peaks of periodic schedules, (eps, delta) and artificial ageing, against enumeration, limits and closed forms.

LOPSIDED = np.array([[0.5, 0.45, 0.05], [0.05, 0.55, 0.4], [0.8, 0.1, 0.1]])


def test_the_peak_of_figure_3_has_its_thirty_digit_reference():
    assert peak(FLIP, 0.5, age=2, interval=4, method="total_variation") == pytest.approx(
        0.823616566145902061388416501793, rel=1e-13
    )


@pytest.mark.parametrize(
    ("chain", "method"),
    [(LOPSIDED, "tight"), (LOPSIDED, "total_variation"), (UNEVEN, "spectral"), (LOPSIDED, "reversibilised")],
)
@pytest.mark.parametrize(("age", "interval"), [(0, 4), (9, 4)])
def test_a_peak_is_the_limit_of_the_composed_schedule(chain, method, age, interval):
    published = np.arange(1, 200) * interval + age
    composed = compose(chain, published, np.full(199, age), np.full(199, 0.15), published[[20, -1]], method=method)
    limit = peak(chain, 0.15, age=age, interval=interval, method=method)
    assert (composed <= limit + 1e-12).all()
    assert composed[-1] == pytest.approx(float(limit), rel=1e-6)


def test_peaks_of_extreme_schedules():
    # A finite peak although the loss about the inputs grows for ever: one step back .9/.1 at most.
    assert peak(FLIP, 50.0, age=1, interval=1, method="tight") == pytest.approx(np.log(9), rel=1e-9)
    assert peak(FLIP, 0.0, age=0, interval=1, method="tight") == 0
    assert peak(FLIP, 0.1, age=0, interval=0, method="tight") == np.inf
    assert peak(np.ones((1, 1)), 5.0, age=2, interval=1, method="tight") == 0
    assert peak([[0.0, 1.0], [1.0, 0.0]], 0.1, age=0, interval=2, method="tight") == np.inf
    assert peak(FLIP, 800.0, age=0, interval=3, method="tight") >= 800
    assert peak(np.full((2, 2), 0.5), 0.7, age=0, interval=1, method="total_variation") == pytest.approx(0.7)
    for method in ("tight", "total_variation"):
        both = peak(np.stack([FLIP, UNEVEN]), [[0.1], [0.4]], age=2, interval=5, method=method)
        assert both.shape == (2, 2)
        assert both[1, 1] == peak(UNEVEN, 0.4, age=2, interval=5, method=method)


@pytest.mark.parametrize("wrong", [{"age": -1}, {"age": [1, 2]}, {"interval": 0.5}, {"method": "paper"}])
def test_a_schedule_that_is_none_is_refused(wrong):
    with pytest.raises(ChainError):
        peak(FLIP, 0.1, **({"age": 1, "interval": 1, "method": "tight"} | wrong))


def test_approximate_guarantees_compose_as_written_out_by_hand():
    loss, delta = compose_approximate(FLIP, [9, 3, 5], [6, 0, 0], [0.3, 0.3, 0.5], [1e-3, 2e-3, 4e-3], [4, 5, 9, 11])
    # Inputs at 3, 3, 5: the first of them is published at 9 only.
    expected = [2e-3 * 0.8, 4e-3 + 2e-3 * 0.64, (4e-3 + 3e-3 * 0.64) * 0.8**4]
    np.testing.assert_allclose(delta[:3], expected)
    aged = approximate_risk(FLIP, 0.8, 0.05, [0, 1, 4])
    np.testing.assert_allclose(aged[0], np.log1p(0.8 ** np.array([0, 1, 4]) * np.expm1(0.8)))
    np.testing.assert_allclose(aged[1], 0.05 * 0.8 ** np.array([0, 1, 4]))
    z = 0.5 + np.log1p(0.64 * np.expm1(0.6))
    assert loss[3] == pytest.approx(np.log1p(0.8**6 * np.expm1(z)))


@pytest.mark.parametrize("wrong", [-1e-9, 1.5, np.nan])
def test_what_is_no_probability_is_refused(wrong):
    with pytest.raises(ChainError, match="probability"):
        approximate_risk(FLIP, 0.5, wrong, [1])
    with pytest.raises(ChainError, match="one delta per loss"):
        compose_approximate(FLIP, [1], [0], [0.5], [0.1, 0.1], [1])


def test_artificially_aged_states_follow_the_reversed_kernel():
    rng = np.random.default_rng(3)
    chain = np.array([[0.5, 0.5, 0.0], [0.0, 0.4, 0.6], [0.8, 0.0, 0.2]])
    for start in range(3):
        counts = np.bincount(age_artificially(np.full(20_000, start), chain, 2, rng), minlength=3)
        expected = power(reverse(chain), 2)[start]
        assert (counts[expected == 0] == 0).all()
        assert chisquare(counts[expected > 0], expected[expected > 0] * 20_000).pvalue > 1e-6
        forward = np.linalg.matrix_power(chain, 2)[start]  # is rejected: the check can fail
        assert np.abs(counts / 20_000 - forward).max() > 0.04


def test_each_household_ages_by_its_own_chain_and_missing_states_stay():
    cycle = np.roll(np.eye(3), 1, axis=1)
    states = np.array([[0, 1, -1, 2], [0, 1, 2, -1]])
    aged = age_artificially(states, np.stack([cycle, cycle.T]), 1, np.random.default_rng(0))
    assert aged.tolist() == [[2, 0, -1, 1], [1, 2, 0, -1]]
    assert age_artificially([1, -1], cycle, 0, np.random.default_rng(0)).tolist() == [1, -1]


@pytest.mark.parametrize(
    ("states", "chain", "message"),
    [
        ([1], [[1.0, 0.0], [np.nan, np.nan]], "without a row"),
        ([2], FLIP, "got a higher one"),
        ([0, 1, 0], np.stack([FLIP, FLIP]), "do not fit"),
        ([0.5], FLIP, "do not fit"),
    ],
)
def test_states_that_cannot_be_aged_are_refused(states, chain, message):
    with pytest.raises(ChainError, match=message):
        age_artificially(states, chain, 1, np.random.default_rng(0))


def test_an_artificially_aged_randomised_response_costs_what_its_kernel_lets_through():
    loss, steps = 2.0, 2
    response = np.array([[1, np.exp(-loss)], [np.exp(-loss), 1]]) / (1 + np.exp(-loss))
    answer = power(reverse(UNEVEN), steps) @ response
    exact = np.abs(np.log(answer[0] / answer[1])).max()
    assert exact == pytest.approx(float(leakage(power(reverse(UNEVEN), steps), loss)), rel=1e-12)
    # Drawn and answered twice: independent given the present, so the loss doubles ...
    assert compose(UNEVEN, [5, 5], [0, 0], [exact, exact], [5], method="tight")[0] == pytest.approx(2 * exact)
    # ... which two queries with a really old input would not cost: to account for them as such is unsafe.
    assert compose(UNEVEN, [5, 5], [steps, steps], [loss, loss], [5], method="tight")[0] < 2 * exact - 0.1


# Plans against exhaustive search over whole steps and a fine grid of losses.

THREE = np.array([[0.6, 0.3, 0.1], [0.2, 0.5, 0.3], [0.1, 0.2, 0.7]])
RISK = partial(peak, FLIP, method="tight")


def penalty(total, loss):
    return 0.02 / loss**2 + 0.1 * (1 - 0.8**total)


@pytest.mark.parametrize(("chain", "method", "allowed"), [(FLIP, "tight", 0.09), (THREE, "total_variation", 0.05)])
def test_no_schedule_of_a_fine_grid_beats_the_plan(chain, method, allowed):
    plan = plan_ageing(partial(peak, chain, method=method), penalty, max_penalty=allowed, horizon=6)
    assert penalty(plan.age + plan.interval, plan.loss) == plan.penalty <= allowed
    assert plan.risk == peak(chain, plan.loss, age=plan.age, interval=plan.interval, method=method)
    losses = np.geomspace(0.05, 40, 60)
    for total in range(1, 7):
        feasible = losses[[penalty(total, loss) <= allowed for loss in losses]]
        for age in range(total if feasible.size else 0):
            risks = peak(chain, feasible, age=age, interval=total - age, method=method)
            assert risks.min() >= plan.risk - 1e-12


def test_the_loss_is_the_smallest_that_keeps_the_penalty_to_the_last_digit():
    loss = smallest_loss(penalty, 3, max_penalty=0.09)
    assert loss == pytest.approx(np.sqrt(0.02 / (0.09 - 0.1 * (1 - 0.8**3))), rel=1e-12)
    assert penalty(3, loss) <= 0.09 < penalty(3, np.nextafter(loss, 0) * (1 - 1e-14))
    assert smallest_loss(penalty, 30, max_penalty=0.05) is None
    assert smallest_loss(lambda t, e: 0.0, 3, max_penalty=0.0) == 1e-12


def test_where_nothing_is_feasible_there_is_no_plan():
    with pytest.raises(ChainError, match="allow more"):
        plan_ageing(RISK, lambda t, e: 1.0, max_penalty=0.5, horizon=3)
    with pytest.raises(ChainError, match="one step ahead"):
        plan_ageing(RISK, penalty, max_penalty=0.5, horizon=0)


def test_no_plan_asks_for_a_loss_above_the_cap():
    needed = plan_ageing(RISK, penalty, max_penalty=0.09, horizon=3).loss
    with pytest.raises(ChainError, match="allow more"):
        plan_ageing(RISK, penalty, max_penalty=0.09, horizon=1, max_loss=0.1)
    assert plan_ageing(RISK, penalty, max_penalty=0.09, horizon=3, max_loss=needed).loss == needed


@pytest.mark.parametrize(("most", "longest"), [(0.4, 2), (5.0, None)])
def test_no_schedule_of_a_fine_grid_is_cheaper_at_its_risk(most, longest):
    plan = plan_least_penalty(RISK, penalty, max_risk=0.5, horizon=4, max_loss=most, max_interval=longest)
    assert plan.risk <= 0.5
    assert plan.loss <= most
    assert plan.penalty == penalty(plan.age + plan.interval, plan.loss)
    assert plan.interval <= (longest or 4)
    losses = np.geomspace(0.02, most, 40)
    for interval in range(1, (longest or 4) + 1):
        for age in range(5 - interval):
            feasible = losses[RISK(losses, age=age, interval=interval) <= 0.5]
            if feasible.size:
                assert penalty(age + interval, feasible.max()) >= plan.penalty - 1e-12


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ({"max_loss": 9}, (0, 4, 4.0)),
        ({"max_loss": 9, "max_interval": 1}, (0, 1, 1.0)),
        ({"max_loss": 2.5}, (0, 4, 2.5)),  # as cheap with 3, at more risk
    ],
)
def test_a_longer_interval_is_taken_where_it_is_cheaper_and_allowed(keys, expected):
    def risk_of(loss, age, interval):
        return loss / interval

    plan = plan_least_penalty(risk_of, lambda t, e: 1 / e, max_risk=1, horizon=4, **keys)
    assert (plan.age, plan.interval, plan.loss) == expected
    assert plan_least_penalty(risk_of, lambda t, e: 1 / e, max_risk=1e-30, horizon=4, **keys) is None


# docs/chains.md: the counter-examples to taking the chain for true, each as exact as it can be written.


def test_the_sum_of_losses_through_the_nearest_kernel_is_unsafe_under_a_lasting_regime():
    likelier = 0.7 / (1 + np.exp(-0.5)) + 0.3 / (1 + np.exp(0.5))
    favoured = (likelier / (1 - likelier)) ** 14
    exact = np.log((0.7 * favoured + 0.3) / (0.3 * favoured + 0.7))
    kernel = np.linalg.matrix_power([[0.7, 0.3], [0.3, 0.7]], 2)
    assert exact == pytest.approx(0.735, abs=5e-4)
    assert leakage(kernel, 14 * 0.5) == pytest.approx(0.322, abs=5e-4)
    assert compose_without_markov([kernel] * 14, [0.5] * 14) >= exact


def test_smoothing_lowers_the_figure_by_a_power_of_the_age():
    weight = np.random.default_rng(2).gamma(1.0, size=(12, 12)) + 30 * np.eye(12)
    counts = np.rint((weight + weight.T) * 100)
    plain, smoothed = (transition_matrix(counts, smoothing=smoothing) for smoothing in (0, 0.05))
    for steps in (1, 5, 36):
        apart, closer = (max_total_variation(np.linalg.matrix_power(each, steps)) for each in (plain, smoothed))
        assert closer == pytest.approx(float(apart) * (1 + 12 * 0.05) ** -steps, rel=1e-6)
