"""Everything that docs/benchmarks.md prints: `python -m benchmarks --all`.

    python -m benchmarks --all --plan          # what would run, and how long it takes
    python -m benchmarks --parts 40 nightly    # some parts; their figures replace those of the page
    python -m benchmarks --page                # the page again, from measured.json; nothing is measured

Every result is kept as it comes (`results.jsonl` in the folder), a contender that fails is named and the others go on,
and the page is written after each part. The same command in the same folder continues where it was stopped; results of
another commit are not used again. Needs agedp[bench], 15 GB of disk and a machine that does nothing else.
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

from benchmarks import cluster, nights
from benchmarks.compare import worktrees
from benchmarks.contenders import CALIBRATE_BEFORE, CONTENDERS, RUN_BEFORE
from benchmarks.formats import formats
from benchmarks.install import install_lines
from benchmarks.measuring import ROOT, Measured, measure, settled
from benchmarks.plans import plans
from benchmarks.records import MEASURED, Log, best, merge, read_results, write_results
from benchmarks.report import disagreements, write_report
from benchmarks.scenes import scene

DOCS = ROOT / "docs"
BEFORE = "2b743c0e"
"""The release before: 0.2.0."""
SIZES = {"1": (1_000_000, 3), "10": (10_000_000, 2), "40": (40_000_000, 2), "168": (167_932_474, 1)}
"""Rows, and rounds of each contender; the last is the size of the real London set."""
NIGHTS: dict[str, Callable[[Path], list[Measured]]] = {
    "formats": formats,
    "plans": plans,
    "cells": nights.cells,
    "roster": nights.roster,
    "nightly": nights.nightly,
    "million": nights.million,
    "cluster": cluster.cluster,
}
INSTALL = "install"
MINUTES = {
    "1": 1, "10": 1.5, "40": 4, "formats": 2, "plans": 1, "cells": 2, "roster": 1, "nightly": 4, "million": 1,
    "cluster": 4, INSTALL: 0.5, "168": 9,
}  # fmt: skip
"""On two processors of 2026 that do nothing else, files written included."""


def main() -> None:
    """Measure the parts that the command line names, and write the page."""
    chosen = _arguments()
    parts = [part for part in MINUTES if chosen.all or part in chosen.parts]
    for part in parts:
        _say(f"{part:8s} {MINUTES[part]:5.1f} min")
    _say(f"{'total':8s} {sum(MINUTES[part] for part in parts):5.1f} min, if the machine does nothing else")
    if chosen.plan:
        return
    os.environ["XDG_DATA_HOME"] = os.devnull  # no measurement enters the accounts of whoever measures
    stored = MEASURED if chosen.docs == DOCS else chosen.docs / "measured.json"
    chosen.docs.mkdir(parents=True, exist_ok=True)
    idle = psutil.cpu_times_percent(interval=2).idle if parts else 100
    if idle < 95:
        _say(f"WARNING: other programs use {100 - idle:.0f}% of the processors; the page will say so")
    folder = chosen.folder or Path(tempfile.mkdtemp(prefix="agedp-benchmarks-"))
    folder.mkdir(parents=True, exist_ok=True)
    log = Log(folder)
    for part in parts:
        install = install_lines() if part == INSTALL else []
        found = [] if part == INSTALL else _part(folder, part, log, chosen)
        write_results(merge(read_results(stored), found, install=install), stored)
        write_page(chosen.docs, stored)
    write_page(chosen.docs, stored)
    if not chosen.folder:
        shutil.rmtree(folder)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__.partition("\n")[0])
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--all", action="store_true", help="every part, the size of the real London set last")
    what.add_argument("--parts", nargs="+", choices=MINUTES, default=[], metavar="PART", help=", ".join(MINUTES))
    what.add_argument("--page", action="store_true", help="measure nothing, write the page again")
    parser.add_argument("--plan", action="store_true", help="print what would run, and how long it takes")
    parser.add_argument("--folder", type=Path, help="where to work, kept at the end (default: one that is removed)")
    parser.add_argument("--only", nargs="+", choices=list(CONTENDERS), default=[], help="of the files: these alone")
    parser.add_argument("--rounds", type=int, help="the best of so many rounds (default: 3, 2, 2 and 1)")
    parser.add_argument("--minutes", type=float, default=6, help="how long one contender may take")
    parser.add_argument("--docs", type=Path, default=DOCS, help="where the page goes; another folder has own figures")
    return parser.parse_args()


def _part(folder: Path, part: str, log: Log, chosen: argparse.Namespace) -> list[Measured]:
    """Return what a part measured."""
    if part in SIZES:
        rows, rounds = SIZES[part]
        with worktrees(ROOT, [BEFORE], folder / "0.2.0") as (before,):
            return compared(
                folder, rows, log, before, only=chosen.only, rounds=chosen.rounds or rounds, minutes=chosen.minutes
            )
    found = log.get(part, 0)
    if found is None:
        found = log.add(part, 0, NIGHTS[part](folder))
        for one in found:
            _show(one)
    return found


def compared(
    folder: Path, rows: int, log: Log, before: Path, *, only: Sequence[str] = (), rounds: int, minutes: float
) -> list[Measured]:
    """Return the best of several rounds of every contender at one size; one that fails is not tried again."""
    by_name: dict[str, list[Measured]] = {name: [] for name in CONTENDERS if not only or name in only}
    keys = [(name, number) for number in range(rounds) for name in by_name]
    if any(log.get(f"{name} at {rows}", number) is None for name, number in keys):
        made = scene(folder, rows)
    for name, number in keys:
        key = f"{name} at {rows}"
        found = log.get(key, number)
        if found is None and by_name[name] and by_name[name][-1].failed:
            continue
        if found is None:
            settled()
            packages = before if name in (RUN_BEFORE, CALIBRATE_BEFORE) else ROOT
            one = measure(name, made.ready(name), rows=made.rows_of(name), minutes=minutes, packages=packages)
            found = log.add(key, number, [one], size=rows)
            _show(found[0])
        by_name[name] += found
    shutil.rmtree(folder / f"rows-{rows}", ignore_errors=True)
    return [best(own) for own in by_name.values() if own]


def _show(one: Measured) -> None:
    took = one.failed or f"{one.work_s:8.2f} s {one.cpu_s:8.2f} CPU s {one.peak_mb:8.0f} MB"
    _say(f"{one.rows / 1e6:8.2f} M  {one.contender:40s} {took}  others {one.others:.0%}")


def write_page(docs: Path, stored: Path) -> None:
    """Write page and picture of the stored figures, and name contenders that disagree."""
    results = read_results(stored)
    if results is None:
        raise SystemExit(f"{stored}: nothing was measured yet. Measure a part first.")
    write_report(docs, results)
    for line in disagreements(results.measured):
        _say(f"DISAGREE: {line}")


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
