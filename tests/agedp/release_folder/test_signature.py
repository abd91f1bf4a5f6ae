"""Signed release folders: what a recipient who knows a fingerprint is protected from, and what breaks a chain of keys.

The oracle of a signature is OpenSSL by way of `cryptography`, called here on bytes that the test writes itself.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from typer.testing import CliRunner

from agedp.internal_records.signing_keys import create_key
from agedp.ledger_transfer import recover
from agedp.ledger_transfer import verify as verify_folder
from agedp.release_folder.folder_files import ROWS, SIGNATURE, STATEMENT, SUMS, WORDS
from agedp.release_verification import open_release
from agedp.stages.amend import preview_amendment, record_amendment
from agedp.stages.publish import write_folder_as_of
from agedp_data.errors import ContractChanged, InputError, RunFileError
from agedp_data.ledger.lifecycle import SigningKey
from agedp_data.ledger.signature import FolderKey, KeyHistory, SignedFolder, check_signature
from agedp_flows.cli.app import app
from agedp_flows.text.screen import signature_lines
from tests.agedp.release_folder.forger import forge
from tests.agedp.release_folder.resealed import reseal

FIRST = date(2013, 1, 1)
SIGNED = "[output]\nsign = true\n"


def written(house, *, layout: str = "single") -> Any:
    """Five days, of which two are released; folders are to be signed."""
    house.fill([FIRST + timedelta(days=i) for i in range(5)])
    house.write(FIRST, FIRST + timedelta(days=4))
    house.edit(("[output]\n", f'{SIGNED}layout = "{layout}"\n'))
    return house


def made(house, *, replaces: bool = False, at: str = "2013-01-05") -> str:
    session = house.session(today=date.fromisoformat(at))
    return create_key(house.folder / "confidential", session.ledger, at=at, replaces=replaces).fingerprint


@pytest.fixture(scope="module")
def signed_once(houses, tmp_path_factory) -> tuple[Any, str]:
    """A folder of two days that is signed, and the fingerprint of its key."""
    house = written(houses(tmp_path_factory.mktemp("signed")))
    fingerprint = made(house)
    house.run(today=date(2013, 1, 3))
    return house, fingerprint


@pytest.fixture
def signed(signed_once, houses, tmp_path) -> tuple[Any, str]:
    """The same, to change."""
    house, fingerprint = signed_once
    return houses(Path(shutil.copytree(house.folder, tmp_path / "house"))), fingerprint


def copied(folder: Path, name: str) -> Path:
    return Path(shutil.copytree(folder, folder.with_name(name)))


def test_nothing_is_drawn_without_a_key(house):
    written(house)
    with pytest.raises(RunFileError, match="agedp key create"):
        house.run(today=date(2013, 1, 3))
    assert not (house.folder / "ledger.sqlite").exists()


@pytest.mark.parametrize("layout", ["single", "monthly"])
def test_a_signature_is_of_the_checksums_and_the_head(house, layout):
    """Ed25519 of the words "agedp release folder" and the canonical JSON of five fields."""
    fingerprint = made(written(house, layout=layout))
    house.run(today=date(2013, 1, 3))
    folder = house.folder / "release"
    document = json.loads((folder / SIGNATURE).read_bytes())
    statement, signs = json.loads((folder / STATEMENT).read_bytes()), document["signs"]
    assert signs["sha256sums"] == hashlib.sha256((folder / SUMS).read_bytes()).hexdigest()
    assert (signs["ledger"], signs["head"]) == (statement["ledger"]["id"], statement["ledger"]["head"])
    with house.ledger() as ledger:
        assert (signs["population"], signs["rows"]) == ("homes", ledger.row_number(signs["head"]))
    text = json.dumps(signs, sort_keys=True, separators=(",", ":"))
    key = Ed25519PublicKey.from_public_bytes(bytes.fromhex(document["key"]))
    key.verify(bytes.fromhex(document["signature"]), b"agedp release folder\n" + text.encode())
    assert hashlib.sha256(bytes.fromhex(document["key"])).hexdigest() == fingerprint
    assert SIGNATURE not in (folder / SUMS).read_text()
    assert verify_folder(folder, key=fingerprint).signed_by == fingerprint
    assert json.loads((folder / "statement.json").read_bytes())["signed_by"] == fingerprint
    signs_it = f"The key with the fingerprint `{fingerprint}` (the SHA-256 of the key) signs this folder"
    assert signs_it in (folder / "STATEMENT.md").read_text()


def test_a_second_night_signs_again_and_a_quiet_one_writes_nothing(signed):
    house, fingerprint = signed
    first = (house.folder / "release" / SIGNATURE).read_bytes()
    house.run(today=date(2013, 1, 4))
    second, written_at = house.files(), (house.folder / "release" / SIGNATURE).stat().st_mtime_ns
    assert second[SIGNATURE] != first
    house.run(today=date(2013, 1, 4), hour=2)
    assert house.files() == second
    assert (house.folder / "release" / SIGNATURE).stat().st_mtime_ns == written_at
    assert house.release.verify(key=fingerprint).signed_by == fingerprint


EDITS = {
    "text": (WORDS, b"household", b"homes"),
    "report": ("report.html", b"</html>", b"<!-- safe --></html>"),
    "title": (STATEMENT, b"Made up", b"Made it"),
    "value": ("daily_averages.parquet", b"PAR1", b"PAR2"),
}


@pytest.mark.parametrize("edit", EDITS)
def test_an_edit_with_new_checksums_is_refused(signed, edit):
    """Without the key nobody signs the new checksums."""
    house, fingerprint = signed
    folder, (name, old, new) = house.folder / "release", EDITS[edit]
    content = (folder / name).read_bytes()
    assert old in content
    (folder / name).write_bytes(content.replace(old, new, 1))
    sums = {line.split("  ")[1]: line.split("  ")[0] for line in (folder / SUMS).read_text().splitlines()}
    sums[name] = hashlib.sha256((folder / name).read_bytes()).hexdigest()
    (folder / SUMS).write_text("".join(f"{sums[name]}  {name}\n" for name in sorted(sums)))
    for key in ("", fingerprint):
        with pytest.raises(InputError) as refused:
            house.release.verify(key=key)
        assert "\n" not in str(refused.value)


def swap(folder: Path) -> None:
    """Give two tables each other's name."""
    first, second = sorted(folder.glob("*.parquet"))[:2]
    contents = first.read_bytes(), second.read_bytes()
    second.write_bytes(contents[0])
    first.write_bytes(contents[1])


