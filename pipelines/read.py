"""files -> READINGS (confidential store) and QUALITY: every input row kept, or counted with its reason.

Only files that the store does not hold yet are parsed. The same bytes given twice are noted and ignored. A file
that cannot be understood stops the run with one line before anything is drawn.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from agedp_data import tables
from agedp_data.config.input import LongColumns
from agedp_data.config.reading import read_columns
from agedp_data.errors import InputError
from agedp_data.readers import files
from agedp_data.readers.datasets import LAYOUTS, layout_of
from agedp_data.readers.files import Block, Source
from agedp_data.readers.layout import SLOTS, Header, Ints, Layout, NamedColumns, Reason, Rules
from agedp_data.readers.parse import Parsed, parse
from agedp_data.readers.settle import Readings
from agedp_data.shown import shown
from pipelines import folders
from pipelines.blocks import Engine, map_each, map_merge
from pipelines.days import parts_of, settle_month
from pipelines.store import Manifest, Store, add_file, month_readings

if TYPE_CHECKING:
    import pandas as pd

_DESCRIBE = 'correct the header line, or describe the table with dataset = "long"'

Aside = tuple[Ints, Ints, Ints]
"""Rows that settling set aside: file (its place in the files' order), data row of the file, reason."""


@dataclass(frozen=True, slots=True)
class Opened:
    """A file whose content and header are known; `header` is None for a file without rows."""

    source: Source
    content: str
    header: Header | None
    data_start: int


@dataclass(frozen=True, slots=True)
class Delivery:
    """What the input files hold, all of it in the store: content ids in file order, months, counts by reason."""

    contents: tuple[str, ...]
    months: tuple[str, ...]
    rows_read: int
    rows_kept: int
    aside: dict[str, int]
    files: int
    files_new: int
    files_ignored: int
    fresh: tuple[str, ...] = field(default=(), compare=False)


def read(store: Store, patterns: Sequence[str], *, engine: Engine) -> Delivery:
    """Bring the files into the store and account for every row.

    Raises:
        InputError: a file that cannot be understood; nothing of it is stored.
    """
    folders.make_private(store.folder / "files")
    folders.sweep(store.folder.parent)
    listing = files.list_sources(patterns, required=not (store.order.remembers and store.remembered()))
    opened = map_each("open", listing.sources, each=partial(open_file, store=store), engine=engine)
    unique = {one.content: one for one in reversed(opened)}  # the first of equal files is the one that is read
    held = dict(zip(unique, map_each("held", list(unique), each=store.holds, engine=engine), strict=True))
    fresh = [one for one in opened if unique[one.content] is one and not held[one.content]]
    _add(store, fresh, engine=engine)
    for one in opened:
        one.source.check_unchanged()
    places = [(one.content, str(one.source.path), one.source.modified_ns) for one in opened]
    earlier = store.remembered() if store.order.remembers else ()
    places += [(content, _known(store, content).name, _known(store, content).modified_ns) for content in earlier]
    contents = store.ordered(places)
    manifests = {content: _known(store, content) for content in contents}
    every = {month for manifest in manifests.values() for month in manifest.months}
    months = tuple(sorted(month for month in every if month >= store.forgotten_before()))
    decided = map_each("days", months, each=partial(_decide, store=store, contents=contents), engine=engine)
    late = _together(decided)
    delivery = _account(manifests, contents, months, late, len(opened), len(fresh), listing.ignored)
    _write_quality(store, opened, unique, manifests, late)
    return replace(delivery, fresh=tuple(one.content for one in fresh))


def _known(store: Store, content: str) -> Manifest:
    manifest = store.manifest(content)
    if manifest is None:
        raise InputError("the confidential store changed while it was read; run again")
    return manifest


def open_file(source: Source, *, store: Store) -> Opened:
    """Return a file's content id and header.

    Raises:
        InputError: binary or UTF-16, an unknown header (naming the columns found and the nearest known layout).
    """
    head = files.read_bytes(source, 0, files.HEAD_BYTES)
    content = store.content(files.content_id(source))
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise source.error("is UTF-16; save it as UTF-8")
    if b"\x00" in head:
        raise source.error("is binary, not CSV")
    bom = 3 if head.startswith(b"\xef\xbb\xbf") else 0
    kept = head[bom:].splitlines(keepends=True)
    if not head[bom:].strip() and len(head) < files.HEAD_BYTES:
        return Opened(source, content, None, len(head))
    lines = [line.decode("latin-1").rstrip("\r\n") for line in kept]
    try:
        header = store.layout.recognise(lines)
    except InputError as error:
        raise source.error(str(error), private=error.private) from None
    if header is None:
        raise _unknown_header(source, lines, store.layout)
    return Opened(source, content, header, bom + sum(len(line) for line in kept[: header.lines]))


def _unknown_header(source: Source, lines: Sequence[str], layout: Layout) -> InputError:
    """Return the error; what was found stays private: without a header line it is a household's first row."""
    found = lines[0] if len(lines[0].replace(",", "")) > 0 else (lines[1] if len(lines) > 1 else "")
    every = [(name, text) for name, other in LAYOUTS.items() for text in other.known_headers()]
    nearest = difflib.get_close_matches(found, [text for _, text in every], n=1, cutoff=0.0)
    name = next((name for name, text in every if [text] == nearest), layout.name)
    hint = f'did you mean dataset = "{name}"?' if name != layout.name else _DESCRIBE
    rest = f'are not those of dataset "{layout.name}"; the nearest known are "{nearest[0]}"; {hint}'
    return source.error(f"its columns {rest}", private=f'columns "{shown(found, 120)}" {rest}')


def _add(store: Store, fresh: Sequence[Opened], *, engine: Engine) -> None:
    groups: list[Sequence[tuple[Opened, Block]]] = []
    for one in fresh:
        if one.header is None:
            groups.append([(one, Block(one.source, 0, 0, 0))])
            continue
        found = files.cut(one.source, start=one.data_start, block_bytes=engine.block_bytes)
        groups.append([(one, block) for block in found] or [(one, Block(one.source, 0, 0, 0))])
    map_merge("read", groups, each=partial(_parse, store=store), merge=partial(_store, store=store), engine=engine)


def _parse(item: tuple[Opened, Block], *, store: Store) -> tuple[Opened, Parsed | None]:
    one, block = item
    if one.header is None:
        return one, None
    data = files.read_bytes(block.source, block.start, block.stop) if block.stop != 0 else b""
    try:
        return one, parse(data, layout=store.layout, header=one.header, rules=store.rules)
    except InputError as error:
        raise one.source.error(str(error)) from None


def _store(results: list[tuple[Opened, Parsed | None]], *, store: Store) -> None:
    one = results[0][0]
    one.source.check_unchanged()
    parsed = [each for _, each in results if each is not None]
    add_file(store, one.content, parsed, name=str(one.source.path), modified_ns=one.source.modified_ns)


def _decide(month: str, *, store: Store, contents: Sequence[str]) -> Aside:
    """Return what settling a month set aside: file (its place in `contents`), row and reason."""
    table = settle_month(store, month, contents)
    there = set(parts_of(store, month, contents))
    places = np.array([place for place, content in enumerate(contents) if content in there], np.int64)
    file, row, reason = (table[name].to_numpy().astype(np.int64) for name in ("file", "row", "reason"))
    return places[file], row, reason


def _together(decided: Sequence[Aside]) -> Aside:
    file, row, reason = (np.concatenate([np.zeros(0, np.int64), *(each[i] for each in decided)]) for i in range(3))
    return file, row, reason


def _by_reason(reason: Ints) -> dict[str, int]:
    codes, numbers = np.unique(reason, return_counts=True)
    return {Reason(int(code)).words: int(number) for code, number in zip(codes, numbers, strict=True)}


def _account(
    manifests: dict[str, Manifest],
    contents: tuple[str, ...],
    months: tuple[str, ...],
    late: Aside,
    opened: int,
    fresh: int,
    ignored: int,
) -> Delivery:
    aside: dict[str, int] = {}
    for manifest in manifests.values():
        for reason, number in manifest.aside.items():
            aside[reason] = aside.get(reason, 0) + number
    kept = sum(manifest.kept for manifest in manifests.values())
    for words, number in _by_reason(late[2]).items():
        aside[words] = aside.get(words, 0) + number
        kept -= number
    rows = sum(manifest.rows_read for manifest in manifests.values())
    if rows != kept + sum(aside.values()):
        raise RuntimeError(f"{rows} rows read are not {kept} kept and {sum(aside.values())} set aside")
    return Delivery(contents, months, rows, kept, dict(sorted(aside.items())), opened, fresh, ignored)


def _write_quality(
    store: Store,
    opened: Sequence[Opened],
    unique: dict[str, Opened],
    manifests: dict[str, Manifest],
    late: Aside,
) -> None:
    contents = list(manifests)
    file, row, reason = late
    order = np.argsort(file, kind="stable")
    bounds = np.searchsorted(file[order], np.arange(len(contents) + 1))
    lines: list[tuple[str, str, str, str, int]] = []
    for one in opened:
        name = os.fsencode(one.source.path).decode("utf-8", "backslashreplace")  # a name need not be UTF-8
        if unique[one.content] is not one:
            lines.append((name, one.content, "same bytes as an earlier input, ignored", "rows read", 0))
            continue
        manifest = manifests[one.content]
        note = one.header.variant if one.header else "empty"
        place = contents.index(one.content)
        extra = _by_reason(reason[order[bounds[place] : bounds[place + 1]]])
        kept = manifest.kept - sum(extra.values())
        figures = {"rows read": manifest.rows_read, "kept": kept, **manifest.aside, **extra, **manifest.notes}
        lines += [(name, one.content, note, what, number) for what, number in figures.items()]
    names = tables.QUALITY.names
    table = tables.columns(tables.QUALITY, **{name: [line[i] for line in lines] for i, name in enumerate(names)})
    folders.write_table(store.folder.parent / "quality.parquet", table)
    settled = tables.columns(
        tables.QUARANTINE,
        content=pa.array(contents, pa.string()).take(pa.array(file)),
        row=row,
        reason=pa.array([each.words for each in Reason], pa.string()).take(pa.array(reason)),
        text=pa.array([""], pa.string()).take(pa.array(np.zeros(len(row), np.int64))),
    )
    folders.write_table(store.folder.parent / "quarantine_settled.parquet", settled)


def readings(
    files: str | Path | Sequence[str | Path],
    *,
    dataset: str,
    columns: Mapping[str, Any] | LongColumns | None = None,
    rules: Rules | None = None,
) -> pd.DataFrame:
    """Return the readings of files as a data frame: household_id, day, slot (0..47), energy_wh.

    For notebooks inside the house: this is confidential. `columns` are the keys of [input.columns], for dataset
    "long" only.

    Raises:
        InputError: a file that cannot be understood, or an unknown dataset.
        RunFileError: columns that a run file could not have.
    """
    import pandas as pd  # noqa: PLC0415  (0.4 s that the command does not need)

    named = _named(columns)
    layout_of(dataset, named)
    patterns = [files] if isinstance(files, str | Path) else files
    with TemporaryDirectory(prefix="agedp-") as folder:
        store = Store(Path(folder) / "store", dataset, replace(rules or Rules(), columns=named))
        delivery = read(store, [str(pattern) for pattern in patterns], engine=Engine())
        months = [month_readings(store, month, delivery.contents) for month in delivery.months]
    frame = pd.concat([_frame(found) for found in months] or [_frame(None)], ignore_index=True)
    return frame.sort_values(["household_id", "day", "slot"], ignore_index=True)


def _named(columns: Mapping[str, Any] | LongColumns | None) -> NamedColumns | None:
    if columns is None:
        return None
    checked = columns if isinstance(columns, LongColumns) else read_columns(columns)
    return NamedColumns.of(checked.model_dump())


def _frame(found: Readings | None) -> pd.DataFrame:
    import pandas as pd  # noqa: PLC0415

    empty = np.zeros(0, np.int64)
    time = found.time if found else empty
    day, slot = np.divmod(time, SLOTS)
    return pd.DataFrame(
        {
            "household_id": pd.array(np.array(found.ids, object)[found.household] if found else [], dtype="str"),
            "day": day.astype("datetime64[D]").astype("datetime64[s]"),
            "slot": slot,
            "energy_wh": found.energy_wh if found else empty,
        }
    )
