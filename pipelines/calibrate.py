"""Readings -> MODEL, rarely and by hand: read, quantize, estimate, ask whether the chain is true, bound."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from agedp_data.config.model import Estimated
from agedp_data.errors import InputError, RunFileError
from agedp_data.notions.parameters import watt_hours
from agedp_data.roster import read_roster
from pipelines import folders, locks
from pipelines.blocks import SILENT, Engine, Told
from pipelines.bound import Calibration, bound, require_new
from pipelines.estimate import Transitions, estimate
from pipelines.models.envelopes import phases_of, read_every
from pipelines.models.forgetting import asked_of, remember
from pipelines.models.longer_memory import estimate_longer
from pipelines.models.room import require_room
from pipelines.quantize import Floats, Period, quantize
from pipelines.read import read
from pipelines.work import checked, engine_of, store_of


def calibrate(run_file: str | Path, *, scheduler: str | None = None, told: Told = SILENT) -> Calibration:
    """Estimate the model of a run file from its input files and write its folder.

    Raises:
        RunFileError: the run file declares its model, has none, or names a folder that holds one.
        InputError: an input file that cannot be understood.
    """
    run = checked(run_file)
    model = run.model
    if not isinstance(model, Estimated):
        raise RunFileError('agedp calibrate makes a model of [model] source = "estimated"; the run file has none')
    require_new(model)
    engine = engine_of(run, scheduler, told)
    roster = read_roster(run.population.roster)
    require_room(model, len(roster.ids))
    store = store_of(run)
    if f"{model.period[0]:%Y-%m}" < store.forgotten_before():
        raise InputError(
            f"[model] period begins in {model.period[0]:%Y-%m}, but readings before {store.forgotten_before()} were "
            "let go (engine.keep_days); name another confidential folder to read them again"
        )
    kind = model.edges if isinstance(model.edges, str) else [watt_hours(edge) for edge in model.edges]
    with locks.alone(folders.make_private(store.folder)):
        delivery = read(store, run.input.files, engine=engine, but=[run.population.roster])
        period = Period(store, delivery, roster, *model.period)
        steps = replace(period, step=model.step)
        edges = quantize(steps, edges=kind, n_states=model.states, engine=engine)
        transitions = _counted(steps, np.asarray(edges), model, engine)
        memory = remember(period, asked_of(run, model), folder=Path(run.output.confidential), engine=engine)
    return replace(bound(transitions, edges, roster, model), memory=memory)


def _counted(steps: Period, edges: Floats, model: Estimated, engine: Engine) -> Transitions:
    if model.memory != "one":
        return estimate_longer(steps, edges, n_states=model.states, memory=model.memory, engine=engine)
    n_phases, every = phases_of(model), read_every(model)
    return estimate(steps, edges, n_states=model.states, engine=engine, n_phases=n_phases, every=every)
