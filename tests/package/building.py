"""Wheels and sdists of this version."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def build(source: Path, folder: Path) -> Path:
    """Build wheel and sdist of a source tree, as `make wheel` does, into a folder; gives the folder."""
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "--directory", folder],
        cwd=source,
        check=True,
        capture_output=True,
    )
    return folder
