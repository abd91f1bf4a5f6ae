"""explore.html: what the tables have, drawn under a policy that permits two scripts, and verified as report.html is."""

from __future__ import annotations

import csv
import hashlib
import json
import re
import shutil
import time
from base64 import b64encode
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from agedp.release_verification import open_release
from agedp.reports import chart_library, explore_page
from agedp.reports.loss_charts import BoundKey, LossOverTime
from agedp.reports.public_report import report_data
from agedp.reports.report_data import ReleasedRows
from agedp.stages.publish import write_folder_as_of
from agedp_data.errors import InputError
from tests.agedp.conftest import CLASSICAL, House
from tests.agedp.release_folder.resealed import reseal
from tests.agedp.reports.browser import Browser
from tests.agedp.reports.conftest import build_every
from tests.agedp.reports.html import Page
from tests.agedp.reports.test_in_a_browser import LAYOUT

FIRST, DAYS = date(2013, 1, 20), 40
EXPLORE = "explore.html"
HOSTILE = '</script><img src=x onerror=alert(1)><script>alert("$$x$$")</script>\u202egnp\x1b[2J'
COLUMNS = {
    "daily_coverage": ("coverage", "low", "high"),
    "daily_distribution": ("households_noisy",),
}
"""Columns of value and interval by file, of those that are no means."""
MEAN = ("mean_kwh", "low_kwh", "high_kwh")
PART = "document.querySelector('#values [data-of={}]')"
SETTLED = "document.querySelectorAll('#values .bk-Figure').length"


def with_explore(house: House) -> House:
    house.edit(("[output]\n", '[output]\nexplore = true\naverages_by = ["week", "month", "year"]\n'))
    return house


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> House:
    """Two series, one of them by a group with a hostile name, and a hostile title."""
    house = House(tmp_path_factory.mktemp("explored"))
    days = [FIRST + timedelta(days=i) for i in range(DAYS)]
    house.fill(days, households="ABCDEF", wh=200)
    with (house.folder / "roster.csv").open("w", encoding="utf-8", newline="") as roster:
        rows = [[home, FIRST, "", "Std" if home in "AB" else HOSTILE] for home in "ABCDEF"]
        csv.writer(roster).writerows([["household_id", "from", "to", "tariff"], *rows])
    by_tariff = '[series.by_tariff]\nstatistic = "mean"\nshare = 0.5\nclamp_kwh = 40\nby = "tariff"\n'
    house.write(
        days[0], days[-1] + timedelta(days=2), mode="live", promise=f"{CLASSICAL}age_days = 1\n", rest=by_tariff
    )
    house.edit(("clamp_kwh = 50\n", "clamp_kwh = 50\nshare = 0.5\n"), ('"Made up"', "'</title><b>Made</b> & up'"))
    with_explore(house).run(today=days[-1] + timedelta(days=2))
    return house


@pytest.fixture
def house(made: House, tmp_path: Path) -> House:
    return House(Path(shutil.copytree(made.folder, tmp_path / "house")))


@pytest.fixture(scope="module")
def every(tmp_path_factory: pytest.TempPathFactory) -> House:
    house = House(tmp_path_factory.mktemp("every"))
    with pytest.MonkeyPatch.context() as patch:
        write = House.write
        patch.setattr(House, "write", lambda self, *args, **keys: (write(self, *args, **keys), with_explore(self)))
        return build_every(house)


def page_of(house: House) -> str:
    return (house.folder / "release" / EXPLORE).read_text("utf-8")


def data_of(house: House) -> dict[str, Any]:
    [text] = re.findall(r'<script type="application/json" id="data">(.*?)</script>', page_of(house), re.DOTALL)
    data: dict[str, Any] = json.loads(text)
    return data


def contents(house: House) -> dict[str, bytes]:
    folder = house.folder / "release"
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def open_page(tab: Browser, house: House, *, width: int = 1280, dark: bool = False, media: str = "screen") -> None:
    tab.look(house.folder / "release" / EXPLORE, width=width, dark=dark, media=media)
    wait(tab, f"{SETTLED} && document.querySelectorAll('#losses .bk-Figure').length")


