"""A statistic that says what a day counts and its sensitivity is counted, drawn, recorded and audited by defaults."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from typing import Literal

import numpy as np
import pytest

from agedp.internal_records.bookkeeping import COVERAGE
from agedp.planning.row_noise import GroupNoise, group_noises, value_range
from agedp.stage_values import DailySum
from agedp.store.bucketed_roster import DayBlock, add_sums, sum_household_days
from agedp.synthetic_worlds import rules_of
from agedp_data import mechanisms
from agedp_data.datasets.london import London
from agedp_data.errors import ChainError
from agedp_data.ledger import ReleaseRecord
from agedp_data.series.series_terms import Cell, Counted, Series

DAYS = [date(2013, 1, 1), date(2013, 1, 2)]


class ZeroDays(Series):
    """Number of households that used nothing on a day."""

    statistic: Literal["zero_days"] = "zero_days"

    def sensitivity(self, change):
        """A household counts or does not."""
        del change
        return 1

    def counted(self, days):
        """Return 1 for each usable day without use."""
        return Counted((days.energy_wh == 0).astype(np.int64), np.zeros(len(days.energy_wh), bool))


SERIES = ZeroDays(by="area", max_missing=2)
ENERGY = np.array([[0, 5, 0, 0], [7, 0, 0, 3]])
READINGS = np.array([[48, 48, 48, 45], [48, 46, 0, 48]])
AREAS = {"north": np.array([0, 1]), "south": np.array([2, 3])}


def summed(homes=(0, 1, 2, 3)):
    day, home = np.meshgrid(range(2), homes, indexing="ij")
    at = day.ravel(), home.ravel()
    block = DayBlock(ENERGY[at][:, None], None, READINGS[at], home.ravel(), day.ravel())
    members = {area: of[np.isin(of, homes)] for area, of in AREAS.items()}
    return sum_household_days(
        [block],
        DAYS,
        households=4,
        members=lambda *_: {area: of for area, of in members.items() if of.size},
        layout=London(),
        series={"zero": SERIES},
    )


def test_days_are_counted_by_group_and_a_missing_one_adds_nothing():
    first, second = summed().values()
    assert first.parts == second.parts == (Cell("north"), Cell("south"))
    assert (first.exact.tolist(), second.exact.tolist()) == ([[1], [1]], [[1], [0]])
    assert first.counts[:, :3].tolist() == [[2, 2, 0], [2, 1, 0]]


@pytest.mark.parametrize("parts", [((0, 1), (2, 3)), ((0, 2), (1, 3)), ((3,), (2, 1), (0,))])
def test_buckets_add_up_in_any_order(parts):
    whole, buckets = summed(), [summed(part) for part in parts]
    for order in (buckets, buckets[::-1]):
        for key, one in add_sums([add_sums(order[:1]), add_sums(order[1:])]).items():
            assert one.parts == whole[key].parts
            assert one.counts.tolist() == whole[key].counts.tolist()
            assert one.exact.tolist() == whole[key].exact.tolist()


def test_its_row_has_cells_noise_and_a_line_of_coverage(example_row):
    one = summed()[DAYS[0], "zero"]
    texts = SERIES.write_cells(one.cells)
    assert texts == ("north", "south")
    assert SERIES.read_cells(texts) == one.cells
    assert SERIES.holds(texts)
    row = replace(example_row, cells=texts, values=(1, 0), households=(2, 2), scale=3.0, sensitivity=1)
    sd = mechanisms.standard_deviation(3.0)
    assert group_noises(row, SERIES) == (GroupNoise("north", 2, sd), GroupNoise("south", 2, sd))
    assert value_range(SERIES, 2, 30) == 2.0
    assert [SERIES.is_possible(np.array([number]), 2) for number in (-1, 0, 2, 3)] == [False, True, True, False]
    assert [line["usable"] for line in COVERAGE.rows_of_release(row, one)] == [2, 1]


def test_the_audit_counts_it_by_its_own_rule():
    readings = np.full((2, 1, 1, 48), 5)
    readings[0] = 0
    rules = rules_of(SERIES)
    assert (rules.pair, rules.sensitivity) == ("total", 1)
    assert rules.cells(rules.totals(readings, None).counted_wh).ravel().tolist() == [1, 0]


def test_a_sum_beyond_64_bits_is_refused():
    one = summed()[DAYS[0], "zero"]
    large = replace(one, exact=np.full_like(one.exact, 2**62))
    with pytest.raises(ChainError, match="exceeds 64-bit"):
        DailySum.added([large, large])


@pytest.fixture
def example_row():
    return ReleaseRecord(
        population="p",
        series="zero",
        day=f"{DAYS[0]}",
        revision=0,
        state="released",
        cells=(),
        values=(),
        households=(),
        sensitivity=1,
        scale=1.0,
        mechanism="discrete_laplace",
        loss=10**9,
        input_ended_at="",
        published_on="2013-01-03",
        contract="",
        model="",
    )
