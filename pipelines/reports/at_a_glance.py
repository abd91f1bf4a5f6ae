"""The head of a page: what was released, and the few figures that are to be seen at a glance."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from agedp_data import noise
from agedp_data.pictures.page import in_short, paragraph
from agedp_data.pictures.scales import plain
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


def header_parts(told: ReportData, title: str, figures: Sequence[LabelledBound]) -> Iterator[str]:
    """Yield the head: title, remarks, facts."""
    claim = told.claim
    days, published = claim["days"], claim["published"]
    yield f"<header><h1>{escape(title)}</h1>"
    yield from (f'<p class="mark">{escape(note)}</p>' for note in claim["notes"])
    if days["released"]:
        when = _dates_text(published["first"], published["last"])
        yield paragraph(
            f"{_content_text(told)}, day by day, of the population {claim['population']}, released with noise that protects "
            f"each household. Published {when}.",
            "soft",
        )
    else:
        yield paragraph(f"Nothing is released to the population {claim['population']} yet.")
    yield in_short([*_facts(told, figures)])
    yield paragraph(_EPSILON_NOTE, "soft")
    yield "</header>"


def _content_text(told: ReportData) -> str:
    means, counts = series_names(told, "mean"), series_names(told, "distribution")
    if not means:
        return "How many homes used how much electricity"
    return "Mean electricity use of a home" + (", and how many homes used how much" if counts else "")


def _dates_text(first: str, last: str) -> str:
    return f"on {first}" if first == last else f"from {first} to {last}"


def _facts(told: ReportData, figures: Sequence[LabelledBound]) -> Iterator[tuple[str, str, str]]:
    days = told.claim["days"]
    skipped = f"; {len(days['skipped'])} skipped" if days["skipped"] else ""
    yield (
        "days released",
        f"{days['released']:,}",
        f"{days['first']} to {days['last']}{skipped}" if days["first"] else "",
    )
    counted = [*household_counts(told)]
    if counted:
        homes = [number for number, _ in counted]
        yield (
            "homes counted",
            _range_text(homes),
            "on the roster, by day" if min(homes) < max(homes) else "on the roster",
        )
    released = released_means(told)
    if released:
        newest = max(released, key=lambda row: (row.day, -row.seq))
        wide = noise.interval(newest.scale, told.coverage) / (1000.0 * min(newest.households))
        of = f", {newest.series}" if len(series_names(told, "mean")) > 1 else ""
        of += ", smallest group" if len(newest.cells) > 1 else ""
        yield (
            "noise of a day's mean",
            f"±\u00a0{plain(wide)}\u00a0kWh",
            f"{percent(told.coverage)} of the time, newest day{of}",
        )
    elif counted:
        newest = max((row for _, row in counted), key=lambda row: (row.day, -row.seq))
        wide = noise.interval(newest.scale, told.coverage)
        yield "noise of a count", f"±\u00a0{wide:,}\u00a0homes", f"{percent(told.coverage)} of the time, newest day"
    for one in figures:
        if one.key.name in ("day", "total") and one.always:
            what = "one day of a home" if one.key.name == "day" else "all days of a home"
            yield what, f"ε\u00a0{rounded_up_text(one)}", f"odds {one.factor}, {one.holds}"

    ending = told.claim.get("ending", {})
    if ending.get("last_day"):
        over = is_over(told.claim)
        because = (_ENDED if over else _ENDS).get(ending["because"], "")
        yield "ended with" if over else "goes on until", ending["last_day"], because


def _range_text(numbers: Sequence[int]) -> str:
    low, high = min(numbers), max(numbers)
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"
