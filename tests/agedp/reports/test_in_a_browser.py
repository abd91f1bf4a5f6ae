"""Reports in a browser: nothing is fetched, nothing overlaps, no message on the console."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.agedp.reports.browser import Browser

NAMES = ["aged", "one day", "counts", "every", "confidential", "smoothed"]

LAYOUT = """(() => {
  document.querySelectorAll('details').forEach(section => { section.open = true; });
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
def test_a_report_is_laid_out_well_in_light_and_dark(tab: Browser, pages: dict[str, Path], name: str) -> None:
    paper = "getComputedStyle(document.body).backgroundColor"
    for width, dark, media in ((390, True, "screen"), (1280, False, "screen"), (1280, True, "print")):
        tab.look(pages[name], width=width, dark=dark, media=media)
        assert tab.run("innerWidth") == width
        assert (tab.run(paper) == "rgb(255, 255, 255)") == (media == "print" or not dark)
        assert [url for url in tab.requests if url not in (pages[name].resolve().as_uri(), "data:,")] == []
        assert tab.complaints == []
        if media == "screen":
            assert tab.run(LAYOUT) == []
    hidden = "[...document.querySelectorAll('.wide')].filter(e => e.scrollHeight > e.clientHeight + 1).length"
    assert tab.run(hidden) == 0  # on paper a long table is complete


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
        .replace("<header>", '<header><img src="file:///nowhere.png">')
    )
    tab.look(tmp_path / "asks.html", width=390)
    assert any("nowhere" in each for each in tab.requests)
    assert tab.complaints


def test_values_are_saved_from_the_page(tab: Browser, pages: dict[str, Path], tmp_path: Path) -> None:
    tab.look(pages["aged"], width=1280)
    tab.ask("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(tmp_path), eventsEnabled=True)
    link = "document.querySelector('a[download=\"daily_mean.csv\"]')"
    tab.tab("Runtime.evaluate", expression=f"{link}.click()", userGesture=True)
    tab.wait_for(lambda event: event.get("params", {}).get("state") == "completed")
    assert tab.complaints == []
    days = len(pq.read_table(pages["aged"].parent / "daily_averages.parquet"))
    assert len((tmp_path / "daily_mean.csv").read_text().splitlines()) == 1 + days


def test_the_pointer_finds_a_title_on_every_point(tab: Browser, pages: dict[str, Path]) -> None:
    tab.look(pages["aged"], width=1280)
    at_point = """(() => {
      const plot = document.querySelector('.plot');
      plot.scrollIntoView();
      const now = plot.querySelector('svg').getBoundingClientRect();
      return [0.01, 0.5, 0.99].map(share => document.elementFromPoint(
        now.left + share * now.width, now.top + now.height / 2)?.querySelector('title')?.textContent);
    })()"""
    titles = tab.run(at_point)
    assert all("kWh per household (" in title or title.endswith("skipped days") for title in titles)


@pytest.mark.parametrize("name", ["aged", "counts", "every"])
def test_the_first_chart_is_on_the_first_screen(tab: Browser, pages: dict[str, Path], name: str) -> None:
    top = "document.querySelector('.plot').getBoundingClientRect().top"
    for width, height in ((1280, 800), (390, 844)):
        tab.look(pages[name], width=width)
        assert tab.run(top) < height - 100
