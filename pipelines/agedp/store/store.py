"""The confidential store of READINGS: append-only Parquet parts by month and content.

    <confidential>/store/month=2013-03/<content>-<number>.parquet              rows of one part of an input file
    <confidential>/store/part_days/month=2013-03/<content>-<number>.parquet    daily totals of these rows
    <confidential>/store/quarantine/month=2013-03/<content>-<number>.parquet   its rejected rows
    <confidential>/store/quarantine/<content>-<number>.parquet                 rejected rows without a month
    <confidential>/store/files/<content>.json                                  written last: the file is complete

A store of several household buckets has folders bucket=007 in those of the months, each with the rows of
its households; rejected rows are not split.

A content id is a hash of the file's bytes and of the parsing rules, so a new bound or dataset never mixes with old
parts. `month_reader.load_month_readings` returns the readings of a month; `daily_totals` stores daily totals.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import zlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, fields
from datetime import date
from functools import lru_cache
from itertools import accumulate
from pathlib import Path
from typing import Any, Final, Self

import numpy as np
import pyarrow as pa

from agedp.local_files import atomic_files
from agedp.local_files.atomic_files import (
    FileKind,
    FileNotice,
    read_checked_json,
    read_content,
    read_derived,
)
from agedp.local_files.books import Books
from agedp_data import table_schemas
from agedp_data.datasets.filesystem import local_fingerprint, natural_sort_key
from agedp_data.datasets.layout import Layout
from agedp_data.datasets.registry import layout_of
from agedp_data.datasets.timestamps import day_number
from agedp_data.datasets.validation import INTERVAL_MINUTES, Ints, ReadingRules
from agedp_data.errors import InputError
from agedp_data.meters import MeterFile

# --------------------------------------------------------------------------------------------------
# The manifest of an input file that is completely in the store: written last, and checked when it is read.
# --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Part:
    """The counts of one part of a file.

    Attributes:
        rows_read: number of rows of the part.
        rows_kept: number of rows with a valid reading.
        rejected: number of rejected rows by reason.
        notes: number of kept rows with a remark, by remark.
        months: by month the number of rows, the size of their READINGS and the size of their PART_DAYS [bytes].
        days: by month the first and last day with a row, since 1970; without them a part has the complete month.
        buckets: in a store of several household buckets, by month and bucket the size of the READINGS and of the
            PART_DAYS [bytes].
    """

    rows_read: int
    rows_kept: int
    rejected: dict[str, int] = field(default_factory=dict)
    notes: dict[str, int] = field(default_factory=dict)
    months: dict[str, tuple[int, int, int]] = field(default_factory=dict)
    days: dict[str, tuple[int, int]] = field(default_factory=dict)
    buckets: dict[str, dict[str, tuple[int, int]]] = field(default_factory=dict)

    def is_consistent(self) -> bool:
        """Return whether rows read = kept + rejected, and kept = the rows of all months.

        >>> Part(5, 4, {"not a number": 1}, months={"2013-03": (4, 900, 200)}).is_consistent()
        True
        >>> Part(5, 4).is_consistent()
        False
        """
        month_rows = sum(rows for rows, _, _ in self.months.values())
        return (
            self.rows_read == self.rows_kept + sum(self.rejected.values())
            and self.rows_kept == month_rows
            and all(
                tuple(self.months[month][1:]) == tuple(sum(pair[i] for pair in sizes.values()) for i in range(2))
                for month, sizes in self.buckets.items()
            )
        )

    @property
    def first_day(self) -> int | None:
        """Return the first day with a row, since 1970, or the first of its month; None without a row.

        >>> Part(2, 2, months={"2013-03": (2, 900, 200)}).first_day == day_number(date(2013, 3, 1))
        True
        """
        firsts = (
            self.days[month][0] if month in self.days else day_number(date.fromisoformat(f"{month}-01"))
            for month in self.months
        )
        return min(firsts, default=None)

    def stored_sizes(self) -> Iterator[tuple[str, int, int, int]]:
        """Yield month, bucket, size of the READINGS and size of the PART_DAYS [bytes] of each pair of stored files."""
        for month, (_, size, days_size) in self.months.items():
            if month not in self.buckets:
                yield month, 0, size, days_size
                continue
            for bucket, (bucket_size, bucket_days_size) in self.buckets[month].items():
                yield month, int(bucket), bucket_size, bucket_days_size


@dataclass(frozen=True, slots=True)
class Manifest:
    """The counts of a stored file, part by part, before months are deduplicated.

    `name` and `modified_ns` are those of the file when it was ingested, `digest` is the hash of its bytes, `read_as`
    the dataset and the parsing rules, `variant` the header, `tzdata` the version of the time zone database ("" if
    unknown), `buckets` the number of household buckets of the store.
    """

    name: str
    modified_ns: int
    digest: str
    read_as: dict[str, Any]
    variant: str
    parts: tuple[Part, ...]
    tzdata: str = ""
    buckets: int = 1

    @classmethod
    def from_json(cls, record: dict[str, Any]) -> Self:
        """Return the manifest that `to_json` wrote.

        Raises:
            KeyError, TypeError: the record is not of this form; a caller treats the manifest as damaged.
        """
        names = {key: name for name, key in _JSON_KEYS.items()}
        parts = [Part(**{names.get(key, key): value for key, value in part.items()}) for part in record["parts"]]
        return cls(**{**record, "parts": tuple(parts)})

    def to_json(self) -> dict[str, Any]:
        """Return the manifest as a JSON object with the keys of the stored files; two differ from the attributes."""
        record = {each.name: getattr(self, each.name) for each in fields(self)}  # asdict would copy all counts: 1 ms
        keys = {each.name: _JSON_KEYS.get(each.name, each.name) for each in fields(Part)}
        return {**record, "parts": [{keys[name]: getattr(part, name) for name in keys} for part in self.parts]}

    @property
    def content(self) -> str:
        """Return the content id of the file; of a damaged manifest it differs from the file name."""
        return content_id(self.digest, self.read_as)

    @property
    def rows_read(self) -> int:
        """Return the number of rows of the file."""
        return sum(part.rows_read for part in self.parts)

    @property
    def rows_kept(self) -> int:
        """Return the number of rows that were kept before months are deduplicated."""
        return sum(part.rows_kept for part in self.parts)

    @property
    def rejected(self) -> dict[str, int]:
        """Return the number of rejected rows by reason."""
        return sum_counts(part.rejected for part in self.parts)

    @property
    def notes(self) -> dict[str, int]:
        """Return the number of kept rows with a remark, by remark."""
        return sum_counts(part.notes for part in self.parts)

    @property
    def months(self) -> frozenset[str]:
        """Return the months with readings of the file."""
        return frozenset(month for part in self.parts for month in part.months)

    @property
    def first_day(self) -> int | None:
        """Return the first day with a row, as of a part."""
        return min((part.first_day for part in self.parts if part.first_day is not None), default=None)

    def first_rows(self) -> tuple[int, ...]:
        """Return the number of rows of the file before each part: the row number at which the part begins."""
        return tuple(accumulate((part.rows_read for part in self.parts[:-1]), initial=0))

    def is_consistent(self) -> bool:
        """Return whether the counts of every part are consistent."""
        return all(part.is_consistent() for part in self.parts)


@dataclass(frozen=True, slots=True)
class PartSpan:
    """The days of a part in one month, since 1970, the rows of its file before it, and its rows in the month."""

    first: int
    last: int
    rows_before: int
    rows: int


SpansByMonth = Mapping[str, PartSpan]
"""The spans of one part by month; without those of manifests that name no days."""


def part_spans(manifest: Manifest) -> tuple[SpansByMonth, ...]:
    """Return the spans of each part of a file."""
    return tuple(
        {month: PartSpan(*part.days[month], rows_before, part.months[month][0]) for month in part.days}
        for rows_before, part in zip(manifest.first_rows(), manifest.parts, strict=False)
    )


_JSON_KEYS: Final = {"rows_kept": "kept", "rejected": "aside"}
"""Attributes of `Part` whose key in the file is an older word."""


def content_id(digest: str, read_as: Mapping[str, Any]) -> str:
    """Return the content id of a file with this digest, parsed under these rules.

    SHA-256 of the canonical JSON text of both. Other rules give another id, so that rows parsed under different rules
    never mix in the store.
    """
    return hashlib.sha256(json.dumps([digest, read_as], sort_keys=True).encode()).hexdigest()


def sum_counts(counts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """Return counts by name together, in the order in which the names first occur."""
    total: dict[str, int] = {}
    for count in counts:
        for name, number in count.items():
            total[name] = total.get(name, 0) + number
    return total


# --------------------------------------------------------------------------------------------------
# The record of removed months: the first month of which a store still has readings, with a checksum.
# --------------------------------------------------------------------------------------------------

_MONTH = re.compile(r"[0-9]{4}-[0-9]{2}")
_RECORD: Final = "forgotten_before"


def read_retained_from(folder: Path) -> str:
    """Return the first retained month of the store in this folder; "" if no month was removed.

    Raises:
        DamagedFile: the record is damaged; removed readings would count as missing ones.
    """
    advice = "put back a copy of it, or name another confidential folder"
    return read_content(folder / _RECORD, _parse_month, FileKind.SOURCE, advice=advice).value or ""


def write_retained_from(folder: Path, month: str) -> None:
    """Write the first retained month.

    Call it before earlier readings are removed: after an interruption they count as removed, never as missing.
    """
    atomic_files.write(folder / _RECORD, f"{month} {_month_checksum(month)}".encode())


def _parse_month(path: Path) -> str:
    """Return the month in the file; a file without a checksum was written by an earlier version."""
    month, space, check = path.read_text(encoding="ascii").partition(" ")
    if not _MONTH.fullmatch(month) or (space and check != _month_checksum(month)):
        raise ValueError("it names no month")
    return month


def _month_checksum(month: str) -> str:
    return hashlib.sha256(month.encode()).hexdigest()[:8]


FORMAT, WIDE_FORMAT = 5, 6
"""Version of the rules by which bytes become rows, and rows parts; 5: each physical line is a row, 6: each cell of a
table with a column per meter is.
"""
EARLIER_FORMATS = (4, 5)
"""A file parsed under them still counts if it is no longer listed; a listed file is parsed again."""


@dataclass(frozen=True, slots=True)
class FileOrder:
    """The order of files for corrections, and whether files that are no longer listed still count.

    `criterion` is None (conflicting rows are rejected), "name" (natural order) or "modified". With `keeps_unlisted`
    (every mode but archive) a delivery may be removed once it is ingested.
    """

    criterion: str | None = None
    keeps_unlisted: bool = False


def book_of(folder: Path) -> Books:
    """Return the book of the confidential folder in which a store's folder is."""
    return Books(folder.parent / "books.sqlite")


