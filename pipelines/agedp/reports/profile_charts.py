"""Load profiles in the report: mean of weekdays and of weekend days by clock, and a map of days by half-hours. Public.

The functions take rows of the published table (`profile_tables.PROFILES`).

Decisions:

* All groups have one axis and one range of colours. The maps of all groups have at most `MOST_CELLS` cells: of longer
  series the newest days. `MOST_GROUPS` groups are shown, those of most households on these days, in the order of names.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from agedp.reports.axes import Scale, date_axis, format_number, linear_axis
from agedp.reports.chart_layers import Hover
from agedp.reports.downloads import Values, download_links
from agedp.reports.heat_map import HeatMap, value_limits, value_map
from agedp.reports.hover import share_of_areas
from agedp.reports.html import closed, paragraph, side_by_side, table
from agedp.reports.mean_series import percent
from agedp.reports.profile_means import MINUTES_OF_DAY, GroupProfile, MeanProfile, group_profile, mean_profile
from agedp.reports.svg import Line, chart
from agedp_data.arrays import Floats
from agedp_data.series.day_kinds import day_kind

MOST_GROUPS = 6
"""Groups on a page."""
MOST_DAYS = 366
"""Days of a map."""
MOST_CELLS = 2 * 366 * 48
"""Cells of all maps of a series."""
_MOST_AREAS = 2400
"""Areas at the pointer of all maps of a series."""


def profile_parts(name: str, rows: pa.Table, *, coverage: Decimal, label: str = "", file: str = "") -> Iterator[str]:
    """Yield charts, maps, links and tables of one series of profiles.

    Args:
        name: the series.
        rows: its published table, or the newest days of it.
        coverage: that of the intervals.
        label: what titles call the series, "" for nothing.
        file: the Parquet file of the series, beside the page; "" without one.
    """
    if not rows.num_rows:
        yield paragraph(f"{name}: no day is released yet.")
        return
    shown_days = _shown_days(rows)
    shown = rows.filter(pc.greater_equal(rows["day"], pa.scalar(shown_days[0])))
    groups, hidden = _largest_groups(shown)
    profiles = {group: group_profile(shown, group) for group in groups}
    is_split = len(profiles) > 1
    labels = {group: ", ".join(filter(None, [label, group if group != "all" or is_split else ""])) for group in groups}
    kinds = {group: _weekday_and_weekend(profile, coverage) for group, profile in profiles.items()}
    yield from _mean_charts(kinds, profiles, labels, coverage)
    if len(shown_days) > 1:
        yield from _maps(profiles, labels, shown_days)
    if shown.num_rows < rows.num_rows:
        yield paragraph(f"Earlier days than {shown_days[0]} are in the Parquet file only.", "soft")
    if hidden:
        where = f"in {file}" if file else "in the Parquet file"
        yield paragraph(f"{hidden} more groups, of fewer households, are {where} only.", "soft")
    holds = "means of weekdays and of weekend days, with intervals and noise"
    yield download_links(f"{name}_weekday_weekend", _values(kinds, profiles), file, holds=holds)
    tables = [_table(of_kinds, profiles[group], labels[group], coverage) for group, of_kinds in kinds.items()]
    yield closed("Numbers of each group by clock", tables) if is_split else tables[0]


def _largest_groups(rows: pa.Table) -> tuple[list[str], int]:
    """Return the groups that are shown, by name, and the number of all others."""
    largest = rows.group_by("group").aggregate([("households", "max")]).to_pylist()
    order = sorted(largest, key=lambda row: (-row["households_max"], row["group"]))
    return sorted(row["group"] for row in order[:MOST_GROUPS]), max(len(order) - MOST_GROUPS, 0)


def _shown_days(rows: pa.Table) -> list[date]:
    """Return the days of the maps, without gaps: those of the table, at most the newest that the page holds."""
    groups = min(len(rows["group"].unique()), MOST_GROUPS)
    cells = MINUTES_OF_DAY // pc.min(rows["minutes"]).as_py()
    most = min(MOST_DAYS, MOST_CELLS // (cells * groups))
    last = pc.max(rows["day"]).as_py()
    first = max(pc.min(rows["day"]).as_py(), last - timedelta(days=most - 1))
    return [first + timedelta(days=i) for i in range((last - first).days + 1)]


def _weekday_and_weekend(profile: GroupProfile, coverage: Decimal) -> dict[str, MeanProfile]:
    is_weekend = np.array([day_kind(day) == "weekend" for day in profile.days], bool)
    kinds = {"weekdays": ~is_weekend, "weekend days": is_weekend}
    return {
        kind: mean_profile(profile, is_selected, coverage=coverage)
        for kind, is_selected in kinds.items()
        if is_selected.any()
    }


def _mean_charts(
    kinds: dict[str, dict[str, MeanProfile]],
    profiles: dict[str, GroupProfile],
    labels: dict[str, str],
    coverage: Decimal,
) -> Iterator[str]:
    ends = [end for of_kinds in kinds.values() for mean in of_kinds.values() for end in (*mean.low, *mean.high)]
    y = linear_axis(ends, zero=True)
    charts = []
    for group, of_kinds in kinds.items():
        profile = profiles[group]
        positions = [float(cell) for cell in range(profile.noisy_wh.shape[1])]
        lines = [
            Line(f"{kind}, mean of {mean.days}", positions, mean.mean, (mean.low, mean.high), letter, style, dots=False)
            for style, (letter, (kind, mean)) in enumerate(zip("WE", of_kinds.items(), strict=False))
        ]
        unit = f"kWh per household in {profile.step} minutes"
        hover = Hover(profile.clock_at, unit, most=share_of_areas(len(kinds)))
        title = _title(f"Mean profile, {_span(profiles.values())}", labels[group])
        about = _about(of_kinds, profile, coverage)
        height = 170 if len(kinds) > 1 else 240
        charts.append(chart(title, about, [*lines, hover], x=_clock_axis(profile), y=y, y_title=unit, height=height))
    yield side_by_side(charts) if len(charts) > 1 else charts[0]


def _span(profiles: Iterable[GroupProfile]) -> str:
    days = [day for profile in profiles for day in profile.days]
    return f"{min(days)} to {max(days)}" if min(days) < max(days) else f"{min(days)}"


def _title(subject: str, label: str) -> str:
    return f"{subject}{f': {label}' if label else ''}"


def _about(kinds: dict[str, MeanProfile], profile: GroupProfile, coverage: Decimal) -> str:
    texts = []
    for kind, mean in kinds.items():
        present = [cell for cell, value in enumerate(mean.mean) if not math.isnan(value)]
        peak, least = max(present, key=mean.mean.__getitem__), min(present, key=mean.mean.__getitem__)
        texts.append(
            f"{mean.days} {kind}: highest {format_number(mean.mean[peak])} kWh per household at {profile.clock(peak)}, "
            f"lowest {format_number(mean.mean[least])} at {profile.clock(least)}"
        )
    return f"{'; '.join(texts)}; the bands cover the noise of the means ({percent(coverage)})."


def _clock_axis(profile: GroupProfile) -> Scale:
    cells = profile.noisy_wh.shape[1]
    return Scale(0.0, cells - 1.0, tuple((float(cell), profile.clock(cell)) for cell in range(0, cells, cells // 4)))


def _by_day(values: Floats, release: Sequence[int | None]) -> Floats:
    """Return values (releases, cells) as (cells, days) by the release of each day, NaN for None."""
    empty = np.full((1, values.shape[1]), np.nan)
    rows = [len(values) if row is None else row for row in release]
    by_day: Floats = np.concatenate([values, empty])[rows].T
    return by_day


def _maps(profiles: dict[str, GroupProfile], labels: dict[str, str], days: Sequence[date]) -> Iterator[str]:
    limits = value_limits(np.concatenate([profile.comparable_kwh.ravel() for profile in profiles.values()]).tolist())
    axis = date_axis(days[0], days[-1])
    x_ticks = [((value - axis.low + 0.5) / len(days), text) for value, text in axis.ticks]
    maps = []
    if note := _noise_note(profiles.values()):
        yield note
    for group, profile in profiles.items():
        place = {day: i for i, day in enumerate(profile.days)}
        release = [place.get(day) for day in days]
        values, mean = _by_day(profile.comparable_kwh, release), _by_day(profile.mean_kwh, release)
        y_ticks = [(hour / 24, f"{hour:02d}:00") for hour in (0, 6, 12, 18)] + [(1.0, "24:00")]
        shown = HeatMap(
            values.tolist(), x_ticks, y_ticks, "kWh", _MapTexts(profile, days, mean, release).text,
            _MOST_AREAS // len(profiles), limits,
        )  # fmt: skip
        title = _title(f"Use by day and clock, {_span(profiles.values())}", labels[group])
        peak = np.unravel_index(np.nanargmax(values), values.shape)
        about = (
            f"One column a day, one row each {profile.step} minutes of the clock, from midnight at the top; the "
            f"highest value is {format_number(float(values[peak]))} kWh per household on {days[int(peak[1])]} at "
            f"{profile.clock(int(peak[0]))}. The values include noise."
        )
        maps.append(value_map(title, about, shown, height=170 if len(profiles) > 1 else 300))
    yield side_by_side(maps) if len(maps) > 1 else maps[0]
    together = -(-len(days) // max(_MOST_AREAS // len(profiles) // len(values), 1))
    if together > 1:
        yield paragraph(
            f"At the pointer a map shows {together} days together, so that the page stays small.", "soft get"
        )


def _noise_note(profiles: Iterable[GroupProfile]) -> str:
    """Return a sentence if the mean noise of a cell exceeds the mean cell; "" otherwise."""
    shown = [*profiles]
    mean = np.nanmean(np.concatenate([profile.mean_kwh.ravel() for profile in shown]))
    noise = np.nanmean(np.concatenate([profile.noise_kwh.ravel() for profile in shown]))
    if noise <= mean:
        return ""
    text = (
        f"Single half-hours are mostly noise: the noise of a cell is {format_number(noise)} kWh on average, "
        f"the mean cell {format_number(mean)} kWh. The means over days have much less noise."
    )
    return paragraph(text, "soft")


@dataclass(frozen=True, slots=True)
class _MapTexts:
    """Values at the pointer of a map: `mean_kwh` by cell and shown day, `release` the row of each day."""

    profile: GroupProfile
    days: Sequence[date]
    mean_kwh: Floats
    release: Sequence[int | None]

    def text(self, cell: int, first: int, last: int) -> str:
        """Return day, clock, value and interval of a cell, or the range of the values of neighbouring days."""
        profile, clock, row = self.profile, self.profile.clock(cell), self.release[first]
        if first == last and row is not None:
            low, high = (format_number(float(ends[row, cell])) for ends in (profile.low_kwh, profile.high_kwh))
            length = profile.minutes[row, cell]
            minutes = f" in {length:.0f} minutes" if length != profile.step else ""
            mean = format_number(float(self.mean_kwh[cell, first]))
            return f"{self.days[first]} {clock}: {mean} kWh per household{minutes} ({low} to {high})"
        of_days = self.mean_kwh[cell, first : last + 1]
        low, high = (format_number(float(value)) for value in (np.nanmin(of_days), np.nanmax(of_days)))
        return f"{self.days[first]} to {self.days[last]} {clock}: {low} to {high} kWh per household"


def _values(kinds: dict[str, dict[str, MeanProfile]], profiles: dict[str, GroupProfile]) -> Values:
    rows = [
        (
            group,
            kind,
            mean.days,
            profiles[group].clock(cell),
            mean.mean[cell],
            mean.low[cell],
            mean.high[cell],
            mean.sd[cell],
        )
        for group, of_kinds in kinds.items()
        for kind, mean in of_kinds.items()
        for cell in range(len(mean.mean))
        if not math.isnan(mean.mean[cell])
    ]
    return Values(("group", "days_of", "days", "start", "mean_kwh", "low_kwh", "high_kwh", "noise_sd_kwh"), rows)


def _table(kinds: dict[str, MeanProfile], profile: GroupProfile, label: str, coverage: Decimal) -> str:
    means = [*kinds.values()]
    rows = [
        (profile.clock(cell), *(_number(ends[cell]) for mean in means for ends in (mean.mean, mean.low, mean.high)))
        for cell in range(profile.noisy_wh.shape[1])
    ]
    columns = ("begins", *(f"{kind}{text}" for kind in kinds for text in (", mean", ", low", ", high")))
    caption = (
        f"Mean profiles in numbers, kWh per household in {profile.step} minutes{f' ({label})' if label else ''}; low "
        f"to high covers the noise {percent(coverage)}; every day is in the Parquet file"
    )
    return table(caption, columns, rows)


def _number(value: float) -> str:
    return "–" if math.isnan(value) else format_number(value)
