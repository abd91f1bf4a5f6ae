"""The contract: the part of a run file that the ledger registers, its text, and the one value that is parsed from it.

A contract's text has every key of the run file that is not marked FREE: no path, engine, title or schedule of the
machine. Defaults are written out and numbers have one form, so equal run files make the same contract. `Contract` is
the value that a text means, the same in every form: `ContractRecord.terms` parses each text once.

Decisions:

* A contract is compared, amended, planned and stated by its meaning; its text and its hash stay as they were
  registered. A key that came later than form 1 is marked `LATER` in the model of its table. A contract's text omits it
  while it has its default. The default is therefore the meaning of a missing key in every earlier form; a key that
  every later contract writes has no default, and its `Absent` is that meaning.
* A contract that writes a later key names its form and the version of agedp that reads this form, {"form":2,
  "needs":"0.2", ...}. Form 1 names neither. `RENAMED` maps keys that an earlier form had under another name, and
  removed keys.
* Each part is parsed when it is asked for: a ledger opens, and a folder is checked, whatever a series of a contract is.
* A part is the section of the run file that it was, without its free keys: those of paths are missing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from functools import cached_property, lru_cache
from typing import Any, Final, get_args

from pydantic import ConfigDict, TypeAdapter, ValidationError

from agedp_data.config.input import INPUTS, InputSection, LongColumns
from agedp_data.config.model_section import DeclaredModel, EstimatedModel
from agedp_data.config.output import OutputSection, PopulationSection
from agedp_data.config.run_file import RunFile
from agedp_data.config.schedule import Archive, Live, Rehearsal
from agedp_data.datasets.layout import Layout
from agedp_data.datasets.timestamps import FIXED_ZONES, zone_changes
from agedp_data.epsilon import exact_text
from agedp_data.errors import ChainError, LedgerError
from agedp_data.markov.states import RepresentativeValues, representative_values
from agedp_data.notions import NOTIONS, AnyPromise
from agedp_data.notions.notion import Notion
from agedp_data.notions.publication import Event
from agedp_data.parameters import FREE, LATER, TEXT, Absent, Section, is_epsilon, watt_hours
from agedp_data.series.layered_mean import Layer
from agedp_data.series.series import STATISTICS, AnySeries, series_of, written_contracts

# --------------------------------------------------------------------------------------------------
# Format versions that agedp has written: of contracts, of ledger rows, of the files that hold rows.
#
# Every released format stays readable. A newer format begins at the row that states it, on the same hash chain, and
# rewrites nothing. Software that does not know a format refuses it and names the version that does.
# --------------------------------------------------------------------------------------------------

FORM: Final = 2
"""The newest form of contracts; form 1 is that of agedp 0.1. Rows have later ones (`ledger.lifecycle`)."""
NEEDS: Final[Mapping[int, str]] = {1: "0.1", 2: "0.2"}
"""The first version of agedp that reads each form."""


def format_reader_version(version: object) -> str:
    """Return the name of the agedp that reads something whose format requires a version, or does not state one.

    >>> format_reader_version("0.5"), format_reader_version(None)
    ('agedp 0.5 or newer', 'a newer agedp')
    """
    return f"agedp {version} or newer" if isinstance(version, str) else "a newer agedp"


def format_unknown_version(subject: str, form: object, needs: object, *, newest: int = FORM) -> str:
    """Return why something of an unknown format is refused, and what to do; `newest` is the newest known one.

    >>> format_unknown_version("the ledger", 3, "0.5")
    'the ledger has form 3, which agedp 0.5 or newer reads; this agedp reads forms 1 to 2. Update agedp'
    """
    reader = format_reader_version(needs)
    return f"{subject} has form {form}, which {reader} reads; this agedp reads forms 1 to {newest}. Update agedp"


# --------------------------------------------------------------------------------------------------
# The contract, written and parsed.
# --------------------------------------------------------------------------------------------------

RENAMED: Final[dict[str, str | None]] = {}
"""Dotted keys of earlier forms ("series.*.name" for any series): their present name, None for a removed key."""
ZONE_CHANGES: Final = "zone_changes"
"""Key of [schedule] in a contract: the clock changes of its period. A contract without this key permits any."""
TABLES: Final[Mapping[str, tuple[str, Collection[type[Section]]]]] = {
    "input": ("dataset", INPUTS),
    "population": ("", (PopulationSection,)),
    "schedule": ("mode", (Archive, Live, Rehearsal)),
    "series": ("statistic", (*STATISTICS, Layer)),
    "promise": ("notion", NOTIONS),
    "model": ("source", (DeclaredModel, EstimatedModel)),
    "output": ("", (OutputSection,)),
}
"""The sections that a table can be, and the key that chooses one."""

_REGISTERED: Final = ("input", "population", "schedule", "promise", "model")
_FIRST_STATISTICS: Final = ("mean", "distribution")
_CUT: Final = re.compile(r"([0-9]+\.[0-9]{9})[0-9]+", re.ASCII)
_NUMBER: Final = re.compile(r"[0-9]+(\.[0-9]+)?")
_DATE: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", re.ASCII)
_UNKNOWN_PROMISE: Final = "a contract in the ledger holds no promise that this agedp knows; update agedp"
_UNKNOWN_STATES: Final = "a contract in the ledger holds states that this agedp does not know; update agedp"
_MALFORMED: Final = (ValidationError, ValueError, LookupError, TypeError, AttributeError, ArithmeticError)
_PROMISE: TypeAdapter[AnyPromise] = TypeAdapter(AnyPromise, config=ConfigDict(defer_build=True))


def contract_part(run: RunFile, *, model: str | None) -> dict[str, Any]:
    """Return the contract of a run file as nested dicts and lists of text and integers.

    Args:
        run: the run file.
        model: SHA-256 of the model's public part; None before there is a model.
    """
    registered: dict[str, Any] = {"version": run.version}
    registered |= {name: contract_value(getattr(run, name)) for name in _REGISTERED if getattr(run, name) is not None}
    registered["series"] = {
        name: contract_value(series) | ({"share": "1"} if series.share is None else {})
        for name, series in run.series.items()
    }
    zone = run.input.layout.day_zone
    if zone not in FIXED_ZONES:
        registered["schedule"][ZONE_CHANGES] = list(zone_changes(zone, run.schedule.first_day, run.schedule.last_day))
    if model is not None:
        registered.setdefault("model", {})["hash"] = model
    output: dict[str, Any] = {"witness": "required"} if run.output.witness is not None else {}  # its address is free
    if output := output | ({"sign": True} if run.output.sign else {}):
        registered["output"] = output
    return {**registered, "form": FORM, "needs": NEEDS[FORM]} if is_later(registered) else registered


def contract_value(value: object) -> Any:  # noqa: ANN401 - a JSON value, of any depth
    """Return a value, or a whole table, of a run file as a contract writes it.

    Free keys, missing values and later keys with their defaults are omitted.

    >>> contract_value([Decimal("0.50"), date(2013, 1, 31)])
    ['0.5', '2013-01-31']
    """
    if isinstance(value, Section):
        fields = type(value).model_fields
        written = {key: getattr(value, key) for key in fields if FREE not in fields[key].metadata}
        omitted = {key for key in written if LATER in fields[key].metadata and written[key] == fields[key].default}
        present = {key: element for key, element in written.items() if element is not None and key not in omitted}
        return {key: contract_value(element) for key, element in present.items()}
    if isinstance(value, Mapping):
        return {key: contract_value(element) for key, element in value.items()}
    if isinstance(value, tuple | list):
        return [contract_value(element) for element in value]
    if isinstance(value, Decimal):
        return exact_text(value)
    return value.isoformat() if isinstance(value, date) else value


@dataclass(frozen=True)
class Contract:
    """A contract, as its text means it: `keys` are those of its text, with those that its form did not have.

    Every part raises a LedgerError if this version does not know it.

    >>> keys = {"input": {"dataset": "london"}, "series": {"use": {"statistic": "mean", "clamp_kwh": "9"}}}
    >>> contract = parse_contract(json.dumps(keys))
    >>> contract.series["use"].clamp_wh, contract.layout.day_zone, contract.interval_minutes, contract.model
    (9000, 'GMT', 30, None)
    """

    keys: Mapping[str, Any]

    @cached_property
    def series(self) -> Mapping[str, AnySeries]:
        """The series by name, one per layer of a mean and one per level of a hierarchy."""
        return series_of(self.keys)

    def series_keys(self, name: str) -> Mapping[str, Any]:
        """Return the keys of a series as text, as the metadata of a table state them."""
        keys: Mapping[str, Any] = self.keys["series"][name]
        return keys

    @property
    def stated_keys(self) -> dict[str, Any]:
        """The keys of promise and series as text, as the metadata of a table state them."""
        return {table: self.keys[table] for table in ("promise", "series")}

    @cached_property
    def promise(self) -> AnyPromise:
        """The promise with its caps; `enforced` is what the ledger enforces."""
        try:
            return _PROMISE.validate_python({key: _read(value) for key, value in self.keys["promise"].items()})
        except _MALFORMED:
            raise LedgerError(_UNKNOWN_PROMISE) from None

    def enforced(
        self, earlier: Mapping[str, Mapping[str, AnySeries]] | None = None, charges: Iterable[Event] = ()
    ) -> Notion:
        """Return the promise as it is enforced.

        `earlier` are the series of all contracts, `charges` the losses of the population's calibration draws.
        """
        return self.run_file.following(earlier or {}, charges).notion

    @cached_property
    def input(self) -> InputSection:
        """The layout of the readings and the rules for reading them."""
        section: InputSection = self._section("input")
        return section

    @cached_property
    def layout(self) -> Layout:
        """The layout of the input files."""
        return self.input.layout

    @property
    def interval_minutes(self) -> int:
        """The length of a reading's interval; 60 where the contract states none, whatever its dataset."""
        minutes: int = self.keys.get("input", {}).get("interval_minutes", 60)
        return minutes

    @cached_property
    def population(self) -> PopulationSection:
        """The households that the promise protects."""
        section: PopulationSection = self._section("population")
        return section

    @cached_property
    def schedule(self) -> Archive | Live | Rehearsal:
        """When days are due."""
        section: Archive | Live | Rehearsal = self._section("schedule")
        return section

    @property
    def zone_changes(self) -> tuple[str, ...]:
        """The clock changes of the period; none if the contract permits any."""
        return tuple(self.keys.get("schedule", {}).get(ZONE_CHANGES, ()))

    @cached_property
    def model(self) -> DeclaredModel | EstimatedModel | None:
        """The settings of the model, None without one."""
        section: DeclaredModel | EstimatedModel | None = self._section("model") if "model" in self.keys else None
        return section

    @property
    def model_hash(self) -> str | None:
        """The hash of the model's public part, None before there is one."""
        model = self.keys.get("model")
        return model.get("hash") if isinstance(model, dict) else None

    @cached_property
    def states(self) -> RepresentativeValues | None:
        """The public states of the model, None if it has none.

        >>> Contract({"model": {"step": "day", "edges": ["4", "8"]}}).states.representative_values_wh
        (2000, 6000, 10000)
        """
        model = self.keys.get("model", {})
        if not isinstance(model.get("edges"), list):
            return None
        try:
            states = RepresentativeValues(model["step"], tuple(watt_hours(Decimal(edge)) for edge in model["edges"]))
            representative_values(states.edges_wh)
        except (ChainError, *_MALFORMED):
            raise LedgerError(_UNKNOWN_STATES) from None
        return states

    @property
    def requires_witness(self) -> bool:
        """Whether a witness must confirm the newest head of the ledger."""
        return "witness" in self.keys.get("output", {})

    @property
    def is_signed(self) -> bool:
        """Whether every release folder has a signature."""
        return "sign" in self.keys.get("output", {})

    @cached_property
    def run_file(self) -> RunFile:
        """The run file that registered the contract; use it to compute again what was published, never to run.

        Free keys are no part of a contract: the tables of texts, comparisons and engine are missing.
        """
        tables: dict[str, Any] = {name: getattr(self, name) for name in _REGISTERED}
        return RunFile.model_construct(version=1, series=dict(self.series), **tables)

    def differences(self, newer: Contract) -> tuple[str, ...]:
        """Return the differences of a newer contract, one text for each dotted key, layers and levels as one table."""
        return differences(*written_contracts(self.keys, newer.keys))

    @property
    def counted(self) -> Contract:
        """The contract as a run file is compared with it: epsilons as they count, without clock changes."""
        return Contract(without_zone_changes(with_counted_epsilons(self.keys)))

    def _section(self, name: str) -> Any:  # noqa: ANN401  (any section)
        """Return a table as the section of a run file that it was."""
        try:
            table, (choice, kinds) = self.keys[name], TABLES[name]
            kind = next(
                kind for kind in kinds if not choice or table[choice] in get_args(kind.model_fields[choice].annotation)
            )
            fields = {key: kind.model_fields[key] for key in table if key in kind.model_fields}
            texts = {key for key, field in fields.items() if TEXT in field.metadata}
            values: dict[str, Any] = {key: table[key] if key in texts else _read(table[key]) for key in fields}
            if "columns" in values:
                values["columns"] = LongColumns.model_validate(values["columns"])
            return kind.model_construct(**values)
        except (*_MALFORMED, StopIteration):
            raise LedgerError(_UNKNOWN_PROMISE) from None


