"""Timestamps as text, and the half-hour slots of civil days in a zone.

* Timestamps: the formats that a table may declare, and the parser of one timestamp.
* Civil days: absent slots, repeated slots, and the slot of a wall-clock time. The only input is the name of the zone;
  the dates of its clock changes come from the time zone database.

Decisions:

* Each timestamp is parsed by itself: the result depends on nothing else in the file.
* Arrow parses ISO timestamps. All others are parsed here, by pattern and distinct cell, because Arrow's strptime parses
  31 February as 3 March.
* A pattern that ends with `*` reads the beginning of a timestamp: "%H:%M*" the first time of 00:00-00:30, and 02:00 of
  "02:00 CEST". The longest beginning that fits counts, and no number is cut.
* 24:00 is the midnight that ends a day, and a date among timestamps the midnight that begins it: spreadsheets, Spark
  and pandas write midnight so. A file of dates alone is refused before a first release (`store.file_identity`).
"""

from __future__ import annotations

import re
import zoneinfo
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import UTC, date, datetime, time, timedelta
from enum import IntEnum
from functools import lru_cache
from importlib import metadata
from pathlib import Path
from typing import Any, Final, NamedTuple
from zoneinfo import ZoneInfo

import numpy as np

Int32s = np.ndarray[Any, np.dtype[np.int32]]
Bytes = np.ndarray[Any, np.dtype[np.uint8]]

ISO = "iso"
"""With or without a UTC offset: a timestamp with an offset is an instant, any other a wall-clock time."""
EPOCHS = {"epoch": 10**9, "epoch-ms": 10**6}
"""Seconds and milliseconds since 1970, with their nanoseconds: instants."""
LOCAL_ISO = "iso without offset"
REST = "*"
"""End of a pattern for timestamps with further text."""
SHORTEST_ISO = len("2013-01-31 00:30")
DAY_FIRST = "%d/%m/%Y %H:%M:%S"
_LOCAL_PATTERNS = ("%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M", "%Y-%m-%dT%H:%M")
COMMON_FORMATS = (
    ISO,
    *(
        f"{day}{time}"
        for day in ("%Y-%m-%dT", "%Y-%m-%d ", "%d/%m/%Y ", "%d.%m.%Y ", "%d-%m-%Y ", "%m/%d/%Y ", "%Y%m%d")
        for time in ("%H:%M:%S%z", "%H:%M:%S.%f%z", "%H:%M%z", "%H:%M:%S", "%H:%M", "%H%M")
    ),
)
"""Formats that a message proposes if the declared one does not fit; day before month."""
_EPOCH, _SECOND, _MICROSECOND = datetime(1970, 1, 1, tzinfo=UTC), timedelta(seconds=1), timedelta(microseconds=1)
_MAX_OFFSET = timedelta(seconds=9e9)  # nanoseconds in 64 bits end in the year 2262
_ISO_SHAPE = re.compile(  # as Arrow, except for timestamps without minutes
    rb"(\d{4})-(\d\d)-(\d\d)(?:[ T](\d\d):(\d\d)(?::(\d\d)(?:\.(\d{1,9}))?)?(Z|([+-])(\d\d)(?::?(\d\d))?)?)?"
)
_EPOCH_NUMBER = re.compile(rb"(\d{1,14})(?:\.(\d{1,9}))?")
_END_OF_DAY = re.compile(rb"(?:(?<![\d+-])|(?<=\d{8}))24(:?00)(:?00)?(\.0+)?(?!\d)")
_TIME_OF_DAY = re.compile(r"[ T,]*%[HIk].*")
_HALF_OF_DAY = re.compile(r"([AaPp])\. ?[Mm]\.")
_DAY_NS = 86_400 * 10**9


class Timestamp(NamedTuple):
    """Nanoseconds since 1970 of an instant, or of a wall-clock time as if it were in UTC."""

    ns: int
    is_instant: bool


