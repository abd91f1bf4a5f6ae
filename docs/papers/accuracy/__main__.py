"""Measure, and draw the chart docs/accuracy.svg: `python -m docs.papers.accuracy [--chart]`."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from agedp.local_files import atomic_files
from docs.papers.accuracy.chart import chart
from docs.papers.accuracy.measure import measure
from docs.papers.accuracy.page import MEASURED, read_measured

DOCS = Path(__file__).parents[2]


def main() -> None:
    """Measure unless `--chart` is given, and draw the chart."""
    parser = argparse.ArgumentParser(prog="python -m docs.papers.accuracy", description=__doc__)
    parser.add_argument("--chart", action="store_true", help="draw the stored figures; measure nothing")
    if not parser.parse_args().chart:
        atomic_files.write(MEASURED, (json.dumps(measure(), indent=1) + "\n").encode(), mode=0o644)
    atomic_files.write(DOCS / "accuracy.svg", chart(read_measured()).encode(), mode=0o644)


if __name__ == "__main__":
    main()
