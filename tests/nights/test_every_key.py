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

from agedp.internal_records.signing_keys import create_key
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
from tests.nights.keyed import JOURNAL, draws, keyed_sampler
from tests.nights.promises import Kernel, exceeded

HOMES, DAYS = 6, 12
HALFWAY, LATER = str(FIRST + timedelta(days=8)), str(FIRST + timedelta(days=13))
MORE = {"slower.csv": "age_days,total_variation\n1,0.95\n", "stickier.csv": "0.95,0.05\n0.05,0.95\n"}
BOUNDS = (
    "alpha", "horizon_days", "epsilon", "epsilon_per_day", "epsilon_per_window", "risk", "max_day_epsilon",
    "epsilon_total",
)  # fmt: skip
FLOORS = ("age_days", "window_days")
TABLES = {
    "": (RunFile,),
    "input": inputs.INPUTS,
    "output": (output.OutputSection,),
    "population": (output.PopulationSection,),
    "schedule": (schedule.Archive, schedule.Live, schedule.Rehearsal),
    "series.daily_mean": (series.Mean, series.Distribution, series.Profile, series.Coverage),
    "promise": NOTIONS,
    "model": (model_section.DeclaredModel, model_section.EstimatedModel),
    "compare": (output.CompareSection,),
    "alerts": (output.AlertsSection,),
    "engine": (output.EngineSection,),
}


@dataclass(frozen=True)
class Place:
    """A folder with a run file that was in force for its first days."""

    folder: Path
    promise: str

    def write(self, tables: Tables) -> None:
        lines = [
            line
            for table, keys in tables.items()
            for line in [*([f"[{table}]"] if table else []), *(f"{key} = {text}" for key, text in keys.items())]
        ]
        (self.folder / "run.toml").write_text("\n".join(lines) + "\n")

    def call(self, *words: str, as_of: str = "") -> int:
        dated = ["--as-of", as_of] if as_of else []
        with keyed_sampler(self.folder / JOURNAL):
            status, _, err = agedp(*words, self.folder / "run.toml", *dated)
        assert status in (0, 2, 3), err
        return status

    def published(self) -> dict[str, object]:
        """Return the ledger and the release folder, byte for byte, and how often each day was drawn."""
        paths = [self.folder / "out" / "ledger.sqlite", *(self.folder / "out" / "release").iterdir()]
        return {"draws": draws(self.folder / JOURNAL), **{path.name: path.read_bytes() for path in paths}}

    def ledger(self) -> Ledger:
        return Ledger.open(f"sqlite:///{self.folder / 'out' / 'ledger.sqlite'}")


