"""The ledger: what was promised, drawn and claimed, append-only and chained by hashes."""

from __future__ import annotations

from agedp_data.ledger.ledger import Ledger
from agedp_data.ledger.rows import (
    ContractRecord,
    Fault,
    ModelRecord,
    ReleaseRecord,
    StatementRecord,
    canonical,
    differences,
)

__all__ = [
    "ContractRecord",
    "Fault",
    "Ledger",
    "ModelRecord",
    "ReleaseRecord",
    "StatementRecord",
    "canonical",
    "differences",
]