@dataclass(frozen=True, slots=True)
class Store:
    """The stored readings of one dataset under one set of parsing rules.

    The value contains no open file and no data: it is cheap to construct, and Dask tasks receive it by value.

    Attributes:
        folder: the folder `store` of the confidential folder, on a path that all workers see.
        dataset: the name of the dataset, as in [input].
        rules: the parsing rules, part of every content id.
        order: the order of files for corrections.
        buckets: number of household buckets, fixed when the store is created.
        meters: the meters of the households, if the ids of the files are meters; they are applied when a month is read.
    """

    folder: Path
    dataset: str
    rules: ReadingRules
    order: FileOrder = FileOrder()
    buckets: int = 1
    meters: MeterFile | None = None

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Lock the store against other runs.

        Raises:
            Busy: another run keeps the lock for too long.
        """
        with atomic_files.exclusive_lock(atomic_files.make_private(self.folder)):
            yield

    @property
    def books(self) -> Books:
        """Return the book of the confidential folder."""
        return book_of(self.folder)

    @property
    def layout(self) -> Layout:
        """Return the dataset's layout."""
        return layout_of(self.dataset, self.rules.columns, self.rules.interval_minutes)

    @property
    def schema(self) -> pa.Schema:
        """Return the table of READINGS of the dataset's layout."""
        layout = self.layout
        return table_schemas.readings_schema(
            width=layout.width, channels=layout.channels, units_per_wh=layout.units_per_wh, has_labels=layout.has_labels
        )

    def content_id(self, digest: str) -> str:
        """Return the content id of a file with this digest."""
        return content_id(digest, self.read_as)

    @property
    def read_as(self) -> dict[str, Any]:
        """Return the dataset and the parsing rules, named as in [input]; content ids depend on them."""
        return _reading_rules_json(self.dataset, self.rules)

    def is_read_alike(self, manifest: Manifest) -> bool:
        """Return whether a file was parsed under this store's rules, in this or an earlier format.

        A file that is no longer listed then still counts; a listed file of an earlier format is parsed again.
        """
        current = self.read_as
        return manifest.read_as == current or any(
            manifest.read_as == {**current, "format": number} for number in EARLIER_FORMATS
        )

    def manifest(self, content: str) -> Manifest | None:
        """Return the manifest of a stored file; None if the file is not completely in the store.

        Raises:
            InputError: the system denies access; an existing file must not count as missing.
        """

        def parse(path: Path) -> Manifest | None:
            manifest = Manifest.from_json(read_checked_json(path.read_bytes()))
            return manifest if manifest.is_consistent() and content == manifest.content else None

        return read_derived(self.folder / "files" / f"{content}.json", parse)

    def part_spans(self, content: str) -> tuple[SpansByMonth, ...]:
        """Return the spans of each part of a stored file; none if its manifest is missing or damaged."""
        return self._spans_and_first_rows(content)[0]

    def _spans_and_first_rows(self, content: str) -> tuple[tuple[SpansByMonth, ...], tuple[int, ...]]:
        try:
            status = (self.folder / "files" / f"{content}.json").stat()
        except OSError:
            return (), ()
        return _read_spans_and_first_rows(self, content, status.st_mtime_ns, status.st_size)

    def order_contents(self, named_contents: Iterable[tuple[str, str, int]]) -> tuple[str, ...]:
        """Return content ids from the earliest file to the latest, by their (content, name, modified_ns).

        Of several files with one content the earliest counts: a file that is delivered again must not undo a
        correction that was delivered in between.
        """

        def sort_key(named_content: tuple[str, str, int]) -> tuple[object, ...]:
            _, name, modified_ns = named_content
            file_name = name.rpartition("/")[2]  # without its folder, which may be moved
            return (
                modified_ns if self.order.criterion == "modified" else 0,
                natural_sort_key(file_name),
                file_name,
                natural_sort_key(name),
            )

        return tuple(dict.fromkeys(content for content, _, _ in sorted(named_contents, key=sort_key)))

    def retained_from(self) -> str:
        """Return the first retained month: earlier readings were removed (see `retention`); "" if none were.

        Raises:
            DamagedFile: the record is damaged; removed readings would count as missing ones.
        """
        return read_retained_from(self.folder)

    def month_folder(self, month: str, bucket: int = 0) -> Path:
        """Return the folder of the readings of a month and bucket."""
        return self._bucket_folder(self.folder / f"month={month}", bucket)

    def part_days_folder(self, month: str, bucket: int = 0) -> Path:
        """Return the folder of the daily totals of each part of a month and bucket."""
        return self._bucket_folder(self.folder / "part_days" / f"month={month}", bucket)

    def days_folder(self, month: str, bucket: int = 0) -> Path:
        """Return the folder of the deduplicated daily totals of a month and bucket."""
        return self._bucket_folder(self.folder / "days" / f"month={month}", bucket)

    def _bucket_folder(self, folder: Path, bucket: int) -> Path:
        return folder if self.buckets == 1 else folder / f"bucket={bucket:03}"

    def quarantine_folder(self, month: str) -> Path:
        """Return the folder of a month's rejected rows; "" for rejected rows without a month."""
        return self.folder / "quarantine" / f"month={month}" if month else self.folder / "quarantine"

    def undated_files(self, name: str) -> list[Path]:
        """Return the files of this name with rejected rows without a month, and of those that parsing gave one."""
        undated = self.quarantine_folder("")
        return [path for folder in (undated, *undated.glob("month=*")) if (path := folder / name).exists()]

    def discard_parts_except(self, contents: Collection[str]) -> None:
        """Remove parts of incomplete files: a run was interrupted, or a file was rejected after some of its parts.

        No other process may ingest files into the store at the same time.
        """
        by_bucket = ("month=*", "part_days/month=*")
        patterns = (*by_bucket, *(f"{pattern}/bucket=*" for pattern in by_bucket), "quarantine", "quarantine/month=*")
        for path in (path for pattern in patterns for path in self.folder.glob(f"{pattern}/*.parquet")):
            if path.stem.rpartition("-")[0] not in contents:
                path.unlink(missing_ok=True)

    def month_parts(self, month: str, contents: Sequence[str], bucket: int = 0) -> tuple[PartMonth, ...]:
        """Return the parts of these files that have readings of a month and bucket, in the files' order.

        Parts beyond those of a file's manifest are left out: an interrupted run split the file into more.

        Raises:
            InputError: the system denies access to the folder.
        """
        index_by_content = {content: i for i, content in enumerate(contents)}
        folder = self.month_folder(month, bucket)
        try:
            names = [path.stem for path in folder.iterdir() if path.suffix == ".parquet"]
        except FileNotFoundError:
            return ()
        except OSError as error:
            raise atomic_files.unreadable_error(folder, error.errno) from None
        identified = ((content, int(number)) for content, _, number in (name.rpartition("-") for name in names))
        parts = sorted(
            (index_by_content[content], number, content)
            for content, number in identified
            if content in index_by_content and number < (len(self.part_spans(content)) or number + 1)
        )
        return tuple(PartMonth(file_index, content, number) for file_index, number, content in parts)

    def rows_before(self, part: PartMonth) -> int:
        """Return the number of data rows of a part's file before the part.

        Raises:
            InputError: the file disappeared from the store in the meantime.
        """
        _, first_rows = self._spans_and_first_rows(part.content)
        if part.number >= len(first_rows):
            raise InputError("the confidential store changed while it was read; run again")
        return first_rows[part.number]


