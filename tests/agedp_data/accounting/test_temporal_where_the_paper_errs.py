"""What [T] prints, taken literally, beside what holds: each trap of docs/papers.md with a case in which it matters."""

from __future__ import annotations

from decimal import Decimal, localcontext

import numpy as np
import pytest

from agedp_data.accounting.temporal_leakage import allocate, backward, temporal, temporal_kernels, temporal_supremum
from agedp_data.leakage.function import KernelLeakage, fixed_point
from tests.agedp_data.accounting.temporal_oracles import (
    by_programme,
    by_recursion,
    dense,
    enumerated,
    joint_of_days,
    stationary,
)

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
    truth = enumerated(joint_of_days(chain, stationary(chain), [0, 1, 2], 1), losses)
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
