"""Statements say the same in JSON and in words, and their schema describes every key: none missing, none another."""

from __future__ import annotations

import copy
import json
import math
import re
import tomllib
from dataclasses import replace
from datetime import date, timedelta
from decimal import Context, Decimal
from importlib.resources import files
from itertools import chain

import jsonschema
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from agedp_data.config.contract_document import ContractDocument
from agedp_data.notions.notion import CALIBRATION_DAY_BOUND, LossBound
from agedp_data.notions.publication import Event
from agedp_data.statement.document import (
    SCHEMA,
    ContractVersion,
    SeriesDays,
    StatedAccuracy,
    StatedDraw,
    read_statement,
    schema,
)
from agedp_data.statement.facts import AccountFacts, SeriesEnd, StatementFacts, build_statement
from agedp_data.statement.markdown import markdown
from agedp_data.statement.note_texts import FACTS as TEXTS
from agedp_data.statement.note_texts import NOTES, odds_factor, share_text
from agedp_data.statement.span_errors import stated_noises
from tests.source_path import ROOT

# Statements say the same in JSON and in words, and their schema describes every key: none missing, none another.

CHECK = jsonschema.Draft202012Validator(schema())
CONTRACT = {
    "version": 1,
    "input": {"dataset": "london"},
    "population": {"name": "homes", "min_households": 30},
    "schedule": {"mode": "archive", "first_day": "2013-01-01", "last_day": "2013-01-05"},
    "promise": {
        "notion": "classical", "epsilon_per_day": "0.000000005", "max_day_epsilon": "0.000000005", "epsilon_total": "9",
    },
    "series": {
        "use": {
            "statistic": "mean", "clamp_kwh": "50", "share": "1", "by": "tariff", "max_missing": 2, "missing_kwh": "0",
        },
    },
}  # fmt: skip
DAY_BOUND = LossBound("day", 5, "assumption-free", "any one day")
FACTS = StatementFacts(
    title={"title": "T", "source": "S", "licence": "CC-BY-4.0", "contact": ""},
    contract=ContractDocument.model_validate(CONTRACT),
    days=("2013-01-02", "2013-01-01"),
    skipped=("2013-01-03",),
    published_on=("2026-01-01",),
    bounds=[
        LossBound("risk", None, "conditional", "the current day", "chains hold"), DAY_BOUND,
        LossBound("total", 1_500_000_000, "assumption-free", "all days"), DAY_BOUND,
    ],
    limits={"day": 4, "total": 9_000_000_000, "risk": 7},
    ending=SeriesEnd("2013-01-05", "promise", 9_000_000_000),
    model={"source": "declared", "assume": "curve", "basis": "made up", "envelope": {"losses": [1]}},
    notes=("note",),
    ledger_id="ab" * 32,
    head="cd" * 32,
    versions=[ContractVersion(registered="2026-01-01", changes=[])],
    software={"agedp": "1"},
)  # fmt: skip
REHEARSED = {**CONTRACT, "schedule": {**CONTRACT["schedule"], "mode": "rehearsal"}}


def claim(**changed):
    if "contract" in changed:
        changed["contract"] = ContractDocument.model_validate(changed["contract"])
    return build_statement(replace(FACTS, **changed)).content()


def words(**changed):
    return markdown(read_statement(json.dumps(claim(**changed))))


CLAIM = claim()


def test_what_is_always_true_comes_first_and_nothing_twice():
    assert [(figure["name"], figure["epsilon"], figure["limit"]) for figure in CLAIM["figures"]] == [
        ("day", "0.000000005", "0.000000005"),  # the bound was tightened to 4 after a day had spent 5
        ("total", "1.5", "9"),
        ("risk", "infinite", "unlimited"),  # a figure that is infinite has no limit left
    ]
    assert CLAIM["days"] == {"first": "2013-01-01", "last": "2013-01-02", "released": 2, "skipped": ["2013-01-03"]}
    assert "contact" not in CLAIM
    unlimited = claim(limits={"day": 9, "total": None}, ending=SeriesEnd("", "", None))
    assert [figure["limit"] for figure in unlimited["figures"]] == ["0.000000009", "unlimited", ""]
    assert unlimited["ending"] == {"spent": "1.5", "left": "unlimited", "last_day": "", "because": ""}
    assert unlimited["second_population"]["adds"] == {"day": "0.000000009", "total": "unlimited"}


