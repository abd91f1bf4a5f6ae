"""The chains of a demonstration in words and table cells, the same in the terminal and on the page."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from agedp.demo.demo_run_files import AGES_DAYS
from agedp.demo.mixing_table import Mixing, RowCounts
from agedp_data.markov.mixing import MIXING_NAMES

AGE_COLUMNS = ("chains", *(f"{age} day{'s' * (age > 1)}" for age in AGES_DAYS))
_NEVER = ("-",) * len(AGES_DAYS)


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
    name = MIXING_NAMES["spectral_gap"].capitalize()
    return (
        f"{name} per half-hour: estimated median {np.median(mixing.gaps):.3f}, smallest {mixing.gaps.min():.3f}; "
        f"exact {exact}."
    )


def mixing_rows(mixing: Mixing) -> list[tuple[str, ...]]:
    """Return the table by age: each measure of the exact and of the estimated chains, over households."""
    rows: list[tuple[str, ...]] = []
    largest = f"exact chains, largest ({mixing.slowest.name} chain)"
    for name in ("total_variation", "spectral", "reversibilised"):
        measure, curves = MIXING_NAMES[name], mixing.estimated[name]
        applies = name != "spectral"
        rows.append((measure, "exact chains, median household", *_values(mixing.exact_median(name))))
        if applies:
            rows.append((measure, "estimated chains, median household", *_values(np.median(curves, axis=0))))
        rows.append((measure, largest, *_values(mixing.slowest.curves[name])))
        if applies:
            rows.append((measure, "estimated chains, largest", *_values(curves.max(axis=0))))
        else:
            rows.append((measure, "estimated chains: not applicable", *_NEVER))
    return rows


def not_applicable(mixing: Mixing) -> str:
    """Return why the bound for reversible chains has no values for estimated chains."""
    name = MIXING_NAMES["spectral"].capitalize()
    return (
        f"{name}: not applicable to estimated chains; {mixing.not_reversible:,} of {mixing.households:,} are not "
        "reversible, because counts are never exactly symmetric."
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
    return (f"{value:.4f}" for value in curve)
