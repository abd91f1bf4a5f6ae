"""The confidential store of READINGS: append-only Parquet parts by content, in a folder named by their months.

    <confidential>/store/month=2013-03_2014-02/<content>-<number>.parquet            rows of one part of an input file
    <confidential>/store/part_days/month=2013-03_2014-02/<content>-<number>.parquet  daily totals of these rows
    <confidential>/store/quarantine/month=2013-03/<content>-<number>.parquet         its rejected rows
    <confidential>/store/quarantine/<content>-<number>.parquet                       rejected rows without a month
    <confidential>/store/files/<content>.json                                        written last: the file is complete

A part has a row group for each month with a row, and for each household bucket in it if the store has several. The
folder of a part of one month is month=2013-03. Its name remains when retention removes months from the part. Rejected
rows are not split by bucket.

Up to version 0.2 a part had a file for each month (month=2013-03), and for each bucket a folder bucket=007 in that of
the month. Such parts are read as they are.

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
    checked_json,
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
        months: by month the number of rows; of a part with a file for each month also the size of its READINGS and of
            its PART_DAYS [bytes].
        days: by month the first and last day with a row, since 1970; without them a part has the complete month.
        buckets: in a store of several household buckets, by month and bucket these two sizes, or nothing.
        files: the size of the READINGS and of the PART_DAYS of the part [bytes]; a second pair after retention
            rewrote them: each of the two may be there in either size. Empty if each month has a file.
    """

    rows_read: int
    rows_kept: int
    rejected: dict[str, int] = field(default_factory=dict)
    notes: dict[str, int] = field(default_factory=dict)
    months: dict[str, tuple[int, ...]] = field(default_factory=dict)
    days: dict[str, tuple[int, int]] = field(default_factory=dict)
    buckets: dict[str, dict[str, tuple[int, ...]]] = field(default_factory=dict)
    files: tuple[tuple[int, ...], ...] = ()

    def is_consistent(self) -> bool:
        """Return whether rows read = kept + rejected, and kept = the rows of all months.

        >>> Part(5, 4, {"not a number": 1}, months={"2013-03": (4, 900, 200)}).is_consistent()
        True
        >>> Part(5, 4).is_consistent()
        False
        """
        month_rows = sum(rows for rows, *_ in self.months.values())
        return self.rows_read == self.rows_kept + sum(self.rejected.values()) and self.rows_kept == month_rows

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

    def place(self, month: str, bucket: int = 0) -> tuple[str, str | None] | None:
        """Return the folder of the rows of a month and bucket, and the name of their row group, if the part has any.

        >>> Part(3, 3, months={"2013-03": (1,), "2013-05": (2,)}, files=((900, 200),)).place("2013-05")
        ('month=2013-03_2013-05', '2013-05')
        """
        of_buckets = self.buckets.get(month)
        if month not in self.months or (of_buckets is not None and str(bucket) not in of_buckets):
            return None
        group = group_name(month, bucket, 1 if of_buckets is None else 2)
        return (months_folder(self.months), group) if self.files else (month_folder(group), None)

    def stored_sizes(self, retained_from: str) -> Iterator[tuple[str, Sequence[Sequence[int]]]]:
        """Yield the folder of each stored file of READINGS, and the sizes that it and its PART_DAYS may have [bytes].

        Months before `retained_from` are left out.
        """
        if self.files and max(self.months) >= retained_from:
            yield months_folder(self.months), self.files
        for month in () if self.files else [month for month in self.months if month >= retained_from]:
            for bucket, sizes in self.buckets.get(month, {"0": self.months[month][1:]}).items():
                yield month_folder(group_name(month, int(bucket), len(self.buckets) + 1)), [sizes]


def group_name(month: str, bucket: int, buckets: int) -> str:
    """Return the name of the row group of a month and bucket, in a store of so many buckets.

    >>> group_name("2013-03", 0, 1), group_name("2013-03", 7, 8)
    ('2013-03', '2013-03/007')
    """
    return month if buckets == 1 else f"{month}/{bucket:03}"


def months_folder(months: Collection[str]) -> str:
    """Return the folder of a part with rows of these months.

    >>> months_folder(["2013-03"]), months_folder(["2013-05", "2013-03", "2013-04"])
    ('month=2013-03', 'month=2013-03_2013-05')
    """
    first, last = min(months), max(months)
    return f"month={first}" if first == last else f"month={first}_{last}"


