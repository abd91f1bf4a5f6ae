"""Roster history: members and groups of every released day, because a roster may change for later days only.

    released_rosters     by population, ledger and day: digests of members and of groups; a table of the book (`books`)

A day is recorded before its first draw, inside the transaction that draws: a run that is killed between two series of
a day continues with the same households or not at all. A recorded day that was never drawn has no effect. Days that the
ledger contains are marked as released. So the history also detects a ledger that lacks days which were released to the
same population (an older copy, another ledger with a renamed release folder): continuing would draw them a second time.
Rehearsals have ledgers and dates of their own; their rows do not restrict other ledgers, nor the reverse.

Without a recorded day (another machine, a restored backup) the numbers of households are compared with the ledger's.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from datetime import date
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from agedp.budget import period_cells
from agedp.local_files import atomic_files
from agedp.local_files.books import SOURCES, Books, Rows
from agedp.stage_values import BeforeDraw
from agedp_data import roster as rosters
from agedp_data import table_schemas
from agedp_data.config.contract import Contract
from agedp_data.datasets.filesystem import SETTLING_NS, FileStatus, file_status, is_url
from agedp_data.datasets.timestamps import day_number
from agedp_data.datasets.validation import Ints
from agedp_data.errors import LedgerBehind, Refused
from agedp_data.ledger import Ledger, ReleaseRecord
from agedp_data.ledger.records import AnyRelease
from agedp_data.meters import HOUSEHOLD
from agedp_data.series.series_terms import days_of
from agedp_data.versions import version

# --------------------------------------------------------------------------------------------------
# Digests of a roster: of its members on a day, and of all its rows as far as they are about days through one day.
#
# A day's digest is the SHA-256 of one line for each member, sorted, in JSON: `["A"]`, with a group `["A", "north"]`.
# It is the same whatever the form of the roster file and the order of its rows. The lines of all rows are sorted once;
# the lines of a day are a part of them, in the same order.
# --------------------------------------------------------------------------------------------------

LEAST_ROWS: Final = 2**15
"""Rosters with fewer rows have no record of their digests and checks."""
_ESCAPED: Final = r"[^ !#-\[\]-~]"
"""Letters that JSON does not write as they are."""


class RosterDigest:
    """Digests of the members of a roster on a day.

    They are computed once for each interval between two changes of the roster: a year of an unchanged roster is hashed
    once. The rows of the roster are read for the first digest. With `meters` those of the households are members too.
    """

    def __init__(self, roster: rosters.Roster, meters: rosters.Roster | None = None) -> None:
        self._roster = roster
        self._meters = None if meters is None else RosterDigest(meters)
        self._changes: Ints | None = None
        self._lines: dict[str | None, tuple[pa.Array, Ints]] = {}
        self._digests: dict[tuple[int, str | None], str] = {}
        self._cells: dict[tuple[int, rosters.GroupColumns], tuple[tuple[str, int], ...]] = {}

    @property
    def file_digest(self) -> str:
        """Return the digest of the roster's file, "" where it is of no file."""
        return self._with_meters(self._roster.file_digest, lambda meters: meters.file_digest)

    @property
    def has_meters(self) -> bool:
        """Return whether the meters of the households are members too."""
        return self._meters is not None

    @property
    def rows(self) -> int:
        """Return the number of rows of the roster."""
        return self._roster.counts.size

    def has(self, by: rosters.GroupColumns) -> bool:
        """Return whether the roster has these group columns."""
        return self._roster.counts.has(by)

    def digest(self, day: date, column: str | None) -> str:
        """Return the SHA-256 of the members on a day; with a column, of the members and their groups in it.

        Members are sorted: the order of the roster's rows does not matter.
        """
        own = self._own_digest(day, column)
        return own if column is not None else self._with_meters(own, lambda meters: meters.digest(day, HOUSEHOLD))

    def _with_meters(self, digest: str, of_meters: Callable[[RosterDigest], str]) -> str:
        """Return a digest together with that of the meters, if there are any."""
        if self._meters is None or not digest:
            return digest
        return hashlib.sha256(f"{digest} {of_meters(self._meters)}".encode()).hexdigest()

    def _own_digest(self, day: date, column: str | None) -> str:
        key = self._interval_index(day), column
        if key not in self._digests:
            if column not in self._lines:
                self._lines[column] = self._sorted_lines(column)
            lines, order = self._lines[column]
            members = lines.filter(pa.array(self._roster.rows.on(day)[order]))
            self._digests[key] = hashlib.sha256(bytes_of(members)[:-1]).hexdigest()
        return self._digests[key]

    def digest_through(self, day: date) -> str:
        """Return the SHA-256 of all that the rows contain about the days through this one.

        Rosters with the same value have the same members and groups on each of these days.
        """
        number, rows = day_number(day), self._roster.rows
        touching = np.flatnonzero(rows.first <= number)
        last = np.where(rows.last[touching] >= number, -1, rows.last[touching])
        digest = hashlib.sha256(json.dumps([number, list(rows.groups)]).encode())
        for days in (rows.first[touching], last):
            digest.update(days.astype("<i8").tobytes())
        for labels, codes in (
            (rosters.as_strings(rows.ids), rows.household),
            *map(rosters.sorted_codes, rows.groups.values()),
        ):
            texts = labels.take(pa.array(codes[touching]))
            digest.update(pc.binary_length(texts).to_numpy().astype("<i4").tobytes())
            digest.update(bytes_of(texts))
        return self._with_meters(digest.hexdigest(), lambda meters: meters.digest_through(day))

    def cells(self, day: date, by: rosters.GroupColumns) -> tuple[tuple[str, int], ...]:
        """Return the groups of columns on a day and the number of households in each."""
        key = self._interval_index(day), by
        if key not in self._cells:
            self._cells[key] = self._roster.counts.cells(day, by)
        return self._cells[key]

    def _interval_index(self, day: date) -> int:
        if self._changes is None:
            counts = self._roster.counts
            self._changes = np.unique(np.concatenate([counts.first, counts.last + 1]))
        return int(np.searchsorted(self._changes, day_number(day), side="right"))

    def _sorted_lines(self, column: str | None) -> tuple[pa.Array, Ints]:
        """Return the lines of all rows, sorted, each with a line end; and the row of each line."""
        rows = self._roster.rows
        texts = [json_texts(rows.ids).take(pa.array(rows.household))]
        if column is not None:
            labels, codes = rosters.sorted_codes(rows.groups[column])
            texts += [pa.scalar(b", "), json_texts(labels.to_pylist()).take(pa.array(codes))]
        lines = pc.binary_join_element_wise(pa.scalar(b"["), *texts, pa.scalar(b"]"), pa.scalar(b""))
        order: Ints = np.arange(len(lines))
        if len(lines) > 1 and not pc.all(pc.less_equal(lines[:-1], lines[1:])).as_py():
            order = pc.sort_indices(lines).to_numpy().astype(np.int64)
            lines = lines.take(pa.array(order))
        return pc.binary_join_element_wise(lines, pa.scalar(b"\n"), pa.scalar(b"")), order


