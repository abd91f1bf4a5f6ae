"""A statement's numbers anew, from the published Parquet and the rows of the ledger, by fractions and plain loops.

Nothing of the notions, their mathematics or the statement's own code is used: a second reading of MATHS 2b, 3 and 5.
"""

from __future__ import annotations

import json
import math
import sqlite3
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import cache, cached_property
from pathlib import Path

import pyarrow.parquet as pq

NANO = 10**9
DIGITS = 60


@dataclass(frozen=True)
class Release:
    """A folder, and the ledger beside it, as they lie on the disk."""

    folder: Path
    ledger: Path

    @cached_property
    def claim(self):
        return json.loads((self.folder / "statement.json").read_text())

    @cached_property
    def _lines(self):
        return [json.loads(line) for line in (self.folder / "ledger_rows.jsonl").read_text().splitlines()[1:]]

    def rows(self, table):
        """Return the texts of the ledger rows of a kind that the folder carries."""
        return [{**json.loads(line["text"]), "hash": line["hash"]} for line in self._lines if line["table"] == table]

    @cached_property
    def released(self):
        return [row for row in self.rows("release") if row["state"] == "released"]

    @cached_property
    def promises(self):
        return [json.loads(row["promise"]) for row in self.rows("contract")]

    @cached_property
    def everybody(self):
        """Return population, day and loss of all that the ledger holds, of other populations too."""
        with closing(sqlite3.connect(self.ledger)) as connection:
            return connection.execute("SELECT population, day, loss FROM release WHERE state = 'released'").fetchall()


@cache
def published(release):
    """Return (day, published_on, loss) of every release as the Parquet files tell it."""
    found = []
    tables = [*release.folder.glob("daily_averages*.parquet"), *release.folder.glob("daily_distribution*.parquet")]
    for path in sorted(tables):
        told = {
            (row["day"], row["published_on"], round(row["epsilon"] * NANO)) for row in pq.read_table(path).to_pylist()
        }
        found += sorted(told)
    return found


def counts(release):
    """Return by (day, cell) of the ledger what the distributions in the Parquet files say, and the noise beside it."""
    found = {}
    for path in sorted(release.folder.glob("daily_distribution*.parquet")):
        for row in pq.read_table(path).to_pylist():
            group = "" if row["group"] == "all" else f"{row['group']} "
            cell = f"{group}{row['bin_low_kwh']:g}-{row['bin_high_kwh']:g}"
            found[str(row["day"]), cell] = row["households_noisy"], row["noise_sd"]
    return found


def series_of(release, row):
    [promise] = [json.loads(each["promise"]) for each in release.rows("contract") if each["hash"] == row["contract"]]
    return promise["series"][row["series"]]


def sensitivity(terms, size_wh):
    """Return how far a household that uses at most so much more or less, in whole Wh, moves a series; None: any."""
    edges = [int(Decimal(edge) * 1000) for edge in terms.get("bins_kwh", ())]
    clamp = int(Decimal(terms["clamp_kwh"]) * 1000)
    size = clamp if size_wh is None else min(size_wh, clamp)
    if not edges:
        return size
    crossed = max(sum(edge - 1 < other <= edge - 1 + size for other in edges[1:-1]) for edge in edges[1:-1])
    return crossed if terms["form"] == "cumulative" else min(crossed, 1) * 2


def of_change(release, size_wh):
    """Return by day what a change of this size costs, by the scales alone [1e-9, exact]."""
    losses = {}
    for row in release.released:
        day = date.fromisoformat(row["day"])
        own = Fraction(sensitivity(series_of(release, row), size_wh)) / Fraction(float(row["scale"])) * NANO
        losses[day] = losses.get(day, 0) + own
    return losses


def charged(row):
    """Return the loss of a ledger row from its scale: sensitivity / scale, rounded up to 1e-9."""
    return math.ceil(Fraction(row["sensitivity"]) / Fraction(float(row["scale"])) * NANO)


def days_of(release):
    losses = {}
    for day, _, loss in published(release):
        losses[day] = losses.get(day, 0) + loss
    return losses


