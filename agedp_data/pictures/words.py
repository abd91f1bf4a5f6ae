"""The statement's Markdown as HTML: a page has the text of the file, word for word.

Headings, paragraphs, lists with *, tables, **strong**, *emphasis* and `code`; anything else stays text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import escape
from itertools import groupby

from agedp_data.pictures.page import text_table

_HEADING = re.compile(r"(#{1,6}) +(.*)")
_STRONG = re.compile(r"\*\*(.+?)\*\*")
_KEY = re.compile(r"\* [\w.]+ = ")
_STRESSED = re.compile(r"(?<![*\w])\*(\w+)\*(?![*\w])")
_CODE = re.compile(r"`([^`]+)`")


def markdown_to_html(text: str, *, below: int, tables: str | None = None) -> str:
    r"""Return the text as HTML whose highest headings are one level below `below`; the title is omitted.

    Args:
        text: Markdown.
        below: level of the heading above the text.
        tables: paragraph that replaces every table, if given.

    A list that contains only keys is set in small type.

    >>> markdown_to_html("# T\n\n## A & B\n\n* **x**\n* y\n", below=2)
    '<h3>A &amp; B</h3>\n<ul><li><strong>x</strong></li><li>y</li></ul>'
    """
    blocks = groupby(text.splitlines(), key=_kind)
    return "\n".join(part for kind, lines in blocks for part in _block(kind, list(lines), below, tables))


def _kind(line: str) -> str:
    if not line.strip():
        return ""
    if _HEADING.fullmatch(line):
        return "heading"
    return "list" if line.startswith("* ") else "table" if line.startswith("|") else "text"


def _block(kind: str, lines: list[str], below: int, tables: str | None) -> Iterator[str]:
    if kind == "heading":
        for line in lines:
            heading = _HEADING.fullmatch(line)
            if heading and len(heading[1]) > 1:
                level = min(6, len(heading[1]) + below - 1)
                yield f"<h{level}>{_inline(heading[2])}</h{level}>"
    elif kind == "list":
        kind = ' class="keys"' if all(_KEY.match(line) for line in lines) else ""
        yield f"<ul{kind}>" + "".join(f"<li>{_inline(line[2:])}</li>" for line in lines) + "</ul>"
    elif kind == "table" and tables is not None:
        yield f"<p>{escape(tables)}</p>"
    elif kind == "table":
        rows = [[cell.strip() for cell in line.strip().strip("|").split("|")] for line in lines]
        head, *body = [row for row in rows if not all(set(cell) <= set("-: ") for cell in row)] or [[]]
        cells = [[_inline(cell) for cell in (row + [""] * len(head))[: len(head)]] for row in body]
        yield text_table("", head, cells)
    elif kind == "text":
        yield "<p>" + _inline(" ".join(lines)) + "</p>"


def _inline(text: str) -> str:
    strong = _STRONG.sub(r"<strong>\1</strong>", _CODE.sub(r"<code>\1</code>", escape(text)))
    return _STRESSED.sub(r"<em>\1</em>", strong)
