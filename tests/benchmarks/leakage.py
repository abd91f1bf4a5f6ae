"""What the primitive costs beside linear programmes, and leakage curves of a whole population.

    python -m tests.benchmarks.leakage [--sizes 12 50 200] [--pairs 40] [--households 5566] [--steps 480]

One run, side by side: L_K(a) of one kernel by `leakage`, and by one programme of HiGHS for each ordered pair of rows
(Charnes and Cooper: max q.y, d.y = 1, m <= y_j <= e^a m). Of more pairs than `--pairs` that many are solved and their
mean stands for the others. Then the largest losses of all households at every step, their envelope, and every
household's own curve. Prints ratios and seconds; asserts nothing about time.
"""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice, permutations

import numpy as np
from scipy.optimize import linprog

from agedp_data.accounting.ageing import risk
from agedp_data.leakage.bound_table import LOSS_GRID
from agedp_data.leakage.function import leakage
from agedp_data.leakage.population_bound import leakage_bound
from agedp_data.markov.transitions import reverse, transition_matrix

LOSS = 0.7


@dataclass(frozen=True)
class Ratio:
    """One size: seconds of the programmes of all pairs and of `leakage`, and both optima if all pairs were solved."""

    size: int
    programmes: float
    primitive: float
    optimum: float
    found: float

    @property
    def ratio(self) -> float:
        return self.programmes / self.primitive


def compare(size: int, *, pairs: int, rng: np.random.Generator) -> Ratio:
    """Time both ways on one random kernel and return them, with both values if every pair was solved."""
    kernel = rng.dirichlet(np.full(size, 0.5), size=size)
    solved = list(islice(permutations(range(size), 2), pairs))
    box = np.block([[-np.eye(size), np.ones((size, 1))], [np.eye(size), -np.exp(LOSS) * np.ones((size, 1))]])
    begin = time.perf_counter()
    best = max(programme(kernel[x], kernel[y], box) for x, y in solved)
    each = (time.perf_counter() - begin) / len(solved)
    leakage(kernel, LOSS)
    found = max(float(leakage(kernel[[x, y]], LOSS)) for x, y in solved) if pairs >= size * (size - 1) else np.nan
    return Ratio(size, each * size * (size - 1), best_of(lambda: leakage(kernel, LOSS)), float(np.log(best)), found)


def programme(q: np.ndarray, d: np.ndarray, box: np.ndarray) -> float:
    """Return max (q.x)/(d.x) for 1 <= x_j <= e^a up to scale, the box being that of x and its scale."""
    found = linprog(
        np.append(-q, 0.0),
        A_ub=box,
        b_ub=np.zeros(2 * q.size),
        A_eq=np.append(d, 0.0)[None],
        b_eq=[1.0],
        method="highs",
    )
    return float(-found.fun)


def households(count: int, rng: np.random.Generator, n_states: int = 12) -> np.ndarray:
    """Return made-up chains of half-hours: mostly the next state is near, each home at a pace of its own."""
    place = np.arange(n_states)
    width = rng.uniform(0.3, 3.0, size=(count, n_states, 1))
    weight = np.exp(-np.abs(place[:, None] - place) / width) * rng.gamma(2.0, size=(count, n_states, n_states))
    shares = weight / weight.sum(axis=-1, keepdims=True)
    visits = rng.integers(300, 3000, size=(count, n_states, 1))
    return transition_matrix(np.rint(shares * visits), smoothing=0)


def best_of(call: Callable[[], object], times: int = 5) -> float:
    """Return the shortest of several runs [s]."""
    found = []
    for _ in range(times):
        begin = time.perf_counter()
        call()
        found.append(time.perf_counter() - begin)
    return min(found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=[12, 50, 200])
    parser.add_argument("--pairs", type=int, default=132)
    parser.add_argument("--households", type=int, default=5566)
    parser.add_argument("--steps", type=int, default=480)
    given = parser.parse_args()
    rng = np.random.default_rng(0)
    print("one evaluation at n states: HiGHS for all pairs, this, ratio (bar 1000)")
    for size in given.sizes:
        one = compare(size, pairs=given.pairs, rng=rng)
        print(f"  {one.size:4d}: {one.programmes:9.3f} s  {one.primitive * 1e3:8.3f} ms  {one.ratio:9.0f}")
    chains = households(given.households, rng)
    steps = np.arange(1, given.steps + 1)
    for name, call in (
        (
            "maxima and envelope",
            lambda: leakage_bound(reverse(chains), steps, LOSS_GRID, reliable=np.ones(len(chains), bool)),
        ),
        ("every household's own curve at one loss", lambda: risk(chains, 1.0, steps, method="tight")),
    ):
        cpu, wall = time.process_time(), time.perf_counter()
        call()
        cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(
            f"{name}, {len(chains)} households x {len(steps)} steps: {wall:.1f} s wall, {cpu:.1f} s CPU, {peak:.0f} MB"
        )


if __name__ == "__main__":
    main()
