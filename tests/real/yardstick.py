"""The figures of `agedp_data/yardstick.json`, from the 40 real London households of 2013.

`python -m tests.real.yardstick DATA DRAWS` writes it.

What a clamp cuts is counted. The error of smoothed estimates is measured: noise on the mean of the households,
smoothed as `agedp smooth` does, against the mean without noise. One run takes about half an hour.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from datetime import date, timedelta
from pathlib import Path

import numpy as np

from agedp_data.smoothing.estimates import CellFigures, above_first_layer, estimate_cells, layer_sum
from agedp_data.smoothing.public_calendar import covariates
from agedp_data.smoothing.structural_model import Estimate
from tests.real.conftest import read_households

TARGET = Path(__file__).parents[2] / "agedp_data" / "yardstick.json"
CLAMPS = (1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 20, 25, 30, 35, 40, 45, 50, 60, 75)
SHORT_CLAMPS = (0.1, 0.2, 0.3, 0.5, 0.75, 1, 1.5, 2, 3, 4, 5, 6)
SINGLE, LAYERED = ((0.0, 75.0, 1.0),), ((0.0, 20.0, 0.77), (20.0, 75.0, 0.23))
"""Layers by lower bound, upper bound [kWh] and share."""
NOISES = tuple(float(f"{0.1 * 10 ** (step / 8):.2g}") for step in range(21))
"""Standard deviations of the noise of a day [kWh per household]."""
LENGTHS = (91, 182, 365)
FIRST = date(2013, 1, 1)


def household_days(households: Mapping[str, np.ndarray]) -> np.ndarray:
    """Return the energy of each household's day, shape (40, 365) [kWh], NaN with more than two missing readings."""
    readings = np.array([households[name] for name in sorted(households)])
    energy = np.where(readings < 0, 0, readings).sum(axis=2) / 1000.0
    return np.where((readings < 0).sum(axis=2) <= 2, energy, np.nan)


def cut_by(values: np.ndarray, clamp: float) -> tuple[float, float]:
    """Return which part of the values a clamp cuts, and which part of their sum."""
    known = values[np.isfinite(values)]
    return float((known > clamp).mean()), float(np.maximum(known - clamp, 0).sum() / known.sum())


def worst_month_kwh(days: np.ndarray, clamp: float) -> float:
    """Return the mean of what a clamp cuts of a household's day in the calendar month with the largest such mean."""
    months = np.array([(FIRST + timedelta(day)).month for day in range(days.shape[1])])
    cut = np.maximum(days - clamp, 0)
    return max(float(np.nanmean(cut[:, months == month])) for month in range(1, 13))


def smoothed_errors(
    days: np.ndarray,
    layers: tuple[tuple[float, float, float], ...],
    noise: float,
    *,
    length: int,
    live: bool,
    draws: int,
    seed: int,
) -> np.ndarray:
    """Return the errors of smoothed days, where the sum of the layers has this noise [kWh].

    Live estimates are those of the days from the 92nd on.
    """
    rng = np.random.default_rng(seed)
    scales = np.array([(high - low) / share for low, high, share in layers])
    deviations = scales * noise / np.hypot.reduce(scales)
    errors = []
    for draw in range(draws):
        begin = (draw * 97) % (365 - length + 1)  # another part of the year each time
        public = covariates([FIRST + timedelta(begin + day) for day in range(length)], region="GB-ENG")
        part = days[:, begin : begin + length]
        estimates: list[Estimate] = []
        true = np.zeros(length)
        for (low, high, _), deviation in zip(layers, deviations, strict=True):
            mean = np.nanmean(np.clip(part, low, high) - low, axis=0)
            true += mean
            observed = mean + rng.laplace(0, deviation / np.sqrt(2), length)
            figures = CellFigures(observed, np.full(length, deviation**2), np.full(length, 40.0), low)
            known = above_first_layer(public, estimates[0]) if estimates else public
            estimates += estimate_cells([figures], known, parts=None, variant="live" if live else "archive")
        errors.append((layer_sum(estimates).mean - true)[91 if live else 0 :])
    return np.concatenate(errors)


def root_mean_square(errors: np.ndarray) -> float:
    return float(np.sqrt(np.mean(errors**2)))


def main(households: Mapping[str, np.ndarray], *, draws: int) -> None:
    days, half_hours = household_days(households), np.concatenate([*households.values()]).ravel()
    half_hours = np.where(half_hours < 0, np.nan, half_hours) / 1000.0
    designs = {"single": SINGLE, "layered": LAYERED}
    smoothed = {}
    for name, layers in designs.items():
        for length in (*LENGTHS, 0):
            errors = [
                root_mean_square(
                    smoothed_errors(
                        days, layers, noise, length=length or 365, live=not length, draws=draws, seed=number
                    )
                )
                for number, noise in enumerate(NOISES)
            ]
            smoothed[f"{name} {length or 'live'}"] = [float(f"{error:.3g}") for error in errors]
            print(name, length or "live", smoothed[f"{name} {length or 'live'}"], flush=True)
    written = {
        "name": "40 households of the Low Carbon London trial", "year": 2013, "households": len(households),
        "source": "UK Power Networks / Greater London Authority, Low Carbon London, CC BY 4.0",
        "household_days": int(np.isfinite(days).sum()), "mean_kwh": round(float(np.nanmean(days)), 3),
        "largest_kwh": round(float(np.nanmax(days)), 1),
        "half_hour_mean_kwh": round(float(np.nanmean(half_hours)), 4),
        "largest_half_hour_kwh": round(float(np.nanmax(half_hours)), 3),
        "cut": {str(clamp): [float(f"{part:.3g}") for part in cut_by(days, clamp)] for clamp in CLAMPS},
        "worst_month_kwh": {str(clamp): float(f"{worst_month_kwh(days, clamp):.3g}") for clamp in CLAMPS},
        "half_hour_cut": {str(of): [float(f"{part:.3g}") for part in cut_by(half_hours, of)] for of in SHORT_CLAMPS},
        "layers": [[*layer] for layer in LAYERED],
        "noise_kwh": NOISES, "smoothed_error_kwh": smoothed,
    }  # fmt: skip
    TARGET.write_text(json.dumps(written, indent=1) + "\n")


if __name__ == "__main__":
    main(read_households(Path(sys.argv[1]) / "london" / "kaggle"), draws=int(sys.argv[2]))
