"""What `agedp ledger amend` says: every difference with its verdict, and each figure under both contracts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from agedp_data.losses import format_epsilon
from agedp_data.notions.notion import LossBound
from flows.words import skips_json, skips_text
from pipelines.amend import Amendment
from pipelines.promise.outlook import Forecast


def amendment_json(found: Amendment, *, recorded: bool) -> dict[str, Any]:
    """Return an amendment for machines."""
    changes = [
        {"key": each.key, "old": each.old, "new": each.new, "verdict": each.verdict, "why": each.why}
        for each in found.changes
    ]
    sides = {"before": _side(found.before), "after": _side(found.after)}
    return {"changes": changes, **sides, "recorded": recorded}


def _side(found: Forecast) -> dict[str, Any]:
    return {
        "next_day": _text(found.next_day),
        "epsilon": format_epsilon(found.loss),
        "noise_sd_kwh": dict(found.noise_sd_kwh),
        "last_day": _text(found.last_day),
        "ended_by_promise": found.ended_by_promise,
        "skipped": skips_json(found.skipped),
        "stopped": found.stopped,
        "figures": [{"name": figure.name, "epsilon": _amount(figure)} for figure in found.bounds],
    }


def amendment_lines(found: Amendment) -> list[str]:
    """Return an amendment for people."""
    if not found.changes:
        return ["the run file says what the ledger says was promised; there is nothing to amend"]
    changes = [f"  {each.key}: {each.old} -> {each.new}  {each.verdict}: {each.why}" for each in found.changes]
    return [
        "the run file differs from the contract in force:",
        *changes,
        f"from the next unreleased day on ({_text(found.after.next_day) or 'the series is over'}):",
        *(f"  {name}: {old} -> {new}" for name, old, new in _figures(found)),
        *([f"  then {found.after.stopped}"] if found.after.stopped else []),
    ]


def _figures(found: Amendment) -> Iterator[tuple[str, str, str]]:
    """Yield the name of each figure and what it is before and after."""
    before, after = found.before, found.after
    yield "epsilon of that day", format_epsilon(before.loss), format_epsilon(after.loss)
    for name in sorted({*before.noise_sd_kwh, *after.noise_sd_kwh}):
        old, new = (_sd(each, name) for each in (before, after))
        yield f"noise of {name}, kWh a home (standard deviation)", old, new
    yield "last day that can be released", _end(before), _end(after)
    if before.skipped or after.skipped:
        yield "days that will be skipped", skips_text(before.skipped) or "none", skips_text(after.skipped) or "none"
    said = [{figure.name: _amount(figure) for figure in each.bounds} for each in (before, after)]
    for name in dict.fromkeys([*said[0], *said[1]]):
        yield f"what was released so far, {name}", said[0].get(name, "-"), said[1].get(name, "-")


def _sd(found: Forecast, series: str) -> str:
    return f"{found.noise_sd_kwh[series]:.3f}" if series in found.noise_sd_kwh else "-"


def _end(found: Forecast) -> str:
    day = _text(found.last_day) or "none"
    return f"{day} ({'the promise ends' if found.ended_by_promise else 'the promise lasts longer'})"


def _amount(figure: LossBound) -> str:
    return "infinite" if figure.value is None else format_epsilon(figure.value)


def _text(day: object) -> str:
    return "" if day is None else str(day)
