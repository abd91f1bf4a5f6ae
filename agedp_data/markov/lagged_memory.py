"""Pairs of days at a lag, counted, and the signed memory that they show.

Example: a day is high with probability 0.7 after a high one and 0.4 after a low one: the memory at a lag of one day is
0.3. `hidden_regimes` predicts such pairs.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from agedp_data.arrays import Floats
from agedp_data.errors import ChainError
from agedp_data.markov.lagged_counts import Ints, checked_lags, count_lagged_pairs


def counted_pairs(symbols: ArrayLike, lags: ArrayLike, *, n_symbols: int) -> Ints:
    r"""Direct counts: pairs of days of a household with each symbol now and each symbol a number of days earlier.

    .. math:: N_l(y, z) = \#\{t : y_t = y,\ y_{t-l} = z\}

    Source: counts of the empirical counterpart of [A] eq. 12, for every lag.

    Args:
        symbols: shape (..., T) int, -1 if missing.
        lags: shape (L,), integers >= 1 [days].
        n_symbols: number of symbols m.

    Returns:
        Shape (..., L, m, m) int64 [pairs], row: symbol now, column: symbol earlier.

    Raises:
        ChainError: symbols or lags of a wrong kind.

    References:
        [A] https://doi.org/10.1109/TIT.2023.3340147

    >>> counted_pairs([0, 1, 1], [1], n_symbols=2).tolist()  # (1 after 0), (1 after 1)
    [[[0, 0], [1, 1]]]
    """
    steps = checked_lags(lags).tolist()
    tables = [count_lagged_pairs(symbols, symbols, lag, n_secret=n_symbols, n_read=n_symbols) for lag in steps]
    shape = (*np.shape(symbols)[:-1], 0, n_symbols, n_symbols)
    return np.stack(tables, axis=-3) if tables else np.zeros(shape, np.int64)


def signed_memory(pairs: ArrayLike, *, min_pairs: float = 0) -> Floats:
    r"""Signed memory of two halves: how much more probable a high day was if the present one is high.

    Symbols are split in two at the middle. 0: independent; 1: the half never changes; below 0: it alternates.

    .. math:: P(\text{earlier high} \mid \text{now high}) - P(\text{earlier high} \mid \text{now low})

    Source: this project; the two-state total variation of [A] Definition 6, with its sign.

    Args:
        pairs: counts or probabilities, shape (..., m, m), row: now, column: earlier, m even.
        min_pairs: a table with fewer of them in either half of the present is not judged [pairs].

    Returns:
        Shape (...), between -1 and 1; NaN where a half has no or too few pairs.

    Raises:
        ChainError: an odd number of symbols, or a table that is not square.

    References:
        [A] https://doi.org/10.1109/TIT.2023.3340147

    >>> float(signed_memory([[3, 1], [1, 3]]))  # 3/4 - 1/4
    0.5
    """
    table: Floats = np.asarray(pairs, dtype=np.float64)
    m = table.shape[-1] if table.ndim >= 2 else 1
    if m % 2 or table.shape[-2] != m:
        raise ChainError(f"a table of pairs has an even number of rows and columns, got {table.shape}")
    halves = table.reshape(*table.shape[:-2], 2, m // 2, 2, m // 2).sum(axis=(-3, -1))
    now = halves.sum(axis=-1)
    is_judged = (now > 0).all(axis=-1) & (now >= min_pairs).all(axis=-1)
    share = np.divide(halves[..., 1], now, out=np.zeros_like(now), where=now > 0)
    return np.where(is_judged, share[..., 1] - share[..., 0], np.nan)
