"""The ledger: contracts, models, releases and statements as rows of an append-only hash chain."""

from __future__ import annotations

from agedp_data.ledger.ledger import Ledger
from agedp_data.ledger.records import (
    ContractRecord,
    Fault,
    ModelRecord,
    ReleaseRecord,
    StatementRecord,
    canonical,
)

__all__ = [
    "ContractRecord",
    "Fault",
    "Ledger",
    "ModelRecord",
    "ReleaseRecord",
    "StatementRecord",
    "canonical",
]
