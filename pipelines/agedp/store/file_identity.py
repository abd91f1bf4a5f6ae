"""Input files -> content ids and headers, and the stored files that count although they are no longer listed.

    input_names     by name of an input file: its size and times as a text, and its digest; a table of the book

The digests of unchanged files come from the store. Stored files that are no longer listed are checked: all that count
can be counted, or an error is raised.

Decisions:

* A large file that is certainly new is hashed while it is parsed: a disk then reads it once. It is certainly new if
  every stored file is listed and unchanged, and no other listed file has its size. Until then its content id is
  provisional. All others are hashed first, so that nothing that is stored is parsed again: files of a store with
  deliveries that may have been renamed, small ones, those at a URL, and compressed, re-encoded and Parquet files, whose
  bytes are not read in order.
* The digest of a file that changed within two seconds of being listed is not stored: it may change again unnoticed.
* A delivery may be removed once it is ingested: its stored files still count.
* Files that were parsed under different rules, or as another dataset, never count: two populations may share a folder,
  and a bound may be amended.
"""

from __future__ import annotations

import difflib
import hashlib
import json
import re
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import pyarrow as pa

from agedp.compute.engine import explain_worker_errors, map_merge
from agedp.compute.engine_settings import Engine
from agedp.store.store import (
    Manifest,
    Store,
    StoredManifests,
    StoredSizes,
    content_id,
    is_read_alike,
    read_retained_from,
)
from agedp_data.datasets import filesystem, parquet_parsing
from agedp_data.datasets.csv_lines import column_names, first_cells, raw_cells, split_fields
from agedp_data.datasets.csv_parsing import BlockLayout, parse_lines
from agedp_data.datasets.filesystem import SETTLING_NS, Chunk, InputFile, format_location
from agedp_data.datasets.layout import (
    DAY_MINUTES,
    Header,
    Layout,
    Records,
    common_interval,
    have_early_midnights,
    interval_remedy,
    times_of_rows,
)
from agedp_data.datasets.long_format import Long
from agedp_data.datasets.registry import LAYOUTS
from agedp_data.datasets.table_text import encoding_of, is_value, table_text, text_lines
from agedp_data.datasets.validation import INTERVAL_MINUTES, SLOTS, Bytes, Flags, ReadingRules, RejectionReason
from agedp_data.errors import InputError, PreflightFailed
from agedp_data.messages import escape_text

# --------------------------------------------------------------------------------------------------
# The first rows of a file or a table, checked before a series begins: dates, and the interval between readings.
# --------------------------------------------------------------------------------------------------

_NO_ROW = (RejectionReason.FIELDS, RejectionReason.HOUSEHOLD, RejectionReason.LINE)
_SHORTENED = re.compile(r"\d(\.\d+)?E\+\d+")  # a spreadsheet; programs write 1.2e+12
_SUFFIX: Final = 4
_SHOWN_TEXTS: Final = 5
_FIRST_ROWS, _OFF_GRID_SHARE, _MIN_OFF_GRID_ROWS = 1000, 0.1, 8


@dataclass(frozen=True, slots=True)
class _Rows:
    """The first rows of a file or a table.

    Attributes:
        reason: why each record is rejected, if it is.
        is_off_grid: which records lie between the marks of the interval.
        lines: the texts of the rows.
        times: the timestamps of each household, in minutes and in the order of the rows.
        minutes: the minutes between readings; None if the rows do not show them.
    """

    reason: Bytes
    is_off_grid: Flags
    lines: Sequence[str]
    times: Sequence[Sequence[int]] = ()
    minutes: int | None = None


def check_first_rows(source: InputFile, data_start: int, header: Header, store: Store) -> None:
    """Check the first rows of a file.

    Raises:
        PreflightFailed: they have no valid date, or mostly an interval other than declared.
    """
    _check_rows(_first_rows(source, data_start, header, store), header, store, format_location(source.location))


