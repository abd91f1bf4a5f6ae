"""Whatever holds the readings, CSV, Parquet, a data frame, a Dask frame, a cluster: the same integers."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar, get_overloads

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.dataset
import pytest

import agedp
from agedp import frame_reader
from agedp.setup.sample import sample
from agedp_data import mechanisms
from agedp_data.errors import InputError, PreflightFailed, Refused, RunFileError
from agedp_data.statement.note_texts import NOTES

PROMISE = agedp.Classical(
    epsilon_per_day=0.5, max_day_epsilon=0.5, epsilon_total=100, accept=["useless", "no-credit", "total"]
)
TERMS: dict[str, Any] = {"promise": PROMISE, "clamp_kwh": 40, "min_households": 5}


@pytest.fixture(scope="module", params=["london", "ausgrid"])
def dataset(request) -> str:
    return request.param


@pytest.fixture(scope="module")
def csv(dataset, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp(dataset) / "sample"
    sample(dataset, folder, households=8, days=40, seed=3)  # Ausgrid: with the spring clock change
    return folder / "input"


@pytest.fixture(scope="module")
def readings(csv, dataset) -> pd.DataFrame:
    return agedp.read(csv / "*.csv", dataset=dataset)


def in_memory(table: Any) -> pd.DataFrame:
    """Return a frame as it is, a Dask frame computed; dtypes of text are pandas' own in both."""
    frame = table if isinstance(table, pd.DataFrame) else table.compute()
    return frame.astype({"household_id": "str"}).sort_values(["household_id", "interval_start"], ignore_index=True)


def raw_tables(csv: Path, dataset: str) -> Iterator[tuple[str, pd.DataFrame]]:
    """Yield each input file as pandas reads it, with typed numbers and timestamps."""
    for path in sorted(csv.glob("*.csv")):
        table = pd.read_csv(path, skiprows=int(dataset == "ausgrid"), dtype=str, keep_default_na=False)
        for name in table:
            if name.startswith("KWH") or ":" in name:
                table[name] = pd.to_numeric(table[name].replace({"Null": "", "": None}))
            if name in ("DateTime", "date"):
                table[name] = pd.to_datetime(table[name], format="mixed", dayfirst=dataset == "ausgrid")
        yield path.stem, table


@pytest.fixture
def fixed_noise(monkeypatch) -> None:
    monkeypatch.setattr(mechanisms, "discrete_laplace", lambda values, **_: np.asarray(values, np.int64) + 7)


class TestTheSameReadings:
    def test_of_parquet_files_and_of_folders_named_by_a_column(self, csv, dataset, readings, tmp_path):
        household = {"london": "LCLid", "ausgrid": "Customer"}[dataset]
        (tmp_path / "files").mkdir()
        for stem, table in raw_tables(csv, dataset):
            table.to_parquet(tmp_path / "files" / f"{stem}.parquet", row_group_size=100)
            for name, rows in table.groupby(household):
                folder = tmp_path / "hive" / f"{household}={name}"
                folder.mkdir(parents=True, exist_ok=True)
                rows.drop(columns=household).to_parquet(folder / f"{stem}.parquet")
        for kind in ("files", "hive"):
            found = agedp.read(tmp_path / kind, dataset=dataset)
            pd.testing.assert_frame_equal(found, readings)
            assert found.attrs == readings.attrs

    def test_of_tables_in_memory(self, csv, dataset, readings):
        import dask.dataframe as dd

        raw = pd.concat([table for _, table in raw_tables(csv, dataset)], ignore_index=True)
        arrow = pa.Table.from_pandas(raw, preserve_index=False)
        for table in (raw, arrow, arrow.to_reader(), dd.from_pandas(raw, npartitions=3)):
            found = agedp.read(table, dataset=dataset)
            pd.testing.assert_frame_equal(in_memory(found), readings)
            assert found.attrs["rows"] == readings.attrs["rows"]

    def test_of_the_frame_itself_its_parquet_file_and_a_dask_frame(self, csv, dataset, readings, tmp_path):
        readings.to_parquet(tmp_path / "readings.parquet")
        again = agedp.read(pd.read_parquet(tmp_path / "readings.parquet"))
        pd.testing.assert_frame_equal(again, readings)
        lazy = agedp.read(csv / "*.csv", dataset=dataset, as_dask=True)
        assert lazy.attrs["rows"] == readings.attrs["rows"]
        pd.testing.assert_frame_equal(in_memory(agedp.read(lazy)), readings)

    def test_of_chosen_households_and_days(self, readings):
        local_day, name = readings["interval_start"].dt.strftime("%Y-%m-%d"), readings["household_id"].iloc[-1]
        of_home = readings["household_id"] == name
        _, first, last, *_ = sorted(set(local_day[of_home]))
        expected = readings[of_home & local_day.isin([first, last])]
        found = agedp.read(readings, households=[name], days=(first, last))
        pd.testing.assert_frame_equal(found, expected.reset_index(drop=True))


