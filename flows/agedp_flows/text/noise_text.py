"""Sentences of `agedp plan` and `agedp run` on the noise of series that have no signal against noise.

A profile, coverage, or a mean of periods has one sentence: the noise of its smallest group against a public example
figure. It is a function of planned or released rows and the run file; nothing is decided by it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Final

from agedp.planning.row_noise import GroupNoise, smallest_group
from agedp.signal_against_noise import planned_noise_text, three_digits
from agedp_data.config import RunFile
from agedp_data.ledger import ReleaseRecord
from agedp_data.roster import ALL, Roster, columns_of
from agedp_data.series.layered_mean import is_upper, series_text
from agedp_data.series.mean import is_daily_mean
from agedp_data.series.series import AnySeries
from agedp_data.series.series_tables import table_name
from agedp_data.series.series_terms import layer_number

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
    return [f"{_label(name, series[name], of)}: {planned_noise_text(noise)}"]


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
    return [line for name in run.series if name in newest for line in _sentences(name, newest[name], run)]


def _sentences(name: str, row: ReleaseRecord, run: RunFile) -> Iterator[str]:
    series = run.series[name]
    noises = smallest_group(row, series)
    if not noises or not noises[0].households:
        return
    label = f"{_label(name, series, noises[0])}: noise"
    noise = max(of.noise_sd for of in noises)
    if series.reads_half_hours:
        yield f"{label} {_profile_text(noises, run.input.interval_minutes)}"
    elif series.unit == "households" and series.has_one_cell():
        share = noise / noises[0].households
        hidden = f" The {series.counted_share} cannot be told from noise." if share >= 1 else ""
        yield f"{label} {three_digits(noise)} households, {share:,.1%} of them.{hidden}"
    elif series.covers_periods:
        share = noise / _TYPICAL_DAY_KWH
        of_period = f"kWh per household and day of a {series.period}"
        yield f"{label} {three_digits(noise)} {of_period}, {share:,.1%} of a day of {_TYPICAL_DAY_KWH:g} kWh."


def _profile_text(noises: Sequence[GroupNoise], minutes: int) -> str:
    """Return the noise of a half-hour, or hour, against one of usual use.

    >>> _profile_text([GroupNoise("all", 75, 0.6)], 30)
    '0.6 kWh in each half-hour, 200.0% of a half-hour of 0.3 kWh. Single half-hours cannot be told from noise.'
    """
    length = max(minutes, _HALF_HOUR)
    unit, use_kwh = ("half-hour" if length == _HALF_HOUR else "hour"), _TYPICAL_HALF_HOUR_KWH * length / _HALF_HOUR
    texts = [f"{three_digits(of.noise_sd)} kWh in each {unit}{_of_kind(of)}" for of in noises]
    noise = max(of.noise_sd for of in noises)
    hidden = f" Single {unit}s cannot be told from noise." if noise > use_kwh else ""
    return (
        f"{' and '.join(texts)}, {noise / use_kwh:,.1%} of a{'n' * (unit == 'hour')} {unit} of {use_kwh:g} kWh.{hidden}"
    )


def _of_kind(of: GroupNoise) -> str:
    return f" of {of.day_kind}s" if of.day_kind else ""


def _label(name: str, series: AnySeries, of: GroupNoise) -> str:
    text = series_text(name, series) if layer_number(name) else name
    if series.by is None and of.group == ALL:
        return text
    return f"{text}, smallest group {of.group} of {series.level} ({of.households:,} households)"


def level_lines(run: RunFile, roster: Roster) -> list[str]:
    """Return a warning for each list of columns in `by` that seems to be in reversed order.

    A finer column divides the groups of the next one. If it divides none of them and has fewer labels, it is coarser.
    """
    by_table = {table_name(name): columns_of(series.by) for name, series in reversed(run.series.items())}
    return [line for name, columns in reversed(by_table.items()) for line in _reversed_lines(name, columns, roster)]


def _reversed_lines(name: str, columns: Sequence[str], roster: Roster) -> Iterator[str]:
    for i, (finer, coarser) in enumerate(pairwise(columns)):
        labels, coarser_labels = len({*roster.counts.groups[finer]}), len({*roster.counts.groups[coarser]})
        paths, coarser_paths = (
            len({*zip(*map(roster.counts.groups.get, columns[j:]), strict=True)}) for j in (i, i + 1)
        )
        if labels < coarser_labels and paths == coarser_paths:
            yield (
                f"warning: [series.{name}] by = {list(columns)}: {finer!r} has {labels} groups and {coarser!r} "
                f"{coarser_labels}, but the finest column comes first. Reverse the order"
            )