def first_records(source: InputFile, data_start: int, header: Header, layout: Layout, rules: ReadingRules) -> Records:
    """Return the records of the first rows of a file, as a run reads them."""
    if filesystem.is_parquet(source.location):
        table = next(_first_tables(source, data_start, header))
        return parquet_parsing.parse_table(table, layout=layout, header=header, rules=rules).records
    head = filesystem.read_head(source)[data_start:]
    rows = head[: head.rfind(b"\n") + 1] or head
    return parse_lines(rows, layout=layout, header=header, rules=rules).records


def texts_of_file(source: InputFile, data_start: int, header: Header, store: Store) -> str:
    """Return the texts that the first rows have where `where` or the suffixes ask for others; confidential."""
    return _unasked_texts(_first_rows(source, data_start, header, store).lines, header, store)


def texts_of_table(table: pa.Table, header: Header, store: Store) -> str:
    """Return the texts that the first rows of a table have where `where` asks for others; confidential."""
    lines = parquet_parsing.lines_of_table(table.slice(0, _FIRST_ROWS), header)
    return _unasked_texts(lines, header, store)


def _unasked_texts(lines: Sequence[str], header: Header, store: Store) -> str:
    """Return that no row has a text that is asked for, and up to five that its column has; "" of other datasets.

    Of NEM12 these are the suffixes of the channels, in the 200 records.
    """
    key = "[input.columns] where" if store.rules.columns else "[input] suffixes"
    if store.rules.columns is None:
        if not isinstance(store.layout, BlockLayout):
            return ""
        blocks = [cells for cells in map(split_fields, lines) if cells[:1] == ["200"] and len(cells) > _SUFFIX]
        found = {"suffix": [cells[_SUFFIX] for cells in blocks]}
    else:
        fields, separator = len(header.names), header.separator
        found = {
            f"column {name}": list(first_cells(lines, header.columns.index(name), fields=fields, separator=separator))
            for name, _ in store.rules.columns.where
        }
    texts = {place: ", ".join(list(dict.fromkeys(cells))[:_SHOWN_TEXTS]) for place, cells in found.items()}
    shown = [f"{place} has {escape_text(of_place, 200)}" for place, of_place in texts.items()]
    return f"no row has the text that {key} asks for; in the first rows {', '.join(shown)}"


def check_first_table_rows(table: pa.Table, header: Header, store: Store) -> None:
    """Check the first rows of a table in memory as those of a file.

    Raises:
        PreflightFailed: they have no valid date, or mostly an interval other than declared.
    """
    _check_rows(_rows_of_table(table.slice(0, _FIRST_ROWS), header, store), header, store, "readings")


def _check_rows(rows: _Rows, header: Header, store: Store, place: str) -> None:
    if problem := _problem_of_rows(rows, header, store):
        raise PreflightFailed(private=f"{place}: {problem}")


def _problem_of_rows(rows: _Rows, header: Header, store: Store) -> str | None:
    """Return that first rows have no valid date, or mostly an interval other than declared; None if neither."""
    reason, lines = rows.reason, rows.lines
    is_undated, is_no_row = reason == RejectionReason.DATE, np.isin(reason, _NO_ROW)
    needs_date = bool(is_undated.any()) or (isinstance(store.layout, BlockLayout) and len(reason) > 0)
    if needs_date and (is_undated | is_no_row).all():
        return store.layout.date_format_error(lines, header).private
    if len(reason) and (reason == RejectionReason.FIELDS).all():
        problem = f"no first row has {len(header.names)} cells, as the header has"
        cells = raw_cells(lines[0], header.separator)
        if len(cells) == len(header.names) + 1 and not cells[-1]:
            return f"{problem}: each ends with a separator; add one at the end of the header"
        return f"{problem}, but {len(cells)}; is a text with a separator in it, or a comma, without quotes?"
    declared, minutes = store.layout.interval_minutes, rows.minutes
    if minutes is not None and minutes != declared:
        problem = f"readings are {minutes} minutes apart, not {declared}"
        return f"{problem}; {interval_remedy(minutes, is_long=store.rules.columns is not None)}"
    return _odd_form(rows, header, declared)


