"""The leakage function: closed forms, linear programmes, pieces, whole numbers."""

from __future__ import annotations

from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import combinations, permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from agedp_data.errors import ChainError
from agedp_data.leakage.bound_table import LOSS_GRID, LeakageBound
from agedp_data.leakage.exact import (
    NANO,
    PROBABILITY_UNIT,
    PiecewiseLeakage,
    TabulatedLeakage,
    from_integers,
    round_down_nano,
    round_up_nano,
    round_up_with_slack,
    to_integers,
)
from agedp_data.leakage.function import (
    KernelLeakage,
    fixed_point,
    frontier,
    frontier_of,
    gain,
    largest_gain,
    leakage,
    leakage_from_total_variation,
    prefixes,
    supremum,
)
from agedp_data.leakage.population_bound import leakage_bound
from agedp_data.markov.transitions import reverse
from tests.agedp_data.accounting.temporal_oracles import by_programme

# The primitive against exhaustive subsets, linear programmes, closed forms, reference values and its laws.

EXAMPLE_4 = [[0.1, 0.2, 0.7], [0.3, 0.3, 0.4], [0.5, 0.3, 0.2]]
TRAP = [[0.12, 0.5, 0.38], [0.65, 0.35, 0.0], [0.3, 0.43, 0.27]]
REFERENCE = [0.05021976398, 0.2523992317, 0.4943335145, 0.9397521224, 1.557279325]


def random_kernels(count, k, n, seed, *, sparse=0.3):
    rng = np.random.default_rng(seed)
    weights = rng.gamma(0.5, size=(count, k, n)) * (rng.random((count, k, n)) > sparse)
    weights[..., 0] += 1e-3
    return weights / weights.sum(axis=-1, keepdims=True)


def by_subsets(kernel, loss):
    """The definition: all ordered pairs of rows, all 2^n sets of columns."""
    k, n = kernel.shape
    sets = (np.arange(2**n)[:, None] >> np.arange(n)) & 1
    used, rest = (-np.expm1(-loss), np.exp(-loss))
    over, under = used * (sets @ kernel.T) + rest, used * (sets @ kernel.T) + rest
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = [np.log(over[:, x]) - np.log(under[:, y]) for x, y in permutations(range(k), 2)]
    return np.nanmax(ratios)


def test_the_reference_example_comes_out():
    np.testing.assert_allclose(leakage(EXAMPLE_4, [0.1, 0.5, 1.0, 2.0, 5.0]), REFERENCE, rtol=1e-9)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("loss", [1e-6, 0.3, 2.0, 9.0, np.inf])
def test_it_is_the_maximum_over_all_subsets_of_columns(seed, loss):
    for kernel in random_kernels(5, 4, 6, seed):
        assert leakage(kernel, loss) == pytest.approx(by_subsets(kernel, loss), rel=1e-9, abs=1e-15)


def test_it_is_the_optimum_of_the_linear_programmes():
    for kernel in random_kernels(2, 4, 4, 11):
        for loss in (0.2, 4.0):
            assert leakage(kernel, loss) == pytest.approx(by_programme(kernel, loss), abs=1e-7)


def test_a_two_state_copy_has_its_closed_form_to_twelve_digits():
    loss = np.array([1e-12, 1e-6, 1e-3, 1.0, 30.0])
    expected = np.log1p((0.9 - 0.1) * np.expm1(loss) / (1 + 0.1 * np.expm1(loss)))
    np.testing.assert_allclose(leakage([[0.9, 0.1], [0.1, 0.9]], loss), expected, rtol=1e-12)


def test_disjoint_rows_let_everything_through_and_equal_rows_nothing():
    loss = np.array([0.0, 1e-9, 1.0, 800.0, np.inf])
    np.testing.assert_allclose(leakage(np.eye(3), loss), loss, rtol=1e-15)
    np.testing.assert_array_equal(leakage(np.full((3, 4), 0.25), loss), np.zeros(5))
    assert leakage([[0.3, 0.7], [np.nan, np.nan]], np.inf) == 0.0  # a single row has nothing to tell apart


