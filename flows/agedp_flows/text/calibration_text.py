"""Output of `agedp calibrate`: the data of the model and how fast its chains mix. Confidential: terminal only."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np

from agedp.calibration.bound import Calibration
from agedp.calibration.household_memory import DAY_GIVEN_CALENDAR, HALF_HOUR_GIVEN_CALENDAR, HALF_HOURS
from agedp.calibration.model_check import MemoryCurves
from agedp.reports.model_check_report import markov_verdict
from agedp_data.leakage.bound_table import LeakageBound
from agedp_data.markov.mixing import MIXING_NAMES
from agedp_flows.text.run_text import format_path

_LOSS = 0.5
_WIDTH = 72
_MEDIAN, _MAXIMUM = "median", "maximum over households"


def calibration_lines(calibration: Calibration) -> list[str]:
    """Return the calibration as lines for the terminal: confidential counts, so neither logged nor stored."""
    step, states = calibration.model.public["step"], calibration.model.public["states"]
    unit = "days" if step == "day" else "readings"
    lines = [
        f"Model {calibration.model.id[:16]}: {calibration.households:,} households, {states} states per household, "
        f"{calibration.readings:,} {unit}, {calibration.gaps:,} gaps.",
        *_gap_lines(calibration, str(step)),
        _header("Mixing by age", calibration.ages_days),
        *_curve_lines(calibration),
        _aged_line(calibration.model.leakage_bound, calibration.ages_days),
        *_sampling_lines(calibration),
    ]
    if calibration.unmixed:
        lines.append(
            f"Not mixing: {calibration.unmixed:,} of {calibration.households:,} households (a state seen too "
            "rarely, or a chain that is not irreducible; without readings: "
            f"{calibration.without_readings:,}). The model credits no age. "
            "Fewer states, quantile edges, a longer period or a smaller min_visits would help."
        )
    return [
        *lines,
        *_memory_lines(calibration.memory, cyclic=calibration.model.public["chain"] == "cyclic"),
        "The model's folder contains confidential numbers per household.",
        "A release that uses the model publishes its leakage bound, which comes from readings, without noise.",
        "Real households mix far more slowly than such chains predict. agedp does not guarantee the model.",
    ]


def _sampling_lines(calibration: Calibration) -> list[str]:
    """Return the number of households that mix but have too few readings for a sampling bound."""
    bound = calibration.curves.get("sampling_bound")
    uncertain = 0 if bound is None else int((bound.min(axis=1) >= 1).sum()) - calibration.unmixed
    if not uncertain:
        return []
    clock = ", or a larger min_visits" if calibration.model.public["chain"] == "cyclic" else ""
    return [
        f"{uncertain:,} households have too few readings for a sampling bound at level "
        f"{calibration.model.public['level']}, "
        f"so the model credits no age. A longer period or fewer states would help{clock}."
    ]


def _memory_lines(memory: MemoryCurves | None, *, cyclic: bool) -> list[str]:
    """Return the goodness of fit, with medians over the tested households.

    A cyclic chain of half-hours has no matrix powers; its line is computed from series simulated from the chain.
    """
    if memory is None:
        return []
    lines = ["", *markov_verdict(memory)]
    for name in memory.checks:
        simulated = cyclic and name == HALF_HOURS
        lines += [_header(f"Total variation, {name}, {_MEDIAN}", memory.ages_days)] + [
            _line(f"  {_SIMULATED if simulated and value == 'powers' else label}", memory.median(name, value))
            for label, value in _COMPARED
            if memory.checks[name].checked
        ]
    lines += [
        _line(f"Aged epsilon of {memory.loss:g}, {name.partition(',')[0]}, {_MEDIAN}", memory.median(name, "loss_left"))
        for name in (DAY_GIVEN_CALENDAR, HALF_HOUR_GIVEN_CALENDAR)
        if name in memory.series_by_name
    ]
    return [*lines, f"Confidential report: {format_path(str(memory.page))}", ""]


_COMPARED = (
    ("predicted by matrix powers", "powers"),
    ("empirical, from lagged counts", "direct"),
    ("null level, sampling error of a count", "floor"),
)
_SIMULATED = "simulated from the chain"
_CURVES = {**MIXING_NAMES, "sampling_bound": "sampling bound on total variation"}


def _gap_lines(calibration: Calibration, step: str) -> list[str]:
    """Return the spectral gaps, which only chains with one kernel have."""
    gap = calibration.curves.get("spectral_gap")
    if gap is None:
        return []
    return [f"Spectral gap (one step = one {step}): median {np.median(gap):.3f}, smallest {gap.min():.3f}."]


def _curve_lines(calibration: Calibration) -> list[str]:
    lines = []
    for key, name in _CURVES.items():
        curves = calibration.curves.get(key)
        if curves is None or curves.ndim == 1:
            continue
        if np.isnan(curves).any():
            missing = int(np.isnan(curves).any(axis=1).sum())
            lines.append(f"{name}: not applicable, {missing:,} of {len(curves):,} chains are not reversible")
            continue
        lines.append(_line(f"{name}, {_MEDIAN}", np.median(curves, axis=0)))
        lines.append(_line(f"  {_MAXIMUM}", curves.max(axis=0)))
    return lines


def _aged_line(bound: LeakageBound, ages_days: Sequence[int]) -> str:
    method = "tight" if bound.backward is not None else "total_variation"
    age_steps = [age * bound.steps_per_day for age in ages_days]
    aged_losses = [float(bound(age, _LOSS, direction="backward", method=method)) for age in age_steps]
    return _line(f"aged epsilon of a release with epsilon {_LOSS}, {_MAXIMUM}", aged_losses)


def _header(title: str, ages_days: Sequence[int]) -> str:
    return f"{title:{_WIDTH}s}" + "".join(f"{age:>6d} d " for age in ages_days)


def _line(name: str, values: Iterable[float]) -> str:
    return f"{name:{_WIDTH}s}" + "".join(f"{_four_decimals(value):>8s} " for value in values)


def _four_decimals(value: float) -> str:
    if math.isnan(value):
        return "-"
    return "<0.0001" if 0 < value < 0.0001 else f"{value:.4f}"
