"""Lists of group columns and of clamps: a series per level or layer, and estimates of groups that add up."""

from __future__ import annotations

import copy
import json
from datetime import date
from itertools import pairwise, product
from pathlib import Path

import numpy as np
import pytest

from agedp_data.config import contract_part, parse
from agedp_data.config.amendment import amendment
from agedp_data.config.contract import meaning
from agedp_data.errors import ContractChanged, InputError, LedgerError
from agedp_data.ledger import ContractRecord, canonical
from agedp_data.ledger.ledger_reader import require_same_contract
from agedp_data.roster import read_roster
from agedp_data.series.consistency import DrawnGroups, NoisyValue, consistent_groups, next_coarser, totals_with_groups
from agedp_data.series.sensitivity import Move
from agedp_data.series.series import series_of, written_contracts
from tests import exact_sums
from tests.exact_sums import vector

# A list of group columns: one series per level, in contracts and back, against all small neighbours.

LONDON = (Path(__file__).parents[3] / "docs" / "examples" / "london.toml").read_text("utf-8")
BY = ["feeder", "substation", "area"]
SHARES = {2: "[0.6, 0.4]", 3: "[0.5, 0.3, 0.2]"}
DAY = date(2013, 1, 1)


def read(text):
    return parse(text, base=Path("/data"), name="run.toml")


def run(*columns, clamp="50", share=None):
    """The run file of one mean by these columns, read as a user's text."""
    by = f"\nby = {json.dumps(list(columns) if len(columns) > 1 else columns[0])}" if columns else ""
    share = SHARES.get(len(columns)) if share is None else share
    return read(LONDON.replace("= 50", f"= {clamp}{by}" + (f"\nshare = {share}" if share else "")))


def roster(folder, rows, columns=("feeder", "substation", "area"), **keys):
    path = folder / "roster.csv"
    text = [",".join(["household_id,from,to", *columns]), *(f"{home},2013-01-01,,{labels}" for home, labels in rows)]
    path.write_text("\n".join(text) + "\n")
    return read_roster(path, **keys)


HOMES = [("A", "1,S1,north"), ("B", "1,S2,north"), ("C", "2,S2,north"), ("D", "1,S1,south"), ("E", "1,S2,north")]


STATISTICS = {
    "distribution": "clamp_kwh = 50\nbins_kwh = [0, 5, 50]",
    "profile": "clamp_kwh = 50\nhalf_hour_clamp_kwh = 4",
    "coverage": "",
}


@pytest.mark.parametrize("statistic", STATISTICS)
def test_every_statistic_has_levels(statistic):
    levels = f"by = {json.dumps(BY)}\nshare = [0.2, 0.2, 0.1]\n{STATISTICS[statistic]}"
    text = LONDON.replace("= 50", "= 50\nshare = 0.5")
    series = read(f'{text}\n[series.other]\nstatistic = "{statistic}"\n{levels}\n').series
    assert {name: level.columns for name, level in series.items() if level.by is not None} == {
        f"other/{BY[i]}": tuple(BY[i:]) for i in range(3)
    }
    assert {level.statistic for name, level in series.items() if "/" in name} == {statistic}


def members_by_hand(level):
    """The homes of each group, by their labels from the coarsest to this level."""
    groups = {}
    for home, labels in HOMES:
        path = "/".join(reversed(labels.split(",")[BY.index(level) :]))
        groups.setdefault(path, []).append(home)
    return {path: groups[path] for path in sorted(groups)}


@pytest.mark.parametrize(("level", "by"), [("feeder", tuple(BY)), ("substation", tuple(BY[1:])), ("area", "area")])
def test_groups_are_paths_so_equal_labels_elsewhere_are_other_groups(tmp_path, level, by):
    homes = roster(tmp_path, HOMES)
    members = {group: [homes.rows.ids[i] for i in rows] for group, rows in homes.rows.members(DAY, by).items()}
    assert list(members.items()) == list(members_by_hand(level).items())
    assert homes.counts.cells(DAY, by) == tuple((group, len(of)) for group, of in members.items())


