"""What agedp takes before it works: megabytes on disk, seconds to import. For docs/benchmarks.md."""

from __future__ import annotations

import re
import resource
import subprocess
import sys
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

_NAME = re.compile(r"[A-Za-z0-9._-]+")
_ROUNDS = 5
_LARGEST = 6
STARTS = {
    "`agedp --help`": "import sys; sys.argv = ['agedp', '--help']; from agedp_flows.cli.app import main; main()",
    "`import agedp_data`": "import agedp_data",
    "the stages (`agedp.pipeline`)": "import agedp.pipeline",
    "the flow (`agedp_flows.release_flow`, with Prefect)": "import agedp_flows.release_flow",
}


def closure(name: str) -> set[str]:
    """Return the distributions that one needs, by name, itself included; extras and other platforms left out."""
    found: set[str] = set()
    waiting = [name]
    while waiting:
        one = _normal(waiting.pop())
        if one in found:
            continue
        try:
            needs = distribution(one).requires or []
        except PackageNotFoundError:
            continue
        found.add(one)
        waiting += [matched[0] for each in needs if "extra ==" not in each and (matched := _NAME.match(each))]
    return found


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def megabytes(name: str) -> float:
    """Return what the files of a distribution take; of one that is installed by link, its packages."""
    files = distribution(name).files or []
    paths = [Path(str(each.locate())) for each in files]
    if name == "agedp" and not any(path.parent.name == "agedp_flows" for path in paths):
        root = Path(__file__).parents[2]
        paths = [path for part in ("agedp_data", "pipelines", "flows") for path in (root / part).rglob("*.py")]
    return sum(path.stat().st_size for path in paths if path.is_file()) / 1e6


def seconds(code: str) -> float:
    """Return the least CPU time of several starts of Python with this code, a bare start's taken off.

    Not the wall time: importing waits for nothing but the processor, and this is told by a busy machine too.
    """
    return max(_least(code) - _least("pass"), 0.0)


def _least(code: str) -> float:
    spent = []
    for _ in range(_ROUNDS):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, "-c", code], stdout=subprocess.DEVNULL, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        spent.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return min(spent)


@cache
def install_lines() -> list[str]:
    """Return the section of the report."""
    sizes = {name: megabytes(name) for name in closure("agedp")}
    flows = {name: megabytes(name) for name in closure("agedp") | closure("prefect")}
    largest = sorted(sizes, key=lambda name: -sizes[name])[:_LARGEST]
    parts = ", ".join(f"{name} {sizes[name]:.0f} MB" for name in largest)
    return [
        "## Install and start",
        "",
        f"Without extras, {len(sizes)} distributions, {sum(sizes.values()):,.0f} MB on disk; agedp itself",
        f"{sizes['agedp']:.1f} MB, the largest {parts}.",
        f"With the extra prefect {len(flows)} distributions, {sum(flows.values()):,.0f} MB.",
        "",
        f"| | CPU s, least of {_ROUNDS}, a bare `python` taken off |",
        "|---|---|",
        *(f"| {what} | {seconds(code):.2f} |" for what, code in STARTS.items()),
    ]
