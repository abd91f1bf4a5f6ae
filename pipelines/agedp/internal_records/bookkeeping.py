"""Records of a confidential folder: true values by cell, the last publication, the verified part of the ledger."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from datetime import date
from pathlib import Path
from typing import Any, Final, Literal, get_args

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from agedp.local_files import atomic_files
from agedp.local_files.atomic_files import FileKind, FileNotice, check_parquet, read_content, read_derived
from agedp.stage_values import COUNTS, DailySum
from agedp_data import clock, table_schemas
from agedp_data.config.paths import ledger_path
from agedp_data.errors import AgedpError, LedgerBehind
from agedp_data.ledger import Ledger, ReleaseRecord
from agedp_data.ledger.ledger_reader import LedgerCheckpoint, parse_checkpoint, parse_checkpoint_of_any_version

# --------------------------------------------------------------------------------------------------
# SUMS + LEDGER -> confidential tables with a row for each released day, series and cell; each run adds days.
#
#     <confidential>/counted_states.parquet   `table_schemas.COUNTED_STATES`, a row for each day, series and group
#     <confidential>/coverage.parquet         `table_schemas.COVERAGE`, a row for each day, series and group
#     <confidential>/true_means.parquet       `table_schemas.TRUE_MEANS`, a row for each day, mean and group
#     <confidential>/true_counts.parquet      `table_schemas.TRUE_COUNTS`, a row for each day, distribution, cell
#
# * COUNTED_STATES: the mean by states against the mean by readings. Every published value contains the difference, and
#   no interval covers it. Its size depends on the readings, so the statement names it without its size.
# * COVERAGE: households with a usable day, and clamped ones.
# * TRUE_MEANS, TRUE_COUNTS: true means and true counts, before noise.
#
# A day of a profile can have 19,200 cells, so its true values are not recorded; those of a coverage series are the
# usable days of COVERAGE. The rows of both in COVERAGE show that their day is recorded.
#
# Sums exist during one run only; the tables are stored for the confidential report of every later run.
#
# Decisions:
#
# * The metadata of a table list its days by population and series, so that a night with nothing due reads no column of
#   two million cells. The list counts only with the number of rows that it was written with; the columns of a table
#   without it, which an earlier version wrote, are read.
# --------------------------------------------------------------------------------------------------

TableRow = dict[str, Any]

RecordedDays = dict[str, dict[str, list[str]]]
"""The recorded ISO days by population and series."""

_KEY = ("population", "day", "series", "cell")
_DAYS: Final = b"agedp.days"
_LATER = "put back a copy of {}, or remove it: later runs record the days that they release"


@dataclass(frozen=True, slots=True)
class CellTable:
    """A confidential table of cells: its schema, which begins with the key columns, and how a row is computed.

    `helps` is advice for the user if the table is damaged. `rows_of_release` yields the rows of a release without the
    columns population, day and series; none for a release of another statistic.
    """

    schema: pa.Schema
    helps: str
    rows_of_release: Callable[[ReleaseRecord, DailySum], Iterable[TableRow]]

    def read(self, path: Path) -> list[TableRow]:
        """Return the rows of the table, none if the file does not exist yet.

        Raises:
            InputError: a file that is damaged or cannot be read.
        """
        return atomic_files.table_rows(self.read_table(path), path, remedy=self.helps)

    def read_table(self, path: Path, *, columns: Sequence[str] | None = None) -> pa.Table:
        """Return the table, or some of its columns with the days among them; no rows if the file does not exist yet.

        A run that adds nothing reads years of cells by columns: as rows they would take gigabytes.

        Raises:
            InputError: a file that is damaged or cannot be read.
        """
        if not atomic_files.path_exists(path):
            return self.schema.empty_table()
        table = atomic_files.read_table(path, self.schema, columns=columns, remedy=self.helps)
        days = pc.min_max(table["day"].cast(pa.int32()))
        first, last = days["min"].as_py(), days["max"].as_py()
        if first is not None:  # an impossible date is named as such
            atomic_files.table_rows(pa.table({"day": pa.array([first, last], pa.date32())}), path, remedy=self.helps)
        return table

    def recorded(self, path: Path, population: str) -> set[tuple[str, str]]:
        """Return (day, series) of the rows of one population.

        Raises:
            DamagedFile: as `read`.
        """
        if (listed := self._listed_days(path)) is not None:
            return {(day, series) for series, days in listed.get(population, {}).items() for day in days}
        table = self.read_table(path, columns=["population", "day", "series"])
        own = table.filter(pc.equal(table["population"], population)).group_by(["day", "series"]).aggregate([])
        return {(line["day"].isoformat(), line["series"]) for line in own.to_pylist()}

    def of_population(self, path: Path, population: str) -> list[TableRow]:
        """Return the rows of one population.

        Raises:
            DamagedFile: as `read`.
        """
        return atomic_files.table_rows(self.population_table(path, population), path, remedy=self.helps)

    def population_table(self, path: Path, population: str, *, columns: Sequence[str] | None = None) -> pa.Table:
        """Return the rows of one population as columns: years of cells take gigabytes as Python rows.

        Raises:
            DamagedFile: as `read`.
        """
        table = self.read_table(path, columns=columns)
        return table.filter(pc.equal(table["population"], population))

    def check(self, path: Path) -> FileNotice | None:
        """Rename a damaged table, so that a new one begins, and return the warning; None if it is intact.

        Raises:
            InputError: the file cannot be read or renamed.
        """
        advice = "Put back a copy to keep its earlier days."
        return read_content(path, self._check_days, FileKind.RECORD, advice=advice).notice

    def _check_days(self, path: Path) -> None:
        """Check the table; the checksum is of the whole file, so that its list of days, or one column, suffices."""
        if self._listed_days(path) is None:
            self.read_table(path, columns=["day"])

    def _listed_days(self, path: Path) -> RecordedDays | None:
        """Return the days that the metadata of the table list; None without a valid list, also of a damaged file."""

        def parse(path: Path) -> RecordedDays | None:
            content = path.read_bytes()
            check_parquet(content)
            footer = pq.read_metadata(pa.BufferReader(content))
            schema, listed = footer.schema.to_arrow_schema(), (footer.metadata or {}).get(_DAYS)
            if listed is None or (schema.names, schema.types) != (self.schema.names, self.schema.types):
                return None
            record = json.loads(listed)
            return record["days"] if record["rows"] == footer.num_rows else None

        return read_derived(path, parse)

    def add(self, path: Path, sums: Mapping[tuple[date, str], DailySum], rows: Sequence[ReleaseRecord]) -> None:
        """Add the rows of these sums, as far as they were released; an existing row of the same cell is replaced.

        Repeated calls give the same table. Concurrent runs take turns by the lock of the folder.

        Args:
            path: the table, created with the first row.
            sums: the daily sums by day and series, confidential.
            rows: the rows of the ledger.

        Raises:
            DamagedFile: the table is damaged.
            InputError: it cannot be read or written.
        """
        if not any(row.state == "released" and (date.fromisoformat(row.day), row.series) in sums for row in rows):
            return
        with atomic_files.exclusive_lock(path.parent):
            stored = self.read_table(path)
            lines: dict[tuple[Any, ...], TableRow] = {}
            for row in rows:
                day = date.fromisoformat(row.day)
                if row.state == "released" and (daily_sum := sums.get((day, row.series))) is not None:
                    key_columns = {"population": row.population, "day": day, "series": row.series}
                    new_lines = [{**key_columns, **columns} for columns in self.rows_of_release(row, daily_sum)]
                    lines |= {tuple(line[name] for name in _KEY): line for line in new_lines}
            added = table_schemas.table_from_rows(self.schema, [*lines.values()])
            table = pa.concat_tables([_without(stored, lines).cast(added.schema), added])
            if table.num_rows:
                ordered = table.sort_by([(name, "ascending") for name in _KEY]).combine_chunks()
                atomic_files.write_table(path, ordered.replace_schema_metadata({_DAYS: _list_of_days(ordered)}))


def _without(table: pa.Table, keys: Collection[tuple[Any, ...]]) -> pa.Table:
    """Return the rows of a table with other keys than these; only rows of the same days become Python rows."""
    days = pa.array(sorted({day for _, day, *_ in keys}), pa.date32())
    of_days = np.flatnonzero(pc.is_in(table["day"], days).to_numpy())
    columns = [table[name].take(pa.array(of_days)).to_pylist() for name in _KEY]
    is_kept = np.ones(table.num_rows, bool)
    is_kept[[i for i, *key in zip(of_days.tolist(), *columns, strict=True) if tuple(key) in keys]] = False
    return table.filter(pa.array(is_kept))


def _list_of_days(table: pa.Table) -> bytes:
    """Return the days of a table by population and series, with the number of its rows."""
    distinct = table.group_by(["population", "day", "series"]).aggregate([]).to_pydict()
    days: RecordedDays = {}
    for population, day, series in sorted(zip(*(distinct[name] for name in _KEY[:3]), strict=True)):
        days.setdefault(population, {}).setdefault(series, []).append(day.isoformat())
    return json.dumps({"rows": table.num_rows, "days": days}).encode()


def _released_lines(row: ReleaseRecord, daily_sum: DailySum) -> Iterator[tuple[TableRow, dict[str, int]]]:
    """Yield cell and households of each part of a row, and all its counts; small groups are not released."""
    released, texts = set(row.cells), daily_sum.series.write_cells(daily_sum.cells)
    places = daily_sum.exact.shape[1]
    for i, (part, counts) in enumerate(zip(daily_sum.parts, daily_sum.counts.tolist(), strict=True)):
        if released.issuperset(texts[i * places : (i + 1) * places]):
            by_name = dict(zip(COUNTS, counts, strict=True))
            yield {"cell": daily_sum.series.write_part(part), "households": by_name["households"]}, by_name


def _state_rows(row: ReleaseRecord, daily_sum: DailySum) -> Iterator[TableRow]:
    if daily_sum.series.compares_states:
        for line, counts in _released_lines(row, daily_sum):
            wh_per_kwh_mean = 1000.0 * counts["households"]
            means = {f"{of}_kwh": counts[f"{of}_wh"] / wh_per_kwh_mean for of in ("readings", "states")}
            yield line | means


COUNTED_STATES = CellTable(table_schemas.COUNTED_STATES, _LATER.format("counted_states.parquet"), _state_rows)


def _coverage_rows(row: ReleaseRecord, daily_sum: DailySum) -> Iterator[TableRow]:
    for line, counts in _released_lines(row, daily_sum):
        yield line | {name: counts[name] for name in ("usable", "clamped")}


COVERAGE = CellTable(table_schemas.COVERAGE, _LATER.format("coverage.parquet"), _coverage_rows)


def _true_values(row: ReleaseRecord, daily_sum: DailySum) -> Iterator[tuple[TableRow, int, int]]:
    """Yield cell and households of each cell of a row, with its exact and its released value."""
    cells = daily_sum.series.write_cells(daily_sum.cells)
    exact = dict(zip(cells, daily_sum.exact.ravel().tolist(), strict=True))
    for cell, value, households in zip(row.cells, row.values, row.households, strict=True):
        yield {"cell": cell, "households": households}, exact[cell], value


def _mean_rows(row: ReleaseRecord, daily_sum: DailySum) -> Iterator[TableRow]:
    if daily_sum.series.true_values == "means":
        for line, exact, value in _true_values(row, daily_sum):
            wh_per_kwh_mean = 1000.0 * line["households"]
            yield line | {"true_mean_kwh": exact / wh_per_kwh_mean, "released_mean_kwh": value / wh_per_kwh_mean}


def _count_rows(row: ReleaseRecord, daily_sum: DailySum) -> Iterator[TableRow]:
    if daily_sum.series.true_values != "counts" or not daily_sum.series.holds(row.cells):
        return  # released with other bins: true counts for these are not computed
    for line, exact, value in _true_values(row, daily_sum):
        yield line | {"true_households": exact, "released_households": value}


_HELPS = (
    "put back a copy of {}, or remove it: the next run records anew the released days whose readings are still kept"
)
TRUE_MEANS = CellTable(table_schemas.TRUE_MEANS, _HELPS.format("true_means.parquet"), _mean_rows)
TRUE_COUNTS = CellTable(table_schemas.TRUE_COUNTS, _HELPS.format("true_counts.parquet"), _count_rows)


def recorded_days(means: Path, counts: Path, population: str) -> set[tuple[str, str]]:
    """Return (day, series) of the rows of a population in the two tables: the released days with recorded true values.

    True values of profiles are not recorded, and those of a coverage series are in the table of coverage: see
    `counted_days`.

    Raises:
        DamagedFile: a table is damaged.
    """
    return TRUE_MEANS.recorded(means, population) | TRUE_COUNTS.recorded(counts, population)


def counted_days(coverage: Path, population: str) -> set[tuple[str, str]]:
    """Return (day, series) of the rows of a population in the table of coverage.

    Raises:
        DamagedFile: the table is damaged.
    """
    return COVERAGE.recorded(coverage, population)


# --------------------------------------------------------------------------------------------------
# The last complete publication of each release folder, so that a night without a change does not write it again.
#
#     <confidential>/publication.json     derived; without it the folders are written again, with the same bytes
#
# Populations that share the confidential folder have a release folder each. A record names the head of the ledger, a
# digest of everything else that the folder's bytes depend on, and the files as they were written: size, times of the
# last change, and the digest of SHA256SUMS, which has the digests of all files. A file that was replaced, edited or
# restored has another time of change, so the folder is read and repaired as ever.
# --------------------------------------------------------------------------------------------------

FileState = tuple[int, int, int]
"""Size, and the times of the last change of content and of anything [ns]."""


@dataclass(frozen=True, slots=True)
class PublicationRecord:
    """A complete publication.

    Attributes:
        ledger_head: head of the ledger after it, with its statement.
        origin_head: head of the ledger that its files name.
        population: name of the population.
        facts: digest of all that the files depend on beside the ledger.
        folder: the release folder.
        files: state of each file by its path in the folder.
        sums: SHA-256 of its list of checksums.
    """

    ledger_head: str
    origin_head: str
    population: str
    facts: str
    folder: str
    files: dict[str, FileState]
    sums: str

    def is_of_folder(self, folder: Path, *, sums: str) -> bool:
        """Return whether this is the folder, its files unchanged since they were written; `sums` names its list."""
        return (
            self.folder == str(folder.absolute())
            and self.files == folder_state(folder)
            and self.sums == _digest(folder / sums)
        )


def record_of(folder: Path, *, sums: str, **facts: str) -> PublicationRecord:
    """Return the record of a folder that was just published; `facts` are the remaining fields."""
    return PublicationRecord(
        folder=str(folder.absolute()), files=folder_state(folder), sums=_digest(folder / sums), **facts
    )


def folder_state(folder: Path) -> dict[str, FileState]:
    """Return the state of every file and empty folder below a folder, by its path there."""
    return {str(Path(entry.path).relative_to(folder)): _state(entry) for entry in _files_below(folder)}


def _files_below(folder: Path) -> Iterator[os.DirEntry[str]]:
    entries = list[os.DirEntry[str]]()
    with suppress(OSError), os.scandir(folder) as listed:
        entries = list(listed)
    for entry in entries:
        inside = list(_files_below(Path(entry.path))) if entry.is_dir(follow_symlinks=False) else []
        yield from inside or [entry]


def _state(entry: os.DirEntry[str]) -> FileState:
    with suppress(OSError):
        status = entry.stat()
        return status.st_size, status.st_mtime_ns, status.st_ctime_ns
    return -1, -1, -1


def _digest(path: Path) -> str:
    with suppress(OSError):
        return hashlib.sha256(path.read_bytes()).hexdigest()
    return ""


def digest_of_file(path: Path) -> str:
    """Return the SHA-256 of a file of any size; "" for one that cannot be read."""
    with suppress(OSError), path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
    return ""


def read_publication(path: Path, folder: Path) -> PublicationRecord | None:
    """Return the last complete publication of a release folder; None if its record is missing or damaged."""
    return next((record for record in _read_publications(path) if record.folder == str(folder.absolute())), None)


def save_publication(path: Path, record: PublicationRecord) -> None:
    """Write the record of a publication, beside those of other folders; without it the next run publishes again."""
    others = [stored for stored in _read_publications(path) if stored.folder != record.folder]
    present = [stored for stored in others if Path(stored.folder).is_dir()]
    body = json.dumps([asdict(stored) for stored in (record, *present)], sort_keys=True)
    content = json.dumps({"publication": body, "sha256": hashlib.sha256(body.encode()).hexdigest()})
    with suppress(AgedpError, OSError):
        atomic_files.write(path, f"{content}\n".encode())


def _read_publications(path: Path) -> tuple[PublicationRecord, ...]:
    return read_derived(path, _parse) or ()


def _parse(path: Path) -> tuple[PublicationRecord, ...]:
    document: dict[str, Any] = json.loads(path.read_bytes())
    body: str = document["publication"]
    if hashlib.sha256(body.encode()).hexdigest() != document["sha256"]:
        raise ValueError("the record of the publication is damaged")
    return tuple(_record(**fields) for fields in json.loads(body))


def _record(*, files: dict[str, list[int]], **texts: str) -> PublicationRecord:
    states = {name: (size, modified, changed) for name, (size, modified, changed) in files.items()}
    return PublicationRecord(files=states, **texts)


# --------------------------------------------------------------------------------------------------
# The checkpoints of ledgers in the confidential folder, and the calendar of complete readings.
#
#     <confidential>/ledger_checkpoint.json     derived; two lines for each ledger, the newest first
#
# The first of them has the date of the last complete reading and the ledger's address: a file relative to the
# confidential folder, or a server. Several populations may share the folder, each with a ledger. Of two runs at once
# one may lose its checkpoint, which costs one complete reading.
#
# A night reads the rows since the checkpoint, and the numbers and hashes of all rows. What it does not read is the
# text of the rows below the checkpoint, so every 30 days a run reads the ledger completely, whatever the checkpoint
# says. The same run publishes the release folder anew. `agedp ledger verify` reads everything whenever it is called.
# --------------------------------------------------------------------------------------------------

_DAMAGED: Final = (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError)
VERIFIED_FOR_DAYS: Final = 30
"""Days after a complete reading of the ledger in which runs go on from its checkpoint."""
_MOST: Final = 8
"""Number of checkpoints that are kept."""


def open_ledger(url: str, path: Path, *, create: bool) -> Ledger:
    """Open the ledger of a run: from the checkpoint of the last run on, or completely once a month.

    Args:
        url: address of the ledger.
        path: the file of checkpoints.
        create: whether a missing ledger is created.

    Raises:
        LedgerError: as `Ledger.open`.
    """
    checkpoint = _read_checkpoint(path, url, parse_checkpoint)
    is_recent = checkpoint is not None and 0 <= (clock.today() - checkpoint.verified_on).days < VERIFIED_FOR_DAYS
    return Ledger.open(url, create=create, checkpoint=checkpoint if is_recent else None)


def _read_checkpoint(path: Path, url: str, parse: Callable[[bytes], LedgerCheckpoint]) -> LedgerCheckpoint | None:
    """Return the checkpoint of a ledger, None if it is missing, damaged or of a version that `parse` refuses."""
    content = _contents(path).get(_address(url, path))
    with suppress(*_DAMAGED):
        return None if content is None else parse(content)
    return None


def _address(url: str, path: Path) -> str:
    """Return the address of a ledger; that of a file stays the same if it is moved with the confidential folder."""
    if url.startswith("postgresql"):
        return url
    with suppress(ValueError):  # on another drive
        return Path(os.path.relpath(ledger_path(url), path.parent)).as_posix()
    return url


def _contents(path: Path) -> dict[str, bytes]:
    """Return the content of each checkpoint in a file by the address of its ledger, none if the file is damaged."""
    lines = (read_derived(path, Path.read_bytes) or b"").splitlines(keepends=True)
    contents: dict[str, bytes] = {}
    for heading, body in zip(lines[::2], lines[1::2], strict=False):
        with suppress(*_DAMAGED):
            contents[str(json.loads(heading)["ledger"])] = heading + body
    return contents


def update_checkpoint(path: Path, ledger: Ledger, *, may_begin_anew: bool) -> None:
    """Write the checkpoint of a ledger if rows were added since the last; without one the next run reads all rows.

    Args:
        path: the file of checkpoints.
        ledger: the ledger, after all other checks of a run.
        may_begin_anew: whether a ledger that lacks rows of the last checkpoint is a new one, as in rehearsals.

    Raises:
        LedgerBehind: the ledger was replaced by an older copy, or shortened.
    """
    if ledger.is_read_completely and not may_begin_anew:
        before = _read_checkpoint(path, ledger.url, parse_checkpoint_of_any_version)
        # ledgers that begin with the same row are different ones once they promise or release something else
        if before is not None and before.ends_after(ledger.content_head()):
            raise LedgerBehind(
                "the ledger lacks rows that an earlier run has read: it was replaced by an older copy, or shortened. "
                "Put back the newest copy, or restore it from the newest release folder (`agedp ledger recover`)"
            )
    checkpoint = ledger.advance_checkpoint(verified_on=clock.today())
    if checkpoint is not None:
        address = _address(ledger.url, path)
        earlier = [content for name, content in _contents(path).items() if name != address]
        newest = replace(checkpoint, address=address).format()
        with suppress(AgedpError, OSError):
            atomic_files.write(path, b"".join([newest, *earlier[: _MOST - 1]]))


# --------------------------------------------------------------------------------------------------
# Verdict of a calibration on its model, kept in the confidential folder under the model's identity.
#
#     <confidential>/forgetting/<first 16 digits of the model's SHA-256>.json
#
#     {"model": "<SHA-256>", "verdict": "rejected", "reason": "..."}
#
# It comes from readings, so the terminal repeats it and nothing else does: not the ledger, the release folder,
# `--json` or Prefect. A model whose file is missing, for instance because an earlier version made it, has no verdict;
# a file that is damaged or cannot be read counts as missing, because no release depends on it.
# --------------------------------------------------------------------------------------------------

Verdict = Literal["rejected", "cannot be judged", "not rejected"]
VERDICTS: Final[tuple[Verdict, ...]] = get_args(Verdict)

_FOLDER = "forgetting"
_MAX_REASON = 500


@dataclass(frozen=True, slots=True)
class ModelVerdict:
    """The verdict on a model, and its reason in one line; both are confidential."""

    verdict: Verdict
    reason: str


def write_verdict(confidential: Path, model: str, verdict: ModelVerdict) -> None:
    """Write the verdict on the model with this SHA-256."""
    text = json.dumps({"model": model, **asdict(verdict)}, indent=1)
    path = _path(confidential, model)
    atomic_files.make_private(path.parent)
    atomic_files.write(path, f"{text}\n".encode())


def read_verdict(confidential: Path, model: str) -> ModelVerdict | None:
    """Return the verdict on the model with this SHA-256; None if there is none that can be read."""
    try:
        content: dict[str, Any] = json.loads(_path(confidential, model).read_text(encoding="utf-8"))
        verdict, reason = content["verdict"], content["reason"]
        is_reason = isinstance(reason, str) and len(reason) <= _MAX_REASON
        is_of_model = content["model"] == model and verdict in VERDICTS and is_reason
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        return None
    return ModelVerdict(verdict, " ".join(reason.split())) if is_of_model else None


def _path(confidential: Path, model: str) -> Path:
    return confidential / _FOLDER / f"{model[:16]}.json"
