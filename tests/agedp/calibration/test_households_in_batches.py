"""Households are bounded in batches and tasks: to the last bit what each of them is alone, however they are divided."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

import numpy as np
import pytest

from agedp.calibration import leakage_bounds
from agedp.calibration.estimate import Transitions
from agedp.calibration.leakage_bounds import bound_population, mixing_curves, mixing_households
from agedp.compute import engine
from agedp.compute.engine_settings import ONE_THREAD, Engine
from agedp_data.config.model_section import EstimatedModel
from agedp_data.errors import ChainError
from agedp_data.markov.mixing import (
    reversibilised_bound,
    spectral_bound,
    spectral_gap,
    total_variation_forward,
)
from agedp_data.markov.transitions import stationary, transition_matrix

AGES = np.array([1, 48, 96, 289, 336])


def counts_of(size, k, seed):
    """Counts of chains of which some are reversible, in two classes, one-way, in one state, or without readings."""
    rng = np.random.default_rng(seed)
    counts = rng.integers(1, 400, (size, k, k)) + 900 * np.eye(k, dtype=np.int64)
    counts[1::6] = np.tile(np.eye(k, dtype=np.int64), (len(counts[1::6]), 1, 1))
    counts[2::6, :, k - 1] = 0
    counts[3::6] += np.swapaxes(counts[3::6], 1, 2)
    counts[4::12], counts[5::12, 1:], counts[5::12, :, 1:] = 0, 0, 0
    return counts


def alone(counts, ages, min_visits):
    """Return mixes, total variation, reversibilised and spectral bound and gap of one household, by its own matrix."""
    entered, leaving = counts.sum(axis=0), counts.sum(axis=1)
    is_visited = (entered > 0) | (leaving > 0)
    never = False, np.ones(len(ages)), np.ones(len(ages)), np.ones(len(ages)), 0.0
    if is_visited.sum() < 2 or (np.minimum(entered, leaving)[is_visited] < min_visits).any():
        return never
    try:
        if not (stationary(transition_matrix(counts, smoothing=0))[leaving > 0] > 0).all():
            return never
    except ChainError:
        return never
    chain = transition_matrix(counts.T, smoothing=0)
    try:
        spectral = spectral_bound(chain, ages)
    except ChainError:
        spectral = np.full(len(ages), np.nan)
    return True, total_variation_forward(chain, ages), reversibilised_bound(chain, ages), spectral, spectral_gap(chain)


@pytest.mark.parametrize(("k", "seed"), [(2, 1), (5, 2), (12, 3), (12, 4)])
@pytest.mark.parametrize("batch", [1, 7, 128])
def test_a_batch_gives_each_household_its_own_curves(monkeypatch, k, seed, batch):
    monkeypatch.setattr(leakage_bounds, "_BATCH", batch)
    counts = counts_of(30, k, seed)
    mixes = mixing_households(counts, min_visits=3)
    curves = mixing_curves(counts, mixes, AGES)
    expected = list(zip(*(alone(household, AGES, 3) for household in counts), strict=True))
    assert mixes.tolist() == list(expected[0])
    assert 0 < mixes.sum() < len(mixes)
    for name, values in zip(
        ("total_variation", "reversibilised", "spectral", "spectral_gap"), expected[1:], strict=True
    ):
        np.testing.assert_array_equal(curves[name], np.array(values), strict=True)


def model(**keys):
    given = {
        "source": "estimated", "assume": "markov", "file": "model", "period": (date(2013, 1, 1), date(2013, 12, 31)),
        "step": "half-hour", "states": 3, "edges": "quantile", "chain": "homogeneous", "min_visits": 2,
        "confidence": "plug-in", "ages_days": (1, 2, 7), "publish": "envelope",
    }  # fmt: skip
    return EstimatedModel(**given | keys)


def transitions_of(chain, *, all_mix):
    """Return the transitions of nine households, one of which does not mix unless all shall."""
    rng = np.random.default_rng(8)
    phases, sparse = ((48,), (8,)) if chain == "cyclic" else ((), ())
    counts = rng.integers(20, 300, (9, *phases, 3, 3))
    if not all_mix:
        counts[4] = np.eye(3, dtype=np.int64)
    every = {6 if chain == "cyclic" else 5: rng.integers(2000, 9000, (9, *sparse, 3, 3))}
    return Transitions(counts, counts.reshape(9, -1).sum(axis=1), np.zeros(9, np.int64), every)


@pytest.mark.parametrize("all_mix", [True, False])
@pytest.mark.parametrize("confidence", [{}, {"confidence": "sampling-bound", "level": Decimal("0.9")}])
@pytest.mark.parametrize("chain", ["homogeneous", "cyclic"])
def test_the_bound_is_the_same_for_any_tasks(monkeypatch, chain, confidence, all_mix):
    transitions, settings = transitions_of(chain, all_mix=all_mix), model(chain=chain, **confidence)
    expected = bound_population(transitions, settings, engine=ONE_THREAD)
    for size in (1, 4):
        monkeypatch.setattr(engine, "BLOCK_HOUSEHOLDS", (size, size))
        result = bound_population(transitions, settings, engine=Engine("threads", 3))
        assert result.leakage_bound.to_json() == expected.leakage_bound.to_json()
        for name, curve in expected.curves.items():
            np.testing.assert_array_equal(result.curves[name], curve, strict=True)
