"""The system calls by which SQLite changes files: each is a boundary, and so is the middle of each write.

SQLite lets tests replace the system calls of its unix VFS (`xSetSystemCall`); nothing else of it is replaced. Its syncs
are no boundaries: what a kill leaves is the same before one and after it, since the kernel keeps what was written.
"""

from __future__ import annotations

import _sqlite3
import ctypes
import os
from collections.abc import Callable
from typing import Any

INSIDE = "sqlite *"
_POINTERS = (
    *("pNext", "zName", "pAppData", "xOpen", "xDelete", "xAccess", "xFullPathname", "xDlOpen", "xDlError", "xDlSym"),
    *("xDlClose", "xRandomness", "xSleep", "xCurrentTime", "xGetLastError", "xCurrentTimeInt64"),
)
_NUMBER, _NAME = ctypes.c_int, ctypes.c_char_p
_WRITING = (ctypes.c_ssize_t, _NUMBER, ctypes.c_void_p, ctypes.c_size_t)
_CALLS: dict[str, tuple[Any, ...]] = {
    "open": (_NUMBER, _NAME, _NUMBER, _NUMBER),
    "write": _WRITING,
    "pwrite": (*_WRITING, ctypes.c_int64),
    "pwrite64": (*_WRITING, ctypes.c_int64),
    "ftruncate": (_NUMBER, _NUMBER, ctypes.c_int64),
    "unlink": (_NUMBER, _NAME),
    "openDirectory": (_NUMBER, _NAME, ctypes.POINTER(_NUMBER)),
}
"""Result and arguments by the name that the VFS gives a call; `openDirectory` comes before the sync of a folder."""
_REPLACED: list[Any] = []
"""What SQLite calls from now on; it must not be freed."""


class _VFS(ctypes.Structure):
    _fields_ = (
        *((name, _NUMBER) for name in ("iVersion", "szOsFile", "mxPathname")),
        *((name, ctypes.c_void_p) for name in _POINTERS),
        ("xSetSystemCall", ctypes.CFUNCTYPE(_NUMBER, ctypes.c_void_p, _NAME, ctypes.c_void_p)),
        ("xGetSystemCall", ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, _NAME)),
    )


def find_vfs() -> Any:
    """Return the VFS of this Python's SQLite; None if SQLite lies in the module itself and shows no symbols."""
    try:
        find = ctypes.CDLL(_sqlite3.__file__).sqlite3_vfs_find
    except AttributeError:
        return None
    find.restype = ctypes.POINTER(_VFS)
    return find(None)


def watch_sqlite(passes: Callable[[str], None]) -> None:
    """Let this process call `passes` before each system call of SQLite that changes a file, and within each write."""
    vfs = find_vfs()
    for name, types in _CALLS.items():
        kind = ctypes.CFUNCTYPE(*types, use_errno=True)  # SQLite reads errno
        if place := vfs.contents.xGetSystemCall(vfs, name.encode()):
            _REPLACED.append(kind(_watched(name, kind(place), passes)))
            vfs.contents.xSetSystemCall(vfs, name.encode(), ctypes.cast(_REPLACED[-1], ctypes.c_void_p))


def _watched(name: str, call: Callable[..., int], passes: Callable[[str], None]) -> Callable[..., int]:
    def watched(*arguments: Any) -> int:
        if name != "open" or arguments[1] & os.O_CREAT:
            passes(f"sqlite {name}")
        if name.startswith("pwrite"):
            descriptor, content, size, place = arguments
            call(descriptor, content, size // 2, place)
            passes(f"sqlite within {name}")
        return call(*arguments)

    return watched
