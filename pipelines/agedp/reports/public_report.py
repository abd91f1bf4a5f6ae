"""LEDGER -> report.html: the release on one self-contained HTML page. Public.

It opens with the verdict: what the values are fit for, and what they reveal about one household. Then come the curve
that a reader can use, the groups, the guarantee, and the files of the folder. The page of an earlier statement is
computed from the rows, promise and model of that time.

    Months: ±1.06 kWh; not single days (±5.76 kWh). One day of one household: 50 to 63 %; all days: no meaningful bound.

Decisions:

* The page depends on the statement, the ledger's rows and the model's public part only, and on the run file by the
  coverage of the intervals: the same ledger head and software give the same bytes, and no reading can influence it.
* Numbers have three significant digits, those of losses rounded up; STATEMENT.md has all digits.
* A span is fit by the rule of a first release and of STATEMENT.md (`statement.span_errors`): by the stated noise of the
  newest rows. Its interval covers 90 %, whatever the bands cover.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Final

from agedp.budget import series_by_contract
from agedp.release_folder.folder_files import EXPLORE
from agedp.release_folder.partitions import is_monthly, months_by_table, series_folder
from agedp.release_folder.result_tables import closed_units, contract_terms, list_published_series, released_table
from agedp.release_folder.span_bounds import span_losses
from agedp.reports import loss_charts
from agedp.reports.html import TEXTS, PageSection, paragraph, part, render_page, table, text_table
from agedp.reports.report_data import ReleasedRows
from agedp.reports.series_charts import Lines, ShownSeries, half_widths_of, percent, series_parts, signal_parts
from agedp.reports.svg import with_powers
from agedp.signal_against_noise import rows_of_means
from agedp.statement_facts import stated_comparison
from agedp_data.config import RunFile
from agedp_data.epsilon import round_nano
from agedp_data.ledger import ContractRecord, ModelRecord, ReleaseRecord
from agedp_data.messages import sentence_start
from agedp_data.model import Model
from agedp_data.notions import NOTIONS
from agedp_data.notions.notion import (
    RESULTS,
    TOTAL_BOUND,
    compared_accountants,
)
from agedp_data.notions.publication import Publication
from agedp_data.series.layered_mean import is_upper, series_text
from agedp_data.series.result_table import DerivedTable, Noise
from agedp_data.series.series import DERIVED_TABLES, RESULT_TABLES, AnySeries
from agedp_data.series.series_terms import mean_name
from agedp_data.statement.document import Statement
from agedp_data.statement.note_texts import (
    NOTES,
    is_useless_factor,
    largest_of_day,
    odds_percent,
    short_number,
    with_delta,
)
from agedp_data.statement.span_errors import WHOLE, SeriesNoise, SpanError, purpose, shortest, stated_noises
from agedp_data.yardstick import yardstick_name

_TEXTS = TEXTS["public_report"]
_ENDS = {"promise": "then the budget is used up", "period": "the last day of its period"}
_ENDED = {
    "promise": "the budget is used up",
    "period": "the last day of its period",
    "broken": "a newer model stops it",
}
_MOST_VERDICTS: Final = 2
"""Series whose verdict is a sentence; the table below the charts has all of them."""
_OTHER_FILES: Final = (
    ("STATEMENT.md", "the guarantee in words, all bounds and assumptions"),
    ("statement.json", "the same for programs"),
    ("datapackage.json", "columns, types and units of every table"),
)


@dataclass(frozen=True, slots=True)
class ReportData:
    """Data of a page: the statement, its rows and contracts, and the bounds of all notions.

    `curves` are the bounds of the statement by day of the data, which report.html and explore.html both draw.

    `files` are the Parquet files of the folder by kind of table and series, those of derived tables by ("month", ""),
    or with the layout "monthly" their folders.
    """

    statement: Statement
    released: ReleasedRows
    contracts: Sequence[ContractRecord]
    coverage: Decimal
    publication: Publication
    files: Mapping[tuple[str, str], str]
    curves: Mapping[loss_charts.BoundKey, loss_charts.LossOverTime]
    has_explore_page: bool = False

    @property
    def rows(self) -> list[ReleaseRecord]:
        """Return the released rows that are charted."""
        return [row for row in self.released.charted if row.state == "released"]

    def series(self, row: ReleaseRecord) -> AnySeries:
        """Return the series of a row, as its contract has it."""
        return next(of.terms.series[row.series] for of in self.contracts if of.hash == row.contract)

    def file(self, kind: str, name: str = "") -> str:
        """Return the Parquet file beside the page that has a series, "" without one; levels of a series share one."""
        return self.files.get((kind, name), self.files.get((kind, name.partition("/")[0]), ""))


def report_data(
    run_file: RunFile,
    models: Sequence[ModelRecord],
    statement: Statement,
    released: ReleasedRows,
    contracts: Sequence[ContractRecord],
    *,
    file_names: Collection[str] = (),
) -> ReportData:
    """Return the data of the pages of a statement and its rows and contracts; `file_names` are the paths of tables."""
    series_of_contracts = series_by_contract(contracts)
    promise = contracts[-1].terms.enforced(series_of_contracts, statement.charges)
    terms = {
        "promise": promise,
        "series": series_of_contracts[contracts[-1].hash],
        "compare": stated_comparison(statement),
    }
    of_contracts = run_file.model_copy(update=terms)  # not those of the present run file
    run = of_contracts.following(series_of_contracts, statement.charges)
    stored_models, model_hash = {model.model: model.envelope for model in models}, contracts[-1].terms.model_hash
    model = Model.from_text(stored_models[model_hash]) if model_hash in stored_models else None
    leakage_bound = None if model is None else model.leakage_bound
    spans = span_losses(statement.bounds, run.publication)
    accountants = [promise, *compared_accountants(NOTIONS, run.comparison), *spans]
    rows = released.history or released.charted
    return ReportData(
        statement,
        released,
        contracts,
        run_file.output.interval,
        run.publication,
        _files(released.history, contracts, file_names),
        loss_charts.losses_over_time(accountants, rows, leakage_bound),
        has_explore_page=EXPLORE in file_names,
    )


def _files(
    rows: Sequence[ReleaseRecord], contracts: Sequence[ContractRecord], file_names: Collection[str]
) -> dict[tuple[str, str], str]:
    """Return the Parquet files beside the page by kind and series, derived ones without; by month their folders."""
    published, is_by_month = list_published_series(rows, contracts), is_monthly(file_names)
    by_series = {
        (series.table.file, series.name): series_folder(series) if is_by_month else series.file for series in published
    }
    by_series |= {(of.file, ""): of.file if is_by_month else f"{of.file}.parquet" for of in DERIVED_TABLES}
    present = months_by_table(file_names) if is_by_month else file_names
    return {key: f"{name}/" if is_by_month else name for key, name in by_series.items() if name in present}


def public_report_page(report: ReportData) -> str:
    """Return the page of a report."""
    statement = report.statement
    noises = sorted(
        stated_noises(statement), key=lambda of: (of.unit != "kWh", min(error.ratio for error in of.errors()))
    )
    return render_page(
        "public_report.html",
        title=statement.full_title,
        statement=statement,
        credits={key: value for key in ("source", "licence", "contact") if (value := getattr(statement, key))},
        marks=opening_notes(report),
        verdicts=[
            f"{noise.label}: {text}" if len(noises) > 1 else sentence_start(text)
            for noise in noises[:_MOST_VERDICTS]
            for text in [verdict_text(noise, is_over=statement.is_over)]
        ],
        privacy=privacy_text(statement),
        sections=[*_value_sections(report, noises), _guarantee_section(report), _files_section(report)],
    )


def opening_notes(report: ReportData) -> list[str]:
    """Return the notes that stand above the verdict: that of a rehearsal, and what a promise leaves out."""
    opening = report.contracts[-1].terms.promise.for_publication(report.publication).opening
    return [note for note in report.statement.notes if note in (NOTES.rehearsal, opening)]


# --------------------------------------------------------------------------------------------------
# The verdict.
# --------------------------------------------------------------------------------------------------


def verdict_text(noise: SeriesNoise, *, is_over: bool = False) -> str:
    """Return what a series is fit for: "months ±1.06 kWh; not single days (±5.76 kWh)"."""
    errors = [*noise.errors()]
    best = shortest(errors, "fit") or shortest(errors, "rough") or shortest(noise.all_errors(), "fit", "rough")
    if best is None:
        least = min(errors, key=lambda error: error.ratio)
        return f"of no use{'' if is_over else ' yet'}; a {least.span} is ±{_size(least)}, {least.percent} of usual use"
    rough = ", roughly" if best.grade == "rough" else ""
    first = errors[0]
    smoothed = shortest((error for error in noise.all_errors() if error.is_smoothed), "fit", "rough")
    single = f"not single {first.span}s (±{_size(first)})"
    if first.grade:
        single = f"single {first.span}s roughly (±{_size(first)})"
    elif smoothed not in (None, best):
        single = f"single days only smoothed (±{_size(smoothed)})"
    name = f"the {WHOLE}" if best.span == WHOLE else f"{best.span}s{', smoothed,' if best.is_smoothed else ''}"
    return f"{name} ±{_size(best)}{rough}{'' if first is best else f'; {single}'}"


def _size(error: SpanError) -> str:
    return error.width.replace(" ", "\u00a0")


def privacy_text(statement: Statement) -> str:
    """Return what an even chance about a household's day, and about all of them, becomes at most."""
    epsilons = statement.unconditional_epsilons
    days, noisy = statement.days.released, ", by the noisy values alone" if statement.model_days else ""
    text = f"An even chance about one day of one household becomes {_chance(largest_of_day(epsilons))}"
    text += f"; about all {days:,} days: {_chance(epsilons[TOTAL_BOUND])}" if days > 1 else ""
    for bound in statement.bounds:
        if bound.delta is not None and bound.limit not in ("", "unlimited"):
            epsilon = f"epsilon {short_number(bound.epsilon)}{with_powers(with_delta(bound.delta))}"
            return f"{text}; {bound.scope.partition(RESULTS)[0]}: {epsilon}{noisy}."
    return f"{text}{noisy}."


