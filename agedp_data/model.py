"""What is held to be known about the households: the public part of a model, named by its hash.

DECLARED models come from the run file (a forgetting curve or a kernel with its source), ESTIMATED ones from
`agedp calibrate`, which leaves the public part in `public.json` of the model's folder. Only the public part is
read here: noise, ages, dates and refusals never depend on anything else.
"""

from __future__ import annotations

import csv
import errno
import hashlib
import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from agedp_data.chains.envelope import LOSS_GRID, LeakageBound
from agedp_data.chains.tabulation import leakage_bound, steps_of_days
from agedp_data.chains.transitions import reverse, stationary
from agedp_data.config import RunFile
from agedp_data.config.model import DeclaredModel, EstimatedModel
from agedp_data.errors import ChainError, RunFileError
from agedp_data.notions.parameters import MANY_DAYS
from agedp_data.readers import storage
from agedp_data.shown import shown

PUBLIC = "public.json"
DIGEST = "public.sha256"
_SLOTS = 48
_NUMBER = re.compile(r"[+-]?(\d{1,400}\.?\d{0,400}|\.\d{1,400})([eE][+-]?\d{1,3})?", re.ASCII)
_WORD = re.compile(r"(?!(nan|inf|infinity)$)[^\W\d].*", re.IGNORECASE | re.DOTALL)
_KERNEL_AGES = [*range(1, 63), 90, 120, 180, 270, 365]


@dataclass(frozen=True, slots=True)
class Model:
    """A model's public part: `text` is canonical JSON, `id` its SHA-256."""

    text: str
    envelope: LeakageBound

    @property
    def id(self) -> str:
        """Return the name under which the ledger keeps the model."""
        return hashlib.sha256(self.text.encode()).hexdigest()

    @property
    def public(self) -> Mapping[str, Any]:
        """Return the public part as it was written."""
        found: Mapping[str, Any] = json.loads(self.text)
        return found

    @classmethod
    def of_text(cls, text: str) -> Model:
        """Return the model of a public part that was kept. Raises ChainError: no envelope is in it."""
        return cls(text, LeakageBound.from_json(json.loads(text)["envelope"]))

    @property
    def as_grid(self) -> Model:
        """Return the model without the pieces of its kernel: so an agedp wrote it that knew of none."""
        if not self.envelope.hulls:
            return self
        envelope = replace(self.envelope, hulls={})
        return Model(public_text(self.public, envelope), envelope)


def public_text(facts: Mapping[str, Any], envelope: LeakageBound) -> str:
    """Return the canonical text of a public part."""
    public = {**facts, "envelope": envelope.to_json()}
    return json.dumps(public, sort_keys=True, separators=(",", ":"), ensure_ascii=True)


def model_of(run: RunFile) -> Model | None:
    """Return the model of a run file, if it has one.

    Raises:
        RunFileError: a curve, kernel or model folder that cannot be used, or one made under other settings.
        InputError: a curve or kernel at a URL that cannot be read.
    """
    match run.model:
        case DeclaredModel() as declared:
            return _declared(declared)
        case EstimatedModel() as estimated:
            found = _estimated(estimated)
            if run.promise.composes_ahead and not found.envelope.looks_ahead:
                raise RunFileError(
                    f'[model] file: made by an agedp that did not look ahead, which notion = "{run.promise.notion}" '
                    "needs; calibrate again under another file name"
                )
            return found
        case _:
            return None


def facts_of(model: EstimatedModel) -> dict[str, Any]:
    """Return the settings of an estimated model that belong to its public part."""
    edges = model.edges if isinstance(model.edges, str) else [str(edge) for edge in model.edges]
    return {
        "source": "estimated",
        "assume": model.assume,
        "period": [day.isoformat() for day in model.period],
        "step": model.step,
        "states": model.states,
        "edges": edges,
        "chain": model.chain,
        "memory": model.memory,
        "min_visits": model.min_visits,
        "confidence": model.confidence,
        **({} if model.level is None else {"level": str(model.level.normalize())}),
        "ages_days": list(model.ages_days),
    }


def _estimated(model: EstimatedModel) -> Model:
    path = Path(model.file) / PUBLIC
    try:
        _require_file(path)
        text = path.read_text(encoding="ascii")
        public = json.loads(text)
        envelope = LeakageBound.from_json(public["envelope"])
    except FileNotFoundError:
        raise RunFileError(
            "[model] file: there is no model yet; `agedp calibrate RUN.toml` makes it",
            private=f"[model] file: {model.file} holds no model yet; `agedp calibrate RUN.toml` makes it",
        ) from None
    except (OSError, ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError, ChainError):
        raise RunFileError(
            f"[model] file: {PUBLIC} is damaged; put back a good copy, or calibrate under a new name",
            private=f"{shown(str(path))}: damaged; put back a good copy, or calibrate under a new name",
        ) from None
    _check_digest(path, text)
    wanted = facts_of(model)
    changed = [key for key in dict.fromkeys((*wanted, "level")) if public.get(key) != wanted.get(key)]
    if changed:
        raise RunFileError(
            f"[model] {', '.join(changed)}: the model was made under other settings; "
            "restore them, or calibrate anew under another file name"
        )
    return Model(text, envelope)


def digest_line(text: str) -> str:
    """Return the line of `public.sha256` beside a public part, in the form of sha256sum."""
    return f"{hashlib.sha256(text.encode()).hexdigest()}  {PUBLIC}\n"


def _check_digest(path: Path, text: str) -> None:
    """Compare a public part with its digest; a model of an earlier version has none.

    Raises:
        RunFileError: they differ.
    """
    digest = path.with_name(DIGEST)
    if digest.exists() and digest.read_bytes() != digest_line(text).encode():
        what = f"differs from the digest in {DIGEST} beside it; put back good copies, or calibrate under a new name"
        raise RunFileError(f"[model] file: {PUBLIC} {what}", private=f"{shown(str(path))}: it {what}")


