"""Every key that decides something is an option, and what options write is what the loader of run files takes."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from agedp.setup.init_run_file import missing_options
from agedp.setup.run_file_draft import DECIDE, DraftPaths, RunFileDraft, draft
from agedp.setup.run_file_options import OPTIONS, SERIES, notion_options, toml_of
from agedp.setup.run_file_proposals import FileFacts, KeyLine
from agedp_data.config import RunFile, load
from agedp_data.config.input import INPUTS, LongColumns
from agedp_data.config.loading import validate_run_file
from agedp_data.config.model_section import DeclaredModel, EstimatedModel
from agedp_data.config.output import OutputSection, PopulationSection
from agedp_data.config.schedule import Archive, Live, Rehearsal
from agedp_data.errors import RunFileError
from agedp_data.notions import NOTIONS
from agedp_data.series.series import Distribution, Mean

FACTS = FileFacts("london", ("incoming/*.csv",), date(2013, 1, 1), date(2013, 1, 10), 40)
COLUMNS = tuple(
    KeyLine(key, f'"{value}"')
    for key, value in {
        "household": "meter", "time": "at", "time_format": "iso", "stamp": "end", "zone": "UTC", "day_zone": "UTC",
        "energy": "use", "unit": "kWh",
    }.items()
)  # fmt: skip
LONG = FileFacts("long", ("incoming/*.csv",), date(2013, 1, 1), date(2013, 1, 10), 40, COLUMNS)
TABLES = {
    "input": INPUTS, "input.columns": (LongColumns,), "output": (OutputSection,), "population": (PopulationSection,),
    "schedule": (Archive, Rehearsal, Live), SERIES: (Mean, Distribution), "promise": NOTIONS,
    "model": (DeclaredModel, EstimatedModel),
}  # fmt: skip
WITHOUT_OPTION = {
    ("input", "files"): "the arguments of the command",
    ("input", "columns"): "a table of its own",
    **{("output", key): "a place that the command decides" for key in ("release", "confidential", "ledger")},
    ("population", "roster"): "written beside the run file",
    **{("schedule", key): "of the machine, for `agedp serve`" for key in ("cron", "zone")},
    (SERIES, "share"): "there is one series",
    ("model", "source"): "follows from --curve and --kernel",
    ("model", "file"): "a place that the command decides",
}
COMMON = {"min_households": "20", "clamp_kwh": "30", "max_day_epsilon": "0.5", "epsilon_total": "unlimited"}
ESTIMATED = {
    "assume": "markov", "period": "2013-01-01,2013-01-05", "step": "day", "states": "4", "edges": "1,2,3",
    "chain": "homogeneous", "min_visits": "5", "confidence": "sampling-bound", "level": "0.95", "model_ages": "1,2,7",
    "memory": "one", "publish_envelope": True,
}  # fmt: skip
DECLARED = {"curve": "/srv/curve.csv", "basis": "a study", "assume": "curve"}
NOTIONS_BY_OPTIONS = {
    "classical": {"epsilon_per_day": "0.5"},
    "w-event": {"window_days": "7", "epsilon_per_window": "1", "spend": "even"},
    "age-dependent": {"age_days": "2", "risk": "0.1", "method": "tight", "secret": "day", **ESTIMATED},
    "temporal": {"alpha": "1", "horizon_days": "unlimited", "budget": "supremum", **ESTIMATED},
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


def loaded(facts: FileFacts = FACTS, **options: str | bool) -> RunFile:
    found = drafted(facts, **options)
    assert found.undecided == ()
    run, problems = validate_run_file(found.text(), base=Path("/srv"))
    assert run is not None, problems
    return run


def test_every_key_of_the_run_file_has_an_option_or_a_reason():
    keys = {(table, key) for table, blocks in TABLES.items() for block in blocks for key in block.model_fields}
    every = (*OPTIONS, *notion_options())
    options = [option.key for option in every]
    assert len(set(options)) == len(options) == len({option.flag for option in every})
    assert set(options) == keys - set(WITHOUT_OPTION)
    assert set(WITHOUT_OPTION) <= keys


@pytest.mark.parametrize("notion", NOTIONS_BY_OPTIONS)
def test_options_alone_write_a_run_file_for_every_notion(notion):
    own = {key: value for key, value in NOTIONS_BY_OPTIONS[notion].items() if key not in ESTIMATED}
    promise = loaded(**{**COMMON, **NOTIONS_BY_OPTIONS[notion], "notion": notion}).promise
    assert {key: str(getattr(promise, key)) for key in ["notion", *own]} == {"notion": notion, **own}
    assert (str(promise.max_day_epsilon), promise.epsilon_total) == ("0.5", "unlimited")


def test_the_six_notions_are_among_them():
    assert list(NOTIONS_BY_OPTIONS) == [notion.name for notion in NOTIONS[: len(NOTIONS_BY_OPTIONS)]]


def test_an_estimated_model_is_what_its_options_say():
    model = loaded(**{**COMMON, **NOTIONS_BY_OPTIONS["temporal"], "notion": "temporal"}).model
    assert isinstance(model, EstimatedModel)
    assert (model.period, model.states, model.ages_days) == ((date(2013, 1, 1), date(2013, 1, 5)), 4, (1, 2, 7))
    assert [float(edge) for edge in model.edges] == [1, 2, 3]
    assert (float(model.level), model.publish) == (0.95, "envelope")


@pytest.mark.parametrize(
    ("options", "proposes"),
    [
        ({"mode": "live"}, True),
        ({"mode": "live", "witness": "/mnt/w"}, False),
        ({"mode": "rehearsal"}, False),
        ({}, False),
    ],
)
def test_a_live_run_file_proposes_a_witness(options, proposes):
    found = drafted(**options)
    assert ('# witness = "' in found.text()) is proposes
    assert ("output", "witness") not in found.undecided
    uncommented = found.text(proposals=True).replace("# witness", "witness")
    run, problems = validate_run_file(uncommented, base=Path("/srv"))
    assert run is not None, problems
    assert (run.output.witness is not None) is (proposes or "witness" in options)


def test_period_all_is_every_day_of_the_files():
    found = drafted(notion="temporal", period="all")
    assert "period     = [2013-01-01, 2013-01-10]" in found.text()
    assert ("model", "period") not in found.undecided


def test_a_declared_model_needs_no_estimate():
    run = loaded(
        **COMMON, notion="age-dependent", age_days="2", epsilon_per_day="0.5", method="total_variation",
        **{"secret": "day"}, **DECLARED,
    )  # fmt: skip
    assert isinstance(run.model, DeclaredModel)
    assert (run.model.curve, run.model.basis) == ("/srv/curve.csv", "a study")


def test_other_tables_are_what_their_options_say():
    run = loaded(
        **COMMON, notion="classical", epsilon_per_day="0.5", title='A "title"', source="s", licence="CC0-1.0",
        contact="c", noise_interval="0.9", population="people", mode="rehearsal", age_days="3", first_day="2013-01-02",
        last_day="2013-01-04", wait_for="/srv/{day}.done", give_up_days="5", max_missing="0", missing_kwh="1.5",
        values="readings", corrections="later-file", file_order="modified", max_half_hour_kwh="20",
        witness="/mnt/other/w",
    )  # fmt: skip
    output = run.output
    assert (output.title, output.source, output.licence, output.contact) == ('A "title"', "s", "CC0-1.0", "c")
    assert run.output.witness == "/mnt/other/w"
    assert (float(run.output.interval), run.population.name, run.population.min_households) == (0.9, "people", 20)
    assert (run.schedule.mode, run.schedule.marker, run.schedule.patience_days) == ("rehearsal", "/srv/{day}.done", 5)
    assert (run.schedule.first_day, run.schedule.last_day) == (date(2013, 1, 2), date(2013, 1, 4))
    series = run.series["daily_mean"]
    assert (series.clamp_wh, series.max_missing, series.missing_wh) == (30_000, 0, 1_500)
    rules = (run.input.corrections, run.input.file_order, run.input.max_half_hour_wh)
    assert rules == ("later-file", "modified", 20_000)
    assert run.promise.age_days == 3


@pytest.mark.parametrize("form", ["histogram", "cumulative"])
def test_a_distribution_is_what_its_options_say(form):
    run = loaded(**COMMON, epsilon_per_day="0.5", statistic="distribution", bins_kwh="0,5,30", form=form, by="tariff")
    assert list(run.series) == ["daily_distribution"]
    series = run.series["daily_distribution"]
    assert isinstance(series, Distribution)
    assert (series.bins_wh, series.form, series.by) == ((0, 5_000, 30_000), form, "tariff")


def test_a_distribution_without_bins_leaves_them_to_decide():
    found = drafted(**COMMON, epsilon_per_day="0.5", statistic="distribution")
    assert found.undecided == ((SERIES, "bins_kwh"),)
    assert "# decide: bins_kwh  = [0, 15, 30]" in found.text()


def test_columns_of_a_long_table_are_what_their_options_say():
    columns = {
        "household_column": "m", "time_column": "t", "energy_column": "e", "time_format": "%d/%m/%Y %H:%M",
        "stamp": "start", "zone": "Europe/Berlin", "day_zone": "Europe/Berlin", "unit": "Wh", "missing": "NA,-",
    }  # fmt: skip
    run = loaded(LONG, **COMMON, **columns, epsilon_per_day="0.5")
    assert run.input.named_columns == {
        "household": "m", "time": "t", "energy": "e", "time_format": "%d/%m/%Y %H:%M", "stamp": "start",
        "zone": "Europe/Berlin", "day_zone": "Europe/Berlin", "unit": "Wh", "missing": ("NA", "-"),
    }  # fmt: skip


def test_keys_of_a_publisher_are_what_their_options_say():
    ausgrid = FileFacts("ausgrid", ("*.csv",), date(2013, 1, 1), date(2013, 1, 10), 40)
    run = loaded(ausgrid, **COMMON, epsilon_per_day="0.5", categories="GC,CL", missing_controlled_load="missing")
    keys = run.input.dataset_keys
    assert keys is not None
    assert keys.model_dump() == {"categories": ("GC", "CL"), "missing_controlled_load": "missing"}


@pytest.mark.parametrize("notion", NOTIONS_BY_OPTIONS)
@pytest.mark.parametrize("mode", ["archive", "rehearsal", "live"])
def test_proposals_go_together_whatever_the_notion(notion, mode, tmp_path):
    text = drafted(notion=notion, mode=mode).text()
    assert text.count(DECIDE) >= 5
    (tmp_path / "run.toml").write_text(text.replace(DECIDE, ""))
    problems = validate_run_file(text.replace(DECIDE, ""), base=tmp_path)[1]
    # a model of a live series is estimated from days before it begins, and only the readings show which
    assert problems == [] or (mode == "live" and "period" in problems[0].key), problems
    with pytest.raises(RunFileError, match="is missing"):
        check_file(tmp_path, text)


def check_file(folder: Path, text: str) -> RunFile:
    (folder / "run.toml").write_text(text)
    return load(folder / "run.toml")


@pytest.mark.parametrize(
    ("options", "line"),
    [
        ({"clamp_kwh": "0"}, "--clamp-kwh 0: must be above 0"),
        ({"notion": "clasical"}, "--notion clasical: is not known; did you mean 'classical'?"),
        ({"risk": "1"}, "--risk is not used by --notion classical; it goes with --notion age-dependent. Remove --risk"),
        ({"notion": "temporal", "rate": "0.9"}, "--rate is not used by --notion temporal; it goes with --notion disc"),
        ({"wait_for": "/{day}"}, "--wait-for is not used by --mode archive; it goes with --mode live or rehearsal"),
        ({"stamp": "end"}, "--stamp is not used by --dataset london; it goes with --dataset long"),
        ({"categories": "GC"}, "--categories is not used by --dataset london; it goes with --dataset ausgrid"),
        ({"curve": "c.csv", "states": "12"}, "--states is not used by [model] source declared"),
        ({"first_day": "2013-02-31"}, "--first-day 2013-02-31: must be a date, such as 2013-01-31"),
        ({"notion": "age-dependent", "risk": "1", "epsilon_per_day": "1"}, "--epsilon-per-day 1: stands beside risk"),
        ({"epsilon_per_day": "0.5", "max_day_epsilon": "0.1"}, "is more than max_day_epsilon permits"),
        ({"notion": "temporal", "level": "0.9", "confidence": "plug-in"}, "--level 0.9: is not used by confidence"),
        ({"bins_kwh": "0,1,30"}, "--bins-kwh is not used by --statistic mean; it goes with --statistic distribution"),
        ({"statistic": "median"}, "--statistic median: "),
        ({**COMMON, "statistic": "distribution", "bins_kwh": "0,1,20"}, "--bins-kwh [0, 1, 20]: must end with clamp"),
        ({"period": "2013"}, "--period [2013]: must be two dates"),
        ({**COMMON, "epsilon_per_day": "0.5", "age_days": "2"}, '--age-days 2: is not used by "classical" in an'),
    ],
)  # fmt: skip
def test_an_option_that_a_run_file_would_refuse_is_refused_by_its_name(options, line):
    with pytest.raises(RunFileError) as caught:
        drafted(**options)
    assert line in str(caught.value)
    assert "\n" not in str(caught.value)


def test_missing_options_name_what_the_notion_still_needs():
    given = toml_of({"notion": "age-dependent", "confidence": "sampling-bound", "min_households": "3"})
    undecided = draft(FACTS, given, paths=DraftPaths(), base=Path("/srv")).undecided
    assert set(missing_options(undecided, given).split(", ")) == {
        "--clamp-kwh", "--age-days", "--epsilon-per-day (or --risk)", "--method", "--secret", "--max-day-epsilon",
        "--epsilon-total", "--assume", "--period", "--step", "--edges", "--chain", "--min-visits", "--level",
        "--publish-envelope",
    }  # fmt: skip
