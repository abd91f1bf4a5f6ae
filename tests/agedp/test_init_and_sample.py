"""First steps: a run file that asks for its decisions, and synthetic households to try everything on."""

from __future__ import annotations

import csv
import json
import stat
import tomllib
from datetime import date

import jsonschema
import pytest

from agedp.pipeline import sanitise
from agedp.setup import sample as samples
from agedp.setup.init_run_file import init
from agedp.setup.run_file_options import toml_of
from agedp.setup.sample import sample
from agedp.stages.publish import open_release
from agedp_data.config import load
from agedp_data.datasets.synthetic import write_ausgrid, write_london
from agedp_data.errors import AgedpError, InputError, RunFileError
from agedp_data.roster import read_roster

WRITERS = {"london": write_london, "ausgrid": write_ausgrid}


@pytest.mark.parametrize("dataset", WRITERS)
def test_the_roster_spans_each_households_first_to_last_reading(tmp_path, dataset):
    made = WRITERS[dataset](tmp_path / "in", households=8, first_day=date(2012, 12, 20), days=20, seed=6)
    found = init([str(tmp_path / "in")], folder=tmp_path)
    spans = {}
    for home, day in made.truth():
        first, last = spans.get(home, (day, day))
        spans[home] = (min(first, day), max(last, day))
    with found.roster.open(newline="") as stream:
        read_off, header, *rows = csv.reader(stream)
    assert read_off[0].startswith("# read off the input files")
    assert header == ["household_id", "from", "to"]
    assert rows == [[home, *(day.isoformat() for day in spans[home])] for home in sorted(spans)]
    assert found.households == len(spans)
    assert read_roster(found.roster).read_off
    assert stat.S_IMODE(found.roster.stat().st_mode) == 0o600


def test_a_fresh_run_file_asks_for_each_decision_in_one_line(tmp_path):
    write_london(tmp_path / "in", households=4, first_day=date(2013, 1, 1), days=3, seed=1)
    path = init([str(tmp_path / "in" / "*.csv")], folder=tmp_path).run_file
    asked = set()
    while "# decide: " in path.read_text():
        with pytest.raises(RunFileError, match="is missing and has no default") as caught:
            load(path)
        assert "\n" not in str(caught.value)
        key = str(caught.value).split(": ")[1].split()[-1]
        asked.add(key)
        path.write_text(path.read_text().replace(f"# decide: {key} ", f"{key} "))
    assert asked == {"min_households", "clamp_kwh", "epsilon_per_day", "max_day_epsilon", "epsilon_total"}
    load(path)


def test_the_run_file_names_the_schema_beside_it_and_an_existing_schema_is_kept(tmp_path):
    write_london(tmp_path / "in", households=4, first_day=date(2013, 1, 1), days=3, seed=1)
    path = init([str(tmp_path / "in")], folder=tmp_path).run_file
    directive, schema = path.read_text().splitlines()[0], tmp_path / "run.schema.json"
    assert directive == f"#:schema ./{schema.name}"
    raw = tomllib.loads(path.read_text().replace("# decide: ", ""))
    jsonschema.validate(json.loads(json.dumps(raw, default=str)), json.loads(schema.read_text()))
    path.unlink()
    schema.write_text("mine")
    init([str(tmp_path / "in")], folder=tmp_path)
    assert schema.read_text() == "mine"


@pytest.mark.parametrize("dataset", WRITERS)
def test_with_its_decisions_made_the_run_file_runs_as_it_stands(tmp_path, dataset):
    WRITERS[dataset](tmp_path / "in", households=4, first_day=date(2013, 1, 1), days=3, seed=1)
    path = init([str(tmp_path / "in" / "*.csv")], folder=tmp_path).run_file
    text = path.read_text()
    path.write_text(text.replace("# decide: ", ""))
    release = sanitise(path)
    release.verify()
    assert release.statement["days"]["released"] == 3
    assert "read off the input files" in " ".join(release.statement["notes"])


