"""The run file: what is read, what is promised, how it runs."""

from __future__ import annotations

from agedp_data.config.contracts import contract
from agedp_data.config.reading import load, parse
from agedp_data.config.run import RunFile

__all__ = ["RunFile", "contract", "load", "parse"]
