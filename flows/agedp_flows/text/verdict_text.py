"""The verdict on an estimated model, repeated by `agedp plan` and `agedp run`. Confidential: terminal only.

It comes from readings. Neither `--json`, Prefect, the ledger nor the release folder contain it; nothing depends on it.
"""

from __future__ import annotations

from pathlib import Path

from agedp.internal_records.model_verdict import read_verdict
from agedp.run_context import RunContext
from agedp_data.config.model_section import EstimatedModel
from agedp_data.messages import escape_text

_LABEL = "Check of the estimated model (confidential)"


def verdict_lines(run: RunContext) -> list[str]:
    """Return the verdict on the run's estimated model in one line; nothing without such a model."""
    if run.model is None or not isinstance(run.run_file.model, EstimatedModel):
        return []
    verdict = read_verdict(Path(run.run_file.output.confidential), run.model.id)
    if verdict is None:
        return [f"{_LABEL}: none, because its check is not in the confidential folder."]
    return [f"{_LABEL}: {verdict.verdict}. {escape_text(verdict.reason, 1000)}"]
