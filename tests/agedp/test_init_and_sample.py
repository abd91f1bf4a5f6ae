"""First steps: a run file that asks for its decisions, and synthetic households to try everything on."""

from __future__ import annotations

import csv
import re
import stat
from datetime import date

import pytest

from agedp.pipeline import sanitise
from agedp.setup.init_run_file import init
from agedp.setup.run_file_options import toml_of
from agedp.setup.sample import sample
from agedp_data.config import load
from agedp_data.datasets.synthetic import write_ausgrid, write_london
from agedp_data.errors import InputError, RunFileError
from agedp_data.roster import read_roster

WRITERS = {"london": write_london, "ausgrid": write_ausgrid}
FIRST = date(2013, 1, 1)


@pytest.fixture
def london(tmp_path):
    """Four London households with three days of readings, in the folder in."""
    return write_london(tmp_path / "in", households=4, first_day=FIRST, days=3, seed=1)


def decided(path):
    """Take every proposal of a run file, and accept that so few households can publish nothing of use."""
    text = path.read_text().replace("# decide: ", "")
    path.write_text(text.replace("[promise]\n", '[promise]\naccept = ["useless", "total"]\n'))
    return path


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


@pytest.mark.parametrize(("last_day", "end"), [("2013-01-03", "2013-01-03"), ("2013-12-31", "")])
def test_a_rehearsal_beyond_the_files_has_households(tmp_path, london, last_day, end):
    keys = toml_of({"mode": "rehearsal", "last_day": last_day})
    found = init([str(tmp_path / "in")], folder=tmp_path, options=keys)
    assert max(line.rpartition(",")[2] for line in found.roster.read_text().splitlines()[2:]) == end


def test_a_fresh_run_file_asks_for_each_decision_in_one_line(tmp_path, london):
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


@pytest.mark.parametrize(("dataset", "place"), [("london", "in"), ("ausgrid", "in"), ("london", ".")])
def test_with_its_decisions_made_the_run_file_runs(tmp_path, dataset, place):
    """Also where roster and readings lie in one folder: the roster is not read as readings."""
    WRITERS[dataset](tmp_path / place, households=4, first_day=FIRST, days=3, seed=1)
    initial = init([str(tmp_path / place / "*.csv")], folder=tmp_path, options=toml_of({"min_households": "2"}))
    release = sanitise(decided(initial.run_file))
    release.verify()
    assert release.statement["days"]["released"] == 3
    assert "derived from the input files" in " ".join(release.statement["notes"])


def test_fewer_households_than_ten_are_never_proposed(tmp_path, london):
    assert len(london.household_ids) < 10
    proposed = init([str(tmp_path / "in")], folder=tmp_path).run_file.read_text()
    assert re.search(r"^(# decide: )?min_households = 10\b", proposed, re.M)


def test_nothing_is_ever_written_over(tmp_path, london):
    made = init([str(tmp_path / "in")], folder=tmp_path)
    run_file, roster = made.run_file.read_text(), made.roster.read_text()
    made.run_file.unlink()  # as a call leaves it that is killed after the roster
    assert init([str(tmp_path / "in")], folder=tmp_path).run_file.read_text() == run_file
    corrected = roster.rpartition("\n")[0].rpartition("\n")[0] + "\n"
    for path, text in ((made.roster, "mine"), (made.roster, corrected), (made.run_file, "mine")):
        made.run_file.unlink(missing_ok=True)
        made.roster.unlink(missing_ok=True)
        path.write_text(text)
        with pytest.raises(InputError, match="exists already"):
            init([str(tmp_path / "in")], folder=tmp_path)
        assert path.read_text() == text
        assert made.run_file.exists() + made.roster.exists() == 1


def test_an_empty_file_is_named_whatever_its_dataset(tmp_path):
    (tmp_path / "empty.csv").write_text("")
    for keys in ({}, toml_of({"dataset": "long", "unit": "kWh"})):
        with pytest.raises(InputError, match=r"^the input files are empty. Deliver the readings") as caught:
            init([str(tmp_path / "empty.csv")], folder=tmp_path, options=keys)
        assert "empty.csv: the input files are empty" in caught.value.private


def test_groups_need_a_roster_that_has_their_column(tmp_path, london):
    given = toml_of({"by": "tariff", "min_households": "2"})
    with pytest.raises(RunFileError, match=r"^--by tariff: roster.csv does not exist, and no group can be read off"):
        init([str(tmp_path / "in")], folder=tmp_path, options=given)
    init([str(tmp_path / "in")], folder=tmp_path).run_file.unlink()
    with pytest.raises(RunFileError, match=r"^--by tariff: roster.csv has no such column"):
        init([str(tmp_path / "in")], folder=tmp_path, options=given)
    rows = "".join(f"{home},2013-01-01,,T{number % 2}\n" for number, home in enumerate(london.household_ids))
    (tmp_path / "roster.csv").write_text("household_id,from,to,tariff\n" + rows)
    path = init([str(tmp_path / "in")], folder=tmp_path, options=given).run_file
    assert (tmp_path / "roster.csv").read_text().endswith(rows)
    assert set(sanitise(decided(path)).table()["group"]) == {"T0", "T1"}


@pytest.mark.parametrize("dataset", WRITERS)
def test_a_sample_runs_and_the_same_again_leaves_it_alone(tmp_path, dataset):
    def contents():
        return {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in folder.rglob("*") if path.is_file()}

    folder, asked = tmp_path / "deep" / "sample", {"households": 4, "days": 4, "seed": 1}
    assert "4 synthetic households, 4 days" in sample(dataset, folder, **asked).message
    expected = {"input", f"{dataset}.toml", "roster.csv"} | ({"forgetting.csv"} if dataset == "london" else set())
    assert {path.name for path in folder.iterdir()} == expected
    before = contents()
    assert "exists already" in sample(dataset, folder, **asked).message
    for other in ({"households": 5}, {"days": 3}, {"seed": 2}):
        with pytest.raises(InputError, match="has other content"):
            sample(dataset, folder, **(asked | other))
    assert contents() == before
    assert list(folder.parent.iterdir()) == [folder]
    release = sanitise(folder / f"{dataset}.toml")
    release.verify()
    assert release.statement["days"]["released"] == 4
