"""Noise, losses and bounds of the six release folders of a demonstration, read from the folders themselves.

First the values, then their table cells, which are the same in the terminal and on the page.

The noise-to-signal ratio is estimated from the published series alone, as for any release (`signal_against_noise`). The
true change comes from the confidential true means; it may be shown here only because no household exists.

The promise is kept under the estimated model. Bounds under the exact chains show that the credit for age and for mixing
is real: they are computed from the stated chains alone, by the library's recursions for known kernels ([A] Theorem 3,
[T] section 3).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from agedp.demo.mixing_table import Mixing
from agedp.release_folder.release_folder import ReleaseFolder
from agedp.reports.axes import format_rounded_up
from agedp.signal_against_noise import SpanSignal, span_signals
from agedp_data.accounting.ageing import compose
from agedp_data.accounting.temporal_half_hourly import daily_release_leakage
from agedp_data.config.contract import contract_value
from agedp_data.datasets.synthetic.households import Floats
from agedp_data.datasets.validation import SLOTS
from agedp_data.messages import sentence_start
from agedp_data.statement.document import Statement

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
    true_means = _true_means(dataset_folder / notion / "confidential" / "true_means.parquet", days)
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
        bound=_own_bound(statement),
    )


def _true_means(path: Path, days: Sequence[Mapping[str, Any]]) -> list[float]:
    table = pq.read_table(path, columns=["day", "true_mean_kwh"]).to_pydict()
    by_day = dict(zip(table["day"], table["true_mean_kwh"], strict=True))
    return [by_day[row["day"]] for row in days]


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


def _own_bound(statement: Statement) -> NotionBound:
    """Return the bound that the statement's promise is about."""
    promise = statement.contract.terms.promise
    key, shown = promise.TEXT.own_bound.of(contract_value(promise))
    bound = next(bound for bound in statement.bounds if bound.name == key)
    return NotionBound(shown, bound.epsilon, bound.limit)


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
        ratio_text(release),
        day_epsilon_text(release),
        format_rounded_up(float(release.total_epsilon)),
        f"{bound.name}: {format_rounded_up(float(bound.epsilon))} of {format_rounded_up(float(bound.limit))}",
    )


def ratio_text(release: ReleaseSummary) -> str:
    """Return the noise-to-signal ratio, "hidden" where the published series does not show the signal."""
    return "hidden" if release.noise.ratio is None else f"{release.noise.ratio:.2f}"


def day_epsilon_text(release: ReleaseSummary) -> str:
    """Return the privacy loss of a day: the smallest and the largest where days differ."""
    least, most = format_rounded_up(release.least_day_epsilon), format_rounded_up(float(release.day_epsilon))
    return most if least == most else f"{least} to {most}"


def credit_text(releases: Sequence[ReleaseSummary], mixing: Mixing) -> str:
    """Return what the credit for age is worth in a dataset's releases, and that the exact chains justify it."""
    by_notion = {release.notion: release for release in releases if release.dataset == mixing.dataset}
    aged, temporal = by_notion["age-dependent"], by_notion["temporal"]
    limit, alpha = (format_rounded_up(float(release.bound.limit)) for release in (aged, temporal))
    risk, leakage = (format_rounded_up(exact_bound(release, mixing.kernels) or 0.0) for release in (aged, temporal))
    dataset, days = sentence_start(mixing.dataset), len(aged.days)
    return (
        f"Credit for age, {dataset}: without it, one release of epsilon {limit} reaches the promised risk of {limit}; "
        f"with it, {days} days have epsilon {day_epsilon_text(aged)} each. Under the exact chains the risk is {risk} "
        f"(promised {limit}) and the temporal leakage {leakage} (promised {alpha})."
    )
