"""What the temporal figures add to the library: [T]'s Algorithm 1, programmes of HiGHS, and how long leakage rises."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

from agedp_data.leakage.function import leakage
from docs.papers.temporal.claims import crossings
from docs.papers.temporal.run_times import random_kernel
from docs.papers.temporal.smoothing import READ_AS, until
from docs.papers.temporal.solvers import algorithm_1, programme

pytestmark = pytest.mark.xdist_group("papers")  # figures are computed once


@pytest.mark.parametrize("loss", [0.1, 2.0, 12.0])
def test_algorithm_1_and_the_programmes_find_what_the_primitive_finds(loss: float) -> None:
    kernel = random_kernel(6, np.random.default_rng(1))
    exact = float(leakage(kernel, loss))
    assert algorithm_1(kernel, loss) == pytest.approx(exact, rel=1e-9)
    assert max(programme(kernel[x], kernel[y], loss) for x, y in permutations(range(6), 2)) == pytest.approx(
        exact, rel=1e-6
    )


def smoothed_recursion(s: float, n: int, loss: float, count: int) -> list[float]:
    """BPL of the smoothed identity: q = (1 + s)/(1 + ns) against d = s/(1 + ns), one column, by hand."""
    q, d = (1 + s) / (1 + n * s), s / (1 + n * s)
    course = [loss]
    for _ in range(count - 1):
        gain = np.expm1(course[-1])
        course.append(loss + float(np.log((1 + gain * q) / (1 + gain * d))))
    return course


@pytest.mark.parametrize("loss", [0.1, 1.0])
def test_how_long_leakage_rises_is_that_of_a_plain_recursion(loss: float) -> None:
    course = np.array(smoothed_recursion(0.005, 50, loss, 600))
    assert until(0.005, 50, loss, share=0.99) == int(np.argmax(course >= 0.99 * course[-1])) + 1
    # As printed it rises for 11 and 34 releases, and a small loss stays far below a large one.
    assert {0.1: 34, 1.0: 11}[loss] == until(0.005, 50, loss, share=0.99)
    assert course[-1] == pytest.approx({0.1: 0.633, 1.0: 5.698}[loss], abs=2e-3)
    assert smoothed_recursion(0.005, 200, loss, 600)[-1] < course[-1]


@pytest.mark.parametrize(("loss", "releases"), [(1.0, 9), (0.1, 79)])
def test_figure_7_and_6_2_hold_for_a_tenth_of_the_printed_s(loss: float, releases: int) -> None:
    # the paper: about 8 releases of loss 1, about 80 of loss .1, and in the long run .1 leaks little less than 1
    course = np.array(smoothed_recursion(READ_AS, 50, loss, 2000))
    assert until(READ_AS, 50, loss, share=0.95) == int(np.argmax(course >= 0.95 * course[-1])) + 1 == releases
    other = smoothed_recursion(READ_AS, 50, 1.1 - loss, 2000)[-1]
    printed = [smoothed_recursion(0.005, 50, of, 2000)[-1] for of in (0.1, 1.0)]
    assert min(course[-1], other) / max(course[-1], other) > 5 * printed[0] / printed[1]


def test_two_pieces_cross_at_most_once() -> None:
    # (1 + q x)(1 + d' x) - (1 + q' x)(1 + d x) is x times a line in x, whose sign changes at most once.
    rng = np.random.default_rng(2)
    gain = np.geomspace(1e-3, 1e6, 400)
    for q, d, other_q, other_d in rng.random((200, 4)):
        apart = (1 + q * gain) * (1 + other_d * gain) - (1 + other_q * gain) * (1 + d * gain)
        line = (q + other_d - other_q - d) + (q * other_d - other_q * d) * gain
        np.testing.assert_allclose(apart / gain, line, rtol=1e-6, atol=1e-6 * np.abs(line).max())
        assert (np.diff(np.sign(line)) != 0).sum() <= 1
    assert crossings() == 0