def parser_format(pattern: str) -> str:
    """Return the internal format of a strptime pattern: `LOCAL_ISO` if Arrow parses it, else the pattern.

    >>> parser_format("%Y-%m-%d %H:%M"), parser_format("%d.%m.%Y %H:%M"), parser_format("iso")
    ('iso without offset', '%d.%m.%Y %H:%M', 'iso')
    """
    return LOCAL_ISO if pattern in _LOCAL_PATTERNS else pattern


def is_iso(time_format: str) -> bool:
    """Return whether Arrow parses timestamps of this format."""
    return time_format in (ISO, LOCAL_ISO)


def matches_format(text: str, time_format: str) -> bool:
    """Return whether a timestamp has this format.

    >>> matches_format("2012-10-12 00:30:00.0000000", ISO), matches_format("2012-10-12T00:30Z", ISO)
    (True, True)
    >>> matches_format("31.02.2013", "%d.%m.%Y")
    False
    """
    return parse_timestamp(text.strip().encode(), (time_format,)) is not None


def parse_timestamp(cell: bytes, time_formats: Sequence[str]) -> Timestamp | None:
    """Return the timestamp in the first format that fits; None if no format fits or the date does not exist.

    >>> parse_timestamp(b"02/01/1970 00:00:00", (LOCAL_ISO, DAY_FIRST))
    Timestamp(ns=86400000000000, is_instant=False)
    >>> parse_timestamp(b"31/02/2013 00:30:00", (DAY_FIRST,)) is None
    True
    >>> parse_timestamp(b"1970-01-02T01:00+01:00", (ISO,))
    Timestamp(ns=86400000000000, is_instant=True)
    >>> parse_timestamp(b"1970-01-02T01:00+01:00", (LOCAL_ISO,)) is None
    True
    >>> {parse_timestamp(b"02.01.1970 00:00" + rest, ("%d.%m.%Y %H:%M*",)).ns for rest in (b"-00:30", b" CET")}
    {86400000000000}
    >>> {parse_timestamp(cell, (ISO,)).ns for cell in (b"1970-01-01 24:00", b"1970-01-02", b"1970-01-02 00:00")}
    {86400000000000}
    """
    found = _first_fitting(cell, time_formats)
    if found is None and (match := _END_OF_DAY.search(cell)):
        start_of_day = cell[: match.start()] + match[0].replace(b"24", b"00", 1) + cell[match.end() :]
        found = _first_fitting(start_of_day, time_formats)
        found = None if found is None else found._replace(ns=found.ns + _DAY_NS)
    return found


def _first_fitting(cell: bytes, time_formats: Sequence[str]) -> Timestamp | None:
    for time_format in time_formats:
        with suppress(ValueError):
            if (timestamp := _parse(cell, time_format)) is not None:
                return timestamp
    return None


def _parse(cell: bytes, time_format: str) -> Timestamp | None:
    if is_iso(time_format):
        return _parse_iso(cell, time_format)
    if time_format in EPOCHS:
        return _parse_epoch(cell, time_format)
    if time_format.endswith(REST):
        return _parse_beginning(cell, time_format.removesuffix(REST))
    with suppress(ValueError):
        if (timestamp := _parse_pattern(cell, time_format)) is not None:
            return timestamp
    date_format = _TIME_OF_DAY.sub("", time_format)
    return _parse_pattern(cell, date_format) if "%z" not in time_format and date_format != time_format else None


def _parse_beginning(cell: bytes, pattern: str) -> Timestamp | None:
    """Return the timestamp with which a cell begins: the longest text that fits and does not end within a number."""
    is_local = is_iso(parser_format(pattern))
    for end in range(len(cell), 0, -1):
        if not (cell[end - 1 : end].isdigit() and cell[end : end + 1].isdigit()):
            with suppress(ValueError):
                beginning = cell[:end].rstrip()
                found = _parse_iso(beginning, LOCAL_ISO) if is_local else _parse_pattern(beginning, pattern)
                if found is not None and (not is_local or end >= SHORTEST_ISO):
                    return found
    return None