def _declared(model: DeclaredModel) -> Model:
    facts: dict[str, Any] = {"source": "declared", "assume": model.assume, "basis": model.basis}
    if model.curve is not None:
        envelope = _curve(model.curve, assume=model.assume)
        return Model(public_text({**facts, "given": "curve"}, envelope), envelope)
    envelope = _kernel(str(model.kernel), assume=model.assume, step=str(model.step))
    return Model(public_text({**facts, "given": "kernel", "step": model.step}, envelope), envelope)


def _curve(place: str, *, assume: str) -> LeakageBound:
    """Return the envelope of a declared curve: total variation by age, which holds from each age on."""
    rows = _numbers(place, "curve")
    pairs = [(row[0], row[1]) for row in rows if len(row) == 2]
    if len(pairs) != len(rows) or not pairs:
        raise _error(place, "curve", "must have two columns, age_days,total_variation")
    if not all(0 <= age <= MANY_DAYS for age, _ in pairs):
        raise _error(place, "curve", f"must have ascending ages, in days from 0 to {MANY_DAYS}")
    ages = [math.ceil(age * _SLOTS) for age, _ in pairs]
    values = [_not_below(value) for _, value in pairs]
    if any(later <= earlier for earlier, later in pairwise(ages)):
        raise _error(place, "curve", "must have ascending ages, at least half an hour apart")
    if not all(0 <= value <= 1 for value in values):
        raise _error(place, "curve", "must have total variations between 0 and 1")
    if any(later > earlier for earlier, later in pairwise(values)):
        raise ChainError("[model] curve: must not increase with age; an output stays public for ever")
    return LeakageBound(np.array(ages), LOSS_GRID, None, None, {"total_variation": np.array(values)}, _SLOTS, assume)


def _not_below(value: Decimal) -> float:
    """Return a number as a float; what is too small for one is no 0."""
    return max(float(value), math.ulp(0.0)) if value > 0 else float(value)


def _kernel(place: str, *, assume: str, step: str) -> LeakageBound:
    """Return the envelope of a declared one-step kernel; rows: the state now, columns: one step later."""
    rows = _numbers(place, "kernel")
    if any(len(row) != len(rows) for row in rows):
        raise _error(place, "kernel", "must be a square table of probabilities, one row per state")
    matrix = np.array(rows, dtype=np.float64)
    if (matrix < 0).any() or np.abs(matrix.sum(axis=1) - 1).max() > 1e-9:
        raise _error(place, "kernel", "must have rows of probabilities that add up to 1")
    if not _hangs_together(matrix):
        raise _error(place, "kernel", "must lead from each of two or more states to every other")
    return kernel_envelope(matrix, assume=assume, steps_per_day=1 if step == "day" else _SLOTS)


def kernel_envelope(matrix: np.ndarray[Any, np.dtype[np.float64]], *, assume: str, steps_per_day: int) -> LeakageBound:
    """Return the leakage bound of a transition matrix whose states all lead to each other.

    Args:
        matrix: shape (k, k), rows sum to 1; one step = 1 / `steps_per_day` of a day.
        assume: "markov" or "curve".
        steps_per_day: 1 or 48.
    """
    # Only losses that may be composed have a use for what lies ahead.
    composed = assume == "markov"
    days = np.array(_KERNEL_AGES)
    found = leakage_bound(
        reverse(matrix)[None],
        steps_of_days(days.tolist(), steps_per_day=steps_per_day) if composed else days * steps_per_day,
        LOSS_GRID,
        forgets=np.array([True]),
        forward=matrix[None] if composed else None,
        steps_per_day=steps_per_day,
        pieces=True,
    )
    return replace(found, assume=assume)


def _hangs_together(matrix: np.ndarray[Any, np.dtype[np.float64]]) -> bool:
    try:
        return len(matrix) > 1 and bool((stationary(matrix) > 0).all())
    except ChainError:
        return False


def _numbers(place: str, key: str) -> list[list[Decimal]]:
    """Return the rows of a table of numbers; a first line of words is its header."""
    try:
        lines = [line for line in csv.reader(_bytes(place, key).decode("utf-8-sig").splitlines()) if line]
    except OSError as error:
        raise _error(place, key, f"cannot be read ({error.strerror})") from None
    except (UnicodeDecodeError, csv.Error):
        raise _error(place, key, "is not a CSV text") from None
    titled = bool(lines) and all(_WORD.fullmatch(cell.strip()) for cell in lines[0])
    rows = [_row(line) for line in (lines[1:] if titled else lines)]
    if not rows or None in rows:
        raise _error(place, key, "must hold numbers only, below an optional header line")
    return [row for row in rows if row is not None]


def _bytes(place: str, key: str) -> bytes:
    if storage.is_url(place):
        return storage.read_bytes(place, f"[model] {key}")
    _require_file(Path(place))
    return Path(place).read_bytes()


def _require_file(path: Path) -> None:
    """Raise OSError for a folder, or a pipe that might never end; what is not there is told by who opens it."""
    if path.exists() and not path.is_file():
        raise OSError(errno.EINVAL, "is no file")


def _row(cells: Sequence[str]) -> list[Decimal] | None:
    numbers = [cell.strip() for cell in cells]
    return [Decimal(number) for number in numbers] if all(map(_NUMBER.fullmatch, numbers)) else None


def _error(place: str, key: str, what: str) -> RunFileError:
    return RunFileError(f"[model] {key}: {what}", private=f"[model] {key} = {storage.format_location(place)}: {what}")
