"""The notion `discounted` through the command: the shipped run file and its hyperbolic twin, and both clocks."""

from __future__ import annotations

from datetime import date, timedelta
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import pytest

from agedp.release_verification import open_release
from agedp_data.datasets.synthetic import write_ausgrid, write_roster
from agedp_data.epsilon import exact_text
from agedp_data.ledger import Ledger, ReleaseRecord
from tests.agedp_flows.worlds import World, make
from tests.command import CommandFolder

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


PROMISE = """notion = "discounted"
discount = "exponential"
rate = 0.5
epsilon = 1
max_day_epsilon = 1
epsilon_total = "unlimited"
"""


def released(folder: Path, *, schedule: str, clock: str, mode: str = "archive") -> World:
    age = "age_days = 1\n" if mode != "archive" else ""
    world = make(folder, mode=mode, promise=f'{PROMISE}schedule = "{schedule}"\nclock = "{clock}"\n{age}')
    world.succeed("run", "run.toml")
    return world
