"""Figure 7: error and loss of aged means of homes, against plain loops and against the reference of the real homes."""

from __future__ import annotations

import csv
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import numpy as np
import pytest

from agedp_data.datasets.synthetic.london import write_london
from docs.papers.age.households import (
    CLAMP_WH,
    HOURS,
    LOSSES,
    bound_by_household,
    error,
    figure_7,
    household_risk,
    title,
)
from docs.papers.households import PaperHouseholds, PaperReadings
from docs.papers.results import PaperFigure

pytestmark = pytest.mark.xdist_group("papers")  # figures are computed once


def test_figure_7_s_error_is_that_of_a_plain_loop() -> None:
    rng = np.random.default_rng(5)
    energy = rng.integers(0, 3000, (10, 8, 48))
    energy[3, 2, 5:9] = -1
    energy[:4, 5, 7] = -1  # too few are left there
    drift, number = error(PaperHouseholds("made up", energy, open_data=False))
    assert number == 9
    flat, means = energy.reshape(10, -1), []
    for column in flat.T:
        seen = [min(int(value), CLAMP_WH) / 1000 for value in column if value >= 0]
        means.append(sum(seen) / len(seen) if len(seen) >= 9 else None)
    for place in (0, 1, 5, 30):
        lag = 2 * int(HOURS[place])
        pairs = [(a, b) for a, b in zip(means, means[lag:], strict=False) if a is not None and b is not None]
        assert drift[place] == pytest.approx(np.mean([(a - b) ** 2 for a, b in pairs]), rel=1e-12)


def test_equation_55_as_printed_is_the_largest_of_all_states_and_homes() -> None:
    chains = np.array([[[0.9, 0.1], [0.3, 0.7]], [[0.5, 0.5], [0.5, 0.5]]])
    # pi = (3/4, 1/4), lambda_* = .6: sqrt(3) .6^t; the second household mixes at once.
    found = bound_by_household(chains, np.array([1, 2, 5]))
    np.testing.assert_allclose(found, [[1, 3**0.5 * 0.36, 3**0.5 * 0.6**5], [0, 0, 0]], atol=1e-12)


def wandering(homes: int, days: int, *, open_data: bool, moves: float = 0.5) -> PaperHouseholds:
    """Homes that go round three levels and mostly one way: no chain of theirs is reversible."""
    rng, steps = np.random.default_rng(9), days * 48
    turned = np.where(rng.random((homes, steps)) < moves, 1, 0)
    level = np.cumsum(turned, axis=1) % 3
    return PaperHouseholds("made up", (100 + 900 * level).reshape(homes, days, 48), open_data)


def test_eq_55_is_counted_home_by_home_against_matrix_powers() -> None:
    homes = wandering(3, 20, open_data=False, moves=0.99)
    steady = np.random.default_rng(4).integers(0, 3, (2, 20, 48)) * 900 + 100
    both = PaperHouseholds("made up", np.concatenate([homes.energy_wh, steady]), open_data=False)
    found = household_risk(both)
    held = 0
    for home in both.steps:  # by hand: counted moves, powers of the reversed chain, largest half distance of rows
        seen = np.searchsorted(np.unique(home), home)
        counts = np.zeros((3, 3))
        np.add.at(counts, (seen[:-1], seen[1:]), 1)
        chain = counts / counts.sum(axis=1, keepdims=True)
        values, vectors = np.linalg.eig(chain.T)
        law = np.real(vectors[:, np.argmax(np.real(values))])
        law = law / law.sum()
        back, power = chain.T * law / law[:, None], np.eye(3)
        second, keeps = sorted(np.abs(values))[-2], True
        for step in range(1, 337):
            power = power @ back
            apart = max(np.abs(a - b).sum() / 2 for a in power for b in power)
            bound = min(1, ((1 - law.min()) / law.min()) ** 0.5 * second**step)
            keeps &= apart <= bound * (1 + 1e-9) + 1e-12
        held += keeps
    assert found.households == 5
    assert found.bound_met == held


def test_few_homes_or_made_up_ones_judge_nothing() -> None:
    assert wandering(20, 90, open_data=True).judge
    for homes in (wandering(19, 90, open_data=True), wandering(20, 89, open_data=True)):
        assert not homes.judge
    assert not wandering(20, 90, open_data=False).judge


