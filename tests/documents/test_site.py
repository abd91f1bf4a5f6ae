"""The pages as a site: built without a warning, complete without a network, readable on a phone and a desk."""

from __future__ import annotations

import contextlib
import html
import io
import re
import time
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.agedp.reports.browser import CHROMIUM, PATIENCE_SECONDS, Browser, browser
from tests.documents.pages import ROOT
from tests.style.test_public_names import ATTRIBUTES, public_calls

build = pytest.importorskip("sphinx.cmd.build", reason="no Sphinx to build the pages with (extra docs)").main
pytestmark = pytest.mark.xdist_group("site")

LOADED = re.compile(r"""<(?:script|img|link|iframe|source)\b[^>]*?\b(?:src|href)=["'](?P<to>[^"']+)""")
LOOKED_AT = ["index", "start", "notions", "chains", "papers", "run-file", "commands", "mathematics", "notebook"]
LOOKED_AT += ["api", "choose", "operate", "python", "written"]
UNRENDERED = re.compile(r"\\[a-zA-Z{}]|\$")
"""A command of TeX, or a sign before or behind one."""
FLOWS = "release_flow.release calibrate_flow.calibrate verify_flow.verify audit_flow.audit"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the pages as `make docs` does, in this process: what they import is imported already."""
    folder, errors = tmp_path_factory.mktemp("site"), io.StringIO()
    words = ["-q", "-E", "--fail-on-warning", "--keep-going", str(ROOT / "docs"), str(folder)]
    with contextlib.redirect_stderr(errors), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # those of Sphinx and its extensions are none of ours
        status = build(words)
    assert status == 0, errors.getvalue()
    return folder


@pytest.fixture(scope="module")
def tab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    if CHROMIUM is None:
        pytest.skip("no Chromium to look at pages with (Debian package chromium)")
    with browser(tmp_path_factory.mktemp("profile")) as found:
        yield found


def test_every_page_is_built_and_none_loads_anything_from_elsewhere(site):
    pages = {path.stem for path in site.glob("*.html")}
    assert {path.stem for path in (ROOT / "docs").glob("*.md")} <= pages
    loaded = {to for path in site.glob("*.html") for to in LOADED.findall(path.read_text("utf-8"))}
    assert len(loaded) > 5
    assert [to for to in loaded if re.match(r"(https?:)?//", to)] == []
    notions, keys, commands = (
        (site / f"{name}.html").read_text("utf-8") for name in ("notions", "run-file", "commands")
    )
    assert notions.count("<math ") > 20
    assert re.findall(r"<script[^>]*mathjax", notions, re.IGNORECASE) == []
    assert ("max_day_epsilon" in keys, "agedp ledger amend" in commands) == (True, True)
    assert min(keys.count("<li>"), commands.count("<li>")) > 80
    listed = (site / "outside_links.txt").read_text("utf-8").splitlines()
    assert "https://doi.org/10.1109/TKDE.2018.2824328" in listed
    assert all(re.fullmatch(r"https?://[^\s)]+", link) for link in listed)


def test_every_public_name_has_an_entry_and_a_line_in_a_table_that_links_it(site):
    reference = (site / "api.html").read_text("utf-8")
    entries = set(re.findall(r'id="(agedp[\w.]+)"', reference))
    public = {f"{module}.{path}" for module, path, _ in public_calls()} | {
        name.replace(":", ".") for name in ATTRIBUTES
    }
    public |= {f"agedp_flows.{name}" for name in FLOWS.split()}
    assert sorted(public - entries) == []
    rows = re.findall(
        r"<tr.*?</tr>", "".join(re.findall(r'<table class="autosummary.*?</table>', reference, re.DOTALL)), re.DOTALL
    )
    linked = {to for row in rows for to in re.findall(r'href="[^"#]*#(agedp[\w.]+)"', row)}
    assert len(rows) > 150
    assert [row for row in rows if "href=" not in row] == []
    methods = {f"{module}.{path}" for module, path, _ in public_calls() if "." in path and path != "Ledger.open"}
    assert sorted(public - methods - linked - {"agedp_data.ledger.Ledger.open"}) == []


def test_no_equation_is_left_as_it_was_typed(site):
    for page in site.glob("*.html"):
        text = re.sub(r"<(script|style|pre|code|title)\b.*?</\1>", "", page.read_text("utf-8"), flags=re.DOTALL)
        shown = [html.unescape(part) for part in re.split(r"<[^>]+>", text)]
        assert [part for part in shown if UNRENDERED.search(part)] == [], page.name
    assert UNRENDERED.search(r"\sigma")
    assert UNRENDERED.search("$x$")
    assert (site / "api.html").read_text("utf-8").count("<math ") > 12
    assert 'href="api.html#agedp.read"' in (site / "python.html").read_text("utf-8")


@pytest.mark.parametrize("width", [390, 1280])
def test_pages_fit_their_window_and_ask_the_network_for_nothing(tab: Browser, site: Path, width: int) -> None:
    for name in LOOKED_AT:
        tab.look(site / f"{name}.html", width=width)
        assert tab.run("document.documentElement.scrollWidth") <= width, name
        assert [to for to in tab.requests if not to.startswith(("file:", "data:"))] == [], name
        assert tab.complaints == [], name


def test_the_search_works_from_a_disk(tab: Browser, site: Path) -> None:
    tab.look(f"{(site / 'search.html').resolve().as_uri()}?q=epsilon_total", width=1280)
    found = "document.querySelectorAll('#search-results li a').length"
    end = time.monotonic() + PATIENCE_SECONDS
    while tab.run(found) < 3:
        assert time.monotonic() < end
        time.sleep(0.05)
    assert tab.complaints == []
