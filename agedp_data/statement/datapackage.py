"""datapackage.json: the contents of a release folder, for catalogues and tools (Frictionless Data Package 2.0).

Every file except the checksums and this one is a resource with its SHA-256. A Parquet table has a schema with type,
unit and meaning of every column, read from the file itself (`tables` declares them). Source, licence and contact are
the run file's: the attribution that a licence requires is the text of `sources`.

Decisions. `unit` is an additional property of the project, in SI symbols, "1" for a dimensionless column. The licence
is its identifier if it can be one, such as CC-BY-4.0, else a title under the name "other". There is no date of
creation: it would be finer than the dates that may be known, or invented. Recipients check a package with
`Package("datapackage.json").validate()`: it compares the Parquet tables with their columns, but does not count their
bytes and reports a given size as an error; so tables have no size, and files that are not tables have the type "file".
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from agedp_data.series.layered_mean import layer_text
from agedp_data.series.mean import AVERAGES
from agedp_data.series.result_table import DerivedTable, ResultTable
from agedp_data.series.series import DERIVED_TABLES, RESULT_TABLES, STATISTICS
from agedp_data.statement.document import Statement
from agedp_data.table_schemas import LEVEL

_PROFILES: Final = "https://datapackage.org/profiles/2.0/"
_KEY: Final = (
    *("day", "series", "level", "group", "day_kind", "start_minute", "revision"),
    *("layer", "bin_low_kwh", "bin_high_kwh", "share"),
)
_PERIOD_KEY: Final = ("first_day", "series", "group", "version", "day_kind", "start_minute")
_UNITS: Final = {
    "_kwh": "kWh",
    "_wh": "Wh",
    "households": "household",
    "_noisy": "household",
    "noise_sd": "household",
    "epsilon": "1",
    "minute": "min",
    "minutes": "min",
}
_IDENTIFIER: Final = re.compile(r"[-a-zA-Z0-9._]+")
_MINIMA: Final = {"households": 1, "revision": 0, "version": 1, "noise_sd_kwh": 0, "noise_sd": 0, "epsilon": 0}
_KINDS: Final = {
    ".parquet": ("parquet", "application/vnd.apache.parquet"),
    ".json": ("json", "application/json"),
    ".jsonl": ("jsonl", "application/x-ndjson"),
    ".md": ("md", "text/markdown"),
    ".html": ("html", "text/html"),
}
_ABOUT: Final = {
    "statement.json": "the privacy statement: every bound, its scope and assumption; JSON schema: statement-2.json",
    "STATEMENT.md": "the privacy statement as text",
    "ledger_rows.jsonl": "the ledger records that the values were published from, one JSON object per line",
    "deployment.json": "an entry for the registry of differential-privacy deployments; the publisher fills in each ...",
    "report.html": "the series, their noise, the privacy losses and the statement on one page",
    "explore.html": "the tables as charts to zoom, and groups to choose from; the script in it is BokehJS",
    "smoothing.json": "what the estimates were computed from, the model, its amplitudes, and what they are not",
    "smoothed.html": "published values and estimates with their intervals on one page",
}
_CREDITS: Final = ("licenses", "sources", "contributors")
_LAYER_1: Final = "{layer}: {averages}; the layers above it are in a table of their own, to be added to it"
_SMOOTHED: Final = (
    "published averages over households by day, and beside them estimates from these averages, the calendar and the "
    'weather; the sources are in the metadata of the Parquet schema, key "agedp"'
)


class StoredFile(NamedTuple):
    """A file of a release folder: size [bytes], SHA-256, and its columns if it is a table."""

    size: int
    digest: str
    schema: pa.Schema | None


def datapackage(
    statement: Statement,
    files: Mapping[str, bytes],
    partitioned: Sequence[Mapping[str, Any]] = (),
    *,
    smoothed: str = "",
) -> dict[str, Any]:
    """Return the descriptor of a release, or of smoothed estimates of it, from its statement and files.

    Args:
        statement: of the release; its licence and source are those of estimates too.
        files: the files of the folder by name.
        partitioned: resources of tables by month (`partition_resources`).
        smoothed: what estimates are; "" for a release.
    """
    title = f"{statement.full_title}: smoothed estimates" if smoothed else statement.full_title
    return {
        "$schema": f"{_PROFILES}datapackage.json",
        "name": f"{slug(statement.population)}{'-smoothed' if smoothed else ''}",
        "title": f"REHEARSAL: {title}" if statement.rehearsal else title,
        "description": smoothed or release_description(statement),
        **_credits(statement),
        "resources": [*_resources(files, statement), *partitioned],
    }


def slug(text: str) -> str:
    """Return a text as a part of an address: small letters, digits, full stops and hyphens."""
    return re.sub(r"[^a-z0-9._]+", "-", text.lower()).strip("-") or "release"


def release_description(statement: Statement) -> str:
    """Return what a release contains, in two sentences."""
    days = statement.days
    rehearsal = "Simulated dates, no publication. " if statement.rehearsal else ""
    rehearsal += "Synthetic households. " if statement.contract.schedule.rehearsal_on == "synthetic" else ""
    span = f" from {days.first} to {days.last}" if days.released else ""
    kinds = {series.statistic for stated in statement.stated_contracts for series in stated.series.values()}
    *others, last = (statistic.PLURAL for statistic in STATISTICS if statistic.KIND in kinds)
    statistics = f"{', '.join(others)} and {last}" if others else last
    model = f"the model, estimated without noise from the days {statement.model_days}"
    counted = f" by the noisy releases (not by {model})" if statement.model_days else ""
    return (
        f"{rehearsal}Electricity use of {statement.population}{span}: {statistics} with noise. STATEMENT.md "
        f"contains the bounds on the privacy loss of one household{counted}, and what is not protected."
    )


def _credits(statement: Statement) -> dict[str, Any]:
    """Return source, licence and contact, as far as the statement has them."""
    credits: dict[str, Any] = {}
    if text := statement.licence:
        credits["licenses"] = [{"name": text} if _IDENTIFIER.fullmatch(text) else {"name": "other", "title": text}]
    if statement.source:
        credits["sources"] = [{"title": statement.source}]
    if statement.contact:
        credits["contributors"] = [{"title": statement.contact, "roles": ["contact"]}]
    return credits


def _resources(files: Mapping[str, bytes], statement: Statement) -> Iterator[dict[str, Any]]:
    names_taken: set[str] = set()
    for path, content in files.items():
        stem = name = slug(path.removesuffix(".parquet"))
        while name in names_taken:  # series that differ in case only
            name = f"{stem}-{len(names_taken)}"
        names_taken.add(name)
        ending = path[path.rindex(".") :]
        kind, media = _KINDS[ending]
        is_table = ending == ".parquet"
        description = table_description(_read_schema(content), statement) if is_table else _ABOUT.get(path)
        yield {
            "name": name,
            "type": "table" if is_table else "file",
            "path": path,
            "format": kind,
            "mediatype": media,
            **({"description": description} if description else {}),
            **({} if is_table else {"bytes": len(content)}),
            "hash": f"sha256:{hashlib.sha256(content).hexdigest()}",
            **({"schema": table_dictionary(_read_schema(content))} if is_table else {}),
        }


def table_description(schema: pa.Schema, statement: Statement) -> str:
    """Return what a table contains, by its columns and its guarantee."""
    if "live_kwh" in schema.names:
        return _SMOOTHED
    names = {*schema.names} - {LEVEL.name}
    tables: tuple[ResultTable | DerivedTable, ...] = (*RESULT_TABLES, *DERIVED_TABLES)
    table = next((table for table in tables if {*table.schema.names} == names), AVERAGES)
    if "layer" in schema.names:
        return table.description.format(ranges=_layer_ranges(schema))
    layer = _lowest_layer(schema, statement) if table is AVERAGES else ""
    return _LAYER_1.format(layer=layer, averages=table.description) if layer else table.description


def _lowest_layer(schema: pa.Schema, statement: Statement) -> str:
    """Return what layer 1 of a table's mean is called, under each contract; "" for a mean without layers."""
    metadata = json.loads((schema.metadata or {}).get(b"agedp", b"{}"))
    name = f"{metadata.get('of')}/1"
    terms = [stated.series[name] for stated in statement.stated_contracts if name in stated.series]
    return "; then ".join(dict.fromkeys(layer_text(name, of.clamp_kwh) for of in terms if of.clamp_kwh))


