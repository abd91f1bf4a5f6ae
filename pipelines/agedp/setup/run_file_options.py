"""The options of `agedp init` and `agedp sanitise`: one for every key of a run file that decides something.

An option is written into the run file under its key, and the loader of run files checks it there: an option has no
rule of its own. The table imports nothing, so that the list of options costs nothing. A test compares it with the
models of the run file. A key that only a new notion has needs no line: `notion_options` takes it from the notion, as
soon as a command needs it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal, InvalidOperation
from functools import partial
from typing import Final, Literal

Form = Literal["value", "text", "list", "words", "columns", "where", "value or list", "text or list", "flag", "switch"]
SEVERAL: Final = ("words", "columns", "where")
"""Forms of options that may be given several times."""
Key = tuple[str, str]
"""Table and key of a run file, such as ("promise", "epsilon_per_day")."""

SERIES: Final = "series.daily_mean"
EVERY_DAY: Final = "all"
"""`--period all`: the model is estimated from every day of the files."""

_NUMBER = re.compile(r"[+-]?(\d{1,30}\.?\d{0,30}|\.\d{1,30})([eE][+-]?\d{1,2})?", re.ASCII)
_DATE = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)


@dataclass(frozen=True, slots=True)
class RunFileOption:
    """One option of `agedp init` and `agedp sanitise`.

    Attributes:
        flag: the option on the command line.
        key: the key that it writes, as (table, key).
        metavar: the placeholder of its value in the help, "" for a flag.
        help: one line of help.
        form: how the value is written in TOML; those of `SEVERAL` may be given several times: one column is a text, two
            are a list, and "where" is COLUMN=TEXT. A "flag" publishes the envelope, a "switch" is true.
    """

    flag: str
    key: Key
    metavar: str
    help: str
    form: Form = "value"

    @property
    def name(self) -> str:
        """Return the name of the option as a Python parameter.

        >>> RunFileOption("--age-days", ("promise", "age_days"), "DAYS", "").name
        'age_days'
        """
        return self.flag.removeprefix("--").replace("-", "_")


def _option(table: str, key: str, metavar: str, text: str, form: Form = "value", *, flag: str = "") -> RunFileOption:
    return RunFileOption(flag or "--" + key.replace("_", "-"), (table, key), metavar, text, form)


def _column(key: str, metavar: str, text: str, form: Form = "text", *, flag: str = "") -> RunFileOption:
    return _option("input.columns", key, metavar, f"long table: {text}", form, flag=flag)


def _model(key: str, metavar: str, text: str, form: Form = "value", *, flag: str = "") -> RunFileOption:
    return _option("model", key, metavar, f"model: {text}", form, flag=flag)


_input, _promise, _schedule = partial(_option, "input"), partial(_option, "promise"), partial(_option, "schedule")
_output, _series = partial(_option, "output", form="text"), partial(_option, SERIES)

OPTIONS: Final[tuple[RunFileOption, ...]] = (
    _input("dataset", "NAME", "layout of the files: london, ausgrid, nem12 or long; read off the header"),
    _input("categories", "LIST", "ausgrid: rows that add up to a household's use, such as GC,CL", "list"),
    _input("missing_controlled_load", "RULE", "ausgrid: GC without CL: zero or missing"),
    _input("suffixes", "LIST", "nem12: channels that add up to a household's use, such as E1,E2, or E*", "list"),
    _input("corrections", "RULE", "conflicting readings from two files: set-aside or later-file"),
    _input("file_order", "RULE", "which file is the later one: name or modified"),
    _input("interval_minutes", "MINUTES", "long table: minutes between readings; 30 if left out"),
    _input("max_half_hour_kwh", "KWH", "a reading above this is rejected"),
    _input("max_rejected_share", "P", "a first run that rejects more of the rows is refused"),
    _input("preflight", "RULE", "files that make a first release meaningless: refuse or report"),
    _input(
        "accept",
        "NAME",
        "accept a finding about the files that refuses a first release, such as negative; may be repeated",
        "words",
        flag="--accept-finding",
    ),
    _input(
        "read_off",
        "KEY",
        "long table: key of the columns that was chosen by looking at readings; may be repeated",
        "words",
    ),
    _column(
        "household",
        "COLUMN",
        "the column that names the household; file:meter-*.csv, line:2, or * for every column",
        flag="--household-column",
    ),
    _column(
        "time",
        "COLUMN",
        "the column of the timestamp; twice for date and time of day, or date and period",
        "columns",
        flag="--time-column",
    ),
    _column(
        "energy",
        "COLUMN",
        "the column of the energy; * for every column; twice for first and last of a row per day",
        "columns",
        flag="--energy-column",
    ),
    _column("time_format", "FORMAT", "format of the timestamps: a strptime pattern, iso, epoch or epoch-ms"),
    _column("stamp", "SIDE", "a timestamp is the start or the end of its interval"),
    _column("zone", "ZONE", "time zone of the timestamps"),
    _column("day_zone", "ZONE", "time zone whose midnight ends a day"),
    _column("unit", "UNIT", "unit of the energy column: kWh, Wh, kW or W"),
    _column("missing", "LIST", "texts that mean a missing reading, such as NA,-", "list"),
    _column("separator", "MARK", "separator of the columns: a comma, a semicolon, a tab or |; read off the header"),
    _column("decimal", "MARK", "decimal mark of the energies: a point or a comma; read off the rows"),
    _column("thousands", "MARK", "mark between the thousands of an energy; none if left out"),
    _column("encoding", "NAME", "utf-8, latin-1, cp1252 or utf-16; read off the first bytes"),
    _column("skip_lines", "N", "lines before the header; read off the first lines", "value"),
    _column("period_minutes", "MINUTES", "the second time column is the number of a period of so long", "value"),
    _column("first_period", "N", "number of the period that begins at midnight: 0 or 1; else 1", "value"),
    _column("where", "COLUMN=TEXT", "rows that are read, such as register=E1; may be repeated", "where"),
    _column("add", "COLUMN", "tells a household's meters or channels apart, whose energies are added up"),
    _column("negative", "RULE", "negative energies: reject, zero, or net (a day's sum below 0 counts as 0)"),
    _column("repeated", "RULE", "a half-hour that the clock shows twice: passes (two rows) or sum", flag="--repeated"),
    _column("ignore", "LIST", "columns of a wide table that are no household's", "list", flag="--ignore-columns"),
    _output("title", "TEXT", "name of the release, for people"),
    _output("source", "TEXT", "attribution of the data; it travels with the release"),
    _output("licence", "TEXT", "licence of the release"),
    _output("contact", "TEXT", "contact for questions about the release"),
    _output("household_register", "URL", "household register that several folders or machines share"),
    _output("witness", "PLACE", "confirms the ledger's head from another disk, or s3://"),
    _option("output", "interval", "P", "coverage of the published noise interval", flag="--noise-interval"),
    _output("layout", "LAYOUT", "files of the release: single (a file for each table) or monthly (one for each month)"),
    _option("output", "averages_by", "LIST", "derived averages that are files: month, or week,month,year", "list"),
    _option("population", "name", "NAME", "name of the population", "text", flag="--population"),
    _option("population", "meters", "FILE", "file meter,household,from,to: the ids of the files are meters", "text"),
    _option("population", "min_households", "N", "a day with fewer households on the roster is never released"),
    _option(
        "population", "shared_households", "RULE", "households that other releases count too: count or refuse", "text"
    ),
    _schedule("mode", "MODE", "archive (every day now), rehearsal (simulated clock) or live; archive if left out"),
    _schedule("rehearsal_on", "DATA", "rehearsal: synthetic households, or readings, which is charged like a release"),
    _schedule("first_day", "DATE", "first day of the series; read off the files"),
    _schedule("last_day", "DATE", "last day of the series; read off the files"),
    _schedule("skip_days", "LIST", "days of the period that are skipped", "list"),
    _schedule("absent_days", "RULE", "archive: days without a usable household: refuse or missing"),
    _schedule("wait_for", "PATH", "marker of a delivery, {day} for the date", "text"),
    _schedule("give_up_days", "DAYS", "a day without its marker is then skipped"),
    _series("statistic", "WHAT", "mean, distribution, profile (by half-hour) or coverage (usable days); else mean"),
    _series("bins_kwh", "LIST", "distribution: edges of the bins from 0 to --clamp-kwh, such as 0,5,10,30", "list"),
    _series("form", "FORM", "distribution: histogram, or cumulative; histogram if left out"),
    _series("every", "PERIOD", "days of a row: day; of a mean week, month or year; of a profile weekday-month"),
    _series(
        "by",
        "COLUMNS",
        "one value per group; roster.csv must exist with this column; several, the finest first: feeder,area",
        "text or list",
    ),
    _series(
        "clamp_kwh",
        "KWH",
        "upper bound on a household's daily total, never from the data; a list makes layers: --clamp-kwh 30,75",
        "value or list",
    ),
    _series("half_hour_clamp_kwh", "KWH", "profile: upper bound on a household's half-hour, never from the data"),
    _series("share", "LIST", "with layers (--clamp-kwh 30,75): each one's share of a day, such as 0.77,0.23", "list"),
    _series("max_missing", "N", "a day that lacks more readings counts as missing"),
    _series("missing_kwh", "KWH", "a missing household-day counts as this"),
    _series("values", "WHICH", "sum readings, or the public values of their states"),
    _promise(
        "notion",
        "NOTION",
        "classical, w-event, age-dependent, temporal, discounted or neighbourhood; init writes classical if left out",
    ),
    _promise("age_days", "DAYS", "a day is released when it is this old"),
    _promise("max_day_epsilon", "EPSILON", "cap on the epsilon of a day; no model, age or discount raises it"),
    _promise(
        "epsilon_total", "EPSILON", "cap on the sum over all days, at which the series ends; a number or unlimited"
    ),
    _promise(
        "delta", "DELTA", "bounds over many days become (epsilon, delta) bounds, such as 1e-6; a day stays pure", "text"
    ),
    _promise(
        "accept",
        "WORD",
        "accept what refuses a first release: no-credit, useless or total; may be repeated",
        "words",
    ),
    _promise("epsilon_per_day", "EPSILON", "classical, age-dependent: epsilon of one day"),
    _promise("risk", "EPSILON", "age-dependent: bound on the aged loss; the day's epsilon is solved from it"),
    _promise("method", "METHOD", "age-dependent: tight, total_variation, spectral or reversibilised"),
    _promise("secret", "WHAT", "age-dependent: what the bound is about: day or half-hour"),
    _promise("alpha", "EPSILON", "temporal: bound on the temporal leakage about any one day"),
    _promise(
        "horizon_days", "DAYS", "temporal, discounted: number of releases after which the series closes; or unlimited"
    ),
    _promise("budget", "RULE", "temporal: best, supremum, exact or even"),
    _promise("discount", "LAW", "discounted: exponential or hyperbolic"),
    _promise("rate", "RATE", "discounted: rate of the discount"),
    _promise("epsilon", "EPSILON", "discounted: bound on the discounted sum"),
    _promise("schedule", "RULE", "discounted: renewal, optimal, constant, classical or paper"),
    _promise("clock", "CLOCK", "discounted: ages count from the data-day or the publication-day"),
    _promise("window_days", "DAYS", "w-event, neighbourhood: length of the window"),
    _promise("epsilon_per_window", "EPSILON", "w-event, neighbourhood: epsilon of any window"),
    _promise("spend", "RULE", "w-event: even or remaining; neighbourhood: fraction, per-request or offline"),
    _promise("fraction", "F", "neighbourhood: fraction of the window's budget, for --spend fraction"),
    _promise("delta_kwh", "KWH", "neighbourhood: size of the change that is protected"),
    _model("assume", "WHAT", "what is assumed: markov or curve"),
    _model("curve", "FILE", "declared: file age_days,total_variation; nothing is estimated", "text"),
    _model("kernel", "FILE", "declared: file of a transition matrix; nothing is estimated", "text"),
    _model("basis", "TEXT", "declared: where curve or kernel come from; quoted in the statement", "text"),
    _model("period", "FIRST,LAST", f"estimated from these days; or {EVERY_DAY}", "list"),
    _model("step", "STEP", "step of the chain: half-hour or day"),
    _model("states", "N", "number of states of a chain; 12 if left out"),
    _model("edges", "EDGES", "quantile, equal-width, or a list of public kWh values", "value or list"),
    _model("chain", "KIND", "homogeneous, or cyclic: one kernel per half-hour of the day"),
    _model("min_visits", "N", "a state with fewer visits is credited no decay"),
    _model("confidence", "KIND", "plug-in, or sampling-bound with --level"),
    _model("level", "P", "level of the sampling bound"),
    _model("ages_days", "LIST", "ages in days that are tabulated, such as 1,2,7", "list", flag="--model-ages"),
    _model(
        "publish",
        "",
        "publish the leakage bound of the estimated model: it comes from the readings and has no noise",
        "flag",
        flag="--publish-envelope",
    ),
    _model(
        "accept_unverified_model",
        "",
        "accept that --risk rests on estimated chains, which one dataset can contradict but never verify",
        "switch",
    ),
    _model("selection_epsilon", "EPSILON", "choose a public bound privately, not --publish-envelope, with this loss"),
    _model("coverage", "P", "private choice: share of the households whose chains lie below it"),
    _model("failure_probability", "P", "private choice: probability that fewer do, such as 0.000001"),
    _model("family", "FILE", "private choice: file age_days and the total variations of each member", "text"),
)

_PUBLISH: Final[Key] = ("model", "publish")
_SELECTION: Final[Key] = ("model", "selection_epsilon")
"""An option of a private choice, which therefore writes publish = "private"."""

FLAGS: Final[Mapping[Key, str]] = {option.key: option.flag for option in OPTIONS}
_BY_NAME: Final[Mapping[str, RunFileOption]] = {option.name: option for option in OPTIONS}


def notion_options() -> tuple[RunFileOption, ...]:
    """Return the options of those keys of [promise] that have no line in `OPTIONS`.

    A new notion thereby gets its options. The call imports the notions, which takes too long for the list of commands.
    """
    from agedp_data.notions import NOTIONS  # noqa: PLC0415  (the list of commands must not wait for the notions)

    options: dict[str, RunFileOption] = {}
    for notion in NOTIONS:
        for key in notion.model_fields:
            if ("promise", key) not in FLAGS:
                text = notion.TEXT.option_help.get(key, "key of this notion")
                options.setdefault(key, _promise(key, "VALUE", f"{notion.name}: {text}"))
    return tuple(options.values())


OptionValues = Mapping[Key, str]
"""Options as the TOML text of each key."""


def number_of(options: OptionValues, key: Key) -> Decimal | None:
    """Return the number that an option gives a key, if it gives one."""
    try:
        return Decimal(options[key])
    except (KeyError, InvalidOperation):
        return None


def toml_of(options: Mapping[str, str | bool | Sequence[str] | None]) -> dict[Key, str]:
    """Return the TOML text of the options that were given, by key; `options` is by their names.

    >>> toml_of({"epsilon_per_day": ".50", "notion": "classical", "risk": None, "model_ages": "1,2"})
    {('promise', 'epsilon_per_day'): '0.50', ('promise', 'notion'): '"classical"', ('model', 'ages_days'): '[1, 2]'}
    """
    texts: dict[Key, str] = {}
    for name, value in options.items():
        if value is not None and value is not False and value != []:
            option = _BY_NAME.get(name) or next(option for option in notion_options() if option.name == name)
            texts[option.key] = _toml(value, option.form)
    if _SELECTION in texts:
        texts.setdefault(_PUBLISH, quoted("private"))
    return texts


def _toml(given: str | bool | Sequence[str], form: Form) -> str:
    texts = [given] if isinstance(given, str) else list(given) if isinstance(given, Sequence) else []
    if form in ("flag", "switch"):
        return quoted("envelope") if form == "flag" else "true"
    if form == "columns":
        return toml_text(texts[0] if len(texts) == 1 else texts)
    if form == "where" and all("=" in text for text in texts):
        pairs = [text.partition("=") for text in texts]
        return toml_text({name: [text for key, _, text in pairs if key == name] for name, _, _ in pairs})
    return _toml_of_text(",".join(texts), form)


def _toml_of_text(value: str, form: Form) -> str:
    if form == "text or list" and "," in value:
        return toml_text([part.strip() for part in value.split(",")])
    if form in ("text", "text or list", "where"):
        return quoted(value)
    if form in ("list", "words") or (form == "value or list" and "," in value):
        return f"[{', '.join(_value(part.strip()) for part in value.split(','))}]"
    return _value(value)


def _value(text: str) -> str:
    """Return a number or date as TOML writes it, anything else as text, which the loader refuses with a message."""
    if _NUMBER.fullmatch(text):
        return f"{Decimal(text):f}"
    if _DATE.fullmatch(text):
        try:
            return date.fromisoformat(text).isoformat()
        except ValueError:
            return quoted(text)
    return quoted(text)


def toml_text(value: object) -> str:
    """Return a value of [input.columns] as TOML text.

    >>> print(toml_text({"register": ["E1", "E2"]}), toml_text(("date", "time")), toml_text(30))
    { "register" = ["E1", "E2"] } ["date", "time"] 30
    """
    if isinstance(value, Mapping):
        return f"{{ {', '.join(f'{quoted(str(key))} = {toml_text(part)}' for key, part in value.items())} }}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(toml_text, value))}]"
    return quoted(value) if isinstance(value, str) else str(value)


def quoted(text: str) -> str:
    """Return text as a TOML string.

    >>> print(quoted("incoming/*.csv"))
    "incoming/*.csv"
    """
    encodable = text.encode("utf-8", "replace").decode()  # no lone surrogates: names of files need not be UTF-8
    return json.dumps(encodable, ensure_ascii=False).replace("\x7f", "\\u007f")
