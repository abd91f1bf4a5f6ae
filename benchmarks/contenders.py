"""The same job by several hands: daily sums per household and 12 x 12 transition counts of a file in London's layout.

Each contender runs in a process of its own, receives a path and prints one JSON line: what it found, so that answers
can be compared, and what its start-up took. `agedp run` and `agedp calibrate` are the functions behind the commands.

Polars and Dask on sorted files were the fastest of those tried with version 0.2. They use what ours must not: that the
file is sorted by household and time, so that the row before is the reading before. An unsorted file would give them
wrong counts without a word; "any order" takes rows as ours does. `OPTIONS` states what was chosen, after trying.
The two of version 0.2.0 are the same calls in a checkout of it.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

Found = dict[str, Any]
LIMIT, RUN, AGAIN, CALIBRATE = "limit", "agedp run", "agedp run again", "agedp calibrate"
RUN_BEFORE, CALIBRATE_BEFORE = "agedp 0.2.0 run", "agedp 0.2.0 calibrate"
POLARS, DASK, POLARS_ANY, DUCKDB = "polars, sorted", "Dask, sorted", "polars, any order", "DuckDB, any order"
EDGES = (30, 60, 100, 150, 200, 260, 350, 450, 600, 900, 1500)
STATES = len(EDGES) + 1
WORKERS = 2
READING = "KWH/hh (per half hour) "
HOUSEHOLD, END = "LCLid", "DateTime"
BLOCK, DASK_BLOCK = 2**24, 2**25
_MINUTE, _DAY, _HALF_HOUR = 60, 86_400, 1_800
_LARGEST_WH = 10_000
OPTIONS = {
    POLARS_ANY: "households as categories, unique, sorted",
    DUCKDB: "lag over households by time",
}


def limit(path: Path) -> Found:
    """Parse the columns that are needed over blocks of 16 MB on two threads, and do nothing with them."""
    import pyarrow as pa
    from pyarrow import csv

    types = {HOUSEHOLD: pa.dictionary(pa.int32(), pa.binary()), END: pa.timestamp("ns"), READING: pa.float64()}
    with path.open("rb") as stream:
        header = stream.readline()
        ends, size = [len(header)], path.stat().st_size
        while ends[-1] + BLOCK < size:
            stream.seek(ends[-1] + BLOCK - 1)
            stream.readline()
            ends.append(stream.tell())
        ends.append(size)
    names = header.decode().rstrip("\r\n").split(",")

    def rows(start: int, stop: int) -> int:
        with path.open("rb") as stream:
            stream.seek(start)
            data = stream.read(stop - start)
        options = csv.ReadOptions(column_names=names, use_threads=False, block_size=len(data) + 1)
        return int(csv.read_csv(pa.BufferReader(data), options, convert_options=_convert_options(types)).num_rows)

    with ThreadPoolExecutor(WORKERS) as pool:
        return {"rows": sum(pool.map(rows, ends[:-1], ends[1:]))}


def _convert_options(types: dict[str, Any]) -> Any:
    from pyarrow import csv

    return csv.ConvertOptions(
        column_types=types, include_columns=list(types), null_values=["Null"], strings_can_be_null=False
    )


def run(path: Path) -> Found:
    """The real thing: quarantine, content id, store, release of every day, one promise."""
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    from agedp.pipeline import sanitise

    released = len(sanitise(path).table())
    sums = pq.read_table(path.parent / "out" / "confidential" / "sums.parquet")
    return {"released": released, "days": pc.sum(sums["usable"]).as_py(), "wh": pc.sum(sums["value"]).as_py()}


def calibrate(path: Path) -> Found:
    """Calibration from scratch: edges of each household, transitions, bounds; the goodness of fit is timed apart."""
    stage: Any = import_module("agedp.calibration_pipeline")
    apart = {"apart_s": 0.0, "apart_cpu_s": 0.0}
    measure_memory = stage.measure_memory

    def timed(*words: Any, **keys: Any) -> Any:
        begun, cpu = time.perf_counter(), time.process_time()
        result = measure_memory(*words, **keys)
        apart["apart_s"] += time.perf_counter() - begun
        apart["apart_cpu_s"] += time.process_time() - cpu
        return result

    stage.measure_memory = timed
    found = stage.calibrate(path)
    checked = {name: check.checked for name, check in found.memory.checks.items()} if found.memory else {}
    counted = {"homes": found.households, "readings": found.readings, "gaps": found.gaps}
    return {**counted, "checked": checked, **apart}


def summary(days: int, energy_wh: int, counts: Any) -> Found:
    """Return what every contender that counts reports: days, Wh, and the counts as a list."""
    return {"days": int(days), "wh": int(energy_wh), "counts": [int(count) for count in np.asarray(counts).ravel()]}


def polars(path: Path) -> Found:
    """Polars on a sorted file: one lazy scan, streaming, the row before by shift; strings, categories were slower."""
    import polars as pl

    rows = _polars_rows(path, pl.String)
    twin = (pl.col("household") == pl.col("household").shift()) & (pl.col("end") == pl.col("end").shift())
    return _count_polars(rows, rows.filter(~twin.fill_null(value=False)))


def polars_any_order(path: Path) -> Found:
    """Polars on a file in any order: one row of each half-hour, then a sort by household and time."""
    import polars as pl

    rows = _polars_rows(path, pl.Categorical).unique(["household", "end"]).sort("household", "end")
    return _count_polars(rows, rows)


def _polars_rows(path: Path, household: Any) -> Any:
    """Return household, end in seconds and Wh of the readings, lazily."""
    import polars as pl

    scanned = pl.scan_csv(
        path, schema={HOUSEHOLD: household, "stdorToU": pl.String, END: pl.String, READING: pl.String}, quote_char=None
    )
    end = pl.col(END).str.head(16).str.to_datetime("%Y-%m-%d %H:%M", time_unit="ms", cache=False)
    energy = (pl.col(READING).str.strip_chars().cast(pl.Float64, strict=False) * 1000).round().cast(pl.Int32)
    rows = scanned.select(pl.col(HOUSEHOLD).alias("household"), end.dt.epoch("s").alias("end"), energy.alias("wh"))
    return rows.filter(pl.col("wh").is_not_null())


def _count_polars(rows: Any, once: Any) -> Found:
    """Return days and Wh of the rows that count once, and the counts of steps between rows in their order."""
    import polars as pl

    state = pl.sum_horizontal([(pl.col("wh") >= edge).cast(pl.UInt8) for edge in EDGES]).cast(pl.UInt8)
    day = ((pl.col("end") - _MINUTE) // _DAY).alias("day")
    sums = once.group_by("household", day).agg(pl.col("wh").sum())
    total = sums.select(pl.len().alias("days"), pl.col("wh").cast(pl.Int64).sum())
    is_step = (pl.col("household") == pl.col("household").shift()) & (pl.col("end").diff() == _HALF_HOUR)
    stepped = rows.with_columns(state=state, is_step=is_step)
    pairs = stepped.with_columns(pair=pl.col("state").shift() * STATES + pl.col("state")).filter("is_step")
    days, steps = pl.collect_all([total, pairs.group_by("pair").len()], engine="streaming")
    counts = np.zeros(STATES**2, np.int64)
    counts[steps["pair"].to_numpy()] = steps["len"].to_numpy()
    return summary(days["days"][0], days["wh"][0], counts)


def duckdb(path: Path) -> Found:
    """DuckDB on a file in any order: one row of each half-hour, the reading before by a window over the household."""
    duck: Any = import_module("duckdb")
    names = (HOUSEHOLD, "stdorToU", END, READING)
    declared = ", ".join(f"'{name}': 'VARCHAR'" for name in names)
    state = " + ".join(f"(wh >= {edge})::INTEGER" for edge in EDGES)
    connection = duck.connect(config={"threads": WORKERS, "memory_limit": "10GB", "temp_directory": str(path.parent)})
    connection.execute(f"""CREATE TEMP TABLE readings AS SELECT household, stamp, min(wh) AS wh FROM (
        SELECT "{HOUSEHOLD}" AS household, epoch(left("{END}", 19)::TIMESTAMP)::BIGINT AS stamp,
            round(TRY_CAST(trim("{READING}") AS DOUBLE) * 1000)::INTEGER AS wh
        FROM read_csv('{path}', columns = {{{declared}}}, header = true, auto_detect = false, delim = ',', quote = '')
        ) WHERE wh IS NOT NULL GROUP BY household, stamp""")
    days, energy_wh = connection.execute(f"""SELECT count(*), sum(wh) FROM (SELECT sum(wh) AS wh FROM readings
        GROUP BY household, (stamp - {_MINUTE}) // {_DAY})""").fetchone()
    steps = connection.execute(f"""SELECT before * {STATES} + state, count(*) FROM (
        SELECT state, stamp - lag(stamp) OVER home AS gap, lag(state) OVER home AS before
        FROM (SELECT household, stamp, {state} AS state FROM readings)
        WINDOW home AS (PARTITION BY household ORDER BY stamp)) WHERE gap = {_HALF_HOUR} GROUP BY 1""").fetchall()
    counts = np.zeros(STATES**2, np.int64)
    for pair, count in steps:
        counts[pair] = count
    return summary(days, energy_wh, counts)


def dask_csv(path: Path) -> Found:
    """dask.dataframe over CSV."""
    import dask.dataframe as dd

    return _count_dask(dd.read_csv(str(path), blocksize=DASK_BLOCK, **columns()))


def columns() -> dict[str, Any]:
    """Return the options of reading: three columns, declared."""
    return {
        "usecols": [HOUSEHOLD, END, READING], "na_values": ["Null"], "keep_default_na": False, "parse_dates": [END],
        "dtype": {HOUSEHOLD: "category"},
    }  # fmt: skip


def _count_dask(frame: Any) -> Found:
    dask: Any = import_module("dask")
    counted = [dask.delayed(count_sorted)(part) for part in frame.to_delayed()]
    return join_partitions(dask.compute(*counted, scheduler="threads", num_workers=WORKERS))


def count_sorted(frame: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray, tuple[Any, ...]]:
    """Return keys and Wh of the household-days of a sorted frame, counts (k * k), and its first and last reading."""
    frame = frame[frame[READING].notna()]
    household = frame[HOUSEHOLD].cat.codes.to_numpy()
    end = frame[END].to_numpy().astype("M8[s]").astype(np.int64)
    energy_wh = np.rint(frame[READING].to_numpy() * 1000).astype(np.int32)
    state = np.searchsorted(EDGES, np.arange(_LARGEST_WH), side="right").astype(np.int16)[energy_wh]
    same, gap = household[1:] == household[:-1], np.diff(end)
    pairs = (state[:-1] * STATES + state[1:])[same & (gap == _HALF_HOUR)]
    first = np.ones(len(end), bool)
    first[1:] = ~(same & (gap == 0))
    key = ((household.astype(np.int64) << 32) | ((end - _MINUTE) // _DAY))[first]
    starts = np.flatnonzero(np.r_[True, key[1:] != key[:-1]])
    sums = np.add.reduceat(energy_wh[first].astype(np.int64), starts)
    names = frame[HOUSEHOLD].cat.categories
    ends = tuple((names[household[row]], int(end[row]), int(energy_wh[row])) for row in (0, -1))
    return key[starts], sums, np.bincount(pairs, minlength=STATES**2), ends


def join_partitions(parts: Iterable[tuple[Any, ...]]) -> Found:
    """Return the sums and counts of neighbouring partitions: a day may be cut in two, a step lie between them."""
    days = energy_wh = 0
    counts = np.zeros(STATES**2, np.int64)
    last: tuple[str, int, int] | None = None
    for keys, sums, part_counts, (head, tail) in parts:
        days, energy_wh, counts = days + len(keys), energy_wh + int(sums.sum()), counts + part_counts
        if last is not None and last[0] == head[0]:
            gap = head[1] - last[1]
            days -= (head[1] - _MINUTE) // _DAY == (last[1] - _MINUTE) // _DAY
            energy_wh -= head[2] * (gap == 0)
            before, after = np.searchsorted(EDGES, (last[2], head[2]), side="right")
            counts[before * STATES + after] += gap == _HALF_HOUR
        last = tail
    return summary(days, energy_wh, counts)


Contenders = Mapping[str, tuple[Callable[[Path], Found], str]]
"""By name: the function, and the imports that are its start-up."""
CONTENDERS: Contenders = {
    LIMIT: (limit, "import pyarrow.csv"),
    RUN: (run, "import agedp.pipeline"),
    AGAIN: (run, "import agedp.pipeline"),
    CALIBRATE: (calibrate, "import agedp.calibration_pipeline"),
    POLARS: (polars, "import polars"),
    DASK: (dask_csv, "import dask.dataframe"),
    POLARS_ANY: (polars_any_order, "import polars"),
    DUCKDB: (duckdb, "import duckdb"),
    RUN_BEFORE: (run, "import agedp.pipeline"),
    CALIBRATE_BEFORE: (calibrate, "import agedp.calibration_pipeline"),
}


def run_contender(contenders: Contenders) -> None:
    """Run the contender that the command line names, and print what it found."""
    parser = argparse.ArgumentParser()
    parser.add_argument("contender", choices=contenders)
    parser.add_argument("path", type=Path)
    chosen = parser.parse_args()
    with suppress(OSError):  # if memory runs out, it is this process that ends, not who measures it
        Path("/proc/self/oom_score_adj").write_text("1000")
    os.environ.setdefault("POLARS_MAX_THREADS", str(WORKERS))
    contender, start = contenders[chosen.contender]
    exec(start)  # noqa: S102  (our own words, in a benchmark)
    start_mb, begun, cpu = high_water_mb(), time.perf_counter(), time.process_time()
    found = contender(chosen.path)
    taken = {"begun": begun, "work_s": time.perf_counter() - begun, "start_cpu_s": cpu, "start_mb": start_mb}
    print("\n" + json.dumps({**taken, "own_mb": high_water_mb(), "found": found}))


def high_water_mb() -> float:
    """Return the most memory that this program held; `ru_maxrss` would begin with what its parent held at the fork."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) * 1024 / 1e6


if __name__ == "__main__":
    run_contender(CONTENDERS)
