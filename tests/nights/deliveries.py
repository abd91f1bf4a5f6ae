"""Made-up meters and their head-end: nightly files of one day each for all homes, ordered by time.

`Meters` writes the files and, beside them, keeps by brute force what they contain: of the files that have arrived the
one with the highest number decides a reading. It knows nothing of how `agedp` reads.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from pathlib import Path

import numpy as np

FIRST = date(2013, 1, 1)
SLOTS = 48
_NEVER = -1


@dataclass(frozen=True)
class Parcel:
    """A file: its number in file order, the night on which it arrives (0: FIRST), the day it is about.

    `part` is which homes it contains: "all", "even", "odd"; `change` is added to every fifth reading of it [Wh].
    `again` is a second copy of the same bytes under a later name.
    """

    number: int
    night: int
    day: int
    part: str = "all"
    change: int = 0
    again: int = _NEVER


class Meters:
    """Homes with readings of their own, and what has been delivered of them."""

    def __init__(self, folder: Path, *, homes: int, days: int, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self.folder = folder
        self.ids = [f"MAC{900_001 + home:06d}" for home in range(homes)]
        self.true_wh = rng.integers(0, 1200, (homes, days, SLOTS))
        self.true_wh[rng.random((homes, days)) < 0.02] += 1500  # days beyond the clamp
        self.lost = rng.random((homes, days, SLOTS)) < 0.001
        self.lost[rng.random((homes, days)) < 0.01, :5] = True  # days with too few readings
        self.read_wh = np.full((homes, days, SLOTS), _NEVER)
        self._number = np.full((homes, days, SLOTS), _NEVER)
        folder.mkdir(parents=True, exist_ok=True)

    def deliver(self, parcel: Parcel) -> None:
        """Let a file arrive."""
        path = self.folder / f"{parcel.number:06d}-meters.csv"
        if parcel.again != _NEVER:  # the same bytes twice contain nothing new
            shutil.copy(next(self.folder.parent.rglob(f"{parcel.again:06d}-meters.csv")), path)
            return
        present = ~self.lost[:, parcel.day]
        if parcel.part != "all":
            present[(0 if parcel.part == "odd" else 1) :: 2] = False
        energy = self.true_wh[:, parcel.day].copy()
        energy[:, ::5] += parcel.change
        start = datetime.combine(FIRST + timedelta(days=parcel.day), time())
        lines = ["LCLid,tstp,energy(kWh/hh)"]
        for slot in range(SLOTS):
            stamp = start + timedelta(minutes=30 * (slot + 1))
            homes = np.flatnonzero(present[:, slot])
            lines += [f"{self.ids[home]},{stamp},{energy[home, slot] / 1000:.3f}" for home in homes]
        path.write_text("\n".join(lines) + "\n")
        newer = present & (self._number[:, parcel.day] < parcel.number)
        self.read_wh[:, parcel.day][newer], self._number[:, parcel.day][newer] = energy[newer], parcel.number

    def sum_wh(self, day: int, homes: list[int], *, clamp_wh: int, max_missing: int = 2) -> int:
        """Return the sum of these homes' day by the files that have arrived; too few readings count 0."""
        readings = [self.read_wh[home, day][self.read_wh[home, day] != _NEVER] for home in homes]
        return sum(min(int(own.sum()), clamp_wh) for own in readings if len(own) >= SLOTS - max_missing)


class Customers:
    """The roster: spans of days, changed only for days to come."""

    def __init__(self, path: Path, ids: list[str], *, count: int) -> None:
        self.path, self.ids = path, ids
        self.spans: list[tuple[int, int, int | None]] = [(home, 0, None) for home in range(count)]
        self.write()

    def join(self, day: int) -> None:
        """Add the next home from a day on."""
        self.spans.append((len({home for home, _, _ in self.spans}), day, None))
        self.write()

    def leave(self, last: int) -> None:
        """End the first row that is open and began before."""
        place = next(i for i, (_, first, end) in enumerate(self.spans) if end is None and first < last)
        self.spans[place] = (*self.spans[place][:2], last)
        self.write()

    def on(self, day: int) -> list[int]:
        return [home for home, first, last in self.spans if first <= day and (last is None or day <= last)]

    def write(self) -> None:
        lines = ["household_id,from,to"]
        for home, first, last in self.spans:
            end = "" if last is None else FIRST + timedelta(days=last)
            lines.append(f"{self.ids[home]},{FIRST + timedelta(days=first)},{end}")
        self.path.write_text("\n".join(lines) + "\n")