def window(losses, length):
    best, day = 0, min(losses)
    while day <= max(losses):
        best = max(best, sum(losses.get(day + timedelta(days=i), 0) for i in range(length)))
        day += timedelta(days=1)
    return best


def discounted(losses, weight):
    """Return the largest discounted sum on any day, and that on the newest, as fractions."""
    sums = {}
    for then in losses:
        sums[then] = sum(loss * weight((then - day).days) for day, loss in losses.items() if day <= then)
    return max(sums.values()), sums[max(losses)]


def exponential(rate):
    return lambda age: Fraction(rate) ** age


def hyperbolic(rate):
    return lambda age: 1 / (1 + Fraction(rate) * age)


class Memory:
    """A model's envelope: what is left of a loss at an age in steps [epsilon, Decimal]."""

    def __init__(self, public):
        self.public = json.loads(public)
        self.told = self.public["envelope"]
        self.steps = self.told["steps_per_day"]

    @property
    def methods(self):
        return [*(["tight"] if "backward" in self.told else []), *self.told["bounds"]]

    @property
    def composes_ahead(self):
        return self.told["assume"] == "markov" and "forward" in self.told

    def left(self, method, age, loss, direction="backward"):
        tabulated = [i for i, step in enumerate(self.told["ages"]) if step <= age]
        if not tabulated or not loss:
            return loss
        at = tabulated[-1]
        if method == "tight":
            by_grid = self._between(self._worst(self.told[direction], at), loss)
            return min(by_grid, self._by_pieces(direction, at, loss)) if self.has_pieces else by_grid
        distance = Decimal(max(self.told["bounds"][method][at:])) / NANO
        return min(loss, (1 + distance * (loss.exp() - 1)).ln())

    @property
    def has_pieces(self):
        return "hulls" in self.told

    def _by_pieces(self, direction, at, loss):
        more = loss.exp() - 1
        pieces = zip(*self.told["hulls"][direction][at], strict=True)
        return max(((1 + more * over / 10**18) / (1 + more * under / 10**18)).ln() for over, under in pieces)

    def _worst(self, table, at):
        columns = zip(*table[at:], strict=True)
        return [math.inf if "inf" in column else max(column) for column in columns]

    def _between(self, values, loss):
        grid = [math.inf if each == "inf" else each for each in self.told["losses"]]
        above = [value for each, value in zip(grid, values, strict=True) if each >= loss * NANO]
        below = [(each, value) for each, value in zip(grid, values, strict=True) if each <= loss * NANO]
        found = [loss]
        if above and above[0] != math.inf:
            found.append(Decimal(above[0]) / NANO)
        if below and below[-1][1] != math.inf:
            found.append(Decimal(below[-1][1]) / NANO + loss - Decimal(below[-1][0]) / NANO)
        return min(found)


def risk(rows, memory, *, method, age_days, whole_days):
    """Return the largest risk at any publication [epsilon]."""
    with localcontext(prec=DIGITS):
        return max(
            _risk_on(rows, memory, method, on, (age_days, whole_days)) for on in {row["published_on"] for row in rows}
        )


def _risk_on(rows, memory, method, on, promised):
    age_days, whole_days = promised
    public = [row for row in rows if row["published_on"] <= on]
    losses = {}
    for row in public:
        losses[row["day"]] = losses.get(row["day"], 0) + Decimal(row["loss"]) / NANO
    newest = max(public, key=lambda row: row["day"])
    passed = datetime.combine(date.fromisoformat(on), time(), UTC) - datetime.fromisoformat(newest["input_ended_at"])
    steps = passed * memory.steps // timedelta(days=1)
    if whole_days:
        steps = steps // memory.steps * memory.steps
    steps = max(steps, age_days * memory.steps)
    days = sorted(losses)
    if memory.told["assume"] == "markov":
        carried, before = Decimal(0), days[0]
        for day in days:
            carried = losses[day] + memory.left(method, apart(before, day) * memory.steps, carried)
            before = day
        return memory.left(method, steps, carried)
    alone = [
        sum(losses.values()) - losses[day]
        + memory.left(method, steps + apart(day, days[-1]) * memory.steps, losses[day])
        for day in days
    ]  # fmt: skip
    return min(alone)


