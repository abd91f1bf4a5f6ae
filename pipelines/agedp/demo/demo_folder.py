"""The folder of one dataset: input files in the publisher's format, roster, the true chains, and three run files.

DIR/<dataset>/input/*.csv          the readings, with the publisher's flaws
DIR/<dataset>/roster.csv           every household, from the first day on
DIR/<dataset>/chains.json          the chains that the readings are drawn from
DIR/<dataset>/<notion>.toml        a run file per notion; its release, confidential folder and ledger in <notion>/
DIR/<dataset>/model/               the estimated model, shared by the three

The run files are commented, so that they can be copied and changed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from decimal import Decimal
from pathlib import Path

from jinja2 import Template

from agedp.demo.synthetic_datasets import (
    DATASETS,
    WALKS,
    Dataset,
    DemonstrationDataset,
    Size,
    draw_dataset,
    relative_energies,
    walk_eigenvalues,
)
from agedp.local_files import atomic_files
from agedp.local_files.locks import exclusive_lock
from agedp_data.datasets.synthetic import write_roster
from agedp_data.errors import Busy, InputError

NOTIONS = ("age-dependent", "temporal", "discounted")
"""The notions of the demonstration, each with a run file and a release folder of this name."""

AGES_DAYS = (1, 2, 3)
_MAX_DAY_EPSILON = Decimal("2.0")
_COMMENT_COLUMN = 40
_RUN_FILE = Path(__file__).with_name("demo.toml")


def run_file_text(notion: str, draw: DemonstrationDataset) -> str:
    """Return the run file of one notion for the households of a draw."""
    days = (draw.released.last - draw.released.first).days + 1
    template = Template(_RUN_FILE.read_text(encoding="utf-8"), trim_blocks=True, keep_trailing_newline=True)
    text = template.render(
        notion=notion,
        dataset=draw.dataset.name,
        title=draw.dataset.title,
        households=draw.households,
        least=max(2, draw.households // 2),
        calibration=(draw.released.first - draw.calibration.first).days,
        days=days,
        seed=draw.seed,
        first=draw.released.first,
        last=draw.released.last,
        clamp=draw.dataset.clamp_kwh,
        day_cap=_MAX_DAY_EPSILON,
        total=days * _MAX_DAY_EPSILON,
        model_first=draw.calibration.first,
        model_last=draw.calibration.last,
        min_visits=draw.min_visits,
        ages=", ".join(map(str, AGES_DAYS)),
    )
    return "".join(map(_aligned, text.splitlines(keepends=True)))


def _aligned(line: str) -> str:
    """Return a line whose comment begins in the same column as the others, or after a longer key.

    >>> _aligned("rate = 0.7     # a rate")
    'rate = 0.7                               # a rate'
    """
    key, mark, comment = line.partition(" # ")
    return f"{key.rstrip():{_COMMENT_COLUMN}}{mark}{comment}" if mark else line


CHAINS = "chains.json"
PAGE = "index.html"
PAGE_TITLE = "agedp demo"
SERVER = "prefect"
_NUMBERS = re.compile(r"\[[^][{}]*\]")  # a list of numbers is put on one line
_ABOUT = (
    "The Markov chains that the synthetic households of this folder follow, one step per half-hour: transition "
    "matrices (row: from, column: to), stationary distributions, eigenvalues, and the energy of each state of each "
    "household. "
    "Real households' chains are confidential; these are public because no household exists."
)


@contextmanager
def locked_folder(folder: Path, size: Size) -> Iterator[None]:
    """Create the folder of a demonstration, check it, and work in it alone.

    Raises:
        Busy: another demonstration works in the folder.
        InputError: as `check_folder`, or the folder cannot be created.
    """
    with atomic_files.write_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        try:
            stack.enter_context(exclusive_lock(folder, max_wait_seconds=0))
        except Busy:
            text = "another demonstration works in this folder. Wait until it ends, or name another folder."
            raise Busy(text, private=f"{folder}: {text}") from None
        check_folder(folder, size)
        yield


def check_folder(folder: Path, size: Size) -> None:
    """Check that everything under a name that the demonstration writes is its own; other names do not matter.

    Raises:
        InputError: a file or folder of such a name that is not from this demonstration, or cannot be read.
    """
    with atomic_files.write_errors(folder):
        for dataset in DATASETS:
            path = folder / dataset.name
            if path.exists() and not _is_same(path, draw_dataset(dataset, size)):
                raise _foreign_error(path)
        if (folder / PAGE).exists() and not _is_overview(folder / PAGE):
            raise _foreign_error(folder / PAGE)
        if (folder / SERVER).exists() and not _is_server_folder(folder / SERVER):
            raise _foreign_error(folder / SERVER)


def _foreign_error(path: Path) -> InputError:
    return InputError(f"{path}: is not from this demonstration. Move it, or name another folder (make run OUT=DIR).")


def _is_overview(page: Path) -> bool:
    return page.is_file() and f"<title>{PAGE_TITLE}</title>".encode() in page.read_bytes()


def _is_server_folder(path: Path) -> bool:
    """Return whether a folder is that of a Prefect server that agedp started: it writes the password first."""
    return path.is_dir() and ((path / "password").is_file() or not any(path.iterdir()))


def write_dataset(folder: Path, dataset: Dataset, size: Size) -> bool:
    """Write the folder of one dataset, unless it exists already; return whether anything was written.

    Call it inside `locked_folder`, which checks existing folders. The folder appears by rename, complete or not at all.

    Raises:
        InputError: the folder cannot be written.
    """
    path = folder / dataset.name
    if path.exists():
        return False
    _write_draw(path, draw_dataset(dataset, size))
    return True


def _is_same(path: Path, draw: DemonstrationDataset) -> bool:
    """Return whether a folder contains the demonstration of this draw."""
    try:
        chains = (path / CHAINS).read_text(encoding="utf-8")
        ids = [household["household_id"] for household in json.loads(chains)["households"]]
        is_same = len(ids) == draw.households and chains == chains_text(draw, ids)
        is_same &= all((path / name).read_text(encoding="utf-8") == text for name, text in _run_files(draw).items())
    except (OSError, ValueError, LookupError, TypeError):
        return False
    return is_same


def _run_files(draw: DemonstrationDataset) -> Mapping[str, str]:
    """Return the run files of a dataset by name."""
    return {f"{notion}.toml": run_file_text(notion, draw) for notion in NOTIONS}


def _write_draw(path: Path, draw: DemonstrationDataset) -> None:
    first_day, last_day = draw.calibration.first, draw.released.last
    with atomic_files.complete_folder(path) as temporary:
        (temporary / "input").mkdir()
        written = draw.dataset.write(
            temporary / "input",
            households=draw.households,
            first_day=first_day,
            days=(last_day - first_day).days + 1,
            seed=draw.seed,
            plain_chain=True,
            profiles=draw.profiles,
        )
        write_roster(temporary / "roster.csv", household_ids=written.household_ids, first_day=first_day)
        for name, text in {CHAINS: chains_text(draw, written.household_ids), **_run_files(draw)}.items():
            (temporary / name).write_text(text, encoding="utf-8")


def chains_text(draw: DemonstrationDataset, household_ids: Sequence[str]) -> str:
    """Return chains.json: the kinds of chain, and which one each household follows, with its energies.

    Args:
        draw: the dataset at its size.
        household_ids: the ids in the order of the draw's households.
    """
    chains = draw.profiles.chains
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
            household_ids, draw.profiles.kind.tolist(), energies.tolist(), strict=True
        )
    ]
    document = {"about": _ABOUT, "dataset": draw.dataset.name, "seed": draw.seed}
    text = json.dumps({**document, "kinds": kinds, "households": households}, indent=1)
    return _NUMBERS.sub(lambda numbers: " ".join(numbers[0].split()), text) + "\n"
