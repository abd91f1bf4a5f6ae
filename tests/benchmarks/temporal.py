"""Temporal leakage of a whole population, its cost against the number of states, and beside linear programmes.

    python -m tests.benchmarks.temporal [--households 5566] [--releases 365] [--sizes 6 12 25 50 100] [--pairs 60]

One run, side by side: total leakage of all households over all releases in one pass (bar: 20 s, 1 GB, two cores); one
evaluation of L and the preparation of all pieces for growing numbers of states; and one step of the recursion at each
size by HiGHS, a programme for each ordered pair of rows, of which `--pairs` are solved and their mean stands for the
others. Prints seconds and ratios; asserts nothing about time.
"""

from __future__ import annotations

import argparse
import resource
import time
from dataclasses import dataclass

import numpy as np

from agedp_data.accounting.temporal_leakage import METHODS, allocate, daily_release_leakage, temporal, temporal_kernels
from agedp_data.leakage.batched import BatchedLeakage
from agedp_data.leakage.function import leakage
from tests.benchmarks.leakage import best_of, compare, households


@dataclass(frozen=True)
class Pass:
    """One pass over a population: what it took, and the largest figure."""

    wall: float
    cpu: float
    largest: float


def population(count: int, releases: int, *, loss: float, rng: np.random.Generator) -> Pass:
    """Compute the total leakage of every household at every release, both kernels made of its chain."""
    chains = households(count, rng)
    wall, cpu = time.perf_counter(), time.process_time()
    figures = temporal(*temporal_kernels(chains), np.full(releases, loss))
    return Pass(time.perf_counter() - wall, time.process_time() - cpu, float(figures.max()))


def half_hours(count: int, releases: int, *, loss: float, rng: np.random.Generator) -> Pass:
    """The same for daily releases on half-hourly chains, about whole days."""
    chains = households(count, rng)
    wall, cpu = time.perf_counter(), time.process_time()
    figures = daily_release_leakage(
        chains, np.full(releases, loss), np.ones(releases - 1, dtype=int), steps_per_day=48
    )[2]
    return Pass(time.perf_counter() - wall, time.process_time() - cpu, float(figures.max()))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--households", type=int, default=5566)
    parser.add_argument("--releases", type=int, default=365)
    parser.add_argument("--sizes", type=int, nargs="+", default=[6, 12, 25, 50, 100])
    parser.add_argument("--pairs", type=int, default=60)
    given = parser.parse_args()
    rng = np.random.default_rng(0)
    for name, job in (("one kernel each way", population), ("two kernels, half-hours", half_hours)):
        found = job(given.households, given.releases, loss=0.1, rng=rng)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(
            f"{name}: {given.households} households x {given.releases} releases: {found.wall:.1f} s wall, "
            f"{found.cpu:.1f} s CPU, {peak:.0f} MB (bar: 20 s, 1000 MB)"
        )
    print("  n   one L [ms]  n^2 log n   pieces [ms]   L of pieces [ms]   HiGHS / one L (bar 1000)")
    first = None
    for size in given.sizes:
        kernel = rng.dirichlet(np.full(size, 0.5), size=size)
        pieces = BatchedLeakage(kernel)
        once, prepared = best_of(lambda: leakage(kernel, 0.7)), best_of(lambda: BatchedLeakage(kernel).pieces)  # noqa: B023
        known = best_of(lambda: pieces(0.7))  # noqa: B023
        growth = size**2 * np.log(size)
        first = first or (once / growth)
        ratio = compare(size, pairs=given.pairs, rng=rng).ratio
        print(
            f"{size:4d} {once * 1e3:10.3f} {once / growth / first:10.2f} {prepared * 1e3:12.3f} {known * 1e3:14.4f}"
            f" {ratio:16.0f}"
        )
    kernel = rng.dirichlet(np.full(12, 2.0), size=12)
    for method in METHODS:
        begin = time.perf_counter()
        losses = allocate(kernel, kernel, alpha=1.0, horizon=given.releases, method=method)
        print(f"budget {method:9s} {time.perf_counter() - begin:6.2f} s, mean 1/e {(1 / losses).mean():.4f}")


if __name__ == "__main__":
    main()
