"""Recursions of temporal leakage, for any leakage functions: kernels, sets of kernels, or a model's leakage bound.

[T] has one kernel per direction: BPL_t = e_t + L(BPL_(t-1)). Releases about days of several steps need two: `step` maps
the loss about the last step of a day to the last step of the next release's day, `day` maps it to the first step of
that day, and so to the whole day:

    c_1 = e_1,  c_t = e_t + step(c_(t-1)),  BPL_t = e_t + day(c_(t-1)),

and likewise forward from the end. With step = day this is [T]'s form. Example: step = day = half, losses 1 and 1: the
backward leakage is 1 and 1.5. Both directions are a `Composition`; this module adds them up, in floats for papers and
the public functions (`leakage_totals`), in whole nano-epsilon for releases (`temporal_losses`).

[T] Cao, Yoshikawa, Xiao, Xiong: Quantifying Differential Privacy in Continuous Data Release Under Temporal
Correlations. IEEE Trans. Knowl. Data Eng. 31(7), 2019. https://doi.org/10.1109/TKDE.2018.2824328
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from typing import Any, Generic, cast

import numpy as np
from numpy.typing import ArrayLike

from agedp_data.accounting.composition import Composition
from agedp_data.arrays import Floats, checked_loss
from agedp_data.errors import ChainError
from agedp_data.leakage.function import LeakageFunction, Number


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


@dataclass(frozen=True, slots=True)
class OneSidedRecursion(Generic[Number]):
    r"""Recursion of one direction, by the leakage between releases a number of days apart.

    .. math:: c_t = \varepsilon_t + \text{step}(c_{t-1}), \qquad BPL_t = \varepsilon_t + \text{day}(c_{t-1})

    Source: [T] eqs. 13 and 15, which have step = day; orders j > 1 as in `Composition`.

    Attributes:
        step_at: by gap [days], leakage from one end of a day to the same end of the other.
        day_at: by gap [days], leakage from one end of a day to the whole of the other; None: as `step_at`.
        orders: how many releases back a step may begin; contains 1.

    References:
        [T] https://doi.org/10.1109/TKDE.2018.2824328

    >>> class Half:
    ...     def __call__(self, loss):
    ...         return loss / 2
    ...
    ...     def supremum(self, loss):
    ...         return 2 * loss
    >>> OneSidedRecursion(lambda gap: Half()).endless_leakage(np.array(1.0)).item()  # half of 2
    1.0
    """

    step_at: Callable[[int], LeakageFunction[Number]]
    day_at: Callable[[int], LeakageFunction[Number]] | None = None
    orders: Collection[int] = (1,)

    def supremum(self, loss: Number) -> Number | None:
        r"""Supremum of the composed loss of infinitely many releases of one loss, one day apart, the newest included.

        .. math:: \min_j \; \sup \text{ of } x \mapsto j \varepsilon + L_j(x)

        Source: [T] Theorem 11. Erratum: the supremum is over all pairs of rows and prefixes, not the maximising pair of
        one loss.

        Args:
            loss: e of each release, >= 0 [epsilon, or nano-epsilon].

        Returns:
            In the unit of the loss; if unbounded, `inf` among floats and None for an integer.
        """
        suprema = [self.step_at(j).supremum(cast("Number", j * cast("Any", loss))) for j in self.orders]
        bounded: list[Any] = [value for value in suprema if value is not None]
        if isinstance(loss, int):
            return cast("Number", min(bounded)) if bounded else None
        return cast("Number", np.min(np.broadcast_arrays(*bounded), axis=0))

    def composition(self, past: tuple[Number, Number] | None = None) -> Composition[Number]:
        """Return an empty composition in this direction, after infinitely many releases (loss, supremum) if given."""
        return Composition(self.step_at, day_leakage_at=self.day_at, orders=self.orders, past=past)

    def endless_leakage(self, loss: Number) -> Number | None:
        """Leakage about the next day of infinitely many releases of one loss; None or `inf` if unbounded."""
        supremum = self.supremum(loss)
        return None if supremum is None else self.composition((loss, supremum)).leakage(0)


@dataclass(frozen=True, slots=True)
class Recursion(Generic[Number]):
    r"""Both recursions of releases about days.

    Use it for any leakage functions; `temporal_recursion`, `daily_recursion` and `higher_order_recursion` build it from
    kernels, `TemporalLosses` from a model.

    .. math:: TPL_t = \varepsilon_t + \text{day}_B(c_{t-1}) + \text{day}_F(C_{t+1})

    Source: [T] eqs. 10, 13 and 15. Erratum: eq. 10 is an upper bound, not an equality.

    Attributes:
        backward: recursion over the earlier releases.
        forward: recursion over the later releases.

    References:
        [T] https://doi.org/10.1109/TKDE.2018.2824328

    >>> class Half:
    ...     def __call__(self, loss):
    ...         return loss / 2
    ...
    ...     def supremum(self, loss):
    ...         return 2 * loss
    >>> recursion = Recursion(OneSidedRecursion(lambda gap: Half()), OneSidedRecursion(lambda gap: Half()))
    >>> recursion.leakage_totals([1.0, 1.0]).total.tolist(), recursion.total_supremum(1.0).item()  # 1 + 1/2, 3
    ([1.5, 1.5], 3.0)
    """

    backward: OneSidedRecursion[Number]
    forward: OneSidedRecursion[Number]

    def leakage_totals(self, losses: ArrayLike, *, future_loss: float = 0.0) -> LeakageTotals:
        """Leakage of releases with these losses, one day apart, for a recursion in floats.

        Args:
            losses: loss of each release about its own day, shape (..., T), >= 0 [epsilon].
            future_loss: loss of each of infinitely many later releases [epsilon].

        Returns:
            Three arrays of shape (..., T) [epsilon].

        Raises:
            ChainError: losses that are not a series, negative or do not fit the households.
        """
        series, zero = checked_loss_series(losses), np.zeros(())
        later: Any = self.forward.supremum(cast("Number", np.asarray(future_loss))) if future_loss else zero
        past, future = cast("Any", (zero, zero)), cast("Any", (np.asarray(future_loss), later))
        days = range(series.shape[-1])
        before = accumulated_leakage(series, self.backward.composition(past), days)
        after = accumulated_leakage(series[..., ::-1], self.forward.composition(future), days)[..., ::-1]
        return total_leakage(series, before, after)

    def total_supremum(self, loss: ArrayLike) -> Floats:
        """Total leakage that infinitely many releases of one loss accumulate to, for a recursion in floats.

        Args:
            loss: shape (...), >= 0 [epsilon].

        Returns:
            Shape (...) [epsilon], `inf` if unbounded.
        """
        return np.asarray(self.endless_total(cast("Number", checked_loss(loss))))

    def endless_total(self, loss: Number) -> Number | None:
        """Total leakage as `total_supremum`, in the unit of the loss; None if unbounded for an integer."""
        sides: list[Any] = [side.endless_leakage(loss) for side in (self.backward, self.forward)]
        return None if any(side is None for side in sides) else cast("Number", loss + sides[0] + sides[1])

    def one_sided_suprema(self, loss: ArrayLike) -> tuple[Floats, Floats]:
        """Suprema of both one-sided recursions: the losses that the first and the last release may have.

        Args:
            loss: constant loss of all releases, shape (...), >= 0 [epsilon].

        Returns:
            Backward and forward supremum, shape (...) each [epsilon].
        """
        losses = cast("Number", checked_loss(loss))
        return np.asarray(self.backward.supremum(losses)), np.asarray(self.forward.supremum(losses))


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


def accumulated_leakage(losses: Floats, composition: Composition[Any], days: Iterable[int]) -> Floats:
    r"""Leakage of the earlier releases about the day of each release, its own loss excluded.

    Use it for one direction; reverse the series for the other.

    .. math:: b_t = \text{day}(c_{t-1}), \quad c_t = \varepsilon_t + \text{step}(c_{t-1})

    Source: [T] eqs. 13 and 15, with two leakage functions per gap.

    Args:
        losses: e, shape (..., T) [epsilon].
        composition: without releases.
        days: day of each release, T ascending numbers [days].

    Returns:
        Shape (..., T) [epsilon].

    Raises:
        ChainError: losses that do not fit the households of the leakage functions.

    References:
        [T] https://doi.org/10.1109/TKDE.2018.2824328

    >>> halving = Composition(lambda gap: lambda loss: loss / 2**gap)
    >>> accumulated_leakage(np.array([1.0, 1.0, 0.0]), halving, [0, 1, 2]).tolist()  # 1 / 2, (1 + 1 / 2) / 2
    [0.0, 0.5, 0.75]
    """
    households = household_shape(losses, np.asarray(composition.leakage(0)))
    for day, loss in zip(days, np.moveaxis(losses, -1, 0), strict=True):
        composition.add(day, loss)
    leakages = composition.leakages
    return np.stack(np.broadcast_arrays(*leakages), axis=-1) if leakages else np.zeros((*households, 0))


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
