"""The same readings as CSV files, Parquet files and a Dask frame: `python -m tests.benchmarks.formats --rows 40`.

Each contender ingests into a store of its own or releases end to end, in a process of its own, one after the other.
The table prints wall time and peak memory as ratios to CSV; the numbers of kept rows and released days must agree.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tests.benchmarks import lcl, scenes
from tests.benchmarks.contenders import Found, run_contender
from tests.benchmarks.measuring import Measured, measure, settled

HOMES_PER_FILE = 166  # about 5 million rows, 260 MB of CSV
_CSV, _PARQUET, _FRAME = "csv", "parquet", "frame"
_NAMES = ("LCLid", "DateTime", "KWH/hh (per half hour) ")


def write_inputs(folder: Path, *, rows: int, seed: int = 1) -> int:
    """Write the readings of `lcl` in three forms; return the number of rows."""
    homes = lcl.homes_of(rows)
    slots = lcl.slots_of_rows()
    between = lcl.bytes_between(slots)
    rng = np.random.default_rng(seed)
    for form in (_CSV, _PARQUET, _FRAME):
        (folder / form).mkdir(parents=True, exist_ok=True)
    for number, first in enumerate(range(0, homes, HOMES_PER_FILE)):
        names = [lcl.name_of(home) for home in range(first, min(first + HOMES_PER_FILE, homes))]
        energies = [lcl.energy_of_rows(slots, rng) for _ in names]
        with (folder / _CSV / f"{number:03}.csv").open("wb") as stream:
            stream.write(lcl.HEADER)
            stream.writelines(lcl.rows_of_home(n.encode(), between, e) for n, e in zip(names, energies, strict=True))
        _write_tables(folder, f"{number:03}.parquet", names, slots, np.concatenate(energies))
    return homes * lcl.ROWS_PER_HOME


def _write_tables(folder: Path, file: str, names: list[str], slots: np.ndarray, energy_wh: np.ndarray) -> None:
    """Write one file in London's columns, and one as `agedp.read` returns readings: those without one are not in it."""
    is_odd = np.arange(len(slots)) == lcl.ODD_ROW
    seconds = lcl.FIRST.astype("M8[s]").astype(np.int64) + 1800 * slots + 37 * is_odd
    end = pa.array(np.tile(seconds * 10**6, len(names)), pa.timestamp("us"))
    household = pa.array(names).take(pa.array(np.repeat(np.arange(len(names)), len(slots))))
    kwh = pa.array(energy_wh / 1000, mask=np.tile(is_odd, len(names)))
    pq.write_table(pa.table([household, end, kwh], list(_NAMES)), folder / _PARQUET / file)
    kept = pa.array(np.tile(~is_odd, len(names)))
    start = pa.array(np.tile((seconds - 1800) * 10**6, len(names)), pa.timestamp("us", "UTC"))
    columns = [household, start, pa.array(energy_wh)]
    table = pa.table(columns, ["household_id", "interval_start", "energy_wh"])
    pq.write_table(table.filter(kept), folder / _FRAME / file)


def write_run_files(folder: Path, homes: int) -> None:
    """Write the run files of the CSV and the Parquet files."""
    first, last = lcl.period()
    for form, files in ((_CSV, f"../{_CSV}/*.csv"), (_PARQUET, f"../{_PARQUET}/*.parquet")):
        own = folder / f"run-{form}"
        own.mkdir(exist_ok=True)
        (own / "run.toml").write_text(scenes.run_text(files=files, first=first, last=last))
        scenes.write_roster(own / "roster.csv", homes, first)


def _ingest(pattern: str) -> Callable[[Path], Found]:
    def contender(folder: Path) -> Found:
        from agedp.compute.engine_settings import Engine
        from agedp.stages.ingest import ingest
        from agedp.store.store import Store
        from agedp_data.datasets.validation import ReadingRules

        with tempfile.TemporaryDirectory(dir=folder) as own:
            store = Store(Path(own) / "confidential" / "store", "london", ReadingRules())
            store.folder.mkdir(parents=True)
            return {"kept": ingest(store, [str(folder / pattern)], engine=Engine()).rows_kept}

    return contender


def _run(form: str) -> Callable[[Path], Found]:
    def contender(folder: Path) -> Found:
        from agedp.pipeline import sanitise

        shutil.rmtree(folder / f"run-{form}" / "out", ignore_errors=True)
        return {"days": len(sanitise(folder / f"run-{form}" / "run.toml").table())}

    return contender


def _dask_frame(folder: Path, *, by_group: bool) -> Any:
    """Return a frame with a partition for each row group (a million rows), or for each file (five million rows)."""
    import dask.dataframe as dd

    return dd.read_parquet(str(folder / _FRAME), split_row_groups=by_group)


