"""Histograms and cumulative counts: sensitivities over all small datasets, quantiles and their intervals."""

from __future__ import annotations

import functools
import itertools
import math
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import isotonic_regression

from agedp_data.accounting.delta_neighbourhood import cumulative_counts, shifted_histograms
from agedp_data.errors import ChainError
from agedp_data.series.distribution import fitted_below_edges, noisy_counts, quantile_ranges
from agedp_data.series.sensitivity import (
    Move,
    cumulative,
    cumulative_sensitivity,
    delta_grid,
    edges_crossed,
    histogram,
    histogram_sensitivity,
    shifted_sensitivity,
    sum_sensitivity,
)

# Histograms, shifted histograms and cumulative counts, and every sensitivity by brute force over small datasets.

NINE = range(9)
HALVES = [value / 2 for value in range(17)]
UNEVEN = [0, 1, 3, 4, 8]
CHANGES = [Move(0), Move(1), Move(2), Move(3), Move(5), Move(8), "arrival", "departure", "replacement"]


def largest(statistic, universe, change):
    """The largest L1 change of a statistic over all pairs of datasets of up to two that differ by one such change."""
    pairs, counted = [], functools.cache(lambda values: np.asarray(statistic(values)))
    for rest in [(), *((value,) for value in universe)]:
        if change in ("arrival", "departure"):
            pairs += [((*rest, one), rest) for one in universe]
        else:
            reach = change.size if isinstance(change, Move) else math.inf
            pairs += [((*rest, a), (*rest, b)) for a, b in itertools.product(universe, repeat=2) if abs(a - b) <= reach]
    return max(int(np.abs(counted(tuple(sorted(a))) - counted(tuple(sorted(b)))).sum()) for a, b in pairs)


@pytest.mark.parametrize("change", CHANGES, ids=str)
def test_sensitivities_are_the_largest_change_of_all(change):
    for edges in (UNEVEN, [0, 2, 4, 6, 8], [0, 8], [2, 3, 5]):
        found = largest(lambda values, edges=edges: histogram(values, edges=edges), NINE, change)
        assert histogram_sensitivity(change, edges=edges) == found, edges
        found = largest(lambda values, edges=edges: cumulative(values, edges=edges), NINE, change)
        assert cumulative_sensitivity(change, edges=edges) == found, edges
    for width, delta in [(1, 1), (2, 1), (4, 2), (6, 2), (3, 3), (12, 3), (40, 5)]:
        space = {"width": width, "delta": delta, "low": 0, "high": 8}
        found = largest(lambda values, space=space: shifted_histograms(values, **space), NINE, change)
        assert shifted_sensitivity(change, **space) == found, space
    for amount in (change, Move(2.5), Move(99)):
        assert sum_sensitivity(amount, clamp=8) == largest(sum, NINE, amount)


@settings(max_examples=60, deadline=None)
@given(
    st.floats(0.001, 3),
    st.floats(-5, 5),
    st.floats(0.5, 20),
    st.lists(st.tuples(st.floats(-6, 26), st.floats(0, 1, exclude_max=True)), min_size=1, max_size=4),
)
def test_no_rounding_lets_a_shorter_move_cross_two_edges(delta, low, span, changes):
    space = {"delta": delta, "low": low, "high": low + span}
    for start, part in changes:
        end = float(Fraction(str(start)) + Fraction(str(delta)) * Fraction(str(part)))
        if abs(Fraction(str(end)) - Fraction(str(start))) < Fraction(str(delta)):
            assert np.abs(cumulative_counts([start], **space) - cumulative_counts([end], **space)).sum() <= 1


def test_edges_are_as_written_where_binary_fractions_would_err():
    # floor(x/.1) in floats puts .6 into cell 5, and a shorter move would cross two edges
    values = [0.59999999999999, 0.6, 0.69999999999999]
    assert [int(np.argmax(cumulative_counts([value], delta=0.1, low=0, high=1))) for value in values] == [5, 6, 6]
    assert [float(edge) for edge in delta_grid(delta=0.1, low=0, high=1)] == [i / 10 for i in range(11)]
    assert len(cumulative_counts([0.3], delta=0.3, low=0, high=3)) == 10
    assert shifted_histograms([0.3], width=1, delta=0.1, low=0, high=1).shape == (10, 2)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(-3, 25), max_size=20), st.integers(1, 7), st.integers(-2, 2), st.integers(1, 24))
