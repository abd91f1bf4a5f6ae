"""The run file as one frozen value, and the rules that hold between its tables.

Each table is validated by its own section. What two tables say together is judged here, by one rule a function: it
yields the table, the key and the problem in a few words. Example: with `mode = "live"` a promise without `age_days` has
a problem, ("promise", "age_days", "is missing; ...").

Decisions:

* All rules are asked, and the first problem is the message; it says how many more there are.
* Nothing confidential lies in the release folder, which is handed over; witness and register stand apart from the
  ledger, so that no backup puts them back together with it.
* A delta that would permit to reveal one household in full is refused, and so is one that no bound has.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from datetime import timedelta
from decimal import ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Final, Self

from pydantic import AfterValidator, Field, PlainValidator, PrivateAttr, ValidationInfo, WithJsonSchema, model_validator
from pydantic_core import PydanticCustomError

from agedp_data.config.input import AnyInput
from agedp_data.config.model_section import AnyModel, DeclaredModel, EstimatedModel, acceptance_problems
from agedp_data.config.output import AlertsSection, CompareSection, EngineSection, OutputSection, PopulationSection
from agedp_data.config.paths import database_of, is_url, ledger_path, schema_of
from agedp_data.config.schedule import AnySchedule
from agedp_data.datasets.layout import slot_step
from agedp_data.datasets.validation import INTERVAL_MINUTES, SLOTS
from agedp_data.epsilon import exact_text, format_delta
from agedp_data.errors import RunFileError
from agedp_data.markov.states import RepresentativeValues
from agedp_data.messages import format_value
from agedp_data.notions import AnyPromise
from agedp_data.notions.age_dependent import HALF_HOUR, AgeDependent
from agedp_data.notions.classical import Classical
from agedp_data.notions.enforcement import own_bound_name
from agedp_data.notions.neighbourhood import Neighbourhood
from agedp_data.notions.notion import Notion, Promise, name_at_delta
from agedp_data.notions.publication import Comparison, Event, Publication
from agedp_data.notions.temporal import Temporal
from agedp_data.notions.w_event import WEvent
from agedp_data.parameters import Section, acceptances, rounding_lines, wrong
from agedp_data.series.series import AnySeries, SeriesTable, series_by_name, table_name
from agedp_data.series.series_terms import EnergySeries

# --------------------------------------------------------------------------------------------------
# Rules of a run file about its places: nothing confidential in the release folder, witness and register apart.
# --------------------------------------------------------------------------------------------------

Problem = tuple[str, str, str]
"""Table, key, and the problem in a few words."""


def place_problems(run: RunFile) -> Iterator[Problem]:
    """Yield what is wrong with the places of a run file: [output], the files of [population], the model's file."""
    output, release = run.output, run.output.release
    inside = {
        ("output", "confidential"): output.confidential,
        ("population", "roster"): run.population.roster,
        ("population", "meters"): run.population.meters,
        ("model", "file"): run.model.file if isinstance(run.model, EstimatedModel) else None,
        ("output", "ledger"): ledger_path(output.ledger),
    }
    for (table, key), place in inside.items():
        if place is not None and _within(place, release):
            yield table, key, "lies in the release folder, which is handed over; move it"
    if _within(release, output.confidential):
        yield "output", "release", "lies in the confidential folder, which is never handed over; move it"
    yield from _witness_apart(output)
    yield from _register_apart(output)


def _witness_apart(output: OutputSection) -> Iterator[Problem]:
    """Refuse a witness that a backup copies and restores together with the ledger or a folder."""
    witness = output.witness
    if witness is None:
        return
    ledger, elsewhere = ledger_path(output.ledger), "name a place that no backup puts back together with the ledger"
    folders = {"the release folder": output.release, "the confidential folder": output.confidential}
    if not is_url(ledger):
        folders["the ledger's folder"] = str(Path(ledger).parent)
    for name, folder in folders.items():
        if _within(witness, folder):
            yield "output", "witness", f"lies in {name}; {elsewhere}"
    if is_url(ledger) and witness.startswith("postgresql") and database_of(witness) == database_of(ledger):
        yield "output", "witness", f"lies in the ledger's database; {elsewhere}"


