"""Roster history: members and groups of every released day, because a roster may change for later days only.

    <confidential>/released_rosters.parquet     by population, ledger and day: digests of members and of groups

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
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import date
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from agedp.budget import period_cells
from agedp.local_files import atomic_files
from agedp.local_files.atomic_files import (
    FileKind,
    checked_json,
    read_checked_json,
    read_columns,
    read_content,
    read_derived,
)
from agedp.stage_values import BeforeDraw
from agedp_data import roster as rosters
from agedp_data import table_schemas
from agedp_data.config.contract import Contract
from agedp_data.datasets.filesystem import SETTLING_NS, FileStatus, file_status, is_url
from agedp_data.datasets.timestamps import day_number
from agedp_data.datasets.validation import Ints
from agedp_data.errors import InputError, LedgerBehind, Refused
from agedp_data.ledger import ContractRecord, Ledger, ReleaseRecord
from agedp_data.ledger.records import AnyRelease
from agedp_data.meters import HOUSEHOLD
from agedp_data.series.series_terms import days_of

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
        return int(self._roster.counts.number.sum())

    def has(self, by: rosters.GroupColumns) -> bool:
        """Return whether the roster has these group columns."""
        return self._roster.has(by)

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
            members = lines.filter(pa.array(self._roster.on(day)[order]))
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
            self._cells[key] = self._roster.cells(day, by)
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
#     <confidential>/roster/checked.json     by population and ledger: the roster file, the days, and their records
#
# While roster file and records of released days are the same, a night compares nothing. Where the file changed, its
# rows are compared as far as they are about the days that were compared before: rows that are added or ended for later
# days leave them as they were.
#
# Decisions:
#
# * The file is derived: without it, or where it is damaged, every day is compared.
# * Small rosters are compared in less time than the file takes: they have none.
# --------------------------------------------------------------------------------------------------

_FORMAT: Final = 1


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
        path: the file.
        name: population and ledger.
    """

    path: Path
    name: str

    def last_compared(self, roster_digest: RosterDigest, records: Mapping[date, str]) -> date | None:
        """Return the last day through which the present roster is known to equal the records; None for no day.

        Args:
            roster_digest: the present roster.
            records: what is known of each released day, as a text.
        """
        check = self._read().get(self.name) if self._applies(roster_digest) else None
        if check is None:
            return None
        through = date.fromisoformat(check.through)
        if _records_digest(records, through) != check.records:
            return None
        is_same = check.roster == roster_digest.file_digest or roster_digest.digest_through(through) == check.members
        return through if is_same else None

    def store(self, roster_digest: RosterDigest, records: Mapping[date, str]) -> None:
        """Record that the present roster equals all these records, unless that is recorded."""
        if not records or not self._applies(roster_digest):
            return
        through, checks = max(records), self._read()
        before, digest = checks.get(self.name), _records_digest(records, through)
        known = roster_digest.file_digest, through.isoformat(), digest
        if before is not None and (before.roster, before.through, before.records) == known:
            return
        checks[self.name] = RosterCheck(*known, members=roster_digest.digest_through(through))
        with suppress(InputError):  # without permission or space the next run compares again
            atomic_files.make_private(self.path.parent)
            content = {name: asdict(check) for name, check in checks.items()}
            atomic_files.write(self.path, checked_json({"format": _FORMAT, "checks": content}))

    def _applies(self, roster_digest: RosterDigest) -> bool:
        return bool(roster_digest.file_digest) and roster_digest.rows >= LEAST_ROWS

    def _read(self) -> dict[str, RosterCheck]:
        return read_derived(self.path, _parse_checks) or {}


def _parse_checks(path: Path) -> dict[str, RosterCheck]:
    record = read_checked_json(path.read_bytes())
    if record["format"] != _FORMAT:
        raise ValueError("it is of another version")
    checks = {name: RosterCheck(**check) for name, check in record["checks"].items()}
    for check in checks.values():
        date.fromisoformat(check.through)
    return checks


def _records_digest(records: Mapping[date, str], through: date) -> str:
    lines = [[day.isoformat(), records[day]] for day in sorted(records) if day <= through]
    return hashlib.sha256(json.dumps(lines).encode()).hexdigest()


