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
from agedp.compute.engine import BLOCKS_AT_ONCE, household_blocks, map_items
from agedp.compute.engine_settings import ONE_THREAD, Engine
from agedp_data.arrays import Floats, filled_kernel
from agedp_data.config.model_section import EstimatedModel
from agedp_data.datasets.validation import SLOTS, Flags, Ints
from agedp_data.errors import ChainError, RunFileError
from agedp_data.leakage import population_bound
from agedp_data.leakage.bound_table import LOSS_GRID, LeakageBound
from agedp_data.leakage.exact import with_slack
from agedp_data.leakage.population_bound import HOUSEHOLDS_PER_BATCH, UpperHulls
from agedp_data.markov import cyclic
from agedp_data.markov.confidence import sampling_bound
from agedp_data.markov.mixing import (
    is_reversible,
    max_total_variation,
    reversibilised_bound,
    reversible_fit_bound,
    spectral_bound,
    spectral_gap,
    total_variation_forward,
)
from agedp_data.markov.transitions import ascending_products, stationary, transition_matrix

# --------------------------------------------------------------------------------------------------
# TRANSITIONS -> how fast each household's chain mixes, from the counts of that household alone.
#
# A household counts as never mixing, with total variation 1 at every age, if it has a state with fewer than
# `min_visits` transitions into or out of it, no transition at all, one state only, or a chain that is not irreducible.
#
# A private selection (`member_selection`) protects the readings of one household, so it must know how they change what
# is counted. Its households are bounded one by one: the figures of one do not depend on the readings of any other, to
# the last bit. What all of them share is public: the settings, the ages, and the number n of households on the roster,
# among which a sampling bound divides its failure probability. Blocks of them are tasks of the engine.
# --------------------------------------------------------------------------------------------------

_BATCH = 128


@dataclass(frozen=True, slots=True)
class HouseholdMixing:
    """How each of h households mixes at T ages (confidential).

    Attributes:
        mixes: shape (h,) bool; a household that does not mix reliably has total variation 1.
        curves: as in `PopulationBound`, at these ages.
        groups: shape (h, phases), which phases of a cyclic chain share a kernel.
        forward: total variation in the forward direction, shape (h, T), if losses compose; by the sampling bound if the
            model has one, else none where the bound of a population follows from hulls.
        hulls: backward upper hulls of the cyclic chains, for the bound of a population.
    """

    mixes: Flags
    curves: Mapping[str, Floats]
    groups: Ints | None = None
    forward: Floats | None = None
    hulls: UpperHulls | None = None

    @property
    def distances(self) -> Floats:
        """Return the total variation, of both directions if losses compose; by the sampling bound if there is one."""
        backward = self.curves.get("sampling_bound", self.curves["total_variation"])
        return backward if self.forward is None else np.maximum(backward, self.forward)


def composes(model: EstimatedModel) -> bool:
    """Return whether losses compose, in both directions."""
    return model.assume == "markov"


def household_mixing(
    transitions: Transitions, model: EstimatedModel, ages: Ints, *, engine: Engine = ONE_THREAD
) -> HouseholdMixing:
    """Return how each household mixes, each from its own counts alone.

    Args:
        transitions: of the n households on the roster, all of which a sampling bound holds for at once.
        model: the model.
        ages: shape (T,), ascending [steps].
        engine: runs a task for each block of households.
    """
    households = len(transitions.readings)
    blocks = [transitions.block(block) for block in household_blocks(households)]
    of_block = partial(_mixing_one_by_one, model=model, ages=ages, households=households)
    return _concatenated(map_items("bounds", blocks, function=of_block, engine=engine, at_once=BLOCKS_AT_ONCE))


def _mixing_one_by_one(
    transitions: Transitions, *, model: EstimatedModel, ages: Ints, households: int
) -> HouseholdMixing:
    mixing, parts = partial(_mixing, model=model, ages=ages, households=households), []
    for household in range(len(transitions.readings)):
        of_one = transitions.block(slice(household, household + 1))
        try:
            parts.append(mixing(of_one))
        except ChainError:  # a chain that bounds nothing in some direction does not mix
            parts.append(mixing(of_one.mapped(np.zeros_like)))
    return _concatenated(parts)


def _concatenated(parts: Sequence[HouseholdMixing]) -> HouseholdMixing:
    groups = [part.groups for part in parts if part.groups is not None]
    forward = [part.forward for part in parts if part.forward is not None]
    return HouseholdMixing(
        np.concatenate([part.mixes for part in parts]),
        {name: np.concatenate([part.curves[name] for part in parts]) for name in parts[0].curves},
        np.concatenate(groups) if groups else None,
        np.concatenate(forward) if forward else None,
    )


