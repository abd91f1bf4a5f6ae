"""Filled templates: figures are the statement's, every place of household data is named, nothing known is a blank."""

from __future__ import annotations

import json
import re
import shutil
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from agedp.calibration_pipeline import calibrate
from agedp.internal_records.signing_keys import create_key
from agedp.setup.filled_templates import BLANK, TEMPLATES, fill_template
from agedp_data.errors import InputError
from agedp_flows.cli.app import app
from tests.documents.pages import ROOT
from tests.model_tables import estimated_table

FIRST, HOUSEHOLD = date(2013, 1, 1), "MAC900002"
PAGES = {name: ROOT / "pipelines" / "agedp" / "setup" / "templates" / f"{name}.md" for name in TEMPLATES}
OUTPUT = """[output]
sign = true
witness = "elsewhere/homes.witness"
contact = "us"
source = "Grid | Ltd"
licence = "CC0-1.0"
"""
BOUNDS = "<!-- rows bounds -->"


def written(house: Any) -> Any:
    house.fill([FIRST + timedelta(days=i) for i in range(5)], households=("MAC900001", HOUSEHOLD, "MAC900003"))
    house.write(FIRST, FIRST + timedelta(days=4), rest="[engine]\nkeep_days = 30\n")
    for name in ("elsewhere", "book"):
        (house.folder / name).mkdir()
    house.edit(("[output]\n", OUTPUT), ('"unlimited"', "30"), ("///ledger", "///book/ledger"))
    return house


@pytest.fixture(scope="module")
def made(houses, tmp_path_factory) -> Any:
    house = written(houses(tmp_path_factory.mktemp("house")))
    create_key(house.folder / "confidential", None, at="2013-01-03")
    house.run(today=date(2013, 1, 4))
    return house


def filled(house: Any, name: str) -> Any:
    return fill_template(name, house.session(today=date(2013, 1, 4)))


def cells(text: str, row: str) -> list[str]:
    """Return the cells of the row of a table that begins so."""
    line = next(line for line in text.splitlines() if line.startswith(f"| {row}"))
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[2:-1]]


def statement_of(house: Any) -> dict[str, Any]:
    statement: dict[str, Any] = json.loads((house.folder / "release" / "statement.json").read_text())
    return statement


@pytest.mark.parametrize("name", TEMPLATES)
def test_only_what_no_file_knows_is_left_blank(made, name):
    """The blanks are the examples without a name, one for each bound, and nothing else."""
    page = PAGES[name].read_text()
    rows = [line for line in page.splitlines() if BOUNDS in line]
    rest = "\n".join(line for line in page.splitlines() if BOUNDS not in line)
    example = r"\*(?:\\\*|[^*|\n])+\*"
    unnamed = re.findall(example, re.sub(rf"{example}<!-- [a-z_]+ -->", "", rest))
    result = filled(made, name)
    expected = len(unnamed) + (len(statement_of(made)["figures"]) if rows else 0)
    assert result.blanks == result.text.count(BLANK) - 1 == expected  # the head explains the mark
    assert "<!--" not in result.text
    assert "](" not in result.text


def test_every_figure_of_an_assessment_is_the_statement_s(made):
    text, statement = filled(made, "impact-assessment").text, statement_of(made)
    bounds = {bound["name"]: bound for bound in statement["figures"]}
    for name, bound in bounds.items():
        assert cells(text, f"{name} |") == [bound["epsilon"], bound["factor"] or "none", bound["limit"], BLANK]
    day, total, account = bounds["day"], bounds["total"], statement["household_account"]
    today = "2013-01-04"
    assert f"a factor {day['factor']}; about all days by {total['factor']};" in cells(text, "inference: ")[0]
    assert f"have epsilon {total['epsilon']};" in cells(text, "linkability")[0]
    losses = f"day {account['day']} on {today}, total {account['total']} on {today};"
    assert losses in cells(text, "recipient of two releases")[3]
    accuracy = statement["accuracy"][0]
    assert f"{accuracy['day']}: at most {accuracy['within']} kWh" in cells(text, "How exact")[0]
    assert cells(text, "released so far")[0] == "3 days, 2013-01-01 to 2013-01-03"
    assert cells(text, "notion; caps")[0].startswith("classical; day: 0.5; total: 30;")
    assert statement["ledger"]["head"] in text