def wait(tab: Browser, expression: str) -> None:
    end = time.monotonic() + 30
    while not tab.run(expression):
        assert time.monotonic() < end, expression
        time.sleep(0.05)


def readout(tab: Browser) -> list[list[str]]:
    rows = "[...document.querySelectorAll('#values .readout tr')].map(row => [...row.children].map(e => e.textContent))"
    return tab.run(rows)


def test_the_policy_permits_the_two_scripts_by_digest(made: House) -> None:
    page = page_of(made)
    scripts = re.findall(r"<script[^>]*>(.*?)</script>", page, re.DOTALL)
    assert len(scripts) == 3  # the first is JSON, which no browser runs
    digests = [b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts[1:]]
    policy = f"default-src 'none'; script-src 'sha256-{digests[0]}' 'sha256-{digests[1]}'; "
    assert f"content=\"{policy}style-src 'unsafe-inline'; img-src data:\"" in page
    of_page = re.sub(r"<script.*?</script>", "", page, flags=re.DOTALL)
    assert re.findall(r"\bsrc=|\son\w+=|javascript:|https?:|@import|url\(", of_page) == []
    assert {target.partition("/")[0] for target in re.findall(r'href="([^"#]+)"', of_page)} == {"data:,", "report.html"}
    assert Page(of_page).faults == ["a href=report.html"] * 3  # a file of the folder, as that of a table


def test_a_bound_is_rounded_up_to_six_digits() -> None:
    days = [str(FIRST + timedelta(days=i)) for i in range(5)]
    key, curve = BoundKey("total", "all days", ""), LossOverTime(tuple(days[:4]), (1, 2_000, 2_001, None))
    assert explore_page._by_day({key: curve}, key, days) == [1e-6, 2e-6, 3e-6, None, None]


