"""The meaning of a contract, the same in every form: the keys that its form did not have are filled in.

A contract is compared, amended, planned and stated by its meaning; its text and its hash stay as they were registered.
A key that came later than form 1 is marked `LATER` in the model of its table. A contract's text omits it while it
has its default. The default is therefore the meaning of a missing key in every earlier form; a key that every later
contract writes has no default, and its `Absent` is that meaning. A contract that writes a later key names its form and
the version of agedp that reads this form:

    {"form":2,"needs":"0.2", ...}

Form 1 names neither. `RENAMED` maps keys that an earlier form had under another name, and removed keys.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from datetime import date
from decimal import Decimal
from typing import Any, Final, get_args

from agedp_data.config.input import INPUTS, LongColumns
from agedp_data.config.model_section import DeclaredModel, EstimatedModel
from agedp_data.config.output import PopulationSection
from agedp_data.config.schedule import Archive, Live, Rehearsal
from agedp_data.errors import LedgerError
from agedp_data.format_versions import NEEDS, format_unknown_version
from agedp_data.notions import NOTIONS
from agedp_data.parameters import FREE, LATER, Absent, Section, exact_text, is_epsilon
from agedp_data.series.series import STATISTICS, Layer

RENAMED: Final[dict[str, str | None]] = {}
"""Dotted keys of earlier forms ("series.*.name" for any series): their present name, None for a removed key."""
ZONE_CHANGES: Final = "zone_changes"
"""Key of [schedule] in a contract: the clock changes of its period. A contract without this key permits any."""

_CUT: Final = re.compile(r"([0-9]+\.[0-9]{9})[0-9]+", re.ASCII)
_LATER_STATISTICS: Final = ("profile", "coverage")
_TABLES: Final[Mapping[str, tuple[str, tuple[type[Section], ...]]]] = {
    "input": ("dataset", INPUTS),
    "population": ("", (PopulationSection,)),
    "schedule": ("mode", (Archive, Live, Rehearsal)),
    "series": ("statistic", STATISTICS),
    "promise": ("notion", NOTIONS),
    "model": ("source", (DeclaredModel, EstimatedModel)),
}


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
    tables = {key: table for key, table in _renamed(contract).items() if key not in ("form", "needs")}
    filled: dict[str, Any] = {}
    for name, table in tables.items():
        if name == "series" and isinstance(table, Mapping):
            filled[name] = {series: _filled("series", terms) for series, terms in table.items()}
        else:
            filled[name] = _filled(name, table)
    return filled


def meaning_of(text: str) -> dict[str, Any]:
    """Return the meaning of a contract's text.

    Raises:
        LedgerError: as `meaning`.
    """
    return meaning(json.loads(text))


def interval_minutes_of(terms: Mapping[str, Any]) -> int:
    """Return the length of a reading's interval from the meaning of a contract; 60 where the contract states none.

    >>> interval_minutes_of(meaning({"input": {"dataset": "london"}}))
    30
    """
    minutes: int = terms.get("input", {}).get("interval_minutes", 60)
    return minutes


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

    Recorded clock changes are compared day by day instead (`datasets.zone_changes`), because a new time zone database
    may move a future one.
    """
    schedule = contract.get("schedule")
    if not isinstance(schedule, Mapping):
        return dict(contract)
    return {**contract, "schedule": {key: value for key, value in schedule.items() if key != ZONE_CHANGES}}


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


def is_later(contract: Mapping[str, Any]) -> bool:
    """Return whether a contract has a key that form 1 does not have, or a list of group columns.

    Such a contract must name its form and the version of agedp that reads it.

    >>> is_later({"input": {"dataset": "london"}}), is_later({"output": {"witness": "required"}})
    (False, True)
    """
    tables = [(name, table) for name, table in contract.items() if name in _TABLES and name != "series"]
    tables += [("series", terms) for terms in contract.get("series", {}).values()]
    return (
        "output" in contract
        or any(table.get("statistic") in _LATER_STATISTICS for name, table in tables if name == "series")
        or ZONE_CHANGES in contract.get("schedule", {})
        or any(key in table for name, table in tables for key, _ in _later_defaults(name, table))
        or any(isinstance(table.get("by"), list) for name, table in tables if name == "series")
        or any(
            LATER in LongColumns.model_fields[key].metadata for key in contract.get("input", {}).get("columns") or ()
        )
    )


def _filled(name: str, table: Any) -> Any:  # noqa: ANN401  (a JSON value)
    if name not in _TABLES or not isinstance(table, Mapping):
        return table
    return {**{key: default for key, default in _later_defaults(name, table) if default is not None}, **table}


def _later_defaults(name: str, table: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the keys of a table that came later than form 1, with their defaults as a contract writes them."""
    choice, kinds = _TABLES[name]
    for kind in (Layer,) if name == "series" and "above_kwh" in table else kinds:
        if choice and table.get(choice) not in get_args(kind.model_fields[choice].annotation):
            continue
        for key, field in kind.model_fields.items():
            if LATER in field.metadata and FREE not in field.metadata:
                meanings = [mark.meaning for mark in field.metadata if isinstance(mark, Absent)]
                yield key, contract_value(meanings[0] if meanings else field.default)
        return


def _renamed(contract: Mapping[str, Any]) -> dict[str, Any]:
    return _with_names(contract, ()) if RENAMED else dict(contract)


def _with_names(table: Mapping[str, Any], above: tuple[str, ...]) -> dict[str, Any]:
    renamed: dict[str, Any] = {}
    for name, value in table.items():
        path = (*above, "*" if above == ("series",) else name)
        new = RENAMED.get(".".join(path), name)
        if new is not None:
            renamed[new] = _with_names(value, path) if isinstance(value, Mapping) else value
    return renamed
