"""Freed memory is used again instead of being returned to the system after every array.

By default the C library returns each large array to the system as soon as it is freed, and the next array of the same
size costs a page fault for every 4 KiB: a large part of the time of the steps that follow the parsing of a file. In a
process that runs tasks, arrays up to 32 MiB therefore come from memory that the process has, and at most 64 MiB of
free memory at the end of a heap are retained. The setting lasts as long as the process, so only the `agedp` command and
worker processes of our own call it: notebooks and the workers of others stay as they are. Only the GNU C
library has these settings; elsewhere nothing changes.
"""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any, Final

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


def dask_setup(worker: Any) -> None:  # noqa: ANN401, ARG001  (Dask's name and argument of a preloaded module)
    """Let a worker of our own cluster use freed memory again."""
    reuse_freed_memory()
