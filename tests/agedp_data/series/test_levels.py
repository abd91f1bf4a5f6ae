"""A list of group columns: one series per level, in contracts and back, against all small neighbours."""

from __future__ import annotations

import json
from datetime import date
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from agedp_data.config import contract_part, parse
from agedp_data.config.amendment import amendment
from agedp_data.config.contract import meaning
from agedp_data.errors import InputError, RunFileError
from agedp_data.ledger import canonical
from agedp_data.roster import read_roster
from agedp_data.series.series import series_of
from tests.exact_sums import vector

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


@pytest.mark.parametrize(
    ("keys", "what"),
    [
        ('by = ["feeder"]', 'by = ["feeder"]: must be one column, or a list of 2 to 6, the finest first'),
        ('by = ["a", "b", "c", "d", "e", "f", "g"]', "must be one column, or a list of 2 to 6, the finest first"),
        ("by = []", "by = []: must be one column, or a list of 2 to 6"),
        ('by = ["feeder", 3]', "must be one column, or a list of 2 to 6"),
        ('by = ["area", "area"]', "a list of 2 to 6 different columns, the finest first"),
        ('by = ["feeder", "to"]', "must be a group column of the roster"),
        ('by = ["feeder", "12"]', "not by digits alone: '12'"),
        ('by = ["feeder", "sub station"]', "must be named by letters, digits, _ and -"),
        ('by = ["feeder", "a/b"]', "must be named by letters, digits, _ and -"),
        ('by = ["feeder", "area"]', "share: is missing; write one share per level, such as share = [0.6, 0.4]"),
        ('by = ["feeder", "area"]\nshare = 1', "share = 1: must be a list of one share per level"),
        ('by = ["feeder", "area"]\nshare = [1]', "share = [1]: must have 2 numbers, one per level, such as [0.6, 0.4]"),
        ('by = ["feeder", "area"]\nshare = [0.6, 0.5]', "the shares add up to 1.1, not 1"),
        ('by = ["feeder", "area"]\nshare = [0.6, -0.1]', "must be above 0 and at most 1"),
        ('by = "area"\nshare = [0.6, 0.4]', "share = [0.6, 0.4]: must be one number"),
    ],
)
def test_what_is_no_hierarchy_is_one_line(keys, what):
    with pytest.raises(RunFileError) as caught:
        read(LONDON.replace("= 50", f"= 50\n{keys}"))
    assert what in str(caught.value)
    assert str(caught.value).startswith("run.toml: [series.daily_mean] ")
    assert "\n" not in str(caught.value)


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
