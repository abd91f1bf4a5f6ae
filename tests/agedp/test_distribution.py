"""A daily distribution on its whole way: counted exactly, drawn once, published, verified, recovered, reported."""

from __future__ import annotations

import json
import math
import shutil
from collections import Counter
from datetime import date, timedelta
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from agedp import privacy_audit
from agedp.ledger_transfer import recover, verify_against
from agedp.stages.amend import amend
from agedp.stages.publish import write_folder_as_of
from agedp_data import mechanisms
from agedp_data.audit.lower_bounds import detection_power
from agedp_data.audit.power import AuditDatasets
from agedp_data.errors import ContractChanged, InputError, LedgerError
from agedp_data.ledger import Ledger
from agedp_data.series import series as statistics
from agedp_flows.text.plan_text import plan_lines
from agedp_flows.text.run_text import result_lines
from tests.agedp.release_folder.resealed import reseal
from tests.agedp.reports.html import Page, faults_of

FIRST, DAYS = date(2013, 1, 1), 5
HOMES = {"A": "Std", "B": "Std", "C": "Std", "D": "two words", "E": "two words", "F": "few"}
BINS = "[0, 2.5, 5, 10, 40]"
EDGES = (0, 2500, 5000, 10_000, 40_000)
HISTOGRAM = f'[series.counts]\nstatistic = "distribution"\nclamp_kwh = 40\nbins_kwh = {BINS}\nmissing_kwh = 3\n'
CUMULATIVE = (
    '[series.below]\nstatistic = "distribution"\nform = "cumulative"\nclamp_kwh = 40\n'
    f'bins_kwh = {BINS}\nby = "tariff"\n'
)
ALONE = 'statistic = "mean"\nclamp_kwh = 50\n'
TODAY = date(2013, 6, 1)


def day(number):
    return FIRST + timedelta(days=number)


def energy(home, number):
    """Wh of a home's day; 48 readings, E has none on the third day and B, at the clamp and beyond, one less."""
    return {"A": 1200, "B": 48_000, "C": 2496, "D": 4992, "E": 9600, "F": 0}[home] + 48 * number


def use(home, number):
    """What a home's day counts as."""
    if home == "E" and number == 2:
        return None
    return min(energy(home, number), 40_000)


def write(house, *, rest, mean=True):
    house.write(FIRST, day(DAYS - 1), rest=rest)
    text = house.run_file.read_text()
    if mean:
        text = text.replace("clamp_kwh = 50\n", "clamp_kwh = 50\nshare = 0.5\n", 1)
    else:
        text = text.replace("[series.daily_mean]\n" + ALONE, "")
    house.run_file.write_text(text)


BOTH = HISTOGRAM + "share = 0.3\n" + CUMULATIVE + "share = 0.2\n"


def build(house):
    house.london(
        {
            (home, day(i), slot): energy(home, i) // 48
            for home in HOMES
            for i in range(DAYS)
            for slot in range(48)
            if (home, i) != ("E", 2)
        }
    )
    rows = [f"{home},{FIRST},,{tariff}" for home, tariff in HOMES.items()]
    (house.folder / "roster.csv").write_text("\n".join(["household_id,from,to,tariff", *rows]) + "\n")
    return house


@pytest.fixture(scope="module")
def kept(houses, tmp_path_factory):
    house = build(houses(tmp_path_factory.mktemp("kept")))
    write(house, rest=BOTH)
    house.run(today=TODAY)
    return house


@pytest.fixture
def made(kept, houses, tmp_path):
    return houses(shutil.copytree(kept.folder, tmp_path / "house"))


def true_counts(number, homes, *, missing):
    """How many homes lie in each bin, counted one by one."""
    uses = [missing if use(home, number) is None else use(home, number) for home in homes]
    inside = Counter(next(i for i, high in enumerate(EDGES[1:]) if wh < high or high == EDGES[-1]) for wh in uses)
    return [inside[i] for i in range(len(EDGES) - 1)]


def groups():
    return {"Std": "ABC", "two words": "DE"}


def test_the_true_counts_are_those_of_homes_counted_one_by_one(kept):
    noted = kept.records("true_counts")
    found = {(line["series"], line["day"], line["cell"]): line["true_households"] for line in noted}
    names = ["0-2.5", "2.5-5", "5-10", "10-40"]
    for i in range(DAYS):
        exact = true_counts(i, HOMES, missing=3000)
        assert [found["counts", day(i), name] for name in names] == exact
        assert sum(exact) == 6
        for group, homes in groups().items():
            below = np.cumsum(true_counts(i, homes, missing=0))[:-1].tolist()
            cells = [f"{group} {name}" for name in ("0-2.5", "0-5", "0-10")]
            assert [found["below", day(i), cell] for cell in cells] == below
    assert len(found) == DAYS * (4 + 2 * 3)  # the group of one home is too small
    sums = kept.records("sums")
    assert len(sums) == DAYS * (1 + 4 + 3 * 3)


