"""The steps of `agedp demo`, and its index.html: chains, bounds, the three notions, and links to the releases.

Public only because no household exists: estimated chains, data quality and true means are confidential otherwise, and
the page states this.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from agedp.demo.demo_folder import AGES_DAYS, CHAINS, DEMONSTRATED_NOTIONS, PAGE_TITLE, DemonstrationDataset
from agedp.internal_records.bookkeeping import TRUE_MEANS
from agedp.local_files.atomic_files import InternalPaths
from agedp.local_files.books import Books
from agedp.release_verification import ReleaseFolder
from agedp.reports import svg
from agedp.reports.html import PageSection, anchor_of, part, render_page, table, text_table
from agedp.signal_against_noise import SpanSignal, span_signals
from agedp_data.accounting.ageing import compose
from agedp_data.accounting.temporal_recursion import daily_release_leakage
from agedp_data.config.contract import contract_value
from agedp_data.datasets.synthetic.households import STATES, Floats
from agedp_data.datasets.validation import SLOTS, RejectionReason
from agedp_data.leakage.function import leakage
from agedp_data.markov.mixing import (
    MIXING_NAMES,
    reversibilised_bound,
    reversible_fit_bound,
    spectral_bound,
    spectral_gap,
    total_variation,
    total_variation_forward,
)
from agedp_data.markov.transitions import power, transition_matrix
from agedp_data.messages import sentence_start
from agedp_data.model import PUBLIC_FILE, Model
from agedp_data.statement.note_texts import FACTS

# --------------------------------------------------------------------------------------------------
# Mixing of the estimated chains of a demonstration, and of the exact chains that the readings are drawn from.
#
# First the values, then their words and table cells, which are the same in the terminal and on the page.
#
# Reads what a calibration left in the model's folder (confidential for real households; public here, since no
# household exists) and `chains.json`. Every value of one household's chain is that of the calibration itself.
# --------------------------------------------------------------------------------------------------

_CURVE_STEPS = tuple(range(0, SLOTS * max(AGES_DAYS) + 1, 4))
_EXACT = {"total_variation": total_variation, "spectral": spectral_bound, "reversibilised": reversibilised_bound}


@dataclass(frozen=True, slots=True)
class RowCounts:
    """Rows of the input files: rows read = rows kept + rows rejected, which `rows_rejected` counts by reason."""

    rows_read: int
    rows_kept: int
    rows_rejected: Mapping[str, int]


@dataclass(frozen=True, slots=True, eq=False)
class ExactChain:
    """One kind of chain that households are drawn from; `curves` by measure at the ages of the table [-].

    `households` is how many households follow it.
    """

    name: str
    households: int
    matrix: Floats
    gap: float
    curves: Mapping[str, Floats]


@dataclass(frozen=True, slots=True, eq=False)
class Mixing:
    """The chains of one dataset: estimated (one per household) and exact (one per kind, the slowest first).

    `states` is the smallest number of states that a household visits, `rarest_visits` the smallest number of visits of
    any state of any household. `gaps` (h,) and `estimated` by measure (h, ages) are those of the calibration.
    `example` is one household's estimated matrix (12, 12). `curve_days` and `curves` (by measure, for the slowest kind
    and for estimated chains) are for a picture. `covers_exact`: the model's leakage bound, which sets the noise, is
    nowhere below that of the exact chains.
    """

    dataset: str
    rows: RowCounts
    states: int
    rarest_visits: int
    transitions: int
    exact: Sequence[ExactChain]
    gaps: Floats
    estimated: Mapping[str, Floats]
    not_reversible: int
    example_id: str
    example_kind: str
    example: Floats
    curve_days: Sequence[float]
    curves: Mapping[str, Floats]
    covers_exact: bool

    @property
    def kernels(self) -> Floats:
        """Return the exact transition matrices (kinds, 12, 12)."""
        return np.stack([chain.matrix for chain in self.exact])

    @property
    def households(self) -> int:
        """Return the number of households."""
        return len(self.gaps)

    def exact_median(self, measure: str) -> Floats:
        """Return the median over households of a measure of the exact chains, shape (ages,) [-].

        A kind of chain counts as often as households follow it. `measure` is a key of `ExactChain.curves`.
        """
        followers = [chain.households for chain in self.exact]
        curves = np.repeat([chain.curves[measure] for chain in self.exact], followers, axis=0)
        return np.asarray(np.median(curves, axis=0))

    @property
    def slowest(self) -> ExactChain:
        """Return the kind of chain that mixes most slowly."""
        return min(self.exact, key=lambda chain: chain.gap)


def read_mixing(folder: Path) -> Mixing:
    """Return the chains of a dataset's folder, once its model is estimated.

    Args:
        folder: the folder of the dataset, with `chains.json`, `model/` and the first notion's confidential folder.
    """
    chains = json.loads((folder / CHAINS).read_text(encoding="utf-8"))
    kinds = [household["kind"] for household in chains["households"]]
    exact = [_exact_chain(kind, kinds.count(kind["name"])) for kind in chains["kinds"]]
    columns = pq.read_table(folder / "model" / "households.parquet").to_pydict()
    measures = {
        name: np.array([columns[f"{name}_{age}_days"] for age in AGES_DAYS], np.float64).T
        for name in ("total_variation", "reversibilised")
    }
    ids, counts = _transition_counts(folder)
    measures["reversible_fit"] = reversible_fit_bound(counts, [age * SLOTS for age in AGES_DAYS])
    slowest = min(exact, key=lambda chain: chain.gap)
    example = ids.index(chains["households"][0]["household_id"])
    return Mixing(
        dataset=chains["dataset"],
        rows=_row_counts(folder / DEMONSTRATED_NOTIONS[0] / "confidential" / "quality.parquet"),
        states=min(columns["states_visited"]),
        rarest_visits=min(columns["rarest_state_visits"]),
        transitions=int(counts.sum()),
        exact=exact,
        gaps=np.array(columns["spectral_gap"]),
        estimated=measures,
        not_reversible=int(np.isnan(columns[f"spectral_{AGES_DAYS[0]}_days"]).sum()),
        example_id=ids[example],
        example_kind=chains["households"][0]["kind"],
        example=transition_matrix(counts[example], smoothing=0),
        curve_days=[step / SLOTS for step in _CURVE_STEPS],
        curves=_curves(slowest.matrix, transition_matrix(np.swapaxes(counts, 1, 2), smoothing=0)),
        covers_exact=_covers_exact(folder / "model", exact),
    )


def _exact_chain(kind: Mapping[str, Any], households: int) -> ExactChain:
    matrix = np.array(kind["transition_matrix"], np.float64)
    steps = [age * SLOTS for age in AGES_DAYS]
    curves = {name: measure(matrix, steps) for name, measure in _EXACT.items()}
    return ExactChain(kind["name"], households, matrix, float(spectral_gap(matrix)), curves)


def _transition_counts(folder: Path) -> tuple[list[str], np.ndarray[tuple[int, int, int], np.dtype[np.int64]]]:
    table = pq.read_table(folder / "model" / "transitions.parquet")
    cells = [table[f"from_{i}_to_{j}"].to_numpy() for i in range(STATES) for j in range(STATES)]
    counts = np.stack(cells, axis=1).astype(np.int64).reshape(-1, STATES, STATES)
    return table["household_id"].to_pylist(), counts


def _curves(slowest: Floats, backward: Floats) -> dict[str, Floats]:
    """Return the mixing curves: of the slowest kind exactly and by both bounds, and of the estimated reversed chains.

    The latter are the matrices of the reversed counts, as in the calibration.
    """
    distances = total_variation_forward(backward, _CURVE_STEPS)
    exact = {name: measure(slowest, _CURVE_STEPS) for name, measure in _EXACT.items()}
    return {**exact, "estimated_median": np.median(distances, axis=0), "estimated_largest": distances.max(axis=0)}


def _covers_exact(folder: Path, exact: Sequence[ExactChain]) -> bool:
    """Return whether the model's leakage bound is at least that of every exact chain, at each tabulated age and loss.

    The exact chains are symmetric: each equals its reversed chain.
    """
    leakage_bound = Model.from_text((folder / PUBLIC_FILE).read_text(encoding="utf-8")).leakage_bound
    kernels = np.stack([chain.matrix for chain in exact])
    for age in leakage_bound.ages.tolist():
        powers = power(kernels, age)
        for direction in ("backward", "forward"):
            tabulated = leakage_bound(age, leakage_bound.losses, direction=direction, method="tight")
            if (tabulated < leakage(powers[:, None], leakage_bound.losses).max(axis=0)).any():
                return False
    return True


def _row_counts(path: Path) -> RowCounts:
    """Return what became of the input rows, all files together."""
    table = pq.read_table(path, columns=["what", "rows"]).to_pydict()
    counts: dict[str, int] = {}
    for outcome, rows in zip(table["what"], table["rows"], strict=True):
        counts[outcome] = counts.get(outcome, 0) + rows
    rejected = {reason.words: counts[reason.words] for reason in RejectionReason if reason and counts.get(reason.words)}
    return RowCounts(counts["rows read"], counts["kept"], rejected)


AGE_COLUMNS = ("chains", *(f"{age} day{'s' * (age > 1)}" for age in AGES_DAYS))


def row_text(rows: RowCounts) -> str:
    """Return what became of the input rows.

    >>> row_text(RowCounts(12, 10, {"exact duplicate": 2}))
    '12 rows read = 10 kept + 2 rejected: 2 exact duplicate.'
    """
    reasons = ", ".join(f"{number:,} {reason}" for reason, number in rows.rows_rejected.items())
    count = sum(rows.rows_rejected.values())
    return f"{rows.rows_read:,} rows read = {rows.rows_kept:,} kept + {count:,} rejected" + (
        f": {reasons}." if reasons else "."
    )


def state_text(mixing: Mixing) -> str:
    """Return the numbers of states and matrices, and the visits of the rarest state."""
    return (
        f"{mixing.states} states per household, one step per half-hour: {mixing.households:,} transition matrices from "
        f"{mixing.transitions:,} transitions. The rarest state of any household has {mixing.rarest_visits:,} visits."
    )


def gap_text(mixing: Mixing) -> str:
    """Return the spectral gaps of the estimated and of the exact chains."""
    exact = ", ".join(f"{chain.gap:.3f} ({chain.name})" for chain in mixing.exact)
    name = sentence_start(MIXING_NAMES["spectral_gap"])
    return (
        f"{name} per half-hour: estimated median {np.median(mixing.gaps):.3f}, smallest {mixing.gaps.min():.3f}; "
        f"exact {exact}."
    )


def mixing_rows(mixing: Mixing) -> list[tuple[str, ...]]:
    """Return the table by age: each measure of the exact and of the estimated chains, over households."""
    rows: list[tuple[str, ...]] = []
    largest = f"exact chains, largest ({mixing.slowest.name} chain)"
    for name, measure in MIXING_NAMES.items():
        if name in mixing.slowest.curves:
            rows.append((measure, "exact chains, median household", *_values(mixing.exact_median(name))))
        if (curves := mixing.estimated.get(name)) is not None:
            rows.append((measure, "estimated chains, median household", *_values(np.median(curves, axis=0))))
        if name in mixing.slowest.curves:
            rows.append((measure, largest, *_values(mixing.slowest.curves[name])))
        if curves is not None:
            rows.append((measure, "estimated chains, largest", *_values(curves.max(axis=0))))
    return rows


def not_applicable(mixing: Mixing) -> str:
    """Return why the bound for reversible chains is not that of estimated chains, and how many exceed their fit's."""
    name = sentence_start(MIXING_NAMES["spectral"])
    estimated = mixing.estimated
    exceeding = int((estimated["total_variation"] > estimated["reversible_fit"]).any(axis=1).sum())
    return (
        f"{name}: not applicable to estimated chains; {mixing.not_reversible:,} of {mixing.households:,} are not "
        "reversible, because counts are never exactly symmetric. The exact total variation of "
        f"{exceeding:,} households exceeds the bound of their reversible fit at one of these ages or more."
    )


