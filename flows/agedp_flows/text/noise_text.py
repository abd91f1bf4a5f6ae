"""Sentences of `agedp plan` and `agedp run` on the noise of series that have no signal against noise.

A profile, coverage, or a mean of periods has one sentence: the noise of its smallest group against a public example
figure. It is a function of planned or released rows and the run file; nothing is decided by it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, Final

from agedp.ledger_session import LedgerSession
from agedp.planning.row_noise import ChangeYardstick, GroupNoise, smallest_group
from agedp.signal_against_noise import (
    SeriesSignal,
    SpanSignal,
    change_text,
    mean_names,
    planned_noise_text,
    read_mean_rows,
    signal_text,
    smallest_group_signal,
    three_digits,
)
from agedp_data.config import RunFile
from agedp_data.ledger import ReleaseRecord
from agedp_data.notions.age_dependent import ASSUMED, NO_MODEL
from agedp_data.notions.notion import ASSUMPTION_FREE, DAY_BOUND, RESULTS, TOTAL_BOUND
from agedp_data.roster import ALL, Roster, columns_of
from agedp_data.series.layered_mean import is_upper, series_text
from agedp_data.series.mean import is_daily_mean
from agedp_data.series.series import AnySeries, table_name
from agedp_data.series.series_terms import layer_number
from agedp_data.statement.document import StatedBound
from agedp_data.statement.note_texts import with_delta
from agedp_flows.text.number_text import format_bound

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


# --------------------------------------------------------------------------------------------------
# Signal against noise of the released means, as lines and as JSON, for `agedp plan` and `agedp run`.
#
# The estimate and its sentence are those of `agedp.signal_against_noise`, which both reports use as well.
# --------------------------------------------------------------------------------------------------


def released_signals(session: LedgerSession) -> list[SeriesSignal]:
    """Return the signal of the smallest group of each mean in the run file that has a released row."""
    means = [name for name, series in session.run.run_file.series.items() if is_daily_mean(series)]
    rows = [] if session.ledger is None else read_mean_rows(session.ledger, session.population)
    signals = (smallest_group_signal(rows, name) for name in mean_names(means))
    return [signal for signal in signals if signal is not None]


def signal_lines(session: LedgerSession) -> list[str]:
    """Return one sentence for each released mean: its noise, its change, and which spans can be told apart."""
    return [signal_text(signal) for signal in released_signals(session)]


def signal_json(session: LedgerSession) -> list[dict[str, Any]]:
    """Return the same as JSON: functions of released rows only."""
    return [
        {
            "series": signal.series,
            "group": signal.group,
            "households": signal.households,
            "spans": [_span_json(span) for span in signal.spans],
            "text": signal_text(signal),
        }
        for signal in released_signals(session)
    ]


def _span_json(span: SpanSignal) -> dict[str, Any]:
    estimate = span.estimate
    return {
        "days": span.days,
        "pairs": span.pairs,
        "noise_sd_kwh": span.noise_kwh,
        "change_kwh": None if estimate is None else estimate.change,
        "change_error_kwh": None if estimate is None else estimate.standard_error,
        "comparison": span.verdict or "unknown",
    }


def yardstick_json(change: ChangeYardstick) -> dict[str, Any]:
    """Return the change that planned noise is compared with; without a standard error it is assumed."""
    error = change.estimate.standard_error if change.estimate is not None and change.is_estimated else None
    return {
        "change_kwh": change.kwh,
        "change_error_kwh": error,
        "change_from": "published series" if change.is_estimated else "yardstick",
    }


def yardstick_text(change: ChangeYardstick) -> str:
    """Return the change that planned noise is compared with, and its source."""
    if change.estimate is None:
        return f"{three_digits(change.kwh)} kWh per household, assumed until the published series can show it"
    if change.is_estimated:
        return f"{change_text(change.estimate)}, estimated from the published series"
    return (
        f"{three_digits(change.kwh)} kWh per household, assumed: the published series shows "
        f"{change_text(change.estimate)}, which may be noise alone"
    )


# --------------------------------------------------------------------------------------------------
# A bound of a statement in the terminal's words: the stored texts of scope and assumption in the terms of the field.
#
# Ledgers and statements keep their stored texts, which are hashed. A text that is not listed here is shown as stored.
# --------------------------------------------------------------------------------------------------

_EARLIER_ASSUMPTIONS = {
    "each household forgets at least as fast as the model says, by a Markov chain, and on its own": ASSUMED["markov"],
    "each household forgets at least as fast as the model says, and on its own": ASSUMED["curve"],
}
_SCOPES = {
    "any one day of one household, released or not, by all days released so far": (
        "any one day of one household, released or not, from all days released so far"
    )
}
_LABELS = {
    (DAY_BOUND, "any one day of one household"): "Largest epsilon of any one day of one household",
    (TOTAL_BOUND, "all published days of one household"): (
        "Cumulative epsilon per household (sequential composition of all published days)"
    ),
}
_DISCOUNTED = re.compile(
    r"all published days of one household, a loss j (?P<ago>days of [a-z ]+) ago counted (?P<weight>.+?)"
    r"(?P<draws>, the calibration draws counted in full)?(?P<worst>, on the worst day)?"
)
_EXPONENTIAL, _HYPERBOLIC = re.compile(r"(.+)\^j"), re.compile(r"1/\(1 \+ (.+) j\)")


def labelled_bound(bound: StatedBound) -> str:
    """Return a bound of a statement as one line: its label and its value.

    >>> days = "all published days of one household"
    >>> labelled_bound(StatedBound(name="total", epsilon="182.5", about=days, kind="assumption-free", assumption=""))
    'Cumulative epsilon per household (sequential composition of all published days): 182.5'
    """
    at_delta = with_delta(bound.delta)
    label = _LABELS.get((bound.name, bound.scope)) or f"Epsilon{at_delta} of {scope_text(bound.scope)}"
    return f"{label}: {format_bound(bound.epsilon, limit=bound.limit)}{exception_text(bound.conditional_days)}"


def exception_text(envelope_days: str | None) -> str:
    """Return what bounds leave out beside a model that is published without noise, a part of their sentence.

    >>> exception_text("2012-01-01 to 2012-12-31")[:65]
    ', of the noisy releases alone; with the published model, estimate'
    """
    if not envelope_days:
        return ""
    return (
        f", of the noisy releases alone; with the published model, estimated without noise from the days "
        f"{envelope_days}, not about these days nor about days like them"
    )


def exception_once(lines: Sequence[str], envelope_days: str | None) -> list[str]:
    """Return lines with bounds in which the first alone explains the exception of `exception_text`.

    >>> text = exception_text("2012-01-01 to 2012-12-31")
    >>> exception_once([f"Day: 1{text}", f"Total: 3{text}"], "2012-01-01 to 2012-12-31")[1]
    'Total: 3, of the noisy releases alone'
    """
    text = exception_text(envelope_days)
    if not text:
        return list(lines)
    first = next((i for i, line in enumerate(lines) if text in line), 0)
    return [line if i <= first else line.replace(text, text.partition(";")[0]) for i, line in enumerate(lines)]


def scope_text(about: str) -> str:
    """Return the scope of a bound, a discounted sum with the name and rate of its discount.

    What a delta means is left out: the delta is named beside the epsilon.

    >>> scope_text("all published days of one household, a loss j days of publication ago counted 1/(1 + 2 j)")
    'discounted sum of all published days of one household, hyperbolic discounting with rate 2 per day of publication'
    """
    about = about.partition(RESULTS)[0]
    discounted = _DISCOUNTED.fullmatch(about)
    if discounted is None:
        return _SCOPES.get(about, about)
    unit = discounted["ago"].replace("days", "day", 1)
    scope = f"discounted sum of all published days of one household, {_discount_text(discounted['weight'])} per {unit}"
    scope += discounted["draws"] or ""
    return f"{scope}; maximum over days" if discounted["worst"] else scope


def _discount_text(weight: str) -> str:
    if exponential := _EXPONENTIAL.fullmatch(weight):
        return f"exponential discounting with rate {exponential[1]}"
    if hyperbolic := _HYPERBOLIC.fullmatch(weight):
        return f"hyperbolic discounting with rate {hyperbolic[1]}"
    return f"weight {weight} of a loss j days old"


def assumption_text(assumption: str) -> str:
    """Return the assumption of a conditional bound as a sentence, "" without one.

    >>> assumption_text("each household forgets at least as fast as the model says, and on its own (method tight)")
    'Assumption: each household is independent of the others and mixes at least as fast as the model (method tight).'
    """
    if not assumption:
        return ""
    if assumption == NO_MODEL:
        return "The bound needs a model, and the run file has none."
    stored, method, rest = assumption.partition(" (method")
    return f"Assumption: {_EARLIER_ASSUMPTIONS.get(stored, stored)}{method}{rest}."


def condition_text(kind: str, assumption: str, envelope_days: str = "") -> str:
    """Return whether a bound is free of assumptions, or its assumption, and what model without noise it leaves out."""
    text = "Assumption-free." if kind == ASSUMPTION_FREE else assumption_text(assumption)
    return f"{text.removesuffix('.')}{exception_text(envelope_days)}." if text else ""
