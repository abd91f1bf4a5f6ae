"""What the confidential report says of single households: whom the clamp binds, who decides the model. Confidential."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from agedp_data.config.model import EstimatedModel
from agedp_data.ledger import ReleaseRecord
from agedp_data.pictures.chart import Line, chart
from agedp_data.pictures.page import paragraph, section, table
from agedp_data.pictures.scales import linear, named, plain, short
from pipelines.reports.at_the_clamp import ClampEffect
from pipelines.reports.forgetting import report_name
from pipelines.reports.household_leakage import household_leakage_parts
from pipelines.reports.model_files import ModelFiles
from pipelines.work import Work

_MAX_HOUSEHOLDS = 20
_DISTANCE = "total_variation_"


def clamp_parts(clamped: Sequence[ClampEffect]) -> Iterator[str]:
    """Yield for each series which households its clamp binds."""
    for one in clamped:
        about = f"{one.series}, clamp {plain(one.clamp_kwh)} kWh, {one.days:,} days whose readings are kept"
        if not one.bound:
            yield paragraph(f"No household was above the clamp: {about}.")
            continue
        rows = [
            (each.household, f"{each.days_above:,}", plain(each.largest_kwh)) for each in one.bound[:_MAX_HOUSEHOLDS]
        ]
        more = f"; the first {_MAX_HOUSEHOLDS} of {len(one.bound):,}" if len(one.bound) > _MAX_HOUSEHOLDS else ""
        columns = ("household", "days above", "largest day, kWh")
        yield table(f"Households that the clamp binds: {about}{more}", columns, rows)
        yield paragraph(f"The clamp takes {plain(one.cut_kwh)} kWh a home off a day's mean, on average.", "soft")


def household_model_parts(work: Work, files: ModelFiles, rows: Sequence[ReleaseRecord]) -> Iterator[str]:
    """Yield which households decide an estimated model, and whether its chain is true, as far as that was measured."""
    model = work.run.model
    if not isinstance(model, EstimatedModel):
        return
    parts = [
        *(paragraph(f"Not shown: {notice.private}", "mark") for notice in files.notices),
        *(_deciding_households(files.households) if files.households is not None else ()),
        *household_leakage_parts(model, files.chains, rows),
        *(
            _memory_parts(files.forgetting, report_name(model.file, work.confidential))
            if files.forgetting is not None
            else ()
        ),
    ]
    if parts:
        yield section("The model", *parts)


def _deciding_households(columns: Mapping[str, Any]) -> Iterator[str]:
    ids = columns["household_id"]
    never = sum(not forgets for forgets in columns["forgets"])
    yield paragraph(
        f"{never:,} of {len(ids):,} households count as never forgotten (too few visits to some state, or a chain that "
        "falls apart): any one of them decides the model at every age."
    )
    distances = {name: values for name, values in columns.items() if name.startswith(_DISTANCE)}
    rows = []
    for name, values in distances.items():
        order = [place for _, _, place in sorted(zip((-value for value in values), ids, range(len(ids)), strict=True))]
        age = name.removeprefix(_DISTANCE).removesuffix("_days")
        others = plain(values[order[1]]) if len(order) > 1 else "–"
        rows.append((f"{age} d", ids[order[0]], plain(values[order[0]]), others))
    if rows:
        heads = ("age", "household", "total variation", "the next one's")
        yield table("The household that forgets most slowly, by age: it decides what is published", heads, rows)


def _memory_parts(table_of: pa.Table, name: str) -> Iterator[str]:
    figures = np.array(table_of["figure"].to_pylist(), dtype=object)
    apart = table_of["days_apart"].to_numpy()
    for figure in dict.fromkeys(figures.tolist()):
        own = figures == figure
        values = {column: table_of[column].to_numpy()[own] for column in ("powers", "direct", "floor")}
        yield from _memory_chart(figure, apart[own], values)
    yield paragraph(f"All of it, with intervals: forgetting/{name}.html.", "soft")


def _memory_chart(figure: str, apart: np.ndarray[Any, Any], values: dict[str, np.ndarray[Any, Any]]) -> Iterator[str]:
    ages = sorted(set(apart.tolist()))
    names = {"powers": "by powers of the chain", "direct": "counted directly", "floor": "noise of such a count"}
    medians = {names[column]: [_median(each[apart == age]) for age in ages] for column, each in values.items()}
    known = {name: each for name, each in medians.items() if not all(map(math.isnan, each))}
    if not known:
        return
    x = [float(place) for place in range(len(ages))]
    lines = [
        Line(name, x, each, letter=name[3:4].upper() if name.startswith("by") else name[0].upper(), style=place)
        for place, (name, each) in enumerate(known.items())
    ]
    said = "; ".join(f"{name}: {plain(each[0])} at {ages[0]} d" for name, each in known.items() if each[0] == each[0])
    axis = named({place: f"{age} d" for place, age in zip(x, ages, strict=True)})
    title = f"Model against measurement, median household: {figure}"
    y = linear([0.0, 1.0])
    yield chart(
        title, f"Total variation by days apart. {said}.", lines, x=axis, y=y, y_title="total variation", height=190
    )
    rows = [
        (f"{age} d", *("–" if math.isnan(each[i]) else short(each[i]) for each in known.values()))
        for i, age in enumerate(ages)
    ]
    yield table("The same in numbers, by days apart", ("apart", *known), rows)


def _median(values: np.ndarray[Any, Any]) -> float:
    there = values[~np.isnan(values)]
    return float(np.median(there)) if len(there) else math.nan
