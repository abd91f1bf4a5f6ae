"""Tables of the house that are not what was written are refused in one line that helps, and nothing is drawn."""

from __future__ import annotations

import json
from datetime import date, timedelta

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from agedp.local_files import atomic_files
from agedp_data import table_schemas
from agedp_data.errors import InputError

FIRST = date(2013, 1, 1)
DECLARED = {name: found for name, found in vars(table_schemas).items() if isinstance(found, pa.Schema)}
CONFIDENTIAL = sorted(DECLARED.keys() - {"DAILY_AVERAGES", "DAILY_DISTRIBUTION"})
NOTES, MEANS = "released_rosters.parquet", "true_means.parquet"


def filled(schema: pa.Schema) -> pa.Table:
    """Return a table of one row."""
    columns = []
    for field in schema:
        kind = field.type
        if pa.types.is_dictionary(kind):
            columns.append(pa.DictionaryArray.from_arrays(pa.array([0], kind.index_type), pa.array(["x"])))
        elif pa.types.is_list(kind):
            columns.append(pa.array([[1]], kind))
        elif pa.types.is_string(kind):
            columns.append(pa.array(["x"]))
        elif pa.types.is_boolean(kind):
            columns.append(pa.array([True]))
        else:
            columns.append(pa.array([1], pa.int32() if pa.types.is_date32(kind) else kind).cast(kind))
    return pa.Table.from_arrays(columns, schema=schema)


def renamed(table: pa.Table) -> pa.Table:
    return table.rename_columns(["other", *table.column_names[1:]])


def retyped(table: pa.Table) -> pa.Table:
    return table.set_column(table.num_columns - 1, table.column_names[-1], pa.array([b"x"]))


def with_a_null(table: pa.Table) -> pa.Table:
    return table.set_column(0, table.column_names[0], pa.nulls(1, table.schema.types[0]))


CHANGES = {
    "a column less": lambda table: table.drop_columns(table.column_names[-1:]),
    "a column more": lambda table: table.append_column("more", pa.array([1])),
    "another name": renamed,
    "another type": retyped,
    "a null": with_a_null,
    "another order": lambda table: table.select(table.column_names[::-1]),
}


@pytest.mark.parametrize("name", CONFIDENTIAL)
def test_a_table_is_read_as_it_was_declared_and_no_otherwise(name, tmp_path):
    schema, path = DECLARED[name], tmp_path / "home A.parquet"
    table = filled(schema)
    atomic_files.write_table(path, table)
    assert atomic_files.read_table(path, schema).equals(table)
    assert atomic_files.read_table(path, schema, columns=[schema.names[0]]).equals(table.select([0]))
    for change in CHANGES.values():
        pq.write_table(change(table), path)
        with pytest.raises(atomic_files.DamagedFile) as caught:
            atomic_files.read_table(path, schema, remedy="weep")
        assert str(caught.value).endswith("; weep")
        assert "home A" not in str(caught.value)
        assert "home A" in caught.value.private


def test_what_the_system_does_not_let_be_read_is_not_called_damaged(tmp_path, monkeypatch):
    def refusing(*_args, **_options):
        raise PermissionError(13, "of home A")

    path = tmp_path / "home A.parquet"
    atomic_files.write_table(path, filled(table_schemas.SUMS))
    monkeypatch.setattr(pq, "ParquetFile", refusing)
    with pytest.raises(InputError, match=r"cannot be read.*Permission denied.*let this user read it") as caught:
        atomic_files.read_table(path, table_schemas.SUMS)
    assert not isinstance(caught.value, atomic_files.DamagedFile)
    assert "home A" not in str(caught.value)


@pytest.fixture
def homes(house):
    """Three homes of an archive of four days; two were released."""
    days = [FIRST + timedelta(days=i) for i in range(4)]
    house.fill(days)
    house.write(FIRST, days[-1])
    run(house, 2)
    return house


def run(house, days):
    return house.run(today=FIRST + timedelta(days=days))


def edited(house, name, change):
    path = house.folder / "confidential" / name
    found = pq.read_table(path)
    pq.write_table(change(found), path)


def column(name, *values):
    return lambda table: table.set_column(
        table.column_names.index(name), name, pa.array(values, table.schema.field(name).type)
    )


