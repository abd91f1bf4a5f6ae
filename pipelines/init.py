"""Input files -> a commented run file and a first roster, for the user to read, correct and decide."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from pathlib import Path

import pyarrow.compute as pc

from agedp_data.errors import InputError
from agedp_data.readers import files
from agedp_data.readers.datasets import LAYOUTS
from agedp_data.readers.layout import SLOTS, Rules
from agedp_data.roster import roster_text
from pipelines import folders
from pipelines.blocks import SILENT, Engine, Told
from pipelines.read import Delivery, read
from pipelines.readings.days import read_days
from pipelines.readings.opening import recognised
from pipelines.readings.store import Store

_TEMPLATE = """# run.toml: written by `agedp init`. Lines that begin with "# decide:" have no default: whatever decides
# privacy is yours to say. Uncomment them, then `agedp plan run.toml` says what both figures mean.
version = 1

[input]
dataset = "{dataset}"
files   = {files}

[output]
release      = "out/release"             # may be handed over as it is
confidential = "out/confidential"        # stays in the house
ledger       = "sqlite:///out/ledger.sqlite"   # the promise itself: back it up, never edit it

[population]
name   = "my-{dataset}-homes"            # the people; every series of this name in the ledger spends one promise
roster = "roster.csv"                    # household_id,from,to: read off the files; correct it from your records
# decide: min_households = {least:<12d}  # a day with fewer homes is never released; can be raised later, never lowered

[schedule]
mode      = "archive"                    # everything in the files now
first_day = {first}
last_day  = {last}

[series.daily_mean]
statistic = "mean"
# decide: clamp_kwh = 50                 # a household's day counts at most this; public, never read off the data

[promise]
notion          = "classical"            # nothing assumed about the households
# decide: epsilon_per_day = 0.5          # what one day may say about one household
# decide: max_day_epsilon = 0.5          # cap of any one day
# decide: epsilon_total   = {total}        # what all days together may say; the series ends there
"""


@dataclass(frozen=True, slots=True)
class Made:
    """What was written."""

    run_file: Path
    roster: Path
    households: int


def init(patterns: Sequence[str], *, folder: Path, told: Told = SILENT) -> Made:
    """Write run.toml and roster.csv into a folder.

    Raises:
        InputError: no usable file, a file that cannot be understood, or a run file that is there already.
    """
    run_file, roster = folder / "run.toml", folder / "roster.csv"
    for path in (run_file, roster):
        if path.exists():
            raise InputError(f"{path} is there already; move it away or name another folder with --in")
    confidential = folders.make_private(folder / "out" / "confidential")
    store = Store(confidential / "store", _dataset(patterns), Rules())
    delivery = read(store, patterns, engine=Engine(progress=told.progress, dashboard=told.dashboard))
    spans = _spans(store, delivery)
    if not spans:
        raise InputError("the files hold no reading; there is nobody to put on a roster")
    first, last = min(span[0] for span in spans.values()), max(span[1] for span in spans.values())
    text = roster_text((household, *spans[household]) for household in sorted(spans))
    folders.write(roster, text.encode())
    # A JSON string of text without lone surrogates is a TOML string.
    shown = json.dumps([str(Path(pattern).absolute()) for pattern in patterns], ensure_ascii=False)
    # Not all of them: homes leave, and every day after the first that does would be skipped for good.
    least, total = min(100, (len(spans) + 1) // 2), Decimal("0.5") * ((last - first).days + 1)
    filled = _TEMPLATE.format(dataset=store.dataset, files=shown, first=first, last=last, least=least, total=total)
    folders.write(run_file, filled.encode(), mode=0o644)
    return Made(run_file, roster, len(spans))


def _dataset(patterns: Sequence[str]) -> str:
    """Return the first dataset that knows the header of a file; empty files have none."""
    for source in files.list_sources(patterns).sources:
        for name in LAYOUTS:
            try:
                if recognised(source, LAYOUTS[name])[0] is not None:
                    return name
            except InputError:
                continue
    return next(iter(LAYOUTS))


def _spans(store: Store, delivery: Delivery) -> dict[str, tuple[date, date]]:
    """Return the first and last day of every household, of whole days if it has any.

    A first reading is often the midnight that belongs to the day before.
    """
    whole = _spans_of(store, delivery, least=SLOTS - 2)
    return _spans_of(store, delivery, least=1) | whole


def _spans_of(store: Store, delivery: Delivery, *, least: int) -> dict[str, tuple[date, date]]:
    """Return the first and last day with at least so many readings."""
    spans: dict[str, tuple[date, date]] = {}
    for month in delivery.months:
        table = read_days(store, month, delivery.contents)
        table = table.filter(pc.greater_equal(table["readings"], least))
        grouped = table.group_by("household_id").aggregate([("day", "min"), ("day", "max")])
        for row in grouped.to_pylist():
            first, last = spans.get(row["household_id"], (row["day_min"], row["day_max"]))
            spans[row["household_id"]] = (min(first, row["day_min"]), max(last, row["day_max"]))
    return spans
