"""A further statistic is one file and its line in `STATISTICS`: it is released, published, verified, amended, charted.

A copy of the packages is given the file and the line, as CONTRIBUTING says. In the copy the commands run.
"""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.agedp_data.notions.test_new_notion import COMMANDS, ROOT, insert, run

ZERO_DAYS = '''"""[series.NAME] with statistic = "zero_days": how many households use nothing on a day."""

from typing import Literal

import numpy as np
import pyarrow as pa

from agedp_data.series.result_table import NOISE_TEXT, Chart, ResultTable
from agedp_data.series.series_terms import Counted, Series
from agedp_data.table_schemas import released_schema

COLUMNS = (
    ("households", pa.int64(), "households on the roster that day, of the group"),
    ("zero_noisy", pa.int64(), "what was drawn: how many of these used nothing, plus noise"),
    ("noise_sd", pa.float64(), "standard deviation of the noise of zero_noisy, households"),
    ("low", pa.float64(), "lower end of the noise interval of zero_noisy, households"),
    ("high", pa.float64(), "upper end of the noise interval of zero_noisy, households"),
)


def _lines(row, terms, noise):
    del terms
    half_width = noise.half_width(row.scale)
    return {
        "group": row.cells,
        "households": row.households,
        "zero_noisy": row.values,
        "noise_sd": [noise.deviation(row.scale)] * len(row.values),
        "low": [value - half_width for value in row.values],
        "high": [value + half_width for value in row.values],
    }


class ZeroDays(Series):
    """Number of households that use nothing on a day: one count per group."""

    KIND = "zero_days"
    PLURAL = "numbers of households without use"
    CONTENT = "counts of households without use"
    TABLES = (
        ResultTable(
            "daily_zero_days",
            released_schema(*COLUMNS),
            "day and group",
            f"number of households that use nothing, by day, {NOISE_TEXT}",
            _lines,
            "zero_noisy",
            Chart("zero_noisy", ("low", "high"), unit="households"),
            ("max_missing",),
        ),
    )

    statistic: Literal["zero_days"]

    def sensitivity(self, change):
        """Return 1: a household is counted or is not."""
        del change
        return 1

    def counted(self, days):
        """Return 1 for each day without use."""
        return Counted((days.energy_wh == 0).astype(np.int64), np.zeros(len(days.energy_wh), bool))
'''
SERIES = '[series.empty]\nstatistic = "zero_days"\nby = "tariff"\nshare = 0.5\n'


