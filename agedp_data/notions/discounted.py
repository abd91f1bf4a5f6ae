"""Discounted differential privacy: losses that count less as they age (Farokhi, ICCPS 2020: [F])."""

from __future__ import annotations

from typing import ClassVar, Literal, Self

from pydantic import model_validator

from agedp_data.notions.notion import Promise
from agedp_data.notions.parameters import Amount, Days, Epsilon, wrong


class Discounted(Promise):
    """The discounted sum of the losses is at most `epsilon` at every day ([F] Definitions 10 and 14).

    A loss j days old counts rate^j ("exponential") or 1/(1 + rate j) ("hyperbolic").
    """

    name: ClassVar[str] = "discounted"

    notion: Literal["discounted"]
    discount: Literal["exponential", "hyperbolic"]
    rate: Amount
    epsilon: Epsilon
    schedule: Literal["renewal", "optimal", "constant", "classical", "paper"]
    horizon_days: Days | None = None
    clock: Literal["data-day", "publication-day"]

    @model_validator(mode="after")
    def _rate_and_horizon(self) -> Self:
        if self.discount == "exponential" and self.rate >= 1:
            raise wrong('must lie between 0 and 1 for discount = "exponential", both excluded', "rate")
        if self.schedule == "optimal" and self.horizon_days is None:
            raise wrong('is missing; schedule = "optimal" needs the number of days', "horizon_days")
        if self.schedule != "optimal" and self.horizon_days is not None:
            raise wrong('is used by schedule = "optimal" only; remove it', "horizon_days")
        return self
