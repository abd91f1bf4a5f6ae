"""Tables of made-up ledger rows: as a release folder has them, and verified as those of a folder are."""

from __future__ import annotations

import io
from dataclasses import replace
from datetime import date, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq

from agedp.release_folder.partitions import release_tables
from agedp.release_folder.result_tables import Partition, common_guarantee, parquet_bytes, whole_table
from agedp.release_folder.verification import check_tables
from agedp_data.ledger import ReleaseRecord
from agedp_data.series.result_table import DerivedTable, Noise

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pyarrow as pa

    from agedp_data.ledger import ContractRecord
    from agedp_data.statement.document import Statement

COVERAGE = Decimal("0.95")


def days(first: date, number: int) -> list[date]:
    return [first + timedelta(days=i) for i in range(number)]


def row_of(day: date, series: str, **changed: Any) -> ReleaseRecord:
    """Return a made-up row of ten households under "contract 1"."""
    terms = ("discrete-laplace", 10**9, "", "2026-01-01", "contract 1", "")
    row = ReleaseRecord(
        "homes", series, str(day), 0, "released", ("all",), (1_000,), (10,), 50_000, 2_000.0, *terms, seq=2
    )
    return replace(row, **changed)


def skipped(row: ReleaseRecord) -> ReleaseRecord:
    return replace(row, cells=(), values=(), households=(), scale=0.0, state="skipped", loss=0)


def derived_from(
    table: DerivedTable,
    statement: Statement,
    rows: Sequence[ReleaseRecord],
    contracts: Sequence[ContractRecord],
) -> list[dict[str, Any]]:
    """Return the lines of a derived table."""
    lines = whole_table(table, common_guarantee(statement), rows, contracts, Noise(COVERAGE))
    assert lines is not None
    return lines.to_pylist()


def published_tables(
    statement: Statement, rows: Sequence[ReleaseRecord], contracts: Sequence[ContractRecord]
) -> dict[str, pa.Table]:
    """Return the tables of a folder by path, as read from their files."""
    tables = release_tables(statement, _partitions(rows, contracts), Noise(COVERAGE))
    return {path: pq.read_table(io.BytesIO(parquet_bytes(table))) for path, table in tables}


def check_published(
    tables: Mapping[str, pa.Table],
    statement: Statement,
    rows: Sequence[ReleaseRecord],
    contracts: Sequence[ContractRecord],
) -> None:
    """Check the tables of a folder, by path, against its rows."""
    check_tables(tables, tables.__getitem__, statement, _partitions(rows, contracts))


def _partitions(rows: Sequence[ReleaseRecord], contracts: Sequence[ContractRecord]) -> tuple[Partition, ...]:
    return (Partition("", "", tuple(rows), tuple(contracts)),)
