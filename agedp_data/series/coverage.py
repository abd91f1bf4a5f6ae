"""[series.NAME] with statistic = "coverage": how many households have a usable day, so what a mean rests on.

A household-day is usable if it lacks at most `max_missing` readings: the rule by which means count it, or count the
public value of a missing day instead. Of 1,000 households on the roster, 940 may have a usable day.

Decisions:

* The count is a statistic with noise and a share of its own. Without it nothing is published about missing readings.
* A household changes the count by one at most. A small change of use may come with a missing reading, so it counts like
  any other change.
"""

from __future__ import annotations

from typing import Final, Literal

import numpy as np
import pyarrow as pa

from agedp_data.series.result_table import NOISE_TEXT, Chart, Columns, ContractTerms, Noise, PublishedRow, ResultTable
from agedp_data.series.sensitivity import Change
from agedp_data.series.series_terms import Counted, HouseholdDays, Series
from agedp_data.table_schemas import released_schema

_DAILY_COVERAGE = released_schema(
    ("households", pa.int64(), "households on the roster that day, of the group"),
    ("usable_noisy", pa.int64(), "what was drawn: how many of these have a usable day, plus noise"),
    ("noise_sd", pa.float64(), "standard deviation of the noise of usable_noisy, households"),
    ("coverage", pa.float64(), "usable_noisy / households, below 0 or above 1 where the noise is [-]"),
    ("low", pa.float64(), "lower end of the noise interval of coverage [-]"),
    ("high", pa.float64(), "upper end of the noise interval of coverage [-]"),
)


def _lines(row: PublishedRow, terms: ContractTerms, noise: Noise) -> Columns:
    del terms
    deviation, half_width = noise.deviation(row.scale), noise.half_width(row.scale)
    counts = list(zip(row.values, row.households, strict=True))
    return {
        "group": row.cells,
        "households": row.households,
        "usable_noisy": row.values,
        "noise_sd": [deviation] * len(counts),
        "coverage": [value / households for value, households in counts],
        "low": [(value - half_width) / households for value, households in counts],
        "high": [(value + half_width) / households for value, households in counts],
    }


COVERAGES: Final = ResultTable(
    "daily_coverage",
    _DAILY_COVERAGE,
    "day and group",
    f"number of households with a usable day, by day, {NOISE_TEXT}",
    _lines,
    "usable_noisy",
    Chart("coverage", ("low", "high"), "share", title="Households with a usable day"),
    ("max_missing",),
)


class Coverage(Series):
    """Number of households with a usable day: one exact count per group, to which noise is added."""

    KIND = "coverage"
    PLURAL = "numbers of households with a usable day"
    CONTENT = "coverage"
    TABLES = (COVERAGES,)
    counted_share = "share of usable days"
    stated = (
        "a day is usable if it lacks no more {reading}s than the table says. Noise is added to the count, which a "
        "household changes by one at most; it is a whole number that may be negative or exceed the number of "
        "households on the roster."
    )

    statistic: Literal["coverage"]

    def sensitivity(self, change: Change) -> int:
        """Return the L1 sensitivity of all counts together to a change of one household's day [households]: 1.

        A household is in one group, so this is also the sensitivity of the vector of all groups.
        """
        del change
        return 1

    def counted(self, days: HouseholdDays) -> Counted:
        """Return 1 for each usable household-day."""
        number = len(days.energy_wh)
        return Counted(np.ones((number, 1), np.int64), np.zeros(number, np.bool_))
