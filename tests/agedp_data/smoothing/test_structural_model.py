"""Smoothed estimates: the filter and smoother are the dense Gaussian formulas, for series, groups and layers."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from agedp_data.errors import ChainError
from agedp_data.smoothing.estimates import (
    DIFFERENCE,
    CellFigures,
    estimate_all,
    estimate_cells,
    estimate_so_far,
    layer_sum,
)
from agedp_data.smoothing.structural_model import (
    DAILY_MEAN,
    PRIOR,
    Amplitudes,
    Covariates,
    Dynamics,
    Estimate,
    Prior,
    draw_amplitudes,
    fit_amplitudes,
    kalman_filter,
    level_scales,
    log_likelihoods,
    most_probable,
    single_variance,
    state_design,
    state_dynamics,
    state_precision,
    whitened_products,
)

# The filter and smoother give the dense Gaussian formulas; estimates are calibrated and never revised.

ONE = np.exp(PRIOR.logarithms())[None, :]


def covariates(days: int, *, weather: bool = True) -> Covariates:
    number = np.arange(days)
    heating = np.clip(15.5 - 10 - 8 * np.sin(number / 58), 0, None) / 5 if weather else None
    holiday = number % 61 == 17
    return Covariates(number % 7, holiday, holiday | (number % 365 > 350), heating)


def covariance(known: Covariates, amplitudes: Amplitudes) -> np.ndarray:
    """The covariance of the true figures, written down from the kernels of the parts."""
    days = known.weekday.size
    lag = np.abs(np.subtract.outer(np.arange(days), np.arange(days)))
    scaled = np.sqrt(3) * lag / 45
    total = 10.0**2 + amplitudes.level**2 * (1 + scaled) * np.exp(-scaled)
    total = total + amplitudes.short**2 * np.exp(-lag / 4)
    total = total + amplitudes.weekday**2 * np.equal.outer(known.weekday, known.weekday)
    total = total + amplitudes.holiday**2 * np.outer(known.holiday, known.holiday)
    if known.heating is not None:
        before = np.concatenate([known.heating[:1], known.heating[:-1]])
        for column in (known.heating, (known.heating + before) / 2):
            total = total + amplitudes.heating**2 * np.outer(column, column)
    return total + np.diag(np.where(known.special, amplitudes.special**2, amplitudes.single**2))


def dense(observed, noise, prior):
    """Mean and variance of the true figures given the observed ones, by the formula for Gaussian vectors."""
    seen = np.isfinite(observed)
    gain = prior[:, seen] @ np.linalg.inv(prior[np.ix_(seen, seen)] + np.diag(noise[seen]))
    return 10 + gain @ (observed[seen] - 10), np.diag(prior - gain @ prior[seen])


def draw(rng, known, amplitudes, sd):
    days = known.weekday.size
    truth = 10 + np.linalg.cholesky(covariance(known, amplitudes) + 1e-9 * np.eye(days)) @ rng.normal(size=days)
    return truth, truth + rng.laplace(scale=sd / np.sqrt(2), size=days)


@pytest.mark.parametrize("weather", [False, True])
def test_the_smoother_is_the_dense_formula(weather):
    rng, known = np.random.default_rng(5), covariates(120, weather=weather)
    noise = rng.uniform(0.1, 4, 120)
    observed = draw(rng, known, PRIOR, 1.0)[1]
    observed[rng.random(120) < 0.2] = np.nan
    mean, variance = dense(observed, noise, covariance(known, PRIOR))
    estimate = estimate_all(observed, noise, known, ONE)
    np.testing.assert_allclose(estimate.mean, mean, atol=1e-8)
    np.testing.assert_allclose(estimate.variance, variance, rtol=1e-7, atol=1e-8)


def test_the_live_estimate_is_the_dense_formula_of_the_days_so_far():
    rng, known = np.random.default_rng(6), covariates(27)
    noise, observed = np.full(27, 0.5), draw(rng, known, PRIOR, 0.7)[1]
    live = estimate_so_far(observed, noise, known)
    for day in (1, 10, 26):
        so_far = covariance(known.over(slice(day + 1)), PRIOR)
        mean, variance = dense(observed[: day + 1], noise[: day + 1], so_far)
        np.testing.assert_allclose([live.mean[day], live.variance[day]], [mean[-1], variance[-1]], atol=1e-8)


@pytest.mark.parametrize(("sd", "least", "most"), [(0.6, 0.88, 0.93), (1.5, 0.88, 0.93), (4.0, 0.90, 0.98)])
def test_intervals_of_series_of_the_model_are_calibrated(sd, least, most):
    """Amplitudes are at the centre of the prior: about .91, .93 and .97 of a year's days are inside.

    The more noise, the less the figures settle the amplitudes, and those of the prior, which are averaged over, are
    wider than its centre.
    """
    rng, known, inside, squares = np.random.default_rng(9), covariates(120), [], []
    for _ in range(10):
        truth, observed = draw(rng, known, PRIOR, sd)
        noise = np.full(120, sd**2)
        amplitudes = draw_amplitudes(observed, noise, known, most_probable(observed, noise, known))
        estimate = estimate_all(observed, noise, known, amplitudes)
        score = (truth - estimate.mean) / np.sqrt(estimate.variance)
        inside.append(np.abs(score) < 1.645)
        squares.append(score**2)
    assert least <= np.mean(inside) <= most
    assert 0.6 <= np.mean(squares) <= 1.15


def test_the_fit_is_the_maximum_of_the_dense_density():
    rng, known = np.random.default_rng(10), covariates(90)
    true = replace(PRIOR, level=3.0, single=0.1)
    noise, observed = np.full(90, 0.25), draw(rng, known, true, 0.5)[1]

    def cost(amplitudes: Amplitudes) -> float:
        total = covariance(known, amplitudes) + np.diag(noise)
        value = 0.5 * (np.linalg.slogdet(total)[1] + (observed - 10) @ np.linalg.solve(total, observed - 10))
        return value + 0.5 * ((amplitudes.logarithms() - PRIOR.logarithms()) ** 2).sum()

    fitted = most_probable(observed, noise, known)
    best = cost(fitted)
    for name in ("level", "weekday", "holiday", "heating", "short", "single", "special"):
        for factor in (0.97, 1.03):
            assert cost(replace(fitted, **{name: getattr(fitted, name) * factor})) > best


# The banded likelihood is the density of the dense Gaussian law, and that of the filter.


@pytest.mark.parametrize("weather", [False, True])
def test_it_is_the_dense_density_and_that_of_the_filter(weather):
    rng, public = np.random.default_rng(1), covariates(90, weather=weather)
    noise, observed = rng.uniform(0.05, 4, 90), draw(rng, public, PRIOR, 1.0)[1]
    observed[rng.random(90) < 0.2] = np.nan
    stack = np.exp(PRIOR.logarithms() + rng.normal(scale=0.5, size=(4, 7)))
    stack[1, 1:4] = stack[0, 1:4] * 2  # rows that share a factorisation
    stack[1, [0, 4, 5, 6]] = stack[0, [0, 4, 5, 6]]
    likelihoods = log_likelihoods(observed, noise, public, stack, DAILY_MEAN)
    seen = np.isfinite(observed)
    for row, likelihood in zip(stack, likelihoods, strict=True):
        law = (covariance(public, Amplitudes(*row)) + np.diag(noise))[np.ix_(seen, seen)]
        dense = stats.multivariate_normal(np.full(seen.sum(), 10.0), law).logpdf(observed[seen])
        assert likelihood == pytest.approx(dense, abs=1e-8)
    rest = noise + single_variance(public, stack)
    filtered = kalman_filter(observed - 10, rest, state_design(public, DAILY_MEAN, stack), state_dynamics(public))
    np.testing.assert_allclose(filtered.log_likelihood, likelihoods, atol=1e-8)


@pytest.mark.parametrize("variance", [1e-8, 1e8])
def test_the_fit_survives_no_noise_and_nothing_but_noise(variance):
    public = covariates(120)
    observed = draw(np.random.default_rng(2), public, PRIOR, 0.1)[1]
    fitted = most_probable(observed, np.full(120, variance), public).logarithms()
    assert np.isfinite(fitted).all()
    if variance > 1:
        np.testing.assert_allclose(fitted, PRIOR.logarithms(), atol=0.01)  # the figures say nothing


def test_series_that_share_amplitudes_differ_by_a_factor():
    rng, public = np.random.default_rng(3), covariates(200)
    smaller, larger = (Amplitudes(*(factor * np.exp(PRIOR.logarithms()))) for factor in (0.5, 2.0))
    series = np.array([draw(rng, public, size, 0.3)[1] for size in (smaller, smaller, smaller, larger)])
    draws = fit_amplitudes(series, np.full(series.shape, 0.09), public)[1]
    assert draws.shape == (4, 8, 7)
    sizes = np.exp(np.log(draws).mean(axis=(1, 2)))
    assert (sizes[3] > 1.5 * sizes[:3]).all()


# Groups and their total add up, layers are added, and live estimates of cells are never revised.

DAYS, FEW = 60, 27
HOUSEHOLDS = np.array([900, 300, 600])


def cells(rng) -> list[CellFigures]:
    truths = 10 + rng.normal(size=DAYS).cumsum() / 4 + np.array([0, 0.8, -0.4])[:, None]
    noise = 600 / HOUSEHOLDS[:, None] + np.zeros(DAYS)
    observed = truths + rng.laplace(scale=noise / np.sqrt(2))
    observed[rng.random(observed.shape) < 0.1] = np.nan
    counts = np.repeat(HOUSEHOLDS[:, None], DAYS, axis=1).astype(float)
    return [CellFigures(*rows) for rows in zip(observed, noise**2, counts, strict=True)]


def test_later_days_never_revise_live_cells():
    rng, groups = np.random.default_rng(2), 17
    counts = np.repeat([[90.0 * groups], *([[50.0 + 10 * number] for number in range(groups)])], DAYS, axis=1)
    noise = 300 / counts
    observed = 10 + rng.normal(size=counts.shape) + rng.laplace(scale=noise)
    observed[rng.random(observed.shape) < 0.05] = np.nan
    observed[:, 1:3] = np.where(np.arange(groups + 1)[:, None] < 5, observed[:, 1:3], np.nan)
    counts[np.isnan(observed)] = np.nan

    def live(days: int, figures: np.ndarray, households: np.ndarray) -> list[Estimate]:
        rows = zip(figures[:, :days], noise[:, :days] ** 2, households[:, :days], strict=True)
        public, parts = covariates(DAYS).over(slice(days)), tuple(range(1, groups + 1))
        return estimate_cells([CellFigures(*row) for row in rows], public, parts=parts, variant="live")

    everything = live(DAYS, observed, counts)
    later = np.arange(DAYS) >= 40
    changed = live(DAYS, np.where(later, 3.0, observed), np.where(later, 70.0, counts))
    for days, revised in [(40, changed), *[(days, live(days, observed, counts)) for days in (1, 2, 3, 28, 29, 57)]]:
        for estimate, again in zip(everything, revised, strict=True):
            assert estimate.mean[:days].tobytes() == again.mean[:days].tobytes()
            assert estimate.variance[:days].tobytes() == again.variance[:days].tobytes()


def test_a_late_day_is_unknown_to_live_cells_with_its_households():
    figures = np.array([[10.0, 12.0, np.nan, 11.0], [9.0, 8.0, np.nan, 10.0], [11.0, 20.0, np.nan, 13.0]])
    counts = np.array([[40.0, 50.0, np.nan, 50.0], [20.0, 10.0, np.nan, 30.0], [20.0, 40.0, np.nan, 20.0]])

    def live(days: list[int], known_from: list[int]) -> list[Estimate]:
        rows = [CellFigures(figures[i, days], np.full(len(days), 0.04), counts[i, days]) for i in range(3)]
        public = covariates(len(days))
        return estimate_cells(rows, public, parts=(1, 2), variant="live", known_from=np.array(known_from))

    known, unknown = (
        live([0, 1, 2, 3], [0, 3, 2, 3]),
        live([0, 2, 2], [0, 1, 2]),
    )  # in place of day 1 one without figures
    for of_known, of_unknown in zip(known, unknown, strict=True):
        assert of_known.mean[2] == pytest.approx(of_unknown.mean[2], rel=1e-12)
        assert of_known.variance[2] == pytest.approx(of_unknown.variance[2], rel=1e-12)


def dense_groups(public, figures, noise, groups):
    """Total and groups given all figures: groups of equal size differ from the total by equal laws that cancel."""
    size, total, part = FEW, covariance(public, PRIOR), covariance(public, DIFFERENCE.amplitudes)
    part += DIFFERENCE.constant_sd_kwh**2 - 10.0**2
    cancel = np.eye(groups) - 1 / groups
    blocks = np.kron(np.ones((groups + 1, groups + 1)), total)
    blocks[size:, size:] += np.kron(cancel * groups / (groups - 1), part)
    seen = np.isfinite(figures.ravel())
    gain = blocks[:, seen] @ np.linalg.inv(blocks[np.ix_(seen, seen)] + np.diag(noise.ravel()[seen]))
    mean = 10 + gain @ (figures.ravel()[seen] - 10)
    return mean.reshape(groups + 1, size), np.diag(blocks - gain @ blocks[seen]).reshape(groups + 1, size)


@pytest.mark.parametrize("with_total", [True, False])
def test_equal_groups_are_the_dense_formula_of_all_cells(with_total):
    rng, public, groups = np.random.default_rng(4), covariates(FEW), 3
    noise = np.repeat([[0.4], [2.0], [2.0], [2.0]], FEW, axis=1)
    figures = 10 + rng.normal(size=(groups + 1, FEW)) * np.sqrt(noise)
    figures[:, 7] = np.nan  # a day that is skipped
    if not with_total:
        figures[0] = np.nan
    mean, variance = dense_groups(public, figures, noise, groups)
    counts = np.repeat([[27.0], [9.0], [9.0], [9.0]], FEW, axis=1)
    rows = [CellFigures(*row) for row in zip(figures, noise, counts, strict=True)]
    live = estimate_cells(rows, public, parts=(1, 2, 3), variant="live")  # amplitudes of the prior, for 28 days
    np.testing.assert_allclose([cell.mean[-1] for cell in live], mean[:, -1], atol=1e-8)
    np.testing.assert_allclose([cell.variance[-1] for cell in live], variance[:, -1], atol=1e-8)
    assert np.isfinite([cell.mean[7] for cell in live]).all()


@pytest.mark.parametrize("variant", ["archive", "live"])
def test_groups_at_sixteen_times_the_level_have_sixteen_times_the_estimates(variant):
    rows = cells(np.random.default_rng(6))
    large = [CellFigures(16 * row.observed, 256 * row.noise_variance, row.households) for row in rows]
    each = [estimate_cells(of, covariates(DAYS), parts=(1, 2), variant=variant) for of in (rows, large)]
    for small, scaled in zip(*each, strict=True):
        np.testing.assert_allclose(scaled.mean, 16 * small.mean, rtol=1e-5)
        np.testing.assert_allclose(scaled.variance, 256 * small.variance, rtol=1e-4)


def test_layers_are_added_with_their_variances_and_parts_leave_one_total():
    added = layer_sum([Estimate(np.array([1.0, 2]), np.array([3.0, 4])), Estimate(np.array([5.0, 6]), np.ones(2))])
    assert (added.mean.tolist(), added.variance.tolist()) == ([6, 8], [4, 5])
    for refused in (
        lambda: layer_sum([]),
        lambda: estimate_cells(cells(np.random.default_rng(3)), covariates(DAYS), parts=(1,), variant="archive"),
    ):
        with pytest.raises(ChainError):
            refused()


# Estimates of series of any level: intervals hold, live estimates stay, and nothing fails in silence.

LONG_DAYS = 120


def around_ten(rng: np.random.Generator) -> np.ndarray:
    """A true series of the model whose mean is 10 kWh."""
    truth = draw(rng, covariates(LONG_DAYS), PRIOR, 1.0)[0]
    return truth - truth.mean() + 10


def estimate(observed: np.ndarray, variance: float, variant: str) -> Estimate:
    days = observed.size
    cell = CellFigures(observed, np.full(days, variance), np.full(days, 100.0))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return estimate_cells([cell], covariates(days), parts=None, variant=variant)[0]


@pytest.mark.parametrize("size", [0.2, 1, 4, 8, 100])
@pytest.mark.parametrize(("variant", "seeds"), [("archive", 6), ("live", 2)])
def test_intervals_hold_their_share_of_days_at_any_level(size, variant, seeds):
    inside = []
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        truth = size * around_ten(rng)
        noise = size * 1.5
        figures = truth + rng.laplace(scale=noise / np.sqrt(2), size=LONG_DAYS)
        result = estimate(figures, noise**2, variant)
        inside.append(np.abs(truth - result.mean) <= 1.645 * np.sqrt(result.variance))
    assert 0.86 <= np.mean(inside) <= 0.97


def test_the_factor_is_that_of_the_level_so_far_and_1_where_noise_hides_it():
    figures = np.array([40.0, 40, 40, np.nan, 2.5, 2.5])
    assert level_scales(figures, np.full(6, 0.01), DAILY_MEAN).tolist() == [4, 4, 4, 4, 4, 4]
    assert level_scales(figures[4:], np.full(2, 0.01), DAILY_MEAN).tolist() == [1, 1]
    # by hand: means of 40, their error 30 / sqrt(n); 40 - 10 exceeds two of it from the fifth on
    assert level_scales(np.full(6, 40.0), np.full(6, 900.0), DAILY_MEAN).tolist() == [1, 1, 1, 1, 4, 4]
    assert level_scales(np.array([14.0, 14.0]), np.full(2, 1e-6), DAILY_MEAN).tolist() == [1, 1]
    assert level_scales(figures, np.full(6, 0.01), Prior()).tolist() == [1] * 6


def test_figures_that_come_late_count_from_the_day_on_which_they_are_known():
    figures, late = np.array([40.0, 40.0, 900.0, 40.0]), np.array([2, 1, 4, 3])
    assert level_scales(figures, np.full(4, 0.01), DAILY_MEAN, known_from=late).tolist() == [1, 4, 4, 4]


@pytest.mark.parametrize("size", [1, 8])
def test_later_days_never_revise_the_factor(size):
    figures = size * draw(np.random.default_rng(4), covariates(60), PRIOR, 1.0)[1]
    changed = np.where(np.arange(60) >= 20, 50 * figures, figures)
    first, second = (estimate(each, 9.0, "live") for each in (figures, changed))
    assert first.mean[:20].tobytes() == second.mean[:20].tobytes()
    assert first.variance[:20].tobytes() == second.variance[:20].tobytes()


def test_a_precision_that_floats_cannot_factorise_has_no_likelihood():
    still = Dynamics(np.eye(1), np.full((1, 1), 1e-9), np.full((1, 1), 4.0))
    precision = np.full(3, -1e12)  # no precision is negative; a rounded one may be
    products, determinant = whitened_products(np.ones((1, 3)), precision, np.ones(1), state_precision(still, 3))
    assert np.isnan(products).all()
    assert determinant == np.inf
    public, stack = covariates(30), np.exp(PRIOR.logarithms())[None] * np.array([[1.0], [1e12]])
    likelihoods = log_likelihoods(np.full(30, 9.0), np.full(30, 1e-12), public, stack, DAILY_MEAN)
    assert np.isfinite(likelihoods[0])


def test_figures_beyond_floats_are_refused_with_a_sentence():
    with pytest.raises(ChainError, match=r"reach 1e.200 kWh. Check their unit"):
        most_probable(np.full(30, 1e200), np.full(30, 1e-200), covariates(30))
