"""Signal against noise of the released means, as lines and as JSON, for `agedp plan` and `agedp run`.

The estimate and its sentence are those of `agedp.signal_against_noise`, which both reports use as well.
"""

from __future__ import annotations

from typing import Any

from agedp.ledger_session import LedgerSession
from agedp.planning.change_yardstick import ChangeYardstick
from agedp.row_means import read_mean_rows
from agedp.signal_against_noise import (
    SeriesSignal,
    SpanSignal,
    change_text,
    mean_names,
    signal_text,
    smallest_group_signal,
    three_digits,
)
from agedp_data.series.mean import is_daily_mean


def released_signals(session: LedgerSession) -> list[SeriesSignal]:
    """Return the signal of the smallest group of each mean in the run file that has a released row."""
    means = [name for name, series in session.run.run_file.series.items() if is_daily_mean(series)]
    rows = [] if session.ledger is None else read_mean_rows(session.ledger, session.population)
    signals = (smallest_group_signal(rows, name) for name in mean_names(means))
    return [signal for signal in signals if signal is not None]


def signal_lines(session: LedgerSession) -> list[str]:
    """Return one sentence for each released mean: its noise, its change, and which spans can be told apart."""
    return [signal_text(signal) for signal in released_signals(session)]


def signal_json(session: LedgerSession) -> list[dict[str, Any]]:
    """Return the same as JSON: functions of released rows only."""
    return [
        {
            "series": signal.series,
            "group": signal.group,
            "households": signal.households,
            "spans": [_span_json(span) for span in signal.spans],
            "text": signal_text(signal),
        }
        for signal in released_signals(session)
    ]


def _span_json(span: SpanSignal) -> dict[str, Any]:
    estimate = span.estimate
    return {
        "days": span.days,
        "pairs": span.pairs,
        "noise_sd_kwh": span.noise_kwh,
        "change_kwh": None if estimate is None else estimate.change,
        "change_error_kwh": None if estimate is None else estimate.standard_error,
        "comparison": span.verdict or "unknown",
    }


def yardstick_json(change: ChangeYardstick) -> dict[str, Any]:
    """Return the change that planned noise is compared with; without a standard error it is assumed."""
    error = change.estimate.standard_error if change.estimate is not None and change.is_estimated else None
    return {
        "change_kwh": change.kwh,
        "change_error_kwh": error,
        "change_from": "published series" if change.is_estimated else "yardstick",
    }


def yardstick_text(change: ChangeYardstick) -> str:
    """Return the change that planned noise is compared with, and its source."""
    if change.estimate is None:
        return f"{three_digits(change.kwh)} kWh per household, assumed until the published series can show it"
    if change.is_estimated:
        return f"{change_text(change.estimate)}, estimated from the published series"
    return (
        f"{three_digits(change.kwh)} kWh per household, assumed: the published series shows "
        f"{change_text(change.estimate)}, which may be noise alone"
    )