def _read(value: object) -> object:
    """Return a value of a section from its JSON: a contract keeps numbers and dates as text."""
    if isinstance(value, list):
        return tuple(map(_read, value))
    if isinstance(value, str) and _NUMBER.fullmatch(value):
        return Decimal(value)
    return date.fromisoformat(value) if isinstance(value, str) and _DATE.fullmatch(value) else value


@lru_cache(maxsize=256)
def parse_contract(text: str) -> Contract:
    """Return the contract that a text means; each text is parsed once.

    Raises:
        LedgerError: a form that only a later version of agedp reads.
    """
    return Contract(meaning(json.loads(text)))


def meaning(contract: Mapping[str, Any]) -> dict[str, Any]:
    """Return a contract with the keys that its form did not have filled in, under the keys' present names.

    >>> meaning({"input": {"dataset": "london"}})["input"]
    {'interval_minutes': 30, 'accept': [], 'dataset': 'london'}

    Raises:
        LedgerError: a form that only a later version of agedp reads.
    """
    form = contract.get("form", 1)
    if form not in NEEDS:
        raise LedgerError(format_unknown_version("a contract in the ledger", form, contract.get("needs")))
    renamed = _with_names(contract, ()) if RENAMED else contract
    tables = {key: table for key, table in renamed.items() if key not in ("form", "needs")}
    filled: dict[str, Any] = {}
    for name, table in tables.items():
        if name == "series" and isinstance(table, Mapping):
            filled[name] = {series: _filled("series", terms) for series, terms in table.items()}
        else:
            filled[name] = _filled(name, table)
    return filled