@pytest.mark.parametrize(("label", "what"), [("1/2", 'contains "/"'), ("", "is empty")])
def test_a_label_that_is_no_part_of_a_path_is_one_line(tmp_path, label, what):
    rows = [("A", "1,S1,north"), ("SECRET", f"{label},S1,north")]
    assert roster(tmp_path, rows).rows.ids == ("A", "SECRET")  # of a column alone such a label is fine
    with pytest.raises(InputError) as caught:
        roster(tmp_path, rows, path_columns=set(BY))
    assert str(caught.value).startswith(
        f"[population] roster: a label in column feeder, a level of a hierarchy, {what}"
    )
    assert "line 3: " in caught.value.private
    assert "line" not in str(caught.value)
    assert "\n" not in str(caught.value)
    assert "SECRET" not in str(caught.value) + caught.value.private


def test_a_contract_with_levels_names_its_form_and_reads_back():
    contract = contract_part(run(*BY), model=None)
    assert (contract["form"], contract["needs"]) == (2, "0.2")
    assert [terms["by"] for terms in contract["series"].values()] == [BY, BY[1:], "area"]
    assert series_of(meaning(json.loads(canonical(contract)))) == run(*BY).series
    assert "form" not in contract_part(run("area"), model=None)


@pytest.mark.parametrize(
    ("old", "new", "changed"),
    [
        (["feeder"], BY, {"by": json.dumps(BY), "share": '["0.5", "0.3", "0.2"]'}),
        (BY, ["area"], {"by": '"area"', "share": '"1"'}),
        (BY, BY[1:], {"by": json.dumps(BY[1:]), "share": '["0.6", "0.4"]'}),
    ],
)
def test_amendments_of_levels_are_shown_in_the_keys_of_users(old, new, changed):
    changes = amendment(*(meaning(contract_part(run(*columns), model=None)) for columns in (old, new)))
    assert {change.key: change.new for change in changes} == {
        f"series.daily_mean.{key}": to for key, to in changed.items()
    }
    assert {change.verdict for change in changes} == {"allowed"}


@pytest.mark.parametrize("clamp_wh", [1, 3])
def test_a_replaced_day_moves_every_level_by_the_clamp_at_once(tmp_path, clamp_wh):
    homes, series = roster(tmp_path, HOMES), run(*BY, clamp=f"0.00{clamp_wh}").series
    rng = np.random.default_rng(3)

    def vectors(energy_wh, usable):
        """The exact vectors of all levels, one after the other."""
        return [
            np.concatenate([vector(level, energy_wh[of], usable[of]) for of in groups.values()])
            for level in series.values()
            for groups in [homes.rows.members(DAY, level.by)]
        ]

    largest = np.zeros(len(series), int)
    for home in range(len(HOMES)):
        others = rng.integers(0, clamp_wh + 2, len(HOMES))
        days = [(wh, True) for wh in range(clamp_wh + 3)] + [(0, False)]
        for before, after in product(days, repeat=2):
            pair = []
            for wh, is_usable in (before, after):
                energy_wh, usable = others.copy(), np.ones(len(HOMES), bool)
                energy_wh[home], usable[home] = wh, is_usable
                pair.append(vectors(energy_wh, usable))
            moves = np.array([np.abs(old - new).sum() for old, new in zip(*pair, strict=True)])
            assert len(set(moves.tolist())) == 1  # one household, one group of each level
            largest = np.maximum(largest, moves)
    sensitivities = [level.sensitivity("replacement") for level in series.values()]
    assert largest.tolist() == sensitivities == [clamp_wh] * 3


# A list of clamps: exact layers, sensitivities against all small neighbours, contracts with and without layers.

LAYER_SHARES = {2: "[0.77, 0.23]", 3: "[0.5, 0.3, 0.2]", 4: "[0.4, 0.3, 0.2, 0.1]"}
SMALL = [(1, 3), (2, 3), (1, 2, 5), (1, 2, 3, 4)]


def layered_run(clamps, *keys):
    """The run file with these clamps in watt-hours, read as a user's text."""
    listed = [f"0.{clamp:03}" for clamp in clamps]
    clamp = f"[{', '.join(listed)}]\nshare = {LAYER_SHARES[len(clamps)]}" if len(clamps) > 1 else listed[0]
    return parse(LONDON.replace("= 50", "\n".join([f"= {clamp}", *keys])), base=Path("/data"), name="run.toml")


def layers(clamps, *keys):
    return [series for name, series in layered_run(clamps, *keys).series.items() if name.startswith("daily_mean/")]


