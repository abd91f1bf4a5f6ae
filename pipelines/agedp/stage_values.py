"""What one stage hands to the next: due days, plan, delivery, daily sums, released days.

Values only; nothing here reads or writes. A run is their sequence (`agedp.pipeline.run_stages`):

    run file, roster -> DueDays -> DuePlan              what is released now; public
    input files      -> Delivery -> DailySums           of the days that are due; confidential
    DueDays, DailySums -> ReleaseResult                  rows of the ledger (`stages.release`); public
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from typing import TYPE_CHECKING, Final, ParamSpec, Protocol, TypeVar

import numpy as np

from agedp_data import clock
from agedp_data.config import RunFile
from agedp_data.datasets.validation import Ints
from agedp_data.errors import ChainError
from agedp_data.ledger.records import AnyRelease
from agedp_data.roster import PATH_SEPARATOR
from agedp_data.series.series import AnySeries
from agedp_data.series.series_terms import Cell, Kind

if TYPE_CHECKING:
    from agedp.local_files.atomic_files import FileNotice


P = ParamSpec("P")
T = TypeVar("T")


class StageCaller(Protocol):
    """How the stages of a run or a calibration are called: as they are, counted, or as tasks of a scheduler."""

    def __call__(self, name: str, stage: Callable[P, T], /, *values: P.args, **options: P.kwargs) -> T:
        """Return the result of a stage."""


def call_stage(name: str, stage: Callable[P, T], /, *values: P.args, **options: P.kwargs) -> T:
    """Return the result of a stage, called as it is."""
    del name
    return stage(*values, **options)


@dataclass(frozen=True, slots=True)
class Delivery:
    """The content of the input files, all of it in the store: content ids in file order, months, counts by reason.

    `fresh` are the content ids of files that were not in the store before; `late_rows` counts their rows of released
    days. `first_days` has the first day with a row of each file, since 1970; of a file without rows none.
    Confidential: `unreadable` contains one line for each file that was rejected as a whole, with the reason; `warnings`
    are about new files that count. `superseded` has the number of rows of a listed file that later ones correct.
    """

    contents: tuple[str, ...]
    months: tuple[str, ...]
    rows_read: int
    rows_kept: int
    rejected: dict[str, int]
    files: int
    files_new: int
    fresh: tuple[str, ...] = field(default=(), compare=False)
    unreadable: tuple[str, ...] = field(default=(), compare=False)
    warnings: tuple[FileNotice, ...] = field(default=(), compare=False)
    late_rows: int = field(default=0, compare=False)
    first_days: Mapping[str, int] = field(default_factory=dict, compare=False)
    superseded: Mapping[str, int] = field(default_factory=dict, compare=False)


COUNTS: Final = ("households", "usable", "clamped", "readings_wh", "states_wh")
"""Columns of `DailySum.counts`."""


@dataclass(frozen=True, slots=True, eq=False)
class DailySum:
    """The exact vectors of a day, or of the days of a row, of one series (confidential): a line for each part.

    All numbers are exact integers. Sums of disjoint households, or of days, add up in any order.

    Attributes:
        series: what is counted.
        slots: the half-hours of the days.
        parts: groups, in the order of the roster, each with its kinds of day.
        counts: households, those with a usable day, those of them that are clamped; where totals are counted by states,
            also the sums of totals by readings and by states [Wh]; shape (parts, 5).
        exact: the exact vector of each part, shape (parts, places).
    """

    series: AnySeries
    slots: tuple[int, ...]
    parts: tuple[Cell, ...]
    counts: Ints
    exact: Ints

    @property
    def cells(self) -> tuple[Cell, ...]:
        """Return the cells, in the order of the exact vectors."""
        return self.series.cells(self.parts, slots=self.slots)

    @property
    def households(self) -> Ints:
        """Return the households, or household-days, of each part."""
        return self.counts[:, 0]

    @property
    def usable(self) -> Ints:
        """Return how many of them have a usable day."""
        return self.counts[:, 1]

    def lines(self) -> dict[Cell, int]:
        """Return the line of each part."""
        return {part: i for i, part in enumerate(self.parts)}

    @classmethod
    def added(cls, sums: Sequence[DailySum]) -> DailySum:
        """Return the sum over disjoint households or over days.

        Raises:
            ChainError: a sum exceeds 64 bits.
        """
        series, slots = sums[0].series, tuple(sorted({slot for of in sums for slot in of.slots}))
        is_path = len(series.columns) > 1
        order = {
            part: part.group.split(PATH_SEPARATOR) if is_path else [part.group] for of in sums for part in of.parts
        }
        parts = tuple(sorted(order, key=lambda part: (order[part], part.kind)))
        line, places = {part: i for i, part in enumerate(parts)}, series.places(slots)
        counts = np.zeros((len(parts), len(COUNTS)), np.int64)
        exact = np.zeros((len(parts), len(places)), np.int64)
        for of in sums:
            lines = np.array([line[part] for part in of.parts], np.int64)
            counts[lines] += of.counts
            columns = np.array([places.index(place) for place in series.places(of.slots)], np.int64)
            exact[np.ix_(lines, columns)] += of.exact
            if (counts < 0).any() or (exact < 0).any():
                raise ChainError("a sum exceeds 64-bit integers: take smaller clamps")
        return cls(series, slots, parts, counts, exact)

    @classmethod
    def of_period(cls, sums: Mapping[date, DailySum]) -> DailySum:
        r"""Return the vector of a row from those of the days that it covers: by kind of day k, weighted.

        .. math:: v_{k,s} = w_k \sum_{d \in k} z_{d,s}

        Raises:
            ChainError: as `added`.
        """
        return cls.added([of._of_kind(of.series.kind_of(day)) for day, of in sums.items()])

    def _of_kind(self, kind: Kind) -> DailySum:
        weight = self.series.weight(kind)
        if self.exact.max(initial=0) > np.iinfo(np.int64).max // weight:
            raise ChainError("a sum exceeds 64-bit integers: take smaller clamps")
        parts = tuple(Cell(part.group, kind) for part in self.parts)
        return replace(self, parts=parts, exact=weight * self.exact)


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


Cells = tuple[tuple[Cell, int], ...]
"""Parts of a release, its groups and their kinds of day, and the number of households, or household-days, of each."""


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


@dataclass(frozen=True, slots=True)
class DueDays:
    """The days to publish now, oldest first, and the waiting days: due, but without their delivery's marker.

    `has_begun` tells whether a row of the population was released before. `notices` are public lines that are shown
    before the draw: the verdict on a first release; `purpose` is what that release is fit for.
    """

    due: tuple[DueDay, ...]
    waiting: tuple[date, ...] = ()
    has_begun: bool = False
    notices: tuple[str, ...] = ()
    purpose: str = ""


BeforeDraw = Callable[[date, Sequence[AnyRelease]], None]
"""Callback in the transaction that draws a day, after the day is admitted, with the population's rows so far."""


def last_due_date(run: RunFile) -> date | None:
    """Return the date on which the last day of the period is due, if it has a last day."""
    return None if run.schedule.last_day is None else due_date(run, run.schedule.last_day)


def due_date(run: RunFile, day: date) -> date:
    """Return the date on which a day is due: after its end in the zone of the data, and after its age."""
    day_end = run.input.layout.day_end(day)
    return clock.due_on(day_end, age_days=run.promise.age_days or 0)
