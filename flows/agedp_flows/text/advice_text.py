"""Output of `agedp advise`: what can be published usefully, a row for each promise."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from agedp.planning.advisor import Advice, AdviceRow
from agedp.signal_against_noise import three_digits
from agedp_data import yardstick
from agedp_data.epsilon import exact_text
from agedp_data.messages import percent_text
from agedp_data.statement.note_texts import odds_percent
from agedp_data.yardstick import FIT, ROUGH
from agedp_flows.text.screen import count_text, screen_width, table_lines

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


def advice_lines(advice: Advice) -> Iterator[str]:
    """Yield the advice as lines for the terminal, the run file as it stands first."""
    days = "a series without an end" if advice.days is None else count_text(advice.days, "day")
    yield (
        f"What {count_text(advice.households, 'household')} can publish over {days}. Error: half-width of the 90 % "
        f"interval of the noise, and its part of the {three_digits(yardstick.mean_kwh())} kWh a day of the yardstick "
        f"({yardstick.yardstick_name()}): fit up to {100 * FIT:g} %, rough up to {100 * ROUGH:g} %."
    )
    if advice.given is not None:
        yield f"The run file as it stands: {advice.given.verdict.text}."
    if not advice.rows:
        yield "No promise makes any span fit or rough for so few households and days."
        return
    headings = (
        ">", "of use", "protects", ">epsilon", "a row is about", "clamp, kWh", "error", "odds of a day",
        "odds of a year", "the clamp cuts",
    )  # fmt: skip
    rows = [_cells(number, row) for number, row in enumerate(advice.rows, start=1)]
    yield from table_lines(headings, rows, indent="  ", width=screen_width() or _WIDTH)
    yield (
        "Odds: what an even chance about one household becomes at most. Smoothed errors are those of `agedp smooth`. "
        "The clamp cuts so many days, and so much energy, of the yardstick; no interval covers that."
    )


def _cells(number: int, row: AdviceRow) -> list[str]:
    error, cut, losses = row.error, row.cut, row.verdict.losses
    smoothed = "" if error is None or not error.is_smoothed else ", smoothed"
    half_width = "" if error is None else f"±{three_digits(error.half_width)} ({percent_text(error.ratio)}{smoothed})"
    return [
        str(number),
        "" if error is None else error.purpose,
        row.protected,
        "" if row.epsilon is None else exact_text(row.epsilon),
        f"a {row.every}",
        " + ".join(map(exact_text, row.clamps_kwh)),
        half_width,
        odds_percent(losses.day),
        odds_percent(losses.year),
        f"{percent_text(cut.days)} of days, {percent_text(cut.energy)}" if cut.days else "nothing",
    ]
