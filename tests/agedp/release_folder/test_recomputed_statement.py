"""Numbers of a statement recomputed from the published Parquet and the ledger's rows, by fractions and plain loops.

Nothing of the notions, their mathematics or the statement's own code is used: only
docs/chains.md and docs/mathematics.md.
"""

from __future__ import annotations

import copy
import json
import math
import shutil
import sqlite3
from collections import Counter
from contextlib import closing, suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import cached_property
from pathlib import Path

import jsonschema
import pyarrow.parquet as pq
import pytest

from agedp.release_verification import open_release
from agedp.stages.amend import amend
from agedp_data.errors import Refused
from agedp_data.statement.document import schema
from tests.agedp.release_folder import span_oracle

NANO = 10**9
UNCHECKED = ("risk (", "temporal leakage")
"""Bounds by other methods, which tests/agedp_data/accounting and tests/papers compare with closed forms."""
FIRST, DAYS = date(2013, 1, 1), 10
COMPARE = "[compare]\nwindow_days = 3\nexponential = 0.75\nhyperbolic = 0.5\n"
CLASSICAL = 'notion = "classical"\nage_days = 1\nepsilon_per_day = {}\nmax_day_epsilon = 0.5\nepsilon_total = 3.1\n'
AT_A_DELTA = CLASSICAL.format(0.5).replace("3.1", '3.97\ndelta = "1e-6"')
WINDOWS = (
    'notion = "w-event"\nage_days = 1\nwindow_days = 4\nepsilon_per_window = 1\nspend = "remaining"\n'
    'max_day_epsilon = 0.4\nepsilon_total = "unlimited"\n'
)
DISCOUNTED = (
    'notion = "discounted"\nage_days = 1\ndiscount = "hyperbolic"\nrate = 2\nepsilon = 1\nschedule = "renewal"\n'
    'clock = "publication-day"\nmax_day_epsilon = 0.7\nepsilon_total = 30\n'
)
AGED = (
    'notion = "age-dependent"\nage_days = 1\nepsilon_per_day = 0.3\nmethod = "total_variation"\nsecret = "day"\n'
    "max_day_epsilon = 0.8\nepsilon_total = 30\n"
)
KERNEL = '[model]\nsource = "declared"\nbasis = "made up"\nassume = "markov"\nkernel = "slow.csv"\nstep = "day"\n'
CURVE = '[model]\nsource = "declared"\nbasis = "made up"\nassume = "{}"\ncurve = "fast.csv"\n'
SECOND = '[series.small]\nstatistic = "mean"\nclamp_kwh = 5\nshare = 0.4\n'
SCENES = {
    "classical, two series, amended, to its end": (
        (CLASSICAL.format(0.5), COMPARE + SECOND, 4),
        (CLASSICAL.format("0.300000001"), COMPARE + SECOND, DAYS),
    ),
    "classical, at a delta, to its end": ((AT_A_DELTA, SECOND, DAYS),),
    "classical, beside another population": ((CLASSICAL.format(0.25), "", 5),),
    "discounted": ((DISCOUNTED, COMPARE, 7),),
    "age-dependent, a kernel": ((AGED, KERNEL + COMPARE, 6),),
    "age-dependent, a curve": ((AGED, CURVE.format("curve"), 6),),
    "age-dependent, under two models": ((AGED, KERNEL, 4), (AGED, CURVE.format("markov"), 7)),
    "w-event": ((WINDOWS, COMPARE, 7),),
}
"""Promise, model and series, and the day up to which they are run, one after the other."""


def day(number):
    return FIRST + timedelta(days=number)


