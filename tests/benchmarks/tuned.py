"""The contenders of others, tuned by somebody who wants them to win: sums and counts of one file in London's layout.

All of them use what ours must not: that the file is sorted by household and time, so that the row before is the reading
before, and a repeated half-hour is next to its twin. An unsorted file would give them wrong counts without a word.
`OPTIONS` states what was chosen, after trying the alternatives; the page prints it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np

EDGES = (30, 60, 100, 150, 200, 260, 350, 450, 600, 900, 1500)
STATES = len(EDGES) + 1
WORKERS = 2
READING = "KWH/hh (per half hour) "
HOUSEHOLD, END = "LCLid", "DateTime"
_MINUTE, _DAY, _HALF_HOUR = 60, 86_400, 1_800
_LARGEST_WH = 10_000
CSV_BYTES, PARQUET_BYTES = 2**25, 2**26
DUCKDB_MEMORY = "4GB"
PARQUET = "parquet"

Found = dict[str, Any]

OPTIONS = {
    "polars": "one lazy scan_csv with a declared schema, no quoting; the row before by shift (sorted input), streaming "
    "engine, both results of one collect_all; strings, because categoricals were slower; time stamps from 16 "
    "characters without a cache; POLARS_MAX_THREADS=2",
    "DuckDB": f"read_csv with declared names and types, no detection, no quoting; threads 2, memory_limit "
    f"{DUCKDB_MEMORY}, preserve_insertion_order; lag() OVER () on ordered input, no ORDER BY, no PARTITION BY; one "
    "pass for both results by GROUPING SETS; a temporary table, so that both threads parse",
    "pandas": "read_csv with its C parser (less CPU time and half of the memory of the pyarrow engine), three "
    "columns, households as categories; numpy counting",
    "pandas, pyarrow": "read_csv(engine='pyarrow'), three columns, households as categories; numpy counting",
    "dask, CSV": f"read_csv in blocks of {CSV_BYTES // 2**20} MB, households as categories, threads 2; numpy "
    "counting of each partition, partitions joined at their ends",
    "dask, Parquet": "read_parquet of three columns, threads 2; numpy counting of each partition, partitions joined at "
    f"their ends; the files were converted once by pyarrow from blocks of {PARQUET_BYTES // 2**20} MB, which is "
    "measured apart",
    "pandas groupby-apply": "as most notebooks do it: one household after the other; to 10 million rows only",
}


def summary(days: int, energy_wh: int, counts: Any) -> Found:
    """Return what every contender that counts reports: days, Wh, and the counts as a list."""
    return {"days": int(days), "wh": int(energy_wh), "counts": [int(count) for count in np.asarray(counts).ravel()]}


def polars(path: Path) -> Found:
    """Polars: one lazy scan, streaming, the row before by shift."""
    import polars as pl

    scanned = pl.scan_csv(
        path, schema={HOUSEHOLD: pl.String, "stdorToU": pl.String, END: pl.String, READING: pl.String}, quote_char=None
    )
    end = pl.col(END).str.head(16).str.to_datetime("%Y-%m-%d %H:%M", time_unit="ms", cache=False)
    energy = (pl.col(READING).str.strip_chars().cast(pl.Float64, strict=False) * 1000).round().cast(pl.Int32)
    rows = (
        scanned.select(pl.col(HOUSEHOLD).alias("household"), end.dt.epoch("s").alias("end"), energy.alias("wh"))
        .filter(pl.col("wh").is_not_null())
        .with_columns(
            gap=pl.col("end") - pl.col("end").shift(),
            same=pl.col("household") == pl.col("household").shift(),
            state=pl.sum_horizontal([(pl.col("wh") >= edge).cast(pl.UInt8) for edge in EDGES]).cast(pl.UInt8),
        )
        .with_columns(pair=pl.col("state").shift() * STATES + pl.col("state"))
    )
    twin = (pl.col("same") & (pl.col("gap") == 0)).fill_null(value=False)
    day = ((pl.col("end") - _MINUTE) // _DAY).alias("day")
    sums = rows.filter(~twin).group_by("household", day).agg(pl.col("wh").sum())
    total = sums.select(pl.len().alias("days"), pl.col("wh").cast(pl.Int64).sum())
    pairs = rows.filter(pl.col("same") & (pl.col("gap") == _HALF_HOUR)).group_by("pair").len()
    days, steps = pl.collect_all([total, pairs], engine="streaming")
    counts = np.zeros(STATES**2, np.int64)
    counts[steps["pair"].to_numpy()] = steps["len"].to_numpy()
    return summary(days["days"][0], days["wh"][0], counts)


def duckdb(path: Path) -> Found:
    """DuckDB: declared columns, the row before by lag over ordered input, one pass by grouping sets."""
    import duckdb as db

    connection = db.connect(
        config={
            "threads": WORKERS,
            "memory_limit": DUCKDB_MEMORY,
            "preserve_insertion_order": "true",
            "temp_directory": str(path.parent / "duckdb"),
        }
    )
    columns = "{'household': 'VARCHAR', 'tariff': 'VARCHAR', 'stamp': 'TIMESTAMP', 'kwh': 'DOUBLE'}"
    connection.execute(
        f"""CREATE TEMP TABLE readings AS SELECT household, stamp, CAST(round(1000 * kwh) AS INTEGER) AS wh FROM
        read_csv('{path}', header = true, auto_detect = false, delim = ',', quote = '', escape = '',
        new_line = '\\r\\n', columns = {columns}, nullstr = 'Null') WHERE kwh IS NOT NULL"""
    )
    state = _duckdb_state("wh")
    found = connection.execute(
        f"""WITH lagged AS (SELECT household, stamp, wh, lag(household) OVER () AS household_before,
        lag(wh) OVER () AS wh_before, epoch_us(stamp) - lag(epoch_us(stamp)) OVER () AS gap FROM readings),
        steps AS (SELECT household, CAST(stamp - INTERVAL 1 MINUTE AS DATE) AS day,
        CASE WHEN household_before = household AND gap = 0 THEN 0 ELSE wh END AS wh,
        CASE WHEN household_before = household AND gap = {_HALF_HOUR * 10**6}
        THEN {STATES} * ({_duckdb_state("wh_before")}) + {state} END AS pair FROM lagged),
        sums AS (SELECT grouping(pair) AS of_days, pair, sum(wh) AS wh, count(*) AS number FROM steps
        GROUP BY GROUPING SETS ((household, day), (pair)))
        SELECT of_days, pair, sum(wh), sum(number), count(*) FROM sums GROUP BY of_days, pair"""
    ).fetchall()
    counts = np.zeros(STATES**2, np.int64)
    days = energy_wh = 0
    for of_days, pair, wh, number, groups in found:
        if of_days:
            days, energy_wh = groups, wh
        elif pair is not None:
            counts[pair] = number
    return summary(days, energy_wh, counts)


def _duckdb_state(column: str) -> str:
    return " + ".join(f"({column} >= {edge})::UTINYINT" for edge in EDGES)


def pandas(path: Path) -> Found:
    """Pandas: its C parser, then numpy on whole columns."""
    return _count_frame(_read_pandas(path))


def pandas_pyarrow(path: Path) -> Found:
    """Pandas: parsed by pyarrow, then numpy on whole columns."""
    return _count_frame(_read_pandas(path, engine="pyarrow"))


def _read_pandas(path: Path, **options: Any) -> Any:
    import pandas as pd

    return pd.read_csv(path, **columns(), **options)


def columns() -> dict[str, Any]:
    """Return the options that pandas and dask share: three columns, declared."""
    return {
        "usecols": [HOUSEHOLD, END, READING], "na_values": ["Null"], "keep_default_na": False, "parse_dates": [END],
        "dtype": {HOUSEHOLD: "category"},
    }  # fmt: skip


def _count_frame(frame: Any) -> Found:
    keys, energy_wh, counts, _ = count_sorted(frame)
    return summary(len(keys), energy_wh.sum(), counts)


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


def dask_csv(path: Path) -> Found:
    """dask.dataframe over CSV."""
    import dask.dataframe as dd

    return _count_dask(dd.read_csv(str(path), blocksize=CSV_BYTES, **columns()))


def dask_parquet(path: Path) -> Found:
    """dask.dataframe over Parquet files, which `convert` wrote."""
    import dask.dataframe as dd

    return _count_dask(dd.read_parquet(str(path.parent / PARQUET), columns=[HOUSEHOLD, END, READING]))


def _count_dask(frame: Any) -> Found:
    import dask

    counted = [dask.delayed(count_sorted)(part) for part in frame.to_delayed()]
    return join_partitions(dask.compute(*counted, scheduler="threads", num_workers=WORKERS))


def convert(path: Path) -> Found:
    """Convert the file to Parquet once: the conversion that `dask, Parquet` needs, measured apart."""
    import pyarrow as pa
    import pyarrow.parquet as pq
    from pyarrow import csv

    folder = path.parent / PARQUET
    folder.mkdir(exist_ok=True)
    types = {HOUSEHOLD: pa.dictionary(pa.int32(), pa.string()), END: pa.timestamp("ns"), READING: pa.float64()}
    batches = csv.open_csv(
        path,
        read_options=csv.ReadOptions(block_size=PARQUET_BYTES),
        convert_options=csv.ConvertOptions(
            column_types=types, include_columns=list(types), null_values=["Null"], strings_can_be_null=False
        ),
    )
    number = 0
    for number, batch in enumerate(batches, 1):
        pq.write_table(pa.Table.from_batches([batch]), folder / f"{number:05}.parquet", compression="snappy")
    return {"files": number}


def pandas_apply(path: Path) -> Found:
    """Pandas, one household after the other with groupby-apply, as most notebooks do."""
    import pandas as pd

    def steps(household: pd.DataFrame) -> pd.Series:
        household = household.sort_values("end")
        follows = household["end"].diff() == pd.Timedelta(seconds=_HALF_HOUR)
        pairs = household["state"].shift().where(follows) * STATES + household["state"]
        return pairs.dropna().astype(int).value_counts()

    frame = _read_pandas(path)
    frame.columns = ["household", "end", "kwh"]
    frame = frame.dropna().drop_duplicates(["household", "end"])
    frame["wh"] = (frame["kwh"] * 1000).round().astype("int64")
    frame["day"] = (frame["end"] - pd.Timedelta(seconds=_MINUTE)).dt.normalize()
    frame["state"] = np.searchsorted(EDGES, frame["wh"], side="right")
    days = frame.groupby(["household", "day"], observed=True)["wh"].sum()
    counted = frame.groupby("household", observed=True)[["end", "state"]].apply(steps)
    by_pair = counted.groupby(level=-1).sum() if counted.index.nlevels > 1 else counted.sum()
    counts = np.zeros(STATES**2, np.int64)
    for pair, number in by_pair.items():
        counts[int(pair)] = int(number)
    return summary(len(days), days.sum(), counts)


TUNED: dict[str, tuple[Callable[[Path], Found], str]] = {
    "polars": (polars, "import polars"),
    "DuckDB": (duckdb, "import duckdb"),
    "conversion to Parquet": (convert, "import pyarrow.csv, pyarrow.parquet"),
    "dask, Parquet": (dask_parquet, "import dask.dataframe"),
    "dask, CSV": (dask_csv, "import dask.dataframe"),
    "pandas": (pandas, "import pandas"),
    "pandas, pyarrow": (pandas_pyarrow, "import pandas"),
    "pandas groupby-apply": (pandas_apply, "import pandas"),
}
os.environ.setdefault("POLARS_MAX_THREADS", str(WORKERS))
