"""Leakage function L_K(a): the loss about the row value of a kernel that a loss `a` about its column value implies.

    L_K(a) = max over rows q, d and columns S of ln((1 + (e^a - 1) q(S)) / (1 + (e^a - 1) d(S)))

Example: for [[0.9, 0.1], [0.1, 0.9]], L(ln 11) = ln(10 / 2) = 1.61 of 2.40. A mechanism attains the value, so no
smaller bound exists. All accounting of this project is this function, applied to different kernels.

Decisions:

* One loss costs a few passes over the pairs of rows (`largest_gain`), many losses cost one sort per pair
  (`KernelLeakage`). Both replace the linear-fractional programmes and Algorithms 1-5 of [T].
* 0 <= L(a) <= a holds in floats as well.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol, SupportsFloat, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from agedp_data.arrays import Floats, checked_loss, filled_kernel
from agedp_data.errors import ChainError
from agedp_data.leakage.batched import BatchedLeakage
from agedp_data.leakage.dinkelbach import apply_to_stack, largest_gain
from agedp_data.leakage.pieces import fixed_point, gain, prefixes

Number = TypeVar("Number")
"""Losses: float arrays [epsilon], or an integer [nano-epsilon]."""

_BUDGET = 2**21


def leakage(kernel: ArrayLike, loss: ArrayLike) -> Floats:
    r"""Privacy loss about the row value of a kernel, given a privacy loss about its column value.

    Use it with the t-step reversed chain for a release of age t, with the one-step reversed chain for backward leakage,
    and with the forward chain for forward leakage.

    .. math:: L_K(a) = \max_{q, d \in \text{rows}(K)} \max_S \ln \frac{1 + (e^a - 1) q(S)}{1 + (e^a - 1) d(S)}

    Source: [T] eqs. 18 and 24. Erratum: e^a overflows as printed; an overflow-free form is evaluated.

    Args:
        kernel: shape (..., k, n), probabilities [-]; rows of NaN are left out.
        loss: a, shape (...), >= 0, infinity allowed [epsilon]; leading axes broadcast, also extra ones.

    Returns:
        Shape (...) [epsilon], between 0 and `loss`; 0 if all rows are equal, `loss` if two rows have disjoint support.

    Raises:
        ChainError: rows that are not probabilities, a negative loss or NaN, shapes that do not fit.

    References:
        [T] https://doi.org/10.1109/TKDE.2018.2824328

    >>> leakage([[0.8, 0.2], [0.0, 1.0]], np.inf).item(), leakage([[0.5, 0.5], [0.5, 0.5]], 3).item()
    (inf, 0.0)
    >>> bool(np.isclose(leakage([[0.9, 0.1], [0.1, 0.9]], np.log(11)), np.log(10 / 2)))
    True
    """
    return apply_to_stack(kernel, loss, largest_gain)


def supremum(kernel: ArrayLike, loss: ArrayLike) -> Floats:
    r"""Supremum of x -> e + L_K(x) from 0: the loss that infinitely many releases of loss e accumulate to.

    Use it to decide whether a constant loss per release keeps the leakage bounded.

    .. math:: x^* = \sup_n x_n, \qquad x_0 = 0, \quad x_{n+1} = \varepsilon + L_K(x_n)

    Source: [T] Theorem 11. Erratum: the theorem keeps the pair of rows that is the largest at one loss, which
    understates; here the maximum is over the fixed points of all pairs and prefixes.

    Args:
        kernel: shape (..., k, n), probabilities [-]; rows of NaN are left out.
        loss: e, shape (...), >= 0, infinity allowed [epsilon].

    Returns:
        Shape (...) [epsilon], exactly `inf` if unbounded.

    Raises:
        ChainError: as `leakage`.

    References:
        [T] https://doi.org/10.1109/TKDE.2018.2824328

    >>> round(float(supremum([[0.8, 0.2], [0.0, 1.0]], 0.1)), 10), supremum(np.eye(2), 0.1).item()
    (0.6459066161, inf)
    """
    return apply_to_stack(kernel, loss, _suprema)


def leakage_from_total_variation(distance: ArrayLike, loss: ArrayLike) -> Floats:
    r"""Upper bound of L_K(a) that needs the total variation of the kernel only.

    Use it for a declared curve of total variation, or with an upper bound of the total variation.

    .. math:: L_K(a) \le \ln(1 + \Delta (e^a - 1))

    Source: [A] Theorem 1, eq. 14. Erratum: the theorem needs independent households.

    Args:
        distance: Delta, shape (...), from 0 to 1 [-].
        loss: a, shape (...), >= 0, infinity allowed [epsilon].

    Returns:
        Shape (...), broadcast [epsilon].

    Raises:
        ChainError: a distance outside [0, 1], a negative loss or NaN.

    References:
        [A] https://doi.org/10.1109/TIT.2023.3340147

    >>> round(float(leakage_from_total_variation(0.5, np.log(3))), 12)  # ln(1 + 0.5 * 2) = ln 2
    0.69314718056
    """
    distances, losses = np.broadcast_arrays(np.asarray(distance, dtype=np.float64), checked_loss(loss))
    if not ((distances >= 0) & (distances <= 1)).all():
        raise ChainError("a total variation is a number from 0 to 1")
    return gain(distances[..., None], np.zeros_like(distances)[..., None], losses)


class LeakageFunction(Protocol[Number]):
    r"""Leakage function L of one kernel or bound, as every recursion over releases needs it.

    `KernelLeakage` and `BatchedLeakage` implement it for kernels, `TabulatedLeakage` and `PiecewiseLeakage` in whole
    nano-epsilon; the example is the one of independent releases. Losses and results have one shape and unit: floats
    [epsilon] or an integer [nano-epsilon].

    .. math:: 0 \le L(a) \le a, \quad a \le b \Rightarrow L(a) \le L(b) \le L(a) + b - a; \qquad
        \sup_n x_n \text{ for } x_{n+1} = \varepsilon + L(x_n)

    Source: [T] Remark 1, eqs. 13, 15 and Theorem 11.

    References:
        [T] https://doi.org/10.1109/TKDE.2018.2824328

    >>> class Independent:
    ...     def __call__(self, loss):
    ...         return 0 * loss
    ...
    ...     def supremum(self, loss):
    ...         return loss
    >>> function: LeakageFunction[float] = Independent()
    >>> function(0.5), function.supremum(0.5)
    (0.0, 0.5)
    """

    def __call__(self, loss: Number, /) -> Number:
        """Loss about the row value, of the same shape and unit as the loss about the column value."""

    def supremum(self, loss: Number, /) -> Number | None:
        """Supremum of x -> loss + L(x) from 0; if unbounded, `inf` among floats and None for an integer."""


class SampledLeakage(LeakageFunction[int], Protocol):
    """Leakage function in whole nano-epsilon with sample points; `TabulatedLeakage`, `PiecewiseLeakage` implement it.

    Source: [T] eq. 24, rounded up.

    References:
        [T] https://doi.org/10.1109/TKDE.2018.2824328
    """

    @property
    def sample_points(self) -> tuple[Sequence[float], Sequence[float]]:
        """Return losses and the leakage of each, for interpolation [nano-epsilon]."""


class LeakageBoundLike(Protocol):
    """Members of a leakage bound (`LeakageBound`) that accounting and notions need.

    Source: [A] Theorem 1 with the tight L.

    References:
        [A] https://doi.org/10.1109/TIT.2023.3340147
    """

    @property
    def steps_per_day(self) -> int:
        """Steps of the chain in a day."""

    @property
    def assume(self) -> str:
        """Either "markov" or "curve"."""

    @property
    def share(self) -> str:
        """Share of the households whose chains it bounds, in words; "" if it is meant to bound each."""

    @property
    def methods(self) -> tuple[str, ...]:
        """Methods with backward bounds; every model has "total_variation"."""

    @property
    def has_both_directions(self) -> bool:
        """Whether the tight losses of both directions may be composed, as temporal leakage requires."""

    @property
    def ages(self) -> Iterable[int]:
        """Tabulated ages, ascending [steps]."""

    def __hash__(self) -> int:
        """Equal models have equal hashes, so that a solved plan is computed once per model."""

    def exact_leakage(self, age: int, *, direction: str) -> SampledLeakage:
        """Return the tight L at an age [steps], from and to nano-epsilon."""

    def __call__(self, age: int, loss: float, *, direction: str, method: str) -> SupportsFloat:
        """Return L(loss) at an age [steps], rounded up [epsilon]."""

    def total_variation(self, age: int) -> float:
        """Return the total variation at an age [steps], from 0 to 1."""

    def supremum(self, gap: int, loss: float, *, direction: str, method: str) -> float:
        """Return the supremum of x -> loss + L(x) at a gap [steps], `inf` if unbounded [epsilon]."""


class KernelLeakage(BatchedLeakage):
    r"""Leakage function of one kernel with its pieces in order, as `BatchedLeakage` of a stack.

    Use it for many losses through one kernel; `leakage` for few losses or stacks.

    .. math:: L(a) = \text{piece}_i(a) \text{ for } b_{i-1} \le a \le b_i, \qquad
        \text{piece}_i(a) = \ln \frac{1 + (e^a - 1) Q_i}{1 + (e^a - 1) D_i}

    Source: [T] eq. 25; replaces [T] Algorithms 2-5. Erratum: Algorithm 4 must not start at a = 0, where all pieces tie.

    Args:
        kernel: shape (k, n), probabilities [-]; rows of NaN are left out.

    Attributes:
        over: Q of the pieces, shape (v,), in the order of increasing loss [-].
        under: D of the pieces, shape (v,) [-].
        breakpoints: shape (v - 1,), ascending: losses at which the next piece becomes the maximum [epsilon].

    Raises:
        ChainError: as `leakage`; a stack of kernels.

    References:
        [T] https://doi.org/10.1109/TKDE.2018.2824328

    >>> KernelLeakage([[0.8, 0.2], [0.0, 1.0]]).breakpoints.tolist()
    []
    >>> KernelLeakage([[0.9, 0.1], [0.1, 0.9]])(np.log(11.0)).round(6).item()  # ln(10 / 2)
    1.609438
    """

    __slots__ = ("breakpoints", "over", "under")

    def __init__(self, kernel: ArrayLike) -> None:
        super().__init__(filled_kernel(kernel))
        if self.shape:
            raise ChainError(f"one kernel at a time, got a stack of shape {self.shape}; use `leakage` for stacks")
        self.over, self.under = (side[::-1] for side in self.pieces)
        self.breakpoints = _crossings(self.over, self.under)


def _crossings(over: Floats, under: Floats) -> Floats:
    """Losses where neighbouring pieces agree: ln(1 + 1/w), where their line meets Q = D = -w."""
    first, second = slice(None, -1), slice(1, None)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        gap = (over[first] - under[first]) - (over[second] - under[second])
        weight = (over[second] * under[first] - over[first] * under[second]) / gap
        losses = np.log1p(1 / np.maximum(weight, 0.0))
    return np.maximum.accumulate(np.where(gap > 0, losses, 0.0))


def _suprema(stack: Floats, losses: Floats) -> Floats:
    """Suprema for kernels (h, k, n) and losses (h, m) as (h, m), part by part."""
    result = np.zeros(losses.shape)
    for part, over, under in prefixes(stack):
        step = max(1, _BUDGET // max(1, over.size))
        for start in range(0, losses.shape[1], step):
            index = (part, slice(start, start + step))
            result[index] = np.maximum(result[index], fixed_point(over[:, None, :], under[:, None, :], losses[index]))
    return result
