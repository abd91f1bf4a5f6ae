"""One place of a witness of each kind, for the tests that hold for all of them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from agedp_data.ledger.witness import WitnessState, format_state
from tests.postgresql import PostgreSQL

KINDS = ("file", "object")
"""Kinds of a new population."""


def place_of(kind: str, folder: Path, request: pytest.FixtureRequest) -> str:
    """Return a place that holds no record yet, as a run file names it."""
    name = os.urandom(8).hex()
    if kind == "file":
        return str(folder / f"{name}.witness")
    return f"{request.getfixturevalue('bucket')}/{name}/witness.json"


def stored_row(server: PostgreSQL, *records: tuple[str, WitnessState]) -> str:
    """Return a database with the table that 0.2 made, and with these records by name; a run file names one behind #."""
    name = server.database()
    server.admin(
        "CREATE TABLE agedp_witness (name text PRIMARY KEY, state text NOT NULL)",
        "GRANT SELECT, UPDATE ON agedp_witness TO agedp",
        *(f"INSERT INTO agedp_witness VALUES ('{row}', '{format_state(state).decode()}')" for row, state in records),
        database=name,
    )
    return name
