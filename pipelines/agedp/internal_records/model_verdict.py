"""Verdict of a calibration on its model, kept in the confidential folder under the model's identity.

    <confidential>/forgetting/<first 16 digits of the model's SHA-256>.json

    {"model": "<SHA-256>", "verdict": "rejected", "reason": "..."}

It comes from readings, so the terminal repeats it and nothing else does: not the ledger, the release folder, `--json`
or Prefect. A model whose file is missing, for instance because an earlier version made it, has no verdict; a file
that is damaged or cannot be read counts as missing, because no release depends on it.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, Literal, get_args

from agedp.local_files import atomic_files

Verdict = Literal["rejected", "cannot be judged", "not rejected"]
VERDICTS: Final[tuple[Verdict, ...]] = get_args(Verdict)

_FOLDER = "forgetting"
_MAX_REASON = 500


@dataclass(frozen=True, slots=True)
class ModelVerdict:
    """The verdict on a model, and its reason in one line; both are confidential."""

    verdict: Verdict
    reason: str


def write_verdict(confidential: Path, model: str, verdict: ModelVerdict) -> None:
    """Write the verdict on the model with this SHA-256."""
    text = json.dumps({"model": model, **asdict(verdict)}, indent=1)
    path = _path(confidential, model)
    atomic_files.make_private(path.parent)
    atomic_files.write(path, f"{text}\n".encode())


def read_verdict(confidential: Path, model: str) -> ModelVerdict | None:
    """Return the verdict on the model with this SHA-256; None if there is none that can be read."""
    try:
        return _parse(_path(confidential, model).read_text(encoding="utf-8"), model)
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        return None


def _path(confidential: Path, model: str) -> Path:
    return confidential / _FOLDER / f"{model[:16]}.json"


def _parse(text: str, model: str) -> ModelVerdict:
    content: dict[str, Any] = json.loads(text)
    verdict, reason = content["verdict"], content["reason"]
    if content["model"] != model or verdict not in VERDICTS or not isinstance(reason, str) or len(reason) > _MAX_REASON:
        raise ValueError("not the verdict on this model")
    return ModelVerdict(verdict, " ".join(reason.split()))
