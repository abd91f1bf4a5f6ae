"""The shipped examples are the specification: they load, and every kind of model that they speak of does."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

import jsonschema
import pytest

from agedp_data.config import load, parse
from agedp_data.config.model_section import DeclaredModel, EstimatedModel
from agedp_data.config.run_file_schema import run_file_schema
from agedp_data.errors import RunFileError
from agedp_data.notions.notion import Notion

EXAMPLES = Path(__file__).parents[3] / "docs" / "examples"
LONDON = (EXAMPLES / "london.toml").read_text("utf-8")


@pytest.mark.parametrize("name", ["london", "london-live", "ausgrid", "ausgrid-full"])
def test_every_example_loads_under_its_name(name):
    run = load(EXAMPLES / f"{name}.toml")
    assert run.name == f"{name}.toml"
    assert run.folder == EXAMPLES


SCHEMA = jsonschema.Draft202012Validator(run_file_schema())


def as_editors_see(text: str) -> object:
    """A run file as JSON; dates are text."""
    return json.loads(json.dumps(tomllib.loads(text), default=str))


@pytest.mark.parametrize("example", sorted(EXAMPLES.glob("*.toml")), ids=lambda path: path.stem)
def test_every_example_is_valid_by_the_schema_for_editors(example):
    jsonschema.Draft202012Validator.check_schema(run_file_schema())
    SCHEMA.validate(as_editors_see(example.read_text("utf-8")))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("version = 1", "version = 2"),
        ("min_households", "least_households"),
        ("clamp_kwh = 50", 'clamp_kwh = "50"'),
        ("clamp_kwh = 50", "clamp_kwh = 0"),
        ('notion = "classical"', 'notion = "classic"'),
        ("epsilon_total = 182.5", 'epsilon_total = "all"'),
        ("[output]", "[outputs]"),
    ],
)
def test_a_slip_is_marked_by_the_schema_for_editors(old, new):
    text = re.sub(r" +=", " =", LONDON)
    assert old in text
    assert not SCHEMA.is_valid(as_editors_see(text.replace(old, new, 1)))


def test_the_schema_for_editors_describes_every_key():
    for name, section in run_file_schema()["$defs"].items():
        for key, value in section["properties"].items():
            assert "description" in value or "const" in value or "$ref" in value, f"{name}.{key}"


def test_the_smallest_example_can_be_carried_out():
    run = load(EXAMPLES / "london.toml")
    promised: Notion = run.notion
    assert promised.loss([], "2013-01-01", None) == 500_000_000


def test_the_discounted_example_can_be_carried_out_and_begins_with_the_largest_loss():
    run = load(EXAMPLES / "ausgrid.toml")
    # r_m = (1 - s)/(1 - s^m) with s^2 = .99, s^m <= 1/(1 + s) first at m = 138; r_1 = r_m/s^(m-1)
    assert run.notion.loss([], "2012-07-01", None) == 19_949_750


@pytest.mark.parametrize("example", sorted(EXAMPLES.glob("*.toml")), ids=lambda path: path.stem)
def test_what_an_example_sends_a_reader_to_is_a_heading_of_the_documents(example):
    headings = [
        line.lstrip("# ") for page in EXAMPLES.parent.glob("*.md") for line in page.read_text("utf-8").splitlines()
    ]
    for place in re.findall(r'see "([^"]+)" in the documents', example.read_text("utf-8")):
        assert place in headings


MODEL = """
[model]
source = "estimated"
assume = "markov"
file = "model"
period = [2012-01-01, 2012-12-31]
step = "half-hour"
edges = "quantile"
chain = "homogeneous"
min_visits = 200
confidence = "plug-in"
publish = "envelope"
"""
STATES = MODEL.replace('"quantile"', "[0.1, 0.2, 0.3]\nstates = 4")


@pytest.mark.parametrize("url", ["s3://bucket/house", "s3://me:hunter2@bucket/house", "file:///srv/house"])
@pytest.mark.parametrize(("old", "key"), [('"out/confidential"', "[output] confidential"), ('"model"', "[model] file")])
def test_what_locks_keep_safe_has_a_path_and_no_url(old, key, url):
    text = (LONDON + MODEL).replace(old, f'"{url}"', 1)
    with pytest.raises(RunFileError) as caught:
        parse(text, base=Path("/house"), name="r.toml")
    safe = "locks, renames and owner-only permissions keep what lies there safe, which a URL has none of"
    helps = "name a folder on a file system that all machines share"
    assert str(caught.value) == caught.value.private == f"r.toml: {key}: must be a path: {safe}; {helps}"


@pytest.mark.parametrize("step", ["half-hour", "day"])
@pytest.mark.parametrize("chain", ["homogeneous", "cyclic"])
@pytest.mark.parametrize("confidence", ["plug-in", "sampling-bound"])
def test_every_kind_of_chain_can_be_estimated_but_days_have_no_hours(step, chain, confidence):
    model = MODEL.replace("half-hour", step).replace("homogeneous", chain).replace("plug-in", confidence)
    text = LONDON + model + ("level = 0.9\n" if confidence == "sampling-bound" else "")
    if (step, chain) == ("day", "cyclic"):
        with pytest.raises(RunFileError) as caught:
            parse(text, base=Path("/house"), name="r.toml")
        assert str(caught.value) == (
            'r.toml: [model] chain = "cyclic": has a kernel for each half-hour of the day; it needs step = "half-hour"'
        )
    else:
        model = parse(text, base=Path("/house"), name="r.toml").model
        assert isinstance(model, EstimatedModel)
        assert (model.step, model.chain, model.confidence) == (step, chain, confidence)


@pytest.mark.parametrize("statistic", ["mean", "distribution"])
def test_states_of_public_edges_can_be_counted(statistic):
    bins = "" if statistic == "mean" else "\nbins_kwh = [0, 5, 16.8]"
    series = f'statistic = "{statistic}"\nvalues = "states"{bins}'
    text = LONDON.replace('statistic = "mean"', series).replace("clamp_kwh = 50", "clamp_kwh = 16.8") + STATES
    run = parse(text, base=Path("/house"), name="r.toml")
    # [0, .1), [.1, .2), [.2, .3) and as much again above: the middles, and 48 of the last one
    assert run.counted_states is not None
    assert run.counted_states.representative_values_wh == (50, 150, 250, 350)
    assert run.counted_states.max_day_wh == 16_800


def test_a_declared_kernel_of_days_has_steps_of_a_day():
    model = '[model]\nsource = "declared"\nbasis = "open"\nassume = "markov"\nkernel = "k.csv"\nstep = "day"\n'
    found = parse(LONDON + model, base=Path("/house"), name="r.toml").model
    assert isinstance(found, DeclaredModel)
    assert (found.kernel, found.step) == ("/house/k.csv", "day")
