"""Headers of releases: what promises, plans and statements need of a row, without its vector.

A row of 20 groups x 100 bins has 2,000 cells, values and numbers of households; its header has none of them, so that
years of history are small. The complete row is read from the database where values are needed (`LedgerReader.rows`).
"""

from __future__ import annotations

from dataclasses import dataclass, fields

from agedp_data.ledger.records import ReleaseRecord


@dataclass(frozen=True, slots=True)
class ReleaseHeader:
    """All fields of a release but cells, values and households; see `ReleaseRecord` for their meaning."""

    population: str
    series: str
    day: str
    revision: int
    state: str
    sensitivity: int
    scale: float
    mechanism: str
    loss: int
    input_ended_at: str
    published_on: str
    contract: str
    model: str
    seq: int = 0
    at: str = ""
    hash: str = ""


AnyRelease = ReleaseHeader | ReleaseRecord
"""A release with or without its vector, for functions that do not read the vector."""
HEADER_FIELDS = tuple(field.name for field in fields(ReleaseHeader))


def outline_of(row: AnyRelease) -> ReleaseRecord:
    """Return a release without its vector as a record, for functions of complete records that do not read the vector.

    Nothing is computed from the empty vector: the complete row takes its place first (`LedgerReader.rows_of`).
    """
    fields_of_row = {name: getattr(row, name) for name in HEADER_FIELDS}
    return ReleaseRecord(**fields_of_row, cells=(), values=(), households=())


def header_of(row: ReleaseRecord) -> ReleaseHeader:
    """Return the header of a release."""
    return ReleaseHeader(*(getattr(row, name) for name in HEADER_FIELDS))
