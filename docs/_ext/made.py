"""What pages are made of besides their text: classes of tables, pages beside the code, the notebook."""

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

HERE = Path(__file__).parents[1]
_ELSEWHERE = {
    "README.md": "index.md",
    "SECURITY.md": "security.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changes.md",
    "data/README.md": "data-dictionary.md",
}
"""Pages that lie beside the code, and under which name the site has them."""

_CLASSES = {KEY_TABLE: "{.keys .four}", OPTION_TABLE: "{.keys}", "| where |": "{.keys .erratum}"}
"""How a table begins, and its classes in the site's style sheet; the pages themselves are plain Markdown."""
_PAGE = re.compile(r"^\[.*\]\(\.\./(?P<path>[\w./]+)\) <!-- the page itself -->$", re.MULTILINE)
_LINK = re.compile(r"(?<=\]\()(?P<to>[\w./-]+)")
_BESIDE = re.compile(r"(?<=\]\()\.\./(?P<to>[\w./-]+)")
_NAMED = re.compile(r"^(?:[^\n<`]+<)?([\w-]+)>?$", re.MULTILINE)
_OTHERS = "... and every page that is named nowhere else"
_OUTSIDE = re.compile(r"https?://(?!www\.w3\.org/)[^\s)>\"'`]+")  # names of XML's parts are no links


class NotebookParser(MystParser):
    """A notebook as a page: its texts, its code, and what the code said when it was run."""

    supported = ("notebook",)

    def parse(self, inputstring: str, document: document) -> None:
        """Parse the Markdown that a notebook amounts to."""
        super().parse("\n\n".join(_cell(cell) for cell in json.loads(inputstring)["cells"]), document)


def _cell(cell: dict[str, Any]) -> str:
    source = "".join(cell["source"])
    if cell["cell_type"] == "markdown":
        return source
    return "\n\n".join([f"```python\n{source}\n```", *(_output(each) for each in cell["outputs"])])


def _output(said: dict[str, Any]) -> str:
    data = said.get("data", {"text/plain": said.get("text", [])})
    for kind in ("image/svg+xml", "text/html"):
        if kind in data:
            return f'```{{raw}} html\n<div class="frame">{"".join(data[kind])}</div>\n```'
    return f"```text\n{''.join(data['text/plain'])}\n```"


def setup(app: Sphinx) -> dict[str, Any]:
    """Register what pages are made of."""
    app.add_source_suffix(".ipynb", "notebook")
    app.add_source_parser(NotebookParser)
    app.connect("source-read", _make)
    app.connect("build-finished", _list_outside)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _make(app: Sphinx, name: str, source: list[str]) -> None:
    """Give tables their classes and links their pages, and list the pages that the index does not name."""
    for table, classes in _CLASSES.items():
        source[0] = source[0].replace(f"\n{table}", f"\n{classes}\n{table}")
    if name == app.config.root_doc:
        named = set(_NAMED.findall(source[0])) | {name}
        source[0] = source[0].replace(_OTHERS, "\n".join(sorted(app.env.found_docs - named)))
    source[0] = _PAGE.sub(lambda found: _page(app, found["path"]), source[0])
    source[0] = _BESIDE.sub(lambda found: _ELSEWHERE.get(found["to"], found[0]), source[0])


def _page(app: Sphinx, path: str) -> str:
    """Return a page that lies beside the code, its links turned to where the site has what they name."""
    app.env.note_dependency(str(HERE.parent / path))
    text = (HERE.parent / path).read_text("utf-8")
    return _LINK.sub(lambda found: _ELSEWHERE.get(found["to"], found["to"].removeprefix("docs/")), text)


def _list_outside(app: Sphinx, error: Exception | None) -> None:
    """List what the pages point to elsewhere; nothing asks there."""
    if error is None:
        pages = (Path(app.env.doc2path(name)) for name in sorted(app.env.found_docs))
        found = {link.rstrip(".,;") for page in pages for link in _OUTSIDE.findall(page.read_text("utf-8"))}
        (Path(app.outdir) / "outside_links.txt").write_text("".join(f"{link}\n" for link in sorted(found)), "utf-8")
