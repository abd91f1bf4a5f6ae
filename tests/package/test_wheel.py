"""The package: what is in it, and that it runs where there is no checkout."""

from __future__ import annotations

import email
import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
from hatchling.builders.sdist import SdistBuilder
from hatchling.builders.wheel import WheelBuilder

ROOT = Path(__file__).parents[2]
FOLDERS = {"agedp_data": "", "agedp": "pipelines/", "agedp_flows": "flows/"}
"""The packages, and the folder of the checkout that holds each."""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    [path] = WheelBuilder(str(ROOT)).build(directory=str(tmp_path_factory.mktemp("wheel")), versions=["standard"])
    return Path(path)


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    [path] = SdistBuilder(str(ROOT)).build(directory=str(tmp_path_factory.mktemp("sdist")), versions=["standard"])
    return Path(path)


def in_folders(names: tuple[str, ...]) -> set[str]:
    """Every file of the checkout in these folders, but for what Python and tools leave there."""
    return {
        str(path.relative_to(ROOT))
        for name in names
        for path in (ROOT / name).rglob("*")
        if path.is_file() and not any(part.startswith((".", "__pycache__")) for part in path.relative_to(ROOT).parts)
    }


def test_a_wheel_holds_the_three_packages_whole_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as opened:
        names = opened.namelist()
        info = next(name.partition("/")[0] for name in names if ".dist-info/" in name)
        assert {name for name in names if not name.startswith(info)} == {
            name.removeprefix(folder)
            for package, folder in FOLDERS.items()
            for name in in_folders((f"{folder}{package}",))
        }
        assert {f"{name}/py.typed" for name in FOLDERS} <= set(names)
        assert f"{info}/licenses/LICENSE" in names
        assert opened.read(f"{info}/entry_points.txt").decode().split("\n")[1] == "agedp = agedp_flows.__main__:main"
        told = email.message_from_bytes(opened.read(f"{info}/METADATA"))
    assert told["Requires-Python"] == ">=3.11"
    plain = [line for line in told.get_all("Requires-Dist") or [] if "extra ==" not in line]
    assert all(">=" in line for line in plain)
    assert "http" not in wheel.name


def test_a_source_distribution_holds_what_tests_and_documents_need(sdist: Path) -> None:
    with tarfile.open(sdist) as opened:
        names = {name.partition("/")[2] for name in opened.getnames()}
    needed = in_folders(("agedp_data", "pipelines", "flows", "tests", "data", "docs"))
    top = {"Makefile", "constraints.txt", "pyproject.toml", "prefect.yaml", "README.md", "LICENSE", "CHANGELOG.md"}
    assert (needed | top | {"CONTRIBUTING.md", "SECURITY.md", "PKG-INFO"}) - names == set()
    assert not [name for name in names if ".venv" in name or name.startswith("out/")]


def call(*words: object, folder: Path, **environment: str) -> str:
    told = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "PREFECT", "VIRTUAL"))}
    done = subprocess.run(
        [str(word) for word in words],
        cwd=folder,
        env={**told, **environment},
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.long
@pytest.mark.prefect
@pytest.mark.parametrize("kind", ["wheel", "sdist"])
def test_installed_in_an_environment_of_its_own_it_runs_where_there_is_no_checkout(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    package = request.getfixturevalue(kind)
    call(sys.executable, "-m", "venv", tmp_path / "v", folder=tmp_path)
    pip = (tmp_path / "v/bin/python", "-m", "pip", "--disable-pip-version-check", "install", "--quiet")
    call(*pip, "--constraint", ROOT / "constraints.txt", f"{package}[prefect]", folder=tmp_path)
    agedp = tmp_path / "v/bin/agedp"
    assert "agedp 0" in call(agedp, "--version", folder=tmp_path)
    where = "import agedp, agedp_data, agedp_flows as f; print(agedp.__file__, agedp_data.__file__, f.__file__)"
    for name in ("flows", "pipelines"):  # a project's own
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("raise RuntimeError('not ours')\n")
    found = call(tmp_path / "v/bin/python", "-c", where, folder=tmp_path).split()
    assert all(Path(each).is_relative_to(tmp_path / "v") for each in found)
    for dataset, words in {"london": (), "ausgrid": ("--flow",)}.items():
        call(agedp, "sample", dataset, dataset, "--households", "20", "--days", "5", folder=tmp_path)
        assert "released now" in call(agedp, "run", f"{dataset}/{dataset}.toml", *words, folder=tmp_path)
        call(agedp, "verify", f"{dataset}/release", "--ledger", f"sqlite:///{dataset}/ledger.sqlite", folder=tmp_path)
    call(agedp, "init", "london/input", "--in", "own", folder=tmp_path)
    assert call(agedp, "--show-completion", folder=tmp_path, SHELL="/bin/bash").lstrip().startswith("_agedp_completion")
