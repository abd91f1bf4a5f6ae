"""Statement -> Markdown: STATEMENT.md, the artifact of a run, a part of the report.

Statements of earlier versions lack some keys; the text then leaves out the corresponding sentences.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from decimal import ROUND_CEILING, Context, Decimal
from typing import Any, Final

import pyarrow as pa

from agedp_data.config.contract_document import ContractDocument
from agedp_data.messages import escape_controls
from agedp_data.notions.notion import CALIBRATION_DAY_BOUND, DAY_BOUND, TOTAL_BOUND
from agedp_data.private_selection import quantile_lines
from agedp_data.roster import columns_of
from agedp_data.series.series import BY_NAME, STATISTICS
from agedp_data.statement import note_texts
from agedp_data.statement.datapackage import table_dictionary
from agedp_data.statement.document import (
    ContractVersion,
    PublicationDates,
    ReleasedDays,
    StatedAccuracy,
    StatedBound,
    StatedModel,
    Statement,
)
from agedp_data.statement.note_texts import (
    INFINITE,
    aside,
    is_of_span,
    is_useless_factor,
    promised_caps,
    selection_texts,
    short_factor,
    short_number,
    short_rest,
    with_delta,
)
from agedp_data.statement.series_texts import series_paragraphs

# --------------------------------------------------------------------------------------------------
# The three sentences with which STATEMENT.md, the report and a run begin: what, how strong, what not.
#
# Decisions:
#
# * They follow from the statement alone, with numbers to three digits, rounded up; of usual releases at most 40 words
#   each.
# * The odds are those of an observer who knows all other households: knowledge of one may be knowledge of another.
# * The factor of one day is that of the larger bound of a day: of published days, or of days of a calibration.
# * A factor from a million on is called what it is: practically no protection.
# --------------------------------------------------------------------------------------------------

_PERIODS: Final = {"week": "weekly", "month": "monthly", "year": "yearly", "weekday-month": "monthly"}
_WHAT: Final = (
    "{opening} {contents} of the population {population} for {days}; noise limits what they{model} disclose about one "
    "household to an observer who knows the readings of all others."
)
_NOTHING: Final = "{opening} no value yet: no day of the population {population} is published{skipped}."
_HOW_STRONG: Final = (
    "{subject} observer's odds between two guesses about its use by at most {day} if they differ on one day, and "
    "{total} if on all days."
)
_LIMITS: Final = (
    "Whether a household is in the population is not protected{model}, nor is what other publications add; habits that "
    "show on many days are limited by the second factor only."
)


def lead_sentences(statement: Statement) -> list[str]:
    """Return what was published and protected, how strongly, and what is not promised, in one sentence each."""
    model = ", nor what the model published without noise shows" if statement.model_days else ""
    return [_what(statement), _how_strong(statement), _LIMITS.format(model=model)]


def _what(statement: Statement) -> str:
    days = statement.days
    opening = "This rehearsal contains" if statement.rehearsal else "This folder contains"
    if not days.released:
        skipped = f", {_days(len(days.skipped))} skipped" if days.skipped else ""
        return _NOTHING.format(opening=opening, population=statement.population, skipped=skipped)
    *others, last = _without_repetition(published_contents(statement))
    return _WHAT.format(
        opening=opening,
        contents=f"{', '.join(others)} and {last}" if others else last,
        population=statement.population,
        days=f"{_days(days.released)} ({_span(days)})",
        model=", not the published model," if statement.model_days else "",
    )


def published_contents(statement: Statement) -> list[str]:
    """Return what the series of a statement are, such as "daily averages", without duplicates."""
    contents = {
        (place, every, statistic.CONTENT)
        for place, statistic in enumerate(STATISTICS)
        for series in statement.contract.series.values()
        if series.statistic == statistic.KIND
        for every in [_PERIODS.get(series.every or "day", "daily")]
    }
    return [f"{every} {content}" for _, every, content in sorted(contents)]


def _without_repetition(contents: list[str]) -> list[str]:
    """Return contents of which only the first of those with the same period names it."""
    everies = [text.partition(" ")[0] for text in contents]
    return [
        text if i == 0 or everies[i] != everies[i - 1] else text.partition(" ")[2] for i, text in enumerate(contents)
    ]


def _how_strong(statement: Statement) -> str:
    epsilons = statement.unconditional_epsilons
    of_day = [epsilons[name] for name in (DAY_BOUND, CALIBRATION_DAY_BOUND) if name in epsilons]
    day, total = max(of_day or [INFINITE], key=_number), epsilons.get(TOTAL_BOUND, INFINITE)
    return _HOW_STRONG.format(
        subject="These values change that" if statement.days.released else "Noisy values change an",
        day=_factor(day, "a factor of {}"),
        total=_factor(total, "of {}"),
    )


def _number(epsilon: str) -> float:
    return float("inf") if epsilon == INFINITE else float(epsilon)


def _factor(epsilon: str, words: str) -> str:
    if epsilon == INFINITE:
        return "any factor (no bound, unprotected)"
    remark = ", practically no protection" if is_useless_factor(epsilon) else ""
    return f"{words.format(short_factor(epsilon))} (epsilon {short_number(epsilon)}{remark})"


def _days(number: int) -> str:
    return f"{number} day{'s' * (number != 1)}"


# --------------------------------------------------------------------------------------------------
# Section of STATEMENT.md on the published tables: file, rows and columns of each kind of series in the contract.
#
# The columns and their descriptions are those of the schemas by which the tables are written.
# --------------------------------------------------------------------------------------------------

_LEVEL: Final = "`level`: column of the roster that divides the groups; take one level before adding groups up."
_FURTHER: Final = (
    "Further series of the same kind have files that end with their name, such as `{file}_NAME.parquet`. In a folder "
    "by month each table is a folder whose name ends with the series. `datapackage.json` describes all files and "
    "columns. Tables of weeks, months, years, quantiles and consistent groups follow from the released values alone."
)


def table_paragraphs(contract: ContractDocument) -> list[str]:
    """Return how to read each published table, and where the others are described."""
    kinds = {table.file: table for _, series in sorted(contract.series.items()) for table in [series.parse().table]}
    has_levels = any(len(columns_of(series.by)) > 1 for series in contract.series.values())
    paragraphs = []
    for file, table in kinds.items():
        columns = "\n".join(
            f"* {column}" for column in [*_column_lines(table.schema), *([_LEVEL] if has_levels else [])]
        )
        paragraphs.append(f"`{file}.parquet` has a row for each {table.line_of}:\n\n{columns}")
    return [*paragraphs, _FURTHER.format(file=next(iter(kinds)))]


def _column_lines(schema: pa.Schema) -> Iterator[str]:
    for field in table_dictionary(schema)["fields"]:
        unit = f" [{field['unit']}]" if field.get("unit", "1") != "1" else ""
        description = field["description"].removesuffix(" [-]").removesuffix(f", {field.get('unit')}")
        yield f"`{field['name']}`{unit}: {description}."


# --------------------------------------------------------------------------------------------------
# Sections of STATEMENT.md for those who use the values: their error, sums and means of them, gaps and corrections.
# --------------------------------------------------------------------------------------------------

_MEAN: Final = (
    "`{series}`{group}, {day}: in 95 of 100 cases the published value differs from the true mean by at most {within} "
    "kWh."
)
_COUNT: Final = "`{series}`, {day}: in 95 of 100 cases a count differs from the true count by at most {within}."
_TRUE: Final = (
    "The true value is that of the use as it is counted: up to the clamps, with the stated value for missing readings. "
    "The error contains the noise alone, not what a clamp leaves out. {largest}"
)
_LARGEST: Final = "Groups with more households have a smaller error."
_ANY_DAY_MEAN: Final = (
    "Every other value has its own `noise_sd_kwh` in its row, the standard deviation of the noise. In 95 of 100 cases "
    "its error is at most 2.12 times that. `low_kwh` to `high_kwh` is the interval of that noise, of 95 % unless the "
    "publisher chose another share."
)
_ANY_DAY_COUNT: Final = (
    "Every other count has its own `noise_sd` in its row, the standard deviation of the noise. In 95 of 100 cases its "
    "error is at most about 2.12 of these."
)
_MONTHS: Final = (
    "**Months, not days:** if two days differ by less than {day} kWh, the difference may be noise alone. Draw "
    "conclusions about months then: in 95 of 100 cases the error of a mean of 30 days is at most about {month} kWh."
)
_GROUPS_PRIVACY: Final = (
    "*Groups, privacy:* reading or adding the groups of one series costs nothing more. A household is in one group of "
    "a series on a day, so the groups of a day together have the loss of one group (parallel composition)."
)
_OTHERS_PRIVACY: Final = (
    "*Series, levels and days, privacy:* their losses about one household add up (sequential composition). The table "
    "of bounds below contains these sums."
)
_GROUPS_MEAN: Final = (
    "*Groups, accuracy:* yes, the groups of one column of the roster (one level) may be added up. Add the noisy sums "
    "and divide by the sum of the households; do not add or average the means of groups of different size. The errors "
    "add as squares: the standard deviation of a sum is the root of the sum of the squares. That of a noisy sum is "
    "`noise_sd_kwh` times `households`."
)
_GROUPS_COUNT: Final = (
    "*Groups, accuracy:* yes, counts of the groups of one column of the roster (one level) may be added up. The errors "
    "add as squares: the standard deviation of a sum is the root of the sum of the squares."
)
_DAYS: Final = (
    "*Days:* yes, days may be added up or averaged, for example to a month. The noise of days is independent, so a "
    "mean of n days with equal noise has the standard deviation of a day divided by the root of n: 0.183 of it for 30 "
    "days."
)
_DIFFERENCES: Final = (
    "*Differences of days, groups or years:* the standard deviation of a difference is the root of the sum of both "
    "squares. A difference of less than 2.12 of these standard deviations may be noise alone."
)
_GAPS: Final = (
    "*Missing days:* a day without a row was skipped, is not yet due, or has too few households. {skipped}Do not read "
    "a missing day as 0; averages of a period are of its released days. A household without enough readings on a "
    "released day is another matter: it counts as stated under 'How each series was computed'."
)
_CORRECTIONS: Final = (
    "*Late corrections:* a day is drawn once, with `revision` 0. Readings that arrive or are corrected after the day "
    "was drawn change no published value."
)
_TWO_RELEASES: Final = (
    "Composition: the epsilons of two releases about the same household add up, and their factors multiply. A second "
    "release with epsilon 0.5 for a day adds 0.5 to the bound *day*; over 10 such days it adds 5 to the bound *total*. "
    "Publications of other operators are not counted here."
)
_THREE_DIGITS: Final = Context(prec=3, rounding=ROUND_CEILING)


def accuracy_paragraphs(statement: Statement) -> list[str]:
    """Return how exact a published value is, by the noise alone; nothing for statements that do not state it."""
    entries = statement.accuracy or []
    if not entries:
        return []
    means = [entry for entry in entries if entry.unit == "kWh"]
    has_counts = len(means) < len(entries)
    lines = [_accuracy_line(entry, statement.contract.series[entry.series].every or "day") for entry in entries]
    largest = _LARGEST if any(entry.group not in ("", "all") for entry in means) else ""
    return [
        "\n".join(f"* {line}" for line in lines),
        _TRUE.format(largest=largest).strip(),
        " ".join([*([_ANY_DAY_MEAN] if means else []), *([_ANY_DAY_COUNT] if has_counts else [])]),
        *_months(statement, means),
    ]


def _accuracy_line(entry: StatedAccuracy, every: str) -> str:
    if entry.unit == "households":
        return _COUNT.format(series=entry.series, day=entry.day, within=short_number(entry.within))
    of_group = "" if entry.group in ("", "all") else f" of group {entry.group}"
    group = f"{of_group} ({entry.households:,} {_counted(entry.households, every)})"
    return _MEAN.format(series=entry.series, group=group, day=entry.day, within=short_number(entry.within))


def _counted(number: int, every: str) -> str:
    if every != "day":
        return "household-days"
    return "household" if number == 1 else "households"


def _months(statement: Statement, means: list[StatedAccuracy]) -> Iterator[str]:
    terms = {entry.series: statement.contract.series[entry.series] for entry in means}
    daily_means = [
        name for name, of in terms.items() if of.every in (None, "day") and BY_NAME[of.statistic].has_one_mean()
    ]
    daily = [entry for entry in means if entry.series in daily_means]
    if daily:
        day = max(Decimal(entry.within) for entry in daily)
        change = day * Decimal(2).sqrt()  # of two days, whose noise is independent
        # 1.96 standard deviations contain 95 % of a mean of many values; of one value 2.118 do
        month = _THREE_DIGITS.plus(day * Decimal("1.96") / Decimal("2.118") / Decimal(30).sqrt())
        yield _MONTHS.format(day=short_number(f"{change:f}"), month=f"{month:f}")


def use_paragraphs(statement: Statement) -> list[str]:
    """Return whether groups and days may be added up, how errors add, and what missing days and corrections mean."""
    has_means = any(BY_NAME[series.statistic].unit == "kWh" for series in statement.contract.series.values())
    number = len(statement.days.skipped)
    are = "is" if number == 1 else "are"
    skipped = (
        f"{number} skipped {'day' if number == 1 else 'days'} {are} listed in `statement.json`. " if number else ""
    )
    texts = [
        _GROUPS_PRIVACY,
        _OTHERS_PRIVACY,
        _GROUPS_MEAN if has_means else _GROUPS_COUNT,
        _DAYS,
        _DIFFERENCES,
        _GAPS.format(skipped=skipped),
        _CORRECTIONS,
    ]
    return ["\n".join(f"* {text}" for text in texts)]


def two_releases_text() -> str:
    """Return what two releases about the same household disclose together."""
    return _TWO_RELEASES


# --------------------------------------------------------------------------------------------------
# The whole document.
# --------------------------------------------------------------------------------------------------

_DRAW_COLUMNS = ("drawn", "first day", "last day", "epsilon")
_OF_DRAWS = (
    "Each draw has its *epsilon* about all readings of a household from its first to its last day together. The bounds "
    "above count it: once in the total, once in each window that touches these days, in each of these days, and in "
    "full, not aged and not discounted, in every risk, temporal leakage and discounted sum."
)
_COLUMNS: Final = ("bound", "epsilon", "scope", "holds", "factor", "limit")
_HOW_TO_READ = (
    "*epsilon* bounds a privacy loss. After seeing all releases{draws} in the scope of a row, the odds of an observer "
    "between any two accounts of the household's use in this scope change by at most the *factor* shown, e^epsilon "
    "rounded up. This holds for an observer who knows the readings of all other households, or for whom these contain "
    "nothing about this one.{discounted} The factor of *total* bounds the change by all published days. *limit* is the "
    "most that a bound can reach by further releases under the promise; where it is empty, the promise does not limit "
    "the bound. A bound holds *always*, or *if* its assumption holds{exception}."
)
_DISCOUNTED = "discounted sum"
_OF_DISCOUNTED = (
    " A sum of discounted losses has no factor, because it weights losses and bounds no change of odds by itself."
)
_EXCEPTION = ", and in both cases leaves out a model that is published without noise, as its row says"
_EARLIER_TERMS = (
    "In the recorded sentences of this earlier version, *figure* means bound, *envelope* the leakage bound of a model, "
    "*forget* mix."
)
_EARLIER_TERM = "figure"
_DIGITS = (
    "The table has exact bounds; in sentences and factors numbers are rounded up to three digits. A factor from a "
    "million on is practically no protection."
)
_MIXING_ASSUMPTION = "It is an assumption that these households mix at least as fast as the model."
_SOURCES = {
    "declared": (
        "The model was declared in the run file; nothing computed from the protected readings entered it. "
        f"{_MIXING_ASSUMPTION}"
    ),
    "estimated": (
        "The model was estimated by `agedp calibrate` from protected readings, those of {period}, and is then taken as "
        f"known. {_MIXING_ASSUMPTION}"
    ),
    "private": (
        "The model was drawn by `agedp calibrate` from a public family of curves, by protected readings, those of "
        "{period}. It is an assumption that a household whose estimated chain lies below it mixes as that chain."
    ),
}
_ENDS = {
    "promise": "{last_day} is the last day that the promise permits, if every day is released when it is due.",
    "period": "The period ends with {last_day}, and the promise lasts until then.",
    "broken": "Under a newer model the releases exceed the promise already: nothing more will be released.",
    "promise, over": "The promise ended with {last_day}: the remaining budget permits no further release.",
    "period, over": "The period ended with {last_day}, and the promise lasted until then.",
    "": "The promise does not end within a year of the newest day, if every day is released when it is due.",
}
_CHECKING = (
    "`sha256sum --check SHA256SUMS` in the folder shows, without agedp, whether its files are those that SHA256SUMS "
    "lists. `agedp verify FOLDER` checks this as well, and that values and bounds agree with each other and with this "
    "statement; with `--ledger URL` also that ledger and folder agree. "
    "`datapackage.json` describes the columns of the tables, the JSON schema `statement-2.json` of agedp "
    "(`agedp_data/schemas`) the keys of `statement.json`."
)
_NOT_PROVEN = (
    "Neither proves who made the folder, because it is not signed: compare the head of the ledger with one that the "
    "publisher gave by another way. Neither proves that the readings were right, or that the same days were not "
    "released elsewhere."
)
_CITING = "To cite: {title}{days}{published}, differentially private release of agedp, ledger head {head}."


def markdown(statement: Statement) -> str:
    """Return a statement as Markdown text."""
    notes = [f"**{note}**" for note in statement.notes]
    lead = _list(lead_sentences(statement))
    promise = note_texts.promise_paragraph(statement.bounds, aside(statement.model_days))
    lines = [f"{key} = {value}" for key, value in _leaves(statement.contract.content())]
    account = statement.household_account
    parts = (
        "\n\n".join(filter(None, [f"# {statement.full_title}", lead, *notes, _summary(statement), promise])),
        _section("How exact a value is", accuracy_paragraphs(statement)),
        _section("Adding up, averaging, comparing", use_paragraphs(statement)),
        _section("Bounds on the privacy loss", _bounds_table(statement)),
        _section("Draws of the calibration", _draws(statement)),
        _section("What is protected", [statement.protects, statement.from_whom]),
        _section("What is not protected", [_list(statement.not_protected)]),
        _section("Warnings, before you rely on it", [_list(statement.warnings)]),
        _section("The model and its source", _model_texts(statement.model)),
        _section("How long the promise lasts", _ending_texts(statement)),
        _section("One account per household", [] if account is None else [account.text]),
        _section("What two releases disclose together", _second_population(statement)),
        _section("How to read the tables", table_paragraphs(statement.contract)),
        _section("How each series was computed", series_paragraphs(statement.contract)),
        _section("The registered contract", [_list(lines), *_changes(statement.versions)]),
        _section("How to verify and cite the release", _checking(statement)),
    )
    return escape_controls("\n\n".join(part for part in parts if part) + "\n", has_lines=True)


def _section(title: str, paragraphs: Sequence[str]) -> str:
    non_empty = [paragraph for paragraph in paragraphs if paragraph]
    return "\n\n".join([f"## {title}", *non_empty]) if non_empty else ""


def _list(texts: Sequence[str]) -> str:
    return "\n".join(f"* {text}" for text in texts)


def _summary(statement: Statement) -> str:
    days, published, epsilons = statement.days, statement.published, statement.unconditional_epsilons
    if not days.released:
        return f"No day of {statement.population} is published; {_skipped(days)}."
    skipped = f"; {_skipped(days)}" if days.skipped else ""
    text = (
        f"{_days(days.released)} of {statement.population} ({_span(days)}), published "
        f"{'on' if published.first == published.last else 'from'} {_span(published)}{skipped}."
    )
    if {"day", "total"} <= epsilons.keys():
        day, of_day, total = "any one day", short_number(epsilons["day"]), short_number(epsilons["total"])
        if CALIBRATION_DAY_BOUND in epsilons:
            of_calibration = short_number(epsilons[CALIBRATION_DAY_BOUND])
            periods = sorted({f"{draw.first_day} to {draw.last_day}" for draw in statement.draws or ()})
            calibration = f"epsilon {of_calibration} about any one day from {' or from '.join(periods)}"
            day = f"any one published day, {calibration}, of which a model was drawn"
        draws = ", draws of the calibration included," if statement.draws else ""
        releases = " by the noisy releases" if statement.model_days else f" by these releases{draws}"
        text += (
            f" The privacy loss of one household{releases} is at most epsilon {of_day} about "
            f"{day}, and at most epsilon {total} about all its days (composition)"
            f"{_total_with_delta(statement)}{_left_out(statement)}."
        )
    if statement.has_model:
        text += " Bounds marked *if* rest on an assumption: a model of how fast households mix."
    return text


def _total_with_delta(statement: Statement) -> str:
    """Return the first bound on all days with a delta, a part of a sentence; "" without one."""
    total = next((bound for bound in filter(is_of_span, statement.bounds) if bound.name.startswith("total")), None)
    return (
        ""
        if total is None
        else f", or epsilon {short_number(total.epsilon)}{with_delta(total.delta)}, as explained below"
    )


def _left_out(statement: Statement) -> str:
    """Return what the first bounds leave out, a part of their sentence."""
    days = statement.model_days
    if not days:
        return ""
    return (
        f"; neither counts the published model, estimated without noise from the days {days}: together with it neither "
        "holds about these days or days like them"
    )


def _skipped(days: ReleasedDays) -> str:
    return f"{_days(len(days.skipped))} skipped without a release"


def _span(dates: ReleasedDays | PublicationDates) -> str:
    return dates.first if dates.first == dates.last else f"{dates.first} to {dates.last}"


def _bounds_table(statement: Statement) -> list[str]:
    lines = [_line(_COLUMNS), _line(["---"] * len(_COLUMNS)), *(_line(_cells(bound)) for bound in statement.bounds)]
    recorded = [statement.protects, *statement.warnings, *statement.not_protected]
    terms = [_EARLIER_TERMS] if any(_EARLIER_TERM in text for text in recorded) else []
    exception = _EXCEPTION if statement.model_days else ""
    draws = " and draws" if statement.draws else ""
    discounted = _OF_DISCOUNTED if any(bound.name.startswith(_DISCOUNTED) for bound in statement.bounds) else ""
    how_to_read = " ".join(
        [_HOW_TO_READ.format(exception=exception, draws=draws, discounted=discounted), _DIGITS, *terms]
    )
    return ["\n".join(lines), how_to_read, note_texts.explanation(statement.bounds, aside(statement.model_days))]


def _draws(statement: Statement) -> list[str]:
    if not statement.draws:
        return []
    lines = [_line(_DRAW_COLUMNS), _line(["---"] * len(_DRAW_COLUMNS))]
    lines += [_line([draw.asked, draw.first_day, draw.last_day, draw.epsilon]) for draw in statement.draws]
    return ["\n".join(lines), _OF_DRAWS]


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _cells(bound: StatedBound) -> list[str]:
    """Return a row with exact numbers: agedp 0.1 looks for them, and a limit that is rounded up is none."""
    factor = short_factor(bound.epsilon) if bound.factor and bound.epsilon != INFINITE else bound.factor
    return [bound.name, bound.epsilon, bound.scope, bound.holds, factor, bound.limit]


def _model_texts(model: StatedModel) -> list[str]:
    if not model.content():
        return []
    period = " to ".join(model.period) if model.period else "an earlier period"
    source = _SOURCES.get(model.publish or model.source or "", "").format(period=period)
    selection = [" ".join(selection_texts(model.content()))] if model.publish == "private" else []
    selection += quantile_lines(model.content())
    basis = f"Source: {model.basis}" if model.basis is not None else ""
    settings = {key: value for key, value in model.content().items() if key != "draws"}
    return [source, *selection, basis, _list([f"{key} = {value}" for key, value in _leaves(settings)])]


def _ending_texts(statement: Statement) -> list[str]:
    ending, terms = statement.ending, statement.contract.promise
    if ending is None:
        return []
    capped = ending.remaining != "unlimited"
    day = f"No day that is still to be released uses more than max_day_epsilon = {terms.max_day_epsilon}"
    delta = with_delta(ending.delta)
    total = [f"the composed loss of all days beyond epsilon_total = {terms.epsilon_total}{delta}"] if capped else []
    capped_spans = " or ".join([*promised_caps(statement.bounds), *total])
    spans = f", and no release takes {capped_spans}" if capped_spans else ""
    beside = aside(statement.model_days)
    caps = (
        f"{day}{spans}, whatever the model, age or discount allows{beside}."
        f"{'' if capped else ' The composed loss of all days has no cap.'}"
    )
    draws = " and of the draws of the calibration" if statement.draws else ""
    remains = "is left until it reaches the bound" if delta else "remains"  # losses with a delta do not add up
    spent = f"The composed loss of all days so far{draws} is epsilon {short_number(ending.spent)}{delta}" + (
        f"; epsilon {short_rest(ending.remaining)} {remains}{beside}." if capped else f"{beside}."
    )
    over = ", over" if statement.is_over and ending.reason != "broken" else ""
    return [caps, f"{spent} {_ENDS[ending.reason + over].format(last_day=ending.last_day)}"]


def _second_population(statement: Statement) -> list[str]:
    second = statement.second_population
    if second is None:
        return []
    adds = note_texts.added_losses(statement.bounds, second.adds, aside(statement.model_days))
    number = second.in_ledger
    count_text = f"{number} other population{'s' * (number != 1)}" if number else "no other population"
    return [two_releases_text(), second.text, f"{adds} This ledger contains {count_text}."]


def _changes(versions: Sequence[ContractVersion]) -> Iterator[str]:
    for number, version in enumerate(versions, 1):
        if version.changes:
            yield f"Version {number}, registered on {version.registered}, changed:\n\n" + _list(version.changes)


def _checking(statement: Statement) -> list[str]:
    ledger = f"Ledger {statement.ledger.id[:16]}, head `{statement.ledger.head}`."
    credits = " · ".join(filter(None, (statement.source, statement.licence, statement.contact)))
    cite = _CITING.format(
        title=statement.full_title,
        days=f", {_span(statement.days)}" if statement.days.released else "",
        published=f", published {statement.published.last}" if statement.published.last else "",
        head=statement.ledger.head[:16],
    )
    return [_CHECKING, _NOT_PROVEN, ledger, cite, credits]


def _leaves(value: Any, key: str = "") -> list[tuple[str, Any]]:  # noqa: ANN401  (any JSON)
    if isinstance(value, Mapping):
        return [leaf for name in sorted(value) for leaf in _leaves(value[name], f"{key}.{name}" if key else name)]
    return [(key, ", ".join(map(_item_text, value)) if isinstance(value, list | tuple) else value)]


def _item_text(item: Any) -> str:  # noqa: ANN401  (any JSON)
    if isinstance(item, Mapping):
        return f"({', '.join(f'{name} {_item_text(value)}' for name, value in item.items())})"
    return f"({' '.join(map(_item_text, item))})" if isinstance(item, list | tuple) else str(item)
