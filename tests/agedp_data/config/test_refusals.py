"""What a run file cannot say is one line: keys, periods, places of a witness."""

# ruff: noqa: E501 - a table: one line per way of being wrong

from __future__ import annotations

from pathlib import Path

import pytest

from agedp_data.config import contract_part, parse
from agedp_data.config.amendment import amendment
from agedp_data.config.contract import comparable
from agedp_data.errors import RunFileError
from tests.minimal import run_file

# Every way in which a run file can be wrong gives one line: table, key, value, what and what would help.

EXAMPLES = Path(__file__).parents[3] / "docs" / "examples"
TEXTS = {path.stem: path.read_text("utf-8") for path in EXAMPLES.glob("*.toml")}
NOTION = 'notion          = "classical"'
LEDGER = "sqlite:///out/ledger.sqlite"
FILES = '["incoming/*.csv"]'
REFUSED = [
    # unknown
    ("london", "[schedule]", "[schedul]", "unknown table [schedul]; did you mean 'schedule'?"),
    # not in force
    ("london", NOTION, NOTION + '\nspend = "even"', "[promise] has no key 'spend' for notion = \"classical\"; it goes with notion = \"w-event\""),
    ("london", NOTION, NOTION + "\nage_days = 2", "[promise] age_days = 2: is not used by \"classical\" in an archive"),
    ("london", "clamp_kwh = 50", "clamp_kwh = 50\nbins_kwh = [0, 50]", "[series.daily_mean] has no key 'bins_kwh' for statistic = \"mean\"; it goes with"),
    ("london", 'dataset = "london"', 'dataset = "london"\ncategories = ["GC"]', "[input] has no key 'categories' for dataset = \"london\"; it goes with dataset = \"ausgrid\""),
    ("london", 'dataset = "london"', 'dataset = "london"\nfile_order = "name"', '[input] file_order = "name": is used by corrections = "later-file" only'),
    ("london-live", 'wait_for     =', "# wait_for =", "[schedule] give_up_days = 14: is used with wait_for only"),
    ("london-live", "cron         =", "# cron =", '[schedule] zone = "Europe/London": is the zone of the cron line'),
    ("london-live", '"sampling-bound"', '"plug-in"', '[model] level = 0.95: is not used by confidence = "plug-in"'),
    ("london-live", 'source     = "estimated"', 'source = "declared"', "[model] has no key 'file' for source = \"declared\"; it goes with source = \"estimated\""),
    ("ausgrid", '"optimal"', '"renewal"', '[promise] horizon_days = 365: is used by schedule = "optimal", "constant" and "classical" only'),
    ("ausgrid", "rate          =", "alpha =", "[promise] has no key 'alpha' for notion = \"discounted\"; write rate"),
    ("ausgrid-full", '["GC", "CL"]', '["GC"]', '[input] missing_controlled_load = "zero": is used with "GC" and "CL" only'),
    # missing
    ("london", 'dataset = "london"', 'dataset = "long"', "[input] columns: is missing"),
    ("london", 'mode      = "archive"', 'mode = "rehearsal"', "[promise] age_days: is missing"),
    ("london-live", "level      = 0.95", "", '[model] level: is missing; confidence = "sampling-bound" needs one'),
    ("ausgrid", "horizon_days  = 365", "", '[promise] horizon_days: is missing; schedule = "optimal"'),
    # of the wrong kind
    ("london", NOTION, 'notion = "clasical"', "[promise] notion = \"clasical\": is not known; did you mean 'classical'?"),
    # impossible
    ("london", "clamp_kwh = 50", "clamp_kwh = 50\nmissing_kwh = 51", "[series.daily_mean] missing_kwh = 51: must not exceed clamp_kwh"),
    ("london", "clamp_kwh = 50", "clamp_kwh = 50\nmax_missing = 46", "[series.daily_mean] max_missing = 46: must be at most 45"),
    ("london", "clamp_kwh = 50", "clamp_kwh = 50\nshare = 0.5", "[series.daily_mean] share = 0.5: the shares add up to 0.5, not 1"),
    ("london", "clamp_kwh = 50", "clamp_kwh = [30, 75]", "[series.daily_mean] share: is missing; write one share per clamp, such as share = [0.77, 0.23]"),
    ("london", "clamp_kwh = 50", "clamp_kwh = [30, 75]\nshare = 0.7", "[series.daily_mean] share = 0.7: must be a list of one share per clamp, because clamp_kwh is a list"),
    ("london", "clamp_kwh = 50", "clamp_kwh = [30, 50, 75]\nshare = [0.5, 0.5]", "[series.daily_mean] share = [0.5, 0.5]: must have 3 numbers, one per clamp, such as [0.7, 0.2, 0.1]"),
    ("london", "clamp_kwh = 50", "clamp_kwh = [30]\nshare = [1]", "[series.daily_mean] clamp_kwh = [30]: must be one number, or a list of 2 to 4 clamps such as [30, 75]"),
    ("london", "clamp_kwh = 50", "clamp_kwh = [1, 2, 3, 4, 5]\nshare = [1]", "clamp_kwh = [1, 2, 3, 4, 5]: must be one number, or a list of 2 to 4 clamps"),
    ("london", "clamp_kwh = 50", "clamp_kwh = [75, 30]\nshare = [0.7, 0.3]", "[series.daily_mean] clamp_kwh = [75, 30]: must increase from each number to the next"),
    ("london", "clamp_kwh = 50", "clamp_kwh = [0, 30]\nshare = [0.7, 0.3]", "[series.daily_mean] clamp_kwh = [0, 30]: must be above 0"),
    ("london", "clamp_kwh = 50", "clamp_kwh = [30, 75]\nshare = [0.7, 0.4]", "[series.daily_mean] share = [0.7, 0.4]: the shares add up to 1.1, not 1"),
    ("london", "clamp_kwh = 50", "clamp_kwh = [30, 75]\nshare = [1, 0]", "[series.daily_mean] share = [1, 0]: each share must be above 0 and at most 1"),
    ("london", "clamp_kwh = 50", "clamp_kwh = [30, 75]\nshare = [1.2, -0.2]", "[series.daily_mean] share = [1.2, -0.2]: each share must be above 0 and at most 1"),
    ("london", "clamp_kwh = 50", "clamp_kwh = []\nshare = []", "[series.daily_mean] clamp_kwh = []: must be one number, or a list of 2 to 4 clamps such as [30, 75]"),
    ("london", "clamp_kwh = 50", "clamp_kwh = [30, 75]\nshare = [0.7, 0.3]\nmissing_kwh = 76", "[series.daily_mean] missing_kwh = 76: must not exceed the last clamp_kwh"),
    ("london", "clamp_kwh = 50", "clamp_kwh = [30, 75]\nshare = [0.7, 0.3]\nabove_kwh = 3", "[series.daily_mean] has no key 'above_kwh' for statistic = \"mean\""),
    ("london", "clamp_kwh = 50", "clamp_kwh = [30, 75]\nshare = [0.7, 0.3]\nby = 'from'", "[series.daily_mean] by = \"from\": must be a group column of the roster"),
    ("london", "clamp_kwh = 50", "clamp_kwh = [30, 75]\nshare = [0.7, 0.3]\nvalues = 'states'", "[series.daily_mean] values = \"states\": needs public edges; list them in a [model] with source = \"estimated\""),
    ("london", "clamp_kwh = 50", "clamp_kwh = 50\nshare = [1]", "[series.daily_mean] share = [1]: must be one number, because clamp_kwh is one number"),
    ("london", "clamp_kwh = 50", "clamp_kwh = 50\nby = 'area'\nshare = [1]", "[series.daily_mean] share = [1]: must be one number, because clamp_kwh is one number and by is one column"),
    ("london", "clamp_kwh = 50", "clamp_kwh = [30, 75]\nshare = [0.7, 0.3]\nby = ['feeder', 'area']", "must be one column, because clamp_kwh is a list: layers have no levels"),
    ("london", 'statistic = "mean"\nclamp_kwh = 50', 'statistic = "profile"\nclamp_kwh = 50\nhalf_hour_clamp_kwh = 4\nevery = "month"', '[series.daily_mean] every = "month": must be "day" or "weekday-month", which has'),
    ("london", 'statistic = "mean"\nclamp_kwh = 50', 'statistic = "profile"\nclamp_kwh = 50\nhalf_hour_clamp_kwh = 4\nevery = "month"', "derives those of months at no loss (profile_by_month.parquet)"),
    ("london", 'statistic = "mean"\nclamp_kwh = 50', "statistic = \"coverage\"\nby = 'area'\nshare = [1]", "share = [1]: must be one number, because by is one column"),
    ("london", "[series.daily_mean]", '[series."use/1"]', "[series.use/1]: must be named by letters, digits, _ and -, 64 at most"),
    ("london-live", "clamp_kwh = 50\nbins_kwh", "clamp_kwh = [30, 50]\nbins_kwh", "clamp_kwh = [30, 50]: must be one number; a list of clamps goes with statistic = \"mean\""),
    # levels
    ("london", "clamp_kwh = 50", 'clamp_kwh = 50\nby = ["feeder"]', '[series.daily_mean] by = ["feeder"]: must be one column, or a list of 2 to 6, the finest first'),
    ("london", "clamp_kwh = 50", 'clamp_kwh = 50\nby = ["a", "b", "c", "d", "e", "f", "g"]', "must be one column, or a list of 2 to 6, the finest first"),
    ("london", "clamp_kwh = 50", "clamp_kwh = 50\nby = []", "[series.daily_mean] by = []: must be one column, or a list of 2 to 6"),
    ("london", "clamp_kwh = 50", 'clamp_kwh = 50\nby = ["feeder", 3]', "must be one column, or a list of 2 to 6"),
    ("london", "clamp_kwh = 50", 'clamp_kwh = 50\nby = ["area", "area"]', "a list of 2 to 6 different columns, the finest first"),
    ("london", "clamp_kwh = 50", 'clamp_kwh = 50\nby = ["feeder", "to"]', "must be a group column of the roster"),
    ("london", "clamp_kwh = 50", 'clamp_kwh = 50\nby = ["feeder", "12"]', "not by digits alone: '12'"),
    ("london", "clamp_kwh = 50", 'clamp_kwh = 50\nby = ["feeder", "sub station"]', "must be named by letters, digits, _ and -"),
    ("london", "clamp_kwh = 50", 'clamp_kwh = 50\nby = ["feeder", "a/b"]', "must be named by letters, digits, _ and -"),
    ("london", "clamp_kwh = 50", 'clamp_kwh = 50\nby = ["feeder", "area"]', "[series.daily_mean] share: is missing; write one share per level, such as share = [0.6, 0.4]"),
    ("london", "clamp_kwh = 50", 'clamp_kwh = 50\nby = ["feeder", "area"]\nshare = 1', "[series.daily_mean] share = 1: must be a list of one share per level"),
    ("london", "clamp_kwh = 50", 'clamp_kwh = 50\nby = ["feeder", "area"]\nshare = [1]', "[series.daily_mean] share = [1]: must have 2 numbers, one per level, such as [0.6, 0.4]"),
    ("london", "clamp_kwh = 50", 'clamp_kwh = 50\nby = ["feeder", "area"]\nshare = [0.6, 0.5]', "the shares add up to 1.1, not 1"),
    ("london", "clamp_kwh = 50", 'clamp_kwh = 50\nby = ["feeder", "area"]\nshare = [0.6, -0.1]', "must be above 0 and at most 1"),
    ("london", "clamp_kwh = 50", 'clamp_kwh = 50\nby = "area"\nshare = [0.6, 0.4]', "[series.daily_mean] share = [0.6, 0.4]: must be one number"),
    # bounds and places
    ("london", "epsilon_per_day = 0.5", "epsilon_per_day = 0.6", "[promise] epsilon_per_day = 0.6: is more than max_day_epsilon"),
    ("london", "epsilon_total   = 182.5", "epsilon_total = 0.25", "[promise] epsilon_total = 0.25: is less than one day spends"),
    ("london", "epsilon_total   = 182.5", 'epsilon_total = 10\ndelta = "few"', '[promise] delta = "few": must be a probability, such as "1e-6"'),
    ("london", "epsilon_total   = 182.5", "epsilon_total = 10\ndelta = 0.034", "[promise] delta = 0.034: exceeds 1/min_households = 1/30: the bounds would permit"),
    ("london", "epsilon_total   = 182.5", 'epsilon_total = "unlimited"\ndelta = 1e-6', "[promise] delta = 0.000001: applies to no bound: epsilon_total"),
    ("london", "last_day  = 2013-12-31", "last_day = 2012-12-31", "[schedule] last_day = 2012-12-31: lies before first_day = 2013-01-01; write a later day"),
    ("london", '"out/confidential"', '"out/release/c"', "[output] confidential: lies in the release folder"),
    ("london", '"out/confidential"', '"out"', "[output] release: lies in the confidential folder"),
    ("london", '"roster.csv"', '"out/release/../release/r.csv"', "[population] roster: lies in the release folder"),
    ("london", "out/ledger.sqlite", "out/release/ledger.sqlite", "[output] ledger: lies in the release folder"),
    ("london", "[promise]", "[compare]\ndelta_kwh = [2, 1]\n[promise]", "[compare] delta_kwh = [2, 1]: must increase"),
    ("london-live", "share     = 0.3", "share = 0.31", "[series.daily_mean] share = 0.7: the shares add up to 1.01, not 1"),
    ("london-live", "30, 50]", "30, 40]", "must end with clamp_kwh = 50"),
    ("london-live", "[0, 2, 4", "[1, 2, 4", "must begin with 0"),
    ("london-live", "# risk          = 0.5", "risk = 0.5", "[promise] epsilon_per_day = 0.1: stands beside risk"),
    ("london-live", "2025-02-01, 2026-01-31", "2025-02-01, 2026-03-01", "[model] period = [2025-02-01, 2026-03-01]: must end before first_day"),
    ("london-live", '"quantile"', "[1, 2]", "[model] edges = [1, 2]: must list 11 values for 12 states"),
    ("london-live", 'step       = "half-hour"', 'step = "day"', '[model] chain = "cyclic": has a kernel for each half-hour of the day; it needs step = "half-hour"'),
    ("london-live", '= "tight"', '= "spectral"', '[promise] method = "spectral": rests on the spectrum of one kernel; [model] chain = "cyclic" allows "tight" and'),
    ("london-live", "{day}", "day", "[schedule] wait_for: must contain {day}"),
    ("ausgrid", "rate          = 0.99", "rate = 1", '[promise] rate = 1: must lie between 0 and 1 for discount = "exponential"'),
    ("ausgrid-full", '["GC", "CL"]', '["GC", "GG"]', '[input] categories = ["GC", "GG"]: adds generation "GG" to use'),
    ("ausgrid-full", 'assume     = "markov"', 'assume = "curve"', '[model] assume = "curve": must be "markov" for notion = "temporal"'),
    ("london", NOTION, 'Notion = "classical"', "[promise] notion: is missing and has no default; write it out in place of 'Notion'"),
    ("london-live", "30 6 * * *", "60 6 * * *", '[schedule] cron = "60 6 * * *": has 60 in place of its minute, which is from 0 to 59'),
    ("london-live", 'zone         = "Europe/London"', 'zone = "europe/lodnon"', 'is not a known time zone; did you mean "Europe/London"?'),
    ("london-live", "[1, 2, 3, 7, 14, 28]", "[1, 100001]", "[model] ages_days = [1, 100001]: must be whole days from 1 to 100000"),
    ("london-live", '= "tight"', '= "reversibilised"', 'rests on the spectrum of one kernel; [model] chain = "cyclic" allows'),
    ("london", '"out/confidential"', '"s3://bucket/house"', "[output] confidential: must be a path: locks, renames and owner-only permissions keep what lies there safe"),
    ("london-live", '"/srv/agedp/confidential/london/model-2026a"', '"file:///srv/house"', "[model] file: must be a path: locks"),
    # the ledger
    ("london", LEDGER, "mysql://h/d", "[output] ledger: must begin with sqlite:/// or postgresql://"),
    ("london", LEDGER, "sqlite://", "[output] ledger: must be sqlite:/// and the path of a file"),
    ("london", LEDGER, "postgresql://h", "[output] ledger: names no database"),
]  # fmt: skip