@dataclass(frozen=True)
class Release:
    """A folder and the ledger beside it, as they are on the disk."""

    folder: Path
    rest: str

    @cached_property
    def statement(self):
        return json.loads((self.folder / "statement.json").read_text())

    def rows(self, table):
        """Return the ledger rows of a kind that the folder contains."""
        lines = [json.loads(line) for line in (self.folder / "ledger_rows.jsonl").read_text().splitlines()[1:]]
        return [{**json.loads(line["text"]), "hash": line["hash"]} for line in lines if line["table"] == table]

    @cached_property
    def released(self):
        return [row for row in self.rows("release") if row["state"] == "released"]

    @cached_property
    def promises(self):
        return [json.loads(row["promise"]) for row in self.rows("contract")]

    @cached_property
    def terms(self):
        return self.promises[-1]["promise"]

    @cached_property
    def published(self):
        """Return (day, published_on, loss) of every release, from the Parquet files."""
        tables = [pq.read_table(path).to_pylist() for path in sorted(self.folder.glob("daily_*.parquet"))]
        releases = [
            {(row["day"], row["published_on"], round(row["epsilon"] * NANO)) for row in rows} for rows in tables
        ]
        return [release for of_file in releases for release in sorted(of_file)]

    @cached_property
    def newest_content(self):
        """Return the hash of the newest account or release, from the ledger."""
        newest = "SELECT hash FROM (SELECT seq, hash FROM release UNION SELECT seq, hash FROM statement WHERE "
        with closing(sqlite3.connect(self.folder.parent / "ledger.sqlite")) as connection:
            return connection.execute(f"{newest} claim LIKE '{{\"population account%') ORDER BY seq DESC").fetchone()[0]

    @cached_property
    def every_population(self):
        with closing(sqlite3.connect(self.folder.parent / "ledger.sqlite")) as connection:
            return connection.execute("SELECT population, day, loss FROM release WHERE state = 'released'").fetchall()


@pytest.fixture(scope="module")
def inputs(houses, tmp_path_factory):
    house = houses(tmp_path_factory.mktemp("house"))
    house.fill([day(i) for i in range(DAYS)])
    house.roster([("A", FIRST, None), ("B", day(1), None), ("C", day(1), None)])  # too few on the first day
    (house.folder / "slow.csv").write_text("0.9,0.1,0\n0.1,0.7,0.2\n0,0.3,0.7\n")
    (house.folder / "fast.csv").write_text("1,0.4\n2,0.2\n5,0.05\n")
    return house


@pytest.fixture(scope="module", params=SCENES)
def release(request, inputs, houses, tmp_path_factory):
    house = houses(shutil.copytree(inputs.folder, tmp_path_factory.mktemp("scene") / "house"))
    for number, (promise, rest, until) in enumerate(SCENES[request.param]):
        write(house, promise, rest)
        if number:
            amend(house.context(as_of=day(until)))
        with suppress(Refused):  # the series has ended
            house.run(as_of=day(until))
    if "another population" in request.param:
        write(house, WINDOWS, "")
        house.edit(('name = "homes"', 'name = "neighbours"'), ('release = "release"', 'release = "other"'))
        house.run(as_of=day(6))
        write(house, promise, rest)
        house.run(as_of=day(until + 1))
    return Release(house.folder / "release", rest)


def write(house, promise, rest):
    house.write(FIRST, day(DAYS - 1), mode="rehearsal", promise=promise, rest=rest)
    share = "clamp_kwh = 50\nshare = 0.6\n" if "[series" in rest else "clamp_kwh = 50\n"
    house.run_file.write_text(house.run_file.read_text().replace("clamp_kwh = 50\n", share, 1))


def sum_by(pairs):
    sums = Counter()
    for key, loss in pairs:
        sums[key] += loss
    return sums


def largest_window(losses, length):
    return max(sum(losses.get(first + timedelta(days=i), 0) for i in range(length)) for first in losses)


def discounted(name, losses, weight):
    """Yield the largest discounted sum and that on the newest day; weights round up to 2^-64, sums to 1e-9."""
    sums = {on: sum(loss * weight((on - of).days) for of, loss in losses.items() if of <= on) for on in losses}
    slack = Fraction(len(losses) * 10**12, 2**64)
    for where, exact in (("", max(sums.values())), (" on the newest day", sums[max(sums)])):
        yield f"discounted sum ({name}){where}", (math.ceil(exact), math.ceil(exact + slack))


def bounds_of_risk(release):
    """Yield the risk by total variation under each model; each day and each gap may round up once."""
    if "method" not in release.terms:
        return
    newest = release.promises[-1]["model"]["hash"]
    for row in release.rows("model"):
        numbers = [i for i, one in enumerate(release.released) if one["model"] == row["model"]]
        of_model = release.released[: None if row["model"] == newest else numbers[-1] + 1]
        table = json.loads(row["envelope"])["envelope"]
        with localcontext(prec=60):
            risk = max(risk_on(on, of_model, table) for on in {one["published_on"] for one in of_model})
        least = math.ceil(risk * NANO)
        name = "risk" if row["model"] == newest else "risk as promised"
        yield name, (least, least + 3 * len(of_model) + 3)


