"""A model's public part: declared curves and kernels, and what `agedp calibrate` left."""

from __future__ import annotations

import numpy as np
import pytest

from agedp_data.config import parse
from agedp_data.errors import AgedpError, ChainError, RunFileError
from agedp_data.leakage.bound_table import LeakageBound
from agedp_data.leakage.function import leakage
from agedp_data.markov.transitions import power, reverse
from agedp_data.model import Model, model_settings, public_text, read_model
from agedp_data.notions.age_dependent import AgedLoss
from agedp_data.notions.temporal import TemporalLeakage
from tests.laws.promises import Line
from tests.minimal import run_file

DECLARED = '[model]\nsource = "declared"\nbasis = "open data"\n'
ESTIMATED = """[model]
source = "estimated"
assume = "markov"
file = "model"
period = [2012-01-01, 2012-12-31]
step = "half-hour"
states = 2
edges = "quantile"
chain = "homogeneous"
min_visits = 9
confidence = "plug-in"
ages_days = [1]
publish = "envelope"
"""
CYCLE = [[0.1, 0.9, 0.0], [0.0, 0.1, 0.9], [0.9, 0.0, 0.1]]


def with_model(folder, text):
    return parse(run_file() + text, base=folder, name="r.toml")


def declared(folder, text, *, key="curve", more='assume = "curve"\n'):
    (folder / "given.csv").write_text(text, encoding="utf-8")
    return read_model(with_model(folder, f'{DECLARED}{key} = "given.csv"\n{more}'))


def kernel(folder, rows, step=""):
    text = "\n".join(",".join(map(str, row)) for row in rows)
    return declared(folder, text, key="kernel", more=f'assume = "markov"\n{step}').leakage_bound


@pytest.mark.parametrize("header", ["", "age_days,total_variation\n", "\ufeffAge, Distance\r\n"])
def test_a_declared_curve_holds_from_each_age_on(tmp_path, header):
    found = declared(tmp_path, f"{header}1,0.64\n2.01,0.5\n7,0.25\n")
    assert (found.public["given"], found.public["basis"]) == ("curve", "open data")
    exact = {0: 0.5, 47: 0.5, 48: 0.347257871444443, 96: 0.347257871444443}  # ln(1 + .64 (e^.5 - 1)), reference
    exact |= {97: np.log1p(0.5 * np.expm1(0.5)), 10_000: np.log1p(0.25 * np.expm1(0.5))}
    for age, loss in exact.items():
        claimed = float(found.leakage_bound(age, 0.5, direction="backward", method="total_variation"))
        assert loss <= claimed + 1e-15
        assert claimed < loss + 2e-9


NO_CURVES = [
    ("1,0.5\n2,0.6\n", "must not increase with age"), ("2,0.5\n1,0.4\n", "ascending ages"),
    ("0.99,0.5\n1,0.4\n", "at least half an hour apart"), ("-1,0.5\n", "ascending ages"),
    ("1,1.5\n", "between 0 and 1"), ("1,-0.1\n", "between 0 and 1"), ("1\n2\n", "two columns"),
    ("age,tv,n\n1,0.5,3\n", "two columns"),
    *((text, "numbers only") for text in (
        "", "1,nan\n", "age_days,total_variation\n", "1,0.9\n2,x\n", "1,O.9\n2,0.8\n")),  # mistyped, no header
    *((text, "must") for text in (
        "1e999999999,0.5\n", "1,1e999999999\n", "1_0,0.5\n", "nan,nan\n1,0.5\n", "-,-\n1,0.5\n", "\u0661,0.5\n")),
]  # fmt: skip
NO_KERNELS = [
    ([[0.5, 0.5]], "square"), ([[0.5, 0.5], [0.5, 0.6]], "add up to 1"), ([[1.5, -0.5], [0.5, 0.5]], "add up to 1"),
    ([[0.8, 0.2], [0, 1]], "every other"),  # left for good: stationary, the first state never occurs
    ([[1, 0], [0, 1]], "every other"), ([[1]], "every other"), ([[0.5, 0.5], [0.5]], "must"),
    ([["1e400", 0], [0.5, 0.5]], "must"), ([["nan", 1], [0.5, 0.5]], "must"),
]  # fmt: skip


def test_a_curve_or_kernel_that_bounds_nothing_is_refused(tmp_path):
    for text, message in NO_CURVES:
        with pytest.raises(AgedpError, match=rf"^\[model\] curve: .*{message}") as caught:
            declared(tmp_path, text)
        assert str(tmp_path) not in str(caught.value)
    for rows, message in NO_KERNELS:
        with pytest.raises(RunFileError, match=message):
            kernel(tmp_path, rows)