def edit_table(folder: Path, change: Callable[[pa.Table], pa.Table]) -> None:
    """Write a changed table of daily averages with its own metadata."""
    table = pq.read_table(folder / "daily_averages.parquet")
    pq.write_table(change(table).replace_schema_metadata(table.schema.metadata), folder / "daily_averages.parquet")


def other(column: str, change: float) -> Callable[[Path], None]:
    def edit(table: pa.Table) -> pa.Table:
        values = pa.array([value + change for value in table[column].to_pylist()], table.schema.field(column).type)
        return table.set_column(table.schema.names.index(column), table.schema.field(column), values)

    return lambda folder: edit_table(folder, edit)


def lines(change: Callable[[list[str]], list[str]]) -> Callable[[Path], None]:
    def edit(folder: Path) -> None:
        path = folder / ROWS
        path.write_text("".join(change(path.read_text().splitlines(keepends=True))))

    return edit


FORGERIES: dict[str, Callable[[Path], None]] = {
    "value": other("mean_kwh", 1.0),
    "epsilon": other("epsilon", -0.25),
    "bound": lambda folder: forge(folder, lambda stated: stated["figures"][0].update(epsilon="0.1", factor="1.11")),
    "row": lambda folder: edit_table(folder, lambda table: table.slice(1)),
    "order": lambda folder: edit_table(folder, lambda table: table.take([*range(len(table))][::-1])),
    "ledger row": lines(lambda rows: rows[:-1]),
    "order of ledger rows": lines(lambda rows: [rows[0], *rows[:0:-1]]),
    "sentence": lambda folder: forge(folder, lambda stated: stated.update(protects="All that a household ever did.")),
    "title": lambda folder: forge(folder, lambda stated: stated.update(title="Official statistics")),
    "swapped tables": swap,
}
"""Edits by somebody who has agedp, writes every file that repeats a figure anew, and all checksums; not the key."""


@pytest.mark.parametrize("forgery", FORGERIES)
def test_no_forgery_is_signed(signed, forgery):
    """Without the fingerprint the signature of other bytes is refused already; a stripped one is no way out."""
    house, fingerprint = signed
    folder = house.folder / "release"
    signature = (folder / SIGNATURE).read_bytes()
    (folder / SIGNATURE).unlink()
    FORGERIES[forgery](folder)
    reseal(folder)
    for present, key in ((True, fingerprint), (True, ""), (False, fingerprint), (False, "")):
        if present:
            (folder / SIGNATURE).write_bytes(signature)
        else:
            (folder / SIGNATURE).unlink(missing_ok=True)
        with pytest.raises(InputError) as refused:
            house.release.verify(key=key)
        assert "\n" not in str(refused.value)
        assert len(str(refused.value)) < 400