def far_away(table: pa.Table) -> pa.Table:
    """Let a day lie in the year 10,000."""
    days = pa.array([3_000_000] * table.num_rows, pa.int32()).cast(pa.date32())
    return table.set_column(table.column_names.index("day"), "day", days)


def before_ledgers_were_told_apart(table: pa.Table) -> pa.Table:
    """Return the notes as they once were."""
    return table.drop_columns(["ledger", "rehearsal", "released"])


@pytest.mark.parametrize(
    "change",
    [
        before_ledgers_were_told_apart,
        far_away,
        column("day", None, None),
        column("day", FIRST, FIRST),
        column("groups", "{}", "no JSON"),
        column("groups", "{}", "[1]"),
        column("groups", "{}", '{"tariff": 1}'),
        column("groups", "{}", "[" * 100_000),
        column("released", True, None),
    ],
    ids=["older", "far", "null days", "twice", "groups", "list", "number", "deep", "null"],
)
def test_notes_that_are_not_what_was_written_stop_the_run(homes, change):
    good = (homes.folder / "confidential" / NOTES).read_bytes()
    edited(homes, NOTES, change)
    (homes.folder / "ledger.sqlite").rename(homes.folder / "older.sqlite")  # the notes alone know what was released
    (homes.folder / "release").rename(homes.folder / "elsewhere")
    with pytest.raises(atomic_files.DamagedFile, match=f"{NOTES}.* is damaged; put back a copy of it, or remove it"):
        run(homes, 4)
    assert not (homes.folder / "ledger.sqlite").exists()
    (homes.folder / "confidential" / NOTES).write_bytes(good)
    (homes.folder / "older.sqlite").rename(homes.folder / "ledger.sqlite")
    run(homes, 4)
    assert len(homes.rows()) == 4


@pytest.mark.parametrize("change", [renamed, far_away, column("day", None, FIRST), column("true_mean_kwh", None, 1.0)])
def test_damaged_true_means_are_computed_again(homes, change):
    path = homes.folder / "confidential" / MEANS
    before = pq.read_table(path).to_pylist()
    edited(homes, MEANS, change)
    content = path.read_bytes()
    work = run(homes, 4)
    assert len(homes.rows()) == 4
    assert pq.read_table(path).to_pylist()[:2] == before
    assert path.with_name(f"{MEANS}.damaged").read_bytes() == content
    [notice] = work.notices
    assert f"{MEANS} was damaged; it is renamed to {MEANS}.damaged" in notice.private
    assert notice.public == "a confidential record was damaged and begins anew"


def live(house):
    """Two nights of a live population, each in a file of its own; the first is released."""
    house.roster([(home, FIRST, None) for home in "ABC"])
    for number in range(2):
        readings = {(home, FIRST + timedelta(days=number), slot): 200 for home in "ABC" for slot in range(48)}
        house.london(readings, name=f"night-{number}.csv")
    promise = 'notion = "classical"\nage_days = 1\nepsilon_per_day = 0.5\nmax_day_epsilon = 0.5\nepsilon_total = 9\n'
    house.write(FIRST, FIRST + timedelta(days=40), mode="live", promise=promise)
    run(house, 2)
    return house.folder / "confidential" / "store"


def test_a_delivery_that_was_cleared_away_counts_or_stops_the_run_when_its_manifest_is_damaged(house):
    store = live(house)
    kept = {path: path.read_bytes() for path in (house.folder / "input").iterdir()}
    manifests = {path: path.read_bytes() for path in (store / "files").iterdir()}
    for path in kept:
        path.unlink()
    for path in manifests:
        path.write_text("[" * 100_000)
    with pytest.raises(InputError, match=r"the manifests of 2 stored files are damaged.* put the files back"):
        run(house, 3)
    assert len(house.rows()) == 1
    for path, content in kept.items():
        path.write_bytes(content)
    [row] = run(house, 3).released
    assert row.day == str(FIRST + timedelta(days=1))
    assert {json.loads(path.read_bytes())["parts"][0]["kept"] for path in manifests} == {144}


@pytest.mark.parametrize("content", [b"", b"\xff", b"2013-1", b"soon"])
def test_nobody_guesses_which_readings_were_let_go(house, content):
    store = live(house)
    (store / "forgotten_before").write_bytes(content)
    with pytest.raises(InputError, match=r"forgotten_before.* damaged; put back a copy"):
        run(house, 3)
    (store / "forgotten_before").write_text("2013-01")
    assert len(run(house, 3).released) == 1
