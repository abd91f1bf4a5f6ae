"""Composition of several releases: for any schedule under the Markov assumption, and without a model.

Under a Markov chain the loss about one input implies a loss about the next input through the chain between them. So
releases are taken in the order of their INPUTS, not of their publication. Example: two-state chain, p = q = .1, three
releases one step apart with inputs five steps old, epsilon 0.5 each: the composed loss is 0.3557.

Decisions:

* Erratum to [A] Theorem 3, eq. 25: the literal lookup is unsafe whenever an input is older than the previous
  publication, the normal case. It gives 0.1927 in the example.
* Without the Markov assumption no rule is much smaller than the sum (`compose_without_markov`).
* One recursion serves pure losses and (loss, delta) pairs. Runs use the same rule in nano-epsilon (`composed_loss`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from agedp_data.arrays import Floats, checked_loss, checked_steps
from agedp_data.errors import ChainError
from agedp_data.leakage.function import leakage

GapLeakage = Callable[[int, Floats], Floats]
"""Leakage over a gap: (steps, loss about one end) -> loss about the other end."""


def compose_with(
    published: ArrayLike, ages: ArrayLike, losses: ArrayLike, at: ArrayLike, *, gap_leakage: GapLeakage
) -> Floats:
    r"""Composed privacy loss about the present at each instant, for any leakage over a gap of steps.

    Use it with a leakage bound or a kernel of your own; `compose` is the same for a transition matrix.

    .. math:: z_1 = \varepsilon_1, \quad z_k = \varepsilon_k + L_{u_k - u_{k-1}}(z_{k-1}), \quad
        \varepsilon(t) = L_{t - u_m}(z_m)

    over the releases published by t, sorted by input time u = S - A. Equal input times have gap 0, so their losses add.

    Source: [A] Theorem 3. Erratum to eq. 25: the bracket is misplaced and the literal lookup is unsafe for overlapping
    ages.

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
        [A] Zhang, Wei, Berry, Huang: Age-Dependent Differential Privacy. IEEE Trans. Inf. Theory, 2024.
        https://doi.org/10.1109/TIT.2023.3340147

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

    Use it to compose any quantity that is added per release and passed over a gap by one function.

    .. math:: z_k = c_k + L_{u_k - u_{k-1}}(z_{k-1})

    Source: [A] Theorem 3, corrected as in `compose_with`.

    Args:
        published: S, shape (n,), integers [steps].
        ages: A, shape (n,), integers >= 0 [steps].
        charges: c, one per release, shape (n, ...) [epsilon, or epsilon and delta].
        at: t, shape (T,), integers [steps].
        gap_leakage: (gap > 0 in steps, z) -> z.

    Returns:
        List of T arrays, in the unit of the charges.

    Raises:
        ChainError: as `compose_with`.

    References:
        [A] Zhang, Wei, Berry, Huang: Age-Dependent Differential Privacy. IEEE Trans. Inf. Theory, 2024.
        https://doi.org/10.1109/TIT.2023.3340147

    >>> [z.tolist() for z in composed_losses([0], [0], np.array([1.0]), [-1, 2], gap_leakage=lambda gap, z: z / 2**gap)]
    [0.0, 0.25]
    """
    instants, evaluation_instants = instant_list(published, "publications"), instant_list(at, "instants")
    age = step_list(ages, "ages")
    if not instants.shape == age.shape == charges.shape[:1]:
        raise ChainError(
            f"{instants.size} publications, {age.size} ages and losses of shape {charges.shape} do not fit"
        )
    inputs = instants - age
    by_input = np.lexsort((np.arange(inputs.size), inputs))
    composition = _ComposedOutputs(inputs, charges, gap_leakage)
    return [composition.loss_at(t, by_input[instants[by_input] <= t].tolist()) for t in evaluation_instants.tolist()]


class _ComposedOutputs:
    """The recursion over outputs in the order of their inputs; consecutive instants share their common part."""

    def __init__(self, inputs: NDArray[np.int64], charges: Floats, gap_leakage: GapLeakage) -> None:
        self._inputs, self._charges, self._gap_leakage = inputs.tolist(), charges, gap_leakage
        self._order: list[int] = []
        self._composed: list[Floats] = []

    def loss_at(self, t: int, outputs: list[int]) -> Floats:
        if not outputs:
            return np.zeros(self._charges.shape[1:])
        self._extend(outputs)
        return self._age(t - self._inputs[outputs[-1]], self._composed[-1])

    def _extend(self, outputs: list[int]) -> None:
        common = 0
        while common < min(len(self._order), len(outputs)) and self._order[common] == outputs[common]:
            common += 1
        del self._order[common:], self._composed[common:]
        for output in outputs[common:]:
            total = np.asarray(self._charges[output])
            if self._order:
                gap = self._inputs[output] - self._inputs[self._order[-1]]
                total = total + self._age(gap, self._composed[-1])
            self._order.append(output)
            self._composed.append(total)

    def _age(self, gap: int, loss: Floats) -> Floats:
        return loss if gap == 0 else np.asarray(self._gap_leakage(gap, loss))


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
        [A] Zhang, Wei, Berry, Huang: Age-Dependent Differential Privacy. IEEE Trans. Inf. Theory, 2024.
        https://doi.org/10.1109/TIT.2023.3340147

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

    Use it for a declared curve, or for kernels that are evaluated already; `compose_without_markov` evaluates them.

    .. math:: \min_j \Big[ a_j + \sum_{k \ne j} \varepsilon_k \Big]

    Source: this project (basic composition, [A] Proposition 2, for all releases except one).

    Args:
        aged: a, loss of each release about the secret, through its own kernel or curve, shape (..., m) [epsilon].
        losses: loss of each release about its input, shape (m,) [epsilon].

    Returns:
        Shape (...) [epsilon], 0 without releases.

    Raises:
        ChainError: negative losses, shapes that do not fit.

    References:
        [A] Zhang, Wei, Berry, Huang: Age-Dependent Differential Privacy. IEEE Trans. Inf. Theory, 2024.
        https://doi.org/10.1109/TIT.2023.3340147

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


def step_list(steps: ArrayLike, quantity: str) -> NDArray[np.int64]:
    r"""One-dimensional array of steps.

    Use it for ages, gaps and publication times that a caller passes.

    .. math:: (t_1, \dots, t_n), \qquad t_i \in \{0, 1, 2, \dots\}

    Source: [A] section III.

    Args:
        steps: shape (n,), integers >= 0 [steps].
        quantity: name of the quantity in the error message.

    Returns:
        Shape (n,), int64 [steps].

    Raises:
        ChainError: numbers that are negative or not integers, or an array that is not one-dimensional.

    References:
        [A] section III counts time in integer steps. https://doi.org/10.1109/TIT.2023.3340147

    >>> step_list([0, 48.0], "ages").tolist()
    [0, 48]
    """
    values = checked_steps(steps, quantity=quantity)
    if values.ndim != 1:
        raise ChainError(f"{quantity} are a list, got shape {values.shape}")
    return values


def instant_list(steps: ArrayLike, quantity: str) -> NDArray[np.int64]:
    r"""One-dimensional array of instants, which may be negative.

    Use it for instants of a schedule, whose origin is arbitrary.

    .. math:: (t_1, \dots, t_n), \qquad t_i \in \mathbb{Z}

    Source: [A] section III.

    Args:
        steps: shape (n,), integers [steps].
        quantity: name of the quantity in the error message.

    Returns:
        Shape (n,), int64 [steps].

    Raises:
        ChainError: numbers that are not integers, or an array that is not one-dimensional.

    References:
        [A] section III counts time in integer steps. https://doi.org/10.1109/TIT.2023.3340147

    >>> instant_list([-1, 48.0], "instants").tolist()
    [-1, 48]
    """
    values = np.asarray(steps)
    if values.ndim != 1 or (values.size and (values != np.rint(values)).any()):
        raise ChainError(f"{quantity} are a list of whole steps")
    return values.astype(np.int64)
