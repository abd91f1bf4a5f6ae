"""Statement -> Markdown: STATEMENT.md, the artifact of a run, a part of the report.

The template `template.md` has the sentences: a page for everybody, then an annex. Here are the facts that they
fill in, with numbers in three digits, rounded up.

Decisions:

* The three sentences that STATEMENT.md, the report and a run begin with follow from the statement alone; of usual
  releases they have at most 40 words each. The odds are those of an observer who knows all other households. The factor
  of one day is that of the larger bound of a day: of published days, or of days of a calibration.
* What a series counts is a row of a table for each contract by which it was released, so that each number stands beside
  the days that it holds for. The prose about a statistic is its own (`Series.stated`) and has no number.
* Title, source, licence and contact are the publisher's words, and those of a stranger in a folder that was received.
  They are shown as they are written: what Markdown would make HTML, a link or an image of is escaped. Plain words stay.
* Statements of earlier versions lack some keys; the text then leaves out the corresponding sentences.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import date
from decimal import Decimal
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from agedp_data import yardstick
from agedp_data.config.contract_document import ContractDocument
from agedp_data.epsilon import exact_text, round_nano, rounded_up
from agedp_data.messages import escape_controls, percent_text, sentence_start
from agedp_data.notions.notion import CALIBRATION_DAY_BOUND, DAY_BOUND, TOTAL_BOUND
from agedp_data.roster import PATH_SEPARATOR, columns_of, columns_text
from agedp_data.series.consistency import Columns, next_coarser, totals_with_groups
from agedp_data.series.series import BY_NAME, STATISTICS, level_column, table_name
from agedp_data.series.series_terms import days_of, layer_number, layers_of, mean_name
from agedp_data.statement import note_texts
from agedp_data.statement.datapackage import table_dictionary
from agedp_data.statement.document import PERIOD_WORDS, StatedAccuracy, StatedBound, StatedContract, Statement
from agedp_data.statement.note_texts import INFINITE, WORDS, aside, is_useless_factor, short_factor, short_number
from agedp_data.statement.span_errors import (
    SeriesNoise,
    purpose,
    purpose_beyond_rows,
    smoothed_days,
    stated_noises,
)

if TYPE_CHECKING:
    from jinja2 import Template

_MOST_PURPOSES: Final = 4
"""Series that the first sentence names each, where some are of no use."""


def markdown(statement: Statement) -> str:
    """Return a statement as Markdown text."""
    text = re.sub(r"\n{3,}", "\n\n", _template().render(_facts(statement)))
    return escape_controls(f"{text.strip()}\n", has_lines=True)


@lru_cache(maxsize=1)
def _template() -> Template:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined  # noqa: PLC0415  (whoever reads no text)

    environment = Environment(  # noqa: S701  (Markdown; pages escape it where they make HTML of it)
        loader=FileSystemLoader(Path(__file__).parent), undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters |= {
        "cell": lambda value: str(value).replace("|", "\\|"),
        "literal": _literal,
        "paragraph": _paragraph,
        "days": _days,
        "span": _span,
        "short": short_number,
        "percent": percent_text,
        "rest": note_texts.short_rest,
        "delta": note_texts.with_delta,
    }
    return environment.get_template("template.md")


_SYNTAX: Final = re.compile(
    r"[\\`*\[\]<]"  # escapes, code, emphasis, links and images, HTML
    r"|(?<![^\W_])_|_(?![^\W_])"  # emphasis, not the line of "snake_case"
    r"|&(?=#?\w+;)"  # entities, not "Smith & Sons"
    r"|~(?=~)|(?<=~)~"  # deleted text
    r"|^#|(?<=\s)#(?=#*\s*$)"  # headings, not "C#"
)
_BLOCK: Final = re.compile(r"^(?:(?=[-+](?:[-\s]|$)|>)|\d+(?=[.)](?:\s|$)))")
"""Before what makes a line the beginning of a list, quotation or rule; not "+44 20" or "1.5"."""


def _literal(text: str) -> str:
    r"""Return a line of foreign text so that Markdown shows it as it is written.

    >>> print(_literal("Smith & Sons: <b>low_carbon</b> [x](y)"))
    Smith & Sons: \<b>low_carbon\</b> \[x\](y)
    """
    return _SYNTAX.sub(r"\\\g<0>", escape_controls(text))


def _paragraph(literal: str) -> str:
    """Return a literal line so that it can begin a paragraph, and no list or other block."""
    return _BLOCK.sub(r"\g<0>\\", literal.lstrip())


def _facts(statement: Statement) -> dict[str, Any]:
    bounds, model, second = statement.bounds, statement.model, statement.second_population
    exception, uses = aside(statement.model_days), stated_noises(statement)
    front = [note for note in statement.notes if note != note_texts.NOTES.unchecked_input][:3]
    holds, conditions = _conditions(bounds)
    recorded = "".join([statement.protects, *statement.warnings, *statement.not_protected])
    return {
        "s": statement,
        "lead": [*_purpose(uses, statement), *lead_sentences(statement)],
        "front": front,
        "further": [note for note in statement.notes if note not in front],
        "uses": _uses_table(uses, statement) if uses else None,
        "accuracy": [_accuracy_cells(entry, statement) for entry in statement.accuracy or ()],
        "yardstick": yardstick,
        "losses": [*_losses(statement)],
        "together": note_texts.TOGETHER,
        "aside": exception,
        "promise": note_texts.promise_paragraph(bounds, exception),
        "caps": note_texts.promised_caps(bounds),
        "bounds": [_bound_cells(bound, when) for bound, when in zip(bounds, holds, strict=True)],
        "conditions": conditions,
        "has_discounted": any(bound.name.startswith("discounted sum") for bound in bounds),
        "is_earlier": "figure" in recorded,
        "alone": [f"*{bound.name}*" for bound in bounds if bound.delta or not bound.is_unconditional],
        "explanation": note_texts.explanation(bounds, exception),
        "model_period": " to ".join(model.period or ["an earlier period"]),
        "quantiles": _quantile_lines(model.content()),
        "model_settings": _leaves({key: value for key, value in model.content().items() if key != "draws"}),
        "adds": second and note_texts.added_losses(bounds, second.adds, exception),
        "months": _months(statement),
        "contract": _leaves(statement.contract.content()),
        **_series_facts(statement.stated_contracts),
    }


def _leaves(value: Any, key: str = "") -> list[tuple[str, Any]]:  # noqa: ANN401  (any JSON)
    if isinstance(value, Mapping):
        return [leaf for name in sorted(value) for leaf in _leaves(value[name], f"{key}.{name}" if key else name)]
    return [(key, ", ".join(map(_item_text, value)) if isinstance(value, list | tuple) else value)]


def _item_text(item: Any) -> str:  # noqa: ANN401  (any JSON)
    if isinstance(item, Mapping):
        return f"({', '.join(f'{name} {_item_text(value)}' for name, value in item.items())})"
    return f"({' '.join(map(_item_text, item))})" if isinstance(item, list | tuple) else str(item)


# --------------------------------------------------------------------------------------------------
# What, how strong, what not.
# --------------------------------------------------------------------------------------------------


def lead_sentences(statement: Statement) -> list[str]:
    """Return what was published and protected, how strongly, and what is not promised, in one sentence each."""
    model = ", nor what the model published without noise shows" if statement.model_days else ""
    return [_what(statement), _how_strong(statement), WORDS.limits.format(model=model)]


def _what(statement: Statement) -> str:
    days = statement.days
    opening = "This rehearsal contains" if statement.rehearsal else "This folder contains"
    if not days.released:
        skipped = f", {_days(len(days.skipped))} skipped" if days.skipped else ""
        return WORDS.nothing.format(opening=opening, population=statement.population, skipped=skipped)
    return WORDS.what.format(
        opening=opening,
        contents=columns_text(_contents(statement)),
        population=statement.population,
        days=f"{_days(days.released)} ({_span(days)})",
        model=", not the published model," if statement.model_days else "",
    )


def _contents(statement: Statement) -> list[str]:
    """Return what the released series are, such as "daily averages"; only the first of a period names it."""
    contents = {
        (place, PERIOD_WORDS[series.every or "day"], statistic.CONTENT)
        for place, statistic in enumerate(STATISTICS)
        for stated in statement.stated_contracts
        for series in stated.series.values()
        if series.statistic == statistic.KIND
    }
    texts, before = [], ""
    for _, every, content in sorted(contents):
        texts.append(content if every == before else f"{every} {content}")
        before = every
    return texts


def _how_strong(statement: Statement) -> str:
    epsilons = statement.unconditional_epsilons
    windows = [
        f", {_factor(bound.epsilon, 'of {}')} if on {_about_window(bound)}" for bound in _promised_windows(statement)
    ]
    return WORDS.how_strong.format(
        subject="These values change that" if statement.days.released else "Noisy values change an",
        day=_factor(note_texts.largest_of_day(epsilons), "a factor of {}"),
        windows="".join(windows),
        total=_factor(epsilons.get(TOTAL_BOUND, INFINITE), "of {}"),
    )


def _promised_windows(statement: Statement) -> list[StatedBound]:
    """Return the pure bounds on windows of several days that the promise limits."""
    others = (DAY_BOUND, CALIBRATION_DAY_BOUND, TOTAL_BOUND)
    pure = [bound for bound in statement.bounds if bound.is_unconditional and bound.epsilon != INFINITE]
    return [
        bound for bound in pure if bound.name not in others and bound.factor and bound.limit not in ("", "unlimited")
    ]


def _about_window(bound: StatedBound) -> str:
    return bound.scope.removesuffix(" of one household")


def _factor(epsilon: str, words: str) -> str:
    if epsilon == INFINITE:
        return "any factor (no bound, unprotected)"
    remark = ", practically no protection" if is_useless_factor(epsilon) else ""
    return f"{words.format(short_factor(epsilon))} (epsilon {short_number(epsilon)}{remark})"


def _days(number: int) -> str:
    return f"{number} day{'s' * (number != 1)}"


def _span(dates: Any) -> str:  # noqa: ANN401  (anything with a first and a last date)
    return str(dates.first) if dates.first == dates.last else f"{dates.first} to {dates.last}"


# --------------------------------------------------------------------------------------------------
# What it is fit for: the noise of a day, week, month and year against the yardstick.
# --------------------------------------------------------------------------------------------------


def _uses_table(noises: Sequence[SeriesNoise], statement: Statement) -> dict[str, Any]:
    """Return heading and rows of the table of errors: each series, or all layers of a mean, and each span of a row."""
    spans = [span for span in yardstick.SPANS if any(span in noise.spans for noise in noises)]
    has_cut = any(noise.clamp_kwh is not None for noise in noises)
    households = {mean_name(entry.series): _households(entry, statement) for entry in statement.accuracy or ()}
    rows = []
    for noise in noises:
        errors = {of.span: f"{of.width} ({of.percent}{of.grade and f', {of.grade}'})" for of in noise.errors()}
        cut = f"{percent_text(noise.cut.days)} of days, {percent_text(noise.cut.energy)} of energy"
        if noise.cut.energy:
            cut += f"; {rounded_up(noise.worst_month_kwh)} kWh a day in the worst month"
        cuts = [cut if noise.clamp_kwh is not None else ""] if has_cut else []
        rows.append([noise.label, households[noise.label], *(errors.get(span, "") for span in spans), *cuts])
    has_months = any(noise.row_days == 1 and "month" in noise.spans for noise in noises)
    head = ["series", "households", *(f"± a {span}" for span in spans), *["clamp cuts"] * has_cut]
    return {"head": head, "rows": rows, "has_months": has_months, "ended": _ended_series(statement)}


def _ended_series(statement: Statement) -> list[str]:
    """Return the released series that the contract in force no longer has, each with its days."""
    goes_on, days = {*map(mean_name, statement.contract.series)}, dict[str, list[str]]()
    for stated in statement.stated_contracts:
        for name, of in stated.days.items():
            if mean_name(name) not in goes_on:
                days.setdefault(mean_name(name), []).extend((of.first, of.last))
    return [f"`{name}` ({min(of)} to {max(of)})" for name, of in sorted(days.items())]


def _accuracy_cells(entry: StatedAccuracy, statement: Statement) -> list[str]:
    days = _covered(entry, statement)
    of_row = [entry.day] if len(days) == 1 else [days[0].isoformat(), entry.day]
    within = f"{short_number(entry.within)} {entry.unit}"
    return [entry.series, entry.group or "all", _households(entry, statement), " to ".join(of_row), within]


def _households(entry: StatedAccuracy, statement: Statement) -> str:
    """Return the households of a group; of a row about several days their mean number on those of its kind."""
    series = statement.contract.terms.series[entry.series]
    kind = entry.group.rpartition(" ")[2]  # that of a profile of months
    days = [day for day in _covered(entry, statement) if series.kind_of(day) in ("", kind)]
    return f"{entry.households / len(days):,.1f}".removesuffix(".0")


def _covered(entry: StatedAccuracy, statement: Statement) -> tuple[date, ...]:
    series = statement.contract.terms.series[entry.series]
    return days_of(*series.covered_days(date.fromisoformat(entry.day)))


def _purpose(noises: Sequence[SeriesNoise], statement: Statement) -> Iterator[str]:
    """Yield for what the release is fit, for what rough: the shortest such span of any series."""
    errors = [error for noise in noises for error in noise.errors()]
    useful = purpose(errors) or purpose_beyond_rows(noises)
    purposes = {noise.label: purpose([*noise.errors()]) or purpose_beyond_rows([noise]) for noise in noises}
    if errors and not useful:
        useful = "of no use: no span is fit or rough"
    elif 1 < len(noises) <= _MOST_PURPOSES and not all(purposes.values()):
        of_each = sorted((not text, f"{label} is {text or 'of no use'}") for label, text in purposes.items())
        yield f"By the yardstick below, {'; '.join(text for _, text in of_each)}."
        return
    elif any(error.span == "day" for error in errors) and not re.search(r"\bdays\b", useful):
        useful += f", {smoothed_days(noises) or 'of no use for single days'}"
    if errors:
        newest = " the newest values are" if len(statement.versions) > 1 else ""
        text = f"by the yardstick below,{newest} {useful}" if newest else f"{useful}, by the yardstick below"
        yield f"{sentence_start(text)}."


def _months(statement: Statement) -> dict[str, str]:
    """Return which difference of two days, and which error of a month, may be noise alone [kWh]; nothing for others.

    They are those of the mean of days with the least noise.
    """
    terms = statement.contract.series
    daily = [
        (Decimal(entry.within), entry.series)
        for entry in statement.accuracy or []
        if terms[entry.series].every in (None, "day") and BY_NAME[terms[entry.series].statistic].has_one_mean()
    ]
    if not daily:
        return {}
    within, series = min(daily)
    change = within * Decimal(2).sqrt()  # of two days, whose noise is independent
    # 1.96 standard deviations contain 95 % of a mean of many values; of one value 2.118 do
    month = within * Decimal("1.96") / Decimal("2.118") / Decimal(30).sqrt()
    return {"series": series, "day": rounded_up(change), "month": rounded_up(month)}


# --------------------------------------------------------------------------------------------------
# Losses and bounds.
# --------------------------------------------------------------------------------------------------

_CONDITION: Final = re.compile(r"(.*?)((?: \(method [^()]*\))?(?:, by model \w+)?)")


def _losses(statement: Statement) -> Iterator[list[str]]:
    """Yield the rows of the pure losses: about a day, a day of a calibration, and all days."""
    periods = sorted({f"{draw.first_day} to {draw.last_day}" for draw in statement.draws or ()})
    abouts = {
        DAY_BOUND: "any one published day"
        if CALIBRATION_DAY_BOUND in statement.unconditional_epsilons
        else "any one day",
        CALIBRATION_DAY_BOUND: f"any one day from {' or from '.join(periods)}, of which a model was drawn",
        **{bound.name: _about_window(bound) for bound in _promised_windows(statement)},
        TOTAL_BOUND: "all its days, draws of the calibration included" if statement.draws else "all its days",
    }
    for name, about in abouts.items():
        epsilon = statement.unconditional_epsilons.get(name)
        if epsilon is not None and epsilon != INFINITE:
            remark = " (practically no protection)" if is_useless_factor(epsilon) else ""
            several = [short_number(exact_text(number * Decimal(epsilon))) for number in note_texts.TOGETHER]
            chance = note_texts.odds_percent(round_nano(Decimal(epsilon)))
            yield [about, short_number(epsilon), f"{short_factor(epsilon)}{remark}", chance, ", ".join(several)]
    spans = (bound for bound in statement.bounds if note_texts.is_of_span(bound) and bound.name.startswith(TOTAL_BOUND))
    for bound in islice(spans, 1):
        yield [
            f"all its days,{note_texts.with_delta(bound.delta)} (see the annex)",
            short_number(bound.epsilon),
            "",
            "",
            "",
        ]


def _conditions(bounds: Sequence[StatedBound]) -> tuple[list[str], dict[str, str]]:
    """Return when each bound holds, with a letter for a condition, and the text of each letter."""
    letters: dict[str, str] = {}

    def letter(text: str) -> str:
        return letters.setdefault(text, chr(ord("A") + len(letters)))

    holds = []
    for bound in bounds:
        match = _CONDITION.fullmatch(bound.assumption)
        condition, method = match.groups() if match else (bound.assumption, "")
        when = "always" if bound.is_unconditional else f"if {letter(condition)}{method}"
        if days := bound.conditional_days:
            when += f", of the noisy releases alone ({letter(WORDS.with_model.format(days=days))})"
        holds.append(when)
    return holds, {letter: text for text, letter in letters.items()}


def _bound_cells(bound: StatedBound, holds: str) -> list[str]:
    """Return a row with exact numbers: agedp 0.1 looks for them, and a limit that is rounded up is none."""
    factor = short_factor(bound.epsilon) if bound.factor and bound.epsilon != INFINITE else bound.factor
    return [bound.name, bound.epsilon, bound.scope, holds, factor, bound.limit]


def _quantile_lines(model: Mapping[str, Any]) -> list[str]:
    if "quantiles" not in model:
        return []
    from agedp_data.leakage.nested_family import quantile_lines  # noqa: PLC0415  (models of 0.2 alone have them)

    return [*quantile_lines(model)]


# --------------------------------------------------------------------------------------------------
# The series and their tables, by the contracts under which rows were released.
# --------------------------------------------------------------------------------------------------


def _series_facts(contracts: Sequence[StatedContract]) -> dict[str, Any]:
    """Return what the series count, how noise was added, and their tables; what changed with a contract says so."""
    released = sorted(
        ((name, stated) for stated in contracts for name in stated.days), key=lambda part: (part[0], part[1].version)
    )
    rows: dict[tuple[str, ...], list[tuple[str, str]]] = {}
    for name, stated in released:
        rows.setdefault(_series_cells(name, stated.contract), []).append(
            (f"{stated.version}", _span(stated.days[name]))
        )
    parsed = [stated.contract.terms.series[name] for name, stated in released]
    tables = {series.table.file: series.table for series in parsed}
    fields: dict[str, dict[str, str]] = {}  # by name: each description with the first file that it holds for
    for file, table in tables.items():
        for field in table_dictionary(table.schema)["fields"]:
            fields.setdefault(field["name"], {}).setdefault(_column_text(field), f"{file}.parquet")
    reading = "hour" if contracts[-1].contract.input.interval_minutes == 60 else "half-hour"
    methods = {f"*{sentence_start(series.PLURAL)}:* {series.method}": series for series in parsed}
    return {
        "series": [
            [
                cells[0],
                *(joint.join(part) for joint, part in zip((", ", "; "), zip(*parts, strict=True), strict=True)),
                *cells[1:],
            ]
            for cells, parts in rows.items()
        ],
        "tables": tables,
        "columns": [
            f"`{name}`{'' if len(texts) == 1 else f' (`{next(iter(texts.values()))}`)'}{next(iter(texts))}"
            for name, texts in fields.items()
        ],
        "has_levels": any(len(series.columns) > 1 for series in parsed),
        "has_means": any(series.unit == "kWh" for series in parsed),
        "has_days": not all(series.covers_periods for series in parsed),
        "has_periods": any(series.covers_periods for series in parsed),
        "reading": reading,
        "methods": [text.replace("{reading}", reading) for text in methods],
        "shares": _by_version(contracts, _share_texts),
        "states": _by_version(contracts, _states_texts),
        "layers": _by_version(contracts, _layer_texts),
        "levels": _by_version(contracts, _level_texts),
        "sums": _by_version(contracts, _sum_texts),
    }


def _by_version(contracts: Sequence[StatedContract], texts: Callable[[StatedContract], Iterable[str]]) -> list[str]:
    """Return parts of sentences, each with the versions of the contract that it holds for, unless it holds for all."""
    versions: dict[str, list[str]] = {}
    for stated in contracts:
        for text in texts(stated):
            versions.setdefault(text, []).append(f"{stated.version}")
    return [f"{text} (version {', '.join(of)})" if len(of) < len(contracts) else text for text, of in versions.items()]


def _series_cells(name: str, contract: ContractDocument) -> tuple[str, ...]:
    """Return the row of a series, without its versions and days."""
    terms, series = contract.series[name], contract.terms.series[name]
    hours = contract.input.interval_minutes == 60
    values = f"{PERIOD_WORDS[terms.every or 'day']} {series.PLURAL}"
    values += f" ({terms.form}): {', '.join(terms.bins_kwh)} kWh" if terms.bins_kwh else ""
    values += ", of states" if series.counts_states else ""
    clamps = [f"from {terms.above_kwh} to {terms.clamp_kwh}" if terms.above_kwh else terms.clamp_kwh]
    most = "".join(f"{clamp} kWh a day" for clamp in clamps if clamp)
    if terms.half_hour_clamp_kwh:
        half_hour = Decimal(terms.half_hour_clamp_kwh)
        most = f"{exact_text(half_hour * (1 + hours))} kWh {'an hour' if hours else 'a half-hour'}, {most}"
    missing = "" if terms.max_missing is None else f"more than {terms.max_missing}"
    missing += f": {terms.missing_kwh} kWh" if terms.missing_kwh is not None else ""
    sensitivity = Decimal(series.sensitivity("replacement")) / (1000 if series.unit == "kWh" else 1)
    of_day = f"{exact_text(sensitivity)} {series.unit if sensitivity != 1 else series.unit.removesuffix('s')}"
    fewest = f"{contract.population.min_households}"
    return name, values, most or "one household", fewest, columns_text(terms.by), missing, terms.share, of_day


def _column_text(field: Mapping[str, Any]) -> str:
    unit = f" [{field['unit']}]" if field.get("unit", "1") != "1" else ""
    description = field["description"].removesuffix(" [-]").removesuffix(f", {field.get('unit')}")
    return f"{unit}: {description}"


def _share_texts(stated: StatedContract) -> Iterator[str]:
    if any(series.share != "1" for series in stated.series.values()):
        yield stated.contract.terms.promise.shared_quantity


def _states_texts(stated: StatedContract) -> Iterator[str]:
    states = stated.contract.terms.states
    if states is not None and any(series.values == "states" for series in stated.series.values()):
        edges, values_kwh = (
            ", ".join(exact_text(Decimal(wh) / 1000) for wh in values_wh)
            for values_wh in (states.edges_wh, states.representative_values_wh)
        )
        quantity = "each half-hour" if states.step == "half-hour" else "the day's use"
        yield WORDS.states.format(quantity=quantity, edges=edges, values=values_kwh)


def _layer_texts(stated: StatedContract) -> Iterator[str]:
    """Yield which series are layers of one mean."""
    layers = [name for name in sorted(stated.days) if layer_number(name)]
    for mean in dict.fromkeys(map(mean_name, layers)):
        yield f"{columns_text(layers_of(f'{mean}/1', layers))} are layers of one mean"


def _level_texts(stated: StatedContract) -> Iterator[str]:
    """Yield which series are levels of one hierarchy, and how its groups are named."""
    columns = {name: columns_of(series.by) for name, series in stated.series.items() if level_column(name)}
    names = sorted(columns, key=lambda name: (-len(columns[name]), name))
    for table in dict.fromkeys(map(table_name, names)):
        levels = [name for name in names if table_name(name) == table]
        path = PATH_SEPARATOR.join(column.upper() for column in reversed(columns[levels[0]]))
        within = " within ".join(columns[levels[0]])
        yield f"{columns_text(levels)} are levels of one hierarchy, {within}, with groups named {path}"


def _sum_texts(stated: StatedContract) -> Iterator[str]:
    """Yield which groups add up to what, totals first."""
    series = stated.contract.terms.series
    for names in totals_with_groups({name: series[name] for name in stated.days}):
        names_by_columns: dict[Columns, list[str]] = {}
        for name in names:
            names_by_columns.setdefault(series[name].columns, []).append(name)
        finer: dict[Columns, list[str]] = {}
        for columns, of in names_by_columns.items():
            coarser = next_coarser(columns, names_by_columns)
            if coarser is not None:
                finer.setdefault(coarser, []).extend(of)
        yield columns_text(
            f"the groups of {' and '.join(groups)} add up to {'those of ' if coarser else ''}"
            f"{' and '.join(names_by_columns[coarser])}"
            for coarser, groups in finer.items()
        )
