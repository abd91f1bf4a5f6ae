"""A forger with agedp at hand lowers a bound, edits a number or a sentence, and writes every file that repeats it anew.

Nothing of such a folder contradicts itself. It contradicts its ledger rows, and `verify` names the figure or the file.
"""

from __future__ import annotations

import json
import re
import shutil
from datetime import date, timedelta
from decimal import Decimal
from functools import partial
from importlib.metadata import version

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from agedp.release_folder.result_tables import parquet_bytes
from agedp.release_verification import open_release
from agedp_data.epsilon import round_nano
from agedp_data.errors import InputError
from agedp_data.statement.note_texts import odds_factor
from tests.agedp.release_folder.forger import forge, repack
from tests.agedp.release_folder.resealed import reseal
from tests.command import agedp
from tests.compatibility.fixtures import unpack

FIRST, DAYS = date(2013, 1, 1), 9
CAPS = "max_day_epsilon = 0.5\nepsilon_total = 30\n{}"
KERNEL = '[model]\nsource = "declared"\nbasis = "made up"\nassume = "markov"\nkernel = "slow.csv"\nstep = "day"\n'
COMPARE = "[compare]\nwindow_days = 3\nexponential = 0.75\nhyperbolic = 0.5\ndelta_kwh = [0.5]\n"
PROMISES = {
    "classical": "epsilon_per_day = 0.3\n",
    "w-event": 'window_days = 4\nepsilon_per_window = 1\nspend = "even"\n',
    "discounted": 'discount = "exponential"\nrate = 0.9\nepsilon = 2\nschedule = "renewal"\nclock = "data-day"\n',
    "age-dependent": 'epsilon_per_day = 0.3\nmethod = "tight"\nsecret = "day"\n',
    "neighbourhood": 'delta_kwh = 0.5\nwindow_days = 4\nepsilon_per_window = 0.5\nspend = "per-request"\n',
    "temporal": 'alpha = 3\nhorizon_days = 12\nbudget = "even"\n',
}
OWN = {
    "classical": "total",
    "w-event": "window of 4 days",
    "discounted": "discounted sum (exponential 0.9)",
    "age-dependent": "risk",
    "neighbourhood": "change of 0.5 kWh, window of 4 days",
    "temporal": "temporal leakage",
}
"""The bound that each notion is about."""


@pytest.fixture(scope="module")
def inputs(houses, tmp_path_factory):
    house = houses(tmp_path_factory.mktemp("house"))
    house.fill([FIRST + timedelta(days=number) for number in range(DAYS)])
    (house.folder / "slow.csv").write_text("0.9,0.1\n0.2,0.8\n")
    return house


@pytest.fixture(scope="module")
def published(inputs, houses, tmp_path_factory):
    """Return the folder of a notion, nine days of three homes, without a delta or with one; each is made once."""
    made = {}

    def folder_of(notion, delta):
        if (notion, delta) not in made:
            house = houses(shutil.copytree(inputs.folder, tmp_path_factory.mktemp("scene") / "house"))
            at_delta = 'delta = "0.2"\n' if delta else ""
            promise = f'notion = "{notion}"\nage_days = 1\n{PROMISES[notion]}{CAPS.format(at_delta)}'
            rest = f"{KERNEL}{COMPARE}" if notion in ("age-dependent", "temporal", "classical") else COMPARE
            last = FIRST + timedelta(days=DAYS - 1)
            house.write(FIRST, last, mode="rehearsal", clamp="3", promise=promise, rest=rest)
            if notion == "classical":  # the tables that follow from its days
                text = house.run_file.read_text()
                asked = 'averages_by = ["week", "month", "year"]\n[population]'
                house.run_file.write_text(text.replace("[population]", asked))
            house.run(as_of=last + timedelta(days=2))
            made[notion, delta] = house.folder / "release"
        return made[notion, delta]

    return folder_of


@pytest.fixture(scope="module")
def classical(published):
    return published("classical", delta=False)


@pytest.fixture
def copy_of(tmp_path):
    def copy(folder):
        shutil.rmtree(tmp_path / "forged", ignore_errors=True)
        return shutil.copytree(folder, tmp_path / "forged")

    return copy


def refusal(folder):
    with pytest.raises(InputError) as refused:
        open_release(folder).verify()
    assert str(refused.value).isprintable()
    return str(refused.value)


