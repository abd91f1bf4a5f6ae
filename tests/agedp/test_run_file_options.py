"""Every key that decides something is an option, and what options write is what the loader of run files takes."""

from __future__ import annotations

import re
import tomllib
from contextlib import suppress
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest

from agedp.setup.run_file_draft import DECIDE, DraftPaths, FileFacts, KeyLine, RunFileDraft, draft
from agedp.setup.run_file_options import OPTIONS, SERIES, notion_options, toml_of
from agedp_data.config import load
from agedp_data.config.input import INPUTS, LongColumns
from agedp_data.config.loading import validate_run_file
from agedp_data.config.model_section import DeclaredModel, EstimatedModel
from agedp_data.config.output import OutputSection, PopulationSection
from agedp_data.config.schedule import Archive, Live, Rehearsal
from agedp_data.datasets.registry import LAYOUTS
from agedp_data.errors import RunFileError
from agedp_data.notions import NOTIONS
from agedp_data.series.coverage import Coverage
from agedp_data.series.distribution import Distribution
from agedp_data.series.mean import Mean
from agedp_data.series.profile import Profile

FACTS = FileFacts("london", ("incoming/*.csv",), date(2013, 1, 1), date(2013, 1, 10), 40)
COLUMNS = {
    "household": "meter", "time": "at", "time_format": "iso", "stamp": "end", "zone": "UTC", "day_zone": "UTC",
    "energy": "use", "unit": "kWh",
}  # fmt: skip
LONG = replace(FACTS, dataset="long", columns=tuple(KeyLine(key, f'"{value}"') for key, value in COLUMNS.items()))
TABLES = {
    "input": INPUTS, "input.columns": (LongColumns,), "output": (OutputSection,), "population": (PopulationSection,),
    "schedule": (Archive, Rehearsal, Live), SERIES: (Mean, Distribution, Profile, Coverage), "promise": NOTIONS,
    "model": (DeclaredModel, EstimatedModel),
}  # fmt: skip
WITHOUT_OPTION = {
    ("input", "files"): "the arguments of the command",
    ("input", "columns"): "a table of its own",
    **{("output", key): "a place that the command decides" for key in ("release", "confidential", "ledger")},
    ("population", "roster"): "written beside the run file",
    **{("schedule", key): "of the machine, for `agedp serve`" for key in ("cron", "zone")},
    ("model", "source"): "follows from --curve and --kernel",
    ("model", "file"): "a place that the command decides",
    **{("model", key): "withdrawn with 0.3" for key in ("memory", "quantiles")},
}
COMMON = {"min_households": "20", "clamp_kwh": "30", "max_day_epsilon": "0.5", "epsilon_total": "unlimited"}
ESTIMATED = {
    "assume": "markov", "period": "2013-01-01,2013-01-05", "step": "day", "states": "4", "edges": "1,2,3",
    "chain": "homogeneous", "min_visits": "5", "confidence": "sampling-bound", "level": "0.95", "model_ages": "1,2,7",
    "publish_envelope": True,
}  # fmt: skip
PRIVATE = {
    **{option: text for option, text in ESTIMATED.items() if option != "publish_envelope"},
    "selection_epsilon": "1", "coverage": "0.95", "failure_probability": "0.000001", "family": "/srv/family.csv",
}  # fmt: skip
CLASSICAL = {"notion": "classical", "epsilon_per_day": "0.5"}
NOTIONS_BY_OPTIONS = {
    "classical": {"epsilon_per_day": "0.5"},
    "w-event": {"window_days": "7", "epsilon_per_window": "1", "spend": "even"},
    "age-dependent": {
        "age_days": "2", "risk": "0.1", "method": "tight", "secret": "day", "accept_unverified_model": "accepted",
        **ESTIMATED,
    },
    "temporal": {
        "alpha": "1", "horizon_days": "unlimited", "budget": "supremum", "accept_unverified_model": "accepted",
        **ESTIMATED,
    },
    "discounted": {
        "discount": "exponential", "rate": "0.9", "epsilon": "1", "schedule": "optimal", "horizon_days": "10",
        "clock": "data-day",
    },
    "neighbourhood": {
        "delta_kwh": "0.5", "window_days": "7", "epsilon_per_window": "1", "spend": "fraction", "fraction": "0.2",
    },
}  # fmt: skip


