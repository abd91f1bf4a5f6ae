"""The figures, tables and claims of one paper or of all: `python -m docs.papers all --out papers`.

Data are named files of open data, or synthetic households where none are given; every output names its data.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NoReturn

from agedp.local_files.atomic_files import check_writable
from agedp_data.errors import AgedpError, RunFileError
from docs.papers import age, discounted, neighbourhood, temporal
from docs.papers.households import PaperReadings
from docs.papers.page import write_page
from docs.papers.results import Paper
from docs.papers.style import require_matplotlib
from docs.papers.writing import writable, write

PAPERS: dict[str, Callable[[PaperReadings], Paper]] = {
    "age": age.paper,
    "temporal": temporal.paper,
    "discounted": discounted.paper,
    "neighbourhood": neighbourhood.paper,
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit status."""
    papers: list[Paper] = []
    try:
        options = _parser().parse_args(arguments)
        data = _checked(options)
        for name in PAPERS if options.name == "all" else (options.name,):
            begin = time.perf_counter()
            papers.append(PAPERS[name](data))
            folder = write(papers[-1], options.out)
            _say(f"{name}: {len(papers[-1].figures)} figures, {len(papers[-1].claims)} claims in {folder}"
                 f" ({time.perf_counter() - begin:.0f} s)")  # fmt: skip
        if options.docs:
            _say(f"page: {write_page(papers, options.docs, out=options.out)}")
    except AgedpError as error:
        sys.stderr.write(f"{error.private}\n")
        return error.exit_status
    return 0


def _checked(options: argparse.Namespace) -> PaperReadings:
    """Return the data asked for; an error that would end a run after minutes of computing ends it now."""
    if options.docs and (options.name != "all" or options.small):
        raise RunFileError("the page shows all papers in full: --docs goes with `all`, and not with --small")
    require_matplotlib()
    for folder in (options.out, options.docs):
        if folder:
            _require_writable(folder)
    data = PaperReadings(tuple(options.london), tuple(options.ausgrid), options.small)
    if data.london and options.name in {"age", "all"}:
        _ = data.london_households
    if data.ausgrid and options.name in {"discounted", "neighbourhood", "all"}:
        _ = data.ausgrid_households
    return data


def _require_writable(folder: Path) -> None:
    with writable(folder):
        folder.mkdir(parents=True, exist_ok=True)
        check_writable(folder, 1)


class _Parser(argparse.ArgumentParser):
    """Reports an error in one line, as the command `agedp` does."""

    def error(self, message: str) -> NoReturn:
        raise RunFileError(f"{message}; `{self.prog} --help` lists what there is")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="python -m docs.papers", description=__doc__.partition("\n")[0])
    parser.add_argument("name", choices=[*PAPERS, "all"])
    parser.add_argument("--out", type=Path, default=Path("papers"), help="folder of tables, figures and claims")
    parser.add_argument("--london", nargs="+", default=[], metavar="FILES", help="Low Carbon London (default: made up)")
    parser.add_argument("--ausgrid", nargs="+", default=[], metavar="FILES", help="an Ausgrid year (default: made up)")
    parser.add_argument("--small", action="store_true", help="a few synthetic households and repetitions, to try it")
    parser.add_argument("--docs", type=Path, help="with `all`: write papers.md and papers/*.svg into this folder, too")
    return parser


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    raise SystemExit(main())
