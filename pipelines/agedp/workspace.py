"""A confidential folder for work on tables in memory: their readings in a store, and the run file of a release.

The same stages as of a run file work on it. The folder is temporary, readable for its owner only, and removed with the
last value that refers to it, or when the process ends.
"""

from __future__ import annotations

import csv
import hashlib
import io
import logging
import shutil
import tempfile
import uuid
import weakref
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from agedp.compute.engine import check_shared, choose_scheduler, default_scheduler
from agedp.compute.engine_settings import Engine
from agedp.local_files import atomic_files
from agedp.preflight.input_checks import check_findings
from agedp.stage_values import Delivery
from agedp.stages.ingest import ingest, named_columns
from agedp.store.named_days import day_spans
from agedp.store.store import Store
from agedp_data.datasets.parquet_parsing import FLOAT_IDS, FLOAT_IDS_REMEDY, is_float
from agedp_data.datasets.timestamps import date_of_day
from agedp_data.datasets.validation import INTERVAL_MINUTES, ReadingRules
from agedp_data.errors import InputError
from agedp_data.roster import FIXED_COLUMNS, Roster, format_roster, read_roster

if TYPE_CHECKING:
    import pandas as pd

    from agedp.preflight.input_checks import Finding


# --------------------------------------------------------------------------------------------------
# Tables of readings in memory -> Arrow batches and Parquet files, whatever library holds them.
#
# pandas and Dask data frames, Arrow tables, and everything that speaks Arrow's C stream: DuckDB relations, polars
# frames, Delta tables. A table is read in batches; nothing is converted twice.
# --------------------------------------------------------------------------------------------------

HOUSEHOLD: Final = "household_id"
START: Final = "interval_start"
ENERGY: Final = "energy_wh"
READINGS_COLUMNS: Final = (HOUSEHOLD, START, ENERGY)
"""Columns of the frame that `agedp.read` returns."""
SUMMED: Final = "repeated_half_hours"
"""Key of `DataFrame.attrs` that says that a half-hour that the clock shows twice is one row."""
INTERVAL: Final = "interval_minutes"
"""Key of `DataFrame.attrs`: the minutes of an interval; 30 if it is not there."""
NEGATIVE: Final = "negative"
"""Key of `DataFrame.attrs`: "net" if energies below 0 are net exports; otherwise they are rejected."""
READ_OFF: Final = "read_off"
"""Key of `DataFrame.attrs`: keys of [input.columns] that `agedp.read` inferred from readings."""
NOTES: Final = "notes"
"""Key of `DataFrame.attrs`: which `ReadNotes` of this process belong to a frame."""
_ARROW: Final = (pa.Table, pa.RecordBatch, pa.RecordBatchReader)
_ROWS_PER_GROUP: Final = 2**20
_OPTIONS: Final[Mapping[str, Any]] = {"compression": "lz4", "write_statistics": False}
"""Options of files that are read once: nobody asks for statistics."""


def is_table(source: object) -> bool:
    """Return whether an argument is a table, not a path."""
    return not isinstance(source, str | Path | list | tuple) and _kind(source) != ""


def is_dask(table: object) -> bool:
    """Return whether a table is a Dask data frame."""
    return _kind(table) == "dask"


def _kind(table: Any) -> str:  # noqa: ANN401  (any library's table)
    library = type(table).__module__.partition(".")[0]
    for name, attribute in (("dask", "to_delayed"), ("pandas", "columns")):
        if library == name and hasattr(table, attribute):
            return name
    streams = ("to_pyarrow_dataset", "__arrow_c_stream__", "fetch_record_batch", "to_batches")
    return next((name for name in streams if hasattr(table, name)), "")


