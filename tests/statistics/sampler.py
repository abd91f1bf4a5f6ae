"""An exact sampler of the discrete Laplace law of our own, to hold OpenDP's against.

After Canonne, Kamath and Steinke, "The discrete Gaussian for differential privacy" (NeurIPS 2020), Algorithms 1 and
2: integers and coin flips only, so nothing is rounded and no float is near.
"""

from __future__ import annotations

import secrets
from fractions import Fraction


def bernoulli(p: Fraction) -> bool:
    """Return True with probability p, 0 <= p <= 1."""
    return secrets.randbelow(p.denominator) < p.numerator


def bernoulli_exp(gamma: Fraction) -> bool:
    """Return True with probability e^-gamma, gamma >= 0 (Algorithm 1)."""
    for _ in range(int(gamma)):
        if not _bernoulli_exp_small(Fraction(1)):
            return False
    return _bernoulli_exp_small(gamma - int(gamma))


def _bernoulli_exp_small(gamma: Fraction) -> bool:
    # P(the first k at which a coin of gamma/k fails is odd) = 1 - gamma + gamma^2/2! - ... = e^-gamma
    k = 1
    while bernoulli(gamma / k):
        k += 1
    return k % 2 == 1


def discrete_laplace(scale: Fraction) -> int:
    """Return k with probability proportional to e^(-|k|/scale) (Algorithm 2, scale = t/s)."""
    t, s = scale.numerator, scale.denominator
    while True:
        u = secrets.randbelow(t)
        if not bernoulli_exp(Fraction(u, t)):
            continue
        v = 0
        while bernoulli_exp(Fraction(1)):
            v += 1
        magnitude = (u + t * v) // s
        negative = bool(secrets.randbelow(2))
        if not (negative and magnitude == 0):
            return -magnitude if negative else magnitude
