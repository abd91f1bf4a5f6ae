"""docs/benchmarks.md and docs/benchmarks.svg: one table and one picture, a pure function of `measured.json`.

A figure of the table was measured, or is the result of the arithmetic beside it; one that is missing is printed as
such, with all that follows from it. Targets are information: no test asserts on time.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np

from benchmarks.cluster import KILLED, LIMIT_MB, QUARTER, QUARTER_HOUSEHOLDS, UNDISTURBED
from benchmarks.contenders import (
    AGAIN,
    CALIBRATE,
    CALIBRATE_BEFORE,
    DASK,
    DUCKDB,
    LIMIT,
    OPTIONS,
    POLARS,
    POLARS_ANY,
    RUN,
    RUN_BEFORE,
)  # fmt: skip
from benchmarks.measuring import Measured
from benchmarks.nights import CELLS, MILLION, MILLION_HOUSEHOLDS, NIGHTLY, ROSTER, ROSTER_CHANGED
from benchmarks.records import Results

METERS, SLOTS, DAYS = 30_000_000, 48, 365
HOUR_S, USED, THREADS = 3600, 0.7, 2
"""USED: the share of an hour in which a worker computes; the rest is for waiting, reading and tasks that end last."""
TARGETS: dict[str, tuple[float, float, float]] = {
    RUN: (2, 2, 900),
    AGAIN: (0, 3, math.inf),
    CALIBRATE: (3, 10, 900),
    CELLS: (0, 1, 250),
    ROSTER: (0, 3, 400),
    ROSTER_CHANGED: (0, 3, 400),
    f"{NIGHTLY}, after 1,095 nights": (0, 2, math.inf),
    MILLION: (0, math.inf, 2_000),
}
"""At most so many times the CPU time of the limit, plus so many CPU seconds; at most so many MB."""
_FILES = (LIMIT, RUN, RUN_BEFORE, AGAIN, CALIBRATE, CALIBRATE_BEFORE, POLARS_ANY, DUCKDB, POLARS, DASK)
_STEPS_OF_MONTH = 31 * 48
_INTRODUCTION = """# Benchmarks

Written by `python -m benchmarks` from `benchmarks/measured.json`: synthetic files in London's format, each contender in
a process of its own with two threads and declared types, the fastest of several rounds.

{about}

* *limit*: `pyarrow.csv` parses the needed columns on two threads. Polars, DuckDB and Dask compute daily sums and
  transition counts, of rows in any order or of a file that they trust to be sorted. *agedp* takes rows in any order,
  and stores, checks and releases them. Options: {options}.
* *agedp calibrate* reads as many rows of 5,566 households. Its goodness-of-fit test ({apart} CPU s) is left out.
* *nothing due*: `agedp run` as cron starts it, after three years of nights. *new file*: stored, checked, not due. Both
  include start-up, the other figures do not.
