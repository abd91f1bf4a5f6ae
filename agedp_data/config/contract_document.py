"""A contract as a document: the keys of its text that agedp reads, validated, with the JSON schema of statements.

The same classes check a contract in the ledger and describe it in a statement; `contract.Contract` is what it means.
`DocumentPart` is the base of both documents.

Decisions:

* Readers are lenient: a later version may write more keys, an earlier one wrote fewer. A key that was read is kept, so
  that a document is written out again as it was.
* The JSON schema is strict about what this version writes: keys with a default are required there unless their class
  lists them as `optional`, and further keys are refused unless the class `is_open`.
* `UNCHECKED` marks keys whose values the published schema leaves open, although agedp checks them.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Mapping
from functools import cache
from inspect import cleandoc, getsource
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final, Literal, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, WithJsonSchema
from pydantic.json_schema import GenerateJsonSchema

from agedp_data import clock
from agedp_data.config.contract import Contract, meaning
from agedp_data.config.input import LongColumns
from agedp_data.parameters import LATER, AgeDays, Section
from agedp_data.series.series import BY_NAME, AnySeries, series_in

UNCHECKED: Final = WithJsonSchema({})
EPSILON: Final = r"(0|[1-9][0-9]*)(\.[0-9]{0,8}[1-9])?"
"""Pattern of an epsilon: whole nano-epsilon as exact decimal text."""
_NUMBER: Final = re.compile(r"[0-9]{1,20}(\.[0-9]{1,20})?")


def _complete_schema(schema: dict[str, Any], part: type[DocumentPart]) -> None:
    schema.setdefault("properties", {})
    schema["required"] = [key for key in schema["properties"] if key not in part.optional]
    schema["properties"] = {key: value for key, value in schema["properties"].items() if value}
    schema["additionalProperties"] = part.is_open
    schema |= part.rules
    if "title" not in part.model_config:
        schema.pop("title")


class DocumentPart(BaseModel):
    """An object in a document: validated when it is read, written out as it was, its JSON schema generated."""

    model_config = ConfigDict(
        strict=True, frozen=True, extra="allow", defer_build=True, json_schema_extra=_complete_schema
    )

    optional: ClassVar[frozenset[str]] = frozenset()
    is_open: ClassVar[bool] = False
    rules: ClassVar[Mapping[str, Any]] = {}
    """Further rules of the JSON schema, between keys."""

    def content(self) -> dict[str, Any]:
        """Return the JSON object as it was read or built, with the keys of later versions."""
        return self.model_dump(by_alias=True, exclude_unset=True)


class DocumentSchema(GenerateJsonSchema):
    """Generates the JSON schema of a document: a key may be absent but never null; no titles and no defaults."""

    def nullable_schema(self, schema: Any) -> dict[str, Any]:  # noqa: ANN401  (a core schema)
        """Return the schema of the value."""
        return self.generate_inner(schema["schema"])

    def default_schema(self, schema: Any) -> dict[str, Any]:  # noqa: ANN401  (a core schema)
        """Return the schema without its default."""
        return self.generate_inner(schema["schema"])

    def model_schema(self, schema: Any) -> dict[str, Any]:  # noqa: ANN401  (a core schema)
        """Return the schema of a table or an object; the text below a key in its class is the key's description."""
        generated = super().model_schema(schema)
        for key, text in _attribute_docstrings(schema["cls"]).items():
            if key in generated.get("properties", {}) and schema["cls"].model_fields[key].description is None:
                generated["properties"][key]["description"] = text
        return generated

    def normalize_name(self, name: str) -> str:
        """Return the name of a definition; a document's is that of what it describes."""
        return super().normalize_name(name).removesuffix("Document")

    def field_title_should_be_set(self, schema: Any) -> bool:  # noqa: ANN401, ARG002  (a core schema)
        """Leave titles out: descriptions say more."""
        return False


def _attribute_docstrings(model: type[BaseModel]) -> dict[str, str]:
    """Return the text below each key of a table or an object, of the class itself and of those it inherits from."""
    texts: dict[str, str] = {}
    for owner in reversed(model.__mro__):
        if issubclass(owner, Section | DocumentPart):
            inherited = {key: text for key, text in texts.items() if key not in owner.__annotations__}
            own = _own_docstrings(owner)
            one_line = {key: " ".join(text.split()) for key, text in own.items()}
            texts = inherited | (own if issubclass(owner, Section) else one_line)
    return texts


