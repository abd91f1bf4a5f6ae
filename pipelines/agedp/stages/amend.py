"""Run file + LEDGER -> amendment: a new contract for the same population, its changes and their effect on each bound.

Both contracts are forecast in the same way, the old one rebuilt from its text and from the model that it names: budget
and noise of the next day, last day if every day is released when due, bounds of all releases so far. Nothing is drawn.
A change that relaxes the promise, or sets a bound that the releases already exceed, is refused before anything is
written.

A contract also registers when its days begin. A new version of the database that moves a clock change moves days. If it
moves no unreleased day, nothing is reported.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import date, timedelta
from typing import Any

from agedp.budget import ReleaseTerms, check_charges_fit, models_in_force, series_by_contract
from agedp.ledger_session import LedgerSession, PopulationHistory
from agedp.planning.forecast import Forecast, forecast
from agedp.run_context import RunContext
from agedp.stages.calibration_draws import register_model
from agedp_data import clock
from agedp_data.config.amendment import ContractChange, amendment
from agedp_data.config.contract import ZONE_CHANGES, Contract, comparable
from agedp_data.config.model_section import missing_acceptance
from agedp_data.config.run_file import RunFile
from agedp_data.config.schedule import ScheduleSection
from agedp_data.config.withdrawn import check_nothing_withdrawn
from agedp_data.datasets.timestamps import begins_as_recorded, first_moved_day, tzdata_version
from agedp_data.errors import ContractChanged, LedgerError, Refused
from agedp_data.ledger import ContractRecord, Ledger
from agedp_data.ledger.lifecycle import charges_of
from agedp_data.ledger.records import AnyRelease


def check_day_boundaries(run: RunFile, history: PopulationHistory) -> None:
    """Check that every unreleased day begins when the contract in force registered it.

    Raises:
        ContractChanged: a day differs; the message names the first one and the remedies.
    """
    moved = None if history.in_force is None else _first_moved_day(history.in_force, run, history.rows)
    if moved is not None:
        version = f" ({tzdata_version()})" if tzdata_version() else ""
        raise ContractChanged(
            f"{run.name}: by this time zone database{version} days of {run.input.layout.day_zone} from {moved} on "
            "are not those of the contract. Install the database that was used before, or record the change "
            "(`agedp ledger amend`)"
        )


def _first_moved_day(contract: Contract, run: RunFile, rows: Sequence[AnyRelease]) -> date | None:
    """Return the first unreleased day that differs from a contract; None if none does or none is registered."""
    recorded = contract.zone_changes
    if not recorded:
        return None
    return first_moved_day(recorded, run.input.layout.day_zone, first_unreleased(run, rows), run.schedule.last_day)


def first_unreleased(run: RunFile, rows: Sequence[AnyRelease]) -> date:
    """Return the day after the newest one that is released or skipped."""
    newest = max((row.day for row in rows), default=None)
    return run.schedule.first_day if newest is None else date.fromisoformat(newest) + timedelta(days=1)


def judge_zone_changes(
    changes: Sequence[ContractChange], old: Contract, run: RunFile, rows: Sequence[AnyRelease]
) -> tuple[ContractChange, ...]:
    """Return the changes of an amendment, with a change of the clock changes only if it moves an unreleased day.

    It is refused if the first unreleased day would overlap a released day or leave a gap after it.
    """
    key = f"schedule.{ZONE_CHANGES}"
    other_changes = [change for change in changes if change.key != key]
    change = next((change for change in changes if change.key == key), None)
    moved = _first_moved_day(old, run, rows)
    if moved is None or change is None:
        return tuple(other_changes)
    change = replace(change, old="as registered", new=f"other days from {moved} on")
    since = first_unreleased(run, rows)
    if rows and not begins_as_recorded(old.zone_changes, run.input.layout.day_zone, since):
        reason = f"{since} would overlap the day released before it, or leave a gap; install the earlier database"
        change = replace(change, verdict="refused", why=reason)
    return tuple(sorted([*other_changes, change], key=lambda amended: amended.key))


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

    @property
    def facts(self) -> dict[str, Any]:
        """Return the amendment as JSON: every change, and the forecast under both contracts."""
        changes = [asdict(change) for change in self.changes]
        return {"changes": changes, "before": self.before.facts, "after": self.after.facts}


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
        Refused: a change relaxes the promise or is broken already, or the promise has no room for the draws of a model.
        LedgerError: the contract was amended meanwhile.
    """
    check_amendment_allowed(amendment)
    session = session.checked()
    history, terms, ledger = session.history, session.terms(), session.open_ledger
    if len(terms.notion.charges) > len(history.draws):  # draws come with the model
        check_charges_fit(terms, history.rows)
    at = _amendment_date(session.run.run_file.schedule, ledger)
    register_model(ledger, session.model, session.run.population, at=at)
    return ledger.amend(session.promise, population=session.run.population, at=at, after=amendment.in_force)


