"""[series.NAME] with statistic = "coverage": how many households have a usable day, so what a mean rests on.

A household-day is usable if it lacks at most `max_missing` readings: the rule by which means count it, or count the
public value of a missing day instead. Of 1,000 households on the roster, 940 may have a usable day.

Decisions:

* The count is a statistic with noise and a share of its own. Without it nothing is published about missing readings.
* A household changes the count by one at most. A small change of use may come with a missing reading, so it counts like
  any other change.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from agedp_data.datasets.validation import Flags
from agedp_data.series.sensitivity import Change
from agedp_data.series.series_terms import OneCell, Series, Wh


class Coverage(OneCell, Series):
    """Number of households with a usable day: one exact count per group, to which noise is added."""

    statistic: Literal["coverage"]

    def sensitivity(self, change: Change) -> int:
        """Return the L1 sensitivity of all counts together to a change of one household's day [households]: 1.

        A household is in one group, so this is also the sensitivity of the vector of all groups.
        """
        del change
        return 1

    def largest_move(self, change: Change, *, minutes: int) -> int:
        """Return the most that one cell changes [households]."""
        del change, minutes
        return 1

    def exact(self, usable: Flags) -> tuple[int, ...]:
        """Return the exact vector of one group, to which noise is added: its number of usable days.

        Args:
            usable: which households of the group have a usable day, shape (n,).
        """
        return (int(usable.sum()),)

    def is_possible(self, exact: Wh, households: int) -> bool:
        """Return whether this number of households can have this exact vector: a count from 0 to all of them."""
        return bool(np.all((exact >= 0) & (exact <= households)))
