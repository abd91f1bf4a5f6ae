"""Where the papers err: each statement of the errata, with the value that breaks it."""

from __future__ import annotations

from decimal import Decimal, localcontext
from functools import partial
from itertools import product

import numpy as np
import pytest
from scipy.stats import binom, laplace, norm

from agedp_data.accounting.ageing import age_of_information, compose, cyclic_risk, peak, plan_ageing, risk
from agedp_data.accounting.temporal_leakage import allocate, backward, temporal, temporal_kernels, temporal_supremum
from agedp_data.errors import ChainError
from agedp_data.leakage.function import KernelLeakage, fixed_point, leakage
from agedp_data.markov.cyclic import cyclic_kernels
from agedp_data.markov.mixing import spectral_bound, spectral_gap, total_variation
from agedp_data.markov.transitions import stationary
from docs.papers.age import ar1_model
from docs.papers.age.geometric_decay import GeometricDecay, plan_geometric_decay
from docs.papers.age.two_state_model import failure_rate, mean_square_error, noise_scale, shrunk_error
from tests.agedp_data.accounting.temporal_oracles import (
    by_programme,
    by_recursion,
    dense,
    enumerated,
    joint_of_days,
)
from tests.agedp_data.accounting.temporal_oracles import (
    stationary as stationary_law,
)

# docs/papers.md, the age-dependent paper, row by row: each test fails if the paper's form is used instead.

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


# What [T] prints, taken literally, beside what holds: each trap of docs/papers.md with a case in which it matters.

EXAMPLE_4 = np.array([[0.1, 0.2, 0.7], [0.3, 0.3, 0.4], [0.5, 0.3, 0.2]])
TRAP = np.array([[0.12, 0.5, 0.38], [0.65, 0.35, 0.0], [0.3, 0.43, 0.27]])


def piece(q, d, loss):
    return np.log((q * (np.exp(loss) - 1) + 1) / (d * (np.exp(loss) - 1) + 1))


def pieces(kernel):
    """All (Q, D) of ordered pairs and prefixes of columns by q/d, as Algorithm 2 lists them."""
    found = []
    for x in kernel:
        for y in kernel:
            order = np.argsort([-a / b if b > 0 else -np.inf for a, b in zip(x, y, strict=True)])
            found += [(x[order[:m]].sum(), y[order[:m]].sum()) for m in range(1, len(x))]
    return [(q, d) for q, d in found if q > d]


def theorem_11(q, d, loss):
    """The paper's four cases as printed."""
    e = np.exp(loss)
    if d != 0:
        return np.log((np.sqrt(4 * d * e * (1 - q) + (d + q * e - 1) ** 2) + d + q * e - 1) / (2 * d))
    if q != 1 and loss <= np.log(1 / q):
        with np.errstate(divide="ignore"):
            return np.log((1 - q) * e / (1 - q * e))
    return np.inf


def frozen(kernel, loss):
    """Theorem 11 with the pair and the prefix that are the largest at the loss itself."""
    return theorem_11(*max(pieces(kernel), key=lambda one: piece(*one, loss)), loss)


def test_algorithm_4_started_at_zero_takes_a_piece_that_is_never_the_largest():
    # At a = 0 every piece is ln 1: the "top function" there is whichever comes first.
    at_zero = [piece(q, d, 0.0) for q, d in pieces(EXAMPLE_4)]
    assert set(at_zero) == {0.0}
    first = pieces(EXAMPLE_4)[int(np.argmax(at_zero))]
    function = KernelLeakage(EXAMPLE_4)
    for loss in (1e-6, 1e-3, 0.1, 0.5):
        truth = by_programme(EXAMPLE_4, loss)
        assert piece(*first, loss) < 0.9 * truth
        assert function(loss) == pytest.approx(truth, abs=1e-9)
        assert backward(EXAMPLE_4, [loss, 0.0])[1] == pytest.approx(truth, abs=1e-9)


def test_theorem_11_with_the_pair_frozen_calls_an_endless_growth_bounded():
    assert frozen(TRAP, 1.0) == pytest.approx(2.12120651, abs=1e-8)
    assert by_recursion(TRAP, [1.0] * 200)[-1] == pytest.approx(10.4408519, abs=1e-6)
    assert temporal_supremum(TRAP, None, 1.0) == np.inf


def test_algorithm_7_with_the_pair_frozen_breaks_its_promise_and_the_budget_here_keeps_it():
    alpha = 3.0
    low, high = 0.0, alpha
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if 2 * frozen(TRAP, middle) - middle <= alpha else (low, middle)
    assert temporal(TRAP, TRAP, np.full(400, low)).max() > 1.05 * alpha
    kept = allocate(TRAP, TRAP, alpha=alpha, horizon=400, method="supremum")
    losses = kept.tolist()
    truth = by_recursion(TRAP, losses) + by_recursion(TRAP, losses)[::-1] - kept
    assert 0.99 * alpha < truth.max() <= alpha * (1 + 1e-12)


