"""TRANSITIONS -> the envelope of all households and the curve of each, by the kind of chain and its confidence.

AGES are steps since what was read: half-hours since the end of the input's day, or for a chain of days whole days
since then, of which the day that has begun is not counted. `ages_days` are whole days of either, so for a cyclic chain
each is a number of turns of the clock, from every half-hour to the same one; the largest of the 48 stands.

`confidence = "plug-in"` takes the chains as counted. `"sampling-bound"` takes what holds for all households at once
with the level of the run file: total variations (`chains.sampling`, `chains.cyclic_sampling`), and of a loss what these
leave of it. Half-hourly chains are bounded a second time from the series that is read every few steps (`read_every`):
every fifth half-hour, which comes round to all hours of the day; for cyclic chains every sixth, which divides the day.

A household that may not be taken to forget at all is never forgotten, under either: see `bound`.

With assume = "markov" losses compose, and the envelope is tabulated AHEAD too, for temporal leakage, at the steps that
this needs besides (`steps_of_days`; of a cyclic chain the largest of all half-hours stands there, too). A level then
holds for both directions at once, half of what may fail being left to each.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from agedp_data.chains.cyclic import cyclic_kernels, merge_phases, pooled
from agedp_data.chains.cyclic_sampling import cyclic_sampling_bound
from agedp_data.chains.cyclic_tabulation import HOUSEHOLDS, cyclic_maxima, envelope_of_maxima, remembering
from agedp_data.chains.envelope import LOSS_GRID, LeakageBound
from agedp_data.chains.sampling import sampling_bound
from agedp_data.chains.spectrum import reversibilised_bound, spectral_bound, spectral_gap, total_variation_forward
from agedp_data.chains.tabulation import leakage_bound, steps_of_days, tabulate_distances
from agedp_data.chains.transitions import stationary, transition_matrix
from agedp_data.config.model import EstimatedModel
from agedp_data.errors import ChainError
from agedp_data.privacy.kernel import Floats
from agedp_data.readers.layout import SLOTS, Flags, Ints
from pipelines.estimate import Transitions


@dataclass(frozen=True, slots=True)
class PopulationBound:
    """The envelope, and per household (h) whether it forgets, and its curves.

    `curves`: "total_variation" (h, T) at the model's ages; of homogeneous chains "reversibilised" and "spectral" (h, T;
    NaN where the paper's bound does not apply) and "spectral_gap" (h,); "sampling_bound" (h, T) if that was asked for.
    `groups` (h, phases): which phases of a cyclic chain share a kernel.
    """

    envelope: LeakageBound
    forgets: Flags
    curves: Mapping[str, Floats]
    groups: Ints | None = None


def steps_per_day(model: EstimatedModel) -> int:
    """Return how many steps of the model's chain make a day."""
    return 1 if model.step == "day" else SLOTS


def phases_of(model: EstimatedModel) -> int:
    """Return how many kernels a household's chain has: one, or one for each half-hour of the day."""
    return SLOTS if model.chain == "cyclic" else 1


def read_every(model: EstimatedModel) -> tuple[int, ...]:
    """Return which rarer series a sampling bound is taken from, too; days are few enough as they are."""
    if model.confidence == "plug-in" or model.step == "day":
        return ()
    return (6,) if model.chain == "cyclic" else (5,)


def tabulated(transitions: Transitions, model: EstimatedModel) -> PopulationBound:
    """Return the envelope and the curves of the households whose transitions these are."""
    day = steps_per_day(model)
    shown = np.array(model.ages_days) * day
    ages = steps_of_days(model.ages_days, steps_per_day=day) if _ahead(model) else shown
    found = (_cyclic if model.chain == "cyclic" else _homogeneous)(transitions, model, ages)
    if model.confidence == "sampling-bound":
        found = _with_confidence(found, transitions, model, ages)
    at = np.searchsorted(ages, shown)
    curves = {name: curve[:, at] if curve.ndim > 1 else curve for name, curve in found.curves.items()}
    return replace(found, envelope=replace(found.envelope, assume=model.assume), curves=curves)


def _ahead(model: EstimatedModel) -> bool:
    """Tell whether losses compose, in both directions."""
    return model.assume == "markov"


def _homogeneous(transitions: Transitions, model: EstimatedModel, ages: Ints) -> PopulationBound:
    counts = transitions.counts
    forgets = forgetting_households(counts, min_visits=model.min_visits)
    backward = transition_matrix(np.swapaxes(counts, 1, 2), smoothing=0)
    forward = transition_matrix(counts, smoothing=0) if _ahead(model) else None
    day = steps_per_day(model)
    envelope = leakage_bound(backward, ages, LOSS_GRID, forgets=forgets, forward=forward, steps_per_day=day)
    return PopulationBound(envelope, forgets, _curves(counts, forgets, ages))


def forgetting_households(counts: Ints, *, min_visits: int) -> Flags:
    """Return which chains (h, k, k) have a reliable row for each of two or more states and hang together."""
    into, out = counts.sum(axis=1), counts.sum(axis=2)
    visited = (into > 0) | (out > 0)
    reliable = ((np.minimum(into, out) >= min_visits) | ~visited).all(axis=1) & (visited.sum(axis=1) >= 2)
    for i in np.flatnonzero(reliable):
        reliable[i] = _hangs_together(counts[i])
    return np.asarray(reliable, bool)