def test_households_together_have_the_loss_of_one_so_many_times():
    """The worst day of one is 0.3, one of a calibration that no release is about."""
    days = [LossBound("day", 200_000_000, "assumption-free", "any one published day")]
    days += [LossBound(CALIBRATION_DAY_BOUND, 300_000_000, "assumption-free", "any one day from 2012-01-01")]
    total = LossBound("total", 1_500_000_000, "assumption-free", "all days")
    found = claim(bounds=[*days, total])["together"]
    assert found == [
        {"households": 2, "day": "0.6", "total": "3"},
        {"households": 5, "day": "1.5", "total": "7.5"},
        {"households": 10, "day": "3", "total": "15"},
    ]


def test_a_bound_with_a_delta_is_no_bound_on_odds_and_the_promised_one_ends_the_series():
    promised, total = Decimal("1e-6"), "all days; every set of results at most e^epsilon times as probable, plus 1e-6"
    bounds = [*FACTS.bounds, LossBound("total (delta 1e-6)", 10**9, "assumption-free", total, delta=promised)]
    changed = {
        "bounds": bounds,
        "limits": {"day": 4, "total": None, "total (delta 1e-6)": 3 * 10**9, "risk": 7},
        "ending": SeriesEnd("2013-01-05", "promise", 3 * 10**9, promised),
        "contract": {**CONTRACT, "promise": {**CONTRACT["promise"], "epsilon_total": "3", "delta": "0.000001"}},
        "account": AccountFacts(5, 1_500_000_000, "2026-01-01"),
    }
    stated, text = claim(**changed), words(**changed)
    jsonschema.validate(stated, schema())
    [row] = [figure for figure in stated["figures"] if "delta" in figure]
    assert (row["epsilon"], row["delta"], row["factor"], row["limit"]) == ("1", "0.000001", "", "3")
    assert not CHECK.is_valid(stated | {"figures": [*stated["figures"][:2], row | {"factor": "2.72"}]})
    assert stated["ending"] == {
        "spent": "1", "left": "2", "delta": "0.000001", "last_day": "2013-01-05", "because": "promise",
    }  # fmt: skip
    assert stated["second_population"]["adds"] == {"day": "0.000000004", "total": "3", "delta": "0.000001"}
    assert stated["figures"][1]["limit"] == ""  # the sum of the losses: the promise limits it at delta only
    assert "namely all days. Had the use on these days been anything else" in stated["protects"]
    for part in (
        "| all its days, with delta 1e-6 (see the annex) | 1 |  |  |  |",
        "every set of results would be at most e^1 times as probable, plus one in 1,000,000.",
        "1e-6: together at most epsilon 6 with delta 2e-6.",
        "\n**Promised:** All days: at most epsilon 3 with delta 1e-6 (row *total (delta 1e-6)*; so far 1). Any one day",
    ):
        assert part in text, part
    assert not re.search(r"but for|(un)?likely|except with|unlimited with", text)
    window = replace(bounds[-1], name="window of 9 days (delta 1e-6)", about="any 9 days; every set of results")
    endless = {"day": 5, "total": None, "total (delta 1e-6)": None, window.name: 2 * 10**9}
    ending = SeriesEnd("", "", None, promised)
    of_window = words(**changed | {"bounds": [*bounds, window], "limits": endless, "ending": ending})
    assert "no release takes *window of 9 days (delta 1e-6)* beyond epsilon 2, whatever" in of_window
    assert "What it may add to the composed loss of all days has no cap. This ledger" in of_window
    assert "delta" not in json.dumps(CLAIM)


