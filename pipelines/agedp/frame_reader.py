"""`agedp.read`: files and tables -> one data frame of readings, in memory, or a Dask data frame by month.

The rows are parsed, checked and deduplicated as in a run. In memory nothing is written to a disk.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, TypedDict, Unpack, overload

import numpy as np
import pyarrow as pa

from agedp import workspace as workspace_module
from agedp.compute.engine import default_scheduler, map_items
from agedp.compute.engine_settings import Engine
from agedp.preflight import input_findings, rejection_findings
from agedp.preflight.input_checks import HOUSEHOLD_IDS, ROWS, Finding, in_python, judge, python_words, warn_of
from agedp.preflight.input_findings import add_touched, in_samples
from agedp.preflight.rejection_findings import RosterDays, Touched, before_skip, has_ambiguous_numbers
from agedp.setup.inferred_input import Files, InputLayout, infer_input, patterns
from agedp.stage_values import Delivery
from agedp.stages.ingest import ingest, parse_chunk, split_file
from agedp.store import file_identity, month_reader
from agedp.store.data_quality import ConflictingRows, count_by_reason, rejected_rows_in_words
from agedp.store.file_identity import IdentifiedFile, OpenedFile, open_file
from agedp.store.month_reader import (
    distinct_keys,
    household_day_key,
    household_days,
    is_in_sorted,
    split_household_day_key,
)
from agedp.store.named_days import day_spans
from agedp.store.part_writer import ParsedRows, collect_kept_pieces, join_parsed_rows, no_rows
from agedp.store.store import Store, months_between
from agedp.workspace import Workspace
from agedp_data.datasets import filesystem, parquet_parsing
from agedp_data.datasets.csv_parsing import ParsedChunk
from agedp_data.datasets.deduplication import Readings, StoredRows, deduplicate_rows
from agedp_data.datasets.filesystem import Chunk
from agedp_data.datasets.layout import (
    PASSES,
    SINGLE_CHANNEL,
    Channels,
    Header,
    Layout,
    slot_step,
)
from agedp_data.datasets.long_format import Long
from agedp_data.datasets.parquet_parsing import FLOAT_IDS, FLOAT_IDS_REMEDY
from agedp_data.datasets.timestamps import date_of_day, day_number
from agedp_data.datasets.validation import INTERVAL_MINUTES, SLOTS, Flags, Integers, Ints, RejectionReason
from agedp_data.errors import InputError
from agedp_data.roster import ALL, Roster, RosterRows

if TYPE_CHECKING:
    import dask.dataframe as dd
    import pandas as pd

_HALF_HOUR_NS: Final = 1800 * 10**9
_SAMPLE_ROWS: Final = 2_000_000
_FIRST_CELLS: Final = 20_000
_OPEN: list[Workspace] = []
"""Stores behind Dask data frames; they last as long as the process."""


class _Words(TypedDict, total=False):
    """Keywords of `read` for type checkers; its docstring says what they mean."""

    dataset: str | None
    columns: Mapping[str, Any] | None
    interval_minutes: int | None
    households: Collection[str] | None
    days: tuple[date | str, date | str] | None
    read_off: Sequence[str] | None


@overload
def read(files: Files | Any, *, as_dask: Literal[True], **words: Unpack[_Words]) -> dd.DataFrame: ...  # noqa: ANN401
@overload
def read(files: Files | Any, *, as_dask: Literal[False] = False, **words: Unpack[_Words]) -> pd.DataFrame: ...  # noqa: ANN401
@overload
def read(files: Files | Any, *, as_dask: bool, **words: Unpack[_Words]) -> pd.DataFrame | dd.DataFrame: ...  # noqa: ANN401
@python_words()
def read(  # noqa: PLR0913  (how the rows are read, and which are returned)
    files: Files | Any,
    *,
    dataset: str | None = None,
    columns: Mapping[str, Any] | None = None,
    interval_minutes: int | None = None,
    households: Collection[str] | None = None,
    days: tuple[date | str, date | str] | None = None,
    as_dask: bool = False,
    read_off: Sequence[str] | None = None,
) -> pd.DataFrame | dd.DataFrame:
    """Return the readings of files or of a table: household_id, interval_start, energy_wh, sorted by both keys.

    Use it first: every other function takes what it returns. Every row is kept, or rejected for a reason:
    `.attrs["rows"]` counts them. Confidential.

    Args:
        files: paths, globs or URLs of CSV files (also compressed) or Parquet files, or a table: a pandas or Dask data
            frame, an Arrow table, a DuckDB relation, a polars frame, a Delta table.
        dataset: "london", "ausgrid" or "nem12" as published, or "long"; inferred if not given.
        columns: meaning of the columns of a "long" table, with the keys of [input.columns]. Keys that are not given are
            inferred from header, types and first rows, as by `agedp init`; nothing is where all keys without a default
            are given.
        interval_minutes: 5, 10, 15, 30 or 60 minutes between readings; inferred with the columns, else 30. Shorter
            readings are added up.
        households: the households to return; all if not given.
        days: first and last day to return; all if not given.
        as_dask: return a Dask data frame with one partition for each month, for readings that exceed the memory, as is
            done for a Dask data frame. The readings are kept in a temporary folder (`$TMPDIR`) until the process ends.
        read_off: keys of `columns` that were chosen by looking at readings, such as "negative"; the statement of a
            release lists them, and those that were inferred from readings.

    Returns:
        Energies are whole watt-hours; `interval_start` has the time zone in which days begin. A half-hour that the
        clock shows twice is one row with the energy of both, at its first pass; `.attrs["clock_changes"]` lists these
        and the half-hours that do not exist. `.attrs["inferred"]` has the arguments that were inferred: the same call
        with them returns the same readings.

    Raises:
        InputError: a file that cannot be parsed; an interval other than declared; or rows that leave open how to read
            them, such as the zone of timestamps without an offset: the error names the keys of `columns` to give.
        RunFileError: `columns` that are invalid in a run file.

    >>> import pandas as pd
    >>> times = pd.date_range("2026-01-05 00:30", periods=96, freq="30min", tz="Europe/London")
    >>> table = pd.DataFrame({"meter": "A", "read_at": times, "kwh": [0.1, 0.3] * 48})
    >>> read(table).attrs["inferred"]["columns"]["day_zone"]
    'Europe/London'
    >>> times = pd.date_range("2026-01-05", periods=96, freq="30min", tz="UTC")
    >>> table = pd.DataFrame({"household_id": "A", "interval_start": times, "energy_wh": [100, 300] * 48})
    >>> readings = read(table)
    >>> len(readings), int(readings["energy_wh"].sum()), readings.attrs["rows"]
    (96, 19200, {'read': 96, 'kept': 96, 'rejected': {}})
    """
    layout = infer_input(
        files, dataset=dataset, columns=columns, interval_minutes=interval_minutes, read_off=read_off or ()
    )
    wanted = _wanted(households, days)
    if as_dask or workspace_module.is_dask(files):
        return _dask_frame(files, layout, wanted)
    store = Store(Path("unused"), layout.dataset, layout.rules)
    parsed = wanted.select_parsed(parse(files, store))
    frame = _frame(parsed.readings, store.layout, {"rows": parsed.account, **layout.notes})
    found = _judged(parsed, store, read_off=wanted.households is None)
    unread = _readings_table(parsed.readings.ids, *parsed.unread, store.layout)
    workspace_module.note(frame, unread=unread, float_ids=parsed.float_ids, findings=found)
    warn_of([finding for finding in found if finding.verdict == "refused"])
    return frame


@python_words()
def findings(
    source: Files | Any,  # noqa: ANN401
    *,
    dataset: str | None = None,
    columns: Mapping[str, Any] | None = None,
    interval_minutes: int | None = None,
    households: Collection[str] | None = None,
    days: tuple[date | str, date | str] | None = None,
) -> tuple[Finding, ...]:
    """Return what the preflight finds in files or in a table: causes that touch household-days.

    Use it where a release is refused, or a warning says that something was found. Confidential.

    Args:
        source: as in `agedp.read`, or a frame that it returned.
        dataset: as in `agedp.read`.
        columns: as in `agedp.read`.
        interval_minutes: as in `agedp.read`.
        households: as in `agedp.read`.
        days: as in `agedp.read`.

    Returns:
        One finding for each cause: its name, the number of household-days, the limit above which a first release is
        refused, a sentence, and what settles it.

    Raises:
        InputError: as `agedp.read`.
    """
    found = workspace_module.noted_findings(source) if workspace_module.is_table(source) else None
    if found is None:
        layout = infer_input(source, dataset=dataset, columns=columns, interval_minutes=interval_minutes)
        store = Store(Path("unused"), layout.dataset, layout.rules)
        parsed = _wanted(households, days).select_parsed(parse(source, store))
        found = _judged(parsed, store, read_off=households is None)
    return tuple(
        replace(finding, sentence=in_python(finding.sentence), remedy=in_python(finding.remedy)) for finding in found
    )


@dataclass(frozen=True, slots=True)
class _Wanted:
    """The households and the days (since 1970) to return."""

    households: Collection[str] | None
    days: tuple[int, int] | None

    def half_hours(self, ids: Sequence[str], household: Ints, time: Ints) -> Flags:
        """Return which half-hours of households, as indices into `ids`, are wanted."""
        is_wanted = np.ones(len(time), bool)
        if self.households is not None:
            names = set(self.households)
            is_wanted &= np.array([name in names for name in ids], bool)[household]
        if self.days is not None:
            day = time // SLOTS
            is_wanted &= (day >= self.days[0]) & (day <= self.days[1])
        return is_wanted

    def select(self, readings: Readings) -> Readings:
        """Return the wanted readings."""
        is_wanted = self.half_hours(readings.ids, readings.household, readings.time)
        if is_wanted.all():
            return readings
        household, time, energy = (
            values[is_wanted] for values in (readings.household, readings.time, readings.energy_wh)
        )
        return replace(readings, household=household, time=time, energy_wh=energy)

    def select_parsed(self, parsed: ParsedReadings) -> ParsedReadings:
        """Return the wanted readings, and the wanted half-hours without one."""
        if self.households is None and self.days is None:
            return parsed
        ids, (household, time) = parsed.readings.ids, parsed.unread
        readings, is_wanted = self.select(parsed.readings), self.half_hours(ids, household, time)
        unread = household[is_wanted], time[is_wanted]
        return replace(parsed, readings=readings, days=household_days(readings), unread=unread)


def _wanted(households: Collection[str] | None, days: tuple[date | str, date | str] | None) -> _Wanted:
    if households is not None and (isinstance(households, str) or not isinstance(households, Iterable)):
        raise InputError(f"households={households!r}: is no list of households; give one, such as ['A', 'B']")
    if days is None:
        return _Wanted(households, None)
    try:
        first, last = (day if isinstance(day, date) else date.fromisoformat(day) for day in days)
    except (TypeError, ValueError):
        advice = "give the first and the last one, such as ('2026-01-01', '2026-01-31')"
        raise InputError(f"days={days!r}: are no two days; {advice}") from None
    return _Wanted(households, (day_number(first), day_number(last)))


_Named = tuple[Sequence[str], Integers, Integers]
"""Half-hours that rows name: household ids, indices into them, time of the first half-hour of each row."""
_Rows = tuple[Integers, Integers]
"""Household and time of rows."""


@dataclass(frozen=True, slots=True)
class _ParsedPart:
    """The kept rows of one chunk in pieces, the number of all, the rejected ones by reason, and what these name."""

    ids: list[str]
    pieces: list[ParsedRows]
    read: int
    rejected: Counter[str]
    named: list[_Named]
    quarantine: list[pa.Table]


@dataclass(frozen=True, slots=True)
class ParsedReadings:
    """Deduplicated readings, the account of their rows, and what the judge looks at; confidential.

    Attributes:
        readings: their ids are those of all rows, also of rejected ones.
        days: the household-days of the readings (`household_days`).
        unread: household and time of each half-hour that a row names and no kept reading has, sorted.
        account: the number of rows, of kept ones, and of rejected ones by reason.
        float_ids: whether the household ids were floating-point numbers.
        quarantine: the rows that parsing rejected.
        conflicts: the half-hours that conflicting rows lose.
        bare_days: keys of household-days with kept rows of shorter intervals, and no complete half-hour.
        has_ambiguous_numbers: whether the form of the numbers is ambiguous.
        column_orders: the names of the columns, in the order of each file.
        repeated_once: the days whose half-hours that the clock shows twice have one row each.
        of_another_clock: the days on which households have an hour that the clock skips.
        unasked: texts of the rows if none is asked for.
    """

    readings: Readings
    days: tuple[Ints, Ints, Ints]
    unread: tuple[Ints, Ints]
    account: dict[str, Any]
    float_ids: bool
    quarantine: list[pa.Table]
    conflicts: ConflictingRows
    bare_days: Ints
    has_ambiguous_numbers: bool
    column_orders: Sequence[Sequence[str]]
    repeated_once: Ints
    of_another_clock: Ints
    unasked: str


def parse_readings(readings: Any) -> tuple[ParsedReadings, Layout]:  # noqa: ANN401
    """Return what `parse` returns of a table with the columns of `agedp.read`, in memory, and its layout.

    Rows that `agedp.read` could not keep count as they do in a release of the table.

    Raises:
        InputError: a table without these columns, or without a usable reading.
        PreflightFailed: as `parse`.
    """
    keys = workspace_module.input_keys(readings)
    store = Store(Path("unused"), keys["dataset"], workspace_module.rules_of(keys))
    unread = workspace_module.unread_half_hours(readings)
    parsed = parse(readings, store, () if unread is None else (unread,))
    if not len(parsed.readings.time):
        raise workspace_module.no_reading()
    return parsed, store.layout


def parse(files: Any, store: Store, further: Sequence[pa.Table] = ()) -> ParsedReadings:  # noqa: ANN401
    """Return the deduplicated readings of files or of a table, and what was rejected.

    Args:
        files: as in `agedp.read`.
        store: the rules; nothing is stored.
        further: further rows of a table.

    Raises:
        PreflightFailed: the first rows have no valid date, or mostly an interval other than declared.
    """
    is_table = workspace_module.is_table(files)
    layout = store.layout
    if is_table:
        header = _header_of_table(files, store)
        float_ids = header.float_ids
        roles = {name: role for name, role in zip(header.columns, header.names, strict=True) if role in header.types}
        tables = chain(workspace_module.batches(files, [*roles]), (table.select([*roles]) for table in further))
        batches = (table.rename_columns([*roles.values()]) for table in tables)
        parts = [(0, _collect(_parsed_table(batches, header, store)))]
        orders = [[*roles]]
    else:
        sources = filesystem.list_input_files(patterns(files)).sources
        opened = [open_file(IdentifiedFile(source, "", ""), store=store, check_rows=True) for source in sources]
        float_ids = any(file.header is not None and file.header.float_ids for file in opened)
        parts = list(_parsed_files(opened, store))
        orders = [[*file.header.columns] for file in opened if file.header is not None]
    of_parse: Counter[str] = sum((part.rejected for _, part in parts), Counter())
    read_rows = sum(part.read for _, part in parts)
    quarantine = [table for _, part in parts for table in part.quarantine]
    rows, named = _joined(parts, layout)
    del parts
    complete_channels = layout.complete_channels(store.rules)
    readings = deduplicate_rows(rows, complete_channels=complete_channels, units_per_wh=layout.units_per_wh)
    rejected = of_parse + Counter(count_by_reason(readings.rejected_reason))
    account = {"read": read_rows, "kept": read_rows - rejected.total(), "rejected": dict(sorted(rejected.items()))}
    days = household_days(readings)
    unkept = rows.take(_rows_without_reading(rows, readings, complete_channels))
    unread = _unread_half_hours([(unkept.household, unkept.time), *named], readings, days, layout)
    has_conflicts = bool((readings.rejected_reason == RejectionReason.CONFLICT).any())
    conflicts = _conflicts(unkept if has_conflicts else unkept.take(np.zeros(0, np.int64)), unread, layout)
    is_ambiguous = _are_ambiguous(files, store)
    of_days = split_household_day_key(days[0])[1]
    named_days = _distinct(np.concatenate([of_days, unread[1] // SLOTS])).tolist()
    clock = _repeated_once(rows, named_days, layout), _of_another_clock(rows, named_days, layout)
    unasked = ""
    if read_rows and account["rejected"] == {RejectionReason.CATEGORY.words: read_rows}:
        if is_table:
            first = next(workspace_module.batches(files, [*roles])).rename_columns([*roles.values()])
            unasked = file_identity.texts_of_table(first, header, store)
        else:
            unasked = next(
                file_identity.texts_of_file(file.source, file.data_start, file.header, store)
                for file in opened
                if file.header
            )
    lost = quarantine, conflicts, _bare_days(rows, days, conflicts, layout)
    return ParsedReadings(readings, days, unread, account, float_ids, *lost, is_ambiguous, orders, *clock, unasked)


def _joined(parts: Sequence[tuple[int, _ParsedPart]], layout: Layout) -> tuple[StoredRows, list[_Rows]]:
    """Return the kept rows of all parts in their order, and household and time that the rejected ones name."""
    ids = tuple(sorted({name for _, part in parts for name in part.ids}))
    kind = np.min_scalar_type(max([number for number, _ in parts], default=0))
    pieces, numbers = [], [np.zeros(0, kind)]
    named: list[_Rows] = []
    for number, part in parts:
        of_part = _codes(ids, part.ids).astype(np.int32)
        for piece in part.pieces:
            pieces.append(replace(piece, household=of_part[piece.household]))
            numbers.append(np.full(len(piece.row), number, kind))
        named += [(_codes(ids, names)[household], time) for names, household, time in part.named]
    rows = join_parsed_rows(pieces or [no_rows(layout)])
    file, row = np.concatenate(numbers), np.arange(len(rows.row), dtype=np.int32)
    columns: list[Any] = [rows.household, rows.channel, rows.time, file, row, rows.energy_wh, rows.label]
    return StoredRows(ids, *columns), named


def _codes(ids: Sequence[str], names: Sequence[str]) -> Ints:
    """Return the indices of names among `ids`."""
    code = {name: i for i, name in enumerate(ids)}
    return np.array([code[name] for name in names] or [0], np.int64)


def _distinct(time: Integers) -> Ints:
    """Return the distinct times, ascending: half-hours since 1970, of which there are few.

    >>> _distinct(np.array([9, 7, 9])).tolist()
    [7, 9]
    """
    is_present = np.zeros(int(time.max(initial=-1)) + 1, bool)
    is_present[time] = True
    return np.flatnonzero(is_present)


def _merged(key: Ints, further: Ints) -> Ints:
    """Return the distinct keys of both, which are sorted each; linear in time.

    >>> _merged(np.array([3, 7]), np.array([5, 7])).tolist()
    [3, 5, 7]
    """
    return distinct_keys(np.insert(key, np.searchsorted(key, further), further))


def _rows_without_reading(rows: StoredRows, readings: Readings, complete_channels: Channels) -> Ints:
    """Return the indices of rows that may have no reading: rejected ones, and those of several for one reading."""
    if rows.energy_wh.shape[1] > 1 or rows.label is not None or SINGLE_CHANNEL[0] not in complete_channels:
        return np.arange(len(rows.time))
    times_of_several = _distinct(rows.time[rows.channel > 0])
    of_several = np.flatnonzero(np.isin(rows.time, times_of_several)) if len(times_of_several) else times_of_several
    return _merged(of_several, distinct_keys(readings.rejected_row))


def _unread_half_hours(
    named: Sequence[_Rows], readings: Readings, of_readings: tuple[Ints, Ints, Ints], layout: Layout
) -> tuple[Ints, Ints]:
    """Return household and time of the half-hours that rows name and that have no reading."""
    columns = zip(*named, strict=True)
    household, time = (np.concatenate([values.astype(np.int64) for values in column]) for column in columns)
    days, _, number = of_readings
    is_incomplete = ~is_in_sorted(household_day_key(household, time // SLOTS), days[number == SLOTS])
    household, time = household[is_incomplete], time[is_incomplete]
    if layout.width > 1:
        household, time = np.repeat(household, SLOTS), (time[:, None] + np.arange(SLOTS)).ravel()
        absent = {day: layout.absent_slots(date_of_day(day)) for day in np.unique(time // SLOTS).tolist()}
        times = [day * SLOTS + slot for day, slots in absent.items() for slot in slots]
        exists = ~np.isin(time, times)
        household, time = household[exists], time[exists]
    key = distinct_keys((household << 32) | time)
    if len(key):
        key = key[~is_in_sorted(key, (readings.household.astype(np.int64) << 32) | readings.time)]
    return key >> 32, key & (2**32 - 1)


def _are_ambiguous(files: Any, store: Store) -> bool:  # noqa: ANN401
    """Return whether the form of the numbers in the first rows is ambiguous, of files or of a table with texts."""
    columns = store.rules.columns
    if not workspace_module.is_table(files):
        return has_ambiguous_numbers(store, patterns(files))
    if columns is None or columns.is_wide or columns.is_by_day or columns.thousands:
        return False
    first = next(workspace_module.batches(files, columns.energy_columns), None)
    cells = [] if first is None else first.column(0).slice(0, _FIRST_CELLS).to_pylist()
    return rejection_findings.are_ambiguous((cell for cell in cells if isinstance(cell, str)), columns.decimal)


def _repeated_once(rows: StoredRows, days: Sequence[int], layout: Layout) -> Ints:
    slots = {day: rejection_findings.layout_slots(layout, date_of_day(day)) for day in days}
    once = []
    for day in (day for day, of_day in slots.items() if of_day):
        repeated = np.isin(rows.time, [day * SLOTS + slot for slot in slots[day]])
        columns = (rows.household, rows.time, rows.channel // PASSES, *([] if rows.label is None else [rows.label]))
        keys = np.stack([values[repeated] for values in columns])
        if keys.shape[1] and np.unique(keys, axis=1, return_counts=True)[1].max() == 1:
            once.append(day)
    return np.array(once, np.int64)


def _of_another_clock(rows: StoredRows, days: Sequence[int], layout: Layout) -> Ints:
    """Return the days on which most households have two rows before an hour that the clock skips, and only there."""
    step, found = slot_step(layout.interval_minutes), []
    for day, slot in ((day, slot) for day in days if (slot := before_skip(layout, date_of_day(day))) is not None):
        doubled, earlier = (_doubled(rows, day * SLOTS + of_slot) for of_slot in (slot, slot - step))
        households = len(np.unique(rows.household[rows.time == day * SLOTS + slot]))
        if 2 * len(np.setdiff1d(doubled, earlier)) > households:
            found.append(day)
    return np.array(found, np.int64)


def _doubled(rows: StoredRows, time: int) -> Ints:
    """Return the households with several rows of one file, part and label at a time."""
    columns = (rows.household, rows.file, rows.channel // PASSES, *([] if rows.label is None else [rows.label]))
    keys = np.stack([values[rows.time == time].astype(np.int64) for values in columns])
    distinct, number = np.unique(keys, axis=1, return_counts=True)
    return np.unique(distinct[0][number > 1])


def _conflicts(rows: StoredRows, unread: tuple[Ints, Ints], layout: Layout) -> ConflictingRows:
    """Return the half-hours that some rows have, but no reading."""
    key, file = (rows.household.astype(np.int64) << 32) | rows.time, rows.file
    lost = is_in_sorted(key, (unread[0] << 32) | unread[1])
    keys, rows_of_file = np.unique(np.stack([key[lost], file[lost]]), axis=1, return_counts=True)
    repeated = keys[0][rows_of_file > max(1, INTERVAL_MINUTES // layout.interval_minutes)]
    distinct = np.unique(keys[0])
    return ConflictingRows(distinct >> 32, distinct & (2**32 - 1), np.isin(distinct, repeated))


def _bare_days(rows: StoredRows, days: tuple[Ints, Ints, Ints], lost: ConflictingRows, layout: Layout) -> Ints:
    """Return keys of household-days with rows, but without a complete half-hour, where shorter readings add up."""
    if layout.interval_minutes >= INTERVAL_MINUTES:
        return np.zeros(0, np.int64)
    with_rows = distinct_keys(household_day_key(rows.household, rows.time // SLOTS))
    explained = np.union1d(days[0], household_day_key(lost.household, lost.time // SLOTS))
    return np.setdiff1d(with_rows, explained)


def _named_roster(parsed: ParsedReadings, *, read_off: bool) -> tuple[RosterRows, RosterDays] | None:
    """Return the households and days that rows name; None if there is none."""
    household, time = parsed.unread
    household, day = split_household_day_key(_merged(parsed.days[0], household_day_key(household, time // SLOTS)))
    if not len(day):
        return None
    roster = _roster(parsed.readings.ids, household, day)
    return roster, RosterDays(roster, _distinct(day).tolist(), read_off=read_off)


def _roster(ids: Sequence[str], household: Ints, day: Ints) -> RosterRows:
    """Return the first and the last of the days of each household, which are sorted by both."""
    codes, starts = np.unique(household, return_index=True)
    spans = day[starts], day[np.append(starts[1:], len(day)) - 1]
    return RosterRows(tuple(ids[code] for code in codes.tolist()), np.arange(len(codes)), *spans, {})


def read_off_roster(parsed: ParsedReadings, layout: Layout) -> RosterRows:
    """Return the roster that rows of all households name, as `store.named_days` reads it off a store."""
    (key, _, number), (household, time) = parsed.days, parsed.unread
    keys = np.concatenate([key, household_day_key(household, time // SLOTS)])
    keys, index = np.unique(keys, return_inverse=True)
    half_hours = np.bincount(index, np.append(number, np.ones(len(time))), len(keys))
    household, day = split_household_day_key(keys)
    is_nearly_full = half_hours >= (SLOTS - 2) // slot_step(layout.interval_minutes)
    has_full = np.bincount(household, is_nearly_full, len(parsed.readings.ids)) > 0
    counts = is_nearly_full | ~has_full[household]
    return _roster(parsed.readings.ids, household[counts], day[counts])


def _judged(parsed: ParsedReadings, store: Store, *, read_off: bool) -> tuple[Finding, ...]:
    """Return what the judge finds in rows, and what is wrong with their ids; `read_off` if all households are asked."""
    of_ids = (Finding(HOUSEHOLD_IDS, FLOAT_IDS, "refused", FLOAT_IDS_REMEDY),) if parsed.float_ids else ()
    of_texts = (Finding(ROWS, parsed.unasked, "refused", "Ask for one of these"),) if parsed.unasked else ()
    return (*of_ids, *of_texts, *_judged_rows(parsed, store, read_off=read_off))


def _judged_rows(parsed: ParsedReadings, store: Store, *, read_off: bool) -> tuple[Finding, ...]:
    """Return what the judge finds in rows; their roster is read off them."""
    readings, layout = parsed.readings, store.layout
    named = _named_roster(parsed, read_off=read_off)
    if named is None:  # every row is rejected
        rows = sum(len(table) for table in parsed.quarantine)
        return judge({"rejected": Touched(0, {ALL: rows}, rows)}, {ALL: rows}, 0)
    roster, roster_days = named
    rejected = rejection_findings.count_rejected(
        parsed.quarantine,
        roster_days,
        columns=store.rules.columns,
        minutes=layout.interval_minutes,
        orders=lambda: parsed.column_orders,
    )
    in_roster = roster_days.codes(pa.array(readings.ids, pa.string())) if readings.ids else np.zeros(1, np.int64)

    def of_roster(key: Ints) -> tuple[Ints, Ints]:
        household, day = split_household_day_key(key)
        return in_roster[household], day

    days, energy, number = parsed.days
    of_days = np.stack([*of_roster(days), number, energy])
    sample = readings.household[:_SAMPLE_ROWS], readings.time[:_SAMPLE_ROWS] * INTERVAL_MINUTES
    samples = rejection_findings.examine_samples([(readings.ids, *sample, readings.energy_wh[:_SAMPLE_ROWS])])
    examined = input_findings.ExaminedDays(rising=samples.rising, interval_minutes=layout.interval_minutes)
    lost = replace(parsed.conflicts, household=in_roster[parsed.conflicts.household])
    bare_household, bare_day = of_roster(parsed.bare_days)
    bare = household_day_key(bare_household, bare_day)[bare_household >= 0]
    of_members = input_findings.find_in_days([of_days], roster_days, examined, bare)
    of_conflicts = input_findings.find_in_conflicts([lost], roster_days, layout)
    touched = add_touched([rejected.touched, of_members, of_conflicts])
    if rejected.headers and rejected.have_other_order(parsed.column_orders):
        touched["rejected"] = Touched(
            roster_days.households, roster_days.totals, details=rejection_findings.OTHER_ORDER
        )
    explained = sum(found.days.get(ALL, 0) for found in touched.values())
    lacks, counts = of_days[2] < examined.readings, np.zeros(SLOTS, np.int64)
    incomplete = int(lacks.sum()) - explained
    if 2 * incomplete >= len(lacks) > 0:
        counted = rejection_findings.count_by_slot(readings, counts, layout)
        if slots := rejection_findings.slots_of_few(counts, counted, slot_step(layout.interval_minutes)):
            lacking = household_day_key(of_days[0], of_days[1])[lacks]
            touched["slot"] = roster_days.touched(lacking, details={f"slot {slot}": 1 for slot in slots})
    touched |= in_samples(samples, input_findings.sum_days(of_days), roster_days.households, roster_days.totals)
    if parsed.has_ambiguous_numbers:
        touched["numbers"] = Touched(roster_days.households, roster_days.totals, is_sampled=True)
    touched["clock"] = touched.get("clock", Touched()) | _of_the_clock(parsed, roster, roster_days)
    return judge(touched, roster_days.totals, roster_days.households)


def _of_the_clock(parsed: ParsedReadings, roster: RosterRows, roster_days: RosterDays) -> Touched:
    """Return what rows touch that contradict the clock changes of the declared zone."""
    touched = Touched()
    if len(once := parsed.repeated_once):
        every = np.tile(roster_days.every, len(once)), np.repeat(once, len(roster_days.every))
        touched |= roster_days.touched(roster_days.on_roster(*every), details={"repeated": 1})
    if len(skipped := parsed.of_another_clock):
        later = RosterDays(roster, [number for number in roster_days.days.tolist() if number >= skipped[0]])
        touched |= Touched(later.households, later.totals, details={"skipped": later.households})
    return touched


def _parsed_files(opened: Sequence[OpenedFile], store: Store) -> Iterator[tuple[int, _ParsedPart]]:
    engine = Engine()
    size = sum(file.source.size for file in opened)
    items = [(i, file, chunk) for i, file in enumerate(opened) for chunk in split_file(file, engine, size)]
    parse = partial(_parsed_chunk, store=store, chunk_bytes=engine.chunk_bytes)
    yield from map_items("read", items, function=parse, engine=engine)
    for file in opened:
        file.source.check_unchanged()


def _parsed_chunk(item: tuple[int, OpenedFile, Chunk], *, store: Store, chunk_bytes: int) -> tuple[int, _ParsedPart]:
    number, opened, chunk = item
    return number, _collect(parse_chunk(opened, chunk, store, chunk_bytes))


def _header_of_table(table: Any, store: Store) -> Header:  # noqa: ANN401
    header, line = parquet_parsing.recognise_table(workspace_module.table_schema(table), "", store.layout)
    if header is None:
        raise InputError(f'readings: the columns are not those of dataset "{store.dataset}": {line}')
    return header


def _parsed_table(batches: Iterable[pa.Table], header: Header, store: Store) -> Iterator[ParsedChunk]:
    for number, batch in enumerate(batches):
        if number == 0:
            file_identity.check_first_table_rows(batch, header, store)
        yield parquet_parsing.parse_table(batch, layout=store.layout, header=header, rules=store.rules)


def _collect(chunks: Iterator[ParsedChunk]) -> _ParsedPart:
    rejected: Counter[str] = Counter()
    named: list[_Named] = []
    quarantine: list[pa.Table] = []
    read_rows = 0

    def counted() -> Iterator[ParsedChunk]:
        nonlocal read_rows
        for chunk in chunks:
            read_rows += chunk.rows_read
            records, reason = chunk.records, chunk.records.reason
            of_rejected = chunk.rejected_row[chunk.names_half_hour]
            named.append((records.ids, records.household[of_rejected], records.time[of_rejected]))
            if len(chunk.rejected_row):
                quarantine.append(rejected_rows_in_words(chunk))
            rejected.update(count_by_reason(chunk.rejected_reason))
            rejected.update(count_by_reason(reason[reason == RejectionReason.CATEGORY]))
            yield chunk

    ids, pieces = collect_kept_pieces(counted())
    return _ParsedPart(ids, pieces, read_rows, rejected, named, quarantine)


def _frame(readings: Readings, layout: Layout, noted: Mapping[str, Any]) -> pd.DataFrame:
    """Return readings as a data frame; its attributes are those of its layout, and what else is noted."""
    table = _readings_table(readings.ids, readings.household, readings.time, layout, readings.energy_wh)
    frame: pd.DataFrame = table.to_pandas(split_blocks=True, self_destruct=True)
    frame.attrs.update(frame_attributes(layout, np.unique(_distinct(readings.time) // SLOTS)))
    frame.attrs.update(noted)
    return frame


def _readings_table(
    ids: Sequence[str], household: Integers, time: Integers, layout: Layout, energy_wh: Integers | None = None
) -> pa.Table:
    """Return the columns of readings; without an energy for half-hours without one."""
    households = pa.array(ids, pa.large_string()).take(pa.array(household))
    energies = pa.nulls(len(time), pa.int64()) if energy_wh is None else pa.array(energy_wh.astype(np.int64))
    return pa.table([households, instants(time, layout), energies], workspace_module.READINGS_COLUMNS)


def frame_attributes(layout: Layout, days: Ints) -> dict[str, Any]:
    """Return what a frame of readings notes: its interval, net exports, and half-hours that clock changes affect.

    Args:
        layout: the layout of the readings.
        days: their distinct days since 1970, ascending.
    """
    changes: dict[str, list[str]] = {"repeated": [], "absent": []}
    for on in map(date_of_day, days.tolist()):
        for kind, slots in (("repeated", layout.repeated_slots(on)), ("absent", layout.absent_slots(on))):
            changes[kind] += [f"{on} {slot // 2:02}:{slot % 2 * 30:02}" for slot in slots]
    nets = isinstance(layout, Long) and layout.columns.negative == "net"
    minutes = max(layout.interval_minutes, INTERVAL_MINUTES)
    noted = {workspace_module.SUMMED: "sum", workspace_module.INTERVAL: minutes, "clock_changes": changes}
    return ({workspace_module.NEGATIVE: "net"} if nets else {}) | noted


def instants(time: Integers, layout: Layout) -> pa.Array:
    """Return the instants at which half-hours (day since 1970 x 48 + slot) begin, the first of a repeated one."""
    import pandas as pd  # noqa: PLC0415

    distinct = _distinct(time)
    local = pd.DatetimeIndex((distinct * _HALF_HOUR_NS).astype("datetime64[ns]"))
    zoned = local.tz_localize(layout.day_zone, ambiguous=np.ones(len(local), bool), nonexistent="shift_forward")
    by_time = np.zeros(int(distinct.max(initial=-1)) + 1, np.int64)
    by_time[distinct] = zoned.tz_convert("UTC").asi8
    return pa.array(by_time[time], pa.timestamp("ns", layout.day_zone))


def _dask_frame(files: Any, layout: InputLayout, wanted: _Wanted) -> dd.DataFrame:  # noqa: ANN401
    """Return a Dask data frame whose partitions are the months of a temporary store."""
    try:
        import dask.dataframe as dd  # noqa: PLC0415
    except ImportError:
        raise InputError(
            "as_dask needs Dask's data frames, which are not installed; install agedp with its extra dataframe"
        ) from None
    workspace = Workspace.create()
    _OPEN.append(workspace)
    if workspace_module.is_table(files):
        schema = workspace_module.table_schema(files)
        workspace_module.write_parquet(files, workspace.input_folder, schema.names)
        sources = [str(workspace.input_folder)]
    else:
        sources = patterns(files)
    store = Store(workspace.confidential / "store", layout.dataset, layout.rules)
    workspace.confidential.mkdir(mode=0o700, exist_ok=True)
    engine = Engine(default_scheduler())
    delivery = ingest(store, sources, engine=engine, for_roster=True)
    load = partial(_month_frame, store=store, contents=delivery.contents, wanted=wanted, noted=layout.notes)
    months = list(delivery.months)
    if wanted.days is not None:
        asked = months_between(*map(date_of_day, wanted.days))
        months = [month for month in months if month in asked] or months[:1]
    if not months:
        raise InputError("readings: no row has a reading, so there is no month; agedp.findings says why")
    empty = _frame(Readings((), *(np.zeros(0, np.int64) for _ in range(6))), store.layout, layout.notes)
    frame: dd.DataFrame = dd.from_map(load, months, meta=empty)
    rejected = dict(delivery.rejected)
    frame.attrs = empty.attrs | {"rows": {"read": delivery.rows_read, "kept": delivery.rows_kept, "rejected": rejected}}
    found = _judged_store(store, delivery, sources, wanted, engine)
    workspace_module.note_dask(frame, found)
    warn_of([finding for finding in found if finding.verdict == "refused"])
    return frame


def _judged_store(
    store: Store, delivery: Delivery, files: Sequence[str], wanted: _Wanted, engine: Engine
) -> tuple[Finding, ...]:
    """Return what the judge finds in stored readings; their roster is read off the rows, as `_judged` does."""
    spans = day_spans(store, delivery, engine=engine)
    first, last = wanted.days or (0, day_number(date.max))
    days_of = {
        name: (max(day_number(span[0]), first), min(day_number(span[1]), last))
        for name, span in spans.items()
        if wanted.households is None or name in wanted.households
    }
    names = sorted(name for name, (begin, end) in days_of.items() if begin <= end)
    if not names:
        return ()
    begin, end = np.array([days_of[name] for name in names], np.int64).T
    roster = Roster(RosterRows(names, np.arange(len(names)), begin, end, {}), read_off=wanted.households is None)
    days = [date_of_day(day) for day in range(int(begin.min()), int(end.max()) + 1)]
    months, every = sorted({f"{day:%Y-%m}" for day in days}), wanted.days is None
    facts = input_findings.collect_facts(
        store, delivery, roster, months=months, sums={}, days=days, all_days=every, engine=engine, files=files
    )
    return judge(facts.touched, facts.roster_days, facts.members)


def _month_frame(
    month: str, *, store: Store, contents: tuple[str, ...], wanted: _Wanted, noted: Mapping[str, Any]
) -> pd.DataFrame:
    return _frame(wanted.select(month_reader.load_month_readings(store, month, contents)), store.layout, noted)