@pytest.mark.parametrize(("example", "old", "new", "what"), REFUSED)
def test_what_is_wrong_is_one_line_with_table_key_and_value(example, old, new, what):
    assert old in TEXTS[example]
    with pytest.raises(RunFileError) as caught:
        parse(TEXTS[example].replace(old, new, 1), base=Path("/house"), name="r.toml")
    for text in (str(caught.value), caught.value.private):
        assert text.startswith("r.toml: ")
        assert "\n" not in text
    assert what in str(caught.value)


@pytest.mark.parametrize(
    ("every", "first_day", "last_day"),
    [
        ("week", "2013-01-01", "2013-01-12"),  # a Tuesday to a Saturday
        ("month", "2013-01-02", "2013-02-27"),
        ("year", "2013-01-01", "2013-12-30"),
    ],
)
def test_a_period_that_never_ends_within_the_schedule_is_refused(every, first_day, last_day):
    text = TEXTS["london"].replace("clamp_kwh = 50", f'clamp_kwh = 50\nevery = "{every}"')
    whole = text.replace("2013-01-01", "2012-12-31" if every == "week" else "2013-01-01")
    assert parse(whole, base=Path("/house"), name="r.toml").series["daily_mean"].every == every
    text = text.replace("2013-01-01", first_day).replace("2013-12-31", last_day)
    with pytest.raises(
        RunFileError, match=f'every = "{every}": has no whole period between {first_day} and {last_day}'
    ):
        parse(text, base=Path("/house"), name="r.toml")


