"""One clear line for whatever is wrong with a run file: `name: [table] key = value: what; what would help`.

The public text leaves out the values of keys that name files, for those can be named after households; both
texts leave out what may contain a password.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from difflib import get_close_matches
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from agedp_data.config.input import AusgridInput, LondonInput, LongColumns, LongInput
from agedp_data.config.model import Declared, Estimated
from agedp_data.config.places import PLACE
from agedp_data.config.run import RunFile
from agedp_data.config.schedule import Archive, Live, Rehearsal
from agedp_data.config.series import Distribution, Mean
from agedp_data.config.surroundings import Compare, Engine, Output, Population
from agedp_data.errors import RunFileError
from agedp_data.notions import NOTIONS
from agedp_data.notions.parameters import Block

_KINDS: dict[str, tuple[type[Block], ...]] = {
    "input": (LondonInput, AusgridInput, LongInput),
    "input.columns": (LongColumns,),
    "output": (Output,),
    "population": (Population,),
    "schedule": (Archive, Live, Rehearsal),
    "series": (Mean, Distribution),
    "promise": NOTIONS,
    "model": (Declared, Estimated),
    "compare": (Compare,),
    "engine": (Engine,),
}
_CHOICE = {
    "input": "dataset",
    "schedule": "mode",
    "series": "statistic",
    "promise": "notion",
    "model": "source",
}
_LONGEST = 80
_FIXED = {
    "missing": "is missing and has no default; write it out",
    "int_type": "must be a whole number, without quotes",
    "string_type": "must be text in quotes",
    "tuple_type": "must be a list, in square brackets",
    "union_tag_not_found": "is missing and has no default; write it out",
}
_CONSEQUENCE = "default_factory_not_called"
_TABLE_TYPES = ("model_type", "model_attributes_type", "dict_type", "is_instance_of")


@dataclass(frozen=True, slots=True)
class _Place:
    """Where an error is: the table and the key below it, either of which may be empty."""

    table: tuple[str, ...]
    key: str
    value: Any
    there: bool

    @property
    def kinds(self) -> tuple[type[Block], ...]:
        """Return the blocks that the table can be."""
        return _KINDS.get("series" if self.table[:1] == ("series",) else ".".join(self.table), ())


def refusal(error: ValidationError, raw: Mapping[str, Any], *, name: str) -> RunFileError:
    """Return the one-line error for a run file (parsed as `raw`) that did not validate."""
    errors = (each for each in error.errors(include_url=False) if each["type"] != _CONSEQUENCE)
    found = sorted(errors, key=lambda each: each["type"] != "extra_forbidden")
    rest = len(found) - 1 + sum(int(each.get("ctx", {}).get("more", 0)) for each in found)
    ending = f" (and {rest} more)" if rest else ""
    public, private = _lines(found[0], raw)
    return RunFileError(f"{name}: {public}{ending}", private=f"{name}: {private}{ending}")


def _lines(error: ErrorDetails, raw: Mapping[str, Any]) -> tuple[str, str]:
    context = error.get("ctx", {})
    choice = error["type"].startswith("union_tag")
    loc = [
        *_without_choices([part for part in error["loc"] if isinstance(part, str)]),
        *context.get("at", ()),
    ]
    place = _locate(loc, raw, choice=choice)
    if error["type"] == "extra_forbidden":
        line = _unknown(place, raw)
        return line, line
    what = _what(error, place)
    shown = f" = {written(place.value)}" if place.there and not _is_table(place.value) else ""
    head = " ".join(part for part in (_bracketed(place.table), place.key) if part)
    hidden = context.get("hide", False) or place.key == "ledger"
    private = head if hidden else head + shown
    public = head if hidden or _is_place(place) else private
    return f"{public}: {what}", f"{private}: {what}"


def _locate(keys: list[str], raw: Mapping[str, Any], *, choice: bool) -> _Place:
    """Follow a path through the file to the last table that is there."""
    table: list[str] = []
    here: Any = raw
    while keys and isinstance(here, Mapping) and _is_table(here.get(keys[0])):
        table.append(keys.pop(0))
        here = here[table[-1]]
    if not keys and choice and table:
        keys = [_CHOICE[table[0]]]
    key = keys[0] if keys else ""
    there = isinstance(here, Mapping) and key in here
    return _Place(tuple(table), key, here[key] if there else here, there)


def _without_choices(keys: list[str]) -> Iterator[str]:
    # pydantic puts the choice ("classical") between a table and its key.
    for number, key in enumerate(keys):
        if not (number == _depth(keys) and keys[0] in _CHOICE):
            yield key


def _depth(keys: Sequence[str]) -> int:
    return 2 if keys[0] == "series" else 1


def _what(error: ErrorDetails, place: _Place) -> str:
    kind, context = error["type"], error.get("ctx", {})
    if kind in _TABLE_TYPES:
        return "must be a table"
    if kind in _FIXED:
        return _FIXED[kind]
    if kind in ("literal_error", "union_tag_invalid"):
        choices = context.get("expected", context.get("expected_tags", "")).replace("'", '"')
        near = _near(place.value, [each.strip(' "') for each in choices.replace(" or ", ",").split(",")])
        listed = choices.replace(", ", " | ").replace(" or ", " | ")
        return f"is not known{near + ' Known are' if near else '; write'} {listed}"
    if kind in ("greater_than_equal", "less_than_equal"):
        return f"must be at least {context['ge']}" if "ge" in context else f"must be at most {context['le']}"
    return str(error["msg"])


def _unknown(place: _Place, raw: Mapping[str, Any]) -> str:
    if not place.table or place.key == "":
        name = place.key or place.table[0]
        known = list(RunFile.model_fields)
        what = f"unknown table [{name}]" if _is_table(raw.get(name)) else f"unknown key '{name}' outside of any table"
        return f"{what}{_near(name, known) or '; known are ' + ', '.join(known)}"
    own, others = _fields_of(place, raw)
    takers = [tag for tag, fields in others.items() if place.key in fields]
    line = f"{_bracketed(place.table)} has no key '{place.key}'"
    choice = _CHOICE.get(place.table[0]) if len(place.table) == _depth(place.table) else None
    if choice is not None:
        table = _at(raw, place.table)
        line += f" for {choice} = {written(table[choice])}"
        if takers:
            return f"{line}; it goes with " + ", ".join(f'{choice} = "{tag}"' for tag in takers)
    return f"{line}{_near(place.key, own) or '; it takes ' + ', '.join(own)}"


def _fields_of(place: _Place, raw: Mapping[str, Any]) -> tuple[list[str], dict[str, list[str]]]:
    """Return the keys of the table as it was chosen, and those of the other choices."""
    choice = _CHOICE.get(place.table[0], "")
    chosen = _at(raw, place.table).get(choice)
    own: list[str] = []
    others: dict[str, list[str]] = {}
    for kind in place.kinds:
        tag = _tag(kind, choice) if len(place.kinds) > 1 else chosen
        if tag == chosen:
            own = list(kind.model_fields)
        else:
            others[str(tag)] = list(kind.model_fields)
    return own, others


def _tag(kind: type[Block], choice: str) -> str:
    return str(kind.model_fields[choice].annotation.__args__[0])  # type: ignore[union-attr]


def _at(raw: Mapping[str, Any], table: Sequence[str]) -> Mapping[str, Any]:
    here: Any = raw
    for name in table:
        here = here[name]
    return here if isinstance(here, Mapping) else {}


def _is_table(value: object) -> bool:
    return isinstance(value, Mapping)


def _is_place(place: _Place) -> bool:
    fields = (kind.model_fields.get(place.key) for kind in place.kinds)
    return place.key == "wait_for" or any(field is not None and PLACE in field.metadata for field in fields)


def _bracketed(table: Sequence[str]) -> str:
    return f"[{'.'.join(table)}]" if table else ""


def _near(value: object, known: Sequence[str]) -> str:
    near = get_close_matches(str(value), known, n=1, cutoff=0.5)
    return f"; did you mean '{near[0]}'?" if near else ""


def written(value: object) -> str:
    """Return a value as the run file writes it, cut short if it is long.

    >>> written(["a", 5, True])
    '["a", 5, true]'
    """
    line = _toml(value)
    return line if len(line) <= _LONGEST else line[: _LONGEST - 3] + "..."


def _toml(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, list | tuple):
        return f"[{', '.join(_toml(each) for each in value)}]"
    if isinstance(value, Mapping):
        return "{...}"
    if isinstance(value, Decimal) and not value.is_finite():
        return "nan" if value.is_nan() else f"{value:f}".lower().replace("infinity", "inf")
    return value.isoformat() if isinstance(value, date) else str(value)
