"""Roster, curve and kernel may lie at a URL: read as from a disk, remembered alike, and told in one line."""

from __future__ import annotations

import json
from datetime import date, timedelta

import fsspec
import numpy as np
import pytest
from fsspec.implementations.memory import MemoryFileSystem

from agedp_data import mechanisms
from agedp_data.errors import AgedpError, LedgerError

FIRST = date(2013, 1, 1)
PLACE = "memory://agedp-inputs"
AGED = (
    'notion = "age-dependent"\nage_days = 1\nepsilon_per_day = 0.3\nmethod = "total_variation"\nsecret = "day"\n'
    'max_day_epsilon = 0.5\nepsilon_total = "unlimited"\n'
)
MODEL = '[model]\nsource = "declared"\nbasis = "made up"\nassume = "markov"\n{key} = "{place}"\n{rest}'
TABLES = {"curve": ("1,0.5\n7,0.2\n", ""), "kernel": ("0.9,0.1\n0.2,0.8\n", 'step = "day"\n')}


@pytest.fixture
def shelf():
    """An empty place that only URLs reach."""
    system = fsspec.filesystem("memory")
    yield system
    if system.exists("/agedp-inputs"):
        system.rm("/agedp-inputs", recursive=True)


def write(house, kind="curve", *, shelf=None):
    """Write a run file whose roster and model lie in the house, or on the shelf."""
    days = [FIRST + timedelta(days=i) for i in range(4)]
    house.fill(days)
    (house.folder / f"{kind}.csv").write_text(TABLES[kind][0])
    at = f"{PLACE}/" if shelf else ""
    model = MODEL.format(key=kind, place=f"{at}{kind}.csv", rest=TABLES[kind][1])
    house.write(FIRST, days[-1], promise=AGED, rest=model)
    house.edit(('"roster.csv"', f'"{at}roster.csv"'))
    for path in house.folder.glob("*.csv") if shelf else ():
        shelf.pipe(f"/agedp-inputs/{path.name}", path.read_bytes())
        path.unlink()
    return house


@pytest.mark.parametrize("kind", TABLES)
def test_the_release_is_the_same_wherever_roster_and_model_lie(houses, tmp_path, shelf, monkeypatch, kind):
    monkeypatch.setattr(mechanisms, "discrete_laplace", lambda exact, **_: np.arange(len(exact)))
    found = []
    for name, place in (("disk", None), ("url", shelf)):
        (tmp_path / name).mkdir()
        house = write(houses(tmp_path / name), kind, shelf=place)
        house.run(today=date(2013, 2, 1))
        found.append(house.files())
    assert found[0] == found[1]
    assert json.loads(found[0]["statement.json"])["days"]["released"] == 4
    shelf.pipe("/agedp-inputs/roster.csv", b"household_id,from,to\nA,2013-01-01,\nB,2013-01-01,\n")
    with pytest.raises(LedgerError, match="roster"):  # the days are released with three households
        house.run(today=date(2013, 2, 1))


@pytest.mark.parametrize(("gone", "said"), [("roster", "[population] roster:"), ("curve", "[model] curve:")])
def test_what_is_not_at_its_url_is_told_without_user_and_query(house, shelf, gone, said):
    write(house, shelf=shelf)
    shelf.rm(f"/agedp-inputs/{gone}.csv")
    house.edit((f"{PLACE}/{gone}.csv", f"memory://me@agedp-inputs/{gone}.csv?sig=aXz"))
    with pytest.raises(AgedpError) as caught:
        house.context()
    assert str(caught.value).startswith(f"{said} cannot be opened (")
    assert caught.value.private.startswith(f"memory://agedp-inputs/{gone}.csv: cannot be opened (")
    assert caught.value.exit_status == 2
    for line in (str(caught.value), caught.value.private):
        assert not any(text in line for text in ("\n", "aXz", "me@"))


def test_a_roster_at_a_url_without_a_size_leaves_the_report_current(house, shelf, monkeypatch):
    """Case: a service that names no size of a file, as over HTTP without Content-Length."""
    write(house, shelf=shelf)
    monkeypatch.setattr(MemoryFileSystem, "info", lambda _, path, **__: {"name": path, "size": None, "type": "file"})
    house.run(today=date(2013, 2, 1))
    page = house.folder / "confidential" / "report.html"
    written = page.stat().st_ino
    house.run(today=date(2013, 2, 1))
    assert page.stat().st_ino == written
    shelf.pipe("/agedp-inputs/roster.csv", shelf.cat("/agedp-inputs/roster.csv") + b"D,2013-01-09,\n")
    house.run(today=date(2013, 2, 1))
    assert page.stat().st_ino != written
