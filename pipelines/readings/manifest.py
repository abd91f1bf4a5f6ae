"""What the store knows of an input file that is wholly in it: written last, and checked before it is believed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Self


@dataclass(frozen=True, slots=True)
class Part:
    """What one part held: rows read, kept, set aside by reason, notes; rows, bytes, bytes of days by month."""

    rows_read: int
    kept: int
    aside: dict[str, int] = field(default_factory=dict)
    notes: dict[str, int] = field(default_factory=dict)
    months: dict[str, tuple[int, int, int]] = field(default_factory=dict)

    def is_consistent(self) -> bool:
        """Return whether rows read = kept + set aside, and kept = the rows of the months."""
        month_rows = sum(rows for rows, _, _ in self.months.values())
        return self.rows_read == self.kept + sum(self.aside.values()) and self.kept == month_rows


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a stored file held, part by part, before months are settled.

    `name` and `modified_ns` are those under which its bytes were read, `digest` is that of its bytes, `read_as` the
    dataset and the rules, `variant` the header, `tzdata` the version of the time zone database ("" if it said none).
    """

    name: str
    modified_ns: int
    digest: str
    read_as: dict[str, Any]
    variant: str
    parts: tuple[Part, ...]
    tzdata: str = ""

    @classmethod
    def from_json(cls, record: dict[str, Any]) -> Self:
        """Return what `to_json` wrote."""
        return cls(**{**record, "parts": tuple(Part(**part) for part in record["parts"])})

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON knows it."""
        return asdict(self)

    @property
    def content(self) -> str:
        """Return the content id of the file: a damaged manifest is not that of the file it is named by."""
        return content_id(self.digest, self.read_as)

    @property
    def rows_read(self) -> int:
        """Return how many rows the file has."""
        return sum(part.rows_read for part in self.parts)

    @property
    def kept(self) -> int:
        """Return how many rows were kept before months are settled."""
        return sum(part.kept for part in self.parts)

    @property
    def rejected(self) -> dict[str, int]:
        """Return how many rows were set aside, by reason."""
        return _sum_counts(part.aside for part in self.parts)

    @property
    def notes(self) -> dict[str, int]:
        """Return how many rows there is something to note about."""
        return _sum_counts(part.notes for part in self.parts)

    @property
    def months(self) -> frozenset[str]:
        """Return the months of which it has readings."""
        return frozenset(month for part in self.parts for month in part.months)

    def first_row(self, number: int) -> int:
        """Return how many rows of the file come before a part."""
        return sum(part.rows_read for part in self.parts[:number])

    def is_consistent(self) -> bool:
        """Return whether every part does, and the names of its months are months."""
        return all(part.is_consistent() for part in self.parts)


def content_id(digest: str, read_as: Mapping[str, Any]) -> str:
    """Return the content id of a file with this digest, read under these rules."""
    return hashlib.sha256(json.dumps([digest, read_as], sort_keys=True).encode()).hexdigest()


def _sum_counts(counts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    total: dict[str, int] = {}
    for count in counts:
        for name, number in count.items():
            total[name] = total.get(name, 0) + number
    return total
