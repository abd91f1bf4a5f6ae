"""How often the interval of a direct count holds the true figure, for households with slow regimes.

    python -m tests.benchmarks.coverage [--households 400] [--days 365 730] [--replicates 19]

Each household is in a high or a low regime for a number of days drawn evenly from a range, and shows it on a day with
probability .8 or .95. The true total variation at lag t is (2 keep - 1)^2 times the correlation of the regimes t days
apart, taken from one very long course. Prints, for each lag, the share of households whose nominal 95 % interval
(week-block bootstrap, `check_markov`) holds it and on which side it misses, and the share that the check rejects. The
intervals describe sampling noise given the regimes seen: coverage below 95 % is what is to be expected, and why they
are no confidence bounds for the memory.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass

import numpy as np

from agedp_data.chains.forgetting import check_markov

LAGS = np.array([1, 2, 7, 14, 28])


@dataclass(frozen=True)
class Coverage:
    """By lag (T,): the truth, shares of intervals that hold it or lie below or above it, and share rejected."""

    truth: np.ndarray
    held: np.ndarray
    below: np.ndarray
    above: np.ndarray
    rejected: np.ndarray


def regimes(days: int, homes: int, shortest: int, longest: int, rng: np.random.Generator) -> np.ndarray:
    """Return regimes (homes, days) of 0 and 1 with sojourns of shortest to longest days, begun long ago."""
    lead = 4 * longest
    found = np.empty((homes, days), dtype=int)
    for row in found:
        sojourns = rng.integers(shortest, longest + 1, size=(lead + days) // shortest + 2)
        course = np.repeat(np.arange(sojourns.size) % 2 ^ rng.integers(0, 2), sojourns)
        row[:] = course[lead : lead + days]
    return found


def measure(
    *, days: int, homes: int, sojourn: tuple[int, int], keep: float, replicates: int, rng: np.random.Generator
) -> Coverage:
    """Return the coverage of the intervals of made-up households."""
    hidden = regimes(days, homes, *sojourn, rng)
    seen = np.where(rng.random(hidden.shape) < keep, hidden, 1 - hidden)
    long = regimes(2_000_000, 1, *sojourn, rng)[0]
    alike = np.array([(long[t:] == long[:-t]).mean() for t in LAGS])
    truth = (2 * keep - 1) ** 2 * np.abs(2 * alike - 1)
    table = check_markov(seen, LAGS, rng, n_states=2, replicates=replicates)
    below, above = table.high < truth, table.low > truth
    return Coverage(
        truth, (~below & ~above).mean(axis=0), below.mean(axis=0), above.mean(axis=0), table.rejected.mean(axis=0)
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--households", type=int, default=400)
    parser.add_argument("--days", type=int, nargs="+", default=[365, 730])
    parser.add_argument("--replicates", type=int, default=19)
    given = parser.parse_args()
    rng = np.random.default_rng(0)
    print("days sojourn keep | by lag", LAGS.tolist(), "truth / held (below, above) / rejected")
    for days in given.days:
        for sojourn in ((30, 180), (30, 60), (120, 180), (1, 2)):
            for keep in (0.8, 0.95):
                one = measure(
                    days=days, homes=given.households, sojourn=sojourn, keep=keep, replicates=given.replicates, rng=rng
                )
                cells = [
                    f"{t:.2f}/{h:.2f}({b:.2f},{a:.2f})/{r:.2f}"
                    for t, h, b, a, r in zip(one.truth, one.held, one.below, one.above, one.rejected, strict=True)
                ]
                print(f"{days} {sojourn} {keep} |", " ".join(cells), flush=True)


if __name__ == "__main__":
    main()