def test_a_home_that_leaves_keeps_no_later_day_from_being_released_under_the_figures_proposed(tmp_path):
    made = write_london(tmp_path / "in", households=5, first_day=date(2013, 1, 1), days=4, seed=1)
    leaver, last = made.household_ids[0], date(2013, 1, 2)
    for path in (tmp_path / "in").glob("*.csv"):
        head, *rows = path.read_text().splitlines(keepends=True)
        stays = [row for row in rows if not (row.startswith(leaver) and row.split(",")[2][:10] > f"{last}")]
        path.write_text("".join([head, *stays]))
    path = init([str(tmp_path / "in")], folder=tmp_path).run_file
    assert f"{leaver},2013-01-01,{last}" in (tmp_path / "roster.csv").read_text()
    path.write_text(path.read_text().replace("# decide: ", ""))
    homes = sanitise(path).table()["households"]
    assert (len(homes), homes.iloc[0], homes.iloc[-1] < 5) == (4, 5, True)


@pytest.mark.parametrize("pattern", ["", "*.csv"])
def test_a_roster_written_beside_the_readings_is_not_read_as_one_of_them(tmp_path, pattern):
    write_london(tmp_path, households=4, first_day=date(2013, 1, 1), days=3, seed=1)
    path = init([str(tmp_path / pattern)], folder=tmp_path).run_file
    assert len(list(tmp_path.glob("*.csv"))) > len(list(tmp_path.glob("LCL*.csv")))
    path.write_text(path.read_text().replace("# decide: ", ""))
    assert sanitise(path).statement["days"]["released"] == 3


def test_nothing_is_ever_written_over(tmp_path):
    write_london(tmp_path / "in", households=4, first_day=date(2013, 1, 1), days=3, seed=1)
    made = init([str(tmp_path / "in")], folder=tmp_path)
    for path in (made.run_file, made.roster):
        other = made.roster if path == made.run_file else made.run_file
        other.unlink(missing_ok=True)
        path.write_text("mine")
        with pytest.raises(InputError, match="exists already"):
            init([str(tmp_path / "in")], folder=tmp_path)
        assert path.read_text() == "mine"
        assert not other.exists()


def test_a_killed_init_is_taken_up_and_a_corrected_roster_is_kept(tmp_path):
    write_london(tmp_path / "in", households=4, first_day=date(2013, 1, 1), days=3, seed=1)
    made = init([str(tmp_path / "in")], folder=tmp_path)
    run_file, roster = made.run_file.read_text(), made.roster.read_text()
    made.run_file.unlink()  # as a call leaves it that is killed after the roster
    assert init([str(tmp_path / "in")], folder=tmp_path).run_file.read_text() == run_file
    made.run_file.unlink()
    corrected = roster.rpartition("\n")[0].rpartition("\n")[0] + "\n"
    made.roster.write_text(corrected)
    with pytest.raises(InputError, match="exists already"):
        init([str(tmp_path / "in")], folder=tmp_path)
    assert made.roster.read_text() == corrected
    assert not made.run_file.exists()


def test_groups_need_a_roster_that_has_their_column(tmp_path):
    homes = write_london(tmp_path / "in", households=4, first_day=date(2013, 1, 1), days=3, seed=1).household_ids
    given = toml_of({"by": "tariff"})
    with pytest.raises(RunFileError, match=r"^--by tariff: roster.csv does not exist, and no group can be read off"):
        init([str(tmp_path / "in")], folder=tmp_path, options=given)
    init([str(tmp_path / "in")], folder=tmp_path).run_file.unlink()
    with pytest.raises(RunFileError, match=r"^--by tariff: roster.csv has no such column"):
        init([str(tmp_path / "in")], folder=tmp_path, options=given)
    rows = "".join(f"{home},2013-01-01,,T{number % 2}\n" for number, home in enumerate(homes))
    (tmp_path / "roster.csv").write_text("household_id,from,to,tariff\n" + rows)
    path = init([str(tmp_path / "in")], folder=tmp_path, options=given).run_file
    assert (tmp_path / "roster.csv").read_text().endswith(rows)
    path.write_text(path.read_text().replace("# decide: ", ""))
    assert set(sanitise(path).table()["group"]) == {"T0", "T1"}


