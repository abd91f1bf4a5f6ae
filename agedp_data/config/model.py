"""[model]: what is held to be known about the households, declared by the user or estimated from readings."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from decimal import Decimal
from typing import Annotated, Any, Literal, Self, get_args

from pydantic import Discriminator, Field, PlainValidator, model_validator

from agedp_data.chains.represented import RepresentativeValues, representatives
from agedp_data.config.places import OptionalPlace, SharedFolder
from agedp_data.config.schedule import day
from agedp_data.errors import ChainError, LedgerError
from agedp_data.notions.parameters import (
    MANY_DAYS,
    Fraction01,
    Method,
    Section,
    Text,
    ascending,
    positive_kwh,
    watt_hours,
    wrong,
)

Step = Literal["half-hour", "day"]
Memory = Literal["one", "pair", "trailing-mean"]
METHODS: tuple[Method, ...] = get_args(Method)
MANY_STATES = 64
"""Of a chain with a longer memory; a year of days fills fewer."""


class ModelSection(Section):
    """What both sources have in common."""

    source: str
    """Stated by you, or counted from readings by `agedp calibrate`."""
    assume: Literal["curve", "markov"]
    """Assumption: "curve" states a total variation for each age and nothing else; "markov" states a Markov chain, from
    which bounds on several releases follow.
    """

    @property
    def methods(self) -> tuple[Method, ...]:
        """Return the ways in which a risk can be read off this model, the sharpest first."""
        return METHODS

    @property
    def allowing(self) -> str:
        """Return why other methods are not among them, for messages."""
        return ""

    @property
    def sharpest(self) -> Method:
        """Return the method of the figures that nobody chose one for."""
        return self.methods[0]


def _kernel_step(data: dict[str, Any]) -> Step | None:
    return "day" if data.get("kernel") is not None else None


class DeclaredModel(ModelSection):
    """A forgetting curve or a kernel from elsewhere: nothing computed from the readings is published.

    A kernel's `step` is a day where nothing else is said: of the two readings the one that forgets more slowly.
    """

    source: Literal["declared"]
    curve: OptionalPlace = None
    """CSV file `age_days,total_variation`; the total variation never rises with age."""
    kernel: OptionalPlace = None
    """File of a transition matrix, instead of `curve`."""
    step: Step | None = Field(default_factory=_kernel_step)
    """Step of the transition matrix; a day unless written."""
    basis: Text
    """Source of the curve or the transition matrix; quoted in the statement."""

    @property
    def methods(self) -> tuple[Method, ...]:
        """Return all methods for a kernel; a curve is nothing but total variations."""
        return ("total_variation",) if self.curve is not None else METHODS

    @property
    def allowing(self) -> str:
        """Return what a curve lacks."""
        return 'needs a chain; a declared curve allows "total_variation" only'

    @model_validator(mode="after")
    def _curve_or_kernel(self) -> Self:
        if (self.curve is None) == (self.kernel is None):
            raise wrong('source = "declared" takes exactly one of curve and kernel', "curve")
        if self.kernel is None and self.step is not None:
            raise wrong("is the step of a kernel; a curve has its ages, remove it", "step")
        return self


def _edges(value: object) -> str | tuple[Decimal, ...]:
    if isinstance(value, str):
        if value not in ("quantile", "equal-width"):
            raise wrong('must be "quantile", "equal-width" or a list of public kWh values')
        return value
    if not isinstance(value, list):
        raise wrong('must be "quantile", "equal-width" or a list of public kWh values')
    return ascending(value, positive_kwh)


def _period(value: object) -> tuple[date, date]:
    if not isinstance(value, list | tuple) or [type(day) for day in value] != [date, date]:
        raise wrong("must be two dates without quotes, such as [2012-01-01, 2012-12-31]")
    first, last = day(value[0]), day(value[1])
    if last < first:
        raise wrong("ends before it begins")
    return first, last


def _ages(value: object) -> tuple[int, ...]:
    ages = ascending(value, _age)
    return tuple(int(age) for age in ages)


def _age(value: object) -> Decimal:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= MANY_DAYS:
        raise wrong(f"must be whole days from 1 to {MANY_DAYS}")
    return Decimal(value)


class EstimatedModel(ModelSection):
    """Chains counted from readings by `agedp calibrate`, whose envelope is published knowingly."""

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
    """Memory of a state: one step, a pair of days, or a day and whether the mean of the last week was high or low."""
    min_visits: Annotated[int, Field(ge=1, le=1_000_000_000)]
    """A state with fewer visits counts as total variation 1 at every age, which gives no credit."""
    confidence: Literal["plug-in", "sampling-bound"]
    """Estimated transitions as they are, or with a confidence bound on their sampling error."""
    level: Fraction01 | None = None
    """Confidence level of that bound; required for "sampling-bound"."""
    ages_days: Annotated[tuple[int, ...], PlainValidator(_ages)] = (1, 2, 3, 7, 14, 28)
    """Ages and gaps at which the leakage bound is tabulated and the chain is tested."""
    publish: Literal["envelope"]
    """Acknowledgement: the leakage bound (envelope) is computed from readings and published without noise."""

    @property
    def public_states(self) -> RepresentativeValues | None:
        """Return the states that everybody knows; None where each household has cuts of its own."""
        if isinstance(self.edges, str):
            return None
        return RepresentativeValues(self.step, tuple(watt_hours(edge) for edge in self.edges))

    @property
    def chain_states(self) -> int:
        """Return how many states the chain has: of days alone, of pairs of days, or of days in one of two regimes."""
        return {"one": self.states, "pair": self.states**2, "trailing-mean": 2 * self.states}[self.memory]

    @property
    def methods(self) -> tuple[Method, ...]:
        """Return all methods for one kernel taken as counted; bounds by its spectrum are about nothing else."""
        plain = self.chain == "homogeneous" and self.confidence == "plug-in"
        return METHODS if plain else ("tight", "total_variation")

    @property
    def allowing(self) -> str:
        """Return which key leaves no spectrum to bound by."""
        key, value = ("chain", self.chain) if self.chain == "cyclic" else ("confidence", self.confidence)
        return f'rests on the spectrum of one kernel; [model] {key} = "{value}" allows "tight" and "total_variation"'

    @model_validator(mode="after")
    def _parts_agree(self) -> Self:
        if not isinstance(self.edges, str) and len(self.edges) != self.states - 1:
            raise wrong(f"must list {self.states - 1} values for {self.states} states", "edges")
        if self.chain == "cyclic" and self.step == "day":
            raise wrong('has a kernel for each half-hour of the day; it needs step = "half-hour"', "chain")
        if self.memory != "one" and self.step != "day":
            raise wrong('is of days; it needs step = "day"', "memory")
        if self.memory != "one" and self.chain_states > MANY_STATES:
            what = f'is too many for memory = "{self.memory}", which makes {self.chain_states} of them'
            raise wrong(f"{what}; at most {MANY_STATES} are counted", "states")
        if self.confidence == "plug-in" and self.level is not None:
            raise wrong('is not used by confidence = "plug-in"; remove it', "level")
        if self.confidence != "plug-in" and self.level is None:
            raise wrong(f'is missing; confidence = "{self.confidence}" needs one such as 0.95', "level")
        return self


def states_in(terms: Mapping[str, Any]) -> RepresentativeValues | None:
    """Return the states that a contract's model has for everybody, None if it has none.

    >>> states_in({"model": {"step": "day", "edges": ["4", "8"]}}).counts_as_wh
    (2000, 6000, 10000)

    Raises:
        LedgerError: a contract that does not say what agedp writes of a model.
    """
    model = terms.get("model", {})
    if not isinstance(model.get("edges"), list):
        return None
    try:
        found = RepresentativeValues(model["step"], tuple(watt_hours(Decimal(edge)) for edge in model["edges"]))
        representatives(found.edges_wh)
    except (ChainError, ArithmeticError, ValueError, LookupError, TypeError):
        raise LedgerError("a contract in the ledger holds states that this agedp does not know; update agedp") from None
    return found


AnyModel = Annotated[DeclaredModel | EstimatedModel, Discriminator("source")]