@pytest.mark.parametrize(
    ("left_out", "ending"),
    [
        (("max_day", "epsilon_total"), "[promise] max_day_epsilon: is missing and has no default; write it out (and [promise] epsilon_total)"),
        (("name", "roster", "min_households", "clamp_kwh", "epsilon_per", "max_day", "epsilon_total"),
             "(and [population] roster, min_households, [series.daily_mean] clamp_kwh, [promise] max_day_epsilon, epsilon_total, epsilon_per_day)"),
    ],
)  # fmt: skip
def test_every_missing_key_is_named_in_one_line(left_out, ending):
    kept = [line for line in TEXTS["london"].splitlines() if not line.startswith(left_out)]
    with pytest.raises(RunFileError) as caught:
        parse("\n".join(kept), base=Path("/house"), name="r.toml")
    assert str(caught.value).endswith(ending)


# [output] witness: where it may lie, what the contract keeps of it, and how it is added and removed.

FOLDERS = {"release": "out/release", "confidential": "out/inside", "ledger": "sqlite:///book/ledger.sqlite"}
SERVER = "postgresql://agedp@db.internal"
ON_SERVER = {**FOLDERS, "ledger": f"{SERVER}/london"}
APART = "name a place that no backup puts back together with the ledger"
A_PATH = "must be a path, or begin with s3://"


