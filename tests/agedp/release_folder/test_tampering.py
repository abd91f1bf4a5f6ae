"""verify: each generated edit of one byte or one field is refused; the message names file, day and column.

A forger makes the list of files and the checksums anew. What a folder alone cannot decide is listed as UNDECIDED;
against the ledger nothing is undecided.
"""

# ruff: noqa: S311  (choices, not secrets)

from __future__ import annotations

import copy
import json
import math
import re
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from datetime import date, timedelta
from decimal import Decimal
from functools import reduce
from operator import getitem
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from agedp.ledger_transfer import verify_against
from agedp.release_folder.folder_files import PACKAGE, ROWS, STATEMENT, SUMS, WORDS
from agedp.release_folder.result_tables import parquet_bytes
from agedp.release_folder.verification import check_bounds, check_rows, check_statement, contracts_and_releases
from agedp.release_verification import ReleaseFolder, open_release
from agedp_data.errors import AgedpError, InputError, LedgerError
from agedp_data.ledger import Ledger
from tests.agedp.release_folder.forger import forge
from tests.agedp.release_folder.resealed import as_json, reseal

SEED, PARQUET = 20261122, "daily_averages.parquet"
EARLIER = Path(__file__).with_name("earlier_release")
"""Published by agedp 0.1.0 before there was a list of files."""
MESSAGES = {
    r"statement (from_whom|not_protected|notes|protects|warnings|versions|model|together|signed_by|ending.l.*|"
    r"ending.spent|second_population).*": (
        "^statement.json: {0}.*: .* differs from .*, which its ledger rows give|^STATEMENT.md differs|writes one: {0}"
    ),
    r"statement software.*": "^report.html differs|writes one: software",
    r"datapackage (.schema|name|title|description|resources.\d.(name|type|format|mediatype|description))": (
        "^datapackage.json differs from what agedp .* makes of statement.json"
    ),
    r"datapackage resources.\d.schema.(.schema|primaryKey.*|fields.\d+.(description|constraints.*))": (
        "^datapackage.json differs from what agedp .* makes of statement.json"
    ),
    r"rows header (head|ledger)": "^statement.json: ledger.",
    r"rows contract at": "^statement.json: versions.0.registered: ",
    r"rows release model": "lacks a model",
    r"rows release sensitivity": "^report.html differs",
    r"statement schema": "of a version that this agedp does not know; update agedp",
    r"statement accuracy.*": "different errors of the values|not as agedp writes one: accuracy",
    r"statement population": "^ledger_rows.jsonl and statement.json are of different populations",
    r"statement contract.*": "hold different contracts|as agedp writes one: contract",
    r"statement (title|rehearsal|figures|ledger).*": "^{table}: {0} in its guarantee contradicts|: {0}",
    r"statement (days|published|version)\b.*": "contain different days or losses|writes one: {0}",
    r"statement household_account.text": "contain different (accounts of households|days or losses)",
    r"statement (household_account).*": "contain different (accounts of households|days or losses)|writes one: {0}",
    r"statement ending.because": "as agedp writes one: ending.because",
    r"datapackage resources.\d.path": "^datapackage.json lists other files",
    r"datapackage resources.\d.(bytes|hash)": "^datapackage.json gives another size or checksum of ",
    r"datapackage resources.\d.schema.fields.*": "^datapackage.json gives other columns of [a-z_]+.parquet",
    r"guarantee interval.coverage": "^{table}: 2013-01-01, column low_kwh: .* differs from the ledger's",
    r"guarantee ([^.]*).*": "^{table}: {0} in its guarantee contradicts",
    r"table (2013-01-0.) (.*)": "^{table}: {0}, column {1}: .* differs from the ledger's",
    r"rows header.*": "ledger_rows.jsonl: the file .*(version|cut off|not one of ledger rows)",
    r"rows \w+ table": "ledger_rows.jsonl: line .* holds no row of a ledger",
    r"rows (contract hash|release contract)": "^ledger_rows.jsonl lacks a contract that its releases name",
    r"rows \w+ population": "of different populations",
    r"rows contract promise": "hold different contracts",
    r"rows release (loss|scale)": "jsonl: 2013-01-0., series daily_mean: the loss .* differs from sensitivity / ",
    r"rows release (cells|households|values).*": "^{table}: 2013-01-0.*, column (group|households|noisy_sum_wh): ",
    r"rows release (revision|published_on)": "^{table}: 2013-01-0., column {0}: .* differs from the ledger's",
    r"rows release (day|state)": "^{table}: 2013-01-0.*(column day|this row)",
    r"rows release series": "lack entries of a release",
    r"rows (contract|release) seq": "ledger rows are not in their order",
}
"""By field, file first: what the message says."""
UNDECIDED = re.compile(
    r"statement software.(agedp|numpy|scipy|pyarrow)"  # then the texts are of other software, and not compared
    r"|rows (header whole|release (at|hash|input_ended_at|mechanism))"
)


