"""All contenders side by side in one run, as ratios: `python -m tests.benchmarks --rows 1 10 40`.

Every figure is kept as it comes (`results.jsonl` in the folder), a contender that fails is named and the others go on,
and the report is written anew after each size, so that a run can be left alone. Needs agedp[bench].
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.benchmarks.contenders import CONTENDERS
from tests.benchmarks.judging import disagreements, judged
from tests.benchmarks.lcl import write_night
from tests.benchmarks.measuring import Measured, measure, settled
from tests.benchmarks.report import write_report
from tests.benchmarks.scenes import scene, year_of_nights

FULL_ROWS = 167_932_474
DOCS = Path(__file__).parents[2] / "docs"
BY_SIZE = [name for name in CONTENDERS if name != "agedp night"]
SMALL_HOMES, ALL_HOMES = 300, 5_566


def main() -> None:
    chosen = _arguments()
    sizes = [round(millions * 1e6) for millions in chosen.rows] + [FULL_ROWS] * chosen.full
    folder = chosen.folder or Path(tempfile.mkdtemp(prefix="agedp-bench-"))
    folder.mkdir(parents=True, exist_ok=True)
    found: list[Measured] = []
    try:
        for rows in sizes:
            found += compared(folder, rows, chosen.only, rounds=chosen.rounds, minutes=chosen.minutes)
            write_report(chosen.docs, found)
        for homes in [SMALL_HOMES] + [ALL_HOMES] * chosen.full:
            if not chosen.only or "agedp night" in chosen.only:
                found.append(_noted(folder, one_more_night(folder, homes, minutes=chosen.minutes)))
                write_report(chosen.docs, found)
    finally:
        if chosen.folder is None:
            shutil.rmtree(folder)
    for line in judged(found):
        _say(str(line))
    for line in disagreements(found):
        _say(f"DISAGREE: {line}")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks", description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", nargs="*", type=float, default=[1, 10, 40], metavar="MILLIONS")
    parser.add_argument("--full", action="store_true", help="the size of the real London set, and its nights, too")
    parser.add_argument("--folder", type=Path, help="where to work; inputs in it are used again (default: a new one)")
    parser.add_argument("--only", nargs="+", choices=list(CONTENDERS), default=[])
    parser.add_argument("--rounds", type=int, default=3, help="the best of so many, interleaved")
    parser.add_argument("--minutes", type=float, default=60, help="how long one contender may take")
    parser.add_argument("--docs", type=Path, default=DOCS, help="where benchmarks.md and benchmarks.svg go")
    return parser.parse_args()


def compared(folder: Path, rows: int, only: Sequence[str], *, rounds: int, minutes: float) -> list[Measured]:
    """Return the best of several rounds of every contender at one size; one that fails is not tried again."""
    made = scene(folder, rows)
    best: dict[str, Measured] = {}
    for _ in range(rounds):
        for name in [name for name in BY_SIZE if not only or name in only]:
            if name in best and best[name].failed:
                continue
            settled()
            one = _noted(folder, measure(name, made.ready(name), rows=made.rows, minutes=minutes))
            if name not in best or one.failed or one.work_s < best[name].work_s:
                best[name] = one
    return list(best.values())


def one_more_night(folder: Path, homes: int, *, minutes: float, nights: int = 365) -> Measured:
    """Return what one new day takes in a store of a year of nightly files."""
    run_file, incoming, coming = year_of_nights(folder, homes, nights)
    built = measure("agedp night", run_file, rows=nights * homes * 48, minutes=minutes)
    if not built.failed:
        write_night(incoming / f"{coming}.csv", day=str(coming), homes=homes)
        settled()
        built = measure("agedp night", run_file, rows=homes * 48, minutes=minutes)
    shutil.rmtree(run_file.parent)
    return built


def _noted(folder: Path, one: Measured) -> Measured:
    with (folder / "results.jsonl").open("a") as stream:
        stream.write(one.to_json() + "\n")
    took = one.failed or f"{one.work_s:8.2f} s {one.cpu_s:8.2f} CPU s {one.peak_mb:8.0f} MB"
    _say(f"{one.rows / 1e6:8.2f} M  {one.contender:24s} {took}")
    return one


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
