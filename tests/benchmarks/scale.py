"""docs/scale.md: what 30 million meters take, step by step from what was measured. A pure function of `measured.json`.

Every number of the page is a plan (a constant below), a measured figure, or the result of the arithmetic beside it. A
figure that was not measured is printed as such, with everything that follows from it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.benchmarks.judging import CALIBRATE, LIMIT, RUN, SUMS, at_night, by_size, cpu_seconds, fixed_and_by_rows
from tests.benchmarks.measuring import Measured
from tests.benchmarks.million_meters import QUARTER, QUARTER_HOUSEHOLDS, UNDISTURBED
from tests.benchmarks.nights import MILLION, MILLION_HOUSEHOLDS
from tests.benchmarks.records import Results

METERS = 30_000_000
SLOTS, DAYS, MONTH = 48, 365, 30
BUCKET, SAMPLE = 50_000, 500
TASK_BYTES = 8 * 16 * 2**20
HOUR_S, USED, THREADS = 3600, 0.7, 2
"""The share of an hour in which a worker computes; the rest is for waiting, reading and tasks that end last."""
_MISSING = "not measured"


@dataclass(frozen=True, slots=True)
class Scale:
    """The measured figures that the page rests on; NaN for one that was not measured.

    CPU seconds are per million rows; `calibrate_household_s` and `gof_s` per household; `released_s` per day and
    series; memory in MB.
    """

    limit_s: float
    sums_s: float
    run_s: float
    calibrate_s: float
    calibrate_household_s: float
    gof_s: float
    ingest_s: float
    aggregate_s: float
    released_s: float
    start_s: float
    row_bytes: float
    stored_row_bytes: float
    million_files: float
    million_mb: float
    start_mb: float
    client_mb: float
    quarter_client_mb: float

    @classmethod
    def of(cls, results: Results) -> Scale:
        """Return the figures of the largest file of each contender, and of the nights."""
        largest: dict[str, Measured] = {}
        for own in by_size(results.measured).values():
            largest |= own
        nights = at_night(results.measured)
        calibrate, million = largest.get(CALIBRATE), nights.get(MILLION)
        found = million.found if million else {}
        rows = million.rows / 1e6 if million else math.nan
        stages = {name: cpu for name, (_, cpu) in found.get("stages", {}).items()}
        released = [stages.get(name, math.nan) for name in ("plan", "release", "publish", "report")]
        homes = max(calibrate.found["checked"].values(), default=0) if calibrate else 0
        fixed_s, by_rows_s = fixed_and_by_rows(results.measured, CALIBRATE)
        clients = [nights[name].found["client_mb"] if name in nights else math.nan for name in (UNDISTURBED, QUARTER)]
        return cls(
            limit_s=_per_million(largest.get(LIMIT)),
            sums_s=_per_million(largest.get(SUMS)),
            run_s=_per_million(largest.get(RUN)),
            calibrate_s=by_rows_s,
            calibrate_household_s=fixed_s / calibrate.found["homes"] if calibrate else math.nan,
            gof_s=calibrate.found["apart_cpu_s"] / homes if calibrate and homes else math.nan,
            ingest_s=stages.get("ingest", math.nan) / rows,
            aggregate_s=stages.get("aggregate", math.nan) / rows,
            released_s=sum(released),
            start_s=million.start_cpu_s if million else math.nan,
            row_bytes=found.get("read_bytes", math.nan) / rows / 1e6,
            stored_row_bytes=found.get("stored_bytes", math.nan) / rows / 1e6,
            million_files=found.get("stored_files", math.nan),
            million_mb=million.peak_mb if million else math.nan,
            start_mb=million.start_mb if million else math.nan,
            client_mb=clients[0],
            quarter_client_mb=clients[1],
        )


def _per_million(one: Measured | None) -> float:
    return cpu_seconds(one) / (one.rows / 1e6) if one else math.nan


def write_scale(folder: Path, results: Results) -> None:
    """Write the page into a folder."""
    (folder / "scale.md").write_text("\n".join(lines(results)) + "\n", "utf-8")


def lines(results: Results) -> Iterator[str]:
    """Return the lines of the page."""
    scale = Scale.of(results)
    yield from (_HEAD, f"{results.machine}; {results.versions}.", "", "## Cost of a million rows", "")
    yield from ("| step | CPU seconds per million rows | measured with |", "|---|---|---|")
    yield from _table(_costs(scale))
    yield from ["", f"## A night of {METERS:,} meters", "", *_TABLE, *_table(_night(scale)), "", _NIGHT]
    yield from ["", "## Memory", "", _MEMORY, "", *_TABLE, *_table(_memory(scale))]
    yield from ["", "## A calibration on a year", "", *_TABLE, *_table(_year(scale))]
    yield from ["", "## One machine", "", *_TABLE, *_table(_one_machine(scale))]


def _table(rows: Iterator[tuple[str, str, str]]) -> Iterator[str]:
    return (f"| {what} | {how} | {result} |" for what, how, result in rows)


def _costs(scale: Scale) -> Iterator[tuple[str, str, str]]:
    file, night = "the largest file of [the benchmarks](benchmarks.md)", "a night of a million meters"
    yield "parsing alone: the limit", _n(scale.limit_s, 3), file
    yield "parse, deduplicate, sum and count in one pass, nothing stored", _n(scale.sums_s, 3), file
    yield "a whole run: parse, store, deduplicate, sum, release", _n(scale.run_s, 3), file
    sizes = "a line through the calibrated files of 5,566 households"
    yield "calibrate: edges, counts, bounds", _n(scale.calibrate_s, 3), sizes
    yield "the same, of a thousand households, for any number of rows", _n(1000 * scale.calibrate_household_s, 3), sizes
    yield "ingest: parse, check, store by bucket", _n(scale.ingest_s, 3), night
    yield "aggregate: deduplicate and sum by bucket", _n(scale.aggregate_s, 3), night


def _night(scale: Scale) -> Iterator[tuple[str, str, str]]:
    rows, buckets = METERS * SLOTS, math.ceil(METERS / BUCKET)
    millions, read = rows / 1e6, rows * scale.row_bytes
    tasks, row_s = _ceil(read / TASK_BYTES), scale.ingest_s + scale.aggregate_s
    night_s = row_s * millions + scale.released_s
    yield "rows", f"{METERS:,} x {SLOTS}", _n(rows)
    yield "bytes read", f"{_n(rows)} x {_n(scale.row_bytes, 1)} bytes", f"{_n(read / 1e9, 1)} GB"
    yield "tasks that parse", f"{_n(read / 1e9, 1)} GB / 8 chunks of 16 MiB", _n(tasks)
    yield "buckets", f"{METERS:,} / {BUCKET:,}", _n(buckets)
    stored = f"{_n(rows * scale.stored_row_bytes / 1e9, 1)} GB"
    yield "bytes stored", f"{_n(rows)} x {_n(scale.stored_row_bytes, 2)} bytes", stored
    yield "part files, if each delivery has households of one bucket", f"{_n(tasks)} tasks x 1 bucket", _n(tasks)
    all_files = tasks * buckets
    yield "part files, if each task has households of all", f"{_n(tasks)} tasks x {_n(buckets)} buckets", _n(all_files)
    month = f"{_n(MONTH * tasks)} to {_n(MONTH * all_files)}"
    yield f"part files of a month of {MONTH} nights", f"{MONTH} x the same", month
    yield "CPU time of ingest", f"{_n(scale.ingest_s, 3)} s x {_n(millions)}", f"{_n(scale.ingest_s * millions)} s"
    aggregate_s = f"{_n(scale.aggregate_s * millions)} s"
    yield "CPU time of aggregate", f"{_n(scale.aggregate_s, 3)} s x {_n(millions)}", aggregate_s
    of_bucket = BUCKET * SLOTS / 1e6
    yield "both, of one bucket", f"{_n(row_s, 3)} s x {of_bucket:g}", f"{_n(row_s * of_bucket, 2)} s"
    yield "plan, release, publish, report", "once, as measured with a million meters", f"{_n(scale.released_s, 1)} s"
    yield "CPU time of the night", "the sum", f"{_n(night_s)} s"
    workers = _n(_ceil(night_s / (HOUR_S * USED)))
    yield "workers for one hour", f"{_n(night_s)} s / ({HOUR_S:,} s x {USED:g})", workers


def _memory(scale: Scale) -> Iterator[tuple[str, str, str]]:
    task, more = (scale.million_mb - scale.start_mb) / THREADS, MILLION_HOUSEHOLDS - QUARTER_HOUSEHOLDS
    household = (scale.client_mb - scale.quarter_client_mb) * 1e6 / more
    fixed_mb = scale.client_mb - household * MILLION_HOUSEHOLDS / 1e6
    before = f"{_n(scale.million_mb)} MB at a million meters - {_n(scale.start_mb)} MB before the work"
    yield "a task", f"({before}) / {THREADS} threads", f"{_n(task)} MB"
    yield "a worker of one thread", f"{_n(scale.start_mb)} MB + {_n(task)} MB", f"{_n(scale.start_mb + task)} MB"
    two = f"{_n(scale.client_mb)} MB with {MILLION_HOUSEHOLDS:,} - {_n(scale.quarter_client_mb)} MB with"
    yield "the coordinator, per household", f"({two} {QUARTER_HOUSEHOLDS:,}) / {more:,}", f"{_n(household)} bytes"
    yield (
        "the coordinator, without households",
        f"{_n(scale.client_mb)} MB - {MILLION_HOUSEHOLDS:,} x {_n(household)} bytes",
        f"{_n(fixed_mb)} MB",
    )
    largest = f"{_n(fixed_mb + METERS * household / 1e6)} MB"
    yield "the coordinator", f"{_n(fixed_mb)} MB + {METERS:,} x {_n(household)} bytes", largest


def _year(scale: Scale) -> Iterator[tuple[str, str, str]]:
    rows = METERS * SLOTS * DAYS
    by_rows, by_households = (scale.calibrate_s * rows / 1e6 / HOUR_S, scale.calibrate_household_s * METERS / HOUR_S)
    hours = by_rows + by_households
    yield "rows", f"{METERS:,} x {SLOTS} x {DAYS}", _n(rows)
    yield "CPU time of the rows", f"{_n(scale.calibrate_s, 3)} s x {_n(rows / 1e6)}", f"{_n(by_rows)} hours"
    thousands = f"{_n(1000 * scale.calibrate_household_s, 3)} s x {_n(METERS / 1e3)}"
    yield "CPU time of the households", thousands, f"{_n(by_households)} hours"
    yield "workers for one day", f"{_n(hours)} hours / (24 hours x {USED:g})", _n(_ceil(hours / 24 / USED))
    yield (
        "goodness of fit of a sample",
        f"{_n(scale.gof_s, 3)} s x {SAMPLE} households",
        f"{_n(scale.gof_s * SAMPLE)} s",
    )


def _one_machine(scale: Scale) -> Iterator[tuple[str, str, str]]:
    row_s, once_s = scale.ingest_s + scale.aggregate_s, scale.released_s + scale.start_s
    household_us = row_s * SLOTS
    cost = f"{_n(household_us, 1)} microseconds"
    yield "CPU time of one household", f"{_n(row_s, 3)} s x {SLOTS} / 1,000,000", cost
    meters = (HOUR_S * THREADS - once_s) / household_us
    hour = f"({HOUR_S:,} s x {THREADS} threads - {_n(once_s, 1)} s) / {cost}"
    yield "meters in one hour", hour, f"{_n(meters, 1)} million"
    hours = (household_us * METERS / 1e6 + once_s) / THREADS / HOUR_S
    yield f"a night of {METERS:,} meters", f"{cost} x {METERS:,} / {THREADS} threads", f"{_n(hours, 1)} hours"


def _ceil(value: float) -> float:
    return value if math.isnan(value) else math.ceil(value)


def _n(value: float, digits: int = 0) -> str:
    """Return a number as the page prints it."""
    return _MISSING if math.isnan(value) else f"{value:,.{digits}f}"


_TABLE = ("| | arithmetic | result |", "|---|---|---|")
_HEAD = """# Scale: what 30 million meters take

Written by `python -m tests.benchmarks` from the figures of [the benchmarks](benchmarks.md); a test compares the page
with them. The plan: readings are stored by month and household bucket (50,000 households each), every task works on one
bucket, sums are added as a tree, and the process that releases keeps nothing of each household but the columns of the
roster that it needs. The costs are those of one machine, multiplied; other processors have other costs. No cluster of
this size was measured.
"""
_NIGHT = """A worker is one process with one thread, and computes for 70 % of the hour. Reading and writing are in these
times as far as the processor takes part; a shared file system must deliver the bytes read and take the bytes stored
within the same hour. A delivery by region, or in any other order, has households of all buckets: then each task that
parses writes a small file for each bucket. Deliveries in the order of the buckets avoid that."""
_MEMORY = """The memory of a task is that of a night of a million meters in one process. The coordinator is the process
that releases: client and scheduler of a cluster of two workers, on a day that is released, with a million meters and
with a quarter of a million."""
