"""Docstrings of this project for Sphinx: indented formulas become literal blocks, signs in text no markup, names links.

A name in code such as `agedp.release` links to its entry, in docstrings and on every page, if it has one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from docutils import nodes
from sphinx.addnodes import pending_xref

if TYPE_CHECKING:
    from sphinx.application import Sphinx

_SECTION = re.compile(r"(Args|Attributes|Raises|References|Returns|Yields):$|\* ")
_CODE = re.compile(r"(`[^`]*`)")
_NAME = re.compile(r"(?P<name>agedp(?:_data|_flows)?(?:\.\w+)+)(?:\(.*\))?", re.DOTALL)
_SIGN = re.compile(r"(?<!^)([*|])|(?<=\w)_(?!\w)")


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the hook, to be called before Napoleon's."""
    app.connect("autodoc-process-docstring", _process, priority=100)
    app.connect("doctree-read", _link_names)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _process(app: Sphinx, kind: str, name: str, documented: object, options: object, lines: list[str]) -> None:  # noqa: ARG001
    lines[:] = [*restructured_text(lines), ""]


def _link_names(app: Sphinx, document: nodes.document) -> None:  # noqa: ARG001
    """Link each name in code to its entry; a name without an entry stays code."""
    for literal in list(document.findall(nodes.literal)):
        name = _NAME.fullmatch(literal.astext())
        if name and not isinstance(literal.parent, nodes.title | nodes.reference | pending_xref):
            link = pending_xref("", refdomain="py", reftype="obj", reftarget=name["name"], refwarn=False)
            literal.replace_self(link)
            link += literal


def restructured_text(lines: list[str]) -> Iterator[str]:
    """Yield the lines of a docstring as reStructuredText that looks as they do."""
    section = formula = table = math = doctest = False
    for i, line in enumerate(lines):
        table = bool(line) and (table or line.startswith("==="))
        if table:
            yield line
            continue
        indented = line.startswith(" ")
        math = line.startswith(".. math::") or (math and (indented or not line))
        if math:
            yield line
            continue
        if line and not indented:
            section, formula = _SECTION.match(line) is not None, False
        doctest = bool(line) and (doctest or line.lstrip().startswith(">>>"))
        if indented and not section and not formula and not doctest:
            formula = True
            if lines[i - 1]:
                yield ""
            yield from ("::", "")
        if formula or doctest:
            yield line
        else:
            if i and line and lines[i - 1].startswith(" ") and not section and not indented:
                yield ""
            yield "".join(part if part.startswith("`") else _SIGN.sub(r"\\\g<0>", part) for part in _CODE.split(line))
