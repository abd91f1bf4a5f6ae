"""Levels of a hierarchy: a list of group columns in the run file <-> one series per level below it.

Feeders lie in substations and these in areas. A table with such columns in `by`, the finest first, publishes each level
with its own share of the day's epsilon:

    by    = ["feeder", "substation", "area"]    use/feeder        by = ["feeder", "substation", "area"], share 0.5
    share = [0.5, 0.3, 0.2]                     use/substation    by = ["substation", "area"],           share 0.3
                                                use/area          by = "area",                           share 0.2

A household is in one group of each level, so one replaced day can change all of them at once: their losses add.

Decisions:

* Everything below the run file sees ordinary series, as with layers: budgets, accounting and ledger know no levels.
* A level has its own column and all coarser ones. Its groups are paths, "north/S1/F12" (`roster`), so levels nest
  whatever the labels are, and a recipient needs no roster to add them up.
* Each level is one exact sum per group, drawn by itself. Values that add up are post-processing (`consistency`).
* Every statistic that has `by` can have levels: the keys of the table are those of the statistic.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pydantic import ValidatorFunctionWrapHandler

from agedp_data.parameters import wrong
from agedp_data.roster import group_columns
from agedp_data.series.series import AnySeries, series_in
from agedp_data.series.series_terms import MOST_LEVELS, SEPARATOR, check_group_columns

_EXAMPLES: Final[Mapping[int, str]] = {
    2: "[0.6, 0.4]",
    3: "[0.5, 0.3, 0.2]",
    4: "[0.4, 0.3, 0.2, 0.1]",
    5: "[0.3, 0.2, 0.2, 0.2, 0.1]",
    6: "[0.2, 0.2, 0.2, 0.2, 0.1, 0.1]",
}
_PER_LEVEL: Final = ("by", "share")
"""Keys in which the levels of a table differ."""


@dataclass(frozen=True, slots=True)
class LevelSeries:
    """The series of a table with a list of columns, by column, the finest first."""

    by_column: Mapping[str, AnySeries]


def has_levels(table: Mapping[str, Any]) -> bool:
    """Return whether a table of the run file, or of a contract, has a list of group columns."""
    return isinstance(table.get("by"), list | tuple)


def read_levels(table: Mapping[str, Any], read_series: ValidatorFunctionWrapHandler) -> LevelSeries:
    """Return the series of a table with a list of columns in `by`.

    Args:
        table: the table of the run file.
        read_series: validator of a series.

    Raises:
        PydanticCustomError: columns or shares that are no levels, or a list of clamps beside them.
        ValidationError: `read_series` refuses the table of a level.
    """
    columns, shares = table["by"], table.get("share")
    if not 2 <= len(columns) <= MOST_LEVELS or not all(isinstance(column, str) for column in columns):
        example = '["feeder", "substation", "area"]'
        raise wrong(f"must be one column, or a list of 2 to {MOST_LEVELS}, the finest first, such as {example}", "by")
    check_group_columns(tuple(columns))
    if isinstance(table.get("clamp_kwh"), list | tuple):
        raise wrong("must be one column, because clamp_kwh is a list: layers have no levels", "by")
    if shares is None:
        raise wrong(f"is missing; write one share per level, such as share = {_EXAMPLES[len(columns)]}", "share")
    if not isinstance(shares, list | tuple):
        raise wrong("must be a list of one share per level, because by is a list", "share")
    if len(shares) != len(columns):
        raise wrong(f"must have {len(columns)} numbers, one per level, such as {_EXAMPLES[len(columns)]}", "share")
    return LevelSeries(
        {
            column: read_series({**table, "by": group_columns(columns[i:]), "share": share})
            for i, (column, share) in enumerate(zip(columns, shares, strict=True))
        }
    )


def level_name(table: str, column: str) -> str:
    """Return the name of the series of a level.

    >>> level_name("use", "feeder")
    'use/feeder'
    """
    return f"{table}{SEPARATOR}{column}"


def level_column(series: str) -> str:
    """Return the column of the level that a series is, by its name; "" for a series that is no level.

    >>> level_column("use/feeder"), level_column("use/1"), level_column("use")
    ('feeder', '', '')
    """
    column = series.partition(SEPARATOR)[2]
    return "" if column.isdecimal() else column


def joined_levels(name: str, tables: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the table of lists of these levels, the finest first; None if they are not those of one table.

    Args:
        name: the table.
        tables: terms of its levels in a contract.
    """
    terms = list(tables.values())
    try:
        columns = series_in(terms[0]).columns
        by_level = [series_in(of_level).by for of_level in terms]
        shares = [of_level["share"] for of_level in terms]
    except (ValueError, LookupError, TypeError, AttributeError):
        return None
    others = common_keys(terms, without=_PER_LEVEL)
    are_levels = by_level == [group_columns(columns[i:]) for i in range(len(columns))]
    if not are_levels or [*tables] != [level_name(name, column) for column in columns] or others is None:
        return None
    return {**others, "by": list(columns), "share": shares}


def common_keys(terms: Sequence[Mapping[str, Any]], *, without: Collection[str]) -> dict[str, Any] | None:
    """Return the keys of several tables that are not `without`; None if the tables differ in one of them.

    >>> common_keys([{"by": "area", "share": 1}, {"by": "area", "share": 2}], without=("share",))
    {'by': 'area'}
    """
    first, *others = ({key: value for key, value in of.items() if key not in without} for of in terms)
    return first if all(keys == first for keys in others) else None