def of_two_contracts(earlier, *, released, **changed):
    """Return the statement of a contract in force that follows another one, under which days were released or not."""
    days = [SeriesDays(series="use", first="2013-01-01", last="2013-01-01", days=1)]
    known = ContractDocument.model_validate({**CONTRACT, **earlier})
    first = ContractVersion(registered="2026-01-01", changes=[], contract=known, released=days if released else [])
    newest = ContractVersion(registered="2026-01-02", changes=["a: b -> c"], released=days)
    return claim(versions=[first, newest], **changed)


@pytest.mark.parametrize("released", [True, False])
def test_what_an_earlier_contract_leaves_open_is_said_if_days_were_released_under_it(released):
    aged = {"notion": "age-dependent", "age_days": 2, "method": "tight", "secret": "day", "epsilon_per_day": "0.1"}
    caps = {"max_day_epsilon": "0.1", "epsilon_total": "9"}
    stated = of_two_contracts({"promise": aged | caps}, released=released)
    assert ("Ageing protects the present only." in " ".join(stated["not_protected"])) == released


@pytest.mark.parametrize(("released", "households"), [(True, 3), (False, 30)])
def test_a_large_delta_is_judged_by_the_fewest_households_of_a_released_day(released, households):
    promise = {**CONTRACT["promise"], "delta": "0.2"}  # above 1/3^2 and 1/30^2
    few = {"population": {"name": "homes", "min_households": 3}, "promise": promise}
    stated = of_two_contracts(few, released=released, contract={**CONTRACT, "promise": promise})
    large = [NOTES.large_delta.format(delta="2e-1", households=number) for number in (3, 30)]
    assert [text for text in stated["warnings"] if text in large] == [large[households == 30]]


def test_the_clamp_of_a_mean_in_layers_is_that_of_its_last_layer():
    use = CONTRACT["series"]["use"] | {"clamp_kwh": "30", "share": "0.5"}
    layers = {"use/1": use, "use/2": use | {"above_kwh": "30", "clamp_kwh": "75"}}
    errors = [
        StatedAccuracy(series=name, day="2013-01-02", group="A", households=30, unit="kWh", within=within)
        for name, within in (("use/1", "0.6"), ("use/2", "0.9"))
    ]
    contract = {**CONTRACT, "series": layers, "form": 2, "needs": "0.2"}
    [noise] = stated_noises(read_statement(json.dumps(claim(contract=contract, accuracy=errors))))
    assert (noise.label, noise.clamp_kwh) == ("use", 75)
    assert noise.scales == pytest.approx((0.6 / math.log(20), 0.9 / math.log(20)))


def test_a_privately_selected_model_bounds_a_share_and_its_draws_are_in_the_figures():
    model = {
        "source": "estimated", "publish": "private", "assume": "markov", "period": ["2012-01-01", "2012-12-31"],
        "coverage": "0.95", "failure_probability": "0.000001", "selection_epsilon": "1", "households": 5566,
        "member": 7, "level": "0.99", "draws": [{"query": "{}", "value": [7], "loss": 10**9}],
    }  # fmt: skip
    draw = StatedDraw(first_day="2012-01-01", last_day="2012-12-31", asked="the model", epsilon="1")
    stated, text = claim(model=model, draws=[draw]), words(model=model, draws=[draw])
    jsonschema.validate(stated, schema())
    assert not any("conditional_days" in figure for figure in stated["figures"])
    assert "With probability at least 0.999999, the estimated chains (at the confidence level 0.99)" in text
    assert "the households are the 5566 that were on the roster then" in text
    assert "| the model | 2012-01-01 | 2012-12-31 | 1 |" in text
    assert TEXTS.estimated not in stated["warnings"]
    assert "'calibration day' for a day of the calibration" in stated["protects"]
    assert not re.search("each household|query", text)
    assert read_statement(json.dumps(stated)).charges == (Event("2012-01-01", "2012-12-31", 10**9),)


