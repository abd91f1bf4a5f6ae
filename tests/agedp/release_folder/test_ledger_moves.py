"""Ledgers that are moved, lost and recovered: releases continue, and no day is drawn again."""

from __future__ import annotations

import json
import shutil
from datetime import date, timedelta

import pytest

from agedp.ledger_transfer import export_ledger, import_ledger, recover, verify_against
from agedp.release_folder.folder_files import ROWS
from agedp.release_folder.origin import check_ledger_not_behind, release_origins
from agedp.release_verification import open_release
from agedp.stages.amend import amend
from agedp.stages.publish import write_folder_of_statement
from agedp_data.errors import InputError, LedgerError, Refused
from agedp_data.ledger import Ledger, ReleaseRecord
from agedp_data.statement.note_texts import NOTES
from tests.agedp.release_folder.resealed import reseal
from tests.agedp.release_folder.test_tampering import EARLIER

FIRST, LAST = date(2013, 1, 1), date(2013, 1, 8)
CLASSICAL = 'notion = "classical"\nepsilon_per_day = {}\nmax_day_epsilon = 0.5\nepsilon_total = 3\n'
MODEL = '[model]\nsource = "declared"\nbasis = "made up"\nassume = "curve"\ncurve = "curve.csv"\n'


@pytest.fixture(scope="module")
def published(houses, tmp_path_factory):
    """Three homes, two days at 0.5 and, after an amendment, two at 0.25."""
    house = houses(tmp_path_factory.mktemp("house"))
    house.fill([FIRST + timedelta(days=i) for i in range(8)])
    (house.folder / "curve.csv").write_text("1,0.5\n7,0.2\n")
    house.write(FIRST, LAST, promise=CLASSICAL.format(0.5), rest=MODEL)
    house.run(today=date(2013, 1, 3))
    house.write(FIRST, LAST, promise=CLASSICAL.format(0.25), rest=MODEL)
    amend(house.context())
    house.run(today=date(2013, 1, 5))
    return house


@pytest.fixture
def homes(published, houses, tmp_path):
    return houses(shutil.copytree(published.folder, tmp_path / "house"))


@pytest.fixture
def path(homes):
    return homes.folder / "rows.jsonl"


def url(homes, name="ledger.sqlite"):
    return f"sqlite:///{homes.folder / name}"


def draws(homes, name="ledger.sqlite"):
    rows = homes.rows(name=name)
    return [(row.day, row.values, row.loss, row.scale, row.published_on, row.model) for row in rows]


def continue_on(homes, name, before):
    """Run until two more days are released from a ledger, and none of the days before again."""
    homes.edit(("ledger.sqlite", name))
    homes.run(today=date(2013, 1, 7))
    after = draws(homes, name)
    assert after[: len(before)] == before
    assert [row[0] for row in after[len(before) :]] == ["2013-01-05", "2013-01-06"]
    homes.release.verify()


def test_a_moved_ledger_continues_and_the_closed_one_does_not(homes, path):
    before = draws(homes)
    rows = export_ledger(url(homes), path, closed_at=date(2013, 1, 5))
    assert import_ledger(path, url(homes, "new.sqlite")) == rows
    with pytest.raises(LedgerError, match="closed on 2013-01-05"):
        homes.run(today=date(2013, 1, 7))
    for name, closed_at in (("again", date(2014, 1, 1)), ("later", None)):
        export_ledger(url(homes), homes.folder / name, closed_at=closed_at)
        assert (homes.folder / name).read_bytes() == path.read_bytes()
    assert draws(homes) == before
    with pytest.raises(LedgerError, match="holds rows already"):
        import_ledger(path, url(homes, "new.sqlite"))
    with pytest.raises(InputError, match="missing or damaged"):
        import_ledger(homes.folder / "none.jsonl", url(homes, "none.sqlite"))
    continue_on(homes, "new.sqlite", before)


def test_an_export_of_an_open_ledger_is_imported_only_if_that_is_lost(homes, path):
    before = draws(homes)
    rows = export_ledger(url(homes), path)
    with pytest.raises(LedgerError, match="can still continue") as refused:
        import_ledger(path, url(homes, "new.sqlite"))
    assert refused.value.exit_status == 3
    assert not (homes.folder / "new.sqlite").exists()
    (homes.folder / "ledger.sqlite").unlink()
    assert import_ledger(path, url(homes, "new.sqlite"), lost_at=date(2013, 1, 6)) == rows
    continue_on(homes, "new.sqlite", before)
    assert NOTES.taken_over in homes.release.statement["notes"]
    with homes.ledger("new.sqlite") as ledger:
        records = [json.loads(row.claim) for row in ledger.statements("")]
        assert [record["taken over"]["rows"] for record in records if "taken over" in record] == [rows]
        verify_against(homes.release, ledger)