def read(output, witness):
    return parse(run_file(output={**output, "witness": witness}), base=Path("/srv/agedp"), name="run.toml")


@pytest.mark.parametrize(
    ("output", "witness", "resolved"),
    [
        (FOLDERS, "far/w", "/srv/agedp/far/w"),
        (FOLDERS, "../elsewhere/w", "/srv/agedp/../elsewhere/w"),
        (FOLDERS, "s3://bucket/w", "s3://bucket/w"),
        (FOLDERS, f"{SERVER}/london#row_1", f"{SERVER}/london#row_1"),
        (ON_SERVER, "postgresql://agedp@other.internal/london", "postgresql://agedp@other.internal/london"),
        (ON_SERVER, f"{SERVER}:5433/london", f"{SERVER}:5433/london"),
        (ON_SERVER, f"{SERVER}/witness", f"{SERVER}/witness"),
    ],
)
def test_a_witness_lies_wherever_the_ledger_does_not(output, witness, resolved):
    assert read(output, witness).output.witness == resolved


@pytest.mark.parametrize(
    ("output", "witness", "message"),
    [
        (FOLDERS, "book/w", f"lies in the ledger's folder; {APART}"),
        (FOLDERS, "far/../book/below/w", f"lies in the ledger's folder; {APART}"),
        (FOLDERS, "out/release/w", f"lies in the release folder; {APART}"),
        (FOLDERS, "/srv/agedp/out/inside/w", f"lies in the confidential folder; {APART}"),
        ({**FOLDERS, "release": "s3://b/out"}, "s3://b/out/w", f"lies in the release folder; {APART}"),
        (ON_SERVER, "postgresql+psycopg://me@db.internal:5432/london#w", f"lies in the ledger's database; {APART}"),
        (ON_SERVER, "postgresql:///london?host=db.internal", f"lies in the ledger's database; {APART}"),
        (FOLDERS, "s3://bucket", "must name an object"),
        (FOLDERS, "s3://bucket/w?versionId=1", "must end with the name of the object"),
        (FOLDERS, "postgresql://host", "must name an object"),
        (FOLDERS, "postgresql://host/database#a b", "must name its row behind #"),
        (FOLDERS, "sqlite:///w", A_PATH),
        (FOLDERS, "postgresql://me:secret@host/database", "has a password in it"),
        (FOLDERS, "postgresql://host/database?password=secret", "has a password in it"),
        (FOLDERS, "", "must not be empty"),
    ],
)
def test_another_place_is_refused_in_one_line(output, witness, message):
    with pytest.raises(RunFileError) as error:
        read(output, witness)
    assert "[output] witness" in str(error.value)
    assert message in str(error.value)
    assert "secret" not in f"{error.value}{error.value.private}"
    assert "\n" not in str(error.value)


def test_the_contract_holds_that_a_witness_is_used_not_where():
    without, first, second = (
        contract_part(read(FOLDERS, place), model=None) for place in (None, "far/w", "s3://bucket/w")
    )
    assert "output" not in without
    assert first == second == {**without, "output": {"witness": "required"}, "form": 2, "needs": "0.2"}
    for pair in ((without, first), (first, without)):
        [change] = amendment(*comparable(*pair))
        assert (change.key, change.verdict) == ("output.witness", "allowed")
        assert "without a witness an older ledger" in change.why
    for odd in ('"perhaps"', "1"):
        [change] = amendment(first, {**first, "output": {"witness": odd}})
        assert change.verdict == "refused"