@dataclass(frozen=True, slots=True)
class PartMonth:
    """One part of a file in one month.

    Attributes:
        file_index: index of the file in the order of all files.
        content: content id of the file.
        number: number of the part within the file, from 0.
    """

    file_index: int
    content: str
    number: int

    @property
    def name(self) -> str:
        """Return the file name of the part."""
        return f"{self.content}-{self.number}.parquet"


@lru_cache(maxsize=1024)
def _read_spans_and_first_rows(
    store: Store, content: str, _modified_ns: int, _size: int
) -> tuple[tuple[SpansByMonth, ...], tuple[int, ...]]:
    """Return the spans of each part of a file, and the number of rows of the file before each."""
    manifest = store.manifest(content)
    return ((), ()) if manifest is None else (part_spans(manifest), manifest.first_rows())


@lru_cache(maxsize=64)
def _reading_rules_json(dataset: str, rules: ReadingRules) -> dict[str, Any]:
    keys = layout_of(dataset, rules.columns, rules.interval_minutes).keys
    layout_keys = rules.layout_keys if rules.layout_keys is not None or keys is None else keys()
    rules_json = {
        "format": WIDE_FORMAT if rules.columns is not None and rules.columns.is_wide else FORMAT,
        "dataset": dataset,
        "max_half_hour_kwh": rules.max_half_hour_wh / 1000,
        "columns": rules.columns.keys if rules.columns else None,
        "interval_minutes": rules.interval_minutes if rules.interval_minutes != INTERVAL_MINUTES else None,
        **(layout_keys.model_dump(mode="json") if layout_keys else {}),
    }
    return json.loads(json.dumps({key: value for key, value in rules_json.items() if value is not None}))  # type: ignore[no-any-return]