def lower(content, name):
    """Lower a bound in a statement, and what repeats it, as if less had been spent."""
    [figure] = [figure for figure in content["figures"] if figure["name"] == name]
    lowered = Decimal(figure["epsilon"]) * Decimal("0.9")
    figure["epsilon"] = f"{lowered:.9f}".rstrip("0").rstrip(".")
    if figure["factor"]:
        figure["factor"] = odds_factor(round_nano(Decimal(figure["epsilon"])))


def names_of(folder):
    """Return the bounds that can be lowered: at a delta of 0.2 a small change may have none above 0."""
    figures = json.loads((folder / "statement.json").read_text())["figures"]
    return [figure["name"] for figure in figures if figure["epsilon"] != "0"]


long = pytest.mark.long
SCENES = [
    pytest.param(notion, delta, marks=() if (notion, delta) in {("classical", False), ("temporal", True)} else long)
    for notion in PROMISES
    for delta in (False, True)
]


@pytest.mark.parametrize(("notion", "delta"), SCENES)
def test_the_bound_of_each_notion_is_computed_again(published, copy_of, notion, delta):
    """The bound of the notion itself; the sweep takes every bound."""
    folder = published(notion, delta)
    own = OWN[notion] if not delta else next(name for name in names_of(folder) if "(delta " in name)
    forged = copy_of(folder)
    forge(forged, partial(lower, name=own))
    assert refusal(forged).startswith(f"statement.json: the bound {own!r}: ")


@long
@pytest.mark.parametrize(("notion", "delta"), [scene.values for scene in SCENES])
def test_every_bound_of_every_notion_is_computed_again(published, copy_of, notion, delta):
    folder = published(notion, delta)
    names = names_of(folder)
    assert {"day", "total", OWN[notion]} <= {*names} if not delta else any("(delta " in name for name in names)
    for name in names:
        forged = copy_of(folder)
        forge(forged, partial(lower, name=name))
        assert refusal(forged).startswith(f"statement.json: the bound {name!r}: "), name
    for name in ("day", "total", OWN[notion]):  # others may be those of [compare], a free key that no row contains
        forged = copy_of(folder)
        forge(forged, partial(left_out, name=name))
        assert repr(name) in refusal(forged), name


def left_out(content, name):
    content["figures"] = [figure for figure in content["figures"] if figure["name"] != name]


def limit(content):
    content["figures"][0]["limit"] = "unlimited"


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (lambda content: content["warnings"].pop(), "warnings"),
        (lambda content: content["notes"].clear(), "notes"),
        pytest.param(lambda content: content.update(protects="Nobody can learn anything."), "protects", marks=long),
        pytest.param(lambda content: content["ending"].update(left="29"), "ending.left", marks=long),
        (lambda content: content["ending"].update(last_day="2013-01-05"), "ending.last_day"),
        (lambda content: content["second_population"]["adds"].update(day="0.1"), "second_population.adds.day"),
        pytest.param(lambda content: content["not_protected"].reverse(), "not_protected.0", marks=long),
        pytest.param(
            lambda content: content["versions"][0].update(registered="2012-01-01"), "versions.0.registered", marks=long
        ),
        pytest.param(
            lambda content: content["figures"][1].update(about="a thousand households"), "figures.1.about", marks=long
        ),
        (limit, "figures.0.limit"),
        pytest.param(lambda content: content["ledger"].update(head="0" * 64), "ledger.head", marks=long),
    ],
)
def test_each_key_of_a_statement_follows_from_the_rows(classical, copy_of, change, named):
    forged = copy_of(classical)
    forge(forged, change)
    assert refusal(forged).startswith(f"statement.json: {named}: ")


@pytest.mark.parametrize("name", ["STATEMENT.md", "report.html", pytest.param("datapackage.json", marks=long)])
def test_no_text_of_another_ledger_is_taken_and_no_sentence_edited(published, classical, copy_of, name):
    other = (published("temporal", delta=True) / name).read_text()
    text = (classical / name).read_text()
    edits = {
        "STATEMENT.md": ("at most", "never"),
        "report.html": ("privacy loss", "loss"),
        "datapackage.json": ("not protected", "protected"),
    }
    old, new = edits[name]
    assert old in text
    for content in (other, text.replace(old, new, 1), text.replace("Made up", "CC0-1.0", 1)):
        forged = copy_of(classical)
        (forged / name).write_text(content)
        repack(forged) if name != "datapackage.json" else reseal(forged, repack=False)
        assert name in refusal(forged)


