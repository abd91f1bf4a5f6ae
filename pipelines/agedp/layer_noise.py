"""Rows of a mean's layers -> the noise of their sum.

Layer 1 of `clamp_kwh = [10, 40]` is no mean of the households: it has little noise and leaves out what a day exceeds 10
kWh by. The mean up to 40 kWh is the sum of the layers. Their noise is independent, so its variances add.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from agedp_data import mechanisms
from agedp_data.ledger import ReleaseRecord
from agedp_data.series.series_terms import layer_number, mean_name


def sum_noises(rows: Iterable[ReleaseRecord]) -> dict[str, dict[str, float]]:
    """Return the noise of the sum of a mean's layers, by mean and by day on which it has several [kWh per household].

    The noise is that of the smallest group.

    Args:
        rows: released or planned rows of any series; skipped ones are left out.
    """
    deviations: dict[str, dict[str, list[float]]] = {}
    for row in rows:
        if layer_number(row.series) and row.state == "released":
            deviation = mechanisms.standard_deviation(row.scale) / (1000.0 * min(row.households))
            deviations.setdefault(mean_name(row.series), {}).setdefault(row.day, []).append(deviation)
    by_mean = {
        name: {day: math.hypot(*layers) for day, layers in days.items() if len(layers) > 1}
        for name, days in deviations.items()
    }
    return {name: days for name, days in by_mean.items() if days}


def newest_sum_noise(rows: Iterable[ReleaseRecord], name: str) -> tuple[str, float] | None:
    """Return the newest day on which a mean has several layers, and the noise of their sum; None without such a day.

    Args:
        rows: rows of all series, or of the layers of this mean.
        name: the name of the mean in the run file.
    """
    days = sum_noises(rows).get(name, {})
    return max(days.items()) if days else None
