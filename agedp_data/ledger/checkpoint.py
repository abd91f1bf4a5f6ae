"""A checkpoint: the end of a reading of a ledger that verified every row, so that the next one goes on from there.

It holds what `HashChain` holds: numbers and hashes of all rows, contracts, records of the ledger's life, headers of
releases. It is derived. A checkpoint that is missing, damaged or of another version costs one complete reading.

    {"checkpoint": 1, "ledger": "../l.sqlite", "sha256": "5b1c...", "software": "0.2.0", "verified_on": "2026-03-04"}
    {"content_head": "9f3c...", "hashes": ["1b7a...", ...], "releases": {"day": ["2013-01-01", ...], ...}, ...}

Decisions.

* The checksum finds damage, not forgery: who can write here can write the ledger too. Hashes on release folders and at
  the witness, and complete readings by the calendar, are what finds a forged ledger.
* The software's version is part of it: another version may have further rules for rows, so it reads all of them. The
  hashes of an earlier version's checkpoint are still compared, so that an older copy is noticed.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields
from datetime import date
from hashlib import sha256
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, Final

from agedp_data.ledger.hash_chain import HashChain
from agedp_data.ledger.lifecycle import HouseholdAccount
from agedp_data.ledger.records import ContractRecord, StatementRecord, row_from_text, text_of
from agedp_data.ledger.release_headers import HEADER_FIELDS, ReleaseHeader

if TYPE_CHECKING:
    from collections.abc import Mapping

FORMAT: Final = 1
_HEADER_TYPES: Final = tuple((field.name, str(field.type)) for field in fields(ReleaseHeader))


@dataclass(frozen=True, slots=True)
class LedgerCheckpoint:
    """The state of a hash chain after a reading.

    Attributes:
        state: the state, as JSON.
        verified_on: the date of the last reading of all rows (UTC).
        address: where the ledger is, in the words of whoever keeps the checkpoint.
    """

    state: Mapping[str, Any]
    verified_on: date
    address: str = ""

    @classmethod
    def of(cls, chain: HashChain, verified_on: date) -> LedgerCheckpoint:
        """Return the checkpoint of a chain without faults."""
        headers = sorted((header for of_name in chain.releases.values() for header in of_name), key=_number)
        contracts = sorted((row for of_name in chain.contracts.values() for row in of_name), key=_number)
        state = {
            "hashes": list(chain.heads),
            "content_head": chain.content_head,
            "contracts": [text_of(row) for row in contracts],
            "models": dict(chain.models),
            "releases": {name: [getattr(header, name) for header in headers] for name in HEADER_FIELDS},
            "statement_numbers": dict(chain.statement_numbers),
            "lifecycle": [text_of(row) for row in chain.lifecycle_rows],
            "accounts": [asdict(account) for account in chain.accounts.values()],
            "newest_dates": dict(chain.newest_dates),
        }
        return cls(state, verified_on)

    @property
    def length(self) -> int:
        """The number of rows up to the checkpoint."""
        return len(self.state["hashes"])

    @property
    def ledger(self) -> str:
        """The id of the ledger: the hash of its first row, "" for an empty one."""
        return next(iter(self.state["hashes"]), "")

    def ends_after(self, content_head: str) -> bool:
        """Return whether a ledger with this newest row, statements left out, is an earlier part of this one."""
        return content_head in self.state["hashes"] and content_head != self.state["content_head"]

    def is_part_of(self, numbers: Mapping[str, int]) -> bool:
        """Return whether a ledger, the numbers of whose rows are given by hash, has exactly these rows so far."""
        stored = {digest: number for digest, number in numbers.items() if number <= self.length}
        return stored == {digest: number for number, digest in enumerate(self.state["hashes"], start=1)}

    def chain(self) -> HashChain:
        """Return a new chain that goes on from here."""
        state, chain = self.state, HashChain()
        hashes: list[str] = state["hashes"]
        chain.heads = {digest: number for number, digest in enumerate(hashes, start=1)}
        chain.length, chain.content_head = len(hashes), state["content_head"]
        chain.head = hashes[-1] if hashes else chain.head
        chain.models = dict(state["models"])
        for text in state["contracts"]:
            contract = _row("contract", text, hashes)
            if isinstance(contract, ContractRecord):
                chain.index_contract(contract)
        for header in zip(*(state["releases"][name] for name in HEADER_FIELDS), strict=True):
            chain.index_release(ReleaseHeader(*header))
        for text in state["lifecycle"]:
            record = _row("statement", text, hashes)
            if isinstance(record, StatementRecord):
                chain.index_lifecycle(record)
        for name, numbers in state["statement_numbers"].items():
            chain.statement_numbers[name] = list(numbers)
        for account in state["accounts"]:
            chain.accounts[account["population"]] = HouseholdAccount(**{**account, "gaps": tuple(account["gaps"])})
        chain.newest_dates = dict(state["newest_dates"])
        return chain

    def format(self) -> bytes:
        """Return the content of a checkpoint's file."""
        body = json.dumps(self.state, separators=(",", ":")).encode()
        heading = _heading(body, self.verified_on.isoformat(), self.address)
        return json.dumps(heading, sort_keys=True).encode() + b"\n" + body + b"\n"


def parse_checkpoint(content: bytes) -> LedgerCheckpoint:
    """Return the checkpoint in the content of a file.

    Raises:
        ValueError: it is damaged, or of another version; the ledger has to be read completely.
    """
    checkpoint = parse_checkpoint_of_any_version(content)
    if json.loads(content.partition(b"\n")[0])["software"] != version("agedp"):
        raise ValueError("a checkpoint of another version")
    _check_headers(checkpoint.chain())
    return checkpoint


def _check_headers(chain: HashChain) -> None:
    """Check the types of headers, and that the chain has the contracts and models that they name.

    Raises:
        ValueError: a header that no ledger has.
    """
    contracts = {row.hash for of_name in chain.contracts.values() for row in of_name}
    for header in (header for of_name in chain.releases.values() for header in of_name):
        is_typed = all(type(getattr(header, name)).__name__ == kind for name, kind in _HEADER_TYPES)
        if not is_typed or header.contract not in contracts or (header.model and header.model not in chain.models):
            raise ValueError("a checkpoint with a header that no ledger has")


def parse_checkpoint_of_any_version(content: bytes) -> LedgerCheckpoint:
    """Return the checkpoint in the content of a file, whose hashes can be compared; no chain may go on from it.

    Raises:
        ValueError: it is damaged, or of another format.
    """
    first_line, _, body = content.partition(b"\n")
    body, heading = body.removesuffix(b"\n"), json.loads(first_line)
    verified_on, address = heading["verified_on"], heading["ledger"]
    if heading != {**_heading(body, verified_on, address), "software": heading["software"]}:
        raise ValueError("a checkpoint that is damaged, or of another format")
    return LedgerCheckpoint(json.loads(body), date.fromisoformat(verified_on), address)


def _heading(body: bytes, verified_on: str, address: str) -> dict[str, Any]:
    digest = sha256(verified_on.encode() + body).hexdigest()
    facts = {"checkpoint": FORMAT, "software": version("agedp"), "verified_on": verified_on, "ledger": address}
    return {**facts, "sha256": digest}


def _row(table: str, text: str, hashes: list[str]) -> object:
    return row_from_text(table, text, hashes[json.loads(text)["seq"] - 1])


def _number(row: ReleaseHeader | ContractRecord) -> int:
    return row.seq
