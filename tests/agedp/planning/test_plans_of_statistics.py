"""Plans of profiles and coverage under every notion: each release has the noise of its own sensitivity and loss."""

from __future__ import annotations

import json
import math
from datetime import date, timedelta

import pytest

from tests.command import agedp

FIRST, HOMES = date(2013, 1, 1), 8
CAPS = "max_day_epsilon = 0.6\nepsilon_total = 9\n"
MODEL = '[model]\nsource = "declared"\nbasis = "made up"\nassume = "markov"\nkernel = "kernel.csv"\n'
NEEDS_MODEL = ("age-dependent", "temporal")
PROMISES = {
    "classical": 'epsilon_per_day = 0.5\ndelta = "1e-6"\n',
    "w-event": 'window_days = 3\nepsilon_per_window = 1\nspend = "remaining"\n',
    "age-dependent": 'age_days = 2\nrisk = 0.5\nmethod = "tight"\nsecret = "day"\n',
    "temporal": 'alpha = 2\nhorizon_days = 4\nbudget = "even"\n',
    "discounted": 'discount = "exponential"\nrate = 0.9\nepsilon = 1\nschedule = "constant"\nhorizon_days = 4\n'
    'clock = "data-day"\n',
    "neighbourhood": 'delta_kwh = 4\nwindow_days = 3\nepsilon_per_window = 0.5\nspend = "per-request"\n',
}
MEAN = 'statistic = "mean"\nclamp_kwh = 50\n'
PROFILE = 'statistic = "profile"\nclamp_kwh = 50\nhalf_hour_clamp_kwh = 4\n'
COVERAGE = 'statistic = "coverage"\n'
SERIES = {
    "profile": {"daily_mean": PROFILE},
    "coverage": {"daily_mean": COVERAGE},
    "with a mean": {
        "daily_mean": f"{MEAN}share = 0.5\n",
        "shape": f"{PROFILE}share = 0.4\n",
        "usable": f"{COVERAGE}share = 0.1\n",
    },
}
# a household moves a mean by its clamp, a profile by twice its clamp, coverage by one household
KWH_PER_HOUSEHOLD = {MEAN: 50 / HOMES, PROFILE: 100 / HOMES}


def plan(house, notion, series, *words):
    days = [FIRST + timedelta(days=i) for i in range(4)]
    house.fill(days, households="ABCDEFGH")
    (house.folder / "kernel.csv").write_text("0.9,0.1\n0.2,0.8\n")
    first, *more = SERIES[series].items()
    rest = "".join(f"[series.{name}]\n{keys}" for name, keys in more)
    promise = f'notion = "{notion}"\n{PROMISES[notion]}{CAPS}'
    house.write(days[0], days[-1], promise=promise, rest=rest + MODEL * (notion in NEEDS_MODEL))
    house.edit((MEAN, first[1]))
    return agedp("plan", house.run_file, *words)


ALONE = [pytest.param(name, marks=pytest.mark.long) for name in ("profile", "coverage")]


@pytest.mark.parametrize("series", ["with a mean", *ALONE])
@pytest.mark.parametrize("notion", PROMISES)
def test_each_planned_release_has_its_own_noise(house, notion, series):
    ended = plan(house, notion, series, "--json")
    assert (ended.status, "Traceback" in ended.err) == (0, False)
    due = json.loads(ended.out)["due"]
    assert {row["series"] for row in due} == set(SERIES[series])
    for row in due:
        keys = SERIES[series][row["series"]].partition("share")[0]
        noise = row["noise_sd_households"] if keys == COVERAGE else row["noise_sd_kwh"]
        # the discrete law's deviation is at most that of the continuous one, whose scale is sensitivity / epsilon
        expected = math.sqrt(2) * KWH_PER_HOUSEHOLD.get(keys, 1) / float(row["epsilon"])
        assert noise == pytest.approx(expected, rel=2e-2 if keys == COVERAGE else 1e-5)


@pytest.mark.parametrize("series", ["profile", "coverage"])
def test_without_a_mean_a_comparison_is_refused_in_one_line(house, series):
    ended = plan(house, "classical", series, "--notions")
    assert (ended.status, ended.out, ended.err.count("\n")) == (2, "", 1)
    assert "the noise of a daily mean; the run file publishes none" in ended.err
