"""Every number of a statement follows from the published Parquet and the ledger's rows, by other code than its own."""

from __future__ import annotations

import ast
import copy
import math
import shutil
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import cache
from pathlib import Path

import jsonschema
import pytest

from agedp.release_folder.release_folder import open_release
from agedp.stages.amend import amend
from agedp_data.errors import Refused
from agedp_data.statement.document import schema
from tests.agedp.release_folder import recomputed
from tests.agedp.release_folder.recomputed import NANO, Memory, Release

FIRST = date(2013, 1, 1)
DAYS = 16
COMPARE = "[compare]\nwindow_days = 3\nexponential = 0.75\nhyperbolic = 0.5\n"
CLASSICAL = 'notion = "classical"\nage_days = 1\nepsilon_per_day = {}\nmax_day_epsilon = 0.5\nepsilon_total = 3.1\n'
WINDOWS = (
    'notion = "w-event"\nage_days = 1\nwindow_days = 4\nepsilon_per_window = 1\nspend = "remaining"\n'
    'max_day_epsilon = 0.4\nepsilon_total = "unlimited"\n'
)
DISCOUNTED = (
    'notion = "discounted"\nage_days = 1\ndiscount = "hyperbolic"\nrate = 2\nepsilon = 1\nschedule = "renewal"\n'
    'clock = "publication-day"\nmax_day_epsilon = 0.7\nepsilon_total = 30\n'
)
AGED = (
    'notion = "age-dependent"\nage_days = 1\nrisk = 0.9\nmethod = "{}"\nsecret = "day"\n'
    "max_day_epsilon = 0.8\nepsilon_total = 30\n"
)
CONSTANT = AGED.replace("risk = 0.9", "epsilon_per_day = 0.3")
TEMPORAL = (
    'notion = "temporal"\nage_days = 1\nalpha = {}\nhorizon_days = {}\nbudget = "{}"\n'
    "max_day_epsilon = 0.8\nepsilon_total = 30\n"
)
KERNEL = '[model]\nsource = "declared"\nbasis = "made up"\nassume = "markov"\nkernel = "{}.csv"\nstep = "{}"\n'
CURVE = '[model]\nsource = "declared"\nbasis = "made up"\nassume = "{}"\ncurve = "{}.csv"\n'
NEIGHBOURS = (
    'notion = "neighbourhood"\nage_days = 1\ndelta_kwh = 2\nwindow_days = 4\nepsilon_per_window = {}\n'
    'spend = "{}"\nmax_day_epsilon = 0.25\nepsilon_total = 30\n'
)
FRACTION = NEIGHBOURS.format("0.06", "fraction") + "fraction = 0.3\n"
COUNTS = '[series.counts]\nstatistic = "distribution"\nform = "{}"\nclamp_kwh = 40\nbins_kwh = [{}]\nshare = 0.4\n'
SIZES = "[compare]\nwindow_days = 3\nexponential = 0.75\nhyperbolic = 0.5\ndelta_kwh = [1, 5]\n"
SECOND = '[series.small]\nstatistic = "mean"\nclamp_kwh = 5\nshare = 0.4\n'


def day(number):
    return FIRST + timedelta(days=number)


@dataclass(frozen=True)
class Scene:
    """Run files one after the other, each with the simulated date up to which it is run."""

    runs: tuple[tuple[str, str, int], ...]
    last: int = DAYS - 1
    two_series: bool = False
    second: bool = False