def sampling_text(mixing: Mixing) -> str:
    """Return why estimated values differ from exact ones, and what follows for the credit for age."""
    text = "Estimated values differ from exact ones by their sampling error."
    above = (mixing.estimated["total_variation"].max(axis=0) >= mixing.slowest.curves["total_variation"]).all()
    if above:
        text += " The largest one lies above the largest exact one: it is a maximum over all households."
    if mixing.covers_exact:
        return (
            f"{text} The model's leakage bound is at least that of every exact chain, at each tabulated age and loss, "
            "so the model credits no more for age than the exact chains allow."
        )
    return f"{text} So the model may credit more for age than the exact chains allow."


def _values(curve: Iterable[float]) -> Iterable[str]:
    return map(svg.format_number, curve)


# --------------------------------------------------------------------------------------------------
# Noise, losses and bounds of the six release folders of a demonstration, read from the folders themselves.
#
# First the values, then their table cells, which are the same in the terminal and on the page.
#
# The noise-to-signal ratio is estimated from the published series alone, as for any release (`signal_against_noise`).
# The true change comes from the confidential true means; it may be shown here only because no household exists.
#
# The promise is kept under the estimated model. Bounds under the exact chains show that the credit for age and for
# mixing is real: they are computed from the stated chains alone, by the library's recursions for known kernels ([A]
# Theorem 3, [T] section 3).
# --------------------------------------------------------------------------------------------------