def json_texts(texts: Sequence[str], *, end: bytes = b"") -> pa.Array:
    """Return each text as JSON in ASCII with an ending, as bytes."""
    array = rosters.as_strings(texts)
    quoted = pc.binary_join_element_wise('"', array, '"', "")
    if pc.any(pc.match_substring_regex(array, _ESCAPED)).as_py():
        quoted = pa.array([json.dumps(text) for text in array.to_pylist()], pa.string())
    return pc.binary_join_element_wise(quoted.cast(pa.binary()), pa.scalar(end), pa.scalar(b""))


def bytes_of(texts: Any) -> memoryview:  # noqa: ANN401  (an Arrow array of text or bytes)
    """Return the bytes of an array of texts, one after the other."""
    if not len(texts):
        return memoryview(b"")
    _, offsets, letters = texts.buffers()
    ends = np.frombuffer(offsets, np.int32)[texts.offset : texts.offset + len(texts) + 1]
    return memoryview(letters)[int(ends[0]) : int(ends[-1])]


# --------------------------------------------------------------------------------------------------
# Which released days were compared with which state of the roster: what did not change is not compared again.
#
#     roster_checks     by population and ledger: the roster file, the days, and their records; a table of the book
#
# While roster file and records of released days are the same, a night compares nothing. Where the file changed, its
# rows are compared as far as they are about the days that were compared before: rows that are added or ended for later
# days leave them as they were.
#
# Decisions:
#
# * The table is derived: without it, or where it is damaged, every day is compared.
# * Small rosters are compared in less time than a record takes: they have none.
# --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RosterCheck:
    """A comparison of released days with a roster that found no difference.

    Attributes:
        roster: digest of the roster file.
        through: the last day that was compared, ISO text.
        records: digest of the records of all compared days.
        members: what the roster contains about the days through this one, as `RosterDigest.digest_through`.
    """

    roster: str
    through: str
    records: str
    members: str


