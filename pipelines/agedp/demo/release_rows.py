"""The releases of a demonstration as table cells, the same in the terminal and on the page."""

from __future__ import annotations

from collections.abc import Sequence

from agedp.demo.exact_bounds import exact_bound
from agedp.demo.mixing_table import Mixing
from agedp.demo.release_table import ReleaseSummary
from agedp.reports.axes import format_rounded_up

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
    "of the mean, estimated from the published series alone; the ratio is 'hidden' where the noise hides the change.",
    "Epsilon of a day: privacy loss of one released day. Epsilon of the period: composition of all released days, "
    "without any assumption. It is large, because these notions bound the loss about the present, about any one day, "
    "or about the recent past, not about all days together.",
    "Bound of the notion: what the releases reach, and what the run file promises. Risk: loss about the "
    "present from all releases, published at that age. Temporal leakage: loss about any one day from all releases. "
    "Both hold under the model. Discounted sum: sum of all losses, in which old ones count less.",
)


def release_row(release: ReleaseSummary) -> tuple[str, ...]:
    """Return one row of the table of releases; bounds are rounded up to three digits."""
    bound = release.bound
    return (
        f"{release.dataset.capitalize()}, {release.notion}",
        f"{len(release.days)}",
        f"{release.noise.deviation:.3f}",
        ratio_text(release),
        day_epsilon_text(release),
        format_rounded_up(float(release.total_epsilon)),
        f"{bound.name}: {format_rounded_up(float(bound.epsilon))} of {format_rounded_up(float(bound.limit))}",
    )


def ratio_text(release: ReleaseSummary) -> str:
    """Return the noise-to-signal ratio, or that the noise hides the signal."""
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
    dataset, days = mixing.dataset.capitalize(), len(aged.days)
    return (
        f"Credit for age, {dataset}: without it, one release of epsilon {limit} reaches the promised risk of {limit}; "
        f"with it, {days} days have epsilon {day_epsilon_text(aged)} each. Under the exact chains the risk is {risk} "
        f"(promised {limit}) and the temporal leakage {leakage} (promised {alpha})."
    )
