"""A confidential folder for work on tables in memory: their readings in a store, and the run file of a release.

The same stages as of a run file work on it. The folder is temporary, readable for its owner only, and removed with the
last value that refers to it, or when the process ends.
"""

from __future__ import annotations

import csv
import io
import logging
import shutil
import tempfile
import weakref
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from agedp import input_frames
from agedp.compute.engine import check_shared, default_scheduler, scheduler_name
from agedp.compute.engine_settings import Engine
from agedp.input_findings import check_findings
from agedp.local_files import atomic_files
from agedp.stage_values import Delivery
from agedp.stages.ingest import ingest, named_columns
from agedp.store.named_days import day_spans
from agedp.store.store import Store
from agedp_data.datasets.parquet_parsing import FLOAT_IDS, FLOAT_IDS_REMEDY
from agedp_data.datasets.timestamps import date_of_day
from agedp_data.datasets.validation import INTERVAL_MINUTES, ReadingRules
from agedp_data.errors import InputError
from agedp_data.roster import FIXED_COLUMNS, Roster, format_roster, read_roster

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
        columns = input_frames.readings_columns(readings)
        input_frames.write_parquet(readings, self.input_folder, input_frames.READINGS_COLUMNS)
        unread = input_frames.unread_half_hours(readings)
        if unread is not None and len(unread):
            pq.write_table(unread, self.input_folder / "unread.parquet")
        attributes = input_frames.attributes(readings)
        return {
            "dataset": "long",
            "files": [str(self.input_folder)],
            "interval_minutes": int(attributes.get(input_frames.INTERVAL, INTERVAL_MINUTES)),
            "columns": columns,
        }

    def write_roster(self, roster: Any) -> Path:  # noqa: ANN401  (a path or any table)
        """Write a roster: the file at a path, or a table with the columns of one, in any order."""
        path = self.folder / "roster.csv"
        if isinstance(roster, str | Path):
            return Path(roster).absolute()
        table = pa.concat_tables(input_frames.batches(roster))
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
        engine = Engine(default_scheduler() if scheduler is None else scheduler_name(scheduler))
        check_shared(workspace.folder, engine)  # workers write the partitions of a Dask frame
        if input_frames.has_float_ids(readings):
            if not has_begun:
                raise InputError(f"readings: {FLOAT_IDS}; {FLOAT_IDS_REMEDY}")
            _LOG.warning("agedp: %s; they are kept, because the population has releases", FLOAT_IDS)
        if not has_begun:
            check_findings(input_frames.noted_findings(readings) or (), accepted=accepted)
        keys = workspace.write_readings(readings)
        store = Store(atomic_files.make_private(workspace.confidential) / "store", keys["dataset"], rules_of(keys))
        delivery = ingest(store, keys["files"], engine=engine, has_begun=has_begun)
        spans = day_spans(store, delivery, engine=engine)
        if not (spans and delivery.rows_kept):
            raise InputError("readings: no reading is usable, so there is no household")
        path = workspace.folder / "roster.csv"
        atomic_files.write(path, format_roster((name, *spans[name]) for name in sorted(spans)).encode())
        return cls(workspace, store, delivery, read_roster(path), path, keys, engine)

    @property
    def days(self) -> tuple[date, date]:
        """The first and last day with a reading."""
        return date_of_day(int(self.roster.first.min())), date_of_day(int(self.roster.last.max()))


def rules_of(keys: Mapping[str, Any]) -> ReadingRules:
    """Return the parsing rules of the table [input]."""
    minutes = keys.get("interval_minutes", INTERVAL_MINUTES)
    return ReadingRules(columns=named_columns(keys.get("columns"), minutes), interval_minutes=minutes)
