"""release folder + LEDGER: does the folder lie on the chain, and does it say what the ledger says?

For recipients who are given a ledger: `agedp verify FOLDER --ledger URL`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from agedp_data import losses
from agedp_data.config.series import Distribution
from agedp_data.errors import InputError, LedgerBehind, LedgerError
from agedp_data.ledger import Contract, Ledger, Release
from pipelines.handover.received import ReleaseFolder
from pipelines.promise.in_force import series_by_contract


class Said(NamedTuple):
    """One figure: a group of a day, of counts with its range [kWh], what was drawn, at which loss [1e-9], when.

    `households` is 0 for counts, which stand without.
    """

    day: str
    group: str
    range_kwh: tuple[float, ...]
    revision: int
    households: int
    value: int
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
    require_same(told(folder), figures_in(rows, ledger.contracts(population)))
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
    """Return what a folder's tables say of their draws.

    Raises:
        InputError: a table that cannot be read.
    """
    found = [*folder.averages().values(), *folder.distributions().values()]
    return [_said(row) for table in found for row in table.to_pylist()]


def _said(row: Mapping[str, Any]) -> Said:
    counts = "households_noisy" in row
    return Said(
        row["day"].isoformat(),
        row["group"],
        (row["bin_low_kwh"], row["bin_high_kwh"]) if counts else (),
        row["revision"],
        0 if counts else row["households"],
        row["households_noisy" if counts else "noisy_sum_wh"],
        row["published_on"].isoformat(),
        losses.nearest(row["epsilon"]),
        row["version"],
    )


def figures_in(rows: Sequence[Release], contracts: Sequence[Contract]) -> list[Said]:
    """Return what the tables of these rows say of their draws."""
    versions = {contract.hash: number for number, contract in enumerate(contracts, 1)}
    series = series_by_contract(contracts)
    found = []
    for row in rows:
        if row.state == "released":
            when = row.published_on, row.loss, versions[row.contract]
            of = series[row.contract][row.series]
            for cell, homes, value in zip(row.cells, row.households, row.values, strict=True):
                if isinstance(of, Distribution):
                    group, low, high = of.place(cell)
                    found.append(Said(row.day, group, (float(low), float(high)), row.revision, 0, value, *when))
                else:
                    found.append(Said(row.day, cell, (), row.revision, homes, value, *when))
    return found


def require_same(published: Sequence[Said], kept: Sequence[Said]) -> None:
    """Check that a folder and a ledger say the same of the same days.

    Raises:
        LedgerError: the first day of which they do not.
    """
    folder, ledger = Counter(published), Counter(kept)
    if folder != ledger:
        day = min((folder - ledger) + (ledger - folder)).day
        raise LedgerError(f"the folder says other values than the ledger of {day}; one of the two was changed")
