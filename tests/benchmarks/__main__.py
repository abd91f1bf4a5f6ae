"""Everything that docs/benchmarks.md and docs/scale.md print: `python -m tests.benchmarks --all`.

    python -m tests.benchmarks --all --plan          # what would run, and how long it takes
    python -m tests.benchmarks --parts 40 nightly    # some parts; their figures replace those of the pages
    python -m tests.benchmarks --pages               # the pages again, from measured.json; nothing is measured

Every result is kept as it comes (`results.jsonl` in the folder), a contender that fails is named and the others go on,
and the pages are written after each part. The same command in the same folder continues where it was stopped; results
of another commit are not used again. Needs agedp[bench], 15 GB of disk and a machine that does nothing else.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import psutil

from tests.benchmarks import million_meters, nights
from tests.benchmarks.contenders import CONTENDERS
from tests.benchmarks.judging import disagreements, judged
from tests.benchmarks.measuring import Measured, measure, settled
from tests.benchmarks.records import MEASURED, Log, best, merge, read_results, write_results
from tests.benchmarks.report import write_report
from tests.benchmarks.scale import write_scale
from tests.benchmarks.scenes import scene
from tests.source_path import ROOT

DOCS = ROOT / "docs"
os.environ["XDG_DATA_HOME"] = os.devnull  # no measurement enters the accounts of whoever measures
FULL_ROWS = 167_932_474
SIZES = {"1": 1_000_000, "10": 10_000_000, "40": 40_000_000, "168": FULL_ROWS}
ROUNDS = {"1": 3, "10": 2, "40": 2, "168": 1}
LARGEST = {"pandas groupby-apply": 10_000_000, "pandas": 40_000_000, "pandas, pyarrow": 40_000_000}
"""Contenders that hold all rows in memory, or need minutes, are not tried beyond this size."""
NIGHTS: dict[str, Callable[[Path], list[Measured]]] = {
    "cells": nights.cells,
    "roster": nights.roster,
    "nightly": nights.nightly,
    "million": nights.million,
    "cluster": million_meters.cluster,
}
INSTALL = "install"
MINUTES = {
    "1": 1,
    "10": 1.5,
    "40": 5.5,
    "168": 9,
    "cells": 2,
    "roster": 1,
    "nightly": 4,
    "million": 1,
    "cluster": 4,
    INSTALL: 0.5,
}
"""On two processors of 2026 that do nothing else, files written included."""
ALL = ("1", "10", "40", "cells", "roster", "nightly", "million", "cluster", INSTALL, "168")
_QUIET = 0.05


def main() -> None:
    """Measure the parts that the command line names, and write the pages."""
    chosen = _arguments()
    parts = [part for part in ALL if chosen.all or part in chosen.parts]
    if not chosen.pages:
        _print_plan(parts)
    if chosen.plan:
        return
    stored = MEASURED if chosen.docs == DOCS else chosen.docs / "measured.json"
    chosen.docs.mkdir(parents=True, exist_ok=True)
    if chosen.fresh:
        stored.unlink(missing_ok=True)
    folder = chosen.folder or Path(tempfile.gettempdir()) / "agedp-benchmarks"
    if not chosen.pages:
        folder.mkdir(parents=True, exist_ok=True)
        _warn_if_busy()
        log = Log(folder)
        for part in parts:
            found, install = _part(folder, part, log, chosen)
            results = merge(read_results(stored), found, install=install)
            write_results(results, stored)
            _write_pages(chosen.docs, stored)
    _write_pages(chosen.docs, stored)
    if not (chosen.pages or chosen.folder):
        shutil.rmtree(folder)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks", description=__doc__.partition("\n")[0])
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--all", action="store_true", help="every part, the size of the real London set last")
    what.add_argument("--parts", nargs="+", choices=ALL, default=[], metavar="PART", help=f"some of: {', '.join(ALL)}")
    what.add_argument("--pages", action="store_true", help="measure nothing, write the pages again")
    parser.add_argument("--plan", action="store_true", help="print what would run, and how long it takes")
    parser.add_argument("--fresh", action="store_true", help="forget the figures of parts that do not run")
    parser.add_argument("--folder", type=Path, help="where to work, kept at the end (default: one that is removed)")
    parser.add_argument("--only", nargs="+", choices=list(CONTENDERS), default=[], help="of the files: these alone")
    parser.add_argument("--rounds", type=int, help="the best of so many rounds (default: 3, 2, 2 and 1)")
    parser.add_argument("--minutes", type=float, default=6, help="how long one contender may take")
    parser.add_argument(
        "--docs", type=Path, default=DOCS, help="where the pages go; other folders get figures of their own"
    )
    return parser.parse_args()


def _print_plan(parts: Sequence[str]) -> None:
    for part in parts:
        rows = f"{ROUNDS[part]} rounds of a file of {SIZES[part] / 1e6:.0f} million rows" if part in SIZES else ""
        _say(f"{part:8s} {MINUTES[part]:5.1f} min  {rows}".rstrip())
    _say(f"{'total':8s} {sum(MINUTES[part] for part in parts):5.1f} min, if the machine does nothing else")


def _warn_if_busy() -> None:
    idle = psutil.cpu_times_percent(interval=2).idle / 100
    if 1 - idle > _QUIET:
        _say(f"WARNING: other programs use {1 - idle:.0%} of the processors; the pages will say so")


def _part(folder: Path, part: str, log: Log, chosen: argparse.Namespace) -> tuple[list[Measured], list[str]]:
    """Return what a part measured, and the lines on installing if it is that part."""
    if part == INSTALL:
        from tests.benchmarks.packaging import install_lines

        return [], install_lines()
    if part in SIZES:
        rounds = chosen.rounds or ROUNDS[part]
        return compared(folder, SIZES[part], log, only=chosen.only, rounds=rounds, minutes=chosen.minutes), []
    found = log.get(part, 0)
    if found is None:
        found = log.add(part, 0, NIGHTS[part](folder))
        for one in found:
            _show(one)
    return found, []


def compared(
    folder: Path, rows: int, log: Log, *, only: Sequence[str] = (), rounds: int, minutes: float
) -> list[Measured]:
    """Return the best of several rounds of every contender at one size; one that fails is not tried again."""
    names = [name for name in CONTENDERS if (not only or name in only) and rows <= LARGEST.get(name, rows)]
    by_name: dict[str, list[Measured]] = {name: [] for name in names}
    keys = [(name, number) for number in range(rounds) for name in names]
    if any(log.get(f"{name} at {rows}", number) is None for name, number in keys):
        made = scene(folder, rows)
    for name, number in keys:
        key = f"{name} at {rows}"
        found = log.get(key, number)
        if found is None and by_name[name] and by_name[name][-1].failed:
            continue
        if found is None:
            settled()
            one = measure(name, made.ready(name), rows=made.rows_of(name), minutes=minutes)
            found = log.add(key, number, [one], size=rows)
            _show(found[0])
        by_name[name] += found
    shutil.rmtree(folder / f"rows-{rows}", ignore_errors=True)
    return [best(own) for own in by_name.values() if own]


def _show(one: Measured) -> None:
    took = one.failed or f"{one.work_s:8.2f} s {one.cpu_s:8.2f} CPU s {one.peak_mb:8.0f} MB"
    _say(f"{one.rows / 1e6:8.2f} M  {one.contender:40s} {took}  others {one.others:.0%}")


def _write_pages(docs: Path, stored: Path) -> None:
    results = read_results(stored)
    if results is None:
        raise SystemExit(f"{stored}: nothing was measured yet. Measure a part first.")
    write_report(docs, results)
    write_scale(docs, results)
    for verdict in judged(results.measured):
        _say(str(verdict))
    for line in disagreements(results.measured):
        _say(f"DISAGREE: {line}")


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
