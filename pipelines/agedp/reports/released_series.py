"""The part of the public report on what was released: every series with its charts, tables and links. Public.

Decisions:

* One mean has a section for its days and one for its months; of several means each has one section. The coarsest level
  of a hierarchy is open, the finer ones are closed until their reader opens them.
* Tables of several groups are behind a summary: forty groups over three years have 1,500 rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from agedp.layer_noise import newest_sum_noise
from agedp.release_folder.consistent_table import CONSISTENT_FILE
from agedp.release_folder.period_averages import PERIOD_FILES
from agedp.release_folder.profile_months import PROFILE_MONTHS_FILE
from agedp.release_folder.profile_table import ProfileTerms, profile_table
from agedp.release_folder.quantile_table import QUANTILE_FILE
from agedp.reports.axes import format_number
from agedp.reports.coverage_series import coverage_parts
from agedp.reports.distributions import distribution_parts
from agedp.reports.html import PageSection, anchor_of, paragraph, part
from agedp.reports.mean_series import series_parts
from agedp.reports.month_profiles import month_profile_parts
from agedp.reports.monthly_bars import MOST_GROUPS, ShownPeriod, monthly_parts
from agedp.reports.period_rows import period_rows
from agedp.reports.profile_charts import MOST_DAYS, profile_parts
from agedp.reports.released_rows import month_rows
from agedp.reports.report_data import ReportData, period_names, period_releases, series_names, series_rows
from agedp.reports.signal_table import signal_parts
from agedp_data.datasets.registry import layout_of
from agedp_data.ledger import ReleaseRecord
from agedp_data.roster import columns_of
from agedp_data.series.layers import layer_number, layer_text, mean_name
from agedp_data.series.periods import Every
from agedp_data.series.profile import Profile
from agedp_data.series.series import series_in

_DERIVED = {
    CONSISTENT_FILE: "daily averages in which groups add up to their total",
    **{file: f"averages by {period}" for period, file in PERIOD_FILES.items()},
    PROFILE_MONTHS_FILE: "mean profiles of weekdays and weekends by month",
    QUANTILE_FILE: "quantiles of the households' daily use",
}
"""What the derived tables contain, by file."""


def released_sections(report: ReportData) -> Iterator[PageSection]:
    """Yield a section for each series: means with their months and layers, periods, profiles, coverage, counts."""
    yield from _mean_sections(report)
    means = [row for name in series_names(report, "mean") for row in series_rows(report, name, "mean")]
    if parts := [*signal_parts(means)]:
        yield PageSection("Signal against noise", "signal", parts)
    for name in period_names(report, "mean"):
        yield _section(report, name, "Means of longer periods", _period_parts(report, name))
    for name in _ordered(report, series_names(report, "profile")):
        yield _section(report, name, "Load profiles", _profile_parts(report, name))
    for name in period_names(report, "profile"):
        yield _section(report, name, "Load profiles of months", _month_profile_parts(report, name))
    counts = _ordered(report, series_names(report, "coverage"))
    for name in counts:
        rows, file = series_rows(report, name, "coverage"), _file(report, "coverage", name)
        label = name if len(counts) > 1 else ""
        shares = coverage_parts(name, rows, coverage=report.coverage, label=label, file=file)
        yield _section(report, name, "Coverage", shares)
    for name in _ordered(report, series_names(report, "distribution")):
        rows, file = series_rows(report, name, "distribution"), _file(report, "distribution", name)
        ranges = distribution_parts(name, rows, report.contracts, coverage=report.coverage, file=file)
        yield _section(report, name, "Households by use", ranges)
    derived = {file: report.files[key] for file in _DERIVED if (key := ("derived", file)) in report.files}
    if files := [(name, _DERIVED[file]) for file, name in derived.items()]:
        yield PageSection("Derived tables", "derived-tables", [part("file_list", files)], kind="get")


def _mean_sections(report: ReportData) -> Iterator[PageSection]:
    """Yield the sections of the daily means: of one mean days and months, of several means one section each."""
    names = _ordered(report, series_names(report, "mean"))
    for name in names:
        label = layer_label(report, name) or (name if len(names) > 1 else "")
        days = [*_since(report), *_day_parts(report, name, label)]
        months, layers = [*_month_parts(report, name, label)], [*_layer_parts(report, name)]
        if len(names) == 1:
            yield PageSection("Day by day", "day-by-day", [*days, *layers])
            if months:
                yield PageSection("Month by month", "month-by-month", months)
        else:
            yield _section(report, name, "Daily means", [*days, *months, *layers])


def _ordered(report: ReportData, names: Sequence[str]) -> list[str]:
    """Return names of series table by table, the coarse levels of a table first."""
    tables = [*dict.fromkeys(name.partition("/")[0] for name in names)]
    return sorted(names, key=lambda name: (tables.index(name.partition("/")[0]), _depth(report, name)))


def _depth(report: ReportData, name: str) -> int:
    """Return the number of group columns of a series."""
    all_terms = [terms["series"] for terms in report.contracts.values()]
    of_name = [series[key] for series in all_terms for key in (name, f"{name}/1") if key in series]
    return len(columns_of(of_name[-1].get("by"))) if of_name else 0


def _section(report: ReportData, name: str, content: str, parts: Iterable[str]) -> PageSection:
    """Return the section of a series; that of a finer level of a hierarchy is closed."""
    table, _, level = name.partition("/")
    siblings = {of for terms in report.contracts.values() for of in terms["series"] if of.startswith(f"{table}/")}
    coarsest = min((_depth(report, of) for of in siblings), default=0)
    is_finer = bool(level) and len(siblings) > 1 and _depth(report, name) > coarsest
    title = f"{content} by {level}: {table}" if level else f"{content}: {name}"
    return PageSection(title, anchor_of(title), [*parts], is_closed=is_finer)


def _since(report: ReportData) -> Iterator[str]:
    if report.since:
        text = f"The charts begin on {report.since}. The tables beside this page have the days before it as well."
        yield paragraph(text, "soft")


def _day_parts(report: ReportData, name: str, label: str) -> Iterator[str]:
    rows, file = series_rows(report, name, "mean"), _file(report, "mean", name)
    yield from series_parts(name, rows, coverage=report.coverage, label=label, file=file)


def _month_parts(report: ReportData, name: str, label: str) -> Iterator[str]:
    months, hidden = month_rows(report.months, name, most=MOST_GROUPS)
    file = _file(report, "month", "")
    yield from monthly_parts(name, months, coverage=report.coverage, label=label, file=file, hidden=hidden)


def _file(report: ReportData, statistic: str, name: str) -> str:
    """Return the Parquet file beside the page that has a series, "" without one; the levels of a series share one."""
    by_series = report.files
    return by_series.get((statistic, name), by_series.get((statistic, name.partition("/")[0]), ""))


def _period_parts(report: ReportData, name: str) -> Iterator[str]:
    """Yield the parts of a mean that was released by week, month or year."""
    by_every: dict[Every, list[ReleaseRecord]] = {}
    for row, terms in period_releases(report, name):
        by_every.setdefault(terms["every"], []).append(row)
    if not by_every:
        yield paragraph(f"{name}: no period is released yet.")
    file = _file(report, "periods", name)
    for every, rows in by_every.items():
        period, periods = ShownPeriod(every, is_drawn=True), period_rows(rows, every=every, coverage=report.coverage)
        yield from monthly_parts(name, periods, coverage=report.coverage, label=name, file=file, period=period)


def _profile_parts(report: ReportData, name: str) -> Iterator[str]:
    """Yield the parts of a series of profiles, of its newest days."""
    released = [row for row in series_rows(report, name, "profile") if row.state == "released"]
    newest = sorted(released, key=lambda row: row.day)[-MOST_DAYS:]
    rows = profile_table(newest, terms=_profile_terms(report, name), coverage=report.coverage)
    file = _file(report, "profile", name)
    yield from profile_parts(name, rows, coverage=report.coverage, label=name, file=file)
    if months := report.files.get(("derived", PROFILE_MONTHS_FILE)):
        yield part("downloads", months, "", "", "", "", "")


def _month_profile_parts(report: ReportData, name: str) -> Iterator[str]:
    """Yield the parts of a series of profiles that was released by month."""
    rows = [row for row, _ in period_releases(report, name)]
    file, terms = _file(report, "profile months", name), _profile_terms(report, name)
    yield from month_profile_parts(name, rows, terms=terms, coverage=report.coverage, file=file)


def _profile_terms(report: ReportData, name: str) -> dict[str, ProfileTerms]:
    layout = report.statement.contract.input
    of_input = layout_of(layout.dataset, layout.columns, layout.interval_minutes)
    return {
        key: ProfileTerms(profile, of_input, version)
        for version, (key, terms) in enumerate(report.contracts.items(), 1)
        if name in terms["series"] and isinstance(profile := series_in(terms["series"][name]), Profile)
    }


def layer_label(report: ReportData, name: str) -> str:
    """Return what layer 1 of a mean is called, "" for a mean without layers."""
    terms = report.statement.contract.series.get(f"{name}/1")
    return layer_text(f"{name}/1", terms.clamp_kwh) if terms and terms.clamp_kwh else ""


def sum_noise_text(report: ReportData, name: str) -> str:
    """Return the noise of the sum of a mean's layers on its newest day as text, "" without such a day."""
    newest = newest_sum_noise(report.rows, name)
    return f"{format_number(newest[1])}\u00a0kWh" if newest is not None and layer_label(report, name) else ""


def _layer_parts(report: ReportData, name: str) -> Iterator[str]:
    """Yield one sentence on the layers of a mean, if the newest contract has any."""
    layers: list[tuple[str, Mapping[str, Any]]] = [
        (series, terms)
        for series, terms in sorted(report.statement.contract.content()["series"].items())
        if mean_name(series) == name and layer_number(series)
    ]
    if layers:
        noise = sum_noise_text(report, name)
        of_sum = f" The sum of the layers has noise of {noise}, the root of their summed variances." if noise else ""
        ranges = "; ".join(f"{of} from {terms['above_kwh']} to {terms['clamp_kwh']} kWh" for of, terms in layers[1:])
        lowest = layers[0][1]["clamp_kwh"]
        yield paragraph(
            f"{name} is published in layers: the values above are of layer 1, in which a household's day counts at "
            f"most {lowest} kWh. The upper layers ({ranges}) are parts of the mean in a Parquet "
            f"file of their own, to be added to it.{of_sum}",
            "soft",
        )
