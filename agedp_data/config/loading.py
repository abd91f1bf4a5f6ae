"""From the bytes of a run file to a `RunFile`: TOML with exact decimal numbers, then validation."""

from __future__ import annotations

import re
import stat
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import Any, Final, Literal, get_args

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from agedp_data.config.contract import TABLES
from agedp_data.config.contract_document import DocumentSchema
from agedp_data.config.input import INPUTS, AnyInput, LongColumns, LongInput
from agedp_data.config.model_section import DeclaredModel, EstimatedModel
from agedp_data.config.output import AlertsSection, CompareSection, EngineSection, OutputSection, PopulationSection
from agedp_data.config.paths import LOCATION
from agedp_data.config.run_file import RunFile
from agedp_data.config.schedule import Archive, Live, Rehearsal
from agedp_data.errors import RunFileError
from agedp_data.messages import escape_text, format_value, is_confusable, short_name, suggest_file, suggest_name
from agedp_data.notions import NOTIONS
from agedp_data.parameters import Section
from agedp_data.series.series import STATISTICS

# --------------------------------------------------------------------------------------------------
# Error messages for a run file, one line each: `name: [table] key = value: what is wrong; what to do`.
#
# The public text omits the values of keys that name files, because files can be named after households. Neither the
# public nor the private text contains a value that may contain a password.
# --------------------------------------------------------------------------------------------------

_SECTIONS: dict[str, tuple[type[Section], ...]] = {
    "input": INPUTS,
    "input.columns": (LongColumns,),
    "output": (OutputSection,),
    "population": (PopulationSection,),
    "schedule": (Archive, Live, Rehearsal),
    "series": STATISTICS,
    "promise": NOTIONS,
    "model": (DeclaredModel, EstimatedModel),
    "compare": (CompareSection,),
    "alerts": (AlertsSection,),
    "engine": (EngineSection,),
}
_CHOICE_KEYS = {table: choice for table, (choice, _) in TABLES.items() if choice}
_FIXED_MESSAGES = {
    "string_type": "must be text in quotes",
    "tuple_type": "must be a list, in square brackets",
    "bool_type": "must be true or false",
}
_MISSING_TYPES = ("missing", "union_tag_not_found")
_FOLLOW_UP_TYPE = "default_factory_not_called"
_TABLE_TYPES = ("model_type", "model_attributes_type", "dict_type", "is_instance_of")


@dataclass(frozen=True, slots=True)
class _KeyPath:
    """The location of an error: table and key, either of which may be missing from the file."""

    table: tuple[str, ...]
    key: str | None
    value: Any
    is_present: bool

    @property
    def sections(self) -> tuple[type[Section], ...]:
        """The section classes that the table may have, one for each choice."""
        return _SECTIONS.get("series" if self.table[:1] == ("series",) else ".".join(self.table), ())


@dataclass(frozen=True, slots=True)
class Problem:
    """One error of a run file: its table and key, a message, and for an unused key the choices that accept it.

    `level` is "key" if a value is wrong by itself, "table" or "file" if it contradicts another value. `accepted_by` are
    the values of the table's choice ("temporal", "rehearsal") that have the key.
    """

    table: str
    key: str
    message: str
    level: Literal["key", "table", "file"]
    unused: bool = False
    accepted_by: tuple[str, ...] = ()

    @property
    def missing(self) -> bool:
        """Whether a required key is missing."""
        return self.message.startswith("is missing")


def list_problems(error: ValidationError, raw: Mapping[str, Any]) -> list[Problem]:
    """Return all errors of a run file that did not validate; use it to draft a run file.

    Args:
        error: the error of `RunFile.model_validate`.
        raw: the run file as parsed from TOML.
    """
    errors = [item for item in error.errors(include_url=False) if item["type"] != _FOLLOW_UP_TYPE]
    return [_to_problem(item, raw) for item in errors]


def _to_problem(error: ErrorDetails, raw: Mapping[str, Any]) -> Problem:
    path = _key_path(error, raw)
    table, key = ".".join(path.table), path.key or ""
    if error["type"] == "extra_forbidden":
        keys_of_other_choices = _table_keys(path, raw)[1] if path.table and path.table[0] in _CHOICE_KEYS else {}
        accepting_choices = tuple(tag for tag, fields in keys_of_other_choices.items() if key in fields)
        return Problem(table, key, "is not used", "key", unused=True, accepted_by=accepting_choices)
    is_cross_check = bool(error.get("ctx", {}).get("at"))
    level: Literal["key", "table", "file"] = "key" if not is_cross_check else "table" if error["loc"] else "file"
    return Problem(table, key, _message(error, path), level)


