"""Temporal leakage of releases: one recursion over any leakage functions, in floats and in whole nano-epsilon ([T]).

[T] has one kernel per direction: BPL_t = e_t + L(BPL_(t-1)). Releases about days of several steps need two: `step` maps
the loss about the last step of a day to the last step of the next release's day, `day` maps it to the first step of
that day, and so to the whole day:

    c_1 = e_1,  c_t = e_t + step(c_(t-1)),  BPL_t = e_t + day(c_(t-1)),

and likewise forward from the end. With step = day this is [T]'s form. Example: step = day = half, losses 1 and 1: the
backward leakage is 1 and 1.5. Both directions are a `Composition`; `Recursion` adds them up for papers and the public
functions, `TemporalLosses` for releases, on integers, so that the planned, the admitted and the stated numbers are the
same.

Decisions. "Any one day" includes days without a release: between two released days such a day has e = 0, and before the
first or after the last one its leakage never exceeds that day's. A gap of g days is g days of the chain, also when the
clock changes. Days are composed by their own time, in whichever order they were released. A step may begin several
releases back (`Composition`, orders): a chain in which one day gives no mixing may mix in two.

A larger loss of a released day never lowers a bound. A first loss of a day may, under a table: the day divides a gap in
two, and L_(g+h) <= L_g(L_h) holds for the exact L only, not between the losses of a table. Both bounds are valid.

[T] Cao, Yoshikawa, Xiao, Xiong: Quantifying Differential Privacy in Continuous Data Release Under Temporal
Correlations. IEEE Trans. Knowl. Data Eng. 31(7), 2019. https://doi.org/10.1109/TKDE.2018.2824328
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, Final, Generic, NamedTuple, cast

import numpy as np
from numpy.typing import ArrayLike

from agedp_data.accounting.composition import Composition, GapLeakage
from agedp_data.arrays import Floats, checked_loss, checked_steps, step_list
from agedp_data.errors import ChainError
from agedp_data.leakage.function import BatchedLeakage, Kernels, LeakageBoundLike, LeakageFunction, Number, kernel_set
from agedp_data.markov.transitions import power, reverse

_FURTHEST: Final = 7
"""Largest order of a step: a week of days, the longest habit that it is meant for."""


@dataclass(frozen=True, slots=True)
class LeakageTotals:
    r"""Backward, forward and total leakage of each release, shape (..., T) [epsilon].

    .. math:: TPL_t = BPL_t + FPL_t - \varepsilon_t

    Source: [T] eqs. 10 and 11. Erratum: the equations are upper bounds, not equalities.
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

    >>> step = BatchedLeakage([[0.5, 0.5], [0, 1]])  # without end 1.5 becomes 3 = 1.5 * 2
    >>> OneSidedRecursion(lambda gap: step).endless_leakage(np.log(1.5)).round(6).item()  # ln 2
    0.693147
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
            loss: e of each release [epsilon, or nano-epsilon]; if unbounded, the result is `inf`, for an integer None.
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

    Use it for any leakage functions; `temporal_recursion` and `daily_recursion` build it from
    kernels, `TemporalLosses` from a model.

    .. math:: TPL_t = \varepsilon_t + \text{day}_B(c_{t-1}) + \text{day}_F(C_{t+1})

    Source: [T] eqs. 10, 13 and 15. Erratum: eq. 10 is an upper bound, not an equality.

    Attributes:
        backward, forward: recursion over the earlier, and over the later releases.

    References:
        [T] https://doi.org/10.1109/TKDE.2018.2824328

    >>> copies = OneSidedRecursion(lambda gap: BatchedLeakage(np.eye(2)))
    >>> Recursion(copies, copies).leakage_totals([1.0, 0.5]).total.tolist()  # nothing is lost: all losses
    [1.5, 1.5]
    """

    backward: OneSidedRecursion[Number]
    forward: OneSidedRecursion[Number]

    def leakage_totals(
        self, losses: ArrayLike, *, future_loss: float = 0.0, days: Sequence[int] | None = None
    ) -> LeakageTotals:
        """Leakage of releases with these losses, for a recursion in floats; no infinite loss is subtracted.

        Args:
            losses: loss of each release about its own day, shape (..., T), >= 0 [epsilon].
            future_loss: loss of each of infinitely many later releases [epsilon].
            days: day of each release, T ascending numbers [days]; None: one after the other.

        Raises:
            ChainError: losses that are not a series, negative or do not fit the households.
        """
        series, zero = checked_loss_series(losses), np.zeros(())
        of_release = range(series.shape[-1]) if days is None else days
        later: Any = self.forward.supremum(cast("Number", np.asarray(future_loss))) if future_loss else zero
        past, future = cast("Any", (zero, zero)), cast("Any", (np.asarray(future_loss), later))
        before = _leakage_of_earlier(series, self.backward.composition(past), of_release)
        backwards = [-day for day in reversed(of_release)]
        after = _leakage_of_earlier(series[..., ::-1], self.forward.composition(future), backwards)[..., ::-1]
        return LeakageTotals(*np.broadcast_arrays(series + before, series + after, series + before + after))

    def total_supremum(self, loss: ArrayLike) -> Floats:
        """Total leakage that infinitely many releases of one loss (...) accumulate to, `inf` if unbounded [epsilon]."""
        return np.asarray(self.endless_total(cast("Number", checked_loss(loss))))

    def endless_total(self, loss: Number) -> Number | None:
        """Total leakage as `total_supremum`, in the unit of the loss; None if unbounded for an integer."""
        sides: list[Any] = [side.endless_leakage(loss) for side in (self.backward, self.forward)]
        return None if any(side is None for side in sides) else cast("Number", loss + sides[0] + sides[1])


def temporal_recursion(kernel_b: Kernels, kernel_f: Kernels, *, releases: int | None = None) -> Recursion[Floats]:
    r"""Recursion of both directions for kernels, with one step per release.

    Use it with `allocate_with`, `round_up_losses` and `windows`.

    .. math:: x_t = \varepsilon_t + L_{P_B}(x_{t-1}), \qquad y_t = \varepsilon_t + L_{P_F}(y_{t+1})

    Source: [T] eqs. 13 and 15.

    Args:
        kernel_b: P_B as in `backward`, shape (..., k, k) [-].
        kernel_f: P_F as in `forward`, shape (..., k, k) [-].
        releases: number of releases if known: chooses the faster evaluation.

    Raises:
        ChainError: as `temporal`.

    References:
        [T] https://doi.org/10.1109/TKDE.2018.2824328

    >>> temporal_recursion(np.eye(2), None).leakage_totals([0.25, 0.5]).total.tolist()  # identity: the losses add up
    [0.25, 0.75]
    """
    backward = BatchedLeakage(kernel_b, evaluations=releases)
    forward = backward if kernel_f is kernel_b else BatchedLeakage(kernel_f, evaluations=releases)
    return Recursion(OneSidedRecursion(lambda _: backward), OneSidedRecursion(lambda _: forward))


def _leakage_of_earlier(losses: Floats, composition: Composition[Any], days: Sequence[int]) -> Floats:
    """Return the leakage of the earlier releases about the day of each release, its own loss excluded, (..., T)."""
    households = np.shape(composition.leakage(0))
    try:
        shape = np.broadcast_shapes(losses.shape[:-1], households)
    except ValueError:
        raise ChainError(
            f"losses of shape {losses.shape}, a series each, do not fit a stack of shape {households}"
        ) from None
    for day, loss in zip(days, np.moveaxis(losses, -1, 0), strict=True):
        composition.add(day, loss)
    leakages = composition.leakages
    return np.stack(np.broadcast_arrays(*leakages), axis=-1) if leakages else np.zeros((*shape, 0))


def checked_loss_series(losses: ArrayLike) -> Floats:
    """Losses of all releases of a series as an array (..., T) [epsilon].

    Source: [T] section 3.2.

    Raises:
        ChainError: a negative loss, NaN, or a single number.

    >>> checked_loss_series([0.5, 0.25]).tolist()
    [0.5, 0.25]
    """
    series = checked_loss(losses)
    if not series.ndim:
        raise ChainError("losses of a series are a list, one for each release")
    return series


class DayLeakage(NamedTuple):
    """Leakage about one day [nano-epsilon]: its own loss, the backward and the forward part.

    Source: [T] eq. 10.
    """

    day: int
    day_loss: int
    backward: int
    forward: int

    @property
    def total(self) -> int:
        """Total temporal leakage, BPL + FPL - e = own loss + backward part + forward part ([T] eq. 10)."""
        return self.day_loss + self.backward + self.forward


class TemporalLosses:
    r"""Temporal leakage of losses by the number of the day, under a leakage bound.

    .. math:: TPL_k = e_k + B_{1 + m(g - 1)}(c_{k-1}) + F_{1 + m(g' - 1)}(C_{k+1})

    Source: [T] Definitions 5 to 8, eqs. 5, 10 and 11, with L for daily releases as in the head of this module. Erratum:
    in eqs. 5, 10 and 11 "=" must read "<=".

    Args:
        leakage_bound: leakage bound in both directions.
        higher_order: whether a step may begin several releases back. False, as in [T], never lowers a bound.

    Attributes:
        recursion: recursion of both directions by gaps in days, losses in [nano-epsilon].
        orders: orders of a step; those of which the bound has an age.
        last_days: days after a release at which the tabulated age changes next.

    References:
        [T] https://doi.org/10.1109/TKDE.2018.2824328

    >>> from agedp_data.leakage.population_bound import leakage_bound
    >>> stay = [[[0.9, 0.1], [0.1, 0.9]]]
    >>> bound = leakage_bound(stay, [1], [0.1], reliable=[True], forward=stay, steps_per_day=1)
    >>> TemporalLosses(bound).largest({0: 10**8, 1: 10**8})  # .1 + ln((1 + .9 x)/(1 + .1 x)), x = e^.1 - 1
    179976001
    """

    def __init__(self, leakage_bound: LeakageBoundLike, *, higher_order: bool = True) -> None:
        self._leakage_bound = leakage_bound
        self.steps_per_day = leakage_bound.steps_per_day
        ages = [int(age) for age in leakage_bound.ages]
        self.last_days = sorted({-(-(age - 1) // self.steps_per_day) for age in ages})
        # An age of 1 + m (g - 1) steps is that of the beginning of a day, not of g - 1 whole ones.
        tabulated = {age // self.steps_per_day for age in ages if age % self.steps_per_day == 0}
        self.orders = {1, *(j for j in range(2, _FURTHEST + 1) if higher_order and j in tabulated)}
        self.recursion = Recursion(self._one_side("backward"), self._one_side("forward"))
        self._losses: dict[int, int] = {}
        self._earlier = self.recursion.backward.composition()
        self._later = self.recursion.forward.composition((0, 0))  # without a loss, later releases change nothing
        self._leakages: list[int] = []
        self._largest: list[int] = []

    def of(self, losses: Mapping[int, int]) -> Iterator[DayLeakage]:
        """Yield the leakage about each day with a release, in the order of the days."""
        self._become(losses)
        backward, forward = self._earlier.leakages, reversed(self._later.leakages)
        for day, before, after in zip(self._earlier.inputs, backward, forward, strict=True):
            yield DayLeakage(day, self._losses[day], before, after)

    def largest(self, losses: Mapping[int, int], *, loss_of_every_later_day: int = 0) -> int | None:
        """Largest leakage about any one day [nano-epsilon], None if that is infinite.

        With a loss of every later day, as many of these days are examined as the largest order: a step over all of them
        bounds the leakage of any further day by the limit. What follows from losses that were asked about before is not
        computed again, however long the series is.
        """
        limit = self.recursion.endless_total(loss_of_every_later_day)
        if limit is None:
            return None
        newest = max(losses, default=0)
        number = max(self.orders) if loss_of_every_later_day else 0
        to_come = {newest + 1 + i: loss_of_every_later_day for i in range(number)}
        self._become(losses if not to_come else {**losses, **to_come}, loss_of_every_later_day)
        return max(limit, *self._largest[-1:], 0)

    def day_of_largest_leakage(self, losses: Mapping[int, int]) -> tuple[int, int]:
        """Return a day with the largest leakage, with a release if possible, and the leakage; some loss is above 0."""
        days = [(leakage.day, leakage.total) for leakage in self.of(losses)]
        between = (each for place in range(1, len(days)) for each in self._between(place))
        return max([*days, *between], key=lambda day_and_leakage: day_and_leakage[1])

    def largest_after(self, changes: Mapping[int, int]) -> int | None:
        """Largest leakage about any one day if the losses of some days are now these, 0 for none; as `largest`."""
        self._change(changes)
        return max([0, *self._largest[-1:]])

    def _become(self, losses: Mapping[int, int], loss_of_every_later_day: int = 0) -> None:
        """Take over the losses of all days; only what changed is computed again."""
        gone = {day: 0 for day in self._losses if day not in losses}
        self._change({**gone, **losses}, loss_of_every_later_day)

    def _change(self, changes: Mapping[int, int], loss_of_every_later_day: int = 0) -> None:
        """Set the losses of some days, 0 for none, and that of every later day; only what changed is computed again."""
        if loss_of_every_later_day != self._later.losses[0]:
            supremum = self.recursion.forward.supremum(loss_of_every_later_day) if loss_of_every_later_day else 0
            self._later.set_past(loss_of_every_later_day, supremum or 0)
        first = end = len(self._leakages)
        for day, loss in changes.items():
            if loss == self._losses.get(day, 0):
                continue
            is_known, place = day in self._losses, self._earlier.set(day, loss or None)
            self._later.set(-day, loss or None)
            for values in (self._leakages, self._largest):
                if loss and not is_known:
                    values.insert(place, -1)
                elif is_known and not loss:
                    del values[place]
            if loss:
                self._losses[day] = loss
            else:
                self._losses.pop(day, None)
            first, end = min(first, place), max(end + bool(loss) - is_known, place + 1)
        self._refresh(first, end)

    def _refresh(self, first: int, end: int) -> None:
        """Compute the largest leakage about each release and the days before it, where it may have changed."""
        count, reach = len(self._leakages), max(self.orders)
        (earlier, earlier_end), (later, later_end) = self._earlier.refresh(), self._later.refresh()
        first = max(0, min(first, earlier, count - later_end) - reach)
        end = min(count, max(end, earlier_end, count - later) + reach)
        befores = self._earlier.leakages_at(first, end)
        afters = reversed(self._later.leakages_at(count - end, count - first))
        largest = self._largest[first - 1] if first else 0
        for place, before, after in zip(range(first, end), befores, afters, strict=True):
            leakage = self._losses[self._earlier.inputs[place]] + before + after
            for _, between in self._between(place):
                leakage = max(leakage, between)
            self._leakages[place], self._largest[place] = leakage, (largest := max(largest, leakage))
        for place in range(end, count):
            largest = max(largest, self._leakages[place])
            if largest == self._largest[place]:
                break
            self._largest[place] = largest

    def _between(self, place: int) -> list[tuple[int, int]]:
        """Return (day, leakage) for the days between a release and the one before it at which it may be largest."""
        days, number = self._earlier.inputs, len(self._leakages) - place
        if not place or days[place] - days[place - 1] == 1:
            return []
        newest = days[place - 1]
        drops = self._days_before_drops(days[max(0, place - _FURTHEST) : place], days[place] - newest)
        backward = (self._earlier.leakage(newest + after, count=place) for after in drops)
        forward = (self._later.leakage(-newest - after, count=number) for after in drops)
        return [(newest + after, sum(sides)) for after, *sides in zip(drops, backward, forward, strict=True)]

    def _days_before_drops(self, earlier_days: list[int], gap: int) -> set[int]:
        """Return how many days after the newest release of a gap the leakage may be largest.

        The leakage of the earlier releases drops where one from which a step may begin comes to the next tabulated age.
        That of the later ones only grows on the way there, so the last day before each drop has at least the leakage of
        the days before it.
        """
        newest = earlier_days[-1]
        ages = [newest - earlier_days[-j] for j in self.orders if j <= len(earlier_days)]
        return {last - age for last in self.last_days for age in ages if 1 <= last - age < gap} | {gap - 1}

    def _one_side(self, direction: str) -> OneSidedRecursion[int]:
        leakage_at, m = partial(self._leakage_bound.exact_leakage, direction=direction), self.steps_per_day
        step_at, day_at = (
            lru_cache(maxsize=None)(lambda days, first=first: leakage_at(first + m * (days - 1))) for first in (m, 1)
        )
        return OneSidedRecursion(step_at, None if m == 1 else day_at, self.orders)


# --------------------------------------------------------------------------------------------------
# Temporal leakage of daily releases on a half-hourly chain: a day is a block of steps, so two kernels are needed.
#
# A chain has m steps a day, g_k days lie between releases k - 1 and k, and P^ is the reversed chain. The releases up
# to k have the loss c_k about the LAST step of day k. Those from k on have the loss C_k about its FIRST step:
#
#     c_1 = e_1,  c_k = e_k + L_{P^^(m g_k)}(c_(k-1)),          C_T = e_T,  C_k = e_k + L_{P^(m g_(k+1))}(C_(k+1)),
#     BPL_k = e_k + L_{P^^(1 + m (g_k - 1))}(c_(k-1)),          FPL_k = e_k + L_{P^(1 + m (g_(k+1) - 1))}(C_(k+1)),
#     TPL_k = BPL_k + FPL_k - e_k, about the WHOLE day k.
#
# Example: two states that persist with probability 0.9, two steps a day, two releases of 0.5: total leakage 0.897
# each.
#
# Decisions:
#
# * Releases g steps apart use P^g, not L applied g times: L of a power never exceeds the power of L, and the recursion
#   over single half-hours has no finite supremum for nearly all real households.
# * P_B is the Bayes reverse of P_F, not a free choice (`temporal_kernels`).
# --------------------------------------------------------------------------------------------------

_GAPS = 64  # different gaps whose pieces stay in memory


def daily_release_leakage(
    transition: Kernels, losses: ArrayLike, gaps_days: ArrayLike, *, steps_per_day: int
) -> tuple[Floats, Floats, Floats]:
    r"""Backward, forward and total leakage about each whole day with a release, for a half-hourly chain.

    Use it for daily averages of half-hourly readings; any days may lie between the releases.

    .. math:: BPL_k = \varepsilon_k + L_{\hat P^{1 + m(g_k - 1)}}(c_{k-1}), \qquad
        c_k = \varepsilon_k + L_{\hat P^{m g_k}}(c_{k-1})

    and likewise forward with P; TPL_k = BPL_k + FPL_k - e_k.

    Source: this project, from [T] eqs. 11, 13 and 15 for blocks of m steps.

    Args:
        transition: forward transition matrix of one step, shape (..., k, k), probabilities [-]; rows of NaN are left
            out. A tuple is a set of possible chains; the maximum over it is taken at every step.
        losses: e, loss of each release about its whole day, shape (..., T), >= 0 [epsilon].
        gaps_days: g, days from each release to the next, shape (T-1,), integers >= 1 [days].
        steps_per_day: m, steps of the chain in a day, >= 1 [steps].

    Returns:
        Backward, forward and total leakage, shape (..., T) each [epsilon].

    Raises:
        ChainError: gaps below one day or of another number, a day without steps, chains that cannot be reversed.

    References:
        [T] https://doi.org/10.1109/TKDE.2018.2824328

    >>> stay = [[0.9, 0.1], [0.1, 0.9]]  # .5 + L(.5) = .5 + ln((1 + .9 (e^.5 - 1)) / (1 + .1 (e^.5 - 1)))
    >>> [side.round(4).tolist() for side in daily_release_leakage(stay, [0.5, 0.5], [1], steps_per_day=2)]
    [[0.5, 0.897], [0.897, 0.5], [0.897, 0.897]]
    """
    backward_kernels, forward_kernels = temporal_kernels(transition)
    series = checked_loss_series(losses)
    backward, forward = (_gap_leakage(chains, series.shape[-1]) for chains in (backward_kernels, forward_kernels))
    totals = daily_leakage_with(backward, forward, series, gaps_days, steps_per_day=steps_per_day)
    return totals.backward, totals.forward, totals.total


def daily_leakage_with(
    backward: GapLeakage, forward: GapLeakage, losses: ArrayLike, gaps_days: ArrayLike, *, steps_per_day: int
) -> LeakageTotals:
    r"""Leakage about each whole day with a release, for any leakage over a gap of steps.

    Use it with a leakage bound in place of a chain; `daily_release_leakage` is the same for a chain.

    .. math:: BPL_k = \varepsilon_k + B_{1 + m(g_k - 1)}(c_{k-1}), \qquad c_k = \varepsilon_k + B_{m g_k}(c_{k-1})

    Source: as `daily_release_leakage`.

    Args:
        backward: B, (gap in steps, loss) -> loss about the later end.
        forward: (gap in steps, loss) -> loss about the earlier end.
        losses: e, loss of each release about its whole day, shape (..., T), >= 0 [epsilon].
        gaps_days: g, days from each release to the next, shape (T-1,), integers >= 1 [days].
        steps_per_day: m, steps of the chain in a day, >= 1 [steps].

    Returns:
        Backward, forward and total leakage, shape (..., T) each [epsilon].

    Raises:
        ChainError: gaps or steps as in `daily_release_leakage`.

    References:
        [T] https://doi.org/10.1109/TKDE.2018.2824328

    >>> halve = lambda gap, loss: loss / 2**gap
    >>> daily_leakage_with(halve, halve, [1.0, 1.0], [1], steps_per_day=2).backward.tolist()  # 1 + 1/2
    [1.0, 1.5]
    """
    series, gaps = checked_loss_series(losses), step_list(gaps_days, "gaps in days")
    day = _checked_steps_per_day(steps_per_day)
    if gaps.size != max(series.shape[-1] - 1, 0) or (gaps < 1).any():
        raise ChainError(
            f"{series.shape[-1]} releases have {max(series.shape[-1] - 1, 0)} gaps of at least a day, got {gaps.size}; "
            "losses of one day are added up first"
        )

    def side(gap_leakage: GapLeakage) -> OneSidedRecursion[Floats]:
        def at(steps: int) -> Any:  # noqa: ANN401  (a leakage function of which no supremum is asked)
            return partial(gap_leakage, steps)

        return OneSidedRecursion(lambda days: at(day * days), lambda days: at(1 + day * (days - 1)))

    days = [0, *gaps.cumsum().tolist()][: series.shape[-1]]
    return Recursion(side(backward), side(forward)).leakage_totals(series, days=days)


def daily_recursion(transition: Kernels, *, steps_per_day: int, gap_days: int = 1) -> Recursion[Floats]:
    r"""Recursion of daily releases at equal distances, for suprema and budgets.

    Use it with `allocate_with` and `round_up_losses`.

    .. math:: \sup TPL = \varepsilon + L_{\hat P}(c^*) + L_P(C^*), \qquad
        c^* = \sup \text{ of } c \mapsto \varepsilon + L_{\hat P^m}(c)

    and C* likewise with P^m, for a gap of one day.

    Source: this project, from [T] Theorem 11 for blocks of m steps.

    Args:
        transition: forward transition matrix of one step, shape (..., k, k), probabilities [-]; a tuple is a set.
        steps_per_day: m, >= 1 [steps].
        gap_days: days between releases, >= 1 [days].

    Returns:
        The recursion.

    Raises:
        ChainError: as `daily_release_leakage`.

    References:
        [T] https://doi.org/10.1109/TKDE.2018.2824328

    >>> daily_recursion([[0.9, 0.1], [0.1, 0.9]], steps_per_day=2).total_supremum(0.5).round(4).item()
    2.3852
    """
    day, gap = _checked_steps_per_day(steps_per_day), int(checked_steps(gap_days, quantity="gaps in days"))
    if gap < 1:
        raise ChainError("releases lie at least a day apart; losses of one day are added up first")
    (backward_kernels, forward_kernels), day_steps, gap_steps = (
        temporal_kernels(transition),
        1 + day * (gap - 1),
        day * gap,
    )

    def side(chains: tuple[Floats, ...]) -> OneSidedRecursion[Floats]:
        step = _powered(chains, gap_steps)
        day_leakage = step if day_steps == gap_steps else _powered(chains, day_steps)
        return OneSidedRecursion(lambda _: step, lambda _: day_leakage)

    return Recursion(side(backward_kernels), side(forward_kernels))


def temporal_kernels(transition: Kernels) -> tuple[tuple[Floats, ...], tuple[Floats, ...]]:
    r"""Backward and forward kernels of chains, for `temporal` and related functions.

    Use it whenever both kernels come from one chain: P_B is then the Bayes reverse of P_F, not a free choice.

    .. math:: P_B(x, y) = \frac{\pi(y) P_F(y, x)}{\pi(x)}, \qquad \pi \text{ the stationary distribution}

    Source: [T] Definition 3 and [A] eq. 1. Errata: Fig. 3's chain has no reverse; Fig. 8's P_B is not the reverse of
    its P_F.

    Args:
        transition: forward transition matrix, shape (..., k, k), probabilities [-]; a tuple is a set.

    Returns:
        P_B and P_F as tuples of arrays, shape (..., k, k) each [-].

    Raises:
        ChainError: chains that cannot be reversed; None, which has no kernels.

    References:
        [T] https://doi.org/10.1109/TKDE.2018.2824328

    >>> backward, forward = temporal_kernels([[0.8, 0.2], [0.1, 0.9]])  # two states are always reversible
    >>> backward[0].round(12).tolist()
    [[0.8, 0.2], [0.1, 0.9]]
    """
    chains = kernel_set(transition)
    if not chains:
        raise ChainError("a chain is needed; None means that no correlation is known")
    return tuple(reverse(chain) for chain in chains), tuple(chains)


def _powered(chains: tuple[Floats, ...], steps: int, evaluations: int | None = None) -> BatchedLeakage:
    return BatchedLeakage(tuple(power(chain, steps) for chain in chains), evaluations=evaluations)


def _gap_leakage(chains: tuple[Floats, ...], evaluations: int) -> GapLeakage:
    """Leakage over a gap of steps, the pieces of recent gaps precomputed."""
    kernels_over: Callable[[int], BatchedLeakage] = lru_cache(_GAPS)(lambda steps: _powered(chains, steps, evaluations))
    return lambda steps, loss: kernels_over(steps)(loss)


def _checked_steps_per_day(steps_per_day: int) -> int:
    steps = int(checked_steps(steps_per_day, quantity="steps of a day"))
    if steps < 1:
        raise ChainError(f"a day has at least one step, got {steps}")
    return steps
