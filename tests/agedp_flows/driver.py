"""The `agedp` command with a sampler that ignores what it is given and a clock that stands still."""

from __future__ import annotations

import sys
from datetime import UTC, datetime

import numpy as np


def main() -> None:
    """Run the command, arranged."""
    from agedp_data import clock, mechanisms
    from agedp_flows.cli.app import main as agedp

    stream = np.random.default_rng(20261120)

    def fixed_stream(values, *, sensitivity: int, loss: object) -> np.ndarray:
        return stream.integers(0, 10**6, len(np.asarray(values)))

    mechanisms.discrete_laplace = fixed_stream
    clock.now = lambda: datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)
    sys.argv[0] = "agedp"
    agedp()


if __name__ == "__main__":
    main()