_Key = tuple[str, str, date]
_RosterRow = dict[str, Any]
_ADVICE = (
    "put back a copy of it, or remove it: then only the numbers of households are compared with those of released days"
)


@dataclass(frozen=True, slots=True)
class RosterHistory:
    """The roster history of one population in one ledger.

    Attributes:
        path: the table, confidential.
        population: name of the population.
        ledger: id of the ledger.
        rehearsal: whether the ledger is that of a rehearsal, which binds no further ledger.
    """

    path: Path
    population: str
    ledger: str
    rehearsal: bool

    def check_none_beyond(self, rows: Collection[AnyRelease]) -> None:
        """Check that a ledger with these rows contains every day that was released to the population.

        Raises:
            LedgerBehind: the first day that is missing from it.
        """
        lines = () if self.rehearsal else self._read().values()
        released = {line["day"].isoformat() for line in lines if self._binds_population(line)}
        if missing := released - {row.day for row in rows}:
            raise self.behind(min(missing))

    def behind(self, day: str) -> LedgerBehind:
        """Return the error about a day that was released to the population, and that its ledger lacks."""
        return LedgerBehind(
            f"{day} of {self.population!r} was released from another ledger, or a newer copy of this one. Put that "
            "ledger back, or import or recover it. To start anew, name another population: its losses are counted for "
            "the same households"
        )

    def released_ledgers(self) -> frozenset[tuple[str, str, bool]]:
        """Return (population, ledger, rehearsal) of all series that have a released day in the history."""
        lines = self._read().values()
        return frozenset((line["population"], line["ledger"], line["rehearsal"]) for line in lines if line["released"])

    def rehearsed_days(self) -> set[str]:
        """Return the days of the population that a rehearsal has begun, ISO text."""
        lines = [line for line in self._read().values() if line["population"] == self.population]
        return {line["day"].isoformat() for line in lines if line["rehearsal"]}

    def check_unchanged(self, roster_digest: RosterDigest, ledger: Ledger, contracts: Sequence[ContractRecord]) -> None:
        """Compare the roster with that of every released day.

        Raises:
            Refused: the first released day on which members or groups differ.
        """
        lines, terms = self._read(), {contract.hash: contract.terms for contract in contracts}
        released = _released_by_day(ledger.history(self.population), terms)
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
            if written and written[-1] == _file_identity(self.path):
                return
            with atomic_files.exclusive_lock(self.path.parent):
                lines, released = self._read(), _released_by_day(history)
                is_begun = day in released  # by a run that was killed, by a concurrent one, or by another series
                if is_begun and (recorded := self._recorded(lines, day)) is not None:
                    _check_same_roster(roster_digest, recorded)
                coming_days = [coming_day for coming_day in days if coming_day not in released]
                if is_begun and all(self._key(coming_day) in lines for coming_day in coming_days):
                    return
                lines |= {
                    self._key(coming_day): self._roster_row(roster_digest, coming_day, columns, released=False)
                    for coming_day in coming_days
                }
                _write(self.path, lines)
                written.append(_file_identity(self.path))

        return note

    def record_rosters(self, roster_digest: RosterDigest, ledger: Ledger, contracts: Sequence[ContractRecord]) -> None:
        """Mark the days of a ledger's rows as released, and record those that are not recorded yet.

        Call it after the draws are committed. Repeated calls write nothing new.

        Args:
            roster_digest: the present roster.
            ledger: the ledger.
            contracts: the contracts of its rows, which decide the group columns.

        Raises:
            DamagedFile: the history is damaged.
            InputError: it cannot be read or written.
        """
        terms = {contract.hash: contract.terms for contract in contracts}
        with atomic_files.exclusive_lock(self.path.parent):
            lines = self._read()
            before = {key: dict(line) for key, line in lines.items()}
            history = ledger.history(self.population)
            for day, day_rows in _released_by_day(history, terms).items():
                by = {terms[row.contract].series[row.series].by for row in day_rows}
                columns = {column for of_row in by for column in rosters.columns_of(of_row)}
                if self._key(day) not in lines:
                    lines[self._key(day)] = self._roster_row(roster_digest, day, sorted(columns), released=False)
                # a ledger names the last day of a row that covers several days
                lines[self._key(day)]["released"] |= any(row.day == day.isoformat() for row in day_rows)
            if lines != before:
                _write(self.path, lines)
        with suppress(Refused):  # the digests of this run are at hand; the next one need not compute them
            self.check_unchanged(roster_digest, ledger, contracts)

    @property
    def _checks(self) -> RosterChecks:
        return RosterChecks(self.path.parent / "roster" / "checked.json", json.dumps([self.population, self.ledger]))

    def _key(self, day: date) -> _Key:
        return self.population, self.ledger, day

    def _roster_row(
        self, roster_digest: RosterDigest, day: date, columns: Sequence[str], *, released: bool
    ) -> _RosterRow:
        groups = {column: roster_digest.digest(day, column) for column in columns if roster_digest.has(column)}
        return {
            "population": self.population,
            "ledger": self.ledger,
            "day": day,
            "rehearsal": self.rehearsal,
            "members": roster_digest.digest(day, None),
            "groups": json.dumps(groups, sort_keys=True),
            "released": released,
        }

    def _read(self) -> dict[_Key, _RosterRow]:
        return read_content(self.path, _parse, FileKind.SOURCE, advice=_ADVICE).value or {}

    def _binds_population(self, line: _RosterRow) -> bool:
        return line["population"] == self.population and line["released"] and not line["rehearsal"]

    def _recorded(self, lines: Mapping[_Key, _RosterRow], day: date) -> _RosterRow | None:
        """Return the recorded roster of a day, if need be under another ledger's id (that of a lost, recovered one)."""
        recorded = lines.get(self._key(day))
        if recorded is not None or self.rehearsal:
            return recorded
        return next((line for key, line in lines.items() if key[2] == day and self._binds_population(line)), None)


