"""[schedule]: when days are due. One section class per mode, so that a key of another mode is refused."""

from __future__ import annotations

import re
from datetime import date
from itertools import pairwise
from typing import Annotated, Any, Literal, Self

from pydantic import Discriminator, Field, PlainValidator, model_validator

from agedp_data.amendment_rules import EITHER, END
from agedp_data.config.paths import DayMarker
from agedp_data.datasets.validation import FIRST_DAY, LAST_DAY
from agedp_data.parameters import FREE, LATER, TEXT, Absent, Days, Section, Zone, text, wrong

_CRON = re.compile(r"(\*|[0-9A-Za-z]+(-[0-9A-Za-z]+)?)(/[1-9][0-9]*)?")
_CRON_FIELDS = (("minute", 0, 59), ("hour", 0, 23), ("day of the month", 1, 31), ("month", 1, 12), ("weekday", 0, 7))
_CRON_WORDS = {
    "month": {"jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"},
    "weekday": {"sun", "mon", "tue", "wed", "thu", "fri", "sat"},
}


def _cron(value: object) -> str:
    line = text(value)
    fields = line.split()
    if len(fields) != 5 or not all(_CRON.fullmatch(part) for field in fields for part in field.split(",")):
        raise wrong('must be a cron line of five fields, such as "30 6 * * *"')
    for field, (unit, low, high) in zip(fields, _CRON_FIELDS, strict=True):
        values = re.findall(r"(?<!/)\b[0-9A-Za-z]+", field)
        if any(not _is_in_range(value_text.lower(), unit, low, high) for value_text in values):
            raise wrong(f"has {field} in place of its {unit}, which is from {low} to {high}")
    return line


def _is_in_range(value: str, unit: str, low: int, high: int) -> bool:
    return low <= int(value) <= high if value.isdigit() else value in _CRON_WORDS.get(unit, ())


def day(value: object) -> date:
    """Return a date of the run file, in the range that meters can have recorded.

    Raises:
        PydanticCustomError: not a date without quotes, or outside 1970 to 2199.
    """
    if type(value) is not date:
        raise wrong("must be a date without quotes, such as 2013-01-31")
    if not FIRST_DAY <= value <= LAST_DAY:
        raise wrong(f"must lie between {FIRST_DAY} and {LAST_DAY}")
    return value


def _skip_days(values: object) -> tuple[date, ...]:
    if not isinstance(values, list | tuple) or not values:
        raise wrong("must be a list of dates without quotes, such as [2013-01-31]")
    days = tuple(sorted(day(value) for value in values))
    if any(later == earlier for earlier, later in pairwise(days)):
        raise wrong("names a day twice; remove one of them")
    return days


Day = Annotated[date, PlainValidator(day)]
SkipDays = Annotated[tuple[date, ...], PlainValidator(_skip_days)]
Cron = Annotated[str, PlainValidator(_cron), TEXT]


class ScheduleSection(Section):
    """The keys that all modes share."""

    mode: str
    """When days are due: "archive" all of the period now; "live" each at its age, by the system clock; "rehearsal" the
    same by a simulated clock.
    """
    first_day: Day
    """First day of the series."""
    last_day: Annotated[Day | None, END] = None
    """Last day of the series; required for an archive."""
    skip_days: SkipDays | None = None
    """Days that are skipped: no draw, nothing spent. Chosen before the first release, never changed; chosen by looking
    at the files, they publish what the files show.
    """

    @property
    def reads_input(self) -> bool:
        """Whether the days are sums of readings; False only for a rehearsal on synthetic households."""
        return getattr(self, "rehearsal_on", None) != "synthetic"

    @property
    def skipped_days(self) -> frozenset[date]:
        """The days that the run file skips."""
        return frozenset(self.skip_days or ())

    @property
    def days(self) -> int | None:
        """The number of days of the period, None if it has no end."""
        return None if self.last_day is None else (self.last_day - self.first_day).days + 1

    @property
    def marker(self) -> str | None:
        """The marker file of a complete delivery, {day} for the date; None if a day is due by its age alone."""
        marker: str | None = getattr(self, "wait_for", None)
        return marker

    @property
    def patience_days(self) -> int:
        """The number of days that a due day waits for its marker."""
        days: int | None = getattr(self, "give_up_days", None)
        return days or 0

    @model_validator(mode="after")
    def _ends_after_it_begins(self) -> Self:
        if self.last_day is not None and self.last_day < self.first_day:
            raise wrong(f"lies before first_day = {self.first_day}; write a later day", "last_day")
        return self

    @model_validator(mode="after")
    def _skips_days_of_the_period(self) -> Self:
        for skipped in self.skip_days or ():
            if skipped < self.first_day or (self.last_day is not None and skipped > self.last_day):
                raise wrong(f"names {skipped}, which is not a day of the period; remove it", "skip_days")
        return self