def test_an_assessment_asks_what_an_officer_needs(made):
    """Articles of the GDPR that an assessment or the record beside it answers, and those of the UK."""
    text = filled(made, "impact-assessment").text
    assert cells(text, "date, version")[0].startswith("2013-01-04; ")
    asked = ("6(1)", "9", "28", "13, 14", "35(2)", "35(9)", "36", "35(11)")
    assert [article for article in asked if not re.search(rf"\(Articles? {re.escape(article)}\)", text)] == []
    assert "(Chapter V)" in text
    assert "UK GDPR" in text


@pytest.fixture(scope="module")
def modelled(houses, tmp_path_factory) -> Any:
    """A house with a model that was estimated from its readings, and one conflict between two files."""
    house, days = houses(tmp_path_factory.mktemp("modelled")), 20
    ids = ["MAC900001", HOUSEHOLD, "MAC900003"]
    slots = [(id_, FIRST + timedelta(days=i), slot) for id_ in ids for i in range(days) for slot in range(48)]
    is_high = np.random.default_rng(1).random(len(slots)) < 0.5
    house.london({place: 900 if high else 100 for place, high in zip(slots, is_high, strict=True)})
    house.london({(HOUSEHOLD, FIRST + timedelta(days=days - 3), 5): 300}, name="b.csv")
    house.roster([(id_, FIRST, None) for id_ in ids])
    last = FIRST + timedelta(days=days - 1)
    promise = 'notion = "age-dependent"\nage_days = 1\nmethod = "total_variation"\nsecret = "day"\nrisk = 0.4\n'
    caps = "max_day_epsilon = 2\nepsilon_total = 300\n"
    rest = estimated_table(FIRST, last, accepted=True)
    house.write(last - timedelta(days=3), last, promise=promise + caps, rest=rest)
    calibrate(house.run_file)
    house.run(today=last + timedelta(days=3))
    return house


@pytest.mark.parametrize("world", ["made", "modelled"])
def test_every_file_that_names_a_household_is_at_a_named_place(world, request):
    """Files are searched for the id; other files of the confidential folder have a named place as well."""
    house = request.getfixturevalue(world)
    text = fill_template("erase", house.session(today=date(2013, 2, 1))).text
    named = {place.removeprefix("sqlite:///").partition("*")[0] for place in re.findall("`([^`]+)`", text)}
    places = [Path(place) for place in named if place.startswith("/")]
    confidential = house.folder / "confidential"
    narrow = [place for place in places if place != confidential]
    named_here = {confidential / name for name in named if "/" not in name}
    found = set()
    for path in filter(Path.is_file, house.folder.rglob("*")):
        content = (
            str(pq.read_table(path).to_pydict()) if path.suffix == ".parquet" else path.read_text(errors="replace")
        )
        if HOUSEHOLD in content:
            found.add(path.parent.relative_to(house.folder).parts[0] if path.parent != house.folder else path.name)
            assert any(path.is_relative_to(place) for place in [*narrow, *named_here]), path
        elif confidential in path.parents and path.name != "lock" and path.parent.name != "signing_keys":
            assert any(path.is_relative_to(place) for place in [*narrow, *named_here]), path
    assert found >= {"input", "confidential", "roster.csv"}
    assert f"| `{house.folder}/roster.csv` |" in text


def test_a_file_is_private_never_overwritten_and_never_handed_over(made, tmp_path):
    result, release = filled(made, "erase"), made.folder / "release"
    result.write(tmp_path / "erase.md", release)
    assert (tmp_path / "erase.md").stat().st_mode & 0o777 == 0o600
    (tmp_path / "link").symlink_to(release)
    for path in (tmp_path / "erase.md", release / "x.md", tmp_path / "link" / "x.md"):
        before = path.read_bytes() if path.exists() else None
        with pytest.raises(InputError) as refused:
            result.write(path, release)
        assert str(tmp_path) not in str(refused.value)  # public
        assert (path.read_bytes() if path.exists() else None) == before


def test_the_command_s_json_names_no_path(made, houses, tmp_path):
    house = houses(Path(shutil.copytree(made.folder, tmp_path / "house")))
    out = tmp_path / "assessment.md"
    arguments = ["template", "impact-assessment", str(house.run_file), "--out", str(out), "--json"]
    done = CliRunner().invoke(app, arguments)
    assert json.loads(done.stdout) == {"template": "impact-assessment", "blanks": out.read_text().count(BLANK) - 1}
    shown = CliRunner().invoke(app, ["template", "erase", str(house.run_file)])
    assert shown.stdout.startswith("# Erasure of a household: homes")
    assert CliRunner().invoke(app, ["template", "other", str(house.run_file)]).exit_code == 2
