"""The contract holds what was promised, and nothing that may change at any time."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from agedp_data.config import contract_part, load, parse
from agedp_data.config.model_section import contract_states
from agedp_data.errors import LedgerError

EXAMPLES = Path(__file__).parents[3] / "docs" / "examples"
LIVE = (EXAMPLES / "london-live.toml").read_text("utf-8")
AUSGRID = (EXAMPLES / "ausgrid.toml").read_text("utf-8")


def of(text: str, *, base: str = "/house", model: str | None = "ab12"):
    return contract_part(parse(text, base=Path(base), name="r.toml"), model=model)


@pytest.mark.parametrize("name", ["london", "london-live", "ausgrid", "ausgrid-full"])
def test_it_is_nested_text_whole_numbers_and_lists_and_survives_json(name):
    registered = contract_part(load(EXAMPLES / f"{name}.toml"), model=None)
    assert json.loads(json.dumps(registered)) == registered

    def leaves(value):
        parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
        return [value] if parts is None else [leaf for part in parts for leaf in leaves(part)]

    assert {type(leaf) for leaf in leaves(registered)} <= {str, int}


def test_the_contract_of_the_live_example_is_the_one_counted_by_hand():
    assert of(LIVE) == {
        "version": 1,
        "input": {
            "dataset": "london", "corrections": "later-file", "file_order": "name", "max_half_hour_kwh": "50",
        },
        "population": {"name": "london-households", "min_households": 100},
        "schedule": {
            "mode": "live",
            "first_day": "2026-03-01",
            "wait_for": "s3://meters/incoming/{day}.done",
            "give_up_days": 14,
        },
        "series": {
            "daily_mean": {
                "statistic": "mean",
                "share": "0.7",
                "clamp_kwh": "50",
                "by": "tariff",
                "max_missing": 2,
                "missing_kwh": "0",
                "values": "readings",
            },
            "daily_distribution": {
                "statistic": "distribution",
                "share": "0.3",
                "clamp_kwh": "50",
                "max_missing": 2,
                "missing_kwh": "0",
                "values": "readings",
                "form": "histogram",
                "bins_kwh": ["0", "2", "4", "6", "8", "10", "12", "15", "20", "30", "50"],
            },
        },
        "promise": {
            "notion": "age-dependent",
            "age_days": 2,
            "epsilon_per_day": "0.1",
            "method": "tight",
            "secret": "day",
            "max_day_epsilon": "0.5",
            "epsilon_total": "36.5",
        },
        "model": {
            "source": "estimated",
            "assume": "markov",
            "period": ["2025-02-01", "2026-01-31"],
            "step": "half-hour",
            "states": 12,
            "edges": "quantile",
            "chain": "cyclic",
            "memory": "one",
            "min_visits": 200,
            "confidence": "sampling-bound",
            "level": "0.95",
            "ages_days": [1, 2, 3, 7, 14, 28],
            "publish": "envelope",
            "hash": "ab12",
        },
    }  # fmt: skip


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('files   = ["s3://meters/incoming/*.csv*"]', 'files = ["elsewhere/*.csv"]'),
        ('"s3://open-data/agedp/london"', '"out/release"'),
        ('"/srv/agedp/confidential/london"', '"house"'),
        ("postgresql+psycopg://agedp@ledger.internal/agedp", "sqlite:///l.sqlite"),
        ('"roster.csv"', '"homes.csv"'),
        ('title        = "Daily electricity use, London households"', ""),
        ("interval     = 0.95", "interval = 0.9"),
        ("30 6 * * *", "0 7 * * *"),
        ('zone         = "Europe/London"', 'zone = "UTC"'),
        ("/srv/agedp/confidential/london/model-2026a", "model"),
        ("window_days = 7\nexponential", "window_days = 9\nexponential"),
        ("workers      = 2", "workers = 8"),
        ("epsilon_per_day = 0.1", "epsilon_per_day = 0.100"),
        ("max_day_epsilon = 0.5", "max_day_epsilon = 5e-1"),
        ("max_missing  = 2", ""),
        ('form      = "histogram"', ""),
    ],
)
def test_what_is_free_and_how_it_is_written_leave_the_contract_as_it_was(old, new):
    assert old in LIVE
    assert of(LIVE.replace(old, new, 1)) == of(LIVE)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("max_half_hour_kwh = 50", "max_half_hour_kwh = 40"),
        ('file_order  = "name"', 'file_order = "modified"'),
        ("min_households = 100", "min_households = 101"),
        ("give_up_days = 14", "give_up_days = 15"),
        ("{day}.done", "{day}.ready"),
        ("2026-03-01", "2026-03-02"),
        ("max_missing  = 2", "max_missing = 3"),
        ("epsilon_total   = 36.5", 'epsilon_total = "unlimited"'),
        ("level      = 0.95", "level = 0.9"),
        ("min_visits = 200", "min_visits = 100"),
    ],
)
def test_whatever_else_changes_changes_the_contract(old, new):
    assert old in LIVE
    assert of(LIVE.replace(old, new, 1)) != of(LIVE)


def test_it_does_not_depend_on_where_the_run_file_lies():
    assert of(LIVE, base="/elsewhere") == of(LIVE)


def test_another_model_is_another_contract_and_no_model_leaves_no_hash():
    assert of(LIVE, model="cd34") != of(LIVE)
    assert "hash" not in of(LIVE, model=None)["model"]
    assert "model" not in contract_part(load(EXAMPLES / "london.toml"), model=None)


@pytest.mark.parametrize(
    ("keys", "registered"),
    [
        ("", {"categories": ["GC", "CL"], "missing_controlled_load": "zero"}),
        (
            'categories = ["CL", "GC"]\nmissing_controlled_load = "missing"\n',
            {"categories": ["CL", "GC"], "missing_controlled_load": "missing"},
        ),
        ('categories = ["GG"]\n', {"categories": ["GG"]}),
    ],
)
def test_what_a_dataset_adds_to_the_input_table_is_registered_as_ever(keys, registered):
    text = AUSGRID.replace('dataset = "ausgrid"\n', f'dataset = "ausgrid"\n{keys}')
    plain = {"dataset": "ausgrid", "corrections": "set-aside", "max_half_hour_kwh": "50"}
    assert of(text)["input"] == plain | registered


@pytest.mark.parametrize(
    "model",
    [
        {"edges": ["1"]},
        {"step": "day", "edges": []},
        {"step": "day", "edges": ["2", "1"]},
        {"step": "day", "edges": ["much"]},
        {"step": "day", "edges": ["NaN"]},
        {"step": "day", "edges": ["1e99"]},
        {"step": "day", "edges": [None]},
    ],
)
def test_states_of_a_contract_that_no_agedp_wrote_are_refused(model):
    with pytest.raises(LedgerError, match="holds states that this agedp does not know"):
        contract_states({"model": model})


def test_a_contract_whose_homes_have_cuts_of_their_own_has_no_public_states():
    assert contract_states({}) is contract_states({"model": {"step": "day", "edges": "quantile"}}) is None