def test_a_page_that_begins_with_a_month_has_this_month_and_none_before(made: House) -> None:
    session, rows = made.session(today=FIRST + timedelta(days=DAYS + 2)), [*made.rows()]
    charted = [row for row in rows if row.day >= "2013-02-01"]
    released, files = ReleasedRows(charted, rows), {path.name for path in (made.folder / "release").iterdir()}
    contracts, statement = session.history.contracts, made.release.read_statement()
    report = report_data(session.run.run_file, (), statement, released, contracts, file_names=files)
    page = explore_page.explore_page(report, chart_library.installed_library()).decode()
    [text] = re.findall(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    months = [table["periods"] for table in json.loads(text)["values"] if table["period"] == "month"]
    february = [(date(2013, 2, day) - date(1970, 1, 1)).days for day in (1, 28)]
    assert months == [[february]] * 2  # of each series


def test_a_browser_draws_every_table_and_asks_for_nothing(tab: Browser, every: House) -> None:
    open_page(tab, every)
    assert tab.run("document.getElementById('plain').hidden")
    canvases = "[...document.querySelectorAll('.bk-Figure')].map(e => e.shadowRoot.innerHTML.includes('bk-Canvas'))"
    assert tab.run(canvases) == [True, True]
    data = data_of(every)
    for number, table in enumerate(data["values"]):
        tab.run(f"(e => {{ e.value = {number}; e.dispatchEvent(new Event('change')) }})({PART.format('table')})")
        wait(tab, f"{SETTLED} === 1")
        rows = readout(tab)
        has_days = "days_released" in pq.read_schema(every.folder / "release" / table["file"]).names
        assert rows[0][1:] == [table["unit"], "low", "high", *["days"] * has_days]
        assert rows[1:], table["label"]
        for places in range(min(2, len(table["places"]))):
            tab.run(f"(e => {{ e.value = {places}; e.dispatchEvent(new Event('change')) }})({PART.format('place')})")
    assert [url for url in tab.requests if not url.startswith(("data:", "file:"))] == []
    assert [url for url in tab.requests if url.startswith("file:") and not url.endswith(EXPLORE)] == []
    assert [said for said in tab.complaints if "setting log level" not in said] == []


def test_it_is_laid_out_well_in_light_and_dark_and_on_paper(tab: Browser, every: House) -> None:
    paper = "getComputedStyle(document.body).backgroundColor"
    for width, dark in ((390, True), (390, False), (1280, True), (1280, False)):
        open_page(tab, every, width=width, dark=dark)
        assert (tab.run(paper) == "rgb(255, 255, 255)") != dark
        assert tab.run(LAYOUT) == []
    tab.look(every.folder / "release" / EXPLORE, width=1280, media="print")
    assert tab.run("getComputedStyle(document.querySelector('main')).display") == "none"
    assert "report.html" in tab.run("document.querySelector('.paper').innerText")


def test_without_a_script_it_names_the_other_page(tab: Browser, made: House) -> None:
    tab.tab("Emulation.setScriptExecutionDisabled", value=True)
    try:
        tab.look(made.folder / "release" / EXPLORE, width=390)
    finally:
        tab.tab("Emulation.setScriptExecutionDisabled", value=False)
    text = tab.run("document.body.innerText")
    assert "report.html shows the same release without one." in text
    assert "Notions side by side" not in text


def test_keys_and_buttons_move_the_pointer_and_the_axis(tab: Browser, made: House) -> None:
    open_page(tab, made)
    tab.run(f"(e => {{ e.value = 0; e.dispatchEvent(new Event('change')) }})({PART.format('table')})")
    table, caption = data_of(made)["values"][0], "document.querySelector('#values .readout caption').textContent"
    days = [str(date(1970, 1, 1) + timedelta(days=first)) for first, _ in table["periods"]]
    wait(tab, f"{caption} === '{days[-1]}'")
    press = "e.dispatchEvent(new KeyboardEvent('keydown', {{key: '{}'}}))"
    tab.run(f"(e => {{ {press.format('Home')}; {press.format('ArrowRight')} }})({PART.format('canvas')})")
    assert tab.run(caption) == days[1]
    assert float(readout(tab)[1][1]) == pytest.approx(table["values"][0][1], rel=1e-3)
    tab.run(f"{PART.format('in')}.click()")
    half = [tab.run(f"{PART.format(end)}.value") for end in ("from", "to")]
    assert days[0] < half[0] < half[1] < days[-1]
    tab.run(f"{PART.format('all')}.click()")
    assert [tab.run(f"{PART.format(end)}.value") for end in ("from", "to")] == [days[0], days[-1]]
    box = tab.run(
        f"(r => [r.left + r.width / 2, r.top + r.height / 2])({PART.format('canvas')}.getBoundingClientRect())"
    )
    tab.tab("Input.dispatchMouseEvent", type="mouseMoved", x=box[0], y=box[1])
    wait(tab, f"!['{days[1]}', '{days[-1]}'].includes({caption})")
    assert days[len(days) // 2 - 4] < tab.run(caption) < days[len(days) // 2 + 4]


def test_the_dates_of_the_axis_have_their_year(tab: Browser, made: House) -> None:
    open_page(tab, made)
    axis, days = "Bokeh.documents[0].roots()[0].below[0]", [f"Date.UTC(2013, 0, {day})" for day in (20, 25, 30)]
    labels = tab.run(f"{axis}.formatter.doFormat([{', '.join(days)}], {{loc: 0}}).map(String)")
    assert ["2013" in label for label in labels] == [True, False, False]


def test_groups_are_found_and_chosen(tab: Browser, made: House) -> None:
    open_page(tab, made)
    number = next(i for i, table in enumerate(data_of(made)["values"]) if "Std" in table["groups"])
    tab.run(f"(e => {{ e.value = {number}; e.dispatchEvent(new Event('change')) }})({PART.format('table')})")
    tab.run(f"{PART.format('none')}.click()")
    wait(tab, "document.querySelector('#values .readout').innerText.includes('Choose a line')")
    tab.run(f"(e => {{ e.value = 'sT'; e.dispatchEvent(new Event('input')) }})({PART.format('search')})")
    shown = "[...document.querySelectorAll('#values .groups li')].filter(e => !e.hidden)"
    assert tab.run(f"{shown}.map(e => e.innerText.trim())") == ["Std"]
    tab.run(f"{shown}[0].querySelector('input').click()")
    wait(tab, "document.querySelector('#values .readout table') !== null")
    assert [row[0] for row in readout(tab)[1:]] == ["Std"]


def test_a_hostile_name_is_a_text(tab: Browser, made: House) -> None:
    open_page(tab, made)
    escaped = HOSTILE.replace("\u202e", r"\u202e").replace("\x1b", r"\x1b")
    assert any(escaped in table["groups"] for table in data_of(made)["values"])
    assert len(re.findall(r"</script>", page_of(made))) == 3
    assert not re.search("[\u202e\x1b]", page_of(made))
    number = next(i for i, table in enumerate(data_of(made)["values"]) if escaped in table["groups"])
    tab.run(f"(e => {{ e.value = {number}; e.dispatchEvent(new Event('change')) }})({PART.format('table')})")
    names = "[...document.querySelectorAll('#values .groups label')].map(e => e.innerText.trim())"
    assert escaped in tab.run(names)
    assert escaped in [row[0] for row in readout(tab)[1:]]
    assert tab.run("document.querySelectorAll('main img, main script').length") == 0
    assert "</title><b>Made</b> & up" in tab.run("document.querySelector('h1').innerText")
    assert [told for told in tab.events if told.get("method") == "Page.javascriptDialogOpening"] == []
    assert [said for said in tab.complaints if "setting log level" not in said] == []


def test_values_equal_those_of_the_parquet_files(every: House, made: House) -> None:
    for house in (every, made):
        compared = [compare(house.folder / "release", table) for table in data_of(house)["values"]]
        assert min(compared) > 0
        files = {table["file"] for table in data_of(house)["values"]}
        assert {f"averages_by_{period}.parquet" for period in ("week", "month")} <= files


def compare(folder: Path, table: dict[str, Any]) -> int:
    """Compare each value of a table in the page with the rows of the file that it can be of; return their number."""
    columns = next((of for name, of in COLUMNS.items() if table["file"].startswith(name)), MEAN)
    factor = 100 if table["unit"] == "%" else 1
    rows = pq.read_table(folder / table["file"]).to_pylist()
    known: dict[Any, list[Any]] = {}
    for row in rows:
        first = row.get("first_day", row.get("day"))
        minute, edges = row.get("start_minute"), (row.get("bin_low_kwh"), row.get("bin_high_kwh"))
        place = "" if minute is None else f"{minute // 60:02}:{minute % 60:02}"
        place = place if edges[0] is None else f"{edges[0]:g}–{edges[1]:g}"
        key = (row["group"], row.get("day_kind", ""), place, (first - date(1970, 1, 1)).days)
        days = [row["days_released"]] if "days_released" in row else []
        known.setdefault(key, []).append([*(round(factor * row[name], 6) for name in columns), *days])
    count = 0
    for line, (group, colour, place) in enumerate(table["lines"]):
        for period, (first, last) in enumerate(table["periods"]):
            shown = [table[kind][line][period] for kind in ("values", "low", "high")]
            key = (_unescaped(table["groups"][group]), table["colours"][colour], table["places"][place], first)
            if shown[0] is None:
                assert key not in known
                continue
            assert last >= first
            days = [table["days"][line][period]] if "days_released" in rows[0] else []
            assert [*shown[: len(columns)], *days] in known[key], (table["label"], key)
            count += 1
    return count


def _unescaped(name: str) -> str:
    return name.replace(r"\u202e", "\u202e").replace(r"\x1b", "\x1b")


def test_bounds_end_with_those_of_the_statement(made: House) -> None:
    [losses] = data_of(made)["losses"]
    figures = json.loads((made.folder / "release" / "statement.json").read_text())["figures"]
    stated = {figure["name"]: float(figure["epsilon"]) for figure in figures}
    for name, values in zip(losses["groups"], losses["values"], strict=True):
        bound = name.partition(": ")[2]
        if bound in stated:
            assert stated[bound] <= values[-1] <= stated[bound] + 2e-6
    assert {"day", "total"} <= {name.partition(": ")[2] for name in losses["groups"]}


def test_a_long_table_loses_its_oldest_days(made: House, monkeypatch: pytest.MonkeyPatch, house: House) -> None:
    monkeypatch.setattr(explore_page, "MOST_VALUES", 20)
    assert write_folder_as_of(house.session(today=date(2013, 3, 3)), date(2013, 3, 3)) is False
    cut, whole = data_of(house)["values"][0], data_of(made)["values"][0]
    assert (cut["isCut"], whole["isCut"]) == (True, False)
    assert cut["periods"] == whole["periods"][-20:]
    assert cut["values"] == [line[-20:] for line in whole["values"]]


def test_it_is_listed_and_verified_byte_by_byte(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, page = house.folder / "release", page_of(house)
    assert f"  {EXPLORE}\n" in (folder / "SHA256SUMS").read_text()
    assert EXPLORE in {each["path"] for each in json.loads((folder / "datapackage.json").read_text())["resources"]}
    assert EXPLORE in house.release.verify().compared
    (folder / EXPLORE).write_text(page.replace('"values":[[', '"values":[[0', 1), "utf-8")
    with pytest.raises(InputError, match=r"explore\.html differs from the published file"):
        house.release.verify()
    for changed in (page.replace('"values":[[', '"values":[[0', 1).encode(), b"\xff", page.encode() + b"\n"):
        (folder / EXPLORE).write_bytes(changed)
        reseal(folder)
        with pytest.raises(InputError, match=r"explore\.html differs from what agedp .* makes of its ledger rows"):
            open_release(folder).verify()


def test_a_changed_script_is_refused_and_another_version_named(house: House) -> None:
    folder, library, page = house.folder / "release", chart_library.installed_library(), page_of(house)
    digests = re.findall(r"'sha256-([^']+)'", page)

    def write(version: str, script: str) -> None:
        digest = b64encode(hashlib.sha256(script.encode()).digest()).decode()
        changed = page.replace(library.script, script).replace(library.version, version).replace(digests[0], digest)
        (folder / EXPLORE).write_text(changed, "utf-8")
        reseal(folder)

    write(library.version, f"{library.script};alert(1)")
    with pytest.raises(InputError, match=rf"explore\.html: its script differs from that of bokeh {library.version}"):
        open_release(folder).verify()
    write("9.9", "1;")
    verification = open_release(folder).verify()
    assert EXPLORE not in verification.compared
    assert any(text.startswith(f"{EXPLORE}: ") for text in verification.not_compared)


def test_another_library_is_published_on_a_quiet_night(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    then, day = contents(house), FIRST + timedelta(days=DAYS + 1)
    house.run(today=day)
    assert contents(house) == then
    monkeypatch.setattr("agedp.stages.publish.installed_library", lambda: chart_library.ChartLibrary("9.9", "1;"))
    house.run(today=day)
    assert "BokehJS 9.9" in page_of(house)


def test_a_missing_library_is_refused_before_a_draw(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    house = House(tmp_path)
    house.fill([FIRST])
    house.write(FIRST, FIRST)
    with_explore(house)

    def missing(name: str) -> Path:
        raise ModuleNotFoundError(name)

    monkeypatch.setattr(chart_library, "files", missing)
    with pytest.raises(
        InputError, match=r"needs bokeh, which is not installed\. Install it: pip install 'agedp\[explore\]'"
    ):
        house.run(today=date(2013, 6, 1))
    assert not (tmp_path / "ledger.sqlite").exists()
    assert not (tmp_path / "release" / "statement.json").exists()


def test_a_group_that_ended_before_the_kept_days_is_no_first_group(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The largest group of all days has no row among those that a long table keeps."""
    house = House(tmp_path)
    days = [FIRST + timedelta(days=i) for i in range(6)]
    house.fill(days, households="ABCDEF", wh=200)
    ended = [f"{home},{FIRST},{days[2]},ended" for home in "ABCD"]
    (house.folder / "roster.csv").write_text(
        "\n".join(["household_id,from,to,area", *ended, f"E,{FIRST},,goes on", f"F,{FIRST},,goes on"]) + "\n"
    )
    house.write(days[0], days[-1], mode="archive", promise=CLASSICAL)
    house.edit(("clamp_kwh = 50\n", 'clamp_kwh = 50\nby = "area"\n'))
    with_explore(house)
    monkeypatch.setattr(explore_page, "MOST_VALUES", 6)
    house.run(today=days[-1] + timedelta(days=3))
    table = data_of(house)["values"][0]
    assert ([table["groups"][i] for i in table["start"]], table["isCut"]) == (["goes on"], True)
    house.release.verify()
