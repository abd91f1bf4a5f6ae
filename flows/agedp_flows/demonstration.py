"""`agedp demo`: sample, calibrate and release synthetic households of known chains, and a page of what came out.

    DIR/<dataset>/             what `agedp sample` writes
    DIR/<dataset>/<notion>.toml   a run file per notion; its release, confidential folder and ledger in <notion>/
    DIR/<dataset>/model/       the estimated model, shared by the three
    DIR/index.html             the three notions side by side, the chains, and what was printed

It prints what the commands print, and after each how many Dask tasks its stages ran. Every calibration and release is a
run of a Prefect flow, all on one server. A second run draws nothing again.

Households follow reversible chains on twelve levels, each of them visited often (`kernel` without lean). Level k
has (2k + 1)/12 of the mean, so equal-width states of a household that was seen in its highest level are its levels.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from datetime import date, timedelta
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow.parquet as pq
from jinja2 import Template

import agedp
from agedp.compute.engine import task_summary
from agedp.compute.engine_settings import SILENT, ProgressReporter
from agedp.local_files import atomic_files
from agedp.reports import svg
from agedp.reports.html import render_page, table
from agedp.setup.sample import sample
from agedp_data.datasets.filesystem import format_path
from agedp_data.datasets.synthetic.households import STATES, HouseholdChains, Households, kernel, stationary
from agedp_data.datasets.validation import SLOTS
from agedp_data.errors import Busy, InputError
from agedp_data.markov.mixing import MIXING_NAMES, reversibilised_bound, spectral_bound, spectral_gap, total_variation
from agedp_data.markov.transitions import transition_matrix
from agedp_data.messages import sentence_start
from agedp_data.model import PUBLIC_FILE
from agedp_data.statement.note_texts import FACTS
from agedp_flows.prefect_server import running_server
from agedp_flows.text.calibration_text import calibration_lines
from agedp_flows.text.run_text import result_lines
from agedp_flows.text.screen import heading

DATASETS: Final = ("london", "ausgrid")
NOTIONS: Final = ("age-dependent", "temporal", "discounted")
PAGE: Final = "index.html"
_TITLE, _READABLE = "agedp demo", 0o644
_RUN_FILE: Final = Path(__file__).with_suffix(".toml")
_COLUMNS: Final = ("notion", "noise over all days, kWh", "largest epsilon of a day", "epsilon of all days")
_AGES_DAYS: Final = (1, 2, 3)
_MATRICES: Final = np.stack([kernel(reach=reach, lean=0.0, stay=0.3) for reach in (0.8, 0.9, 1.0)])
_CHAINS: Final = HouseholdChains(
    _MATRICES, np.stack([*map(stationary, _MATRICES)]), np.tile((2 * np.arange(STATES) + 1) / STATES, (3, 1))
)
"""The chains that households follow, the slowest first."""

Print = Callable[[Iterable[str]], None] | None


@dataclass(frozen=True, slots=True)
class Size:
    """How much is drawn; fewer days of the model need a smaller `min_visits`."""

    households: int = 480
    model_days: int = 112
    released_days: int = 56
    min_visits: int = 30
    seed: int = 7


def run_demonstration(folder: Path, size: Size, show: Print, *, progress: ProgressReporter = SILENT) -> dict[str, Any]:
    """Draw, calibrate and release each dataset, write the page, and return the results for programs.

    `show` gets the lines of each command as soon as it is done.

    Raises:
        Busy: another demonstration works in the folder.
        InputError: the folder contains something else under a name that the demonstration writes.
        ServerError: no Prefect server answers or starts.
    """
    sections, releases = [], []
    with _own_folder(folder), ExitStack() as stack:
        drawn = [_draw(folder / name, replace(size, seed=size.seed + i)) for i, name in enumerate(DATASETS)]
        stack.enter_context(running_server(folder / "prefect"))  # a folder that is not ours is refused before it starts
        for dataset, of_dataset in zip(DATASETS, drawn, strict=True):
            printed: list[str] = []
            for lines, facts in _steps(folder / dataset, of_dataset, progress):
                if show is not None:
                    show(lines)
                printed += lines
                releases += [facts] * bool(facts)
            sections.append(_section(folder / dataset, printed))
    page = render_page(
        "demonstration.html", title=_TITLE, datasets=sections, model_warning=FACTS.several("with_model")[1]
    )
    atomic_files.write(folder / PAGE, page.encode(), mode=_READABLE)
    if show is not None:
        show(["", f"The same in pictures: {format_path(str(folder / PAGE))}"])
    return {"page": format_path(str(folder / PAGE)), "releases": releases}


def _steps(place: Path, drawn: list[str], progress: ProgressReporter) -> Iterator[tuple[list[str], dict[str, Any]]]:
    """Calibrate and release a dataset that was drawn; yield the lines of each command, and of a release its JSON."""
    yield drawn, {}
    yield _calibrate(place, progress), {}
    for notion in NOTIONS:
        yield _release(place, notion, progress)


@contextmanager
def _own_folder(folder: Path) -> Iterator[None]:
    """Work in a folder alone, whose page and server, if any, are those of a demonstration."""
    with atomic_files.write_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
    page, server = folder / PAGE, folder / "prefect"
    if page.exists() and not (page.is_file() and f"<title>{_TITLE}</title>".encode() in page.read_bytes()):
        raise _foreign(page)
    if server.exists() and not (server.is_dir() and ((server / "password").is_file() or not any(server.iterdir()))):
        raise _foreign(server)
    try:
        with atomic_files.exclusive_lock(folder, max_wait_seconds=0):
            yield
    except Busy:
        text = "another demonstration works in this folder. Wait until it ends, or name another folder."
        raise Busy(text, private=f"{folder}: {text}") from None


def _foreign(path: Path) -> InputError:
    return InputError(f"{path}: is not from this demonstration. Move it, or name another folder (make run OUT=DIR).")


def _draw(place: Path, size: Size) -> list[str]:
    """Write the files of a dataset and its run files, unless they exist; return what `agedp sample` prints."""
    days = size.model_days + size.released_days
    number, mean_kwh = np.arange(size.households), np.linspace(6.5, 9.5, size.households)
    profiles = Households(number % len(_MATRICES), mean_kwh, _CHAINS)
    try:
        drawn = sample(place.name, place, households=size.households, days=days, seed=size.seed, profiles=profiles)
    except InputError:
        raise _foreign(place) from None
    if not drawn.written and not all((place / f"{notion}.toml").exists() for notion in NOTIONS):
        raise _foreign(place)
    first_day: date = tomllib.loads(drawn.run_file.read_text("utf-8"))["schedule"]["first_day"]
    template = Template(_RUN_FILE.read_text("utf-8"), trim_blocks=True, keep_trailing_newline=True)
    for notion in NOTIONS if drawn.written else ():
        text = template.render(
            dataset=place.name,
            notion=notion,
            least=max(2, size.households // 2),
            days=size.released_days,
            min_visits=size.min_visits,
            model_first=first_day,
            model_last=first_day + timedelta(days=size.model_days - 1),
            first=first_day + timedelta(days=size.model_days),
            last=first_day + timedelta(days=days - 1),
        )
        (place / f"{notion}.toml").write_text(text, encoding="utf-8")
    gaps = ", ".join(f"{float(spectral_gap(matrix)):.3f}" for matrix in _MATRICES)
    return [
        "",
        heading(f"=== {sentence_start(place.name)} format: {size.households} synthetic households, {days} days ==="),
        drawn.message,
        f"Drawn from three reversible Markov chains of 12 states; spectral gaps {gaps} per half-hour.",
    ]


def _calibrate(place: Path, progress: ProgressReporter) -> list[str]:
    """Calibrate once, as a flow; return what `agedp calibrate` prints, and a household's transition matrix.

    Prefect reads its settings on import, so its flows are imported while the server runs.
    """
    from agedp_flows.calibrate_flow import run_calibration  # noqa: PLC0415

    lines = [f"The model exists already: {format_path(str(place / 'model'))}"]
    if not (place / "model" / PUBLIC_FILE).exists():
        lines = calibration_lines(run_calibration(str(place / f"{NOTIONS[0]}.toml"), progress))
    household, matrix = _estimated_matrix(place)
    rows = ("".join(f"{share:6.2f}" if share else "     ." for share in row) for row in matrix.tolist())
    title = f"Estimated transition matrix of household {household}"
    return [*lines, "", f"{title} (row: state now; column: state after half an hour)", *rows]


def _estimated_matrix(place: Path) -> tuple[str, np.ndarray[Any, np.dtype[np.float64]]]:
    """Return the id of the first household, whose chain is the slowest kind, and its matrix (12, 12) [-]."""
    counts = pq.read_table(place / "model" / "transitions.parquet").slice(0, 1).to_pylist()[0]
    cells = [counts[f"from_{start}_to_{end}"] for start in range(STATES) for end in range(STATES)]
    return counts["household_id"], transition_matrix(np.reshape(cells, (STATES, STATES)), smoothing=0)


def _release(place: Path, notion: str, progress: ProgressReporter) -> tuple[list[str], dict[str, Any]]:
    """Release every due day of a run file, as a flow; return what `agedp run` prints, and its JSON."""
    from agedp_flows.release_flow import run_release  # noqa: PLC0415

    summary = run_release(str(place / f"{notion}.toml"), None, replace(progress, notice=None))
    summary.check_not_refused()
    title = heading(f"--- {sentence_start(place.name)}, {notion} privacy ---")
    tasks = filter(None, [task_summary(summary.run.engine)])
    return ["", title, *result_lines(summary), *tasks], {"notion": notion, **summary.facts}


def _section(place: Path, printed: Sequence[str]) -> dict[str, Any]:
    """Return what the page shows of a dataset: charts, files, and what was printed."""
    tables = {notion: agedp.open_release(place / notion / "release").table() for notion in NOTIONS}
    y = svg.linear_axis([end for values in tables.values() for name in ("low_kwh", "high_kwh") for end in values[name]])
    mixing_chart, mixing_table = _mixing(place)
    files = [(file, file) for file in ("report.html", "STATEMENT.md")]
    return {
        "name": place.name,
        "series": [_series_chart(place, notion, values, y) for notion, values in tables.items()],
        "numbers": table(
            f"{sentence_start(place.name)}: the three notions", _COLUMNS, [_numbers(*each) for each in tables.items()]
        ),
        "chains": [_matrix_chart(place), mixing_chart],
        "mixing": mixing_table,
        "files": [
            (sentence_start(notion), [(text, f"{place.name}/{notion}/release/{file}") for text, file in files])
            for notion in NOTIONS
        ],
        "printed": "\n".join(printed).strip(),
    }


def _numbers(notion: str, values: Any) -> tuple[str, ...]:  # noqa: ANN401  (a pandas.DataFrame)
    """Return the row of a notion: noise, root mean square over the days, and losses, both rounded up."""
    noise, losses = float((values["noise_sd_kwh"] ** 2).mean()) ** 0.5, values["epsilon"]
    return notion, *map(svg.format_rounded_up, (noise, losses.max(), losses.sum()))


def _series_chart(place: Path, notion: str, values: Any, y: svg.Scale) -> str:  # noqa: ANN401  (a pandas.DataFrame)
    true = agedp.true_means(place / f"{notion}.toml")["true_mean_kwh"].tolist()
    days = [*values["day"]]
    x, mean, low, high = (
        [float(day.toordinal()) for day in days],
        *(values[name].tolist() for name in ("mean_kwh", "low_kwh", "high_kwh")),
    )
    lines = [
        svg.Line("released mean with its noise interval", x, mean, band=(low, high), dots=False),
        svg.Line("true mean (synthetic data)", x, true, style=1, dots=False),
    ]
    hover = svg.Hover(svg.day_text, unit := "kWh per household")
    about = f"{len(days)} days, between {min(mean):.2f} and {max(mean):.2f} kWh per household."
    title = f"{sentence_start(place.name)}, {notion}: epsilon {svg.format_rounded_up(max(values['epsilon']))} a day"
    x_axis = svg.date_axis(days[0], days[-1])
    return svg.chart(title, about, [*lines, hover], x=x_axis, y=y, y_title=unit, height=170)


def _matrix_chart(place: Path) -> str:
    household, matrix = _estimated_matrix(place)
    about = f"A state stays with probability {matrix.diagonal().min():.2f} to {matrix.diagonal().max():.2f}."
    title = f"{sentence_start(place.name)}: estimated transition matrix of household {household}"
    return svg.heat_map(title, about, matrix.tolist(), x_title="state after half an hour", y_title="state now")


def _mixing(place: Path) -> tuple[str, str]:
    """Return chart and table of the decay of dependence: the slowest chain, its bounds, and the estimated chains."""
    steps = np.arange(0, SLOTS * _AGES_DAYS[-1] + 1, 4)
    days = (steps / SLOTS).tolist()
    measures = {"total_variation": total_variation, "spectral": spectral_bound, "reversibilised": reversibilised_bound}
    lines = [
        svg.Line(f"{MIXING_NAMES[name]}, slowest chain", days, measure(_MATRICES[0], steps).tolist())
        for name, measure in measures.items()
    ]
    columns = pq.read_table(place / "model" / "households.parquet").to_pydict()
    estimated = np.array([columns[f"total_variation_{age}_days"] for age in _AGES_DAYS])
    for name, values in (("median household", np.median(estimated, axis=1)), ("largest", estimated.max(axis=1))):
        lines.append(svg.Line(f"estimated total variation, {name}", [*map(float, _AGES_DAYS)], values.tolist()))
    lines = [replace(line, letter="abcde"[i], style=i, dots=i > 2) for i, line in enumerate(lines)]
    x = svg.Scale(0.0, float(_AGES_DAYS[-1]), tuple((float(day), f"{day} d") for day in (0, *_AGES_DAYS)))
    y = svg.logarithmic_axis([value for line in lines for value in line.values], decades=3)
    about = f"After {_AGES_DAYS[-1]} days: " + "; ".join(f"{line.name} {line.values[-1]:.2g}" for line in lines)
    hover = svg.Hover(lambda age: f"age {age:.3g} days", "")
    title = f"{sentence_start(place.name)}: decay of dependence with age"
    rows = [
        (line.name, *(f"{line.values[[*line.x].index(age)]:.3g}" for age in map(float, _AGES_DAYS))) for line in lines
    ]
    numbers = table(title, ("total variation [-]", *(f"{age} d" for age in _AGES_DAYS)), rows)
    return svg.chart(title, about, [*lines, hover], x=x, y=y, y_title="total variation [-]", height=280), numbers