def _odd_form(rows: _Rows, header: Header, interval_minutes: int) -> str | None:
    """Return what is wrong with the midnights, the household ids or the interval of rows that can be read."""
    if have_early_midnights(rows.times, interval_minutes):
        problem = "00:00 follows the last reading of its own date, as if it ended that day"
        return f"{problem}; write 24:00 or the next date, or sort the rows by time"
    if _are_shortened(rows.lines, header):
        problem = "the household ids are shortened numbers such as 1.23E+12, which several households may share"
        return f"{problem}; write them in full, as text"
    off_grid = int(rows.is_off_grid[:_FIRST_ROWS].sum())
    if off_grid > max(_MIN_OFF_GRID_ROWS, _OFF_GRID_SHARE * min(len(rows.reason), _FIRST_ROWS)):
        problem = f"more than a tenth of the first rows lie between the {interval_minutes}-minute marks"
        is_hours = interval_minutes > INTERVAL_MINUTES
        hour = ", or day_zone, in which an hour must begin with a full hour" if is_hours else ""
        return f"{problem}; correct the timestamps, or [input] interval_minutes{hour}"
    return None


def _first_rows(source: InputFile, data_start: int, header: Header, store: Store) -> _Rows:
    if filesystem.is_parquet(source.location):
        table = next(_first_tables(source, data_start, header), None)
        none = np.zeros(0, np.uint8)
        return _Rows(none, none.astype(bool), []) if table is None else _rows_of_table(table, header, store)
    head = filesystem.read_head(source)[data_start:]
    rows = head[: head.rfind(b"\n") + 1] if len(head) + data_start == filesystem.HEAD_BYTES else head
    lines = [line.decode("latin-1").removesuffix("\r") for line in rows.split(b"\n")]
    if isinstance(store.layout, BlockLayout):
        reason = np.concatenate([chunk.records.reason for chunk in store.layout.parse_batches([rows], store.rules)])
        return _Rows(reason, np.zeros(len(reason), bool), lines)
    records = parse_lines(rows, layout=store.layout, header=header, rules=store.rules).records
    return _rows(records, header, lines, times_of_rows(lines, header))


def _first_tables(source: InputFile, data_start: int, header: Header) -> Iterator[pa.Table]:
    return parquet_parsing.read_tables(Chunk(source, 0, data_start, _FIRST_ROWS), header, batch_rows=_FIRST_ROWS)


def _rows_of_table(table: pa.Table, header: Header, store: Store) -> _Rows:
    records = parquet_parsing.parse_table(table, layout=store.layout, header=header, rules=store.rules).records
    times = [minutes.tolist() for minutes in parquet_parsing.minutes_by_household(table, header)]
    return _rows(records, header, parquet_parsing.lines_of_table(table, header), times)


def _rows(records: Records, header: Header, lines: Sequence[str], times: Sequence[Sequence[int]]) -> _Rows:
    minutes = common_interval(times) or _minutes_of_days(records, header)
    return _Rows(records.reason, records.is_off_grid(), lines, times, minutes)


def _are_shortened(lines: Sequence[str], header: Header) -> bool:
    """Return whether household ids are numbers with an exponent, as spreadsheets shorten long ones."""
    if "household" not in header.names:
        return False
    position = header.names.index("household")
    cells = [*first_cells(lines, position, fields=len(header.names), separator=header.separator)]
    return bool(cells) and all(map(_SHORTENED.fullmatch, cells))