def run_file_error(error: ValidationError, raw: Mapping[str, Any], *, name: str) -> RunFileError:
    """Return the one-line error for a run file that did not validate: the first problem, and what else is missing.

    Unknown keys come first, because a misspelt key also makes the right one missing.

    Args:
        error: the error of `RunFile.model_validate`.
        raw: the run file as parsed from TOML.
        name: name of the run file.
    """
    errors = (item for item in error.errors(include_url=False) if item["type"] != _FOLLOW_UP_TYPE)
    sorted_errors = sorted(errors, key=lambda item: item["type"] != "extra_forbidden")
    n_further = len(sorted_errors) - 1 + sum(int(item.get("ctx", {}).get("more", 0)) for item in sorted_errors)
    missing_keys = [_key_path(item, raw) for item in sorted_errors[1:] if item["type"] in _MISSING_TYPES]
    public, private = _lines(sorted_errors[0], raw)
    n_others = n_further - len(missing_keys)
    unnamed_keys = [
        path for path in missing_keys if not public.endswith((f"write {path.key}", f"did you mean '{path.key}'?"))
    ]
    key_list = _key_list(unnamed_keys)
    if key_list and sorted_errors[0]["type"] not in _MISSING_TYPES:
        key_list = f"missing: {key_list}"
    parts = [part for part in (key_list, f"{n_others} more" if n_others else "") if part]
    further = f" (and {' and '.join(parts)})" if parts else ""
    return RunFileError(f"{name}: {public}{further}", private=f"{name}: {private}{further}")


def _key_list(paths: Sequence[_KeyPath]) -> str:
    """Return tables and keys, each table once."""
    names: list[str] = []
    table: tuple[str, ...] = ()
    for path in paths:
        names.append(_format_path(path) if path.table != table else short_name(path.key or ""))
        table = path.table
    return ", ".join(names)


def _format_path(path: _KeyPath) -> str:
    return " ".join(part for part in (_format_table(path.table), short_name(path.key or "")) if part)


def _key_path(error: ErrorDetails, raw: Mapping[str, Any]) -> _KeyPath:
    """Return the location of an error."""
    keys = [part for part in error["loc"] if isinstance(part, str)]
    if keys and keys[0] in _CHOICE_KEYS:  # pydantic puts the choice ("classical") between a table and its key
        del keys[_depth(keys) : _depth(keys) + 1]
    return _locate([*keys, *error.get("ctx", {}).get("at", ())], raw, choice=error["type"].startswith("union_tag"))


def _lines(error: ErrorDetails, raw: Mapping[str, Any]) -> tuple[str, str]:
    context, path = error.get("ctx", {}), _key_path(error, raw)
    if error["type"] == "extra_forbidden":
        line = _unknown_key_line(path, raw)
        return line, line
    message = _message(error, path)
    value = f" = {format_value(path.value)}" if path.is_present else ""
    key_text = _format_path(path)
    hidden = context.get("hide", False) or path.key == "ledger"
    private = key_text if hidden else key_text + value
    public = key_text if hidden or _names_file(path) else private
    return f"{public}: {message}", f"{private}: {message}"


def _locate(keys: list[str], raw: Mapping[str, Any], *, choice: bool) -> _KeyPath:
    """Follow a path through the file to the last table that exists."""
    table: list[str] = []
    current: Any = raw
    while keys and isinstance(current.get(keys[0]), Mapping):
        path = (*table, keys[0])
        if ".".join(path) not in _SECTIONS and (path[0] != "series" or len(path) != 2):  # no table, but a value
            break
        table.append(keys.pop(0))
        current = current[table[-1]]
    if not keys and choice and table:
        keys = [_CHOICE_KEYS[table[0]]]
    key = keys[0] if keys else None
    is_present = key in current
    return _KeyPath(tuple(table), key, current[key] if key is not None and is_present else current, is_present)


def _depth(keys: Sequence[str]) -> int:
    return 2 if keys[0] == "series" else 1


