"""verify: no byte, file or figure of a release can be changed unnoticed, nor consistently with its checksums alone."""

from __future__ import annotations

import copy
import json
import math
import shutil
from datetime import date, timedelta
from itertools import product
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from agedp.release_folder.release_folder import open_release
from agedp_data.errors import InputError
from tests.agedp.release_folder.resealed import reseal

FIRST = date(2013, 1, 1)
EARLIER = Path(__file__).with_name("earlier_release")
PROMISE = 'notion = "w-event"\nwindow_days = 2\nepsilon_per_window = 1\nspend = "remaining"\nmax_day_epsilon = 0.5\n'
PARQUET, STATEMENT, WORDS = "daily_averages.parquet", "statement.json", "STATEMENT.md"
PACKAGE = "datapackage.json"


@pytest.fixture(scope="module")
def published(houses, tmp_path_factory):
    """Four published days of three homes."""
    house = houses(tmp_path_factory.mktemp("house"))
    days = [FIRST + timedelta(days=i) for i in range(4)]
    house.fill(days)
    house.write(FIRST, days[-1], promise=PROMISE + "epsilon_total = 9\n")
    house.run(today=date(2026, 1, 1))
    return house.folder / "release"


@pytest.fixture
def release(published, tmp_path):
    """A copy of it to spoil."""
    found = open_release(shutil.copytree(published, tmp_path / "release"))
    found.verify()
    return found


@pytest.mark.parametrize("places", [12, pytest.param(40, marks=pytest.mark.long)])
def test_no_single_byte_can_be_changed_or_lost(release, places):
    for path in sorted(release.path.iterdir()):
        content = path.read_bytes()
        every = 1 if path.name == "SHA256SUMS" else len(content) // places
        for place in range(0, len(content), every):
            for byte in {content[place] ^ 1, content[place] ^ 7, ord("\r"), ord("\f"), ord(" ")} - {content[place]}:
                path.write_bytes(content[:place] + bytes([byte]) + content[place + 1 :])
                with pytest.raises(InputError):
                    release.verify()
        for shorter in (content[:-1], content[1:], content + b"\n", b""):
            path.write_bytes(shorter)
            with pytest.raises(InputError):
                release.verify()
        path.write_bytes(content)
    release.verify()


@pytest.mark.parametrize("name", [PARQUET, STATEMENT, WORDS, PACKAGE, "SHA256SUMS"])
def test_a_missing_file_is_named(release, name):
    (release.path / name).unlink()
    with pytest.raises(InputError, match=name):
        release.verify()


def edit_rows(release, change, *, metadata=None):
    table = pq.ParquetFile(release.path / PARQUET).read()
    rows = table.to_pylist()
    rows = change(rows) or rows
    schema = table.schema if metadata is None else table.schema.with_metadata(metadata(table.schema.metadata))
    pq.write_table(pa.Table.from_pylist(rows, schema=schema), release.path / PARQUET)
    reseal(release.path)


def test_resealing_an_unchanged_table_is_no_change(release):
    edit_rows(release, lambda rows: None)
    release.verify()


EDITS = {
    "noisy_sum_wh": [lambda x: x + 1],
    "mean_kwh": [lambda x: x + 0.001],
    "households": [lambda x: x + 1, lambda x: 0, lambda x: -3],
    "noise_sd_kwh": [lambda x: x * 0.99, lambda x: x * 1.01, lambda x: math.nan],
    "low_kwh": [lambda x: x + 0.01, lambda x: x - 0.01],
    "high_kwh": [lambda x: x - 0.01, lambda x: math.inf],
    "epsilon": [lambda x: x / 2, lambda x: x + 1e-9, lambda x: -x, lambda x: math.nan],
    "version": [lambda x: 2, lambda x: 0],
    "published_on": [lambda x: x + timedelta(days=1), lambda x: date(2013, 1, 2)],
    "day": [lambda x: x + timedelta(days=1), lambda x: x - timedelta(days=1)],
    "revision": [lambda x: 1],
}


@pytest.mark.parametrize("column", EDITS)
def test_an_edited_value_differs_from_the_others(release, column):
    published = (release.path / PARQUET).read_bytes()
    for edit, place in product(EDITS[column], (0, 3)):

        def change(rows, edit=edit, place=place):
            rows[place][column] = edit(rows[place][column])

        (release.path / PARQUET).write_bytes(published)
        edit_rows(release, change)
        problem = rf"^{PARQUET}: 2013-01-0{place + 1}, column {column}: .* differs from the l"
        with pytest.raises(InputError, match=problem):
            release.verify()


