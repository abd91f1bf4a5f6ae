r"""A public, nested family of leakage bounds, and the private selection that chooses one of them for a population.

Member k bounds the leakage function at an age by a total variation d_k: E_k(age, a) = ln(1 + d_k(age) (e^a - 1)).
Members are nested, d_1 <= ... <= d_m = 1 at every age, so the last one credits no age: E_m(age, a) = a.

Example: by default d_k(age) = exp(-age / tau_k) with tau = 1/4, 1/2, 1, ..., 64 days, and 1. A household whose total
variation is .3 after a day lies below member 3, exp(-1) = .37, if it does so at every other age too.

Decisions:

* A household's leakage function lies below E_k at every loss if and only if its total variation does not exceed d_k:
  "if" is [A] Theorem 1; for "only if", both functions begin at 0 with the slopes Delta and d_k. So households are
  compared by total variations, which is exact and needs no table by loss.
* Total variations of the default family are rounded up to 1e-12 in decimal arithmetic, equal on every machine.
* A table is used from each of its ages on, up to the next one; before its first age no age is credited.

Choices 1 to m are nested, choice k covers c_k households, and c_m covers all. What is wanted is the smallest k that
covers a target T. Its score is 0, and every other score counts the households by which a choice misses the target on
its own side. `mechanisms.exponential_mechanism` draws by these scores.

Example: 5,566 households, a coverage of .95, epsilon 1 and a failure probability of 1e-6 among ten choices ask for
T = 5,320 households: 5,288 that shall be covered and a margin of 33.

Decisions of the selection:

* One household that is replaced changes each count by at most 1, and so each score by at most 1: some upwards, others
  downwards.
* The margin and the target are rounded up. Counts are integers, so a larger target can only cover more households, and
  it is a function of public numbers, so privacy does not depend on it.
* A private quantile, which 0.2 could draw, is the same selection among the values of a public grid.

[MT] McSherry, Talwar: Mechanism Design via Differential Privacy. FOCS 2007. https://doi.org/10.1109/FOCS.2007.66
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from agedp_data.arrays import Floats
from agedp_data.errors import ChainError
from agedp_data.leakage.bound_table import LOSS_GRID, LeakageBound
from agedp_data.leakage.exact import PiecewiseLeakage, with_slack
from agedp_data.leakage.population_bound import leakage_bound_from_distances

Ints = NDArray[np.int64]

_STEP = Decimal("1e-12")
_FINE = Context(prec=40, rounding=ROUND_CEILING)


@dataclass(frozen=True, slots=True)
class NestedFamily:
    r"""Total variations d_k(age) of a nested family: of the default one by its time constants, or of a table.

    .. math:: d_k(t) = e^{-t / \tau_k}, \quad k < m, \qquad d_m = 1

    Source: the geometric decay of [A] eq. 38, declared and not estimated.

    Attributes:
        decay_days: tau_1 to tau_(m - 1) of the default family, ascending [days]; empty for a table.
        ages_days: ages of a table, ascending [days].
        columns: d_1 to d_m of a table at these ages, each descending [-].

    References:
        [A] https://doi.org/10.1109/TIT.2023.3340147

    >>> [str(tau) for tau in DEFAULT_FAMILY.decay_days]
    ['0.25', '0.5', '1', '2', '4', '8', '16', '32', '64']
    """

    decay_days: tuple[Decimal, ...] = ()
    ages_days: tuple[Decimal, ...] = ()
    columns: tuple[tuple[Decimal, ...], ...] = ()

    @classmethod
    def of_table(cls, rows: Sequence[Sequence[Decimal]]) -> NestedFamily:
        """Return the family of a table: age in days, then one total variation for each member.

        Raises:
            ChainError: rows of different lengths, ages that do not ascend, total variations that increase with age,
                that are not nested or not between 0 and 1, or a last member that is not 1.
        """
        if len({len(row) for row in rows}) != 1 or len(rows[0]) < 3:
            raise ChainError("must have a column age_days and one of total variations for each of two or more members")
        ages, columns = tuple(row[0] for row in rows), tuple(zip(*(row[1:] for row in rows), strict=True))
        if ages[0] < 0 or any(later <= earlier for earlier, later in pairwise(ages)):
            raise ChainError("must have ascending ages, in days from 0 on")
        if not all(0 <= value <= 1 for column in columns for value in column):
            raise ChainError("must have total variations between 0 and 1")
        if any(later > earlier for column in columns for earlier, later in pairwise(column)):
            raise ChainError("must have total variations that do not increase with age")
        if any(after < before for row in rows for before, after in pairwise(row[1:])):
            raise ChainError("must have nested members: total variations must not decrease from one column to the next")
        if any(value != 1 for value in columns[-1]):
            raise ChainError("must have a last member of total variation 1 at every age, which every household keeps")
        return cls(ages_days=ages, columns=columns)

    @property
    def size(self) -> int:
        """Return the number of members m."""
        return len(self.decay_days) + 1 if self.decay_days else len(self.columns)

    def to_json(self) -> dict[str, Any]:
        """Return the family as text and lists, as a model's public part contains it."""
        if self.decay_days:
            return {"decay_days": [str(tau) for tau in self.decay_days]}
        columns = [[_text(value) for value in column] for column in self.columns]
        return {"age_days": [_text(age) for age in self.ages_days], "total_variation": columns}

    def table_rows(self) -> list[list[str]]:
        """Return the rows of the CSV file of a table, age first."""
        return [[_text(cell) for cell in row] for row in zip(self.ages_days, *self.columns, strict=True)]

    def distances(self, steps: Ints, *, steps_per_day: int) -> Floats:
        """Return the total variation of each member at these ages.

        Args:
            steps: ages, shape (T,) [steps].
            steps_per_day: steps of a day.

        Returns:
            Shape (m, T), between 0 and 1, rounded up [-].
        """
        ages = [Decimal(step) / steps_per_day for step in steps.tolist()]
        if self.decay_days:
            rows = [[_up(_FINE.exp(_FINE.minus(_FINE.divide(age, tau)))) for age in ages] for tau in self.decay_days]
            return np.array([*rows, [1.0] * len(ages)])
        at = [sum(age >= begin for begin in self.ages_days) - 1 for age in ages]
        return np.array([[_up(column[row]) if row >= 0 else 1.0 for row in at] for column in self.columns])

    def member_bound(self, member: int, steps: Ints, *, steps_per_day: int, assume: str, forward: bool) -> LeakageBound:
        r"""Return a member as a leakage bound at these ages, exact and rounded up.

        .. math:: E_k(t, a) = \ln(1 + d_k(t)(e^a - 1))

        Args:
            member: k, from 1 to m.
            steps: ages, shape (T,), ascending [steps].
            steps_per_day: steps of a day.
            assume: "markov" or "curve".
            forward: whether losses compose, so that the bound holds in both directions.
        """
        distances = self.distances(steps, steps_per_day=steps_per_day)[member - 1]
        row = distances[None]
        bound = leakage_bound_from_distances(
            row, steps, LOSS_GRID, reliable=[True], forward=row if forward else None, steps_per_day=steps_per_day
        )
        pieces = tuple(
            PiecewiseLeakage.from_floats(np.array([min(over, 1.0)]), np.zeros(1)) for over in with_slack(distances)
        )
        return replace(bound, assume=assume, hulls=dict.fromkeys(["backward", *(["forward"] * forward)], pieces))


