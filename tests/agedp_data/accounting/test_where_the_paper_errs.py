"""docs/papers.md, the age-dependent paper, row by row: each test fails if the paper's form is used instead.

The first words of a test name the row: an equation, a figure, an algorithm of [A].
"""

from __future__ import annotations

from functools import partial
from itertools import product

import numpy as np
import pytest
from scipy.stats import binom, laplace, norm

from agedp_data.accounting.ageing import age_of_information, compose, cyclic_risk, peak, plan_ageing, risk
from agedp_data.errors import ChainError
from agedp_data.leakage.function import leakage
from agedp_data.markov.cyclic import cyclic_kernels
from agedp_data.markov.mixing import spectral_bound, spectral_gap, total_variation
from agedp_data.markov.transitions import stationary
from docs.papers.age import ar1_model
from docs.papers.age.geometric_decay import GeometricDecay, plan_geometric_decay
from docs.papers.age.two_state_model import failure_rate, mean_square_error, noise_scale, shrunk_error

FLIP = np.array([[0.9, 0.1], [0.1, 0.9]])
UNEVEN = np.array([[0.95, 0.05], [0.3, 0.7]])
FALLING = np.zeros((12, 12))
FALLING[:, 0] = 0.5
FALLING[np.arange(12), np.minimum(np.arange(12) + 1, 11)] += 0.5

ERROR = partial(mean_square_error, agents=20, move=0.1)
PEAK = partial(peak, FLIP, method="total_variation")
REPAIRED = partial(plan_geometric_decay, GeometricDecay(1.0, 0.8), precision=1e-9)


def test_after_eq_8_the_attack_succeeds_at_ages_4_7_11_as_often_as_is_said_of_3_6_10():
    # A guess from an output of loss eps is right with probability 1 / (1 + e^-eps).
    success = 1 / (1 + np.exp(-risk(FLIP, 2.0, [3, 6, 10, 4, 7, 11], method="tight")))
    np.testing.assert_allclose(success, [0.695, 0.600, 0.541, 0.656, 0.580, 0.533], atol=1.1e-3)
    assert risk(FLIP, 2.0, [6], method="tight")[0] == pytest.approx(0.405, abs=5e-4)  # not "0.3"


def test_eq_12_with_the_forward_kernel_would_be_unsafe():
    forward = [np.linalg.matrix_power(FALLING, t) for t in (1, 2)]
    assert [max(np.abs(x - y).sum() / 2 for x in k for y in k) for k in forward] == [0.5, 0.25]
    np.testing.assert_array_equal(total_variation(FALLING, [1, 2]), [1.0, 1.0])
    # One step back the state is told exactly, so randomised response about it still costs all of its loss.
    np.testing.assert_array_equal(risk(FALLING, 1.0, [1], method="tight"), [1.0])


def test_eq_12_of_a_homogenised_chain_understates_a_night_in_which_nothing_changes():
    night, day = 500 * np.eye(2, dtype=int), np.full((2, 2), 250)
    pooled = (night + day) / 1000
    assert risk(pooled, 1.0, [1], method="total_variation")[0] == pytest.approx(0.62, abs=5e-4)
    kernels = cyclic_kernels(np.stack([night, day]), [0, 1], direction="backward")
    np.testing.assert_array_equal(cyclic_risk(kernels, 1.0, [1, 2]), [1.0, 0.0])


def test_theorem_1_fails_for_two_households_that_always_do_the_same():
    # Each answers with loss eps; whoever knows one present state knows both pasts: the loss is that of 2 eps.
    loss, age = 0.7, 2
    kernel = np.linalg.matrix_power(FLIP, age)
    keep = 1 / (1 + np.exp(-loss))
    answer = np.array([[keep, 1 - keep], [1 - keep, keep]])
    both = [kernel @ (answer[:, a] * answer[:, b]) for a, b in product(range(2), repeat=2)]
    exact = max(abs(np.log(first / second)) for first, second in both)
    assert exact == pytest.approx(leakage(kernel, 2 * loss), rel=1e-12)
    assert exact > risk(FLIP, loss, [age], method="total_variation")[0]


def test_eq_13_decays_as_rho_to_the_t():
    distance = total_variation(FLIP, [1, 10])
    np.testing.assert_allclose(distance, [0.8, 0.8**10], rtol=1e-12)
    assert distance[1] < 1 < 0.8**-10


