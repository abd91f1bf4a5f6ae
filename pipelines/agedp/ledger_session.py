"""The ledger of one run, compared with the release folder, the roster history and the witness before it is used.

A run that continued with a ledger that lacks released rows would draw the same days a second time, so no stage opens a
ledger by another way. A session is a value: a stage that plans, draws or publishes compares again (`checked`), and
uses the session that this returns.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import date, timedelta
from typing import Any

from agedp.budget import ReleaseTerms, binding_models, charges_of, model_id, series_by_contract
from agedp.internal_records.roster_history import RosterDigest, RosterHistory
from agedp.planning.forecast import ForecastView
from agedp.release_folder.folder_writer import RemoteFolder
from agedp.release_folder.origin import ReleaseOrigin, check_ledger_not_behind, release_origins
from agedp.run_context import RunContext
from agedp_data.config import contract_part
from agedp_data.datasets.filesystem import is_url
from agedp_data.errors import LedgerBehind, RunFileError
from agedp_data.ledger import ContractRecord, Ledger, ReleaseRecord
from agedp_data.ledger.hash_chain import HashChain
from agedp_data.ledger.witness import CommitWitness
from agedp_data.ledger.witness_address import witness_at
from agedp_data.model import Model
from agedp_data.notions.period_loss import Charges


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
        location = run.run_file.output.release
        remote_folder = RemoteFolder(location, run.release_folder) if is_url(location) else None
        return cls(run, None, run.model, remote_folder, RosterDigest(run.roster))

    def opened(self) -> LedgerSession:
        """Return the session with the ledger as an earlier stage checked it, else checked now if there is one by now.

        A release folder proves that a ledger existed.
        """
        is_new = self.ledger is None and not self._ledger_exists and not self._release_origins()
        return self if self.ledger is not None or is_new else self.checked()

    def checked(self, *, create: bool = False) -> LedgerSession:
        """Return the session with its ledger compared anew; for each stage that plans, draws or publishes.

        A ledger is read completely when it is opened; later only new rows, which must extend the hash chain.

        Raises:
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
        session.roster_history.check_none_beyond(session.rows)
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
        origins = release_origins(self.run.release_folder)
        other_populations = {origin.population for origin in origins} - {self.population, ""}
        if other_populations:
            raise RunFileError(
                f"[output] release holds the release of population {min(other_populations)!r}; name another folder"
            )
        return origins

    def _open_ledger(self, *, create: bool) -> Ledger:
        ledger = Ledger.open(self.run.run_file.output.ledger, create=create)
        witness = self._commit_witness()
        if witness is not None:
            ledger.attach(witness)
        return ledger

    def _commit_witness(self) -> CommitWitness | None:
        address = self.run.run_file.output.witness
        return None if address is None else CommitWitness(witness_at(address), population=self.population)

    def check_nothing_released(self) -> None:
        """Check, before a ledger is created, that neither roster history nor witness know rows of an earlier one.

        Raises:
            LedgerBehind: the roster history records a released day.
            LedgerError: the witness has confirmed rows, or does not answer.
        """
        self.roster_history.check_none_beyond(())
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
        promised_model = model_id(self.contracts[-1]) if self.contracts else None
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
        """Return the rows of the population in the ledger, of all runs."""
        return () if self.ledger is None else self.ledger.rows(self.population)

    @property
    def contracts(self) -> tuple[ContractRecord, ...]:
        """Return the contracts of the population in the ledger, oldest first."""
        return () if self.ledger is None else self.ledger.contracts(self.population)

    @property
    def released_days(self) -> set[date]:
        """Return the days with a released row."""
        return {date.fromisoformat(row.day) for row in self.rows if row.state == "released"}

    @property
    def next_day(self) -> date:
        """Return the first day of the period that is neither released nor skipped."""
        done = {row.day for row in self.rows}
        day = self.run.run_file.schedule.first_day
        while day.isoformat() in done:
            day += timedelta(days=1)
        return day

    @property
    def forecast_view(self) -> ForecastView:
        """Return the starting point of a forecast: rows, roster, date and contracts."""
        return ForecastView(self.rows, self.run.roster, self.run.today, self.contracts)

    @property
    def charges(self) -> Charges:
        """Return the losses of the calibration draws about the population in the ledger."""
        return () if self.ledger is None else charges_of(self.ledger.calibration_draws(self.population))

    @property
    def promise(self) -> dict[str, Any]:
        """Return the contract text of the run file, as a mapping."""
        return contract_part(self.run.run_file, model=self.model.id if self.model else None)

    def terms(self, contract: str = "") -> ReleaseTerms:
        """Return the terms of a release under a contract's hash, with the series and models of all contracts so far.

        Raises:
            LedgerError: the ledger lacks a model that its contracts name.
        """
        run_file, newest, earlier_models = self.run.run_file, self.model.id if self.model else "", {}
        if self.ledger is not None:
            bounds = binding_models(self.ledger, self.population).items()
            earlier_models = {name: leakage_bound for name, leakage_bound in bounds if name != newest}
            run_file = run_file.following(series_by_contract(self.contracts), self.charges)
        leakage_bound = self.model.leakage_bound if self.model else None
        return ReleaseTerms(run_file, leakage_bound, earlier_models, contract, newest)

    @property
    def roster_history(self) -> RosterHistory:
        """Return the roster history of the population for the ledger, or for none before it exists."""
        is_rehearsal = self.run.run_file.schedule.mode == "rehearsal"
        ledger_id = "" if self.ledger is None else self.ledger.id
        return RosterHistory(self.run.paths.roster_history, self.population, ledger_id, is_rehearsal)
