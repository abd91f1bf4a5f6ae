"""What 0.3 withdrew of what 0.2 let users type: one sentence each, with the version that had it and what to use.

A running series goes on: what its contract in force names is no new use, and is never refused.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from agedp_data.config.contract import Contract
from agedp_data.config.model_section import EstimatedModel
from agedp_data.config.run_file import RunFile
from agedp_data.errors import RunFileError

FRONTIER: Final = (
    "agedp plan --frontier is withdrawn, 0.2 had it; use `agedp compare`, with --risk or --error-kwh for another bound "
    "or noise"
)
REBUILD: Final = (
    "agedp ledger households --rebuild is withdrawn, 0.2 had it; accounts that are lost begin anew with the next run, "
    "with what the ledger has recorded"
)
MEMORY: Final = "agedp {} --memory is withdrawn, 0.2 had it; leave it out, or use --step half-hour with --chain cyclic"
_MEMORY: Final = (
    '[model] memory = "{}" is withdrawn, 0.2 had it; remove the key, or use step = "half-hour" with chain = "cyclic"'
)
_QUANTILES: Final = (
    "[model] quantiles is withdrawn, 0.2 had it; remove the key: the selected bound covers the households without it"
)
_WITNESS: Final = (
    "[output] witness in a PostgreSQL table is withdrawn, 0.2 had it; use a file on another disk, or s3://bucket/name"
)


def withdrawn_from_model(run: RunFile, promised: Contract | None) -> Iterator[str]:
    """Yield a sentence for each withdrawn key of [model] that a contract lacks.

    Args:
        run: the run file.
        promised: the contract in force; None for a new model or population.
    """
    model, of_contract = run.model, None if promised is None else promised.model
    if isinstance(model, EstimatedModel):
        registered = of_contract if isinstance(of_contract, EstimatedModel) else None
        if model.memory not in ("one", registered and registered.memory):
            yield _MEMORY.format(model.memory)
        if model.quantiles and not (registered and registered.quantiles):
            yield _QUANTILES


def check_nothing_withdrawn(run: RunFile, promised: Contract | None) -> None:
    """Check that a run file uses nothing that this version withdrew, but for what its contract in force names.

    Raises:
        RunFileError: it does; the message names the version that had it, and what to use.
    """
    sentences = [*withdrawn_from_model(run, promised)]
    has_witness = promised is not None and promised.requires_witness
    if (run.output.witness or "").startswith("postgresql") and not has_witness:
        sentences.append(_WITNESS)
    if sentences:
        raise RunFileError(f"{run.name}: {sentences[0]}")
