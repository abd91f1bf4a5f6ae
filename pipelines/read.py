"""files -> READINGS (confidential store) and QUALITY: every input row kept, or counted with its reason.

Only files that the store does not hold yet are parsed. The same bytes given twice are noted and ignored. A file
that cannot be understood stops the run with one line before anything is drawn; once a series has begun, such a file is
set apart as a whole instead: whether a night releases is not for the content of files to say.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np

from agedp_data.config.input import LongColumns
from agedp_data.config.reading import read_columns
from agedp_data.errors import UnreadableFile
from agedp_data.readers import files
from agedp_data.readers.cutting import Chunk, chunks, cut
from agedp_data.readers.datasets import layout_of
from agedp_data.readers.layout import SLOTS, NamedColumns, ReadingRules
from agedp_data.readers.parse import ParsedChunk, parse
from agedp_data.readers.settle import Readings
from agedp_data.readers.zone_changes import tzdata_version
from pipelines import folders
from pipelines.blocks import Engine, map_each, map_merge, require_shared
from pipelines.checksums import checked_json
from pipelines.readings.days import Aside, settle_month
from pipelines.readings.manifest import Manifest, Part
from pipelines.readings.months import month_readings
from pipelines.readings.opening import Identified, Opened, identify, open_file
from pipelines.readings.parts import write_part
from pipelines.readings.quality import by_reason, write_quality
from pipelines.readings.quarantine import number_quarantined
from pipelines.readings.remembered import remembered, require_there
from pipelines.readings.store import Store

if TYPE_CHECKING:
    import pandas as pd

_PARTS_PER_WORKER = 2


@dataclass(frozen=True, slots=True)
class Delivery:
    """What the input files hold, all of it in the store: content ids in file order, months, counts by reason.

    `fresh` are the content ids of bytes that the store never held before. Confidential: `unreadable` says in one line
    each which files were set apart as a whole, and why.
    """

    contents: tuple[str, ...]
    months: tuple[str, ...]
    rows_read: int
    rows_kept: int
    aside: dict[str, int]
    files: int
    files_new: int
    files_ignored: int
    fresh: tuple[str, ...] = field(default=(), compare=False)
    unreadable: tuple[str, ...] = field(default=(), compare=False)


def read(
    store: Store, patterns: Sequence[str], *, engine: Engine, but: Sequence[str] = (), has_begun: bool = False
) -> Delivery:
    """Bring the files, all but these, into the store and account for every row.

    Args:
        store: the confidential store.
        patterns: paths, globs or URLs of the files.
        engine: how it runs.
        but: files that are not read.
        has_begun: whether the series has begun. Then no file's content stops it: a file that cannot be understood is
            set apart as a whole.

    Raises:
        UnreadableFile: a file that cannot be understood, before a series begins; nothing of it is stored.
        InputError: a file that the system does not give.
    """
    folders.make_private(store.folder / "files")
    require_shared(store.folder, engine)
    folders.sweep(store.folder.parent)
    known = store.manifests()
    held = {manifest.digest for manifest in known.values()}
    listing = files.list_sources(patterns, but=but, required=False)
    listed = identify(store, listing.sources, engine=engine)
    unique = {one.content: one for one in reversed(listed)}  # the first of equal files is the one that is read
    earlier = remembered(store, known, listed)
    require_there(store, known, earlier, listed)
    if not (listed or earlier):
        files.list_sources(patterns, but=but)  # says what is wrong with them
    fresh = [
        one for one in listed if unique[one.content] is one and not store.holds(one.content, known.get(one.content))
    ]
    unreadable: dict[str, UnreadableFile] = {}
    try:
        unreadable = _add(store, fresh, engine=engine, has_begun=has_begun)
    finally:
        known |= {one.content: found for one in fresh if (found := store.manifest(one.content)) is not None}
        store.discard_all_but(known)
    for source in listing.sources:
        source.check_unchanged()
    readable = [one for one in listed if one.content not in unreadable]
    earlier = remembered(store, known, readable)
    places = [(one.content, one.source.location, one.source.modified_ns) for one in readable]
    places += [(content, one.name, one.modified_ns) for content, one in earlier.items()]
    contents = store.ordered(places)
    manifests = {content: known[content] for content in contents}
    months = sorted({month for manifest in manifests.values() for month in manifest.months})
    months = [month for month in months if month >= store.forgotten_before()]
    settled = map_each("days", months, each=partial(settle_month, store, contents=contents), engine=engine)
    aside = _together(settled)
    write_quality(store, listed, manifests, aside, unreadable)
    counts = len(listed), len(fresh), listing.ignored
    delivery = _account(manifests, tuple(months), aside, counts)
    return replace(
        delivery,
        fresh=tuple(one.content for one in fresh if one.content not in unreadable and one.digest not in held),
        unreadable=tuple(error.private for error in unreadable.values()),
    )


def _add(store: Store, fresh: Sequence[Identified], *, engine: Engine, has_begun: bool) -> dict[str, UnreadableFile]:
    """Parse files that are new, part by part, and write them into the store.

    Returns:
        What is wrong with files that cannot be understood, by content id; of a series that has begun only.

    Raises:
        UnreadableFile: of one that has not, the first such file.
    """
    opening = partial(_attempt, partial(open_file, store=store, check_rows=not has_begun))
    opened = map_each("open", fresh, each=opening, engine=engine)
    _require_readable(opened, has_begun=has_begun)
    size = sum(one.source.size for one in fresh)
    read_in = [one for one in opened if isinstance(one, Opened)]
    groups = [[(one, block) for block in blocks_of(one, engine, size)] for one in read_in]
    parsing = partial(_attempt, partial(_part, store=store, block_bytes=engine.block_bytes))
    results = map_merge("read", groups, each=parsing, merge=partial(_merge, store=store), engine=engine)
    _require_readable(results, has_begun=has_begun)
    contents = [one.content for one in fresh] + [one.file.content for one in read_in]
    outcomes = zip(contents, [*opened, *results], strict=True)
    return {content: outcome for content, outcome in outcomes if isinstance(outcome, UnreadableFile)}


def _attempt(each: Callable[[Any], Any], item: Any) -> Any:  # noqa: ANN401
    """Return what is wrong with a file as a value: whether it stops the run is not for a task to say."""
    try:
        return each(item)
    except UnreadableFile as error:
        return error


def _require_readable(outcomes: Sequence[object], *, has_begun: bool) -> None:
    for outcome in outcomes:
        if isinstance(outcome, UnreadableFile) and not has_begun:
            raise outcome


def blocks_of(one: Opened, engine: Engine, size: int) -> tuple[Chunk, ...]:
    """Return a file cut into parts, at least one: of several blocks each, if `size` bytes in all make many of them."""
    share = size // (_PARTS_PER_WORKER * engine.workers)
    part_bytes = max(1, min(share // engine.block_bytes, engine.part_blocks)) * engine.block_bytes
    nothing = (Chunk(one.source, 0, one.data_start, one.data_start),)
    if one.header is None:
        return nothing
    return cut(one.source, start=one.data_start, block_bytes=part_bytes) or nothing


def _part(item: tuple[Opened, Chunk], *, store: Store, block_bytes: int) -> tuple[Opened, Part]:
    one, block = item
    return one, write_part(store, one.file.content, block.number, parsed(one, block, store, block_bytes))


def parsed(one: Opened, block: Chunk, store: Store, block_bytes: int) -> Iterator[ParsedChunk]:
    """Yield what the blocks of a part say."""
    if one.header is None:
        return
    for data in chunks(block, at_a_time=block_bytes):
        yield parse(data, layout=store.layout, header=one.header, rules=store.rules)


def _merge(results: Sequence[tuple[Opened, Part] | UnreadableFile], *, store: Store) -> UnreadableFile | None:
    """Finish a file, unless a part of it cannot be understood: then nothing of it counts."""
    error = next((result for result in results if isinstance(result, UnreadableFile)), None)
    if error is None:
        _finish([result for result in results if not isinstance(result, UnreadableFile)], store=store)
    return error


def _finish(results: Sequence[tuple[Opened, Part]], *, store: Store) -> None:
    """Write the manifest of a file, last of all."""
    one, parts = results[0][0], tuple(part for _, part in results)
    one.source.check_unchanged()
    number_quarantined(store, one.file.content, parts)
    variant = one.header.variant if one.header else "empty"
    source, digest = one.source, one.file.digest
    manifest = Manifest(source.location, source.modified_ns, digest, store.read_as, variant, parts, tzdata_version())
    folders.write(store.folder / "files" / f"{one.file.content}.json", checked_json(manifest.to_json()))


def _together(settled: Sequence[Aside]) -> Aside:
    file, row, reason = (np.concatenate([np.zeros(0, np.int64), *(each[i] for each in settled)]) for i in range(3))
    return file, row, reason


def _account(
    manifests: Mapping[str, Manifest],
    months: tuple[str, ...],
    settled: Aside,
    counts: tuple[int, int, int],
) -> Delivery:
    aside: dict[str, int] = {}
    for counted in (*(manifest.aside for manifest in manifests.values()), by_reason(settled[2])):
        for reason, number in counted.items():
            aside[reason] = aside.get(reason, 0) + number
    kept = sum(manifest.kept for manifest in manifests.values()) - len(settled[2])
    read_in = sum(manifest.rows_read for manifest in manifests.values())
    if read_in != kept + sum(aside.values()):
        raise RuntimeError(f"{read_in} rows read are not {kept} kept and {sum(aside.values())} set aside")
    return Delivery(tuple(manifests), months, read_in, kept, dict(sorted(aside.items())), *counts)


def readings(
    files: str | Path | Sequence[str | Path],
    *,
    dataset: str,
    columns: Mapping[str, Any] | LongColumns | None = None,
    rules: ReadingRules | None = None,
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
        store = Store(Path(folder) / "store", dataset, replace(rules or ReadingRules(), columns=named))
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
