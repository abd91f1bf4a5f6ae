"""A run file is understood completely, or refused with one line that says where, what and what would help."""

from __future__ import annotations

import re
from decimal import Decimal
from pathlib import Path

import pytest

from agedp_data.config import load, parse
from agedp_data.errors import RunFileError

EXAMPLES = Path(__file__).parents[3] / "docs" / "examples"
TEXTS = {name: (EXAMPLES / f"{name}.toml").read_text("utf-8") for name in ("london", "london-live", "ausgrid")}
TEXTS["ausgrid-full"] = (EXAMPLES / "ausgrid-full.toml").read_text("utf-8")
HOUSE = Path("/house")


def read(text: str):
    return parse(text, base=HOUSE, name="r.toml")


def refusal(text: str) -> RunFileError:
    with pytest.raises(RunFileError) as caught:
        read(text)
    return caught.value


def replaced(example: str, old: str, new: str) -> str:
    """The example with one place changed."""
    assert old in TEXTS[example]
    return TEXTS[example].replace(old, new, 1)


LEDGER = "sqlite:///out/ledger.sqlite"
FILES = '["incoming/*.csv"]'


def without(example: str, table: str) -> str:
    """The example up to the table, which comes after everything else but [compare] and [engine]."""
    return TEXTS[example].partition(f"\n[{table}]")[0] + "\n"


@pytest.mark.parametrize("example", ["london-live", "ausgrid-full"])
def test_a_promise_that_rests_on_a_model_needs_one(example):
    assert re.search(r"notion = .*: needs a \[model\]", str(refusal(without(example, "model"))))


DECLARED = '[model]\nsource = "declared"\nbasis = "open data"\nassume = "markov"\n'


@pytest.mark.parametrize(
    ("model", "what"),
    [
        ('curve = "c.csv"', '[promise] method = "tight": needs a chain; a declared curve allows'),
        ('curve = "c.csv"\nkernel = "k.csv"', "takes exactly one of curve and kernel"),
        ("", "takes exactly one of curve and kernel"),
    ],
)
def test_a_declared_model_is_a_curve_or_a_kernel_and_a_curve_has_no_tight_figure(model, what):
    assert what in str(refusal(without("london-live", "model") + DECLARED + model))


def test_a_declared_curve_goes_with_total_variation_and_a_kernel_with_all_methods():
    text = without("london-live", "model") + DECLARED
    kernel = read(text + 'kernel = "k.csv"').model
    assert (kernel.kernel, kernel.tightest_method) == ("/house/k.csv", "tight")
    text = text.replace('"tight" ', '"total_variation" ')
    curve = read(text.replace('= "tight"', '= "total_variation"') + 'curve = "c.csv"')
    assert curve.model.methods == ("total_variation",)


@pytest.mark.parametrize("chain", ["homogeneous", "cyclic"])
@pytest.mark.parametrize("confidence", ["plug-in", "sampling-bound"])
def test_bounds_by_a_spectrum_go_with_one_kernel_taken_as_counted(chain, confidence):
    text = TEXTS["london-live"].replace('"cyclic"', f'"{chain}"')
    if confidence == "plug-in":
        text = text.replace('"sampling-bound"', '"plug-in"').replace("level      = 0.95", "")
    plain = (chain, confidence) == ("homogeneous", "plug-in")
    for method, allowed in (("total_variation", True), ("spectral", plain), ("reversibilised", plain)):
        other = text.replace('= "tight"', f'= "{method}"')
        if allowed:
            assert method in read(other).model.methods
        else:
            why = 'chain = "cyclic"' if chain == "cyclic" else 'confidence = "sampling-bound"'
            assert str(refusal(other)) == (
                f'r.toml: [promise] method = "{method}": rests on the spectrum of one kernel; [model] {why} allows '
                '"tight" and "total_variation"'
            )


