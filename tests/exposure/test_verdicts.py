"""Non-interference of the verdict on a model: two houses with different verdicts leave equal bytes."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime, time, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import agedp
from agedp.internal_records.bookkeeping import ModelVerdict, write_verdict
from tests.exposure.pairs import FIRST, NIGHTS, House, Public, with_fixed_noise
from tests.model_tables import estimated_table

PERIOD = (FIRST - timedelta(days=8), FIRST - timedelta(days=1))
SETTINGS = {"min_visits": 5, "confidence": "plug-in", "ages_days": [1, 2], "chain": "homogeneous"}
SETTINGS |= {"assume": "markov", "publish": "envelope"}
MODEL = estimated_table(*PERIOD)
ACCEPTED = estimated_table(*PERIOD, accepted=True)
VERDICTS = (
    ModelVerdict("rejected", "MARK decays."),
    ModelVerdict("not rejected", "MARK."),
    ModelVerdict("cannot be judged", "MARK: too few."),
    None,
)


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """Return the folder of a model that all houses share, of half-hours without memory."""
    folder, chance = tmp_path_factory.mktemp("model"), np.random.default_rng(1)
    begin = datetime.combine(PERIOD[0], time())
    rows = [
        f"h{household},{begin + timedelta(minutes=30 * (step + 1))},{chance.choice([0.1, 0.9])}"
        for household in range(2)
        for step in range(8 * 48)
    ]
    (folder / "open.csv").write_text("\n".join(["LCLid,tstp,energy(kWh/hh)", *rows]) + "\n")
    frame = agedp.read([folder / "open.csv"], dataset="london", days=PERIOD)
    made = agedp.calibrate(agedp.quantize(frame, step="half-hour", states=2, edges=[500]), **SETTINGS)
    return made.save(folder / "saved")


def lived(house: House, model: Path, verdict: ModelVerdict | None, table: str) -> tuple[list[Any], str]:
    """Return all that becomes public of a night, and what the terminal shows of it."""
    house.build()
    text = (house.folder / "run.toml").read_text()
    before, after = text.index("[model]"), text.index("[alerts]")
    (house.folder / "run.toml").write_text(f"{text[:before]}{table}{text[after:]}")
    shutil.copytree(model, house.folder / "model")
    if verdict is not None:
        identity = agedp.load_model(model).id
        write_verdict(house.folder / "out" / "confidential", identity, verdict)
    house.deliver(0)
    now, verbs = datetime.combine(NIGHTS[0], time(3), UTC), ("plan", "run")
    seen = [with_fixed_noise(house.folder, verb, "run.toml", "--json", now=now) for verb in verbs]
    shown = [with_fixed_noise(house.folder, verb, "run.toml", now=now).out for verb in verbs]
    seen.append(house.published())
    return seen, "\n".join(shown)


@pytest.mark.parametrize(
    ("table", "verdicts"),
    [(ACCEPTED, VERDICTS[:2]), (ACCEPTED, VERDICTS[2:]), (MODEL, VERDICTS[1:4:2])],
    ids=["accepted", "accepted, not judged or no file", "refused"],
)
def test_two_verdicts_leave_equal_public_bytes(tmp_path, model, table, verdicts):
    public = Public(notion="age-dependent", mode="live")
    houses = [House(tmp_path / str(seed), public, seed) for seed in (1, 2)]
    results = [lived(house, model, verdict, table) for house, verdict in zip(houses, verdicts, strict=True)]
    assert results[0][0] == results[1][0]
    is_released = b'"state":"released"' in results[0][0][-1]["ledger"]
    assert is_released is (table == ACCEPTED)
    if is_released:
        for (_, shown), verdict in zip(results, verdicts, strict=True):
            none = "none, because its check is not in the confidential folder."
            text = none if verdict is None else f"{verdict.verdict}. {verdict.reason}"
            assert shown.count(f"Check of the estimated model (confidential): {text}") == 2
