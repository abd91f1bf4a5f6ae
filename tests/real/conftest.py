"""The 40 real London households of 2013, read line by line without the project's code."""

from __future__ import annotations

from datetime import date, datetime
from pathlib import Path

import numpy as np
import pytest

BEGIN = datetime(2013, 1, 1)


@pytest.fixture(scope="session")
def kaggle(real_data: Path) -> Path:
    return real_data / "london" / "kaggle"


def read_households(kaggle: Path) -> dict[str, np.ndarray]:
    """Watt-hours by household, shape (365, 48), -1 where missing; a timestamp is the END of its half-hour."""
    found: dict[str, np.ndarray] = {}
    for path in sorted(kaggle.glob("*.csv")):
        for line in path.read_text().splitlines()[1:]:
            household, end, kwh = line.split(",")
            slot = int((datetime.fromisoformat(end) - BEGIN).total_seconds()) // 1800 - 1
            if 0 <= slot < 365 * 48:
                found.setdefault(household, np.full(365 * 48, -1))[slot] = round(float(kwh) * 1000)
    return {household: values.reshape(365, 48) for household, values in found.items()}


@pytest.fixture(scope="session")
def households(kaggle: Path) -> dict[str, np.ndarray]:
    return read_households(kaggle)


@pytest.fixture(scope="session")
def roster_text(households: dict[str, np.ndarray]) -> str:
    return "household_id,from,to\n" + "".join(f"{household},{date(2013, 1, 1)},\n" for household in households)
