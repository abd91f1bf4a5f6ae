"""Figure 7: error and loss of aged means of homes, against plain loops and against the reference of the real homes."""

from __future__ import annotations

import csv
from datetime import datetime
from pathlib import Path

import numpy as np
import pytest

from agedp_data.readers.synthetic.london import write_london
from pipelines.papers.age.homes import CLAMP_WH, HOURS, LOSSES, error, figure_7, forgetting, printed_bound
from pipelines.papers.homes import Data, Homes


def test_figure_7_s_error_is_that_of_a_plain_loop() -> None:
    rng = np.random.default_rng(5)
    energy = rng.integers(0, 3000, (10, 8, 48))
    energy[3, 2, 5:9] = -1
    energy[:4, 5, 7] = -1  # too few are left there
    drift, number = error(Homes("made up", energy))
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
    # pi = (3/4, 1/4), lambda_* = .6: sqrt(3) .6^t; the second home forgets at once.
    np.testing.assert_allclose(printed_bound(chains, np.array([1, 2, 5])), [1, 3**0.5 * 0.36, 3**0.5 * 0.6**5])


def test_homes_are_read_as_they_were_written(tmp_path: Path) -> None:
    from datetime import date

    said = write_london(tmp_path, households=3, first_day=date(2013, 1, 1), days=5, seed=3, quirks=False)
    homes = Data(london=(f"{tmp_path}/*.csv",)).london_homes
    assert homes.name.endswith("3 homes, 2013-01-01 to 2013-01-05")
    np.testing.assert_array_equal(homes.daily_wh, said.energy_wh)


@pytest.mark.long
def test_forty_homes_have_the_reference_distances_and_losses(real_data: Path) -> None:
    homes = Data(london=(str(real_data / "london" / "kaggle" / "*.csv"),)).london_homes
    found = forgetting(homes)
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
    figure = figure_7(Data(london=tuple(map(str, files))))
    for hours in (12, 24):
        pairs = [
            (mean[stamp], later)
            for stamp in mean
            if (later := mean.get(stamp + (datetime(1, 1, 1 + hours // 24, hours % 24) - datetime(1, 1, 1))))
            is not None
        ]
        assert figure.at("no noise", hours) == pytest.approx(np.mean([(a - b) ** 2 for a, b in pairs]), rel=1e-3)
