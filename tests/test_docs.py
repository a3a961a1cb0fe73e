"""The documentation says what is there, and what it shows runs."""

from __future__ import annotations

import gc
import json
import re
import runpy
import shlex
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel
from sqlalchemy import NullPool, create_engine

import db_dedup
from db_dedup import errors
from db_dedup.app import Database, Deduplicator
from db_dedup.cli.commands import COMMANDS, load_commands
from db_dedup.cli.demo import SETTINGS, fill
from db_dedup.config import (
    DEFAULT_PRESET,
    PRESETS,
    EngineSettings,
    ScheduleSettings,
    ServerSettings,
    Settings,
    Text,
    Value,
    WatchedTable,
)
from db_dedup.flow.candidates.generators import HASH_GENERATORS, SIMHASH
from db_dedup.flow.compare.measures import MEASURES, NO_SIMILARITY
from db_dedup.jobs.explain.applied_rule import EDIT_SIMILARITY, LONG_GRAMS
from db_dedup.records.names import Namespace
from db_dedup.sample import generate_petitions
from db_dedup.schema.tables import our_tables
from db_dedup.schema.views import FIXED_VIEWS

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = sorted([*ROOT.glob("*.md"), *DOCS.rglob("*.md"), *(ROOT / "examples").rglob("*.md")])
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)

CHINESE = {ROOT / "README.zh-CN.md", *(DOCS / "zh-CN").rglob("*.md")}  # tests/test_docs_zh.py

RUN = {
    "README.md",
    "docs/quickstart.md",
    "docs/how-to/check-a-text.md",
    "docs/how-to/files-and-data-frames.md",
    "docs/how-to/orm.md",
    "docs/how-to/query-the-views.md",
    "docs/how-to/refuse-a-duplicate.md",
    "docs/how-to/review-duplicates.md",
    "docs/how-to/use-from-python.md",
    "docs/reference/python.md",
}
NOT_RUN = {
    "docs/how-to/fastapi.md": "tests/test_fastapi_example.py runs the whole of the service",
    "docs/how-to/alembic.md": "a piece of a host's env.py",
    "docs/how-to/separate-store.md": "it takes a replica; tests/guest/test_store_apart.py does",
    "docs/reference/grants.md": "tests/guest/test_grants.py runs it",
    "docs/reference/methods.md": "tests/methods/test_page.py runs it",
    "docs/how-to/mariadb-and-mysql.md": "an administrator's grants",
    "docs/how-to/postgresql.md": "an administrator's grants",
    "docs/how-to/tweets.md": "it takes a table of posts; tests/cli/test_forms.py reads the same column",
}


