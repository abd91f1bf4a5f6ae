"""The section of docs/papers.md on measured errors of published means; its numbers are those of measured.json."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

MEASURED: Final = Path(__file__).parent / "measured.json"
_SHOWN: Final = (100, 1000, 5000)


def read_measured() -> dict[str, Any]:
    """Return the stored figures."""
    figures: dict[str, Any] = json.loads(MEASURED.read_text("utf-8"))
    return figures


def expected_95(epsilon: float, households: int, clamp_kwh: float) -> float:
    """Return the size that 95 of 100 errors do not exceed by the Laplace law [kWh per household]."""
    return clamp_kwh * math.log(20) / (epsilon * households)


def accuracy_section() -> str:
    """Return the root mean square errors by promise and number of households, and how they were measured."""
    figures = read_measured()
    return f"""## Errors of published means, measured

Root mean square error of a daily mean, in kWh per household, as published and after `agedp smooth`. [Choose a
promise](choose.md) has the picture, and the rule that the published errors follow.

{chr(10).join(_rows())}

Measured on {max(figures["households"]):,} synthetic households of `agedp sample` over {figures["days"]} days, with a
clamp of {figures["clamp_kwh"]} kWh that changed {_percent_up(figures["clamped_share"])} of the household-days, and
{figures["draws"]} draws of each year. Estimates are those of an archive, without weather. Live estimates err more, and
real households have larger days. The age-dependent row rests on an example curve; real households [mix more
slowly](chains.md#measured-on-real-households). `python -m docs.papers.accuracy` measures again."""


def _rows() -> Iterator[str]:
    figures = read_measured()
    places = [(number, figures["households"].index(number)) for number in _SHOWN]
    yield f"| promise | epsilon of a day | {' | '.join(f'{number:,}, published | smoothed' for number, _ in places)} |"
    yield "|---" * (2 + 2 * len(places)) + "|"
    for promise in figures["promises"]:
        errors = [_three(promise[kind][place]) for _, place in places for kind in ("raw", "smoothed")]
        yield f"| {promise['text']} | {_three(promise['epsilon'])} | {' | '.join(errors)} |"


def _three(value: float) -> str:
    """Return a number in three significant digits, without an exponent."""
    digits = max(0, 2 - math.floor(math.log10(abs(value))))
    return f"{value:,.{digits}f}"


def _percent_up(share: float) -> str:
    """Return a share in two significant digits of a percent, rounded up."""
    percent = 100 * share
    factor = 10 ** max(0, 1 - math.floor(math.log10(percent)))
    return f"{math.ceil(percent * factor) / factor:g}\N{NO-BREAK SPACE}%"
