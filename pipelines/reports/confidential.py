"""TRUE MEANS and COUNTS, COVERAGE, QUALITY, DAYS, FORGETTING beside LEDGER -> the report for the house. Confidential.

    <confidential>/report.html    0600, written anew by every run that publishes

What the release says is set against what is true: utility, coverage, what the clamp does and to whom, what was set
aside, and whether the model's chain is true. It may name households, and is never to be handed over with a release.
Nothing that is published depends on it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from html import escape
from typing import Any

from agedp_data import tables
from agedp_data.ledger import Ledger, ReleaseRecord
from agedp_data.pictures.chart import Line, chart
from agedp_data.pictures.page import document, in_short, paragraph, section, table
from agedp_data.pictures.scales import Scale, days, linear, plain
from pipelines import folders
from pipelines.internal_files import FileNotice
from pipelines.notes.coverage import COVERAGE
from pipelines.notes.true_means import TRUE_MEANS
from pipelines.reports.at_the_clamp import ClampEffect, clamp_effects
from pipelines.reports.counted_states import state_parts
from pipelines.reports.households import clamp_parts, household_model_parts
from pipelines.reports.model_files import read_model_files
from pipelines.reports.series import cell_means, percent
from pipelines.reports.true_counts import count_parts
from pipelines.reports.utility import CellUtility, SeriesCell, Utility, pair_with_true_means, utility
from pipelines.work import Work

REPORT = "report.html"
_CONFIDENTIAL_NOTE = "Confidential: true means, counts and household ids. It stays in the house."
_ERROR_NOTE = (
    "Errors against noise: 1 says that the noise is all that separates what was said from what is true; much more or "
    "less over many days says that something is wrong. True means are after the clamp and the rule for missing days."
)


def write_confidential_report(work: Work, ledger: Ledger) -> tuple[FileNotice, ...]:
    """Write the report of everything that was released to the population, for whoever runs agedp.

    Returns:
        What the report lacks because a file is damaged.
    """
    rows = ledger.rows(work.population)
    released = sorted({date.fromisoformat(row.day) for row in rows if row.state == "released"})
    found = _cell_utilities(work, rows)
    results = {key: utility(own, age_days=work.run.promise.age_days or 0) for key, own in found.items()}
    lines = [line for line in COVERAGE.read(work.coverage) if line["population"] == work.population]
    clamped = clamp_effects(work, released)
    files = read_model_files(work)
    title = f"{work.run.output.title or work.population}: what was true"
    body = [
        f"<header><h1>{escape(title)}</h1>",
        paragraph(_CONFIDENTIAL_NOTE, "mark"),
        in_short([*_facts(work, results, lines, clamped, len(released))]),
        "</header><main>",
        section("Published against true", *_mean_parts(work, found, results), *count_parts(work, rows)),
        section("Coverage and clamp", *_coverage_parts(lines), *clamp_parts(clamped)),
        section("States in place of readings", *states) if (states := [*state_parts(work)]) else "",
        section("What was read and set aside", *_quality_parts(work)),
        *household_model_parts(work, files, rows),
        "</main>",
    ]
    folders.write(work.confidential / REPORT, document(title, body).encode())
    return files.notices


def _cell_utilities(work: Work, rows: Sequence[ReleaseRecord]) -> dict[SeriesCell, list[CellUtility]]:
    noted = [line for line in TRUE_MEANS.read(work.true_means) if line["population"] == work.population]
    means = {line["series"] for line in noted}
    by_series = {
        name: cell_means([row for row in rows if row.series == name], coverage=work.run.output.interval)
        for name in dict.fromkeys(row.series for row in rows)
        if name in means
    }
    return pair_with_true_means(noted, by_series)


def _facts(
    work: Work,
    results: Mapping[SeriesCell, Utility],
    lines: Sequence[Mapping[str, Any]],
    clamped: Sequence[ClampEffect],
    released: int,
) -> Iterator[tuple[str, str, str]]:
    noted = max((one.days for one in results.values()), default=0)
    yield "days released", f"{released:,}", f"true means of {noted:,} are noted"
    if results:
        key, first = next(iter(results.items()))
        yield "error of a day's mean", f"{plain(first.rms_kwh)}\u00a0kWh", f"root mean square, {', '.join(key)}"
        yield "errors against noise", plain(first.in_sd), "1: noise is all there is"
        wanted = percent(work.run.output.interval)
        yield "true means inside", f"{100 * first.inside:.1f}\u00a0%", f"of their intervals, {wanted} expected"
    if lines:
        homes, usable, above = (sum(line[name] for line in lines) for name in ("households", "usable", "clamped"))
        yield "coverage", f"{100 * usable / max(homes, 1):.1f}\u00a0%", "household-days with a usable day"
        yield "clamped", f"{100 * above / max(usable, 1):.2f}\u00a0%", "of usable household-days"
    if clamped:
        yield "the clamp cuts", f"{plain(clamped[0].cut_kwh)}\u00a0kWh", f"off a mean, {clamped[0].series}"


def _mean_parts(
    work: Work, found: Mapping[SeriesCell, Sequence[CellUtility]], results: Mapping[SeriesCell, Utility]
) -> Iterator[str]:
    if not found:
        if any(one.statistic == "mean" for one in work.run.series.values()):
            yield paragraph("No true mean is noted yet.")
        return
    yield paragraph(_ERROR_NOTE, "soft")
    for key, own in found.items():
        yield _true_chart(", ".join(key), own)
    age = work.run.promise.age_days or 0
    stale = [f"{age} d later"] if age else []
    columns = ("series, cell", "days", "error", "noise", "error / noise", "inside", "relative", "day to day", *stale)
    rows = [
        (
            ", ".join(key),
            f"{one.days:,}",
            plain(one.rms_kwh),
            plain(one.expected_kwh),
            plain(one.in_sd),
            f"{100 * one.inside:.1f} %",
            "–" if math.isnan(one.relative) else f"{plain(100 * one.relative)} %",
            _number_or_dash(one.change_kwh),
            *([_number_or_dash(one.stale_kwh)] if age else []),
        )
        for key, one in results.items()
    ]
    caption = (
        "Root mean squares, kWh a home: error and noise of a day's mean; how much the true mean changes from day to day"
        + (f", and within {age} days" if age else "")
        + ". Relative: the error that the noise alone leads one to expect, as a part of the true mean, on average"
    )
    yield table(caption, columns, rows)
    for key, own in found.items():
        yield _month_table(", ".join(key), own)


def _number_or_dash(value: float) -> str:
    return "–" if math.isnan(value) else plain(value)


def _day_axis(shown: Sequence[date]) -> tuple[Scale, list[float]]:
    """Return the axis from the first to the last day, and every place on it."""
    numbers = range(min(shown).toordinal(), max(shown).toordinal() + 1)
    return days(min(shown), max(shown)), [float(number) for number in numbers]


def _true_chart(of: str, own: Sequence[CellUtility]) -> str:
    place = {float(one.day.toordinal()): one for one in own}
    x, at = _day_axis([one.day for one in own])
    known = [place.get(number) for number in at]
    true = [one.true if one else math.nan for one in known]
    said = [one.said.mean if one else math.nan for one in known]
    low = [one.said.low if one else math.nan for one in known]
    high = [one.said.high if one else math.nan for one in known]
    lines = [
        Line("published, with the interval of its noise", at, said, band=(low, high), letter="P"),
        Line("true", at, true, letter="T", style=1),
    ]
    ends = [end for one in own for end in (one.said.low, one.said.high, one.true)]
    largest = max(own, key=lambda one: abs(one.error))
    about = (
        f"{len(own)} days; largest error {plain(largest.error)} kWh a home on {largest.day}, "
        f"true {plain(largest.true)}, published {plain(largest.said.mean)}."
    )
    return chart(f"Published and true mean by day: {of}", about, lines, x=x, y=linear(ends), y_title="kWh a home")


def _month_table(of: str, own: Sequence[CellUtility]) -> str:
    months: dict[str, list[CellUtility]] = {}
    for one in own:
        months.setdefault(f"{one.day:%Y-%m}", []).append(one)
    rows = []
    for month, there in months.items():
        result = utility(there, age_days=0)
        true, said = (sum(values) / len(there) for values in ((d.true for d in there), (d.said.mean for d in there)))
        inside = f"{100 * result.inside:.0f} %"
        rows.append((month, f"{len(there)}", plain(true), plain(said), plain(result.rms_kwh), inside))
    return table(f"By month, kWh a home: {of}", ("month", "days", "true mean", "published", "error", "inside"), rows)


def _coverage_parts(lines: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    if not lines:
        yield paragraph("No coverage is noted yet: it is for days that are released from now on.")
        return
    by_series: dict[str, dict[date, list[int]]] = {}
    for line in lines:
        counts = by_series.setdefault(line["series"], {}).setdefault(line["day"], [0, 0, 0])
        for i, name in enumerate(("households", "usable", "clamped")):
            counts[i] += line[name]
    for name, by_day in by_series.items():
        yield _coverage_chart(name, by_day)
        months: dict[str, list[list[int]]] = {}
        for day, counts in sorted(by_day.items()):
            months.setdefault(f"{day:%Y-%m}", []).append(counts)
        rows = [
            (
                month,
                f"{len(counts)}",
                f"{100 * min(one[1] / max(one[0], 1) for one in counts):.1f}",
                f"{100 * sum(one[1] for one in counts) / max(sum(one[0] for one in counts), 1):.1f}",
                f"{100 * sum(one[2] for one in counts) / max(sum(one[1] for one in counts), 1):.2f}",
            )
            for month, counts in months.items()
        ]
        columns = ("month", "days", "least usable %", "usable %", "clamped %")
        yield table(f"Households with a usable day, and of these above the clamp: {name}", columns, rows)


def _coverage_chart(name: str, by_day: Mapping[date, Sequence[int]]) -> str:
    x, at = _day_axis(list(by_day))
    place = {float(day.toordinal()): counts for day, counts in by_day.items()}
    usable = [100 * place[number][1] / max(place[number][0], 1) if number in place else math.nan for number in at]
    above = [100 * place[number][2] / max(place[number][1], 1) if number in place else math.nan for number in at]
    lines = [
        Line("households with a usable day", at, usable, letter="U"),
        Line("of these above the clamp", at, above, letter="C", style=1),
    ]
    known = [value for value in usable if not math.isnan(value)]
    about = f"Usable: from {min(known):.1f} to {max(known):.1f} per cent of the households on the roster."
    y = linear([0.0, 100.0])
    return chart(f"Coverage and clamp by day: {name}", about, lines, x=x, y=y, y_title="per cent", height=170)


def _quality_parts(work: Work) -> Iterator[str]:
    path = work.confidential / "quality.parquet"
    if not folders.there(path):
        yield paragraph("No file was read yet.")
        return
    lines = folders.read_table(path, tables.QUALITY).to_pylist()
    totals: dict[str, int] = {}
    for line in lines:
        totals[line["what"]] = totals.get(line["what"], 0) + line["rows"]
    read = totals.get("rows read", 0)
    rows = [(what, f"{number:,}", f"{100 * number / read:.3f} %" if read else "–") for what, number in totals.items()]
    files = len({line["input"] for line in lines})
    yield table(f"Rows of {files:,} input files, by what became of them", ("", "rows", "of those read"), rows)
    yield paragraph("File by file: quality.parquet. Rows set aside, as they stood: store/quarantine.", "soft")
