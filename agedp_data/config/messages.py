"""One clear line for whatever is wrong with a run file: `name: [table] key = value: what; what would help`.

The public text leaves out the values of keys that name files, for those can be named after households; both
texts leave out what may contain a password.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, Literal, get_args

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from agedp_data.config.input import INPUTS, LongColumns
from agedp_data.config.model import DeclaredModel, EstimatedModel
from agedp_data.config.places import PLACE
from agedp_data.config.quoting import short, written
from agedp_data.config.run import RunFile
from agedp_data.config.schedule import Archive, Live, Rehearsal
from agedp_data.config.series import Distribution, Mean
from agedp_data.config.surroundings import (
    AlertsSection,
    CompareSection,
    EngineSection,
    OutputSection,
    PopulationSection,
)
from agedp_data.errors import RunFileError
from agedp_data.nearest import is_confusable, suggest_name
from agedp_data.notions import NOTIONS
from agedp_data.notions.parameters import Section

_KINDS: dict[str, tuple[type[Section], ...]] = {
    "input": INPUTS,
    "input.columns": (LongColumns,),
    "output": (OutputSection,),
    "population": (PopulationSection,),
    "schedule": (Archive, Live, Rehearsal),
    "series": (Mean, Distribution),
    "promise": NOTIONS,
    "model": (DeclaredModel, EstimatedModel),
    "compare": (CompareSection,),
    "alerts": (AlertsSection,),
    "engine": (EngineSection,),
}
_CHOICE = {
    "input": "dataset",
    "schedule": "mode",
    "series": "statistic",
    "promise": "notion",
    "model": "source",
}
_FIXED = {
    "string_type": "must be text in quotes",
    "tuple_type": "must be a list, in square brackets",
}
_MISSING = ("missing", "union_tag_not_found")
_CONSEQUENCE = "default_factory_not_called"
_TABLE_TYPES = ("model_type", "model_attributes_type", "dict_type", "is_instance_of")


@dataclass(frozen=True, slots=True)
class _KeyPath:
    """Where an error is: the table and the key below it, either of which may be missing."""

    table: tuple[str, ...]
    key: str | None
    value: Any
    there: bool

    @property
    def kinds(self) -> tuple[type[Section], ...]:
        """Return the blocks that the table can be."""
        return _KINDS.get("series" if self.table[:1] == ("series",) else ".".join(self.table), ())


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong with a run file: where, what, and for a key that does not belong there, where it does.

    `level` is "key" where a value is wrong by itself, "table" or "file" where it disagrees with another one;
    `takers` are the values of the table's choice ("temporal", "rehearsal") that have the key.
    """

    table: str
    key: str
    what: str
    level: Literal["key", "table", "file"]
    unused: bool = False
    takers: tuple[str, ...] = ()

    @property
    def missing(self) -> bool:
        """Tell whether a key is missing."""
        return self.what.startswith("is missing")


def problems(error: ValidationError, raw: Mapping[str, Any]) -> list[Problem]:
    """Return everything that is wrong with a run file (parsed as `raw`) that did not validate."""
    found = [each for each in error.errors(include_url=False) if each["type"] != _CONSEQUENCE]
    return [_problem(each, raw) for each in found]


def _problem(error: ErrorDetails, raw: Mapping[str, Any]) -> Problem:
    place = _place(error, raw)
    table, key = ".".join(place.table), place.key or ""
    if error["type"] == "extra_forbidden":
        others = _fields_of(place, raw)[1] if place.table and place.table[0] in _CHOICE else {}
        takers = tuple(tag for tag, fields in others.items() if key in fields)
        return Problem(table, key, "is not used", "key", unused=True, takers=takers)
    crossed = bool(error.get("ctx", {}).get("at"))
    level: Literal["key", "table", "file"] = "key" if not crossed else "table" if error["loc"] else "file"
    return Problem(table, key, _what(error, place), level)


def refusal(error: ValidationError, raw: Mapping[str, Any], *, name: str) -> RunFileError:
    """Return the one-line error for a run file (parsed as `raw`) that did not validate."""
    errors = (each for each in error.errors(include_url=False) if each["type"] != _CONSEQUENCE)
    found = sorted(errors, key=lambda each: each["type"] != "extra_forbidden")
    rest = len(found) - 1 + sum(int(each.get("ctx", {}).get("more", 0)) for each in found)
    missing = [_place(each, raw) for each in found[1:] if each["type"] in _MISSING]
    public, private = _lines(found[0], raw)
    others = rest - len(missing)
    named = [place for place in missing if not public.endswith((f"write {place.key}", f"did you mean '{place.key}'?"))]
    ending = _ending(named, others, first_is_missing=found[0]["type"] in _MISSING)
    return RunFileError(f"{name}: {public}{ending}", private=f"{name}: {private}{ending}")