def _hangs_together(counts: Ints) -> bool:
    try:
        law = stationary(transition_matrix(counts, smoothing=0))
    except ChainError:
        return False
    return bool((law[counts.sum(axis=1) > 0] > 0).all())


def _curves(counts: Ints, forgets: Flags, ages: Ints) -> dict[str, Floats]:
    """Return per household the measures of the envelope: Delta(t) exactly and two bounds (h, T), spectral gap (h,).

    All are those of the matrix of the reversed counts, as in `leakage_bound`. Reversal of the forward matrix through
    its     stationary distribution is another estimator; the two agree only for long series (MATHS 2).
    """
    size = (len(counts), len(ages))
    curves: dict[str, Floats] = {name: np.ones(size) for name in ("total_variation", "reversibilised", "spectral")}
    curves |= {"spectral_gap": np.zeros(len(counts))}
    for i in np.flatnonzero(forgets):
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
    groups, forgets = _grouped(counts, model.min_visits)
    chosen = np.flatnonzero(forgets)
    day, ahead = counts.shape[1], None
    hulls, distances = cyclic_maxima(_few_kernels(counts, groups, chosen, "backward"), ages, direction="backward")
    curve = np.ones((len(counts), len(ages)))
    curve[chosen] = distances
    if not forgets.all():
        envelope = remembering(ages, LOSS_GRID, day, ahead=_ahead(model))
    else:
        if _ahead(model):
            ahead, _ = cyclic_maxima(_few_kernels(counts, groups, chosen, "forward"), ages, direction="forward")
        envelope = envelope_of_maxima(hulls, ages, LOSS_GRID, day, ahead=ahead)
    return PopulationBound(envelope, forgets, {"total_variation": curve}, groups)


def _grouped(counts: Ints, min_visits: int) -> tuple[Ints, Flags]:
    """Return which phases of each household (h, p) share a kernel, and whether it may be taken to forget (h,)."""
    groups, forgets = np.zeros(counts.shape[:2], np.int64), np.zeros(len(counts), bool)
    for i, own in enumerate(counts):
        groups[i], enough = merge_phases(own, min_visits=min_visits)
        forgets[i] = enough and _has_its_rows(own, groups[i])
    return groups, forgets


def _has_its_rows(counts: Ints, groups: Ints) -> bool:
    """Return whether each state that a phase is seen to enter can be followed from there."""
    try:
        kernels = cyclic_kernels(counts, groups, direction="backward")
    except ChainError:
        return False
    entered = np.roll(pooled(counts, groups).sum(axis=-2), 1, axis=0) > 0
    return not bool((entered & np.isnan(kernels).all(axis=-1)).any())


def _few_kernels(counts: Ints, groups: Ints, chosen: Ints, direction: str) -> Iterator[Floats]:
    """Yield the kernels of the chosen households, a few at a time: all together would fill the memory."""
    for start in range(0, len(chosen), HOUSEHOLDS):
        some = chosen[start : start + HOUSEHOLDS]
        yield cyclic_kernels(counts[some], groups[some], direction=direction)


def _with_confidence(
    found: PopulationBound, transitions: Transitions, model: EstimatedModel, ages: Ints
) -> PopulationBound:
    """Return the envelope of what holds with the model's level, in place of that of the chains as counted."""
    tables = {1: transitions.counts, **transitions.every}
    distances, ahead = _certain(found, tables, model, ages), None
    if _ahead(model):
        ahead = _certain(found, {steps: _backwards(of, model) for steps, of in tables.items()}, model, ages)
    day = steps_per_day(model)
    envelope = tabulate_distances(distances, ages, LOSS_GRID, forgets=found.forgets, forward=ahead, steps_per_day=day)
    return replace(found, envelope=envelope, curves={**found.curves, "sampling_bound": distances})


def _certain(found: PopulationBound, tables: Mapping[int, Ints], model: EstimatedModel, ages: Ints) -> Floats:
    """Return the bounds (h, T) of the reversed chains of such counts, 1 for households that never forget."""
    directions = 2 if _ahead(model) else 1
    level, households = 1 - (1 - float(model.level or 0)) / directions, len(found.forgets)
    chosen = np.flatnonzero(found.forgets)
    some = {steps: table[chosen] for steps, table in tables.items()}
    distances = np.ones((households, len(ages)))
    if len(chosen) and found.groups is not None:
        groups = {steps: _grouped(table, model.min_visits)[0] for steps, table in some.items()}
        distances[chosen] = cyclic_sampling_bound(some, groups, ages, level=level, households=households)
    elif len(chosen):
        distances[chosen] = sampling_bound(some, ages, level=level, households=households)
    return distances


def _backwards(counts: Ints, model: EstimatedModel) -> Ints:
    """Return the counts of the series read from its end, whose reversed chain is the forward one.

    What left phase p for p + 1 leaves, on a clock that runs backwards, phase -(p + 1).
    """
    turned = np.swapaxes(counts, -1, -2)
    return turned[:, ::-1] if model.chain == "cyclic" else turned
