"""Load profiles in the report: mean of weekdays and of weekend days by clock, and a map of days by half-hours. Public.

The functions take rows of the published table (`profile.PROFILES`).

Decisions:

* All groups have one axis and one range of colours. The maps of all groups have at most `MOST_CELLS` cells: of longer
  series the newest days. `MOST_GROUPS` groups are shown, those of most households on these days, in the order of names.
* The colours are those of cividis, sixteen of them in equal steps. Their lightness grows evenly from dark to light,
  so that the map reads the same in greyscale, and they differ alike for readers with and without colour-vision
  deficiency.
* The legend is one bar of all colours with the values of its ends, so that no range seems to be missing.
* The map is on white in light and dark: a white cell has no value.
* The range of the colours leaves out the lowest and highest hundredth of the values, which have the end colours.
* Cells of one colour are one path, neighbours in a row one line of it: a year of half-hours takes at most 0.2 MB.
* A mean over days is the sum of their noisy sums over their household-days, as in the averages by month. Its noise
  is the sum of the days' noises, and its interval that of this sum (`consistency`), not a normal approximation.
* A cell is at the clock time at which it begins. On the day on which the clock goes forward two half-hours are
  empty. On the day on which it goes back two cells have twice the minutes: the means leave them out.
* Of profiles of months, `MOST_GROUPS` groups are shown, those of most household-days in the newest month, in the order
  of names. A map has one column a month and one row a half-hour. Weekdays and weekends have a map each with the same
  colours.

Nuñez, Anderton, Renslow: Optimizing colormaps with consideration for color vision deficiency. PLOS ONE 13(7), 2018.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from itertools import groupby
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from agedp.release_folder.result_tables import released_table
from agedp.reports import html, svg
from agedp.reports.report_data import largest_groups
from agedp.reports.series_charts import MONTHS, group_labels, percent, titled
from agedp_data.arrays import Floats
from agedp_data.ledger import ReleaseRecord
from agedp_data.series.consistency import sum_deviation, sum_interval
from agedp_data.series.profile import PROFILE_RELEASES
from agedp_data.series.result_table import Noise, Terms
from agedp_data.series.series_terms import DAY_KINDS, day_kind

# --------------------------------------------------------------------------------------------------
# A heat map of values as SVG: rows and columns of cells in sixteen colours, with a legend, values at the pointer.
# --------------------------------------------------------------------------------------------------

COLOURS = (
    "#00224e", "#002e6c", "#1e3a6f", "#35456c", "#47516c", "#575d6d", "#666970", "#757575",
    "#848279", "#948e77", "#a59c74", "#b7a96e", "#c8b866", "#dbc75a", "#eed649", "#fee838",
)  # fmt: skip
"""From low to high."""
_CELL_SIZE = 2
_TRIMMED = 100


@dataclass(frozen=True, slots=True)
class HeatMap:
    """A map: values from top to bottom and left to right, NaN for none, and the labels of both axes.

    `x_ticks` and `y_ticks` are positions from 0 to 1 with their texts. `text` names the cells of a row from a first to
    a last column at the pointer; `most` is the number of areas at the pointer.
    """

    values: Sequence[Sequence[float]]
    x_ticks: Sequence[tuple[float, str]]
    y_ticks: Sequence[tuple[float, str]]
    unit: str
    text: Callable[[int, int, int], str]
    most: int
    limits: tuple[float, float]


def value_limits(values: Sequence[float]) -> tuple[float, float]:
    """Return the range of the colours: that of the values without the lowest and highest hundredth.

    >>> value_limits([float(value) for value in range(101)])
    (1.0, 99.0)
    """
    ordered = sorted(value for value in values if not math.isnan(value)) or [0.0, 1.0]
    cut = len(ordered) // _TRIMMED
    return ordered[cut], ordered[-1 - cut]


def step_of(value: float, limits: tuple[float, float]) -> int:
    """Return the colour of a value, an index into `COLOURS`.

    >>> step_of(0.0, (0.0, 16.0)), step_of(8.5, (0.0, 16.0)), step_of(99.0, (0.0, 16.0))
    (0, 8, 15)
    """
    low, high = limits
    share = (value - low) / (high - low) if high > low else 0.0
    return min(max(int(share * len(COLOURS)), 0), len(COLOURS) - 1)


def value_map(title: str, about: str, shown: HeatMap, *, height: int) -> str:
    """Return a figure of values; a sentence if they are all equal.

    Args:
        title: subject of the figure, different from every other title of the page.
        about: description for a reader who cannot see the figure.
        shown: values and labels.
        height: height of the drawing [px].
    """
    rows, columns = len(shown.values), len(shown.values[0])
    distinct = {value for row in shown.values for value in row if not math.isnan(value)}
    if len(distinct) <= 1:
        text = f"{svg.format_number(*distinct)} {shown.unit} in every cell" if distinct else "no value"
        return html.paragraph(f"{title}: {text}.")
    size = columns * _CELL_SIZE, rows * _CELL_SIZE
    drawing = "\n".join(
        [
            '<g class="cells">',
            f'<path style="fill:#fff" d="M0 0h{size[0]}v{size[1]}h-{size[0]}z"/>',
            *_cell_paths(shown),
            "</g>",
            '<g class="hit">',
            *_cell_areas(shown),
            "</g>",
        ]
    )
    labels = [
        *(("x", f"left:{round(100 * position, 2):g}%", text) for position, text in shown.x_ticks),
        *(("y", f"top:{round(100 * position, 2):g}%", text) for position, text in shown.y_ticks),
    ]
    return html.part("figure", title, about, height, size, drawing, labels, [*_legend(shown)], ())


def _cell_paths(shown: HeatMap) -> Iterator[str]:
    """Yield one path for the cells of each colour."""
    by_step: dict[int, list[str]] = {}
    for row, values in enumerate(shown.values):
        steps = [None if math.isnan(value) else step_of(value, shown.limits) for value in values]
        for step, run in groupby(range(len(steps)), key=steps.__getitem__):
            if step is not None:
                cells = list(run)
                line = f"M{cells[0] * _CELL_SIZE} {row * _CELL_SIZE + _CELL_SIZE // 2}h{len(cells) * _CELL_SIZE}"
                by_step.setdefault(step, []).append(line)
    for step, lines in sorted(by_step.items()):
        yield f'<path style="stroke:{COLOURS[step]}" d="{"".join(lines)}"/>'


def _cell_areas(shown: HeatMap) -> Iterator[str]:
    """Yield the areas at the pointer: of one cell, or of neighbouring ones of a row if there are too many."""
    rows, columns = len(shown.values), len(shown.values[0])
    count = svg.positions_per_area(columns, max(shown.most // rows, 1))
    for row, values in enumerate(shown.values):
        for start in range(0, columns, count):
            end = min(start + count, columns) - 1
            if not all(map(math.isnan, values[start : end + 1])):
                width = (end - start + 1) * _CELL_SIZE
                yield svg.area(start * _CELL_SIZE, row * _CELL_SIZE, width, _CELL_SIZE, shown.text(row, start, end))


def _legend(shown: HeatMap) -> Iterator[tuple[str, int, str, str]]:
    """Yield the colour bar with the values of its ends, and the sample of an empty cell."""
    low, high = map(svg.format_number, shown.limits)
    size = 28 / len(COLOURS)
    bar = "".join(
        f'<path style="fill:{colour}" d="M{step * size:g} 0H28v12H{step * size:g}z"/>'
        for step, colour in enumerate(COLOURS)
    )
    yield "", 0, bar, f"{low} {shown.unit} and below (dark) to {high} {shown.unit} and above (light), evenly"
    yield "", 0, '<path style="fill:#fff;stroke:currentColor" d="M1 1h26v10h-26z"/>', "no value"


# --------------------------------------------------------------------------------------------------
# Load profiles by group, and their means over days, from the published table (`profile.PROFILES`). Public.
# --------------------------------------------------------------------------------------------------

MINUTES_OF_DAY = 1440
_Flags = np.ndarray[Any, np.dtype[np.bool_]]


@dataclass(frozen=True, slots=True)
class Clock:
    """The cells of a day, each of `step` minutes from midnight on."""

    step: int

    @property
    def cells(self) -> int:
        """Return the number of cells of a day."""
        return MINUTES_OF_DAY // self.step

    @property
    def axis(self) -> svg.Scale:
        """Return the axis of cells by their number, with four labels."""
        ticks = ((float(cell), self.text(cell)) for cell in range(0, self.cells, self.cells // 4))
        return svg.Scale(0.0, self.cells - 1.0, tuple(ticks))

    def text(self, cell: float) -> str:
        """Return the time at which a cell begins; of a position on the axis that of the nearest cell.

        >>> Clock(30).text(37), Clock(60).text(5.6)
        ('18:30', '06:00')
        """
        minute = round(cell) * self.step
        return f"{minute // 60:02d}:{minute % 60:02d}"


@dataclass(frozen=True, slots=True)
class GroupProfile:
    """Half-hours of one group, shape (days, cells of a day), NaN where a day has none.

    `clock` has the usual length of a cell, `scale` is the noise scale of `noisy_wh` [Wh].
    """

    days: tuple[date, ...]
    clock: Clock
    noisy_wh: Floats
    households: Floats
    minutes: Floats
    scale: Floats
    low_kwh: Floats
    high_kwh: Floats

    @property
    def mean_kwh(self) -> Floats:
        """Return the published means [kWh per household and cell]."""
        mean: Floats = self.noisy_wh / self.households / 1000
        return mean

    @property
    def noise_kwh(self) -> Floats:
        r"""Return the standard deviations of the noise of the means, of discrete Laplace noise [kWh per household].

        .. math:: \sigma^2 = \frac{1}{\cosh(1/b) - 1} = \frac{1}{2 \sinh^2(1/2b)}
        """
        noise: Floats = 1 / (np.sqrt(2) * np.sinh(0.5 / self.scale)) / self.households / 1000
        return noise

    @property
    def comparable_kwh(self) -> Floats:
        """Return the means per usual length of a cell [kWh per household]."""
        return self.mean_kwh * self.clock.step / self.minutes


@dataclass(frozen=True, slots=True)
class MeanProfile:
    """Mean over some days by cell [kWh per household], with its interval and standard deviation; NaN for none."""

    days: int
    mean: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    sd: tuple[float, ...]


def group_profile(rows: pa.Table, group: str) -> GroupProfile:
    """Return the half-hours of one group of a table of profiles."""
    of_group = rows.filter(pc.equal(rows["group"], group))
    column = {name: of_group[name].to_numpy() for name in of_group.schema.names if name not in ("group", "day")}
    days = np.array(of_group["day"].to_pylist(), dtype="datetime64[D]")
    distinct, day = np.unique(days, return_inverse=True)
    clock = Clock(int(column["minutes"].min()))
    place = day, column["start_minute"] // clock.step
    sd_wh = column["noise_sd_kwh"] * 1000 * column["households"]

    def grid(values: Floats) -> Floats:
        cells = np.full((len(distinct), clock.cells), np.nan)
        cells[place] = values
        return cells

    return GroupProfile(
        days=tuple(distinct.tolist()),
        clock=clock,
        noisy_wh=grid(column["noisy_sum_wh"]),
        households=grid(column["households"]),
        minutes=grid(column["minutes"]),
        scale=grid(noise_scale(sd_wh)),
        low_kwh=grid(column["low_kwh"]),
        high_kwh=grid(column["high_kwh"]),
    )


def noise_scale(deviation: Floats) -> Floats:
    r"""Return the scale of discrete Laplace noise with a standard deviation, rounded up in the tenth digit.

    .. math:: \sigma^2 = \frac{2q}{(1-q)^2} = \frac{1}{\cosh(1/b) - 1}, \quad q = e^{-1/b}

    >>> noise_scale(np.array([4.22306, 141421.356])).round(3).tolist()
    [3.0, 100000.0]
    """
    inverse = 1 / np.square(deviation)
    scale = (1 + 1e-10) / np.log1p(inverse + np.sqrt(inverse * (inverse + 2)))
    digits = 10.0 ** (9 - np.floor(np.log10(scale)))
    rounded: Floats = np.ceil(scale * digits) / digits
    return rounded


def mean_profile(profile: GroupProfile, is_selected: _Flags, *, coverage: Decimal) -> MeanProfile:
    """Return the mean over the selected days by cell, of cells of usual length."""
    values: list[tuple[float, ...]] = []
    for cell in range(profile.clock.cells):
        enters = is_selected & (profile.minutes[:, cell] == profile.clock.step)
        if not enters.any():
            values.append((math.nan,) * 4)
            continue
        scales = profile.scale[enters, cell].tolist()
        energy, wh_per_kwh_mean = profile.noisy_wh[enters, cell].sum(), 1000 * profile.households[enters, cell].sum()
        half_width = sum_interval(scales, coverage)
        ends = energy, energy - half_width, energy + half_width, sum_deviation(scales)
        values.append(tuple(float(value / wh_per_kwh_mean) for value in ends))
    mean, low, high, sd = zip(*values, strict=True)
    return MeanProfile(int(is_selected.sum()), mean, low, high, sd)


# --------------------------------------------------------------------------------------------------
# Load profiles in the report: mean of weekdays and of weekend days by clock, and a map of days by half-hours. Public.
# --------------------------------------------------------------------------------------------------

MOST_GROUPS = 6
"""Groups on a page."""
MOST_DAYS = 366
"""Days of a map."""
MOST_CELLS = 2 * 366 * 48
"""Cells of all maps of a series."""
_HOURS = [(hour / 24, f"{hour:02d}:00") for hour in (0, 6, 12, 18, 24)]
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
        yield html.paragraph(f"{name}: no day is released yet.")
        return
    shown_days = _shown_days(rows)
    shown = rows.filter(pc.greater_equal(rows["day"], pa.scalar(shown_days[0])))
    sizes = shown.group_by("group").aggregate([("households", "max")])
    households = dict(zip(sizes["group"].to_pylist(), sizes["households_max"].to_pylist(), strict=True))
    groups = largest_groups(households, MOST_GROUPS)
    profiles = {group: group_profile(shown, group) for group in groups}
    labels = group_labels(groups, label)
    kinds = {group: _weekday_and_weekend(profile, coverage) for group, profile in profiles.items()}
    yield from _mean_charts(kinds, profiles, labels, coverage)
    if len(shown_days) > 1:
        yield from _maps(profiles, labels, shown_days)
    if shown.num_rows < rows.num_rows:
        yield html.paragraph(f"Earlier days than {shown_days[0]} are in the Parquet file only.", "soft")
    yield from html.hidden_groups(len(households) - len(groups), file)
    holds = "means of weekdays and of weekend days, with intervals and noise"
    yield html.download_links(f"{name}_weekday_weekend", _values(kinds, profiles), file, holds=holds)
    tables = []
    for group, of_kinds in kinds.items():
        clock, of = profiles[group].clock, f" ({labels[group]})" if labels[group] else ""
        caption = f"Mean profiles in numbers, kWh per household in {clock.step} minutes{of}"
        tables.append(_table(caption, of_kinds, clock, coverage, "day"))
    yield html.several("Numbers of each group by clock", tables)


def _shown_days(rows: pa.Table) -> list[date]:
    """Return the days of the maps, without gaps: those of the table, at most the newest that the page holds."""
    groups = min(len(rows["group"].unique()), MOST_GROUPS)
    most = min(MOST_DAYS, MOST_CELLS // (Clock(pc.min(rows["minutes"]).as_py()).cells * groups))
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
    y = svg.linear_axis(ends, zero=True)
    charts = []
    for group, of_kinds in kinds.items():
        lines = [
            (f"{kind}, mean of {mean.days}", letter, mean)
            for letter, (kind, mean) in zip("WE", of_kinds.items(), strict=False)
        ]
        title = titled(f"Mean profile, {_span(profiles.values())}", labels[group])
        about, height = _about(of_kinds, profiles[group].clock, coverage), 170 if len(kinds) > 1 else 240
        charts.append(_means_chart(title, about, lines, profiles[group].clock, y, height, len(kinds)))
    yield html.side_by_side(charts)


def _means_chart(
    title: str,
    about: str,
    means: Sequence[tuple[str, str, MeanProfile]],
    clock: Clock,
    y: svg.Scale,
    height: int,
    charts: int = 1,
) -> str:
    """Return the chart of profiles by clock, each with its name and letter: W for weekdays, E for weekend days."""
    positions = [float(cell) for cell in range(clock.cells)]
    lines = [
        svg.Line(name, positions, mean.mean, (mean.low, mean.high), letter, style, dots=False)
        for style, (name, letter, mean) in enumerate(means)
    ]
    unit = f"kWh per household in {clock.step} minutes"
    hover = svg.Hover(clock.text, unit, most=svg.share_of_areas(charts))
    return svg.chart(title, about, [*lines, hover], x=clock.axis, y=y, y_title=unit, height=height)


def _span(profiles: Iterable[GroupProfile]) -> str:
    days = [day for profile in profiles for day in profile.days]
    return f"{min(days)} to {max(days)}" if min(days) < max(days) else f"{min(days)}"


def _about(kinds: dict[str, MeanProfile], clock: Clock, coverage: Decimal) -> str:
    texts = []
    for kind, mean in kinds.items():
        present = [cell for cell, value in enumerate(mean.mean) if not math.isnan(value)]
        peak, least = max(present, key=mean.mean.__getitem__), min(present, key=mean.mean.__getitem__)
        texts.append(
            f"{mean.days} {kind}: highest {svg.format_number(mean.mean[peak])} kWh per household "
            f"at {clock.text(peak)}, lowest {svg.format_number(mean.mean[least])} at {clock.text(least)}"
        )
    return f"{'; '.join(texts)}; the bands cover the noise of the means ({percent(coverage)})."


def _by_day(values: Floats, release: Sequence[int | None]) -> Floats:
    """Return values (releases, cells) as (cells, days) by the release of each day, NaN for None."""
    empty = np.full((1, values.shape[1]), np.nan)
    rows = [len(values) if row is None else row for row in release]
    by_day: Floats = np.concatenate([values, empty])[rows].T
    return by_day


def _maps(profiles: dict[str, GroupProfile], labels: dict[str, str], days: Sequence[date]) -> Iterator[str]:
    limits = value_limits(np.concatenate([profile.comparable_kwh.ravel() for profile in profiles.values()]).tolist())
    axis = svg.date_axis(days[0], days[-1])
    x_ticks = [((value - axis.low + 0.5) / len(days), text) for value, text in axis.ticks]
    maps = []
    if note := _noise_note(profiles.values()):
        yield note
    for group, profile in profiles.items():
        place = {day: i for i, day in enumerate(profile.days)}
        release = [place.get(day) for day in days]
        values, mean = _by_day(profile.comparable_kwh, release), _by_day(profile.mean_kwh, release)
        shown = HeatMap(
            values.tolist(), x_ticks, _HOURS, "kWh", _MapTexts(profile, days, mean, release).text,
            _MOST_AREAS // len(profiles), limits,
        )  # fmt: skip
        title = titled(f"Use by day and clock, {_span(profiles.values())}", labels[group])
        peak = np.unravel_index(np.nanargmax(values), values.shape)
        about = (
            f"One column a day, one row each {profile.clock.step} minutes of the clock, from midnight at the top; the "
            f"highest value is {svg.format_number(float(values[peak]))} kWh per household on {days[int(peak[1])]} at "
            f"{profile.clock.text(int(peak[0]))}. The values include noise."
        )
        maps.append(value_map(title, about, shown, height=170 if len(profiles) > 1 else 300))
    yield html.side_by_side(maps)
    together = -(-len(days) // max(_MOST_AREAS // len(profiles) // len(values), 1))
    if together > 1:
        yield html.paragraph(
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
        f"Single half-hours are mostly noise: the noise of a cell is {svg.format_number(noise)} kWh on average, "
        f"the mean cell {svg.format_number(mean)} kWh. The means over days have much less noise."
    )
    return html.paragraph(text, "soft")


@dataclass(frozen=True, slots=True)
class _MapTexts:
    """Values at the pointer of a map: `mean_kwh` by cell and shown day, `release` the row of each day."""

    profile: GroupProfile
    days: Sequence[date]
    mean_kwh: Floats
    release: Sequence[int | None]

    def text(self, cell: int, first: int, last: int) -> str:
        """Return day, clock, value and interval of a cell, or the range of the values of neighbouring days."""
        profile, clock, row = self.profile, self.profile.clock.text(cell), self.release[first]
        if first == last and row is not None:
            low, high = (svg.format_number(float(ends[row, cell])) for ends in (profile.low_kwh, profile.high_kwh))
            length = profile.minutes[row, cell]
            minutes = f" in {length:.0f} minutes" if length != profile.clock.step else ""
            mean = svg.format_number(float(self.mean_kwh[cell, first]))
            return f"{self.days[first]} {clock}: {mean} kWh per household{minutes} ({low} to {high})"
        of_days = self.mean_kwh[cell, first : last + 1]
        low, high = (svg.format_number(float(value)) for value in (np.nanmin(of_days), np.nanmax(of_days)))
        return f"{self.days[first]} to {self.days[last]} {clock}: {low} to {high} kWh per household"


def _values(kinds: dict[str, dict[str, MeanProfile]], profiles: dict[str, GroupProfile]) -> html.Values:
    rows = [
        (
            group,
            kind,
            mean.days,
            profiles[group].clock.text(cell),
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
    return html.Values(("group", "days_of", "days", "start", "mean_kwh", "low_kwh", "high_kwh", "noise_sd_kwh"), rows)


def _table(caption: str, kinds: Mapping[str, MeanProfile], clock: Clock, coverage: Decimal, every: str) -> str:
    """Return the profiles of kinds of day by clock; the Parquet file has those of every day, or of every month."""
    ends = [values for mean in kinds.values() for values in (mean.mean, mean.low, mean.high)]
    rows = [(clock.text(cell), *(svg.number_or_dash(values[cell]) for values in ends)) for cell in range(clock.cells)]
    columns = ("begins", *(f"{kind}{text}" for kind in kinds for text in (", mean", ", low", ", high")))
    note = f"low to high covers the noise {percent(coverage)}; every {every} is in the Parquet file"
    return html.table(f"{caption}; {note}", columns, rows)


# --------------------------------------------------------------------------------------------------
# Profiles of months that were released as such: the newest month by clock, and a map of all months. Public.
# --------------------------------------------------------------------------------------------------

_NAMES = {"weekday": "weekdays", "weekend": "weekend days"}
_COLUMNS = ("first_day", "group", "day_kind", "start_minute", "mean_kwh", "low_kwh", "high_kwh", "noise_sd_kwh")

_Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class _MonthProfiles:
    """Rows of the published table by (group, kind of day, first day), and the cells of a day."""

    rows: Mapping[tuple[str, str, date], Sequence[_Row]]
    clock: Clock

    @property
    def months(self) -> list[date]:
        return sorted({first for _, _, first in self.rows})

    def of(self, group: str, kind: str, first: date) -> MeanProfile:
        """Return the profile of a kind of day in a month, NaN where it has none."""
        by_cell = {row["start_minute"] // self.clock.step: row for row in self.rows.get((group, kind, first), ())}
        columns = (
            tuple(float(by_cell[cell][column]) if cell in by_cell else math.nan for cell in range(self.clock.cells))
            for column in ("mean_kwh", "low_kwh", "high_kwh", "noise_sd_kwh")
        )
        return MeanProfile(0, *columns)


def month_profile_parts(
    name: str,
    rows: Sequence[ReleaseRecord],
    *,
    terms: Terms,
    coverage: Decimal,
    file: str = "",
) -> Iterator[str]:
    """Yield charts, maps, links and tables of a series of profiles of months.

    Args:
        name: the series.
        rows: its released rows.
        terms: by the hash of each contract that has the series.
        coverage: of the intervals.
        file: the Parquet file of the series, beside the page; "" without one.
    """
    published = released_table(PROFILE_RELEASES, rows, terms, Noise(coverage)).to_pylist()
    if not published:
        yield html.paragraph(f"{name}: no month is released yet.")
        return
    by_profile: dict[tuple[str, str, date], list[_Row]] = {}
    for row in published:
        by_profile.setdefault((row["group"], row["day_kind"], row["first_day"]), []).append(row)
    profiles = _MonthProfiles(by_profile, Clock(published[0]["minutes"]))
    sizes = {row["group"]: row["household_days"] for row in published if row["first_day"] == profiles.months[-1]}
    groups = largest_groups(sizes, MOST_GROUPS)
    labels = {group: name if group == "all" and len(groups) == 1 else f"{name}, {group}" for group in groups}
    charts = _newest_charts(profiles, labels, coverage)
    yield html.side_by_side(charts)
    if len(profiles.months) > 1:
        yield html.side_by_side([*_month_maps(profiles, labels)])
    yield from html.hidden_groups(len({row["group"] for row in published}) - len(groups), file)
    shown = [row for row in published if row["group"] in labels]
    values = html.Values(_COLUMNS, [tuple(row[column] for column in _COLUMNS) for row in shown])
    yield html.download_links(f"{name}_by_month", values, file)
    newest, clock = profiles.months[-1], profiles.clock
    caption = f"Mean profile of {MONTHS.text(newest)} in numbers, kWh per household in {clock.step} minutes"
    tables = []
    for group, label in labels.items():
        kinds = {_NAMES[kind]: profiles.of(group, kind, newest) for kind in DAY_KINDS}
        tables.append(_table(f"{caption} ({label})", kinds, clock, coverage, "month"))
    yield html.several("Numbers of each group by clock", tables)


def _newest_charts(profiles: _MonthProfiles, labels: Mapping[str, str], coverage: Decimal) -> list[str]:
    """Return a chart for each group: both kinds of day of the newest month, with the intervals of their noise."""
    newest = profiles.months[-1]
    by_group = {
        group: {kind: profiles.of(group, kind, newest) for kind in DAY_KINDS if (group, kind, newest) in profiles.rows}
        for group in labels
    }
    ends = [end for kinds in by_group.values() for mean in kinds.values() for end in (*mean.low, *mean.high)]
    y, charts = svg.linear_axis(ends, zero=True), []
    for group, kinds in by_group.items():
        interval = f"with the interval of the noise ({percent(coverage)})"
        lines = [(f"{_NAMES[kind]}, {interval}", "WE"[kind == "weekend"], mean) for kind, mean in kinds.items()]
        about = "; ".join(
            f"{_NAMES[kind]}: highest {svg.format_number(max(_present(mean.mean)))} kWh per household, lowest "
            f"{svg.format_number(min(_present(mean.mean)))}"
            for kind, mean in kinds.items()
        )
        title = f"Mean profile of {MONTHS.text(newest)}: {labels[group]}"
        charts.append(_means_chart(title, f"By clock. {about}.", lines, profiles.clock, y, 200))
    return charts


def _present(values: Sequence[float]) -> list[float]:
    return [value for value in values if not math.isnan(value)]


def _month_maps(profiles: _MonthProfiles, labels: Mapping[str, str]) -> Iterator[str]:
    """Yield a map of months by clock for each group and kind of day."""
    months = profiles.months
    limits = value_limits([float(row["mean_kwh"]) for of in profiles.rows.values() for row in of])
    axis = MONTHS.axis(months)
    x_ticks = [(axis.position(value), text) for value, text in axis.ticks]
    for group, label in labels.items():
        for kind in DAY_KINDS:
            columns = [profiles.of(group, kind, first).mean for first in months]
            values = [list(row) for row in zip(*columns, strict=True)]

            def text(cell: int, first: int, last: int, values: Sequence[Sequence[float]] = values) -> str:
                shown = _present(values[cell][first : last + 1])
                span = MONTHS.text(months[first]) + (f" to {MONTHS.text(months[last])}" if last > first else "")
                numbers = " to ".join(dict.fromkeys(svg.format_number(end) for end in (min(shown), max(shown))))
                return f"{span} {profiles.clock.text(cell)}: {numbers} kWh per household"

            shown = HeatMap(values, x_ticks, _HOURS, "kWh", text, _MOST_AREAS // (2 * len(labels)), limits)
            about = (
                f"One column a month, one row each {profiles.clock.step} minutes of the clock, from midnight at the "
                f"top; {svg.format_number(min(map(min, map(_present, columns))))} to "
                f"{svg.format_number(max(map(max, map(_present, columns))))} kWh per household. "
                "The values include noise."
            )
            yield value_map(f"Use by month and clock, {_NAMES[kind]}: {label}", about, shown, height=200)