def test_huge_losses_neither_overflow_nor_lose_digits():
    # The last column is .38 in one row and 0 in another: ln(.38 e^a + .62) = a + ln .38 for large a.
    huge = np.array([699.0, 701.0, 800.0, 1e6])
    np.testing.assert_allclose(leakage(TRAP, huge) - huge, np.log(0.38), rtol=1e-9)
    assert leakage(TRAP, np.inf) == np.inf
    assert leakage(EXAMPLE_4, 800.0) == pytest.approx(np.log(5), abs=1e-12)
    np.testing.assert_array_equal(supremum(EXAMPLE_4, [0.0, np.inf]), [0.0, np.inf])
    assert supremum(EXAMPLE_4, 900.0) == pytest.approx(900 + np.log(5), abs=1e-9)
    assert supremum(np.eye(2), 0.0) == 0.0


def test_rows_of_nan_and_their_columns_are_left_out():
    kernel, small = np.full((3, 3), np.nan), [[0.9, 0.1], [0.1, 0.9]]
    kernel[np.ix_([0, 2], [0, 2])] = small
    assert leakage(kernel, 1.0) == leakage(small, 1.0)
    kernel[:, 1] = [0.0, np.nan, 0.0]
    assert leakage(kernel, 1.0) == leakage(small, 1.0)


def test_stacks_broadcast_against_losses_from_either_side():
    kernels = random_kernels(6, 3, 4, 5).reshape(2, 3, 3, 4)
    loss = np.array([0.1, 1.0, 3.0, 10.0])[:, None, None]
    expected = [[[leakage(k, a) for k in row] for row in kernels] for a in loss.ravel()]
    np.testing.assert_array_equal(leakage(kernels, loss), expected)
    np.testing.assert_array_equal(leakage(kernels, [1.0, 2.0, 3.0])[1, 2], leakage(kernels[1, 2], 3.0))
    assert leakage(kernels[0], np.zeros((0, 3))).shape == (0, 3)


def test_stacks_and_kernels_larger_than_a_block_are_split():
    kernels = random_kernels(1500, 10, 10, 6)
    whole = leakage(kernels, 0.7)
    np.testing.assert_array_equal(whole[[0, 701, 1499]], [leakage(kernels[i], 0.7) for i in (0, 701, 1499)])
    big = random_kernels(1, 120, 120, 7)[0]
    pairs = max(leakage(big[[x, y]], 1.0) for x, y in permutations(range(20), 2))
    assert leakage(big[:20], 1.0) == pairs
    assert leakage(big, 1.0) >= pairs


@pytest.mark.parametrize(
    ("call", "message"),
    [
        *(
            (lambda kernel=kernel: leakage(kernel, 1.0), None)
            for kernel in (
                [[0.5, 0.5], [0.6, 0.5]],
                [[1.1, -0.1], [0.5, 0.5]],
                [[np.nan, 1.0], [0.5, 0.5]],
                np.full((2, 2), np.nan),
                [[np.inf, 0.0], [0.5, 0.5]],
                [0.5, 0.5],
                np.zeros((2, 0)),
            )
        ),
        *((lambda loss=loss: leakage(EXAMPLE_4, loss), "at least 0") for loss in (-1e-9, np.nan, [1.0, -np.inf])),
        (lambda: leakage(np.stack([np.eye(2)] * 3), [1.0, 2.0]), "do not fit"),
        (lambda: KernelLeakage([EXAMPLE_4, EXAMPLE_4]), "one kernel at a time"),
        *((lambda d=d: leakage_from_total_variation(d, 1.0), "from 0 to 1") for d in (-1e-12, 1.0001, np.nan)),
    ],
)
def test_kernels_losses_and_distances_that_are_none_are_refused(call, message):
    with pytest.raises(ChainError, match=message):
        call()


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("loss", [1e-3, 0.1, 0.7])
def test_the_supremum_is_the_limit_of_the_recursion(seed, loss):
    for kernel in random_kernels(4, 4, 4, seed, sparse=0.0):
        limit, function, x = float(supremum(kernel, loss)), KernelLeakage(kernel), 0.0
        for _ in range(5_000):
            x, before = loss + float(function(x)), x
            if x - before < 1e-14 or x > 40:
                break
        assert x <= limit + 1e-9
        if x < 40 and x - before < 1e-14:
            assert x == pytest.approx(limit, rel=1e-6)


