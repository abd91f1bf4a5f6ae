"""files -> READINGS (confidential store) and QUALITY: every input row kept, or rejected and counted by reason.

Only files that are not in the store yet are parsed. Files with the same bytes are ingested once. Before a series
begins, a file that cannot be parsed stops the run with one line, and nothing is drawn. After that such a file is
rejected as a whole and the run continues: the content of files must not decide whether a day is released.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from agedp.compute.engine import check_shared, map_items, map_merge
from agedp.compute.engine_settings import Engine
from agedp.ledger_session import LedgerSession
from agedp.local_files import atomic_files
from agedp.local_files.atomic_files import FileNotice, FolderRemoved
from agedp.preflight.alerts import write_findings
from agedp.preflight.input_checks import Finding
from agedp.stage_values import Delivery
from agedp.store import file_identity
from agedp.store.daily_totals import deduplicate_months, write_quarantine_of_months
from agedp.store.data_quality import renumber_quarantine, write_quality
from agedp.store.month_reader import load_month_readings
from agedp.store.named_days import has_rejected_rows
from agedp.store.part_writer import rename_part, write_part
from agedp.store.retention import count_late_rows
from agedp.store.store import (
    Manifest,
    Part,
    Store,
    StoredSizes,
    content_id,
    discard_parts_except,
    order_contents,
    read_manifests,
    read_retained_from,
    record_buckets,
    sum_counts,
    write_manifest,
)
from agedp_data.config.input import LongColumns
from agedp_data.config.loading import read_columns
from agedp_data.datasets import filesystem, parquet_parsing
from agedp_data.datasets.csv_parsing import BlockLayout, ParsedChunk, parse_lines
from agedp_data.datasets.deduplication import Readings
from agedp_data.datasets.filesystem import Chunk, read_lines, split_into_chunks
from agedp_data.datasets.parquet_parsing import FLOAT_IDS, FLOAT_IDS_REMEDY
from agedp_data.datasets.registry import layout_of
from agedp_data.datasets.timestamps import tzdata_version
from agedp_data.datasets.validation import INTERVAL_MINUTES, SLOTS, NamedColumns, ReadingRules, RejectionReason
from agedp_data.errors import PreflightFailed, UnreadableFile

if TYPE_CHECKING:
    import pandas as pd

T = TypeVar("T")

_PARTS_PER_WORKER = 2
_MAX_REREADS = 20
_CACHED_BYTES = 8 * 2**20
"""Bytes of lines that are parsed at once: their columns stay in the caches of the processor."""


def read_files(session: LedgerSession) -> Delivery:
    """Stage 2: read the input files of a run into the confidential store, which the caller has locked.

    A rehearsal on synthetic households reads none.

    Raises:
        PreflightFailed: first rows that refuse a first release; preflight.json records it.
        InputError: as `ingest`.
        FolderRemoved: too many files were damaged; the next run continues.
    """
    session = session.opened()
    if not session.run.run_file.schedule.reads_input:
        from agedp.stages.synthetic_days import NO_DELIVERY  # noqa: PLC0415  (for rehearsals)

        return NO_DELIVERY
    try:
        delivery = _ingest_run(session)
    except PreflightFailed as error:
        run, finding = session.run, Finding("first rows", error.private, "refused")
        write_findings(run.paths.folder, [finding], population=run.population, on=run.today, released=0)
        raise
    released_days = session.history.released_days
    return replace(delivery, late_rows=count_late_rows(session.run.store, delivery.fresh, released_days))


def reread_damaged(session: LedgerSession, delivery: Delivery, step: Callable[[Delivery], T]) -> T:
    """Return the result of a step that reads the store; if it removed a damaged file, read the input files again first.

    Raises:
        FolderRemoved: too many files were damaged; the next run continues.
    """
    for _ in range(_MAX_REREADS):
        with suppress(FolderRemoved):
            return step(delivery)
        delivery = replace(_ingest_run(session), late_rows=delivery.late_rows)
    return step(delivery)


def _ingest_run(session: LedgerSession) -> Delivery:
    """Ingest the input files of a run, again after each damaged file that this removed."""
    run, table = session.run, session.run.run_file.input
    excluding, has_begun = run.run_file.population.own_files, bool(session.history.released_days)
    read = partial(ingest, run.store, table.files, engine=run.engine, excluding=excluding, has_begun=has_begun)
    for _ in range(_MAX_REREADS):
        with suppress(FolderRemoved):
            return read()
    return read()


def ingest(
    store: Store,
    patterns: Sequence[str],
    *,
    engine: Engine,
    excluding: Sequence[str] = (),
    has_begun: bool = False,
    for_roster: bool = False,
) -> Delivery:
    """Ingest input files into the store and account for every row.

    Args:
        store: the confidential store.
        patterns: paths, globs or URLs of the files.
        engine: scheduler, workers and memory limits.
        excluding: files that are not ingested.
        has_begun: whether the series has begun. Then the content of a file never stops the run: a file that cannot be
            parsed is rejected as a whole.
        for_roster: whether a first roster is read off the files, which needs all of their rejected rows (`named_days`).

    Raises:
        UnreadableFile: a file that cannot be parsed, before a series begins; none of it is stored.
        InputError: a file that cannot be opened.
    """
    atomic_files.make_private(store.folder / "files")
    record_buckets(store.folder, store.buckets)
    check_shared(store.folder, engine)
    atomic_files.remove_stale_files(store.folder.parent)
    stored = read_manifests(store)
    stored_manifests, stored_digests = stored.manifests, stored.digests
    listing = filesystem.list_input_files(patterns, excluding=excluding, required=False)
    listed = file_identity.identify_files(store, listing.sources, engine=engine, stored_files=stored)
    unique = {file.content: file for file in reversed(listed)}  # of equal files the first is ingested
    earlier = file_identity.select_counted_manifests(store, stored_manifests, listed)
    sizes = StoredSizes(store)
    file_identity.check_unlisted_files(store, stored, earlier, listed, sizes)
    if not (listed or earlier):
        filesystem.list_input_files(patterns, excluding=excluding)  # raises the error about the patterns

    def is_stored(content: str) -> bool:
        manifest = stored_manifests.get(content)
        if manifest is None or not sizes.contains(content, manifest):
            return False
        return not for_roster or has_rejected_rows(store, manifest)

    fresh = [file for file in listed if unique[file.content] is file and not is_stored(file.content)]
    fresh_contents = {file.content for file in fresh}
    if fresh:  # parts of an interrupted run may be more than those that are written now
        discard_parts_except(store.folder, stored_manifests.keys() - fresh_contents)
    try:
        unreadable, warnings, digests = _ingest_new_files(store, fresh, engine=engine, has_begun=has_begun)
    except BaseException:
        discard_parts_except(store.folder, read_manifests(store).manifests)
        raise
    for file in listed:
        if file.is_read or file.content in fresh_contents:
            file.source.check_unchanged()
    if not all(file.digest for file in listed):  # they are known now
        provisional = [file.content for file in listed]
        listed = file_identity.identify_files(store, listing.sources, engine=engine, hashed=digests)
        identified = dict(zip(provisional, listed, strict=True))
        fresh = [identified[file.content] for file in fresh]
        unreadable = {identified[content].content: error for content, error in unreadable.items()}
    stored_manifests |= {
        file.content: manifest for file in fresh if (manifest := store.manifest(file.content)) is not None
    }
    if unreadable:
        discard_parts_except(store.folder, stored_manifests)
    if fresh:
        record_buckets(store.folder, store.buckets)
    contents = _contents_in_order(store, stored_manifests, [file for file in listed if file.content not in unreadable])
    manifests = {content: stored_manifests[content] for content in contents}
    retained_from = read_retained_from(store.folder)
    months = sorted({month for manifest in manifests.values() for month in manifest.months if month >= retained_from})
    deduplicated = deduplicate_months(store, manifests, months, engine=engine)
    write_quarantine_of_months(store, deduplicated, contents)
    rejected = deduplicated.rejected
    write_quality(store, listed, manifests, rejected, unreadable)
    return replace(
        _count_rows(manifests, tuple(months), rejected, (len(listed), len(fresh))),
        fresh=tuple(
            file.content for file in fresh if file.content not in unreadable and file.digest not in stored_digests
        ),
        unreadable=tuple(error.private for error in unreadable.values()),
        warnings=warnings,
        superseded={
            file.content: rows
            for file in listed
            if (rows := rejected.get(file.content, {}).get(RejectionReason.SUPERSEDED.words))
        },
    )


def _contents_in_order(
    store: Store, stored: Mapping[str, Manifest], readable: Sequence[file_identity.IdentifiedFile]
) -> tuple[str, ...]:
    """Return the content ids of the files that count, listed or not, from the earliest to the latest."""
    earlier = file_identity.select_counted_manifests(store, stored, readable)
    named = [(file.content, file.source.location, file.source.modified_ns) for file in readable]
    named += [(content, file.name, file.modified_ns) for content, file in earlier.items()]
    return order_contents(named, store.order)


def _ingest_new_files(
    store: Store, fresh: Sequence[file_identity.IdentifiedFile], *, engine: Engine, has_begun: bool
) -> tuple[dict[str, UnreadableFile], tuple[FileNotice, ...], dict[str, str]]:
    """Parse new files, part by part, and write them into the store.

    Returns:
        The errors about files that cannot be parsed, by content id, and the warnings about others; both are empty
        before the series begins. By location the digests of those that were hashed meanwhile.

    Raises:
        UnreadableFile: the first such file, before the series begins.
    """
    opening = partial(_as_value, partial(file_identity.open_file, store=store, check_rows=not has_begun))
    opened = map_items("open", fresh, function=opening, engine=engine)
    _check_readable(opened, has_begun=has_begun)
    size = sum(file.source.size for file in fresh)
    readable = [file for file in opened if isinstance(file, file_identity.OpenedFile)]
    float_ids = [file.source for file in readable if file.header is not None and file.header.float_ids]
    if float_ids and not has_begun:
        raise float_ids[0].unreadable(f"{FLOAT_IDS}; {FLOAT_IDS_REMEDY}")
    warnings = tuple(FileNotice(FLOAT_IDS, f"{source.location}: {FLOAT_IDS}; they are kept") for source in float_ids)
    groups = [[(file, chunk) for chunk in split_file(file, engine, size)] for file in readable]
    parsing = partial(_as_value, partial(_ingest_part, store=store, chunk_bytes=engine.chunk_bytes))
    results = map_merge("read", groups, function=parsing, merge=partial(_write_manifest, store=store), engine=engine)
    _check_readable(results, has_begun=has_begun)
    contents = [file.content for file in fresh] + [file.file.content for file in readable]
    outcomes = zip(contents, [*opened, *results], strict=True)
    unreadable = {content: outcome for content, outcome in outcomes if isinstance(outcome, UnreadableFile)}
    digests = {
        file.source.location: outcome
        for file, outcome in zip(readable, results, strict=True)
        if isinstance(outcome, str)
    }
    return unreadable, warnings, digests


def _as_value(function: Callable[[Any], Any], item: Any) -> Any:  # noqa: ANN401
    """Return the error about a file as a value: not the task, but the caller decides whether it stops the run."""
    try:
        return function(item)
    except UnreadableFile as error:
        return error


def _check_readable(outcomes: Sequence[object], *, has_begun: bool) -> None:
    for outcome in outcomes:
        if isinstance(outcome, UnreadableFile) and not has_begun:
            raise outcome


def split_file(opened: file_identity.OpenedFile, engine: Engine, size: int) -> tuple[Chunk, ...]:
    """Return the parts of a file, at least one; of several chunks each if `size`, the bytes of all files, is large."""
    share = size // (_PARTS_PER_WORKER * engine.workers)
    part_bytes = max(1, min(share // engine.chunk_bytes, engine.part_chunks)) * engine.chunk_bytes
    empty = (Chunk(opened.source, 0, opened.data_start, opened.data_start),)
    if opened.header is None:
        return empty
    if filesystem.is_parquet(opened.source.location):
        return parquet_parsing.split_rows(opened.source, opened.header, part_bytes=part_bytes) or empty
    split = partial(split_into_chunks, opened.source, start=opened.data_start, block_start=opened.header.block_start)
    return split(chunk_bytes=part_bytes) or empty


def _ingest_part(
    item: tuple[file_identity.OpenedFile, Chunk], *, store: Store, chunk_bytes: int
) -> tuple[file_identity.OpenedFile, Part, list[bytes]]:
    opened, chunk = item
    hashes = [] if opened.file.digest else file_identity.hash_chunk(chunk)
    rows = parse_chunk(opened, chunk, store, chunk_bytes)
    return opened, write_part(store, opened.file.content, chunk.number, rows), hashes


def parse_chunk(
    opened: file_identity.OpenedFile, chunk: Chunk, store: Store, chunk_bytes: int
) -> Iterator[ParsedChunk]:
    """Yield the parsed batches of rows of a chunk."""
    if opened.header is None:
        return
    if filesystem.is_parquet(opened.source.location):
        rows = parquet_parsing.batch_rows(chunk_bytes, opened.header)
        for table in parquet_parsing.read_tables(chunk, opened.header, batch_rows=rows):
            yield parquet_parsing.parse_table(table, layout=store.layout, header=opened.header, rules=store.rules)
        return
    batches = read_lines(chunk, batch_bytes=min(chunk_bytes, _CACHED_BYTES))
    if isinstance(store.layout, BlockLayout):
        yield from store.layout.parse_batches(batches, store.rules)
        return
    for data in batches:
        yield parse_lines(data, layout=store.layout, header=opened.header, rules=store.rules)


def _write_manifest(
    results: Sequence[tuple[file_identity.OpenedFile, Part, list[bytes]] | UnreadableFile], *, store: Store
) -> UnreadableFile | str:
    """Write the manifest of a file, last, which makes it count, and return its digest.

    Return the error if a part cannot be parsed. The parts of a file without a digest get the names of its content.
    """
    written = [result for result in results if not isinstance(result, UnreadableFile)]
    if len(written) < len(results):
        return next(result for result in results if isinstance(result, UnreadableFile))
    opened, parts = written[0][0], tuple(part for _, part, _ in written)
    opened.source.check_unchanged()
    source, digest, written_as = opened.source, opened.file.digest, opened.file.content
    if not digest:
        hashes = [of_segment for _, _, of_part in written for of_segment in of_part]
        digest = file_identity.named_digest(filesystem.combine_digests(hashes), source, store.layout)
    content = content_id(digest, store.read_as)
    renumber_quarantine(store, content, parts, written_as=written_as)
    if content != written_as:
        for number, part in enumerate(parts):
            rename_part(store.folder, part, f"{written_as}-{number}.parquet", f"{content}-{number}.parquet")
    variant = opened.header.variant if opened.header else "empty"
    rules = store.read_as, variant, parts, tzdata_version(), store.buckets
    write_manifest(store.folder, Manifest(source.location, source.modified_ns, digest, *rules))
    return digest


def _count_rows(
    manifests: Mapping[str, Manifest],
    months: tuple[str, ...],
    rejected_later: Mapping[str, Mapping[str, int]],
    counts: tuple[int, int],
) -> Delivery:
    rejected = sum_counts((*(manifest.rejected for manifest in manifests.values()), *rejected_later.values()))
    rows_rejected_later = sum(sum(counts.values()) for counts in rejected_later.values())
    rows_kept = sum(manifest.rows_kept for manifest in manifests.values()) - rows_rejected_later
    rows_read = sum(manifest.rows_read for manifest in manifests.values())
    if rows_read != rows_kept + sum(rejected.values()):
        raise RuntimeError(f"{rows_read} rows read are not {rows_kept} kept and {sum(rejected.values())} rejected")
    first_days = {content: day for content, manifest in manifests.items() if (day := manifest.first_day) is not None}
    by_reason = dict(sorted(rejected.items()))
    return Delivery(tuple(manifests), months, rows_read, rows_kept, by_reason, *counts, first_days=first_days)


def read_readings(
    files: str | Path | Sequence[str | Path],
    *,
    dataset: str,
    columns: Mapping[str, Any] | LongColumns | None = None,
    rules: ReadingRules | None = None,
) -> pd.DataFrame:
    """Return the readings of files as a data frame: household_id, day, slot (0..47), energy_wh.

    For notebooks of the data holder: the result is confidential. `columns` are the keys of [input.columns], for
    dataset "long" only.

    Raises:
        InputError: a file that cannot be parsed, or an unknown dataset.
        RunFileError: `columns` that are invalid in a run file.
    """
    import pandas as pd  # noqa: PLC0415  (0.4 s that the command does not need)

    named = named_columns(columns)
    layout_of(dataset, named)
    patterns = [files] if isinstance(files, str | Path) else files
    with TemporaryDirectory(prefix="agedp-") as folder:
        store = Store(Path(folder) / "store", dataset, replace(rules or ReadingRules(), columns=named))
        delivery = ingest(store, [str(pattern) for pattern in patterns], engine=Engine())
        months = [load_month_readings(store, month, delivery.contents) for month in delivery.months]
    frame = pd.concat([_to_frame(readings) for readings in months] or [_to_frame(None)], ignore_index=True)
    return frame.sort_values(["household_id", "day", "slot"], ignore_index=True)


def named_columns(
    columns: Mapping[str, Any] | LongColumns | None, interval_minutes: int = INTERVAL_MINUTES
) -> NamedColumns | None:
    """Return the columns of a "long" table from the keys of [input.columns]; None for another dataset.

    Raises:
        RunFileError: a key is missing, unknown or invalid.
    """
    if columns is None:
        return None
    checked = columns if isinstance(columns, LongColumns) else read_columns(columns, interval_minutes)
    return NamedColumns.from_keys(checked.model_dump())


def _to_frame(readings: Readings | None) -> pd.DataFrame:
    import pandas as pd  # noqa: PLC0415

    empty = np.zeros(0, np.int64)
    day, slot = np.divmod(readings.time if readings else empty, SLOTS)
    ids = np.array(readings.ids, object)[readings.household] if readings else np.zeros(0, object)
    return pd.DataFrame(
        {
            "household_id": pd.array(ids, dtype="str"),
            "day": day.astype("datetime64[D]").astype("datetime64[s]"),
            "slot": slot,
            "energy_wh": readings.energy_wh if readings else empty,
        }
    )
