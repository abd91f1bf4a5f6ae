"""The notion `temporal` through the command: the shipped run file, two worlds, refusals, the report."""

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
from agedp_data.ledger import Ledger
from tests.agedp.reports.html import Page, faults_of
from tests.agedp_flows.in_process import agedp
from tests.agedp_flows.worlds import DECLARED, World, make

EXAMPLE = Path(__file__).parents[2] / "docs" / "examples" / "ausgrid-full.toml"
FIRST, CALIBRATED = date(2012, 7, 1), date(2011, 7, 1)
STICKY = [[0.8, 0.2, 0.0], [0.1, 0.8, 0.1], [0.05, 0.15, 0.8]]
KERNEL = 'source = "declared"\nkernel = "kernel.csv"\nbasis = "made up"\nassume = "markov"\nstep = "day"\n'
PROMISE = """[promise]
notion = "temporal"
alpha = {alpha}
horizon_days = {horizon}
budget = "{budget}"
max_day_epsilon = 1
epsilon_total = 30
"""


def promised(folder: Path, *, alpha: str = "1.5", horizon: str = "6", budget: str = "exact", seed: int = 1) -> World:
    """A world of six days in an archive under a declared kernel."""
    world = make(folder, seed=seed, mode="archive", model=KERNEL, method="tight")
    text = (folder / "run.toml").read_text()
    head, _, rest = text.partition("[promise]")
    promise = PROMISE.format(alpha=alpha, horizon=horizon, budget=budget)
    (folder / "run.toml").write_text(head + promise + rest[rest.index("[model]") :])
    (folder / "kernel.csv").write_text("\n".join(",".join(map(str, row)) for row in STICKY) + "\n")
    return world