@pytest.mark.parametrize(("column", "value"), [("group", "homes of others"), ("noisy_sum_wh", 5)])
def test_a_figure_that_was_changed_with_all_that_follows_from_it_is_told_by_the_rows_of_the_ledger(
    release, column, value
):
    def change(rows):
        for row in rows:
            kwh = 1000.0 * row["households"]
            half = round(row["noisy_sum_wh"] - row["low_kwh"] * kwh)
            row[column] = value
            drawn = row["noisy_sum_wh"]
            row |= {"mean_kwh": drawn / kwh, "low_kwh": (drawn - half) / kwh, "high_kwh": (drawn + half) / kwh}

    edit_rows(release, change)
    with pytest.raises(InputError, match=f"{PARQUET}: 2013-01-01, column {column}: {value} differs from the ledger's "):
        release.verify()


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda rows: rows[:-1], "2013-01-04: the table lacks this row"),
        (lambda rows: rows[1:], "2013-01-01: the table lacks this row"),
        (lambda rows: [*rows, rows[-1]], "2013-01-04: the ledger lacks this row"),
        (lambda rows: [*rows, {**rows[-1], "day": date(2013, 1, 5)}], "2013-01-05: the ledger lacks this row"),
        (lambda rows: rows[::-1], "2013-01-01, column day: 2013-01-04 differs from the ledger's 2013-01-01"),
    ],
)
def test_a_lost_doubled_or_misplaced_row_is_named(release, change, problem):
    edit_rows(release, change)
    with pytest.raises(InputError, match=f"^{PARQUET}: {problem}"):
        release.verify()


def test_a_name_in_a_tampered_table_cannot_command_the_terminal(release):
    edit_rows(release, lambda rows: [{**row, "group": "\x1b[2J"} for row in rows])
    with pytest.raises(InputError, match="column group") as refused:
        release.verify()
    assert str(refused.value).isprintable()


def test_a_loss_that_its_noise_does_not_have_is_found_in_the_rows_of_the_ledger(release):
    rows = release.path / "ledger_rows.jsonl"
    rows.write_text(rows.read_text().replace('\\"loss\\":500000000', '\\"loss\\":400000000', 1))
    reseal(release.path)
    with pytest.raises(InputError, match=r"jsonl: 2013-01-01, series daily_mean: the loss 0\.4 differs from "):
        release.verify()


def test_a_file_without_a_series_and_a_series_without_its_file_are_named(release):
    (release.path / PARQUET).rename(release.path / "daily_averages_more.parquet")
    (release.path / PACKAGE).write_text(
        (release.path / PACKAGE).read_text().replace(PARQUET, "daily_averages_more.parquet")
    )
    reseal(release.path)
    with pytest.raises(InputError, match=f"^{PARQUET}: the folder lacks this table"):
        release.verify()


@pytest.mark.parametrize(
    "metadata",
    [
        lambda old: {},
        lambda old: {b"agedp": b"{"},
        lambda old: {b"agedp": b"[]"},
        lambda old: {b"agedp": b"{}"},
        lambda old: {b"agedp": old[b"agedp"].replace(b'"clamp_kwh": "50"', b'"clamp_kwh": "5"')},
        lambda old: {b"agedp": old[b"agedp"].replace(b'"epsilon": "0.5"', b'"epsilon": "0.4"')},
        lambda old: {b"agedp": old[b"agedp"].replace(b'"coverage": "0.95"', b'"coverage": "0.99"')},
        lambda old: {b"agedp": old[b"agedp"].replace(b'"head": "', b'"head": "0')},
    ],
)
def test_an_edited_guarantee_is_found(release, metadata):
    edit_rows(release, lambda rows: None, metadata=metadata)
    with pytest.raises(InputError):
        release.verify()


def edited(claim, path, value):
    *above, last = path
    here = claim
    for key in above:
        here = here[key]
    here[last] = value


STATEMENT_EDITS = [
    (("figures", 0, "epsilon"), "0.1"),
    (("figures", 1, "epsilon"), "0.1"),
    (("figures",), []),
    (("days", "released"), 5),
    (("days", "first"), "2012-12-31"),
    (("days", "last"), "2013-01-05"),
    (("days", "skipped"), ["2013-01-02"]),
    (("published", "last"), "2026-01-02"),
    (("published",), None),
    (("contract", "promise", "epsilon_per_window"), "0.1"),
    (("contract",), "none"),
    (("contract", "population", "min_households"), 4),
    (("ledger", "head"), "0" * 64),
    (("population",), "others"),
    (("rehearsal",), 1),
    (("version",), 0),
    (("ending", "spent"), "0.1"),
    (("figures", 0, "factor"), "1.01"),
    (("figures", 1, "limit"), "0.1"),
    (("figures", 2, "epsilon"), "1e999999999"),
    (("schema",), "agedp-statement-0"),
]


