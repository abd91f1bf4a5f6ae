r"""Hidden regimes: how long a household remembers, predicted by a hidden Markov model of its days.

A regime (holidays, illness, a heater left on) is never observed; each day shows a symbol, such as the quartile of the
day's residual, whose distribution depends on the regime. A few slow regimes carry dependence over weeks, which a chain
of the visible symbols loses within days. On 40 real households of London the mean of five regimes differs from the
direct counts by .03 on average over the lags of 1 to 60 days and by .06 at most; a chain of the quartiles is up to .27
below (`tests/real`).

Example: with two regimes that last, P(same one day later) = 0.9, and symbols that show them, the memory at a lag of two
days is 0.8 squared = 0.64.

Decisions:

* Indicative only: the model is fitted to the protected readings and predicts their average. It sets no noise.
* Expectation-maximisation for all households at once, on trailing axes. Of the libraries that fit such models, hmmlearn
  has no missing values (hmmlearn #327), takes one sequence after another, and had its last release in October 2024.
* The number of iterations is fixed, so the result of a household does not depend on the others in its batch. More of
  them fit the year's noise: the likelihood rises, the predicted memory hardly changes.
* Three fixed starts with lasting regimes, because memory is what the model is asked for; the most probable fit wins.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from agedp_data.arrays import Floats
from agedp_data.errors import ChainError
from agedp_data.markov.lagged_counts import Ints, checked_lags, checked_states, count_lagged_pairs

REGIMES, ITERATIONS = 5, 25

_BATCH = 512  # households at a time: tables of 25 numbers each stay in a processor's cache
_SHARPNESS = 1.5  # how well a regime shows at the start
_STAYS = (0.95, 0.99)  # P(same regime one day later) of two starts; the third moves to neighbours
_NEIGHBOURS = 3.0
_MIXING = 1e-9  # makes the stationary distribution of regimes unique


@dataclass(frozen=True, slots=True)
class HiddenRegimes:
    """A hidden Markov model of each household.

    Source: Rabiner 1989, section II.C.

    Attributes:
        initial: distribution of the first regime, shape (..., k).
        transition: of the regimes, shape (..., k, k), rows sum to 1.
        emission: distribution of the symbol in each regime, shape (..., k, m), rows sum to 1.
        log_likelihood: of the fitted series, shape (...).
    """

    initial: Floats
    transition: Floats
    emission: Floats
    log_likelihood: Floats


def fit_hidden_regimes(
    symbols: ArrayLike, *, n_symbols: int, n_regimes: int = REGIMES, iterations: int = ITERATIONS
) -> HiddenRegimes:
    r"""Fit a hidden Markov model to the symbols of each household (Baum-Welch).

    .. math:: \hat A_{ij} = \frac{\sum_t \xi_t(i, j)}{\sum_t \sum_j \xi_t(i, j)}, \qquad
              \hat B_{iy} = \frac{\sum_{t: y_t = y} \gamma_t(i)}{\sum_{t: y_t \ge 0} \gamma_t(i)}

    with xi and gamma the posterior probabilities of pairs of regimes and of regimes under the previous estimate.

    Source: Rabiner 1989, eqs. 40a-40c with the scaling of section V.A; Baum et al. 1970 prove that the likelihood never
    falls. A missing day has the emission probability 1 in every regime.

    Args:
        symbols: one per day, shape (..., T) int, below `n_symbols`, -1 if missing.
        n_symbols: number of symbols m.
        n_regimes: number of regimes k.
        iterations: of the re-estimation, from each start; the same for every household.

    Returns:
        The most probable of the fits from three starts.

    Raises:
        ChainError: symbols out of range, or no regime, symbol or day.

    References:
        Rabiner: A Tutorial on Hidden Markov Models. Proc. IEEE 77(2), 1989. https://doi.org/10.1109/5.18626
        Baum, Petrie, Soules, Weiss: A Maximization Technique. Ann. Math. Statist. 41(1), 1970.
        https://doi.org/10.1214/aoms/1177697196

    >>> fit = fit_hidden_regimes([0, 0, 0, 0, 1, 1, 1, 1], n_symbols=2, n_regimes=2)
    >>> fit.emission.round(3).tolist(), fit.transition.round(3).tolist()
    ([[1.0, 0.0], [0.0, 1.0]], [[0.75, 0.25], [0.0, 1.0]])
    """
    series = checked_states(symbols, n_symbols)
    if min(n_regimes, n_symbols, iterations, series.shape[-1]) < 1:
        raise ChainError("a hidden Markov model needs a regime, a symbol, a day and an iteration")
    flat = series.reshape(-1, series.shape[-1])
    fits = [
        _most_probable_fit(np.ascontiguousarray(flat[first : first + _BATCH].T), n_regimes, n_symbols, iterations)
        for first in range(0, len(flat), _BATCH)
    ] or [_most_probable_fit(flat.T, n_regimes, n_symbols, iterations)]
    initial, transition, emission, likelihood = (np.concatenate(arrays, axis=-1) for arrays in zip(*fits, strict=True))
    shape = series.shape[:-1]
    return HiddenRegimes(
        np.moveaxis(initial, -1, 0).reshape(*shape, n_regimes),
        np.moveaxis(transition, -1, 0).reshape(*shape, n_regimes, n_regimes),
        np.moveaxis(emission, -1, 0).swapaxes(-1, -2).reshape(*shape, n_regimes, n_symbols),
        likelihood.reshape(shape),
    )


def hidden_log_likelihood(symbols: ArrayLike, regimes: HiddenRegimes) -> Floats:
    r"""Log-likelihood of series of symbols under hidden Markov models, by the scaled forward recursion.

    .. math:: \ln P(y_1, \dots, y_T) = \ln \sum_{x_1, \dots, x_T} \pi_{x_1} B_{x_1 y_1} \prod_{t > 1}
              A_{x_{t-1} x_t} B_{x_t y_t}

    Source: Rabiner 1989, eqs. 19-21, and section V.A for the scaling.

    Args:
        symbols: shape (..., T) int, -1 if missing.
        regimes: models of the same leading shape; their likelihood is not used.

    Returns:
        Shape (...), <= 0; -inf for an impossible series.

    Raises:
        ChainError: symbols out of range.

    References:
        Rabiner: A Tutorial on Hidden Markov Models. Proc. IEEE 77(2), 1989. https://doi.org/10.1109/5.18626

    >>> coin = HiddenRegimes(np.array([1.0]), np.array([[1.0]]), np.array([[0.5, 0.5]]), np.array(0.0))
    >>> float(np.exp(hidden_log_likelihood([0, -1, 1], coin)).round(12))
    0.25
    """
    series = checked_states(symbols, regimes.emission.shape[-1])
    flat = np.ascontiguousarray(series.reshape(-1, series.shape[-1]).T)
    k, m = regimes.emission.shape[-2:]
    initial = regimes.initial.reshape(-1, k).T
    transition = np.moveaxis(regimes.transition.reshape(-1, k, k), 0, -1)
    emission = np.moveaxis(regimes.emission.reshape(-1, k, m), 0, -1).swapaxes(0, 1)
    _, scale = _forward(_emitted(flat, emission), initial, transition)
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(scale).sum(axis=0).reshape(series.shape[:-1]))


def predicted_pairs(regimes: HiddenRegimes, lags: ArrayLike) -> Floats:
    r"""Stationary joint law of a symbol and the symbol a number of days earlier.

    .. math:: P(y_t = y,\ y_{t-l} = z) = \sum_{i, j} \pi_i B_{iz} (A^l)_{ij} B_{jy}, \qquad \pi A = \pi

    Source: Rabiner 1989, section II (the definition of the model), summed over all other days.

    Args:
        regimes: models, leading shape (...).
        lags: shape (L,), integers >= 1 [days].

    Returns:
        Shape (..., L, m, m), row: symbol now, column: symbol earlier; sums to 1.

    Raises:
        ChainError: a lag that is not an integer >= 1.

    References:
        Rabiner: A Tutorial on Hidden Markov Models. Proc. IEEE 77(2), 1989. https://doi.org/10.1109/5.18626

    >>> shown = HiddenRegimes(np.ones(2) / 2, np.array([[0.9, 0.1], [0.1, 0.9]]), np.eye(2), np.array(0.0))
    >>> predicted_pairs(shown, [1]).round(12).tolist()
    [[[0.45, 0.05], [0.05, 0.45]]]
    """
    occupied = _stationary(regimes.transition)[..., :, None] * regimes.emission
    pairs = [
        (occupied.swapaxes(-1, -2) @ np.linalg.matrix_power(regimes.transition, lag) @ regimes.emission)
        for lag in checked_lags(lags).tolist()
    ]
    shape = (*regimes.emission.shape[:-2], 0, *2 * regimes.emission.shape[-1:])
    return np.stack(pairs, axis=-3).swapaxes(-1, -2) if pairs else np.zeros(shape)


def chain_pairs(states: ArrayLike, lags: ArrayLike, *, shown: ArrayLike) -> Floats:
    r"""Stationary joint law of a symbol and an earlier one by the first-order chain of visible states.

    What a model without hidden regimes predicts for the same days.

    .. math:: P(y_t = y,\ y_{t-l} = z) = \sum_{i, j} \pi_i S_{iz} (\hat P^l)_{ij} S_{jy}

    Source: elementary; P is the maximum-likelihood matrix of the counted steps, and a row without steps is uniform.

    Args:
        states: shape (..., T) int, -1 if missing.
        lags: shape (L,), integers >= 1 [days].
        shown: S, which symbol each state shows, shape (k, m), rows sum to 1; the unit matrix if states are symbols.

    Returns:
        Shape (..., L, m, m) as `predicted_pairs`.

    Raises:
        ChainError: states or lags of a wrong kind.

    >>> chain_pairs([0, 0, 1, 1, 0, 0, 1, 1, 0], [1], shown=np.eye(2)).round(9).tolist()  # all four steps equally often
    [[[0.25, 0.25], [0.25, 0.25]]]
    """
    emission: Floats = np.asarray(shown, dtype=np.float64)
    k = len(emission)
    steps = count_lagged_pairs(states, states, 1, n_secret=k, n_read=k).swapaxes(-1, -2)
    visits = steps.sum(axis=-1, keepdims=True)
    chain = np.where(visits > 0, steps / np.maximum(visits, 1), 1 / k)
    emissions = np.broadcast_to(emission, (*chain.shape[:-2], *emission.shape))
    return predicted_pairs(HiddenRegimes(chain[..., 0, :], chain, emissions, chain[..., 0, 0]), lags)


def _starts(k: int, m: int) -> Iterator[tuple[Floats, Floats]]:
    """Yield transitions (k, k) and emissions (m, k) of the starts: regimes in the order of their middle symbol."""
    centre = (np.arange(k) + 0.5) / k * m - 0.5
    shown = np.exp(-_SHARPNESS * (np.arange(m)[:, None] - centre) ** 2)
    apart = np.abs(np.subtract.outer(np.arange(k), np.arange(k)))
    leaving = [np.where(apart == 0, stay, (1 - stay) / max(k - 1, 1)) for stay in _STAYS]
    for transition in (*leaving, np.exp(-_NEIGHBOURS * apart)):
        yield transition / transition.sum(axis=1, keepdims=True), shown / shown.sum(axis=0)


def _most_probable_fit(series: Ints, k: int, m: int, iterations: int) -> tuple[Floats, Floats, Floats, Floats]:
    """Return (initial, transition, emission (m, k), log-likelihood) of series (T, h), households last."""
    size = series.shape[1]
    fits: list[tuple[Floats, Floats, Floats]] = []
    likelihoods: list[Floats] = []
    for first_transition, first_emission in _starts(k, m):
        initial = np.full((k, size), 1 / k)
        transition, emission = (np.repeat(table[..., None], size, -1) for table in (first_transition, first_emission))
        for _ in range(iterations):
            initial, transition, emission = _reestimated(series, initial, transition, emission)
        _, scale = _forward(_emitted(series, emission), initial, transition)
        fits.append((initial, transition, emission))
        likelihoods.append(np.log(scale).sum(axis=0))
    best = np.argmax(likelihoods, axis=0)
    initial, transition, emission = (np.stack(arrays, axis=-1) for arrays in zip(*fits, strict=True))
    column = np.arange(size)
    chosen = (table[..., column, best] for table in (initial, transition, emission))
    return (*chosen, np.stack(likelihoods)[best, column])


def _emitted(series: Ints, emission: Floats) -> Floats:
    """Return the probability of each day's symbol in each regime, 1 where it is missing: (T, k, h)."""
    m, k, size = emission.shape
    position = np.where(series < 0, m, series) * size + np.arange(size)
    shown = np.empty((len(series), k, size))
    for regime in range(k):
        shown[:, regime] = np.append(emission[:, regime], np.ones(size))[position]
    return shown