@dataclass(frozen=True, slots=True)
class RosterChecks:
    """The comparisons of one population in one ledger.

    Attributes:
        books: the book.
        name: population and ledger.
    """

    books: Books
    name: str

    def last_compared(self, roster_digest: RosterDigest, records: Mapping[date, str]) -> date | None:
        """Return the last day through which the present roster is known to equal the records; None for no day.

        Args:
            roster_digest: the present roster.
            records: what is known of each released day, as a text.
        """
        content = self.books.row("roster_checks", self.name) if self._applies(roster_digest) else None
        if content is None:
            return None
        check = RosterCheck(**json.loads(content))
        through = date.fromisoformat(check.through)
        if _records_digest(records, through) != check.records:
            return None
        is_same = check.roster == roster_digest.file_digest or roster_digest.digest_through(through) == check.members
        return through if is_same else None

    def store(self, roster_digest: RosterDigest, records: Mapping[date, str]) -> None:
        """Record that the present roster equals all these records, unless that is recorded."""
        if not records or not self._applies(roster_digest):
            return
        through = max(records)
        digest = _records_digest(records, through)
        content = self.books.row("roster_checks", self.name)
        before = None if content is None else RosterCheck(**json.loads(content))
        known = roster_digest.file_digest, through.isoformat(), digest
        if before is not None and (before.roster, before.through, before.records) == known:
            return
        check = RosterCheck(*known, members=roster_digest.digest_through(through))
        self.books.put_derived("roster_checks", {self.name: json.dumps(asdict(check)).encode()})

    def _applies(self, roster_digest: RosterDigest) -> bool:
        return bool(roster_digest.file_digest) and roster_digest.rows >= LEAST_ROWS


def _records_digest(records: Mapping[date, str], through: date) -> str:
    lines = [[day.isoformat(), records[day]] for day in sorted(records) if day <= through]
    return hashlib.sha256(json.dumps(lines).encode()).hexdigest()


ADVICE: Final = SOURCES["released_rosters"]


@dataclass(frozen=True, slots=True)
class RecordedRoster:
    """The roster of a day, as it was counted.

    Attributes:
        population: name of the population.
        ledger: id of the ledger that draws.
        day: the day, ISO text.
        rehearsal: whether the ledger is that of a rehearsal.
        members: digest of the members.
        groups: digest of members and groups by group column.
        released: whether the ledger was seen to have the day.
    """

    population: str
    ledger: str
    day: str
    rehearsal: bool
    members: str
    groups: Mapping[str, str]
    released: bool

    @property
    def key(self) -> str:
        """Return the key of the row in the book."""
        return json.dumps([self.population, self.ledger, self.day])


Recorded = dict[str, RecordedRoster]
"""Recorded rosters by their key."""


