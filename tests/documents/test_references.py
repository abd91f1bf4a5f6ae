"""What the documents name is there: commands, files, headings, run files, tests, keys."""

from __future__ import annotations

import csv
import re
import shlex
import sys
from functools import cache

import pytest
import typer

from agedp_data.config import parse
from agedp_data.config.run_file import RunFile
from agedp_data.parameters import Section
from tests.documents.pages import ROOT, blocks, pages

sys.path.insert(0, str(ROOT / "docs" / "_ext"))

from commands import every_command
from docstrings import restructured_text
from reference import DOCS, GENERATED, regenerate
from run_file import TABLES, every_key, key_meaning, run_file_page

PAGES = pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(ROOT)))
_LINK = re.compile(r"(?<!`)\[[^\]]*\]\((?P<to>[^)\s]+)\)")
_CONTINUED = re.compile(r" *\\\n\s*")
_HEADING = re.compile(r"^#{1,6} (?P<text>.+)$", re.MULTILINE)


def without_blocks(text: str) -> str:
    return re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)


def anchors(text: str) -> set[str]:
    """The addresses of the headings of a page, as GitHub and MyST make them."""
    titles = _HEADING.findall(without_blocks(text))
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def called(text: str) -> list[str]:
    """The calls of agedp in the shell blocks of a page."""
    texts = [_CONTINUED.sub(" ", block.text) for block in blocks(text) if block.language in ("", "sh")]
    lines = [line for text in texts for line in text.splitlines()]
    return [line.partition("  #")[0] for line in lines if line.startswith("agedp ")]


@cache
def known_commands():
    return dict(every_command())


def refused(call: str) -> str:
    """What agedp has against the words of a call, "" if nothing."""
    words = shlex.split(call)
    known = known_commands()
    name = next((" ".join(words[:n]) for n in (3, 2) if " ".join(words[:n]) in known), None)
    if name is None:
        return "no such command"
    try:
        known[name].make_context(name, words[len(name.split()) :]).close()
    except typer.Exit:  # after --help
        return ""
    except Exception as error:
        return str(error.format_message())  # typer has a click of its own, whose errors have no public name
    return ""


@PAGES
def test_every_command_link_and_run_file_of_a_page_is_sound(page):
    text = page.read_text("utf-8")
    assert {call: message for call in called(text) if (message := refused(call))} == {}
    lost = []
    for to in _LINK.findall(without_blocks(text)):
        path, _, anchor = to.partition("#")
        if re.match(r"https?://|mailto:", to):
            continue
        target = page if not path else (page.parent / path).resolve()
        if not target.exists() or (anchor and anchor not in anchors(target.read_text("utf-8"))):
            lost.append(to)
    assert lost == []
    for block in blocks(text):
        if block.language == "toml" and block.text.startswith("version = 1"):
            parse(block.text, base=ROOT, name=f"line {block.line}")


def test_every_test_that_the_errata_point_to_is_there():
    named = named_by_errata()
    folders = [ROOT / "tests" / "agedp_data" / name for name in ("accounting", "series")]
    paths = [path for folder in folders for path in folder.glob("*.py")]
    there = {name for path in paths for name in re.findall(r"def (test_\w+)\(", path.read_text("utf-8"))}
    assert len(named) >= 40
    assert named - there == set()


def test_every_test_that_is_about_an_erratum_is_named_there():
    text = (ROOT / "tests" / "agedp_data" / "accounting" / "test_where_the_paper_errs.py").read_text("utf-8")
    named = re.findall(r"def (test_(?:eq|after|fig|algorithm|theorem|corollary|the_bracket)\w+)\(", text)
    assert len(named) >= 25
    assert set(named) - named_by_errata() == set()


def named_by_errata() -> set[str]:
    """The tests of the errors of the papers."""
    with (ROOT / "docs" / "papers" / "errata.csv").open(encoding="utf-8", newline="") as table:
        return {name for row in csv.DictReader(table) for name in row["tests"].split()}


@pytest.mark.parametrize("page", GENERATED)
def test_a_generated_part_equals_what_the_code_gives(page):
    written_page = (DOCS / f"{page}.md").read_text("utf-8")
    assert written_page == regenerate(page), f"docs/{page}.md differs from the code; run `make reference` and commit"


def test_every_table_and_key_of_a_run_file_has_a_meaning_and_is_on_its_page():
    assert {name.partition(".")[0] for name in TABLES} == set(RunFile.model_fields) - {"version"}
    page = run_file_page()
    for block, key in every_key():
        assert key_meaning(block, key).endswith((".", '"'))
        assert key == "version" or f"`{key}`" in page or f"### {key} = " in page

    class Bare(Section):
        key: int

    with pytest.raises(LookupError, match=r"Bare\.key has no text"):
        key_meaning(Bare, "key")


def test_a_formula_of_a_docstring_stands_as_written_and_signs_are_no_markup():
    lines = ["Return |x|_1 of `a|b`:", "    x_1 = *y*", "and more.", "", "Args:", "    x: a value", "", ">>> f(1) * 2"]
    assert list(restructured_text(lines)) == [
        r"Return \|x\|_1 of `a|b`:",
        *["", "::", "", "    x_1 = *y*", ""],
        *["and more.", "", "Args:", "    x: a value", "", ">>> f(1) * 2"],
    ]
    lines = ["Sum.", "", ".. math:: \\sum_{i} x_i * y", "    + z_i", "", "A * B"]
    assert list(restructured_text(lines)) == [*lines[:5], "A \\* B"]


def test_a_key_that_only_an_amendment_changes_is_not_called_free():
    line = {key: line for line in run_file_page().splitlines() for key in ("sign", "title") if f"* `{key}`" in line}
    assert line["title"].endswith("*Free.*")  # `agedp ledger amend` turns `sign` on, and nothing turns it off
    assert not line["sign"].endswith("*Free.*")


def test_the_page_of_clusters_lists_every_task():
    calls = re.compile(r'\b(?:map_items|map_merge|map_reduce|stream_items)\(\s*"([a-z-]+)"')
    code = "\n".join(path.read_text("utf-8") for path in (ROOT / "pipelines" / "agedp").rglob("*.py"))
    rows = [line for line in (DOCS / "deploy.md").read_text("utf-8").splitlines() if line.startswith("| `agedp-")]
    assert sorted(re.findall("`agedp-([a-z-]+)`", "\n".join(rows))) == sorted(set(calls.findall(code)))
