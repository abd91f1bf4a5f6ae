"""A new dataset is one file and its line in `registry.LAYOUTS`: run file, plan, run and messages follow.

A copy of the packages is given the file and the line, as CONTRIBUTING says, and its command is run.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from tests import minimal
from tests.command import beside_verdict
from tests.source_path import source_path

ROOT = Path(__file__).parents[3]
LAYOUT = '''"""A made-up layout: London's rows under another header, with a key that says the unit."""

from dataclasses import replace
from typing import Literal

from agedp_data.datasets.london import London
from agedp_data.parameters import Section

HEADER = "meter,at,use"


class MineKeys(Section):
    unit: Literal["Wh", "tenth of a Wh"] = "Wh"


class Mine(London):
    name = "mine"
    day_zone = "UTC"
    keys = MineKeys

    def recognise(self, lines, location=""):
        return super().recognise(["LCLid,tstp,energy(kWh/hh)"]) if lines and lines[0] == HEADER else None

    def known_headers(self):
        return (HEADER,)

    def records(self, columns, header, rules):
        found = super().records(columns, header, replace(rules, max_half_hour_wh=10**9))
        parts = 10_000 if rules.layout_keys and rules.layout_keys.unit != "Wh" else 1000
        return replace(found, energy_wh=found.energy_wh // parts)
'''


def run_file(*, tables: dict[str, Any] | None = None, **keys: Any) -> str:
    """Return a run file for the new layout, with more keys of its [input]."""
    days = {"first_day": date(2026, 3, 1), "last_day": date(2026, 3, 2)}
    given = {"promise": {"accept": ["useless"]}, **(tables or {})}
    return minimal.run_file(input={"dataset": "mine", "accept": ["negative"], **keys}, schedule=days, **given)


def prepare(folder: Path) -> Path:
    """Copy the packages, add a layout as CONTRIBUTING says, and put a house with its data beside them."""
    for package in ("agedp_data", "pipelines", "flows"):
        shutil.copytree(ROOT / package, folder / package, ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "agedp_data" / "datasets" / "mine.py").write_text(LAYOUT)
    registry = folder / "agedp_data" / "datasets" / "registry.py"
    text = registry.read_text()
    for before, line in (
        ("from agedp_data.datasets.long_format import Long\n", "from agedp_data.datasets.mine import Mine\n"),
        ("    Ausgrid.name: Ausgrid(),\n", "    Mine.name: Mine(),\n"),
    ):
        assert text.count(before) == 1
        text = text.replace(before, before + line)
    registry.write_text(text)
    (folder / "house" / "input").mkdir(parents=True)
    ends = [datetime(2026, 3, 1) + timedelta(minutes=30 * number) for number in range(1, 97)]
    rows = [f"{home},{end},{wh}" for home, wh in (("A", 100), ("B", 250)) for end in ends]
    text = "\n".join(["meter,at,use", *rows, "B,2026-03-02 03:30:00,-4"]) + "\n"
    (folder / "house" / "input" / "a.csv").write_text(text)
    (folder / "house" / "roster.csv").write_text("household_id,from,to\nA,2026-03-01,\nB,2026-03-01,\n")
    return folder / "house"


COMMANDS = """
import json, sys
from tests.command import agedp
print(json.dumps([agedp(*words) for words in json.loads(sys.argv[1])]))
"""


def agedp(house: Path, *commands: tuple[str, ...]) -> list[list[Any]]:
    """Run commands with the packages beside a house; return exit status, output and errors of each."""
    done = subprocess.run(
        [sys.executable, "-P", "-c", COMMANDS, json.dumps(commands)],
        cwd=house, env=os.environ | {"PYTHONPATH": source_path(house.parent, str(ROOT))},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    return json.loads(done.stdout)


WRONG = {
    "categories": (["GC"], "[input] has no key 'categories' for dataset = \"mine\"; it goes with dataset = "),
    "dataset": ("min", "[input] dataset = \"min\": is not known; did you mean 'mine'?"),
    "unit": ("kWh", '[input] unit = "kWh": is not known; write "Wh" | "tenth of a Wh"'),
}


def test_a_new_layout_and_its_key_are_run_registered_and_recognised(tmp_path: Path) -> None:
    house = prepare(tmp_path)
    tenths = {"output": {"release": "r2", "confidential": "c2", "ledger": "sqlite:///l2.sqlite"}}
    (house / "run.toml").write_text(run_file())
    (house / "tenths.toml").write_text(run_file(unit="tenth of a Wh", tables=tenths))
    for key, (value, _) in WRONG.items():
        (house / f"{key}.toml").write_text(run_file(**{key: value}))
    refusals = [("plan", f"{key}.toml") for key in WRONG]
    init = ("init", "input", "--in", str(tmp_path))
    *ended, made = agedp(house, ("run", "run.toml"), ("run", "tenths.toml"), *refusals, init)
    assert [(status, beside_verdict(err)) for status, _, err in ended[:2]] == [(0, "")] * 2
    for (status, _, err), (_, message) in zip(ended[2:], WRONG.values(), strict=True):
        assert (status, message in err) == (2, True), err
    for confidential, release, wh, unit in (("confidential", "release", 350, "Wh"), ("c2", "r2", 35, "tenth of a Wh")):
        assert pq.read_table(house / confidential / "sums.parquet")["value"].to_pylist() == [48 * wh] * 2
        quality = pq.read_table(house / confidential / "quality.parquet").to_pylist()
        assert {row["what"]: row["rows"] for row in quality} == {"rows read": 193, "kept": 192, "negative energy": 1}
        contract = json.loads((house / release / "statement.json").read_text())["contract"]
        assert (contract["input"]["dataset"], contract["input"]["unit"]) == ("mine", unit)
    assert made[0] == 0
    assert 'dataset = "mine"' in (tmp_path / "run.toml").read_text()
