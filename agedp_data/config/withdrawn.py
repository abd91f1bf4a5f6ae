"""What 0.3 withdrew of what 0.2 let users type: one sentence each, with the version that had it and what to use.

A running series goes on: what its contract in force names is no new use, and is never refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from agedp_data.config.model_section import EstimatedModel
from agedp_data.config.run_file import RunFile

FRONTIER: Final = (
    "agedp plan --frontier is withdrawn, 0.2 had it; use --notions, or --risk or --error-kwh for another bound or noise"
)
_MEMORY: Final = (
    '[model] memory = "{}" is withdrawn, 0.2 had it; remove the key, or use step = "half-hour" with chain = "cyclic"'
)
_QUANTILES: Final = (
    "[model] quantiles is withdrawn, 0.2 had it; remove the key: the selected bound covers the households without it"
)
_WITNESS: Final = (
    "[output] witness in a PostgreSQL table is withdrawn, 0.2 had it; use a file on another disk, or s3://bucket/name"
)


def withdrawn_from_model(run: RunFile, promised: Mapping[str, Any]) -> Iterator[str]:
    """Yield a sentence for each withdrawn key of [model] that a contract lacks.

    Args:
        run: the run file.
        promised: the contract in force; empty for a new model or population.
    """
    model, of_contract = run.model, promised.get("model", {})
    if isinstance(model, EstimatedModel):
        if model.memory not in ("one", of_contract.get("memory")):
            yield _MEMORY.format(model.memory)
        if model.quantiles and "quantiles" not in of_contract:
            yield _QUANTILES


def withdrawn_from_run_file(run: RunFile, promised: Mapping[str, Any]) -> Iterator[str]:
    """Yield a sentence for each withdrawn key of a run file that a contract lacks; arguments as for the model's."""
    yield from withdrawn_from_model(run, promised)
    if (run.output.witness or "").startswith("postgresql") and "witness" not in promised.get("output", {}):
        yield _WITNESS
