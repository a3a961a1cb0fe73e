"""`db-dedup serve` as a process: its start, its end, its tokens, and what it says."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from typer.testing import CliRunner

from db_dedup.app.tokens import Tokens
from db_dedup.cli.application import app
from db_dedup.config import ServerSettings, Settings
from db_dedup.errors import ConfigError, UnknownNameError
from db_dedup.web.server import _configured
from tests.web.conftest import Client

PROGRAM = "from db_dedup.cli import main; main()"


@contextmanager
def process(arguments: Sequence[str], folder: Path) -> Iterator[tuple[subprocess.Popen[str], Client]]:
    """A service in a process of its own, on a free port."""
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, "serve", "--port", "0", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=folder,
    ) as started:
        try:
            assert started.stderr is not None
            line = started.stderr.readline()
            address = re.search(r"http://\S+", line)
            assert address, line + started.stderr.read()
            port = urlsplit(address[0]).port
            assert port
            assert f"http://127.0.0.1:{port}/console," in line
            assert f"http://127.0.0.1:{port}/v1/docs\n" in line
            yield started, Client(port)
        finally:
            started.kill()


def test_it_starts_serves_and_ends_cleanly(scanned_url: str, tmp_path: Path) -> None:
    with process(["--url", scanned_url], tmp_path) as (started, client):
        assert client.get("/tables").json() == {"tables": ["petitions"]}
        record = {"record": {"title": "路灯坏了", "content": "小区门口的路灯坏了三个月。"}}
        assert client.post("/tables/petitions/check", record).status == 200
        started.send_signal(signal.SIGTERM)
        out, err = started.communicate(timeout=60)
    assert (started.returncode, out) == (0, "")
    *log, last = err.splitlines()
    assert last == "stopped"
    assert any(" POST /v1/tables/{table}/check 200 " in line for line in log)
    assert "路灯" not in err


def test_a_service_that_stops_waits_for_the_slowest_request() -> None:
    """Ten seconds for reading it, and the time limit of its answer."""
    settings = ServerSettings(read_seconds=10, answer_seconds=70)
    waits = _configured(None, settings).timeout_graceful_shutdown
    assert waits is not None
    assert waits >= 80


def test_a_second_service_on_the_port_is_told_so(scanned_url: str, tmp_path: Path) -> None:
    with process(["--url", scanned_url], tmp_path) as (_, client):
        arguments = ["serve", "--url", scanned_url, "--port", str(client.port)]
        result = CliRunner().invoke(app, arguments)
    assert isinstance(result.exception, ConfigError)
    assert f"cannot listen on 127.0.0.1, port {client.port}" in str(result.exception)


def test_a_new_token_is_printed_once_and_works(scanned_url: str, tmp_path: Path) -> None:
    settings = f"[database]\nurl = {json.dumps(scanned_url)}\n[server]\ntokens = 'tokens.txt'\n"
    config = tmp_path / "office.toml"
    config.write_text(settings, encoding="utf-8")
    arguments = ["serve", "--new-token", "read, check", "--client", "desk", "--config", str(config)]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.exception
    token = result.stdout.strip()
    assert token not in result.stderr
    assert token not in (tmp_path / "tokens.txt").read_text(encoding="utf-8")
    client = Tokens(tmp_path / "tokens.txt").client(token)
    assert client is not None
    assert (client.name, set(client.scopes)) == ("desk", {"read", "check"})
    with process(["--config", str(config)], tmp_path) as (_, served):
        assert served.get("/tables").problem == "token-missing"
        assert Client(served.port, token).get("/tables").json() == {"tables": ["petitions"]}


@pytest.mark.parametrize("scopes", ["write", "", "read,admin"])
def test_an_unknown_scope(scopes: str) -> None:
    result = CliRunner().invoke(app, ["serve", "--new-token", scopes, "--url", "sqlite://"])
    assert isinstance(result.exception, UnknownNameError)


def test_without_a_file_the_line_for_the_environment_is_shown() -> None:
    result = CliRunner().invoke(app, ["serve", "--new-token", "check", "--url", "sqlite://"])
    line = re.search(r"client check [0-9a-f]{64}", result.stderr)
    assert line
    assert result.stdout.strip() not in result.stderr


@pytest.mark.parametrize(
    ("section", "fault"),
    [
        ("port = 70000", "port"),
        ("port = '80'", "port"),
        ("hosts = 'x'", "hosts"),
        ("max_body = 0", "max_body"),
        ("read_only = 'yes'", "it takes true or false"),
        ("proxies = ['proxy']", "'proxy' is not an IP address"),
        ("proxies = ['0.0.0.0/0']", "0/0' is not an IP address"),
        ("listen = 'x'", "unknown setting in"),
    ],
)
def test_a_wrong_setting_is_named(tmp_path: Path, section: str, fault: str) -> None:
    file = tmp_path / "dedup.toml"
    file.write_text(f"[server]\n{section}\n", encoding="utf-8")
    with pytest.raises(ConfigError, match=fault):
        Settings.from_file(file)


def test_files_are_relative_to_the_settings(tmp_path: Path) -> None:
    file = tmp_path / "dedup.toml"
    file.write_text("[server]\ntokens = 'tokens'\nhosts = ['desk.example']\n", encoding="utf-8")
    server = Settings.from_file(file).server
    assert server.tokens == str(tmp_path / "tokens")
    assert server.hosts == ("desk.example",)


def test_only_the_tables_of_the_file_are_served(scanned_url: str, tmp_path: Path) -> None:
    columns = "columns = { title = 1, content = 1 }\norder = 'created_at'"
    tables = f"[tables.petitions]\n{columns}\n"
    other = tables.replace("content = 1", "content = 2")
    for text, problem in ((tables, None), (other, "not-ready")):
        (tmp_path / "dedup.toml").write_text(
            f"[database]\nurl = {json.dumps(scanned_url)}\n{text}", encoding="utf-8"
        )
        with process([], tmp_path) as (_, client):
            answer = client.post("/tables/petitions/check", {"record": {}})
            assert answer.status == 200 if problem is None else answer.problem == problem
