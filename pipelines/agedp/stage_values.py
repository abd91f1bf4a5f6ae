"""What one stage hands to the next: due days, plan, delivery, daily sums, released days.

Values only; nothing here reads or writes. A run is their sequence (`agedp.pipeline.run_stages`):

    run file, roster -> DueDays -> DuePlan              what is released now; public
    input files      -> Delivery -> DailySums           of the days that are due; confidential
    DueDays, DailySums -> ReleaseResult                  rows of the ledger (`stages.release`); public
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from fractions import Fraction

from agedp.local_files.internal_files import FileNotice
from agedp_data import clock
from agedp_data.config import RunFile
from agedp_data.errors import Refused
from agedp_data.ledger import ReleaseRecord
from agedp_data.ledger.release_headers import AnyRelease
from agedp_data.series.series import AnySeries


@dataclass(frozen=True, slots=True)
class Delivery:
    """The content of the input files, all of it in the store: content ids in file order, months, counts by reason.

    `fresh` are the content ids of files that were not in the store before; `late_rows` counts their rows of released
    days. `first_days` has the first day with a row of each file, since 1970; of a file without rows none.
    Confidential: `unreadable` contains one line for each file that was rejected as a whole, with the reason; `warnings`
    are about new files that count.
    """

    contents: tuple[str, ...]
    months: tuple[str, ...]
    rows_read: int
    rows_kept: int
    rejected: dict[str, int]
    files: int
    files_new: int
    files_ignored: int
    fresh: tuple[str, ...] = field(default=(), compare=False)
    unreadable: tuple[str, ...] = field(default=(), compare=False)
    warnings: tuple[FileNotice, ...] = field(default=(), compare=False)
    late_rows: int = field(default=0, compare=False)
    first_days: Mapping[str, int] = field(default_factory=dict, compare=False)


@dataclass(frozen=True, slots=True)
class DailySum:
    """One day of one series, by group (confidential): the exact vector of each group's cells.

    `slots` are the half-hours of the day, from which the cells of a profile follow.

    Counts by group: `households`, those with a `usable` day, and those of them that are `clamped`. If the series counts
    states, also the sums of the daily totals by readings and by states.
    """

    series: AnySeries
    exact: dict[str, tuple[int, ...]]
    households: dict[str, int]
    usable: dict[str, int]
    clamped: dict[str, int]
    readings_wh: dict[str, int] = field(default_factory=dict)
    states_wh: dict[str, int] = field(default_factory=dict)
    slots: tuple[int, ...] = ()

    def cells(self, group: str) -> tuple[str, ...]:
        """Return the names of a group's cells, in the order of its exact vector."""
        return self.series.cells(group, slots=self.slots)

    @property
    def sum_wh(self) -> dict[str, int]:
        """Return the sums of a mean by group, Wh."""
        return {group: exact[0] for group, exact in self.exact.items()}


@dataclass(frozen=True, slots=True)
class DailySums:
    """The sums of a run by day and series, and the delivery that they were summed from (confidential).

    Beside the `drawn_days`, which this run is to draw, they contain days of earlier runs that are not recorded or
    reported yet. `examined_days` are those whose input is reported, all days if `examines_all`. `is_first` tells that
    nothing was released before; `notices` are about damaged records, and about a store with too few household buckets.
    """

    by_day: Mapping[tuple[date, str], DailySum]
    delivery: Delivery
    drawn_days: tuple[date, ...]
    examined_days: tuple[date, ...]
    examines_all: bool
    is_first: bool
    notices: tuple[FileNotice, ...] = ()


Cells = tuple[tuple[str, int], ...]
"""Groups of a release and the number of households in each."""


@dataclass(frozen=True, slots=True)
class DueDay:
    """A due day: end of its data, date of publication, households of each group by series, series to publish.

    `cells` by series leaves out groups with fewer than `min_households`; `series` are those that have not published
    the day yet; `given_up`: the delivery's marker never came; `skipped`: [schedule] skip_days lists the day.
    """

    day: date
    input_ended_at: str
    publish_on: date
    cells: Mapping[str, Cells]
    series: tuple[str, ...]
    given_up: bool = False
    skipped: bool = False

    @property
    def is_drawn(self) -> bool:
        """Return whether the day is drawn: it has a delivery and enough households, and is not in skip_days."""
        return not (self.given_up or self.skipped) and any(self.cells[name] for name in self.series)

    @property
    def households(self) -> int:
        """Return the number of households in the largest release of the day."""
        return max((sum(number for _, number in cells) for cells in self.cells.values()), default=0)


@dataclass(frozen=True, slots=True)
class DueDays:
    """The days to publish now, oldest first, and the waiting days: due, but without their delivery's marker.

    `notices` are public lines that are shown before the draw: the verdict on a first release.
    """

    due: tuple[DueDay, ...]
    waiting: tuple[date, ...] = ()
    notices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PlannedRelease:
    """A row to store, without its values, with the loss of its noise, or the reason why the day is skipped."""

    row: ReleaseRecord
    loss: Fraction
    skip_reason: str = ""


@dataclass(frozen=True, slots=True)
class DuePlan:
    """Planned releases and skipped days of a run now, and the first refusal, if any."""

    planned: tuple[PlannedRelease, ...]
    refused: Refused | None

    @property
    def releases(self) -> tuple[ReleaseRecord, ...]:
        """Return the rows, without values."""
        return tuple(planned.row for planned in self.planned)


BeforeDraw = Callable[[date, Sequence[AnyRelease]], None]
"""Callback in the transaction that draws a day, after the day is admitted, with the population's rows so far."""


def last_due_date(run: RunFile) -> date | None:
    """Return the date on which the last day of the period is due, if it has a last day."""
    return None if run.schedule.last_day is None else due_date(run, run.schedule.last_day)


def due_date(run: RunFile, day: date) -> date:
    """Return the date on which a day is due: after its end in the zone of the data, and after its age."""
    day_end = run.input.layout.day_end(day)
    return clock.due_on(day_end, age_days=run.promise.age_days or 0)
