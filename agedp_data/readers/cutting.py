"""Files as byte ranges of whole CSV rows, cut so that the results never depend on where.

A line end inside quotes does not end a row, so where there are quotes the cuts are made where an even number of
them precedes; where a quote opens elsewhere than at the start of a field, parity proves nothing, and the rest of the
file is one block.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO

import numpy as np

from agedp_data.readers.files import Source
from agedp_data.readers.packing import is_packed, unpacked

_WINDOW = 64 * 1024
_STEP = 8 * 1024 * 1024
_QUOTE, _LF = ord('"'), ord("\n")
_BEFORE_QUOTE = np.isin(np.arange(256), list(b',\r\n"'))
LONGEST_BLOCK = 2**31 - 2**16


@dataclass(frozen=True, slots=True)
class Block:
    """Bytes [start, stop) of one file, whole rows; `number` counts from 0; without `stop` to the end."""

    source: Source
    number: int
    start: int
    stop: int | None


class QuoteFound(ValueError):
    """A file that was cut as one without quotes has some."""


def cut(source: Source, *, start: int, block_bytes: int, quoted: bool) -> tuple[Block, ...]:
    """Cut a file from `start` (its first data row) into blocks of whole rows of at least `block_bytes`.

    A packed file is one block: it can only be read from its beginning.

    Args:
        source: the file.
        start: where its first data row begins.
        block_bytes: the least size of a block but the last.
        quoted: whether there may be a quote in it.
    """
    if is_packed(source.location):
        return (Block(source, 0, start, None),)
    if quoted:
        ends = [*_quoted_row_ends(source, start, block_bytes), source.size]
    else:
        with unpacked(source) as stream:
            ends = [*_row_ends(stream, start, source.size, block_bytes), source.size]
    starts = [start, *ends[:-1]]
    pairs = [(a, b) for a, b in zip(starts, ends, strict=True) if b > a]
    return tuple(Block(source, i, a, b) for i, (a, b) in enumerate(pairs))


def rows(block: Block, *, at_a_time: int, quoted: bool) -> Iterator[bytes]:
    """Yield the rows of a block, about so many bytes at a time, each time whole rows.

    Args:
        block: a part of a file.
        at_a_time: how many bytes.
        quoted: whether there may be a quote in the file; without one, each stretch is read once and never copied.

    Raises:
        InputError: the file cannot be read, or rows that cannot be told apart do not fit into memory.
        QuoteFound: there is a quote, against what was said.
    """
    if not quoted and block.stop is not None:
        yield from _plain_rows(block, at_a_time)
        return
    left = None if block.stop is None else block.stop - block.start
    with unpacked(block.source) as stream:
        _skip(stream, block.start, packed=is_packed(block.source.location))
        rest, provable = b"", True
        while chunk := stream.read(at_a_time if left is None else min(at_a_time, left)):
            left = None if left is None else left - len(chunk)
            rest = rest + chunk if rest else chunk
            if len(rest) > LONGEST_BLOCK:
                raise block.source.error(
                    "more than 2 GB that cannot be cut into blocks; unpack it, or quote whole fields only"
                )
            end, provable = last_row_end(rest) if provable else (0, False)
            if end:
                yield rest[:end]
                rest = rest[end:]
        if rest:
            yield rest


def _plain_rows(block: Block, at_a_time: int) -> Iterator[bytes]:
    stop = block.source.size if block.stop is None else block.stop
    with unpacked(block.source) as stream:
        start = block.start
        for end in (*_row_ends(stream, start, stop, at_a_time), stop):
            stream.seek(start)
            data = stream.read(end - start)
            if b'"' in data:
                raise QuoteFound
            yield data
            start = end


def _skip(stream: IO[bytes], count: int, *, packed: bool) -> None:
    if not packed:
        stream.seek(count)
        return
    while count > 0 and (chunk := stream.read(min(count, _STEP))):
        count -= len(chunk)


def last_row_end(data: bytes) -> tuple[int, bool]:
    r"""Return where the last row that surely ends does (0: nowhere), and whether what follows can be cut as well.

    `data` begins with a row.

    >>> last_row_end(b'a,1\n"b\n",2\n"c\n')
    (11, True)
    """
    if b'"' not in data:
        return data.rfind(b"\n") + 1, True
    array = np.frombuffer(data, np.uint8)
    quotes = np.flatnonzero(array == _QUOTE)
    opens = quotes[::2]
    sound = _BEFORE_QUOTE[np.where(opens > 0, array[opens - 1], np.uint8(_LF))]
    ends = np.flatnonzero(array == _LF)
    if not sound.all():
        ends = ends[ends < opens[np.argmin(sound)]]
    even = np.searchsorted(quotes, ends) % 2 == 0
    return (int(ends[even][-1]) + 1 if even.any() else 0), bool(sound.all())


def _row_ends(stream: IO[bytes], start: int, stop: int, block_bytes: int) -> Iterator[int]:
    """Yield positions behind line ends before `stop`, at least `block_bytes` apart, where there are no quotes."""
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


def _quoted_row_ends(source: Source, start: int, block_bytes: int) -> Iterator[int]:
    """Yield positions behind the ends of rows, at least `block_bytes` apart, of a file with quotes."""
    last = position = start
    whole = Block(source, 0, start, source.size)
    for found in rows(whole, at_a_time=min(_STEP, max(block_bytes, _WINDOW)), quoted=True):
        position += len(found)
        if position >= last + block_bytes and position < source.size:
            last = position
            yield position
