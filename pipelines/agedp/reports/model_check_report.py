"""Goodness of fit of the Markov model -> a self-contained HTML page: model against lagged counts. Confidential.

Values are medians and shares over households; the page contains neither household ids nor readings. It is indicative: a
count has a null level, its interval covers only the regimes that were observed, and none of it is published.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from agedp.calibration.model_check import DAY_TOTALS, HALF_HOURS, LAGS_DAYS, LEVEL
from agedp.calibration.quantize import Floats
from agedp.local_files import atomic_files
from agedp.reports.html import PageSection, anchor_of, paragraph, render_page, table
from agedp.reports.svg import Hover, Line, chart, linear_axis, named_axis
from agedp_data.markov.mixing import MIXING_NAMES

if TYPE_CHECKING:
    from agedp.calibration.bound import Calibration
    from agedp.calibration.model_check import MemoryCurves, RegimeCheck

COVERED_DAYS = (1, 2, 7, 14, 28)
COVERAGE = (0.92, 0.91, 0.90, 0.89, 0.73)
"""Measured coverage of nominal 95 % intervals: 400 synthetic households, a year, regimes of 30 to 180 days,
the worse of two kinds (`python -m benchmarks.coverage`, docs/chains.md)."""

_LOW_SHARE, _HIGH_SHARE = 0.1, 0.9
CurveWithBand = tuple[Floats, tuple[Floats, Floats] | None]
"""Values of a curve by age, and its band, None without one."""
_CHAIN_TEXTS = {
    DAY_TOTALS: (
        "Daily totals",
        "Dependence of a later day's state on the total of a day: 0 none, 1 the state is certain.",
    ),
    HALF_HOURS: (
        "Half-hours",
        "The same for the states of half-hours, as the model has them, at lags of whole days. A cyclic chain is "
        "compared half-hour by half-hour in two states, and its line shows the same count on series simulated from it.",
    ),
}


_HOW_TO_READ = (
    "An output of age a days is about a day that ended a days ago: the lag to the current day is a + 1 days.",
    "A lagged count is the largest of noisy numbers, so it is above 0 even for independent data. This null level is "
    "shown and never subtracted. It is too high for strict habits.",
    f"Intervals are nominal {LEVEL:.0%} intervals from a bootstrap of whole weeks. They describe sampling error given "
    "the observed regimes, and do not bound the memory. Their measured coverage is below.",
    "Beyond the largest measured age nothing is known: there a loss counts as never decaying.",
    "Values per household are in the Parquet table beside this page.",
)


def _section(title: str, description: str, chart_html: str, numbers: str) -> PageSection:
    """Return a section of the page."""
    return PageSection(title, anchor_of(title), [paragraph(description), chart_html, numbers])


def write_memory_report(curves: MemoryCurves, calibration: Calibration | None = None) -> None:
    """Write the page of the confidential report on the Markov model where the curves name it.

    With a calibration also how fast its chains mix, and the tasks that computed it.
    """
    atomic_files.write(curves.page, memory_report_page(curves, calibration).encode())


def memory_report_page(curves: MemoryCurves, calibration: Calibration | None = None) -> str:
    """Return the page of the confidential report on the Markov model."""
    summary, lines, conclusions = _verdict(curves)
    names = curves.series_by_name
    caption = "Measured coverage of the intervals: synthetic households over a year with regimes of 30 to 180 days"
    numbers = _table(caption, COVERED_DAYS, [("total variation by the chains' states", COVERAGE)], digits=2)
    return render_page(
        "model_check_report.html",
        title=_TITLE,
        summary=summary,
        conclusions=[
            *([] if curves.sample is None else [curves.sample.sentence]),
            *(f"{line[0].upper()}{line[1:]}." for line in lines),
            *conclusions,
            *regime_verdict(curves),
        ],
        sections=[
            *([] if calibration is None else [_mixing_section(calibration)]),
            *([] if curves.regimes is None else [_regime_section(curves.regimes)]),
            *(_chain_section(curves, name) for name in _CHAIN_TEXTS if name in names),
            PageSection("How to read this", "how-to-read", [*map(paragraph, _HOW_TO_READ), numbers]),
        ],
    )


_CURVES = {**MIXING_NAMES, "sampling_bound": "sampling bound on total variation"}


def mixing_rows(calibration: Calibration) -> list[tuple[str, Floats]]:
    """Return how fast the chains mix as labelled rows by age: over households, each measure that they have.

    The bound for reversible chains is shown where it holds for all of them, and else for their reversible fit.
    """
    rows: list[tuple[str, Floats]] = []
    for key, name in _CURVES.items():
        curves = calibration.curves.get(key)
        if curves is None or curves.ndim == 1 or np.isnan(curves).any():
            continue
        if key == "reversible_fit" and not reversible_fit_text(calibration):
            continue
        rows.append((f"{name}, median", np.median(curves, axis=0)))
        rows.append(("  maximum over households", curves.max(axis=0)))
    return rows


def reversible_fit_text(calibration: Calibration) -> str:
    """Return how many households exceed the bound of their reversible fit, "" if all chains are reversible."""
    curves = calibration.curves
    if "reversible_fit" not in curves or not np.isnan(curves["spectral"]).any():
        return ""
    other = int(np.isnan(curves["spectral"]).any(axis=1).sum())
    exceeding = int((curves["total_variation"] > curves["reversible_fit"]).any(axis=1).sum())
    return (
        f"{other:,} of {calibration.households:,} chains are not reversible, so eq. 55 of Zhang et al. (2024) bounds "
        f"their reversible fit only. The exact total variation of {exceeding:,} households exceeds it at one of these "
        "ages or more. It is indicative and sets no budget."
    )


def _mixing_section(calibration: Calibration) -> PageSection:
    """Return how fast the chains mix, and how many tasks computed it."""
    title = "Mixing of the estimated chains"
    gap = calibration.curves.get("spectral_gap")
    gaps = "" if gap is None else f"Spectral gap: median {np.median(gap):.3f}, smallest {gap.min():.3f}."
    texts = filter(None, [gaps, reversible_fit_text(calibration), calibration.tasks])
    numbers = _table(f"{title}, by age", calibration.ages_days, mixing_rows(calibration), digits=4)
    return PageSection(title, anchor_of(title), [*map(paragraph, texts), numbers])


def markov_verdict(curves: MemoryCurves) -> list[str]:
    """Return whether the Markov property was rejected, and what follows for the bounds; contains counts only."""
    summary, lines, conclusions = _verdict(curves)
    return [summary, *lines, *conclusions]


def regime_verdict(curves: MemoryCurves) -> list[str]:
    """Return the verdict on the model, how far the hidden regimes agree, and what the period cannot show."""
    check = curves.regimes
    if check is None:
        return []
    distance = np.abs(check.mean("regimes") - check.mean("direct"))
    agreement = (
        []
        if np.isnan(distance).all()
        else [
            f"Hidden regimes are within {np.nanmax(distance):.2f} of the direct counts at every lag (mean over "
            "households). They are indicative: no noise and no bound depends on them."
        ]
    )
    verdict = curves.verdict
    warning = [check.warning] if check.warning else []
    return [f"Verdict on the model: {verdict.verdict}. {verdict.reason}", *agreement, *warning]


def regime_rows(check: RegimeCheck) -> list[tuple[str, Floats]]:
    """Return the figures of the check by hidden regimes as labelled means over households, by lag."""
    return [
        ("direct counts", check.mean("direct")),
        ("predicted by a chain of days", check.mean("chain")),
        ("predicted by five hidden regimes", check.mean("regimes")),
    ]


def _verdict(curves: MemoryCurves) -> tuple[str, list[str], list[str]]:
    checks = {name: check for name, check in curves.checks.items() if check.checked}
    if not checks:
        return f"{_TITLE}: not tested, because no household has enough readings.", [], [_ASSUMPTION_FREE]
    lines = [
        f"{name}: {check.rejected:,} of {check.checked:,} households have longer memory than a first-order chain "
        f"(about {check.checked * (1 - LEVEL):.0f} are expected by chance)"
        for name, check in checks.items()
    ]
    if any(check.is_significant for check in checks.values()):
        summary = f"{_TITLE}: Markov property rejected."
        conclusion = (
            "Bounds that credit age are conditional on the model, which these households contradict. Quote such a "
            "bound as conditional on the model or not at all, and never let it justify a larger epsilon."
        )
    else:
        summary = f"{_TITLE}: Markov property not rejected, up to {curves.ages_days[-1]} days."
        conclusion = (
            "This is no proof: the test does not cover later ages, nor slow changes that the period does not show. "
            "Bounds that credit age stay conditional on the model."
        )
    return summary, lines, [_ASSUMPTION_FREE, conclusion]


_TITLE = "Goodness of fit of the Markov model"
_ASSUMPTION_FREE = "The epsilon of a day and the total over all days need no model."


def _regime_section(check: RegimeCheck) -> PageSection:
    title = "Memory of days given season, weather and weekday"
    rows, error = regime_rows(check), check.excess[1]
    ranges = [
        [np.quantile(column, share) if len(column) else math.nan for column in map(_present, check.direct.T)]
        for share in (_LOW_SHARE, _HIGH_SHARE)
    ]
    bands = {"direct counts": (np.array(ranges[0]), np.array(ranges[1]))}
    lines = {f"{name} (mean over households)": (values, bands.get(name)) for name, values in rows}
    description = (
        "How much more probable a high day was some days ago if the present one is high: 0 none, 1 the household never "
        "changes. High means above the household's own median, after the mean of the other households and the "
        "household's own weekdays are taken out. The band contains 80 % of the households."
    )
    more: list[tuple[str, Iterable[float]]] = [
        ("a tenth of households below", ranges[0]),
        ("a tenth of households above", ranges[1]),
        ("standard error of direct counts less chain", error),
    ]
    caption = f"{title}, by lag: means over households"
    chart_html = _lag_chart(title, LAGS_DAYS, lines, y_title="signed memory", y_range=(min(0.0, _lowest(lines)), 1.0))
    households = int(check.households.max(initial=0))
    return _section(
        f"{title} ({households:,} households)",
        description,
        chart_html,
        _table(caption, LAGS_DAYS, [*rows, *more], digits=3),
    )


def _lowest(lines: Mapping[str, CurveWithBand]) -> float:
    ends = [values for curve, band in lines.values() for values in (curve, *(() if band is None else band))]
    return min((float(value) for values in ends for value in _present(values)), default=0.0)


def _present(values: Floats) -> Floats:
    return values[~np.isnan(values)]


def _chain_section(curves: MemoryCurves, name: str) -> PageSection:
    title, description = _CHAIN_TEXTS[name]
    values = {value: curves.quantile(name, value, 0.5) for value in ("direct", "powers", "floor", "low", "high")}
    low, high = (curves.quantile(name, "direct", share) for share in (_LOW_SHARE, _HIGH_SHARE))
    lines = {
        "lagged counts (median household; band: 80 % of households)": (values["direct"], (low, high)),
        "predicted by the chain (median household)": (values["powers"], None),
        "null level (median household)": (values["floor"], None),
    }
    measured = [_present(column) for column in curves.series_by_name[name]["rejected"].T]
    rejected = [float(column.mean()) if len(column) else math.nan for column in measured]
    rows: list[tuple[str, Iterable[float]]] = [
        ("predicted by the chain", values["powers"]),
        ("lagged counts", values["direct"]),
        ("a tenth of households below", low),
        ("a tenth of households above", high),
        ("interval, lower end", values["low"]),
        ("interval, upper end", values["high"]),
        ("null level", values["floor"]),
        ("Markov property rejected, share of households", rejected),
    ]
    chart_html = _lag_chart(
        f"{title}: prediction and lagged counts", curves.ages_days, lines, y_title="total variation", y_range=(0.0, 1.0)
    )
    households = curves.checks[name].checked
    return _section(
        f"{title} ({households:,} households)",
        description,
        chart_html,
        _table(f"{title}, by lag: medians over households", curves.ages_days, rows, digits=3),
    )


def _lag_chart(
    title: str,
    ages: Sequence[int],
    lines: Mapping[str, CurveWithBand],
    *,
    y_title: str,
    y_range: tuple[float, float],
) -> str:
    positions = [float(position) for position in range(len(ages))]
    layers = []
    for style, ((name, (values, band)), letter) in enumerate(zip(lines.items(), "ABC", strict=False)):
        ends = None if band is None else (band[0].tolist(), band[1].tolist())
        layers.append(Line(name, positions, values.tolist(), ends, letter, style))
    description = "; ".join(f"{name}: {_values_text(values.tolist(), ages)}" for name, (values, _) in lines.items())
    return chart(
        title,
        f"By lag in days, evenly spaced, not to scale. {description}",
        [*layers, Hover(lambda position: f"lag {ages[round(position)]} days", "")],
        x=named_axis({position: f"{age} d" for position, age in zip(positions, ages, strict=True)}),
        y=linear_axis(list(y_range), zero=True),
        y_title=y_title,
    )


def _values_text(values: Sequence[float], ages: Sequence[int]) -> str:
    texts = [f"{value:.2f} at {age} d" for value, age in zip(values, ages, strict=True) if not math.isnan(value)]
    return ", ".join(texts) or "nothing to compare"


def _table(caption: str, ages: Sequence[int], rows: Sequence[tuple[str, Iterable[float]]], *, digits: int) -> str:
    cells = [
        (name, *("–" if math.isnan(value) else f"{value:.{digits}f}" for value in values)) for name, values in rows
    ]
    return table(caption, ("lag", *(f"{age} d" for age in ages)), cells)
