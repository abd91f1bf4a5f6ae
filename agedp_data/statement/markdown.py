"""Statement -> Markdown: STATEMENT.md, the artifact of a run, a part of the report.

Statements of earlier versions lack some keys; the text then leaves out the corresponding sentences.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any

from agedp_data.config.contract_document import Contract, SeriesTerms
from agedp_data.config.model_section import contract_states
from agedp_data.notions import NOTIONS, Promise
from agedp_data.notions.notion import CALIBRATION_DAY_BOUND
from agedp_data.parameters import exact_text
from agedp_data.private_selection import private_quantiles
from agedp_data.statement import delta_texts
from agedp_data.statement.consistency_text import consistency_texts
from agedp_data.statement.delta_texts import is_of_span, promised_caps, with_delta
from agedp_data.statement.document import (
    ContractVersion,
    PublicationDates,
    ReleasedDays,
    StatedBound,
    Statement,
)
from agedp_data.statement.layer_texts import layers_texts, upper_layer_text
from agedp_data.statement.model_texts import aside, selection_texts
from agedp_data.statement.stated_model import StatedModel

_MEAN = "mean daily use of the households"
_RANGES = (
    "Ranges in kWh: {bins}; each from one number to below the next, the last one including its end. Noise is added to "
    "each count (discrete Laplace, scale = "
)
_DRAWN = ". Counts are published as drawn: whole numbers that may be negative and need not "
_COUNTS = {
    "histogram": f"{_RANGES}2 / epsilon: a household whose use changes leaves one range for another){_DRAWN}add up",
    "cumulative": (
        "Each count is of the households below an end; the last one, of all households, is known and not drawn. "
        f"{_RANGES}number of counts / epsilon: a household whose use changes may change each by one){_DRAWN}increase"
    ),
}

_DRAW_COLUMNS = ("drawn", "first day", "last day", "epsilon")
_OF_DRAWS = (
    "Each draw has its *epsilon* about all readings of a household from its first to its last day together. The bounds "
    "above count it: once in the total, once in each window that touches these days, in each of these days, and in "
    "full, not aged and not discounted, in every risk, temporal leakage and discounted sum."
)
_COLUMNS = ("bound", "epsilon", "scope", "holds", "factor", "limit")
_HOW_TO_READ = (
    "*epsilon* bounds a privacy loss: after seeing all releases{draws} in the scope of a row, the odds of an observer "
    "between any two accounts of what the row is about change by at most the *factor* shown, e^epsilon rounded up. "
    "This is so for an observer who knows the readings of all other households, or to whom these tell nothing of this "
    "one. A sum of discounted losses has no factor: it weights losses and bounds no change of odds by itself; the "
    "factor of *total* bounds the change by all published days. *limit* is the upper bound over future releases under "
    "the promise; where it is empty, the promise does not limit the bound. A bound holds *always*, or *if* its "
    "assumption holds{exception}."
)
_EXCEPTION = ", and in both cases leaves out a model that is published without noise, as its row says"
_RECORDED_TERMS = "In recorded sentences, *figure* means bound"
_RECORDED_MODEL_TERMS = ", *envelope* the leakage bound of a model, *forget* mix"
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
    "`agedp verify FOLDER` checks that every file is unchanged since publication, and that values and bounds agree "
    "with each other and with this statement; with `--ledger URL` also that ledger and folder agree. "
    "`datapackage.json` describes the columns of the tables, the JSON schema `statement-2.json` of agedp "
    "(`agedp_data/schemas`) the keys of `statement.json`."
)


def markdown(statement: Statement) -> str:
    """Return a statement as Markdown text."""
    parts = (
        _head(statement),
        _section("Bounds on the privacy loss", _bounds_table(statement)),
        _section("Draws of the calibration", _draws(statement)),
        _section("What is protected", [statement.protects, statement.from_whom]),
        _section("What is not protected", [_list(statement.not_protected)]),
        _section("Warnings, before you rely on it", [_list(statement.warnings)]),
        _section("The model and its source", _model_texts(statement.model)),
        _section("How long the promise lasts", _ending_texts(statement)),
        _section("One account per household", _household_account(statement)),
        _section("What a second population would add", _second_population(statement)),
        _section("How each series was computed", _series(statement.contract)),
        _section("The registered contract", _contract_text(statement)),
        _section("How to verify the release", _checking(statement)),
    )
    return "\n\n".join(part for part in parts if part) + "\n"


def _section(title: str, paragraphs: Sequence[str]) -> str:
    non_empty = [paragraph for paragraph in paragraphs if paragraph]
    return "\n\n".join([f"## {title}", *non_empty]) if non_empty else ""


def _list(texts: Sequence[str]) -> str:
    return "\n".join(f"* {text}" for text in texts)


def _head(statement: Statement) -> str:
    notes = [f"**{note}**" for note in statement.notes]
    promise = delta_texts.promise_paragraph(statement.bounds, aside(_envelope_days(statement)))
    return "\n\n".join(filter(None, [f"# {statement.full_title}", *notes, _summary(statement), promise]))


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
        day = "any one day"
        if CALIBRATION_DAY_BOUND in epsilons:
            calibration = f"epsilon {epsilons[CALIBRATION_DAY_BOUND]} about any one day from {_draw_periods(statement)}"
            day = f"any one published day, {calibration}, of which a model was drawn"
        text += (
            f" The privacy loss of one household{_by_releases(statement)} is at most epsilon {epsilons['day']} about "
            f"{day}, and at most epsilon {epsilons['total']} about all its days (composition)"
            f"{_total_with_delta(statement)}{_left_out(statement)}."
        )
    if statement.has_model:
        text += " Bounds marked *if* rest on an assumption: a model of how fast households mix."
    return text


def _total_with_delta(statement: Statement) -> str:
    """Return the first bound on all days with a delta, a part of a sentence; "" without one."""
    total = next((bound for bound in filter(is_of_span, statement.bounds) if bound.name.startswith("total")), None)
    return "" if total is None else f", or epsilon {total.epsilon}{with_delta(total.delta)}, as explained below"


def _draw_periods(statement: Statement) -> str:
    return " or from ".join(sorted({f"{draw.first_day} to {draw.last_day}" for draw in statement.draws or ()}))


def _by_releases(statement: Statement) -> str:
    if _envelope_days(statement):
        return " by the noisy releases"
    return " by these releases" + (", draws of the calibration included," if statement.draws else "")


def _left_out(statement: Statement) -> str:
    """Return what the first bounds leave out, a part of their sentence."""
    days = _envelope_days(statement)
    if not days:
        return ""
    return (
        f"; neither counts the published model, estimated without noise from the days {days}: together with it neither "
        "holds about these days or days like them"
    )


def _envelope_days(statement: Statement) -> str:
    return next((bound.conditional_days for bound in statement.bounds if bound.conditional_days), "")


def _days(number: int) -> str:
    return f"{number} day{'s' * (number != 1)}"


def _skipped(days: ReleasedDays) -> str:
    return f"{_days(len(days.skipped))} skipped without a release"


def _span(dates: ReleasedDays | PublicationDates) -> str:
    return dates.first if dates.first == dates.last else f"{dates.first} to {dates.last}"


def _bounds_table(statement: Statement) -> list[str]:
    lines = [_line(_COLUMNS), _line(["---"] * len(_COLUMNS)), *(_line(_cells(bound)) for bound in statement.bounds)]
    terms = f"{_RECORDED_TERMS}{_RECORDED_MODEL_TERMS if statement.has_model else ''}."
    exception = _EXCEPTION if _envelope_days(statement) else ""
    draws = " and draws" if statement.draws else ""
    how_to_read = f"{_HOW_TO_READ.format(exception=exception, draws=draws)} {terms}"
    return ["\n".join(lines), how_to_read, delta_texts.explanation(statement.bounds, aside(_envelope_days(statement)))]


def _draws(statement: Statement) -> list[str]:
    if not statement.draws:
        return []
    lines = [_line(_DRAW_COLUMNS), _line(["---"] * len(_DRAW_COLUMNS))]
    lines += [_line([draw.asked, draw.first_day, draw.last_day, draw.epsilon]) for draw in statement.draws]
    return ["\n".join(lines), _OF_DRAWS]


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _cells(bound: StatedBound) -> list[str]:
    return [bound.name, bound.epsilon, bound.scope, bound.holds, bound.factor, bound.limit]


def _model_texts(model: StatedModel) -> list[str]:
    if not model.content():
        return []
    period = " to ".join(model.period) if model.period else "an earlier period"
    source = _SOURCES.get(model.publish or model.source or "", "").format(period=period)
    selection = [" ".join(selection_texts(model.content()))] if model.publish == "private" else []
    selection += [f"{quantile['text']}: {quantile['value']}." for quantile in private_quantiles(model.content())]
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
    beside = aside(_envelope_days(statement))
    caps = (
        f"{day}{spans}, whatever the model, age or discount allows{beside}."
        f"{'' if capped else ' The composed loss of all days has no cap.'}"
    )
    draws = " and of the draws of the calibration" if statement.draws else ""
    remains = "is left until it reaches the bound" if delta else "remains"  # losses with a delta do not add up
    spent = f"The composed loss of all days so far{draws} is epsilon {ending.spent}{delta}" + (
        f"; epsilon {ending.remaining} {remains}{beside}." if capped else f"{beside}."
    )
    over = ", over" if statement.is_over and ending.reason != "broken" else ""
    return [caps, f"{spent} {_ENDS[ending.reason + over].format(last_day=ending.last_day)}"]


def _household_account(statement: Statement) -> list[str]:
    return [] if statement.household_account is None else [statement.household_account.text]


def _second_population(statement: Statement) -> list[str]:
    second = statement.second_population
    if second is None:
        return []
    adds = delta_texts.added_losses(statement.bounds, second.adds, aside(_envelope_days(statement)))
    number = second.in_ledger
    count_text = f"{number} other population{'s' * (number != 1)}" if number else "no other population"
    return [second.text, f"{adds} This ledger contains {count_text}."]


def _series(contract: Contract) -> list[str]:
    small = (
        f"A day, or a group, with fewer than {contract.population.min_households} households on the roster is never "
        "released."
    )
    terms = contract.promise
    shared = {notion.name: notion.shared_quantity for notion in NOTIONS}.get(terms.notion, Promise.shared_quantity)(
        terms.content()
    )
    states = _states_text(contract) if any(series.values == "states" for series in contract.series.values()) else ""
    readings = "hours" if contract.input.interval_minutes == 60 else "half-hours"
    texts = [_series_text(name, series, shared, states, readings) for name, series in sorted(contract.series.items())]
    return [_list(texts), *layers_texts(contract), *consistency_texts(contract), small]


def _states_text(contract: Contract) -> str:
    """Return the sentences on public states and their representative values, "" without such states."""
    states = contract_states(contract.content())
    if states is None:
        return ""
    edges, values_kwh = (
        ", ".join(exact_text(Decimal(wh) / 1000) for wh in values_wh)
        for values_wh in (states.edges_wh, states.representative_values_wh)
    )
    quantity = "each half-hour" if states.step == "half-hour" else "the day's use"
    return (
        f". States are counted, not readings: {quantity} counts as the representative value of its state, the middle "
        f"of the range that it lies in. The ranges begin at 0, {edges} kWh; each ends where the next begins, and the "
        f"last has no end. Their representative values are {values_kwh} kWh"
    )


def _series_text(name: str, series: SeriesTerms, shared: str, states: str, readings: str) -> str:
    is_distribution, range_name = series.statistic == "distribution", "clamp" if series.above_kwh is None else "width"
    if series.above_kwh is None:
        text = f"{name}: {'number of households by range of daily use' if is_distribution else _MEAN}"
        text += f", by {series.by} of the roster" if series.by is not None else ""
        text += f"; a household's daily total counts at most {series.clamp_kwh} kWh (clamp)"
    else:
        text = upper_layer_text(name, series)
    if series.max_missing is not None:
        text += f", and {series.missing_kwh} kWh if more than {series.max_missing} of its {readings} have no reading"
    if series.values == "states":
        text += states
    if is_distribution:
        text += f". {_COUNTS.get(series.form or '', '').format(bins=', '.join(series.bins_kwh or ()))}"
    else:
        text += (
            f". Noise is added to the sum, in whole watt-hours (discrete Laplace, scale = {range_name} / epsilon), and "
            "the noisy sum is divided by the number of households on the roster. Values below 0 are published as drawn"
        )
    share = f" The share of the series is {series.share} of {shared}." if series.share != "1" else ""
    return f"{text}.{share}"


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
    return [_CHECKING, ledger, credits]


def _leaves(value: Any, key: str = "") -> list[tuple[str, Any]]:  # noqa: ANN401  (any JSON)
    if isinstance(value, Mapping):
        return [leaf for name in sorted(value) for leaf in _leaves(value[name], f"{key}.{name}" if key else name)]
    return [(key, ", ".join(map(_item_text, value)) if isinstance(value, list | tuple) else value)]


def _item_text(item: Any) -> str:  # noqa: ANN401  (any JSON)
    if isinstance(item, Mapping):
        return f"({', '.join(f'{name} {_item_text(value)}' for name, value in item.items())})"
    return f"({' '.join(map(_item_text, item))})" if isinstance(item, list | tuple) else str(item)
