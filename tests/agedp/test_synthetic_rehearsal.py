"""A rehearsal on synthetic households opens no input file and sums what plain loops recompute from the chains."""

from __future__ import annotations

import os
import sys
from bisect import bisect_right
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date, timedelta
from functools import cache
from pathlib import Path
from unittest import mock

import numpy as np
import pyarrow.parquet as pq
import pytest

from agedp.calibration_pipeline import calibrate
from agedp.reports.confidential_report import REPORT
from agedp.stages.ingest import named_columns
from agedp.stages.plan import forecast_run
from agedp_data import mechanisms
from agedp_data.datasets.ausgrid import Ausgrid
from agedp_data.datasets.registry import layout_of
from agedp_data.datasets.synthetic import households as chains
from agedp_data.datasets.synthetic.households import (
    BATCH,
    day_factors,
    day_shape,
    draw_gaps,
    draw_households,
    draw_month,
)
from agedp_data.errors import AgedpError, LedgerError, RunFileError
from agedp_data.statement.note_texts import NOTES
from tests.agedp.conftest import House
from tests.minimal import of_three_states

FIRST, DAYS = date(2012, 9, 29), 10
"""Ausgrid's 7 October 2012 has 46 half-hours."""
REHEARSED = (
    'notion = "classical"\nage_days = 1\nepsilon_per_day = 0.5\nmax_day_epsilon = 0.5\nepsilon_total = "unlimited"\n'
)
CLAMP_WH, MISSING_WH, EDGE_WH = 9_000, 4_321, 5_000
COUNTS = 'by = "area"\nmissing_kwh = 4.321\nmax_missing = 0\nshare = 0.5\n[series.counts]\nstatistic = "distribution"\n'
COUNTS += "bins_kwh = [0, 5, 9]\nclamp_kwh = 9\nmax_missing = 0\nmissing_kwh = 4.321\nshare = 0.5\n"

WATCHED: list[Path] = []
OPENED: list[Path] = []


def _note(event: str, arguments: tuple[object, ...]) -> None:
    if WATCHED and event in ("open", "os.listdir", "os.scandir") and isinstance(arguments[0], str | bytes):
        path = Path(os.fsdecode(arguments[0]))
        OPENED.extend(path for folder in WATCHED if path.is_relative_to(folder))


sys.addaudithook(_note)  # it cannot be removed, and does nothing unless a folder is watched


@contextmanager
def watched(folder: Path) -> Iterator[list[Path]]:
    """Yield what is opened or listed below a folder."""
    WATCHED.append(folder)
    OPENED.clear()
    yield OPENED
    WATCHED.clear()


def synthetic(house: House, *, dataset: str = "ausgrid", days: int = DAYS, rest: str = COUNTS, **keys: str) -> House:
    """Write roster and run file of a rehearsal on synthetic households; nothing lies where its input files would."""
    roster = [(f"h{i}", FIRST + timedelta(days=i % 3), "", "ba"[i % 5 == 0]) for i in range(7)]
    roster.append(("gone", FIRST, FIRST + timedelta(days=4), "a"))
    lines = [",".join(map(str, line)) for line in roster]
    (house.folder / "roster.csv").write_text("\n".join(["household_id,from,to,area", *lines]) + "\n")
    promise = {"promise": REHEARSED, "mode": "rehearsal", "dataset": dataset, "clamp": "9", **keys}
    house.write(FIRST, FIRST + timedelta(days=days - 1), **promise)
    house.edit(
        ('rehearsal_on = "readings"', 'rehearsal_on = "synthetic"'), ("clamp_kwh = 9\n", f"clamp_kwh = 9\n{rest}")
    )
    return house


def without_noise(house: House, **when: date) -> House:
    def exact(values: object, *, sensitivity: int, loss: object) -> np.ndarray:
        del sensitivity, loss
        return np.asarray(values)

    with mock.patch.object(mechanisms, "discrete_laplace", exact):
        house.run(**when)
    return house


