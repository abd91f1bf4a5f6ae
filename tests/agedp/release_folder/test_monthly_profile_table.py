"""The table of profiles of months has a line for each cell of its ledger rows, computed by hand."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

import pytest

from agedp.release_folder.result_tables import released_table
from agedp_data.datasets.ausgrid import Ausgrid
from agedp_data.ledger import ReleaseRecord
from agedp_data.series.profile import PROFILE_RELEASES, Profile
from agedp_data.series.result_table import ContractTerms, Noise

COVERAGE = Decimal("0.9")
KEYS = {"clamp_kwh": Decimal(50), "half_hour_clamp_kwh": Decimal(4), "every": "weekday-month"}
MONTHS = Profile.model_validate({"statistic": "profile", "by": "area", **KEYS})


def lines_of(last, cells, values, households, profile=MONTHS):
    terms = ("discrete-laplace", 500_000_000, "", "2013-06-02", "hash", "")
    row = ReleaseRecord(
        "homes", "p", str(last), 0, "released", cells, values, households, profile.row_sensitivity(last), 2e5, *terms
    )
    of_contract = {"hash": ContractTerms({"p": profile}, Ausgrid(), 3)}
    return released_table(PROFILE_RELEASES, [row], of_contract, Noise(COVERAGE)).to_pylist()


@pytest.mark.parametrize(
    ("last", "days", "times"), [(date(2012, 10, 31), 8, 7), (date(2013, 4, 30), 8, 9), (date(2013, 5, 31), 8, 8)]
)
def test_a_clock_change_leaves_the_mean_of_a_half_hour(last, days, times):
    """Ten households use 300 Wh each half-hour: Sydney skips 2:00 on a Sunday of October, and repeats it in April."""
    profile = Profile.model_validate({"statistic": "profile", **KEYS})
    cells = ("weekend 02:00", "weekend 12:00")
    lines = lines_of(last, cells, (5 * 10 * times * 300, 5 * 10 * days * 300), (10 * days,) * 2, profile)
    assert [line["mean_kwh"] for line in lines] == pytest.approx([0.3, 0.3], rel=1e-12)
    assert [line["minutes_in_period"] for line in lines] == [30 * times, 30 * days]


def test_a_cell_of_a_day_has_no_line():
    with pytest.raises(ValueError, match="not one of the half-hours of this series"):
        lines_of(date(2013, 5, 31), ("North End 18:30",), (1,), (2,))
