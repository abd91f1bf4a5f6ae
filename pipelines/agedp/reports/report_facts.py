"""Key facts of the public report: what was released, and the loss of a day and of all days. Public.

A fact is a label, a value and a remark: ("loss of all days", "ε 182", "odds change by at most a factor of 80 digits").
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from agedp.reports.axes import with_powers
from agedp.reports.mean_series import percent
from agedp.reports.privacy_loss import LabelledBound
from agedp.reports.released_series import layer_label, sum_noise_text
from agedp.reports.report_data import ReportData, household_counts, released_means, series_names
from agedp_data import mechanisms
from agedp_data.series.series_terms import mean_name
from agedp_data.statement.delta_texts import with_delta
from agedp_data.statement.odds import short_number

Fact = tuple[str, str, str]
_ENDS = {"promise": "then the budget is used up", "period": "the last day of its period"}
_ENDED = {
    "promise": "the budget is used up",
    "period": "the last day of its period",
    "broken": "a newer model stops it",
}


def release_facts(report: ReportData) -> Iterator[Fact]:
    """Yield days, households and noise of a release, and until when it goes on."""
    days = report.statement.days
    skipped = f"; {len(days.skipped):,} skipped" if days.skipped else ""
    yield "days released", f"{days.released:,}", f"{days.first} to {days.last}{skipped}" if days.first else ""
    counts = [*household_counts(report)]
    if counts:
        households = [number for number, _ in counts]
        changes = min(households) < max(households)
        yield "households counted", _range_text(households), "on the roster, by day" if changes else "on the roster"
    yield from _noise_facts(report)
    ending = report.statement.ending
    if ending is not None and ending.last_day:
        has_ended = report.statement.is_over
        reason = (_ENDED if has_ended else _ENDS).get(ending.reason, "")
        yield "ended with" if has_ended else "goes on until", ending.last_day, reason


def _noise_facts(report: ReportData) -> Iterator[Fact]:
    released = released_means(report)
    counts = [row for _, row in household_counts(report)]
    if released:
        newest = max(released, key=lambda row: (row.day, -row.seq))
        half_width = mechanisms.interval(newest.scale, report.coverage) / (1000.0 * min(newest.households))
        scope = f", {newest.series}" if len(series_names(report, "mean")) > 1 else ""
        scope += ", smallest group" if len(newest.cells) > 1 else ""
        layer = layer_label(report, mean_name(newest.series))
        yield (
            f"noise of {layer}" if layer else "noise of a day's mean",
            f"±\u00a0{short_number(format(half_width, '.9f'))}\u00a0kWh",
            f"{percent(report.coverage)} of the time, newest day{scope}",
        )
        if noise := sum_noise_text(report, mean_name(newest.series)):
            yield "noise of a day's sum of layers", noise, f"standard deviation, newest day{scope}"
    elif counts:
        newest = max(counts, key=lambda row: (row.day, -row.seq))
        half_width = mechanisms.interval(newest.scale, report.coverage)
        yield (
            "noise of a count",
            f"±\u00a0{half_width:,}\u00a0households",
            f"{percent(report.coverage)} of the time, newest day",
        )


def loss_facts(report: ReportData, bounds: Sequence[LabelledBound]) -> Iterator[Fact]:
    """Yield the assumption-free loss of a day and of all days, and the bounds with a delta that are promised."""
    for bound in bounds:
        if bound.key.name in ("day", "total") and bound.is_unconditional:
            day = "loss of one published day" if report.statement.draws else "loss of one day"
            scope = day if bound.key.name == "day" else "loss of all days"
            odds = f"odds change by at most {bound.factor}, " if bound.factor else ""
            yield scope, f"ε\u00a0{bound.short}", f"{odds}{bound.condition}"
        if bound.delta is not None and bound.limit not in ("", "unlimited"):
            span = "all days" if bound.key.name.startswith("total") else bound.key.name.partition(" (")[0]
            epsilon = f"ε\u00a0{bound.short}{with_powers(with_delta(bound.delta))}"
            limit = f"promised: at most {bound.limit}, {bound.condition}"
            yield f"loss of {span}, as promised", epsilon, limit


def _range_text(numbers: Sequence[int]) -> str:
    low, high = min(numbers), max(numbers)
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"
