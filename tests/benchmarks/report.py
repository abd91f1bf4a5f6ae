"""docs/benchmarks.md and docs/benchmarks.svg: what was measured, on what, and where the design stops scaling."""

from __future__ import annotations

import platform
import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from importlib.metadata import distributions
from pathlib import Path

import psutil

from tests.benchmarks.judging import RUN, SUMS, by_size, disagreements, judged, seconds, slope
from tests.benchmarks.measuring import Measured
from tests.benchmarks.packaging import install_lines

_PACKAGES = ("agedp", "numpy", "pyarrow", "dask", "pandas", "polars", "duckdb")
_METERS = 30_000_000
_YEAR = 365 * 48
_BYTES_A_DAY = 100
_GB = 1e9

_MARKERS = "os^vD<>pXP*"


def write_report(folder: Path, found: Sequence[Measured]) -> None:
    """Write both files into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "benchmarks.md").write_text("\n".join(_lines(found, install_lines())) + "\n", encoding="utf-8")
    if by_size(found):
        _draw(folder / "benchmarks.svg", found)


def _lines(found: Sequence[Measured], install: Sequence[str] = ()) -> Iterator[str]:
    yield "# Benchmarks"
    yield ""
    yield "Written by `python -m tests.benchmarks`; every number is of one run, the best of several rounds;"
    yield "contenders run one after the other. Synthetic files in the format of Low Carbon London; sums per"
    yield "household and day, 12 x 12 transition counts."
    yield ""
    yield _machine()
    yield ""
    yield "*limit*: parsing the same columns with `pyarrow.csv` over the same 16 MB chunks on two threads."
    yield "*work* and *CPU* leave out start-up (interpreter and imports). *memory*: largest sum of the proportional set"
    yield "size over the process tree, sampled every 50 ms, or the process's own high-water mark if larger."
    yield "The time of *agedp calibrate* covers edges and counts, two passes. It leaves out steps that depend on the"
    yield "households: leakage functions, leakage bound, goodness of fit. Its CPU time and memory cover all steps."
    for rows, own in by_size(found).items():
        yield from ["", f"## {rows / 1e6:.1f} million rows", ""]
        yield "| | work s | of the limit | CPU s | memory MB | start-up s |"
        yield "|---|---|---|---|---|---|"
        limit = own.get("limit")
        for name, one in own.items():
            ratio = f"{seconds(one) / limit.work_s:.2f}" if limit else ""
            took = f"{seconds(one):.2f}"
            yield f"| {name} | {took} | {ratio} | {one.cpu_s:.2f} | {one.peak_mb:.0f} | {one.start_s:.2f} |"
    yield from ["", *install]
    if failed := [one for one in found if one.failed]:
        yield from ["", "## Failed", ""]
        yield from (f"* {one.contender} at {one.rows / 1e6:.1f} million rows: {one.failed}" for one in failed)
    yield from ["", "## Against the targets", ""]
    yield "For information; no test asserts on time. The targets of time refer to 40 and 160 million rows."
    yield from ["", "| million rows | target | measured | |", "|---|---|---|---|"]
    for one in judged(found):
        yield f"| {one.rows / 1e6:.1f} | {one.bar} | {one.came_out} | {'met' if one.met else 'missed'} |"
    others = disagreements(found)
    yield ""
    differing = f"Contenders with other days, Wh or counts: {', '.join(others)}."
    yield differing if others else "All contenders that count agree."
    yield from _scaling(found)
    yield from ["", "![wall time and memory against rows](benchmarks.svg)"]


def _machine() -> str:
    versions = {package.name: package.version for package in distributions()}
    packages = ", ".join(f"{name} {versions[name]}" for name in _PACKAGES if name in versions)
    names = re.findall(r"^model name\s*: (.+)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    return (
        f"{names[0] if names else platform.machine()}, {psutil.cpu_count(logical=True)} logical processors, "
        f"{psutil.virtual_memory().total / 2**30:.0f} GiB of memory, {platform.system()}, Python "
        f"{platform.python_version()}; {packages}. "
        f"{datetime.now(UTC):%B %Y}."
    )


def _scaling(found: Sequence[Measured]) -> Iterator[str]:
    time, memory, sums = slope(found, RUN, "work_s"), slope(found, RUN, "peak_mb"), slope(found, SUMS, "work_s")
    if time is None or memory is None:
        return
    yield from ["", "## Slope, and 30 million meters", ""]
    if sums is not None:
        yield f"Sums and counts: {sums[1]:.3f} s for each million rows, {sums[0]:.1f} s at none. "
    yield f"The real run: {time[1]:.3f} s for each million rows, {time[0]:.1f} s at none; memory {memory[0]:.0f} MB and"
    yield f"{memory[1]:.2f} MB for each million rows. Extrapolated to {_METERS:,} meters on this machine:"
    yield ""
    for what, rows in (("a day", _METERS * 48), ("a year", _METERS * _YEAR)):
        hours = (time[0] + time[1] * rows / 1e6) / 3600
        yield f"* {what} ({rows / 1e9:,.1f} thousand million rows): {hours:,.1f} hours"
    yield ""
    total = psutil.virtual_memory().total
    households = total / 2 / (31 * _BYTES_A_DAY)
    month = _METERS * 31 * _BYTES_A_DAY / _GB
    yield "The extrapolation fails above a limit. Parsing and part files are spread over any number of workers, but a"
    yield f"month is deduplicated in one task, which holds about {_BYTES_A_DAY} bytes for each household-day"
    yield f"(an estimate). The sums hold a month of the roster in one process: {month:,.0f} GB at {_METERS:,}"
    yield f"meters. With half of this machine's memory the limit is about {households / 1e6:,.1f} million meters."
    yield "A larger population needs months partitioned by household, or has to be split into several populations."


def _draw(path: Path, found: Sequence[Measured]) -> None:
    import matplotlib as mpl

    mpl.use("svg")
    mpl.rcParams["svg.hashsalt"] = "agedp"
    from matplotlib import pyplot as plt

    figure, panels = plt.subplots(1, 2, figsize=(11, 4.5), layout="constrained")
    sizes = by_size(found)
    names = list(dict.fromkeys(name for own in sizes.values() for name in own))
    for panel, what, label in ((panels[0], seconds, "s"), (panels[1], lambda one: one.peak_mb, "MB")):
        for name in names:
            points = [(rows / 1e6, what(own[name])) for rows, own in sizes.items() if name in own]
            ours = name.startswith("agedp")
            shape = _MARKERS[names.index(name) % len(_MARKERS)]
            panel.plot(
                *zip(*points, strict=True),
                marker=shape,
                color=f"C{names.index(name)}" if names.index(name) < 10 else "black",
                label=name,
                lw=2 if ours else 1,
                ls="-" if ours else "--",
            )
        panel.set(xscale="log", yscale="log", xlabel="million rows", ylabel=label)
        panel.grid(visible=True, which="both", alpha=0.3)
    panels[0].set_title("work, start-up left out")
    panels[1].set_title("peak memory of the process tree")
    panels[1].legend(loc="center left", bbox_to_anchor=(1.02, 0.5), frameon=False)
    figure.savefig(path, metadata={"Date": None, "Creator": None})
    plt.close(figure)
