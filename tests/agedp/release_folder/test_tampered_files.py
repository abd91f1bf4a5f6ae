"""A tampered folder: the message names every changed, missing and added file, of many the first ten."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from agedp.release_folder.folder_files import check_sums
from agedp_data.errors import InputError

FILES = ["statement.json", "STATEMENT.md", "ledger_rows.jsonl", *(f"daily_averages_{i}.parquet" for i in range(12))]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in FILES:
        (tmp_path / name).write_text(name)
    return tmp_path


def message(folder: Path) -> str:
    """Return the message about a folder, in whose list of checksums each file contains its own name."""
    expected = {name: hashlib.sha256(name.encode()).hexdigest() for name in FILES}
    listed = "".join(f"{digest}  {name}\n" for name, digest in expected.items())
    with pytest.raises(InputError) as caught:
        check_sums(folder, listed, expected)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_every_changed_missing_and_added_file_is_named(folder: Path) -> None:
    (folder / "statement.json").write_text("{}")
    (folder / "daily_averages_3.parquet").write_text("other")
    (folder / "STATEMENT.md").unlink()
    (folder / "daily_averages_other.parquet").write_text("mine")
    assert message(folder) == (
        "statement.json, daily_averages_3.parquet differ from the published files; STATEMENT.md is missing; "
        "daily_averages_other.parquet: not listed in SHA256SUMS, so not part of this release; "
        "ask for the release again"
    )


def test_of_many_files_the_first_ten_and_the_number_are_named(folder: Path) -> None:
    for name in FILES:
        (folder / name).write_text("other")
    expected = f"{', '.join(FILES[:10])}, ... (15 files) differ from the published files; ask for the release again"
    assert message(folder) == expected


def test_a_file_too_many_can_be_removed(folder: Path) -> None:
    (folder / "report.html").write_text("mine")
    assert message(folder).endswith("so not part of this release; remove it, or ask for the release again")