def drafted(facts: FileFacts = FACTS, **options: str | bool) -> RunFileDraft:
    return draft(facts, toml_of(options), paths=DraftPaths(), base=Path("/srv"))


def test_every_key_of_the_run_file_has_an_option_or_a_reason():
    assert list(NOTIONS_BY_OPTIONS) == [notion.name for notion in NOTIONS[: len(NOTIONS_BY_OPTIONS)]]
    keys = {(table, key) for table, blocks in TABLES.items() for block in blocks for key in block.model_fields}
    every = (*OPTIONS, *notion_options())
    options = [option.key for option in every]
    assert len(set(options)) == len(options) == len({option.flag for option in every})
    assert set(options) - {("protect", "span")} == keys - set(WITHOUT_OPTION)
    assert set(WITHOUT_OPTION) <= keys


CASES = {
    **{notion: {"notion": notion, **options} for notion, options in NOTIONS_BY_OPTIONS.items()},
    "a declared model": {
        "notion": "age-dependent", "age_days": "2", "epsilon_per_day": "0.5", "method": "total_variation",
        "secret": "day", "curve": "/srv/curve.csv", "basis": "a study", "assume": "curve",
    },
    "a private model": {
        "notion": "temporal", "alpha": "1", "horizon_days": "9", "budget": "best",
        "accept_unverified_model": "accepted", **PRIVATE,
    },
    "other tables": {
        **CLASSICAL, "title": 'A "title"', "source": "s", "licence": "CC0-1.0", "contact": "c", "noise_interval": "0.9",
        "population": "people", "mode": "rehearsal", "rehearsal_on": "readings", "age_days": "3",
        "first_day": "2013-01-02", "last_day": "2013-01-04", "wait_for": "/srv/{day}.done",
        "give_up_days": "5", "max_missing": "0", "missing_kwh": "1.5", "values": "readings",
        "corrections": "later-file", "file_order": "modified",
        "max_half_hour_kwh": "20", "witness": "/mnt/other/w", "accept": "useless,total",
    },
    "a distribution": {
        **CLASSICAL, "statistic": "distribution", "bins_kwh": "0,5,30", "form": "cumulative", "by": "tariff",
    },
    "a profile": {**CLASSICAL, "statistic": "profile", "half_hour_clamp_kwh": "4", "by": "tariff"},
    "coverage": {**CLASSICAL, "statistic": "coverage", "clamp_kwh": "", "max_missing": "0"},
    "long": {
        **CLASSICAL, "household_column": "m", "time_column": "t", "energy_column": "e", "stamp": "start", "unit": "Wh",
        "time_format": "%d/%m/%Y %H:%M", "zone": "Europe/Berlin", "day_zone": "Europe/Berlin", "missing": "NA,-",
    },
    "ausgrid": {**CLASSICAL, "categories": "GC,CL", "missing_controlled_load": "missing"},
    "nem12": {**CLASSICAL, "suffixes": "E1,E2"},
}  # fmt: skip
KEYS = {
    "household_column": "household", "time_column": "time", "energy_column": "energy", "population": "name",
    "model_ages": "ages_days", "noise_interval": "interval", "publish_envelope": "publish",
}  # fmt: skip


def value_of(text: str | bool) -> object:
    """Return what a text stands for: a list, a number, a day or itself; of a flag its one value."""
    if text is True:
        return "envelope"
    if text == "accepted":  # of a switch, which is true however it is given
        return True
    if "," in text:
        return [value_of(part) for part in text.split(",")]
    for kind in (int, float, date.fromisoformat):
        with suppress(ValueError):
            return kind(text)
    return text


@pytest.mark.parametrize("case", CASES)
def test_options_become_keys_that_the_loader_takes(case):
    options = {option: text for option, text in {**COMMON, **CASES[case]}.items() if text}
    facts = LONG if case == "long" else replace(FACTS, dataset=case) if case in LAYOUTS else FACTS
    found = drafted(facts, **options)
    assert found.undecided == ()
    assert validate_run_file(found.text(), base=Path("/srv"))[1] == []
    tables = tomllib.loads(found.text())
    inner = [table for name in ("input", "series") for table in tables[name].values() if isinstance(table, dict)]
    pairs = [pair for table in (*tables.values(), *inner) if isinstance(table, dict) for pair in table.items()]
    assert [option for option, text in options.items() if (KEYS.get(option, option), value_of(text)) not in pairs] == []


