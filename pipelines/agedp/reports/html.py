"""HTML pages that open offline and request nothing from the network: style, tables, frame, and Markdown as HTML.

The statement's Markdown becomes HTML with the text of the file, word for word: headings, paragraphs, lists with *,
tables, **strong**, *emphasis* and `code`; anything else remains text.

Decisions:

* Light and dark follow the reader's screen, print is light.
* Colours are Okabe and Ito's, darkened or lightened until text has a contrast of 4.5 and lines have a contrast of 3 to
  their background.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from html import escape
from itertools import groupby

_LIGHT = (
    "--paper:#fff;--ink:#1a1c1e;--soft:#52585e;--rule:#d5d9dd;--tint:#f3f5f7;"
    "--s0:#0068a5;--s1:#b34a00;--s2:#5b5f63;--s3:#0f7a45;--s4:#a0397b;--s5:#806000"
)
_DARK = (
    "--paper:#14171a;--ink:#e9ecee;--soft:#a8b0b8;--rule:#3a4147;--tint:#1e2327;"
    "--s0:#63b6ee;--s1:#ff9f5f;--s2:#b5bbc1;--s3:#5ccf92;--s4:#e59ac9;--s5:#e0c050"
)
STYLE = f"""
:root{{color-scheme:light dark;{_LIGHT}}}
@media(prefers-color-scheme:dark){{:root{{{_DARK}}}}}
@media print{{:root{{color-scheme:light;{_LIGHT}}}}}
*{{box-sizing:border-box}}
body{{font:16px/1.55 system-ui,-apple-system,"Segoe UI",Roboto,sans-serif;color:var(--ink);background:var(--paper);
max-width:62rem;margin:0 auto;padding:1rem 1rem 4rem;overflow-wrap:break-word}}
header,section{{margin-bottom:2.6rem}}p,ul,dl{{max-width:44rem}}
h1{{font-size:1.7rem;line-height:1.2;margin:.8rem 0 .4rem}}h2{{font-size:1.25rem;margin:0 0 .5rem}}
h3{{font-size:1.02rem;margin:1.6rem 0 .4rem}}h4{{font-size:.95rem;margin:1.2rem 0 .3rem}}
h2{{border-top:2px solid var(--ink);padding-top:.7rem}}
.soft,figcaption+p,caption{{color:var(--soft)}}.soft{{font-size:.92rem}}
.mark{{border:2px solid var(--ink);padding:.5rem .8rem;font-weight:600}}
.annex{{font-size:.93rem;line-height:1.45}}
.keys{{list-style:none;padding:0;max-width:none;columns:21rem;font-size:.85rem;line-height:1.45}}
.keys li{{break-inside:avoid;overflow-wrap:anywhere}}
code{{font-size:.88em;overflow-wrap:anywhere}}
dl.short{{display:grid;grid-template-columns:repeat(auto-fit,minmax(9.5rem,1fr));gap:.6rem;
max-width:none;margin:1rem 0}}
dl.short div{{background:var(--tint);border-radius:.4rem;padding:.6rem .8rem}}
dl.short dt{{color:var(--soft);font-size:.85rem}}dl.short dd{{margin:0;font-size:1.1rem;font-weight:600}}
dl.short dd small{{display:block;font-weight:400;font-size:.8rem;color:var(--soft)}}
.two{{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(24rem,100%),1fr));gap:0 2rem}}
.two>*{{min-width:0}}
figure{{margin:1rem 0;break-inside:avoid}}figcaption{{font-weight:600;max-width:44rem}}
.key{{list-style:none;display:flex;flex-wrap:wrap;gap:.15rem 1.1rem;margin:.3rem 0;padding:0;font-size:.85rem;
max-width:none}}.key li{{display:flex;align-items:center;gap:.4rem}}
.sample{{width:28px;height:12px;flex:none}}
.plot{{position:relative;margin:1.9rem 1.6rem 2.7rem 3.2rem}}
.plot svg{{display:block;width:100%;height:var(--h);overflow:visible}}
.plot span,.end{{position:absolute;font-size:.78rem;line-height:1.1;color:var(--soft);white-space:nowrap}}
.plot .y{{right:100%;padding-right:.45rem;transform:translateY(-50%);font-variant-numeric:tabular-nums}}
.plot .x{{top:100%;padding-top:.55rem;transform:translateX(-50%);white-space:pre;text-align:center;line-height:1.2}}
.plot .first{{transform:translateX(-.6rem);text-align:left}}
.plot .last{{transform:translateX(-100%) translateX(.6rem)}}
.plot .yt{{bottom:100%;left:-3.1rem;padding-bottom:.65rem}}
.letter{{font-size:.8rem;line-height:1;border:1px solid;border-radius:50%;min-width:1.3em;height:1.3em;
display:inline-grid;place-items:center;flex:none}}.plot .end{{left:100%;margin-left:.35rem;transform:translateY(-50%);
background:var(--paper);font-size:.75rem}}
svg path{{vector-effect:non-scaling-stroke;fill:none}}
.grid{{stroke:var(--rule);stroke-width:1}}.line{{stroke-width:2;stroke-linejoin:round}}.level{{stroke:var(--ink);
stroke-width:1.5;stroke-dasharray:1 4;stroke-linecap:round}}.skip{{stroke:var(--ink);stroke-width:1.5}}
.dot{{stroke-width:7;stroke-linecap:round}}.whisker{{stroke-width:1.5}}
svg .band{{stroke:none;opacity:.22}}svg .bar{{stroke:none;opacity:.8}}
.s0{{stroke:var(--s0);color:var(--s0)}}.s1{{stroke:var(--s1);color:var(--s1)}}.s2{{stroke:var(--s2);color:var(--s2)}}
.s3{{stroke:var(--s3);color:var(--s3)}}.s4{{stroke:var(--s4);color:var(--s4)}}.s5{{stroke:var(--s5);color:var(--s5)}}
svg .band,svg .bar{{fill:currentColor}}
.line.s1{{stroke-dasharray:7 3}}.line.s2{{stroke-dasharray:2 3}}.line.s3{{stroke-dasharray:10 3 2 3}}
.line.s4{{stroke-dasharray:5 2 5 6}}.line.s5{{stroke-dasharray:12 5}}
.wide{{max-height:31rem;overflow:auto;margin:.6rem 0 1.4rem}}.wide:focus-visible{{outline:2px solid var(--s0)}}
table{{border-collapse:collapse;font-size:.86rem;font-variant-numeric:tabular-nums;width:100%;line-height:1.4}}
caption{{text-align:left;padding:.2rem 0 .4rem}}th,td{{padding:.25rem .45rem;text-align:right;vertical-align:top}}
th{{font-weight:600}}tbody th{{font-weight:400}}th:first-child,td:first-child,.said td,.said th{{text-align:left}}
.n{{white-space:nowrap}}
thead th{{border-bottom:1px solid var(--ink);vertical-align:bottom}}tbody tr{{border-bottom:1px solid var(--rule)}}
.size{{display:block;width:100%;min-width:6rem;height:.9rem}}.size path{{stroke-width:1.5}}
.size .full{{fill:var(--s0);stroke:var(--s0)}}.size .open{{stroke:var(--s0);stroke-dasharray:3 2}}
.said td,.said th{{overflow-wrap:break-word}}
@media(min-width:40.1rem){{.said tbody th{{min-width:9rem}}.said .plain{{width:16%}}}}
@media(max-width:40rem){{.said thead{{display:none}}.said tr{{display:block;padding:.5rem 0}}
.said td,.said th{{display:block;padding:.08rem 0;text-align:left}}.said [data-of]::before{{content:attr(data-of) ": ";
color:var(--soft);font-weight:400}}.said tbody th{{font-weight:600}}.said .plain::before{{content:none}}
.said .brief{{display:inline-block;padding-right:.9rem}}}}
@media(max-width:26rem){{table{{font-size:.8rem}}th,td{{padding:.2rem .28rem}}h1{{font-size:1.4rem}}}}
@media print{{body{{max-width:none;padding:0;font-size:10.5pt}}.wide{{max-height:none;overflow:visible}}
section{{break-inside:auto}}h2,h3,figcaption,caption{{break-after:avoid}}tr{{break-inside:avoid}}}}
"""
"""The style of a report: for a phone, a desk and paper, light and dark."""

_SHORT, _UNBROKEN = 11, ' class="n"'
_BRIEF, _TAG = 14, re.compile(r"<[^>]*>")
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"


def document(title: str, body: Sequence[str]) -> str:
    """Return a page that requests nothing from the network, not even an icon.

    Args:
        title: title of the page; text.
        body: parts of the body; HTML.
    """
    return "\n".join(
        [
            "<!DOCTYPE html>",
            '<html lang="en"><head><meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            '<link rel="icon" href="data:,">',
            f"<title>{escape(title)}</title>",
            f"<style>{STYLE}</style></head><body>",
            *body,
            "</body></html>\n",
        ]
    )


def section(title: str, *parts: str, kind: str = "") -> str:
    """Return a section of a page; `parts` are HTML, `title` is text."""
    opening = f'<section class="{kind}">' if kind else "<section>"
    return "\n".join([f"{opening}<h2>{escape(title)}</h2>", *parts, "</section>"])


def paragraph(text: str, kind: str = "") -> str:
    """Return a paragraph of plain text."""
    return f'<p class="{kind}">{escape(text)}</p>' if kind else f"<p>{escape(text)}</p>"


def fact_list(facts: Sequence[tuple[str, str, str]]) -> str:
    """Return a few key facts: label, value, and a remark or ""."""
    remarks = [f"<small>{escape(remark)}</small>" if remark else "" for _, _, remark in facts]
    items = "".join(
        f"<div><dt>{escape(label)}</dt><dd>{escape(value)}{remark}</dd></div>"
        for (label, value, _), remark in zip(facts, remarks, strict=True)
    )
    return f'<dl class="short">{items}</dl>'


def table(caption: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table of numbers, the first column naming the row; a long table scrolls on screen, not on paper."""
    head = "".join(f'<th scope="col">{escape(column)}</th>' for column in columns)
    body = "".join(
        f'<tr><th scope="row"{_UNBROKEN if len(row[0]) <= _SHORT else ""}>{escape(row[0])}</th>'
        + "".join(f"<td>{escape(cell)}</td>" for cell in row[1:])
        + "</tr>\n"
        for row in rows
    )
    return (
        f'<div class="wide" tabindex="0" role="region" aria-label="{escape(caption, quote=True)}"><table>'
        f"<caption>{escape(caption)}</caption><thead><tr>{head}</tr></thead><tbody>\n{body}</tbody></table></div>"
    )


