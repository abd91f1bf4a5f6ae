"""A published population to smooth: a total and two tariffs, fifty days, one of them skipped."""

from __future__ import annotations

from datetime import date, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from agedp.compute.engine_settings import SILENT
from agedp.smoothed_estimates.smoothed_release import estimate_quantities
from agedp.smoothed_estimates.smoothed_table import (
    last_days,
    published_means,
    quantity_figures,
    series_spans,
    smoothed_table,
)
from agedp_data import mechanisms
from agedp_data.ledger import ContractRecord, ReleaseRecord, canonical

if TYPE_CHECKING:
    from tests.agedp.conftest import House

FIRST, DAYS = date(2013, 1, 1), 50
SKIPPED = FIRST + timedelta(days=20)
TOTAL = '[series.daily_mean]\nstatistic = "mean"\nclamp_kwh = 50\n'
TARIFFS = '[series.tariffs]\nstatistic = "mean"\nclamp_kwh = 50\nby = "tariff"\nshare = 0.4\n'


def publish(house: House, *, wh: int, seed: int = 1, days: int = DAYS) -> House:
    """Publish days of six households of two tariffs with noise that does not depend on the readings."""
    house.folder.mkdir(exist_ok=True)
    dates = [FIRST + timedelta(days=i) for i in range(days)]
    house.london({(home, day, slot): wh for home in "ABCDEF" for day in dates for slot in range(48)})
    rows = [f"{home},{FIRST},,{'Std' if home < 'D' else 'ToU'}" for home in "ABCDEF"]
    (house.folder / "roster.csv").write_text("\n".join(["household_id,from,to,tariff", *rows]) + "\n")
    house.write(FIRST, dates[-1], rest=TARIFFS)
    house.edit(
        (TOTAL, f"{TOTAL}share = 0.6\n"), (f"first_day = {FIRST}", f"first_day = {FIRST}\nskip_days = [{SKIPPED}]")
    )
    noise = np.random.default_rng(seed)

    def draw(values: Any, *, sensitivity: int, loss: Any) -> Any:
        scale = mechanisms.laplace_scale(sensitivity=sensitivity, loss=loss)
        return (50_000 * len(values) + noise.laplace(scale=scale, size=len(values))).astype(np.int64)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(mechanisms, "discrete_laplace", draw)
        house.run(today=date(2026, 1, 1))
    return house


@pytest.fixture(scope="session")
def smoothed_house(houses: type[House], tmp_path_factory: pytest.TempPathFactory) -> House:
    return publish(houses(tmp_path_factory.mktemp("smoothed")), wh=300)


@pytest.fixture(scope="session")
def received(smoothed_house: House) -> Path:
    """The release folder, which no test may change."""
    return smoothed_house.folder / "release"


def contract(number: int, **series: dict[str, str]) -> ContractRecord:
    """A contract of series whose statistic is the mean unless they say otherwise."""
    terms = {
        name: {"statistic": "mean", "share": "1", "missing_kwh": "0", "max_missing": 2, **keys}
        for name, keys in series.items()
    }
    return ContractRecord("homes", canonical({"series": terms}), seq=number, hash=f"contract {number}")


def row(seq: int, day: int, *, series: str = "use", of: int = 1, **keys: Any) -> ReleaseRecord:
    """A ledger row of a numbered day, under the contract of this number: two households, scale 1 kWh."""
    cells = keys.pop("cells", {"all": (20_000, 2)})
    skipped = keys.get("state") == "skipped"
    return ReleaseRecord(
        population="homes", series=series, day=str(FIRST + timedelta(days=day)), revision=0,
        state=keys.get("state", "released"), cells=() if skipped else tuple(cells),
        values=() if skipped else tuple(value for value, _ in cells.values()),
        households=() if skipped else tuple(number for _, number in cells.values()),
        sensitivity=50_000, scale=keys.get("scale", 1000.0), mechanism="discrete-laplace", loss=1, input_ended_at="",
        published_on="2026-01-01", contract=f"contract {of}", model="", seq=seq,
    )  # fmt: skip


def table(rows: list[ReleaseRecord], contracts: list[ContractRecord]) -> list[dict[str, Any]]:
    """The smoothed table of ledger rows, by the calendar of weekdays."""
    means = published_means(rows, contracts)
    spans = series_spans(means)
    figures = quantity_figures(means, last_days(spans))
    estimates = estimate_quantities(spans, figures, region="none", weather=None, progress=SILENT)
    lines: list[dict[str, Any]] = smoothed_table(spans, estimates).to_pylist()
    return lines
