"""`--protect SPAN` or `--notion NOTION`, with `--epsilon E`: from files to a folder, and refusals with what to do."""

from __future__ import annotations

import json
import tomllib
from datetime import date
from pathlib import Path

import pytest

from agedp_data.datasets.synthetic import write_london
from tests.command import agedp

HOMES, DAYS, FIRST = 60, 400, date(2013, 1, 1)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("protection")
    write_london(folder, households=HOMES, first_day=FIRST, days=DAYS, seed=5)
    return folder


@pytest.fixture(scope="module")
def month(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("month")
    write_london(folder, households=HOMES, first_day=FIRST, days=45, seed=5)
    return folder


def written(folder: Path) -> dict[str, dict[str, object]]:
    return tomllib.loads((folder / "run.toml").read_text())


@pytest.mark.parametrize(
    ("options", "promise"),
    [
        pytest.param(
            "--protect day --epsilon 0.5",
            {"notion": "classical", "epsilon_per_day": 0.5, "epsilon_total": "unlimited"},
            marks=pytest.mark.long,
        ),
        pytest.param(
            "--protect week --epsilon 2",
            {"notion": "w-event", "window_days": 7, "epsilon_per_window": 2},
            marks=pytest.mark.long,
        ),
        ("--protect month --epsilon 5 --delta 1e-6", {"notion": "w-event", "window_days": 31, "delta": 0.000001}),
        pytest.param(
            "--protect year --epsilon 10",
            {"notion": "w-event", "window_days": 366, "epsilon_total": "unlimited"},
            marks=pytest.mark.long,
        ),
        pytest.param(
            "--protect all --epsilon 10", {"notion": "classical", "epsilon_total": 10}, marks=pytest.mark.long
        ),
        ("--protect month --epsilon 5 --mode live", {"notion": "w-event", "window_days": 31, "age_days": 2}),
    ],
)
def test_two_answers_decide_a_run_file(files, tmp_path, options, promise):
    ended = agedp("init", files, "--in", tmp_path, "--json", *options.split())
    assert ended.status == 0, ended.err
    assert json.loads(ended.out)["to_decide"] == []
    run = written(tmp_path)
    assert promise.items() <= run["promise"].items()
    assert run["population"]["min_households"] == HOMES // 2
    lines = (tmp_path / "run.toml").read_text().partition("[promise]")[2].splitlines()
    assert all("#" in line for line in lines if "=" in line)  # each key has its reason
    planned = agedp("plan", tmp_path / "run.toml", "--json")
    assert planned.status == 0
    assert json.loads(planned.out)["refused"] == ""


@pytest.mark.parametrize(
    "notion", ["age-dependent", *(pytest.param(name, marks=pytest.mark.long) for name in ("classical", "discounted"))]
)
def test_accepted_proposals_are_refused_with_a_row_that_works(month, tmp_path, notion):
    agedp("init", month, "--in", tmp_path, "--quiet", "--notion", notion)
    run_file = tmp_path / "run.toml"
    run_file.write_text(run_file.read_text().replace("# decide: ", ""))
    if notion == "age-dependent":
        assert agedp("calibrate", run_file, "--quiet").status == 0
    ended = agedp("run", run_file, "--quiet")
    assert (ended.status, not list(tmp_path.glob("out/release/*"))) == (3, True), ended.err
    assert "Of use is `" in ended.err
    options = ended.err.partition("Of use is `")[2].partition("`")[0]
    ended = agedp("sanitise", month, "--out", tmp_path / "row", *options.split())
    assert (ended.status, "Verdict before the first release: " in ended.err) == (0, True), ended.err
    assert "of no use" not in ended.err


@pytest.mark.parametrize(
    ("options", "promise"),
    [
        pytest.param(
            "discounted --epsilon 3 --discount exponential --rate .9",
            {"epsilon": 3, "schedule": "optimal"},
            marks=pytest.mark.long,
        ),
        pytest.param(
            "discounted --epsilon 3 --discount hyperbolic --rate 1 --mode live",
            {"schedule": "renewal"},
            marks=pytest.mark.long,
        ),
        pytest.param(
            "temporal --epsilon 3 --kernel {}/kernel.csv --basis b",
            {"alpha": 3, "horizon_days": 45, "budget": "best"},
            marks=pytest.mark.long,
        ),
        (
            "temporal --epsilon 3 --kernel {}/kernel.csv --basis b --mode live --max-day-epsilon 2",
            {"horizon_days": "unlimited", "budget": "supremum", "max_day_epsilon": 2},
        ),
        pytest.param(
            "age-dependent --epsilon 3 --kernel {}/kernel.csv --basis b",
            {"epsilon_per_day": 3, "method": "tight"},
            marks=pytest.mark.long,
        ),
        pytest.param(
            "w-event --epsilon 3 --window-days 9", {"epsilon_per_window": 3, "window_days": 9}, marks=pytest.mark.long
        ),
        ("neighbourhood --epsilon 3 --window-days 9 --delta-kwh 2", {"epsilon_per_window": 3, "delta_kwh": 2}),
    ],
)
def test_the_epsilon_of_a_notion_decides_a_run_file(month, tmp_path, options, promise):
    (tmp_path / "kernel.csv").write_text("0.6,0.4\n0.4,0.6\n")
    ended = agedp("init", month, "--in", tmp_path, "--json", "--notion", *options.format(tmp_path).split())
    assert ended.status == 0, ended.err
    assert json.loads(ended.out)["to_decide"] == []
    run = written(tmp_path)
    assert ({"max_day_epsilon": 3, "epsilon_total": "unlimited"} | promise).items() <= run["promise"].items()
    assert "--epsilon 3: " in (tmp_path / "run.toml").read_text()
    assert "live" in options or agedp("plan", tmp_path / "run.toml", "--json").status == 0


@pytest.mark.parametrize(
    ("options", "to_decide"),
    [
        ("discounted", ["[promise] discount", "[promise] rate"]),
        pytest.param("w-event", ["[promise] window_days"], marks=pytest.mark.long),
        pytest.param(
            "temporal", ["[model] step", "[model] publish", "[model] accept_unverified_model"], marks=pytest.mark.long
        ),
        pytest.param("temporal --kernel kernel.csv", ["[model] basis"], marks=pytest.mark.long),
        ("age-dependent --step day --selection-epsilon 1", ["[model] coverage", "[model] failure_probability"]),
    ],
)
def test_no_other_figure_of_privacy_follows_from_an_epsilon(month, tmp_path, monkeypatch, options, to_decide):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "kernel.csv").write_text("0.6,0.4\n0.4,0.6\n")
    ended = agedp("init", month, "--json", "--notion", *options.split(), "--epsilon", "1")
    assert ended.status == 0, ended.err
    assert json.loads(ended.out)["to_decide"] == to_decide
    ended = agedp("sanitise", month, "--out", "folder", "--notion", *options.split(), "--epsilon", "1")
    assert (ended.status, "Also give --" in ended.err) == (2, True), ended.err


