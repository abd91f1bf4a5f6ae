"""A folder in which commands have run."""

from __future__ import annotations

import pytest

from tests.command import agedp


@pytest.fixture(scope="session")
def lived(tmp_path_factory):
    """A folder with run.toml, its release, its ledger and its exported rows."""
    folder = tmp_path_factory.mktemp("fuzz")
    assert agedp("sample", "london", "lived", "--households", "3", "--days", "3", folder=folder).status == 0
    (folder / "lived" / "london.toml").rename(folder / "lived" / "run.toml")
    (folder / "lived" / "own").mkdir()
    for words in (("run", "run.toml"), ("ledger", "export", "run.toml", "rows.jsonl")):
        assert agedp(*words, folder=folder / "lived").status == 0
    return folder / "lived"
