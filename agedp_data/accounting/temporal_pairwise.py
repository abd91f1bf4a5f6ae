"""Total temporal leakage pair by pair of values: never above the sum of both directions' separate maxima.

    TPL_t = e_t + max over ordered pairs (x, y) of [ L_B,xy(BPL_(t-1)) + L_F,xy(FPL_(t+1)) ],

L_xy is the leakage between rows x and y alone. Given the value at t, past and future are independent, so their
log-ratios add up for the SAME pair; [T] eq. 10 adds the maxima over different pairs. Example: see `pairwise`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from agedp_data.accounting.temporal_allocation import temporal_recursion
from agedp_data.accounting.temporal_recursion import checked_loss_series
from agedp_data.arrays import Floats, Mask, checked_kernel, filled_kernel
from agedp_data.errors import ChainError
from agedp_data.leakage.batched import Kernels, kernel_set
from agedp_data.leakage.pieces import gain, prefixes


def pairwise(kernel_b: Kernels, kernel_f: Kernels, losses: ArrayLike) -> Floats:
    r"""Total temporal leakage of one household, with the same pair of values in both directions.

    Use it where `temporal` is too large: it is never above it, but costs k^3 per step.

    .. math:: TPL_t = \varepsilon_t + \max_{x, y} \big[ L_{P_B}^{xy}(BPL_{t-1}) + L_{P_F}^{xy}(FPL_{t+1}) \big]

    Source: this project. Erratum to [T] eqs. 10 and 11: they are upper bounds, not equalities.

    Args:
        kernel_b: P_B as in `backward`, shape (k, k), probabilities [-]; a tuple for a set, or None.
        kernel_f: P_F, of the same values in its rows, shape (k, k) [-].
        losses: e, shape (T,), >= 0 [epsilon].

    Returns:
        Shape (T,) [epsilon]. States without data in either kernel are left out.

    Raises:
        ChainError: as `backward`; a stack of households, or kernels of different values.

    References:
        [T] Cao, Yoshikawa, Xiao, Xiong: Quantifying Differential Privacy in Continuous Data Release Under Temporal
        Correlations. IEEE Trans. Knowl. Data Eng. 31(7), 2019. https://doi.org/10.1109/TKDE.2018.2824328

    >>> cycle, stay = [[0, 1, 0], [0, 0, 1], [1, 0, 0]], [[1, 0, 0], [0, 1, 0], [0, 0, 1]]
    >>> pairwise(cycle, stay, [0.1, 0.1, 0.1]).round(4).tolist()  # nothing is lost in either direction: the sum
    [0.3, 0.3, 0.3]
    """
    series = checked_loss_series(losses)
    past, future = (_PairwiseLeakage(kernel) for kernel in (kernel_b, kernel_f))
    if past.valid.shape[-1] != future.valid.shape[-1] and past.valid.size > 1 < future.valid.size:
        raise ChainError("backward and forward kernels must be about the same values")
    if series.ndim != 1:
        raise ChainError(f"losses of one household are a list, got shape {series.shape}")
    totals = temporal_recursion(kernel_b, kernel_f, releases=series.size).leakage_totals(series)
    valid = past.valid & future.valid
    valid_pairs = valid[:, None] & valid
    before, after = np.append(0.0, totals.backward[:-1]), np.append(totals.forward[1:], 0.0)
    pair_maxima = [np.where(valid_pairs, past(a) + future(b), 0.0).max() for a, b in zip(before, after, strict=True)]
    return np.asarray(series + np.array(pair_maxima))


class _PairwiseLeakage:
    """L between each two rows of a kernel, or the maximum over a set of kernels: loss -> (k, k)."""

    def __init__(self, kernel: Kernels) -> None:
        chains = kernel_set(kernel)
        if any(chain.ndim != 2 or chain.shape[0] != chains[0].shape[0] for chain in chains):
            raise ChainError("pairs are those of one household's values; take the households one by one")
        rows: list[Mask] = [checked_kernel(chain)[1] for chain in chains]
        self.valid: Mask = np.all(rows, axis=0) if rows else np.ones(1, dtype=np.bool_)
        pieces = [_pieces(filled_kernel(chain)) for chain in chains] or [(np.zeros((1, 1, 0)),) * 2]
        self._over, self._under = (np.concatenate(side, axis=-1) for side in zip(*pieces, strict=True))

    def __call__(self, loss: float) -> Floats:
        return gain(self._over, self._under, np.full(self._over.shape[:-1], loss))


def _pieces(rows: Floats) -> tuple[Floats, Floats]:
    k, n = rows.shape
    parts = [(over.reshape(-1, k, n - 1), under.reshape(-1, k, n - 1)) for _, over, under in prefixes(rows[None])]
    over, under = (np.concatenate(side) for side in zip(*parts, strict=True))
    return over, under
