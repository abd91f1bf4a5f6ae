"""A run file is understood completely, or refused with one line that says where, what and what would help."""

from __future__ import annotations

import json
import os
import re
import tomllib
from decimal import Decimal
from pathlib import Path

import jsonschema
import pytest

from agedp_data.config import contract_part, load, parse
from agedp_data.config.amendment import amendment
from agedp_data.config.contract import comparable
from agedp_data.config.loading import from_keys, run_file_schema
from agedp_data.errors import ContractChanged, RunFileError
from agedp_data.ledger import ContractRecord
from agedp_data.ledger.ledger_reader import require_same_contract
from agedp_data.ledger.records import canonical

EXAMPLES = Path(__file__).parents[3] / "docs" / "examples"
TEXTS = {path.stem: path.read_text("utf-8") for path in EXAMPLES.glob("*.toml")}
LEDGER, FILES = "sqlite:///out/ledger.sqlite", '["incoming/*.csv"]'


def read(text: str):
    return parse(text, base=Path("/house"), name="r.toml")


def refusal(text: str) -> RunFileError:
    with pytest.raises(RunFileError) as caught:
        read(text)
    return caught.value


def replaced(example: str, old: str, new: str) -> str:
    """The example with one place changed."""
    assert old in TEXTS[example]
    return TEXTS[example].replace(old, new, 1)


def without_model(example: str) -> str:
    """The example up to its model, which comes after everything else but [compare] and [engine]."""
    return TEXTS[example].partition("\n[model]")[0] + "\n"


def test_a_declared_model_is_a_curve_or_a_kernel():
    text = without_model("london-live") + '[model]\nsource = "declared"\nbasis = "open data"\nassume = "markov"\n'
    curve, kernel = 'curve = "c.csv"\n', 'kernel = "k.csv"\n'
    by_distance = text.replace('= "tight"', '= "total_variation"')
    for model, message in (
        (text + curve, '[promise] method = "tight": needs a chain; a declared curve allows'),
        (text + curve + kernel, "takes exactly one of curve and kernel"),
        (text, "takes exactly one of curve and kernel"),
        (text.replace('secret          = "day"', 'secret = "half-hour"') + kernel, 'needs [model] step = "half-hour"'),
        (by_distance + curve + 'step = "day"', '[model] step = "day": is the step of a kernel'),
    ):
        assert message in str(refusal(model))
    found = read(text + kernel).model
    assert (found.kernel, found.tightest_method, found.step) == ("/house/k.csv", "tight", "day")
    assert read(text + kernel + 'step = "half-hour"').model.step == "half-hour"
    assert read(by_distance + curve).model.methods == ("total_variation",)


@pytest.mark.parametrize(
    ("written", "counted"),
    [
        ("0.8999999999999999", "0.899999999"),  # 1 - 0.1, in some order of adding
        (repr(0.1 + 0.2), "0.3"),
        (repr(365 * 1.1), "401.5"),
        (repr(0.57 * 100), "56.999999999"),  # never up to 57: that would be a larger budget
        ("7.1234567891", "7.123456789"),
        ("0.29", "0.29"),
        ("1.500000000000000000000", "1.5"),
    ],
)
def test_an_epsilon_counts_with_nine_decimals_rounded_down(written, counted):
    text = replaced("london", "epsilon_total   = 182.5", f"epsilon_total   = {written}").replace("= 0.5", "= 0.1")
    for run in (read(text), from_keys(tomllib.loads(text, parse_float=Decimal), base=Path("/house"), name="r.toml")):
        assert contract_part(run, model=None)["promise"]["epsilon_total"] == counted
        assert run.notion.total_cap == int(Decimal(counted) * 10**9)
        expected = [f"r.toml: [promise] epsilon_total = {written}: counts as {counted}, "]
        expected = expected if Decimal(written) != Decimal(counted) else []
        assert [line[: line.index("because")] for line in run.roundings] == expected
    assert read(text.replace(written, counted)).roundings == ()


@pytest.mark.parametrize("written", ["0.0000000009999999999999", "1e-300", "1e-999999999"])
def test_an_epsilon_that_rounds_down_to_nothing_is_refused(written):
    text = replaced("london", "epsilon_total   = 182.5", f"epsilon_total   = {written}")
    assert "is below 0.000000001, the smallest amount" in str(refusal(text))


def test_an_earlier_contract_with_more_decimals_means_the_same():
    run = read(replaced("london", "epsilon_total   = 182.5", "epsilon_total   = 182.4999999999999"))
    contract = contract_part(run, model=None)
    earlier = {**contract, "promise": {**contract["promise"], "epsilon_total": "182.4999999999999"}}
    registered = ContractRecord("homes", canonical(earlier), at="2026-01-01")  # as 0.2 wrote it
    assert require_same_contract(registered, contract) is registered
    assert amendment(*comparable(earlier, contract)) == ()
    other = {**contract, "promise": {**contract["promise"], "epsilon_total": "182.499999998"}}
    with pytest.raises(ContractChanged, match=r"epsilon_total"):
        require_same_contract(registered, other)


def test_a_move_cannot_exceed_the_clamp():
    text = TEXTS["london"].partition("[promise]")[0] + (
        '[promise]\nnotion = "neighbourhood"\ndelta_kwh = 51\nwindow_days = 7\nepsilon_per_window = 1\n'
        'spend = "per-request"\nmax_day_epsilon = 1\nepsilon_total = "unlimited"\n'
    )
    assert "[promise] delta_kwh = 51: exceeds clamp_kwh of [series.daily_mean]" in str(refusal(text))