def month_numbers(day: Ints) -> Ints:
    """Return months since 1970 of days since 1970, shape of `day`.

    >>> month_numbers(np.array([0, 30, 31])).tolist()
    [0, 0, 1]
    """
    months: Ints = day.astype("datetime64[D]").astype("datetime64[M]").astype(np.int64)
    return months


def month_name(month: int) -> str:
    """Return the name of a month since 1970, as in its folder.

    >>> month_name(518)
    '2013-03'
    """
    return str(np.datetime64(int(month), "M"))


def months_between(first: date, last: date) -> tuple[str, ...]:
    """Return the names of the months of a period, both dates included.

    >>> months_between(date(2012, 12, 31), date(2013, 1, 1))
    ('2012-12', '2013-01')
    """
    days = np.array([day_number(first), day_number(last)])
    low, high = month_numbers(days)
    return tuple(month_name(month) for month in range(int(low), int(high) + 1))


# --------------------------------------------------------------------------------------------------
# All manifests in the book: a night reads it, and the manifest of each file that is new, damaged or changed since.
#
#     manifests     by content id: the state of the manifest's file, and the manifest
#
# The manifests stay the truth. A row counts as long as the file of its manifest has the size, the times and the inode
# that it had when it was read, and no row counts without a file. A damaged manifest has no row: a later version may be
# able to read it.
# --------------------------------------------------------------------------------------------------

