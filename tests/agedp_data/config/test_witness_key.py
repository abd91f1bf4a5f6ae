"""[output] witness: where it may lie, what the contract keeps of it, and how it is added and removed."""

from __future__ import annotations

from pathlib import Path

import pytest

from agedp_data.config import contract_part, parse
from agedp_data.config.amendment import amendment
from agedp_data.config.contract import comparable
from agedp_data.errors import RunFileError
from tests.minimal import run_file

FOLDERS = {"release": "out/release", "confidential": "out/inside", "ledger": "sqlite:///book/ledger.sqlite"}
SERVER = "postgresql://agedp@db.internal"
ON_SERVER = {**FOLDERS, "ledger": f"{SERVER}/london"}
APART = "name a place that no backup puts back together with the ledger"
A_PATH = "must be a path, or begin with s3://"


def read(output, witness):
    return parse(run_file(output={**output, "witness": witness}), base=Path("/srv/agedp"), name="run.toml")


@pytest.mark.parametrize(
    ("output", "witness", "resolved"),
    [
        (FOLDERS, "far/w", "/srv/agedp/far/w"),
        (FOLDERS, "../elsewhere/w", "/srv/agedp/../elsewhere/w"),
        (FOLDERS, "s3://bucket/w", "s3://bucket/w"),
        (FOLDERS, f"{SERVER}/london#row_1", f"{SERVER}/london#row_1"),
        (ON_SERVER, "postgresql://agedp@other.internal/london", "postgresql://agedp@other.internal/london"),
        (ON_SERVER, f"{SERVER}:5433/london", f"{SERVER}:5433/london"),
        (ON_SERVER, f"{SERVER}/witness", f"{SERVER}/witness"),
    ],
)
def test_a_witness_lies_wherever_the_ledger_does_not(output, witness, resolved):
    assert read(output, witness).output.witness == resolved


@pytest.mark.parametrize(
    ("output", "witness", "message"),
    [
        (FOLDERS, "book/w", f"lies in the ledger's folder; {APART}"),
        (FOLDERS, "far/../book/below/w", f"lies in the ledger's folder; {APART}"),
        (FOLDERS, "out/release/w", f"lies in the release folder; {APART}"),
        (FOLDERS, "/srv/agedp/out/inside/w", f"lies in the confidential folder; {APART}"),
        ({**FOLDERS, "release": "s3://b/out"}, "s3://b/out/w", f"lies in the release folder; {APART}"),
        (ON_SERVER, "postgresql+psycopg://me@db.internal:5432/london#w", f"lies in the ledger's database; {APART}"),
        (ON_SERVER, "postgresql:///london?host=db.internal", f"lies in the ledger's database; {APART}"),
        (FOLDERS, "s3://bucket", "must name an object"),
        (FOLDERS, "s3://bucket/w?versionId=1", "must end with the name of the object"),
        (FOLDERS, "postgresql://host", "must name an object"),
        (FOLDERS, "postgresql://host/database#a b", "must name its row behind #"),
        (FOLDERS, "sqlite:///w", A_PATH),
        (FOLDERS, "postgresql://me:secret@host/database", "has a password in it"),
        (FOLDERS, "postgresql://host/database?password=secret", "has a password in it"),
        (FOLDERS, "", "must not be empty"),
    ],
)
def test_another_place_is_refused_in_one_line(output, witness, message):
    with pytest.raises(RunFileError) as error:
        read(output, witness)
    assert "[output] witness" in str(error.value)
    assert message in str(error.value)
    assert "secret" not in f"{error.value}{error.value.private}"
    assert "\n" not in str(error.value)


def test_the_contract_holds_that_a_witness_is_used_not_where():
    without, first, second = (
        contract_part(read(FOLDERS, place), model=None) for place in (None, "far/w", "s3://bucket/w")
    )
    assert "output" not in without
    assert first == second == {**without, "output": {"witness": "required"}, "form": 2, "needs": "0.2"}
    for pair in ((without, first), (first, without)):
        [change] = amendment(*comparable(*pair))
        assert (change.key, change.verdict) == ("output.witness", "allowed")
        assert "without a witness an older ledger" in change.why
    for odd in ('"perhaps"', "1"):
        [change] = amendment(first, {**first, "output": {"witness": odd}})
        assert change.verdict == "refused"
