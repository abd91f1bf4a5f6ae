"""Output of `agedp advise`: what can be published usefully, a row for each promise."""

from __future__ import annotations

from typing import Any

from agedp.planning.advisor import Advice
from agedp_data import yardstick
from agedp_flows.text.screen import screen_width
from agedp_flows.text.template_lines import render_lines

_WIDTH = 130


def advice_json(advice: Advice) -> dict[str, Any]:
    """Return the advice as JSON."""
    return {
        "households": advice.households,
        "days": advice.days,
        "yardstick": {"name": yardstick.yardstick_name(), "mean_kwh": yardstick.mean_kwh()},
        "run_file": None if advice.given is None else advice.given.facts,
        "rows": [row.facts for row in advice.rows],
    }


def advice_lines(advice: Advice) -> list[str]:
    """Return the advice as lines for the terminal, the run file as it stands first."""
    return render_lines("advice", advice=advice, yardstick=yardstick, width=screen_width() or _WIDTH)
