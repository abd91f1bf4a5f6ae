"""What the documents tell their reader to do works, and what they say it prints, it prints."""

from __future__ import annotations

import pytest

from agedp_data import mechanisms
from tests.documents.pages import NOISY, ROOT, Reader, blocks, pages, repeatable_noise

BLOCKS = {page: list(blocks(page.read_text("utf-8"))) for page in pages()}
FOLLOWED = [
    pytest.param(
        page, with_long, marks=pytest.mark.long if with_long else [], id=f"{page.relative_to(ROOT)}-{with_long}"
    )
    for page, found in BLOCKS.items()
    for with_long in (False, True)
    if any(block.status is not None and (block.is_long or not with_long) for block in found)
]
WRONG = [
    "```sh run\nagedp plann\n```\n",
    "```sh fails=3\nagedp verify nowhere\n```\n",
    "```sh run\necho one two\n```\n\n```text says\none three\n```\n",
    "```sh run\necho 1 kWh\n```\n\n```text says\n2 kWh\n```\n",
    "```sh run\necho 1; echo 2\n```\n\n```text says\n2\n1\n```\n",
    "```sh run\nfalse\ntrue\n```\n",
    "```sh run\nfalse | cat\n```\n",
    "```sh run\nmkdir a; cd a\n```\n\n```sh run\ncd a\n```\n",
    "```python run long\nassert 1 == 2\n```\n",
]


@pytest.fixture
def reader(tmp_path, monkeypatch):
    folder = tmp_path / "folder"
    folder.mkdir()
    reader = Reader(folder, monkeypatch)
    yield reader
    reader.close()


@pytest.mark.parametrize(("page", "with_long"), FOLLOWED)
def test_a_reader_who_follows_a_page_sees_what_it_shows(page, with_long, reader, monkeypatch):
    text = page.read_text("utf-8")
    if page.name in NOISY:
        assert "Noise is drawn anew" in text
        monkeypatch.setattr(mechanisms, "discrete_laplace", repeatable_noise)
    reader.follow(text, with_long=with_long)


@pytest.mark.parametrize("wrong", WRONG)
def test_a_page_with_a_wrong_command_or_a_wrong_output_fails(wrong, reader):
    with pytest.raises(AssertionError):
        reader.follow(wrong, with_long=True)
