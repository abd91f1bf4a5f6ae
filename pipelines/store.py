"""The confidential store of READINGS: append-only Parquet parts by month and content.

    <confidential>/store/month=2013-03/<content>.parquet      rows of one input file in one month
    <confidential>/store/files/<content>.json                 written last: the file is wholly in the store
    <confidential>/store/quarantine/<content>.parquet         its rows that were set aside

A content id names the file's bytes and the rules they were read under, so another bound or another dataset
never meets old parts. `month_readings` is what everything downstream reads.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from agedp_data import tables
from agedp_data.errors import InputError
from agedp_data.readers.datasets import layout_of
from agedp_data.readers.files import numeric
from agedp_data.readers.layout import SLOTS, Ints, Layout, Reason, Rules
from agedp_data.readers.parse import Parsed
from agedp_data.readers.settle import Readings, Rows, settle
from pipelines import folders

FORMAT = 2
_EPOCH = date(1970, 1, 1)


@dataclass(frozen=True, slots=True)
class Order:
    """What "later" means when files disagree, and whether files that are no longer listed still count.

    `by` is None (a disagreement is set aside), "name" (numeric-aware) or "modified". A nightly store `remembers`:
    deliveries may be cleared away once they are read.
    """

    by: str | None = None
    remembers: bool = False


@dataclass(frozen=True, slots=True)
class Store:
    """Where the readings of one dataset lie and under which rules they were read."""

    folder: Path
    dataset: str
    rules: Rules
    order: Order = Order()

    @property
    def layout(self) -> Layout:
        """Return the dataset's layout."""
        return layout_of(self.dataset, self.rules.columns)

    def content(self, digest: str) -> str:
        """Return the content id of a file with this SHA-256."""
        rules = {key: value for key, value in asdict(self.rules).items() if value is not None}
        text = json.dumps([FORMAT, digest, self.dataset, rules], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()

    def manifest(self, content: str) -> Manifest | None:
        """Return what is known of a stored file; None if it is not wholly in the store."""
        try:
            found = Manifest(**json.loads((self.folder / "files" / f"{content}.json").read_bytes()))
            return found if found.adds_up() else None
        except (OSError, ValueError, TypeError, AttributeError):
            return None

    def remembered(self) -> tuple[str, ...]:
        """Return the content ids of all files that are wholly in the store."""
        known = sorted(path.stem for path in (self.folder / "files").glob("*.json"))
        return tuple(content for content in known if self.manifest(content) is not None)

    def ordered(self, places: Iterable[tuple[str, str, int]]) -> tuple[str, ...]:
        """Return content ids from the earliest file to the latest, by their (content, name, modified_ns).

        Of several places of one content the earliest counts: a file that is sent again says nothing new, and must
        not undo what corrected it meanwhile.
        """

        def place(one: tuple[str, str, int]) -> tuple[object, ...]:
            _, name, modified_ns = one
            return (modified_ns if self.order.by == "modified" else 0, numeric(name), name)

        return tuple(dict.fromkeys(content for content, _, _ in sorted(places, key=place)))

    def holds(self, content: str) -> bool:
        """Return whether a file is wholly in the store, every part of it as many rows as its manifest says."""
        manifest = self.manifest(content)
        forgotten = self.forgotten_before()
        return manifest is not None and all(
            month < forgotten or folders.rows_in(self.part(month, content)) == rows
            for month, rows in manifest.months.items()
        )

    def forgotten_before(self) -> str:
        """Return the month before which readings were let go (see `retention`), "" if none were."""
        try:
            return (self.folder / "forgotten_before").read_text(encoding="ascii")
        except (OSError, UnicodeDecodeError):
            return ""

    def part(self, month: str, content: str) -> Path:
        """Return the path of a part."""
        return self.folder / f"month={month}" / f"{content}.parquet"


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a stored file held: rows read, kept before months are settled, set aside by reason, rows by month.

    `name` and `modified_ns` are those under which its bytes were read.
    """

    name: str
    modified_ns: int
    rows_read: int
    kept: int
    aside: dict[str, int] = field(default_factory=dict)
    notes: dict[str, int] = field(default_factory=dict)
    months: dict[str, int] = field(default_factory=dict)

    def adds_up(self) -> bool:
        """Return whether rows read = kept + set aside, and kept = the rows of the months."""
        return self.rows_read == self.kept + sum(self.aside.values()) and self.kept == sum(self.months.values())


def month_of(day: Ints) -> Ints:
    """Return months since 1970 of days since 1970."""
    months: Ints = day.astype("datetime64[D]").astype("datetime64[M]").astype(np.int64)
    return months


def month_name(month: int) -> str:
    """Return a month as its folder is named, for example 2013-03."""
    return str(np.datetime64(int(month), "M"))


def months_between(first: date, last: date) -> tuple[str, ...]:
    """Return the names of the months that have days of a period."""
    days = np.array([(first - _EPOCH).days, (last - _EPOCH).days])
    low, high = month_of(days)
    return tuple(month_name(month) for month in range(int(low), int(high) + 1))


def add_file(store: Store, content: str, blocks: Sequence[Parsed], *, name: str, modified_ns: int) -> Manifest:
    """Write the parts, the quarantine and, last, the manifest of one input file."""
    offsets = np.cumsum([0, *(block.rows_read for block in blocks)])
    table, kept = _table(store.layout, blocks, offsets)
    months = month_of(table["day"].combine_chunks().cast(pa.int32()).to_numpy(zero_copy_only=False).astype(np.int64))
    found: dict[str, int] = {}
    for month in np.unique(months):
        part = table.filter(pa.array(months == month))
        path = store.part(month_name(int(month)), content)
        folders.make_private(path.parent)
        folders.write_table(path, part, use_dictionary=["household_id"], write_page_checksum=True)
        found[month_name(int(month))] = part.num_rows
    aside, notes = _aside(store, content, blocks, offsets)
    manifest = Manifest(name, modified_ns, int(offsets[-1]), kept, aside, notes, found)
    folders.write(store.folder / "files" / f"{content}.json", json.dumps(asdict(manifest), sort_keys=True).encode())
    return manifest


def _table(layout: Layout, blocks: Sequence[Parsed], offsets: Ints) -> tuple[pa.Table, int]:
    schema = _schema(layout)
    parts = [schema.empty_table()]
    for block, offset in zip(blocks, offsets, strict=False):
        records = block.records
        kept = np.flatnonzero(records.reason == Reason.KEPT)
        ids = pa.array(records.ids, pa.string())
        codes = pa.array(records.household[kept], pa.int32())
        values: dict[str, Any] = {
            "household_id": pa.DictionaryArray.from_arrays(codes, ids),
            "day": records.day[kept],
            "row": block.row[kept] + offset,
        }
        if layout.width == 1:
            values |= {"slot": records.slot[kept], "energy_wh": records.energy_wh[kept, 0]}
        else:
            values |= {f"energy_wh_{slot}": records.energy_wh[kept, slot] for slot in range(SLOTS)}
        if layout.channels > 1:
            values |= {"channel": records.channel[kept]}
        parts.append(tables.columns(schema, **values))
    table = pa.concat_tables(parts).unify_dictionaries()
    return table, table.num_rows


def _schema(layout: Layout) -> pa.Schema:
    if layout.width > 1:
        return tables.READINGS_WIDE
    return tables.READINGS if layout.channels == 1 else tables.READINGS_CHANNELS


def _aside(
    store: Store, content: str, blocks: Sequence[Parsed], offsets: Ints
) -> tuple[dict[str, int], dict[str, int]]:
    counts: dict[str, int] = {}
    notes: dict[str, int] = {}
    rows: list[tuple[int, str, str]] = []
    for block, offset in zip(blocks, offsets, strict=False):
        for name, number in block.records.notes.items():
            notes[name] = notes.get(name, 0) + number
        other = int((block.records.reason == Reason.CATEGORY).sum())
        if other:
            counts[Reason.CATEGORY.words] = counts.get(Reason.CATEGORY.words, 0) + other
        for row, reason, text in zip(block.aside_row, block.aside_reason, block.aside_text, strict=True):
            words = Reason(int(reason)).words
            counts[words] = counts.get(words, 0) + 1
            rows.append((int(row + offset), words, text))
    if rows:
        write_quarantine(store, content, rows)
    return counts, notes


def write_quarantine(store: Store, name: str, rows: Iterable[tuple[int, str, str]]) -> None:
    """Write the rows of one input file that were set aside."""
    numbers, reasons, texts = zip(*rows, strict=True)
    table = tables.columns(
        tables.QUARANTINE, content=[name] * len(numbers), row=list(numbers), reason=list(reasons), text=list(texts)
    )
    folders.write_table(folders.make_private(store.folder / "quarantine") / f"{name}.parquet", table)


def month_readings(store: Store, month: str, contents: Sequence[str]) -> Readings:
    """Return what a month says, from the parts of these files in their order."""
    loaded = [
        (i, _load(store.part(month, content)))
        for i, content in enumerate(contents)
        if store.part(month, content).exists()
    ]
    ids = tuple(sorted({name for _, table in loaded for name in _names(table)}))
    position = {name: code for code, name in enumerate(ids)}
    parts = [_rows(store.layout, table, i, position) for i, table in loaded]
    width = store.layout.width
    empty = np.zeros(0, np.int64)
    household, channel, time, file, row = (np.concatenate([empty, *(part[i] for part in parts)]) for i in range(5))
    energy = np.concatenate([np.zeros((0, width), np.int64), *(part[5] for part in parts)])
    rows = Rows(ids, household, channel, time, file, row, energy)
    return settle(rows, complete=store.layout.complete(store.rules), later_wins=store.order.by is not None)


def _load(part: Path) -> pa.Table:
    try:
        return folders.read_table(part)
    except InputError:
        part.unlink(missing_ok=True)  # so that the next run misses it and parses the file again
        raise


def _names(table: pa.Table) -> list[str]:
    return [name for chunk in table["household_id"].chunks for name in chunk.dictionary.to_pylist()]


def _rows(layout: Layout, table: pa.Table, file: int, position: dict[str, int]) -> tuple[Ints, ...]:
    column = table["household_id"].unify_dictionaries().combine_chunks()
    column = column.chunk(0) if isinstance(column, pa.ChunkedArray) else column
    codes = np.array([position[name] for name in column.dictionary.to_pylist()], np.int64)
    household = codes[column.indices.to_numpy(zero_copy_only=False)]
    day = _ints(table["day"].cast(pa.int32()))
    slot = _ints(table["slot"]) if layout.width == 1 else np.zeros(len(day), np.int64)
    channel = _ints(table["channel"]) if layout.channels > 1 else np.zeros(len(day), np.int64)
    names = ["energy_wh"] if layout.width == 1 else [f"energy_wh_{slot}" for slot in range(SLOTS)]
    energy = np.stack([_ints(table[name]) for name in names], axis=1)
    return household, channel, day * SLOTS + slot, np.full(len(day), file), _ints(table["row"]), energy


def _ints(column: pa.ChunkedArray) -> Ints:
    numbers: Ints = column.to_numpy().astype(np.int64)
    return numbers


def day_of(number: int) -> date:
    """Return the date of a day since 1970."""
    return _EPOCH + timedelta(days=int(number))
