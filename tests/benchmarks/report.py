"""docs/benchmarks.md and docs/benchmarks.svg from what was measured, and from the part written by hand."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.benchmarks.judging import (
    CALIBRATE,
    LIMIT,
    WIDE_LIMIT,
    at_night,
    by_size,
    cpu_seconds,
    disagreements,
    judged,
    seconds,
)
from tests.benchmarks.measuring import Measured
from tests.benchmarks.records import Results
from tests.benchmarks.tuned import OPTIONS

BEGIN, END = "<!-- written by hand -->", "<!-- end of the part written by hand -->"
_MARKERS = "os^vD<>pXP*"
_WIDE = (CALIBRATE, WIDE_LIMIT)
_INTRODUCTION = """# Benchmarks

Written by `python -m tests.benchmarks` from `tests/benchmarks/measured.json`. Contenders run one after the other, each
in a process of its own, and of several rounds the fastest counts. Synthetic files in the format of Low Carbon London;
sums per household and day, 12 x 12 transition counts. What follows for more meters: [scale](scale.md).
"""
_TERMS = """
*limit*: parsing the same columns with `pyarrow.csv` over the same 16 MB chunks on two threads. *of the limit*: ratio of
the column before it to the limit's. *start-up*: interpreter and imports, which the other columns leave out. *memory*:
largest sum of the proportional set size over the process tree, sampled every 50 ms, or the high-water mark of its first
process if larger. *others*: share of the processors that other programs used meanwhile.

*agedp calibrate* reads a file with as many rows but 5,566 households, if that leaves each of them 14 days, and is
compared with the limit of that file. Its time covers edges, counts and bounds; the goodness-of-fit test has a line
of its own. Its memory covers both.

The contenders of others use that the files are sorted by household and time. *agedp* does not: its result is the same
for rows in any order, over any number of files.
"""
_NIGHTS = """`agedp run` as cron starts it, interpreter and imports included; of a million meters the stages alone.

* *nothing due, 2,000 cells*: 20 groups with a distribution of 100 bins, after three years of nights.
* *nothing due, a roster of a million*: a Parquet roster of a million households, of whom 1,000 have readings.
  Unchanged, and after one row was added to it.
* *one new file, nothing due*: 5,566 households and one file a night. Days are released after 30 days, so the file is
  stored, checked and not due. Measured after a third of three years and after all of it, and with a file of four
  nights: the cost depends on the new rows, and not on the history.
* *a night of a million meters*: one day in 20 files of 50,000 households, parsed, stored, summed and released by two
  threads.
