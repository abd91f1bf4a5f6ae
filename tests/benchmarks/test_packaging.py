"""The section on installing and starting is about what is installed, and there is only one of it."""

from __future__ import annotations

import pytest

from tests.benchmarks import packaging


def test_what_agedp_needs_is_followed_through_to_the_end() -> None:
    found = packaging.closure("agedp")
    assert {"agedp", "prefect", "pyarrow", "opendp", "pandas", "greenlet", "pydantic-core"} <= found
    assert not {"pytest", "moto", "polars"} & found
    assert packaging.closure("no-such-distribution") == set()


def test_a_size_is_that_of_the_files(tmp_path) -> None:
    assert 50 < packaging.megabytes("pyarrow") < 500
    assert 0.3 < packaging.megabytes("agedp") < 5


def test_a_start_that_takes_longer_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packaging, "_ROUNDS", 1)
    assert packaging.seconds("sum(range(30_000_000))") > 0.1


def test_the_section_is_put_in_its_place_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packaging, "install_lines", lambda: iter([packaging.HEADING, "", "new"]))
    text = "# B\n\n## 1.0 million rows\n\nx\n\n## Against the targets\n\ny\n"
    once = packaging.with_install(text)
    assert once == text.replace("## Against", f"{packaging.HEADING}\n\nnew\n\n## Against")
    assert packaging.with_install(once.replace("new", "old")) == once
