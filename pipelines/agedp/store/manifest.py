"""The manifest of an input file that is completely in the store: written last, and checked when it is read."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from datetime import date
from itertools import accumulate
from typing import Any, Final, Self

import numpy as np

from agedp_data.datasets.timestamps import day_number


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
        for month, sizes in self.buckets.items():
            _, size, days_size = self.months[month]
            if (size, days_size) != tuple(sum(pair[i] for pair in sizes.values()) for i in range(2)):
                return False
        return self.rows_read == self.rows_kept + sum(self.rejected.values()) and self.rows_kept == month_rows

    @property
    def first_day(self) -> int | None:
        """Return the first day with a row, since 1970, or the first of its month; None without a row.

        >>> Part(2, 2, months={"2013-03": (2, 900, 200)}).first_day == day_number(date(2013, 3, 1))
        True
        """
        firsts = (self.days[month][0] if month in self.days else _first_of(month) for month in self.months)
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
        return cls(**{**record, "parts": tuple(map(_part_from_json, record["parts"]))})

    def to_json(self) -> dict[str, Any]:
        """Return the manifest as a JSON object with the keys of the stored files; two differ from the attributes."""
        record = {each.name: getattr(self, each.name) for each in fields(self)}  # asdict would copy all counts: 1 ms
        return {**record, "parts": [_part_to_json(part) for part in self.parts]}

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
        return _sum_counts(part.rejected for part in self.parts)

    @property
    def notes(self) -> dict[str, int]:
        """Return the number of kept rows with a remark, by remark."""
        return _sum_counts(part.notes for part in self.parts)

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
    before = np.cumsum([0, *(part.rows_read for part in manifest.parts)]).tolist()
    return tuple(
        {month: PartSpan(*part.days[month], rows_before, part.months[month][0]) for month in part.days}
        for rows_before, part in zip(before, manifest.parts, strict=False)
    )


_JSON_KEYS: Final = {"rows_kept": "kept", "rejected": "aside"}
"""Attributes of `Part` whose key in the file is an older word."""


def _part_to_json(part: Part) -> dict[str, Any]:
    return {_JSON_KEYS.get(each.name, each.name): getattr(part, each.name) for each in fields(part)}


def _part_from_json(record: Mapping[str, Any]) -> Part:
    names = {key: name for name, key in _JSON_KEYS.items()}
    return Part(**{names.get(key, key): value for key, value in record.items()})


def content_id(digest: str, read_as: Mapping[str, Any]) -> str:
    """Return the content id of a file with this digest, parsed under these rules.

    SHA-256 of the canonical JSON text of both. Other rules give another id, so that rows parsed under different rules
    never mix in the store.
    """
    return hashlib.sha256(json.dumps([digest, read_as], sort_keys=True).encode()).hexdigest()


def _first_of(month: str) -> int:
    return day_number(date.fromisoformat(f"{month}-01"))


def _sum_counts(counts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    total: dict[str, int] = {}
    for count in counts:
        for name, number in count.items():
            total[name] = total.get(name, 0) + number
    return total
