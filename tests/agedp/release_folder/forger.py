"""Whoever forges a release with agedp at hand: every file that repeats a figure is written anew, and all checksums."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from agedp.release_folder.result_tables import common_guarantee, parquet_bytes
from agedp_data.statement.datapackage import datapackage
from agedp_data.statement.document import read_statement
from agedp_data.statement.markdown import markdown
from tests.agedp.release_folder.resealed import as_json, reseal

STATEMENT, WORDS, PACKAGE, SUMS = "statement.json", "STATEMENT.md", "datapackage.json", "SHA256SUMS"


def forge(folder: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Change the statement of a folder wherever it is repeated; the report alone stays."""
    content = json.loads((folder / STATEMENT).read_text())
    change(content)
    statement = read_statement(json.dumps(content))
    (folder / STATEMENT).write_text(as_json(content))
    (folder / WORDS).write_text(markdown(statement))
    for path in folder.glob("*.parquet"):
        table = pq.read_table(path)
        guarantee = json.loads(table.schema.metadata[b"agedp"]) | common_guarantee(statement)
        metadata = {b"agedp": json.dumps(guarantee, sort_keys=True, ensure_ascii=True).encode()}
        path.write_bytes(parquet_bytes(table.replace_schema_metadata(metadata)))
    repack(folder)


def repack(folder: Path) -> None:
    """Describe and list the files of a folder as they are."""
    statement = read_statement((folder / STATEMENT).read_bytes())
    listed = json.loads((folder / PACKAGE).read_text())["resources"]
    files = {one["path"]: (folder / one["path"]).read_bytes() for one in listed}
    (folder / PACKAGE).write_text(as_json(datapackage(statement, files)))
    reseal(folder, repack=False)