def _parse(path: Path) -> dict[_Key, _RosterRow]:
    lines = atomic_files.table_rows(atomic_files.read_table(path, table_schemas.RELEASED_ROSTERS), path)
    by_key = {(line["population"], line["ledger"], line["day"]): line for line in lines}
    if len(by_key) < len(lines) or not all(map(_has_group_digests, lines)):
        raise atomic_files.DamagedFile("a day is recorded twice, or its groups are not digests")
    return by_key


def _record_text(recorded: _RosterRow | None, rows: Sequence[AnyRelease]) -> str:
    """Return what a released day is compared with, as a text."""
    if recorded is not None:
        return f"{recorded['members']} {recorded['groups']}"
    return " ".join(row.hash for row in rows)


def _has_group_digests(line: _RosterRow) -> bool:
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


def _check_same_roster(roster_digest: RosterDigest, recorded: Mapping[str, Any]) -> None:
    """Compare a day with its recorded roster; a group column that no series uses any more may be missing."""
    day = recorded["day"]
    if roster_digest.digest(day, None) != recorded["members"]:
        raise Refused(_roster_changed_text(day, has_meters=roster_digest.has_meters))
    for column, digest in json.loads(recorded["groups"]).items():
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


def _write(path: Path, lines: Mapping[_Key, _RosterRow]) -> None:
    ordered = [lines[key] for key in sorted(lines)]
    atomic_files.write_table(path, table_schemas.table_from_rows(table_schemas.RELEASED_ROSTERS, ordered))


# --------------------------------------------------------------------------------------------------
# The roster file of a run -> its numbers of households by group and day, without its ids where it did not change.
#
#     <confidential>/roster/file.json         size, times and digest of the roster file
#     <confidential>/roster/counts.parquet    the numbers of households, with the digest of their file
#
# While size, times and inode of the file are the same, it is not read: a night on which nothing is due loads no id.
# Where they changed, the digest of the bytes decides. The rows are read when somebody needs them.
#
# Decisions:
#
# * Both files are derived. A damaged one is written again, and so are the numbers that another version computed: it
#   may read rosters differently.
# * Small rosters are parsed in less time than a cache takes: they have none.
# * The times of a file that changed within two seconds of being read are not stored: it may change again unnoticed. A
#   file at a URL is always read.
# --------------------------------------------------------------------------------------------------

LEAST_BYTES: Final = 2**20
"""Rosters below this size have no cache [bytes]."""
_DIGEST, _READ_OFF, _VERSION = b"roster", b"read_off", b"version"