def table_schema(table: Any) -> pa.Schema:  # noqa: ANN401
    """Return the columns of a table and their types, without reading a row.

    Raises:
        InputError: not a table that can be read.
    """
    match _kind(table):
        case "dask":
            return _as_arrow(_labelled(table._meta)).schema
        case "pandas":
            return _as_arrow(_labelled(table).head(1000)).schema
        case "":
            raise no_table(table)
        case "to_pyarrow_dataset":
            return table.to_pyarrow_dataset().schema
        case "__arrow_c_stream__" if not isinstance(table, _ARROW):
            try:
                return pa.RecordBatchReader.from_stream(table).schema
            except pa.ArrowInvalid:  # a single column
                raise no_table(table) from None
        case _:
            return table.schema


def no_table(source: object) -> InputError:
    """Return the error about what is neither a table nor the paths of files."""
    return InputError(
        f"readings: {type(source).__name__} is no table; give a pandas or Dask data frame, an Arrow table, or the "
        "paths of files"
    )


def _labelled(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a frame with its named index as columns, as pandas writes it into Parquet files, and texts as names."""
    frame = frame.reset_index() if any(name is not None for name in frame.index.names) else frame
    if all(isinstance(name, str) for name in frame.columns):
        return frame
    return frame.set_axis([str(name) for name in frame.columns], axis=1)


def _as_arrow(frame: pd.DataFrame) -> pa.Table:
    """Return a frame as an Arrow table; a column with several kinds of values becomes text.

    Raises:
        InputError: two columns have one name, or the values of a column cannot be read.
    """
    if len(set(frame.columns)) < len(frame.columns):
        raise InputError("readings: two columns of the frame have the same name; rename one")
    try:
        return pa.Table.from_pandas(frame, preserve_index=False)
    except (pa.ArrowException, ValueError, TypeError, OverflowError):
        mixed = {str(name): frame[name].map(str, na_action="ignore") for name in frame if frame[name].dtype == object}
    try:
        return pa.Table.from_pandas(frame.assign(**mixed), preserve_index=False)
    except (pa.ArrowException, ValueError, TypeError, OverflowError) as error:
        problem = "readings: a column of the frame cannot be read; convert it to numbers, timestamps or text"
        raise InputError(problem, private=f"{problem}: {error}") from None


def batches(table: Any, columns: Sequence[str] | None = None) -> Iterator[pa.Table]:  # noqa: ANN401
    """Yield the rows of a table in batches; a Dask frame is computed partition by partition.

    Args:
        table: a table, see the module.
        columns: the columns to keep; all if None.
    """
    match _kind(table):
        case "dask":
            for partition in table.partitions:
                yield from batches(partition.compute(), columns)
            return
        case "pandas":
            frame = _labelled(table)
            selected = frame if columns is None else frame[list(columns)]
            for start in range(0, len(selected), _ROWS_PER_GROUP):
                yield _as_arrow(selected.iloc[start : start + _ROWS_PER_GROUP])
            return
        case "to_pyarrow_dataset":
            record_batches = table.to_pyarrow_dataset().to_batches(batch_size=_ROWS_PER_GROUP)
        case "fetch_record_batch":
            record_batches = table.fetch_record_batch(_ROWS_PER_GROUP)
        case "__arrow_c_stream__":
            record_batches = pa.RecordBatchReader.from_stream(table)
        case _:
            record_batches = table.to_batches()
    for batch in record_batches:
        rows = pa.Table.from_batches([batch])
        yield rows if columns is None else rows.select(list(columns))


def write_parquet(table: Any, folder: Path, columns: Sequence[str]) -> None:  # noqa: ANN401
    """Write columns of a table as Parquet files into a folder; the partitions of a Dask frame by its scheduler."""
    if _kind(table) == "dask":
        frame = table.reset_index() if any(name is not None for name in table._meta.index.names) else table
        frame = frame.rename(columns={name: str(name) for name in frame.columns if not isinstance(name, str)})
        frame[list(columns)].to_parquet(str(folder), write_index=False, write_metadata_file=False, **_OPTIONS)
        pa.default_memory_pool().release_unused()  # what the partitions took is not kept while the readings are parsed
        return
    writer: pq.ParquetWriter | None = None
    try:
        for batch in batches(table, columns):
            if writer is None:
                writer = pq.ParquetWriter(folder / "part-0.parquet", batch.schema, **_OPTIONS)
            writer.write_table(batch.cast(writer.schema))
    finally:
        if writer is not None:
            writer.close()
    if writer is None:
        pq.write_table(pa.table({name: pa.array([], pa.string()) for name in columns}), folder / "part-0.parquet")


def attributes(table: Any) -> Mapping[str, Any]:  # noqa: ANN401
    """Return what `agedp.read` noted about a frame; nothing for a table that lost it on its way."""
    notes = getattr(getattr(table, "_meta", table), "attrs", None)
    return notes if isinstance(notes, Mapping) else {}


@dataclass(frozen=True, slots=True)
class ReadNotes:
    """What `agedp.read` found beside the readings of a frame; confidential.

    A frame refers to it by a key of this process, because pandas writes `attrs` into Parquet files. Nothing is noted
    about a table that another process or another function read: it is taken as it is.

    Attributes:
        rows: number of rows of the frame.
        households: the households of the frame.
        unread: the columns of readings for each half-hour that rows name without a reading that was kept.
        float_ids: whether the household ids were floating-point numbers.
        findings: what the preflight found.
    """

    rows: int
    households: frozenset[str]
    unread: pa.Table
    float_ids: bool
    findings: tuple[Finding, ...] = ()


_NOTES: dict[str, ReadNotes] = {}
_PROCESS: Final = uuid.uuid4().bytes


def note(frame: pd.DataFrame, *, unread: pa.Table, float_ids: bool, findings: tuple[Finding, ...] = ()) -> None:
    """Note what `agedp.read` found beside the rows of a frame, unless there is nothing."""
    if not (len(unread) or float_ids or findings):
        return
    households = frozenset(frame[HOUSEHOLD].unique().tolist())
    source = repr((len(frame), sorted(households), unread.to_pydict(), float_ids, findings)).encode()
    key = hashlib.sha256(_PROCESS + source).hexdigest()[:16]  # equal readings have equal keys, in this process only
    _NOTES[key] = ReadNotes(len(frame), households, unread, float_ids, findings)
    frame.attrs[NOTES] = key


_DASK_FINDINGS: dict[str, tuple[Finding, ...]] = {}
"""Findings by the name of a Dask frame's expression, which differs for a frame of some of its rows."""


def note_dask(frame: Any, findings: tuple[Finding, ...]) -> None:  # noqa: ANN401
    """Note what the judge found in the readings of a Dask frame."""
    _DASK_FINDINGS[frame._name] = findings


def has_float_ids(table: Any) -> bool:  # noqa: ANN401
    """Return whether the household ids of a table are floating-point numbers, or were when `agedp.read` read them."""
    notes = _NOTES.get(attributes(table).get(NOTES, ""))
    schema = table_schema(table)
    is_number = HOUSEHOLD in schema.names and is_float(schema.field(HOUSEHOLD).type)
    return is_number or (notes is not None and notes.float_ids)


def noted_findings(table: Any) -> tuple[Finding, ...] | None:  # noqa: ANN401
    """Return what the judge found when `agedp.read` read a frame; None of a table it did not read, or of some rows."""
    if _kind(table) == "dask":
        return _DASK_FINDINGS.get(table._name)
    notes = _NOTES.get(attributes(table).get(NOTES, ""))
    if notes is None or _kind(table) != "pandas" or len(table) != notes.rows:
        return None
    return notes.findings if notes.households == frozenset(table[HOUSEHOLD].unique().tolist()) else None


def unread_half_hours(table: Any) -> pa.Table | None:  # noqa: ANN401
    """Return the columns of readings of the half-hours that rows named, but that `agedp.read` could not keep.

    Of a frame with some of its rows: those of its households between its first and its last half-hour. None if nothing
    is noted about the table.
    """
    notes = _NOTES.get(attributes(table).get(NOTES, ""))
    if notes is None or _kind(table) != "pandas" or not len(table):
        return None
    households = table[HOUSEHOLD].unique().tolist()
    if len(table) == notes.rows and notes.households == frozenset(households):
        return notes.unread
    start = notes.unread[START]
    first, last = (pa.scalar(instant, start.type) for instant in (table[START].min(), table[START].max()))
    of_frame = pc.is_in(notes.unread[HOUSEHOLD], pa.array(households, pa.string()))
    return notes.unread.filter(pc.and_(of_frame, pc.and_(pc.greater_equal(start, first), pc.less_equal(start, last))))


def readings_columns(table: Any) -> dict[str, Any]:  # noqa: ANN401
    """Return [input.columns] of a frame of readings as `agedp.read` returns it; its zone is that of its days.

    Raises:
        InputError: the columns are not those of readings, or the timestamps have no zone.
    """
    schema = table_schema(table)
    if missing := [name for name in READINGS_COLUMNS if name not in schema.names]:
        raise InputError(
            f"readings: no column {', '.join(missing)}; give the frame of agedp.read, or pass yours through "
            "agedp.read(frame, dataset=..., columns=...) first"
        )
    zone = getattr(schema.field(START).type, "tz", None)
    if zone is None:
        raise InputError(f'readings: {START} has no time zone; localise it first: .dt.tz_localize("Europe/London")')
    columns = {"household": HOUSEHOLD, "time": START, "time_format": "iso", "stamp": "start", "zone": "UTC"}
    columns |= {"day_zone": zone, "energy": ENERGY, "unit": "Wh", "repeated": attributes(table).get(SUMMED, "passes")}
    return columns | ({"negative": "net"} if attributes(table).get(NEGATIVE) == "net" else {})


def input_keys(table: Any) -> dict[str, Any]:  # noqa: ANN401
    """Return the table [input] of a run file for a frame of readings, without files.

    Raises:
        InputError: as `readings_columns`.
    """
    noted = attributes(table)
    minutes, read_off = int(noted.get(INTERVAL, INTERVAL_MINUTES)), noted.get(READ_OFF)
    keys = {"dataset": "long", "interval_minutes": minutes, "columns": readings_columns(table)}
    return {**keys, **({"read_off": list(read_off)} if read_off else {})}


_LOG = logging.getLogger("agedp")


class _Owner:
    """Removes a folder when nothing refers to this value any more, and at the latest when the process ends."""

    def __init__(self, folder: str) -> None:
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)


