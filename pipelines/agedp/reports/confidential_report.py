"""TRUE MEANS and COUNTS, COVERAGE, QUALITY, readings, goodness of fit + LEDGER -> the confidential report.

    <confidential>/report.html    0600, rewritten by every run that finds something new

It compares published with true values: utility, coverage, effect of the clamp, rejected rows, goodness of fit of the
model. It may contain household ids, and is never handed over with a release. Nothing that is published depends on it.

Of an estimated model, the confidential files that `agedp calibrate` wrote once are sources too. No release depends on
them, and a damaged one costs a section of the report:

    <model folder>/households.parquet              which household decides the model, by age
    <model folder>/transitions.parquet             the transition counts of each household
    <confidential>/forgetting/<model>.parquet      the chain against lagged counts

Decisions:

* The table of true counts stays in columns: 2,000 cells over three years are 2.2 million counts, as Python rows 1
  GB.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from agedp.calibration.leakage_bounds import steps_per_day
from agedp.calibration.model_check import report_name
from agedp.calibration.quantize import Floats
from agedp.internal_records.bookkeeping import COUNTED_STATES, COVERAGE, TRUE_COUNTS, TRUE_MEANS
from agedp.local_files import atomic_files
from agedp.local_files.atomic_files import FileKind, FileNotice, InternalPaths, read_columns, read_content
from agedp.local_files.books import Books
from agedp.reports import svg
from agedp.reports.html import TEXTS, PageSection, anchor_of, closed, paragraph, render_page, side_by_side, table
from agedp.reports.released_series import signal_parts
from agedp.reports.series_charts import CellMean, cell_means, percent, range_names, ranges_axis, ranges_hover, whiskers
from agedp.stage_values import Delivery
from agedp.store.bucketed_roster import write_bucketed_roster
from agedp.store.daily_totals import load_month_matrix
from agedp.store.store import Store, read_retained_from
from agedp_data import table_schemas
from agedp_data.accounting.temporal_leakage import daily_release_leakage
from agedp_data.config import RunFile
from agedp_data.config.model_section import EstimatedModel
from agedp_data.datasets.validation import Ints
from agedp_data.epsilon import NANO, to_float
from agedp_data.ledger import ReleaseRecord
from agedp_data.markov.transitions import transition_matrix
from agedp_data.notions.notion import day_losses, losses_by_day_number
from agedp_data.roster import Roster, RosterRows
from agedp_data.series.distribution import Distribution
from agedp_data.series.layered_mean import is_upper
from agedp_data.series.result_table import Noise
from agedp_data.series.series_terms import EnergySeries

_TEXTS = TEXTS["confidential_report"]


@dataclass(frozen=True, slots=True)
class InternalSources:
    """Run file, confidential files, roster and readings of a run."""

    run: RunFile
    paths: InternalPaths
    roster: Roster
    store: Store
    delivery: Delivery

    @property
    def population(self) -> str:
        """Return the name of the population."""
        return self.run.population.name


_ADVICE = "Put back a copy, or remove the file; releases do not depend on it"
_DISTANCE = "total_variation_"


@dataclass(frozen=True, slots=True)
class ModelFiles:
    """Contents of the files, None for a missing or damaged one, and the warnings.

    `households` are the columns of households.parquet, `chains` the households whose chain mixes, with their transition
    matrices (h, k, k), `goodness_of_fit` the table `table_schemas.GOODNESS_OF_FIT`.
    """

    households: Mapping[str, Any] | None = None
    chains: tuple[list[str], Floats] | None = None
    goodness_of_fit: pa.Table | None = None
    notices: tuple[FileNotice, ...] = ()


def read_model_files(sources: InternalSources) -> ModelFiles:
    """Return the confidential files of a run's model; a declared model has none.

    They are about real households, so a rehearsal on synthetic ones leaves them closed.
    """
    model = sources.run.model
    if not isinstance(model, EstimatedModel) or not sources.run.schedule.reads_input:
        return ModelFiles()
    folder = Path(model.file)
    name = report_name(model.file, sources.paths.folder)
    households = read_content(folder / "households.parquet", _household_columns, FileKind.SUPPLEMENT, advice=_ADVICE)
    notices = [households.notice]
    chains = None
    if households.value is not None and model.assume == "markov" and model.chain == "homogeneous":
        parse = partial(_chains, households=households.value)
        transitions = read_content(folder / "transitions.parquet", parse, FileKind.SUPPLEMENT, advice=_ADVICE)
        chains = transitions.value
        notices.append(transitions.notice)
    read_fit = partial(atomic_files.read_table, schema=table_schemas.GOODNESS_OF_FIT)
    fit = read_content(
        sources.paths.folder / "forgetting" / f"{name}.parquet", read_fit, FileKind.SUPPLEMENT, advice=_ADVICE
    )
    notices.append(fit.notice)
    warnings = tuple(notice for notice in notices if notice is not None)
    return ModelFiles(households.value, chains, fit.value, warnings)


def _household_columns(path: Path) -> Mapping[str, Any]:
    columns: Mapping[str, Any] = read_columns(path).to_pydict()
    if not all(isinstance(value, bool) for value in columns["forgets"]):
        raise TypeError("forgets is no truth value")
    if not all(isinstance(value, str) for value in columns["household_id"]):
        raise TypeError("household_id is no text")
    numbers = [value for name, values in columns.items() if name.startswith(_DISTANCE) for value in values]
    if not all(isinstance(value, float) for value in numbers):
        raise TypeError("a total variation is no number")
    return columns


def _chains(path: Path, households: Mapping[str, Any]) -> tuple[list[str], Floats]:
    """Return the households whose chain mixes, and their transition matrices (h, k, k)."""
    table = read_columns(path)
    if table["household_id"].to_pylist() != households["household_id"]:
        raise ValueError("the households are not those of households.parquet")
    cells = table.drop_columns(["household_id"])
    size = round(cells.num_columns**0.5)
    counts = np.stack([column.to_numpy() for column in cells.columns], axis=-1).reshape(-1, size, size)
    if not np.issubdtype(counts.dtype, np.integer) or (counts < 0).any():
        raise ValueError("a count of transitions is none")
    mixes = np.array(households["forgets"], bool)
    ids = [id_ for id_, is_mixing in zip(households["household_id"], mixes, strict=True) if is_mixing]
    return ids, transition_matrix(counts[mixes], smoothing=0) if ids else np.zeros((0, size, size))


# --------------------------------------------------------------------------------------------------
# Part of the confidential report on clamped households, and on the effect of the clamp on a mean. Confidential.
#
# Both are computed anew by every run from the newest months of the store that contain released days and are not
# deleted yet, one household bucket after the other. They inform the choice of a clamp; the clamp itself is public and
# is never computed from the data.
# --------------------------------------------------------------------------------------------------

MAX_MONTHS: Final = 13
_MAX_SHOWN: Final = 20


@dataclass(frozen=True, slots=True)
class ClampedHousehold:
    """A clamped household: number of days above the clamp, and its largest daily total [kWh]."""

    household: str
    days_above: int
    largest_kwh: float


@dataclass(frozen=True, slots=True)
class ClampEffect:
    """Effect of a series' clamp: the number of clamped households, those with most days, and the reduction of the mean.

    `cut_kwh` is the reduction of a daily mean by the clamp, averaged over `days` days [kWh per household].
    """

    series: str
    clamp_kwh: float
    days: int
    clamped: int
    clamped_households: tuple[ClampedHousehold, ...]
    cut_kwh: float


def clamp_effects(sources: InternalSources, days: Sequence[date]) -> list[ClampEffect]:
    """Return the effect of each series' clamp on released days, as far as the store still has their readings."""
    if not days:
        return []
    with sources.store.locked():
        first_month = read_retained_from(sources.store.folder)
        months = sorted({f"{day:%Y-%m}" for day in days} & set(sources.delivery.months))
        stored = [month for month in months if month >= first_month][-MAX_MONTHS:]
        days_by_month = {month: [day for day in days if f"{day:%Y-%m}" == month] for month in stored}
        uses = {name: series for name, series in sources.run.series.items() if isinstance(series, EnergySeries)}
        counts = {name: _ClampCounts() for name in uses}
        roster = write_bucketed_roster(sources.paths.folder, sources.roster, sources.store.buckets)
        for bucket in range(sources.store.buckets if days_by_month else 0):
            _count_bucket(sources, (bucket, roster.bucket(bucket)), days_by_month, uses, counts)
    return [
        series_counts.effect(name, uses[name].clamp_wh / 1000.0)
        for name, series_counts in counts.items()
        if series_counts.cut_wh
    ]


