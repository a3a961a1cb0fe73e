"""The wheel and the sdist hold what they should, and the migrations are found in the wheel."""

import re
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from db_dedup import __version__
from tests.package.building import ROOT, build

NOT_A_CLONE = pytest.mark.skipif(not (ROOT / ".git").exists(), reason="git knows the files of a clone only")
UPGRADE = """
import sys
from sqlalchemy import create_engine
import db_dedup.schema.migrate as migrate
from db_dedup.records.names import Namespace
from db_dedup.schema.revisions import head_revision

namespace = Namespace(None, "dedup_")
engine = create_engine("sqlite:///" + sys.argv[1])
with engine.begin() as connection:
    migrate.upgrade(connection, namespace)
    assert migrate.current_revision(connection, namespace) == head_revision()
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


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with wheel and sdist."""
    return build(ROOT, tmp_path_factory.mktemp("dist"))


@pytest.fixture(scope="module")
def wheel(built: Path) -> Path:
    """The wheel, unpacked."""
    shutil.unpack_archive(built / f"db_dedup-{__version__}-py3-none-any.whl", built / "unpacked", "zip")
    return built / "unpacked"


def test_in_a_source_tree(tmp_path: Path) -> None:
    assert upgrade_in_a_process(ROOT, tmp_path) == ROOT / "db_dedup/schema/migrate.py"


def test_in_the_wheel(wheel: Path, tmp_path: Path) -> None:
    assert not (wheel / "migrations").exists()
    assert upgrade_in_a_process(wheel, tmp_path) == wheel / "db_dedup/schema/migrate.py"


def known_to_git(*options: str) -> set[str]:
    listed = subprocess.run(
        ["git", "ls-files", *options], cwd=ROOT, check=True, capture_output=True, text=True
    )
    return set(listed.stdout.splitlines())


@NOT_A_CLONE
def test_the_sdist_is_the_repository(built: Path) -> None:
    """Tests, documentation and Makefile included: `make test` runs from it."""
    with tarfile.open(built / f"db_dedup-{__version__}.tar.gz") as sdist:
        names = {name.partition("/")[2] for name in sdist.getnames()}
    tracked = known_to_git("--cached")
    assert tracked - names == set()
    assert names - tracked - known_to_git("--others", "--exclude-standard") == {"PKG-INFO"}


@NOT_A_CLONE
def test_the_wheel_has_every_file_of_the_package(wheel: Path) -> None:
    tracked = known_to_git("--cached")
    code = {name for name in tracked if name.startswith("db_dedup/")}
    migrations = {f"db_dedup/{name}" for name in tracked if name.startswith("migrations/")}
    names = {str(path.relative_to(wheel)) for path in wheel.rglob("*") if path.is_file()}
    assert (code | migrations) - names == set()
    assert {name.partition("/")[0] for name in names} == {"db_dedup", f"db_dedup-{__version__}.dist-info"}


def test_type_checkers_are_shown_our_types(wheel: Path) -> None:
    assert (wheel / "db_dedup/py.typed").is_file()


def test_the_readme_names_the_wheel_of_this_version() -> None:
    for readme in ("README.md", "README.zh-CN.md"):
        text = (ROOT / readme).read_text(encoding="utf-8")
        assert set(re.findall(r"db_dedup-(\d[\w.]*)-py3", text)) == {__version__}, readme


def test_the_changelog_names_this_version() -> None:
    """Under a heading of its own, or as the one that is to come."""
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.search(rf"^(## \[|To be ){re.escape(__version__)}\b", changelog, re.MULTILINE)