def _message(error: ErrorDetails, path: _KeyPath) -> str:  # noqa: PLR0911  (one return a kind of error)
    error_type, context = error["type"], error.get("ctx", {})
    if error_type in _TABLE_TYPES:
        return "must be a table"
    if error_type in ("int_type", "int_parsing_size"):
        return f"must be a whole number{_range_text(path)}, without quotes"
    if error_type in _MISSING_TYPES:
        return f"is missing and has no default; write it out{_misspelling_hint(path)}"
    if error_type in _FIXED_MESSAGES:
        return _FIXED_MESSAGES[error_type]
    if error_type in ("literal_error", "union_tag_invalid"):
        choices = context.get("expected", context.get("expected_tags", "")).replace("'", '"').replace("\\x", "\\u00")
        if isinstance(path.value, str) and path.value.isdecimal() and f'"{path.value}"' not in choices:
            return f"must be a number without quotes; write {path.value}"
        nearest = suggest_name(path.value, [item.strip(' "') for item in choices.replace(" or ", ",").split(",")])
        listed = choices.replace(", ", " | ").replace(" or ", " | ")
        return f"is not known{nearest + ' Known are' if nearest else '; write'} {listed}"
    if error_type in ("greater_than_equal", "less_than_equal"):
        return f"must be at least {context['ge']}" if "ge" in context else f"must be at most {context['le']}"
    return str(error["msg"])


def _misspelling_hint(path: _KeyPath) -> str:
    """Return the key of the file that may be a misspelling of the missing one."""
    present_keys = [str(key) for key in path.value] if isinstance(path.value, Mapping) else []
    unknown = [key for key in present_keys if not any(key in section.model_fields for section in path.sections)]
    unknown_by_folded_key = {key.casefold(): key for key in unknown if not is_confusable(key, path.key or "")}
    nearest = get_close_matches(path.key or "", unknown_by_folded_key, n=1, cutoff=0.6)
    return f" in place of '{short_name(unknown_by_folded_key[nearest[0]])}'" if nearest else ""


def _range_text(path: _KeyPath) -> str:
    """Return the range that the key's field declares, " from 1 to 1024"."""
    key = path.key or ""
    sections = [section for section in path.sections if key in section.model_fields]
    constraints = [constraint for section in sections for constraint in _field_metadata(section, key)]
    low = next((constraint.ge for constraint in constraints if hasattr(constraint, "ge")), None)
    high = next((constraint.le for constraint in constraints if hasattr(constraint, "le")), None)
    return "" if low is None else f" from {low} to {high}" if high is not None else f", {low} or more"


def _field_metadata(section: type[Section], key: str) -> Iterator[Any]:
    """Yield the metadata of a field, or of the number in its union with None."""
    field = section.model_fields[key]
    yield from field.metadata
    for choice in get_args(field.annotation):
        for item in getattr(choice, "__metadata__", ()):
            yield from getattr(item, "metadata", (item,))


def _unknown_key_line(path: _KeyPath, raw: Mapping[str, Any]) -> str:
    if path.key is None:
        path = _KeyPath(path.table[:-1], path.table[-1], path.value, is_present=True)
    name = str(path.key)
    if not path.table:
        known_tables = list(RunFile.model_fields)
        message = f"unknown key '{short_name(name)}' outside of any table"
        if isinstance(raw.get(name), Mapping):
            message = f"unknown table [{short_name(name)}]"
        hint = suggest_name(name, known_tables) or _table_hint(name, path) or "; known are " + ", ".join(known_tables)
        return f"{message}{hint}"
    own_keys, keys_of_other_choices = _table_keys(path, raw)
    accepting_choices = [tag for tag, keys in keys_of_other_choices.items() if path.key in keys]
    line = f"{_format_table(path.table)} has no key '{short_name(name)}'"
    choice = _CHOICE_KEYS.get(path.table[0]) if len(path.table) == _depth(path.table) else None
    if choice is not None:
        table = _table_at(raw, path.table)
        line += f" for {choice} = {format_value(table[choice])}"
        if key := _key_of_symbol(path, str(table[choice])):
            return f"{line}; write {key}"
        if accepting_choices:
            return f"{line}; it goes with " + ", ".join(f'{choice} = "{tag}"' for tag in accepting_choices)
    hint = suggest_name(name, own_keys, likeness=0.85) or _table_hint(name, path) or suggest_name(name, own_keys)
    return f"{line}{hint or '; it takes ' + ', '.join(own_keys)}"


