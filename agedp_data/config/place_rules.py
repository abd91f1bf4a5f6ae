"""Rules of a run file about its places: nothing confidential in the release folder, witness and register apart."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from agedp_data.config.model_section import AnyModel, EstimatedModel
from agedp_data.config.output import OutputSection, PopulationSection
from agedp_data.config.paths import database_of, is_url, ledger_path, schema_of

Problem = tuple[str, str, str]
"""Table, key, and the problem in a few words."""


def place_problems(output: OutputSection, population: PopulationSection, model: AnyModel | None) -> Iterator[Problem]:
    """Yield what is wrong with the places of a run file: [output], the files of [population], the model's file."""
    yield from _has_confidential_statistic(output, population, model)
    yield from _witness_apart(output)
    yield from _register_apart(output)


def _has_confidential_statistic(
    output: OutputSection, population: PopulationSection, model: AnyModel | None
) -> Iterator[Problem]:
    release = output.release
    inside = {("output", "confidential"): output.confidential}
    inside["population", "roster"] = population.roster
    if population.meters is not None:
        inside["population", "meters"] = population.meters
    if isinstance(model, EstimatedModel):
        inside["model", "file"] = model.file
    inside["output", "ledger"] = ledger_path(output.ledger)
    for (table, key), place in inside.items():
        if _within(place, release):
            yield table, key, "lies in the release folder, which is handed over; move it"
    if _within(release, output.confidential):
        yield "output", "release", "lies in the confidential folder, which is never handed over; move it"


def _witness_apart(output: OutputSection) -> Iterator[Problem]:
    """Refuse a witness that a backup copies and restores together with the ledger or a folder."""
    witness = output.witness
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


def _register_apart(output: OutputSection) -> Iterator[Problem]:
    """Refuse a register in the release folder, which is handed over, and one in the ledger's file or schema."""
    register = output.household_register
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
