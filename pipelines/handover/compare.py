"""Release folder + LEDGER -> verification: the folder's head is in the hash chain, and their values are equal.

For recipients who are given a ledger: `agedp verify FOLDER --ledger URL`.
"""

from __future__ import annotations

from collections.abc import Sequence

from agedp_data.errors import InputError, LedgerBehind, LedgerError
from agedp_data.ledger import Ledger
from pipelines.handover.received import ReleaseFolder
from pipelines.handover.said import PublishedValue, first_differing_day, ledger_values, published_value


def verify_against(folder: ReleaseFolder, ledger: Ledger) -> None:
    """Check a verified folder against a ledger: its head, its values, its files.

    Raises:
        LedgerBehind: the ledger lacks rows that the folder contains.
        LedgerError: another ledger, other values, or files of which the ledger has no statement.
    """
    seq = ledger.row_number(_head(folder))
    if seq is None:
        raise _not_on_chain(folder, ledger)
    population = str(folder.statement["population"])
    rows = [row for row in ledger.rows(population) if row.seq <= seq]
    check_same_values(folder_values(folder), ledger_values(rows, ledger.contracts(population)))
    files = tuple(sorted(folder.checksums.items()))
    if files not in {*(statement.files for statement in ledger.statements(population)), *ledger.earlier_folder_files()}:
        raise LedgerError("the ledger keeps no statement with the files of this folder; `agedp publish` writes it anew")


def _head(folder: ReleaseFolder) -> str:
    try:
        return str(folder.statement["ledger"]["head"])
    except (LookupError, TypeError):
        raise InputError("statement.json names no head of a ledger; ask for the release again") from None


def _not_on_chain(folder: ReleaseFolder, ledger: Ledger) -> LedgerError:
    if ledger.length() and folder.statement["ledger"].get("id") != ledger.id:
        return LedgerError("the folder's head is not on the chain: it was published from another ledger")
    return LedgerBehind(
        "the ledger is shorter than the folder: it lacks the row that the folder ends with; put back its newest copy, "
        "or restore it from the folder (`agedp ledger recover`)"
    )


def folder_values(folder: ReleaseFolder) -> list[PublishedValue]:
    """Return the published values in a folder's tables.

    Raises:
        InputError: a table that cannot be read.
    """
    tables = [*folder.averages().values(), *folder.distributions().values()]
    return [published_value(row) for table in tables for row in table.to_pylist()]


def check_same_values(published: Sequence[PublishedValue], stored: Sequence[PublishedValue]) -> None:
    """Check that a folder and a ledger contain the same values of the same days.

    Raises:
        LedgerError: the first day on which they differ.
    """
    if day := first_differing_day(published, stored):
        raise LedgerError(f"the folder says other values than the ledger of {day}; one of the two was changed")
