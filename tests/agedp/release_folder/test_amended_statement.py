"""The statement of a population that was amended in every key describes each row by the contract of that row.

What a number of the text should be is read off the ledger rows: sensitivity = loss x scale / days, the households of
the smallest group, the cells of a row. A contract is asked for nothing.
"""

from __future__ import annotations

import json
import re
from datetime import date, timedelta
from decimal import Decimal
from itertools import pairwise

import jsonschema
import pytest

from agedp.stages.amend import preview_amendment, record_amendment
from agedp_data.ledger import ContractRecord
from agedp_data.statement.deployment import deployment
from agedp_data.statement.document import read_statement, schema

FIRST, AMENDED, DAYS = date(2013, 1, 7), date(2013, 1, 14), 12  # the first week is complete
CLASSICAL = (
    'notion = "classical"\nage_days = {}\nepsilon_per_day = {}\nmax_day_epsilon = {}\nepsilon_total = {}\ndelta = {}\n'
)
MEAN = 'statistic = "mean"\nclamp_kwh = {}\n{}'
BEFORE = """[series.weekly]
statistic = "mean"
clamp_kwh = 9
every = "week"
share = 0.1
[series.ranges]
statistic = "distribution"
clamp_kwh = 40
bins_kwh = [0, 2, 5, 10, 40]
share = 0.1
[series.shape]
statistic = "profile"
clamp_kwh = 30
half_hour_clamp_kwh = 2
missing_kwh = 5
by = "tariff"
share = 0.2
[series.usable]
statistic = "coverage"
max_missing = 0
share = 0.1
"""
AFTER = """[series.ranges]
statistic = "distribution"
clamp_kwh = 30
bins_kwh = [0, 3, 30]
max_missing = 4
share = 0.2
[series.shape]
statistic = "profile"
clamp_kwh = 20
half_hour_clamp_kwh = 1
missing_kwh = 3
share = 0.1
[series.usable]
statistic = "coverage"
max_missing = 5
by = "tariff"
share = 0.2
[series.low]
statistic = "mean"
clamp_kwh = 6
share = 0.1
"""
CELL = re.compile(r"(?<!\\)\|")


@pytest.fixture(scope="module")
def amended(houses, tmp_path_factory):
    """Twelve days of households, of which the first seven were released before every key changed."""
    house = houses(tmp_path_factory.mktemp("house"))
    days = [FIRST + timedelta(days=number) for number in range(DAYS)]
    households = [f"H{number}" for number in range(14)]
    house.london({(home, day, slot): 200 for home in households for day in days for slot in range(48)})
    rows = [
        f"{home},{FIRST if number < 10 else AMENDED},,{'Std' if number % 2 else 'ToU'}"
        for number, home in enumerate(households)
    ]
    (house.folder / "roster.csv").write_text("\n".join(["household_id,from,to,tariff", *rows]) + "\n")
    for promise, mean, rest, least, today in (
        (CLASSICAL.format(1, 0.5, 0.6, 20, 0.1), MEAN.format("[30, 75]", "share = [0.3, 0.2]\n"), BEFORE, 5, AMENDED),
        (CLASSICAL.format(2, 0.4, 0.5, 18, 0.05), MEAN.format("[20, 40]", "share = [0.2, 0.2]\n"), AFTER, 7, days[-1]),
    ):
        house.write(FIRST, days[-1], mode="live", promise=promise, rest=rest, least=least)
        house.edit(('statistic = "mean"\nclamp_kwh = 50\n', mean))
        if today > AMENDED:
            preview = preview_amendment(house.session(today=today))
            assert {change.verdict for change in preview.changes} == {"allowed"}
            record_amendment(house.session(today=today), preview)
        house.run(today=today + timedelta(days=1 if today == AMENDED else 3))
    return house


@pytest.fixture(scope="module")
def text(amended):
    return (amended.folder / "release" / "STATEMENT.md").read_text()


