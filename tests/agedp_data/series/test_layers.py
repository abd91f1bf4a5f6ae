"""A list of clamps: exact layers, sensitivities against all small neighbours, contracts with and without layers."""

from __future__ import annotations

import copy
import json
from itertools import pairwise, product
from pathlib import Path

import numpy as np
import pytest

from agedp_data.config import contract_part, parse
from agedp_data.config.amendment import amendment
from agedp_data.config.contract import meaning
from agedp_data.errors import ContractChanged, LedgerError
from agedp_data.ledger import ContractRecord, canonical
from agedp_data.ledger.ledger_reader import require_same_contract
from agedp_data.series.layered_mean import Layer
from agedp_data.series.sensitivity import Move
from agedp_data.series.series import series_of, written_contracts
from tests import exact_sums

LONDON = (Path(__file__).parents[3] / "docs" / "examples" / "london.toml").read_text("utf-8")
SHARES = {2: "[0.77, 0.23]", 3: "[0.5, 0.3, 0.2]", 4: "[0.4, 0.3, 0.2, 0.1]"}
SMALL = [(1, 3), (2, 3), (1, 2, 5), (1, 2, 3, 4)]


def run(clamps, *keys):
    """The run file with these clamps in watt-hours, read as a user's text."""
    listed = [f"0.{clamp:03}" for clamp in clamps]
    clamp = f"[{', '.join(listed)}]\nshare = {SHARES[len(clamps)]}" if len(clamps) > 1 else listed[0]
    return parse(LONDON.replace("= 50", "\n".join([f"= {clamp}", *keys])), base=Path("/data"), name="run.toml")


def layers(clamps, *keys):
    return [series for name, series in run(clamps, *keys).series.items() if name.startswith("daily_mean/")]


def vector(of, day_wh, usable=True):
    """The layers of one household's day: what each exact sum gains by it."""
    return tuple(exact_sums.vector(layer, day_wh, usable)[0] for layer in of)


@pytest.mark.parametrize("clamps", SMALL)
def test_layers_of_a_day_add_up_to_the_clamped_day(clamps):
    for missing in range(clamps[-1] + 1):
        of = layers(clamps, f"missing_kwh = 0.{missing:03}")
        for day_wh in range(clamps[-1] + 3):
            cut = [min(max(day_wh - low, 0), high - low) for low, high in pairwise((0, *clamps))]
            assert vector(of, day_wh) == tuple(cut)
            assert sum(cut) == min(day_wh, clamps[-1])
        assert sum(vector(of, 0, usable=False)) == missing
        assert vector(of, 0, usable=False) == vector(of, missing)


@pytest.mark.parametrize("clamps", SMALL)
def test_a_replaced_day_moves_all_layers_by_their_widths(clamps):
    of, days = layers(clamps), range(clamps[-1] + 3)
    vectors = [vector(of, day_wh) for day_wh in days] + [vector(of, 0, usable=False)]
    changes = np.array([np.abs(np.subtract(*pair)) for pair in product(vectors, repeat=2)])
    widths = [layer.sensitivity("replacement") for layer in of]
    assert changes.max(axis=0).tolist() == widths == np.diff([0, *clamps]).tolist()
    assert changes.sum(axis=1).max() == sum(widths) == clamps[-1]  # attained by one pair, in all layers at once
    assert changes.sum(axis=1).max() > max(widths)  # so the width of one layer does not cover them


@pytest.mark.parametrize("clamps", SMALL[:3])
def test_the_joint_loss_of_a_day_is_the_sum_over_its_layers(clamps):
    of = layers(clamps)
    scales = np.arange(1, len(of) + 1) * 1.7
    stated = sum(layer.sensitivity("replacement") / scale for layer, scale in zip(of, scales, strict=True))
    vectors = np.array([vector(of, day_wh) for day_wh in range(clamps[-1] + 2)])
    outputs = np.array(list(product(range(-2, clamps[-1] + 3), repeat=len(of))))
    logs = -(np.abs(outputs[:, None, :] - vectors) / scales).sum(axis=2)  # discrete Laplace, up to a constant
    loss = (logs[:, :, None] - logs[:, None, :]).max()
    assert loss == pytest.approx(stated, rel=1e-12)
    one_layer_only = max(layer.sensitivity("replacement") / scale for layer, scale in zip(of, scales, strict=True))
    assert loss > one_layer_only + 0.1


