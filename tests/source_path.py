"""Where Python finds the three packages of a checkout: for processes that tests start."""

from __future__ import annotations

import os
from pathlib import Path

ROOT = Path(__file__).parents[1]
FOLDERS = ("", "pipelines", "flows")
"""The folders that hold the packages `agedp_data`, `agedp` and `agedp_flows`."""


def source_path(root: Path | str = ROOT, *more: str) -> str:
    """Return the PYTHONPATH of a checkout, or of a copy of its three folders."""
    return os.pathsep.join([*(str(Path(root) / folder) for folder in FOLDERS), *more])
