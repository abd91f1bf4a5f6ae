"""The temporary Prefect server: its password file, and the time that it is given to start."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from agedp_flows.prefect_server import _password


@pytest.mark.parametrize("content", [b"", b"agedp", b"\0" * 38, b"\xff\xfe:agedp"])
def test_a_damaged_password_is_made_anew(tmp_path, content):
    file = tmp_path / "password"
    password = _password(file)
    assert (_password(file), file.stat().st_mode & 0o077) == (password, 0)
    file.write_bytes(content)
    renewed = _password(file)
    assert (renewed != password, _password(file)) == (True, renewed)


NAME = "PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS"
CODE = """import agedp_flows, prefect.settings
print(int(prefect.settings.get_current_settings().server.ephemeral.startup_timeout_seconds))"""


@pytest.mark.parametrize(("limit", "seconds"), [({}, 600), ({NAME: "30"}, 30)])
def test_a_temporary_server_has_ten_minutes_to_start(limit, seconds):
    environment = {name: value for name, value in os.environ.items() if name != NAME} | limit
    command = [sys.executable, "-c", CODE]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert int(ended.stdout) == seconds