def check_amendment_allowed(amendment: Amendment) -> None:
    """Check that every change is allowed.

    Raises:
        Refused: changes relax the promise or are broken already; names each key and reason.
    """
    if amendment.refused:
        reasons = "; ".join(f"{change.key}: {change.old} -> {change.new}: {change.why}" for change in amendment.refused)
        raise Refused(f"the contract cannot be amended so: {reasons}; nothing was recorded")


def _amendment_date(schedule: ScheduleSection, ledger: Ledger) -> date:
    """Return the date of the amendment; in a rehearsal that of the last publication."""
    if schedule.mode != "rehearsal":
        return clock.today()
    dates = [date.fromisoformat(row.published_on) for row in ledger.history()]
    return max(dates, default=schedule.first_day)


def preview_amendment(session: LedgerSession) -> Amendment:
    """Return the changes of the run file to the contract, and the forecasts before and after; writes nothing.

    Raises:
        LedgerError: the population has no contract yet, or one that this version cannot read.
        RunFileError: the run file adds a key that is withdrawn.
    """
    run, history = session.run.run_file, session.history
    models = models_in_force(session.open_ledger.models(), history.contracts, history.rows)
    in_force, rows = history.in_force, history.rows
    if in_force is None:
        name = run.population.name
        raise LedgerError(f"the ledger has no contract of {name!r} yet; the first `agedp run` registers the run file")
    check_nothing_withdrawn(run, in_force)
    before = ReleaseTerms(
        in_force.run_file.following(series_by_contract(history.contracts), charges_of(history.draws)),
        models[in_force.model_hash] if in_force.model_hash else None,
        {name: leakage_bound for name, leakage_bound in models.items() if name != in_force.model_hash},
    )
    after = session.terms()
    view = history.view(session.run.roster.counts, clock.today())
    broken, exceeded = after.effective_promise.violations(rows), after.notion.exceeded_spans(rows)
    compared = comparable(in_force.keys, session.promise)
    changes = tuple(_judge_change(change, broken, exceeded) for change in amendment(*compared))
    changes = judge_zone_changes(changes, in_force, run, rows)
    changes = tuple(_judge_acceptance(run, _judge_sharing(session, change)) for change in changes)
    return Amendment(changes, forecast(before, view), forecast(after, view), history.contracts[-1].hash)


def _judge_change(change: ContractChange, broken: Mapping[str, str], exceeded: Mapping[str, str]) -> ContractChange:
    """Return a change, refused if the released rows break its bound; for a model, with the effect as its reason."""
    key = change.key.removeprefix("promise.")
    reason = broken.get(key) or exceeded.get(key) or (next(iter(broken.values()), None) if key == "delta" else None)
    if change.verdict == "refused":
        return change
    if change.key in _MODEL_KEYS and broken:
        text = (
            f"under this model {'; '.join(broken.values())}: the series would END with this amendment, "
            "for no model is withdrawn. Leave [model] as it is to continue, and use the newer model for another "
            "population"
        )
        return replace(change, why=text)
    if reason is None:
        return change
    if key in exceeded and key not in broken:
        return replace(change, verdict="refused", why=f"{reason}: change it no further than these days permit")
    return replace(change, verdict="refused", why=f"{reason}: the series would end, and a bound is never raised again")


def _judge_sharing(session: LedgerSession, change: ContractChange) -> ContractChange:
    """Return a change, refused if it forbids shared households while there are some; their number is confidential."""
    accounts = session.accounts
    if change.key != "population.shared_households" or change.verdict == "refused" or accounts is None:
        return change
    overview = accounts.overview(session.open_ledger)
    if overview is None or not overview.sharing:
        return change
    reason = "households of this population are counted in another population, ledger or rehearsal already"
    return replace(change, verdict="refused", why=f"{reason} (`agedp ledger households` lists them)")


def _judge_acceptance(run: RunFile, change: ContractChange) -> ContractChange:
    """Return a change, refused if it brings in an estimated model that is not accepted as unverified."""
    reason = missing_acceptance(run.promise, run.model)
    return replace(change, verdict="refused", why=reason) if reason and change.key in _MODEL_KEYS else change
