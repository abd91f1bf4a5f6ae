"""Output of `agedp run`: the newest published values of the release folder, in a few lines."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from agedp.release_folder.release_folder import ReleaseFolder
from agedp.release_folder.result_tables import METADATA_KEY
from agedp.signal_against_noise import three_digits
from agedp_data.config import RunFile
from agedp_data.roster import ALL
from agedp_data.series.layered_mean import series_text
from agedp_data.table_schemas import LEVEL
from agedp_flows.text.number_text import format_column
from agedp_flows.text.screen import Column, table_lines, text_column

_MAX_LINES: Final = 12
_SHOWN_DAYS: Final = 3
_SHOWN_EVERY: Final = 180
"""Minutes from one shown half-hour of a profile to the next."""

_INTERVAL: Final = (Column("interval from"), Column("to"))
"""The ends of the noise interval [the unit of the column before them]."""

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
    layer = f" of {series_text(first, run.series[first])}" if first in run.series and len(shown) == 1 else ""
    columns = [
        *(text_column("day"), Column("households"), Column(f"mean kWh{layer}"), *_INTERVAL, text_column("published on"))
    ]
    if len(shown) == 1 and shown[0][1][0]["group"] == ALL and LEVEL.name not in shown[0][1][0]:
        rows = shown[0][0].slice(max(shown[0][0].num_rows - _SHOWN_DAYS, 0)).to_pylist()
        return table_lines(columns, _mean_rows(rows))
    lines: list[list[str]] = []
    for table, rows in shown:
        name = _name(table)
        name = series_text(f"{name}/1", run.series[f"{name}/1"]) if f"{name}/1" in run.series else name
        first_rows = _first_of_levels(rows)
        places = [_place(row, name) for row in first_rows]
        lines += [[*cells, place] for cells, place in zip(_mean_rows(first_rows), places, strict=True)]
    return table_lines([*columns, text_column("series and group")], lines)


def _mean_rows(rows: Sequence[_Row]) -> list[list[str]]:
    days = [(f"{row['day']:%Y-%m-%d}", str(row["households"]), f"{row['published_on']:%Y-%m-%d}") for row in rows]
    return [
        [day, households, *interval, published_on]
        for (day, households, published_on), interval in zip(days, _interval_texts(rows), strict=True)
    ]


def _interval_texts(rows: Sequence[_Row]) -> list[list[str]]:
    """Return the mean of each row and the ends of its noise interval, all with the same decimals."""
    texts = format_column(row[key] for row in rows for key in ("mean_kwh", "low_kwh", "high_kwh"))
    return [texts[i : i + 3] for i in range(0, len(texts), 3)]


def _first_of_levels(rows: Sequence[_Row]) -> list[_Row]:
    """Return the first rows of each level, few enough for a terminal."""
    by_level: dict[str, list[_Row]] = {}
    for row in rows:
        by_level.setdefault(row.get(LEVEL.name, ""), []).append(row)
    most = max(1, _MAX_LINES // len(by_level)) if by_level else 0
    return [row for of_level in by_level.values() for row in of_level[:most]]


def _period_lines(tables: Sequence[pa.Table]) -> list[str]:
    lines = []
    for table in tables:
        rows = _first_of_levels(_newest(table))
        for row, interval in zip(rows, _interval_texts(rows), strict=True):
            lines.append([str(row["first_day"]), str(row["day"]), *interval, _place(row, _name(table))])
    dates = text_column("first day"), text_column("last day")
    mean = Column("mean kWh per household and day")
    return table_lines([*dates, mean, *_INTERVAL, text_column("series and group")], lines) if lines else []


def _count_lines(rows: Sequence[_Row], name: str) -> list[str]:
    if not rows:
        return []
    columns = (
        *(text_column("day"), text_column("series and group"), Column("from kWh"), Column("to kWh")),
        Column(f"households (noise sd {three_digits(rows[0]['noise_sd'])})"),
    )
    return table_lines(
        columns,
        [
            (
                f"{row['day']:%Y-%m-%d}",
                _place(row, name),
                f"{row['bin_low_kwh']:g}",
                f"{row['bin_high_kwh']:g}",
                str(row["households_noisy"]),
            )
            for row in rows[:_MAX_LINES]
        ],
    )


def _half_hour_lines(rows: Sequence[_Row]) -> list[str]:
    """Return the heading and a half-hour, or hour, of every three hours, of the first group."""
    if not rows:
        return []
    shown = [row for row in rows if row["group"] == rows[0]["group"] and row["start_minute"] % _SHOWN_EVERY == 0]
    group = "" if rows[0]["group"] == ALL else f" ({rows[0]['group']})"
    columns = [text_column("day"), text_column("begins"), Column("households"), Column(f"mean kWh{group}"), *_INTERVAL]
    return table_lines(
        columns,
        [
            (f"{row['day']:%Y-%m-%d}", _clock(row), str(row["households"]), *interval)
            for row, interval in zip(shown, _interval_texts(shown), strict=True)
        ],
    )


def _profile_lines(rows: Sequence[_Row], name: str) -> list[str]:
    """Return one line for the first group of a profile, of a month's one for each kind of day: sum and largest value.

    >>> cell = {"group": "all", "day": "2013-01-01"}
    >>> rows = [{**cell, "start_minute": 0, "mean_kwh": 0.2}, {**cell, "start_minute": 30, "mean_kwh": 0.4}]
    >>> _profile_lines(rows, "shape")
    ['shape on 2013-01-01: 0.6 kWh in all half-hours, largest 0.4 kWh at 00:30']
    """
    lines = []
    first_level = [row for row in rows if row["group"] == rows[0]["group"]]
    for kind in dict.fromkeys(row.get("day_kind", "") for row in first_level):
        shown = [row for row in first_level if row.get("day_kind", "") == kind]
        total, largest = sum(row["mean_kwh"] for row in shown), max(shown, key=lambda row: row["mean_kwh"])
        of_kind = f", {kind}" if kind else ""
        lines.append(
            f"{_place(largest, name)}{of_kind} on {largest['day']}: {three_digits(total)} kWh in all half-hours, "
            f"largest {three_digits(largest['mean_kwh'])} kWh at {_clock(largest)}"
        )
    return lines


def _coverage_lines(rows: Sequence[_Row], name: str) -> list[str]:
    if not rows:
        return []
    usable = Column(f"with a usable day (noise sd {three_digits(rows[0]['noise_sd'])})")
    columns = text_column("day"), Column("households"), usable, Column("share %"), text_column("series and group")
    return table_lines(
        columns,
        [
            (
                f"{row['day']:%Y-%m-%d}",
                str(row["households"]),
                str(row["usable_noisy"]),
                f"{100 * row['coverage']:.1f}",
                _place(row, name),
            )
            for row in _first_of_levels(rows)
        ],
    )


def _clock(row: _Row) -> str:
    return f"{row['start_minute'] // 60:02d}:{row['start_minute'] % 60:02d}"
