"""The steps of `agedp demo`, and its index.html: chains, bounds, the three notions, and links to the releases.

Public only because no household exists: estimated chains, data quality and true means are confidential otherwise, and
the page states this.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

from agedp.demo.demo_folder import AGES_DAYS, NOTIONS, PAGE_TITLE
from agedp.demo.mixing_table import (
    AGE_COLUMNS,
    Mixing,
    gap_text,
    mixing_rows,
    not_applicable,
    row_text,
    sampling_text,
    state_text,
)
from agedp.demo.release_table import COLUMNS_ARE, RELEASE_COLUMNS, ReleaseSummary, credit_text, release_row
from agedp.demo.synthetic_datasets import DemonstrationDataset
from agedp.reports.axes import Scale, date_axis, format_rounded_up, linear_axis, logarithmic_axis
from agedp.reports.chart_layers import Hover
from agedp.reports.hover import day_text
from agedp.reports.html import PageSection, anchor_of, part, render_page, table, text_table
from agedp.reports.svg import Line, chart, heat_map
from agedp_data.datasets.synthetic.households import Floats
from agedp_data.markov.mixing import MIXING_NAMES
from agedp_data.messages import sentence_start
from agedp_data.statement.facts import WITH_MODEL

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
        model_warning=WITH_MODEL[1],
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
        heat_map(
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
        Line(name, mixing.curve_days, mixing.curves[key].tolist(), letter=letter, style=style, dots=False)
        for style, (name, key, letter) in enumerate(plotted)
    ]
    all_values = [float(value) for line in lines for value in line.values]
    x = Scale(0.0, float(AGES_DAYS[-1]), tuple((float(day), f"{day} d") for day in (0, *AGES_DAYS)))
    at_end = "; ".join(f"{line.name}: {format_rounded_up(line.values[-1])}" for line in lines)
    title = f"Decay of dependence with age, {sentence_start(mixing.dataset)}"
    description = f"Total variation and its bounds by age from 0 to {AGES_DAYS[-1]} days. At the end: {at_end}."
    y_title = "total variation [-]"
    y, hover = logarithmic_axis(all_values, decades=3), Hover(lambda age: f"age {age:.3g} days", "")
    return chart(title, description, [*lines, hover], x=x, y=y, y_title=y_title, height=280)


def _series_charts(releases: Sequence[ReleaseSummary]) -> list[str]:
    ends = [row[end] for release in releases for row in release.days for end in ("low_kwh", "high_kwh")]
    y = linear_axis(ends)
    return [_series_chart(release, y) for release in releases]


def _series_table(releases: Sequence[ReleaseSummary]) -> str:
    rows = [
        (f"{row['day']:%Y-%m-%d}", *(f"{release.days[i]['mean_kwh']:.2f}" for release in releases), f"{true:.2f}")
        for i, (row, true) in enumerate(zip(releases[0].days, releases[0].true_means, strict=True))
    ]
    caption = f"Released means in numbers, kWh per household, {sentence_start(releases[0].dataset)}"
    return table(caption, ("day", *NOTIONS, "true mean"), rows)


def _series_chart(release: ReleaseSummary, y: Scale) -> str:
    ordinals = [float(row["day"].toordinal()) for row in release.days]
    low, high, mean = ([row[f"{name}_kwh"] for row in release.days] for name in ("low", "high", "mean"))
    lines = [
        Line("released mean with its noise interval", ordinals, mean, band=(low, high), dots=False),
        Line("true mean (synthetic data)", ordinals, release.true_means, style=1, dots=False),
    ]
    widest = max(b - a for a, b in zip(low, high, strict=True)) / 2
    description = (
        f"{len(mean)} days: the released mean lies between {min(mean):.2f} and {max(mean):.2f} kWh per household; the "
        f"noise interval reaches at most {widest:.2f} kWh to either side."
    )
    x = date_axis(release.days[0]["day"], release.days[-1]["day"])
    title = f"{sentence_start(release.dataset)}, {release.notion}: daily mean"
    unit = "kWh per household"
    return chart(title, description, [*lines, Hover(day_text, unit)], x=x, y=y, y_title=unit, height=170)


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
