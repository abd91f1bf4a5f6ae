"""The notion `temporal` through the command: the shipped run file, refusals, the report."""

from __future__ import annotations

import json
import re
from datetime import date, timedelta
from pathlib import Path

import numpy as np
import pytest

from agedp.release_folder.release_folder import open_release
from agedp_data.accounting.higher_order import higher_order_recursion
from agedp_data.datasets.synthetic import write_ausgrid, write_roster
from agedp_data.ledger import Ledger, ReleaseRecord
from tests.agedp.reports.html import Page, faults_of
from tests.agedp_flows.worlds import DECLARED, KERNEL, STICKY, World, make, temporal_world
from tests.command import CommandFolder

EXAMPLE = Path(__file__).parents[2] / "docs" / "examples" / "ausgrid-full.toml"
FIRST, CALIBRATED = date(2012, 7, 1), date(2011, 7, 1)


def rows_of(ledger: Path) -> tuple[ReleaseRecord, ...]:
    with Ledger.open(f"sqlite:///{ledger}") as opened:
        return opened.rows()


def leakage_about(losses: list[float]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return backward, forward and total temporal leakage about each day, by the kernel itself."""
    leakage = higher_order_recursion(np.array(STICKY), max_days=7).leakage_totals(losses)
    return leakage.backward, leakage.forward, leakage.total


def statement_of(world: World) -> tuple[dict, dict]:
    """Return the statement of a world's release, and its bounds by name."""
    statement = json.loads((world.folder / "out" / "release" / "statement.json").read_text())
    return statement, {bound["name"]: bound for bound in statement["figures"]}


def test_the_shipped_run_file_is_calibrated_and_released_within_alpha(tmp_path):
    households, days = 5, 6
    text = EXAMPLE.read_text("utf-8").replace("2013-06-30", str(FIRST + timedelta(days=days - 1)))
    # The second statistic comes later: its share goes to the first.
    text = re.sub(r"\[series\.daily_distribution\].*?(?=\[promise\])", "", text, flags=re.DOTALL)
    text = text.replace("share        = 0.8\n", "").replace("min_households = 100", f"min_households = {households}")
    (tmp_path / "ausgrid").mkdir()
    made = write_ausgrid(
        tmp_path / "ausgrid", households=households, first_day=CALIBRATED, days=(FIRST - CALIBRATED).days + days,
        seed=3, quirks=False,
    )  # fmt: skip
    write_roster(tmp_path / "ausgrid-roster.csv", household_ids=made.household_ids, first_day=CALIBRATED)
    (tmp_path / "run.toml").write_text(text)
    site = CommandFolder(tmp_path)
    site.succeed("calibrate", "run.toml")
    assert "6 releases are due" in site.succeed("plan", "run.toml")
    site.succeed("run", "run.toml")
    rows = rows_of(tmp_path / "out/ausgrid/ledger.sqlite")
    assert [row.state for row in rows] == ["released"] * days
    assert all(row.loss >= 2_000_000_000 // 365 for row in rows)  # never less than alpha shared out
    release = open_release(tmp_path / "out" / "ausgrid" / "release")
    release.verify()
    bounds = {bound["name"]: bound for bound in release.statement["figures"]}
    bound = bounds["temporal leakage"]
    assert max(row.loss for row in rows) / 1e9 <= float(bound["epsilon"]) <= sum(row.loss for row in rows) / 1e9
    assert (bound["limit"], bound["kind"]) == ("2", "conditional")
    assert "risk" in bounds
    # A model that was made before it looked ahead does not do.
    public = tmp_path / "out" / "ausgrid" / "confidential" / "model-2011" / "public.json"
    stored = json.loads(public.read_text())
    del stored["envelope"]["forward"]
    public.chmod(0o600)
    public.write_text(json.dumps(stored, sort_keys=True, separators=(",", ":")))
    public.with_name("public.sha256").unlink()  # as a model of that time, which had none
    line = site.refuse("run", "run.toml", status=2)
    assert 'has no forward leakage, which notion = "temporal" needs; calibrate again' in line


def test_what_is_released_keeps_alpha_by_the_kernel_itself(tmp_path):
    """And the report shows each side."""
    world = temporal_world(tmp_path / "world")
    world.succeed("run", "run.toml")
    losses = [row.loss / 1e9 for row in rows_of(world.folder / "out/ledger.sqlite")]
    assert len(losses) == 6
    backward, forward, total = leakage_about(losses)
    assert 0.9 * 1.5 < total.max() <= 1.5
    statement, bounds = statement_of(world)
    assert total.max() <= float(bounds["temporal leakage"]["epsilon"]) <= 1.5
    release = world.folder / "out" / "release"
    first = (release / "STATEMENT.md").read_text().splitlines()[2]
    assert first == f"**{statement['notes'][0]}**"
    assert "those still to come as well, say about any one day of a household beyond epsilon 1.5" in first
    html = (release / "report.html").read_text()
    assert faults_of(html) == []
    assert "alpha of the promise, 1.5" in Page(html).text
    *_, row = re.findall(r'<tr><th scope="row"[^>]*>2013-02</th>((?:<td>[^<]*</td>){4})</tr>', html)
    shown = [float(cell) for cell in re.findall(r"<td>([^<]*)</td>", row)]
    np.testing.assert_allclose(shown, [total.max(), backward.max(), forward.max(), max(losses)], rtol=0.1)


@pytest.mark.parametrize(
    ("horizon", "budget", "message"),
    [
        ('"unlimited"', "supremum", 'name horizon_days with budget = "best"'),
        ("6", "exact", '"even" leaves each of 6 days epsilon 0.25'),
    ],
)
def test_days_too_much_alike_are_refused_before_the_draw(tmp_path, horizon, budget, message):
    world = temporal_world(tmp_path / "world", horizon=horizon, budget=budget)
    (world.folder / "kernel.csv").write_text("0,1,0\n0,0,1\n1,0,0\n")
    planned = world.agedp("plan", "run.toml")
    assert planned.status in (0, 3)
    assert message in planned.out + planned.err
    ran = world.agedp("run", "run.toml")
    assert (ran.status, message in ran.err) == (3, True)
    ledger = world.folder / "out" / "ledger.sqlite"
    assert not ledger.exists() or rows_of(ledger) == ()


@pytest.mark.parametrize(("model", "has_leakage"), [(KERNEL, True), (DECLARED, False)])
def test_other_promises_have_temporal_leakage_if_the_model_looks_ahead(tmp_path, model, has_leakage):
    world = make(tmp_path / "world", seed=1, mode="archive", model=model, method="total_variation")
    assert world.agedp("run", "run.toml").status == 3  # its total is spent after five days
    _, bounds = statement_of(world)
    assert ("temporal leakage" in bounds) == has_leakage
    html = (world.folder / "out" / "release" / "report.html").read_text()
    assert ("Temporal leakage about each day from all releases" in html) == has_leakage
    if has_leakage:
        exact = leakage_about([0.5] * 5)[2].max()
        assert exact <= float(bounds["temporal leakage"]["epsilon"]) <= exact * 1.1
        assert bounds["temporal leakage"]["limit"] == ""
