"""What a series counts: exact vectors and sensitivities against every small dataset, and the names of its cells."""

from __future__ import annotations

from decimal import Decimal
from itertools import pairwise, product
from pathlib import Path

import numpy as np
import pytest
from pydantic import ValidationError

from agedp_data.config import load
from agedp_data.config.contract import contract_part
from agedp_data.errors import LedgerError
from agedp_data.markov.states import RepresentativeValues
from agedp_data.series.sensitivity import Move
from agedp_data.series.series import Distribution, Mean, series_in, series_of

EXAMPLES = Path(__file__).parents[3] / "docs" / "examples"
BINS = [(0, 1, 4), (0, 1, 2, 3, 4), (0, 2, 3, 4), (0, 3, 4), (0, 1, 3, 4)]
WATT_HOURS = Decimal("0.001")


def distribution(edges, form="histogram", **keys):
    bins = tuple(edge * WATT_HOURS for edge in edges)
    return Distribution(statistic="distribution", form=form, clamp_kwh=bins[-1], bins_kwh=bins, **keys)


def mean(clamp, **keys):
    return Mean(statistic="mean", clamp_kwh=clamp * WATT_HOURS, **keys)


EVERY = [distribution(edges, form) for edges in BINS for form in ("histogram", "cumulative")] + [mean(4), mean(1)]


def counts_by_hand(edges, form, days):
    inside = [sum(low <= day < high or (day == high == edges[-1]) for day in days) for low, high in pairwise(edges)]
    return tuple(inside) if form == "histogram" else tuple(sum(day < edge for day in days) for edge in edges[1:-1])


@pytest.mark.parametrize("form", ["histogram", "cumulative"])
@pytest.mark.parametrize("edges", BINS)
def test_counts_are_those_made_by_hand_of_every_small_dataset(edges, form):
    series = distribution(edges, form)
    for days in product(range(edges[-1] + 1), repeat=3):
        found = series.exact(np.array(days))
        assert found == counts_by_hand(edges, form, days)
        assert series.is_possible(np.array(found), 3)
        assert not series.is_possible(np.array(found), 2) or form == "cumulative"
        assert len(found) == len(series.cells("all")) == len(series.ranges_kwh)


@pytest.mark.parametrize("series", EVERY, ids=str)
def test_sensitivities_are_the_largest_change_over_all_small_datasets(series):
    wh = range(series.clamp_wh + 1)
    datasets = list(product(wh, repeat=2))
    for size in range(series.clamp_wh + 1):
        largest = max(
            sum(abs(np.subtract(series.exact(np.array(days)), series.exact(np.array((other, days[1]))))))
            for days in datasets
            for other in wh
            if abs(other - days[0]) <= size
        )
        assert series.sensitivity(Move(size)) == largest
    assert series.sensitivity("replacement") == largest  # a move of the whole range


def test_a_household_in_one_group_moves_the_vector_of_all_groups_no_further():
    series = distribution((0, 1, 2, 4), by="tariff")
    for one, other in product(range(5), repeat=2):
        before = series.exact(np.array([one, 3])) + series.exact(np.array([2, 2]))
        after = series.exact(np.array([other, 3])) + series.exact(np.array([2, 2]))
        assert sum(abs(np.subtract(before, after))) <= series.sensitivity("replacement")


def test_impossible_counts_are_known_as_such():
    histogram, cumulative = distribution((0, 1, 2, 4)), distribution((0, 1, 2, 4), "cumulative")
    for series, wrong in ((histogram, [(1, 1, 2), (-1, 2, 2)]), (cumulative, [(2, 1), (-1, 2), (1, 4)])):
        assert [series.is_possible(np.array(each), 3) for each in wrong] == [False] * len(wrong)


@pytest.mark.parametrize("by", [None, "tariff"])
@pytest.mark.parametrize("form", ["histogram", "cumulative"])
def test_a_cell_tells_its_group_and_range_by_its_name(form, by):
    bins = tuple(map(Decimal, ("0", "0.50", "2", "1E+1")))
    series = Distribution(statistic="distribution", form=form, clamp_kwh=Decimal(10), bins_kwh=bins, by=by)
    groups = ["all"] if by is None else ["Std", "two words", "0-2", "", "all"]
    names = [cell for group in groups for cell in series.cells(group)]
    assert len(set(names)) == len(names)
    assert names[:2] == [
        f"{'' if by is None else 'Std '}{each}" for each in ("0-0.5", ("0-2", "0.5-2")[form[0] == "h"])
    ]
    told = [series.place(cell) for cell in names]
    assert told == [(group, *edges) for group in groups for edges in series.ranges_kwh]
    assert series.holds(names)
    assert not series.holds(names[1:])
    assert not series.holds(names[::-1])
    assert series.by_group(names, [groups.index(group) for group, *_ in told]) == {g: i for i, g in enumerate(groups)}
    for wrong in ("all", "0-1", "x 0-1", "0-0.50", "Std 0-0.5" if by is None else "0-0.5"):
        with pytest.raises(ValueError, match="not a range"):
            series.place(wrong)


@pytest.mark.parametrize("bins", [[0, 4], [0], [1, 2, 4], [0, 2, 2, 4], [0, 2, 3]])
def test_bins_that_say_nothing_or_leave_somebody_out_are_refused(bins):
    with pytest.raises(ValidationError):
        Distribution(statistic="distribution", clamp_kwh=Decimal(4), bins_kwh=tuple(map(Decimal, bins)))


def test_a_series_is_read_from_a_contract_as_it_was_written():
    run = load(EXAMPLES / "london-live.toml")
    registered = contract_part(run, model="m")
    again = series_of(registered)
    assert {name: one.sensitivity("replacement") for name, one in again.items()} == {
        "daily_mean": 50_000,
        "daily_distribution": 2,
    }
    for name, one in run.series.items():
        assert again[name] == one.model_copy(update={"share": again[name].share})
    assert series_in({**registered["series"]["daily_mean"], "by": "2013", "of_tomorrow": "x"}).by == "2013"
    for broken in ({"series": {"a": {"statistic": "distribution", "clamp_kwh": "5"}}}, {"series": {"a": "x"}}, {}):
        with pytest.raises(LedgerError, match="does not know"):
            series_of(broken)


@pytest.mark.parametrize("step", ["half-hour", "day"])
def test_of_states_a_small_change_of_use_may_move_more_than_its_size_and_never_more_than_is_charged(step):
    states = RepresentativeValues(step, (2, 5))
    kept = [mean(4, values="states"), distribution((0, 1, 2, 4), values="states")]
    half_hours = [np.array(each) for each in product(range(8), repeat=2)]

    def counts_as(used):
        return int(states.represent(used).sum() if step == "half-hour" else states.represent(used.sum()[None])[0])

    for size in range(5):
        near = [(one, other) for one, other in product(half_hours, repeat=2) if abs(one.sum() - other.sum()) <= size]
        for series in kept:
            exact = [[series.exact(np.array([min(counts_as(each), 4)])) for each in pair] for pair in near]
            largest = max(sum(abs(np.subtract(*pair))) for pair in exact)
            assert largest <= series.sensitivity(Move(size))
            if series is kept[0] and size == 1:
                assert largest > size
