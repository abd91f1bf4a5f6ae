"""Made-up meters and their head-end: nightly files of one day each for all homes, ordered by time.

`Meters` writes the files and, beside them, keeps by brute force what they say: of the files that have arrived the
one with the highest number speaks for a reading. It knows nothing of how `agedp` reads.
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

    `part` is which homes it holds: "all", "even", "odd"; `change` is added to every fifth reading of it [Wh].
    `again` is a second copy of the same bytes under a later name.
    """

    number: int
    night: int
    day: int
    part: str = "all"
    change: int = 0
    again: int = _NEVER

    @property
    def name(self) -> str:
        return f"{self.number:06d}-meters.csv"


class Meters:
    """Homes with readings of their own, and what has been delivered of them."""

    def __init__(self, folder: Path, *, homes: int, days: int, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self.folder, self.homes, self.days = folder, homes, days
        self.ids = [f"MAC{900_001 + home:06d}" for home in range(homes)]
        self.true_wh = rng.integers(0, 1200, (homes, days, SLOTS))
        self.true_wh[rng.random((homes, days)) < 0.02] += 1500  # days beyond the clamp
        self.lost = rng.random((homes, days, SLOTS)) < 0.001
        self.lost[rng.random((homes, days)) < 0.01, :5] = True  # days with too few readings
        self.said_wh = np.full((homes, days, SLOTS), _NEVER)
        self._said_by = np.full((homes, days, SLOTS), _NEVER)
        folder.mkdir(parents=True, exist_ok=True)

    def deliver(self, parcel: Parcel) -> None:
        """Let a file arrive."""
        there, energy = self._content(parcel)
        if parcel.again == _NEVER:
            (self.folder / parcel.name).write_text(self._text(parcel.day, there, energy))
        else:
            original = next(self.folder.parent.rglob(f"{parcel.again:06d}-meters.csv"))
            shutil.copy(original, self.folder / parcel.name)
            return  # the same bytes twice say nothing new
        said, by = self.said_wh[:, parcel.day], self._said_by[:, parcel.day]
        newer = there & (by < parcel.number)
        said[newer], by[newer] = energy[newer], parcel.number

    def _content(self, parcel: Parcel) -> tuple[np.ndarray, np.ndarray]:
        there = ~self.lost[:, parcel.day]
        if parcel.part != "all":
            there[(0 if parcel.part == "odd" else 1) :: 2] = False
        energy = self.true_wh[:, parcel.day].copy()
        energy[:, ::5] += parcel.change
        return there, energy

    def _text(self, day: int, there: np.ndarray, energy: np.ndarray) -> str:
        start = datetime.combine(FIRST + timedelta(days=day), time())
        lines = ["LCLid,tstp,energy(kWh/hh)"]
        for slot in range(SLOTS):
            stamp = (start + timedelta(minutes=30 * (slot + 1))).strftime("%Y-%m-%d %H:%M:%S")
            lines += [f"{self.ids[h]},{stamp},{energy[h, slot] / 1000:.3f}" for h in np.flatnonzero(there[:, slot])]
        return "\n".join(lines) + "\n"

    def sum_wh(self, day: int, homes: list[int], *, clamp_wh: int, max_missing: int = 2) -> int:
        """Return what these homes' day comes to by the files that have arrived; too few readings count 0."""
        total = 0
        for home in homes:
            said = self.said_wh[home, day]
            if (said != _NEVER).sum() >= SLOTS - max_missing:
                total += min(int(said[said != _NEVER].sum()), clamp_wh)
        return total


class Customers:
    """The roster: spans of days, changed only for days to come."""

    def __init__(self, path: Path, ids: list[str], *, there: int) -> None:
        self.path, self.ids = path, ids
        self.spans: list[tuple[int, int, int | None]] = [(home, 0, None) for home in range(there)]
        self.write()

    def join(self, day: int) -> None:
        """Add the next home from a day on, or one that left."""
        self.spans.append((self._next(), day, None))
        self.write()

    def _next(self) -> int:
        known = {home for home, _, _ in self.spans}
        return next(home for home in range(len(self.ids)) if home not in known)

    def leave(self, last: int) -> None:
        """End the first row that is open and began before."""
        place = next(i for i, (_, first, end) in enumerate(self.spans) if end is None and first < last)
        home, first, _ = self.spans[place]
        self.spans[place] = (home, first, last)
        self.write()

    def on(self, day: int) -> list[int]:
        return [home for home, first, last in self.spans if first <= day and (last is None or day <= last)]

    def write(self) -> None:
        def text(day: int | None) -> str:
            return "" if day is None else str(FIRST + timedelta(days=day))

        lines = [f"{self.ids[home]},{text(first)},{text(last)}" for home, first, last in self.spans]
        self.path.write_text("\n".join(["household_id,from,to", *lines]) + "\n")
