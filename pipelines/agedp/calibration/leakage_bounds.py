"""TRANSITIONS -> the leakage bound of the population and the curves of each household.

Ages are steps since the reading that a mechanism used: half-hours since the end of the input's day, or for a chain of
days the whole days since then, without the day that has begun. `ages_days` are whole days in both cases. For a cyclic
chain each age is therefore a number of turns of the clock, and the maximum over the 48 phases is taken.

`confidence = "plug-in"` uses the chains as counted. `"sampling-bound"` uses a bound that holds for all households at
once with the level of the run file: total variations (`sampling_bound`, `cyclic_sampling_bound`), and the leakage that
these permit (`leakage_bound_from_distances`). Half-hourly chains are bounded a second time from the subsampled series
(`subsampling_steps`): every fifth half-hour, which visits all hours of the day; for cyclic chains every sixth, which
divides the day.

A household whose rows are not reliable is credited with no mixing under either setting: see `bound`.

With assume = "markov" losses compose. The bound is then tabulated in the forward direction too, for temporal leakage,
at the additional steps of `composition_age_steps` (for a cyclic chain the maximum over all half-hours). The level then
holds for both directions at once: each direction gets half of the failure probability.

The households are bounded in blocks, one task of the engine for each. First the gaps, distances and bounds of each
household; then, if all of them mix, the upper hulls, which begin with those of the slowest households. Every operation
treats a household apart, or takes a maximum, so no number depends on the blocks.

The memory that the counts of a model take is checked before any reading is read. A chain is counted for every household
of the roster: a table of k x k, for each half-hour of the day if it is cyclic, and for each subsampled series of a
sampling bound. In memory at once: the counts, those of the households with readings, and for a homogeneous chain both
directions on their way to the tasks.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

import numpy as np

from agedp.calibration.estimate import Transitions
from agedp.calibration.household_mixing import (
    composes,
    merge_household_phases,
    mixing_curves,
    mixing_households,
    sampling_distances,
    time_reversed,
)
from agedp.compute.engine import household_blocks, map_blocks
from agedp.compute.engine_settings import ONE_THREAD, Engine
from agedp_data.arrays import Floats
from agedp_data.config.model_section import EstimatedModel
from agedp_data.datasets.validation import SLOTS, Flags, Ints
from agedp_data.errors import RunFileError
from agedp_data.leakage.bound_table import LOSS_GRID, LeakageBound
from agedp_data.leakage.exact import with_slack
from agedp_data.leakage.population_bound import (
    BOUND_METHODS,
    HOUSEHOLDS_PER_BATCH,
    composition_age_steps,
    identity_leakage_bound,
    leakage_bound_from_distances,
    leakage_bound_of_hulls,
)
from agedp_data.leakage.upper_hulls import UpperHulls, cyclic_upper_hulls, upper_hulls
from agedp_data.markov.cyclic import cyclic_kernels
from agedp_data.markov.transitions import transition_matrix

_SLOWEST_PER_AGE = 8


@dataclass(frozen=True, slots=True)
class PopulationBound:
    """Leakage bound of a population, and per household (h) whether it mixes reliably, and its curves.

    Attributes:
        leakage_bound: maximum over all households.
        mixes: shape (h,) bool; a household that does not mix reliably is credited with no age.
        curves: "total_variation" (h, T) at the model's ages; for homogeneous chains also "reversibilised" and
        "spectral"
            (h, T; NaN where the chain is not reversible) and "spectral_gap" (h,); "sampling_bound" (h, T) if
            configured; "reversible_fit" (h, T), indicative, unless a state is that of several days.
        groups: shape (h, phases), which phases of a cyclic chain share a kernel.
    """

    leakage_bound: LeakageBound
    mixes: Flags
    curves: Mapping[str, Floats]
    groups: Ints | None = None


def steps_per_day(model: EstimatedModel) -> int:
    """Return the number of steps of the model's chain in a day: 1, or 48 for a chain of half-hours."""
    return 1 if model.step == "day" else SLOTS


def phase_count(model: EstimatedModel) -> int:
    """Return the number of kernels of a household's chain: one, or one for each half-hour of the day."""
    return SLOTS if model.chain == "cyclic" else 1


def subsampling_steps(model: EstimatedModel) -> tuple[int, ...]:
    """Return the steps of the subsampled series that a sampling bound also uses; none for a chain of days."""
    if model.confidence == "plug-in" or model.step == "day":
        return ()
    return (6,) if model.chain == "cyclic" else (5,)