def test_the_licence_is_named_as_the_words_of_the_data_holder(classical, copy_of):
    """A licence is in no row: a folder that repeats another one everywhere cannot be told from one that had it."""
    assert open_release(classical).verify().not_compared[1] == "title, source, licence and contact"
    forged = copy_of(classical)
    forge(forged, lambda content: content.update(licence="CC0-1.0"))
    assert refusal(forged).startswith("report.html differs from what agedp ")


@pytest.mark.parametrize(
    "name",
    [
        "averages_by_month.parquet",
        *(pytest.param(f"averages_by_{period}.parquet", marks=long) for period in ("week", "year")),
    ],
)
def test_no_number_of_a_derived_table_is_edited(classical, copy_of, name):
    forged = copy_of(classical)
    table = pq.read_table(forged / name)
    rows = table.to_pylist()
    for column in ("mean_kwh", "noise_sd_kwh"):
        changed = [{**rows[0], column: rows[0][column] + 1}, *rows[1:]]
        (forged / name).write_bytes(parquet_bytes(pa.Table.from_pylist(changed, schema=table.schema)))
        repack(forged)
        message = refusal(forged)
        assert message.startswith(f"{name}: ")
        assert f"column {column}: " in message


def test_texts_of_another_version_are_named_and_its_figures_compared(tmp_path, copy_of):
    population = unpack("temporal-live", tmp_path / "population")
    found = open_release(population.release).verify()
    assert found.compared == ("checksums", "tables", "statement.json")
    writer = "written by agedp 0.1.0 or beside other software"
    assert set(found.not_compared) >= {f"STATEMENT.md: {writer}", f"report.html: {writer}"}
    [keys] = [text for text in found.not_compared if text.startswith("sentences, ")]
    assert keys.endswith(f" of statement.json: {writer}")
    assert {"model", "notes", "software"} <= {*re.split("[ ,]+", keys)}
    edited = copy_of(population.release)
    (edited / "report.html").write_text("<p>Nothing is revealed.</p>")
    reseal(edited)
    first = agedp("verify", str(edited)).out.splitlines()[0]
    assert "verified except the sentences of statement.json, STATEMENT.md, report.html, " in first
    assert "which may have been edited" in first
    name = next(name for name in names_of(population.release) if name.startswith("temporal leakage"))
    forged = copy_of(population.release)
    forge(forged, partial(lower, name=name))
    assert refusal(forged).startswith(f"statement.json: the bound {name!r}: ")


@pytest.mark.parametrize(
    ("writer", "advice"),
    [
        ("0.2", "Ask the publisher for a signature (--key), or verify it with agedp 0.2, which it names as its writer"),
        ("99.0", f"Update agedp: 99.0 is newer than {version('agedp')}. Or ask the publisher for a signature (--key)"),
    ],
    ids=["older", "newer"],
)
def test_no_text_that_was_not_compared_is_recommended(classical, copy_of, writer, advice):
    forged = copy_of(classical)
    forge(forged, lambda statement: statement["software"].update(agedp=writer))
    with (forged / "STATEMENT.md").open("a") as text:
        text.write("Nothing is revealed.\n")
    reseal(forged)
    answer = agedp("verify", str(forged))
    assert answer.err == ""
    *_, last = answer.out.splitlines()
    assert last == f"The numbers of the tables are verified, the text of {forged}/STATEMENT.md is not. {advice}."
    assert agedp("verify", str(classical)).out.splitlines()[-1].startswith(f"Read {classical}/STATEMENT.md: ")


def test_the_command_says_what_it_compared(classical):
    lines = agedp("verify", str(classical)).out.splitlines()
    texts = "checksums, tables, statement.json, STATEMENT.md, report.html, datapackage.json"
    assert lines[:2] == [f"{classical}: verified. What was compared follows from its ledger rows", f"compared: {texts}"]
    assert lines[2].startswith("not compared: the ledger rows with the data holder's ledger; title, source, licence ")
    answer = json.loads(agedp("verify", str(classical), "--json").out)
    assert (answer["compared"], len(answer["not_compared"])) == (texts.split(", "), 5)
    ledger = f"sqlite:///{classical.parent / 'ledger.sqlite'}"
    answer = json.loads(agedp("verify", str(classical), "--ledger", ledger, "--json").out)
    assert (answer["chain"], answer["not_compared"]) == (True, [])
