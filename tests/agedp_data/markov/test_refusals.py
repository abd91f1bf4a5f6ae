"""What is no series, no chain, no count or no level is refused, and the message says what is wrong."""

from __future__ import annotations

import re
from functools import partial

import numpy as np
import pytest

from agedp_data.errors import ChainError
from agedp_data.markov.calendar_effects import calendar_dependence, median_halves
from agedp_data.markov.confidence import sampling_bound
from agedp_data.markov.cyclic import count_cyclic_transitions, cyclic_kernels
from agedp_data.markov.cyclic_inference import cyclic_goodness_of_fit, cyclic_sampling_bound
from agedp_data.markov.diagnostics import diagnose
from agedp_data.markov.empirical_mixing import empirical_total_variation
from agedp_data.markov.goodness_of_fit import markov_goodness_of_fit
from agedp_data.markov.mixing import reversibilised_bound, spectral_bound, total_variation
from agedp_data.markov.states import (
    edges_equal_width,
    edges_quantile,
    mask_incomplete_days,
    representative_values,
)
from agedp_data.markov.transitions import count_transitions, power, reverse, stationary, transition_matrix

NAN, RNG = np.nan, np.random.default_rng(0)
CYCLE = np.roll(np.eye(3), 1, axis=1)
TURNING = [[0.1, 0.8, 0.1], [0.1, 0.1, 0.8], [0.8, 0.1, 0.1]]


def calendar(**wrong):
    given = {"secret": np.zeros((1, 5, 1), int), "read": np.zeros((1, 5), int), "label": np.zeros(5, int), "lags": [1]}
    return calendar_dependence(*(given | wrong).values(), RNG, loss=1.0)


def bounded(**wrong):
    given = {"counts": [[9, 1], [1, 9]], "steps": [1], "level": 0.95, "households": 1} | wrong
    return sampling_bound(given.pop("counts"), given.pop("steps"), **given)


def bounded_by_phase(**wrong):
    given = {"counts": {1: np.ones((1, 2, 2, 2), int)}, "groups": {1: [[0, 1]]}, "steps": [1]}
    given |= {"level": 0.95, "households": 1} | wrong
    return cyclic_sampling_bound(given.pop("counts"), given.pop("groups"), given.pop("steps"), **given)


def empirical(**wrong):
    given = {"states": [0, 1], "lags": [1], "n_states": 2, "by": "direct"} | wrong
    return empirical_total_variation(given.pop("states"), given.pop("lags"), **given)


def by_phase(**wrong):
    keys = {"n_phases": 8, "min_visits": 10, "level": 0.9, "replicates": 19} | wrong
    return cyclic_goodness_of_fit(np.zeros((1, 24), int), [1, 2, 7], RNG, **keys)


fit = partial(markov_goodness_of_fit, [0, 1, 0], [1], RNG, n_states=2)
UNKNOWN_ROWS = [[[0, 1], [0, 0]], [[0, 0], [0, 1]], [[0, 0], [0, 0]]]
REFUSED = [
    (
        calendar,
        "",
        [
            {"secret": np.zeros((1, 5), int)},
            {"read": np.zeros((1, 4), int)},
            {"label": np.zeros(4, int)},
            {"secret": np.full((1, 5, 1), 2)},
            {"lags": [-1]},
        ],
    ),
    (
        bounded,
        "",
        [{"level": 1.0}, {"level": 0.0}, {"households": 0}, {"counts": {}}, {"counts": {0: [[1]]}}, {"steps": 3}],
    ),
    (
        bounded_by_phase,
        "",
        [
            {"level": 1.0},
            {"households": 0},
            {"counts": {}, "groups": {}},
            {"groups": {2: [[0, 1]]}},
            {"counts": {0: np.ones((1, 2, 2, 2))}, "groups": {0: [[0, 1]]}},
            {"groups": {1: [[0, 1, 2]]}},
            {"steps": 3},
        ],
    ),
    (by_phase, "", [{"n_phases": 7}, {"level": 1.0}, {"replicates": 3}]),
    (fit, "replicates", [{"level": 1.0}, {"level": 0.99, "replicates": 50}, {"steps_per_day": 0}]),
    (
        empirical,
        "",
        [
            {"by": "guess"},
            {"states": [0, 4]},
            {"states": [0.5, 1.0]},
            {"lags": [-1]},
            {"lags": 3},
            {"part": [0]},
            {"part": [0, 1], "by": "powers"},
        ],
    ),
    (partial(diagnose, [0, 1], n_states=2), "two segments", [{"segments": 1}]),
    (partial(mask_incomplete_days, [1, 2], max_missing=0), "multiple of 3", [{"slots": 3}]),
]
CALLS = [
    (median_halves, "label for each day", [(np.zeros((1, 5, 1), int), [0])]),
    (partial(count_cyclic_transitions, n_phases=2), "", [([0, 9], [0, 1], [True], 2), ([0, 1], [0, 7], [True], 2),
                                                         ([0, 1], [0], [True], 2)]),
    (partial(cyclic_kernels, direction="backward"), "no state that it can be followed", [(UNKNOWN_ROWS, [0, 1, 2])]),
    (partial(cyclic_kernels, direction="sideways"), '"backward" or "forward"', [(np.full((2, 2, 2), 9), [0, 1])]),
    (spectral_bound, "reversible chains only", [(TURNING, [1]), ([TURNING, np.full((3, 3), 1 / 3)], [1])]),
    *((bound, "several recurrent classes", [(np.eye(3), [1])])
      for bound in (total_variation, spectral_bound, reversibilised_bound)),
    (total_variation, "list of whole numbers", [([[0.9, 0.1], [0.1, 0.9]], 3)]),
    (representative_values, "", [([],), ([0, 5],), ([5, 5],), ([7, 5],), ([1.5, 2.0],), ([[1, 2]],)]),
    (edges_quantile, "", [([], [], 3), ([1], [0], 3), ([2, 1], [1, 1], 3), ([-1, 1], [1, 1], 3), ([1, 2], [1, -1], 3),
                          ([1], [1, 2], 3), ([1], [1], 0)]),
    (edges_equal_width, "", [(-1.0, 3), (NAN, 3), (np.inf, 3)]),
    (count_transitions, "", [([0, 3], [True], 3), ([0, 1], [], 3), ([0, 1], [True, True], 3), ([[0], [1]], [True], 3)]),
    (partial(count_transitions, every=0), "every 0", [([0, 1], [True], 2)]),
    (partial(transition_matrix, smoothing=0.0), "", [([[1, -1], [0, 1]],), ([[1, 1]],)]),
    *((partial(transition_matrix, smoothing=s), "", [([[1, 0], [0, 1]],)]) for s in (-0.1, NAN)),
    (stationary, "several recurrent classes", [(np.eye(2),)]),
    (reverse, "several recurrent classes", [(np.stack([CYCLE, np.eye(3)]),)]),
    (stationary, "", [(np.full((2, 2), NAN),), ([[0.0, 1.0], [NAN, NAN]],), ([[0.5, 0.5]],)]),
    (power, "whole numbers", [(CYCLE, -1), (CYCLE, 0.5), (CYCLE, NAN)]),
]  # fmt: skip


@pytest.mark.parametrize(
    ("call", "message"),
    [
        *((partial(call, **wrong), message) for call, message, keys in REFUSED for wrong in keys),
        *((partial(call, *wrong), message) for call, message, arguments in CALLS for wrong in arguments),
    ],
)
def test_what_cannot_be_computed_is_refused(call, message):
    with pytest.raises(ChainError, match=re.escape(message) or None):
        call()
