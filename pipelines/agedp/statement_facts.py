"""Run file + LEDGER -> the content of a statement: bounds, limits, versions, notes, and the end of the series.

Nothing here reads a clock: the same rows give the same statement on every day. "Today" is the newest date of
publication in the ledger; the forecast of the end releases every later day when it is due.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from decimal import Decimal
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, Literal

from agedp.budget import ReleaseTerms, estimation_periods, series_by_contract
from agedp.planning.forecast import ForecastView, forecast
from agedp.release_folder.span_bounds import value_accuracy
from agedp_data.config.contract_document import ContractDocument
from agedp_data.config.input import LongInput
from agedp_data.config.output import CompareSection
from agedp_data.datasets.timestamps import tzdata_version
from agedp_data.epsilon import format_epsilon
from agedp_data.leakage.bound_table import LeakageBound
from agedp_data.ledger import ContractRecord, ReleaseRecord, canonical, lifecycle
from agedp_data.ledger.lifecycle import CalibrationDraw, HouseholdAccount, charges_of
from agedp_data.ledger.records import AnyRelease
from agedp_data.ledger.signature import KeyHistory
from agedp_data.markov.states import RepresentativeValues
from agedp_data.model import Model
from agedp_data.notions import NOTIONS, WEvent
from agedp_data.notions.enforcement import spent_bounds
from agedp_data.notions.notion import Accountant, LossBound, compared_accountants, day_losses
from agedp_data.notions.publication import Publication
from agedp_data.notions.spans import span_figures
from agedp_data.statement.document import ContractVersion, SeriesDays, StatedDraw, Statement, read_statement
from agedp_data.statement.facts import AccountFacts, SeriesEnd, StatementFacts
from agedp_data.statement.note_texts import NOTES
from agedp_data.versions import version

if TYPE_CHECKING:
    from agedp_data.ledger import Ledger

_DAYS_AHEAD: Final = 366
ACROSS_POPULATIONS: Final = " with the other populations"
"""End of the name of a bound over all populations of a ledger."""
TITLES: Final = ("title", "source", "licence", "contact")
"""Days that the forecast of the end covers: ten years of days would take too long for a daily run."""


_GAPS: Final[Mapping[str, str]] = {
    "rebuilt": NOTES.register_rebuilt,
    "rehearsals": NOTES.earlier_rehearsals,
    "releases": NOTES.earlier_releases,
}
"""Notes about what an account is known to lack."""
_NUMBER: Final = r"[0-9]{1,12}(?:\.[0-9]{1,12})?"
_COMPARED: Final = re.compile(
    r"window of (?P<window>[0-9]{1,9}) days"
    rf"|discounted sum \((?P<discount>exponential|hyperbolic) (?P<rate>{_NUMBER})\)"
    rf"|change of (?P<size>{_NUMBER}) kWh"
)
"""Names of bounds that [compare] may have asked for."""
SOFTWARE: Final = ("agedp", "opendp", "numpy", "scipy", "pyarrow")


@dataclass(frozen=True, slots=True)
class LedgerRecords:
    """What a statement contains of a ledger beside the contracts, models and releases of its population.

    A release folder has the draws, the newest account, rows and signing key (a fingerprint); number and bounds of other
    populations and the `notes` (`UNRECORDED_NOTES`) are known to the publisher alone.
    """

    id: str
    head: str
    draws: Sequence[CalibrationDraw]
    account: HouseholdAccount | None
    newest_rows: Sequence[ReleaseRecord]
    is_recovered: bool
    other_populations: int = 0
    bounds_across: Sequence[LossBound] = ()
    notes: Collection[str] = ()
    signing_key: str = ""


UNRECORDED_NOTES: Final = (
    NOTES.taken_over,
    NOTES.temporary_ledger,
    NOTES.roster_from_files,
    NOTES.unchecked_input,
    NOTES.outside_register,
)
"""Notes that follow from no row of a release folder: from the ledger, the roster, a free key and the place of a run."""


def statement_facts(
    terms: ReleaseTerms, model: Model | None, view: ForecastView, ledger: Ledger, notes_of_run: Collection[str]
) -> StatementFacts:
    """Return the content of the statement of all rows in a ledger, of which `view` contains the population's.

    `notes_of_run` are those that follow from the place of a run (`UNRECORDED_NOTES`).
    """
    population = terms.run.population.name
    account = ledger.household_account(population)
    is_complete = account is not None and not account.gaps
    newest, run = ledger.newest_statement(population), terms.run
    earlier = () if newest is None else read_statement(newest.claim).notes  # what they say of a first release stays
    is_unchecked = newest is None and run.schedule.reads_input and run.input.preflight == "report"
    roster_notes = {NOTES.roster_from_files, *NOTES.several("earlier_roster_notes")}
    unrecorded = {
        NOTES.taken_over: ledger.is_taken_over(),
        NOTES.roster_from_files: view.roster.read_off or not roster_notes.isdisjoint(earlier),
        NOTES.unchecked_input: is_unchecked or NOTES.unchecked_input in earlier,
    }
    records = LedgerRecords(
        id=ledger.id,
        head=ledger.content_head(),  # a statement cannot name its own row
        draws=ledger.calibration_draws(population),
        account=account,
        newest_rows=read_newest_rows(ledger, population),
        is_recovered=ledger.recovery() is not None,
        other_populations=len(other_populations(ledger, population)),
        bounds_across=() if is_complete else bounds_across_populations(ledger, population),
        notes=[*notes_of_run, *(note for note, applies in unrecorded.items() if applies)],
        signing_key=_signing_key(ledger),
    )
    software = {name: version(name) for name in SOFTWARE}
    tzdata = tzdata_version()
    return facts_of_records(terms, model, view, records, software | ({"tzdata": tzdata} if tzdata else {}))


def facts_of_records(
    terms: ReleaseTerms, model: Model | None, view: ForecastView, records: LedgerRecords, software: Mapping[str, str]
) -> StatementFacts:
    """Return the content of a statement from values: those of a ledger, or those that a release folder contains.

    Args:
        terms: of the run file, with all models in force.
        model: the newest model, None without one.
        view: contracts and rows of the population.
        records: what the ledger contains beside them.
        software: versions of the software.
    """
    rows, contracts, account = view.rows, view.contracts, records.account
    released = terms.run.publication.released_days(rows)
    beyond_states, represented = counted_states_flags(contracts, rows)
    return StatementFacts(
        title={key: text for key in TITLES if (text := getattr(terms.run.output, key))},
        contract=ContractDocument.model_validate_json(contracts[-1].promise),
        days=sorted(released),
        skipped=sorted({row.day for row in rows} - released),  # a day that one series only skipped is released
        published_on=sorted({row.published_on for row in rows if row.state == "released"}),
        bounds=[*loss_bounds(terms, rows), *records.bounds_across],
        limits=terms.notion.limits,
        ending=series_end(terms, view),
        model=model.public if model else None,
        notes=statement_notes(contracts, rows, records),
        ledger_id=records.id,
        head=records.head,
        versions=contract_versions(contracts, rows),
        software=software,
        other_populations=records.other_populations,
        account=AccountFacts(account.day, account.total, account.since) if account else None,
        opening=terms.run.promise.for_publication(terms.run.publication).opening,
        beyond_states=beyond_states,
        represented=represented,
        estimated_from=estimation_periods(contract.terms.model for contract in contracts),
        draws=[state_draw(draw) for draw in records.draws],
        accuracy=value_accuracy(records.newest_rows, contracts),
        signed_by=records.signing_key if any(contract.terms.is_signed for contract in contracts) else "",
    )


def _signing_key(ledger: Ledger) -> str:
    """Return the fingerprint of the newest key up to the head that a statement names, "" without one."""
    head = ledger.row_number(ledger.content_head()) or 0
    return KeyHistory.of([row for row in ledger.statements(lifecycle.LEDGER_POPULATION) if row.seq <= head]).newest


def read_newest_rows(ledger: Ledger, population: str) -> list[ReleaseRecord]:
    """Return the newest released row of each series under each contract; the values of no others are read."""
    released = (header for header in ledger.history(population) if header.state == "released")
    newest = {(header.series, header.contract): header for header in sorted(released, key=lambda header: header.day)}
    return [*ledger.rows_of(newest.values())]


def state_draw(draw: CalibrationDraw) -> StatedDraw:
    """Return a calibration draw as a statement contains it."""
    return StatedDraw(
        first_day=draw.first_day,
        last_day=draw.last_day,
        asked=_question_text(json.loads(draw.query)),
        epsilon=format_epsilon(draw.loss),
    )


def _question_text(query: Mapping[str, Any]) -> str:
    """Return what a draw was asked in few words; an unknown question as its ledger row has it."""
    match query:
        case {"ask": "member", **_rest}:
            return "the model, a member of its family of curves"
        case {"ask": "quantile", "of": of, "probability": probability, **rest}:
            days = rest.get("age_days", 0)
            age = f" at {days} day{'s' * (days != 1)}" if days else ""
            return f"the {probability} quantile of the households' {str(of).replace('-', ' ')}{age}"
        case _:
            return canonical(query)


def loss_bounds(terms: ReleaseTerms, rows: Sequence[AnyRelease]) -> list[LossBound]:
    """Return the bounds of these releases under the promise, under other notions that apply, and with a delta."""
    accountants = [terms.notion, *compared_accountants(NOTIONS, terms.run.comparison)]
    bounds = [bound for accountant in accountants for bound in accountant.bounds(rows, terms.leakage_bound, None)]
    with_delta = span_figures(rows, terms.run.publication, terms.run.promise.delta)
    return [*bounds, *with_delta, *_bounds_of_earlier_models(terms.earlier_models, rows, accountants)]


def _bounds_of_earlier_models(
    earlier_models: Mapping[str, LeakageBound], rows: Sequence[AnyRelease], accountants: Sequence[Accountant]
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
    household = f"a household that is counted in all {len(populations) + 1} populations of this ledger"
    rows, draws = ledger.history(), charges_of(ledger.calibration_draws())
    publication = Publication(earlier=series_by_contract(ledger.contracts()), charges=draws)
    of_days, events = publication.parted(rows)
    return [
        replace(
            bound,
            name=f"{bound.name}{ACROSS_POPULATIONS}",
            about=bound.about.replace("one household", household),
        )
        for bound in [*spent_bounds(day_losses(of_days), events), *span_figures(rows, publication)]
    ]


def series_end(terms: ReleaseTerms, view: ForecastView) -> SeriesEnd:
    """Return the end of the series if every day is released when it is due; today is the newest date of publication."""
    rows, promise = view.rows, terms.run.promise
    newest = date.fromisoformat(max(row.published_on for row in rows))
    expected = forecast(terms, replace(view, today=newest), days_ahead=_DAYS_AHEAD)
    last, newest_day = terms.run.schedule.last_day, max(row.day for row in rows)
    end = SeriesEnd("", "", promise.total_cap, promise.delta)
    if expected.stopped:
        return replace(end, last_day=newest_day, reason="broken")
    if expected.ended_by_promise:
        last_day = expected.last_day.isoformat() if expected.last_day else newest_day
        return replace(end, last_day=last_day, reason="promise")
    if last is not None and (expected.next_day is None or last < expected.next_day + timedelta(days=_DAYS_AHEAD)):
        return replace(end, last_day=last.isoformat(), reason="period")
    return end


def contract_versions(contracts: Sequence[ContractRecord], rows: Sequence[AnyRelease]) -> list[ContractVersion]:
    """Return every contract of a population, with its changes to the one before it; of several what each released."""
    changes = [(), *(old.terms.differences(new.terms) for old, new in pairwise(contracts))]
    versions = []
    for contract, changed in zip(contracts, changes, strict=True):
        further: dict[str, Any] = {}
        if len(contracts) > 1:
            further["released"] = _released_days(contract, rows)
            if contract is not contracts[-1]:
                further["contract"] = ContractDocument.model_validate_json(contract.promise)
        versions.append(ContractVersion(registered=contract.at, changes=list(changed), **further))
    return versions


def _released_days(contract: ContractRecord, rows: Sequence[AnyRelease]) -> list[SeriesDays]:
    """Return the days of each series for which a contract released rows; a row of a period has all its days."""
    days: dict[str, list[date]] = {}
    for row in rows:
        if row.contract == contract.hash and row.state == "released":
            covered = contract.terms.series[row.series].covered_days(date.fromisoformat(row.day))
            days.setdefault(row.series, []).extend(covered)
    return [
        SeriesDays(series=name, first=min(of_series).isoformat(), last=max(of_series).isoformat())
        for name, of_series in sorted(days.items())
    ]


def statement_notes(
    contracts: Sequence[ContractRecord], rows: Sequence[AnyRelease], records: LedgerRecords
) -> list[str]:
    """Return notes on the origin of ledger, roster and model that a reader must know."""
    account = records.account
    inputs = [contract.terms.input for contract in contracts]
    accepted, read_off = (
        ", ".join(sorted({word for of in inputs for word in getattr(of, key, ())})) for key in ("accept", "read_off")
    )
    notes = {
        **_rehearsal_notes(contracts),
        NOTES.recovered: records.is_recovered,
        **{note: note in records.notes for note in (NOTES.taken_over, NOTES.temporary_ledger, NOTES.roster_from_files)},
        NOTES.net_exports: any(isinstance(of, LongInput) and of.columns.negative == "net" for of in inputs),
        NOTES.accepted_findings.format(names=accepted): bool(accepted),
        NOTES.read_off_keys.format(names=read_off): bool(read_off),
        NOTES.own_days_too: _is_of_released_days(contracts, rows),
        NOTES.overlap: (account is None or bool(account.gaps)) and records.other_populations > 0,
        NOTES.outside_register: NOTES.outside_register in records.notes,
        NOTES.unwitnessed: not contracts[-1].terms.requires_witness,
        NOTES.unchecked_input: NOTES.unchecked_input in records.notes,
    }
    gaps = [_GAPS[gap].format(since=account.since) for gap in account.gaps if gap in _GAPS] if account else []
    return [*(note for note, applies in notes.items() if applies), *gaps]


def _rehearsal_notes(contracts: Sequence[ContractRecord]) -> dict[str, bool]:
    """Return the notes on the households of a rehearsal; a contract without the key began before there was a choice."""
    schedule = ContractDocument.model_validate_json(contracts[0].promise).schedule
    if schedule.mode != "rehearsal":
        return {}
    registered = schedule.rehearsal_on
    return {
        NOTES.rehearsed_on_synthetic: registered == "synthetic",
        NOTES.rehearsed_on_readings: registered == "readings",
        NOTES.rehearsed_earlier: registered is None,
    }


def _is_of_released_days(contracts: Sequence[ContractRecord], rows: Sequence[AnyRelease]) -> bool:
    """Return whether a leakage bound that is published without noise was estimated from a released day."""
    released = {row.day for row in rows if row.state == "released"}
    periods = estimation_periods(contract.terms.model for contract in contracts)
    return any(first <= day <= last for first, last in (text.split(" to ") for text in periods) for day in released)


def counted_states_flags(contracts: Sequence[ContractRecord], rows: Sequence[AnyRelease]) -> tuple[bool, bool]:
    """Return whether a release counts more than the states of the newest model, and whether any release counts states.

    States of a model with other edges, or another step, are not the states of the newest model.
    """
    terms = {contract.hash: contract.terms for contract in contracts}
    counted: set[RepresentativeValues | Literal["readings"] | None] = {
        terms[row.contract].states if terms[row.contract].series[row.series].counts_states else "readings"
        for row in rows
        if row.state == "released"
    }
    return not counted <= {contracts[-1].terms.states}, bool(counted - {"readings"})


def stated_comparison(statement: Statement) -> CompareSection:
    """Return the [compare] that gives the bounds which a statement has beside those of its promise, by their names."""
    matches = [match for bound in statement.bounds if (match := _COMPARED.fullmatch(bound.name))]
    promise = statement.contract.terms.promise
    promised = promise.window_days if isinstance(promise, WEvent) else None
    windows = [int(match["window"]) for match in matches if match["window"]]
    rates: dict[str, Any] = {match["discount"]: Decimal(match["rate"]) for match in matches if match["discount"]}
    return CompareSection.model_construct(
        window_days=next((window for window in windows if window != promised), promised),
        delta_kwh=tuple(sorted(Decimal(match["size"]) for match in matches if match["size"])),
        **rates,
    )
