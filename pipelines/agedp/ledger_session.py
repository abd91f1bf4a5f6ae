"""The ledger of one run, compared with the release folder, the roster history and the witness before it is used.

A run that continued with a ledger that lacks released rows would draw the same days a second time, so no stage opens a
ledger by another way. A session is a value: a stage that plans, draws or publishes compares again (`checked`), and
uses the session that this returns.

What a ledger has about the population is a value too (`PopulationHistory`), read once by each stage: functions take
its rows or contracts, and the session only where something is drawn, charged or stored.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from datetime import date
from functools import partial
from typing import Any

from agedp import budget
from agedp.internal_records import bookkeeping
from agedp.internal_records.population_accounts import AccountsPlace, PopulationAccounts
from agedp.internal_records.roster_history import RosterDigest, RosterHistory
from agedp.planning.forecast import ForecastView
from agedp.preflight.alerts import count_reported
from agedp.release_folder.folder_files import SUMS
from agedp.release_folder.folder_writer import RemoteFolder
from agedp.release_folder.origin import ReleaseOrigin, check_ledger_not_behind, release_origins
from agedp.run_context import RunContext
from agedp.store.store import is_read_alike, read_manifests
from agedp_data.config import contract_part
from agedp_data.config.contract import Contract
from agedp_data.config.withdrawn import check_nothing_withdrawn
from agedp_data.datasets.filesystem import is_url
from agedp_data.errors import LedgerBehind, LedgerError, RunFileError
from agedp_data.leakage.bound_table import LeakageBound
from agedp_data.ledger import ContractRecord, Ledger
from agedp_data.ledger.account_database import Kind
from agedp_data.ledger.hash_chain import HashChain
from agedp_data.ledger.lifecycle import CalibrationDraw, charges_of, draws_of_model
from agedp_data.ledger.records import ReleaseHeader
from agedp_data.ledger.witness import CommitWitness, witness_at
from agedp_data.model import Model
from agedp_data.roster import RosterCounts


@dataclass(frozen=True, slots=True)
class PopulationHistory:
    """Releases without their values, contracts and calibration draws of a population in a ledger, each oldest first.

    Before its first release there are none.
    """

    rows: tuple[ReleaseHeader, ...] = ()
    contracts: tuple[ContractRecord, ...] = ()
    draws: tuple[CalibrationDraw, ...] = ()

    @classmethod
    def read(cls, ledger: Ledger | None, population: str) -> PopulationHistory:
        """Return what a ledger has about a population now; nothing without a ledger."""
        if ledger is None:
            return cls()
        return cls(ledger.history(population), ledger.contracts(population), ledger.calibration_draws(population))

    @property
    def in_force(self) -> Contract | None:
        """Return the contract in force, None before the first."""
        return self.contracts[-1].terms if self.contracts else None

    @property
    def has_begun(self) -> bool:
        """Return whether a row was released: a contract alone, of a run that ended before its first draw, is none."""
        return any(row.state == "released" for row in self.rows)

    @property
    def released_days(self) -> set[date]:
        """Return the days with a released row."""
        return {date.fromisoformat(row.day) for row in self.rows if row.state == "released"}

    def view(self, roster: RosterCounts, today: date) -> ForecastView:
        """Return the starting point of a forecast on a date."""
        return ForecastView(self.rows, roster, today, self.contracts)


@dataclass(frozen=True, slots=True)
class LedgerSession:
    """The ledger of a run, None before its first release, and the newest model.

    `model` is the run's, or the equal one that the ledger stores.
    """

    run: RunContext
    ledger: Ledger | None
    model: Model | None
    remote_folder: RemoteFolder | None
    roster_digest: RosterDigest

    @classmethod
    def open(cls, run: RunContext) -> LedgerSession:
        """Return a session with the ledger of the run, compared as by `checked`; without one before the first release.

        Raises:
            LedgerBehind: as `checked`.
            RunFileError: the release folder is another population's.
        """
        return cls._unopened(run).opened()

    @classmethod
    def open_existing(cls, run: RunContext) -> LedgerSession:
        """Return a session with the ledger of the run, which must exist.

        Raises:
            LedgerError: there is no ledger, or as `checked`.
        """
        return cls._unopened(run).checked()

    @classmethod
    def _unopened(cls, run: RunContext) -> LedgerSession:
        bookkeeping.take_over(run.books)
        location = run.run_file.output.release
        remote_folder = RemoteFolder(location, run.release_folder) if is_url(location) else None
        return cls(run, None, run.model, remote_folder, RosterDigest(run.roster, run.meters))

    def opened(self) -> LedgerSession:
        """Return the session with the ledger as an earlier stage checked it, else checked now if there is one by now.

        A release folder proves that a ledger existed.
        """
        is_new = self.ledger is None and not self._ledger_exists and not self._release_origins()
        return self if self.ledger is not None or is_new else self.checked()

    def checked(self, *, create: bool = False) -> LedgerSession:
        """Return the session with its ledger compared anew; for each stage that plans, draws or publishes.

        A ledger is read from its checkpoint on when it is opened, or completely; later only new rows, which must
        extend the hash chain.

        Args:
            create: whether a missing ledger is created.

        Raises:
            LedgerError: [output] household_register names other accounts than those of the population.
            LedgerBehind: the ledger lacks rows from which the release folder was published, or days that the roster
                history records as released; continuing would draw the same days a second time.
        """
        origins = self._release_origins()
        if origins and not self._ledger_exists:
            raise LedgerBehind(
                "the release folder was published from a ledger that is not there; put it back, restore it from the "
                "folder (`agedp ledger recover`), or name another folder in [output] release"
            )
        ledger = self.ledger or self._open_ledger(create=create)
        check_ledger_not_behind(ledger, origins)
        session = replace(self, ledger=ledger)
        budget.check_same_mode(session.run.run_file.schedule, ledger.contracts())
        session._check_none_beyond()
        if session.accounts is not None:
            session.accounts.check_place(ledger)
        # a rehearsal that is begun anew has a ledger with the same first row
        bookkeeping.update_checkpoint(self.run.books, ledger, may_begin_anew=self.run.is_rehearsal)
        return replace(session, model=session._stored_model() or self.model)

    @property
    def _ledger_exists(self) -> bool:
        return Ledger.exists(self.run.run_file.output.ledger)

    def _release_origins(self) -> frozenset[ReleaseOrigin]:
        """Return the origins that the files of the release folder name.

        Raises:
            RunFileError: the folder is another population's.
        """
        if self.remote_folder is not None:
            self.remote_folder.fetch()
        folder, published = self.run.release_folder, last_publication(self.run, self.remote_folder)
        if published is not None and published.is_of_folder(folder, sums=SUMS):
            origins = frozenset({ReleaseOrigin(published.population, published.origin_head)})
        else:
            origins = release_origins(folder)
        other_populations = {origin.population for origin in origins} - {self.run.population, ""}
        if other_populations:
            raise RunFileError(
                f"[output] release holds the release of population {min(other_populations)!r}; name another folder"
            )
        return origins

    def _open_ledger(self, *, create: bool) -> Ledger:
        ledger = bookkeeping.open_ledger(self.run.run_file.output.ledger, self.run.books, create=create)
        witness = self._commit_witness()
        if witness is not None:
            in_force = PopulationHistory.read(ledger, self.run.population).in_force
            check_nothing_withdrawn(self.run.run_file, in_force)  # before it is asked
            ledger.attach(witness)
        return ledger

    def _commit_witness(self) -> CommitWitness | None:
        address = self.run.run_file.output.witness
        return None if address is None else CommitWitness(witness_at(address), population=self.run.population)

    def check_nothing_released(self) -> None:
        """Check, before a ledger is created, that no record and no witness knows rows of an earlier one.

        If another run has created it meanwhile, that ledger is compared with them.

        Raises:
            LedgerBehind: another record knows a released day.
            LedgerError: the witness has confirmed rows, or does not answer.
        """
        try:
            self._check_no_records()
        except LedgerError:
            if not self._ledger_exists:
                raise
            self.checked()

    def _check_no_records(self) -> None:
        self._check_none_beyond()
        lacks_records = not (self.run.is_rehearsal or self.run.books.keys("released_rosters"))
        if lacks_records and count_reported(self.run.paths.folder, population=self.run.population):
            raise LedgerBehind(
                f"days of {self.run.population!r} were released from another ledger, and books.sqlite in the "
                "confidential folder is lost. Put both back, or name another confidential folder and another population"
            )
        witness = self._commit_witness()
        if witness is not None:
            witness.check(HashChain)

    def check_contract_unchanged(self) -> None:
        """Check that the run file does not differ from the contract in force, if there is one.

        Raises:
            ContractChanged: it differs, key by key.
        """
        self.open_ledger.require_unchanged(self.promise, population=self.run.population)

    def _stored_model(self) -> Model | None:
        """Return the model stored in the ledger if the contract in force names it and both have the same grid.

        The last digits of a kernel's pieces may differ on another machine, so the stored ones are used. A series that
        began without pieces keeps its grid, one with rounded total variations keeps these: anything else would be one
        more model in force.
        """
        in_force = self.history.in_force
        promised_model = None if in_force is None else in_force.model_hash
        if self.ledger is None or self.model is None or promised_model in {None, self.model.id}:
            return None
        envelopes = (record.envelope for record in self.ledger.models() if record.model == promised_model)
        stored = next(map(Model.from_text, envelopes), None)
        is_equal = stored is not None and stored.first_form.id == self.model.first_form.id
        return stored if is_equal else None

    @property
    def open_ledger(self) -> Ledger:
        """Return the ledger of a session that has one.

        Raises:
            RuntimeError: it has none.
        """
        if self.ledger is None:
            raise RuntimeError("the stages were run out of order: no ledger is open")
        return self.ledger

    @property
    def history(self) -> PopulationHistory:
        """Return what the ledger has about the population now; each call asks the ledger."""
        return PopulationHistory.read(self.ledger, self.run.population)

    @property
    def promise(self) -> dict[str, Any]:
        """Return the contract text of the run file, as a mapping."""
        return contract_part(self.run.run_file, model=self.model.id if self.model else None)

    def terms(self, contract: str = "") -> budget.ReleaseTerms:
        """Return the terms of a release under a contract's hash, with the series and models of all contracts so far.

        Raises:
            LedgerError: the ledger lacks a model that its contracts name.
        """
        newest, history, earlier_models = self.model.id if self.model else "", self.history, dict[str, LeakageBound]()
        draws = {draw.key: draw for draw in (*history.draws, *draws_with_model(self.model, self.run.population))}
        run_file = self.run.run_file.charging(charges_of(draws.values()))
        if self.ledger is not None:
            bounds = budget.models_in_force(self.ledger.models(), history.contracts, history.rows).items()
            earlier_models = {name: leakage_bound for name, leakage_bound in bounds if name != newest}
            run_file = run_file.following(budget.series_by_contract(history.contracts))
        leakage_bound = self.model.leakage_bound if self.model else None
        return budget.ReleaseTerms(run_file, leakage_bound, earlier_models, contract, newest)

    @property
    def roster_history(self) -> RosterHistory:
        """Return the roster history of the population for the ledger, or for none before it exists."""
        ledger_id = "" if self.ledger is None else self.ledger.id
        return RosterHistory(self.run.books, self.run.population, ledger_id, self.run.is_rehearsal)

    @property
    def accounts(self) -> PopulationAccounts | None:
        """Return the accounts of populations as this one uses them; None where none count.

        None for a table in memory, and for a rehearsal on synthetic households, of which there is nothing to count.
        """
        run = self.run.run_file
        if self.run.is_outside_register or not run.schedule.reads_input:
            return None
        columns, meters = run.input.named_columns or {}, self.run.meters
        meters_digest = "" if meters is None else meters.file_digest
        rule = [run.input.dataset, columns.get("household"), columns.get("encoding"), meters_digest]
        kind: Kind = "rehearsal" if self.run.is_rehearsal else "release"
        return PopulationAccounts(
            AccountsPlace.of(self.run.paths.folder, run.output.household_register),
            self.run.population,
            kind,
            self.run.roster,
            refuses_shared=run.population.shared_households == "refuse",
            today=self.run.now.date().isoformat(),
            files=partial(_files_read, self.run),
            id_rule=json.dumps(rule),
        )

    def _check_none_beyond(self) -> None:
        """Check that the ledger has every day that another record knows as released to the population.

        Without a roster history of the population these are the days with recorded true values. The ledger is read
        last: what another run records meanwhile is in it by then.

        Raises:
            LedgerBehind: the first day that is missing from it.
        """
        recorded, population = self.roster_history, self.run.population
        days = recorded.released_days()
        if not (days or self.run.is_rehearsal or self.run.is_outside_register):
            days = {day for day, _ in bookkeeping.recorded_days(self.run.books, population)} - recorded.rehearsed_days()
        if missing := days - {row.day for row in self.history.rows}:
            raise recorded.behind(min(missing))


def _files_read(run: RunContext) -> set[str]:
    """Return the digests of the input files in the store that count under the run file's rules."""
    store = run.store
    return {of.digest for of in read_manifests(store).manifests.values() if is_read_alike(of, store.read_as)}


def last_publication(run: RunContext, remote_folder: RemoteFolder | None) -> bookkeeping.PublicationRecord | None:
    """Return the last complete publication of the release folder; None at a URL, where others may write too."""
    return None if remote_folder else bookkeeping.read_publication(run.books, run.release_folder)


def comparison_view(session: LedgerSession) -> ForecastView:
    """Return the starting point of a comparison of promises, which needs the values of the rows as well."""
    run, rows = session.run, () if session.ledger is None else session.ledger.rows(session.run.population)
    return replace(session.history.view(run.roster.counts, run.today), rows=rows)


def draws_with_model(model: Model | None, population: str) -> tuple[CalibrationDraw, ...]:
    """Return the calibration draws that come with a model, as they are charged to a population."""
    if model is None or '"draws":' not in model.text:
        return ()
    return draws_of_model(model.public, population)
