"""TRUE MEANS and COUNTS, COVERAGE, QUALITY, readings, goodness of fit + LEDGER -> the confidential report.

    <confidential>/report.html    0600, rewritten by every run that finds something new

It compares published with true values: utility, coverage, effect of the clamp, rejected rows, goodness of fit of the
model. It may contain household ids, and is never handed over with a release. Nothing that is published depends on it.

Of an estimated model, the confidential files that `agedp calibrate` wrote once are sources too. No release depends on
them, and a damaged one costs a section of the report:

    <model folder>/households.parquet              which household decides the model, by age
    <model folder>/transitions.parquet             the transition counts of each household
    <confidential>/forgetting/<model>.parquet      the chain against lagged counts

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
from agedp.reports.series_charts import percent, signal_parts
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
from agedp_data.series.layered_mean import is_upper
from agedp_data.series.result_table import Noise

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


_WH_PER_KWH = 1000.0
_ADVICE = "Put back a copy, or remove the file; releases do not depend on it"
_DISTANCE = "total_variation_"


@dataclass(frozen=True, slots=True)
class ModelFiles:
    """Contents of the files, None for a missing or damaged one, and the warnings.

    `households` are the columns of households.parquet, `chains` the households whose chain mixes, with their transition
    matrices (h, k, k), `has_fit` tells whether the goodness of fit was computed.
    """

    households: Mapping[str, Any] | None = None
    chains: tuple[list[str], Floats] | None = None
    has_fit: bool = False
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
    return ModelFiles(households.value, chains, fit.value is not None, warnings)


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
        uses: dict[str, Any] = {name: of for name, of in sources.run.series.items() if getattr(of, "clamp_wh", 0)}
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
    uses: Mapping[str, Any],
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
    if files.has_fit:
        name = report_name(model.file, sources.paths.folder)
        yield paragraph(f"The model against lagged counts: forgetting/{name}.html.", "soft")


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


# --------------------------------------------------------------------------------------------------
# Utility parts of the confidential report: published values and true ones. Confidential.
#
# * TRUE MEANS + LEDGER -> utility of a release: its errors compared with its noise.
# * COUNTED STATES -> means by states compared with means by readings.
# --------------------------------------------------------------------------------------------------

SeriesCell = tuple[str, str]
"""Series and cell."""


@dataclass(frozen=True, slots=True)
class Compared:
    """True and published values of a cell by day, with the noise of these, one array each.

    `days` are ordinals. Values are kWh per household, or households of a count; `half_width` is that of the published
    interval.
    """

    days: Ints
    true: Floats
    published: Floats
    sd: Floats
    half_width: Floats

    def of(self, is_selected: Any) -> Compared:  # noqa: ANN401  (an index of arrays)
        """Return some of the days."""
        arrays = (self.days, self.true, self.published, self.sd, self.half_width)
        return Compared(*(array[is_selected] for array in arrays))


@dataclass(frozen=True, slots=True)
class Utility:
    """Errors over days: root mean square, and in standard deviations of the noise.

    `inside` is the share of days whose true value lies in the published interval; `change` the root mean square of the
    change of the true value from one day to the next, NaN without two such days; `stale` the same from a day to the one
    `age_days` later; `expected` is the root mean square error that the noise alone would give, `relative` the mean over
    days of b/|true value|, b = sd/sqrt(2) the expected size of Laplace noise; NaN if every true value is 0.
    """

    days: int
    rms: float
    expected: float
    relative: float
    inside: float
    change: float
    stale: float

    @property
    def in_sd(self) -> float:
        """Return the ratio of errors to noise: 1 if the noise is the only error."""
        return self.rms / self.expected


def compared_values(
    recorded: pa.Table, rows: Sequence[ReleaseRecord], noise: Noise, *, name: str, wh_per_unit: float
) -> dict[SeriesCell, Compared]:
    """Return by series and cell the days with a recorded true value, each with its published value.

    The table stays in columns: 2,000 cells over three years are 2.2 million counts, as Python rows 1 GB.

    Args:
        recorded: `table_schemas.TRUE_MEANS` or `TRUE_COUNTS`, by day.
        rows: released rows.
        noise: of the values.
        name: ending of the columns, "mean_kwh" or "households".
        wh_per_unit: what a unit of a value of one household has of what was drawn; 0 for a count.
    """
    newest = {(row.series, row.day): row.scale for row in rows if row.state == "released"}
    compared: dict[SeriesCell, Compared] = {}
    for series in pc.unique(recorded["series"]).to_pylist():
        of_series = recorded.filter(pc.equal(recorded["series"], series))
        days = of_series["day"].cast(pa.int32()).to_numpy() + _EPOCH
        distinct, place = np.unique(days, return_inverse=True)
        scales = [newest.get((series, f"{date.fromordinal(day)}")) for day in distinct.tolist()]
        noises = [
            (math.nan, math.nan) if one is None else (noise.deviation(one), noise.half_width(one)) for one in scales
        ]
        divisor = of_series["households"].to_numpy() * wh_per_unit if wh_per_unit else np.ones(len(days))
        sd, half_width = (np.array(noises)[place, i] / divisor for i in (0, 1))
        true, published = (of_series[f"{kind}_{name}"].to_numpy().astype(float) for kind in ("true", "released"))
        everything = Compared(days, true, published, sd, half_width)
        cells = of_series["cell"].combine_chunks().dictionary_encode()
        codes = cells.indices.to_numpy()
        for code, cell in enumerate(cells.dictionary.to_pylist()):
            of_cell = everything.of((codes == code) & ~np.isnan(sd))
            if len(of_cell.days):
                compared[series, cell] = of_cell
    return compared


def utility(days: Compared, *, age_days: int) -> Utility:
    """Return the utility over these days."""
    error = days.published - days.true
    inside = float(np.mean(np.abs(error) <= days.half_width * (1 + 1e-12)))
    change, stale = _change(days, 1), _change(days, age_days) if age_days else 0.0
    is_used = days.true != 0
    parts = days.sd[is_used] / math.sqrt(2) / np.abs(days.true[is_used])
    relative = float(parts.mean()) if len(parts) else math.nan
    return Utility(len(days.days), _rms(error), _rms(days.sd), relative, inside, change, stale)


def _change(days: Compared, gap: int) -> float:
    true = dict(zip(days.days.tolist(), days.true.tolist(), strict=True))
    changes = [true[number + gap] - value for number, value in true.items() if number + gap in true]
    return _rms(np.array(changes)) if changes else math.nan


def _rms(values: Floats) -> float:
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
# TRUE MEANS and COUNTS, COVERAGE, QUALITY, readings, goodness of fit + LEDGER -> the confidential report.
# --------------------------------------------------------------------------------------------------

REPORT = "report.html"
_COUNTED = ("households", "usable", "clamped")
_MOST_CHARTS, _MOST_CELLS = 6, 40
_EPOCH = date(1970, 1, 1).toordinal()
_SYNTHETIC_NOTE = "The households are synthetic: true values are theirs, and no reading was read."


def write_confidential_report(sources: InternalSources, rows: Sequence[ReleaseRecord]) -> tuple[FileNotice, ...]:
    """Write the confidential report on all releases of the population, for those who run agedp.

    Returns:
        Notices of the parts that are missing because a file is damaged.
    """
    books, noise = Books(sources.paths.books), Noise(sources.run.output.interval)
    released = sorted({date.fromisoformat(row.day) for row in rows if row.state == "released"})
    columns = ("day", "series", "cell", "households")
    names = {"mean_kwh": (TRUE_MEANS, _WH_PER_KWH), "households": (TRUE_COUNTS, 0.0)}
    means, counts = (
        compared_values(
            of.read(books, sources.population, columns=(*columns, f"true_{name}", f"released_{name}")),
            rows, noise, name=name, wh_per_unit=wh_per_unit,
        )
        for name, (of, wh_per_unit) in names.items()
    )  # fmt: skip
    age_days = sources.run.promise.age_days or 0
    results = {key: utility(days, age_days=age_days) for key, days in (means | counts).items()}
    counted = COVERAGE.read(books, sources.population)
    sums = counted.group_by(["series", "day"], use_threads=False).aggregate([(name, "sum") for name in _COUNTED])
    coverage_rows: list[dict[str, Any]] = sums.rename_columns({f"{name}_sum": name for name in _COUNTED}).to_pylist()
    effects, files = clamp_effects(sources, released), read_model_files(sources)
    states, mean_names = [*state_parts(sources)], {series for series, _ in means}
    parts_by_title = {
        "Published and true values": [
            *_value_parts(means, results, age_days, sources),
            *signal_parts([row for row in rows if row.series in mean_names]),
        ],
        "Coverage and clamp": [*_coverage_parts(coverage_rows), *clamp_parts(effects)],
        "States instead of readings": [*states, paragraph(_TEXTS.states_note, "soft")] if states else [],
        "Kept and rejected rows": [*_quality_parts(sources)],
        "The model": [*household_model_parts(sources, files, rows)],
    }
    page = render_page(
        "confidential_report.html",
        title=f"{sources.run.output.title or sources.population}: published and true values",
        note="" if sources.run.schedule.reads_input else _SYNTHETIC_NOTE,
        facts=[*_facts(sources, results, coverage_rows, effects, len(released))],
        sections=[PageSection(title, anchor_of(title), parts) for title, parts in parts_by_title.items() if parts],
    )
    atomic_files.write(sources.paths.folder / REPORT, page.encode())
    return files.notices


def _facts(
    sources: InternalSources,
    results: Mapping[SeriesCell, Utility],
    coverage_rows: Sequence[Mapping[str, Any]],
    effects: Sequence[ClampEffect],
    released: int,
) -> Iterator[tuple[str, str, str]]:
    recorded_days = max((result.days for result in results.values()), default=0)
    yield "days released", f"{released:,}", f"true values of {recorded_days:,} are recorded"
    if results:
        key, first = next(iter(results.items()))
        yield "error of a value", svg.format_number(first.rms), f"root mean square, {', '.join(key)}"
        yield "error / noise", svg.format_number(first.in_sd), "1: the noise is the only error"
        expected = percent(sources.run.output.interval)
        yield "true values inside", svg.format_percent(first.inside), f"the noise interval; {expected} expected"
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


def _value_parts(
    means: Mapping[SeriesCell, Compared], results: Mapping[SeriesCell, Utility], age_days: int, sources: InternalSources
) -> Iterator[str]:
    """Yield charts of the first means, and the errors of all values, of means also by month."""
    if not results:
        if any(series.true_values for series in sources.run.series.values()):
            yield paragraph("No true value is recorded yet.")
        return
    yield paragraph(_TEXTS.error_note, "soft")
    if any(is_upper(series) for series, _ in means):
        yield paragraph(_TEXTS.layers_note, "soft")
    if charts := [_true_chart(", ".join(key), days) for key, days in [*means.items()][:_MOST_CHARTS]]:
        yield side_by_side(charts)
    stale_column = [f"{age_days} d later"] if age_days else []
    columns = ["series, cell", "days", "error", "noise", "error / noise", "inside", "relative", "day to day"]
    columns += stale_column
    rows = [
        (
            ", ".join(key),
            f"{result.days:,}",
            *map(svg.format_number, (result.rms, result.expected, result.in_sd)),
            svg.format_percent(result.inside),
            "–" if math.isnan(result.relative) else svg.format_percent(result.relative),
            *map(svg.number_or_dash, (result.change, result.stale)[: 1 + len(stale_column)]),
        )
        for key, result in [*results.items()][:_MOST_CELLS]
    ]
    more = f"; the first {_MOST_CELLS} of {len(results):,}" if len(results) > _MOST_CELLS else ""
    caption = (
        "Root mean squares, kWh per household, or households of a count: error and noise of a value; change of the "
        f"true value from day to day. Relative: expected error from the noise alone, as a share of the true value{more}"
    )
    yield table(caption, columns, rows)
    if tables := [_month_table(", ".join(key), days) for key, days in [*means.items()][:_MOST_CHARTS]]:
        yield closed("By month", tables)


def _true_chart(name: str, days: Compared) -> str:
    ordinals = range(int(days.days.min()), int(days.days.max()) + 1)
    values = np.full((4, len(ordinals)), math.nan)
    ends = (days.true, days.published, days.published - days.half_width, days.published + days.half_width)
    values[:, days.days - ordinals[0]] = ends
    positions, (true, published, low, high) = [float(day) for day in ordinals], values.tolist()
    lines = [
        svg.Line("published, with the interval of its noise", positions, published, band=(low, high), letter="P"),
        svg.Line("true", positions, true, letter="T", style=1),
    ]
    worst = int(np.abs(days.published - days.true).argmax())
    about = (
        f"{len(days.days)} days; largest error on {date.fromordinal(int(days.days[worst]))}, kWh per household: true "
        f"{svg.format_number(days.true[worst])}, published {svg.format_number(days.published[worst])}."
    )
    x, y = svg.date_axis(*map(date.fromordinal, (ordinals[0], ordinals[-1]))), svg.linear_axis(np.ravel(ends).tolist())
    unit = "kWh per household"
    title = f"Published and true mean by day: {name}"
    return svg.chart(title, about, [*lines, svg.Hover(svg.day_text, unit)], x=x, y=y, y_title=unit)


def _month_table(name: str, days: Compared) -> str:
    months = np.array([f"{date.fromordinal(day):%Y-%m}" for day in days.days.tolist()])
    rows = []
    for month in np.unique(months).tolist():
        of_month = days.of(months == month)
        result = utility(of_month, age_days=0)
        numbers = map(svg.format_number, (of_month.true.mean(), of_month.published.mean(), result.rms))
        rows.append((month, f"{result.days}", *numbers, svg.format_percent(result.inside)))
    columns = ("month", "days", "true mean", "published", "error", "inside")
    return table(f"By month, kWh per household: {name}", columns, rows)


def _coverage_parts(coverage_rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield for each series a table by month of the usable household-days, and of these above the clamp."""
    if not coverage_rows:
        yield paragraph("No coverage is recorded yet; it is recorded for days that are released from now on.")
        return
    by_month: dict[tuple[str, str], list[Sequence[int]]] = {}
    for row in coverage_rows:
        counts = [row[name] for name in _COUNTED]
        by_month.setdefault((row["series"], f"{row['day']:%Y-%m}"), []).append(counts)
    for series in dict.fromkeys(series for series, _ in by_month):
        rows = [_coverage_row(month, counts) for (of, month), counts in sorted(by_month.items()) if of == series]
        columns = ("month", "rows", "lowest usable", "usable", "clamped")
        yield table(f"Household-days that are usable, and of these above the clamp: {series}", columns, rows)


def _coverage_row(month: str, day_counts: Sequence[Sequence[int]]) -> tuple[str, ...]:
    """Return a month's shares of usable and clamped household-days; per day: households, usable, clamped."""
    households, usable, clamped = map(sum, zip(*day_counts, strict=True))
    lowest = min(counts[1] / max(counts[0], 1) for counts in day_counts)
    shares = lowest, usable / max(households, 1), clamped / max(usable, 1)
    return (month, f"{len(day_counts)}", *map(svg.format_percent, shares))


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