def _minutes_of_days(records: Records, header: Header) -> int | None:
    """Return the minutes of a day if all rows have the same time of day on several days, as dates alone have."""
    time = records.time[records.names_half_hour(np.arange(len(records.time)))]
    if not header.has_timestamps:
        return None
    days, slots = np.unique(time // SLOTS), np.unique(time % SLOTS)
    is_daily = len(slots) == 1 and len(days) > 1 and len(time) >= _MIN_OFF_GRID_ROWS
    return DAY_MINUTES if is_daily else None


_DESCRIBE_IT = 'describe the columns under dataset = "long" and [input.columns]'
_ADD_HEADER = "the first line seems to be a row; write a header line above it"
_NEAR, _SHOWN = 0.6, 6
_DESCRIBE = f"correct the header line, or {_DESCRIBE_IT}"
_SEPARATORS = {b",": "commas", b";": "semicolons", b"\t": "tabs", b"|": "bars"}
_FIRST_BYTES = 4096
_BATCH_BYTES, _BATCH_FILES = 2**30, 1000
HASHED_FIRST_BYTES: Final = 2**25
"""Smaller files are hashed before they are parsed: the system's cache has them then."""


@dataclass(frozen=True, slots=True)
class IdentifiedFile:
    """An input file that is identified by its bytes, so that a renamed or repeated delivery counts once.

    Attributes:
        source: the listed file.
        digest: the hash of its bytes; "" if it is hashed while it is parsed.
        content: its content id, a hash of the digest and the parsing rules; provisional without a digest.
        is_read: whether this run read it, because it is new or changed.
    """

    source: InputFile
    digest: str
    content: str
    is_read: bool = True


@dataclass(frozen=True, slots=True)
class OpenedFile:
    """A file whose header is parsed, ready to be split into chunks.

    Attributes:
        file: the identified file.
        header: the meaning of its columns; None for a file without rows.
        data_start: position of the first data row [bytes].
    """

    file: IdentifiedFile
    header: Header | None
    data_start: int

    @property
    def source(self) -> InputFile:
        """Return the file."""
        return self.file.source


def identify_files(
    store: Store,
    sources: Sequence[InputFile],
    *,
    engine: Engine,
    stored_files: StoredManifests | None = None,
    hashed: Mapping[str, str] | None = None,
) -> list[IdentifiedFile]:
    """Return the files with their digests; only new or changed files are read, in segments.

    Args:
        store: the confidential store.
        sources: the files.
        engine: how they are read.
        stored_files: the manifests of the store; files that are certainly new are then left to be hashed.
        hashed: digests of files that were hashed while they were parsed, by location.

    Raises:
        InputError: a file that cannot be read.
    """
    stored = _read_digests(store)
    digest_by_location, listed_ns = dict(stored), time.time_ns()
    for source in sources:
        if hashed and source.location in hashed:
            digest_by_location[source.location] = source.fingerprint, hashed[source.location]
    changed = [source for source in sources if digest_by_location.get(source.location, ("",))[0] != source.fingerprint]
    unchanged = [source for source in sources if source.touched_ns < listed_ns - SETTLING_NS]
    changed_locations, read_as = {source.location for source in changed}, store.read_as
    known = {digest_by_location[of.location][1] for of in sources if of.location not in changed_locations}
    if stored_files is not None and not stored_files.damaged and stored_files.digests <= known:
        left = _files_to_hash_later(sources, changed, store.layout)
        digest_by_location |= {source.location: ("", "") for source in left}
        changed = [source for source in changed if source not in left]
    with explain_worker_errors(engine):
        for batch in _batches(changed):
            segments = [filesystem.file_segments(source) for source in batch]
            digests = map_merge(
                "hash", segments, function=filesystem.hash_segment, merge=filesystem.combine_digests, engine=engine
            )
            digest_by_location |= {
                file.location: (file.fingerprint, named_digest(digest, file, store.layout))
                for file, digest in zip(batch, digests, strict=True)
            }
            stored = _write_digests(store, digest_by_location, unchanged, stored)
    _write_digests(store, digest_by_location, unchanged, stored)
    identified = []
    for source in sources:
        digest = digest_by_location[source.location][1]
        content = content_id(digest or f"{source.location} {source.fingerprint}", read_as)
        identified.append(IdentifiedFile(source, digest, content, source.location in changed_locations))
    return identified


def _files_to_hash_later(sources: Sequence[InputFile], changed: Sequence[InputFile], layout: Layout) -> list[InputFile]:
    """Return the large files that no other listed file can equal, and that are read in order where they lie."""
    of_size = Counter(source.size for source in sources)
    return [
        source
        for source in changed
        if source.size >= HASHED_FIRST_BYTES
        and of_size[source.size] == 1
        and not filesystem.is_url(source.location)
        and not filesystem.is_parquet(source.location)
        and not filesystem.is_stream(replace(source, encoding=layout.encoding))
    ]


def hash_chunk(chunk: Chunk) -> list[bytes]:
    """Return the hashes of the segments that begin in a chunk; the first chunk of a file begins with its header.

    Raises:
        InputError: the file cannot be read.
    """
    start, stop = chunk.start if chunk.number else 0, chunk.source.size if chunk.stop is None else chunk.stop
    segments = filesystem.file_segments(chunk.source)
    return [filesystem.hash_segment(segment) for segment in segments if start <= segment.start < stop]


def named_digest(digest: str, source: InputFile, layout: Layout) -> str:
    """Return the digest of a file with what its path adds: equal files of two homes are two tables."""
    is_parquet = filesystem.is_parquet(source.location)
    values = parquet_parsing.partition_values(source.location) if is_parquet else {}
    if isinstance(layout, Long) and layout.columns.household_source[0] == "file":
        values = {**values, "file": source.name}
    return hashlib.sha256(repr((digest, sorted(values.items()))).encode()).hexdigest() if values else digest


def _batches(sources: Sequence[InputFile]) -> Iterator[list[InputFile]]:
    """Yield the files in order, in batches of about `_BATCH_BYTES`; a run that is stopped loses one batch."""
    batch: list[InputFile] = []
    for source in sources:
        batch.append(source)
        if sum(file.size for file in batch) >= _BATCH_BYTES or len(batch) >= _BATCH_FILES:
            yield batch
            batch = []
    if batch:
        yield batch


def _write_digests(
    store: Store,
    digest_by_location: Mapping[str, tuple[str, str]],
    unchanged: Sequence[InputFile],
    stored: dict[str, tuple[str, str]],
) -> dict[str, tuple[str, str]]:
    """Store the digests of the unchanged files, as far as they are known and not `stored` yet; return them."""
    found = ((source.location, digest_by_location.get(source.location, ("", ""))) for source in unchanged)
    lasting = {location: digest for location, digest in found if digest[1]}
    if lasting != stored:
        changed = {name: json.dumps(found).encode() for name, found in lasting.items() if stored.get(name) != found}
        store.books.put_derived("input_names", changed, removed=stored.keys() - lasting.keys())
    return lasting


def _read_digests(store: Store) -> dict[str, tuple[str, str]]:
    rows = {name: json.loads(row) for name, row in store.books.rows("input_names").items()}
    return {name: (fingerprint, digest) for name, (fingerprint, digest) in rows.items()}


def open_file(file: IdentifiedFile, *, store: Store, check_rows: bool = False) -> OpenedFile:
    """Return a file's header.

    Args:
        file: the file.
        store: the store of its readings.
        check_rows: whether to check its first rows: only before a series begins, later no row stops a file.

    Raises:
        UnreadableFile: not a text file, an unknown header (the message names the columns and the nearest known
            layout), a damaged archive, or first rows without a valid date or with an interval other than declared.
    """
    source = replace(file.source, encoding=store.layout.encoding)
    opened = OpenedFile(replace(file, source=source), *read_header(source, store.layout))
    if check_rows and opened.header is not None:
        check_first_rows(source, opened.data_start, opened.header, store)
    return opened


def read_header(source: InputFile, layout: Layout) -> tuple[Header | None, int]:
    """Return a file's header under a layout (None if it has no rows), and the position of its first data row.

    Only the first lines decide, never a row of a household.

    Raises:
        UnreadableFile: as `open_file`.
    """
    if filesystem.is_parquet(source.location):
        return _read_table_header(source, layout), 0
    head = filesystem.read_head(source)
    bom = 3 if head.startswith(b"\xef\xbb\xbf") else 0
    if not head[bom:].strip() and len(head) < filesystem.HEAD_BYTES:
        return None, len(head)
    raw_lines = head[bom:].split(b"\n", layout.head_lines)
    if len(head) == filesystem.HEAD_BYTES or len(raw_lines) > layout.head_lines:
        raw_lines.pop()  # its end is unknown
    lines = [line.decode("latin-1").removesuffix("\r") for line in raw_lines]
    refusal = None
    try:
        header = layout.recognise(lines, source.location)
    except InputError as error:
        header, refusal = None, source.unreadable(str(error), private=error.private)
    if header is None:
        raise (
            _not_csv_error(source, head, layout)
            or _misplaced_header_error(source, head, layout)
            or refusal
            or _unknown_header_error(source, lines, layout)
        )
    return header, min(len(head), bom + sum(len(line) + 1 for line in raw_lines[: header.lines]))


def _not_csv_error(source: InputFile, head: bytes, layout: Layout) -> InputError | None:
    """Return the error about a file that is not a table with commas, by its first bytes; None if it may be one."""
    if encoding_of(head[:_FIRST_BYTES], complete=False) == "utf-16":
        key = 'encoding = "utf-16"'
        declare = f"declare [input.columns] {key}" if layout.name == Long.name else f"{_DESCRIBE_IT} with {key}"
        return source.unreadable(f"is UTF-16; save it as UTF-8, or {declare}")
    if b"\x00" in head[:_FIRST_BYTES]:
        return source.unreadable("is binary, not CSV")
    line = head.partition(b"\n")[0].removesuffix(b"\r")
    if b"\r" in line and b"\n" not in head:
        return source.unreadable("its lines end in carriage returns alone; write the table again with line feeds")
    for mark, word in _SEPARATORS.items():
        if layout.separator.encode() not in line and line.count(mark) > 1:
            declared = f'write [input.columns] separator = "{mark.decode()}"'.replace("\t", "\\t")
            advice = declared if layout.name == Long.name else f"write them again with commas, or {_DESCRIBE_IT}"
            return source.unreadable(f"its columns are separated by {word}; {advice}")
    return None


def _misplaced_header_error(source: InputFile, head: bytes, layout: Layout) -> InputError | None:
    """Return the error about a header that stands on another line than the layout reads; None if it does not."""
    text = table_text(text_lines(head, "latin-1", complete=len(head) < filesystem.HEAD_BYTES))
    declared = layout.columns.skip_lines if isinstance(layout, Long) else 0
    if text is None or text.skip_lines == declared:
        return None
    if text.has_separator_line and text.skip_lines == 1:
        problem = "its first line is sep=, as Excel writes it, and the header is line 2"
        advice = f"remove it, or {_DESCRIBE_IT}"
        if isinstance(layout, Long):
            if layout.separator == text.separator and not declared:
                return None
            advice = f'write [input.columns] separator = "{text.separator}" and no skip_lines'
        return source.unreadable(f"{problem}; {advice}")
    lines_before = f", after {text.skip_lines} other lines" if text.skip_lines else ""
    keys = f"[input.columns] skip_lines = {text.skip_lines}"
    advice = f"write {keys}"
    if not isinstance(layout, Long):
        advice = f"remove the lines before it, or {_DESCRIBE_IT} and {keys}"
    return source.unreadable(f"the header is line {text.skip_lines + 1}{lines_before}; {advice}")


def _read_table_header(source: InputFile, layout: Layout) -> Header | None:
    """Return the header of a Parquet file, None if it has no rows."""
    with parquet_parsing.open_parquet(source) as file:
        schema, rows = file.schema_arrow, int(file.metadata.num_rows)
    try:
        header, line = parquet_parsing.recognise_table(schema, source.location, layout)
    except InputError as error:
        raise source.unreadable(str(error), private=error.private) from None
    if header is None:
        raise _unknown_header_error(source, [line], layout)
    return header if rows else None


def _unknown_header_error(source: InputFile, lines: Sequence[str], layout: Layout) -> InputError:
    """Return the error with the columns that were sought; without a header the first line is a row, and private."""
    first_line = next((line for line in lines if line.replace(",", "")), "")
    names = {text: name for name, candidate in LAYOUTS.items() for text in candidate.known_headers()}
    near = difflib.get_close_matches(first_line, names, n=1, cutoff=_NEAR)
    other = next((names[text] for text in near if names[text] != layout.name), "")
    nearest = difflib.get_close_matches(first_line, layout.known_headers(), n=1, cutoff=0.0)
    present = [cell.strip('"').lower() for cell in column_names(first_line)]
    sought = [column for text in nearest for column in column_names(text) if column.lower() not in present]
    sought_text = ", ".join(f'"{column}"' for column in sought[:_SHOWN])
    lacking = f"they lack {sought_text}" if sought else "they stand in another order"
    is_row = any(map(is_value, present))
    hint = _ADD_HEADER if is_row else f'did you mean dataset = "{other}"?' if other else _DESCRIBE
    problem = f'are not those of dataset "{layout.name}": {lacking}; {hint}'
    return source.unreadable(f"its columns {problem}", private=f'columns "{escape_text(first_line, 120)}" {problem}')


_REMEDY = "put the files back in [input] files"


def select_counted_manifests(
    store: Store, stored: Mapping[str, Manifest], listed: Sequence[IdentifiedFile]
) -> dict[str, Manifest]:
    """Return the stored files that count, listed or not: those parsed under the present rules of the run file.

    Of a file that was parsed under several formats only the newest counts; listed files are parsed again.
    """
    if not store.order.keeps_unlisted:
        return {}
    current = {content: manifest for content, manifest in stored.items() if manifest.read_as == store.read_as}
    digests = {manifest.digest for manifest in current.values()} | {file.digest for file in listed}
    earlier = {
        content: manifest
        for content, manifest in stored.items()
        if is_read_alike(manifest, store.read_as) and manifest.digest not in digests
    }
    return current | earlier


def check_unlisted_files(
    store: Store,
    stored: StoredManifests,
    earlier: Mapping[str, Manifest],
    listed: Sequence[IdentifiedFile],
    sizes: StoredSizes,
) -> None:
    """Check that files that are no longer listed can be counted from the store.

    Args:
        store: the confidential store.
        stored: the manifests of all stored files, under any rules.
        earlier: those that count (`select_counted_manifests`).
        listed: the input files.
        sizes: the sizes of the stored parts.

    Raises:
        InputError: their readings or manifests are damaged, or they were parsed under different rules and are retained.
    """
    if not store.order.keeps_unlisted:
        return
    unlisted = earlier.keys() - {file.content for file in listed}
    if missing := sum(not sizes.contains(content, earlier[content]) for content in unlisted):
        raise InputError(
            f"the confidential store lacks readings of {missing} files that are no longer delivered; {_REMEDY}"
        )
    if damaged := len(stored.damaged - {file.content for file in listed}):
        notes = f"the manifests of {damaged} stored files are damaged: without them the files do not count"
        problem = f"{notes}; {_REMEDY}, then remove the damaged manifests"
        raise InputError(problem, private=f"{store.folder / 'files'}: {problem}")
    digests = {file.digest for file in listed} | {file.digest for file in earlier.values()}
    keys = _changed_keys(store, [file for file in stored.manifests.values() if file.digest not in digests])
    if "format" in keys:
        raise InputError(f"files that are no longer delivered were read by another version of agedp; {_REMEDY}")
    if keys:
        raise InputError(
            f"files that are no longer delivered were read under another [input] {', '.join(sorted(keys))}; "
            f"{_REMEDY}, or change the key back"
        )


def _changed_keys(store: Store, manifests: Sequence[Manifest]) -> set[str]:
    """Return the keys that differ for files of the same table, if any of their months is retained.

    A table of another dataset, or with different columns, is a different delivery and not missing here.
    """
    current, retained_from = store.read_as, read_retained_from(store.folder)
    keys: set[str] = set()
    for manifest in manifests:
        same_table = all(manifest.read_as.get(key) == current.get(key) for key in ("dataset", "columns"))
        if same_table and any(month >= retained_from for month in manifest.months):
            all_keys = manifest.read_as.keys() | current.keys()
            keys |= {key for key in all_keys if manifest.read_as.get(key) != current.get(key)}
    return keys