def _compute_dask(*, by_group: bool) -> Callable[[Path], Found]:
    """Return Dask's own part of the work: every partition is computed and dropped."""

    def contender(folder: Path) -> Found:
        return {"kept": int(_dask_frame(folder, by_group=by_group).map_partitions(len).compute().sum())}

    return contender


def _ingest_dask(*, by_group: bool) -> Callable[[Path], Found]:
    def contender(folder: Path) -> Found:
        from agedp.workspace import StoredReadings

        return {"kept": StoredReadings.of(_dask_frame(folder, by_group=by_group)).delivery.rows_kept}

    return contender


def _release_dask(*, by_group: bool) -> Callable[[Path], Found]:
    def contender(folder: Path) -> Found:
        import agedp

        promise = agedp.Classical(
            epsilon_per_day=0.5,
            max_day_epsilon=0.5,
            epsilon_total="unlimited",
            accept=["useless", "no-credit", "total"],
        )
        frame = _dask_frame(folder, by_group=by_group)
        released = agedp.release(frame, promise=promise, clamp_kwh=500, min_households=1, max_missing=45)
        return {"days": len(released.table)}

    return contender


def _read(pattern: str) -> Callable[[Path], Found]:
    def contender(folder: Path) -> Found:
        import agedp

        frame = agedp.read(str(folder / pattern), dataset="london")
        return {"kept": len(frame), "frame_mb": int(frame.memory_usage(deep=True).sum()) / 1e6}

    return contender


_STAGES, _DASK = "import agedp.pipeline", "import agedp.pipeline, dask.dataframe"
CONTENDERS: dict[str, tuple[Callable[[Path], Found], str]] = {
    "ingest CSV": (_ingest(f"{_CSV}/*.csv"), _STAGES),
    "ingest Parquet": (_ingest(f"{_PARQUET}/*.parquet"), _STAGES),
    "ingest Dask, small partitions": (_ingest_dask(by_group=True), _DASK),
    "ingest Dask, large partitions": (_ingest_dask(by_group=False), _DASK),
    "compute Dask, small partitions": (_compute_dask(by_group=True), _DASK),
    "compute Dask, large partitions": (_compute_dask(by_group=False), _DASK),
    "release CSV": (_run(_CSV), _STAGES),
    "release Parquet": (_run(_PARQUET), _STAGES),
    "release Dask, small partitions": (_release_dask(by_group=True), _DASK),
    "release Dask, large partitions": (_release_dask(by_group=False), _DASK),
    "read CSV": (_read(f"{_CSV}/*.csv"), _STAGES),
    "read Parquet": (_read(f"{_PARQUET}/*.parquet"), _STAGES),
}


def ratios(measured: Iterable[Measured]) -> list[str]:
    """Return the rows of a table: seconds and megabytes of each contender, and their ratios to those of CSV."""
    by_name = {one.contender: one for one in measured}
    lines = ["| | work s | of CSV | memory MB | of CSV |", "|---|---|---|---|---|"]
    for name, one in by_name.items():
        csv = by_name.get(f"{name.partition(' ')[0]} CSV")
        time = memory = ""
        if csv is not None and not (one.failed or csv.failed):
            time, memory = f"{one.work_s / csv.work_s:.2f}", f"{one.peak_mb / csv.peak_mb:.2f}"
        lines.append(f"| {name} | {one.failed or f'{one.work_s:.2f}'} | {time} | {one.peak_mb:.0f} | {memory} |")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.formats")
    parser.add_argument("--rows", type=float, default=4, metavar="MILLIONS")
    parser.add_argument("--only", nargs="+", choices=list(CONTENDERS), default=list(CONTENDERS))
    parser.add_argument("--folder", type=Path, help="where to work; inputs in it are used again (default: a new one)")
    chosen = parser.parse_args()
    folder = chosen.folder or Path(tempfile.mkdtemp(prefix="agedp-bench-"))
    rows = round(chosen.rows * 1e6)
    try:
        if not (folder / _FRAME).exists():
            write_inputs(folder, rows=rows)
            write_run_files(folder, lcl.homes_of(rows))
        measured = []
        for name in chosen.only:
            settled()
            one = measure(name, folder, rows=rows, module=__spec__.name)
            measured.append(one)
            print(one.to_json(), flush=True)
    finally:
        if chosen.folder is None:
            shutil.rmtree(folder)
    print(*ratios(measured), sep="\n")


if __name__ == "__main__":
    import sys

    if sys.argv[1:2] and sys.argv[1] in CONTENDERS:
        run_contender(CONTENDERS)
    else:
        main()
