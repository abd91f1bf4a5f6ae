"""The figures, tables and claims of one paper or of all: `python -m pipelines.papers all --out papers`.

Data are named files of open data, or made-up homes where none are given; every output says which it rests on.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from agedp_data.errors import AgedpError
from pipelines.papers import age, discounted, neighbourhood, temporal
from pipelines.papers.homes import Data
from pipelines.papers.page import write_page
from pipelines.papers.results import Paper
from pipelines.papers.writing import write

PAPERS: dict[str, Callable[[Data], Paper]] = {
    "age": age.paper,
    "temporal": temporal.paper,
    "discounted": discounted.paper,
    "neighbourhood": neighbourhood.paper,
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit status."""
    given = _parser().parse_args(arguments)
    data = Data(tuple(given.london), tuple(given.ausgrid), given.small)
    made: list[Paper] = []
    try:
        for name in PAPERS if given.name == "all" else (given.name,):
            begin = time.perf_counter()
            made.append(PAPERS[name](data))
            folder = write(made[-1], given.out)
            _say(f"{name}: {len(made[-1].figures)} figures, {len(made[-1].claims)} claims in {folder}"
                 f" ({time.perf_counter() - begin:.0f} s)")  # fmt: skip
        if given.docs:
            _say(f"page: {write_page(made, given.docs, out=given.out)}")
    except AgedpError as error:
        sys.stderr.write(f"{error.private}\n")
        return error.exit_status
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m pipelines.papers", description=__doc__.partition("\n")[0])
    parser.add_argument("name", choices=[*PAPERS, "all"])
    parser.add_argument("--out", type=Path, default=Path("papers"), help="folder of tables, figures and claims")
    parser.add_argument("--london", nargs="+", default=[], metavar="FILES", help="Low Carbon London (default: made up)")
    parser.add_argument("--ausgrid", nargs="+", default=[], metavar="FILES", help="an Ausgrid year (default: made up)")
    parser.add_argument("--small", action="store_true", help="a few made-up homes and repetitions, to try it")
    parser.add_argument("--docs", type=Path, help="write papers.md and papers/*.svg into this folder, too")
    return parser


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    raise SystemExit(main())
