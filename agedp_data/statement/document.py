"""The privacy statement of a release: its content, validated when it is read, and the JSON schema of statement.json.

    {"schema": "agedp-statement-2", "population": "london", "figures": [{"name": "day", "epsilon": "0.5", ...}], ...}

A statement contains strings, integers and lists only; values of epsilon are exact decimal text. STATEMENT.md, the
report, the data package and the checks of a release folder read its attributes.

Decisions:

* `schemas/statement-2.json` contains what `schema` returns; published statements name that file, so it accepts and
  refuses what it always did.
* Keys with a default are those that statements of the first schema lack; the schema requires them.
* Attributes have the terms of the glossary where a key has another name: `bounds` is `figures`, `scope` is `about`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from decimal import Decimal
from typing import Annotated, Any, Final, Literal, NamedTuple

from pydantic import AfterValidator, ConfigDict, Field, WithJsonSchema

from agedp_data import clock
from agedp_data.config.contract_document import (
    EPSILON,
    UNCHECKED,
    ContractDocument,
    DocumentPart,
    DocumentSchema,
    IsoDate,
    SeriesTerms,
    read_document,
)
from agedp_data.epsilon import round_nano
from agedp_data.foreign_files import parse_json
from agedp_data.messages import sentence_start
from agedp_data.notions.notion import ASSUMPTION_FREE
from agedp_data.notions.publication import Event, Events
from agedp_data.series.series import STATISTICS

# --------------------------------------------------------------------------------------------------
# The model in a statement, and the draws from the readings by which a private selection chose it.
# --------------------------------------------------------------------------------------------------

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

PERIOD_WORDS: Final = {
    "day": "daily",
    "week": "weekly",
    "month": "monthly",
    "weekday-month": "monthly",
    "year": "yearly",
}
"""What rows about a period are called, the shortest first."""


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


# --------------------------------------------------------------------------------------------------
# How exact the newest values of a series are, as a statement contains it: an error by the noise alone.
#
# Example: a daily mean over 30 households with noise of scale 6,000 Wh in the sum differs from the mean without noise
# by at most 17,974 Wh / 30 = 0.6 kWh in 95 of 100 cases.
# --------------------------------------------------------------------------------------------------


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


# --------------------------------------------------------------------------------------------------
# The statement.
# --------------------------------------------------------------------------------------------------

SCHEMA: Final = "agedp-statement-2"
_MAX_VALUES: Final = 50_000
"""Values of a statement that is read: ten years of skipped days are 3,653."""


def _check_date(text: str) -> str:
    if text and not clock.is_date(text):
        raise ValueError("no ISO date")
    return text


_Cap = Annotated[str, Field(pattern=f"^({EPSILON}|unlimited)$"), AfterValidator(check_length)]
_Hash = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
_DateOrNone = Annotated[str, Field(pattern="^([0-9]{4}-[0-9]{2}-[0-9]{2})?$"), AfterValidator(_check_date)]


class ReleasedDays(DocumentPart):
    """Days of the data."""

    first: Annotated[_DateOrNone, Field(description="First released day; empty if none is.")]
    last: Annotated[_DateOrNone, Field(description="Last released day.")]
    released: Annotated[int, Field(ge=0, description="How many days are released.")]
    skipped: Annotated[
        list[_Date],
        Field(
            description="Days for which nothing was drawn and nothing will be, in order.",
            json_schema_extra={"uniqueItems": True},
        ),
    ]


class PublicationDates(DocumentPart):
    """UTC dates of first publication."""

    first: Annotated[_DateOrNone, Field(description="The earliest.")]
    last: Annotated[_DateOrNone, Field(description="The latest.")]


class SeriesDays(DocumentPart):
    """The days of a series for which rows were released under one contract."""

    series: Annotated[str, Field(min_length=1, description="Its name.")]
    first: Annotated[_Date, Field(description="First day.")]
    last: Annotated[_Date, Field(description="Last day.")]


class ContractVersion(DocumentPart):
    """One contract."""

    optional = frozenset({"contract", "released"})

    registered: Annotated[_Date, Field(description="UTC date of its registration; simulated in a rehearsal.")]
    changes: Annotated[
        list[str],
        Field(description="What it changed in the one before it, key by key: `key: old -> new`; empty for the first."),
    ]
    contract: Annotated[
        ContractDocument | None, Field(description="Its content; left out for the one in force, which stands above.")
    ] = None
    released: Annotated[
        list[SeriesDays] | None,
        Field(description="What was released under it, of each series; left out if there is one contract only."),
    ] = None


class StatedBound(DocumentPart):
    """One figure."""

    optional = frozenset({"conditional_days", "delta"})
    rules = {  # noqa: RUF012
        "if": {"properties": {"kind": {"const": ASSUMPTION_FREE}}},
        "then": {"properties": {"assumption": {"const": ""}}},
        "else": {"properties": {"assumption": {"minLength": 1}}},
        "dependentSchemas": {"delta": {"properties": {"factor": {"const": ""}}}},
    }

    name: Annotated[str, Field(min_length=1, description="Its name; a figure of an earlier model says so in its name.")]
    epsilon: Annotated[
        str,
        Field(pattern=f"^({EPSILON}|infinite)$", description="The figure, rounded up."),
        AfterValidator(check_length),
    ]
    delta: Annotated[
        DeltaText | None,
        Field(
            description="Probability that is added to e^epsilon times the probability of a result; left out if it is 0."
        ),
    ] = None
    factor: Annotated[
        str,
        Field(
            pattern=r"^([0-9]+(\.[0-9]{2})?|[0-9]\.[0-9]e[0-9]+|infinite)?$",
            description="e^epsilon, by which odds change at most, rounded up: to hundredths, from 1000 on to two "
            "digits (1.9e79). Empty for a sum of discounted losses and beside a delta, where it bounds no odds.",
        ),
        AfterValidator(check_length),
    ] = ""
    limit: Annotated[
        str,
        Field(
            pattern=f"^({EPSILON}|unlimited)?$",
            description="What further releases can make of it under the promise; empty if the promise does not bound "
            "it.",
        ),
        AfterValidator(check_length),
    ] = ""
    kind: Annotated[
        Literal["assumption-free", "conditional"],
        Field(
            description="True without an assumption about households, or true if the assumption is; with "
            "conditional_days only of what the noisy releases say."
        ),
    ]
    scope: str = Field(alias="about", min_length=1, description="What about one household it bounds.")
    assumption: Annotated[str, Field(description="On what it rests; empty if assumption-free.")]
    conditional_days: Annotated[
        str | None,
        Field(
            min_length=1,
            description="Days for which the figure does not hold unconditionally, because a model that was estimated "
            "from them is published without noise; nor does it for days that resemble them. Left out if there are "
            "none.",
        ),
    ] = None

    @property
    def is_unconditional(self) -> bool:
        """Return whether the bound needs no assumption."""
        return self.kind == ASSUMPTION_FREE

    @property
    def holds(self) -> str:
        """Return when the bound holds, always or under its assumption, and what published model it leaves out."""
        holds = "always" if self.is_unconditional else f"if {self.assumption}"
        if not self.conditional_days:
            return holds
        return (
            f"{holds}, of the noisy releases alone; with the published model, estimated without noise from the days "
            f"{self.conditional_days}, not about these days nor about days like them"
        )


class Ending(DocumentPart):
    """How long the promise goes on, if from here on every day is released when it is due."""

    optional = frozenset({"delta"})

    spent: Annotated[
        Amount,
        Field(
            description="Sum of the losses of all released days and calibration draws: the figure `total`; with a "
            "delta, the figure `total` at it."
        ),
    ]
    remaining: _Cap = Field(alias="left", description="What is left of epsilon_total.")
    delta: Annotated[
        DeltaText | None, Field(description="Delta of epsilon_total, of what is spent and left; left out if it is 0.")
    ] = None
    last_day: Annotated[
        _DateOrNone,
        Field(
            description="The last day that can be released, or was; empty if no end lies within a year of the newest "
            "day."
        ),
    ]
    reason: Literal["promise", "period", "broken", ""] = Field(
        alias="because",
        description="What ends it: the promise's caps, the last day of the schedule, a newer model by which the "
        "promise is broken already; empty if no end lies within a year.",
    )


class AddedLoss(DocumentPart):
    """What another population under the same promise may add."""

    optional = frozenset({"delta"})

    day: Annotated[_Cap, Field(description="To the figure `day`.")]
    total: Annotated[_Cap, Field(description="To the figure `total`, or to that with delta.")]
    delta: Annotated[
        DeltaText | None, Field(description="To the delta of that figure; left out if the promise has none.")
    ] = None


class SecondPopulation(DocumentPart):
    """What a household adds up to that is counted in another population as well."""

    in_ledger: Annotated[
        int,
        Field(
            ge=0,
            description="How many other populations this ledger holds; whether they share households is unknown.",
        ),
    ]
    adds: AddedLoss
    text: Annotated[str, Field(description="The same in words.")]


class StatedAccount(DocumentPart):
    """The largest losses of a household, in this population and all that share one, by the accounts of populations."""

    day: Annotated[Amount, Field(description="The largest loss about one day of a household, rounded up.")]
    total: Annotated[Amount, Field(description="The largest loss about all days of a household, rounded up.")]
    since: Annotated[_Date, Field(description="Date from which on the accounts count what others release.")]
    text: Annotated[str, Field(description="The same in words, and what the accounts cannot know.")]


class LossTogether(DocumentPart):
    """The loss of several households together: the pure losses of one, so many times."""

    households: Annotated[int, Field(ge=2, description="How many.")]
    day: Annotated[Amount, Field(description="About one day of each of them.")]
    total: Annotated[Amount, Field(description="About all their days.")]


class LedgerPlace(DocumentPart):
    """Where the statement stands."""

    id: Annotated[_Hash, Field(description="Hash of the ledger's first row.")]
    head: Annotated[_Hash, Field(description="Hash of the newest row that the statement tells of.")]


class StatedContract(NamedTuple):
    """A contract under which rows were released: its number, and the days of each released series."""

    version: int
    contract: ContractDocument
    days: Mapping[str, SeriesDays | ReleasedDays]

    @property
    def series(self) -> dict[str, SeriesTerms]:
        """Return the terms of the released series by name."""
        return {name: self.contract.series[name] for name in self.days}


class Statement(DocumentPart):
    """What is claimed about a release folder.

    Made from the ledger, the run file and the model's public part alone. Amounts of epsilon are exact decimal text,
    figures rounded up; there are no floating-point numbers.
    """

    model_config = ConfigDict(title="Statement of an agedp release (statement.json)")
    optional = frozenset({"title", "source", "licence", "contact", "draws", "household_account", "accuracy"}) | {
        "together",
        "signed_by",
    }

    schema_name: Annotated[str, WithJsonSchema({"const": SCHEMA})] = Field(
        SCHEMA, alias="schema", description="Which form this is."
    )
    rehearsal: Annotated[Literal[0, 1], Field(description="1: the dates are simulated and this is no publication.")]
    title: Annotated[str, Field(description="For people; from the run file.")] = ""
    source: Annotated[
        str, Field(description="Where the data come from; the attribution that their licence asks for.")
    ] = ""
    licence: Annotated[str, Field(description="Licence of the release.")] = ""
    contact: Annotated[str, Field(description="Whom to ask.")] = ""
    population: Annotated[str, Field(description="Name of the people to whom the promise is made.")]
    days: ReleasedDays
    published: PublicationDates
    contract: ContractDocument
    version: Annotated[
        int, Field(ge=1, description="How many contracts there were by then; the one in force is given above.")
    ]
    versions: Annotated[list[ContractVersion], Field(min_length=1, description="Every contract, oldest first.")] = []  # noqa: RUF012  (pydantic copies defaults)
    protects: Annotated[str, Field(description="What is protected.")]
    from_whom: Annotated[str, Field(description="From whom.")] = ""
    not_protected: Annotated[list[str], Field(min_length=1, description="What is not protected.")]
    bounds: list[StatedBound] = Field(
        alias="figures",
        min_length=2,
        description="What the releases come to so far, those without an assumption first: `day` and `total` head the "
        "list.",
    )
    draws: Annotated[
        list[StatedDraw] | None,
        Field(
            min_length=1,
            description="Draws of calibrations, which every figure counts as far as its scope touches their days; left "
            "out if there are none.",
        ),
    ] = None
    together: Annotated[
        list[LossTogether] | None,
        Field(
            min_length=1,
            description="The losses of several households together; figures with a model or delta have none.",
        ),
    ] = None
    signed_by: Annotated[
        str | None,
        Field(
            pattern="^[0-9a-f]{64}$", description="Fingerprint of the key that signs the folder; left out if none does."
        ),
    ] = None
    ending: Ending | None = None
    second_population: SecondPopulation | None = None
    household_account: StatedAccount | None = None
    accuracy: Annotated[
        list[StatedAccuracy] | None,
        Field(min_length=1, description="How exact the newest values of each series are; left out without a release."),
    ] = None
    model: StatedModel
    warnings: Annotated[
        list[str], Field(min_length=1, description="What to read before relying on a figure; fixed texts.")
    ]
    notes: Annotated[list[str], Field(description="What is particular about this release, to be read first.")]
    ledger: LedgerPlace
    software: Annotated[
        dict[str, str],
        Field(description="Versions of what computed it.", json_schema_extra={"required": ["agedp"]}),
    ] = {}  # noqa: RUF012  (pydantic copies defaults)

    @property
    def has_model(self) -> bool:
        """Return whether a model is stated."""
        return bool(self.model.content())

    @property
    def charges(self) -> Events:
        """Return the losses of the calibration draws, as notions count them."""
        return tuple(
            Event(draw.first_day, draw.last_day, round_nano(Decimal(draw.epsilon))) for draw in self.draws or ()
        )

    @property
    def unconditional_epsilons(self) -> dict[str, str]:
        """Return the assumption-free bounds by name."""
        return {bound.name: bound.epsilon for bound in self.bounds if bound.is_unconditional}

    @property
    def model_days(self) -> str:
        """Return the days from which a model was estimated that is published without noise, "" without such a model."""
        return next((bound.conditional_days for bound in self.bounds if bound.conditional_days), "")

    @property
    def stated_contracts(self) -> list[StatedContract]:
        """Return the contracts under which rows were released, oldest first; the one in force if that is not known."""
        stated = [
            StatedContract(number, version.contract or self.contract, {of.series: of for of in version.released})
            for number, version in enumerate(self.versions, 1)
            if version.released
        ]
        return stated or [StatedContract(self.version, self.contract, dict.fromkeys(self.contract.series, self.days))]

    @property
    def is_over(self) -> bool:
        """Return whether the last day that can be released is already released or skipped."""
        last = self.ending.last_day if self.ending is not None else ""
        return bool(last) and last <= max([self.days.last, *self.days.skipped])

    @property
    def citation(self) -> str:
        """Return how a release is cited."""
        ends = dict.fromkeys((self.days.first, self.days.last))
        days = f", {' to '.join(ends)}" if self.days.released else ""
        published = f", published {self.published.last}" if self.published.last else ""
        head = f"differentially private release of agedp, ledger head {self.ledger.head[:16]}"
        return f"{self.full_title}{days}{published}, {head}."

    @property
    def full_title(self) -> str:
        """Return the title of a release: that of the run file, or its statistic and population."""
        series = self.contract.series.values()
        statistic = next(statistic for statistic in STATISTICS if statistic.KIND in {of.statistic for of in series})
        periods = {PERIOD_WORDS[of.every or "day"] for of in series if of.statistic == statistic.KIND}
        shortest = next(word for word in PERIOD_WORDS.values() if word in periods)
        content = sentence_start(f"{shortest} {statistic.TITLE or statistic.CONTENT}")
        return self.title or f"{content} of {self.population}"

    def text(self) -> str:
        """Return the statement as the ledger stores it: JSON with sorted keys."""
        return json.dumps(self.content(), sort_keys=True, ensure_ascii=True)


def read_statement(text: str | bytes) -> Statement:
    """Return a statement from its JSON text, of any schema so far.

    Raises:
        ValueError: the text differs in form from what agedp writes; the message names the key.
    """
    return read_document(Statement, parse_json(text, max_values=_MAX_VALUES), "the statement")


def schema() -> dict[str, Any]:
    """Return the JSON schema of statement.json (draft 2020-12), which describes every key.

    >>> schema()["properties"]["schema"]["const"]
    'agedp-statement-2'
    """
    generated = Statement.model_json_schema(schema_generator=DocumentSchema)
    return {"$schema": DocumentSchema.schema_dialect, "$id": "urn:agedp:statement-2", **generated}
