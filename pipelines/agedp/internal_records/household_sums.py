r"""Memberships and draws of the household register -> the largest sums over households.

.. math:: \varepsilon_h(d) = \sum_{k :\, h \in R_k,\ d \in k} \varepsilon_k, \qquad
          \max_h \max_d \varepsilon_h(d), \qquad \max_h \sum_{k :\, h \in R_k} \varepsilon_k

k are the draws, d in k the days of the data that draw k is about, R_k the households on its roster. A draw about one
day counts for the households on the roster of that day; a calibration draw counts once in the total, and on every day
of its period. Households with the same membership have the same sums, so each membership is computed once.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from agedp_data.ledger.register_rows import CountedDraw, Membership, RegisterSource

_INT64_SAFE = 2**62


@dataclass(frozen=True, slots=True)
class LargestSums:
    """The largest loss of a household about one day, and in all [nano-epsilon]; not of one household in general."""

    day: int = 0
    total: int = 0


@dataclass(frozen=True, slots=True)
class SharedHouseholds:
    """How many households of a population are counted elsewhere too (confidential).

    `by_source` has (population, kind, households) for each other source, `households` all of them, each once.
    """

    households: int
    by_source: tuple[tuple[str, str, int], ...]


def largest_sums(
    memberships: Iterable[Membership],
    draws: Sequence[CountedDraw],
    sources: Mapping[int, RegisterSource],
    *,
    of: Collection[int] | None = None,
) -> LargestSums:
    """Return the largest sums over the households that are in a source of `of`, or over all households.

    Args:
        memberships: those that at least one household has.
        draws: the draws of all sources.
        sources: every source by id; open ranges end with its newest day.
        of: ids of sources; None for all households.
    """
    if not draws:
        return LargestSums()
    first = min(draw.first_day for draw in draws)
    losses = _SourceLosses(draws, first, max(draw.last_day for draw in draws) + 1 - first)
    day, total = 0, 0
    for membership in memberships:
        if of is not None and all(source not in of for source, _, _ in membership.ranges):
            continue
        spans = [
            (source, max(begin - first, 0), (sources[source].newest if end is None else end) + 1 - first)
            for source, begin, end in membership.ranges
            if source in losses.by_day
        ]
        spans = [(source, begin, end) for source, begin, end in spans if end > begin]
        total = max(total, sum(losses.total(*span) for span in spans))
        if sum(losses.largest[source] for source, _, _ in spans) > day:
            day = max(day, losses.largest_day(spans))
    return LargestSums(day, total)


class _SourceLosses:
    """Losses by source and day: `by_day` about each day; sums of the draws that begin, and that end, before a day.

    A draw about several days counts once for a household that was on the roster on one of them.
    """

    def __init__(self, draws: Sequence[CountedDraw], first: int, days: int) -> None:
        kind = np.int64 if sum(draw.loss for draw in draws) < _INT64_SAFE else object
        self.by_day: dict[int, NDArray[np.int64]] = {}
        begun: dict[int, NDArray[np.int64]] = {}
        ended: dict[int, NDArray[np.int64]] = {}
        for draw in draws:
            if draw.source not in self.by_day:
                self.by_day[draw.source] = np.zeros(days, kind)
                begun[draw.source], ended[draw.source] = np.zeros(days + 1, kind), np.zeros(days + 1, kind)
            self.by_day[draw.source][draw.first_day - first : draw.last_day + 1 - first] += draw.loss
            begun[draw.source][draw.first_day - first + 1] += draw.loss
            ended[draw.source][draw.last_day - first + 1] += draw.loss
        self._begun, self._ended = (
            {source: np.cumsum(losses) for source, losses in sums.items()} for sums in (begun, ended)
        )
        self.largest = {source: int(losses.max()) for source, losses in self.by_day.items()}
        self._days = days

    def total(self, source: int, begin: int, end: int) -> int:
        """Return the sum of the draws of a source that touch a range of days, `end` not included."""
        begun, ended = self._begun[source], self._ended[source]
        return int(begun[min(end, self._days)] - ended[min(begin, self._days)])

    def largest_day(self, spans: Sequence[tuple[int, int, int]]) -> int:
        """Return the largest sum about one day over ranges of several sources."""
        if len(spans) == 1:
            [(source, begin, end)] = spans
            return int(self.by_day[source][begin:end].max(initial=0))
        by_day = np.zeros_like(self.by_day[spans[0][0]])
        for source, begin, end in spans:
            by_day[begin:end] += self.by_day[source][begin:end]
        return int(by_day.max(initial=0))


def shared_households(
    memberships: Iterable[Membership],
    sources: Mapping[int, RegisterSource],
    *,
    of: int,
    elsewhere: Collection[int],
    day: int | None = None,
) -> SharedHouseholds:
    """Return how many households of a source are counted in other sources as well.

    Args:
        memberships: those that at least one household has.
        sources: every source by id.
        of: the source whose households are counted.
        elsewhere: the sources with which they are compared.
        day: only households that are in `of` on this day; None for all.
    """
    counts: dict[int, int] = {}
    households = 0
    for membership in memberships:
        spans = [
            (begin, sources[of].newest if end is None else end)
            for source, begin, end in membership.ranges
            if source == of
        ]
        shared = {source for source, _, _ in membership.ranges if source in elsewhere}
        is_counted = any(day is None or begin <= day <= end for begin, end in spans)
        if is_counted and shared:
            households += membership.households
            for source in shared:
                counts[source] = counts.get(source, 0) + membership.households
    by_source = ((sources[source].population, sources[source].kind, counts[source]) for source in sorted(counts))
    return SharedHouseholds(households, tuple(by_source))
