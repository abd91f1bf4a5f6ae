"""Sphinx extension: CSS classes of tables, pages outside of docs/, entries of names, the notebook, and external links.

A block `names` of a page has lines such as `agedp.module: function Result(attribute, method) Made[method]`. It becomes
a table that links each name and the entry of each. The constructor of `Result` is not shown, that of `Made` is.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from myst_parser.parsers.sphinx_ import MystParser

if TYPE_CHECKING:
    from docutils.nodes import document
    from sphinx.application import Sphinx

DOCS = Path(__file__).parents[1]
_SITE_PAGES = {
    "README.md": "index.md",
    "SECURITY.md": "project.md#security",
    "CONTRIBUTING.md": "project.md#contributing",
    "CHANGELOG.md": "project.md#changelog",
    "data/README.md": "written.md#format-samples-and-data-dictionary",
}
"""Pages outside of docs/, with the place of each on the site."""

_CLASSES = {"| where | unsafe": "{.keys .erratum}", "| where | claim": "{.keys .claim}"}
"""First line of a table, and its classes in the site's style sheet; the pages themselves are plain Markdown."""
_PAGE = re.compile(r"^\[.*\]\(\.\./(?P<path>[\w./-]+)\) <!-- the page itself -->$", re.MULTILINE)
_LINK = re.compile(r"(?<=\]\()(?P<to>(?!https?:)[\w./-]+(?:#[\w-]+)?)")
_PARENT_LINK = re.compile(r"(?<=\]\()\.\./(?P<to>[\w./-]+(?:#[\w-]+)?)")
_HEADING = re.compile(r"^(?=#+ )", re.MULTILINE)
_NAMES = re.compile(r"^```\{names\}\n(?P<lines>.*?)^```$", re.MULTILINE | re.DOTALL)
_OF_MODULE = re.compile(r"(?P<name>\w+)(?:(?P<bracket>[(\[])(?P<members>[^)\]]*)[)\]])?")
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
    source[0] = _PAGE.sub(lambda match: _page(app, match["path"], first=not match.start()), source[0])
    source[0] = _PARENT_LINK.sub(lambda match: _on_site(match["to"]) or match[0], source[0])
    source[0] = _NAMES.sub(lambda match: _entries(match["lines"]), source[0])


def _page(app: Sphinx, path: str, *, first: bool) -> str:
    """Return a page outside of docs/ with links to the site; below the beginning of another page it is a section."""
    app.env.note_dependency(str(DOCS.parent / path))
    text = (DOCS.parent / path).read_text("utf-8")
    text = _LINK.sub(lambda match: _on_site(match["to"]) or match["to"].rpartition("docs/")[2], text)
    return text if first else _HEADING.sub("#", text)


def _on_site(target: str) -> str:
    """Return the place of a page outside of docs/ on the site, "" if it is not on it; an anchor takes the place's."""
    path, _, anchor = target.partition("#")
    page = _SITE_PAGES.get(path, "")
    return f"{page.partition('#')[0]}#{anchor}" if page and anchor else page


def _entries(lines: str) -> str:
    """Return the table and the entries of a block of names.

    >>> print(_entries("agedp: read States(frame)"))  # doctest: +ELLIPSIS
    ```{eval-rst}
    .. autosummary::
       :nosignatures:
    <BLANKLINE>
       agedp.read
       agedp.States
    <BLANKLINE>
    .. autofunction:: agedp.read
    .. autoclass:: agedp.States
       :members: frame
       :exclude-members: __init__, __new__
    ```
    """
    names, entries = [], []
    for module, _, listed in (line.partition(":") for line in lines.splitlines()):
        for found in _OF_MODULE.finditer(listed):
            name, bracket, members = f"{module}.{found['name']}", found["bracket"], found["members"]
            names.append(f"   {'~' if module != 'agedp' else ''}{name}")
            entries.append(f".. auto{'class' if found['name'][0].isupper() else 'function'}:: {name}")
            entries += [f"   :members: {members}"] * bool(members)
            entries += ["   :exclude-members: __init__, __new__"] * (bracket == "(")
    return "\n".join(["```{eval-rst}", ".. autosummary::", "   :nosignatures:", "", *names, "", *entries, "```"])


def _list_outside(app: Sphinx, error: Exception | None) -> None:
    """List the external links of all pages; none is requested."""
    if error is None:
        pages = (Path(app.env.doc2path(name)) for name in sorted(app.env.found_docs))
        links = {link.rstrip(".,;") for page in pages for link in _OUTSIDE.findall(page.read_text("utf-8"))}
        (Path(app.outdir) / "outside_links.txt").write_text("".join(f"{link}\n" for link in sorted(links)), "utf-8")