_SUFFIX: Final = ".json"


_Entry = tuple[str, Manifest]
"""The state of the file of a manifest, and the manifest."""


@dataclass(frozen=True, slots=True)
class StoredManifests:
    """The manifests of a store, under any rules.

    Attributes:
        manifests: by content id, without damaged ones.
        damaged: content ids of the damaged ones.
    """

    manifests: dict[str, Manifest]
    damaged: frozenset[str]


def read_manifests(store: Store) -> StoredManifests:
    """Return the manifests of all files in a store, from the index as far as their files are unchanged.

    Raises:
        InputError: the system denies access; an existing file must not count as missing.
    """
    statuses = _statuses(store.folder / "files", _SUFFIX)
    states = {
        name.removesuffix(_SUFFIX): local_fingerprint(status)
        for name, status in sorted(statuses.items())
        if not name.startswith(".")
    }
    indexed = _read_index(store)
    entries: dict[str, _Entry] = {}
    for content, state in states.items():
        entry = indexed.get(content)
        if entry is not None and entry[0] == state:
            entries[content] = entry
        elif (manifest := store.manifest(content)) is not None:
            entries[content] = state, manifest
    changed = {
        content: json.dumps([state, manifest.to_json()]).encode()
        for content, (state, manifest) in entries.items()
        if indexed.get(content) is not entries[content]
    }
    if changed or len(indexed) > len(entries):
        store.books.put_derived("manifests", changed, removed=indexed.keys() - entries.keys())
    manifests = {content: manifest for content, (_, manifest) in entries.items()}
    return StoredManifests(manifests, frozenset(states.keys() - manifests.keys()))


