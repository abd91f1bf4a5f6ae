"""The page and the tables of a demonstration: complete, self-contained, and equal to the releases."""

from __future__ import annotations

import math
import re
from datetime import date
from decimal import ROUND_CEILING, Context, Decimal
from html import unescape
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from agedp.demo.demo_folder import DEMONSTRATED_NOTIONS
from agedp.demo.overview import exact_bound, gap_text, mixing_rows, noise_ratio, not_applicable, release_row
from agedp.stages.publish import open_release
from agedp_data.leakage.function import leakage
from agedp_data.statement.note_texts import FACTS
from tests.agedp.demo.conftest import Demonstration
from tests.agedp.reports.browser import CHROMIUM, browser
from tests.agedp.reports.html import Page, faults_of
from tests.agedp.reports.test_in_a_browser import LAYOUT
from tests.references import unresolved

UP = Context(prec=3, rounding=ROUND_CEILING)


def three_digits(text: str) -> str:
    return f"{UP.create_decimal(text).normalize():f}"


def test_the_page_has_every_section_and_every_link_exists(demonstration: Demonstration) -> None:
    page = demonstration.page
    text, links = Page(page).text, re.findall(r'href="([^"]*)"', page)
    assert [fault for fault in faults_of(page) if not fault.startswith("a href=")] == []
    assert "<script" not in page
    assert "://" not in page
    headings = "London: chains and bounds", "Ausgrid: the released series", "No household exists"
    for words in (*headings, FACTS.several("with_model")[1]):
        assert words in text
    titles = Page(page).titles
    for words, number in (("transition matrix", 4), ("Decay of dependence", 2), ("daily mean", 6)):
        assert sum(words in title for title in titles) == number
    assert len([link for link in links if link.endswith("report.html")]) == 6
    assert all(link.startswith(("data:,", "#")) or (demonstration.folder / link).is_file() for link in links)
    for release in demonstration.releases:
        assert all(cell in text for cell in release_row(release))
    for mixing in demonstration.mixings:
        assert all(" ".join(row[1:]) in text for row in mixing_rows(mixing))


def test_a_demonstration_says_nothing_false_of_real_readings(demonstration: Demonstration) -> None:
    """Pages, statements, reports and run files of six releases, terminal lines: no household exists."""
    texts = {
        str(path.relative_to(demonstration.folder)): path.read_text("utf-8")
        for path in sorted(demonstration.folder.rglob("*"))
        if path.suffix in {".html", ".md", ".json", ".jsonl", ".toml"}
    }
    texts["terminal"] = "\n".join(not_applicable(mixing) + gap_text(mixing) for mixing in demonstration.mixings)
    assert len(texts) > 6 * 5
    assert {name: lost for name, text in texts.items() if (lost := unresolved(text))} == {}
    assert [name for name, text in texts.items() if "real readings" in text] == []
    assert "Spectral-gap bound for reversible chains (eq. 55 of Zhang et al. 2024): not applicable" in texts["terminal"]


def test_table_numbers_equal_those_of_the_statements(demonstration: Demonstration) -> None:
    rows = re.findall(r"<tr>(.*?)</tr>", demonstration.page.partition("<tbody>")[2].partition("</tbody>")[0], re.S)
    cells = [[unescape(re.sub("<[^>]*>", "", cell)) for cell in re.findall(r"<t[hd].*?</t[hd]>", row)] for row in rows]
    assert len(cells) == 6
    for place, row in zip([(d, n) for d in ("london", "ausgrid") for n in DEMONSTRATED_NOTIONS], cells, strict=True):
        folder = open_release(demonstration.folder.joinpath(*place, "release"))
        folder.verify()
        figures = {figure["name"]: figure for figure in folder.statement["figures"]}
        table = folder.table()
        bound = {
            "age-dependent": ("risk", "risk at 2 days"),
            "temporal": ("temporal leakage", "temporal leakage"),
            "discounted": ("discounted sum (exponential 0.7)", "discounted sum"),
        }[place[1]]
        limit = figures[bound[0]]
        assert row[0] == f"{place[0].capitalize()}, {place[1]}"
        assert row[1] == str(len(table)) == "4"
        assert row[2] == f"{math.sqrt((table['noise_sd_kwh'] ** 2).mean()):.3f}"
        assert row[5].split(" to ")[-1] == three_digits(figures["day"]["epsilon"])
        assert row[6] == three_digits(figures["total"]["epsilon"])
        assert row[7] == f"{bound[1]}: {three_digits(limit['epsilon'])} of {three_digits(limit['limit'])}"
        assert Decimal(limit["epsilon"]) <= Decimal(limit["limit"])
        assert row[-1] == "report, privacy statement, run file"


def steps_of(kernels: np.ndarray, first: float, losses: list[float], gap: int) -> list[float]:
    """docs/mathematics.md in one line each: z_k = e_k + L(z_(k-1)) through the kernel over the gap."""
    composed, over = [first], np.linalg.matrix_power(kernels, gap)
    for loss in losses:
        composed.append(loss + float(leakage(over, composed[-1])))
    return composed


def test_bounds_under_exact_chains_follow_the_recursions(demonstration: Demonstration) -> None:
    for release in demonstration.releases:
        mixing = next(each for each in demonstration.mixings if each.dataset == release.dataset)
        value = exact_bound(release, mixing.kernels)
        losses = [row["epsilon"] for row in release.days]
        expected = []
        for kernel in mixing.kernels:  # symmetric, so that the reversed chain is the chain itself
            past = steps_of(kernel, losses[0], losses[1:], 48)
            future = steps_of(kernel, losses[-1], losses[-2::-1], 48)[::-1]
            if release.notion == "age-dependent":
                aged = np.linalg.matrix_power(kernel, 96)
                expected.append(max(float(leakage(aged, loss)) for loss in past))
            else:
                before = [0.0, *(float(leakage(kernel, loss)) for loss in past[:-1])]
                after = [*(float(leakage(kernel, loss)) for loss in future[1:]), 0.0]
                expected.append(max(map(sum, zip(losses, before, after, strict=True))))
        if release.notion == "age-dependent":  # age is credited: a day spends more than its risk
            assert Decimal(release.bound.limit) < Decimal(release.day_epsilon) <= 2
        if release.notion == "discounted":
            assert value is None
        else:
            assert value == pytest.approx(max(expected), rel=1e-9)
            assert 0 < value <= float(release.bound.limit)


def test_noise_to_change_is_what_the_published_series_says() -> None:
    means, deviation = [1.0, 1.5, 1.1, 1.9, 1.2, 1.6, 1.0, 1.7], 0.1
    days = [
        {"day": date(2013, 1, i), "mean_kwh": mean, "noise_sd_kwh": deviation} for i, mean in enumerate(means, start=1)
    ]
    value = noise_ratio(days, means)
    change = math.sqrt(sum((after - before) ** 2 for before, after in pairwise(means)) / 7)
    assert value.true_change == pytest.approx(change)
    assert value.ratio == pytest.approx(deviation / math.sqrt(change**2 - 2 * deviation**2))
    hidden = noise_ratio([{**day, "noise_sd_kwh": 1.0} for day in days], means)
    assert (hidden.ratio, noise_ratio(days[:7], means[:7]).ratio) == (None, None)


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium to look at pages with (Debian package chromium)")
def test_the_page_is_laid_out_well_in_a_browser(demonstration: Demonstration, tmp_path: Path) -> None:
    with browser(tmp_path) as tab:
        for width in (390, 1280):
            tab.look(demonstration.folder / "index.html", width=width, dark=width == 390)
            assert tab.run(LAYOUT) == []
            assert tab.complaints == []
