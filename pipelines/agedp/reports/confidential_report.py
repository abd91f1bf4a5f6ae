"""TRUE MEANS and COUNTS, COVERAGE, QUALITY, readings, goodness of fit + LEDGER -> the confidential report.

    <confidential>/report.html    0600, rewritten by every run that finds something new

It compares published with true values: utility, coverage, effect of the clamp, rejected rows, goodness of fit of the
model. It may contain household ids, and is never handed over with a release. Nothing that is published depends on it.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from agedp.internal_records.cell_tables import COVERAGE, TRUE_MEANS
from agedp.local_files import atomic_files
from agedp.local_files.internal_files import FileNotice
from agedp.reports.axes import Scale, by_month, date_axis, format_number, format_percent, linear_axis
from agedp.reports.chart_layers import Hover
from agedp.reports.clamped_households import ClampEffect, clamp_effects, clamp_parts
from agedp.reports.constants import constant_value
from agedp.reports.household_details import household_model_parts
from agedp.reports.hover import day_text
from agedp.reports.html import PageSection, anchor_of, closed, paragraph, render_page, side_by_side, table
from agedp.reports.mean_series import cell_means, percent
from agedp.reports.report_data import InternalSources, read_model_files
from agedp.reports.signal_table import signal_parts
from agedp.reports.svg import Line, chart
from agedp.reports.true_counts import count_parts
from agedp.reports.utility import (
    CellUtility,
    SeriesCell,
    Utility,
    pair_with_true_means,
    state_parts,
    utility,
)
from agedp_data import table_schemas
from agedp_data.ledger import ReleaseRecord
from agedp_data.series.layered_mean import is_upper

REPORT = "report.html"
_KWH = "kWh per household"
_COUNTED = ("households", "usable", "clamped")
_MOST_WIDE = 3
"""Charts and tables that stand below one another."""
_ERROR_NOTE = (
    "Error / noise: 1 if the noise is the only difference between published and true mean; a ratio far from 1 over "
    "many days indicates a fault. True means are after the clamp and the rule for missing days."
)

_LAYERS_NOTE = (
    "NAME/2 and higher are layers of the clamp of NAME: parts of its mean, to be added to NAME/1. The energy that the "
    "clamps cut from layer 1 and from the sum is listed under the clamp."
)
_STATES_NOTE = (
    "Where states are counted, a published mean has this error in addition to its noise, and no published interval "
    "covers it. Both means are after the clamp and the rule for missing days."
)
_SYNTHETIC_NOTE = "The households are synthetic: true values are theirs, and no reading was read."


def write_confidential_report(sources: InternalSources, rows: Sequence[ReleaseRecord]) -> tuple[FileNotice, ...]:
    """Write the confidential report on all releases of the population, for those who run agedp.

    Returns:
        Notices of the parts that are missing because a file is damaged.
    """
    released = sorted({date.fromisoformat(row.day) for row in rows if row.state == "released"})
    utilities = _cell_utilities(sources, rows)
    results = {
        key: utility(cell_days, age_days=sources.run.promise.age_days or 0) for key, cell_days in utilities.items()
    }
    means = {series for series, _ in utilities}
    mean_rows = [row for row in rows if row.series in means]
    coverage_rows = _coverage_by_day(sources)
    clamp_effects_by_series = clamp_effects(sources, released)
    files = read_model_files(sources)
    states = [*state_parts(sources)]
    parts_by_title = {
        "Published and true values": [
            *_mean_parts(sources, utilities, results),
            *signal_parts(mean_rows),
            *count_parts(sources, rows),
        ],
        "Coverage and clamp": [*_coverage_parts(coverage_rows), *clamp_parts(clamp_effects_by_series)],
        "States instead of readings": [*states, paragraph(_STATES_NOTE, "soft")] if states else [],
        "Kept and rejected rows": [*_quality_parts(sources)],
        "The model": [*household_model_parts(sources, files, rows)],
    }
    page = render_page(
        "confidential_report.html",
        title=f"{sources.run.output.title or sources.population}: published and true values",
        note="" if sources.run.schedule.reads_input else _SYNTHETIC_NOTE,
        facts=[*_facts(sources, results, coverage_rows, clamp_effects_by_series, len(released))],
        sections=[PageSection(title, anchor_of(title), parts) for title, parts in parts_by_title.items() if parts],
    )
    atomic_files.write(sources.paths.folder / REPORT, page.encode())
    return files.notices


def _cell_utilities(sources: InternalSources, rows: Sequence[ReleaseRecord]) -> dict[SeriesCell, list[CellUtility]]:
    path, columns = sources.paths.true_means, ("population", "day", "series", "cell", "true_mean_kwh")
    true_means = TRUE_MEANS.population_table(path, sources.population, columns=columns)
    means = set(pc.unique(true_means["series"]).to_pylist())
    by_series = {
        name: cell_means([row for row in rows if row.series == name], coverage=sources.run.output.interval)
        for name in dict.fromkeys(row.series for row in rows)
        if name in means
    }
    cells = sorted({cell for cells in by_series.values() for cell in cells})  # the largest ones
    shown = true_means.filter(pc.is_in(true_means["cell"], pa.array(cells, pa.string())))
    return pair_with_true_means(shown.to_pylist(), by_series)


def _coverage_by_day(sources: InternalSources) -> list[dict[str, Any]]:
    """Return household-days, usable and clamped ones of each series and day, over its groups."""
    table = COVERAGE.population_table(sources.paths.coverage, sources.population)
    sums = table.group_by(["series", "day"], use_threads=False).aggregate([(name, "sum") for name in _COUNTED])
    rows: list[dict[str, Any]] = sums.rename_columns({f"{name}_sum": name for name in _COUNTED}).to_pylist()
    return rows


def _facts(
    sources: InternalSources,
    results: Mapping[SeriesCell, Utility],
    coverage_rows: Sequence[Mapping[str, Any]],
    effects: Sequence[ClampEffect],
    released: int,
) -> Iterator[tuple[str, str, str]]:
    recorded_days = max((result.days for result in results.values()), default=0)
    yield "days released", f"{released:,}", f"true means of {recorded_days:,} are recorded"
    if results:
        key, first = next(iter(results.items()))
        yield "error of a day's mean", f"{format_number(first.rms_kwh)}\u00a0kWh", f"root mean square, {', '.join(key)}"
        yield "error / noise", format_number(first.in_sd), "1: the noise is the only error"
        expected = percent(sources.run.output.interval)
        yield "true means inside", format_percent(first.inside), f"the noise interval; {expected} expected"
    if coverage_rows:
        series = coverage_rows[-1]["series"]  # each household-day once: other series and levels count the same ones
        households, usable, clamped_days = (
            sum(row[name] for row in coverage_rows if row["series"] == series)
            for name in ("households", "usable", "clamped")
        )
        yield "coverage", format_percent(usable / max(households, 1)), f"usable household-days, {series}"
        yield "clamped", format_percent(clamped_days / max(usable, 1)), f"of the usable household-days, {series}"
    if effects:
        cut_text = f"{format_number(effects[0].cut_kwh)}\u00a0kWh"
        yield "clamped energy", cut_text, f"per household and day, {effects[0].series}"


def _mean_parts(
    sources: InternalSources,
    utilities: Mapping[SeriesCell, Sequence[CellUtility]],
    results: Mapping[SeriesCell, Utility],
) -> Iterator[str]:
    if not utilities:
        if any(result.true_values == "means" for result in sources.run.series.values()):
            yield paragraph("No true mean is recorded yet.")
        return
    yield paragraph(_ERROR_NOTE, "soft")
    if any(is_upper(series) for series, _ in utilities):
        yield paragraph(_LAYERS_NOTE, "soft")
    charts = [_true_chart(", ".join(key), cell_days) for key, cell_days in utilities.items()]
    yield from charts if len(charts) <= _MOST_WIDE else [side_by_side(charts)]
    age_days = sources.run.promise.age_days or 0
    stale_column = [f"{age_days} d later"] if age_days else []
    columns = ["series, cell", "days", "error", "noise", "error / noise", "inside", "relative", "day to day"]
    columns += stale_column
    rows = [
        (
            ", ".join(key),
            f"{result.days:,}",
            *map(format_number, (result.rms_kwh, result.expected_kwh, result.in_sd)),
            format_percent(result.inside),
            "–" if math.isnan(result.relative) else format_percent(result.relative),
            *map(_number_or_dash, (result.change_kwh, result.stale_kwh)[: 1 + len(stale_column)]),
        )
        for key, result in results.items()
    ]
    caption = (
        "Root mean squares, kWh per household: error and noise of a day's mean; change of the true mean from day to day"
        + (f", and within {age_days} day{'s' * (age_days != 1)}" if age_days else "")
        + ". Relative: expected error from the noise alone, as a share of the true mean, averaged over the days"
    )
    yield table(caption, columns, rows)
    tables = [_month_table(", ".join(key), cell_days) for key, cell_days in utilities.items()]
    yield from tables if len(tables) <= _MOST_WIDE else [closed("Each series and group by month", tables)]


def _number_or_dash(value: float) -> str:
    return "–" if math.isnan(value) else format_number(value)


def _day_axis(shown_days: Sequence[date]) -> tuple[Scale, list[float]]:
    """Return the axis from the first to the last day, and the position of each day on it."""
    numbers = range(min(shown_days).toordinal(), max(shown_days).toordinal() + 1)
    return date_axis(min(shown_days), max(shown_days)), [float(number) for number in numbers]


def _true_chart(name: str, cell_days: Sequence[CellUtility]) -> str:
    by_number = {float(cell_day.day.toordinal()): cell_day for cell_day in cell_days}
    x, positions = _day_axis([cell_day.day for cell_day in cell_days])
    values = [
        (cell_day.true, cell_day.published.mean, cell_day.published.low, cell_day.published.high)
        if (cell_day := by_number.get(number))
        else (math.nan,) * 4
        for number in positions
    ]
    true, published_means, low, high = map(list, zip(*values, strict=True))
    lines = [
        Line("published, with the interval of its noise", positions, published_means, band=(low, high), letter="P"),
        Line("true", positions, true, letter="T", style=1),
    ]
    worst = max(cell_days, key=lambda cell_day: abs(cell_day.error))
    description = (
        f"{len(cell_days)} days; largest error {format_number(worst.error)} kWh per household on {worst.day}, "
        f"true {format_number(worst.true)}, published {format_number(worst.published.mean)}."
    )
    y = linear_axis([*low, *high, *true])
    title = f"Published and true mean by day: {name}"
    hover = Hover(day_text, _KWH)
    return chart(title, description, [*lines, hover], x=x, y=y, y_title=_KWH)


def _month_table(name: str, cell_days: Sequence[CellUtility]) -> str:
    rows = []
    for month, month_days in by_month(cell_days, lambda cell_day: cell_day.day).items():
        result = utility(month_days, age_days=0)
        pairs = [(cell_day.true, cell_day.published.mean) for cell_day in month_days]
        means = (sum(values) / len(month_days) for values in zip(*pairs, strict=True))
        numbers = map(format_number, (*means, result.rms_kwh))
        rows.append((month, f"{len(month_days)}", *numbers, format_percent(result.inside)))
    columns = ("month", "days", "true mean", "published", "error", "inside")
    return table(f"By month, kWh per household: {name}", columns, rows)


def _coverage_parts(coverage_rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    if not coverage_rows:
        yield paragraph("No coverage is recorded yet; it is recorded for days that are released from now on.")
        return
    by_series: dict[str, dict[date, list[int]]] = {}
    for row in coverage_rows:
        counts = by_series.setdefault(row["series"], {}).setdefault(row["day"], [0, 0, 0])
        for i, name in enumerate(("households", "usable", "clamped")):
            counts[i] += row[name]
    for name, by_day in by_series.items():
        yield _coverage_chart(name, by_day)
        months = by_month(sorted(by_day), lambda day: day)
        rows = [_coverage_row(month, [by_day[day] for day in month_days]) for month, month_days in months.items()]
        columns = ("month", "rows", "lowest usable", "usable", "clamped")
        yield table(f"Household-days that are usable, and of these above the clamp: {name}", columns, rows)


def _coverage_row(month: str, day_counts: Sequence[Sequence[int]]) -> tuple[str, ...]:
    """Return a month's shares of usable and clamped household-days; per day: households, usable, clamped."""
    households, usable, clamped = (sum(counts[i] for counts in day_counts) for i in range(3))
    return (
        month,
        f"{len(day_counts)}",
        *map(
            format_percent,
            (
                min(counts[1] / max(counts[0], 1) for counts in day_counts),
                usable / max(households, 1),
                clamped / max(usable, 1),
            ),
        ),
    )


