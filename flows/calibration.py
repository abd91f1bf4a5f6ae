"""What `agedp calibrate` says: what the model rests on and how fast its chains forget. For the terminal only."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np

from agedp_data.chains.envelope import Envelope
from flows.words import shown
from pipelines.bound import Calibration
from pipelines.models.forgetting import Remembered
from pipelines.models.memory import DAY_TOLD, HALF_HOUR_TOLD, HALF_HOURS
from pipelines.reports.forgetting import verdict

_LOSS = 0.5


def calibration_lines(found: Calibration) -> list[str]:
    """Return the calibration for people: confidential counts, so neither logged nor stored."""
    lines = [
        f"model {found.model.id[:16]}: {found.households:,} households, "
        f"{found.readings:,} {'days' if found.model.public['step'] == 'day' else 'readings'}, {found.gaps:,} gaps",
        *_gap_lines(found),
        f"{'':24s}" + "".join(f"{age:>4d} d   " for age in found.ages_days),
        *(_curve_line(name, found.curves[key]) for name, key in _CURVES if key in found.curves),
        _line("Delta, slowest home", found.curves["total_variation"].max(axis=0)),
        _envelope_line(found.model.envelope, found.ages_days),
        *_uncertain_lines(found),
    ]
    if found.remembered:
        lines.append(
            f"never forgetting: {found.remembered:,} of {found.households:,} households (a state seen too rarely, a "
            f"chain that falls apart; without readings: {found.without_readings:,}): the envelope credits no age. "
            "Fewer states, quantile edges, a longer period or a smaller min_visits would help."
        )
    return [
        *lines,
        *_memory_lines(found.memory, cyclic=found.model.public["chain"] == "cyclic"),
        "Confidential figures per household lie in the model's folder.",
        "Using the model publishes its envelope, which comes from readings, without noise.",
        "Real households forget far more slowly than chains of this kind: this tool does not vouch for the model.",
    ]


def _uncertain_lines(found: Calibration) -> list[str]:
    """Return how many of the households that may be taken to forget are known too little for a sampling bound."""
    bound = found.curves.get("sampling_bound")
    uncertain = 0 if bound is None else int((bound.min(axis=1) >= 1).sum()) - found.remembered
    if not uncertain:
        return []
    clock = ", or a larger min_visits" if found.model.public["chain"] == "cyclic" else ""
    return [
        f"{uncertain:,} households are known too little to be credited any age at level "
        f"{found.model.public['level']}, and so none are: a longer period or fewer states would help{clock}."
    ]


def _memory_lines(found: Remembered | None, *, cyclic: bool) -> list[str]:
    """Return whether the chain is true, with medians over the households that were checked.

    A cyclic chain of half-hours has no powers to set beside counts: its line counts series that were drawn from it.
    """
    if found is None:
        return []
    lines = ["", *verdict(found)]
    for name in found.checks:
        drawn = cyclic and name == HALF_HOURS
        ages = "".join(f"{age:>4d} d   " for age in found.ages_days)
        lines += [f"{name:24s}" + ages] + [
            _line(f"  {_DRAWN if drawn and value == 'powers' else words}", found.median(name, value))
            for words, value in _COMPARED
            if found.checks[name].checked
        ]
    lines += [
        _line(f"left of {found.loss:g}, {name.partition(',')[0]}", found.median(name, "loss_left"))
        for name in (DAY_TOLD, HALF_HOUR_TOLD)
    ]
    return [*lines, f"The report, for the house alone: {shown(str(found.page))}", ""]


_COMPARED = (("powers, median home", "powers"), ("counted, median home", "direct"), ("noise of a count", "floor"))
_DRAWN = "drawn from the chain"
_CURVES = (
    ("Delta, median home", "total_variation"),
    ("bound for all chains", "reversibilised"),
    ("the paper's bound", "spectral"),
    ("sampling bound, median", "sampling_bound"),
)


def _gap_lines(found: Calibration) -> list[str]:
    """Return the spectral gaps, which only chains with one kernel have."""
    gap = found.curves.get("spectral_gap")
    return [] if gap is None else [f"spectral gap: median {np.median(gap):.3f}, smallest {gap.min():.3f}"]


def _curve_line(name: str, curves: np.ndarray[tuple[int, int], np.dtype[np.float64]]) -> str:
    if np.isnan(curves).any():
        missing = int(np.isnan(curves).any(axis=1).sum())
        return f"{name:22s}  does not apply to {missing:,} of {len(curves):,} chains: they are not reversible"
    return _line(name, np.median(curves, axis=0))


def _envelope_line(envelope: Envelope, days: Sequence[int]) -> str:
    method = "tight" if envelope.backward is not None else "total_variation"
    ages = [age * envelope.steps_per_day for age in days]
    left = [float(envelope(age, _LOSS, direction="backward", method=method)) for age in ages]
    return _line(f"left of {_LOSS}, every home", left)


def _line(name: str, values: Iterable[float]) -> str:
    return f"{name:24s}" + "".join(f"{'-':>8s} " if math.isnan(value) else f"{value:8.4f} " for value in values)