def _mixing(
    transitions: Transitions, *, model: EstimatedModel, ages: Ints, households: int, with_hulls: bool = False
) -> HouseholdMixing:
    """Return how some of the `households` households mix, `with_hulls` what the bound of a population needs of them."""
    counts, groups, hulls, forward = transitions.counts, None, None, None
    has_forward = composes(model) and not with_hulls  # an error there tells too that a household does not mix
    if model.chain == "cyclic":
        groups, mixes = merge_household_phases(counts, model.min_visits)
        if with_hulls:
            mixing, variation = np.flatnonzero(mixes), np.ones((len(counts), len(ages)))
            hulls, variation[mixing] = _cyclic_hulls((counts[mixing], groups[mixing]), ages=ages, direction="backward")
        else:
            variation = _cyclic_distances(counts, groups, mixes, ages, "backward")
        curves = {"total_variation": variation}
        forward = _cyclic_distances(counts, groups, mixes, ages, "forward") if has_forward else None
    else:
        mixes = mixing_households(counts, min_visits=model.min_visits)
        curves = mixing_curves(counts, mixes, ages)
        forward = _forward_distances(counts, mixes, ages) if has_forward else None
    if model.confidence == "sampling-bound":
        tables = {1: counts, **transitions.subsampled}
        bounded = partial(sampling_distances, mixes=mixes, groups=groups, model=model, ages=ages, households=households)
        curves["sampling_bound"] = bounded(tables)
        if composes(model):
            forward = bounded({steps: time_reversed(table, model) for steps, table in tables.items()})
    return HouseholdMixing(mixes, curves, groups, forward, hulls)


def mixing_households(counts: Ints, *, min_visits: int) -> Flags:
    """Return which chains are irreducible with a reliable row for each of two or more states, shape (h,).

    Any other chain counts as never mixing, so that its leakage function is L(a) = a.

    Args:
        counts: transition counts, shape (h, k, k).
        min_visits: a row is reliable if its state is entered and left at least this often.
    """
    entered, left_counts = counts.sum(axis=1), counts.sum(axis=2)
    is_visited = (entered > 0) | (left_counts > 0)
    mixes = ((np.minimum(entered, left_counts) >= min_visits) | ~is_visited).all(axis=1) & (is_visited.sum(axis=1) >= 2)
    for batch in _batches(np.flatnonzero(mixes)):
        mixes[batch] = _are_irreducible(counts[batch])
    return np.asarray(mixes, bool)


def _batches(households: Ints) -> list[Ints]:
    """Return these households, by their indices, in batches whose kernels stay in a processor's cache."""
    return [households[start : start + _BATCH] for start in range(0, len(households), _BATCH)]


def _are_irreducible(counts: Ints) -> Flags:
    """Return which chains are irreducible (h,); a chain that has no stationary distribution is found by halving."""
    try:
        distribution = stationary(transition_matrix(counts, smoothing=0))
    except ChainError:
        if len(counts) == 1:
            return np.zeros(1, bool)
        half = len(counts) // 2
        return np.concatenate([_are_irreducible(counts[:half]), _are_irreducible(counts[half:])])
    return np.asarray(((distribution > 0) | (counts.sum(axis=2) == 0)).all(axis=1))


def mixing_curves(counts: Ints, mixes: Flags, ages: Ints) -> dict[str, Floats]:
    """Return per household its Delta(t) exactly and bounds of it (h, T), and its spectral gap (h,).

    All are those of the matrix of the reversed counts, as in `leakage_bound`. Reversal of the forward matrix through
    its stationary distribution is another estimator; the two agree only for long series. The bound of the reversible
    fit is indicative; a chain of pairs or of days with their week has none, because its steps have a direction.
    """
    names = ("total_variation", "reversibilised", "spectral", "reversible_fit")
    curves: dict[str, Floats] = {name: np.ones((len(counts), len(ages))) for name in names}
    curves["spectral_gap"] = np.zeros(len(counts))
    for batch in _batches(np.flatnonzero(mixes)):
        backward = transition_matrix(np.swapaxes(counts[batch], 1, 2), smoothing=0)
        curves["total_variation"][batch] = total_variation_forward(backward, ages)
        curves["reversibilised"][batch] = reversibilised_bound(backward, ages)
        curves["spectral_gap"][batch] = spectral_gap(backward)
        reversible = is_reversible(backward)
        curves["spectral"][batch] = np.nan  # not reversible: the paper's bound does not apply, which is what NaN says
        if reversible.any():
            curves["spectral"][batch[reversible]] = spectral_bound(backward[reversible], ages)
        curves["reversible_fit"][batch] = reversible_fit_bound(counts[batch], ages)
    return curves


