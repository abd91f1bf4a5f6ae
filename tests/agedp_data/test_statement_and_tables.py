"""Statements say the same in JSON and in words, and tables are what they were declared to be."""

from __future__ import annotations

import json
from datetime import date

import numpy as np
import pyarrow as pa
import pytest

from agedp_data import tables
from agedp_data.notions.notion import Figure
from agedp_data.statement import ESTIMATED, REHEARSAL, WITH_MODEL, Facts, markdown, statement

CONTRACT = {"population": {"name": "homes"}, "schedule": {"mode": "archive"}, "promise": {"notion": "classical"}}
FIGURES = [
    Figure("risk", None, "conditional", "the current day", "chains hold"),
    Figure("day", 5, "assumption-free", "any one day"),
    Figure("total", 1_500_000_000, "assumption-free", "all days"),
    Figure("day", 5, "assumption-free", "any one day"),
]


def facts(*, mode="archive", model=None, skipped=(), days=("2013-01-02", "2013-01-01")):
    contract = {**CONTRACT, "schedule": {"mode": mode}}
    return Facts(
        {"title": "T", "contact": ""}, contract, days, skipped, ("2026-01-01",), FIGURES, model, ["note"], "ab" * 32,
        "cd" * 32, 1, {"agedp": "1"},
    )  # fmt: skip


def test_what_is_always_true_comes_first_and_nothing_twice():
    claim = statement(facts())
    assert [(one["name"], one["epsilon"]) for one in claim["figures"]] == [
        ("day", "0.000000005"), ("total", "1.5"), ("risk", "infinite"),
    ]  # fmt: skip
    assert claim["days"] == {"first": "2013-01-01", "last": "2013-01-02", "released": 2, "skipped": []}
    assert "contact" not in claim


def test_it_holds_nothing_but_strings_integers_and_lists():
    def plain(value):
        if isinstance(value, dict):
            return all(isinstance(key, str) and plain(part) for key, part in value.items())
        return all(map(plain, value)) if isinstance(value, list) else type(value) in (str, int)

    claim = statement(facts(model={"source": "estimated", "ages_days": [1], "envelope": {"losses": [1]}}))
    assert plain(claim)
    assert claim["model"] == {"source": "estimated", "ages_days": [1]}
    assert json.loads(json.dumps(claim)) == claim


@pytest.mark.parametrize(
    ("source", "said"), [(None, []), ("declared", WITH_MODEL), ("estimated", [*WITH_MODEL, ESTIMATED])]
)
def test_warnings_are_fixed_by_what_kind_of_model_there_is(source, said):
    warnings = statement(facts(model=source and {"source": source}))["warnings"]
    assert warnings[1:] == list(said)


def test_a_rehearsal_says_so_first():
    claim = statement(facts(mode="rehearsal"))
    assert (claim["rehearsal"], claim["notes"]) == (1, [REHEARSAL, "note"])
    assert markdown(claim).splitlines()[2] == f"**{REHEARSAL}**"


def test_the_words_give_every_figure_warning_and_date():
    claim = statement(facts(skipped=("2013-01-03",), model={"source": "declared"}))
    words = markdown(claim)
    for figure in claim["figures"]:
        assert f"| {figure['name']} | {figure['epsilon']} | {figure['about']} |" in words
    for text in (
        *claim["warnings"],
        *claim["not_protected"],
        claim["protects"],
        "1 days skipped",
        "promise.notion = classical",
    ):
        assert text in words
    assert "| if chains hold |" in words
    assert claim["ledger"]["head"] in words


def test_a_table_takes_its_columns_and_no_others():
    days = np.array([15706, 15707])
    lines = {"file": [0, 1], "row": np.array([1, 2]), "reason": np.array([5, 6])}
    assert tables.columns(tables.SETTLED, **lines).schema.equals(tables.SETTLED, check_metadata=True)
    for wrong in ({"file": [0]}, {**lines, "more": [1, 2]}):
        with pytest.raises(ValueError, match="missing or unknown"):
            tables.columns(tables.SETTLED, **wrong)
    made = tables.columns(
        tables.DAYS,
        household_id=pa.array(["A", "B"]).dictionary_encode(),
        day=days,
        energy_wh=[1, 2],
        readings=[48, 46],
    )
    assert made["day"].to_pylist() == [date(2013, 1, 1), date(2013, 1, 2)]


@pytest.mark.parametrize("name", [name for name in vars(tables) if isinstance(getattr(tables, name), pa.Schema)])
def test_every_column_says_what_it_means_and_is_never_empty(name):
    schema = getattr(tables, name)
    assert all(field.metadata[b"description"] and not field.nullable for field in schema)
    assert all(
        ("Wh" in field.metadata[b"description"].decode()) for field in schema if field.name.startswith("energy_wh")
    )