def test_a_small_failure_probability_is_not_rounded_to_certainty():
    public = {"publish": "private", "coverage": "0.95", "households": 9, "period": ["2012-01-01", "2012-01-31"]}
    tiny = public | {"failure_probability": f"0.{'0' * 40}1"}
    assert f"0.{'9' * 41} at least 95 %" in share_text(tiny)


PUBLISHERS_WORDS = ("title", "source", "licence", "contact")
MARKDOWN = MarkdownIt("commonmark").enable(["table", "strikethrough"])
PLAIN = [
    "Daily use, 2013-2014: low_carbon_london (C#, ~60 homes), Smith & Sons; 50 % > 1.5 kWh!",
    "+44 20 7946 0000",
    "data@example.org, https://example.org/a_b?c=1&d=2",
]


def shown_of_publisher(text):
    """What a reader of STATEMENT.md sees of these words: the heading, the citation's title, the line of credits."""
    found = words(title={key: text if key != "licence" else "CC0" for key in PUBLISHERS_WORDS})
    tokens = MARKDOWN.parse(found)
    pieces = [token for token in tokens if token.type == "inline"]
    assert {token.type for token in tokens} & {"html_block", "fence", "code_block", "hr", "blockquote_open"} == set()
    title = pieces[0]
    [cited] = [piece for piece in pieces if piece.content.startswith("To cite: ")]
    credits = pieces[pieces.index(cited) + 1]
    for piece in (title, cited, credits):
        assert {child.type for child in piece.children} <= {"text", "text_special"}, piece.content
    return ["".join(child.content for child in piece.children) for piece in (title, cited, credits)]


@given(st.text(r"\\`*_[]<>&#~!|-+=.:;()/ 1aé", min_size=1, max_size=12).filter(str.strip))
@example("x <h2>Verified</h2><script>alert(1)</script>")
@example("[agedp verified this](https://example.org) ![x](https://example.org/x.png) <https://example.org>")
@example("- 1. # > ``` &lt;b&gt; \\<b>")
def test_markdown_of_title_source_and_contact_is_shown_as_it_is_written(text):
    title, cited, credits = shown_of_publisher(text)
    assert title == text.strip()
    assert cited.startswith(f"To cite: {text}, 2013-01-01")
    assert credits == f"{text} · CC0 · {text}".strip()


@pytest.mark.parametrize("text", PLAIN)
def test_plain_words_of_a_publisher_are_not_changed(text):
    assert shown_of_publisher(text)[0] == text
    assert words(title=dict.fromkeys(PUBLISHERS_WORDS, text)).count(text) == 5  # heading, citation, three credits


def test_warnings_follow_from_the_kind_of_model_and_what_is_counted():
    model = TEXTS.several("with_model")
    for source, counted, warnings in (
        (None, {}, []),
        ("declared", {}, [*model, TEXTS.beyond_states]),
        ("estimated", {"represented": True}, [*model, TEXTS.beyond_states, TEXTS.estimated, TEXTS.represented]),
        ("estimated", {"beyond_states": False}, [*model, TEXTS.estimated]),
    ):
        stated = claim(model=source and {"source": source, "assume": "markov"}, **counted)["warnings"]
        assert stated[1:] == [*warnings, NOTES.smoothing]