def _chance(epsilon: str) -> str:
    return "no meaningful bound" if is_useless_factor(epsilon) else odds_percent(round_nano(Decimal(epsilon)))


# --------------------------------------------------------------------------------------------------
# The values: each series with its charts, its groups and its files.
# --------------------------------------------------------------------------------------------------


def _value_sections(report: ReportData, noises: Sequence[SeriesNoise]) -> Iterator[PageSection]:
    """Yield a section for the first series, with key facts below its charts, and one for all others."""
    shown = [*_shown_series(report, noises)]
    facts = part("fact_list", [*release_facts(report)])
    reading = paragraph(_TEXTS.reading.format(percent(report.coverage)), "soft")
    if report.released.since:
        facts += paragraph(f"The charts begin on {report.released.since}; the tables have the days before it.", "soft")
    if not shown:
        yield PageSection("Values", "values", [facts])
        return
    first, *others = shown
    parts = [*series_parts(first, coverage=report.coverage)]
    charts = 2 if parts[0].startswith("<ul") else 1
    title = first.lines.chart.title if charts > 1 else "Values"
    yield PageSection(title, "values", [*parts[:charts], facts, *parts[charts:], reading])
    subsections = [
        PageSection(of.label, f"series-{i}", [*series_parts(of, coverage=report.coverage)])
        for i, of in enumerate(others)
    ]
    if subsections:
        yield PageSection("Further series", "series", subsections=subsections)
    if noises:
        signals = [*signal_parts(rows_of_means(report.rows, report.contracts))]
        smoothing = [paragraph(_TEXTS.smoothing)] if signals else []
        yield PageSection("How exact the values are", "accuracy", [_accuracy_table(noises), *smoothing, *signals])


