"""Five questions of somebody who has a signed release folder alone: fit for days, one home, two homes, who, the month.

The answers are computed here from the run file: half-widths from the tail of the discrete Laplace law summed term by
term, those of a month from the normal law, odds from e^epsilon. The wording is free; numbers and names are not.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from datetime import date, timedelta
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from agedp.internal_records.signing_keys import create_key

FIRST, DAYS, HOUSEHOLDS = date(2013, 3, 1), 35, "ABCDEFGH"
CLAMP_WH, EPSILON = 20_000, 4
PROMISE = 'notion = "classical"\nepsilon_per_day = 4\nmax_day_epsilon = 4\nepsilon_total = 140\n'


@pytest.fixture(scope="module")
def folder(houses, tmp_path_factory) -> Path:
    """A March and four days of eight homes, signed: days have an error of an eighth of a usual mean, months of 2 %."""
    house = houses(tmp_path_factory.mktemp("house"))
    days = [FIRST + timedelta(days=i) for i in range(DAYS)]
    house.fill(days, households=HOUSEHOLDS)
    house.write(FIRST, days[-1], clamp="20", promise=PROMISE)
    house.edit(("[output]\n", "[output]\nsign = true\n"))
    create_key(house.folder / "confidential", None, at="2013-04-08")
    house.run(today=date(2013, 4, 8))
    release: Path = house.folder / "release"
    return release


@pytest.fixture(scope="module")
def text(folder) -> str:
    return " ".join((folder / "STATEMENT.md").read_text().split())


def half_width_kwh(share: float) -> float:
    """Return the smallest w with P(|noise| <= w) >= share, for a mean over the homes."""
    q = math.exp(-EPSILON / CLAMP_WH)
    inside, width = (1 - q) / (1 + q), 0
    while inside < share:
        width += 1
        inside += 2 * (1 - q) / (1 + q) * q**width
    return width / 1000 / len(HOUSEHOLDS)


def states_one_of(text: str, *expected: float) -> bool:
    """Return whether a text has a number within 2 % of an expected one."""
    numbers = [float(number.replace(",", "")) for number in re.findall(r"\d[\d,]*\.?\d*", text)]
    return any(abs(number / value - 1) < 0.02 for number in numbers for value in expected)


def test_whether_it_is_fit_for_days(text):
    deviation = math.sqrt(2) * CLAMP_WH / EPSILON / 1000 / len(HOUSEHOLDS)
    assert states_one_of(text, half_width_kwh(0.9), half_width_kwh(0.95))
    assert states_one_of(text, *(z * deviation / math.sqrt(30) for z in (1.645, 1.96)))
    assert re.search(r"(?i)(fit|rough|of no use) for (single )?days", text)


def test_who_signed_it_is_in_the_folder_and_in_its_contract(folder):
    document = json.loads((folder / "SIGNATURE.json").read_text())
    assert document["signs"]["sha256sums"] == hashlib.sha256((folder / "SHA256SUMS").read_bytes()).hexdigest()
    assert json.loads((folder / "statement.json").read_text())["contract"]["output"] == {"sign": True}


def test_who_signed_it_is_in_the_words(folder, text):
    fingerprint = hashlib.sha256(bytes.fromhex(json.loads((folder / "SIGNATURE.json").read_text())["key"])).hexdigest()
    assert fingerprint in text
    assert "--key" in text
    assert "not signed" not in text


def test_where_the_month_is(folder, text):
    paths = [resource["path"] for resource in json.loads((folder / "datapackage.json").read_text())["resources"]]
    (path,) = [path for path in paths if "month" in path]
    assert re.search("(?i)months", text)
    march = next(row for row in pq.read_table(folder / path).to_pylist() if row["first_day"] == date(2013, 3, 1))
    days = [row for row in pq.read_table(folder / "daily_averages.parquet").to_pylist() if row["day"].month == 3]
    assert len(days) == 31
    assert march["mean_kwh"] == pytest.approx(sum(row["mean_kwh"] for row in days) / len(days))
    deviation = math.sqrt(sum(row["noise_sd_kwh"] ** 2 for row in days)) / len(days)
    assert march["noise_sd_kwh"] == pytest.approx(deviation)
