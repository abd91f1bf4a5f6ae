"""The notion `discounted` through the command: the shipped run file and its hyperbolic twin, clocks, two worlds."""

from __future__ import annotations

import json
from datetime import date, timedelta
from fractions import Fraction
from pathlib import Path

import pytest

from agedp.release_folder.release_folder import open_release
from agedp_data.datasets.synthetic import write_ausgrid, write_roster
from agedp_data.ledger import Ledger
from tests.agedp_flows.in_process import agedp
from tests.agedp_flows.worlds import DECLARED, make

EXAMPLE = Path(__file__).parents[2] / "docs" / "examples" / "ausgrid.toml"
FIRST = date(2012, 7, 1)
TWINS = {"exponential": ("0.99", 89.47), "hyperbolic": ("1.0", 5.835)}
"""Rates, and the mean of 1/loss over a year at epsilon 1 (MATHS 10)."""


def ausgrid(folder: Path, discount: str, *, homes: int, days: int) -> Path:
    """The shipped run file beside synthetic households under its file names; its twin discounts hyperbolically."""
    text = (
        EXAMPLE.read_text("utf-8").replace('"exponential"', f'"{discount}"').replace("0.99 ", f"{TWINS[discount][0]} ")
    )
    if days < 365:
        last = FIRST + timedelta(days=days - 1)
        text = text.replace("2013-06-30", str(last)).replace("min_households = 100", f"min_households = {homes}")
    made = write_ausgrid(folder, households=homes, first_day=FIRST, days=days, seed=11, quirks=False)
    made.files[0].rename(folder / "2012-2013 Solar home electricity data v2.csv")
    write_roster(folder / "ausgrid-roster.csv", household_ids=made.household_ids, first_day=FIRST)
    (folder / "ausgrid.toml").write_text(text)
    return folder / "ausgrid.toml"


def year(folder: Path, monkeypatch: pytest.MonkeyPatch, discount: str, *, homes: int, days: int) -> list[float]:
    """Run it; return the losses, the promise checked in fractions on every day and a year behind the last."""
    run_file = ausgrid(folder, discount, homes=homes, days=days)
    assert agedp(monkeypatch, "run", str(run_file)) == 0
    with_ledger = Ledger.open(f"sqlite:///{folder}/out/ausgrid/ledger.sqlite")
    rows = with_ledger.rows()
    assert [row.day for row in rows] == [str(FIRST + timedelta(days=i)) for i in range(days)]
    assert {row.state for row in rows} == {"released"}
    rate = Fraction(TWINS[discount][0])
    counts = [rate**j if discount == "exponential" else 1 / (1 + rate * j) for j in range(days + 30)]
    spent = [Fraction(row.loss, 10**9) for row in rows]
    for t in range(days + 30):
        assert sum(counts[t - k] * spent[k] for k in range(min(t + 1, days))) <= 1
    # the noise was drawn at these losses: scale = sensitivity/loss
    assert all(
        row.scale == pytest.approx(row.sensitivity / float(loss), rel=1e-6)
        for row, loss in zip(rows, spent, strict=True)
    )
    release = open_release(folder / "out" / "ausgrid" / "release")
    release.verify()
    figures = {figure["name"]: Fraction(figure["epsilon"]) for figure in release.statement["figures"]}
    assert figures["total"] == sum(spent)
    assert Fraction(99, 100) * max(spent) <= figures[f"discounted sum ({discount} {TWINS[discount][0]})"] <= 1
    return [float(loss) for loss in spent]


@pytest.mark.parametrize("discount", list(TWINS))
def test_the_shipped_ausgrid_run_file_and_its_twin_release_what_the_schedule_says(tmp_path, monkeypatch, discount):
    losses = year(tmp_path, monkeypatch, discount, homes=6, days=5)
    # the first of 365: r_1 of the closed form (99: 0.01994975); hyperbolic from the convex programme
    assert losses[0] == pytest.approx({"exponential": 0.01994975, "hyperbolic": 0.29471}[discount], abs=1e-5)
    assert losses == sorted(losses, reverse=True)


@pytest.mark.long
@pytest.mark.parametrize("discount", list(TWINS))
def test_a_year_of_three_hundred_homes_has_the_mean_noise_of_the_reference(tmp_path, monkeypatch, discount):
    losses = year(tmp_path, monkeypatch, discount, homes=300, days=365)
    assert sum(1 / loss for loss in losses) / 365 == pytest.approx(TWINS[discount][1], rel=2e-4)


