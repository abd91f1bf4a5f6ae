"""Output of `agedp run`: the newest published values of the release folder, in a few lines."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from agedp.release_folder.release_folder import ReleaseFolder
from agedp.release_folder.result_tables import METADATA_KEY
from agedp_data.config import RunFile
from agedp_data.roster import ALL
from agedp_data.series.layers import series_text
from agedp_data.table_schemas import LEVEL

_MAX_LINES: Final = 12
_SHOWN_DAYS: Final = 3
_SHOWN_EVERY: Final = 180
"""Minutes from one shown half-hour of a profile to the next."""

_Row = Mapping[Any, Any]


def newest_lines(folder: ReleaseFolder, run: RunFile) -> list[str]:
    """Return the newest published values: of means, or else the first distribution; of each profile and coverage."""
    lines = _mean_lines([*folder.averages().values()], run)
    lines += _period_lines([*folder.periods().values()])
    if not lines:
        counts = (_count_lines(_newest(table), _name(table)) for table in folder.distributions().values())
        lines = next(filter(None, counts), [])
    is_alone = not lines
    for table in [*folder.profiles().values(), *folder.profile_releases().values()]:
        rows = _newest(table)
        lines += _half_hour_lines(rows) if is_alone and "households" in table.column_names else []
        lines += _profile_lines(rows, _name(table))
        is_alone = False
    for table in folder.coverages().values():
        lines += _coverage_lines(_newest(table), _name(table))
    return lines


def _name(table: pa.Table) -> str:
    return str(json.loads(table.schema.metadata[METADATA_KEY])["of"])


def _newest(table: pa.Table) -> list[_Row]:
    """Return the rows of the newest day."""
    if not table.num_rows:
        return []
    return list(table.filter(pc.equal(table["day"], pc.max(table["day"]))).to_pylist())


def _place(row: _Row, name: str) -> str:
    """Return the series and the group of a row, the group only if there are groups."""
    series = f"{name}/{row[LEVEL.name]}" if LEVEL.name in row else name
    return series if row["group"] == ALL else f"{series}, group {row['group']}"


def _mean_lines(tables: Sequence[pa.Table], run: RunFile) -> list[str]:
    """Return the newest days of a mean; of several means or groups the newest day, with series and group."""
    shown = [(table, _newest(table)) for table in tables if table.num_rows]
    if not shown:
        return []
    first = f"{_name(shown[0][0])}/1"
    layer = f"kWh of {series_text(first, run.series[first])}" if first in run.series else ""
    mean = (layer if len(shown) == 1 else "") or "mean kWh"
    heading = f"day         households   {mean}   noise interval       published"
    if len(shown) == 1 and shown[0][1][0]["group"] == ALL and LEVEL.name not in shown[0][1][0]:
        rows = shown[0][0].slice(max(shown[0][0].num_rows - _SHOWN_DAYS, 0)).to_pylist()
        return [heading, *(_table_line(row, len(mean)) for row in rows)]
    lines = []
    for table, rows in shown:
        name = _name(table)
        name = series_text(f"{name}/1", run.series[f"{name}/1"]) if f"{name}/1" in run.series else name
        lines += [f"{_table_line(row, len(mean))}    {_place(row, name)}" for row in _first_of_levels(rows)]
    return [f"{heading}     series and group", *lines]


def _first_of_levels(rows: Sequence[_Row]) -> list[_Row]:
    """Return the first rows of each level, few enough for a terminal."""
    by_level: dict[str, list[_Row]] = {}
    for row in rows:
        by_level.setdefault(row.get(LEVEL.name, ""), []).append(row)
    most = max(1, _MAX_LINES // len(by_level)) if by_level else 0
    return [row for of_level in by_level.values() for row in of_level[:most]]


def _period_lines(tables: Sequence[pa.Table]) -> list[str]:
    return [
        f"{row['first_day']} to {row['day']}  {row['mean_kwh']:.3f} kWh per household and day, noise interval "
        f"{row['low_kwh']:.3f} to {row['high_kwh']:.3f}    {_place(row, _name(table))}"
        for table in tables
        for row in _first_of_levels(_newest(table))
    ]


def _count_lines(rows: Sequence[_Row], name: str) -> list[str]:
    if not rows:
        return []
    return [
        f"day         households by use, noise standard deviation {rows[0]['noise_sd']:.3f}",
        *(
            f"{row['day']:%Y-%m-%d}  {row['households_noisy']:8d}   {_place(row, name)}: {row['bin_low_kwh']:g}-"
            f"{row['bin_high_kwh']:g} kWh"
            for row in rows[:_MAX_LINES]
        ),
    ]


def _half_hour_lines(rows: Sequence[_Row]) -> list[str]:
    """Return the heading and a half-hour, or hour, of every three hours, of the first group."""
    if not rows:
        return []
    shown = [row for row in rows if row["group"] == rows[0]["group"] and row["start_minute"] % _SHOWN_EVERY == 0]
    group = "" if rows[0]["group"] == ALL else f"   ({rows[0]['group']})"
    return [
        f"day         begins   households   mean kWh   noise interval{group}",
        *(
            f"{row['day']:%Y-%m-%d}  {_clock(row)}  "
            f"{row['households']:12d}   {row['mean_kwh']:8.3f}   {row['low_kwh']:7.3f} to {row['high_kwh']:7.3f}"
            for row in shown
        ),
    ]


def _profile_lines(rows: Sequence[_Row], name: str) -> list[str]:
    """Return one line for the first group of a profile, of a month's one for each kind of day: sum and largest value.

    >>> cell = {"group": "all", "day": "2013-01-01"}
    >>> rows = [{**cell, "start_minute": 0, "mean_kwh": 0.2}, {**cell, "start_minute": 30, "mean_kwh": 0.4}]
    >>> _profile_lines(rows, "shape")
    ['2013-01-01  0.600 kWh in all half-hours, largest 0.400 kWh at 00:30    shape']
    """
    lines = []
    first_level = [row for row in rows if row["group"] == rows[0]["group"]]
    for kind in dict.fromkeys(row.get("day_kind", "") for row in first_level):
        shown = [row for row in first_level if row.get("day_kind", "") == kind]
        total, largest = sum(row["mean_kwh"] for row in shown), max(shown, key=lambda row: row["mean_kwh"])
        of_kind = f", {kind}" if kind else ""
        lines.append(
            f"{largest['day']}  {total:.3f} kWh in all half-hours, largest {largest['mean_kwh']:.3f} kWh at "
            f"{_clock(largest)}    {_place(largest, name)}{of_kind}"
        )
    return lines


def _coverage_lines(rows: Sequence[_Row], name: str) -> list[str]:
    if not rows:
        return []
    return [
        f"day         households   with a usable day, noise standard deviation {rows[0]['noise_sd']:.3f}",
        *(
            f"{row['day']:%Y-%m-%d}  {row['households']:10d}   {row['usable_noisy']:10d}   {row['coverage']:.1%}   "
            f"{_place(row, name)}"
            for row in _first_of_levels(rows)
        ),
    ]


def _clock(row: _Row) -> str:
    return f"{row['start_minute'] // 60:02d}:{row['start_minute'] % 60:02d}"


def _table_line(row: _Row, width: int) -> str:
    return (
        f"{row['day']:%Y-%m-%d}  {row['households']:10d}   {row['mean_kwh']:{width}.3f}   "
        f"{row['low_kwh']:7.3f} to {row['high_kwh']:7.3f}   {row['published_on']:%Y-%m-%d}"
    )
