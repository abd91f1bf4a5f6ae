"""SUMS + PLAN -> LEDGER: drawn once, charged and stored in one transaction.

The true value reaches the ledger only inside `draw`, called within the transaction that admits and stores the
release. Of two concurrent runs one draws and the other reads the stored rows. A transaction ends with two syncs of the
disk, so an archive stores a month of days in each; if a run is killed, the days of its open transaction were not drawn.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from functools import partial
from typing import Final

import numpy as np

from agedp.budget import ReleaseTerms
from agedp.stage_values import BeforeDraw, Cells, DailySum, DueDay
from agedp.stages.plan import RELEASED, PlannedRelease, plan_release
from agedp_data import mechanisms
from agedp_data.datasets.validation import Ints
from agedp_data.errors import InputError
from agedp_data.ledger import Ledger, ReleaseRecord
from agedp_data.series.series import AnySeries

Sums = Mapping[tuple[date, str], DailySum]
"""True sums by day and series."""

DAYS_PER_TRANSACTION: Final = 32


def release(
    ledger: Ledger, terms: ReleaseTerms, due: Sequence[DueDay], sums: Sums, *, before_draw: BeforeDraw
) -> tuple[ReleaseRecord, ...]:
    """Release the due days, oldest first; return their rows, drawn now or stored earlier.

    Raises:
        Refused: the promise does not permit a day; the days before it remain released.
    """
    rows: list[ReleaseRecord] = []
    for start in range(0, len(due), DAYS_PER_TRANSACTION):
        days = due[start : start + DAYS_PER_TRANSACTION]
        rows += ledger.in_one_transaction(partial(_release_days, ledger, terms, days, sums, before_draw))
    return tuple(rows)


def _release_days(
    ledger: Ledger, terms: ReleaseTerms, due: Sequence[DueDay], sums: Sums, before_draw: BeforeDraw
) -> list[ReleaseRecord]:
    return [
        _release_series(ledger, terms, due_day, series, sums, before_draw=before_draw)
        for due_day in due
        for series in due_day.series
    ]


def _release_series(
    ledger: Ledger, terms: ReleaseTerms, due: DueDay, series: str, sums: Sums, *, before_draw: BeforeDraw
) -> ReleaseRecord:
    planned: list[PlannedRelease] = []

    def admit(history: tuple[ReleaseRecord, ...]) -> ReleaseRecord:
        planned.append(plan_release(terms, due, series, history))
        if planned[-1].row.state == RELEASED:
            before_draw(due.day, history)
        return planned[-1].row

    def draw(row: ReleaseRecord) -> Sequence[int]:
        exact = _exact_values(sums[(due.day, series)], due.cells[series], terms.run.series[series])
        drawn = mechanisms.discrete_laplace(exact, sensitivity=row.sensitivity, loss=planned[-1].loss)
        return [int(value) for value in drawn]

    return ledger.release(terms.run.population.name, series, due.day, admit=admit, draw=draw)


def _exact_values(daily_sum: DailySum, groups: Cells, series: AnySeries) -> Ints:
    """Return the exact vector over the cells of these groups, checked to be within the sensitivity's domain."""
    if any(daily_sum.households.get(group) != number for group, number in groups):
        raise InputError("the roster changed while the run was under way; run again")
    vectors = [np.array(daily_sum.exact[group], np.int64) for group, _ in groups]
    possible = [series.possible(exact, number) for exact, (_, number) in zip(vectors, groups, strict=True)]
    if daily_sum.series != series or not all(possible):
        raise RuntimeError("a sum is outside what its sensitivity protects; nothing was drawn")
    return np.concatenate(vectors)
