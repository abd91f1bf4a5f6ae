"""Memory that the counts of a model take, checked before any reading is read.

A chain is counted for every household of the roster: a table of k x k, for each half-hour of the day if it is cyclic,
and for each subsampled series of a sampling bound. In memory at once: the counts, those of the households with
readings, and for a homogeneous chain both directions as probabilities.
"""

from __future__ import annotations

import math
import os
from typing import Final

from agedp.calibration.leakage_bounds import phase_count, subsampling_steps
from agedp_data.config.model_section import EstimatedModel
from agedp_data.errors import RunFileError

_BYTES: Final = {"cyclic": 2 * 4, "homogeneous": 4 * 8}
"""Bytes of one count and the arrays derived from it, by the kind of chain."""


def counts_bytes(model: EstimatedModel, households: int) -> int:
    """Return the bytes that the counts of this many households take at their largest."""
    phases = phase_count(model)
    tables = sum(max(phases // steps, 1) for steps in (1, *subsampling_steps(model)))
    return households * tables * model.chain_states**2 * _BYTES[model.chain]


def check_counts_fit(model: EstimatedModel, households: int) -> None:
    """Check that the counts of a model fit into the memory of this machine, before any reading is read.

    Raises:
        RunFileError: they do not; the message names a number of states that fits.
    """
    needed, available = counts_bytes(model, households), _memory()
    if needed <= available:
        return
    fitting = max(2, math.isqrt(available * model.chain_states**2 // needed) * model.states // model.chain_states)
    scope = " for each half-hour of the day" if model.chain == "cyclic" else ""
    raise RunFileError(
        f"[model] states = {model.states}: counting the transitions between them{scope} takes {_gib(needed)} of memory "
        f"for the households of this roster, and this machine has {_gib(available)}. Take about {fitting} states, or "
        "fewer households"
    )


def _memory() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _gib(size: int) -> str:
    return f"{size / 2**30:,.1f} GiB"
