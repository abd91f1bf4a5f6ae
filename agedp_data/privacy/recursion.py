"""The recursions of temporal leakage, whatever passes a loss on: kernels, sets of them, or a model's envelope.

[T] has one kernel for each direction, and BPL_t = e_t + L(BPL_(t-1)). Releases about blocks of several steps (a day
of half-hours) have two (MATHS 4): one CARRIES the loss about the last step of a block on to the last step of the
next, the other REACHES from there to the first step of the block that the figure is about:

    c_1 = e_1,  c_t = e_t + carry(c_(t-1)),  BPL_t = e_t + reach(c_(t-1)),

and forward alike from the end. With carry = reach this is [T]'s form.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from agedp_data.errors import ChainError
from agedp_data.privacy.kernel import Floats, checked_loss


class LeakageMap(Protocol):
    """How a loss passes on: never more comes out than goes in, and more goes in, more comes out."""

    def __call__(self, loss: Floats, /) -> Floats:
        """Return what is left of a loss."""


class LeakageFunction(LeakageMap, Protocol):
    """How a loss passes on from each release to the next."""

    def supremum(self, loss: Floats, /) -> Floats:
        """Return the limit of x -> loss + self(x) from 0, infinite if there is none."""


@dataclass(frozen=True, slots=True)
class LeakageTotals:
    """What a release says about its day together with those before, those after, and all of them: each (..., T)."""

    backward: Floats
    forward: Floats
    total: Floats


class BudgetRecursion(Protocol):
    """What budgets need of a recursion."""

    def leak(self, losses: ArrayLike, *, beyond: float = 0.0) -> LeakageTotals:
        """Return the leakage of releases with these losses, infinitely many of loss `beyond` to follow."""

    def limit(self, loss: ArrayLike) -> Floats:
        """Return the total leakage that infinitely many releases of this loss build up to."""

    def ends(self, loss: ArrayLike) -> tuple[Floats, Floats]:
        """Return what the first and what the last release may have beside endless ones of this loss."""


@dataclass(frozen=True, slots=True)
class Recursion:
    """Both directions of releases that are equally far apart.

    Attributes:
        carry_backward, carry_forward: from one release to the next.
        reach_backward, reach_forward: from one release to the day of the next.
    """

    carry_backward: LeakageFunction
    reach_backward: LeakageMap
    carry_forward: LeakageFunction
    reach_forward: LeakageMap

    def leak(self, losses: ArrayLike, *, beyond: float = 0.0) -> LeakageTotals:
        """Return the leakage of releases with these losses (..., T).

        Args:
            losses: of each release about its own day.
            beyond: loss of each of infinitely many releases that are still to come.
        """
        each = checked_losses(losses)
        gaps = max(each.shape[-1] - 1, 0)
        nothing = np.zeros(())
        later = np.asarray(self.carry_forward.supremum(np.asarray(beyond))) if beyond else nothing
        before = reached(
            each,
            [self.carry_backward] * gaps,
            [self.reach_backward] * gaps,
            first=(np.asarray(self.carry_backward(nothing)), np.asarray(self.reach_backward(nothing))),
        )
        after = reached(
            each[..., ::-1],
            [self.carry_forward] * gaps,
            [self.reach_forward] * gaps,
            first=(np.asarray(self.carry_forward(later)), np.asarray(self.reach_forward(later))),
        )[..., ::-1]
        return leak_of(each, before, after)

    def limit(self, loss: ArrayLike) -> Floats:
        """Return the total leakage that infinitely many releases of this loss build up to, in both directions."""
        each = checked_loss(loss)
        sides = (
            self.reach_backward(self.carry_backward.supremum(each)),
            self.reach_forward(self.carry_forward.supremum(each)),
        )
        return np.asarray(each + sides[0] + sides[1])

    def ends(self, loss: ArrayLike) -> tuple[Floats, Floats]:
        """Return the suprema that the carried losses build up to, backward and forward."""
        each = checked_loss(loss)
        return np.asarray(self.carry_backward.supremum(each)), np.asarray(self.carry_forward.supremum(each))


def leak_of(losses: Floats, before: Floats, after: Floats) -> LeakageTotals:
    """Return the leakage, given what other releases say about each release's day; no infinite loss is subtracted."""
    return LeakageTotals(*np.broadcast_arrays(losses + before, losses + after, losses + before + after))


def reached(
    losses: Floats,
    carries: Sequence[LeakageMap],
    reaches: Sequence[LeakageMap],
    *,
    first: tuple[Floats, Floats] | None = None,
) -> Floats:
    """Return what the releases so far say about the day of each release, its own loss not included.

    Shapes: (..., T), T - 1 passings each -> (..., T).

    Args:
        losses: of each release.
        carries: from each release to the next.
        reaches: from each release to the day of the next.
        first: what earlier releases say about the first day's nearest step and about its whole.
    """
    count = losses.shape[-1]
    carried, reach = first or (np.zeros(()), np.zeros(()))
    households = shape_of(losses, reach)
    found = [reach][:count]
    for t in range(count - 1):
        so_far = losses[..., t] + carried
        carried = np.asarray(carries[t](so_far))
        found.append(carried if reaches[t] is carries[t] else np.asarray(reaches[t](so_far)))
    if not found:
        return np.zeros((*households, 0))
    return np.stack(np.broadcast_arrays(*found), axis=-1)


def shape_of(losses: Floats, figures: Floats) -> tuple[int, ...]:
    """Return the leading axes of losses (..., T) and figures (...). Raises ChainError if they do not fit."""
    try:
        return np.broadcast_shapes(losses.shape[:-1], figures.shape)
    except ValueError:
        raise ChainError(
            f"losses of shape {losses.shape}, a series each, do not fit a stack of shape {figures.shape}"
        ) from None


def checked_losses(losses: ArrayLike) -> Floats:
    """Return losses of a series (..., T). Raises ChainError if they are none."""
    each = checked_loss(losses)
    if not each.ndim:
        raise ChainError("losses of a series are a list, one for each release")
    return each