def _parse_epoch(cell: bytes, time_format: str) -> Timestamp | None:
    """Return an instant of a number of seconds or milliseconds; 0 is no reading of any meter."""
    match = _EPOCH_NUMBER.fullmatch(cell)
    if match is None or not int(match[1]):
        return None
    unit = EPOCHS[time_format]
    ns = int(match[1]) * unit + int((match[2] or b"").ljust(9, b"0")) * unit // 10**9
    return Timestamp(ns, is_instant=True) if ns < 2**63 else None


def _parse_iso(cell: bytes, time_format: str) -> Timestamp | None:
    parts = _ISO_SHAPE.fullmatch(cell)
    if parts is None or (parts[8] and time_format == LOCAL_ISO):  # a date alone is its midnight
        return None
    year, month, day, hour, minute, second = (int(part or 0) for part in parts.groups()[:6])
    since = datetime(year, month, day, hour, minute, second, tzinfo=UTC) - _EPOCH
    hours, minutes = int(parts[10] or 0), int(parts[11] or 0)
    if hours > 23 or minutes > 59:
        return None
    since -= timedelta(hours=hours, minutes=minutes) * (-1 if parts[9] == b"-" else 1)
    fraction = int((parts[7] or b"").ljust(9, b"0"))
    return Timestamp(since // _SECOND * 10**9 + fraction, parts[8] is not None) if abs(since) < _MAX_OFFSET else None


def _parse_pattern(cell: bytes, pattern: str) -> Timestamp | None:
    if pattern == DAY_FIRST and not re.fullmatch(rb"\d{1,2}/\d{1,2}/\d{4} \d{1,2}:\d{2}:\d{2}", cell):
        return None  # strptime alone would accept any blanks, and minutes of one digit
    text = cell.decode("utf-8").strip()
    if any(character.isdecimal() and not character.isascii() for character in text):
        return None
    if text.isdigit() and len(text) != len(_EPOCH.strftime(pattern)):
        return None  # strptime would read 202401080030 as 0:03:00
    if "%p" in pattern:
        text = _HALF_OF_DAY.sub(r"\1m", text)  # a. m., as in Spanish
    parsed = datetime.strptime(text, pattern)
    since = (parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)) - _EPOCH
    return Timestamp(since // _MICROSECOND * 1000, parsed.tzinfo is not None) if abs(since) < _MAX_OFFSET else None


_FIRST_DATE = date(1970, 1, 1)


def day_number(day: date) -> int:
    """Return the number of days from 1970-01-01 to a day: the form in which arrays contain days.

    >>> day_number(date(2013, 1, 1)), date_of_day(15706)
    (15706, datetime.date(2013, 1, 1))
    """
    return (day - _FIRST_DATE).days


def date_of_day(number: int) -> date:
    """Return the date of a day number: the inverse of `day_number`."""
    return _FIRST_DATE + timedelta(days=int(number))


_HALF_HOUR = timedelta(minutes=30)
_EPOCH_DAY = datetime(1970, 1, 1)
_QUARTER, _NONE = timedelta(minutes=15), timedelta()
_SLOTS, _SLOT_MINUTES = 48, 30
_QUARTERS_OF_DAY, _QUARTER_MINUTES = 96, 15
_QUARTERS = (date(2200, 1, 1) - _FIRST_DATE).days * 96


class ZoneDays:
    """The days of one zone; slot s is the wall-clock half-hour that starts s x 30 minutes after midnight.

    >>> sydney = ZoneDays("Australia/Sydney")
    >>> sydney.absent_slots(date(2012, 10, 7)), sydney.repeated_slots(date(2013, 4, 7))
    ((4, 5), (4, 5))
    >>> sydney.day_end(date(2012, 7, 1)).isoformat()
    '2012-07-01T14:00:00+00:00'
    """

    def __init__(self, zone: str) -> None:
        self.zone = ZoneInfo(zone)
        self._changes = lru_cache(maxsize=4096)(self._find_changes)

    def absent_slots(self, day: date) -> tuple[int, ...]:
        """Return the slots that do not exist on the day (the clock goes forward)."""
        return self._changes(day)[0]

    def repeated_slots(self, day: date) -> tuple[int, ...]:
        """Return the slots that occur twice on the day (the clock goes back)."""
        return self._changes(day)[1]

    def day_end(self, day: date) -> datetime:
        """Return the instant (UTC) at which the day ends."""
        return datetime.combine(day + timedelta(days=1), time(), self.zone).astimezone(UTC)

    def _find_changes(self, day: date) -> tuple[tuple[int, ...], tuple[int, ...]]:
        start = datetime.combine(day, time(), self.zone).astimezone(UTC)
        half_hours = int((self.day_end(day) - start) / _HALF_HOUR)
        if half_hours == 48:
            return (), ()
        walls = [(start + i * _HALF_HOUR).astimezone(self.zone) for i in range(half_hours)]
        slots = [wall.hour * 2 + wall.minute // 30 for wall in walls]
        absent = tuple(slot for slot in range(48) if slot not in slots)
        return absent, tuple(slot for slot in range(48) if slots.count(slot) > 1)


class ClockPass(IntEnum):
    """Which pass of a slot: the only one, the first or second of two, or either if the clock shows both alike."""

    ONLY = 0
    FIRST = 1
    SECOND = 2
    EITHER = 3


class SlotPosition(NamedTuple):
    """Position of a half-hour: day since 1970, slot, pass, and its `minutes` past the start of the slot."""

    day: int
    slot: int
    clock_pass: ClockPass
    minutes: int = 0


class WallClock:
    """Half-hours by the wall-clock time of one zone at their start, in days and slots of another zone.

    An hour that the clock skips has no position. For an hour that it shows twice nothing distinguishes the passes. If
    both belong to one slot of the day (both zones go back together), the pass is `EITHER`; otherwise there is none.

    >>> clock = WallClock("UTC", ZoneDays("Europe/London"))
    >>> clock.slot_at(datetime(2013, 10, 27, 1, 30))
    SlotPosition(day=16005, slot=3, clock_pass=<ClockPass.SECOND: 2>, minutes=0)
    >>> london = WallClock("Europe/London", ZoneDays("Europe/London"))
    >>> london.slot_at(datetime(2013, 10, 27, 1, 30)).clock_pass.name, london.slot_at(datetime(2013, 3, 31, 1, 30))
    ('EITHER', None)
    """

    def __init__(self, zone: str, days: ZoneDays) -> None:
        self._zone, self._days = ZoneInfo(zone), days
        self._packed = np.zeros(_QUARTERS, np.int32)  # 0: unknown yet; memory is taken where a reading falls only

    def positions_at(self, quarter: Int32s) -> tuple[Int32s, Bytes, Bytes]:
        """Return time, pass and minutes of the half-hours that start at wall-clock times.

        The time is day since 1970 x 48 + slot, and negative without a position.

        Args:
            quarter: quarters of an hour from 1970 to 2199, shape (n,).

        >>> clock = WallClock("Europe/London", ZoneDays("Europe/London"))
        >>> [values.tolist() for values in clock.positions_at(np.array([15706 * 96 + 3, 15795 * 96 + 5]))]
        [[753889, -48], [0, 0], [15, 0]]
        """
        packed = self._packed[quarter]
        if not packed.all():
            unknown = np.unique(quarter[packed == 0])
            self._packed[unknown] = self._pack_all(unknown)
            packed = self._packed[quarter]
        time: Int32s = (packed >> 7) - np.int32(2 * _SLOTS)
        marks: Bytes = packed.astype(np.uint8)
        return time, marks >> np.uint8(5) & np.uint8(3), marks & np.uint8(31)

    def skipped_quarters(self, quarter: Int32s) -> Int32s:
        """Return how many quarters of an hour the clock skips at once at wall-clock times, 0 at those that it shows.

        >>> WallClock("Europe/London", ZoneDays("UTC")).skipped_quarters(np.array([15795 * 96 + 5, 15795 * 96 + 8]))
        array([4, 0], dtype=int32)
        """
        distinct, index = np.unique(quarter, return_inverse=True)
        walls = [(_EPOCH_DAY + number * _QUARTER).replace(tzinfo=self._zone) for number in distinct.tolist()]
        skipped = [(wall.replace(fold=1).utcoffset() or _NONE) - (wall.utcoffset() or _NONE) for wall in walls]
        return np.array([max(0, time // _QUARTER) for time in skipped], np.int32)[index]

    def _pack_all(self, quarter: Int32s) -> np.ndarray[Any, np.dtype[np.int64]]:
        """Return packed positions, at once for days around which neither zone changes its clock.

        No zone undoes a change within a day, so equal offsets at the midnights around a day show that there is none.
        """
        day = quarter // _QUARTERS_OF_DAY
        midnights = np.unique(np.add.outer(np.unique(day), [-1, 0, 1, 2]))
        instants = [datetime.combine(_FIRST_DATE, time(), UTC) + number * _DAY for number in midnights.tolist()]
        offsets = [[_offset(zone, instant) for instant in instants] for zone in (self._zone, self._days.zone)]
        seconds = np.array([[offset // _SECOND for offset in of_zone] for of_zone in offsets], np.int64)
        around = seconds[:, np.add.outer(np.searchsorted(midnights, day - 1), np.arange(4))]
        is_plain = (around == around[:, :, :1]).all(axis=(0, 2)) & (around[:, :, 0] % 60 == 0).all(axis=0)
        minute = quarter * np.int64(_QUARTER_MINUTES) + (around[1, :, 0] - around[0, :, 0]) // 60
        packed: np.ndarray[Any, np.dtype[np.int64]] = (
            minute // _SLOT_MINUTES + 2 * _SLOTS
        ) << 7 | minute % _SLOT_MINUTES
        packed[~is_plain] = [self._pack(number) for number in quarter[~is_plain].tolist()]
        return packed

    def _pack(self, quarter: int) -> int:
        position = self.slot_at(_EPOCH_DAY + quarter * _QUARTER) or SlotPosition(-1, 0, ClockPass.ONLY)
        return ((position.day + 2) * _SLOTS + position.slot) << 7 | position.clock_pass << 5 | position.minutes

    def slot_at(self, wall_time: datetime) -> SlotPosition | None:
        """Return the position of the half-hour that starts at a wall-clock time (naive); None if it has none."""
        first, second = (wall_time.replace(tzinfo=self._zone, fold=fold) for fold in (0, 1))
        first_position = self._position(first)
        if first.utcoffset() == second.utcoffset():
            return first_position
        if first.astimezone(UTC) < second.astimezone(UTC):  # shown twice
            is_one_slot = first_position[:2] == self._position(second)[:2]
            return first_position._replace(clock_pass=ClockPass.EITHER) if is_one_slot else None
        return None

    def _position(self, start: datetime) -> SlotPosition:
        wall = start.astimezone(UTC).astimezone(self._days.zone)
        slot, minutes = divmod(wall.hour * 60 + wall.minute, 30)
        clock_pass = ClockPass.ONLY
        if slot in self._days.repeated_slots(wall.date()):
            clock_pass = ClockPass.SECOND if wall.fold else ClockPass.FIRST
        return SlotPosition(day_number(wall.date()), slot, clock_pass, minutes)


# --------------------------------------------------------------------------------------------------
# The clock changes of a zone over a period: they decide when its days begin, and a contract records them.
#
# The time zone database is an input: a new version may move a future clock change, and the days with it. A contract
# records the changes of its period as text, the offset at the beginning first:
#
#     ["2013-01-01T00:00Z +00:00", "2013-03-31T01:00Z +01:00", "2013-10-27T01:00Z +00:00"]
# --------------------------------------------------------------------------------------------------

FIXED_ZONES: Final = frozenset({"GMT", "UTC"})
"""Zones without clock changes: nothing needs to be recorded."""
MAX_RECORDED_DAYS: Final = 3652
"""Days for which changes are recorded if a period has no end: ten years."""

_LINE = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\dZ) ([+-])(\d\d):(\d\d)")
_DAY, _MINUTE = timedelta(days=1), timedelta(minutes=1)

OffsetChange = tuple[datetime, timedelta]
"""An instant (UTC), and the UTC offset from then on."""


def zone_changes(zone: str, first: date, last: date | None) -> tuple[str, ...]:
    """Return the offset at the beginning of a period of days, and its changes until the end.

    >>> zone_changes("Europe/London", date(2013, 1, 1), date(2013, 6, 1))
    ('2013-01-01T00:00Z +00:00', '2013-03-31T01:00Z +01:00')
    """
    end = last if last is not None else first + MAX_RECORDED_DAYS * _DAY
    return tuple(_format_change(change) for change in _changes(zone, _start(zone, first), _start(zone, end + _DAY)))


def first_moved_day(recorded: Sequence[str], zone: str, since: date, last: date | None) -> date | None:
    """Return the first day, from `since` on, that differs from the recorded changes; None if none does.

    Days after the recorded period are not compared.
    """
    recorded_changes = [_parse_change(line) for line in recorded]
    end = last if last is not None else recorded_changes[0][0].date() + MAX_RECORDED_DAYS * _DAY
    begin, stop = _start(zone, since), _start(zone, end + _DAY)
    if begin >= stop:
        return None
    if not begins_as_recorded(recorded, zone, since):
        return since
    before = [change for change in recorded_changes if change[0] <= begin][-1:] or recorded_changes[:1]
    expected = [(begin, before[0][1]), *(change for change in recorded_changes if begin < change[0] < stop)]
    moved = [instant for instant, _ in set(_changes(zone, begin, stop)) ^ set(expected)]
    return min(moved).astimezone(ZoneInfo(zone)).date() if moved else None


def begins_as_recorded(recorded: Sequence[str], zone: str, day: date) -> bool:
    """Return whether a day begins at the instant that the recorded changes imply."""
    start = _start(zone, day)
    offset = [change for change in map(_parse_change, recorded) if change[0] <= start][-1:]
    return not offset or start + offset[0][1] == datetime.combine(day, time(), UTC)


@lru_cache(maxsize=1)
def tzdata_version() -> str:
    """Return the version of the time zone database, such as 2026b; "" if it has none."""
    for folder in zoneinfo.TZPATH:
        for name, pattern in (("tzdata.zi", r"# version (\S+)"), ("+VERSION", r"(\S+)")):
            try:
                with (Path(folder) / name).open(encoding="ascii", errors="replace") as stream:
                    match = re.match(pattern, stream.readline())
            except OSError:
                continue
            if match:
                return match[1]
    try:
        return metadata.version("tzdata")
    except metadata.PackageNotFoundError:
        return ""


def _changes(zone: str, begin: datetime, stop: datetime) -> Iterator[OffsetChange]:
    """Yield the offset at `begin`, and each later offset until `stop`, to the minute."""
    zone_info = ZoneInfo(zone)
    instant, offset = begin, _offset(zone_info, begin)
    yield instant, offset
    while instant < stop:
        following = min(instant + _DAY, stop)
        if _offset(zone_info, following) != offset:
            low, high = instant, following
            while high - low > _MINUTE:
                middle = low + (high - low) // _MINUTE // 2 * _MINUTE
                low, high = (low, middle) if _offset(zone_info, middle) != offset else (middle, high)
            if high < stop:
                offset = _offset(zone_info, high)
                yield high, offset
            following = high
        instant = following


def _offset(zone: ZoneInfo, instant: datetime) -> timedelta:
    return instant.astimezone(zone).utcoffset() or timedelta()


def _start(zone: str, day: date) -> datetime:
    return datetime.combine(day, time(), ZoneInfo(zone)).astimezone(UTC)


def _format_change(change: OffsetChange) -> str:
    instant, offset = change
    minutes = abs(offset) // _MINUTE
    sign = "-" if offset < timedelta() else "+"
    return f"{instant:%Y-%m-%dT%H:%MZ} {sign}{minutes // 60:02d}:{minutes % 60:02d}"


def _parse_change(line: str) -> OffsetChange:
    match = _LINE.fullmatch(line)
    if match is None:
        raise ValueError(f"no clock change: {ascii(line)[:60]}")
    offset = timedelta(hours=int(match[3]), minutes=int(match[4]))
    return datetime.strptime(match[1], "%Y-%m-%dT%H:%MZ").replace(tzinfo=UTC), offset if match[2] == "+" else -offset