def bound_population(
    transitions: Transitions, model: EstimatedModel, *, engine: Engine = ONE_THREAD
) -> PopulationBound:
    """Compute the leakage bound of the households with these transitions, and the curves of each.

    The leakage bound is the maximum over households, rounded up, and becomes public with the model; the curves are
    confidential. A model that assumes "markov" is bounded at more ages than [model] lists, for compositions. The result
    is the same to the last bit for any engine.
    """
    published_ages, steps_in_day = model_ages(model), steps_per_day(model)
    ages = composition_age_steps(model.ages_days, steps_per_day=steps_in_day) if composes(model) else published_ages
    households = len(transitions.readings)
    blocks = [transitions.block(block) for block in household_blocks(households)]
    bound_block = partial(_bound_block, model=model, ages=ages, households=households)
    parts = map_blocks("bounds", blocks, function=bound_block, engine=engine)
    mixes = np.concatenate([part.mixes for part in parts])
    curves = {name: np.concatenate([part.curves[name] for part in parts]) for name in parts[0].curves}
    groups = [part.groups for part in parts if part.groups is not None]
    if model.confidence == "sampling-bound":
        forward = [part.forward for part in parts if part.forward is not None]
        bound = leakage_bound_from_distances(
            curves["sampling_bound"],
            ages,
            LOSS_GRID,
            reliable=mixes,
            forward=np.concatenate(forward) if forward else None,
            steps_per_day=steps_in_day,
        )
    elif not mixes.all():
        methods = ("total_variation",) if model.chain == "cyclic" else BOUND_METHODS
        bound = identity_leakage_bound(ages, LOSS_GRID, steps_in_day, forward=composes(model), methods=methods)
    elif model.chain == "cyclic":
        bound = _cyclic_bound(parts, blocks, model, ages, engine)
    else:
        bound = _homogeneous_bound(curves, transitions, model, ages, engine)
    columns = np.searchsorted(ages, published_ages)
    published = {name: curve[:, columns] if curve.ndim > 1 else curve for name, curve in curves.items()}
    return PopulationBound(
        replace(bound, assume=model.assume), mixes, published, np.concatenate(groups) if groups else None
    )


def model_ages(model: EstimatedModel) -> Ints:
    """Return the ages of [model], shape (T,) [steps]."""
    return np.array(model.ages_days) * steps_per_day(model)


@dataclass(frozen=True, slots=True)
class _BlockBound:
    """What one task computes of a block of households.

    Attributes:
        mixes: which households mix reliably, shape (h,).
        curves: as in `PopulationBound`, at all ages.
        groups: which phases of a cyclic chain share a kernel.
        hulls: backward upper hulls of cyclic chains.
        forward: sampling bounds (h, T) in the forward direction, if losses compose.
    """

    mixes: Flags
    curves: Mapping[str, Floats]
    groups: Ints | None = None
    hulls: UpperHulls | None = None
    forward: Floats | None = None


def _bound_block(transitions: Transitions, *, model: EstimatedModel, ages: Ints, households: int) -> _BlockBound:
    """Bound the mixing of a block of the `households` households."""
    counts, groups, hulls, forward = transitions.counts, None, None, None
    if model.chain == "cyclic":
        groups, mixes = merge_household_phases(counts, model.min_visits)
        mixing = np.flatnonzero(mixes)
        variation = np.ones((len(counts), len(ages)))
        hulls, variation[mixing] = _cyclic_hulls((counts[mixing], groups[mixing]), ages=ages, direction="backward")
        curves = {"total_variation": variation}
    else:
        mixes = mixing_households(counts, min_visits=model.min_visits)
        curves = mixing_curves(counts, mixes, ages)
    if model.confidence == "sampling-bound":
        tables = {1: counts, **transitions.subsampled}
        bounded = partial(sampling_distances, mixes=mixes, groups=groups, model=model, ages=ages, households=households)
        curves["sampling_bound"] = bounded(tables)
        if composes(model):
            forward = bounded({steps: time_reversed(table, model) for steps, table in tables.items()})
    return _BlockBound(mixes, curves, groups, hulls, forward)