DEFAULT_FAMILY = NestedFamily(
    decay_days=tuple(Decimal(tau) for tau in ("0.25", "0.5", "1", "2", "4", "8", "16", "32", "64"))
)
"""The family of a run file that declares none: 1/4 to 64 days, then no decay; m = 10."""


def smallest_members(distances: ArrayLike, family: Floats) -> Ints:
    r"""Smallest member above each household at every age.

    .. math:: k_i = \min \{k : \Delta_i(t) \le d_k(t) \text{ for all } t\}

    Source: [A] Theorem 1 for a household's leakage function, see the head of the module.

    Args:
        distances: total variations of the households, shape (n, T), between 0 and 1 [-].
        family: total variations of the members, shape (m, T), the last of them 1 [-].

    Returns:
        Shape (n,), members from 1 to m.

    References:
        [A] https://doi.org/10.1109/TIT.2023.3340147

    >>> smallest_members([[0.3, 0.2], [0.3, 0.1], [1.0, 0.0]], np.array([[0.4, 0.1], [0.4, 0.2], [1.0, 1.0]])).tolist()
    [2, 1, 3]
    """
    lies_below = (np.asarray(distances, np.float64)[:, None] <= family).all(axis=-1)
    return np.asarray(lies_below.argmax(axis=1) + 1, np.int64)


def _up(value: Decimal) -> float:
    """Return a total variation, rounded up to 1e-12, as the nearest float."""
    return min(float(value.quantize(_STEP, rounding=ROUND_CEILING)), 1.0)


def _text(value: Decimal) -> str:
    """Return a number as text, one form for every way of writing it."""
    return f"{value.normalize():f}"


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

    Source: [MT] Lemma 7. With probability .95 the value is a quantile whose rank differs by no more households than
    `selection_margin` has.

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
