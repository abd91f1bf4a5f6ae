"""How often the interval of a direct count holds the true figure, for households with slow regimes.

    python -m tests.benchmarks.coverage [--households 400] [--days 365 730] [--replicates 19] > docs/goodness-of-fit.md

Each household is in a high or a low regime for a number of days drawn evenly from a range, and shows it on a day with
probability .8 or .95. The true total variation at lag t is (2 keep - 1)^2 times the correlation of the regimes t days
apart, taken from one very long course; it is the same given the calendar. Prints, for each lag, the share of
households whose nominal 95 % interval (whole weeks drawn again) holds it, and on which side it misses, for both kinds
of intervals in the report, and the share that the check rejects. The intervals describe sampling noise given the
regimes seen: coverage below 95 % is what is to be expected, and why they are no confidence bounds for the memory.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass

import numpy as np

from agedp.calibration.household_memory import parts_of_calendar
from agedp_data.markov.calendar_effects import calendar_dependence
from agedp_data.markov.goodness_of_fit import markov_goodness_of_fit

LAGS = np.array([1, 2, 7, 14, 28])
HEAD = """# Goodness of fit of the Markov model: the report, and how far its intervals can be trusted

A model claims that dependence on an old reading decays as fast as a Markov chain mixes. `agedp calibrate` tests
this claim on the readings, prints the result under *Goodness of fit of the Markov model*, and writes a report into
the confidential folder: `forgetting/<model>.html` for people, `forgetting/<model>.parquet` with one row per
household. (The file name of the report of a model that is not beside the confidential folder contains a mark of its
folder, so that two models of one name have two reports.) The report is confidential and indicative. It sets no noise,
appears in no statement, and nothing of it is published.

The command prints the total variation in three ways, each a median over the tested households, by age:

| line | meaning |
|---|---|
| predicted by matrix powers | what the fitted chain predicts at that age |
| empirical, from lagged counts | counted from pairs of readings that number of days apart |
| null level, sampling error of a count | what such a count shows for independent data, because pairs are few |

For a cyclic chain of half-hours the first line is *simulated from the chain* instead. Three parts are tested or
measured:

* *Chain of day totals*, every household: the states are classes of its own daily totals (quarters, or those of a
  model of days). The test compares lagged counts with matrix powers. It rejects the Markov property of a household
  if the empirical total variation exceeds the predicted one by more than in all but 5 % of the series simulated
  from its own fitted chain, with the same readings missing (a parametric bootstrap).
* *Chain of half-hours*, at most 200 households, evenly spaced over the roster (the report contains the number): the
  states are those of the model. A cyclic chain is compared half-hour by half-hour with series simulated from it.
* *Given the calendar*, every household: the aged epsilon of a release about a later day's total and about a later
  half-hour, for an adversary who knows the half-hour, weekday or weekend, and the half of the year. Both sides have
  two states, divided at the household's own median, which can only lower the value.

The result is *Markov property rejected* if clearly more households are rejected than twice the 5 % that chance
explains. Otherwise it is *Markov property not rejected*, up to the largest age that was counted. That is no proof:
the test does not cover later ages, and a period of some weeks does not show slow changes. The epsilon of a day and
the total over all days need no model and hold in either case. A bound that credits age is conditional: it holds for
households that mix at least as fast as the model.

Intervals are nominal 95 % intervals from a bootstrap over whole weeks. They describe sampling error given the
regimes that the period contains, not later behaviour. The table below contains how often they covered the true
total variation of {households} simulated households with slow regimes. A regime is high or low for a number of days
drawn uniformly from "sojourn", and a day shows it with probability "keep". Columns are ages in days. In brackets:
share of intervals below the truth, and above it. "Pooled" intervals belong to the chain of day totals. The last row
of each block is the share of households whose Markov property the test rejects at that age. None of these
households is a chain of its daily states, but with sojourns of one or two days the memory is short. The table is
written by `python -m tests.benchmarks.coverage`.
"""


@dataclass(frozen=True)
class Interval:
    """By lag (T,): the shares of intervals that hold the truth, or lie below or above it."""

    held: np.ndarray
    below: np.ndarray
    above: np.ndarray

    @classmethod
    def of(cls, table: np.recarray, truth: np.ndarray) -> Interval:
        below, above = table.high < truth, table.low > truth
        return cls((~below & ~above).mean(axis=0), below.mean(axis=0), above.mean(axis=0))


@dataclass(frozen=True)
class Coverage:
    """By lag (T,): the truth, the coverage of both kinds of intervals, and the share of households rejected."""

    truth: np.ndarray
    pooled: Interval
    calendar: Interval
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
    label = parts_of_calendar(np.arange(days))
    given = calendar_dependence(seen[..., None], seen, label, LAGS, rng, loss=1.0, resamples=100)
    return Coverage(truth, Interval.of(table, truth), Interval.of(given, truth), table.rejected.mean(axis=0))


def lines(days: int, sojourn: tuple[int, int], keep: float, one: Coverage) -> list[str]:
    """Return the rows of the table in the documents."""
    start = f"| {days} | {sojourn[0]} to {sojourn[1]} | {keep} |"

    def row(what: str, cells: list[str]) -> str:
        return f"{start} {what} | " + " | ".join(cells) + " |"

    return [
        row("true figure", [f"{each:.2f}" for each in one.truth]),
        *(
            row(
                what, [f"{h:.2f} ({b:.2f}, {a:.2f})" for h, b, a in zip(each.held, each.below, each.above, strict=True)]
            )
            for what, each in (("pooled: held (below, above)", one.pooled), ("given the calendar", one.calendar))
        ),
        row("rejected", [f"{each:.2f}" for each in one.rejected]),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--households", type=int, default=400)
    parser.add_argument("--days", type=int, nargs="+", default=[365, 730])
    parser.add_argument("--replicates", type=int, default=39)
    given = parser.parse_args()
    rng = np.random.default_rng(0)
    print(HEAD.format(households=given.households))
    print("| days | sojourn | keep | figure | " + " | ".join(f"{lag} d" for lag in LAGS) + " |")
    print("|" + "---|" * (4 + len(LAGS)))
    for days in given.days:
        for sojourn in ((30, 180), (30, 60), (120, 180), (1, 2)):
            for keep in (0.8, 0.95):
                one = measure(
                    days=days, homes=given.households, sojourn=sojourn, keep=keep, replicates=given.replicates, rng=rng
                )
                print("\n".join(lines(days, sojourn, keep, one)), flush=True)


if __name__ == "__main__":
    main()