def test_the_smoothed_identity_has_its_reference_supremum():
    kernel = (np.eye(50) + 0.05) / (1 + 50 * 0.05)
    np.testing.assert_allclose(supremum(kernel, [0.1, 1.0]), [0.1428444242, 1.9502132968], rtol=1e-9)


def test_theorem_1_has_its_thirty_digit_reference():
    assert leakage_from_total_variation(0.64, 0.5) == pytest.approx(0.347257871444442964225100056308, rel=1e-15)
    extremes = leakage_from_total_variation([0.0, 1.0, 0.5], [np.inf, 900.0, 0.0])
    np.testing.assert_array_equal(extremes, [0.0, 900.0, 0.0])
    assert leakage_from_total_variation(0.5, 900.0) == pytest.approx(900 + np.log(0.5))


LOSS = st.floats(0, 50)
FEW = settings(max_examples=40)


def kernels(rows, columns):
    weight = st.one_of(st.just(0.0), st.floats(1e-6, 1.0))
    shape = st.tuples(rows, columns)
    return shape.flatmap(lambda size: arrays(np.float64, size, elements=weight)).map(_normalised)


def _normalised(weights):
    weights = np.where(weights.sum(axis=1, keepdims=True) > 0, weights, 1.0)
    return weights / weights.sum(axis=1, keepdims=True)


SQUARE = st.integers(2, 4).flatmap(lambda k: st.tuples(*[kernels(st.just(k), st.just(k))] * 2))


@FEW
@given(SQUARE, LOSS)
def test_two_kernels_in_a_row_let_through_no_more_than_one_after_the_other(pair, loss):
    first, second = pair
    assert leakage(first @ second, loss) <= leakage(first, leakage(second, loss)) + 1e-9


# Single pieces against the reference values, hulls and the largest piece against all points.

LOSSES = np.array([0.0, 1e-300, 1e-12, 1e-6, 0.1, 1.0, 5.0, 40.0, 699.0, 701.0, 800.0, 1e9, np.inf])


@pytest.mark.parametrize(
    ("q", "d", "loss", "expected"),
    [
        (0.8, 0.2, 0.1, 0.248771835),
        (0.8, 0.2, 1.0, 1.980747371),
        (0.8, 0.0, 0.1, 0.6459066161),
        (0.8, 0.0, np.log(5 / 4), np.inf),
        (0.8, 0.0, 0.3, np.inf),
        (1.0, 0.0, 0.1, np.inf),
        (1.0, 0.2, 0.1, 0.4225546402),
    ],
)
def test_fixed_points_of_theorem_11_as_corrected(q, d, loss, expected):
    assert fixed_point(np.array([q]), np.array([d]), np.array(loss)) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("zeros", [0, 5])
def test_the_frontier_keeps_every_maximum_with_few_points(zeros):
    over, under = np.random.default_rng(zeros).random((2, 5000)) ** 3
    under[:zeros] = 0.0
    hull_over, hull_under = frontier(over, under)
    assert hull_over.size < 60
    for loss in (1e-6, 0.1, 1.0, 5.0, 30.0, np.inf):
        assert gain(hull_over, hull_under, np.array(loss)) == gain(over, under, np.array(loss))


def stacks():
    rng = np.random.default_rng(21)
    near = np.eye(5) * (1 - 1e-9) + 2e-10
    weight = rng.gamma(0.3, size=(30, 7, 9)) * (rng.random((30, 7, 9)) > 0.6)
    weight[..., 0] += 1e-6
    return {
        "random": rng.dirichlet(np.full(6, 0.5), size=(40, 5)),
        "sparse": weight / weight.sum(axis=-1, keepdims=True),
        "near identity": np.stack([near / near.sum(axis=1, keepdims=True), np.eye(5)]),
        "one row": rng.dirichlet(np.ones(4), size=(3, 1)),
        "one column": np.ones((2, 3, 1)),
    }


