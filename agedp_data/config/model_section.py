"""[model]: the model of temporal correlation, declared by the user or estimated from readings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Annotated, Any, Literal, Self, get_args

from pydantic import Discriminator, Field, PlainValidator, TypeAdapter, ValidationError, WithJsonSchema, model_validator

from agedp_data import parameters
from agedp_data.config.paths import OptionalLocation, SharedFolder
from agedp_data.config.schedule import day
from agedp_data.epsilon import exact_text
from agedp_data.markov.states import RepresentativeValues
from agedp_data.notions import AgeDependent, AnyPromise

Step = Literal["half-hour", "day"]
Memory = Literal["one", "pair", "trailing-mean"]
METHODS: tuple[parameters.Method, ...] = get_args(parameters.Method)


class ModelSection(parameters.Section):
    """The keys that declared and estimated models share."""

    source: str
    """Stated by you, or counted from readings by `agedp calibrate`."""
    assume: Literal["curve", "markov"]
    """"curve" states a total variation for each age and nothing else; "markov" a Markov chain, from which bounds on
    several releases follow.
    """

    @property
    def methods(self) -> tuple[parameters.Method, ...]:
        """The methods that bound a risk by this model, the tightest first."""
        return METHODS

    @property
    def exclusion_reason(self) -> str:
        """The reason why other methods are not permitted, for messages."""
        return ""

    @property
    def tightest_method(self) -> parameters.Method:
        """The method of bounds for which the run file names none."""
        return self.methods[0]


def _kernel_step(data: dict[str, Any]) -> Step | None:
    return "day" if data.get("kernel") is not None else None


class DeclaredModel(ModelSection):
    """A total-variation curve or a transition matrix from another source: nothing is computed from the readings.

    The default `step` of a transition matrix is a day, the slower mixing of the two possible meanings.
    """

    source: Literal["declared"]
    curve: OptionalLocation = None
    """CSV file `age_days,total_variation`; the total variation never rises with age."""
    kernel: OptionalLocation = None
    """File of a transition matrix, instead of `curve`."""
    step: Step | None = Field(default_factory=_kernel_step)
    """Step of the transition matrix; a day unless written."""
    basis: parameters.Text
    """Source of the curve or the transition matrix; quoted in the statement."""

    @property
    def methods(self) -> tuple[parameters.Method, ...]:
        """All methods for a transition matrix; a curve consists of total variations only."""
        return ("total_variation",) if self.curve is not None else METHODS

    @property
    def exclusion_reason(self) -> str:
        """The reason why a curve permits one method only."""
        return 'needs a chain; a declared curve allows "total_variation" only'

    @model_validator(mode="after")
    def _curve_or_kernel(self) -> Self:
        if (self.curve is None) == (self.kernel is None):
            raise parameters.wrong('source = "declared" takes exactly one of curve and kernel', "curve")
        if self.kernel is None and self.step is not None:
            raise parameters.wrong("is the step of a kernel; a curve has its ages, remove it", "step")
        return self


def _edges(value: object) -> str | tuple[Decimal, ...]:
    if isinstance(value, str) and value in ("quantile", "equal-width"):
        return value
    if not isinstance(value, list):
        raise parameters.wrong('must be "quantile", "equal-width" or a list of public kWh values')
    return parameters.ascending(value, parameters.positive_kwh)


def _acceptance(value: object) -> object:
    if value is not True:
        raise parameters.wrong("must be true, or absent")
    return value


_TRUE = WithJsonSchema({"const": True})


def _period(value: object) -> tuple[date, date]:
    if not isinstance(value, list | tuple) or [type(day) for day in value] != [date, date]:
        raise parameters.wrong("must be two dates without quotes, such as [2012-01-01, 2012-12-31]")
    first, last = day(value[0]), day(value[1])
    if last < first:
        raise parameters.wrong("ends before it begins")
    return first, last


def _ages(value: object) -> tuple[int, ...]:
    ages = parameters.ascending(value, _age)
    return tuple(int(age) for age in ages)


def _age(value: object) -> Decimal:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= parameters.MANY_DAYS:
        raise parameters.wrong(f"must be whole days from 1 to {parameters.MANY_DAYS}")
    return Decimal(value)


@dataclass(frozen=True, slots=True)
class SelectionTerms:
    """Terms of a private selection: its privacy loss, the share of households below the choice, and its failures."""

    epsilon: Decimal
    coverage: Decimal
    failure_probability: Decimal


class QuantileQuestion(parameters.Section):
    """A private quantile over the households that 0.2 drew, as contracts and stored models have it."""

    of: Literal["spectral-gap", "total-variation"]
    age_days: Annotated[int, Field(ge=1, le=parameters.MANY_DAYS)] | None = None
    probability: parameters.Fraction01
    epsilon: parameters.DrawEpsilon


def _quantiles(value: object) -> tuple[QuantileQuestion, ...]:
    """Return the questions of a list of inline tables; an empty list would ask nothing."""
    try:
        return TypeAdapter(parameters.ListOf[QuantileQuestion]).validate_python(value)
    except ValidationError:
        raise parameters.wrong(
            "must be the list of tables of 0.2; it is withdrawn, so remove it from a new run file"
        ) from None


_QUANTILES = WithJsonSchema({"type": "array", "items": {"type": "object"}})

_SELECTION: Mapping[str, str] = {
    "selection_epsilon": "1",
    "coverage": "0.95",
    "failure_probability": "0.000001",
    "family": "",
    "quantiles": "",
}
"""Keys of publish = "private", each with an example if it is required."""


class EstimatedModel(ModelSection):
    """Chains estimated from readings by `agedp calibrate`: their leakage bound without noise, or a private choice."""

    source: Literal["estimated"]
    file: SharedFolder
    """Folder to which `agedp calibrate` writes the model. Never a URL."""
    period: Annotated[tuple[date, date], PlainValidator(_period)]
    """First and last day of the readings from which the chains are estimated."""
    step: Step
    """Step of the chain."""
    states: Annotated[int, Field(ge=2, le=1000)] = 12
    """Number of states of a household's chain."""
    edges: Annotated[str | tuple[Decimal, ...], PlainValidator(_edges)]
    """State edges: each household's own quantiles, equal parts of its own range, or public kWh values, one fewer than
    states.
    """
    chain: Literal["homogeneous", "cyclic"]
    """One transition matrix (time-homogeneous), or one for each half-hour of the day (cyclic)."""
    memory: Memory = "one"
    """Withdrawn with 0.3 but for "one", a step: only a population that 0.2 began goes on, under its stored model."""
    min_visits: Annotated[int, Field(ge=1, le=1_000_000_000)]
    """A state with fewer visits counts as total variation 1 at every age, which gives no credit."""
    confidence: Literal["plug-in", "sampling-bound"]
    """Estimated transitions as they are, or with a confidence bound on their sampling error."""
    level: parameters.Fraction01 | None = None
    """Confidence level of that bound; required for "sampling-bound"."""
    ages_days: Annotated[tuple[int, ...], PlainValidator(_ages), parameters.NUMBERS] = (1, 2, 3, 7, 14, 28)
    """Ages and gaps at which the leakage bound is tabulated and the chain is tested."""
    publish: Literal["envelope", "private"]
    """What is published: "envelope" acknowledges that the leakage bound is computed from readings and published without
    noise; "private" publishes the member of a public family that a private selection chooses.
    """
    selection_epsilon: Annotated[parameters.DrawEpsilon | None, parameters.LATER] = None
    """Privacy loss of the selection, about all readings of a household in the period; for "private", and required."""
    coverage: Annotated[parameters.Fraction01 | None, parameters.LATER] = None
    """Share of the households whose chains lie below the selected bound; for "private", and required."""
    failure_probability: Annotated[parameters.Fraction01 | None, parameters.LATER] = None
    """Probability with which fewer households do; for "private", and required."""
    family: OptionalLocation = None
    """CSV file of the family: `age_days`, then the total variations of each member; for "private". Without it, ten
    members decay with 1/4, 1/2, ..., 64 days, and not at all.
    """
    quantiles: Annotated[
        tuple[QuantileQuestion, ...] | None, PlainValidator(_quantiles), _QUANTILES, parameters.LATER
    ] = None
    """Withdrawn with 0.3: only a population that 0.2 began goes on, under its stored model; its draws stay charged."""

    accept_unverified_model: Annotated[Literal[True] | None, PlainValidator(_acceptance), _TRUE, parameters.FREE] = None
    """`true` accepts that `risk` or `alpha` rests on chains that one dataset can contradict but never verify. Required
    when such a promise is first registered or amended to another estimated model; refused without one.
    """

    @property
    def public_states(self) -> RepresentativeValues | None:
        """The public states; None if each household has its own state edges."""
        if isinstance(self.edges, str):
            return None
        return RepresentativeValues(self.step, tuple(parameters.watt_hours(edge) for edge in self.edges))

    @property
    def is_private(self) -> bool:
        """Whether a private selection chooses what is published."""
        return self.publish == "private"

    @property
    def selection(self) -> SelectionTerms | None:
        """The terms of the private selection; None for an envelope."""
        if self.selection_epsilon is None or self.coverage is None or self.failure_probability is None:
            return None
        return SelectionTerms(self.selection_epsilon, self.coverage, self.failure_probability)

    @property
    def methods(self) -> tuple[parameters.Method, ...]:
        """All methods for one plug-in kernel that is published itself; spectral bounds apply to no other model."""
        is_plug_in_homogeneous = self.chain == "homogeneous" and self.confidence == "plug-in"
        return METHODS if is_plug_in_homogeneous and not self.is_private else ("tight", "total_variation")

    @property
    def exclusion_reason(self) -> str:
        """The key that excludes spectral bounds."""
        chosen = "publish" if self.is_private else "chain" if self.chain == "cyclic" else "confidence"
        key, value = chosen, getattr(self, chosen)
        return f'rests on the spectrum of one kernel; [model] {key} = "{value}" allows "tight" and "total_variation"'

    @model_validator(mode="after")
    def _parts_agree(self) -> Self:
        if not isinstance(self.edges, str) and len(self.edges) != self.states - 1:
            raise parameters.wrong(f"must list {self.states - 1} values for {self.states} states", "edges")
        if self.chain == "cyclic" and self.step == "day":
            raise parameters.wrong('has a kernel for each half-hour of the day; it needs step = "half-hour"', "chain")
        if self.confidence == "plug-in" and self.level is not None:
            raise parameters.wrong('is not used by confidence = "plug-in"; remove it', "level")
        if self.confidence != "plug-in" and self.level is None:
            raise parameters.wrong(f'is missing; confidence = "{self.confidence}" needs one such as 0.95', "level")
        return self

    @model_validator(mode="after")
    def _selection_is_complete(self) -> Self:
        present = [key for key in _SELECTION if getattr(self, key) is not None]
        if present and not self.is_private:
            raise parameters.wrong('is not used by publish = "envelope"; remove it', present[0])
        if missing := [key for key, example in _SELECTION.items() if example and key not in present]:
            examples = ", ".join(f"{key} (such as {_SELECTION[key]})" for key in missing)
            if self.is_private:
                raise parameters.wrong(f'is missing; publish = "private" needs {examples}', missing[0])
        return self