@pytest.fixture(scope="module", params=PROMISES)
def begun(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Place:
    """A place in which some days are released under one of the promises."""
    place = Place(tmp_path_factory.mktemp(request.param), request.param)
    meters = Meters(place.folder / "incoming", homes=HOMES, days=DAYS, seed=8)
    # the roster, a copy of it, and one each that counts another home, or one home less, on released days
    for name, count in (("roster", HOMES - 1), ("same", HOMES - 1), ("more", HOMES), ("fewer", HOMES - 2)):
        path = Customers(place.folder / f"{name}.csv", meters.ids, count=count).path
        head, *lines = path.read_text().splitlines()
        path.write_text("\n".join([f"{head},tariff", *(f"{line},Std" for line in lines)]) + "\n")
    for name in ("markers", "others", "more"):
        (place.folder / name).mkdir()
    for day in range(DAYS):
        meters.deliver(Parcel(day + 1, day + 1, day))
        for name in ("markers", "others"):
            (place.folder / name / str(FIRST + timedelta(days=day))).touch()
    for name, text in (FILES | MORE).items():
        (place.folder / name).write_text(text)
    place.write(run_file(request.param))
    create_key(place.folder / "out" / "confidential", None, at=FIRST)
    assert place.call("run", as_of=HALFWAY) == 0
    return place


@pytest.mark.parametrize("promise", PROMISES)
def test_every_key_of_every_table_is_tried(promise: str) -> None:
    known = {(table, key) for table, kinds in TABLES.items() for kind in kinds for key in kind.model_fields}
    known -= {("", table.partition(".")[0]) for table in TABLES if table}
    assert known <= {(table, key) for edit in edits(promise) for table, key, _ in edit.settings}


def sample(promise: str) -> list[Edit]:
    """Return three edits, always the same: one each that loosens or tightens promise or population, and another one."""
    chance = random.Random(promise)  # noqa: S311 - a sample, no secret
    every = edits(promise)
    near = [edit for edit in every if edit.settings[0][0] in ("promise", "population")]
    groups = [[edit for edit in near if edit.verdict == verdict] for verdict in (NEVER, AMEND)]
    rest = [edit for edit in every if edit not in (*groups[0], *groups[1])]
    return [edit for group in (*groups, rest) for edit in chance.sample(group, 1)]


def test_a_sample_of_edits_loosens_nothing(begun: Place, tmp_path: Path) -> None:
    try_edits(begun, tmp_path, sample(begun.promise))


@pytest.mark.long
def test_no_edit_of_any_key_loosens_anything(begun: Place, tmp_path: Path) -> None:
    try_edits(begun, tmp_path, edits(begun.promise))


def try_edits(begun: Place, folder: Path, tried: Iterable[Edit]) -> None:
    wrong = []
    for i, edit in enumerate(tried):
        place = Place(Path(shutil.copytree(begun.folder, folder / str(i))), begun.promise)
        tables = run_file(begun.promise)
        for table, key, text in edit.settings:
            if text is not None:
                tables.setdefault(table, {})[key] = text
            elif key:
                tables.get(table, {}).pop(key, None)
            else:
                del tables[table]
        place.write(tables)
        wrong += [f"{edit.name} ({edit.verdict}): {what}" for what in faults(place, edit)]
        shutil.rmtree(place.folder)
    assert not wrong, "\n".join(wrong)


def faults(place: Place, edit: Edit) -> list[str]:
    """Return what the three commands do with an edit that they should not."""
    as_of = "" if any(key == "mode" for _, key, _ in edit.settings) else LATER
    is_free, before, found = edit.verdict == FREE, place.published(), []
    status = {FREE: 0, WRONG: 2}.get(edit.verdict, 3)
    planned, ran = place.call("plan", as_of=as_of), status if is_free else place.call("run", as_of=as_of)
    if (planned, ran) != (status, status):
        found.append(f"plan {planned}, run {ran}, not {status}")
    if place.published() != before:
        found.append("drawn or written all the same")
    amended = place.call("ledger", "amend", "--yes")
    # An amendment looks at no roster and there is nothing in it to refuse.
    has_same_contract = is_free or edit.settings[0][:2] == ("population", "roster")
    if amended != (0 if has_same_contract or edit.verdict == AMEND else status):
        found.append(f"amend {amended}")
    if edit.verdict != AMEND and place.published() != before:
        found.append("amended all the same")
    return found + (after(place, edit, as_of) if edit.verdict in (FREE, AMEND) else [])


def after(place: Place, edit: Edit, as_of: str) -> list[str]:
    """Run on, and return what the promise bounds less than it did at first."""
    with place.ledger() as ledger:
        old = len(ledger.rows())
    status = place.call("run", as_of=as_of)
    with place.ledger() as ledger:
        contracts, rows = ledger.contracts(), ledger.rows()
    first, last = (json.loads(contract.promise)["promise"] for contract in (contracts[0], contracts[-1]))
    found = [f"{key} grew" for key in BOUNDS if amount(last, key) > amount(first, key)]
    found += [f"{key} fell" for key in FLOORS if last.get(key, 0) < first.get(key, 0)]
    found += ["delta grew"] if Fraction(last.get("delta", 0)) > Fraction(first.get("delta", 0)) else []
    kernel = Kernel(0.9) if place.promise in ("risk", "temporal") else None
    found += exceeded(rows, {contract.hash: first for contract in contracts}, kernel=kernel)
    found += exceeded(rows[old:], {contract.hash: last for contract in contracts})
    # A tighter promise may have ended, and a model that lets more through of what is released stops it.
    if status != 0 and not (status == 3 and edit.settings[0][0] in ("promise", "model")):
        found.append(f"run on: {status}")
    return found


def amount(promise: dict[str, str], key: str) -> Fraction:
    written = promise.get(key, "unlimited")
    return Fraction(10**9) if written == "unlimited" else Fraction(written)