@dataclass(frozen=True, slots=True)
class RosterHistory:
    """The roster history of one population in one ledger.

    Attributes:
        books: the book, confidential.
        population: name of the population.
        ledger: id of the ledger.
        rehearsal: whether the ledger is that of a rehearsal, which binds no further ledger.
    """

    books: Books
    population: str
    ledger: str
    rehearsal: bool

    def released_days(self) -> set[str]:
        """Return the days that were released to the population, from whatever ledger, ISO text; none in a rehearsal."""
        recorded = () if self.rehearsal else self._read().values()
        return {roster.day for roster in recorded if self._binds_population(roster)}

    def behind(self, day: str) -> LedgerBehind:
        """Return the error about a day that was released to the population, and that its ledger lacks."""
        return LedgerBehind(
            f"{day} of {self.population!r} was released from another ledger, or a newer copy of this one. Put that "
            "ledger back, or import or recover it. To start anew, name another population: its losses are counted for "
            "the same households"
        )

    def released_ledgers(self) -> frozenset[tuple[str, str, bool]]:
        """Return (population, ledger, rehearsal) of all series that have a released day in the history."""
        recorded = self._read().values()
        return frozenset((roster.population, roster.ledger, roster.rehearsal) for roster in recorded if roster.released)

    def rehearsed_days(self) -> set[str]:
        """Return the days of the population that a rehearsal has begun, ISO text."""
        recorded = self._read().values()
        return {roster.day for roster in recorded if roster.population == self.population and roster.rehearsal}

    def check_unchanged(self, roster_digest: RosterDigest, ledger: Ledger) -> None:
        """Compare the roster with that of every released day.

        Raises:
            Refused: the first released day on which members or groups differ.
        """
        released, terms = self._released(ledger)
        lines = self._read()
        recorded = {day: self._recorded(lines, day) for day in released}
        records = {day: _record_text(recorded[day], day_rows) for day, day_rows in released.items()}
        compared = self._checks.last_compared(roster_digest, records)
        days = [day for day in released if compared is None or day > compared]
        headers = {header.seq: header for day in days if recorded[day] is None for header in released[day]}
        complete = {row.seq: row for row in ledger.rows_of(headers.values())}
        for day in days:
            recorded_roster = recorded[day]
            if recorded_roster is not None:
                _check_same_roster(roster_digest, recorded_roster)
                continue
            for row in (complete[header.seq] for header in released[day]):
                if not _has_same_counts(roster_digest, row, terms[row.contract]):
                    raise Refused(_roster_changed_text(day, has_meters=roster_digest.has_meters))
        self._checks.store(roster_digest, records)

    def before_draw(self, roster_digest: RosterDigest, columns: Sequence[str], days: Collection[date]) -> BeforeDraw:
        """Return a callback that records the roster of `days` before a draw, inside the ledger's transaction.

        One write records all coming days; it is repeated if another run has written since.
        """
        written: list[tuple[int, ...] | None] = []

        def note(day: date, history: Sequence[AnyRelease]) -> None:
            if written and written[-1] == _file_identity(self.books.path):
                return
            released = _released_by_day(history)
            coming_days = [coming_day for coming_day in days if coming_day not in released]
            is_begun = day in released  # by a run that was killed, by a concurrent one, or by another series
            with self.books.writing() as tables:
                recorded = _parse(tables.rows("released_rosters"))
                if is_begun and (roster := self._recorded(recorded, day)) is not None:
                    _check_same_roster(roster_digest, roster)
                coming = [self._roster(roster_digest, coming_day, columns) for coming_day in coming_days]
                if is_begun and all(roster.key in recorded for roster in coming):
                    return
                tables.put("released_rosters", _contents(coming))
            written.append(_file_identity(self.books.path))

        return note

    def record_rosters(self, roster_digest: RosterDigest, ledger: Ledger) -> None:
        """Mark the days of a ledger's rows as released, and record those that are not recorded yet.

        Call it after the draws are committed. Repeated calls write nothing new.

        Args:
            roster_digest: the present roster.
            ledger: the ledger.

        Raises:
            DamagedFile: the history is damaged.
            InputError: it cannot be read or written.
        """
        released, terms = self._released(ledger)
        recorded, changed = self._read(), list[RecordedRoster]()
        for day, day_rows in released.items():
            by = {terms[row.contract].series[row.series].by for row in day_rows}
            columns = {column for of_row in by for column in rosters.columns_of(of_row)}
            before = recorded.get(self._key(day))
            roster = before or self._roster(roster_digest, day, sorted(columns))
            # a ledger names the last day of a row that covers several days
            is_released = roster.released or any(row.day == day.isoformat() for row in day_rows)
            if roster is not before or is_released != roster.released:
                changed.append(replace(roster, released=is_released))
        if changed:
            self.books.put("released_rosters", _contents(changed))
        with suppress(Refused):  # the digests of this run are at hand; the next one need not compute them
            self.check_unchanged(roster_digest, ledger)

    def _released(self, ledger: Ledger) -> tuple[dict[date, list[AnyRelease]], dict[str, Contract]]:
        """Return the released rows of a ledger by day, and its contracts by hash, read after the rows that name them.

        Records are read later still: another run records a day before it draws it.
        """
        rows = ledger.history(self.population)
        terms = {contract.hash: contract.terms for contract in ledger.contracts(self.population)}
        return _released_by_day(rows, terms), terms

    @property
    def _checks(self) -> RosterChecks:
        return RosterChecks(self.books, json.dumps([self.population, self.ledger]))

    def _key(self, day: date) -> str:
        return json.dumps([self.population, self.ledger, day.isoformat()])

    def _roster(self, roster_digest: RosterDigest, day: date, columns: Sequence[str]) -> RecordedRoster:
        """Return the present roster of a day that is not released yet."""
        groups = {column: roster_digest.digest(day, column) for column in columns if roster_digest.has(column)}
        members = roster_digest.digest(day, None)
        place = self.population, self.ledger, day.isoformat(), self.rehearsal
        return RecordedRoster(*place, members, groups, released=False)

    def _read(self) -> Recorded:
        return _parse(self.books.rows("released_rosters"))

    def _binds_population(self, roster: RecordedRoster) -> bool:
        return roster.population == self.population and roster.released and not roster.rehearsal

    def _recorded(self, recorded: Recorded, day: date) -> RecordedRoster | None:
        """Return the recorded roster of a day, if need be under another ledger's id (that of a lost, recovered one)."""
        roster = recorded.get(self._key(day))
        if roster is not None or self.rehearsal:
            return roster
        same_day = (roster for roster in recorded.values() if roster.day == day.isoformat())
        return next(filter(self._binds_population, same_day), None)