_DAY, _TOTAL = "day", "total"


@dataclass(frozen=True, slots=True)
class NoiseRatio:
    """Noise of a published series against its day-to-day change, all in kWh per household.

    `signal` is estimated from the published series; `true_change` is known for synthetic households only.
    """

    signal: SpanSignal
    true_change: float

    @property
    def deviation(self) -> float:
        """Return the standard deviation of the noise, root mean square over the days."""
        return self.signal.noise_kwh

    @property
    def ratio(self) -> float | None:
        """Return noise / estimated day-to-day change, None where the change may be noise alone."""
        estimate = self.signal.estimate
        return self.deviation / estimate.change if estimate is not None and estimate.is_significant else None


@dataclass(frozen=True, slots=True)
class NotionBound:
    """The bound that a notion promises.

    Attributes:
        name: the name of the bound.
        epsilon: its value after the releases, as decimal text.
        limit: the promised upper bound, as decimal text.
    """

    name: str
    epsilon: str
    limit: str


@dataclass(frozen=True, slots=True, eq=False)
class ReleaseSummary:
    """One release folder: its published series, its losses, and its promise.

    Attributes:
        dataset: the name of the dataset.
        notion: the name of the notion.
        folder: the release folder.
        age_days: age at which a day is released [days].
        days: the rows of the daily averages.
        true_means: the confidential mean of each of these days [kWh]; known because the data are synthetic.
        noise: noise against day-to-day change.
        least_day_epsilon: the smallest privacy loss of a day.
        day_epsilon: the largest privacy loss of a day, as decimal text.
        total_epsilon: the composed loss of all days, as decimal text.
        bound: the bound that the notion promises.
    """

    dataset: str
    notion: str
    folder: Path
    age_days: int
    days: Sequence[Mapping[str, Any]]
    true_means: Sequence[float]
    noise: NoiseRatio
    least_day_epsilon: float
    day_epsilon: str
    total_epsilon: str
    bound: NotionBound


