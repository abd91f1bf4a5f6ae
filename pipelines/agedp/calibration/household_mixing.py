"""TRANSITIONS -> how fast each household's chain mixes, from the counts of that household alone.

A household counts as never mixing, with total variation 1 at every age, if it has a state with fewer than `min_visits`
transitions into or out of it, no transition at all, one state only, or a chain that is not irreducible.

A private selection (`household_mixing`) protects the readings of one household, so it must know how they change what is
counted. Its households are bounded one by one: the figures of one do not depend on the readings of any other, to the
last bit. What all of them share is public: the settings, the ages, and the number n of households on the roster, among
which a sampling bound divides its failure probability. Blocks of them are tasks of the engine.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from agedp.calibration.estimate import Transitions
from agedp.compute.engine import household_blocks, map_blocks
from agedp.compute.engine_settings import ONE_THREAD, Engine
from agedp_data.arrays import Floats, filled_kernel
from agedp_data.config.model_section import EstimatedModel
from agedp_data.datasets.validation import Flags, Ints
from agedp_data.errors import ChainError
from agedp_data.markov.confidence import sampling_bound
from agedp_data.markov.cyclic import ascending_products, cyclic_kernels, merge_phases, pool_counts
from agedp_data.markov.cyclic_inference import cyclic_sampling_bound
from agedp_data.markov.mixing import (
    is_reversible,
    max_total_variation,
    reversibilised_bound,
    spectral_bound,
    spectral_gap,
    total_variation_forward,
)
from agedp_data.markov.reversible import reversible_fit_bound
from agedp_data.markov.transitions import stationary, transition_matrix

_BATCH = 128


@dataclass(frozen=True, slots=True)
class HouseholdMixing:
    """How each of h households mixes (confidential).

    Attributes:
        mixes: shape (h,) bool; a household that does not mix reliably has total variation 1.
        distances: total variation at T ages, shape (h, T): of the reversed chain, of both directions if losses compose;
            by the sampling bound if the model has one.
        curves: as in `PopulationBound`, at the same ages.
        groups: shape (h, phases), which phases of a cyclic chain share a kernel.
    """

    mixes: Flags
    distances: Floats
    curves: Mapping[str, Floats]
    groups: Ints | None = None


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
    return _concatenated(map_blocks("bounds", blocks, function=of_block, engine=engine))


def _mixing_one_by_one(
    transitions: Transitions, *, model: EstimatedModel, ages: Ints, households: int
) -> HouseholdMixing:
    return _concatenated(
        [
            _mixing_of_one(transitions.block(slice(household, household + 1)), model, ages, households=households)
            for household in range(len(transitions.readings))
        ]
    )


def _concatenated(parts: Sequence[HouseholdMixing]) -> HouseholdMixing:
    groups = [part.groups for part in parts if part.groups is not None]
    return HouseholdMixing(
        np.concatenate([part.mixes for part in parts]),
        np.concatenate([part.distances for part in parts]),
        {name: np.concatenate([part.curves[name] for part in parts]) for name in parts[0].curves},
        np.concatenate(groups) if groups else None,
    )


def _mixing_of_one(transitions: Transitions, model: EstimatedModel, ages: Ints, *, households: int) -> HouseholdMixing:
    """Return how one household mixes; one whose chain bounds nothing in some direction does not mix."""
    try:
        return _bounded_mixing(transitions, model, ages, households=households)
    except ChainError:
        nothing = Transitions(
            np.zeros_like(transitions.counts),
            transitions.readings,
            transitions.gaps,
            {steps: np.zeros_like(counts) for steps, counts in transitions.subsampled.items()},
        )
        return _bounded_mixing(nothing, model, ages, households=households)


def _bounded_mixing(transitions: Transitions, model: EstimatedModel, ages: Ints, *, households: int) -> HouseholdMixing:
    counts, groups = transitions.counts, None
    if model.chain == "cyclic":
        groups, mixes = merge_household_phases(counts, model.min_visits)
        directions = ["backward", *(["forward"] if composes(model) else [])]
        distances = [_cyclic_distances(counts, groups, mixes, ages, direction) for direction in directions]
        curves = {"total_variation": distances[0]}
    else:
        mixes = mixing_households(counts, min_visits=model.min_visits)
        curves = mixing_curves(counts, mixes, ages)
        distances = [curves["total_variation"]]
        if composes(model):
            distances.append(_forward_distances(counts, mixes, ages))
    if model.confidence == "sampling-bound":
        tables = {1: counts, **transitions.subsampled}
        distances = [sampling_distances(tables, mixes, groups, model, ages, households=households)]
        curves["sampling_bound"] = distances[0]
        if composes(model):
            reversed_tables = {steps: time_reversed(table, model) for steps, table in tables.items()}
            distances.append(sampling_distances(reversed_tables, mixes, groups, model, ages, households=households))
    return HouseholdMixing(mixes, np.max(distances, axis=0), curves, groups)


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
    shape = (len(counts), len(ages))
    names = ["total_variation", "reversibilised", "spectral", "reversible_fit"]
    curves: dict[str, Floats] = {name: np.ones(shape) for name in names}
    curves |= {"spectral_gap": np.zeros(len(counts))}
    for batch in _batches(np.flatnonzero(mixes)):
        backward = transition_matrix(np.swapaxes(counts[batch], 1, 2), smoothing=0)
        curves["total_variation"][batch] = total_variation_forward(backward, ages)
        curves["reversibilised"][batch] = reversibilised_bound(backward, ages)
        curves["spectral_gap"][batch] = spectral_gap(backward)
        reversible = is_reversible(backward)
        curves["spectral"][batch] = np.nan  # not reversible: the paper's bound does not apply, which is what NaN says
        if reversible.any():
            curves["spectral"][batch[reversible]] = spectral_bound(backward[reversible], ages)
        if "reversible_fit" in curves:
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
        kernels = cyclic_kernels(counts[i], groups[i], direction=direction)
        for age, (_, products) in enumerate(ascending_products(kernels, ages, direction=direction)):
            is_present = ~np.isnan(products).all(axis=(-1, -2))
            distances[i, age] = max_total_variation(filled_kernel(products[is_present])).max()
    return distances


def merge_household_phases(counts: Ints, min_visits: int) -> tuple[Ints, Flags]:
    """Return which phases of each household (h, p) share a kernel, and whether it mixes reliably (h,)."""
    groups, mixes = np.zeros(counts.shape[:2], np.int64), np.zeros(len(counts), bool)
    for i, household_counts in enumerate(counts):
        groups[i], has_visits = merge_phases(household_counts, min_visits=min_visits)
        mixes[i] = has_visits and _has_all_rows(household_counts, groups[i])
    return groups, mixes


def _has_all_rows(counts: Ints, groups: Ints) -> bool:
    """Return whether each state that a phase enters in the counts has a row there."""
    try:
        kernels = cyclic_kernels(counts, groups, direction="backward")
    except ChainError:
        return False
    entered = np.roll(pool_counts(counts, groups).sum(axis=-2), 1, axis=0) > 0
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
        table_groups = {
            steps: merge_household_phases(table, model.min_visits)[0] for steps, table in mixing_tables.items()
        }
        distances[mixing] = cyclic_sampling_bound(mixing_tables, table_groups, ages, level=level, households=households)
    elif len(mixing):
        distances[mixing] = sampling_bound(mixing_tables, ages, level=level, households=households)
    return distances


def time_reversed(counts: Ints, model: EstimatedModel) -> Ints:
    """Return the counts of the series in reversed time, whose reversed chain is the forward one.

    What left phase p for p + 1 leaves, on a clock that runs backwards, phase -(p + 1).
    """
    transposed = np.swapaxes(counts, -1, -2)
    return transposed[:, ::-1] if model.chain == "cyclic" else transposed
