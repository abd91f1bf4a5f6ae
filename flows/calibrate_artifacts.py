"""What a calibration leaves in Prefect: the public part of the model as a table. Nothing else of it is public."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from prefect.artifacts import create_table_artifact

from agedp_data.chains.envelope import Envelope
from agedp_data.chains.spectrum import MIXING_NAMES
from agedp_data.model import Model
from flows.artifacts import artifact_key, record

LOSS = 0.5
"""The epsilon whose aged values the table shows."""

_DESCRIPTION = "Bounds on mixing by age: maximum over all households, rounded up (the public part of the model)"


def record_bounds(population: str, model: Model, ages_days: Sequence[int]) -> None:
    """Record the bounds of a model by age, a line for each age."""
    table = bounds_table(model.envelope, ages_days)
    key = artifact_key("spectral-bounds", population)
    record(lambda: create_table_artifact(table, key=key, description=f"{_DESCRIPTION}; model {model.id[:16]}"))


def bounds_table(envelope: Envelope, ages_days: Sequence[int]) -> list[dict[str, Any]]:
    """Return total variation, its bounds, and the aged value of epsilon 0.5, by age.

    A bound that does not apply to every household's chain is "not applicable".
    """
    lines = []
    for days in ages_days:
        steps = days * envelope.steps_per_day
        at = envelope.ages.tolist().index(steps)
        bounds = {
            title: f"{envelope.bounds[name][at]:.4f}" if name in envelope.bounds else "not applicable"
            for name, title in MIXING_NAMES.items()
            if name != "spectral_gap"
        }
        method = "tight" if "tight" in envelope.methods else "total_variation"
        aged = float(envelope(steps, LOSS, direction="backward", method=method))
        lines.append({"age (days)": days, **bounds, f"epsilon {LOSS} at this age": f"{aged:.4f}"})
    return lines
