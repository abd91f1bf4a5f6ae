"""Losses of a growing history by day, so that rows are added up once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from agedp_data.notions.notion import HistoryRow
from agedp_data.notions.period_loss import Charges
from agedp_data.notions.publication import Publication


class ReleaseHistory:
    """Loss of each day of a growing history, by day of the data or of publication; rows are added up once.

    Use it where the same history is asked about again after every release. Rows that cover several days are no part
    of it: they are `periods`.
    """

    def __init__(self, by: Literal["day", "published_on"] = "day", publication: Publication | None = None) -> None:
        self._by = by
        self._publication = publication if publication is not None and publication.has_periods else None
        self._last: tuple[tuple[HistoryRow, ...], dict[str, int], Charges] = ((), {}, ())

    def __eq__(self, other: object) -> bool:
        """Two caches are equal, so that promises with equal parameters are equal whatever they have computed."""
        return isinstance(other, ReleaseHistory)

    __hash__ = None  # type: ignore[assignment]

    def of(self, history: Sequence[HistoryRow]) -> dict[str, int]:
        """Return a copy of `day_losses(history)` [nano-epsilon], which the caller may change."""
        return dict(self._read(history)[0])

    def periods(self, history: Sequence[HistoryRow]) -> Charges:
        """Return the losses of the rows that cover several days."""
        return () if self._publication is None else self._read(history)[1]

    def _read(self, history: Sequence[HistoryRow]) -> tuple[dict[str, int], Charges]:
        rows, losses, periods = self._last
        if tuple(history[: len(rows)]) != rows:
            rows, losses, periods = (), {}, ()
        losses, new = dict(losses), history[len(rows) :]
        further = () if self._publication is None else self._publication.period_losses(new)
        for row in new:
            if row.state == "released" and not self._covers_period(row):
                day = row.day if self._by == "day" else row.published_on
                losses[day] = losses.get(day, 0) + row.loss
        self._last = (tuple(history), losses, (*periods, *further))
        return losses, self._last[2]

    def _covers_period(self, row: HistoryRow) -> bool:
        return self._publication is not None and len(set(self._publication.covered_days(row))) > 1
