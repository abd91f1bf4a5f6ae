"""Docstrings of this project for Sphinx: indented formulas become literal blocks, and signs in text no markup."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sphinx.application import Sphinx

_SECTION = re.compile(r"(Args|Attributes|Raises|References|Returns|Yields):$|\* ")
_CODE = re.compile(r"(`[^`]*`)")
_SIGN = re.compile(r"(?<!^)([*|])|(?<=\w)_(?!\w)")


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the hook, to be called before Napoleon's."""
    app.connect("autodoc-process-docstring", _process, priority=100)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _process(app: Sphinx, kind: str, name: str, documented: object, options: object, lines: list[str]) -> None:  # noqa: ARG001
    lines[:] = [*restructured_text(lines), ""]


def restructured_text(lines: list[str]) -> Iterator[str]:
    """Yield the lines of a docstring as reStructuredText that looks as they do."""
    section = formula = table = math = False
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
        if indented and not section and not formula:
            formula = True
            if lines[i - 1]:
                yield ""
            yield from ("::", "")
        if formula or line.startswith(">>>") or (i and lines[i - 1].startswith(">>>")):
            yield line
        else:
            if i and line and lines[i - 1].startswith(" ") and not section and not indented:
                yield ""
            yield "".join(part if part.startswith("`") else _SIGN.sub(r"\\\g<0>", part) for part in _CODE.split(line))
