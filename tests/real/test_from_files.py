"""Real files: from files to a release in one call, with the chains of a calibration of its own."""

from __future__ import annotations

import shutil
from datetime import date

import pytest

from agedp.calibration_pipeline import calibrate
from agedp.one_off import release_files
from agedp.setup.init_run_file import init
from agedp.setup.run_file_options import toml_of
from agedp.stages.publish import open_release
from tests import minimal

TEMPORAL = {
    "notion": "temporal", "mode": "rehearsal", "age_days": "2", "max_day_epsilon": "1", "clamp_kwh": "50",
    "min_households": "1", "epsilon_total": "400", "alpha": "10", "horizon_days": "400", "budget": "best",
    "assume": "markov", "step": "day", "states": "4", "edges": "quantile", "chain": "homogeneous", "min_visits": "5",
    "confidence": "plug-in", "model_ages": "1,2,7", "publish_envelope": True,
}  # fmt: skip


@pytest.fixture(scope="module")
def extracts(kaggle, real_data, tmp_path_factory):
    """The files of each dataset: ten households of London for three weeks of 2013, and one customer of Ausgrid."""
    folder = tmp_path_factory.mktemp("london")
    for path in sorted(kaggle.glob("*.csv"))[:10]:
        header, *rows = path.read_text().splitlines()
        chosen = [row for row in rows if "2013-01-01" < row.split(",")[1] <= "2013-01-22"]
        (folder / path.name).write_text("\n".join([header, *chosen]) + "\n")
    return {"london": folder, "ausgrid": real_data / "ausgrid" / "ausgrid-2011-2012-customer12.csv"}


@pytest.mark.parametrize(
    ("dataset", "first", "last"),
    [("london", date(2013, 1, 1), date(2013, 1, 21)), ("ausgrid", date(2011, 7, 1), date(2011, 8, 20))],
)
def test_a_release_in_one_call_has_the_chains_of_calibrate(extracts, tmp_path, dataset, first, last):
    files, call = str(extracts[dataset]), tmp_path / "call"
    days = {"first_day": f"{first}", "last_day": f"{last}", "period": f"{first},{last}"}
    done = release_files([files], out=call, options=toml_of({**TEMPORAL, **days}))
    release = open_release(call)
    release.verify()
    assert release.statement["days"]["released"] == (last - first).days + 1
    text = minimal.run_file(
        input={"dataset": dataset, "files": [files]},
        population={"min_households": 1},
        schedule={"first_day": first, "last_day": last},
        promise={"notion": "temporal", "epsilon_per_day": None, "alpha": 10, "horizon_days": 400, "budget": "best",
                 "max_day_epsilon": 1, "epsilon_total": 400},
        model={"source": "estimated", "file": "model", "assume": "markov", "period": [first, last], "step": "day",
               "states": 4, "edges": "quantile", "chain": "homogeneous", "min_visits": 5, "confidence": "plug-in",
               "ages_days": [1, 2, 7], "publish": "envelope"},
    )  # fmt: skip
    (tmp_path / "run.toml").write_text(text)
    shutil.copy(tmp_path / "call-confidential" / "roster.csv", tmp_path)
    assert calibrate(tmp_path / "run.toml").model.id == done.run.session.model.id
    made, expected = tmp_path / "call-confidential" / "model", tmp_path / "model"
    contents = [
        {path.name: path.read_bytes() for path in folder.rglob("*") if path.is_file()} for folder in (made, expected)
    ]
    assert contents[0] == contents[1]


def test_a_real_year_that_was_cut_out_decides_no_timestamp(kaggle, tmp_path):
    _, *rows = (kaggle / "MAC000002.csv").read_text().splitlines()
    (tmp_path / "m.csv").write_text("\n".join(["meter,when,energy_kwh", *rows]) + "\n")
    made = init([str(tmp_path / "m.csv")], folder=tmp_path, options=toml_of({"zone": "GMT", "day_zone": "GMT"}))
    lines = {line.key: line for line in made.draft.tables["input.columns"]}
    assert {key: line.toml.strip('"') for key, line in lines.items() if line.decided} == {
        "household": "meter", "time": "when", "time_format": "iso", "energy": "energy_kwh", "unit": "kWh",
        "zone": "GMT", "day_zone": "GMT",
    }  # fmt: skip
    assert (made.facts.first.year, made.facts.last) == (2013, date(2013, 12, 31))
