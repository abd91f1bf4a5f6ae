"""Load profiles of synthetic households are those of chains that plain loops follow, and add up to their daily sums."""

from __future__ import annotations

from datetime import date, timedelta
from decimal import Decimal

import pytest

from agedp.stages.aggregate import aggregate_synthetic
from agedp.stages.synthetic_days import sum_synthetic_half_hours
from agedp_data.datasets.ausgrid import Ausgrid
from agedp_data.series.mean import Mean
from agedp_data.series.series_terms import days_of
from tests.agedp.test_synthetic_rehearsal import FIRST, half_hours, synthetic
from tests.exact_sums import by_group, profile_of

DAYS = days_of(FIRST, FIRST + timedelta(days=9))
RULE = profile_of(450, 9_000, 48 * 46, 0, by="area")


def counted(day: date, household: int) -> list[int]:
    """Return what a synthetic household adds to the half-hours of a day."""
    slots = [slot for slot in range(48) if slot not in Ausgrid().absent_slots(day)]
    use = [half_hours(day.replace(day=1), household)[48 * (day.day - 1) + slot] for slot in slots]
    if None in use:
        return [RULE.missing_wh // len(slots)] * len(slots)
    clipped = [min(wh, RULE.half_hour_clamp_wh) for wh in use]
    total = sum(clipped)
    return [wh * RULE.clamp_wh // total for wh in clipped] if total > RULE.clamp_wh else clipped


def test_sums_are_those_of_chains_that_plain_loops_follow(house):
    context = synthetic(house).context()
    profiles = {"p": RULE}
    sums = sum_synthetic_half_hours(context.run_file, context.roster.counts, days=DAYS, series=profiles)
    assert {len(sums[day, "p"].slots) for day in DAYS} == {46, 48}
    for day in DAYS:
        areas = [(area, number) for area, number in context.roster.counts.cells(day, "area")]
        assert by_group(sums[day, "p"], "households") == dict(areas)
        first = 0
        for area, number in areas:
            members = [counted(day, household) for household in range(first, first + number)]
            assert [*by_group(sums[day, "p"])[area]] == [sum(cell) for cell in zip(*members, strict=True)]
            first += number
    assert sum(sum(by_group(one, "clamped").values()) for one in sums.values()) > 5
    assert sum(one.usable.sum() for one in sums.values()) < sum(one.households.sum() for one in sums.values())


@pytest.mark.parametrize("dataset", ["london", "ausgrid"])
def test_half_hours_add_up_to_the_daily_sums(house, dataset):
    context = synthetic(house, dataset=dataset).context()
    profiles = {"p": profile_of(10**5, 10**6, 96, 2)}
    sums = sum_synthetic_half_hours(context.run_file, context.roster.counts, days=DAYS, series=profiles)
    mean = Mean(statistic="mean", clamp_kwh=Decimal(1000), missing_kwh=Decimal("0.096"))
    run = context.run_file.model_copy(update={"series": {"p": mean}})
    daily = aggregate_synthetic(run, context.roster.counts, days=DAYS)
    assert {key: int(one.exact.sum()) for key, one in sums.items()} == {
        key: int(one.exact.sum()) for key, one in daily.items()
    }
    assert sum_synthetic_half_hours(run, context.roster.counts, days=DAYS, series={}) == {}
