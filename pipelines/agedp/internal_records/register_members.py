"""Rosters -> the memberships of the household register: who is counted in a source, from which day to which.

Ranges only grow, by days and by households, because the rosters of released days cannot change. While nobody joins or
leaves, the digest of the roster is the same and a night costs no more than comparing it.
"""

from __future__ import annotations

import hashlib
import hmac
import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa

from agedp.internal_records.roster_history import LEAST_ROWS, bytes_of, json_texts
from agedp.local_files import atomic_files
from agedp.local_files.atomic_files import (
    DamagedFile,
    FileKind,
    InternalPaths,
    checked_json,
    read_checked_json,
    read_content,
)
from agedp_data.datasets.validation import Ints
from agedp_data.errors import InputError, LedgerError
from agedp_data.ledger.household_register import (
    DIGEST_BYTES,
    FIRST_BYTES,
    HouseholdRegister,
    Membership,
    Ranges,
    RegisterRows,
    RegisterSource,
)
from agedp_data.roster import Roster, TextColumn, as_strings

# --------------------------------------------------------------------------------------------------
# Roster -> ranges of days of each household, as the household register counts them; and their digest.
#
#     A 2012-06-01 to 2013-02-10, through 2013-01-01 .. 2013-03-05   ->   ((2013-01-01, 2013-02-10),)
#     B 2013-01-20 onwards                                           ->   ((2013-01-20, 2013-03-05),)
#
# Days are whole numbers, days since 1970-01-01. Rows of one household that follow each other, as when it changes its
# group, are one range.
# --------------------------------------------------------------------------------------------------

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
        ids = TextColumn(as_strings(self.roster.ids).take(pa.array(codes)))
        return HouseholdRanges(ids, number, (*ranges, *numbers))

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


_BUCKET_HOUSEHOLDS: Final = 10_000


def record_roster(
    rows: RegisterRows,
    key: HouseholdKey,
    source: RegisterSource,
    roster: RosterRanges,
    *,
    period: DayRange | None = None,
) -> RegisterSource:
    """Add the ranges of a roster to those of a source; the cost does not grow with a roster that is unchanged.

    Args:
        rows: the register.
        key: its key.
        source: the source.
        roster: the roster, through its newest released or due day.
        period: for a calibration, the period, on each day of which its households count.

    Returns:
        The source with its newest day.
    """
    digest = roster.digest(key)
    if digest == source.roster and (roster.newest <= source.through or source.through == source.newest):
        if roster.newest > source.newest:
            source = replace(source, newest=roster.newest, through=roster.newest)
            rows.update_source(source)
        return source
    wanted = roster.by_household()
    if period is not None:
        wanted = HouseholdRanges(wanted.ids, np.zeros_like(wanted.number), ((period,),))
    newest = max(source.newest, roster.newest)
    _Memberships(rows, source, newest).add(wanted, key)
    source = replace(source, roster=digest, newest=newest, through=roster.newest)
    rows.update_source(source)
    return source