def _ending(missing: Sequence[_KeyPath], others: int, *, first_is_missing: bool) -> str:
    """Return what else is wrong: every missing key by its name, other errors by their number."""
    named = _named(missing) if missing else ""
    if named and not first_is_missing:
        named = f"missing: {named}"
    parts = [part for part in (named, f"{others} more" if others else "") if part]
    return f" (and {' and '.join(parts)})" if parts else ""


def _named(places: Sequence[_KeyPath]) -> str:
    """Return tables and keys, each table once."""
    names: list[str] = []
    table: tuple[str, ...] = ()
    for place in places:
        names.append(_head(place) if place.table != table else short(place.key or ""))
        table = place.table
    return ", ".join(names)


def _head(place: _KeyPath) -> str:
    return " ".join(part for part in (_bracketed(place.table), short(place.key or "")) if part)


def _place(error: ErrorDetails, raw: Mapping[str, Any]) -> _KeyPath:
    """Return where an error is."""
    loc = _without_choices([part for part in error["loc"] if isinstance(part, str)])
    return _locate([*loc, *error.get("ctx", {}).get("at", ())], raw, choice=error["type"].startswith("union_tag"))


def _lines(error: ErrorDetails, raw: Mapping[str, Any]) -> tuple[str, str]:
    context, place = error.get("ctx", {}), _place(error, raw)
    if error["type"] == "extra_forbidden":
        line = _unknown(place, raw)
        return line, line
    what = _what(error, place)
    value = f" = {written(place.value)}" if place.there else ""
    head = _head(place)
    hidden = context.get("hide", False) or place.key == "ledger"
    private = head if hidden else head + value
    public = head if hidden or _is_place(place) else private
    return f"{public}: {what}", f"{private}: {what}"


def _locate(keys: list[str], raw: Mapping[str, Any], *, choice: bool) -> _KeyPath:
    """Follow a path through the file to the last table that is there."""
    table: list[str] = []
    here: Any = raw
    while keys and _is_table(here.get(keys[0])) and _may_be_table((*table, keys[0])):
        table.append(keys.pop(0))
        here = here[table[-1]]
    if not keys and choice and table:
        keys = [_CHOICE[table[0]]]
    key = keys[0] if keys else None
    there = key in here
    return _KeyPath(tuple(table), key, here[key] if key is not None and there else here, there)


def _may_be_table(path: tuple[str, ...]) -> bool:
    return ".".join(path) in _KINDS or (path[0] == "series" and len(path) == 2)


def _without_choices(keys: list[str]) -> Iterator[str]:
    # pydantic puts the choice ("classical") between a table and its key.
    for number, key in enumerate(keys):
        if not (number == _depth(keys) and keys[0] in _CHOICE):
            yield key


def _depth(keys: Sequence[str]) -> int:
    return 2 if keys[0] == "series" else 1


def _what(error: ErrorDetails, place: _KeyPath) -> str:  # noqa: PLR0911  (one return a kind of error)
    kind, context = error["type"], error.get("ctx", {})
    if kind in _TABLE_TYPES:
        return "must be a table"
    if kind in ("int_type", "int_parsing_size"):
        return f"must be a whole number{_bounds(place)}, without quotes"
    if kind in _MISSING:
        return f"is missing and has no default; write it out{_instead(place)}"
    if kind in _FIXED:
        return _FIXED[kind]
    if kind in ("literal_error", "union_tag_invalid"):
        choices = context.get("expected", context.get("expected_tags", "")).replace("'", '"')
        if isinstance(place.value, str) and place.value.isdecimal() and f'"{place.value}"' not in choices:
            return f"must be a number without quotes; write {place.value}"
        near = suggest_name(place.value, [each.strip(' "') for each in choices.replace(" or ", ",").split(",")])
        listed = choices.replace(", ", " | ").replace(" or ", " | ")
        return f"is not known{near + ' Known are' if near else '; write'} {listed}"
    if kind in ("greater_than_equal", "less_than_equal"):
        return f"must be at least {context['ge']}" if "ge" in context else f"must be at most {context['le']}"
    return str(error["msg"])