def test_eq_21_counts_no_query_before_the_first():
    np.testing.assert_array_equal(compose(FLIP, [2], [0], [0.5], [0, 1, 2], method="tight"), [0, 0, 0.5])
    with pytest.raises(ChainError, match="none before step 1"):
        age_of_information([0, 2], [0, 0], 3)


def test_eq_25_looked_up_literally_is_below_the_truth_for_overlapping_ages():
    literal = np.log1p(0.8**5 * np.expm1(0.5))
    exact = compose(FLIP, [1, 2, 3], [5, 5, 5], [0.5] * 3, [3], method="tight")[0]
    assert literal == pytest.approx(0.1927, abs=5e-5)
    assert exact == pytest.approx(0.3557487386, abs=1e-10)  # also the loss of randomised response
    by_distance = compose(FLIP, [1, 2, 3], [5, 5, 5], [0.5] * 3, [3], method="total_variation")[0]
    assert by_distance == pytest.approx(0.6220620350, abs=1e-10)


def test_the_bracket_of_eq_25_stands_around_delta_alone_where_nothing_is_forgotten():
    printed = np.log(1 + 1.0) * np.expm1(0.5)  # Delta = 1: the risk of one release is its loss, .5
    assert printed == pytest.approx(0.4497, abs=5e-5)
    swap = [[0.0, 1.0], [1.0, 0.0]]
    assert compose(swap, [1], [1], [0.5], [1], method="tight")[0] == pytest.approx(0.5, rel=1e-12)


def test_eq_25_is_circular_for_age_zero_where_the_recursion_is_not():
    # S_n - A_n = S_n: the literal formula would need the risk that it defines.
    composed = compose(FLIP, [1, 2], [0, 0], [0.5, 0.5], [2], method="tight")[0]
    assert composed == pytest.approx(0.5 + float(leakage(FLIP, 0.5)), rel=1e-12)


def test_after_eq_27_the_largest_age_of_information_is_one_less_than_age_and_interval():
    course = age_of_information(np.arange(4, 100, 4), np.full(24, 2), 99)
    assert course[8:].max() == 2 + 4 - 1


def test_eq_31_only_the_bound_diverges():
    assert peak(FLIP, 1.0, age=0, interval=1, method="total_variation") == np.inf
    assert peak(FLIP, 1.0, age=0, interval=1, method="tight") == pytest.approx(2.749726736, abs=1e-9)


def test_eq_38_is_clipped_at_one():
    slow = GeometricDecay(scale=3.0, rate=0.9)
    assert slow(0) == slow(10) == 1.0
    assert slow(11) == pytest.approx(3 * 0.9**11)
    assert slow(11) < 1
    assert slow.peak(1.0, age=0, interval=60) == pytest.approx(np.log1p(np.expm1(1.0) / (1 - 3 * 0.9**60 * np.e)))


@pytest.mark.parametrize("allowed", [0.084, 0.0995])
def test_algorithms_1_and_2_repaired_find_the_feasible_minimum_of_a_fine_grid(allowed):
    losses = np.arange(1, 401) * 0.02
    found = REPAIRED(ERROR, max_penalty=allowed, losses=losses, max_total=60.0)
    assert found.penalty <= allowed
    best = np.inf
    for loss in losses:  # every split of the longest feasible A + S
        slack = 1 - (allowed - 8 / (loss**2 * 400)) * 10
        if slack > 1 or slack <= 0.8**60:
            continue
        total = np.log(slack) / np.log(0.8)
        age = np.linspace(0, total, 4001)
        rest = 1 - 0.8 ** (total - age) * np.exp(loss)
        with np.errstate(divide="ignore", invalid="ignore"):
            value = np.where(rest > 0, np.log1p(0.8**age * np.expm1(loss) / rest), np.inf)
        best = min(best, value.min())
    assert found.risk == pytest.approx(best, rel=1e-5)


def test_algorithm_2_rounded_to_whole_steps_breaks_the_constraint_and_the_integer_search_does_not():
    found = REPAIRED(ERROR, max_penalty=0.084, losses=np.arange(1, 2001) * 0.005, max_total=60.0)
    assert ERROR(round(found.age) + round(found.interval), found.loss) > 0.084
    whole = plan_ageing(PEAK, ERROR, max_penalty=0.084, horizon=30)
    assert whole.penalty <= 0.084
    assert (whole.age, whole.interval) == (0, 5)


