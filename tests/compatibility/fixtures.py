"""A population that an earlier version began: unpacked, run on night by night, amended, and read back as plain JSON.

A fixture (`fixtures/<notion>-<mode>.tar.xz`) was made once, by agedp 0.1 (commit a2328a0) with
`tests/compatibility/make_fixtures.py` of commit 612f8f4, and is never made again. It contains:

    run.toml  roster.csv  *.csv (declared models)  model/ (an estimated one)
    incoming/                 input files and markers that had arrived
    later/<night>/            those that arrive on the nights to come
    out/                      ledger.sqlite, release/, confidential/
    export.jsonl              all rows, by `agedp ledger export`
    closed.jsonl              all rows of a copy that was closed by `agedp ledger export --close`
    recovered.jsonl           all rows of the ledger that `agedp ledger recover` made from release/
    fixture.json              population, mode, the nights so far and to come, an amendment
    expected.json             what 0.1 itself had published after the nights to come
    amended.json              the same after that amendment and three nights
"""

from __future__ import annotations

import json
import shutil
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, date, datetime, time
from functools import cached_property
from pathlib import Path
from typing import Any
from unittest import mock

import pyarrow.parquet as pq

from agedp.pipeline import run_stages
from agedp.run_context import RunContext
from agedp.stages.amend import amend
from agedp_data import clock
from agedp_data.errors import AgedpError
from agedp_data.ledger import ContractRecord, Ledger
from agedp_data.model import Model
from tests.nights.keyed import JOURNAL, keyed_sampler

PACKED = Path(__file__).with_name("fixtures")
NAMES = tuple(path.name.removesuffix(".tar.xz") for path in sorted(PACKED.glob("*.tar.xz")))
_OF_THE_CHAIN = ("seq", "hash", "contract")


def unpack(name: str, folder: Path) -> RunningPopulation:
    """Return a copy of a fixture of one's own."""
    folder.mkdir(parents=True, exist_ok=True)
    with tarfile.open(PACKED / f"{name}.tar.xz") as packed:
        packed.extractall(folder, filter="data")
    return RunningPopulation(folder)


@dataclass(frozen=True)
class RunningPopulation:
    """A population with its run file, ledger, folders and files, all under one folder."""

    folder: Path

    @property
    def run_file(self) -> Path:
        return self.folder / "run.toml"

    @property
    def ledger(self) -> str:
        """The URL of the ledger that the fixture came with."""
        return f"sqlite:///{self.folder / 'out' / 'ledger.sqlite'}"

    @property
    def release(self) -> Path:
        return self.folder / "out" / "release"

    def stored(self, name: str) -> dict[str, Any]:
        """What 0.1 wrote beside the population: "fixture", "expected" or "amended"."""
        return json.loads((self.folder / f"{name}.json").read_text())

    @cached_property
    def facts(self) -> dict[str, Any]:
        return self.stored("fixture")

    @property
    def population(self) -> str:
        return self.facts["population"]

    @property
    def last_night(self) -> date:
        """The last night that 0.1 ran."""
        return date.fromisoformat(self.facts["begun"][-1])

    @property
    def following(self) -> tuple[date, ...]:
        """The nights to come."""
        return tuple(map(date.fromisoformat, self.facts["following"]))

    def ending(self, *, now: date) -> str:
        """Let the files of a night arrive and run all stages; return the class of a refusal, "" if there is none."""
        arriving = self.folder / "later" / now.isoformat()
        if arriving.exists():
            shutil.copytree(arriving, self.folder / "incoming", dirs_exist_ok=True)
        try:
            with standing_clock(now), keyed_sampler(self.folder / JOURNAL):
                run_stages(self.begin(now=now)).check_not_refused()
        except AgedpError as error:
            return type(error).__name__
        return ""

    def begin(self, *, now: date) -> RunContext:
        """The run of a night before its first stage."""
        with standing_clock(now):
            return RunContext.load(self.run_file, as_of=now if self.facts["mode"] == "rehearsal" else None)

    def edit(self, old: str, new: str) -> None:
        """Replace text of the run file that must be there."""
        text = self.run_file.read_text()
        assert old in text, old
        self.run_file.write_text(text.replace(old, new))

    def amend(self, *, now: date) -> ContractRecord:
        """Record the fixture's amendment of the run file in the ledger."""
        self.edit(*self.facts["amendment"])
        with standing_clock(now):
            return amend(RunContext.load(self.run_file))

    def rows(self, ledger: str = "") -> list[dict[str, Any]]:
        """Release rows; in place of hashes, which contract each was made under, and which model in the form of 0.1."""
        with Ledger.open(ledger or self.ledger) as opened:
            contracts = [contract.hash for contract in opened.contracts(self.population)]
            rows = [
                {
                    **asdict(row),
                    "version": contracts.index(row.contract) + 1,
                    "model": self.first_form(row.model, ledger),
                }
                for row in opened.rows(self.population)
            ]
        plain = [{key: value for key, value in row.items() if key not in _OF_THE_CHAIN} for row in rows]
        return json.loads(json.dumps(plain))

    def first_form(self, model: str, ledger: str = "") -> str:
        """Return the hash that 0.1 gave the model of this hash."""
        with Ledger.open(ledger or self.ledger) as opened:
            texts = [record.envelope for record in opened.models() if record.model == model]
        return Model.from_text(texts[0]).first_form.id if texts else model

    def tables(self) -> dict[str, list[dict[str, Any]]]:
        """The rows of every Parquet file of the release folder, dates as text."""
        tables = {path.name: pq.read_table(path).to_pylist() for path in sorted(self.release.glob("*.parquet"))}
        return json.loads(json.dumps(tables, default=str))

    def metadata(self) -> dict[str, dict[str, Any]]:
        """The guarantee that every Parquet file of the release folder carries."""
        schemas = {path.name: pq.read_schema(path) for path in sorted(self.release.glob("*.parquet"))}
        return {name: json.loads((schema.metadata or {})[b"agedp"]) for name, schema in schemas.items()}


@contextmanager
def standing_clock(day: date) -> Iterator[None]:
    """Let the clock stand at three in the morning of a day."""
    with mock.patch.object(clock, "now", return_value=datetime.combine(day, time(3), UTC)):
        yield
