"""The whole way as one plain function; the Prefect flow runs the same stages in the same order.

The promise is checked against the ledger before the first file is opened: what cannot be kept is refused
before anything is read, let alone drawn. Stages hand each other values through `Work`, inside one process;
nothing confidential is an argument that a scheduler could store.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import date
from importlib.metadata import version
from pathlib import Path
from typing import Any

from agedp_data import clock
from agedp_data.config import RunFile, contract, load, not_yet
from agedp_data.config.input import AusgridInput
from agedp_data.config.model import Estimated
from agedp_data.errors import AgedpError, LedgerError, RunFileError
from agedp_data.ledger import Contract, Ledger, Release
from agedp_data.model import Model, model_of
from agedp_data.notions import NOTIONS
from agedp_data.notions.notion import Figure
from agedp_data.readers.layout import Rules
from agedp_data.roster import Roster, read_roster
from agedp_data.statement import OVERLAP, OWN_DAYS, ROSTER_READ_OFF, Facts, markdown, statement
from pipelines import folders, publish
from pipelines.aggregate import Counting, aggregate, read_sums
from pipelines.blocks import Engine
from pipelines.plan import Due, Terms, due_days, last_as_of
from pipelines.plan import plan as plan_days
from pipelines.publish import ReleaseFolder
from pipelines.read import Delivery, read
from pipelines.release import release
from pipelines.store import Store

SOFTWARE = ("agedp", "opendp", "numpy", "scipy", "pyarrow")


@dataclass(slots=True)
class Work:
    """One run: its run file and date, and what the stages have made so far."""

    run: RunFile
    today: date
    as_of: date | None
    engine: Engine
    roster: Roster
    model: Model | None
    due: tuple[Due, ...] = ()
    delivery: Delivery | None = None
    released: tuple[Release, ...] = ()
    contract: str = ""
    known: tuple[str, ...] = field(default_factory=tuple)

    @property
    def store(self) -> Store:
        """Return where the readings lie."""
        return store_of(self.run)

    @property
    def confidential(self) -> Path:
        """Return the folder that stays in the house."""
        return Path(self.run.output.confidential)


def begin(
    run_file: str | Path, *, scheduler: str | None = None, as_of: date | None = None, today: date | None = None
) -> Work:
    """Load everything that a run rests on.

    Raises:
        RunFileError: the run file, or something in it that is not built yet.
        InputError: the roster or a declared model.
    """
    run = load(Path(run_file))
    not_yet(run)
    if as_of is not None and run.schedule.mode != "rehearsal":
        raise RunFileError('--as-of goes with [schedule] mode = "rehearsal" only')
    if run.schedule.mode == "rehearsal" and as_of is None:
        as_of = last_as_of(run)
    folders.make_private(Path(run.output.confidential))
    roster = read_roster(Path(run.population.roster))
    return Work(run, today or clock.today(), as_of, engine_of(run, scheduler), roster, model_of(run))


def engine_of(run: RunFile, scheduler: str | None) -> Engine:
    """Return how the data work is run."""
    chosen = scheduler or run.engine.scheduler
    if chosen not in ("threads", "processes", "synchronous"):
        raise RunFileError(f'[engine] scheduler = "{chosen}": not yet; "threads" and "processes" are built')
    return Engine(chosen, run.engine.workers, run.engine.block_mib * 2**20)


def store_of(run: RunFile) -> Store:
    """Return where the readings of a run file lie."""
    rules = Rules(max_half_hour_wh=run.input.max_half_hour_wh)
    if isinstance(run.input, AusgridInput):
        rules = Rules(
            max_half_hour_wh=run.input.max_half_hour_wh,
            categories=tuple(category for category in ("GC", "CL", "GG") if category in run.input.categories),
            absent_channel_is_zero=run.input.missing_controlled_load != "missing",
        )
    return Store(Path(run.output.confidential) / "store", run.input.dataset, rules)


@contextmanager
def ledger_of(work: Work, *, create: bool) -> Iterator[Ledger]:
    """Open the ledger of a run; refuse one that has another's rows where a rehearsal wants its own."""
    with Ledger.open(work.run.output.ledger, create=create) as ledger:
        yield ledger


def plan(work: Work) -> None:
    """Compare the run file with the contract, and find the due days."""
    with ledger_of(work, create=True) as ledger:
        at = work.today if work.as_of is None else _rehearsed_on(work)
        model = ledger.adopt(work.model.text, at=at).model if work.model else ""
        promise = contract(work.run, model=model or None)
        work.contract = ledger.register(promise, population=work.run.population.name, at=at).hash
        rows = ledger.rows(work.run.population.name)
        work.due = due_days(work.run, work.roster, rows, today=work.today, as_of=work.as_of)
        work.known = tuple(row.day for row in rows)


def _rehearsed_on(work: Work) -> date:
    """Return the simulated date on which a rehearsal's contract is first recorded: its first day."""
    return work.run.schedule.first_day


def read_files(work: Work) -> None:
    """Bring the input files into the confidential store."""
    work.delivery = read(work.store, work.run.input.files, engine=work.engine)


def aggregate_days(work: Work) -> None:
    """Sum the due days."""
    if work.delivery is None:
        raise LedgerError("the input was not read")
    series = work.run.series.items()
    counting = [Counting(name, one.clamp_wh, one.missing_wh, one.max_missing) for name, one in series]
    path = work.confidential / "sums.parquet"
    aggregate(work.store, work.delivery, work.roster, days=[due.day for due in work.due], counting=counting, path=path)


def release_days(work: Work) -> None:
    """Draw, charge and store the due days."""
    sums = read_sums(work.confidential / "sums.parquet")
    with ledger_of(work, create=False) as ledger:
        work.released = release(ledger, terms_of(work), work.due, sums)


