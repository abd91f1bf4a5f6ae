"""Schemas of the JSON inside a row: a contract's promise, a privacy statement and the public part of a model.

The hash chain detects a single edited row; somebody who recomputes the complete chain can write anything into these
three texts. They are validated once, when a row is read or written, so that later code can rely on every key it
reads. Unknown keys are ignored, because a newer agedp may write more.
"""

from __future__ import annotations

import json
from datetime import date
from typing import Annotated, Any, Final, Literal, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from agedp_data.config.contract_values import meaning, meaning_of
from agedp_data.config.input import LongColumns
from agedp_data.errors import ChainError, LedgerError
from agedp_data.leakage.bound_table import LeakageBound
from agedp_data.ledger.records import canonical, require_unicode
from agedp_data.parameters import AgeDays
from agedp_data.series.series import Distribution, series_in

FIRST_DATE, LAST_DATE = date(1970, 1, 1), date(2999, 12, 31)
"""Range of all dates in a ledger, so that later date arithmetic cannot overflow."""

_MAX_DEPTH: Final = 32
_STEPS_PER_DAY: Final = 86_400


def is_date(text: str) -> bool:
    """Return whether a text is an ISO date in the range that a ledger permits.

    >>> is_date("2026-03-04"), is_date("2026-3-4"), is_date("9999-12-31")
    (True, False, False)
    """
    try:
        day = date.fromisoformat(text)
    except ValueError:
        return False
    return day.isoformat() == text and FIRST_DATE <= day <= LAST_DATE


def _date(text: str) -> str:
    if not is_date(text):
        raise ValueError("no ISO date")
    return text


_Date = Annotated[str, AfterValidator(_date)]
_Number = Annotated[str, Field(pattern=r"^[0-9]{1,20}(\.[0-9]{1,20})?$")]
_Amount = Annotated[str, Field(pattern=r"^([0-9]{1,40}(\.[0-9]{1,9})?|infinite|unlimited)$")]
_Factor = Annotated[str, Field(pattern=r"^([0-9]{1,400}(\.[0-9]{1,2})?|[0-9]\.[0-9]e[0-9]{1,20}|infinite)?$")]
_Households = Annotated[int, Field(ge=1, le=1_000_000_000)]
_Count = Annotated[int, Field(ge=0, le=1_000_000_000)]


class _Schema(BaseModel):
    model_config = ConfigDict(strict=True, frozen=True, extra="ignore")


def _require_all_keys(columns: LongColumns) -> LongColumns:
    """Refuse a contract that leaves a key to its default: a contract writes all keys."""
    if columns.model_fields_set != set(LongColumns.model_fields):
        raise ValueError("a key is missing")
    return columns


class _Input(_Schema):
    dataset: str
    interval_minutes: Literal[15, 30, 60] = 30
    columns: Annotated[LongColumns, AfterValidator(_require_all_keys)] | None = None


class _Population(_Schema):
    name: str
    min_households: _Households


class _Schedule(_Schema):
    mode: str
    first_day: _Date
    last_day: _Date | None = None


class _Terms(_Schema):
    notion: str
    max_day_epsilon: _Number
    epsilon_total: _Number | Literal["unlimited"]
    age_days: AgeDays | None = None


class _Series(_Schema):
    statistic: str
    clamp_kwh: _Number
    share: _Number
    by: str | None = None


class _Named(_Schema):
    hash: str | None = None


class PromiseSchema(_Schema):
    """The keys of a contract that agedp reads, validated; unknown keys are ignored."""

    input: _Input
    population: _Population
    schedule: _Schedule
    promise: _Terms
    series: Annotated[dict[str, _Series], Field(min_length=1)]
    model: _Named | None = None


class _Days(_Schema):
    first: _Date | Literal[""]
    last: _Date | Literal[""]
    released: _Count
    skipped: list[_Date]


class _PublishedSchema(_Schema):
    first: _Date | Literal[""]
    last: _Date | Literal[""]


class _Figure(_Schema):
    name: str
    epsilon: _Amount
    kind: str
    about: str
    assumption: str
    factor: _Factor = ""
    limit: _Amount | Literal[""] = ""


class _Version(_Schema):
    registered: str
    changes: list[str]


class _Ending(_Schema):
    spent: _Amount
    left: _Amount
    last_day: str
    because: Literal["promise", "period", "broken", ""]


