"""Counts, names and laws of series."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from decimal import Decimal, localcontext
from functools import partial
from itertools import pairwise, product
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pydantic import ValidationError

from agedp_data import mechanisms
from agedp_data.config import load
from agedp_data.config.contract import contract_part
from agedp_data.errors import ChainError, LedgerError
from agedp_data.markov.states import RepresentativeValues
from agedp_data.series.consistency import _inverted_law, sum_deviation, sum_interval
from agedp_data.series.coverage import Coverage
from agedp_data.series.distribution import Distribution
from agedp_data.series.mean import Mean
from agedp_data.series.result_table import Chart, ResultTable
from agedp_data.series.sensitivity import Move
from agedp_data.series.series import DERIVED_TABLES, series_in, series_of
from agedp_data.series.series_terms import Cell, HouseholdDays, Series
from agedp_data.table_schemas import released_schema
from tests.exact_sums import cells, vector

# What a series counts: exact vectors and sensitivities against every small dataset, and the names of its cells.

EXAMPLES = Path(__file__).parents[3] / "docs" / "examples"
FORMS = ("histogram", "cumulative")


def distribution(edges, form="histogram", **keys):
    bins = tuple(edge * Decimal("0.001") for edge in edges)
    return Distribution(statistic="distribution", form=form, clamp_kwh=bins[-1], bins_kwh=bins, **keys)


def mean(clamp, **keys):
    return Mean(statistic="mean", clamp_kwh=clamp * Decimal("0.001"), **keys)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("edges", [(0, 1, 4), (0, 1, 2, 3, 4), (0, 3, 4)])
def test_counts_are_those_made_by_hand_of_every_small_dataset(edges, form):
    series = distribution(edges, form)
    for days in product(range(edges[-1] + 1), repeat=3):
        inside = [sum(low <= day < high or (day == high == edges[-1]) for day in days) for low, high in pairwise(edges)]
        below = [sum(day < edge for day in days) for edge in edges[1:-1]]
        exact = vector(series, days)
        assert exact == tuple(inside if form == "histogram" else below)
        assert series.is_possible(np.array(exact), 3)
        assert not series.is_possible(np.array(exact), 2) or form == "cumulative"
        assert len(exact) == len(cells(series, "all")) == len(series.ranges_kwh)


@pytest.mark.parametrize("series", [*(distribution((0, 1, 3, 4), form) for form in FORMS), mean(4)], ids=str)
def test_sensitivities_are_the_largest_change_over_all_small_datasets(series):
    wh = range(series.clamp_wh + 1)
    for size in wh:
        largest = max(
            sum(abs(np.subtract(vector(series, (day, third)), vector(series, (other, third)))))
            for day, third, other in product(wh, repeat=3)
            if abs(other - day) <= size
        )
        assert series.sensitivity(Move(size)) == largest
    assert series.sensitivity("replacement") == largest  # a move of the whole range


def test_impossible_counts_are_known_as_such():
    histogram, cumulative = distribution((0, 1, 2, 4)), distribution((0, 1, 2, 4), "cumulative")
    for series, wrong in ((histogram, [(1, 1, 2), (-1, 2, 2)]), (cumulative, [(2, 1), (-1, 2), (1, 4)])):
        assert not any(series.is_possible(np.array(counts), 3) for counts in wrong)


def test_impossible_sums_are_known_as_such():
    for series, most in ((mean(4), 4), (Coverage(statistic="coverage"), 1)):
        possible = [value for value in range(-2, 3 * most + 3) if series.is_possible(np.array([value]), 3)]
        assert possible == list(range(3 * most + 1))


@pytest.mark.parametrize("by", [None, "tariff"])
@pytest.mark.parametrize("form", FORMS)
def test_a_cell_tells_its_group_and_range_by_its_name(form, by):
    bins = tuple(map(Decimal, ("0", "0.50", "2", "1E+1")))
    series = Distribution(statistic="distribution", form=form, clamp_kwh=Decimal(10), bins_kwh=bins, by=by)
    groups = ["all"] if by is None else ["Std", "two words", "0-2", "", "all"]
    names = [cell for group in groups for cell in cells(series, group)]
    assert len(set(names)) == len(names)
    ranges = ("0-0.5", "0.5-2" if form == "histogram" else "0-2")
    assert names[:2] == [f"{'' if by is None else 'Std '}{text}" for text in ranges]
    found = series.read_cells(names)
    assert found == tuple(Cell(group, "", edges) for group in groups for edges in series.ranges_kwh)
    assert [series.holds(of) for of in (names, names[1:], names[::-1])] == [True, False, False]
    households = [groups.index(cell.group) for cell in found]
    assert series.by_group(names, households) == {group: i for i, group in enumerate(groups)}
    for wrong in ("all", "0-1", "x 0-1", "0-0.50", "Std 0-0.5" if by is None else "0-0.5"):
        with pytest.raises(ValueError, match="not one of the bins"):
            series.read_cells([wrong])


@pytest.mark.parametrize("bins", [[0, 4], [0], [1, 2, 4], [0, 2, 2, 4], [0, 2, 3]])
def test_bins_that_say_nothing_or_leave_somebody_out_are_refused(bins):
    with pytest.raises(ValidationError):
        Distribution(statistic="distribution", clamp_kwh=Decimal(4), bins_kwh=tuple(map(Decimal, bins)))


def test_a_series_is_read_from_a_contract_as_it_was_written():
    run = load(EXAMPLES / "london-live.toml")
    registered = contract_part(run, model="m")
    again = series_of(registered)
    sensitivities = {name: series.sensitivity("replacement") for name, series in again.items()}
    assert sensitivities == {"daily_mean": 50_000, "daily_distribution": 2}
    for name, series in run.series.items():
        assert again[name] == series.model_copy(update={"share": again[name].share})
    assert series_in({**registered["series"]["daily_mean"], "by": "2013", "of_tomorrow": "x"}).by == "2013"
    for broken in ({"series": {"a": {"statistic": "distribution", "clamp_kwh": "5"}}}, {"series": {"a": "x"}}, {}):
        with pytest.raises(LedgerError, match="does not know"):
            series_of(broken)


@pytest.mark.parametrize("step", ["half-hour", "day"])
@pytest.mark.parametrize("series", [mean(4, values="states"), distribution((0, 1, 2, 4), values="states")], ids=str)
def test_of_states_a_small_change_never_moves_more_than_is_charged(step, series):
    states = RepresentativeValues(step, (2, 5))
    exact = {}
    for used in product(range(8), repeat=2):
        energy = np.array(used)
        total = states.represent(energy).sum() if step == "half-hour" else states.represent(energy.sum()[None])[0]
        exact.setdefault(sum(used), set()).add(vector(series, min(int(total), 4)))
    for size in range(5):
        pairs = [
            pair for a, b in product(exact, repeat=2) if abs(a - b) <= size for pair in product(exact[a], exact[b])
        ]
        largest = max(sum(abs(np.subtract(*pair))) for pair in pairs)
        assert largest <= series.sensitivity(Move(size))
        if isinstance(series, Mean) and size == 1:
            assert largest > size  # more than the change itself


def test_a_day_at_its_clamp_is_not_clamped():
    mean = series_in({"statistic": "mean", "clamp_kwh": "0.03"})
    counted = mean.counted(HouseholdDays(np.array([[29], [30], [31]])))
    assert (counted.values.ravel().tolist(), counted.clamped.tolist()) == ([29, 30, 30], [False, False, True])


# Sums of discrete Laplace noises: against brute force, closed forms, draws, and the normal law that they are not.

REACH = 60
COVERAGES = ("0.2", "0.5", "0.9", "0.95", "0.999")
SMALL = ([0.5, 1.0], [1.0, 1.0, 2.0], [0.3, 0.7, 1.1, 1.6], [0.05, 1.5], [0.01, 0.02])


def central_probability(scales, width):
    """Return bounds on P(abs(S) <= width) from the law of the intervals; they differ by the inversion error."""
    return _inverted_law(tuple(sorted(Counter(scales).items()))).bounds(width)


def exact_law(scales):
    """The law of the sum on -60n to 60n to 40 digits, by convolution; what lies beyond 60 is below 1e-16."""
    with localcontext(prec=40):
        law = [Decimal(1)]
        for scale in scales:
            q = (-1 / Decimal(scale)).exp()
            single = [(1 - q) / (1 + q) * q ** abs(k) for k in range(-REACH, REACH + 1)]
            total = [Decimal(0)] * (len(law) + 2 * REACH)
            for i, first in enumerate(law):
                for j, second in enumerate(single):
                    total[i + j] += first * second
            law = total
    return law


@pytest.mark.parametrize("scales", SMALL)
def test_the_interval_is_the_smallest_by_brute_force(scales):
    law = exact_law(scales)
    middle = len(law) // 2
    central = [sum(law[middle - width : middle + width + 1]) for width in range(REACH)]
    for width, probability in enumerate(central):
        low, high = central_probability(scales, width)
        assert low - 1e-15 <= probability <= high + 1e-15
        assert high - low < 1e-10
    for coverage in COVERAGES:
        smallest = next(width for width, probability in enumerate(central) if probability >= Decimal(coverage))
        assert sum_interval(scales, coverage) == smallest


def test_deviations_add_up_in_squares():
    assert sum_deviation([3.0, 3.0, 4.0]) == pytest.approx(
        math.hypot(*(mechanisms.standard_deviation(scale) for scale in (3.0, 3.0, 4.0))), rel=1e-14
    )
    law = exact_law(SMALL[1])
    variance = sum((k - len(law) // 2) ** 2 * probability for k, probability in enumerate(law))
    assert sum_deviation(SMALL[1]) == pytest.approx(float(variance) ** 0.5, rel=1e-9)


@pytest.mark.parametrize("scales", [[], [0.0, 1.0], [-1.0, 2.0], [math.nan, 1.0], [math.inf, 1.0]])
def test_a_sum_without_a_law_is_refused(scales):
    with pytest.raises(ChainError):
        sum_interval(scales, 0.9)


@pytest.mark.parametrize("coverage", [0, 1, -0.5, 2])
def test_a_coverage_is_a_share(coverage):
    with pytest.raises(ChainError):
        sum_interval([1.0, 2.0], coverage)


def of_rooms(**words):
    """A statistic with a cell for each of two rooms."""
    return type("Rooms", (Series,), {"names": property(lambda _: {"hall": 0, "attic": 1}), **words})


def test_a_statistic_names_its_cells_with_words_or_not_at_all():
    with pytest.raises(TypeError, match=r"^Rooms: a statistic with `names` needs `cell_words`: [^\n]*$"):
        of_rooms()
    rooms = of_rooms(cell_words=("rooms", "rooms")).model_construct(statistic="rooms", by=None)
    texts = rooms.write_cells(rooms.cells([Cell("all")]))
    assert texts == ("hall", "attic")
    assert [cell.place for cell in rooms.read_cells(texts)] == [0, 1]
    assert not rooms.holds(("hall", "hall"))
    with pytest.raises(ValueError, match="not one of the rooms"):
        rooms.read_cells(["cellar"])


def test_a_chart_has_intervals_of_its_own_or_shows_what_was_drawn():
    schema = released_schema(("households_noisy", pa.int64(), "drawn"), ("mean_kwh", pa.float64(), "of several"))
    table = partial(ResultTable, "rooms", schema, "day", "rooms", lambda *_: {}, "households_noisy")
    assert table(Chart("households_noisy", unit="households")).chart is not None
    assert table(Chart("mean_kwh", ("low", "high"))).chart is not None
    with pytest.raises(ValueError, match=r"^rooms: mean_kwh is not what was drawn; name the columns of its interval"):
        table(Chart("mean_kwh"))
    with pytest.raises(ValueError, match=r"^averages_by_month: households_noisy is not .* interval in Chart\.band$"):
        replace(DERIVED_TABLES[0], file="averages_by_month", chart=Chart("households_noisy"))