@pytest.mark.parametrize("signs", [False, True])
def test_another_ledger_about_the_same_homes_is_not_the_publisher_s(signed, houses, tmp_path, signs):
    """A forger's own ledger and key are consistent in themselves, which verification alone cannot tell apart."""
    _, fingerprint = signed
    (tmp_path / "forger").mkdir()
    forger = written(houses(tmp_path / "forger"))
    if signs:
        made(forger)
    else:
        forger.edit((SIGNED, "[output]\n"))
    forger.run(today=date(2013, 1, 3))
    assert forger.release.verify().signed_by != fingerprint
    with pytest.raises(InputError, match="not the key that you name" if signs else "is missing, and you name a key"):
        forger.release.verify(key=fingerprint)


def test_a_folder_without_its_signature_is_refused(signed):
    house, fingerprint = signed
    (house.folder / "release" / SIGNATURE).unlink()
    with pytest.raises(InputError, match=r"SIGNATURE\.json is missing, and its contract says"):
        house.release.verify()
    with pytest.raises(InputError, match=r"SIGNATURE\.json is missing, and you name a key"):
        house.release.verify(key=fingerprint)


def test_the_signature_of_another_folder_is_refused(signed):
    house, _ = signed
    earlier = (house.folder / "release" / SIGNATURE).read_bytes()
    house.run(today=date(2013, 1, 4))
    (house.folder / "release" / SIGNATURE).write_bytes(earlier)
    with pytest.raises(InputError, match="no signature of this folder"):
        house.release.verify()


def test_a_signature_by_another_key_is_refused(signed):
    """A forger who signs with a key of their own is not the one whom the rows name."""
    house, fingerprint = signed
    folder = house.folder / "release"
    signs, forger = json.loads((folder / SIGNATURE).read_bytes())["signs"], FolderKey.create()
    (folder / SIGNATURE).write_bytes(forger.sign(SignedFolder(**signs)))
    with pytest.raises(InputError, match=f"by key {forger.fingerprint}, and its ledger rows name key {fingerprint}"):
        house.release.verify()


def test_a_signature_file_says_nothing_else(signed):
    house, fingerprint = signed
    path = house.folder / "release" / SIGNATURE
    path.write_text(json.dumps({**json.loads(path.read_bytes()), "note": "signed by the ministry"}), "utf-8")
    with pytest.raises(InputError, match="no signature of this folder"):
        house.release.verify(key=fingerprint)


def test_an_unsigned_folder_takes_no_signature(published_twice, tmp_path):
    folder = Path(shutil.copytree(published_twice.folder / "release", tmp_path / "release"))
    head = json.loads((folder / STATEMENT).read_bytes())["ledger"]
    digest = hashlib.sha256((folder / SUMS).read_bytes()).hexdigest()
    key = FolderKey.create()
    (folder / SIGNATURE).write_bytes(key.sign(SignedFolder("homes", head["id"], head["head"], 99, digest)))
    with pytest.raises(InputError, match="its ledger rows name none"):
        open_release(folder).verify()


def test_an_older_folder_is_refused_by_the_newest_row_of_a_later_one(signed):
    house, fingerprint = signed
    older = copied(house.folder / "release", "older")
    of_older = open_release(older).newest_row
    house.run(today=date(2013, 1, 4))
    newer = house.release
    assert newer.verify(key=fingerprint, not_before=of_older).signed_by == fingerprint
    assert newer.verify(not_before=newer.newest_row).signed_by == fingerprint
    with pytest.raises(InputError, match="older, or of another ledger"):
        open_release(older).verify(not_before=newer.newest_row)


def test_a_new_key_follows_from_the_one_before(signed):
    house, first = signed
    second = made(house, replaces=True)
    house.run(today=date(2013, 1, 6))
    folder = house.folder / "release"
    assert verify_folder(folder, key=first).signed_by == second
    assert verify_folder(folder, key=second).key_breaks == ()
    named = signature_lines(verify_folder(folder, key=first), key=first)[0]
    follows = f"It follows from the key that you name, {first[:16]}, each signed by the one before."
    assert named == f"signed by key {second}. {follows}"
    with pytest.raises(InputError, match="not the key that you name"):
        verify_folder(folder, key=FolderKey.create().fingerprint)
    with pytest.raises(RunFileError, match="--replace"):
        made(house)


def test_a_lost_key_is_a_stated_break(signed):
    house, first = signed
    (house.folder / "confidential" / "signing_keys" / f"{first}.pem").unlink()
    with pytest.raises(RunFileError, match=r"is missing\. Put back a copy"):
        house.run(today=date(2013, 1, 4))
    second = made(house, replaces=True)
    house.run(today=date(2013, 1, 5))
    folder = house.folder / "release"
    assert verify_folder(folder).key_breaks == ((second, "2013-01-05"),)
    assert verify_folder(folder, key=second).signed_by == second
    with pytest.raises(InputError, match=f"key {second} of 2013-01-05 was not signed by the one before"):
        verify_folder(folder, key=first)


