"""Claims that a ledger makes about itself: that it was closed, recovered from a folder, taken over, upgraded.

All are statement rows of no population, so that they hang in the hash chain like everything else. After a
closing row nothing can be added: the ledger goes on elsewhere, and two that go on would draw the same days
twice. A recovered ledger begins with its seam, which names the lost ledger, its head, and the hashes that the
rows behind the seam had there, so that folders published from the lost one are still found on the chain; was the
lost one recovered itself, its seam lives on in that one. A ledger that was filled from an export of one that was
never closed says behind the exported rows that the other one is lost. A ledger that was upgraded says from which row
on its rows may have a later form, and which version of agedp reads that; earlier rows stay as they are.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Final

from agedp_data.ledger.rows import StatementRecord, canonical

OF_LEDGER: Final = ""
"""The population of a mark: it is about the ledger."""


@dataclass(frozen=True, slots=True)
class ClosedLedger:
    """The ledger ended with the row of this hash, the `rows`-th, and goes on elsewhere."""

    head: str
    rows: int


@dataclass(frozen=True, slots=True)
class EarlierLedger:
    """A ledger from before the lost one: the rows behind the seam had `hashes` there ("" if it had them not).

    `files` (name, sha256) are those of the folder that the next ledger was recovered from.
    """

    ledger: str
    head: str
    hashes: tuple[str, ...]
    files: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class RecoveryRecord:
    """The rows behind this one had `hashes` in the lost ledger, of which `head` was the last one published."""

    ledger: str
    head: str
    hashes: tuple[str, ...]
    former: tuple[EarlierLedger, ...] = ()


@dataclass(frozen=True, slots=True)
class Takeover:
    """The rows so far, the last with this hash, were exported from a ledger that was not closed and is lost."""

    head: str
    rows: int


@dataclass(frozen=True, slots=True)
class LedgerUpgrade:
    """The rows behind this one may have this form, which the version `needs` of agedp reads, and all later ones."""

    form: int
    needs: str


Mark = ClosedLedger | RecoveryRecord | Takeover | LedgerUpgrade


def claim_of(mark: Mark) -> str:
    """Return the claim of a mark's statement row.

    >>> claim_of(ClosedLedger("ab", 3))
    '{"closed":{"head":"ab","rows":3}}'
    """
    if isinstance(mark, ClosedLedger):
        return canonical({"closed": {"head": mark.head, "rows": mark.rows}})
    if isinstance(mark, Takeover):
        return canonical({"taken over": {"head": mark.head, "rows": mark.rows}})
    if isinstance(mark, LedgerUpgrade):
        return canonical({"upgraded": {"form": mark.form, "needs": mark.needs}})
    said: dict[str, object] = {"ledger": mark.ledger, "head": mark.head, "hashes": list(mark.hashes)}
    if mark.former:
        said["former"] = [_said(each) for each in mark.former]
    return canonical({"recovered": said})


def _said(former: EarlierLedger) -> dict[str, object]:
    hashes, files = list(former.hashes), dict(former.files)
    return {"ledger": former.ledger, "head": former.head, "hashes": hashes, "files": files}


def mark_of(row: StatementRecord) -> Mark | None:
    """Return the mark that a statement row is; None if it is a statement, or a mark that says nothing known."""
    if row.population != OF_LEDGER:
        return None
    try:
        return _read(json.loads(row.claim))
    except (ValueError, LookupError, TypeError, RecursionError):
        return None


def _read(claim: dict[str, dict[str, object]]) -> Mark | None:
    [(kind, said)] = claim.items() if isinstance(claim, dict) and len(claim) == 1 else [("", {})]
    match kind, said:
        case "closed", {"head": str(head), "rows": int(rows)}:
            return ClosedLedger(head, rows)
        case "taken over", {"head": str(head), "rows": int(rows)}:
            return Takeover(head, rows)
        case "upgraded", {"form": int(form), "needs": str(needs)}:
            return LedgerUpgrade(form, needs)
        case "recovered", {"ledger": str(ledger), "head": str(head), "hashes": [*hashes]}:
            former = said.get("former", [])
            return RecoveryRecord(ledger, head, _texts(hashes), tuple(_former(each) for each in _list(former)))
    return None


def _former(said: object) -> EarlierLedger:
    match said:
        case {"ledger": str(ledger), "head": str(head), "hashes": [*hashes], "files": {**files}}:
            return EarlierLedger(
                ledger, head, _texts(hashes), tuple(sorted((str(key), str(files[key])) for key in files))
            )
    raise ValueError("no former ledger")


def _list(said: object) -> list[object]:
    if isinstance(said, list):
        return said
    raise ValueError("no list")


def _texts(hashes: list[object]) -> tuple[str, ...]:
    return tuple(str(each) for each in hashes)
