"""Contracts of a population -> models in force, series of each contract, days that are closed for each series."""

from __future__ import annotations

from collections.abc import Sequence

from agedp_data.chains.envelope import LeakageBound
from agedp_data.config.meanings import meaning_of
from agedp_data.config.series import AnySeries, series_of
from agedp_data.errors import LedgerError
from agedp_data.ledger import ContractRecord, Ledger, ReleaseRecord
from agedp_data.model import Model


def model_id(contract: ContractRecord) -> str | None:
    """Return the id of the model that a contract names, None without a model."""
    model_hash: str | None = meaning_of(contract.promise).get("model", {}).get("hash")
    return model_hash


def binding_models(ledger: Ledger, population: str) -> dict[str, LeakageBound]:
    """Return the leakage bound of every model that a contract of the population ever named, by id, oldest first.

    A model stays in force whether or not a row was charged under it: a series that stopped under a newer model must not
    continue because the older one was restored.

    Raises:
        LedgerError: a named model is missing from the ledger.
    """
    stored = {model.model: model.envelope for model in ledger.models()}
    model_ids = [model_id(contract) for contract in ledger.contracts(population)]
    needed = dict.fromkeys([*filter(None, model_ids), *(row.model for row in ledger.rows(population) if row.model)])
    if not needed.keys() <= stored.keys():
        raise LedgerError("the ledger lacks a model that its contracts name; put back a good copy")
    return {model: Model.from_text(stored[model]).leakage_bound for model in needed}


def series_by_contract(contracts: Sequence[ContractRecord]) -> dict[str, dict[str, AnySeries]]:
    """Return the series of every contract, by the contract's hash."""
    return {contract.hash: series_of(meaning_of(contract.promise)) for contract in contracts}


def closed_days(rows: Sequence[ReleaseRecord], contracts: Sequence[ContractRecord]) -> set[tuple[str, str]]:
    """Return (day, series) of released days, and of those that never will be: a series begins after earlier releases.

    A series that was ended and added again begins after the days released before the contract that added it again.
    """
    since: dict[str, int] = {}
    previous_names: set[str] = set()
    for contract in contracts:
        series_names = set(meaning_of(contract.promise)["series"])
        since |= dict.fromkeys(series_names - previous_names, contract.seq)
        previous_names = series_names
    closed = {(row.day, row.series) for row in rows}
    return closed | {(row.day, series) for row in rows for series, seq in since.items() if row.seq < seq}
