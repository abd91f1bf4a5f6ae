"""What made-up files contain: what a right reader must come to, written down while they are made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path

import numpy as np

from agedp_data.readers.layout import Ints, RejectionReason


@dataclass(frozen=True, slots=True, eq=False)
class DeliveryAccount:
    """The contents of made-up files and the truth behind them: confidential if the households were real.

    `rows_written` counts data rows (headers and title apart) = `rows_kept` + all of `set_aside`. The arrays
    `energy_wh` and `readings` are (households, days): the exact use of the day in watt-hours and how many
    readings say so, 0 where there are none. `kind` (households) tells which of `KERNELS` a household follows.
    `cut` counts households whose rows are in two files; `notes` counts what is kept and worth knowing.
    """

    dataset: str
    files: tuple[Path, ...]
    rows_written: int
    rows_kept: int
    set_aside: Mapping[RejectionReason, int]
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
        """Return the energy, Wh, of every household's day that has a reading."""
        days = self.days()
        return {
            (self.household_ids[household], days[day]): int(self.energy_wh[household, day])
            for household, day in np.argwhere(self.readings > 0)
        }
