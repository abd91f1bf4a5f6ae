"""Calibration draws of a ledger -> the losses that notions count."""

from __future__ import annotations

from collections.abc import Iterable

from agedp_data.ledger.lifecycle import CalibrationDraw, read_lifecycle_record
from agedp_data.ledger.records import Row, StatementRecord
from agedp_data.notions.period_loss import Charges, PeriodLoss


def charges_of(draws: Iterable[CalibrationDraw]) -> Charges:
    """Return the losses of calibration draws, as notions count them."""
    return tuple(PeriodLoss(draw.first_day, draw.last_day, draw.loss) for draw in draws)


def calibration_draws(rows: Iterable[Row]) -> tuple[CalibrationDraw, ...]:
    """Return the calibration draws among the rows of a release folder, oldest first."""
    records = (read_lifecycle_record(row) for row in rows if isinstance(row, StatementRecord))
    return tuple(record for record in records if isinstance(record, CalibrationDraw))
