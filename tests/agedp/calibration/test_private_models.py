"""A model selected privately: each household decides its own member alone, and a question is drawn once."""

from __future__ import annotations

import shutil
from datetime import date, timedelta
from decimal import Decimal

import numpy as np
import pyarrow.parquet as pq
import pytest

import agedp
from agedp.calibration.estimate import Transitions
from agedp.calibration.leakage_bounds import household_mixing, model_ages
from agedp.calibration.member_selection import is_on_roster
from agedp.calibration_pipeline import calibrate
from agedp.stages.amend import amend
from agedp_data import mechanisms
from agedp_data.config.model_section import EstimatedModel
from agedp_data.datasets.timestamps import day_number
from agedp_data.errors import Refused, RunFileError
from agedp_data.markov.confidence import sampling_bound
from agedp_data.markov.mixing import total_variation_forward
from agedp_data.roster import RosterRows
from agedp_flows.text.calibration_text import calibration_json, calibration_lines
from agedp_flows.text.run_text import household_lines
from tests.agedp.conftest import House

FIRST, DAYS = date(2013, 1, 1), 24
LAST = FIRST + timedelta(days=DAYS - 1)
PERIOD_END = LAST - timedelta(days=2)
HOMES = tuple("ABCDEF")
PROMISE = (
    'notion = "age-dependent"\nage_days = 1\nepsilon_per_day = 0.5\nmethod = "tight"\nsecret = "day"\n'
    "max_day_epsilon = 12\nepsilon_total = 60\n"
)
MODEL = f"""[model]
source = "estimated"
assume = "markov"
file = "model"
period = [{FIRST}, {PERIOD_END}]
step = "half-hour"
states = 2
edges = "quantile"
chain = "homogeneous"
min_visits = 5
confidence = "plug-in"
ages_days = [1, 2]
publish = "private"
selection_epsilon = 4
coverage = 0.5
failure_probability = 0.1
"""


