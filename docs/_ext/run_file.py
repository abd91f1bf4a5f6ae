"""The keys of the run file as Markdown, read off the models that check it: a page that cannot drift."""

from __future__ import annotations

import ast
import inspect
import textwrap
import types
from collections.abc import Iterable, Iterator
from datetime import date
from decimal import Decimal
from functools import cache
from itertools import pairwise
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import PlainValidator
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined
from table_heads import KEY_TABLE

from agedp_data.config.input import INPUTS, LongColumns
from agedp_data.config.model import DeclaredModel, EstimatedModel
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
from agedp_data.notions import NOTIONS
from agedp_data.notions.parameters import FREE, Section

TABLES: dict[str, tuple[type[Section], ...]] = {
    "input": INPUTS,
    "input.columns": (LongColumns,),
    "output": (OutputSection,),
    "population": (PopulationSection,),
    "schedule": (Archive, Live, Rehearsal),
    "series.NAME": (Mean, Distribution),
    "promise": NOTIONS,
    "model": (DeclaredModel, EstimatedModel),
    "compare": (CompareSection,),
    "alerts": (AlertsSection,),
    "engine": (EngineSection,),
}
"""Every table of a run file, with the blocks of which it is one; a block is told by its first Literal."""

_INTRODUCED = {
    "input": "The input files. Each dataset has keys of its own; a key of another dataset is refused.",
    "input.columns": 'The columns of a table with one row per household and half-hour; for `dataset = "long"` only.',
    "output": "Folders, ledger and title.",
    "population": "The households that the promise protects.",
    "schedule": "The days of the series, and when each is due.",
    "series.NAME": "The published statistics: one table for each series, under a name that you choose.",
    "promise": "The notion of privacy with its parameters and caps, explained in [the six notions](notions.md).",
    "model": "The model of temporal correlation, declared or estimated. Only some promises need one.",
    "compare": "Additional bounds in the statement; they change no noise.",
    "alerts": "Warnings to the operator: confidential, and without effect on what is released.",
    "engine": "How the run is computed. Results are equal to the bit whatever is written here.",
}
_ALL_FREE = (OutputSection, CompareSection, AlertsSection, EngineSection)
_WORDS = {
    "positive": "number above 0",
    "fraction": "number between 0 and 1",
    "_share": "number above 0, at most 1",
    "_epsilon": "epsilon above 0",
    "_total": 'epsilon above 0, or `"unlimited"`',
    "kwh": "kWh, three decimals at most",
    "positive_kwh": "kWh above 0, three decimals at most",
    "text": "text",
    "_zone": "time zone",
    "horizon": 'number of days, or `"unlimited"`',
    "day": "date",
    "_cron": "cron line",
    "_place": "path or URL",
    "_shared_folder": "path",
    "_pattern": "path, glob or URL",
    "_ledger": "`sqlite:///` or `postgresql://` URL",
    "_witness": "path, `s3://` or `postgresql://` URL",
    "_marker": "path or URL with `{day}`",
    "_scheduler": '`"threads"`, `"processes"`, `"local-cluster"` or an address',
    "_edges": '`"quantile"`, `"equal-width"` or a list of kWh',
    "_period": "list of two dates",
    "_ages": "ascending list of days",
    "_bins": "ascending list of kWh from 0",
    "_deltas": "ascending list of kWh",
    "_skip_days": "list of dates",
    "_version": "1",
}


def run_file_page() -> str:
    """Return the tables of a run file, each with its keys."""
    lines = [line for table, blocks in TABLES.items() for line in _table_lines(table, blocks)]
    return "\n".join([*_overview(), *lines])


def _overview() -> Iterator[str]:
    """Yield a table of all tables of a run file, each with its content and a link to its section."""
    yield from ("| table | content |", "|---|---|")
    yield from (f"| [`[{table}]`](#{_anchor(table)}) | {_INTRODUCED[table]} |" for table in TABLES)
    yield ""


def _anchor(table: str) -> str:
    """Return the address of a table's section.

    >>> _anchor("series.NAME")
    'seriesname'
    """
    return table.replace(".", "").lower()


def _table_lines(table: str, blocks: tuple[type[Section], ...]) -> Iterator[str]:
    yield from (f"## [{table}]", "", _INTRODUCED[table], "")
    shared = [key for key in blocks[0].model_fields if all(_same(key, each, blocks[0]) for each in blocks[1:])]
    yield from _keys(blocks, shared)
    for block in blocks if len(blocks) > 1 else ():
        own = [key for key in block.model_fields if key not in shared]
        told = next(key for key in own if get_origin(block.model_fields[key].annotation) is Literal)
        value = get_args(block.model_fields[told].annotation)[0]
        yield from (f'### {told} = "{value}"', "")
        yield from list(_keys((block,), [key for key in own if key != told])) or ["No further keys.", ""]


