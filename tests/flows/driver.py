"""The `agedp` command with a sampler that ignores what it is given and a clock that stands still."""

from __future__ import annotations

import sys
from datetime import UTC, datetime

import numpy as np

from agedp_data import clock, noise
from flows.command import main

_stream = np.random.default_rng(20261120)


def fixed_stream(values, *, sensitivity: int, loss: object) -> np.ndarray:
    """Return the next numbers of a fixed stream, whatever the values are."""
    return _stream.integers(0, 10**6, len(np.asarray(values)))


noise.discrete_laplace = fixed_stream
clock.now = lambda: datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)

if __name__ == "__main__":
    sys.argv[0] = "agedp"
    main()
