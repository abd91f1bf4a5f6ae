"""The three streams of the command: always there, and what happens when nobody takes what is written.

A result that cannot be written is said on standard error and ends the command; a remark that nobody can hear, such as
a bar on a terminal that was closed, is no reason to end anything.
"""

from __future__ import annotations

import io
import os
import select
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TextIO

from agedp_data.errors import AgedpError

_NAMES = ("stdin", "stdout", "stderr")


class _Remarks(io.FileIO):
    """Bytes on their way out; what nobody takes is dropped."""

    def write(self, data: object, /) -> int:
        """Write some bytes; what is full for a moment, and was not told to make its writers wait, is waited for."""
        try:
            while (taken := super().write(data)) is None:  # type: ignore[arg-type]
                select.select((), (self,), ())
            return taken
        except OSError as error:
            return self._refused(memoryview(data).nbytes, error)  # type: ignore[arg-type]

    def _refused(self, length: int, error: OSError) -> int:  # noqa: ARG002  (for who says why)
        return length


class _Results(_Remarks):
    """Bytes on their way out; what nobody takes is told, once."""

    _told = False

    def _refused(self, length: int, error: OSError) -> int:
        if self._told:  # Python tries again at its end what it still holds
            return length
        self._told = True
        raise AgedpError(f"standard output cannot be written ({error.strerror}); what was done stays done")


@contextmanager
def arranged() -> Iterator[None]:
    """Have three streams as said above, as long as it lasts; streams that are no files stay as they are."""
    before = {name: getattr(sys, name) for name in _NAMES}
    for descriptor, name in enumerate(_NAMES):
        setattr(sys, name, _open(descriptor) if before[name] is None else _watched(before[name]))
    try:
        yield
    finally:
        with suppress(AgedpError):  # whatever was said was handed on at once
            sys.stdout.flush()
        for name, stream in before.items():
            setattr(sys, name, stream)


def _open(descriptor: int) -> TextIO:
    """Open a closed stream to nowhere, or the next file to be opened would stand in its place."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    if nowhere != descriptor:
        os.dup2(nowhere, descriptor)
        os.close(nowhere)
    return os.fdopen(descriptor, "r" if descriptor == 0 else "w", encoding="utf-8", closefd=False)


def _watched(stream: TextIO) -> TextIO:
    kind = {1: _Results, 2: _Remarks}.get(_descriptor(stream))
    if kind is None:
        return stream
    raw = kind(stream.fileno(), "wb", closefd=False)
    return io.TextIOWrapper(io.BufferedWriter(raw), stream.encoding, stream.errors, line_buffering=kind is _Remarks)


def _descriptor(stream: TextIO) -> int:
    try:
        return stream.fileno()
    except OSError:
        return -1
