"""Ledgers that move or are lost: releases go on where they stood, the same days are never drawn again."""

from __future__ import annotations

import hashlib
import json
import shutil
from datetime import date, timedelta

import pytest

from agedp.ledger_transfer import export_ledger, import_ledger, recover, verify_against
from agedp.release_folder.origin import check_ledger_not_behind, release_origins
from agedp.release_folder.release_folder import ROWS, open_release
from agedp.stages.amend import amend
from agedp_data.errors import InputError, LedgerError, Refused
from agedp_data.ledger import Ledger
from agedp_data.ledger.transfer import export_population, format_export
from agedp_data.statement.facts import TAKEN_OVER
from tests.agedp.release_folder.resealed import reseal

FIRST, LAST = date(2013, 1, 1), date(2013, 1, 8)
CLASSICAL = 'notion = "classical"\nepsilon_per_day = {}\nmax_day_epsilon = 0.5\nepsilon_total = 3\n'
MODEL = '[model]\nsource = "declared"\nbasis = "made up"\nassume = "curve"\ncurve = "curve.csv"\n'


@pytest.fixture(scope="module")
def made(houses, tmp_path_factory):
    """Three homes, two days at 0.5 and, after an amendment, two at 0.25."""
    house = houses(tmp_path_factory.mktemp("house"))
    days = [FIRST + timedelta(days=i) for i in range(8)]
    house.fill(days)
    (house.folder / "curve.csv").write_text("1,0.5\n7,0.2\n")
    house.write(FIRST, LAST, promise=CLASSICAL.format(0.5), rest=MODEL)
    house.run(today=date(2013, 1, 3))
    house.write(FIRST, LAST, promise=CLASSICAL.format(0.25), rest=MODEL)
    amend(house.context())
    house.run(today=date(2013, 1, 5))
    return house


@pytest.fixture
def homes(made, houses, tmp_path):
    """A copy of it to move and to lose."""
    return houses(shutil.copytree(made.folder, tmp_path / "house"))


def url(homes, name="ledger.sqlite"):
    return f"sqlite:///{homes.folder / name}"


def drawn(homes, name="ledger.sqlite"):
    with Ledger.open(url(homes, name)) as ledger:
        assert ledger.verify() == ()
        return [(row.day, row.values, row.loss, row.scale, row.published_on, row.model) for row in ledger.rows()]


def use(homes, name):
    homes.run_file.write_text(homes.run_file.read_text().replace("ledger.sqlite", name))


def carrying(homes):
    """The release folder with the ledger's rows in it, as `publish` writes it."""
    folder = homes.folder / "release"
    with Ledger.open(url(homes)) as ledger:
        found = export_population(ledger, "homes", head=open_release(folder).statement["ledger"]["head"])
    (folder / ROWS).write_text(format_export(found))
    reseal(folder)
    return folder


def test_a_moved_ledger_goes_on_and_the_old_one_does_not(homes):
    before = drawn(homes)
    rows = export_ledger(url(homes), homes.folder / "rows.jsonl", closed_at=date(2013, 1, 5))
    assert import_ledger(homes.folder / "rows.jsonl", url(homes, "new.sqlite")) == rows
    with pytest.raises(LedgerError, match="closed on 2013-01-05"):
        homes.run(today=date(2013, 1, 7))
    use(homes, "new.sqlite")
    homes.run(today=date(2013, 1, 7))
    after = drawn(homes, "new.sqlite")
    assert after[:4] == before == drawn(homes)
    assert [row[0] for row in after[4:]] == ["2013-01-05", "2013-01-06"]


def test_an_export_is_a_header_and_every_row_with_text_and_hash(homes):
    export_ledger(url(homes), homes.folder / "rows.jsonl")
    header, *rows = [json.loads(line) for line in (homes.folder / "rows.jsonl").read_text().splitlines()]
    with Ledger.open(url(homes)) as ledger:
        assert (header["ledger"], header["head"], header["rows"]) == (ledger.id, ledger.head(), ledger.length())
    previous = "0" * 64
    for number, row in enumerate(rows, 1):
        assert json.loads(row["text"])["seq"] == number
        previous = hashlib.sha256((previous + row["text"]).encode()).hexdigest()
        assert row["hash"] == previous
    assert (homes.folder / "rows.jsonl").stat().st_mode & 0o077 == 0


