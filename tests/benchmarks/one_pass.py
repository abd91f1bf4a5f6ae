"""Files -> daily totals and transition counts in one pass, without a store: for a first look. Confidential.

With public state edges a chunk of a file is deduplicated, summed and counted at once. Neighbouring chunks may have rows
of its first and last household-day: these rows are returned as they are, are deduplicated together, and join the runs
between them. If any further household-day occurs in two chunks (a delivery that is repeated or corrected, a file sorted
by time that is split within a day), or a chunk has so many households that counts of each would not fit into memory,
the files are ingested into a temporary store instead, with the same result.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

import numpy as np

from agedp.calibration.estimate import NO_STATE, join_runs, repeated_half_hours, runs_and_counts
from agedp.compute.engine import map_items
from agedp.compute.engine_settings import Engine
from agedp.stages.ingest import ingest, parse_chunk, split_file
from agedp.store.file_identity import IdentifiedFile, OpenedFile, open_file
from agedp.store.month_reader import (
    daily_totals,
    distinct_keys,
    household_day_key,
    is_first_of_key,
    load_month_readings,
    split_household_day_key,
)
from agedp.store.part_writer import (
    ParsedRows,
    collect_kept_pieces,
    join_parsed_rows,
    no_rows,
    sorted_daily_totals,
    time_steps,
)
from agedp.store.store import Store
from agedp_data.datasets import filesystem
from agedp_data.datasets.deduplication import Readings, StoredRows, deduplicate_rows, join_rows
from agedp_data.datasets.filesystem import Chunk
from agedp_data.datasets.layout import SINGLE_CHANNEL, Layout, slot_step
from agedp_data.datasets.timestamps import date_of_day
from agedp_data.datasets.validation import SLOTS, Ints, ReadingRules
from agedp_data.errors import InputError
from agedp_data.markov.states import RepresentativeValues, representative_values, states

_NONE = np.zeros(0, np.int64)
_MAX_CELLS = 2**18
_CHUNK_BYTES = 16 * 2**20
"""Bytes of a chunk: the arrays of its rows stay in the caches of the processor."""


@dataclass(frozen=True, slots=True)
class Tally:
    """Daily totals and transition counts of each household (h), in the order of the ids.

    `household`, `day`, `energy_wh`, `readings` (d) are the daily totals, of the readings or of the representative
    values of their states, as requested. `counts` (h, k, k) are one-step transitions.
    """

    ids: tuple[str, ...]
    household: Ints
    day: Ints
    energy_wh: Ints
    readings: Ints
    counts: Ints


@dataclass(frozen=True, slots=True)
class _ChunkTally:
    """Results of one chunk: household-days, counts, runs of readings, and the rows of its first and last day."""

    ids: tuple[str, ...]
    key: Ints
    energy_wh: Ints
    readings: Ints
    counts: Ints
    runs: Ints
    edge: StoredRows


@dataclass(frozen=True, slots=True)
class _TallyRequest:
    """The state edges, and the states that count instead of readings, if requested."""

    edges: Sequence[float]
    counted_states: RepresentativeValues | None

    @property
    def n_states(self) -> int:
        return len(self.edges) + 1

    def lookup(self, store: Store) -> Ints:
        """Return the state of every possible reading."""
        return states(np.arange(store.rules.max_half_hour_wh + 1), self.edges)

    def apply_states(self, readings: Readings) -> Readings:
        """Return the readings with the energies that count in a day."""
        return (
            readings
            if self.counted_states is None
            else replace(readings, energy_wh=self.counted_states.represent(readings.energy_wh))
        )


class _ConflictingParts(Exception):
    """Household-days with rows in several chunks."""


def tally(
    patterns: Sequence[str],
    *,
    dataset: str,
    edges: Sequence[float],
    rules: ReadingRules | None = None,
    values: Literal["readings", "states"] = "readings",
    engine: Engine,
) -> Tally:
    """Return daily totals and transition counts of all households in files.

    Args:
        patterns: paths, globs or URLs.
        dataset: name of the files' layout.
        edges: public inner state edges [Wh].
        rules: parsing rules, including the columns of a "long" table.
        values: whether a daily total is the sum of its readings or of the representative values of their states.
        engine: scheduler, workers and memory limits.

    Raises:
        InputError: a file that cannot be parsed, or hourly readings.
        ChainError: `values` is "states", and the edges are not integers or do not increase.
    """
    chosen = ReadingRules() if rules is None else rules
    if slot_step(chosen.interval_minutes) > 1:
        raise InputError(f"[input] interval_minutes = {chosen.interval_minutes}: states are of half-hours")
    request = _TallyRequest(edges, _public_states(edges) if values == "states" else None)
    with TemporaryDirectory(prefix="agedp-") as folder:
        store = Store(Path(folder) / "store", dataset, chosen)
        try:
            return _tally_files(store, patterns, request, engine)
        except _ConflictingParts:
            return _tally_by_store(store, patterns, request, engine)


def _public_states(edges: Sequence[float]) -> RepresentativeValues:
    """Return the states of half-hours between state edges.

    Raises:
        ChainError: the edges are not integers, or do not increase from above 0.
    """
    whole_edges = tuple(int(edge) for edge in edges)
    representative_values(whole_edges if whole_edges == tuple(edges) else edges)
    return RepresentativeValues("half-hour", whole_edges)


def _tally_files(store: Store, patterns: Sequence[str], request: _TallyRequest, engine: Engine) -> Tally:
    sources = filesystem.list_input_files(patterns).sources
    opened = [open_file(IdentifiedFile(source, "", ""), store=store) for source in sources]
    small = replace(engine, part_chunks=1, chunk_bytes=min(engine.chunk_bytes, _CHUNK_BYTES))
    items = [(opened_file, chunk) for opened_file in opened for chunk in split_file(opened_file, small, 0)]
    function = partial(
        _tally_chunk, store=store, request=request, lookup=request.lookup(store), chunk_bytes=engine.chunk_bytes
    )
    tallies = map_items("tally", items, function=function, engine=engine)
    if any(chunk_tally is None for chunk_tally in tallies):
        raise _ConflictingParts
    return _merge_chunks(tallies, store, request)


def _tally_chunk(
    item: tuple[OpenedFile, Chunk], *, store: Store, request: _TallyRequest, lookup: Ints, chunk_bytes: int
) -> _ChunkTally | None:
    opened, chunk = item
    n_states = request.n_states
    ids, pieces = collect_kept_pieces(parse_chunk(opened, chunk, store, chunk_bytes))
    rows = join_parsed_rows(pieces or [no_rows(store.layout)])
    names = tuple(ids)
    if len(names) * n_states**2 > _MAX_CELLS:
        return None
    if request.counted_states is None and (sorted_tally := _tally_sorted(names, rows, store, n_states, lookup)):
        return sorted_tally
    household, time = rows.household.astype(np.int64), rows.time.astype(np.int64)
    touched = household_day_key(household, time // SLOTS)
    at_edge = (touched == touched[0]) | (touched == touched[-1]) if len(touched) else np.zeros(0, bool)
    inner = _as_slice(np.flatnonzero(~at_edge))
    edge = _stored_rows(names, rows, np.flatnonzero(at_edge))
    deduplicated = deduplicate_rows(
        _stored_rows(names, rows, inner), complete_channels=store.layout.complete_channels(store.rules)
    )
    keys = distinct_keys(touched[inner])
    energy, readings = daily_totals(request.apply_states(deduplicated), keys)
    state = _state_of_readings(store, deduplicated, lookup)
    runs, counts = runs_and_counts(
        deduplicated.household, deduplicated.time, state, households=len(names), n_states=n_states
    )
    return _ChunkTally(names, keys, energy, readings, counts, runs, edge)


def _tally_sorted(
    names: tuple[str, ...], rows: ParsedRows, store: Store, n_states: int, lookup: Ints
) -> _ChunkTally | None:
    """Return the tally of rows of one channel that are sorted by household and time, as published files are.

    None for other rows, and if a half-hour may have two passes. Only repeated rows are deduplicated.
    """
    channels = store.layout.complete_channels(store.rules)
    if not len(rows.row) or store.layout.width > 1 or SINGLE_CHANNEL[0] not in channels or rows.channel.any():
        return None
    steps = time_steps(rows)
    days = int(rows.time.min()) // SLOTS, int(rows.time.max()) // SLOTS
    if steps.min(initial=1) < 0 or _has_repeated_slots(store.layout, *days):
        return None
    first, last = _inner_rows(rows)
    inner, repeated = rows.select(slice(first, last)), np.flatnonzero(steps[first : last - 1] == 0)
    deduplicated = deduplicate_rows(
        _stored_rows(names, inner, np.union1d(repeated, repeated + 1)), complete_channels=channels
    )
    rejected = np.searchsorted(inner.row, np.sort(deduplicated.rejected_row))
    keys, energy, readings = sorted_daily_totals(inner, rejected)
    if len(rejected):
        inner = inner.without(rejected)
        steps = time_steps(inner)
    else:
        steps = steps[first : last - 1]
    runs, counts = _count_sorted(inner, steps, lookup, shape=(len(names), n_states, n_states))
    edge = _stored_rows(names, rows, np.append(np.arange(first), np.arange(last, len(rows.row))))
    return _ChunkTally(names, keys, energy, readings, counts, runs, edge)


def _inner_rows(rows: ParsedRows) -> tuple[int, int]:
    """Return where the second household-day of sorted rows begins, and the last one; twice the end if there is one."""
    (first_household, last_household), (first_day, last_day) = rows.household[[0, -1]], rows.time[[0, -1]] // SLOTS
    of_first = rows.time[: np.searchsorted(rows.household, first_household, side="right")]
    first = int(np.searchsorted(of_first, (first_day + 1) * SLOTS))
    before_last = int(np.searchsorted(rows.household, last_household))
    last = before_last + int(np.searchsorted(rows.time[before_last:], last_day * SLOTS))
    return (first, last) if first <= last else (len(rows.row), len(rows.row))


def _count_sorted(rows: ParsedRows, steps: Ints, lookup: Ints, *, shape: tuple[int, int, int]) -> tuple[Ints, Ints]:
    """Return runs and transitions, as `runs_and_counts`, of sorted rows (m) with these steps (m - 1) between them."""
    if not len(rows.row):
        return np.zeros((0, 5), np.int64), np.zeros(shape, np.int64)
    households, n_states, _ = shape
    cells = households * n_states**2
    state = lookup.astype(np.min_scalar_type(n_states**2)).take(rows.energy_wh[:, 0])
    pair = state[:-1] * state.dtype.type(n_states) + state[1:]
    cell = np.multiply(rows.household[1:], n_states**2, dtype=np.int64)
    cell += pair
    ends = np.flatnonzero(steps != 1)
    cell[ends] = cells  # no transition: counted in a cell of its own
    counts = np.bincount(cell, minlength=cells + 1)[:cells]
    starts, ends = np.append(0, ends + 1), np.append(ends, len(state) - 1)
    runs = (rows.household[starts], rows.time[starts], state[starts], rows.time[ends], state[ends])
    return np.stack([column.astype(np.int64) for column in runs], axis=1), counts.reshape(shape)


@cache
def _has_repeated_slots(layout: Layout, first_day: int, last_day: int) -> bool:
    return any(layout.repeated_slots(date_of_day(number)) for number in range(first_day, last_day + 1))


def _as_slice(indices: Ints) -> Ints | slice:
    """Return contiguous indices as a slice, which copies nothing; in published files they are contiguous."""
    if len(indices) and indices[-1] - indices[0] + 1 == len(indices):
        return slice(int(indices[0]), int(indices[-1]) + 1)
    return indices


def _stored_rows(names: tuple[str, ...], rows: ParsedRows, indices: Ints | slice) -> StoredRows:
    part = rows.select(indices)
    return StoredRows(
        names,
        part.household.astype(np.int64),
        part.channel.astype(np.int64),
        part.time.astype(np.int64),
        np.zeros(len(part.row), np.int64),
        part.row.astype(np.int64),
        part.energy_wh.astype(np.int64),
    )


def _state_of_readings(store: Store, readings: Readings, lookup: Ints) -> Ints:
    """Return the state of each reading, -1 for a half-hour with two passes."""
    bounded = np.minimum(readings.energy_wh, len(lookup) - 1)
    state: Ints = lookup[bounded]
    twice = repeated_half_hours(store.layout, readings.time)
    return np.where(twice, NO_STATE, state) if twice.any() else state


def _merge_chunks(tallies: Sequence[_ChunkTally], store: Store, request: _TallyRequest) -> Tally:
    ids = tuple(sorted({name for chunk_tally in tallies for name in chunk_tally.ids}))
    code_by_id = {name: code for code, name in enumerate(ids)}
    codes = [np.array([code_by_id[name] for name in chunk_tally.ids], np.int64) for chunk_tally in tallies]
    edge = deduplicate_rows(
        _join_edges(ids, tallies, codes, store), complete_channels=store.layout.complete_channels(store.rules)
    )
    counts = np.zeros((len(ids), request.n_states, request.n_states), np.int64)
    for chunk_tally, code in zip(tallies, codes, strict=True):
        counts[code] += chunk_tally.counts
    keys = [_renumber_keys(chunk_tally.key, code) for chunk_tally, code in zip(tallies, codes, strict=True)]
    edge_keys = distinct_keys(household_day_key(edge.household, edge.time // SLOTS))
    energy, readings = daily_totals(request.apply_states(edge), edge_keys)
    key = np.concatenate([edge_keys, *keys])
    order = np.argsort(key, kind="stable")
    if not is_first_of_key(key[order]).all():
        raise _ConflictingParts
    state = _state_of_readings(store, edge, request.lookup(store))
    single = np.stack([edge.household, edge.time, state, edge.time, state], axis=1)
    join_runs(counts, np.concatenate([single, *map(_renumber_runs, tallies, codes)]))
    energy = np.concatenate([energy, *(chunk_tally.energy_wh for chunk_tally in tallies)])[order]
    readings = np.concatenate([readings, *(chunk_tally.readings for chunk_tally in tallies)])[order]
    household, day = split_household_day_key(key[order])
    used = readings > 0
    return Tally(ids, household[used], day[used], energy[used], readings[used], counts)


def _join_edges(
    ids: tuple[str, ...], tallies: Sequence[_ChunkTally], codes: Sequence[Ints], store: Store
) -> StoredRows:
    """Return the first and last rows of all chunks, numbered in order, so that the first of equal rows is kept."""
    edges = [
        replace(
            chunk_tally.edge,
            household=code[chunk_tally.edge.household] if len(code) else chunk_tally.edge.household,
            row=(part << 32) | chunk_tally.edge.row,
        )
        for part, (chunk_tally, code) in enumerate(zip(tallies, codes, strict=True))
    ]
    return join_rows(ids, edges, width=store.layout.width)


def _renumber_keys(key: Ints, codes: Ints) -> Ints:
    household, day = split_household_day_key(key)
    return household_day_key(codes[household], day) if len(codes) else key


def _renumber_runs(chunk_tally: _ChunkTally, codes: Ints) -> Ints:
    runs = chunk_tally.runs.copy()
    runs[:, 0] = codes[runs[:, 0]] if len(codes) else runs[:, 0]
    return runs


def _tally_by_store(store: Store, patterns: Iterable[str], request: _TallyRequest, engine: Engine) -> Tally:
    delivery = ingest(store, list(patterns), engine=engine)
    months = [load_month_readings(store, month, delivery.contents) for month in delivery.months]
    ids = tuple(sorted({name for month in months for name in month.ids}))
    code_by_id = {name: code for code, name in enumerate(ids)}
    household = np.concatenate(
        [_NONE, *(np.array([code_by_id[name] for name in m.ids] or [0], np.int64)[m.household] for m in months)]
    )
    time, energy = (np.concatenate([_NONE, *(getattr(m, name) for m in months)]) for name in ("time", "energy_wh"))
    order = np.lexsort((time, household))
    readings = Readings(ids, household[order], time[order], energy[order], _NONE, _NONE, _NONE)
    state = _state_of_readings(store, readings, request.lookup(store))
    _, counts = runs_and_counts(
        readings.household, readings.time, state, households=len(ids), n_states=request.n_states
    )
    keys = distinct_keys(household_day_key(readings.household, readings.time // SLOTS))
    codes, day = split_household_day_key(keys)
    return Tally(ids, codes, day, *daily_totals(request.apply_states(readings), keys), counts)
