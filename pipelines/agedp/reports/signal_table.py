"""Report of a released mean's signal against its noise: the sentence of `plan` and `run`, and a table by time span.

Both reports contain it. It is a function of the released rows, so it is public in both.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from agedp.reports.html import closed, paragraph, table
from agedp.reports.mean_series import MAX_CELLS
from agedp.signal_against_noise import (
    SeriesSignal,
    SpanSignal,
    mean_names,
    signal_text,
    signals_by_group,
    smallest_of,
    three_digits,
)
from agedp_data.ledger import ReleaseRecord
from agedp_data.smoothing.signal_estimate import Verdict

_SIGNAL_NOTE: Final = (
    "Two neighbouring days differ for two reasons: the true means differ, and each has noise. The noise is known. The "
    "part of the differences that it does not explain estimates the true change. Days can be told apart if that "
    "change, less two standard errors, exceeds the noise of a day. They cannot if the change plus two standard errors "
    "is below it. The mean of a week has 2.6 times less noise than a day, that of 28 days 5.3 times less: read the "
    "series at the shortest span that can be told apart."
)
_ANSWERS: Final[Mapping[Verdict | None, str]] = {
    "visible": "yes",
    "hidden": "no",
    "uncertain": "not certain",
    None: "not yet judged",
}
_MOST_OPEN: Final = 3
"""Groups whose table needs no summary."""
_SPAN_NAMES: Final = {1: "days", 7: "weeks", 28: "months (28 days)", 365: "years (365 days)"}


def signal_parts(rows: Sequence[ReleaseRecord]) -> Iterator[str]:
    """Yield the sentence about each mean of these rows, and its table with each group and span."""
    names = mean_names(row.series for row in rows)
    signals_by_name = {name: signals for name in names if (signals := signals_by_group(rows, name, most=MAX_CELLS))}
    for name, signals in signals_by_name.items():
        yield paragraph(signal_text(smallest_of(signals)))
        numbers = _signal_table(signals[:MAX_CELLS], f" ({name})" if len(names) > 1 else "")
        of_groups = f"Each group of {name} by time span" if len(names) > 1 else "Each group by time span"
        yield closed(of_groups, [numbers]) if len(signals) > _MOST_OPEN else numbers
    if signals_by_name:
        yield paragraph(_SIGNAL_NOTE, "soft")


def _signal_table(signals: Sequence[SeriesSignal], label: str) -> str:
    has_groups = len(signals) > 1
    body = [_span_row(span, f", {signal.group}" if has_groups else "") for signal in signals for span in signal.spans]
    caption = f"Change between neighbouring spans against their noise, kWh per household{label}"
    columns = ("neighbouring", "pairs", "noise", "true change", "standard error", "can be told apart")
    return table(caption, columns, body)


def _span_row(span: SpanSignal, label: str) -> tuple[str, ...]:
    estimate = span.estimate
    numbers = [] if estimate is None else [estimate.change, estimate.standard_error]
    change = [three_digits(number) for number in numbers] or ["–", "–"]
    pairs, noise = f"{span.pairs:,}", three_digits(span.noise_kwh)
    return (f"{_SPAN_NAMES[span.days]}{label}", pairs, noise, *change, _ANSWERS[span.verdict])
