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

The households are bounded in parts, one task of the engine for each, and the two directions in a task each. Every
operation treats a household apart, or takes a maximum, so no number depends on the parts.

The memory that the counts of a model take is checked before any reading is read. A chain is counted for every household
of the roster: a table of k x k, for each half-hour of the day if it is cyclic, and for each subsampled series of a
sampling bound. In memory at once: the counts, those of the households with readings, and for a homogeneous chain both
directions as probabilities.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

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
from agedp.compute.engine import map_items
from agedp.compute.engine_settings import ONE_THREAD, Engine
from agedp_data.arrays import Floats
from agedp_data.config.model_section import EstimatedModel
from agedp_data.datasets.validation import SLOTS, Flags, Ints
from agedp_data.errors import RunFileError
from agedp_data.leakage.bound_table import LOSS_GRID, LeakageBound
from agedp_data.leakage.population_bound import (
    BOUND_METHODS,
    HOUSEHOLDS_PER_BATCH,
    composition_age_steps,
    identity_leakage_bound,
    leakage_bound_from_distances,
    leakage_bound_of_hulls,
)
from agedp_data.leakage.upper_hulls import UpperHulls, chain_bounds, cyclic_upper_hulls, upper_hulls
from agedp_data.markov.cyclic import cyclic_kernels
from agedp_data.markov.transitions import transition_matrix

HOUSEHOLDS_PER_TASK = 256


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
    population = (_cyclic if model.chain == "cyclic" else _homogeneous)(transitions, model, ages, engine=engine)
    if model.confidence == "sampling-bound":
        population = _with_confidence(population, transitions, model, ages, engine=engine)
    columns = np.searchsorted(ages, published_ages)
    curves = {name: curve[:, columns] if curve.ndim > 1 else curve for name, curve in population.curves.items()}
    return replace(population, leakage_bound=replace(population.leakage_bound, assume=model.assume), curves=curves)


def model_ages(model: EstimatedModel) -> Ints:
    """Return the ages of [model], shape (T,) [steps]."""
    return np.array(model.ages_days) * steps_per_day(model)


def _homogeneous(transitions: Transitions, model: EstimatedModel, ages: Ints, *, engine: Engine) -> PopulationBound:
    counts, steps_in_day = transitions.counts, steps_per_day(model)
    parts = map_items(
        "mixing", _in_tasks(counts), function=partial(_mixing, min_visits=model.min_visits, ages=ages), engine=engine
    )
    mixes = np.concatenate([part_mixes for part_mixes, _ in parts])
    curves = {name: np.concatenate([part_curves[name] for _, part_curves in parts]) for name in parts[0][1]}
    if not mixes.all():
        bound = identity_leakage_bound(ages, LOSS_GRID, steps_in_day, forward=composes(model), methods=BOUND_METHODS)
        return PopulationBound(bound, mixes, curves)
    backward = transition_matrix(np.swapaxes(counts, 1, 2), smoothing=0)
    chains = [(upper_hulls, backward), (chain_bounds, backward)]
    if composes(model):
        chains.append((upper_hulls, transition_matrix(counts, smoothing=0)))
    backward_hulls, bounds, *forward = map_items(
        "bounds", chains, function=partial(_measure_chains, ages=ages), engine=engine
    )
    bound = leakage_bound_of_hulls(
        backward_hulls, ages, LOSS_GRID, steps_in_day, forward_hulls=forward[0] if forward else None
    )
    return PopulationBound(replace(bound, bounds={**bound.bounds, **bounds}), mixes, curves)


def _in_tasks(counts: Ints) -> list[Ints]:
    """Return the counts of the households in parts, one for each task."""
    return [counts[start : start + HOUSEHOLDS_PER_TASK] for start in range(0, len(counts), HOUSEHOLDS_PER_TASK)]


def _mixing(counts: Ints, *, min_visits: int, ages: Ints) -> tuple[Flags, dict[str, Floats]]:
    mixes = mixing_households(counts, min_visits=min_visits)
    return mixes, mixing_curves(counts, mixes, ages)


def _measure_chains(item: tuple[Callable[[Floats, Ints], Any], Floats], *, ages: Ints) -> Any:  # noqa: ANN401
    measure, chains = item
    return measure(chains, ages)


def _cyclic(transitions: Transitions, model: EstimatedModel, ages: Ints, *, engine: Engine) -> PopulationBound:
    counts = transitions.counts
    merge = partial(merge_household_phases, min_visits=model.min_visits)
    parts = map_items("phases", _in_tasks(counts), function=merge, engine=engine)
    groups, mixes = (np.concatenate(column) for column in zip(*parts, strict=True))
    mixing, phases = np.flatnonzero(mixes), counts.shape[1]
    directions = ["backward", *(["forward"] if composes(model) and mixes.all() else [])]
    hulls_in = partial(_cyclic_hulls, counts=counts, groups=groups, households=mixing, ages=ages)
    (backward_hulls, distances), *forward = map_items("bounds", directions, function=hulls_in, engine=engine)
    variation = np.ones((len(counts), len(ages)))
    variation[mixing] = distances
    if not mixes.all():
        bound = identity_leakage_bound(ages, LOSS_GRID, phases, forward=composes(model))
    else:
        forward_hulls = forward[0][0] if forward else None
        bound = leakage_bound_of_hulls(backward_hulls, ages, LOSS_GRID, phases, forward_hulls=forward_hulls)
    return PopulationBound(bound, mixes, {"total_variation": variation}, groups)


def _cyclic_hulls(
    direction: str, *, counts: Ints, groups: Ints, households: Ints, ages: Ints
) -> tuple[UpperHulls, Floats]:
    return cyclic_upper_hulls(_kernel_batches(counts, groups, households, direction), ages, direction=direction)


def _kernel_batches(counts: Ints, groups: Ints, households: Ints, direction: str) -> Iterator[Floats]:
    """Yield the kernels of these households in batches: all together would fill the memory."""
    for start in range(0, len(households), HOUSEHOLDS_PER_BATCH):
        batch = households[start : start + HOUSEHOLDS_PER_BATCH]
        yield cyclic_kernels(counts[batch], groups[batch], direction=direction)


def _with_confidence(
    population: PopulationBound, transitions: Transitions, model: EstimatedModel, ages: Ints, *, engine: Engine
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
    directions = [tables]
    if composes(model):
        directions.append({steps: time_reversed(table, model) for steps, table in tables.items()})
    backward, *others = map_items("confidence", directions, function=distances, engine=engine)
    forward = others[0] if others else None
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
