"""index.html of a demonstration: chains, bounds and the three notions in pictures, with links to the six releases.

Public only because no household exists: estimated chains, data quality and true means are confidential otherwise, and
the page states this.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from itertools import groupby
from operator import itemgetter

from agedp.demo.demo_folder import PAGE_TITLE
from agedp.demo.demo_run_files import AGES_DAYS, NOTIONS
from agedp.demo.mixing_rows import (
    AGE_COLUMNS,
    gap_text,
    mixing_rows,
    not_applicable,
    row_text,
    sampling_text,
    state_text,
)
from agedp.demo.mixing_table import Mixing
from agedp.demo.release_rows import COLUMNS_ARE, RELEASE_COLUMNS, credit_text, release_row
from agedp.demo.release_table import ReleaseSummary
from agedp.reports.axes import Scale, date_axis, format_rounded_up, linear_axis, logarithmic_axis
from agedp.reports.heat_map import heat_map
from agedp.reports.html import document, paragraph, section, table, text_table
from agedp.reports.svg import Line, chart
from agedp_data.datasets.synthetic.households import Floats
from agedp_data.markov.mixing import MIXING_NAMES
from agedp_data.statement.facts import WITH_MODEL

_TITLE = "From half-hourly readings to daily averages under three notions of differential privacy over time"
_SYNTHETIC = (
    "Synthetic households: every reading was drawn from a Markov chain that this demonstration states (chains.json). "
    "No household exists."
)
_SUMMARY = (
    "What was done, for each dataset: rows were read in the publisher's format and kept or rejected; readings were "
    "quantized to 12 states per household; one transition matrix per household was estimated with Dask, from days "
    "before the released ones; total variation and its bounds were computed from the matrices; then Prefect flows "
    "released daily averages, two days old and with discrete Laplace noise, under age-dependent, temporal and "
    "discounted differential privacy. Each release is a rehearsal with a simulated clock and a ledger of its own."
)
_CONFIDENTIAL = (
    "For real households these parts of this page are confidential: row counts, states, transition matrices, spectral "
    "gaps, total variation and bounds of single households and their medians, true means, and each comparison with a "
    "true mean. agedp writes them to the confidential folder and the folder of the model only."
)
_PUBLIC = (
    "Public are the release folders: the released means with their noise intervals, the noise, every epsilon and bound "
    "in the table of releases except noise / true change, and the model's leakage bound by age. The leakage "
    "bound is a maximum over all households, is computed from readings and is published without noise; the largest "
    "total variation and the largest bounds of the estimated chains are part of it."
)
_REAL = "Real households are usually not such chains. These synthetic ones are, so the Markov assumption holds."
_INTERVAL = (
    "The shaded band is the 95 % interval of the added noise. The dashed line is the true mean before noise: "
    "confidential for real households, shown because these are synthetic."
)


def overview_page(mixings: Sequence[Mixing], releases: Sequence[ReleaseSummary]) -> str:
    """Return the page."""
    parts = [
        f"<header><h1>{escape(_TITLE)}</h1>",
        paragraph(_SYNTHETIC, "mark"),
        paragraph(_SUMMARY),
        "</header><main>",
        section("The six releases", *_releases(releases, mixings)),
    ]
    for mixing in mixings:
        of_dataset = [release for release in releases if release.dataset == mixing.dataset]
        parts.append(section(f"{mixing.dataset.capitalize()}: chains and bounds", *_chains(mixing)))
        parts.append(section(f"{mixing.dataset.capitalize()}: the released series", *_series(of_dataset)))
    warnings = (_CONFIDENTIAL, _PUBLIC, _REAL, _warning())
    parts.append(section("Before you do this with real households", *map(paragraph, warnings)))
    return document(PAGE_TITLE, [*parts, "</main>"])


def _warning() -> str:
    """Return the fixed warning of every statement that rests on a Markov model."""
    return f"The statement of every release with a model says: {WITH_MODEL[1]}"


def _releases(releases: Sequence[ReleaseSummary], mixings: Sequence[Mixing]) -> Iterator[str]:
    yield text_table("", _RELEASE_COLUMNS, [_release_cells(release) for release in releases])
    yield from (paragraph(text, "soft") for text in (*COLUMNS_ARE, _TRUE_CHANGE))
    yield from (paragraph(credit_text(releases, mixing)) for mixing in mixings)


_RELEASE_COLUMNS = (*RELEASE_COLUMNS[:4], "noise / true change", *RELEASE_COLUMNS[4:], "files")
_TRUE_CHANGE = (
    "Noise / true change: the same with the true means, which are known because the households are synthetic."
)
_FILES = (("report", "report.html"), ("privacy statement", "STATEMENT.md"))


def _release_cells(release: ReleaseSummary) -> tuple[str, ...]:
    """Return one row of the table of releases as HTML."""
    path = f"{release.dataset}/{release.notion}"
    links = [_link(text, f"{path}/release/{name}") for text, name in _FILES]
    name, *cells = map(escape, release_row(release))
    true_ratio = f"{release.noise.deviation / release.noise.true_change:.2f}"
    return (name, *cells[:3], true_ratio, *cells[3:], ", ".join([*links, _link("run file", f"{path}.toml")]))


def _link(text: str, url: str) -> str:
    return f'<a href="{escape(url, quote=True)}">{escape(text)}</a>'


def _chains(mixing: Mixing) -> Iterator[str]:
    dataset = mixing.dataset.capitalize()
    yield paragraph(row_text(mixing.rows))
    yield paragraph(state_text(mixing))
    exact = next(chain for chain in mixing.exact if chain.name == mixing.example_kind)
    yield '<div class="two">'
    for origin, matrix in (("estimated", mixing.example), ("exact", exact.matrix)):
        title = f"{dataset}, a household of the {exact.name} chain: {origin} transition matrix"
        yield heat_map(title, _band(matrix), matrix.tolist(), x_title="state after half an hour", y_title="state now")
    yield "</div>"
    numbers = [f"{i + 1}" for i in range(len(mixing.example))]
    cells = [(number, *map(_cell, row)) for number, row in zip(numbers, mixing.example.tolist(), strict=True)]
    yield table(
        "The estimated matrix in percent: from the state now (row) to the state after half an hour",
        ("", *numbers),
        cells,
    )
    yield paragraph(gap_text(mixing))
    yield _mixing_chart(mixing)
    for measure, rows in groupby(mixing_rows(mixing), key=itemgetter(0)):
        yield table(f"{dataset}: {measure}", AGE_COLUMNS, [row[1:] for row in rows])
    yield paragraph(f"{not_applicable(mixing)} {sampling_text(mixing)}", "soft")


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
    title = f"Decay of dependence with age, {mixing.dataset.capitalize()}"
    description = f"Total variation and its bounds by age from 0 to {AGES_DAYS[-1]} days. At the end: {at_end}."
    y_title = "total variation [-]"
    return chart(title, description, lines, x=x, y=logarithmic_axis(all_values, decades=3), y_title=y_title, height=280)


def _series(releases: Sequence[ReleaseSummary]) -> Iterator[str]:
    yield paragraph(_INTERVAL, "soft")
    ends = [row[end] for release in releases for row in release.days for end in ("low_kwh", "high_kwh")]
    y = linear_axis(ends)
    for release in releases:
        yield _series_chart(release, y)
    rows = [
        (f"{row['day']:%Y-%m-%d}", *(f"{release.days[i]['mean_kwh']:.2f}" for release in releases), f"{true:.2f}")
        for i, (row, true) in enumerate(zip(releases[0].days, releases[0].true_means, strict=True))
    ]
    caption = f"Released means in numbers, kWh per household, {releases[0].dataset.capitalize()}"
    yield table(caption, ("day", *NOTIONS, "true mean"), rows)


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
    title = f"{release.dataset.capitalize()}, {release.notion}: daily mean"
    return chart(title, description, lines, x=x, y=y, y_title="kWh per household", height=170)
