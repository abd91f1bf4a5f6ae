"""Loosening a promise by an edit of the run file is impossible: every key of every table, in both directions."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from fractions import Fraction
from pathlib import Path

import pytest

from agedp_data.config import input as inputs
from agedp_data.config import model_section, output, schedule
from agedp_data.config.run_file import RunFile
from agedp_data.ledger import Ledger
from agedp_data.notions import NOTIONS
from agedp_data.series import series
from tests.command import agedp
from tests.nights.course import FILES
from tests.nights.deliveries import FIRST, Customers, Meters, Parcel
from tests.nights.every_key import AMEND, FREE, NEVER, PROMISES, WRONG, Edit, Tables, edits, run_file
from tests.nights.keyed import draws, keyed_sampler
from tests.nights.promises import Kernel, exceeded

HOMES, DAYS = 6, 12
HALFWAY, LATER = str(FIRST + timedelta(days=8)), str(FIRST + timedelta(days=13))
_MORE = {"slower.csv": "age_days,total_variation\n1,0.95\n", "stickier.csv": "0.95,0.05\n0.05,0.95\n"}
_STATUS = {NEVER: 3, WRONG: 2}


@dataclass
class Place:
    """A folder with a run file that was in force for its first days."""

    folder: Path
    promise: str

    @property
    def run_file(self) -> Path:
        return self.folder / "run.toml"

    def write(self, tables: Tables) -> None:
        lines = [
            line
            for table, keys in tables.items()
            for line in [*([f"[{table}]"] if table else []), *(f"{key} = {text}" for key, text in keys.items())]
        ]
        self.run_file.write_text("\n".join(lines) + "\n")

    def call(self, *words: str, as_of: str = "") -> int:
        dated = ["--as-of", as_of] if as_of else []
        with keyed_sampler(self.folder / "draws.txt"):
            status, _, err = agedp(*words, self.run_file, *dated)
        assert status in (0, 2, 3), err
        return status

    def published(self) -> dict[str, bytes]:
        """Return the ledger and the release folder, byte for byte."""
        kept = [self.folder / "out" / "ledger.sqlite", *(self.folder / "out" / "release").iterdir()]
        return {path.name: path.read_bytes() for path in kept}

    def ledger(self) -> Ledger:
        return Ledger.open(f"sqlite:///{self.folder / 'out' / 'ledger.sqlite'}")


@pytest.fixture(scope="module", params=list(PROMISES))
def begun(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Place:
    """A place in which some days are released under one of the promises."""
    place = Place(tmp_path_factory.mktemp(request.param), request.param)
    meters = Meters(place.folder / "incoming", homes=HOMES, days=DAYS, seed=8)
    for day in range(DAYS):
        meters.deliver(Parcel(day + 1, day + 1, day))
    _rosters(place.folder, meters)
    for name in ("markers", "others"):
        (place.folder / name).mkdir()
        for day in range(DAYS):
            (place.folder / name / str(FIRST + timedelta(days=day))).touch()
    (place.folder / "more").mkdir()
    for name, text in (FILES | _MORE).items():
        (place.folder / name).write_text(text)
    place.write(run_file(request.param))
    assert place.call("run", as_of=HALFWAY) == 0
    return place


def _rosters(folder: Path, meters: Meters) -> None:
    """Write the roster, a copy of it, and one each that counts another home, or one home less, on released days."""
    for name, there in (("roster", HOMES - 1), ("same", HOMES - 1), ("more", HOMES), ("fewer", HOMES - 2)):
        customers = Customers(folder / f"{name}.csv", meters.ids, there=there)
        lines = customers.path.read_text().splitlines()
        titled = [f"{line},{'tariff' if i == 0 else 'Std'}" for i, line in enumerate(lines)]
        customers.path.write_text("\n".join(titled) + "\n")


def edited(promise: str, edit: Edit) -> Tables:
    tables = {name: dict(keys) for name, keys in run_file(promise).items()}
    for table, key, text in edit.settings:
        if text is not None:
            tables.setdefault(table, {})[key] = text
        elif key:
            tables.get(table, {}).pop(key, None)
        else:
            del tables[table]
    return tables


def test_every_key_of_every_table_is_tried(begun: Place) -> None:
    blocks = {
        "": (RunFile,),
        "input": inputs.INPUTS,
        "output": (output.OutputSection,),
        "population": (output.PopulationSection,),
        "schedule": (schedule.Archive, schedule.Live, schedule.Rehearsal),
        "series.daily_mean": (series.Mean, series.Distribution),
        "promise": NOTIONS,
        "model": (model_section.DeclaredModel, model_section.EstimatedModel),
        "compare": (output.CompareSection,),
        "alerts": (output.AlertsSection,),
        "engine": (output.EngineSection,),
    }
    known = {(table, key) for table, kinds in blocks.items() for kind in kinds for key in kind.model_fields}
    known -= {("", table.partition(".")[0]) for table in blocks if table}
    assert known <= {(table, key) for edit in edits(begun.promise) for table, key, _ in edit.settings}


def sample(promise: str) -> list[Edit]:
    """Return nine edits, always the same: six that change promise or population, three of the others."""
    chance = random.Random(promise)  # noqa: S311 - a sample, no secret
    near, others = [], []
    for edit in edits(promise):
        is_near = edit.settings[0][0] in ("promise", "population") and edit.verdict != WRONG
        (near if is_near else others).append(edit)
    return [*chance.sample(near, 6), *chance.sample(others, 3)]


def test_a_sample_of_edits_loosens_nothing(begun: Place, tmp_path: Path) -> None:
    try_edits(begun, tmp_path, sample(begun.promise))


@pytest.mark.long
def test_no_edit_of_any_key_loosens_anything(begun: Place, tmp_path: Path) -> None:
    try_edits(begun, tmp_path, edits(begun.promise))


def try_edits(begun: Place, folder: Path, tried: Iterable[Edit]) -> None:
    wrong = []
    for i, edit in enumerate(tried):
        place = Place(folder / str(i), begun.promise)
        shutil.copytree(begun.folder, place.folder)
        place.write(edited(begun.promise, edit))
        wrong += [f"{edit.name} ({edit.verdict}): {what}" for what in faults(place, edit)]
        shutil.rmtree(place.folder)
    assert not wrong, "\n".join(wrong)


def faults(place: Place, edit: Edit) -> list[str]:
    """Return what the three commands do with an edit that they should not."""
    rehearsed = not any(key == "mode" for _, key, _ in edit.settings)
    as_of = LATER if rehearsed else ""
    before, drawn = place.published(), draws(place.folder / "draws.txt")
    found = []
    planned = place.call("plan", as_of=as_of)
    ran = place.call("run", as_of=as_of) if edit.verdict != FREE else 0
    wanted = _STATUS.get(edit.verdict, 0 if edit.verdict == FREE else 3)
    if (planned, ran) != (wanted, 0 if edit.verdict == FREE else wanted):
        found.append(f"plan {planned}, run {ran}, not {wanted}")
    if place.published() != before or draws(place.folder / "draws.txt") != drawn:
        found.append("drawn or written all the same")
    amended = place.call("ledger", "amend", "--yes")
    # An amendment looks at no roster and there is nothing in it to refuse.
    same_contract = edit.verdict == FREE or edit.settings[0][:2] == ("population", "roster")
    if amended != (0 if same_contract else _STATUS.get(edit.verdict, 0)):
        found.append(f"amend {amended}")
    if edit.verdict != AMEND and place.published() != before:
        found.append("amended all the same")
    if edit.verdict in (FREE, AMEND):
        found += after(place, edit, as_of)
    return found


def after(place: Place, edit: Edit, as_of: str) -> list[str]:
    """Run on, and return what the promise says less of than it did at first."""
    with place.ledger() as ledger:
        old = len(ledger.rows())
    status = place.call("run", as_of=as_of)
    with place.ledger() as ledger:
        contracts, rows = ledger.contracts(), ledger.rows()
    first, last = (json.loads(each.promise)["promise"] for each in (contracts[0], contracts[-1]))
    found = [f"{key} grew" for key in _BOUNDS if _amount(last, key) > _amount(first, key)]
    found += [f"{key} fell" for key in _FLOORS if _floor(last, key) < _floor(first, key)]
    kernel = Kernel(0.9) if place.promise in ("risk", "temporal") else None
    found += exceeded(rows, {each.hash: first for each in contracts}, kernel=kernel)
    found += exceeded(rows[old:], {each.hash: last for each in contracts})
    # A tighter promise may have ended, and a model that says more of what is released stops it.
    may_end = edit.settings[0][0] in ("promise", "model")
    if status != 0 and not (may_end and status == 3):
        found.append(f"run on: {status}")
    return found


_BOUNDS = (
    "alpha", "horizon_days", "epsilon", "epsilon_per_day", "epsilon_per_window", "risk", "max_day_epsilon",
    "epsilon_total",
)  # fmt: skip
_FLOORS = ("age_days", "window_days")


def _amount(promise: dict[str, str], key: str) -> Fraction:
    written = promise.get(key, "unlimited")
    return Fraction(10**9) if written == "unlimited" else Fraction(written)


def _floor(promise: dict[str, int], key: str) -> int:
    return promise.get(key, 0)