SCENES = {
    "classical, two series, amended, to its end": Scene(
        ((CLASSICAL.format(0.5), COMPARE, 4), (CLASSICAL.format("0.300000001"), COMPARE, DAYS)),
        last=90,
        two_series=True,
    ),
    "classical, beside another population": Scene(((CLASSICAL.format(0.25), "", 8),), second=True),
    "w-event": Scene(((WINDOWS, COMPARE, 12),)),
    "discounted": Scene(((DISCOUNTED, COMPARE, 12),)),
    "age-dependent, a kernel, by all methods": Scene(
        ((AGED.format("tight"), KERNEL.format("slow", "day") + COMPARE, 10),)
    ),
    "age-dependent, half-hours": Scene(
        ((CONSTANT.format("total_variation"), KERNEL.format("slow", "half-hour") + COMPARE, 6),)
    ),
    "age-dependent, a curve and sums": Scene(((CONSTANT.format("total_variation"), CURVE.format("curve", "fast"), 7),)),
    "age-dependent, under two models": Scene(
        (
            (CONSTANT.format("total_variation"), KERNEL.format("slow", "day"), 5),
            (CONSTANT.format("total_variation"), CURVE.format("markov", "fast"), 9),
        )
    ),
    "temporal, a plan, then a newer model": Scene(
        (
            (TEMPORAL.format("1.5", 16, "exact"), KERNEL.format("slow", "day"), 6),
            (TEMPORAL.format("1.4", 16, "exact"), KERNEL.format("slower", "day"), 12),
        )
    ),
    "temporal, for ever, half-hours": Scene(
        ((TEMPORAL.format("0.9", '"unlimited"', "supremum"), KERNEL.format("slow", "half-hour") + COMPARE, 6),)
    ),
    "w-event, a histogram": Scene(((WINDOWS, SIZES + COUNTS.format("histogram", "0, 5, 9.5, 40"), 9),)),
    "neighbourhood, cumulative counts whose bins change": Scene(
        (
            (FRACTION, SIZES + COUNTS.format("cumulative", "0, 5, 6, 9.5, 40"), 5),
            (FRACTION, SIZES + COUNTS.format("cumulative", "0, 4.9, 6, 40"), 11),
        )
    ),
    "neighbourhood, planned, a mean alone": Scene(((NEIGHBOURS.format("0.06", "offline"), SIZES, 9),)),
    "w-event with a model": Scene(((WINDOWS, KERNEL.format("slow", "day"), 9),)),
}


@pytest.fixture(scope="module")
def inputs(houses, tmp_path_factory):
    house = houses(tmp_path_factory.mktemp("house"))
    house.london({(home, day(i), slot): 200 for home in "ABC" for i in range(DAYS) for slot in range(48)})
    house.roster([("A", FIRST, None), ("B", day(1), None), ("C", day(1), None)])  # too few on the first day
    (house.folder / "slow.csv").write_text("0.9,0.1,0\n0.1,0.7,0.2\n0,0.3,0.7\n")
    (house.folder / "slower.csv").write_text("0.9,0.1,0\n0.1,0.75,0.15\n0,0.25,0.75\n")
    (house.folder / "fast.csv").write_text("1,0.4\n2,0.2\n5,0.05\n")
    return house


@pytest.fixture(scope="module", params=SCENES.values(), ids=SCENES)
def told(request, inputs, houses, tmp_path_factory):
    """A scene and what it published."""
    scene = request.param
    house = houses(shutil.copytree(inputs.folder, tmp_path_factory.mktemp("scene") / "house"))
    for number, (promise, rest, until) in enumerate(scene.runs):
        write(house, scene, promise, rest)
        if number:
            amend(house.context(as_of=day(until)))
        with suppress(Refused):  # the series has ended
            house.run(as_of=day(until))
    if scene.second:
        write(house, scene, WINDOWS, "", name="neighbours", release="other")
        house.run(as_of=day(6))
        write(house, scene, *scene.runs[-1][:2])
        house.run(as_of=day(scene.runs[-1][2] + 1))
    return scene, Release(house.folder / "release", house.folder / "ledger.sqlite")


def write(house, scene, promise, rest, *, name="homes", release="release"):
    house.write(FIRST, day(scene.last), mode="rehearsal", promise=promise, rest=rest + SECOND * scene.two_series)
    text = house.run_file.read_text().replace('name = "homes"', f'name = "{name}"')
    text = text.replace('release = "release"', f'release = "{release}"')
    several = scene.two_series or "[series" in rest
    share = "clamp_kwh = 50\nshare = 0.6\n" if several else "clamp_kwh = 50\n"
    house.run_file.write_text(text.replace("clamp_kwh = 50\n", share, 1))


def compared(scene):
    return "[compare]" in scene.runs[-1][1]


