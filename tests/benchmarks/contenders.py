"""The same job by several hands: daily sums per household and 12 x 12 transition counts of one file in London's layout.

Each contender runs in a process of its own, receives the path and prints one JSON line: what it found, so that the
answers can be compared, and what its start-up took. Public edges and no store, but for `run` (the whole real thing) and
`calibrate` (edges of each household's own), which work in the folder that `scenes` made.
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

from tests.benchmarks.tuned import EDGES, END, HOUSEHOLD, READING, TUNED, WORKERS, Found, summary

BLOCK = 16 * 2**20


def limit(path: Path) -> Found:
    """Parse the columns that are needed over the same blocks and threads, and do nothing with them."""
    import pyarrow as pa
    from pyarrow import csv

    types = {HOUSEHOLD: pa.dictionary(pa.int32(), pa.binary()), END: pa.timestamp("ns"), READING: pa.float64()}
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
    return summary(len(found.day), found.energy_wh.sum(), found.counts.sum(axis=0))


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
    import agedp.pipeline as stage

    apart = {"apart_s": 0.0, "apart_cpu_s": 0.0}

    def timed(original: Callable[..., Any]) -> Callable[..., Any]:
        def call(*words: Any, **keys: Any) -> Any:
            begun, cpu = time.perf_counter(), time.process_time()
            result = original(*words, **keys)
            apart["apart_s"] += time.perf_counter() - begun
            apart["apart_cpu_s"] += time.process_time() - cpu
            return result

        return call

    stage.measure_memory = timed(stage.measure_memory)
    found = stage.calibrate(path)
    checked = {name: check.checked for name, check in found.memory.checks.items()} if found.memory else {}
    counted = {"homes": found.households, "readings": found.readings, "gaps": found.gaps}
    return {**counted, "checked": checked, **apart}


CONTENDERS: dict[str, tuple[Callable[[Path], Found], str]] = {
    "limit": (limit, "import pyarrow.csv"),
    "agedp sums and counts": (agedp, "import tests.benchmarks.one_pass"),
    "agedp run": (run, "import agedp.pipeline"),
    "agedp run again": (run, "import agedp.pipeline"),
    "limit, 5,566 households": (limit, "import pyarrow.csv"),
    "agedp calibrate": (calibrate, "import agedp.pipeline"),
    **TUNED,
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
