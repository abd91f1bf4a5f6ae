"""Real files: from files to a release in one call, and a real file under another header as a long table."""

from __future__ import annotations

from datetime import date

import pytest

from pipelines.init import init
from pipelines.one_off import release_files
from pipelines.publish import open_release
from pipelines.run_file_options import toml_of

DISCOUNTED = {
    "notion": "discounted", "discount": "exponential", "rate": "0.99", "epsilon": "10", "schedule": "constant",
    "clock": "data-day", "mode": "rehearsal", "age_days": "2", "max_day_epsilon": "1", "epsilon_total": "unlimited",
    "clamp_kwh": "50", "min_households": "1",
}  # fmt: skip


def test_a_real_customer_year_is_released_in_one_call(real_data, tmp_path):
    file = real_data / "ausgrid" / "ausgrid-2011-2012-customer12.csv"
    release_files([str(file)], out=tmp_path / "out", given=toml_of(DISCOUNTED))
    release = open_release(tmp_path / "out")
    release.verify()
    assert release.statement["days"]["released"] == 366  # 2012 is a leap year


@pytest.fixture
def renamed(real_data, tmp_path):
    """A real household of London under a header that no publisher wrote; its stamps are ends of half-hours."""
    _, *rows = (real_data / "london" / "kaggle" / "MAC000002.csv").read_text().splitlines()
    (tmp_path / "m.csv").write_text("\n".join(["meter,when,energy_kwh", *rows]) + "\n")
    return [str(tmp_path / "m.csv")]


def test_a_real_year_that_was_cut_out_decides_no_stamp(renamed, tmp_path):
    made = init(renamed, folder=tmp_path, given=toml_of({"zone": "GMT", "day_zone": "GMT"}))
    lines = {line.key: line for line in made.draft.tables["input.columns"]}
    decided = {key: line.toml.strip('"') for key, line in lines.items() if line.decided}
    assert decided == {
        "household": "meter", "time": "when", "time_format": "iso", "energy": "energy_kwh", "unit": "kWh",
        "zone": "GMT", "day_zone": "GMT",
    }  # fmt: skip
    assert (made.facts.first.year, made.facts.last) == (2013, date(2013, 12, 31))
