"""From an empty environment to a scan: the installation that the README shows, and the wheel without extras.

pip is configured by the environment alone, and keeps to the releases of constraints.txt.
"""

from __future__ import annotations

import shlex
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from db_dedup import __version__
from db_dedup.schema.revisions import head_revision
from tests.package.building import ROOT, build
from tests.servers import Database
from tests.shell import run_in_shell, shell_blocks

CONSTRAINTS = str(ROOT / "constraints.txt")
FOUND = "duplicate groups"


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sdist, unpacked: what somebody has who has no clone."""
    folder = build(ROOT, tmp_path_factory.mktemp("sdist"))
    with tarfile.open(folder / f"db_dedup-{__version__}.tar.gz") as sdist:
        sdist.extractall(folder, filter="data")
    return folder / f"db_dedup-{__version__}"


def readme_blocks(title: str | None) -> list[str]:
    return shell_blocks(ROOT / "README.md", title)


def test_the_readme_from_the_sdist(
    unpacked: Path, postgresql_database: Database, mariadb_database: Database
) -> None:
    """Its blocks in one shell, as they are shown; the first comes last, on the file of the demo."""
    installed = "$(cd / && python -c 'import db_dedup; print(db_dedup.__path__[0])')"
    extras = [
        # The other test of this file compiles them; here it would take minutes once more.
        f'{shlex.quote(sys.executable)} {shlex.quote(str(ROOT / "tests/package/kernels.py"))} "{installed}"',
        *(
            f"db-dedup upgrade --url {shlex.quote(database.url)}"
            for database in (postgresql_database, mariadb_database)
        ),
    ]
    *_, version, demo, _, first, second, show = run_in_shell(
        [
            *readme_blocks("Install"),
            *extras,
            "db-dedup --version",
            *readme_blocks("See it work"),
            "cd db-dedup-demo",
            *readme_blocks(None)[0].splitlines(),
            "python -m pip show --files db-dedup",
        ],
        unpacked,
        PIP_CONSTRAINT=CONSTRAINTS,
    )
    assert version == f"db-dedup {__version__}\n"
    assert FOUND in demo
    assert FOUND in first
    assert "wrote found.xlsx" in second
    assert str(ROOT) not in show  # nothing of this clone was used
    assert "db_dedup/py.typed" in show


def test_the_wheel_without_extras(unpacked: Path, tmp_path: Path) -> None:
    """Everything on SQLite works; what needs an extra says so, in the command that then brings it."""
    programs = tmp_path / "environment" / "bin"
    (built,) = build(unpacked, tmp_path / "dist").glob("*.whl")
    subprocess.run([sys.executable, "-m", "venv", programs.parent], check=True)
    pip = f"{programs}/python -m pip install --constraint {shlex.quote(CONSTRAINTS)}"
    run_in_shell([f"{pip} {shlex.quote(str(built))}"], tmp_path)
    here = tmp_path / "here"
    here.mkdir()
    *_, upgrade, scan = run_in_shell(
        [
            "db-dedup demo --rows 200",
            "cd db-dedup-demo",
            "db-dedup uninstall --yes",
            "db-dedup upgrade",
            "db-dedup scan petitions",
        ],
        here,
        programs,
    )
    assert head_revision() in upgrade
    assert FOUND in scan

    (here / "x.xlsx").touch()
    (here / "x.parquet").touch()
    needed = {
        "db-dedup file x.xlsx": "excel",
        "db-dedup file x.parquet": "parquet",
        "db-dedup file db-dedup-demo/petitions.csv --out found.xlsx": "excel",
        "db-dedup file db-dedup-demo/petitions.csv --out found.parquet": "parquet",
        "db-dedup status --url postgresql://user@host/office": "postgresql",
        "db-dedup status --url mariadb://user@host/office": "mysql",
        "db-dedup status --url mysql://user@host/office": "mysql",
    }
    for command, extra in needed.items():
        (message,) = run_in_shell([f"! {command}"], here, programs)
        assert message.splitlines()[-1].endswith(f'pip install "db-dedup[{extra}]"'), message
        assert FOUND not in message, "the extra is missed before the work, not after it"

    # pip takes db-dedup as installed, so that this works without an index that has it.
    command = message_command(run_in_shell(["! db-dedup file x.xlsx"], here, programs)[0])
    out = "db-dedup file db-dedup-demo/petitions.csv --out found.xlsx"
    added, written = run_in_shell([f"{programs}/{command}", out], here, programs, PIP_CONSTRAINT=CONSTRAINTS)
    assert "xlsxwriter" in added
    assert "wrote found.xlsx" in written


def message_command(message: str) -> str:
    """The command at the end of an error."""
    return message[message.index("pip install ") :].strip()
