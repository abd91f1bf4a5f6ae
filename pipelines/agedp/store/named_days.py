"""Rows, kept or rejected -> the first and the last day of each household, off which a first roster is read.

A published number of households has no noise. So such a roster is a function of household ids and timestamps, and no
energy moves it. A row names a household and a half-hour if both can be read, whatever its
energy contains: `Null`, text, a negative or an impossible number, a reading that contradicts another one.

Example: a household whose rows of 5 March have 46 half-hours is on the roster from that day, even if none of its
readings is kept.

Decisions:

* A day counts with nearly all half-hours (46): the first reading is often a midnight, which belongs to the day before.
  A household without such a day counts from its first to its last day with any.
* A row off the grid of the interval names no half-hour. A row of an excluded category is not asked for and names none.
* A row of a day names all of its half-hours, and a line of a table with a column per meter its half-hour for every
  meter: an empty cell is an energy.
* The meters of a household, if the ids of the files are meters, name its half-hours together.
* Only a first roster needs what rejected rows name. Stores of earlier versions do not contain it: listed files are then
  parsed again (`has_rejected_rows`), and files that are no longer listed are refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date
from functools import partial
from itertools import product
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from agedp.compute.engine import map_items
from agedp.compute.engine_settings import Engine
from agedp.stage_values import Delivery
from agedp.store.data_quality import rejected_rows_files
from agedp.store.month_reader import day_numbers, household_codes, household_ids, load_part, load_table
from agedp.store.store import Manifest, Store, bucket_numbers, read_retained_from
from agedp_data import table_schemas
from agedp_data.datasets.layout import slot_step
from agedp_data.datasets.timestamps import date_of_day, day_number
from agedp_data.datasets.validation import SLOTS, Flags, RejectionReason
from agedp_data.errors import InputError

_MONTH_DAYS = 31
_NAMED = ["household_id", "day", "slot"]
_Spans = list[tuple[str, int, int]]
"""Household, first and last day since 1970."""


def day_spans(store: Store, delivery: Delivery, *, engine: Engine) -> dict[str, tuple[date, date]]:
    """Return the first and the last day of every household that a row names.

    Raises:
        InputError: a file that is no longer listed was stored without what its rejected rows name.
        FolderRemoved: a table of the store is missing or damaged.
    """
    manifests = {content: store.manifest(content) for content in delivery.contents}
    if any(manifest is None or not has_rejected_rows(store, manifest) for manifest in manifests.values()):
        raise InputError(
            "files that are no longer delivered were read by another version of agedp, without the days of their "
            "rejected rows; put the files back in [input] files"
        )
    retained_from = read_retained_from(store.folder)
    folders = (folder.name.removeprefix("month=") for folder in store.quarantine_folder("").glob("month=*"))
    months = sorted({*delivery.months, *(month for month in folders if month >= retained_from)})
    items = list(product(months, range(store.buckets)))
    function = partial(_month_spans, store=store, contents=delivery.contents)
    any_days: dict[str, tuple[int, int]] = {}
    full_days: dict[str, tuple[int, int]] = {}
    for of_month in map_items("roster", items, function=function, engine=engine):
        for spans, of_households in zip((any_days, full_days), of_month, strict=True):
            for name, first, last in of_households:
                before = spans.get(name, (first, last))
                spans[name] = min(before[0], first), max(before[1], last)
    return {name: (date_of_day(first), date_of_day(last)) for name, (first, last) in (any_days | full_days).items()}


def has_rejected_rows(store: Store, manifest: Manifest) -> bool:
    """Return whether the store has every row of a file that parsing rejected, with what the row names."""
    category = RejectionReason.CATEGORY.words
    return all(
        sum(rejected.values()) - rejected.get(category, 0)
        == sum(map(_count_rows, rejected_rows_files(store, f"{manifest.content}-{number}.parquet")))
        for number, rejected in enumerate(part.rejected for part in manifest.parts)
    )


def _count_rows(path: Path) -> int:
    """Return the number of rows of a quarantine file, by its footer; 0 if it does not have what they name."""
    try:
        footer = pq.read_metadata(path)
    except (OSError, ValueError, pa.ArrowException):
        return 0
    return int(footer.num_rows) if footer.schema.names == table_schemas.PARSED_QUARANTINE.names else 0


def _month_spans(month_bucket: tuple[str, int], *, store: Store, contents: Sequence[str]) -> tuple[_Spans, _Spans]:
    """Return the spans of a month and bucket by days with any half-hour, and by days with nearly all of them."""
    month, bucket = month_bucket
    first_day = day_number(date.fromisoformat(f"{month}-01"))
    rows = _named_rows(store, month, bucket, contents)
    # with meters their households; a meter without a household on its day names nobody
    tables = list(rows if store.meters is None else map(store.meters.assigned, rows))
    names = sorted({name for table in tables for name in household_ids(table)})
    code_by_id = {name: code for code, name in enumerate(names)}
    is_named = np.zeros((len(names), _MONTH_DAYS, SLOTS), bool)
    for table in tables:
        slot = table["slot"].to_numpy() if store.layout.width == 1 else slice(None)
        is_named[household_codes(table, code_by_id), day_numbers(table) - first_day, slot] = True
    half_hours = is_named.sum(axis=2)
    nearly_all = (SLOTS - 2) // slot_step(store.layout.interval_minutes)
    return _spans(names, half_hours > 0, first_day), _spans(names, half_hours >= nearly_all, first_day)


def _spans(names: Sequence[str], has_day: Flags, first_day: int) -> _Spans:
    """Return each household with its first and last day, since 1970, without those that have none."""
    first = first_day + has_day.argmax(axis=1)
    last = first_day + _MONTH_DAYS - 1 - has_day[:, ::-1].argmax(axis=1)
    chosen = np.flatnonzero(has_day.any(axis=1)).tolist()
    return [(names[i], int(first[i]), int(last[i])) for i in chosen]


def _named_rows(store: Store, month: str, bucket: int, contents: Sequence[str]) -> Iterator[pa.Table]:
    """Yield what the rows of a month and bucket name: the kept ones, and those that parsing rejected."""
    columns = [name for name in _NAMED if name in store.schema.names]
    for part in store.month_parts(month, contents, bucket):
        yield load_part(store, part, columns)
    for content in contents:
        for number in range(len(store.stored_parts(content))):
            path = store.quarantine_folder(month) / f"{content}-{number}.parquet"
            if not path.exists():
                continue
            table = load_table(path, table_schemas.PARSED_QUARANTINE, columns=_NAMED).drop_null()
            is_of_bucket = bucket_numbers(table["household_id"].to_pylist(), store.buckets) == bucket
            table = table.filter(pa.array(is_of_bucket))
            yield table.set_column(0, "household_id", pc.dictionary_encode(table["household_id"]))
