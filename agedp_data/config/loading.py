"""From the bytes of a run file to a `RunFile`: TOML with exact decimal numbers, then validation."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from agedp_data.config.error_messages import Problem, list_problems, run_file_error
from agedp_data.config.input import AnyInput, LongColumns, LongInput
from agedp_data.config.model_section import EstimatedModel
from agedp_data.config.output import EngineSection
from agedp_data.config.run_file import RunFile
from agedp_data.errors import RunFileError
from agedp_data.messages import escape_text, suggest_file
from agedp_data.parameters import Section

_TOML_POSITION = re.compile(r"(?P<what>.*) \(at (?:line (?P<line>\d+), column (?P<column>\d+)|end of document)\)")
_MAX_BYTES = 1_000_000


def load(path: Path) -> RunFile:
    """Return the run file at `path`.

    Raises:
        RunFileError: the file cannot be read, is not TOML, or has an unknown key or an invalid value.
    """
    try:
        with path.open("rb") as stream:
            content = stream.read(_MAX_BYTES + 1)
    except FileNotFoundError:
        raise _unreadable(
            path, "the file does not exist; `agedp init` writes a first one", suggest_file(path)
        ) from None
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
    reason = re.sub(r"\('.*'\)|\('.*',\)", lambda match: _table_name(match[0]), position["what"])
    lines = text.splitlines() or [""]
    line = position["line"] or len(lines)
    column = position["column"] or len(lines[-1]) + 1
    return f"line {line}, column {column}: is not TOML: {reason[:1].lower()}{escape_text(reason[1:], 160)}"


def _table_name(path: str) -> str:
    names = re.findall(r"'(.*?)'", path)
    return f"[{'.'.join(names)}]"


def _unreadable(path: Path, problem: str, hint: str = "") -> RunFileError:
    return RunFileError(f"{escape_text(path.name)}: {problem}", private=f"{escape_text(str(path))}: {problem}{hint}")
