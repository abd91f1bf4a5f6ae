"""From the sum to the published mean through the real ledger: what is stored is the sum and noise of its law."""

from __future__ import annotations

from datetime import date, timedelta
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from agedp.release_folder.result_tables import contract_terms, released_table
from agedp_data import mechanisms
from agedp_data.epsilon import NANO
from agedp_data.ledger import Ledger, ReleaseRecord
from agedp_data.series.mean import AVERAGES
from agedp_data.series.result_table import Noise
from tests.agedp_data.ledger.conftest import promise
from tests.statistics.fit import CANNOT_FLAKE, p_value

DAY = date(2013, 1, 1)


@pytest.fixture
def url(tmp_path: Path) -> str:
    """The address of a ledger with a promise."""
    address = f"sqlite:///{tmp_path / 'ledger.sqlite'}"
    with Ledger.open(address, create=True) as ledger:
        ledger.register(promise("homes", series=("m",)), at="2014-01-01")
    return address


def release(ledger: Ledger, number: int, true: np.ndarray, *, sensitivity: int, loss: Fraction) -> ReleaseRecord:
    """Release one throw-away series of many cells, as `agedp.stages.release` does."""
    scale = mechanisms.laplace_scale(sensitivity=sensitivity, loss=loss)
    day = (DAY + timedelta(days=number)).isoformat()
    contract = ledger.register(promise("homes", series=("m",)), at="2014-01-01").hash
    planned = ReleaseRecord(
        "homes", "m", day, 0, "released", tuple(map(str, range(true.size))), (), (7,) * true.size, sensitivity, scale,
        "discrete-laplace", mechanisms.recorded_loss(sensitivity=sensitivity, scale=scale), f"{day}T00:00:00Z",
        "2014-01-01", contract, "",
    )  # fmt: skip

    def draw(_: ReleaseRecord) -> list[int]:
        return mechanisms.discrete_laplace(true, sensitivity=sensitivity, loss=loss).tolist()

    return ledger.release("homes", "m", day, draw=draw, admit=lambda _: planned)


def test_ledger_values_are_the_sums_and_noise_of_the_stated_scale(url):
    sums = np.random.default_rng(5).integers(0, 10**9, (10, 4_000))
    with Ledger.open(url) as ledger:
        for number, true in enumerate(sums):
            release(ledger, number, true, sensitivity=50_000, loss=Fraction(1, 10))
    with Ledger.open(url) as ledger:
        rows = ledger.rows()
    noise, scale = np.concatenate([np.array(row.values) for row in rows]) - sums.ravel(), rows[0].scale
    assert Fraction(50_000) / Fraction(scale) <= Fraction(rows[0].loss, NANO) <= Fraction(1, 10)
    assert p_value(noise, scale) > CANNOT_FLAKE
    for factor in (0.9, 1.1):
        assert p_value(noise, scale * factor) < CANNOT_FLAKE


def test_a_published_mean_is_a_function_of_the_noisy_sum_alone(url):
    """Whatever the true sum, equal noisy sums give equal bits, so a mean says nothing that its sum does not."""
    bits: dict[int, set[bytes]] = {}
    with Ledger.open(url) as ledger:
        terms = contract_terms([ledger.register(promise("homes", series=("m",)), at="2014-01-01")])
        for number, true in enumerate((0, 1, 5)):
            row = release(ledger, number, np.full(500, true, np.int64), sensitivity=2, loss=Fraction(1))
            table = released_table(AVERAGES, [row], terms, Noise(Decimal("0.95")))
            assert table["noisy_sum_wh"].to_pylist() == list(row.values)
            for noisy, mean in zip(row.values, table["mean_kwh"].to_numpy(), strict=True):
                assert mean == noisy / 7 / 1000 or mean == noisy / 7000
                bits.setdefault(noisy, set()).add(mean.tobytes())
    assert len(bits) > 10
    assert all(len(each) == 1 for each in bits.values())
