"""Age-dependent (eps, delta)-DP, which [A] leaves open: what an old output of a mechanism with a delta still says.

By advanced joint convexity of the hockey-stick divergence (Balle, Barthe and Gaboardi, NeurIPS 2018, Theorem 2) on
the two laws of the input, which share all but Delta of their mass: a mechanism that is (eps, delta)-DP is at age t

    (ln(1 + Delta(t)(e^eps - 1)), Delta(t) delta)

about the present (MATHS 3). It admits the Gaussian mechanism; releases of this project are pure, delta = 0.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike

from agedp_data.chains.spectrum import total_variation
from agedp_data.errors import ChainError
from agedp_data.privacy.composition import courses, line
from agedp_data.privacy.kernel import Floats, checked_loss
from agedp_data.privacy.leakage import leakage_from_total_variation

_GAPS = 8


def approximate_risk(
    transition: ArrayLike, loss: ArrayLike, delta: ArrayLike, age_steps: ArrayLike
) -> tuple[Floats, Floats]:
    """Return the (loss, delta) about the present of one query at each age.

    Shapes: (..., k, k), (...), (...), (T,) int -> (..., T), (..., T). Units: [-], [-], [-], [steps] -> [-], [-].

    Raises:
        ChainError: a delta outside [0, 1], or as `privacy.ageing.risk`.

    >>> loss, delta = approximate_risk([[0.9, 0.1], [0.1, 0.9]], 0.5, 1e-6, [2])  # Delta(2) = .64
    >>> loss.round(6).tolist(), delta.round(12).tolist()
    ([0.347258], [6.4e-07])
    """
    losses, deltas = checked_loss(loss)[..., None], _probability(delta)[..., None]
    distance = total_variation(transition, line(age_steps, "ages"))
    shape = np.broadcast_shapes(losses.shape, deltas.shape, distance.shape)
    aged = (
        np.broadcast_to(leakage_from_total_variation(distance, losses), shape),
        np.broadcast_to(distance * deltas, shape),
    )
    return aged[0].copy(), aged[1].copy()


def compose_approximate(
    transition: ArrayLike,
    published: ArrayLike,
    ages: ArrayLike,
    losses: ArrayLike,
    deltas: ArrayLike,
    at: ArrayLike,
) -> tuple[Floats, Floats]:
    """Return the (loss, delta) about the present of all outputs published so far, at each instant of `at`.

    In the order of the inputs, Delta taken over the gap to the input before:
        z_k = e_k + ln(1 + Delta (e^(z_(k-1)) - 1)),  d_k = delta_k + Delta d_(k-1),
    and once more from the newest input to t. Equal input times add. A delta above one says nothing.

    Shapes: (..., k, k), (n,) int, (n,) int, (n,), (n,), (T,) int -> (..., T), (..., T). Units: [steps], [-] -> [-].

    Raises:
        ChainError: a delta outside [0, 1], or as `privacy.ageing.compose`.

    >>> loss, delta = compose_approximate([[0.9, 0.1], [0.1, 0.9]], [1, 2], [0, 0], [0.0, 0.0], [0.1, 0.1], [3])
    >>> delta.round(12).tolist()  # (.1 * .8 + .1) * .8
    [0.144]
    """
    each, small = checked_loss(losses), _probability(deltas)
    if each.ndim != 1 or each.shape != small.shape:
        raise ChainError(f"one delta per loss: losses of shape {each.shape}, deltas of shape {small.shape}")
    distance = lru_cache(_GAPS)(lambda gap: total_variation(transition, [gap])[..., 0])

    def through(gap: int, pair: Floats) -> Floats:
        held = distance(gap)
        return np.stack(
            np.broadcast_arrays(leakage_from_total_variation(held, pair[..., 0]), held * pair[..., 1]), axis=-1
        )

    figures = courses(published, ages, np.stack((each, small), axis=-1), at, through=through)
    table = np.stack(np.broadcast_arrays(*figures), axis=-1) if figures else np.zeros((2, 0))
    return table[..., 0, :], table[..., 1, :]


def _probability(delta: ArrayLike) -> Floats:
    given = np.asarray(delta, dtype=np.float64)
    if not ((given >= 0) & (given <= 1)).all():
        raise ChainError("a delta is a probability, from 0 to 1")
    return given