def _key_of_symbol(path: _KeyPath, tag: str) -> str:
    """Return the key of the chosen table whose paper symbol was written."""
    symbols = (section.written_as for section in path.sections if _tag(section, _CHOICE_KEYS[path.table[0]]) == tag)
    return next((names[str(path.key)] for names in symbols if path.key in names), "")


def _table_hint(name: str, path: _KeyPath) -> str:
    """Return the tables that have a key of this name."""
    formatted = [
        "[series.NAME]" if table == "series" else f"[{table}]"
        for table, sections in _SECTIONS.items()
        if any(name in section.model_fields for section in sections)
        if (table,) != path.table[: table.count(".") + 1]
    ]
    return f"; it belongs in {' or '.join(formatted)}" if formatted else ""


def _table_keys(path: _KeyPath, raw: Mapping[str, Any]) -> tuple[list[str], dict[str, list[str]]]:
    """Return the keys of the table for the value of its choice, and those for every other value."""
    choice = _CHOICE_KEYS.get(path.table[0], "")
    chosen = _table_at(raw, path.table).get(choice)
    own_keys: list[str] = []
    keys_of_other_choices: dict[str, list[str]] = {}
    for section in path.sections:
        tag = _tag(section, choice) if len(path.sections) > 1 else chosen
        if tag == chosen:
            own_keys = list(section.model_fields)
        else:
            keys_of_other_choices[str(tag)] = list(section.model_fields)
    return own_keys, keys_of_other_choices


def _tag(section: type[Section], choice: str) -> str:
    return str(section.model_fields[choice].annotation.__args__[0])  # type: ignore[union-attr]


def _table_at(raw: Mapping[str, Any], table: Sequence[str]) -> Mapping[str, Any]:
    value: Any = raw
    for name in table:
        value = value[name]
    return value if isinstance(value, Mapping) else {}


def _names_file(path: _KeyPath) -> bool:
    fields = (section.model_fields.get(path.key or "") for section in path.sections)
    return path.key == "wait_for" or any(field is not None and LOCATION in field.metadata for field in fields)


def _format_table(table: Sequence[str]) -> str:
    return f"[{'.'.join(map(short_name, table))}]" if table else ""


# --------------------------------------------------------------------------------------------------
# Reading: TOML -> keys -> `RunFile`.
# --------------------------------------------------------------------------------------------------

_TOML_POSITION = re.compile(r"(?P<what>.*) \(at (?:line (?P<line>\d+), column (?P<column>\d+)|end of document)\)")
_MAX_BYTES = 1_000_000


def load(path: Path) -> RunFile:
    """Return the run file at `path`.

    Raises:
        RunFileError: the file cannot be read, is not TOML, or has an unknown key or an invalid value.
    """
    try:
        if not stat.S_ISREG(path.stat().st_mode) and not path.is_dir():  # before it is opened: a pipe may never end
            raise _unreadable(path, "is a pipe or a device, not a file; name the run file")
        with path.open("rb") as stream:
            content = stream.read(_MAX_BYTES + 1)
    except FileNotFoundError:
        problem = "the file does not exist; `agedp init` writes a first one"
        raise _unreadable(path, problem, suggest_file(path)) from None
    except IsADirectoryError:
        raise _unreadable(path, "is a folder; name the run file in it") from None
    except OSError as error:
        raise _unreadable(path, f"cannot be read ({error.strerror})") from None
    if len(content) > _MAX_BYTES:
        raise _unreadable(path, "is larger than a megabyte, the limit of a run file")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise _unreadable(path, f"is not UTF-8 text (line {line}); save it as UTF-8") from None
    return parse(text, base=path.absolute().parent, name=path.name)


def parse(text: str, *, base: Path, name: str) -> RunFile:
    """Return the run file with this text; relative paths are relative to the folder `base`.

    Raises:
        RunFileError: the text is not TOML, or has an unknown key or an invalid value; one line, the first error.
    """
    name = escape_text(name)
    return from_keys(_parse_toml(text, name), base=base, name=name)


def from_keys(keys: Mapping[str, Any], *, base: Path, name: str) -> RunFile:
    """Return the run file with these tables, as values instead of TOML text; numbers are int or Decimal.

    Raises:
        RunFileError: an unknown key or an invalid value; one line, the first error.
    """
    try:
        return RunFile.model_validate(keys, context={"folder": base, "name": name, "keys": keys})
    except ValidationError as error:
        raise run_file_error(error, dict(keys), name=name) from None