class _Memberships:
    """The memberships of all households, while the ranges of one source are added."""

    def __init__(self, rows: RegisterRows, source: RegisterSource, newest: int) -> None:
        self._rows, self._source, self._newest = rows, source, newest
        self._ranges = {number: entry.ranges for number, entry in rows.memberships().items()}
        self._ids = {ranges: number for number, ranges in self._ranges.items()}
        self._counts = {number: entry.households for number, entry in rows.memberships().items()}
        self._targets: dict[tuple[int, tuple[DayRange, ...]], int] = {}

    def add(self, wanted: HouseholdRanges, key: HouseholdKey) -> None:
        """Add ranges by household; open ranges of other households in the source end with its newest day so far.

        The households are compared bucket by bucket of their digests: a million of them are never in memory at once as
        Python values.
        """
        inside = {
            number for number, ranges in self._ranges.items() if any(entry[0] == self._source.id for entry in ranges)
        }
        digests = np.frombuffer(b"".join(key.households(wanted.ids)), np.uint8).reshape(-1, DIGEST_BYTES)
        order = np.argsort(digests[:, 0], kind="stable")
        households = max(len(order), sum(self._counts.values()))
        buckets = min(FIRST_BYTES, 2 ** (households // _BUCKET_HOUSEHOLDS).bit_length())
        for first in range(0, FIRST_BYTES, FIRST_BYTES // buckets):
            stop = first + FIRST_BYTES // buckets
            chosen = order[slice(*np.searchsorted(digests[order, 0], (first, stop)))]
            content = digests[chosen].tobytes()
            names = [content[place : place + DIGEST_BYTES] for place in range(0, len(content), DIGEST_BYTES)]
            numbers = dict(zip(names, wanted.number[chosen].tolist(), strict=True))
            self._add_bucket(self._rows.households(first, stop), numbers, wanted.ranges, inside)
        used = [Membership(number, self._ranges[number], count) for number, count in self._counts.items() if count]
        self._rows.replace_memberships(used)

    def _add_bucket(
        self,
        stored: Mapping[bytes, int],
        wanted: Mapping[bytes, int],
        ranges: Sequence[tuple[DayRange, ...]],
        inside: Collection[int],
    ) -> None:
        """Add the ranges of the households of a bucket, `wanted` by their number among `ranges`."""
        targets = {household: self._target(stored.get(household, 0), ranges[i]) for household, i in wanted.items()}
        for household, number in stored.items():
            if number in inside and household not in wanted:
                targets[household] = self._target(number, ())
        added, moved = dict[bytes, int](), dict[bytes, int]()
        for household, target in targets.items():
            number = stored.get(household, 0)
            if target == number:
                continue
            (moved if number else added)[household] = target
            self._counts[target] = self._counts.get(target, 0) + 1
            if number:
                self._counts[number] -= 1
        self._rows.move_households(added=added, moved=moved)

    def _target(self, number: int, ranges: tuple[DayRange, ...]) -> int:
        """Return the membership of a household that has the membership `number`, 0 for none, and gets these ranges."""
        if (number, ranges) not in self._targets:
            self._targets[number, ranges] = self._number(self._with(self._ranges.get(number, ()), ranges))
        return self._targets[number, ranges]

    def _with(self, before: Ranges, added: tuple[DayRange, ...]) -> Ranges:
        spans = [
            (begin, self._source.newest if end is None else end)
            for source, begin, end in before
            if source == self._source.id
        ]
        merged = merge_ranges([*spans, *added])
        ranges = [(self._source.id, begin, None if end >= self._newest else end) for begin, end in merged]
        return tuple(
            sorted([*(entry for entry in before if entry[0] != self._source.id), *ranges], key=lambda entry: entry[:2])
        )

    def _number(self, ranges: Ranges) -> int:
        if ranges not in self._ids:
            number = max(self._ranges, default=0) + 1
            self._ids[ranges], self._ranges[number] = number, ranges
        return self._ids[ranges]


# --------------------------------------------------------------------------------------------------
# The key and the place of the household register: created together, and noticed when one of them is lost.
#
#     <confidential>/household_register.key       32 random bytes of the system, for its owner only
#     <confidential>/household_register.sqlite    the register, unless [output] household_register names another place
#
# The key is in each confidential folder that uses the register, or beside a file of SQLite that several folders share;
# a database on a server never sees it. A register that is being created has its key under a temporary name, so that a
# killed run leaves neither a key without a register nor a register without a key.
# --------------------------------------------------------------------------------------------------

KEY_BYTES: Final = 32
CHECK, BEGAN, REBUILT = "check", "began", "rebuilt"
_KEY_FILE: Final = "household_register.key"
_REGISTER_FILE: Final = "household_register.sqlite"
_FILE_URL: Final = "sqlite:///"
_COPY = (
    f"put back a copy of {_KEY_FILE}, from a backup or from another confidential folder that uses the register. If "
    "there is none, nobody can use the register any more: name another one, and fill it from each of its ledgers "
    "(`agedp ledger households RUN.toml --rebuild`)"
)
_ADVICE = (
    f"nothing was drawn; put back {_REGISTER_FILE} and {_KEY_FILE} (from the earlier confidential folder, if this is a "
    "new one), or fill a register from this ledger and roster (`agedp ledger households RUN.toml --rebuild`)"
)
_LOST = f"the household register is not there, although it counted releases of these households before; {_ADVICE}"
UNKNOWN_POPULATION: Final = (
    "the household register does not know this population, although it counted it before: it is another register, or "
    f"began anew; {_ADVICE}"
)


@dataclass(frozen=True, slots=True)
class RegisterPlace:
    """Where a run finds the household register and its key.

    Attributes:
        folder: the confidential folder, which holds the key.
        url: the address of [output] household_register; None for the file in the confidential folder.
    """

    folder: Path
    url: str | None = None

    def register(self) -> HouseholdRegister:
        """Return the register, whether or not it exists."""
        return HouseholdRegister(self.url or f"sqlite:///{(self.folder / _REGISTER_FILE).absolute()}")

    @property
    def cache(self) -> Path:
        """Return the folder of what is derived from the roster file."""
        return InternalPaths(self.folder).roster

    def exists(self, *, expected: bool) -> bool:
        """Return whether there is a register with its key; False only where there never was one.

        Args:
            expected: whether the ledger has an account that was computed from a register.

        Raises:
            LedgerError: the register or its key is lost, or the key is that of another register.
            DamagedFile: the key is damaged.
        """
        try:
            return self._is_complete(expected=expected)
        except LedgerError:
            with atomic_files.exclusive_lock(self._key_path.parent):  # another run may just have created both
                return self._is_complete(expected=expected)

    def _is_complete(self, *, expected: bool) -> bool:
        key, is_begun = self._read_key(self._key_path), False
        with self.register() as register:
            exists = register.exists()
            check = register.read(lambda rows: rows.meta()[CHECK]) if exists else ""
        if key is None and exists:
            begun = self._read_key(self._begun_path)
            is_begun = begun is not None and begun.check == check
        if (key is not None and not exists) or (expected and key is None and not exists):
            raise LedgerError(_LOST)
        if key is None and exists and not is_begun:
            raise LedgerError(f"the key of the household register is not there; nothing was drawn; {_COPY}")
        if key is not None and key.check != check:
            raise LedgerError(f"the household register was filled with another key; nothing was drawn; {_COPY}")
        return exists and not is_begun

    def ensure(self, *, today: str, rebuilding: bool = False) -> HouseholdKey:
        """Return the key of the register; create both if there is none.

        Args:
            today: date from which on a new register counts.
            rebuilding: whether a lost register is created again; it keeps its key, if that exists.

        Raises:
            LedgerError: as `exists`.
        """
        key = self._read_key(self._key_path)
        if key is not None and not rebuilding:
            return key
        with atomic_files.exclusive_lock(self._key_path.parent):
            key = self._read_key(self._key_path)
            if key is not None and not rebuilding:  # another run was faster
                return key
            begun = key or self._read_key(self._begun_path)
            if begun is None:
                begun = HouseholdKey(os.urandom(KEY_BYTES))
                atomic_files.write(self._begun_path, begun.secret)
            with self.register() as register:
                register.create({CHECK: begun.check, BEGAN: today, REBUILT: today if rebuilding else ""})
                if register.read(lambda rows: rows.meta()[CHECK]) != begun.check:  # another machine was faster
                    raise LedgerError(f"the household register was filled with another key; nothing was drawn; {_COPY}")
            if key is None:
                with atomic_files.write_errors(self._key_path):
                    self._begun_path.replace(self._key_path)
            return begun

    @property
    def _key_path(self) -> Path:
        """Return where the key is: in the confidential folder, or beside a file that several folders share."""
        own = self.folder / _KEY_FILE
        shared = self.url is not None and self.url.startswith(_FILE_URL) and not atomic_files.path_exists(own)
        return Path(str(self.url).removeprefix(_FILE_URL)).parent / _KEY_FILE if shared else own

    @property
    def _begun_path(self) -> Path:
        return self._key_path.with_name(f"{_KEY_FILE}.begun")

    @staticmethod
    def _read_key(path: Path) -> HouseholdKey | None:
        if not atomic_files.path_exists(path):
            return None
        try:
            secret = path.read_bytes()
        except OSError as error:
            raise atomic_files.unreadable_error(path, error.errno) from None
        if len(secret) != KEY_BYTES:
            raise DamagedFile(f"{_KEY_FILE} in the confidential folder is damaged; {_COPY}")
        return HouseholdKey(secret)
