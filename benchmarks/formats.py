"""The same readings as CSV files, Parquet files and a Dask frame: `python -m benchmarks.formats --rows 4`.

Each contender releases or reads end to end, in a process of its own. A Dask frame is the form that `agedp.read`
returns, with a partition for each row group (small, a million rows) or file (large, five million). A run file
releases one day more than a frame, whose period is that of its complete days. The table prints time and memory, and
their ratios to CSV.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks import readings, scenes
from benchmarks.contenders import END, HOUSEHOLD, READING, Contenders, Found, run_contender
from benchmarks.measuring import Measured, measure, settled

ROWS, HOMES_PER_FILE = 4_000_000, 166  # of a file: about 5 million rows, 260 MB of CSV
_CSV, _PARQUET, _FRAME = "csv", "parquet", "frame"


def write_inputs(folder: Path, *, rows: int, seed: int = 1) -> None:
    """Write the same rows in three forms, and the run files of the first two."""
    homes, slots = readings.homes_of(rows), readings.slots_of_rows()
    between, rng = readings.bytes_between(slots), np.random.default_rng(seed)
    for form in (_CSV, _PARQUET, _FRAME):
        (folder / form).mkdir(parents=True, exist_ok=True)
    for number, first in enumerate(range(0, homes, HOMES_PER_FILE)):
        names = [readings.name_of(home) for home in range(first, min(first + HOMES_PER_FILE, homes))]
        energies = [readings.energy_of_rows(slots, rng) for _ in names]
        rows_of = zip(names, energies, strict=True)
        with (folder / _CSV / f"{number:03}.csv").open("wb") as stream:
            stream.write(readings.HEADER)
            stream.writelines(readings.rows_of_home(name.encode(), between, energy) for name, energy in rows_of)
        _write_tables(folder, f"{number:03}.parquet", names, slots, np.concatenate(energies))
    first_day, last_day = readings.period()
    for form in (_CSV, _PARQUET):
        own = folder / f"run-{form}"
        own.mkdir(exist_ok=True)
        (own / "run.toml").write_text(scenes.archive_text(f"../{form}/*.{form}", first_day, last_day))
        scenes.write_roster(own / "roster.csv", homes, first_day)


def _write_tables(folder: Path, file: str, names: list[str], slots: np.ndarray, energy_wh: np.ndarray) -> None:
    """Write one file in London's columns, and one as `agedp.read` returns readings: those without one are not in it."""
    is_odd = np.arange(len(slots)) == readings.ODD_ROW
    seconds = readings.FIRST.astype("M8[s]").astype(np.int64) + 1800 * slots + 37 * is_odd
    end = pa.array(np.tile(seconds * 10**6, len(names)), pa.timestamp("us"))
    household = pa.array(names).take(pa.array(np.repeat(np.arange(len(names)), len(slots))))
    kwh = pa.array(energy_wh / 1000, mask=np.tile(is_odd, len(names)))
    pq.write_table(pa.table([household, end, kwh], [HOUSEHOLD, END, READING]), folder / _PARQUET / file)
    start = pa.array(np.tile((seconds - 1800) * 10**6, len(names)), pa.timestamp("us", "UTC"))
    table = pa.table([household, start, pa.array(energy_wh)], ["household_id", "interval_start", "energy_wh"])
    pq.write_table(table.filter(pa.array(np.tile(~is_odd, len(names)))), folder / _FRAME / file)


def _run(folder: Path, *, form: str) -> Found:
    from agedp.pipeline import sanitise

    shutil.rmtree(folder / f"run-{form}" / "out", ignore_errors=True)
    return {"days": len(sanitise(folder / f"run-{form}" / "run.toml").table())}


def _release_dask(folder: Path, *, by_group: bool) -> Found:
    import dask.dataframe as dd

    import agedp

    promise = agedp.Classical(
        epsilon_per_day=50,
        max_day_epsilon=50,
        epsilon_total="unlimited",
        accept=["useless", "no-credit", "total"],
    )
    frame = dd.read_parquet(str(folder / _FRAME), split_row_groups=by_group)
    released = agedp.release(frame, promise=promise, clamp_kwh=500, min_households=1, max_missing=45)
    return {"days": len(released.table)}


def _read(folder: Path, *, form: str) -> Found:
    import agedp

    frame: Any = agedp.read(str(folder / form / f"*.{form}"), dataset="london")
    return {"kept": len(frame), "frame_mb": int(frame.memory_usage(deep=True).sum()) / 1e6}


_STAGES, _DASK = "import agedp.pipeline", "import agedp.pipeline, dask.dataframe"
CONTENDERS: Contenders = {
    "release CSV": (partial(_run, form=_CSV), _STAGES),
    "release Parquet": (partial(_run, form=_PARQUET), _STAGES),
    "release a Dask frame, small partitions": (partial(_release_dask, by_group=True), _DASK),
    "release a Dask frame, large partitions": (partial(_release_dask, by_group=False), _DASK),
    "read CSV": (partial(_read, form=_CSV), _STAGES),
    "read Parquet": (partial(_read, form=_PARQUET), _STAGES),
}


def formats(folder: Path, *, rows: int = ROWS, only: Sequence[str] = tuple(CONTENDERS)) -> list[Measured]:
    """Return what each form takes; inputs in the folder are used again."""
    made = folder / f"formats-{rows}"
    if not (made / "written").exists():
        write_inputs(made, rows=rows)
        (made / "written").touch()
    measured = []
    for name in only:
        settled()
        measured.append(measure(name, made, rows=rows, module="benchmarks.formats"))
    return measured


def ratios(measured: Iterable[Measured]) -> list[str]:
    """Return the rows of a table: seconds and megabytes of each contender, and their ratios to those of CSV."""
    by_name = {one.contender: one for one in measured}
    lines = ["| | work s | of CSV | CPU s | of CSV | memory MB | of CSV |", f"|{'---|' * 7}"]
    for name, one in by_name.items():
        csv = by_name.get(f"{name.partition(' ')[0]} CSV", one)
        pairs = [(one.work_s, csv.work_s), (one.cpu_s, csv.cpu_s), (one.peak_mb, csv.peak_mb)]
        cells = [f"{own:.2f} | {own / base:.2f}" for own, base in pairs if not (one.failed or csv.failed)]
        lines.append(f"| {name} | {' | '.join(cells) or one.failed} |")
    return lines


def main() -> None:
    """Measure the forms, and print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.formats", description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=float, default=ROWS / 1e6, metavar="MILLIONS")
    parser.add_argument("--only", nargs="+", choices=list(CONTENDERS), default=list(CONTENDERS))
    parser.add_argument("--folder", type=Path, help="where to work; inputs in it are used again (default: a new one)")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="agedp-benchmarks-") as new:
        print(*ratios(formats(chosen.folder or Path(new), rows=round(chosen.rows * 1e6), only=chosen.only)), sep="\n")


if __name__ == "__main__":
    run_contender(CONTENDERS) if sys.argv[1:2] and sys.argv[1] in CONTENDERS else main()
