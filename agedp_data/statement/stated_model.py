"""The model in a statement, and the draws from the readings by which a private selection chose it."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import AfterValidator, Field

from agedp_data.config.contract_document import EPSILON, UNCHECKED, DocumentPart, IsoDate

_MAX_DIGITS: Final = 500
_SELECTION = ("publish", "selection_epsilon", "coverage", "failure_probability", "households", "member")
"""Keys of a private selection."""


def check_length(text: str) -> str:
    """Return a number's text.

    Raises:
        ValueError: it has too many digits.
    """
    if len(text) > _MAX_DIGITS:
        raise ValueError("too many digits")
    return text


_Number = Annotated[str, Field(pattern=r"^[0-9]+(\.[0-9]+)?$"), AfterValidator(check_length)]
_Probability = Annotated[str, Field(pattern=r"^0\.[0-9]+$"), AfterValidator(check_length)]
Amount = Annotated[str, Field(pattern=f"^{EPSILON}$"), AfterValidator(check_length)]
DeltaText = Annotated[str, Field(pattern=r"^0\.[0-9]*[1-9]$"), AfterValidator(check_length)]
_Date = Annotated[IsoDate, Field(json_schema_extra={"format": "date"})]


class StatedDraw(DocumentPart):
    """One draw from the readings of a whole period, by which a model or a figure of it was chosen."""

    first_day: Annotated[_Date, Field(description="First day of the readings.")]
    last_day: Annotated[_Date, Field(description="Last day of the readings.")]
    asked: Annotated[str, Field(min_length=1, description="What was asked; ledger_rows.jsonl carries the question.")]
    epsilon: Annotated[Amount, Field(description="Its loss about all readings of a household in the period together.")]


class StatedModel(DocumentPart):
    """Public part of the model but its envelope, which ledger_rows.jsonl carries; empty without a model."""

    optional = frozenset({"source", "assume", "basis", "period", *_SELECTION})
    is_open = True
    rules = {"anyOf": [{"maxProperties": 0}, {"required": ["source", "assume"]}]}  # noqa: RUF012

    source: Annotated[
        Literal["declared", "estimated"] | None,
        Field(description="Declared in the run file, or estimated from protected readings."),
    ] = None
    assume: Annotated[
        Literal["curve", "markov"] | None,
        Field(description="Whether only single releases are read off the model, or their composition too."),
    ] = None
    basis: Annotated[str | None, Field(description="Where a declared model comes from.")] = None
    period: Annotated[list[str] | None, UNCHECKED] = None
    publish: Annotated[
        Literal["private"] | None,
        Field(description="A private selection chose it from a public family; left out for any other model."),
    ] = None
    selection_epsilon: Annotated[
        _Number | None, Field(description="Loss of the selection, about all readings of a household in the period.")
    ] = None
    coverage: Annotated[
        _Probability | None, Field(description="Share of the households whose estimated chains lie below the model.")
    ] = None
    failure_probability: Annotated[_Probability | None, Field(description="Probability with which fewer do.")] = None
    households: Annotated[
        int | None, Field(ge=1, description="How many households were on the roster in the period.")
    ] = None
    member: Annotated[int | None, Field(ge=1, description="Number of the selected member of the family.")] = None
