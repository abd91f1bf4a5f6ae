"""LEDGER -> report.html: the release for people, on one page that asks the network for nothing. Public.

Made of the statement, the ledger's rows, the run file and the model's public part alone, so that the same head and the
same software give the same bytes, and nothing of a reading can show. The page as it stood at an earlier statement is
made of what the ledger held then: its rows, its promise, its model.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from html import escape
from typing import Any

from agedp_data import noise
from agedp_data.chains.envelope import Envelope
from agedp_data.config.contracts import promise_of
from agedp_data.config.series import Distribution, series_in
from agedp_data.ledger import Contract, Ledger, Release
from agedp_data.notions import NOTIONS
from agedp_data.notions.notion import Account, Notion, Promise
from agedp_data.notions.parameters import watt_hours
from agedp_data.notions.publication import Publication
from agedp_data.pictures.page import document, in_short, paragraph, section
from agedp_data.pictures.scales import plain
from agedp_data.pictures.words import html_of
from agedp_data.statement import markdown
from agedp_data.statement_words import title_of
from pipelines.promise.in_force import series_by_contract
from pipelines.reports.courses import courses, noise_of, noise_times
from pipelines.reports.distributions import distribution_parts
from pipelines.reports.leakage import leakage_parts
from pipelines.reports.losses import Lettered, at_most, figures_table, growth, lettered, odds, prices, spending
from pipelines.reports.model import model_parts
from pipelines.reports.series import percent, series_parts
from pipelines.reports.sizes import size_parts
from pipelines.work import Work

_EPSILON = (
    "Epsilon says how much of one household can show: everything released changes the odds of any guess about it by a "
    "factor e^epsilon at most, 1.1 at epsilon .1, 2.7 at 1, 22,000 at 10. Small is private; a figure far above 10 "
    "promises little, and says so."
)
_SAME = (
    "The same releases under every notion that applies to them. Filled bars hold whatever households do; outlined ones "
    "hold if the model does, and only about what is named beside them."
)
_INTERVAL = (
    "The shaded band covers the noise that was added, and nothing else: not missing readings, not days cut at the "
    "clamp, not homes that are not on the roster. Negative values are left as drawn."
)
_LEFT = (
    "Under the model, what was said about a day says less and less about later ones. It never says less about that day "
    "itself, and real households may remember for longer than the model does."
)
_HANGING = (
    "Who does today what they did yesterday is told about by the releases of both days. Under the model, this is what "
    "the releases before and behind a day add to its own. Real households may hang together more than the model does."
)

_BECAUSE = {
    "promise": "then the promise is used up",
    "period": "the last day of its period",
    "broken": "a newer model stops it",
}


@dataclass(frozen=True, slots=True)
class Told:
    """What a page is made of: the statement, the rows that it is about, and what accounts for them.

    `contracts` are the texts of all contracts by hash, oldest first; `noise_means` gives by schedule the mean noise
    scale as a multiple of the clamp, the promised one first.
    """

    claim: Mapping[str, Any]
    rows: Sequence[Release]
    contracts: Mapping[str, Mapping[str, Any]]
    accounts: Sequence[Account]
    envelope: Envelope | None
    coverage: Decimal
    promise: Notion
    noise_means: Mapping[str, float]
    publication: Publication = field(default_factory=Publication)


def report_of(
    work: Work, ledger: Ledger, claim: Mapping[str, Any], rows: Sequence[Release], contracts: Sequence[Contract]
) -> bytes:
    """Return report.html for a statement and the rows and contracts that it tells of."""
    earlier = series_by_contract(contracts)
    promise = promise_of(contracts[-1].promise, earlier)
    terms = {"promise": promise, "series": earlier[contracts[-1].hash]}
    run = work.run.model_copy(update=terms).following(earlier)  # as they stood, whatever the run file says now
    accounts = [promise, *(account for notion in NOTIONS for account in notion.compared(run))]
    days = len({row.day for row in rows if row.state == "released"})
    means = promise.alternatives(max(days, 1)) if isinstance(promise, Promise) else {}
    known = {one.hash: json.loads(one.promise) for one in contracts}
    named = known[contracts[-1].hash].get("model", {}).get("hash")
    texts = {model.model: model.envelope for model in ledger.models()}
    envelope = Envelope.from_json(json.loads(texts[named])["envelope"]) if named in texts else None
    coverage = work.run.output.interval
    return page(Told(claim, rows, known, accounts, envelope, coverage, promise, means, run.publication)).encode()


def page(told: Told) -> str:
    """Return the page."""
    claim = told.claim
    title = title_of(claim)
    figures = lettered(claim)
    return document(
        title,
        [
            *_header(told, title, figures),
            "<main>",
            _released(told),
            _losses(told, figures),
            *_prices(told, figures),
            *_model(told),
            *_leakage(told),
            section("The statement, word for word", html_of(markdown(claim), below=2)),
            "</main>",
            *_footer(claim),
        ],
    )


def _header(told: Told, title: str, figures: Sequence[Lettered]) -> Iterator[str]:
    claim = told.claim
    days, published = claim["days"], claim["published"]
    yield f"<header><h1>{escape(title)}</h1>"
    yield from (f'<p class="mark">{escape(note)}</p>' for note in claim["notes"])
    if days["released"]:
        when = _span(published["first"], published["last"])
        yield paragraph(
            f"{_what(told)}, day by day, of the population {claim['population']}, released with noise that protects "
            f"each household. Published {when}.",
            "soft",
        )
    else:
        yield paragraph(f"Nothing is released to the population {claim['population']} yet.")
    yield in_short([*_facts(told, figures)])
    yield paragraph(_EPSILON, "soft")
    yield "</header>"


def _what(told: Told) -> str:
    means, counts = _names(told, "mean"), _names(told, "distribution")
    if not means:
        return "How many homes used how much electricity"
    return "Mean electricity use of a home" + (", and how many homes used how much" if counts else "")


def _span(first: str, last: str) -> str:
    return f"on {first}" if first == last else f"from {first} to {last}"


def _facts(told: Told, figures: Sequence[Lettered]) -> Iterator[tuple[str, str, str]]:
    days = told.claim["days"]
    skipped = f"; {len(days['skipped'])} skipped" if days["skipped"] else ""
    yield (
        "days released",
        f"{days['released']:,}",
        f"{days['first']} to {days['last']}{skipped}" if days["first"] else "",
    )
    counted = [*_counted(told)]
    if counted:
        homes = [number for number, _ in counted]
        yield "homes counted", _range(homes), "on the roster, by day" if min(homes) < max(homes) else "on the roster"
    released = _means(told)
    if released:
        newest = max(released, key=lambda row: (row.day, -row.seq))
        wide = noise.interval(newest.scale, told.coverage) / (1000.0 * min(newest.households))
        of = f", {newest.series}" if len(_names(told, "mean")) > 1 else ""
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
            yield what, f"ε\u00a0{at_most(one)}", f"odds {odds(one.epsilon)}, always"

    ending = told.claim.get("ending", {})
    if ending.get("last_day"):
        yield "goes on until", ending["last_day"], _BECAUSE.get(ending["because"], "")


def _range(numbers: Sequence[int]) -> str:
    low, high = min(numbers), max(numbers)
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


def _names(told: Told, statistic: str) -> list[str]:
    """Return the series that are or were of a statistic, in the order of their first release."""
    known = [
        name
        for terms in told.contracts.values()
        for name, series in terms["series"].items()
        if series["statistic"] == statistic
    ]
    return list(dict.fromkeys([*(row.series for row in told.rows if _is(told, row, statistic)), *known]))


def _is(told: Told, row: Release, statistic: str) -> bool:
    return bool(told.contracts[row.contract]["series"][row.series]["statistic"] == statistic)


def _rows(told: Told, name: str, statistic: str) -> list[Release]:
    return [row for row in told.rows if row.series == name and _is(told, row, statistic)]


def _means(told: Told) -> list[Release]:
    names = _names(told, "mean")
    return [row for row in _rows(told, names[0], "mean") if row.state == "released"] if names else []


def _counted(told: Told) -> Iterator[tuple[int, Release]]:
    """Yield the homes of each release of one series: a mean, or else a distribution, every group of it once."""
    for row in _means(told):
        yield sum(row.households), row
    if not _names(told, "mean"):
        for name in _names(told, "distribution")[:1]:
            for row in _rows(told, name, "distribution"):
                series = series_in(told.contracts[row.contract]["series"][name])
                if row.state == "released" and isinstance(series, Distribution):
                    yield sum(row.households) // len(series.ranges_kwh), row


def _released(told: Told) -> str:
    names = _names(told, "mean")
    parts = [paragraph(_INTERVAL, "soft")]
    for name in names:
        parts += series_parts(name, _rows(told, name, "mean"), coverage=told.coverage, titled=len(names) > 1)
    for name in _names(told, "distribution"):
        own = _rows(told, name, "distribution")
        parts += distribution_parts(name, own, told.contracts, coverage=told.coverage)
    return section("What was released", *parts)


def _losses(told: Told, figures: Sequence[Lettered]) -> str:
    found = courses(told.accounts, told.rows, told.envelope)
    return section(
        "What it says about one household, under every notion",
        paragraph(_SAME, "soft"),
        figures_table(figures),
        *growth(figures, found),
        *size_parts(told.accounts, told.rows, told.publication, full_wh=_full_wh(told)),
        *spending(told.rows, told.claim["contract"]["promise"]),
    )


def _full_wh(told: Told) -> int:
    """Return the largest change that there can be: the largest clamp that there ever was."""
    series = (each for terms in told.contracts.values() for each in terms["series"].values())
    return max(watt_hours(Decimal(each["clamp_kwh"])) for each in series)


def _prices(told: Told, figures: Sequence[Lettered]) -> Iterator[str]:
    released = _means(told)
    if not released:
        return
    newest = max(released, key=lambda row: (row.day, -row.seq))
    sd = noise.standard_deviation(newest.scale) / (1000.0 * min(newest.households))
    now = told.claim["contract"]["series"]
    series = now.get(newest.series, told.contracts[newest.contract]["series"][newest.series])
    schedules = noise_of(
        told.noise_means,
        clamp_wh=watt_hours(Decimal(series["clamp_kwh"])),
        share=float(told.promise.part_of_day(newest.series, Fraction(series["share"]))),
        households=min(newest.households),
    )
    times = noise_times(told.accounts, told.rows, told.envelope)
    parts = [*prices(figures, times, sd_kwh=sd, schedules=schedules)]
    if parts:
        yield section("What each promise would have cost in noise", *parts)


def _model(told: Told) -> Iterator[str]:
    parts = [*model_parts(told.envelope, told.rows)] if told.envelope is not None else []
    if parts:
        yield section("What the model says of age", paragraph(_LEFT, "soft"), *parts)


def _leakage(told: Told) -> Iterator[str]:
    promise = told.claim["contract"]["promise"]
    parts = [*leakage_parts(told.envelope, told.rows, promise)] if told.envelope is not None else []
    if parts:
        yield section("What the model says of days that hang together", paragraph(_HANGING, "soft"), *parts)


def _footer(claim: Mapping[str, Any]) -> Iterator[str]:
    software = ", ".join(f"{name} {version}" for name, version in claim["software"].items())
    yield "<footer>"
    yield f'<p class="soft">Ledger <code>{escape(claim["ledger"]["id"])}</code>, head '
    yield f"<code>{escape(claim['ledger']['head'])}</code>; made by {escape(software)}.</p></footer>"