def test_a_folder_as_of_an_earlier_date_is_signed_as_it_was(signed):
    house, first = signed
    then = house.files()
    made(house, replaces=True)
    house.run(today=date(2013, 1, 6))
    assert write_folder_as_of(house.session(today=date(2013, 1, 6)), date(2013, 1, 3))
    assert house.files() == then
    assert house.release.verify(key=first).signed_by == first


def test_a_running_series_signs_after_an_amendment_and_never_stops(published_twice, houses, tmp_path):
    house = houses(Path(shutil.copytree(published_twice.folder, tmp_path / "house")))
    house.edit(("[output]\n", SIGNED))
    with pytest.raises(ContractChanged):
        house.run(today=date(2013, 1, 5))
    session = house.session(today=date(2013, 1, 5))
    amendment = preview_amendment(session)
    assert [change.verdict for change in amendment.changes] == ["allowed"]
    record_amendment(session, amendment)
    fingerprint = made(house)
    house.run(today=date(2013, 1, 5))
    assert house.release.verify(key=fingerprint).signed_by == fingerprint
    house.edit((SIGNED, "[output]\n"))
    ending = preview_amendment(house.session(today=date(2013, 1, 5)))
    assert [change.verdict for change in ending.changes] == ["refused"]


def test_a_recovered_ledger_knows_its_key(signed):
    house, fingerprint = signed
    (house.folder / "ledger.sqlite").unlink()
    recover(house.folder / "release", f"sqlite:///{house.folder / 'ledger.sqlite'}", at=date(2013, 1, 4))
    before = house.release.newest_row
    house.run(today=date(2013, 1, 4))
    assert house.release.verify(key=fingerprint, not_before=before).signed_by == fingerprint


def test_a_key_of_another_file_or_none_is_named(signed):
    house, fingerprint = signed
    path = house.folder / "confidential" / "signing_keys" / f"{fingerprint}.pem"
    path.write_bytes(FolderKey.create().pem())
    with pytest.raises(RunFileError, match="holds another key"):
        house.run(today=date(2013, 1, 4))
    path.write_bytes(b"no key")
    with pytest.raises(InputError, match="is damaged"):
        house.run(today=date(2013, 1, 4))
    assert path.stat().st_mode & 0o77 == 0


def test_a_signature_of_a_key_is_none_of_a_folder():
    """Neither can stand for the other, and a record that another key signed is a break."""
    old, new, other = FolderKey.create(), FolderKey.create(), FolderKey.create()
    record = old.successor(new.fingerprint)
    folder = SignedFolder("homes", "a" * 64, "b" * 64, 3, "c" * 64)
    document = json.loads(old.sign(folder))
    document["signature"] = record.signature.split(" ")[1]
    with pytest.raises(InputError):
        check_signature(json.dumps(document).encode(), folder)
    forged = SigningKey(new.fingerprint, other.successor(new.fingerprint).signature)
    assert KeyHistory().newest == ""
    for successor, expected in ((record, True), (forged, False), (SigningKey(new.fingerprint), False)):
        history = _history(SigningKey(old.fingerprint), successor)
        assert (history.trusts(old.fingerprint), bool(history.breaks)) == (expected, not expected)
        assert history.trusts(new.fingerprint)


def test_a_signature_over_fewer_rows_than_lead_to_the_head_is_none():
    """The newest row that a recipient notes is the signed number: a smaller one would let an older folder pass."""
    key, folder = FolderKey.create(), SignedFolder("homes", "ab", "cd", 7, "ef")
    content = key.sign(folder)
    for rows in (1, 7):  # a folder may have the rows of one population alone
        assert check_signature(content, replace(folder, rows=rows)) == key.fingerprint
    with pytest.raises(InputError, match=r"SIGNATURE\.json is no signature of this folder"):
        check_signature(content, replace(folder, rows=8))


def _history(*records: SigningKey) -> KeyHistory:
    from agedp_data.ledger.ledger import _lifecycle_row

    return KeyHistory.of([_lifecycle_row(record, "2013-01-01") for record in records])


def test_the_command_says_what_to_do_and_verify_who_signed(signed):
    house, fingerprint = signed
    made_again = CliRunner().invoke(app, ["key", "create", str(house.run_file), "--replace", "--json"])
    second = json.loads(made_again.stdout)["fingerprint"]
    assert second != fingerprint
    checked = CliRunner().invoke(app, ["verify", str(house.folder / "release"), "--key", fingerprint])
    assert f"signed by key {fingerprint}. The holder of this key published these bytes." in checked.stdout
    assert "authentic" not in checked.stdout.lower()