def test_an_edited_statement_is_found(release):
    for path, value in STATEMENT_EDITS:
        statement = copy.deepcopy(release.statement)
        edited(statement, path, value)
        published = (release.path / STATEMENT).read_bytes()
        (release.path / STATEMENT).write_text(json.dumps(statement))
        reseal(release.path)
        with pytest.raises(InputError):
            release.verify()
        (release.path / STATEMENT).write_bytes(published)


def test_a_total_edited_everywhere_but_in_the_rows_is_found(release):
    claim = release.statement
    total = claim["figures"][1]["epsilon"]
    claim["figures"][1] |= {"epsilon": "0.01", "factor": "1.02"}
    claim["ending"]["spent"] = "0.01"
    (release.path / STATEMENT).write_text(json.dumps(claim))
    words = release.path / WORDS
    words.write_text(words.read_text().replace(f"| {total} |", "| 0.01 |"))
    edit_rows(
        release,
        lambda rows: None,
        metadata=lambda kept: {
            b"agedp": json.dumps({**json.loads(kept[b"agedp"]), "figures": claim["figures"]}).encode()
        },
    )
    with pytest.raises(InputError, match="different days or losses"):
        release.verify()


def test_words_that_give_other_figures_are_found(release):
    words = release.path / WORDS
    total = release.statement["figures"][1]["epsilon"]
    words.write_text(words.read_text().replace(f"| {total} |", "| 0.01 |"))
    reseal(release.path)
    with pytest.raises(InputError, match=WORDS):
        release.verify()


def test_other_columns_are_refused(release):
    table = pq.ParquetFile(release.path / PARQUET).read()
    for other in (
        table.drop_columns(["epsilon"]),
        table.append_column("x", pa.array([1] * 4)),
        table.select([1, 0, *range(2, 12)]),
    ):
        pq.write_table(other, release.path / PARQUET)
        reseal(release.path)
        with pytest.raises(InputError, match="other columns"):
            release.verify()


def test_what_is_no_release_is_one_line(tmp_path):
    with pytest.raises(InputError, match="is not a folder"):
        open_release(tmp_path / "none")
    with pytest.raises(InputError, match="SHA256SUMS is missing"):
        open_release(tmp_path).verify()
    with pytest.raises(InputError, match="ask for the release again"):
        open_release(tmp_path).table()
    with pytest.raises(InputError, match="ask for the release again"):
        _ = open_release(tmp_path).statement


def without_package(release):
    (release.path / PACKAGE).unlink()
    reseal(release.path, repack=False)


def test_a_release_without_its_list_of_files_is_found_unless_it_is_of_before_there_was_one(release):
    without_package(release)
    with pytest.raises(InputError, match=r"SHA256SUMS does not name datapackage\.json"):
        release.verify()
    open_release(EARLIER).verify()


def resource(listed, path=PARQUET):
    return next(one for one in listed["resources"] if one["path"] == path)


PACKAGE_EDITS = [
    (lambda listed: listed["resources"].pop(), "other files"),
    (lambda listed: listed["resources"].append(listed["resources"][0]), "other files"),
    (lambda listed: resource(listed).update(path="other.parquet"), "other files"),
    (lambda listed: resource(listed).update(bytes=1), f"size or checksum of {PARQUET}"),
    (lambda listed: resource(listed, WORDS).update(hash="sha256:" + "0" * 64), f"size or checksum of {WORDS}"),
    (lambda listed: resource(listed)["schema"]["fields"].pop(), "other columns"),
    (lambda listed: resource(listed)["schema"]["fields"][4].update(unit="kWh"), "other columns"),
    (lambda listed: resource(listed)["schema"]["fields"][0].update(type="string"), "other columns"),
    (lambda listed: listed.update(licenses=[{"name": "CC0-1.0"}]), "another source, licence or contact"),
    (lambda listed: listed.pop("resources"), "lacks entries of a release"),
    (lambda listed: listed.update(resources={}), "other files"),
    (lambda listed: listed.update(resources=[3]), "lacks entries of a release"),
]


def test_a_list_of_files_that_differs_from_the_files_is_found(release):
    published = (release.path / PACKAGE).read_text()
    for edit, message in PACKAGE_EDITS:
        listed = json.loads(published)
        edit(listed)
        (release.path / PACKAGE).write_text(json.dumps(listed))
        reseal(release.path, repack=False)
        with pytest.raises(InputError, match=rf"datapackage\.json .*{message}"):
            release.verify()


def test_other_words_about_the_same_files_are_no_fault(release):
    listed = json.loads((release.path / PACKAGE).read_text())
    listed["description"] = resource(listed)["schema"]["fields"][0]["description"] = "said otherwise"
    (release.path / PACKAGE).write_text(json.dumps(listed))
    reseal(release.path, repack=False)
    release.verify()
