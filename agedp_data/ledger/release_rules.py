"""Rules of a release that follow from its own fields: dates, cells, values, numbers of households, scale and loss."""

from __future__ import annotations

from datetime import UTC, datetime
from fractions import Fraction
from typing import TYPE_CHECKING

from agedp_data import clock, epsilon

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agedp_data.ledger.records import ReleaseRecord

STATES = ("released", "skipped")
INT32, INT64 = range(2**31), range(-(2**63), 2**63)
HOUSEHOLDS = range(1, 10**9 + 1)
HOUSEHOLD_DAYS = range(1, 366 * 10**9 + 1)
MAX_SENSITIVITY, MAX_SCALE = 2**62, 2.0**55  # as `mechanisms` draws


def check_dates(row: ReleaseRecord) -> Iterator[str]:
    """Yield the faults of a release's dates."""
    for name in ("day", "published_on"):
        if not clock.is_date(getattr(row, name)):
            yield f"{name} is not an ISO date"
    if not _is_utc(row.input_ended_at):
        yield "input_ended_at is not a UTC instant"


def check_draw(row: ReleaseRecord, *, counts: range) -> Iterator[str]:
    """Yield the faults of state, cells and loss; a skipped day has no values and no loss.

    `counts` are the possible numbers of households, or of household-days in a row that covers a week, month or year.
    """
    if row.state not in STATES:
        yield f"state is neither {' nor '.join(STATES)}"
    if len(set(row.cells)) < len(row.cells):
        yield "a cell is named twice"
    if not all(value in INT64 for value in row.values):
        yield "a value is beyond 64 bits"
    if row.revision not in INT32:
        yield "the revision is negative, or beyond 32 bits"
    if not all(count in counts for count in row.households):
        yield f"a number of {'households' if counts == HOUSEHOLDS else 'household-days'} is not from 1 to {counts[-1]}"
    if row.sensitivity not in range(1, MAX_SENSITIVITY + 1):
        yield "sensitivity is not positive, or beyond 2^62"
        return
    if row.state == "skipped":
        if row.cells or row.values or row.households or row.loss:
            yield "a skipped day with cells, values or a loss"
        return
    if not row.cells or not len(row.cells) == len(row.values) == len(row.households):
        yield f"{len(row.cells)} cells, {len(row.values)} values, {len(row.households)} numbers of households"
    if not 0 < row.scale <= MAX_SCALE:
        yield "scale is not positive, or beyond 2^55"
    elif not epsilon.ceil_nano(Fraction(row.sensitivity) / Fraction(row.scale)) <= row.loss < INT64.stop:
        yield (
            f"loss {epsilon.format_epsilon(row.loss)} is below sensitivity {row.sensitivity} / scale {row.scale!r},"
            " or beyond 64 bits"
        )


def _is_utc(text: str) -> bool:
    """Return whether a text is an instant as `clock.format_instant` writes it."""
    try:
        instant = datetime.strptime(text, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)
    except ValueError:
        return False
    return clock.format_instant(instant) == text and clock.is_date(instant.date().isoformat())
