"""Lower bounds are written once, in pyproject.toml, and every requirement has one."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.package.lowest import lowest

PROJECT = Path(__file__).parents[2] / "pyproject.toml"
MADE_UP = """[project]
name = "p"
dependencies = ["a>=1.2", "b-c[d]>=3.8.8,<4", "p[x]>=1"]
[project.optional-dependencies]
x = ["e>=7"]
y = ["f"]
"""


def test_a_lower_bound_is_the_version_that_is_installed(tmp_path: Path) -> None:
    (tmp_path / "p.toml").write_text(MADE_UP.replace(', "p[x]>=1"', ', "p[x]"'))
    assert lowest(tmp_path / "p.toml", "x") == ["a==1.2", "b-c==3.8.8", "e==7"]
    with pytest.raises(ValueError, match="f: has no lower bound"):
        lowest(tmp_path / "p.toml", "y")
    assert len(lowest(PROJECT, "cluster", "dataframe", "plot", "postgresql", "prefect", "s3", "dev", "bench")) > 25
