"""The keys of the run file as Markdown, generated from the models that validate it."""

from __future__ import annotations

import ast
import inspect
import re
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

from agedp.setup.run_file_options import quoted
from agedp_data.amendment_rules import Rule
from agedp_data.config.input import INPUTS, LongColumns
from agedp_data.config.model_section import DeclaredModel, EstimatedModel
from agedp_data.config.output import AlertsSection, CompareSection, EngineSection, OutputSection, PopulationSection
from agedp_data.config.run_file import RunFile
from agedp_data.config.schedule import Archive, Live, Rehearsal
from agedp_data.notions import NOTIONS
from agedp_data.parameters import FREE, Section
from agedp_data.series.coverage import Coverage
from agedp_data.series.distribution import Distribution
from agedp_data.series.mean import Mean
from agedp_data.series.profile import Profile

TABLES: dict[str, tuple[type[Section], ...]] = {
    "input": INPUTS,
    "input.columns": (LongColumns,),
    "output": (OutputSection,),
    "population": (PopulationSection,),
    "schedule": (Archive, Live, Rehearsal),
    "series.NAME": (Mean, Distribution, Profile, Coverage),
    "promise": NOTIONS,
    "model": (DeclaredModel, EstimatedModel),
    "compare": (CompareSection,),
    "alerts": (AlertsSection,),
    "engine": (EngineSection,),
}
"""Every table of a run file, with its section classes, one for each value of the first Literal."""

_INTRODUCTIONS = {
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
    "engine": "How the run is computed. Results are equal to the bit for all settings.",
}
_FREE_SECTIONS = (OutputSection, CompareSection, AlertsSection, EngineSection)
_VALIDATOR_TEXTS = {
    "positive": "number above 0",
    "fraction": "number between 0 and 1",
    "share": "number above 0, at most 1",
    "_epsilon": "epsilon above 0",
    "_draw_epsilon": "epsilon above 0",
    "_delta": 'between 0 and 1, a number or text such as `"1e-6"`',
    "_total": 'epsilon above 0, or `"unlimited"`',
    "kwh": "kWh",
    "positive_kwh": "kWh above 0",
    "text": "text",
    "_group_columns": "text, or list of 2 to 6 texts",
    "_zone": "time zone",
    "horizon": 'number of days, or `"unlimited"`',
    "acceptances": 'list of `"no-credit"`, `"useless"`, `"total"`',
    "day": "date",
    "_cron": "cron line",
    "_location": "path or URL",
    "_shared_folder": "path",
    "_pattern": "path, glob or URL",
    "_ledger": "`sqlite:///` or `postgresql://` URL",
    "_witness": "path or `s3://` URL",
    "_marker": "path or URL with `{day}`",
    "_scheduler": '`"threads"`, `"processes"`, `"local-cluster"` or an address',
    "_acceptance": "`true`",
    "_edges": '`"quantile"`, `"equal-width"` or a list of kWh',
    "_period": "list of two dates",
    "_ages": "ascending list of days",
    "_bins": "ascending list of kWh from 0",
    "_quantiles": "list of inline tables",
    "_deltas": "ascending list of kWh",
    "_skip_days": "list of dates",
    "_version": "1",
    "_averages_by": '`"week"`, `"month"` or `"year"`, or list of them',
    "_times": "column, or list of two columns",
    "_columns": "column, or list of two columns",
    "_where": "table of columns, each with a text or list of texts",
    "_text_or_none": "text",
    "_keys_of_columns": "list of keys of `[input.columns]`",
    "accepted_findings": "list of names of findings",
    "_clamps": "ascending list of kWh",
    "_shares": "list of numbers",
}
"""What each validator takes; a validator without a text has no type in the page, and is refused."""


def run_file_page() -> str:
    """Return the tables of a run file, each with its keys."""
    lines = [line for table, sections in TABLES.items() for line in _table_lines(table, sections)]
    return "\n".join([*_overview(), *lines])


def _overview() -> Iterator[str]:
    """Yield a table of all tables of a run file, each with its content and a link to its section."""
    yield from ("| table | content |", "|---|---|")
    yield from (f"| [`[{table}]`](#{_anchor(table)}) | {_INTRODUCTIONS[table]} |" for table in TABLES)
    yield ""


def _anchor(table: str) -> str:
    """Return the address of a table's section.

    >>> _anchor("series.NAME")
    'seriesname'
    """
    return table.replace(".", "").lower()


def _table_lines(table: str, sections: tuple[type[Section], ...]) -> Iterator[str]:
    yield from (f"## [{table}]", "", _INTRODUCTIONS[table], "")
    shared = [
        key
        for key in sections[0].model_fields
        if all(_is_same_key(key, section, sections[0]) for section in sections[1:])
    ]
    yield from _keys(sections, shared)
    earlier: dict[str, tuple[type[Section], str]] = {}
    for section in sections if len(sections) > 1 else ():
        own_keys = [key for key in section.model_fields if key not in shared]
        choice = next(key for key in own_keys if get_origin(section.model_fields[key].annotation) is Literal)
        heading = f'{choice} = "{get_args(section.model_fields[choice].annotation)[0]}"'
        again = [key for key in own_keys if key in earlier and _is_same_key(key, section, earlier[key][0])]
        yield from (f"### {heading}", "")
        if again:
            yield from (f"`{'`, `'.join(again)}`: as for {earlier[again[0]][1]}.", "")
        new = [key for key in own_keys if key not in (choice, *again)]
        yield from list(_keys((section,), new)) or ([] if again else ["No further keys.", ""])
        earlier |= {key: (section, heading) for key in new if key not in earlier}


