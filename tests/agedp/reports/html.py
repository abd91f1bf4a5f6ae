"""A reader of pages that insists: every element ends where it should, nothing comes from elsewhere."""

from __future__ import annotations

import re
from html.parser import HTMLParser

from tests.references import unresolved

VOID = {"meta", "link", "br", "hr", "img", "input"}
INSIDE = {  # what an element may stand in, of those that may not stand anywhere
    "li": {"ul", "ol"}, "dt": {"div", "dl"}, "dd": {"div", "dl"}, "tr": {"thead", "tbody"}, "td": {"tr"}, "th": {"tr"},
    "thead": {"table"}, "tbody": {"table"}, "caption": {"table"}, "figcaption": {"figure"}, "path": {"svg", "g"},
}  # fmt: skip
NOT_IN_P = {"p", "div", "ul", "ol", "dl", "table", "figure", "section", "h1", "h2", "h3", "h4", "h5", "h6"}
FETCHING = {"src", "srcset", "href", "action", "data", "poster", "xlink:href", "formaction", "ping", "background"}
DATA_TAKING = {"script", "iframe", "object", "embed", "img", "video", "audio", "form", "base", "frame"}


class Page(HTMLParser):
    """Reads a page and keeps its faults, headings, images and words."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.faults: list[str] = []
        self.headings: list[int] = []
        self.images: list[str] = []
        self.titles: list[str] = []
        self.words: list[str] = []
        self.order: list[str] = []
        self._open: list[str] = []
        self._targets: set[str] = set()
        self._ids: set[str] = set()
        if not text.startswith("<!DOCTYPE html>"):
            self.faults.append("no doctype")
        self.feed(text)
        self.close()
        if self._open:
            self.faults.append(f"left open: {self._open}")
        self.faults += [f"a link to nowhere: {name}" for name in sorted(self._targets - self._ids)]
        if "content" not in self._targets:
            self.faults.append("no link skips to the content")
        if re.search(r"@import|url\(", text):
            self.faults.append("the style fetches something")

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if len(given) < len(attrs):
            self.faults.append(f"{tag}: an attribute twice")
        self._judge(tag, given)
        if (name := given.get("id")) is not None:
            if name in self._ids:
                self.faults.append(f"id {name} twice")
            self._ids.add(name)
        if re.fullmatch(r"h[1-6]", tag):
            self.headings.append(int(tag[1]))
        if tag == "svg":
            if given.get("role") == "img":
                self.images.append(given.get("aria-label") or "")
            elif given.get("aria-hidden") != "true":
                self.faults.append("a drawing that is neither told nor hidden")
        self._judge_access(tag, given)
        if (target := given.get("href") or "").startswith("#"):
            self._targets.add(target[1:])
        if tag == "html" and given.get("lang") != "en":
            self.faults.append("no language")
        if tag in ("figure", "table", "h2", "main", "header", "footer"):
            self.order.append(tag)
        if tag not in VOID:
            self._open.append(tag)

    def _judge_access(self, tag: str, given: dict[str, str | None]) -> None:
        """Judge what readers without a pointer or a screen need."""
        if tag == "th" and given.get("scope") not in ("row", "col"):
            self.faults.append("a header of neither row nor column")
        if tag == "svg" and given.get("role") == "img":
            self._focusable = "tabindex" in given
        if tag == "title" and "svg" in self._open and not self._focusable:
            self.faults.append("a chart with values that the keyboard does not reach")
        is_wide = "wide" in (given.get("class") or "").split()
        if is_wide and (given.get("tabindex") != "0" or not given.get("aria-label")):
            self.faults.append("a table that the keyboard cannot scroll")

    def _judge(self, tag: str, given: dict[str, str | None]) -> None:
        within = self._open[-1] if self._open else ""
        if tag in INSIDE and within not in INSIDE[tag]:
            self.faults.append(f"{tag} in {within}")
        if tag in NOT_IN_P and "p" in self._open:
            self.faults.append(f"{tag} in a paragraph")
        if tag in DATA_TAKING:
            self.faults.append(f"a {tag}")
        for name, value in given.items():
            is_inside = (value or "").startswith(("data:,", "#")) or (tag == "a" and is_download(given))
            if name.startswith("on") or (name in FETCHING and not is_inside):
                self.faults.append(f"{tag} {name}={value}")

    def handle_endtag(self, tag: str) -> None:
        if not self._open or self._open[-1] != tag:
            self.faults.append(f"</{tag}> inside {self._open[-3:]}")
        else:
            self._open.pop()

    def handle_data(self, data: str) -> None:
        if "style" in self._open:
            return
        if "figcaption" in self._open:
            self.titles.append(data)
        if data.strip():
            self.words.append(" ".join(data.split()))

    @property
    def text(self) -> str:
        return " ".join(self.words)


def is_download(link: dict[str, str | None]) -> bool:
    """Return whether a link saves something: values within the page, or a file in the same folder."""
    address = link.get("href") or ""
    is_within = address.startswith("data:text/csv;charset=utf-8,") and (link["download"] or "").endswith(".csv")
    return "download" in link and (is_within or re.fullmatch(r"[\w-]+\.(parquet|json|md)", address) is not None)


def faults_of(text: str) -> list[str]:
    """Return what is wrong with a page: its structure, its headings, its figures."""
    page = Page(text)
    found = list(page.faults)
    if page.headings[:1] != [1] or page.headings.count(1) != 1:
        found.append(f"headings {page.headings[:3]}")
    found += [f"h{b} behind h{a}" for a, b in zip(page.headings, page.headings[1:], strict=False) if b > a + 1]
    found += [f"figure without words: {label!r}" for label in page.images if len(label.split()) < 8]
    if len(page.images) != page.order.count("figure") or len(set(page.titles)) != len(page.titles):
        found.append("figures without a drawing, or two of one title")
    found += [] if page.order.count("main") == 1 else ["no main part"]
    found += [f"a reference that no reader can resolve: {reference}" for reference in unresolved(text)]
    behind = "".join({"figure": "f", "table": "t"}.get(each, "|") for each in page.order)
    if re.search(r"f+(\||$)", behind):  # the numbers of figures that stand together stand behind them
        found.append("a figure without its numbers")
    return found


def prose(page: str) -> list[str]:
    """Return the words of a page outside tables and pictures, folded ones included."""
    body = page.partition("<body>")[2] or page
    text = re.sub(r"<(table|figure|svg)\b.*?</\1>", " ", body, flags=re.DOTALL)
    return re.sub(r"<[^>]+>", "", text.replace("<p", " <p").replace("<d", " <d").replace("<li", " <li")).split()
