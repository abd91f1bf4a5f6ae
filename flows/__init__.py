"""HOW it is run: Prefect flows and the `agedp` command.

The three packages are installed under names that others use too. If another folder called `pipelines` or
`agedp_data` is found first (Python puts the current folder there under `python -m`), nothing is run.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

_HERE = Path(__file__).resolve().parent.parent

for _name in ("agedp_data", "pipelines"):
    _spec = find_spec(_name)
    _origin = Path(_spec.origin).resolve().parent.parent if _spec and _spec.origin else None
    if _origin != _HERE:
        raise ImportError(
            f"agedp: the package {_name!r} found first is not agedp's own; start from another folder, "
            "or install agedp in an environment of its own"
        )
