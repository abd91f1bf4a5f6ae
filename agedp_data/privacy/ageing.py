"""Age-dependent differential privacy: what old outputs say about the present ([A], MATHS 3).

The loss eps_C of a query about its input stays for ever. What fades is its loss about the PRESENT: at age t
it is L_K(eps_C), K the t-step reversed chain (tight), or by [A] Theorem 1 ln(1 + Delta(t)(e^eps_C - 1)).
Households are independent, and each is the Markov chain that is stated; without that only
`compose_without_markov` adds up. Figures are per chain; the promise is the largest over households.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from agedp_data.chains.spectrum import reversibilised_bound, spectral_bound, total_variation
from agedp_data.chains.transitions import power, reverse
from agedp_data.errors import ChainError
from agedp_data.privacy.kernel import Floats, checked_loss, checked_steps
from agedp_data.privacy.leakage import leakage, through_distance

Through = Callable[[int, Floats], Floats]

_GAPS = 8  # kernels of a stack kept at a time; schedules repeat few gaps

_DISTANCES = {
    "total_variation": total_variation,
    "spectral": spectral_bound,
    "reversibilised": reversibilised_bound,
}


def risk(transition: ArrayLike, loss: ArrayLike, age_steps: ArrayLike, *, method: str) -> Floats:
    """Return the loss about the present of one query at each age.

    Shapes: (..., k, k), (...), (T,) int -> (..., T). Units: [-], [-], [steps] -> [-].

    Args:
        transition: forward one-step chains, rows of NaN left out.
        loss: loss of the mechanism about its input; infinity gives the bound for every mechanism ([A] Theorem
            2).
        age_steps: steps since the input.
        method: "tight", "total_variation" ([A] Theorem 1), "spectral" (with [A] eq. 55) or "reversibilised".

    Raises:
        ChainError: an unknown method, or as the methods themselves.

    >>> risk([[0.9, 0.1], [0.1, 0.9]], 2.0, [3, 6, 10], method="tight").round(4).tolist()
    [0.8234, 0.4047, 0.1639]
    """
    through = _through(transition, method)
    steps, losses = _line(age_steps, "ages"), checked_loss(loss)
    aged = [through(step, losses) for step in steps.tolist()]
    if not aged:
        return np.zeros((*np.broadcast_shapes(np.shape(transition)[:-2], losses.shape), 0))
    return np.stack(aged, axis=-1)


def risk_of_curve(curve: ArrayLike, loss: ArrayLike, ages: ArrayLike) -> Floats:
    """Return ln(1 + d(t)(e^eps - 1)) at each age for a declared curve of total variations.

    Shapes: (T,), () or (T,), (T,) -> (T,). Units: [-], [-], [steps] -> [-]. References: [A] Theorem 1.

    Raises:
        ChainError: a curve that increases with age, leaves [0, 1] or does not fit the ages.

    >>> risk_of_curve([1.0, 0.64], 0.5, [0, 48]).round(6).tolist()
    [0.5, 0.347258]
    """
    distances, steps = np.asarray(curve, dtype=np.float64), _line(ages, "ages")
    if distances.shape != steps.shape:
        raise ChainError(f"a curve has one value per age: {steps.size} ages, got shape {distances.shape}")
    if (np.diff(distances[np.lexsort((distances, steps))]) > 0).any():
        raise ChainError("a declared curve must not increase with age; the promise holds for every later instant")
    return through_distance(distances, loss)


def compose(
    transition: ArrayLike,
    published: ArrayLike,
    ages: ArrayLike,
    losses: ArrayLike,
    at: ArrayLike,
    *,
    method: str,
) -> Floats:
    """Return the loss about the present of all outputs published so far, at each instant of `at`.

    Any schedule in any order; see `compose_through`. Shapes: (..., k, k), (n,) int, (n,) int, (n,), (T,) int
    -> (..., T). Units: [steps], [-] -> [-]. Methods and errors: as `risk`.

    References: MATHS 3, which corrects [A] Theorem 3, eq. 25.

    >>> chain = [[0.9, 0.1], [0.1, 0.9]]
    >>> compose(chain, [1, 2, 3], [5, 5, 5], [0.5, 0.5, 0.5], [3], method="tight").round(10).tolist()
    [0.3557487386]
    """
    return compose_through(published, ages, losses, at, through=_through(transition, method))


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
    instants, until = _instants(published, "publications"), _instants(at, "instants")
    loss, age = checked_loss(losses), _line(ages, "ages")
    if not instants.shape == age.shape == loss.shape:
        raise ChainError(f"{instants.size} publications, {age.size} ages and losses of shape {loss.shape} do not fit")
    read = instants - age
    by_input = np.lexsort((np.arange(read.size), read))
    state = _Composition(read, loss, through)
    figures = [state.at(t, by_input[instants[by_input] <= t].tolist()) for t in until.tolist()]
    return np.stack(np.broadcast_arrays(*figures), axis=-1) if figures else np.zeros(0)


class _Composition:
    """The recursion over outputs in the order of their inputs, kept as far as the next instant shares it."""

    def __init__(self, read: NDArray[np.int64], loss: Floats, through: Through) -> None:
        self._read, self._loss, self._through = read.tolist(), loss, through
        self._done: list[int] = []
        self._composed: list[Floats] = []

    def at(self, t: int, outputs: list[int]) -> Floats:
        if not outputs:
            return np.zeros(())
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


def age_of_information(published: ArrayLike, ages: ArrayLike, horizon: int) -> NDArray[np.int64]:
    """Return the age of the newest publication's input at 0, 1, ..., horizon; 0 at the start.

    AoI(t + 1) = A_n if t + 1 = S_n, else AoI(t) + 1; the smallest age if several are published at once.
    Shapes: (n,) int, (n,) int -> (horizon + 1,). Units: [steps].

    Raises:
        ChainError: publications before step 1, negative ages or horizon, or lengths that differ.

    References: [A] eq. 24.

    >>> age_of_information([4, 8], [2, 1], 9).tolist()
    [0, 1, 2, 3, 2, 3, 4, 5, 1, 2]
    """
    instants, age, last = _line(published, "publications"), _line(ages, "ages"), int(checked_steps(horizon))
    if instants.shape != age.shape or (instants < 1).any():
        raise ChainError("the age of information needs one age per publication, none before step 1")
    restart = np.full(last + 1, -1, dtype=np.int64)
    restart[0] = 0
    for when, old in sorted(zip(instants.tolist(), age.tolist(), strict=True), reverse=True):
        if when <= last:
            restart[when] = old
    step = np.arange(last + 1)
    since = np.maximum.accumulate(np.where(restart >= 0, step, 0))
    return restart[since] + step - since


def _through(transition: ArrayLike, method: str) -> Through:
    """Return how a loss passes over a gap of steps by one of the methods."""
    if method == "tight":
        backward = reverse(transition)
        kernel = lru_cache(_GAPS)(lambda gap: power(backward, gap))
        return lambda gap, loss: leakage(kernel(gap), loss)
    if method not in _DISTANCES:
        known = ", ".join(f'"{name}"' for name in ("tight", *_DISTANCES))
        raise ChainError(f'there is no method "{method}"; there are {known}')
    figure = _DISTANCES[method]
    distance = lru_cache(_GAPS)(lambda gap: figure(transition, [gap])[..., 0])
    return lambda gap, loss: through_distance(distance(gap), loss)


def _line(steps: ArrayLike, what: str) -> NDArray[np.int64]:
    line = checked_steps(steps, what=what)
    if line.ndim != 1:
        raise ChainError(f"{what} are a list, got shape {line.shape}")
    return line


def _instants(steps: ArrayLike, what: str) -> NDArray[np.int64]:
    """Return instants, which may lie before 0."""
    given = np.asarray(steps)
    if given.ndim != 1 or (given.size and (given != np.rint(given)).any()):
        raise ChainError(f"{what} are a list of whole steps")
    return given.astype(np.int64)