def _forward_distances(counts: Ints, mixes: Flags, ages: Ints) -> Floats:
    distances = np.ones((len(counts), len(ages)))
    for batch in _batches(np.flatnonzero(mixes)):
        distances[batch] = total_variation_forward(transition_matrix(counts[batch], smoothing=0), ages)
    return distances


def _cyclic_distances(counts: Ints, groups: Ints, mixes: Flags, ages: Ints, direction: str) -> Floats:
    """Return the total variations of cyclic chains, maximum over the phases, shape (h, T)."""
    distances = np.ones((len(counts), len(ages)))
    for i in np.flatnonzero(mixes):
        kernels = cyclic.cyclic_kernels(counts[i], groups[i], direction=direction)
        for age, (_, products) in enumerate(ascending_products(kernels, ages, direction=direction)):
            is_present = ~np.isnan(products).all(axis=(-1, -2))
            distances[i, age] = max_total_variation(filled_kernel(products[is_present])).max()
    return distances


def merge_household_phases(counts: Ints, min_visits: int) -> tuple[Ints, Flags]:
    """Return which phases of each household (h, p) share a kernel, and whether it mixes reliably (h,)."""
    groups, mixes = np.zeros(counts.shape[:2], np.int64), np.zeros(len(counts), bool)
    for i, household_counts in enumerate(counts):
        groups[i], has_visits = cyclic.merge_phases(household_counts, min_visits=min_visits)
        mixes[i] = has_visits and _has_all_rows(household_counts, groups[i])
    return groups, mixes


def _has_all_rows(counts: Ints, groups: Ints) -> bool:
    """Return whether each state that a phase enters in the counts has a row there."""
    try:
        kernels = cyclic.cyclic_kernels(counts, groups, direction="backward")
    except ChainError:
        return False
    entered = np.roll(cyclic.pool_counts(counts, groups).sum(axis=-2), 1, axis=0) > 0
    return not bool((entered & np.isnan(kernels).all(axis=-1)).any())


def sampling_distances(
    tables: Mapping[int, Ints],
    mixes: Flags,
    groups: Ints | None,
    model: EstimatedModel,
    ages: Ints,
    *,
    households: int,
) -> Floats:
    """Return the sampling bounds (h, T) of the reversed chains of these counts, 1 for households that do not mix.

    Args:
        tables: counts by steps between readings.
        mixes: which households mix reliably, shape (h,).
        groups: phases that share a kernel, for a cyclic chain.
        model: the model.
        ages: shape (T,) [steps].
        households: number of households for which the bound holds at once.
    """
    directions = 2 if composes(model) else 1
    level, mixing = 1 - (1 - float(model.level or 0)) / directions, np.flatnonzero(mixes)
    mixing_tables = {steps: table[mixing] for steps, table in tables.items()}
    distances = np.ones((len(mixes), len(ages)))
    if len(mixing) and groups is not None:
        merged = {steps: merge_household_phases(table, model.min_visits) for steps, table in mixing_tables.items()}
        table_groups = {steps: of_table for steps, (of_table, _) in merged.items()}
        distances[mixing] = cyclic.cyclic_sampling_bound(
            mixing_tables, table_groups, ages, level=level, households=households
        )
    elif len(mixing):
        distances[mixing] = sampling_bound(mixing_tables, ages, level=level, households=households)
    return distances


def time_reversed(counts: Ints, model: EstimatedModel) -> Ints:
    """Return the counts of the series in reversed time, whose reversed chain is the forward one.

    What left phase p for p + 1 leaves, on a clock that runs backwards, phase -(p + 1).
    """
    transposed = np.swapaxes(counts, -1, -2)
    return transposed[:, ::-1] if model.chain == "cyclic" else transposed


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
    ages = published_ages
    if composes(model):
        ages = population_bound.composition_age_steps(model.ages_days, steps_per_day=steps_in_day)
    households = len(transitions.readings)
    blocks = [transitions.block(block) for block in household_blocks(households)]
    of_block = partial(_mixing, model=model, ages=ages, households=households, with_hulls=True)
    parts = map_items("bounds", blocks, function=of_block, engine=engine, at_once=BLOCKS_AT_ONCE)
    mixing = _concatenated(parts)
    mixes, curves = mixing.mixes, mixing.curves
    if model.confidence == "sampling-bound":
        bound = population_bound.leakage_bound_from_distances(
            curves["sampling_bound"],
            ages,
            LOSS_GRID,
            reliable=mixes,
            forward=mixing.forward,
            steps_per_day=steps_in_day,
        )
    elif not mixes.all():
        methods = ("total_variation",) if model.chain == "cyclic" else population_bound.BOUND_METHODS
        bound = population_bound.identity_leakage_bound(
            ages, LOSS_GRID, steps_in_day, forward=composes(model), methods=methods
        )
    elif model.chain == "cyclic":
        bound = _cyclic_bound(parts, blocks, model, ages, engine)
    else:
        bound = _homogeneous_bound(curves, transitions, model, ages, engine)
    columns = np.searchsorted(ages, published_ages)
    published = {name: curve[:, columns] if curve.ndim > 1 else curve for name, curve in curves.items()}
    return PopulationBound(replace(bound, assume=model.assume), mixes, published, mixing.groups)


