"""[output] witness: where it may lie, what the contract keeps of it, and how it is added and removed."""

from __future__ import annotations

from pathlib import Path

import pytest

from agedp_data.config import RunFile, contract_part, parse
from agedp_data.config.contract import amendment
from agedp_data.config.contract_values import comparable
from agedp_data.errors import RunFileError
from tests.minimal import run_file

FOLDERS = {"release": "out/release", "confidential": "out/inside", "ledger": "sqlite:///book/ledger.sqlite"}
ON_SERVER = {**FOLDERS, "ledger": "postgresql://agedp@db.internal/london"}
APART = "name a place that no backup puts back together with the ledger"


def read(output: dict[str, str], witness: str | None) -> RunFile:
    return parse(run_file(output={**output, "witness": witness}), base=Path("/srv/agedp"), name="run.toml")


@pytest.mark.parametrize(
    ("output", "witness", "resolved"),
    [
        (FOLDERS, "far/w", "/srv/agedp/far/w"),
        (FOLDERS, "../elsewhere/w", "/srv/agedp/../elsewhere/w"),
        (FOLDERS, "/mnt/disk/w", "/mnt/disk/w"),
        (FOLDERS, "s3://bucket/w", "s3://bucket/w"),
        (FOLDERS, "postgresql://agedp@db.internal/london#row_1", "postgresql://agedp@db.internal/london#row_1"),
        (ON_SERVER, "postgresql://agedp@other.internal/london", "postgresql://agedp@other.internal/london"),
        (ON_SERVER, "postgresql://agedp@db.internal:5433/london", "postgresql://agedp@db.internal:5433/london"),
        (ON_SERVER, "postgresql://agedp@db.internal/witness", "postgresql://agedp@db.internal/witness"),
    ],
)
def test_a_witness_lies_wherever_the_ledger_does_not(output: dict[str, str], witness: str, resolved: str) -> None:
    assert read(output, witness).output.witness == resolved


@pytest.mark.parametrize(
    ("output", "witness", "message"),
    [
        (FOLDERS, "book/w", f"lies in the ledger's folder; {APART}"),
        (FOLDERS, "far/../book/below/w", f"lies in the ledger's folder; {APART}"),
        (FOLDERS, "out/release/w", f"lies in the release folder; {APART}"),
        (FOLDERS, "/srv/agedp/out/inside/w", f"lies in the confidential folder; {APART}"),
        ({**FOLDERS, "release": "s3://bucket/out"}, "s3://bucket/out/w", f"lies in the release folder; {APART}"),
        (ON_SERVER, "postgresql+psycopg://me@db.internal:5432/london#w", f"lies in the ledger's database; {APART}"),
        (ON_SERVER, "postgresql:///london?host=db.internal", f"lies in the ledger's database; {APART}"),
        (FOLDERS, "s3://bucket", "must name an object"),
        (FOLDERS, "s3://bucket/w?versionId=1", "must end with the name of the object"),
        (FOLDERS, "postgresql://host", "must name an object"),
        (FOLDERS, "postgresql://host/database#a b", "must name its row behind #"),
        (FOLDERS, "sqlite:///w", "must be a path, or begin with s3:// or postgresql://"),
        (FOLDERS, "https://host/w", "must be a path, or begin with s3:// or postgresql://"),
        (FOLDERS, "postgresql://me:secret@host/database", "has a password in it"),
        (FOLDERS, "postgresql://host/database?password=secret", "has a password in it"),
        (FOLDERS, "", "must not be empty"),
    ],
)
def test_another_place_is_refused_in_one_line(output: dict[str, str], witness: str, message: str) -> None:
    with pytest.raises(RunFileError) as error:
        read(output, witness)
    assert "[output] witness" in str(error.value)
    assert message in str(error.value)
    assert "secret" not in f"{error.value}{error.value.private}"
    assert "\n" not in str(error.value)


def test_the_contract_holds_that_a_witness_is_used_not_where() -> None:
    without, first, second = (
        contract_part(read(FOLDERS, place), model=None) for place in (None, "far/w", "s3://bucket/w")
    )
    assert "output" not in without
    assert first == second == {**without, "output": {"witness": "required"}, "form": 2, "needs": "0.2"}


@pytest.mark.parametrize(("old", "new"), [(None, "far/w"), ("far/w", None)])
def test_an_amendment_adds_and_removes_it(old: str | None, new: str | None) -> None:
    contracts = (contract_part(read(FOLDERS, each), model=None) for each in (old, new))
    [change] = amendment(*comparable(*contracts))
    assert (change.key, change.verdict) == ("output.witness", "allowed")
    assert "without a witness an older ledger" in change.why


@pytest.mark.parametrize("odd", ['"perhaps"', "1"])
def test_an_amendment_writes_no_other_value(odd: str) -> None:
    registered = contract_part(read(FOLDERS, "far/w"), model=None)
    [change] = amendment(registered, {**registered, "output": {"witness": odd}})
    assert change.verdict == "refused"
