"""The confidential store of READINGS: append-only Parquet parts by month and content.

    <confidential>/store/month=2013-03/<content>-<number>.parquet              rows of one part of an input file
    <confidential>/store/part_days/month=2013-03/<content>-<number>.parquet    daily totals of these rows
    <confidential>/store/quarantine/month=2013-03/<content>-<number>.parquet   its rejected rows
    <confidential>/store/quarantine/<content>-<number>.parquet                 rejected rows without a month
    <confidential>/store/files/<content>.json                                  written last: the file is complete

A store of several household buckets (`buckets`) has folders bucket=007 in those of the months, each with the rows of
its households; rejected rows are not split.

A content id is a hash of the file's bytes and of the parsing rules, so a new bound or dataset never mixes with old
parts. `month_reader.load_month_readings` returns the readings of a month; `daily_totals` stores daily totals.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from agedp.local_files import atomic_files, locks
from agedp.local_files.checksums import read_checked_json
from agedp.local_files.internal_files import FileKind, read_content
from agedp.store.manifest import Manifest, SpansByMonth, content_id, part_spans
from agedp.store.meters import MeterFile
from agedp.store.retained_months import read_retained_from
from agedp_data import table_schemas
from agedp_data.datasets.file_listing import natural_sort_key
from agedp_data.datasets.layout import Layout
from agedp_data.datasets.registry import layout_of
from agedp_data.datasets.timestamps import day_number
from agedp_data.datasets.validation import INTERVAL_MINUTES, Ints, ReadingRules
from agedp_data.errors import InputError

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
        with locks.exclusive_lock(atomic_files.make_private(self.folder)):
            yield

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

        return read_content(self.folder / "files" / f"{content}.json", parse, FileKind.DERIVED, advice="").value

    def part_spans(self, content: str) -> tuple[SpansByMonth, ...]:
        """Return the spans of each part of a stored file; none if its manifest is missing or damaged."""
        status = self._manifest_status(content)
        return () if status is None else _read_spans(self, content, *status)

    def _manifest_status(self, content: str) -> tuple[int, int] | None:
        """Return time of change and size of a manifest; None if there is none."""
        try:
            status = (self.folder / "files" / f"{content}.json").stat()
        except OSError:
            return None
        return status.st_mtime_ns, status.st_size

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
        status = self._manifest_status(part.content)
        first_rows = () if status is None else _read_first_rows(self, part.content, *status)
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
def _read_spans(store: Store, content: str, _modified_ns: int, _size: int) -> tuple[SpansByMonth, ...]:
    manifest = store.manifest(content)
    return () if manifest is None else part_spans(manifest)


@lru_cache(maxsize=1024)
def _read_first_rows(store: Store, content: str, _modified_ns: int, _size: int) -> tuple[int, ...]:
    """Return the number of rows of a file before each of its parts."""
    manifest = store.manifest(content)
    return () if manifest is None else manifest.first_rows()


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
