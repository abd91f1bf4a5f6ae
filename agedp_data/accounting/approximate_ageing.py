"""Approximate age-dependent privacy: (epsilon, delta) of old releases, an extension of [A].

A mechanism that is (eps, delta)-DP is, at age t, (ln(1 + Delta(t)(e^eps - 1)), Delta(t) delta)-age-dependent DP about
the present: advanced joint convexity of the hockey-stick divergence, applied to two input distributions that share all
but Delta of their mass. Example: Delta = 0.64 turns (0.5, 1e-6) into (0.347, 6.4e-7).

All pure releases of a span have a whole profile of such pairs, one for each epsilon. `aged_epsilon` ages the profile:
at Delta = 0.05, a year of epsilon 0.1 a day with 10.75 at delta = 1e-6 has 6.59 about the present.

Decisions:

* The Gaussian mechanism is admitted by the first two functions only. Releases of this project are pure: delta = 0.
* Only total variation is used; a tight (eps, delta) form through the kernel is not known.
* A span needs the Markov assumption: given the newest input, the earlier ones say nothing more about the present. Only
  then is the distance of whole pasts that of the newest inputs. A declared curve alone does not age a span.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike

from agedp_data.accounting.composition import composed_losses
from agedp_data.accounting.renyi import Curve, approximate_epsilon
from agedp_data.arrays import Floats, checked_loss, step_list
from agedp_data.epsilon import EpsilonLike, ceil_nano, to_float
from agedp_data.errors import ChainError
from agedp_data.leakage.exact import round_up_with_slack
from agedp_data.leakage.function import leakage_from_total_variation
from agedp_data.markov.mixing import total_variation

_AGE_GAPS = 8


def approximate_risk(
    transition: ArrayLike, loss: ArrayLike, delta: ArrayLike, age_steps: ArrayLike
) -> tuple[Floats, Floats]:
    r"""Age-dependent (epsilon, delta) about the present of one release.

    Use it for a mechanism with delta > 0; `risk` is sharper for delta = 0.

    .. math:: \varepsilon(t) = \ln(1 + \Delta(t)(e^{\varepsilon_C} - 1)), \qquad \delta(t) = \Delta(t)\, \delta_C

    Source: Theorem 2 of Balle, Barthe, Gaboardi on the setting of [A] Theorem 1; [A] leaves the case open.

    Args:
        transition: forward transition matrix, shape (..., k, k), probabilities [-].
        loss: epsilon of the mechanism, shape (...), >= 0 [epsilon].
        delta: delta of the mechanism, shape (...), from 0 to 1 [probability].
        age_steps: ages, shape (T,), integers >= 0 [steps].

    Returns:
        Loss [epsilon] and delta [probability], shape (..., T) each.

    Raises:
        ChainError: a delta outside [0, 1]; as `risk`.

    References:
        Balle, Barthe, Gaboardi: Privacy Amplification by Subsampling. NeurIPS 2018.
        https://doi.org/10.48550/arXiv.1807.01647
        [A] Zhang, Wei, Berry, Huang: Age-Dependent Differential Privacy. IEEE Trans. Inf. Theory, 2024.
        https://doi.org/10.1109/TIT.2023.3340147

    >>> loss, delta = approximate_risk([[0.9, 0.1], [0.1, 0.9]], 0.5, 1e-6, [2])  # Delta(2) = .8^2 = .64
    >>> loss.round(6).tolist(), delta.round(12).tolist()
    ([0.347258], [6.4e-07])
    """
    losses, deltas = checked_loss(loss)[..., None], _probability(delta)[..., None]
    distance = total_variation(transition, step_list(age_steps, "ages"))
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
    r"""Age-dependent (epsilon, delta) about the present of all releases published so far.

    Use it for schedules of mechanisms with delta > 0; `compose` is sharper for delta = 0.

    .. math:: z_k = \varepsilon_k + \ln(1 + \Delta(e^{z_{k-1}} - 1)), \qquad d_k = \delta_k + \Delta\, d_{k-1}

    with Delta over the gap between consecutive inputs, and once more from the newest input to t. Equal input times add.
    A delta above 1 means that the bound is void.

    Source: [A] Theorem 3, corrected as in `compose_with`; the delta part as in `approximate_risk`.

    Args:
        transition: forward transition matrix, shape (..., k, k), probabilities [-].
        published: S, instants of publication, shape (n,), integers [steps].
        ages: A, age of each input at publication, shape (n,), integers >= 0 [steps].
        losses: epsilon of each release, shape (n,), >= 0 [epsilon].
        deltas: delta of each release, shape (n,), from 0 to 1 [probability].
        at: t, shape (T,), integers [steps].

    Returns:
        Loss [epsilon] and delta [probability], shape (..., T) each.

    Raises:
        ChainError: a delta outside [0, 1]; as `compose`.

    References:
        Balle, Barthe, Gaboardi: Privacy Amplification by Subsampling. NeurIPS 2018.
        https://doi.org/10.48550/arXiv.1807.01647
        [A] Zhang, Wei, Berry, Huang: Age-Dependent Differential Privacy. IEEE Trans. Inf. Theory, 2024.
        https://doi.org/10.1109/TIT.2023.3340147

    >>> loss, delta = compose_approximate([[0.9, 0.1], [0.1, 0.9]], [1, 2], [0, 0], [0.0, 0.0], [0.1, 0.1], [3])
    >>> delta.round(12).tolist()  # (.1 * .8 + .1) * .8
    [0.144]
    """
    epsilons, probabilities = checked_loss(losses), _probability(deltas)
    if epsilons.ndim != 1 or epsilons.shape != probabilities.shape:
        raise ChainError(f"one delta per loss: losses of shape {epsilons.shape}, deltas of shape {probabilities.shape}")
    variation_over = lru_cache(_AGE_GAPS)(lambda gap: total_variation(transition, [gap])[..., 0])

    def gap_leakage(gap: int, pair: Floats) -> Floats:
        variation = variation_over(gap)
        return np.stack(
            np.broadcast_arrays(leakage_from_total_variation(variation, pair[..., 0]), variation * pair[..., 1]),
            axis=-1,
        )

    composed = composed_losses(
        published, ages, np.stack((epsilons, probabilities), axis=-1), at, gap_leakage=gap_leakage
    )
    table = np.stack(np.broadcast_arrays(*composed), axis=-1) if composed else np.zeros((2, 0))
    return table[..., 0, :], table[..., 1, :]


def aged_epsilon(curve: Curve, distance: float, delta: EpsilonLike, *, pure: int) -> int:
    r"""Epsilon at a delta, about the present, of all releases of a span together.

    .. math:: \varepsilon'(\delta) = \ln \bigl( 1 + \Delta\,(e^{\varepsilon(\delta / \Delta)} - 1) \bigr)

    with epsilon(.) that of `approximate_epsilon`: two present states imply two laws of the household's past that share
    all but Delta of their mass, and the releases are (epsilon, delta)-DP in the whole past at every epsilon.

    Source: Theorem 2 of Balle, Barthe, Gaboardi on the setting of [A] Theorem 1, at each point of the profile.

    Args:
        curve: Rényi curve of the releases together, shape (64,) [1e-12 epsilon].
        distance: Delta, total variation of the reversed chain from the present to the newest input, 0 to 1 [-].
        delta: probability, 0 <= delta < 1 [-].
        pure: sum of the pure losses [nano-epsilon].

    Returns:
        Integer from 0 to that of the span, rounded up [nano-epsilon].

    Raises:
        ChainError: a distance or a delta outside its range.

    References:
        Balle, Barthe, Gaboardi: Privacy Amplification by Subsampling. NeurIPS 2018.
        https://doi.org/10.48550/arXiv.1807.01647
        [A] https://doi.org/10.1109/TIT.2023.3340147

    >>> from agedp_data.accounting.renyi import laplace_curve
    >>> year = 365 * laplace_curve(50_000, 500_000.0)  # epsilon 0.1 a day
    >>> [aged_epsilon(year, distance, 1e-6, pure=36_500_000_000) for distance in (1.0, 0.05, 0.0)]
    [10748499677, 6591931362, 0]
    """
    if not 0 <= distance <= 1:
        raise ChainError("a total variation is a number from 0 to 1")
    if not 0 <= delta < 1:
        raise ChainError(f"delta = {delta}: a probability from 0 to below 1")
    if distance <= delta:  # the two laws differ by no more than delta
        return 0
    unaged = approximate_epsilon(curve, Fraction(delta) / Fraction(distance), pure=pure)
    aged = round_up_with_slack(leakage_from_total_variation(distance, to_float(unaged)))
    return min(unaged, ceil_nano(float(aged)))


def _probability(delta: ArrayLike) -> Floats:
    values = np.asarray(delta, dtype=np.float64)
    if not ((values >= 0) & (values <= 1)).all():
        raise ChainError("a delta is a probability, from 0 to 1")
    return values
