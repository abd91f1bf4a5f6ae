"""From the sum to the published figure through the real ledger: what is stored is the sum and noise of its law."""

from __future__ import annotations

from datetime import date, timedelta
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from agedp.release_folder.release_folder import AVERAGES
from agedp.release_folder.result_tables import averages_table, parquet_bytes
from agedp_data import mechanisms
from agedp_data.epsilon import NANO
from agedp_data.errors import Refused
from agedp_data.ledger import Ledger, ReleaseRecord
from tests.agedp_data.ledger.texts import promise
from tests.statistics.fit import CANNOT_FLAKE, low_bits_give_away, p_value

DAY = date(2013, 1, 1)


def release(
    ledger: Ledger, contract: str, number: int, true: np.ndarray, *, sensitivity: int, loss: Fraction
) -> ReleaseRecord:
    """Release one throw-away series of many cells, as `agedp.stages.release` does."""
    scale = mechanisms.laplace_scale(sensitivity=sensitivity, loss=loss)
    day = (DAY + timedelta(days=number)).isoformat()
    planned = ReleaseRecord(
        "homes", "m", day, 0, "released", tuple(map(str, range(true.size))), (), (7,) * true.size, sensitivity, scale,
        "discrete-laplace", mechanisms.recorded_loss(sensitivity=sensitivity, scale=scale), f"{day}T00:00:00Z",
        "2014-01-01",
        contract, "",
    )  # fmt: skip

    def draw(_: ReleaseRecord) -> list[int]:
        return mechanisms.discrete_laplace(true, sensitivity=sensitivity, loss=loss).tolist()

    return ledger.release("homes", "m", day, draw=draw, admit=lambda _: planned)


def stored_noise(
    folder: Path, *, releases: int, cells: int, sensitivity: int, loss: Fraction
) -> tuple[np.ndarray, float, int]:
    """Return ledger values minus true sums over many releases, read back from the file, and stated scale and loss."""
    chance = np.random.default_rng(5)
    url = f"sqlite:///{folder / 'ledger.sqlite'}"
    sums = [chance.integers(0, 10**9, cells) for _ in range(releases)]
    with Ledger.open(url, create=True) as ledger:
        contract = ledger.register(promise("homes", series=("m",)), at="2014-01-01").hash
        for number, true in enumerate(sums):
            release(ledger, contract, number, true, sensitivity=sensitivity, loss=loss)
    with Ledger.open(url) as ledger:
        rows = ledger.rows()
    apart = np.concatenate([np.array(row.values) - true for row, true in zip(rows, sums, strict=True)])
    return apart, rows[0].scale, rows[0].loss


@pytest.mark.parametrize("request_", [(3, Fraction(1, 2)), (50_000, Fraction(1, 10))])
def test_ledger_values_are_the_sums_and_noise_of_the_stated_scale(tmp_path, request_):
    sensitivity, loss = request_
    apart, scale, recorded = stored_noise(tmp_path, releases=30, cells=2_000, sensitivity=sensitivity, loss=loss)
    assert apart.size == 60_000
    assert Fraction(sensitivity) / Fraction(scale) <= Fraction(recorded, NANO) <= loss
    assert p_value(apart, scale) > CANNOT_FLAKE
    for factor in (0.9, 1.1):
        assert p_value(apart, scale * factor) < CANNOT_FLAKE


@pytest.mark.long
def test_thousands_of_small_series_have_the_noise_of_the_stated_scale(tmp_path):
    apart, scale, _ = stored_noise(tmp_path, releases=2_500, cells=8, sensitivity=50_000, loss=Fraction(1, 10))
    assert p_value(apart, scale) > CANNOT_FLAKE
    assert p_value(apart, scale * 1.15) < CANNOT_FLAKE


def test_a_release_that_is_read_again_has_the_noise_it_had(tmp_path):
    url = f"sqlite:///{tmp_path / 'ledger.sqlite'}"
    true = np.zeros(50, np.int64)
    with Ledger.open(url, create=True) as ledger:
        contract = ledger.register(promise("homes", series=("m",)), at="2014-01-01").hash
        rows = {release(ledger, contract, 0, true, sensitivity=50_000, loss=Fraction(1, 10)) for _ in range(5)}
        other = release(ledger, contract, 1, true, sensitivity=50_000, loss=Fraction(1, 10))
    assert len(rows) == 1
    assert rows.pop().values != other.values  # independent draws of 50 numbers: equal with a probability below 2^-500


def test_a_refused_release_draws_nothing(tmp_path, monkeypatch):
    def never(*_: object, **__: object) -> None:
        raise AssertionError("noise was drawn")

    def refuse(_: object) -> ReleaseRecord:
        raise Refused("no")

    monkeypatch.setattr(mechanisms, "discrete_laplace", never)
    with Ledger.open(f"sqlite:///{tmp_path / 'ledger.sqlite'}", create=True) as ledger:
        ledger.register(promise("homes", series=("m",)), at="2014-01-01")
        head = ledger.head()
        with pytest.raises(Refused):
            ledger.release("homes", "m", DAY, draw=never, admit=refuse)
        assert ledger.head() == head


def published_means(folder: Path, true_kwh: int) -> np.ndarray:
    """Publish a day of many cells of one home at scale 1 kWh, and return the means that the Parquet file holds."""
    url = f"sqlite:///{folder / f'{true_kwh}.sqlite'}"
    true = np.full(6_000, true_kwh * 7000, np.int64)
    with Ledger.open(url, create=True) as ledger:
        contract = ledger.register(promise("homes", series=("m",)), at="2014-01-01").hash
        row = release(ledger, contract, 0, true, sensitivity=7000, loss=Fraction(1))
    content = parquet_bytes(averages_table([row], coverage=Fraction(19, 20), versions={contract: 1}))
    (folder / AVERAGES).write_bytes(content)
    table = pq.ParquetFile(folder / AVERAGES).read()
    assert table["noisy_sum_wh"].to_pylist() == list(row.values)
    return table["mean_kwh"].to_numpy()


def test_the_low_bits_of_published_means_do_not_give_away_the_sum(tmp_path):
    assert low_bits_give_away(lambda true: published_means(tmp_path, true)) > CANNOT_FLAKE


def test_the_low_bits_of_noise_in_floats_would_have(tmp_path):
    chance = np.random.default_rng(1)
    assert low_bits_give_away(lambda true: true + chance.laplace(0, 1, 6_000)) < CANNOT_FLAKE


def test_a_published_mean_is_a_function_of_the_noisy_sum_alone(tmp_path):
    """Whatever the true sum, equal noisy sums give equal bits, so a mean says nothing that its sum does not."""
    bits: dict[int, set[bytes]] = {}
    url = f"sqlite:///{tmp_path / 'ledger.sqlite'}"
    with Ledger.open(url, create=True) as ledger:
        contract = ledger.register(promise("homes", series=("m",)), at="2014-01-01").hash
        for number, true in enumerate((0, 1, 5)):
            row = release(ledger, contract, number, np.full(500, true, np.int64), sensitivity=2, loss=Fraction(1))
            table = averages_table([row], coverage=Fraction(19, 20), versions={contract: 1})
            for noisy, mean in zip(row.values, table["mean_kwh"].to_numpy(), strict=True):
                bits.setdefault(noisy, set()).add(mean.tobytes())
    assert len(bits) > 10
    assert all(len(each) == 1 for each in bits.values())
