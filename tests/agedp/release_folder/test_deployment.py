"""deployment.json: an entry that the registry of deployments accepts, with the statement's figures, and verified.

The oracle of the form is the registry's own schema (OpenDP, deployments-registry-data, schemas/deployments-schema.yaml
at commit 057e5d81, read on 2026-11-29): the keys and words below are copied from it by hand.
"""

from __future__ import annotations

import json
import re
import shutil
from datetime import date, timedelta
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from agedp.release_folder.folder_files import DEPLOYMENT, PACKAGE, STATEMENT, SUMS
from agedp.release_verification import open_release
from agedp_data.errors import InputError
from agedp_data.statement.deployment import deployment
from agedp_data.statement.document import read_statement
from tests.agedp.release_folder.resealed import reseal

FIRST = date(2013, 1, 1)
SHIPPED = json.loads(files("agedp_data").joinpath("schemas", "deployment-1.json").read_text())
REGISTRY: dict[str, set[str]] = {
    "basic": {
        *("name", "data_curators", "description", "intended_use", "data_product_type", "data_product_region"),
        *("data_product_sector", "publication_date"),
    },
    "dp_variant": {"variant_name", "data_domain", "unprotected_quantities"},
    "privacy_loss": {
        *("privacy_unit", "privacy_unit_details", "number_of_privacy_units", "privacy_parameters"),
        "privacy_parameters_details",
    },
    "deployment_model": {
        *("model_name", "model_name_details", "trust_assumptions", "actors", "release_type", "release_type_details"),
        *("data_source_type", "data_source_type_details", "access_type", "access_type_details"),
    },
    "implementation": {
        *("preprocessing_and_hyperparameter_tuning", "mechanisms", "composition", "post_processing", "justification"),
        *("utility", "additional_information"),
    },
    "administrative": {"evidence_sources", "status", "registry_authors", "tier"},
}
"""The keys that the registry permits; none other is."""
WORDS = {
    ("basic", "data_product_type"): {"Summary statistics", "Machine learning model", "Dataset", "Synthetic data"},
    ("basic", "data_product_sector"): {"Technology", "Healthcare", "Education", "Government", "Energy", "Finance"},
    ("dp_variant", "variant_name"): {"Pure DP", "Approximate DP", "Zero-concentrated DP", "Renyi DP", "Custom"},
    ("deployment_model", "model_name"): {"Local", "Central", "Shuffle", "Federated", "Varies"},
    ("deployment_model", "release_type"): {"One release", "Many releases"},
    ("deployment_model", "data_source_type"): {"Static", "Dynamic"},
    ("deployment_model", "access_type"): {"Interactive", "Non-interactive"},
    ("administrative", "status"): {"Draft"},
    ("administrative", "tier"): {3},
}


@pytest.fixture(scope="module")
def made(houses, tmp_path_factory) -> Any:
    house = houses(tmp_path_factory.mktemp("house"))
    house.fill([FIRST + timedelta(days=i) for i in range(5)])
    promise = 'notion = "classical"\nepsilon_per_day = 0.5\nmax_day_epsilon = 0.6\nepsilon_total = 30\n'
    house.write(FIRST, FIRST + timedelta(days=4), promise=promise)
    texts = '[output]\ndeployment = true\ncontact = "Grid Ltd, data@grid.example"\n'
    house.edit(("[output]\n", texts))
    house.run(today=date(2013, 1, 4))
    return house


@pytest.fixture
def house(made, houses, tmp_path) -> Any:
    return houses(Path(shutil.copytree(made.folder, tmp_path / "house")))


def entry_of(house: Any) -> dict[str, Any]:
    entry: dict[str, Any] = json.loads((house.folder / "release" / DEPLOYMENT).read_text())
    return entry


def leaves(value: Any) -> list[Any]:
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [leaf for part in parts for leaf in leaves(part)] if isinstance(value, dict | list) else [value]


