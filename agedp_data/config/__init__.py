"""The run file: its tables and keys, validated, and the contract that follows from it."""

from __future__ import annotations

from agedp_data.config.contract import contract_part
from agedp_data.config.loading import load, parse
from agedp_data.config.run_file import RunFile

__all__ = ["RunFile", "contract_part", "load", "parse"]
