"""Roster, curve and kernel may lie at a URL: read as from a disk, remembered alike, and told in one line."""

from __future__ import annotations

import json
from datetime import date, timedelta

import fsspec
import numpy as np
import pytest

from agedp_data import mechanisms
from agedp_data.errors import AgedpError, LedgerError

FIRST = date(2013, 1, 1)
PLACE = "memory://agedp-inputs"
AGED = (
    'notion = "age-dependent"\nage_days = 1\nepsilon_per_day = 0.3\nmethod = "total_variation"\nsecret = "day"\n'
    'max_day_epsilon = 0.5\nepsilon_total = "unlimited"\n'
)
MODEL = '[model]\nsource = "declared"\nbasis = "made up"\nassume = "markov"\n{key} = "{place}"\n{rest}'
TABLES = {"curve": ("curve", "1,0.5\n7,0.2\n", ""), "kernel": ("kernel", "0.9,0.1\n0.2,0.8\n", 'step = "day"\n')}


@pytest.fixture
def shelf():
    """An empty place that only URLs reach."""
    system = fsspec.filesystem("memory")
    yield system
    if system.exists("/agedp-inputs"):
        system.rm("/agedp-inputs", recursive=True)


@pytest.fixture
def homes(house):
    every = [FIRST + timedelta(days=i) for i in range(4)]
    house.fill(every)
    return house


def write(homes, kind, *, at=""):
    """Write a run file whose roster and model lie in the house, or at a URL."""
    key, text, rest = TABLES[kind]
    (homes.folder / f"{key}.csv").write_text(text)
    homes.write(
        FIRST, FIRST + timedelta(days=3), promise=AGED, rest=MODEL.format(key=key, place=f"{at}{key}.csv", rest=rest)
    )
    homes.run_file.write_text(homes.run_file.read_text().replace('"roster.csv"', f'"{at}roster.csv"'))


def put(homes, system):
    for path in homes.folder.glob("*.csv"):
        system.pipe(f"/agedp-inputs/{path.name}", path.read_bytes())
        path.unlink()


@pytest.mark.parametrize("kind", TABLES)
def test_what_is_released_is_the_same_wherever_roster_and_model_lie(houses, tmp_path, shelf, monkeypatch, kind):
    found = []
    for name, at in (("disk", ""), ("url", f"{PLACE}/")):
        (tmp_path / name).mkdir()
        house = houses(tmp_path / name)
        every = [FIRST + timedelta(days=i) for i in range(4)]
        house.fill(every)
        write(house, kind, at=at)
        if at:
            put(house, shelf)
        monkeypatch.setattr(mechanisms, "discrete_laplace", lambda exact, **_: np.arange(len(exact)))
        house.run(today=date(2013, 2, 1))
        found.append(house.files())
    assert found[0] == found[1]
    assert json.loads(found[0]["statement.json"])["days"]["released"] == 4


def test_a_roster_at_a_url_is_remembered_for_days_that_are_released(homes, shelf):
    write(homes, "curve", at=f"{PLACE}/")
    put(homes, shelf)
    homes.run(today=FIRST + timedelta(days=3))
    shelf.pipe("/agedp-inputs/roster.csv", b"household_id,from,to\nA,2013-01-01,\nB,2013-01-01,\n")
    with pytest.raises(LedgerError, match="roster"):
        homes.run(today=FIRST + timedelta(days=4))


@pytest.mark.parametrize(("gone", "said"), [("roster", "[population] roster:"), ("curve", "[model] curve:")])
def test_what_is_not_at_its_url_is_told_in_one_line_without_user_and_query(homes, shelf, gone, said):
    write(homes, "curve", at=f"{PLACE}/")
    put(homes, shelf)
    shelf.rm(f"/agedp-inputs/{gone}.csv")
    text = homes.run_file.read_text().replace(f"{PLACE}/{gone}.csv", f"memory://me@agedp-inputs/{gone}.csv?sig=aXz")
    homes.run_file.write_text(text)
    with pytest.raises(AgedpError) as caught:
        homes.context()
    assert str(caught.value).startswith(f"{said} cannot be opened (")
    assert caught.value.private.startswith(f"memory://agedp-inputs/{gone}.csv: cannot be opened (")
    assert caught.value.exit_status == 2
    for line in (str(caught.value), caught.value.private):
        assert "\n" not in line
        assert "aXz" not in line
        assert "me@" not in line


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("roster", b"\xff\xfe\x00", "[population] roster: is not UTF-8 text"),
        ("roster", b"household_id,from,to\nA,yesterday,\n", "[population] roster: line 2: `from` must be a date"),
        ("curve", b"\xff\xfe\x00", "[model] curve: is not a CSV text"),
        ("curve", b"1,much\n", "[model] curve: must hold numbers only"),
    ],
)
def test_what_a_url_holds_is_checked_as_a_file_is(homes, shelf, name, content, said):
    write(homes, "curve", at=f"{PLACE}/")
    put(homes, shelf)
    shelf.pipe(f"/agedp-inputs/{name}.csv", content)
    with pytest.raises(AgedpError) as caught:
        homes.context()
    assert str(caught.value).startswith(said)
    assert f"{PLACE}/{name}.csv" in caught.value.private
    assert PLACE not in str(caught.value)


@pytest.mark.parametrize("name", ["roster", "curve"])
def test_a_url_of_a_kind_that_nobody_knows_is_told_in_one_line(homes, name):
    write(homes, "curve")
    homes.run_file.write_text(homes.run_file.read_text().replace(f'"{name}.csv"', f'"webhdfs9://a/{name}.csv"'))
    with pytest.raises(AgedpError, match=r"(roster|curve): cannot be opened \(ValueError\)$"):
        homes.context()