@pytest.mark.parametrize("rows", stacks().values(), ids=stacks())
def test_the_largest_gain_is_that_of_all_prefixes_at_any_loss(rows):
    losses, expected = np.tile(LOSSES, (len(rows), 1)), np.zeros((len(rows), LOSSES.size))
    for part, over, under in prefixes(rows):
        expected[part] = np.maximum(expected[part], gain(over[:, None], under[:, None], losses[: len(over)]))
    largest = largest_gain(rows, losses)
    np.testing.assert_allclose(largest, expected, rtol=1e-11, atol=1e-300)
    assert (largest <= LOSSES).all()


def test_rows_that_hardly_differ_keep_their_digits():
    tilt = np.full((2, 4, 8), 0.125)
    tilt[:, 0, :2] += [1e-13, -1e-13]
    expected = np.log1p(1e-13 * np.expm1(1) / (1 + 0.125 * np.expm1(1)))
    assert largest_gain(tilt, np.ones((2, 1)))[1, 0] == pytest.approx(expected, rel=1e-2)


def test_more_pairs_than_a_block_holds_are_tried_to_the_last():
    # 300 rows of 40: some 90,000 pairs, of which a block holds 6,500; the one that wins at a large loss is not wide.
    rows = np.random.default_rng(2).dirichlet(np.full(40, 30.0), size=300)
    rows[123, 7] = 0.0
    rows[123] /= rows[123].sum()
    assert leakage(rows, np.inf) == np.inf
    expected = max(float(gain(over[0], under[0], np.array(9.0))) for _, over, under in prefixes(rows[None]))
    assert leakage(rows, 9.0) == pytest.approx(expected, rel=1e-12)


# Rounding and L in whole 1e-9, against exact fractions and all sets of columns in decimals of fifty digits.


@given(st.floats(0, 1e5), st.integers(0, 10**14))
def test_rounding_is_to_the_next_whole_and_whole_numbers_stay(amount, number):
    up, down = float(round_up_nano(amount)), float(round_down_nano(amount))
    assert down <= amount <= up
    assert up - down <= 1.01e-9 + 1e-11
    assert Fraction(up) - Fraction(amount) < Fraction(1, 10**9) + Fraction(1, 10**11)
    value = number / 10**9
    assert float(round_up_nano(value)) == float(round_down_nano(value)) == value
    assert to_integers([value]) == [number]
    assert from_integers([number])[0] == value


def test_infinity_is_a_word_and_a_computed_bound_gets_its_slack():
    assert to_integers([np.inf, 0.5]) == ["inf", 500_000_000]
    assert from_integers(["inf", 1]).tolist() == [np.inf, 1e-9]
    large = 2.0**33 + 2.0**-19  # beyond this the next float is further than 1e-9
    assert to_integers([large])[0] >= Fraction(large) * NANO
    assert round_up_with_slack([0.0, 1e-15, 0.25, np.inf]).tolist() == [0.0, 1e-9, 0.250000001, np.inf]


CHAINS = np.random.default_rng(5).dirichlet(np.full(3, 0.6), size=(4, 3))
KNOWN = leakage_bound(
    reverse(CHAINS), [1, 4], LOSS_GRID, reliable=np.ones(4, bool), forward=CHAINS, steps_per_day=1
)  # fmt: skip


@given(
    st.tuples(st.sampled_from([1, 2, 9]), st.sampled_from(["backward", "forward"])),
    st.integers(0, 70 * NANO) | st.integers(0, 10_000),
)
def test_a_table_in_whole_numbers_is_the_bound_in_floats(side, loss):
    age, direction = side
    function, keys = KNOWN.exact_leakage(age, direction=direction), {"direction": direction, "method": "tight"}
    known = round(float(KNOWN(age, loss / NANO, **keys)) * NANO)
    assert known - 1 <= function(loss) <= min(known, loss)  # floats may round up once more
    limit, expected = function.supremum(loss), KNOWN.supremum(age, loss / NANO, **keys)
    assert (limit is None) == np.isinf(expected)
    if limit:
        assert limit <= expected * NANO + 2
        assert limit == pytest.approx(expected * NANO, rel=1e-6, abs=1000)
        assert loss + function(limit) <= limit
        assert loss + function(limit - 1) > limit - 1


