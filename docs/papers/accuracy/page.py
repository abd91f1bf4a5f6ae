"""Measured errors -> the page docs/accuracy.md. Every number is one of measured.json or of a closed form."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from docs.papers.accuracy.measure import expected_error

MEASURED: Final = Path(__file__).parent / "measured.json"
Figures = Mapping[str, Any]
_YEAR = 365
_LEAD, _FEW, _MANY = 1000, 100, 5000
_WANTED_KWH: Final = (0.1, 0.5, 1.0)
_RULE = """## The rule

The noise of a daily mean is known before anything is released. With {households} households, a clamp of $U$ kWh and
epsilon $\\varepsilon$ for the day, its standard deviation $\\sigma$ and the error of 95 of 100 days are

$$\\sigma = \\frac{{\\sqrt 2\\, U}}{{\\varepsilon N}}, \\qquad
w_{{95}} = \\frac{{U \\ln 20}}{{\\varepsilon N}} \\approx 2.1\\, \\sigma$$

kWh per household (Laplace law, Dwork, McSherry, Nissim, Smith 2006; the discrete law differs by less than 0.001 kWh
here). So twice the households, twice the epsilon or half the clamp halve the error. `agedp plan` prints $\\sigma$ for a
run file, and [the table of the plan](plan.md) compares notions. Solved for $N$, raw means need this number of
households:
"""
_READ = """## What the tables show

