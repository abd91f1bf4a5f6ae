"""Total variations of new models are not rounded before they are multiplied by e^loss; models of 0.1 keep theirs."""

from __future__ import annotations

import json
import math
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest

from agedp.ledger_session import LedgerSession
from agedp_data.errors import ChainError
from agedp_data.leakage.bound_table import LeakageBound
from agedp_data.ledger import Ledger
from agedp_data.model import Model, kernel_leakage_bound
from tests.compatibility.fixtures import unpack

LOSS = 12.0
SLOW = 0.9999
BY = {"direction": "backward", "method": "total_variation"}


def figure(distance: Decimal) -> float:
    """ln(1 + Delta (e^a - 1)), in thirty digits."""
    return float((1 + distance * (Decimal(LOSS).exp() - 1)).ln())


def new_bound(distance: float) -> LeakageBound:
    return LeakageBound([48], [1.0], bounds={"total_variation": [distance]}, distances="exact")


@pytest.mark.parametrize("name", ["age-dependent-archive", "temporal-archive"])
def test_a_model_of_0_1_keeps_text_hash_and_figures(name: str, tmp_path: Path) -> None:
    population = unpack(name, tmp_path)
    with Ledger.open(population.ledger) as ledger:
        [record] = ledger.models()
    model, stored = Model.from_text(record.envelope), json.loads(record.envelope)["envelope"]
    assert (model.id, model.leakage_bound.to_json(), "distances" in stored) == (record.model, stored, False)
    for age, billionths in zip(stored["ages"], stored["bounds"]["total_variation"], strict=True):
        value = float(model.leakage_bound(age, LOSS, **BY))
        assert 0 <= value - figure(Decimal(billionths) / 10**9) < 2.1e-9 or value == LOSS


@pytest.mark.parametrize("name", ["age-dependent-archive", "temporal-archive"])
def test_a_series_of_0_1_goes_on_under_its_model(name: str, tmp_path: Path) -> None:
    population = unpack(name, tmp_path)
    with Ledger.open(population.ledger) as ledger:
        [record] = ledger.models()
    session = LedgerSession.open(population.begin(now=population.last_night))
    assert session.run.model is not None
    assert session.model is not None
    assert session.model.id == record.model != session.run.model.id


@pytest.mark.parametrize("distance", [0.0, 4e-10, 1.004e-7, 0.0021, 0.640000000123, 1.0])
def test_a_new_bound_is_the_formula_at_a_loss_of_12(distance: float) -> None:
    value = float(new_bound(distance)(48, LOSS, **BY))
    assert -1e-15 < value - figure(Decimal(distance)) < 2.1e-9 or value == LOSS
    again = LeakageBound.from_json(json.loads(json.dumps(new_bound(distance).to_json())))
    assert again == new_bound(distance)
    assert float(again(48, LOSS, **BY)) == value


def test_a_declared_kernel_has_the_total_variation_of_its_powers() -> None:
    # two states that persist: Delta(t) = (2 SLOW - 1)^t, and a slack of 1e-12
    bound = kernel_leakage_bound(np.array([[SLOW, 1 - SLOW], [1 - SLOW, SLOW]]), assume="markov", steps_per_day=48)
    for days in (30, 365):
        distance = Decimal(2 * SLOW - 1) ** (48 * days)
        value = float(bound(48 * days, LOSS, **BY))
        slack = 1.1e-12 * math.exp(LOSS) / (1 + float(distance) * math.exp(LOSS))
        assert 0 <= value - figure(distance) < 2.1e-9 + slack


@pytest.mark.parametrize("value", ["nan", "inf", "-0.1", "1.1", "x", "9" * 5000, 500_000_000, None])
def test_an_exact_distance_is_a_number_from_0_to_1(value: object) -> None:
    document = new_bound(0.5).to_json() | {"bounds": {"total_variation": [value]}}
    with pytest.raises(ChainError):
        LeakageBound.from_json(document)


@pytest.mark.parametrize("marker", ["rounded up", None, 1, ["exact"]])
def test_another_marker_is_refused(marker: object) -> None:
    with pytest.raises(ChainError):
        LeakageBound.from_json(new_bound(0.5).to_json() | {"distances": marker})