def _own_docstrings(model: type[BaseModel]) -> dict[str, str]:
    definition = _class_definitions(model.__module__).get(model.__name__)  # None: made by `create_model`, without texts
    return {
        attribute.target.id: cleandoc(below.value.value)
        for attribute, below in pairwise(getattr(definition, "body", ()))
        if isinstance(attribute, ast.AnnAssign) and isinstance(attribute.target, ast.Name)
        if isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant) and isinstance(below.value.value, str)
    }


@cache
def _class_definitions(module: str) -> dict[str, ast.stmt]:
    """Return the classes of a module by name, none without its source; it is parsed once for all of them."""
    try:
        body = ast.parse(getsource(sys.modules[module])).body
    except OSError:
        return {}
    return {definition.name: definition for definition in body if isinstance(definition, ast.ClassDef)}


_Part = TypeVar("_Part", bound=DocumentPart)


def read_document(kind: type[_Part], value: object, subject: str) -> _Part:
    """Return a document as its class describes it; `subject` names it in messages.

    Raises:
        ValueError: the value differs in form from what agedp writes; the message names the key.
    """
    try:
        return kind.model_validate(value)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        key = ".".join(map(str, first["loc"])) or "it"
        raise ValueError(
            f"{subject} is not as agedp writes one: {ascii(key)[1:-1][:80]}: {first['msg'][:80]}"
        ) from None


def _check_date(text: str) -> str:
    if not clock.is_date(text):
        raise ValueError("no ISO date")
    return text


def _check_number(text: str) -> str:
    if not _NUMBER.fullmatch(text):
        raise ValueError("no number")
    return text


def _check_cap(text: str) -> str:
    return text if text == "unlimited" else _check_number(text)


def _check_columns(columns: dict[str, Any]) -> dict[str, Any]:
    """Refuse a contract that leaves a key of [input.columns] to its default: a contract writes all keys."""
    required = {key for key, field in LongColumns.model_fields.items() if LATER not in field.metadata}
    if not required <= LongColumns.model_validate(columns).model_fields_set:
        raise ValueError("a key is missing")
    return columns


def text_schema(pattern: str) -> WithJsonSchema:
    """Return the JSON schema of a text of this pattern."""
    return WithJsonSchema({"type": "string", "pattern": pattern})


IsoDate = Annotated[str, AfterValidator(_check_date)]
Number = Annotated[str, AfterValidator(_check_number)]


class ContractInput(DocumentPart):
    """Layout of the readings and rules for reading them."""

    optional = frozenset({"interval_minutes", "columns"})
    is_open = True

    dataset: Annotated[str, UNCHECKED]
    interval_minutes: Annotated[Literal[5, 10, 15, 30, 60], UNCHECKED] = 30
    columns: Annotated[Annotated[dict[str, Any], AfterValidator(_check_columns)] | None, UNCHECKED] = None


class ContractPopulation(DocumentPart):
    """The people."""

    optional = frozenset({"shared_households"})

    name: str
    """Their name."""
    min_households: Annotated[int, Field(ge=1)]
    """A day or group with fewer is never released."""
    shared_households: Literal["count", "refuse"] = "count"
    """Whether households that another population, ledger or rehearsal counts too are counted together or not released.
    """


class ContractSchedule(DocumentPart):
    """When days are due."""

    optional = frozenset({"last_day", "rehearsal_on"})
    is_open = True

    mode: Literal["archive", "live", "rehearsal"]
    first_day: Annotated[IsoDate, UNCHECKED]
    last_day: Annotated[IsoDate | None, UNCHECKED] = None
    rehearsal_on: Literal["synthetic", "readings"] | None = None
    """Of a rehearsal: the households whose use was summed. Absent in earlier ones: readings."""


if TYPE_CHECKING:
    StatisticName = str
else:
    StatisticName = Literal[tuple(BY_NAME)]