def terms_of(work: Work) -> Terms:
    """Return what every release of the run refers to."""
    envelope = work.model.envelope if work.model else None
    return Terms(work.run, work.run.notion, envelope, work.contract, work.model.id if work.model else "")


def publish_folder(work: Work) -> None:
    """Write the release folder from the ledger, and keep its statement there."""
    with ledger_of(work, create=False) as ledger:
        project(work, ledger)


STAGES: tuple[tuple[str, Callable[[Work], None]], ...] = (
    ("plan", plan),
    ("read", read_files),
    ("aggregate", aggregate_days),
    ("release", release_days),
    ("publish", publish_folder),
)


def sanitise(run_file: str | Path, *, scheduler: str | None = None, as_of: date | None = None) -> ReleaseFolder:
    """Release every due day of a run file and return its release folder.

    Raises:
        AgedpError: one line that says what, where and what would help; what was committed stays committed and
            is published.
    """
    work = begin(run_file, scheduler=scheduler, as_of=as_of)
    run_stages(work, lambda _, stage: stage(work))
    return ReleaseFolder(Path(work.run.output.release))


def run_stages(work: Work, call: Callable[[str, Callable[[Work], None]], None]) -> None:
    """Run the stages in order; when a release is refused, publish what was committed, then say so."""
    for name, stage in STAGES[:-1]:
        try:
            call(name, stage)
        except LedgerError:
            if name == "release":
                call(*STAGES[-1])
            raise
    call(*STAGES[-1])


def project(work: Work, ledger: Ledger) -> None:
    """Write the folder that the ledger stands for, and record its statement."""
    run, population = work.run, work.run.population.name
    contracts = ledger.contracts(population)
    rows = ledger.rows(population)
    if not rows:
        return
    claim = statement(_facts(work, ledger, contracts, rows))
    files = _files(work, rows, contracts, claim)
    text = json.dumps(claim, indent=1, sort_keys=True, ensure_ascii=True) + "\n"
    files |= {publish.STATEMENT: text.encode(), publish.WORDS: markdown(claim).encode()}
    ledger.record(
        json.dumps(claim, sort_keys=True, ensure_ascii=True),
        population=population,
        files=publish.sums(files),
        software=json.dumps(claim["software"], sort_keys=True),
        at=max(row.published_on for row in rows),
    )
    publish.publish(Path(run.output.release), files)


def _files(
    work: Work, rows: tuple[Release, ...], contracts: tuple[Contract, ...], claim: Mapping[str, Any]
) -> dict[str, bytes]:
    versions = {one.hash: number for number, one in enumerate(contracts, 1)}
    series = [row for row in rows if row.state == "released"]
    table = publish.averages(series, coverage=work.run.output.interval, versions=versions)
    guarantee = {
        "schema": "agedp-daily-averages-1",
        **{key: claim[key] for key in ("title", "source", "licence", "contact") if key in claim},
        "rehearsal": claim["rehearsal"],
        "promise": claim["contract"]["promise"],
        "series": claim["contract"]["series"],
        "interval": {"coverage": str(work.run.output.interval), "covers": "the noise and nothing else"},
        "day_zone": work.store.layout.day_zone,
        "ledger": claim["ledger"],
    }
    return {publish.AVERAGES: publish.parquet_bytes(publish.with_guarantee(table, guarantee))}


def _facts(work: Work, ledger: Ledger, contracts: tuple[Contract, ...], rows: tuple[Release, ...]) -> Facts:
    output = work.run.output
    titles = {"title": output.title, "source": output.source, "licence": output.licence, "contact": output.contact}
    others = {one.population for one in ledger.contracts()} - {work.run.population.name}
    heads = {row.seq: row.hash for row in ledger.rows()}
    heads |= {row.seq: row.hash for row in ledger.contracts()} | {row.seq: row.hash for row in ledger.models()}
    return Facts(
        title={key: text for key, text in titles.items() if text},
        contract=json.loads(contracts[-1].promise),
        days=sorted({row.day for row in rows if row.state == "released"}),
        skipped=sorted({row.day for row in rows if row.state == "skipped"}),
        published_on=sorted({row.published_on for row in rows if row.state == "released"}),
        figures=figures(work, rows),
        model=work.model.public if work.model else None,
        notes=_notes(work, several=bool(others)),
        ledger_id=ledger.id,
        head=heads[max(heads)],
        version=len(contracts),
        software={name: version(name) for name in SOFTWARE},
    )


def _notes(work: Work, *, several: bool) -> list[str]:
    model, schedule = work.run.model, work.run.schedule
    own = isinstance(model, Estimated) and model.period[1] >= schedule.first_day
    said = ((ROSTER_READ_OFF, work.roster.read_off), (OWN_DAYS, own), (OVERLAP, several))
    return [note for note, holds in said if holds]


def figures(work: Work, rows: tuple[Release, ...]) -> list[Figure]:
    """Return what these releases come to under the promise and under every other notion that applies."""
    envelope = work.model.envelope if work.model else None
    accounts = [work.run.notion, *(account for notion in NOTIONS for account in notion.compared(work.run))]
    return [figure for account in accounts for figure in account.figures(rows, envelope, None)]


def planned(work: Work) -> tuple[tuple[Release, ...], AgedpError | None]:
    """Return what the due days would be released with, by the ledger as it stands; writes and draws nothing."""
    rows: tuple[Release, ...] = ()
    if Path(work.run.output.ledger.removeprefix("sqlite:///")).exists():
        with ledger_of(work, create=False) as ledger:
            rows = ledger.rows(work.run.population.name)
    work.due = due_days(work.run, work.roster, rows, today=work.today, as_of=work.as_of)
    return plan_days(terms_of(work), work.due, rows)
