"""HOW it is run: Prefect flows and the `agedp` command.

The three packages are installed under names that others use too. If another folder called `pipelines` or
`agedp_data` is found first (Python puts the current folder there under `python -m`), nothing is run.

Prefect gives a temporary server 20 seconds to start, which a busy machine exceeds. Prefect reads its settings when it
is imported, so the package sets a longer limit before; a limit of the user's own stays.
"""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path

_HERE = Path(__file__).resolve().parent.parent

START_SECONDS = 600
"""How long Prefect's own server may take to start; one that ends before is not waited for."""

os.environ.setdefault("PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS", f"{START_SECONDS}")

for _name in ("agedp_data", "pipelines"):
    _spec = find_spec(_name)
    _origin = Path(_spec.origin).resolve().parent.parent if _spec and _spec.origin else None
    if _origin != _HERE:
        raise ImportError(
            f"agedp: the package {_name!r} found first is not agedp's own; start from another folder, "
            "or install agedp in an environment of its own"
        )
