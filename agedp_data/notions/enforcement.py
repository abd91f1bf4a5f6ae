"""Enforcement of a promise, the same for every notion: the caps first, then the notion's own rule."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TypeVar

from pydantic import PrivateAttr

from agedp_data.epsilon import format_epsilon
from agedp_data.errors import Refused
from agedp_data.leakage.function import LeakageBoundLike
from agedp_data.notions.notion import HistoryRow, LossBound, Promise
from agedp_data.notions.release_history import ReleaseHistory

_Answer = TypeVar("_Answer")


class ModelCache(dict[int, _Answer]):
    """Solutions under models, by `id` of the model; each entry holds its model, so that its id is not used again."""

    def __eq__(self, other: object) -> bool:
        """Two caches are equal, so that promises with equal parameters are equal whatever they have computed."""
        return isinstance(other, ModelCache)

    __hash__ = None


class EnforcedPromise(Promise, ABC):
    """A promise that sets the loss of each day and refuses what would break it."""

    _day_losses: ReleaseHistory = PrivateAttr(default_factory=ReleaseHistory)

    def losses_with(self, history: Sequence[HistoryRow], new_row: HistoryRow) -> dict[str, int]:
        """Return the loss of each day if `new_row`, a released row, came to the history."""
        losses = self._day_losses.of(history)
        losses[new_row.day] = losses.get(new_row.day, 0) + new_row.loss
        return losses

    @abstractmethod
    def planned_loss(self, losses: Mapping[str, int], day: str, leakage_bound: LeakageBoundLike | None) -> int:
        """Return the loss that the notion plans for `day` as a whole [nano-epsilon], given the losses of other days."""

    @abstractmethod
    def check(self, history: Sequence[HistoryRow], new_row: HistoryRow, leakage_bound: LeakageBoundLike | None) -> None:
        """Refuse `new_row` if with it the history breaks the rule of the notion; the caps hold already.

        Raises:
            Refused: the rule would be broken; the message has day, bound and excess.
        """

    @abstractmethod
    def bounds(
        self, history: Sequence[HistoryRow], leakage_bound: LeakageBoundLike | None, at: str | None
    ) -> list[LossBound]:
        """Return the bounds of all released rows: the largest loss of a day, the total, and the notion's own."""

    def loss(
        self,
        history: Sequence[HistoryRow],
        day: str,
        leakage_bound: LeakageBoundLike | None,
        published_on: str | None = None,
    ) -> int:
        """Return the budget that `day` has left [nano-epsilon]; 0 once the series has ended.

        A day whose whole planned loss no longer fits in `epsilon_total` ends the series: the rest of the
        budget would pay for a release that is nothing but noise.
        """
        del published_on
        losses = self._day_losses.of(history)
        losses.pop(day, 0)
        return self._left_of(history, day, self.planned_loss(losses, day, leakage_bound))

    def _left_of(self, history: Sequence[HistoryRow], day: str, planned: int) -> int:
        """Return the planned loss of the whole day, cut by the caps, less the loss of the day's own rows."""
        losses = self._day_losses.of(history)
        spent, planned = losses.pop(day, 0), min(self.day_cap, planned)
        if self.total_cap is not None and planned > self.total_cap - sum(losses.values()):
            return 0
        return max(0, planned - spent)

    def admit(self, history: Sequence[HistoryRow], new_row: HistoryRow, leakage_bound: LeakageBoundLike | None) -> None:
        """Raise Refused if `new_row` breaks a cap or the rule of the notion; a skipped day spends nothing."""
        if new_row.state != "released":
            return
        if new_row.loss < 0:
            raise Refused(f"{new_row.day}: a loss cannot be negative; nothing was drawn")
        losses = self.losses_with(history, new_row)
        refuse_above(new_row.day, "the day", losses[new_row.day], ("max_day_epsilon", self.day_cap))
        if self.total_cap is not None:
            refuse_above(new_row.day, "the sum over all days", sum(losses.values()), ("epsilon_total", self.total_cap))
        self.check(history, new_row, leakage_bound)

    def review(self, history: Sequence[HistoryRow], leakage_bound: LeakageBoundLike | None) -> None:
        """Do nothing: without a model in the promise, what was admitted stays within it."""

    def violations(self, history: Sequence[HistoryRow], leakage_bound: LeakageBoundLike | None) -> Mapping[str, str]:
        """Return {}: most bounds give later days a budget again, or are themselves the caps of the series."""
        del history, leakage_bound
        return {}


def refuse_above(day: str, what: str, value: int | None, bound: tuple[str, int]) -> None:
    """Refuse a value above a bound.

    Source: definition of a bound; the notion names the source of the value.

    Args:
        day: ISO date of the release.
        what: subject of the message.
        value: loss that the release would reach [nano-epsilon]; None is infinite.
        bound: key of [promise] and its value [nano-epsilon].

    Raises:
        Refused: the value exceeds the bound.
    """
    key, limit = bound
    if value is None:
        raise Refused(f"{day}: {what} would be infinite, {key} = {format_epsilon(limit)}; nothing was drawn")
    if value > limit:
        raise Refused(
            f"{day}: {what} would come to {format_epsilon(value)}, {format_epsilon(value - limit)} more than "
            f"{key} = {format_epsilon(limit)}; nothing was drawn"
        )