def _accuracy_table(noises: Sequence[SeriesNoise]) -> str:
    rows = [
        (f"{error.series}, {error.span}", _size(error), error.percent, error.grade or "no")
        for noise in noises
        for error in noise.errors()
    ]
    caption = (
        "Noise of the mean of a span in the group with the most of it, 90 % of the time; fit: up to 10 % of the "
        f"mean use of {yardstick_name()}; rough: up to 25 %"
    )
    return table(caption, ("series and span", "±", "of usual use", "fit"), rows)


def _shown_series(report: ReportData, noises: Sequence[SeriesNoise]) -> Iterator[ShownSeries]:
    """Yield all published series, table by table and the coarse levels of a table first."""
    noise, terms = Noise(report.coverage), contract_terms(report.contracts)
    rows_of: dict[tuple[str, str], list[ReleaseRecord]] = {}
    for row in report.rows:
        rows_of.setdefault((report.series(row).table.file, row.series), []).append(row)
    derived = {name: lines for of in DERIVED_TABLES if of.span == "month" for name, lines in _derived_lines(report, of)}
    labels = {name: series_text(name, report.series(of[-1])) for (_, name), of in rows_of.items()}
    names = _ordered(report, noises, [*dict.fromkeys([*derived, *labels])])
    fit_days = {noise.label for noise in noises if next(noise.errors()).grade == "fit"}
    useless = {noise.label for noise in noises if not purpose([*noise.all_errors()])}
    for name in names:
        by_period, label = derived.get(name), labels.get(name, name) if len(names) > 1 else ""
        of_name = [row for row in report.released.charted if row.series == name and row.state == "skipped"]
        skipped = [date.fromisoformat(row.day) for row in of_name]
        shown = [
            Lines(released_table(kind, rows, terms, noise), kind.chart, report.file(kind.file, name),
                  half_widths_of(rows, noise))
            for kind in RESULT_TABLES
            if kind.chart is not None and (rows := rows_of.get((kind.file, name)))
        ]  # fmt: skip
        for lines in shown:
            has_periods = by_period is not None and lines.is_over_time and mean_name(name) not in fit_days
            main, behind = (by_period, lines) if has_periods and by_period is not None else (lines, None)
            months = by_period if lines.is_over_time and main is lines else None
            yield ShownSeries(name, label, main, behind, skipped, months, mean_name(name) not in useless)
        if by_period is not None and not shown:
            yield ShownSeries(name, label, by_period, is_of_use=mean_name(name) not in useless)


