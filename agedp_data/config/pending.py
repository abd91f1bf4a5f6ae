"""What a run file may ask for and this version cannot carry out yet: one table, which shrinks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from agedp_data.config.places import PLACE, is_url
from agedp_data.config.quoting import written
from agedp_data.config.run import RunFile
from agedp_data.errors import RunFileError
from agedp_data.notions.parameters import Block


@dataclass(frozen=True, slots=True)
class Pending:
    """A key of a table ("series" stands for each of them) and which of its values must wait."""

    table: str
    key: str
    waits: Callable[[Any], bool]


def _elsewhere(value: object) -> bool:
    places = value if isinstance(value, tuple) else (value,)
    return any(isinstance(place, str) and is_url(place) for place in places)


PENDING = (
    Pending("output", "confidential", _elsewhere),
    Pending("population", "roster", _elsewhere),
    Pending("model", "file", _elsewhere),
    Pending("model", "curve", _elsewhere),
    Pending("model", "kernel", _elsewhere),
)


def not_yet(run: RunFile) -> None:
    """Raise RunFileError, naming table, key and value, for what is valid but cannot be carried out yet."""
    found = list(_found(run))
    if found:
        key, value = found[0]
        ending = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
        public = f"{run.name}: not yet: {key}"
        raise RunFileError(f"{public}{value}{ending}")


def _found(run: RunFile) -> Iterator[tuple[str, str]]:
    for pending in PENDING:
        for name, block in _blocks(run, pending.table):
            value = getattr(block, pending.key, None)
            # A default is silent: only what was written asks for anything.
            if pending.key in block.model_fields_set and pending.waits(value):
                field = type(block).model_fields[pending.key]
                shown = "" if PLACE in field.metadata else f" = {written(value)}"
                yield f"[{name}] {pending.key}", shown


def _blocks(run: RunFile, table: str) -> Iterator[tuple[str, Block]]:
    if table == "series":
        yield from ((f"series.{name}", each) for name, each in run.series.items())
    elif (block := getattr(run, table)) is not None:
        yield table, block
