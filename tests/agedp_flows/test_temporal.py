"""The notion `temporal` through the command: the kernel itself, refusals, the report."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from agedp_data.ledger import Ledger, ReleaseRecord
from tests.agedp.reports.html import faults_of
from tests.agedp_data.accounting.leaps import recursion_by_leaps
from tests.agedp_flows.worlds import DECLARED, KERNEL, STICKY, make

PROMISE = """notion = "temporal"
alpha = 1.5
horizon_days = {horizon}
budget = "{budget}"
max_day_epsilon = 1
epsilon_total = 30
"""


def rows_of(ledger: Path) -> tuple[ReleaseRecord, ...]:
    with Ledger.open(f"sqlite:///{ledger}") as opened:
        return opened.rows()


@pytest.mark.parametrize(
    ("notion", "model"), [("temporal", KERNEL), ("age-dependent", KERNEL), ("age-dependent", DECLARED)]
)
def test_the_stated_leakage_is_that_of_the_kernel_itself(tmp_path, notion, model):
    """A promise of another notion has one too, if its model looks ahead."""
    promise = {"promise": PROMISE.format(horizon=6, budget="exact")} if notion == "temporal" else {"total": "2.5"}
    world = make(tmp_path / "world", mode="archive", model=model, **promise)
    world.agedp("run", "run.toml")
    losses = [row.loss / 1e9 for row in rows_of(world.folder / "out/ledger.sqlite")]
    assert len(losses) == (6 if notion == "temporal" else 5)  # the other total is spent after five days
    release = world.folder / "out" / "release"
    statement = json.loads((release / "statement.json").read_text())
    bounds, html = {bound["name"]: bound for bound in statement["figures"]}, (release / "report.html").read_text()
    assert faults_of(html) == []
    assert ("temporal leakage" in bounds) == (model == KERNEL)
    if model == KERNEL:
        leakage = recursion_by_leaps(np.array(STICKY), max_days=7).leakage_totals(losses)
        exact, bound = leakage.total.max(), bounds["temporal leakage"]
        assert exact <= float(bound["epsilon"]) <= (1.5 if notion == "temporal" else exact * 1.1)
        assert bound["limit"] == ("1.5" if notion == "temporal" else "")
    if notion == "temporal":
        assert exact > 0.9 * 1.5


@pytest.mark.parametrize(
    ("horizon", "budget", "message"),
    [
        ('"unlimited"', "supremum", 'name horizon_days with budget = "best"'),
        ("6", "exact", '"even" leaves each of 6 days epsilon 0.25'),
    ],
)
def test_days_too_much_alike_are_refused_before_the_draw(tmp_path, horizon, budget, message):
    promise = PROMISE.format(horizon=horizon, budget=budget)
    world = make(tmp_path / "world", mode="archive", model=KERNEL, promise=promise)
    (world.folder / "kernel.csv").write_text("0,1,0\n0,0,1\n1,0,0\n")
    planned = world.agedp("plan", "run.toml")
    assert message in planned.out + planned.err
    ran = world.agedp("run", "run.toml")
    assert (ran.status, message in ran.err) == (3, True)
    ledger = world.folder / "out" / "ledger.sqlite"
    assert not ledger.exists() or rows_of(ledger) == ()
