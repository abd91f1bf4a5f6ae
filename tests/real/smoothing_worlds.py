"""True series of real households, noise on them, and how often intervals of the smoothed estimates hold."""

from __future__ import annotations

from datetime import date, timedelta

import numpy as np

from agedp_data.smoothing.estimates import CellFigures, estimate_cells, estimate_series
from agedp_data.smoothing.public_calendar import covariates
from agedp_data.smoothing.structural_model import DAILY_MEAN, Prior, most_probable

DAYS = [date(2013, 1, 1) + timedelta(days=number) for number in range(365)]
CALENDAR = covariates(DAYS, region="GB-ENG")
QUANTILE = 1.6449  # of the normal law, for 90 %


def complete_households(households: dict[str, np.ndarray]) -> np.ndarray:
    """Daily use of the households with at least 46 readings on all but five days, shape (n, 365) [kWh]."""
    readings = np.array([households[name] for name in sorted(households)])
    is_read = (readings >= 0).sum(-1) >= 46
    daily = np.where(readings >= 0, readings, 0).sum(-1) / 1000
    whole = is_read.mean(-1) > 1 - 6 / 365
    mean = (daily * is_read).sum(-1, keepdims=True) / is_read.sum(-1, keepdims=True)
    return np.where(is_read, daily, mean)[whole]


def hardest_days(truth: np.ndarray) -> np.ndarray:
    """The tenth of days that the calendar explains least: weekdays, holidays, year's end, two harmonics of the year."""
    angle = 2 * np.pi * np.arange(365) / 365.25
    waves = [wave(times * angle) for times in (1, 2) for wave in (np.sin, np.cos)]
    weekdays = [CALENDAR.weekday == number for number in range(7)]
    table = np.array([*weekdays, CALENDAR.holiday, CALENDAR.special, *waves], float).T
    residual = np.abs(truth - table @ np.linalg.lstsq(table, truth, rcond=None)[0])
    return residual > np.sort(residual)[-37]


def prior_of(truth: np.ndarray) -> Prior:
    return Prior(amplitudes=most_probable(truth, np.full(365, 1e-4), CALENDAR))


def estimates(truths: np.ndarray, sizes: list[int], sd: float, variant: str, prior: Prior, rng) -> tuple:
    """Raw figures, mean and variance of the estimates of a series, or of groups; the first row is then the total."""
    noise = sd * sizes[0] / np.array(sizes)[:, None] * np.ones(365)
    observed = truths + rng.laplace(scale=noise / np.sqrt(2))
    if len(sizes) == 1:
        known = np.arange(365) if variant == "live" else None
        estimate = estimate_series(observed[0], noise[0] ** 2, CALENDAR, prior=prior, known_from=known)
        return observed, estimate.mean[None], estimate.variance[None]
    counts = np.array(sizes, float)[:, None] * np.ones(365)
    cells = [CellFigures(*row) for row in zip(observed, noise**2, counts, strict=True)]
    results = estimate_cells(cells, CALENDAR, parts=tuple(range(1, len(sizes))), variant=variant)
    return observed[1:], *(np.array([getattr(row, name) for row in results])[1:] for name in ("mean", "variance"))


def worlds(daily: np.ndarray) -> dict[str, list[tuple[np.ndarray, list[int], Prior]]]:
    """By series: true series, sizes and prior. Halves have the prior of the other half, groups that of the package."""
    even, odd = daily[::2], daily[1::2]
    halves = [(even, odd), (odd, even)]
    groups = [daily[start : 4 * 9 : 4].mean(0) for start in range(4)]
    return {
        "37 households": [(daily.mean(0)[None], [len(daily)], DAILY_MEAN)],
        "half, prior of the other half": [(a.mean(0)[None], [len(a)], prior_of(b.mean(0))) for a, b in halves],
        "4 groups of 9": [(np.array([np.mean(groups, axis=0), *groups]), [36, 9, 9, 9, 9], DAILY_MEAN)],
    }


def measure(world: list[tuple[np.ndarray, list[int], Prior]], sd: float, variant: str, draws: int) -> dict[str, float]:
    """Shares of days inside intervals of 90 %, and error relative to that of raw figures, over draws of the noise."""
    inside, special, hardest, errors, raws = [], [], [], [], []
    for truths, sizes, prior in world:
        cells = truths if len(sizes) == 1 else truths[1:]
        for draw in range(draws):
            observed, mean, variance = estimates(truths, sizes, sd, variant, prior, np.random.default_rng(draw))
            error = mean - cells
            holds = np.abs(error) <= QUANTILE * np.sqrt(variance)
            inside.append(holds.mean())
            special.append(holds[:, CALENDAR.special].mean())
            hardest.append(np.mean([row[hardest_days(truth)].mean() for row, truth in zip(holds, cells, strict=True)]))
            errors.append(np.mean(error**2))
            raws.append(np.mean((observed - cells) ** 2))
    return {
        "ratio": float(np.sqrt(np.mean(errors) / np.mean(raws))),
        "all_days": float(np.mean(inside)),
        "special_days": float(np.mean(special)),
        "hardest_days": float(np.mean(hardest)),
    }