def readings(seed: int, households: str) -> dict:
    """Half-hours that stay high or low with a probability of .9 to .99, by household."""
    found = {}
    for household in households:
        rng = np.random.default_rng([seed, ord(household)])
        change = rng.random(DAYS * 48) < rng.choice([0.1, 0.02, 0.01])
        energy_wh = 200 + 300 * (np.cumsum(change) % 2) + rng.integers(0, 50, DAYS * 48)
        for i, wh in enumerate(energy_wh.tolist()):
            found[household, FIRST + timedelta(days=i // 48), i % 48] = wh
    return found


@pytest.fixture
def homes(house: House) -> House:
    """Six homes on the roster, and one that comes later, with readings of the period all the same."""
    house.london(readings(1, "".join(HOMES) + "Z"))
    house.roster([*((home, FIRST, None) for home in HOMES), ("Z", PERIOD_END + timedelta(days=1), None)])
    house.write(LAST - timedelta(days=1), LAST, promise=PROMISE, rest=MODEL)
    return house


@pytest.fixture
def draws(monkeypatch) -> list:
    """Scores of the draws, which are real."""
    made, draw = [], mechanisms.exponential_mechanism
    monkeypatch.setattr(
        mechanisms, "exponential_mechanism", lambda scores, *, loss: made.append(scores) or draw(scores, loss=loss)
    )
    return made


def members(house: House) -> dict:
    table = pq.read_table(house.folder / "model" / "households.parquet")
    return dict(zip(table["household_id"].to_pylist(), table["smallest_member"].to_pylist(), strict=True))


def settings(**keys) -> EstimatedModel:
    period = (FIRST, LAST)
    common = {
        "source": "estimated", "assume": "markov", "file": "/nowhere", "period": period, "step": "half-hour",
        "states": 3, "edges": "quantile", "chain": "homogeneous", "min_visits": 2, "confidence": "plug-in",
        "ages_days": (1, 2), "publish": "envelope",
    }  # fmt: skip
    return EstimatedModel(**{**common, **keys})


BOUNDED = {"confidence": "sampling-bound", "level": Decimal("0.9")}
KINDS = {
    "half-hours": {},
    "days": {"step": "day"},
    "a curve": {"assume": "curve", "step": "day"},
    "bounded": BOUNDED,
    "cyclic": {"chain": "cyclic"},
    "bounded and cyclic": {"chain": "cyclic", **BOUNDED},
}


def transitions(kind: str, seeds: list[int]) -> Transitions:
    """Counts of a household for each seed; every fifth household has a state that it never leaves."""
    phases, lag = ((48,), 6) if "cyclic" in kind else ((), 5)

    def counts(shape: tuple[int, ...], size: int) -> np.ndarray:
        tables = np.array([np.random.default_rng([seed, size]).integers(1, size, (*shape, 3, 3)) for seed in seeds])
        tables += size * 2 * np.eye(3, dtype=np.int64)
        tables[[seed % 5 == 4 for seed in seeds], ..., 2, :] = 0
        return tables

    subsampled = {lag: counts(tuple(phase // lag for phase in phases), 20_000)} if "bounded" in kind else {}
    number = np.full(len(seeds), 1000)
    return Transitions(counts(phases, 50_000 if "bounded" in kind else 50), number, number * 0, subsampled)


@pytest.mark.parametrize("kind", KINDS)
def test_the_figures_of_a_household_do_not_depend_on_others(kind):
    model = settings(**KINDS[kind])
    ages = model_ages(model)
    before = household_mixing(transitions(kind, [1, 2, 3, 4]), model, ages)
    after = household_mixing(transitions(kind, [9, 2, 14, 4]), model, ages)
    for name in ("distances", "mixes", *(["groups"] if "cyclic" in kind else [])):
        assert np.array_equal(getattr(before, name)[[1, 3]], getattr(after, name)[[1, 3]])
    assert (before.distances[[0, 1, 2]] < 1).any(axis=1).all()
    assert before.distances[3].tolist() == after.distances[2].tolist() == [1] * len(ages)
    assert not np.array_equal(before.distances[0], after.distances[0])


def test_distances_are_the_larger_of_both_directions():
    counts = transitions("days", [1, 2]).counts
    number = np.full(2, 1000)
    found = household_mixing(Transitions(counts, number, number), settings(step="day"), np.array([1, 2]))
    for household in (0, 1):
        forward, backward = (
            table / table.sum(axis=1, keepdims=True) for table in (counts[household], counts[household].T)
        )
        both = [total_variation_forward(kernel, [1, 2]) for kernel in (forward, backward)]
        assert np.allclose(found.distances[household], np.max(both, axis=0), rtol=1e-12)
    bounded = household_mixing(
        Transitions(counts * 1000, number, number), settings(step="day", **BOUNDED), np.array([1])
    )
    both = [
        sampling_bound(table * 1000, [1], level=0.95, households=2) for table in (counts, np.swapaxes(counts, 1, 2))
    ]
    assert np.allclose(bounded.distances, np.max(both, axis=0), rtol=1e-9)


def test_changed_readings_change_one_member_and_nothing_public(homes, houses, tmp_path_factory, monkeypatch):
    monkeypatch.setattr(mechanisms, "exponential_mechanism", lambda scores, *, loss: 4)
    twin = houses(tmp_path_factory.mktemp("twin"))
    for path in ("roster.csv", "run.toml"):
        shutil.copy(homes.folder / path, twin.folder / path)
    found = readings(1, "".join(HOMES))
    twin.london({**found, **{key: 300 for key in found if key[0] == "A"}, **readings(2, "Z")})
    made, changed = calibrate(homes.run_file), calibrate(twin.run_file)
    assert (made.households, changed.unmixed) == (6, 1)
    before, after = members(homes), members(twin)
    assert tuple(before) == HOMES  # not the household that is not on the roster
    assert before["A"] < 10 == after["A"]
    assert {home: before[home] for home in HOMES[1:]} == {home: after[home] for home in HOMES[1:]}
    assert made.model.text == changed.model.text
    assert homes.ledger().all_rows() == twin.ledger().all_rows()
    assert calibration_json(made) == calibration_json(changed)
    assert (made.selected.counts != changed.selected.counts).any()


def test_a_household_is_of_the_population_if_any_of_its_days_is_in_the_period():
    """Every row of up to four days around a period of three, and a household with a row on each side of it."""
    days = [date(2012, 12, 29) + timedelta(days=i) for i in range(9)]
    period = days[3], days[5]
    spans = [(days[i], days[j]) for i in range(9) for j in range(i, min(i + 4, 9))]
    expected = [any(period[0] <= day <= period[1] for day in days if first <= day <= last) for first, last in spans]
    rows = [*enumerate(spans), (len(spans), (days[0], days[2])), (len(spans), (days[6], days[8]))]
    first, last = (np.array([day_number(span[end]) for _, span in rows]) for end in (0, 1))
    ids, household = tuple(map(str, range(len(spans) + 1))), np.array([number for number, _ in rows])
    flags = is_on_roster(RosterRows(ids, household, first, last, {}), period)
    assert flags.tolist() == [*expected, False]


def test_a_question_is_drawn_once_and_another_one_again(homes, draws):
    made = calibrate(homes.run_file)
    assert len(draws) == 1
    assert made.model.public["member"] == made.selected.member
    again = calibrate(homes.run_file)
    assert again.is_stored
    assert "Nothing was read or drawn" in "\n".join(calibration_lines(again))
    shutil.rmtree(homes.folder / "model")
    restored = calibrate(homes.run_file)
    assert restored.model == made.model
    assert "already: 1; answers drawn now: 0" in "\n".join(calibration_lines(restored))
    assert len(draws) == 1
    homes.edit(("coverage = 0.5", "coverage = 0.4"), ('"model"', '"another"'))
    another = calibrate(homes.run_file)
    assert len(draws) == 2
    assert (another.draws.drawn, another.draws.stored) == (1, 0)
    with homes.ledger() as ledger:
        assert [draw.loss for draw in ledger.calibration_draws("homes")] == [4 * 10**9, 4 * 10**9]
        assert ledger.verify() == ()


def test_killed_between_ledger_and_folder_it_makes_the_same_model(homes, draws, monkeypatch):
    def stop(text):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("agedp.calibration.bound.digest_line", stop)
        with pytest.raises(KeyboardInterrupt):
            calibrate(homes.run_file)
    with homes.ledger() as ledger:
        answers = [draw.value for draw in ledger.calibration_draws()]
    made = calibrate(homes.run_file)
    assert len(draws) == 1
    assert [tuple(draw["value"]) for draw in made.model.public["draws"]] == answers


def test_what_cannot_be_kept_is_refused_before_a_reading_is_read(homes):
    shutil.rmtree(homes.folder / "input")
    text = homes.run_file.read_text()
    released = (f"{PERIOD_END}]", f"{LAST}]")
    for edits, kind, problem in (
        ([("0.5\nfail", "0.9\nfail")], RunFileError, r"aims at 8 households.* has 6\. It needs 24 households"),
        ([("epsilon = 4", "epsilon = 60")], Refused, r"epsilon_total = 60"),
        ([("epsilon = 4", "epsilon = 12"), released], Refused, r"epsilon_per_day = 0\.5 leaves nothing"),
    ):
        changed = text
        for old, new in edits:
            assert old in changed
            changed = changed.replace(old, new)
        homes.run_file.write_text(changed)
        with pytest.raises(kind, match=problem):
            calibrate(homes.run_file)
    assert not (homes.folder / "ledger.sqlite").exists()


def test_draws_are_charged_to_the_households_before_a_day_is_released(homes):
    calibrate(homes.run_file)
    lines = household_lines(homes.run_file)
    assert lines[0] == "Accounts of populations (confidential)"
    assert "Largest loss about all days of a household: 4" in lines
    homes.edit(('name = "homes"', 'name = "others"'), ("ledger.sqlite", "other.sqlite"), ('"model"', '"another"'))
    calibrate(homes.run_file)
    assert "Largest loss about all days of a household: 8" in household_lines(homes.run_file)


def test_a_model_is_used_for_the_population_that_selected_it(homes):
    calibrate(homes.run_file)
    homes.edit(('name = "homes"', 'name = "others"'), ("ledger.sqlite", "other.sqlite"))
    with pytest.raises(RunFileError, match=r"selected by the households of population 'homes' .* not of 'others'"):
        homes.context()


def test_another_ledger_adopts_the_draws_with_the_model(homes):
    made = calibrate(homes.run_file)
    homes.edit(("ledger.sqlite", "other.sqlite"))
    homes.run(today=LAST + timedelta(days=3))
    with homes.ledger() as first, homes.ledger("other.sqlite") as other:
        assert other.calibration_draws() == first.calibration_draws()
        assert other.models()[0].model == made.model.id
    homes.release.verify()
    stated = homes.release.statement["model"]
    assert (stated["member"], stated["households"]) == (made.selected.member, 6)
    assert "draws" not in stated
    homes.edit(("other.sqlite", "ledger.sqlite"), ('"release"', '"elsewhere"'), ('"confidential"', '"apart"'))
    homes.edit(("coverage = 0.5", "coverage = 0.4"), ('"model"', '"another"'))
    calibrate(homes.run_file)
    homes.edit(("ledger.sqlite", "other.sqlite"), ('"elsewhere"', '"release"'), ('"apart"', '"confidential"'))
    amend(homes.context(today=LAST + timedelta(days=3)))
    with homes.ledger() as first, homes.ledger("other.sqlite") as other:
        assert other.calibration_draws() == first.calibration_draws()
        assert len(other.calibration_draws()) == 2


def test_a_model_of_a_frame_brings_its_draws_into_the_ledger_of_a_release(homes):
    frame = agedp.read(homes.folder / "input" / "a.csv", dataset="london")
    earlier = frame[frame["interval_start"].dt.date <= PERIOD_END]
    model = agedp.calibrate(
        agedp.quantize(earlier, states=2), min_visits=5, confidence="plug-in", chain="homogeneous", ages_days=[1, 2],
        assume="markov", publish="private", selection_epsilon=4, coverage=0.5, failure_probability=0.1,
    )  # fmt: skip
    promise = agedp.Classical(
        epsilon_per_day=0.5, max_day_epsilon=9, epsilon_total=60, accept=["useless", "no-credit", "total"]
    )
    released = agedp.release(frame, promise=promise, clamp_kwh=40, min_households=2, model=model, first_day=LAST)
    assert [draw.loss for draw in released.ledger.calibration_draws("households")] == [4 * 10**9]
