"""Losses of a growing history by day, so that rows are added up once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from agedp_data.notions.notion import HistoryRow


class ReleaseHistory:
    """Loss of each day of a growing history, by day of the data or of publication; rows are added up once.

    Use it where the same history is asked about again after every release.
    """

    def __init__(self, by: Literal["day", "published_on"] = "day") -> None:
        self._by = by
        self._last: tuple[tuple[HistoryRow, ...], dict[str, int]] = ((), {})

    def __eq__(self, other: object) -> bool:
        """Two caches are equal, so that promises with equal parameters are equal whatever they have computed."""
        return isinstance(other, ReleaseHistory)

    __hash__ = None  # type: ignore[assignment]

    def of(self, history: Sequence[HistoryRow]) -> dict[str, int]:
        """Return a copy of `day_losses(history)` [nano-epsilon], which the caller may change."""
        rows, losses = self._last
        if tuple(history[: len(rows)]) != rows:
            rows, losses = (), {}
        losses = dict(losses)
        for row in history[len(rows) :]:
            if row.state == "released":
                day = row.day if self._by == "day" else row.published_on
                losses[day] = losses.get(day, 0) + row.loss
        self._last = (tuple(history), losses)
        return dict(losses)
