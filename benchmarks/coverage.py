"""How often the interval of a direct count holds the true figure, for households with slow regimes.

    python -m benchmarks.coverage [--households 400] [--days 365 730] [--replicates 39]

Each household is in a high or a low regime for a number of days drawn evenly from a range, and shows it on a day with
probability .8 or .95. The true total variation at lag t is (2 keep - 1)^2 times the correlation of the regimes t days
apart, taken from one very long course. Writes, for each lag, the share of
households whose nominal 95 % interval (whole weeks drawn again) holds it, and on which side it misses, and the
share that the check rejects. The intervals describe sampling noise given the
regimes seen: coverage below 95 % is what is to be expected, and why they are no confidence bounds for the memory.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass

import numpy as np

from agedp_data.markov.memory_check import markov_goodness_of_fit
from benchmarks.measuring import ROOT

LAGS = np.array([1, 2, 7, 14, 28])
PAGE = ROOT / "docs" / "papers" / "intervals.md"
TABLE = "| days | sojourn |"
"""The table begins with it; the text before it is the page's own."""


@dataclass(frozen=True)
class Interval:
    """By lag (T,): the shares of intervals that hold the truth, or lie below or above it."""

    held: np.ndarray
    below: np.ndarray
    above: np.ndarray

    @classmethod
    def of(cls, table: np.recarray, truth: np.ndarray) -> Interval:
        """Return the shares of a table of goodness of fit."""
        below, above = table.high < truth, table.low > truth
        return cls((~below & ~above).mean(axis=0), below.mean(axis=0), above.mean(axis=0))


@dataclass(frozen=True)
class Coverage:
    """By lag (T,): the truth, the coverage of the intervals, and the share of households rejected."""

    truth: np.ndarray
    interval: Interval
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
    table = markov_goodness_of_fit(seen, LAGS, rng, n_states=2, replicates=replicates)
    return Coverage(truth, Interval.of(table, truth), table.rejected.mean(axis=0))


def lines(days: int, sojourn: tuple[int, int], keep: float, one: Coverage) -> list[str]:
    """Return the rows of the table in the documents."""
    shares, start = one.interval, f"| {days} | {sojourn[0]} to {sojourn[1]} | {keep} |"

    def row(what: str, cells: list[str]) -> str:
        return f"{start} {what} | " + " | ".join(cells) + " |"

    return [
        row("true figure", [f"{each:.2f}" for each in one.truth]),
        row(
            "held (below, above)",
            [f"{h:.2f} ({b:.2f}, {a:.2f})" for h, b, a in zip(shares.held, shares.below, shares.above, strict=True)],
        ),
        row("rejected", [f"{each:.2f}" for each in one.rejected]),
    ]


def main() -> None:
    """Measure, and write the table into the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--households", type=int, default=400)
    parser.add_argument("--days", type=int, nargs="+", default=[365, 730])
    parser.add_argument("--replicates", type=int, default=39)
    given = parser.parse_args()
    rng = np.random.default_rng(0)
    rows = [f"{TABLE} keep | figure | " + " | ".join(f"{lag} d" for lag in LAGS) + " |", "|" + "---|" * (4 + len(LAGS))]
    for days in given.days:
        for sojourn in ((30, 180), (30, 60), (120, 180), (1, 2)):
            for keep in (0.8, 0.95):
                one = measure(
                    days=days, homes=given.households, sojourn=sojourn, keep=keep, replicates=given.replicates, rng=rng
                )
                rows += lines(days, sojourn, keep, one)
    text = PAGE.read_text("utf-8").partition(TABLE)[0]
    PAGE.write_text("\n".join([text + rows[0], *rows[1:]]) + "\n", "utf-8")


if __name__ == "__main__":
    main()
