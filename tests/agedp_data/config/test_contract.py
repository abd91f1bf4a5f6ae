"""The contract: its text counted by hand, what is free, and its values."""

from __future__ import annotations

import json
from datetime import date
from decimal import Decimal
from pathlib import Path

import pytest

from agedp_data.config import contract_part, load, parse
from agedp_data.config.contract import Contract, contract_value, parse_contract
from agedp_data.errors import LedgerError
from agedp_data.ledger import ContractRecord, canonical

# The contract holds what was promised, and nothing that may change at any time.

EXAMPLES = Path(__file__).parents[3] / "docs" / "examples"
LIVE = (EXAMPLES / "london-live.toml").read_text("utf-8")
AUSGRID = (EXAMPLES / "ausgrid.toml").read_text("utf-8")


def of(text: str, *, base: str = "/house", model: str | None = "ab12"):
    return contract_part(parse(text, base=Path(base), name="r.toml"), model=model)


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.toml")), ids=lambda path: path.stem)
def test_it_is_nested_text_whole_numbers_and_lists(path):
    def leaves(value):
        parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
        return [value] if parts is None else [leaf for part in parts for leaf in leaves(part)]

    registered = contract_part(load(path), model=None)
    assert json.loads(json.dumps(registered)) == registered
    assert {type(leaf) for leaf in leaves(registered)} <= {str, int}


def test_the_contract_of_the_live_example_is_the_one_counted_by_hand():
    counted = {"clamp_kwh": "50", "max_missing": 2, "missing_kwh": "0", "values": "readings"}
    assert of(LIVE) == {
        "version": 1,
        "input": {
            "dataset": "london", "corrections": "later-file", "file_order": "name", "max_half_hour_kwh": "50",
        },
        "population": {"name": "london-households", "min_households": 100},
        "schedule": {
            "mode": "live", "first_day": "2026-03-01", "wait_for": "s3://meters/incoming/{day}.done",
            "give_up_days": 14,
        },
        "series": {
            "daily_mean": {"statistic": "mean", "share": "0.7", "by": "tariff", **counted},
            "daily_distribution": {
                "statistic": "distribution", "share": "0.3", "form": "histogram",
                "bins_kwh": ["0", "2", "4", "6", "8", "10", "12", "15", "20", "30", "50"], **counted,
            },
        },
        "promise": {
            "notion": "age-dependent", "age_days": 2, "epsilon_per_day": "0.1", "method": "tight", "secret": "day",
            "max_day_epsilon": "0.5", "epsilon_total": "36.5",
        },
        "model": {
            "source": "estimated", "assume": "markov", "period": ["2025-02-01", "2026-01-31"], "step": "half-hour",
            "states": 12, "edges": "quantile", "chain": "cyclic", "memory": "one", "min_visits": 200,
            "confidence": "sampling-bound", "level": "0.95", "ages_days": [1, 2, 3, 7, 14, 28], "publish": "envelope",
            "hash": "ab12",
        },
    }  # fmt: skip


FREE = [
    ('files   = ["s3://meters/incoming/*.csv*"]', 'files = ["elsewhere/*.csv"]'),
    ('"s3://open-data/agedp/london"', '"out/release"'), ('"/srv/agedp/confidential/london"', '"house"'),
    ("postgresql+psycopg://agedp@ledger.internal/agedp", "sqlite:///l.sqlite"), ('"roster.csv"', '"homes.csv"'),
    ('title        = "Daily electricity use, London households"', ""), ("interval     = 0.95", "interval = 0.9"),
    ("30 6 * * *", "0 7 * * *"), ('zone         = "Europe/London"', 'zone = "UTC"'),
    ("/srv/agedp/confidential/london/model-2026a", "model"),
    ("window_days = 7\nexponential", "window_days = 9\nexponential"), ("workers      = 2", "workers = 8"),
    ("epsilon_per_day = 0.1", "epsilon_per_day = 0.100"), ("max_day_epsilon = 0.5", "max_day_epsilon = 5e-1"),
    ("max_missing  = 2", ""), ('form      = "histogram"', ""),
]  # fmt: skip


def test_what_is_free_and_how_it_is_written_leave_the_contract_alone():
    registered = of(LIVE)
    for old, new in FREE:
        assert old in LIVE
        assert of(LIVE.replace(old, new, 1)) == registered, new
    assert of(LIVE, base="/elsewhere") == registered
    assert of(LIVE, model="cd34") != registered
    assert "hash" not in of(LIVE, model=None)["model"]


