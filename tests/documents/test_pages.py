"""What the documents tell their reader to do works, and what they say it prints, it prints."""

from __future__ import annotations

import pytest

from tests.documents.pages import ROOT, Reader, blocks, pages

FOLLOWED = [page for page in pages() if any(block.status is not None for block in blocks(page.read_text("utf-8")))]

WITH_LONG_BLOCKS = [page for page in FOLLOWED if any(block.is_long for block in blocks(page.read_text("utf-8")))]


@pytest.fixture
def reader(tmp_path, monkeypatch):
    folder = tmp_path / "folder"
    folder.mkdir()
    return Reader(folder, monkeypatch)


def by_name(page):
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize("page", FOLLOWED, ids=by_name)
def test_whoever_follows_a_page_sees_what_it_says(page, reader):
    reader.follow(page.read_text("utf-8"))


@pytest.mark.long
@pytest.mark.parametrize("page", WITH_LONG_BLOCKS, ids=by_name)
def test_whoever_follows_a_page_to_its_long_blocks_sees_what_it_says(page, reader):
    reader.follow(page.read_text("utf-8"), with_long=True)


@pytest.mark.parametrize(
    "wrong",
    [
        "```sh run\nagedp plann\n```\n",
        "```sh run\nagedp verify nowhere\n```\n",
        "```sh fails=3\nagedp verify nowhere\n```\n",
        "```sh run\necho one two\n```\n\n```text says\none three\n```\n",
        "```sh run\necho 1 kWh\n```\n\n```text alike\n2 Wh\n```\n",
        "```sh run\necho 1; echo 2\n```\n\n```text says\n2\n1\n```\n",
        "```python run\nassert 1 == 2\n```\n",
        "```python run long\nassert 1 == 2\n```\n",
    ],
)
def test_a_page_with_a_wrong_command_or_a_wrong_output_fails(wrong, reader):
    with pytest.raises(AssertionError):
        reader.follow(wrong, with_long=True)
