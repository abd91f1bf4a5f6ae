"""How a stage runs: scheduler, workers, sizes, and who is shown its progress. Never what it computes."""

from __future__ import annotations

import ctypes
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final

from agedp_data.errors import AgedpError

Progress = Callable[[str, int, int], None]
"""Called with the stage, the number of its finished tasks, and the number of all its tasks."""


SHOWN_PROGRESS: Final[ContextVar[Progress | None]] = ContextVar("agedp progress", default=None)
"""Progress of the stages of all engines that have none of their own, as long as `agedp.progress_bars` is in use."""


TASK_PREFIX: Final = "agedp-"
"""What the keys of all tasks begin with; a stage name and a running number follow."""


Scheduler = Any
"""A scheduler: None for that of the run file, "threads", "processes", "local-cluster", an address, a
`distributed.Client`, or a cluster object."""


Dashboard = Callable[[str], None]
"""Called with the address of a cluster's dashboard."""


Notice = Callable[[Sequence[str]], None]
"""Called with the public lines of the verdict before the first draw: the verdict, then each cause for concern."""


Call = Callable[[], Any]
"""A task: a function of a module with its arguments. It never raises, but returns a `Failure`."""


@dataclass(frozen=True, slots=True)
class Engine:
    """Scheduler, workers and memory limits of a run; they never change its results.

    `scheduler` is "threads", "processes", "local-cluster", the address of a Dask scheduler or a client. A task reads at
    most `part_chunks` chunks of `chunk_bytes` bytes. `progress`, `dashboard` and `notice` are callbacks for the
    progress of a stage, the address of a cluster's dashboard, and the verdict before a first release. `tasks` and
    `finished` count the tasks of each stage; `pools` are the threads or processes, by scheduler and workers. Copies
    share these three: a run has one pool and one progress.
    """

    scheduler: Any = "threads"
    workers: int = 2
    chunk_bytes: int = 16 * 2**20
    part_chunks: int = 8
    progress: Progress | None = field(default=None, compare=False)
    dashboard: Dashboard | None = field(default=None, compare=False)
    tasks: Counter[str] = field(default_factory=Counter, compare=False, repr=False)
    finished: Counter[str] = field(default_factory=Counter, compare=False, repr=False)
    pools: dict[tuple[str, int], Executor] = field(default_factory=dict, compare=False, repr=False)
    notice: Notice | None = field(default=None, compare=False)


ONE_THREAD = Engine("synchronous", workers=1)
"""Runs every task in the calling thread: for results of a size that no parallel work is worth."""


@dataclass(frozen=True, slots=True)
class ProgressReporter:
    """Callbacks for progress, the address of a dashboard, and the verdict; only public names, numbers and lines."""

    progress: Progress | None = None
    dashboard: Dashboard | None = None
    notice: Notice | None = None


SILENT = ProgressReporter()


# --------------------------------------------------------------------------------------------------
# The error of a task, as the value that the task returns.
# --------------------------------------------------------------------------------------------------

NO_MEMORY: Final = (
    "this step needs more memory than the process can have. Lower [engine] block_mib or workers, raise the limit, or "
    "check the size to which compressed input files expand"
)


@dataclass(frozen=True, slots=True)
class Failure:
    """The error of a task, returned instead of raised."""

    error: AgedpError | None
    trace: str

    def raise_error(self) -> None:
        """Raise the error of the task."""
        if self.error is not None:
            raise self.error
        raise TaskFailed(self.trace)


class TaskFailed(RuntimeError):
    """A bug inside a task; the traceback is text without values."""


# --------------------------------------------------------------------------------------------------
# Freed memory is used again instead of being returned to the system after every array.
#
# By default the C library returns each large array to the system as soon as it is freed, and the next array of the
# same size costs a page fault for every 4 KiB: a large part of the time of the steps that follow the parsing of a
# file. In a process that runs tasks, arrays up to 32 MiB therefore come from memory that the process has, and at most
# 64 MiB of free memory at the end of a heap are retained. The setting lasts as long as the process, so the `agedp`
# command and worker processes call it, whoever started these; notebooks stay as they are. Only the GNU C library has
# these settings; elsewhere nothing changes.
# --------------------------------------------------------------------------------------------------

_M_TRIM_THRESHOLD: Final = -1
_M_MMAP_THRESHOLD: Final = -3
_RETAINED_BYTES: Final = 64 * 2**20
_LARGEST_ARRAY_BYTES: Final = 32 * 2**20
"""The largest threshold that every version of the library accepts."""


@cache
def reuse_freed_memory() -> bool:
    """Let this process use freed memory again, once; return whether its C library can."""
    try:
        set_option = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):  # not the GNU C library
        return False
    return bool(set_option(_M_TRIM_THRESHOLD, _RETAINED_BYTES) and set_option(_M_MMAP_THRESHOLD, _LARGEST_ARRAY_BYTES))


def return_freed_memory() -> None:
    """Return the free memory of this process to the system: before a stage whose arrays differ from those before."""
    import pyarrow as pa  # noqa: PLC0415  (slow to import)

    pa.default_memory_pool().release_unused()
    with suppress(AttributeError, OSError, TypeError):  # not the GNU C library
        ctypes.CDLL(None).malloc_trim(0)