def _statuses(folder: Path, suffix: str) -> dict[str, os.stat_result]:
    """Return the status of each file with this suffix by its name; none if the folder does not exist."""
    try:
        with os.scandir(folder) as entries:
            return {entry.name: entry.stat() for entry in entries if entry.name.endswith(suffix)}
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except OSError as error:
        raise atomic_files.unreadable_error(folder, error.errno) from None


def _read_index(store: Store) -> dict[str, _Entry]:
    entries: dict[str, _Entry] = {}
    for content, row in store.books.rows("manifests").items():
        with suppress(LookupError, TypeError, ValueError):  # of another version
            state, record = json.loads(row)
            entries[content] = str(state), Manifest.from_json(record)
    return entries


# --------------------------------------------------------------------------------------------------
# Sizes of the stored parts by one listing of each month's folder, to compare them with all manifests.
# --------------------------------------------------------------------------------------------------


class StoredSizes:
    """The sizes of the parts of a store; each folder is listed when it is first asked for.

    Do not keep it while parts are written or removed.
    """

    def __init__(self, store: Store) -> None:
        self._store, self._retained_from = store, store.retained_from()
        self._by_folder: dict[tuple[str, int], tuple[Mapping[str, int], Mapping[str, int]]] = {}

    def contains(self, content: str, manifest: Manifest | None) -> bool:
        """Return whether a file is completely in the store, every part with the size that its manifest contains.

        Parts of months that retention removed are not expected.

        Raises:
            InputError: the system denies access.
        """
        return (
            manifest is not None
            and manifest.buckets == self._store.buckets
            and all(
                self._sizes(month, bucket)[table].get(f"{content}-{number}.parquet") == size
                for number, part in enumerate(manifest.parts)
                for month, bucket, *sizes in part.stored_sizes()
                if month >= self._retained_from
                for table, size in enumerate(sizes)
            )
        )

    def _sizes(self, month: str, bucket: int) -> tuple[Mapping[str, int], Mapping[str, int]]:
        """Return the sizes of the READINGS and of the PART_DAYS of a month and bucket by file name."""
        if (month, bucket) not in self._by_folder:
            readings, part_days = (
                {name: status.st_size for name, status in _statuses(folder, ".parquet").items()}
                for folder in (self._store.month_folder(month, bucket), self._store.part_days_folder(month, bucket))
            )
            self._by_folder[month, bucket] = readings, part_days
        return self._by_folder[month, bucket]