def test_a_pipe_or_a_device_is_refused_and_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "r.toml")  # opening it waits for a writer
    for path in (tmp_path / "r.toml", Path("/dev/zero")):
        with pytest.raises(RunFileError, match=rf"^{path.name}: is a pipe or a device, not a file"):
            load(path)


def test_a_byte_order_mark_and_line_ends_of_windows_are_read(tmp_path):
    (tmp_path / "r.toml").write_bytes(b"\xef\xbb\xbf" + TEXTS["london"].replace("\n", "\r\n").encode())
    assert load(tmp_path / "r.toml").population.min_households == 30


COLUMNS = """
dataset = "long"
[input.columns]
household = "meter_id"
time = "read_at"
stamp = "end"
zone = "UTC"
day_zone = "Europe/London"
energy = "kwh"
unit = "kWh"
"""
LONG = TEXTS["london"].replace('dataset = "london"', "").replace(f"files   = {FILES}", f"files = {FILES}{COLUMNS}")


def with_format(pattern: str) -> str:
    return LONG.replace('stamp = "end"', f'stamp = "end"\ntime_format = "{pattern}"')


def test_a_time_format_has_everything_that_names_a_half_hour():
    assert 'time_format = "%d/%m/%Y": must be "iso", or a pattern such as' in str(refusal(with_format("%d/%m/%Y")))
    for pattern in ("%m-%d %H:%M", "%Y-%m-%d %I:%M", "%d%d", "%Q", "yyyy-mm-dd"):
        assert "has year, month, day and minute" in str(refusal(with_format(pattern)))
    for pattern in ("iso", "%d.%m.%y %I:%M %p", "%Y%m%d%H%M", "%d %b %Y %H:%M", "%Y-%m-%dT%H:%M:%S%z"):
        read(with_format(pattern))
    text = with_format("%Y-%m-%dT%H:%M%z")
    assert read(text).input.named_columns["zone"] == "UTC"
    other = str(refusal(text.replace('zone = "UTC"', 'zone = "Europe/London"', 1)))
    assert '[input.columns] zone = "Europe/London": must be "UTC" where' in other


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (LEDGER, "postgresql://u:geheim@h/d"),
        (LEDGER, "postgresql://u@h/d?password=geheim"),
        (LEDGER, "mysql://u:geheim@h/d"),
        (LEDGER, "postgresql://u:geheim@[h/d"),
        (FILES, '["s3://u:geheim@h/d"]'),
        (FILES, '["s3://u:geheim/er@h/d"]'),
        ('"out/release"', '"s3://u:geheim@h/d"'),
        ('"roster.csv"', '"zip://roster.csv::https://u:geheim@h/d.zip"'),
        ('"roster.csv"', '"zip://roster.csv::https://h/d.zip?token=geheim"'),
        ('"out/confidential"', '"s3://me:geheim@bucket/house"'),
    ],
)
def test_a_password_is_refused_and_repeated_nowhere(old, new):
    error = refusal(replaced("london", old, new))
    assert "geheim" not in str(error) + error.private + repr(error)


@pytest.mark.parametrize("marker", ["https://h/{day}.done?sig=geheim", "https://geheim@h/{day}.done"])
def test_a_marker_is_published_so_its_url_lets_nobody_in(marker):
    error = refusal(replaced("london-live", "s3://meters/incoming/{day}.done", marker))
    assert "published with the promise" in str(error)
    assert "geheim" not in str(error) + error.private + repr(error)
    public = marker.replace("geheim@", "").partition("?")[0]
    assert read(replaced("london-live", "s3://meters/incoming/{day}.done", public)).schedule.marker == public


def test_the_public_text_names_no_input_file_and_the_private_one_does():
    error = refusal(replaced("london", FILES, '["MAC000002.csv", 5]'))
    assert "MAC000002" not in str(error)
    assert "MAC000002" in error.private


def test_paths_are_relative_to_the_run_file_and_urls_stay(tmp_path):
    run, live = read(TEXTS["london"]), read(TEXTS["london-live"])
    assert run.input.files == ("/house/incoming/*.csv",)
    assert (run.output.release, run.population.roster) == ("/house/out/release", "/house/roster.csv")
    assert run.output.ledger == "sqlite:////house/out/ledger.sqlite"
    assert live.input.files == ("s3://meters/incoming/*.csv*",)
    assert live.output.confidential == "/srv/agedp/confidential/london"
    bracketed = parse(TEXTS["london"], base=Path("/meters[1]"), name="r.toml")  # its folder's name is no pattern
    assert bracketed.input.files == ("/meters[[]1]/incoming/*.csv",)


SCHEMA = jsonschema.Draft202012Validator(run_file_schema())


def as_editors_see(text: str) -> object:
    """A run file as JSON; dates are text."""
    return json.loads(json.dumps(tomllib.loads(text), default=str))


@pytest.mark.parametrize("example", sorted(EXAMPLES.glob("*.toml")), ids=lambda path: path.stem)
def test_every_example_is_valid_and_refers_to_headings(example):
    text = example.read_text("utf-8")
    SCHEMA.validate(as_editors_see(text))
    pages = [page.read_text("utf-8") for page in EXAMPLES.parent.glob("*.md")]
    headings = [line.lstrip("# ") for page in pages for line in page.splitlines()]
    assert all(place in headings for place in re.findall(r'see "([^"]+)" in the documents', text))


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
    text = re.sub(r" +=", " =", TEXTS["london"])
    assert old in text
    assert not SCHEMA.is_valid(as_editors_see(text.replace(old, new, 1)))