def _derived_lines(report: ReportData, of: DerivedTable) -> Iterator[tuple[str, Lines]]:
    """Yield the lines of a derived table by series; of a series without a closed period those of its days so far."""
    terms, noise = contract_terms(report.contracts), Noise(report.coverage)
    if not of.has_source(terms) or of.chart is None:
        return
    rows = report.released.charted
    closed = closed_units(of, rows, report.contracts)
    names = {unit.series for unit in closed}
    units = [*closed, *(unit for unit in of.units(rows, terms) if unit.series not in names)]
    newest = {unit.series: unit.first_day for unit in units}  # units are in the order of days
    for name in [name for name in newest if not is_upper(name)]:
        is_over_time = of.chart.x == "first_day"
        chosen = [unit for unit in units if unit.series == name and (is_over_time or unit.first_day == newest[name])]
        yield name, Lines(of.lines(chosen, terms, noise), of.chart, report.file(of.file))


def _ordered(report: ReportData, noises: Sequence[SeriesNoise], names: Sequence[str]) -> list[str]:
    """Return names of series table by table, the most exact one first, and the coarse levels of a table first."""
    tables = [*dict.fromkeys(name.partition("/")[0] for name in [*(of.label for of in noises), *names])]
    depths = {name: len(series.columns) for of in report.contracts for name, series in of.terms.series.items()}
    return sorted(names, key=lambda name: (tables.index(name.partition("/")[0]), depths.get(name, 0), name))


Fact = tuple[str, str, str]
"""A label, a value and a remark."""


def release_facts(report: ReportData) -> Iterator[Fact]:
    """Yield days and households of a release, and until when it goes on."""
    days = report.statement.days
    skipped = f"; {len(days.skipped):,} skipped" if days.skipped else ""
    yield "days released", f"{days.released:,}", f"{days.first} to {days.last}{skipped}" if days.first else ""
    daily = [row for row in report.rows if not report.series(row).covers_periods]
    of_first = [row for row in daily if row.series == daily[0].series]
    if of_first:
        counts = [sum(report.series(row).by_group(row.cells, row.households).values()) for row in of_first]
        number = f"{min(counts):,}" if min(counts) == max(counts) else f"{min(counts):,} to {max(counts):,}"
        yield "households counted", number, "on the roster" if min(counts) == max(counts) else "on the roster, by day"
    ending = report.statement.ending
    if ending is not None and ending.last_day:
        has_ended = report.statement.is_over
        reason = (_ENDED if has_ended else _ENDS).get(ending.reason, "")
        yield "ended with" if has_ended else "goes on until", ending.last_day, reason


# --------------------------------------------------------------------------------------------------
# The guarantee, and the files.
# --------------------------------------------------------------------------------------------------


def _guarantee_section(report: ReportData) -> PageSection:
    statement = report.statement
    bounds, days = loss_charts.labelled_bounds(statement), statement.model_days
    exception = (
        f"; the published model, estimated without noise from the days {days}, is in none of them, and with it none "
        "is unconditional about these days or days like them"
        if days
        else ""
    )
    parts = [
        paragraph(_TEXTS.odds, "soft"),
        *loss_charts.growth_chart(bounds, report.curves),
        loss_charts.bounds_table(bounds),
        paragraph(_TEXTS.bounds.format(exception), "soft"),
        *(paragraph(note, "soft") for note in statement.notes if note not in opening_notes(report)),
        paragraph(_TEXTS.statement),
    ]
    return PageSection("The guarantee", "guarantee", parts)


def _files_section(report: ReportData) -> PageSection:
    """Return the section of all files, each with what it contains."""
    abouts = {kind.file: f"released values by {kind.line_of}" for kind in RESULT_TABLES}
    abouts |= {of.file: f"{of.about}, derived from released values" for of in DERIVED_TABLES}
    labels: dict[tuple[str, str], dict[str, None]] = {}
    for row in report.rows:
        series = report.series(row)
        labels.setdefault((series.table.file, row.series.partition("/")[0]), {})[series_text(row.series, series)] = None
    tables = [
        (file, ": ".join(filter(None, [abouts[kind], "; ".join(labels.get((kind, name), [name]))])))
        for (kind, name), file in report.files.items()
    ]
    pages = [(EXPLORE, "the tables as charts to zoom, and groups to choose from")] if report.has_explore_page else []
    is_signed = report.statement.signed_by
    signature = [("SIGNATURE.json", f"the signature by key {is_signed}")] if is_signed else []
    rows = [(part("file_link", file), about) for file, about in [*tables, *pages, *_OTHER_FILES, *signature]]
    return PageSection("Files", "files", [text_table("", ("file", "contains"), rows)])
