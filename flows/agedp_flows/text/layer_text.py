"""Lines of `agedp plan` and `agedp run` on the upper layers of a mean, which are no means by themselves."""

from __future__ import annotations

from collections.abc import Mapping

from agedp_data.parameters import exact_text
from agedp_data.series.layers import table_name
from agedp_data.series.series import AnySeries, Layer, Mean, is_daily_mean


def layer_lines(series: Mapping[str, AnySeries]) -> list[str]:
    """Return one line for each upper layer: what it counts, and what it is added to.

    >>> from agedp_data.series.series import series_in
    >>> terms = {"statistic": "mean", "clamp_kwh": "75", "above_kwh": "30", "share": "0.23"}
    >>> layer_lines({"use/2": series_in(terms)})[0].partition(". ")[0]
    'use/2 is an upper layer of use: daily use above 30 and up to 75 kWh'
    """
    return [
        f"{name} is an upper layer of {table_name(name)}: daily use above {exact_text(layer.above_kwh)} and up to "
        f"{exact_text(layer.clamp_kwh)} kWh. Add it to the layers below; one day is mostly noise."
        for name, layer in series.items()
        if isinstance(layer, Layer)
    ]


def period_lines(series: Mapping[str, AnySeries]) -> list[str]:
    """Return one line for each series of weeks, months or years that a daily mean of the run file gives at no loss.

    >>> from agedp_data.series.series import series_in
    >>> mean = {"statistic": "mean", "clamp_kwh": "50"}
    >>> period_lines({"use": series_in(mean), "months": series_in({**mean, "every": "month"})})[0].partition(" (")[0]
    'months: the average of each month follows from the days of use at no loss'
    """
    daily = {mean.counted_days: name for name, mean in series.items() if is_daily_mean(mean)}
    return [
        f"{name}: the average of each {mean.every} follows from the days of {daily[mean.counted_days]} at no loss "
        f"(`averages_by_{mean.every}.parquet`). A series of its own is for those who publish no days."
        for name, mean in series.items()
        if isinstance(mean, Mean) and mean.covers_periods and mean.counted_days in daily
    ]
