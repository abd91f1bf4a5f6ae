"""What all tests share: where real extracts lie, and run files to vary."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def real_data() -> Path:
    """The folder of real extracts; tests that need them are skipped where AGEDP_REAL_DATA names none."""
    named = os.environ.get("AGEDP_REAL_DATA")
    if not named:
        pytest.skip("AGEDP_REAL_DATA names no folder of real extracts")
    return Path(named)
