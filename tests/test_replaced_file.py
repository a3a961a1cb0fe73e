"""Files that are written whole, or stay as they were."""

from __future__ import annotations

import errno
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from db_dedup.cli.shared.output import write_page
from db_dedup.errors import ConfigError
from db_dedup.replaced_file import replaced


def fill_the_disk(path: Path, *_: object, **__: object) -> None:
    with path.open("w") as file:
        file.write("<ht")
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_two_commands_that_write_the_same_file_do_not_mix_it(tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    other = "import sys; from pathlib import Path; from db_dedup.cli.shared.output import write_page; "
    other += "write_page(Path(sys.argv[1]), 'of the other command')"
    with replaced(page) as unfinished, unfinished.open("w") as file:
        file.write("of this command, ")
        file.flush()
        subprocess.run([sys.executable, "-c", other, str(page)], check=True)
        assert page.read_text() == "of the other command"
        file.write("whole")
    assert page.read_text() == "of this command, whole"
    assert list(tmp_path.iterdir()) == [page]


def test_a_full_disk_leaves_the_former_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = tmp_path / "report.html"
    page.write_text("of last month")
    monkeypatch.setattr(Path, "write_text", fill_the_disk)
    with pytest.raises(ConfigError, match=r"cannot write .*report\.html: No space left"):
        write_page(page, "<html>")
    assert page.read_text() == "of last month"
    assert list(tmp_path.iterdir()) == [page]


@pytest.mark.skipif(os.name == "nt", reason="Windows has other permissions, links and devices")
def test_permissions_links_and_devices_stay(tmp_path: Path) -> None:
    page, link = tmp_path / "report.html", tmp_path / "latest.html"
    page.write_text("of last month")
    page.chmod(0o640)
    link.symlink_to(page)
    reader, writer = os.openpty()
    for path in (link, Path(os.ttyname(writer))):
        with replaced(path) as unfinished:
            unfinished.write_text("of this month")
    assert link.is_symlink()
    assert page.read_text() == "of this month"
    assert stat.S_IMODE(page.stat().st_mode) == 0o640
    assert os.read(reader, 99) == b"of this month"
    os.close(reader)
    os.close(writer)


@pytest.mark.skipif(os.name == "nt", reason="Windows has no /dev/stdout")
def test_a_pipe_is_written_itself() -> None:
    """The path that it resolves to does not exist."""
    command = "from pathlib import Path; from db_dedup.cli.shared.output import write_page; "
    command += "write_page(Path('/dev/stdout'), '<html>')"
    assert subprocess.check_output([sys.executable, "-c", command], text=True) == "<html>"