def _layer_ranges(schema: pa.Schema) -> str:
    """Return the ranges of the layers of a table; where amendments changed them, by the version of their rows."""
    by_version = json.loads((schema.metadata or {})[b"agedp"])["layers_by_version"]
    versions: dict[str, list[str]] = {}
    for version, layers in sorted(by_version.items(), key=lambda item: int(item[0])):
        versions.setdefault(_ranges_text(layers), []).append(version)
    if len(versions) == 1:
        return next(iter(versions))
    return "; ".join(f"version {', '.join(numbers)}: {text}" for text, numbers in versions.items())


def _ranges_text(layers: Mapping[str, Mapping[str, str]]) -> str:
    return "; ".join(
        f"layer {number}: mean energy per household above {layer['above_kwh']} and up to {layer['clamp_kwh']} kWh a day"
        for number, layer in sorted(layers.items())
    )


def table_dictionary(table: pa.Schema) -> dict[str, Any]:
    """Return the dictionary of a table's columns."""
    return {
        "$schema": f"{_PROFILES}tableschema.json",
        "fields": [_field(field) for field in table],
        "primaryKey": [name for name in (_PERIOD_KEY if "first_day" in table.names else _KEY) if name in table.names],
    }


def _field(field: pa.Field) -> dict[str, Any]:
    no_unit = "" if _type(field.type) in ("date", "string") else "1"
    unit = next((unit for ending, unit in _UNITS.items() if field.name.endswith(ending)), no_unit)
    has_minimum = field.name in _MINIMA and not field.nullable
    minimum = {"minimum": _MINIMA[field.name]} if has_minimum else {}
    return {
        "name": field.name,
        "type": "number" if field.nullable else _type(field.type),  # pandas reads an empty integer as NaN
        "description": (field.metadata or {}).get(b"description", b"").decode(),
        **({"unit": unit} if unit else {}),
        "constraints": {"required": not field.nullable, **minimum},
    }