def read(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def reference(name: str) -> str:
    return read(DOCS / "reference" / f"{name}.md")


def blocks(page: Path, *languages: str) -> list[tuple[str, str]]:
    """The (language, text) of a page's code blocks in these languages."""
    return [(language, text) for language, text in FENCE.findall(read(page)) if language in languages]


def section(text: str, title: str) -> str:
    """What stands under a second-level heading."""
    parts = dict(part.split("\n", 1) for part in re.split(r"^## ", text, flags=re.MULTILINE))
    return parts[title]


def first_cells(text: str) -> list[str]:
    """The names in backticks that stand in the first cells of tables."""
    cells = re.findall(r"^\|([^|]+)\|", text, flags=re.MULTILINE)
    return [name for cell in cells for name in re.findall(r"`([^`]+)`", cell)]


def test_command_line_page_is_up_to_date() -> None:
    generate = runpy.run_path(str(DOCS / "generate.py"))
    assert generate["cli_reference"]() == reference("cli"), "run `make docs`"
    chinese = read(DOCS / "zh-CN" / "reference" / "cli.md")
    assert generate["chinese_cli_reference"]() == chinese, "run `make docs`"


def test_grants_page_shows_what_the_command_prints() -> None:
    page = runpy.run_path(str(DOCS / "generate.py"))["grants_reference"](reference("grants"))
    assert page == reference("grants"), "run `make docs`"
    assert page.count("GRANT") > 80


@pytest.mark.parametrize("dialect", ["postgresql", "mysql"])
def test_grants_name_the_commands_of_each_account(dialect: str) -> None:
    script = (ROOT / "db_dedup" / "dialects" / dialect / "sql" / "grants.sql").read_text(encoding="utf-8")
    for account in ("owner", "scanner", "attacher", "clerk"):
        (cell,) = re.findall(rf"^\| `dedup_{account}` \| (.+) \|$", reference("grants"), flags=re.MULTILINE)
        (named,) = re.findall(rf"-- The {account}: ([^.]+)\.", script)
        assert named.replace("\n-- ", " ") == cell.replace("`", "")


def test_every_command_is_documented() -> None:
    assert re.findall(r"^## (.+)$", reference("cli"), flags=re.MULTILINE) == list(COMMANDS)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_that_are_shown_exist(page: Path) -> None:
    commands = load_commands()
    shown = [line for _, text in blocks(page, "sh") for line in re.findall(r"db-dedup ([a-z].*)", text)]
    shown += re.findall(r"`db-dedup ([a-z][^`]*)`", read(page))
    for line in shown:
        name, *arguments = shlex.split(line, comments=True)
        options = {option for parameter in commands[name].params for option in parameter.opts}
        assert {a for a in arguments if a.startswith("--")} <= options | {"--help", "--"}, line


def test_every_setting_is_documented_with_its_default() -> None:
    page = reference("settings")
    table = section(page, "`[tables.NAME]`")
    fields = {
        field.alias or name: field for name, field in WatchedTable.model_fields.items() if name != "name"
    }
    assert set(first_cells(table)) == {*fields, "user_dictionary", "stop_words_file"}
    for name, field in fields.items():
        if isinstance(field.default, int | str):
            assert f"| `{name}` | `{json.dumps(field.default)}` |" in table, name
    database = section(page, "`[database]`")
    assert set(first_cells(database)) == {
        name.removesuffix("_name")
        for name in Settings.model_fields
        if name not in {"tables", "engine", "schedule", "server"}
    }
    assert set(first_cells(section(page, "`[schedule]`"))) == set(ScheduleSettings.model_fields)
    assert set(first_cells(section(page, "`[engine]`"))) == set(EngineSettings.model_fields)
    server = section(page, "`[server]`")
    assert set(first_cells(server)) == set(ServerSettings.model_fields)
    for name, field in ServerSettings.model_fields.items():
        if isinstance(field.default, int | str):
            assert f"| `{name}` | `{json.dumps(field.default)}` |" in server, name
    for column in (Text(), Value()):
        assert re.search(rf'`"{column.kind}"`.*default {column.weight} \|', page), column


def test_presets_are_those_of_the_page() -> None:
    rows = re.findall(
        r"^\| `(\w+)` " + r"\| (.+) " * len(PRESETS) + r"\|$",
        section(reference("settings"), "Presets"),
        re.MULTILINE,
    )
    documented = {
        preset: {name: json.loads(cells[i].strip("`")) for name, *cells in rows}
        for i, preset in enumerate(PRESETS)
    }
    assert documented == {name: rule.model_dump() for name, rule in PRESETS.items()}
    names = ", ".join(f'`"{name}"`' for name in PRESETS)
    assert f"| `preset` | `{json.dumps(DEFAULT_PRESET)}` | {names} |" in reference("settings")


def test_every_measure_is_documented() -> None:
    names = ", ".join(f'`"{name}"`' for name in (NO_SIMILARITY, *MEASURES))
    assert f"| `similarity` | from the preset | {names} |" in reference("settings")
    row = re.search(r"^\| `similarities` \|(.+)\|$", reference("python"), re.MULTILINE)
    assert row
    assert re.findall(r"`(\w+)`", row[1]) == [*MEASURES, EDIT_SIMILARITY, LONG_GRAMS]


def test_every_candidate_generator_is_documented() -> None:
    row = re.search(r"^\| `generators` \|(.+)\|$", reference("python"), re.MULTILINE)
    assert row
    assert {SIMHASH, *(generator.name for generator in HASH_GENERATORS)} <= set(
        re.findall(r"`([^`]+)`", row[1])
    )


def test_every_public_name_is_documented() -> None:
    page = reference("python")
    for name in db_dedup.__all__:
        assert re.search(rf"\b{name}\b", page), name
        public = getattr(db_dedup, name)
        if isinstance(public, type) and not issubclass(public, BaseModel | Exception):
            fields = getattr(public, "__dataclass_fields__", vars(public))
            missing = [f for f in fields if not f.startswith("_") and not re.search(rf"`{f}\b", page)]
            assert missing == [], name


def test_every_error_is_documented_with_its_exit_code() -> None:
    page = reference("errors")
    for name, error in vars(errors).items():
        if (
            isinstance(error, type)
            and issubclass(error, errors.DedupError)
            and error is not errors.DedupError
        ):
            retry = "yes" if error.is_transient else "no"
            assert f"| `{name}` | {error.exit_code} | {retry} |" in page, name


def test_views_have_the_columns_of_the_page() -> None:
    page = reference("views")
    tables = our_tables(Namespace("dedup", ""))
    for name, query in FIXED_VIEWS.items():
        columns = [column.name for column in query(tables).selected_columns]
        assert first_cells(section(page, name)) == columns, name


def test_tables_have_the_columns_of_the_page() -> None:
    page = reference("tables").replace("`block_1` to `block_4`", "`block_1` `block_2` `block_3` `block_4`")
    for table in our_tables(Namespace("dedup", "")).metadata.tables.values():
        title = "change, dead_change" if table.name in ("change", "dead_change") else table.name
        documented = first_cells(section(page, title))
        columns = [column.name for column in table.columns]
        assert set(columns) <= set(documented), table.name
        if title == table.name:
            assert columns == documented, table.name


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)]+)\)", read(page)):
        if target.startswith("https://"):
            continue
        name, _, anchor = target.partition("#")
        linked = (page.parent / name).resolve() if name else page
        assert linked.is_file(), target
        assert not anchor or anchor in anchors(linked), target