* *... on two workers of 1 GB*: the same on a Dask cluster of two worker processes of one thread each. Dask ends a
  worker at 95 % of its limit. In *the same, one worker killed* one worker received SIGKILL when half of the files were
  parsed. The exact sums of each run, before noise, equal the sum of the generated readings."""
_COLUMNS = ("wall s", "of the limit", "CPU s", "of the limit", "start-up s", "start-up CPU s", "memory MB", "others")


def write_report(folder: Path, results: Results) -> None:
    """Write both files into a folder; the hand-written part of the page there is kept."""
    page = folder / "benchmarks.md"
    text = page.read_text("utf-8") if page.exists() else ""
    page.write_text("\n".join(lines(results, by_hand(text))) + "\n", "utf-8")
    if by_size(results.measured):
        _draw(folder / "benchmarks.svg", results.measured)


def by_hand(page: str) -> str:
    """Return the hand-written part of a page, with its marks."""
    return BEGIN + page.partition(BEGIN)[2].partition(END)[0] + END if BEGIN in page else f"{BEGIN}\n{END}"


def lines(results: Results, hand_written: str) -> Iterator[str]:
    """Return the lines of the page."""
    found = results.measured
    yield _INTRODUCTION
    yield f"{results.machine}; {results.versions}. {_dates(found)}"
    yield _TERMS
    yield "The contenders of others, and the options that were the fastest of those tried:"
    yield ""
    yield from (f"* *{name}*: {options}." for name, options in OPTIONS.items())
    for size, own in by_size(found).items():
        yield from ["", f"## {size / 1e6:.0f} million rows", ""]
        yield from _table(own)
    yield from _night_lines(found)
    yield from ["", hand_written, "", *results.install]
    if failed := [one for one in found if one.failed]:
        yield from ["", "## Failed", ""]
        yield from (f"* {one.contender} at {one.rows / 1e6:.1f} million rows: {one.failed}" for one in failed)
    yield from ["", "## Against the targets", ""]
    yield "For information; no test asserts on time. Targets relative to the limit refer to 40 and 168 million rows."
    yield from ["", "| | target | measured | |", "|---|---|---|---|"]
    for one in judged(found):
        yield f"| {one.subject} | {one.bar} | {one.came_out} | {'met' if one.met else 'missed'} |"
    others = disagreements(found)
    differing = f"Contenders with other days, Wh or counts: {', '.join(others)}."
    yield from ["", differing if others else "All contenders that count agree on days, Wh and counts."]
    yield from ["", "![wall time and memory against rows](benchmarks.svg)"]


def _dates(found: Sequence[Measured]) -> str:
    """Return when and at which commits, and how busy the machine was."""
    commits = sorted({one.commit for one in found if one.commit})
    days = sorted({one.day for one in found if one.day})
    period = days[0] if len(days) == 1 else f"{days[0]} to {days[-1]}" if days else ""
    busy = max((one.others for one in found), default=0.0)
    quiet = f"Other programs used up to {busy:.0%} of the processors." if busy > 0.05 else "The machine was quiet."
    return f"Measured {period} at commit {' and '.join(commits)}. {quiet}"


def _table(own: dict[str, Measured]) -> Iterator[str]:
    yield from (f"| | {' | '.join(_COLUMNS)} |", "|---" * (len(_COLUMNS) + 1) + "|")
    for name, one in own.items():
        limit = own.get(WIDE_LIMIT if name in _WIDE else LIMIT)
        wall, cpu = seconds(one), cpu_seconds(one)
        to_wall, to_cpu = (f"{wall / limit.work_s:.2f}", f"{cpu / limit.cpu_s:.2f}") if limit else ("", "")
        cells = (f"{wall:.2f}", to_wall, f"{cpu:.2f}", to_cpu, f"{one.start_s:.2f}", f"{one.start_cpu_s:.2f}")
        yield f"| {name} | {' | '.join(cells)} | {one.peak_mb:.0f} | {one.others:.0%} |"
        if apart := one.found.get("apart_s"):
            checked = ", ".join(f"{number:,} households by {what}" for what, number in one.found["checked"].items())
            apart_cpu = one.found["apart_cpu_s"]
            yield f"| goodness of fit ({checked or 'none checked'}) | {apart:.2f} | | {apart_cpu:.2f} | | | | | |"


def _night_lines(found: Sequence[Measured]) -> Iterator[str]:
    nights = at_night(found)
    if not nights:
        return
    yield from ["", "## Nights", "", _NIGHTS, ""]
    yield "| | new rows | wall s | CPU s | start-up CPU s | memory MB | others |"
    yield "|---|---|---|---|---|---|---|"
    for name, one in nights.items():
        rows = "" if name.startswith("nothing due") else f"{one.rows:,}"
        cells = f"{one.work_s:.2f} | {one.cpu_s:.2f} | {one.start_cpu_s:.2f} | {one.peak_mb:.0f} | {one.others:.0%}"
        yield f"| {name} | {rows} | {cells} |"
    for name, one in nights.items():
        if workers := one.found.get("worker_mb"):
            own = f"{name}: client and scheduler {one.found['client_mb']:.0f} MB"
            yield from ["", f"{own}; workers {', '.join(f'{mb:.0f}' for mb in sorted(workers))} MB."]


def _draw(path: Path, found: Sequence[Measured]) -> None:
    import matplotlib as mpl

    mpl.use("svg")
    mpl.rcParams["svg.hashsalt"] = "agedp"
    from matplotlib import pyplot as plt

    figure, panels = plt.subplots(1, 3, figsize=(15, 4.5), layout="constrained")
    sizes = by_size(found)
    names = list(dict.fromkeys(name for own in sizes.values() for name in own))
    for panel, what, label in (
        (panels[0], seconds, "wall s"),
        (panels[1], cpu_seconds, "CPU s"),
        (panels[2], lambda one: one.peak_mb, "MB"),
    ):
        for number, name in enumerate(names):
            points = [(own[name].rows / 1e6, what(own[name])) for own in sizes.values() if name in own]
            ours = name.startswith("agedp")
            panel.plot(
                *zip(*points, strict=True),
                marker=_MARKERS[number % len(_MARKERS)],
                color=f"C{number}" if number < 10 else ("black", "grey", "olive", "navy")[number % 4],
                label=name,
                lw=2 if ours else 1,
                ls="-" if ours else "--",
            )
        panel.set(xscale="log", yscale="log", xlabel="million rows", ylabel=label)
        panel.grid(visible=True, which="both", alpha=0.3)
    panels[0].set_title("wall time, start-up left out")
    panels[1].set_title("CPU time, start-up left out")
    panels[2].set_title("peak memory of the process tree")
    panels[2].legend(loc="center left", bbox_to_anchor=(1.02, 0.5), frameon=False)
    figure.savefig(path, metadata={"Date": None, "Creator": None})
    plt.close(figure)
