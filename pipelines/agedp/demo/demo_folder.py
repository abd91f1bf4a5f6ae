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
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path

import numpy as np
from jinja2 import Template

from agedp.local_files import atomic_files
from agedp.local_files.atomic_files import exclusive_lock
from agedp_data.datasets.synthetic import DeliveryAccount, write_ausgrid, write_london, write_roster
from agedp_data.datasets.synthetic.households import STATES, Floats, HouseholdChains, Households
from agedp_data.datasets.validation import Ints
from agedp_data.errors import Busy, InputError

# --------------------------------------------------------------------------------------------------
# The two datasets of the demonstration: sizes, periods and households, drawn from one seed.
#
# The days that the model is estimated from lie before the days that are released. Ausgrid's lie between two clock
# changes, so that every day has 48 half-hours.
#
# Households are reflecting random walks on twelve levels: reversible chains whose powers have a closed form. In each
# half-hour a household's use moves by one level with probability `by_one` to either side, by two levels with
# probability `by_two` to either side, and stays otherwise; the walk is reflected at both ends. The transition matrix
# is symmetric, so the chain is reversible and its stationary distribution is uniform. Its eigenvectors are the cosines
# of the discrete cosine transform (type II), with theta_j = pi j / 12:
#
# .. math:: \lambda_j = 1 - 2 a (1 - \cos\theta_j) - 2 b (1 - \cos 2\theta_j), \quad
#     P^t(x, y) = \frac{1}{12} + \frac{1}{6} \sum_{j=1}^{11} \lambda_j^t
#     \cos(\theta_j (x + \tfrac12)) \cos(\theta_j (y + \tfrac12))
#
# Decisions. Moves by two levels keep estimated chains from being reversible by accident: counts of a walk that moves
# by one level only are (up to one) symmetric for every draw. The three walks mix at different speeds; all states are
# visited equally often, so that a few months of readings count every transition reliably.
# --------------------------------------------------------------------------------------------------

_SLOTS = 48


@dataclass(frozen=True, slots=True)
class Size:
    """How much is drawn: households of each dataset, days before the released ones, released days, seed.

    `min_visits` is that of the run files: few days need a smaller one.
    """

    households: int = 480
    calibration_days: int = 112
    released_days: int = 56
    seed: int = 7
    min_visits: int = 30


@dataclass(frozen=True, slots=True)
class Dataset:
    """A dataset: its writer, first day, public clamp [kWh], and the steps between levels that households have [Wh].

    Steps are even, so that the energies (an odd number of half steps) are whole watt-hours and nothing is rounded. The
    largest possible day is below the clamp.
    """

    name: str
    title: str
    write: Callable[..., DeliveryAccount]
    first_day: date
    clamp_kwh: int
    steps_wh: tuple[int, ...]


DATASETS = (
    Dataset("london", "London", write_london, date(2012, 10, 1), 18, tuple(range(22, 33, 2))),
    Dataset("ausgrid", "Ausgrid", write_ausgrid, date(2012, 10, 8), 29, tuple(range(36, 53, 2))),
)


@dataclass(frozen=True, slots=True)
class DateRange:
    """First and last day, both included."""

    first: date
    last: date


@dataclass(frozen=True, slots=True)
class DemonstrationDataset:
    """One dataset at one size.

    Attributes:
        dataset: the publisher's format.
        seed: seed of the draw.
        calibration: days from which the model is estimated.
        released: days that are released.
        profiles: the chain and the mean energy of each household.
        step_wh: step between levels of each household, shape (n,) [Wh].
        min_visits: key `min_visits` of the model.
    """

    dataset: Dataset
    seed: int
    calibration: DateRange
    released: DateRange
    profiles: Households
    step_wh: Ints
    min_visits: int

    @property
    def households(self) -> int:
        """Return the number of households."""
        return len(self.step_wh)


def draw_dataset(dataset: Dataset, size: Size) -> DemonstrationDataset:
    """Return the households and periods of a dataset: the kinds of chain in turn, the steps at random.

    The same size gives the same households: the seed follows from the size and the dataset.
    """
    count, seed = size.households, size.seed + DATASETS.index(dataset)
    steps = np.random.default_rng(seed).choice(dataset.steps_wh, count).astype(np.int64)
    mean_kwh = steps * STATES / 2 * _SLOTS / 1000
    first = dataset.first_day
    released = first + timedelta(days=size.calibration_days)
    last = released + timedelta(days=size.released_days - 1)
    profiles = Households(np.arange(count) % len(WALKS), mean_kwh, demonstration_chains())
    periods = DateRange(first, released - timedelta(days=1)), DateRange(released, last)
    return DemonstrationDataset(dataset, seed, *periods, profiles, steps, size.min_visits)


@dataclass(frozen=True, slots=True)
class Walk:
    """A kind of chain: a random walk on twelve levels.

    Attributes:
        name: the name of the kind.
        by_one: probability per half-hour of a move by one level, to either side [-].
        by_two: probability per half-hour of a move by two levels, to either side [-].
    """

    name: str
    by_one: float
    by_two: float


WALKS = (Walk("slow", 0.17, 0.06), Walk("medium", 0.22, 0.08), Walk("fast", 0.25, 0.12))
"""The kinds of chain that synthetic households follow, the slowest first."""


def walk_matrix(walk: Walk) -> Floats:
    """Return the transition matrix (12, 12) [-] of a walk, reflected half a level beyond both ends.

    >>> walk_matrix(Walk("", 0.25, 0.0))[0, :3].tolist()
    [0.75, 0.25, 0.0]
    """
    probability = {0: 1 - 2 * walk.by_one - 2 * walk.by_two, 1: walk.by_one, 2: walk.by_two}
    level = np.arange(STATES)
    start, end = level[:, None], level[None, :]
    images = (end - start, -1 - end - start, 2 * STATES - 1 - end - start)
    matrix = np.zeros((STATES, STATES))
    for moved in images:
        for distance, share in probability.items():
            matrix += share * (np.abs(moved) == distance)
    return matrix


def walk_eigenvalues(walk: Walk) -> Floats:
    """Return the eigenvalues (12,) [-] in closed form: of the constant, then of each cosine.

    >>> walk_eigenvalues(Walk("", 0.25, 0.0))[[0, 6]].round(12).tolist()
    [1.0, 0.5]
    """
    angle = np.pi * np.arange(STATES) / STATES
    values: Floats = 1 - 2 * walk.by_one * (1 - np.cos(angle)) - 2 * walk.by_two * (1 - np.cos(2 * angle))
    return values


def relative_energies() -> Ints:
    """Return the energy of each state as a multiple of half a step: 1, 3, ..., 23.

    Equal steps, the lowest half a step above 0: so `equal-width` edges of a household that was seen in its highest
    state have each state's energy between them (edge i lies at i x 23/24 steps).
    """
    return 2 * np.arange(STATES) + 1


def demonstration_chains() -> HouseholdChains:
    """Return the walks as chains of synthetic households, with energies relative to the household's mean [-]."""
    kernels = np.stack([walk_matrix(walk) for walk in WALKS])
    uniform = np.full((len(WALKS), STATES), 1 / STATES)
    return HouseholdChains(kernels, uniform, np.tile(relative_energies() / STATES, (len(WALKS), 1)))


# --------------------------------------------------------------------------------------------------
# The folder of one dataset: input files in the publisher's format, roster, the true chains, and three run files.
# --------------------------------------------------------------------------------------------------

DEMONSTRATED_NOTIONS = ("age-dependent", "temporal", "discounted")
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
    return {f"{notion}.toml": run_file_text(notion, draw) for notion in DEMONSTRATED_NOTIONS}


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