* *Span accountant*: a year of ({epsilon}, 1e-6) has {ratio} times less noise than a year of {epsilon} without a delta
  ([one year or one day?](choose.md#5-one-year-or-one-day)). It is the weaker promise: the epsilon of a day, and the
  sum over the year, rise by that factor.
* *Smoothing* gains most where noise exceeds the change from day to day. It costs no epsilon ([smooth](smooth.md)).
  It gains little where the raw error is small already, and its error no longer falls like $1/N$.
* *A month's mean* of raw values has the error of a day divided by $\\sqrt{{30}} = 5.5$: with {lead} households and
  epsilon 0.1 per day {month} kWh instead of {day} kWh (standard deviations).
* *What smoothing cannot show*: where a smoothed error reaches the spread of the days over the year ({spread_few}
  kWh with {few}, {spread_lead} kWh with {lead} households, standard deviations), the estimates show at most the level
  and the season, and no single day.
* Compare the error with the day-to-day change. A raw mean whose error exceeds it cannot tell one day from the next
  ([signal against noise](plan.md#signal-against-noise)).
* The age-dependent row depends on its example curve, a total variation of 0.6 at 1 day and 0.1 at 7 days under a
  Markov chain. Real households mix more slowly ([goodness of fit](goodness-of-fit.md)): with a slower curve the
  noise is larger.
"""
_METHOD = """## How it was measured

* *Households*: {most:,} synthetic ones (`agedp sample`'s chains, {mean} kWh a day on average, season, weekend and
  weather), over {days} days of 2013. The first {few} to {most:,} of them are counted. No reading is missing.
* *Error*: released mean minus the mean before noise, both after the clamp of {clamp} kWh. The clamp changed
  {clamped} of these household-days, so its bias is not in the tables; real households have larger days ([which
  clamp?](choose.md#3-which-clamp)).
* *Draws*: {draws} years for each cell, by the mechanism of a release. A measured root mean square lies within
  {scatter} of its closed form, a measured error of 95 of 100 days within {scatter_95}.
* *Losses of a day*: those that `agedp.plan` grants for a year under each promise.
* *Smoothed*: archive estimates, as `agedp smooth --region none` without weather. They know later days; live
  estimates err more. Weather narrows the estimates of real households, which this measurement leaves out.
* No real reading was used. The raw error does not depend on readings; the smoothed one depends on how smooth their
  mean is.
"""


def read_measured() -> dict[str, Any]:
    """Return the stored figures."""
    figures: dict[str, Any] = json.loads(MEASURED.read_text("utf-8"))
    return figures


def page(figures: Figures) -> str:
    """Return the page as Markdown."""
    return "\n".join([*_introduction(figures), *_rule(figures), *_details(figures), *_notes(figures)])


def expected_95(epsilon: float, households: int, clamp_kwh: float) -> float:
    """Return the size that 95 of 100 errors do not exceed by the Laplace law [kWh per household]."""
    return clamp_kwh * math.log(20) / (epsilon * households)


def _introduction(figures: Figures) -> Iterator[str]:
    strong, weak = _promise(figures, "day-1"), _promise(figures, "day-0.1")
    yield "# Accuracy: how many households for which error"
    yield ""
    yield from _sentence(figures, strong, _LEAD)
    yield (
        f"With {_FEW} households it is within {_within(figures, strong, _FEW)}, with {_MANY:,} within "
        f"{_within(figures, strong, _MANY)}."
    )
    yield (
        f"At epsilon 0.1 per day {_LEAD:,} households have {_within(figures, weak, _LEAD)}, and "
        f"{_within(figures, weak, _LEAD, 'smoothed')} after `agedp smooth`."
    )
    yield "All figures are for synthetic households; [how they were measured](#how-it-was-measured) is below."
    yield ""
    yield "![Error of a daily mean against the number of households, for an epsilon of 10 a year](accuracy.svg)"
    yield ""
    yield (
        "Largest error on 95 of 100 days, in kWh per household and in percent of the mean. Raw errors follow from "
        "[the rule](#the-rule),\nsmoothed ones are measured:"
    )
    yield ""
    numbers = (f"{number:,}" for number in figures["households"])
    yield from _head(["promise", "epsilon of a day", "sum of a year", *numbers])
    for promise in figures["promises"]:
        for kind, label in (("raw", promise["text"]), ("smoothed", "the same, smoothed")):
            cells = [_within(figures, promise, number, kind, unit="") for number in figures["households"]]
            losses = (promise["epsilon"], promise["epsilon"] * _YEAR) if kind == "raw" else ()
            yield _row([label, *(map(_three, losses) if losses else ("", "")), *cells])
    yield ""
    yield (
        "The *sum of a year* bounds what all its days together disclose, for every promise: a sum of 365 is "
        "practically no\nprotection of a habit that shows every day."
    )
    yield ""
    yield "Choose a row by what it protects, not by its error: [which notion?](choose.md)"
    yield ""


def _sentence(figures: Figures, promise: Figures, households: int) -> Iterator[str]:
    yield (
        f"**With {households:,} households, a clamp of {figures['clamp_kwh']} kWh and epsilon 1 per day, the published "
        f"daily mean is within {_within(figures, promise, households)} on 95 of 100 days.** "
        f"The epsilons of a year add up to {promise['epsilon'] * _YEAR:g}."
    )


def _rule(figures: Figures) -> Iterator[str]:
    yield _RULE.format(households="$N$")
    yield from _head(["promise", *(f"within {wanted:g} kWh" for wanted in _WANTED_KWH)])
    for promise in figures["promises"]:
        needed = [expected_95(promise["epsilon"], 1, figures["clamp_kwh"]) / wanted for wanted in _WANTED_KWH]
        yield _row([promise["text"], *(f"{_rounded_up(number):,}" for number in needed)])
    yield ""


def _details(figures: Figures) -> Iterator[str]:
    yield "## Root mean square errors"
    yield ""
    yield (
        "In kWh per household; in percent of the mean; and as a multiple of the change of the mean from day to day "
        "(root mean\nsquare). *Expected* is $\\sigma$ of the rule, *raw* and *smoothed* are measured."
    )
    for promise in figures["promises"]:
        yield f"\n### {promise['text'][:1].upper()}{promise['text'][1:]}\n"
        yield f"Epsilon of each day: {_three(promise['epsilon'])}.\n"
        yield from _head(
            ["households", "expected", "raw", "% of mean", "x change", "smoothed", "% of mean", "x change"]
        )
        for i, number in enumerate(figures["households"]):
            raw, smoothed = promise["raw"][i], promise["smoothed"][i]
            mean, change = figures["mean_kwh"][i], figures["change_kwh"][i]
            cells = [
                cell
                for error in (raw, smoothed)
                for cell in (_three(error), _percent(error / mean), _three(error / change))
            ]
            expected = expected_error(promise["epsilon"], number)
            yield _row([f"{number:,}", _three(expected), *cells])
    yield ""


def _notes(figures: Figures) -> Iterator[str]:
    day, year, spanned = (_promise(figures, key) for key in ("day-0.1", "year", "year-delta"))
    sigma = expected_error(day["epsilon"], _LEAD)
    scatter = max(
        abs(raw / expected_error(promise["epsilon"], number) - 1)
        for promise in figures["promises"]
        for raw, number in zip(promise["raw"], figures["households"], strict=True)
    )
    scatter_95 = max(
        abs(raw / expected_95(promise["epsilon"], number, figures["clamp_kwh"]) - 1)
        for promise in figures["promises"]
        for raw, number in zip(promise["raw_95"], figures["households"], strict=True)
    )
    yield _READ.format(
        epsilon=10, ratio=f"{spanned['epsilon'] / year['epsilon']:.1f}", lead=f"{_LEAD:,}", day=_three(sigma),
        month=_three(sigma / math.sqrt(30)), few=figures["households"][0], spread_few=_three(figures["spread_kwh"][0]),
        spread_lead=_three(figures["spread_kwh"][figures["households"].index(_LEAD)]),
    )  # fmt: skip
    yield _METHOD.format(
        most=max(figures["households"]), few=min(figures["households"]), mean=_three(figures["mean_kwh"][-1]),
        days=figures["days"], clamp=figures["clamp_kwh"], draws=figures["draws"], scatter=_percent(scatter, up=True),
        scatter_95=_percent(scatter_95, up=True),
        clamped="none" if not figures["clamped_share"] else _percent(figures["clamped_share"], up=True),
    )  # fmt: skip
    yield "Written by `python -m docs.papers.accuracy`, which measures again; with `--page` from the stored figures.\n"


def _promise(figures: Figures, key: str) -> Figures:
    return next(promise for promise in figures["promises"] if promise["key"] == key)


def _within(figures: Figures, promise: Figures, households: int, kind: str = "raw", *, unit: str = " kWh") -> str:
    """Return the largest error of 95 of 100 days, with its share of the mean."""
    place = figures["households"].index(households)
    raw = expected_95(promise["epsilon"], households, figures["clamp_kwh"])
    error, mean = raw if kind == "raw" else promise["smoothed_95"][place], figures["mean_kwh"][place]
    return f"{_three(error)}{unit} ({_percent(error / mean)})"


def _head(names: Sequence[str]) -> Iterator[str]:
    yield _row(names)
    yield "|---" * len(names) + "|"


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _three(value: float) -> str:
    """Return a number in three significant digits, without an exponent."""
    digits = max(0, 2 - math.floor(math.log10(abs(value))))
    return f"{value:,.{digits}f}"


def _percent(share: float, *, up: bool = False) -> str:
    """Return a share in two significant digits of a percent, rounded up if it is a bound."""
    percent = 100 * share
    digits = max(0, 1 - math.floor(math.log10(percent)))
    factor = 10**digits
    return f"{math.ceil(percent * factor) / factor if up else percent:,.{digits}f}\N{NO-BREAK SPACE}%"


def _rounded_up(households: float) -> int:
    """Return a number of households in two significant digits, rounded up."""
    unit = 10 ** max(0, math.floor(math.log10(households)) - 1)
    return int(math.ceil(households / unit) * unit)
