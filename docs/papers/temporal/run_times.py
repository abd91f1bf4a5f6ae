"""Figure 6: run times against [T]'s Algorithm 1 and a solver of linear programmes, HiGHS in place of CPLEX.

The solver needs a programme for each ordered pair of rows at each step; a sample of pairs and steps is solved and its
mean stands for the others, as the label of each such curve states. What was solved is compared with the primitive.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from agedp_data.accounting.temporal_leakage import backward
from agedp_data.leakage.function import KernelLeakage, leakage
from docs.papers.households import PaperReadings
from docs.papers.results import Floats, Panel, PaperFigure, curve
from docs.papers.temporal.solvers import algorithm_1, programme

_SECONDS = "run time [s]"
_LOSS = 0.1
_HIGHS = "HiGHS, extrapolated"
_SLOWER = 1.5
_FEW = 30
"""Rows of a kernel of which the values of all ways are compared; every pair of them."""


@dataclass(frozen=True, slots=True)
class TimingSizes:
    """How much is timed: states, releases and losses, and pairs of rows given to the solver each time."""

    states: tuple[int, ...] = (10, 25, 50, 100, 200)
    releases: tuple[int, ...] = (1, 5, 20, 100, 300, 1000)
    losses: tuple[float, ...] = (0.01, 0.1, 1.0, 5.0, 10.0, 20.0)
    pairs: int = 6
    large: int = 100


@dataclass(frozen=True, slots=True)
class SeparateTimings:
    """How far from the primitive the others were, each time."""

    algorithm: list[float]
    pieces: list[float]
    programmes: list[float]


SMALL = TimingSizes((5, 10), (1, 5), (0.1, 1.0), pairs=2, large=10)


def figure_6(data: PaperReadings) -> PaperFigure:
    """Return run times by the number of states, of releases, and by the loss before."""
    sizes, rng = SMALL if data.small else TimingSizes(), np.random.default_rng(0)
    kernels = {n: random_kernel(n, rng) for n in (*sizes.states, sizes.large)}
    apart = SeparateTimings([], [], [])
    once = {n: _once(kernels[n], _LOSS, sizes.pairs, rng, apart) for n in sizes.states}
    by_loss = [_once(kernels[sizes.large], loss, sizes.pairs, rng, apart) for loss in sizes.losses]
    series = [_series(kernels[sizes.large], count, sizes.pairs, rng, apart) for count in sizes.releases]
    ready = [_best_of(partial(KernelLeakage, kernels[n]), times=1) for n in sizes.states]
    n, last = sizes.states[-1], once[sizes.states[-1]]
    count, year = sizes.releases[-1], series[-1]
    evaluation = (
        f"at n = {n} one evaluation takes {format_duration(last[0])}, Algorithm 1 {format_duration(last[1])},"
        f" and the {n * (n - 1)}"
        f" programmes {format_duration(last[2])}"
    )
    agree = (
        f"Algorithm 1 agrees with the primitive within {max(apart.algorithm):.0e}, the pieces that replace Algorithms 2"
        f" to 5 within {max(apart.pieces):.0e}, the programmes within {max(apart.programmes):.0e}"
    )
    growth = [by_loss[-1][i] / by_loss[0][i] for i in range(3)]
    slower = (
        f"from a loss of {sizes.losses[0]:g} to {sizes.losses[-1]:g} run times change by these factors: Algorithm 1"
        f" {growth[1]:.1f}, the primitive {growth[0]:.1f}, a solver {growth[2]:.1f}"
    )
    return PaperFigure(
        "figure_6",
        "Figure 6",
        "One sort for each pair of rows replaces a linear programme, thousands of times quicker",
        f"A{evaluation[1:]}. A series of {count} releases at n = {sizes.large} takes {format_duration(year[0])},"
        f" {format_duration(year[1])}"
        f" and {format_duration(year[2])}. The programmes are extrapolated from {sizes.pairs} pairs.",
        "random matrices, as in the paper; run times of this machine, which differ from run to run",
        (
            _panel("(a) One evaluation, α = .1", "number of states n [-]", sizes.states, list(once.values()),
                   "L, all pairs"),
            Panel("(b) Preparation", "number of states n [-]", _SECONDS,
                  (curve("all pieces of L (for Algorithms 2 and 4)", sizes.states, ready),), log="xy"),
            _panel(f"(c) A series, n = {sizes.large}, loss .1", "number of releases T [-]", sizes.releases, series,
                   "L, with its preparation"),
            _panel(f"(d) One evaluation, n = {sizes.large}", "loss before, α [-]", sizes.losses, by_loss,
                   "L, all pairs"),
        ),
        repeatable=False,
        parts={"once": evaluation, "agree": agree, "slower": slower},
        verdicts={"slower": "reproduced" if growth[1] > _SLOWER else "not judged"},
    )  # fmt: skip


def random_kernel(n: int, rng: np.random.Generator) -> Floats:
    """Return rows of uniform numbers, scaled to one."""
    rows = rng.random((n, n))
    return np.asarray(rows / rows.sum(axis=1, keepdims=True))


def _once(
    kernel: Floats, loss: float, pairs: int, rng: np.random.Generator, apart: SeparateTimings
) -> tuple[float, float, float]:
    """Return seconds of one evaluation by the primitive, by Algorithm 1 and by all programmes."""
    mine, exact = _best_of(lambda: leakage(kernel, loss)), float(leakage(kernel[:_FEW], loss))
    theirs = _best_of(lambda: algorithm_1(kernel, loss), times=1)
    apart.algorithm.append(abs(algorithm_1(kernel[:_FEW], loss) - exact))
    apart.pieces.append(abs(float(KernelLeakage(kernel[:_FEW])(loss)) - exact))
    return mine, theirs, _solver(kernel, loss, pairs, rng, apart)


def _series(
    kernel: Floats, count: int, pairs: int, rng: np.random.Generator, apart: SeparateTimings
) -> tuple[float, float, float]:
    """Return seconds of BPL of a series: the primitive, Algorithm 1 and HiGHS at three of its steps, extrapolated."""
    course = backward(kernel, [_LOSS] * count)
    indices = np.unique(np.linspace(0, count - 1, 3).round().astype(np.int64))
    theirs = [_best_of(partial(algorithm_1, kernel, float(course[t])), times=1) for t in indices]
    solved = [_solver(kernel, float(course[t]), pairs, rng, apart) for t in indices]
    mine = _best_of(lambda: backward(kernel, [_LOSS] * count), times=1)
    return mine, float(np.mean(theirs)) * count, float(np.mean(solved)) * count


def _solver(kernel: Floats, loss: float, pairs: int, rng: np.random.Generator, apart: SeparateTimings) -> float:
    """Return seconds of the programmes of all pairs, from a sample; note how far they are from the primitive."""
    n = len(kernel)
    chosen = [rng.choice(n, 2, replace=False) for _ in range(pairs)]
    begin = time.perf_counter()
    solutions = [programme(kernel[x], kernel[y], loss) for x, y in chosen]
    seconds = (time.perf_counter() - begin) / pairs
    for (x, y), value in zip(chosen, solutions, strict=True):
        both = float(leakage(kernel[[x, y]], loss))
        apart.programmes.append(abs(max(value, programme(kernel[y], kernel[x], loss)) - both))
    return seconds * n * (n - 1)


def _best_of(call: Callable[[], object], times: int = 3) -> float:
    seconds = []
    for _ in range(times):
        begin = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - begin)
    return min(seconds)


def _panel(title: str, x: str, places: tuple[float, ...], took: list[tuple[float, float, float]], ours: str) -> Panel:
    mine, theirs, solver = (list(column) for column in zip(*took, strict=True))
    return Panel(
        title,
        x,
        _SECONDS,
        (
            curve(_HIGHS, places, solver, "reference"),
            curve("Algorithm 1", places, theirs, "paper"),
            curve(ours, places, mine),
        ),
        log="xy",
    )


def format_duration(seconds: float) -> str:
    """Return a run time in words.

    >>> tuple(format_duration(seconds) for seconds in (0.0021, 0.42, 75, 1920, 7300))
    ('2.1 ms', '420 ms', '75 s', '32 min', '2.0 h')
    """
    if seconds < 1:
        return f"{seconds * 1e3:.{0 if seconds >= 0.01 else 1}f} ms"
    if seconds < 600:
        return f"{seconds:.{0 if seconds >= 10 else 1}f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
