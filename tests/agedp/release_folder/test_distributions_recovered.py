"""A ledger of distributions that was recovered from the release folder, where no notes on the roster are, goes on."""

from __future__ import annotations

import shutil
from datetime import date

import pytest

from agedp.ledger_transfer import recover
from agedp.stages.amend import amend
from agedp_data.errors import Refused

FIRST, SECOND, THIRD = date(2013, 1, 1), date(2013, 1, 2), date(2013, 1, 3)
TODAY = date(2013, 6, 1)
HOMES = {"A": "Std", "B": "Std", "C": "two words", "D": "two words", "E": "few"}
ALONE = '[series.daily_mean]\nstatistic = "mean"\nclamp_kwh = 50\n'
HISTOGRAM = '[series.counts]\nstatistic = "distribution"\nclamp_kwh = 40\nbins_kwh = [0, 5, 10, 40]\n'
CUMULATIVE = HISTOGRAM + 'form = "cumulative"\n'


def write(house, rest):
    house.write(FIRST, THIRD, rest=rest)
    house.run_file.write_text(house.run_file.read_text().replace(ALONE, ""))


def roster(house, homes, *columns):
    lines = [",".join(["household_id", "from", "to", *columns])]
    lines += [",".join([home, str(FIRST), "", *([tariff] if columns else [])]) for home, tariff in homes.items()]
    (house.folder / "roster.csv").write_text("\n".join(lines) + "\n")


def moved(house, rest):
    """Release two of three days, then keep nothing but the release folder, the input and the run file."""
    days = (FIRST, SECOND, THIRD)
    house.london({(home, each, slot): 100 for home in HOMES for each in days for slot in range(48)})
    roster(house, HOMES, "tariff")
    write(house, rest)
    house.run(today=THIRD)
    shutil.rmtree(house.folder / "confidential")
    (house.folder / "ledger.sqlite").unlink()
    recover(house.folder / "release", f"sqlite:///{house.folder / 'ledger.sqlite'}", at=THIRD)


def days_of(house):
    with house.ledger() as ledger:
        assert ledger.verify() == ()
        return [row.day for row in ledger.rows()]


@pytest.mark.parametrize("rest", [HISTOGRAM, CUMULATIVE])
@pytest.mark.parametrize("by", ["", 'by = "tariff"\n'])
def test_a_recovered_ledger_of_a_distribution_goes_on_with_the_same_households_only(house, rest, by):
    moved(house, rest + by)
    before = days_of(house)
    roster(house, HOMES | {"F": "Std"}, "tariff")
    with pytest.raises(Refused, match="has other households on 2013-01-01"):
        house.run(today=TODAY)
    roster(house, HOMES, "tariff")
    house.run(today=TODAY)
    assert days_of(house) == [*before, str(THIRD)]
    house.release.verify()


def test_groups_that_left_the_roster_are_counted_once_and_not_once_for_each_range(house):
    moved(house, HISTOGRAM + 'by = "tariff"\n')
    roster(house, HOMES)
    house.write(FIRST, THIRD)
    amend(house.context())
    house.run(today=TODAY)
    assert days_of(house)[-1] == str(THIRD)
