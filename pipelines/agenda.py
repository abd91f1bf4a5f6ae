"""Run file + roster + markers + clock -> DUE DAYS, and the days that wait for their delivery.

A day is due `age_days` after its end (in an archive without `age_days`: at its end). `live` and `archive` publish
every due day now, under the true date, so a missed week needs no special treatment; `rehearsal` steps a simulated date
from the ledger's newest date to `as_of` and publishes each day on the first date on which it is due. Nothing here
depends on a reading.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta

from agedp_data import clock
from agedp_data.config import RunFile
from agedp_data.errors import LedgerError, RunFileError
from agedp_data.readers import storage
from agedp_data.roster import Roster

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
        """Tell whether the day is drawn: it has a delivery and enough households, and is not in skip_days."""
        return not (self.given_up or self.skipped) and any(self.cells[name] for name in self.series)

    @property
    def households(self) -> int:
        """Return the number of households in the largest release of the day."""
        return max((sum(number for _, number in cells) for cells in self.cells.values()), default=0)


@dataclass(frozen=True, slots=True)
class DueDays:
    """The days to publish now, oldest first, and the waiting days: due, but without their delivery's marker."""

    due: tuple[DueDay, ...]
    waiting: tuple[date, ...] = ()


def last_due_date(run: RunFile) -> date | None:
    """Return the date on which the last day of the period is due, if it has a last day."""
    return None if run.schedule.last_day is None else _due_on(run, run.schedule.last_day)


def list_due_days(
    run: RunFile, roster: Roster, closed: Collection[tuple[str, str]], *, until: datetime, not_before: date
) -> DueDays:
    """Return the days that are due at `until` and not in `done`, which are (day, series), for every series.

    A day waits for its delivery's marker, if the run file names one, for at most `give_up_days` after it was due.
    Later days do not wait for it, nor does a day in [schedule] skip_days wait. A rehearsed day is published when it is
    due, or given up at the end of its waiting time; other days are published now. No day is published on a date before
    `not_before`, because the dates of a ledger never decrease.

    Raises:
        LedgerError: days are due, but the clock's date is before `not_before`.
    """
    due: list[DueDay] = []
    waiting: list[date] = []
    for day in _period(run, until.date()):
        series = tuple(name for name in run.series if (day.isoformat(), name) not in closed)
        if not series:
            continue
        day_end = run.input.layout.day_end(day)
        due_at = day_end + timedelta(days=run.promise.age_days or 0)
        if due_at > until:
            break
        skipped = day in run.schedule.skipped_days
        delivered = skipped or _is_delivered(run, day)
        given_up = not delivered and until >= due_at + timedelta(days=run.schedule.patience_days)
        if not delivered and not given_up:
            waiting.append(day)
            continue
        waited = timedelta(days=run.schedule.patience_days if given_up else 0)
        is_rehearsal = run.schedule.mode == "rehearsal"
        publish_on = max(_due_on(run, day) + waited, not_before) if is_rehearsal else until.date()
        cells = _cells(run, roster, day)
        due.append(DueDay(day, clock.format_instant(day_end), publish_on, cells, series, given_up, skipped))
    if due and run.schedule.mode != "rehearsal" and until.date() < not_before:
        raise LedgerError(
            f"the clock says {until.date()}, but the ledger's newest release was published on {not_before}, and its "
            "dates never run backwards: set the clock right, or run again on that date"
        )
    # a day that was given up is published after days that were due while it waited
    return DueDays(tuple(sorted(due, key=lambda due_day: due_day.publish_on)), tuple(waiting))


def _is_delivered(run: RunFile, day: date) -> bool:
    """Tell whether the marker of a day's delivery exists, a public event; without markers age alone decides."""
    marker = run.schedule.marker
    if marker is None:
        return True
    marker_path = marker.replace("{day}", day.isoformat())
    if storage.is_url(marker_path):
        with storage.input_errors(f"[schedule] wait_for: the marker of {day}", marker_path):
            return storage.exists(marker_path)
    try:
        (run.folder / marker_path).stat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as error:  # unreadable is not absent: the day would be given up
        raise RunFileError(
            f"[schedule] wait_for: the marker of {day} cannot be looked for ({error.strerror}); correct the path, or "
            "let this user read its folder"
        ) from None
    return True


def _cells(run: RunFile, roster: Roster, day: date) -> dict[str, Cells]:
    """Return the cells of each series on a day: "all", or the groups of its roster column that are large enough."""
    min_households = run.population.min_households
    return {
        name: tuple((cell, number) for cell, number in roster.cells(day, series.by) if number >= min_households)
        for name, series in run.series.items()
    }


def _period(run: RunFile, until: date) -> Iterator[date]:
    day = run.schedule.first_day
    while day <= min(run.schedule.last_day or until, until):
        yield day
        day += timedelta(days=1)


def _due_on(run: RunFile, day: date) -> date:
    day_end = run.input.layout.day_end(day)
    return clock.due_on(day_end, age_days=run.promise.age_days or 0)