def validate_run_file(text: str, *, base: Path) -> tuple[RunFile | None, list[Problem]]:
    """Return the run file with this text, or None and all its errors; use it to draft a run file.

    Raises:
        RunFileError: the text is not TOML.
    """
    raw = _parse_toml(text, "run.toml")
    try:
        return RunFile.model_validate(raw, context={"folder": base, "name": "run.toml"}), []
    except ValidationError as error:
        return None, list_problems(error, raw)


class _ColumnsSection(Section):
    """The part of a run file that `read_columns` validates."""

    input: AnyInput


def read_columns(keys: Mapping[str, Any], interval_minutes: int) -> LongColumns:
    """Return [input.columns] from its keys, of readings of this interval.

    Raises:
        RunFileError: a key is missing, unknown or invalid; one line, the first error.
    """
    table = {"dataset": "long", "files": ["*.csv"], "interval_minutes": interval_minutes, "columns": dict(keys)}
    raw = {"input": table}
    try:
        section = _ColumnsSection.model_validate(raw, context={"folder": Path(), "name": "columns"}).input
    except ValidationError as error:
        raise run_file_error(error, raw, name="columns") from None
    if not isinstance(section, LongInput):
        raise TypeError("dataset long is LongInput")
    return section.columns


def model_from_keys(keys: Mapping[str, Any]) -> EstimatedModel:
    """Return the section [model] of an estimated model from its keys.

    Raises:
        RunFileError: a key is missing, unknown or invalid; one line, the first error.
    """
    try:
        return EstimatedModel.model_validate(keys, context={"folder": Path(), "name": "model"})
    except ValidationError as error:
        raise run_file_error(error, {"model": dict(keys)}, name="calibrate") from None


def read_scheduler(scheduler: object) -> str:
    """Return a Dask scheduler that was given as an argument, validated like [engine] scheduler.

    Raises:
        RunFileError: the value is invalid; a misspelt name must not wait for a cluster to answer.
    """
    raw = {"engine": {"scheduler": scheduler}}
    try:
        return EngineSection.model_validate(raw["engine"]).scheduler
    except ValidationError as error:
        raise run_file_error(error, raw, name="scheduler") from None


def _parse_toml(text: str, name: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text, parse_float=Decimal)
    except tomllib.TOMLDecodeError as error:
        raise RunFileError(f"{name}: {_toml_error_text(str(error), text)}") from None
    except (ValueError, ArithmeticError):
        raise RunFileError(f"{name}: a number is too long to be read") from None
    except RecursionError:
        raise RunFileError(f"{name}: lists or tables are nested too deeply") from None


def _toml_error_text(message: str, text: str) -> str:
    position = _TOML_POSITION.fullmatch(message)
    if position is None:
        return f"is not TOML: {escape_text(message, 160)}"
    reason = re.sub(r"\('.*'\)|\('.*',\)", _table_name, position["what"])
    lines = text.splitlines() or [""]
    line = position["line"] or len(lines)
    column = position["column"] or len(lines[-1]) + 1
    return f"line {line}, column {column}: is not TOML: {reason[:1].lower()}{escape_text(reason[1:], 160)}"


def _table_name(path: re.Match[str]) -> str:
    names = re.findall(r"'(.*?)'", path[0])
    return f"[{'.'.join(names)}]"


def _unreadable(path: Path, problem: str, hint: str = "") -> RunFileError:
    return RunFileError(f"{escape_text(path.name)}: {problem}", private=f"{escape_text(str(path))}: {problem}{hint}")


# --------------------------------------------------------------------------------------------------
# The JSON schema of a run file, for editors that complete and check TOML (Taplo, Even Better TOML).
#
# It describes the keys of every table, their types and meanings. `agedp plan` checks rules between keys, dates and
# exact amounts.
# --------------------------------------------------------------------------------------------------

SCHEMA_FILE: Final = "run.schema.json"


@cache
def run_file_schema() -> dict[str, Any]:
    """Return the JSON schema of a run file (draft 2020-12), generated from `RunFile`.

    >>> run_file_schema()["required"]
    ['version', 'input', 'output', 'population', 'schedule', 'series', 'promise']
    """
    generated = RunFile.model_json_schema(schema_generator=DocumentSchema)
    for section in (generated, *generated["$defs"].values()):
        section.pop("title")
        if "description" in section:
            section["description"] = section["description"].partition("\n\n")[0]
    return {"$schema": DocumentSchema.schema_dialect, **generated}