def test_cumulative_counts_are_those_of_a_loop(values, delta, low, span):
    high = low + span
    edges = [*range(low + delta, high, delta), math.inf]
    expected = [sum(min(max(value, low), high) < edge for value in values) for edge in edges]
    assert cumulative_counts(values, delta=delta, low=low, high=high).tolist() == expected
    assert expected[-1] == len(values)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 20), max_size=20), st.integers(1, 4), st.integers(1, 5), st.integers(1, 20))
def test_shifted_histograms_have_edges_at_j_delta_and_every_width_on(values, delta, k, high):
    counts = shifted_histograms(values, width=k * delta, delta=delta, low=0, high=high)
    assert counts.shape[0] == k
    for j, row in enumerate(counts.tolist()):
        edges = [0, *(edge for edge in range(j * delta, high, k * delta) if edge > 0), math.inf]
        expected = [sum(a <= min(v, high) < b for v in values) for a, b in itertools.pairwise(edges)]
        assert row == expected + [0] * (counts.shape[1] - len(expected))


def test_histograms_are_those_of_numpy():
    values, edges = np.random.default_rng(1).integers(0, 51, 1000), [0, 2, 4, 6, 8, 10, 12, 15, 20, 30, 50]
    counts = histogram(np.minimum(values, 50), edges=edges)
    assert counts.tolist() == np.histogram(values, bins=edges)[0].tolist()
    assert cumulative(values, edges=edges).tolist() == np.cumsum(counts).tolist()
    assert histogram([-7, 0, 5, 6, 99], edges=[0, 2, 6]).tolist() == [2, 3]  # what lies outside counts at the end


def test_numbers_of_any_kind_and_size_count_alike():
    space, expected, values = {"delta": 2, "low": 0, "high": 10}, [1, 2, 3, 3, 4], (1, 3, 5, 9)
    for kind in (int, float, Decimal, Fraction):
        assert cumulative_counts([kind(value) for value in values], **space).tolist() == expected
    big = 10**30
    counts = cumulative_counts([value + big for value in values], delta=2, low=big, high=big + 10)
    assert counts.tolist() == expected


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda: cumulative_counts([1], delta=0, low=0, high=1), "delta = 0"),
        (lambda: cumulative_counts([1], delta=1, low=1, high=1), "low must be below high"),
        (lambda: cumulative_counts([1], delta=1e-9, low=0, high=1), "10\\^7"),
        (lambda: cumulative_counts([math.nan], delta=1, low=0, high=1), "finite"),
        (lambda: shifted_histograms([1], width=3, delta=2, low=0, high=6), "whole multiple of delta = 2"),
        (lambda: shifted_histograms([1], width=1, delta=2, low=0, high=6), "whole multiple"),
        (lambda: histogram([1], edges=[0]), "two or more"),
        (lambda: histogram([1], edges=[0, 2, 2]), "above the one before"),
        (lambda: edges_crossed([3, 1], size=1), "above the one before"),
        (lambda: Move(-1), "size -1"),
    ],
)
def test_what_cannot_be_counted_is_refused(ask, message):
    with pytest.raises(ChainError, match=message):
        ask()


# Quantiles from released counts: exact without noise, least squares by their conditions, intervals that hold.

EDGES = np.array([0, 2, 4, 6, 9, 12, 16, 24, 50], np.float64)
SHARES = (0.01, 0.25, 0.5, 0.9, 0.99, 1)
NO_NOISE = 0.01
FORMS = ("histogram", "cumulative")


def exact_counts(uses, form, edges=EDGES):
    return histogram(uses, edges=edges) if form == "histogram" else cumulative(uses, edges=edges)[:-1]


def discrete_laplace(rng, scale, shape):
    q = np.exp(-1 / scale)
    return rng.geometric(1 - q, shape) - rng.geometric(1 - q, shape)


def counts_of(values, households, *, scale, form, edges=EDGES):
    members = np.full(np.shape(values)[:-1], households)
    return noisy_counts(values, households=members, edges_kwh=edges, scale=scale, form=form)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("households", [1, 2, 7, 100, 1_000])
