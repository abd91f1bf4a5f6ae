"""Means of one quantity: the averages of all households and of groups that add up to them."""

from __future__ import annotations

from collections.abc import Mapping

from agedp_data.series.series import AnySeries, is_daily_mean


def totals_with_groups(series: Mapping[str, AnySeries]) -> list[tuple[str, ...]]:
    """Return the names of means of all households and of groups that add up to them, one tuple for each quantity.

    Args:
        series: series of one contract by name.

    Returns:
        Names by quantity, those of all households first; a quantity without groups, or without a total, is left out.

    >>> mean = {"statistic": "mean", "clamp_kwh": "50", "share": "0.4"}
    >>> terms = {"tariffs": {**mean, "by": "tariff"}, "total": mean, "low": {**mean, "clamp_kwh": "9"}}
    >>> from agedp_data.series.series import series_of
    >>> totals_with_groups(series_of({"series": terms}))
    [('total', 'tariffs')]
    """
    by_quantity: dict[tuple[int, int, int, int, str], list[str]] = {}
    means = {name: mean for name, mean in series.items() if is_daily_mean(mean)}
    for name in sorted(means, key=lambda name: (means[name].by or "", name)):
        by_quantity.setdefault(means[name].quantity, []).append(name)
    columns = [({means[name].by for name in names}, names) for names in by_quantity.values()]
    return [tuple(names) for parts, names in columns if None in parts and len(parts) > 1]