def summarise_release(dataset_folder: Path, notion: str) -> ReleaseSummary:
    """Return the summary of one release folder of a dataset's folder, for the terminal and for the page.

    Args:
        dataset_folder: the folder of the dataset.
        notion: the notion, which names the run file's subfolder.
    """
    folder = ReleaseFolder(dataset_folder / notion / "release")
    statement = folder.read_statement()
    days: list[Mapping[str, Any]] = [dict(row) for row in folder.averages()["daily_averages.parquet"].to_pylist()]
    book = Books(InternalPaths(dataset_folder / notion / "confidential").books)
    confidential = TRUE_MEANS.read(book, statement.population).to_pydict()
    by_day = dict(zip(confidential["day"], confidential["true_mean_kwh"], strict=True))
    true_means = [by_day[day["day"]] for day in days]
    promise = statement.contract.terms.promise
    key, shown = promise.TEXT.own_bound.of(contract_value(promise))
    bound = next(bound for bound in statement.bounds if bound.name == key)
    return ReleaseSummary(
        dataset=dataset_folder.name,
        notion=notion,
        folder=folder.path,
        age_days=statement.contract.promise.age_days or 0,
        days=days,
        true_means=true_means,
        noise=noise_ratio(days, true_means),
        least_day_epsilon=min(row["epsilon"] for row in days),
        day_epsilon=statement.unconditional_epsilons[_DAY],
        total_epsilon=statement.unconditional_epsilons[_TOTAL],
        bound=NotionBound(shown, bound.epsilon, bound.limit),
    )