def month_folder(group: str) -> str:
    """Return the folder of a month, or of a month and bucket, by the name of its row group.

    >>> month_folder("2013-03"), month_folder("2013-03/007")
    ('month=2013-03', 'month=2013-03/bucket=007')
    """
    return f"month={group.replace('/', '/bucket=')}"


def months_of_folder(name: str) -> tuple[str, str]:
    """Return the first and last month of a folder of parts.

    >>> months_of_folder("month=2013-03"), months_of_folder("month=2013-03_2013-05")
    (('2013-03', '2013-03'), ('2013-03', '2013-05'))
    """
    first, _, last = name.removeprefix("month=").partition("_")
    return first, last or first


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


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Write the manifest of a file into the store in this folder: the file counts as its parts then are."""
    atomic_files.write(folder / "files" / f"{manifest.content}.json", checked_json(manifest.to_json()))


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


def is_read_alike(manifest: Manifest, read_as: Mapping[str, Any]) -> bool:
    """Return whether a file was parsed under these rules, in this or an earlier format.

    A file that is no longer listed then still counts; a listed file of an earlier format is parsed again.
    """
    earlier = ({**read_as, "format": number} for number in EARLIER_FORMATS)
    return manifest.read_as == read_as or manifest.read_as in earlier


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

    @property
    def read_as(self) -> dict[str, Any]:
        """Return the dataset and the parsing rules, named as in [input]; content ids depend on them."""
        return _reading_rules_json(self.dataset, self.rules)

    def manifest(self, content: str) -> Manifest | None:
        """Return the manifest of a stored file; None if the file is not completely in the store.

        Raises:
            InputError: the system denies access; an existing file must not count as missing.
        """

        def parse(path: Path) -> Manifest | None:
            manifest = Manifest.from_json(read_checked_json(path.read_bytes()))
            return manifest if manifest.is_consistent() and content == manifest.content else None

        return read_derived(self.folder / "files" / f"{content}.json", parse)

    def stored_parts(self, content: str) -> tuple[StoredPart, ...]:
        """Return the parts of a stored file; none if its manifest is missing or damaged."""
        try:
            status = (self.folder / "files" / f"{content}.json").stat()
        except OSError:
            return ()
        return _read_parts(self, content, status.st_mtime_ns, status.st_size)

    def days_folder(self, month: str, bucket: int = 0) -> Path:
        """Return the folder of the deduplicated daily totals of a month and bucket."""
        return self.folder / "days" / month_folder(group_name(month, bucket, self.buckets))

    def quarantine_folder(self, month: str) -> Path:
        """Return the folder of a month's rejected rows; "" for rejected rows without a month."""
        return self.folder / "quarantine" / f"month={month}" if month else self.folder / "quarantine"

    def month_parts(self, month: str, contents: Sequence[str], bucket: int = 0) -> tuple[PartMonth, ...]:
        """Return the parts of these files that have readings of a month and bucket, in the files' order.

        Parts beyond those of a file's manifest are left out: an interrupted run split the file into more.

        Raises:
            InputError: the system denies access to the folder, or the manifest of a file disappeared.
        """
        index_by_content = {content: i for i, content in enumerate(contents)}
        of_month = [name for name in _statuses(self.folder, "") if name.startswith("month=")]
        folders = [name for name in of_month if (ends := months_of_folder(name))[0] <= month <= ends[1]]
        if self.buckets > 1 and f"month={month}" in folders:
            folders.append(month_folder(group_name(month, bucket, self.buckets)))
        found: list[PartMonth] = []
        for folder in folders:
            for name in _statuses(self.folder / folder, ".parquet"):
                content, _, number = name.removesuffix(".parquet").rpartition("-")
                if content not in index_by_content or not number.isdecimal():
                    continue
                parts = self.stored_parts(content)
                if not parts:
                    raise store_changed()
                place = parts[int(number)].part.place(month, bucket) if int(number) < len(parts) else None
                if place is not None and place[0] == folder:
                    found.append(PartMonth(index_by_content[content], content, int(number), *place))
        return tuple(sorted(found, key=lambda part: (part.file_index, part.number)))