def anchors(page: Path) -> set[str]:
    """What a heading is called in a link."""
    titles = re.findall(r"^#+ (.+)$", read(page), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title).lower().replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_scripts_that_are_shown_exist(page: Path) -> None:
    for script in re.findall(r"python (\S+\.py)", read(page)):
        assert (ROOT / script).is_file(), script


def test_every_page_can_be_reached() -> None:
    linked = {
        (page.parent / target.partition("#")[0]).resolve()
        for page in PAGES
        for target in re.findall(r"\]\(([^)]+)\)", read(page))
    }
    assert [page for page in PAGES if page not in linked and page.name != "README.md"] == []


def test_settings_that_are_shown_are_valid(tmp_path: Path) -> None:
    for name in ("words.txt", "stop.txt"):
        (tmp_path / name).write_text("城东区\n", encoding="utf-8")
    shown = [text for page in PAGES for _, text in blocks(page, "toml")]
    assert shown
    for text in shown:
        file = tmp_path / "dedup.toml"
        file.write_text(text, encoding="utf-8")
        assert Settings.from_file(file).tables, text


def test_a_guard_takes_less_than_ten_lines() -> None:
    _, (_, code), *_ = blocks(DOCS / "how-to" / "orm.md", "python")
    assert "guard_duplicates(" in code
    assert sum(bool(line) for line in code.splitlines()) < 10


def test_pages_with_code_are_run_or_said_not_to_be() -> None:
    """The code of a Chinese page is that of the English one."""
    english = [page for page in PAGES if page not in CHINESE]
    with_code = {str(page.relative_to(ROOT)) for page in english if blocks(page, "python", "sql")}
    assert with_code == RUN | NOT_RUN.keys()


@pytest.fixture
def scanned_petitions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The current folder holds petitions.db, scanned, and dedup.toml."""
    monkeypatch.chdir(tmp_path)
    Path("dedup.toml").write_text(SETTINGS, encoding="utf-8")
    database = Database("sqlite:///petitions.db", create=True)
    with database.engine.begin() as connection:
        fill(connection, generate_petitions(200))
    dedup = Deduplicator(database, Settings.from_file(Path("dedup.toml")).watched("petitions"))
    dedup.upgrade()
    dedup.scan()
    database.close()


@pytest.mark.usefixtures("scanned_petitions")
@pytest.mark.filterwarnings("ignore:unclosed database:ResourceWarning")  # Python 3.13 warns, 3.11 does not
@pytest.mark.parametrize("name", sorted(RUN))
def test_code_runs(name: str) -> None:
    """Pages close no connection: a reader's process ends with the page."""
    names: dict[str, Any] = {}
    for language, text in blocks(ROOT / name, "python", "sql"):
        if language == "python":
            exec(compile(text, name, "exec"), names)  # noqa: S102 - it is a page of ours
        else:
            run_sql(text)
    names.clear()
    gc.collect()


def run_sql(text: str) -> None:
    engine = create_engine("sqlite:///petitions.db", poolclass=NullPool)
    with engine.connect() as connection:
        connection.exec_driver_sql(text).all()
