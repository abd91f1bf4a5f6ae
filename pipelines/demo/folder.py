"""The folder of one dataset: input files in the publisher's format, roster, the true chains, and three run files.

DIR/<dataset>/input/*.csv          the readings, with the publisher's flaws
DIR/<dataset>/roster.csv           every household, from the first day on
DIR/<dataset>/chains.json          the chains that the readings are drawn from
DIR/<dataset>/<notion>.toml        a run file per notion; its release, confidential folder and ledger in <notion>/
DIR/<dataset>/model/               the estimated model, shared by the three
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from agedp_data.errors import InputError
from agedp_data.readers.synthetic import write_roster
from pipelines import folders
from pipelines.demo.datasets import DATASETS, Dataset, Draw, Size, draw_dataset
from pipelines.demo.run_files import NOTIONS, run_file_text
from pipelines.demo.walks import WALKS, relative_energies, walk_eigenvalues

CHAINS = "chains.json"
PAGE = "index.html"
SERVER = "prefect"
_NUMBERS = re.compile(r"\[[^][{}]*\]")  # a list of numbers stands on one line
_ABOUT = (
    "The Markov chains that the synthetic households of this folder follow, one step per half-hour: transition "
    "matrices (row: from, column: to), stationary distributions, eigenvalues, and the energy of each state of each "
    "household. "
    "Real households' chains are confidential; these are public because no household exists."
)


def check_folder(folder: Path, size: Size) -> None:
    """Check that a folder is new, empty, or contains this demonstration or a part of it.

    Raises:
        InputError: a folder that contains something else, or cannot be read.
    """
    with folders.readable(folder):
        places = {folder / dataset.name: dataset for dataset in DATASETS}
        existing = [place for place in places if place.exists()]
        unfinished = {SERVER, *(_making(place).name for place in places)}
        names = {entry.name for entry in folder.iterdir()} if folder.exists() else set()
    if names - unfinished and not existing:
        raise InputError(f"{folder}: contains other files. Name a new or an empty folder.")
    for place in existing:
        _check_same(place, draw_dataset(places[place], size))


def write_dataset(folder: Path, dataset: Dataset, size: Size) -> bool:
    """Write the folder of one dataset, unless it exists already; return whether anything was written."""
    place = folder / dataset.name
    if place.exists():
        return False
    _write_draw(place, draw_dataset(dataset, size))
    return True


def _making(place: Path) -> Path:
    """Return where a folder is written before it is renamed."""
    return place.with_name(f".{place.name}.making")


def _check_same(place: Path, draw: Draw) -> None:
    """Raise InputError unless a folder contains the demonstration of this draw."""
    try:
        chains = (place / CHAINS).read_text(encoding="utf-8")
        ids = [household["household_id"] for household in json.loads(chains)["households"]]
        same = len(ids) == draw.households and chains == chains_text(draw, ids)
        same &= all((place / name).read_text(encoding="utf-8") == text for name, text in _run_files(draw).items())
    except (OSError, ValueError, LookupError, TypeError):
        same = False
    if not same:
        raise InputError(f"{place}: contains something else than this demonstration. Name a new or an empty folder.")


def _run_files(draw: Draw) -> Mapping[str, str]:
    """Return the run files of a dataset by name."""
    return {f"{notion}.toml": run_file_text(notion, draw) for notion in NOTIONS}


def _write_draw(place: Path, draw: Draw) -> None:
    making = _making(place)
    shutil.rmtree(making, ignore_errors=True)
    try:
        with folders.readable(place):
            (making / "input").mkdir(parents=True)
            days = (draw.released.last - draw.calibration.first).days + 1
            written = draw.dataset.write(
                making / "input",
                households=draw.households,
                first_day=draw.calibration.first,
                days=days,
                seed=draw.seed,
                plain_chain=True,
                homes=draw.homes,
            )
            write_roster(making / "roster.csv", household_ids=written.household_ids, first_day=draw.calibration.first)
            for name, text in {CHAINS: chains_text(draw, written.household_ids), **_run_files(draw)}.items():
                (making / name).write_text(text, encoding="utf-8")
            making.rename(place)
    finally:
        shutil.rmtree(making, ignore_errors=True)


def chains_text(draw: Draw, household_ids: Sequence[str]) -> str:
    """Return chains.json: the kinds of chain, and which one each household follows, with its energies."""
    chains = draw.homes.chains
    kinds = [
        {
            "name": walk.name,
            "move_by_one_level": walk.by_one,
            "move_by_two_levels": walk.by_two,
            "eigenvalues": walk_eigenvalues(walk).round(12).tolist(),
            "stationary_distribution": chains.stationary[i].round(12).tolist(),
            "transition_matrix": chains.kernels[i].round(12).tolist(),
        }
        for i, walk in enumerate(WALKS)
    ]
    energies = draw.step_wh[:, None] * relative_energies() // 2
    households = [
        {"household_id": household_id, "kind": WALKS[kind].name, "energies_wh": energies_wh}
        for household_id, kind, energies_wh in zip(
            household_ids, draw.homes.kind.tolist(), energies.tolist(), strict=True
        )
    ]
    document = {"about": _ABOUT, "dataset": draw.dataset.name, "seed": draw.seed}
    text = json.dumps({**document, "kinds": kinds, "households": households}, indent=1)
    return _NUMBERS.sub(lambda numbers: " ".join(numbers[0].split()), text) + "\n"
