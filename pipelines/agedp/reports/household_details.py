"""Parts of the confidential report on single households: the model, and temporal leakage. Confidential.

* Households that decide the model.
* Temporal leakage of each household under its own chain, and the households with the largest one. The public bound uses
  the leakage bound, a maximum over all households at every step. Here the recursion ([T] section 3) uses each
  household's own kernels, as one stack, over the newest released days.

"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa

from agedp.calibration.leakage_bounds import steps_per_day
from agedp.calibration.model_check import report_name
from agedp.calibration.quantize import Floats
from agedp.reports.axes import format_number, format_rounded_up, linear_axis, named_axis
from agedp.reports.chart_layers import Hover
from agedp.reports.constants import constant_value
from agedp.reports.html import paragraph, table
from agedp.reports.report_data import InternalSources, ModelFiles
from agedp.reports.svg import Line, chart
from agedp_data.accounting.temporal_leakage import daily_release_leakage
from agedp_data.config.model_section import EstimatedModel
from agedp_data.epsilon import NANO, to_float
from agedp_data.ledger import ReleaseRecord
from agedp_data.notions.notion import day_losses, losses_by_day_number

_MAX_DAYS: Final = 60
_MAX_SHOWN_HOUSEHOLDS: Final = 5
_SHARES: Final = (0.5, 0.9, 0.99)


def household_leakage_parts(
    model: EstimatedModel, households_with_chains: tuple[list[str], Floats] | None, rows: Sequence[ReleaseRecord]
) -> Iterator[str]:
    """Yield the temporal leakage of the newest releases by household, under time-homogeneous chains."""
    losses = dict(sorted(losses_by_day_number(day_losses(rows)).items())[-_MAX_DAYS:])
    if households_with_chains is None or not households_with_chains[0] or len(losses) < 2:
        return
    ids, chains = households_with_chains
    spent, gaps = np.array(list(losses.values())) / NANO, np.diff(list(losses))
    leakage = daily_release_leakage(chains, spent, gaps, steps_per_day=steps_per_day(model))[2].max(axis=-1)
    order = np.argsort(-leakage, kind="stable")
    quantile_rows = [
        (f"{100 * share:g} % of the households at most", format_number(float(np.quantile(leakage, share))))
        for share in _SHARES
    ]
    household_rows = [(ids[index], format_number(float(leakage[index]))) for index in order[:_MAX_SHOWN_HOUSEHOLDS]]
    caption = (
        f"Temporal leakage about one day from the newest {len(losses)} released days, under each household's own chain "
        f"(a day's own loss: at most {format_number(to_float(max(losses.values())))})"
    )
    yield table(caption, ("households", "epsilon"), [*quantile_rows, *household_rows])


_DISTANCE = "total_variation_"


def household_model_parts(sources: InternalSources, files: ModelFiles, rows: Sequence[ReleaseRecord]) -> Iterator[str]:
    """Yield the households that decide an estimated model, and the model's goodness of fit if it was computed."""
    model = sources.run.model
    if not isinstance(model, EstimatedModel):
        return
    for notice in files.notices:
        yield paragraph(f"Not shown: {notice.private}", "mark")
    if files.households is not None and model.is_private:
        yield from _member_parts(files.households)
    elif files.households is not None:
        yield from _deciding_households(files.households)
    yield from household_leakage_parts(model, files.chains, rows)
    if files.goodness_of_fit is not None:
        yield from _memory_parts(files.goodness_of_fit, report_name(model.file, sources.paths.folder))


def _deciding_households(columns: Mapping[str, Any]) -> Iterator[str]:
    ids = columns["household_id"]
    never_mixing = sum(not mixes for mixes in columns["forgets"])
    yield paragraph(
        f"{never_mixing:,} of {len(ids):,} households count as never mixing (too few visits to some state, or a chain "
        "that falls into several parts): any one of them determines the model at every age."
    )
    distances = {name: values for name, values in columns.items() if name.startswith(_DISTANCE)}
    rows = []
    for name, values in distances.items():
        order = [index for _, _, index in sorted(zip((-value for value in values), ids, range(len(ids)), strict=True))]
        age = name.removeprefix(_DISTANCE).removesuffix("_days")
        next_value = format_number(values[order[1]]) if len(order) > 1 else "–"
        rows.append((f"{age} d", ids[order[0]], format_number(values[order[0]]), next_value))
    if rows:
        headings = ("age", "household", "total variation", "next largest")
        yield table("The household that mixes most slowly, by age: it determines the published model", headings, rows)


