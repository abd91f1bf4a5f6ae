"""Quantiles from released counts: exact without noise, least squares by their conditions, intervals that hold."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from scipy.optimize import isotonic_regression

from agedp_data.errors import ChainError
from agedp_data.series.distribution import fitted_below_edges, noisy_counts, quantile_ranges
from agedp_data.series.sensitivity import cumulative, histogram

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
