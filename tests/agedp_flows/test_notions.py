"""The notions discounted and temporal through the command."""

from __future__ import annotations

import json
from datetime import date, timedelta
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from agedp.release_verification import open_release
from agedp_data.datasets.synthetic import write_ausgrid, write_roster
from agedp_data.epsilon import exact_text
from agedp_data.ledger import Ledger, ReleaseRecord
from tests.agedp.reports.html import faults_of
from tests.agedp_data.accounting.temporal_oracles import recursion_by_leaps
from tests.agedp_flows.worlds import DECLARED, KERNEL, STICKY, make
from tests.command import CommandFolder

# The notion `discounted` through the command: the shipped run file and its hyperbolic twin, and both clocks.

EXAMPLE = Path(__file__).parents[2] / "docs" / "examples" / "ausgrid.toml"
FIRST = date(2012, 7, 1)
TWINS = {"exponential": ("0.99", 89.47, 0.01994975), "hyperbolic": ("1.0", 5.835, 0.29471)}
"""Rates, the mean of 1/loss over a year at epsilon 1, and the loss of the first of 365 days: r_1 of the
closed form (99: 0.01994975); hyperbolic from the convex programme."""


def ausgrid(folder: Path, discount: str, *, households: int = 6, days: int = 5) -> CommandFolder:
    """The shipped run file beside synthetic households; its twin discounts hyperbolically."""
    text = EXAMPLE.read_text("utf-8").replace('"exponential"', f'"{discount}"')
    text = text.replace("0.99 ", f"{TWINS[discount][0]} ")
    # six households and five days, of which a discount credits next to nothing; and 300, a third of what is of use
    accepted = '["no-credit", "useless", "total"]' if days < 365 else '["useless"]'
    text = text.replace("[promise]", f"[promise]\naccept = {accepted}")
    if days < 365:
        last = FIRST + timedelta(days=days - 1)
        text = text.replace("2013-06-30", str(last)).replace("min_households = 100", f"min_households = {households}")
    written = write_ausgrid(folder, households=households, first_day=FIRST, days=days, seed=11, quirks=False)
    written.files[0].rename(folder / "2012-2013 Solar home electricity data v2.csv")
    write_roster(folder / "ausgrid-roster.csv", household_ids=written.household_ids, first_day=FIRST)
    (folder / "run.toml").write_text(text)
    return CommandFolder(folder)


def rows_of(site: CommandFolder, ledger: str) -> tuple[ReleaseRecord, ...]:
    with Ledger.open(f"sqlite:///{site.folder / ledger}") as opened:
        return opened.rows()


def require_promise_kept(site: CommandFolder, discount: str, *, days: int) -> list[float]:
    """Return the losses, the promise checked in fractions on every day and a month after the last."""
    rows, rate = rows_of(site, "out/ausgrid/ledger.sqlite"), Fraction(TWINS[discount][0])
    assert [row.day for row in rows] == [str(FIRST + timedelta(days=i)) for i in range(days)]
    assert {row.state for row in rows} == {"released"}
    weights = [rate**j if discount == "exponential" else 1 / (1 + rate * j) for j in range(days + 30)]
    spent = [Fraction(row.loss, 10**9) for row in rows]
    sums = [sum(weights[t - k] * spent[k] for k in range(min(t + 1, days))) for t in range(days + 30)]
    assert max(sums) <= 1
    for row, loss in zip(rows, spent, strict=True):  # the noise was drawn at these losses: scale = sensitivity/loss
        assert row.scale == pytest.approx(row.sensitivity / float(loss), rel=1e-6)
    release = open_release(site.folder / "out" / "ausgrid" / "release")
    release.verify()
    bounds = {bound["name"]: Fraction(bound["epsilon"]) for bound in release.statement["figures"]}
    assert bounds["total"] == sum(spent)
    stated = bounds[f"discounted sum ({discount} {exact_text(Decimal(TWINS[discount][0]))})"]
    assert (max(sums) <= stated <= 1, stated - max(sums) < Fraction(1, 10**8)) == (True, True)
    return [float(loss) for loss in spent]


@pytest.mark.parametrize("discount", list(TWINS))
def test_the_shipped_run_file_and_its_twin_keep_their_schedule(tmp_path: Path, discount: str) -> None:
    site = ausgrid(tmp_path, discount)
    planned, released = (
        [line for line in site.succeed(verb, "run.toml").splitlines() if " of at most " in line]
        for verb in ("plan", "run")
    )
    losses = require_promise_kept(site, discount, days=5)
    assert losses[0] == pytest.approx(TWINS[discount][2], abs=1e-5)
    assert losses == sorted(losses, reverse=True)
    bound = released[0].removeprefix("Bound of the notion: ")
    assert planned == [f"Bound of the notion after these releases: {bound}"]


@pytest.mark.long
@pytest.mark.parametrize("discount", list(TWINS))
def test_a_year_of_300_households_has_the_reference_noise(tmp_path: Path, discount: str) -> None:
    site = ausgrid(tmp_path, discount, households=300, days=365)
    site.succeed("run", "run.toml")
    losses = require_promise_kept(site, discount, days=365)
    assert sum(1 / loss for loss in losses) / 365 == pytest.approx(TWINS[discount][1], rel=2e-4)


# The notion `temporal` through the command: the kernel itself, refusals, the report.

PROMISE = """notion = "temporal"
alpha = 1.5
horizon_days = {horizon}
budget = "{budget}"
max_day_epsilon = 1
epsilon_total = 30
"""


def ledger_rows(ledger: Path) -> tuple[ReleaseRecord, ...]:
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
    losses = [row.loss / 1e9 for row in ledger_rows(world.folder / "out/ledger.sqlite")]
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
    assert not ledger.exists() or ledger_rows(ledger) == ()