def _member_parts(columns: Mapping[str, Any]) -> Iterator[str]:
    """Yield the number of households below each member of the family, which a private selection saw."""
    members = Counter(columns.get("smallest_member", ()))
    yield paragraph(
        "The model is a member of a public family of bounds that a private selection chose. The number of households "
        "whose chains lie below each member is confidential: only the choice is published."
    )
    rows, below = [], 0
    for member in sorted(members):
        below += members[member]
        rows.append((f"{member}", f"{members[member]:,}", f"{below:,}"))
    if rows:
        columns_text = ("member", "households of which it is the smallest", "households below it")
        yield table("Households below each member of the family", columns_text, rows)


def _memory_parts(memory_table: pa.Table, name: str) -> Iterator[str]:
    measure_names = np.array(memory_table["figure"].to_pylist(), dtype=object)
    days_apart = memory_table["days_apart"].to_numpy()
    for measure_name in dict.fromkeys(measure_names.tolist()):
        is_selected = measure_names == measure_name
        values = {column: memory_table[column].to_numpy()[is_selected] for column in ("powers", "direct", "floor")}
        yield from _memory_chart(measure_name, days_apart[is_selected], values)
    yield paragraph(f"All values, with intervals: forgetting/{name}.html.", "soft")


def _hover(ages: Sequence[int]) -> Hover:
    return Hover(lambda position: f"lag {ages[round(position)]} days", "", format_rounded_up)


def _memory_chart(
    measure_name: str, days_apart: np.ndarray[Any, Any], values: dict[str, np.ndarray[Any, Any]]
) -> Iterator[str]:
    ages = sorted(set(days_apart.tolist()))
    names = {"powers": "predicted by the chain", "direct": "lagged counts", "floor": "null level"}
    medians = {
        names[column]: [_median(medians_by_age[days_apart == age]) for age in ages]
        for column, medians_by_age in values.items()
    }
    measured = {
        name: medians_by_age for name, medians_by_age in medians.items() if not all(map(math.isnan, medians_by_age))
    }
    if not measured:
        return
    if all(constant_value(medians_by_age) is not None for medians_by_age in measured.values()):
        values_text = "; ".join(f"{name}: {format_rounded_up(of_ages[0])}" for name, of_ages in measured.items())
        yield paragraph(f"{measure_name}, median household: the same at all {len(ages)} lags. {values_text}.")
        return
    positions = [float(position) for position in range(len(ages))]
    lines = [
        Line(name, positions, medians_by_age, letter=name[0].upper(), style=style)
        for style, (name, medians_by_age) in enumerate(measured.items())
    ]
    description = "; ".join(
        f"{name}: {format_number(medians_by_age[0])} at {ages[0]} d"
        for name, medians_by_age in measured.items()
        if medians_by_age[0] == medians_by_age[0]
    )
    axis = named_axis({position: f"{age} d" for position, age in zip(positions, ages, strict=True)})
    title = f"Model and lagged counts, median household: {measure_name}"
    y, about = linear_axis([0.0, 1.0]), f"Total variation by lag. {description}."
    yield chart(title, about, [*lines, _hover(ages)], x=axis, y=y, y_title="total variation", height=190)
    cells = [
        ["–" if math.isnan(value) else format_rounded_up(value) for value in medians_by_age]
        for medians_by_age in measured.values()
    ]
    rows = [(f"{age} d", *row) for age, *row in zip(ages, *cells, strict=True)]
    yield table("The same in numbers, by lag", ("lag", *measured), rows)


def _median(values: np.ndarray[Any, Any]) -> float:
    measured = values[~np.isnan(values)]
    return float(np.median(measured)) if len(measured) else math.nan
