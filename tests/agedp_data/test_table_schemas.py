"""Tables are what they were declared to be."""

from __future__ import annotations

from datetime import date

import pyarrow as pa
import pytest

from agedp_data import table_schemas
from agedp_data.series.series import DERIVED_TABLES, RESULT_TABLES
from agedp_data.table_schemas import DAYS, SETTLED, table_from_columns


def test_a_table_takes_its_columns_and_no_others():
    columns = {"file": [0, 1], "row": [1, 2], "reason": [5, 6]}
    assert table_from_columns(SETTLED, **columns).schema.equals(SETTLED, check_metadata=True)
    for wrong in ({"file": [0]}, {**columns, "more": [1, 2]}):
        with pytest.raises(ValueError, match="missing or unknown"):
            table_from_columns(SETTLED, **wrong)
    ids = pa.array(["A", "B"]).dictionary_encode()
    table = table_from_columns(DAYS, household_id=ids, day=[15706, 15707], energy_wh=[1, 2], readings=[48, 46])
    assert table["day"].to_pylist() == [date(2013, 1, 1), date(2013, 1, 2)]


def test_every_column_says_what_it_means_and_is_never_empty():
    declared = [*vars(table_schemas).values(), *(table.schema for table in (*RESULT_TABLES, *DERIVED_TABLES))]
    for schema in (schema for schema in declared if isinstance(schema, pa.Schema)):
        for field in schema:
            text = field.metadata[b"description"].decode()
            assert text, field
            assert field.nullable == ("; empty if" in text), field
            assert "Wh" in text or not field.name.startswith("energy_wh"), field
