"""A column of texts in one Arrow array: a million household ids take the room of their letters.

>>> column = TextColumn(pa.array(["A", "B"]))
>>> column[1], len(column), column == ("A", "B")
('B', 2, True)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, overload

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from agedp_data.datasets.validation import Ints

_BATCH = 2**16


class TextColumn(Sequence[str]):
    """A sequence of texts over an Arrow array of text, or of a dictionary of texts; it has no nulls.

    It equals every sequence of the same texts. Iteration makes one batch of Python texts at a time.
    """

    __slots__ = ("array",)

    def __init__(self, array: pa.Array) -> None:
        self.array = array

    def __len__(self) -> int:
        """Return the number of texts."""
        return len(self.array)

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[str]: ...
    def __getitem__(self, index: int | slice) -> str | Sequence[str]:
        """Return one text, or a part of the column."""
        if isinstance(index, slice):
            return TextColumn(self.array.take(pa.array(np.arange(len(self))[index])))
        return str(self.array[range(len(self))[index]].as_py())

    def __iter__(self) -> Iterator[str]:
        """Yield the texts."""
        for start in range(0, len(self.array), _BATCH):
            yield from self.array.slice(start, _BATCH).to_pylist()

    def __eq__(self, other: object) -> bool:
        """Return whether a sequence has the same texts."""
        if isinstance(other, TextColumn):
            return bool(as_strings(self).equals(as_strings(other)))
        if not isinstance(other, Sequence) or isinstance(other, str):
            return NotImplemented
        return tuple(self) == tuple(other)

    def __hash__(self) -> int:
        """Return the hash of the same tuple."""
        return hash(tuple(self))

    def __repr__(self) -> str:
        """Return the number of texts; they may be confidential."""
        return f"TextColumn of {len(self)}"

    def __reduce__(self) -> tuple[Any, ...]:
        """Return how another process makes this column."""
        return TextColumn, (self.array,)


def as_strings(texts: Sequence[str]) -> pa.StringArray:
    """Return texts as an Arrow array of strings, without a copy if they are one already."""
    array = texts.array if isinstance(texts, TextColumn) else pa.array(texts, pa.string())
    return array.cast(pa.string()) if pa.types.is_dictionary(array.type) else array


def sorted_codes(texts: Sequence[str]) -> tuple[pa.StringArray, Ints]:
    """Return the distinct texts, sorted by code points, and the index of each text among them.

    >>> labels, codes = sorted_codes(["b", "a", "b"])
    >>> labels.to_pylist(), codes.tolist()
    (['a', 'b'], [1, 0, 1])
    """
    array = texts.array if isinstance(texts, TextColumn) else pa.array(texts, pa.string())
    is_encoded = pa.types.is_dictionary(array.type)
    if not is_encoded and pc.all(pc.less(array[:-1], array[1:])).as_py() is True:  # ids that their owner sorted
        return array.cast(pa.string()), np.arange(len(array))
    encoded = array if is_encoded else array.dictionary_encode()
    labels, codes = encoded.dictionary, encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    if is_encoded and len(labels) != pc.count_distinct(labels).as_py():  # a dictionary may repeat a text
        labels, codes = _without_repeats(labels, codes)
    is_used = np.bincount(codes, minlength=len(labels)) > 0
    order = pc.sort_indices(labels).to_numpy().astype(np.int64)
    order = order[is_used[order]]
    rank = np.zeros(len(labels), np.int64)
    rank[order] = np.arange(len(order))
    return labels.take(pa.array(order)).cast(pa.string()), rank[codes]


def _without_repeats(labels: pa.Array, codes: Ints) -> tuple[pa.Array, Ints]:
    encoded = labels.dictionary_encode()
    return encoded.dictionary, encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)[codes]
