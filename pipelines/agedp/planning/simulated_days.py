"""The coming days of a run file, and the simulation of a promise on them: losses, noise, first and last date.

The days are those after the newest release up to the end of the period, at most a year, with enough households on the
roster. NOISE is the standard deviation of the noise of a daily mean, root mean square over the days [kWh per
household], for the smallest group of the mean with the most noise: it is what an interval in the release covers.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import date
from fractions import Fraction
from itertools import islice
from typing import Final

from agedp.budget import ReleaseTerms
from agedp.effective_promise import DISTANT_DAY
from agedp.planning.change_yardstick import change_yardstick
from agedp.planning.forecast import (
    ForecastView,
    SimulatedSeries,
    simulate_days,
    smallest_group_size,
    upcoming_days,
)
from agedp.planning.notion_comparison import SeriesCost
from agedp.row_means import rows_of_means
from agedp_data import mechanisms
from agedp_data.config import RunFile
from agedp_data.epsilon import NANO, ceil_nano
from agedp_data.errors import RunFileError
from agedp_data.notions.notion import Notion
from agedp_data.series.layered_mean import is_upper
from agedp_data.series.mean import is_daily_mean
from agedp_data.series.series_terms import layers_of

_MAX_DAYS_AHEAD: Final = 366


class SimulatedDays:
    """The coming days under the terms of a run file; `households` by day are those of the smallest group.

    Raises:
        RunFileError: the run file publishes no mean, or no coming day has enough households on the roster.
    """

    def __init__(self, terms: ReleaseTerms, view: ForecastView) -> None:
        self.terms = terms
        self.run: RunFile = terms.run
        self.model = terms.model
        self.leakage_bounds = terms.leakage_bounds
        self.view = view
        self.name = self._noisiest()
        self.sensitivity = self.run.series[self.name].sensitivity("replacement")
        self.households = dict(self._household_counts())
        if not self._days():
            raise RunFileError("every day of the period is released or skipped; there is nothing left to promise")
        if not self.households:
            raise RunFileError(
                "no remaining day has enough households on the roster ([population] min_households = "
                f"{self.run.population.min_households}); there is nothing to promise"
            )
        self.change = change_yardstick(rows_of_means(view.rows, view.contracts), self.name)

    def _noisiest(self) -> str:
        """Return the mean, or layer 1 of one, with the most noise at the same loss: width / (share x households)."""
        means = {
            name: series for name, series in self.run.series.items() if is_daily_mean(series) and not is_upper(name)
        }
        if not means:
            raise RunFileError("a comparison states costs as the noise of a mean; the run file publishes none")
        day = next(iter(self._days()), self.run.schedule.first_day)

        def weight(name: str) -> Fraction:
            households = (
                smallest_group_size(self.view.roster, day, means[name].by, self.run.population.min_households) or 1
            )
            return Fraction(means[name].width_wh) / (Fraction(self.run.shares[name]) * households)

        return max(means, key=weight)

    def _days(self) -> list[date]:
        """Return the days after the newest release, at most a year of them."""
        return list(islice(upcoming_days(self.run, self.view.rows), _MAX_DAYS_AHEAD))

    @property
    def is_endless(self) -> bool:
        """Return whether the period continues after these days."""
        last = self.run.schedule.last_day
        return last is None or max(self.households) < last

    def _household_counts(self) -> Iterator[tuple[date, int]]:
        """Yield the days with enough households, each with the size of the smallest group."""
        for day in self._days():
            households = smallest_group_size(
                self.view.roster, day, self.run.series[self.name].by, self.run.population.min_households
            )
            if households:
                yield day, households

    def simulate(self, run: RunFile, bound_name: str) -> SeriesCost | None:
        """Return the cost of releasing the days under a run file's promise, None if no day is released."""
        simulated = simulate_days(replace(self.terms, run=run), self.view, list(self.households))
        if not simulated.released:
            return None
        bounds = run.notion.bounds(simulated.history, self.leakage_bounds[0], None)
        bound_value = next((bound.value for bound in bounds if bound.name == bound_name), None)
        losses = tuple(row.loss for row in simulated.released)
        days = [date.fromisoformat(row.day) for row in simulated.released]
        noises_kwh = [self.noise_of(loss, run) / self.households[day] for loss, day in zip(losses, days, strict=True)]
        sums_kwh = [
            self._noise_of_sum(loss, run) / self.households[day] for loss, day in zip(losses, days, strict=True)
        ]
        dates = [row.published_on for row in simulated.released]
        unusable, skipped = (
            sum(self.change.verdict(noise_kwh) == "hidden" for noise_kwh in noises_kwh),
            len(simulated.skipped),
        )
        noise = _root_mean_square(noises_kwh), _root_mean_square(sums_kwh), max(noises_kwh), unusable
        published, ended_by = (min(dates), max(dates)), _ended_by(run.notion, simulated)
        beyond = self.is_endless and not simulated.ended
        return SeriesCost(bound_value, losses, *noise, days[0], days[-1], published, skipped, ended_by, beyond)

    def noise_of(self, loss: int, run: RunFile) -> float:
        """Return the noise of the sum [kWh] for a day with this loss, up to the rounding of the drawn noise's scale."""
        return self._noise_of_series(self.name, loss, run)

    def _noise_of_sum(self, loss: int, run: RunFile) -> float:
        """Return the noise of the sum of all layers of the mean [kWh]: their noises are independent."""
        return math.hypot(*(self._noise_of_series(layer, loss, run) for layer in layers_of(self.name, run.series)))

    def _noise_of_series(self, name: str, loss: int, run: RunFile) -> float:
        part = int(run.notion.part_of_day(name, Fraction(run.shares[name])) * loss)
        if part <= 0:
            return math.inf
        return mechanisms.standard_deviation(self.run.series[name].sensitivity("replacement") * NANO / part) / 1000.0

    def exceeds_noise(self, error_kwh: float, run: RunFile) -> bool:
        """Return whether even days that spend the day cap have more noise than this."""
        return self.noise_of(run.promise.day_cap, run) / max(self.households.values()) > error_kwh

    def loss_for(self, noise_kwh: float) -> int:
        """Return the loss of a day with this noise in the smallest group, rounded up [nano-epsilon].

        The standard deviation of discrete Laplace noise is 1/(sqrt 2 sinh(1/(2 scale))), in the unit of the scale.
        """
        sd_wh = noise_kwh * 1000.0 * min(self.households.values())
        scale = 1 / (2 * math.asinh(1 / (math.sqrt(2) * sd_wh)))
        return ceil_nano(self.sensitivity / (scale * float(self.run.shares[self.name])))


def _root_mean_square(values: Sequence[float]) -> float:
    return math.sqrt(sum(value**2 for value in values) / len(values))


def _ended_by(notion: Notion, simulated: SimulatedSeries) -> str:
    if not simulated.ended:
        return ""
    needed = simulated.released[-1].loss
    return "promise" if notion.fits_total(simulated.history, DISTANT_DAY, needed) else "epsilon_total"
