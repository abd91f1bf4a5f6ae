"""Sums by group of household buckets -> the sums of all households, in the order of the roster's groups."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from agedp_data.roster import PATH_SEPARATOR, GroupColumns, columns_of


def add_groups(sums: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the sums of integers, or of arrays of integers, by group; a group may be absent from some.

    >>> add_groups([{"north": 2}, {"north": 3, "south": 1}])
    {'north': 5, 'south': 1}
    """
    total: dict[str, Any] = {}
    for by_group in sums:
        for group, value in by_group.items():
            total[group] = total[group] + value if group in total else value
    return total


def sort_groups(sums: Mapping[str, Any], by: GroupColumns) -> dict[str, Any]:
    """Return sums by group in the order of `Roster.cells`: by label, and by each column of a hierarchy.

    >>> list(sort_groups({"a-b/c": 1, "a/d": 2}, ("feeder", "area")))
    ['a/d', 'a-b/c']
    """
    is_path = len(columns_of(by)) > 1
    return dict(sorted(sums.items(), key=lambda item: item[0].split(PATH_SEPARATOR) if is_path else [item[0]]))
