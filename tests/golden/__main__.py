"""Update the golden set's digests, or store its artefacts: `python -m tests.golden --help`."""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from tests.golden.artefacts import (
    RUNS,
    collect,
    differences,
    digests_of,
    rewritten_values,
    stored_digests,
    write_artefacts,
    write_digests,
)


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m tests.golden", description="The golden set: compare, store, update."
    )
    parser.add_argument("runs", nargs="*", metavar="RUN", help="names of runs; all of them if none is named")
    parser.add_argument("--write", type=Path, metavar="FOLDER", help="store the artefacts here, for `diff -r`")
    parser.add_argument(
        "--update",
        action="store_true",
        help="rewrite contracts.json and texts.json; add new runs and columns to values.json, which is never rewritten",
    )
    chosen = parser.parse_args()
    unknown = sorted({*chosen.runs} - {*RUNS})
    if unknown:
        parser.error(f"unknown runs: {', '.join(unknown)}; known: {', '.join(RUNS)}")
    stored = stored_digests()
    updated = {name: digests for name, digests in stored.items() if name in RUNS}
    for name in chosen.runs or RUNS:
        with tempfile.TemporaryDirectory(prefix="golden-") as folder:
            artefacts = collect(name, Path(folder))
        if chosen.write:
            write_artefacts(artefacts, chosen.write / name)
        updated[name] = digests_of(artefacts)
        lines = differences(stored.get(name, {}), updated[name])
        print(f"{name}: {len(lines)} differences", *lines, sep="\n  ")
    if chosen.update:
        if lines := rewritten_values(stored, updated):
            parser.exit(1, "\n  ".join(["nothing is updated: values are never rewritten", *lines, ""]))
        write_digests(updated)


if __name__ == "__main__":
    main()
