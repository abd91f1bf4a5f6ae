"""Every claim has a verdict with its number, and reference values stand among them."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from agedp_data.accounting.ageing import compose
from agedp_data.leakage.function import leakage
from docs.papers.age.claims import EVEN, UNLIKE
from docs.papers.age.two_state import CHAIN
from docs.papers.references import cited
from docs.papers.results import EVERY, OWN, PaperClaim, PaperFigure

pytestmark = pytest.mark.xdist_group("papers")  # figures are computed once

TESTS = Path(__file__).parents[1]


def test_every_claim_points_to_a_test_that_exists(claims: list[PaperClaim]) -> None:
    for claim in claims:
        file, _, name = claim.test.partition("::")
        assert re.search(rf"def {name}\(", (TESTS / file).read_text()), claim.test


def test_every_claim_says_where_what_and_on_which_data(claims: list[PaperClaim]) -> None:
    assert len(claims) > 80
    assert {claim.verdict for claim in claims} == {"reproduced", "sharpened", "refuted", "not judged"}
    for claim in claims:
        assert all((claim.place, claim.claim, claim.found, claim.rests_on)), claim
        pages = cited(claim.correct_form).split(", ")
        assert all(page == "reference value" or re.fullmatch(r"docs/[a-z-]+\.md(#[a-z-]+)?", page) for page in pages)
        assert not re.search(r"\bnan\b", claim.found), claim
        assert claim.verdict != "refuted" or re.search(r"\d", claim.found), claim


def test_each_refutation_names_for_which_values_the_claim_is_false(claims: list[PaperClaim]) -> None:
    for claim in claims:
        assert (claim.ground in {EVERY, OWN}) if claim.verdict == "refuted" else not claim.ground, claim
        assert not claim.reading or claim.verdict == "reproduced", claim
        assert claim.verdict != "refuted" or "synthetic" not in claim.rests_on, claim
    assert {claim.ground for claim in claims} == {EVERY, OWN, ""}
    readings = {claim.reading for claim in claims if claim.reading}
    assert readings == {"s = 0.0005 for the printed .005", "values on the line"}  # one more on measured data


def test_each_verdict_on_measured_households_is_one_on_these_with_its_spread() -> None:
    page = (Path(__file__).parents[2] / "docs" / "papers.md").read_text("utf-8")
    rows = [line.split(" | ") for line in page.splitlines() if line.endswith("` |")]
    assert {row[0].removeprefix("| ") for row in rows} == {"Figure 7(a)", "Figure 7(b)", "Figure 7(c)", "eq. 55"}
    for _, _, verdict, found, *_ in rows:
        assert "of these 40 households" in found
        assert "over 200 random halves" in found or "so over random halves" in found
        assert "refuted" not in verdict or f"({EVERY})" in verdict
    [of_18_hours] = [row for row in rows if "from 18 hours on" in row[1]]
    assert of_18_hours[2] == "**reproduced** (common intervals of 0 to 1 kWh, the reversible fit)"
    assert re.search(r"from 18 \(\d+ to 18\) h on with common intervals of 0 to 1 kWh, the rev", of_18_hours[3])
    assert re.search(r"from 26\.5 \(\d+ to 26\.5\) h on with intervals up to each household's", of_18_hours[3])


@pytest.mark.parametrize(
    ("paper", "place", "verdict", "numbers"),
    [
        ("age", "Figure 5(c)", "reproduced", ["picked to match", "33% less often"]),
        ("age", "Figure 5(c)", "refuted", ["largest gain is 0.0%"]),
        ("age", "Proposition 4, eq. 40", "reproduced", ["0.5000, 0.5000, 0.5000"]),
        ("temporal", "Figure 9", "sharpened", ["38.0 by Algorithm 8", "10.0 by even shares", "9.0 at best"]),
        ("discounted", "Corollary 16", "refuted", ["3.65384757680581916"]),
        ("discounted", "after Corollary 16", "refuted", ["5.847 and 8.269", "1.645 and 6.580", "day 3"]),
        ("neighbourhood", "Table", "reproduced", ["3 with whole numbers", "2 on the line"]),
        ("temporal", "Figure 7", "reproduced", ["95 % of the supremum after 9 and 79", "as printed after"]),
        ("neighbourhood", "Proposed method", "refuted", ["2 for moves of up to δ", "4 for an arrival", "8 for a"]),
    ],
)  # fmt: skip
def test_reference_values_stand_in_the_table_of_claims(small, paper, place, verdict, numbers) -> None:
    text = " | ".join(one.found for one in small[paper].claims if (one.place, one.verdict) == (place, verdict))
    for number in numbers:
        assert number in text


def test_two_kernels_of_one_distance_let_different_losses_through() -> None:
    for kernel in (EVEN, UNLIKE):
        assert np.abs(np.subtract(*kernel)).sum() / 2 == 0.5
    # By hand, e = exp(2) - 1: ln((1 + .75 e)/(1 + .25 e)) for one, ln(1 + .5 e) for the other, which is Theorem 1's.
    gain = np.expm1(2.0)
    assert float(leakage(UNLIKE, 2.0)) == pytest.approx(np.log((1 + 0.75 * gain) / (1 + 0.25 * gain)))
    assert float(leakage(EVEN, 2.0)) == pytest.approx(np.log(1 + 0.5 * gain))


def test_the_fifth_publication_is_a_tenth_below_the_peak(figures: dict[str, PaperFigure]) -> None:
    # By hand: z_1 = .5, z_k = .5 + ln(1 + .8^4 (e^z - 1)), and .8^2 at the end; peak .8236 (reference value).
    fifth = compose(CHAIN, [4, 8, 12, 16, 20], [2] * 5, [0.5] * 5, [20], method="total_variation")[0]
    assert fifth == pytest.approx(0.9 * 0.8236, abs=0.005)
    assert figures["age-figure_3"].at("total variation", 20.0) == pytest.approx(fifth, rel=1e-12)