def risk_on(on, rows, table):
    """Return the risk at a publication [epsilon]: composed over the gaps, or of the oldest day alone."""
    steps_per_day, public = table["steps_per_day"], [row for row in rows if row["published_on"] <= on]

    def leakage(days, loss):
        """Return what is left of a loss: ln(1 + TV (e^loss - 1)) at the age in the table that is not above."""
        ages = [i for i, age in enumerate(table["ages"]) if age <= days * steps_per_day]
        if not ages:
            return loss
        unit = 1 if table.get("distances") == "exact" else NANO
        variation = max(map(Decimal, table["bounds"]["total_variation"][ages[-1] :])) / unit
        return min(loss, (1 + variation * (loss.exp() - 1)).ln())

    losses = sum_by((date.fromisoformat(row["day"]), Decimal(row["loss"]) / NANO) for row in public)
    end = max(datetime.fromisoformat(row["input_ended_at"]) for row in public)
    age = max((datetime.combine(date.fromisoformat(on), time(), UTC) - end).days, 1)
    newest = max(losses)
    if table["assume"] != "markov":
        total = sum(losses.values())
        return min(total - loss + leakage(age + (newest - of).days, loss) for of, loss in losses.items())
    composed, before = Decimal(0), min(losses)
    for of in sorted(losses):
        composed = losses[of] + leakage((of - before).days, composed)
        before = of
    return leakage(age, composed)


def exactly(value):
    return value, value


def expected_bounds(release):
    """Return the smallest and the largest value of each bound [1e-9]."""
    terms, losses = release.terms, sum_by((of, loss) for of, _, loss in release.published)
    found = {"day": exactly(max(losses.values())), "total": exactly(sum(losses.values()))}
    windows = {3 if COMPARE in release.rest else 7, *([4] if terms["notion"] == "w-event" else [])}
    found |= {f"window of {length} days": exactly(largest_window(losses, length)) for length in windows}
    if COMPARE in release.rest:
        found |= discounted("exponential 0.75", losses, lambda age: Fraction("0.75") ** age)
        found |= discounted("hyperbolic 0.5", losses, lambda age: 1 / (1 + Fraction(age, 2)))
    if terms["notion"] == "discounted":
        on_dates = sum_by((on, loss) for _, on, loss in release.published)
        found |= discounted("hyperbolic 2 by publication", on_dates, lambda age: Fraction(1, 1 + 2 * age))
    found |= dict(bounds_of_risk(release))
    totals = span_oracle.totals(release.released, always="delta" in terms).items()
    return found | {name: (math.floor(value), math.ceil(value) + 3) for name, value in totals}


def promised_limits(release):
    """Return what a promise bounds, in text."""
    terms, smallest = release.terms, lambda *amounts: min(amounts, key=Decimal)
    daily = {"classical": "epsilon_per_day", "w-event": "epsilon_per_window", "discounted": "epsilon"}
    key = daily.get(terms["notion"], "epsilon_per_day")
    found = {"day": smallest(terms["max_day_epsilon"], terms.get(key, terms["max_day_epsilon"]))}
    found["total"] = terms["epsilon_total"]
    found |= {"total": "", "total (delta 1e-6)": terms["epsilon_total"]} if "delta" in terms else {}
    if terms["notion"] == "w-event":
        found["window of 4 days"] = terms["epsilon_per_window"]
    if terms["notion"] == "discounted":
        for where in ("", " on the newest day"):
            found[f"discounted sum (hyperbolic 2 by publication){where}"] = terms["epsilon"]
    return found


