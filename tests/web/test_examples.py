"""The examples of docs/how-to/serve.md run as they are shown."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from db_dedup.sample import Sample
from tests.web.conftest import Client, StartWith

PAGE = Path(__file__).parent.parent.parent / "docs" / "how-to" / "serve.md"
ADDRESS = "http://127.0.0.1:8765"


def shown(language: str) -> str:
    found = re.findall(
        rf"^```{language}\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
    )
    assert len(found) == 1
    return str(found[0])


def test_curl(client: Client, tmp_path: Path) -> None:
    if shutil.which("curl") is None:
        pytest.skip("NOT TESTED: curl is not installed")
    script = shown("bash")
    assert ADDRESS in script
    own = script.replace(ADDRESS, f"http://127.0.0.1:{client.port}")
    done = subprocess.run(["bash", "-c", own], capture_output=True, check=True, cwd=tmp_path)
    assert set(json.loads(done.stdout)) == {"is_duplicate", "too_little_text", "matches"}


def test_java(with_scopes: StartWith, sample: Sample, tmp_path: Path) -> None:
    if shutil.which("java") is None:
        pytest.skip("NOT TESTED: Java is not installed")
    (tmp_path / "Example.java").write_text(shown("java"), encoding="utf-8")
    client, petition = with_scopes("check"), sample.petitions[0]
    encoding = ["-Dfile.encoding=UTF-8", "-Dsun.jnu.encoding=UTF-8"]

    def run(title: str, content: str, token: str | None) -> subprocess.CompletedProcess[str]:
        address = f"http://127.0.0.1:{client.port}"
        environment = {"DEDUP_TOKEN": token or "", "LC_ALL": "C.UTF-8", "PATH": "/usr/bin:/bin"}
        return subprocess.run(
            ["java", *encoding, "Example.java", address, title, content],
            capture_output=True,
            text=True,
            encoding="utf-8",
            cwd=tmp_path,
            env=environment,
            check=False,
        )

    known = run(petition.title, petition.content, client.token)
    assert (known.returncode, known.stdout) == (0, "duplicate\n"), known.stderr
    new = run('另一件"事"', "老年大学旁边没有可以\n安静看书的地方，希望增设一处阅览室。", client.token)
    assert (new.returncode, new.stdout) == (0, "new\n"), new.stderr
    refused = run("x", "y", "wrong")
    assert (refused.returncode, refused.stdout) == (1, "")
    assert json.loads(refused.stderr)["type"] == "/v1/docs#token-missing"
