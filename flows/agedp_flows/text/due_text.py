"""Table of `agedp plan` with the planned days of each series: households of the smallest group, epsilon and noise."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date
from itertools import pairwise
from typing import Final

from agedp.layer_noise import sum_noises
from agedp.planning.forecast import Skip
from agedp.planning.row_noise import GroupNoise, group_noises, smallest_group
from agedp.signal_against_noise import three_digits
from agedp.stage_values import PlannedRelease
from agedp_data.config import RunFile
from agedp_data.epsilon import format_epsilon
from agedp_data.series.profile import Profile
from agedp_data.series.series import AnySeries
from agedp_flows.text.layer_text import layer_lines, period_lines
from agedp_flows.text.run_text import count_text, noise_deviation, skips_count_text, skips_text

_MAX_SHOWN: Final = 5
"""Lines shown at the beginning, and at the end, of a longer table."""
_ALL_SERIES: Final = "all series"
_HOUR: Final = 60
_LEAST_WIDTHS: Final = 14, 10
"""Of the names of series, and of the numbers of households."""


def due_lines(run: RunFile, planned: Sequence[PlannedRelease]) -> list[str]:
    """Return the due days with their releases, what will be skipped, and the noise of sums of layers."""
    if not planned:
        return ["nothing is due that is not released already"]
    rows = [release.row for release in planned if release.row.state == "released"]
    skips = skips_count_text([release.row for release in planned])
    skipped = f" and {skips} will be skipped" if skips else ""
    days = len({row.day for row in rows})
    of_days = f"{count_text(days, 'day')}, " if days < len(rows) else ""
    lines = [f"{of_days}{count_text(len(rows), 'release')} {'is' if len(rows) == 1 else 'are'} due{skipped}:"]
    lines += _table(run, list(_once_per_skip(planned)))
    lines += _skipped_lines(planned)
    lines += [*layer_lines(run.series), *period_lines(run.series)]
    for name, noise_by_day in sum_noises(rows).items():
        lines.append(f"{name}, sum of the layers: noise {three_digits(max(noise_by_day.values()))} kWh per household")
    return lines


def _table(run: RunFile, releases: Sequence[tuple[PlannedRelease, str]]) -> Iterator[str]:
    """Yield the heading and the lines of the table, "..." in place of lines that are left out."""
    names = [name or _ALL_SERIES for _, name in releases]
    counts = [_households_text(release, run.series[release.row.series]) for release, _ in releases]
    shown = _shown_lines([(name, bool(release.skip_reason)) for release, name in releases])
    least_name, least_count = _LEAST_WIDTHS
    name_width = max(least_name, *(len(names[i]) for i in shown))
    count_width = max(least_count, *(len(counts[i]) for i in shown))
    heading = f"{'series':{name_width}s}  {'households':>{count_width}s}"
    yield f"day         publish on  {heading}   epsilon   noise sd, kWh per household"
    for before, i in pairwise([-1, *shown]):
        if i > before + 1:
            yield "..."
        row = releases[i][0].row
        columns = f"{names[i]:{name_width}s}  {counts[i]:>{count_width}s}"
        yield f"{row.day}  {row.published_on}  {columns}   {_noise_column(run, releases[i][0])}"


def _shown_lines(lines: Sequence[tuple[str, bool]]) -> list[int]:
    """Return which lines are shown, of each its series and whether it is skipped: ends, and one line of each series.

    >>> _shown_lines([("a", False)] * 20 + [("b", True), ("b", False)] + [("a", False)] * 20)
    [0, 1, 2, 3, 4, 21, 37, 38, 39, 40, 41]
    """
    if len(lines) <= 2 * _MAX_SHOWN:
        return list(range(len(lines)))
    first: dict[str, int] = {}
    for i in sorted(range(len(lines)), key=lambda i: lines[i][1]):  # a released line, if there is one
        first.setdefault(lines[i][0], i)
    ends = [*range(_MAX_SHOWN), *range(len(lines) - _MAX_SHOWN, len(lines))]
    covered = {lines[i][0] for i in ends if not lines[i][1]}
    return sorted({*ends, *(i for name, i in first.items() if name not in covered)})


def _households_text(release: PlannedRelease, series: AnySeries) -> str:
    """Return the households of a row, of groups those of the smallest one.

    Of rows that cover several days they are the mean of these days.
    """
    noises = group_noises(release.row, series)
    groups = len({of.group for of in noises})
    if groups < 2:
        return str(min((of.households for of in noises), default=0))
    return f"{min(of.households for of in noises)} (least of {groups} groups)"


def _noise_column(run: RunFile, release: PlannedRelease) -> str:
    row, series = release.row, run.series[release.row.series]
    if row.state != "released":
        return f"skipped: {release.skip_reason}"
    sd, unit = noise_deviation(row, series)
    if unit != "kwh":
        return f"{format_epsilon(row.loss):8s}  {sd:.3f} households (per count)"
    half_hour = " (per half-hour)" if run.input.interval_minutes < _HOUR else " (per hour)"
    noise = by_day_kind(smallest_group(row, series)) if isinstance(series, Profile) else ""
    return f"{format_epsilon(row.loss):8s}  {noise or f'{sd:.3f}'}{half_hour if isinstance(series, Profile) else ''}"


def by_day_kind(noises: Sequence[GroupNoise]) -> str:
    """Return the noise of weekdays and of weekends; "" for a profile of single days.

    >>> by_day_kind([GroupNoise("all", 75, 10.14, "weekday"), GroupNoise("all", 75, 8.516, "weekend")])
    '10.140 weekday, 8.516 weekend'
    """
    return ", ".join(f"{of.noise_sd:.3f} {of.day_kind}" for of in noises if of.day_kind)


def _once_per_skip(planned: Sequence[PlannedRelease]) -> Iterator[tuple[PlannedRelease, str]]:
    """Yield the planned releases with their series; a day skipped for one reason in several series once, with ""."""
    of_days: dict[str, list[str]] = {}
    for release in planned:
        of_days.setdefault(release.row.day, []).append(release.skip_reason)
    whole = {day for day, reasons in of_days.items() if reasons[0] and len(reasons) > 1 and len({*reasons}) == 1}
    yielded: set[str] = set()
    for release in planned:
        day = release.row.day
        if day not in yielded:
            yield release, "" if day in whole else release.row.series
        yielded |= {day} & whole


def _skipped_lines(planned: Sequence[PlannedRelease]) -> list[str]:
    """Return the days that will be skipped, by reason, including those whose lines are not shown."""
    reasons: dict[str, list[Skip]] = {}
    for release, series in _once_per_skip(planned):
        if release.skip_reason:
            skip = date.fromisoformat(release.row.day), series
            reasons.setdefault(release.skip_reason, []).append(skip)
    return [f"skipped ({reason}): {skips_text(skips)}" for reason, skips in reasons.items()]
