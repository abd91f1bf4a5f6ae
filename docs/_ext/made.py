"""Sphinx extension: CSS classes of tables, pages outside of docs/, the notebook, and a list of external links."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from myst_parser.parsers.sphinx_ import MystParser
from table_heads import KEY_TABLE, OPTION_TABLE

if TYPE_CHECKING:
    from docutils.nodes import document
    from sphinx.application import Sphinx

DOCS = Path(__file__).parents[1]
_SITE_PAGES = {
    "README.md": "index.md",
    "SECURITY.md": "security.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changes.md",
    "data/README.md": "data-dictionary.md",
}
"""Pages outside of docs/, with the name of each on the site."""

_CLASSES = {KEY_TABLE: "{.keys .four}", OPTION_TABLE: "{.keys}", "| where |": "{.keys .erratum}"}
"""First line of a table, and its classes in the site's style sheet; the pages themselves are plain Markdown."""
_PAGE = re.compile(r"^\[.*\]\(\.\./(?P<path>[\w./-]+)\) <!-- the page itself -->$", re.MULTILINE)
_LINK = re.compile(r"(?<=\]\()(?P<to>[\w./-]+)")
_PARENT_LINK = re.compile(r"(?<=\]\()\.\./(?P<to>[\w./-]+)")
_NAMED = re.compile(r"^(?:[^\n<`]+<)?([\w-]+)>?$", re.MULTILINE)
_UNLISTED = "... and every page that is named nowhere else"
_OUTSIDE = re.compile(r"https?://(?!www\.w3\.org/)[^\s)>\"'`]+")  # XML namespaces are no links


class NotebookParser(MystParser):
    """A notebook as a page: its texts, its code, and the output of its code."""

    supported = ("notebook",)

    def parse(self, inputstring: str, document: document) -> None:
        """Parse a notebook as Markdown."""
        super().parse("\n\n".join(_cell(cell) for cell in json.loads(inputstring)["cells"]), document)


def _cell(cell: dict[str, Any]) -> str:
    source = "".join(cell["source"])
    if cell["cell_type"] == "markdown":
        return source
    return "\n\n".join([f"```python\n{source}\n```", *(_output(output) for output in cell["outputs"])])


def _output(output: dict[str, Any]) -> str:
    data = output.get("data", {"text/plain": output.get("text", [])})
    for kind in ("image/svg+xml", "text/html"):
        if kind in data:
            return f'```{{raw}} html\n<div class="frame">{"".join(data[kind])}</div>\n```'
    return f"```text\n{''.join(data['text/plain'])}\n```"


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the parser of notebooks and the hooks for pages and links."""
    app.add_source_suffix(".ipynb", "notebook")
    app.add_source_parser(NotebookParser)
    app.connect("source-read", _make)
    app.connect("build-finished", _list_outside)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _make(app: Sphinx, name: str, source: list[str]) -> None:
    """Add the classes of tables, resolve links between pages, and list the pages that the index does not name."""
    for table, classes in _CLASSES.items():
        source[0] = source[0].replace(f"\n{table}", f"\n{classes}\n{table}")
    if name == app.config.root_doc:
        listed_pages = set(_NAMED.findall(source[0])) | {name}
        source[0] = source[0].replace(_UNLISTED, "\n".join(sorted(app.env.found_docs - listed_pages)))
    source[0] = _PAGE.sub(lambda match: _page(app, match["path"]), source[0])
    source[0] = _PARENT_LINK.sub(lambda match: _SITE_PAGES.get(match["to"], match[0]), source[0])


def _page(app: Sphinx, path: str) -> str:
    """Return a page outside of docs/, with its links changed to the names on the site."""
    app.env.note_dependency(str(DOCS.parent / path))
    text = (DOCS.parent / path).read_text("utf-8")
    return _LINK.sub(lambda match: _SITE_PAGES.get(match["to"], match["to"].rpartition("docs/")[2]), text)


def _list_outside(app: Sphinx, error: Exception | None) -> None:
    """List the external links of all pages; none is requested."""
    if error is None:
        pages = (Path(app.env.doc2path(name)) for name in sorted(app.env.found_docs))
        links = {link.rstrip(".,;") for page in pages for link in _OUTSIDE.findall(page.read_text("utf-8"))}
        (Path(app.outdir) / "outside_links.txt").write_text("".join(f"{link}\n" for link in sorted(links)), "utf-8")