def _same(key: str, block: type[Section], other: type[Section]) -> bool:
    """Tell whether two blocks mean the same by a key, whether or not both must have it."""
    if key not in block.model_fields:
        return False
    one, two = block.model_fields[key], other.model_fields[key]
    return _values(one) == _values(two) and meaning(block, key) == meaning(other, key)


def _keys(blocks: tuple[type[Section], ...], keys: Iterable[str]) -> Iterator[str]:
    block = blocks[0]
    named = [key for key in keys if not _is_table(block.model_fields[key])]
    if not named:
        return
    yield from (KEY_TABLE, "|---|---|---|---|")
    for key in named:
        fields = [each.model_fields[key] for each in blocks]
        default = next((_default(field) for field in fields if not field.is_required()), "**must**")
        free = " *Free.*" if FREE in fields[0].metadata or block in _ALL_FREE else ""
        yield f"| `{key}` | {_values(fields[0])} | {default} | {meaning(block, key)}{free} |"
    yield ""


def _is_table(field: FieldInfo) -> bool:
    return inspect.isclass(field.annotation) and issubclass(field.annotation, Section)


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "**must**"
    if field.default is PydanticUndefined or field.default is None or field.default == ():
        return "–"
    return f"`{_written(field.default)}`"


def _written(value: object) -> str:
    if isinstance(value, tuple):
        return f"[{', '.join(_written(each) for each in value)}]"
    return f'"{value}"' if isinstance(value, str) else str(value)


def _values(field: FieldInfo) -> str:
    """Return what a key takes, in words."""
    if get_origin(field.annotation) is Literal:
        return ", ".join(f'`"{each}"`' for each in get_args(field.annotation))
    return _worded(field.metadata) or _kind(field.annotation, _bounds(field.metadata))


def _worded(notes: Iterable[Any]) -> str:
    """Return what a validator takes, "" if there is none; one that has no words here is told by its name."""
    names = [note.func.__name__ for note in notes if isinstance(note, PlainValidator)]
    return _WORDS.get(names[0], names[0].strip("_").replace("_", " ")) if names else ""


def _bounds(notes: Iterable[Any]) -> tuple[str, str]:
    found = {name: str(getattr(note, name)) for note in notes for name in ("ge", "le") if hasattr(note, name)}
    return found.get("ge", ""), found.get("le", "")


def _kind(annotation: Any, bounds: tuple[str, str] = ("", "")) -> str:  # noqa: ANN401  (any annotation there is)
    """Return an annotation in words."""
    origin, parts = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _kind_of_notes(parts)
    if origin in (Union, types.UnionType):
        return ", or ".join(_kind(part, bounds) for part in parts if part is not type(None))
    if origin is Literal:
        return ", ".join(f'`"{part}"`' for part in parts)
    if origin is tuple:
        return f"list of {_kind(parts[0])}"
    least, most = bounds
    named = {int: "whole number", str: "text", date: "date", Decimal: "number"}[annotation]
    return f"{named} from {least} to {int(most):,}" if most else f"{named} from {least}" if least else named


def _kind_of_notes(parts: tuple[Any, ...]) -> str:
    if words := _worded(parts[1:]):
        return words
    deeper = [note for part in parts[1:] for note in (part.metadata if isinstance(part, FieldInfo) else [part])]
    return _kind(parts[0], _bounds(deeper))


def meaning(block: type[Section], key: str) -> str:
    """Return what the text below a key's declaration says.

    Raises:
        LookupError: a key without one.
    """
    for each in block.__mro__:
        if key in (said := _said(each)):
            return said[key]
    raise LookupError(f"{block.__name__}.{key} has no text below it that says what it means")


@cache
def _said(block: type) -> dict[str, str]:
    """Return the texts that stand below the declarations of a class."""
    try:
        body = ast.parse(textwrap.dedent(inspect.getsource(block))).body[0].body  # type: ignore[attr-defined]
    except (OSError, TypeError):  # made by `create_model`: its declarations stand in its bases
        return {}
    return {
        declared.target.id: " ".join(text.value.value.split())
        for declared, text in pairwise(body)
        if isinstance(declared, ast.AnnAssign)
        and isinstance(text, ast.Expr)
        and isinstance(text.value, ast.Constant)
        and isinstance(text.value.value, str)
    }


def every_key() -> Iterator[tuple[type[Section], str]]:
    """Yield every key of every table, and of the file itself."""
    yield RunFile, "version"
    for blocks in TABLES.values():
        yield from (
            (block, key) for block in blocks for key in block.model_fields if not _is_table(block.model_fields[key])
        )
