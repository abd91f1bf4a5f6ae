"""Curves, kernels and public parts that went wrong: bounds, or refused with one line."""

# ruff: noqa: E501, S311

from __future__ import annotations

import csv
import json
import random
import warnings
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agedp_data.config import parse
from agedp_data.errors import AgedpError
from agedp_data.leakage.bound_table import LOSS_GRID, LeakageBound
from agedp_data.model import public_text, read_model
from tests.fuzz.mutations import IDS, NUMBERS, PLANS, mutated, on_cell
from tests.fuzz.run_files import Raw, sound, toml
from tests.fuzz.test_input_files import in_time

FUZZ = settings(deadline=None, database=None, suppress_health_check=list(HealthCheck))


def _one_line(error: AgedpError) -> None:
    for line in (str(error), error.private):
        assert line.isprintable(), repr(line)
        assert len(line) < 500
    assert "MAC0" not in str(error)


CURVE = "age_days,total_variation\n1,0.9\n2,0.5\n7,0.25\n30,0\n"
KERNEL = "0.5,0.3,0.2\n0.1,0.8,0.1\n0.25,0.25,0.5\n"
ODD = [*NUMBERS, *IDS, "1e999999999", "1e-999999999", "9" * 5000, "0.9999999999", "1.0000000001", "1e-400", "-0"]


def _model(folder: Path, **keys: object):
    document = sound("model", "declared")
    for key in ("kernel", "step"):
        del document["model"][key]
    document["model"] |= keys
    return read_model(parse(toml(document), base=folder, name="r.toml"))


def _declared_fuzz(folder: Path, examples: int) -> None:
    met = {"read": 0, "refused": 0}
    odd_number = on_cell(ODD)

    @settings(FUZZ, max_examples=examples, derandomize=examples < 1000)
    @given(plan=PLANS, seed=st.integers(0, 2**32), kind=st.sampled_from(["curve", "kernel"]), bare=st.booleans())
    def example(plan: list[tuple[str, int]], seed: int, kind: str, bare: bool) -> None:
        data = (CURVE if kind == "curve" else KERNEL).encode()
        data = odd_number(data, random.Random(seed)) if bare else mutated(data, plan)
        (folder / "given.csv").write_bytes(data)
        try:
            with in_time(), warnings.catch_warnings():
                warnings.simplefilter("error")
                found = _model(folder, **{kind: "given.csv"})
        except AgedpError as error:
            met["refused"] += 1
            _one_line(error)
            return
        met["read"] += 1
        if kind == "curve":
            _never_below(found.leakage_bound, data.decode("utf-8-sig"))

    example()
    assert min(met.values()) > examples / 20, met


def _never_below(leakage_bound: LeakageBound, text: str) -> None:
    """What is promised at each age of a curve is not below what the curve says."""
    rows = [row for row in csv.reader(text.splitlines()) if row]
    titled = any(cell.strip()[:1] not in set("0123456789.+-") for cell in rows[0])
    for age, value in rows[1:] if titled else rows:
        at = int(np.searchsorted(leakage_bound.ages, float(age) * 48 - 1e-9))
        assert Decimal(float(leakage_bound.bounds["total_variation"][at])) >= Decimal(value) - Decimal("1e-15")
        assert (Decimal(value) > 0) <= (leakage_bound.bounds["total_variation"][at] > 0)


@pytest.mark.parametrize("examples", [150, pytest.param(5000, marks=pytest.mark.long)])
def test_a_spoilt_curve_or_kernel_is_a_bound_or_is_refused(tmp_path, examples):
    _declared_fuzz(tmp_path, examples)


def _public() -> dict:
    leakage_bound = LeakageBound(
        np.array([48, 96]), LOSS_GRID, None, None, {"total_variation": np.array([0.9, 0.5])}, 48, "markov"
    )
    facts = {
        "source": "estimated", "assume": "markov", "period": ["2012-01-01", "2012-12-31"], "step": "half-hour", "states": 12,
        "edges": "quantile", "chain": "homogeneous", "memory": "one", "min_visits": 100, "confidence": "sampling-bound", "ages_days": [1, 2, 7],
    }  # fmt: skip
    return json.loads(public_text(facts, leakage_bound))


ODD_JSON = [
    None, True, -1, 0, 1.5, "inf", "nan", "x", [], {}, [[]], 10**30, -(10**30), "9" * 5000, Raw("NaN"), Raw("1e999"),
]  # fmt: skip


def _spoilt_public(seed: int) -> str:
    choice, document = random.Random(seed), _public()
    leakage_bound = document["envelope"]
    where = choice.choice(
        [
            document,
            leakage_bound,
            leakage_bound["bounds"],
            leakage_bound["bounds"]["total_variation"],
            leakage_bound["ages"],
            leakage_bound["losses"],
        ]
    )
    at = choice.choice(sorted(where)) if isinstance(where, dict) else choice.randrange(len(where))
    odd = choice.choice(ODD_JSON)
    if choice.random() < 0.2:
        del where[at]
    else:
        where[at] = f"@{odd}@" if isinstance(odd, Raw) else odd
    text = json.dumps(document).replace('"@', "").replace('@"', "")
    cut = choice.randrange(len(text)) if choice.random() < 0.2 else len(text)
    return text[:cut]


@settings(FUZZ, max_examples=300, derandomize=True)
@given(seed=st.integers(0, 2**32))
def test_a_spoilt_public_part_is_refused_as_damaged_or_made_under_other_settings(tmp_path, seed):
    folder = tmp_path / "out" / "confidential" / "model"
    folder.mkdir(parents=True, exist_ok=True)
    text = _spoilt_public(seed)
    (folder / "public.json").write_text(text)
    run = parse(toml(sound("model", "estimated")), base=tmp_path, name="r.toml")
    try:
        found = read_model(run)
    except AgedpError as error:
        _one_line(error)
        return
    again = json.loads(found.text)["envelope"]
    assert LeakageBound.from_json(again) == found.leakage_bound
    assert all(0 <= value <= 1 for values in found.leakage_bound.bounds.values() for value in values)
