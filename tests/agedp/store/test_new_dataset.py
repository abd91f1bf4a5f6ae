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
import pytest

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


def agedp(house: Path, *words: str) -> subprocess.CompletedProcess[str]:
    code = "from agedp_flows.cli.app import main; main()"
    environment = os.environ | {"PYTHONPATH": source_path(house.parent), "PYTHONDONTWRITEBYTECODE": "1"}
    order = [sys.executable, "-P", "-c", code, *words]
    return subprocess.run(order, cwd=house, env=environment, capture_output=True, text=True, check=False)


def sums(house: Path) -> list[int]:
    return pq.read_table(house / "confidential" / "sums.parquet")["value"].to_pylist()


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A house beside packages that know a layout without keys of its own."""
    return added(tmp_path_factory.mktemp("plain"), PLAIN)


@pytest.fixture(scope="module")
def keyed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A house beside packages that know a layout that adds a key to [input]."""
    return added(tmp_path_factory.mktemp("keyed"), KEYED)


def test_a_layout_without_keys_of_its_own_runs_with_the_plain_input_table(plain: Path) -> None:
    (plain / "run.toml").write_text(run_file(max_half_hour_kwh=20))
    end = agedp(plain, "run", "run.toml")
    assert (end.returncode, end.stderr) == (0, "")
    assert sums(plain) == [48 * (100 + 250)] * 2
    quality = pq.read_table(plain / "confidential" / "quality.parquet").to_pylist()
    assert {row["what"]: row["rows"] for row in quality} == {"rows read": 193, "kept": 192, "negative energy": 1}
    statement = json.loads((plain / "release" / "statement.json").read_text())
    known = {"dataset": "mine", "corrections": "set-aside", "max_half_hour_kwh": "20"}
    assert statement["contract"]["input"] == known
    assert statement["days"]["released"] == 2


@pytest.mark.parametrize(
    ("keys", "line"),
    [
        ({"categories": ["GC"]}, "[input] has no key 'categories' for dataset = \"mine\"; it goes with dataset = "),
        ({"dataset": "min"}, "[input] dataset = \"min\": is not known; did you mean 'mine'?"),
    ],
)
def test_a_wrong_line_about_it_is_refused_as_for_every_dataset(plain: Path, keys: dict[str, Any], line: str) -> None:
    (plain / "wrong.toml").write_text(run_file(**keys))
    end = agedp(plain, "plan", "wrong.toml")
    assert end.returncode == 2
    assert line in end.stderr


def test_init_knows_its_header(plain: Path, tmp_path: Path) -> None:
    end = agedp(plain, "init", "input", "--in", str(tmp_path))
    assert end.returncode == 0, end.stderr
    assert 'dataset = "mine"' in (tmp_path / "run.toml").read_text()


def test_a_key_that_a_layout_adds_is_read_registered_and_decides_what_rows_say(keyed: Path) -> None:
    (keyed / "run.toml").write_text(run_file(unit="tenth of a Wh"))
    end = agedp(keyed, "run", "run.toml")
    assert (end.returncode, end.stderr) == (0, "")
    assert sums(keyed) == [48 * (10 + 25)] * 2
    statement = json.loads((keyed / "release" / "statement.json").read_text())
    assert statement["contract"]["input"]["unit"] == "tenth of a Wh"
    (keyed / "run.toml").write_text(run_file(unit="kWh"))
    end = agedp(keyed, "plan", "run.toml")
    assert end.returncode == 2
    assert '[input] unit = "kWh": is not known; write "Wh" | "tenth of a Wh"' in end.stderr