def text_table(caption: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table of text; on a narrow screen each row becomes a list, with short cells on one line.

    Cells are HTML already.
    """
    head = "".join(f'<th scope="col">{escape(column)}</th>' for column in columns)
    brief = [all(len(_TAG.sub("", row[i])) <= _BRIEF for row in rows) for i in range(1, len(columns))]
    titled = f"<caption>{escape(caption)}</caption>" if caption else ""
    body = "".join(
        f'<tr><th scope="row">{row[0]}</th>'
        + "".join(_cell(*cell) for cell in zip(columns[1:], row[1:], brief, strict=True))
        + "</tr>\n"
        for row in rows
    )
    return f'<table class="said">{titled}<thead><tr>{head}</tr></thead><tbody>\n{body}</tbody></table>'


def _cell(column: str, cell: str, brief: bool) -> str:
    kind = ' class="plain"' if not column else ' class="brief"' if brief else ""
    return f'<td data-of="{escape(column, quote=True)}"{kind}>{cell}</td>'


def size_bar(share: float, *, filled: bool = True) -> str:
    """Return a bar of a length between 0 and 1, filled or outlined; the table shows the number beside it."""
    width = max(1, round(1000 * min(max(share, 0.0), 1.0)))
    kind = "full" if filled else "open"
    drawing = f'<path class="{kind}" d="M0 2h{width}v16H0z"/>'
    return f'<svg class="size" viewBox="0 0 1000 20" preserveAspectRatio="none" aria-hidden="true">{drawing}</svg>'


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
