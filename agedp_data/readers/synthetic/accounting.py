"""The exact contents of synthetic files, recorded while the files are written: the expected result of a parser."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path

import numpy as np

from agedp_data.readers.layout import Ints, RejectionReason


@dataclass(frozen=True, slots=True, eq=False)
class DeliveryAccount:
    """The contents of synthetic files; of real households they would be confidential.

    `rows_written` counts data rows (without headers and title) = `rows_kept` + all of `rejected`. The arrays
    `energy_wh` and `readings` are (households, days): the exact use of the day [Wh] and the number of its readings,
    0 if there are none. `kind` (households) is the index in `KERNELS` of a household's chain. `cut` counts households
    whose rows are in two files; `notes` counts kept rows with a remark.
    """

    dataset: str
    files: tuple[Path, ...]
    rows_written: int
    rows_kept: int
    rejected: Mapping[RejectionReason, int]
    household_ids: tuple[str, ...]
    kind: Ints
    first_day: date
    energy_wh: Ints
    readings: Ints
    cut: int
    notes: Mapping[str, int]

    def days(self) -> tuple[date, ...]:
        """Return the days of the period, the second axis of the arrays."""
        return tuple(self.first_day + timedelta(days=i) for i in range(self.energy_wh.shape[1]))

    def truth(self) -> dict[tuple[str, date], int]:
        """Return the energy [Wh] of every household-day with a reading."""
        days = self.days()
        return {
            (self.household_ids[household], days[day]): int(self.energy_wh[household, day])
            for household, day in np.argwhere(self.readings > 0)
        }
