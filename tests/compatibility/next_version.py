"""A simulated next version: the product's own source with a key more in each table, one renamed, and later forms.

python -m tests.compatibility.next_version FOLDER    writes it, with the tests, so that they can be run there
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
VERSION: Final = "0.9"
RENAMED: Final = ("missing_kwh", "absent_kwh")
"""A key that every contract has and no run file of a fixture writes."""
_KEY = '    {name}: Annotated[Literal["a", "b"], LATER] = "a"\n'
_TABLES: Final = {
    "agedp_data/config/input.py": ("    dataset: str\n", "next_input"),
    "agedp_data/config/output.py": ("    name: Text\n", "next_population"),
    "agedp_data/config/schedule.py": ("    mode: str\n", "next_schedule"),
    "agedp_data/series/series.py": ("    statistic: str\n", "next_series"),
    "agedp_data/config/model_section.py": ("    source: str\n", "next_model"),
    "agedp_data/notions/notion.py": ("    notion: str\n", "next_promise"),
}
_OTHER: Final = {
    "agedp_data/format_versions.py": [
        ("FORM: Final = 2", "FORM: Final = 3"),
        ('{1: "0.1", 2: "0.2"}', f'{{1: "0.1", 2: "0.2", 3: "{VERSION}"}}'),
    ],
    "agedp_data/ledger/backends/ledger_tables.py": [
        ('VERSION = "1"', 'VERSION = "2"'),
        ('{"1": "0.1"}', f'{{"1": "0.1", "2": "{VERSION}"}}'),
    ],
    "agedp_data/config/contract_values.py": [
        ("RENAMED: Final[dict[str, str | None]] = {}", f'RENAMED = {{"series.*.{RENAMED[0]}": "{RENAMED[1]}"}}'),
    ],
}


def write_next_version(folder: Path) -> None:
    """Write product and tests of a simulated next version into a new folder."""
    for package in ("agedp_data", "pipelines", "flows", "tests"):
        shutil.copytree(ROOT / package, folder / package, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md"):
        shutil.copy(ROOT / name, folder)
    for path in (each for package in ("agedp_data", "pipelines", "flows") for each in (folder / package).rglob("*.py")):
        path.write_text(path.read_text().replace(*RENAMED))
    for name, (after, key) in _TABLES.items():
        _edit(folder / name, after, after + _KEY.format(name=key))
        _import(folder / name)
    for name, edits in _OTHER.items():
        for old, new in edits:
            _edit(folder / name, old, new)


def _edit(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    if old not in text:
        raise LookupError(f"{path.name} has no {old!r}")
    path.write_text(text.replace(old, new, 1))


def _import(path: Path) -> None:
    """Import what a new key needs, whatever else the module imports."""
    lines = "from typing import Annotated, Literal\n\nfrom agedp_data.parameters import LATER\n"
    _edit(path, "from __future__ import annotations\n", f"from __future__ import annotations\n\n{lines}")


if __name__ == "__main__":
    write_next_version(Path(sys.argv[1]))
