"""LEDGER -> file -> LEDGER, and release folder -> LEDGER: moving a ledger, and restoring one that was lost.

Only one ledger may go on: `export` with `closed_at` ends the old one in the transaction in which its rows leave.
A recovered ledger cannot have the old hashes, because a folder does not carry every claim ever made; it begins
with a seam that names them (`agedp_data.ledger.marks`), and further releases continue behind the folder's last.
A folder carries its own population only: others of a lost ledger are recovered to ledgers of their own.
"""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path

from agedp_data import clock
from agedp_data.errors import InputError, LedgerError
from agedp_data.ledger import Contract, Ledger, Release, Statement, canonical
from agedp_data.ledger.moves import Rows, lines, read_lines, recovered, whole_of
from agedp_data.ledger.rows import Row
from pipelines import folders
from pipelines.compare import averages_of, require_same, told
from pipelines.received import ROWS, ReleaseFolder, open_release


def export_ledger(url: str, path: Path, *, closed_at: date | None = None) -> int:
    """Write every row of a ledger to a file, close the ledger on the way if `closed_at` is given; return how many.

    A closed ledger can be exported again, with `closed_at` or without: the file is the same.

    Raises:
        LedgerError: no such ledger, or a file of that name.
    """
    if path.exists():
        raise LedgerError("the file to export to exists; name a new one", private=f"{path} exists; name a new file")
    written: list[Row] = []

    def write(rows: tuple[Row, ...]) -> None:
        written.extend(rows)
        folders.write(path, lines(whole_of(rows)).encode("ascii"))

    with Ledger.open(url) as ledger:
        if closed_at is None and not ledger.closed():
            write(ledger.everything())
        else:
            ledger.hand_over(write, at=closed_at or clock.today())
    return len(written)


def import_ledger(path: Path, url: str) -> int:
    """Fill an empty new ledger with the rows of an exported file, every hash recomputed; return how many.

    Raises:
        LedgerError: a file that is no export or was changed, or a ledger that is not empty.
    """
    found = read_lines(_text(path))
    if not found.whole:
        raise LedgerError("these rows are a part of a ledger; `agedp ledger recover FOLDER` restores one from them")
    if (found.ledger, found.head) != (whole_of(found.rows).ledger, whole_of(found.rows).head):
        raise LedgerError("the file of ledger rows ends elsewhere than it says; take a good copy")
    _fill(url, found.rows)
    return len(found.rows)


def recover(path: Path, url: str, *, at: date) -> int:
    """Restore a lost ledger from a release folder into an empty new one; return how many releases came back.

    Raises:
        InputError: the folder is not as it was published.
        LedgerError: it does not carry its rows, they disagree with what it says, or the ledger is not empty.
    """
    folder = open_release(path)
    folder.verify()
    found = _carried(folder)
    claim = json.dumps(folder.statement, sort_keys=True, ensure_ascii=True)
    population, software = str(folder.statement["population"]), folder.statement["software"]
    files = tuple(sorted(folder.checksums.items()))
    statement = Statement(population, claim, files, json.dumps(software, sort_keys=True), at=_newest(found))
    _fill(url, recovered(found, statement, at=at.isoformat()))
    return sum(isinstance(row, Release) for row in found.rows)


def _carried(folder: ReleaseFolder) -> Rows:
    """Return the rows that a folder carries, checked against its statement and its daily averages."""
    if ROWS not in folder.checksums:
        raise LedgerError(f"the folder carries no {ROWS}; a ledger can be recovered from folders that do")
    found = read_lines(_text(folder.path / ROWS))
    claim = folder.statement
    contracts = [row for row in found.rows if isinstance(row, Contract)]
    releases = [row for row in found.rows if isinstance(row, Release)]
    if {row.population for row in contracts} | {row.population for row in releases} != {claim["population"]}:
        raise LedgerError(f"{ROWS} and statement.json are of different populations")
    if not contracts or contracts[-1].promise != canonical(claim["contract"]):
        raise LedgerError(f"{ROWS} and statement.json hold different contracts")
    if {"id": found.ledger, "head": found.head} != claim["ledger"]:
        raise LedgerError(f"{ROWS} and statement.json are of different ledgers")
    if not {row.contract for row in releases} <= {row.hash for row in contracts}:
        raise LedgerError(f"{ROWS} lacks a contract that its releases name")
    require_same(told(folder), averages_of(releases, contracts))
    return found


def _newest(found: Rows) -> str:
    return max((row.published_on for row in found.rows if isinstance(row, Release)), default=found.rows[0].at)


def _fill(url: str, rows: tuple[Row, ...]) -> None:
    with Ledger.open(url, create=True) as ledger:
        ledger.fill(rows)


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii")
    except (OSError, UnicodeDecodeError):
        raise InputError(
            "the file of ledger rows is missing or damaged", private=f"{path}: missing or damaged; take a good copy"
        ) from None
