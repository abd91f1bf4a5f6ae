"""Two claims that a ledger makes about itself: that it was closed, and that it was recovered from a folder.

Both are statement rows of no population, so that they hang in the hash chain like everything else. After a
closing row nothing can be added: the ledger goes on elsewhere, and two that go on would draw the same days
twice. A recovered ledger begins with its seam, which names the lost ledger, its head, and the hashes that the
rows behind the seam had there, so that folders published from the lost one are still found on the chain.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Final

from agedp_data.ledger.rows import Statement, canonical

OF_LEDGER: Final = ""
"""The population of a mark: it is about the ledger."""


@dataclass(frozen=True, slots=True)
class Closed:
    """The ledger ended with the row of this hash, the `rows`-th, and goes on elsewhere."""

    head: str
    rows: int


@dataclass(frozen=True, slots=True)
class Recovered:
    """The rows behind this one had `hashes` in the lost ledger, of which `head` was the last one published."""

    ledger: str
    head: str
    hashes: tuple[str, ...]


Mark = Closed | Recovered


def claim_of(mark: Mark) -> str:
    """Return the claim of a mark's statement row.

    >>> claim_of(Closed("ab", 3))
    '{"closed":{"head":"ab","rows":3}}'
    """
    if isinstance(mark, Closed):
        return canonical({"closed": {"head": mark.head, "rows": mark.rows}})
    return canonical({"recovered": {"ledger": mark.ledger, "head": mark.head, "hashes": list(mark.hashes)}})


def mark_of(row: Statement) -> Mark | None:
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
            return Closed(head, rows)
        case "recovered", {"ledger": str(ledger), "head": str(head), "hashes": [*hashes]}:
            return Recovered(ledger, head, tuple(str(each) for each in hashes))
    return None
