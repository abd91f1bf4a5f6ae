"""release folder + LEDGER: does the folder lie on the chain, and does it say what the ledger says?

For recipients who are given a ledger: `agedp verify FOLDER --ledger URL`.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from agedp_data import losses
from agedp_data.errors import InputError, LedgerBehind, LedgerError
from agedp_data.ledger import Contract, Ledger, Release
from pipelines.received import ReleaseFolder


class Said(NamedTuple):
    """One figure of the daily averages: a cell of a day, what was drawn, at which loss [1e-9], when."""

    day: str
    group: str
    revision: int
    households: int
    noisy_sum_wh: int
    published_on: str
    loss: int
    version: int


def verify_against(folder: ReleaseFolder, ledger: Ledger) -> None:
    """Check a verified folder against a ledger: its head, its values, its files.

    Raises:
        LedgerBehind: the ledger ends before the folder does, or went another way since.
        LedgerError: another ledger, other values, or files that the ledger keeps no statement of.
    """
    place = ledger.place(_head(folder))
    if place is None:
        raise _not_on_chain(folder, ledger)
    population = str(folder.statement["population"])
    rows = [row for row in ledger.rows(population) if row.seq <= place]
    require_same(told(folder), averages_of(rows, ledger.contracts(population)))
    files = tuple(sorted(folder.checksums.items()))
    if files not in {*(statement.files for statement in ledger.statements(population)), *ledger.former_files()}:
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


def told(folder: ReleaseFolder) -> list[Said]:
    """Return what a folder's daily averages say of their draws.

    Raises:
        InputError: no daily averages to read.
    """
    return [
        Said(
            row["day"].isoformat(),
            row["group"],
            row["revision"],
            row["households"],
            row["noisy_sum_wh"],
            row["published_on"].isoformat(),
            round(row["epsilon"] * losses.NANO),
            row["version"],
        )
        for table in folder.averages().values()
        for row in table.to_pylist()
    ]


def averages_of(rows: Sequence[Release], contracts: Sequence[Contract]) -> list[Said]:
    """Return what daily averages of these rows say of their draws; other statistics have files of their own."""
    versions = {contract.hash: number for number, contract in enumerate(contracts, 1)}
    means = {contract.hash: _means(contract) for contract in contracts}
    return [
        Said(row.day, cell, row.revision, homes, value, row.published_on, row.loss, versions[row.contract])
        for row in rows
        if row.state == "released" and row.series in means[row.contract]
        for cell, homes, value in zip(row.cells, row.households, row.values, strict=True)
    ]


def _means(contract: Contract) -> frozenset[str]:
    series = json.loads(contract.promise)["series"]
    return frozenset(name for name, each in series.items() if each["statistic"] == "mean")


def require_same(published: Sequence[Said], kept: Sequence[Said]) -> None:
    """Check that a folder and a ledger say the same of the same days.

    Raises:
        LedgerError: the first day of which they do not.
    """
    folder, ledger = Counter(published), Counter(kept)
    if folder != ledger:
        day = min((folder - ledger) + (ledger - folder)).day
        raise LedgerError(f"the folder says other values than the ledger of {day}; one of the two was changed")