@pytest.fixture(scope="module")
def release(published_twice, tmp_path_factory) -> ReleaseFolder:
    """Three published days; every test leaves them as they were."""
    found = open_release(shutil.copytree(published_twice.folder / "release", tmp_path_factory.mktemp("r") / "release"))
    found.verify()
    return found


def refusal(release: ReleaseFolder, name: str, content: bytes | None, *, sealed: bool = True, check: Any = None) -> str:
    """Return what verification says of a folder with other content of a file, or without it; "" if nothing."""
    published = {path: path.read_bytes() for path in release.path.iterdir()}
    try:
        (release.path / name).unlink() if content is None else (release.path / name).write_bytes(content)
        if sealed:
            reseal(release.path, repack=name != PACKAGE)
        (check or ReleaseFolder.verify)(release)
    except AgedpError as error:
        return str(error)
    finally:
        for path in release.path.iterdir():
            path.unlink()
        for path, original in published.items():
            path.write_bytes(original)
    return ""


def test_a_loss_follows_from_the_contract_where_the_sensitivity_of_a_row_was_lowered_with_it(release):
    """The chain of a ledger holds the two against each other alone."""
    export, statement = release.ledger_rows(), release.read_statement()
    contracts, rows = contracts_and_releases(export)
    check_rows(statement, rows, contracts)
    halved = [replace(row, sensitivity=row.sensitivity // 2, loss=row.loss // 2) for row in rows]
    with pytest.raises(InputError, match=r"2013-01-0., series daily_mean: the loss .* differs from sensitivity / "):
        check_rows(statement, halved, contracts)


def other(value: Any, chance: Random) -> Any:
    """Return another value of the same kind."""
    if isinstance(value, str):
        return other_text(value, chance)
    if isinstance(value, dict | list):
        return {**value, "x": 1} if isinstance(value, dict) else [*value, "2013-01-02"]
    if isinstance(value, date):
        return value + timedelta(days=chance.choice((-1, 1)))
    if isinstance(value, float):
        return chance.choice((value * (1 + 1e-7), -2 * value, math.nan, math.inf))
    return value + chance.choice((-1, 1)) * chance.randint(1, 9)


def other_text(text: str, chance: Random) -> str:
    if re.fullmatch(r"[0-9a-f]{64}", text):
        return text[::-1]
    if re.fullmatch(r"\d{4}-\d\d-\d\d", text):
        return str(other(date.fromisoformat(text), chance))
    if re.fullmatch(r"\d+(\.\d+)?", text):
        amount = Decimal(text)
        return f"{amount / 2 if 0 < amount < 1 else amount + chance.randint(1, 9)}"
    return "1" if text == "unlimited" else text + chance.choice(("x", " ", "0\x1b[2J"))


def fields(value: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the place of every field of a JSON document."""
    if isinstance(value, (dict, list)) and value:
        for key in value if isinstance(value, dict) else range(len(value)):
            yield from fields(value[key], (*place, key))
    else:
        yield place


def edited(document: Any, chance: Random) -> Iterator[tuple[str, Any]]:
    """Yield a document with one field changed, for each of its fields."""
    for place in fields(document):
        changed = copy.deepcopy(document)
        above = reduce(getitem, place[:-1], changed)
        above[place[-1]] = other(above[place[-1]], chance)
        yield ".".join(map(str, place)), changed


def compact(document: Any) -> str:
    return json.dumps(document, sort_keys=True, separators=(",", ":"))


def edited_json(release: ReleaseFolder, name: str, chance: Random) -> Iterator[tuple[str, bytes]]:
    for field, document in edited(json.loads((release.path / name).read_bytes()), chance):
        yield f"{Path(name).stem} {field}", as_json(document).encode()


def edited_rows(release: ReleaseFolder, _: str, chance: Random) -> Iterator[tuple[str, bytes]]:
    """Edit the header, the contract and one release of the ledger's rows, and their texts."""
    lines = (release.path / ROWS).read_text().splitlines()
    for number in (0, 1, chance.randrange(2, len(lines))):
        row = json.loads(lines[number])
        text = row.pop("text", "{}")
        texts = (
            [(field, {**row, "text": compact(inner)}) for field, inner in edited(json.loads(text), chance)]
            if number
            else []
        )
        outer = [(field, {**each, "text": text} if number else each) for field, each in edited(row, chance)]
        for field, changed in (*texts, *outer):
            written = "\n".join([*lines[:number], compact(changed), *lines[number + 1 :]]) + "\n"
            yield f"rows {row.get('table', 'header')} {field}", written.encode()


def edited_table(release: ReleaseFolder, name: str, chance: Random) -> Iterator[tuple[str, bytes]]:
    """Edit one cell of each column of each row, and each field of the guarantee."""
    table = pq.read_table(release.path / name)
    rows = table.to_pylist()
    for number, row in enumerate(rows):
        for column, value in row.items():
            changed = [*rows[:number], {**row, column: other(value, chance)}, *rows[number + 1 :]]
            yield f"table {row['day']} {column}", parquet_bytes(pa.Table.from_pylist(changed, schema=table.schema))
    for field, guarantee in edited(json.loads(table.schema.metadata[b"agedp"]), chance):
        metadata = {b"agedp": json.dumps(guarantee).encode()}
        yield f"guarantee {field}", parquet_bytes(table.replace_schema_metadata(metadata))


EDITED = {STATEMENT: edited_json, PACKAGE: edited_json, ROWS: edited_rows, PARQUET: edited_table}


@pytest.mark.parametrize("number", [40, pytest.param(1000, marks=pytest.mark.long)])
@pytest.mark.parametrize("name", EDITED)
def test_an_edited_field_is_named_with_what_it_contradicts(release, name, number):
    chance = Random(SEED)
    edits = list(EDITED[name](release, name, chance))
    for field, content in chance.sample(edits, min(number, len(edits))):
        message = refusal(release, name, content)
        assert (message == "") == bool(UNDECIDED.fullmatch(field)), (field, message)
        if message:
            found = next(match for pattern in MESSAGES if (match := re.fullmatch(pattern, field)))
            expected = MESSAGES[found.re.pattern].format(*found.groups(), table=PARQUET)
            assert message.isprintable()
            assert re.search(expected, message), (field, message)


@pytest.mark.parametrize("wrong", [math.inf, -math.inf, math.nan, 0.0])
@pytest.mark.parametrize("column", ["noise_sd_kwh", "mean_kwh", "low_kwh"])
def test_a_number_that_is_none_is_named_with_its_column(release, column, wrong):
    rows = pq.read_table(release.path / PARQUET)
    changed = pa.Table.from_pylist([{**row, column: wrong} for row in rows.to_pylist()], schema=rows.schema)
    message = refusal(release, PARQUET, parquet_bytes(changed))
    assert f"2013-01-01, column {column}: {wrong} differs from the ledger's" in message


@pytest.mark.parametrize("name", EDITED)
def test_no_edited_field_agrees_with_the_ledger(release, published_twice, name):
    chance = Random(SEED)
    with published_twice.ledger() as ledger:
        verify_against(release, ledger)
        for field, content in chance.sample(list(EDITED[name](release, name, chance)), 8):
            message = refusal(release, name, content, check=lambda folder: verify_against(folder, ledger))
            assert message, field
            if field.startswith("table"):
                assert message.startswith(f"the folder and the ledger contain different values: {PARQUET}: 2013-01-0")


def test_no_byte_can_be_changed_lost_or_added(release):
    chance = Random(SEED)
    for path in sorted(release.path.iterdir()):
        content, expected = path.read_bytes(), f"^{path.name} (differs from the published|is missing)"
        if path.name == SUMS:
            expected = "differs from the published|does not name every|is missing"
        for _ in range(8):
            place = chance.randrange(len(content))
            for byte in {chance.randrange(256), *b"\r\f "} - {content[place]}:
                changed = content[:place] + bytes([byte]) + content[place + 1 :]
                assert re.search(expected, refusal(release, path.name, changed, sealed=False))
        for changed in (content[:-1], content[1:], content + b"\n", b"", None):
            message = refusal(release, path.name, changed, sealed=False)
            assert re.search(expected, message), message
    assert refusal(release, "daily_averages_x.parquet", b"", sealed=False).startswith("daily_averages_x.parquet: not l")


def rows_changed(change: Any) -> Any:
    return lambda table: pa.Table.from_pylist(change(table.to_pylist()), schema=table.schema)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (rows_changed(lambda rows: rows[:-1]), ": 2013-01-03: the table lacks this row"),
        (rows_changed(lambda rows: rows[1:]), ": 2013-01-01: the table lacks this row"),
        (rows_changed(lambda rows: [*rows, rows[-1]]), ": 2013-01-03: the ledger lacks this row"),
        (rows_changed(lambda rows: rows[::-1]), ": 2013-01-01, column day: 2013-01-03 differs from the ledger's 2013-"),
        (lambda table: table.drop_columns(["epsilon"]), " has other columns"),
        (lambda table: table.append_column("x", pa.array([1] * 3)), " has other columns"),
        (lambda table: table.select([1, 0, *range(2, 12)]), " has other columns"),
    ],
)
def test_lost_doubled_and_misplaced_rows_and_columns_are_named(release, change, message):
    content = parquet_bytes(change(pq.read_table(release.path / PARQUET)))
    assert refusal(release, PARQUET, content).startswith(f"{PARQUET}{message}")


@pytest.mark.parametrize(
    ("bound", "change"),
    [
        (0, {"epsilon": "0.25", "factor": "1.29", "limit": "0.25"}),
        (1, {"epsilon": "0.01", "factor": "1.02"}),
        (2, {"epsilon": "1.51", "factor": "4.53"}),
        (1, {"factor": "1.01"}),
        (0, {"limit": "0.1"}),
    ],
)
def test_a_bound_edited_wherever_it_is_stated_differs_from_the_rows(release, bound, change):
    name = release.statement["figures"][bound]["name"]

    def check(folder: ReleaseFolder) -> None:
        forge(folder.path, lambda content: content["figures"][bound].update(change))
        folder.verify()

    message = refusal(release, STATEMENT, (release.path / STATEMENT).read_bytes(), check=check)
    assert message.startswith(f"statement.json: the bound {name!r}: ")


@pytest.mark.parametrize(("day", "total"), [("0.4", "1.5"), ("0.5", "1.4"), ("1.6", "1.5")])
def test_an_account_of_households_is_not_below_this_release_alone(release, day, total):
    statement = release.read_statement()
    account = statement.household_account.model_copy(
        update={
            "day": day,
            "total": total,
            "text": f"of a day {day}, in all {total} {statement.household_account.since}",
        }
    )
    rows = release.ledger_rows().rows
    check_bounds(statement, rows)  # 0.5 of a day and 1.5 of three
    with pytest.raises(InputError, match="contain different days or losses"):
        check_bounds(statement.model_copy(update={"household_account": account}), rows)


@pytest.mark.parametrize("number", range(3))
def test_no_row_is_of_fewer_households_than_the_contract_says(release, number):
    statement = release.read_statement()
    contracts, rows = contracts_and_releases(release.ledger_rows())
    least = statement.contract.population.min_households
    check_statement(statement, rows, contracts)
    rows[number] = replace(rows[number], households=(least - 1,))
    with pytest.raises(InputError, match="contain different days or losses"):
        check_statement(statement, rows, contracts)


def test_words_that_state_another_bound_are_found(release):
    words = (release.path / WORDS).read_text()
    message = refusal(release, WORDS, words.replace("| total | 1.5 |", "| total | 0.1 |").encode())
    assert message == "STATEMENT.md and statement.json contain different bounds"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda listed: listed["resources"].pop(), "lists other files"),
        (lambda listed: listed["resources"].append(listed["resources"][0]), "lists other files"),
        (lambda listed: listed.update(resources={}), "lists other files"),
        (lambda listed: listed.update(resources=[3]), "lacks entries of a release"),
        (lambda listed: listed.update(licenses=[{"name": "CC0-1.0"}]), "names another source, licence or contact"),
    ],
)
def test_a_list_of_other_files_or_of_another_licence_is_found(release, change, message):
    listed = json.loads((release.path / PACKAGE).read_bytes())
    change(listed)
    assert refusal(release, PACKAGE, json.dumps(listed).encode()).startswith(f"{PACKAGE} {message}")


