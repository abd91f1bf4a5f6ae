"""From the bytes of a run file to a `RunFile`: TOML with exact numbers, then the rules."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from agedp_data.config.input import AnyInput, LongColumns, LongInput
from agedp_data.config.messages import Problem, problems, refusal
from agedp_data.config.run import RunFile
from agedp_data.config.surroundings import EngineSection
from agedp_data.errors import RunFileError
from agedp_data.nearest import suggest_file
from agedp_data.notions.parameters import Section
from agedp_data.shown import escape_text

_AT = re.compile(r"(?P<what>.*) \(at (?:line (?P<line>\d+), column (?P<column>\d+)|end of document)\)")
_LARGEST = 1_000_000


def load(path: Path) -> RunFile:
    """Return the run file at `path`.

    Raises:
        RunFileError: it cannot be read, is not TOML, or asks for something unknown or impossible.
    """
    try:
        with path.open("rb") as stream:
            content = stream.read(_LARGEST + 1)
    except FileNotFoundError:
        raise _unreadable(path, "there is no such file; `agedp init` writes a first one", suggest_file(path)) from None
    except IsADirectoryError:
        raise _unreadable(path, "is a folder; name the run file in it") from None
    except OSError as error:
        raise _unreadable(path, f"cannot be read ({error.strerror})") from None
    if len(content) > _LARGEST:
        raise _unreadable(path, "is larger than a megabyte; this is no run file")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise _unreadable(path, f"is not UTF-8 text (line {line}); save it as UTF-8") from None
    return parse(text, base=path.absolute().parent, name=path.name)


def parse(text: str, *, base: Path, name: str) -> RunFile:
    """Return the run file with this text; relative paths are relative to the folder `base`.

    Raises:
        RunFileError: it is not TOML, or asks for something unknown or impossible; one line, the first error.
    """
    name = escape_text(name)
    raw = _toml(text, name)
    try:
        return RunFile.model_validate(raw, context={"folder": base, "name": name})
    except ValidationError as error:
        raise refusal(error, raw, name=name) from None


def check(text: str, *, base: Path) -> tuple[RunFile | None, list[Problem]]:
    """Return the run file with this text, or None and everything that is wrong with it.

    Raises:
        RunFileError: it is not TOML.
    """
    raw = _toml(text, "run.toml")
    try:
        return RunFile.model_validate(raw, context={"folder": base, "name": "run.toml"}), []
    except ValidationError as error:
        return None, problems(error, raw)


class _ColumnsSection(Section):
    """What of a run file `read_columns` needs, in its place there."""

    input: AnyInput


def read_columns(keys: Mapping[str, Any]) -> LongColumns:
    """Return [input.columns] from its keys.

    Raises:
        RunFileError: a key that is missing, unknown or impossible; one line, the first error.
    """
    raw = {"input": {"dataset": "long", "files": ["*.csv"], "columns": dict(keys)}}
    try:
        asked = _ColumnsSection.model_validate(raw, context={"folder": Path(), "name": "columns"}).input
    except ValidationError as error:
        raise refusal(error, raw, name="columns") from None
    if not isinstance(asked, LongInput):
        raise TypeError("dataset long is LongInput")
    return asked.columns


def read_scheduler(written: object) -> str:
    """Return where the data work is done, if a run file could say so.

    Raises:
        RunFileError: it could not; a slip of the pen must not wait for a cluster to answer.
    """
    raw = {"engine": {"scheduler": written}}
    try:
        return EngineSection.model_validate(raw["engine"]).scheduler
    except ValidationError as error:
        raise refusal(error, raw, name="scheduler") from None


def _toml(text: str, name: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text, parse_float=Decimal)
    except tomllib.TOMLDecodeError as error:
        raise RunFileError(f"{name}: {_where(str(error), text)}") from None
    except (ValueError, ArithmeticError):
        raise RunFileError(f"{name}: a number is too long to be read") from None
    except RecursionError:
        raise RunFileError(f"{name}: lists or tables are nested too deeply") from None


def _where(message: str, text: str) -> str:
    found = _AT.fullmatch(message)
    if found is None:
        return f"is not TOML: {escape_text(message, 160)}"
    what = re.sub(r"\('.*'\)|\('.*',\)", lambda path: _table_name(path[0]), found["what"])
    lines = text.splitlines() or [""]
    line = found["line"] or len(lines)
    column = found["column"] or len(lines[-1]) + 1
    return f"line {line}, column {column}: is not TOML: {what[:1].lower()}{escape_text(what[1:], 160)}"


def _table_name(path: str) -> str:
    names = re.findall(r"'(.*?)'", path)
    return f"[{'.'.join(names)}]"


def _unreadable(path: Path, what: str, near: str = "") -> RunFileError:
    return RunFileError(f"{escape_text(path.name)}: {what}", private=f"{escape_text(str(path))}: {what}{near}")