def load_roster(location: str, folder: Path, *, path_columns: Collection[str]) -> rosters.Roster:
    """Return the roster of a file; of a large one that did not change the numbers alone, until its rows are needed.

    Args:
        location: path or URL of the roster.
        folder: the folder `roster` of the confidential folder.
        path_columns: as in `read_roster`.

    Raises:
        InputError: as `read_roster`.
    """
    status, read_ns = _status(location), time.time_ns()
    if status is not None and status.size < LEAST_BYTES:
        return rosters.parse_roster(location, rosters.read_roster_bytes(location), path_columns=path_columns)
    digest = None if status is None else _known_digest(folder, location, status)
    content = None
    if digest is None:
        content = rosters.read_roster_bytes(location)
        digest = hashlib.sha256(content).hexdigest()
    counts = _read_counts(folder, digest)
    is_settled = status is not None and status.touched_ns < read_ns - SETTLING_NS
    if counts is None or not rosters.check_path_labels(counts.groups, path_columns):
        roster = _parse_unchanged(location, content, digest, path_columns)
        _write_counts(folder, location, roster, status if is_settled else None)
        return roster
    if content is not None:
        _write_status(folder, location, digest, status if is_settled else None)

    def load_rows() -> rosters.RosterRows:
        return _parse_unchanged(location, None, digest, path_columns).rows

    return rosters.Roster.of_counts(counts, load_rows, file_digest=digest)


def _version() -> bytes:
    return version("agedp").encode()


def _status(location: str) -> FileStatus | None:
    """Return the status of a local file; None for one at a URL, and where reading it explains why there is none."""
    with suppress(OSError):
        return None if is_url(location) or not Path(location).is_file() else file_status(location)
    return None


def _parse_unchanged(
    location: str, content: bytes | None, digest: str, path_columns: Collection[str]
) -> rosters.Roster:
    roster = rosters.parse_roster(location, content or rosters.read_roster_bytes(location), path_columns=path_columns)
    if roster.file_digest != digest:
        raise rosters.roster_error(location, "the file changed while it was read; run again")
    return roster


def _known_digest(folder: Path, location: str, status: FileStatus) -> str | None:
    """Return the digest of a file that did not change since it was stored; None if it may have changed."""

    def parse(path: Path) -> tuple[str, str, str]:
        record = read_checked_json(path.read_bytes())
        return str(record["location"]), str(record["fingerprint"]), str(record["digest"])

    stored = read_derived(folder / "file.json", parse)
    return stored[2] if stored is not None and stored[:2] == (location, status.fingerprint) else None


def _read_counts(folder: Path, digest: str) -> rosters.RosterCounts | None:
    """Return the stored numbers of the roster with this digest."""
    table = read_derived(folder / "counts.parquet", read_columns)
    metadata = {} if table is None else table.schema.metadata or {}
    if table is None or (metadata.get(_DIGEST), metadata.get(_VERSION)) != (digest.encode(), _version()):
        return None
    first, last, number = (table[name].to_numpy().astype(np.int64) for name in ("first", "last", "number"))
    return rosters.RosterCounts(first, last, number, rosters.groups_of_table(table), metadata.get(_READ_OFF) == b"1")


def _write_counts(folder: Path, location: str, roster: rosters.Roster, status: FileStatus | None) -> None:
    """Store the numbers of a roster; without permission or space the next run computes them again."""
    counts = roster.counts
    numbers = {"first": counts.first, "last": counts.last, "number": counts.number}
    table = pa.table({**numbers, **rosters.stored_groups(counts.groups)})
    read_off = b"1" if roster.read_off else b"0"
    metadata = {_DIGEST: roster.file_digest.encode(), _READ_OFF: read_off, _VERSION: _version()}
    with suppress(InputError):
        atomic_files.make_private(folder)
        atomic_files.write_table(folder / "counts.parquet", table.replace_schema_metadata(metadata), sync=False)
    _write_status(folder, location, roster.file_digest, status)


def _write_status(folder: Path, location: str, digest: str, status: FileStatus | None) -> None:
    if status is not None:
        record = {"location": location, "fingerprint": status.fingerprint, "digest": digest}
        with suppress(InputError):
            atomic_files.write(folder / "file.json", checked_json(record))