def series_rows(text):
    """Return the rows of the table of series, each as its cells by their names."""
    section = text.partition("## How each series was computed")[2]
    lines = [line for line in section.splitlines() if line.startswith("|")]
    names, _, *rows = ([cell.strip() for cell in CELL.split(line)[1:-1]] for line in lines)
    return [dict(zip(names, row, strict=True)) for row in rows]


def numbers(text):
    return [Decimal(number) for number in re.findall(r"\d+(?:\.\d+)?", text)]


def test_the_folder_verifies_and_its_statement_is_of_the_schema(amended):
    amended.release.verify()
    statement = json.loads((amended.folder / "release" / "statement.json").read_text())
    jsonschema.validate(statement, schema())
    first, second = statement["versions"]
    assert (first["contract"]["population"]["min_households"], "contract" in second) == (5, False)
    assert {of["series"]: (of["first"], of["last"]) for of in first["released"]}["weekly"] == (
        "2013-01-07",
        "2013-01-13",
    )
    for together, number in zip(statement["together"], (2, 5, 10), strict=True):
        day, total = (number * Decimal(bound["epsilon"]) for bound in statement["figures"][:2])
        assert {key: Decimal(value) for key, value in together.items()} == {
            "households": number,
            "day": day,
            "total": total,
        }


def test_every_number_on_a_series_is_that_of_its_rows(amended, text):
    table = series_rows(text)
    contracts = [row.hash for row in amended.release.ledger_rows().rows if isinstance(row, ContractRecord)]
    released = [row for row in amended.rows() if row.state == "released"]
    assert {(row.contract == contracts[1], row.series) for row in released} >= {(False, "weekly"), (True, "low")}
    described = set()
    for row in released:
        version = str(contracts.index(row.contract) + 1)
        [of] = [
            line
            for line in table
            if line["series"] == row.series
            and version in line["versions"].split(", ")
            and any(span.split(" to ")[0] <= row.day <= span.split(" to ")[-1] for span in line["days"].split("; "))
        ]
        described.add((of["series"], of["versions"]))
        days = 7 if row.series == "weekly" else 1
        households = [number // days for number in row.households]
        assert int(of["fewest households"]) <= min(households)
        assert int(of["fewest households"]) == (5 if version == "1" else 7)
        unit = 1 if of["sensitivity"].endswith(("household", "households")) else 1000
        [sensitivity] = numbers(of["sensitivity"])
        assert float(sensitivity * unit * days) == pytest.approx(float(row.loss * row.scale) / 1e9, rel=1e-6)
        assert of["by"] == ("" if all("Std" not in cell for cell in row.cells) else "tariff")
        if row.series == "ranges":
            edges = numbers(of["values"])
            assert [f"{low}-{high}" for low, high in pairwise(edges)] == list(row.cells)
        elif row.series == "shape":
            half_hour, day = numbers(of["counts at most"])
            assert sensitivity == min(48 * half_hour, 2 * day)
        elif row.series != "usable":
            most = numbers(of["counts at most"])
            assert sensitivity == most[-1] - (most[0] if len(most) > 1 else 0)
    assert described == {(line["series"], line["versions"]) for line in table}


def test_an_ended_series_is_named_beside_the_table_of_errors(text):
    section = text.partition("## How good the numbers are")[2].partition("\n## ")[0]
    assert "Ended by an amendment, and not in the table: `weekly` (2013-01-07 to 2013-01-13)." in section
    assert "| weekly |" not in section


def test_the_entry_of_the_registry_has_the_clamps_of_every_version(amended):
    statement = read_statement((amended.folder / "release" / "statement.json").read_text())
    [domain] = [deployment(statement)["deployment"]["dp_variant"]["data_domain"]]
    for clamp in (
        "daily_mean/1 from 0 to 30 kWh (version 1 of the contract, 2013-01-07 to 2013-01-13)",
        "daily_mean/1 from 0 to 20 kWh (version 2 of the contract, 2013-01-14 to 2013-01-18)",
        "daily_mean/2 from 20 to 40 kWh (version 2 of the contract, 2013-01-14 to 2013-01-18)",
        "weekly from 0 to 9 kWh (version 1 of the contract, 2013-01-07 to 2013-01-13)",
    ):
        assert clamp in domain
