"""The part of the public report on what was released: every series with its charts, tables and links. Public.

Decisions:

* One mean has a section for its days and one for its months; of several means each has one section. The coarsest level
  of a hierarchy is open, the finer ones are closed until their reader opens them.
* Tables of several groups are behind a summary: forty groups over three years have 1,500 rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from agedp import signal_against_noise
from agedp.release_folder.result_tables import released_table
from agedp.reports import report_data, series_charts
from agedp.reports.html import TEXTS, PageSection, anchor_of, closed, paragraph, part, table
from agedp.reports.profile_charts import MOST_DAYS, month_profile_parts, profile_parts
from agedp.reports.report_data import ReportData
from agedp.reports.svg import format_number
from agedp.signal_against_noise import newest_sum_noise
from agedp_data.ledger import ReleaseRecord
from agedp_data.series.coverage import COVERAGES
from agedp_data.series.distribution import DISTRIBUTIONS
from agedp_data.series.layered_mean import layer_text
from agedp_data.series.mean import AVERAGES, AVERAGES_BY, LAYERS, PERIOD_RELEASES, Mean
from agedp_data.series.profile import PROFILE_BY_MONTH, PROFILE_RELEASES, PROFILES
from agedp_data.series.result_table import ContractTerms, DerivedTable, Noise, ResultTable, Terms
from agedp_data.series.series import DERIVED_TABLES, RESULT_TABLES
from agedp_data.series.series_terms import Every, layer_number, mean_name
from agedp_data.smoothing.signal_estimate import Verdict

_TEXTS = TEXTS["released_series"]

# --------------------------------------------------------------------------------------------------
# Report of a released mean's signal against its noise: the sentence of `plan` and `run`, and a table by time span.
#
# Both reports contain it. It is a function of the released rows, so it is public in both.
# --------------------------------------------------------------------------------------------------

_ANSWERS: Final[Mapping[Verdict | None, str]] = {
    "visible": "yes",
    "hidden": "no",
    "uncertain": "not certain",
    None: "not yet judged",
}
_MOST_OPEN: Final = 3
"""Groups whose table needs no summary."""
_SPAN_NAMES: Final = {1: "days", 7: "weeks", 28: "months (28 days)", 365: "years (365 days)"}


def signal_parts(rows: Sequence[ReleaseRecord]) -> Iterator[str]:
    """Yield the sentence about each mean of these rows, and its table with each group and span."""
    names = signal_against_noise.mean_names(row.series for row in rows)
    signals_by_name = {
        name: signals
        for name in names
        if (signals := signal_against_noise.signals_by_group(rows, name, most=series_charts.MAX_CELLS))
    }
    for name, signals in signals_by_name.items():
        yield paragraph(signal_against_noise.signal_text(signal_against_noise.smallest_of(signals)))
        numbers = _signal_table(signals[: series_charts.MAX_CELLS], f" ({name})" if len(names) > 1 else "")
        of_groups = f"Each group of {name} by time span" if len(names) > 1 else "Each group by time span"
        yield closed(of_groups, [numbers]) if len(signals) > _MOST_OPEN else numbers
    if signals_by_name:
        yield paragraph(_TEXTS.signal_note, "soft")


def _signal_table(signals: Sequence[signal_against_noise.SeriesSignal], label: str) -> str:
    has_groups = len(signals) > 1
    body = [_span_row(span, f", {signal.group}" if has_groups else "") for signal in signals for span in signal.spans]
    caption = f"Change between neighbouring spans against their noise, kWh per household{label}"
    columns = ("neighbouring", "pairs", "noise", "true change", "standard error", "can be told apart")
    return table(caption, columns, body)


def _span_row(span: signal_against_noise.SpanSignal, label: str) -> tuple[str, ...]:
    estimate = span.estimate
    numbers = [] if estimate is None else [estimate.change, estimate.standard_error]
    change = [signal_against_noise.three_digits(number) for number in numbers] or ["–", "–"]
    pairs, noise = f"{span.pairs:,}", signal_against_noise.three_digits(span.noise_kwh)
    return (f"{_SPAN_NAMES[span.days]}{label}", pairs, noise, *change, _ANSWERS[span.verdict])


# --------------------------------------------------------------------------------------------------
# The part of the public report on what was released: every series with its charts, tables and links. Public.
# --------------------------------------------------------------------------------------------------

_WITH_PICTURES: Final = (AVERAGES, LAYERS, PERIOD_RELEASES, PROFILES, PROFILE_RELEASES, COVERAGES, DISTRIBUTIONS)
"""Kinds of table with a section of their own."""


def released_sections(report: ReportData) -> Iterator[PageSection]:
    """Yield a section for each series: means with their months and layers, periods, profiles, coverage, counts."""
    yield from _mean_sections(report)
    names = report_data.series_names(report, "mean")
    means = [row for name in names for row in report_data.series_rows(report, name, "mean")]
    if parts := [*signal_parts(means)]:
        yield PageSection("Signal against noise", "signal", parts)
    for name in report_data.period_names(report, "mean"):
        yield _section(report, name, "Means of longer periods", _period_parts(report, name))
    for name in _ordered(report, report_data.series_names(report, "profile")):
        yield _section(report, name, "Load profiles", _profile_parts(report, name))
    for name in report_data.period_names(report, "profile"):
        yield _section(report, name, "Load profiles of months", _month_profile_parts(report, name))
    counts = _ordered(report, report_data.series_names(report, "coverage"))
    for name in counts:
        rows, file = report_data.series_rows(report, name, "coverage"), _file(report, COVERAGES, name)
        label = name if len(counts) > 1 else ""
        shares = series_charts.coverage_parts(name, rows, coverage=report.coverage, label=label, file=file)
        yield _section(report, name, "Coverage", shares)
    for name in _ordered(report, report_data.series_names(report, "distribution")):
        rows, file = report_data.series_rows(report, name, "distribution"), _file(report, DISTRIBUTIONS, name)
        ranges = series_charts.distribution_parts(name, rows, report.contracts, coverage=report.coverage, file=file)
        yield _section(report, name, "Households by use", ranges)
    for kind in [kind for kind in RESULT_TABLES if kind not in _WITH_PICTURES]:
        for name in dict.fromkeys(row.series for row in report.all_rows if _table_of(report, row) is kind):
            released = [row for row in report.rows if row.series == name and row.state == "released"]
            rows = [row for row in released if _table_of(report, row) is kind]
            lines = released_table(kind, rows, _terms(report), Noise(report.coverage))
            pictures = series_charts.table_parts(name, lines, kind.chart, file=_file(report, kind, name))
            yield _section(report, name, kind.title, pictures)
    if files := [(file, kind.about) for kind in DERIVED_TABLES if (file := _file(report, kind))]:
        yield PageSection("Derived tables", "derived-tables", [part("file_list", files)], kind="get")


def _table_of(report: ReportData, row: ReleaseRecord) -> ResultTable:
    return report.contracts[row.contract].series[row.series].table


def _mean_sections(report: ReportData) -> Iterator[PageSection]:
    """Yield the sections of the daily means: of one mean days and months, of several means one section each."""
    names, coverage = _ordered(report, report_data.series_names(report, "mean")), report.coverage
    for name in names:
        label = layer_label(report, name) or (name if len(names) > 1 else "")
        rows, file = report_data.series_rows(report, name, "mean"), _file(report, AVERAGES, name)
        days = [*series_charts.series_parts(name, rows, coverage=coverage, label=label, file=file)]
        if report.since:
            text = f"The charts begin on {report.since}. The tables beside this page have the days before it as well."
            days.insert(0, paragraph(text, "soft"))
        averages, hidden = report_data.month_rows(report.months, name, most=series_charts.MOST_GROUPS)
        file = _file(report, AVERAGES_BY["month"])
        months = [
            *series_charts.monthly_parts(name, averages, coverage=coverage, label=label, file=file, hidden=hidden)
        ]
        layers = [*_layer_parts(report, name)]
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
    all_series = [contract.series for contract in report.contracts.values()]
    of_name = [series[key] for series in all_series for key in (name, f"{name}/1") if key in series]
    return len(of_name[-1].columns) if of_name else 0


def _section(report: ReportData, name: str, content: str, parts: Iterable[str]) -> PageSection:
    """Return the section of a series; that of a finer level of a hierarchy is closed."""
    table, _, level = name.partition("/")
    siblings = {of for contract in report.contracts.values() for of in contract.series if of.startswith(f"{table}/")}
    coarsest = min((_depth(report, of) for of in siblings), default=0)
    is_finer = bool(level) and len(siblings) > 1 and _depth(report, name) > coarsest
    title = f"{content} by {level}: {table}" if level else f"{content}: {name}"
    return PageSection(title, anchor_of(title), [*parts], is_closed=is_finer)


def _file(report: ReportData, table: ResultTable | DerivedTable, name: str = "") -> str:
    """Return the Parquet file beside the page that has a series, "" without one; the levels of a series share one."""
    by_series = report.files
    return by_series.get((table.file, name), by_series.get((table.file, name.partition("/")[0]), ""))


def _period_parts(report: ReportData, name: str) -> Iterator[str]:
    """Yield the parts of a mean that was released by week, month or year."""
    by_every: dict[Every, list[ReleaseRecord]] = {}
    for row, series in report_data.period_releases(report, name):
        if isinstance(series, Mean):
            by_every.setdefault(series.every, []).append(row)
    if not by_every:
        yield paragraph(f"{name}: no period is released yet.")
    file = _file(report, PERIOD_RELEASES, name)
    for every, rows in by_every.items():
        period = series_charts.ShownPeriod(every, is_drawn=True)
        periods = report_data.period_rows(rows, every=every, coverage=report.coverage)
        yield from series_charts.monthly_parts(
            name, periods, coverage=report.coverage, label=name, file=file, period=period
        )


def _profile_parts(report: ReportData, name: str) -> Iterator[str]:
    """Yield the parts of a series of profiles, of its newest days."""
    released = [row for row in report_data.series_rows(report, name, "profile") if row.state == "released"]
    newest = sorted(released, key=lambda row: row.day)[-MOST_DAYS:]
    rows = released_table(PROFILES, newest, _terms(report), Noise(report.coverage))
    file = _file(report, PROFILES, name)
    yield from profile_parts(name, rows, coverage=report.coverage, label=name, file=file)
    if months := _file(report, PROFILE_BY_MONTH):
        yield part("downloads", months, "", "", "", "", "")


def _month_profile_parts(report: ReportData, name: str) -> Iterator[str]:
    """Yield the parts of a series of profiles that was released by month."""
    rows = [row for row, _ in report_data.period_releases(report, name)]
    file, terms = _file(report, PROFILE_RELEASES, name), _terms(report)
    yield from month_profile_parts(name, rows, terms=terms, coverage=report.coverage, file=file)


def _terms(report: ReportData) -> Terms:
    of_input = report.statement.contract.terms.layout
    return {
        key: ContractTerms(contract.series, of_input, version)
        for version, (key, contract) in enumerate(report.contracts.items(), 1)
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
    of_contract = sorted(report.statement.contract.series.items())
    layers = [(of, series) for of, series in of_contract if mean_name(of) == name and layer_number(of)]
    if layers:
        noise = sum_noise_text(report, name)
        of_sum = f" The sum of the layers has noise of {noise}, the root of their summed variances." if noise else ""
        ranges = "; ".join(f"{of} from {series.above_kwh} to {series.clamp_kwh} kWh" for of, series in layers[1:])
        lowest = layers[0][1].clamp_kwh
        yield paragraph(
            f"{name} is published in layers: the values above are of layer 1, in which a household's day counts at "
            f"most {lowest} kWh. The upper layers ({ranges}) are parts of the mean in a Parquet "
            f"file of their own, to be added to it.{of_sum}",
            "soft",
        )
