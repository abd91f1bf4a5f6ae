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

The memory that the counts of a model take is checked before any reading is read. A chain is counted for every household
of the roster: a table of k x k, for each half-hour of the day if it is cyclic, and for each subsampled series of a
sampling bound. In memory at once: the counts, those of the households with readings, and for a homogeneous chain both
directions as probabilities.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from agedp.calibration.estimate import Transitions
from agedp_data.arrays import Floats
from agedp_data.config.model_section import EstimatedModel
from agedp_data.datasets.validation import SLOTS, Flags, Ints
from agedp_data.errors import ChainError, RunFileError
from agedp_data.leakage.bound_table import LOSS_GRID, LeakageBound
from agedp_data.leakage.population_bound import (
    HOUSEHOLDS_PER_BATCH,
    composition_age_steps,
    identity_leakage_bound,
    leakage_bound,
    leakage_bound_from_distances,
    leakage_bound_of_hulls,
)
from agedp_data.leakage.upper_hulls import cyclic_upper_hulls
from agedp_data.markov.confidence import sampling_bound
from agedp_data.markov.cyclic import cyclic_kernels, merge_phases, pool_counts
from agedp_data.markov.cyclic_inference import cyclic_sampling_bound
from agedp_data.markov.mixing import reversibilised_bound, spectral_bound, spectral_gap, total_variation_forward
from agedp_data.markov.transitions import stationary, transition_matrix


@dataclass(frozen=True, slots=True)
class PopulationBound:
    """Leakage bound of a population, and per household (h) whether it mixes reliably, and its curves.

    Attributes:
        leakage_bound: maximum over all households.
        mixes: shape (h,) bool; a household that does not mix reliably is credited with no age.
        curves: "total_variation" (h, T) at the model's ages; for homogeneous chains also "reversibilised" and
        "spectral"
            (h, T; NaN where the chain is not reversible) and "spectral_gap" (h,); "sampling_bound" (h, T) if
            configured.
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


def bound_population(transitions: Transitions, model: EstimatedModel) -> PopulationBound:
    """Compute the leakage bound of the households with these transitions, and the curves of each.

    The leakage bound is the maximum over households, rounded up, and becomes public with the model; the curves are
    confidential. A model that assumes "markov" is bounded at more ages than [model] lists, for compositions.
    """
    steps_in_day = steps_per_day(model)
    published_ages = np.array(model.ages_days) * steps_in_day
    ages = composition_age_steps(model.ages_days, steps_per_day=steps_in_day) if _composes(model) else published_ages
    population = (_cyclic if model.chain == "cyclic" else _homogeneous)(transitions, model, ages)
    if model.confidence == "sampling-bound":
        population = _with_confidence(population, transitions, model, ages)
    columns = np.searchsorted(ages, published_ages)
    curves = {name: curve[:, columns] if curve.ndim > 1 else curve for name, curve in population.curves.items()}
    return replace(population, leakage_bound=replace(population.leakage_bound, assume=model.assume), curves=curves)


def _composes(model: EstimatedModel) -> bool:
    """Return whether losses compose, in both directions."""
    return model.assume == "markov"


def _homogeneous(transitions: Transitions, model: EstimatedModel, ages: Ints) -> PopulationBound:
    counts = transitions.counts
    mixes = mixing_households(counts, min_visits=model.min_visits)
    backward = transition_matrix(np.swapaxes(counts, 1, 2), smoothing=0)
    forward = transition_matrix(counts, smoothing=0) if _composes(model) else None
    steps_in_day = steps_per_day(model)
    bound = leakage_bound(backward, ages, LOSS_GRID, reliable=mixes, forward=forward, steps_per_day=steps_in_day)
    return PopulationBound(bound, mixes, _curves(counts, mixes, ages))


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
    for i in np.flatnonzero(mixes):
        mixes[i] = _is_irreducible(counts[i])
    return np.asarray(mixes, bool)


def _is_irreducible(counts: Ints) -> bool:
    try:
        distribution = stationary(transition_matrix(counts, smoothing=0))
    except ChainError:
        return False
    return bool((distribution[counts.sum(axis=1) > 0] > 0).all())


def _curves(counts: Ints, mixes: Flags, ages: Ints) -> dict[str, Floats]:
    """Return per household its Delta(t) exactly and two bounds of it (h, T), and its spectral gap (h,).

    All are those of the matrix of the reversed counts, as in `leakage_bound`. Reversal of the forward matrix through
    its stationary distribution is another estimator; the two agree only for long series.
    """
    shape = (len(counts), len(ages))
    curves: dict[str, Floats] = {name: np.ones(shape) for name in ("total_variation", "reversibilised", "spectral")}
    curves |= {"spectral_gap": np.zeros(len(counts))}
    for i in np.flatnonzero(mixes):
        backward = transition_matrix(counts[i].T, smoothing=0)
        curves["total_variation"][i] = total_variation_forward(backward, ages)
        curves["reversibilised"][i] = reversibilised_bound(backward, ages)
        curves["spectral_gap"][i] = spectral_gap(backward)
        try:
            curves["spectral"][i] = spectral_bound(backward, ages)
        except ChainError:  # not reversible: the paper's bound does not apply, which is what NaN says
            curves["spectral"][i] = np.nan
    return curves


def _cyclic(transitions: Transitions, model: EstimatedModel, ages: Ints) -> PopulationBound:
    counts = transitions.counts
    groups, mixes = _merge_household_phases(counts, model.min_visits)
    mixing = np.flatnonzero(mixes)
    phases, forward_hulls = counts.shape[1], None
    backward_hulls, distances = cyclic_upper_hulls(
        _kernel_batches(counts, groups, mixing, "backward"), ages, direction="backward"
    )
    variation = np.ones((len(counts), len(ages)))
    variation[mixing] = distances
    if not mixes.all():
        bound = identity_leakage_bound(ages, LOSS_GRID, phases, forward=_composes(model))
    else:
        if _composes(model):
            forward_hulls, _ = cyclic_upper_hulls(
                _kernel_batches(counts, groups, mixing, "forward"), ages, direction="forward"
            )
        bound = leakage_bound_of_hulls(backward_hulls, ages, LOSS_GRID, phases, forward_hulls=forward_hulls)
    return PopulationBound(bound, mixes, {"total_variation": variation}, groups)


def _merge_household_phases(counts: Ints, min_visits: int) -> tuple[Ints, Flags]:
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


def _kernel_batches(counts: Ints, groups: Ints, households: Ints, direction: str) -> Iterator[Floats]:
    """Yield the kernels of these households in batches: all together would fill the memory."""
    for start in range(0, len(households), HOUSEHOLDS_PER_BATCH):
        batch = households[start : start + HOUSEHOLDS_PER_BATCH]
        yield cyclic_kernels(counts[batch], groups[batch], direction=direction)


def _with_confidence(
    population: PopulationBound, transitions: Transitions, model: EstimatedModel, ages: Ints
) -> PopulationBound:
    """Return the population with the sampling bound at the model's level in place of the plug-in bound."""
    tables = {1: transitions.counts, **transitions.subsampled}
    backward, forward = _sampling_distances(population, tables, model, ages), None
    if _composes(model):
        forward = _sampling_distances(
            population, {steps: _time_reversed(table, model) for steps, table in tables.items()}, model, ages
        )
    steps_in_day = steps_per_day(model)
    bound = leakage_bound_from_distances(
        backward, ages, LOSS_GRID, reliable=population.mixes, forward=forward, steps_per_day=steps_in_day
    )
    return replace(population, leakage_bound=bound, curves={**population.curves, "sampling_bound": backward})