def _is_same_key(key: str, section: type[Section], reference: type[Section]) -> bool:
    """Return whether a key has the same values and meaning in two sections, required or not."""
    if key not in section.model_fields:
        return False
    field, reference_field = section.model_fields[key], reference.model_fields[key]
    return _values(field) == _values(reference_field) and key_meaning(section, key) == key_meaning(reference, key)


def _keys(sections: tuple[type[Section], ...], keys: Iterable[str]) -> Iterator[str]:
    first_section = sections[0]
    named = [key for key in keys if not _is_table(first_section.model_fields[key])]
    if not named:
        return
    for key in named:
        fields = [section.model_fields[key] for section in sections]
        default = next((_default(field) for field in fields if not field.is_required()), "**must**")
        values = ", ".join(text for text in (_values(fields[0]), default) if text)
        rules = fields[0].metadata
        is_amended = any(isinstance(rule, Rule) for rule in rules)
        free = " *Free.*" if FREE in rules or (first_section in _FREE_SECTIONS and not is_amended) else ""
        yield f"* `{key}` ({values}): {without_emphasis(key_meaning(first_section, key))}{free}"
    yield ""


def without_emphasis(text: str) -> str:
    r"""Return a text in which a star is a star, as in a name of files.

    >>> without_emphasis('"*" or "m-*.csv", not `*`')
    '"\\*" or "m-\\*.csv", not `*`'
    """
    return "".join(part if part.startswith("`") else part.replace("*", r"\*") for part in re.split(r"(`[^`]*`)", text))


def _is_table(field: FieldInfo) -> bool:
    return inspect.isclass(field.annotation) and issubclass(field.annotation, Section)


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "**must**"
    if field.default is PydanticUndefined or field.default is None or field.default == ():
        return ""
    return f"default `{_written(field.default)}`"


def _written(value: object) -> str:
    if isinstance(value, tuple):
        return f"[{', '.join(_written(item) for item in value)}]"
    return f'"{value}"' if isinstance(value, str) else str(value)


def _values(field: FieldInfo) -> str:
    """Return the values of a key as text."""
    if get_origin(field.annotation) is Literal:
        return _words(field.annotation)
    return _validator_text(field.metadata) or _annotation_text(field.annotation, _bounds(field.metadata))


def _words(annotation: Any) -> str:  # noqa: ANN401  (a Literal)
    """Return the values of a Literal as a run file has them.

    >>> _words(Literal[5, "day"])
    '`5`, `"day"`'
    """
    return ", ".join(f"`{quoted(value) if isinstance(value, str) else value}`" for value in get_args(annotation))


def _validator_text(metadata: Iterable[Any]) -> str:
    """Return the values of a validator as text, "" without a validator."""
    names = [item.func.__name__ for item in metadata if isinstance(item, PlainValidator)]
    return _VALIDATOR_TEXTS[names[0]] if names else ""


def _bounds(metadata: Iterable[Any]) -> tuple[str, str]:
    limits = {name: str(getattr(item, name)) for item in metadata for name in ("ge", "le") if hasattr(item, name)}
    return limits.get("ge", ""), limits.get("le", "")


def _annotation_text(annotation: Any, bounds: tuple[str, str] = ("", "")) -> str:  # noqa: ANN401  (any annotation there is)
    """Return an annotation as text."""
    origin, parts = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _annotated_text(parts)
    if origin in (Union, types.UnionType):
        return ", or ".join(_annotation_text(part, bounds) for part in parts if part is not type(None))
    if origin is Literal:
        return _words(annotation)
    if origin is tuple:
        return f"list of {_annotation_text(parts[0])}"
    low, high = bounds
    type_name = {bool: "`true`, `false`", int: "whole number", str: "text", date: "date", Decimal: "number"}[annotation]
    return f"{low} to {int(high):,}" if high else f"{type_name} from {low}" if low else type_name


def _annotated_text(parts: tuple[Any, ...]) -> str:
    if text := _validator_text(parts[1:]):
        return text
    nested = [note for part in parts[1:] for note in (part.metadata if isinstance(part, FieldInfo) else [part])]
    return _annotation_text(parts[0], _bounds(nested))


def key_meaning(section: type[Section], key: str) -> str:
    """Return the docstring below a key's declaration.

    Raises:
        LookupError: the key has no docstring.
    """
    for ancestor in section.__mro__:
        if key in (docstrings := _field_docstrings(ancestor)):
            return docstrings[key]
    raise LookupError(f"{section.__name__}.{key} has no text below it that says what it means")


@cache
def _field_docstrings(section: type) -> dict[str, str]:
    """Return the docstrings below the declarations of a class, by key."""
    try:
        body = ast.parse(textwrap.dedent(inspect.getsource(section))).body[0].body  # type: ignore[attr-defined]
    except (OSError, TypeError):  # made by `create_model`: its declarations are in its bases
        return {}
    return {
        declaration.target.id: " ".join(text.value.value.split())
        for declaration, text in pairwise(body)
        if isinstance(declaration, ast.AnnAssign)
        and isinstance(text, ast.Expr)
        and isinstance(text.value, ast.Constant)
        and isinstance(text.value.value, str)
    }


def every_key() -> Iterator[tuple[type[Section], str]]:
    """Yield every key of every table, and of the file itself."""
    yield RunFile, "version"
    for sections in TABLES.values():
        yield from (
            (section, key)
            for section in sections
            for key in section.model_fields
            if not _is_table(section.model_fields[key])
        )
