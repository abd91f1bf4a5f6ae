"""The same job by several hands: daily sums per home, and 12 x 12 transition counts, of one file in the LCL layout.

Each contender runs in a process of its own, is told the file and prints one JSON line: what it found, so that the
answers can be compared, and what its start-up took. Public edges and no store, but for `run` (the whole real thing),
`calibrate` (edges of each home's own) and `night`, which work in the folder that `scenes` made.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

EDGES = [30, 60, 100, 150, 200, 260, 350, 450, 600, 900, 1500]
BLOCK = 16 * 2**20
WORKERS = 2
_COLUMN = "KWH/hh (per half hour) "

Found = dict[str, Any]


def limit(path: Path) -> Found:
    """Parse the columns that are needed over the same blocks and threads, and do nothing with them."""
    import pyarrow as pa
    from pyarrow import csv

    types = {"LCLid": pa.dictionary(pa.int32(), pa.binary()), "DateTime": pa.timestamp("ns"), _COLUMN: pa.float64()}
    with path.open("rb") as stream:
        header = stream.readline()
    names = header.decode().rstrip("\r\n").split(",")
    size = path.stat().st_size

    ends = [len(header)]
    with path.open("rb") as stream:
        while ends[-1] + BLOCK < size:
            stream.seek(ends[-1] + BLOCK - 1)
            stream.readline()
            ends.append(stream.tell())
    ends.append(size)

    def rows(start: int, stop: int) -> int:
        with path.open("rb") as stream:
            stream.seek(start)
            data = stream.read(stop - start)
        return int(
            csv.read_csv(
                pa.BufferReader(data),
                read_options=csv.ReadOptions(column_names=names, use_threads=False, block_size=len(data) + 1),
                convert_options=csv.ConvertOptions(
                    column_types=types, include_columns=list(types), null_values=["Null"], strings_can_be_null=False
                ),
            ).num_rows
        )

    with ThreadPoolExecutor(WORKERS) as pool:
        return {"rows": sum(pool.map(rows, ends[:-1], ends[1:]))}


def agedp(path: Path) -> Found:
    """This project's sums and counts, nothing stored."""
    from agedp.compute.engine_settings import Engine
    from tests.benchmarks.one_pass import tally

    found = tally(
        [str(path)], dataset="london", edges=[float(edge) for edge in EDGES], engine=Engine("threads", WORKERS)
    )
    return {"days": len(found.day), "wh": int(found.energy_wh.sum()), "counts": _digest(found.counts.sum(axis=0))}


def _digest(counts: Any) -> list[int]:
    return [int(one) for one in np.asarray(counts).ravel()]


def polars(path: Path) -> Found:
    """Polars, lazy and streaming."""
    import polars as pl

    lazy = (
        pl.scan_csv(path, schema_overrides={"KWH/hh (per half hour) ": pl.String})
        .select(
            pl.col("LCLid").alias("home"),
            pl.col("DateTime").str.slice(0, 19).str.to_datetime("%Y-%m-%d %H:%M:%S").alias("at"),
            (pl.col(_COLUMN).str.strip_chars().cast(pl.Float64, strict=False) * 1000)
            .round()
            .cast(pl.Int64)
            .alias("wh"),
        )
        .drop_nulls()
        .unique(["home", "at"], maintain_order=True)
        .with_columns((pl.col("at") - pl.duration(minutes=1)).dt.date().alias("day"))
    )
    days = lazy.group_by("home", "day").agg(pl.col("wh").sum()).collect(engine="streaming")
    steps = (
        lazy.sort("home", "at")
        .with_columns(
            pl.col("wh").cut(EDGES, left_closed=True).to_physical().alias("state"),
            pl.col("at").diff().eq(pl.duration(minutes=30)).alias("follows"),
            pl.col("home").eq(pl.col("home").shift()).alias("same"),
        )
        .with_columns(pl.col("state").shift().alias("before"))
        .filter(pl.col("follows") & pl.col("same"))
        .group_by("before", "state")
        .len()
        .collect(engine="streaming")
    )
    counts = np.zeros((12, 12), np.int64)
    for before, state, number in steps.iter_rows():
        counts[before, state] = number
    return {"days": days.height, "wh": int(days["wh"].sum()), "counts": _digest(counts)}


def duckdb(path: Path) -> Found:
    """DuckDB in SQL."""
    import duckdb as db

    db.sql(f"SET threads = {WORKERS}")
    state = " + ".join(f"(wh >= {edge})::INT" for edge in EDGES)
    db.sql(
        f"""CREATE TEMP TABLE r AS SELECT DISTINCT LCLid AS home, DateTime AS stamp,
        CAST(DateTime - INTERVAL 1 MINUTE AS DATE) AS day, wh, {state} AS state FROM (
        SELECT LCLid, DateTime, CAST(round(1000 * TRY_CAST(trim("{_COLUMN}") AS DOUBLE)) AS BIGINT) AS wh FROM
        read_csv('{path}', header = true, columns = {{'LCLid': 'VARCHAR', 'stdorToU': 'VARCHAR',
        'DateTime': 'TIMESTAMP', '{_COLUMN}': 'VARCHAR'}}, new_line = '\\r\\n')) WHERE wh IS NOT NULL"""
    )
    days = db.sql("SELECT count(*), sum(s) FROM (SELECT sum(wh) AS s FROM r GROUP BY home, day)")
    window = "WINDOW w AS (PARTITION BY home ORDER BY stamp)"
    gaps = f"SELECT state, lag(state) OVER w AS before, stamp - lag(stamp) OVER w AS gap FROM r {window}"
    follow = "WHERE gap = INTERVAL 30 MINUTE GROUP BY before, state"
    steps = db.sql(f"SELECT before, state, count(*) FROM ({gaps}) {follow}")
    counts = np.zeros((12, 12), np.int64)
    for before, after, number in steps.fetchall():
        counts[before, after] = number
    number, wh = days.fetchall()[0]
    return {"days": int(number), "wh": int(wh), "counts": _digest(counts)}