def said_about(losses: list[float]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """What releases up to each day, from it on, and all of them say about it, by the kernel itself."""
    leak = higher_order_recursion(np.array(STICKY), max_days=7).leakage_totals(losses)
    return leak.backward, leak.forward, leak.total


def test_the_shipped_run_file_is_calibrated_and_released_within_alpha(tmp_path, monkeypatch, capsys):
    homes, days = 5, 6
    text = EXAMPLE.read_text("utf-8").replace("2013-06-30", str(FIRST + timedelta(days=days - 1)))
    # The second statistic comes later: its share goes to the first.
    text = re.sub(r"\[series\.daily_distribution\].*?(?=\[promise\])", "", text, flags=re.DOTALL)
    text = text.replace("share        = 0.8\n", "").replace("min_households = 100", f"min_households = {homes}")
    (tmp_path / "ausgrid").mkdir()
    span = (FIRST - CALIBRATED).days + days
    made = write_ausgrid(tmp_path / "ausgrid", households=homes, first_day=CALIBRATED, days=span, seed=3, quirks=False)
    write_roster(tmp_path / "ausgrid-roster.csv", household_ids=made.household_ids, first_day=CALIBRATED)
    run_file = tmp_path / "ausgrid-full.toml"
    run_file.write_text(text)
    assert agedp(monkeypatch, "calibrate", str(run_file)) == 0
    assert agedp(monkeypatch, "plan", str(run_file)) == 0
    assert "6 releases are due" in capsys.readouterr().out
    assert agedp(monkeypatch, "run", str(run_file)) == 0
    rows = Ledger.open(f"sqlite:///{tmp_path}/out/ausgrid/ledger.sqlite").rows()
    assert [row.state for row in rows] == ["released"] * days
    assert all(row.loss >= 2_000_000_000 // 365 for row in rows)  # never less than alpha shared out
    release = open_release(tmp_path / "out" / "ausgrid" / "release")
    release.verify()
    figures = {figure["name"]: figure for figure in release.statement["figures"]}
    said = figures["temporal leakage"]
    assert max(row.loss for row in rows) / 1e9 <= float(said["epsilon"]) <= sum(row.loss for row in rows) / 1e9
    assert (said["limit"], said["kind"]) == ("2", "conditional")
    assert "risk" in figures
    # A model that was made before it looked ahead does not do.
    public = tmp_path / "out" / "ausgrid" / "confidential" / "model-2011" / "public.json"
    kept = json.loads(public.read_text())
    del kept["envelope"]["forward"]
    public.chmod(0o600)
    public.write_text(json.dumps(kept, sort_keys=True, separators=(",", ":")))
    public.with_name("public.sha256").unlink()  # as a model of that time, which had none
    capsys.readouterr()
    assert agedp(monkeypatch, "run", str(run_file)) == 2
    assert 'has no forward leakage, which notion = "temporal" needs; calibrate again' in capsys.readouterr().err


def test_what_is_released_keeps_alpha_by_the_kernel_itself_and_the_report_shows_each_side(tmp_path, monkeypatch):
    world = promised(tmp_path / "world")
    assert agedp(monkeypatch, "run", str(world.folder / "run.toml")) == 0
    rows = Ledger.open(f"sqlite:///{world.folder}/out/ledger.sqlite").rows()
    losses = [row.loss / 1e9 for row in rows]
    assert len(losses) == 6
    behind, ahead, total = said_about(losses)
    assert 0.9 * 1.5 < total.max() <= 1.5
    release = world.folder / "out" / "release"
    statement = json.loads((release / "statement.json").read_text())
    said = next(one for one in statement["figures"] if one["name"] == "temporal leakage")
    assert total.max() <= float(said["epsilon"]) <= 1.5
    first = (release / "STATEMENT.md").read_text().splitlines()[2]
    assert first == f"**{statement['notes'][0]}**"
    assert "those still to come as well, say about any one day of a household beyond epsilon 1.5" in first
    html = (release / "report.html").read_text()
    assert faults_of(html) == []
    page = Page(html).text
    assert "alpha of the promise, 1.5" in page
    *_, row = re.findall(r'<tr><th scope="row"[^>]*>2013-02</th>((?:<td>[^<]*</td>){4})</tr>', html)
    shown = [float(cell) for cell in re.findall(r"<td>([^<]*)</td>", row)]
    np.testing.assert_allclose(shown, [total.max(), behind.max(), ahead.max(), max(losses)], rtol=0.1)


def test_two_worlds_publish_the_same_bytes(tmp_path: Path) -> None:
    one, other = (promised(tmp_path / str(seed), seed=seed, budget="best") for seed in (1, 2))
    runs = [world.run("run", "run.toml", "--json") for world in (one, other)]
    assert [run.returncode for run in runs] == [0, 0], runs[0].stderr
    assert (runs[0].stdout, runs[0].stderr) == (runs[1].stdout, runs[1].stderr)
    assert one.published() == other.published()


@pytest.mark.parametrize(
    ("horizon", "budget", "says"),
    [
        ('"unlimited"', "supremum", 'name horizon_days with budget = "best"'),
        ("6", "exact", '"even" leaves each of 6 days epsilon 0.25'),
    ],
)
def test_days_too_much_alike_are_refused_before_anything_is_drawn(tmp_path, monkeypatch, capsys, horizon, budget, says):
    world = promised(tmp_path / "world", horizon=horizon, budget=budget)
    (world.folder / "kernel.csv").write_text("0,1,0\n0,0,1\n1,0,0\n")
    assert agedp(monkeypatch, "plan", str(world.folder / "run.toml")) in (0, 3)
    shown = capsys.readouterr()
    assert says in shown.out + shown.err
    assert agedp(monkeypatch, "run", str(world.folder / "run.toml")) == 3
    assert says in capsys.readouterr().err
    ledger = world.folder / "out" / "ledger.sqlite"
    assert not ledger.exists() or Ledger.open(f"sqlite:///{ledger}").rows() == ()


@pytest.mark.parametrize(("model", "there"), [(KERNEL, True), (DECLARED, False)])
def test_other_promises_say_what_all_releases_tell_about_a_day_if_the_model_looks_ahead(
    tmp_path, monkeypatch, model, there
):
    world = make(tmp_path / "world", seed=1, mode="archive", model=model, method="total_variation")
    (world.folder / "kernel.csv").write_text("\n".join(",".join(map(str, row)) for row in STICKY) + "\n")
    assert agedp(monkeypatch, "run", str(world.folder / "run.toml")) == 3  # its total is spent after five days
    statement = json.loads((world.folder / "out" / "release" / "statement.json").read_text())
    figures = {figure["name"]: figure for figure in statement["figures"]}
    assert ("temporal leakage" in figures) == there
    html = (world.folder / "out" / "release" / "report.html").read_text()
    assert ("Temporal leakage about each day from all releases" in html) == there
    if there:
        said = figures["temporal leakage"]
        exact = said_about([0.5] * 5)[2].max()
        assert exact <= float(said["epsilon"]) <= exact * 1.1
        assert said["limit"] == ""
