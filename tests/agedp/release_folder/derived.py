"""Tables of made-up ledger rows: as a release folder has them, and verified as those of a folder are."""

from __future__ import annotations

import io
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq

from agedp.release_folder.partitions import release_tables
from agedp.release_folder.result_tables import Partition, common_guarantee, parquet_bytes, whole_table
from agedp.release_folder.verification import check_tables
from agedp_data.series.result_table import DerivedTable, Noise

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pyarrow as pa

    from agedp_data.ledger import ContractRecord, ReleaseRecord
    from agedp_data.statement.document import Statement

COVERAGE = Decimal("0.95")


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
