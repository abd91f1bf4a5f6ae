"""Rules of a run file about its places: nothing confidential in the release folder, witness and register apart."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

from agedp_data.config.model_section import EstimatedModel
from agedp_data.config.paths import database_of, is_url, ledger_path, schema_of

if TYPE_CHECKING:
    from agedp_data.config.run_file import Problem, RunFile


def _has_confidential_statistic(run: RunFile) -> Iterator[Problem]:
    release = run.output.release
    inside = {("output", "confidential"): run.output.confidential}
    inside["population", "roster"] = run.population.roster
    if isinstance(run.model, EstimatedModel):
        inside["model", "file"] = run.model.file
    inside["output", "ledger"] = ledger_path(run.output.ledger)
    for (table, key), place in inside.items():
        if _within(place, release):
            yield table, key, "lies in the release folder, which is handed over; move it"
    if _within(release, run.output.confidential):
        yield "output", "release", "lies in the confidential folder, which is never handed over; move it"


def _witness_apart(run: RunFile) -> Iterator[Problem]:
    """Refuse a witness that a backup copies and restores together with the ledger or a folder."""
    witness, output = run.output.witness, run.output
    if witness is None:
        return
    ledger, elsewhere = ledger_path(output.ledger), "name a place that no backup puts back together with the ledger"
    folders = {"the release folder": output.release, "the confidential folder": output.confidential}
    if not is_url(ledger):
        folders["the ledger's folder"] = str(Path(ledger).parent)
    for name, folder in folders.items():
        if _within(witness, folder):
            yield "output", "witness", f"lies in {name}; {elsewhere}"
    if is_url(ledger) and witness.startswith("postgresql") and database_of(witness) == database_of(ledger):
        yield "output", "witness", f"lies in the ledger's database; {elsewhere}"


def _register_apart(run: RunFile) -> Iterator[Problem]:
    """Refuse a register in the release folder, which is handed over, and one in the ledger's file or schema."""
    register, output = run.output.household_register, run.output
    if register is None:
        return
    if _within(ledger_path(register), output.release):
        yield "output", "household_register", "lies in the release folder, which is handed over; move it"
    is_same = ledger_path(register) == ledger_path(output.ledger)
    if is_url(ledger_path(register)) and is_url(ledger_path(output.ledger)):
        is_same = schema_of(register) == schema_of(output.ledger)
    if is_same:
        yield "output", "household_register", "is the ledger; name a file, or a schema, of its own"


def _within(place: str, folder: str) -> bool:
    if is_url(place) != is_url(folder):
        return False
    if is_url(place):
        return (place.rstrip("/") + "/").startswith(folder.rstrip("/") + "/")
    return any(Path(seen(place)).is_relative_to(seen(folder)) for seen in (os.path.normpath, os.path.realpath))


PLACE_RULES: Final[tuple[Callable[[RunFile], Iterator[Problem]], ...]] = (
    _has_confidential_statistic,
    _witness_apart,
    _register_apart,
)