def test_without_noise_the_bin_is_that_of_the_household(form, households):
    uses = np.sort(np.random.default_rng(households).gamma(2, 5, households).clip(0, 50))
    noisy = counts_of(exact_counts(uses, form), households, scale=NO_NOISE, form=form)
    ranges = quantile_ranges(noisy, SHARES, coverage=0.95)
    ranks = [
        -(-households // 100),
        -(-households // 4),
        -(-households // 2),
        *(-(-n * households // 100) for n in (90, 99)),
    ]
    for i, rank in enumerate([*ranks, households]):
        use = uses[rank - 1]
        assert ranges.low_kwh[i] <= use <= ranges.high_kwh[i]
        assert np.searchsorted(EDGES, ranges.high_kwh[i]) - np.searchsorted(EDGES, ranges.low_kwh[i]) == 1
        assert ranges.low_kwh[i] <= ranges.value_kwh[i] <= ranges.high_kwh[i]


@pytest.mark.parametrize("form", FORMS)
def test_uniform_use_gives_the_quantiles_themselves(form):
    edges = np.linspace(0, 10, 6)
    uses = (np.arange(1_000) + 0.5) / 100
    noisy = counts_of(exact_counts(uses, form, edges), 1_000, scale=NO_NOISE, form=form, edges=edges)
    assert quantile_ranges(noisy, SHARES, coverage=0.95).value_kwh == pytest.approx([10 * share for share in SHARES])


def test_fitted_histograms_are_the_nearest_possible_ones():
    """At the least-squares point all positive counts were moved equally, and no zero count less than that."""
    rng = np.random.default_rng(5)
    values = rng.integers(-30, 60, (500, 8))
    counts = np.diff(fitted_below_edges(counts_of(values, 150, scale=20.0, form="histogram")), axis=-1)
    assert (counts > -1e-9).all()
    assert counts.sum(axis=-1) == pytest.approx(150)
    moved = counts - values
    for row, move in zip(counts > 1e-9, moved, strict=True):
        assert np.ptp(move[row]) < 1e-9
        assert (move[~row] >= move[row].max() - 1e-9).all()


def test_fitted_cumulative_counts_agree_with_scipy():
    values = np.random.default_rng(6).integers(-40, 190, (300, 7))
    fitted = fitted_below_edges(counts_of(values, 150, scale=20.0, form="cumulative"))
    for row, stored in zip(values, fitted, strict=True):
        assert stored == pytest.approx([0, *isotonic_regression(row).x.clip(0, 150), 150])


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("households", "scale"), [(40, 4.0), (400, 4.0), (400, 40.0)])
def test_intervals_hold_as_often_as_they_state(form, households, scale):
    rng, coverage, repeats = np.random.default_rng(11), 0.9, 4_000
    uses = np.sort(rng.gamma(2, 5, households).clip(0, 50))
    exact = exact_counts(uses, form)
    noisy = counts_of(exact + discrete_laplace(rng, scale, (repeats, exact.size)), households, scale=scale, form=form)
    truth = uses[[int(np.ceil(round(share * households, 9))) - 1 for share in SHARES]]

    def held(ranges):
        return ((ranges.low_kwh <= truth) & (truth <= ranges.high_kwh)).mean(axis=0)

    allowed = 4 * np.sqrt(coverage * (1 - coverage) / repeats)
    assert (held(quantile_ranges(noisy, SHARES, coverage=coverage)) >= coverage - allowed).all()
    if scale / households > 0.02:  # elsewhere bins are wider than any noise
        too_sure = quantile_ranges(replace(noisy, scale=scale / 4), SHARES, coverage=coverage)
        assert (held(too_sure) < coverage - allowed).any()


@pytest.mark.parametrize("form", FORMS)
def test_intervals_hold_for_every_small_population(form):
    """All histograms of three households in three bins, all noises up to 14: the coverage itself, not a sample."""
    scale, reach, coverage = 0.8, 14, 0.8
    edges = np.array([0.0, 1.0, 2.0, 3.0])
    shares = (0.3, 0.5, 0.7, 1)
    q, noise = np.exp(-1 / scale), np.arange(-reach, reach + 1)
    single = (1 - q) / (1 + q) * q ** np.abs(noise)
    cells = 3 if form == "histogram" else 2
    noises = np.stack(np.meshgrid(*[noise] * cells, indexing="ij"), axis=-1).reshape(-1, cells)
    probability = np.prod([single[noises[:, i] + reach] for i in range(cells)], axis=0)
    for uses in product([0.5, 1.5, 2.5], repeat=3):
        if list(uses) == sorted(uses):
            values = exact_counts(uses, form, edges) + noises
            ranges = quantile_ranges(
                counts_of(values, 3, scale=scale, form=form, edges=edges), shares, coverage=coverage
            )
            truth = np.array([uses[0], uses[1], uses[2], uses[2]])
            holds = (ranges.low_kwh <= truth) & (truth <= ranges.high_kwh)
            assert (probability @ holds >= coverage).all()


@pytest.mark.parametrize("form", FORMS)
def test_groups_together_are_the_groups_alone(form):
    rng = np.random.default_rng(7)
    values = rng.integers(0, 60, (5, 8 if form == "histogram" else 7))
    households = rng.integers(100, 300, 5)
    together = quantile_ranges(
        noisy_counts(values, households=households, edges_kwh=EDGES, scale=9.0, form=form), SHARES, coverage=0.9
    )
    for i in range(5):
        alone = quantile_ranges(
            noisy_counts(values[i], households=households[i], edges_kwh=EDGES, scale=9.0, form=form),
            SHARES,
            coverage=0.9,
        )
        for column in ("value_kwh", "low_kwh", "high_kwh"):
            assert getattr(alone, column).tolist() == getattr(together, column)[i].tolist()


@pytest.mark.parametrize("form", FORMS)
def test_reversed_counts_have_mirrored_intervals(form):
    """Household 26 of 101 from below is household 76 from above."""
    values, edges = np.array([3, 30, 7, 1, 44, 11, 4, 1]), np.linspace(0, 8, 9)
    mirrored = values[::-1] if form == "histogram" else 101 - values[:-1].cumsum()[::-1]
    values = values if form == "histogram" else values[:-1].cumsum()
    ranges, reversed_ranges = (
        quantile_ranges(counts_of(counts, 101, scale=3.0, form=form, edges=edges), [share], coverage=0.9)
        for counts, share in ((values, 0.25), (mirrored, 0.75))
    )
    assert ranges.low_kwh == 8 - reversed_ranges.high_kwh
    assert ranges.high_kwh == 8 - reversed_ranges.low_kwh


def test_the_largest_use_is_in_the_last_occupied_bin():
    """The fitted counts 4 1/3, 34 1/3, 0, 13 1/3 add up to 52 households but for the last digit of a float."""
    noisy = counts_of([69, 99, 37, 78, -300, -300], 52, scale=9.0, form="histogram", edges=np.arange(7.0))
    assert quantile_ranges(noisy, [1], coverage=0.9).value_kwh == pytest.approx(4.0)


def test_the_peak_is_a_bin_that_is_occupied_for_certain():
    clear = counts_of([900, 400, 300, 200, 100, 80, 0, 3], 1_983, scale=2.0, form="histogram")
    ranges = quantile_ranges(clear, [1], coverage=0.95)
    assert (ranges.low_kwh.item(), ranges.high_kwh.item()) == (12.0, 50.0)  # 3 of noise 2 may be nobody, 83 may not


def test_noise_larger_than_the_population_leaves_the_whole_range():
    noisy = counts_of([5, -80, 60, 2, 0, 9, -4, 12], 20, scale=500.0, form="histogram")
    ranges = quantile_ranges(noisy, [0.5], coverage=0.95)
    assert (ranges.low_kwh.item(), ranges.high_kwh.item()) == (0.0, 50.0)


@pytest.mark.parametrize(
    "changed",
    [
        {"values": [1, 2, 3]},
        {"households": 0},
        {"edges_kwh": [0, 2, 2]},
        {"edges_kwh": [0, 2]},
        {"form": "cumulative"},
    ],
)
def test_counts_that_do_not_fit_are_refused(changed):
    terms = {"values": [1, 2], "households": 3, "edges_kwh": [0, 2, 4], "scale": 1.0, "form": "histogram"} | changed
    with pytest.raises(ChainError):
        noisy_counts(terms.pop("values"), **terms)


@pytest.mark.parametrize("share", [0, -0.1, 1.01])
def test_a_share_outside_the_population_is_refused(share):
    with pytest.raises(ChainError, match="share"):
        quantile_ranges(counts_of([1, 2, 3, 4, 5, 6, 7, 8], 36, scale=1.0, form="histogram"), [share], coverage=0.9)