def test_figure_7_has_no_verdict_and_no_finding_on_made_up_homes(figures: dict[str, PaperFigure], claims) -> None:
    figure = figures["age-figure_7"]
    assert set(figure.verdicts.values()) == {"not judged"}
    assert "do not decide" in figure.title
    assert "forget as" not in figure.erratum
    assert {claim.verdict for claim in claims if claim.place.startswith("Figure 7(") and "kWh" in claim.rests_on} == {
        "not judged"
    }


def test_the_title_of_figure_7_follows_the_numbers() -> None:
    homes = PaperReadings(small=True).london_households
    quick, slow = np.full((LOSSES.size, HOURS.size), 0.01), np.full((LOSSES.size, HOURS.size), 1.9)
    base = household_risk(homes)
    for tight, median, expected in (
        (quick, slow, "The chains mix within a day, the households do not"),
        (quick, quick, "The chains mix within a day, as the households do"),
        (slow, slow, "The chains have a memory of more than a day, whatever the households do"),
    ):
        assert title(replace(base, tight=tight, median=median, floor=quick)) == expected


def test_homes_are_read_as_they_were_written(tmp_path: Path) -> None:
    from datetime import date

    said = write_london(tmp_path, households=3, first_day=date(2013, 1, 1), days=5, seed=3, quirks=False)
    homes = PaperReadings(london=(f"{tmp_path}/*.csv",)).london_households
    assert homes.name.endswith("3 households, 2013-01-01 to 2013-01-05")
    np.testing.assert_array_equal(homes.daily_wh, said.energy_wh)


@pytest.mark.long
def test_eq_55_holds_for_each_of_forty_homes_and_the_figure_judges_by_them(real_data: Path) -> None:
    figure = figure_7(PaperReadings(london=(str(real_data / "london" / "kaggle" / "*.csv"),)))
    assert figure.parts["eq. 55 held"] == "for 40 of 40 households at each of 336 lags"
    assert figure.title == "The chains mix within a day, the households do not"
    assert figure.verdicts == {
        "level": "refuted", "from 18 hours": "refuted", "mixing": "refuted", "finite": "reproduced",
        "eq. 55": "sharpened",
    }  # fmt: skip


@pytest.mark.long
def test_forty_homes_have_the_reference_distances_and_losses(real_data: Path) -> None:
    homes = PaperReadings(london=(str(real_data / "london" / "kaggle" / "*.csv"),)).london_households
    found = household_risk(homes)
    at = [HOURS.tolist().index(hour) for hour in (3, 6, 12, 18, 24)]
    np.testing.assert_allclose(found.distance[at], [0.70, 0.37, 0.12, 0.039, 0.0125], rtol=0.06)  # MATHS 10
    assert found.helps_from == pytest.approx(26.5, abs=0.5)
    two = np.flatnonzero(LOSSES == 2.0)[0]
    assert found.theorem[two, at[3]] == pytest.approx(0.2, abs=0.03)
    assert found.counted[two, at[3]] == pytest.approx(1.89, abs=0.02)
    assert found.printed[two, at[3]] == 2.0


@pytest.mark.long
def test_the_drift_of_real_homes_is_that_of_a_plain_reading_of_their_files(real_data: Path) -> None:
    files = sorted((real_data / "london" / "kaggle").glob("*.csv"))
    sums: dict[datetime, list[float]] = {}
    for path in files:
        with path.open(newline="") as stream:
            for _, stamp, kwh in list(csv.reader(stream))[1:]:
                sums.setdefault(datetime.fromisoformat(stamp), []).append(min(float(kwh), CLAMP_WH / 1000))
    most = max(len(seen) for seen in sums.values())
    mean = {stamp: sum(seen) / len(seen) for stamp, seen in sums.items() if len(seen) >= 0.9 * most}
    figure = figure_7(PaperReadings(london=tuple(map(str, files))))
    for hours in (12, 24):
        pairs = [
            (mean[stamp], later)
            for stamp in mean
            if (later := mean.get(stamp + (datetime(1, 1, 1 + hours // 24, hours % 24) - datetime(1, 1, 1))))
            is not None
        ]
        assert figure.at("no noise", hours) == pytest.approx(np.mean([(a - b) ** 2 for a, b in pairs]), rel=1e-3)
