"""Results as they come, one line each, and the best of them in `measured.json`, from which both pages are written.

A run that is resumed in the same folder, at the same commit, repeats nothing that is in `results.jsonl`. A part that is
run alone replaces its own figures in `measured.json`; figures of another machine are never put beside these.
"""

from __future__ import annotations

import json
import platform
import re
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import psutil

from benchmarks.measuring import ROOT, Measured

MEASURED = Path(__file__).with_name("measured.json")
_PACKAGES = ("agedp", "numpy", "pyarrow", "dask", "pandas", "polars", "duckdb")


@dataclass(frozen=True, slots=True)
class Results:
    """Everything that the page follows from: machine, versions, the lines on installing, what was measured."""

    machine: str
    versions: str
    install: tuple[str, ...]
    measured: tuple[Measured, ...]


def commit() -> str:
    """Return the commit that is measured, with a mark if files differ from it; tests and pages do not count."""
    head = _git("rev-parse", "--short=10", "HEAD")
    changed = _git("status", "--porcelain", "--", "agedp_data", "pipelines", "flows")
    return f"{head}, changed" if changed else head


def _git(*words: str) -> str:
    answer = subprocess.run(["git", "-C", str(ROOT), *words], capture_output=True, text=True, check=False)
    return answer.stdout.strip() or "" if answer.returncode == 0 else "unknown"


class Log:
    """The results of one folder by key and round, those of other commits left out."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "results.jsonl"
        self.commit = commit()
        self._by_key: dict[tuple[str, int], list[Measured]] = {}
        if self._path.exists():
            for line in self._path.read_text().splitlines():
                entry = _entry(line)
                if entry is not None and entry[1] and entry[1][0].commit == self.commit:
                    self._by_key[entry[0]] = entry[1]

    def get(self, key: str, number: int) -> list[Measured] | None:
        """Return what a round of a key found, None if it has not run."""
        return self._by_key.get((key, number))

    def add(self, key: str, number: int, found: Iterable[Measured], *, size: int = 0) -> list[Measured]:
        """Store what a round found, with commit, date and size."""
        day = f"{datetime.now(UTC):%Y-%m-%d}"
        stored = [replace(one, commit=self.commit, day=day, size=size) for one in found]
        self._by_key[key, number] = stored
        with self._path.open("a") as stream:
            stream.write(json.dumps({"key": key, "round": number, "found": [asdict(one) for one in stored]}) + "\n")
        return stored


def _entry(line: str) -> tuple[tuple[str, int], list[Measured]] | None:
    """Return a line, None if it was cut off by the end of a run."""
    try:
        read = json.loads(line)
    except json.JSONDecodeError:
        return None
    return (read["key"], read["round"]), [Measured(**one) for one in read["found"]]


def best(rounds: Sequence[Measured]) -> Measured:
    """Return the round with the least wall time of work, with the most memory of all rounds; one that failed first."""
    for one in rounds:
        if one.failed:
            return one
    return replace(min(rounds, key=lambda one: one.work_s), peak_mb=max(one.peak_mb for one in rounds))


def read_results(path: Path = MEASURED) -> Results | None:
    """Return what was measured before, None if nothing was."""
    if not path.exists():
        return None
    read: dict[str, Any] = json.loads(path.read_text("utf-8"))
    measured = tuple(Measured(**one) for one in read["measured"])
    return Results(read["machine"], read["versions"], tuple(read["install"]), measured)


def merge(before: Results | None, found: Sequence[Measured], *, install: Sequence[str] = ()) -> Results:
    """Return earlier results with new ones in their place; nothing of another machine is kept."""
    machine = machine_line()
    if before is None or before.machine != machine:
        before = Results(machine, "", (), ())
    by_key = {(one.contender, one.size): one for one in (*before.measured, *found)}
    return Results(machine, version_line(), tuple(install) or before.install, tuple(by_key.values()))


def write_results(results: Results, path: Path = MEASURED) -> None:
    """Write the results, one line for each measurement."""
    lines = ",\n  ".join(json.dumps(_rounded(asdict(one)), sort_keys=True) for one in results.measured)
    install = json.dumps(list(results.install), indent=1)
    path.write_text(
        f'{{"machine": {json.dumps(results.machine)},\n "versions": {json.dumps(results.versions)},\n'
        f' "install": {install},\n "measured": [\n  {lines}\n ]}}\n',
        "utf-8",
    )


def _rounded(value: Any) -> Any:
    """Return floats with five digits after the point, which is more than a clock is good for."""
    if isinstance(value, float):
        return round(value, 5)
    if isinstance(value, dict):
        return {key: _rounded(one) for key, one in value.items()}
    return [_rounded(one) for one in value] if isinstance(value, list) else value


def machine_line() -> str:
    """Return processor, number of logical processors, memory and system."""
    names = re.findall(r"^model name\s*: (.+)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    return (
        f"{names[0] if names else platform.machine()}, {psutil.cpu_count(logical=True)} logical processors, "
        f"{psutil.virtual_memory().total / 2**30:.0f} GiB of memory, {platform.system()}"
    )


def version_line() -> str:
    """Return the versions of Python and of the packages that are compared."""
    return f"Python {platform.python_version()}; " + ", ".join(
        f"{name} {number}" for name in _PACKAGES if (number := _version(name))
    )


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return ""