PYTHON = """
import sys
import agedp
readings = agedp.read(sys.argv[1], dataset="london")
knowingly = ["useless", "total"]
promise = agedp.Classical(epsilon_per_day=5, max_day_epsilon=5, epsilon_total=50, accept=knowingly)
released = agedp.release(readings, promise=promise, statistic="zero_days", min_households=2)
print(sorted(released.folder.series_tables()))
"""


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The packages with one further statistic."""
    folder = tmp_path_factory.mktemp("copy")
    for package in ("agedp_data", "pipelines", "flows"):
        shutil.copytree(ROOT / package, folder / package, ignore=shutil.ignore_patterns("__pycache__", "fixtures"))
    (folder / "agedp_data" / "series" / "zero_days.py").write_text(ZERO_DAYS, "utf-8")
    insert(
        folder / "agedp_data" / "series" / "series.py",
        ("from agedp_data.series.zero_days import ZeroDays\n", "from agedp_data.series.series_terms import"),
        ("    ZeroDays,\n", ')\n"""The classes of all statistics."""'),
    )
    return folder


def commands(copy: Path, *orders: tuple[Path, str]) -> list[str]:
    """Run commands in folders; return what each prints."""
    end = run(copy, "-c", COMMANDS, json.dumps([[str(folder), *order.split()] for folder, order in orders]))
    assert (end.returncode, end.stderr) == (0, ""), end.stderr
    ends = json.loads(end.stdout)
    assert [status for status, *_ in ends] == [0] * len(orders), ends
    return [out for _, out, _ in ends]


def edit(path: Path, *edits: tuple[str, str]) -> None:
    text = path.read_text("utf-8")
    for old, new in edits:
        assert old in text, old
        text = text.replace(old, new)
    path.write_text(text, "utf-8")


@pytest.mark.parametrize("layout", ["single", pytest.param("monthly", marks=pytest.mark.long)])
def test_it_is_released_published_verified_amended_and_charted(copy, tmp_path, layout):
    homes = tmp_path / "households"
    commands(copy, (tmp_path, "sample london households --households 40 --days 9 --quiet"))
    header, *rows = (homes / "roster.csv").read_text("utf-8").splitlines()
    grouped = [f"{row},{'Std' if number % 2 else 'ToU'}" for number, row in enumerate(rows)]
    (homes / "roster.csv").write_text("\n".join([f"{header},tariff", *grouped, ""]), "utf-8")
    run_file = homes / "london.toml"
    text = run_file.read_text("utf-8")
    edit(
        run_file,
        ("[population]", f'layout = "{layout}"\n\n[population]'),
        ("[series.daily_mean]\n", f"{SERIES}\n[series.daily_mean]\nshare = 0.5\n"),
        (re.search(r"min_households = \d+", text)[0], "min_households = 3"),
    )
    last = re.search(r"last_day\s+= ([\d-]+)", text)[1]
    plan, _, _ = commands(
        copy, (homes, "plan london.toml"), (homes, f"run london.toml --as-of {last}"), (homes, "verify release")
    )
    assert "empty" in plan
    name = "daily_zero_days" if layout == "single" else "daily_zero_days_empty"
    [table] = (homes / "release").glob("daily_zero_days*.parquet" if layout == "single" else f"{name}/*/*.parquet")
    lines = pq.read_table(table).to_pylist()
    assert {line["group"] for line in lines} == {"Std", "ToU"}
    assert all(line["low"] < line["zero_noisy"] < line["high"] for line in lines)
    assert "<figcaption>empty, Std</figcaption>" in (homes / "release" / "report.html").read_text("utf-8")
    statement = (homes / "release" / "STATEMENT.md").read_text("utf-8")
    assert "counts of households without use" in statement
    assert "| daily_zero_days.parquet | day and group |" in statement
    package = json.loads((homes / "release" / "datapackage.json").read_text("utf-8"))
    assert [one for one in package["resources"] if "households that use nothing" in one["description"]]
    contract = json.loads((homes / "release" / "statement.json").read_text("utf-8"))["contract"]
    assert contract["needs"]  # versions that do not know the statistic refuse the contract
    edit(run_file, ('by = "tariff"\nshare = 0.5\n', 'by = "tariff"\nmax_missing = 5\nshare = 0.5\n'))
    amended, *_ = commands(
        copy, (homes, "ledger amend london.toml --yes"), (homes, "run london.toml"), (homes, "verify release")
    )
    assert "max_missing" in amended
    if layout == "monthly":  # takes a minute
        end = run(copy, "-c", COMMANDS, json.dumps([[str(homes), "audit", "london.toml", "--quiet"]]))
        assert not end.stderr, end.stderr


def test_init_and_python_take_its_keys(copy, tmp_path):
    homes = tmp_path / "homes"
    sampled = (tmp_path, "sample london homes --households 20 --days 3 --quiet")
    commands(copy, sampled, (homes, "init input --statistic zero_days --quiet"))
    text = (homes / "run.toml").read_text("utf-8")
    assert "[series.daily_zero_days]" in text
    assert "clamp_kwh" not in text
    end = run(copy, "-c", PYTHON, str(homes / "input" / "*.csv"))
    assert (end.returncode, end.stdout.strip()) == (0, "['daily_zero_days.parquet']"), end.stderr
