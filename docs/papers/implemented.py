"""What the project implements of each paper, and where it differs: the beginning of each part of papers.md."""

from __future__ import annotations

from typing import Final

_Rows = tuple[tuple[str, str, str], ...]

_AGE: _Rows = (
    ("Definitions 4, 10", "notion `age-dependent`", "unit: one household-day; ages count from the end of the day"),
    ("Definition 7, eq. 12", "`markov.mixing.total_variation`", "always of the reversed chain"),
    ("Theorem 1, eq. 14", "`accounting.ageing.risk`, `total_variation`", "method `tight` is exact and smaller"),
    ("Theorem 3, eq. 25", "`accounting.ageing.compose`", "inputs sorted by time, any overlap of ages"),
    ("Proposition 3, eq. 30", "`accounting.ageing.peak`", "supremum of the tight recursion; eq. 30 is a method"),
    ("Algorithms 1, 2", "`accounting.ageing.plan_ageing`", "exact search over whole steps"),
    ("eq. 55", "`markov.mixing.spectral_bound`", "reversible chains only; `reversibilised_bound` for every chain"),
)
_TEMPORAL: _Rows = (
    ("Definitions 5 to 8, eq. 11", "`accounting.temporal_leakage.temporal`", "upper bound; both kernels of one chain"),
    ("Algorithms 1 to 5, eq. 24", "`leakage.function.leakage`", "one sort for each pair of rows, no overflow"),
    ("Theorem 11, Algorithm 6", "`leakage.function.supremum`", "all pairs and prefixes, strict case, stable root"),
    ("Algorithms 7, 8", "`temporal_allocation.allocate`", "even shares and a local optimum beside them"),
    ("one kernel for each step", "`accounting.temporal_recursion`", "days of 48 half-hours, with two kernels"),
)
_DISCOUNTED: _Rows = (
    ("Definitions 9, 10, 13, 14", "notion `discounted`", '"for every t" is part of the definition'),
    ("Corollary 12", "`schedule`, method `paper`", "`renewal` and `optimal` have less noise"),
    ("Corollary 16", "`schedule`, method `paper`", "certified constant; the printed one is refused where too small"),
    ("time of the experiment", "`clock`", "`data-day` or `publication-day`, named in the statement"),
)
_NEIGHBOURHOOD: _Rows = (
    ("δ-neighbours", "`delta_neighbourhood.distance`", "one household's day moves by at most δ"),
    ("shifted histograms", "`series.sensitivity.shifted_histograms`", "releases take cumulative counts: less noise"),
    ("dynamic datasets, offline", '`window_budgets`, `spend = "offline"`', "least mean noise, a convex programme"),
    ("2δ costs 2ε", "notion `neighbourhood`", "exact for Laplace noise on a sum; the full-range loss is capped too"),
)
_PAPERS: Final = {
    "age": ("A", "age-dependent", _AGE),
    "temporal": ("T", "temporal", _TEMPORAL),
    "discounted": ("F", "discounted", _DISCOUNTED),
    "neighbourhood": ("D", "neighbourhood", _NEIGHBOURHOOD),
}
"""Letter of each paper in the glossary, its notion, and what is implemented."""


def implemented(name: str) -> str:
    """Return the letter of a paper and what is implemented of it as Markdown.

    >>> implemented("age").splitlines()[2]
    '* Definitions 4, 10: notion `age-dependent`; unit: one household-day; ages count from the end of the day'
    """
    letter, notion, rows = _PAPERS[name]
    reference = f"Paper [{letter}](glossary.md#papers), notion [`{notion}`](notions.md#{notion})."
    return "\n".join([reference, "", *(f"* {place}: {here}; {difference}" for place, here, difference in rows)])
