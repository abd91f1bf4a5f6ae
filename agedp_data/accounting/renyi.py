r"""Rényi accounting: the (epsilon, delta) loss of many releases about everything that one household did on their days.

The idea: the losses of a year of daily releases rarely all come out at their worst together. The Rényi loss of order a,

.. math:: R_a = \frac{1}{a - 1} \ln \mathbb{E}_{y \sim Q} \left( \frac{P(y)}{Q(y)} \right)^a ,

of independent releases adds up, as their pure losses do, but grows with the square of a small loss. At the end it is
converted to an epsilon at a delta: every set of results is at most e^epsilon times as probable, plus delta. Nothing is
assumed about the household.

Example: a year of daily releases with epsilon 0.1 each has a pure total of 36.5. At delta = 1e-6 it is 10.75.

Decisions:

* A curve has 64 fixed orders, as integers of 1e-12, rounded up. So sums are exact and do not depend on the order of the
  releases. A day can be added to a stored sum, and the bound can be recomputed from the rows of a ledger at any time.
* The noise is discrete. The formula for continuous Laplace noise is no bound: at sensitivity 3 and scale 7 it lies
  1.4 % below.
* The sum of the pure losses is always a bound as well, so no figure exceeds it. Below about 14 days it is the smaller
  one.

[M] Mironov: Rényi Differential Privacy. CSF 2017. https://doi.org/10.1109/CSF.2017.11
[CKS] Canonne, Kamath, Steinke: The Discrete Gaussian for Differential Privacy. NeurIPS 2020.
https://doi.org/10.48550/arXiv.2004.00010
[KOV] Kairouz, Oh, Viswanath: The Composition Theorem for Differential Privacy. ICML 2015.
https://doi.org/10.48550/arXiv.1311.0776
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from decimal import Context, Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from agedp_data.arrays import Floats
from agedp_data.epsilon import EpsilonLike, ceil_nano
from agedp_data.errors import ChainError

PICO: Final = 10**12
"""Units of a curve in one epsilon."""
ORDERS: Final[Floats] = 1 + np.exp(np.linspace(np.log(0.01), np.log(1999), 64))
"""Orders a of every curve [-]."""

Curve = NDArray[Any]
"""Rényi losses at `ORDERS`, shape (64,), integers of 1e-12 epsilon: int64, or Python integers where these overflow."""

_LARGE_LOSS = 1000.0  # beyond it a release is taken at its pure loss: no order gains anything
_SLACK = 1e-14
_INT64_LIMIT = 2.0**62
_FINE = Context(prec=40)
_LOG_REST = np.log1p(-1 / ORDERS)


def laplace_curve(sensitivity: ArrayLike, scale: ArrayLike) -> Curve:
    r"""Rényi curve of integers with discrete Laplace noise; use it for every row of a ledger.

    With s the L1 sensitivity, b the scale, q = e^(-1/b), x = q^(2a - 1) and e = s/b:

    .. math:: R_a = \frac{1}{a-1} \ln \Bigl[ \frac{e^{(a-1)e} + e^{-ae}}{1+q}
              + \frac{1-q}{1+q}\, e^{(a-1)e}\, \frac{x - x^s}{1-x} \Bigr], \qquad R_a \le e

    Source: the sum over all outcomes of one value that moves by s. A vector whose cells move by s in all has no larger
    curve, however s is divided among them. Extension of [M] Proposition 6 to integers.

    Args:
        sensitivity: L1 sensitivity s, integers >= 1, shape (...) [unit of the values].
        scale: noise scale b, > 0, shape (...) [unit of the values].

    Returns:
        Shape (..., 64), rounded up [1e-12 epsilon].

    Raises:
        ChainError: a sensitivity below 1 or a scale that is not positive.

    References:
        [M] https://doi.org/10.1109/CSF.2017.11

    >>> curve = laplace_curve(1, 1.0)  # randomised response: order 2 lies between its neighbours
    >>> bool(curve[0] < 10**12 * np.log(np.e - 1 + 1 / np.e) < curve[-1]), int(curve[-1]) <= 10**12
    (True, True)
    """
    moved, width = np.broadcast_arrays(np.asarray(sensitivity, np.float64), np.asarray(scale, np.float64))
    if not ((moved >= 1) & (width > 0) & np.isfinite(width)).all():
        raise ChainError("a release has a sensitivity of at least 1 and a noise scale above 0")
    pure = moved / width
    # a loss beyond the range of floats' exponentials counts in full
    width = np.where(pure <= _LARGE_LOSS, width, moved / _LARGE_LOSS)[..., None]
    moved, loss = moved[..., None], np.minimum(pure, _LARGE_LOSS)[..., None]
    log_x = -(2 * ORDERS - 1) / width
    between = -np.expm1(-1 / width) * np.exp(log_x) * np.expm1((moved - 1) * log_x) / np.expm1(log_x)
    mean = (1 + np.exp(-(2 * ORDERS - 1) * loss) + between) / (1 + np.exp(-1 / width))
    renyi = loss + np.log(mean) / (ORDERS - 1)
    return _rounded_up(np.where(pure[..., None] <= _LARGE_LOSS, renyi, np.inf), pure[..., None])


def counts_curve(counts: ArrayLike, scale: ArrayLike) -> Curve:
    r"""Rényi curve of counts of which a household moves `counts` by one each; tighter than `laplace_curve` for them.

    .. math:: R_a = m \, R_a^{\text{randomised response}}(1/b)

    Source: independent noise on each of the m counts; each is a value that moves by s = 1. For a histogram m = 2, for
    cumulative counts their number.

    Args:
        counts: number m of counts that move, integers >= 1, shape (...).
        scale: noise scale b, > 0, shape (...) [households].

    Returns:
        Shape (..., 64), rounded up [1e-12 epsilon].

    Raises:
        ChainError: no count, or a scale that is not positive.

    References:
        [M] https://doi.org/10.1109/CSF.2017.11

    >>> bool((counts_curve(2, 20.0) <= laplace_curve(2, 20.0)).all()), bool(counts_curve(1, 3.0)[9] < 10**12 / 3)
    (True, True)
    """
    moved = np.asarray(counts, np.int64)
    if not (moved >= 1).all():
        raise ChainError("a release of counts moves at least one of them")
    single = laplace_curve(1, scale)
    is_small = not single.size or float(single.max()) * float(moved.max()) < _INT64_LIMIT
    return np.asarray((single if is_small else single.astype(object)) * moved[..., None])


def pure_curve(loss: EpsilonLike) -> Curve:
    r"""Rényi curve of an unknown mechanism with this pure loss: that of randomised response, the worst of them.

    .. math:: R_a = \frac{1}{a-1} \ln \bigl[ p^a (1-p)^{1-a} + (1-p)^a p^{1-a} \bigr], \quad p = \frac{e^e}{1 + e^e}

    Source: [KOV]: randomised response dominates every mechanism with pure loss e.

    Args:
        loss: pure loss e, > 0 [epsilon].

    Returns:
        Shape (64,), rounded up [1e-12 epsilon].

    Raises:
        ChainError: a loss that is not positive.

    References:
        [KOV] https://doi.org/10.48550/arXiv.1311.0776

    >>> bool((pure_curve(0.5) >= laplace_curve(1, 2.0)).all()), bool((pure_curve(0.5) <= 500_000_000_001).all())
    (True, True)
    """
    if not loss > 0:
        raise ChainError("a release has a loss above 0")
    return laplace_curve(1, np.nextafter(1 / float(loss), 0))


def compose(curves: Curve) -> Curve:
    r"""Rényi curve of all releases together: the sum of their curves, exact and in any order.

    .. math:: R_a = \sum_k R_a^{(k)}

    Source: [M] Proposition 1. Losses never depend on readings, so that no release depends on the outcome of another.

    Args:
        curves: curves of the releases, shape (n, 64) [1e-12 epsilon].

    Returns:
        Shape (64,) [1e-12 epsilon]; zeros for no release.

    References:
        [M] https://doi.org/10.1109/CSF.2017.11

    >>> curve = laplace_curve(1, 2.0)
    >>> bool((compose(np.array([curve, curve])) == 2 * curve).all())
    True
    """
    if curves.dtype != object and np.abs(curves).astype(np.float64).sum() > _INT64_LIMIT:
        curves = curves.astype(object)
    return np.asarray(curves.sum(axis=0))


def approximate_epsilon(curve: Curve, delta: EpsilonLike, *, pure: int) -> int:
    r"""Epsilon of releases with this curve at a delta, at most the sum of their pure losses.

    .. math:: \varepsilon(\delta) = \min \Bigl( \sum_k \varepsilon_k, \;
              \min_a \Bigl[ R_a + \ln \bigl( 1 - \tfrac1a \bigr) - \frac{\ln \delta + \ln a}{a - 1} \Bigr] \Bigr)

    For any set S of results, Pr[M(x) in S] <= e^epsilon Pr[M(x') in S] + delta.

    Source: [CKS] Proposition 12.

    Args:
        curve: curve of the releases together, shape (64,) [1e-12 epsilon].
        delta: probability, 0 <= delta < 1 [-]; 0 gives the sum of the pure losses.
        pure: sum of the pure losses [nano-epsilon].

    Returns:
        Integer from 0 to `pure`, rounded up [nano-epsilon].

    Raises:
        ChainError: a delta outside [0, 1).

    References:
        [CKS] https://doi.org/10.48550/arXiv.2004.00010

    >>> year = 365 * laplace_curve(50_000, 500_000.0)  # epsilon 0.1 a day
    >>> approximate_epsilon(year, Decimal("1e-6"), pure=36_500_000_000)  # reference value: 10.748
    10748499677
    """
    return int(approximate_epsilons(curve[None, :], delta, pure=[pure])[0])


def approximate_epsilons(curves: Curve, delta: EpsilonLike, *, pure: Sequence[int]) -> list[int]:
    r"""Epsilon of each of n spans at a delta; `approximate_epsilon` for many windows at once.

    Source: [CKS] Proposition 12.

    Args:
        curves: curve of each span, shape (n, 64) [1e-12 epsilon].
        delta: probability, 0 <= delta < 1 [-].
        pure: sum of the pure losses of each span, n integers [nano-epsilon].

    Returns:
        n integers, rounded up [nano-epsilon].

    Raises:
        ChainError: a delta outside [0, 1).

    References:
        [CKS] https://doi.org/10.48550/arXiv.2004.00010

    >>> approximate_epsilons(laplace_curve([1, 1], [1.0, 2.0]), 0, pure=[10**9, 5 * 10**8])
    [1000000000, 500000000]
    """
    if not 0 <= delta < 1:
        raise ChainError(f"delta = {delta}: a probability from 0 to below 1")
    if delta == 0:
        return list(pure)
    (of_delta, of_slack), renyi = _terms(delta), curves.astype(np.float64) / PICO
    bounds = renyi + _LOG_REST - of_delta
    slack = _SLACK * (renyi + of_slack + 1)
    smallest = (bounds + slack).min(axis=1).tolist()
    return [max(0, min(total, ceil_nano(bound))) for bound, total in zip(smallest, pure, strict=True)]


def approximate_delta(curve: Curve, epsilon: EpsilonLike) -> float:
    r"""Delta of releases with this curve at an epsilon, the inverse of `approximate_epsilon`.

    .. math:: \delta(\varepsilon) = \min_a \frac1a \bigl( 1 - \tfrac1a \bigr)^{a-1} e^{(a-1)(R_a - \varepsilon)}

    Source: [CKS] Proposition 12.

    Args:
        curve: curve of the releases together, shape (64,) [1e-12 epsilon].
        epsilon: privacy loss, >= 0 [epsilon].

    Returns:
        Probability from 0 to 1, rounded up [-].

    References:
        [CKS] https://doi.org/10.48550/arXiv.2004.00010

    >>> year = 365 * laplace_curve(50_000, 500_000.0)
    >>> f"{approximate_delta(year, 10.748499676):.6e}"
    '1.000000e-06'
    """
    renyi = curve.astype(np.float64) / PICO
    exponent = (ORDERS - 1) * (renyi + np.log1p(-1 / ORDERS) - float(epsilon)) - np.log(ORDERS)
    slack = _SLACK * ((ORDERS - 1) * (renyi + float(epsilon) + 1) + np.log(ORDERS) + 1)
    return float(np.exp(min(0.0, (exponent + slack).min())))


def largest_equal_loss(
    curve_of: Callable[[int], Curve], releases: int, *, epsilon: int, delta: EpsilonLike, cap: int
) -> int:
    r"""Largest loss of each of `releases` equal releases that together stay within (epsilon, delta).

    .. math:: \max \{ e : \varepsilon_{T R(e)}(\delta) \le \varepsilon \}

    Source: monotonicity of `approximate_epsilon` in the loss; bisection over whole nano-epsilon.

    Args:
        curve_of: curve of one release with a loss [nano-epsilon].
        releases: number T of releases, >= 1.
        epsilon: bound of all together [nano-epsilon].
        delta: probability [-].
        cap: largest loss of one release [nano-epsilon].

    Returns:
        Integer, rounded down [nano-epsilon]; 0 if no loss fits.

    >>> largest_equal_loss(lambda loss: laplace_curve(50_000, 50_000 * 10**9 / loss), 365,
    ...                    epsilon=10 * 10**9, delta=1e-6, cap=10**9)  # 0.0939 a day
    93907504
    """
    low, high = 0, cap + 1
    while high - low > 1:
        middle = (low + high) // 2
        curve = multiply(curve_of(middle), releases)
        if approximate_epsilon(curve, delta, pure=releases * middle) <= epsilon:
            low = middle
        else:
            high = middle
    return low


def multiply(curve: Curve, releases: int) -> Curve:
    """Return the curve of `releases` equal releases together.

    Source: [M] Proposition 1, as `compose`.

    Args:
        curve: curve of one release, shape (64,) [1e-12 epsilon].
        releases: number of releases, >= 0.

    Returns:
        Shape (64,) [1e-12 epsilon].

    References:
        [M] https://doi.org/10.1109/CSF.2017.11

    >>> bool((multiply(laplace_curve(1, 2.0), 3) == 3 * laplace_curve(1, 2.0)).all())
    True
    """
    is_small = float(curve.max()) * releases < _INT64_LIMIT
    return np.asarray((curve if is_small else curve.astype(object)) * releases)


def _rounded_up(renyi: Floats, pure: Floats) -> Curve:
    """Return the smaller of Rényi and pure losses as integers of 1e-12, above the error of their floats."""
    slack = _SLACK * (1 + np.minimum(pure, _LARGE_LOSS) + 1 / (ORDERS - 1))
    bound = np.minimum(np.maximum(renyi, 0) + slack, pure * (1 + _SLACK))
    if bound.size and bound.max() > _INT64_LIMIT / PICO:
        exact = [math.ceil(Fraction(value) * PICO) for value in bound.ravel()]
        return np.array(exact, object).reshape(bound.shape)
    return np.asarray(np.ceil(bound * PICO), np.int64)


@lru_cache(maxsize=64)
def _terms(delta: EpsilonLike) -> tuple[Floats, Floats]:
    """Return the terms of delta in the bound of each order, and in its slack."""
    log_delta = _log(delta)
    return (log_delta + np.log(ORDERS)) / (ORDERS - 1), (1 - log_delta) / (ORDERS - 1)


def _log(delta: EpsilonLike) -> float:
    """Return ln(delta), exact to the last bits, however small delta is."""
    exact = Fraction(delta)
    return float(_FINE.subtract(_FINE.ln(Decimal(exact.numerator)), _FINE.ln(Decimal(exact.denominator))))


# --------------------------------------------------------------------------------------------------
# Rényi curve of a vector whose cells each move by a bounded amount: what a profile loses about a span of days.
#
# The idea: the pure loss of a vector is decided by the sum of the moves of its cells, however they are divided. At
# finite orders many small moves lose much less than one large move. A half-hour moves by at most its clamp, so a
# household that moves a profile by the whole sensitivity moves many cells.
#
# Example: with clamps of 4 kWh for a half-hour and 50 kWh for the day, 25 cells move by 4 kWh. At epsilon 0.1 a day
# and delta = 1e-6 a year comes to 1.81; a mean with the same epsilon, one cell that moves by its clamp, to 10.75.
#
# [M] Mironov: Rényi Differential Privacy. CSF 2017. https://doi.org/10.1109/CSF.2017.11
# --------------------------------------------------------------------------------------------------


def vector_curve(sensitivity: int, *, largest_move: int, scale: float) -> Curve:
    r"""Return the Rényi curve of a vector with discrete Laplace noise, no cell of which moves by more than a bound.

    .. math:: R_a(d) \le k \, R_a(u) + R_a(r), \quad s = k u + r, \quad 0 \le r < u

    for all moves d with :math:`|d_i| \le u` and :math:`\sum_i |d_i| \le s`, where R_a(m) is the curve of one value that
    moves by m (`laplace_curve`).

    Proof. With q = e^(-1/b) and x = q^(2a - 1), the mean over all outcomes for one value that moves by m is

    .. math:: e^{(a-1) R_a(m)} = \frac{1-q}{1+q} \Bigl[ \Bigl(\frac{1}{1-q} + \frac{x}{1-x}\Bigr) q^{-(a-1) m}
       + \Bigl(\frac{1}{1-q} - \frac{1}{1-x}\Bigr) q^{a m} \Bigr]

    Both factors are at least 0, because x <= q for orders a >= 1. The logarithm of a sum of exponentials in m is
    convex, so R_a is convex in m, and R_a(0) = 0. The noise of the cells is independent: the curve of the vector is the
    sum of R_a(|d_i|). A sum of equal convex functions is largest where the moves are most unequal: u in k cells, r in
    another.

    Source: additivity of the Rényi divergence of independent cells ([M] Proposition 1); Karamata's inequality for
    convex functions.

    Args:
        sensitivity: L1 sensitivity s of the vector, integer >= 1 [unit of the values].
        largest_move: largest move u of one cell, integer >= 1 [unit of the values].
        scale: noise scale b of each cell, > 0 [unit of the values].

    Returns:
        Shape (64,), rounded up [1e-12 epsilon]; at most `laplace_curve(sensitivity, scale)`.

    Raises:
        ChainError: a move below 1; or as `laplace_curve`.

    References:
        [M] https://doi.org/10.1109/CSF.2017.11

    >>> whole, parts = laplace_curve(100, 1000.0), vector_curve(100, largest_move=4, scale=1000.0)
    >>> bool((parts <= whole).all()), round(float(whole[0] / parts[0]))  # 25 moves of a 25th
    (True, 24)
    """
    if largest_move < 1:
        raise ChainError(f"a cell moves by {largest_move}: must be at least 1")
    single = laplace_curve(sensitivity, scale)
    number, rest = divmod(sensitivity, largest_move)
    if number == 0 or (number, rest) == (1, 0):
        return single
    parts = multiply(laplace_curve(largest_move, scale), number)
    if rest:
        parts = compose(np.array([parts, laplace_curve(rest, scale)]))
    return np.minimum(parts, single)


# --------------------------------------------------------------------------------------------------
# Privacy-loss distribution: the tightest (epsilon, delta) figure of a span, for plans; no promise is enforced by it.
#
# The idea: of a release with sensitivity s and scale b the loss at the worst pair of datasets is a random number with
# a known law. Losses of independent releases add, so their laws are convolved, and
#
# .. math:: \delta(\varepsilon) = \mathbb{E} \bigl[ 1 - e^{\varepsilon - L} \bigr]^+ .
#
# Example: a year of daily releases with epsilon 0.1 each: 10.13 at delta = 1e-6, where the Rényi curve gives 10.75.
#
# Decisions:
#
# * Losses are rounded up on a grid, so that the discretisation only raises the figure. The floats of the convolution
#   are not certified: a plan may show the figure, `renyi` enforces.
#
# [KJH] Koskela, Jälkö, Honkela: Computing Tight Differential Privacy Guarantees Using FFT. AISTATS 2020.
# https://doi.org/10.48550/arXiv.1906.03049
# --------------------------------------------------------------------------------------------------

Release = tuple[int, float, int]
"""Sensitivity, scale, and how many such releases there are."""

_POINTS: Final = 2**21
_TOLERANCE: Final = 1e-9


def tight_epsilon(releases: Iterable[Release], delta: float) -> float:
    r"""Epsilon of independent discrete Laplace releases at a delta, within the grid's spacing above the exact one.

    .. math:: \min \left\{ \varepsilon : \mathbb{E} [1 - e^{\varepsilon - L_1 - \dots - L_n}]^+ \le \delta \right\}

    Source: [KJH] with losses rounded up.

    Args:
        releases: sensitivity [unit], scale [unit] and number of each kind of release.
        delta: probability, 0 < delta < 1 [-].

    Returns:
        Not above the sum of the pure losses [epsilon].

    Raises:
        ChainError: a delta outside (0, 1).

    References:
        [KJH] https://doi.org/10.48550/arXiv.1906.03049

    >>> round(tight_epsilon([(50_000, 500_000.0, 365)], 1e-6), 2)  # exact: 10.125
    10.13
    """
    if not 0 < delta < 1:
        raise ChainError(f"delta = {delta}: a probability between 0 and 1")
    rows = list(releases)
    pure = sum(count * sensitivity / scale for sensitivity, scale, count in rows)
    if not rows:
        return 0.0
    step = 2.2 * pure / _POINTS
    law = _composed_law(rows, step)
    losses = np.asarray((np.arange(_POINTS) - _POINTS // 2) * step, np.float64)
    return min(pure, _smallest_epsilon(losses, law, delta))


def _composed_law(releases: list[Release], step: float) -> Floats:
    """Return the law of the sum of all losses on the grid of `step`, 0 in the middle."""
    from scipy import fft  # noqa: PLC0415  (slow to import, and few commands need it)

    spectrum = np.ones(_POINTS // 2 + 1, np.complex128)
    for sensitivity, scale, count in releases:
        spectrum *= fft.rfft(_law(sensitivity, scale, step)) ** count
    return np.asarray(fft.fftshift(np.clip(fft.irfft(spectrum, _POINTS), 0, None)))


def _law(sensitivity: int, scale: float, step: float) -> Floats:
    """Return the law of one release's loss, rounded up to the grid; negative losses at the end of the array.

    P[L = s/b] = 1/(1 + q), P[L = -s/b] = q^s/(1 + q), P[L = (s - 2k)/b] = (1 - q)/(1 + q) q^k.
    """
    q = math.exp(-1 / scale)
    moved = np.arange(1, sensitivity)
    losses = np.concatenate([[sensitivity], sensitivity - 2 * moved, [-sensitivity]]) / scale
    rest = -math.expm1(-1 / scale) / (1 + q) * np.exp(-moved / scale)
    weights = np.concatenate([[1 / (1 + q)], rest, [math.exp(-sensitivity / scale) / (1 + q)]])
    cells = np.ceil(losses / step - _TOLERANCE).astype(np.int64) % _POINTS
    return np.asarray(np.bincount(cells, weights, minlength=_POINTS), np.float64)


def _smallest_epsilon(losses: Floats, law: Floats, delta: float) -> float:
    """Return the smallest epsilon on the grid at which the expected excess of the loss is at most delta."""
    # E[1 - e^(eps - L)]^+ = P(L > eps) - e^eps E[e^-L; L > eps]
    beyond = np.cumsum(law[::-1])[::-1] - law
    shrunk = law * np.exp(-np.clip(losses, 0, None))
    weighted = np.cumsum(shrunk[::-1])[::-1] - shrunk
    positive = losses >= 0
    excess = (beyond - np.exp(np.minimum(losses, 700.0)) * weighted)[positive]
    fitting = np.flatnonzero(excess <= delta)
    return float(losses[positive][fitting[0]]) if fitting.size else math.inf