def _register_apart(output: OutputSection) -> Iterator[Problem]:
    """Refuse a register in the release folder, which is handed over, and one in the ledger's file or schema."""
    register = output.household_register
    if register is None:
        return
    if _within(ledger_path(register), output.release):
        yield "output", "household_register", "lies in the release folder, which is handed over; move it"
    is_same = ledger_path(register) == ledger_path(output.ledger)
    if is_url(ledger_path(register)) and is_url(ledger_path(output.ledger)):
        is_same = schema_of(register) == schema_of(output.ledger)
    if is_same:
        yield "output", "household_register", "is the ledger; name a file, or a schema, of its own"


def _within(place: str, folder: str) -> bool:
    if is_url(place) != is_url(folder):
        return False
    if is_url(place):
        return (place.rstrip("/") + "/").startswith(folder.rstrip("/") + "/")
    return any(Path(seen(place)).is_relative_to(seen(folder)) for seen in (os.path.normpath, os.path.realpath))


# --------------------------------------------------------------------------------------------------
# The size of a promised delta against the number of households, and what a delta needs to apply to.
#
# A bound with delta lets every set of results be more probable by delta than e^epsilon times, for each household
# alone. Of n households, n being `min_households`, one in n might therefore be revealed in full if delta were 1/n.
#
# Decisions:
#
# * A delta above 1/n is refused whenever a run file is read; between 1/n^2 and 1/n it is a warning of plan, run and
#   statement. After `min_households` was raised, delta must be lowered as well where it exceeds the new 1/n.
# * A delta that no bound of the promise has is refused: it would read as a promise and be none.
# --------------------------------------------------------------------------------------------------

_TWO_DIGITS_DOWN: Final = Context(prec=2, rounding=ROUND_FLOOR)


def delta_problems(promise: Promise, min_households: int) -> Iterator[str]:
    """Yield what is wrong with the delta of a promise to so many households; nothing without a delta.

    Source: definition of (epsilon, delta)-differential privacy; the rules are those of the module.

    Args:
        promise: the promise with its caps.
        min_households: fewest households of a released day.

    Yields:
        The problem and its remedy, following "[promise] delta = 0.01: ".
    """
    if promise.delta is None:
        return
    if Fraction(promise.delta) * min_households > 1:
        yield (
            f"exceeds 1/min_households = 1/{min_households}: the bounds would permit to reveal one of these households "
            f"in full. Write 1/{min_households}^2 = {_rounded(min_households)} or less"
        )
    if not applies_to_a_bound(promise):
        yield (
            'applies to no bound: epsilon_total = "unlimited", and a day\'s epsilon has no delta. Write a number in '
            "epsilon_total, or remove delta"
        )


def applies_to_a_bound(promise: Promise) -> bool:
    """Return whether the delta of a promise applies to one of its bounds; True without a delta.

    Source: data structure, without a formula.

    Args:
        promise: the promise with its caps.
    """
    return promise.total_cap is not None or own_bound_name(promise.limits).endswith(name_at_delta("", promise.delta))


def is_large_delta(delta: Decimal | Fraction, min_households: int) -> bool:
    """Return whether a delta deserves a warning: it exceeds 1/n^2 for n households.

    Source: convention; of n households a mechanism with delta may reveal n delta on average.

    Args:
        delta: probability [-].
        min_households: fewest households n of a released day.

    >>> is_large_delta(Decimal("1e-6"), 1000), is_large_delta(Decimal("1e-6"), 1001)
    (False, True)
    """
    return Fraction(delta) * min_households**2 > 1


def delta_warning(promise: Promise, min_households: int) -> str:
    """Return one line about a delta above 1/n^2, "" for a smaller one or none.

    Source: as `is_large_delta`.

    Args:
        promise: the promise.
        min_households: fewest households n of a released day.
    """
    if promise.delta is None or not is_large_delta(promise.delta, min_households):
        return ""
    return (
        f"warning: [promise] delta = {format_delta(promise.delta)} is above 1/min_households^2 = "
        f"{_rounded(min_households)}: every set of results may be more probable by delta than e^epsilon times, for "
        f"each of {min_households} households. Lower delta"
    )