def noise_ratio(days: Sequence[Mapping[str, Any]], true_means: Sequence[float]) -> NoiseRatio:
    """Return noise against day-to-day change of consecutive days.

    >>> from datetime import date
    >>> days = [{"day": date(2013, 1, i), "mean_kwh": i % 2, "noise_sd_kwh": 0.001} for i in range(1, 9)]
    >>> ratio = noise_ratio(days, [3.0, 4.0])
    >>> round(ratio.ratio, 6), ratio.true_change
    (0.001, 1.0)
    """
    published, deviations = (np.array([row[name] for row in days], float) for name in ("mean_kwh", "noise_sd_kwh"))
    numbers = np.array([row["day"].toordinal() for row in days])
    true = _root_mean_square([after - before for before, after in pairwise(true_means)])
    noise = math.sqrt(float((deviations**2).mean()))
    return NoiseRatio(span_signals(published, deviations**2, numbers, noise_kwh=noise)[0], true)


def _root_mean_square(values: Sequence[float]) -> float:
    return math.sqrt(sum(value**2 for value in values) / len(values))


def exact_bound(release: ReleaseSummary, kernels: Floats) -> float | None:
    """Return the notion's bound of a release under exact chains (c, k, k), the largest over them [epsilon].

    None for discounted privacy, whose bound needs no chain.
    """
    losses = np.array([row["epsilon"] for row in release.days])
    days = np.array([row["day"].toordinal() for row in release.days])
    if release.notion == "temporal":
        _, _, total = daily_release_leakage(kernels, losses, np.diff(days), steps_per_day=SLOTS)
        return float(total.max())
    if release.notion == "age-dependent":
        age = release.age_days * SLOTS
        published = (days - days[0] + 1) * SLOTS + age
        ages = np.full(len(days), age)
        return float(compose(kernels, published, ages, losses, published, method="tight").max())
    return None


RELEASE_COLUMNS = (
    "dataset, notion",
    "days",
    "noise, kWh per household",
    "noise / day-to-day change",
    "epsilon of a day",
    "epsilon of the period",
    "bound of the notion",
)

COLUMNS_ARE = (
    "Noise: standard deviation of the added noise, root mean square over the released days. Change: day-to-day change "
    "of the mean, estimated from the published series alone; the ratio is 'hidden' where the estimate is below two of "
    "its standard errors, so that it may be noise alone.",
    "Epsilon of a day: privacy loss of one released day. Epsilon of the period: composition of all released days, "
    "without any assumption about households. It is large, because these notions bound the loss about the present, "
    "about any one day, or about the recent past, not about all days together. Each is of the noisy releases alone: "
    "the leakage bound of the model, published without noise, is in none of them.",
    "Bound of the notion: what the releases reach, and what the run file promises. Risk: loss about the "
    "present from all releases, published at that age. Temporal leakage: loss about any one day from all releases. "
    "Both hold under the model. Discounted sum: sum of all losses, in which old ones count less.",
)


def release_row(release: ReleaseSummary) -> tuple[str, ...]:
    """Return one row of the table of releases; bounds are rounded up to three digits."""
    bound = release.bound
    return (
        f"{sentence_start(release.dataset)}, {release.notion}",
        f"{len(release.days)}",
        f"{release.noise.deviation:.3f}",
        "hidden" if release.noise.ratio is None else f"{release.noise.ratio:.2f}",
        day_epsilon_text(release),
        svg.format_rounded_up(float(release.total_epsilon)),
        f"{bound.name}: {svg.format_rounded_up(float(bound.epsilon))} of {svg.format_rounded_up(float(bound.limit))}",
    )


def day_epsilon_text(release: ReleaseSummary) -> str:
    """Return the privacy loss of a day: the smallest and the largest where days differ."""
    least, most = svg.format_rounded_up(release.least_day_epsilon), svg.format_rounded_up(float(release.day_epsilon))
    return most if least == most else f"{least} to {most}"


def credit_text(releases: Sequence[ReleaseSummary], mixing: Mixing) -> str:
    """Return what the credit for age is worth in a dataset's releases, and that the exact chains justify it."""
    by_notion = {release.notion: release for release in releases if release.dataset == mixing.dataset}
    aged, temporal = by_notion["age-dependent"], by_notion["temporal"]
    limit, alpha = (svg.format_rounded_up(float(release.bound.limit)) for release in (aged, temporal))
    risk, leakage = (svg.format_rounded_up(exact_bound(release, mixing.kernels) or 0.0) for release in (aged, temporal))
    dataset, days = sentence_start(mixing.dataset), len(aged.days)
    return (
        f"Credit for age, {dataset}: without it, one release of epsilon {limit} reaches the promised risk of {limit}; "
        f"with it, {days} days have epsilon {day_epsilon_text(aged)} each. Under the exact chains the risk is {risk} "
        f"(promised {limit}) and the temporal leakage {leakage} (promised {alpha})."
    )


