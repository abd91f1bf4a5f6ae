"""TRANSITIONS -> MODEL: exact curves, bounds and the leakage bound, in a folder that is written once.

    <model folder>/public.json           the public part: settings and leakage bound; its hash names the model
    <model folder>/public.sha256         that hash, by which a damaged public part is noticed before a draw
    <model folder>/households.parquet    confidential: readings (days), gaps, rarest state, Delta(t), its bounds
    <model folder>/edges.parquet         confidential: the states of each household
    <model folder>/transitions.parquet   confidential: counts, for a cyclic chain by phase and with the phase's group

The reversed chain is estimated from the reversed counts. A household counts as never mixing, L(a) = a and total
variation 1, if it has a state with fewer than `min_visits` transitions into or out of it, no transition at all, or one
state only (the mixing of another state is unknown), or if its chain is not irreducible. Phases of a cyclic chain are
merged with their neighbours until each state has enough visits, if necessary all of them. One such household
determines the leakage bound; how many there are is confidential.

With publish = "private" the model is a member of a public family of bounds that a private selection chooses
(`member_selection`). Its households are exactly those on the roster in the period, whose number is public.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from agedp.calibration import member_selection
from agedp.calibration.estimate import Transitions
from agedp.calibration.leakage_bounds import bound_population, household_mixing, model_ages
from agedp.calibration.quantize import Floats
from agedp.compute.engine_settings import ONE_THREAD, Engine
from agedp.local_files import atomic_files
from agedp_data.config.model_section import EstimatedModel
from agedp_data.datasets.validation import Flags, Ints
from agedp_data.errors import ChainError, RunFileError
from agedp_data.model import DIGEST_FILE, PUBLIC_FILE, Model, digest_line, model_settings, public_text
from agedp_data.roster import RosterRows, as_strings

if TYPE_CHECKING:
    from agedp.calibration.model_check import MemoryCurves


@dataclass(frozen=True, slots=True)
class Calibration:
    """Result of a calibration (confidential counts) and the model that it made.

    Attributes:
        model: the model.
        households: households included.
        unmixed: households that do not mix reliably; the model then credits no age.
        without_readings: households on the roster without readings.
        readings: readings, or days for a chain of days.
        gaps: gaps in the readings.
        ages_days: ages of the curves [days].
        curves: per household, as in `PopulationBound`.
        memory: empirical memory, if measured.
        selected: the private selection and what it was drawn from, if the model is one.
        draws: its draws in the ledger, if it has one.
        is_stored: whether the model had been made before; nothing but the model is then known.
        tasks: how many tasks of each stage which scheduler ran, as text.
    """

    model: Model
    households: int
    unmixed: int
    without_readings: int
    readings: int
    gaps: int
    ages_days: tuple[int, ...]
    curves: Mapping[str, Floats]
    memory: MemoryCurves | None = None
    selected: member_selection.SelectedMember | None = None
    draws: member_selection.DrawSummary | None = None
    is_stored: bool = False
    tasks: str = ""


@dataclass(frozen=True, slots=True)
class _Estimate:
    """A model with what its folder contains of each household (confidential)."""

    model: Model
    mixes: Flags
    curves: Mapping[str, Floats]
    groups: Ints | None
    selected: member_selection.SelectedMember | None = None


def bound(  # noqa: PLR0913  (what was estimated, of whom, under which terms, and how it runs)
    transitions: Transitions,
    edges: Floats,
    roster: RosterRows,
    model: EstimatedModel,
    *,
    input_terms: Mapping[str, Any] = MappingProxyType({}),
    population: str = "",
    answer: member_selection.Answer = member_selection.draw_anew,
    before_public: Callable[[Calibration], None] = lambda _: None,
    engine: Engine = ONE_THREAD,
) -> Calibration:
    """Compute the leakage bound of the population and write the model's folder.

    Args:
        transitions: of each household of the roster.
        edges: state edges of each household of the roster [Wh].
        roster: the roster.
        model: the model.
        input_terms: the rules for reading the input files, which the question of a private selection names.
        population: name of the population that a privately selected model is about.
        answer: how the question of a private selection is answered once; by default the model alone has the answer.
        before_public: called with the result before the public part is written, which makes it a model.
        engine: runs a task for each block of households.

    Raises:
        RunFileError: the folder contains a model already; a model is never estimated again in place.
        ChainError: no household to estimate from.
    """
    check_model_is_new(model)
    folder = Path(model.file)
    included = np.flatnonzero(
        member_selection.is_on_roster(roster, model.period) | ((transitions.readings > 0) & (not model.is_private))
    )
    if len(included) == 0:
        raise ChainError("no household of the roster has readings in [model] period; a model needs some")
    included_transitions = transitions.select(included)
    if model.is_private:
        mixing = household_mixing(included_transitions, model, model_ages(model), engine=engine)
        chosen, selected = member_selection.select_member(mixing, model, input_terms, answer, population=population)
        result = _Estimate(chosen, mixing.mixes, mixing.curves, mixing.groups, selected)
    else:
        of_all = bound_population(included_transitions, model, engine=engine)  # the maximum, published without noise
        published = Model(public_text(model_settings(model), of_all.leakage_bound), of_all.leakage_bound)
        result = _Estimate(published, of_all.mixes, of_all.curves, of_all.groups)
    ids = as_strings(roster.ids).take(pa.array(included))
    atomic_files.make_private(folder)
    cuts = {f"edge_{i + 1}_wh": pa.array(edges[included, i]) for i in range(edges.shape[1])}
    atomic_files.write_table(folder / "edges.parquet", pa.table({"household_id": ids, **cuts}))
    _write_counts(folder, ids, included_transitions.counts, result.groups)
    _write_households(folder, ids, included_transitions, result, model.ages_days)
    atomic_files.write(folder / DIGEST_FILE, digest_line(result.model.text).encode())
    readings, gaps = included_transitions.readings, included_transitions.gaps
    unmixed, without_readings = int((~result.mixes).sum()), int((readings == 0).sum())
    counts = len(included), unmixed, without_readings, int(readings.sum()), int(gaps.sum())
    calibration = Calibration(result.model, *counts, model.ages_days, result.curves, selected=result.selected)
    before_public(calibration)
    atomic_files.write(folder / PUBLIC_FILE, result.model.text.encode())
    return calibration


def has_model(model: EstimatedModel) -> bool:
    """Return whether the model's folder contains a model; its public part is written last."""
    return (Path(model.file) / PUBLIC_FILE).exists()


