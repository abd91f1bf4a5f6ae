"""First-order autoregressive process of [A], appendix I, with its exact total variation.

The state follows x_(t+1) = rho x_t + noise of variance sigma^2. Given x_0, x_t is normal with mean rho^t x_0 and
variance s_t^2 = sigma^2 (1 - rho^(2t)) / (1 - rho^2). Example: rho = 0.8, sigma = 0.5, states 1 apart: the total
variation after one step is 2 Phi(0.8) - 1 = 0.576.

Decisions:

* Total variation is exact. [A] eqs. 88 and 89 use Pinsker's inequality without a clip at 1, so the loss can exceed the
  mechanism's; eq. 85 is the negative of a divergence, in the opposite direction.
* States are clipped to a range before the mean: the mean of an unbounded state (eq. 90) has infinite sensitivity.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import erf

from agedp_data.arrays import Floats, checked_loss
from agedp_data.errors import ChainError
from agedp_data.leakage.function import leakage_from_total_variation


def total_variation(age: ArrayLike, *, distance: float, rate: float, noise: float) -> Floats:
    r"""Total variation between the conditional distributions of two initial values, by age.

    Use it as the curve Delta(t) of a continuous state. The process is reversible, so the reversed process has the same.

    .. math:: \Delta(t) = 2\Phi\Big(\frac{|\rho|^t |d|}{2 s_t}\Big) - 1, \qquad
        s_t^2 = \sigma^2 \frac{1 - \rho^{2t}}{1 - \rho^2}

    Source: [A] Lemma 8, eq. 84. Erratum: eq. 88 is Pinsker's upper bound and may exceed 1.

    Args:
        age: shape (...), >= 0 [steps].
        distance: d, difference of the two initial values [unit of the state].
        rate: rho, between -1 and 1 [-].
        noise: sigma, standard deviation of one innovation, > 0 [unit of the state].

    Returns:
        Shape (...) [-], 1 at age 0.

    Raises:
        ChainError: a rate outside (-1, 1), no noise, or a negative age.

    References:
        [A] Zhang, Wei, Berry, Huang: Age-Dependent Differential Privacy. IEEE Trans. Inf. Theory, 2024.
        https://doi.org/10.1109/TIT.2023.3340147

    >>> total_variation([0, 1], distance=1.0, rate=0.8, noise=0.5).round(6).tolist()  # 2 Phi(0.8) - 1
    [1.0, 0.576289]
    """
    steps = np.asarray(age, dtype=np.float64)
    if not -1 < rate < 1 or not noise > 0 or not (steps >= 0).all():
        raise ChainError("an autoregressive process mixes with |rate| < 1, positive noise and ages of at least 0")
    with np.errstate(divide="ignore", invalid="ignore"):
        deviation = noise * np.sqrt((1 - np.abs(rate) ** (2 * steps)) / (1 - rate**2))
        argument = np.abs(rate) ** steps * abs(distance) / (2 * np.sqrt(2) * deviation)
    return np.asarray(np.where(argument > 0, erf(argument), 0.0) if distance else np.zeros(steps.shape))


def risk(age: ArrayLike, loss: ArrayLike, *, width: float, rate: float, noise: float) -> Floats:
    r"""Age-dependent privacy loss about the present of one release, for states clipped to a range.

    Use it for a continuous state instead of a transition matrix.

    .. math:: \varepsilon(t) = \ln(1 + \Delta(t)(e^{\varepsilon_C} - 1)) \le \varepsilon_C

    Source: [A] Theorem 1 and eq. 89. Erratum: eq. 89 uses the bound of eq. 88 unclipped and can exceed the mechanism's
    loss.

    Args:
        age: shape (...), >= 0 [steps].
        loss: loss of the mechanism, shape (...), >= 0 [epsilon].
        width: range of the clipped state [unit of the state].
        rate: rho, between -1 and 1 [-].
        noise: sigma, > 0 [unit of the state].

    Returns:
        Shape (...), broadcast [epsilon].

    Raises:
        ChainError: as `total_variation`; a negative loss.

    References:
        [A] Zhang, Wei, Berry, Huang: Age-Dependent Differential Privacy. IEEE Trans. Inf. Theory, 2024.
        https://doi.org/10.1109/TIT.2023.3340147

    >>> risk(0, 2.0, width=9.0, rate=0.8, noise=1.0).item()
    2.0
    """
    return leakage_from_total_variation(
        total_variation(age, distance=width, rate=rate, noise=noise), checked_loss(loss)
    )


def noise_scale(loss: float, *, width: float, agents: int) -> float:
    r"""Laplace scale of the mean of states that are clipped to a range.

    Use it for the noise of the mean in the experiments of appendix I.

    .. math:: b = \frac{D}{I \varepsilon}

    Source: [A] eq. 90. Erratum: eq. 90 adds Laplace(1/eps) to a mean of unbounded states, whose sensitivity is
    infinite.

    Args:
        loss: epsilon of the release, > 0 [epsilon].
        width: D, range of the clipped state, > 0 [unit of the state].
        agents: I, number of agents, >= 1.

    Returns:
        Scale b [unit of the state].

    Raises:
        ChainError: a loss, width or number of agents that is not positive.

    References:
        [A] Zhang, Wei, Berry, Huang: Age-Dependent Differential Privacy. IEEE Trans. Inf. Theory, 2024.
        https://doi.org/10.1109/TIT.2023.3340147

    >>> noise_scale(2.0, width=2.0, agents=20)  # 2 / (20 * 2)
    0.05
    """
    if not (loss > 0 and width > 0 and agents >= 1):
        raise ChainError("a mean needs a positive loss, a positive width and an agent")
    return width / (agents * loss)


def mean_square_error(age: float, scale: float, *, agents: int, rate: float, noise: float) -> float:
    r"""Mean square error of the aged noisy mean as an estimate of the present mean, clipping neglected.

    Use it as the utility of a schedule in the experiments of appendix I.

    .. math:: \frac{2 (1 - \rho^t) \sigma^2}{(1 - \rho^2) I} + 2 b^2

    Source: [A] eqs. 90-92. Errata: eq. 92 contains the innovations only (this value also averages over the present
    state), and b^2 for the variance of the noise, which is 2 b^2.

    Args:
        age: t, >= 0 [steps].
        scale: b, Laplace scale [unit of the state].
        agents: I, number of agents.
        rate: rho [-].
        noise: sigma [unit of the state].

    Returns:
        Mean square error [squared unit of the state].

    References:
        [A] Zhang, Wei, Berry, Huang: Age-Dependent Differential Privacy. IEEE Trans. Inf. Theory, 2024.
        https://doi.org/10.1109/TIT.2023.3340147

    >>> round(mean_square_error(3, 0.05, agents=20, rate=0.8, noise=1.0), 5)  # 2 * .488 / (.36 * 20) + .005
    0.14056
    """
    return float(2 * (1 - rate**age) * noise**2 / ((1 - rate**2) * agents) + 2 * scale**2)
