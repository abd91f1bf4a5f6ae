r"""Private selection among nested choices: the smallest choice that covers enough households.

The idea: choices 1 to m are nested, choice k covers c_k households, and c_m covers all. What is wanted is the smallest
k that covers a target T. Its score is 0, and every other score counts the households by which a choice misses the
target on its own side. `mechanisms.exponential_mechanism` draws by these scores.

Example: 5,566 households, a coverage of .95, epsilon 1 and a failure probability of 1e-6 among ten choices ask for
T = 5,320 households: 5,288 that shall be covered and a margin of 33.

Decisions:

* One household that is replaced changes each count by at most 1, and so each score by at most 1: some upwards, others
  downwards.
* The margin and the target are rounded up. Counts are integers, so a larger target can only cover more households, and
  it is a function of public numbers, so privacy does not depend on it.
* A private quantile, which 0.2 could draw, is the same selection among the values of a public grid.

[MT] McSherry, Talwar: Mechanism Design via Differential Privacy. FOCS 2007. https://doi.org/10.1109/FOCS.2007.66
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from agedp_data.errors import ChainError

Ints = NDArray[np.int64]

_RANK_RISK = Decimal("0.05")
"""Probability that the rank of a private quantile is off by more than its text says."""
_QUANTILE_CHOICES = 101
"""Candidates of a private quantile: 0, .01, ..., 1."""

_UPWARDS = Context(prec=50, rounding=ROUND_CEILING)


def selection_scores(counts: ArrayLike, target: int) -> Ints:
    r"""Scores by which the smallest choice that covers `target` households is selected.

    .. math:: u_k = \min(0,\ c_k - T,\ T - c_{k-1}), \qquad c_0 = 0

    Source: elementary; each count, and so each score, has sensitivity 1. The score -\|c_k - T\| has it too, but prefers
    a choice just below the target to a choice far above it, and so covers too few households.

    Args:
        counts: c_k, households that choice k covers, shape (m,), ascending integers >= 0.
        target: T, households that shall be covered, >= 1.

    Returns:
        Shape (m,), integers at most 0 [households].

    Raises:
        ChainError: counts that descend or are negative, or no count.

    >>> selection_scores([1000, 5250, 5566], 5320).tolist()
    [-4320, -70, 0]
    """
    covered = np.asarray(counts, dtype=np.int64)
    if covered.ndim != 1 or not covered.size or covered[0] < 0 or (np.diff(covered) < 0).any():
        raise ChainError("the choices of a selection are nested, so the households that they cover must not decrease")
    below = np.concatenate((np.zeros(1, np.int64), covered[:-1]))
    return np.minimum(0, np.minimum(covered - target, target - below))


def selection_margin(*, choices: int, failure_probability: Decimal, loss: Decimal) -> Decimal:
    r"""Households by which a selected choice may miss its target, but for the failure probability.

    .. math:: t = \frac{2}{\varepsilon} \ln \frac{m}{\beta}

    Source: [MT] Lemma 7. A choice with score below -t has probability at most exp(-loss t / 2) = beta / m, since one
    choice has score 0. There are fewer than m such choices.

    Args:
        choices: m, >= 1.
        failure_probability: beta, between 0 and 1 [-].
        loss: privacy loss of the selection, > 0 [epsilon].

    Returns:
        t, rounded up in its 49th digit [households].

    References:
        [MT] https://doi.org/10.1109/FOCS.2007.66

    >>> round(selection_margin(choices=10, failure_probability=Decimal("1e-6"), loss=Decimal(1)), 3)
    Decimal('32.236')
    """
    log_term = _UPWARDS.next_plus(_UPWARDS.ln(_UPWARDS.divide(Decimal(choices), failure_probability)))
    return _UPWARDS.divide(_UPWARDS.multiply(Decimal(2), log_term), loss)


def selection_target(households: int, *, coverage: Decimal, margin: Decimal) -> int:
    r"""Households that a selection aims at, so that it covers at least `coverage` of them but for the margin.

    .. math:: T = \lceil \gamma n + t \rceil

    Source: [MT] Lemma 7 as in `selection_margin`. A choice that covers fewer than coverage n households has a score
    below -t; rounding T up only lowers that score.

    Args:
        households: n.
        coverage: gamma, between 0 and 1 [-].
        margin: t, of `selection_margin` [households].

    Returns:
        T; the selection is impossible if it exceeds n.

    References:
        [MT] https://doi.org/10.1109/FOCS.2007.66

    >>> selection_target(5566, coverage=Decimal("0.95"), margin=Decimal("32.24"))
    5320
    """
    return math.ceil(Fraction(coverage) * households + Fraction(margin))


def required_households(*, coverage: Decimal, margin: Decimal) -> int:
    r"""Smallest number of households for which a selection is possible.

    .. math:: n \ge t / (1 - \gamma)

    Source: elementary, from T <= n with T of `selection_target`.

    Args:
        coverage: gamma, between 0 and 1 [-].
        margin: t [households].

    Returns:
        n.

    >>> required_households(coverage=Decimal("0.95"), margin=Decimal("32.24"))
    645
    """
    return math.ceil(Fraction(margin) / (1 - Fraction(coverage)))


def required_loss(households: int, *, choices: int, coverage: Decimal, failure_probability: Decimal) -> Decimal:
    r"""Smallest privacy loss with which a selection among these households is possible.

    .. math:: \varepsilon \ge \frac{2 \ln(m / \beta)}{(1 - \gamma)\, n}

    Source: elementary, from T <= n with T of `selection_target`.

    Args:
        households: n, >= 1.
        choices: m, >= 1.
        coverage: gamma, between 0 and 1 [-].
        failure_probability: beta, between 0 and 1 [-].

    Returns:
        Loss, rounded up to three decimals [epsilon].

    >>> required_loss(60, choices=10, coverage=Decimal("0.95"), failure_probability=Decimal("1e-6"))
    Decimal('10.746')
    """
    unit = selection_margin(choices=choices, failure_probability=failure_probability, loss=Decimal(1))
    share = _UPWARDS.divide(unit, (1 - coverage) * households)
    return share.quantize(Decimal("0.001"), rounding=ROUND_CEILING)


def quantile_lines(public: Mapping[str, Any]) -> list[str]:
    """Return a sentence for each private quantile that a model of 0.2 has in its public part.

    It has the error of the rank: with probability .95 the value is a quantile whose rank differs by no more households
    than `selection_margin` has (two of the same score apart, [MT] Lemma 7).

    >>> question = {"of": "total-variation", "age_days": 7, "probability": "0.95", "epsilon": "0.1"}
    >>> [line] = quantile_lines({"quantiles": [question], "quantile_values": ["0.12"], "households": 5566})
    >>> line.partition(";")[2]  # (2/.1) ln(101/.05) = 152.2
    ' its rank among 5,566 households is off by at most 153 with probability 0.95): 0.12.'
    """
    answers = zip(public.get("quantiles", ()), public.get("quantile_values", ()), strict=True)
    return [f"{_quantile_text(question, public['households'])}: {value}." for question, value in answers]


def _quantile_text(question: Mapping[str, Any], households: int) -> str:
    at = f" at {question['age_days']} d" if "age_days" in question else ""
    figure = f"{question['of'].replace('-', ' ')}{at}"
    loss = Decimal(question["epsilon"])
    margin = math.ceil(selection_margin(choices=_QUANTILE_CHOICES, failure_probability=_RANK_RISK, loss=loss))
    error = f"its rank among {households:,} households is off by at most {margin:,} with probability 0.95"
    return f"Private {question['probability']} quantile of the {figure} (epsilon {question['epsilon']}; {error})"
