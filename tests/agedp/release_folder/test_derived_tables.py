"""Derived tables of folders that lack them: of an early version, and of what was not released."""

from __future__ import annotations

import pandas as pd
import pytest

from agedp.release_verification import open_release
from agedp_data.errors import InputError
from tests.compatibility.fixtures import unpack


def test_a_folder_of_an_early_version_gives_months_too(tmp_path):
    release = unpack("classical-archive", tmp_path).release
    assert not [*release.glob("averages_by_*"), *release.glob("daily_quantiles*")]
    opened = open_release(release)
    opened.verify()
    means = [pd.read_parquet(path) for path in release.glob("daily_averages*.parquet")]
    months = opened.period_averages("month")
    assert months["days_released"].sum() == sum(len(table) for table in means)
    total_wh = (months["mean_kwh"] * months["household_days"] * 1000).sum()
    assert total_wh == pytest.approx(sum(table["noisy_sum_wh"].sum() for table in means), rel=1e-9)


def test_what_was_not_released_has_no_derived_table(published_twice):
    release = published_twice.release
    with pytest.raises(InputError, match=r"^daily_quantiles.parquet: the release has no daily distribution"):
        release.quantiles()
    with pytest.raises(InputError, match=r"^period = 'quarter': must be one of 'week', 'month', 'year'$"):
        release.period_averages("quarter")
