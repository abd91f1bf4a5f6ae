"""Output of `agedp calibrate`: the data of the model and how fast its chains mix. Confidential: terminal only."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from agedp.calibration.bound import Calibration
from agedp.calibration.model_check import HALF_HOURS, LAGS_DAYS, MemoryCurves
from agedp.reports import model_check_report
from agedp_data.datasets.filesystem import format_path
from agedp_flows.text.screen import table_lines
from agedp_flows.text.template_lines import render_lines

_LOSS = 0.5
_MEDIAN, _MAXIMUM = "median", "maximum over households"


def calibration_lines(calibration: Calibration, *, verbose: bool = False) -> list[str]:
    """Return the calibration as lines for the terminal: confidential counts, so neither logged nor stored.

    With `verbose` with every comparison of the model with the readings, not its verdict alone.
    """
    public, gap = calibration.model.public, calibration.curves.get("spectral_gap")  # chains with one kernel have gaps
    bound = calibration.curves.get("sampling_bound")
    mixing = [] if calibration.is_stored else _mixing_table(calibration)  # stored: the model was complete before
    memory = _memory_lines(calibration.memory, cyclic=public["chain"] == "cyclic", verbose=verbose)
    return render_lines(
        "calibration",
        c=calibration,
        public=public,
        gap=None if gap is None else (np.median(gap), gap.min()),
        mixing=mixing,
        reversible_fit="" if calibration.is_stored else model_check_report.reversible_fit_text(calibration),
        uncertain=0 if bound is None else int((bound.min(axis=1) >= 1).sum()) - calibration.unmixed,
        memory=memory,
    )


def _mixing_table(calibration: Calibration) -> list[str]:
    rows = [_row(name, values) for name, values in model_check_report.mixing_rows(calibration)]
    return _table("Mixing by age", calibration.ages_days, [*rows, _aged_row(calibration)])


def calibration_json(calibration: Calibration) -> dict[str, Any]:
    """Return the answer of `agedp calibrate` for programs: public only."""
    return {"model": calibration.model.id}


def _memory_lines(memory: MemoryCurves | None, *, cyclic: bool, verbose: bool) -> list[str]:
    """Return the verdicts of the goodness of fit and on the model by hidden regimes; with `verbose` their tables.

    A cyclic chain of half-hours has no matrix powers; its line is computed from series simulated from the chain.
    """
    if memory is None:
        return []
    lines = ["", *model_check_report.markov_verdict(memory)]
    for name in memory.checks if verbose else ():
        simulated = cyclic and name == HALF_HOURS
        rows = [
            _row(_SIMULATED if simulated and value == "powers" else label, memory.median(name, value))
            for label, value in _COMPARED
            if memory.checks[name].checked
        ]
        lines += _table(f"Total variation, {name}, {_MEDIAN}", memory.ages_days, rows)
    if memory.regimes is not None:
        rows = (
            [_row(name, values) for name, values in model_check_report.regime_rows(memory.regimes)] if verbose else []
        )
        lines += _table("Memory of days given season, weather and weekday, mean", LAGS_DAYS, rows) if verbose else []
        lines += model_check_report.regime_verdict(memory)
    if memory.sample is not None:
        lines.append(f"{memory.sample.sentence} Time of the check: {memory.sample.seconds:,.0f} s.")
    return [*lines, f"Confidential report: {format_path(str(memory.page))}", ""]


_COMPARED = (
    ("predicted by matrix powers", "powers"),
    ("empirical, from lagged counts", "direct"),
    ("null level, sampling error of a count", "floor"),
)
_SIMULATED = "simulated from the chain"


def _aged_row(calibration: Calibration) -> list[str]:
    bound = calibration.model.leakage_bound
    method = "tight" if bound.backward is not None else "total_variation"
    age_steps = [age * bound.steps_per_day for age in calibration.ages_days]
    aged_losses = [float(bound(age, _LOSS, direction="backward", method=method)) for age in age_steps]
    scope = _MAXIMUM if calibration.selected is None else "selected member"
    return _row(f"aged epsilon of a release with epsilon {_LOSS}, {scope}", aged_losses)


def _table(title: str, ages_days: Sequence[int], rows: Sequence[Sequence[str]]) -> list[str]:
    return table_lines([title, *(f">{age} d" for age in ages_days)], rows)


def _row(name: str, values: Iterable[float]) -> list[str]:
    return [name, *map(_four_decimals, values)]


def _four_decimals(value: float) -> str:
    """Return a value in four decimals, zero without a sign.

    >>> _four_decimals(-0.00001), _four_decimals(0.00001), _four_decimals(-0.25)
    ('0.0000', '<0.0001', '-0.2500')
    """
    if math.isnan(value):
        return "-"
    text = "<0.0001" if 0 < value < 0.0001 else f"{value:.4f}"
    return text.removeprefix("-") if text == "-0.0000" else text