def test_one_command_releases_what_is_of_use(files, tmp_path):
    out = tmp_path / "out"
    ended = agedp("sanitise", files, "--out", out, "--protect", "month", "--epsilon", "5", "--quiet")
    assert (ended.status, ended.out, ended.err) == (0, "", "")  # a verdict without a cause for concern
    assert agedp("verify", out, "--quiet").status == 0
    again = agedp("sanitise", files, "--out", out, "--protect", "year", "--epsilon", "5", "--quiet")
    assert (again.status, "--protect was month and is year" in again.err) == (3, True)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--protect fortnight --epsilon 1", "--protect fortnight: must be one of day, week, month, year, all, today"),
        ("--protect week", "--protect week needs --epsilon: the loss about any 7 days of one household"),
        ("--protect week --epsilon none", "--epsilon none: must be a number between 0 and 1,000"),
        ("--protect week --epsilon 1 --delta 2", "--delta 2: must be a number between 0 and 1"),
        ("--protect day --epsilon 1 --delta 1e-6", "protect week, month, year or all with it"),
        ("--protect week --epsilon 1 --notion classical", "writes the promise by itself; remove --notion"),
        ("--protect all --epsilon 1 --mode live", "protect all needs an archive"),
        ("--protect today --epsilon 1", "Give --mode live, or protect month, year or all; --notion age-dependent"),
        ("--epsilon 1", "--epsilon 1: give --protect or --notion, which say what it is about"),
        ("--notion temporal --epsilon 0", "--epsilon 0: must be a number between 0 and 1,000"),
        (
            "--notion temporal --epsilon 1 --alpha 1",
            "--epsilon is --alpha under --notion temporal; give one of the two",
        ),
        ("--notion tempral --epsilon 1", "did you mean 'temporal'?"),
        ("--protect week --epsilon 1 --set layout", "--set layout: write TABLE.KEY=VALUE"),
        ("--protect week --epsilon 1 --set output.titel=x", "did you mean"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(files, tmp_path, options, message):
    ended = agedp("init", files, "--in", tmp_path, "--quiet", *options.split())
    assert (ended.status, ended.out) == (2, "")
    assert message in ended.err
    assert len(ended.err.splitlines()) == 1
    assert not (tmp_path / "run.toml").exists()


def test_rows_of_weeks_or_months_are_said_where_the_promise_chose_them(files, tmp_path):
    asked = ("init", files, "--protect", "month", "--epsilon", "5", "--mode", "live", "--in")
    said, given = agedp(*asked, tmp_path / "chosen").out, agedp(*asked, tmp_path / "given", "--every", "week").out
    [(name, series)] = written(tmp_path / "chosen")["series"].items()
    assert name == {"week": "weekly_mean", "month": "monthly_mean"}[series["every"]]
    sentence = f"A row is about a {series['every']}, the shortest rows that are of use"
    assert [sentence in " ".join(text.split()) for text in (said, given)] == [True, False]


def test_an_undecided_run_file_is_written_anew_and_kept(files, tmp_path):
    assert agedp("init", files, "--in", tmp_path, "--quiet").status == 0
    open_lines = (tmp_path / "run.toml").read_text()
    assert agedp("init", files, "--in", tmp_path, "--quiet", "--protect", "month", "--epsilon", "5").status == 0
    assert (tmp_path / "run-previous.toml").read_text() == open_lines
    decided = agedp("init", files, "--in", tmp_path, "--quiet", "--protect", "all", "--epsilon", "5")
    assert (decided.status, "exists already" in decided.err) == (2, True)


def test_a_live_series_goes_on_with_the_households_of_the_last_week(files, tmp_path):
    agedp("init", files, "--in", tmp_path, "--quiet", "--protect", "month", "--epsilon", "5", "--mode", "live")
    ends = [line.split(",")[2] for line in (tmp_path / "roster.csv").read_text().splitlines()[2:]]
    assert ends.count("") > HOMES / 2
    archive = tmp_path / "archive"
    agedp("init", files, "--in", archive, "--quiet", "--protect", "month", "--epsilon", "5")
    assert "" not in [line.split(",")[2] for line in (archive / "roster.csv").read_text().splitlines()[2:]]


def test_advice_is_the_same_of_files_and_of_a_run_file(files, tmp_path):
    of_files = json.loads(agedp("advise", files, "--json").out)
    agedp("init", files, "--in", tmp_path, "--quiet", "--protect", "month", "--epsilon", "5")
    of_run_file = json.loads(agedp("advise", tmp_path / "run.toml", "--json").out)
    assert (of_files["households"], of_files["days"]) == (HOMES, DAYS)
    options = [row["options"] for row in of_files["rows"]]
    assert options
    assert [row["options"] for row in of_run_file["rows"]] == options
    assert of_run_file["run_file"]["fit_for"].startswith("fit for months")
