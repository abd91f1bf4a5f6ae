"""Files as byte ranges of whole lines; a cut is made at a line end, and the results never depend on where."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO

from agedp_data.readers.files import InputFile
from agedp_data.readers.lines import LONGEST_LINE
from agedp_data.readers.packing import is_packed, unpacked

_WINDOW = 64 * 1024
_STEP = 8 * 1024 * 1024
_SHOWN = LONGEST_LINE + len(b"\r\n")
"""What is handed on of a line that is too long: enough to see that it is, whatever its last bytes are."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """Bytes [start, stop) of one file, whole lines; `number` counts from 0; without `stop` to the end."""

    source: InputFile
    number: int
    start: int
    stop: int | None


def cut(source: InputFile, *, start: int, block_bytes: int) -> tuple[Chunk, ...]:
    """Cut a file from `start` (its first data row) into blocks of whole lines of at least `block_bytes`.

    A packed file is one block: it can only be read from its beginning.
    """
    if is_packed(source.location):
        return (Chunk(source, 0, start, None),)
    with unpacked(source) as stream:
        ends = [*_line_ends(stream, start, source.size, block_bytes), source.size]
    starts = [start, *ends[:-1]]
    pairs = [(a, b) for a, b in zip(starts, ends, strict=True) if b > a]
    return tuple(Chunk(source, i, a, b) for i, (a, b) in enumerate(pairs))


def chunks(block: Chunk, *, at_a_time: int) -> Iterator[bytes]:
    """Yield the lines of a block, about so many bytes at a time, each time whole lines.

    A line that is too long to be read (`LONGEST_LINE`) comes cut off, so that no line needs more memory than that.

    Raises:
        InputError: the file cannot be read.
    """
    with unpacked(block.source) as stream:
        if is_packed(block.source.location):
            yield from _streamed(stream, block.start, at_a_time)
        else:
            yield from _sought(stream, block, at_a_time)


def _streamed(stream: IO[bytes], start: int, at_a_time: int) -> Iterator[bytes]:
    while start > 0 and (skipped := stream.read(min(start, _STEP))):
        start -= len(skipped)
    rest = b""
    while data := stream.read(at_a_time):
        data = rest + data
        end = data.rfind(b"\n") + 1
        if end:
            yield data[:end]
        rest = data[end : end + _SHOWN]
    if rest:
        yield rest


def _sought(stream: IO[bytes], block: Chunk, at_a_time: int) -> Iterator[bytes]:
    """Yield chunks that are read in one piece and never copied: their ends are sought first."""
    stop = block.source.size if block.stop is None else block.stop
    start, most = block.start, at_a_time + _SHOWN
    for end in (*_line_ends(stream, start, stop, at_a_time), stop):
        stream.seek(start)
        data = stream.read(min(end - start, most))
        if end - start > most:  # its last line is too long: it goes on from where the chunk could have ended
            data = data[: data.rfind(b"\n") + 1 + _SHOWN] + b"\n"
        yield data
        start = end


def _line_ends(stream: IO[bytes], start: int, stop: int, block_bytes: int) -> Iterator[int]:
    """Yield positions behind line ends before `stop`, at least `block_bytes` apart."""
    position = start + block_bytes
    while position < stop:
        stream.seek(position - 1)
        end = -1
        while end < 0 and (window := stream.read(_WINDOW)):
            end = window.find(b"\n")
            position += len(window) if end < 0 else end
        if end < 0 or position >= stop:
            return
        yield position
        position += block_bytes