def comparable(old: Mapping[str, Any], new: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the meanings of two contracts as they are compared: without clock changes unless both record them.

    Raises:
        LedgerError: as `meaning`.
    """
    meanings = with_counted_epsilons(meaning(old)), with_counted_epsilons(meaning(new))
    if any(ZONE_CHANGES not in terms.get("schedule", {}) for terms in meanings):
        meanings = without_zone_changes(meanings[0]), without_zone_changes(meanings[1])
    return meanings


def with_counted_epsilons(contract: Mapping[str, Any]) -> dict[str, Any]:
    """Return the meaning of a contract with the epsilons of its promise as they count; use it to compare contracts.

    Contracts of 0.2 contain up to 15 decimals of an epsilon, of which nine count.

    >>> with_counted_epsilons({"promise": {"notion": "classical", "epsilon_per_day": "0.1000000004"}})["promise"]
    {'notion': 'classical', 'epsilon_per_day': '0.1'}
    """
    promise = contract.get("promise")
    if not isinstance(promise, Mapping):
        return dict(contract)
    fields = next((notion.model_fields for notion in NOTIONS if notion.name == promise.get("notion")), {})
    texts = {key: str(promise[key]) for key, field in fields.items() if key in promise and is_epsilon(field)}
    cut = {key: match[1].rstrip("0").rstrip(".") for key, text in texts.items() if (match := _CUT.fullmatch(text))}
    return {**contract, "promise": {**promise, **cut}}


def without_zone_changes(contract: Mapping[str, Any]) -> dict[str, Any]:
    """Return a contract without the clock changes of its period; use it to compare contracts.

    Recorded clock changes are compared day by day instead (`datasets.timestamps`), because a new time zone database
    may move a future one.
    """
    schedule = contract.get("schedule")
    if not isinstance(schedule, Mapping):
        return dict(contract)
    return {**contract, "schedule": {key: value for key, value in schedule.items() if key != ZONE_CHANGES}}


def is_later(contract: Mapping[str, Any]) -> bool:
    """Return whether a contract has a key that form 1 does not have, or a list of group columns.

    Such a contract must name its form and the version of agedp that reads it.

    >>> is_later({"input": {"dataset": "london"}}), is_later({"output": {"witness": "required"}})
    (False, True)
    """
    tables = [(name, table) for name, table in contract.items() if name in TABLES and name != "series"]
    tables += [("series", terms) for terms in contract.get("series", {}).values()]
    return (
        "output" in contract
        or any(table.get("statistic", "mean") not in _FIRST_STATISTICS for name, table in tables if name == "series")
        or ZONE_CHANGES in contract.get("schedule", {})
        or any(key in table for name, table in tables for key, _ in _later_defaults(name, table))
        or any(isinstance(table.get("by"), list) for name, table in tables if name == "series")
        or any(
            LATER in LongColumns.model_fields[key].metadata for key in contract.get("input", {}).get("columns") or ()
        )
    )


def _filled(name: str, table: Any) -> Any:  # noqa: ANN401  (a JSON value)
    if name not in TABLES or not isinstance(table, Mapping):
        return table
    return {**{key: default for key, default in _later_defaults(name, table) if default is not None}, **table}


def _later_defaults(name: str, table: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the keys of a table that came later than form 1, with their defaults as a contract writes them."""
    choice, kinds = TABLES[name]
    for kind in (Layer,) if name == "series" and "above_kwh" in table else kinds:
        if choice and table.get(choice) not in get_args(kind.model_fields[choice].annotation):
            continue
        for key, field in kind.model_fields.items():
            if LATER in field.metadata and FREE not in field.metadata:
                meanings = [mark.meaning for mark in field.metadata if isinstance(mark, Absent)]
                yield key, contract_value(meanings[0] if meanings else field.default)
        return


def _with_names(table: Mapping[str, Any], above: tuple[str, ...]) -> dict[str, Any]:
    renamed: dict[str, Any] = {}
    for name, value in table.items():
        path = (*above, "*" if above == ("series",) else name)
        new = RENAMED.get(".".join(path), name)
        if new is not None:
            renamed[new] = _with_names(value, path) if isinstance(value, Mapping) else value
    return renamed


def differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the differences between two contracts, one text for each dotted key.

    >>> differences({"promise": {"epsilon": "0.5"}}, {"promise": {"epsilon": "1"}, "title": "x"})
    ('promise.epsilon: "0.5" -> "1"', 'title: (absent) -> "x"')
    """
    before, after = (
        {key: json.dumps(value, sort_keys=True, separators=(",", ":")) for key, value in entries_of(contract).items()}
        for contract in (old, new)
    )
    return tuple(
        f"{key}: {before.get(key, '(absent)')} -> {after.get(key, '(absent)')}"
        for key in sorted(before.keys() | after.keys())
        if before.get(key) != after.get(key)
    )


def entries_of(contract: Mapping[str, Any], whole: Collection[str] = (), above: str = "") -> dict[str, Any]:
    """Return the values of a contract by dotted key: those that are no table, and the tables that are `whole`.

    >>> entries_of({"promise": {"notion": "classical"}, "model": {"hash": "1f"}}, whole={"model"})
    {'promise.notion': 'classical', 'model': {'hash': '1f'}}
    """
    entries: dict[str, Any] = {}
    for name, value in contract.items():
        key = f"{above}{name}"
        is_table = isinstance(value, Mapping) and key not in whole
        entries |= entries_of(value, whole, f"{key}.") if is_table else {key: value}
    return entries
