r"""Synthetic households -> errors of their published daily means, raw and smoothed, under a few promises.

The exact mean is known, so an error is a difference: released mean minus mean before noise, both after the clamp. Noise
is drawn by the product's own mechanism, losses of a day come from its planner, estimates from its smoothing.

Example: 1,000 households, a clamp of 50 kWh and epsilon 1 per day have noise of sqrt(2) x 50 / 1,000 = 0.0707 kWh.

Decisions:

* The households of a row are the first of one population of 5,000, so that rows differ by their number and noise alone.
* A promise that spends alike on all days is measured, so that one loss describes its year.
* Smoothed are archive estimates, which know the whole year, with weekdays and without weather: synthetic households
  have no holidays and their weather is nobody's table.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, timedelta
from fractions import Fraction
from typing import Any, Final

import numpy as np
import pandas as pd

import agedp
from agedp.promises import PromiseKeys
from agedp_data import mechanisms
from agedp_data.arrays import Floats
from agedp_data.datasets.synthetic.households import day_factors, draw_energies, draw_households
from agedp_data.epsilon import NANO
from agedp_data.smoothing.estimates import CellFigures, estimate_cells
from agedp_data.smoothing.public_calendar import covariates

HOUSEHOLDS: Final = (50, 100, 200, 500, 1000, 5000)
DAYS: Final = 365
FIRST_DAY: Final = date(2013, 1, 1)
CLAMP_KWH: Final = 50
DRAWS: Final = 10
SHARE_OF_DAYS: Final = 0.95
_MEAN_KWH: Final = 10.0
_SEED: Final = 1
_SLOTS: Final = 48


@dataclass(frozen=True, slots=True)
class MeasuredPromise:
    """A promise to measure under: its key, what it promises in words, and the promise with its model."""

    key: str
    text: str
    promise: PromiseKeys
    model: Any = None


def promises() -> list[MeasuredPromise]:
    """Return the promises of the page, the weakest first."""
    year: dict[str, Any] = {"window_days": DAYS, "epsilon_per_window": 10, "spend": "even"}
    caps: dict[str, Any] = {"max_day_epsilon": 1, "epsilon_total": "unlimited"}
    aged = agedp.AgeDependent(age_days=7, method="total_variation", secret="day", risk=0.1, **caps)  # noqa: S106
    curve = agedp.DeclaredCurve([1, 7], [0.6, 0.1], basis="an example, not measured", assume="markov")
    return [
        MeasuredPromise("day-1", "classical, epsilon 1 per day", agedp.Classical(epsilon_per_day=1, **caps)),
        MeasuredPromise(
            "age",
            "age-dependent, risk 0.1 seven days later under a declared Markov chain",
            aged,
            curve,
        ),
        MeasuredPromise("day-0.1", "classical, epsilon 0.1 per day", agedp.Classical(epsilon_per_day=0.1, **caps)),
        MeasuredPromise(
            "year-delta",
            "w-event, (10, 1e-6) per year, by the span accountant",
            agedp.WEvent(delta="1e-6", **year, **caps),
        ),
        MeasuredPromise("year", "w-event, epsilon 10 per year, by the sum", agedp.WEvent(**year, **caps)),
    ]


def day_loss(measured: MeasuredPromise) -> Fraction:
    """Return the loss that a promise grants to each day of a year, by `agedp.plan` [epsilon].

    Raises:
        ValueError: the days have different losses, or some day has none.
    """
    planned = agedp.plan(
        _small_table(), promise=measured.promise, clamp_kwh=CLAMP_KWH, min_households=1,
        **({} if measured.model is None else {"model": measured.model}),
    )  # fmt: skip
    losses = {round(epsilon * NANO) for epsilon in planned.table["epsilon"]}
    if len(planned.table) != DAYS or len(losses) != 1:
        raise ValueError(f"{measured.key}: {len(planned.table)} days with {len(losses)} different losses")
    return Fraction(losses.pop(), NANO)


def _small_table() -> pd.DataFrame:
    """Return readings of one household over the year: a plan needs days and a roster, and no more."""
    times = pd.date_range(FIRST_DAY, periods=DAYS * _SLOTS, freq="30min", tz="UTC")
    return pd.DataFrame({"household_id": "1", "interval_start": times, "energy_wh": 200})


def daily_totals() -> Floats:
    """Return the daily totals of the synthetic households after the clamp, shape (5000, 365) [Wh]."""
    profiles = draw_households(max(HOUSEHOLDS), mean_kwh=_MEAN_KWH, seed=_SEED)
    factors = day_factors(FIRST_DAY, DAYS, seed=_SEED, coldest=date(2013, 1, 20))
    totals = np.empty((max(HOUSEHOLDS), DAYS))
    slots = tuple(range(_SLOTS)) * DAYS
    for indices, energy_wh in draw_energies(profiles, slots=slots, factors=np.repeat(factors, _SLOTS), seed=_SEED):
        totals[indices] = energy_wh.reshape(-1, DAYS, _SLOTS).sum(axis=2)
    return totals


def measure() -> dict[str, Any]:
    """Return the figures of the page, as stored in measured.json."""
    totals = daily_totals()
    counted = np.minimum(totals, 1000 * CLAMP_KWH)
    sums = {number: counted[:number].sum(axis=0) for number in HOUSEHOLDS}
    means = {number: of / (1000 * number) for number, of in sums.items()}
    return {
        "households": list(HOUSEHOLDS),
        "days": DAYS,
        "draws": DRAWS,
        "clamp_kwh": CLAMP_KWH,
        "clamped_share": float((totals > counted).mean()),
        "mean_kwh": [float(means[number].mean()) for number in HOUSEHOLDS],
        "change_kwh": [_root_mean_square(np.diff(means[number])) for number in HOUSEHOLDS],
        "spread_kwh": [float(means[number].std()) for number in HOUSEHOLDS],
        "promises": [_measured(promise, sums) for promise in promises()],
    }


def _measured(promise: MeasuredPromise, sums: dict[int, Floats]) -> dict[str, Any]:
    loss = day_loss(promise)
    errors = [list(_errors(loss, number, of)) for number, of in sums.items()]
    return {
        "key": promise.key,
        "text": promise.text,
        "epsilon": float(loss),
        "expected": [expected_error(float(loss), number) for number in sums],
        "raw": [_root_mean_square(np.array([raw for raw, _ in of])) for of in errors],
        "raw_95": [_within(np.array([raw for raw, _ in of])) for of in errors],
        "smoothed": [_root_mean_square(np.array([smoothed for _, smoothed in of])) for of in errors],
        "smoothed_95": [_within(np.array([smoothed for _, smoothed in of])) for of in errors],
    }


def expected_error(epsilon: float, households: int) -> float:
    r"""Return the closed form of the error: sqrt(2) x clamp / (epsilon x households) [kWh per household]."""
    return math.sqrt(2) * CLAMP_KWH / (epsilon * households)


def _errors(loss: Fraction, households: int, sums: Floats) -> Iterator[tuple[Floats, Floats]]:
    """Yield for each draw of a year the errors of the published means and of their estimates [kWh per household]."""
    days = [FIRST_DAY + timedelta(days=i) for i in range(DAYS)]
    public, exact = covariates(days, region="none"), sums / (1000 * households)
    scale = mechanisms.laplace_scale(sensitivity=1000 * CLAMP_KWH, loss=loss)
    deviation = mechanisms.standard_deviation(scale) / (1000 * households)
    variance, counted = np.full(DAYS, deviation**2), np.full(DAYS, float(households))
    for _ in range(DRAWS):
        noisy = mechanisms.discrete_laplace(sums.astype(np.int64), sensitivity=1000 * CLAMP_KWH, loss=loss)
        published = noisy / (1000 * households)
        figures = CellFigures(published, variance, counted)
        (estimate,) = estimate_cells([figures], public, parts=None, variant="archive")
        yield published - exact, estimate.mean - exact


def _root_mean_square(errors: Floats) -> float:
    return float(np.sqrt(np.mean(errors**2)))


def _within(errors: Floats) -> float:
    """Return the size that 95 of 100 errors do not exceed."""
    return float(np.quantile(np.abs(errors), SHARE_OF_DAYS))
