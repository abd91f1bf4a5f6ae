"""The ledger of one run, compared with the release folder, the roster history and the witness before it is used.

A run that continued with a ledger that lacks released rows would draw the same days a second time, so no stage opens a
ledger by another way. A session is a value: a stage that plans, draws or publishes compares again (`checked`), and
uses the session that this returns.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import date
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
from agedp_data.config.withdrawn import check_nothing_withdrawn
from agedp_data.datasets.filesystem import is_url
from agedp_data.errors import LedgerBehind, RunFileError
from agedp_data.ledger import ContractRecord, Ledger, ReleaseRecord
from agedp_data.ledger.account_database import Kind
from agedp_data.ledger.hash_chain import HashChain
from agedp_data.ledger.lifecycle import CalibrationDraw, charges_of, draws_of_model
from agedp_data.ledger.records import ReleaseHeader
from agedp_data.ledger.witness import CommitWitness, witness_at
from agedp_data.model import Model
from agedp_data.notions.publication import Event, Events


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
        bookkeeping.update_checkpoint(self.run.books, ledger, may_begin_anew=self.is_rehearsal)
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
        folder, published = self.run.release_folder, self.publication
        if published is not None and published.is_of_folder(folder, sums=SUMS):
            origins = frozenset({ReleaseOrigin(published.population, published.origin_head)})
        else:
            origins = release_origins(folder)
        other_populations = {origin.population for origin in origins} - {self.population, ""}
        if other_populations:
            raise RunFileError(
                f"[output] release holds the release of population {min(other_populations)!r}; name another folder"
            )
        return origins

    @property
    def publication(self) -> bookkeeping.PublicationRecord | None:
        """Return the last complete publication of the release folder; None at a URL, where others may write too."""
        run = self.run
        return None if self.remote_folder else bookkeeping.read_publication(run.books, run.release_folder)

    def _open_ledger(self, *, create: bool) -> Ledger:
        ledger = bookkeeping.open_ledger(self.run.run_file.output.ledger, self.run.books, create=create)
        witness = self._commit_witness()
        if witness is not None:
            contracts = ledger.contracts(self.population)
            check_nothing_withdrawn(self.run.run_file, contracts[-1].terms if contracts else None)  # before it is asked
            ledger.attach(witness)
        return ledger

    def _commit_witness(self) -> CommitWitness | None:
        address = self.run.run_file.output.witness
        return None if address is None else CommitWitness(witness_at(address), population=self.population)

    def check_nothing_released(self) -> None:
        """Check, before a ledger is created, that no record and no witness knows rows of an earlier one.

        Raises:
            LedgerBehind: another record knows a released day.
            LedgerError: the witness has confirmed rows, or does not answer.
        """
        self._check_none_beyond()
        lacks_records = not (self.is_rehearsal or self.run.books.keys("released_rosters"))
        if lacks_records and count_reported(self.run.paths.folder, population=self.population):
            raise LedgerBehind(
                f"days of {self.population!r} were released from another ledger, and books.sqlite in the confidential "
                "folder is lost. Put both back, or name another confidential folder and another population"
            )
        witness = self._commit_witness()
        if witness is not None:
            witness.check(HashChain)

    def check_contract_unchanged(self) -> None:
        """Check that the run file does not differ from the contract in force, if there is one.

        Raises:
            ContractChanged: it differs, key by key.
        """
        self.open_ledger.require_unchanged(self.promise, population=self.population)

    def _stored_model(self) -> Model | None:
        """Return the model stored in the ledger if the contract in force names it and both have the same grid.

        The last digits of a kernel's pieces may differ on another machine, so the stored ones are used. A series that
        began without pieces keeps its grid, one with rounded total variations keeps these: anything else would be one
        more model in force.
        """
        promised_model = self.contracts[-1].terms.model_hash if self.contracts else None
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
    def population(self) -> str:
        """Return the name of the population."""
        return self.run.population

    @property
    def rows(self) -> tuple[ReleaseRecord, ...]:
        """Return the rows of the population in the ledger with their values; each call reads them (`history`)."""
        return () if self.ledger is None else self.ledger.rows(self.population)

    @property
    def history(self) -> tuple[ReleaseHeader, ...]:
        """Return the headers of the rows of the population in the ledger, of all runs."""
        return () if self.ledger is None else self.ledger.history(self.population)

    @property
    def contracts(self) -> tuple[ContractRecord, ...]:
        """Return the contracts of the population in the ledger, oldest first."""
        return () if self.ledger is None else self.ledger.contracts(self.population)

    @property
    def released_days(self) -> set[date]:
        """Return the days with a released row."""
        return {date.fromisoformat(row.day) for row in self.history if row.state == "released"}

    @property
    def next_day(self) -> date:
        """Return the first day of the period that is neither released nor skipped, or not by a row that is to cover it.

        A row that covers a week, month or year needs the readings of all its days.
        """
        series, closed = self.run.run_file.series, budget.closed_days(self.history, self.contracts)
        names = [name for name, of_name in series.items() if of_name.covers_periods]
        done = {day for day, name in closed if name not in names}
        first = self.run.run_file.schedule.first_day
        next_days = [] if len(names) == len(series) else [budget.first_day_without(first, done)]
        for name in names:
            closed_of_name = {day for day, closed_name in closed if closed_name == name}
            next_days.append(budget.first_period_without(first, series[name], closed_of_name))
        return min(next_days)

    @property
    def forecast_view(self) -> ForecastView:
        """Return the starting point of a forecast: headers of rows, roster, date and contracts."""
        return ForecastView(self.history, self.run.roster, self.run.today, self.contracts)

    @property
    def comparison_view(self) -> ForecastView:
        """Return the starting point of a comparison of promises, which needs the values of the rows as well."""
        return replace(self.forecast_view, rows=self.rows)

    @property
    def stored_draws(self) -> tuple[CalibrationDraw, ...]:
        """Return the calibration draws about the population in the ledger."""
        return () if self.ledger is None else self.ledger.calibration_draws(self.population)

    @property
    def model_draws(self) -> tuple[CalibrationDraw, ...]:
        """Return the calibration draws that come with the model, as they are charged to the population."""
        if self.model is None or '"draws":' not in self.model.text:
            return ()
        return draws_of_model(self.model.public, self.population)

    @property
    def charges(self) -> Events:
        """Return the losses of all calibration draws: those in the ledger, and those that come with the model."""
        return charges_of({draw.key: draw for draw in (*self.stored_draws, *self.model_draws)}.values())

    def check_charges_fit(self, further: Iterable[Event] = ()) -> None:
        """Check that the promise has room for all calibration draws, and for `further` ones before they are made.

        Raises:
            Refused: they break it with what is released, or leave nothing for a release.
        """
        budget.check_charges_fit(self.terms(), (*self.charges, *further), self.history)

    @property
    def envelope_days(self) -> str:
        """Return the periods of the models that contracts or run file publish without noise, in words; "" for none."""
        models = [*(contract.terms.model for contract in self.contracts), self.run.run_file.model]
        return " and ".join(budget.estimation_periods(models))

    @property
    def promise(self) -> dict[str, Any]:
        """Return the contract text of the run file, as a mapping."""
        return contract_part(self.run.run_file, model=self.model.id if self.model else None)

    def terms(self, contract: str = "") -> budget.ReleaseTerms:
        """Return the terms of a release under a contract's hash, with the series and models of all contracts so far.

        Raises:
            LedgerError: the ledger lacks a model that its contracts name.
        """
        newest, earlier_models = self.model.id if self.model else "", {}
        run_file = self.run.run_file.charging(self.charges)
        if self.ledger is not None:
            bounds = budget.binding_models(self.ledger, self.population).items()
            earlier_models = {name: leakage_bound for name, leakage_bound in bounds if name != newest}
            run_file = run_file.following(budget.series_by_contract(self.contracts))
        leakage_bound = self.model.leakage_bound if self.model else None
        return budget.ReleaseTerms(run_file, leakage_bound, earlier_models, contract, newest)

    @property
    def roster_history(self) -> RosterHistory:
        """Return the roster history of the population for the ledger, or for none before it exists."""
        ledger_id = "" if self.ledger is None else self.ledger.id
        return RosterHistory(self.run.books, self.population, ledger_id, self.is_rehearsal)

    @property
    def is_rehearsal(self) -> bool:
        """Return whether the run is a rehearsal."""
        return self.run.run_file.schedule.mode == "rehearsal"

    @property
    def accounts(self) -> PopulationAccounts | None:
        """Return the accounts of populations as this one uses them; None where none count.

        None for a table in memory, and for a rehearsal on synthetic households, of which there is nothing to count.
        """
        run = self.run.run_file
        if run.is_outside_register or not run.schedule.reads_input:
            return None
        columns, meters = run.input.named_columns or {}, self.run.meters
        meters_digest = "" if meters is None else meters.file_digest
        rule = [run.input.dataset, columns.get("household"), columns.get("encoding"), meters_digest]
        kind: Kind = "rehearsal" if self.is_rehearsal else "release"
        return PopulationAccounts(
            AccountsPlace.of(self.run.paths.folder, run.output.household_register),
            self.population,
            kind,
            self.run.roster,
            refuses_shared=run.population.shared_households == "refuse",
            today=self.run.now.date().isoformat(),
            files=self._files_read,
            id_rule=json.dumps(rule),
        )

    def _files_read(self) -> set[str]:
        """Return the digests of the input files in the store that count under the run file's rules."""
        store = self.run.store
        return {of.digest for of in read_manifests(store).manifests.values() if is_read_alike(of, store.read_as)}

    def _check_none_beyond(self) -> None:
        """Check that the ledger has every day that another record knows as released to the population.

        Without a roster history of the population these are the days with recorded true values.

        Raises:
            LedgerBehind: the first day that is missing from it.
        """
        history = self.roster_history
        history.check_none_beyond(self.history)
        known = history.released_ledgers()
        is_known = any(population == self.population and not is_rehearsal for population, _, is_rehearsal in known)
        if is_known or self.is_rehearsal or self.run.run_file.is_outside_register:
            return
        if beyond := self._days_with_true_values() - {row.day for row in self.history}:
            raise history.behind(min(beyond))

    def _days_with_true_values(self) -> set[str]:
        """Return the days with recorded true values that no rehearsal recorded."""
        days = {day for day, _ in bookkeeping.recorded_days(self.run.books, self.population)}
        return days - self.roster_history.rehearsed_days() if days else days
