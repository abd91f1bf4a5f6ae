"""Reports as a browser shows them: nothing is fetched, nothing complains, nothing lies on anything else."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.agedp.reports.browser import Browser

NAMES = ["aged", "one day", "counts", "confidential"]

LAYOUT = """(() => {
  const faults = [], wide = document.documentElement.clientWidth;
  if (document.documentElement.scrollWidth > wide) faults.push('the page scrolls sideways');
  const box = element => element.getBoundingClientRect();
  const shown = element => { const r = box(element); return r.width > 0 && r.height > 0; };
  for (const element of document.querySelectorAll('body *')) {
    if (!shown(element) || element.closest('svg')) continue;
    const r = box(element), holder = element.closest('.wide');
    const [left, right] = holder ? [box(holder).left, box(holder).right + holder.scrollWidth] : [0, wide];
    if (r.left < left - 1 || r.right > right + 1) faults.push('beyond the page: ' + element.outerHTML.slice(0, 90));
  }
  const pairs = (elements, what) => {
    const boxes = [...elements].filter(e => shown(e) && e.textContent).map(e => {
      const words = document.createRange();
      words.selectNodeContents(e);
      const r = box(words), holder = e.closest('.wide'), bottom = holder ? box(holder).bottom : Infinity;
      const within = {left: r.left, right: r.right, top: r.top, bottom: Math.min(r.bottom, bottom)};
      return [within, e.textContent.slice(0, 40), e];  // what scrolls in its place is cut off there
    });
    for (let i = 0; i < boxes.length; i++) for (let j = i + 1; j < boxes.length; j++) {
      const [a, s, e] = boxes[i], [b, t, f] = boxes[j];
      if (e.contains(f) || f.contains(e)) continue;
      if (a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 1 && b.top < a.bottom - 1)
        faults.push(what + ': ' + s + ' on ' + t);
    }
  };
  for (const plot of document.querySelectorAll('.plot')) {
    pairs(plot.querySelectorAll('span, .end'), 'words of a chart');
    if (box(plot.querySelector('svg')).width < 150) faults.push('a chart too narrow to read');
  }
  for (const row of document.querySelectorAll('tr')) pairs(row.children, 'cells');
  pairs(document.querySelectorAll('figure, table, h1, h2, h3, h4, p, ul, dl'), 'blocks');
  for (const cell of document.querySelectorAll('td, th, dd, figcaption'))
    if (shown(cell) && cell.scrollWidth > cell.clientWidth + 1) faults.push('cut off: ' + cell.textContent);
  for (const text of document.querySelectorAll('p, li, td, th, dd, span, figcaption'))
    if (shown(text) && parseFloat(getComputedStyle(text).fontSize) < 11) faults.push('too small: ' + text.textContent);
  return [...new Set(faults)].slice(0, 99);
})()"""


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("width", [390, 1280])
def test_a_report_is_laid_out_well(tab: Browser, pages: dict[str, Path], name: str, width: int) -> None:
    tab.look(pages[name], width=width)
    assert tab.run("innerWidth") == width
    assert tab.run(LAYOUT) == []


@pytest.mark.parametrize("name", NAMES)
def test_a_report_asks_for_nothing_and_the_console_stays_silent(
    tab: Browser, pages: dict[str, Path], name: str
) -> None:
    tab.look(pages[name], width=1280, dark=True)
    assert [each for each in tab.requests if each != pages[name].resolve().as_uri() and each != "data:,"] == []
    assert tab.complaints == []


@pytest.mark.parametrize("name", NAMES)
def test_every_figure_has_words_a_title_and_a_drawing(tab: Browser, pages: dict[str, Path], name: str) -> None:
    tab.look(pages[name], width=390)
    figures = tab.run(
        """[...document.querySelectorAll('figure')].map(f => [f.querySelector('figcaption').textContent,
        f.querySelector('svg[role=img]').getAttribute('aria-label'), f.querySelectorAll('.plot path').length])"""
    )
    assert len(figures) >= 2
    assert all(title and len(label.split()) >= 8 and paths > 3 for title, label, paths in figures)
    tree = tab.tab("Accessibility.getFullAXTree")["nodes"]
    images = [node["name"]["value"] for node in tree if node.get("role", {}).get("value") in ("image", "img")]
    assert set(images) >= {label for _, label, _ in figures}  # what a screen reader is told


@pytest.mark.parametrize("name", NAMES)
def test_dark_is_dark_and_paper_is_light_whatever_the_screen(tab: Browser, pages: dict[str, Path], name: str) -> None:
    paper = "getComputedStyle(document.body).backgroundColor"
    found = []
    for dark, media in ((False, "screen"), (True, "screen"), (True, "print")):
        tab.look(pages[name], width=1280, dark=dark, media=media)
        found.append(tab.run(paper))
    assert found[0] == found[2] == "rgb(255, 255, 255)"
    assert found[1] != found[0]
    hidden = "[...document.querySelectorAll('.wide')].filter(w => w.scrollHeight > w.clientHeight + 1).length"
    assert tab.run(hidden) == 0  # on paper a long table is there in full


@pytest.mark.parametrize(("name", "most"), [("aged", 12_800), ("counts", 10_500)])
def test_a_report_is_not_read_for_ever_on_a_telephone(
    tab: Browser, pages: dict[str, Path], name: str, most: int
) -> None:
    tab.look(pages[name], width=390)
    assert tab.run("document.documentElement.scrollHeight") < most


def test_faults_of_layout_would_be_seen(tab: Browser, pages: dict[str, Path], tmp_path: Path) -> None:
    text = pages["aged"].read_text()
    spoilt = {
        "on": text.replace("</style>", ".plot .x{left:10%!important}</style>"),
        "sideways": text.replace("</style>", "h1{width:2000px}</style>"),
        "small": text.replace("</style>", "td{font-size:6px}</style>"),
    }
    for what, changed in spoilt.items():
        (tmp_path / f"{what}.html").write_text(changed)
        tab.look(tmp_path / f"{what}.html", width=390)
        assert any(what in each for each in tab.run(LAYOUT)), what
    (tmp_path / "asks.html").write_text(
        text.replace("default-src 'none';", "")
        .replace("img-src data:", "")
        .replace("<main>", '<main><img src="file:///nowhere.png">')
    )
    tab.look(tmp_path / "asks.html", width=390)
    assert any("nowhere" in each for each in tab.requests)
    assert tab.complaints
