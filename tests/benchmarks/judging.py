"""What was measured, against the bars: ratios to the limit in the same run. Information, never an assertion."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from tests.benchmarks.measuring import Measured

SUMS, RUN, AGAIN, EDGES, NIGHT = (
    "agedp sums and counts",
    "agedp run",
    "agedp run again",
    "agedp calibrate",
    "agedp night",
)
_COUNTING = (SUMS, "polars", "DuckDB", "pandas groupby-apply")
_TO_LIMIT = ((SUMS, 2.2, 3.0), (RUN, 3.0, 5.0), (EDGES, 4.0, 5.0))
_FASTER = (("polars", 1.8), ("DuckDB", 3.5), ("pandas groupby-apply", 10.0))


@dataclass(frozen=True, slots=True)
class Verdict:
    """One bar at one size: what was asked, what came out, whether it was met."""

    rows: int
    bar: str
    came_out: str
    met: bool

    def __str__(self) -> str:
        return f"{'met   ' if self.met else 'MISSED'} {self.rows / 1e6:6.1f} M  {self.bar}: {self.came_out}"


def by_size(found: Sequence[Measured]) -> dict[int, dict[str, Measured]]:
    """Return what was measured by size and contender, nights and failures left out."""
    sizes: dict[int, dict[str, Measured]] = {}
    for one in found:
        if one.contender != NIGHT and not one.failed:
            sizes.setdefault(one.rows, {})[one.contender] = one
    return dict(sorted(sizes.items()))


def judged(found: Sequence[Measured]) -> list[Verdict]:
    """Return every bar that can be judged by what was measured."""
    return [verdict for rows, own in by_size(found).items() for verdict in _at(rows, own)] + list(_nights(found))


def _at(rows: int, own: dict[str, Measured]) -> Iterator[Verdict]:
    if limit := own.get("limit"):
        for name, times, more in _TO_LIMIT:
            if one := own.get(name):
                took, bound = seconds(one), times * limit.work_s + more
                ratio = f"{took:.2f} s, {took / limit.work_s:.2f} x the limit of {limit.work_s:.2f} s"
                yield Verdict(
                    rows, f"{name} at most {times} x limit + {more:g} s = {bound:.1f} s", ratio, took <= bound
                )
    if again := own.get(AGAIN):
        yield Verdict(rows, "second run, nothing new, under 3 s", f"{again.work_s:.2f} s", again.work_s < 3)
    for name in (SUMS, RUN, EDGES):
        if one := own.get(name):
            bound = 700 + 3 * rows / 1e6
            yield Verdict(rows, f"{name} in at most {bound:.0f} MB", f"{one.peak_mb:.0f} MB", one.peak_mb <= bound)
    for name, times in _FASTER:
        if (one := own.get(name)) and (ours := own.get(SUMS)):
            ratio = one.work_s / ours.work_s
            yield Verdict(rows, f"{SUMS} faster than {name} by {times}", f"{ratio:.2f}", ratio >= times)


def _nights(found: Sequence[Measured]) -> Iterator[Verdict]:
    for one in found:
        if one.contender == NIGHT and not one.failed:
            households = one.rows // 48
            what = f"one new day of {households:,} households in a store of a year under 5 s"
            yield Verdict(one.rows, what, f"{one.work_s:.2f} s", one.work_s < 5)


def seconds(one: Measured) -> float:
    """Return the time that is judged: of a calibration, edges and counts; leakage and envelope are told apart."""
    return one.work_s - float(one.found.get("apart", 0.0))


def disagreements(found: Sequence[Measured]) -> list[str]:
    """Return who found other days, Wh or counts than this project's sums and counts did."""
    told = []
    for rows, own in by_size(found).items():
        if (ours := own.get(SUMS)) is None:
            continue
        steps, days = sum(ours.found["counts"]), ours.found["days"]
        expected = dict.fromkeys(_COUNTING, ours.found)
        expected[RUN] = {"days": days, "wh": ours.found["wh"]}
        if RUN in own:
            expected[AGAIN] = {"released": own[RUN].found["released"]}
        for name, one in own.items():
            same = all(one.found.get(key) == value for key, value in expected.get(name, {}).items())
            if name == EDGES:  # a reading that nothing goes before begins a stretch
                same = one.found["readings"] - one.found["homes"] - one.found["gaps"] == steps
            if not same:
                told.append(f"{name} at {rows / 1e6:.1f} million rows")
    return told


def slope(found: Sequence[Measured], contender: str, what: str) -> tuple[float, float] | None:
    """Return (at no rows, per million rows) of a line through a contender's sizes; None for fewer than two."""
    own = [(rows / 1e6, one[contender]) for rows, one in by_size(found).items() if contender in one]
    if len(own) < 2:
        return None
    rise, start = np.polyfit([rows for rows, _ in own], [getattr(one, what) for _, one in own], 1)
    return float(start), float(rise)