def test_the_plan_sets_the_schedule_beside_the_others_and_says_what_all_days_come_to(tmp_path, monkeypatch, capsys):
    run_file = str(ausgrid(tmp_path, "hyperbolic", homes=6, days=5))
    assert agedp(monkeypatch, "plan", run_file) == 0
    shown = capsys.readouterr().out
    compared = (
        "mean noise scale by schedule over 365 days, one published each day, as a multiple of clamp_kwh, before caps"
    )
    assert f"{compared}: optimal 5.835, renewal 5.857, constant 6.478, paper 16.26, classical 365\n" in shown
    assert "5 releases are due" in shown
    # over five days only the first losses of the year's 365 are spent; both are in the table
    assert "horizon_days = 365, but [schedule] has 5 days: the epsilon of the other 360 days stays unspent; " in shown
    assert agedp(monkeypatch, "plan", run_file, "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert told["mean_noise_by_schedule"]["optimal"] == pytest.approx(5.8354, abs=1e-4)
    noise = {
        one["method"]: one.get("noise_sd_kwh") for one in told["notions"]["offers"] if one["notion"] == "discounted"
    }
    assert noise["hyperbolic 1.0, optimal"] < noise["hyperbolic 1.0, optimal of 365"]


def test_a_run_that_ends_the_series_says_what_it_released_and_then_why_it_stopped(tmp_path, monkeypatch, capsys):
    run_file = ausgrid(tmp_path, "exponential", homes=6, days=5)
    run_file.write_text(run_file.read_text().replace("horizon_days  = 365", "horizon_days = 3"))
    assert agedp(monkeypatch, "plan", str(run_file)) == 0
    assert "horizon_days = 3, but [schedule] has 5 days: the series ends after 3 days\n" in capsys.readouterr().out
    assert agedp(monkeypatch, "run", str(run_file)) == 3
    said = capsys.readouterr()
    assert "3 days released now\n" in said.out
    assert "release folder: " in said.out
    assert said.err == (
        "agedp: 2012-07-04: horizon_days = 3 days are released and the series is over; nothing was drawn\n"
    )
    assert agedp(monkeypatch, "run", str(run_file)) == 3
    again = capsys.readouterr()
    assert again.out == ""
    assert again.err == said.err


@pytest.mark.parametrize("discount", list(TWINS))
def test_plan_and_run_say_how_much_of_the_promised_sum_is_used(tmp_path, monkeypatch, capsys, discount):
    run_file = str(ausgrid(tmp_path, discount, homes=6, days=5))
    assert agedp(monkeypatch, "plan", run_file) == 0
    planned = [line for line in capsys.readouterr().out.splitlines() if " of at most " in line]
    assert agedp(monkeypatch, "run", run_file) == 0
    released = [line for line in capsys.readouterr().out.splitlines() if " of at most " in line]
    rows = Ledger.open(f"sqlite:///{tmp_path}/out/ausgrid/ledger.sqlite").rows()
    rate = Fraction(TWINS[discount][0])
    counts = [rate**j if discount == "exponential" else 1 / (1 + rate * j) for j in range(5)]
    largest = sum(count * row.loss for count, row in zip(counts[::-1], rows, strict=True))
    bound = released[0].removeprefix("Bound of the notion: ")
    assert planned == [f"Bound of the notion after these releases: {bound}"]
    value, _, about = bound.removeprefix("epsilon ").partition(" of at most 1. Scope: ")
    assert Fraction(value) * 10**9 == -(-largest // 1)
    assert f"{discount} discounting" in about
    assert about.endswith("; maximum over days.")


PROMISE = """[promise]
notion = "discounted"
discount = "exponential"
rate = 0.5
epsilon = 1
schedule = "{schedule}"
clock = "{clock}"
max_day_epsilon = 1
epsilon_total = "unlimited"
"""


def promised(folder: Path, *, schedule: str, clock: str, mode: str = "archive", seed: int = 1):
    world = make(folder, seed=seed, mode=mode, model=DECLARED, method="total_variation")
    text = (world.folder / "run.toml").read_text()
    head, _, rest = text.partition("[promise]")
    age = "age_days = 1\n" if mode != "archive" else ""
    promise = PROMISE.format(schedule=schedule, clock=clock) + age
    (world.folder / "run.toml").write_text(head + promise + rest[rest.index("[model]") :])
    return world


@pytest.mark.parametrize("clock", [pytest.param("data-day", marks=pytest.mark.long), "publication-day"])
def test_two_worlds_publish_the_same_bytes(tmp_path: Path, clock: str) -> None:
    one, other = (promised(tmp_path / str(seed), schedule="renewal", clock=clock, seed=seed) for seed in (1, 2))
    runs = [world.run("run", "run.toml", "--json") for world in (one, other)]
    assert [run.returncode for run in runs] == [0, 0], runs[0].stderr
    assert (runs[0].stdout, runs[0].stderr) == (runs[1].stdout, runs[1].stderr)
    assert one.published() == other.published()


@pytest.mark.parametrize(("clock", "counted"), [("data-day", 6), ("publication-day", 2)])
def test_days_published_together_are_discounted_by_data_day_only_and_the_first_line_says_so(
    tmp_path, monkeypatch, clock, counted
):
    world = promised(tmp_path / "world", schedule="paper", clock=clock)
    assert agedp(monkeypatch, "run", str(world.folder / "run.toml")) == 0
    rows = Ledger.open(f"sqlite:///{world.folder}/out/ledger.sqlite").rows()
    # half of epsilon each: on one date two fit, up to the rounding of the first, and the others are skipped
    assert sum(row.loss > 400_000_000 for row in rows) == counted
    statement = json.loads((world.folder / "out" / "release" / "statement.json").read_text())
    first = (world.folder / "out" / "release" / "STATEMENT.md").read_text().splitlines()[2]
    said = {"data-day": "by the day of the data", "publication-day": "by the day of publication"}[clock]
    assert first == f"**{statement['notes'][0]}**"
    assert said in first
    assert "0.5^j" in first


def test_a_rehearsal_publishes_day_by_day_and_both_clocks_then_agree(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    losses = []
    for clock in ("data-day", "publication-day"):
        world = promised(tmp_path / clock, schedule="renewal", clock=clock, mode="rehearsal")
        assert agedp(monkeypatch, "run", str(world.folder / "run.toml")) == 0
        losses.append([row.loss for row in Ledger.open(f"sqlite:///{world.folder}/out/ledger.sqlite").rows()])
    assert losses[0] == losses[1] == pytest.approx([1e9, *[5e8] * 5], abs=4)