@dataclass(frozen=True, slots=True)
class Workspace:
    """A temporary confidential folder; `_owner` removes it."""

    folder: Path
    _owner: _Owner = field(repr=False)

    @classmethod
    def create(cls) -> Workspace:
        """Return a new, empty workspace.

        A cluster needs a folder that all workers share: set TMPDIR to one.
        """
        folder = tempfile.mkdtemp(prefix="agedp-")
        return cls(Path(folder), _Owner(folder))

    @property
    def input_folder(self) -> Path:
        """The folder of the readings as Parquet."""
        return atomic_files.make_private(self.folder / "input")

    @property
    def confidential(self) -> Path:
        """The confidential folder of a run file."""
        return self.folder / "confidential"

    def write_readings(self, readings: Any) -> dict[str, Any]:  # noqa: ANN401  (any table)
        """Write a table of readings, and return the table [input] of a run file that reads it.

        Half-hours that `agedp.read` could not keep are written without an energy, beside the readings: they count for
        the roster that is read off.

        Raises:
            InputError: the table has not the columns of `agedp.read`.
        """
        keys = input_keys(readings)
        write_parquet(readings, self.input_folder, READINGS_COLUMNS)
        unread = unread_half_hours(readings)
        if unread is not None and len(unread):
            pq.write_table(unread, self.input_folder / "unread.parquet")
        return {**keys, "files": [str(self.input_folder)]}

    def write_roster(self, roster: Any) -> Path:  # noqa: ANN401  (a path or any table)
        """Write a roster: the file at a path, or a table with the columns of one, in any order."""
        path = self.folder / "roster.csv"
        if isinstance(roster, str | Path):
            return Path(roster).absolute()
        table = pa.concat_tables(batches(roster))
        groups = [name for name in table.column_names if name not in FIXED_COLUMNS]
        table = table.select([*(name for name in FIXED_COLUMNS if name in table.column_names), *groups])
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(table.column_names)
        for row in table.to_pylist():
            writer.writerow([_roster_cell(value) for value in row.values()])
        atomic_files.write(path, text.getvalue().encode())
        return path


