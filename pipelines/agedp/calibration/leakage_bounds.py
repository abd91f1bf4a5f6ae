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
from agedp_data.arrays import Floats
from agedp_data.config.model_section import EstimatedModel
from agedp_data.datasets.validation import SLOTS, Flags, Ints
from agedp_data.errors import RunFileError
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
from agedp_data.markov.cyclic import cyclic_kernels
from agedp_data.markov.transitions import transition_matrix


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
    published_ages, steps_in_day = model_ages(model), steps_per_day(model)
    ages = composition_age_steps(model.ages_days, steps_per_day=steps_in_day) if composes(model) else published_ages
    population = (_cyclic if model.chain == "cyclic" else _homogeneous)(transitions, model, ages)
    if model.confidence == "sampling-bound":
        population = _with_confidence(population, transitions, model, ages)
    columns = np.searchsorted(ages, published_ages)
    curves = {name: curve[:, columns] if curve.ndim > 1 else curve for name, curve in population.curves.items()}
    return replace(population, leakage_bound=replace(population.leakage_bound, assume=model.assume), curves=curves)


def model_ages(model: EstimatedModel) -> Ints:
    """Return the ages of [model], shape (T,) [steps]."""
    return np.array(model.ages_days) * steps_per_day(model)


def _homogeneous(transitions: Transitions, model: EstimatedModel, ages: Ints) -> PopulationBound:
    counts = transitions.counts
    mixes = mixing_households(counts, min_visits=model.min_visits)
    backward = transition_matrix(np.swapaxes(counts, 1, 2), smoothing=0)
    forward = transition_matrix(counts, smoothing=0) if composes(model) else None
    steps_in_day = steps_per_day(model)
    bound = leakage_bound(backward, ages, LOSS_GRID, reliable=mixes, forward=forward, steps_per_day=steps_in_day)
    return PopulationBound(bound, mixes, mixing_curves(counts, mixes, ages))


def _cyclic(transitions: Transitions, model: EstimatedModel, ages: Ints) -> PopulationBound:
    counts = transitions.counts
    groups, mixes = merge_household_phases(counts, model.min_visits)
    mixing = np.flatnonzero(mixes)
    phases, forward_hulls = counts.shape[1], None
    backward_hulls, distances = cyclic_upper_hulls(
        _kernel_batches(counts, groups, mixing, "backward"), ages, direction="backward"
    )
    variation = np.ones((len(counts), len(ages)))
    variation[mixing] = distances
    if not mixes.all():
        bound = identity_leakage_bound(ages, LOSS_GRID, phases, forward=composes(model))
    else:
        if composes(model):
            forward_hulls, _ = cyclic_upper_hulls(
                _kernel_batches(counts, groups, mixing, "forward"), ages, direction="forward"
            )
        bound = leakage_bound_of_hulls(backward_hulls, ages, LOSS_GRID, phases, forward_hulls=forward_hulls)
    return PopulationBound(bound, mixes, {"total_variation": variation}, groups)


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
    distances = partial(
        sampling_distances,
        mixes=population.mixes,
        groups=population.groups,
        model=model,
        ages=ages,
        households=len(population.mixes),
    )
    backward, forward = distances(tables), None
    if composes(model):
        forward = distances({steps: time_reversed(table, model) for steps, table in tables.items()})
    steps_in_day = steps_per_day(model)
    bound = leakage_bound_from_distances(
        backward, ages, LOSS_GRID, reliable=population.mixes, forward=forward, steps_per_day=steps_in_day
    )
    return replace(population, leakage_bound=bound, curves={**population.curves, "sampling_bound": backward})


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