def model_ages(model: EstimatedModel) -> Ints:
    """Return the ages of [model], shape (T,) [steps]."""
    return np.array(model.ages_days) * steps_per_day(model)


def _homogeneous_bound(
    curves: Mapping[str, Floats], transitions: Transitions, model: EstimatedModel, ages: Ints, engine: Engine
) -> LeakageBound:
    """Return the maximum over the chains of all households, which mix; the hulls of the slowest are sent along."""
    counts = [np.swapaxes(transitions.counts, 1, 2), *([transitions.counts] if composes(model) else [])]
    variation, blocks = curves["total_variation"], household_blocks(len(transitions.readings))
    # the households that mix most slowly at the first, a middle or the last age
    middle_and_ends = sorted({0, variation.shape[1] // 2, variation.shape[1] - 1})
    slowest = np.unique(np.argsort(-variation[:, middle_and_ends], axis=0, kind="stable")[:_SLOWEST_PER_AGE])
    known = [_hulls((table[slowest], None), ages=ages) for table in counts]  # some 20 households: no task for them
    items = [(table[block], start) for table, start in zip(counts, known, strict=True) for block in blocks]
    hulls = map_items("leakage", items, function=partial(_hulls, ages=ages), engine=engine, at_once=BLOCKS_AT_ONCE)
    directions = [start.joined(hulls[len(blocks) * i : len(blocks) * (i + 1)]) for i, start in enumerate(known)]
    bound = population_bound.leakage_bound_of_hulls(
        directions[0], ages, LOSS_GRID, steps_per_day(model), forward_hulls=[*directions, None][1]
    )
    names = [name for name in ("reversibilised", "spectral") if not np.isnan(curves[name]).any()]
    maxima = {name: np.minimum(with_slack(curves[name].max(axis=0)), 1.0) for name in names}
    return replace(bound, bounds={**bound.bounds, **maxima})


def _hulls(item: tuple[Ints, UpperHulls | None], *, ages: Ints) -> UpperHulls:
    """Return the upper hulls of the chains with these counts and of those that are known."""
    counts, known = item
    return population_bound.upper_hulls(transition_matrix(counts, smoothing=0), ages, known=known)


def _cyclic_bound(
    parts: Sequence[HouseholdMixing], blocks: Sequence[Transitions], model: EstimatedModel, ages: Ints, engine: Engine
) -> LeakageBound:
    """Return the maximum over the cyclic chains of all households, which mix."""
    backward = UpperHulls(len(ages)).joined([part.hulls for part in parts if part.hulls is not None])
    forward = None
    if composes(model):
        items = [(block.counts, part.groups) for block, part in zip(blocks, parts, strict=True)]
        of_block = partial(_cyclic_hulls, ages=ages, direction="forward")
        hulls = map_items("leakage", items, function=of_block, engine=engine, at_once=BLOCKS_AT_ONCE)
        forward = UpperHulls(len(ages)).joined([hull for hull, _ in hulls])
    return population_bound.leakage_bound_of_hulls(backward, ages, LOSS_GRID, phase_count(model), forward_hulls=forward)


def _cyclic_hulls(item: tuple[Ints, Ints], *, ages: Ints, direction: str) -> tuple[UpperHulls, Floats]:
    """Return the upper hulls of cyclic chains and the total variation of each, their kernels a few at a time."""
    counts, groups = item
    batches = (slice(start, start + HOUSEHOLDS_PER_BATCH) for start in range(0, len(counts), HOUSEHOLDS_PER_BATCH))
    kernels = (cyclic.cyclic_kernels(counts[batch], groups[batch], direction=direction) for batch in batches)
    return population_bound.cyclic_upper_hulls(kernels, ages, direction=direction)


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
    needed = counts_bytes(model, households)
    available = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if needed <= available:
        return
    fitting = max(2, math.isqrt(available * model.states**2 // needed))
    scope = " for each half-hour of the day" if model.chain == "cyclic" else ""
    raise RunFileError(
        f"[model] states = {model.states}: counting the transitions between them{scope} takes {_gib(needed)} of memory "
        f"for the households of this roster, and this machine has {_gib(available)}. Take about {fitting} states, or "
        "fewer households"
    )


def _gib(size: int) -> str:
    return f"{size / 2**30:,.1f} GiB"
