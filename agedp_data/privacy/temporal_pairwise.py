"""Total temporal leakage pair by pair of values: sharper than the sum of both directions' own maxima.

    TPL_t = e_t + max over ordered pairs (x, y) of [ L_B,xy(BPL_(t-1)) + L_F,xy(FPL_(t+1)) ],

L_xy the leakage between rows x and y alone. Given the value at t, what came before and what comes after are
independent, so their log-ratios add up for the SAME pair; [T] eq. 10 adds the maxima over different ones.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from agedp_data.errors import ChainError
from agedp_data.privacy.kernel import Floats, Mask, checked, filled
from agedp_data.privacy.pieces import gain, prefixes
from agedp_data.privacy.recursion import Recursion, checked_losses
from agedp_data.privacy.stacked import BatchedLeakage, Kernels, members


def pairwise(kernel_b: Kernels, kernel_f: Kernels, losses: ArrayLike) -> Floats:
    """Return TPL_t of one household, both directions about the same pair of values: never above `temporal`.

    Shapes: (k, k), (k, k), (T,) -> (T,). Units: [-]. States that are left out of either kernel are left out. Costs k^3
    a step where `temporal` costs a few numbers.

    Args:
        kernel_b: P_B, a tuple for a set, or None, as `backward`.
        kernel_f: P_F, of the same values in its rows.
        losses: of each release about its own instant.

    Raises:
        ChainError: as `backward`; also for a stack of households, or kernels of different values.

    >>> cycle, stay = [[0, 1, 0], [0, 0, 1], [1, 0, 0]], [[1, 0, 0], [0, 1, 0], [0, 0, 1]]
    >>> pairwise(cycle, stay, [0.1, 0.1, 0.1]).round(4).tolist()
    [0.3, 0.3, 0.3]
    """
    each = checked_losses(losses)
    behind, ahead = (_PairwiseLeakage(kernel) for kernel in (kernel_b, kernel_f))
    if behind.kept.shape[-1] != ahead.kept.shape[-1] and behind.kept.size > 1 < ahead.kept.size:
        raise ChainError("backward and forward kernels must be about the same values")
    if each.ndim != 1:
        raise ChainError(f"losses of one household are a list, got shape {each.shape}")
    sides = [BatchedLeakage(kernel, evaluations=each.size) for kernel in (kernel_b, kernel_f)]
    leak = Recursion(sides[0], sides[0], sides[1], sides[1]).leak(each)
    kept = behind.kept & ahead.kept
    both = kept[:, None] & kept
    before, after = np.append(0.0, leak.backward[:-1]), np.append(leak.forward[1:], 0.0)
    apart = [np.where(both, behind(a) + ahead(b), 0.0).max() for a, b in zip(before, after, strict=True)]
    return np.asarray(each + np.array(apart))


class _PairwiseLeakage:
    """L between each two rows of a kernel, or the largest over a set of kernels: loss -> (k, k)."""

    def __init__(self, kernel: Kernels) -> None:
        chains = members(kernel)
        if any(chain.ndim != 2 or chain.shape[0] != chains[0].shape[0] for chain in chains):
            raise ChainError("pairs are those of one household's values; take the households one by one")
        rows: list[Mask] = [checked(chain)[1] for chain in chains]
        self.kept: Mask = np.all(rows, axis=0) if rows else np.ones(1, dtype=np.bool_)
        pieces = [_pieces(filled(chain)) for chain in chains] or [(np.zeros((1, 1, 0)),) * 2]
        self._over, self._under = (np.concatenate(side, axis=-1) for side in zip(*pieces, strict=True))

    def __call__(self, loss: float) -> Floats:
        return gain(self._over, self._under, np.full(self._over.shape[:-1], loss))


def _pieces(rows: Floats) -> tuple[Floats, Floats]:
    k, n = rows.shape
    parts = [(over.reshape(-1, k, n - 1), under.reshape(-1, k, n - 1)) for _, over, under in prefixes(rows[None])]
    over, under = (np.concatenate(side) for side in zip(*parts, strict=True))
    return over, under
