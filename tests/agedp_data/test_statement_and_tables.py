"""Statements say the same in JSON and in words, and tables are what they were declared to be."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import date
from decimal import Context, Decimal

import numpy as np
import pyarrow as pa
import pytest

from agedp_data import table_schemas
from agedp_data.notions.notion import LossBound
from agedp_data.statement.document import ContractVersion, read_statement
from agedp_data.statement.facts import (
    BEYOND_STATES,
    ESTIMATED,
    REHEARSAL,
    REPRESENTED,
    WITH_MODEL,
    SeriesEnd,
    StatementFacts,
    build_statement,
    odds_factor,
)
from agedp_data.statement.markdown import markdown

CONTRACT = {
    "version": 1,
    "input": {"dataset": "london"},
    "population": {"name": "homes", "min_households": 30},
    "schedule": {"mode": "archive", "first_day": "2013-01-01"},
    "promise": {"notion": "classical", "max_day_epsilon": "0.000000005", "epsilon_total": "9"},
    "series": {
        "use": {
            "statistic": "mean",
            "clamp_kwh": "50",
            "share": "1",
            "by": "tariff",
            "max_missing": 2,
            "missing_kwh": "0",
        }
    },
}
LIMITS = {"day": 4, "total": 9_000_000_000, "risk": 7}
FIGURES = [
    LossBound("risk", None, "conditional", "the current day", "chains hold"),
    LossBound("day", 5, "assumption-free", "any one day"),
    LossBound("total", 1_500_000_000, "assumption-free", "all days"),
    LossBound("day", 5, "assumption-free", "any one day"),
]


def facts(*, mode="archive", model=None, skipped=(), days=("2013-01-02", "2013-01-01"), **others):
    made = StatementFacts(
        title={"title": "T", "contact": ""},
        contract={**CONTRACT, "schedule": {"mode": mode, "first_day": "2013-01-01"}},
        days=days,
        skipped=skipped,
        published_on=("2026-01-01",),
        bounds=FIGURES,
        limits=LIMITS,
        ending=SeriesEnd("2013-01-05", "promise", 9_000_000_000),
        model=model,
        notes=["note"],
        ledger_id="ab" * 32,
        head="cd" * 32,
        versions=[ContractVersion(registered="2026-01-01", changes=[])],
        software={"agedp": "1"},
    )
    return replace(made, **others)


def test_what_is_always_true_comes_first_and_nothing_twice():
    claim = build_statement(facts()).content()
    assert [(one["name"], one["epsilon"]) for one in claim["figures"]] == [
        ("day", "0.000000005"), ("total", "1.5"), ("risk", "infinite"),
    ]  # fmt: skip
    assert claim["days"] == {"first": "2013-01-01", "last": "2013-01-02", "released": 2, "skipped": []}
    assert "contact" not in claim


def test_rows_of_an_estimated_model_name_its_days_and_others_are_as_before():
    period = "2012-01-01 to 2012-12-31"
    plain = build_statement(facts()).content()
    claim = build_statement(facts(model={"source": "estimated", "ages_days": [1]}, estimated_from=[period])).content()
    assert all("conditional_days" not in figure for figure in plain["figures"])
    assert {figure.pop("conditional_days") for figure in claim["figures"]} == {period}
    assert claim["figures"] == plain["figures"]
    assert any(period in warning for warning in claim["warnings"])
    assert "| always |" in markdown(read_statement(json.dumps(plain)))


def test_it_holds_nothing_but_strings_integers_and_lists():
    def plain(value):
        if isinstance(value, dict):
            return all(isinstance(key, str) and plain(part) for key, part in value.items())
        return all(map(plain, value)) if isinstance(value, list) else type(value) in (str, int)

    claim = build_statement(
        facts(model={"source": "estimated", "ages_days": [1], "envelope": {"losses": [1]}})
    ).content()
    assert plain(claim)
    assert claim["model"] == {"source": "estimated", "ages_days": [1]}
    assert json.loads(json.dumps(claim)) == claim


@pytest.mark.parametrize(
    ("source", "counting", "message"),
    [
        (None, {}, []),
        ("declared", {}, [*WITH_MODEL, BEYOND_STATES]),
        ("estimated", {}, [*WITH_MODEL, BEYOND_STATES, ESTIMATED]),
        ("estimated", {"represented": True}, [*WITH_MODEL, BEYOND_STATES, ESTIMATED, REPRESENTED]),
        ("estimated", {"beyond_states": False, "represented": True}, [*WITH_MODEL, ESTIMATED, REPRESENTED]),
    ],
)
def test_warnings_are_fixed_by_what_kind_of_model_there_is_and_what_is_counted(source, counting, message):
    warnings = build_statement(facts(model=source and {"source": source}, **counting)).content()["warnings"]
    assert warnings[1:] == list(message)


def test_a_rehearsal_says_so_first():
    claim = build_statement(facts(mode="rehearsal")).content()
    assert (claim["rehearsal"], claim["notes"]) == (1, [REHEARSAL, "note"])
    assert markdown(read_statement(json.dumps(claim))).splitlines()[2] == f"**{REHEARSAL}**"


def test_the_words_give_every_figure_warning_and_date():
    claim = build_statement(facts(skipped=("2013-01-03",), model={"source": "declared", "basis": "made up"})).content()
    words = markdown(read_statement(json.dumps(claim)))
    for figure in claim["figures"]:
        assert f"| {figure['name']} | {figure['epsilon']} | {figure['about']} |" in words
    for text in (
        *claim["warnings"],
        *claim["not_protected"],
        claim["protects"],
        claim["from_whom"],
        claim["second_population"]["text"],
        "2 days of homes (2013-01-01 to 2013-01-02), published on 2026-01-01; 1 day skipped",
        "at most epsilon 0.000000005 about any one day",
        "max_day_epsilon = 0.000000005",
        "2013-01-05 is the last day that the promise permits",
        "made up",
        "by tariff of the roster; a household's daily total counts at most 50 kWh (clamp), and 0 kWh if more than 2",
        "fewer than 30 households on the roster is never released",
        "promise.notion = classical",
    ):
        assert text in words, text
    assert "| if chains hold |" in words
    assert claim["ledger"]["head"] in words


def test_a_limit_is_what_further_releases_may_make_of_a_figure_and_never_less_than_it_is():
    claim = build_statement(facts()).content()
    assert {one["name"]: one["limit"] for one in claim["figures"]} == {
        "day": "0.000000005",  # the bound was tightened to 4 after a day had spent 5
        "total": "9",
        "risk": "unlimited",  # a figure that is infinite has no limit left
    }
    unlimited = build_statement(facts(limits={"day": 9, "total": None}, ending=SeriesEnd("", "", None))).content()
    assert [one["limit"] for one in unlimited["figures"]] == ["0.000000009", "unlimited", ""]
    assert unlimited["ending"] == {"spent": "1.5", "left": "unlimited", "last_day": "", "because": ""}
    assert unlimited["second_population"]["adds"] == {"day": "0.000000009", "total": "unlimited"}


@pytest.mark.parametrize(
    ("because", "message"),
    [
        ("promise", "2013-01-05 is the last day that the promise permits"),
        ("period", "The period ends with 2013-01-05"),
        ("broken", "nothing more will be released"),
        ("", "The promise does not end within a year"),
    ],
)
def test_the_words_say_what_ends_the_promise(because, message):
    assert message in markdown(build_statement(facts(ending=SeriesEnd("2013-01-05", because, None))))


def test_the_words_tell_what_an_amendment_changed_and_how_many_populations_there_are():
    versions = [
        ContractVersion(registered="2026-01-01", changes=[]),
        ContractVersion(registered="2026-02-01", changes=["series.use.clamp_kwh: 60 -> 50"]),
    ]
    words = markdown(build_statement(facts(versions=versions, other_populations=2)))
    assert "Version 2, registered on 2026-02-01, changed:\n\n* series.use.clamp_kwh: 60 -> 50" in words
    assert "This ledger contains 2 other populations." in words
    assert "Version 1" not in words


@pytest.mark.parametrize("loss", [1, 10**6, 5 * 10**8, 6_907_755_278, 6_907_755_279, 10**11, 10**15])
def test_a_factor_is_the_next_number_of_its_digits_above_e_to_the_epsilon(loss):
    exact, told = Context(prec=40), odds_factor(loss)
    step = Decimal("0.01") if "e" not in told else Decimal(f"0.1e{told.partition('e')[2]}")
    assert exact.ln(Decimal(told)) > Decimal(loss) / 10**9 > exact.ln(Decimal(told) - step)
    assert ("e" in told) == (loss > 6_907_755_278)  # e^6.907755278 = 999.9999...


def test_a_table_takes_its_columns_and_no_others():
    days = np.array([15706, 15707])
    lines = {"file": [0, 1], "row": np.array([1, 2]), "reason": np.array([5, 6])}
    assert table_schemas.table_from_columns(table_schemas.SETTLED, **lines).schema.equals(
        table_schemas.SETTLED, check_metadata=True
    )
    for wrong in ({"file": [0]}, {**lines, "more": [1, 2]}):
        with pytest.raises(ValueError, match="missing or unknown"):
            table_schemas.table_from_columns(table_schemas.SETTLED, **wrong)
    made = table_schemas.table_from_columns(
        table_schemas.DAYS,
        household_id=pa.array(["A", "B"]).dictionary_encode(),
        day=days,
        energy_wh=[1, 2],
        readings=[48, 46],
    )
    assert made["day"].to_pylist() == [date(2013, 1, 1), date(2013, 1, 2)]


@pytest.mark.parametrize(
    "name", [name for name in vars(table_schemas) if isinstance(getattr(table_schemas, name), pa.Schema)]
)
def test_every_column_says_what_it_means_and_is_never_empty(name):
    schema = getattr(table_schemas, name)
    assert all(field.metadata[b"description"] and not field.nullable for field in schema)
    assert all(
        ("Wh" in field.metadata[b"description"].decode()) for field in schema if field.name.startswith("energy_wh")
    )
