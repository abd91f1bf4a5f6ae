"""The distributions as somebody else installs them: `python -m tests.package.installed FOLDER`, in `make check-dist`.

Looks into the wheel and the source distribution of a folder, then installs each of them, and each extra of the wheel,
in an environment of its own outside of the clone, with the versions of constraints.txt. There the command and the API
make a release of synthetic households, and a line of each extra is tried.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import time
import tomllib
import zipfile
from pathlib import Path
from typing import Final

ROOT = Path(__file__).parents[2]
_OF_A_WORKING_COPY = re.compile(
    r"(^|/)(out|dist|build|incoming|secrets|\.venv[^/]*|__pycache__|\.git|\.[a-z]+_cache)/|\.sqlite$|\.key$|\.pyc$"
)
_TEMPLATES = ROOT / "flows" / "agedp_flows" / "text" / "templates"
_NEEDED: Final = {
    "whl": (
        "agedp/__init__.py",
        "agedp/py.typed",
        "agedp/reports/texts.toml",
        "agedp/reports/templates/explore.js",
        "agedp/smoothed_estimates/record.toml",
        "agedp_data/py.typed",
        "agedp_flows/py.typed",
        "agedp_data/schemas/statement-2.json",
        "agedp/preflight/causes.toml",
        "agedp/setup/run_file_options.json",
        "agedp_data/statement/template.md",
        *sorted(f"agedp_flows/text/templates/{path.name}" for path in _TEMPLATES.iterdir()),
        "agedp/setup/templates/erase.md",
        "agedp/setup/templates/impact-assessment.md",
        "agedp_data/schemas/deployment-1.json",
        "agedp_data/statement/deployment.toml",
        "agedp_data/statement/texts.toml",
    ),
    "gz": ("LICENSE", "PKG-INFO", "README.md", "constraints.txt", "container/Containerfile", "docs/operate.md"),
}
RELEASE: Final = (
    ("sample", "london", "s", "--households", "30", "--days", "6"),
    ("run", "s/london.toml"),
    ("verify", "s/release", "--ledger", "sqlite:///s/ledger.sqlite"),
    ("ledger", "verify", "s/london.toml"),
    (
        *("sanitise", "s/input/*.csv", "--out", "d", "--mode", "rehearsal", "--rehearsal-on", "readings"),
        *("--clamp-kwh", "30", "--min-households", "30", "--notion", "classical", "--epsilon-per-day", "0.5"),
        *("--age-days", "1", "--max-day-epsilon", "0.5", "--epsilon-total", "7"),
    ),
    ("verify", "d"),
)
"""What every installation does."""

_READ = "import agedp; readings = agedp.read('s/input/*.csv', dataset='london'"
_CHAINS = f"{_READ}); chains = agedp.estimate(agedp.quantize(readings, states=2)); "
EXTRAS: Final = {
    "": f"{_CHAINS}print(chains.spectral_gap().describe())",
    "cluster": (
        f"from distributed import Client; c = Client(processes=False, dashboard_address=':0'); {_CHAINS}"
        "from urllib.request import urlopen; assert b'bokeh.min.js' in urlopen(c.dashboard_link).read(); c.close()"
    ),
    "dataframe": f"{_READ}, as_dask=True); print(readings.npartitions)",
    "explore": "from agedp.reports.chart_library import installed_library as i; print(len(i().script))",
    "plot": f"{_CHAINS}chains.plot()",
    "postgresql": "import psycopg; print(psycopg.pq.version())",
    "prefect": "import agedp_flows.deployment_entrypoint as e; print(e.release.name, e.calibrate.name)",
    "s3": "import s3fs; print(s3fs.__version__)",
    "smooth": "import agedp; print(len(agedp.smooth('s/release').table))",
}
"""A line of Python for each extra that a user installs; the others are of this project's own tools."""


def names(package: Path) -> list[str]:
    """Return the files of a wheel or a source distribution, without the folder that contains the latter's."""
    if package.suffix == ".whl":
        with zipfile.ZipFile(package) as opened:
            return opened.namelist()
    with tarfile.open(package) as opened:
        return [name.partition("/")[2] for name in opened.getnames() if "/" in name]


def faults(package: Path) -> list[str]:
    """Return what a distribution lacks, and what it contains of a working copy."""
    found = set(names(package))
    missing = [f"{package.name} lacks {name}" for name in _NEEDED[package.suffix[1:]] if name not in found]
    return missing + [f"{package.name} contains {name}" for name in sorted(found) if _OF_A_WORKING_COPY.search(name)]


def call(*words: object, folder: Path) -> str:
    """Run a program in a folder without this project's environment; return what it printed."""
    inherited = {
        key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "PREFECT", "VIRTUAL"))
    }
    done = subprocess.run(
        [str(word) for word in words],
        cwd=folder,
        env={**inherited, "MPLBACKEND": "agg"},
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    if done.returncode:
        raise SystemExit(f"{' '.join(map(str, words))}: exit status {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def install(package: Path, extra: str, folder: Path) -> Path:
    """Install a distribution with an extra in a new environment; return the folder of its programs."""
    call(sys.executable, "-m", "venv", folder / "v", folder=folder)
    name = f"{package}[{extra}]" if extra else str(package)
    pip = (folder / "v/bin/python", "-m", "pip", "--disable-pip-version-check")
    call(*pip, "install", "--quiet", "--constraint", ROOT / "constraints.txt", name, folder=folder)
    call(*pip, "check", folder=folder)
    return folder / "v/bin"


def try_release(programs: Path, version: str, folder: Path) -> None:
    """Make, verify and read a release by command and API; all packages must be those of the environment."""
    printed = call(programs / "agedp", "--version", folder=folder).strip()
    if printed != f"agedp {version}":
        raise SystemExit(f"agedp --version printed {printed!r}, not agedp {version}")
    places = "import agedp, agedp_data, agedp_flows as f; print(agedp.__file__, agedp_data.__file__, f.__file__)"
    for place in call(programs / "python", "-c", places, folder=folder).split():
        if not Path(place).is_relative_to(programs.parent):
            raise SystemExit(f"{place} is not of the environment")
    for words in RELEASE:
        call(programs / "agedp", *words, folder=folder)


def main() -> None:
    """Check a folder of distributions; the exit status is 1 at the first fault."""
    parser = argparse.ArgumentParser(prog="python -m tests.package.installed", description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path, help="contains one wheel and one source distribution")
    parser.add_argument("--extras", nargs="*", choices=sorted(EXTRAS), default=sorted(EXTRAS), metavar="EXTRA")
    chosen = parser.parse_args()
    version = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"]
    [wheel], [sdist] = (sorted(chosen.folder.resolve().glob(f"agedp-{version}{end}")) for end in ("-*.whl", ".tar.gz"))
    if found := faults(wheel) + faults(sdist):
        raise SystemExit("\n".join(found))
    print(f"{wheel.name}: {len(names(wheel))} files, {wheel.stat().st_size / 1e6:.2f} MB")
    print(f"{sdist.name}: {len(names(sdist))} files, {sdist.stat().st_size / 1e6:.2f} MB")
    for package, extra in [(sdist, ""), *((wheel, extra) for extra in chosen.extras)]:
        began = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="agedp-installed-") as name:
            folder = Path(name)
            programs = install(package, extra, folder)
            installed = time.monotonic() - began
            try_release(programs, version, folder)
            call(programs / "python", "-c", EXTRAS[extra], folder=folder)
        took = time.monotonic() - began - installed
        print(f"{package.name}[{extra}]: installed in {installed:.0f} s, tried in {took:.0f} s")


if __name__ == "__main__":
    main()
