"""What the contracts of a population say together: which models bind its releases, from where each series counts."""

from __future__ import annotations

from collections.abc import Sequence

from agedp_data.chains.envelope import LeakageBound
from agedp_data.config.meanings import meaning_of
from agedp_data.config.series import AnySeries, series_of
from agedp_data.errors import LedgerError
from agedp_data.ledger import ContractRecord, Ledger, ReleaseRecord
from agedp_data.model import Model


def model_id(contract: ContractRecord) -> str | None:
    """Return the id of the model that a contract names, None if it names none."""
    named: str | None = meaning_of(contract.promise).get("model", {}).get("hash")
    return named


def binding_models(ledger: Ledger, population: str) -> dict[str, LeakageBound]:
    """Return the envelope of every model that a contract of the population ever named, by its id, oldest first.

    A model binds whether or not a row was charged under it: a promise that stopped under a newer model must not go
    on because the older one was put back.

    Raises:
        LedgerError: the ledger lacks one of them.
    """
    known = {model.model: model.envelope for model in ledger.models()}
    named = [model_id(each) for each in ledger.contracts(population)]
    needed = dict.fromkeys([*filter(None, named), *(row.model for row in ledger.rows(population) if row.model)])
    if not needed.keys() <= known.keys():
        raise LedgerError("the ledger lacks a model that its contracts name; put back a good copy")
    return {model: Model.of_text(known[model]).envelope for model in needed}


def series_by_contract(contracts: Sequence[ContractRecord]) -> dict[str, dict[str, AnySeries]]:
    """Return the series of every contract, by its hash."""
    return {known.hash: series_of(meaning_of(known.promise)) for known in contracts}


def closed_days(rows: Sequence[ReleaseRecord], contracts: Sequence[ContractRecord]) -> set[tuple[str, str]]:
    """Return (day, series) of what is released, or never will be: a series begins behind the days released before it.

    A series that was ended and came back begins behind the days released before the contract that brought it back.
    """
    since: dict[str, int] = {}
    before: set[str] = set()
    for known in contracts:
        now = set(meaning_of(known.promise)["series"])
        since |= dict.fromkeys(now - before, known.seq)
        before = now
    done = {(row.day, row.series) for row in rows}
    return done | {(row.day, series) for row in rows for series, seq in since.items() if row.seq < seq}