def leakage(rows, memory):
    """Return the most that all rows say about any day from the first to the last of them, each day looked at."""
    losses = {}
    for row in rows:
        day = date.fromisoformat(row["day"])
        losses[day] = losses.get(day, 0) + Decimal(row["loss"]) / NANO
    first, last = min(losses), max(losses)
    with localcontext(prec=DIGITS):
        return max(
            losses.get(on, 0) + _said(losses, memory, on, "backward") + _said(losses, memory, on, "forward")
            for on in (first + timedelta(days=i) for i in range((last - first).days + 1))
        )


def _said(losses, memory, on, direction):
    """Return what the days on one side of a day say about the whole of it."""
    towards = sorted(day for day in losses if day < on) if direction == "backward" else sorted(
        (day for day in losses if day > on), reverse=True
    )  # fmt: skip
    tabulated = {1, *(age // memory.steps for age in memory.told["ages"])}

    def least(day, k, whole):
        """Go on from any of the seven releases before that lies so many tabulated days back, the others in full."""
        ways = [Decimal(0)] if k == 0 else []
        for j in range(1, min(k, 7) + 1):
            if j in tabulated:
                gap = abs((day - towards[k - j]).days)
                steps = memory.steps * (gap - 1) + 1 if whole else memory.steps * gap
                between = sum((losses[other] for other in towards[k - j + 1 : k]), Decimal(0))
                ways.append(between + memory.left("tight", steps, said[k - j], direction))
        return min(ways)

    said = []
    for k, day in enumerate(towards):
        said.append(losses[day] + least(day, k, whole=False))
    return least(on, len(towards), whole=True)


def apart(one, other):
    return (date.fromisoformat(other) - date.fromisoformat(one)).days


def bounds(promise):
    """Return by figure what a promise bounds, in text; "unlimited" where nothing does."""
    terms = promise["promise"]
    found = {"day": terms["max_day_epsilon"], "total": terms["epsilon_total"]}
    if terms["notion"] == "classical":
        found["day"] = least(found["day"], terms["epsilon_per_day"])
    if terms["notion"] == "w-event":
        found["day"] = least(found["day"], terms["epsilon_per_window"])
        found[f"window of {terms['window_days']} days"] = terms["epsilon_per_window"]
    if terms["notion"] == "neighbourhood":
        small = int(Decimal(terms["delta_kwh"]) * 1000)
        times = max(Fraction(sensitivity(one, None), sensitivity(one, small)) for one in promise["series"].values())
        assert times * Fraction(terms["epsilon_per_window"]) >= Fraction(found["day"])  # the cap is what bounds a day
        of_delta = f"change of {terms['delta_kwh']} kWh"
        found[of_delta] = least(terms["max_day_epsilon"], terms["epsilon_per_window"])
        found[f"{of_delta}, window of {terms['window_days']} days"] = terms["epsilon_per_window"]
    if terms["notion"] == "discounted":
        found["day"] = least(found["day"], terms["epsilon"])
        clock = "" if terms["clock"] == "data-day" else " by publication"
        for where in ("", " on the newest day"):
            found[f"discounted sum ({terms['discount']} {terms['rate']}{clock}){where}"] = terms["epsilon"]
    if terms["notion"] == "temporal":
        found["day"], found["temporal leakage"] = least(found["day"], terms["alpha"]), terms["alpha"]
    if terms["notion"] == "age-dependent" and "risk" in terms:
        found["risk"] = terms["risk"]
    if "epsilon_per_day" in terms:
        found["day"] = least(found["day"], terms["epsilon_per_day"])
    return found


def least(one, other):
    return min(one, other, key=Decimal)


def differing(old, new):
    """Return the keys at which two promises differ."""
    before, after = dict(leaves(old)), dict(leaves(new))
    return sorted(key for key in before | after if before.get(key) != after.get(key))


def leaves(value, key=""):
    if not isinstance(value, dict):
        return [(key, value)]
    return [leaf for name in value for leaf in leaves(value[name], f"{key}.{name}" if key else name)]
