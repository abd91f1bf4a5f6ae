"""LEDGER -> report.html: the release for people, on one page that asks the network for nothing. Public.

Made of the statement, the ledger's rows, the run file and the model's public part alone, so that the same head and the
same software give the same bytes, and nothing of a reading can show. The page as it stood at an earlier statement is
made of what the ledger held then: its rows, its promise, its model.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from html import escape
from typing import Any

from agedp_data import noise
from agedp_data.config.contracts import promise_of
from agedp_data.config.meanings import meaning_of
from agedp_data.ledger import ContractRecord, Ledger, ReleaseRecord
from agedp_data.model import Model
from agedp_data.notions import NOTIONS
from agedp_data.notions.notion import Promise
from agedp_data.notions.parameters import watt_hours
from agedp_data.pictures.page import document, paragraph, section
from agedp_data.pictures.words import html_of
from agedp_data.statement import markdown
from agedp_data.statement_words import title_of
from pipelines.promise.in_force import series_by_contract
from pipelines.reports.at_a_glance import header_parts
from pipelines.reports.courses import losses_over_time, noise_factors, schedule_noise_kwh
from pipelines.reports.distributions import distribution_parts
from pipelines.reports.figures import LabelledBound, bounds_table, growth_parts, labelled_bounds, schedules_table
from pipelines.reports.leakage import leakage_parts
from pipelines.reports.model import model_parts
from pipelines.reports.series import series_parts
from pipelines.reports.sizes import size_parts
from pipelines.reports.spending import spending_parts
from pipelines.reports.told import ReportData, released_means, series_names, series_rows
from pipelines.work import Work

_NOTIONS_NOTE = (
    "The same releases under every notion that applies to them. Filled bars hold whatever households do; outlined ones "
    "hold if the model does, and only about what is named beside them."
)
_INTERVAL_NOTE = (
    "The shaded band covers the noise that was added, and nothing else: not missing readings, not days cut at the "
    "clamp, not homes that are not on the roster. Negative values are left as drawn."
)
_TABLE_NOTE = "The figures are those of the table above, with all that the statement says of each."
_AGE_NOTE = (
    "Under the model, what was said about a day says less and less about later ones. It never says less about that day "
    "itself, and real households may remember for longer than the model does."
)
_CORRELATION_NOTE = (
    "Who does today what they did yesterday is told about by the releases of both days. Under the model, this is what "
    "the releases before and behind a day add to its own. Real households may hang together more than the model does."
)


def public_report(
    work: Work,
    ledger: Ledger,
    claim: Mapping[str, Any],
    rows: Sequence[ReleaseRecord],
    contracts: Sequence[ContractRecord],
) -> bytes:
    """Return report.html for a statement and the rows and contracts that it tells of."""
    earlier = series_by_contract(contracts)
    promise = promise_of(contracts[-1].promise, earlier)
    terms = {"promise": promise, "series": earlier[contracts[-1].hash]}
    run = work.run.model_copy(update=terms).following(earlier)  # as they stood, whatever the run file says now
    accounts = [promise, *(account for notion in NOTIONS for account in notion.compared(run))]
    days = len({row.day for row in rows if row.state == "released"})
    means = promise.alternatives(max(days, 1)) if isinstance(promise, Promise) else {}
    known = {one.hash: meaning_of(one.promise) for one in contracts}
    named = known[contracts[-1].hash].get("model", {}).get("hash")
    texts = {model.model: model.envelope for model in ledger.models()}
    envelope = Model.of_text(texts[named]).envelope if named in texts else None
    coverage = work.run.output.interval
    return public_report_page(
        ReportData(claim, rows, known, accounts, envelope, coverage, promise, means, run.publication)
    ).encode()


def public_report_page(told: ReportData) -> str:
    """Return the page."""
    claim = told.claim
    title = title_of(claim)
    figures = labelled_bounds(claim)
    return document(
        title,
        [
            *header_parts(told, title, figures),
            "<main>",
            _released_section(told),
            _losses_section(told, figures),
            *_model_section(told),
            *_leakage_section(told),
            section(
                "The statement, word for word", html_of(markdown(claim), below=2, tables=_TABLE_NOTE), kind="annex"
            ),
            "</main>",
            *_footer(claim),
        ],
    )


def _released_section(told: ReportData) -> str:
    names = series_names(told, "mean")
    parts = [paragraph(_INTERVAL_NOTE, "soft")]
    for name in names:
        parts += series_parts(name, series_rows(told, name, "mean"), coverage=told.coverage, titled=len(names) > 1)
    for name in series_names(told, "distribution"):
        own = series_rows(told, name, "distribution")
        parts += distribution_parts(name, own, told.contracts, coverage=told.coverage)
    return section("What was released", *parts)


def _losses_section(told: ReportData, figures: Sequence[LabelledBound]) -> str:
    found = losses_over_time(told.accounts, told.rows, told.envelope)
    newest = _newest_mean(told)
    sd = None if newest is None else noise.standard_deviation(newest.scale) / (1000.0 * min(newest.households))
    times = noise_factors(told.accounts, told.rows, told.envelope) if newest is not None else {}
    return section(
        "What it says about one household, under every notion",
        paragraph(_NOTIONS_NOTE, "soft"),
        *bounds_table(figures, times, sd_kwh=sd),
        *([_schedules(told, newest)] if newest is not None and told.noise_means else []),
        *growth_parts(figures, found),
        *size_parts(told.accounts, told.rows, told.publication, full_wh=_full_wh(told)),
        *spending_parts(told.rows, told.claim["contract"]["promise"]),
    )


def _newest_mean(told: ReportData) -> ReleaseRecord | None:
    return max(released_means(told), key=lambda row: (row.day, -row.seq), default=None)


def _schedules(told: ReportData, newest: ReleaseRecord) -> str:
    now = told.claim["contract"]["series"]
    series = now.get(newest.series, told.contracts[newest.contract]["series"][newest.series])
    return schedules_table(
        schedule_noise_kwh(
            told.noise_means,
            clamp_wh=watt_hours(Decimal(series["clamp_kwh"])),
            share=float(told.promise.part_of_day(newest.series, Fraction(series["share"]))),
            households=min(newest.households),
        )
    )


def _full_wh(told: ReportData) -> int:
    """Return the largest change that there can be: the largest clamp that there ever was."""
    series = (each for terms in told.contracts.values() for each in terms["series"].values())
    return max(watt_hours(Decimal(each["clamp_kwh"])) for each in series)


def _model_section(told: ReportData) -> Iterator[str]:
    parts = [*model_parts(told.envelope, told.rows)] if told.envelope is not None else []
    if parts:
        yield section("What the model says of age", paragraph(_AGE_NOTE, "soft"), *parts)


def _leakage_section(told: ReportData) -> Iterator[str]:
    promise = told.claim["contract"]["promise"]
    parts = [*leakage_parts(told.envelope, told.rows, promise)] if told.envelope is not None else []
    if parts:
        yield section("What the model says of days that hang together", paragraph(_CORRELATION_NOTE, "soft"), *parts)


def _footer(claim: Mapping[str, Any]) -> Iterator[str]:
    software = ", ".join(f"{name} {version}" for name, version in claim["software"].items())
    yield "<footer>"
    yield f'<p class="soft">Ledger <code>{escape(claim["ledger"]["id"])}</code>, head '
    yield f"<code>{escape(claim['ledger']['head'])}</code>; made by {escape(software)}.</p></footer>"
