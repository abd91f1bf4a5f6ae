"""Rows on their way between ledgers: as lines of JSON, read again, and sealed into a new chain.

A file of rows begins with a header (`schema`, the ledger's schema `version`, its `ledger` id and `head`, how
many `rows` follow, whether they are the `whole` of it, and if so whether it was `closed`, so that it cannot go on);
then one object a line: table, text, hash. A release folder carries such a file of its own population, from which a
lost ledger can be recovered: statements are left out there (they would repeat every claim ever made) but for the seam
of a ledger that was recovered itself, so the rows cannot keep their hashes in the new chain.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from agedp_data.config.meanings import meaning_of
from agedp_data.errors import LedgerError
from agedp_data.format_versions import format_reader_version
from agedp_data.ledger.chain import HashChain
from agedp_data.ledger.ledger import Ledger
from agedp_data.ledger.marks import OF_LEDGER, EarlierLedger, RecoveryRecord, Takeover, claim_of, mark_of
from agedp_data.ledger.rows import (
    NO_HASH,
    ContractRecord,
    ModelRecord,
    ReleaseRecord,
    Row,
    StatementRecord,
    canonical,
    columns_of,
    row_of_text,
    sha256,
    table_of,
    text_of,
)
from agedp_data.ledger.schema import READS, VERSION

SCHEMA: Final = "agedp-ledger-rows-1"


@dataclass(frozen=True, slots=True)
class LedgerExport:
    """Rows of a ledger, oldest first, with that ledger's id and head; `whole` if none is left out.

    `closed` tells of a whole ledger that it ended with these rows, but for its closing mark.
    """

    ledger: str
    head: str
    whole: bool
    rows: tuple[Row, ...]
    closed: bool = False


def lines(found: LedgerExport) -> str:
    """Return rows as a file."""
    header = {
        "schema": SCHEMA,
        "version": VERSION,
        **({"needs": READS[VERSION]} if VERSION != "1" else {}),
        "ledger": found.ledger,
        "head": found.head,
        "rows": len(found.rows),
        "whole": int(found.whole),
        **({"closed": int(found.closed)} if found.whole else {}),
    }
    said = ({"table": table_of(row), "text": text_of(row), "hash": row.hash} for row in found.rows)
    return "".join(f"{canonical(each)}\n" for each in (header, *said))


def read_lines(text: str) -> LedgerExport:
    """Return the rows of a file; their hashes are taken as they stand.

    Raises:
        LedgerError: no such file, one of a newer agedp, one that was cut off; or the first line that is no row.
    """
    header, *said = [_object(number, line) for number, line in enumerate(text.split("\n")[:-1], 1)] or [{}]
    if header.get("schema") != SCHEMA:
        raise LedgerError("this is no file of ledger rows that this agedp knows; `agedp ledger export` writes one")
    if header.get("version") not in READS:
        version, reader = ascii(header.get("version")), format_reader_version(header.get("needs"))
        raise LedgerError(f"the file of ledger rows has version {version}, which {reader} reads; update agedp")
    if header.get("rows") != len(said) or not text.endswith("\n"):
        raise LedgerError("the file of ledger rows was cut off; write or fetch it again")
    rows = tuple(_row(number, each) for number, each in enumerate(said, 2))
    whole, closed = (header.get(key) == 1 for key in ("whole", "closed"))
    return LedgerExport(str(header.get("ledger")), str(header.get("head")), whole, rows, closed)


def _object(number: int, line: str) -> dict[str, Any]:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise LedgerError(f"line {number} is no row of a ledger; take a good copy of the file")
    return found


def _row(number: int, said: Mapping[str, Any]) -> Row:
    try:
        if set(said) == {"table", "text", "hash"} and all(isinstance(each, str) for each in said.values()):
            return row_of_text(said["table"], said["text"], said["hash"])
        what = "it holds no row of a ledger"
    except ValueError as error:
        what = str(error)
    raise LedgerError(f"line {number} is no row of a ledger: {what}; take a good copy of the file")


def whole_of(rows: Sequence[Row], *, closed: bool = False) -> LedgerExport:
    """Return all rows of a ledger as what is exported; `closed` if nothing can be added to them there any more."""
    first, last = (rows[0].hash, rows[-1].hash) if rows else ("", NO_HASH)
    return LedgerExport(first, last, whole=True, rows=tuple(rows), closed=closed)


def published_rows(ledger: Ledger, population: str, *, head: str) -> LedgerExport:
    """Return what a release folder of a population carries: its contracts, models and releases up to `head`, the seam.

    Raises:
        LedgerError: `head` is no row of the ledger.
    """
    place = ledger.place(head)
    if place is None:
        raise LedgerError("the head that was asked for lies on no row of the ledger")
    upto = [row for row in ledger.everything() if row.seq <= place]
    own = [row for row in upto if isinstance(row, ContractRecord | ReleaseRecord) and row.population == population]
    named = {row.model for row in own if isinstance(row, ReleaseRecord)}
    named |= {_model_named(row) for row in own if isinstance(row, ContractRecord)}
    models = [row for row in upto if isinstance(row, ModelRecord) and row.model in named]
    rows: list[Row] = [*_seams(upto), *own, *models]
    return LedgerExport(ledger.id, head, whole=False, rows=tuple(sorted(rows, key=lambda row: row.seq)))


def _model_named(row: ContractRecord) -> str:
    model = meaning_of(row.promise).get("model", {})
    return str(model.get("hash", "")) if isinstance(model, dict) else ""


def _seams(rows: Iterable[Row]) -> list[StatementRecord]:
    return [row for row in rows if isinstance(row, StatementRecord) and isinstance(mark_of(row), RecoveryRecord)]


def recovered(found: LedgerExport, statement: StatementRecord, *, at: str) -> tuple[Row, ...]:
    """Return a new chain: the seam, the rows of a folder sealed anew, and the folder's own statement.

    The seam names the lost ledger, the hashes its rows had there, and the files that they were read from; and the
    same of each ledger before it, if the lost one had been recovered itself.

    Raises:
        LedgerError: rows that do not follow from each other.
    """
    behind = [row for row in found.rows if not isinstance(row, StatementRecord)]
    former = [each for row in _seams(found.rows) for each in _former(row, behind)]
    mark = RecoveryRecord(found.ledger, found.head, tuple(row.hash for row in behind), tuple(former))
    seam = StatementRecord(OF_LEDGER, claim_of(mark), statement.files, statement.software, at=at)
    return _sealed([seam, *behind, statement])


def _former(seam: StatementRecord, behind: Sequence[Row]) -> list[EarlierLedger]:
    """Return the ledgers that a seam names, their hashes in the order of the rows that are now behind it."""
    mark = mark_of(seam)
    if not isinstance(mark, RecoveryRecord):
        return []
    lost = EarlierLedger(mark.ledger, mark.head, mark.hashes, seam.files)
    return [replace(each, hashes=_hashes(seam.seq, each.hashes, behind)) for each in (*mark.former, lost)]


def _hashes(seam: int, hashes: Sequence[str], behind: Sequence[Row]) -> tuple[str, ...]:
    had = dict(enumerate(hashes, seam + 1))
    last = max((number for number, row in enumerate(behind, 1) if had.get(row.seq)), default=0)
    return tuple(had.get(row.seq, "") for row in behind[:last])


def taken_over(found: LedgerExport, *, at: str) -> tuple[Row, ...]:
    """Return exported rows and a mark that the ledger they come from was never closed and is lost."""
    length = len(found.rows)
    mark = StatementRecord(OF_LEDGER, claim_of(Takeover(found.head, length)), (), "", seq=length + 1, at=at)
    return *found.rows, replace(mark, hash=sha256(found.head + text_of(mark)))


def _sealed(rows: Iterable[Row]) -> tuple[Row, ...]:
    """Number and hash rows as one chain; releases refer to the contracts by their new hashes."""
    chain, made, contracts = HashChain(), list[Row](), dict[str, str]()
    for row in rows:
        fresh = row
        if isinstance(fresh, ReleaseRecord):
            fresh = replace(fresh, contract=contracts.get(fresh.contract, ""))
        fresh = replace(fresh, seq=chain.length + 1)
        fresh = replace(fresh, hash=chain.sealed(fresh))
        faults = chain.add(table_of(fresh), columns_of(fresh))
        if faults:
            raise LedgerError(f"the rows make no ledger: {faults[0].table}: {faults[0].what}; take a good copy")
        if isinstance(row, ContractRecord):
            contracts[row.hash] = fresh.hash
        made.append(fresh)
    return tuple(made)
