"""One place of a witness of each kind, for the tests that hold for all of them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

KINDS = ("file", "object", "row")


def place_of(kind: str, folder: Path, request: pytest.FixtureRequest) -> str:
    """Return a place that holds no record yet, as a run file names it."""
    name = os.urandom(8).hex()
    if kind == "file":
        return str(folder / f"{name}.witness")
    if kind == "object":
        return f"{request.getfixturevalue('bucket')}/{name}/witness.json"
    server = request.getfixturevalue("postgresql")
    return f"{server.url(server.database())}#london"