class SeriesTerms(DocumentPart):
    """One series: its statistic and terms."""

    optional = frozenset(
        {"clamp_kwh", "half_hour_clamp_kwh", "above_kwh", "bins_kwh", "form"}
        | {"by", "every", "max_missing", "missing_kwh", "values"}
    )
    is_open = True

    statistic: StatisticName
    share: Number
    """Its part of each day's epsilon; of what a day says of a change by at most delta_kwh, if there is one."""
    clamp_kwh: Number | None = None
    """What a household's day counts at most, kWh. Absent: no use is counted."""
    half_hour_clamp_kwh: Number | None = None
    """Of a profile: what a household's half-hour counts at most, kWh."""
    above_kwh: Number | None = None
    """Of a layer above the first: only what exceeds this counts, kWh. Absent: 0."""
    by: str | Annotated[list[str], Field(min_length=2)] | None = None
    """Column of the roster whose groups are published; several, the finest first: groups are paths, the coarsest label
    first, joined by '/'.
    """
    every: Literal["day", "week", "month", "year", "weekday-month"] | None = None
    """Of a mean or profile: the calendar period that each row covers. Absent: day."""
    max_missing: Annotated[int | None, Field(ge=0)] = None
    """A day that lacks more readings counts as missing."""
    missing_kwh: str | None = None
    """What a missing household-day counts as, kWh."""
    form: Literal["histogram", "cumulative"] | None = None
    """Of a distribution: households in each range of use, or below the end of each but the last."""
    bins_kwh: Annotated[list[str] | None, Field(min_length=3)] = None
    """Of a distribution: where its ranges of use begin and end, kWh."""
    values: Annotated[str | None, UNCHECKED] = None

    def parse(self) -> AnySeries:
        """Return the series.

        Raises:
            ValueError: the keys are not those of a series.
        """
        return series_in(self.content())


class PromiseTerms(DocumentPart):
    """The notion and its parameters."""

    optional = frozenset({"age_days", "delta"})
    is_open = True

    notion: str
    """Which notion sets the noise."""
    max_day_epsilon: Annotated[Number, text_schema(f"^{EPSILON}$")]
    """Cap of any one day."""
    epsilon_total: Annotated[str, AfterValidator(_check_cap), text_schema(f"^({EPSILON}|unlimited)$")]
    """Sum at which the series ends; with delta the (epsilon, delta) loss of all days."""
    delta: Annotated[Number | None, text_schema(r"^0\.[0-9]{1,20}$")] = None
    """Probability in the bounds over several days; absent: 0."""
    age_days: Annotated[AgeDays | None, UNCHECKED] = None


class ContractModel(DocumentPart):
    """Settings of the model; `hash` names its public part in the ledger."""

    optional = frozenset({"hash"})
    is_open = True

    source: Annotated[str, UNCHECKED] = ""
    assume: Annotated[str, UNCHECKED] = ""
    hash: Annotated[str | None, UNCHECKED] = None


class ContractOutput(DocumentPart):
    """Present if a witness is used, or if release folders are signed."""

    optional = frozenset({"witness", "sign"})
    rules = {"minProperties": 1}

    witness: Literal["required"] | None = None
    """Another place, which is not published, confirms the newest head of the ledger: an older one is refused."""
    sign: Literal[True] | None = None
    """Every release folder has a signature, by the newest key that the ledger rows name."""


class ContractDocument(DocumentPart):
    """What is promised, as the ledger registered it: run-file keys with defaults written out, numbers as text."""

    optional = frozenset({"form", "needs", "model", "output"})

    version: Annotated[int, WithJsonSchema({"const": 1})] = 1
    """Format of the run file."""
    form: Annotated[int | None, Field(ge=2)] = None
    """Form of the contract; absent: 1."""
    needs: str | None = None
    """First version of agedp that reads this form."""
    input: ContractInput
    population: ContractPopulation
    schedule: ContractSchedule
    series: Annotated[dict[str, SeriesTerms], Field(min_length=1)]
    """By name, the statistics that are published."""
    promise: PromiseTerms
    model: ContractModel | None = None
    output: ContractOutput | None = None

    @property
    def terms(self) -> Contract:
        """The contract that the document means."""
        return Contract(meaning(self.content()))
