"""Records of a confidential folder: true values by cell, the last publication, the verified part of the ledger."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from datetime import date
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any, Final, Literal, get_args

import pyarrow as pa

from agedp.internal_records.roster_history import ADVICE, rows_of_table
from agedp.local_files import atomic_files
from agedp.local_files.atomic_files import FileKind, read_content, read_derived
from agedp.local_files.books import Books, Rows
from agedp.stage_values import COUNTS, DailySum
from agedp_data import clock, table_schemas
from agedp_data.config.paths import ledger_path
from agedp_data.errors import LedgerBehind
from agedp_data.ledger import Ledger, ReleaseRecord
from agedp_data.ledger.ledger_reader import LedgerCheckpoint, parse_checkpoint, parse_checkpoint_of_any_version

_LOG = logging.getLogger("agedp")

# --------------------------------------------------------------------------------------------------
# SUMS + LEDGER -> tables of the book with a row for each released day and series; each run adds days.
#
#     counted_states   `table_schemas.COUNTED_STATES`, the cells of a day and series
#     coverage         `table_schemas.COVERAGE`, the cells of a day and series
#     true_means       `table_schemas.TRUE_MEANS`, the cells of a day and mean
#     true_counts      `table_schemas.TRUE_COUNTS`, the cells of a day and distribution
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
# * The key of a row is population, day and series, its content the columns of the cells as JSON, compressed: a mean
#   takes a hundred bytes, and the recorded days are known from the keys.
# --------------------------------------------------------------------------------------------------

TableRow = dict[str, Any]


@dataclass(frozen=True, slots=True)
class CellTable:
    """A confidential table of cells: its schema, which begins with the key columns, and how a row is computed.

    `rows_of_release` yields the rows of a release without the columns population, day and series; none for a release of
    another statistic.
    """

    name: str
    schema: pa.Schema
    rows_of_release: Callable[[ReleaseRecord, DailySum], Iterable[TableRow]]

    def read(self, books: Books, population: str, *, columns: Sequence[str] | None = None) -> pa.Table:
        """Return the rows of one population, or some of their columns, by day, series and cell."""
        names = self.schema.names if columns is None else list(columns)
        schema = pa.schema([self.schema.field(name) for name in names])
        tables, lines = [schema.empty_table()], {name: list[Any]() for name in names}
        for key, content in books.rows(self.name).items():
            of_population, day, series = json.loads(key)
            if of_population == population:
                cells = json.loads(zlib.decompress(content))
                keys = {"population": population, "day": date.fromisoformat(day), "series": series}
                for name, values in lines.items():
                    values.extend([keys[name]] * len(cells["cell"]) if name in keys else cells[name])
                if len(lines[names[0]]) > _BATCH:
                    tables.append(table_schemas.table_from_columns(schema, **lines))
                    lines = {name: list[Any]() for name in names}
        return pa.concat_tables([*tables, table_schemas.table_from_columns(schema, **lines)])

    def recorded(self, books: Books, population: str) -> set[tuple[str, str]]:
        """Return (day, series) of the rows of one population."""
        keys = map(json.loads, books.keys(self.name))
        return {(day, series) for of_population, day, series in keys if of_population == population}

    def contents(self, sums: Mapping[tuple[date, str], DailySum], rows: Sequence[ReleaseRecord]) -> Rows:
        """Return the rows of these sums, as far as they were released, as the book stores them.

        Args:
            sums: the daily sums by day and series, confidential.
            rows: the rows of the ledger.
        """
        lines: list[TableRow] = []
        for row in rows:
            day = date.fromisoformat(row.day)
            if row.state == "released" and (daily_sum := sums.get((day, row.series))) is not None:
                key_columns = {"population": row.population, "day": day, "series": row.series}
                lines += [{**key_columns, **columns} for columns in self.rows_of_release(row, daily_sum)]
        return self.encoded(table_schemas.table_from_rows(self.schema, lines)) if lines else {}

    def encoded(self, table: pa.Table) -> Rows:
        """Return the rows of a table as the book stores them: one for each population, day and series."""
        ordered = table.sort_by([(name, "ascending") for name in _KEY])
        columns = {name: ordered[name].to_pylist() for name in self.schema.names}
        contents, start = Rows(), 0
        for keys, lines in groupby(zip(*(columns[name] for name in _KEY[:3]), strict=True)):
            end = start + len([*lines])
            cells = {name: values[start:end] for name, values in columns.items() if name not in _KEY[:3]}
            contents[json.dumps([str(key) for key in keys])] = zlib.compress(json.dumps(cells).encode())
            start = end
        return contents


_KEY = ("population", "day", "series", "cell")
_BATCH: Final = 2**16
"""Cells that are Python values at once when a table is read."""


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


COUNTED_STATES = CellTable("counted_states", table_schemas.COUNTED_STATES, _state_rows)


def _coverage_rows(row: ReleaseRecord, daily_sum: DailySum) -> Iterator[TableRow]:
    for line, counts in _released_lines(row, daily_sum):
        yield line | {name: counts[name] for name in ("usable", "clamped")}


COVERAGE = CellTable("coverage", table_schemas.COVERAGE, _coverage_rows)


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


TRUE_MEANS = CellTable("true_means", table_schemas.TRUE_MEANS, _mean_rows)
TRUE_COUNTS = CellTable("true_counts", table_schemas.TRUE_COUNTS, _count_rows)
CELL_TABLES: Final = (COVERAGE, COUNTED_STATES, TRUE_COUNTS, TRUE_MEANS)


def record_sums(books: Books, sums: Mapping[tuple[date, str], DailySum], rows: Sequence[ReleaseRecord]) -> None:
    """Record the rows of these sums in all tables of cells, in one transaction; repeated calls record the same.

    Raises:
        InputError: the book cannot be written.
    """
    contents = {table.name: table.contents(sums, rows) for table in CELL_TABLES}
    if any(contents.values()):
        with books.writing() as tables:
            for name, of_table in contents.items():
                if of_table:
                    tables.put(name, of_table)


def recorded_days(books: Books, population: str) -> set[tuple[str, str]]:
    """Return (day, series) of the released rows of a population with recorded true values.

    True values of profiles are not recorded, and those of a coverage series are in COVERAGE.
    """
    return TRUE_MEANS.recorded(books, population) | TRUE_COUNTS.recorded(books, population)


# --------------------------------------------------------------------------------------------------
# The last complete publication of each release folder, so that a night without a change does not write it again: the
# table `publications` of the book. Without it the folders are written again, with the same bytes.
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


def read_publication(books: Books, folder: Path) -> PublicationRecord | None:
    """Return the last complete publication of a release folder; None if its record is missing or damaged."""
    content = books.row("publications", str(folder.absolute()))
    if content is None:
        return None
    fields = json.loads(content)
    files = {name: (size, modified, changed) for name, (size, modified, changed) in fields["files"].items()}
    return PublicationRecord(**{**fields, "files": files})


def save_publication(books: Books, record: PublicationRecord) -> None:
    """Write the record of a publication, beside those of other folders; without it the next run publishes again."""
    lost = [folder for folder in books.keys("publications") if not Path(folder).is_dir()]
    books.put_derived("publications", {record.folder: json.dumps(asdict(record)).encode()}, removed=lost)


# --------------------------------------------------------------------------------------------------
# The checkpoints of ledgers, and the calendar of complete readings: the table `ledger_checkpoints` of the book, by the
# ledger's address, which is a file relative to the confidential folder, or a server. Several populations may share the
# folder, each with a ledger.
#
# A night reads the rows since the checkpoint, and the numbers and hashes of all rows. What it does not read is the
# text of the rows below the checkpoint, so every 30 days a run reads the ledger completely, whatever the checkpoint
# says. The same run publishes the release folder anew. `agedp ledger verify` reads everything whenever it is called.
# --------------------------------------------------------------------------------------------------

_DAMAGED: Final = (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError)
VERIFIED_FOR_DAYS: Final = 30
"""Days after a complete reading of the ledger in which runs go on from its checkpoint."""


def open_ledger(url: str, books: Books, *, create: bool) -> Ledger:
    """Open the ledger of a run: from the checkpoint of the last run on, or completely once a month.

    Args:
        url: address of the ledger.
        books: the book with the checkpoints.
        create: whether a missing ledger is created.

    Raises:
        LedgerError: as `Ledger.open`.
    """
    checkpoint = _read_checkpoint(books, url, parse_checkpoint)
    is_recent = checkpoint is not None and 0 <= (clock.today() - checkpoint.verified_on).days < VERIFIED_FOR_DAYS
    return Ledger.open(url, create=create, checkpoint=checkpoint if is_recent else None)


def _read_checkpoint(books: Books, url: str, parse: Callable[[bytes], LedgerCheckpoint]) -> LedgerCheckpoint | None:
    """Return the checkpoint of a ledger, None if it is missing, damaged or of a version that `parse` refuses."""
    content = books.row("ledger_checkpoints", _address(url, books))
    with suppress(*_DAMAGED):
        return None if content is None else parse(content)
    return None


def _address(url: str, books: Books) -> str:
    """Return the address of a ledger; that of a file stays the same if it is moved with the confidential folder."""
    if url.startswith("postgresql"):
        return url
    with suppress(ValueError):  # on another drive
        return Path(os.path.relpath(ledger_path(url), books.path.parent)).as_posix()
    return url


def update_checkpoint(books: Books, ledger: Ledger, *, may_begin_anew: bool) -> None:
    """Write the checkpoint of a ledger if rows were added since the last; without one the next run reads all rows.

    Args:
        books: the book with the checkpoints.
        ledger: the ledger, after all other checks of a run.
        may_begin_anew: whether a ledger that lacks rows of the last checkpoint is a new one, as in rehearsals.

    Raises:
        LedgerBehind: the ledger was replaced by an older copy, or shortened.
    """
    if ledger.is_read_completely and not may_begin_anew:
        before = _read_checkpoint(books, ledger.url, parse_checkpoint_of_any_version)
        # ledgers that begin with the same row are different ones once they promise or release something else
        if before is not None and before.ends_after(ledger.content_head()):
            raise LedgerBehind(
                "the ledger lacks rows that an earlier run has read: it was replaced by an older copy, or shortened. "
                "Put back the newest copy, or restore it from the newest release folder (`agedp ledger recover`)"
            )
    checkpoint = ledger.advance_checkpoint(verified_on=clock.today())
    if checkpoint is not None:
        address = _address(ledger.url, books)
        books.put_derived("ledger_checkpoints", {address: replace(checkpoint, address=address).format()})


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


# --------------------------------------------------------------------------------------------------
# The records of 0.1 and 0.2, a file each -> the book, in one transaction.
#
# What was released, which values were true and up to where each ledger was read is taken over; everything else is
# computed again. The files are removed after the commit, so a run that is killed in between repeats it; a row that the
# book has already is kept.
# --------------------------------------------------------------------------------------------------

_RELEASED, _CHECKPOINTS = "released_rosters.parquet", "ledger_checkpoint.json"
_TABLES: Final = {f"{table.name}.parquet": table for table in CELL_TABLES}
_COMPUTED: Final = (
    *("publication", "report", "roster/file", "roster/checked"),
    *("store/manifests", "store/names", "store/buckets"),
)
_EARLIER: Final = (_RELEASED, _CHECKPOINTS, *_TABLES, "roster/counts.parquet", *(f"{name}.json" for name in _COMPUTED))


def take_over(books: Books) -> None:
    """Move the records that an earlier version wrote beside the book into it.

    Raises:
        DamagedFile: that of released rosters is damaged.
        InputError: the system denies access.
    """
    folder = books.path.parent
    paths = [path for path in (folder / name for name in _EARLIER) if atomic_files.path_exists(path)]
    if not paths:
        return
    contents = {
        "released_rosters": read_content(folder / _RELEASED, rows_of_table, FileKind.SOURCE, advice=ADVICE).value,
        "ledger_checkpoints": read_derived(folder / _CHECKPOINTS, _checkpoints),
    }
    for name, table in _TABLES.items():
        advice = "Put back a copy to keep its earlier days."
        earlier = read_content(folder / name, partial(_cells, table=table), FileKind.RECORD, advice=advice)
        contents[table.name] = earlier.value
        if earlier.notice is not None:
            _LOG.warning("agedp: %s", earlier.notice.public)
    with books.writing() as tables:
        for name, rows in contents.items():
            known = tables.keys(name)
            tables.put(name, {key: content for key, content in (rows or {}).items() if key not in known})
    for path in (*paths, *folder.glob("store/days/month=*/deduplicated.json")):
        path.unlink(missing_ok=True)


def _cells(path: Path, *, table: CellTable) -> Rows:
    return table.encoded(atomic_files.read_table(path, table.schema))


def _checkpoints(path: Path) -> Rows:
    """Return the checkpoints of a file that has two lines for each."""
    lines = path.read_bytes().splitlines(keepends=True)
    return {str(json.loads(lines[i])["ledger"]): lines[i] + lines[i + 1] for i in range(0, len(lines) - 1, 2)}