@cache
def half_hours(month: date, household: int) -> list[int | None]:
    """Return the watt-hours of a household's half-hours in a month, None for a gap, by one chain and plain loops."""
    seed, number = 12 * month.year + month.month, household % BATCH
    length = ((month + timedelta(days=31)).replace(day=1) - month).days
    profiles = draw_households(BATCH, mean_kwh=10.0, seed=1)
    kind, mean_wh = int(profiles.kind[household]), float(profiles.mean_kwh[household]) * 1000 / 48
    factor, shape = day_factors(month, length, seed=seed, coldest=date(month.year, 1, 20)), day_shape()
    draws = np.random.default_rng([seed, 2, household // BATCH]).random((48 * length, BATCH))[:, number]
    gaps = draw_gaps(BATCH, 48 * length, generator=np.random.default_rng([seed, 3, household // BATCH]))[number]
    rows = np.cumsum(chains.KERNELS[kind], axis=1)[:, :-1].tolist()
    row, use = np.cumsum(chains.STATIONARY[kind])[:-1].tolist(), []
    for step, chance in enumerate(draws.tolist()):
        state = bisect_right(row, chance)
        row = rows[state]
        scale = factor[step // 48] * shape[step % 48]
        use.append(None if gaps[step] else min(round(mean_wh * chains.LEVELS[kind][state] * scale), 8_000))
    return use


def test_published_sums_are_those_of_chains_that_plain_loops_follow(house):
    folder = without_noise(synthetic(house)).folder / "release"
    averages, distribution = (
        pq.read_table(folder / f"daily_{name}.parquet").to_pylist() for name in ("averages", "distribution")
    )
    mean = {(row["day"], row["group"]): row["noisy_sum_wh"] for row in averages}
    counted = {(row["day"], row["bin_low_kwh"]): row["households_noisy"] for row in distribution}
    members = [row.split(",") for row in (house.folder / "roster.csv").read_text().splitlines()[1:]]
    uses = set()
    for day in (FIRST + timedelta(days=i) for i in range(DAYS)):
        slots = [48 * (day.day - 1) + slot for slot in range(48) if slot not in Ausgrid().absent_slots(day)]
        areas = sorted(area for _, first, last, area in members if first <= str(day) and (not last or str(day) <= last))
        sums, bins = {"a": 0, "b": 0}, [0, 0]
        for household, area in enumerate(areas):
            read = [half_hours(day.replace(day=1), household)[slot] for slot in slots]
            uses.add(use := MISSING_WH if None in read else min(sum(read), CLAMP_WH))
            sums[area] += use
            bins[use >= EDGE_WH] += 1
        published = {area: mean[day, area] for area in "ab" if (day, area) in mean}
        assert published == {area: sums[area] for area in "ab" if areas.count(area) >= 2}, day
        assert [counted[day, low] for low in (0.0, 5.0)] == bins
    assert {MISSING_WH, CLAMP_WH} < uses


def test_no_input_file_is_opened_or_changes_a_byte(houses, tmp_path):
    seen = []
    for name, content in (("absent", None), ("readings", "readings"), ("garbage", "\0garbage")):
        (tmp_path / name).mkdir()
        house = synthetic(houses(tmp_path / name), dataset="london")
        if content is not None:
            (house.folder / "input").mkdir()
            (house.folder / "input" / "a.csv").write_text(content)
            if content == "readings":
                house.london({(f"h{i}", FIRST, slot): 200 for i in range(7) for slot in range(48)})
        with watched(house.folder / "input") as opened:
            without_noise(house)
        assert not opened
        assert not (house.folder / "confidential" / "store").exists()
        seen.append(house.files())
    assert seen[0] == seen[1] == seen[2]
    assert NOTES.rehearsed_on_synthetic in house.release.statement["notes"]
    report = (house.folder / "confidential" / "synthetic" / REPORT).read_text()
    assert "The households are synthetic" in report
    assert "Synthetic households." in house.files()["datapackage.json"].decode()


def test_a_new_rehearsal_says_what_it_is_on(house):
    synthetic(house, dataset="london").edit(('rehearsal_on = "synthetic"\n', ""))
    for step in (house.run, lambda: forecast_run(house.session())):
        with pytest.raises(RunFileError, match=r"^run.toml: \[schedule\] rehearsal_on is missing.*Write rehearsal_on"):
            step()
    assert not (house.folder / "ledger.sqlite").exists()


def test_rehearsals_on_readings_are_stated_and_never_become_synthetic(house):
    house.fill([FIRST, FIRST + timedelta(days=1)])
    house.write(FIRST, FIRST + timedelta(days=1), mode="rehearsal", promise=REHEARSED)
    house.run()
    assert NOTES.rehearsed_on_readings in house.release.statement["notes"]
    house.edit(('rehearsal_on = "readings"\n', ""))
    house.run()
    house.edit(('mode = "rehearsal"', 'mode = "rehearsal"\nrehearsal_on = "synthetic"'))
    with pytest.raises(LedgerError, match=r"a ledger each"):
        house.run()


def test_no_model_is_made_of_readings_and_one_that_exists_shows_its_public_part(house):
    days = [FIRST + timedelta(days=i) for i in range(3)]
    house.fill(days)
    promise = 'notion = "age-dependent"\nage_days = 1\nepsilon_per_day = 0.5\nmethod = "tight"\nsecret = "day"\n'
    promise += 'max_day_epsilon = 0.5\nepsilon_total = "unlimited"\n'
    model = f"[model]\n{of_three_states(f'{days[0]}, {days[-1]}')}".replace('"quantile"', "[0.1, 0.2]")
    house.london({("A", day, slot): 100 * (slot % 3) for day in days for slot in range(48)})
    house.roster([("A", days[0], None), ("B", days[0], None)])
    house.write(days[0], days[-1], mode="rehearsal", promise=promise, rest=model, clamp='9\nvalues = "states"')
    house.edit(('rehearsal_on = "readings"', 'rehearsal_on = "synthetic"'))
    for step in (house.run, lambda: calibrate(house.run_file)):
        with pytest.raises(AgedpError, match=r'rehearsal_on = "synthetic" reads no readings.*Name the folder'):
            step()
    assert not (house.folder / "model").exists()
    house.edit(('rehearsal_on = "synthetic"', 'rehearsal_on = "readings"'))
    calibrate(house.run_file)
    house.edit(('rehearsal_on = "readings"', 'rehearsal_on = "synthetic"'))
    with watched(house.folder / "model") as opened:
        without_noise(house)
    assert {path.name for path in opened} == {"public.json", "public.sha256"}
    table = pq.read_table(house.folder / "release" / "daily_averages.parquet").to_pylist()
    assert [row["noisy_sum_wh"] for row in table] == [
        sum(min(sum(map(middle, half_hours_of(day, household))), CLAMP_WH) for household in range(2)) for day in days
    ]


def half_hours_of(day: date, household: int) -> list[int | None]:
    return half_hours(day.replace(day=1), household)[48 * (day.day - 1) : 48 * day.day]


def middle(use: int | None) -> int:
    """Return the middle of the range that a half-hour lies in: below 100 Wh, 200 Wh, or open to 300 Wh."""
    return 0 if use is None else (50, 150, 250)[(use >= 100) + (use >= 200)]


ZONES = {"zone": "UTC", "day_zone": "UTC"}


def test_an_hourly_layout_has_the_sums_of_two_half_hours():
    columns = named_columns({"household": "h", "time": "t", "energy": "e", "stamp": "end", "unit": "Wh", **ZONES})
    halves, hours = (
        next(
            draw_month(FIRST, days=4, households=9, layout=layout_of("long", columns, minutes), max_half_hour_wh=9_999)
        )
        for minutes in (30, 60)
    )
    present = halves[2][..., ::2]
    assert np.array_equal(hours[2], present)
    both = present & halves[2][..., 1::2]
    assert both.mean() > 0.9
    assert np.array_equal(hours[1][both], (halves[1][..., ::2] + halves[1][..., 1::2])[both])
