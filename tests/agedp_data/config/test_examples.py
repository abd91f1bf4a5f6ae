"""The shipped examples are the specification, and editors know their schema."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

import jsonschema
import pytest

from agedp_data.config.run_file_schema import run_file_schema

EXAMPLES = Path(__file__).parents[3] / "docs" / "examples"
LONDON = (EXAMPLES / "london.toml").read_text("utf-8")
SCHEMA = jsonschema.Draft202012Validator(run_file_schema())


def as_editors_see(text: str) -> object:
    """A run file as JSON; dates are text."""
    return json.loads(json.dumps(tomllib.loads(text), default=str))


@pytest.mark.parametrize("example", sorted(EXAMPLES.glob("*.toml")), ids=lambda path: path.stem)
def test_every_example_is_valid_and_refers_to_headings(example):
    text = example.read_text("utf-8")
    SCHEMA.validate(as_editors_see(text))
    pages = [page.read_text("utf-8") for page in EXAMPLES.parent.glob("*.md")]
    headings = [line.lstrip("# ") for page in pages for line in page.splitlines()]
    assert all(place in headings for place in re.findall(r'see "([^"]+)" in the documents', text))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("version = 1", "version = 2"),
        ("min_households", "least_households"),
        ("clamp_kwh = 50", 'clamp_kwh = "50"'),
        ("clamp_kwh = 50", "clamp_kwh = 0"),
        ('notion = "classical"', 'notion = "classic"'),
        ("epsilon_total = 182.5", 'epsilon_total = "all"'),
        ("[output]", "[outputs]"),
    ],
)
def test_a_slip_is_marked_by_the_schema_for_editors(old, new):
    text = re.sub(r" +=", " =", LONDON)
    assert old in text
    assert not SCHEMA.is_valid(as_editors_see(text.replace(old, new, 1)))


def test_the_schema_for_editors_describes_every_key():
    jsonschema.Draft202012Validator.check_schema(run_file_schema())
    for name, section in run_file_schema()["$defs"].items():
        for key, value in section["properties"].items():
            assert "description" in value or "const" in value or "$ref" in value, f"{name}.{key}"
