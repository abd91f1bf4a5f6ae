"""What agedp takes before it works: megabytes on disk, seconds to import. For docs/benchmarks.md."""

from __future__ import annotations

import re
import resource
import subprocess
import sys
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from benchmarks.measuring import ROOT

_NAME = re.compile(r"[A-Za-z0-9._-]+")
_ROUNDS = 5
_LARGEST = 3
STARTS = {
    "`agedp --help`": "import sys; sys.argv = ['agedp', '--help']; from agedp_flows.cli.app import main; main()",
    "stages": "import agedp.pipeline",
    "flow": "import agedp_flows.release_flow",
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
        paths = [path for part in ("agedp_data", "pipelines", "flows") for path in (ROOT / part).rglob("*.py")]
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
    """Return the lines of the page."""
    sizes = {name: megabytes(name) for name in closure("agedp")}
    flows = sum(megabytes(name) for name in closure("agedp") | closure("prefect"))
    by_size = sorted(sizes, key=lambda name: -sizes[name])
    largest = ", ".join(f"{name} {sizes[name]:.0f} MB" for name in by_size[:_LARGEST])
    starts = ", ".join(f"{what} {seconds(code):.2f}" for what, code in STARTS.items())
    return [
        f"Install: {len(sizes)} distributions, {sum(sizes.values()):,.0f} MB "
        f"(agedp {sizes['agedp']:.1f} MB; {largest});",
        f"with the extra prefect {flows:,.0f} MB. Start in CPU s, a bare Python taken off: {starts}.",
    ]
