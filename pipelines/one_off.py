"""Input files -> release folder, in one go: init, calibrate if the notion needs an estimated model, run.

    DIR                             the release folder
    DIR-confidential/               for its owner only
        run.toml  roster.csv        as `agedp init` writes them
        arguments.json              of the call that began here
        ledger.sqlite               the promise itself
        confidential/               readings, quality, true means
        model/                      as `agedp calibrate` leaves it

A second call with the same arguments continues: what is released stays as it is and nothing is drawn again. A call with
other arguments is refused, with the differences by option, before anything is read.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

from agedp_data.config import load
from agedp_data.config.model import Estimated
from agedp_data.errors import AgedpError, ContractChanged, PreflightFailed, RecordError, Refused, RunFileError
from agedp_data.model import PUBLIC
from agedp_data.notions import Promise
from agedp_data.notions.parameters import exact_text
from agedp_data.readers import storage
from agedp_data.shown import shown
from pipelines import folders, locks
from pipelines.blocks import SILENT, Told
from pipelines.bound import Calibration
from pipelines.calibrate import calibrate
from pipelines.init import init, missing_options, preview
from pipelines.initial_roster import BY, is_read_off
from pipelines.run_file_draft import Places, flag_of
from pipelines.run_file_options import Key, OptionValues
from pipelines.sanitise import run_stages
from pipelines.work import Work, begin

_RUN_FILE: Final = "run.toml"
_LEDGER: Final = "ledger.sqlite"
_ARGUMENTS: Final = "arguments.json"
_FILES: Final = "FILES"
_NOTION: Final[Key] = ("promise", "notion")
_LONGEST: Final = 200


@dataclass(frozen=True, slots=True)
class OneOff:
    """What came of it: the run, the calibration if one was made now, and the error that ended the run, if one did."""

    work: Work
    calibration: Calibration | None
    error: AgedpError | None


def release_files(patterns: Sequence[str], *, out: str | Path, given: OptionValues, progress: Told = SILENT) -> OneOff:
    """Release every day of a dataset and write the release folder `out`; the rest lies in `out`-confidential.

    Raises:
        RunFileError: deciding options that are missing, all of them, or one that a run file would refuse; an `out`
            that is no folder of this machine.
        InputError: a file that cannot be understood.
        ContractChanged: arguments that differ from those of an earlier call.
    """
    out = _release_folder(out)
    folder = confidential_folder(out)
    run_file = folder / _RUN_FILE
    if run_file.exists():
        _require_same(folder, patterns, given)
    else:
        check_options_complete(patterns, given, folder, out)
        _begin(patterns, out, given, progress)
    calibration = _calibrated(run_file, progress)
    work = begin(run_file, told=progress)
    try:
        run_stages(lambda _, stage: stage(work))
    except (Refused, RecordError, PreflightFailed) as error:
        return OneOff(work, calibration, error)
    return OneOff(work, calibration, None)


def _begin(patterns: Sequence[str], out: Path, given: OptionValues, progress: Told) -> None:
    """Write arguments, roster and, last, the run file; what a call that was killed left is written anew."""
    folder = confidential_folder(out)
    with folders.readable(folder):
        folder.parent.mkdir(parents=True, exist_ok=True)
    with locks.alone(folders.make_private(folder)):
        if (folder / _RUN_FILE).exists():  # another call was first
            _require_same(folder, patterns, given)
            return
        folders.write(folder / _ARGUMENTS, json.dumps(_arguments(patterns, given), indent=1).encode())
        if BY not in given and is_read_off(folder / "roster.csv"):  # perhaps of other files
            (folder / "roster.csv").unlink()
        initial = init(patterns, folder=folder, given=given, places=_places(out), progress=progress)
        initial.run_file.chmod(0o600)


def _release_folder(out: str | Path) -> Path:
    """Return the release folder; refuse a URL, and a folder that has no name for DIR-confidential.

    A URL must come as text: a `Path` has lost one of its slashes.
    """
    text = str(out)
    if isinstance(out, str) and storage.is_url(text):
        raise RunFileError(
            "--out is a URL; `agedp sanitise` writes to a folder of this machine. Write a run file with `agedp init`, "
            "set [output] release to the URL, and use `agedp run`"
        )
    if Path(text).absolute().name in ("", ".."):
        raise RunFileError(
            f"--out {shown(text)}: DIR-confidential needs the name of the folder. Give a folder with a name of its own"
        )
    return Path(text)


def confidential_folder(out: Path) -> Path:
    """Return the folder beside a release folder that holds everything confidential.

    >>> confidential_folder(Path("/srv/2013")).name
    '2013-confidential'
    """
    place = out.absolute()
    return place.with_name(f"{place.name}-confidential")


def _places(out: Path) -> Places:
    return Places(str(out.absolute()), "confidential", f"sqlite:///{_LEDGER}", "model")


def check_options_complete(patterns: Sequence[str], given: OptionValues, folder: Path, out: Path) -> None:
    """Refuse a call without all deciding options, before a file is read beyond its first rows."""
    provisional = preview(patterns, folder=folder, given=given, places=_places(out))
    undecided = [key for key in provisional.undecided if key not in given]
    if _NOTION not in given:
        common = [key for key in undecided if key[0] != "promise" or key[1] in Promise.model_fields]
        missing = f"--notion (each notion has options of its own), {missing_options(common, given)}"
    else:
        missing = missing_options(undecided, given)
    if not missing:
        return
    why = ""
    if ("model", "publish") in undecided:
        why = (
            ". --publish-envelope acknowledges that the leakage bound of the estimated model, which comes from the "
            "readings, is published without noise; a declared model needs none (--curve or --kernel, with --basis)"
        )
    raise RunFileError(f"options that decide have no default. Also give {missing}{why}")


def _require_same(folder: Path, patterns: Sequence[str], given: OptionValues) -> None:
    """Refuse arguments that differ from those of the call that began here."""
    begun = _read_arguments(folder)
    now = _arguments(patterns, given)
    differing = [key for key in dict.fromkeys([*begun, *now]) if begun.get(key) != now.get(key)]
    if not differing:
        return
    public = "; ".join(_difference(key, begun, now) for key in differing if key != _FILES)
    private = "; ".join(_difference(key, begun, now) for key in differing)
    released = (folder / _LEDGER).exists()
    helps = (
        "Give the same arguments to continue. Another --out makes another release with a ledger of its own: the losses "
        "of two releases of the same households add up, and no ledger counts them together"
    )
    if not released:
        helps = f"Nothing is released yet: delete {shown(folder.name)} to begin anew, or give the same arguments"
    raise ContractChanged(
        f"this release began with other arguments: {public or 'FILES differ'}. {helps}",
        private=f"{shown(str(folder))}: this release began with other arguments: {private}. {helps}",
    )


def _difference(key: str, begun: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    return f"{key} was {_value_text(begun.get(key))} and is {_value_text(now.get(key))}"


def _value_text(value: object) -> str:
    return "not given" if value is None else shown(value if isinstance(value, str) else json.dumps(value), _LONGEST)


def _arguments(patterns: Sequence[str], given: OptionValues) -> dict[str, Any]:
    """Return the arguments of a call in one form for every way of writing them."""
    files = [pattern if "://" in pattern else str(Path(pattern).absolute()) for pattern in patterns]
    options = {flag_of(key): _plain(toml) for key, toml in given.items()}
    return {_FILES: sorted(files), **dict(sorted(options.items()))}


def _plain(toml: str) -> Any:  # noqa: ANN401  (a JSON value)
    value = tomllib.loads(f"value = {toml}", parse_float=Decimal)["value"]
    return _text(value)


def _text(value: object) -> Any:  # noqa: ANN401  (a JSON value)
    if isinstance(value, list):
        return [_text(item) for item in value]
    return exact_text(Decimal(value)) if isinstance(value, int | Decimal) else str(value)


def _read_arguments(folder: Path) -> dict[str, Any]:
    try:
        arguments = json.loads((folder / _ARGUMENTS).read_text(encoding="utf-8"))
        if isinstance(arguments, dict):
            return arguments
    except (OSError, ValueError):
        pass
    what = "holds a run file that `agedp sanitise` did not write; name another --out, or use `agedp run` with it"
    raise RunFileError(f"[output] the confidential folder {what}", private=f"{shown(str(folder))}: {what}")


def _calibrated(run_file: Path, progress: Told) -> Calibration | None:
    """Return the calibration that is made now; None for a declared model, no model, or one that is there already."""
    model = load(run_file).model
    if not isinstance(model, Estimated):
        return None
    public = Path(model.file) / PUBLIC
    if public.exists():
        return None
    with locks.alone(run_file.parent):
        return None if public.exists() else calibrate(run_file, told=progress)  # an equal call may have been first
