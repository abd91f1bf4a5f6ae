"""What holds for a worker before it runs a task: the versions of this process, and the folder that all machines share.

The workers at the start of a run are asked at once, so that nothing is sent to a cluster that cannot work. A worker
that joins later, as adaptive clusters add them, is checked by the first task of each stage that it receives: a result
of other versions, or readings written to a disk of its own, must not become part of a run.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache, partial
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

from agedp_data.errors import InputError

_PACKAGES: Final = ("agedp", "dask", "distributed", "numpy", "pyarrow")
_PROBE: Final = ".probe-"
_ABANDONED_S: Final = 7 * 24 * 3600


def installed_versions() -> dict[str, str]:
    """Return the versions that must be the same here and on every worker."""
    return {name: version(name) for name in _PACKAGES}


def check_versions(own_versions: Mapping[str, str], worker_versions: Mapping[str, str]) -> None:
    """Check the versions of a worker.

    Raises:
        InputError: a package has another version there.
    """
    package = next((name for name in own_versions if worker_versions.get(name) != own_versions[name]), None)
    if package is not None:
        raise InputError(
            f"[engine] scheduler: {package} is {own_versions[package]} here and "
            f"{worker_versions.get(package)} on a worker; install the same versions on both"
        )


@dataclass(frozen=True, slots=True)
class WorkerCheck:
    """What a worker checks before its first task of a stage.

    Attributes:
        versions: the packages of this process with their versions.
        probe: a file in the folder that all share; None before one is named.
    """

    versions: tuple[tuple[str, str], ...]
    probe: str | None

    def before(self, function: Callable[[Any], Any]) -> Callable[[Any], Any]:
        """Return a function that checks its worker and then does the same."""
        return partial(_run_checked, self, function)


def _run_checked(check: WorkerCheck, function: Callable[[Any], Any], argument: Any) -> Any:  # noqa: ANN401
    _check_worker(check)
    return function(argument)


@lru_cache(maxsize=8)
def _check_worker(check: WorkerCheck) -> None:
    check_versions(dict(check.versions), installed_versions())
    if check.probe is not None and not path_exists(check.probe):
        raise InputError(
            "[engine] scheduler: a worker that joined during the run does not see [output] confidential; it must be a "
            "folder that all of them share"
        )


@contextmanager
def probe_file(folder: Path) -> Iterator[str]:
    """Make an empty file that every worker must see; it is removed in the end."""
    _remove_abandoned(folder)
    probe = folder / f"{_PROBE}{os.urandom(8).hex()}"
    probe.touch(mode=0o600)
    try:
        yield str(probe)
    finally:
        with suppress(FileNotFoundError):
            probe.unlink()


def _remove_abandoned(folder: Path) -> None:
    """Remove the files of processes that were killed."""
    for path in folder.glob(f"{_PROBE}*"):
        with suppress(OSError):
            if path.stat().st_mtime < time.time() - _ABANDONED_S:
                path.unlink()


def path_exists(path: str) -> bool:
    """Return whether a path exists on this machine."""
    return Path(path).exists()
