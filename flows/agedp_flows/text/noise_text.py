"""Sentences of `agedp plan` and `agedp run` on the noise of series.

A released mean has its signal against noise. A profile, coverage, or a mean of periods has one sentence: the noise of
its smallest group against a public example figure. Both are functions of planned or released rows and the run file;
nothing is decided by them.

Decisions:

* The estimate of a signal and its sentence are those of `agedp.signal_against_noise`, which both reports use as well.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Final

from agedp.planning.row_noise import GroupNoise, smallest_group
from agedp.signal_against_noise import ASSUMED_CHANGE_KWH, three_digits
from agedp_data.config import RunFile
from agedp_data.ledger import ReleaseRecord
from agedp_data.roster import ALL, RosterCounts, columns_of
from agedp_data.series.layered_mean import is_upper, layer_range, series_text
from agedp_data.series.mean import is_daily_mean
from agedp_data.series.series import AnySeries, table_name
from agedp_data.series.series_terms import layer_number, mean_name
from agedp_flows.text.template_lines import render_lines

_TYPICAL_HALF_HOUR_KWH: Final = 0.3
"""A mean half-hour of a household has 0.2 to 0.4 kWh."""
_TYPICAL_DAY_KWH: Final = 10.0
_HALF_HOUR: Final = 30


def planned_mean_lines(rows: Iterable[ReleaseRecord], series: Mapping[str, AnySeries]) -> list[str]:
    """Return the noise of planned daily means, that of the noisiest, before any is released."""
    means = [row for row in rows if not is_upper(row.series) and is_daily_mean(series[row.series])]
    smallest = [(of.noise_sd, row.series, of) for row in means for of in smallest_group(row, series[row.series])]
    if not smallest:
        return []
    noise, name, of = max(smallest)
    return render_lines(
        "planned_noise", label=_label(name, series[name], of), noise=noise, change_kwh=ASSUMED_CHANGE_KWH
    )


def noise_lines(rows: Iterable[ReleaseRecord], run: RunFile) -> list[str]:
    """Return one sentence for each profile, coverage and mean of periods: the noise of the smallest group.

    Args:
        rows: planned or released rows; the newest of each series counts.
        run: the run file.
    """
    newest: dict[str, ReleaseRecord] = {}
    for row in sorted(rows, key=lambda row: row.day):
        if row.state == "released" and row.series in run.series and run.series[row.series].holds(row.cells):
            newest[row.series] = row
    smallest = {name: smallest_group(newest[name], run.series[name]) for name in run.series if name in newest}
    of_series = ((name, noises, _noise_text(run, name, noises)) for name, noises in smallest.items() if noises)
    return [f"{_label(name, run.series[name], noises[0])}: noise {text}" for name, noises, text in of_series if text]


def _noise_text(run: RunFile, name: str, noises: Sequence[GroupNoise]) -> str:
    """Return the noise of the smallest group against a public example figure; "" without households or a figure."""
    series, noise = run.series[name], max(of.noise_sd for of in noises)
    if not noises[0].households:
        return ""
    if series.reads_half_hours:
        return _profile_text(noises, run.input.interval_minutes)
    if series.unit == "households" and series.has_one_cell():
        share = noise / noises[0].households
        hidden = f" The {series.counted_share} cannot be told from noise." if share >= 1 else ""
        return f"{three_digits(noise)} households, {share:,.1%} of them.{hidden}"
    if series.covers_periods:
        of_day = f"{noise / _TYPICAL_DAY_KWH:,.1%} of a day of {_TYPICAL_DAY_KWH:g} kWh"
        return f"{three_digits(noise)} kWh per household and day of a {series.period}, {of_day}."
    return ""


def _profile_text(noises: Sequence[GroupNoise], minutes: int) -> str:
    """Return the noise of a half-hour, or hour, against one of usual use.

    >>> _profile_text([GroupNoise("all", 75, 0.6)], 30)
    '0.6 kWh in each half-hour, 200.0% of a half-hour of 0.3 kWh. Single half-hours cannot be told from noise.'
    """
    length = max(minutes, _HALF_HOUR)
    unit, article = ("half-hour", "a") if length == _HALF_HOUR else ("hour", "an")
    use_kwh = _TYPICAL_HALF_HOUR_KWH * length / _HALF_HOUR
    kinds = [(of, f" of {of.day_kind}s" if of.day_kind else "") for of in noises]
    text = " and ".join(f"{three_digits(of.noise_sd)} kWh in each {unit}{of_kind}" for of, of_kind in kinds)
    noise = max(of.noise_sd for of in noises)
    hidden = f" Single {unit}s cannot be told from noise." if noise > use_kwh else ""
    return f"{text}, {noise / use_kwh:,.1%} of {article} {unit} of {use_kwh:g} kWh.{hidden}"


def _label(name: str, series: AnySeries, of: GroupNoise) -> str:
    text = series_text(name, series) if layer_number(name) else name
    if series.by is None and of.group == ALL:
        return text
    return f"{text}, smallest group {of.group} of {series.level} ({of.households:,} households)"


def layer_lines(series: Mapping[str, AnySeries]) -> list[str]:
    """Return one line for each upper layer: what it counts, and what it is added to.

    >>> from agedp_data.series.series import series_in
    >>> terms = {"statistic": "mean", "clamp_kwh": "75", "above_kwh": "30", "share": "0.23"}
    >>> layer_lines({"use/2": series_in(terms)})[0].partition(". ")[0]
    'use/2 is an upper layer of use: daily use above 30 and up to 75 kWh'
    """
    return [
        f"{name} is an upper layer of {mean_name(name)}: daily use {layer_range(layer)} kWh. Add it to the layers "
        "below; one day is mostly noise."
        for name, layer in series.items()
        if is_upper(name)
    ]


def period_lines(series: Mapping[str, AnySeries]) -> list[str]:
    """Return one line for each series of weeks, months or years that a daily mean of the run file gives at no loss.

    >>> from agedp_data.series.series import series_in
    >>> mean = {"statistic": "mean", "clamp_kwh": "50"}
    >>> period_lines({"use": series_in(mean), "months": series_in({**mean, "every": "month"})})[0].partition(": `")[0]
    'months: the average of each month follows from the days of use at no loss'
    """
    daily = {(mean.by, mean.rule): name for name, mean in series.items() if is_daily_mean(mean)}
    return [
        f"{name}: the average of each {of.period} follows from the days of {daily[of.by, of.rule]} at no loss: "
        f'`[output] averages_by = ["{of.period}"]` writes it. A series of its own is for those who publish no days.'
        for name, of in series.items()
        if of.covers_periods and (of.by, of.rule) in daily
    ]


def level_lines(run: RunFile, roster: RosterCounts) -> list[str]:
    """Return a warning for each list of columns in `by` that seems to be in reversed order.

    A finer column divides the groups of the next one. If it divides none of them and has fewer labels, it is coarser.
    """
    groups, lines = roster.groups, []
    by_table = {table_name(name): columns_of(series.by) for name, series in reversed(run.series.items())}
    for name, columns in reversed(by_table.items()):
        for i, (finer, coarser) in enumerate(pairwise(columns)):
            labels, coarser_labels = len({*groups[finer]}), len({*groups[coarser]})
            paths, coarser_paths = (len({*zip(*map(groups.get, columns[j:]), strict=True)}) for j in (i, i + 1))
            if labels < coarser_labels and paths == coarser_paths:
                lines.append(
                    f"warning: [series.{name}] by = {list(columns)}: {finer!r} has {labels} groups and {coarser!r} "
                    f"{coarser_labels}, but the finest column comes first. Reverse the order"
                )
    return lines
