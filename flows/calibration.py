"""What `agedp calibrate` prints: what the model rests on and how fast its chains mix. Confidential: terminal only."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np

from agedp_data.chains.envelope import LeakageBound
from agedp_data.chains.spectrum import MIXING_NAMES
from flows.words import shown
from pipelines.bound import Calibration
from pipelines.models.forgetting import MemoryCurves
from pipelines.models.memory import DAY_TOLD, HALF_HOUR_TOLD, HALF_HOURS
from pipelines.reports.forgetting import markov_verdict

_LOSS = 0.5
_WIDTH = 72
_MEDIAN, _MAXIMUM = "median", "maximum over households"


def calibration_lines(found: Calibration) -> list[str]:
    """Return the calibration for people: confidential counts, so neither logged nor stored."""
    step = found.model.public["step"]
    lines = [
        f"Model {found.model.id[:16]}: {found.households:,} households, {_states_text(found)}, "
        f"{found.readings:,} {'days' if step == 'day' else 'readings'}, {found.gaps:,} gaps.",
        *_gap_lines(found, str(step)),
        _header("Mixing by age", found.ages_days),
        *_curve_lines(found),
        _aged_line(found.model.envelope, found.ages_days),
        *_uncertain_lines(found),
    ]
    if found.remembered:
        lines.append(
            f"Not mixing: {found.remembered:,} of {found.households:,} households (a state seen too rarely, or a chain "
            f"that is not irreducible; without readings: {found.without_readings:,}). The model credits no age. "
            "Fewer states, quantile edges, a longer period or a smaller min_visits would help."
        )
    return [
        *lines,
        *_memory_lines(found.memory, cyclic=found.model.public["chain"] == "cyclic"),
        "The model's folder holds confidential figures per household.",
        "A release that uses the model publishes its leakage bound, which comes from readings, without noise.",
        "Real households mix far more slowly than such chains predict: agedp does not vouch for the model.",
    ]


def _states_text(found: Calibration) -> str:
    return f"{found.model.public['states']} states per household"


def _uncertain_lines(found: Calibration) -> list[str]:
    """Return how many of the households that mix are known too little for a sampling bound."""
    bound = found.curves.get("sampling_bound")
    uncertain = 0 if bound is None else int((bound.min(axis=1) >= 1).sum()) - found.remembered
    if not uncertain:
        return []
    clock = ", or a larger min_visits" if found.model.public["chain"] == "cyclic" else ""
    return [
        f"{uncertain:,} households have too few readings for a sampling bound at level {found.model.public['level']}, "
        f"so the model credits no age. A longer period or fewer states would help{clock}."
    ]


def _memory_lines(found: MemoryCurves | None, *, cyclic: bool) -> list[str]:
    """Return the goodness of fit, with medians over the tested households.

    A cyclic chain of half-hours has no matrix powers to compare with: its line counts series simulated from it.
    """
    if found is None:
        return []
    lines = ["", *markov_verdict(found)]
    for name in found.checks:
        simulated = cyclic and name == HALF_HOURS
        lines += [_header(f"Total variation, {name}, {_MEDIAN}", found.ages_days)] + [
            _line(f"  {_SIMULATED if simulated and value == 'powers' else words}", found.median(name, value))
            for words, value in _COMPARED
            if found.checks[name].checked
        ]
    lines += [
        _line(f"Aged epsilon of {found.loss:g}, {name.partition(',')[0]}, {_MEDIAN}", found.median(name, "loss_left"))
        for name in (DAY_TOLD, HALF_HOUR_TOLD)
        if name in found.figures
    ]
    return [*lines, f"Confidential report: {shown(str(found.page))}", ""]


_COMPARED = (
    ("predicted by matrix powers", "powers"),
    ("empirical, from lagged counts", "direct"),
    ("null level, sampling error of a count", "floor"),
)
_SIMULATED = "simulated from the chain"
_CURVES = {**MIXING_NAMES, "sampling_bound": "sampling bound on total variation"}


def _gap_lines(found: Calibration, step: str) -> list[str]:
    """Return the spectral gaps, which only chains with one kernel have."""
    gap = found.curves.get("spectral_gap")
    if gap is None:
        return []
    return [f"Spectral gap (one step = one {step}): median {np.median(gap):.3f}, smallest {gap.min():.3f}."]


def _curve_lines(found: Calibration) -> list[str]:
    lines = []
    for key, name in _CURVES.items():
        curves = found.curves.get(key)
        if curves is None or curves.ndim == 1:
            continue
        if np.isnan(curves).any():
            missing = int(np.isnan(curves).any(axis=1).sum())
            lines.append(f"{name}: not applicable, {missing:,} of {len(curves):,} chains are not reversible")
            continue
        lines.append(_line(f"{name}, {_MEDIAN}", np.median(curves, axis=0)))
        lines.append(_line(f"  {_MAXIMUM}", curves.max(axis=0)))
    return lines


def _aged_line(envelope: LeakageBound, days: Sequence[int]) -> str:
    method = "tight" if envelope.backward is not None else "total_variation"
    ages = [age * envelope.steps_per_day for age in days]
    aged = [float(envelope(age, _LOSS, direction="backward", method=method)) for age in ages]
    return _line(f"aged epsilon of a release with epsilon {_LOSS}, {_MAXIMUM}", aged)


def _header(title: str, days: Sequence[int]) -> str:
    return f"{title:{_WIDTH}s}" + "".join(f"{age:>6d} d " for age in days)


def _line(name: str, values: Iterable[float]) -> str:
    return f"{name:{_WIDTH}s}" + "".join(f"{_four_decimals(value):>8s} " for value in values)


def _four_decimals(value: float) -> str:
    if math.isnan(value):
        return "-"
    return "<0.0001" if 0 < value < 0.0001 else f"{value:.4f}"