# --------------------------------------------------------------------------------------------------
# The steps of `agedp demo`, and its index.html: chains, bounds, the three notions, and links to the releases.
# --------------------------------------------------------------------------------------------------

_HEADING = "From half-hourly readings to daily averages under three notions of differential privacy over time"
_CAUTION = "Before you do this with real households"


def overview_page(mixings: Sequence[Mixing], releases: Sequence[ReleaseSummary]) -> str:
    """Return the page."""
    datasets = [_dataset(mixing, releases) for mixing in mixings]
    listed = ["The six releases", *(of[key].title for of in datasets for key in ("chains", "series")), _CAUTION]
    return render_page(
        "overview.html",
        title=PAGE_TITLE,
        heading=_HEADING,
        listed=[PageSection(title, anchor_of(title)) for title in listed],
        release_table=text_table("", _RELEASE_COLUMNS, [_release_cells(release) for release in releases]),
        columns_are=COLUMNS_ARE,
        datasets=datasets,
        model_warning=FACTS.several("with_model")[1],
    )


def _dataset(mixing: Mixing, releases: Sequence[ReleaseSummary]) -> dict[str, Any]:
    """Return what the page shows of one dataset: texts, charts and tables."""
    dataset = sentence_start(mixing.dataset)
    chains, series = f"{dataset}: chains and bounds", f"{dataset}: the released series"
    of_dataset = [release for release in releases if release.dataset == mixing.dataset]
    return {
        "chains": PageSection(chains, anchor_of(chains)),
        "series": PageSection(series, anchor_of(series)),
        "credit": credit_text(releases, mixing),
        "rows": row_text(mixing.rows),
        "states": state_text(mixing),
        "matrices": _matrices(mixing),
        "matrix_table": _matrix_table(mixing.example),
        "gaps": gap_text(mixing),
        "mixing_chart": _mixing_chart(mixing),
        "mixing_tables": [
            table(f"{dataset}: {measure}", AGE_COLUMNS, [row[1:] for row in rows])
            for measure, rows in groupby(mixing_rows(mixing), key=itemgetter(0))
        ],
        "sampling": f"{not_applicable(mixing)} {sampling_text(mixing)}",
        "series_charts": _series_charts(of_dataset),
        "series_table": _series_table(of_dataset),
    }


_RELEASE_COLUMNS = (*RELEASE_COLUMNS[:4], "noise / true change", *RELEASE_COLUMNS[4:], "files")
_FILES = (("report", "report.html"), ("privacy statement", "STATEMENT.md"))


def _release_cells(release: ReleaseSummary) -> tuple[str, ...]:
    """Return one row of the table of releases; the last cell has links."""
    path = f"{release.dataset}/{release.notion}"
    links = [(text, f"{path}/release/{name}") for text, name in _FILES]
    cells = release_row(release)
    true_ratio = f"{release.noise.deviation / release.noise.true_change:.2f}"
    return (*cells[:4], true_ratio, *cells[4:], part("links", [*links, ("run file", f"{path}.toml")]))


def _matrices(mixing: Mixing) -> list[str]:
    """Return the estimated and the exact transition matrix of one household as heat maps."""
    exact = next(chain for chain in mixing.exact if chain.name == mixing.example_kind)
    return [
        svg.heat_map(
            f"{sentence_start(mixing.dataset)}, a household of the {exact.name} chain: {origin} transition matrix",
            _band(matrix),
            matrix.tolist(),
            x_title="state after half an hour",
            y_title="state now",
        )
        for origin, matrix in (("estimated", mixing.example), ("exact", exact.matrix))
    ]


def _matrix_table(matrix: Floats) -> str:
    numbers = [f"{i + 1}" for i in range(len(matrix))]
    cells = [(number, *map(_cell, row)) for number, row in zip(numbers, matrix.tolist(), strict=True)]
    caption = "The estimated matrix in percent: from the state now (row) to the state after half an hour"
    return table(caption, ("", *numbers), cells)


def _cell(share: float) -> str:
    """Return a probability in whole percent, for a narrow column.

    >>> _cell(0.714), _cell(0.0), _cell(0.004)
    ('71', '·', '< 1')
    """
    return "·" if share == 0 else "< 1" if share < 0.005 else f"{100 * share:.0f}"


