"""The contract holds what was promised, and nothing that may change at any time."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from agedp_data.config import contract_part, load, parse
from agedp_data.config.contract import Contract
from agedp_data.errors import LedgerError

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
