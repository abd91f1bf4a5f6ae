"""Head of the public report: what was released, and a summary of households, noise and epsilon."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from agedp_data import noise
from agedp_data.pictures.page import fact_list, paragraph
from agedp_data.pictures.scales import format_number
from agedp_data.statement_words import is_over
from pipelines.reports.figures import LabelledBound, rounded_up_text
from pipelines.reports.series import percent
from pipelines.reports.told import ReportData, household_counts, released_means, series_names

_EPSILON_NOTE = (
    "Epsilon says how much of one household can show: everything released changes the odds of any guess about it by a "
    "factor e^epsilon at most, 1.1 at epsilon .1, 2.7 at 1, 22,000 at 10. Small is private; a figure far above 10 "
    "promises little, and says so."
)
_ENDS = {"promise": "then the promise is used up", "period": "the last day of its period"}
_ENDED = {
    "promise": "the promise is used up",
    "period": "the last day of its period",
    "broken": "a newer model stops it",
}


def header_parts(report: ReportData, title: str, bounds: Sequence[LabelledBound]) -> Iterator[str]:
    """Yield the head of a page: title, notes, summary."""
    statement = report.statement
    days, published = statement["days"], statement["published"]
    yield f"<header><h1>{escape(title)}</h1>"
    yield from (f'<p class="mark">{escape(note)}</p>' for note in statement["notes"])
    if days["released"]:
        dates = _dates_text(published["first"], published["last"])
        yield paragraph(
            f"{_content_text(report)}, day by day, of the population {statement['population']}, released with noise "
            f"that protects each household. Published {dates}.",
            "soft",
        )
    else:
        yield paragraph(f"Nothing is released to the population {statement['population']} yet.")
    yield fact_list([*_facts(report, bounds)])
    yield paragraph(_EPSILON_NOTE, "soft")
    yield "</header>"


def _content_text(report: ReportData) -> str:
    means, counts = series_names(report, "mean"), series_names(report, "distribution")
    if not means:
        return "How many homes used how much electricity"
    return "Mean electricity use of a home" + (", and how many homes used how much" if counts else "")


def _dates_text(first: str, last: str) -> str:
    return f"on {first}" if first == last else f"from {first} to {last}"


def _facts(report: ReportData, bounds: Sequence[LabelledBound]) -> Iterator[tuple[str, str, str]]:
    days = report.statement["days"]
    skipped = f"; {len(days['skipped'])} skipped" if days["skipped"] else ""
    yield (
        "days released",
        f"{days['released']:,}",
        f"{days['first']} to {days['last']}{skipped}" if days["first"] else "",
    )
    counts = [*household_counts(report)]
    if counts:
        households = [number for number, _ in counts]
        yield (
            "homes counted",
            _range_text(households),
            "on the roster, by day" if min(households) < max(households) else "on the roster",
        )
    released = released_means(report)
    if released:
        newest = max(released, key=lambda row: (row.day, -row.seq))
        half_width = noise.interval(newest.scale, report.coverage) / (1000.0 * min(newest.households))
        scope = f", {newest.series}" if len(series_names(report, "mean")) > 1 else ""
        scope += ", smallest group" if len(newest.cells) > 1 else ""
        yield (
            "noise of a day's mean",
            f"±\u00a0{format_number(half_width)}\u00a0kWh",
            f"{percent(report.coverage)} of the time, newest day{scope}",
        )
    elif counts:
        newest = max((row for _, row in counts), key=lambda row: (row.day, -row.seq))
        half_width = noise.interval(newest.scale, report.coverage)
        yield (
            "noise of a count",
            f"±\u00a0{half_width:,}\u00a0homes",
            f"{percent(report.coverage)} of the time, newest day",
        )
    for bound in bounds:
        if bound.key.name in ("day", "total") and bound.is_unconditional:
            scope_text = "one day of a home" if bound.key.name == "day" else "all days of a home"
            yield scope_text, f"ε\u00a0{rounded_up_text(bound)}", f"odds {bound.factor}, {bound.condition}"

    ending = report.statement.get("ending", {})
    if ending.get("last_day"):
        has_ended = is_over(report.statement)
        reason = (_ENDED if has_ended else _ENDS).get(ending["because"], "")
        yield "ended with" if has_ended else "goes on until", ending["last_day"], reason


def _range_text(numbers: Sequence[int]) -> str:
    low, high = min(numbers), max(numbers)
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"
