"""Files -> daily sums and transition counts in one pass, nothing stored: for a first look, inside the house.

With public edges a part of a file can be settled, summed and counted at once. What a part cannot know alone is its
first and its last household-day, of which the parts beside it may have rows: these rows come back as they are, are
settled together, and join the runs between them. Where any other household-day turns up twice (a delivery that is
repeated or corrected, a file in the order of time that is cut within a day), or a part has so many households that
counts of each would not fit into memory, the files go through a store instead, with the same result.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

import numpy as np

from agedp_data.chains.represented import RepresentativeValues, representative_values
from agedp_data.chains.states import states
from agedp_data.errors import InputError
from agedp_data.readers import files
from agedp_data.readers.cutting import Chunk
from agedp_data.readers.layout import SLOTS, Ints, ReadingRules, slot_step
from agedp_data.readers.settle import Readings, StoredRows, joined, settle
from pipelines.blocks import Engine, map_each
from pipelines.estimate import repeated_half_hours
from pipelines.read import blocks_of, parsed, read
from pipelines.readings.household_days import among, distinct, firsts, packed, totals, unpacked
from pipelines.readings.months import month_readings
from pipelines.readings.opening import Identified, Opened, open_file
from pipelines.readings.parts import ParsedRows, kept_of
from pipelines.readings.runs import NONE, join_runs, runs_and_counts
from pipelines.readings.store import Store

_NONE = np.zeros(0, np.int64)
_MOST_CELLS = 2**18


@dataclass(frozen=True, slots=True)
class Tally:
    """Daily sums and counts of each household (h), in the order of the ids.

    `household`, `day`, `energy_wh`, `readings` (d) say what each day comes to, by its readings or by what stands for
    their states, as was asked for; `counts` (h, k, k) are one-step transitions.
    """

    ids: tuple[str, ...]
    household: Ints
    day: Ints
    energy_wh: Ints
    readings: Ints
    counts: Ints


@dataclass(frozen=True, slots=True)
class _ChunkTally:
    """What one block alone says: household-days, counts, runs of readings, and the rows at its two ends."""

    ids: tuple[str, ...]
    key: Ints
    energy_wh: Ints
    readings: Ints
    counts: Ints
    runs: Ints
    edge: StoredRows


@dataclass(frozen=True, slots=True)
class _TallyRequest:
    """The cut points of the states, and the states that are counted in place of readings, if they are."""

    edges: Sequence[float]
    counting: RepresentativeValues | None

    @property
    def n_states(self) -> int:
        return len(self.edges) + 1

    def lookup(self, store: Store) -> Ints:
        """Return the state of every possible reading."""
        return states(np.arange(store.rules.max_half_hour_wh + 1), self.edges)

    def counted(self, found: Readings) -> Readings:
        """Return readings as they count in a day."""
        return found if self.counting is None else replace(found, energy_wh=self.counting.represent(found.energy_wh))


class _ConflictingParts(Exception):
    """Household-days that parts cannot settle alone."""


def tally(
    patterns: Sequence[str],
    *,
    dataset: str,
    edges: Sequence[float],
    rules: ReadingRules | None = None,
    values: Literal["readings", "states"] = "readings",
    engine: Engine,
) -> Tally:
    """Return daily sums and transition counts of all households in files.

    Args:
        patterns: paths, globs or URLs.
        dataset: the files' layout.
        edges: public inner cut points of the states, Wh.
        rules: what is set aside, and the columns of a "long" table.
        values: whether a day is the sum of its readings, or of what stands for their states.
        engine: how it runs.

    Raises:
        InputError: a file that cannot be understood, or readings of hours.
        ChainError: states are to be counted, and the cut points are not whole or do not rise.
    """
    chosen = ReadingRules() if rules is None else rules
    if slot_step(chosen.interval_minutes) > 1:
        raise InputError(f"[input] interval_minutes = {chosen.interval_minutes}: states are of half-hours")
    asked = _TallyRequest(edges, _public(edges) if values == "states" else None)
    with TemporaryDirectory(prefix="agedp-") as folder:
        store = Store(Path(folder) / "store", dataset, chosen)
        try:
            return _in_one_pass(store, patterns, asked, engine)
        except _ConflictingParts:
            return _through_a_store(store, patterns, asked, engine)


def _public(edges: Sequence[float]) -> RepresentativeValues:
    """Return the states of half-hours between cut points.

    Raises:
        ChainError: they are not whole, or do not rise from above 0.
    """
    whole = tuple(int(edge) for edge in edges)
    representative_values(whole if whole == tuple(edges) else edges)
    return RepresentativeValues("half-hour", whole)


def _in_one_pass(store: Store, patterns: Sequence[str], asked: _TallyRequest, engine: Engine) -> Tally:
    sources = files.list_sources(patterns).sources
    opened = [open_file(Identified(source, "", ""), store=store) for source in sources]
    small = replace(engine, part_blocks=1)  # what fits the caches is quick
    items = [(one, block) for one in opened for block in blocks_of(one, small, 0)]
    each = partial(_piece, store=store, asked=asked, lookup=asked.lookup(store), block_bytes=engine.block_bytes)
    pieces = map_each("tally", items, each=each, engine=engine)
    if any(piece is None for piece in pieces):
        raise _ConflictingParts
    return _merged(pieces, store, asked)


def _piece(
    item: tuple[Opened, Chunk], *, store: Store, asked: _TallyRequest, lookup: Ints, block_bytes: int
) -> _ChunkTally | None:
    one, block = item
    n_states = asked.n_states
    ids, whole = kept_of(store.layout, parsed(one, block, store, block_bytes))
    names = tuple(ids)
    if len(names) * n_states**2 > _MOST_CELLS:
        return None
    household, time = whole.household.astype(np.int64), whole.time.astype(np.int64)
    touched = packed(household, time // SLOTS)
    at_edge = among(touched, np.unique(touched[[0, -1]])) if len(touched) else np.zeros(0, bool)
    inner = _stretch(np.flatnonzero(~at_edge))
    edge = _rows(names, whole, np.flatnonzero(at_edge))
    found = settle(_rows(names, whole, inner), complete=store.layout.complete(store.rules))
    there = distinct(touched[inner])
    energy, readings = totals(asked.counted(found), there)
    state = _states(store, found, lookup)
    runs, counts = runs_and_counts(found.household, found.time, state, households=len(names), n_states=n_states)
    return _ChunkTally(names, there, energy, readings, counts, runs, edge)


def _stretch(which: Ints) -> Ints | slice:
    """Return places as a slice if they are one, which moves nothing: as published, the edges are at the ends."""
    if len(which) and which[-1] - which[0] + 1 == len(which):
        return slice(int(which[0]), int(which[-1]) + 1)
    return which


def _rows(names: tuple[str, ...], whole: ParsedRows, which: Ints | slice) -> StoredRows:
    part = whole.of(which)
    return StoredRows(
        names,
        part.household.astype(np.int64),
        part.channel.astype(np.int64),
        part.time.astype(np.int64),
        np.zeros(len(part.row), np.int64),
        part.row.astype(np.int64),
        part.energy_wh.astype(np.int64),
    )


def _states(store: Store, found: Readings, lookup: Ints) -> Ints:
    """Return the state of each reading, -1 where a half-hour holds two passes."""
    bounded = np.minimum(found.energy_wh, len(lookup) - 1)
    state: Ints = lookup[bounded]
    twice = repeated_half_hours(store.layout, found.time)
    return np.where(twice, NONE, state) if twice.any() else state


def _merged(pieces: Sequence[_ChunkTally], store: Store, asked: _TallyRequest) -> Tally:
    ids = tuple(sorted({name for piece in pieces for name in piece.ids}))
    place = {name: code for code, name in enumerate(ids)}
    codes = [np.array([place[name] for name in piece.ids], np.int64) for piece in pieces]
    edge = settle(_edges(ids, pieces, codes, store), complete=store.layout.complete(store.rules))
    counts = np.zeros((len(ids), asked.n_states, asked.n_states), np.int64)
    for piece, code in zip(pieces, codes, strict=True):
        counts[code] += piece.counts
    keys = [_moved(piece.key, code) for piece, code in zip(pieces, codes, strict=True)]
    there = distinct(packed(edge.household, edge.time // SLOTS))
    energy, readings = totals(asked.counted(edge), there)
    key = np.concatenate([there, *keys])
    order = np.argsort(key, kind="stable")
    if not firsts(key[order]).all():
        raise _ConflictingParts
    state = _states(store, edge, asked.lookup(store))
    single = np.stack([edge.household, edge.time, state, edge.time, state], axis=1)
    join_runs(counts, np.concatenate([single, *map(_renamed, pieces, codes)]))
    energy = np.concatenate([energy, *(piece.energy_wh for piece in pieces)])[order]
    readings = np.concatenate([readings, *(piece.readings for piece in pieces)])[order]
    household, day = unpacked(key[order])
    used = readings > 0
    return Tally(ids, household[used], day[used], energy[used], readings[used], counts)


def _edges(ids: tuple[str, ...], pieces: Sequence[_ChunkTally], codes: Sequence[Ints], store: Store) -> StoredRows:
    """Return the rows at the ends of all parts; parts are numbered in order, so the first of equal rows is kept."""
    edges = [
        replace(
            piece.edge,
            household=code[piece.edge.household] if len(code) else piece.edge.household,
            row=(part << 32) | piece.edge.row,
        )
        for part, (piece, code) in enumerate(zip(pieces, codes, strict=True))
    ]
    return joined(ids, edges, width=store.layout.width)


def _moved(key: Ints, codes: Ints) -> Ints:
    household, day = unpacked(key)
    return packed(codes[household], day) if len(codes) else key


def _renamed(piece: _ChunkTally, codes: Ints) -> Ints:
    runs = piece.runs.copy()
    runs[:, 0] = codes[runs[:, 0]] if len(codes) else runs[:, 0]
    return runs


def _through_a_store(store: Store, patterns: Iterable[str], asked: _TallyRequest, engine: Engine) -> Tally:
    delivery = read(store, list(patterns), engine=engine)
    months = [month_readings(store, month, delivery.contents) for month in delivery.months]
    ids = tuple(sorted({name for month in months for name in month.ids}))
    place = {name: code for code, name in enumerate(ids)}
    household = np.concatenate(
        [_NONE, *(np.array([place[name] for name in m.ids] or [0], np.int64)[m.household] for m in months)]
    )
    time, energy = (np.concatenate([_NONE, *(getattr(m, name) for m in months)]) for name in ("time", "energy_wh"))
    order = np.lexsort((time, household))
    whole = Readings(ids, household[order], time[order], energy[order], _NONE, _NONE, _NONE)
    state = _states(store, whole, asked.lookup(store))
    _, counts = runs_and_counts(whole.household, whole.time, state, households=len(ids), n_states=asked.n_states)
    there = distinct(packed(whole.household, whole.time // SLOTS))
    codes, day = unpacked(there)
    return Tally(ids, codes, day, *totals(asked.counted(whole), there), counts)
