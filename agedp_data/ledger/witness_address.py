"""From the address in [output] witness to its witness: a file, an object or a row."""

from __future__ import annotations

from pathlib import Path

from agedp_data.ledger.witness import Witness
from agedp_data.ledger.witness_file import FileWitness
from agedp_data.ledger.witness_object import ObjectWitness
from agedp_data.ledger.witness_row import RowWitness


def witness_at(address: str) -> Witness:
    """Return the witness at a path, an s3:// URL or a postgresql:// URL; nothing is opened.

    >>> witness_at("/mnt/other/london.witness").address
    "'/mnt/other/london.witness'"
    """
    protocol = address.partition("://")[0] if "://" in address else ""
    if protocol == "s3":
        return ObjectWitness(address)
    return RowWitness(address) if protocol.startswith("postgresql") else FileWitness(Path(address))