@pytest.mark.parametrize(
    ("within", "purpose"),  # of 11.012 kWh a day; 90 of 100 draws are within log(10)/log(20), a week's root 7 less
    [
        ("1.4", "Fit for days, by the yardstick below."),  # 9.8 %
        ("1.5", "Rough for days, fit for weeks, by the yardstick below."),  # 10.5 % and 4.0 %
        ("7", "Rough for weeks, of no use for single days, by the yardstick below."),  # 49 % and 18.5 %
        ("9.6", "Rough for the whole period: ±2.63 kWh (24 %), of no use for single days, by the yardstick below."),
        ("11", "Of no use: no span is fit or rough, by the yardstick below."),  # 77 %, 29 % and, of eight days, 27 %
    ],
)
def test_the_words_say_for_which_spans_a_release_is_fit(within, purpose):
    days = [f"2013-01-{day:02d}" for day in range(1, 9)]
    entry = StatedAccuracy(series="use", day=days[-1], group="Std", households=30, unit="kWh", within=within)
    text = words(days=days, accuracy=[entry])
    assert text.splitlines()[2] == f"* {purpose}"
    half_width, share = re.search(r"\| use \| 30 \| ([0-9.]+) kWh \(([0-9.]+) %(?:, fit|, rough)?\) \|", text).groups()
    expected = float(within) * math.log(10) / math.log(20)
    assert expected <= float(half_width) <= 1.01 * expected  # three digits, rounded up
    assert 100 * expected / 11.012 <= float(share) <= 1.1 * 100 * expected / 11.012  # two digits, rounded up


def test_days_that_smoothing_makes_of_use_are_named_as_in_the_verdict():
    """Noise of 2.4 kWh a day, of which smoothing leaves 0.879 kWh in 91 days and more: 1.645 times that is 13 %."""
    days = [str(date(2013, 1, 1) + timedelta(days=i)) for i in range(100)]
    within = str(round(2.4 / math.sqrt(2) * math.log(20), 6))
    entry = StatedAccuracy(series="use", day=days[-1], group="Std", households=30, unit="kWh", within=within)
    for number, of_days in ((100, "rough for days smoothed by `agedp smooth`"), (90, "of no use for single days")):
        text = words(days=days[:number], accuracy=[entry])
        assert text.splitlines()[2] == f"* Rough for weeks, fit for months, {of_days}, by the yardstick below."


@pytest.mark.parametrize("loss", [1, 10**6, 5 * 10**8, 6_907_755_278, 6_907_755_279, 10**11, 10**15])
def test_a_factor_is_the_next_number_of_its_digits_above_e_to_the_loss(loss):
    exact, factor = Context(prec=40), odds_factor(loss)
    step = Decimal("0.01") if "e" not in factor else Decimal(f"0.1e{factor.partition('e')[2]}")
    assert exact.ln(Decimal(factor)) > Decimal(loss) / 10**9 > exact.ln(Decimal(factor) - step)
    assert ("e" in factor) == (loss > 6_907_755_278)  # e^6.907755278 = 999.9999...


def test_it_is_a_schema_of_the_form_that_statements_name():
    jsonschema.Draft202012Validator.check_schema(schema())
    assert schema()["properties"]["schema"]["const"] == SCHEMA == CLAIM["schema"]
    shipped = files("agedp_data").joinpath("schemas", "statement-2.json")
    assert shipped.read_text() == json.dumps(schema(), indent=1) + "\n"  # write that text if the model changed


def plain(value):
    if isinstance(value, dict):
        return all(isinstance(key, str) and plain(part) for key, part in value.items())
    return all(map(plain, value)) if isinstance(value, list) else type(value) in (str, int)


@pytest.mark.parametrize(
    "changed",
    [
        {},
        {"contract": REHEARSED},
        {"title": {}, "model": None, "notes": (), "days": (), "published_on": (), "ending": SeriesEnd("", "", 9)},
    ],
)
def test_a_statement_is_of_that_form_and_read_as_it_was_written(changed):
    content = claim(**changed)
    CHECK.validate(content)
    assert plain(content)
    later = content | {"key_of_a_later_version": {"more": [1]}}
    later["figures"][0]["of_a_later_version"] = "0"
    assert json.loads(read_statement(json.dumps(later)).text()) == later
    for key in ("from_whom", "versions", "ending", "second_population", "software"):  # the first schema lacks some
        earlier = {name: value for name, value in CLAIM.items() if name != key}
        earlier["figures"] = [
            {k: v for k, v in row.items() if k not in ("factor", "limit")} for row in CLAIM["figures"]
        ]
        assert read_statement(json.dumps(earlier)).content() == earlier