def check_model_is_new(model: EstimatedModel) -> None:
    """Check that the model's folder contains no model. Call it before anything is read or written.

    A model is estimated once: a second estimate from the same readings would be a further release about them.

    Raises:
        RunFileError: the folder contains a model.
    """
    if has_model(model):
        problem = "a model exists already and is never estimated anew; name another file"
        raise RunFileError(f"[model] file: {problem}", private=f"[model] file = {model.file}: {problem}")


def _write_households(
    folder: Path, ids: pa.Array, transitions: Transitions, population: _Estimate, ages_days: Sequence[int]
) -> None:
    counts = transitions.counts if population.groups is None else transitions.counts.sum(axis=1)
    visits = np.maximum(counts.sum(axis=1), counts.sum(axis=2))
    rarest_visits = np.where(visits > 0, visits, np.iinfo(np.int64).max).min(axis=1)
    columns = {
        "household_id": ids,
        "readings": transitions.readings,
        "gaps": transitions.gaps,
        "states_visited": (visits > 0).sum(axis=1),
        "rarest_state_visits": np.where((visits > 0).any(axis=1), rarest_visits, 0),
        "forgets": population.mixes,
    }
    if population.groups is not None:
        columns["groups_of_phases"] = population.groups.max(axis=1) + 1
    if population.selected is not None:
        columns["smallest_member"] = population.selected.members
    for name, curve in population.curves.items():
        by_age = {f"{name}_{age}_days": values for age, values in zip(ages_days, np.atleast_2d(curve.T), strict=False)}
        columns |= by_age if curve.ndim > 1 else {name: curve}
    atomic_files.write_table(
        folder / "households.parquet", pa.table({name: pa.array(values) for name, values in columns.items()})
    )


def _write_counts(folder: Path, ids: pa.Array, counts: Ints, groups: Ints | None) -> None:
    """Write a row per household, for a cyclic chain one per household and phase."""
    k = counts.shape[-1]
    columns = {"household_id": ids}
    if groups is not None:
        households, phases = groups.shape
        columns = {
            "household_id": ids.take(pa.array(np.repeat(np.arange(households), phases))),
            "phase": pa.array(np.tile(np.arange(phases, dtype=np.int8), households)),
            "group": pa.array(groups.ravel().astype(np.int8)),
        }
    cells = {f"from_{i}_to_{j}": pa.array(counts[..., i, j].ravel()) for i in range(k) for j in range(k)}
    atomic_files.write_table(folder / "transitions.parquet", pa.table({**columns, **cells}))
