"""The ledger: contracts, models, releases and statements as rows of an append-only hash chain.

`Ledger` is imported when it is first used: who reads the rows of a release folder needs no database.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from agedp_data.ledger.records import (
    ContractRecord,
    Fault,
    ModelRecord,
    ReleaseRecord,
    StatementRecord,
    canonical,
)

if TYPE_CHECKING:
    from agedp_data.ledger.ledger import Ledger

__all__ = [
    "ContractRecord",
    "Fault",
    "Ledger",
    "ModelRecord",
    "ReleaseRecord",
    "StatementRecord",
    "canonical",
]


def __getattr__(name: str) -> type[Ledger]:
    if name != "Ledger":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    of_ledger: type[Ledger] = import_module("agedp_data.ledger.ledger").Ledger
    return of_ledger