def order_contents(named_contents: Iterable[tuple[str, str, int]], order: FileOrder) -> tuple[str, ...]:
    """Return content ids from the earliest file to the latest, by their (content, name, modified_ns).

    Of several files with one content the earliest counts: a file that is delivered again must not undo a
    correction that was delivered in between.
    """

    def sort_key(named_content: tuple[str, str, int]) -> tuple[object, ...]:
        _, name, modified_ns = named_content
        file_name = name.rpartition("/")[2]  # without its folder, which may be moved
        return (
            modified_ns if order.criterion == "modified" else 0,
            natural_sort_key(file_name),
            file_name,
            natural_sort_key(name),
        )

    return tuple(dict.fromkeys(content for content, _, _ in sorted(named_contents, key=sort_key)))


def discard_parts_except(folder: Path, contents: Collection[str]) -> None:
    """Remove parts of incomplete files: a run was interrupted, or a file was rejected after some of its parts.

    No other process may ingest files into the store in this folder at the same time.
    """
    by_bucket = ("month=*", "part_days/month=*")
    patterns = (*by_bucket, *(f"{pattern}/bucket=*" for pattern in by_bucket), "quarantine", "quarantine/month=*")
    for path in (path for pattern in patterns for path in folder.glob(f"{pattern}/*.parquet")):
        if path.stem.rpartition("-")[0] not in contents:
            path.unlink(missing_ok=True)


def store_changed() -> InputError:
    """Return the error about a file that disappeared from the store in the meantime."""
    return InputError("the confidential store changed while it was read; run again")


@dataclass(frozen=True, slots=True)
class PartMonth:
    """One part of a file in one month.

    Attributes:
        file_index: index of the file in the order of all files.
        content: content id of the file.
        number: number of the part within the file, from 0.
        folder: where its file is in the store, and its daily totals in `part_days`.
        group: the name of the row group of the month and bucket; None: the file has no other rows.
    """

    file_index: int
    content: str
    number: int
    folder: str
    group: str | None

    @property
    def name(self) -> str:
        """Return the file name of the part."""
        return f"{self.content}-{self.number}.parquet"


@dataclass(frozen=True, slots=True)
class StoredPart:
    """One part of a stored file: its counts, its spans, and the number of rows of the file before it."""

    part: Part
    spans: SpansByMonth
    rows_before: int


@lru_cache(maxsize=1024)
def _read_parts(store: Store, content: str, _modified_ns: int, _size: int) -> tuple[StoredPart, ...]:
    manifest = store.manifest(content)
    if manifest is None:
        return ()
    return tuple(map(StoredPart, manifest.parts, part_spans(manifest), manifest.first_rows()))


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

    @property
    def digests(self) -> set[str]:
        """Return the hashes of the bytes of the files."""
        return {manifest.digest for manifest in self.manifests.values()}


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
# Sizes of the stored parts by one listing of each folder, to compare them with all manifests.
# --------------------------------------------------------------------------------------------------


class StoredSizes:
    """The sizes of the parts of a store; each folder is listed when it is first asked for.

    Do not keep it while parts are written or removed.
    """

    def __init__(self, store: Store) -> None:
        self._store, self._retained_from = store, read_retained_from(store.folder)
        self._by_folder: dict[str, tuple[Mapping[str, int], Mapping[str, int]]] = {}

    def contains(self, content: str, manifest: Manifest | None) -> bool:
        """Return whether a file is completely in the store, every part with a size that its manifest contains.

        Parts of months that retention removed are not expected.

        Raises:
            InputError: the system denies access.
        """
        return (
            manifest is not None
            and manifest.buckets == self._store.buckets
            and all(
                self._sizes(folder)[table].get(f"{content}-{number}.parquet") in [sizes[table] for sizes in allowed]
                for number, part in enumerate(manifest.parts)
                for folder, allowed in part.stored_sizes(self._retained_from)
                for table in range(2)
            )
        )

    def _sizes(self, folder: str) -> tuple[Mapping[str, int], Mapping[str, int]]:
        """Return the sizes of the READINGS and of the PART_DAYS of a folder by file name."""
        if folder not in self._by_folder:
            readings, part_days = (
                {name: status.st_size for name, status in _statuses(path, ".parquet").items()}
                for path in (self._store.folder / folder, self._store.folder / "part_days" / folder)
            )
            self._by_folder[folder] = readings, part_days
        return self._by_folder[folder]


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