@cache
def expected(scene, release):
    """Return by figure the smallest and the largest value that it may have, in whole 1e-9."""
    losses = recomputed.days_of(release)
    found = {"day": exactly(max(losses.values())), "total": exactly(sum(losses.values()))}
    found |= {name: exactly(recomputed.window(losses, length)) for name, length in windows(scene, release)}
    found |= {name: span for each in discounts(scene, release) for name, span in each.items()}
    found |= dict(risks(release))
    found |= dict(leakages(release))
    found |= dict(changes(scene, release))
    if scene.second:
        by_day = {}
        for _, on, loss in release.everybody:
            by_day[on] = by_day.get(on, 0) + loss
        found["day with the other populations"] = exactly(max(by_day.values()))
        found["total with the other populations"] = exactly(sum(by_day.values()))
    return found


def exactly(value):
    return value, value


def windows(scene, release):
    terms = release.promises[-1]["promise"]
    promised = [terms["window_days"]] if terms["notion"] == "w-event" else []
    asked = {3 if compared(scene) else 7, *promised}
    return [(f"window of {days} days", days) for days in asked]


def changes(scene, release):
    """What changes of a size come to: sensitivity to the change over scale, which may be rounded up for each row."""
    terms, sizes = release.promises[-1]["promise"], {"1", "5"} if SIZES in scene.runs[-1][1] else set()
    promised = terms["notion"] == "neighbourhood"
    for size in sizes | ({"2", "4"} if promised else set()):
        losses = recomputed.of_change(release, int(size) * 1000)
        yield f"change of {size} kWh", a_few_more(max(losses.values()), 2)
        if promised and size == terms["delta_kwh"]:
            days = terms["window_days"]
            yield f"change of {size} kWh, window of {days} days", a_few_more(recomputed.window(losses, days), 3 * days)