def _sampling_distances(
    population: PopulationBound, tables: Mapping[int, Ints], model: EstimatedModel, ages: Ints
) -> Floats:
    """Return the sampling bounds (h, T) of the reversed chains of these counts, 1 for households that do not mix."""
    directions = 2 if _composes(model) else 1
    level, households = 1 - (1 - float(model.level or 0)) / directions, len(population.mixes)
    mixing = np.flatnonzero(population.mixes)
    mixing_tables = {steps: table[mixing] for steps, table in tables.items()}
    distances = np.ones((households, len(ages)))
    if len(mixing) and population.groups is not None:
        groups = {steps: _merge_household_phases(table, model.min_visits)[0] for steps, table in mixing_tables.items()}
        distances[mixing] = cyclic_sampling_bound(mixing_tables, groups, ages, level=level, households=households)
    elif len(mixing):
        distances[mixing] = sampling_bound(mixing_tables, ages, level=level, households=households)
    return distances


def _time_reversed(counts: Ints, model: EstimatedModel) -> Ints:
    """Return the counts of the series in reversed time, whose reversed chain is the forward one.

    What left phase p for p + 1 leaves, on a clock that runs backwards, phase -(p + 1).
    """
    transposed = np.swapaxes(counts, -1, -2)
    return transposed[:, ::-1] if model.chain == "cyclic" else transposed


_BYTES: Final = {"cyclic": 2 * 4, "homogeneous": 4 * 8}
"""Bytes of one count and the arrays derived from it, by the kind of chain."""


def counts_bytes(model: EstimatedModel, households: int) -> int:
    """Return the bytes that the counts of this many households take at their largest."""
    phases = phase_count(model)
    tables = sum(max(phases // steps, 1) for steps in (1, *subsampling_steps(model)))
    return households * tables * model.chain_states**2 * _BYTES[model.chain]


def check_counts_fit(model: EstimatedModel, households: int) -> None:
    """Check that the counts of a model fit into the memory of this machine, before any reading is read.

    Raises:
        RunFileError: they do not; the message names a number of states that fits.
    """
    needed, available = counts_bytes(model, households), _memory()
    if needed <= available:
        return
    fitting = max(2, math.isqrt(available * model.chain_states**2 // needed) * model.states // model.chain_states)
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