def test_the_registry_permits_every_key_and_word(made):
    entry = entry_of(made)
    jsonschema.Draft202012Validator.check_schema(SHIPPED)
    jsonschema.validate(entry, SHIPPED)
    assert entry.keys() == {"url_slug", "deployment"}
    assert entry["deployment"].keys() == REGISTRY.keys()
    for table, keys in REGISTRY.items():
        assert entry["deployment"][table].keys() <= keys
    for (table, key), words in WORDS.items():
        assert entry["deployment"][table][key] in words
    assert entry["deployment"]["privacy_loss"]["privacy_parameters"].keys() <= {"epsilon", "delta", "rho"}
    assert not re.search("[{}]", json.dumps(leaves(entry)))  # nothing is left to be filled in by the tool


def test_every_figure_is_one_of_the_statement(made):
    entry, statement = entry_of(made)["deployment"], json.loads((made.folder / "release" / STATEMENT).read_text())
    loss = entry["privacy_loss"]
    assert loss["privacy_parameters"] == {"epsilon": 0.5}  # epsilon_per_day, below the cap of 0.6
    lines = loss["privacy_parameters_details"].splitlines()[1:]
    assert len(lines) == len(statement["figures"])
    for line, bound in zip(lines, statement["figures"], strict=True):
        assert re.match(rf"- {re.escape(bound['name'])}: epsilon {bound['epsilon']}[ ,]", line)
        assert bound["about"] in line
    assert "- total: epsilon 1.5 (limit 30), about" in loss["privacy_parameters_details"]  # three days of 0.5
    assert "Sum so far: 1.5; what epsilon_total leaves: 28.5." in entry["deployment_model"]["release_type_details"]
    assert entry["basic"]["publication_date"] == "2013-01-04"
    assert (entry["basic"]["name"], entry["deployment_model"]["release_type"]) == ("Made up", "One release")
    assert statement["ledger"]["head"] in entry["implementation"]["additional_information"]
    assert "counts within these clamps: daily_mean from 0 to 50 kWh." in entry["dp_variant"]["data_domain"]
    for note in statement["notes"]:
        assert note in entry["implementation"]["additional_information"]


def test_it_is_listed_and_verified_byte_by_byte(house):
    folder = house.folder / "release"
    assert f"  {DEPLOYMENT}\n" in (folder / SUMS).read_text()
    listed = {resource["name"] for resource in json.loads((folder / PACKAGE).read_text())["resources"]}
    assert DEPLOYMENT in listed
    assert DEPLOYMENT in house.release.verify().compared
    text = (folder / DEPLOYMENT).read_text()
    (folder / DEPLOYMENT).write_text(text.replace('"epsilon": 0.5', '"epsilon": 0.1'))
    with pytest.raises(InputError, match=r"deployment\.json differs from the published file"):
        house.release.verify()
    reseal(folder)
    with pytest.raises(InputError, match=r"deployment\.json differs from what agedp .* makes of statement\.json"):
        open_release(folder).verify()


def test_a_model_published_without_noise_and_a_larger_day_are_named(made):
    """An envelope from readings is no protected quantity, and a calibration may have spent more on a day."""
    statement = read_statement((made.folder / "release" / STATEMENT).read_bytes())
    day = statement.bounds[0]
    assert day.name == "day"
    of_calibration = day.model_copy(update={"name": "calibration day", "epsilon": "0.7", "limit": ""})
    bounds = [bound.model_copy(update={"conditional_days": "2012"}) for bound in (*statement.bounds, of_calibration)]
    entry = deployment(statement.model_copy(update={"bounds": bounds}))["deployment"]
    assert entry["privacy_loss"]["privacy_parameters"] == {"epsilon": 0.7}
    assert "A model that was estimated from the days 2012." in entry["dp_variant"]["unprotected_quantities"]
    assert "not about these days" in entry["privacy_loss"]["privacy_parameters_details"]
