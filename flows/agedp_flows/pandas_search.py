"""pyarrow searches for pandas when it first converts a value, and imports it: 0.3 s and 60 MB that a night never uses.

The search happens once in a process. Here it happens while pandas cannot be found, so that pyarrow converts without it.
Conversions to pandas (`to_pandas`) still import it, and from then on pyarrow knows it.

Decisions:

* Only a command whose stages pass no data frame to pyarrow calls it: without the search `pa.array` of a series of
  pandas treats nan as a number. Notebooks, workers and the Prefect flow are left as they are.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

import pyarrow as pa


class _HiddenPandas(MetaPathFinder):
    """Finds no pandas."""

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None,  # noqa: ARG002 -- of the protocol
        target: ModuleType | None = None,  # noqa: ARG002
        /,
    ) -> ModuleSpec | None:
        if fullname == "pandas":
            raise ModuleNotFoundError("pandas is hidden from pyarrow's search", name=fullname)
        return None


def end_pandas_search() -> None:
    """Let pyarrow search for pandas now and find none; does nothing where pandas is imported already."""
    if "pandas" in sys.modules:
        return
    hidden = _HiddenPandas()
    sys.meta_path.insert(0, hidden)
    try:
        pa.array([0])
    finally:
        sys.meta_path.remove(hidden)