* *plan*: of ten years, with a declared chain that mixes slowly.
* *on two workers of 1 GB*: a Dask cluster of two processes; the MB are those of the largest process.
* *computed*: the figures above, multiplied; never measured. A worker has one thread and computes for 70 % of the hour.
"""


def write_report(folder: Path, results: Results) -> None:
    """Write page and picture into a folder."""
    (folder / "benchmarks.md").write_text("\n".join(lines(results)) + "\n", "utf-8")
    if by_size(results.measured):
        _draw(folder / "benchmarks.svg", results.measured)


def by_size(found: Sequence[Measured]) -> dict[int, dict[str, Measured]]:
    """Return what was measured of files by nominal size and contender, nights and failures left out."""
    sizes: dict[int, dict[str, Measured]] = {}
    for one in found:
        if one.size and not one.failed:
            sizes.setdefault(one.size, {})[one.contender] = one
    return dict(sorted(sizes.items()))


def at_night(found: Sequence[Measured]) -> dict[str, Measured]:
    """Return what was measured of nights and formats, by name, failures left out."""
    return {one.contender: one for one in found if not one.size and not one.failed}


def lines(results: Results) -> Iterator[str]:
    """Return the lines of the page."""
    found = results.measured
    sizes, nights = by_size(found), at_night(found)
    largest = list(sizes.values())[-1] if sizes else {}
    apart = largest[CALIBRATE].found.get("apart_cpu_s", math.nan) if CALIBRATE in largest else math.nan
    options = "; ".join(f"{name}: {text}" for name, text in OPTIONS.items())
    yield _INTRODUCTION.format(about=_about(results), options=options, apart=_n(apart, 1))
    yield "| | million rows | wall s | CPU s | MB | target |"
    yield "|---|---|---|---|---|---|"
    for name in _FILES:
        if name in largest:
            yield _row(largest[name], largest.get(LIMIT))
    for one in nights.values():
        yield _row(one, None)
    for what, millions, cpu, memory, how in computed(found):
        yield f"| {what}, computed | {millions} | | {cpu} | {memory} | {how} |"
    yield from ["", *results.install]
    if failed := [f"{one.contender}: {one.failed}" for one in found if one.failed]:
        yield from ["", f"Failed: {'; '.join(failed)}."]
    if others := disagreements(found):
        yield from ["", f"Contenders with other days, Wh or counts: {', '.join(others)}."]
    yield from ["", "![wall time, CPU time and memory against rows](benchmarks.svg)"]


def _about(results: Results) -> str:
    """Return machine, versions, when, at which commits, and how busy the machine was."""
    found = results.measured
    commits, days = (sorted({value for one in found if (value := getattr(one, key))}) for key in ("commit", "day"))
    busy = max((one.others for one in found), default=0.0)
    quiet = f"other programs used up to {busy:.0%} of the processors" if busy > 0.05 else "the machine was quiet"
    period = " to ".join(dict.fromkeys([*days[:1], *days[-1:]]))
    return f"{results.machine}; {results.versions}. Measured {period} at {' and '.join(commits)}; {quiet}."


def _row(one: Measured, limit: Measured | None) -> str:
    millions = f"{one.rows / 1e6:.2f}".rstrip("0").rstrip(".")
    workers = one.found.get("worker_mb", [])
    peak = max(one.found["client_mb"], *workers) if workers else one.peak_mb
    return (
        f"| {one.contender} | {millions} | {work_s(one):.2f} | {cpu_s(one):.2f} | {peak:.0f} | {verdict(one, limit)} |"
    )


def verdict(one: Measured, limit: Measured | None) -> str:
    """Return the targets of a row, and whether they were met; empty without any.

    >>> verdict(Measured("agedp run", 40, cpu_s=9, peak_mb=901, size=40), Measured("limit", 40, cpu_s=3, size=40))
    'CPU < 8 s missed, 900 MB missed'
    """
    if one.contender in (UNDISTURBED, KILLED):
        return f"worker {LIMIT_MB} MB {_met(max(one.found['worker_mb']) <= LIMIT_MB)}"
    if one.contender not in TARGETS:
        return ""
    times, more, most_mb = TARGETS[one.contender]
    parts = []
    if math.isfinite(more) and (limit is not None or not times):
        bar = times * cpu_s(limit) + more if limit is not None else more
        parts.append(f"CPU < {bar:.3g} s {_met((cpu_s(one) if one.size else one.cpu) < bar)}")
    if math.isfinite(most_mb):
        parts.append(f"{most_mb:g} MB {_met(one.peak_mb <= most_mb)}")
    return ", ".join(parts)


def _met(is_met: bool) -> str:
    return "met" if is_met else "missed"


def work_s(one: Measured) -> float:
    """Return the wall time, start-up left out: of a calibration without the goodness of fit."""
    return one.work_s - float(one.found.get("apart_s", 0.0))


def cpu_s(one: Measured) -> float:
    """Return the CPU time, start-up left out: of a calibration without the goodness of fit."""
    return one.cpu_s - float(one.found.get("apart_cpu_s", 0.0))


def computed(found: Sequence[Measured]) -> Iterator[tuple[str, str, str, str, str]]:
    """Return what 30 million meters take: what, million rows, CPU time, memory, and the arithmetic."""
    nights = at_night(found)
    million = nights.get(MILLION)
    stages = {name: cpu for name, (_, cpu) in million.found["stages"].items()} if million else {}
    rows, start_mb = (million.rows / 1e6, million.start_mb) if million else (math.nan, math.nan)
    row_s = sum(stages.get(name, math.nan) for name in ("ingest", "aggregate")) / rows
    once_s = sum(stages.get(name, math.nan) for name in ("plan", "release", "publish", "report"))
    task_mb = (million.peak_mb - start_mb) / THREADS if million else math.nan
    small, large = (nights[one].found["client_mb"] if one in nights else math.nan for one in (QUARTER, UNDISTURBED))
    household = (large - small) / (MILLION_HOUSEHOLDS - QUARTER_HOUSEHOLDS)
    coordinator = large + household * (METERS - MILLION_HOUSEHOLDS)
    night, night_s = METERS * SLOTS / 1e6, row_s * METERS * SLOTS / 1e6 + once_s
    yield (
        f"a night of {METERS / 1e6:.0f} million meters",
        _n(night),
        _n(night_s),
        f"worker {_n(start_mb + task_mb)}, coordinator {_n(coordinator)}",
        f"{_n(row_s, 3)} s x {_n(night)} + {_n(once_s, 1)} s; one hour: {_n(_ceil(night_s / HOUR_S / USED))} worker",
    )
    in_hour = (HOUR_S * THREADS - once_s - (million.start_cpu_s if million else math.nan)) / row_s
    yield "one hour of this machine", _n(in_hour), _n(HOUR_S * THREADS), "", f"{_n(in_hour / SLOTS)} million meters"
    fixed, by_rows, homes = fixed_and_by_rows(found)
    year = METERS * SLOTS * DAYS / 1e6
    hours = (by_rows * year + fixed / homes * METERS) / HOUR_S
    yield (
        "a calibration on their year",
        _n(year),
        f"{_n(hours)} hours",
        "",
        f"{_n(by_rows, 3)} s x {_n(year)} + {_n(fixed / homes * 1000, 3)} s x {METERS // 1000:,}; one day: "
        f"{_n(_ceil(hours / 24 / USED))} workers",
    )


def fixed_and_by_rows(found: Sequence[Measured]) -> tuple[float, float, float]:
    """Return the CPU seconds of a calibration at no rows and of a million rows, and its households.

    A line through the largest sizes with as many households as the largest one, within 1 %; NaN for fewer than two.
    """
    own = [one[CALIBRATE] for one in by_size(found).values() if CALIBRATE in one]
    own = [one for one in own if math.isclose(one.found["homes"], own[-1].found["homes"], rel_tol=0.01)]
    if len(own) < 2:
        return math.nan, math.nan, math.nan
    by_rows, fixed = np.polyfit([one.rows / 1e6 for one in own], [cpu_s(one) for one in own], 1)
    return max(float(fixed), 0.0), float(by_rows), own[-1].found["homes"]


def _ceil(value: float) -> float:
    return value if math.isnan(value) else math.ceil(value)


def _n(value: float, digits: int = 0) -> str:
    """Return a number as the page prints it."""
    return "not measured" if math.isnan(value) else f"{value:,.{digits}f}"


def disagreements(found: Sequence[Measured]) -> list[str]:
    """Return who found other days, Wh or counts than the first that counted, or other days and Wh than the run."""
    differing = []
    for size, own in by_size(found).items():
        counting = [own[name] for name in (POLARS, POLARS_ANY, DUCKDB, DASK) if name in own]
        expected = {one.contender: counting[0].found for one in counting}
        if RUN in own and counting:
            expected[RUN] = {key: counting[0].found[key] for key in ("days", "wh")}
        if RUN_BEFORE in own:
            expected[RUN_BEFORE] = expected.get(RUN, {})
        if RUN in own:
            expected[AGAIN] = {"released": own[RUN].found["released"]}
        for name, one in own.items():
            is_same = all(one.found.get(key) == value for key, value in expected.get(name, {}).items())
            if name in (CALIBRATE, CALIBRATE_BEFORE):  # a reading that nothing goes before begins a stretch
                homes = one.found["homes"]
                is_same = one.found["readings"] - homes - one.found["gaps"] == homes * steps_of_rows(one.rows // homes)
            if not is_same:
                differing.append(f"{name} at {size / 1e6:.1f} million rows")
    return differing


def steps_of_rows(rows: int) -> int:
    """Return the steps between half-hours of a household with so many rows, by the rules of `readings`.

    A half-hour that is there twice every 31 days, and one row without a reading, before and after which no step is.
    """
    return rows - 1 - (rows - 1) // (_STEPS_OF_MONTH + 1) - 2


def _draw(path: Path, found: Sequence[Measured]) -> None:
    import matplotlib as mpl

    mpl.use("svg")
    mpl.rcParams["svg.hashsalt"] = "agedp"
    from matplotlib import pyplot as plt

    figure, panels = plt.subplots(1, 3, figsize=(15, 4.5), layout="constrained")
    sizes = by_size(found)
    values: tuple[tuple[str, Callable[[Measured], float]], ...] = (
        ("wall s, start-up left out", work_s),
        ("CPU s, start-up left out", cpu_s),
        ("peak memory, MB", lambda one: one.peak_mb),
    )
    names = [name for name in _FILES if any(name in own for own in sizes.values())]
    for (label, value), panel in zip(values, panels, strict=True):
        for number, name in enumerate(names):
            points = [(own[name].rows / 1e6, value(own[name])) for own in sizes.values() if name in own]
            ours = name.startswith("agedp")
            style = {"lw": 2 if ours else 1, "ls": "-" if ours else "--"}
            panel.plot(*zip(*points, strict=True), marker="osv^D<>pX*"[number], color=f"C{number}", label=name, **style)
        panel.set(xscale="log", yscale="log", xlabel="million rows", title=label)
        panel.grid(visible=True, which="both", alpha=0.3)
    panels[2].legend(loc="center left", bbox_to_anchor=(1.02, 0.5), frameon=False)
    figure.savefig(path, metadata={"Date": None, "Creator": None})
    plt.close(figure)
