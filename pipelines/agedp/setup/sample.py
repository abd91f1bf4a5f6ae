"""Synthetic households in a publisher's format, with roster and run file of a rehearsal, for trying out commands."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path

from jinja2 import Template

from agedp.local_files import atomic_files
from agedp_data.datasets.synthetic import DeliveryAccount, write_ausgrid, write_london, write_roster
from agedp_data.datasets.synthetic.households import Households
from agedp_data.errors import InputError
from agedp_data.messages import escape_text, suggest_name

_CURVE = "age_days,total_variation\n1,0.9\n2,0.85\n7,0.8\n28,0.6\n60,0.4\n"


_KINDS: dict[str, tuple[Callable[..., DeliveryAccount], date]] = {
    "london": (write_london, date(2012, 11, 20)),
    "ausgrid": (write_ausgrid, date(2012, 9, 1)),
}
_RUN_FILE = Path(__file__).with_suffix(".toml")


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


def sample(
    dataset: str, folder: Path, *, households: int, days: int, seed: int, profiles: Households | None = None
) -> SampleFolder:
    """Write a folder with synthetic input files, roster and run file.

    A folder that contains the same sample is not changed. With `profiles` the households are these, as many as
    `households`, and their readings follow their chains: neither time of day nor weather enters.

    Raises:
        InputError: an unknown dataset, or a folder with other content.
    """
    if dataset not in _KINDS:
        near = suggest_name(dataset, list(_KINDS), likeness=0.6)
        raise InputError(f'there are samples of {" and ".join(_KINDS)}, not of "{escape_text(dataset, 40)}"{near}')
    write, first_day = _KINDS[dataset]
    run_file_text = _run_file(dataset, households=households, days=days, seed=seed)
    run_file = folder / f"{dataset}.toml"
    if folder.exists() and not (folder.is_dir() and not any(folder.iterdir())):
        if run_file.exists() and run_file.read_text(encoding="utf-8") == run_file_text:
            return SampleFolder(run_file, written=False, message=f"{run_file}: this sample exists already")
        raise InputError(f"{folder}: exists already and has other content; name another folder")
    with atomic_files.complete_folder(folder) as temporary:
        (temporary / "input").mkdir()
        chosen = {"plain_chain": True, "profiles": profiles} if profiles is not None else {}
        delivery = write(
            temporary / "input", households=households, first_day=first_day, days=days, seed=seed, **chosen
        )
        write_roster(temporary / "roster.csv", household_ids=delivery.household_ids, first_day=first_day)
        if dataset == "london":
            (temporary / "forgetting.csv").write_text(_CURVE, encoding="utf-8")
        (temporary / run_file.name).write_text(run_file_text, encoding="utf-8")
    message = (
        f"{run_file}: {households} synthetic households, {days} days, {delivery.rows_written:,} rows in "
        f"{len(delivery.files)} file{'s' * (len(delivery.files) != 1)}"
    )
    return SampleFolder(run_file, written=True, message=message)


def _run_file(dataset: str, *, households: int, days: int, seed: int) -> str:
    _, first_day = _KINDS[dataset]
    template = Template(_RUN_FILE.read_text(encoding="utf-8"), trim_blocks=True, keep_trailing_newline=True)
    last, least = first_day + timedelta(days=days - 1), max(2, households // 3)
    chosen = {"name": dataset, "households": households, "days": days, "seed": seed, "first": first_day}
    text: str = template.render(**chosen, last=last, least=least, total=days / 2)
    return text