class Archive(ScheduleSection):
    """Archive: all days of the period are due now, with their true publication date."""

    mode: Literal["archive"]
    last_day: Annotated[Day, END]
    """Last day of the series; required for an archive."""
    absent_days: Annotated[Literal["refuse", "missing"], FREE] = "refuse"
    """What follows if no household has a usable reading on some days of a first run: the run is refused and lists them,
    or every household counts as missing, so that they are published as noise around `missing_kwh`.
    """


def _patience(data: dict[str, Any]) -> int | None:
    return None if data.get("wait_for") is None else 14


class Rehearsal(ScheduleSection):
    """Rehearsal: a simulated clock advances day by day; `wait_for` contains {day} for the date."""

    mode: Literal["rehearsal"]
    rehearsal_on: Annotated[Literal["synthetic", "readings"] | None, LATER, Absent("readings")] = None
    """The households whose use is summed: "synthetic" ones, one for each on the roster, so that no input file is read;
    or those of the "readings", whose losses count like those of releases. A new rehearsal must write it.
    """
    wait_for: Annotated[DayMarker | None, EITHER] = None
    """Marker file of a complete delivery, `{day}` standing for the date; without this key age alone decides."""
    give_up_days: Annotated[Days | None, EITHER] = Field(default_factory=_patience)
    """A day without its marker this long after it was due is skipped and spends nothing. 14 with `wait_for`."""

    @model_validator(mode="after")
    def _patience_needs_a_marker(self) -> Self:
        if self.give_up_days is not None and self.wait_for is None:
            raise wrong("is used with wait_for only; name the marker or remove it", "give_up_days")
        return self


def _zone(data: dict[str, Any]) -> str | None:
    return None if data.get("cron") is None else "UTC"


class Live(ScheduleSection):
    """Live: by the system clock, a day is due at its age and, with `wait_for`, once its marker exists."""

    mode: Literal["live"]
    wait_for: Annotated[DayMarker | None, EITHER] = None
    """Marker file of a complete delivery, `{day}` standing for the date; without this key age alone decides."""
    give_up_days: Annotated[Days | None, EITHER] = Field(default_factory=_patience)
    """A day without its marker this long after it was due is skipped and spends nothing. 14 with `wait_for`."""
    cron: Annotated[Cron | None, FREE] = None
    """Cron line for `agedp serve`."""
    zone: Annotated[Zone | None, FREE] = Field(default_factory=_zone)
    """Time zone of the cron line; UTC unless written."""

    @model_validator(mode="after")
    def _parts_go_together(self) -> Self:
        if self.give_up_days is not None and self.wait_for is None:
            raise wrong("is used with wait_for only; name the marker or remove it", "give_up_days")
        if self.zone is not None and self.cron is None:
            raise wrong("is the zone of the cron line; write cron or remove it", "zone")
        return self


AnySchedule = Annotated[Archive | Live | Rehearsal, Discriminator("mode")]
