"""A released Parquet file says the same to whoever opens it, and carries its guarantee for each of them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from agedp.pipeline import sanitise
from agedp.setup.sample import sample

Opened = tuple[list[dict[str, Any]], bytes]
"""Rows, and what stands under the key `agedp` of the metadata."""


@pytest.fixture(scope="module")
def averages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = sample("london", tmp_path_factory.mktemp("opened") / "s", households=6, days=5, seed=1)
    return sanitise(made.run_file).path / "daily_averages.parquet"


def with_pandas(path: Path) -> Opened:
    import pandas as pd
    import pyarrow.parquet as pq

    frame = pd.read_parquet(path, dtype_backend="pyarrow")
    return frame.to_dict("records"), pq.read_schema(path).metadata[b"agedp"]  # pandas itself shows no metadata


def with_polars(path: Path) -> Opened:
    polars = pytest.importorskip("polars", reason="polars is not installed (extra bench)")
    return polars.read_parquet(path).to_dicts(), polars.read_parquet_metadata(path)["agedp"].encode()


def with_duckdb(path: Path) -> Opened:
    duckdb = pytest.importorskip("duckdb", reason="duckdb is not installed (extra bench)")
    found = duckdb.execute("SELECT * FROM read_parquet(?)", [str(path)])
    names = [column[0] for column in found.description]
    rows = [dict(zip(names, row, strict=True)) for row in found.fetchall()]
    [(told,)] = duckdb.execute(
        "SELECT value FROM parquet_kv_metadata(?) WHERE key::VARCHAR = 'agedp'", [str(path)]
    ).fetchall()
    return rows, bytes(told)


TOOLS: dict[str, Callable[[Path], Opened]] = {"pandas": with_pandas, "polars": with_polars, "DuckDB": with_duckdb}


def plainly(rows: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Rows with days as days; whole numbers and fractions are compared exactly, as they were stored."""
    for row in rows:
        yield {key: value.date() if hasattr(value, "date") else value for key, value in row.items()}


@pytest.mark.parametrize("tool", TOOLS)
def test_every_row_is_the_ledgers_and_the_guarantee_is_the_statements(tool: str, averages: Path) -> None:
    rows, told = TOOLS[tool](averages)
    drawn = [json.loads(line) for line in (averages.parent / "ledger_rows.jsonl").read_text().splitlines()[1:]]
    released = [json.loads(each["text"]) for each in drawn if each["table"] == "release"]
    assert [row["day"] for row in plainly(rows)] == [date.fromisoformat(each["day"]) for each in released]
    assert [row["noisy_sum_wh"] for row in rows] == [int(each["values"][0]) for each in released]
    means = [row["noisy_sum_wh"] / row["households"] / 1000 for row in rows]
    assert [row["mean_kwh"] for row in rows] == pytest.approx(means, rel=1e-12)
    guarantee = json.loads(told)
    statement = json.loads((averages.parent / "statement.json").read_text())
    assert guarantee["promise"]["notion"] == statement["contract"]["promise"]["notion"] == "age-dependent"
    assert guarantee["ledger"] == statement["ledger"]


@pytest.mark.parametrize("tool", TOOLS)
def test_all_tools_are_told_the_same(tool: str, averages: Path) -> None:
    import pyarrow.parquet as pq

    table = pq.read_table(averages)
    rows, told = TOOLS[tool](averages)
    assert list(plainly(rows)) == table.to_pylist()
    assert told == table.schema.metadata[b"agedp"]
