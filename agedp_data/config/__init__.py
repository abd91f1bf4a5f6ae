"""The run file: its tables and keys, validated, and the contract that follows from it."""

from __future__ import annotations

from agedp_data.config.contracts import contract
from agedp_data.config.reading import load, parse
from agedp_data.config.run import RunFile

__all__ = ["RunFile", "contract", "load", "parse"]
