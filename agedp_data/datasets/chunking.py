"""Files as chunks of whole lines: files are split at line ends, and results never depend on where."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO

from agedp_data.datasets.compression import is_stream, open_decompressed
from agedp_data.datasets.csv_lines import LONGEST_LINE
from agedp_data.datasets.file_listing import InputFile

_WINDOW = 4 * 1024
_STEP = 8 * 1024 * 1024
_MAX_LINE_BYTES = LONGEST_LINE + len(b"\r\n")
"""Bytes that are passed on of a line that is too long: enough to recognise it as too long."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """Bytes [start, stop) of one file: whole lines, parsed independently of the other chunks.

    `number` counts the chunks of a file from 0; `stop` None means the end, for a compressed file.
    """

    source: InputFile
    number: int
    start: int
    stop: int | None


def split_into_chunks(
    source: InputFile, *, start: int, chunk_bytes: int, block_start: bytes = b"\n"
) -> tuple[Chunk, ...]:
    """Split a file from `start` (its first data row) into chunks of whole lines of at least `chunk_bytes`.

    Each but the first begins after the line end of a `block_start`, such as a line end and the first cell of a block.

    A compressed file is one chunk, as is one of another encoding: it can only be read from its beginning.
    """
    if is_stream(source):
        return (Chunk(source, 0, start, None),)
    with open_decompressed(source) as stream:
        ends = [*_line_ends(stream, start, source.size, chunk_bytes, block_start), source.size]
    starts = [start, *ends[:-1]]
    pairs = [(a, b) for a, b in zip(starts, ends, strict=True) if b > a]
    return tuple(Chunk(source, i, a, b) for i, (a, b) in enumerate(pairs))


def read_lines(chunk: Chunk, *, batch_bytes: int) -> Iterator[bytes]:
    """Yield the lines of a chunk in batches of about `batch_bytes` bytes, each of whole lines.

    A line longer than `LONGEST_LINE` is truncated, so that no line needs more memory than that.

    Raises:
        InputError: the file cannot be read.
    """
    with open_decompressed(chunk.source) as stream:
        if is_stream(chunk.source):
            yield from _read_stream(stream, chunk.start, batch_bytes)
        else:
            yield from _read_seekable(stream, chunk, batch_bytes)


def _read_stream(stream: IO[bytes], start: int, batch_bytes: int) -> Iterator[bytes]:
    while start > 0 and (skipped := stream.read(min(start, _STEP))):
        start -= len(skipped)
    rest = b""
    while data := stream.read(batch_bytes):
        data = rest + data
        end = data.rfind(b"\n") + 1
        if end:
            yield data[:end]
        rest = data[end : end + _MAX_LINE_BYTES]
    if rest:
        yield rest


def _read_seekable(stream: IO[bytes], chunk: Chunk, batch_bytes: int) -> Iterator[bytes]:
    """Yield batches that are read at once and never copied: their ends are searched first."""
    stop = chunk.source.size if chunk.stop is None else chunk.stop
    start, max_bytes = chunk.start, batch_bytes + _MAX_LINE_BYTES
    for end in (*_line_ends(stream, start, stop, batch_bytes), stop):
        stream.seek(start)
        data = stream.read(min(end - start, max_bytes))
        if end - start > max_bytes:  # its last line is too long: it continues where the batch could have ended
            data = data[: data.rfind(b"\n") + 1 + _MAX_LINE_BYTES] + b"\n"
        yield data
        start = end


def _line_ends(stream: IO[bytes], start: int, stop: int, chunk_bytes: int, block_start: bytes = b"\n") -> Iterator[int]:
    """Yield positions after line ends that begin `block_start`, before `stop` and at least `chunk_bytes` apart."""
    position, kept = start + chunk_bytes, len(block_start) - 1
    while position < stop:
        stream.seek(position - 1)
        window, end = b"", -1
        while end < 0 and (following := stream.read(_WINDOW)):
            window = window[max(len(window) - kept, 0) :] + following  # it may begin in one window and end in the next
            end = window.find(block_start)
            position += len(following) if end < 0 else end + len(following) - len(window)
        if end < 0 or position >= stop:
            return
        yield position
        position += chunk_bytes
