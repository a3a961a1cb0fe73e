"""The migrations are found in a source tree and in the built wheel."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
UPGRADE = """
import sys
from sqlalchemy import create_engine
import db_dedup.schema.migrate as migrate
from db_dedup.schema.names import Namespace

namespace = Namespace(None, "dedup_")
engine = create_engine("sqlite:///" + sys.argv[1])
with engine.begin() as connection:
    migrate.upgrade(connection, namespace)
    assert migrate.is_current(connection, namespace)
engine.dispose()
print(migrate.__file__)
"""


def upgrade_in_a_process(package_folder: Path, folder: Path) -> Path:
    """Upgrade a new SQLite file with the package of that folder; gives where it was loaded from."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", UPGRADE, str(folder / "petitions.db")],
        cwd=folder,
        env={"PYTHONPATH": str(package_folder), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    # Nothing is said, and nobody's logging is set up.
    assert done.stderr == ""
    assert done.returncode == 0
    return Path(done.stdout.strip())


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, unpacked."""
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder],
        cwd=ROOT,
        check=True,
        capture_output=True,
    )
    (built,) = folder.glob("*.whl")
    zipfile.ZipFile(built).extractall(folder / "unpacked")
    return folder / "unpacked"


def test_in_a_source_tree(tmp_path: Path) -> None:
    assert upgrade_in_a_process(ROOT, tmp_path) == ROOT / "db_dedup/schema/migrate.py"


def test_in_the_wheel(wheel: Path, tmp_path: Path) -> None:
    assert not (wheel / "migrations").exists()
    assert upgrade_in_a_process(wheel, tmp_path) == wheel / "db_dedup/schema/migrate.py"
