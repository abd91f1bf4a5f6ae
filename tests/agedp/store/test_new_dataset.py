"""A new dataset is one file and its line in `registry.LAYOUTS`: run file, plan, run and messages follow.

A copy of the packages is given the file and the line, as CONTRIBUTING says, and its command is run.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from tests import minimal
from tests.source_path import source_path

ROOT = Path(__file__).parents[3]
PLAIN = '''"""A made-up layout: one row per meter and half-hour, half-hours counted from midnight UTC."""

from datetime import UTC, date, datetime, time, timedelta

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from agedp_data.datasets.layout import SINGLE_CHANNEL, Header, Records, household_ids
from agedp_data.datasets.validation import RejectionReason, first_reason, round_to_wh


class Mine:
    name = "mine"
    day_zone = "UTC"
    width = 1
    interval_minutes = 30
    channels = 1
    keys = None

    def recognise(self, lines):
        if not lines or lines[0] != "meter,day,half_hour,wh":
            return None
        types = {"household": pa.dictionary(pa.int32(), pa.binary()), "day": pa.date32(), "slot": pa.int64()}
        return Header("mine", 1, ("household", "day", "slot", "energy"), types | {"energy": pa.float64()})

    def known_headers(self):
        return ("meter,day,half_hour,wh",)

    def records(self, columns, header, rules):
        ids, household, nobody = household_ids(columns.values["household"])
        numbers = [pc.fill_null(columns.values[name].cast(to), 0) for name, to in (
            ("day", pa.int32()), ("slot", pa.int64()), ("energy", pa.float64()))]
        day, slot, energy = (one.to_numpy(zero_copy_only=False) for one in numbers)
        wh, why = round_to_wh(energy, rules, unit_wh=1.0)
        marks = [(RejectionReason.HOUSEHOLD, nobody), (RejectionReason.DATE, columns.unreadable_cells("day")),
                 (RejectionReason.TEXT, columns.unreadable_cells("energy"))]
        marks += [(kind, why == kind) for kind in (RejectionReason.NEGATIVE, RejectionReason.ABOVE_BOUND)]
        reason = first_reason(columns.rows, marks)
        zero = np.zeros(columns.rows, np.int64)
        return Records(ids, household, zero, day.astype(np.int64), slot, wh.reshape(-1, 1), reason, {})

    def complete_channels(self, rules):
        return SINGLE_CHANNEL

    def absent_slots(self, day):
        return ()

    def repeated_slots(self, day):
        return ()

    def day_end(self, day: date) -> datetime:
        return datetime.combine(day + timedelta(days=1), time(), UTC)
'''
KEYED = (
    PLAIN.replace(
        "from agedp_data.datasets.layout",
        "from typing import Literal\n\nfrom agedp_data.parameters import Section\nfrom agedp_data.datasets.layout",
        1,
    )
    .replace(
        "class Mine:", 'class MineKeys(Section):\n    unit: Literal["Wh", "tenth of a Wh"] = "Wh"\n\n\nclass Mine:', 1
    )
    .replace("keys = None", "keys = MineKeys")
    .replace("unit_wh=1.0", 'unit_wh=0.1 if rules.layout_keys and rules.layout_keys.unit != "Wh" else 1.0')
)


def run_file(**keys: Any) -> str:
    """A run file for the new layout, with more keys of its [input]."""
    days = {"first_day": date(2026, 3, 1), "last_day": date(2026, 3, 2)}
    return minimal.run_file(input={"dataset": "mine", **keys}, schedule=days)


def added(folder: Path, source: str) -> Path:
    """Copy the packages, add a layout as CONTRIBUTING says, and put a house with its data beside them."""
    for package in ("agedp_data", "pipelines", "flows"):
        shutil.copytree(ROOT / package, folder / package, ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "agedp_data" / "datasets" / "mine.py").write_text(source)
    datasets = folder / "agedp_data" / "datasets" / "registry.py"
    text = datasets.read_text()
    for before, line in (
        ("from agedp_data.datasets.long_format import Long\n", "from agedp_data.datasets.mine import Mine\n"),
        ("    Ausgrid.name: Ausgrid(),\n", "    Mine.name: Mine(),\n"),
    ):
        assert text.count(before) == 1
        text = text.replace(before, before + line)
    datasets.write_text(text)
    house = folder / "house"
    (house / "input").mkdir(parents=True)
    rows = [f"{home},2026-03-0{day},{slot},{wh}" for home, wh in (("A", 100), ("B", 250)) for day in (1, 2)
            for slot in range(48)]  # fmt: skip
    (house / "input" / "a.csv").write_text("\n".join(["meter,day,half_hour,wh", *rows, "B,2026-03-02,7,-4"]) + "\n")
    (house / "roster.csv").write_text("household_id,from,to\nA,2026-03-01,\nB,2026-03-01,\n")
    return house


COMMANDS = """
import json, sys
from tests.command import agedp
print(json.dumps([agedp(*words) for words in json.loads(sys.argv[1])]))
"""


def agedp(house: Path, *commands: tuple[str, ...]) -> list[list[Any]]:
    """Run commands with the packages beside a house; return exit status, output and errors of each."""
    environment = os.environ | {"PYTHONPATH": source_path(house.parent, str(ROOT))}
    done = subprocess.run(
        [sys.executable, "-P", "-c", COMMANDS, json.dumps(commands)],
        cwd=house, env=environment, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return json.loads(done.stdout)


def sums(house: Path) -> list[int]:
    return pq.read_table(house / "confidential" / "sums.parquet")["value"].to_pylist()


def contract_of(house: Path) -> dict[str, Any]:
    return json.loads((house / "release" / "statement.json").read_text())["contract"]


def test_a_layout_without_keys_of_its_own_runs_and_is_recognised(tmp_path: Path) -> None:
    house = added(tmp_path, PLAIN)
    wrong = {
        "categories": (["GC"], "[input] has no key 'categories' for dataset = \"mine\"; it goes with dataset = "),
        "dataset": ("min", "[input] dataset = \"min\": is not known; did you mean 'mine'?"),
    }
    (house / "run.toml").write_text(run_file(max_half_hour_kwh=20))
    for key, (value, _) in wrong.items():
        (house / f"{key}.toml").write_text(run_file(**{key: value}))
    refused = [("plan", f"{key}.toml") for key in wrong]
    ran, begun, *ended = agedp(house, ("run", "run.toml"), ("init", "input", "--in", str(tmp_path)), *refused)
    assert (ran[0], ran[2], begun[0]) == (0, "", 0)
    assert sums(house) == [48 * (100 + 250)] * 2
    quality = pq.read_table(house / "confidential" / "quality.parquet").to_pylist()
    assert {row["what"]: row["rows"] for row in quality} == {"rows read": 193, "kept": 192, "negative energy": 1}
    known = {"dataset": "mine", "corrections": "set-aside", "max_half_hour_kwh": "20"}
    assert contract_of(house)["input"] == known
    assert 'dataset = "mine"' in (tmp_path / "run.toml").read_text()
    for (status, _, err), (_, message) in zip(ended, wrong.values(), strict=True):
        assert (status, message in err) == (2, True), err


def test_a_key_that_a_layout_adds_is_registered_and_decides(tmp_path: Path) -> None:
    house = added(tmp_path, KEYED)
    (house / "run.toml").write_text(run_file(unit="tenth of a Wh"))
    (house / "wrong.toml").write_text(run_file(unit="kWh"))
    ran, (status, _, err) = agedp(house, ("run", "run.toml"), ("plan", "wrong.toml"))
    assert (ran[0], ran[2]) == (0, "")
    assert sums(house) == [48 * (10 + 25)] * 2
    assert contract_of(house)["input"]["unit"] == "tenth of a Wh"
    assert (status, '[input] unit = "kWh": is not known; write "Wh" | "tenth of a Wh"' in err) == (2, True)