@pytest.mark.parametrize("clamps", SMALL)
def test_a_bounded_change_moves_a_layer_by_it_or_the_width(clamps):
    of, days = layers(clamps), range(clamps[-1] + 1)
    for size in days:
        changes = np.array(
            [
                np.abs(np.subtract(vector(of, a), vector(of, b)))
                for a, b in product(days, repeat=2)
                if abs(a - b) <= size
            ]
        )
        stated = [layer.sensitivity(Move(size)) for layer in of]
        assert changes.max(axis=0).tolist() == stated
        assert changes.sum(axis=1).max() == size <= sum(stated)  # no household attains it in all layers at once


def test_a_contract_with_layers_names_its_form_and_reads_back():
    contract = contract_part(run((30, 75), "missing_kwh = 0.04"), model=None)
    assert (contract["form"], contract["needs"]) == (2, "0.2")
    assert (
        contract["series"]["daily_mean/1"].keys()
        == contract_part(run((30,)), model=None)["series"]["daily_mean"].keys()
    )
    upper = contract["series"]["daily_mean/2"]
    assert [upper[key] for key in ("clamp_kwh", "above_kwh", "missing_kwh", "share")] == [
        "0.075",
        "0.03",
        "0.01",
        "0.23",
    ]
    stored = series_of(meaning(json.loads(canonical(contract))))
    assert stored == run((30, 75), "missing_kwh = 0.04").series
    assert isinstance(stored["daily_mean/2"], Layer)
    lowest = contract["series"]["daily_mean/1"]
    assert series_of({"series": {"use": lowest | {"above_kwh": "0"}}}) == series_of({"series": {"use": lowest}})
    with pytest.raises(LedgerError, match="a series that this agedp does not know"):
        series_of({"series": {"daily_mean/2": upper | {"above_kwh": "0.08"}}})


@pytest.mark.parametrize(
    ("old", "new", "changed"),
    [
        ((30,), (30, 75), {"clamp_kwh": '["0.03", "0.075"]', "share": '["0.77", "0.23"]'}),
        ((30, 75), (30,), {"clamp_kwh": '"0.03"', "share": '"1"'}),
        ((30, 75), (40, 75), {"clamp_kwh": '["0.04", "0.075"]'}),
        ((30, 75), (30, 50, 75), {"clamp_kwh": '["0.03", "0.05", "0.075"]', "share": '["0.5", "0.3", "0.2"]'}),
    ],
)
def test_amendments_of_clamps_are_shown_in_the_keys_of_users(old, new, changed):
    contracts = [contract_part(run(clamps), model=None) for clamps in (old, new)]
    changes = amendment(*map(meaning, contracts))
    assert {change.key: change.new for change in changes} == {
        f"series.daily_mean.{key}": to for key, to in changed.items()
    }
    assert {change.verdict for change in changes} == {"allowed"}
    registered = ContractRecord("p", canonical(contracts[0]), at="2013-01-01")
    with pytest.raises(ContractChanged, match=r"series\.daily_mean\.clamp_kwh: ") as refusal:
        require_same_contract(registered, contracts[1])
    assert "/1" not in str(refusal.value)
    assert require_same_contract(registered, contracts[0]) == registered


def test_shares_of_layers_that_add_up_to_less_are_refused():
    old, new = (contract_part(run(clamps), model=None) for clamps in ((30,), (30, 75)))
    new["series"]["daily_mean/2"]["share"] = "0.2"
    assert {change.verdict for change in amendment(old, new) if change.key.endswith("share")} == {"refused"}


def test_layers_that_no_run_file_writes_are_compared_as_they_are():
    contract = contract_part(run((30, 50, 75)), model=None)
    names = [f"daily_mean/{number}" for number in (1, 2, 3)]
    assert [list(of["series"]) for of in written_contracts(contract, contract)] == [["daily_mean"]] * 2
    for name, key, value in [
        ("daily_mean/2", "above_kwh", "0.02"),
        ("daily_mean/2", "max_missing", 3),
        ("daily_mean/1", "above_kwh", "0.01"),
        ("daily_mean/3", "statistic", "distribution"),
    ]:
        changed = copy.deepcopy(contract)
        changed["series"][name][key] = value
        assert [list(of["series"]) for of in written_contracts(contract, changed)] == [names] * 2
        assert [change.key for change in amendment(contract, changed)] == [f"series.{name}.{key}"]
    del changed["series"]["daily_mean/2"]
    assert [list(of["series"]) for of in written_contracts(changed, contract)] == [[names[0], names[2]], names]
