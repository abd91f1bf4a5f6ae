"""Accounting over spans of days, recomputed: `python -m docs.papers.span` writes its tables into docs/notions.md."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from agedp_data.accounting.renyi import tight_epsilon
from docs.papers.span import levels
from docs.papers.span.spans import (
    BILLIONTH,
    CLAMP_KWH,
    MILLIONTH,
    YEAR,
    any_mechanism_epsilon,
    day_loss,
    gaussian_noise,
    histogram_epsilon,
    laplace_noise,
    span_epsilon,
)

BEGIN = "<!-- generated: spans (`python -m docs.papers.span` writes it) -->"
END = "<!-- end of generated part -->"
_YEARS = (1.0, 3.0, 10.0, 36.5)

_INTRODUCTION = """What equal days come to. *Pure* is the sum of the losses, the curve that of a statement, and *any
mechanism* the exact epsilon of the worst mechanisms with these losses, a binomial of randomised responses [KOV]:"""


def section() -> str:
    """Return the generated part of docs/notions.md as Markdown."""
    parts = [
        _INTRODUCTION,
        _table(("epsilon a day", "days", "pure", "curve, 1e-6", "curve, 1e-9", "any mechanism, 1e-6"), _accounts()),
        _between_the_figures(),
        _alternatives(),
    ]
    return "\n\n".join(parts)


def page(text: str) -> str:
    """Return the page of the notions with its generated part renewed.

    Raises:
        LookupError: the page has no generated part.
    """
    before, begin, rest = text.partition(f"{BEGIN}\n")
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise LookupError("docs/notions.md has no generated part about spans")
    return f"{before}{begin}\n{section()}\n\n{end}{after}"


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
    spans = [(loss, YEAR) for loss in (0.01, 0.1, 0.5)] + [(0.1, 5 * YEAR + 1), (0.5, 60)]
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


def _alternatives() -> str:
    """Return what other mechanisms and divisions of the budget would give."""
    saved = [1 - gaussian_noise(YEAR, of, MILLIONTH) / laplace_noise(day_loss(YEAR, of, MILLIONTH)) for of in _YEARS]
    groups = levels.total_beside_groups(10, 0.2)
    return f"""Gaussian noise would be {min(saved):.0%} to {max(saved):.0%} smaller over a year with epsilons
of 1 to 36.5, and larger over a day and a week; it gives no pure bound of a day. No division of such a budget over days,
weeks and months is better than noise on days alone ([theorem](mathematics.md#independent-noise-on-days-is-optimal)). A
total beside groups pays, because no household is in two groups: with a fifth of the loss, beside ten groups, it has
{groups[1]:.2f} times the noise of a group; the sum of the groups has {10**0.5:.2f}."""


def _table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def _three(value: float) -> str:
    """Return three significant digits, without an exponent."""
    return f"{value:#.3g}".rstrip(".")
