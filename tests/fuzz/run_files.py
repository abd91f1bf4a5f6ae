"""Every key of every table of a run file, found by walking the models, and a sound run file to spoil for each.

Only the sound values are written down here; a block or key that has none makes `keys` fail and say so.
"""

from __future__ import annotations

import copy
import json
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any, get_args

from pydantic import BaseModel

from agedp_data.config.run_file import RunFile

Document = dict[str, Any]
TABLE_CHOICES = {"input": "dataset", "schedule": "mode", "series": "statistic", "promise": "notion", "model": "source"}

_SOUND = Path(__file__).with_name("sound.toml").read_text("utf-8")
_EITHER = {
    ("model", "declared", "curve"): "forgetting.csv",
    ("promise", "age-dependent", "risk"): Decimal("0.5"),
    ("model", "estimated", "accept_unverified_model"): True,
}
"""Keys that stand in the place of another one, or beside one of these, with a sound value."""


def sound(table: str, choice: str, key: str = "") -> Document:
    """Return a run file without a fault that has this table in this choice, every key of it written out."""
    blocks = tomllib.loads(_SOUND, parse_float=Decimal)
    mode = "rehearsal" if (table, key) == ("promise", "age_days") else "archive"
    chosen = {"input": "london", "schedule": mode, "series": "mean", "promise": "classical", "model": "estimated"}
    if choice:
        chosen[table] = choice
    document: Document = {"version": 1}
    for name, tables in blocks.items():
        block = tables[chosen.get(name, "all")]
        document[name] = {"daily": block} if name == "series" else block
    if chosen["schedule"] != "archive" or choice == "age-dependent" or (table, key) == ("promise", "age_days"):
        document["promise"]["age_days"] = 2
    document = copy.deepcopy(document)
    series = document["series"]["daily"]
    if document["promise"]["notion"] not in ("classical", "w-event") and "every" in series:
        series["every"] = "day"  # other notions bound releases of single days
    return document


@dataclass(frozen=True)
class Key:
    """One key of one block; `table` is its path in the file."""

    path: tuple[str, ...]
    table: str
    choice: str
    key: str
    value: Any
    literals: tuple[str, ...] = ()
    """The texts that the key may have, if they are listed."""

    def __str__(self) -> str:
        return f"{'.'.join(self.path)}({self.choice}).{self.key}"

    def document(self) -> tuple[Document, dict[str, Any]]:
        """Return a sound run file and, inside it, the table that has the key."""
        document = sound(self.table, self.choice, self.key)
        if (self.table, self.choice, self.key) == ("model", "declared", "curve"):
            for other in ("kernel", "step"):
                del document["model"][other]
        if self.key == "accept_unverified_model":
            document["promise"] = {**sound("promise", "age-dependent")["promise"], "risk": Decimal("0.5")}
            document["promise"]["method"] = "tight"
            document["series"]["daily"]["every"] = "day"
        if self.key in ("risk", "accept_unverified_model"):
            del document["promise"]["epsilon_per_day"]
        here = document
        for name in self.path:
            here = here[name]
        here[self.key] = copy.deepcopy(self.value)
        return document, here


def _leaves(annotation: Any) -> Iterator[Any]:
    inner = get_args(annotation)
    yield from (leaf for each in inner for leaf in _leaves(each)) if inner else [annotation]


@cache
def blocks() -> tuple[tuple[tuple[str, ...], str, type[BaseModel]], ...]:
    """Return every table of a run file: its path, which choice of it, and its model."""
    return tuple(_walk(RunFile, ()))


def _walk(model: type[BaseModel], path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], str, type[BaseModel]]]:
    for name, field in model.model_fields.items():
        if name == "quantiles":
            continue  # a list of tables, refused as one value
        below = (*path, name, *(["daily"] if name == "series" else []))
        for leaf in _leaves(field.annotation):
            if isinstance(leaf, type) and issubclass(leaf, BaseModel):
                tag = TABLE_CHOICES.get(name, "")
                choice = get_args(leaf.model_fields[tag].annotation)[0] if tag else ("long" if path else "")
                yield below, choice, leaf
                yield from _walk(leaf, below)


@cache
def keys() -> tuple[Key, ...]:
    """Return every key of every block."""
    found = [Key((), "", "", "version", 1)]
    for path, choice, block in blocks():
        here: Any = sound(path[0], choice)
        for name in path:
            here = here[name]
        for key, field in block.model_fields.items():
            if key == "columns":
                continue  # a table of its own
            value = _EITHER.get((path[0], choice, key), here.get(key))
            if value is None and key == "age_days":
                value = 2
            if value is None:
                raise LookupError(f"write a sound value of [{'.'.join(path)}] {key} for {choice!r} into sound.toml")
            literals = tuple(each for each in _leaves(field.annotation) if isinstance(each, str))
            found.append(Key(path, path[0], choice, key, value, literals))
    return tuple(found)


class Raw(str):
    """TOML text."""

    __slots__ = ()


def toml(document: Document, path: tuple[str, ...] = ()) -> str:
    """Return a document as TOML; a `Raw` value as it is written."""
    lines = [f"[{'.'.join(map(_name, path))}]"] if path else []
    lines += [f"{_name(key)} = {toml_value(value)}" for key, value in document.items() if not isinstance(value, dict)]
    tables = [toml(value, (*path, key)) for key, value in document.items() if isinstance(value, dict)]
    return "\n".join(lines) + "\n" + "".join(tables)


def _name(key: str) -> str:
    return key if key.isascii() and key.replace("_", "").replace("-", "").isalnum() else _quoted(key)


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def toml_value(value: Any) -> str:
    match value:
        case Raw():
            return str(value)
        case bool():
            return str(value).lower()
        case str():
            return _quoted(value)
        case list():
            return f"[{', '.join(map(toml_value, value))}]"
        case dict():
            return f"{{{', '.join(f'{name} = {toml_value(one)}' for name, one in value.items())}}}"
        case _:
            return value.isoformat() if isinstance(value, date) else str(value)
