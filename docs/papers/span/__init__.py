"""Accounting over spans of days, recomputed: `python -m docs.papers.span` writes the page docs/spans.md."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from agedp_data.accounting.renyi import tight_epsilon
from docs.papers.span import levels
from docs.papers.span.spans import (
    BILLIONTH,
    CLAMP_KWH,
    HOUSEHOLDS,
    MILLIONTH,
    YEAR,
    any_mechanism_epsilon,
    day_loss,
    exact_gaussian_noise,
    gaussian_noise,
    histogram_epsilon,
    laplace_noise,
    span_epsilon,
)

_YEARS = (1.0, 3.0, 10.0, 36.5)

_INTRODUCTION = f"""# Spans of days, recomputed

A *span* is a set of days, such as a year. Two datasets are neighbours here if they differ in anything that one
household did on the days of the span. These tables show the bound of many releases about a span, and what a promise
about a span grants to a day. They are behind the question ["one year or one day?"](choose.md#5-one-year-or-one-day).

| accountant | epsilon of releases with losses e_k | used for |
| --- | --- | --- |
| pure sum | sum of e_k | every promise without a delta |
| curve | Rényi curves of discrete Laplace noise, added and converted at delta | promises and statements with a delta |
| privacy-loss distribution | convolution of the losses, rounded up | `agedp plan`, for information |
| any mechanism | binomial of randomised responses | comparison: no mechanism is worse |

Noise is the standard deviation of a published mean, in kWh per household, for {HOUSEHOLDS:,} households and a clamp of
{CLAMP_KWH} kWh. Delta is 1e-6 where no other is given. Equations and proofs are in
[the mathematics](mathematics.md#spans-of-days). A command writes this page:

    python -m docs.papers.span"""

_ACCOUNTS = """## What a series of equal days has spent

"Pure" is the sum of the losses. The two columns of the curve are those of a statement. "Any mechanism" is the exact
epsilon of the worst mechanisms with these losses, a binomial of randomised responses (Kairouz, Oh, Viswanath 2015)."""

_LITERATURE = """## Literature

* The conversion and the discrete Gaussian: Canonne, Kamath, Steinke, [The Discrete Gaussian for Differential
  Privacy](https://doi.org/10.48550/arXiv.2004.00010), 2020.
* The curve: Mironov, [Rényi Differential Privacy](https://doi.org/10.1109/CSF.2017.11), 2017.
* Any mechanism: Kairouz, Oh, Viswanath, [The Composition Theorem for Differential
  Privacy](https://doi.org/10.48550/arXiv.1311.0776), 2015.
* The privacy-loss distribution: Koskela, Jälkö, Honkela, [Computing Tight Differential Privacy Guarantees Using
  FFT](https://doi.org/10.48550/arXiv.1906.03049), 2020.
* Ageing of a profile: Balle, Barthe, Gaboardi, [Privacy Amplification by
  Subsampling](https://doi.org/10.48550/arXiv.1807.01647), 2018."""


def page() -> str:
    """Return the page as Markdown."""
    parts = [
        _INTRODUCTION,
        _ACCOUNTS,
        _table(("epsilon a day", "days", "pure", "curve, 1e-6", "curve, 1e-9", "any mechanism, 1e-6"), _accounts()),
        _between_the_figures(),
        "## What a promise about a year grants to a day\n\n" + choice_table(),
        "By the length of the span. A span of seven days grants a day what the sum grants it.",
        _table(("days", "epsilon of the span", "a day by the sum", "a day by the span", "ratio"), _windows()),
        *_mechanisms(),
        *_levels(),
        _LITERATURE,
    ]
    return "\n\n".join(parts) + "\n"


def choice_table() -> str:
    """Return the table of the question "one year or one day?": losses of a day, and noise, for promises of a year."""
    header = (
        "epsilon of a year", "a day by the sum", "a day by the span", "and at delta 1e-9", "noise by the sum",
        "noise by the span", "noise falls by",
    )  # fmt: skip
    return _table(header, _choices())


def _choices() -> Iterable[tuple[str, ...]]:
    for epsilon in _YEARS:
        by_sum, by_span = epsilon / YEAR, day_loss(YEAR, epsilon, MILLIONTH)
        losses = [_three(loss) for loss in (by_sum, by_span, day_loss(YEAR, epsilon, BILLIONTH))]
        noises = [_three(laplace_noise(loss)) for loss in (by_sum, by_span)]
        yield (f"{epsilon:g}", *losses, *noises, f"{by_span / by_sum:.1f}")


def _accounts() -> Iterable[tuple[str, ...]]:
    spans = [(loss, YEAR) for loss in (0.01, 0.02, 0.05, 0.1, 0.2, 0.5)] + [(0.1, 5 * YEAR + 1), (0.5, 60)]
    for loss, days in spans:
        figures = (loss * days, *(span_epsilon(loss, days, delta) for delta in (MILLIONTH, BILLIONTH)))
        largest = any_mechanism_epsilon(loss, days, MILLIONTH)
        yield (f"{loss:g}", f"{days:,}", *(f"{figure:.2f}" for figure in (*figures, largest)))


def _between_the_figures() -> str:
    exact, curve = (
        tight_epsilon([(CLAMP_KWH * 1000, CLAMP_KWH * 10_000.0, YEAR)], 1e-6),
        span_epsilon(0.1, YEAR, MILLIONTH),
    )
    histogram = histogram_epsilon(0.1, YEAR, MILLIONTH)
    return (
        f"For a year of 0.1 a day the privacy-loss distribution gives {exact:.2f}; the curve is "
        f"{curve / exact - 1:.0%} above it.\nA year of histograms of 0.1 a day has {histogram:.2f}, because a "
        "household moves two counts by one each."
    )


def _windows() -> Iterable[tuple[str, ...]]:
    for days in (7, 14, 30, 90, YEAR):
        for epsilon in (1.0, 3.0):
            by_sum, by_span = epsilon / days, max(epsilon / days, day_loss(days, epsilon, MILLIONTH))
            yield str(days), f"{epsilon:g}", _three(by_sum), _three(by_span), f"{by_span / by_sum:.2f}"


def _mechanisms() -> tuple[str, str, str]:
    header = ("days", "epsilon", "Laplace, sum", "Laplace, curve", "Gaussian, zCDP", "Gaussian, exact", "curve / zCDP")
    settings = [(1, 1.0), (7, 1.0), (30, 1.0), (30, 10.0), *((YEAR, epsilon) for epsilon in _YEARS)]
    rows = []
    for days, epsilon in settings:
        by_sum, by_span = epsilon / days, max(epsilon / days, day_loss(days, epsilon, MILLIONTH))
        noises = [laplace_noise(by_sum), laplace_noise(by_span), gaussian_noise(days, epsilon, MILLIONTH)]
        exact = exact_gaussian_noise(days, epsilon, MILLIONTH)
        rows.append((str(days), f"{epsilon:g}", *map(_three, (*noises, exact)), f"{noises[1] / noises[2]:.2f}"))
    return (
        "## Noise of a day, by mechanism",
        "The discrete Laplace mechanism gives a pure bound of each day, which the Gaussian mechanism does not. It has "
        "the least\nnoise over a day and a week. Over a year the Gaussian mechanism has 25 to 29 % less noise.",
        _table(header, rows),
    )


def _levels() -> tuple[str, ...]:
    day = gaussian_noise(levels.DAYS, 10.0, MILLIONTH)
    alone = [day * levels.bound(block) for block in levels.BLOCKS]
    shares = ({1: 1.0}, {1: 0.7, 7: 0.1, 28: 0.1, 364: 0.1})
    on_days, divided = ([day * levels.noise(each, block) for block in levels.BLOCKS] for each in shares)
    names = ("least possible, each level alone", "days only", "0.7 on days, 0.1 on each other level")
    pure_day = laplace_noise(10.0 / levels.DAYS)
    pure_days = [pure_day * levels.bound(block) for block in levels.BLOCKS]
    pure_alone = [pure_day / block for block in levels.BLOCKS]
    header = ("noise is added to", "a day", "a week", "4 weeks", "52 weeks")
    groups = [(str(count), *map(_two, (*levels.total_beside_groups(count, 0.2), count**0.5))) for count in (4, 10, 33)]
    return (
        "## Day, week, month and year at once",
        "Noise of the mean over a block of days, for 52 weeks of (10, 1e-6), by the Gaussian mechanism. By the\n"
        "[theorem](mathematics.md#spans-of-days) no division of the loss over days, weeks and months is better than "
        "noise on days\nalone.",
        _table(header, _named_rows(names, (alone, on_days, divided))),
        "By the sum of pure losses this is false. Of 52 weeks of pure 10, a week and a year have more noise than each"
        " needs alone:",
        _table(header, _named_rows(("days only", "each level alone"), (pure_days, pure_alone))),
        "A total beside groups is the one addition that pays, because no household is in two groups. A fifth of the "
        "loss is for\nthe total. Both figures are by least squares, as multiples of the noise of a group with the "
        "whole loss:",
        _table(("groups", "noise of a group", "noise of the total", "the total as the sum of the groups"), groups),
    )


def _named_rows(names: Iterable[str], values: Iterable[Iterable[float]]) -> list[tuple[str, ...]]:
    return [(name, *map(_three, row)) for name, row in zip(names, values, strict=True)]


def _table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def _three(value: float) -> str:
    """Return three significant digits, without an exponent."""
    return f"{value:#.3g}".rstrip(".")


def _two(value: float) -> str:
    return f"{value:.2f}"
