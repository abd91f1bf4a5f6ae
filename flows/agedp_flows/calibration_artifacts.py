"""What a calibration leaves in Prefect: the public part of the model as a table. Nothing else of it is public."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from prefect.artifacts import create_table_artifact

from agedp_data.markov.mixing import MIXING_NAMES
from agedp_data.model import Model
from agedp_flows.artifacts import artifact_key, record

LOSS = 0.5
"""The epsilon whose aged values the table shows."""

_DESCRIPTION = "Bounds on mixing by age: maximum over all households, rounded up (the public part of the model)"


def record_bounds(population: str, model: Model, ages_days: Sequence[int]) -> None:
    """Record the bounds of a model by age, a line for each age."""
    key = artifact_key("spectral-bounds", population)
    description = f"{_DESCRIPTION}; model {model.id[:16]}"
    record(lambda: create_table_artifact(bounds_table(model, ages_days), key=key, description=description))


def bounds_table(model: Model, ages_days: Sequence[int]) -> list[dict[str, Any]]:
    """Return total variation, its bounds, and the aged value of epsilon 0.5, by age.

    The bound for reversible chains is "not applicable" where a chain is not reversible. Models that are cyclic or
    carry a sampling bound have no spectral bounds at all; their total variation is named after its confidence.
    """
    leakage_bound, lines = model.leakage_bound, []
    for days in ages_days:
        steps = days * leakage_bound.steps_per_day
        at = leakage_bound.ages.tolist().index(steps)
        bounds = {
            title: f"{leakage_bound.bounds[name][at]:.4f}" if name in leakage_bound.bounds else "not applicable"
            for name, title in _columns(model).items()
        }
        method = "tight" if "tight" in leakage_bound.methods else "total_variation"
        aged = float(leakage_bound(steps, LOSS, direction="backward", method=method))
        lines.append({"age (days)": days, **bounds, f"epsilon {LOSS} at this age": f"{aged:.4f}"})
    return lines


def _columns(model: Model) -> dict[str, str]:
    names = {"total_variation": MIXING_NAMES["total_variation"]}
    if model.public["confidence"] == "sampling-bound":
        names["total_variation"] += f" (sampling bound, level {model.public['level']})"
    spectral = ("spectral", "reversibilised") if "reversibilised" in model.leakage_bound.bounds else ()
    return names | {name: MIXING_NAMES[name] for name in spectral}