def test_what_is_not_there_is_one_line(tmp_path):
    assert read_model(with_model(tmp_path, "")) is None
    with pytest.raises(RunFileError, match=r"^\[model\] curve: cannot be read") as caught:
        read_model(with_model(tmp_path, f'{DECLARED}assume = "curve"\ncurve = "none.csv"\n'))
    assert "none.csv" in caught.value.private
    with pytest.raises(RunFileError, match="the model does not exist yet; `agedp calibrate"):
        read_model(with_model(tmp_path, ESTIMATED))


def test_the_reversed_and_not_the_forward_kernel_decides(tmp_path):
    found = kernel(tmp_path, CYCLE)
    assert (found.steps_per_day, found.has_both_directions) == (1, True)
    exact = float(leakage(np.transpose(CYCLE), 1.0))  # the uniform law is stationary, so Bayes gives the transpose
    assert exact <= float(found(1, 1.0, direction="backward", method="tight")) <= exact * 1.01
    # docs/papers.md: to 0 or up with even chances; forward total variation .5, .25 after 1, 2 steps, reversed 1, 1
    rows = [[0.5 * (j == 0) + 0.5 * (j == min(i + 1, 11)) for j in range(12)] for i in range(12)]
    found = kernel(tmp_path, rows)
    for age in (1, 2):
        for method in ("tight", "total_variation"):
            assert float(found(age, 1.0, direction="backward", method=method)) == 1.0
    assert float(leakage(power(np.array(rows), 1), 1.0)) < 0.9


@pytest.mark.parametrize(("step", "steps_per_day"), [("", 1), ('step = "day"\n', 1), ('step = "half-hour"\n', 48)])
def test_a_kernel_steps_by_days_unless_it_says_half_hours(tmp_path, step, steps_per_day):
    rows = [[0.99, 0.01], [0.03, 0.97]]
    found = kernel(tmp_path, rows, step)
    exact = float(leakage(power(reverse(np.array(rows)), 7 * steps_per_day), 2.0))
    claimed = float(found(7 * steps_per_day, 2.0, direction="backward", method="tight"))
    assert found.steps_per_day == steps_per_day
    assert exact <= claimed <= exact * 1.1


def test_bounds_under_a_private_selection_name_the_share_that_it_bounds(tmp_path):
    bound = kernel(tmp_path, [[0.5, 0.5], [0.5, 0.5]])
    private = {"publish": "private", "coverage": "0.95", "failure_probability": "0.01", "source": "estimated"}
    private |= {"households": 900, "period": ["2012-01-01", "2012-12-31"]}
    rows = [Line("2013-01-01", 5, "2013-01-03")]
    share = (
        "at least 0.99 at least 95 % of the 900 households that were on the roster from 2012-01-01 to 2012-12-31 are"
    )
    for settings, expected in ((private, share), ({}, "each household")):
        model = Model(public_text(settings, bound), bound)
        again = Model.from_text(model.text)
        assert (again.leakage_bound, again.id) == (model.leakage_bound, model.id)
        for accountant in (AgedLoss(1, "tight", "day"), TemporalLeakage()):
            [stated] = accountant.bounds(rows, again.leakage_bound, None)
            assert expected in stated.assumption
            assert ("each household" in stated.assumption) == (not settings)
    with pytest.raises(ChainError, match="has no share"):
        LeakageBound.from_json({**bound.to_json(), "share": "all"})


@pytest.fixture
def calibrated(tmp_path):
    """A folder with an estimated model."""
    bound = kernel(tmp_path, [[0.5, 0.5], [0.5, 0.5]])
    (tmp_path / "model").mkdir()
    text = public_text(model_settings(with_model(tmp_path, ESTIMATED).model), bound)
    (tmp_path / "model" / "public.json").write_text(text)
    return tmp_path


def test_an_estimated_model_is_read_under_the_settings_it_was_made_with(calibrated):
    found = read_model(with_model(calibrated, ESTIMATED))
    assert found.text == (calibrated / "model" / "public.json").read_text()
    assert (found.public["min_visits"], Model(found.text, found.leakage_bound).id) == (9, found.id)
    for old, new, key in (
        ("2012-12-31", "2012-12-30", "period"),
        ("min_visits = 9", "min_visits = 1", "min_visits"),
        ('edges = "quantile"', 'edges = "equal-width"', "edges"),
        ('edges = "quantile"', "edges = [0.5]", "edges"),
        ("ages_days = [1]", "ages_days = [1, 2]", "ages_days"),
        ('assume = "markov"', 'assume = "curve"', "assume"),
    ):
        with pytest.raises(RunFileError, match=rf"^\[model\] {key}: the model was made under other settings"):
            read_model(with_model(calibrated, ESTIMATED.replace(old, new)))
