"""Measure, and write docs/accuracy.md and its chart: `python -m docs.papers.accuracy [--page]`."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from agedp.local_files import atomic_files
from docs.papers.accuracy.chart import chart
from docs.papers.accuracy.measure import measure
from docs.papers.accuracy.page import MEASURED, page, read_measured

DOCS = Path(__file__).parents[2]


def main() -> None:
    """Measure unless `--page` is given, and write the page and its chart."""
    parser = argparse.ArgumentParser(prog="python -m docs.papers.accuracy", description=__doc__)
    parser.add_argument("--page", action="store_true", help="write the page from the stored figures; measure nothing")
    if not parser.parse_args().page:
        atomic_files.write(MEASURED, (json.dumps(measure(), indent=1) + "\n").encode(), mode=0o644)
    figures = read_measured()
    atomic_files.write(DOCS / "accuracy.md", page(figures).encode(), mode=0o644)
    atomic_files.write(DOCS / "accuracy.svg", chart(figures).encode(), mode=0o644)


if __name__ == "__main__":
    main()