def test_a_declared_kernel_is_of_days_unless_it_says_otherwise_and_a_curve_has_no_step():
    text = without("london-live", "model") + DECLARED + 'kernel = "k.csv"\n'
    assert read(text).model.step == "day"
    assert read(text + 'step = "half-hour"').model.step == "half-hour"
    assert re.search(
        r"needs \[model\] step = \"half-hour\"",
        str(refusal(text.replace('secret          = "day"', 'secret = "half-hour"'))),
    )
    assert re.search(
        r'\[model\] step = "day": is the step of a kernel',
        str(refusal(text.replace("kernel", "curve") + 'step = "day"')),
    )


def test_a_move_cannot_exceed_the_clamp():
    text = TEXTS["london"].partition("[promise]")[0] + (
        '[promise]\nnotion = "neighbourhood"\ndelta_kwh = 51\nwindow_days = 7\nepsilon_per_window = 1\n'
        'spend = "per-request"\nmax_day_epsilon = 1\nepsilon_total = "unlimited"\n'
    )
    assert re.search(r"\[promise\] delta_kwh = 51: exceeds clamp_kwh of \[series\.daily_mean\]", str(refusal(text)))


LONG = """
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


def test_a_long_table_says_its_columns_stamps_zones_and_unit():
    text = TEXTS["london"].replace('dataset = "london"', "").replace("[input]", "[input]", 1)
    files = 'files   = ["incoming/*.csv"]'
    text = text.replace(files, files + LONG)
    columns = read(text).input.columns
    assert (columns.time_format, columns.missing) == ("%Y-%m-%d %H:%M:%S", ("Null", ""))
    for key in ("stamp", "zone", "day_zone", "unit"):
        short = "\n".join(line for line in text.splitlines() if not line.startswith(key + " ="))
        assert re.search(rf"\[input\.columns\] {key}: is missing", str(refusal(short)))
    assert re.search(
        r"\[input\.columns\] has no key 'stmp'; did you mean 'stamp'", str(refusal(text.replace("stamp =", "stmp =")))
    )


def test_the_first_error_is_told_and_the_others_counted():
    text = TEXTS["london"].replace("clamp_kwh = 50", "clamp_kwh = 0").replace("= 182.5", "= 0")
    text = text.replace("min_households = 30", "min_households = 0")
    assert re.search(r"\[population\] min_households = 0: .* \(and 2 more\)$", str(refusal(text)))


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
    ],
)
def test_a_password_is_refused_and_repeated_nowhere(old, new):
    error = refusal(replaced("london", old, new))
    assert "geheim" not in str(error) + error.private + repr(error)


@pytest.mark.parametrize("marker", ["https://h/{day}.done?sig=geheim", "https://geheim@h/{day}.done"])
def test_a_marker_is_published_with_the_promise_so_its_url_lets_nobody_in(marker):
    error = refusal(replaced("london-live", "s3://meters/incoming/{day}.done", marker))
    assert "published with the promise" in str(error)
    assert "geheim" not in str(error) + error.private + repr(error)
    kept = read(
        replaced("london-live", "s3://meters/incoming/{day}.done", marker.replace("geheim@", "").partition("?")[0])
    )
    assert kept.schedule.marker == "https://h/{day}.done"


def test_the_public_text_names_no_input_file_and_the_private_one_does():
    error = refusal(replaced("london", FILES, '["MAC000002.csv", 5]'))
    assert "MAC000002" not in str(error)
    assert "MAC000002" in error.private


def test_a_missing_file_a_folder_and_bytes_that_are_not_utf_8_are_one_line_each(tmp_path):
    with pytest.raises(RunFileError, match=r"^r\.toml: the file does not exist"):
        load(tmp_path / "r.toml")
    with pytest.raises(RunFileError, match=r": is a folder"):
        load(tmp_path)
    (tmp_path / "r.toml").write_bytes(b"version = 1\n# caf\xe9\n")
    with pytest.raises(RunFileError, match=r"^r\.toml: is not UTF-8 text \(line 2\)") as caught:
        load(tmp_path / "r.toml")
    assert str(tmp_path) not in str(caught.value)
    assert str(tmp_path) in caught.value.private


def test_a_byte_order_mark_and_windows_line_ends_are_accepted(tmp_path):
    text = TEXTS["london"].replace("\n", "\r\n")
    (tmp_path / "r.toml").write_bytes(b"\xef\xbb\xbf" + text.encode())
    assert load(tmp_path / "r.toml").population.min_households == 30


def test_paths_are_relative_to_the_run_file_and_urls_stay():
    run = read(TEXTS["london"])
    assert run.input.files == ("/house/incoming/*.csv",)
    assert (run.output.release, run.population.roster) == ("/house/out/release", "/house/roster.csv")
    assert run.output.ledger == "sqlite:////house/out/ledger.sqlite"
    live = read(TEXTS["london-live"])
    assert live.input.files == ("s3://meters/incoming/*.csv*",)
    assert live.output.confidential == "/srv/agedp/confidential/london"


def test_brackets_in_the_name_of_the_folder_are_no_pattern(tmp_path):
    folder = tmp_path / "meters[1]"
    (folder / "incoming").mkdir(parents=True)
    (folder / "incoming" / "a.csv").touch()
    (folder / "r.toml").write_text(TEXTS["london"], "utf-8")
    from glob import glob

    assert glob(load(folder / "r.toml").input.files[0]) == [str(folder / "incoming" / "a.csv")]  # noqa: PTH207


def test_amounts_are_what_was_written_and_energies_whole_watt_hours():
    run = read(replaced("london-live", "clamp_kwh    = 50", "clamp_kwh = 49.999 #"))
    mean, counts = run.series["daily_mean"], run.series["daily_distribution"]
    assert (mean.clamp_wh, mean.missing_wh, counts.bins_wh[:3]) == (49_999, 0, (0, 2000, 4000))
    assert run.input.max_half_hour_wh == 50_000
    assert run.promise.epsilon_per_day == Decimal("0.1")
    assert run.shares == {"daily_mean": Decimal("0.7"), "daily_distribution": Decimal("0.3")}


def test_a_run_file_cannot_be_changed_in_memory():
    run = read(TEXTS["london"])
    with pytest.raises(ValueError, match="frozen"):
        run.promise.epsilon_per_day = Decimal(5)


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ('time_format = "%d/%m/%Y"', 'time_format = "%d/%m/%Y": must be "iso", or a pattern such as'),
        ('time_format = "%m-%d %H:%M"', "has year, month, day and minute"),
        ('time_format = "%Y-%m-%d %I:%M"', "has year, month, day and minute"),
        ('time_format = "%d%d"', "has year, month, day and minute"),
        ('time_format = "%Q"', "has year, month, day and minute"),
        ('time_format = "yyyy-mm-dd"', "has year, month, day and minute"),
    ],
)
def test_a_time_format_has_everything_that_names_a_half_hour(line, what):
    files = 'files   = ["incoming/*.csv"]'
    text = TEXTS["london"].replace('dataset = "london"', "").replace(files, files + LONG + line + "\n")
    assert re.search(re.escape(what), str(refusal(text)))
    for fine in ("iso", "%d.%m.%y %I:%M %p", "%Y%m%d%H%M", "%d %b %Y %H:%M", "%Y-%m-%dT%H:%M:%S%z"):
        read(text.replace(line, f'time_format = "{fine}"'))


def test_stamps_with_their_own_offset_go_with_utc_only():
    files = 'files   = ["incoming/*.csv"]'
    text = TEXTS["london"].replace('dataset = "london"', "").replace(files, files + LONG)
    text = text.replace('stamp = "end"', 'stamp = "end"\ntime_format = "%Y-%m-%dT%H:%M%z"')
    assert read(text).input.named_columns["zone"] == "UTC"
    assert re.search(
        r'\[input.columns\] zone = "Europe/London": must be "UTC" where',
        str(refusal(text.replace('zone = "UTC"', 'zone = "Europe/London"', 1))),
    )