def test_a_type_checker_sees_the_frame_that_is_returned():
    seen = [of.__annotations__ for of in get_overloads(frame_reader.read)]
    pandas, dask = "pd.DataFrame", "dd.DataFrame"
    expected = {"Literal[True]": dask, "Literal[False]": pandas, "bool": f"{pandas} | {dask}"}
    assert {of["as_dask"]: of["return"] for of in seen} == expected
    assert {"files", "as_dask", *frame_reader._Words.__annotations__} == set(inspect.signature(agedp.read).parameters)


@pytest.mark.parametrize(
    "dataset", ["london", pytest.param("ausgrid", marks=pytest.mark.long)], indirect=True, scope="module"
)
class TestTheSameResults:
    @pytest.fixture
    def released(self) -> Callable[[Any], tuple[Any, ...]]:
        def results(table: Any) -> tuple[Any, ...]:
            states = agedp.quantize(table, states=6)
            chains = agedp.estimate(states)
            return agedp.release(table, **TERMS).table, states.frame, states.edges, chains.counts

        return results

    @pytest.mark.xdist_group("cluster")
    def test_of_a_frame_an_arrow_table_a_dask_frame_and_workers(self, readings, csv, dataset, released, fixed_noise):
        from distributed import Client, LocalCluster

        expected = released(readings)
        lazy = agedp.read(csv / "*.csv", dataset=dataset, as_dask=True)
        with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster, Client(cluster):
            on_cluster = released(lazy)
        for found in (released(lazy), released(pa.Table.from_pandas(readings)), on_cluster):
            for one, other in zip(found[:3], expected[:3], strict=True):
                pd.testing.assert_frame_equal(one, other)
            assert (found[3] == expected[3]).all()

    def test_sums_are_those_of_the_frame(self, readings, fixed_noise):
        """Every household has all readings on the compared days, so a plain group-by gives the sums."""
        day = readings["interval_start"].dt.tz_localize(None).dt.normalize()
        daily = readings.groupby(["household_id", day])["energy_wh"].agg(["sum", "size"])
        full = daily["size"].groupby(level=1).agg(lambda sizes: len(sizes) == 8 and (sizes == 48).all())
        expected = daily["sum"].clip(upper=40_000).groupby(level=1).sum()[full] + 7
        table = agedp.release(readings, **TERMS).table
        assert len(expected) > 5
        assert table.loc[expected.index, "noisy_sum_wh"].tolist() == expected.tolist()