def _coverage_chart(name: str, by_day: Mapping[date, Sequence[int]]) -> str:
    x, positions = _day_axis(list(by_day))
    by_number = {float(day.toordinal()): counts for day, counts in by_day.items()}
    usable, clamped = (
        [
            100 * by_number[number][i] / max(by_number[number][i - 1], 1) if number in by_number else math.nan
            for number in positions
        ]
        for i in (1, 2)
    )
    lines = [
        Line("households with a usable day", positions, usable, letter="U"),
        Line("of these above the clamp", positions, clamped, letter="C", style=1),
    ]
    values_shown = [value for value in usable if not math.isnan(value)]
    description = (
        f"Usable: from {format_number(min(values_shown))} to {format_number(max(values_shown))} per cent of the "
        "household-days on the roster."
    )
    shares = [constant_value(value for value in line.values if not math.isnan(value)) for line in lines]
    if None not in shares:
        of_rows = "The only row has" if len(values_shown) == 1 else f"Each of the {len(values_shown):,} rows has"
        usable_text, clamped_text = (format_number(share or 0.0) for share in shares)
        return paragraph(
            f"{name}: {of_rows} {usable_text} % usable household-days, and {clamped_text} % of these are above the "
            "clamp."
        )
    y, hover = linear_axis([0.0, 100.0]), Hover(day_text, "%")
    title = f"Coverage and clamp by day: {name}"
    return chart(title, description, [*lines, hover], x=x, y=y, y_title="per cent", height=170)


def _quality_parts(sources: InternalSources) -> Iterator[str]:
    path = sources.paths.quality
    if not sources.run.schedule.reads_input:
        yield paragraph("A rehearsal on synthetic households reads no file.")
        return
    if not atomic_files.path_exists(path):
        yield paragraph("No file has been read yet.")
        return
    quality_rows = atomic_files.read_table(path, table_schemas.QUALITY).to_pylist()
    totals: Counter[str] = Counter()
    for quality_row in quality_rows:
        totals[quality_row["what"]] += quality_row["rows"]
    rows_read = totals.get("rows read", 0)
    rows = [
        (outcome, f"{number:,}", format_percent(number / rows_read) if rows_read else "–")
        for outcome, number in totals.items()
    ]
    files = len({quality_row["input"] for quality_row in quality_rows})
    yield table(
        f"Rows of {files:,} input files, kept and rejected by reason", ("outcome", "rows", "share of rows read"), rows
    )
    yield paragraph("By file: quality.parquet. Rejected rows, unchanged: store/quarantine.", "soft")
