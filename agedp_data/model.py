"""Model: a leakage bound with its source; its public part, named by its hash.

DECLARED models come from the run file (a curve of total variation by age, or a kernel, with its source), ESTIMATED ones
from `agedp calibrate`, which writes the public part to `public.json` in the model's folder. Only the public part is
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
from typing import TYPE_CHECKING, Any

import numpy as np

from agedp_data.config import RunFile
from agedp_data.config.contract import contract_value
from agedp_data.config.model_section import DeclaredModel, EstimatedModel
from agedp_data.datasets import filesystem
from agedp_data.errors import ChainError, RunFileError
from agedp_data.leakage.bound_table import LOSS_GRID, LeakageBound
from agedp_data.markov.transitions import reverse, stationary
from agedp_data.messages import escape_text
from agedp_data.parameters import MANY_DAYS
from agedp_data.statement.note_texts import share_text

if TYPE_CHECKING:
    from agedp_data.leakage.nested_family import NestedFamily

PUBLIC_FILE = "public.json"
DIGEST_FILE = "public.sha256"
_PRIVATE = '"publish":"private"'
_SLOTS = 48
_NUMBER = re.compile(r"[+-]?(\d{1,400}\.?\d{0,400}|\.\d{1,400})([eE][+-]?\d{1,3})?", re.ASCII)
_WORD = re.compile(r"(?!(nan|inf|infinity)$)[^\W\d].*", re.IGNORECASE | re.DOTALL)
_KERNEL_AGES = [*range(1, 63), 90, 120, 180, 270, 365]


@dataclass(frozen=True, slots=True)
class Model:
    """Public part of a model: all that noise, ages, dates and refusals may depend on.

    `text` is canonical JSON of the settings and the leakage bound, `id` its SHA-256; `leakage_bound` is the parsed
    bound.
    """

    text: str
    leakage_bound: LeakageBound

    def __post_init__(self) -> None:
        """Let the bound of a private selection know the share of the households that it bounds."""
        share = share_text(self.public) if _PRIVATE in self.text else ""
        if self.leakage_bound.share != share:
            object.__setattr__(self, "leakage_bound", replace(self.leakage_bound, share=share))

    @property
    def id(self) -> str:
        """Return the SHA-256 of the public part, under which the ledger stores the model."""
        return hashlib.sha256(self.text.encode()).hexdigest()

    @property
    def public(self) -> Mapping[str, Any]:
        """Return the public part as it was written."""
        public: Mapping[str, Any] = json.loads(self.text)
        return public

    @classmethod
    def from_text(cls, text: str) -> Model:
        """Return the model of a public part that the ledger stores.

        Raises:
            ChainError: the text contains no valid leakage bound.
        """
        return cls(text, LeakageBound.from_json(json.loads(text)["envelope"]))

    @property
    def first_form(self) -> Model:
        """Return the model as the first version of agedp wrote it: no pieces, total variations in whole 1e-9."""
        if not self.leakage_bound.hulls and self.leakage_bound.distances == "rounded":
            return self
        leakage_bound = replace(self.leakage_bound, hulls={}, distances="rounded")
        return Model(public_text(self.public, leakage_bound), leakage_bound)


def public_text(settings: Mapping[str, Any], leakage_bound: LeakageBound) -> str:
    """Return the canonical text of a public part, whose SHA-256 is the model's id.

    Args:
        settings: the settings without the bound, see `model_settings`.
        leakage_bound: the bound; stored under the key `envelope`.

    Returns:
        ASCII JSON with sorted keys and no spaces.
    """
    public = {**settings, "envelope": leakage_bound.to_json()}
    return json.dumps(public, sort_keys=True, separators=(",", ":"), ensure_ascii=True)


def read_model(run: RunFile) -> Model | None:
    """Read the model of a run file: from its declared curve or kernel, or from the folder of an estimated model.

    Returns:
        The model, or None if the run file has none.

    Raises:
        RunFileError: a curve, kernel or model folder that cannot be used, or a model made under other settings.
        InputError: a curve or kernel at a URL that cannot be read.
    """
    if not isinstance(run.model, EstimatedModel):
        return None if run.model is None else _read_declared(run.model)
    model = _read_estimated(run.model, run.population.name)
    if run.promise.composes_ahead and not model.leakage_bound.has_both_directions:
        raise RunFileError(
            f'[model] file: this model has no forward leakage, which notion = "{run.promise.notion}" needs; '
            "calibrate again under another file name"
        )
    return model


def model_settings(model: EstimatedModel) -> dict[str, Any]:
    """Return the settings of an estimated model that belong to its public part, as JSON values.

    A model whose stored settings differ from those of the run file is refused, see `read_model`. The folder and the
    acknowledgement publish = "envelope" are not included; a private selection is, with the content of its family.

    Raises:
        RunFileError: the file of the family cannot be used.
    """
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
        **(_selection_settings(model) if model.is_private else {}),
    }


def _selection_settings(model: EstimatedModel) -> dict[str, Any]:
    terms = ("selection_epsilon", "coverage", "failure_probability", *(["quantiles"] if model.quantiles else []))
    settings = {key: contract_value(getattr(model, key)) for key in terms}
    return {"publish": model.publish, **settings, "family": read_family(model).to_json()}


def read_family(model: EstimatedModel) -> NestedFamily:
    """Return the family of bounds among which a private selection chooses: that of the run file, or the default.

    Raises:
        RunFileError: the file of the family cannot be used.
    """
    from agedp_data.leakage.nested_family import DEFAULT_FAMILY, NestedFamily  # noqa: PLC0415  (private models alone)

    if model.family is None:
        return DEFAULT_FAMILY
    try:
        return NestedFamily.of_table(_read_numbers(model.family, "family"))
    except ChainError as error:
        raise _file_error(model.family, "family", str(error)) from None


def _read_estimated(model: EstimatedModel, population: str) -> Model:
    path = Path(model.file) / PUBLIC_FILE
    try:
        _check_regular_file(path)
        text = path.read_text(encoding="ascii")
        public = json.loads(text)
        leakage_bound = LeakageBound.from_json(public["envelope"])
    except FileNotFoundError:
        raise RunFileError(
            "[model] file: the model does not exist yet; `agedp calibrate RUN.toml` makes it",
            private=f"[model] file: {model.file} does not contain a model yet; `agedp calibrate RUN.toml` makes it",
        ) from None
    except (OSError, ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError, ChainError):
        raise _damaged_error(path, "damaged", f"{PUBLIC_FILE} is damaged", "a good copy") from None
    # a model of an earlier version has no digest
    digest = path.with_name(DIGEST_FILE)
    if digest.exists() and digest.read_bytes() != digest_line(text).encode():
        problem = f"differs from the digest in {DIGEST_FILE} beside it"
        raise _damaged_error(path, f"it {problem}", f"{PUBLIC_FILE} {problem}", "good copies")
    selected_for = public.get("population", population)
    if selected_for != population:  # the draws of a private selection, and the share that it bounds, are another's
        raise RunFileError(
            f"[model] file: the model was selected by the households of population {selected_for!r} and bounds a "
            f"share of them, not of {population!r}; name another folder and calibrate for this population"
        )
    expected = model_settings(model)
    compared = dict.fromkeys((*expected, "level", "publish", "quantiles"))
    if changed := [key for key in compared if public.get(key) != expected.get(key)]:
        raise RunFileError(
            f"[model] {', '.join(changed)}: the model was made under other settings; "
            "restore them, or calibrate anew under another file name"
        )
    return Model(text, leakage_bound)


def _damaged_error(path: Path, private: str, public: str, copies: str) -> RunFileError:
    remedy = f"put back {copies}, or calibrate under a new name"
    return RunFileError(f"[model] file: {public}; {remedy}", private=f"{escape_text(str(path))}: {private}; {remedy}")


def digest_line(text: str) -> str:
    """Return the line of `public.sha256` for a public part, in the format of sha256sum.

    >>> digest_line("{}").split()[1]
    'public.json'
    """
    return f"{hashlib.sha256(text.encode()).hexdigest()}  {PUBLIC_FILE}\n"


def _read_declared(model: DeclaredModel) -> Model:
    settings: dict[str, Any] = {"source": "declared", "assume": model.assume, "basis": model.basis}
    if model.curve is not None:
        leakage_bound = _read_curve(model.curve, assume=model.assume)
        return Model(public_text({**settings, "given": "curve"}, leakage_bound), leakage_bound)
    leakage_bound = _read_kernel(str(model.kernel), assume=model.assume, step=str(model.step))
    return Model(public_text({**settings, "given": "kernel", "step": model.step}, leakage_bound), leakage_bound)


def _read_curve(location: str, *, assume: str) -> LeakageBound:
    """Return the leakage bound of a declared curve: total variation by age, valid from each age on."""
    rows = _read_numbers(location, "curve")
    pairs = [(row[0], row[1]) for row in rows if len(row) == 2]
    if len(pairs) != len(rows) or not pairs:
        raise _file_error(location, "curve", "must have two columns, age_days,total_variation")
    if not all(0 <= age <= MANY_DAYS for age, _ in pairs):
        raise _file_error(location, "curve", f"must have ascending ages, in days from 0 to {MANY_DAYS}")
    ages = [math.ceil(age * _SLOTS) for age, _ in pairs]
    values = [_positive_float(value) for _, value in pairs]
    if any(later <= earlier for earlier, later in pairwise(ages)):
        raise _file_error(location, "curve", "must have ascending ages, at least half an hour apart")
    if not all(0 <= value <= 1 for value in values):
        raise _file_error(location, "curve", "must have total variations between 0 and 1")
    if any(later > earlier for earlier, later in pairwise(values)):
        raise ChainError("[model] curve: must not increase with age; an output stays public for ever")
    bounds = {"total_variation": np.array(values)}
    return LeakageBound(np.array(ages), LOSS_GRID, None, None, bounds, _SLOTS, assume, distances="exact")


def _positive_float(value: Decimal) -> float:
    """Return a number as a float; a positive number below the smallest float stays positive."""
    return max(float(value), math.ulp(0.0)) if value > 0 else float(value)


def _read_kernel(location: str, *, assume: str, step: str) -> LeakageBound:
    """Return the leakage bound of a declared one-step kernel; rows: the state now, columns: one step later."""
    rows = _read_numbers(location, "kernel")
    if any(len(row) != len(rows) for row in rows):
        raise _file_error(location, "kernel", "must be a square table of probabilities, one row per state")
    matrix = np.array(rows, dtype=np.float64)
    if (matrix < 0).any() or np.abs(matrix.sum(axis=1) - 1).max() > 1e-9:
        raise _file_error(location, "kernel", "must have rows of probabilities that add up to 1")
    if not _is_irreducible(matrix):
        raise _file_error(location, "kernel", "must lead from each of two or more states to every other")
    return kernel_leakage_bound(matrix, assume=assume, steps_per_day=1 if step == "day" else _SLOTS)


def kernel_leakage_bound(
    matrix: np.ndarray[Any, np.dtype[np.float64]], *, assume: str, steps_per_day: int
) -> LeakageBound:
    """Return the leakage bound of a transition matrix whose states all lead to each other.

    Args:
        matrix: shape (k, k), rows sum to 1 [-]; one step = 1 / `steps_per_day` of a day.
        assume: "markov" or "curve".
        steps_per_day: 1 or 48.
    """
    from agedp_data.leakage.population_bound import (  # noqa: PLC0415  (a stored model needs none)
        composition_age_steps,
        leakage_bound,
    )

    # Forward leakage is needed only for losses that compose.
    is_composed = assume == "markov"
    days = np.array(_KERNEL_AGES)
    bound = leakage_bound(
        reverse(matrix)[None],
        composition_age_steps(days.tolist(), steps_per_day=steps_per_day) if is_composed else days * steps_per_day,
        LOSS_GRID,
        reliable=np.array([True]),
        forward=matrix[None] if is_composed else None,
        steps_per_day=steps_per_day,
        pieces=True,
    )
    return replace(bound, assume=assume)


def _is_irreducible(matrix: np.ndarray[Any, np.dtype[np.float64]]) -> bool:
    try:
        return len(matrix) > 1 and bool((stationary(matrix) > 0).all())
    except ChainError:
        return False


def _read_numbers(location: str, key: str) -> list[list[Decimal]]:
    """Return the rows of a table of numbers; a first line of words is its header."""
    try:
        lines = [line for line in csv.reader(_read_bytes(location, key).decode("utf-8-sig").splitlines()) if line]
    except OSError as error:
        raise _file_error(location, key, f"cannot be read ({error.strerror})") from None
    except (UnicodeDecodeError, csv.Error):
        raise _file_error(location, key, "is not a CSV text") from None
    has_header = bool(lines) and all(_WORD.fullmatch(cell.strip()) for cell in lines[0])
    rows = [_parse_row(line) for line in (lines[1:] if has_header else lines)]
    if not rows or None in rows:
        raise _file_error(location, key, "must hold numbers only, below an optional header line")
    return [row for row in rows if row is not None]


def _read_bytes(location: str, key: str) -> bytes:
    if filesystem.is_url(location):
        return filesystem.read_bytes(location, f"[model] {key}")
    _check_regular_file(Path(location))
    return Path(location).read_bytes()


def _check_regular_file(path: Path) -> None:
    """Raise OSError for a folder, or a pipe that might never end; a missing file is reported when it is opened."""
    if path.exists() and not path.is_file():
        raise OSError(errno.EINVAL, "is not a file")


def _parse_row(cells: Sequence[str]) -> list[Decimal] | None:
    numbers = [cell.strip() for cell in cells]
    return [Decimal(number) for number in numbers] if all(map(_NUMBER.fullmatch, numbers)) else None


def _file_error(location: str, key: str, problem: str) -> RunFileError:
    return RunFileError(
        f"[model] {key}: {problem}", private=f"[model] {key} = {filesystem.format_location(location)}: {problem}"
    )
