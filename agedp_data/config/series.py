"""[series.NAME]: what is published. One block per statistic; every bound in it is public."""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated, Literal, Self

from pydantic import Discriminator, Field, PlainValidator, model_validator

from agedp_data.notions.parameters import (
    Block,
    Kwh,
    PositiveKwh,
    Share,
    Text,
    ascending,
    exact,
    kwh,
    watt_hours,
    wrong,
)

# The day on which the clock goes forward has 46 half-hours; a day without any reading is always missing.
Missing = Annotated[int, Field(ge=0, le=45)]


def _bins(values: object) -> tuple[Decimal, ...]:
    edges = ascending(values, kwh)
    if len(edges) < 2 or edges[0] != 0:
        raise wrong("must begin with 0 and have two edges or more")
    return edges


class Series(Block):
    """What the statistics have in common; a missing household-day counts as `missing_kwh`."""

    statistic: str
    share: Share | None = None
    clamp_kwh: PositiveKwh
    by: Text | None = None
    max_missing: Missing = 2
    missing_kwh: Kwh = exact(0)

    @property
    def clamp_wh(self) -> int:
        """Return the public bound on a household's day, in whole watt-hours."""
        return watt_hours(self.clamp_kwh)

    @property
    def missing_wh(self) -> int:
        """Return what a missing household-day counts as, in whole watt-hours."""
        return watt_hours(self.missing_kwh)

    @model_validator(mode="after")
    def _within_the_bound(self) -> Self:
        if self.missing_kwh > self.clamp_kwh:
            raise wrong("must not exceed clamp_kwh", "missing_kwh")
        if self.by in ("household_id", "from", "to"):
            raise wrong("must be a group column of the roster, such as tariff", "by")
        return self


class Mean(Series):
    """The mean of the households' days."""

    statistic: Literal["mean"]
    values: Literal["readings", "states"] = "readings"


class Distribution(Series):
    """Counts of households by daily use, bins half-open and the last one closed by the clamp."""

    statistic: Literal["distribution"]
    form: Literal["histogram", "cumulative"] = "histogram"
    bins_kwh: Annotated[tuple[Decimal, ...], PlainValidator(_bins)]

    @property
    def bins_wh(self) -> tuple[int, ...]:
        """Return the edges of the bins in whole watt-hours."""
        return tuple(watt_hours(edge) for edge in self.bins_kwh)

    @model_validator(mode="after")
    def _end_at_the_clamp(self) -> Self:
        if self.bins_kwh[-1] != self.clamp_kwh:
            raise wrong(f"must end with clamp_kwh = {self.clamp_kwh}: every day lies in a bin", "bins_kwh")
        return self


AnySeries = Annotated[Mean | Distribution, Discriminator("statistic")]