def _roster_cell(value: Any) -> str:  # noqa: ANN401
    if value is None:
        return ""
    return value.date().isoformat() if hasattr(value, "date") and callable(value.date) else str(value)


@dataclass(frozen=True, slots=True)
class StoredReadings:
    """Readings of a table in a temporary store, and the roster that they imply; confidential."""

    workspace: Workspace
    store: Store
    delivery: Delivery
    roster: Roster
    roster_file: Path
    input_keys: Mapping[str, Any]
    engine: Engine

    @classmethod
    def of(
        cls,
        readings: Any,  # noqa: ANN401
        *,
        scheduler: Any = None,  # noqa: ANN401
        has_begun: bool = False,
        accepted: Collection[str] = (),
    ) -> StoredReadings:
        """Ingest a table of readings into a temporary store.

        Args:
            readings: a table with the columns of `agedp.read`.
            scheduler: a Dask scheduler, client or cluster.
            has_begun: whether the population has a release, so that its household ids are kept as they are.
            accepted: findings of `agedp.read` that are accepted.

        Raises:
            PreflightFailed: `agedp.read` found what refuses a first release.
            InputError: the table has not the columns of `agedp.read`, or no reading; before a first release also
                household ids that are floating-point numbers.
        """
        workspace = Workspace.create()
        engine = engine_of(scheduler)
        check_shared(workspace.folder, engine)  # workers write the partitions of a Dask frame
        if not has_begun:
            check_readings(readings, accepted=accepted)
        elif has_float_ids(readings):
            _LOG.warning("agedp: %s; they are kept, because the population has releases", FLOAT_IDS)
        keys = workspace.write_readings(readings)
        store = Store(atomic_files.make_private(workspace.confidential) / "store", keys["dataset"], rules_of(keys))
        delivery = ingest(store, keys["files"], engine=engine, has_begun=has_begun)
        spans = day_spans(store, delivery, engine=engine)
        if not (spans and delivery.rows_kept):
            raise no_reading()
        path = workspace.folder / "roster.csv"
        atomic_files.write(path, format_roster((name, *spans[name]) for name in sorted(spans)).encode())
        return cls(workspace, store, delivery, read_roster(path), path, keys, engine)

    @property
    def days(self) -> tuple[date, date]:
        """The first and last day with a reading."""
        rows = self.roster.rows
        return date_of_day(int(rows.first.min())), date_of_day(int(rows.last.max()))


def engine_of(scheduler: Any) -> Engine:  # noqa: ANN401
    """Return the engine of a Dask scheduler, client or cluster; of the active client, or threads, if it is None."""
    return Engine(default_scheduler() if scheduler is None else choose_scheduler(scheduler))


def check_readings(readings: Any, *, accepted: Collection[str] = ()) -> None:  # noqa: ANN401
    """Check what `agedp.read` found in a table, before its first release or for a model.

    Raises:
        PreflightFailed: findings that refuse a first release and are not accepted.
        InputError: household ids that are floating-point numbers.
    """
    if has_float_ids(readings):
        raise InputError(f"readings: {FLOAT_IDS}; {FLOAT_IDS_REMEDY}")
    check_findings(noted_findings(readings) or (), accepted=accepted)


def no_reading() -> InputError:
    """Return the error about a table without a usable reading."""
    return InputError("readings: no reading is usable, so there is no household")


def rules_of(keys: Mapping[str, Any]) -> ReadingRules:
    """Return the parsing rules of the table [input]."""
    minutes = keys.get("interval_minutes", INTERVAL_MINUTES)
    return ReadingRules(columns=named_columns(keys.get("columns"), minutes), interval_minutes=minutes)