def test_algorithms_1_and_2_drop_candidates_with_a_negative_denominator():
    # At a loss of 3 within 4 steps 1 - .8^S e^3 < 0: the printed objective would be the least of all, and negative.
    assert np.expm1(3.0) / (1 - 0.8**4 * np.exp(3.0)) < 0
    lax = partial(REPAIRED, lambda t, loss: float(t > 4), max_penalty=0.5)
    assert lax(losses=[3.0, 0.1], max_total=4.0).loss == 0.1
    with pytest.raises(ChainError, match="none of the losses"):
        lax(losses=[3.0], max_total=4.0)


def test_corollary_3_does_not_apply_to_the_square_error_so_there_is_a_trade_off():
    plans = [plan_ageing(PEAK, ERROR, max_penalty=most, horizon=40) for most in (0.084, 0.0995)]
    assert [round(plan.risk, 3) for plan in plans] == [4.454, 1.581]
    # The condition itself: f along the curve of equal risk rises somewhere.
    loss = np.linspace(0.5, 3, 200)
    along = [ERROR((np.log(np.expm1(e)) + e) / -np.log(0.8), e) for e in loss]
    assert (np.diff(along) > 0).any()


def test_eq_48_would_be_twice_as_costly_as_it_says():
    loss, agents = 0.5, 20
    a, b = np.array([1.0] + [1.0] * 19).mean(), np.array([-1.0] + [1.0] * 19).mean()
    at = np.linspace(-3, 3, 2001)
    for scale, expected in ((noise_scale(loss, agents=agents), loss), (1 / (loss * agents), 2 * loss)):
        worst = np.abs(laplace.logpdf(at, a, scale) - laplace.logpdf(at, b, scale)).max()
        assert worst == pytest.approx(expected, rel=1e-9)
    np.testing.assert_allclose([ERROR(t, 0.5) for t in range(4)], [0.08, 0.1, 0.116, 0.1288], atol=1e-12)
    assert ERROR(0, 0.5) == pytest.approx(8 / (0.5**2 * 20**2))  # the benchmark, not 2 / (eps I)^2


def test_eq_55_is_refused_where_it_would_be_below_the_truth():
    turning = np.array([[0.0, 0.98, 0.02], [0.02, 0.0, 0.98], [0.98, 0.02, 0.0]])
    law = stationary(FALLING)
    rate = np.sort(np.abs(np.linalg.eigvals(FALLING)))[-2]
    printed = np.sqrt((1 - law.min()) / law.min()) * rate ** np.array([9, 10])
    assert (printed < total_variation(FALLING, [9, 10])).any()  # 1 there: ten steps back are still told exactly
    for chain in (FALLING, turning):
        with pytest.raises(ChainError, match="reversible chains only"):
            spectral_bound(chain, [9])


def test_eq_57_does_not_bound_the_modulus_of_the_walk_on_two_vertices():
    walk = np.array([[0.0, 1.0], [1.0, 0.0]])
    printed = 1 / (2 * 1 * (1 + 1))  # "the gap is at least this"
    assert spectral_gap(walk) == pytest.approx(0.0, abs=1e-12)
    assert spectral_gap(walk) < printed
    np.testing.assert_array_equal(total_variation(walk, [1, 2, 99]), [1.0, 1.0, 1.0])


def test_eq_61_b_drops_the_ratio_of_the_stationary_law():
    law, ages, exact, printed = stationary(UNEVEN), (1, 5, 60), [], []
    for t in ages:
        forward = np.linalg.matrix_power(UNEVEN, t)
        backward = (law[:, None] * forward).T / law[:, None]
        exact.append(max(np.log(backward[x] / backward[y]).max() for x in (0, 1) for y in (0, 1)))
        printed.append(max(((forward[:, x] - forward[:, y]) / forward[:, y]).max() for x in (0, 1) for y in (0, 1)))
    np.testing.assert_allclose(risk(UNEVEN, np.inf, ages, method="tight"), exact, rtol=1e-9, atol=1e-12)
    assert exact[-1] < 1e-9
    assert printed[-1] > 4  # it does not even go to 0