class TestWideTables:
    COLUMNS: ClassVar = {
        "household": "*",
        "energy": "*",
        "time": "t",
        "time_format": "iso",
        "stamp": "start",
        "zone": "UTC",
        "day_zone": "Europe/London",
        "unit": "kWh",
        "ignore": ["total"],
    }

    @pytest.fixture
    def wide(self) -> pd.DataFrame:
        times = pd.date_range("2013-10-25", "2013-10-29", freq="30min", tz="UTC", inclusive="left")
        values = np.random.default_rng(1).integers(0, 2000, (len(times), 3)) / 1000
        table = pd.DataFrame(values, columns=["a", "b", "c"])
        table.loc[3, "b"], table.loc[5, "c"], table["total"] = np.nan, -1.0, 9.0
        return table.assign(t=times)

    @pytest.mark.filterwarnings("ignore::agedp.InputWarning")
    def test_a_cell_is_a_row_in_a_frame_in_parquet_and_in_csv_with_commas_as_decimal_marks(self, wide, tmp_path):
        long = wide.drop(columns="total").melt("t", var_name="h", value_name="e")
        named = {**self.COLUMNS, "household": "h", "energy": "e", "ignore": []}
        expected = agedp.read(long, columns=named)
        assert expected.attrs["rows"]["rejected"] == {"negative energy": 1, "no reading (Null or empty)": 1}
        assert len(expected) == 3 * 192 - 2 - 3 * 2  # the repeated hour of 27 October is one
        wide.to_parquet(tmp_path / "wide.parquet", row_group_size=50)
        text = wide.assign(t=wide["t"].dt.strftime("%Y-%m-%dT%H:%M:%SZ"))
        text.to_csv(tmp_path / "wide.csv", sep=";", decimal=",", index=False)
        marks = {"separator": ";", "decimal": ","}
        for source, columns in (
            (wide, self.COLUMNS),
            (tmp_path / "wide.parquet", self.COLUMNS),
            (tmp_path / "wide.csv", {**self.COLUMNS, **marks}),
        ):
            found = agedp.read(source, columns=columns)
            pd.testing.assert_frame_equal(found, expected)
            assert found.attrs == expected.attrs


class TestRefusals:
    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({}, "promise, clamp_kwh, min_households decide what is promised and have no default"),
            ({"promise": PROMISE, "clamp_kwh": 40}, "min_households decide"),
            ({**TERMS, "clamp_kwh": -1}, "[series.use] clamp_kwh = -1: must not be negative"),
            ({**TERMS, "by": "tariff"}, "the roster has no such column"),
            ({**TERMS, "as_of": "2013-01-01"}, "as_of goes with a run file"),
            ({**TERMS, "every": "year"}, '[series.use] every = "year": has no whole period between'),
            ({**TERMS, "skip_days": ["1999-01-01"]}, "names 1999-01-01, which is not a day of the period"),
            ({**TERMS, "skip_days": "2013-01-01"}, "[schedule] skip_days"),
        ],
    )
    def test_what_decides_privacy_is_asked_for(self, readings, options, message):
        with pytest.raises(RunFileError) as caught:
            agedp.release(readings, **options)
        assert message in str(caught.value)

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            (lambda frame: frame.rename(columns={"energy_wh": "wh"}), "no column energy_wh"),
            (lambda frame: frame.assign(interval_start=frame["interval_start"].dt.tz_localize(None)), "no time zone"),
            (lambda frame: frame.head(0), "no reading is usable"),
            (lambda frame: 5, "int is no table"),
        ],
    )
    def test_a_table_of_another_kind_is_one_line(self, readings, change, message):
        with pytest.raises(InputError, match=message):
            agedp.release(change(readings), **TERMS)

    def test_an_interval_other_than_declared_is_refused_in_a_frame_as_in_a_file(self, readings, tmp_path):
        hourly = readings[readings["interval_start"].dt.minute == 0]
        columns = {"household": "household_id", "time": "interval_start", "time_format": "iso", "stamp": "start"}
        columns |= {"zone": "UTC", "day_zone": "Europe/London", "energy": "energy_wh", "unit": "Wh"}
        hourly.to_parquet(tmp_path / "hourly.parquet")
        for source in (hourly, tmp_path / "hourly.parquet"):
            with pytest.raises(PreflightFailed) as caught:
                agedp.read(source, columns=columns)
            assert "readings are 60 minutes apart, not 30; write interval_minutes=60" in caught.value.private
            assert caught.value.__notes__ == [f"agedp: {caught.value.private}"]
            assert len(agedp.read(source, columns=columns, interval_minutes=60)) == len(hourly)

    def test_a_run_file_takes_no_further_words(self, tmp_path):
        with pytest.raises(
            RunFileError, match=r"a path is that of a run file.* files of readings as agedp.read\(files"
        ):
            agedp.release(str(tmp_path / "*.csv"), columns={}, **TERMS)

    def test_a_promise_that_ends_before_the_last_day_is_refused_before_a_draw(self, readings, monkeypatch):
        monkeypatch.setattr(mechanisms, "discrete_laplace", lambda *_, **__: pytest.fail("noise was drawn"))
        short = agedp.Classical(
            epsilon_per_day=0.5, max_day_epsilon=0.5, epsilon_total=2, accept=["useless", "no-credit", "total"]
        )
        with pytest.raises(Refused, match="Give last_day="):
            agedp.release(readings, **{**TERMS, "promise": short})
        plan = agedp.plan(readings, **{**TERMS, "promise": short})
        assert len(plan.table) == 4
        assert "epsilon_total = 2" in plan.ended_by

    def test_days_that_a_ledger_has_already_are_named_in_a_warning(self, readings, tmp_path, caplog):
        terms = {**TERMS, "last_day": readings["interval_start"].min(), "ledger": f"sqlite:///{tmp_path}/l.sqlite"}
        released = agedp.release(readings, **terms)
        first = released.table
        assert NOTES.outside_register in released.statement["notes"]
        assert "household_account" not in released.statement
        assert not [record for record in caplog.records if record.name.startswith("agedp")]
        pd.testing.assert_frame_equal(agedp.release(readings, **terms).table, first)
        assert "1 released days of population 'households' already" in caplog.text

    def test_a_release_is_saved_beside_no_other_file(self, readings, tmp_path):
        released = agedp.release(readings, **{**TERMS, "last_day": readings["interval_start"].min()})
        released.save(tmp_path / "out").verify()
        (tmp_path / "mine").mkdir()
        (tmp_path / "mine" / "customers.csv").write_text("A,B\n")
        for name in ("out", "mine"):
            with pytest.raises(InputError, match=f"^{name}: has files already; name a new or empty folder$"):
                released.save(tmp_path / name)
        assert [path.name for path in (tmp_path / "mine").iterdir()] == ["customers.csv"]

    def test_a_misspelt_keyword_is_not_ignored(self, readings):
        with pytest.raises(TypeError, match=r"'mising_kwh' is no keyword of a release; did you mean 'missing_kwh'"):
            agedp.release(readings, **TERMS, mising_kwh=3)


