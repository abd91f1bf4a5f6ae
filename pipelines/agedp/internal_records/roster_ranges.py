"""Roster -> ranges of days of each household, as the household register counts them; and their digest.

    A 2012-06-01 to 2013-02-10, through 2013-01-01 .. 2013-03-05   ->   ((2013-01-01, 2013-02-10),)
    B 2013-01-20 onwards                                           ->   ((2013-01-20, 2013-03-05),)

Days are whole numbers, days since 1970-01-01. Rows of one household that follow each other, as when it changes its
group, are one range.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa

from agedp.internal_records.roster_digest import LEAST_ROWS, bytes_of, json_texts
from agedp.local_files import atomic_files
from agedp.local_files.checksums import checked_json, read_checked_json
from agedp.local_files.internal_files import FileKind, read_content
from agedp_data.datasets.validation import Ints
from agedp_data.errors import InputError
from agedp_data.roster import Roster
from agedp_data.text_columns import TextColumn, as_strings

DayRange = tuple[int, int]
"""First and last day, both included."""

_HOUSEHOLD, _ROSTER, _CHECK = b"household:", b"roster:", b"check"
_HASH_BLOCK: Final = hashlib.sha256().block_size
_KEPT_DIGESTS: Final = 16
_DIGESTED_ROWS: Final = 2**16


@dataclass(frozen=True, slots=True)
class HouseholdKey:
    """The secret key of a register's digests, 32 bytes."""

    secret: bytes

    @property
    def check(self) -> str:
        """A value by which two keys are compared; the key does not follow from it."""
        return self._digest(_CHECK).hex()

    def household(self, household_id: str) -> bytes:
        """Return the digest of a household, HMAC-SHA-256 of its id."""
        return self._digest(_HOUSEHOLD + household_id.encode())

    def households(self, household_ids: Iterable[str]) -> list[bytes]:
        """Return the digest of each household, as `household`, in half the time.

        RFC 2104 for a key that is not longer than a block: H(key ^ opad, H(key ^ ipad, text)).
        """
        padded, digest = self.secret.ljust(_HASH_BLOCK, b"\0"), hashlib.sha256
        inner, outer = bytes(byte ^ 0x36 for byte in padded) + _HOUSEHOLD, bytes(byte ^ 0x5C for byte in padded)
        return [digest(outer + digest(inner + name.encode()).digest()).digest() for name in household_ids]

    def roster(self, parts: Iterable[bytes]) -> str:
        """Return the digest of a roster's text, which comes in parts: that of a million households takes 13 MB."""
        digest = hmac.new(self.secret, _ROSTER, hashlib.sha256)
        for part in parts:
            digest.update(part)
        return digest.hexdigest()

    def _digest(self, message: bytes) -> bytes:
        return hmac.digest(self.secret, message, hashlib.sha256)


@dataclass(frozen=True, slots=True)
class HouseholdRanges:
    """Households (h) of a roster and their ranges of days, of which many households have the same.

    Attributes:
        ids: the households.
        number: index of each household's ranges among `ranges`, shape (h,).
        ranges: the distinct ranges.
    """

    ids: Sequence[str]
    number: Ints
    ranges: tuple[tuple[DayRange, ...], ...]


