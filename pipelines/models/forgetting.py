"""READINGS of the model's period -> FORGETTING: do the households forget as fast as the chain says?

    <confidential>/forgetting/<model>.parquet    figures of every household (`tables.FORGETTING`)
    <confidential>/forgetting/<model>.html       the same for people (`forgetting_page`)

<model> is the name of the model's folder, and unless that lies beside the confidential one a mark of where it does: two
models of one name leave two reports.
Confidential and indicative: it never sets noise and stands in no statement, and the model's public part knows nothing
of it. One pass over the store (`memory`), then households in groups of a fixed size, so that the same readings give
the same bytes whatever the blocks, workers and order. What is quick (three of four figures) is measured for every
household; the chain of half-hours, 60 ms a household and year, and the intervals of what the calendar leaves for at
most 200 of them, evenly spaced over the roster.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
from scipy.stats import binom

from agedp_data import tables
from agedp_data.config import RunFile
from agedp_data.config.model import EstimatedModel
from agedp_data.readers.layout import Ints
from pipelines import folders
from pipelines.blocks import Engine, map_each
from pipelines.models.memory import (
    DAY_TOTALS,
    HALF_HOURS,
    LEVEL,
    VALUES,
    Figures,
    MemoryRequest,
    PeriodReadings,
    hold,
    of_group,
    of_sample,
)
from pipelines.quantize import Floats, Period
from pipelines.reports.forgetting import memory_report_page, report_name

SAMPLE = 200

_GROUP, _SAMPLED = 64, 50
_SEED = 20130101  # a check, not a release: the same readings give the same verdict
_BY_CHANCE = 1e-3
_ALLOWED = 2 * (1 - LEVEL)  # an estimated chain is a little more extreme than the true one: 5 to 6 % instead of 5


@dataclass(frozen=True, slots=True)
class GoodnessOfFit:
    """How many households could be checked, and how many of them remember for longer than their chain says."""

    checked: int
    rejected: int

    @property
    def contradicted(self) -> bool:
        """Tell whether clearly more are rejected than twice what chance explains, were all of them such chains."""
        return bool(binom.sf(self.rejected - 1, self.checked, _ALLOWED) < _BY_CHANCE)


@dataclass(frozen=True, slots=True)
class MemoryCurves:
    """What households remember (confidential): by figure and value (h, T) at `ages_days`, NaN where not measured.

    `loss` is that of a day [-]; `memory_report_page` is where the report lies.
    """

    ages_days: tuple[int, ...]
    loss: float
    figures: Figures
    page: Path

    @property
    def checks(self) -> dict[str, GoodnessOfFit]:
        """Return the checks of the chain that were made: of day totals, and of half-hours if the model has them."""
        return {name: check_of(self.figures[name]) for name in (DAY_TOTALS, HALF_HOURS) if name in self.figures}

    def median(self, figure: str, value: str) -> Floats:
        """Return the median over the households that have a value, NaN without one: (T,)."""
        return self.quantile(figure, value, 0.5)

    def quantile(self, figure: str, value: str, share: float) -> Floats:
        """Return a quantile over the households that have a value, NaN without one: (T,)."""
        columns = [column[~np.isnan(column)] for column in self.figures[figure][value].T]
        return np.array([np.quantile(column, share) if len(column) else np.nan for column in columns])


def check_of(values: dict[str, Floats]) -> GoodnessOfFit:
    """Return how many households were compared at some age, and rejected at some age."""
    rejected = values["rejected"]
    return GoodnessOfFit(int((~np.isnan(rejected)).any(axis=1).sum()), int((rejected == 1).any(axis=1).sum()))


def asked_of(run: RunFile, model: EstimatedModel) -> MemoryRequest:
    """Return what is asked for a run file: of several series the one that says most of a day, its clamp the largest."""
    series = max(run.series.values(), key=lambda one: (one.clamp_wh, one.max_missing))
    return MemoryRequest(model, series.clamp_wh, series.max_missing, float(run.promise.max_day_epsilon))


def remember(period: Period, asked: MemoryRequest, *, folder: Path, engine: Engine) -> MemoryCurves:
    """Measure what the households of the roster remember over the period; write the table and the page.

    Args:
        period: which readings.
        asked: about what.
        folder: the confidential one.
        engine: what the pass over the store runs on; the groups run on threads of this process.
    """
    held = hold(period, engine=engine)
    there = np.flatnonzero((held.number > 0).any(axis=1))
    sampled = there[np.unique(np.linspace(0, len(there) - 1, min(len(there), SAMPLE)).round().astype(np.int64))]
    groups = [(False, homes) for homes in _cut(there, _GROUP)] + [(True, homes) for homes in _cut(sampled, _SAMPLED)]
    here = replace(engine, scheduler="threads")
    found = map_each(
        "forgetting", list(enumerate(groups)), each=partial(_measured, held=held, asked=asked), engine=here
    )
    size = (len(period.roster.ids), len(asked.model.ages_days))
    figures = _together([homes for _, homes in groups], found, size)
    path = folders.make_private(folder / "forgetting") / report_name(asked.model.file, folder)
    ids = period.roster.ids
    folders.write_table(path.with_name(f"{path.name}.parquet"), _table(figures, ids, there, asked.model.ages_days))
    shown = {name: {value: each[there] for value, each in values.items()} for name, values in figures.items()}
    made = MemoryCurves(asked.model.ages_days, asked.loss, shown, path.with_name(f"{path.name}.html"))
    folders.write(made.page, memory_report_page(made).encode())
    return made


def _cut(homes: Ints, size: int) -> list[Ints]:
    return [homes[i : i + size] for i in range(0, len(homes), size)]


def _measured(item: tuple[int, tuple[bool, Ints]], *, held: PeriodReadings, asked: MemoryRequest) -> Figures:
    number, (sampled, homes) = item
    measure = of_sample if sampled else of_group
    return measure(homes, held=held, asked=asked, rng=np.random.default_rng([_SEED, number]))


def _together(groups: Sequence[Ints], found: Sequence[Figures], size: tuple[int, int]) -> Figures:
    """Return the figures of all households of the roster: every value (h, T)."""
    names = dict.fromkeys(name for group in found for name in group)
    figures: Figures = {name: {value: np.full(size, np.nan) for value in VALUES} for name in names}
    for homes, group in zip(groups, found, strict=True):
        for name, values in group.items():
            for value, each in values.items():
                figures[name][value][homes] = each
    return figures


def _table(figures: Figures, ids: Sequence[str], homes: Ints, ages_days: Sequence[int]) -> pa.Table:
    """Return FORGETTING: figure by figure, household by household, the measured ones alone."""
    code, figure, age = [], [], []
    values: dict[str, list[Floats]] = {value: [] for value in VALUES}
    for name, of_figure in figures.items():
        measured = homes[~np.isnan(np.stack([of_figure[value][homes] for value in VALUES])).all(axis=(0, 2))]
        code.append(np.repeat(measured, len(ages_days)))
        age.append(np.tile(ages_days, len(measured)))
        figure += [name] * (len(measured) * len(ages_days))
        for value in VALUES:
            values[value].append(of_figure[value][measured].ravel())
    every = {value: np.concatenate([np.zeros(0), *each]) for value, each in values.items()}
    rejected = every.pop("rejected")
    household = np.concatenate([np.zeros(0, np.int64), *code]).astype(np.int32)
    return tables.columns(
        tables.FORGETTING,
        household_id=pa.DictionaryArray.from_arrays(pa.array(household), pa.array(ids, pa.string())),
        figure=figure,
        days_apart=np.concatenate([np.zeros(0, np.int64), *age]),
        **every,
        checked=~np.isnan(rejected),
        rejected=rejected == 1,
    )
