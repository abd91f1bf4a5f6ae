"""From the value of [output] witness to the witness that it names."""

from __future__ import annotations

from pathlib import Path

from agedp_data.ledger.witness import Witness
from agedp_data.ledger.witness_file import FileWitness
from agedp_data.ledger.witness_object import ObjectWitness
from agedp_data.ledger.witness_row import RowWitness


def witness_at(place: str) -> Witness:
    """Return the witness at a path, an s3:// URL or a postgresql:// URL; nothing is opened.

    >>> witness_at("/mnt/other/london.witness").place
    "'/mnt/other/london.witness'"
    """
    protocol = place.partition("://")[0] if "://" in place else ""
    if protocol == "s3":
        return ObjectWitness(place)
    return RowWitness(place) if protocol.startswith("postgresql") else FileWitness(Path(place))
