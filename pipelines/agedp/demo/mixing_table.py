"""Mixing of the estimated chains of a demonstration, and of the exact chains that the readings are drawn from.

First the values, then their words and table cells, which are the same in the terminal and on the page.

Reads what a calibration left in the model's folder (confidential for real households; public here, since no household
exists) and `chains.json`. Every value of one household's chain is that of the calibration itself.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from agedp.demo.demo_folder import AGES_DAYS, CHAINS, NOTIONS
from agedp.reports.axes import format_number
from agedp_data.datasets.synthetic.households import STATES, Floats
from agedp_data.datasets.validation import SLOTS, RejectionReason
from agedp_data.leakage.function import leakage
from agedp_data.markov.mixing import (
    MIXING_NAMES,
    reversibilised_bound,
    spectral_bound,
    spectral_gap,
    total_variation,
    total_variation_forward,
)
from agedp_data.markov.reversible import reversible_fit_bound
from agedp_data.markov.transitions import power, transition_matrix
from agedp_data.messages import sentence_start
from agedp_data.model import PUBLIC_FILE, Model

_CURVE_STEPS = tuple(range(0, SLOTS * max(AGES_DAYS) + 1, 4))
_EXACT = {"total_variation": total_variation, "spectral": spectral_bound, "reversibilised": reversibilised_bound}


@dataclass(frozen=True, slots=True)
class RowCounts:
    """Rows of the input files: rows read = rows kept + rows rejected, which `rows_rejected` counts by reason."""

    rows_read: int
    rows_kept: int
    rows_rejected: Mapping[str, int]


@dataclass(frozen=True, slots=True, eq=False)
class ExactChain:
    """One kind of chain that households are drawn from; `curves` by measure at the ages of the table [-].

    `households` is how many households follow it.
    """

    name: str
    households: int
    matrix: Floats
    gap: float
    curves: Mapping[str, Floats]


@dataclass(frozen=True, slots=True, eq=False)
class Mixing:
    """The chains of one dataset: estimated (one per household) and exact (one per kind, the slowest first).

    `states` is the smallest number of states that a household visits, `rarest_visits` the smallest number of visits of
    any state of any household. `gaps` (h,) and `estimated` by measure (h, ages) are those of the calibration.
    `example` is one household's estimated matrix (12, 12). `curve_days` and `curves` (by measure, for the slowest kind
    and for estimated chains) are for a picture. `covers_exact`: the model's leakage bound, which sets the noise, is
    nowhere below that of the exact chains.
    """

    dataset: str
    rows: RowCounts
    states: int
    rarest_visits: int
    transitions: int
    exact: Sequence[ExactChain]
    gaps: Floats
    estimated: Mapping[str, Floats]
    not_reversible: int
    example_id: str
    example_kind: str
    example: Floats
    curve_days: Sequence[float]
    curves: Mapping[str, Floats]
    covers_exact: bool

    @property
    def kernels(self) -> Floats:
        """Return the exact transition matrices (kinds, 12, 12)."""
        return np.stack([chain.matrix for chain in self.exact])

    @property
    def households(self) -> int:
        """Return the number of households."""
        return len(self.gaps)

    def exact_median(self, measure: str) -> Floats:
        """Return the median over households of a measure of the exact chains, shape (ages,) [-].

        A kind of chain counts as often as households follow it. `measure` is a key of `ExactChain.curves`.
        """
        followers = [chain.households for chain in self.exact]
        curves = np.repeat([chain.curves[measure] for chain in self.exact], followers, axis=0)
        return np.asarray(np.median(curves, axis=0))

    @property
    def slowest(self) -> ExactChain:
        """Return the kind of chain that mixes most slowly."""
        return min(self.exact, key=lambda chain: chain.gap)


def read_mixing(folder: Path) -> Mixing:
    """Return the chains of a dataset's folder, once its model is estimated.

    Args:
        folder: the folder of the dataset, with `chains.json`, `model/` and the first notion's confidential folder.
    """
    chains = json.loads((folder / CHAINS).read_text(encoding="utf-8"))
    kinds = [household["kind"] for household in chains["households"]]
    exact = [_exact_chain(kind, kinds.count(kind["name"])) for kind in chains["kinds"]]
    columns = pq.read_table(folder / "model" / "households.parquet").to_pydict()
    measures = {
        name: np.array([columns[f"{name}_{age}_days"] for age in AGES_DAYS], np.float64).T
        for name in ("total_variation", "reversibilised")
    }
    ids, counts = _transition_counts(folder)
    measures["reversible_fit"] = reversible_fit_bound(counts, [age * SLOTS for age in AGES_DAYS])
    slowest = min(exact, key=lambda chain: chain.gap)
    example = ids.index(chains["households"][0]["household_id"])
    return Mixing(
        dataset=chains["dataset"],
        rows=_row_counts(folder / NOTIONS[0] / "confidential" / "quality.parquet"),
        states=min(columns["states_visited"]),
        rarest_visits=min(columns["rarest_state_visits"]),
        transitions=int(counts.sum()),
        exact=exact,
        gaps=np.array(columns["spectral_gap"]),
        estimated=measures,
        not_reversible=int(np.isnan(columns[f"spectral_{AGES_DAYS[0]}_days"]).sum()),
        example_id=ids[example],
        example_kind=chains["households"][0]["kind"],
        example=transition_matrix(counts[example], smoothing=0),
        curve_days=[step / SLOTS for step in _CURVE_STEPS],
        curves=_curves(slowest.matrix, transition_matrix(np.swapaxes(counts, 1, 2), smoothing=0)),
        covers_exact=_covers_exact(folder / "model", exact),
    )


def _exact_chain(kind: Mapping[str, Any], households: int) -> ExactChain:
    matrix = np.array(kind["transition_matrix"], np.float64)
    steps = [age * SLOTS for age in AGES_DAYS]
    curves = {name: measure(matrix, steps) for name, measure in _EXACT.items()}
    return ExactChain(kind["name"], households, matrix, float(spectral_gap(matrix)), curves)


def _transition_counts(folder: Path) -> tuple[list[str], np.ndarray[tuple[int, int, int], np.dtype[np.int64]]]:
    table = pq.read_table(folder / "model" / "transitions.parquet")
    cells = [table[f"from_{i}_to_{j}"].to_numpy() for i in range(STATES) for j in range(STATES)]
    counts = np.stack(cells, axis=1).astype(np.int64).reshape(-1, STATES, STATES)
    return table["household_id"].to_pylist(), counts


def _curves(slowest: Floats, backward: Floats) -> dict[str, Floats]:
    """Return the mixing curves: of the slowest kind exactly and by both bounds, and of the estimated reversed chains.

    The latter are the matrices of the reversed counts, as in the calibration.
    """
    distances = total_variation_forward(backward, _CURVE_STEPS)
    exact = {name: measure(slowest, _CURVE_STEPS) for name, measure in _EXACT.items()}
    return {**exact, "estimated_median": np.median(distances, axis=0), "estimated_largest": distances.max(axis=0)}


def _covers_exact(folder: Path, exact: Sequence[ExactChain]) -> bool:
    """Return whether the model's leakage bound is at least that of every exact chain, at each tabulated age and loss.

    The exact chains are symmetric: each equals its reversed chain.
    """
    leakage_bound = Model.from_text((folder / PUBLIC_FILE).read_text(encoding="utf-8")).leakage_bound
    kernels = np.stack([chain.matrix for chain in exact])
    for age in leakage_bound.ages.tolist():
        powers = power(kernels, age)
        for direction in ("backward", "forward"):
            tabulated = leakage_bound(age, leakage_bound.losses, direction=direction, method="tight")
            if (tabulated < leakage(powers[:, None], leakage_bound.losses).max(axis=0)).any():
                return False
    return True


def _row_counts(path: Path) -> RowCounts:
    """Return what became of the input rows, all files together."""
    table = pq.read_table(path, columns=["what", "rows"]).to_pydict()
    counts: dict[str, int] = {}
    for outcome, rows in zip(table["what"], table["rows"], strict=True):
        counts[outcome] = counts.get(outcome, 0) + rows
    rejected = {reason.words: counts[reason.words] for reason in RejectionReason if reason and counts.get(reason.words)}
    return RowCounts(counts["rows read"], counts["kept"], rejected)


AGE_COLUMNS = ("chains", *(f"{age} day{'s' * (age > 1)}" for age in AGES_DAYS))


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
    name = sentence_start(MIXING_NAMES["spectral_gap"])
    return (
        f"{name} per half-hour: estimated median {np.median(mixing.gaps):.3f}, smallest {mixing.gaps.min():.3f}; "
        f"exact {exact}."
    )


def mixing_rows(mixing: Mixing) -> list[tuple[str, ...]]:
    """Return the table by age: each measure of the exact and of the estimated chains, over households."""
    rows: list[tuple[str, ...]] = []
    largest = f"exact chains, largest ({mixing.slowest.name} chain)"
    for name, measure in MIXING_NAMES.items():
        if name in mixing.slowest.curves:
            rows.append((measure, "exact chains, median household", *_values(mixing.exact_median(name))))
        if (curves := mixing.estimated.get(name)) is not None:
            rows.append((measure, "estimated chains, median household", *_values(np.median(curves, axis=0))))
        if name in mixing.slowest.curves:
            rows.append((measure, largest, *_values(mixing.slowest.curves[name])))
        if curves is not None:
            rows.append((measure, "estimated chains, largest", *_values(curves.max(axis=0))))
    return rows


def not_applicable(mixing: Mixing) -> str:
    """Return why the bound for reversible chains is not that of estimated chains, and how many exceed their fit's."""
    name = sentence_start(MIXING_NAMES["spectral"])
    estimated = mixing.estimated
    exceeding = int((estimated["total_variation"] > estimated["reversible_fit"]).any(axis=1).sum())
    return (
        f"{name}: not applicable to estimated chains; {mixing.not_reversible:,} of {mixing.households:,} are not "
        "reversible, because counts are never exactly symmetric. The exact total variation of "
        f"{exceeding:,} households exceeds the bound of their reversible fit at one of these ages or more."
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
    return map(format_number, curve)
