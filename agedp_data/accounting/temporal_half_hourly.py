"""Temporal leakage of daily releases on a half-hourly chain: a day is a block of steps, so two kernels are needed.

A chain has m steps a day, g_k days lie between releases k - 1 and k, and P^ is the reversed chain. The releases up to k
have the loss c_k about the LAST step of day k. Those from k on have the loss C_k about its FIRST step:

    c_1 = e_1,  c_k = e_k + L_{P^^(m g_k)}(c_(k-1)),          C_T = e_T,  C_k = e_k + L_{P^(m g_(k+1))}(C_(k+1)),
    BPL_k = e_k + L_{P^^(1 + m (g_k - 1))}(c_(k-1)),          FPL_k = e_k + L_{P^(1 + m (g_(k+1) - 1))}(C_(k+1)),
    TPL_k = BPL_k + FPL_k - e_k, about the WHOLE day k.

Example: two states that persist with probability 0.9, two steps a day, two releases of 0.5: total leakage 0.897 each.

Decisions:

* Releases g steps apart use P^g, not L applied g times: L of a power never exceeds the power of L, and the recursion
  over single half-hours has no finite supremum for nearly all real households.
* P_B is the Bayes reverse of P_F, not a free choice (`temporal_kernels`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any

from numpy.typing import ArrayLike

from agedp_data.accounting.composition import GapLeakage
from agedp_data.accounting.temporal_recursion import (
    LeakageTotals,
    OneSidedRecursion,
    Recursion,
    checked_loss_series,
)
from agedp_data.arrays import Floats, checked_steps, step_list
from agedp_data.errors import ChainError
from agedp_data.leakage.batched import BatchedLeakage, Kernels, kernel_set
from agedp_data.markov.transitions import power, reverse

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
