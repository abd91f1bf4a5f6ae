r"""A public, nested family of leakage bounds, among which a private selection chooses one for a population.

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
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import ROUND_CEILING, Context, Decimal
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
