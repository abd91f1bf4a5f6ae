"""Run file + LEDGER -> amendment: a new contract for the same population, its changes and their effect on each bound.

Both contracts are forecast in the same way, the old one rebuilt from its text and from the model that it names: budget
and noise of the next day, last day if every day is released when due, bounds of all releases so far. Nothing is drawn.
A change that relaxes the promise, or sets a bound that the releases already exceed, is refused before anything is
written.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import date
from typing import Any

from agedp.budget import EffectivePromise, binding_models, series_by_contract
from agedp.ledger_session import LedgerSession
from agedp.planning.forecast import Forecast, ForecastContract, ForecastView, forecast
from agedp.run_context import RunContext
from agedp.stages.day_boundaries import judge_zone_changes
from agedp_data import clock
from agedp_data.config.contract import ContractChange, amendment, promise_of
from agedp_data.config.contract_values import comparable
from agedp_data.errors import LedgerError, Refused
from agedp_data.leakage.bound_table import LeakageBound
from agedp_data.ledger import ContractRecord, canonical

_MODEL_KEYS = ("model", "model.hash")
"""Contract keys that change with another model."""


@dataclass(frozen=True, slots=True)
class Amendment:
    """A run file compared with the contract in force: every change with its verdict, and the forecasts of both."""

    changes: tuple[ContractChange, ...]
    before: Forecast
    after: Forecast
    in_force: str

    @property
    def refused(self) -> tuple[ContractChange, ...]:
        """Return the changes that relax the promise, or that the released rows already break."""
        return tuple(change for change in self.changes if change.verdict == "refused")


def amend(run: RunContext) -> ContractRecord:
    """Record the run file as the contract in force from the next unreleased day on, and return that contract.

    Raises:
        Refused: a change relaxes the promise or is broken already; names each key and reason, nothing is written.
        LedgerError: the population has no contract yet.
    """
    session = LedgerSession.open_existing(run)
    return record_amendment(session, preview_amendment(session))


def record_amendment(session: LedgerSession, amendment: Amendment) -> ContractRecord:
    """Record an amendment, if all its changes are allowed and the contract did not change since the preview.

    Raises:
        Refused: a change relaxes the promise or is broken already.
        LedgerError: the contract was amended meanwhile.
    """
    check_amendment_allowed(amendment)
    session = session.checked()
    ledger, at = session.open_ledger, _amendment_date(session)
    if session.model is not None:
        ledger.register_model(session.model.text, at=at)
    return ledger.amend(session.promise, population=session.population, at=at, after=amendment.in_force)


def check_amendment_allowed(amendment: Amendment) -> None:
    """Check that every change is allowed.

    Raises:
        Refused: changes relax the promise or are broken already; names each key and reason.
    """
    if amendment.refused:
        reasons = "; ".join(f"{change.key}: {change.old} -> {change.new}: {change.why}" for change in amendment.refused)
        raise Refused(f"the contract cannot be amended so: {reasons}; nothing was recorded")


def _amendment_date(session: LedgerSession) -> date:
    """Return the date of the amendment; in a rehearsal that of the last publication."""
    schedule = session.run.run_file.schedule
    if schedule.mode != "rehearsal":
        return clock.today()
    dates = [date.fromisoformat(row.published_on) for row in session.open_ledger.rows()]
    return max(dates, default=schedule.first_day)


def preview_amendment(session: LedgerSession) -> Amendment:
    """Return the changes of the run file to the contract, and the forecasts before and after; writes nothing.

    Raises:
        LedgerError: the population has no contract yet, or one that this version cannot read.
    """
    contracts, rows, model = session.contracts, session.rows, session.model
    models = binding_models(session.open_ledger, session.population)
    if not contracts:
        raise LedgerError(
            f"the ledger has no contract of {session.population!r} yet; the first `agedp run` registers the run file"
        )
    old, new = comparable(json.loads(contracts[-1].promise), json.loads(canonical(session.promise)))
    adopted = {model.id: model.leakage_bound} if model else {}
    series = series_by_contract(contracts)
    before = ForecastContract(
        old, EffectivePromise(promise_of(contracts[-1].promise, series), _bounds_in_order(old, models))
    )
    after = ForecastContract(
        new, EffectivePromise(promise_of(canonical(session.promise), series), _bounds_in_order(new, adopted | models))
    )
    view = ForecastView(rows, session.run.roster, clock.today(), contracts)
    changes = tuple(_judge_change(change, after.effective_promise.violations(rows)) for change in amendment(old, new))
    changes = judge_zone_changes(changes, old, session.run.run_file, rows)
    return Amendment(changes, forecast(before, view), forecast(after, view), contracts[-1].hash)


def _judge_change(change: ContractChange, broken: Mapping[str, str]) -> ContractChange:
    """Return a change, refused if the released rows break its bound; for a model, with the effect as its reason."""
    reason = broken.get(change.key.removeprefix("promise."))
    if change.verdict == "refused":
        return change
    if change.key in _MODEL_KEYS and broken:
        text = (
            f"under this model {'; '.join(broken.values())}: the series would END with this amendment, for no "
            "model is withdrawn. Leave [model] as it is to continue, and use the newer model for another population"
        )
        return replace(change, why=text)
    if reason is None:
        return change
    return replace(change, verdict="refused", why=f"{reason}: the series would end, and a bound is never raised again")


def _bounds_in_order(terms: Mapping[str, Any], models: Mapping[str, LeakageBound]) -> tuple[LeakageBound | None, ...]:
    """Return the leakage bounds in force: first that of the model that a contract names, or None, then all others."""
    own_model = terms.get("model", {}).get("hash")
    return (
        models[own_model] if own_model else None,
        *(leakage_bound for name, leakage_bound in models.items() if name != own_model),
    )
