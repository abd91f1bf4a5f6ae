"""Composition of several releases: z = e + L(z'), for any schedule under the Markov assumption, and without a model.

Under a Markov chain the loss about one input implies a loss about the next input through the chain between them. So
releases are taken in the order of their INPUTS, not of their publication. Example: two-state chain, p = q = .1, three
releases one step apart with inputs five steps old, epsilon 0.5 each: the composed loss is 0.3557.

Decisions:

* `Composition` is the only recursion: float arrays for papers and the public functions, whole nano-epsilon, rounded up,
  where a release is admitted.
* Erratum to [A] Theorem 3, eq. 25: the literal lookup is unsafe whenever an input is older than the previous
  publication, the normal case. It gives 0.1927 in the example.
* Without the Markov assumption no rule is much smaller than the sum (`compose_without_markov`, `SumComposition`).
* A step may begin several releases back; those between count by the sum of their losses. A chain in which one step
  loses no information (its states are pairs of days) may mix in two. P(y | x) = P(y_far | x) P(y_near | y_far, x) for
  outputs y about a day x: another x changes the first factor by e^L(z_(k-j)) at most, the second by e^(losses of near).

[A] https://doi.org/10.1109/TIT.2023.3340147
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Collection, Sequence
from functools import partial
from operator import itemgetter
from typing import Any, Generic, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from agedp_data.arrays import Floats, checked_loss, step_list
from agedp_data.errors import ChainError
from agedp_data.leakage.function import Number, leakage

GapLeakage = Callable[[int, Floats], Floats]
"""Leakage over a gap: (steps, loss about one end) -> loss about the other end."""

LeakageAt = Callable[[int], Callable[[Number], Number]]
"""Leakage function of each gap, in steps or days."""


class Composition(Generic[Number]):
    r"""Losses of releases, composed through the leakage between their inputs.

    Use it with floats or arrays [epsilon], or with integers [nano-epsilon] whose leakage functions round up. A release
    is added in any order of the inputs; only the composed losses of later inputs are computed again.

    .. math:: z_k = e_k + \min_{j \in J} \Bigl[ \sum_{i=1}^{j-1} e_{k-i} + L_{u_k - u_{k-j}}(z_{k-j}) \Bigr], \qquad
        \varepsilon(t) = \min_{j \in J} \Bigl[ \sum_{i=0}^{j-2} e_{m-i} + L_{t - u_{m-j+1}}(z_{m-j+1}) \Bigr]

    With J = {1}, as in [A]: z_k = e_k + L(z_(k-1)) and L(z_m). Losses of equal inputs add.

    Source: [A] Theorem 3; orders j > 1: this project. Erratum to eq. 25: its bracket is misplaced and its lookup is
    wrong for overlapping ages; releases are sorted by the time of their input.

    Args:
        leakage_at: leakage function L of each gap > 0 between inputs [steps].
        day_leakage_at: the same from an input to the instant that a bound is about, if that is the whole day of an
            input (`OneSidedRecursion`); None: as `leakage_at`.
        orders: J, how many releases back a step of the recursion may begin; contains 1.
        past: loss of each of infinitely many releases before the first one, one step apart, and the supremum of their
            composed losses; None for no earlier releases.

    References:
        [A] https://doi.org/10.1109/TIT.2023.3340147

    >>> halving = Composition(lambda gap: lambda loss: -(-loss // 2**gap))
    >>> halving.add(0, 8)
    >>> halving.add(1, 5)
    >>> halving.composed, halving.leakage(2)  # 8, 5 + 8/2, and 9/2 rounded up
    ([8, 9], 5)
    """

    def __init__(
        self,
        leakage_at: LeakageAt[Number],
        *,
        day_leakage_at: LeakageAt[Number] | None = None,
        orders: Collection[int] = (1,),
        past: tuple[Number, Number] | None = None,
    ) -> None:
        self._leakage_at, self._day_leakage_at = leakage_at, day_leakage_at or leakage_at
        self._orders, self._furthest = orders, max(orders)
        self.n_past = 0 if past is None else self._furthest
        self.inputs = list(range(-self.n_past, 0))
        loss, supremum = past or (None, None)
        self.losses: list[Any] = [loss] * self.n_past
        self._composed: list[Any] = [supremum] * self.n_past
        self._leakages: list[Any] = [supremum] * self.n_past
        self._stale, self._kept = self.n_past, 0

    def set_past(self, loss: Number, supremum: Number) -> None:
        """Set the loss of each of the infinitely many earlier releases, and the supremum of their composed losses."""
        for values, value in ((self.losses, loss), (self._composed, supremum), (self._leakages, supremum)):
            values[: self.n_past] = [value] * self.n_past
        self._stale, self._kept = self.n_past, max(self._kept, self.n_past)

    @property
    def composed(self) -> list[Number]:
        """Composed loss z of the releases up to each input."""
        self.refresh()
        return self._composed[self.n_past :]

    @property
    def leakages(self) -> list[Number]:
        """Leakage of the earlier releases about each input, its own loss excluded."""
        self.refresh()
        return self._leakages[self.n_past :]

    def add(self, instant: int, loss: Number) -> None:
        """Add a loss about the input at an instant; losses about one input add."""
        index = bisect_left(self.inputs, instant, lo=self.n_past)
        known = self.losses[index] if index < len(self.inputs) and self.inputs[index] == instant else None
        self.set(instant, loss if known is None else known + loss)

    def set(self, instant: int, loss: Number | None) -> int:
        """Set the loss about the input at an instant, None: no release about it; return its place among the inputs.

        Composed losses of later inputs are computed again only as far as they change: to the end of a chain that
        forgets nothing, over a few inputs of one that mixes.
        """
        index = bisect_left(self.inputs, instant, lo=self.n_past)
        is_known, place = index < len(self.inputs) and self.inputs[index] == instant, index
        if loss is None and is_known:
            place = self._last_alike(index)
            del self.inputs[index], self.losses[index], self._composed[place], self._leakages[place]
            self._kept = max(self._kept - 1, place)
        elif is_known:
            self.losses[index], self._kept = loss, max(self._kept, index + 1)
        elif loss is not None:
            self.inputs.insert(index, instant)
            self.losses.insert(index, loss)
            place = self._last_alike(index)
            self._composed.insert(place, None)
            self._leakages.insert(place, None)
            self._kept = max(self._kept, place) + 1
        self._stale = min(self._stale, place)
        if index == self.n_past < len(self.inputs):
            self._place_past(self.inputs[index])
        return index - self.n_past

    def leakage_with(self, instant: int, loss: Number, at: int) -> Number:
        """Return the leakage about an instant with a loss about a further input, which is not kept."""
        self.set(instant, loss)
        try:
            return self.leakage(at)
        finally:
            self.set(instant, None)

    def replace(self, inputs: Sequence[int], losses: Sequence[int]) -> None:
        """Set the releases, inputs ascending; composed losses before the first difference are not repeated."""
        first = self.n_past
        if inputs:
            self._place_past(inputs[0])
        for instant, loss in zip(inputs, losses, strict=True):
            if first == len(self.inputs) or self.inputs[first] != instant or self.losses[first] != loss:
                break
            first += 1
        self.inputs[first:], self.losses[first:] = inputs[first - self.n_past :], losses[first - self.n_past :]
        self._composed[first:] = self._leakages[first:] = [None] * (len(self.inputs) - first)
        self._stale, self._kept = min(self._stale, first), len(self.inputs)

    def leakages_at(self, first: int, end: int) -> list[Number]:
        """Leakage of the earlier releases about the inputs from one place to before another, own losses excluded."""
        self.refresh()
        return self._leakages[self.n_past + first : self.n_past + end]

    def leakage(self, at: int, *, count: int | None = None) -> Number:
        """Leakage of the first `count` releases (None: all) about an instant not before their inputs; 0 without any."""
        self.refresh()
        number = len(self.inputs) if count is None else count + self.n_past
        return cast("Number", self._least(at, number, self._day_leakage_at))

    def _last_alike(self, index: int) -> int:
        """Return the last place of a run of equal losses, equally far apart, that begins at the first; else the place.

        One release more or less at either end leaves the same losses and gaps by place, so what is composed stays.
        """
        inputs, losses, composed, last = self.inputs, self.losses, self._composed, index
        if index != self.n_past or not isinstance(losses[index], int):
            return index
        while last < len(inputs) - 1 and losses[last + 1] == losses[last] and composed[last] != composed[last - 1]:
            if last > index and inputs[last + 1] - inputs[last] != inputs[last] - inputs[last - 1]:
                break
            last += 1
        return last

    def _place_past(self, first: int) -> None:
        self.inputs[: self.n_past] = range(first - self.n_past, first)

    def refresh(self) -> tuple[int, int]:
        """Compute what is stale; return the first place among the inputs that was computed, and the one after the last.

        Whole numbers alone may end it early: if as many results in a row as a step may reach back are what they were,
        and nothing about them was changed, then so are all results after them. If as many are equal, of equal losses
        equally far apart, the next such loss has the same result.
        """
        first, k, unchanged, repeated = self._stale, self._stale, 0, 0
        inputs, losses, is_whole = self.inputs, self.losses, bool(self.losses) and isinstance(self.losses[-1], int)
        while k < len(inputs) and unchanged < self._furthest:
            is_alike = is_whole and k > 1 and losses[k] == losses[k - 1]
            is_alike = is_alike and inputs[k] - inputs[k - 1] == inputs[k - 1] - inputs[k - 2]
            if is_alike and repeated > self._furthest:
                leakage, composed = self._leakages[k - 1], self._composed[k - 1]
            else:
                leakage, composed = self._result(k)
                repeated = repeated + 1 if is_alike and composed == self._composed[k - 1] else 0
            is_known = k >= self._kept and isinstance(composed, int) and composed == self._composed[k]
            unchanged = unchanged + 1 if is_known else 0
            self._leakages[k], self._composed[k] = leakage, composed
            k += 1
        self._stale, self._kept = len(inputs), 0
        return first - self.n_past, k - self.n_past

    def _result(self, k: int) -> tuple[Any, Any]:
        """Return the leakage about the input at a place, and its composed loss."""
        leakage = through = self._least(self.inputs[k], k, self._day_leakage_at)
        if self._day_leakage_at is not self._leakage_at:
            through = self._least(self.inputs[k], k, self._leakage_at)
        return leakage, self.losses[k] + through

    def _least(self, at: int, number: int, leakage_at: LeakageAt[Any]) -> Any:  # noqa: ANN401  (a Number)
        """Return the least over the orders of the leakage of the first `number` releases about an instant."""
        if not number:
            return 0
        inputs, losses, composed, place = self.inputs, self.losses, self._composed, number - 1
        gap, between = at - inputs[place], 0
        least = leakage_at(gap)(composed[place]) if gap > 0 else composed[place]
        is_whole = isinstance(least, int)
        for j in range(2, min(self._furthest, number) + 1):
            between, place = between + losses[place], place - 1
            if is_whole and between >= least:
                break
            if j in self._orders:
                leakage = between + leakage_at(at - inputs[place])(composed[place])
                if not is_whole:
                    least = np.minimum(least, leakage)
                elif leakage < least:
                    least = leakage
        return least


class SumComposition(Composition[Number]):
    r"""Losses of releases about the present without a joint model: the leave-one-out sum, in whole nano-epsilon.

    .. math:: \min_j \Bigl[ L_{t - u_j}(e_j) + \sum_{k \ne j} e_k \Bigr]

    Source: [A] Theorem 1 for one release, Proposition 2 for all others; as `sum_rule`, L at a declared curve.
    Here `composed` holds the largest loss up to each input.

    References:
        [A] https://doi.org/10.1109/TIT.2023.3340147

    >>> halving = SumComposition(lambda gap: lambda loss: loss // 2**gap)
    >>> halving.add(0, 8)
    >>> halving.add(1, 5)
    >>> halving.leakage(2)  # min(8/4 + 5, 8 + 5/2)
    7
    """

    def leakage(self, at: int, *, count: int | None = None) -> Number:
        """Leakage of the releases about an instant, as `Composition.leakage`."""
        self.refresh()
        # e - L(e) grows with the loss and with the age: only a loss above those of all older inputs can be the best.
        gain, index = 0, bisect_left(self._composed, 1)
        while index < len(self.inputs[:count]):
            loss = self.losses[index]
            gain = max(gain, loss - self._leakage_at(at - self.inputs[index])(loss))
            index = bisect_left(self._composed, loss + 1, lo=index)
        return cast("Number", sum(self.losses[:count]) - gain)

    def _result(self, k: int) -> tuple[Any, Any]:
        return None, max([self.losses[k], *self._composed[max(0, k - 1) : k]])


def compose_with(
    published: ArrayLike, ages: ArrayLike, losses: ArrayLike, at: ArrayLike, *, gap_leakage: GapLeakage
) -> Floats:
    r"""Composed privacy loss about the present at each instant, for any leakage over a gap of steps.

    Use it with a leakage bound or a kernel of your own; `compose` is the same for a transition matrix. At t the
    releases published by then count, by input time u = S - A.

    Source: [A] Theorem 3, as `Composition`.

    Args:
        published: S, instants of publication, shape (n,), integers [steps].
        ages: A, age of each input at publication, shape (n,), integers >= 0 [steps].
        losses: loss of each release about its input, shape (n,), >= 0 [epsilon].
        at: t, shape (T,), integers [steps].
        gap_leakage: (gap > 0 in steps, loss) -> loss, under a Markov assumption.

    Returns:
        Shape (..., T) [epsilon], leading axes as `gap_leakage` returns; 0 before the first publication.

    Raises:
        ChainError: negative ages or losses, steps that are not integers, or lengths that differ.

    References:
        [A] https://doi.org/10.1109/TIT.2023.3340147

    >>> halve = lambda gap, loss: loss / 2**gap
    >>> compose_with([0, 1], [0, 0], [1.0, 1.0], [1, 2], gap_leakage=halve).tolist()  # 1 + 1/2, and half of it
    [1.5, 0.75]
    """
    loss = checked_loss(losses)
    if loss.ndim != 1:
        raise ChainError(f"losses of a schedule are a list, got shape {loss.shape}")
    composed = composed_losses(published, ages, loss, at, gap_leakage=gap_leakage)
    return np.stack(np.broadcast_arrays(*composed), axis=-1) if composed else np.zeros(0)


def composed_losses(
    published: ArrayLike, ages: ArrayLike, charges: Floats, at: ArrayLike, *, gap_leakage: GapLeakage
) -> list[Floats]:
    """State of the recursion of `compose_with` at each instant, for losses or tuples of losses and deltas.

    Source: [A] Theorem 3, as `Composition`.

    Args:
        published: S, shape (n,), integers [steps].
        ages: A, shape (n,), integers >= 0 [steps].
        charges: c, one per release, shape (n, ...) [epsilon, or epsilon and delta].
        at: t, shape (T,), integers [steps].
        gap_leakage: (gap > 0 in steps, z) -> z.

    >>> [z.tolist() for z in composed_losses([0], [0], np.array([1.0]), [-1, 2], gap_leakage=lambda gap, z: z / 2**gap)]
    [0.0, 0.25]
    """
    instants, evaluation_instants = _instant_list(published, "publications"), _instant_list(at, "instants")
    age = step_list(ages, "ages")
    if not instants.shape == age.shape == charges.shape[:1]:
        raise ChainError(
            f"{instants.size} publications, {age.size} ages and losses of shape {charges.shape} do not fit"
        )
    composition = Composition[Any](lambda gap: partial(gap_leakage, gap))
    releases = sorted(zip(instants.tolist(), (instants - age).tolist(), charges, strict=True), key=itemgetter(0))
    composed: dict[int, Floats] = {}
    for t in sorted(evaluation_instants.tolist()):
        while releases and releases[0][0] <= t:
            _, instant, charge = releases.pop(0)
            composition.add(instant, np.asarray(charge))
        composed[t] = np.asarray(composition.leakage(t)) if composition.inputs else np.zeros(charges.shape[1:])
    return [composed[t] for t in evaluation_instants.tolist()]


def compose_without_markov(kernels: Sequence[ArrayLike], losses: ArrayLike) -> Floats:
    r"""Composed privacy loss about one secret of several releases without a joint model.

    Use it where the Markov assumption is not made; households are still independent of each other.

    .. math:: \min_j \Big[ L_{K_j}(\varepsilon_j) + \sum_{k \ne j} \varepsilon_k \Big]

    K_j is the kernel from the secret to the input of release j. The nearest kernel applied to the SUM of the losses is
    unsafe: a persistent regime (.7/.3) with 14 releases of .5 has loss .735, that rule gives .322. In the example the
    first kernel hides the secret: 0 + 0.25.

    Source: this project; replaces the recursion of [A] Theorem 3, which needs the Markov property.

    Args:
        kernels: m kernels, shape (..., k, n_j) each, probabilities [-].
        losses: loss of each release about its input, shape (m,), >= 0 [epsilon].

    Returns:
        Shape (...) [epsilon], 0 without releases.

    Raises:
        ChainError: numbers of kernels and losses that differ; as `leakage`.

    References:
        [A] https://doi.org/10.1109/TIT.2023.3340147

    >>> compose_without_markov([[[0.5, 0.5], [0.5, 0.5]], [[1, 0], [0, 1]]], [0.5, 0.25]).item()
    0.25
    """
    loss = checked_loss(losses)
    if loss.shape != (len(kernels),):
        raise ChainError(f"one loss per kernel: {len(kernels)} kernels, got losses of shape {loss.shape}")
    aged = [leakage(kernel, kernel_loss) for kernel, kernel_loss in zip(kernels, loss, strict=True)]
    return sum_rule(np.stack(np.broadcast_arrays(*aged), axis=-1) if aged else np.zeros(0), loss)


def sum_rule(aged: ArrayLike, losses: ArrayLike) -> Floats:
    r"""Leave-one-out sum of losses: the smallest over the releases of its aged loss plus the other losses.

    .. math:: \min_j \Big[ a_j + \sum_{k \ne j} \varepsilon_k \Big]

    Source: this project (basic composition, [A] Proposition 2, for all releases except one).

    Args:
        aged: a, loss of each release about the secret, through its own kernel or curve, shape (..., m) [epsilon].
        losses: loss of each release about its input, shape (m,) [epsilon].

    References:
        [A] https://doi.org/10.1109/TIT.2023.3340147

    >>> sum_rule([0.1, 0.4], [0.5, 0.6]).item()  # min(0.1 + 0.6, 0.4 + 0.5)
    0.7
    """
    aged_losses, loss = checked_loss(aged), checked_loss(losses)
    if loss.ndim != 1 or aged_losses.shape[-1:] != loss.shape:
        raise ChainError(f"one aged loss per release: {loss.shape} losses, got {aged_losses.shape}")
    if not loss.size:
        return np.zeros(aged_losses.shape[:-1])[()]
    # Sums before and after j, not the total minus e_j: exact for infinite losses, no cancellation.
    before = np.concatenate(([0.0], loss[:-1].cumsum()))
    after = np.concatenate((loss[:0:-1].cumsum()[::-1], [0.0]))
    smallest: Floats = (aged_losses + before + after).min(axis=-1)
    return smallest


def _instant_list(steps: ArrayLike, quantity: str) -> NDArray[np.int64]:
    """Instants (n,), which may be negative: the origin of a schedule is arbitrary."""
    values = np.asarray(steps)
    if values.ndim != 1 or (values.size and (values != np.rint(values)).any()):
        raise ChainError(f"{quantity} are a list of whole steps")
    return values.astype(np.int64)
