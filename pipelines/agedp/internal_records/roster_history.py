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

import json
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

from agedp.covered_days import period_cells
from agedp.internal_records.roster_checks import RosterChecks
from agedp.internal_records.roster_digest import RosterDigest
from agedp.local_files import atomic_files, locks
from agedp.local_files.internal_files import FileKind, read_content
from agedp.stage_values import BeforeDraw
from agedp_data import table_schemas
from agedp_data.config.contract import Contract
from agedp_data.errors import LedgerBehind, Refused
from agedp_data.ledger import ContractRecord, Ledger, ReleaseRecord
from agedp_data.ledger.release_headers import AnyRelease
from agedp_data.roster import columns_of
from agedp_data.series.periods import days_of

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
        ledger_days = {row.day for row in rows}
        rows_on_file = () if self.rehearsal else self._read().values()
        released = {
            row_on_file["day"].isoformat() for row_on_file in rows_on_file if self._binds_population(row_on_file)
        }
        if released - ledger_days:
            raise LedgerBehind(
                f"{min(released - ledger_days)} of {self.population!r} was released from another ledger, or a newer "
                "copy of this one. Put that ledger back, or import or recover it. To start anew, name another "
                "population: its losses are counted for the same households"
            )

    def released_ledgers(self) -> frozenset[tuple[str, str, bool]]:
        """Return (population, ledger, rehearsal) of all series that have a released day in the history."""
        lines = self._read().values()
        return frozenset((line["population"], line["ledger"], line["rehearsal"]) for line in lines if line["released"])

    def rehearsed_days(self) -> set[str]:
        """Return the days of the population that a rehearsal has begun, ISO text."""
        lines = self._read().values()
        return {
            line["day"].isoformat() for line in lines if line["population"] == self.population and line["rehearsal"]
        }

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
            with locks.exclusive_lock(self.path.parent):
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
        with locks.exclusive_lock(self.path.parent):
            lines = self._read()
            before = {key: dict(line) for key, line in lines.items()}
            history = ledger.history(self.population)
            for day, day_rows in _released_by_day(history, terms).items():
                by = {terms[row.contract].series[row.series].by for row in day_rows}
                columns = {column for of_row in by for column in columns_of(of_row)}
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