def test_an_interrupted_closing_leaves_an_open_export_and_is_repeated(homes, path, monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(Ledger, "_store", interrupt)  # the rows are written, the ledger is not closed yet
    with pytest.raises(KeyboardInterrupt):
        export_ledger(url(homes), path, closed_at=FIRST)
    monkeypatch.undo()
    with pytest.raises(LedgerError, match="can still continue"):
        import_ledger(path, url(homes, "new.sqlite"))
    export_ledger(url(homes), path, closed_at=FIRST)
    import_ledger(path, url(homes, "new.sqlite"))
    with homes.ledger("new.sqlite") as ledger:
        assert not any("closed" in json.loads(row.claim) for row in ledger.statements(""))


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: text.replace('\\"loss\\":5', '\\"loss\\":4', 1),
        lambda text: text.replace('\\"revision\\":0', '\\"revision\\":1', 1),
        lambda text: "".join(text.splitlines(keepends=True)[:-1]),
        lambda text: text.replace('"rows":', '"rows":1', 1),
        lambda text: text.replace('"head":"', '"head":"0', 1),
        lambda text: text.replace('"whole":1', '"whole":0', 1),
        lambda text: text + text.splitlines(keepends=True)[-1],
        lambda text: "",
        lambda text: "\x80",
    ],
)
def test_a_damaged_export_makes_no_ledger_and_changes_none(homes, path, damage):
    export_ledger(url(homes), path, closed_at=FIRST)
    text = path.read_text()
    path.write_text(damage(text), encoding="latin-1")
    assert path.read_text(encoding="latin-1") != text
    Ledger.open(url(homes, "there.sqlite"), create=True).close()
    before = sorted(homes.folder.rglob("*"))
    for name in ("new.sqlite", "some/where/new.sqlite", "there.sqlite"):
        with pytest.raises((LedgerError, InputError)):
            import_ledger(path, url(homes, name))
    assert sorted(homes.folder.rglob("*")) == before


def test_a_lost_ledger_is_recovered_from_the_folder(homes):
    folder, before = homes.folder / "release", draws(homes)
    (homes.folder / "ledger.sqlite").unlink()
    assert recover(folder, url(homes), at=date(2013, 1, 6)) == 4
    assert draws(homes) == before
    with homes.ledger() as ledger:
        assert [json.loads(row.promise)["promise"]["epsilon_per_day"] for row in ledger.contracts()] == ["0.5", "0.25"]
        check_ledger_not_behind(ledger, release_origins(folder))
        verify_against(open_release(folder), ledger)
    continue_on(homes, "ledger.sqlite", before)
    homes.write(FIRST, LAST, promise=CLASSICAL.format(0.25).replace("= 3", "= 2.1"), rest=MODEL)
    amend(homes.context())
    with pytest.raises(Refused, match=r"2013-01-07.* 2 is spent"):  # four days of before the recovery, two after it
        homes.run(today=date(2013, 1, 9))


def test_folders_of_the_first_ledger_are_known_after_two_recoveries(homes):
    folders = [homes.folder / "release"]
    for number in (1, 2):
        folders.append(shutil.copytree(homes.folder / "release", homes.folder / f"kept{number}"))
        (homes.folder / "ledger.sqlite").unlink()
        recover(homes.folder / "release", url(homes), at=date(2013, 1, 6))
        homes.run(today=date(2013, 1, 5 + number))
        with homes.ledger() as ledger:
            assert ledger.verify() == ()
            for folder in map(open_release, folders):
                verify_against(folder, ledger)
                rows = ledger.all_rows()[: ledger.row_number(folder.statement["ledger"]["head"])]
                newest = max(row.day for row in rows if isinstance(row, ReleaseRecord))
                assert newest == f"{folder.table()['day'].max():%Y-%m-%d}"
            assert not ledger.contains("e" * 64)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda header, rows: header.update(head="f" * 64), "ledger.head: .* differs"),
        (lambda header, rows: header.update(ledger="f" * 64), "ledger.id: .* differs"),
        (
            lambda header, rows: rows.remove(next(row for row in rows if row["table"] == "model")),
            "lacks a model that its contracts name",
        ),
        (lambda header, rows: rows.remove([row for row in rows if row["table"] == "contract"][-1]), "t contracts"),
        (lambda header, rows: rows.pop(), "different accounts of households"),
        (lambda header, rows: rows.remove([row for row in rows if row["table"] == "release"][-1]), "lacks this row"),
        (lambda header, rows: rows.clear(), "different populations"),
    ],
)
def test_rows_that_contradict_the_folder_are_not_recovered(homes, change, message):
    folder = homes.folder / "release"
    header, *rows = [json.loads(line) for line in (folder / ROWS).read_text().splitlines()]
    change(header, rows)
    header["rows"] = len(rows)
    lines = [json.dumps(row, sort_keys=True, separators=(",", ":")) for row in (header, *rows)]
    (folder / ROWS).write_text("\n".join(lines) + "\n")
    reseal(folder)
    with pytest.raises((InputError, LedgerError), match=message):
        recover(folder, url(homes, "new.sqlite"), at=date(2013, 1, 6))
    assert not (homes.folder / "new.sqlite").exists()


def test_a_release_of_0_1_is_recovered_and_continued(house):
    house.fill([FIRST + timedelta(days=i) for i in range(4)])
    house.write(FIRST, FIRST + timedelta(days=3))
    shutil.copytree(EARLIER, house.folder / "release")
    earlier = open_release(EARLIER)
    recover(EARLIER, url(house), at=date(2013, 1, 5))
    house.run(today=date(2013, 1, 6))
    rows = earlier.table().to_dict("list")
    assert house.release.table().head(3).to_dict("list") == rows
    assert house.release.statement["schema"] == "agedp-statement-2"
    house.release.verify()
    session = house.session(today=date(2013, 1, 7))
    number = session.open_ledger.statements("homes")[0].seq
    assert not write_folder_of_statement(session, number)  # the bytes differ, and it says so
    house.release.verify()
    assert (house.release.statement, house.release.table().to_dict("list")) == (earlier.statement, rows)
    assert "datapackage.json" in house.release.checksums


def test_an_export_replaces_no_file_and_leaves_the_ledger_open(homes, path):
    export_ledger(url(homes), path)
    before = path.read_bytes()
    with pytest.raises(InputError, match="exists"):
        export_ledger(url(homes), path)
    homes.run(today=date(2013, 1, 6))
    with pytest.raises(InputError, match="exists"):
        export_ledger(url(homes), path, closed_at=FIRST)
    assert path.read_bytes() == before
    homes.run(today=date(2013, 1, 7))