@pytest.fixture(scope="module")
def fortnight() -> pd.DataFrame:
    """Two households from Tuesday 1 to Monday 14 January 2013, with 1 Wh more a half-hour each day."""
    times = pd.date_range("2013-01-01", periods=14 * 48, freq="30min", tz="UTC")
    columns = {"household_id": np.repeat(["A", "B"], len(times)), "interval_start": [*times, *times]}
    return pd.DataFrame({**columns, "energy_wh": np.tile(100 + np.arange(len(times)) // 48, 2)})


OF_TWO = {**TERMS, "min_households": 2}


def test_an_epsilon_of_float_arithmetic_is_cut_and_named(fortnight, caplog):
    cap = 0.8999999999999999
    promise = agedp.Classical(
        epsilon_per_day=cap,
        max_day_epsilon=cap,
        epsilon_total=(0.1 + 0.2) * 10,
        accept=["useless", "no-credit", "total"],
    )
    released = agedp.release(fortnight, **{**OF_TWO, "promise": promise, "last_day": "2013-01-01"})
    assert released.table["epsilon"].tolist() == [0.899999999]
    assert released.statement["contract"]["promise"]["epsilon_total"] == "3"
    for key in ("epsilon_per_day", "max_day_epsilon"):
        assert f"release: [promise] {key} = 0.8999999999999999: counts as 0.899999999, " in caplog.text


def test_the_signature_shows_every_keyword_and_no_default_of_what_decides():
    for function in (agedp.release, agedp.sanitise, agedp.plan, agedp.compare):
        shown = inspect.signature(function).parameters
        assert all(shown[name].default is inspect.Parameter.empty for name in ("clamp_kwh", "min_households"))
        assert (shown["max_missing"].default, shown["population"].default) == (2, "households")