def _parse(rows: Rows) -> Recorded:
    return {key: _parse_roster(content) for key, content in rows.items()}


@lru_cache(maxsize=2**14)  # each stage of a run reads them
def _parse_roster(content: bytes) -> RecordedRoster:
    return RecordedRoster(**json.loads(content))


def _contents(recorded: Iterable[RecordedRoster]) -> Rows:
    return {roster.key: json.dumps(asdict(roster)).encode() for roster in recorded}


def rows_of_table(path: Path) -> Rows:
    """Return the rows of the roster history that versions before 0.3 kept in a Parquet file.

    Raises:
        DamagedFile: the file is not as it was written.
    """
    lines = atomic_files.table_rows(atomic_files.read_table(path, table_schemas.RELEASED_ROSTERS), path)
    if not all(map(_has_group_digests, lines)):
        raise atomic_files.DamagedFile("the groups of a day are not digests")
    recorded = [
        RecordedRoster(**{**line, "day": str(line["day"]), "groups": json.loads(line["groups"])}) for line in lines
    ]
    if len(contents := _contents(recorded)) < len(lines):
        raise atomic_files.DamagedFile("a day is recorded twice")
    return contents


def _record_text(recorded: RecordedRoster | None, rows: Sequence[AnyRelease]) -> str:
    """Return what a released day is compared with, as a text."""
    if recorded is not None:
        return f"{recorded.members} {json.dumps(recorded.groups, sort_keys=True)}"
    return " ".join(row.hash for row in rows)


def _has_group_digests(line: Mapping[str, Any]) -> bool:
    try:
        groups = json.loads(line["groups"])
    except (ValueError, RecursionError):
        return False
    return isinstance(groups, dict) and all(isinstance(digest, str) for digest in groups.values())


def _released_by_day(
    rows: Sequence[AnyRelease], terms: Mapping[str, Contract] | None = None
) -> dict[date, list[AnyRelease]]:
    """Return the released rows by day; with the contracts a row of a period is at every day that it covers."""
    by_day: dict[date, list[AnyRelease]] = {}
    for row in rows:
        if row.state == "released":
            day = date.fromisoformat(row.day)
            ends = terms[row.contract].series[row.series].covered_days(day) if terms else (day, day)
            for covered in days_of(*ends):
                by_day.setdefault(covered, []).append(row)
    return {day: by_day[day] for day in sorted(by_day)}


def _check_same_roster(roster_digest: RosterDigest, recorded: RecordedRoster) -> None:
    """Compare a day with its recorded roster; a group column that no series uses any more may be missing."""
    day = date.fromisoformat(recorded.day)
    if roster_digest.digest(day, None) != recorded.members:
        raise Refused(_roster_changed_text(day, has_meters=roster_digest.has_meters))
    for column, digest in recorded.groups.items():
        if roster_digest.has(column) and roster_digest.digest(day, column) != digest:
            raise Refused(
                f"the roster's column {column!r} has other groups on {day} than when that day was released; a "
                "household may change its group from a later day on (end one row, start another)"
            )


def _has_same_counts(roster_digest: RosterDigest, row: ReleaseRecord, contract: Contract) -> bool:
    """Return whether the roster has the same number of households in each cell as the release."""
    series, min_households = contract.series[row.series], contract.population.min_households
    by, days = series.by, days_of(*series.covered_days(date.fromisoformat(row.day)))
    # a distribution has each group once per range
    released = series.by_group(row.cells, row.households)
    if not roster_digest.has(by):  # sizes of groups below min_households are not in the ledger
        return sum(number for day in days for _, number in roster_digest.cells(day, None)) >= sum(released.values())
    return dict(period_cells(roster_digest, by, days, min_households)) == released