def _homogeneous_bound(
    curves: Mapping[str, Floats], transitions: Transitions, model: EstimatedModel, ages: Ints, engine: Engine
) -> LeakageBound:
    """Return the maximum over the chains of all households, which mix; the hulls of the slowest are sent along."""
    counts = [np.swapaxes(transitions.counts, 1, 2), *([transitions.counts] if composes(model) else [])]
    slowest, blocks = _slowest(curves["total_variation"]), household_blocks(len(transitions.readings))
    known = [_hulls((table[slowest], None), ages=ages) for table in counts]  # some 20 households: no task for them
    items = [(table[block], start) for table, start in zip(counts, known, strict=True) for block in blocks]
    hulls = map_blocks("leakage", items, function=partial(_hulls, ages=ages), engine=engine)
    directions = [start.joined(hulls[len(blocks) * i : len(blocks) * (i + 1)]) for i, start in enumerate(known)]
    bound = leakage_bound_of_hulls(
        directions[0], ages, LOSS_GRID, steps_per_day(model), forward_hulls=[*directions, None][1]
    )
    names = [name for name in ("reversibilised", "spectral") if not np.isnan(curves[name]).any()]
    maxima = {name: np.minimum(with_slack(curves[name].max(axis=0)), 1.0) for name in names}
    return replace(bound, bounds={**bound.bounds, **maxima})


def _slowest(variation: Floats) -> Ints:
    """Return the households that mix most slowly at the first, a middle or the last age, ascending."""
    ages = sorted({0, variation.shape[1] // 2, variation.shape[1] - 1})
    return np.unique([np.argsort(-variation[:, age], kind="stable")[:_SLOWEST_PER_AGE] for age in ages])


def _hulls(item: tuple[Ints, UpperHulls | None], *, ages: Ints) -> UpperHulls:
    """Return the upper hulls of the chains with these counts and of those that are known."""
    counts, known = item
    return upper_hulls(transition_matrix(counts, smoothing=0), ages, known=known)


def _cyclic_bound(
    parts: Sequence[_BlockBound], blocks: Sequence[Transitions], model: EstimatedModel, ages: Ints, engine: Engine
) -> LeakageBound:
    """Return the maximum over the cyclic chains of all households, which mix."""
    backward = UpperHulls(len(ages)).joined([part.hulls for part in parts if part.hulls is not None])
    forward = None
    if composes(model):
        items = [(block.counts, part.groups) for block, part in zip(blocks, parts, strict=True)]
        hulls = map_blocks(
            "leakage", items, function=partial(_cyclic_hulls, ages=ages, direction="forward"), engine=engine
        )
        forward = UpperHulls(len(ages)).joined([hull for hull, _ in hulls])
    return leakage_bound_of_hulls(backward, ages, LOSS_GRID, phase_count(model), forward_hulls=forward)


def _cyclic_hulls(item: tuple[Ints, Ints], *, ages: Ints, direction: str) -> tuple[UpperHulls, Floats]:
    """Return the upper hulls of cyclic chains and the total variation of each, their kernels a few at a time."""
    counts, groups = item
    batches = (slice(start, start + HOUSEHOLDS_PER_BATCH) for start in range(0, len(counts), HOUSEHOLDS_PER_BATCH))
    kernels = (cyclic_kernels(counts[batch], groups[batch], direction=direction) for batch in batches)
    return cyclic_upper_hulls(kernels, ages, direction=direction)


_BYTES: Final = {"cyclic": 2 * 4, "homogeneous": 4 * 8}
"""Bytes of one count and the arrays derived from it, by the kind of chain."""


def counts_bytes(model: EstimatedModel, households: int) -> int:
    """Return the bytes that the counts of this many households take at their largest."""
    phases = phase_count(model)
    tables = sum(max(phases // steps, 1) for steps in (1, *subsampling_steps(model)))
    return households * tables * model.states**2 * _BYTES[model.chain]


def check_counts_fit(model: EstimatedModel, households: int) -> None:
    """Check that the counts of a model fit into the memory of this machine, before any reading is read.

    Raises:
        RunFileError: they do not; the message names a number of states that fits.
    """
    needed, available = counts_bytes(model, households), _memory()
    if needed <= available:
        return
    fitting = max(2, math.isqrt(available * model.states**2 // needed))
    scope = " for each half-hour of the day" if model.chain == "cyclic" else ""
    raise RunFileError(
        f"[model] states = {model.states}: counting the transitions between them{scope} takes {_gib(needed)} of memory "
        f"for the households of this roster, and this machine has {_gib(available)}. Take about {fitting} states, or "
        "fewer households"
    )


def _memory() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _gib(size: int) -> str:
    return f"{size / 2**30:,.1f} GiB"