@dataclass(slots=True)
class _ClampCounts:
    """Clamped households, those with most days, and by day what the clamp cuts off [Wh] and the households."""

    clamped: int = 0
    households: list[ClampedHousehold] = field(default_factory=list)
    cut_wh: dict[date, int] = field(default_factory=lambda: defaultdict(int))
    members: dict[date, int] = field(default_factory=lambda: defaultdict(int))

    def effect(self, series: str, clamp_kwh: float) -> ClampEffect:
        cut_kwh = sum(float(cut_wh) / (1000.0 * max(self.members[day], 1)) for day, cut_wh in self.cut_wh.items())
        days = len(self.cut_wh)
        return ClampEffect(series, clamp_kwh, days, self.clamped, tuple(self.households), cut_kwh / days)


def _count_bucket(
    sources: InternalSources,
    numbered_roster: tuple[int, RosterRows],
    days_by_month: Mapping[str, Sequence[date]],
    uses: Mapping[str, EnergySeries],
    counts_by_series: Mapping[str, _ClampCounts],
) -> None:
    bucket, roster = numbered_roster
    number = {name: np.zeros(len(roster.ids), np.int64) for name in counts_by_series}
    largest = {name: np.zeros(len(roster.ids), np.int64) for name in counts_by_series}
    states = sources.run.counted_states
    for month, days in days_by_month.items():
        matrix = load_month_matrix(
            sources.store, sources.delivery, roster, month, bucket=bucket, states=states, days=days
        )
        for day in days:
            codes = np.concatenate([np.zeros(0, np.int64), *roster.members(day, None).values()])
            for name, counts in counts_by_series.items():
                energy_wh, clamp_wh = matrix.energy_of(uses[name])[codes, day.day - 1], uses[name].clamp_wh
                number[name][codes] += energy_wh > clamp_wh
                largest[name][codes] = np.maximum(largest[name][codes], energy_wh)
                counts.cut_wh[day] += int(np.maximum(energy_wh - clamp_wh, 0).sum())
                counts.members[day] += len(codes)
    for name, counts in counts_by_series.items():
        clamped = np.flatnonzero(number[name]).tolist()
        counts.clamped += len(clamped)
        counts.households += [
            ClampedHousehold(roster.ids[code], int(number[name][code]), float(largest[name][code]) / 1000.0)
            for code in clamped
        ]
        counts.households = sorted(counts.households, key=lambda one: (-one.days_above, one.household))[:_MAX_SHOWN]