def test_theorem_11_s_second_case_is_strict():
    edge = np.log(5 / 4)
    assert temporal_supremum([[0.8, 0.2], [0.0, 1.0]], None, edge) == np.inf
    # At the very edge every release adds the same again: (1 - .8) e^e = .25 in e^BPL.
    grown = np.exp(by_recursion([[0.8, 0.2], [0.0, 1.0]], [edge] * 50))
    np.testing.assert_allclose(np.diff(grown), 0.25, rtol=1e-9)


def test_theorem_11_s_first_case_loses_all_digits_for_a_small_d():
    q, d, loss = 0.6, 1e-17, 0.4
    truth = theorem_11(q, 0.0, loss)
    with np.errstate(divide="ignore", invalid="ignore"):
        assert theorem_11(q, d, loss) != pytest.approx(truth, rel=0.01)
    found = fixed_point(np.array([q]), np.array([d]), np.array(loss))
    assert found == pytest.approx(truth, rel=1e-9)


@pytest.mark.parametrize("loss", [1e-12, 1e-9, 1e-6, 0.3, 5.0])
@pytest.mark.parametrize(("q", "d"), [("0.8", "0.1"), ("0.6", "1e-9"), ("0.999", "0.001")])
def test_limits_have_all_their_digits(q, d, loss):
    with localcontext() as many:
        many.prec = 60
        up, down, grown = Decimal(q), Decimal(d), Decimal(loss).exp()
        middle = down + up * grown - 1
        root = (middle * middle + 4 * down * (1 - up) * grown).sqrt()
        truth = float(((middle + root) / (2 * down)).ln())
    assert temporal_supremum([[float(q), 1 - float(q)], [float(d), 1 - float(d)]], None, loss) == pytest.approx(
        truth, rel=1e-12
    )


def test_e_to_the_alpha_overflows_as_printed_and_not_here():
    kernel = dense(4, 2)
    with np.errstate(over="ignore", invalid="ignore"):
        assert np.isnan(piece(*pieces(kernel)[0], 800.0))
    assert backward(kernel, [800.0, 1.0])[1] == pytest.approx(1 + np.log(np.max(kernel.max(0) / kernel.min(0))))
    np.testing.assert_allclose(backward(np.eye(2), [50.0] * 400), 50.0 * np.arange(1, 401))


def test_the_sum_of_both_sides_is_a_bound_and_no_equality():
    # 0 or 1 decides where one came from, 2 or 3 where one goes: no pair has both maxima.
    chain = dense(3, 7, weight=0.3)
    losses = [0.9, 0.6, 1.3]
    truth = enumerated(joint_of_days(chain, stationary_law(chain), [0, 1, 2], 1), losses)
    assert truth[1] < temporal(*temporal_kernels(chain), losses)[1] - 0.05


def test_algorithm_8_loses_to_an_even_split_under_strong_correlation():
    stay = [[0.98, 0.02], [0.02, 0.98]]
    noise = {m: float((1 / allocate(stay, stay, alpha=1.0, horizon=10, method=m)).mean()) for m in ("exact", "even")}
    assert noise == {"exact": pytest.approx(38.0, abs=0.05), "even": pytest.approx(10.0)}
    assert (1 / allocate(stay, stay, alpha=1.0, horizon=10, method="best")).mean() < 9.1


def test_algorithm_8_is_constant_from_the_second_to_the_last_but_one():
    losses = allocate([[0.8, 0.2], [0.2, 0.8]], [[0.8, 0.2], [0.1, 0.9]], alpha=1.0, horizon=30, method="exact")
    np.testing.assert_allclose(losses[1:-1], losses[1], rtol=1e-12)
    assert min(losses[0], losses[-1]) > 1.2 * losses[1]


def test_figure_8_s_backward_matrix_is_not_the_reverse_of_its_forward_one():
    (behind,), _ = temporal_kernels([[0.8, 0.2], [0.1, 0.9]])
    np.testing.assert_allclose(behind, [[0.8, 0.2], [0.1, 0.9]])
    assert abs(behind - np.array([[0.8, 0.2], [0.2, 0.8]])).max() > 0.09


def test_figure_3_s_chain_has_no_reverse():
    # The first place is left for good; in the long run nobody is there, and nothing is known of who came from there.
    (behind,), _ = temporal_kernels([[0.8, 0.2], [0.0, 1.0]])
    assert np.isnan(behind[0]).all()
    np.testing.assert_array_equal(behind[1], [0.0, 1.0])
