"""LEDGER -> report.html: the release on one self-contained HTML page. Public.

It opens with the three sentences of the statement, then shows what was released, then the guarantee, and ends with the
whole statement. The page of an earlier statement is computed from the rows, promise and model of that time.

Decisions:

* The page depends on the statement, the ledger's rows and the model's public part only, and on the run file by the
  coverage of the intervals: the same ledger head and software give the same bytes, and no reading can influence it.
* Numbers have three significant digits, those of losses rounded up; the bounds of the statement at the end are exact.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from decimal import Decimal

from agedp.budget import series_by_contract
from agedp.release_folder.partitions import is_monthly, months_by_table, series_folder
from agedp.release_folder.result_tables import list_published_series
from agedp.reports import loss_charts
from agedp.reports.html import TEXTS, PageSection, anchor_of, paragraph, part, render_page, statement_to_html
from agedp.reports.released_series import layer_label, released_sections, sum_noise_text
from agedp.reports.report_data import ReleasedRows, ReportData, household_counts, released_means, series_names
from agedp.reports.series_charts import percent
from agedp.reports.svg import with_powers
from agedp.statement_facts import stated_comparison
from agedp_data import mechanisms
from agedp_data.config import RunFile
from agedp_data.ledger import ContractRecord, ModelRecord, ReleaseRecord
from agedp_data.model import Model
from agedp_data.notions import NOTIONS
from agedp_data.notions.notion import Promise, compared_accountants
from agedp_data.notions.publication import share_of, total_charge
from agedp_data.series.series import DERIVED_TABLES, AnySeries
from agedp_data.series.series_terms import EnergySeries, mean_name
from agedp_data.smoothing.signal_estimate import coverage_text
from agedp_data.statement.document import Statement
from agedp_data.statement.markdown import lead_sentences, markdown
from agedp_data.statement.note_texts import is_of_span, short_number, with_delta

_TEXTS = TEXTS["public_report"]

# --------------------------------------------------------------------------------------------------
# Key facts of the public report: what was released, and the loss of a day and of all days. Public.
#
# A fact is a label, a value and a remark: ("loss of all days", "ε 182", "odds change by at most a factor of 80
# digits").
# --------------------------------------------------------------------------------------------------

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
        low, high = (end(number for number, _ in counts) for end in (min, max))
        number, by_day = (f"{low:,}", "") if low == high else (f"{low:,} to {high:,}", ", by day")
        yield "households counted", number, f"on the roster{by_day}"
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
        when = f"{percent(report.coverage)} of the time, newest day"
        yield "noise of a count", f"±\u00a0{half_width:,}\u00a0households", when


def loss_facts(report: ReportData, bounds: Sequence[loss_charts.LabelledBound]) -> Iterator[Fact]:
    """Yield the assumption-free loss of a day and of all days, and the bounds with a delta that are promised."""
    for bound in bounds:
        if bound.stated.name in ("day", "total") and bound.stated.is_unconditional:
            day = "loss of one published day" if report.statement.draws else "loss of one day"
            scope = day if bound.stated.name == "day" else "loss of all days"
            odds = f"odds change by at most {bound.factor}, " if bound.factor else ""
            yield scope, f"ε\u00a0{bound.short}", f"{odds}{bound.stated.holds}"
        if bound.stated.delta is not None and bound.stated.limit not in ("", "unlimited"):
            span = "all days" if bound.stated.name.startswith("total") else bound.stated.name.partition(" (")[0]
            epsilon = f"ε\u00a0{bound.short}{with_powers(with_delta(bound.stated.delta))}"
            limit = f"promised: at most {bound.stated.limit}, {bound.stated.holds}"
            yield f"loss of {span}, as promised", epsilon, limit


# --------------------------------------------------------------------------------------------------
# LEDGER -> report.html: the release on one self-contained HTML page. Public.
# --------------------------------------------------------------------------------------------------

_PAPER = "On paper: a closed section is printed once it is opened on the screen."


def public_report(
    run_file: RunFile,
    models: Sequence[ModelRecord],
    statement: Statement,
    released: ReleasedRows,
    contracts: Sequence[ContractRecord],
    *,
    file_names: Collection[str] = (),
) -> bytes:
    """Return report.html for a statement and its rows and contracts; `file_names` are the paths of the tables."""
    series_of_contracts = series_by_contract(contracts)
    promise = contracts[-1].terms.enforced(series_of_contracts, statement.charges)
    terms = {
        "promise": promise,
        "series": series_of_contracts[contracts[-1].hash],
        "compare": stated_comparison(statement),
    }
    of_contracts = run_file.model_copy(update=terms)  # not those of the present run file
    run = of_contracts.following(series_of_contracts, statement.charges)
    accountants = [promise, *compared_accountants(NOTIONS, run.comparison)]
    days = len({row.day for row in released.history if row.state == "released"})
    model_hash = contracts[-1].terms.model_hash
    stored_models = {model.model: model.envelope for model in models}
    report = ReportData(
        statement,
        released.charted,
        {contract.hash: contract.terms for contract in contracts},
        accountants,
        Model.from_text(stored_models[model_hash]).leakage_bound if model_hash in stored_models else None,
        run_file.output.interval,
        promise,
        promise.alternatives(max(days, 1)) if isinstance(promise, Promise) else {},
        run.publication,
        _files(released.history, contracts, file_names),
        released.months,
        released.history,
        released.since,
    )
    return public_report_page(report).encode()


def _files(
    rows: Sequence[ReleaseRecord], contracts: Sequence[ContractRecord], file_names: Collection[str]
) -> dict[tuple[str, str], str]:
    """Return the Parquet files beside the page by kind and series, derived ones without; by month their folders."""
    published, is_by_month = list_published_series(rows, contracts), is_monthly(file_names)
    by_series = {
        (series.table.file, series.name): series_folder(series) if is_by_month else series.file for series in published
    }
    by_series |= {(table.file, ""): table.file if is_by_month else f"{table.file}.parquet" for table in DERIVED_TABLES}
    present = months_by_table(file_names) if is_by_month else file_names
    return {key: f"{name}/" if is_by_month else name for key, name in by_series.items() if name in present}


def public_report_page(report: ReportData) -> str:
    """Return the page of a report."""
    statement = report.statement
    sections = [_released_section(report), _guarantee_section(report), *_model_sections(report)]
    words = part("statement", statement_to_html(markdown(statement)))
    text = PageSection("The full statement", "statement", [words], kind="annex")
    return render_page(
        "public_report.html",
        title=statement.full_title,
        statement=statement,
        lead=lead_sentences(statement),
        sections=[*sections, text],
    )


def _released_section(report: ReportData) -> PageSection:
    """Return the section of the pictures: the first one, then key facts and what intervals cover, then all others."""
    facts = part("fact_list", [*release_facts(report)])
    notes = [paragraph(_TEXTS.intervals, "soft")] if report.statement.days.released else []
    subsections = [*released_sections(report)]
    if series_names(report, "mean") and report.statement.days.released:
        smoothing = paragraph(_TEXTS.smoothing.format(coverage_text()))
        subsections.append(PageSection("Smoothed estimates", "smoothed-estimates", [smoothing]))
    if any(section.is_closed for section in subsections):
        notes.append(paragraph(_PAPER, "soft on-paper"))
    if not subsections:
        return PageSection("What was released", "released", [facts, *notes])
    first = subsections[0]
    subsections[0] = replace(first, parts=[*first.parts[:1], facts, *notes, *first.parts[1:]])
    return PageSection("What was released", "released", subsections=subsections)


def _guarantee_section(report: ReportData) -> PageSection:
    statement = report.statement
    bounds, exception = loss_charts.labelled_bounds(statement), _exception(statement)
    delta = f" {_TEXTS.delta}" if any(bound.stated.delta is not None for bound in bounds) else ""
    parts = [
        part("fact_list", [*loss_facts(report, bounds)]),
        paragraph(f"{_TEXTS.odds.format(exception)}{delta}"),
        paragraph(_TEXTS.bars, "soft"),
    ]
    newest = max(released_means(report), key=lambda row: (row.day, -row.seq), default=None)
    sd = None if newest is None else mechanisms.standard_deviation(newest.scale) / (1000.0 * min(newest.households))
    layer, factors = "", dict[loss_charts.BoundKey, float | None]()
    if newest is not None:
        layer = layer_label(report, mean_name(newest.series))
        factors = loss_charts.noise_factors(report.accountants, report.all_rows, report.leakage_bound)
    parts += loss_charts.bounds_table(bounds, factors, sd_kwh=sd, layer=layer)
    return PageSection("The guarantee", "guarantee", parts, [*_guarantee_subsections(report, bounds, newest)])


def _guarantee_subsections(
    report: ReportData, bounds: Sequence[loss_charts.LabelledBound], newest: ReleaseRecord | None
) -> Iterator[PageSection]:
    curves = loss_charts.losses_over_time(report.accountants, report.all_rows, report.leakage_bound)
    curves |= loss_charts.spans_over_time(report.statement.bounds, report.all_rows, report.publication)
    deltas = [bound.delta for bound in report.statement.bounds if is_of_span(bound)]
    shown = report.statement.contract.promise.delta or next(iter(deltas), None)
    promise, delta = report.statement.contract.promise, None if shown is None else Decimal(shown)
    clamps = [_clamp_wh(series) for contract in report.contracts.values() for series in contract.series.values()]
    full_wh = max(clamps) or 1000  # without a clamp (coverage alone) a change of any size counts the same
    parts_by_title = {
        "Noise under other schedules": [_schedules(report, newest)]
        if newest is not None and report.noise_means
        else [],
        "How the bounds grew": [*loss_charts.growth_parts(bounds, curves)],
        "Small changes of a day's use": [
            *loss_charts.size_parts(report.accountants, report.all_rows, report.publication, full_wh=full_wh)
        ],
        "Loss by day": [*loss_charts.spending_parts(report.all_rows, promise, report.publication, delta)],
    }
    for title, parts in parts_by_title.items():
        if parts:
            yield PageSection(title, anchor_of(title), parts)


def _model_sections(report: ReportData) -> Iterator[PageSection]:
    """Yield the sections of the loss by age and of temporal leakage, where there is a model."""
    bound, promise = report.leakage_bound, report.statement.contract.terms.promise
    if bound is None:
        return
    days, events = report.publication.parted(report.all_rows)
    charge = total_charge(events)
    nothing = "bounded by it, and for the others these curves say nothing"
    share = f"; {bound.share} {nothing}" if bound.share else ""  # a part of a sentence
    if parts := [*loss_charts.model_parts(bound, days, charge)]:
        note = paragraph(_TEXTS.ageing.format(share), "soft")
        yield PageSection("Privacy loss by age under the model", "age", [note, *parts])
    if parts := [*loss_charts.leakage_parts(bound, days, promise, charge)]:
        note = paragraph(_TEXTS.correlation.format(share), "soft")
        yield PageSection("Temporal leakage under the model", "leakage", [note, *parts])


def _exception(statement: Statement) -> str:
    """Return what no bound of the page counts, a part of the sentences with bounds; "" for nothing."""
    days = statement.model_days
    if not days:
        return ""
    return (
        f"; the published model, estimated without noise from the days {days}, is in none of them, and with it none "
        "is unconditional about these days or days like them"
    )


def _schedules(report: ReportData, newest: ReleaseRecord) -> str:
    *_, current = report.contracts.values()
    series = current.series.get(newest.series, report.contracts[newest.contract].series[newest.series])
    return loss_charts.schedules_table(
        loss_charts.schedule_noise_kwh(
            report.noise_means,
            clamp_wh=_clamp_wh(series),
            share=float(report.promise.part_of_day(newest.series, share_of(series))),
            households=min(newest.households),
        )
    )


def _clamp_wh(series: AnySeries) -> int:
    return series.clamp_wh if isinstance(series, EnergySeries) else 0