def test_one_release_holds_every_cell_under_one_sensitivity_and_the_share_of_the_day(kept):
    for series, sensitivity, share in (("counts", 2, Fraction(3, 10)), ("below", 3, Fraction(1, 5))):
        rows = kept.rows(series)
        assert len(rows) == DAYS
        for row in rows:
            assert row.sensitivity == sensitivity
            assert row.loss == math.ceil(Fraction(sensitivity) / Fraction(row.scale) * 10**9) == share * 5 * 10**8
    assert kept.rows("below")[0].households == (3, 3, 3, 2, 2, 2)


def test_the_table_says_what_the_ledger_says(kept):
    release = kept.release
    release.verify()
    with kept.ledger() as ledger:
        verify_against(release, ledger)
    assert sorted(release.averages()) == ["daily_averages.parquet"]
    assert sorted(release.distributions()) == ["daily_distribution.parquet", "daily_distribution_below.parquet"]
    table = pq.ParquetFile(kept.folder / "release" / "daily_distribution.parquet").read()
    assert [(field.name, str(field.type), field.nullable) for field in table.schema] == [
        ("day", "date32[day]", False), ("group", "string", False), ("revision", "int32", False),
        ("bin_low_kwh", "double", False), ("bin_high_kwh", "double", False), ("households_noisy", "int64", False),
        ("noise_sd", "double", False), ("published_on", "date32[day]", False), ("epsilon", "double", False),
        ("version", "int32", False),
    ]  # fmt: skip
    lines = iter(table.to_pylist())
    for row in kept.rows("counts"):
        for low, high, value in zip((0, 2.5, 5, 10), (2.5, 5, 10, 40), row.values, strict=True):
            line = next(lines)
            q = math.exp(-1 / row.scale)
            bins = (str(line["day"]), line["group"], line["bin_low_kwh"], line["bin_high_kwh"])
            assert bins == (row.day, "all", low, high)
            assert (line["households_noisy"], line["epsilon"], line["version"]) == (value, 0.15, 1)
            assert line["noise_sd"] == pytest.approx(math.sqrt(2 * q) / (1 - q), rel=1e-12)
    below = release.table("daily_distribution_below")
    assert below["group"].unique().tolist() == ["Std", "two words"]
    assert below["bin_high_kwh"].tolist()[:6] == [2.5, 5, 10, 2.5, 5, 10]
    assert set(below["bin_low_kwh"]) == {0.0}
    assert "mean_kwh" in release.table()
    with pytest.raises(InputError, match=r"daily_distribution_x\.parquet is missing"):
        release.table("daily_distribution_x")


def test_the_package_describes_every_column(kept):
    package = json.loads((kept.folder / "release" / "datapackage.json").read_text())
    [found] = [one for one in package["resources"] if one["path"] == "daily_distribution.parquet"]
    assert {field["name"]: field.get("unit") for field in found["schema"]["fields"]} == {
        "day": None, "group": None, "revision": "1", "bin_low_kwh": "kWh", "bin_high_kwh": "kWh",
        "households_noisy": "household", "noise_sd": "household", "published_on": None, "epsilon": "1", "version": "1",
    }  # fmt: skip
    assert found["schema"]["primaryKey"] == ["day", "group", "revision", "bin_low_kwh", "bin_high_kwh"]
    assert "averages and counts by range of use with noise" in package["description"]


def test_the_same_is_published_again_and_nothing_is_drawn(made):
    before, rows = made.files(), [made.rows(series) for series in ("counts", "below")]
    (made.folder / "release" / "daily_distribution.parquet").unlink()
    made.run(today=TODAY + timedelta(days=1))
    assert made.files() == before
    assert [made.rows(series) for series in ("counts", "below")] == rows


EDITS = [
    ("households_noisy", lambda x: x + 1),
    ("noise_sd", lambda x: x * 1.01),
    ("noise_sd", lambda x: float("nan")),
    ("epsilon", lambda x: x / 2),
    ("epsilon", lambda x: x + 1e-9),
    ("bin_low_kwh", lambda x: x + 1),
    ("bin_high_kwh", lambda x: x + 1),
    ("group", lambda x: "Stx"),
    ("version", lambda x: 2),
    ("published_on", lambda x: x + timedelta(days=1)),
    ("day", lambda x: x + timedelta(days=1)),
    ("revision", lambda x: 1),
]