def test_a_table_in_whole_numbers_by_hand():
    known = LeakageBound([48], [1.0], [[0.5]], [[0.25]], assume="markov", steps_per_day=48)
    for age, expected in ((47, 800_000_000), (48, 250_000_000)):  # below the smallest age nothing is forgotten
        assert known.exact_leakage(age, direction="forward")(800_000_000) == expected
    assert known.exact_leakage(47, direction="backward").supremum(1) is None
    with pytest.raises(ChainError, match="no forward bounds"):
        LeakageBound([48], [1.0], [[0.5]]).exact_leakage(48, direction="forward")
    assert [TabulatedLeakage([100, "inf"], [40, 60])(loss) for loss in (100, 105, 10**15)] == [40, 45, 60]
    assert TabulatedLeakage([100, "inf"], [40, "inf"])(10**15) == 10**15 - 60
    assert TabulatedLeakage([100, "inf"], [100, "inf"]).supremum(1) is None


def random_kernels_exact(number):
    rng = np.random.default_rng(3)
    for i in range(number):
        states = int(rng.integers(2, 6))
        rows = rng.dirichlet(np.full(states, (0.2, 1.0, 5.0)[i % 3]), states)
        rows = np.where(rng.random(rows.shape) < 0.2, 0.0, rows) + np.eye(states) * 0.01
        yield rows / rows.sum(axis=1, keepdims=True)


def in_fifty_digits(kernel, loss):
    """The maximum over all pairs of rows and all sets of columns [nano-epsilon]."""
    with localcontext(prec=50):
        more = (Decimal(loss) / NANO).exp() - 1
        rows = [[Decimal(float(each)) for each in row] for row in kernel]
        sets = [s for size in range(1, len(rows)) for s in combinations(range(len(rows)), size)]
        ratios = (
            ((1 + more * sum(q[j] for j in s)) / (1 + more * sum(d[j] for j in s))).ln()
            for q, d in permutations(rows, 2)
            for s in sets
        )
        return float(max(ratios) * NANO)


def test_a_piece_is_rounded_up_at_losses_that_floats_hardly_hold():
    """ln((1 + (e^a - 1) Q)/(1 + (e^a - 1) D)) in 80 digits, up to a = 590, where a float has four digits of a nano."""
    rng = np.random.default_rng(5)
    for loss in (10 ** rng.uniform(9, 11.77, 300)).astype(int).tolist():
        over = int(rng.integers(10**17, PROBABILITY_UNIT))
        under = int(over * 10 ** -rng.uniform(0, 18))
        with localcontext(prec=80):
            more = ((Decimal(loss) / NANO).exp() - 1) / PROBABILITY_UNIT
            exact = ((1 + more * over) / (1 + more * under)).ln() * NANO
        assert exact <= PiecewiseLeakage([over], [under])(loss) <= exact + 2


def test_pieces_are_the_largest_over_all_sets_of_columns_and_at_most_two_billionths_above():
    for kernel in random_kernels_exact(6):
        function = PiecewiseLeakage.from_floats(*frontier_of(kernel[None]))
        for loss in [1, 1000, 10**6, 10**8, NANO, 5 * NANO, 17 * NANO, 50 * NANO]:
            exact = in_fifty_digits(kernel, loss)
            # rows of floats add up to one up to 1e-16 only, which e^a makes more of where a set has nearly nothing else
            assert exact * (1 - 1e-9) <= function(loss) <= min(exact * (1 + 1e-9) + 1.01, loss)


@pytest.mark.parametrize(("over", "under"), [([1], []), ([1], [2]), ([PROBABILITY_UNIT + 1], [0]), ([1], [-1])])
def test_sums_that_are_none_of_probabilities_are_refused(over, under):
    with pytest.raises(ChainError, match="pieces are pairs of sums"):
        PiecewiseLeakage(over, under)
