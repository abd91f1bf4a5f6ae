"""Temporal leakage of daily releases on a chain of half-hours: a day is a block, and two kernels are needed (MATHS 4).

With m steps a day, g_k days from release k - 1 to k and P^ the reversed chain, c_k is the loss about day k's LAST
step of the releases up to k, C_k that about its FIRST step of those from k on:

    c_1 = e_1,  c_k = e_k + L_{P^^(m g_k)}(c_(k-1)),          C_T = e_T,  C_k = e_k + L_{P^(m g_(k+1))}(C_(k+1)),
    BPL_k = e_k + L_{P^^(1 + m (g_k - 1))}(c_(k-1)),          FPL_k = e_k + L_{P^(1 + m (g_(k+1) - 1))}(C_(k+1)),
    TPL_k = BPL_k + FPL_k - e_k, about the WHOLE day k.

Releases g steps apart pass through P^g, not g times through P: L of a power is never above the power of L, and the
recursion over single half-hours has no finite supremum for nearly all real households.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial

from numpy.typing import ArrayLike

from agedp_data.chains.transitions import power, reverse
from agedp_data.errors import ChainError
from agedp_data.privacy.composition import Through, line
from agedp_data.privacy.kernel import Floats, checked_steps
from agedp_data.privacy.recursion import LeakageMap, LeakageTotals, Recursion, checked_losses, leak_of, reached
from agedp_data.privacy.stacked import BatchedLeakage, Kernels, members

_GAPS = 64  # different gaps whose pieces are kept


def daily_release_leakage(
    transition: Kernels, losses: ArrayLike, gaps_days: ArrayLike, *, steps_per_day: int
) -> tuple[Floats, Floats, Floats]:
    """Return backward, forward and total leakage about each whole day on which there is a release.

    Shapes: (..., k, k), (..., T), (T-1,) int -> (..., T) each. Units: [-], [-], [days] -> [-].

    Args:
        transition: forward one-step chains, rows of NaN left out; a tuple is a set of possible ones, the maximum over
            it is taken at every step.
        losses: of each release about its whole day.
        gaps_days: days from each release to the next, at least 1.
        steps_per_day: steps of the chain in a day, m.

    Raises:
        ChainError: gaps below one day or of another number, a day without steps, chains as in `reverse`.

    >>> stay = [[0.9, 0.1], [0.1, 0.9]]
    >>> [side.round(4).tolist() for side in daily_release_leakage(stay, [0.5, 0.5], [1], steps_per_day=2)]
    [[0.5, 0.897], [0.897, 0.5], [0.897, 0.897]]
    """
    behind, ahead = kernels(transition)
    each = checked_losses(losses)
    past, future = (_through(chains, each.shape[-1]) for chains in (behind, ahead))
    found = blocks_through(past, future, each, gaps_days, steps_per_day=steps_per_day)
    return found.backward, found.forward, found.total


def blocks_through(
    backward: Through, forward: Through, losses: ArrayLike, gaps_days: ArrayLike, *, steps_per_day: int
) -> LeakageTotals:
    """Return the leakage of `daily_release_leakage` for any leakage over a gap of steps, such as a bound's.

    Shapes: (..., T), (T-1,) int -> (..., T) each. Units: [-], [days] -> [-].

    Args:
        backward: (gap in steps, loss) -> loss about the later end.
        forward: (gap in steps, loss) -> loss about the earlier end.
        losses: of each release about its whole day.
        gaps_days: days from each release to the next, at least 1.
        steps_per_day: steps of the chain in a day.

    Raises:
        ChainError: gaps or steps as in `daily_release_leakage`.
    """
    each, gaps, day = checked_losses(losses), line(gaps_days, "gaps in days"), _day(steps_per_day)
    if gaps.size != max(each.shape[-1] - 1, 0) or (gaps < 1).any():
        raise ChainError(
            f"{each.shape[-1]} releases have {max(each.shape[-1] - 1, 0)} gaps of at least a day, got {gaps.size}; "
            "losses of one day are added up first"
        )

    def over(through: Through, days: list[int]) -> tuple[list[LeakageMap], list[LeakageMap]]:
        carries: list[LeakageMap] = [partial(through, day * g) for g in days]
        reaches: list[LeakageMap] = [partial(through, 1 + day * (g - 1)) for g in days]
        return carries, reaches

    days: list[int] = gaps.tolist()
    before = reached(each, *over(backward, days))
    after = reached(each[..., ::-1], *over(forward, days[::-1]))[..., ::-1]
    return leak_of(each, before, after)


def block_recursion(transition: Kernels, *, steps_per_day: int, gap_days: int = 1) -> Recursion:
    """Return the recursion of daily releases `gap_days` apart, for suprema and budgets.

    Its limit is e + L_{P^}(c*) + L_P(C*), c* the supremum of c -> e + L_{P^^m}(c) and C* that of the forward chain.

    Raises:
        ChainError: as `daily_release_leakage`.

    >>> stay = block_recursion([[0.9, 0.1], [0.1, 0.9]], steps_per_day=2)
    >>> stay.limit(0.5).round(4).item()
    2.3852
    """
    day, gap = _day(steps_per_day), int(checked_steps(gap_days, what="gaps in days"))
    if gap < 1:
        raise ChainError("releases lie at least a day apart; losses of one day are added up first")
    (behind, ahead), reach, carry = kernels(transition), 1 + day * (gap - 1), day * gap

    def sides(chains: tuple[Floats, ...]) -> tuple[BatchedLeakage, BatchedLeakage]:
        far = _powered(chains, carry)
        return far, far if reach == carry else _powered(chains, reach)

    return Recursion(*sides(behind), *sides(ahead))


def kernels(transition: Kernels) -> tuple[tuple[Floats, ...], tuple[Floats, ...]]:
    """Return the backward and the forward kernels of chains: P_B is the Bayes reverse of P_F, no free choice.

    P_B(x, y) = pi(y) P_F(y, x) / pi(x), pi the stationary law. ([T] Figs. 3 and 8 have pairs that no chain has: the
    first has no reverse at all, one place being left for good.) Both as tuples, for `temporal` and its kin.

    Raises:
        ChainError: as `reverse`; or None, since no chain has no kernels.

    >>> behind, ahead = kernels([[0.8, 0.2], [0.1, 0.9]])
    >>> behind[0].round(12).tolist()
    [[0.8, 0.2], [0.1, 0.9]]
    """
    chains = members(transition)
    if not chains:
        raise ChainError("a chain is needed; None says that no correlation is known")
    return tuple(reverse(chain) for chain in chains), tuple(chains)


def _powered(chains: tuple[Floats, ...], steps: int, evaluations: int | None = None) -> BatchedLeakage:
    return BatchedLeakage(tuple(power(chain, steps) for chain in chains), evaluations=evaluations)


def _through(chains: tuple[Floats, ...], evaluations: int) -> Through:
    known: Callable[[int], BatchedLeakage] = lru_cache(_GAPS)(lambda steps: _powered(chains, steps, evaluations))
    return lambda steps, loss: known(steps)(loss)


def _day(steps_per_day: int) -> int:
    day = int(checked_steps(steps_per_day, what="steps of a day"))
    if day < 1:
        raise ChainError(f"a day has at least one step, got {day}")
    return day