@pytest.mark.parametrize(("column", "edit"), EDITS)
def test_an_edited_count_is_found_by_the_folder_or_by_the_ledger(made, column, edit):
    path = made.folder / "release" / "daily_distribution_below.parquet"
    table = pq.ParquetFile(path).read()
    rows = table.to_pylist()
    rows[4][column] = edit(rows[4][column])
    pq.write_table(pa.Table.from_pylist(rows, schema=table.schema), path)
    reseal(made.folder / "release")
    release = made.release
    problem = f"daily_distribution_below.parquet: {day(0)}, two words, 0 to 5 kWh, column {column}: "
    with pytest.raises(InputError, match=problem):
        release.verify()
    with made.ledger() as ledger, pytest.raises(LedgerError, match=f"contain different values: {problem}"):
        verify_against(release, ledger)


@pytest.mark.parametrize("change", [lambda r: r[:-1], lambda r: r[1:], lambda r: [*r, r[-1]], lambda r: r[::-1]])
def test_a_lost_doubled_or_misplaced_count_is_found(made, change):
    path = made.folder / "release" / "daily_distribution.parquet"
    table = pq.ParquetFile(path).read()
    pq.write_table(pa.Table.from_pylist(change(table.to_pylist()), schema=table.schema), path)
    reseal(made.folder / "release")
    with pytest.raises(InputError):
        made.release.verify()


def test_the_noise_of_a_release_is_checked_once_however_many_counts_it_has(kept, monkeypatch):
    asked = []
    known = mechanisms.standard_deviation
    monkeypatch.setattr(mechanisms, "standard_deviation", lambda scale: asked.append(scale) or known(scale))
    folder = kept.release
    folder.verify()
    assert len(asked) <= DAYS * len(folder.averages() | folder.distributions())
    assert all(table.num_rows > 2 * DAYS for table in folder.distributions().values())


def test_a_release_of_counts_alone_has_no_averages_and_is_whole(house):
    build(house)
    write(house, rest=HISTOGRAM, mean=False)
    planned = "\n".join(plan_lines(house.session()))
    assert "households (per count)" in planned
    assert "the run file publishes none" in planned  # a mean, in whose noise promises are compared
    work = house.run(today=TODAY)
    assert f"{day(4)}" in "\n".join(result_lines(work))
    release = house.release
    release.verify()
    assert not (release.path / "daily_averages.parquet").exists()
    assert len(release.table("daily_distribution")) == DAYS * 4
    assert "number of households by range of daily use" in (release.path / "STATEMENT.md").read_text()
    page = Page((release.path / "report.html").read_text())
    assert faults_of((release.path / "report.html").read_text()) == []
    assert "noise of a count" in page.text
    # nothing is summed anew: every true count is noted
    work = house.run(today=TODAY)
    assert work.checked.sums.by_day == {}
    (house.folder / "confidential" / "true_counts.parquet").unlink()
    assert {of for of, _ in house.run(today=TODAY).checked.sums.by_day} == {day(i) for i in range(DAYS)}
    assert (house.folder / "confidential" / "true_counts.parquet").exists()
    (release.path / "daily_distribution.parquet").unlink()
    (release.path / "SHA256SUMS").write_text("")
    house.run(today=TODAY)
    release.verify()


def test_bins_change_by_amendment_from_the_next_day_on_and_every_reader_follows(house):
    build(house)
    write(house, rest=BOTH)
    house.run(today=day(3))
    first = house.files()
    write(house, rest=BOTH.replace(BINS, "[0, 8, 40]", 1).replace(BINS, "[0, 1, 2, 3, 4, 40]"))
    with pytest.raises(ContractChanged, match="bins_kwh"):
        house.run(today=TODAY)
    amend(house.context())
    house.run(today=TODAY)
    release = house.release
    release.verify()
    with house.ledger() as ledger:
        verify_against(release, ledger)
    counts = release.table("daily_distribution")
    assert counts.groupby("version")["bin_high_kwh"].unique().map(list).to_dict() == {1: [2.5, 5, 10, 40], 2: [8, 40]}
    assert {row.sensitivity for row in house.rows("below")} == {3, 4}
    assert "had other ranges" in (release.path / "report.html").read_text()
    assert {
        line["cell"] for line in house.records("true_counts") if line["series"] == "counts" and line["day"] == day(4)
    } == {
        "0-8",
        "8-40",
    }
    assert house.run(today=TODAY).checked.sums.by_day == {}
    recover(release.path, f"sqlite:///{house.folder / 'again.sqlite'}", at=TODAY)
    with Ledger.open(f"sqlite:///{house.folder / 'again.sqlite'}") as again, house.ledger() as ledger:
        assert [row.values for row in again.rows()] == [row.values for row in ledger.rows()]
        assert again.verify() == ()
    write_folder_as_of(house.session(), day(3))
    old = {name: content for name, content in house.files().items() if name.startswith("daily_")}
    assert old == {name: content for name, content in first.items() if name.startswith("daily_")}