AnyModel = Annotated[DeclaredModel | EstimatedModel, Discriminator("source")]


# --------------------------------------------------------------------------------------------------
# [model] accept_unverified_model: a promise that rests on an estimated model is accepted knowingly, once.
#
# `agedp calibrate` compares the model with the readings, and its verdict is confidential: a refusal that depended on
# it would publish it. So the key is required whatever the verdict, when the promise is first registered or amended to
# another estimated model. It is free: no contract contains it, and a series that began without it goes on.
# --------------------------------------------------------------------------------------------------


def missing_acceptance(promise: AnyPromise, model: AnyModel | None) -> str:
    """Return why a new registration is refused without the key, as text for a message; "" if it is not."""
    bound = _bound_by_model(promise, model)
    if not bound or (isinstance(model, EstimatedModel) and model.accept_unverified_model):
        return ""
    model_text = f"{bound} rests on an estimated model, which one dataset can contradict but never verify"
    instead = "promise epsilon_per_day" if isinstance(promise, AgeDependent) else "declare a model"
    remedy = f"Write accept_unverified_model = true, or {instead}."
    return f"[model] accept_unverified_model is missing: {model_text}. {remedy}"


def acceptance_problems(promise: AnyPromise, model: AnyModel | None) -> Iterator[str]:
    """Yield what is wrong with the key in a few words: it is unused where no promised bound rests on the model."""
    is_accepted = isinstance(model, EstimatedModel) and model.accept_unverified_model
    if is_accepted and not _bound_by_model(promise, model):
        yield "is used only by a [promise] with risk or alpha; remove it"


def accepted(model: AnyModel | None) -> AnyModel | None:
    """Return a model as a run file that accepts it as unverified has it, for releases of synthetic households.

    An audit registers the promise in a ledger of its own, and draws nothing about anybody.
    """
    if not isinstance(model, EstimatedModel):
        return model
    return model.model_copy(update={"accept_unverified_model": True})


def _bound_by_model(promise: AnyPromise, model: AnyModel | None) -> str:
    """Return the promised bound that rests on an estimated model, as text; "" where none does.

    An age-dependent promise of `epsilon_per_day` has no such bound: its risk is stated, and decides no noise.
    """
    key = "risk" if isinstance(promise, AgeDependent) else promise.TEXT.epsilon_key
    bound = getattr(promise, key)
    if not isinstance(model, EstimatedModel) or not promise.needs_model or bound is None:
        return ""
    return f"{key} = {exact_text(bound)}"
