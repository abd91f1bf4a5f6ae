"""The JSON schema of a run file, for editors that complete and check TOML (Taplo, Even Better TOML).

It describes the keys of every table, their types and meanings. `agedp plan` checks rules between keys, dates and exact
amounts.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Final

from agedp_data.config.contract_document import DocumentSchema
from agedp_data.config.run_file import RunFile

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
