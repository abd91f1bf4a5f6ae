"""The ledger: what was promised, drawn and claimed, append-only and chained by hashes."""

from __future__ import annotations

from agedp_data.ledger.ledger import Ledger
from agedp_data.ledger.rows import Contract, Fault, Model, Release, Statement, canonical, differences

__all__ = [
    "Contract",
    "Fault",
    "Ledger",
    "Model",
    "Release",
    "Statement",
    "canonical",
    "differences",
]
