"""Output of `agedp ledger amend`: every difference with its verdict, and each bound under both contracts.

Not in `ledger_text`, which `agedp verify` imports: an amendment needs the stages, and these need Dask.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from agedp.planning.forecast import Forecast
from agedp.signal_against_noise import three_digits
from agedp.stages.amend import Amendment
from agedp_data.epsilon import format_epsilon
from agedp_data.notions.notion import LossBound
from agedp_data.series.series_terms import layer_number, mean_name
from agedp_flows.text.number_text import format_loss
from agedp_flows.text.run_text import skips_json, skips_text
from agedp_flows.text.screen import heading, table_lines


def amendment_json(amendment: Amendment, *, recorded: bool) -> dict[str, Any]:
    """Return an amendment as JSON: every change, and the forecast under both contracts."""
    changes = [asdict(change) for change in amendment.changes]
    forecasts = {"before": _forecast_json(amendment.before), "after": _forecast_json(amendment.after)}
    return {"changes": changes, **forecasts, "recorded": recorded}


def _forecast_json(forecast: Forecast) -> dict[str, Any]:
    return {
        "next_day": _day_text(forecast.next_day),
        "epsilon": format_epsilon(forecast.loss),
        "noise_sd_kwh": dict(forecast.noise_sd_kwh),
        "last_day": _day_text(forecast.last_day),
        "ended_by_promise": forecast.ended_by_promise,
        "skipped": skips_json(forecast.skipped),
        "stopped": forecast.stopped,
        "figures": [{"name": bound.name, "epsilon": _exact_text(bound)} for bound in forecast.bounds],
    }


def amendment_lines(amendment: Amendment) -> list[str]:
    """Return an amendment as lines for the terminal."""
    if not amendment.changes:
        return ["the run file equals the contract in the ledger; there is nothing to amend"]
    changes = [(change.key, change.old, change.new, f"{change.verdict}: {change.why}") for change in amendment.changes]
    ends = ">contract", ">run file"
    return [
        heading("the run file differs from the contract in force:"),
        *table_lines(["key", *ends, "verdict"], changes, indent="  "),
        heading(f"from the next unreleased day on ({_day_text(amendment.after.next_day) or 'the series is over'}):"),
        *table_lines(["quantity", *ends], [*_bound_changes(amendment)], indent="  "),
        *([f"  then {amendment.after.stopped}"] if amendment.after.stopped else []),
    ]


def _bound_changes(amendment: Amendment) -> Iterator[tuple[str, str, str]]:
    """Yield each bound's name and its text before and after the amendment."""
    before, after = amendment.before, amendment.after
    yield "epsilon of that day", format_loss(before.loss), format_loss(after.loss)
    old_noise, new_noise = _noise_texts(before), _noise_texts(after)
    layered = {mean_name(name) for name in (*before.noise_sd_kwh, *after.noise_sd_kwh) if layer_number(name)}
    for name, layer in sorted({*old_noise, *new_noise}):
        old, new = (noise.get((name, layer), "-") for noise in (old_noise, new_noise))
        label = f"{name}, layer {layer}" if name in layered else name
        yield f"noise of {label}, kWh per household (standard deviation)", old, new
    yield "last day that can be released", _end_text(before), _end_text(after)
    if before.skipped or after.skipped:
        yield "days that will be skipped", skips_text(before.skipped) or "none", skips_text(after.skipped) or "none"
    for name, old, new in _paired_bounds(before.bounds, after.bounds):
        yield f"releases so far, {name}", old, new


def _paired_bounds(before: Sequence[LossBound], after: Sequence[LossBound]) -> Iterator[tuple[str, str, str]]:
    """Yield each bound of the releases so far; one with another delta is paired with its predecessor."""
    old = {bound.name: _amount_text(bound) for bound in before}
    new = {bound.name: _amount_text(bound) for bound in after}
    added = [name for name in new if name not in old]
    for name, value in old.items():
        if name in new:
            yield name, value, new[name]
        elif successor := next((key for key in added if _without_delta(key) == _without_delta(name)), ""):
            added.remove(successor)
            yield f"{name} -> {successor}", value, new[successor]
        else:
            yield name, value, "-"
    for name in added:
        yield name, "-", new[name]


def _without_delta(name: str) -> str:
    return name.partition(" (delta ")[0]


def _noise_texts(forecast: Forecast) -> dict[tuple[str, int], str]:
    """Return the noise of each mean by name and layer; a mean of one clamp is layer 1, whose file it has."""
    noise = forecast.noise_sd_kwh.items()
    return {(mean_name(name), layer_number(name) or 1): three_digits(sd_kwh) for name, sd_kwh in noise}


def _end_text(forecast: Forecast) -> str:
    day = _day_text(forecast.last_day) or "none"
    return f"{day} ({'the promise ends' if forecast.ended_by_promise else 'the promise lasts longer'})"


def _amount_text(bound: LossBound) -> str:
    return "infinite" if bound.value is None else format_loss(bound.value)


def _exact_text(bound: LossBound) -> str:
    return "infinite" if bound.value is None else format_epsilon(bound.value)


def _day_text(day: object) -> str:
    return "" if day is None else str(day)