def a_few_more(exact, rows):
    least = -(-exact.numerator // exact.denominator)
    return least, least + rows


def discounts(scene, release):
    terms, on_days = release.promises[-1]["promise"], recomputed.days_of(release)
    if compared(scene):
        yield discounted("exponential 0.75", on_days, recomputed.exponential("0.75"))
        yield discounted("hyperbolic 0.5", on_days, recomputed.hyperbolic("0.5"))
    if terms["notion"] == "discounted":
        assert (terms["discount"], terms["clock"]) == ("hyperbolic", "publication-day")
        on_dates = {}
        for _, on, loss in recomputed.published(release):
            on_dates[on] = on_dates.get(on, 0) + loss
        yield discounted(f"hyperbolic {terms['rate']} by publication", on_dates, recomputed.hyperbolic(terms["rate"]))


def discounted(name, losses, weight):
    worst, newest = recomputed.discounted(losses, weight)
    return {
        f"discounted sum ({name})": within(worst, len(losses)),
        f"discounted sum ({name}) on the newest day": within(newest, len(losses)),
    }


def within(exact, terms):
    """Weights are rounded up to 2^-64, the sum to a whole 1e-9."""
    most = exact + Fraction(terms * 10**12, 2**64)
    return -(-exact.numerator // exact.denominator), -(-most.numerator // most.denominator)


def risks(release):
    models = {row["model"]: Memory(row["envelope"]) for row in release.rows("model")}
    if not models:
        return
    terms, rows = release.promises[-1], release.released
    newest = terms["model"]["hash"]
    own = terms["promise"].get("method")
    for name, memory in models.items():
        charged = [i for i, row in enumerate(rows) if row["model"] == name]
        of_model = rows if name == newest else rows[: charged[-1] + 1]
        first = own or models[newest].methods[0]
        first = first if first in memory.methods else "total_variation"
        for method in offered(terms):
            if method in memory.methods:
                risk = recomputed.risk(
                    of_model,
                    memory,
                    method=method,
                    age_days=terms["promise"]["age_days"],
                    whole_days=terms["promise"].get("secret", "day") == "day",
                )
                spoken = "risk" if method == first else f"risk ({method.replace('_', ' ')})"
                least = int((risk * NANO).to_integral_value("ROUND_CEILING"))
                # every day and every gap may round up once, with 1e-12 to spare
                yield spoken + ("" if name == newest else " as promised"), (least, least + 3 * len(of_model) + 3)


def leakages(release):
    rows, newest = release.released, release.promises[-1].get("model", {}).get("hash")
    for row in release.rows("model"):
        memory = Memory(row["envelope"])
        charged = [i for i, one in enumerate(rows) if one["model"] == row["model"]]
        of_model = rows if row["model"] == newest else rows[: charged[-1] + 1]
        if memory.composes_ahead:
            said = int((recomputed.leakage(of_model, memory) * NANO).to_integral_value("ROUND_CEILING"))
            # on a grid all are whole; by pieces every gap on both sides rounds up once, with 1e-12 to spare
            more = 3 * len(of_model) + 3 if memory.has_pieces else 0
            yield "temporal leakage" + ("" if row["model"] == newest else " as promised"), (said, said + more)


def offered(terms):
    """By a declared curve there is one method, by a kernel there are four."""
    kernel = "step" in terms["model"]
    return ["tight", "total_variation", "spectral", "reversibilised"] if kernel else ["total_variation"]


def stated(claim):
    return {one["name"]: one for one in claim["figures"]}


def faults(claim, scene, release):
    """Yield which numbers of a claim are others than they should be."""
    spans, figures = expected(scene, release), stated(claim)
    if set(spans) != set(figures) or len(figures) != len(claim["figures"]):
        yield f"figures: {sorted(set(spans) ^ set(figures))}"
        return
    bounds = recomputed.bounds(release.promises[-1])
    for name, (least, most) in spans.items():
        value = Fraction(figures[name]["epsilon"]) * NANO
        if not (value.denominator == 1 and least <= value <= most):
            yield f"{name}: {value} not in {least}..{most}"
        yield from _factor_and_limit(figures[name], bounds.get(name))
    yield from _rest(claim, release, bounds)


def _factor_and_limit(figure, bound):
    with localcontext(prec=60):
        if figure["name"].startswith("discounted sum"):  # no bound on odds
            sound = figure["factor"] == ""
        else:
            told, step = Decimal(figure["factor"]), Decimal("0.01")
            sound = told.ln() >= Decimal(figure["epsilon"]) > (told - step).ln()
        if not sound:
            yield f"{figure['name']}: factor"
    largest = bound if bound in (None, "unlimited") else max(bound, figure["epsilon"], key=Decimal)
    if figure["limit"] != (largest or ""):
        yield f"{figure['name']}: limit"


def _rest(claim, release, bounds):
    told = recomputed.published(release)
    days, dates = {one for one, _, _ in told}, {on for _, on, _ in told}
    of_day = {row["day"] for row in release.rows("release")}
    skipped = sorted(of_day - {str(one) for one in days})
    spent = sum(loss for _, _, loss in told)
    cap = release.promises[-1]["promise"]["epsilon_total"]
    others = {name for name, _, _ in release.everybody} - {claim["population"]}
    known = release.rows("contract")
    sound = {
        "days": claim["days"]
        == {"first": str(min(days)), "last": str(max(days)), "released": len(days), "skipped": skipped},
        "published": claim["published"] == {"first": str(min(dates)), "last": str(max(dates))},
        "contract": claim["contract"] == release.promises[-1],
        "version": claim["version"] == len(known),
        "versions": [one["registered"] for one in claim["versions"]] == [row["at"] for row in known],
        "changes": [[line.split(": ")[0] for line in one["changes"]] for one in claim["versions"]]
        == [[], *(recomputed.differing(*pair) for pair in zip(release.promises, release.promises[1:], strict=False))],
        "spent": Fraction(claim["ending"]["spent"]) * NANO == spent,
        "left": claim["ending"]["left"] == cap
        if cap == "unlimited"
        else Fraction(claim["ending"]["left"]) * NANO == max(0, Fraction(cap) * NANO - spent),
        "in_ledger": claim["second_population"]["in_ledger"] == len(others),
        "adds": claim["second_population"]["adds"] == {name: bounds[name] for name in ("day", "total")},
        "head": claim["ledger"]["head"] == release.rows("release")[-1]["hash"],
    }
    yield from (name for name, holds in sound.items() if not holds)


def test_every_number_of_the_statement_follows_from_the_parquet_and_the_ledger(told):
    scene, release = told
    assert list(faults(release.claim, scene, release)) == []
    assert str(FIRST) in release.claim["days"]["skipped"]


def test_what_the_parquet_says_is_what_the_ledger_charged_for_its_noise(told):
    _, release = told
    rows = release.released
    assert all(row["loss"] == recomputed.charged(row) for row in rows)
    said = [(row["day"], row["published_on"], row["loss"]) for row in rows]
    assert sorted(said) == sorted((str(on), str(date_), loss) for on, date_, loss in recomputed.published(release))


def test_no_number_can_be_another_unnoticed(told):
    scene, release = told
    claim = release.claim
    for number, figure in enumerate(claim["figures"]):
        for by in ("1.01", "0.99"):
            other = copy.deepcopy(claim)
            value = Decimal(figure["epsilon"]) * Decimal(by)
            other["figures"][number]["epsilon"] = str(value.quantize(Decimal("1e-9")).normalize())
            assert any(fault.startswith(f"{figure['name']}:") for fault in faults(other, scene, release)), figure
    for path, value in (
        (("days", "released"), 1),
        (("published", "last"), "2012-12-31"),
        (("versions", 0, "registered"), "2012-12-31"),
        (("ending", "spent"), "0.123"),
        (("ending", "left"), "0.123"),
        (("second_population", "in_ledger"), 7),
        (("second_population", "adds", "day"), "7"),
        (("figures", 0, "limit"), "7"),
        (("figures", 0, "factor"), "7.00"),
    ):
        other = copy.deepcopy(claim)
        here = other
        for key in path[:-1]:
            here = here[key]
        here[path[-1]] = value
        assert list(faults(other, scene, release)), path


def test_every_count_and_its_noise_follow_from_the_ledgers_rows(told):
    _, release = told
    said = recomputed.counts(release)
    rows = [row for row in release.released if "bins_kwh" in recomputed.series_of(release, row)]
    assert len(said) == sum(len(row["cells"]) for row in rows)
    for row in rows:
        terms, scale = recomputed.series_of(release, row), float(row["scale"])
        assert row["sensitivity"] == recomputed.sensitivity(terms, None)
        q = math.exp(-1 / scale)
        for cell, value in zip(row["cells"], row["values"], strict=True):
            assert said[row["day"], cell] == (value, pytest.approx(math.sqrt(2 * q) / (1 - q), rel=1e-9))


def test_it_is_of_the_published_form(told):
    _, release = told
    jsonschema.validate(release.claim, schema(), cls=jsonschema.Draft202012Validator)
    open_release(release.folder).verify()


def test_the_end_is_that_of_releasing_day_by_day(told):
    scene, release = told
    ending, promise = release.claim["ending"], release.promises[-1]
    if promise["promise"]["notion"] != "classical":
        assert ending["last_day"] == str(day(scene.last))
        assert ending["because"] == "period"
        return
    spent, on = recomputed.days_of(release), max(recomputed.days_of(release))
    a_day, total = (int(Decimal(promise["promise"][key]) * NANO) for key in ("epsilon_per_day", "epsilon_total"))
    left = total - sum(spent.values())
    while on < day(scene.last) and left >= a_day:
        on, left = on + timedelta(days=1), left - a_day
    assert ending["last_day"] == str(on)
    assert ending["because"] == ("period" if on == day(scene.last) else "promise")


def test_the_second_reading_uses_nothing_of_the_first():
    imported = set()
    for node in ast.walk(ast.parse(Path(recomputed.__file__).read_text())):
        imported |= {node.module} if isinstance(node, ast.ImportFrom) else set()
        imported |= {name.name for name in node.names} if isinstance(node, ast.Import) else set()
    assert not any(str(name).startswith(("agedp_data", "agedp", "agedp_flows")) for name in imported)
