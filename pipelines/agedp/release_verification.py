"""LEDGER rows of a release folder -> statement, STATEMENT.md and report.html, computed again and compared.

A release folder is a projection: the same rows and software give the same bytes. The rows, contracts and models in a
folder are enough for every bound, limit and text but a few that its publisher alone knows. So verification makes the
statement again from them, by the functions that publication uses, and compares it key by key; then the texts, byte by
byte. Whoever edits a figure in all files of a folder alike is found: the figure does not follow from the rows.

Decisions:

* Rows and contracts are believed: only the data holder's ledger shows that they are those that were drawn (`--ledger`).
* What no row contains is taken from the statement and named as not compared: title, licence and contact, some notes,
  other populations, and which further bounds [compare] asked for. Each is computed; one left out is not missed.
* A bound may differ by 1e-6 of itself: processors and solvers differ in the last digits. The texts must state what the
  statement does.
* A statement of another version may lack bounds and word its sentences otherwise. Its bounds must not be below those
  computed here; bounds that it lacks, keys that versions write differently and texts that differ are named.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal
from functools import cache, lru_cache
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow.parquet as pq

from agedp import plots, statement_facts
from agedp.budget import ReleaseTerms, models_in_force, series_by_contract
from agedp.planning.forecast import ForecastView
from agedp.release_folder.folder_files import (
    DEPLOYMENT,
    EXPLORE,
    PACKAGE,
    REPORT,
    SIGNATURE,
    STATEMENT,
    SUMS,
    WITHOUT_PACKAGE,
    WORDS,
    json_bytes,
    partitioned_tables,
)
from agedp.release_folder.partitions import is_monthly, kind_of, partition_of
from agedp.release_folder.release_folder import FolderReader, release_path
from agedp.release_folder.verification import contracts_and_releases, interval_coverage
from agedp.reports.chart_library import ChartLibrary, installed_library, library_in
from agedp.reports.report_data import ReleasedRows, charted_rows
from agedp.result_summary import ResultSummary
from agedp_data import foreign_files
from agedp_data.config.output import OutputSection
from agedp_data.epsilon import exact_text, round_nano
from agedp_data.errors import AgedpError, InputError
from agedp_data.ledger import ContractRecord, ModelRecord, ReleaseRecord, StatementRecord, lifecycle
from agedp_data.ledger.records import header_of, outline_of
from agedp_data.ledger.signature import KeyHistory, SignedFolder, check_signature
from agedp_data.ledger.transfer import LedgerExport
from agedp_data.messages import escape_text
from agedp_data.model import Model
from agedp_data.notions.notion import ASSUMPTION_FREE, DAY_BOUND, TOTAL_BOUND, LossBound
from agedp_data.roster import RosterCounts
from agedp_data.series.series import RESULT_TABLES
from agedp_data.statement.datapackage import datapackage, partition_resources
from agedp_data.statement.deployment import deployment
from agedp_data.statement.document import StatedBound, Statement
from agedp_data.statement.facts import StatementFacts, build_statement
from agedp_data.statement.markdown import markdown
from agedp_data.statement.note_texts import NOTES
from agedp_data.versions import version

if TYPE_CHECKING:
    from agedp.reports.public_report import ReportData

_NO_ROSTER: Final = RosterCounts(*(np.empty(0, np.int64),) * 3, {})
_TOLERANCE: Final = Decimal("1e-6")
_LAST_DIGITS: Final = 2
"""Difference of two equal bounds that rounding up may leave [nano-epsilon]."""
_DECIMAL: Final = re.compile(r"\d+\.\d+")
_ADVICE: Final = "Ask for the release again."
_UNRECORDED: Final = (
    "the ledger rows with the data holder's ledger",
    "title, source, licence and contact",
    "notes on the roster's origin, the input's check, the ledger and the accounts of populations",
    "other populations of the ledger",
    "bounds that [compare] asked for and that are left out",
)
"""What no ledger row in a folder contains, so that nothing in the folder contradicts an edit of it."""
_FIGURES: Final = ("rehearsal", "population", "days", "published", "contract", "version", "ending", "ledger")
"""Keys of a statement that every version writes alike."""
_INCOMPLETE: Final = (LookupError, TypeError, ValueError, ArithmeticError, AttributeError)


@dataclass(frozen=True, slots=True)
class Verification:
    """What was compared in a release folder and found to follow from its ledger rows, and what was not compared.

    Both are public texts: names of files in `compared`, and for each thing in `not_compared` what or whose it is.
    """

    compared: tuple[str, ...]
    not_compared: tuple[str, ...]
    signed_by: str = ""
    """Fingerprint of the key that signed the folder, "" for none. Who holds it is shown by no folder."""
    key_breaks: tuple[tuple[str, str], ...] = ()
    """Fingerprint and date of later keys that the key before them did not sign."""
    newest_row: str = ""
    """Hash of the newest ledger row in the folder, as `ReleaseFolder.newest_row`."""
    unwritten: tuple[str, ...] = ()
    """Texts that the installed agedp does not write so, as another version may have: an edit of one passes, unless the
    folder is signed by a named key.
    """
    writer: str = ""
    """Version of agedp that the statement names as its writer, if it is another than the installed one; else ""."""


@dataclass(frozen=True, slots=True)
class _FolderRows:
    """What a release folder contains of a ledger, and the statement beside it."""

    statement: Statement
    export: LedgerExport
    contracts: Sequence[ContractRecord]
    releases: Sequence[ReleaseRecord]
    coverage: Decimal

    @property
    def models(self) -> list[ModelRecord]:
        return [row for row in self.export.rows if isinstance(row, ModelRecord)]

    @property
    def model(self) -> Model | None:
        """Return the model of the contract in force, None without one."""
        newest = self.contracts[-1].terms.model_hash
        stored = {record.model: record.envelope for record in self.models}
        return None if newest is None else Model.from_text(stored[newest])

    def terms(self) -> ReleaseTerms:
        """Return the terms of the contract in force with all models, as a run has them."""
        in_force = models_in_force(self.models, self.contracts, self.releases).items()
        statement, model = self.statement, self.model
        texts: dict[str, Any] = {key: getattr(statement, key) or None for key in statement_facts.TITLES}
        run = self.contracts[-1].terms.run_file
        tables: dict[str, Any] = {
            "output": OutputSection.model_construct(**texts, interval=self.coverage),
            "compare": statement_facts.stated_comparison(statement),
        }
        if run.model is not None and model is not None and model.public.get("given") == "curve":
            tables["model"] = run.model.model_copy(update={"curve": ""})
        charges = lifecycle.charges_of(lifecycle.calibration_draws(self.export.rows))
        run = run.model_copy(update=tables).charging(charges)
        newest = "" if model is None else model.id
        return ReleaseTerms(
            run.following(series_by_contract(self.contracts)),
            None if model is None else model.leakage_bound,
            {name: leakage_bound for name, leakage_bound in in_force if name != newest},
            model=newest,
        )

    def facts(self, terms: ReleaseTerms) -> StatementFacts:
        """Return the content of the statement of these rows; what no row contains is that of the stored statement."""
        statement = self.statement
        records = [lifecycle.read_lifecycle_record(row) for row in self.export.rows if isinstance(row, StatementRecord)]
        accounts = [record for record in records if isinstance(record, lifecycle.HouseholdAccount)]
        view = ForecastView(tuple(map(header_of, self.releases)), _NO_ROSTER, date.min, tuple(self.contracts))
        recoveries = [record for record in records if isinstance(record, lifecycle.RecoveryRecord)]
        earlier = {record.ledger for record in recoveries}
        earlier |= {lost.ledger for record in recoveries for lost in record.earlier_ledgers}
        is_earlier = statement.ledger.id in earlier  # of the lost ledger, written again after it was recovered
        second = statement.second_population
        from_ledger = statement_facts.LedgerRecords(
            id=statement.ledger.id if is_earlier else self.export.ledger,
            head=self.export.head,
            draws=lifecycle.calibration_draws(self.export.rows),
            account=accounts[-1] if accounts else None,
            newest_rows=self.releases,
            is_recovered=NOTES.recovered in statement.notes if is_earlier else bool(recoveries),
            other_populations=0 if second is None else second.in_ledger,
            bounds_across=[_loss_bound(bound) for bound in statement.bounds if _is_across(bound)],
            notes=[note for note in statement_facts.UNRECORDED_NOTES if note in statement.notes],
            signing_key=KeyHistory.of(self.export.rows).newest,
        )
        return statement_facts.facts_of_records(terms, self.model, view, from_ledger, statement.software)


@dataclass(frozen=True, slots=True, repr=False)
class ReleaseFolder(ResultSummary, FolderReader):
    """A release folder: Parquet tables, statement, data package, checksums."""

    def _facts(self) -> dict[str, object]:
        try:
            statement = self.read_statement()
        except InputError as error:
            return {"statement": error}
        pure = (bound for bound in statement.bounds if bound.kind == ASSUMPTION_FREE and bound.delta is None)
        within = (f"{of.series} {float(of.within):.3g} {of.unit}" for of in statement.accuracy or ())
        return {
            "population": statement.population,
            "title": statement.title,
            "rehearsal": "simulated dates, no publication" if statement.rehearsal else None,
            "notion": statement.contract.terms.promise.notion,
            "days": f"{statement.days.first} to {statement.days.last}",
            "released_days": statement.days.released,
            "epsilon": ", ".join(f"{bound.name} {bound.epsilon}" for bound in pure),
            "noise_within": ", ".join(within),
        }

    def plot(self, name: str = "") -> Any:  # noqa: ANN401  (Axes, if matplotlib is installed)
        """Plot a published table with its noise intervals: that of this name, or the first one.

        Of profiles it is the newest row, of distributions the mean of all days.

        Args:
            name: of the table, as for `table`.

        Raises:
            InputError: the release has no such table, it has no values of a day, or matplotlib is not installed.
        """
        table = self.table(name)
        charts = (kind.chart for kind in RESULT_TABLES if kind.chart is not None)
        chart = next((chart for chart in charts if chart.y in table), None)
        if chart is None:
            raise InputError(f"{escape_text(name)}: has no values of a day to plot. Name a table of released values")
        return plots.released(table, chart)

    def verify(self, *, key: str = "", not_before: str = "") -> Verification:
        """Verify checksums, tables, statement and texts: everything must follow from the ledger rows in the folder.

        Args:
            key: fingerprint of the key that must have signed the folder, got by another way than the folder; a newer
                key that follows from it, each signed by the one before, is as good.
            not_before: hash of the newest row of an earlier folder (`newest_row`); an older folder is refused.

        Returns:
            What was compared, and what was not.

        Raises:
            InputError: a file, figure or text that does not; the message names it.
        """
        export, statement = self.verify_files(), self.read_statement()
        if any(after.seq <= before.seq for before, after in pairwise(export.rows)):
            raise InputError(f"its ledger rows are not in their order. {_ADVICE}")
        contracts, releases = contracts_and_releases(export)
        keys = KeyHistory.of(export.rows)
        signed_by = _check_signed(self, statement, export, keys, key)
        if not_before and not_before not in _hashes(export):
            named = escape_text(not_before, 64)
            raise InputError(f"its ledger rows have no row {named}: the folder is older, or of another ledger")
        try:
            rows = _FolderRows(statement, export, contracts, releases, _coverage(self))
            terms = rows.terms()
            expected = _check_statement(statement, rows.facts(terms))
            same_texts = _check_texts(self, rows, terms)
        except InputError:
            raise
        except AgedpError as error:  # a model or contract that no version of agedp wrote, or only a later one
            raise InputError(f"its ledger rows: {error}", private=f"its ledger rows: {error.private}") from None
        except _INCOMPLETE as error:
            kind = type(error).__name__
            raise InputError(f"its ledger rows or {STATEMENT} lack entries, or agedp has a fault ({kind})") from None
        verification = _verification(statement, expected, same_texts, self.checksums)
        verification = replace(verification, newest_row=export.rows[-1].hash)
        if not signed_by:
            return verification
        compared = (*verification.compared, SIGNATURE)
        return replace(verification, compared=compared, signed_by=signed_by, key_breaks=keys.breaks)

    @property
    def newest_row(self) -> str:
        """Return the hash of the newest ledger row in the folder, by which a later folder is known to be later."""
        return self.ledger_rows().rows[-1].hash


def _check_signed(folder: ReleaseFolder, statement: Statement, export: LedgerExport, keys: KeyHistory, key: str) -> str:
    """Return the fingerprint of the key that signed a folder, "" for none.

    Raises:
        InputError: the signature is missing, false, or by another key than the rows or the recipient name.
    """
    contracts, _ = contracts_and_releases(export)
    if not (folder.path / SIGNATURE).exists():
        if key or any(contract.terms.is_signed for contract in contracts):
            said = "you name a key" if key else "its contract says that every folder is signed"
            raise InputError(f"{SIGNATURE} is missing, and {said}. {_ADVICE}")
        return ""
    digest = hashlib.sha256(foreign_files.read_small_file(folder.path, SUMS)).hexdigest()
    newest, population = max(row.seq for row in export.rows), statement.population
    signed = SignedFolder(population, statement.ledger.id, statement.ledger.head, newest, digest)
    fingerprint = check_signature(foreign_files.read_small_file(folder.path, SIGNATURE), signed)
    if fingerprint != keys.newest:
        named = f"name key {keys.newest}" if keys.newest else "name none"
        raise InputError(f"{SIGNATURE} is by key {fingerprint}, and its ledger rows {named}. {_ADVICE}")
    if key and not re.fullmatch("[0-9a-fA-F]{64}", key):
        raise InputError(f"{key!r} is no fingerprint of a key: it has 64 digits and letters a to f")
    if key and not keys.trusts(key.lower()):
        why = "; key {} of {} was not signed by the one before".format(*keys.breaks[-1]) if keys.breaks else ""
        raise InputError(f"{SIGNATURE} is by key {fingerprint}, which is not the key that you name{why}")
    return fingerprint


def _hashes(export: LedgerExport) -> set[str]:
    """Return the hashes of the rows of a folder, also those that they had in ledgers from which they were recovered."""
    hashes = {row.hash for row in export.rows}
    for row in export.rows:
        record = lifecycle.read_lifecycle_record(row) if isinstance(row, StatementRecord) else None
        if isinstance(record, lifecycle.RecoveryRecord):
            hashes |= {*record.hashes, *(of for earlier in record.earlier_ledgers for of in earlier.hashes)} - {""}
    return hashes


def open_release(folder: str | Path) -> ReleaseFolder:
    """Return the release folder at a path; use it to read or verify a release.

    Args:
        folder: the path of the folder.

    Raises:
        InputError: the folder does not exist, may not be read, contains estimates, or is a URL.

    >>> import numpy as np, pandas as pd, agedp
    >>> times = pd.date_range("2026-01-05", periods=96, freq="30min", tz="UTC")
    >>> columns = {"household_id": np.repeat(["A", "B"], 96), "interval_start": [*times, *times], "energy_wh": 200}
    >>> readings = pd.DataFrame(columns)
    >>> caps = {"max_day_epsilon": 0.5, "epsilon_total": 100, "accept": ["useless"]}  # of use to nobody: two homes
    >>> promise = agedp.Classical(epsilon_per_day=0.5, **caps)
    >>> from tempfile import mkdtemp
    >>> saved = agedp.release(readings, promise=promise, clamp_kwh=50, min_households=2).save(mkdtemp())
    >>> received = open_release(saved.path)
    >>> received.verify().compared[:3]
    ('checksums', 'tables', 'statement.json')
    >>> len(received.table()), received.statement["population"]
    (2, 'households')
    """
    return ReleaseFolder(release_path(folder))


def is_of_this_version(statement: Statement, *, names: Sequence[str] = ("agedp",)) -> bool:
    """Return whether the installed versions of the `names` wrote a statement; those of agedp word its sentences."""
    return all(statement.software.get(name) == _installed(name) for name in names)


@lru_cache(maxsize=8)
def _installed(name: str) -> str:
    return version(name)


def _coverage(folder: FolderReader) -> Decimal:
    """Return the coverage of the intervals, which the tables of all series share."""
    tables = [path for path in sorted(folder.checksums) if kind_of(path.partition("/")[0].removesuffix(".parquet"))]
    if not tables:
        raise InputError(f"it has no table of a series. {_ADVICE}")
    return interval_coverage(pq.read_schema(folder.path / tables[0]).empty_table())


def _is_across(bound: StatedBound) -> bool:
    return bound.name.endswith(statement_facts.ACROSS_POPULATIONS)


def _nano(text: str) -> int | None:
    return None if text == "infinite" else round_nano(Decimal(text))


def _loss_bound(bound: StatedBound) -> LossBound:
    """Return a stated bound as publication computed it."""
    delta = None if bound.delta is None else Decimal(bound.delta)
    return LossBound(bound.name, _nano(bound.epsilon), bound.kind, bound.scope, bound.assumption, delta=delta)


def _check_statement(statement: Statement, facts: StatementFacts) -> Statement:
    """Check a statement against that of its rows, and return the latter with the stated last digits of its bounds.

    Raises:
        InputError: a bound, or another key, that does not follow from the rows.
    """
    is_same = is_of_this_version(statement)
    if not is_same:
        statement = _with_numbers_as_in_contracts(statement)
    stated = {bound.name: bound for bound in statement.bounds}
    if len(stated) < len(statement.bounds):
        raise InputError(f"{STATEMENT} states a bound twice. {_ADVICE}")
    for bound in build_statement(facts).bounds:
        if bound.name in stated:
            _check_bound(stated[bound.name], bound, is_same=is_same)
        elif is_same or not _may_lack(statement, bound):
            raise InputError(f"{STATEMENT} lacks the bound {bound.name!r}, which its ledger rows give. {_ADVICE}")
    for across, of_all in stated.items():
        own = stated.get(across.removesuffix(statement_facts.ACROSS_POPULATIONS)) if _is_across(of_all) else None
        if own is not None and (_nano(of_all.epsilon) or 0) < (_nano(own.epsilon) or 0):
            raise InputError(f"{STATEMENT}: the bound {escape_text(repr(across))} is below that of this population")
    bounds = [replace(bound, value=_nano(stated[bound.name].epsilon)) for bound in facts.bounds if bound.name in stated]
    expected = build_statement(replace(facts, bounds=bounds))
    content, computed_content = statement.content(), expected.content()
    if not is_same:
        known = [bound.name for bound in expected.bounds]
        content, computed_content = (_figures(document, known) for document in (statement, expected))
        computed_content = {key: computed_content[key] for key in content}
    for key, value, computed in _differences(content, computed_content):
        shown = f"{_shown(value)} differs from {_shown(computed)}, which its ledger rows give"
        raise InputError(f"{STATEMENT}: {escape_text(key)}: {shown}. {_ADVICE}")
    return expected


def _with_numbers_as_in_contracts(statement: Statement) -> Statement:
    """Return a statement whose bounds name numbers as contracts do: 0.2 named a bound by "1.0" as it was typed."""

    def renamed(bound: StatedBound) -> StatedBound:
        name = _DECIMAL.sub(lambda number: exact_text(Decimal(number[0])), bound.name)
        return bound.model_copy(update={"name": name})

    return statement.model_copy(update={"bounds": [renamed(bound) for bound in statement.bounds]})


def _check_bound(stated: StatedBound, expected: StatedBound, *, is_same: bool) -> None:
    """Check a bound against the computed one; that of another version may be larger if it depends on a model."""
    value, computed = _nano(stated.epsilon), _nano(expected.epsilon)
    may_be_larger = not is_same and expected.kind != ASSUMPTION_FREE
    if value is None or computed is None:
        is_equal = value == computed or (may_be_larger and value is None)
    else:
        slack = max(_LAST_DIGITS, int(_TOLERANCE * computed))
        is_equal = value >= computed - slack and (may_be_larger or value <= computed + slack)
    if not is_equal:
        shown = f"{escape_text(stated.epsilon)} differs from {expected.epsilon}, which its ledger rows give"
        raise InputError(f"{STATEMENT}: the bound {escape_text(repr(stated.name))}: {shown}. {_ADVICE}")


def _may_lack(statement: Statement, bound: StatedBound) -> bool:
    """Return whether a statement of another version may lack a bound: earlier ones had fewer, and none with a delta."""
    is_first_form = statement.schema_name in WITHOUT_PACKAGE and bound.name not in (DAY_BOUND, TOTAL_BOUND)
    has_no_delta = bound.delta is not None and all(stated.delta is None for stated in statement.bounds)
    return is_first_form or has_no_delta or bound.kind != ASSUMPTION_FREE


def _figures(statement: Statement, known: Collection[str]) -> dict[str, Any]:
    """Return the numbers and dates of a statement of any version, as far as it has them, with its `known` bounds."""
    content = statement.content()
    figures: dict[str, Any] = {key: content[key] for key in _FIGURES if key in content}
    if statement.second_population is not None:
        figures["second_population"] = statement.second_population.adds.content()
    if statement.schema_name not in WITHOUT_PACKAGE:  # the first form has neither limits nor factors
        figures["figures"] = {
            bound.name: {"limit": bound.limit, "factor": bound.factor, "kind": bound.kind, "delta": bound.delta}
            for bound in statement.bounds
            if bound.name in known
        }
    return figures


def _differences(stated: Any, expected: Any, key: str = "") -> Iterator[tuple[str, Any, Any]]:  # noqa: ANN401  (JSON)
    """Yield the place of each difference of two JSON values, and what they have there."""
    if isinstance(stated, dict) and isinstance(expected, dict):
        for name in [*stated, *(name for name in expected if name not in stated)]:
            yield from _differences(stated.get(name), expected.get(name), f"{key}.{name}" if key else name)
    elif isinstance(stated, list) and isinstance(expected, list) and len(stated) == len(expected):
        for number, (value, computed) in enumerate(zip(stated, expected, strict=True)):
            yield from _differences(value, computed, f"{key}.{number}")
    elif stated != expected:
        yield key, stated, expected


def _shown(value: object) -> str:
    return "nothing" if value is None else escape_text(json.dumps(value, ensure_ascii=True, default=str), 80)


def _check_texts(folder: FolderReader, rows: _FolderRows, terms: ReleaseTerms) -> set[str]:
    """Return the texts that are as this version writes them.

    Raises:
        InputError: a text differs from what this version and software, which wrote it, makes of the rows.
    """
    statement, listed = rows.statement, folder.checksums
    is_same = is_of_this_version(statement)
    is_same_software = is_of_this_version(statement, names=("agedp", "numpy", "scipy", "pyarrow"))
    report = cache(lambda: _report_data(folder, rows, terms))  # of both pages
    expected: dict[str, tuple[bool, Callable[[], bytes]]] = {
        STATEMENT: (is_same, lambda: json_bytes(statement.content())),
        WORDS: (is_same, lambda: markdown(statement).encode()),
        REPORT: (is_same_software, lambda: _report(report())),
        EXPLORE: (is_same_software, lambda: _explore_page(folder, report())),
        PACKAGE: (is_same_software, lambda: json_bytes(_package(folder, statement))),
        DEPLOYMENT: (is_same, lambda: json_bytes(deployment(statement))),
    }
    same = set()
    for name, (is_required, write) in expected.items():
        if name not in listed:
            if name == REPORT and is_required:
                raise InputError(f"{REPORT} is missing. {_ADVICE}")
            continue
        try:
            content = write()
        except ImportError:  # a page needs templates, which a machine that only verifies may lack
            continue
        if (folder.path / name).read_bytes() == content:
            same.add(name)
        elif is_required:
            of_rows = "its ledger rows" if name in (REPORT, EXPLORE) else STATEMENT
            raise InputError(f"{name} differs from what agedp {_installed('agedp')} makes of {of_rows}. {_ADVICE}")
    return same - ({EXPLORE} if EXPLORE in same and not _has_installed_library(folder) else set())


def _report(report: ReportData) -> bytes:
    from agedp.reports.public_report import public_report_page  # noqa: PLC0415  (charts and templates)

    return public_report_page(report).encode()


def _explore_page(folder: FolderReader, report: ReportData) -> bytes:
    """Return explore.html of the rows with the chart library that the stored page contains."""
    from agedp.reports.explore_page import explore_page  # noqa: PLC0415  (charts and templates)

    return explore_page(report, _stored_library(folder))


def _stored_library(folder: FolderReader) -> ChartLibrary:
    return library_in((folder.path / EXPLORE).read_bytes().decode("utf-8", "replace"))


def _has_installed_library(folder: FolderReader) -> bool:
    """Return whether explore.html has the installed chart library; another version cannot be compared.

    Raises:
        InputError: the page names the installed version, and its script is another.
    """
    try:
        installed, stored = installed_library(), _stored_library(folder)
    except InputError:
        return False
    if stored.version == installed.version and stored.script != installed.script:
        raise InputError(f"{EXPLORE}: its script differs from that of bokeh {installed.version}. {_ADVICE}")
    return stored == installed


def _report_data(folder: FolderReader, rows: _FolderRows, terms: ReleaseTerms) -> ReportData:
    from agedp.reports.public_report import report_data  # noqa: PLC0415  (charts and templates)

    listed, statement, contracts = folder.checksums, rows.statement, rows.contracts
    charted, history = rows.releases, rows.releases
    if is_monthly(listed):
        charted, history = charted_rows(rows.releases), [*map(outline_of, rows.releases)]
    released = ReleasedRows(charted, history)
    return report_data(terms.run, rows.models, statement, released, contracts, file_names={*listed})


def _package(folder: FolderReader, statement: Statement) -> dict[str, Any]:
    """Return the data package of a folder, its files in the order in which the stored one lists them."""
    listed = folder.checksums.keys() - {PACKAGE}
    stored = json.loads((folder.path / PACKAGE).read_bytes())["resources"]
    order = [resource["path"] for resource in stored if not isinstance(resource["path"], list)]
    files = {name: (folder.path / name).read_bytes() for name in order if name in listed and not partition_of(name)}
    by_month = partition_resources(list(partitioned_tables(folder.path, folder.checksums)), statement)
    return datapackage(statement, files, by_month)


def _verification(
    statement: Statement, expected: Statement, same_texts: set[str], listed: Collection[str]
) -> Verification:
    known = {bound.name for bound in expected.bounds}
    further = [bound.name for bound in statement.bounds if bound.name not in known]
    lacking = known - {bound.name for bound in statement.bounds}
    of_agedp = escape_text(statement.software.get("agedp", "0.1"), 20)
    writer = f"written by agedp {of_agedp} or beside other software"
    keys = [key for key in statement.content() if key not in (*_FIGURES, "figures", "second_population")]
    texts = (WORDS, REPORT, PACKAGE, *(name for name in (DEPLOYMENT, EXPLORE) if name in listed))
    other_texts = [name for name in texts if name not in same_texts]
    other_sentences = [] if is_of_this_version(statement) else [f"the sentences of {STATEMENT}"]
    script = ", and the script in it is not compared with any"
    return Verification(
        ("checksums", "tables", STATEMENT, *(name for name in texts if name in same_texts)),
        (
            *_UNRECORDED,
            *(f"bound {escape_text(name)}: unknown to agedp {_installed('agedp')}" for name in further),
            *(f"bound {name}: which the rows give, and {STATEMENT} lacks" for name in sorted(lacking)),
            *([] if is_of_this_version(statement) else [f"sentences, {', '.join(keys)} of {STATEMENT}: {writer}"]),
            *(f"{name}: {writer}{script if name == EXPLORE else ''}" for name in other_texts),
        ),
        unwritten=(*other_sentences, *(name for name in other_texts if name in listed)),
        writer="" if is_of_this_version(statement) else of_agedp,
    )
