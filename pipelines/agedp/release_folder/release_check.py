"""Statement, tables and LEDGER rows of a release folder -> whether every value follows from the other ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal

import pyarrow as pa

from agedp.release_folder.derived_tables import check_derived_tables
from agedp.release_folder.folder_files import ROWS
from agedp.release_folder.result_tables import read_guarantee
from agedp.release_folder.statement_check import (
    check_account,
    check_bounds,
    check_rows_belong,
    check_statement,
    check_words,
)
from agedp.release_folder.table_comparison import check_losses, check_tables
from agedp_data.errors import InputError
from agedp_data.ledger import ContractRecord, ReleaseRecord
from agedp_data.ledger.transfer import LedgerExport
from agedp_data.statement.document import Statement


def check_release(
    statement: Statement,
    export: LedgerExport,
    *,
    words: str,
    released: Mapping[str, pa.Table],
    derived: Mapping[str, pa.Table],
) -> None:
    """Check that losses, tables, statement and its words follow from the ledger rows of a folder.

    Args:
        statement: of the folder.
        export: its ledger rows.
        words: content of STATEMENT.md.
        released: tables of series, by file name.
        derived: tables that follow from these, by file name; those that the folder has.

    Raises:
        InputError: a value that differs; one line.
        LookupError, TypeError, ValueError, ArithmeticError: entries of a release are missing.
    """
    contracts, releases = contracts_and_releases(export)
    check_rows(statement, releases, contracts)
    check_tables(released, statement, releases, contracts)
    check_claims(statement, export, words=words)
    if derived:
        check_derived_tables(derived, statement, releases, contracts, coverage=interval_coverage(released))


def check_rows(statement: Statement, releases: Sequence[ReleaseRecord], contracts: Sequence[ContractRecord]) -> None:
    """Check that ledger rows are of the statement's population and contract, and that each loss follows from its row.

    Raises:
        InputError: as `check_release`.
    """
    check_rows_belong(statement, releases, contracts)
    check_losses(ROWS, releases, contracts)


def check_claims(statement: Statement, export: LedgerExport, *, words: str) -> None:
    """Check that the statement and its words follow from the ledger rows.

    Raises:
        InputError: as `check_release`.
    """
    contracts, releases = contracts_and_releases(export)
    check_statement(statement, releases, contracts)
    check_bounds(statement, export.rows)
    check_account(statement, export)
    check_words(words, statement)


def contracts_and_releases(export: LedgerExport) -> tuple[list[ContractRecord], list[ReleaseRecord]]:
    """Return the contracts and the release rows of a folder's ledger rows."""
    contracts = [row for row in export.rows if isinstance(row, ContractRecord)]
    return contracts, [row for row in export.rows if isinstance(row, ReleaseRecord)]


def interval_coverage(tables: Mapping[str, pa.Table]) -> Decimal:
    """Return the coverage of the intervals of a release, which its tables of released values share.

    Raises:
        InputError: it has none.
    """
    if not tables:
        raise InputError("the release has no averages or distributions, from which other tables would be derived")
    return Decimal(read_guarantee(tables[min(tables)].schema)["interval"]["coverage"])