def test_a_series_that_comes_back_as_another_statistic_has_a_file_of_each(house):
    build(house)
    write(house, rest=HISTOGRAM + "share = 0.5\n")
    house.run(today=day(2))
    for rest, until in (("", day(3)), ('[series.counts]\nstatistic = "mean"\nshare = 0.5\nclamp_kwh = 9\n', TODAY)):
        write(house, rest=rest, mean=bool(rest))
        if not rest:
            house.write(FIRST, day(DAYS - 1))
        amend(house.context())
        house.run(today=until)
    release = house.release
    release.verify()
    with house.ledger() as ledger:
        verify_against(release, ledger)
    assert set(release.averages()) == {"daily_averages.parquet", "daily_averages_counts.parquet"}
    assert release.table("daily_distribution")["day"].nunique() == 2
    assert release.table("daily_averages_counts")["day"].nunique() == 2
    assert faults_of((release.path / "report.html").read_text()) == []


def test_both_reports_show_every_count_in_numbers(kept):
    page = Page((kept.folder / "release" / "report.html").read_text())
    newest = kept.rows("counts")[-1]
    assert f"Households by use on {newest.day}: counts" in page.text
    for value in (*newest.values, *kept.rows("below")[-1].values):
        assert f"{value:,}" in page.text
    assert "below, two words" in page.text
    house = (kept.folder / "confidential" / "report.html").read_text()
    assert faults_of(house) == []
    assert "Published and true number of households by use" in Page(house).text


def test_rows_whose_cells_are_not_of_their_contracts_bins_never_reach_the_ledger(made):
    from dataclasses import replace

    with made.ledger() as ledger:
        row = made.rows("counts")[-1]
        plain = replace(row, day="2013-01-06", seq=0, at="", hash="", values=(), input_ended_at="2013-01-07T00:00:00Z")
        for cells in (("0-2.5", "2.5-5", "5-10", "10-41"), row.cells[::-1], row.cells[:-1], ("x", *row.cells[1:])):
            wrong = replace(plain, cells=cells, households=row.households[: len(cells)])
            with pytest.raises(LedgerError, match="not those of its contract's bins"):
                ledger.release(
                    "homes", "counts", "2013-01-06", admit=lambda _, wrong=wrong: wrong, draw=lambda _: [1] * 4
                )


AUDITED = 'notion = "classical"\nepsilon_per_day = 2\nmax_day_epsilon = 2\nepsilon_total = "unlimited"\n'


@pytest.mark.parametrize(
    ("rest", "name"),
    [(HISTOGRAM, "histogram"), pytest.param(CUMULATIVE, "cumulative", marks=pytest.mark.long)],
)
def test_the_audit_passes_counts_and_exposes_too_small_a_sensitivity(house, monkeypatch, rest, name):
    build(house)
    write(house, rest=rest, mean=False)
    text = house.run_file.read_text()
    start = text.index("[promise]")
    end = text.index("[series", start) if "[series" in text[start:] else len(text)
    house.run_file.write_text(text[:start] + "[promise]\n" + AUDITED + text[end:])
    found = privacy_audit.audit(house.run_file, datasets=AuditDatasets(1400, 1))
    assert found.measured[0].promised == 2.0
    assert found.measured[0].lower_bound > 0.5
    assert found.is_within_promise  # false alarms: fewer than one in a hundred thousand
    monkeypatch.setattr(statistics, f"{name}_sensitivity", lambda change, *, edges: 1)
    found = privacy_audit.audit(house.run_file, datasets=AuditDatasets(1400, 1))
    assert not found.measured[0].is_within_promise  # two parts of 2 each: the next test
    assert "too many for the noise that their loss requires" in found.faults[0]


def test_too_small_a_sensitivity_of_a_histogram_is_missed_less_often_than_once_in_a_million():
    chance = detection_power([2.0, 2.0], 2.0, 1400, confidence=privacy_audit.CONFIDENCE)
    assert 1 - chance < 1e-6
