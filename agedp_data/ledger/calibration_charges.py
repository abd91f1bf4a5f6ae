"""Calibration draws of a ledger -> the losses that notions count."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from agedp_data.ledger.lifecycle import CalibrationDraw, read_lifecycle_record
from agedp_data.ledger.records import Row, StatementRecord
from agedp_data.notions.period_loss import Charges, PeriodLoss


def charges_of(draws: Iterable[CalibrationDraw]) -> Charges:
    """Return the losses of calibration draws, as notions count them."""
    return tuple(PeriodLoss(draw.first_day, draw.last_day, draw.loss) for draw in draws)


def draws_of_model(public: Mapping[str, Any], population: str) -> tuple[CalibrationDraw, ...]:
    """Return the draws that a model's public part contains, as they are charged to a population; () for most models."""
    first, last = public.get("period", ("", ""))
    return tuple(
        CalibrationDraw(population, first, last, str(draw["query"]), tuple(draw["value"]), int(draw["loss"]))
        for draw in public.get("draws", ())
    )


def calibration_draws(rows: Iterable[Row]) -> tuple[CalibrationDraw, ...]:
    """Return the calibration draws among the rows of a release folder, oldest first."""
    records = (read_lifecycle_record(row) for row in rows if isinstance(row, StatementRecord))
    return tuple(record for record in records if isinstance(record, CalibrationDraw))
