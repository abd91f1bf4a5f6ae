"""Lines of `agedp plan` and `agedp run` on the upper layers of a mean, which are no means by themselves."""

from __future__ import annotations

from collections.abc import Mapping

from agedp_data.series.layered_mean import is_upper, layer_range
from agedp_data.series.mean import is_daily_mean
from agedp_data.series.series import AnySeries
from agedp_data.series.series_terms import mean_name


def layer_lines(series: Mapping[str, AnySeries]) -> list[str]:
    """Return one line for each upper layer: what it counts, and what it is added to.

    >>> from agedp_data.series.series import series_in
    >>> terms = {"statistic": "mean", "clamp_kwh": "75", "above_kwh": "30", "share": "0.23"}
    >>> layer_lines({"use/2": series_in(terms)})[0].partition(". ")[0]
    'use/2 is an upper layer of use: daily use above 30 and up to 75 kWh'
    """
    return [
        f"{name} is an upper layer of {mean_name(name)}: daily use {layer_range(layer)} kWh. Add it to the layers "
        "below; one day is mostly noise."
        for name, layer in series.items()
        if is_upper(name)
    ]


def period_lines(series: Mapping[str, AnySeries]) -> list[str]:
    """Return one line for each series of weeks, months or years that a daily mean of the run file gives at no loss.

    >>> from agedp_data.series.series import series_in
    >>> mean = {"statistic": "mean", "clamp_kwh": "50"}
    >>> period_lines({"use": series_in(mean), "months": series_in({**mean, "every": "month"})})[0].partition(" (")[0]
    'months: the average of each month follows from the days of use at no loss'
    """
    daily = {(mean.by, mean.rule): name for name, mean in series.items() if is_daily_mean(mean)}
    return [
        f"{name}: the average of each {of.period} follows from the days of {daily[of.by, of.rule]} at no loss "
        f"(`averages_by_{of.period}.parquet`). A series of its own is for those who publish no days."
        for name, of in series.items()
        if of.covers_periods and (of.by, of.rule) in daily
    ]
