"""Means of one quantity: averages of all households and of groups, some of which add up to others."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

Columns = tuple[str, ...]
"""Group columns, the finest first; none: all households."""


def next_coarser(columns: Columns, drawn: Collection[Columns]) -> Columns | None:
    """Return the columns of the groups that groups by these columns add up to: the finest coarser ones, None without.

    Groups by ("feeder", "area") add up to those by ("area",), and these to all households, ().

    Args:
        columns: of the groups.
        drawn: those of the values that there are.

    >>> next_coarser(("feeder", "area"), [("area",), ()]), next_coarser(("feeder", "area"), [("tariff",)])
    (('area',), None)
    """
    suffixes = (columns[i:] for i in range(1, len(columns) + 1))
    return next((suffix for suffix in suffixes if suffix in drawn), None)


def totals_with_groups(series: Mapping[str, Any]) -> list[tuple[str, ...]]:
    """Return the names of means that add up to each other: all households, groups, and groups within these.

    Args:
        series: series of one contract by name.

    Returns:
        Names by quantity, those of all households first, then coarser before finer groups; means that neither add up to
        another nor are such a sum are left out.

    >>> mean = {"statistic": "mean", "clamp_kwh": "50", "share": "0.4"}
    >>> terms = {"tariffs": {**mean, "by": "tariff"}, "total": mean, "low": {**mean, "clamp_kwh": "9"}}
    >>> from agedp_data.series.series import series_of
    >>> totals_with_groups(series_of({"series": terms}))
    [('total', 'tariffs')]
    """
    by_quantity: dict[tuple[int, int, int, int, str], list[str]] = {}
    means = {name: mean for name, mean in series.items() if mean.statistic == "mean" and not mean.covers_periods}
    for name in sorted(means, key=lambda name: (len(means[name].columns), means[name].columns, name)):
        by_quantity.setdefault(means[name].quantity, []).append(name)
    sums = (_with_sums({name: means[name].columns for name in names}) for names in by_quantity.values())
    return [names for names in sums if names]


def _with_sums(columns: Mapping[str, Columns]) -> tuple[str, ...]:
    """Return the names of the means of which one is the sum of another."""
    drawn = set(columns.values())
    coarser = {finer: next_coarser(finer, drawn) for finer in drawn}
    related = {finer for finer in drawn if coarser[finer] is not None} | set(coarser.values())
    return tuple(name for name in columns if columns[name] in related)
