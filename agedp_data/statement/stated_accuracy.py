"""How exact the newest values of a series are, as a statement contains it: an error by the noise alone.

Example: a daily mean over 30 households with noise of scale 6,000 Wh in the sum differs from the mean without noise by
at most 17,974 Wh / 30 = 0.6 kWh in 95 of 100 cases.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from agedp_data.config.contract_document import DocumentPart, IsoDate
from agedp_data.statement.stated_model import Amount

_Date = Annotated[IsoDate, Field(json_schema_extra={"format": "date"})]


class StatedAccuracy(DocumentPart):
    """The error by the noise alone of the newest released values of a series, of its smallest group."""

    series: Annotated[str, Field(min_length=1, description="Series of the contract.")]
    day: Annotated[_Date, Field(description="Newest released day, or last day of the newest period.")]
    group: Annotated[str, Field(description="The group whose error is largest; empty if all groups have the same.")]
    households: Annotated[int, Field(ge=1, description="Its households; of periods its household-days.")]
    unit: Annotated[Literal["kWh", "households"], Field(description="Unit of the values and of the error.")]
    within: Annotated[
        Amount,
        Field(description="In 95 of 100 cases the noise of a value is at most this, either way; rounded up to 1e-9."),
    ]
