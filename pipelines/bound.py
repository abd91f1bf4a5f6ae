"""TRANSITIONS -> MODEL: exact curves, bounds and the envelope, frozen in a folder of its own.

    <model folder>/public.json           the public part: settings and envelope; its hash names the model
    <model folder>/households.parquet    confidential: readings, gaps, rarest state, spectral gap, exact Delta(t)
    <model folder>/edges.parquet         confidential: the states of each household
    <model folder>/transitions.parquet   confidential: counts

The reversed chain is estimated from the reversed counts. A household with a state that has fewer than
`min_visits` transitions into or out of it, with no transition at all, seen in one state only (nothing is known of
how it would forget another), or whose chain falls apart, counts as never forgotten: L(a) = a, total variation 1.
One of those decides the envelope; how many there are is confidential.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from agedp_data.chains.envelope import LOSS_GRID
from agedp_data.chains.spectrum import reversibilised_bound, spectral_bound, spectral_gap, total_variation
from agedp_data.chains.tabulation import tabulate
from agedp_data.chains.transitions import stationary, transition_matrix
from agedp_data.config.model import Estimated
from agedp_data.errors import ChainError, RunFileError
from agedp_data.model import PUBLIC, Model, facts_of, public_text
from agedp_data.readers.layout import SLOTS, Flags, Ints
from agedp_data.roster import Roster
from pipelines import folders
from pipelines.estimate import Transitions
from pipelines.quantize import Floats

_EPOCH = date(1970, 1, 1)


@dataclass(frozen=True, slots=True)
class Calibration:
    """What a calibration rests on (confidential counts) and the model that it made.

    `curves` per household (h): "total_variation", "reversibilised", "spectral" (h, T) at `ages_days` (T,), and
    "spectral_gap" (h,); "spectral" is NaN where the paper's bound does not apply.
    """

    model: Model
    households: int
    remembered: int
    without_readings: int
    readings: int
    gaps: int
    ages_days: tuple[int, ...]
    curves: Mapping[str, Floats]


def bound(transitions: Transitions, edges: Floats, roster: Roster, model: Estimated) -> Calibration:
    """Write the model's folder.

    Raises:
        RunFileError: the folder holds a model already; a model is never estimated anew in place.
        ChainError: no household to estimate from.
    """
    folder = Path(model.file)
    if (folder / PUBLIC).exists():
        raise RunFileError(
            "[model] file: a model is there already and is never estimated anew; name another file",
            private=f"[model] file = {folder}: a model is there already and is never estimated anew; name another file",
        )
    expected = _on_roster(roster, model)
    included = np.flatnonzero((transitions.readings > 0) | expected)
    if len(included) == 0:
        raise ChainError("no household of the roster has readings in [model] period; a model needs some")
    counts = transitions.counts[included]
    forgets = forgetting_households(counts, min_visits=model.min_visits)
    backward = transition_matrix(np.swapaxes(counts, 1, 2), smoothing=0)
    ages = np.array(model.ages_days) * SLOTS
    envelope = tabulate(backward, ages, LOSS_GRID, forgets=forgets, steps_per_day=SLOTS)
    made = Model(public_text(facts_of(model), envelope), envelope)
    curves = _curves(counts, forgets, ages)
    _write_counts(folder, roster, included, transitions, edges)
    _write_households(folder, roster, included, transitions, {"forgets": forgets} | curves, model.ages_days)
    folders.write(folder / PUBLIC, made.text.encode())
    without = int((transitions.readings[included] == 0).sum())
    return Calibration(
        made,
        len(included),
        int((~forgets).sum()),
        without,
        int(transitions.readings[included].sum()),
        int(transitions.gaps[included].sum()),
        model.ages_days,
        curves,
    )


def _on_roster(roster: Roster, model: Estimated) -> Flags:
    """Return which households are on the roster on some day of the model's period."""
    first, last = ((day - _EPOCH).days for day in model.period)
    mark = np.zeros(len(roster.ids), bool)
    mark[roster.household[(roster.first <= last) & (roster.last >= first)]] = True
    return mark


def forgetting_households(counts: Ints, *, min_visits: int) -> Flags:
    """Return which chains (h, k, k) have a reliable row for each of two or more states and hang together."""
    into, out = counts.sum(axis=1), counts.sum(axis=2)
    visited = (into > 0) | (out > 0)
    reliable = ((np.minimum(into, out) >= min_visits) | ~visited).all(axis=1) & (visited.sum(axis=1) >= 2)
    for i in np.flatnonzero(reliable):
        reliable[i] = _hangs_together(counts[i])
    return np.asarray(reliable, bool)


def _hangs_together(counts: Ints) -> bool:
    try:
        law = stationary(transition_matrix(counts, smoothing=0))
    except ChainError:
        return False
    return bool((law[counts.sum(axis=1) > 0] > 0).all())


def _curves(counts: Ints, forgets: Flags, ages: Ints) -> dict[str, Floats]:
    """Return per household Delta(t) (h, T) exactly, by the bound for all chains, by the paper's, and the gap (h,)."""
    size = (len(counts), len(ages))
    found: dict[str, Floats] = {name: np.ones(size) for name in ("total_variation", "reversibilised", "spectral")}
    found |= {"spectral_gap": np.zeros(len(counts))}
    for i in np.flatnonzero(forgets):
        chain = transition_matrix(counts[i], smoothing=0)
        found["total_variation"][i] = total_variation(chain, ages)
        found["reversibilised"][i] = reversibilised_bound(chain, ages)
        found["spectral_gap"][i] = spectral_gap(chain)
        try:
            found["spectral"][i] = spectral_bound(chain, ages)
        except ChainError:  # not reversible: the paper's bound does not apply, which is what NaN says
            found["spectral"][i] = np.nan
    return found


def _write_households(
    folder: Path,
    roster: Roster,
    included: Ints,
    transitions: Transitions,
    curves: Mapping[str, Any],
    ages_days: Sequence[int],
) -> None:
    counts = transitions.counts[included]
    visits = np.maximum(counts.sum(axis=1), counts.sum(axis=2))
    rarest = np.where(visits > 0, visits, np.iinfo(np.int64).max).min(axis=1)
    columns = {
        "household_id": [roster.ids[i] for i in included],
        "readings": transitions.readings[included],
        "gaps": transitions.gaps[included],
        "states_visited": (visits > 0).sum(axis=1),
        "rarest_state_visits": np.where((visits > 0).any(axis=1), rarest, 0),
        "forgets": curves["forgets"],
        "spectral_gap": curves["spectral_gap"],
    }
    for name in ("total_variation", "reversibilised", "spectral"):
        columns |= {f"{name}_{age}_days": curves[name][:, i] for i, age in enumerate(ages_days)}
    table = pa.table({name: pa.array(values) for name, values in columns.items()})
    folders.write_table(folder / "households.parquet", table)


def _write_counts(folder: Path, roster: Roster, included: Ints, transitions: Transitions, edges: Floats) -> None:
    folders.make_private(folder)
    ids = pa.array([roster.ids[i] for i in included], pa.string())
    counts = transitions.counts[included]
    k = counts.shape[1]
    cuts = {f"edge_{i + 1}_wh": pa.array(edges[included, i]) for i in range(k - 1)}
    folders.write_table(folder / "edges.parquet", pa.table({"household_id": ids, **cuts}))
    cells = {f"from_{i}_to_{j}": pa.array(counts[:, i, j]) for i in range(k) for j in range(k)}
    folders.write_table(folder / "transitions.parquet", pa.table({"household_id": ids, **cells}))