class _Adds(_Schema):
    day: _Amount
    total: _Amount


class _Second(_Schema):
    in_ledger: _Count
    adds: _Adds
    text: str


class _LocationSchema(_Schema):
    id: str
    head: str


class StatementSchema(_Schema):
    """The keys of a privacy statement that agedp reads, validated; unknown keys are ignored."""

    rehearsal: int
    population: str
    days: _Days
    published: _PublishedSchema
    contract: PromiseSchema
    version: Annotated[int, Field(ge=1, le=1_000_000_000)]
    protects: str
    not_protected: list[str]
    figures: list[_Figure]
    model: dict[str, Any]
    warnings: list[str]
    notes: list[str]
    ledger: _LocationSchema
    software: dict[str, str] = {}
    from_whom: str = ""
    versions: list[_Version] = []
    ending: _Ending | None = None
    second_population: _Second | None = None
    title: str = ""
    source: str = ""
    licence: str = ""
    contact: str = ""


class _PublicPart(_Schema):
    envelope: dict[str, Any]


_AnySchema = TypeVar("_AnySchema", bound=_Schema)


def parse_promise(text: str) -> PromiseSchema:
    """Return a contract's promise, validated.

    Raises:
        ValueError: the text differs in form from what agedp writes; the message names the key.
    """
    value = _parse_json(text, "the promise")
    if canonical(value) != text:
        raise ValueError("the promise is not canonical JSON")
    promise = _validate(PromiseSchema, _meaning_of_promise(value), "the promise")
    parse_distributions(text)
    return promise


def _meaning_of_promise(value: object) -> object:
    try:
        return meaning(value) if isinstance(value, dict) else value
    except LedgerError as error:
        raise ValueError(str(error)) from None


def parse_distributions(text: str) -> dict[str, Distribution]:
    """Return the distributions that a contract publishes, by the name of their series.

    Raises:
        ValueError: a distribution without form or bins as agedp writes them.
    """
    try:
        series = meaning_of(text)["series"].items()
        parsed = {name: series_in(terms) for name, terms in series if terms["statistic"] == "distribution"}
    except (ValueError, LookupError, TypeError, AttributeError, ArithmeticError):
        raise ValueError("the promise is not as agedp writes one: a distribution without its form or bins") from None
    return {name: terms for name, terms in parsed.items() if isinstance(terms, Distribution)}


def parse_statement(text: str) -> StatementSchema:
    """Return a privacy statement, validated.

    Raises:
        ValueError: the text differs in form from what agedp writes; the message names the key.
    """
    return _validate(StatementSchema, _parse_json(text, "the statement"), "the statement")


def require_leakage_bound(text: str) -> None:
    """Check that a model's public part contains a valid leakage bound, under the key `envelope`.

    Raises:
        ValueError: the leakage bound is missing or invalid, has more than one step per second, or no total variations.
    """
    public = _validate(_PublicPart, _parse_json(text, "the model"), "the model")
    try:
        bound = LeakageBound.from_json(public.envelope)
    except (ChainError, ValueError, LookupError, TypeError, AttributeError, ArithmeticError):
        raise ValueError("the model contains no leakage bound") from None
    if bound.steps_per_day > _STEPS_PER_DAY or "total_variation" not in bound.methods:
        raise ValueError("the model contains a bound of more than one step per second, or without total variations")


def _parse_json(text: str, subject: str) -> object:
    """Return the JSON value of a text; it may contain only strings, integers, booleans, lists and objects."""
    try:
        value: object = json.loads(text)
        require_unicode(text, value)
        _require_plain(value, _MAX_DEPTH)
    except (ValueError, RecursionError):
        raise ValueError(f"{subject} is not canonical JSON") from None
    return value


def _require_plain(value: object, depth: int) -> None:
    match value:
        case str() | int() if depth:
            return
        case list() if depth:
            for item in value:
                _require_plain(item, depth - 1)
        case dict() if depth:
            for item in value.values():
                _require_plain(item, depth - 1)
        case _:
            raise ValueError("neither text, nor a whole number, nor a list or object of them")


def _validate(schema: type[_AnySchema], value: object, subject: str) -> _AnySchema:
    try:
        return schema.model_validate(value)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        key = ".".join(map(str, first["loc"])) or "it"
        raise ValueError(
            f"{subject} is not as agedp writes one: {ascii(key)[1:-1][:80]}: {first['msg'][:80]}"
        ) from None
