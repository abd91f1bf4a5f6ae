"""Output of `agedp calibrate`: the data of the model and how fast its chains mix. Confidential: terminal only."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from agedp.calibration.bound import Calibration
from agedp.calibration.member_selection import SelectedMember
from agedp.calibration.model_check import HALF_HOURS, LAGS_DAYS, MemoryCurves
from agedp.reports.model_check_report import (
    markov_verdict,
    mixing_rows,
    regime_rows,
    regime_verdict,
    reversible_fit_text,
)
from agedp_data.messages import sentence_start
from agedp_flows.text.number_text import format_loss
from agedp_flows.text.run_text import format_path
from agedp_flows.text.screen import table_lines, warning

_LOSS = 0.5
_MEDIAN, _MAXIMUM = "median", "maximum over households"


def calibration_lines(calibration: Calibration, *, verbose: bool = False) -> list[str]:
    """Return the calibration as lines for the terminal: confidential counts, so neither logged nor stored.

    With `verbose` with every comparison of the model with the readings, not its verdict alone.
    """
    if calibration.is_stored:
        return _stored_lines(calibration)
    step, states = calibration.model.public["step"], calibration.model.public["states"]
    unit = "days" if step == "day" else "readings"
    lines = [
        f"Model {calibration.model.id[:16]}: {calibration.households:,} households, {states} states per household, "
        f"{calibration.readings:,} {unit}, {calibration.gaps:,} gaps.",
        *_gap_lines(calibration, str(step)),
        *_table(
            "Mixing by age",
            calibration.ages_days,
            [*(_row(name, values) for name, values in mixing_rows(calibration)), _aged_row(calibration)],
        ),
        *filter(None, [reversible_fit_text(calibration)]),
        *_selection_lines(calibration),
        *_sampling_lines(calibration),
    ]
    if calibration.unmixed:
        lines.append(
            warning(
                f"Not mixing: {calibration.unmixed:,} of {calibration.households:,} households (a state seen too "
                "rarely, or a chain that is not irreducible; without readings: "
                f"{calibration.without_readings:,}). {_effect(calibration)} "
                "Fewer states, quantile edges, a longer period or a smaller min_visits would help."
            )
        )
    return [
        *lines,
        *_memory_lines(calibration.memory, cyclic=calibration.model.public["chain"] == "cyclic", verbose=verbose),
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


def _effect(calibration: Calibration, *, begins_sentence: bool = True) -> str:
    """Return what households without a reliable chain do to the model."""
    is_private = calibration.selected is not None
    text = "they lie below the last member only, which credits no age." if is_private else "the model credits no age."
    return sentence_start(text) if begins_sentence else text


def _stored_lines(calibration: Calibration) -> list[str]:
    """Return the lines for a private selection whose model was complete before."""
    public = calibration.model.public
    return [
        f"Model {calibration.model.id[:16]} exists already and is complete: member {public['member']}, selected among "
        f"{public['households']:,} households. Nothing was read or drawn."
    ]


def _selection_lines(calibration: Calibration) -> list[str]:
    """Return the member that was selected, what the selection saw (confidential), and what the draws cost."""
    selected, public = calibration.selected, calibration.model.public
    if selected is None:
        return []
    counts = selected.counts
    first, last = public["period"]
    lines = [
        f"Private selection: member {selected.member} of {selected.family.size}{_decay_text(selected)}. "
        f"{counts[selected.member - 1]:,} of {calibration.households:,} households lie below it (confidential).",
        f"It aims at {selected.target:,} households: {public['coverage']} of {calibration.households:,}, and a margin "
        f"for the failure probability {public['failure_probability']}.",
        f"Households below each member (confidential): {', '.join(f'{count:,}' for count in counts)}.",
        f"Epsilon of the draw about all readings of a household from {first} to {last}: {format_loss(selected.loss)}.",
    ]
    draws = calibration.draws
    if draws is not None:
        if draws.stored:
            lines.append(f"Answers that the ledger had already: {draws.stored}; answers drawn now: {draws.drawn}.")
        lines.append(
            f"Draws in the ledger about this population: {draws.ledger_draws:,}, epsilon "
            f"{format_loss(draws.ledger_loss)} in all. Other settings draw again, which adds to it."
        )
    return lines


def _decay_text(selected: SelectedMember) -> str:
    """Return what a member of the default family is, "" for a member of a table."""
    decay_days = selected.family.decay_days
    if not decay_days:
        return ""
    if selected.member == selected.family.size:
        return " (no decay)"
    return f" (total variation exp(-age / {decay_days[selected.member - 1]} days))"


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
        f"{calibration.model.public['level']}, "
        f"so {_effect(calibration, begins_sentence=False)} A longer period or fewer states would help{clock}."
    ]


def _memory_lines(memory: MemoryCurves | None, *, cyclic: bool, verbose: bool) -> list[str]:
    """Return the verdict of the goodness of fit; with `verbose` its tables, with medians over the tested households."""
    if memory is None:
        return []
    return [
        "",
        *markov_verdict(memory),
        *(_memory_tables(memory, cyclic=cyclic) if verbose else []),
        *_regime_lines(memory, verbose=verbose),
        *_sample_lines(memory),
        f"Confidential report: {format_path(str(memory.page))}",
        "",
    ]


def _memory_tables(memory: MemoryCurves, *, cyclic: bool) -> list[str]:
    """Return the tables of the goodness of fit.

    A cyclic chain of half-hours has no matrix powers; its line is computed from series simulated from the chain.
    """
    lines: list[str] = []
    for name in memory.checks:
        simulated = cyclic and name == HALF_HOURS
        rows = [
            _row(_SIMULATED if simulated and value == "powers" else label, memory.median(name, value))
            for label, value in _COMPARED
            if memory.checks[name].checked
        ]
        lines += _table(f"Total variation, {name}, {_MEDIAN}", memory.ages_days, rows)
    return lines


def _sample_lines(memory: MemoryCurves) -> list[str]:
    """Return which households were checked, and the time that the check took."""
    if memory.sample is None:
        return []
    return [f"{memory.sample.sentence} Time of the check: {memory.sample.seconds:,.0f} s."]


def _regime_lines(memory: MemoryCurves, *, verbose: bool) -> list[str]:
    """Return the verdict on the model by hidden regimes; with `verbose` its table, means over the households."""
    if memory.regimes is None:
        return []
    title = "Memory of days given season, weather and weekday, mean"
    rows = [_row(name, values) for name, values in regime_rows(memory.regimes)]
    return [*(_table(title, LAGS_DAYS, rows) if verbose else []), *regime_verdict(memory)]


_COMPARED = (
    ("predicted by matrix powers", "powers"),
    ("empirical, from lagged counts", "direct"),
    ("null level, sampling error of a count", "floor"),
)
_SIMULATED = "simulated from the chain"


def _gap_lines(calibration: Calibration, step: str) -> list[str]:
    """Return the spectral gaps, which only chains with one kernel have."""
    gap = calibration.curves.get("spectral_gap")
    if gap is None:
        return []
    return [f"Spectral gap (one step = one {step}): median {np.median(gap):.3f}, smallest {gap.min():.3f}."]


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
