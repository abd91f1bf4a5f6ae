"""What was measured, against the bars: ratios to the limit in the same run. Information, never an assertion.

Each bar of time is judged by wall time and by CPU time, without start-up and with it. The limit is parsing the same
columns of the same file; of a calibration, that of the file of 5,566 households.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from tests.benchmarks.measuring import Measured
from tests.benchmarks.million_meters import KILLED, LIMIT_MB, UNDISTURBED
from tests.benchmarks.nights import CELLS, MILLION, NIGHTLY, ROSTER, ROSTER_CHANGED
from tests.benchmarks.tuned import TUNED

LIMIT, WIDE_LIMIT = "limit", "limit, 5,566 households"
SUMS, RUN, AGAIN, CALIBRATE = "agedp sums and counts", "agedp run", "agedp run again", "agedp calibrate"
_TO_LIMIT = ((SUMS, LIMIT, 1.5, 0.0, 10), (RUN, LIMIT, 2.0, 2.0, 30), (CALIBRATE, WIDE_LIMIT, 3.0, 10.0, 30))
"""Contender, its limit, times the limit, plus seconds, and from how many million rows it is judged."""
_MEMORY_MB = 900
_AT_NIGHT = (
    (CELLS, 1.0, 250),
    (ROSTER, 3.0, 400),
    (ROSTER_CHANGED, 3.0, 400),
    (NIGHTLY, 2.0, None),
    (MILLION, None, 2_000),
)
"""Name, CPU seconds, MB."""
_HISTORY, _FOUR_NIGHTS = 1.25, 4.0
_MONTH_OF_SLOTS = 31 * 48


@dataclass(frozen=True, slots=True)
class Verdict:
    """One bar: of what, what was asked, what came out, whether it was met."""

    subject: str
    bar: str
    came_out: str
    met: bool

    def __str__(self) -> str:
        return f"{'met   ' if self.met else 'MISSED'} {self.subject}: {self.bar}: {self.came_out}"


def by_size(found: Sequence[Measured]) -> dict[int, dict[str, Measured]]:
    """Return what was measured of files by nominal size and contender, nights and failures left out."""
    sizes: dict[int, dict[str, Measured]] = {}
    for one in found:
        if one.size and not one.failed:
            sizes.setdefault(one.size, {})[one.contender] = one
    return dict(sorted(sizes.items()))


def at_night(found: Sequence[Measured]) -> dict[str, Measured]:
    """Return what was measured of nights, by name, failures left out."""
    return {one.contender: one for one in found if not one.size and not one.failed}


def judged(found: Sequence[Measured]) -> list[Verdict]:
    """Return every bar that can be judged by what was measured."""
    sizes = [verdict for size, own in by_size(found).items() for verdict in _of_size(size, own)]
    return sizes + list(_of_nights(at_night(found)))


def _of_size(size: int, own: dict[str, Measured]) -> Iterator[Verdict]:
    for name, limit_name, times, more, millions in _TO_LIMIT:
        one, limit = own.get(name), own.get(limit_name)
        if one is None or limit is None or size < millions * 1e6:
            continue
        bar = f"at most {times:g} x limit" + (f" + {more:g} s" if more else "")
        for clock, with_start, took, base in _clocks(one, limit):
            came_out = f"{took:.2f} s, {took / base:.2f} x the limit of {base:.2f} s"
            yield Verdict(
                f"{name}, {size / 1e6:.0f} M", f"{clock}{with_start} {bar}", came_out, took <= times * base + more
            )
    for name in (SUMS, RUN, CALIBRATE):
        if one := own.get(name):
            subject = f"{name}, {size / 1e6:.0f} M"
            yield Verdict(
                subject, f"memory at most {_MEMORY_MB} MB", f"{one.peak_mb:.0f} MB", one.peak_mb <= _MEMORY_MB
            )
    if again := own.get(AGAIN):
        yield Verdict(f"{AGAIN}, {size / 1e6:.0f} M", "wall time under 3 s", f"{again.work_s:.2f} s", again.work_s < 3)


def _clocks(one: Measured, limit: Measured) -> Iterator[tuple[str, str, float, float]]:
    """Return clock, whether start-up is included, and the seconds of both."""
    wall, cpu = seconds(one), cpu_seconds(one)
    yield "wall time", "", wall, limit.work_s
    yield "wall time", ", start-up included,", wall + one.start_s, limit.wall
    yield "CPU time", "", cpu, limit.cpu_s
    yield "CPU time", ", start-up included,", cpu + one.start_cpu_s, limit.cpu


def _of_nights(nights: dict[str, Measured]) -> Iterator[Verdict]:
    for name in (UNDISTURBED, KILLED):
        if on_cluster := nights.get(name):
            largest = max(on_cluster.found["worker_mb"])
            bar = f"finishes with exact sums, no worker above {LIMIT_MB:,} MB"
            yield Verdict(name, bar, f"{largest:,.0f} MB", largest <= LIMIT_MB)
    histories = sorted((one for name, one in nights.items() if name.startswith(f"{NIGHTLY}, after")), key=_nights)
    newest = {NIGHTLY: histories[-1]} if histories else {}
    for name, cpu_s, memory_mb in _AT_NIGHT:
        one = nights.get(name) or newest.get(name)
        if one is not None and cpu_s is not None:
            bar = f"CPU time, start-up included, under {cpu_s:g} s"
            yield Verdict(one.contender, bar, f"{one.cpu:.2f} s", one.cpu < cpu_s)
        if one is not None and memory_mb is not None:
            bar = f"memory at most {memory_mb:,} MB"
            yield Verdict(one.contender, bar, f"{one.peak_mb:,.0f} MB", one.peak_mb <= memory_mb)
    if len(histories) > 1:
        first, last = histories[0], histories[-1]
        ratio = last.cpu / first.cpu
        bar = f"CPU time at most {_HISTORY} times that after {_nights(first):,} nights"
        yield Verdict(last.contender, bar, f"{ratio:.2f}", ratio <= _HISTORY)
    four = nights.get(f"{NIGHTLY}, of four nights")
    if four is not None and histories:
        ratio = four.cpu / histories[-1].cpu
        bar = f"CPU time at most {_FOUR_NIGHTS:g} times that of one night"
        yield Verdict(four.contender, bar, f"{ratio:.2f}", ratio <= _FOUR_NIGHTS)


def _nights(one: Measured) -> int:
    return int(one.contender.removeprefix(f"{NIGHTLY}, after ").removesuffix(" nights").replace(",", ""))


def seconds(one: Measured) -> float:
    """Return the wall time that is judged, start-up left out: of a calibration without the goodness of fit."""
    return one.work_s - float(one.found.get("apart_s", 0.0))


def cpu_seconds(one: Measured) -> float:
    """Return the CPU time that is judged, start-up left out: of a calibration without the goodness of fit."""
    return one.cpu_s - float(one.found.get("apart_cpu_s", 0.0))


def disagreements(found: Sequence[Measured]) -> list[str]:
    """Return who found other days, Wh or counts than this project's sums and counts did."""
    differing = []
    for size, own in by_size(found).items():
        expected: dict[str, dict[str, object]] = {}
        if ours := own.get(SUMS):
            expected = dict.fromkeys((SUMS, *TUNED), ours.found)
            expected[RUN] = {"days": ours.found["days"], "wh": ours.found["wh"]}
            expected["conversion to Parquet"] = {}
        if RUN in own:
            expected[AGAIN] = {"released": own[RUN].found["released"]}
        for name, one in own.items():
            same = all(one.found.get(key) == value for key, value in expected.get(name, {}).items())
            if name == CALIBRATE:  # a reading that nothing goes before begins a stretch
                homes = one.found["homes"]
                steps = one.found["readings"] - homes - one.found["gaps"]
                same = steps == homes * steps_of_rows(one.rows // homes)
            if not same:
                differing.append(f"{name} at {size / 1e6:.1f} million rows")
    return differing


def steps_of_rows(rows: int) -> int:
    """Return the steps between half-hours of a household with so many rows, by the rules of `lcl`.

    A half-hour that is there twice every 31 days, and one row without a reading, before and after which no step is.
    """
    return rows - 1 - (rows - 1) // (_MONTH_OF_SLOTS + 1) - 2


def fixed_and_by_rows(found: Sequence[Measured], contender: str) -> tuple[float, float]:
    """Return the CPU seconds at no rows and of a million rows: a line through the largest sizes of a contender.

    Only sizes with as many households as the largest one, within 1 %, count; NaN for fewer than two.
    """
    own = [one[contender] for one in by_size(found).values() if contender in one]
    own = [one for one in own if math.isclose(one.found["homes"], own[-1].found["homes"], rel_tol=0.01)]
    if len(own) < 2:
        return math.nan, math.nan
    by_rows, fixed = np.polyfit([one.rows / 1e6 for one in own], [cpu_seconds(one) for one in own], 1)
    return max(float(fixed), 0.0), float(by_rows)
