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
from agedp_data.messages import sentence_start
from agedp_flows.text.screen import format_loss, table_lines, warning

_LOSS = 0.5
_MEDIAN, _MAXIMUM = "median", "maximum over households"


def calibration_lines(calibration: Calibration, *, verbose: bool = False) -> list[str]:
    """Return the calibration as lines for the terminal: confidential counts, so neither logged nor stored.

    With `verbose` with every comparison of the model with the readings, not its verdict alone.
    """
    public, name = calibration.model.public, f"Model {calibration.model.id[:16]}"
    if calibration.is_stored:  # a private selection whose model was complete before
        return [
            f"{name} exists already and is complete: member {public['member']}, selected among "
            f"{public['households']:,} households. Nothing was read or drawn."
        ]
    unit, gap = "days" if public["step"] == "day" else "readings", calibration.curves.get("spectral_gap")
    lines = [
        f"{name}: {calibration.households:,} households, {public['states']} states per household, "
        f"{calibration.readings:,} {unit}, {calibration.gaps:,} gaps."
    ]
    if gap is not None:  # only chains with one kernel have spectral gaps
        median = f"median {np.median(gap):.3f}, smallest {gap.min():.3f}"
        lines.append(f"Spectral gap (one step = one {public['step']}): {median}.")
    rows = [
        *(_row(name, values) for name, values in model_check_report.mixing_rows(calibration)),
        _aged_row(calibration),
    ]
    lines += _table("Mixing by age", calibration.ages_days, rows)
    lines += [*filter(None, [model_check_report.reversible_fit_text(calibration)]), *_selection_lines(calibration)]
    lines += _sampling_lines(calibration)
    if calibration.unmixed:
        lines.append(
            warning(
                f"Not mixing: {calibration.unmixed:,} of {calibration.households:,} households (a state seen too "
                "rarely, or a chain that is not irreducible; without readings: "
                f"{calibration.without_readings:,}). {sentence_start(_effect(calibration))} "
                "Fewer states, quantile edges, a longer period or a smaller min_visits would help."
            )
        )
    return [
        *lines,
        *_memory_lines(calibration.memory, cyclic=public["chain"] == "cyclic", verbose=verbose),
        *filter(None, [calibration.tasks]),
        "The model's folder contains confidential numbers per household.",
        _PUBLISHED[calibration.selected is not None],
        "A promise of risk on this model needs accept_unverified_model = true in [model]; epsilon_per_day does not.",
        "Real households mix far more slowly than such chains predict. agedp does not guarantee the model.",
    ]


_PUBLISHED = {
    False: "A release that uses the model publishes its leakage bound, which comes from readings, without noise.",
    True: "A release that uses the model publishes the selected member, never how many households lie below it.",
}


def _effect(calibration: Calibration) -> str:
    """Return what households without a reliable chain do to the model."""
    is_private = calibration.selected is not None
    return "they lie below the last member only, which credits no age." if is_private else "the model credits no age."


def _selection_lines(calibration: Calibration) -> list[str]:
    """Return the member that was selected, what the selection saw (confidential), and what the draws cost."""
    selected, public, draws = calibration.selected, calibration.model.public, calibration.draws
    if selected is None:
        return []
    counts, decay_days, decay = selected.counts, selected.family.decay_days, ""
    if decay_days:  # of the default family; the members of a table have no name
        is_last = selected.member == selected.family.size
        age = "" if is_last else f"total variation exp(-age / {decay_days[selected.member - 1]} days)"
        decay = f" ({age or 'no decay'})"
    first, last = public["period"]
    lines = [
        f"Private selection: member {selected.member} of {selected.family.size}{decay}. "
        f"{counts[selected.member - 1]:,} of {calibration.households:,} households lie below it (confidential).",
        f"It aims at {selected.target:,} households: {public['coverage']} of {calibration.households:,}, and a margin "
        f"for the failure probability {public['failure_probability']}.",
        f"Households below each member (confidential): {', '.join(f'{count:,}' for count in counts)}.",
        f"Epsilon of the draw about all readings of a household from {first} to {last}: {format_loss(selected.loss)}.",
    ]
    if draws is not None and draws.stored:
        lines.append(f"Answers that the ledger had already: {draws.stored}; answers drawn now: {draws.drawn}.")
    if draws is not None:
        lines.append(
            f"Draws in the ledger about this population: {draws.ledger_draws:,}, epsilon "
            f"{format_loss(draws.ledger_loss)} in all. Other settings draw again, which adds to it."
        )
    return lines


def calibration_json(calibration: Calibration) -> dict[str, Any]:
    """Return the answer of `agedp calibrate` for programs: public only."""
    return {"model": calibration.model.id}


def _sampling_lines(calibration: Calibration) -> list[str]:
    """Return the number of households that mix but have too few readings for a sampling bound."""
    bound = calibration.curves.get("sampling_bound")
    uncertain = 0 if bound is None else int((bound.min(axis=1) >= 1).sum()) - calibration.unmixed
    if not uncertain:
        return []
    clock = ", or a larger min_visits" if calibration.model.public["chain"] == "cyclic" else ""
    return [
        f"{uncertain:,} households have too few readings for a sampling bound at level "
        f"{calibration.model.public['level']}, so {_effect(calibration)} A longer period or fewer states would "
        f"help{clock}."
    ]


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
