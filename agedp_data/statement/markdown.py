"""Statement -> Markdown: STATEMENT.md, the artifact of a run, a part of the report.

Statements of earlier versions lack some keys; the text then leaves out the corresponding sentences.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from agedp_data.messages import escape_controls
from agedp_data.notions.notion import CALIBRATION_DAY_BOUND
from agedp_data.private_selection import quantile_lines
from agedp_data.statement import delta_texts
from agedp_data.statement.delta_texts import is_of_span, promised_caps, with_delta
from agedp_data.statement.document import (
    ContractVersion,
    PublicationDates,
    ReleasedDays,
    StatedBound,
    Statement,
)
from agedp_data.statement.lead import lead_sentences
from agedp_data.statement.model_texts import aside, selection_texts
from agedp_data.statement.odds import INFINITE, short_factor, short_number, short_rest
from agedp_data.statement.series_texts import series_paragraphs
from agedp_data.statement.stated_model import StatedModel
from agedp_data.statement.table_texts import table_paragraphs
from agedp_data.statement.use_texts import accuracy_paragraphs, two_releases_text, use_paragraphs

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
    parts = (
        _head(statement),
        _section("How exact a value is", accuracy_paragraphs(statement)),
        _section("Adding up, averaging, comparing", use_paragraphs(statement)),
        _section("Bounds on the privacy loss", _bounds_table(statement)),
        _section("Draws of the calibration", _draws(statement)),
        _section("What is protected", [statement.protects, statement.from_whom]),
        _section("What is not protected", [_list(statement.not_protected)]),
        _section("Warnings, before you rely on it", [_list(statement.warnings)]),
        _section("The model and its source", _model_texts(statement.model)),
        _section("How long the promise lasts", _ending_texts(statement)),
        _section("One account per household", _household_account(statement)),
        _section("What two releases disclose together", _second_population(statement)),
        _section("How to read the tables", table_paragraphs(statement.contract)),
        _section("How each series was computed", series_paragraphs(statement.contract)),
        _section("The registered contract", _contract_text(statement)),
        _section("How to verify and cite the release", _checking(statement)),
    )
    return escape_controls("\n\n".join(part for part in parts if part) + "\n", has_lines=True)


def _section(title: str, paragraphs: Sequence[str]) -> str:
    non_empty = [paragraph for paragraph in paragraphs if paragraph]
    return "\n\n".join([f"## {title}", *non_empty]) if non_empty else ""


def _list(texts: Sequence[str]) -> str:
    return "\n".join(f"* {text}" for text in texts)


def _head(statement: Statement) -> str:
    notes = [f"**{note}**" for note in statement.notes]
    lead = _list(lead_sentences(statement))
    promise = delta_texts.promise_paragraph(statement.bounds, aside(statement.model_days))
    return "\n\n".join(filter(None, [f"# {statement.full_title}", lead, *notes, _summary(statement), promise]))


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
            calibration = f"epsilon {of_calibration} about any one day from {_draw_periods(statement)}"
            day = f"any one published day, {calibration}, of which a model was drawn"
        text += (
            f" The privacy loss of one household{_by_releases(statement)} is at most epsilon {of_day} about "
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


def _draw_periods(statement: Statement) -> str:
    return " or from ".join(sorted({f"{draw.first_day} to {draw.last_day}" for draw in statement.draws or ()}))


def _by_releases(statement: Statement) -> str:
    if statement.model_days:
        return " by the noisy releases"
    return " by these releases" + (", draws of the calibration included," if statement.draws else "")


def _left_out(statement: Statement) -> str:
    """Return what the first bounds leave out, a part of their sentence."""
    days = statement.model_days
    if not days:
        return ""
    return (
        f"; neither counts the published model, estimated without noise from the days {days}: together with it neither "
        "holds about these days or days like them"
    )


def _days(number: int) -> str:
    return f"{number} day{'s' * (number != 1)}"


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
    return ["\n".join(lines), how_to_read, delta_texts.explanation(statement.bounds, aside(statement.model_days))]


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


def _household_account(statement: Statement) -> list[str]:
    return [] if statement.household_account is None else [statement.household_account.text]


def _second_population(statement: Statement) -> list[str]:
    second = statement.second_population
    if second is None:
        return []
    adds = delta_texts.added_losses(statement.bounds, second.adds, aside(statement.model_days))
    number = second.in_ledger
    count_text = f"{number} other population{'s' * (number != 1)}" if number else "no other population"
    return [two_releases_text(), second.text, f"{adds} This ledger contains {count_text}."]


def _contract_text(statement: Statement) -> list[str]:
    lines = [f"{key} = {value}" for key, value in _leaves(statement.contract.content())]
    return [_list(lines), *_changes(statement.versions)]


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
