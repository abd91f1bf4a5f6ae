"""Tables of a release by month of publication -> their resources in datapackage.json, and verification of these.

A table is one resource whose `path` lists its files. `partitions` adds checksum and size of each file, because a
resource of several files can have no `hash`. `partition_format` is the format of the columns: files of another one are
written again, so that all months of a table have the same columns.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

from agedp_data.statement.datapackage import table_description, table_dictionary
from agedp_data.statement.document import Statement

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
    return [_resource(table, statement) for table in tables]


def _resource(table: PartitionedTable, statement: Statement) -> dict[str, Any]:
    is_table = table.schema is not None
    description = _ROWS if table.schema is None else table_description(table.schema, statement)
    return {
        "name": table.name,
        "type": "table" if is_table else "file",
        "path": [file.path for file in table.files],
        "format": "parquet" if is_table else "jsonl",
        "mediatype": "application/vnd.apache.parquet" if is_table else "application/x-ndjson",
        "description": f"{description}{BY_MONTH}",
        FORMAT_KEY: PARTITION_FORMAT,
        "partitions": [
            {"path": file.path, "bytes": file.size, "hash": f"sha256:{file.digest}"} for file in table.files
        ],
        **({} if table.schema is None else {"schema": table_dictionary(table.schema)}),
    }


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
        if _columns(resource) != _columns(expected):
            yield f"gives other columns of {name}"


def _columns(resource: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    fields = resource.get("schema", {}).get("fields", [])
    return [(field["name"], field["type"], field.get("unit", "")) for field in fields]


def partition_file(path: str, content: bytes) -> PartitionFile:
    """Return the entry of a file that is to be written."""
    return PartitionFile(path, hashlib.sha256(content).hexdigest(), len(content))
