"""The part of the public report on what was released: every series with its charts, tables and links. Public."""

from __future__ import annotations

from collections.abc import Iterator

from agedp.layer_noise import newest_sum_noise
from agedp.release_folder.consistent_table import CONSISTENT_FILE
from agedp.release_folder.period_averages import PERIOD_FILES
from agedp.release_folder.profile_months import PROFILE_MONTHS_FILE
from agedp.release_folder.profile_table import ProfileTerms, profile_table
from agedp.release_folder.quantile_table import QUANTILE_FILE
from agedp.reports.axes import format_number
from agedp.reports.coverage_series import coverage_parts
from agedp.reports.distributions import distribution_parts
from agedp.reports.html import paragraph, part
from agedp.reports.mean_series import series_parts
from agedp.reports.monthly_bars import MOST_GROUPS, monthly_parts
from agedp.reports.profile_charts import MOST_DAYS, profile_parts
from agedp.reports.released_rows import month_rows
from agedp.reports.report_data import ReportData, series_names, series_rows
from agedp.reports.signal_table import signal_parts
from agedp_data.datasets.registry import layout_of
from agedp_data.series.layers import layer_number, layer_text, mean_name
from agedp_data.series.profile import Profile
from agedp_data.series.series import series_in

_DERIVED = {
    CONSISTENT_FILE: "daily averages in which groups add up to their total",
    **{file: f"averages by {period}" for period, file in PERIOD_FILES.items()},
    PROFILE_MONTHS_FILE: "mean profiles of weekdays and weekends by month",
    QUANTILE_FILE: "quantiles of the households' daily use",
}
"""What the derived tables contain, by file."""


def released_parts(report: ReportData) -> Iterator[str]:
    """Yield the parts of every series: means with their months and layers, profiles, coverage, distributions."""
    names = series_names(report, "mean")
    if report.since:
        text = f"The charts begin on {report.since}. The tables beside this page have the days before it as well."
        yield paragraph(text)
    for name in names:
        rows = series_rows(report, name, "mean")
        label = layer_label(report, name) or (name if len(names) > 1 else "")
        file = _file(report, "mean", name)
        yield from series_parts(name, rows, coverage=report.coverage, label=label, file=file)
        months, hidden = month_rows(report.months, name, most=MOST_GROUPS)
        month_file = _file(report, "month", "")
        yield from monthly_parts(name, months, coverage=report.coverage, label=label, file=month_file, hidden=hidden)
        yield from _layer_parts(report, name)
    yield from signal_parts([row for name in names for row in series_rows(report, name, "mean")])
    yield from _profile_parts(report)
    counts = series_names(report, "coverage")
    for name in counts:
        label = name if len(counts) > 1 else ""
        rows, file = series_rows(report, name, "coverage"), _file(report, "coverage", name)
        yield from coverage_parts(name, rows, coverage=report.coverage, label=label, file=file)
    for name in series_names(report, "distribution"):
        rows, file = series_rows(report, name, "distribution"), _file(report, "distribution", name)
        yield from distribution_parts(name, rows, report.contracts, coverage=report.coverage, file=file)
    derived = {file: report.files[key] for file in _DERIVED if (key := ("derived", file)) in report.files}
    if files := [(name, _DERIVED[file]) for file, name in derived.items()]:
        yield part("file_list", files)


def _file(report: ReportData, statistic: str, name: str) -> str:
    """Return the Parquet file beside the page that has a series, "" without one; the levels of a series share one."""
    by_series = report.files
    return by_series.get((statistic, name), by_series.get((statistic, name.partition("/")[0]), ""))


def _profile_parts(report: ReportData) -> Iterator[str]:
    """Yield the parts of the series of profiles, of their newest days."""
    layout = report.statement.contract.input
    for name in series_names(report, "profile"):
        by_contract = {
            key: ProfileTerms(profile, layout_of(layout.dataset, layout.columns, layout.interval_minutes), version)
            for version, (key, terms) in enumerate(report.contracts.items(), 1)
            if name in terms["series"] and isinstance(profile := series_in(terms["series"][name]), Profile)
        }
        released = [row for row in series_rows(report, name, "profile") if row.state == "released"]
        newest = sorted(released, key=lambda row: row.day)[-MOST_DAYS:]
        rows = profile_table(newest, terms=by_contract, coverage=report.coverage)
        file = _file(report, "profile", name)
        yield from profile_parts(name, rows, coverage=report.coverage, label=name, file=file)
        if months := report.files.get(("derived", PROFILE_MONTHS_FILE)):
            yield part("downloads", months, "", "", "", "", "")


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
    layers = [
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