@dataclass(frozen=True, slots=True)
class RosterRanges:
    """The rows of a roster that touch the days from `first` to `newest`, cut to them.

    A row that ends on `newest` or later has an open end. The rows are read when they are needed: the digest of a large
    roster is kept in the folder `cache`, if there is one, under the digest of the roster's file.
    """

    roster: Roster
    first: int
    newest: int
    cache: Path | None = None

    @classmethod
    def of(cls, roster: Roster, first: int, newest: int, *, cache: Path | None = None) -> RosterRanges:
        """Return the ranges of a roster within these days."""
        return cls(roster, first, newest, cache)

    def digest(self, key: HouseholdKey) -> str:
        """Return a keyed digest of who is counted when; it is the same on later days while nobody joins or leaves."""
        if self.cache is None or not self.roster.file_digest or self.roster.counts.number.sum() < LEAST_ROWS:
            return self._digest(key)
        path, name = self.cache / "ranges.json", f"{self.roster.file_digest} {self.first} {self.newest} {key.check}"
        digests = read_content(path, _parse_digests, FileKind.DERIVED, advice="").value or {}
        if name not in digests:
            digests = dict([*digests.items(), (name, self._digest(key))][-_KEPT_DIGESTS:])
            with suppress(InputError):  # without permission or space the next run computes it again
                atomic_files.make_private(path.parent)
                atomic_files.write(path, checked_json({"digests": [*digests.items()]}))
        return digests[name]

    def by_household(self) -> HouseholdRanges:
        """Return the ranges of each household that the roster has on one of these days."""
        household, begin, end = self._rows()
        starts = np.flatnonzero(np.diff(household, prepend=-1) | (begin > np.append(0, end[:-1]) + 1))
        household, begin = household[starts], begin[starts]
        end = np.append(end[starts[1:] - 1], end[-1:])
        spans, span = np.unique(np.stack([begin, end], axis=1), axis=0, return_inverse=True)
        ranges: list[tuple[DayRange, ...]] = [((first, last),) for first, last in spans.tolist()]
        is_first = np.diff(household, prepend=-1) != 0
        codes, number = household[is_first], span.reshape(-1)[is_first]
        several = _ranges_of_several(household, begin, end)
        numbers = {spans: len(ranges) + i for i, spans in enumerate(dict.fromkeys(several.values()))}
        number[np.searchsorted(codes, np.array([*several], np.int64))] = [numbers[of] for of in several.values()]
        return HouseholdRanges(_chosen(self.roster, codes), number, (*ranges, *numbers))

    def _digest(self, key: HouseholdKey) -> str:
        return key.roster(self._text())

    def _text(self) -> Iterator[bytes]:
        """Yield the text of the rows in parts: their households as a JSON list, first days, last days."""
        household, begin, end = self._rows()
        ids = as_strings(self.roster.ids)
        for start in range(0, len(household), _DIGESTED_ROWS):
            texts = json_texts(TextColumn(ids.take(pa.array(household[start : start + _DIGESTED_ROWS]))), end=b", ")
            is_last = start + _DIGESTED_ROWS >= len(household)
            yield (b"" if start else b"[") + bytes(bytes_of(texts))[: -2 if is_last else None]
        yield b"]" if len(household) else b"[]"
        yield begin.astype("<i8").tobytes()
        yield np.where(end == self.newest, -1, end).astype("<i8").tobytes()

    def _rows(self) -> tuple[Ints, Ints, Ints]:
        """Return household, first and last day of the rows, as the roster sorts them."""
        rows = self.roster.rows
        touching = np.flatnonzero((rows.first <= self.newest) & (rows.last >= self.first))
        begin, end = np.maximum(rows.first[touching], self.first), np.minimum(rows.last[touching], self.newest)
        return rows.household[touching], begin, end


def _ranges_of_several(household: Ints, begin: Ints, end: Ints) -> dict[int, tuple[DayRange, ...]]:
    """Return the ranges of the households that have more than one."""
    same = np.diff(household) == 0
    rows = np.flatnonzero(np.append(same, False) | np.append(False, same)).tolist()
    ranges: dict[int, tuple[DayRange, ...]] = {}
    for row in rows:
        code = int(household[row])
        ranges[code] = (*ranges.get(code, ()), (int(begin[row]), int(end[row])))
    return ranges


def _chosen(roster: Roster, codes: Ints) -> Sequence[str]:
    return TextColumn(as_strings(roster.ids).take(pa.array(codes)))


def _parse_digests(path: Path) -> dict[str, str]:
    return {str(name): str(digest) for name, digest in read_checked_json(path.read_bytes())["digests"]}


def merge_ranges(ranges: Iterable[DayRange]) -> tuple[DayRange, ...]:
    """Return the union of ranges of days, sorted; ranges that overlap or follow each other become one.

    >>> merge_ranges([(5, 9), (1, 3), (4, 4), (12, 12)])
    ((1, 9), (12, 12))
    """
    merged: list[DayRange] = []
    for begin, end in sorted(ranges):
        if merged and begin <= merged[-1][1] + 1:
            merged[-1] = merged[-1][0], max(merged[-1][1], end)
        else:
            merged.append((begin, end))
    return tuple(merged)
