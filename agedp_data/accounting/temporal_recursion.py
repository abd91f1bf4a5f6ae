"""Recursions of temporal leakage, for any leakage functions: kernels, sets of kernels, or a model's leakage bound.

[T] has one kernel per direction: BPL_t = e_t + L(BPL_(t-1)). Releases about days of several steps need two: `step` maps
the loss about the last step of a day to the last step of the next release's day, `day` maps it to the first step of
that day, and so to the whole day:

    c_1 = e_1,  c_t = e_t + step(c_(t-1)),  BPL_t = e_t + day(c_(t-1)),

and likewise forward from the end. With step = day this is [T]'s form. Example: step = day = half, losses 1 and 1: the
backward leakage is 1 and 1.5.

[T] Cao, Yoshikawa, Xiao, Xiong: Quantifying Differential Privacy in Continuous Data Release Under Temporal
Correlations. IEEE Trans. Knowl. Data Eng. 31(7), 2019. https://doi.org/10.1109/TKDE.2018.2824328
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from agedp_data.arrays import Floats, checked_loss
from agedp_data.errors import ChainError
from agedp_data.leakage.function import LeakageFunction


@dataclass(frozen=True, slots=True)
class LeakageTotals:
    r"""Backward, forward and total leakage of each release, as `Recursion.leakage_totals` returns them.

    .. math:: TPL_t = BPL_t + FPL_t - \varepsilon_t

    Source: [T] eqs. 10 and 11. Erratum: the equations are upper bounds, not equalities.

    Attributes:
        backward: BPL, by the releases up to this one, shape (..., T) [epsilon].
        forward: FPL, by the releases from this one on, shape (..., T) [epsilon].
        total: TPL, by all releases, shape (..., T) [epsilon].

    References:
        [T] https://doi.org/10.1109/TKDE.2018.2824328

    >>> totals = total_leakage(np.array([1.0, 1.0]), np.array([0.0, 0.5]), np.array([0.5, 0.0]))
    >>> totals.backward.tolist(), totals.forward.tolist(), totals.total.tolist()
    ([1.0, 1.5], [1.5, 1.0], [1.5, 1.5])
    """

    backward: Floats
    forward: Floats
    total: Floats


class BudgetRecursion(Protocol):
    r"""Operations that `allocate_with` needs of a recursion; `Recursion` and `HigherOrderRecursion` implement it.

    .. math:: (\varepsilon_1, \dots, \varepsilon_T) \mapsto (BPL_t, FPL_t, TPL_t)_t

    Source: [T] section 5; all losses in [epsilon].

    References:
        [T] https://doi.org/10.1109/TKDE.2018.2824328

    >>> [name for name in dir(BudgetRecursion) if not name.startswith("_")]
    ['leakage_totals', 'one_sided_suprema', 'total_supremum']
    """

    def leakage_totals(self, losses: ArrayLike, *, future_loss: float = 0.0) -> LeakageTotals:
        """Leakage of releases with these losses (..., T), infinitely many of loss `future_loss` to follow [epsilon]."""

    def total_supremum(self, loss: ArrayLike) -> Floats:
        """Total leakage that infinitely many releases of one loss accumulate to [epsilon]."""

    def one_sided_suprema(self, loss: ArrayLike) -> tuple[Floats, Floats]:
        """Losses that the first and the last release may have beside infinitely many of this loss [epsilon]."""


@dataclass(frozen=True, slots=True)
class Recursion:
    r"""Both recursions of releases at equal distances.

    Use it for any leakage functions; `temporal_recursion` and `daily_recursion` build it from kernels.

    .. math:: c_t = \varepsilon_t + \text{step}(c_{t-1}), \qquad BPL_t = \varepsilon_t + \text{day}(c_{t-1})

    Source: [T] eqs. 13 and 15, which have step = day.

    Attributes:
        step_backward: leakage from one release to the next one's last step.
        day_backward: leakage from one release to the next one's day.
        step_forward: leakage from one release to the previous one's first step.
        day_forward: leakage from one release to the previous one's day.

    References:
        [T] https://doi.org/10.1109/TKDE.2018.2824328

    >>> class Half:
    ...     def __call__(self, loss):
    ...         return loss / 2
    ...
    ...     def supremum(self, loss):
    ...         return 2 * loss
    >>> recursion = Recursion(Half(), Half(), Half(), Half())
    >>> recursion.leakage_totals([1.0, 1.0]).total.tolist(), recursion.total_supremum(1.0).item()  # 1 + 1/2, 1 + 1 + 1
    ([1.5, 1.5], 3.0)
    """

    step_backward: LeakageFunction
    day_backward: Callable[[Floats], Floats]
    step_forward: LeakageFunction
    day_forward: Callable[[Floats], Floats]

    def leakage_totals(self, losses: ArrayLike, *, future_loss: float = 0.0) -> LeakageTotals:
        """Leakage of releases with these losses.

        Args:
            losses: loss of each release about its own day, shape (..., T), >= 0 [epsilon].
            future_loss: loss of each of infinitely many later releases [epsilon].

        Returns:
            Three arrays of shape (..., T) [epsilon].

        Raises:
            ChainError: losses that are not a series, negative or do not fit the households.
        """
        series = checked_loss_series(losses)
        gaps = max(series.shape[-1] - 1, 0)
        zero = np.zeros(())
        later = np.asarray(self.step_forward.supremum(np.asarray(future_loss))) if future_loss else zero
        before = accumulated_leakage(
            series,
            [self.step_backward] * gaps,
            [self.day_backward] * gaps,
            first=(np.asarray(self.step_backward(zero)), np.asarray(self.day_backward(zero))),
        )
        after = accumulated_leakage(
            series[..., ::-1],
            [self.step_forward] * gaps,
            [self.day_forward] * gaps,
            first=(np.asarray(self.step_forward(later)), np.asarray(self.day_forward(later))),
        )[..., ::-1]
        return total_leakage(series, before, after)

    def total_supremum(self, loss: ArrayLike) -> Floats:
        """Total leakage that infinitely many releases of one loss accumulate to.

        Args:
            loss: shape (...), >= 0 [epsilon].

        Returns:
            Shape (...) [epsilon], `inf` if unbounded.
        """
        losses = checked_loss(loss)
        sides = (
            self.day_backward(self.step_backward.supremum(losses)),
            self.day_forward(self.step_forward.supremum(losses)),
        )
        return np.asarray(losses + sides[0] + sides[1])

    def one_sided_suprema(self, loss: ArrayLike) -> tuple[Floats, Floats]:
        """Suprema of both one-sided recursions: the losses that the first and the last release may have.

        Args:
            loss: constant loss of all releases, shape (...), >= 0 [epsilon].

        Returns:
            Backward and forward supremum, shape (...) each [epsilon].
        """
        losses = checked_loss(loss)
        return np.asarray(self.step_backward.supremum(losses)), np.asarray(self.step_forward.supremum(losses))


def total_leakage(losses: Floats, before: Floats, after: Floats) -> LeakageTotals:
    r"""Leakage of each release from the leakage of the other releases about its day; no infinite loss is subtracted.

    .. math:: BPL_t = \varepsilon_t + b_t, \quad FPL_t = \varepsilon_t + f_t, \quad TPL_t = \varepsilon_t + b_t + f_t

    Source: [T] eqs. 10 and 11.

    Args:
        losses: e, shape (..., T) [epsilon].
        before: b, leakage of the earlier releases, shape (..., T) [epsilon].
        after: f, leakage of the later releases, shape (..., T) [epsilon].

    Returns:
        Three arrays of shape (..., T) [epsilon].

    References:
        [T] https://doi.org/10.1109/TKDE.2018.2824328

    >>> total_leakage(np.array([1.0]), np.array([0.25]), np.array([0.5])).total.tolist()
    [1.75]
    """
    return LeakageTotals(*np.broadcast_arrays(losses + before, losses + after, losses + before + after))


def accumulated_leakage(
    losses: Floats,
    steps: Sequence[Callable[[Floats], Floats]],
    days: Sequence[Callable[[Floats], Floats]],
    *,
    first: tuple[Floats, Floats] | None = None,
) -> Floats:
    r"""Leakage of the earlier releases about the day of each release, its own loss excluded.

    Use it for one direction; reverse the series for the other.

    .. math:: b_1 = \text{first}, \quad b_t = \text{day}_t(c_{t-1}), \quad c_t = \varepsilon_t + \text{step}_t(c_{t-1})

    Source: [T] eqs. 13 and 15, with two leakage functions per gap.

    Args:
        losses: e, shape (..., T) [epsilon].
        steps: T - 1 leakage functions, from each release to the next.
        days: T - 1 leakage functions, from each release to the day of the next.
        first: leakage of even earlier releases about the first day's nearest step and the whole day [epsilon].

    Returns:
        Shape (..., T) [epsilon].

    Raises:
        ChainError: losses that do not fit the households of `first`.

    References:
        [T] https://doi.org/10.1109/TKDE.2018.2824328

    >>> halve = lambda loss: loss / 2
    >>> accumulated_leakage(np.array([1.0, 1.0, 0.0]), [halve] * 2, [halve] * 2).tolist()  # 1 / 2, (1 + 1 / 2) / 2
    [0.0, 0.5, 0.75]
    """
    count = losses.shape[-1]
    step_leakage, day_leakage = first or (np.zeros(()), np.zeros(()))
    households = household_shape(losses, day_leakage)
    leakages = [day_leakage][:count]
    for t in range(count - 1):
        composed = losses[..., t] + step_leakage
        step_leakage = np.asarray(steps[t](composed))
        leakages.append(step_leakage if days[t] is steps[t] else np.asarray(days[t](composed)))
    if not leakages:
        return np.zeros((*households, 0))
    return np.stack(np.broadcast_arrays(*leakages), axis=-1)


def household_shape(losses: Floats, bounds: Floats) -> tuple[int, ...]:
    r"""Leading axes (households) that losses and bounds have in common.

    .. math:: \text{broadcast}(\text{shape}(\varepsilon)_{1..m-1}, \text{shape}(b))

    Source: [T] section 3.5: leakage is personal, the bound is the maximum.

    Args:
        losses: shape (..., T) [epsilon].
        bounds: shape (...) [epsilon].

    Returns:
        The broadcast leading axes.

    Raises:
        ChainError: shapes that do not fit.

    References:
        [T] https://doi.org/10.1109/TKDE.2018.2824328

    >>> household_shape(np.zeros((1, 7)), np.zeros(3))
    (3,)
    """
    try:
        return np.broadcast_shapes(losses.shape[:-1], bounds.shape)
    except ValueError:
        raise ChainError(
            f"losses of shape {losses.shape}, a series each, do not fit a stack of shape {bounds.shape}"
        ) from None


def checked_loss_series(losses: ArrayLike) -> Floats:
    r"""Losses of all releases of a series as an array.

    .. math:: (\varepsilon_1, \dots, \varepsilon_T), \qquad 0 \le \varepsilon_t \le \infty

    Source: [T] section 3.2.

    Args:
        losses: shape (..., T), >= 0, infinity allowed [epsilon].

    Returns:
        Shape (..., T) [epsilon].

    Raises:
        ChainError: a negative loss, NaN, or a single number.

    References:
        [T] https://doi.org/10.1109/TKDE.2018.2824328

    >>> checked_loss_series([0.5, 0.25]).tolist()
    [0.5, 0.25]
    """
    series = checked_loss(losses)
    if not series.ndim:
        raise ChainError("losses of a series are a list, one for each release")
    return series
