"""Leakage bound: maximum of the leakage function over all households by age and loss; the public part of a model.

Example: total variation .64 and a release of epsilon .5: at most ln(1 + .64 (e^.5 - 1)) = .348 after a day.
It contains L(a) on a fixed grid of losses, backward and (for temporal leakage) forward, and one total variation per
age for each other method. It rests on three facts: L <= a; L does not decrease in a; L is 1-Lipschitz, because
d/da ln((1 + (e^a - 1) Q)/(1 + (e^a - 1) D)) = u - v with u = e^a Q / (1 + (e^a - 1) Q) in [0, 1] and v likewise with
D. So between grid points g < a < h the smaller of L(h) and L(g) + a - g is never below L(a).

Decisions:

* Tables are in whole 1e-9, rounded up, grid losses rounded down (a value remains an upper bound at a smaller loss).
* Total variations are stored as they are (`distances` = "exact", in JSON as decimal texts), since 1e-9 more would be
  multiplied by e^a. Models made before this was so have them in whole 1e-9, rounded up, and keep text, hash and numbers
  ("rounded"; no key in JSON).
* An age that is not tabulated uses the nearest smaller one; below the smallest, L(a) = a. Larger ages never have larger
  bounds, since a published output holds for every later instant: running maximum from the right.
* For a public kernel the pieces are stored beside the grid (`PiecewiseLeakage`): L is then exact.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from agedp_data.arrays import Floats, checked_loss, checked_steps, filled_kernel
from agedp_data.errors import ChainError
from agedp_data.leakage.exact import (
    NANO,
    PiecewiseLeakage,
    TabulatedLeakage,
    from_integers,
    round_down_nano,
    round_up_nano,
    round_up_with_slack,
    to_integers,
)
from agedp_data.leakage.function import fixed_point, frontier_of, gain, leakage_from_total_variation

_ROUNDING_STEP = 1e-9  # what one evaluation may add by rounding up

LOSS_GRID: Floats = np.concatenate(
    (
        round_up_nano(np.geomspace(1e-6, 1e-3, 13)[:-1]),
        round_up_nano(np.geomspace(1e-3, 20.0, 169)),
        np.arange(22.0, 65.0, 2.0),
        [np.inf],
    )
)
"""The public grid: coarse from 1e-6, about 6 % apart from 1e-3 to 20, then to 64 and infinity."""
LOSS_GRID.flags.writeable = False


def max_leakage(kernels: ArrayLike, losses: ArrayLike) -> Floats:
    r"""Maximum of the leakage function over households at each loss, in whole 1e-9 rounded up, never above the loss.

    .. math:: \max_h L_{K_h}(a), \qquad L_K(a) = \max_{q, d, S} \ln \frac{1 + (e^a - 1) q(S)}{1 + (e^a - 1) d(S)}

    Source: [T] eqs. 18 and 24; one sort per pair of rows replaces Algorithms 1 to 5.

    Args:
        kernels: shape (h, k, n), rows sum to 1 or are NaN (left out) [-].
        losses: shape (m,), >= 0, `inf` allowed [epsilon].

    Returns:
        Shape (m,), between 0 and the loss [epsilon].

    Raises:
        ChainError: rows that are not probabilities, no row with data, or a negative loss.

    References:
        [T] https://doi.org/10.1109/TKDE.2018.2824328

    >>> max_leakage([[[0.9, 0.1], [0.1, 0.9]]], [1.0]).tolist()  # ln((1 + .9 (e - 1)) / (1 + .1 (e - 1)))
    [0.776136586]
    >>> max_leakage([[[0.9, 0.1], [0.1, 0.9]], [[1.0, 0.0], [0.0, 1.0]]], [0.5, 2.0]).tolist()  # one never mixes
    [0.5, 2.0]
    """
    rows, loss = filled_kernel(kernels), checked_loss(losses)
    over, under = frontier_of(rows.reshape((-1, *rows.shape[-2:])))
    return np.minimum(round_up_with_slack(gain(over, under, loss)), loss)


@dataclass(frozen=True, slots=True, eq=False)
class LeakageBound:
    r"""Upper bound of the loss about the present, over all households, by age and by loss at that age.

    .. math:: B(t, a) \ge \max_h L_{\hat P_h^t}(a)

    Source: [A] Theorem 1 with the tight L in place of ln(1 + Delta(t)(e^a - 1)); the latter is method
    "total_variation".

    Attributes:
        ages: (T,) ascending [steps].
        losses: (m,) ascending grid [epsilon]; infinity may be the last.
        backward: (T, m) tight leakage of the reversed chain [epsilon], or None if only distances are known.
        forward: (T, m) the same of the forward chain, or None.
        bounds: by method, (T,) total variations in [0, 1] of the reversed chain; of both directions if there is no
            table (a declared curve).
        steps_per_day: steps of a day.
        assume: "curve" (distances only: losses may not be composed) or "markov".
        hulls: by direction with a table, the pieces of L for each age; or empty.
        distances: whether `bounds` are "exact" or "rounded" up to whole 1e-9, as in models of earlier versions.
        share: the share of the households whose chains it bounds, in words; "" if it is meant to bound each.

    Raises:
        ChainError: shapes that do not fit, numbers out of range, or an unknown assumption.

    References:
        [A] https://doi.org/10.1109/TIT.2023.3340147

    >>> bound = LeakageBound([48], [0.5], bounds={"total_variation": [0.64]})
    >>> bound(48, 0.5, direction="backward", method="total_variation").item()  # ln(1 + .64 (e^.5 - 1)), rounded up
    0.347257872
    """

    ages: NDArray[np.int64]
    losses: Floats
    backward: Floats | None = None
    forward: Floats | None = None
    bounds: Mapping[str, Floats] = field(default_factory=dict)
    steps_per_day: int = 48
    assume: str = "curve"
    hulls: Mapping[str, tuple[PiecewiseLeakage, ...]] = field(default_factory=dict)
    distances: str = "rounded"
    share: str = ""

    def __post_init__(self) -> None:
        ages, losses = checked_steps(self.ages, quantity="ages"), round_down_nano(checked_loss(self.losses))
        if ages.ndim != 1 or losses.ndim != 1 or not ages.size or not losses.size:
            raise ChainError("a leakage bound has at least one age and one loss")
        if (np.diff(ages) <= 0).any() or not (losses[1:] > losses[:-1]).all():
            raise ChainError("the ages and the losses of a leakage bound must ascend")
        if self.assume not in {"curve", "markov"}:
            raise ChainError(f'a model assumes "curve" or "markov", got "{self.assume}"')
        if self.distances not in ("rounded", "exact"):
            raise ChainError(f'total variations of a model are "rounded" or "exact", got "{self.distances}"')
        if self.steps_per_day < 1:
            raise ChainError(f"a day has at least one step, got {self.steps_per_day}")
        if any(getattr(self, name, None) is None or len(pieces) != ages.size for name, pieces in self.hulls.items()):
            raise ChainError("a leakage bound has pieces of L for all ages of a direction that it has a table of")
        shape = (ages.size, losses.size)
        tables = {name: _checked_table(getattr(self, name), losses, shape) for name in ("backward", "forward")}
        round_up = np.asarray if self.distances == "exact" else round_up_nano
        bounds = {name: _checked_distances(round_up(self.bounds[name]), ages.size) for name in sorted(self.bounds)}
        for name, value in {"ages": ages.copy(), "losses": losses, **tables, "bounds": bounds}.items():
            for array in value.values() if isinstance(value, dict) else (value,):
                if array is not None:
                    array.flags.writeable = False
            object.__setattr__(self, name, value)

    def __call__(self, age: int, loss: ArrayLike, *, direction: str, method: str) -> Floats:
        """Loss about the present at this age: never below the truth, never above `loss`, in whole 1e-9 rounded up.

        Args:
            age: steps since the input; for a composition, between two inputs [steps].
            loss: already incurred about the input, shape (...), >= 0 [epsilon].
            direction: "backward" or "forward".
            method: "tight", or a key of `bounds`.

        Raises:
            ChainError: a method or direction without a table, a negative age or loss.
        """
        losses, row = checked_loss(loss), self._row(age)
        table = self._table(direction, method)
        if row < 0:
            return losses[()]
        if method != "tight":
            value = round_up_with_slack(leakage_from_total_variation(table[row], losses))
        else:
            value = self._between(table[row], losses)
            if direction in self.hulls:
                value = np.minimum(value, round_up_with_slack(self.hulls[direction][row].float_leakage(losses)))
        result: Floats = np.minimum(round_up_nano(value), losses)[()]
        return result

    def supremum(self, gap: int, loss: float, *, direction: str, method: str) -> float:
        """Upper bound of the limit of x -> loss + L_gap(x) from 0: infinitely many releases of this loss, `gap` apart.

        It is a point x with loss + self(gap, x) <= x, rounding included, so iterating this bound never exceeds it:
        with a table the smallest such point, with a distance the closed form plus 1e-9.

        Args:
            gap: steps between two releases [steps].
            loss: of each release, >= 0 [epsilon]; the result is `inf` if the recursion is unbounded.
            direction: "backward" or "forward".
            method: "tight", or a key of `bounds`.
        """
        release_loss, row = checked_loss(loss), self._row(gap)
        table = self._table(direction, method)
        if release_loss == 0:
            return 0.0
        if row < 0 or np.isinf(release_loss):
            return float("inf")
        if method != "tight":
            piece = np.array([table[row]]), np.zeros(1)
            return float(round_up_with_slack(fixed_point(*piece, release_loss + _ROUNDING_STEP)))
        nano_supremum = None
        if direction in self.hulls:
            nano_supremum = self.hulls[direction][row].supremum(round(float(round_up_nano(release_loss)) * NANO))
        if nano_supremum is not None:
            limit, leaked = nano_supremum / NANO, partial(self, gap, direction=direction, method=method)
            # rounded by floats here and in whole numbers there, which may differ by the last 1e-9
            while (next_loss := float(round_up_nano(release_loss + leaked(limit)))) > limit:
                limit = next_loss
            return limit
        # On (g, h] the table says L(h) at most: x = loss + L(h) will do if it lies there, or g if already above.
        start = np.concatenate(([0.0], self.losses[:-1]))
        candidate = round_up_nano(np.maximum(release_loss + table[row], start))
        return float(candidate[candidate <= self.losses].min(initial=np.inf))

    def exact_leakage(self, age: int, *, direction: str) -> TabulatedLeakage | PiecewiseLeakage:
        """Return the tight L at this age as exact arithmetic in nano-epsilon; use it for recursions in integers.

        It returns the loss itself at an age without a bound; arguments and errors as calling.
        """
        table, row = self._table(direction, "tight"), self._row(age)
        if row < 0:
            return TabulatedLeakage([], [])
        if direction in self.hulls:
            return self.hulls[direction][row]
        return TabulatedLeakage(to_integers(self.losses), to_integers(table[row]))

    def total_variation(self, age: int) -> float:
        """Return the total variation at an age [steps], from 0 to 1; 1 below the smallest tabulated age.

        Raises:
            ChainError: a model without bounds by total variation, or a negative age.
        """
        row = self._row(age)
        return 1.0 if row < 0 else float(self._table("backward", "total_variation")[row])

    @property
    def methods(self) -> tuple[str, ...]:
        """Return the methods that have backward bounds."""
        return ("tight", *self.bounds) if self.backward is not None else tuple(self.bounds)

    @property
    def has_both_directions(self) -> bool:
        """Return whether losses in both directions may be composed, as temporal leakage requires."""
        return self.assume == "markov" and self.backward is not None and self.forward is not None

    def to_json(self) -> dict[str, object]:
        """Return the leakage bound as integers and strings: in whole 1e-9, "inf" and exact distances as text."""
        tables = {name: getattr(self, name) for name in ("backward", "forward")}
        hulls = {name: [[list(piece.over), list(piece.under)] for piece in row] for name, row in self.hulls.items()}
        is_exact = self.distances == "exact"
        distances = {
            name: list(map(repr, row.tolist())) if is_exact else to_integers(row) for name, row in self.bounds.items()
        }
        return {
            "ages": self.ages.tolist(),
            "losses": to_integers(self.losses),
            **{name: [to_integers(row) for row in table] for name, table in tables.items() if table is not None},
            "bounds": distances,
            **({"distances": "exact"} if is_exact else {}),
            **({"hulls": hulls} if hulls else {}),
            "steps_per_day": self.steps_per_day,
            "assume": self.assume,
        }

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Self:
        """Return the leakage bound that `to_json` wrote. Raises ChainError for any other document."""
        unknown = set(document) - (set(cls.__dataclass_fields__) - {"share"})  # of the settings, not of the table
        if unknown:
            raise ChainError(f"a leakage bound has no {', '.join(sorted(unknown))}")
        distances = document.get("distances", "rounded")
        parse_row = from_integers if distances == "rounded" else _parse_exact
        try:
            return cls(
                ages=np.array([int(age) for age in document["ages"]], dtype=np.int64),
                losses=from_integers(document["losses"]),
                backward=_parse_table(document.get("backward")),
                forward=_parse_table(document.get("forward")),
                bounds={str(name): parse_row(row) for name, row in document["bounds"].items()},
                steps_per_day=int(document["steps_per_day"]),
                assume=str(document["assume"]),
                hulls={
                    str(name): tuple(PiecewiseLeakage(upper_sum, lower_sum) for upper_sum, lower_sum in row)
                    for name, row in document.get("hulls", {}).items()
                },
                distances=distances,
            )
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise ChainError("a leakage bound holds whole numbers of 1e-9 and names; this text is none") from error

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LeakageBound) and self.to_json() == other.to_json()

    def __hash__(self) -> int:
        tables = (self.ages, self.losses, self.backward, self.forward)
        return hash((*(b"" if table is None else table.tobytes() for table in tables), self.steps_per_day, self.assume))

    def _row(self, age: int) -> int:
        step = checked_steps(age, quantity="an age")
        if step.ndim:
            raise ChainError("one age at a time")
        return int(np.searchsorted(self.ages, step, side="right")) - 1

    def _table(self, direction: str, method: str) -> Floats:
        if direction not in {"backward", "forward"}:
            raise ChainError(f'a direction is "backward" or "forward", got "{direction}"')
        methods = ["tight"] * (getattr(self, direction) is not None)
        methods += list(self.bounds) if direction == "backward" or self.backward is None else []
        if method not in methods:
            available = ", ".join(f'"{name}"' for name in methods) or "nothing"
            raise ChainError(f'this model has no {direction} bounds by method "{method}"; it has {available}')
        table: Floats = getattr(self, direction) if method == "tight" else self.bounds[method]
        return table

    def _between(self, values: Floats, losses: Floats) -> Floats:
        """Return the smaller of the next value and the previous value plus the distance from it."""
        upper = np.searchsorted(self.losses, losses, side="left")
        next_value = np.append(values, np.inf)[upper]
        lower = np.searchsorted(self.losses, losses, side="right") - 1
        with np.errstate(invalid="ignore"):
            extended = np.where(np.isinf(losses), np.inf, values[lower] + (losses - self.losses[lower]))
        result: Floats = np.minimum(next_value, np.where(lower >= 0, extended, losses))
        return result


def _checked_table(values: ArrayLike | None, losses: Floats, shape: tuple[int, int]) -> Floats | None:
    if values is None:
        return None
    table = round_up_nano(checked_loss(values))
    if table.shape != shape:
        layout = f"a row per age and a column per loss, {shape}"
        raise ChainError(f"a table of a leakage bound has {layout}, got {table.shape}")
    table = np.maximum.accumulate(np.maximum.accumulate(table, axis=1)[::-1], axis=0)[::-1]
    return np.minimum(table, losses)


def _checked_distances(values: ArrayLike, count: int) -> Floats:
    distance = np.asarray(values, dtype=np.float64)
    if distance.shape != (count,) or not ((distance >= 0) & (distance <= 1)).all():
        raise ChainError("a bound of a leakage bound is one total variation from 0 to 1 per age")
    return np.ascontiguousarray(np.maximum.accumulate(distance[::-1])[::-1])


def _parse_table(rows: list[list[int | str]] | None) -> Floats | None:
    return None if rows is None else np.array([from_integers(row) for row in rows])


def _parse_exact(row: list[str]) -> Floats:
    if not all(isinstance(number, str) for number in row):
        raise TypeError("exact numbers are texts")
    return np.array([float(number) for number in row])