def clamp_parts(effects: Sequence[ClampEffect]) -> Iterator[str]:
    """Yield the table of clamped households of each series."""
    for effect in effects:
        description = (
            f"{effect.series}, clamp {svg.format_number(effect.clamp_kwh)} kWh, "
            f"{effect.days:,} days with readings in the store"
        )
        if not effect.clamped:
            yield paragraph(f"No household was above the clamp: {description}.")
            continue
        rows = [
            (household.household, f"{household.days_above:,}", svg.format_number(household.largest_kwh))
            for household in effect.clamped_households
        ]
        shown_text = f"; the first {_MAX_SHOWN} of {effect.clamped:,}" if effect.clamped > _MAX_SHOWN else ""
        columns = ("household", "days above", "largest day, kWh")
        yield table(f"Clamped households: {description}{shown_text}", columns, rows)
        lowered = f"the sum of the layers up to {effect.series}" if is_upper(effect.series) else "a daily mean"
        text = f"The clamp lowers {lowered} by {svg.format_number(effect.cut_kwh)} kWh"
        yield paragraph(f"{text} per household on average.", "soft")


# --------------------------------------------------------------------------------------------------
# Parts of the confidential report on single households: the model, and temporal leakage. Confidential.
#
# * Households that decide the model.
# * Temporal leakage of each household under its own chain, and the households with the largest one. The public bound
#   uses the leakage bound, a maximum over all households at every step. Here the recursion ([T] section 3) uses each
#   household's own kernels, as one stack, over the newest released days.
# --------------------------------------------------------------------------------------------------

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
        (f"{100 * share:g} % of the households at most", svg.format_number(float(np.quantile(leakage, share))))
        for share in _SHARES
    ]
    household_rows = [(ids[index], svg.format_number(float(leakage[index]))) for index in order[:_MAX_SHOWN_HOUSEHOLDS]]
    caption = (
        f"Temporal leakage about one day from the newest {len(losses)} released days, under each household's own chain "
        f"(a day's own loss: at most {svg.format_number(to_float(max(losses.values())))})"
    )
    yield table(caption, ("households", "epsilon"), [*quantile_rows, *household_rows])


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
        fit, name = files.goodness_of_fit, report_name(model.file, sources.paths.folder)
        measure_names = np.array(fit["figure"].to_pylist(), dtype=object)
        days_apart = fit["days_apart"].to_numpy()
        for measure_name in dict.fromkeys(measure_names.tolist()):
            is_selected = measure_names == measure_name
            values = {column: fit[column].to_numpy()[is_selected] for column in ("powers", "direct", "floor")}
            yield from _memory_chart(measure_name, days_apart[is_selected], values)
        yield paragraph(f"All values, with intervals: forgetting/{name}.html.", "soft")


def _deciding_households(columns: Mapping[str, Any]) -> Iterator[str]:
    ids = columns["household_id"]
    never_mixing = sum(not mixes for mixes in columns["forgets"])
    yield paragraph(
        f"{never_mixing:,} of {len(ids):,} households count as never mixing (too few visits to some state, or a chain "
        "that falls into several parts): any one of them determines the model at every age."
    )
    rows = []
    for name in filter(lambda name: name.startswith(_DISTANCE), columns):
        slowest = sorted((-value, household) for value, household in zip(columns[name], ids, strict=True))
        largest = [svg.format_number(-value) for value, _ in slowest[:2]]
        age = name.removeprefix(_DISTANCE).removesuffix("_days")
        rows.append((f"{age} d", slowest[0][1], *(largest if len(largest) > 1 else [*largest, "–"])))
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


