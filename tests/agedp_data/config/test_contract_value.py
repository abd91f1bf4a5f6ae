"""A contract's text is parsed once, to the sections of the run file that registered it, each when it is asked for."""

from __future__ import annotations

import json
from datetime import date
from decimal import Decimal
from pathlib import Path

import pytest

from agedp_data.config import contract_part, load
from agedp_data.config.contract import Contract, contract_value, parse_contract
from agedp_data.errors import LedgerError
from agedp_data.ledger import ContractRecord, canonical

EXAMPLES = sorted((Path(__file__).parents[3] / "docs" / "examples").glob("*.toml"))
UNKNOWN = {"use": {"statistic": "mean", "clamp_kwh": "-1", "share": "1"}}


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
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
    live = contract_part(load(next(path for path in EXAMPLES if path.stem == "london-live")), model="ab12")
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