def pandas_apply(path: Path) -> Found:
    """Pandas, one home after the other with groupby-apply, as most notebooks do."""
    import pandas as pd

    def one(home: pd.DataFrame) -> pd.Series:
        home = home.sort_values("at")
        follows = home["at"].diff() == pd.Timedelta(minutes=30)
        pairs = home["state"].shift().where(follows) * 12 + home["state"]
        return pairs.dropna().astype(int).value_counts()

    frame = pd.read_csv(
        path, usecols=["LCLid", "DateTime", _COLUMN], na_values=["Null"], parse_dates=["DateTime"],
        dtype={"LCLid": "category"},
    )  # fmt: skip
    frame.columns = ["home", "at", "kwh"]
    frame = frame.dropna().drop_duplicates(["home", "at"])
    frame["wh"] = (frame["kwh"] * 1000).round().astype("int64")
    frame["day"] = (frame["at"] - pd.Timedelta(minutes=1)).dt.normalize()
    frame["state"] = np.searchsorted(EDGES, frame["wh"], side="right")
    days = frame.groupby(["home", "day"], observed=True)["wh"].sum()
    counts = frame.groupby("home", observed=True)[["at", "state"]].apply(one)
    flat = np.zeros(144, np.int64)
    for pair, number in counts.groupby(level=-1).sum().items() if counts.index.nlevels > 1 else counts.sum().items():
        flat[int(pair)] = int(number)
    return {"days": len(days), "wh": int(days.sum()), "counts": _digest(flat)}


def run(path: Path) -> Found:
    """The real thing: quarantine, content id, store, release of every day, one promise."""
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    from agedp.pipeline import sanitise

    released = len(sanitise(path).table())
    sums = pq.read_table(path.parent / "out" / "confidential" / "sums.parquet")
    return {"released": released, "days": pc.sum(sums["usable"]).as_py(), "wh": pc.sum(sums["value"]).as_py()}


def calibrate(path: Path) -> Found:
    """Calibration from scratch: quantile edges of each home, then its transitions; what follows is timed apart.

    Apart are the check whether the chain is true, and leakage and envelope.
    """
    import agedp.calibration_pipeline as stage

    apart = []

    def timed(original: Callable[..., Any]) -> Callable[..., Any]:
        def call(*words: Any, **keys: Any) -> Any:
            begun = time.perf_counter()
            made = original(*words, **keys)
            apart.append(time.perf_counter() - begun)
            return made

        return call

    stage.measure_memory, stage.bound = timed(stage.measure_memory), timed(stage.bound)
    found = stage.calibrate(path)
    return {"homes": found.households, "readings": found.readings, "gaps": found.gaps, "apart": sum(apart)}


CONTENDERS: dict[str, tuple[Callable[[Path], Found], str]] = {
    "limit": (limit, "import pyarrow.csv"),
    "agedp sums and counts": (agedp, "import tests.benchmarks.one_pass"),
    "agedp run": (run, "import agedp.pipeline"),
    "agedp run again": (run, "import agedp.pipeline"),
    "agedp calibrate": (calibrate, "import agedp.calibration_pipeline"),
    "agedp night": (run, "import agedp.pipeline"),
    "polars": (polars, "import polars"),
    "DuckDB": (duckdb, "import duckdb"),
    "pandas groupby-apply": (pandas_apply, "import pandas"),
}


def run_contender(contenders: Mapping[str, tuple[Callable[[Path], Found], str]]) -> None:
    """Run the contender that the command line names, and print what it found."""
    parser = argparse.ArgumentParser()
    parser.add_argument("contender", choices=contenders)
    parser.add_argument("path", type=Path)
    chosen = parser.parse_args()
    with suppress(OSError):  # if memory runs out, it is this process that ends, not who measures it
        Path("/proc/self/oom_score_adj").write_text("1000")
    contender, start = contenders[chosen.contender]
    begun = time.perf_counter()
    exec(start)  # noqa: S102  (our own words, in a benchmark)
    started, cpu = time.perf_counter(), time.process_time()
    found = contender(chosen.path)
    work_s = time.perf_counter() - started
    taken = {"start_s": started - begun, "start_cpu_s": cpu, "work_s": work_s, "own_mb": high_water_mb()}
    print(json.dumps({**taken, "found": found}))


def high_water_mb() -> float:
    """Return the most memory that this program held; `ru_maxrss` would begin with what its parent held at the fork."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) * 1024 / 1e6


if __name__ == "__main__":
    run_contender(CONTENDERS)
