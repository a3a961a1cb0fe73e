"""The commands of README and quickstart run as they are shown, on every database."""

from __future__ import annotations

import re
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import URL

from db_dedup.app import Database as OurDatabase
from db_dedup.app.proposals import propose_settings
from db_dedup.cli.demo import fill
from db_dedup.cli.init import settings_document
from db_dedup.sample import generate_petitions
from tests.cli.conftest import succeed
from tests.servers import Database, opened
from tests.shell import run_in_shell, shell_blocks

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
PAGE = (ROOT / "docs/quickstart.md").read_text(encoding="utf-8")
A_FILE, A_TABLE = (re.split(r"^## ", PAGE, flags=re.MULTILINE)[i] for i in (1, 2))
ROWS = 200
URL_OF_A_SERVER = re.compile(r"\w+://user:password@host/office")
TITLES = {"SQLite": "sqlite", "PostgreSQL": "postgresql", "MariaDB": "mariadb", "MySQL": "mysql"}


def steps(section: str) -> list[tuple[str, list[str]]]:
    """The table's commands, and the words in backticks that each prints."""
    rows = re.findall(r"^\| [^|`]+[^|]*\| `([^|]+)` \| (.+) \|$", section, flags=re.MULTILINE)
    return [(command, re.findall(r"`([^`]+)`", seen)) for command, seen in rows]


def check_steps(shown: list[tuple[str, list[str]]], printed: list[str]) -> None:
    for (command, words), text in zip(shown, printed, strict=True):
        assert [word for word in words if word not in text] == [], f"{command}\n{text}"


def test_a_file(tmp_path: Path) -> None:
    run_in_shell([f"db-dedup demo --rows {ROWS}"], tmp_path)
    shown = steps(A_FILE)
    assert len(shown) == 3
    check_steps(shown, run_in_shell([command for command, _ in shown], tmp_path / "db-dedup-demo"))


@pytest.fixture
def petitions(request: pytest.FixtureRequest, database: Database, tmp_path: Path) -> tuple[str, Database]:
    """A database of each kind with the table of the page, and the name of the page for its kind."""
    kind = request.node.callspec.params["database"]
    if kind == "sqlite":  # the file that the page names, in the folder of the commands
        url = URL.create("sqlite", database=str(tmp_path / "petitions.db"))
        with opened("sqlite", url) as file, file.engine.begin() as connection:
            fill(connection, generate_petitions(ROWS))
    else:
        with database.engine.begin() as connection:
            fill(connection, generate_petitions(ROWS))
    return kind, database


def with_url(command: str, database: Database) -> str:
    """The command, with the test's server in place of the one that the page makes up."""
    return URL_OF_A_SERVER.sub(lambda _: database.url, command)


def test_a_table(petitions: tuple[str, Database], tmp_path: Path) -> None:
    kind, database = petitions
    exports = dict(re.findall(r"^\| (\w+) \| `(export [^`]+)` \|$", A_TABLE, flags=re.MULTILINE))
    assert exports.keys() == TITLES.keys()
    (export,) = (command for title, command in exports.items() if TITLES[title] == kind)
    shown = steps(A_TABLE)
    assert len(shown) == 11
    commands = [with_url(export, database), *(command for command, _ in shown)]
    check_steps(shown, run_in_shell(commands, tmp_path)[1:])


def test_the_commands_of_the_readme(petitions: tuple[str, Database], tmp_path: Path) -> None:
    kind, database = petitions
    (block,) = shell_blocks(README, "Your own database")
    (url,) = URL_OF_A_SERVER.findall(block)
    block = block.replace(url, "sqlite:///petitions.db") if kind == "sqlite" else with_url(block, database)
    run_in_shell([block], tmp_path)


def read(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def without_seconds(line: str) -> str:
    """Return a line of the demo without the time that its scan took."""
    return re.sub(r" in [\d.]+ s,", "", line)


def test_the_readme_begins_with_a_file() -> None:
    for readme in (README, ROOT / "README.zh-CN.md"):
        text = read(readme)
        assert re.findall(r"^```sh\n(db-dedup file petitions\.csv) ", text, re.MULTILINE), readme
        assert text.index("db-dedup file petitions.csv") == text.index("```") + len("```sh\n"), readme


def test_what_the_pages_say_of_the_demo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The settings are those of `init`, the counts those of the scan, and the output is that of the demo."""
    monkeypatch.chdir(tmp_path)
    done = succeed("demo", "--folder", ".", COLUMNS="100")
    printed = {without_seconds(line) for line in [*done.stdout.splitlines(), *done.stderr.splitlines()]}
    block = re.compile(r"^```text\n(petitions: 5,000 rows .*?)^```$", re.MULTILINE | re.DOTALL)
    for readme in (README, ROOT / "README.zh-CN.md"):
        (shown,) = block.findall(read(readme))
        assert [line for line in shown.splitlines() if without_seconds(line) not in printed] == [], readme
    with closing(OurDatabase("sqlite:///petitions.db")) as database:
        written = settings_document("sqlite:///petitions.db", propose_settings(database, ["petitions"]))
    Path("dedup.toml").write_text(written.as_string(), encoding="utf-8")
    assert f"```toml\n{written.as_string()}```" in PAGE
    counts = succeed("scan", "petitions", "--dry-run").stderr.splitlines()[1]
    assert f"```text\n{counts}\n```" in PAGE
