"""Output of `agedp run`: the newest published values of the release folder, in a few lines."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from agedp.release_folder.published_series import FILES, MEANS
from agedp.release_folder.release_folder import ReleaseFolder
from agedp.release_folder.result_tables import METADATA_KEY
from agedp_data.config import RunFile
from agedp_data.roster import ALL
from agedp_data.series.layers import series_text

_MAX_COUNTS: Final = 12
_SHOWN_EVERY: Final = 180
"""Minutes from one shown half-hour of a profile to the next."""


def newest_lines(folder: ReleaseFolder, run: RunFile) -> list[str]:
    """Return the newest published values: of the first mean, distribution, profile or coverage, whichever there is."""
    if averages := folder.averages():
        frame, table = folder.table(), averages[f"{MEANS}.parquet"]
        first = f"{json.loads(table.schema.metadata[METADATA_KEY])['of']}/1"
        layer = f"kWh of {series_text(first, run.series[first])}" if first in run.series else ""
        mean = layer or "mean kWh"
        heading = f"day         households   {mean}   noise interval       published"
        return [heading, *(_table_line(row, len(mean)) for row in frame.to_dict("records")[-3:])] if len(frame) else []
    frame = folder.table()
    rows = frame[frame["day"] == frame["day"].max()].to_dict("records")
    present = (kind for kind, file in FILES.items() if any(name.startswith(file) for name in folder.checksums))
    match next(present, ""):
        case "periods":
            return _period_lines(frame.to_dict("records")[-3:])
        case "profile":
            return _profile_lines(rows)
        case "profile months":
            return _month_lines(rows)
        case "coverage":
            return _coverage_lines(rows)
        case _:
            return _count_lines(rows)


def _count_lines(rows: Sequence[Mapping[Any, Any]]) -> list[str]:
    if not rows:
        return []
    return [
        f"day         households by use, noise standard deviation {rows[0]['noise_sd']:.3f}",
        *(
            f"{row['day']:%Y-%m-%d}  {row['households_noisy']:8d}   {row['group']} {row['bin_low_kwh']:g}-"
            f"{row['bin_high_kwh']:g} kWh"
            for row in rows[:_MAX_COUNTS]
        ),
    ]


def _profile_lines(rows: Sequence[Mapping[Any, Any]]) -> list[str]:
    """Return the heading and a half-hour, or hour, of every three hours, of the first group."""
    if not rows:
        return []
    shown = [row for row in rows if row["group"] == rows[0]["group"] and row["start_minute"] % _SHOWN_EVERY == 0]
    group = "" if rows[0]["group"] == ALL else f"   ({rows[0]['group']})"
    return [
        f"day         begins   households   mean kWh   noise interval{group}",
        *(
            f"{row['day']:%Y-%m-%d}  {row['start_minute'] // 60:02d}:{row['start_minute'] % 60:02d}  "
            f"{row['households']:12d}   {row['mean_kwh']:8.3f}   {row['low_kwh']:7.3f} to {row['high_kwh']:7.3f}"
            for row in shown
        ),
    ]


def _period_lines(rows: Sequence[Mapping[Any, Any]]) -> list[str]:
    """Return the heading and a line for each of these means of weeks, months or years."""
    if not rows:
        return []
    return [
        "first day   last day    household-days   mean kWh   noise interval       published",
        *(
            f"{row['first_day']:%Y-%m-%d}  {row['day']:%Y-%m-%d}  {row['household_days']:14d}   {row['mean_kwh']:8.3f}"
            f"   {row['low_kwh']:7.3f} to {row['high_kwh']:7.3f}   {row['published_on']:%Y-%m-%d}"
            for row in rows
        ),
    ]


def _month_lines(rows: Sequence[Mapping[Any, Any]]) -> list[str]:
    """Return the heading and a half-hour of every three hours, by kind of day, of the first group."""
    if not rows:
        return []
    shown = [row for row in rows if row["group"] == rows[0]["group"] and row["start_minute"] % _SHOWN_EVERY == 0]
    group = "" if rows[0]["group"] == ALL else f"   ({rows[0]['group']})"
    return [
        f"month    days      begins   household-days   mean kWh   noise interval{group}",
        *(
            f"{row['day']:%Y-%m}  {row['day_kind']:8s}  {row['start_minute'] // 60:02d}:{row['start_minute'] % 60:02d}"
            f"  {row['household_days']:16d}   {row['mean_kwh']:8.3f}   {row['low_kwh']:7.3f} to {row['high_kwh']:7.3f}"
            for row in shown
        ),
    ]


def _coverage_lines(rows: Sequence[Mapping[Any, Any]]) -> list[str]:
    if not rows:
        return []
    return [
        f"day         households   with a usable day, noise standard deviation {rows[0]['noise_sd']:.3f}",
        *(
            f"{row['day']:%Y-%m-%d}  {row['households']:10d}   {row['usable_noisy']:10d}   {row['group']}"
            for row in rows[:_MAX_COUNTS]
        ),
    ]


def _table_line(row: Mapping[Any, Any], width: int) -> str:
    return (
        f"{row['day']:%Y-%m-%d}  {row['households']:10d}   {row['mean_kwh']:{width}.3f}   "
        f"{row['low_kwh']:7.3f} to {row['high_kwh']:7.3f}   {row['published_on']:%Y-%m-%d}"
    )
