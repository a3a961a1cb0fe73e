"""The examples of docs/how-to/serve.md run as they are shown."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

from sqlalchemy import select, text

from db_dedup import Database
from db_dedup.app.tokens import add_token, new_token
from db_dedup.config import ServerSettings
from db_dedup.sample import Sample
from tests.conftest import not_tested
from tests.web.conftest import Client, running
from tests.web.test_reservations import OTHER, expire, store

PAGE = Path(__file__).parent.parent.parent / "docs" / "how-to" / "serve.md"
ADDRESS = "http://127.0.0.1:8765"


def shown(language: str) -> list[str]:
    return re.findall(
        rf"^```{language}\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
    )


def shell(script: str, client: Client, folder: Path) -> subprocess.CompletedProcess[bytes]:
    if shutil.which("curl") is None:
        not_tested("the examples for curl (there is no curl: install curl)")
    assert ADDRESS in script
    own = script.replace(ADDRESS, f"http://127.0.0.1:{client.port}")
    return subprocess.run(["bash", "-c", own], capture_output=True, check=False, cwd=folder)


def test_curl_checks(client: Client, tmp_path: Path) -> None:
    done = shell(shown("bash")[0], client, tmp_path)
    assert done.returncode == 0, done.stderr
    assert set(json.loads(done.stdout)) == {"is_duplicate", "too_little_text", "matches"}


def test_curl_reserves_and_confirms(own_database: Database, tmp_path: Path) -> None:
    _, script = shown("bash")
    content = "老年大学旁边没有可以安静看书的地方。"
    assert content in script
    row = {"title": "建议增设阅览室", "content": content}
    with running(own_database) as client:
        wrong = shell(f"store_row() {{ echo 9001; }}\n{script}", client, tmp_path)
        assert wrong.returncode != 0
        assert json.loads(wrong.stdout)["type"] == "/v1/docs#unknown-row"
        expire(own_database)
        store(own_database, 9001, row)
        duplicate = shell(f"store_row() {{ exit 9; }}\n{script}", client, tmp_path)
        assert duplicate.returncode not in (0, 9)
        with own_database.engine.begin() as connection:
            connection.execute(text("DELETE FROM petitions WHERE id = 9001"))
        # The row is committed before the confirmation.
        statement = (
            "INSERT INTO petitions (id, title, content, created_at) VALUES "
            f"(9001, '{row['title']}', '{content}', '2026-01-01 00:00:00')"
        )
        program = "import sqlite3, sys; c = sqlite3.connect(sys.argv[1]); c.execute(sys.argv[2]); c.commit()"
        arguments = [sys.executable, "-c", program, str(own_database.engine.url.database), statement]
        command = f"store_row() {{ {shlex.join(arguments)}; echo 9001; }}"
        done = shell(f"{command}\n{script}", client, tmp_path)
        assert (done.returncode, done.stdout) == (0, b""), done.stderr
    with own_database.engine.connect() as connection:
        assert connection.execute(select(own_database.tables.reservation.c.name)).all() == []


def test_java(own_database: Database, sample: Sample, tmp_path: Path) -> None:
    if shutil.which("java") is None:
        not_tested("the example in Java (there is no java: install default-jdk-headless)")
    (source,) = shown("java")
    (tmp_path / "Gate.java").write_text(source, encoding="utf-8")
    token, line = new_token(["check"], "desk")
    add_token(tmp_path / "tokens", line)
    encoding = ["-Dfile.encoding=UTF-8", "-Dsun.jnu.encoding=UTF-8"]
    row = {"title": '另一件"事"', "content": "老年大学旁边没有可以\n安静看书的地方，希望增设一处阅览室。"}
    settings = ServerSettings(tokens=str(tmp_path / "tokens"))

    def started(title: str, content: str, token: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            ["java", *encoding, "Gate.java", f"http://127.0.0.1:{client.port}", title, content],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            cwd=tmp_path,
            env={"DEDUP_TOKEN": token, "LC_ALL": "C.UTF-8", "PATH": "/usr/bin:/bin"},
        )

    def said(title: str, content: str, token: str) -> tuple[int, str, str]:
        with started(title, content, token) as program:
            out, err = program.communicate(timeout=120)
            return program.returncode, out, err

    with running(own_database, None, settings) as client:
        known = sample.petitions[0]
        assert said(known.title, known.content, token) == (0, "duplicate\n", "")
        code, out, err = said("x", "y", "wrong")
        assert (code, out) == (1, "")
        assert json.loads(err)["type"] == "/v1/docs#token-missing"
        for key, record, is_late in ((9001, row, False), (9002, OTHER, True)):
            with started(record["title"], record["content"], token) as program:
                assert program.stdin is not None
                assert program.stdout is not None
                assert program.stdout.readline().startswith("new: ")
                if is_late:
                    expire(own_database)
                store(own_database, key, record)
                out, err = program.communicate(f"{key}\n", timeout=120)
            if is_late:
                assert out.startswith("too late")
                assert '"matches": []' in out
            else:
                assert (out, err) == ("confirmed\n", "")
