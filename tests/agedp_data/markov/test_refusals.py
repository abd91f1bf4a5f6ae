"""What is no series, no chain, no count or no level is refused, and the message says what is wrong."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from agedp_data.errors import ChainError
from agedp_data.markov.confidence import sampling_bound
from agedp_data.markov.cyclic import cyclic_goodness_of_fit, cyclic_kernels, cyclic_sampling_bound
from agedp_data.markov.memory_check import markov_goodness_of_fit
from agedp_data.markov.mixing import reversibilised_bound, spectral_bound, total_variation
from agedp_data.markov.states import daily_totals, edges_equal_width, edges_quantile, representative_values
from agedp_data.markov.transitions import (
    checked_lags,
    checked_states,
    count_transitions,
    power,
    reverse,
    stationary,
    transition_matrix,
)

NAN, RNG = np.nan, np.random.default_rng(0)
BOUNDS = (total_variation, spectral_bound, reversibilised_bound)
TURNING = [[0.1, 0.8, 0.1], [0.1, 0.1, 0.8], [0.8, 0.1, 0.1]]


def bounded(counts=((9, 1), (1, 9)), steps=(1,), **wrong):
    return sampling_bound(counts, steps, **{"level": 0.95, "households": 1} | wrong)


def bounded_by_phase(lag=1, groups=((0, 1),), steps=(1,), **wrong):
    counts = {lag: np.ones((1, 2, 2, 2), int)}
    return cyclic_sampling_bound(counts, {1: groups}, steps, **{"level": 0.95, "households": 1} | wrong)


def by_phase(**wrong):
    keys = {"n_phases": 8, "min_visits": 10, "level": 0.9, "replicates": 19} | wrong
    return cyclic_goodness_of_fit(np.zeros((1, 24), int), [1, 2, 7], RNG, **keys)


UNKNOWN_ROWS = [[[0, 1], [0, 0]], [[0, 0], [0, 1]], [[0, 0], [0, 0]]]
REFUSED = [
    (bounded, None, {"level": [1.0, 0.0], "households": [0], "counts": [{}, {0: [[1]]}], "steps": [3]}),
    (bounded_by_phase, None, {"level": [1.0], "households": [0], "lag": [2], "groups": [[[0, 1, 2]]], "steps": [3]}),
    (by_phase, None, {"n_phases": [7], "level": [1.0], "replicates": [3]}),
    (partial(markov_goodness_of_fit, [0, 1, 0], [1], RNG, n_states=2), "replicates",
     {"level": [1.0], "steps_per_day": [0]}),
    (checked_lags, None, {"lags": [[-1], 3]}),
    (partial(checked_states, n_states=2), None, {"states": [[0, 4], [0.5, 1.0]]}),
    (partial(daily_totals, [1, 2], max_missing=0), "multiple of 3", {"slots": [3]}),
    (partial(cyclic_kernels, UNKNOWN_ROWS, [0, 1, 2]), "no state that it can be followed", {"direction": ["backward"]}),
    (partial(cyclic_kernels, np.full((2, 2, 2), 9), [0, 1]), '"backward" or "forward"', {"direction": ["sideways"]}),
    (partial(spectral_bound, steps=[1]), "reversible chains only",
     {"transition": [TURNING, [TURNING, np.full((3, 3), 1 / 3)]]}),
    *((bound, "several recurrent classes", {"transition": [np.eye(3)]})
      for bound in (stationary, reverse, *(partial(bound, steps=[1]) for bound in BOUNDS))),
    (representative_values, None, {"edges": [[], [0, 5], [5, 5], [7, 5], [1.5, 2.0], [[1, 2]]]}),
    (partial(edges_quantile, [1, 2], n_states=3), None, {"counts": [[0, 0], [1, -1], [1]]}),
    (partial(edges_quantile, counts=[1, 1], n_states=3), None, {"values": [[2, 1], [-1, 1]]}),
    (partial(edges_equal_width, n_states=3), None, {"maximum": [-1.0, NAN, np.inf]}),
    (partial(count_transitions, [0, 1], [True]), None, {"n_states": [1]}),
    (partial(count_transitions, [0, 1], n_states=3), None, {"contiguous": [[], [True, True]]}),
    (partial(count_transitions, [0, 1], [True], 2), "every 0", {"every": [0]}),
    (partial(transition_matrix, smoothing=0.0), None, {"counts": [[[1, -1], [0, 1]], [[1, 1]]]}),
    (partial(transition_matrix, [[1, 0], [0, 1]]), None, {"smoothing": [-0.1, NAN]}),
    (stationary, None, {"transition": [np.full((2, 2), NAN), [[0.0, 1.0], [NAN, NAN]], [[0.5, 0.5]]]}),
    (partial(power, np.eye(2)), "whole numbers", {"steps": [-1, 0.5, NAN]}),
]  # fmt: skip


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (partial(call, **{key: wrong}), message)
        for call, message, keys in REFUSED
        for key in keys
        for wrong in keys[key]
    ],
)
def test_what_cannot_be_computed_is_refused(call, message):
    with pytest.raises(ChainError, match=message):
        call()
