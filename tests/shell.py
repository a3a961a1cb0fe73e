"""Commands as a reader of the documentation types them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

FENCE = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_ENDED = "=== this command has ended ==="


def shell_blocks(page: Path, title: str | None = None) -> list[str]:
    """The blocks of shell commands under a second-level heading of a page; None: before the first one."""
    introduction, *sections = re.split(r"^## ", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    named = dict(section.split("\n", 1) for section in sections)
    return FENCE.findall(introduction if title is None else named[title])


def run_in_shell(
    commands: Sequence[str], folder: Path, programs: Path | None = None, **variables: str
) -> list[str]:
    """Run commands one after the other in one shell; the first that fails ends it, and the test.

    Args:
        commands: each as it is shown.
        folder: the current one.
        programs: the folder that holds `db-dedup`; None: that of this Python.
        variables: more of the environment, in which nothing settles an option of ours.

    Returns:
        What each command printed, on stdout and stderr.
    """
    environment = {name: value for name, value in os.environ.items() if not name.startswith("DB_DEDUP_")}
    path = f"{programs or Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    script = "".join(f"{command}\necho '{_ENDED}'\n" for command in commands)
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],
        cwd=folder,
        env={**environment, "PATH": path, **variables},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == 0, f"{commands}\n{done.stdout}"
    return done.stdout.split(f"{_ENDED}\n")[:-1]
