"""Two-state chain with a noisy mean ([A] Example 1): the cost of ageing in accuracy.

I agents are in state -1 or 1; each changes its state with probability p at every step. The mean of the states is
published with Laplace noise. Example: 20 agents, epsilon 0.5: the noise scale is 0.2 and the mean square error at age 0
is 0.08.

Decisions:

* States -1 and 1 differ by 2, so the sensitivity of the mean is 2/I and the scale 2/(eps I). [A] eq. 48 has 1/(eps I),
  which is 2 eps-DP; its benchmark 2/(eps^2 I^2) should be 8/(eps^2 I^2).
* The failure rate is exact over the I + 1 counts; ties count as at least 0.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.polynomial.legendre import leggauss
from scipy.stats import binom

from agedp_data.arrays import Floats
from agedp_data.errors import ChainError

_NODES, _PARTS, _TAIL = 20, 16, 40.0


def noise_scale(loss: float, *, agents: int) -> float:
    r"""Laplace scale of the mean of states -1 and 1.

    Use it for the noise of the mean in Example 1.

    .. math:: b = \frac{2}{\varepsilon I}

    Source: [A] eq. 48. Erratum: eq. 48 has 1/(eps I), the scale for states 0 and 1.

    Args:
        loss: epsilon of the release, > 0 [epsilon].
        agents: I, number of agents, >= 1.

    Returns:
        Scale b [state].

    Raises:
        ChainError: a loss or number of agents that is not positive.

    References:
        [A] Zhang, Wei, Berry, Huang: Age-Dependent Differential Privacy. IEEE Trans. Inf. Theory, 2024.
        https://doi.org/10.1109/TIT.2023.3340147

    >>> noise_scale(0.5, agents=20)  # 2 / (0.5 * 20)
    0.2
    """
    if not loss > 0 or agents < 1:
        raise ChainError(f"a mean needs a positive loss and an agent, got {loss} and {agents}")
    return 2 / (loss * agents)


def mean_square_error(age: float, loss: float, *, agents: int, move: float) -> float:
    r"""Mean square error of the aged noisy mean as an estimate of the present mean.

    Use it as the penalty f(age, loss) of `plan_ageing` for Example 1.

    .. math:: f_{MSE}(t, \varepsilon) = \frac{8}{\varepsilon^2 I^2} + \frac{2 (1 - (1 - 2p)^t)}{I}

    Source: [A] eq. 49, with the noise scale corrected (erratum to eq. 48).

    Args:
        age: t, >= 0 [steps].
        loss: epsilon of the release, > 0 [epsilon].
        agents: I, number of agents.
        move: p, probability of a change of state in one step [-].

    Returns:
        Mean square error [squared state].

    Raises:
        ChainError: as `noise_scale`.

    References:
        [A] Zhang, Wei, Berry, Huang: Age-Dependent Differential Privacy. IEEE Trans. Inf. Theory, 2024.
        https://doi.org/10.1109/TIT.2023.3340147

    >>> [round(mean_square_error(t, 0.5, agents=20, move=0.1), 6) for t in (0, 1, 2)]  # .08 + .1 (1 - .8^t)
    [0.08, 0.1, 0.116]
    """
    return float(2 * noise_scale(loss, agents=agents) ** 2 + 2 * (1 - (1 - 2 * move) ** age) / agents)


def shrunk_error(age: float, loss: float, *, agents: int, move: float) -> float:
    r"""Mean square error of the best multiple of the aged noisy mean.

    Use it as the fair benchmark of `mean_square_error`: it never exceeds 1/I, the error of the constant estimate 0.

    .. math:: \frac{1}{I} \Big( 1 - \frac{(1 - 2p)^{2t}}{1 + 8 / (\varepsilon^2 I)} \Big)

    Source: linear minimum mean square error. Erratum to [A] Fig. 4(c): it compares errors up to 2/I without this
    estimator.

    Args:
        age: t, >= 0 [steps].
        loss: epsilon of the release, > 0 [epsilon].
        agents: I, number of agents.
        move: p, probability of a change of state in one step [-].

    Returns:
        Mean square error [squared state].

    Raises:
        ChainError: as `noise_scale`.

    References:
        [A] Zhang, Wei, Berry, Huang: Age-Dependent Differential Privacy. IEEE Trans. Inf. Theory, 2024.
        https://doi.org/10.1109/TIT.2023.3340147

    >>> round(shrunk_error(0, 0.5, agents=20, move=0.1), 6), round(shrunk_error(99, 0.5, agents=20, move=0.1), 6)
    (0.030769, 0.05)
    """
    noise_variance = 2 * noise_scale(loss, agents=agents) ** 2
    return float((1 - (1 - 2 * move) ** (2 * age) / (1 + noise_variance * agents)) / agents)


def failure_rate(age: int, loss: float, *, agents: int, move: float) -> float:
    r"""Probability that the likelier answer to "is the mean at least 0 now?" is wrong, given the aged output.

    Use it as the penalty f(age, loss) of `plan_ageing` for a binary question. The average is over the initial states.

    .. math:: f(t, \varepsilon) = \int \min_{z \in \{0, 1\}} \Pr[z_t = z, y]\, dy

    Source: [A] eqs. 50 and 51, which condition on the initial states. Erratum to Fig. 5(a): the limit without
    information is P(mean < 0) = 0.41190 for I = 20 (ties), not 0.5.

    Args:
        age: t, integer >= 0 [steps].
        loss: epsilon of the release, > 0 [epsilon].
        agents: I, number of agents.
        move: p, probability of a change of state in one step [-].

    Returns:
        Probability [-].

    Raises:
        ChainError: as `noise_scale`.

    References:
        [A] Zhang, Wei, Berry, Huang: Age-Dependent Differential Privacy. IEEE Trans. Inf. Theory, 2024.
        https://doi.org/10.1109/TIT.2023.3340147

    >>> round(failure_rate(200, 0.5, agents=20, move=0.1), 5)
    0.4119
    """
    scale = noise_scale(loss, agents=agents)
    counts = np.arange(agents + 1)
    prior = binom.pmf(counts, agents, 0.5)
    positive = np.array([_at_least_half(start, agents, age, move) for start in range(agents + 1)])
    means = (2.0 * counts - agents) / agents
    ends = np.concatenate(([means[0] - _TAIL * scale], means, [means[-1] + _TAIL * scale]))
    edges = np.unique(np.concatenate([np.linspace(a, b, _PARTS + 1) for a, b in pairwise(ends)]))
    nodes, weights = leggauss(_NODES)
    half_widths = np.diff(edges)[:, None] / 2
    outputs: Floats = (edges[:-1, None] + half_widths + half_widths * nodes).ravel()
    density = np.exp(-np.abs(outputs[:, None] - means) / scale) / (2 * scale) * prior
    error_density = np.minimum(density @ positive, density @ (1 - positive))
    return float((error_density * (half_widths * weights).ravel()).sum())


def _at_least_half(start: int, agents: int, age: int, move: float) -> float:
    """P(at least half of the agents in state 1 after `age` steps | `start` of them in state 1 now)."""
    stay = (1 + (1 - 2 * move) ** age) / 2
    stayers = binom.pmf(np.arange(start + 1), start, stay)
    arrivals = binom.pmf(np.arange(agents - start + 1), agents - start, 1 - stay)
    total = np.convolve(stayers, arrivals)
    return float(total[(agents + 1) // 2 :].sum())