def test_an_export_of_a_ledger_that_can_go_on_is_imported_only_if_that_one_is_lost(homes):
    path = homes.folder / "rows.jsonl"
    rows = export_ledger(url(homes), path)
    with pytest.raises(LedgerError, match="can still continue") as caught:
        import_ledger(path, url(homes, "new.sqlite"))
    assert caught.value.exit_status == 3
    assert not (homes.folder / "new.sqlite").exists()
    (homes.folder / "ledger.sqlite").unlink()
    assert import_ledger(path, url(homes, "new.sqlite"), lost_at=date(2013, 1, 6)) == rows
    use(homes, "new.sqlite")
    homes.run(today=date(2013, 1, 7))
    assert [row[0] for row in drawn(homes, "new.sqlite")][4:] == ["2013-01-05", "2013-01-06"]
    assert TAKEN_OVER in homes.release.statement["notes"]
    with Ledger.open(url(homes, "new.sqlite")) as ledger:
        assert json.loads(ledger.statements("")[0].claim)["taken over"]["rows"] == rows
        verify_against(homes.release, ledger)


def test_a_file_says_that_its_ledger_was_closed_only_once_it_was(homes, monkeypatch):
    path = homes.folder / "rows.jsonl"

    def dying(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(Ledger, "_store", dying)  # killed when the rows are written and the ledger is not closed yet
    with pytest.raises(KeyboardInterrupt):
        export_ledger(url(homes), path, closed_at=FIRST)
    monkeypatch.undo()
    with pytest.raises(LedgerError, match="can still continue"):
        import_ledger(path, url(homes, "new.sqlite"))
    export_ledger(url(homes), path, closed_at=FIRST)
    import_ledger(path, url(homes, "new.sqlite"))
    with Ledger.open(url(homes, "new.sqlite")) as ledger:
        assert ledger.statements("") == ()


def test_an_export_without_closing_leaves_the_ledger_open_and_replaces_no_file(homes):
    export_ledger(url(homes), homes.folder / "rows.jsonl")
    before = (homes.folder / "rows.jsonl").read_bytes()
    with pytest.raises(InputError, match="exists"):
        export_ledger(url(homes), homes.folder / "rows.jsonl")
    homes.run(today=date(2013, 1, 6))
    with pytest.raises(InputError, match="exists"):
        export_ledger(url(homes), homes.folder / "rows.jsonl", closed_at=FIRST)
    assert (homes.folder / "rows.jsonl").read_bytes() == before
    homes.run(today=date(2013, 1, 7))


def test_closing_that_was_cut_off_behind_its_file_goes_on_with_that_file(homes):
    export_ledger(url(homes), homes.folder / "rows.jsonl")
    export_ledger(url(homes), homes.folder / "rows.jsonl", closed_at=date(2013, 1, 5))
    with pytest.raises(LedgerError, match="closed on 2013-01-05"):
        homes.run(today=date(2013, 1, 7))


def test_a_closed_ledger_exports_the_same_again(homes):
    for name, closed_at in (("a", date(2013, 1, 5)), ("b", date(2014, 1, 1)), ("c", None)):
        export_ledger(url(homes), homes.folder / name, closed_at=closed_at)
    assert len({(homes.folder / name).read_text() for name in "abc"}) == 1


@pytest.mark.parametrize(
    "spoil",
    [
        lambda text: text.replace('\\"loss\\":5', '\\"loss\\":4', 1),
        lambda text: "".join(text.splitlines(keepends=True)[:-1]),
        lambda text: text.replace('"rows":', '"rows":1', 1),
        lambda text: text.replace('"head":"', '"head":"0', 1),
        lambda text: text.replace('"whole":1', '"whole":0', 1),
        lambda text: text + text.splitlines(keepends=True)[-1],
        lambda text: "",
        lambda text: "\x80",
    ],
)
def test_a_spoilt_file_is_refused_before_a_ledger_is_made(homes, spoil):
    path = homes.folder / "rows.jsonl"
    export_ledger(url(homes), path, closed_at=FIRST)
    text = path.read_text()
    assert spoil(text) != text
    path.write_text(spoil(text), encoding="latin-1")
    with pytest.raises((LedgerError, InputError)):
        import_ledger(path, url(homes, "new.sqlite"))
    assert not (homes.folder / "new.sqlite").exists()


def unlike_the_rest(path):
    """Change a value within the rows of an exported file, which only the chain of hashes shows."""
    text = path.read_text()
    path.write_text(text.replace('\\"revision\\":0', '\\"revision\\":1', 1))
    assert path.read_text() != text


def test_an_import_that_fails_leaves_no_ledger_and_no_folder_that_was_not_there(homes):
    path = homes.folder / "rows.jsonl"
    export_ledger(url(homes), path, closed_at=FIRST)
    unlike_the_rest(path)
    before = sorted(homes.folder.rglob("*"))
    for name in ("new.sqlite", "some/where/new.sqlite"):
        with pytest.raises(LedgerError, match="the rows make no ledger"):
            import_ledger(path, url(homes, name))
    assert sorted(homes.folder.rglob("*")) == before


def test_an_import_that_fails_leaves_alone_what_was_there(homes):
    path = homes.folder / "rows.jsonl"
    export_ledger(url(homes), path, closed_at=FIRST)
    unlike_the_rest(path)
    Ledger.open(url(homes, "new.sqlite"), create=True).close()
    (homes.folder / "empty.sqlite").touch()
    for name in ("new.sqlite", "empty.sqlite"):
        with pytest.raises(LedgerError, match="the rows make no ledger"):
            import_ledger(path, url(homes, name))
        assert (homes.folder / name).exists()


def test_an_import_that_is_interrupted_leaves_no_ledger_unless_another_process_filled_it(homes, monkeypatch):
    path = homes.folder / "rows.jsonl"
    export_ledger(url(homes), path, closed_at=FIRST)
    fill = Ledger.import_rows

    def interrupted(ledger, rows):
        raise KeyboardInterrupt

    def filled_and_interrupted(ledger, rows):
        fill(ledger, rows)
        raise KeyboardInterrupt

    for stand_in, left in ((interrupted, False), (filled_and_interrupted, True)):
        monkeypatch.setattr(Ledger, "import_rows", stand_in)
        with pytest.raises(KeyboardInterrupt):
            import_ledger(path, url(homes, "new.sqlite"))
        assert (homes.folder / "new.sqlite").exists() == left


def test_an_import_into_a_ledger_with_rows_is_refused(homes):
    export_ledger(url(homes), homes.folder / "rows.jsonl", closed_at=FIRST)
    with pytest.raises(LedgerError, match="holds rows already"):
        import_ledger(homes.folder / "rows.jsonl", url(homes))
    with pytest.raises(InputError, match="missing or damaged"):
        import_ledger(homes.folder / "none.jsonl", url(homes, "new.sqlite"))


def test_a_lost_ledger_comes_back_from_the_folder_and_spends_nothing_twice(homes):
    folder, before = carrying(homes), drawn(homes)
    (homes.folder / "ledger.sqlite").rename(homes.folder / "lost.sqlite")
    assert recover(folder, url(homes), at=date(2013, 1, 6)) == 4
    assert drawn(homes) == before
    with Ledger.open(url(homes)) as ledger:
        assert [json.loads(row.promise)["promise"]["epsilon_per_day"] for row in ledger.contracts()] == ["0.5", "0.25"]
        check_ledger_not_behind(ledger, release_origins(folder))
        verify_against(open_release(folder), ledger)
    homes.run(today=date(2013, 1, 7))
    after = drawn(homes)
    assert after[:4] == before
    assert [row[0] for row in after[4:]] == ["2013-01-05", "2013-01-06"]
    open_release(folder).verify()


def test_what_was_spent_before_the_seam_counts_behind_it(homes):
    folder = carrying(homes)
    (homes.folder / "ledger.sqlite").unlink()
    recover(folder, url(homes), at=date(2013, 1, 6))
    homes.write(FIRST, LAST, promise=CLASSICAL.format(0.25).replace("= 3", "= 1.5"), rest=MODEL)
    amend(homes.context())
    with pytest.raises(Refused, match="2013-01-05"):
        homes.run(today=date(2013, 1, 7))


def test_a_folder_of_the_first_ledger_is_known_after_any_number_of_recoveries(homes):
    folders = [homes.folder / "release"]
    for number in range(1, 4):
        folders.append(shutil.copytree(homes.folder / "release", homes.folder / f"kept{number}"))
        (homes.folder / "ledger.sqlite").unlink()
        recover(homes.folder / "release", url(homes), at=date(2013, 1, 6))
        homes.run(today=date(2013, 1, 5 + number))
        with Ledger.open(url(homes)) as ledger:
            assert ledger.verify() == ()
            for each in folders:
                open_release(each).verify()
                verify_against(open_release(each), ledger)
                head = open_release(each).statement["ledger"]["head"]
                newest = max(row["day"] for row in open_release(each).table().to_dict("records"))
                assert ledger.all_rows()[ledger.row_number(head) - 1].day == f"{newest:%Y-%m-%d}"
            assert not ledger.contains("e" * 64)


def altered(folder, change):
    text = (folder / ROWS).read_text()
    header, *rows = [json.loads(line) for line in text.splitlines()]
    for row in rows:
        row["text"] = json.loads(row["text"])
    change(header, rows)
    for row in rows:
        row["text"] = json.dumps(row["text"], sort_keys=True, separators=(",", ":"))
    header["rows"] = len(rows)
    made = "".join(json.dumps(each, sort_keys=True, separators=(",", ":")) + "\n" for each in (header, *rows))
    assert made != text
    (folder / ROWS).write_text(made)
    reseal(folder)


def releases(rows):
    return [row["text"] for row in rows if row["table"] == "release"]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda header, rows: releases(rows)[0].update(values=[1]), "column noisy_sum_wh"),
        (lambda header, rows: releases(rows)[0].update(loss=1), "the loss 0.000000001 differs"),
        (lambda header, rows: releases(rows)[0].update(published_on="2013-01-01"), "column published_on"),
        (lambda header, rows: releases(rows)[0].update(scale="1.0"), "differs from sensitivity / scale"),
        (lambda header, rows: releases(rows)[0].update(contract="f" * 64), "lacks a contract"),
        (lambda header, rows: rows.pop(), "the ledger lacks this row"),
        (lambda header, rows: [row["text"].update(population="others") for row in rows if row["table"] == "contract"],
         "different populations"),
        (lambda header, rows: rows.remove(next(row for row in rows if row["table"] == "model")), "model it names"),
        (lambda header, rows: rows.remove([row for row in rows if row["table"] == "contract"][-1]),
         "different contracts"),
        (lambda header, rows: header.update(head="f" * 64), "different ledgers"),
        (lambda header, rows: header.update(ledger="f" * 64), "different ledgers"),
    ],
)  # fmt: skip
def test_rows_that_the_rest_of_the_folder_contradicts_are_not_recovered(homes, change, said):
    folder = carrying(homes)
    altered(folder, change)
    with pytest.raises((InputError, LedgerError), match=said):
        recover(folder, url(homes, "new.sqlite"), at=date(2013, 1, 6))
    assert not (homes.folder / "new.sqlite").exists()


def test_a_folder_that_was_changed_or_carries_no_rows_is_not_recovered(homes):
    folder = carrying(homes)
    (folder / ROWS).write_text((folder / ROWS).read_text() + "\n")
    with pytest.raises(InputError, match="differs from the published file"):
        recover(folder, url(homes, "new.sqlite"), at=FIRST)
    (folder / ROWS).unlink()
    reseal(folder)
    with pytest.raises(InputError, match="does not name every file of a release"):
        recover(folder, url(homes, "new.sqlite"), at=FIRST)