def faults(statement, release):
    """Yield the numbers of a statement that differ from those recomputed."""
    expected, stated = expected_bounds(release), {bound["name"]: bound for bound in statement["figures"]}
    if unknown := {name for name in set(expected) ^ set(stated) if not name.startswith(UNCHECKED)}:
        yield f"names: {sorted(unknown)}"
        return
    limits = promised_limits(release)
    for name, (least, most) in expected.items():
        bound = stated[name]
        value = Fraction(bound["epsilon"]) * NANO
        if not (value.denominator == 1 and least <= value <= most):
            yield f"{name}: {value} not in {least}..{most}"
        limit = limits.get(name, "")
        if bound["limit"] != (limit if limit in ("", "unlimited") else max(limit, bound["epsilon"], key=Decimal)):
            yield f"{name}: limit"
        with localcontext(prec=60):
            bounds_no_odds = name.startswith("discounted sum") or "delta" in bound
            factor = Decimal(bound["factor"] or 1)
            is_factor = factor.ln() >= Decimal(bound["epsilon"]) > (factor - Decimal("0.01")).ln()
            if not (bound["factor"] == "" if bounds_no_odds else is_factor):
                yield f"{name}: factor"
        if bound.get("delta") != {"(delta 1e-6)": "0.000001", "(delta 1e-9)": "0.000000001"}.get(name[6:]):
            yield f"{name}: delta"
    days, dates = {of for of, _, _ in release.published}, {on for _, on, _ in release.published}
    spent, cap = sum(loss for _, _, loss in release.published), release.terms["epsilon_total"]
    at_delta = {"delta": release.terms["delta"]} if "delta" in release.terms else {}
    total = "total (delta 1e-6)" if at_delta else "total"
    if at_delta:
        spent = Fraction(stated[total]["epsilon"]) * NANO
    contracts, rows = release.rows("contract"), release.rows("release")
    skipped = sorted({row["day"] for row in rows} - {str(of) for of in days})
    remaining = None if cap == "unlimited" else Fraction(cap) * NANO - spent
    ending, second = statement["ending"], statement["second_population"]
    others = {population for population, _, _ in release.every_population} - {statement["population"]}
    every = sum_by((on, loss) for _, on, loss in release.every_population)  # all have the same three households
    holds = {
        "days": statement["days"]
        == {"first": str(min(days)), "last": str(max(days)), "released": len(days), "skipped": skipped},
        "published": statement["published"] == {"first": str(min(dates)), "last": str(max(dates))},
        "contract": statement["contract"] == release.promises[-1],
        "versions": [one["registered"] for one in statement["versions"]] == [row["at"] for row in contracts],
        "spent": Fraction(ending["spent"]) * NANO == spent,
        "left": ending["left"] == cap if remaining is None else Fraction(ending["left"]) * NANO == remaining,
        "in_ledger": second["in_ledger"] == len(others),
        "delta": {key: ending[key] for key in ending if key == "delta"} == at_delta,
        "adds": second["adds"] == {"day": limits["day"], "total": limits[total], **at_delta},
        "head": statement["ledger"]["head"] == release.newest_content,
        "account": [Fraction(statement["household_account"][name]) * NANO for name in ("day", "total")]
        == [max(every.values()), sum(every.values())],
    }
    yield from (name for name, is_so in holds.items() if not is_so)


def test_numbers_of_the_statement_follow_from_the_tables(release):
    assert list(faults(release.statement, release)) == []
    assert str(FIRST) in release.statement["days"]["skipped"]
    jsonschema.validate(release.statement, schema(), cls=jsonschema.Draft202012Validator)
    open_release(release.folder).verify()


def test_another_bound_would_be_a_fault(release):
    for number, bound in enumerate(release.statement["figures"]):
        if not bound["name"].startswith(UNCHECKED):
            for factor in ("1.01", "0.99"):
                statement = copy.deepcopy(release.statement)
                epsilon = (Decimal(bound["epsilon"]) * Decimal(factor)).quantize(Decimal("1e-9"))
                statement["figures"][number]["epsilon"] = f"{epsilon.normalize():f}"
                assert any(fault.startswith(f"{bound['name']}:") for fault in faults(statement, release)), bound


def test_losses_of_the_parquet_are_sensitivity_over_scale(release):
    rows = release.released
    published = [(row["day"], row["published_on"], row["loss"]) for row in rows]
    assert sorted(published) == sorted((str(of), str(on), loss) for of, on, loss in release.published)
    for row in rows:
        assert row["sensitivity"] == (5_000 if row["series"] == "small" else 50_000)
        assert row["loss"] == math.ceil(Fraction(row["sensitivity"]) / Fraction(float(row["scale"])) * NANO)


def test_the_last_day_of_a_classical_promise_is_counted(release):
    ending, terms = release.statement["ending"], release.terms
    if terms["notion"] != "classical":
        assert (ending["last_day"], ending["because"]) == (str(day(DAYS - 1)), "period")
        return
    losses, rows = sum_by((of, loss) for of, _, loss in release.published), release.released
    a_day, total = (Fraction(terms[key]) * NANO for key in ("epsilon_per_day", "epsilon_total"))
    last, remaining = max(losses), total - sum(losses.values())
    if "delta" in terms:
        of_a_day = rows[: len(rows) // len(losses)]
        days = max(n for n in range(30) if span_oracle.totals(n * of_a_day)["total (delta 1e-6)"] <= total)
        remaining = (days - len(losses)) * a_day
        assert days > total / a_day  # more than the sum of the losses would permit
    while last < day(DAYS - 1) and remaining >= a_day:
        last, remaining = last + timedelta(days=1), remaining - a_day
    assert (ending["last_day"], ending["because"]) == (str(last), "period" if last == day(DAYS - 1) else "promise")
