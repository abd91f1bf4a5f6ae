"""Live estimates stay as they are whatever is amended, added, withdrawn or delivered late afterwards."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import numpy as np
import pytest

from agedp_data.smoothing import estimates as estimates_module
from tests.agedp.smoothed_estimates.conftest import FIRST, contract, row, table


def layered(name, *clamps, by=None):
    """The series of a contract: one for each clamp."""
    series, below = {}, None
    for number, clamp in enumerate(clamps, 1):
        keys = {"clamp_kwh": str(clamp), **({"by": by} if by else {}), **({"above_kwh": str(below)} if below else {})}
        series[f"{name}/{number}" if len(clamps) > 1 else name] = keys
        below = clamp
    return series


TOTAL, HIGH = layered("use", 30, 75), layered("use", 10, 30, 75)
GROUPS = layered("homes", 30, 75, by="tariff")
ALONE, BY_TARIFF, BY_REGION = layered("use", 50), layered("homes", 50, by="tariff"), layered("areas", 50, by="region")
TWO, THREE, LAST_TWO = ("A", "B"), ("A", "B", "C"), ("B", "C")

HISTORIES = {
    "clamp amended there and back": [(5, ALONE), (4, layered("use", 30)), (5, ALONE)],
    "a layer added below and removed": [(6, TOTAL), (3, HIGH), (5, TOTAL)],
    "a layer removed below": [(6, HIGH), (3, TOTAL)],
    "layers on a single clamp": [(5, layered("use", 30)), (4, TOTAL), (3, layered("use", 30))],
    "a second layered series": [(5, TOTAL), (4, {**TOTAL, **layered("homes", 10, 30, 75, by="tariff")}), (2, TOTAL)],
    "groups added to a layered total": [(5, TOTAL), (4, {**TOTAL, **GROUPS})],
    "a layered total added to groups": [(5, GROUPS), (4, {**TOTAL, **GROUPS}), (3, GROUPS)],
    "a total added to groups of two columns": [(4, {**BY_TARIFF, **BY_REGION}), (4, {**ALONE, **BY_TARIFF})],
    "a group founded and one withdrawn": [
        (4, {**ALONE, **BY_TARIFF}, TWO),
        (4, {**ALONE, **BY_TARIFF}, THREE),
        (4, {**ALONE, **BY_TARIFF}, LAST_TWO),
    ],
    "a group of layers withdrawn without a total": [(4, GROUPS, THREE), (5, GROUPS, LAST_TWO)],
}
ORDERS = {"in order": {}, "late days": {2: 3.5, 3: 6.5, 7: 8.5}}


def history(stages, late):
    """Ledger rows by visit of a day, and the contracts: each day's rows are under the contract of its stage."""
    contracts = [contract(1000 * number, **stage[1]) for number, stage in enumerate(stages, 1)]
    days = [(day, number) for number, stage in enumerate(stages, 1) for day in [None] * stage[0]]
    days = [(day, number) for day, (_, number) in enumerate(days)]
    visits, seq = [], 2
    for day, number in sorted(days, key=lambda pair: late.get(pair[0], pair[0])):
        stage, visit, chance = stages[number - 1], [], np.random.default_rng(day)
        for name, keys in stage[1].items():
            groups = stage[2] if len(stage) > 2 else TWO
            counts = {"all": 2 * len(groups)} if "by" not in keys else dict.fromkeys(groups, 2)
            size = 9000 if "above_kwh" not in keys else 900
            cells = {
                group: (int(households * size + chance.laplace(scale=2000)), households)
                for group, households in counts.items()
            }
            visit.append(row(seq, day, series=name, of=1000 * number, cells=cells, scale=2000.0))
            seq += 1
        visits.append(visit)
    return visits, contracts


def live_columns(visits, contracts):
    rows = [line for visit in visits for line in visit]
    return {
        (line["series"], line["group"], line["day"]): [line[f"live_{name}"] for name in ("kwh", "low_kwh", "high_kwh")]
        for line in table(rows, contracts)
    }


