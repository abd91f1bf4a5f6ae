"""Statement -> Markdown: STATEMENT.md, the artifact of a run, a part of the report.

Statements of earlier versions lack some keys; the text then leaves out the corresponding sentences. What each series
counts, its clamp and noise, is made from the contract: first what several series share (layers of a mean, levels of a
hierarchy, groups that add up), then each series.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from decimal import ROUND_CEILING, Context, Decimal
from typing import Any, Final

import pyarrow as pa

from agedp_data import yardstick
from agedp_data.config.contract_document import ContractDocument, SeriesTerms
from agedp_data.datasets.validation import SLOTS
from agedp_data.epsilon import exact_text
from agedp_data.messages import escape_controls, percent_text, sentence_start
from agedp_data.notions import Neighbourhood
from agedp_data.notions.notion import ASSUMPTION_FREE, CALIBRATION_DAY_BOUND, DAY_BOUND, TOTAL_BOUND
from agedp_data.parameters import watt_hours
from agedp_data.roster import PATH_SEPARATOR, columns_of, columns_text
from agedp_data.series.consistency import Columns, next_coarser, totals_with_groups
from agedp_data.series.profile import WEIGHTS, profile_sensitivity
from agedp_data.series.series import BY_NAME, STATISTICS, level_column, table_name
from agedp_data.series.series_terms import layer_number, mean_name
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
    SENTENCES,
    WORDS,
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

# --------------------------------------------------------------------------------------------------
# Sentences of STATEMENT.md on the layers of a mean with a list of clamps, made from the contract.
# --------------------------------------------------------------------------------------------------


def layer_series_text(name: str, series: SeriesTerms) -> str:
    """Return what a layer counts, up to the rule for missing days."""
    above, clamp = series.above_kwh or "0", series.clamp_kwh or "0"
    width = exact_text(Decimal(clamp) - Decimal(above))
    by = f", by {columns_text(series.by)} of the roster" if series.by is not None else ""
    if series.above_kwh is None:
        return (
            f"{name}: mean daily use of the households up to {clamp} kWh, layer {layer_number(name)} of "
            f"{mean_name(name)}{by}; a household's daily total counts at most {clamp} kWh (clamp)"
        )
    return (
        f"{name}: mean daily use of the households above {above} and up to {clamp} kWh, a layer of {mean_name(name)}"
        f"{by}; a household's day counts at most {width} kWh (width)"
    )


def layers_texts(contract: ContractDocument) -> Iterator[str]:
    """Yield the sentences on each mean of a contract that has layers."""
    by_table: dict[str, list[str]] = {}
    for name in sorted(contract.series):
        if layer_number(name):
            by_table.setdefault(mean_name(name), []).append(name)
    promise = contract.terms.promise
    small = (
        SENTENCES.small.format(delta_kwh=exact_text(promise.delta_kwh)) if isinstance(promise, Neighbourhood) else ""
    )
    for names in by_table.values():
        listed = f"{', '.join(names[:-1])} and {names[-1]}"
        yield SENTENCES.layers.format(names=listed, clamp=contract.series[names[-1]].clamp_kwh) + small


# --------------------------------------------------------------------------------------------------
# Sentences of STATEMENT.md on the levels of a hierarchy of groups, made from the contract.
# --------------------------------------------------------------------------------------------------


def levels_texts(contract: ContractDocument) -> Iterator[str]:
    """Yield the sentences on each table of a contract that has levels."""
    by_table: dict[str, list[str]] = {}
    for name in sorted(contract.series, key=lambda name: -len(columns_of(contract.series[name].by))):
        if level_column(name):
            by_table.setdefault(table_name(name), []).append(name)
    for names in by_table.values():
        columns = columns_of(contract.series[names[0]].by)
        yield SENTENCES.levels.format(
            names=f"{', '.join(names[:-1])} and {names[-1]}",
            columns=" within ".join(columns),
            path=PATH_SEPARATOR.join(column.upper() for column in reversed(columns)),
        )


# --------------------------------------------------------------------------------------------------
# Sentence of STATEMENT.md on estimates in which groups add up, made from the contract.
# --------------------------------------------------------------------------------------------------


def consistency_texts(contract: ContractDocument) -> list[str]:
    """Return one sentence for each quantity of which a contract releases means that add up to each other."""
    series = contract.terms.series
    return [
        SENTENCES.consistent.format(sums=_sums_text({name: series[name].columns for name in names}))
        for names in totals_with_groups(series)
    ]


def _sums_text(columns: Mapping[str, Columns]) -> str:
    """Return which groups add up to what, totals first."""
    names_by_columns: dict[Columns, list[str]] = {}
    for name, of_series in columns.items():
        names_by_columns.setdefault(of_series, []).append(name)
    finer: dict[Columns, list[str]] = {}
    for of_series, names in names_by_columns.items():
        coarser = next_coarser(of_series, names_by_columns)
        if coarser is not None:
            finer.setdefault(coarser, []).extend(names)
    *first, last = (
        f"the groups of {' and '.join(groups)} add up to {'those of ' if coarser else ''}"
        f"{' and '.join(names_by_columns[coarser])}"
        for coarser, groups in finer.items()
    )
    return f"{', '.join(first)}, and {last}" if first else last


# --------------------------------------------------------------------------------------------------
# All sentences on the series.
# --------------------------------------------------------------------------------------------------

_MEAN = "mean daily use of the households"


def series_paragraphs(contract: ContractDocument) -> list[str]:
    """Return what each series counts and how noise is added to it, and what holds for several of them."""
    small = (
        f"A day, or a group, with fewer than {contract.population.min_households} households on the roster is never "
        "released."
    )
    shared = contract.terms.promise.shared_quantity
    states = _states_text(contract) if any(series.values == "states" for series in contract.series.values()) else ""
    readings = "hours" if contract.input.interval_minutes == 60 else "half-hours"
    texts = [_series_text(name, series, shared, states, readings) for name, series in sorted(contract.series.items())]
    paragraphs = *layers_texts(contract), *levels_texts(contract), *consistency_texts(contract)
    return ["\n".join(f"* {text}" for text in texts), *paragraphs, small]


def _states_text(contract: ContractDocument) -> str:
    """Return the sentences on public states and their representative values, "" without such states."""
    states = contract.terms.states
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
    share = f" The share of the series is {series.share} of {shared}." if series.share != "1" else ""
    kind = BY_NAME[series.statistic]
    if kind.stated:
        text = kind.stated.format(by=_group_text(series), max_missing=series.max_missing, readings=readings)
    elif kind.reads_half_hours:
        text = _profile_text(series, states, readings)
    else:
        return f"{_day_text(name, series, states, readings)}.{share}"
    return f"{name}: {text}.{share}"


def _group_text(series: SeriesTerms) -> str:
    return "" if series.by is None else f", by {columns_text(series.by)} of the roster"


def _profile_text(series: SeriesTerms, states: str, readings: str) -> str:
    half_hour, day = (Decimal(clamp or 0) for clamp in (series.half_hour_clamp_kwh, series.clamp_kwh))
    clamps = {"half_hour_clamp": watt_hours(half_hour), "day_clamp": watt_hours(day)}
    sensitivity = Decimal(profile_sensitivity("replacement", slots=SLOTS, **clamps)) / 1000
    number, clamp = (SLOTS // 2, 2 * half_hour) if readings == "hours" else (SLOTS, half_hour)
    words = {"reading": readings.removesuffix("s"), "readings": readings, "Readings": sentence_start(readings)}
    all_clamps = f"{number} times the clamp of the {words['reading']}, less than twice that of the day"
    counted = SENTENCES.profile.format(
        by=_group_text(series),
        clamp=exact_text(clamp),
        day_clamp=series.clamp_kwh,
        missing=series.missing_kwh,
        max_missing=series.max_missing,
        **words,
    )
    is_daily = series.every in (None, "day")
    noise = (SENTENCES.profile_noise if is_daily else SENTENCES.profile_of_months).format(
        sensitivity=exact_text(sensitivity),
        smaller="twice the clamp of the day" if sensitivity == 2 * day else all_clamps,
        weekday=WEIGHTS["weekday"],
        weekend=WEIGHTS["weekend"],
        **words,
    )
    return counted + states + noise


def _cut_text(series: SeriesTerms) -> str:
    """Return what the clamp of a mean cuts of the yardstick; nothing is measured on the households of the release."""
    if BY_NAME[series.statistic].unit == "households" or series.clamp_kwh is None:
        return ""
    cut = yardstick.cut_by(float(series.clamp_kwh))
    parts = (
        f"{percent_text(cut.days)} of the days and {percent_text(cut.energy)} of the energy" if cut.days else "nothing"
    )
    return f"; of {yardstick.yardstick_name()}, it cuts {parts}, which no interval here covers"


def _day_text(name: str, series: SeriesTerms, states: str, readings: str) -> str:
    is_distribution = BY_NAME[series.statistic].unit == "households"
    range_name = "clamp" if series.above_kwh is None else "width"
    covers_periods = series.every not in (None, "day")
    if layer_number(name):
        text = layer_series_text(name, series)
    else:
        text = f"{name}: {'number of households by range of daily use' if is_distribution else _MEAN}"
        text += f", over each {series.every}" if covers_periods else ""
        text += _group_text(series)
        text += f"; a household's daily total counts at most {series.clamp_kwh} kWh (clamp{_cut_text(series)})"
    if series.max_missing is not None:
        text += f", and {series.missing_kwh} kWh if more than {series.max_missing} of its {readings} have no reading"
    if series.values == "states":
        text += states
    if is_distribution:
        counts = SENTENCES.by_key("counts").get(series.form or "", "")
        text += f". {counts.format(bins=', '.join(series.bins_kwh or ()))}"
    elif covers_periods:
        text += SENTENCES.periods.format(every=series.every)
    else:
        text += (
            f". Noise is added to the sum, in whole watt-hours (discrete Laplace, scale = {range_name} / epsilon), and "
            "the noisy sum is divided by the number of households on the roster. Values below 0 are published as drawn"
        )
    return text


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
    *others, last = _without_repetition(published_contents(statement))
    return WORDS.what.format(
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
    return WORDS.how_strong.format(
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


def table_paragraphs(contract: ContractDocument) -> list[str]:
    """Return how to read each published table, and where the others are described."""
    kinds = {table.file: table for _, series in sorted(contract.series.items()) for table in [series.parse().table]}
    has_levels = any(len(columns_of(series.by)) > 1 for series in contract.series.values())
    paragraphs = []
    for file, table in kinds.items():
        columns = "\n".join(
            f"* {column}" for column in [*_column_lines(table.schema), *([WORDS.level] if has_levels else [])]
        )
        paragraphs.append(f"`{file}.parquet` has a row for each {table.line_of}:\n\n{columns}")
    return [*paragraphs, WORDS.further.format(file=next(iter(kinds)))]


def _column_lines(schema: pa.Schema) -> Iterator[str]:
    for field in table_dictionary(schema)["fields"]:
        unit = f" [{field['unit']}]" if field.get("unit", "1") != "1" else ""
        description = field["description"].removesuffix(" [-]").removesuffix(f", {field.get('unit')}")
        yield f"`{field['name']}`{unit}: {description}."


# --------------------------------------------------------------------------------------------------
# Sections of STATEMENT.md for those who use the values: their error, sums and means of them, gaps and corrections.
# --------------------------------------------------------------------------------------------------

_LARGEST: Final = "Groups with more households have a smaller error."
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
        WORDS.true.format(largest=largest).strip(),
        " ".join([*([WORDS.any_day_mean] if means else []), *([WORDS.any_day_count] if has_counts else [])]),
        *_months(statement, means),
    ]


def _accuracy_line(entry: StatedAccuracy, every: str) -> str:
    if entry.unit == "households":
        return WORDS.count.format(series=entry.series, day=entry.day, within=short_number(entry.within))
    of_group = "" if entry.group in ("", "all") else f" of group {entry.group}"
    group = f"{of_group} ({entry.households:,} {_counted(entry.households, every)})"
    return WORDS.mean.format(series=entry.series, group=group, day=entry.day, within=short_number(entry.within))


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
        yield WORDS.months.format(day=short_number(f"{change:f}"), month=f"{month:f}")


def use_paragraphs(statement: Statement) -> list[str]:
    """Return whether groups and days may be added up, how errors add, and what missing days and corrections mean."""
    has_means = any(BY_NAME[series.statistic].unit == "kWh" for series in statement.contract.series.values())
    number = len(statement.days.skipped)
    are = "is" if number == 1 else "are"
    skipped = (
        f"{number} skipped {'day' if number == 1 else 'days'} {are} listed in `statement.json`. " if number else ""
    )
    texts = [
        WORDS.groups_privacy,
        WORDS.others_privacy,
        WORDS.groups_mean if has_means else WORDS.groups_count,
        WORDS.days,
        WORDS.differences,
        WORDS.gaps.format(skipped=skipped),
        WORDS.corrections,
    ]
    return ["\n".join(f"* {text}" for text in texts)]


# --------------------------------------------------------------------------------------------------
# The whole document.
# --------------------------------------------------------------------------------------------------

_DRAW_COLUMNS = ("drawn", "first day", "last day", "epsilon")
_COLUMNS: Final = ("bound", "epsilon", "scope", "holds", "factor", "limit")
_DISCOUNTED = "discounted sum"
_EARLIER_TERM = "figure"


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
    terms = [WORDS.earlier_terms] if any(_EARLIER_TERM in text for text in recorded) else []
    exception = WORDS.exception if statement.model_days else ""
    draws = " and draws" if statement.draws else ""
    discounted = WORDS.of_discounted if any(bound.name.startswith(_DISCOUNTED) for bound in statement.bounds) else ""
    how_to_read = " ".join(
        [WORDS.how_to_read.format(exception=exception, draws=draws, discounted=discounted), WORDS.digits, *terms]
    )
    alone = [f"*{bound.name}*" for bound in statement.bounds if bound.delta or bound.kind != ASSUMPTION_FREE]
    if alone and statement.household_account is not None:
        how_to_read += " " + WORDS.alone.format(names=", ".join(alone))
    return ["\n".join(lines), how_to_read, note_texts.explanation(statement.bounds, aside(statement.model_days))]


def _draws(statement: Statement) -> list[str]:
    if not statement.draws:
        return []
    lines = [_line(_DRAW_COLUMNS), _line(["---"] * len(_DRAW_COLUMNS))]
    lines += [_line([draw.asked, draw.first_day, draw.last_day, draw.epsilon]) for draw in statement.draws]
    return ["\n".join(lines), WORDS.of_draws]


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
    source = WORDS.by_key("sources").get(model.publish or model.source or "", "").format(period=period)
    selection = [" ".join(selection_texts(model.content()))] if model.publish == "private" else []
    if "quantiles" in model.content():
        from agedp_data.leakage.nested_family import quantile_lines  # noqa: PLC0415  (models of 0.2 alone have them)

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
    return [caps, f"{spent} {WORDS.by_key('ends')[ending.reason + over].format(last_day=ending.last_day)}"]


def _second_population(statement: Statement) -> list[str]:
    second = statement.second_population
    if second is None:
        return []
    adds = note_texts.added_losses(statement.bounds, second.adds, aside(statement.model_days))
    number = second.in_ledger
    count_text = f"{number} other population{'s' * (number != 1)}" if number else "no other population"
    return [WORDS.two_releases, second.text, f"{adds} This ledger contains {count_text}."]


def _changes(versions: Sequence[ContractVersion]) -> Iterator[str]:
    for number, version in enumerate(versions, 1):
        if version.changes:
            yield f"Version {number}, registered on {version.registered}, changed:\n\n" + _list(version.changes)


def _checking(statement: Statement) -> list[str]:
    ledger = f"Ledger {statement.ledger.id[:16]}, head `{statement.ledger.head}`."
    credits = " · ".join(filter(None, (statement.source, statement.licence, statement.contact)))
    cite = WORDS.citing.format(
        title=statement.full_title,
        days=f", {_span(statement.days)}" if statement.days.released else "",
        published=f", published {statement.published.last}" if statement.published.last else "",
        head=statement.ledger.head[:16],
    )
    return [WORDS.checking, WORDS.not_proven, ledger, cite, credits]


def _leaves(value: Any, key: str = "") -> list[tuple[str, Any]]:  # noqa: ANN401  (any JSON)
    if isinstance(value, Mapping):
        return [leaf for name in sorted(value) for leaf in _leaves(value[name], f"{key}.{name}" if key else name)]
    return [(key, ", ".join(map(_item_text, value)) if isinstance(value, list | tuple) else value)]


def _item_text(item: Any) -> str:  # noqa: ANN401  (any JSON)
    if isinstance(item, Mapping):
        return f"({', '.join(f'{name} {_item_text(value)}' for name, value in item.items())})"
    return f"({' '.join(map(_item_text, item))})" if isinstance(item, list | tuple) else str(item)
