"""The files of container/: what the page says of them, and how the container starts. No image is built."""

from __future__ import annotations

import re
import subprocess
import tomllib
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
CONTAINER = ROOT / "container"
COMPOSE = yaml.safe_load((CONTAINER / "compose.yaml").read_text("utf-8"))
CONTAINERFILE = (CONTAINER / "Containerfile").read_text("utf-8").replace("\\\n", " ")
PAGE = (ROOT / "docs" / "deploy.md").read_text("utf-8")


def test_the_image_has_extras_that_exist_and_files_that_the_context_contains():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    [installed] = re.findall(r'"\$\{wheel\}\[([a-z0-9,]+)\]"', CONTAINERFILE)
    assert set(installed.split(",")) <= extras.keys()
    context = {line.removeprefix("!") for line in (ROOT / ".dockerignore").read_text().splitlines() if line[:1] == "!"}
    copied = re.findall(r"^COPY (?!--from)(?:--\S+ )?(.*) \S+$", CONTAINERFILE, re.MULTILINE)
    assert set(" ".join(copied).split()) == context
    assert all((ROOT / name).exists() for name in context if not name.startswith("dist/"))


def test_the_service_has_no_privileges_and_the_places_of_the_page():
    service = COMPOSE["services"]["agedp"]
    assert (service["user"], service["read_only"], service["cap_drop"]) == ("10001:10001", True, ["ALL"])
    assert "USER 10001:10001" in CONTAINERFILE
    mounted = [volume.split(":")[1] for volume in service["volumes"]] + [
        place.split(":")[0] for place in service["tmpfs"]
    ]
    for name in ("confidential", "release", "config", "incoming"):
        place = f"/srv/agedp/{name}"
        assert place in mounted
        assert f"`{place}`" in PAGE
    assert all(volume.endswith(":ro") for volume in service["volumes"] if volume.startswith("./"))
    assert COMPOSE["networks"]["ledger"]["internal"] is True
    [name] = set(service["secrets"])
    assert COMPOSE["secrets"][name]["file"] == f"./secrets/{name}"
    assert f"/run/secrets/{name}" in CONTAINERFILE


@pytest.fixture
def start(tmp_path):
    """Start the entry point with commands that stand in for `id` and `agedp`; return what it printed and its status."""
    programs, confidential = tmp_path / "bin", tmp_path / "confidential"
    programs.mkdir()
    confidential.mkdir(mode=0o755)
    password = tmp_path / "password"
    password.write_text("a:b\\c\nsecond line\n")

    def run(*words: str, user: int = 10001) -> tuple[int, str, str]:
        for name, script in (("id", f"echo {user}"), ("agedp", 'echo "$@"; cat "$PGPASSFILE"; ls -l "$PGPASSFILE"')):
            (programs / name).write_text(f"#!/bin/sh\n{script}\n")
            (programs / name).chmod(0o755)
        places = {"AGEDP_CONFIDENTIAL": str(confidential), "AGEDP_LEDGER_PASSWORD_FILE": str(password)}
        environment = {"PATH": f"{programs}:/usr/bin:/bin", "HOME": str(tmp_path), **places}
        command = ["sh", str(CONTAINER / "entrypoint"), *words]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout, done.stderr

    return run


def test_the_entry_point_hands_the_password_to_libpq_alone(start, tmp_path):
    status, printed, errors = start("plan", "run.toml")
    words, password, listing = printed.splitlines()
    assert (status, words, password, errors) == (0, "plan run.toml", "*:*:*:*:a\\:b\\\\c", "")
    assert listing.startswith("-rw-------")
    assert (tmp_path / "confidential").stat().st_mode & 0o777 == 0o700


def test_the_entry_point_serves_the_run_file_and_refuses_root(start, tmp_path):
    assert start("nightly")[1].startswith("serve /srv/agedp/config/run.toml\n")
    assert start()[1].startswith("serve /srv/agedp/config/run.toml\n")
    status, printed, errors = start("plan", user=0)
    assert (status, printed) == (2, "")
    assert "this process is root" in errors
    (tmp_path / "confidential").rmdir()
    assert start("plan")[0] == 2


@pytest.mark.parametrize("script", ["entrypoint", "ledger-role"])
def test_scripts_are_shell_without_errors(script):
    subprocess.run(["sh", "-n", str(CONTAINER / script)], check=True)
