"""Series whose rows cover a week, month or year: when they are due, and what they count of roster and sums.

A period is published with its last day, after the series of that day. It is whole: all its days lie in the schedule's
period, and none was released before the series began.

Decisions:

* The smallest number of households of a group on a covered day must reach min_households. What is published of a group
  is a mean over its household-days: the households on the roster, added over the days.
* A period with a day in skip_days, or with one whose delivery never came, is skipped as a whole: its sum would be of
  fewer days than it names.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import date, timedelta
from typing import Protocol

from agedp.stage_values import Cells, DailySum, DueDay
from agedp_data.config import RunFile
from agedp_data.roster import GroupColumns
from agedp_data.series.periods import days_of
from agedp_data.series.series import AnySeries
from agedp_data.series.series_terms import Cell


def whole_periods(
    series: Mapping[str, AnySeries], day: date, *, since: date, skipped: Collection[date] = ()
) -> tuple[str, ...]:
    """Return the series that have a row of this day in a schedule that begins on `since`, single days first.

    Rows of periods with one of the `skipped` days are left out.
    """
    names = [name for name in series if _is_whole(series[name], day, since)]
    released = [name for name in names if has_no_skipped_day(series[name], day, skipped)]
    return tuple(name for group in by_covered_days(series, released, day) for name in group)


def has_no_skipped_day(series: AnySeries, day: date, skipped: Collection[date]) -> bool:
    """Return whether the row of a day covers none of these days."""
    return not any(covered in skipped for covered in days_of(*series.covered_days(day)))


def _is_whole(series: AnySeries, day: date, since: date) -> bool:
    first, last = series.covered_days(day)
    return day == last and first >= since


def due_series(run: RunFile, day: date, closed: Collection[tuple[str, str]]) -> tuple[str, ...]:
    """Return the series that have a row of this day, unless the row is in `closed`, which are (day, series).

    A series that covers periods has one if the day is the last of a period, and the period is whole.
    """
    return tuple(name for name in run.series if _is_named(run, name, day, closed))


def _is_named(run: RunFile, name: str, day: date, closed: Collection[tuple[str, str]]) -> bool:
    if not _is_whole(run.series[name], day, run.schedule.first_day):
        return False
    return not any((covered.isoformat(), name) in closed for covered in days_of(*run.series[name].covered_days(day)))


def by_covered_days(series: Mapping[str, AnySeries], names: Iterable[str], day: date) -> list[tuple[str, ...]]:
    """Return the series of a day by the days that they cover, those of the day itself first."""
    by_first: dict[date, list[str]] = {}
    for name in names:
        by_first.setdefault(series[name].covered_days(day)[0], []).append(name)
    return [tuple(by_first[first]) for first in sorted(by_first, reverse=True)]


class CountedRoster(Protocol):
    """A roster, as far as households are counted by group."""

    def cells(self, day: date, by: GroupColumns) -> tuple[tuple[str, int], ...]:
        """Return the groups of a column on a day and the number of households in each."""


def period_cells(
    roster: CountedRoster, by: GroupColumns, days: Sequence[date], min_households: int
) -> tuple[tuple[str, int], ...]:
    """Return the groups of a column with enough households on every covered day, each with its household-days."""
    by_day = [dict(roster.cells(covered, by)) for covered in days]
    groups = [group for group in by_day[-1] if all(cells.get(group, 0) >= min_households for cells in by_day)]
    return tuple((group, sum(cells[group] for cells in by_day)) for group in groups)


def row_cells(roster: CountedRoster, series: AnySeries, days: Sequence[date], min_households: int) -> Cells:
    """Return the parts of a row with their household-days: of groups as `period_cells`, by kind of day."""
    by_day = {day: dict(roster.cells(day, series.by)) for day in days}
    return tuple(
        (Cell(group, kind), sum(cells[group] for day, cells in by_day.items() if series.kind_of(day) == kind))
        for group, _ in period_cells(roster, series.by, days, min_households)
        for kind in series.kinds
    )


def covered_by(due: Iterable[DueDay], series: Mapping[str, AnySeries]) -> set[date]:
    """Return the days that the rows of these due days cover."""
    return {
        covered
        for due_day in due
        for name in due_day.series
        for covered in days_of(*series[name].covered_days(due_day.day))
    }


def days_of_rows(due: Iterable[DueDay], series: Mapping[str, AnySeries]) -> set[tuple[date, str]]:
    """Return the days and series whose sums the rows of these due days need."""
    return {
        (covered, name)
        for due_day in due
        for name in due_day.series
        for covered in days_of(*series[name].covered_days(due_day.day))
    }


def single_rows(series: Mapping[str, AnySeries], days: Iterable[date]) -> set[tuple[date, str]]:
    """Return these days with every series whose rows are about one day."""
    names = [name for name, of_name in series.items() if not of_name.covers_periods]
    return {(day, name) for day in days for name in names}


def first_day_without(day: date, done: Collection[str]) -> date:
    """Return the first day from this one on that is not in `done`, ISO texts."""
    while day.isoformat() in done:
        day += timedelta(days=1)
    return day


def first_period_without(day: date, series: AnySeries, done: Collection[str]) -> date:
    """Return the first day of the first whole period from this day on of which no day is in `done`, ISO texts."""
    while True:
        first, last = series.covered_days(day)
        if first >= day and not any(covered.isoformat() in done for covered in days_of(first, last)):
            return first
        day = last + timedelta(days=1)


def sum_periods(
    by_day: Mapping[tuple[date, str], DailySum], series: Mapping[str, AnySeries], single_days: Collection[date]
) -> dict[tuple[date, str], DailySum]:
    """Return the sums of rows: of single days as they are, of periods added over their days.

    Days that are summed for a period alone have no sum of their own. A period of which a day is missing has no sum.
    """
    sums = {
        (day, name): daily_sum
        for (day, name), daily_sum in by_day.items()
        if day in single_days and not series[name].covers_periods
    }
    lasts = {(series[name].covered_days(day)[1], name) for day, name in by_day if series[name].covers_periods}
    for last, name in sorted(lasts):
        days = days_of(*series[name].covered_days(last))
        if all((day, name) in by_day for day in days):
            sums[last, name] = DailySum.of_period({day: by_day[day, name] for day in days})
    return sums