def _type(kind: pa.DataType) -> str:
    """Return Frictionless's name of an Arrow type.

    >>> _type(pa.date32()), _type(pa.int64()), _type(pa.float64()), _type(pa.string())
    ('date', 'integer', 'number', 'string')
    """
    if pa.types.is_date(kind):
        return "date"
    if pa.types.is_integer(kind):
        return "integer"
    return "number" if pa.types.is_floating(kind) else "string"


def package_faults(
    descriptor: Mapping[str, Any], statement: Statement, files: Mapping[str, StoredFile]
) -> Iterator[str]:
    """Yield the differences of a descriptor from a statement and its files, for verification.

    Sizes, checksums, columns, types and credits are compared; descriptions may differ between versions of agedp.
    """
    listed = [resource for resource in descriptor["resources"] if not isinstance(resource["path"], list)]
    resources = {resource["path"]: resource for resource in listed}
    if len(resources) != len(listed) or set(resources) != set(files):
        yield "lists other files than the release has"
        return
    for path, file in files.items():
        resource = resources[path]
        if (resource.get("bytes", file.size), resource["hash"]) != (file.size, f"sha256:{file.digest}"):
            yield f"gives another size or checksum of {path}"
        if file.schema is not None and _columns(resource["schema"]) != _columns(table_dictionary(file.schema)):
            yield f"gives other columns of {path}"
    if {key: descriptor[key] for key in _CREDITS if key in descriptor} != _credits(statement):
        yield "names another source, licence or contact than the statement"


def _read_schema(content: bytes) -> pa.Schema:
    return pq.read_schema(pa.BufferReader(content))


def _columns(schema: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    return [(field["name"], field["type"], field.get("unit", "")) for field in schema.get("fields", ())]


# --------------------------------------------------------------------------------------------------
# Tables of a release by month of publication -> their resources in datapackage.json, and verification of these.
#
# A table is one resource whose `path` lists its files. `partitions` adds checksum and size of each file, because a
# resource of several files can have no `hash`. `partition_format` is the format of the columns: files of another one
# are written again, so that all months of a table have the same columns.
# --------------------------------------------------------------------------------------------------

BY_MONTH: Final = (
    "; a file for each month of publication (`published_month`), which is never written again once a later month has "
    "begun: late days, amendments and releases of periods are in the month in which they were published"
)
PARTITION_FORMAT: Final = 1
"""Format of the files of months. A change of columns, their meaning or the guarantee adds 1; all are written again."""
FORMAT_KEY: Final = "partition_format"
_ROWS: Final = "the ledger records that the values were published from, one JSON object per line"


@dataclass(frozen=True, slots=True)
class PartitionFile:
    """A file of a month: its path in the release folder, SHA-256 and size [bytes]."""

    path: str
    digest: str
    size: int


@dataclass(frozen=True, slots=True)
class PartitionedTable:
    """A table by month: its name, its files, oldest first, and its newest columns; None for the ledger rows."""

    name: str
    files: tuple[PartitionFile, ...]
    schema: pa.Schema | None


def partition_resources(tables: Sequence[PartitionedTable], statement: Statement) -> list[dict[str, Any]]:
    """Return the resources of tables by month."""
    return [
        {
            "name": table.name,
            "type": "file" if table.schema is None else "table",
            "path": [file.path for file in table.files],
            **dict(zip(("format", "mediatype"), _KINDS[".jsonl" if table.schema is None else ".parquet"], strict=True)),
            "description": f"{_ROWS if table.schema is None else table_description(table.schema, statement)}{BY_MONTH}",
            FORMAT_KEY: PARTITION_FORMAT,
            "partitions": [
                {"path": file.path, "bytes": file.size, "hash": f"sha256:{file.digest}"} for file in table.files
            ],
            **({} if table.schema is None else {"schema": table_dictionary(table.schema)}),
        }
        for table in tables
    ]


def partition_faults(
    resources: Sequence[Mapping[str, Any]], statement: Statement, tables: Sequence[PartitionedTable]
) -> Iterator[str]:
    """Yield the differences of the resources of tables by month from the files of a folder, for verification."""
    by_name = {resource["name"]: resource for resource in resources}
    if len(by_name) != len(resources) or by_name.keys() != {table.name for table in tables}:
        yield "lists other tables by month than the release has"
        return
    for expected in partition_resources(tables, statement):
        resource, name = by_name[expected["name"]], expected["name"]
        if (resource["path"], resource["partitions"]) != (expected["path"], expected["partitions"]):
            yield f"gives other files, sizes or checksums of {name}"
        if _columns(resource.get("schema", {})) != _columns(expected.get("schema", {})):
            yield f"gives other columns of {name}"


def partition_file(path: str, content: bytes) -> PartitionFile:
    """Return the entry of a file that is to be written."""
    return PartitionFile(path, hashlib.sha256(content).hexdigest(), len(content))
