"""Synthetic households in a publisher's format, with roster and run file of a rehearsal, for trying out commands."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path

from agedp.local_files import atomic_files
from agedp_data.datasets.synthetic import DeliveryAccount, write_ausgrid, write_london, write_roster
from agedp_data.errors import InputError
from agedp_data.messages import escape_text, suggest_name

_RUN_FILE_HEAD = """# {name}.toml: a rehearsal on synthetic households, written by `agedp sample {name}`.
# {households} households, {days} days, seed {seed}.
version = 1

[input]
dataset = "{name}"
files   = ["input/*.csv"]

[output]
release      = "release"                 # may be handed over as it is
confidential = "confidential"            # confidential: never hand it over
ledger       = "sqlite:///ledger.sqlite" # the promise itself
title        = "Daily electricity use of synthetic households, {name} format"
source       = "Made up by agedp; no household exists"
licence      = "CC0-1.0"

[population]
name   = "synthetic-{name}-households"
roster = "roster.csv"
min_households = {least}

[schedule]
mode      = "rehearsal"                  # a simulated clock: each day is released when it is age_days old
first_day = {first}
last_day  = {last}
"""

_LONDON = """
[series.daily_mean]
statistic = "mean"
clamp_kwh = 30                           # upper bound on a household's daily total

[promise]
notion          = "age-dependent"
age_days        = 2
epsilon_per_day = 0.5
method          = "total_variation"
secret          = "day"
max_day_epsilon = 0.5
epsilon_total   = {total}

[model]                                  # declared: nothing computed from the readings is published
source = "declared"
curve  = "forgetting.csv"
basis  = "synthetic, like the households: it shows the format"
assume = "curve"

[compare]
window_days = 7
"""

_AUSGRID = """
[series.daily_mean]
statistic = "mean"
clamp_kwh = 50                           # upper bound on a household's daily total

[promise]
notion             = "w-event"           # any 7 consecutive days, with no assumption about the households
age_days           = 1
window_days        = 7
epsilon_per_window = 3.5
spend              = "even"
max_day_epsilon    = 0.5
epsilon_total      = {total}
"""

_CURVE = "age_days,total_variation\n1,0.9\n2,0.85\n7,0.8\n28,0.6\n60,0.4\n"


@dataclass(frozen=True, slots=True)
class _SampleKind:
    write: Callable[..., DeliveryAccount]
    first_day: date
    promise: str


_KINDS = {
    "london": _SampleKind(write_london, date(2012, 11, 20), _LONDON),
    "ausgrid": _SampleKind(write_ausgrid, date(2012, 9, 1), _AUSGRID),
}


@dataclass(frozen=True, slots=True)
class SampleFolder:
    """The result of `sample`.

    Attributes:
        run_file: path of the run file.
        written: whether it was written by this call; an equal sample is left unchanged.
        message: a line for the terminal.
    """

    run_file: Path
    written: bool
    message: str


def sample(dataset: str, folder: Path, *, households: int, days: int, seed: int) -> SampleFolder:
    """Write a folder with synthetic input files, roster and run file.

    A folder that contains the same sample is not changed.

    Raises:
        InputError: an unknown dataset, or a folder with other content.
    """
    if dataset not in _KINDS:
        near = suggest_name(dataset, list(_KINDS), likeness=0.6)
        raise InputError(f'there are samples of {" and ".join(_KINDS)}, not of "{escape_text(dataset, 40)}"{near}')
    sample_kind, run_file_text = _KINDS[dataset], _run_file(dataset, households=households, days=days, seed=seed)
    run_file = folder / f"{dataset}.toml"
    if folder.exists():
        if run_file.exists() and run_file.read_text(encoding="utf-8") == run_file_text:
            return SampleFolder(run_file, written=False, message=f"{run_file}: this sample exists already")
        raise InputError(f"{folder}: exists already and has other content; name another folder")
    with atomic_files.complete_folder(folder) as temporary:
        (temporary / "input").mkdir()
        delivery = sample_kind.write(
            temporary / "input", households=households, first_day=sample_kind.first_day, days=days, seed=seed
        )
        write_roster(temporary / "roster.csv", household_ids=delivery.household_ids, first_day=sample_kind.first_day)
        if dataset == "london":
            (temporary / "forgetting.csv").write_text(_CURVE, encoding="utf-8")
        (temporary / run_file.name).write_text(run_file_text, encoding="utf-8")
    message = (
        f"{run_file}: {households} synthetic households, {days} days, {delivery.rows_written:,} rows in "
        f"{len(delivery.files)} file{'s' * (len(delivery.files) != 1)}; "
        f"next: agedp run {run_file}"
    )
    return SampleFolder(run_file, written=True, message=message)


def _run_file(dataset: str, *, households: int, days: int, seed: int) -> str:
    sample_kind = _KINDS[dataset]
    head = _RUN_FILE_HEAD.format(
        name=dataset,
        households=households,
        days=days,
        seed=seed,
        least=max(2, households // 3),
        first=sample_kind.first_day,
        last=sample_kind.first_day + timedelta(days=days - 1),
    )
    return head + sample_kind.promise.format(total=days / 2)
