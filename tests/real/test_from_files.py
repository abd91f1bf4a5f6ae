"""Real files: from files to a release in one call, and a real file under another header as a long table."""

from __future__ import annotations

import csv
import shutil
from datetime import date

import pytest

from agedp.one_off import release_files
from agedp.pipeline import calibrate
from agedp.setup.init_run_file import init
from agedp.setup.run_file_options import toml_of
from agedp.stages.publish import open_release

DISCOUNTED = {
    "notion": "discounted", "discount": "exponential", "rate": "0.99", "epsilon": "10", "schedule": "constant",
    "clock": "data-day", "mode": "rehearsal", "age_days": "2", "max_day_epsilon": "1", "epsilon_total": "unlimited",
    "clamp_kwh": "50", "min_households": "1",
}  # fmt: skip


def test_a_real_customer_year_is_released_in_one_call(real_data, tmp_path):
    file = real_data / "ausgrid" / "ausgrid-2011-2012-customer12.csv"
    release_files([str(file)], out=tmp_path / "out", options=toml_of(DISCOUNTED))
    release = open_release(tmp_path / "out")
    release.verify()
    assert release.statement["days"]["released"] == 366  # 2012 is a leap year


@pytest.fixture
def renamed(real_data, tmp_path):
    """A real household of London under a header that no publisher wrote; its stamps are ends of half-hours."""
    _, *rows = (real_data / "london" / "kaggle" / "MAC000002.csv").read_text().splitlines()
    (tmp_path / "m.csv").write_text("\n".join(["meter,when,energy_kwh", *rows]) + "\n")
    return [str(tmp_path / "m.csv")]


def test_a_real_year_that_was_cut_out_decides_no_stamp(renamed, tmp_path):
    made = init(renamed, folder=tmp_path, options=toml_of({"zone": "GMT", "day_zone": "GMT"}))
    lines = {line.key: line for line in made.draft.tables["input.columns"]}
    decided = {key: line.toml.strip('"') for key, line in lines.items() if line.decided}
    assert decided == {
        "household": "meter", "time": "when", "time_format": "iso", "energy": "energy_kwh", "unit": "kWh",
        "zone": "GMT", "day_zone": "GMT",
    }  # fmt: skip
    assert (made.facts.first.year, made.facts.last) == (2013, date(2013, 12, 31))


@pytest.fixture(scope="module")
def extracts(real_data, tmp_path_factory):
    """The files of each dataset: 40 households of London for three weeks of 2013, and one customer of Ausgrid."""
    folder = tmp_path_factory.mktemp("london")
    for path in (real_data / "london" / "kaggle").glob("*.csv"):
        with path.open(newline="") as stream, (folder / path.name).open("w", newline="") as extract:
            header, *rows = csv.reader(stream)
            csv.writer(extract).writerows([header, *(row for row in rows if "2013-01-01" < row[1] <= "2013-01-22")])
    return {"london": folder, "ausgrid": real_data / "ausgrid" / "ausgrid-2011-2012-customer12.csv"}


MODEL = {
    "assume": "markov", "step": "day", "states": "4", "edges": "quantile", "chain": "homogeneous",
    "min_visits": "5", "confidence": "plug-in", "model_ages": "1,2,7", "publish_envelope": True,
}  # fmt: skip
COMMON = {key: DISCOUNTED[key] for key in ("mode", "age_days", "max_day_epsilon", "clamp_kwh", "min_households")}
RELEASES = {
    "discounted": DISCOUNTED,
    "age-dependent": {
        **COMMON, **MODEL, "epsilon_total": "unlimited", "epsilon_per_day": "1", "method": "tight", "secret": "day",
    },
    "temporal": {**COMMON, **MODEL, "epsilon_total": "400", "alpha": "10", "horizon_days": "400", "budget": "best"},
}  # fmt: skip
RUN_FILE = """version = 1
[input]
dataset = "{dataset}"
files = ["{files}"]
[output]
release = "release"
confidential = "confidential"
ledger = "sqlite:///ledger.sqlite"
[population]
name = "households"
roster = "roster.csv"
min_households = 1
[schedule]
mode = "archive"
first_day = {first}
last_day = {last}
[series.daily_mean]
statistic = "mean"
clamp_kwh = 50
[promise]
notion = "temporal"
alpha = 10
horizon_days = 400
budget = "best"
max_day_epsilon = 1
epsilon_total = 400
[model]
source = "estimated"
file = "model"
assume = "markov"
period = [{first}, {last}]
step = "day"
states = 4
edges = "quantile"
chain = "homogeneous"
min_visits = 5
confidence = "plug-in"
ages_days = [1, 2, 7]
publish = "envelope"
"""


def figures(folder):
    """Return the content of every file of a model: of its chains, their bounds and what is public."""
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize(
    ("dataset", "households", "first", "last"),
    [
        ("london", 40, date(2013, 1, 1), date(2013, 1, 21)),
        ("ausgrid", 1, date(2011, 7, 1), date(2011, 8, 20)),
    ],
)
def test_three_real_releases_have_the_chains_of_calibrate(extracts, tmp_path, dataset, households, first, last):
    files, models = extracts[dataset], set()
    for notion, options in RELEASES.items():
        days = {"first_day": f"{first}", "last_day": f"{last}"}
        if "assume" in options:
            days["period"] = f"{first},{last}"
        given = toml_of({**options, **days, "notion": notion})
        call = release_files([str(files)], out=tmp_path / notion, options=given)
        assert call.run.refusal is None
        release = open_release(tmp_path / notion)
        release.verify()
        assert release.statement["days"]["released"] == (last - first).days + 1
        assert release.table()["households"].max() == households
        models |= {call.run.session.model.id} if call.run.session.model is not None else set()
    plain = tmp_path / "plain"
    plain.mkdir()
    shutil.copy(tmp_path / "temporal-confidential" / "roster.csv", plain)
    (plain / "run.toml").write_text(RUN_FILE.format(dataset=dataset, files=files, first=first, last=last))
    assert models == {calibrate(plain / "run.toml").model.id}
    assert figures(plain / "model") == figures(tmp_path / "temporal-confidential" / "model")