def test_names_with_quotes_and_backslashes_and_an_empty_first_file_do_no_harm(tmp_path):
    folder = tmp_path / 'o"dd\\name ü'
    folder.mkdir()
    (folder / "0.csv").write_text("")
    write_ausgrid(folder, households=2, first_day=date(2013, 1, 1), days=2, seed=1)
    path = init([str(folder)], folder=tmp_path).run_file
    path.write_text(path.read_text().replace("# decide: ", ""))
    run = load(path)
    assert run.input.dataset == "ausgrid"
    assert run.input.files == (str(folder),)


def test_files_without_readings_make_no_roster(tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.csv").write_text("LCLid,tstp,energy(kWh/hh)\n")
    with pytest.raises(InputError, match="the roster would be empty"):
        init([str(tmp_path / "in")], folder=tmp_path)
    assert not (tmp_path / "run.toml").exists()


def contents(folder):
    return {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("dataset", WRITERS)
def test_the_same_sample_again_leaves_everything_alone_and_another_is_refused(tmp_path, dataset):
    folder = tmp_path / "deep" / "sample"
    asked = {"households": 4, "days": 3, "seed": 1}
    assert "4 synthetic households, 3 days" in sample(dataset, folder, **asked).message
    before = contents(folder)
    assert "exists already" in sample(dataset, folder, **asked).message
    for other in ({"households": 5}, {"days": 4}, {"seed": 2}):
        with pytest.raises(InputError, match="has other content"):
            sample(dataset, folder, **(asked | other))
    with pytest.raises(InputError, match="has other content"):
        sample("ausgrid" if dataset == "london" else "london", folder, **asked)
    assert contents(folder) == before
    assert list(folder.parent.iterdir()) == [folder]


@pytest.mark.parametrize("dataset", WRITERS)
def test_a_sample_runs_as_it_stands(tmp_path, dataset):
    sample(dataset, tmp_path / "s", households=6, days=8, seed=1)
    release = sanitise(tmp_path / "s" / f"{dataset}.toml")
    release.verify()
    assert open_release(tmp_path / "s" / "release").statement["days"]["released"] == 8


def test_a_sample_that_fails_leaves_no_folder(tmp_path, monkeypatch):
    def fails(*_, **__):
        raise KeyboardInterrupt

    with pytest.raises(AgedpError, match="at least 1"):
        sample("london", tmp_path / "s", households=0, days=3, seed=1)
    monkeypatch.setattr(samples, "write_roster", fails)
    with pytest.raises(KeyboardInterrupt):
        sample("london", tmp_path / "s", households=3, days=3, seed=1)
    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_sample_left_is_replaced(tmp_path):
    (tmp_path / ".s.making" / "input").mkdir(parents=True)
    (tmp_path / ".s.making" / "input" / "half.csv").write_text("half")
    sample("london", tmp_path / "s", households=3, days=3, seed=1)
    assert not (tmp_path / "s" / "input" / "half.csv").exists()


def test_an_unknown_sample_names_those_there_are(tmp_path):
    with pytest.raises(InputError, match=r'samples of london and ausgrid, not of "paris"$'):
        sample("paris", tmp_path / "s", households=3, days=3, seed=1)
    with pytest.raises(InputError, match="did you mean 'london'"):
        sample("lonodn", tmp_path / "s", households=3, days=3, seed=1)


def test_a_sample_folder_holds_what_a_run_needs_and_no_more(tmp_path):
    sample("london", tmp_path / "s", households=3, days=3, seed=1)
    names = sorted(path.name for path in (tmp_path / "s").iterdir())
    assert names == ["forgetting.csv", "input", "london.toml", "roster.csv"]