def _band(matrix: Floats) -> str:
    """Return what a transition matrix looks like, in words."""
    stay = matrix.diagonal()
    return (
        f"The largest shares lie on the diagonal: a state stays with probability {stay.min():.2f} to {stay.max():.2f}; "
        "the rest moves by one or two states."
    )


def _mixing_chart(mixing: Mixing) -> str:
    slowest = mixing.slowest.name
    plotted = (
        (f"{MIXING_NAMES['total_variation']}, exact, {slowest} chain", "total_variation", "a"),
        (f"{MIXING_NAMES['spectral']}, {slowest} chain", "spectral", "b"),
        (f"{MIXING_NAMES['reversibilised']}, {slowest} chain", "reversibilised", "c"),
        (f"{MIXING_NAMES['total_variation']}, estimated, median household", "estimated_median", "d"),
        (f"{MIXING_NAMES['total_variation']}, estimated, largest of all households", "estimated_largest", "e"),
    )
    lines = [
        svg.Line(name, mixing.curve_days, mixing.curves[key].tolist(), letter=letter, style=style, dots=False)
        for style, (name, key, letter) in enumerate(plotted)
    ]
    all_values = [float(value) for line in lines for value in line.values]
    x = svg.Scale(0.0, float(AGES_DAYS[-1]), tuple((float(day), f"{day} d") for day in (0, *AGES_DAYS)))
    at_end = "; ".join(f"{line.name}: {svg.format_rounded_up(line.values[-1])}" for line in lines)
    title = f"Decay of dependence with age, {sentence_start(mixing.dataset)}"
    description = f"Total variation and its bounds by age from 0 to {AGES_DAYS[-1]} days. At the end: {at_end}."
    y_title = "total variation [-]"
    y, hover = svg.logarithmic_axis(all_values, decades=3), svg.Hover(lambda age: f"age {age:.3g} days", "")
    return svg.chart(title, description, [*lines, hover], x=x, y=y, y_title=y_title, height=280)


def _series_charts(releases: Sequence[ReleaseSummary]) -> list[str]:
    ends = [row[end] for release in releases for row in release.days for end in ("low_kwh", "high_kwh")]
    y = svg.linear_axis(ends)
    return [_series_chart(release, y) for release in releases]


def _series_table(releases: Sequence[ReleaseSummary]) -> str:
    rows = [
        (f"{row['day']:%Y-%m-%d}", *(f"{release.days[i]['mean_kwh']:.2f}" for release in releases), f"{true:.2f}")
        for i, (row, true) in enumerate(zip(releases[0].days, releases[0].true_means, strict=True))
    ]
    caption = f"Released means in numbers, kWh per household, {sentence_start(releases[0].dataset)}"
    return table(caption, ("day", *DEMONSTRATED_NOTIONS, "true mean"), rows)


def _series_chart(release: ReleaseSummary, y: svg.Scale) -> str:
    ordinals = [float(row["day"].toordinal()) for row in release.days]
    low, high, mean = ([row[f"{name}_kwh"] for row in release.days] for name in ("low", "high", "mean"))
    lines = [
        svg.Line("released mean with its noise interval", ordinals, mean, band=(low, high), dots=False),
        svg.Line("true mean (synthetic data)", ordinals, release.true_means, style=1, dots=False),
    ]
    widest = max(b - a for a, b in zip(low, high, strict=True)) / 2
    description = (
        f"{len(mean)} days: the released mean lies between {min(mean):.2f} and {max(mean):.2f} kWh per household; the "
        f"noise interval reaches at most {widest:.2f} kWh to either side."
    )
    x = svg.date_axis(release.days[0]["day"], release.days[-1]["day"])
    title = f"{sentence_start(release.dataset)}, {release.notion}: daily mean"
    unit = "kWh per household"
    return svg.chart(title, description, [*lines, svg.Hover(svg.day_text, unit)], x=x, y=y, y_title=unit, height=170)


@dataclass(frozen=True, slots=True)
class DemoStarted:
    """The folder is usable; the server starts next."""


@dataclass(frozen=True, slots=True)
class DemoPage:
    """The page with all pictures is written."""

    path: Path


@dataclass(frozen=True, slots=True)
class CalibrationTasks:
    """A calibration is done; `text` is how many tasks of each stage which scheduler ran."""

    text: str


Step = DemoStarted | CalibrationTasks | DemonstrationDataset | Mixing | ReleaseSummary | DemoPage