def _instead(place: _KeyPath) -> str:
    """Return which key of the table may be a misspelt form of the missing one."""
    there = [str(key) for key in place.value] if isinstance(place.value, Mapping) else []
    unknown = [key for key in there if not any(key in kind.model_fields for kind in place.kinds)]
    strange = {key.casefold(): key for key in unknown if not is_confusable(key, place.key or "")}
    near = get_close_matches(place.key or "", strange, n=1, cutoff=0.6)
    return f" in place of '{short(strange[near[0]])}'" if near else ""


def _bounds(place: _KeyPath) -> str:
    """Return the range that the key's field declares, " from 1 to 1024"."""
    key = place.key or ""
    notes = [note for kind in place.kinds if key in kind.model_fields for note in _notes(kind, key)]
    low = next((note.ge for note in notes if hasattr(note, "ge")), None)
    high = next((note.le for note in notes if hasattr(note, "le")), None)
    return "" if low is None else f" from {low} to {high}" if high is not None else f", {low} or more"


def _notes(kind: type[Section], key: str) -> Iterator[Any]:
    """Yield what is said about a field, or about the number that it may be in place of nothing."""
    field = kind.model_fields[key]
    yield from field.metadata
    for choice in get_args(field.annotation):
        for note in getattr(choice, "__metadata__", ()):
            yield from getattr(note, "metadata", (note,))


def _unknown(place: _KeyPath, raw: Mapping[str, Any]) -> str:
    if place.key is None:
        place = _KeyPath(place.table[:-1], place.table[-1], place.value, there=True)
    name = str(place.key)
    if not place.table:
        known = list(RunFile.model_fields)
        kind = f"unknown table [{short(name)}]" if _is_table(raw.get(name)) else f"unknown key '{short(name)}'"
        where = "" if _is_table(raw.get(name)) else " outside of any table"
        return (
            f"{kind}{where}{suggest_name(name, known) or _elsewhere(name, place) or '; known are ' + ', '.join(known)}"
        )
    own, others = _fields_of(place, raw)
    takers = [tag for tag, fields in others.items() if place.key in fields]
    line = f"{_bracketed(place.table)} has no key '{short(name)}'"
    choice = _CHOICE.get(place.table[0]) if len(place.table) == _depth(place.table) else None
    if choice is not None:
        table = _at(raw, place.table)
        line += f" for {choice} = {written(table[choice])}"
        if key := _written_as(place, str(table[choice])):
            return f"{line}; write {key}"
        if takers:
            return f"{line}; it goes with " + ", ".join(f'{choice} = "{tag}"' for tag in takers)
    hint = suggest_name(name, own, likeness=0.85) or _elsewhere(name, place) or suggest_name(name, own)
    return f"{line}{hint or '; it takes ' + ', '.join(own)}"


def _written_as(place: _KeyPath, tag: str) -> str:
    """Return the key of the chosen table that papers know by this name."""
    symbols = (kind.written_as for kind in place.kinds if _tag(kind, _CHOICE[place.table[0]]) == tag)
    return next((known[str(place.key)] for known in symbols if place.key in known), "")


def _elsewhere(name: str, place: _KeyPath) -> str:
    """Return in which other tables a key stands."""
    takers = [table for table, kinds in _KINDS.items() if any(name in kind.model_fields for kind in kinds)]
    shown_as = [
        "[series.NAME]" if table == "series" else f"[{table}]"
        for table in takers
        if (table,) != place.table[: table.count(".") + 1]
    ]
    return f"; it belongs in {' or '.join(shown_as)}" if shown_as else ""


def _fields_of(place: _KeyPath, raw: Mapping[str, Any]) -> tuple[list[str], dict[str, list[str]]]:
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


def _tag(kind: type[Section], choice: str) -> str:
    return str(kind.model_fields[choice].annotation.__args__[0])  # type: ignore[union-attr]


def _at(raw: Mapping[str, Any], table: Sequence[str]) -> Mapping[str, Any]:
    here: Any = raw
    for name in table:
        here = here[name]
    return here if isinstance(here, Mapping) else {}


def _is_table(value: object) -> bool:
    return isinstance(value, Mapping)


def _is_place(place: _KeyPath) -> bool:
    fields = (kind.model_fields.get(place.key or "") for kind in place.kinds)
    return place.key == "wait_for" or any(field is not None and PLACE in field.metadata for field in fields)


def _bracketed(table: Sequence[str]) -> str:
    return f"[{'.'.join(map(short, table))}]" if table else ""
