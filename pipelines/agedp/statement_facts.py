"""Run file + LEDGER -> the content of a statement: bounds, limits, versions, notes, and the end of the series.

Nothing here reads a clock: the same rows give the same statement on every day. "Today" is the newest date of
publication in the ledger; the forecast of the end releases every later day when it is due.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date, timedelta
from importlib.metadata import version
from itertools import pairwise
from typing import Any, Final

from agedp.budget import ReleaseTerms
from agedp.planning.forecast import ForecastContract, ForecastView, forecast
from agedp_data.config import RunFile
from agedp_data.config.contract_values import meaning_of
from agedp_data.config.model_section import EstimatedModel
from agedp_data.config.output import OutputSection
from agedp_data.datasets.zone_changes import tzdata_version
from agedp_data.leakage.bound_table import LeakageBound
from agedp_data.ledger import ContractRecord, Ledger, ReleaseRecord
from agedp_data.ledger.records import differences
from agedp_data.ledger.witness import names_witness
from agedp_data.model import Model
from agedp_data.notions import NOTIONS
from agedp_data.notions.cap_bounds import spent_bounds
from agedp_data.notions.notion import Accountant, LossBound, day_losses
from agedp_data.roster import Roster
from agedp_data.statement.document import ContractVersion, read_statement
from agedp_data.statement.facts import (
    OVERLAP,
    OWN_DAYS,
    RECOVERED,
    ROSTER_READ_OFF,
    TAKEN_OVER,
    TEMPORARY_LEDGER,
    UNWITNESSED,
    SeriesEnd,
    StatementFacts,
)

_DAYS_AHEAD: Final = 366
"""Days that the forecast of the end covers: ten years of days would take too long for a daily run."""


SOFTWARE: Final = ("agedp", "opendp", "numpy", "scipy", "pyarrow")


def statement_facts(terms: ReleaseTerms, model: Model | None, view: ForecastView, ledger: Ledger) -> StatementFacts:
    """Return the content of the statement of all rows in a ledger, of which `view` contains the population's."""
    rows, contracts, population = view.rows, view.contracts, terms.run.population.name
    released = {row.day for row in rows if row.state == "released"}
    beyond_states, represented = counted_states_flags(contracts, rows)
    tzdata = tzdata_version()
    return StatementFacts(
        title=release_titles(terms.run.output),
        contract=json.loads(contracts[-1].promise),
        days=sorted(released),
        skipped=sorted({row.day for row in rows} - released),  # a day that one series only skipped is released
        published_on=sorted({row.published_on for row in rows if row.state == "released"}),
        bounds=[*loss_bounds(terms, rows), *bounds_across_populations(ledger, population)],
        limits=terms.notion.limits,
        ending=series_end(terms, view),
        model=model.public if model else None,
        notes=statement_notes(terms.run, view.roster, ledger),
        ledger_id=ledger.id,
        head=newest_head(ledger),
        versions=contract_versions(contracts),
        software={name: version(name) for name in SOFTWARE} | ({"tzdata": tzdata} if tzdata else {}),
        other_populations=len(other_populations(ledger, population)),
        opening=terms.run.promise.opening,
        beyond_states=beyond_states,
        represented=represented,
        estimated_from=estimation_periods(contracts),
    )


def loss_bounds(terms: ReleaseTerms, rows: Sequence[ReleaseRecord]) -> list[LossBound]:
    """Return the bounds of these releases under the promise and under every other notion that applies."""
    accountants = [
        terms.notion,
        *(accountant for notion in NOTIONS for accountant in notion.comparison_accountants(terms.run.comparison)),
    ]
    bounds = [bound for accountant in accountants for bound in accountant.bounds(rows, terms.leakage_bound, None)]
    return [*bounds, *_bounds_of_earlier_models(terms.earlier_models, rows, accountants)]


def _bounds_of_earlier_models(
    earlier_models: Mapping[str, LeakageBound], rows: Sequence[ReleaseRecord], accountants: Sequence[Accountant]
) -> list[LossBound]:
    """Return the bounds under earlier models, each for the rows up to the last one that was charged under it.

    A model that a contract named without a release stays in force as well: its bounds are for all rows.
    """
    bounds = []
    for model, leakage_bound in earlier_models.items():
        last_index = max((i for i, row in enumerate(rows) if row.model == model), default=None)
        charged_rows, suffix = (
            (rows, "by an earlier model") if last_index is None else (rows[: last_index + 1], "as promised")
        )
        if len(earlier_models) > 1:  # each by a name of its own
            suffix += f" ({model[:8]})"
        model_bounds = [
            bound for accountant in accountants for bound in accountant.bounds(charged_rows, leakage_bound, None)
        ]
        bounds += [
            replace(bound, name=f"{bound.name} {suffix}", assumption=f"{bound.assumption}, by model {model[:16]}")
            for bound in model_bounds
            if bound.kind == "conditional"
        ]
    return bounds


