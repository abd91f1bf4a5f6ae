"""How it is run: Prefect flows, deployments and the `agedp` command.

Prefect gives a temporary server 20 seconds to start, which a busy machine exceeds. Prefect reads its settings when it
is imported, so the package sets a longer limit before; a limit of the user's own stays.
"""

from __future__ import annotations

import os

START_SECONDS = 600
"""How long Prefect's own server may take to start; one that ends before is not waited for."""

os.environ.setdefault("PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS", f"{START_SECONDS}")