def _rounded(min_households: int) -> str:
    """Return 1/n^2 in two digits, rounded down."""
    return format_delta(_TWO_DIGITS_DOWN.divide(Decimal(1), Decimal(min_households**2)))


# --------------------------------------------------------------------------------------------------
# The run file, and the rules between its tables.
# --------------------------------------------------------------------------------------------------


def _version(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value != 1:
        raise wrong("must be 1, the format that this agedp reads")
    return value


class RunFile(Section):
    """One population, one promise, one or more series that share each day's loss."""

    version: Annotated[int, PlainValidator(_version), WithJsonSchema({"const": 1})]
    """Format of this file."""
    input: AnyInput
    output: OutputSection
    population: PopulationSection
    schedule: AnySchedule
    series: Annotated[dict[str, SeriesTable], AfterValidator(series_by_name)]
    promise: AnyPromise
    model: AnyModel | None = None
    compare: CompareSection = Field(default_factory=CompareSection)
    alerts: AlertsSection = Field(default_factory=AlertsSection)
    engine: EngineSection = Field(default_factory=EngineSection)

    _name: str = PrivateAttr(default="run file")
    _folder: Path = PrivateAttr(default=Path())
    _rounded: tuple[str, ...] = PrivateAttr(default=())
    _earlier: Mapping[str, Mapping[str, AnySeries]] = PrivateAttr(default_factory=dict)
    _charges: tuple[Event, ...] = PrivateAttr(default=())
    _over: tuple[tuple[object, ...], Notion] | None = PrivateAttr(default=None)

    @property
    def name(self) -> str:
        """Return the file's name, for messages."""
        return self._name

    @property
    def folder(self) -> Path:
        """Return the folder against which relative paths were resolved."""
        return self._folder

    @property
    def roundings(self) -> tuple[str, ...]:
        """Return a line for each epsilon that was given with more than nine decimals; public."""
        return self._rounded

    @property
    def notion(self) -> Notion:
        """Return the promise as it is enforced."""
        of = (self.promise, self.series, self.schedule, self._earlier, self._charges)
        if self._over is None or any(old is not new for old, new in zip(self._over[0], of, strict=True)):
            self._over = of, self.promise.for_publication(self.publication)
        return self._over[1]

    @property
    def publication(self) -> Publication:
        """Return the series and days under the promise, of this file and of the contracts that it follows."""
        return Publication(
            self.series,
            self._earlier,
            self.schedule.first_day,
            self.schedule.last_day,
            charges=self._charges,
            interval_minutes=self.input.layout.interval_minutes,
        )

    @property
    def comparison(self) -> Comparison:
        """Return the settings of this file by which notions are compared."""
        compare = self.compare
        return Comparison(
            self.promise,
            days=self.schedule.days,
            methods=() if self.model is None else self.model.methods,
            publication=self.publication,
            window_days=compare.window_days,
            exponential=compare.exponential,
            hyperbolic=compare.hyperbolic,
            delta_kwh=compare.delta_kwh,
        )

    def following(self, earlier: Mapping[str, Mapping[str, AnySeries]], charges: Iterable[Event] | None = None) -> Self:
        """Return the same run file as a successor of earlier contracts, for bounds over their releases.

        Args:
            earlier: the series of each earlier contract, by the contract's hash. A release counts by the series of the
                contract under which it was charged.
            charges: the losses of the population's calibration draws; None leaves those of this run file.
        """
        copy = self.model_copy()
        copy._earlier = earlier
        return copy if charges is None else copy.charging(charges)

    def charging(self, charges: Iterable[Event]) -> Self:
        """Return the same run file with the losses of its population's calibration draws, which its promise counts."""
        copy = self.model_copy()
        copy._charges = tuple(charges)
        return copy

    @property
    def counted_states(self) -> RepresentativeValues | None:
        """Return the states that a series counts instead of readings, None if none does."""
        return _public_states(self) if any(series.counts_states for series in self.series.values()) else None

    def promising(self, promise: Promise) -> Self:
        """Return the same run file with another promise.

        Raises:
            RunFileError: the promise does not go with the other tables, in few words.
        """
        copy = self.model_copy(update={"promise": promise})
        for table, key, reason in _problems(copy):
            raise RunFileError(f"[{table}] {key} {reason}")
        return copy

    def accepting(self, words: Iterable[str]) -> Self:
        """Return the same run file with further words in [promise] accept; a text alone is one word.

        Raises:
            RunFileError: a word that accepts no cause.
        """
        if not (listed := [words] if isinstance(words, str) else [*words]):
            return self
        try:
            further = acceptances(listed)
        except PydanticCustomError as error:
            raise RunFileError(f"accept = {format_value(listed)}: {error.message()}") from None
        accepted = tuple(dict.fromkeys((*(self.promise.accept or ()), *further)))
        return self.model_copy(update={"promise": self.promise.model_copy(update={"accept": accepted})})

    @model_validator(mode="after")
    def _tables_agree(self, info: ValidationInfo) -> Self:
        unused = acceptance_problems(self.promise, self.model)
        if problems := [*_problems(self), *(("model", "accept_unverified_model", problem) for problem in unused)]:
            table, key, what = problems[0]
            raise wrong(what, *table.split("."), key, more=len(problems) - 1)
        if isinstance(info.context, Mapping):
            self._name, self._folder = info.context["name"], info.context["folder"]
            tables, keys = {"promise": self.promise, "model": self.model}, info.context.get("keys", {})
            self._rounded = tuple(
                line
                for table, section in tables.items()
                if section is not None and table in keys
                for line in rounding_lines(section, keys[table], f"{self.name}: [{table}]")
            )
        return self


def _public_states(run: RunFile) -> RepresentativeValues | None:
    return run.model.public_states if isinstance(run.model, EstimatedModel) else None


def _problems(run: RunFile) -> list[Problem]:
    """Return the problems between the tables, those of the layers of a mean once."""
    problems = (problem for rule in _RULES for problem in rule(run))
    return list(dict.fromkeys((table_name(table), key, what) for table, key, what in problems))


def _model_and_ages(run: RunFile) -> Iterator[Problem]:
    if run.promise.requires_model and run.model is None:
        yield "promise", "notion", "needs a [model]; declare one or estimate one with `agedp calibrate`"
    age, mode = run.promise.age_days, run.schedule.mode
    if age is None and mode != "archive":
        yield "promise", "age_days", f'is missing; mode = "{mode}" releases a day when it is that old'
    if age is not None and mode == "archive" and not isinstance(run.promise, AgeDependent):
        yield "promise", "age_days", f'is not used by "{run.promise.notion}" in an archive; remove it'
    if run.promise.needs_period and run.schedule.last_day is None:
        yield "promise", "spend", "plans every day of a known period; write [schedule] last_day, or take another"


def _shares(run: RunFile) -> Iterator[Problem]:
    unsaid = [name for name, series in run.series.items() if series.share is None]
    if len(run.series) > 1 and unsaid:
        for name in unsaid:
            yield f"series.{name}", "share", "is missing; several series divide each day's epsilon"
        return
    total = sum((1 if series.share is None else series.share for series in run.series.values()), Decimal())
    if total != 1:
        yield f"series.{next(iter(run.series))}", "share", f"the shares add up to {total}, not 1"


def _states(run: RunFile) -> Iterator[Problem]:
    public_states = _public_states(run)
    for name, series in run.series.items():
        if not isinstance(series, EnergySeries) or not series.counts_states:
            continue
        if public_states is None:
            place = "[model] edges" if isinstance(run.model, EstimatedModel) else 'a [model] with source = "estimated"'
            yield f"series.{name}", "values", f"needs public edges; list them in {place}"
        elif series.clamp_wh > public_states.max_day_wh:
            max_kwh = exact_text(Decimal(public_states.max_day_wh) / 1000)
            what = f"exceeds {max_kwh} kWh, the largest daily total of these states; lower it"
            yield f"series.{name}", "clamp_kwh", what
        if isinstance(run.promise, Neighbourhood):
            what = 'do not go with notion = "neighbourhood": a small change of use may change any of them'
            yield f"series.{name}", "values", f'{what}; write values = "readings"'
        if series.reads_half_hours and public_states is not None and public_states.step != HALF_HOUR:
            what = 'counts states of half-hours; [model] step = "day" has none'
            yield f"series.{name}", "values", f'{what}. Write values = "readings"'


def _model_fits(run: RunFile) -> Iterator[Problem]:
    promise, model = run.promise, run.model
    if isinstance(promise, AgeDependent) and model is not None:
        if promise.method not in model.methods:
            yield "promise", "method", model.exclusion_reason
        if promise.secret == HALF_HOUR and model.step == "day":
            yield "promise", "secret", 'needs [model] step = "half-hour"; a chain of days knows no half-hours'
    if isinstance(promise, Temporal) and model is not None:
        if model.assume != "markov":
            yield "model", "assume", 'must be "markov" for notion = "temporal"'
        if isinstance(model, DeclaredModel) and model.curve is not None:
            yield "model", "curve", 'is not enough for notion = "temporal"; declare a kernel'
    live = run.schedule.mode == "live"
    if live and isinstance(model, EstimatedModel) and model.period[1] >= run.schedule.first_day:
        yield "model", "period", f'must end before first_day = {run.schedule.first_day} when mode = "live"'


def _half_hours_there(run: RunFile) -> Iterator[Problem]:
    minutes = run.input.interval_minutes
    if minutes <= INTERVAL_MINUTES:
        return
    files = f"where [input] interval_minutes = {minutes}"
    if isinstance(run.model, EstimatedModel) and run.model.step == HALF_HOUR:
        yield "model", "step", f'must be "day" {files}: the files hold no half-hours'
    if isinstance(run.promise, AgeDependent) and run.promise.secret == HALF_HOUR:
        yield "promise", "secret", f'must be "day" {files}: the files hold no half-hours'
    most = SLOTS // slot_step(minutes) - 2
    for name, series in run.series.items():
        if series.max_missing > most:
            yield f"series.{name}", "max_missing", f"must be at most {most} {files}: a day has half as many readings"


def _change_size_and_delta(run: RunFile) -> Iterator[Problem]:
    means = {name: series for name, series in run.series.items() if isinstance(series, EnergySeries)}
    clamps = {table_name(name): series.clamp_kwh for name, series in means.items()}  # of layers the last, highest
    for name, clamp_kwh in clamps.items():
        if isinstance(run.promise, Neighbourhood) and run.promise.delta_kwh > clamp_kwh:
            yield "promise", "delta_kwh", f"exceeds clamp_kwh of [series.{name}]; no day can move that far"
    for problem in delta_problems(run.promise, run.population.min_households):
        yield "promise", "delta", problem


def _check_periods(run: RunFile) -> Iterator[Problem]:
    for name, series in run.series.items():
        if series.covers_periods and not isinstance(run.promise, Classical | WEvent):
            what = f'is not possible with notion = "{run.promise.notion}"; its bounds are about releases of single days'
            yield f"series.{name}", "every", f"{what}. Publish days: the averages of weeks, months and years follow"
        last_day = run.schedule.last_day
        if series.covers_periods and last_day is not None:
            begin, end = series.covered_days(run.schedule.first_day)
            if begin < run.schedule.first_day:
                _, end = series.covered_days(end + timedelta(days=1))
            if end > last_day:
                what = f"has no whole period between {run.schedule.first_day} and {last_day}, so no row would ever come"
                yield f"series.{name}", "every", f"{what}; take a later last_day or a shorter period"


_RULES = (
    _model_and_ages,
    _shares,
    _states,
    _model_fits,
    _half_hours_there,
    _change_size_and_delta,
    _check_periods,
    place_problems,
)