def other_populations(ledger: Ledger, population: str) -> set[str]:
    """Return the other populations that have a contract in the ledger."""
    return {contract.population for contract in ledger.contracts()} - {population}


def bounds_across_populations(ledger: Ledger, population: str) -> list[LossBound]:
    """Return the bounds for a household that is a member of all populations of the ledger; none for one population."""
    populations = other_populations(ledger, population)
    if not populations:
        return []
    household = f"of a household that is counted in all {len(populations) + 1} populations of this ledger"
    scopes = (f"any one day {household}", f"all published days {household}")
    return [
        replace(bound, name=f"{bound.name} with the other populations", about=scope)
        for bound, scope in zip(spent_bounds(day_losses(ledger.rows())), scopes, strict=True)
    ]


def series_end(terms: ReleaseTerms, view: ForecastView) -> SeriesEnd:
    """Return the end of the series if every day is released when it is due; today is the newest date of publication."""
    rows = view.rows
    newest = date.fromisoformat(max(row.published_on for row in rows))
    expected = forecast(ForecastContract.of(terms), replace(view, today=newest), days_ahead=_DAYS_AHEAD)
    total, last = terms.run.promise.total_cap, terms.run.schedule.last_day
    newest_day = max(row.day for row in rows)
    if expected.stopped:
        return SeriesEnd(newest_day, "broken", total)
    if expected.ended_by_promise:
        return SeriesEnd(expected.last_day.isoformat() if expected.last_day else newest_day, "promise", total)
    if last is not None and (expected.next_day is None or last < expected.next_day + timedelta(days=_DAYS_AHEAD)):
        return SeriesEnd(last.isoformat(), "period", total)
    return SeriesEnd("", "", total)


def contract_versions(contracts: Sequence[ContractRecord]) -> list[ContractVersion]:
    """Return every contract of a population, with its changes to the contract before it."""
    texts = [meaning_of(contract.promise) for contract in contracts]
    changes = [(), *(differences(old, new) for old, new in pairwise(texts))]
    return [
        ContractVersion(registered=contract.at, changes=list(changed))
        for contract, changed in zip(contracts, changes, strict=True)
    ]


def statement_notes(run: RunFile, roster: Roster, ledger: Ledger) -> list[str]:
    """Return notes on the origin of ledger, roster and model that a reader must know."""
    model, schedule, population = run.model, run.schedule, run.population.name
    # Days that were released with a roster read off the data keep this note, whatever roster follows.
    earlier = [read_statement(record.claim) for record in ledger.statements(population)[-1:]]
    read_off = roster.read_off or any(ROSTER_READ_OFF in statement.notes for statement in earlier)
    notes = {
        RECOVERED: ledger.recovery() is not None,
        TAKEN_OVER: ledger.is_taken_over(),
        TEMPORARY_LEDGER: run.has_temporary_ledger,
        ROSTER_READ_OFF: read_off,
        OWN_DAYS: isinstance(model, EstimatedModel) and model.period[1] >= schedule.first_day,
        OVERLAP: bool(other_populations(ledger, population)),
        UNWITNESSED: not names_witness(ledger.contracts(population)[-1].promise),
    }
    return [note for note, applies in notes.items() if applies]


def estimation_periods(contracts: Sequence[ContractRecord]) -> list[str]:
    """Return the periods of all estimated models whose leakage bounds the ledger contains, oldest first."""
    models = (meaning_of(contract.promise).get("model", {}) for contract in contracts)
    periods = [model["period"] for model in models if model.get("source") == "estimated"]
    return sorted({f"{first} to {last}" for first, last in periods})


def counted_states_flags(contracts: Sequence[ContractRecord], rows: Sequence[ReleaseRecord]) -> tuple[bool, bool]:
    """Return whether a release counts more than the states of the newest model, and whether any release counts states.

    States of a model with other edges, or another step, are not the states of the newest model.
    """
    terms = {contract.hash: meaning_of(contract.promise) for contract in contracts}
    newest = _state_terms(terms[contracts[-1].hash])
    state_terms = set()
    for row in rows:
        if row.state == "released":
            contract_terms = terms[row.contract]
            # contracts of an earlier agedp lack this key: their distributions count readings
            state_terms.add(
                _state_terms(contract_terms) if contract_terms["series"][row.series].get("values") == "states" else None
            )
    return not state_terms <= {newest}, bool(state_terms - {None})


def _state_terms(terms: Mapping[str, Any]) -> str:
    """Return step and edges of a contract's states, as JSON text."""
    model = terms.get("model", {})
    return json.dumps([model.get("step"), model.get("edges")])


def newest_head(ledger: Ledger) -> str:
    """Return the hash of the newest row that is not a statement: a statement cannot name its own row."""
    return ledger.content_head()


def release_titles(output: OutputSection) -> dict[str, str]:
    """Return title, source, licence and contact, as far as the run file contains them."""
    titles: Mapping[str, Any] = {key: getattr(output, key) for key in ("title", "source", "licence", "contact")}
    return {key: text for key, text in titles.items() if text}