def test_a_delta_is_written_and_its_total_proposed():
    year = {"first_day": "2013-01-01", "last_day": "2013-12-31", "delta": "1e-6"}
    text = drafted(**year, epsilon_per_day="0.1").text()
    assert 'delta           = "1e-6"' in text
    assert "# decide: epsilon_total = 10.75 # composed loss of all days, at delta" in " ".join(text.split())
    filled = drafted(**year, epsilon_total="10")  # docs/notions.md: a year of (10, 1e-6) permits 0.0939 a day
    assert re.findall(r"# decide: (\w+_epsilon|epsilon_\w+) *= ([\d.]+)", filled.text()) == [
        ("epsilon_per_day", "0.0939"), ("max_day_epsilon", "0.0939"),
    ]  # fmt: skip
    assert "epsilon_per_day = 0.5 " in drafted(**{**year, "last_day": None}, mode="live", epsilon_total="10").text()
    weekly = drafted(**year, notion="w-event", window_days="7").text()
    assert '# decide: epsilon_total = "unlimited" # no bound on all days' in " ".join(weekly.split())
    without_model = drafted(**COMMON, notion="temporal", alpha="10", horizon_days="365", budget="even", **year)
    assert "model" not in without_model.tables
    assert without_model.undecided == ()
    assert "model" in drafted(notion="temporal", budget="exact", **year).tables


@pytest.mark.parametrize("notion", NOTIONS_BY_OPTIONS)
@pytest.mark.parametrize("mode", ["archive", "live"])
def test_proposals_go_together_whatever_the_notion(notion, mode, tmp_path):
    text = drafted(notion=notion, mode=mode).text()
    assert text.count(DECIDE) >= 5
    problems = validate_run_file(text.replace(DECIDE, ""), base=tmp_path)[1]
    # a model of a live series is estimated from days before it begins, and only the readings show which
    assert problems == [] or (mode == "live" and "period" in problems[0].key), problems
    (tmp_path / "run.toml").write_text(text)
    with pytest.raises(RunFileError, match="is missing"):
        load(tmp_path / "run.toml")


@pytest.mark.parametrize(
    ("options", "line"),
    [
        ({"notion": "clasical"}, "--notion clasical: is not known; did you mean 'classical'?"),
        ({"risk": "1"}, "--risk is not used by --notion classical; it goes with --notion age-dependent. Remove --risk"),
        ({"wait_for": "/{day}"}, "--wait-for is not used by --mode archive; it goes with --mode live or rehearsal"),
        ({"stamp": "end"}, "--stamp is not used by --dataset london; it goes with --dataset long"),
        ({"curve": "c.csv", "states": "12"}, "--states is not used by [model] source declared"),
        ({"first_day": "2013-02-31"}, "--first-day 2013-02-31: must be a date, such as 2013-01-31"),
        ({"notion": "age-dependent", "risk": "1", "epsilon_per_day": "1"}, "--epsilon-per-day 1: stands beside risk"),
        ({"epsilon_per_day": "0.5", "max_day_epsilon": "0.1"}, "is more than max_day_epsilon permits"),
        ({"notion": "temporal", "level": "0.9", "confidence": "plug-in"}, "--level 0.9: is not used by confidence"),
        (
            {"notion": "temporal", "publish_envelope": True, "coverage": "0.9"},
            '--coverage 0.9: is not used by publish = "envelope"',
        ),
        ({**COMMON, "statistic": "distribution", "bins_kwh": "0,1,20"}, "--bins-kwh [0, 1, 20]: must end with clamp"),
        ({**COMMON, "epsilon_per_day": "0.5", "age_days": "2"}, '--age-days 2: is not used by "classical" in an'),
    ],
)  # fmt: skip
def test_an_option_that_a_run_file_refuses_is_named(options, line):
    with pytest.raises(RunFileError) as caught:
        drafted(**options)
    assert line in str(caught.value)
    assert "\n" not in str(caught.value)
