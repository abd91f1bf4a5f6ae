"""LEDGER -> report.html: the release on one self-contained HTML page. Public.

Its head contains what was released, and a summary of households, noise and epsilon. The page of an earlier statement is
computed from the rows, promise and model of that time.

Decisions:

* The page depends on the statement, the ledger's rows, the run file and the model's public part only: the same ledger
  head and software give the same bytes, and no reading can influence it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from decimal import Decimal
from fractions import Fraction
from functools import partial

from agedp.budget import series_by_contract
from agedp.release_folder.derived_tables import DERIVED_FILES
from agedp.release_folder.monthly_tables import series_folder
from agedp.release_folder.partitions import is_monthly, months_by_table
from agedp.release_folder.period_averages import PERIOD_FILES
from agedp.release_folder.published_series import list_published_series
from agedp.reports.axes import format_number
from agedp.reports.html import render_page, statement_to_html
from agedp.reports.loss_over_time import leakage_parts, losses_over_time, model_parts, noise_factors, schedule_noise_kwh
from agedp.reports.mean_series import percent
from agedp.reports.privacy_loss import (
    LabelledBound,
    bounds_table,
    growth_parts,
    labelled_bounds,
    rounded_up_text,
    schedules_table,
    size_parts,
)
from agedp.reports.released_rows import ReleasedRows
from agedp.reports.released_series import layer_label, released_parts, sum_noise_text
from agedp.reports.report_data import ReportData, household_counts, released_means, series_names
from agedp.reports.span_growth import spans_over_time
from agedp.reports.spending import spending_parts
from agedp_data import mechanisms
from agedp_data.config import RunFile
from agedp_data.config.contract import promise_of
from agedp_data.config.contract_values import meaning_of
from agedp_data.leakage.bound_table import LeakageBound
from agedp_data.ledger import ContractRecord, ModelRecord, ReleaseRecord
from agedp_data.model import Model
from agedp_data.notions import NOTIONS
from agedp_data.notions.notion import Promise
from agedp_data.notions.period_accountant import compared_accountants
from agedp_data.notions.period_loss import total_charge
from agedp_data.parameters import watt_hours
from agedp_data.series.layers import mean_name
from agedp_data.smoothing.measured_coverage import coverage_text
from agedp_data.statement.delta_texts import is_of_span, with_delta
from agedp_data.statement.document import Statement
from agedp_data.statement.markdown import markdown

_ENDS = {"promise": "then the budget is used up", "period": "the last day of its period"}
_ENDED = {
    "promise": "the budget is used up",
    "period": "the last day of its period",
    "broken": "a newer model stops it",
}


def _content_text(report: ReportData) -> str:
    means, counts = series_names(report, "mean"), series_names(report, "distribution")
    if not means:
        return "Number of households by electricity use"
    layered = any(map(partial(layer_label, report), means))
    of_layers = ", layer by layer" if layered else ""
    return f"Mean electricity use per household{of_layers}" + (", and number of households by use" if counts else "")


def _dates_text(first: str, last: str) -> str:
    return f"on {first}" if first == last else f"from {first} to {last}"


def _facts(report: ReportData, bounds: Sequence[LabelledBound]) -> Iterator[tuple[str, str, str]]:
    days = report.statement.days
    skipped = f"; {len(days.skipped)} skipped" if days.skipped else ""
    yield "days released", f"{days.released:,}", f"{days.first} to {days.last}{skipped}" if days.first else ""
    counts = [*household_counts(report)]
    if counts:
        households = [number for number, _ in counts]
        yield (
            "households counted",
            _range_text(households),
            "on the roster, by day" if min(households) < max(households) else "on the roster",
        )
    released = released_means(report)
    if released:
        newest = max(released, key=lambda row: (row.day, -row.seq))
        half_width = mechanisms.interval(newest.scale, report.coverage) / (1000.0 * min(newest.households))
        scope = f", {newest.series}" if len(series_names(report, "mean")) > 1 else ""
        scope += ", smallest group" if len(newest.cells) > 1 else ""
        layer = layer_label(report, mean_name(newest.series))
        yield (
            f"noise of {layer}" if layer else "noise of a day's mean",
            f"±\u00a0{format_number(half_width)}\u00a0kWh",
            f"{percent(report.coverage)} of the time, newest day{scope}",
        )
        if noise := sum_noise_text(report, mean_name(newest.series)):
            yield "noise of a day's sum of layers", noise, f"standard deviation, newest day{scope}"
    elif counts:
        newest = max((row for _, row in counts), key=lambda row: (row.day, -row.seq))
        half_width = mechanisms.interval(newest.scale, report.coverage)
        yield (
            "noise of a count",
            f"±\u00a0{half_width:,}\u00a0households",
            f"{percent(report.coverage)} of the time, newest day",
        )
    for bound in bounds:
        if bound.key.name in ("day", "total") and bound.is_unconditional:
            day = "loss of one published day" if report.statement.draws else "loss of one day"
            scope_text = day if bound.key.name == "day" else "loss of all days"
            yield scope_text, f"ε\u00a0{rounded_up_text(bound)}", f"odds {bound.factor}, {bound.condition}"
        if bound.delta is not None and bound.limit not in ("", "unlimited"):
            span = "all days" if bound.key.name.startswith("total") else bound.key.name.partition(" (")[0]
            epsilon = f"ε\u00a0{rounded_up_text(bound)}{with_delta(bound.delta)}"
            yield f"loss of {span}, as promised", epsilon, f"promised: at most {bound.limit}, {bound.condition}"
    ending = report.statement.ending
    if ending is not None and ending.last_day:
        has_ended = report.statement.is_over
        reason = (_ENDED if has_ended else _ENDS).get(ending.reason, "")
        yield "ended with" if has_ended else "goes on until", ending.last_day, reason


def _range_text(numbers: Sequence[int]) -> str:
    low, high = min(numbers), max(numbers)
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


_TABLE_NOTE = "The bounds are those of the table above, which contains everything that the statement reports of each."


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
    promise = promise_of(contracts[-1].promise, series_of_contracts, statement.charges)
    terms = {"promise": promise, "series": series_of_contracts[contracts[-1].hash]}
    run = run_file.model_copy(update=terms).following(
        series_of_contracts, statement.charges
    )  # not the present run file's
    accountants = [promise, *compared_accountants(NOTIONS, run.comparison)]
    days = len({row.day for row in released.history if row.state == "released"})
    noise_means = promise.alternatives(max(days, 1)) if isinstance(promise, Promise) else {}
    contract_texts = {contract.hash: meaning_of(contract.promise) for contract in contracts}
    model_hash = contract_texts[contracts[-1].hash].get("model", {}).get("hash")
    stored_models = {model.model: model.envelope for model in models}
    leakage_bound = Model.from_text(stored_models[model_hash]).leakage_bound if model_hash in stored_models else None
    coverage = run_file.output.interval
    return public_report_page(
        ReportData(
            statement,
            released.charted,
            contract_texts,
            accountants,
            leakage_bound,
            coverage,
            promise,
            noise_means,
            run.publication,
            _files(released.history, contracts, file_names),
            released.months,
            released.history,
            released.since,
        )
    ).encode()


def _files(
    rows: Sequence[ReleaseRecord], contracts: Sequence[ContractRecord], file_names: Collection[str]
) -> dict[tuple[str, str], str]:
    """Return the Parquet files beside the page by statistic and series; with the layout "monthly" their folders."""
    published, is_by_month = list_published_series(rows, contracts), is_monthly(file_names)
    by_series = {
        (series.kind, series.name): series_folder(series) if is_by_month else series.file for series in published
    }
    derived = {file: file.removesuffix(".parquet") if is_by_month else file for file in DERIVED_FILES}
    by_series["month", ""] = derived[PERIOD_FILES["month"]]
    by_series |= {("derived", file): name for file, name in derived.items()}
    present = months_by_table(file_names) if is_by_month else file_names
    return {key: f"{name}/" if is_by_month else name for key, name in by_series.items() if name in present}


def public_report_page(report: ReportData) -> str:
    """Return the page of a report."""
    statement = report.statement
    bounds, published = labelled_bounds(statement), statement.published
    promise, leakage_bound = statement.contract.promise.content(), report.leakage_bound
    days, publication = report.publication.separated(report.all_rows)
    charge = total_charge(publication.charges)
    return render_page(
        "public_report.html",
        title=statement.full_title,
        statement=statement,
        content=_content_text(report),
        published=_dates_text(published.first, published.last) if statement.days.released else "",
        facts=[*_facts(report, bounds)],
        series=[*released_parts(report)],
        has_averages=bool(series_names(report, "mean")),
        coverage=coverage_text(),
        losses=[*_loss_parts(report, bounds)],
        exception=_exception(statement),
        has_delta=any(bound.delta is not None for bound in bounds),
        share=_share_text(leakage_bound),
        model=[] if leakage_bound is None else [*model_parts(leakage_bound, days, charge)],
        leakage=[] if leakage_bound is None else [*leakage_parts(leakage_bound, days, promise, charge)],
        statement_text=statement_to_html(markdown(statement), tables=_TABLE_NOTE),
    )


def _exception(statement: Statement) -> str:
    """Return what no bound of the page counts, a part of the sentences with bounds; "" for nothing."""
    days = next((bound.conditional_days for bound in statement.bounds if bound.conditional_days), "")
    if not days:
        return ""
    return (
        f"; the published model, estimated without noise from the days {days}, is in none of them, and with it none "
        "is unconditional about these days or days like them"
    )


def _share_text(leakage_bound: LeakageBound | None) -> str:
    """Return the share of the households that the model bounds, a part of a sentence; "" if it is meant for each."""
    if leakage_bound is None or not leakage_bound.share:
        return ""
    return f"; {leakage_bound.share} bounded by it, and for the others these curves say nothing"


def _loss_parts(report: ReportData, bounds: Sequence[LabelledBound]) -> Iterator[str]:
    curves = losses_over_time(report.accountants, report.all_rows, report.leakage_bound)
    curves |= spans_over_time(report.statement.bounds, report.all_rows, report.publication)
    newest = _newest_mean(report)
    sd = None if newest is None else mechanisms.standard_deviation(newest.scale) / (1000.0 * min(newest.households))
    factors = noise_factors(report.accountants, report.all_rows, report.leakage_bound) if newest is not None else {}
    layer = "" if newest is None else layer_label(report, mean_name(newest.series))
    yield from bounds_table(bounds, factors, sd_kwh=sd, layer=layer)
    if newest is not None and report.noise_means:
        yield _schedules(report, newest)
    yield from growth_parts(bounds, curves)
    yield from size_parts(report.accountants, report.all_rows, report.publication, full_wh=_full_wh(report))
    yield from spending_parts(
        report.all_rows, report.statement.contract.promise, report.publication, _shown_delta(report.statement)
    )


def _shown_delta(statement: Statement) -> Decimal | None:
    """Return the promised delta, or the first one at which the statement has a bound on all days; None without one."""
    deltas = [bound.delta for bound in statement.bounds if is_of_span(bound)]
    shown = statement.contract.promise.delta or next(iter(deltas), None)
    return None if shown is None else Decimal(shown)


def _newest_mean(report: ReportData) -> ReleaseRecord | None:
    return max(released_means(report), key=lambda row: (row.day, -row.seq), default=None)


def _schedules(report: ReportData, newest: ReleaseRecord) -> str:
    current_series = report.statement.contract.content()["series"]
    series = current_series.get(newest.series, report.contracts[newest.contract]["series"][newest.series])
    return schedules_table(
        schedule_noise_kwh(
            report.noise_means,
            clamp_wh=watt_hours(Decimal(series["clamp_kwh"])),
            share=float(report.promise.part_of_day(newest.series, Fraction(series["share"]))),
            households=min(newest.households),
        )
    )


def _full_wh(report: ReportData) -> int:
    """Return the largest possible change of a day's use: the largest clamp of all contracts [Wh]."""
    all_series = [terms for contract in report.contracts.values() for terms in contract["series"].values()]
    clamps = (watt_hours(Decimal(terms["clamp_kwh"])) for terms in all_series if "clamp_kwh" in terms)
    return max(clamps, default=1000)  # without a clamp (coverage alone) a change of any size counts the same