def _forward(shown: Floats, initial: Floats, transition: Floats) -> tuple[Floats, Floats]:
    """Return the scaled forward variables (T, k, h) and their scales (T, h), whose product is the likelihood."""
    forward, scale = np.empty_like(shown), np.empty((len(shown), shown.shape[-1]))
    ahead = initial
    for t, day in enumerate(shown):
        np.multiply(ahead, day, out=forward[t])
        scale[t] = forward[t].sum(axis=0)
        forward[t] /= np.where(scale[t] > 0, scale[t], 1.0)
        ahead = np.einsum("ih,ijh->jh", forward[t], transition)
    return forward, scale


def _reestimated(series: Ints, initial: Floats, transition: Floats, emission: Floats) -> tuple[Floats, Floats, Floats]:
    """Return the next estimate; a regime that no day has keeps its rows."""
    shown = _emitted(series, emission)
    forward, scale = _forward(shown, initial, transition)
    shown /= scale[:, None]
    backward = np.ones_like(shown)
    for t in range(len(shown) - 1, 0, -1):
        shown[t] *= backward[t]
        np.einsum("ijh,jh->ih", transition, shown[t], out=backward[t - 1])
    pairs = np.ascontiguousarray(forward[:-1].transpose(2, 1, 0)) @ np.ascontiguousarray(shown[1:].transpose(2, 0, 1))
    backward *= forward  # the posterior probabilities of the regimes
    is_shown = (series == np.arange(len(emission))[:, None, None]).astype(np.float64)
    symbols = np.stack([np.einsum("tkh,th->kh", backward, days) for days in is_shown])
    pairs = np.moveaxis(pairs, 0, -1) * transition
    return backward[0], _rows(pairs, transition, axis=1), _rows(symbols, emission, axis=0)


def _rows(counts: Floats, previous: Floats, *, axis: int) -> Floats:
    total = counts.sum(axis=axis, keepdims=True)
    return np.where(total > 0, counts / np.where(total > 0, total, 1.0), previous)


def _stationary(transition: Floats) -> Floats:
    """Return the stationary distribution of regimes, shape (..., k), which a minute mixing makes unique."""
    k = transition.shape[-1]
    chain = (1 - _MIXING) * transition + _MIXING / k
    equations = np.swapaxes(np.eye(k) - chain, -1, -2) + 1.0  # pi (I - P) + pi 1 = 1
    return np.linalg.solve(equations, np.ones((*equations.shape[:-1], 1)))[..., 0]