def layer_vector(of, day_wh, usable=True):
    """The layers of one household's day: what each exact sum gains by it."""
    return tuple(exact_sums.vector(layer, day_wh, usable)[0] for layer in of)


@pytest.mark.parametrize("clamps", SMALL)
def test_layers_of_a_day_add_up_to_the_clamped_day(clamps):
    for missing in range(clamps[-1] + 1):
        of = layers(clamps, f"missing_kwh = 0.{missing:03}")
        for day_wh in range(clamps[-1] + 3):
            cut = [min(max(day_wh - low, 0), high - low) for low, high in pairwise((0, *clamps))]
            assert layer_vector(of, day_wh) == tuple(cut)
            assert sum(cut) == min(day_wh, clamps[-1])
        assert sum(layer_vector(of, 0, usable=False)) == missing
        assert layer_vector(of, 0, usable=False) == layer_vector(of, missing)


@pytest.mark.parametrize("clamps", SMALL)
def test_a_replaced_day_moves_all_layers_by_their_widths(clamps):
    of, days = layers(clamps), range(clamps[-1] + 3)
    vectors = [layer_vector(of, day_wh) for day_wh in days] + [layer_vector(of, 0, usable=False)]
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
    vectors = np.array([layer_vector(of, day_wh) for day_wh in range(clamps[-1] + 2)])
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
                np.abs(np.subtract(layer_vector(of, a), layer_vector(of, b)))
                for a, b in product(days, repeat=2)
                if abs(a - b) <= size
            ]
        )
        stated = [layer.sensitivity(Move(size)) for layer in of]
        assert changes.max(axis=0).tolist() == stated
        assert changes.sum(axis=1).max() == size <= sum(stated)  # no household attains it in all layers at once


def test_a_contract_with_layers_names_its_form_and_reads_back():
    contract = contract_part(layered_run((30, 75), "missing_kwh = 0.04"), model=None)
    assert (contract["form"], contract["needs"]) == (2, "0.2")
    lowest, upper = (contract["series"][f"daily_mean/{number}"] for number in (1, 2))
    assert lowest.keys() == contract_part(layered_run((30,)), model=None)["series"]["daily_mean"].keys()
    values = [upper[key] for key in ("clamp_kwh", "above_kwh", "missing_kwh", "share")]
    assert values == ["0.075", "0.03", "0.01", "0.23"]
    stored = series_of(meaning(json.loads(canonical(contract))))
    assert stored == layered_run((30, 75), "missing_kwh = 0.04").series
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
    contracts = [contract_part(layered_run(clamps), model=None) for clamps in (old, new)]
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
    old, new = (contract_part(layered_run(clamps), model=None) for clamps in ((30,), (30, 75)))
    new["series"]["daily_mean/2"]["share"] = "0.2"
    assert {change.verdict for change in amendment(old, new) if change.key.endswith("share")} == {"refused"}


def test_layers_that_no_run_file_writes_are_compared_as_they_are():
    contract = contract_part(layered_run((30, 50, 75)), model=None)
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


# Estimates of levels: dense generalised least squares over all groups, with small groups left out.

LEVELS = ("feeder", "substation", "area")
HIERARCHY = [LEVELS[i:] for i in range(len(LEVELS))]


class World:
    """Random households in a hierarchy and in tariffs, and noisy sums of all groups with enough of them."""

    def __init__(self, seed, *, by, least):
        rng = np.random.default_rng(seed)
        number = 60
        area, tariff = rng.integers(0, 3, number), rng.integers(0, 2, number)
        substation, feeder = rng.integers(0, 3, number), rng.integers(0, 3, number)
        labels = {"area": area, "substation": substation, "feeder": feeder, "tariff": tariff}
        self.drawn, self.cells, rows = {}, [], []
        self.values, self.variances = [], []
        for columns in by:
            paths = ["/".join(str(labels[name][home]) for name in reversed(columns)) or "all" for home in range(number)]
            groups = [path for path in sorted(set(paths)) if paths.count(path) >= least or not columns]
            noisy = tuple(NoisyValue(float(rng.normal(0, 9)), float(rng.uniform(0.1, 9))) for _ in groups)
            self.drawn[columns] = DrawnGroups(tuple(groups), tuple(map(paths.count, groups)), noisy)
            for i, group in enumerate(groups):
                self.cells.append((columns, i))
                rows.append([float(path == group) for path in paths])
                self.values.append(noisy[i].value)
                self.variances.append(noisy[i].variance)
        self.design = np.array(rows)  # of each cell, the households in it

    def dense_estimates(self):
        """Values and variances of all cells, by least squares over the use of every single household."""
        weight = 1 / np.array(self.variances)
        covariance = self.design @ np.linalg.pinv(self.design.T @ (weight[:, None] * self.design)) @ self.design.T
        return covariance @ (weight * self.values), np.diag(covariance)


