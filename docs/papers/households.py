"""The readings that some figures rest on: named open files if the user has them, otherwise synthetic households.

Both kinds are read by the readers that releases use. Synthetic households are drawn with a fixed seed, so that a second
run gives the same figures.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from numpy.typing import NDArray

from agedp.stages.ingest import read_readings
from agedp_data.datasets.synthetic.ausgrid import write_ausgrid
from agedp_data.datasets.synthetic.london import write_london
from agedp_data.datasets.validation import SLOTS
from agedp_data.errors import InputError

MIN_HOUSEHOLDS, MIN_DAYS = 20, 90
HALVES = 200
"""Random halves of measured households: how far a verdict depends on which ones they are."""
_SEED = 7
_LONDON_FROM, _AUSGRID_FROM = date(2013, 1, 1), date(2012, 7, 1)


@dataclass(frozen=True, slots=True, eq=False)
class PaperHouseholds:
    """Half-hourly readings of households with their origin.

    Attributes:
        name: data set, number of households, first and last day.
        energy_wh: (households, days, 48) whole watt-hours, -1 where missing.
        open_data: whether they are measured readings and not made up.
    """

    name: str
    energy_wh: NDArray[np.int64]
    open_data: bool

    @property
    def judge(self) -> bool:
        """Return whether a paper may be judged by them: measured, and neither few nor short."""
        households, days, _ = self.energy_wh.shape
        return self.open_data and households >= MIN_HOUSEHOLDS and days >= MIN_DAYS

    @property
    def these(self) -> str:
        """Return what a verdict on them is about."""
        return f"these {len(self.energy_wh)} households"

    @property
    def steps(self) -> NDArray[np.int64]:
        """Return the readings one after the other, (households, days * 48)."""
        return self.energy_wh.reshape(len(self.energy_wh), -1)

    @property
    def daily_wh(self) -> NDArray[np.int64]:
        """Return the energy of each household-day, a missing half-hour counting nothing; -1 where all are missing."""
        is_present = self.energy_wh >= 0
        return np.where(is_present.any(axis=2), np.where(is_present, self.energy_wh, 0).sum(axis=2), -1)


def random_halves(households: int) -> NDArray[np.int64]:
    """Return `HALVES` random halves of a number of households: (halves, households / 2) indices, always the same.

    >>> random_halves(40).shape
    (200, 20)
    """
    random = np.random.default_rng(_SEED)
    return np.stack([random.permutation(households)[: households // 2] for _ in range(HALVES)])


@dataclass(frozen=True)
class PaperReadings:
    """Where readings come from.

    Attributes:
        london: files of Low Carbon London, () for made-up ones.
        ausgrid: files of Ausgrid's solar households, () for made-up ones.
        small: few synthetic households, days and repetitions: for trying the command, not for judging a paper.
    """

    london: Sequence[str] = ()
    ausgrid: Sequence[str] = ()
    small: bool = False

    @cached_property
    def london_households(self) -> PaperHouseholds:
        """Return households of London, half-hour by half-hour."""
        if self.london:
            return _read(self.london, "london", "Low Carbon London (open data of UK Power Networks)", open_data=True)
        households, days = (6, 56) if self.small else (40, 365)
        with TemporaryDirectory(prefix="agedp-") as folder:
            write_london(Path(folder), households=households, first_day=_LONDON_FROM, days=days, seed=_SEED)
            return _read([f"{folder}/*.csv"], "london", "synthetic households in London's format", open_data=False)

    @cached_property
    def ausgrid_households(self) -> PaperHouseholds:
        """Return the households of an Ausgrid year: general consumption and controlled load."""
        if self.ausgrid:
            return _read(self.ausgrid, "ausgrid", "Ausgrid's solar households (open data)", open_data=True)
        households, days = (20, 60) if self.small else (300, 365)
        with TemporaryDirectory(prefix="agedp-") as folder:
            write_ausgrid(Path(folder), households=households, first_day=_AUSGRID_FROM, days=days, seed=_SEED)
            return _read([f"{folder}/*.csv"], "ausgrid", "synthetic households in Ausgrid's format", open_data=False)


def _read(files: Sequence[str], dataset: str, name: str, *, open_data: bool) -> PaperHouseholds:
    frame = read_readings(list(files), dataset=dataset)
    if not len(frame):
        raise InputError(f"no reading in the files of {dataset}; name files with readings")
    household, household_index = np.unique(
        frame["household_id"].to_numpy(dtype=object).astype(str), return_inverse=True
    )
    day = frame["day"].to_numpy().astype("datetime64[D]")
    first = day.min()
    energy = np.full((household.size, int((day.max() - first).astype(int)) + 1, SLOTS), -1, dtype=np.int64)
    energy[household_index, (day - first).astype(int), frame["slot"].to_numpy()] = frame["energy_wh"].to_numpy()
    # Files begin and end with a stamp of midnight, which is a day of one reading.
    complete_days = np.flatnonzero(((energy >= 0).sum(axis=2) > SLOTS // 2).any(axis=0))
    energy = energy[:, complete_days[0] : complete_days[-1] + 1]
    return PaperHouseholds(
        f"{name}: {household.size} households, {first + complete_days[0]} to {first + complete_days[-1]}",
        energy,
        open_data,
    )
