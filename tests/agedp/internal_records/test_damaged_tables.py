"""Confidential tables that are not what was written are refused in one line that helps, and nothing is drawn."""

from __future__ import annotations

import json
from datetime import date, timedelta

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from agedp.internal_records.bookkeeping import take_over
from agedp.local_files import atomic_files
from agedp.local_files.books import Books
from agedp_data import table_schemas
from agedp_data.errors import LedgerBehind
from tests.books import contents, forget

FIRST = date(2013, 1, 1)
DECLARED = {name: found for name, found in vars(table_schemas).items() if isinstance(found, pa.Schema)}
CONFIDENTIAL = sorted(DECLARED.keys() - {"DAILY_AVERAGE_SMOOTHED"})
ROSTERS = "released_rosters.parquet"


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


CHANGES = [
    lambda table: table.drop_columns(table.column_names[-1:]),
    lambda table: table.append_column("more", pa.array([1])),
    renamed,
    lambda table: table.set_column(table.num_columns - 1, table.column_names[-1], pa.array([b"x"])),
    lambda table: table.set_column(0, table.column_names[0], pa.nulls(1, table.schema.types[0])),
    lambda table: table.select(table.column_names[::-1]),
]


@pytest.mark.parametrize("name", CONFIDENTIAL)
def test_a_table_is_read_as_it_was_declared_and_no_otherwise(name, tmp_path):
    schema, path = DECLARED[name], tmp_path / "home A.parquet"
    table = filled(schema)
    atomic_files.write_table(path, table)
    assert atomic_files.read_table(path, schema).equals(table)
    assert atomic_files.read_table(path, schema, columns=[schema.names[0]]).equals(table.select([0]))
    for change in CHANGES:
        pq.write_table(change(table), path)
        with pytest.raises(atomic_files.DamagedFile) as caught:
            atomic_files.read_table(path, schema, remedy="weep")
        assert str(caught.value).endswith("; weep")
        assert "home A" not in str(caught.value)
        assert "home A" in caught.value.private


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


def column(name, *values):
    return lambda table: table.set_column(
        table.column_names.index(name), name, pa.array(values, table.schema.field(name).type)
    )


def far_away(table: pa.Table) -> pa.Table:
    """Let a day lie in the year 10,000."""
    days = pa.array([3_000_000] * table.num_rows, pa.int32()).cast(pa.date32())
    return table.set_column(table.column_names.index("day"), "day", days)


def of_0_2(homes) -> pa.Table:
    """Take the roster history out of the book, and return it as 0.2 wrote it."""
    recorded = [json.loads(line) for line in contents(homes.folder / "confidential", "released_rosters").values()]
    forget(homes.folder / "confidential", "released_rosters")
    texts = {"day": lambda line: date.fromisoformat(line["day"]), "groups": lambda line: json.dumps(line["groups"])}
    lines = [{**line, **{name: of(line) for name, of in texts.items()}} for line in recorded]
    return table_schemas.table_from_rows(table_schemas.RELEASED_ROSTERS, lines)


def test_a_roster_history_of_0_2_is_taken_over_as_it_was_written_or_stops_the_run(homes):
    path, before = homes.folder / "confidential" / ROSTERS, contents(homes.folder / "confidential", "released_rosters")
    table = of_0_2(homes)
    (homes.folder / "ledger.sqlite").rename(homes.folder / "older.sqlite")  # the history alone knows what was released
    (homes.folder / "release").rename(homes.folder / "elsewhere")
    for change in (
        lambda table: table.drop_columns(["ledger", "rehearsal", "released"]),  # as it once was
        far_away,
        column("day", None, None),
        column("day", FIRST, FIRST),
        *(column("groups", "{}", text) for text in ("no JSON", "[1]", '{"tariff": 1}', "[" * 100_000)),
        column("released", True, None),
    ):
        pq.write_table(change(table), path)
        with pytest.raises(atomic_files.DamagedFile, match=f"{ROSTERS}.* is damaged; put back a copy of it, or remove"):
            run(homes, 4)
        assert not (homes.folder / "ledger.sqlite").exists()
    pq.write_table(table, path)
    with pytest.raises(LedgerBehind, match="was released from another ledger"):
        run(homes, 4)
    assert contents(homes.folder / "confidential", "released_rosters") == before
    assert not path.exists()
    (homes.folder / "older.sqlite").rename(homes.folder / "ledger.sqlite")
    run(homes, 4)
    assert len(homes.rows()) == 4


def test_the_records_of_0_2_are_taken_over_once_and_then_gone(homes, caplog):
    confidential, names = homes.folder / "confidential", ("true_means", "coverage", "ledger_checkpoints")
    before = {name: contents(confidential, name) for name in names}
    for name in names[:2]:
        lines = table_schemas.table_from_rows(getattr(table_schemas, name.upper()), homes.records(name))
        atomic_files.write_table(confidential / f"{name}.parquet", lines)
    (confidential / "ledger_checkpoint.json").write_bytes(b"".join(before["ledger_checkpoints"].values()))
    (confidential / "publication.json").write_bytes(b"{}")
    earlier = {path: path.read_bytes() for path in confidential.iterdir() if path.suffix in (".parquet", ".json")}
    forget(confidential, *names)
    for _ in range(2):  # a run that is killed before it removes the files meets them again
        for path, content in earlier.items():
            path.write_bytes(content)
        take_over(Books(confidential / "books.sqlite"))
        assert {name: contents(confidential, name) for name in names} == before
        assert not [path for path in confidential.iterdir() if path.name.startswith(("true_", "cov", "led", "pub"))]
    (confidential / "true_means.parquet").write_bytes(b"spoilt")
    take_over(Books(confidential / "books.sqlite"))
    assert (confidential / "true_means.parquet.damaged").exists()
    assert "a confidential record was damaged and begins anew" in caplog.text
