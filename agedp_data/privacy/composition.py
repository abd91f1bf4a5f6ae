"""Losses of several outputs, composed: under the Markov assumption for any schedule, and without it.

Under a Markov chain the loss about an input passes on to the next one through the chain between both, so outputs are
taken in the order of their INPUTS, not of their publication. [A] Theorem 3, eq. 25, looked up as printed is unsafe
whenever an input is older than the previous publication, which is the normal case (MATHS 3 and 9): two-state chain,
p = q = .1, three releases one step apart of inputs five steps old: printed .1927, true .3557.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from agedp_data.errors import ChainError
from agedp_data.privacy.kernel import Floats, checked_loss, checked_steps
from agedp_data.privacy.leakage import leakage

Through = Callable[[int, Floats], Floats]


def compose_through(
    published: ArrayLike, ages: ArrayLike, losses: ArrayLike, at: ArrayLike, *, through: Through
) -> Floats:
    """Return the composed loss at each instant for any way a loss passes over a gap of steps.

    Of the outputs published by t, sorted by input time u = S - A:
        z_1 = e_1,  z_k = e_k + L_(u_k - u_(k-1))(z_(k-1)),  eps(t) = L_(t - u_m)(z_m);
    equal input times add (gap 0), and before the first output the loss is 0.

    Shapes: (n,) int, (n,) int, (n,), (T,) int -> (..., T), leading axes those of what `through` returns.
    Units: [steps], [-] -> [-].

    Args:
        published: instants S of publication.
        ages: age A of each input when published.
        losses: loss of each output about its input.
        at: instants t.
        through: (gap in steps > 0, loss) -> loss, under a Markov assumption; for example an envelope's call.

    Raises:
        ChainError: negative ages, losses or gaps that are no numbers of steps, or lengths that differ.
    """
    loss = checked_loss(losses)
    if loss.ndim != 1:
        raise ChainError(f"losses of a schedule are a list, got shape {loss.shape}")
    figures = courses(published, ages, loss, at, through=through)
    return np.stack(np.broadcast_arrays(*figures), axis=-1) if figures else np.zeros(0)


def courses(published: ArrayLike, ages: ArrayLike, charges: Floats, at: ArrayLike, *, through: Through) -> list[Floats]:
    """Return what the recursion of `compose_through` comes to at each instant, whatever is charged (n, ...)."""
    instants, until = whole(published, "publications"), whole(at, "instants")
    age = line(ages, "ages")
    if not instants.shape == age.shape == charges.shape[:1]:
        raise ChainError(
            f"{instants.size} publications, {age.size} ages and losses of shape {charges.shape} do not fit"
        )
    read = instants - age
    by_input = np.lexsort((np.arange(read.size), read))
    state = _Composition(read, charges, through)
    return [state.at(t, by_input[instants[by_input] <= t].tolist()) for t in until.tolist()]


class _Composition:
    """The recursion over outputs in the order of their inputs, kept as far as the next instant shares it."""

    def __init__(self, read: NDArray[np.int64], loss: Floats, through: Through) -> None:
        self._read, self._loss, self._through = read.tolist(), loss, through
        self._done: list[int] = []
        self._composed: list[Floats] = []

    def at(self, t: int, outputs: list[int]) -> Floats:
        if not outputs:
            return np.zeros(self._loss.shape[1:])
        self._follow(outputs)
        return self._pass(t - self._read[outputs[-1]], self._composed[-1])

    def _follow(self, outputs: list[int]) -> None:
        same = 0
        while same < min(len(self._done), len(outputs)) and self._done[same] == outputs[same]:
            same += 1
        del self._done[same:], self._composed[same:]
        for output in outputs[same:]:
            total = np.asarray(self._loss[output])
            if self._done:
                gap = self._read[output] - self._read[self._done[-1]]
                total = total + self._pass(gap, self._composed[-1])
            self._done.append(output)
            self._composed.append(total)

    def _pass(self, gap: int, loss: Floats) -> Floats:
        return loss if gap == 0 else np.asarray(self._through(gap, loss))


def compose_without_markov(kernels: Sequence[ArrayLike], losses: ArrayLike) -> Floats:
    """Return min over j of L_(K_j)(e_j) + the other losses: all that holds without a joint model.

    K_j goes from the secret to the input of release j. Shapes: m kernels (..., k, n_j), (m,) -> (...). Units:
    [-]. Passing the SUM of the losses through the nearest kernel is unsafe (MATHS 2b).

    Raises:
        ChainError: as many kernels as losses are needed; otherwise as `leakage`.

    >>> compose_without_markov([[[0.5, 0.5], [0.5, 0.5]], [[1, 0], [0, 1]]], [0.5, 0.25]).item()
    0.25
    """
    loss = checked_loss(losses)
    if loss.shape != (len(kernels),):
        raise ChainError(f"one loss per kernel: {len(kernels)} kernels, got losses of shape {loss.shape}")
    aged = [leakage(kernel, each) for kernel, each in zip(kernels, loss, strict=True)]
    return sum_rule(np.stack(np.broadcast_arrays(*aged), axis=-1) if aged else np.zeros(0), loss)


def sum_rule(aged: ArrayLike, losses: ArrayLike) -> Floats:
    """Return min over j of aged_j + the sum of the other losses, 0 without releases.

    Shapes: (..., m), (m,) -> (...). Units: [-].

    Args:
        aged: each release's own loss about the secret, through its own kernel or curve.
        losses: each release's loss about its input.

    >>> sum_rule([0.1, 0.4], [0.5, 0.6]).item()  # min(0.1 + 0.6, 0.4 + 0.5)
    0.7
    """
    each, loss = checked_loss(aged), checked_loss(losses)
    if loss.ndim != 1 or each.shape[-1:] != loss.shape:
        raise ChainError(f"one aged loss per release: {loss.shape} losses, got {each.shape}")
    if not loss.size:
        return np.zeros(each.shape[:-1])[()]
    # Sums before and after j instead of the total less e_j: exact for infinite losses, no cancellation.
    before = np.concatenate(([0.0], loss[:-1].cumsum()))
    after = np.concatenate((loss[:0:-1].cumsum()[::-1], [0.0]))
    smallest: Floats = (each + before + after).min(axis=-1)
    return smallest


def line(steps: ArrayLike, what: str) -> NDArray[np.int64]:
    """Return a list of whole non-negative steps. Raises ChainError otherwise."""
    line = checked_steps(steps, what=what)
    if line.ndim != 1:
        raise ChainError(f"{what} are a list, got shape {line.shape}")
    return line


def whole(steps: ArrayLike, what: str) -> NDArray[np.int64]:
    """Return instants, which may lie before 0."""
    given = np.asarray(steps)
    if given.ndim != 1 or (given.size and (given != np.rint(given)).any()):
        raise ChainError(f"{what} are a list of whole steps")
    return given.astype(np.int64)
