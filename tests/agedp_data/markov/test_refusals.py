"""What is no series, no chain, no count or no level is refused, and the message says what is wrong."""

from __future__ import annotations

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
TWO_PHASES = np.full((2, 2, 2), 9)


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
    (lambda: calendar(secret=np.zeros((1, 5), int)), ""),
    (lambda: calendar(read=np.zeros((1, 4), int)), ""),
    (lambda: calendar(label=np.zeros(4, int)), ""),
    (lambda: calendar(secret=np.full((1, 5, 1), 2)), ""),
    (lambda: calendar(lags=[-1]), ""),
    (lambda: median_halves(np.zeros((1, 5, 1), int), [0]), "label for each day"),
    (lambda: bounded(level=1.0), ""),
    (lambda: bounded(level=0.0), ""),
    (lambda: bounded(households=0), ""),
    (lambda: bounded(counts={}), ""),
    (lambda: bounded(counts={0: [[1]]}), ""),
    (lambda: bounded(steps=3), ""),
    (lambda: bounded_by_phase(level=1.0), ""),
    (lambda: bounded_by_phase(households=0), ""),
    (lambda: bounded_by_phase(counts={}, groups={}), ""),
    (lambda: bounded_by_phase(counts={0: np.ones((1, 2, 2, 2))}, groups={0: [[0, 1]]}), ""),
    (lambda: bounded_by_phase(groups={2: [[0, 1]]}), ""),
    (lambda: bounded_by_phase(groups={1: [[0, 1, 2]]}), ""),
    (lambda: bounded_by_phase(steps=3), ""),
    (lambda: count_cyclic_transitions([0, 9], [0, 1], [True], 2, n_phases=2), ""),
    (lambda: count_cyclic_transitions([0, 1], [0, 7], [True], 2, n_phases=2), ""),
    (lambda: count_cyclic_transitions([0, 1], [0], [True], 2, n_phases=2), ""),
    (lambda: cyclic_kernels(UNKNOWN_ROWS, [0, 1, 2], direction="backward"), "no state that it can be followed from"),
    (lambda: cyclic_kernels(TWO_PHASES, [0, 1], direction="sideways"), '"backward" or "forward"'),
    (lambda: by_phase(n_phases=7), ""),
    (lambda: by_phase(level=1.0), ""),
    (lambda: by_phase(replicates=3), ""),
    (lambda: diagnose([0, 1], n_states=2, segments=1), "two segments"),
    (lambda: empirical(by="guess"), '"direct" or "powers"'),
    (lambda: empirical(states=[0, 4]), "got a higher one"),
    (lambda: empirical(states=[0.5, 1.0]), "whole numbers"),
    (lambda: empirical(lags=[-1]), "lags must be whole"),
    (lambda: empirical(lags=3), "list of steps"),
    (lambda: empirical(part=[0]), "for each of the 2 instants"),
    (lambda: empirical(part=[0, 1], by="powers"), "know no parts"),
    (lambda: fit(level=1.0), "replicates"),
    (lambda: fit(level=0.99, replicates=50), "replicates"),
    (lambda: fit(steps_per_day=0), "replicates"),
    (lambda: mask_incomplete_days([1, 2], slots=3, max_missing=0), "multiple of 3"),
    (lambda: spectral_bound(TURNING, [1]), "reversible chains only"),
    (lambda: spectral_bound([TURNING, np.full((3, 3), 1 / 3)], [1]), "reversible chains only"),
    (lambda: total_variation(np.eye(3), [1]), "several recurrent classes"),
    (lambda: spectral_bound(np.eye(3), [1]), "several recurrent classes"),
    (lambda: reversibilised_bound(np.eye(3), [1]), "several recurrent classes"),
    (lambda: total_variation([[0.9, 0.1], [0.1, 0.9]], 3), "list of whole numbers"),
    *(
        (lambda edges=edges: representative_values(edges), "")
        for edges in ([], [0, 5], [5, 5], [7, 5], [1.5, 2.0], [[1, 2]])
    ),
    (lambda: edges_quantile([], [], 3), ""),
    (lambda: edges_quantile([1], [0], 3), ""),
    (lambda: edges_quantile([2, 1], [1, 1], 3), ""),
    (lambda: edges_quantile([-1, 1], [1, 1], 3), ""),
    (lambda: edges_quantile([1, 2], [1, -1], 3), ""),
    (lambda: edges_quantile([1], [1, 2], 3), ""),
    (lambda: edges_quantile([1], [1], 0), ""),
    *((lambda maximum=maximum: edges_equal_width(maximum, 3), "") for maximum in (-1.0, NAN, np.inf)),
    (lambda: count_transitions([0, 3], [True], 3), ""),
    (lambda: count_transitions([0, 1], [], 3), ""),
    (lambda: count_transitions([0, 1], [True, True], 3), ""),
    (lambda: count_transitions([[0], [1]], [True], 3), ""),
    (lambda: count_transitions([0, 1], [True], 2, every=0), "every 0"),
    (lambda: transition_matrix([[1, -1], [0, 1]], smoothing=0.0), ""),
    (lambda: transition_matrix([[1, 1]], smoothing=0.0), ""),
    (lambda: transition_matrix([[1, 0], [0, 1]], smoothing=-0.1), ""),
    (lambda: transition_matrix([[1, 0], [0, 1]], smoothing=NAN), ""),
    (lambda: stationary(np.eye(2)), "several recurrent classes"),
    (lambda: reverse(np.stack([CYCLE, np.eye(3)])), "several recurrent classes"),
    (lambda: stationary(np.full((2, 2), NAN)), ""),
    (lambda: stationary([[0.0, 1.0], [NAN, NAN]]), ""),
    (lambda: stationary([[0.5, 0.5]]), "square"),
    *((lambda steps=steps: power(CYCLE, steps), "whole numbers") for steps in (-1, 0.5, NAN)),
]


@pytest.mark.parametrize(("call", "message"), REFUSED)
def test_what_cannot_be_computed_is_refused(call, message):
    with pytest.raises(ChainError) as refused:
        call()
    assert message in str(refused.value)
