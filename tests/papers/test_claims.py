"""Every claim has a verdict with its number, and the reference values of MATHS 10 stand among them."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from agedp_data.accounting.ageing import compose
from agedp_data.leakage.function import leakage
from docs.papers.age.claims import EVEN, UNLIKE
from docs.papers.age.two_state import CHAIN
from docs.papers.results import PaperClaim, PaperFigure

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
        assert claim.maths.startswith("MATHS "), claim
        assert not re.search(r"\bnan\b", claim.found), claim
        assert claim.verdict != "refuted" or re.search(r"\d", claim.found), claim


@pytest.mark.parametrize(
    ("paper", "place", "verdict", "numbers"),
    [
        ("age", "Figure 5(c)", "reproduced", ["picked to match", "33% less often"]),
        ("age", "Figure 5(c)", "refuted", ["largest gain is 0.0%"]),
        ("age", "Proposition 4, eq. 40", "reproduced", ["0.5000, 0.5000, 0.5000"]),
        ("temporal", "Figure 9", "sharpened", ["38.0 by Algorithm 8", "10.0 by even shares", "9.0 at best"]),
        ("discounted", "Corollary 16", "refuted", ["3.65384757680581916"]),
        ("discounted", "after Corollary 16", "refuted", ["5.847 and 8.269", "1.645 and 6.580", "day 3"]),
        ("neighbourhood", "Table", "refuted", ["3 with whole numbers", "2 on the line"]),
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
    # By hand: z_1 = .5, z_k = .5 + ln(1 + .8^4 (e^z - 1)), and .8^2 at the end; peak .8236 (MATHS 10).
    fifth = compose(CHAIN, [4, 8, 12, 16, 20], [2] * 5, [0.5] * 5, [20], method="total_variation")[0]
    assert fifth == pytest.approx(0.9 * 0.8236, abs=0.005)
    assert figures["age-figure_3"].at("total variation", 20.0) == pytest.approx(fifth, rel=1e-12)
