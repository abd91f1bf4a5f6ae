"""Table of `agedp plan` with the planned days of each series: households of the smallest group, epsilon and noise."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date
from itertools import pairwise
from typing import Final

from agedp.layer_noise import sum_noises
from agedp.planning.forecast import Skip
from agedp.planning.row_noise import GroupNoise, group_noises, smallest_group
from agedp.signal_against_noise import three_digits
from agedp.stage_values import PlannedRelease
from agedp_data.config import RunFile
from agedp_flows.text.layer_text import layer_lines, period_lines
from agedp_flows.text.number_text import count_text, format_loss
from agedp_flows.text.run_text import noise_deviation, skips_count_text, skips_text
from agedp_flows.text.screen import Column, heading, table_lines, text_column

_MAX_SHOWN: Final = 5
"""Lines shown at the beginning, and at the end, of a longer table."""
_ALL_SERIES: Final = "all series"
_HOUR: Final = 60


def due_lines(run: RunFile, planned: Sequence[PlannedRelease], *, verbose: bool = False) -> list[str]:
    """Return the due days with their releases, what will be skipped, and the noise of sums of layers.

    With `verbose` also what layers and means of periods are.
    """
    if not planned:
        return ["nothing is due that is not released already"]
    rows = [release.row for release in planned if release.row.state == "released"]
    skips = skips_count_text([release.row for release in planned])
    skipped = f" and {skips} will be skipped" if skips else ""
    days = len({row.day for row in rows})
    of_days = f"{count_text(days, 'day')}, " if days < len(rows) else ""
    verb = "is" if len(rows) == 1 else "are"
    lines: list[str] = [heading(f"{of_days}{count_text(len(rows), 'release')} {verb} due{skipped}:")]
    lines += _table(run, list(_once_per_skip(planned)))
    lines += _skipped_lines(planned)
    lines += [*layer_lines(run.series), *period_lines(run.series)] if verbose else []
    for name, noise_by_day in sum_noises(rows).items():
        lines.append(f"{name}, sum of the layers: noise {three_digits(max(noise_by_day.values()))} kWh per household")
    return lines


def _table(run: RunFile, releases: Sequence[tuple[PlannedRelease, str]]) -> list[str]:
    """Return the table, "..." in place of lines that are left out, the unit in the heading if all rows share it."""
    shown = _shown_lines([(name, bool(release.skip_reason)) for release, name in releases])
    texts = {i: _row_texts(run, releases[i][0]) for i in shown}
    units = {cells.unit for cells in texts.values() if cells.unit}
    unit = f", {min(units)}" if len(units) == 1 else ""
    has_groups = any(cells.groups for cells in texts.values())
    has_notes = any(cells.note(unit) for cells in texts.values())
    columns = [
        *(text_column("day"), text_column("publish on"), text_column("series")),
        Column("households (smallest group)" if has_groups else "households"),
        *([Column("groups")] if has_groups else []),
        *(Column("epsilon"), Column(f"noise sd{unit}")),
        *([text_column("")] if has_notes else []),
    ]
    rows: list[Sequence[str]] = []
    for before, i in pairwise([-1, *shown]):
        if i > before + 1:
            rows.append(["..."])
        cells, row = texts[i], releases[i][0].row
        rows.append(
            [
                *(row.day, row.published_on, releases[i][1] or _ALL_SERIES, cells.households),
                *([cells.groups or "1"] if has_groups else []),
                *(cells.epsilon, cells.noise),
                *([cells.note(unit)] if has_notes else []),
            ]
        )
    return table_lines(columns, rows)


@dataclass(frozen=True, slots=True)
class _RowTexts:
    """The cells of a planned release; `groups` is "" without groups, `unit` and `noise` of a skipped day as well."""

    households: str
    groups: str
    epsilon: str = ""
    noise: str = ""
    unit: str = ""
    remark: str = ""

    def note(self, heading_unit: str) -> str:
        """Return the last cell: the unit, unless the heading has it, and the remark."""
        return ", ".join(filter(None, ["" if heading_unit else self.unit, self.remark]))


def _row_texts(run: RunFile, release: PlannedRelease) -> _RowTexts:
    """Return the cells of a release: households of the smallest group, a mean over the days that a row covers."""
    row, series = release.row, run.series[release.row.series]
    noises = group_noises(row, series)
    groups = len({of.group for of in noises})
    households = str(min((of.households for of in noises), default=0))
    texts = _RowTexts(households, f"{groups}" if groups > 1 else "")
    if row.state != "released":
        return replace(texts, remark=f"skipped: {release.skip_reason}")
    sd, unit = noise_deviation(row, series)
    texts = replace(texts, epsilon=format_loss(row.loss), noise=three_digits(sd))
    if unit != "kwh":
        return replace(texts, unit="households per count")
    if not series.reads_half_hours:
        return replace(texts, unit="kWh per household")
    interval = "half-hour" if run.input.interval_minutes < _HOUR else "hour"
    return replace(texts, unit=f"kWh per {interval}", remark=by_day_kind(smallest_group(row, series)))


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


def by_day_kind(noises: Sequence[GroupNoise]) -> str:
    """Return the noise of weekdays and of weekends; "" for a profile of single days.

    >>> by_day_kind([GroupNoise("all", 75, 10.14, "weekday"), GroupNoise("all", 75, 8.516, "weekend")])
    'weekday 10.1, weekend 8.52'
    """
    return ", ".join(f"{of.day_kind} {three_digits(of.noise_sd)}" for of in noises if of.day_kind)


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
