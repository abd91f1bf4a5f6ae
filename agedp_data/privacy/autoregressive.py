"""AR(1), appendix I of [A], with exact total variation: x_(t+1) = rho x_t + noise of variance sigma^2.

Given x_0 the law of x_t is N(rho^t x_0, s_t^2), s_t^2 = sigma^2 (1 - rho^(2t))/(1 - rho^2), and two such laws are
2 Phi(|d|/(2 s_t)) - 1 apart, d = rho^t (x_0 - x_0'). [A] eqs. 88 and 89 use Pinsker's inequality and do not clip, so
the loss can exceed that of the mechanism; eq. 85 is minus a divergence, and of the other direction.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import erf

from agedp_data.errors import ChainError
from agedp_data.privacy.kernel import Floats, checked_loss
from agedp_data.privacy.leakage import leakage_from_total_variation


def total_variation(age: ArrayLike, *, apart: float, rate: float, noise: float) -> Floats:
    """Return the total variation between the laws at each age of two values that were `apart`.

    erf(|rho^t d| / (2 sqrt(2) s_t)), 1 at age 0. Shapes: (...) -> (...). Units: [steps] -> [-]; `apart` and `noise`
    (sigma) in those of the state. The process is reversible, so the reversed one has the same.

    Raises:
        ChainError: |rho| >= 1, no noise, or a negative age.

    >>> total_variation([0, 1], apart=1.0, rate=0.8, noise=0.5).round(6).tolist()  # 2 Phi(.8) - 1
    [1.0, 0.576289]
    """
    steps = np.asarray(age, dtype=np.float64)
    if not -1 < rate < 1 or not noise > 0 or not (steps >= 0).all():
        raise ChainError("an autoregressive process forgets with |rate| < 1, positive noise and ages of at least 0")
    with np.errstate(divide="ignore", invalid="ignore"):
        spread = noise * np.sqrt((1 - np.abs(rate) ** (2 * steps)) / (1 - rate**2))
        reach = np.abs(rate) ** steps * abs(apart) / (2 * np.sqrt(2) * spread)
    return np.asarray(np.where(reach > 0, erf(reach), 0.0) if apart else np.zeros(steps.shape))


def risk(age: ArrayLike, loss: ArrayLike, *, width: float, rate: float, noise: float) -> Floats:
    """Return the loss about the present of one query, for states clipped to a range of this width ([A] eq. 89).

    Never above the loss of the mechanism. Shapes: (...), (...) -> (...), broadcast.

    >>> risk(0, 2.0, width=9.0, rate=0.8, noise=1.0).item()
    2.0
    """
    return leakage_from_total_variation(total_variation(age, apart=width, rate=rate, noise=noise), checked_loss(loss))


def noise_scale(loss: float, *, width: float, agents: int) -> float:
    """Return the Laplace scale D/(I eps) of a mean of states clipped to a range of width D.

    [A] eq. 90 adds Laplace(1/eps) to a mean of unbounded states, which has no sensitivity.

    >>> noise_scale(2.0, width=2.0, agents=20)
    0.05
    """
    if not (loss > 0 and width > 0 and agents >= 1):
        raise ChainError("a mean needs a positive loss, a positive width and an agent")
    return width / (agents * loss)


def mean_square_error(age: float, scale: float, *, agents: int, rate: float, noise: float) -> float:
    """Return the mean square error of the aged mean as an estimate of the present one, clipping aside.

    2 (1 - rho^t) sigma^2/((1 - rho^2) I) + 2 b^2, b the Laplace scale: averaged over the present state as well, where
    [A] eq. 92 keeps the innovations only, and has b^2 for the variance of the noise.

    >>> round(mean_square_error(3, 0.05, agents=20, rate=0.8, noise=1.0), 5)
    0.14056
    """
    return float(2 * (1 - rate**age) * noise**2 / ((1 - rate**2) * agents) + 2 * scale**2)
