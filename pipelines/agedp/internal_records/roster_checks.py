"""Which released days were compared with which state of the roster: what did not change is not compared again.

    <confidential>/roster/checked.json     by population and ledger: the roster file, the days, and their records

While roster file and records of released days are the same, a night compares nothing. Where the file changed, its rows
are compared as far as they are about the days that were compared before: rows that are added or ended for later days
leave them as they were.

Decisions:

* The file is derived: without it, or where it is damaged, every day is compared.
* Small rosters are compared in less time than the file takes: they have none.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import date
from pathlib import Path
from typing import Final

from agedp.internal_records.roster_digest import LEAST_ROWS, RosterDigest
from agedp.local_files import atomic_files
from agedp.local_files.checksums import checked_json, read_checked_json
from agedp.local_files.internal_files import FileKind, read_content
from agedp_data.errors import InputError

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
        return read_content(self.path, _parse, FileKind.DERIVED, advice="").value or {}


def _parse(path: Path) -> dict[str, RosterCheck]:
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