def test_what_a_dataset_adds_to_the_input_table_is_registered():
    plain = {"dataset": "ausgrid", "corrections": "set-aside", "max_half_hour_kwh": "50"}
    both = 'categories = ["CL", "GC"]\nmissing_controlled_load = "missing"\n'
    for keys, registered in (
        ("", {"categories": ["GC", "CL"], "missing_controlled_load": "zero"}),
        (both, {"categories": ["CL", "GC"], "missing_controlled_load": "missing"}),
        ('categories = ["GG"]\n', {"categories": ["GG"]}),
    ):
        text = AUSGRID.replace('dataset = "ausgrid"\n', f'dataset = "ausgrid"\n{keys}')
        assert of(text)["input"] == plain | registered


def test_states_of_a_contract_that_no_agedp_wrote_are_refused():
    for edges in ([], ["2", "1"], ["much"], ["NaN"], ["1e99"], [None]):
        with pytest.raises(LedgerError, match="holds states that this agedp does not know"):
            assert Contract({"model": {"step": "day", "edges": edges}}).states
    with pytest.raises(LedgerError, match="holds states"):
        assert Contract({"model": {"edges": ["1"]}}).states
    assert Contract({}).states is Contract({"model": {"step": "day", "edges": "quantile"}}).states is None


# A contract's text is parsed once, to the sections of the run file that registered it, each when it is asked for.

RUN_FILES = sorted((Path(__file__).parents[3] / "docs" / "examples").glob("*.toml"))
UNKNOWN = {"use": {"statistic": "mean", "clamp_kwh": "-1", "share": "1"}}


@pytest.mark.parametrize("path", RUN_FILES, ids=lambda path: path.stem)
def test_its_parts_are_those_of_the_run_file(path):
    run = load(path)
    written = contract_part(run, model=None)
    contract = ContractRecord("homes", canonical(written)).terms
    for table in ("input", "population", "schedule", "promise", *(["model"] if run.model else [])):
        expected = {key: value for key, value in written[table].items() if key != "zone_changes"}
        assert contract_value(getattr(contract, table)) == expected
        assert contract_value(getattr(contract.run_file, table)) == expected
    assert {name: contract_value(series) for name, series in contract.series.items()} == written["series"]
    assert (contract.schedule, contract.promise) == (run.schedule.model_copy(update=free(run.schedule)), run.promise)
    assert (contract.layout, contract.interval_minutes) == (run.input.layout, run.input.interval_minutes)
    assert contract.zone_changes == tuple(written["schedule"].get("zone_changes", ()))
    assert contract.requires_witness is (run.output.witness is not None)
    assert (contract.model is None, contract.model_hash) == (run.model is None, None)


def free(schedule):
    return {key: None for key in ("cron", "zone") if hasattr(schedule, key)}


def test_dates_and_numbers_are_values_and_names_stay_text():
    live = contract_part(load(next(path for path in RUN_FILES if path.stem == "london-live")), model="ab12")
    contract = Contract(live | {"population": {"name": "2013-01-01", "min_households": 9}})
    assert (contract.population.name, contract.population.min_households) == ("2013-01-01", 9)
    assert (contract.model.period, contract.model.level) == ((date(2025, 2, 1), date(2026, 1, 31)), Decimal("0.95"))
    assert (contract.model_hash, contract.states, contract.model.edges) == ("ab12", None, "quantile")
    assert contract.input.max_half_hour_kwh == 50


def test_a_text_is_parsed_once_and_earlier_forms_are_filled_in():
    text = '{"input":{"dataset":"london"},"series":{"use":{"clamp_kwh":"9","share":"1","statistic":"mean"}}}'
    contract = parse_contract(text)
    assert contract is parse_contract(text) is ContractRecord("homes", text).terms
    assert contract.series is contract.series
    assert (contract.series_keys("use")["every"], contract.interval_minutes) == ("day", 30)
    with pytest.raises(LedgerError, match="has form 9, which agedp 2 or newer reads"):
        parse_contract('{"form":9,"needs":"2"}')


def test_a_part_that_is_not_known_does_not_hide_the_others():
    contract = parse_contract(json.dumps({"input": {"dataset": "london"}, "series": UNKNOWN, "promise": {}}))
    assert contract.layout.name == "london"
    with pytest.raises(LedgerError, match="holds a series that this agedp does not know"):
        _ = contract.series
    with pytest.raises(LedgerError, match="holds no promise that this agedp knows"):
        _ = contract.promise