def _memory_chart(
    measure_name: str, days_apart: np.ndarray[Any, Any], values: dict[str, np.ndarray[Any, Any]]
) -> Iterator[str]:
    ages = sorted(set(days_apart.tolist()))
    names = {"powers": "predicted by the chain", "direct": "lagged counts", "floor": "null level"}
    medians = {name: [_median(values[column][days_apart == age]) for age in ages] for column, name in names.items()}
    measured = {name: by_age for name, by_age in medians.items() if not all(map(math.isnan, by_age))}
    if not measured:
        return
    if all(svg.constant_value(by_age) is not None for by_age in measured.values()):
        values_text = "; ".join(f"{name}: {svg.format_rounded_up(of_ages[0])}" for name, of_ages in measured.items())
        yield paragraph(f"{measure_name}, median household: the same at all {len(ages)} lags. {values_text}.")
        return
    positions = [float(position) for position in range(len(ages))]
    lines = [
        svg.Line(name, positions, by_age, letter=name[0].upper(), style=style)
        for style, (name, by_age) in enumerate(measured.items())
    ]
    description = "; ".join(
        f"{name}: {svg.format_number(by_age[0])} at {ages[0]} d"
        for name, by_age in measured.items()
        if not math.isnan(by_age[0])
    )
    axis = svg.named_axis({position: f"{age} d" for position, age in zip(positions, ages, strict=True)})
    title = f"Model and lagged counts, median household: {measure_name}"
    hover = svg.Hover(lambda place: f"lag {ages[round(place)]} days", "", svg.format_rounded_up)
    y, about = svg.linear_axis([0.0, 1.0]), f"Total variation by lag. {description}."
    yield svg.chart(title, about, [*lines, hover], x=axis, y=y, y_title="total variation", height=190)
    rows = [
        (f"{age} d", *("–" if math.isnan(value) else svg.format_rounded_up(value) for value in row))
        for age, *row in zip(ages, *measured.values(), strict=True)
    ]
    yield table("The same in numbers, by lag", ("lag", *measured), rows)


def _median(values: np.ndarray[Any, Any]) -> float:
    measured = values[~np.isnan(values)]
    return float(np.median(measured)) if len(measured) else math.nan


# --------------------------------------------------------------------------------------------------
# Utility parts of the confidential report: published values and true ones. Confidential.
#
# * TRUE MEANS + LEDGER -> utility of a release: its errors compared with its noise.
# * COUNTED STATES -> means by states compared with means by readings.
# --------------------------------------------------------------------------------------------------

SeriesCell = tuple[str, str]
"""Series and cell."""


@dataclass(frozen=True, slots=True)
class CellUtility:
    """A cell of a series on one day: true mean, and published mean with its noise [kWh per household]."""

    day: date
    true: float
    published: CellMean

    @property
    def error(self) -> float:
        """Return the published less the true mean [kWh per household]."""
        return self.published.mean - self.true


@dataclass(frozen=True, slots=True)
class Utility:
    """Errors over days: root mean square in kWh and in standard deviations of the noise.

    `inside` is the share of days whose true mean lies in the published interval; `change_kwh` the root mean square of
    the change of the true mean from one day to the next, NaN without two such days; `stale_kwh` the same from a day to
    the one `age_days` later; `expected_kwh` is the root mean square error that the noise alone would give, `relative`
    the mean over days of b/|true mean|, b = sd/sqrt(2) the expected size of Laplace noise; NaN if every
    true mean is 0.
    """

    days: int
    rms_kwh: float
    expected_kwh: float
    relative: float
    inside: float
    change_kwh: float
    stale_kwh: float

    @property
    def in_sd(self) -> float:
        """Return the ratio of errors to noise: 1 if the noise is the only error."""
        return self.rms_kwh / self.expected_kwh


def pair_with_true_means(
    recorded: Sequence[Mapping[str, Any]], released: Mapping[str, Mapping[str, Sequence[CellMean]]]
) -> dict[SeriesCell, list[CellUtility]]:
    """Return by series and cell the days with a recorded true mean, each with its published mean."""
    true = {(line["series"], line["cell"], line["day"]): line["true_mean_kwh"] for line in recorded}
    utilities: dict[SeriesCell, list[CellUtility]] = {}
    for series, cells in released.items():
        for cell, means in cells.items():
            days = [mean for mean in means if (series, cell, mean.day) in true]
            if days:
                utilities[series, cell] = [CellUtility(mean.day, true[series, cell, mean.day], mean) for mean in days]
    return utilities


def utility(days: Sequence[CellUtility], *, age_days: int) -> Utility:
    """Return the utility over these days."""
    error = np.array([day.error for day in days])
    sd = np.array([day.published.sd for day in days])
    inside = [day.published.low <= day.true <= day.published.high for day in days]
    change, stale = _change(days, 1), _change(days, age_days) if age_days else 0.0
    parts = [day.published.sd / math.sqrt(2) / abs(day.true) for day in days if day.true]
    relative = float(np.mean(parts)) if parts else math.nan
    return Utility(len(days), _rms(error), _rms(sd), relative, float(np.mean(inside)), change, stale)


def _change(days: Sequence[CellUtility], gap: int) -> float:
    true = {day.day.toordinal(): day.true for day in days}
    changes = [true[number + gap] - value for number, value in true.items() if number + gap in true]
    return _rms(np.array(changes)) if changes else math.nan