def _roster_changed_text(day: date, *, has_meters: bool) -> str:
    what = "other households, or these have other meters," if has_meters else "other households"
    return (
        f"the roster has {what} on {day} than when that day was released; "
        "rows may be added or ended for later days only"
    )


def _file_identity(path: Path) -> tuple[int, ...] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_ino, status.st_mtime_ns, status.st_size


# --------------------------------------------------------------------------------------------------
# The roster file of a run -> its numbers of households by group and day, without its ids where it did not change.
#
#     rosters     by roster file: its size, times and digest, and the numbers of households; a table of the book
#
# While size, times and inode of the file are the same, it is not read: a night on which nothing is due loads no id.
# Where they changed, the digest of the bytes decides. The rows are read when somebody needs them.
#
# Decisions:
#
# * The table is derived: a damaged row is written again, and so are the numbers that another version computed: it may
#   read rosters differently.
# * Small rosters are parsed in less time than a record takes: they have none.
# * The times of a file that changed within two seconds of being read are not stored: it may change again unnoticed. A
#   file at a URL is always read.
# --------------------------------------------------------------------------------------------------

LEAST_BYTES: Final = 2**20
"""Rosters below this size have no record of their numbers [bytes]."""


def load_roster(location: str, books: Books, *, path_columns: Collection[str]) -> rosters.Roster:
    """Return the roster of a file; of a large one that did not change the numbers alone, until its rows are needed.

    Args:
        location: path or URL of the roster.
        books: the book of the confidential folder.
        path_columns: as in `read_roster`.

    Raises:
        InputError: as `read_roster`.
    """
    status, read_ns = _status(location), time.time_ns()
    if status is not None and status.size < LEAST_BYTES:
        return rosters.parse_roster(location, rosters.read_roster_bytes(location), path_columns=path_columns)
    is_settled = status is not None and status.touched_ns < read_ns - SETTLING_NS
    fingerprint = status.fingerprint if status is not None and is_settled else ""
    stored = books.row("rosters", location)
    table = None if stored is None else pa.ipc.open_stream(stored).read_all()
    record = {} if table is None else {key.decode(): value.decode() for key, value in table.schema.metadata.items()}
    content, digest = None, record.get("digest", "")
    if status is None or record.get("fingerprint") != status.fingerprint:
        content = rosters.read_roster_bytes(location)
        digest = hashlib.sha256(content).hexdigest()
    is_current = (record.get("digest"), record.get("version")) == (digest, version("agedp"))
    counts = _counts(table, record) if is_current else None
    if counts is None or not rosters.check_path_labels(counts.groups, path_columns):
        roster = _parse_unchanged(location, content, digest, path_columns)
        _store_roster(books, location, roster, fingerprint)
        return roster

    def load_rows() -> rosters.RosterRows:
        return _parse_unchanged(location, None, digest, path_columns).rows

    roster = rosters.Roster(load_rows, counts, read_off=counts.read_off, file_digest=digest)
    if content is not None and fingerprint:
        _store_roster(books, location, roster, fingerprint)
    return roster


def _status(location: str) -> FileStatus | None:
    """Return the status of a local file; None for one at a URL, and where reading it explains why there is none."""
    with suppress(OSError):
        return None if is_url(location) or not Path(location).is_file() else file_status(location)
    return None


def _parse_unchanged(
    location: str, content: bytes | None, digest: str, path_columns: Collection[str]
) -> rosters.Roster:
    roster = rosters.parse_roster(location, content or rosters.read_roster_bytes(location), path_columns=path_columns)
    if digest and roster.file_digest != digest:
        raise rosters.roster_error(location, "the file changed while it was read; run again")
    return roster


def _counts(table: pa.Table, record: Mapping[str, str]) -> rosters.RosterCounts:
    first, last, number = (table[name].to_numpy().astype(np.int64) for name in ("first", "last", "number"))
    return rosters.RosterCounts(first, last, number, rosters.groups_of_table(table), record["read_off"] == "1")


def _store_roster(books: Books, location: str, roster: rosters.Roster, fingerprint: str) -> None:
    """Store the numbers of a roster."""
    counts = roster.counts
    numbers = {"first": counts.first, "last": counts.last, "number": counts.number}
    record = {"digest": roster.file_digest, "read_off": str(int(roster.read_off)), "version": version("agedp")}
    table = pa.table({**numbers, **rosters.stored_groups(counts.groups)})
    table, sink = table.replace_schema_metadata({**record, "fingerprint": fingerprint}), pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    books.put_derived("rosters", {location: sink.getvalue().to_pybytes()})