# --------------------------------------------------------------------------------------------------
# Household buckets: the store and the roster are split by household as well as by month, so that tasks stay small.
#
# The row `buckets` of the book has the number, written by the first run; one bucket by the first file.
#
# The bucket of a household is the CRC-32 of its id, modulo the number of buckets. A store keeps its number for ever. A
# store without the record has the number of its manifests: those of earlier versions have one bucket.
# --------------------------------------------------------------------------------------------------

_HOUSEHOLDS_PER_BUCKET: Final = 50_000
_TOO_LARGE: Final = 4


def bucket_of(household_id: str, buckets: int) -> int:
    """Return the bucket of a household, from 0; the same on every machine and in every process.

    >>> bucket_of("MAC000003", 1), bucket_of("MAC000003", 64)
    (0, 22)
    """
    return zlib.crc32(household_id.encode()) % buckets


def bucket_numbers(ids: Sequence[str], buckets: int) -> Ints:
    """Return the bucket of each household id.

    >>> bucket_numbers(["MAC000002", "MAC000003"], 4).tolist()
    [0, 2]
    """
    return np.fromiter((bucket_of(household, buckets) for household in ids), np.int64, len(ids))


def buckets_for(households: int) -> int:
    """Return the number of buckets of a new store for so many households on the roster, at least 1.

    >>> buckets_for(0), buckets_for(50_000), buckets_for(50_001), buckets_for(30_000_000)
    (1, 1, 2, 600)
    """
    return max(1, -(-households // _HOUSEHOLDS_PER_BUCKET))


def stored_buckets(folder: Path) -> int | None:
    """Return the number of buckets of a store; None if there is no store yet.

    A missing or damaged record is replaced by the number that the manifests contain.

    Args:
        folder: the folder of the store.

    Raises:
        InputError: the system denies access.
    """
    number = _recorded_number(folder)
    return number if number is not None else _manifests_number(folder / "files")


def store_buckets(folder: Path, households: int) -> int:
    """Return the number of buckets of a store, or of one that is created now for so many households.

    Raises:
        InputError: the system denies access.
    """
    number = stored_buckets(folder)
    return buckets_for(households) if number is None else number


def record_buckets(folder: Path, buckets: int) -> None:
    """Record the number of buckets of a store, so that no manifest is read for it; one bucket once it has a file.

    Raises:
        ValueError: the store has another number already.
        InputError: the system denies access.
    """
    number = _recorded_number(folder)
    stored = number or _manifests_number(folder / "files")
    if (stored or buckets) != buckets:
        raise ValueError(f"the store is opened with {buckets} household buckets, but has another number")
    if number is None and (buckets > 1 or stored):
        book_of(folder).put_derived("buckets", {"": str(buckets).encode()})


def size_notice(folder: Path, buckets: int, households: int) -> FileNotice | None:
    """Return a notice about a store with far more households in a bucket than a new store would have.

    The size of the roster is confidential, and the number of buckets follows from it: only `private` has numbers.

    Args:
        folder: the folder of the store.
        buckets: its number of buckets.
        households: number of roster rows.

    >>> size_notice(Path("store"), 1, 200_000) is None, size_notice(Path("store"), 1, 200_001).public
    (True, 'the confidential store has too few household buckets for the roster')
    """
    wanted = buckets_for(households)
    if wanted <= _TOO_LARGE * buckets:
        return None
    public = "the confidential store has too few household buckets for the roster"
    numbers = (
        f"it has {buckets} household bucket{'s' * (buckets != 1)}, and a new store for {households:,} roster rows "
        f"would have {wanted}"
    )
    remedy = "runs need less memory with a new one, which the next run makes from the input files once it is removed"
    return FileNotice(public, f"{folder}: {numbers}; {remedy}")


def _recorded_number(folder: Path) -> int | None:
    number = book_of(folder).row("buckets", "")
    return None if number is None else int(number)


def _manifests_number(folder: Path) -> int | None:
    """Return the number of buckets of the first readable manifest; None without one."""

    def parse(path: Path) -> int:
        return int(read_checked_json(path.read_bytes()).get("buckets", 1))

    numbers = (read_derived(folder / name, parse) for name in _statuses(folder, _SUFFIX))
    return next((number for number in numbers if number is not None and number > 0), None)