def _rms(values: np.ndarray[Any, np.dtype[np.float64]]) -> float:
    return float(np.sqrt(np.mean(np.square(values))))


def state_parts(sources: InternalSources) -> Iterator[str]:
    """Yield the table of means by states and by readings, for each series that counts states."""
    table_rows = COUNTED_STATES.read(Books(sources.paths.books), sources.population).to_pylist()
    if not table_rows:
        return
    by_cell: dict[SeriesCell, list[Mapping[str, Any]]] = {}
    for table_row in table_rows:
        by_cell.setdefault((table_row["series"], table_row["cell"]), []).append(table_row)
    differences = ("difference", "smallest", "largest", "root mean square")
    columns = ("series, cell", "days", "by readings", "by states", *differences)
    caption = "Daily means by readings and by states, kWh per household; differences by day: states less readings"
    yield table(caption, columns, [(", ".join(key), *_row(cell_rows)) for key, cell_rows in by_cell.items()])


def _row(lines: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    differences = [line["states_kwh"] - line["readings_kwh"] for line in lines]
    means = [sum(line[name] for line in lines) / len(lines) for name in ("readings_kwh", "states_kwh")]
    rms = math.sqrt(sum(difference**2 for difference in differences) / len(differences))
    numbers = (*means, sum(differences) / len(differences), min(differences), max(differences), rms)
    return (f"{len(lines):,}", *map(svg.format_number, numbers))


# --------------------------------------------------------------------------------------------------
# TRUE COUNTS + LEDGER -> true and published counts of a distribution, in the confidential report. Confidential.
# --------------------------------------------------------------------------------------------------

_GROUPS = 12
_COLUMNS = ("day", "series", "cell", "true_households")
_UNKNOWN = -1


class _TrueCounts:
    """The true counts of one series; `of` returns those of a release in the order of its cells."""

    def __init__(self, counts: pa.Table) -> None:
        cells = counts["cell"].combine_chunks().dictionary_encode()
        self._codes, self._values = cells.indices.to_numpy(), counts["true_households"].to_numpy()
        self._place = {cell: code for code, cell in enumerate(cells.dictionary.to_pylist())}
        self._days = counts["day"].cast(pa.int32()).to_numpy()  # the table is sorted by population, then by day
        self._cells: dict[tuple[str, ...], Ints] = {}

    def of(self, row: ReleaseRecord) -> Ints | None:
        """Return the true counts of a release, None if some are not recorded."""
        if row.cells not in self._cells:
            codes = [self._place.get(cell, len(self._place)) for cell in row.cells]
            self._cells[row.cells] = np.array(codes, np.int64)
        day = date.fromisoformat(row.day).toordinal() - date(1970, 1, 1).toordinal()
        of_day = slice(*np.searchsorted(self._days, (day, day + 1)).tolist())
        by_code = np.full(len(self._place) + 1, _UNKNOWN, np.int64)
        by_code[self._codes[of_day]] = self._values[of_day]
        counts: Ints = by_code[self._cells[row.cells]]
        return None if (counts == _UNKNOWN).any() else counts


def count_parts(sources: InternalSources, rows: Sequence[ReleaseRecord]) -> Iterator[str]:
    """Yield for each distribution of the run file true and published counts of its newest day, and all its errors."""
    distributions = {name: series for name, series in sources.run.series.items() if isinstance(series, Distribution)}
    if not distributions:
        return
    recorded = TRUE_COUNTS.read(Books(sources.paths.books), sources.population, columns=_COLUMNS)
    for name, series in distributions.items():
        true = _TrueCounts(recorded.filter(pc.equal(recorded["series"], name)))
        series_rows = [
            row for row in rows if row.series == name and row.state == "released" and series.holds(row.cells)
        ]
        recorded_rows = sorted((row for row in series_rows if true.of(row) is not None), key=lambda row: row.day)
        if recorded_rows:
            yield from _newest_charts(sources, name, series, recorded_rows[-1], true)
            yield _error_table(sources, name, series, recorded_rows, true)
        else:
            yield paragraph(f"No true count of {name} is recorded yet.")


def _newest_charts(
    sources: InternalSources, name: str, series: Distribution, row: ReleaseRecord, true: _TrueCounts
) -> Iterator[str]:
    ranges, counts = len(series.ranges_kwh), true.of(row)
    half_width = Noise(sources.run.output.interval).half_width(row.scale)
    for start in range(0, min(len(row.cells), _GROUPS * ranges), ranges):
        values = row.values[start : start + ranges]
        true_counts = [] if counts is None else [float(count) for count in counts[start : start + ranges]]
        label = ", ".join([name, *([series.read_cells(row.cells)[start].group] if series.by is not None else [])])
        line_name = f"published, with the interval of its noise ({percent(sources.run.output.interval)})"
        layers = [
            whiskers(line_name, [float(value) for value in values], half_width, style=0),
            svg.Line("true", [float(i) for i in range(ranges)], true_counts, letter="T", style=1),
        ]
        ends = [0.0, *true_counts, *(value + sign * half_width for value in values for sign in (-1, 1))]
        worst = max(range(ranges), key=lambda i: abs(values[i] - true_counts[i]))
        description = (
            f"The largest error is {svg.format_number(values[worst] - true_counts[worst])} households, for "
            f"{range_names(series)[worst]} kWh."
        )
        title = f"Published and true number of households by use on {row.day}: {label}"
        x, y = ranges_axis(series), svg.linear_axis(ends, zero=True)
        yield svg.chart(title, description, [*layers, ranges_hover(series)], x=x, y=y, y_title="households")


def _error_table(
    sources: InternalSources, name: str, series: Distribution, rows: Sequence[ReleaseRecord], true: _TrueCounts
) -> str:
    ranges, noise_of = len(series.ranges_kwh), Noise(sources.run.output.interval)
    sums = np.zeros((4, ranges))  # of true counts, of squared errors and of variances; counts inside the interval
    cells = 0
    for row in rows:
        counts = true.of(row)
        if counts is not None:
            errors = np.array(row.values, np.float64) - counts
            is_inside = np.abs(errors) <= noise_of.half_width(row.scale)
            variances = np.full(len(errors), noise_of.deviation(row.scale) ** 2)
            of_row = [counts, errors**2, variances, is_inside]
            sums += np.array(of_row, np.float64).reshape(4, -1, ranges).sum(axis=1)
            cells += len(errors) // ranges
    mean, squared_error, variance, inside = sums / cells
    error, noise = squared_error**0.5, variance**0.5
    columns_of_numbers = zip(mean, error, noise, error / noise, strict=True)
    body = [
        (name_of_range, *map(svg.format_number, numbers), svg.format_percent(share))
        for name_of_range, numbers, share in zip(range_names(series), columns_of_numbers, inside, strict=True)
    ]
    columns = ("kWh", "true", "error", "noise", "error / noise", "inside")
    return table(f"Households by use, means and root mean squares over {len(rows)} days: {name}", columns, body)


# --------------------------------------------------------------------------------------------------
# TRUE MEANS and COUNTS, COVERAGE, QUALITY, readings, goodness of fit + LEDGER -> the confidential report.
# --------------------------------------------------------------------------------------------------

REPORT = "report.html"
_KWH = "kWh per household"
_COUNTED = ("households", "usable", "clamped")
_MOST_WIDE = 3
"""Charts and tables that stand below one another."""

_SYNTHETIC_NOTE = "The households are synthetic: true values are theirs, and no reading was read."


def write_confidential_report(sources: InternalSources, rows: Sequence[ReleaseRecord]) -> tuple[FileNotice, ...]:
    """Write the confidential report on all releases of the population, for those who run agedp.

    Returns:
        Notices of the parts that are missing because a file is damaged.
    """
    released = sorted({date.fromisoformat(row.day) for row in rows if row.state == "released"})
    utilities = _cell_utilities(sources, rows)
    results = {
        key: utility(cell_days, age_days=sources.run.promise.age_days or 0) for key, cell_days in utilities.items()
    }
    means = {series for series, _ in utilities}
    mean_rows = [row for row in rows if row.series in means]
    counted = COVERAGE.read(Books(sources.paths.books), sources.population)
    sums = counted.group_by(["series", "day"], use_threads=False).aggregate([(name, "sum") for name in _COUNTED])
    coverage_rows: list[dict[str, Any]] = sums.rename_columns({f"{name}_sum": name for name in _COUNTED}).to_pylist()
    clamp_effects_by_series = clamp_effects(sources, released)
    files = read_model_files(sources)
    states = [*state_parts(sources)]
    parts_by_title = {
        "Published and true values": [
            *_mean_parts(sources, utilities, results),
            *signal_parts(mean_rows),
            *count_parts(sources, rows),
        ],
        "Coverage and clamp": [*_coverage_parts(coverage_rows), *clamp_parts(clamp_effects_by_series)],
        "States instead of readings": [*states, paragraph(_TEXTS.states_note, "soft")] if states else [],
        "Kept and rejected rows": [*_quality_parts(sources)],
        "The model": [*household_model_parts(sources, files, rows)],
    }
    page = render_page(
        "confidential_report.html",
        title=f"{sources.run.output.title or sources.population}: published and true values",
        note="" if sources.run.schedule.reads_input else _SYNTHETIC_NOTE,
        facts=[*_facts(sources, results, coverage_rows, clamp_effects_by_series, len(released))],
        sections=[PageSection(title, anchor_of(title), parts) for title, parts in parts_by_title.items() if parts],
    )
    atomic_files.write(sources.paths.folder / REPORT, page.encode())
    return files.notices


def _cell_utilities(sources: InternalSources, rows: Sequence[ReleaseRecord]) -> dict[SeriesCell, list[CellUtility]]:
    columns = ("day", "series", "cell", "true_mean_kwh")
    true_means = TRUE_MEANS.read(Books(sources.paths.books), sources.population, columns=columns)
    means = set(pc.unique(true_means["series"]).to_pylist())
    by_series = {
        name: cell_means([row for row in rows if row.series == name], coverage=sources.run.output.interval)
        for name in dict.fromkeys(row.series for row in rows)
        if name in means
    }
    cells = sorted({cell for cells in by_series.values() for cell in cells})  # the largest ones
    shown = true_means.filter(pc.is_in(true_means["cell"], pa.array(cells, pa.string())))
    return pair_with_true_means(shown.to_pylist(), by_series)


def _facts(
    sources: InternalSources,
    results: Mapping[SeriesCell, Utility],
    coverage_rows: Sequence[Mapping[str, Any]],
    effects: Sequence[ClampEffect],
    released: int,
) -> Iterator[tuple[str, str, str]]:
    recorded_days = max((result.days for result in results.values()), default=0)
    yield "days released", f"{released:,}", f"true means of {recorded_days:,} are recorded"
    if results:
        key, first = next(iter(results.items()))
        error = f"{svg.format_number(first.rms_kwh)}\u00a0kWh"
        yield "error of a day's mean", error, f"root mean square, {', '.join(key)}"
        yield "error / noise", svg.format_number(first.in_sd), "1: the noise is the only error"
        expected = percent(sources.run.output.interval)
        yield "true means inside", svg.format_percent(first.inside), f"the noise interval; {expected} expected"
    if coverage_rows:
        series = coverage_rows[-1]["series"]  # each household-day once: other series and levels count the same ones
        households, usable, clamped_days = (
            sum(row[name] for row in coverage_rows if row["series"] == series) for name in _COUNTED
        )
        yield "coverage", svg.format_percent(usable / max(households, 1)), f"usable household-days, {series}"
        yield "clamped", svg.format_percent(clamped_days / max(usable, 1)), f"of the usable household-days, {series}"
    if effects:
        cut_text = f"{svg.format_number(effects[0].cut_kwh)}\u00a0kWh"
        yield "clamped energy", cut_text, f"per household and day, {effects[0].series}"


def _mean_parts(
    sources: InternalSources,
    utilities: Mapping[SeriesCell, Sequence[CellUtility]],
    results: Mapping[SeriesCell, Utility],
) -> Iterator[str]:
    if not utilities:
        if any(result.true_values == "means" for result in sources.run.series.values()):
            yield paragraph("No true mean is recorded yet.")
        return
    yield paragraph(_TEXTS.error_note, "soft")
    if any(is_upper(series) for series, _ in utilities):
        yield paragraph(_TEXTS.layers_note, "soft")
    charts = [_true_chart(", ".join(key), cell_days) for key, cell_days in utilities.items()]
    yield from charts if len(charts) <= _MOST_WIDE else [side_by_side(charts)]
    age_days = sources.run.promise.age_days or 0
    stale_column = [f"{age_days} d later"] if age_days else []
    columns = ["series, cell", "days", "error", "noise", "error / noise", "inside", "relative", "day to day"]
    columns += stale_column
    rows = [
        (
            ", ".join(key),
            f"{result.days:,}",
            *map(svg.format_number, (result.rms_kwh, result.expected_kwh, result.in_sd)),
            svg.format_percent(result.inside),
            "–" if math.isnan(result.relative) else svg.format_percent(result.relative),
            *map(svg.number_or_dash, (result.change_kwh, result.stale_kwh)[: 1 + len(stale_column)]),
        )
        for key, result in results.items()
    ]
    caption = (
        "Root mean squares, kWh per household: error and noise of a day's mean; change of the true mean from day to day"
        + (f", and within {age_days} day{'s' * (age_days != 1)}" if age_days else "")
        + ". Relative: expected error from the noise alone, as a share of the true mean, averaged over the days"
    )
    yield table(caption, columns, rows)
    tables = [_month_table(", ".join(key), cell_days) for key, cell_days in utilities.items()]
    yield from tables if len(tables) <= _MOST_WIDE else [closed("Each series and group by month", tables)]


def _day_axis(shown_days: Sequence[date]) -> tuple[svg.Scale, list[float]]:
    """Return the axis from the first to the last day, and the position of each day on it."""
    numbers = range(min(shown_days).toordinal(), max(shown_days).toordinal() + 1)
    return svg.date_axis(min(shown_days), max(shown_days)), [float(number) for number in numbers]


def _true_chart(name: str, cell_days: Sequence[CellUtility]) -> str:
    by_number = {float(cell_day.day.toordinal()): cell_day for cell_day in cell_days}
    x, positions = _day_axis([cell_day.day for cell_day in cell_days])
    values = [
        (cell_day.true, cell_day.published.mean, cell_day.published.low, cell_day.published.high)
        if (cell_day := by_number.get(number))
        else (math.nan,) * 4
        for number in positions
    ]
    true, published_means, low, high = map(list, zip(*values, strict=True))
    lines = [
        svg.Line("published, with the interval of its noise", positions, published_means, band=(low, high), letter="P"),
        svg.Line("true", positions, true, letter="T", style=1),
    ]
    worst = max(cell_days, key=lambda cell_day: abs(cell_day.error))
    description = (
        f"{len(cell_days)} days; largest error {svg.format_number(worst.error)} kWh per household on {worst.day}, "
        f"true {svg.format_number(worst.true)}, published {svg.format_number(worst.published.mean)}."
    )
    y = svg.linear_axis([*low, *high, *true])
    title = f"Published and true mean by day: {name}"
    hover = svg.Hover(svg.day_text, _KWH)
    return svg.chart(title, description, [*lines, hover], x=x, y=y, y_title=_KWH)


def _month_table(name: str, cell_days: Sequence[CellUtility]) -> str:
    rows = []
    for month, month_days in svg.by_month(cell_days, lambda cell_day: cell_day.day).items():
        result = utility(month_days, age_days=0)
        pairs = [(cell_day.true, cell_day.published.mean) for cell_day in month_days]
        means = (sum(values) / len(month_days) for values in zip(*pairs, strict=True))
        numbers = map(svg.format_number, (*means, result.rms_kwh))
        rows.append((month, f"{len(month_days)}", *numbers, svg.format_percent(result.inside)))
    columns = ("month", "days", "true mean", "published", "error", "inside")
    return table(f"By month, kWh per household: {name}", columns, rows)


def _coverage_parts(coverage_rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    if not coverage_rows:
        yield paragraph("No coverage is recorded yet; it is recorded for days that are released from now on.")
        return
    by_series: dict[str, dict[date, list[int]]] = {}
    for row in coverage_rows:
        by_series.setdefault(row["series"], {})[row["day"]] = [row[name] for name in _COUNTED]
    for name, by_day in by_series.items():
        yield _coverage_chart(name, by_day)
        months = svg.by_month(sorted(by_day), lambda day: day)
        rows = [_coverage_row(month, [by_day[day] for day in month_days]) for month, month_days in months.items()]
        columns = ("month", "rows", "lowest usable", "usable", "clamped")
        yield table(f"Household-days that are usable, and of these above the clamp: {name}", columns, rows)


def _coverage_row(month: str, day_counts: Sequence[Sequence[int]]) -> tuple[str, ...]:
    """Return a month's shares of usable and clamped household-days; per day: households, usable, clamped."""
    households, usable, clamped = map(sum, zip(*day_counts, strict=True))
    lowest = min(counts[1] / max(counts[0], 1) for counts in day_counts)
    shares = lowest, usable / max(households, 1), clamped / max(usable, 1)
    return (month, f"{len(day_counts)}", *map(svg.format_percent, shares))


def _coverage_chart(name: str, by_day: Mapping[date, Sequence[int]]) -> str:
    x, positions = _day_axis(list(by_day))
    by_number = {float(day.toordinal()): counts for day, counts in by_day.items()}
    usable, clamped = (
        [
            100 * by_number[number][i] / max(by_number[number][i - 1], 1) if number in by_number else math.nan
            for number in positions
        ]
        for i in (1, 2)
    )
    lines = [
        svg.Line("households with a usable day", positions, usable, letter="U"),
        svg.Line("of these above the clamp", positions, clamped, letter="C", style=1),
    ]
    values_shown = [value for value in usable if not math.isnan(value)]
    description = (
        f"Usable: from {svg.format_number(min(values_shown))} to {svg.format_number(max(values_shown))} per cent of "
        "the household-days on the roster."
    )
    shares = [svg.constant_value(value for value in line.values if not math.isnan(value)) for line in lines]
    if None not in shares:
        of_rows = "The only row has" if len(values_shown) == 1 else f"Each of the {len(values_shown):,} rows has"
        usable_text, clamped_text = (svg.format_number(share or 0.0) for share in shares)
        return paragraph(
            f"{name}: {of_rows} {usable_text} % usable household-days, and {clamped_text} % of these are above the "
            "clamp."
        )
    y, hover = svg.linear_axis([0.0, 100.0]), svg.Hover(svg.day_text, "%")
    title = f"Coverage and clamp by day: {name}"
    return svg.chart(title, description, [*lines, hover], x=x, y=y, y_title="per cent", height=170)


def _quality_parts(sources: InternalSources) -> Iterator[str]:
    path = sources.paths.quality
    if not sources.run.schedule.reads_input:
        yield paragraph("A rehearsal on synthetic households reads no file.")
        return
    if not atomic_files.path_exists(path):
        yield paragraph("No file has been read yet.")
        return
    quality_rows = atomic_files.read_table(path, table_schemas.QUALITY).to_pylist()
    totals: Counter[str] = Counter()
    for quality_row in quality_rows:
        totals[quality_row["what"]] += quality_row["rows"]
    rows_read = totals.get("rows read", 0)
    rows = [
        (outcome, f"{number:,}", svg.format_percent(number / rows_read) if rows_read else "–")
        for outcome, number in totals.items()
    ]
    files = len({quality_row["input"] for quality_row in quality_rows})
    yield table(
        f"Rows of {files:,} input files, kept and rejected by reason", ("outcome", "rows", "share of rows read"), rows
    )
    yield paragraph("By file: quality.parquet. Rejected rows, unchanged: store/quarantine.", "soft")