@pytest.mark.parametrize("late", ORDERS.values(), ids=ORDERS)
@pytest.mark.parametrize("stages", HISTORIES.values(), ids=HISTORIES)
def test_no_prefix_of_a_ledger_has_other_live_estimates(stages, late, monkeypatch):
    monkeypatch.setattr(estimates_module, "REFIT_DAYS", 4)
    for module in (estimates_module, estimates_module):  # the search has tests of its own and takes most of the time
        monkeypatch.setattr(module, "fit_amplitudes", quick_fit)
    visits, contracts = history(stages, late)
    whole = live_columns(visits, contracts)
    assert sum(value[0] is None for value in whole.values()) <= (0 if not late else 2)
    for number in range(1, len(visits)):
        earlier = {
            key: value for key, value in live_columns(visits[:number], contracts).items() if value[0] is not None
        }
        assert {key: whole[key] for key in earlier} == earlier
        if not late:
            assert len(earlier) == sum(len(line.cells) for visit in visits[:number] for line in visit
                                       if not line.series[-1].isdigit() or line.series.endswith("/1"))  # fmt: skip


def quick_fit(observed, noise_variance, covariates, *, prior, start=None):
    """Amplitudes that depend on all figures without a search for the most probable ones."""
    size = np.nan_to_num(observed).std(axis=-1, keepdims=True)[..., None] + 0.1 + (0 if start is None else start.level)
    draws = np.broadcast_to(size, (*observed.shape[:-1], 2, 7)) * np.array([[1.0], [1.2]])
    return prior.amplitudes, draws


@pytest.mark.parametrize("added", [BY_TARIFF, layered("again", 50)], ids=["groups", "a second figure"])
def test_a_series_that_is_drawn_for_old_days_too_revises_nothing(added):
    old, new = history([(5, ALONE)], {})[0], history([(8, added)], {})[0]
    contracts = [contract(1000, **ALONE), contract(2000, **ALONE, **added)]
    visits = [
        *old,
        *new[:5],
        *[[*total, *rows] for total, rows in zip(history([(8, ALONE)], {})[0][5:], new[5:], strict=True)],
    ]
    rows = [line for visit in visits for line in visit]
    rows = [
        replace(line, seq=seq, contract=f"contract {1000 if seq < 7 else 2000}") for seq, line in enumerate(rows, 2)
    ]
    whole = live_columns([rows], contracts)
    for number in range(1, len(rows)):
        earlier = {
            key: value for key, value in live_columns([rows[:number]], contracts).items() if value[0] is not None
        }
        assert {key: whole[key] for key in earlier} == earlier
    assert all(whole["use", "all", FIRST + timedelta(days=day)][0] is not None for day in range(8))
    for group in TWO if added is BY_TARIFF else ():
        values = [whole["homes", group, FIRST + timedelta(days=day)][0] for day in range(8)]
        assert [value is None for value in values] == [True] * 5 + [False] * 3


def test_a_day_without_one_of_its_layers_has_no_published_value():
    rows = [row(2 + 2 * i, i, series="use/1") for i in range(4)]
    rows += [row(3 + 2 * i, i, series="use/2", state="skipped" if i in (0, 2) else "released") for i in range(4)]
    lines = table(rows, [contract(1, **TOTAL)])
    assert [line["published_kwh"] for line in lines] == [None, 20.0, None, 20.0]
    assert all(line["low_kwh"] < line["estimate_kwh"] < line["high_kwh"] for line in lines)
    assert [line["live_kwh"] is None for line in lines] == [True, False, False, False]


def test_a_day_with_rows_under_two_contracts_is_smoothed():
    contracts = [contract(1, **layered("use", 30, 75)), contract(5, **layered("use", 40, 75))]
    split = [row(2, 0, series="use/1", of=1), row(6, 0, series="use/2", of=5)]
    assert table(split, contracts) == []
    whole = [row(7, 1, series="use/1", of=5), row(8, 1, series="use/2", of=5)]
    assert [line["published_kwh"] for line in table([*split, *whole], contracts)] == [None, 20.0]
