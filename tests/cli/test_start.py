"""What a start loads: nothing slow before it is needed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from db_dedup.cli.application import app
from db_dedup.cli.commands import COMMANDS, load_command

SLOW = {
    "alembic", "apscheduler", "asyncio", "cityhash", "concurrent.futures", "fastapi", "jieba",
    "multiprocessing", "numba", "numpy", "pydantic", "rjieba", "scipy", "sqlalchemy", "starlette", "tomlkit",
    "uvicorn",
}  # fmt: skip
"""What may not be loaded for `import db_dedup` and `db-dedup --help`."""


MAIN = "from db_dedup.cli import main\ntry:\n    main()\nexcept SystemExit:\n    pass"


def loaded_by(program: str, *arguments: str, record: str = "") -> set[str]:
    """The modules that a process of its own has at its end."""
    report = "import atexit, sys; atexit.register(lambda: print(*sys.modules, file=sys.stderr))"
    done = subprocess.run(
        [sys.executable, "-c", f"{report}\n{program}", *arguments],
        capture_output=True,
        check=True,
        text=True,
        encoding="utf-8",
        input=record,
    )
    return set(done.stderr.split())


def test_the_package_loads_nothing_slow() -> None:
    loaded = loaded_by("import db_dedup; db_dedup.__version__")
    assert not loaded & (SLOW | {"rich", "typer"})
    assert not {name for name in loaded if name.startswith("db_dedup.")}


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], []], ids=" ".join)
def test_help_loads_nothing_slow(arguments: list[str]) -> None:
    loaded = loaded_by(MAIN, *arguments)
    assert "db_dedup.cli.commands" in loaded
    assert not loaded & SLOW
    assert not {f"db_dedup.cli.{name}" for name in COMMANDS} & loaded


def test_the_module_of_check_loads_nothing_that_it_does_not_need() -> None:
    loaded = loaded_by("import db_dedup.cli.check")
    assert "numba" in loaded
    assert not loaded & {"alembic", "apscheduler", "charset_normalizer", "sqlalchemy.orm", "tomlkit"}
    assert not loaded & {"db_dedup.jobs.scan.full_scan", "db_dedup.jobs.verify", "db_dedup.proposal"}


def test_a_check_loads_nothing_that_it_does_not_need(tmp_path: Path) -> None:
    folder = tmp_path / "demo"
    loaded_by(MAIN, "demo", "--folder", str(folder), "--rows", "10")
    url, config = f"sqlite:///{folder / 'petitions.db'}", str(folder / "dedup.toml")
    record = json.dumps({"title": "路灯坏了", "content": "小区门口的路灯坏了三个月。", "region": ""})
    check = (MAIN, "check", "petitions", "--config", config, "--url", url)
    loaded_by(*check, record=record)  # which may compile kernels
    loaded = loaded_by(*check, record=record)
    assert {
        "db_dedup.engines.embedded.lookup",
        "db_dedup.flow.text.jieba_words",
    } <= loaded
    assert not loaded & {"alembic", "apscheduler", "charset_normalizer", "pandas", "rjieba", "sqlalchemy.orm"}
    assert not loaded & {"numpy.f2py", "pkg_resources", "scipy.linalg.cython_blas", "tomlkit"}
    assert not loaded & {
        "db_dedup.jobs.explain",
        "db_dedup.jobs.review.questions",
        "db_dedup.jobs.worker.table_worker",
    }
    assert "numba.np.random.generator_core" not in loaded, "only a compilation needs it"


@pytest.mark.parametrize("name", COMMANDS)
def test_the_list_of_commands_has_the_first_line_of_each(name: str) -> None:
    assert load_command(name).help.split("\n\n")[0] == COMMANDS[name]


@pytest.mark.parametrize(
    ("words", "expected"),
    [("db-dedup che", {"check"}), ("db-dedup scan --prev", {"--preview"}), ("db-dedup sql --pa", {"--part"})],
)
def test_shells_complete_commands_and_their_options(words: str, expected: set[str]) -> None:
    """Of a command that is not yet loaded, too."""
    environment = {
        "_DB_DEDUP_COMPLETE": "complete_bash",
        "COMP_WORDS": words,
        "COMP_CWORD": str(len(words.split()) - 1),
    }
    done = CliRunner().invoke(app, [], env=environment, prog_name="db-dedup")
    assert set(done.stdout.split()) == expected