def test_eqs_67_and_71_with_eps_for_e_to_the_eps_would_let_an_earlier_release_lower_the_risk():
    loss, earlier, age, interval = 0.5, 0.3, 1, 2
    printed = np.log1p(0.8 ** (interval + age) * (np.exp(loss) * (0.8**age * (earlier - 1) + 1) - 1))
    alone = np.log1p(0.8 ** (interval + age) * np.expm1(loss))
    assert printed < alone
    both = compose(FLIP, [1, 3], [0, 0], [earlier, loss], [6], method="total_variation")[0]
    assert both > compose(FLIP, [3], [0], [loss], [6], method="total_variation")[0]
    # Proposition 3's limit obeys the recursion with e^eps.
    limit = peak(FLIP, 0.1, age=2, interval=4, method="total_variation")
    inner = np.log1p(0.8**4 * (np.exp(0.1) * (1 + 0.8 ** (4 - 2) * np.expm1(limit)) - 1))
    assert np.log1p(0.8**2 * (np.exp(0.1 + inner) - 1)) == pytest.approx(float(limit), rel=1e-9)


def test_eq_85_is_negative_so_pinsker_needs_the_other_sign():
    at = np.linspace(-12, 12, 20001)
    spread = np.sqrt((1 - 0.8**6) / (1 - 0.8**2))
    near, far = norm.logpdf(at, 0.0, spread), norm.logpdf(at, 0.8**3, spread)
    printed = np.trapezoid(np.exp(far) * (near - far), at)
    assert printed < 0
    exact = ar1_model.total_variation(3, distance=1.0, rate=0.8, noise=1.0)
    assert exact == pytest.approx(np.trapezoid(np.abs(np.exp(near) - np.exp(far)), at) / 2, abs=1e-7)
    assert exact < np.sqrt(-printed / 2)


def test_eqs_88_and_89_may_exceed_the_loss_of_the_mechanism_itself():
    width, loss = 9.0, 1.0
    assert np.log1p(width / 2 * np.expm1(loss)) > loss
    ages = np.arange(40)
    aged = ar1_model.risk(ages, loss, width=width, rate=0.8, noise=1.0)
    assert aged[0] == loss
    assert (aged <= loss).all()
    assert (np.diff(aged) <= 0).all()
    assert (aged <= np.log1p(0.8**ages * width / 2 * np.expm1(loss)) + 1e-12).all()


def test_eqs_90_and_92_need_a_range_and_twice_the_square_of_the_scale():
    assert ar1_model.mean_square_error(3, 0.05, agents=20, rate=0.8, noise=1.0) == pytest.approx(0.14056, abs=5e-6)
    rng = np.random.default_rng(4)
    past = rng.normal(0, np.sqrt(1 / 0.36), 100_000)
    present = 0.8**3 * past + rng.normal(0, np.sqrt((1 - 0.8**6) / 0.36), past.size)
    simulated = ((past - present) ** 2).mean() / 20 + rng.laplace(0, 0.05, past.size).var()
    assert simulated == pytest.approx(0.14056, rel=0.02)
    assert ar1_model.noise_scale(1.0, width=2.0, agents=20) == 0.1
    with pytest.raises(ChainError, match="positive width"):
        ar1_model.noise_scale(1.0, width=0.0, agents=20)


def test_fig_5a_converges_to_0_41190_and_not_to_one_half():
    rates = [failure_rate(t, 0.5, agents=20, move=0.1) for t in (1, 10, 300)]
    assert rates[-1] == pytest.approx(binom.cdf(9, 20, 0.5), abs=1e-9)
    assert rates[-1] == pytest.approx(0.41190, abs=5e-6)
    assert rates == sorted(rates)


@pytest.mark.parametrize("target", [0.1, 0.5, 1.0])
def test_fig_5c_gains_nothing_by_ageing_once_averaged_over_the_past(target):
    noise_only = failure_rate(0, target, agents=20, move=0.1)
    for age in (1, 3, 6):
        loss = float(np.log1p(np.expm1(target) / 0.8**age))  # the loss that ages to the same risk
        assert failure_rate(age, loss, agents=20, move=0.1) >= noise_only - 1e-9


def test_fig_4c_an_aged_mean_is_worse_than_publishing_zero_unless_it_is_shrunk():
    assert ERROR(200, 1e6) == pytest.approx(0.1)
    zero = 1 / 20  # the variance of the true mean
    for age, loss in product((0, 1, 5, 50), (0.1, 0.5, 5.0)):
        best = shrunk_error(age, loss, agents=20, move=0.1)
        assert best <= min(zero, ERROR(age, loss)) + 1e-15
    factor = np.linspace(0, 1, 2001)
    value = 1 / 20 - 2 * factor * 0.8 / 20 + factor**2 * (1 / 20 + 2 * noise_scale(2.0, agents=20) ** 2)
    assert shrunk_error(1, 2.0, agents=20, move=0.1) == pytest.approx(value.min(), rel=1e-5)
