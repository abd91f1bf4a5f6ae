"""Example 1 of [A], two places and a mean: what ageing costs in accuracy, with the sensitivity that the states ask for.

I agents are at -1 or 1, each moves with probability p at every step; the mean of the states is published with Laplace
noise. States -1 and 1 are 2 apart, so the sensitivity of the mean is 2/I and the noise Laplace(2/(eps I)); [A] eq. 48
has 1/(eps I), which is 2 eps-DP, and with it a benchmark of 2/(eps^2 I^2) where 8/(eps^2 I^2) is meant.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.polynomial.legendre import leggauss
from scipy.stats import binom

from agedp_data.errors import ChainError
from agedp_data.privacy.kernel import Floats

_NODES, _CUTS, _TAIL = 20, 16, 40.0


def noise_scale(loss: float, *, agents: int) -> float:
    """Return the Laplace scale 2/(eps I) of the mean of states -1 and 1 [states].

    >>> noise_scale(0.5, agents=20)
    0.2
    """
    if not loss > 0 or agents < 1:
        raise ChainError(f"a mean needs a positive loss and an agent, got {loss} and {agents}")
    return 2 / (loss * agents)


def mean_square_error(age: float, loss: float, *, agents: int, move: float) -> float:
    """Return the mean square error of the aged mean as an estimate of the present one ([A] eq. 49).

    8/(eps^2 I^2) + 2 (1 - (1 - 2p)^t)/I, p = `move`. Units: [steps], [-] -> [states squared].

    >>> [round(mean_square_error(t, 0.5, agents=20, move=0.1), 6) for t in (0, 1, 2)]
    [0.08, 0.1, 0.116]
    """
    return float(2 * noise_scale(loss, agents=agents) ** 2 + 2 * (1 - (1 - 2 * move) ** age) / agents)


def shrunk_error(age: float, loss: float, *, agents: int, move: float) -> float:
    """Return the error of the best multiple of the aged mean: never above 1/I, that of always saying 0.

    (1/I)(1 - r^2 /(1 + 8/(eps^2 I))), r = (1 - 2p)^t. [A] Fig. 4(c) compares errors up to 2/I without it.

    >>> round(shrunk_error(0, 0.5, agents=20, move=0.1), 6), round(shrunk_error(99, 0.5, agents=20, move=0.1), 6)
    (0.030769, 0.05)
    """
    noise = 2 * noise_scale(loss, agents=agents) ** 2
    return float((1 - (1 - 2 * move) ** (2 * age) / (1 + noise * agents)) / agents)


def failure_rate(age: int, loss: float, *, agents: int, move: float) -> float:
    """Return how often the likelier answer to "is the mean at least 0 now?" is wrong, given the aged output.

    Averaged over where the agents were ([A] eqs. 50, 51 condition on it); exact in the I + 1 counts, ties counting as
    at least 0. Without any information it is P(mean < 0), .41190 for I = 20, where [A] Fig. 5(a) has .5.

    >>> round(failure_rate(200, 0.5, agents=20, move=0.1), 5)
    0.4119
    """
    scale = noise_scale(loss, agents=agents)
    count = np.arange(agents + 1)
    weight = binom.pmf(count, agents, 0.5)
    positive = np.array([_at_least_half(start, agents, age, move) for start in range(agents + 1)])
    spot = (2.0 * count - agents) / agents
    ends = np.concatenate(([spot[0] - _TAIL * scale], spot, [spot[-1] + _TAIL * scale]))
    cuts = np.unique(np.concatenate([np.linspace(a, b, _CUTS + 1) for a, b in pairwise(ends)]))
    node, share = leggauss(_NODES)
    half = np.diff(cuts)[:, None] / 2
    at: Floats = (cuts[:-1, None] + half + half * node).ravel()
    density = np.exp(-np.abs(at[:, None] - spot) / scale) / (2 * scale) * weight
    wrong = np.minimum(density @ positive, density @ (1 - positive))
    return float((wrong * (half * share).ravel()).sum())


def _at_least_half(start: int, agents: int, age: int, move: float) -> float:
    """Return P(at least half the agents at 1 after `age` steps | `start` of them there now)."""
    stays = (1 + (1 - 2 * move) ** age) / 2
    stayed = binom.pmf(np.arange(start + 1), start, stays)
    came = binom.pmf(np.arange(agents - start + 1), agents - start, 1 - stays)
    total = np.convolve(stayed, came)
    return float(total[(agents + 1) // 2 :].sum())