def test_each_file_of_a_release_must_be_listed(release, tmp_path):
    assert refusal(release, PACKAGE, None) == f"{SUMS} does not name {PACKAGE}, which a release of this kind has"
    assert refusal(release, ROWS, None) == f"{SUMS} does not name every file of a release"
    folder = open_release(shutil.copytree(release.path, tmp_path / "release"))
    (folder.path / PARQUET).rename(folder.path / "daily_averages_more.parquet")
    package = folder.path / PACKAGE
    package.write_text(package.read_text().replace(PARQUET, "daily_averages_more.parquet"))
    reseal(folder.path)
    with pytest.raises(InputError, match=f"^{PARQUET}: the folder lacks this table"):
        folder.verify()


def test_a_folder_that_is_no_release_is_one_line(tmp_path):
    with pytest.raises(InputError, match="is not a folder"):
        open_release(tmp_path / "none")
    with pytest.raises(InputError, match=r"is not a release folder; name the release folder itself$"):
        open_release(tmp_path)
    for read in (ReleaseFolder.verify, ReleaseFolder.table, lambda folder: folder.statement):
        with pytest.raises(InputError, match=r"SHA256SUMS is missing|ask for the release again"):
            read(ReleaseFolder(tmp_path))


def test_a_release_of_before_there_was_a_list_of_files(tmp_path):
    earlier = open_release(shutil.copytree(EARLIER, tmp_path / "release"))
    earlier.verify()
    assert earlier.statement["schema"] == "agedp-statement-1"
    content = (earlier.path / STATEMENT).read_bytes()
    assert refusal(earlier, STATEMENT, content.replace(b'"1.5"', b'"1.4"'))


def test_an_edited_ledger_is_not_believed(release, published_twice, tmp_path):
    path = shutil.copy(published_twice.folder / "ledger.sqlite", tmp_path / "ledger.sqlite")
    with closing(sqlite3.connect(path)) as raw:
        raw.execute("DROP TRIGGER release_update")
        raw.execute("""UPDATE release SET "values" = '[1]' WHERE day = '2013-01-02'""")
        raw.commit()
    with Ledger.open(f"sqlite:///{path}") as ledger, pytest.raises(LedgerError, match="was changed or damaged"):
        verify_against(release, ledger)