CASES = {
    "a total": [(), *HIERARCHY[::-1]],
    "no total": HIERARCHY,
    "a total and another column": [(), ("tariff",), *HIERARCHY],
    "a level left out": [(), LEVELS, ("area",)],
}


@pytest.mark.parametrize("least", [1, 3, 6])
@pytest.mark.parametrize("by", CASES.values(), ids=CASES)
@pytest.mark.parametrize("seed", range(3))
def test_estimates_are_those_of_least_squares_over_households(seed, by, least):
    world = World(seed, by=by, least=least)
    values, variances = world.dense_estimates()
    estimates = consistent_groups(world.drawn)
    noisy = [
        estimates[cell].noisy if cell in estimates else world.drawn[cell[0]].noisy[cell[1]] for cell in world.cells
    ]
    assert [of.value for of in noisy] == pytest.approx(values, rel=1e-9, abs=1e-9)
    assert [of.variance for of in noisy] == pytest.approx(variances, rel=1e-9)
    assert estimates or least > 1


@pytest.mark.parametrize("by", CASES.values(), ids=CASES)
def test_finer_groups_add_up_to_each_coarser_one(by):
    world = World(7, by=by, least=1)
    estimates = consistent_groups(world.drawn)
    for columns in by:
        coarser = next_coarser(columns, by)
        for i, group in enumerate(world.drawn[coarser].groups if coarser is not None else ()):
            inside = [
                estimates[columns, j].noisy.value
                for j, finer in enumerate(world.drawn[columns].groups)
                if group == "all" or finer.startswith(f"{group}/") or len(columns) == 1
            ]
            assert sum(inside) == pytest.approx(estimates[coarser, i].noisy.value, rel=1e-12, abs=1e-12)


def test_an_estimate_names_the_groups_that_it_rests_on():
    world = World(1, by=[("tariff",), *HIERARCHY], least=1)
    estimates = consistent_groups(world.drawn)
    assert {columns for columns, _ in estimates} == set(HIERARCHY)  # nothing adds up to tariffs
    assert {estimate.based_on for estimate in estimates.values()} == {frozenset(HIERARCHY)}


def test_levels_are_sums_of_each_other_and_a_label_alone_is_none():
    mean = {"statistic": "mean", "clamp_kwh": "50", "share": "0.2"}
    levels = {f"use/{of[0]}": {**mean, "by": list(of) if len(of) > 1 else of[0]} for of in HIERARCHY}
    assert totals_with_groups(series_of({"series": levels | {"tariffs": {**mean, "by": "tariff"}}})) == [
        ("use/area", "use/substation", "use/feeder")
    ]
    alone = {"feeders": {**mean, "by": "feeder"}, "areas": {**mean, "by": "area"}}
    assert totals_with_groups(series_of({"series": alone})) == []  # feeder 1 may lie in several areas
    slash = DrawnGroups(("n/1",), (5,), (NoisyValue(1.0, 1.0),))
    total = DrawnGroups(("all",), (5,), (NoisyValue(3.0, 1.0),))
    estimates = consistent_groups({(): total, ("zone",): slash})
    assert [estimate.noisy.value for estimate in estimates.values()] == [2.0, 2.0]


@pytest.mark.parametrize("every", ["day", "month"])
def test_a_mean_of_months_adds_up_to_no_mean_of_days(every):
    mean = {"statistic": "mean", "clamp_kwh": "50", "share": "0.5"}
    terms = {"total": mean, "tariffs": {**mean, "by": "tariff", "every": every}}
    assert totals_with_groups(series_of({"series": terms})) == ([("total", "tariffs")] if every == "day" else [])