def at(value, path):
    for key in path:
        value = value[key]
    return value


def with_value(path, value):
    content = copy.deepcopy(CLAIM)
    at(content, path[:-1])[path[-1]] = value
    return content


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("figures", 0, "epsilon"), "1e9"), (("figures", 0, "epsilon"), "9" * 501), (("days", "first"), "2013-02-30"),
        (("days", "skipped"), ["9999-12-31"]), (("ledger", "head"), "ab"), (("population",), 3),
        (("contract", "promise", "max_day_epsilon"), "much"), (("contract", "schedule", "first_day"), "today"),
    ],
)  # fmt: skip
def test_a_statement_of_another_form_is_refused_by_its_key(path, value):
    with pytest.raises(ValueError, match=r"the statement is not as agedp writes one: " + r"\.".join(map(str, path))):
        read_statement(json.dumps(with_value(path, value)))


def keys_of(value, path=()):
    """Yield the path of every key of a statement, of the first item of its lists."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield (*path, key)
            yield from keys_of(inner, (*path, key))
    elif isinstance(value, list) and value:
        yield from keys_of(value[0], (*path, 0))


def test_no_key_may_be_missing_misspelt_or_of_another_kind():
    for path in [path for path in keys_of(CLAIM) if path[0] not in ("contract", "model", "software")]:
        for edit in ("missing", "misspelt", "other"):
            content = copy.deepcopy(CLAIM)
            above = at(content, path[:-1])
            value = above.pop(path[-1])
            if edit == "misspelt":
                above[f"{path[-1]}x"] = value
            if edit == "other":
                above[path[-1]] = 1.5
            is_free = path in {("title",), ("source",), ("licence",), ("together",)}
            assert CHECK.is_valid(content) == (edit == "missing" and is_free), (path, edit)


@pytest.mark.parametrize(
    ("path", "values"),
    [
        (("figures", 0, "epsilon"), ["0.50", "-1", "1e-9", "0.1234567891"]), (("figures", 0, "kind"), ["indicative"]),
        (("figures", 0, "assumption"), ["chains hold"]), (("figures", 2, "assumption"), [""]),
        (("figures", 0, "factor"), ["1.6"]), (("ending", "because"), ["whim"]), (("ending", "last_day"), ["tomorrow"]),
        (("days", "skipped"), [["2013-01-02", "2013-01-02"]]), (("ledger", "head"), ["ab"]), (("rehearsal",), [2]),
        (("model",), [{"source": "guessed", "assume": "curve"}, {"source": "declared"}]),
        (("contract", "promise"), [{"notion": "classical"}]), (("contract", "series"), [{}]),
        (("contract", "output"), [{}]),
    ],
)  # fmt: skip
def test_values_out_of_range_are_found(path, values):
    assert not any(CHECK.is_valid(with_value(path, value)) for value in values)


# The sentences of a statement: every name that a module uses has a text, and every text is used.

FOLDER = ROOT / "agedp_data/statement"
USED = re.compile(r'\b(NOTES|FACTS|WORDS)\.(?:(?:several|by_key)\(["\'](\w+)["\']\)|([a-z]\w*))')
SECTIONS = {"NOTES": "notes", "FACTS": "facts", "WORDS": "markdown"}


def test_the_texts_of_a_statement_are_those_that_it_uses() -> None:
    texts = tomllib.loads((FOLDER / "texts.toml").read_text(encoding="utf-8"))
    sources = chain(FOLDER.glob("*.py"), (ROOT / "pipelines/agedp").rglob("*.py"))
    matches = (match for source in sources for match in USED.finditer(source.read_text(encoding="utf-8")))
    used = {(SECTIONS[of], listed or name) for of, listed, name in (match.groups() for match in matches)}
    assert used == {(section, name) for section, of in texts.items() for name in of}


def test_a_text_that_is_none_is_an_error() -> None:
    with pytest.raises(AttributeError, match="no text 'unknown'"):
        _ = NOTES.unknown
