"""Digests of a roster: of its members on a day, and of all its rows as far as they are about days through one day.

A day's digest is the SHA-256 of one line for each member, sorted, in JSON: `["A"]`, with a group `["A", "north"]`. It
is the same whatever the form of the roster file and the order of its rows. The lines of all rows are sorted once; the
lines of a day are a part of them, in the same order.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from datetime import date
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from agedp_data.datasets.timestamps import day_number
from agedp_data.datasets.validation import Ints
from agedp_data.meters import HOUSEHOLD
from agedp_data.roster import GroupColumns, Roster
from agedp_data.text_columns import as_strings, sorted_codes

LEAST_ROWS: Final = 2**15
"""Rosters with fewer rows have no record of their digests and checks."""
_ESCAPED: Final = r"[^ !#-\[\]-~]"
"""Letters that JSON does not write as they are."""


class RosterDigest:
    """Digests of the members of a roster on a day.

    They are computed once for each interval between two changes of the roster: a year of an unchanged roster is hashed
    once. The rows of the roster are read for the first digest. With `meters` those of the households are members too.
    """

    def __init__(self, roster: Roster, meters: Roster | None = None) -> None:
        self._roster = roster
        self._meters = None if meters is None else RosterDigest(meters)
        self._changes: Ints | None = None
        self._lines: dict[str | None, tuple[pa.Array, Ints]] = {}
        self._digests: dict[tuple[int, str | None], str] = {}
        self._cells: dict[tuple[int, GroupColumns], tuple[tuple[str, int], ...]] = {}

    @property
    def file_digest(self) -> str:
        """Return the digest of the roster's file, "" where it is of no file."""
        return self._with_meters(self._roster.file_digest, lambda meters: meters.file_digest)

    @property
    def has_meters(self) -> bool:
        """Return whether the meters of the households are members too."""
        return self._meters is not None

    @property
    def rows(self) -> int:
        """Return the number of rows of the roster."""
        return int(self._roster.counts.number.sum())

    def has(self, by: GroupColumns) -> bool:
        """Return whether the roster has these group columns."""
        return self._roster.has(by)

    def digest(self, day: date, column: str | None) -> str:
        """Return the SHA-256 of the members on a day; with a column, of the members and their groups in it.

        Members are sorted: the order of the roster's rows does not matter.
        """
        own = self._own_digest(day, column)
        return own if column is not None else self._with_meters(own, lambda meters: meters.digest(day, HOUSEHOLD))

    def _with_meters(self, digest: str, of_meters: Callable[[RosterDigest], str]) -> str:
        """Return a digest together with that of the meters, if there are any."""
        if self._meters is None or not digest:
            return digest
        return hashlib.sha256(f"{digest} {of_meters(self._meters)}".encode()).hexdigest()

    def _own_digest(self, day: date, column: str | None) -> str:
        key = self._interval_index(day), column
        if key not in self._digests:
            if column not in self._lines:
                self._lines[column] = self._sorted_lines(column)
            lines, order = self._lines[column]
            members = lines.filter(pa.array(self._roster.on(day)[order]))
            self._digests[key] = hashlib.sha256(bytes_of(members)[:-1]).hexdigest()
        return self._digests[key]

    def digest_through(self, day: date) -> str:
        """Return the SHA-256 of all that the rows contain about the days through this one.

        Rosters with the same value have the same members and groups on each of these days.
        """
        number, rows = day_number(day), self._roster.rows
        touching = np.flatnonzero(rows.first <= number)
        last = np.where(rows.last[touching] >= number, -1, rows.last[touching])
        digest = hashlib.sha256(json.dumps([number, list(rows.groups)]).encode())
        for days in (rows.first[touching], last):
            digest.update(days.astype("<i8").tobytes())
        for labels, codes in ((as_strings(rows.ids), rows.household), *map(sorted_codes, rows.groups.values())):
            texts = labels.take(pa.array(codes[touching]))
            digest.update(pc.binary_length(texts).to_numpy().astype("<i4").tobytes())
            digest.update(bytes_of(texts))
        return self._with_meters(digest.hexdigest(), lambda meters: meters.digest_through(day))

    def cells(self, day: date, by: GroupColumns) -> tuple[tuple[str, int], ...]:
        """Return the groups of columns on a day and the number of households in each."""
        key = self._interval_index(day), by
        if key not in self._cells:
            self._cells[key] = self._roster.cells(day, by)
        return self._cells[key]

    def _interval_index(self, day: date) -> int:
        if self._changes is None:
            counts = self._roster.counts
            self._changes = np.unique(np.concatenate([counts.first, counts.last + 1]))
        return int(np.searchsorted(self._changes, day_number(day), side="right"))

    def _sorted_lines(self, column: str | None) -> tuple[pa.Array, Ints]:
        """Return the lines of all rows, sorted, each with a line end; and the row of each line."""
        rows = self._roster.rows
        texts = [json_texts(rows.ids).take(pa.array(rows.household))]
        if column is not None:
            labels, codes = sorted_codes(rows.groups[column])
            texts += [pa.scalar(b", "), json_texts(labels.to_pylist()).take(pa.array(codes))]
        lines = pc.binary_join_element_wise(pa.scalar(b"["), *texts, pa.scalar(b"]"), pa.scalar(b""))
        order: Ints = np.arange(len(lines))
        if len(lines) > 1 and not pc.all(pc.less_equal(lines[:-1], lines[1:])).as_py():
            order = pc.sort_indices(lines).to_numpy().astype(np.int64)
            lines = lines.take(pa.array(order))
        return pc.binary_join_element_wise(lines, pa.scalar(b"\n"), pa.scalar(b"")), order


def json_texts(texts: Sequence[str], *, end: bytes = b"") -> pa.Array:
    """Return each text as JSON in ASCII with an ending, as bytes."""
    array = as_strings(texts)
    quoted = pc.binary_join_element_wise('"', array, '"', "")
    if pc.any(pc.match_substring_regex(array, _ESCAPED)).as_py():
        quoted = pa.array([json.dumps(text) for text in array.to_pylist()], pa.string())
    return pc.binary_join_element_wise(quoted.cast(pa.binary()), pa.scalar(end), pa.scalar(b""))


def bytes_of(texts: Any) -> memoryview:  # noqa: ANN401  (an Arrow array of text or bytes)
    """Return the bytes of an array of texts, one after the other."""
    if not len(texts):
        return memoryview(b"")
    _, offsets, letters = texts.buffers()
    ends = np.frombuffer(offsets, np.int32)[texts.offset : texts.offset + len(texts) + 1]
    return memoryview(letters)[int(ends[0]) : int(ends[-1])]
